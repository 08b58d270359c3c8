//! A series as a chart of braille dots with a value axis and a time axis, the alert's time and the change points marked.
//!
//! In: points, marks, a size. Out: styled lines, top first.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::pad_left;
use super::theme::Theme;
use crate::reason::words::figure::{Unit, clock, figure};

/// Columns of the value axis.
const AXIS: usize = 10;
const DOTS: (usize, usize) = (2, 4);

/// What is marked at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Alert,
    Change,
}

/// What is drawn.
pub struct Chart<'a> {
    /// `[unix seconds, value]` in the order of time; values are finite.
    pub points: &'a [(i64, f64)],
    pub marks: &'a [(i64, Mark)],
    pub unit: Unit,
    pub zone: &'a TimeZone,
}

/// The chart in `columns` and `rows`, both axes included; nothing when there are no points or there is no room.
pub fn lines(chart: &Chart<'_>, columns: usize, rows: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (width, height) = (columns.saturating_sub(AXIS + 1), rows.saturating_sub(2));
    let finite: Vec<(i64, f64)> = chart.points.iter().copied().filter(|(_, value)| value.is_finite()).collect();
    let (Some(first), Some(last)) = (finite.first(), finite.last()) else { return Vec::new() };
    if width < 8 || height < 2 {
        return Vec::new();
    }
    let time = Scale::new(first.0 as f64, last.0 as f64);
    let low = finite.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
    let high = finite.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    // A floor of zero tells how far a value is from nothing, where nothing is in sight.
    let low = if low > 0.0 && low < high / 2.0 { 0.0 } else { low };
    let value = Scale::new(low, high);
    let cells = raster(&finite, &time, &value, width, height);
    let marks: Vec<(usize, Mark)> = chart
        .marks
        .iter()
        .filter(|(at, _)| *at >= first.0 && *at <= last.0)
        .map(|(at, mark)| (time.place(*at as f64, width), *mark))
        .collect();
    let mut out: Vec<Line<'static>> = (0..height)
        .map(|row| {
            let label = match row {
                0 => figure(value.high, chart.unit),
                row if row + 1 == height => figure(value.low, chart.unit),
                row if row == height / 2 => {
                    let share = 1.0 - row as f64 / (height - 1) as f64;
                    figure(value.low + share * (value.high - value.low), chart.unit)
                }
                _ => String::new(),
            };
            let mut spans = vec![Span::styled(format!("{}|", pad_left(&label, AXIS)), theme.dim)];
            spans.extend(row_spans(&cells[row * width..(row + 1) * width], &marks, theme));
            Line::from(spans)
        })
        .collect();
    out.push(axis(&marks, width, theme));
    out.push(times(chart, &marks, width, (first.0, last.0), theme));
    out
}

/// From values to places.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// The place of a value among so many, 0 for the lowest; the middle of a scale without extent.
    fn place(&self, value: f64, places: usize) -> usize {
        let last = places.saturating_sub(1);
        let extent = self.high - self.low;
        if !(extent.is_finite() && extent > 0.0) {
            return last / 2;
        }
        // Clamped, so that the cast cannot leave the range.
        (((value - self.low) / extent).clamp(0.0, 1.0) * last as f64).round() as usize
    }
}

/// Braille dots (Unicode 2800) of each cell, row by row.
fn raster(points: &[(i64, f64)], time: &Scale, value: &Scale, width: usize, height: usize) -> Vec<u8> {
    const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    let (columns, rows) = (width * DOTS.0, height * DOTS.1);
    let mut cells = vec![0u8; width * height];
    let mut dot = |x: usize, y: usize| cells[(y / DOTS.1) * width + x / DOTS.0] |= BITS[x % DOTS.0][y % DOTS.1];
    let place = |(at, level): (i64, f64)| (time.place(at as f64, columns), rows - 1 - value.place(level, rows));
    for (n, point) in points.iter().enumerate() {
        let (x, y) = place(*point);
        let (from_x, from_y) = points.get(n.wrapping_sub(1)).map_or((x, y), |before| place(*before));
        let steps = x.abs_diff(from_x).max(y.abs_diff(from_y)).max(1);
        for step in 0..=steps {
            let between = |a: usize, b: usize| {
                let share = step as f64 / steps as f64;
                (a as f64 + (b as f64 - a as f64) * share).round() as usize
            };
            dot(between(from_x, x).min(columns - 1), between(from_y, y).min(rows - 1));
        }
    }
    cells
}

fn mark_style(mark: Mark, theme: &Theme) -> Style {
    match mark {
        Mark::Alert => theme.error,
        Mark::Change => theme.warn,
    }
}

