//! From the calendar fields of a stamp to an instant: what they leave open is taken from the clock, what does not
//! exist is found out.

use jiff::Timestamp;

use super::{Assumed, Clock, Stamp};

const SECONDS_PER_DAY: i64 = 86_400;
/// A log may run ahead of the reference clock by this much before a stamp without a year is put into the year before.
const CLOCK_SLACK_SECONDS: i64 = SECONDS_PER_DAY;
/// Years that a log may be of; others come from clocks that were never set, and from fill values.
pub(super) const PLAUSIBLE_YEARS: std::ops::Range<i64> = 1970..2100;

/// The calendar fields of a stamp, as far as it gives them.
#[derive(Default, Clone, Copy)]
pub(super) struct Fields {
    pub year: Option<i64>,
    /// `(month, day)`.
    pub date: Option<(i64, i64)>,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub nanos: i64,
    /// Seconds east of UTC.
    pub offset: Option<i64>,
}

impl Fields {
    /// The stamp; `None` when there is no such date or time.
    pub fn resolve(self, clock: &Clock) -> Option<Stamp> {
        if self.hour > 23 || self.minute > 59 || self.second > 60 {
            return None;
        }
        let mut assumed = Assumed { zone: self.offset.is_none(), ..Assumed::default() };
        let at = match (self.year, self.date) {
            (Some(year), Some((month, day))) => self.instant(year, month, day, clock)?,
            (_, None) => {
                assumed.date = true;
                self.on_reference_date(clock)?
            }
            (None, Some((month, day))) => {
                assumed.year = true;
                self.in_reference_year(month, day, clock)?
            }
        };
        Some(Stamp { at: Some(at), assumed })
    }

    /// As [`Self::resolve`] for text that can be nothing but a stamp: one that does not exist is one without a time.
    pub fn resolve_surely(self, clock: &Clock) -> Stamp {
        let assumed = Assumed { date: self.date.is_none(), year: self.year.is_none(), zone: self.offset.is_none() };
        self.resolve(clock).unwrap_or(Stamp { at: None, assumed })
    }

    fn instant(&self, year: i64, month: i64, day: i64, clock: &Clock) -> Option<Timestamp> {
        let exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        if !exists || !PLAUSIBLE_YEARS.contains(&year) {
            return None;
        }
        let (cached_date, cached_days) = clock.cached_days.get();
        let days = if cached_date == (year, month, day) { cached_days } else { days_from_civil(year, month, day) };
        clock.cached_days.set(((year, month, day), days));
        let civil = days * SECONDS_PER_DAY + self.hour * 3600 + self.minute * 60 + self.second.min(59);
        let offset = self.offset.unwrap_or_else(|| clock.offset_of(civil));
        // The nanoseconds are below one second, so the cast keeps them.
        Timestamp::new(civil - offset, self.nanos as i32).ok()
    }

    /// The latest year in which this date exists and does not lie ahead of the reference clock.
    fn in_reference_year(&self, month: i64, day: i64, clock: &Clock) -> Option<Timestamp> {
        let this_year = i64::from(clock.today.year());
        let latest = clock.now.as_second() + CLOCK_SLACK_SECONDS;
        let (cached_month, cached_day, year) = clock.cached_year.get();
        if (cached_month, cached_day) == (month, day)
            && let Some(at) = self.instant(year, month, day, clock)
            // The day of the clock itself lies partly ahead of it.
            && at.as_second() <= latest - 2 * SECONDS_PER_DAY
        {
            return Some(at);
        }
        (this_year - 8..=this_year + 1).rev().find_map(|year| {
            // No offset is as long as a day, and looking one up is not free.
            if days_from_civil(year, month, day) * SECONDS_PER_DAY > latest + SECONDS_PER_DAY {
                return None;
            }
            let at = self.instant(year, month, day, clock)?;
            (at.as_second() <= latest).then(|| {
                clock.cached_year.set((month, day, year));
                at
            })
        })
    }

    /// A time of day without a date: today by the reference clock, or yesterday when that lies ahead of it.
    fn on_reference_date(&self, clock: &Clock) -> Option<Timestamp> {
        let today = clock.today;
        let at = self.instant(i64::from(today.year()), i64::from(today.month()), i64::from(today.day()), clock)?;
        if at.as_second() > clock.now.as_second() + 3600 {
            return Timestamp::new(at.as_second() - SECONDS_PER_DAY, at.subsec_nanosecond()).ok();
        }
        Some(at)
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible date algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Two-digit years: 69 and later are of the last century, as in POSIX `strptime`.
pub(super) fn full_year(year: i64) -> i64 {
    if year >= 69 { 1900 + year } else { 2000 + year }
}

/// Three numbers between which stands `separator`, the last of so many digits.
#[derive(Clone, Copy)]
pub(super) struct NumericDate {
    pub numbers: (i64, i64, i64),
    pub last_digits: usize,
    pub separator: u8,
}

impl NumericDate {
    /// Year, and month with day. Four digits are the year; of three short numbers the order is the first of
    /// year-month-day, month-day-year and day-month-year that exists and does not lie ahead of the clock.
    pub fn in_order(self, clock: &Clock) -> Option<(i64, (i64, i64))> {
        let (a, b, c) = self.numbers;
        let exists = |year: i64, month: i64, day: i64| {
            (1..=12).contains(&month)
                && (1..=days_in_month(year, month)).contains(&day)
                && days_from_civil(year, month, day) * SECONDS_PER_DAY <= clock.now.as_second() + CLOCK_SLACK_SECONDS
        };
        let orders: &[(i64, i64, i64)] = match (self.last_digits, self.separator) {
            (4, b'/') => &[(c, a, b), (c, b, a)],
            // Dots and dashes before a full year are European.
            (4, _) => &[(c, b, a), (c, a, b)],
            (2, _) => &[(full_year(a), b, c), (full_year(c), a, b), (full_year(c), b, a)],
            _ => return None,
        };
        let &(year, month, day) = orders.iter().find(|(y, m, d)| exists(*y, *m, *d)).or_else(|| orders.first())?;
        Some((year, (month, day)))
    }
}
