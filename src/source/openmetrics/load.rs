//! Reads OpenMetrics files into one store. A bad line or a bad file is a warning that names the place; what is
//! good is kept.

use std::fmt;
use std::io::{self, BufRead};
use std::path::Path;

use super::line::{Line, LineError, SampleLine, Time, parse_line};
use super::metadata::Metadata;
use super::read::{Lines, NextLine, open};
use super::store::{Order, Point, SeriesStore, StoreBuilder};
use crate::domain::text::counted;

/// Bad lines that are reported one by one per file; the others are counted.
const REPORTED_LINES: usize = 5;

/// Bounds that keep memory in check: 16 bytes a sample, some hundred bytes a series.
const MAX_SAMPLES: usize = 20_000_000;
const MAX_SERIES: usize = 500_000;

/// What a set of files holds.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub store: SeriesStore,
    pub metadata: Metadata,
    pub warnings: Vec<String>,
}

/// Collects files.
#[derive(Debug, Default)]
pub(super) struct Loader {
    builder: StoreBuilder,
    metadata: Metadata,
    warnings: Vec<String>,
}

/// What is told about one file.
struct FileReport {
    name: String,
    bad_lines: usize,
    warnings: Vec<String>,
    backwards: Tally,
    without_time: Tally,
    after_end: Tally,
    seconds: Tally,
    milliseconds: Tally,
    samples: usize,
}

/// How often something was seen, and on which line first.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    count: usize,
    first_line: usize,
}

impl Tally {
    fn add(&mut self, line: usize) {
        if self.count == 0 {
            self.first_line = line;
        }
        self.count += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, first on line {}", counted(self.count, "sample"), self.first_line)
    }
}

impl Loader {
    /// Reads a file that is named `path` in messages. An error means that nothing more could be read; what came
    /// before it is kept.
    pub fn read_file(&mut self, path: &Path) -> io::Result<()> {
        let input = open(path)?;
        self.read(&path.display().to_string(), input)
    }

    /// Whether no sample was read yet.
    pub fn is_empty(&self) -> bool {
        self.builder.sample_count() == 0
    }

    pub fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Reads text that is called `name` in messages.
    pub fn read(&mut self, name: &str, input: impl BufRead) -> io::Result<()> {
        let mut report = FileReport::new(name);
        let mut lines = Lines::new(input);
        let result = self.read_lines(&mut lines, &mut report);
        self.warnings.extend(report.finish());
        result
    }

    fn read_lines(&mut self, lines: &mut Lines<impl BufRead>, report: &mut FileReport) -> io::Result<()> {
        let mut ended = false;
        loop {
            let number = lines.number + 1;
            let line = match lines.next()? {
                NextLine::End => return Ok(()),
                NextLine::TooLong => {
                    report.bad_line(number, "expected a line of at most 1 MiB");
                    continue;
                }
                NextLine::Line(line) => line,
            };
            match parse_line(line, self.builder.likely_text()) {
                Ok(Line::Empty) => {}
                Ok(Line::End) => ended = true,
                Ok(Line::Metadata { kind, family, text }) => self.metadata.declare(kind, family, text),
                Ok(Line::Sample(sample)) => {
                    if self.is_full() {
                        report.full(number);
                        return Ok(());
                    }
                    if ended {
                        report.after_end.add(number);
                    }
                    if let Err(error) = self.add(&sample, number, report) {
                        report.bad_sample(number, &error);
                    }
                }
                Err(error) => report.bad_sample(number, &error),
            }
        }
    }

    fn is_full(&self) -> bool {
        self.builder.sample_count() >= MAX_SAMPLES || self.builder.series_count() >= MAX_SERIES
    }

    fn add(&mut self, sample: &SampleLine<'_>, number: usize, report: &mut FileReport) -> Result<(), LineError> {
        let at = match sample.time {
            Time::Missing => {
                report.without_time.add(number);
                return Ok(());
            }
            Time::Seconds(at) => {
                report.seconds.add(number);
                at
            }
            Time::Milliseconds(at) => {
                report.milliseconds.add(number);
                at
            }
        };
        if self.builder.push(sample.series, Point { at, value: sample.value })? == Order::Backwards {
            report.backwards.add(number);
        }
        report.samples += 1;
        Ok(())
    }

    /// Sorts everything.
    pub fn finish(mut self) -> Loaded {
        let (store, left_out) = self.builder.finish();
        if left_out > 0 {
            self.warnings.push(format!(
                "samples left out because their series has another value at the same instant, which stays: {left_out}"
            ));
        }
        Loaded { store, metadata: self.metadata, warnings: self.warnings }
    }
}

