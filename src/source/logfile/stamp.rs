//! Time stamps in text: bytes in, an instant and the place where it ends out.
//!
//! One hand-written scanner for every usual form, because it runs once for each line of every log. What a
//! stamp does not say (year, date, zone) is taken from the [`Clock`] and marked in [`Assumed`].

use std::cell::Cell;

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::TimeZone;

const SECONDS_PER_DAY: i64 = 86_400;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Epoch seconds that a bare number must lie between to be read as a time: 1990 to 2100.
const PLAUSIBLE_EPOCH: std::ops::Range<i64> = 631_152_000..4_102_444_800;
/// A log may run ahead of the reference clock by this much before a stamp without a year is put into the year before.
const CLOCK_SLACK_SECONDS: i64 = SECONDS_PER_DAY;

/// What a time stamp left open and the reader filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Assumed {
    pub date: bool,
    pub year: bool,
    pub zone: bool,
}

impl Assumed {
    /// Whether the stamp said everything itself.
    pub fn nothing(self) -> bool {
        self == Self::default()
    }
}

/// A time stamp found in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub at: Timestamp,
    pub assumed: Assumed,
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

/// The calendar fields of a stamp, as far as it gives them.
#[derive(Default, Clone, Copy)]
struct Fields {
    year: Option<i64>,
    /// `(month, day)`.
    date: Option<(i64, i64)>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: i64,
    /// Seconds east of UTC.
    offset: Option<i64>,
}

impl Fields {
    fn resolve(self, clock: &Clock) -> Option<Stamp> {
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
        Some(Stamp { at, assumed })
    }

