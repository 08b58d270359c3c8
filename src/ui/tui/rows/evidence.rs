//! Evidence: one row each with its frequency as bars where it has one; in full, a series as a chart with the alert and
//! the change points, a log pattern with its bars, and the raw output below.

use ratatui::text::{Line, Span};

use super::{Row, Target, count};
use crate::domain::{Evidence, Finding, LogPattern, SeriesSummary};
use crate::reason::words::figure::{clock, figure, unit_of};
use crate::ui::tui::chart::{self, Chart, Mark, bars};
use crate::ui::tui::state::App;
use crate::ui::tui::text;

/// Columns of bars in a row, and the width from which there is room for them.
const BARS: usize = 24;
const ROOM_FOR_BARS: usize = 76;
const CHART_ROWS: usize = 12;

pub fn rows(app: &App, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if app.run.evidence.dropped > 0 {
        let n = count(app.run.evidence.dropped);
        let said = app.lang.pick(
            format!("{n} earlier pieces: Enter reads them back from the session"),
            format!("更早的 {n} 条证据：按 Enter 从会话中读取"),
        );
        rows.push(Row::new(Line::styled(text::cut(&said, columns), app.theme.accent), Target::ReadBack));
    }
    rows.extend(app.run.evidence.iter().map(|evidence| {
        let line = row(app, evidence, columns);
        Row::new(line, Target::Evidence(evidence.id.clone()))
    }));
    rows
}

/// One line for a piece of evidence.
pub fn row(app: &App, evidence: &Evidence, columns: usize) -> Line<'static> {
    let lead = format!("{:<4} ", evidence.id);
    let what = text::pad(evidence.kind.title(app.lang), 8);
    let frequency = if columns >= ROOM_FOR_BARS { frequency(&evidence.data) } else { String::new() };
    let room = columns.saturating_sub(lead.len() + 8 + if frequency.is_empty() { 0 } else { BARS + 1 });
    let summary = text::cut_middle(&evidence.summary, room);
    let summary = if frequency.is_empty() { summary } else { text::pad(&summary, room) };
    let mut spans = vec![
        Span::styled(lead, app.theme.cite),
        Span::styled(what, app.theme.dim),
        Span::styled(summary, app.theme.text),
    ];
    if !frequency.is_empty() {
        spans.push(Span::styled(format!(" {frequency}"), app.theme.accent));
    }
    Line::from(spans)
}

/// Bars of a pattern's frequency, or of a series' course.
fn frequency(finding: &Finding) -> String {
    match finding {
        Finding::Pattern(pattern) => bars(&slices(&pattern.histogram)),
        Finding::Series(series) => bars(&course(series)),
        _ => String::new(),
    }
}

fn slices(histogram: &[u64]) -> Vec<u64> {
    if histogram.len() <= BARS {
        return histogram.to_vec();
    }
    let at = |n: usize| n * histogram.len() / BARS;
    (0..BARS)
        .map(|n| histogram[at(n)..at(n + 1)].iter().fold(0, |sum, count| u64::saturating_add(sum, *count)))
        .collect()
}

/// The highest value of each slice of time, from 1 to 100 of the extent.
fn course(series: &SeriesSummary) -> Vec<u64> {
    let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else { return Vec::new() };
    let span = (i128::from(last.0) - i128::from(first.0)).max(1);
    let mut slices = [f64::NAN; BARS];
    for (at, value) in &series.points {
        let place = ((i128::from(*at) - i128::from(first.0)) * (BARS as i128 - 1) / span).clamp(0, BARS as i128 - 1);
        let slice = &mut slices[place as usize];
        *slice = slice.max(*value);
    }
    let low = slices.iter().copied().fold(f64::INFINITY, f64::min);
    let high = slices.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let share = |value: &f64| match value.is_nan() {
        true => 0,
        // A share of one: the cast stays in range.
        false if high > low => 1 + ((value - low) / (high - low) * 99.0) as u64,
        false => 50,
    };
    slices.iter().map(share).collect()
}