fn row_spans(cells: &[u8], marks: &[(usize, Mark)], theme: &Theme) -> Vec<Span<'static>> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (column, bits) in cells.iter().enumerate() {
        let mark = marks.iter().rev().find(|(at, _)| *at == column).map(|(_, mark)| *mark);
        let (symbol, style) = match (bits, mark) {
            (0, None) => (' ', theme.accent),
            (0, Some(mark)) => (':', mark_style(mark, theme)),
            (bits, mark) => {
                let symbol = char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' ');
                (symbol, mark.map_or(theme.accent, |mark| mark_style(mark, theme)))
            }
        };
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push(symbol),
            _ => spans.push(Span::styled(symbol.to_string(), style)),
        }
    }
    spans
}

/// `+----^-----!---`: change points and the alert.
fn axis(marks: &[(usize, Mark)], width: usize, theme: &Theme) -> Line<'static> {
    let mut spans = vec![Span::styled(format!("{}+", " ".repeat(AXIS)), theme.dim)];
    for column in 0..width {
        let mark = marks.iter().find(|(at, mark)| *at == column && *mark == Mark::Alert);
        let mark = mark.or_else(|| marks.iter().find(|(at, _)| *at == column));
        let (symbol, style) = match mark {
            Some((_, Mark::Alert)) => ('!', theme.error),
            Some((_, Mark::Change)) => ('^', theme.warn),
            None => ('-', theme.dim),
        };
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push(symbol),
            _ => spans.push(Span::styled(symbol.to_string(), style)),
        }
    }
    Line::from(spans)
}

/// The first and the last time, and that of the alert between them where there is room.
fn times(
    chart: &Chart<'_>,
    marks: &[(usize, Mark)],
    width: usize,
    (first, last): (i64, i64),
    theme: &Theme,
) -> Line<'static> {
    let told =
        |seconds: i64| Timestamp::from_second(seconds).map_or_else(|_| String::new(), |at| clock(at, chart.zone));
    let (from, to) = (told(first), told(last));
    let mut text = format!("{}{from}", " ".repeat(AXIS + 1));
    let alert = chart.marks.iter().find(|(_, mark)| *mark == Mark::Alert).filter(|_| !marks.is_empty());
    if let Some((at, _)) = alert
        && let Some((column, _)) = marks.iter().find(|(_, mark)| *mark == Mark::Alert)
    {
        let label = format!("! {}", told(*at));
        let start = (AXIS + 1 + column).saturating_sub(label.len() / 2);
        let fits = start > text.len() && start + label.len() + to.len() + 1 < AXIS + 1 + width;
        if fits {
            text = format!("{text:<start$}{label}");
        }
    }
    let room = (AXIS + 1 + width).saturating_sub(to.len());
    if text.len() < room {
        text = format!("{text:<room$}{to}");
    }
    Line::styled(text, theme.dim)
}

/// Counts as a line of bars that rise from the bottom, one character a slice.
pub fn bars(counts: &[u64]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let bar = |count: &u64| match *count {
        0 => ' ',
        // At most 7: a share of one.
        count => LEVELS[(count.saturating_sub(1) as u128 * 8 / most as u128).min(7) as usize],
    };
    counts.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::text::plain;
    use crate::ui::tui::theme::ThemeName;

    fn drawn(points: &[(i64, f64)], marks: &[(i64, Mark)], columns: usize, rows: usize) -> Vec<String> {
        let chart = Chart { points, marks, unit: Unit::Plain, zone: &TimeZone::UTC };
        lines(&chart, columns, rows, &Theme::of(ThemeName::None)).iter().map(plain).collect()
    }

    #[test]
    fn a_step_is_drawn_with_its_change_point_and_the_alert() {
        let points: Vec<(i64, f64)> = (0..60).map(|n| (n * 60, if n < 30 { 10.0 } else { 95.0 })).collect();
        let marks = [(1800, Mark::Change), (2400, Mark::Alert)];
        insta::assert_snapshot!(drawn(&points, &marks, 60, 10).join("\n"));
    }

    #[test]
    fn odd_series_are_drawn_or_left_out_and_never_panic() {
        assert_eq!(drawn(&[], &[], 60, 10), Vec::<String>::new());
        assert_eq!(drawn(&[(0, 1.0)], &[], 10, 10), Vec::<String>::new());
        for points in [
            &[(0, 1.0)][..],
            &[(0, 5.0), (60, 5.0)],
            &[(0, f64::NAN), (60, f64::INFINITY), (120, 3.0)],
            &[(0, f64::MAX), (1, f64::MIN)],
            &[(i64::MIN, 1.0), (i64::MAX, 2.0)],
        ] {
            assert_eq!(drawn(points, &[(0, Mark::Alert)], 40, 6).len(), 6, "{points:?}");
        }
    }

    #[test]
    fn bars_rise_with_their_counts() {
        assert_eq!(bars(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(bars(&[u64::MAX, 0]), "█ ");
        assert_eq!(bars(&[]), "");
    }
}