impl FileReport {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            bad_lines: 0,
            warnings: Vec::new(),
            backwards: Tally::default(),
            without_time: Tally::default(),
            after_end: Tally::default(),
            seconds: Tally::default(),
            milliseconds: Tally::default(),
            samples: 0,
        }
    }

    fn bad_sample(&mut self, number: usize, error: &LineError) {
        let LineError { column, expected, found } = error;
        self.bad_line(number, &format!("column {column}: expected {expected}, found {found}"));
    }

    fn bad_line(&mut self, number: usize, problem: &str) {
        self.bad_lines += 1;
        if self.bad_lines <= REPORTED_LINES {
            self.warnings.push(format!("{}: line {number}, {problem}; the line was left out", self.name));
        }
    }

    fn full(&mut self, number: usize) {
        self.warnings.push(format!(
            "{}: reading stopped at line {number}: at most {MAX_SAMPLES} samples and {MAX_SERIES} series are held; \
             keep only the time around the incident in the files",
            self.name
        ));
    }

    fn finish(mut self) -> Vec<String> {
        let name = &self.name;
        if self.samples == 0 && self.bad_lines > REPORTED_LINES {
            return vec![format!("{name}: expected OpenMetrics text, found {} lines that are none", self.bad_lines)];
        }
        if self.bad_lines > REPORTED_LINES {
            self.warnings.push(format!("{name}: more lines left out: {}", self.bad_lines - REPORTED_LINES));
        }
        let mut tell = |tally: Tally, what: &str| {
            if tally.count > 0 {
                self.warnings.push(format!("{name}: {tally}: {what}"));
            }
        };
        tell(self.without_time, "expected a time stamp after the value; left out");
        tell(self.backwards, "older than the one before it; they were sorted");
        tell(self.after_end, "after `# EOF`; they were read");
        if self.seconds.count > 0 {
            // Files of one unit are unsuspicious; a mixture may be the work of two writers.
            tell(self.milliseconds, "time stamps read as milliseconds while others here are seconds");
        }
        self.warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Loaded {
        let mut loader = Loader::default();
        loader.read("a.om", text.as_bytes()).unwrap();
        loader.finish()
    }

    fn points(loaded: &Loaded, name: &str) -> Vec<(i64, f64)> {
        loaded.store.candidates(Some(name)).flat_map(|s| s.points.iter().map(|p| (p.at, p.value))).collect()
    }

    #[test]
    fn a_bad_line_is_named_and_loses_nothing_else() {
        let loaded = loaded("# TYPE a gauge\r\na{x=\"1\"} 1 10\r\na{x=\"1} 2 20\r\na{x=\"1\"} 3 30\r\n# EOF\r\n");
        assert_eq!(points(&loaded, "a"), [(10_000, 1.0), (30_000, 3.0)]);
        assert_eq!(
            loaded.warnings,
            [
                "a.om: line 3, column 5: expected a closing `\"` for this quote, found `\"1} 2 20`; the line was left out"
            ]
        );
    }

    #[test]
    fn many_bad_lines_are_counted() {
        let text = format!("a 1 1\n{}", "broken line\n".repeat(8));
        assert_eq!(loaded(&text).warnings.len(), REPORTED_LINES + 1);
        assert_eq!(loaded(&text).warnings[REPORTED_LINES], "a.om: more lines left out: 3");
    }

    #[test]
    fn a_file_of_something_else_is_one_warning() {
        let text = "<html>\n".repeat(100);
        assert_eq!(loaded(&text).warnings, ["a.om: expected OpenMetrics text, found 100 lines that are none"]);
    }

    #[test]
    fn samples_that_are_odd_are_told_once_per_kind() {
        let loaded = loaded("a 1\na 2 20\na 1 10\n# EOF\na 3 1700000000000\na 9 20\n");
        assert_eq!(points(&loaded, "a"), [(10_000, 1.0), (20_000, 2.0), (1_700_000_000_000, 3.0)]);
        assert_eq!(
            loaded.warnings,
            [
                "a.om: 1 sample, first on line 1: expected a time stamp after the value; left out",
                "a.om: 2 samples, first on line 3: older than the one before it; they were sorted",
                "a.om: 2 samples, first on line 5: after `# EOF`; they were read",
                "a.om: 1 sample, first on line 5: time stamps read as milliseconds while others here are seconds",
                "samples left out because their series has another value at the same instant, which stays: 1",
            ]
        );
    }

    #[test]
    fn a_file_without_an_end_mark_and_in_milliseconds_is_no_reason_to_warn() {
        let loaded = loaded("up 1 1700000000000\nup 0 1700000015000");
        assert_eq!(points(&loaded, "up"), [(1_700_000_000_000, 1.0), (1_700_000_015_000, 0.0)]);
        assert!(loaded.warnings.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
            let mut loader = Loader::default();
            loader.read("random", &bytes[..]).unwrap();
            loader.finish();
        }

        #[test]
        fn random_text_of_the_format_s_own_characters_never_panics(
            text in r#"([a-c]{0,2}\{?(x="[a\\"n]{0,3}",?){0,2}\}?[ #]{0,2}-?[0-9.eINaf+]{0,20} ?[0-9.]{0,20}( # \{\})?\n){0,8}"#
        ) {
            let mut loader = Loader::default();
            loader.read("random", text.as_bytes()).unwrap();
            loader.finish();
        }
    }
}
