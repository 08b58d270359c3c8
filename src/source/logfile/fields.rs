//! What the named fields of a structured line mean: keys and values in, a [`Line`] out.

use std::borrow::Cow;

use super::level;
use super::line::{Line, level_of_text};
use super::stamp::{self, Clock, Stamp};
use crate::domain::Level;

/// What a field is for. Where several fields are for the same, the one that comes first in its list wins.
#[derive(Clone, Copy)]
enum Purpose {
    Time,
    Level,
    Message,
    Service,
    Instance,
    /// The reason beside a message that does not hold it.
    Error,
    Stack,
}

const TIME: &[&str] = &[
    "@timestamp",
    "timestamp",
    "time",
    "ts",
    "@t",
    "datetime",
    "date_time",
    "date",
    "eventtime",
    "event_time",
    "log_time",
    "logtime",
    "asctime",
    "t",
    "t.$date",
    "time_iso8601",
    "time_local",
    "timemillis",
    "instant",
    "start_time",
    "created_at",
    "created",
    "_source_realtime_timestamp",
    "__realtime_timestamp",
    "timestampseconds",
    "requesttime",
    "edgestarttimestamp",
    "datetime_utc",
    "epoch",
    "epoch_ms",
    "when",
    "reqtime",
    "_timestamp",
    "observedtimestamp",
    "timeunixnano",
    "starttime",
];
const LEVEL: &[&str] = &[
    "level",
    "severity",
    "lvl",
    "loglevel",
    "log_level",
    "log.level",
    "levelname",
    "level_name",
    "@l",
    "severity_text",
    "severitytext",
    "s",
    "l",
    "priority",
    "syslog_severity",
    "severity_number",
    "levelno",
    "status",
    "response_code",
    "status_code",
];
const MESSAGE: &[&str] = &[
    "message",
    "msg",
    "@m",
    "@mt",
    "short_message",
    "log",
    "body",
    "event",
    "text",
    "textpayload",
    "m",
    "fields.message",
    "jsonpayload.message",
    "body.stringvalue",
    "full_message",
    "description",
    "content",
];
const SERVICE: &[&str] = &[
    "service",
    "service.name",
    "service_name",
    "servicename",
    "resource.service.name",
    "app",
    "application",
    "app_name",
    "appname",
    "application_name",
    "kubernetes.labels.app",
    "kubernetes.labels.app.kubernetes.io/name",
    "kubernetes.labels.app_kubernetes_io/name",
    "kubernetes.labels.k8s-app",
    "labels.app",
    "k8s.deployment.name",
    "kubernetes.deployment.name",
    "kubernetes.container_name",
    "kubernetes.container.name",
    "container_name",
    "container.name",
    "k8s.container.name",
    "syslog_identifier",
    "appname",
    "program",
    "_systemd_unit",
    "_comm",
    "resource.labels.container_name",
];
const INSTANCE: &[&str] = &[
    "pod",
    "pod_name",
    "podname",
    "kubernetes.pod_name",
    "kubernetes.pod.name",
    "k8s.pod.name",
    "service.instance.id",
    "instance",
    "instance_id",
    "hostname",
    "host",
    "host.name",
    "host.hostname",
    "_hostname",
    "node",
    "node_name",
    "container_id",
    "resource.labels.pod_name",
];
const ERROR: &[&str] =
    &["error", "err", "error.message", "err.message", "err.msg", "error.msg", "exception.message", "exc"];
const STACK: &[&str] = &[
    "stack_trace",
    "stacktrace",
    "error.stack_trace",
    "error.stack",
    "err.stack",
    "exception",
    "exc_info",
    "exception.stacktrace",
    "stack",
    "throwable",
    "@x",
    "thrown.extendedstacktrace",
];

/// The purpose of a key and its rank in the list, ignoring case.
fn purpose_of(key: &str) -> Option<(Purpose, usize)> {
    const LISTS: [(Purpose, &[&str]); 7] = [
        (Purpose::Time, TIME),
        (Purpose::Level, LEVEL),
        (Purpose::Message, MESSAGE),
        (Purpose::Service, SERVICE),
        (Purpose::Instance, INSTANCE),
        (Purpose::Error, ERROR),
        (Purpose::Stack, STACK),
    ];
    LISTS.iter().find_map(|(purpose, keys)| {
        keys.iter().position(|known| known.eq_ignore_ascii_case(key)).map(|rank| (*purpose, rank))
    })
}

/// A value with the rank of the key that gave it.
type Ranked<T> = Option<(usize, T)>;

fn put<T>(slot: &mut Ranked<T>, rank: usize, value: T) {
    if slot.as_ref().is_none_or(|(held, _)| rank < *held) {
        *slot = Some((rank, value));
    }
}

/// The fields of one line as they are read.
#[derive(Default)]
pub struct Fields<'a> {
    time: Ranked<Stamp>,
    level: Ranked<Level>,
    message: Ranked<Cow<'a, str>>,
    service: Ranked<Cow<'a, str>>,
    instance: Ranked<Cow<'a, str>>,
    error: Ranked<Cow<'a, str>>,
    stack: Ranked<Cow<'a, str>>,
    /// bunyan and pino call the service `name`; others call all sorts of things so.
    name: Option<Cow<'a, str>>,
}

