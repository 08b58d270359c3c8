//! One line of OpenMetrics or classic Prometheus text: bytes in, a [`Line`] or the reason why it is none out.
//!
//! Both formats are read by one grammar, because files in the wild mix them: blanks may stand between all
//! parts, an exemplar may follow the sample, and a quoted metric name may stand inside the braces.

use std::collections::BTreeMap;

/// Label names and values of a series; the metric name is the label `__name__`.
pub type Labels = BTreeMap<String, String>;

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    /// Nothing, or a comment without meaning.
    Empty,
    /// `# TYPE name text`, `# HELP name text`, `# UNIT name text`.
    Metadata {
        kind: MetadataKind,
        family: String,
        text: String,
    },
    /// `# EOF`.
    End,
    Sample(SampleLine<'a>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum MetadataKind {
    Type,
    Help,
    Unit,
}

/// A sample before its labels are understood: most lines repeat the series of an earlier line byte for byte.
#[derive(Debug, PartialEq)]
pub(super) struct SampleLine<'a> {
    /// Name and labels as they are written.
    pub series: &'a [u8],
    pub value: f64,
    pub time: Time,
}

/// The time stamp of a sample, in the unit in which it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Time {
    Missing,
    /// Milliseconds since 1970, from a number of seconds (OpenMetrics).
    Seconds(i64),
    /// Milliseconds since 1970, written so (classic Prometheus text).
    Milliseconds(i64),
}

/// Why a line is no sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineError {
    /// From 1, in bytes.
    pub column: usize,
    pub expected: &'static str,
    pub found: String,
}

/// From this number on an integer time stamp is taken as milliseconds: as seconds it would lie after the year
/// 5138, as milliseconds in March 1973, so that no file of real life is misread.
const MILLISECONDS_FROM: u64 = 100_000_000_000;

/// The bit pattern by which Prometheus marks that a series has ended.
pub(crate) const STALE_MARKER: u64 = 0x7ff0_0000_0000_0002;

/// The last instant that `jiff::Timestamp` can hold, in milliseconds; the first lies farther from 1970.
const MAX_MILLISECONDS: u64 = 253_402_207_200_000;

/// Characters of the offending text that an error repeats.
const FOUND_CHARS: usize = 24;

/// Reads one line without its line feed. `likely` is the series that this line probably repeats.
pub(super) fn parse_line<'a>(line: &'a [u8], likely: Option<&[u8]>) -> Result<Line<'a>, LineError> {
    let line = line.trim_ascii_end();
    let start = skip_blanks(line, 0);
    match line.get(start) {
        None => Ok(Line::Empty),
        Some(b'#') => Ok(parse_comment(&line[start..])),
        Some(_) => {
            let end = match likely {
                Some(series) if repeats(&line[start..], series) => start + series.len(),
                _ => series_end(line, start)?,
            };
            parse_sample(line, start, end).map(Line::Sample)
        }
    }
}

/// Whether the line begins with exactly this series: what follows must be neither more name nor labels.
fn repeats(line: &[u8], series: &[u8]) -> bool {
    line.starts_with(series)
        && matches!(line.get(series.len()), Some(b' ' | b'\t'))
        && line.get(skip_blanks(line, series.len())) != Some(&b'{')
}

fn parse_comment<'a>(line: &[u8]) -> Line<'a> {
    let text = String::from_utf8_lossy(line);
    let words = text[1..].trim_start();
    if words == "EOF" {
        return Line::End;
    }
    let Some((keyword, rest)) = words.split_once([' ', '\t']) else { return Line::Empty };
    let kind = match keyword {
        "TYPE" => MetadataKind::Type,
        "HELP" => MetadataKind::Help,
        "UNIT" => MetadataKind::Unit,
        _ => return Line::Empty,
    };
    let rest = rest.trim_start();
    let (family, text) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    let family = family.trim_matches('"').to_owned();
    if family.is_empty() {
        return Line::Empty;
    }
    Line::Metadata { kind, family, text: unescape(text.trim_start().as_bytes()) }
}

