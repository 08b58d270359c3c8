//! Sparklines: a row of block characters that shows the course of a series, at most as wide as asked.

use crate::domain::Window;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws points `[unix seconds, value]` over the window in `width` columns. Each column shows the value in it that is
/// farthest from the median, so that no peak is lost; a column without points is a blank.
pub fn sparkline(points: &[(i64, f64)], window: Window, width: usize) -> String {
    let values: Vec<f64> = points.iter().map(|point| point.1).filter(|value| value.is_finite()).collect();
    let centre = super::series::median(&values);
    let mut columns: Vec<Option<f64>> = vec![None; width];
    let span = window.duration().as_secs_f64().max(1.0);
    for &(at, value) in points.iter().filter(|point| point.1.is_finite()) {
        let share = (at - window.start.as_second()) as f64 / span;
        // The cast saturates: what lies before the window is drawn in the first column, what lies after in the last.
        let column = ((share * width as f64) as usize).min(width.saturating_sub(1));
        let Some(slot) = columns.get_mut(column) else { return String::new() };
        if slot.is_none_or(|kept| (value - centre).abs() > (kept - centre).abs()) {
            *slot = Some(value);
        }
    }
    draw(&columns)
}

/// Draws counts, such as the histogram of a log pattern, from zero up.
pub fn bars(counts: &[u64]) -> String {
    let highest = counts.iter().copied().max().unwrap_or(0);
    counts
        .iter()
        .map(|&count| match count {
            0 => ' ',
            _ => BLOCKS[(count as u128 * 7 / u128::from(highest)) as usize],
        })
        .collect()
}

fn draw(columns: &[Option<f64>]) -> String {
    let shown = || columns.iter().flatten().copied();
    let (lowest, highest) = (shown().fold(f64::INFINITY, f64::min), shown().fold(f64::NEG_INFINITY, f64::max));
    let block = |value: f64| {
        // Halves, as the distance of two finite numbers need not be finite.
        let share = (value / 2.0 - lowest / 2.0) / (highest / 2.0 - lowest / 2.0);
        if highest > lowest { BLOCKS[(share * 7.0).round() as usize] } else { BLOCKS[0] }
    };
    columns.iter().map(|column| column.map_or(' ', block)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn window(seconds: i64) -> Window {
        Window::new(Timestamp::UNIX_EPOCH, Timestamp::from_second(seconds).unwrap())
    }

    #[test]
    fn the_course_is_drawn_with_its_peak_and_its_gaps() {
        let points: Vec<(i64, f64)> =
            (0..100).filter(|at| !(40..50).contains(at)).map(|at| (at, if at == 73 { 9.0 } else { 1.0 })).collect();
        assert_eq!(sparkline(&points, window(100), 10), "▁▁▁▁ ▁▁█▁▁");
    }

    #[test]
    fn a_ramp_uses_all_heights() {
        let points: Vec<(i64, f64)> = (0..8).map(|at| (at, at as f64)).collect();
        assert_eq!(sparkline(&points, window(8), 8), "▁▂▃▄▅▆▇█");
    }

    #[test]
    fn odd_input_draws_something_or_nothing() {
        assert_eq!(sparkline(&[], window(10), 4), "    ");
        assert_eq!(sparkline(&[(0, 1.0)], window(10), 0), "");
        assert_eq!(sparkline(&[(0, f64::MIN), (2, f64::NAN), (9, f64::MAX)], window(10), 2), "▁█");
        assert_eq!(sparkline(&[(-50, 1.0), (500, 2.0)], window(0), 3), "▁ █");
    }

    #[test]
    fn counts_are_drawn_from_zero() {
        assert_eq!(bars(&[0, 1, 4, 8, u64::MAX]), " ▁▁▁█");
        assert_eq!(bars(&[0, 2, 4, 8]), " ▂▄█");
        assert_eq!(bars(&[]), "");
    }
}
