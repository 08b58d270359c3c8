//! The scanner: a cursor that reads the usual forms of stamps.

use super::calendar::{Fields, NumericDate, PLAUSIBLE_YEARS, full_year};
use super::{Clock, Stamp, from_integer, from_parts};

/// How many digits stand at `from`, up to 20.
pub(super) fn digits_at(text: &[u8], from: usize) -> usize {
    text[from..].iter().take(20).take_while(|c| c.is_ascii_digit()).count()
}

/// A cursor over the text of a stamp. Every method moves it on only when it succeeds, or fails for good.
pub(super) struct Scan<'a> {
    pub text: &'a [u8],
    pub at: usize,
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
    pub fn year_first(&mut self, clock: &Clock) -> Option<Stamp> {
        let year = self.number(4, 4)?;
        let separator = self.eat_any(b"-/.")?;
        let month = self.month()?;
        self.eat(separator)?;
        let day = self.number(1, 2)?;
        let mut fields = Fields { year: Some(year), date: Some((month, day)), ..Fields::default() };
        self.after_date(&mut fields)?;
        Some(fields.resolve_surely(clock))
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
    pub fn compact_date(&mut self, clock: &Clock) -> Option<Stamp> {
        let year = self.number(4, 4)?;
        let month = self.number(2, 2)?;
        let day = self.number(2, 2)?;
        let mut fields = Fields { year: Some(year), date: Some((month, day)), ..Fields::default() };
        self.eat_any(b"-_ T")?;
        self.time_or_six_digits(&mut fields)?;
        // Eight digits of another kind may stand before a time.
        if PLAUSIBLE_YEARS.contains(&year) { Some(fields.resolve_surely(clock)) } else { None }
    }

    /// `20240102030405`.
    pub fn compact_date_time(&mut self, clock: &Clock) -> Option<Stamp> {
        let year = self.number(4, 4)?;
        let month = self.number(2, 2)?;
        let day = self.number(2, 2)?;
        let mut fields = Fields { year: Some(year), date: Some((month, day)), ..Fields::default() };
        self.six_digit_time(&mut fields)?;
        fields.resolve(clock)
    }

    /// `081109 203615`, `210126  3:45:57`.
    pub fn two_digit_compact(&mut self, clock: &Clock) -> Option<Stamp> {
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
    pub fn epoch(&mut self) -> Option<Stamp> {
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
    pub fn short_number_first(&mut self, clock: &Clock) -> Option<Stamp> {
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
            fields.date = Some((month, first));
            if separator == b' ' && digits_at(self.text, self.at) == 2 && self.peek_after(2) == Some(b':') {
                // `02 Jan 15:04:05`, without a year.
                self.time(&mut fields)?;
            } else {
                fields.year = Some(self.year()?);
                self.after_date(&mut fields)?;
            }
            return Some(fields.resolve_surely(clock));
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
            let date = NumericDate { numbers: (first, second, third), last_digits: count, separator };
            let (year, month_and_day) = date.in_order(clock)?;
            (fields.year, fields.date) = (Some(year), Some(month_and_day));
            if count == 4 {
                return Some(fields.resolve_surely(clock));
            }
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
    pub fn name_first(&mut self, clock: &Clock) -> Option<Stamp> {
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
        Some(fields.resolve_surely(clock))
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
            if PLAUSIBLE_YEARS.contains(&year) {
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