    fn instant(&self, year: i64, month: i64, day: i64, clock: &Clock) -> Option<Timestamp> {
        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
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
    (end == text.len()).then_some(stamp).or_else(|| text.parse::<Timestamp>().ok().map(exact))
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
    Stamp { at, assumed: Assumed::default() }
}

/// How many digits stand at `from`, up to 20.
fn digits_at(text: &[u8], from: usize) -> usize {
    text[from..].iter().take(20).take_while(|c| c.is_ascii_digit()).count()
}

/// A cursor over the text of a stamp. Every method moves it on only when it succeeds, or fails for good.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn peek_after(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn eat(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn eat_any(&mut self, wanted: &[u8]) -> Option<u8> {
        let c = self.peek()?;
        wanted.contains(&c).then(|| {
            self.at += 1;
            c
        })
    }

    fn spaces(&mut self) -> Option<()> {
        self.eat(b' ')?;
        while self.eat(b' ').is_some() {}
        Some(())
    }

    /// A number of `min` to `max` digits.
    fn number(&mut self, min: usize, max: usize) -> Option<i64> {
        let mut value = 0;
        let mut count = 0;
        while count < max
            && let Some(c @ b'0'..=b'9') = self.peek()
        {
            // Nineteen digits may be more than the type holds; such a number is no time anyway.
            value = i64::saturating_add(i64::saturating_mul(value, 10), i64::from(c - b'0'));
            self.at += 1;
            count += 1;
        }
        (count >= min).then_some(value)
    }

    /// `2024-01-02T03:04:05.678Z` and its relatives with other separators; `2005-06-03-15.42.50.363779`.
    fn year_first(&mut self, clock: &Clock) -> Option<Stamp> {
        let year = self.number(4, 4)?;
        let separator = self.eat_any(b"-/.")?;
        let month = self.month()?;
        self.eat(separator)?;
        let day = self.number(1, 2)?;
        let mut fields = Fields { year: Some(year), date: Some((month, day)), ..Fields::default() };
        self.after_date(&mut fields)?;
        fields.resolve(clock)
    }

    fn month(&mut self) -> Option<i64> {
        if self.peek()?.is_ascii_digit() { self.number(1, 2) } else { self.month_name() }
    }

    /// What may stand between date and time, and the time itself.
    fn after_date(&mut self, fields: &mut Fields) -> Option<()> {
        let joint = self.eat_any(b"T t_:-,\t")?;
        if joint == b' ' || joint == b',' {
            while self.eat_any(b" ").is_some() {}
        }
        self.time(fields)
    }

    /// `20171223-22:15:29:606`, `20240102 030405`.
    fn compact_date(&mut self, clock: &Clock) -> Option<Stamp> {
        let year = self.number(4, 4)?;
        let month = self.number(2, 2)?;
        let day = self.number(2, 2)?;
        let mut fields = Fields { year: Some(year), date: Some((month, day)), ..Fields::default() };
        self.eat_any(b"-_ T")?;
        self.time_or_six_digits(&mut fields)?;
        fields.resolve(clock)
    }

    /// `20240102030405`.
    fn compact_date_time(&mut self, clock: &Clock) -> Option<Stamp> {
        let year = self.number(4, 4)?;
        let month = self.number(2, 2)?;
        let day = self.number(2, 2)?;
        let mut fields = Fields { year: Some(year), date: Some((month, day)), ..Fields::default() };
        self.six_digit_time(&mut fields)?;
        (1970..2100).contains(&year).then(|| fields.resolve(clock)).flatten()
    }

    /// `081109 203615`, `210126  3:45:57`.
    fn two_digit_compact(&mut self, clock: &Clock) -> Option<Stamp> {
        let year = self.number(2, 2)?;
        let month = self.number(2, 2)?;
        let day = self.number(2, 2)?;
        self.spaces()?;
        let mut fields = Fields { year: Some(full_year(year)), date: Some((month, day)), ..Fields::default() };
        self.time_or_six_digits(&mut fields)?;
        fields.resolve(clock)
    }

    fn time_or_six_digits(&mut self, fields: &mut Fields) -> Option<()> {
        if digits_at(self.text, self.at) == 6 {
            self.six_digit_time(fields)?;
            self.zone(fields);
            return Some(());
        }
        self.time(fields)
    }

    fn six_digit_time(&mut self, fields: &mut Fields) -> Option<()> {
        fields.hour = self.number(2, 2)?;
        fields.minute = self.number(2, 2)?;
        fields.second = self.number(2, 2)?;
        self.fraction(fields);
        Some(())
    }

    /// `1428634687123`, `1428634687.123`.
    fn epoch(&mut self) -> Option<Stamp> {
        let count = digits_at(self.text, self.at);
        let value = self.number(count, count)?;
        let mut fields = Fields::default();
        if count == 10 {
            self.fraction(&mut fields);
            return from_parts(value, fields.nanos);
        }
        from_integer(value)
    }

    /// Stamps that begin with one or two digits: day, month, short year or hour.
    fn short_number_first(&mut self, clock: &Clock) -> Option<Stamp> {
        let first = self.number(1, 2)?;
        let separator = self.eat_any(b"/-. :")?;
        if separator == b':' {
            return self.time_only(first, clock);
        }
        if separator == b' ' && self.peek() == Some(b' ') {
            return None;
        }
        let mut fields = Fields::default();
        if self.peek()?.is_ascii_alphabetic() {
            // `10/Oct/2000:13:55:36 -0700`, `02 Jan 2006 15:04:05 MST`.
            let month = self.month_name()?;
            self.eat_any(b"/- ")?;
            fields.year = Some(self.year()?);
            fields.date = Some((month, first));
            self.after_date(&mut fields)?;
            return fields.resolve(clock);
        }
        if separator == b' ' {
            return None;
        }
        let second = self.number(1, 2)?;
        if self.peek()? == separator {
            self.at += 1;
            let count = digits_at(self.text, self.at);
            let third = self.number(2, 4)?;
            self.after_date(&mut fields)?;
            (fields.year, fields.date) = order_of(first, second, third, count, separator, clock)?;
        } else {
            // `03-17 16:13:38.811`, `10.30 16:49:06`.
            self.spaces()?;
            fields.date = Some((first, second));
            self.time(&mut fields)?;
        }
        fields.resolve(clock)
    }

    fn time_only(&mut self, hour: i64, clock: &Clock) -> Option<Stamp> {
        let mut fields = Fields { hour, ..Fields::default() };
        fields.minute = self.number(2, 2)?;
        self.eat(b':')?;
        fields.second = self.number(2, 2)?;
        self.fraction(&mut fields);
        self.zone(&mut fields);
        fields.resolve(clock)
    }

    /// `Jan  2 03:04:05`, `Mon Jan 02 03:04:05.678 2006`, `Mon, 02 Jan 2006 15:04:05 GMT`, `I0102 03:04:05.678`.
    fn name_first(&mut self, clock: &Clock) -> Option<Stamp> {
        if matches!(self.peek()?, b'I' | b'W' | b'E' | b'F' | b'D') && digits_at(self.text, self.at + 1) >= 4 {
            return self.glog(clock);
        }
        if let Some(()) = self.weekday() {
            self.eat(b',');
            self.spaces()?;
            if self.peek()?.is_ascii_digit() {
                return self.short_number_first(clock);
            }
        }
        let month = self.month_name()?;
        self.spaces()?;
        let day = self.number(1, 2)?;
        self.eat(b',');
        self.spaces()?;
        let mut fields = Fields { date: Some((month, day)), ..Fields::default() };
        if digits_at(self.text, self.at) == 4 && self.peek_after(4) == Some(b' ') {
            fields.year = self.number(4, 4);
            self.spaces()?;
        }
        self.time(&mut fields)?;
        if fields.year.is_none() {
            self.trailing_year(&mut fields);
        }
        fields.resolve(clock)
    }

    /// `E0517 15:04:22.619632`: level, month and day; newer versions give the year too.
    fn glog(&mut self, clock: &Clock) -> Option<Stamp> {
        self.at += 1;
        let mut fields = Fields::default();
        match digits_at(self.text, self.at) {
            4 => {}
            8 => fields.year = Some(self.number(4, 4)?),
            _ => return None,
        }
        let month = self.number(2, 2)?;
        fields.date = Some((month, self.number(2, 2)?));
        self.eat(b' ')?;
        self.time(&mut fields)?;
        fields.resolve(clock)
    }

    /// The year that `ctime` puts at the end, perhaps after a zone.
    fn trailing_year(&mut self, fields: &mut Fields) {
        let ends = self.peek_after(5).is_none_or(|c| !c.is_ascii_alphanumeric() && c != b':' && c != b'.');
        if self.peek() == Some(b' ') && digits_at(self.text, self.at + 1) == 4 && ends {
            let year = self.text[self.at + 1..self.at + 5].iter().fold(0, |y, c| y * 10 + i64::from(c - b'0'));
            if (1970..2100).contains(&year) {
                fields.year = Some(year);
                self.at += 5;
            }
        }
    }

    fn year(&mut self) -> Option<i64> {
        match digits_at(self.text, self.at) {
            4 => self.number(4, 4),
            2 => self.number(2, 2).map(full_year),
            _ => None,
        }
    }

    fn month_name(&mut self) -> Option<i64> {
        let word = self.text.get(self.at..self.at + 3)?;
        let month = match &[word[0] | 0x20, word[1] | 0x20, word[2] | 0x20] {
            b"jan" => 1,
            b"feb" => 2,
            b"mar" => 3,
            b"apr" => 4,
            b"may" => 5,
            b"jun" => 6,
            b"jul" => 7,
            b"aug" => 8,
            b"sep" => 9,
            b"oct" => 10,
            b"nov" => 11,
            b"dec" => 12,
            _ => return None,
        };
        self.at += 3;
        while self.peek().is_some_and(|c| c.is_ascii_lowercase()) {
            self.at += 1;
        }
        Some(month)
    }

    fn weekday(&mut self) -> Option<()> {
        const NAMES: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
        let word = self.text.get(self.at..self.at + 3)?;
        NAMES.contains(&word).then_some(())?;
        self.at += 3;
        while self.peek().is_some_and(|c| c.is_ascii_lowercase()) {
            self.at += 1;
        }
        Some(())
    }

    /// `15:04[:05[.678]] [AM|PM] [zone]`; dots may stand for colons when all three parts are there.
    fn time(&mut self, fields: &mut Fields) -> Option<()> {
        fields.hour = self.number(1, 2)?;
        let separator = self.eat_any(b":.")?;
        fields.minute = self.number(1, 2)?;
        if self.peek() == Some(separator) && self.peek_after(1).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
            fields.second = self.number(1, 2)?;
            self.fraction(fields);
        } else if separator == b'.' {
            return None;
        }
        self.half_of_day(fields);
        self.zone(fields);
        Some(())
    }

    /// Digits after `.`, `,` or `:`, to nanoseconds; further ones are dropped.
    fn fraction(&mut self, fields: &mut Fields) {
        if !matches!(self.peek(), Some(b'.' | b',' | b':')) {
            return;
        }
        let count = digits_at(self.text, self.at + 1);
        if count == 0 {
            return;
        }
        if self.peek() == Some(b':') {
            // After a colon stand milliseconds, written without leading zeros.
            if count <= 3 && !matches!(self.peek_after(count + 1), Some(b':' | b'.')) {
                self.at += 1;
                fields.nanos = self.number(count, count).unwrap_or(0) * 1_000_000;
            }
            return;
        }
        self.at += 1;
        let mut nanos = 0;
        for index in 0..9 {
            let digit = if index < count { self.text[self.at + index] - b'0' } else { 0 };
            nanos = nanos * 10 + i64::from(digit);
        }
        fields.nanos = nanos;
        self.at += count;
    }

    fn half_of_day(&mut self, fields: &mut Fields) {
        let skip = usize::from(self.peek() == Some(b' '));
        let Some(word) = self.text.get(self.at + skip..self.at + skip + 2) else { return };
        if self.peek_after(skip + 2).is_some_and(|c| c.is_ascii_alphanumeric()) || !(1..=12).contains(&fields.hour) {
            return;
        }
        if word.eq_ignore_ascii_case(b"am") {
            fields.hour %= 12;
        } else if word.eq_ignore_ascii_case(b"pm") {
            fields.hour = fields.hour % 12 + 12;
        } else {
            return;
        }
        self.at += skip + 2;
    }

    /// `Z`, `+08:00`, ` +0800`, ` UTC`. Other abbreviations are ambiguous: they are passed over, the zone stays open.
    fn zone(&mut self, fields: &mut Fields) {
        match self.peek() {
            Some(b'Z' | b'z') if !self.peek_after(1).is_some_and(|c| c.is_ascii_alphanumeric()) => {
                fields.offset = Some(0);
                self.at += 1;
            }
            Some(b'+' | b'-') => self.numeric_zone(0, fields),
            Some(b' ') if matches!(self.peek_after(1), Some(b'+' | b'-')) => {
                // After a space only four digits or `hh:mm` are a zone: `- 5 retries` is text.
                self.numeric_zone(1, fields);
            }
            Some(b' ') => self.named_zone(fields),
            _ => {}
        }
    }

    fn numeric_zone(&mut self, skip: usize, fields: &mut Fields) {
        let sign = if self.text[self.at + skip] == b'-' { -1 } else { 1 };
        let mut ahead = Scan { text: self.text, at: self.at + skip + 1 };
        let count = digits_at(ahead.text, ahead.at);
        let parsed = match count {
            4 => ahead.number(2, 2).zip(ahead.number(2, 2)),
            2 if ahead.peek_after(2) == Some(b':') && digits_at(ahead.text, ahead.at + 3) == 2 => {
                let hours = ahead.number(2, 2);
                ahead.at += 1;
                hours.zip(ahead.number(2, 2))
            }
            2 if skip == 0 => ahead.number(2, 2).map(|hours| (hours, 0)),
            _ => None,
        };
        let Some((hours, minutes)) = parsed else { return };
        if hours <= 18 && minutes < 60 {
            fields.offset = Some(sign * (hours * 3600 + minutes * 60));
            self.at = ahead.at;
        }
    }

    fn named_zone(&mut self, fields: &mut Fields) {
        let rest = &self.text[self.at + 1..];
        let length = rest.iter().take_while(|c| c.is_ascii_uppercase()).count();
        if rest.get(length).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b':' || *c == b'_') {
            return;
        }
        match &rest[..length] {
            b"UTC" | b"GMT" | b"Z" => fields.offset = Some(0),
            b"EST" | b"EDT" | b"CST" | b"CDT" | b"MST" | b"MDT" | b"PST" | b"PDT" | b"CET" | b"CEST" | b"BST"
            | b"IST" | b"JST" | b"KST" | b"MSK" | b"HKT" | b"SGT" => {}
            _ => return,
        }
        self.at += 1 + length;
    }
}

