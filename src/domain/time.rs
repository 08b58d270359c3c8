//! Spans of wall-clock time. All instants are UTC (`jiff::Timestamp`); zones appear only where a human reads.

use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A zone by its name in the IANA database, or by a fixed offset such as `+08:00`.
pub fn zone_named(name: &str) -> Option<TimeZone> {
    if let Ok(zone) = TimeZone::get(name) {
        return Some(zone);
    }
    let signed = name.strip_prefix("UTC").unwrap_or(name);
    let instant = format!("2000-01-01T00:00:00{signed}");
    let pieces = Pieces::parse(&instant).ok()?;
    pieces.to_numeric_offset().map(TimeZone::fixed)
}

/// What [`zone_named`] reads: the zone's name, or its offset at that time where it has none.
pub fn zone_name(zone: &TimeZone, at: Timestamp) -> String {
    match zone.iana_name() {
        Some(name) => name.to_owned(),
        None => at.to_zoned_datetime(zone.clone()).strftime("%:z").to_string(),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_found_again_by_what_it_is_called() {
        let at: Timestamp = "2026-03-04T06:45:00Z".parse().unwrap();
        for (name, told) in [("Asia/Shanghai", "Asia/Shanghai"), ("UTC+05:30", "+05:30"), ("UTC", "UTC")] {
            let zone = zone_named(name).unwrap();
            assert_eq!((zone_name(&zone, at).as_str(), zone_named(told)), (told, Some(zone)));
        }
        assert_eq!(zone_named("Mars/Olympus"), None);
    }
}
