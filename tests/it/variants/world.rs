//! Builds one incident folder: series, log lines and objects are collected, then written (DESIGN section 8).
//!
//! Times are minutes relative to the incident's now (`-20.0` is twenty minutes before it). In selectors and messages
//! `$name` stands for each pod of the service `name`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::alert::Alert;
use super::curve::{Curve, Rng};
use super::format::{Format, Line, render};
use super::host::Host;
use super::kube::Objects;
use super::service::Service;

/// Seconds between two scrapes.
const STEP: i64 = 30;

#[derive(Default)]
struct Family {
    kind: &'static str,
    lines: String,
}

pub struct World {
    pub now: Timestamp,
    pub zone: TimeZone,
    pub zone_name: &'static str,
    /// How long before now metrics and logs begin.
    pub minutes: f64,
    pub rng: Rng,
    pub services: Vec<Service>,
    pub objects: Objects,
    /// Minute after which the series being made have no samples; infinite unless a pod or node is gone.
    pub end: f64,
    families: BTreeMap<String, Family>,
    logs: BTreeMap<String, Vec<(Timestamp, String)>>,
    topology: Vec<(&'static str, Vec<&'static str>)>,
    changes: Vec<(f64, Value)>,
    alert: Option<Alert>,
    mentions: Vec<&'static str>,
}

impl World {
    /// `now` with its offset, as in `2026-05-11T09:20:00+02:00`.
    pub fn new(now: &str, zone_name: &'static str) -> World {
        let now: Timestamp = now.parse().expect("the variants' own times are RFC 3339");
        let zone = TimeZone::get(zone_name).expect("the variants' own zones are in the IANA database");
        World {
            now,
            zone,
            zone_name,
            minutes: 75.0,
            rng: Rng(now.as_second().unsigned_abs()),
            services: Vec::new(),
            objects: Objects::default(),
            end: f64::INFINITY,
            families: BTreeMap::new(),
            logs: BTreeMap::new(),
            topology: Vec::new(),
            changes: Vec::new(),
            alert: None,
            mentions: Vec::new(),
        }
    }

    pub fn time(&self, minute: f64) -> Timestamp {
        self.now + SignedDuration::from_millis((minute * 60_000.0) as i64)
    }

    /// Virtual machines instead of Kubernetes: no `status/` but for what is added by hand.
    pub fn hosts(mut self) -> World {
        self.objects.kubernetes = false;
        self
    }

    pub fn namespace(mut self, name: &'static str) -> World {
        self.objects.namespace = name;
        self
    }

