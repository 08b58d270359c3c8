//! Where the level of a series changed: PELT (Killick, Fearnhead and Eckley, "Optimal detection of changepoints with a
//! linear computational cost", JASA 107, 2012), with squared error as cost and a penalty in the manner of BIC.
//!
//! Values come in, indices at which a new segment starts go out. Against single outliers the values pass a running
//! median of three first (Tukey), which keeps edges where they are; the unit of cost is the noise between near values,
//! so that a slow wave costs little and a jump costs much.

use super::series::{median, quantile};

/// Longer inputs are averaged in this many bins first: without a change PELT prunes nothing and takes quadratic time.
const MAX_BINS: usize = 2_000;
/// Samples that a level needs to be one.
const MIN_SEGMENT: usize = 3;
/// Penalty for a change, in units of ln(n) and the variance of the noise. BIC has 2; noise that is not independent
/// asks for more.
const PENALTY: f64 = 4.0;
/// Jumps under this many standard deviations of the noise are not worth telling.
const MIN_JUMP: f64 = 2.0;

/// The indices (never 0) at which a new level starts, ascending. All values must be finite.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    if values.len() < 2 * MIN_SEGMENT {
        return Vec::new();
    }
    let width = values.len().div_ceil(MAX_BINS);
    let binned: Vec<f64> = values.chunks(width).map(mean).collect();
    let noise = noise_of(&binned);
    if noise <= 0.0 {
        return Vec::new();
    }
    let centre = median(&binned);
    let scaled: Vec<f64> = binned.iter().map(|value| (value - centre) / noise).collect();
    let found = pelt(&running_median(&scaled), PENALTY * (scaled.len() as f64).ln());
    keep_jumps(found, &scaled).into_iter().map(|index| index * width).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Values this far apart are taken as independent: rates over overlapping ranges make neighbours alike.
const INDEPENDENT: usize = 6;

/// Standard deviation of the noise, from differences between values: a change of level leaves it as it is. A series
/// that mostly stands still has a hundredth of its range.
fn noise_of(values: &[f64]) -> f64 {
    let over = |lag: usize| {
        let steps: Vec<f64> = values.iter().zip(values.iter().skip(lag)).map(|(a, b)| (b - a).abs()).collect();
        // 1.4826 makes a standard deviation of a median of absolute values; a difference has twice the variance.
        1.4826 * median(&steps) / std::f64::consts::SQRT_2
    };
    let range = quantile(values, 1.0) - quantile(values, 0.0);
    over(1).max(over(INDEPENDENT.min(values.len() / 8).max(1))).max(range / 100.0)
}

fn running_median(values: &[f64]) -> Vec<f64> {
    let middle = |window: &[f64]| {
        let (a, b, c) = (window[0], window[1], window[2]);
        a.max(b).min(a.min(b).max(c))
    };
    let mut smooth = values.to_vec();
    for (index, window) in values.windows(3).enumerate() {
        smooth[index + 1] = middle(window);
    }
    smooth
}

/// Sums that give the cost of any segment in constant time.
struct Costs {
    sum: Vec<f64>,
    squares: Vec<f64>,
}

impl Costs {
    fn new(values: &[f64]) -> Self {
        let running = |of: fn(f64) -> f64| {
            let mut total = 0.0;
            let mut sums = vec![0.0];
            sums.extend(values.iter().map(|value| {
                total += of(*value);
                total
            }));
            sums
        };
        Self { sum: running(|value| value), squares: running(|value| value * value) }
    }

    /// Squared error around the mean of `values[from..to]`.
    fn of(&self, from: usize, to: usize) -> f64 {
        let sum = self.sum[to] - self.sum[from];
        (self.squares[to] - self.squares[from] - sum * sum / (to - from) as f64).max(0.0)
    }
}

/// The recursion of the paper: `best[t]` is the least cost of the first `t` values; a start that cannot win any more
/// is dropped for good.
fn pelt(values: &[f64], penalty: f64) -> Vec<usize> {
    let count = values.len();
    let costs = Costs::new(values);
    let mut best = vec![f64::INFINITY; count + 1];
    best[0] = -penalty;
    let mut previous = vec![0; count + 1];
    let mut starts = vec![0];
    for end in MIN_SEGMENT..=count {
        for &start in &starts {
            let cost = best[start] + costs.of(start, end) + penalty;
            if cost < best[end] {
                best[end] = cost;
                previous[end] = start;
            }
        }
        let limit = best[end];
        starts.retain(|&start| best[start] + costs.of(start, end) <= limit);
        // The next end is `end + 1`: a segment that starts here has its minimal length by then.
        let next = end + 1 - MIN_SEGMENT;
        if next >= MIN_SEGMENT && best[next].is_finite() {
            starts.push(next);
        }
    }
    let mut found = Vec::new();
    let mut end = count;
    while previous[end] > 0 {
        end = previous[end];
        found.push(end);
    }
    found.reverse();
    found
}

/// Drops changes whose jump is small: with little noise a slow wave looks like a stair.
fn keep_jumps(mut found: Vec<usize>, values: &[f64]) -> Vec<usize> {
    loop {
        let level = |from: usize, to: usize| median(&values[from..to]);
        let jump = |position: usize| {
            let from = if position == 0 { 0 } else { found[position - 1] };
            let to = found.get(position + 1).copied().unwrap_or(values.len());
            (level(found[position], to) - level(from, found[position])).abs()
        };
        let smallest = (0..found.len()).map(|position| (jump(position), position)).min_by(|a, b| a.0.total_cmp(&b.0));
        match smallest {
            Some((size, position)) if size < MIN_JUMP => {
                found.remove(position);
            }
            _ => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of unit range that repeats exactly: a linear congruential generator.
    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut state = seed;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as f64 / (1u64 << 31) as f64 - 0.5
            })
            .collect()
    }

    #[test]
    fn a_step_in_noise_is_found_where_it_is() {
        let mut values = noise(1, 200);
        values[120..].iter_mut().for_each(|value| *value += 3.0);
        assert_eq!(change_points(&values), [120]);
    }

    #[test]
    fn a_plateau_has_two_edges() {
        let mut values = noise(2, 300);
        values[100..150].iter_mut().for_each(|value| *value -= 4.0);
        assert_eq!(change_points(&values), [100, 150]);
    }

    #[test]
    fn noise_constants_and_single_outliers_have_no_change() {
        let none: [usize; 0] = [];
        assert_eq!(change_points(&noise(3, 500)), none);
        assert_eq!(change_points(&[7.0; 100]), none);
        let mut values = noise(4, 100);
        values[50] = 1e6;
        assert_eq!(change_points(&values), none);
    }

    #[test]
    fn a_constant_that_jumps_once_is_found() {
        let mut values = vec![0.0; 60];
        values[40..].iter_mut().for_each(|value| *value = 0.2);
        assert_eq!(change_points(&values), [40]);
    }

    #[test]
    fn long_series_are_binned_and_stay_near_the_truth() {
        let mut values = noise(5, 50_000);
        values[30_000..].iter_mut().for_each(|value| *value += 5.0);
        let found = change_points(&values);
        assert_eq!(found.len(), 1);
        assert!(found[0].abs_diff(30_000) <= 25, "{found:?}");
    }
}
