//! What a series did over a window: baseline, peak, shape, onset, score. Samples come in as the source gave them (gaps,
//! NaN, infinities, equal times); a [`SeriesSummary`] goes out whose numbers are all finite.
//!
//! The score is the distance of the peak from the median of the time before, in interquartile ranges of that time, as
//! BARO's RobustScorer (Pham, Ha, Zhang, "BARO: Robust root cause analysis for microservices", FSE 2024) has it, with a
//! floor under the range so that a series that stood still does not score without bound, and with what the series did
//! before counted as normal, so that a job that runs every ten minutes is no news.

use jiff::{SignedDuration, Timestamp};

use super::change_points::change_points;
use crate::domain::{ChangePoint, Sample, Series, SeriesShape, SeriesSummary, Window};

/// A peak this many spreads from the baseline stands out: about four standard deviations of normal noise.
pub const ANOMALOUS: f64 = 3.0;
/// The band of the baseline, in spreads on either side of the median: Tukey's fences.
const BAND: f64 = 2.0;
/// Samples that a baseline needs before its spread is trusted.
const ENOUGH_BEFORE: usize = 5;
/// Points kept for plots.
const MAX_POINTS: usize = 240;
/// Values beyond this are dropped as infinities are: their squares would not be finite.
const LARGEST: f64 = 1e150;
/// Spreads at which an excursion counts that was as large before: so one must be half as large again to stand out.
const REPETITION: f64 = 2.0;

/// Summarises `series` over `window`. `alert_at` is the time by which the trouble had begun, where that is known.
pub fn summarize(expr: &str, series: &Series, window: Window, alert_at: Option<Timestamp>) -> SeriesSummary {
    let samples = finite(&series.samples);
    let times: Vec<Timestamp> = samples.iter().map(|sample| sample.at).collect();
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    let changes = change_points(&values);
    let before = reference(&times, &values, &changes, alert_at);
    let excursion = Excursion::find(&values, before);
    let ended = has_ended(&times, window);
    SeriesSummary {
        expr: expr.to_owned(),
        labels: series.labels.clone(),
        baseline: excursion.baseline,
        peak: excursion.peak.map_or(0.0, |index| values[index]),
        peak_at: excursion.peak.map(|index| times[index]),
        now: if ended { None } else { values.last().copied() },
        shape: if ended { SeriesShape::Absent } else { shape_of(&values, &excursion, &changes) },
        onset: excursion.onset.map(|index| times[index]),
        change_points: levels(&times, &values, &changes),
        score: excursion.score,
        samples: series.samples.len(),
        points: plot_points(&samples, excursion.baseline),
    }
}

/// The finite samples in order of time; of several at one instant the last counts.
fn finite(samples: &[Sample]) -> Vec<Sample> {
    let mut kept: Vec<Sample> = samples.iter().copied().filter(|sample| sample.value.abs() <= LARGEST).collect();
    kept.sort_by_key(|sample| sample.at);
    kept.dedup_by(|later, earlier| {
        let same = later.at == earlier.at;
        if same {
            *earlier = *later;
        }
        same
    });
    kept
}

/// The `q` quantile with linear interpolation; 0 without values.
pub(super) fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = q * last as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    below + (above - below) * position.fract()
}

pub(super) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// How many leading samples count as the time before. With an alert: up to some time before it, as trouble starts
/// before its alert does; else the first half. A change of level within it that is not taken back ends it earlier.
fn reference(times: &[Timestamp], values: &[f64], changes: &[usize], alert_at: Option<Timestamp>) -> usize {
    let half = values.len() / 2;
    let by_alert = alert_at.and_then(|alert_at| {
        let first = *times.first()?;
        let lead = alert_at.duration_since(first) / 6;
        let until = alert_at.checked_sub(lead.max(SignedDuration::ZERO)).ok()?;
        Some(times.partition_point(|at| *at < until))
    });
    // Of a short series every sample counts; of a long one so few before the alert say that it is not the time before.
    let least = if values.len() < 2 * ENOUGH_BEFORE { 1 } else { ENOUGH_BEFORE };
    let until = by_alert.filter(|&count| count >= least && count < values.len()).unwrap_or(half);
    let Some(&change) = changes.iter().find(|&&change| change < until && change >= ENOUGH_BEFORE) else {
        return until;
    };
    let level = Level::of(&values[..change], values);
    let later: Vec<f64> = values[change..until].to_vec();
    let away = later.iter().filter(|value| level.distance(**value) > BAND).count();
    if away * 10 >= later.len() * 8 { change } else { until }
}