/// What stands above the raw output.
pub fn head(app: &App, evidence: &Evidence, columns: usize) -> Vec<Line<'static>> {
    let mut lines = text::wrap(&[(evidence.summary.clone(), app.theme.heading)], columns, 0);
    let mut facts = vec![evidence.kind.title(app.lang).to_owned(), text::line(&evidence.source)];
    if let Some(window) = evidence.window {
        facts.push(format!("{} - {}", clock(window.start, &app.zone), clock(window.end, &app.zone)));
    }
    if let Some(seconds) = evidence.stale_seconds {
        facts.push(app.lang.pick(format!("{seconds} s old"), format!("{seconds} 秒前的结果")));
    }
    lines.extend(text::wrap(&[(facts.join("; "), app.theme.dim)], columns, 0));
    lines.push(Line::default());
    let shown = match &evidence.data {
        Finding::Series(series) => series_lines(app, series, columns),
        Finding::Pattern(pattern) => pattern_lines(app, pattern, columns),
        Finding::Hit(hit) => {
            text::wrap_plain(&crate::domain::text::clean(&hit.content, 8000), columns, 0, app.theme.text)
        }
        _ => Vec::new(),
    };
    if !shown.is_empty() {
        lines.extend(shown);
        lines.push(Line::default());
    }
    lines
}

fn series_lines(app: &App, series: &SeriesSummary, columns: usize) -> Vec<Line<'static>> {
    let unit = unit_of(&series.expr);
    let mut marks: Vec<(i64, Mark)> =
        series.change_points.iter().map(|point| (point.at.as_second(), Mark::Change)).collect();
    let fired = app.run.facts.as_ref().and_then(|facts| facts.fired_at);
    let fired = fired.or_else(|| app.run.alert.as_ref().and_then(|alert| alert.starts_at));
    marks.extend(fired.map(|at| (at.as_second(), Mark::Alert)));
    let chart = Chart { points: &series.points, marks: &marks, unit, zone: &app.zone };
    let mut lines = chart::lines(&chart, columns, CHART_ROWS, &app.theme);
    let lang = app.lang;
    let mut legend = vec![
        Span::styled(format!("! {}  ", lang.pick("alert", "告警")), app.theme.error),
        Span::styled(format!("^ {}  ", lang.pick("change point", "突变点")), app.theme.warn),
    ];
    let now = series.now.map_or_else(|| "-".to_owned(), |now| figure(now, unit));
    legend.push(Span::styled(
        lang.pick(
            format!("baseline {}, peak {}, now {now}", figure(series.baseline, unit), figure(series.peak, unit)),
            format!("基线 {}，峰值 {}，当前 {now}", figure(series.baseline, unit), figure(series.peak, unit)),
        ),
        app.theme.dim,
    ));
    lines.push(Line::from(legend));
    for point in &series.change_points {
        let said =
            format!("^ {} {} -> {}", clock(point.at, &app.zone), figure(point.before, unit), figure(point.after, unit));
        lines.push(Line::styled(said, app.theme.warn));
    }
    lines
}

fn pattern_lines(app: &App, pattern: &LogPattern, columns: usize) -> Vec<Line<'static>> {
    let lang = app.lang;
    let mut lines = text::wrap(&[(text::line(&pattern.template), app.theme.code)], columns, 2);
    let told = |at: Option<jiff::Timestamp>| at.map_or_else(|| "-".to_owned(), |at| clock(at, &app.zone));
    let (first, last) = (told(pattern.first), told(pattern.last));
    lines.push(Line::from(vec![
        Span::styled(format!("{first} |"), app.theme.dim),
        Span::styled(bars(&pattern.histogram), app.theme.accent),
        Span::styled(format!("| {last}"), app.theme.dim),
    ]));
    let before = pattern.before.map_or_else(|| "-".to_owned(), count);
    let n = count(pattern.count);
    lines.push(Line::styled(
        lang.pick(format!("{n} times, {before} in the window before"), format!("{n} 次，前一时段 {before} 次")),
        app.theme.text,
    ));
    for (instance, times) in &pattern.instances {
        lines.push(Line::styled(format!("  {} {}", text::line(instance), count(*times)), app.theme.dim));
    }
    lines
}
