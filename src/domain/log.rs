//! Log events and the patterns mined from them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Severity of a log event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Fatal,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Fatal => "fatal",
        }
    }
}

/// One event of a log, with its continuation lines (a stack trace belongs to the message above it).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogEvent {
    /// The one time field, whatever the log called it. `None` when the line carries no time.
    #[serde(rename = "log_time")]
    pub at: Option<Timestamp>,
    pub level: Option<Level>,
    pub service: Option<String>,
    /// Pod, host or instance, where the line or its path names one.
    pub instance: Option<String>,
    /// The message without the header (time, level, process, logger); continuation lines follow after `\n`.
    pub message: String,
    /// First physical line in its file, from 1, and how many lines the event spans.
    pub line: u64,
    pub lines: u32,
}

/// A template with what was counted of it in one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogPattern {
    /// Stable within one answer: `P1` is the most frequent.
    pub id: String,
    pub level: Option<Level>,
    pub service: Option<String>,
    pub count: u64,
    /// Count in the window of equal length before; `None` when nothing of that time was read.
    pub before: Option<u64>,
    #[schemars(with = "Option<String>")]
    pub first: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub last: Option<Timestamp>,
    /// The message with its variable parts as `<*>`.
    pub template: String,
    /// One event's message as it stands in the log.
    pub sample: String,
    /// Counts in equal slices of the window (24), for a sparkline.
    pub histogram: Vec<u64>,
    /// Instances that logged it, with counts, at most 8.
    pub instances: BTreeMap<String, u64>,
}

/// How much was logged, by level: the denominator for every pattern.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LogVolume {
    /// The service asked for; `None` for all.
    pub service: Option<String>,
    pub events: u64,
    #[schemars(with = "Option<String>")]
    pub first: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub last: Option<Timestamp>,
    /// Keys: level names, and `none`.
    pub levels: BTreeMap<String, u64>,
    /// Distinct patterns, of which the most telling ones are given.
    pub patterns: usize,
}