/// Two-digit years: 69 and later are of the last century, as in POSIX `strptime`.
fn full_year(year: i64) -> i64 {
    if year >= 69 { 1900 + year } else { 2000 + year }
}

/// The year and `(month, day)` of `a/b/c`. Four digits are the year; of three short numbers the order is the
/// first of year-month-day, month-day-year and day-month-year that exists and does not lie ahead of the clock.
#[allow(clippy::type_complexity)]
fn order_of(
    a: i64,
    b: i64,
    c: i64,
    digits_of_c: usize,
    separator: u8,
    clock: &Clock,
) -> Option<(Option<i64>, Option<(i64, i64)>)> {
    let exists = |year: i64, month: i64, day: i64| {
        (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && days_from_civil(year, month, day) * SECONDS_PER_DAY <= clock.now.as_second() + CLOCK_SLACK_SECONDS
    };
    let orders: &[(i64, i64, i64)] = match (digits_of_c, separator) {
        (4, b'/') => &[(c, a, b), (c, b, a)],
        // Dots and dashes before a full year are European.
        (4, _) => &[(c, b, a), (c, a, b)],
        (2, _) => &[(full_year(a), b, c), (full_year(c), a, b), (full_year(c), b, a)],
        _ => return None,
    };
    let &(year, month, day) = orders.iter().find(|(y, m, d)| exists(*y, *m, *d)).or_else(|| orders.first())?;
    Some((Some(year), Some((month, day))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock::new("2026-03-04T06:45:00Z".parse().unwrap(), TimeZone::get("Asia/Shanghai").unwrap())
    }

    fn read(text: &str) -> Option<(String, usize)> {
        parse_at(text.as_bytes(), 0, &clock()).map(|(stamp, end)| (stamp.at.to_string(), end))
    }

    #[test]
    fn stamps_that_say_everything_are_read_exactly() {
        for (text, expected) in [
            ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
            ("2024-01-02T03:04:05.678901234+08:00", "2024-01-01T19:04:05.678901234Z"),
            ("2024-01-02 03:04:05,678 +0800", "2024-01-01T19:04:05.678Z"),
            ("2024-01-02 03:04:05.678 UTC", "2024-01-02T03:04:05.678Z"),
            ("2024/01/02 03:04:05 -0700", "2024-01-02T10:04:05Z"),
            ("10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
            ("Mon, 02 Jan 2006 15:04:05 GMT", "2006-01-02T15:04:05Z"),
            ("02 Jan 2006 15:04:05.250 GMT", "2006-01-02T15:04:05.25Z"),
            ("Mon Jan  2 15:04:05 UTC 2006", "2006-01-02T15:04:05Z"),
            ("1428634687", "2015-04-10T02:58:07Z"),
            ("1428634687.5", "2015-04-10T02:58:07.5Z"),
            ("1428634687123", "2015-04-10T02:58:07.123Z"),
            ("1428634687123456", "2015-04-10T02:58:07.123456Z"),
            ("1428634687123456789", "2015-04-10T02:58:07.123456789Z"),
        ] {
            let (stamp, end) = parse_at(text.as_bytes(), 0, &clock()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (stamp.at.to_string(), stamp.assumed, end),
                (expected.into(), Assumed::default(), text.len()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_a_stamp_leaves_open_comes_from_the_clock() {
        for (text, expected) in [
            ("2024-01-02 03:04:05", "2024-01-01T19:04:05Z"),
            ("2005-06-03-15.42.50.363779", "2005-06-03T07:42:50.363779Z"),
            ("20171223-22:15:29:606", "2017-12-23T14:15:29.606Z"),
            ("20171224-0:7:9:6", "2017-12-23T16:07:09.006Z"),
            ("20240102030405", "2024-01-01T19:04:05Z"),
            ("081109 203615", "2008-11-09T12:36:15Z"),
            ("210126  3:45:57", "2021-01-25T19:45:57Z"),
            ("17/06/09 20:10:40", "2017-06-09T12:10:40Z"),
            ("01/02/2024 03:04:05 PM", "2024-01-02T07:04:05Z"),
            ("31/12/2023 03:04:05", "2023-12-30T19:04:05Z"),
            ("02.01.2024 03:04:05", "2024-01-01T19:04:05Z"),
            ("03-02 16:13:38.811", "2026-03-02T08:13:38.811Z"),
            ("10.30 16:49:06", "2025-10-30T08:49:06Z"),
            ("Mar  4 14:30:00", "2026-03-04T06:30:00Z"),
            ("Dec 31 23:59:59", "2025-12-31T15:59:59Z"),
            ("Feb 29 10:00:00", "2024-02-29T02:00:00Z"),
            ("Sun Dec 04 04:47:44 2005", "2005-12-03T20:47:44Z"),
            ("E0517 15:04:22.619632", "2025-05-17T07:04:22.619632Z"),
            ("14:30:00.5", "2026-03-04T06:30:00.5Z"),
            ("23:30:00", "2026-03-03T15:30:00Z"),
        ] {
            let (stamp, end) = parse_at(text.as_bytes(), 0, &clock()).unwrap_or_else(|| panic!("{text}"));
            assert!(stamp.assumed.zone, "{text}");
            assert_eq!((stamp.at.to_string().as_str(), end), (expected, text.len()), "{text}");
        }
    }

    #[test]
    fn text_that_only_resembles_a_stamp_is_none() {
        for text in [
            "2024-01-02",
            "2024-13-02 03:04:05",
            "2024-02-30 03:04:05",
            "1234567890123456789012",
            "10.0.0.1 x",
            "42 errors",
            "Monday",
            "Mary had",
            "99:99:99",
            "2024-01-02T03:04:05Zulu",
            "5 - 6",
            "1.2.3.4:80",
            "0123456789",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_structured_logs_tell_their_unit_by_size() {
        assert_eq!(from_integer(1_745_532_517_537).unwrap().at.to_string(), "2025-04-24T22:08:37.537Z");
        assert_eq!(from_number(1_745_532_517.537).unwrap().at.to_string(), "2025-04-24T22:08:37.537Z");
        assert_eq!(from_integer(17), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            for from in 0..bytes.len() {
                if let Some((_, end)) = parse_at(&bytes, from, &clock()) {
                    assert!(from < end && end <= bytes.len());
                }
            }
        }

        #[test]
        fn stamp_like_text_is_survived(text in "[0-9A-Za-z:./, +-]{0,40}") {
            parse_at(text.as_bytes(), 0, &clock());
        }
    }
}
