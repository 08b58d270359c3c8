//! Spans of wall-clock time. All instants are UTC (`jiff::Timestamp`); zones appear only where a human reads.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A closed interval `[start, end]` of wall-clock time; `start <= end` always holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    #[schemars(with = "String")]
    pub start: Timestamp,
    #[schemars(with = "String")]
    pub end: Timestamp,
}

impl Window {
    /// The interval between two instants, in either order.
    pub fn new(a: Timestamp, b: Timestamp) -> Self {
        Self { start: a.min(b), end: a.max(b) }
    }

    /// The interval of length `span` that ends at `end`. An instant before year -9999 is clamped.
    pub fn ending_at(end: Timestamp, span: SignedDuration) -> Self {
        Self::new(end.checked_sub(span).unwrap_or(Timestamp::MIN), end)
    }

    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at <= self.end
    }

    pub fn duration(&self) -> SignedDuration {
        self.end.duration_since(self.start)
    }

    /// The interval of the same length directly before this one.
    pub fn before(&self) -> Self {
        Self::ending_at(self.start, self.duration())
    }
}
