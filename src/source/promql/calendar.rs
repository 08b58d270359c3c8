//! Functions that take a part of a date: seconds since 1970 in, a number out, all in UTC.

use jiff::{Timestamp, civil::DateTime, tz::Offset};

/// The date function of this name.
pub(super) fn function(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "minute" => |at| part(at, |date| f64::from(date.minute())),
        "hour" => |at| part(at, |date| f64::from(date.hour())),
        "day_of_week" => |at| part(at, |date| f64::from(date.weekday().to_sunday_zero_offset())),
        "day_of_month" => |at| part(at, |date| f64::from(date.day())),
        "day_of_year" => |at| part(at, |date| f64::from(date.day_of_year())),
        "days_in_month" => |at| part(at, |date| f64::from(date.days_in_month())),
        "month" => |at| part(at, |date| f64::from(date.month())),
        "year" => |at| part(at, |date| f64::from(date.year())),
        _ => return None,
    })
}

/// NaN for what is no date that a calendar knows.
fn part(seconds: f64, f: impl Fn(&DateTime) -> f64) -> f64 {
    if seconds.is_nan() {
        return f64::NAN;
    }
    // A cast saturates, and what is saturated is no date.
    Timestamp::from_second(seconds as i64).map_or(f64::NAN, |at| f(&Offset::UTC.to_datetime(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_date_are_in_utc() {
        // 2024-02-29T23:59:30Z, a Thursday.
        let at = 1_709_251_170.9;
        let names = ["minute", "hour", "day_of_week", "day_of_month", "day_of_year", "days_in_month", "month", "year"];
        assert_eq!(names.map(|name| function(name).unwrap()(at)), [59.0, 23.0, 4.0, 29.0, 60.0, 29.0, 2.0, 2024.0]);
        assert!(function("year").unwrap()(f64::INFINITY).is_nan());
    }
}
