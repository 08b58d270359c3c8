//! One log event as text, in the format of the library that would have written it.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use serde_json::json;

#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    /// Spring Boot's console pattern, local time.
    Logback,
    /// `log4j2` with the thread in brackets, local time with a comma.
    Log4j,
    /// Node's pino: numbers for levels, epoch milliseconds.
    Pino,
    /// Node's winston with its JSON format.
    Winston,
    /// Go's zap in production: `ts` in epoch seconds.
    Zap,
    /// Go's logfmt.
    Logfmt,
    /// Kubernetes' klog: no year.
    Klog,
    /// Python's `logging`.
    Python,
    /// gunicorn's and structlog's JSON with `event`.
    Structlog,
    /// .NET's simple console formatter on one line, with a time stamp.
    DotNet,
    /// Serilog's compact JSON (`@t`, `@l`, `@mt`).
    Serilog,
    /// Rust's `tracing-subscriber`.
    Tracing,
    /// nginx' error log.
    Nginx,
    /// RFC 3164 syslog: no year, local time.
    Syslog,
    /// Docker's JSON file, with a plain text line inside.
    Docker,
    Postgres,
    Mysql,
    Redis,
    Kafka,
}

/// What a line says, before it has a format.
pub struct Line<'a> {
    pub at: Timestamp,
    pub zone: &'a TimeZone,
    /// `debug`, `info`, `warn`, `error` or `fatal`.
    pub level: &'a str,
    pub service: &'a str,
    pub pod: &'a str,
    pub message: &'a str,
    pub number: u64,
}

pub fn render(format: Format, line: &Line) -> String {
    let local = line.at.to_zoned_datetime(line.zone.clone());
    let upper = line.level.to_uppercase();
    match format {
        Format::Zap | Format::Pino | Format::Winston | Format::Structlog | Format::Serilog | Format::Docker => {
            json_text(format, line, &upper)
        }
        Format::Postgres | Format::Mysql | Format::Redis | Format::Kafka | Format::Nginx | Format::Syslog => {
            server_text(format, line, &local, &upper)
        }
        _ => library_text(format, line, &local, &upper),
    }
}

fn stamp(local: &ZonedDateTime, form: &str) -> String {
    local.strftime(form).to_string()
}

fn library_text(format: Format, line: &Line, local: &ZonedDateTime, upper: &str) -> String {
    let (service, message, number) = (line.service, line.message, line.number);
    let class = service.replace('-', ".");
    match format {
        Format::Logback => {
            let time = stamp(local, "%Y-%m-%d %H:%M:%S%.3f");
            format!("{time} {upper:>5} 1 --- [nio-8080-exec-{}] c.e.{class:<34} : {message}", number % 40 + 1)
        }
        Format::Log4j => {
            let time = stamp(local, "%Y-%m-%d %H:%M:%S,%3f");
            format!("{time} [http-worker-{}] {upper:<5} com.example.{class}.Service - {message}", number % 64)
        }
        Format::Logfmt => {
            let quoted = serde_json::Value::from(message);
            format!("time={:.3} level={} service={service} msg={quoted} trace_id={number:016x}", line.at, line.level)
        }
        Format::Klog => {
            let letter = upper.chars().next().unwrap_or('I');
            format!("{letter}{}       1 server.go:{}] {message}", stamp(local, "%m%d %H:%M:%S%.6f"), number % 900 + 20)
        }
        Format::Python => {
            let level = if line.level == "warn" { "WARNING" } else { upper };
            format!("{} {level} [{class}] {message}", stamp(local, "%Y-%m-%d %H:%M:%S,%3f"))
        }
        Format::DotNet => {
            let level = match line.level {
                "error" => "fail",
                "fatal" => "crit",
                other => other,
            };
            format!("{}{level}: {class}.Handler[{}] {message}", stamp(local, "%Y-%m-%dT%H:%M:%S%.3f%:z "), number % 30)
        }
        _ => format!("{:.6} {upper:>5} {}::handler: {message}", line.at, service.replace('-', "_")),
    }
}

fn json_text(format: Format, line: &Line, upper: &str) -> String {
    let (service, message, pod) = (line.service, line.message, line.pod);
    let millis = line.at.as_millisecond();
    let level = match line.level {
        "debug" => 20,
        "info" => 30,
        "warn" => 40,
        "error" => 50,
        _ => 60,
    };
    let value = match format {
        Format::Pino => {
            json!({"level": level, "time": millis, "pid": 1, "hostname": pod, "name": service, "msg": message})
        }
        Format::Winston => {
            json!({"level": line.level, "message": message, "service": service, "timestamp": format!("{:.3}", line.at)})
        }
        Format::Zap => {
            json!({"level": line.level, "ts": millis as f64 / 1000.0, "caller": "server/handler.go:118", "msg": message, "service": service})
        }
        Format::Structlog => {
            json!({"event": message, "level": line.level, "logger": service, "timestamp": format!("{:.6}", line.at)})
        }
        Format::Serilog => {
            let level = match line.level {
                "warn" => "Warning",
                "error" => "Error",
                "fatal" => "Fatal",
                _ => "Information",
            };
            json!({"@t": format!("{:.7}", line.at), "@l": level, "@mt": message, "Application": service})
        }
        _ => json!({"log": format!("{upper} {message}\n"), "stream": "stderr", "time": format!("{:.9}", line.at)}),
    };
    value.to_string()
}

fn server_text(format: Format, line: &Line, local: &ZonedDateTime, upper: &str) -> String {
    let (message, number) = (line.message, line.number);
    match format {
        Format::Nginx => {
            format!("{} [{}] 29#29: *{number} {message}", stamp(local, "%Y/%m/%d %H:%M:%S"), line.level)
        }
        Format::Syslog => {
            format!(
                "{} {} {}[{}]: {message}",
                stamp(local, "%b %e %H:%M:%S"),
                line.pod,
                line.service,
                number % 30_000 + 400
            )
        }
        Format::Postgres => {
            let level = match line.level {
                "info" => "LOG",
                "warn" => "WARNING",
                _ => upper,
            };
            format!(
                "{} UTC [{}] app@main {level}:  {message}",
                line.at.strftime("%Y-%m-%d %H:%M:%S%.3f"),
                number % 9000 + 100
            )
        }
        Format::Mysql => {
            let level = match line.level {
                "info" => "Note",
                "warn" => "Warning",
                _ => "ERROR",
            };
            format!("{:.6} {} [{level}] [MY-01{:04}] [Server] {message}", line.at, number % 800, number % 10_000)
        }
        Format::Redis => {
            let mark = if line.level == "info" { '*' } else { '#' };
            format!("1:M {} {mark} {message}", stamp(local, "%d %b %Y %H:%M:%S%.3f"))
        }
        _ => format!("[{}] {upper} {message} (kafka.server)", stamp(local, "%Y-%m-%d %H:%M:%S,%3f")),
    }
}
