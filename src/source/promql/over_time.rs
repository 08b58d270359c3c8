//! Functions of one window of samples: how fast a counter grew, what a gauge was on average.
//!
//! Sums are compensated (Kahan with Neumaier's improvement) where Prometheus does so.

use super::select::Window;
use crate::source::openmetrics::Point;

/// What the samples of a series are, for the change over a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Of a gauge: last minus first.
    Delta,
    /// Of a counter: falling values are resets to zero.
    Increase,
    /// The increase per second.
    Rate,
}

/// Windows begin and end between samples. The change is extended to an end of the window when a sample could be
/// expected there, that is when the gap is below this many average distances of samples; else by half a distance.
const EXTRAPOLATION_LIMIT: f64 = 1.1;

/// The change over the window, extrapolated to its ends as Prometheus does.
pub(super) fn extrapolated_change(window: Window<'_>, change: Change) -> Option<f64> {
    let [first, .., last] = window.points else { return None };
    let mut result = last.value - first.value;
    if change != Change::Delta {
        for pair in window.points.windows(2) {
            if pair[1].value < pair[0].value {
                result += pair[0].value;
            }
        }
    }
    let sampled = seconds(first.at, last.at);
    let distance = sampled / (window.points.len() - 1) as f64;
    let mut to_start = seconds(window.start, first.at);
    let to_end = seconds(last.at, window.end);
    if change != Change::Delta && result > 0.0 && first.value >= 0.0 {
        // A counter was never below zero: it cannot have grown for longer than it took from there.
        to_start = to_start.min(sampled * (first.value / result));
    }
    let extension = |gap: f64| if gap < distance * EXTRAPOLATION_LIMIT { gap } else { distance / 2.0 };
    let mut factor = (sampled + extension(to_start) + extension(to_end)) / sampled;
    if change == Change::Rate {
        factor /= seconds(window.start, window.end);
    }
    Some(result * factor)
}

/// The change between the last two samples; of a counter per second, of a gauge as it is.
pub(super) fn instant_change(points: &[Point], change: Change) -> Option<f64> {
    let [.., previous, last] = points else { return None };
    match change {
        Change::Delta => Some(last.value - previous.value),
        Change::Increase | Change::Rate => {
            let grown = if last.value < previous.value { last.value } else { last.value - previous.value };
            Some(grown / seconds(previous.at, last.at))
        }
    }
}

/// The number of samples that differ from the one before.
pub(super) fn changes(points: &[Point]) -> f64 {
    let differ =
        |pair: &&[Point]| pair[0].value != pair[1].value && !(pair[0].value.is_nan() && pair[1].value.is_nan());
    points.windows(2).filter(differ).count() as f64
}

/// The number of samples below the one before.
pub(super) fn resets(points: &[Point]) -> f64 {
    points.windows(2).filter(|pair| pair[1].value < pair[0].value).count() as f64
}

pub(super) fn sum(points: &[Point]) -> f64 {
    let mut sum = Compensated::default();
    points.iter().for_each(|point| sum.add(point.value));
    sum.total()
}

/// The mean, updated step by step so that sums of huge values do not overflow.
pub(super) fn average(points: &[Point]) -> f64 {
    let mut mean = Compensated::default();
    for (index, &Point { value, .. }) in points.iter().enumerate() {
        let count = (index + 1) as f64;
        if mean.sum.is_infinite() {
            // Only NaN or the opposite infinity can still move an infinite mean.
            let same_infinity = value.is_infinite() && (mean.sum > 0.0) == (value > 0.0);
            if same_infinity || value.is_finite() {
                continue;
            }
        }
        mean.add(value / count - mean.sum / count);
    }
    mean.total()
}

/// The largest value; NaN only when there is no other.
pub(super) fn max(points: &[Point]) -> f64 {
    points.iter().fold(f64::NAN, |max, point| if point.value > max || max.is_nan() { point.value } else { max })
}