    pub fn calls(mut self, caller: &'static str, callees: &[&'static str]) -> World {
        self.topology.push((caller, callees.to_vec()));
        self
    }

    pub fn service(mut self, service: Service) -> World {
        service.generate(&mut self);
        self.services.push(service);
        self
    }

    /// A node or virtual machine with its exporter; nodes of the cluster that are not told are ordinary ones.
    pub fn host(mut self, host: Host) -> World {
        host.generate(&mut self);
        self.objects.hosts.push(host.name);
        self
    }

    /// Replaces `$service` by each pod of that service.
    fn expand(&self, text: &str) -> Vec<String> {
        for service in &self.services {
            let mark = format!("${}", service.name);
            if text.contains(&mark) {
                return service.pods().iter().map(|pod| text.replace(&mark, pod)).collect();
            }
        }
        vec![text.to_string()]
    }

    /// A gauge with noise of 3 %.
    pub fn gauge(mut self, selector: &str, curve: impl Into<Curve>) -> World {
        self.put_gauge(selector, &curve.into(), 0.03);
        self
    }

    /// A gauge without noise: a limit, a state, a count that stands.
    pub fn level(mut self, selector: &str, curve: impl Into<Curve>) -> World {
        self.put_gauge(selector, &curve.into(), 0.0);
        self
    }

    /// A counter (`…_total`) by its growth a second.
    pub fn counter(mut self, selector: &str, per_second: impl Into<Curve>) -> World {
        self.put_counter(selector, &per_second.into());
        self
    }

    pub fn put_gauge(&mut self, selector: &str, curve: &Curve, noise: f64) {
        for selector in self.expand(selector) {
            let mut lines = String::new();
            for (minute, at) in self.scrapes(&selector) {
                let value = curve.at(minute) * (1.0 + noise * self.rng.normal());
                push(&mut lines, &selector, value, &at);
            }
            self.family(&selector, "gauge", &lines);
        }
    }

    pub fn put_counter(&mut self, selector: &str, per_second: &Curve) {
        for selector in self.expand(selector) {
            let fraction = selector.contains("seconds") || selector.contains("_sum");
            let mut total = (1000 + self.rng.below(60_000)) as f64;
            let mut lines = String::new();
            for (minute, at) in self.scrapes(&selector) {
                total += (per_second.at(minute) * STEP as f64 * (1.0 + 0.05 * self.rng.normal())).max(0.0);
                push(&mut lines, &selector, if fraction { total } else { total.floor() }, &at);
            }
            self.family(&selector, "counter", &lines);
        }
    }

    /// A counter by its values: restarts come one at a time.
    pub fn put_restarts(&mut self, selector: &str, count: &Curve) {
        let mut lines = String::new();
        for (minute, at) in self.scrapes(selector) {
            push(&mut lines, selector, count.at(minute).floor(), &at);
        }
        self.family(selector, "counter", &lines);
    }

    /// Every scrape as minutes and as the time stamp's text; targets are spread over the step.
    fn scrapes(&self, selector: &str) -> Vec<(f64, String)> {
        let offset = selector.split_once('{').map_or(0, |(_, labels)| labels.len() as i64 * 7 % (STEP - 2));
        let first = self.now.as_second() - (self.minutes * 60.0) as i64 + offset;
        let count = (self.minutes * 60.0) as i64 / STEP;
        (0..count)
            .map(|index| first + index * STEP)
            .map(|second| ((second - self.now.as_second()) as f64 / 60.0, format!("{second}.2")))
            .take_while(|(minute, _)| *minute < self.end)
            .collect()
    }

    fn family(&mut self, selector: &str, kind: &'static str, lines: &str) {
        let name = selector.split('{').next().unwrap_or(selector);
        let histogram = ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end));
        let (name, kind) = match (kind, histogram) {
            ("counter", Some(base)) if name.contains("seconds") => {
                (base, if name.starts_with("http_server_requests") { "summary" } else { "histogram" })
            }
            // Exporters older than OpenMetrics have counters without the suffix; its word for those is `unknown`.
            ("counter", _) => name.strip_suffix("_total").map_or((name, "unknown"), |base| (base, "counter")),
            _ => (name, kind),
        };
        let family = self.families.entry(name.to_string()).or_default();
        family.kind = kind;
        family.lines.push_str(lines);
    }

    /// `per_minute` events of one wording between two minutes, by any of the service's pods.
    pub fn says(mut self, service: &str, level: &str, span: (f64, f64), per_minute: f64, message: &str) -> World {
        self.put_lines(service, level, span, per_minute, message);
        self
    }

    /// One event.
    pub fn line(mut self, service: &str, level: &str, minute: f64, message: &str) -> World {
        self.put_line(service, level, minute, message);
        self
    }

    pub fn put_lines(&mut self, service: &str, level: &str, span: (f64, f64), per_minute: f64, message: &str) {
        let mut minute = span.0;
        loop {
            minute += -(1.0 - self.rng.unit()).ln() / per_minute;
            if minute >= span.1 {
                return;
            }
            self.put_line(service, level, minute, message);
        }
    }

    fn put_line(&mut self, service: &str, level: &str, minute: f64, message: &str) {
        let known = self.services.iter().find(|known| known.name == service);
        let (format, pods) =
            known.map_or((server_format(service), vec![service.to_string()]), |s| (s.format, s.alive(minute)));
        self.put_line_as(format, service, &pods, level, minute, message);
    }

    /// For a service that is still being made.
    pub fn put_line_as(
        &mut self,
        format: Format,
        service: &str,
        pods: &[String],
        level: &str,
        minute: f64,
        message: &str,
    ) {
        if pods.is_empty() {
            return;
        }
        let pod = &pods[self.rng.below(pods.len() as u64) as usize];
        let message = fill(&mut self.rng, message);
        let at = self.time(minute);
        let number = self.rng.bits() >> 16;
        let line = Line { at, zone: &self.zone, level, service, pod, message: &message, number };
        let text = render(format, &line);
        self.logs.entry(format!("{service}/{pod}.log")).or_default().push((at, text));
    }

    /// `kind`: `deploy`, `config`, `scale` or `flag`.
    pub fn change(mut self, minute: f64, service: &str, kind: &str, summary: &str) -> World {
        let time = self.time(minute).to_string();
        self.changes.push((minute, json!({"time": time, "service": service, "kind": kind, "summary": summary})));
        self
    }

    /// A new revision of a deployment: the change, the replica sets and the event of it. The service's version is
    /// the new one.
    pub fn rollout(mut self, minute: f64, service: &'static str, before: &str, summary: &str) -> World {
        self.objects.rollouts.push((service, minute, before.to_string()));
        self.change(minute, service, "deploy", summary)
    }

    pub fn alert(mut self, alert: Alert) -> World {
        self.alert = Some(alert);
        self
    }

    /// What a diagnosis has to mention.
    pub fn mentions(mut self, texts: &[&'static str]) -> World {
        self.mentions.extend(texts);
        self
    }

    /// Writes the folder. `category` and `service` are what is expected, `neighbour` what must not be claimed.
    pub fn write(mut self, dir: &Path, category: &str, service: &str, neighbour: &str) -> io::Result<()> {
        self.ordinary_hosts();
        fs::create_dir_all(dir.join("metrics"))?;
        if let Some(alert) = &self.alert {
            fs::write(dir.join("alert.json"), alert.payload(&self))?;
        }
        fs::write(dir.join("incident.toml"), self.incident_toml(dir))?;
        let list = |texts: &[&str]| {
            format!("[{}]", texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", "))
        };
        let named = if service.is_empty() { String::new() } else { format!("service = {service:?}\n") };
        let expected = format!(
            "category = {category:?}\n{named}must_mention = {}\nmust_not_claim = {}\n",
            list(&self.mentions),
            list(&[neighbour])
        );
        fs::write(dir.join("expected.toml"), expected)?;
        self.write_metrics(dir)?;
        self.write_logs(dir)?;
        self.changes.sort_by(|left, right| left.0.total_cmp(&right.0));
        let changes: String = self.changes.iter().map(|(_, change)| format!("{change}\n")).collect();
        fs::write(dir.join("changes.jsonl"), changes)?;
        self.objects.write(&self, dir)
    }

    fn ordinary_hosts(&mut self) {
        if !self.objects.kubernetes {
            return;
        }
        for node in self.objects.nodes.clone() {
            if !self.objects.hosts.contains(&node) {
                Host::new(node).generate(self);
            }
        }
    }

    fn incident_toml(&self, dir: &Path) -> String {
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let now = self.now.to_zoned_datetime(self.zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        let mut text = format!("name = {name:?}\nnow = {now:?}\ntimezone = {:?}\n\n[topology]\n", self.zone_name);
        for (caller, callees) in &self.topology {
            let _ = writeln!(text, "{caller:?} = {callees:?}");
        }
        text
    }

    fn write_metrics(&self, dir: &Path) -> io::Result<()> {
        let (mut services, mut cluster) = (String::new(), String::new());
        for (name, family) in &self.families {
            let of_cluster = ["kube_", "node_", "container_"].iter().any(|prefix| name.starts_with(prefix));
            let file = if of_cluster { &mut cluster } else { &mut services };
            let _ = write!(file, "# TYPE {name} {}\n{}", family.kind, family.lines);
        }
        fs::write(dir.join("metrics/services.om"), services + "# EOF\n")?;
        fs::write(dir.join("metrics/cluster.om"), cluster + "# EOF\n")
    }

    fn write_logs(&mut self, dir: &Path) -> io::Result<()> {
        for (file, events) in &mut self.logs {
            events.sort_by_key(|event| event.0);
            let path = dir.join("logs").join(file);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let lines: Vec<&str> = events.iter().map(|(_, line)| line.as_str()).collect();
            fs::write(path, lines.join("\n") + "\n")?;
        }
        Ok(())
    }
}