impl<'a> Fields<'a> {
    /// Takes a field whose value is text.
    pub fn take_text(&mut self, key: &str, value: Cow<'a, str>, clock: &Clock) {
        if value.trim().is_empty() {
            return;
        }
        if key == "name" {
            self.name = Some(value);
            return;
        }
        let Some((purpose, rank)) = purpose_of(key) else { return };
        match purpose {
            Purpose::Time => {
                if let Some(stamp) = time_of_text(&value, clock) {
                    // A date that does not exist gives way to any other field's time.
                    let rank = if stamp.at.is_some() { rank } else { rank + TIME.len() };
                    put(&mut self.time, rank, stamp);
                }
            }
            Purpose::Level => {
                if let Some(level) = level_of_value(key, &value) {
                    put(&mut self.level, rank, level);
                }
            }
            Purpose::Message => put(&mut self.message, rank, value),
            Purpose::Service => put(&mut self.service, rank, without_unit_suffix(value)),
            Purpose::Instance => put(&mut self.instance, rank, value),
            Purpose::Error => put(&mut self.error, rank, value),
            Purpose::Stack => put(&mut self.stack, rank, value),
        }
    }

    /// Takes a field whose value is a number.
    pub fn take_number(&mut self, key: &str, number: &serde_json::Number) {
        let Some((purpose, rank)) = purpose_of(key) else { return };
        match purpose {
            Purpose::Time => {
                let stamp = match number.as_i64() {
                    Some(integer) => stamp::from_integer(integer),
                    None => number.as_f64().and_then(stamp::from_number),
                };
                if let Some(stamp) = stamp {
                    put(&mut self.time, rank, stamp);
                }
            }
            Purpose::Level => {
                if let Some(level) = number.as_i64().and_then(|n| level_of_number(key, n)) {
                    put(&mut self.level, rank, level);
                }
            }
            _ => {}
        }
    }

    /// Takes a time that was put together from several fields.
    pub fn take_stamp(&mut self, stamp: Stamp) {
        put(&mut self.time, 0, stamp);
    }

    /// Whether there is enough to call it a record of a log.
    pub fn tells_something(&self) -> bool {
        self.message.is_some() || (self.time.is_some() && self.level.is_some())
    }

    /// The line; without a message field the whole `text` is the message.
    pub fn into_line(self, text: &'a str) -> Line<'a> {
        let message = match self.message {
            Some((_, message)) => message,
            None => Cow::Borrowed(text),
        };
        let level = self.level.map(|(_, level)| level).or_else(|| level_of_text(&message));
        let service =
            self.service.map(|(_, service)| service).or_else(|| self.name.filter(|_| self.instance.is_some()));
        Line {
            at: self.time.map(|(_, stamp)| stamp),
            level,
            service,
            instance: self.instance.map(|(_, instance)| instance),
            ..Line::begins(with_reason(message, self.error, self.stack))
        }
    }
}

/// The message, with the error and the stack trace of other fields on lines of their own: they are what a reader
/// and a signature look for.
fn with_reason<'a>(message: Cow<'a, str>, error: Ranked<Cow<'a, str>>, stack: Ranked<Cow<'a, str>>) -> Cow<'a, str> {
    let mut message = match message.trim_end() {
        trimmed if trimmed.len() == message.len() => message,
        trimmed => Cow::Owned(trimmed.to_owned()),
    };
    if let Some((_, error)) = error
        && !message.contains(&*error)
    {
        message.to_mut().push_str("\nerror: ");
        message.to_mut().push_str(&error);
    }
    if let Some((_, stack)) = stack
        && !message.contains(&*stack)
    {
        message.to_mut().push('\n');
        message.to_mut().push_str(stack.trim_end());
    }
    message
}

fn time_of_text(value: &str, clock: &Clock) -> Option<Stamp> {
    let number = || value.trim().parse::<i64>().ok().and_then(stamp::from_integer);
    stamp::parse_text(value, clock).or_else(number)
}

fn level_of_value(key: &str, value: &str) -> Option<Level> {
    let value = value.trim();
    if let Ok(number) = value.parse::<i64>() {
        return level_of_number(key, number);
    }
    // `status=Pending` is no level, and one letter is one only where the key is short for it.
    if is_http_status(key) {
        return None;
    }
    if let [letter] = value.as_bytes() {
        return level::from_letter(letter.to_ascii_uppercase());
    }
    level::from_word(value.as_bytes()).or_else(|| {
        // MongoDB counts debug levels: `D1`.
        matches!(value.as_bytes(), [b'D', b'1'..=b'5']).then_some(Level::Debug)
    })
}

fn level_of_number(key: &str, number: i64) -> Option<Level> {
    match key.to_ascii_lowercase().as_str() {
        "status" | "status_code" | "response_code" => level::from_http_status(number),
        // OpenTelemetry: four numbers to each level, from 1.
        "severity_number" | "severitynumber" => Some(match number {
            1..=4 => Level::Trace,
            5..=8 => Level::Debug,
            9..=12 => Level::Info,
            13..=16 => Level::Warn,
            17..=20 => Level::Error,
            21..=24 => Level::Fatal,
            _ => return None,
        }),
        _ => level::from_number(number),
    }
}

fn is_http_status(key: &str) -> bool {
    ["status", "status_code", "response_code"].iter().any(|k| k.eq_ignore_ascii_case(key))
}

/// `nginx.service` of systemd is nginx.
fn without_unit_suffix(value: Cow<'_, str>) -> Cow<'_, str> {
    match value.strip_suffix(".service") {
        Some(name) => Cow::Owned(name.to_owned()),
        None => value,
    }
}