/// Where name and labels end; checks nothing but quotes and the closing brace.
fn series_end(line: &[u8], start: usize) -> Result<usize, LineError> {
    let name_end = start + line[start..].iter().take_while(|&&byte| is_name_byte(byte)).count();
    let brace = skip_blanks(line, name_end);
    if line.get(brace) != Some(&b'{') {
        return if name_end > start { Ok(name_end) } else { Err(error(line, start, "a metric name")) };
    }
    let mut at = brace + 1;
    loop {
        match line.get(at) {
            None => return Err(error(line, line.len(), "`}` after the labels")),
            Some(b'}') => return Ok(at + 1),
            Some(b'"') => at = quoted_end(line, at)?,
            Some(_) => at += 1,
        }
    }
}

/// The place after the closing quote of the text that opens at `open`.
fn quoted_end(line: &[u8], open: usize) -> Result<usize, LineError> {
    let mut at = open + 1;
    loop {
        match line.get(at) {
            None => return Err(error(line, open, "a closing `\"` for this quote")),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

fn parse_sample(line: &[u8], start: usize, end: usize) -> Result<SampleLine<'_>, LineError> {
    let value_start = skip_blanks(line, end);
    let value_token = token_at(line, value_start);
    let value = parse_value(value_token).ok_or_else(|| error(line, value_start, "a number after the series"))?;
    let time_start = skip_blanks(line, value_start + value_token.len());
    let time_token = token_at(line, time_start);
    let time = match time_token.first() {
        None | Some(b'#') => Time::Missing,
        Some(_) => parse_time(time_token).ok_or_else(|| error(line, time_start, "a time stamp after the value"))?,
    };
    let rest = if time == Time::Missing { time_start } else { skip_blanks(line, time_start + time_token.len()) };
    match line.get(rest) {
        // An exemplar (`# {trace_id="…"} value time`) says nothing about the series.
        None | Some(b'#') => Ok(SampleLine { series: &line[start..end], value, time }),
        Some(_) => Err(error(line, rest, "the end of the line")),
    }
}

fn parse_value(token: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(token).ok()?;
    if text.eq_ignore_ascii_case("stalenan") {
        return Some(f64::from_bits(STALE_MARKER));
    }
    text.parse().ok()
}

fn parse_time(token: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(token).ok()?;
    if let Ok(number) = text.parse::<i64>() {
        return match number.unsigned_abs() {
            0..MILLISECONDS_FROM => Some(Time::Seconds(number * 1000)),
            MILLISECONDS_FROM..=MAX_MILLISECONDS => Some(Time::Milliseconds(number)),
            _ => None,
        };
    }
    let seconds: f64 = text.parse().ok()?;
    let milliseconds = (seconds * 1000.0).round();
    (milliseconds.abs() <= MAX_MILLISECONDS as f64).then_some(Time::Seconds(milliseconds as i64))
}

/// Reads name and labels of a series as [`SampleLine::series`] holds it. A label with an empty value is, as in
/// Prometheus, no label.
pub(super) fn parse_series(series: &[u8]) -> Result<Labels, LineError> {
    let name_end = series.iter().take_while(|&&byte| is_name_byte(byte)).count();
    let mut labels = Labels::new();
    if name_end > 0 {
        if series[0].is_ascii_digit() {
            return Err(error(series, 0, "a metric name"));
        }
        labels.insert("__name__".to_owned(), String::from_utf8_lossy(&series[..name_end]).into_owned());
    }
    let mut at = skip_blanks(series, name_end);
    if series.get(at) == Some(&b'{') {
        at += 1;
        loop {
            at = skip_blanks(series, at);
            match series.get(at) {
                Some(b'}') => break,
                _ => at = parse_label(series, at, &mut labels)?,
            }
            at = skip_blanks(series, at);
            match series.get(at) {
                Some(b',') => at += 1,
                Some(b'}') => break,
                _ => return Err(error(series, at, "`,` or `}` after a label")),
            }
        }
    }
    if !labels.contains_key("__name__") {
        return Err(error(series, 0, "a metric name"));
    }
    labels.retain(|_, value| !value.is_empty());
    Ok(labels)
}

/// Reads `name="value"`, or a quoted metric name, and returns the place after it.
fn parse_label(series: &[u8], start: usize, labels: &mut Labels) -> Result<usize, LineError> {
    let (name, name_end) = if series.get(start) == Some(&b'"') {
        let end = quoted_end(series, start)?;
        (unescape(&series[start + 1..end - 1]), end)
    } else {
        let length = series[start..].iter().take_while(|&&byte| is_name_byte(byte) && byte != b':').count();
        if length == 0 || series[start].is_ascii_digit() {
            return Err(error(series, start, "a label name"));
        }
        (String::from_utf8_lossy(&series[start..start + length]).into_owned(), start + length)
    };
    let equals = skip_blanks(series, name_end);
    let quoted_name = series[start] == b'"';
    let (name, value, end) = match series.get(equals) {
        Some(b'=') => {
            let open = skip_blanks(series, equals + 1);
            if series.get(open) != Some(&b'"') {
                return Err(error(series, open, "a label value in double quotes"));
            }
            let end = quoted_end(series, open)?;
            (name, unescape(&series[open + 1..end - 1]), end)
        }
        _ if quoted_name => ("__name__".to_owned(), name, name_end),
        _ => return Err(error(series, equals, "`=` after the label name")),
    };
    match labels.insert(name, value) {
        None => Ok(end),
        Some(_) => Err(error(series, start, "each label once")),
    }
}

/// Resolves `\\`, `\"` and `\n`; any other backslash stands for itself, as in Prometheus.
fn unescape(bytes: &[u8]) -> String {
    if !bytes.contains(&b'\\') {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = if byte == b'\\' { bytes.get(at + 1) } else { None };
        let (resolved, length) = match escaped {
            Some(b'n') => (b'\n', 2),
            Some(&quoted @ (b'\\' | b'"')) => (quoted, 2),
            _ => (byte, 1),
        };
        out.push(resolved);
        at += length;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':'
}

fn skip_blanks(line: &[u8], from: usize) -> usize {
    let mut at = from;
    while matches!(line.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

fn token_at(line: &[u8], start: usize) -> &[u8] {
    let rest = line.get(start..).unwrap_or_default();
    let length = rest.iter().take_while(|&&byte| byte != b' ' && byte != b'\t').count();
    &rest[..length]
}

fn error(line: &[u8], at: usize, expected: &'static str) -> LineError {
    let rest = line.get(at..).unwrap_or_default();
    // Four bytes hold any character, so that a binary line of any length costs a few bytes here.
    let shown = String::from_utf8_lossy(&rest[..rest.len().min(FOUND_CHARS * 4)]);
    let found = if rest.is_empty() {
        "the end of the line".to_owned()
    } else {
        format!("`{}`", crate::domain::text::clean_line(&shown, FOUND_CHARS))
    };
    LineError { column: at + 1, expected, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn sample(line: &str) -> (String, f64, Time) {
        match parse_line(line.as_bytes(), None) {
            Ok(Line::Sample(sample)) => {
                (String::from_utf8_lossy(sample.series).into_owned(), sample.value, sample.time)
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    fn failure(line: &str) -> (usize, &'static str, String) {
        let error = match parse_line(line.as_bytes(), None) {
            Ok(Line::Sample(sample)) => parse_series(sample.series).unwrap_err(),
            other => other.unwrap_err(),
        };
        (error.column, error.expected, error.found)
    }

    #[test]
    fn a_sample_has_series_value_and_time_in_seconds() {
        assert_eq!(
            sample(r#"a_total{x="}# 1",y="2"} 1.5e3 1700000000.25"#),
            (r#"a_total{x="}# 1",y="2"}"#.to_owned(), 1500.0, Time::Seconds(1_700_000_000_250))
        );
        assert_eq!(sample("up 1 1700000000"), ("up".to_owned(), 1.0, Time::Seconds(1_700_000_000_000)));
        assert_eq!(sample("up 1"), ("up".to_owned(), 1.0, Time::Missing));
    }

    #[test]
    fn a_large_integer_time_is_in_milliseconds() {
        assert_eq!(sample("up 1 1700000000123").2, Time::Milliseconds(1_700_000_000_123));
        assert_eq!(sample("up 1 -5").2, Time::Seconds(-5000));
    }

    #[test]
    fn special_values_are_read() {
        assert_eq!(sample("up +Inf 1").1, f64::INFINITY);
        assert_eq!(sample("up -Inf 1").1, f64::NEG_INFINITY);
        assert!(sample("up NaN 1").1.is_nan());
        assert_eq!(sample("up StaleNaN 1").1.to_bits(), STALE_MARKER);
    }

    #[test]
    fn an_exemplar_is_skipped() {
        assert_eq!(
            sample(r#"a_bucket{le="1"} 3 1700000000 # {trace_id="a b"} 0.67 1700000000"#).2,
            Time::Seconds(1_700_000_000_000)
        );
        assert_eq!(sample(r#"a_bucket{le="1"} 3 # {} 0.67"#).2, Time::Missing);
    }

    #[test]
    fn blanks_may_stand_between_all_parts() {
        let (series, value, _) = sample("  a\t{ x = \"1\" , }\t 2   3 \r");
        assert_eq!(value, 2.0);
        assert_eq!(parse_series(series.as_bytes()).unwrap(), labels(&[("__name__", "a"), ("x", "1")]));
    }

    #[test]
    fn escapes_in_label_values_are_resolved() {
        assert_eq!(
            parse_series(br#"a{p="C:\\dir\n",q="say \"hi\"",r="\d",e=""}"#).unwrap(),
            labels(&[("__name__", "a"), ("p", "C:\\dir\n"), ("q", "say \"hi\""), ("r", "\\d")])
        );
    }

    #[test]
    fn a_quoted_name_stands_inside_the_braces() {
        assert_eq!(
            parse_series(br#"{"http.requests","a.b"="1"}"#).unwrap(),
            labels(&[("__name__", "http.requests"), ("a.b", "1")])
        );
    }

    #[test]
    fn comments_carry_metadata() {
        let metadata = |kind, text: &str| Line::Metadata { kind, family: "a".to_owned(), text: text.to_owned() };
        assert_eq!(parse_line(b"# TYPE a counter", None), Ok(metadata(MetadataKind::Type, "counter")));
        assert_eq!(parse_line(br"# HELP a One\nTwo \\ 3", None), Ok(metadata(MetadataKind::Help, "One\nTwo \\ 3")));
        assert_eq!(parse_line(b"# UNIT a seconds\r", None), Ok(metadata(MetadataKind::Unit, "seconds")));
        assert_eq!(parse_line(b"# EOF", None), Ok(Line::End));
        assert_eq!(parse_line(b"# just words", None), Ok(Line::Empty));
        assert_eq!(parse_line(b"", None), Ok(Line::Empty));
    }

    #[test]
    fn an_error_names_column_expectation_and_what_stood_there() {
        assert_eq!(failure("a{x=\"1\"} abc 1"), (10, "a number after the series", "`abc 1`".to_owned()));
        assert_eq!(failure("a 1 soon"), (5, "a time stamp after the value", "`soon`".to_owned()));
        assert_eq!(failure("a 1 2 3"), (7, "the end of the line", "`3`".to_owned()));
        assert_eq!(failure("a{x=\"1} 2"), (5, "a closing `\"` for this quote", "`\"1} 2`".to_owned()));
        assert_eq!(failure("a{x=\"1\""), (8, "`}` after the labels", "the end of the line".to_owned()));
        assert_eq!(failure("a{x=1} 2 3"), (5, "a label value in double quotes", "`1}`".to_owned()));
        assert_eq!(failure("a{x=\"1\",x=\"2\"} 2 3"), (9, "each label once", "`x=\"2\"}`".to_owned()));
        assert_eq!(failure("{x=\"1\"} 2 3"), (1, "a metric name", "`{x=\"1\"}`".to_owned()));
        assert_eq!(failure("7up 2 3"), (1, "a metric name", "`7up`".to_owned()));
    }

    #[test]
    fn the_likely_series_is_taken_only_when_the_line_repeats_it_whole() {
        let series = |line: &'static str, likely: &str| match parse_line(line.as_bytes(), Some(likely.as_bytes())) {
            Ok(Line::Sample(sample)) => String::from_utf8_lossy(sample.series).into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(series("up 1 2", "up"), "up");
        assert_eq!(series("upper 1 2", "up"), "upper");
        assert_eq!(series("up {a=\"b\"} 1 2", "up"), "up {a=\"b\"}");
    }
}