/// The smallest value; NaN only when there is no other.
pub(super) fn min(points: &[Point]) -> f64 {
    points.iter().fold(f64::NAN, |min, point| if point.value < min || min.is_nan() { point.value } else { min })
}

/// The population variance (Welford's method).
pub(super) fn variance(points: &[Point]) -> f64 {
    let (mut mean, mut squares) = (Compensated::default(), Compensated::default());
    for (index, &Point { value, .. }) in points.iter().enumerate() {
        let delta = value - mean.raw_total();
        mean.add(delta / (index + 1) as f64);
        squares.add(delta * (value - mean.raw_total()));
    }
    squares.raw_total() / points.len() as f64
}

/// The `q`-quantile with linear interpolation between the two nearest values. NaN sorts below everything.
pub(super) fn quantile(q: f64, mut values: Vec<f64>) -> f64 {
    if values.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    values.sort_by(|a, b| b.is_nan().cmp(&a.is_nan()).then(a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal)));
    // q lies in [0, 1], so that both indices lie within the values.
    let rank = q * (values.len() - 1) as f64;
    let lower = rank.floor() as usize;
    let upper = (lower + 1).min(values.len() - 1);
    let weight = rank - rank.floor();
    values[lower] * (1.0 - weight) + values[upper] * weight
}

/// A straight line through the samples by least squares: value at `origin` (milliseconds), and change per second.
pub(super) struct Line {
    pub slope: f64,
    pub intercept: f64,
}

/// The line through at least two samples.
pub(super) fn regression(points: &[Point], origin: i64) -> Option<Line> {
    let [first, _, ..] = points else { return None };
    if points.iter().all(|point| point.value == first.value) {
        let finite = first.value.is_finite();
        return Some(if finite {
            Line { slope: 0.0, intercept: first.value }
        } else {
            Line { slope: f64::NAN, intercept: f64::NAN }
        });
    }
    let n = points.len() as f64;
    let [mut sum_x, mut sum_y, mut sum_xy, mut sum_xx] = [Compensated::default(); 4];
    for point in points {
        let x = seconds(origin, point.at);
        sum_x.add(x);
        sum_y.add(point.value);
        sum_xy.add(x * point.value);
        sum_xx.add(x * x);
    }
    let [sum_x, sum_y, sum_xy, sum_xx] = [sum_x, sum_y, sum_xy, sum_xx].map(|sum| sum.raw_total());
    let covariance = sum_xy - sum_x * sum_y / n;
    let variance = sum_xx - sum_x * sum_x / n;
    let slope = covariance / variance;
    Some(Line { slope, intercept: sum_y / n - slope * sum_x / n })
}

fn seconds(from: i64, to: i64) -> f64 {
    (to - from) as f64 / 1000.0
}

