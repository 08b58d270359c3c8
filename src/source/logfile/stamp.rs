//! Time stamps in text: bytes in, an instant and the place where it ends out.
//!
//! One hand-written scanner for every usual form, because it runs once for each line of every log. What a
//! stamp does not say (year, date, zone) is taken from the [`Clock`] and marked in [`Assumed`]. Here: what the other
//! parsers see, and numbers; `scan` reads the text, `calendar` makes an instant of what it read.

mod calendar;
mod scan;

use std::cell::Cell;

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::TimeZone;

use scan::{Scan, digits_at};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Epoch seconds that a number must lie between to be read as a time: 1990 to 2100.
const PLAUSIBLE_EPOCH: std::ops::Range<i64> = 631_152_000..4_102_444_800;

/// What a time stamp left open and the reader filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Assumed {
    pub date: bool,
    pub year: bool,
    pub zone: bool,
}

/// A time stamp found in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// `None` for a date or a time that does not exist (30 February, hour 25) or that no log is of (the year 9999):
    /// it is a stamp all the same, so its line begins an event.
    pub at: Option<Timestamp>,
    pub assumed: Assumed,
}

impl Stamp {
    /// Whether it is a time, and said everything itself.
    pub fn is_exact(self) -> bool {
        self.at.is_some() && self.assumed == Assumed::default()
    }
}

/// The reference for what stamps leave open.
#[derive(Debug, Clone)]
pub struct Clock {
    now: Timestamp,
    /// The local date of `now` in `zone`.
    today: civil::Date,
    zone: TimeZone,
    /// The offset of the zone, where it has but one.
    fixed_offset: Option<i64>,
    /// The last offset looked up, with the civil hour that it holds for: looking one up for each line is slow.
    cached_offset: Cell<(i64, i64)>,
    /// The last date without a year, with the year that it was found to be of.
    cached_year: Cell<(i64, i64, i64)>,
    /// The last date, with its days since 1970.
    cached_days: Cell<((i64, i64, i64), i64)>,
}

impl Clock {
    pub fn new(now: Timestamp, zone: TimeZone) -> Self {
        let today = now.to_zoned_datetime(zone.clone()).date();
        let fixed_offset = zone.to_fixed_offset().ok().map(|offset| i64::from(offset.seconds()));
        Self {
            now,
            today,
            zone,
            fixed_offset,
            cached_offset: Cell::new((i64::MIN, 0)),
            cached_year: Cell::default(),
            cached_days: Cell::default(),
        }
    }

    /// The offset in seconds of local time `civil_seconds` (seconds since 1970-01-01 00:00 local).
    fn offset_of(&self, civil_seconds: i64) -> i64 {
        if let Some(offset) = self.fixed_offset {
            return offset;
        }
        let hour = civil_seconds.div_euclid(3600);
        let (cached_hour, offset) = self.cached_offset.get();
        if cached_hour == hour {
            return offset;
        }
        let offset = Timestamp::from_second(civil_seconds)
            .ok()
            .map(|as_utc| TimeZone::UTC.to_datetime(as_utc))
            .and_then(|local| self.zone.to_ambiguous_zoned_datetime(local).compatible().ok())
            .map_or(0, |zoned| i64::from(zoned.offset().seconds()));
        self.cached_offset.set((hour, offset));
        offset
    }
}

/// The stamp that starts at `from`, and where it ends.
pub fn parse_at(text: &[u8], from: usize, clock: &Clock) -> Option<(Stamp, usize)> {
    let mut scan = Scan { text, at: from };
    let first = *text.get(from)?;
    let stamp = if first.is_ascii_digit() {
        match digits_at(text, from) {
            4 => scan.year_first(clock),
            8 => scan.compact_date(clock),
            14 => scan.compact_date_time(clock),
            6 => scan.two_digit_compact(clock),
            10 | 13 | 16 | 19 => scan.epoch(),
            1 | 2 => scan.short_number_first(clock),
            _ => None,
        }
    } else if first.is_ascii_alphabetic() {
        scan.name_first(clock)
    } else {
        None
    }?;
    // A stamp ends where a word ends: `2024-01-02` within a file name or an identifier is none.
    let ends = text.get(scan.at).is_none_or(|c| !c.is_ascii_alphanumeric() && *c != b'_');
    ends.then_some((stamp, scan.at))
}

/// A stamp that is the whole text, as in a field of a structured log.
pub fn parse_text(text: &str, clock: &Clock) -> Option<Stamp> {
    let text = text.trim();
    let (stamp, end) = parse_at(text.as_bytes(), 0, clock)?;
    let other = || text.parse().ok().filter(|at: &Timestamp| PLAUSIBLE_EPOCH.contains(&at.as_second())).map(exact);
    (end == text.len()).then_some(stamp).or_else(other)
}

/// An epoch number of a structured log; the unit is told by its size.
pub fn from_number(number: f64) -> Option<Stamp> {
    let seconds_per_unit = match number.abs() {
        n if n < 1e11 => 1.0,
        n if n < 1e14 => 1e-3,
        n if n < 1e17 => 1e-6,
        _ => 1e-9,
    };
    let seconds = number * seconds_per_unit;
    if !PLAUSIBLE_EPOCH.contains(&(seconds as i64)) {
        return None;
    }
    // A double holds present-day seconds to about 0.2 us; more digits would be noise.
    let micros = (seconds * 1e6).round() as i64;
    Timestamp::from_microsecond(micros).ok().map(exact)
}

/// An epoch integer, exact down to its last digit.
pub fn from_integer(number: i64) -> Option<Stamp> {
    let at = match number.unsigned_abs() {
        n if n < 100_000_000_000 => Timestamp::from_second(number),
        n if n < 100_000_000_000_000 => Timestamp::from_millisecond(number),
        n if n < 100_000_000_000_000_000 => Timestamp::from_microsecond(number),
        _ => Timestamp::from_nanosecond(i128::from(number)),
    };
    at.ok().filter(|at| PLAUSIBLE_EPOCH.contains(&at.as_second())).map(exact)
}

/// Seconds with nanoseconds beside them.
pub fn from_parts(seconds: i64, nanos: i64) -> Option<Stamp> {
    let nanos = i32::try_from(nanos).ok().filter(|n| (0..NANOS_PER_SECOND as i32).contains(n))?;
    PLAUSIBLE_EPOCH.contains(&seconds).then(|| Timestamp::new(seconds, nanos).ok().map(exact)).flatten()
}

fn exact(at: Timestamp) -> Stamp {
    Stamp { at: Some(at), assumed: Assumed::default() }
}

#[cfg(test)]
mod tests;