/// The level of the time before, and how far from it is normal.
struct Level {
    median: f64,
    spread: f64,
}

impl Level {
    fn of(before: &[f64], all: &[f64]) -> Self {
        let mut sorted = before.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = quantile_of_sorted(&sorted, 0.5);
        let iqr = quantile_of_sorted(&sorted, 0.75) - quantile_of_sorted(&sorted, 0.25);
        let mut deviations: Vec<f64> = before.iter().map(|value| (value - median).abs()).collect();
        deviations.sort_by(|a, b| b.total_cmp(a));
        // One outlier in fifty, and always one, says nothing about what is normal.
        let repeated = deviations.get((before.len() / 50).max(1)).copied().unwrap_or(0.0);
        let (lowest, highest) = all
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
        let range = (highest - lowest).max(0.0);
        // Nothing is known of the noise of a constant: a fiftieth of its jump, and a thousandth of its level.
        let floor = if iqr > 0.0 { range / 1e6 } else { range / 50.0 };
        // A few samples tell little of the noise, unless they are the same to the last digit.
        let is_constant = all.iter().filter(|value| **value == median).count() >= 2;
        let is_uncertain = before.len() < ENOUGH_BEFORE && !is_constant;
        let uncertainty = if is_uncertain { room(median, lowest, highest) / 5.0 } else { 0.0 };
        let floor = floor.max(median.abs() / 1000.0).max(uncertainty);
        let spread = iqr.max(repeated / REPETITION).max(floor).max(f64::MIN_POSITIVE);
        Self { median, spread }
    }

    fn distance(&self, value: f64) -> f64 {
        (value - self.median).abs() / self.spread
    }
}

/// How far a level is from where its quantity ends: zero, or for a ratio or percentage that is high by nature (an
/// availability, a hit rate) its upper end.
fn room(median: f64, lowest: f64, highest: f64) -> f64 {
    let is_high = |end: f64| lowest >= 0.0 && highest <= end && median > 0.9 * end;
    [1.0, 100.0].into_iter().find(|end| is_high(*end)).map_or(median.abs(), |end| end - median)
}

/// The stretch that leads to the value farthest from the time before.
struct Excursion {
    baseline: f64,
    spread: f64,
    peak: Option<usize>,
    /// Set when the peak stands out.
    onset: Option<usize>,
    score: f64,
}

impl Excursion {
    fn find(values: &[f64], before: usize) -> Self {
        let level = Level::of(&values[..before], values);
        let peak = farthest(values, before, level.median);
        let Some(peak) =
            peak.filter(|&peak| before >= 1 && values.len() >= 3 && level.distance(values[peak]) >= ANOMALOUS)
        else {
            return Self::none(values);
        };
        let onset = walk_back(values, &level, peak);
        // The time before is now known better: it ends at the onset.
        let level = if onset >= ENOUGH_BEFORE { Level::of(&values[..onset], values) } else { level };
        let score = level.distance(values[peak]);
        if score < ANOMALOUS {
            return Self::none(values);
        }
        Self { baseline: level.median, spread: level.spread, peak: Some(peak), onset: Some(onset), score }
    }

    fn none(values: &[f64]) -> Self {
        let level = Level::of(values, values);
        let peak = farthest(values, 0, level.median);
        // A single sample, or two, have nothing to be compared with.
        let score = peak.map_or(0.0, |peak| if values.len() < 3 { 0.0 } else { level.distance(values[peak]) });
        Self { baseline: level.median, spread: level.spread, peak, onset: None, score: score.min(ANOMALOUS) }
    }
}

