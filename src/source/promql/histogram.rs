//! `histogram_quantile`: estimates a quantile from the cumulative buckets of a classic histogram.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::QueryError;
use super::value::{Column, unite, without_name};
use crate::source::openmetrics::Labels;

/// The label that holds the upper bound of a bucket.
const BOUND: &str = "le";

#[derive(Debug, Clone, Copy, PartialEq)]
struct Bucket {
    upper: f64,
    count: f64,
}

/// A histogram: its buckets' counts at every step.
struct Histogram {
    labels: Arc<Labels>,
    bounds: Vec<Bound>,
}

struct Bound {
    upper: f64,
    counts: Vec<Option<f64>>,
}

/// The quantiles (one per step) of the histograms whose buckets are given. Columns without a bound are left out.
pub(super) fn histogram_quantile(quantiles: &[f64], buckets: Vec<Column>) -> Result<Vec<Column>, QueryError> {
    let mut positions: HashMap<Labels, usize> = HashMap::new();
    let mut histograms: Vec<Histogram> = Vec::new();
    for column in buckets {
        let Some(upper) = column.labels.get(BOUND).and_then(|bound| bound.parse::<f64>().ok()) else { continue };
        let mut labels = Labels::clone(&column.labels);
        labels.remove(BOUND);
        let position = *positions.entry(labels).or_insert_with_key(|labels| {
            histograms.push(Histogram { labels: without_name(&Arc::new(labels.clone())), bounds: Vec::new() });
            histograms.len() - 1
        });
        histograms[position].bounds.push(Bound { upper, counts: column.values });
    }
    let columns = histograms.into_iter().map(|Histogram { labels, bounds }| {
        let at_step = |(index, &q): (usize, &f64)| {
            let present =
                bounds.iter().filter_map(|bound| Some(Bucket { upper: bound.upper, count: bound.counts[index]? }));
            let present: Vec<Bucket> = present.collect();
            if present.is_empty() { None } else { Some(bucket_quantile(q, present)) }
        };
        Column { labels, values: quantiles.iter().enumerate().map(at_step).collect() }
    });
    unite(columns.collect())
}

fn bucket_quantile(q: f64, mut buckets: Vec<Bucket>) -> f64 {
    if q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    buckets.sort_by(|a, b| a.upper.total_cmp(&b.upper));
    if buckets.last().is_none_or(|last| last.upper != f64::INFINITY) {
        return f64::NAN;
    }
    let buckets = made_monotonic(merged(buckets));
    let [.., highest_finite, all] = &buckets[..] else { return f64::NAN };
    if all.count == 0.0 {
        return f64::NAN;
    }
    let rank = q * all.count;
    let found = first_reaching(&buckets[..buckets.len() - 1], rank);
    let Some(bucket) = buckets[..buckets.len() - 1].get(found) else {
        // The quantile lies over the highest finite bound; that bound is all that is known.
        return highest_finite.upper;
    };
    match found.checked_sub(1).map(|below| buckets[below]) {
        None if bucket.upper <= 0.0 => bucket.upper,
        None => bucket.upper * (rank / bucket.count),
        Some(below) => {
            below.upper + (bucket.upper - below.upper) * ((rank - below.count) / (bucket.count - below.count))
        }
    }
}

/// The first bucket whose count reaches the rank, by bisection as Prometheus does: with NaN among the counts the
/// way of searching decides what is found.
fn first_reaching(buckets: &[Bucket], rank: f64) -> usize {
    let (mut low, mut high) = (0, buckets.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if buckets[middle].count >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Adds up buckets of one bound (`le="1"` and `le="1.0"`).
fn merged(buckets: Vec<Bucket>) -> Vec<Bucket> {
    let mut merged: Vec<Bucket> = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        match merged.last_mut() {
            Some(last) if last.upper == bucket.upper => last.count += bucket.count,
            _ => merged.push(bucket),
        }
    }
    merged
}

/// Cumulative counts never fall; buckets scraped at slightly different times may seem to.
fn made_monotonic(mut buckets: Vec<Bucket>) -> Vec<Bucket> {
    let mut max = buckets.first().map_or(0.0, |first| first.count);
    for bucket in &mut buckets {
        if bucket.count > max {
            max = bucket.count;
        } else if bucket.count < max {
            bucket.count = max;
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantile(q: f64, buckets: &[(f64, f64)]) -> f64 {
        bucket_quantile(q, buckets.iter().map(|&(upper, count)| Bucket { upper, count }).collect())
    }

    #[test]
    fn a_quantile_is_interpolated_within_its_bucket() {
        let buckets = [(0.1, 10.0), (0.5, 30.0), (f64::INFINITY, 40.0)];
        // Rank 20 lies in the middle of the 20 observations between 0.1 and 0.5.
        assert!((quantile(0.5, &buckets) - 0.3).abs() < 1e-12);
        // Rank 4 of the 10 observations between 0 and 0.1.
        assert!((quantile(0.1, &buckets) - 0.04).abs() < 1e-12);
    }

    #[test]
    fn a_quantile_over_the_highest_finite_bound_is_that_bound() {
        assert_eq!(quantile(0.9, &[(0.1, 10.0), (0.5, 30.0), (f64::INFINITY, 40.0)]), 0.5);
    }

    #[test]
    fn a_first_bound_that_is_not_positive_is_the_answer_itself() {
        assert_eq!(quantile(0.1, &[(-1.0, 10.0), (f64::INFINITY, 20.0)]), -1.0);
    }

    #[test]
    fn incomplete_histograms_have_no_quantile() {
        assert!(quantile(0.5, &[(0.1, 10.0), (0.5, 30.0)]).is_nan());
        assert!(quantile(0.5, &[(f64::INFINITY, 30.0)]).is_nan());
        assert!(quantile(0.5, &[(0.1, 0.0), (f64::INFINITY, 0.0)]).is_nan());
        assert_eq!(quantile(2.0, &[(f64::INFINITY, 30.0)]), f64::INFINITY);
    }

    #[test]
    fn counts_that_fall_are_lifted_and_equal_bounds_are_added() {
        // 1 and 1.0 are one bound of 10 + 10; the 15 at 2 is lifted to 20.
        let buckets = [(1.0, 10.0), (1.0, 10.0), (2.0, 15.0), (f64::INFINITY, 20.0)];
        assert_eq!(quantile(0.5, &buckets), 0.5);
    }
}