fn push(lines: &mut String, selector: &str, value: f64, at: &str) {
    // Large values are whole in life (bytes, counts); small ones carry four digits.
    let _ = if value.fract() == 0.0 || value.abs() >= 1e6 {
        writeln!(lines, "{selector} {value:.0} {at}")
    } else {
        writeln!(lines, "{selector} {value:.4} {at}")
    };
}

/// Of a server that is not a service of the world: a database, or a daemon that writes to syslog.
fn server_format(name: &str) -> Format {
    match name.split('-').next() {
        Some("postgres") => Format::Postgres,
        Some("mysql") => Format::Mysql,
        _ => Format::Syslog,
    }
}

/// Fills the variable parts of a message: `{n}`, `{ms}`, `{long}`, `{hex}`, `{ip}`, `{uuid}`.
fn fill(rng: &mut Rng, message: &str) -> String {
    let mut text = String::with_capacity(message.len() + 16);
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, tail)) = after.split_once('}') else { break };
        let _ = match name {
            "n" => write!(text, "{}", rng.below(90_000) + 100),
            "ms" => write!(text, "{}", rng.below(85) + 4),
            "long" => write!(text, "{}", rng.below(7000) + 1500),
            "hex" => write!(text, "{:08x}", rng.bits() >> 32),
            "ip" => write!(text, "10.{}.{}.{}", rng.below(64), rng.below(4), rng.below(250) + 2),
            "uuid" => {
                let (high, low) = (rng.bits(), rng.bits());
                write!(
                    text,
                    "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
                    high >> 32,
                    high & 0xffff,
                    low & 0xfff,
                    high >> 20 & 0xfff,
                    low >> 16
                )
            }
            other => write!(text, "{{{other}}}"),
        };
        rest = tail;
    }
    text.push_str(rest);
    text
}