fn farthest(values: &[f64], from: usize, median: f64) -> Option<usize> {
    (from..values.len()).rev().max_by(|&a, &b| (values[a] - median).abs().total_cmp(&(values[b] - median).abs()))
}

/// The earliest sample of the excursion that leads to the peak: outside the band, on the peak's side. Samples back
/// inside the band for a moment do not end it; for longer they do, unless what lies before them stands out by itself.
fn walk_back(values: &[f64], level: &Level, peak: usize) -> usize {
    let up = values[peak] > level.median;
    let outside = |value: f64, by: f64| level.distance(value) > by && (value > level.median) == up;
    let short_gap = 2;
    let long_gap = (values.len() / 20).max(short_gap);
    let mut onset = peak;
    for index in (0..peak).rev() {
        let gap = onset - index - 1;
        if gap > long_gap {
            break;
        }
        let needed = if gap > short_gap { ANOMALOUS } else { BAND };
        if outside(values[index], needed) {
            onset = index;
        }
    }
    onset
}

/// Whether samples stopped well before the window's end: longer ago than two and a half of their usual distances.
fn has_ended(times: &[Timestamp], window: Window) -> bool {
    let Some(last) = times.last() else { return true };
    let distances: Vec<f64> = times.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64()).collect();
    !distances.is_empty() && window.end.duration_since(*last).as_secs_f64() > 2.5 * median(&distances)
}

fn shape_of(values: &[f64], excursion: &Excursion, changes: &[usize]) -> SeriesShape {
    let (Some(peak), Some(onset)) = (excursion.peak, excursion.onset) else {
        return shape_without_excursion(values, changes);
    };
    let inside = |value: &f64| (value - excursion.baseline).abs() <= BAND * excursion.spread;
    let tail = &values[values.len() - (values.len() / 20).clamp(1, 3)..];
    if tail.iter().all(inside) {
        return if values[peak] > excursion.baseline { SeriesShape::Spike } else { SeriesShape::Dip };
    }
    if is_saturated(values, excursion.baseline, onset, peak) {
        return SeriesShape::Saturated;
    }
    if is_ramp(&values[onset..], excursion.baseline) { SeriesShape::Ramp } else { SeriesShape::Step }
}

/// Without a peak that stands out a series may still climb all the way, or have moved a little for good.
fn shape_without_excursion(values: &[f64], changes: &[usize]) -> SeriesShape {
    if values.len() >= 2 * ENOUGH_BEFORE && is_trend(values) {
        return SeriesShape::Ramp;
    }
    if let [only] = changes {
        let (before, after) = values.split_at(*only);
        let level = Level::of(before, values);
        if before.len() >= ENOUGH_BEFORE && level.distance(median(after)) > BAND {
            return SeriesShape::Step;
        }
    }
    SeriesShape::Flat
}

/// Holds at a ceiling: from some time after the onset on, most values are the highest one, though the series was not
/// made of constants before.
fn is_saturated(values: &[f64], baseline: f64, onset: usize, peak: usize) -> bool {
    let ceiling = values[peak];
    if ceiling <= baseline || distinct(&values[..onset]) < 3 {
        return false;
    }
    let tolerance = (ceiling - baseline) * 0.005;
    let at_ceiling = |value: &&f64| ceiling - **value <= tolerance;
    let Some(reached) = values[onset..].iter().position(|value| at_ceiling(&value)) else { return false };
    let since = &values[onset + reached..];
    since.len() >= ENOUGH_BEFORE && since.iter().filter(at_ceiling).count() * 10 >= since.len() * 7
}

fn distinct(values: &[f64]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    sorted.len()
}

/// Whether the way from the baseline to the end took more than a third of the time since the onset, in one direction.
fn is_ramp(since: &[f64], baseline: f64) -> bool {
    if since.len() < ENOUGH_BEFORE {
        return false;
    }
    let tail = median(&since[since.len() - since.len().div_ceil(10)..]);
    let arrived = since.iter().position(|value| (value - baseline) / (tail - baseline) >= 0.8);
    arrived.is_some_and(|index| index * 3 > since.len()) && is_trend(since)
}

