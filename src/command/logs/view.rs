//! The table that `oncall logs` prints for people.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Gathered, NOTE_CHARS, TEMPLATE_CHARS, most_telling};
use crate::analysis::sparkline::bars;
use crate::domain::text::{clean_line, counted};
use crate::domain::{Lang, LogPattern};

/// A template gets at least so many columns, however narrow the terminal.
const MIN_TEMPLATE_COLUMNS: usize = 30;
/// Notes shown; the rest is counted.
const MAX_NOTES: usize = 8;

/// Where and how the patterns are shown.
pub(super) struct Page<'a> {
    pub zone: &'a TimeZone,
    pub lang: Lang,
    pub columns: usize,
    pub rows: usize,
}

/// One row before it is aligned; the template comes last and takes what is left.
struct Row {
    cells: [String; 6],
    template: String,
}

impl Page<'_> {
    pub fn render(&self, gathered: &Gathered) -> String {
        let mut page = self.heading(gathered);
        let patterns = most_telling(&gathered.mined.patterns);
        if !patterns.is_empty() {
            page.push('\n');
            self.table(&patterns, &mut page);
        }
        self.notes(gathered, &mut page);
        page
    }

    fn heading(&self, gathered: &Gathered) -> String {
        let volume = &gathered.mined.volume;
        let (events, files, patterns) = (volume.events, gathered.files.len(), volume.patterns);
        let mut text = self.lang.pick(
            format!("{} of {} in {}", counted(events, "event"), counted(files, "file"), counted(patterns, "pattern")),
            format!("{files} 个文件中的 {events} 个事件，归为 {patterns} 种模式"),
        );
        if let (Some(first), Some(last)) = (volume.first, volume.last) {
            let (first, last) = (self.full_time(first), self.full_time(last));
            text.push_str(&self.lang.pick(format!(", {first} to {last}"), format!("，{first} 至 {last}")));
        }
        let levels: Vec<String> = ["fatal", "error", "warn", "info", "debug", "trace", "none"]
            .iter()
            .filter_map(|name| volume.levels.get(*name).map(|count| format!("{name} {count}")))
            .collect();
        let label = self.lang.pick("levels", "级别");
        if levels.is_empty() { format!("{text}\n") } else { format!("{text}\n{label}: {}\n", levels.join(", ")) }
    }

    fn table(&self, patterns: &[&LogPattern], page: &mut String) {
        let titles = self.lang.pick(
            ["COUNT", "LEVEL", "FIRST", "LAST", "COURSE", "SERVICE", "PATTERN"],
            ["次数", "级别", "首次", "末次", "走势", "服务", "模式"],
        );
        let [count, level, first, last, course, service, template] = titles.map(str::to_owned);
        let mut rows = vec![Row { cells: [count, level, first, last, course, service], template }];
        rows.extend(patterns.iter().take(self.rows).map(|pattern| self.row(pattern)));
        let shown: Vec<usize> =
            (0..6).filter(|&column| rows[1..].iter().any(|row| !row.cells[column].trim().is_empty())).collect();
        let width = |column: usize| rows.iter().map(|row| row.cells[column].width()).max().unwrap_or(0);
        let widths: Vec<usize> = shown.iter().map(|&column| width(column)).collect();
        let left = self.columns.saturating_sub(widths.iter().sum::<usize>() + 2 * widths.len());
        let left = left.max(MIN_TEMPLATE_COLUMNS);
        for row in &rows {
            for (&column, &width) in shown.iter().zip(&widths) {
                let cell = &row.cells[column];
                let padding = " ".repeat(width - cell.width());
                // Counts are flush right, as numbers are.
                let _ = if column == 0 { write!(page, "{padding}{cell}  ") } else { write!(page, "{cell}{padding}  ") };
            }
            page.push_str(fit(&row.template, left).trim_end());
            page.push('\n');
        }
        if patterns.len() > self.rows {
            let more = patterns.len() - self.rows;
            page.push_str(&self.lang.pick(
                format!("\nmore patterns: {more} (--top {} shows all, --level error the worst)\n", patterns.len()),
                format!("\n另有 {more} 种模式：--top {} 显示全部，--level error 只看最严重的\n", patterns.len()),
            ));
        }
    }

    fn row(&self, pattern: &LogPattern) -> Row {
        let time = |at: Option<Timestamp>| at.map(|at| self.short_time(at)).unwrap_or_default();
        Row {
            cells: [
                pattern.count.to_string(),
                pattern.level.map_or("", |level| level.as_str()).to_owned(),
                time(pattern.first),
                time(pattern.last),
                bars(&pattern.histogram),
                pattern.service.as_deref().map(|name| clean_line(name, 24)).unwrap_or_default(),
            ],
            template: clean_line(&pattern.template, TEMPLATE_CHARS),
        }
    }

    fn notes(&self, gathered: &Gathered, page: &mut String) {
        let notes: Vec<String> = gathered
            .files
            .iter()
            .flat_map(|file| file.notes.iter().map(move |note| format!("{}: {note}", file.name)))
            .collect();
        if notes.is_empty() {
            return;
        }
        page.push('\n');
        for note in notes.iter().take(MAX_NOTES) {
            let _ = writeln!(page, "{}: {}", self.lang.pick("note", "说明"), clean_line(note, NOTE_CHARS));
        }
        if notes.len() > MAX_NOTES {
            let more = notes.len() - MAX_NOTES;
            page.push_str(
                &self
                    .lang
                    .pick(format!("more notes: {more} (see --json)\n"), format!("另有 {more} 条说明：见 --json\n")),
            );
        }
    }

    fn full_time(&self, at: Timestamp) -> String {
        at.to_zoned_datetime(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S%:z").to_string()
    }

    fn short_time(&self, at: Timestamp) -> String {
        at.to_zoned_datetime(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }
}

/// The text in so many columns; a cut is marked.
fn fit(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut fitted = String::new();
    let mut used = 0;
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if used + width + 3 > columns {
            break;
        }
        fitted.push(c);
        used += width;
    }
    fitted + "..."
}