/// A sum that keeps what rounding loses.
#[derive(Debug, Clone, Copy, Default)]
struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    fn add(&mut self, value: f64) {
        let total = self.sum + value;
        self.lost +=
            if self.sum.abs() >= value.abs() { (self.sum - total) + value } else { (value - total) + self.sum };
        self.sum = total;
    }

    fn raw_total(self) -> f64 {
        self.sum + self.lost
    }

    /// What is lost beside an infinity is NaN and must not be added.
    fn total(self) -> f64 {
        if self.sum.is_infinite() { self.sum } else { self.raw_total() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(samples: &[(i64, f64)]) -> Vec<Point> {
        samples.iter().map(|&(second, value)| Point { at: second * 1000, value }).collect()
    }

    fn change(samples: &[(i64, f64)], range: (i64, i64), change: Change) -> Option<f64> {
        let points = points(samples);
        let (start, end) = (range.0 * 1000, range.1 * 1000);
        extrapolated_change(Window { points: &points, start, end, step: end }, change)
    }

    #[test]
    fn samples_that_fill_the_window_are_not_extrapolated() {
        let samples = [(0, 100.0), (60, 160.0), (120, 220.0)];
        assert_eq!(change(&samples, (0, 120), Change::Increase), Some(120.0));
        assert_eq!(change(&samples, (0, 120), Change::Rate), Some(1.0));
    }

    #[test]
    fn a_gap_under_one_and_a_tenth_distances_is_bridged_whole() {
        // 120 over 120 s, 30 s missing on both sides of a window of 180 s: 120 * 180 / 120.
        let samples = [(30, 100.0), (90, 160.0), (150, 220.0)];
        assert_eq!(change(&samples, (0, 180), Change::Increase), Some(180.0));
    }

    #[test]
    fn a_longer_gap_is_bridged_by_half_a_distance() {
        // 600 s missing at the end: (120 + 0 + 30) / 120.
        let samples = [(0, 100.0), (60, 160.0), (120, 220.0)];
        assert_eq!(change(&samples, (0, 720), Change::Increase), Some(150.0));
    }

    #[test]
    fn a_counter_is_not_extrapolated_below_zero() {
        // Grew 120 in 120 s from 10: zero was 10 s before the first sample, not the 30 s of the gap.
        let samples = [(30, 10.0), (90, 70.0), (150, 130.0)];
        assert_eq!(change(&samples, (0, 150), Change::Increase), Some(130.0));
        assert_eq!(change(&samples, (0, 150), Change::Delta), Some(150.0));
    }

    #[test]
    fn a_reset_counts_from_zero() {
        // 5 → 10, reset, 3: 5 + 3.
        let samples = [(0, 5.0), (60, 10.0), (120, 3.0)];
        assert_eq!(change(&samples, (0, 120), Change::Increase), Some(8.0));
        assert_eq!(resets(&points(&samples)), 1.0);
        assert_eq!(instant_change(&points(&samples), Change::Rate), Some(3.0 / 60.0));
        assert_eq!(instant_change(&points(&samples), Change::Delta), Some(-7.0));
    }

    #[test]
    fn one_sample_has_no_rate() {
        assert_eq!(change(&[(0, 5.0)], (0, 60), Change::Rate), None);
        assert_eq!(instant_change(&points(&[(0, 5.0)]), Change::Rate), None);
        assert!(regression(&points(&[(0, 5.0)]), 0).is_none());
    }

    #[test]
    fn a_line_is_found_through_its_points() {
        let line = regression(&points(&[(0, 1.0), (10, 3.0), (20, 5.0)]), 0).unwrap();
        assert!((line.slope - 0.2).abs() < 1e-12 && (line.intercept - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nan_counts_as_equal_to_itself_for_changes_and_gives_way_for_extremes() {
        let samples = points(&[(0, f64::NAN), (1, f64::NAN), (2, 1.0), (3, f64::NAN), (4, 2.0)]);
        assert_eq!((changes(&samples), max(&samples), min(&samples)), (3.0, 2.0, 1.0));
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(0.5, vec![4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(quantile(1.0, vec![4.0, 1.0]), 4.0);
        assert_eq!(quantile(-0.1, vec![1.0]), f64::NEG_INFINITY);
        assert_eq!(quantile(1.1, vec![1.0]), f64::INFINITY);
        assert!(quantile(f64::NAN, vec![1.0]).is_nan());
    }

    #[test]
    fn sums_keep_what_rounding_loses() {
        let samples = points(&[(0, 1e100), (1, 1.0), (2, -1e100), (3, 2.0)]);
        assert_eq!(sum(&samples), 3.0);
        assert_eq!(variance(&points(&[(0, 2.0), (1, 4.0)])), 1.0);
        assert_eq!(average(&points(&[(0, f64::MAX), (1, f64::MAX)])), f64::MAX);
        assert_eq!(average(&points(&[(0, f64::INFINITY), (1, 1.0)])), f64::INFINITY);
    }
}