/// Whether a straight line explains the values: coefficient of determination over .8.
fn is_trend(values: &[f64]) -> bool {
    let count = values.len() as f64;
    let (mean_x, mean_y) = ((count - 1.0) / 2.0, values.iter().sum::<f64>() / count);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let (x, y) = (index as f64 - mean_x, value - mean_y);
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    // Rounding makes a slope of a constant.
    let noise = 1e-9 * mean_y * mean_y * count;
    xx > 0.0 && yy > noise && xy / xx.sqrt() * (xy / xx.sqrt()) > 0.8 * yy
}

fn levels(times: &[Timestamp], values: &[f64], changes: &[usize]) -> Vec<ChangePoint> {
    let mean = |from: usize, to: usize| values[from..to].iter().sum::<f64>() / (to - from) as f64;
    (0..changes.len())
        .map(|position| {
            let from = if position == 0 { 0 } else { changes[position - 1] };
            let to = changes.get(position + 1).copied().unwrap_or(values.len());
            let at = changes[position];
            ChangePoint { at: times[at], before: mean(from, at), after: mean(at, to) }
        })
        .collect()
}

/// At most [`MAX_POINTS`]: of each stretch the value farthest from the baseline, so that no peak is lost.
fn plot_points(samples: &[Sample], baseline: f64) -> Vec<(i64, f64)> {
    let width = samples.len().div_ceil(MAX_POINTS).max(1);
    samples
        .chunks(width)
        .filter_map(|chunk| {
            chunk.iter().max_by(|a, b| (a.value - baseline).abs().total_cmp(&(b.value - baseline).abs()))
        })
        .map(|sample| (sample.at.as_second(), sample.value))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: i64 = 1_772_600_000;
    const STEP: i64 = 15;

    fn at(index: usize) -> Timestamp {
        Timestamp::from_second(START + STEP * index as i64).unwrap()
    }

    fn summary(values: &[f64]) -> SeriesSummary {
        let samples = values.iter().enumerate().map(|(index, &value)| Sample { at: at(index), value }).collect();
        let series = Series { samples, ..Series::default() };
        summarize("x", &series, Window::new(at(0), at(values.len().saturating_sub(1))), None)
    }

    /// Noise between 0 and `size` that repeats exactly.
    fn noise(count: usize, size: f64) -> Vec<f64> {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        (0..count).map(|_| size * next()).collect()
    }

    fn with(mut values: Vec<f64>, from: usize, change: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        for (index, value) in values.iter_mut().enumerate().skip(from) {
            *value = change(index - from, *value);
        }
        values
    }

    #[test]
    fn shapes_are_told_apart() {
        let calm = || noise(200, 1.0);
        let burst = |i: usize, v: f64| if i < 20 { v + 8.0 } else { v };
        for (name, values, shape, onset) in [
            ("noise", calm(), SeriesShape::Flat, None),
            ("constant", vec![3.0; 200], SeriesShape::Flat, None),
            ("spike", with(calm(), 120, burst), SeriesShape::Spike, Some(120)),
            ("dip", with(calm(), 120, |i, v| -burst(i, -v)), SeriesShape::Dip, Some(120)),
            ("step", with(calm(), 130, |_, v| v + 6.0), SeriesShape::Step, Some(130)),
            ("early step", with(calm(), 40, |_, v| v + 6.0), SeriesShape::Step, Some(40)),
            ("step of a constant", with(vec![3.0; 200], 150, |_, _| 2.0), SeriesShape::Step, Some(150)),
            (
                "pool",
                with(noise(200, 10.0), 140, |i, v| (v + i as f64 * 5.0).min(50.0)),
                SeriesShape::Saturated,
                Some(143),
            ),
            ("ramp", with(calm(), 100, |i, v| v + i as f64 * 0.2), SeriesShape::Ramp, Some(110)),
        ] {
            let found = summary(&values);
            assert_eq!(found.shape, shape, "{name}: {found:?}");
            let index = found.onset.map(|onset| ((onset.as_second() - START) / STEP) as usize);
            match (index, onset) {
                (Some(index), Some(onset)) => assert!(index.abs_diff(onset) <= 6, "{name}: {index} for {onset}"),
                (index, onset) => assert_eq!(index, onset, "{name}"),
            }
        }
    }

    #[test]
    fn a_slow_climb_over_the_whole_window_is_a_ramp() {
        let values = with(noise(200, 0.2), 0, |i, v| v + i as f64 * 0.01);
        assert_eq!(summary(&values).shape, SeriesShape::Ramp);
    }

    #[test]
    fn what_happens_every_ten_minutes_is_normal() {
        let every = |i: usize, v: f64| if i % 40 < 2 { v + 20.0 } else { v };
        let found = summary(&with(noise(240, 1.0), 0, every));
        assert_eq!((found.shape, found.onset), (SeriesShape::Flat, None), "{found:?}");
    }

    #[test]
    fn a_series_that_ended_is_absent_and_has_no_value_now() {
        let samples = (0..100).map(|index| Sample { at: at(index), value: 1.0 }).collect();
        let series = Series { samples, ..Series::default() };
        let found = summarize("up", &series, Window::new(at(0), at(200)), None);
        assert_eq!((found.shape, found.now), (SeriesShape::Absent, None));
    }

    #[test]
    fn a_jump_from_a_constant_scores_high_and_a_tiny_wiggle_does_not() {
        let jump = summary(&with(vec![0.0; 100], 80, |_, _| 0.18));
        assert_eq!((jump.score, jump.baseline, jump.peak, jump.now), (50.0, 0.0, 0.18, Some(0.18)));
        let wiggle = summary(&with(vec![100.0; 100], 80, |i, v| v + (i % 2) as f64 * 0.01));
        assert_eq!(wiggle.shape, SeriesShape::Flat, "{wiggle:?}");
    }

    #[test]
    fn an_alert_time_keeps_the_trouble_out_of_the_baseline() {
        let values = with(noise(100, 1.0), 30, |_, v| v + 5.0);
        let samples = values.iter().enumerate().map(|(index, &value)| Sample { at: at(index), value }).collect();
        let series = Series { samples, ..Series::default() };
        let found = summarize("x", &series, Window::new(at(0), at(99)), Some(at(33)));
        assert_eq!((found.shape, found.onset), (SeriesShape::Step, Some(at(30))));
        assert!(found.score > 8.0, "{found:?}");
    }

    #[test]
    fn plots_keep_the_peak_of_a_long_series() {
        let mut values = noise(5_000, 1.0);
        values[4_321] = 99.0;
        let found = summary(&values);
        assert!(found.points.len() <= 240);
        assert!(found.points.iter().any(|point| point.1 == 99.0));
    }

    fn any_value() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => -1e3..1e3f64,
            1 => Just(0.0),
            1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(f64::MAX), Just(f64::MIN_POSITIVE)],
            1 => any::<f64>(),
        ]
    }

    proptest! {
        #[test]
        fn any_series_gives_finite_numbers(
            samples in prop::collection::vec((0i64..600, any_value()), 0..90),
            alert in prop::option::of(-100i64..800),
        ) {
            let instant = |second: i64| Timestamp::from_second(START + second).unwrap();
            let samples: Vec<Sample> = samples.iter().map(|&(at, value)| Sample { at: instant(at), value }).collect();
            let count = samples.len();
            let series = Series { samples, ..Series::default() };
            let found = summarize("x", &series, Window::new(instant(0), instant(600)), alert.map(instant));
            prop_assert!(found.score.is_finite() && found.score >= 0.0);
            prop_assert!(found.baseline.is_finite() && found.peak.is_finite());
            prop_assert!(found.now.is_none_or(f64::is_finite));
            prop_assert!(found.change_points.iter().all(|change| change.before.is_finite() && change.after.is_finite()));
            prop_assert!(found.points.len() <= MAX_POINTS && found.points.iter().all(|point| point.1.is_finite()));
            prop_assert_eq!(found.samples, count);
        }
    }
}
