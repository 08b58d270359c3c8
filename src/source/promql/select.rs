//! Selectors: which series and which of their samples an expression sees at each step.
//!
//! The rules are those of Prometheus 2: an instant selector sees the latest sample not older than five minutes, a
//! range selector every sample from `t - range` to `t`, *both ends included*. Prometheus 3 leaves the oldest end
//! out. The rules of 2 are kept because they are what the real server that our results are compared with does
//! (2.42, the one that distributions package), and because a scrape that falls exactly on both ends then counts,
//! so that `rate(x[15s])` over a 15 s scrape of a recorded incident has a value instead of none.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use promql_parser::label::Matcher;
use promql_parser::parser::{AtModifier, Expr, MatrixSelector, Offset, VectorSelector};

use super::error::QueryError;
use super::eval::Evaluator;
use super::parse::plain_matchers;
use super::value::{Column, Grid};
use crate::source::openmetrics::{Ends, Labels, Point, SeriesStore, StoredSeries};

/// How old the latest sample of a series may be to stand for its present value.
pub(super) const LOOKBACK_MS: i64 = 5 * 60 * 1000;

/// Durations are cut here so that sums of a few of them and of instants stay within 64 bits: 10,000 years.
const MAX_DURATION_MS: u128 = 315_360_000_000_000;

/// What an instant selector takes from the sample that it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    Value,
    /// The instant of the sample in seconds, for `timestamp()`.
    Time,
}

/// When a selector looks, relative to the step at which it is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// This much before the step.
    Before(i64),
    /// At one instant whatever the step (`@`).
    Fixed(i64),
}

impl When {
    pub fn at(self, step: i64) -> i64 {
        match self {
            Self::Before(offset) => step - offset,
            Self::Fixed(instant) => instant,
        }
    }
}

/// The samples that a range selector sees: for every series the whole of its samples, cut per step by [`window`].
pub(super) struct Windows<'a> {
    pub series: Vec<(Arc<Labels>, Cow<'a, [Point]>)>,
    pub when: When,
    pub range: i64,
}

/// The samples of one series at one step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'a> {
    pub points: &'a [Point],
    /// Ends of the range asked, both included.
    pub start: i64,
    pub end: i64,
    /// The step at which the expression is evaluated.
    pub step: i64,
}

/// The series that match, as the store holds them.
pub(super) fn matching<'s>(
    store: &'s SeriesStore,
    selector: &VectorSelector,
) -> Result<Vec<&'s StoredSeries>, QueryError> {
    let matchers = plain_matchers(&selector.matchers)?;
    let matches = |series: &&StoredSeries| {
        let label = |name: &str| series.labels.get(name).map_or("", String::as_str);
        matchers.iter().all(|matcher| matcher.is_match(label(&matcher.name)))
    };
    Ok(store.candidates(selector.name.as_deref()).filter(matches).collect())
}

impl Evaluator<'_> {
    pub fn when(&self, offset: Option<&Offset>, at: Option<&AtModifier>) -> When {
        let offset = match offset {
            None => 0,
            Some(Offset::Pos(offset)) => milliseconds(*offset),
            Some(Offset::Neg(offset)) => -milliseconds(*offset),
        };
        match at {
            None => When::Before(offset),
            Some(AtModifier::Start) => When::Fixed(self.query.0 - offset),
            Some(AtModifier::End) => When::Fixed(self.query.1 - offset),
            Some(AtModifier::At(instant)) => When::Fixed(since_epoch(*instant) - offset),
        }
    }

    /// The value of every series at each step.
    pub fn select_instants(
        &self,
        selector: &VectorSelector,
        grid: Grid,
        pick: Pick,
    ) -> Result<Vec<Column>, QueryError> {
        let when = self.when(selector.offset.as_ref(), selector.at.as_ref());
        let matching = matching(self.store, selector)?;
        self.charge(matching.len(), grid.count)?;
        let columns = matching.into_iter().map(|series| Column {
            labels: Arc::clone(&series.labels),
            values: instants(&series.points, grid, when, pick),
        });
        Ok(columns.filter(|column| !column.is_empty()).collect())
    }

    /// The samples of every series from which each step takes its window.
    pub fn select_ranges<'s>(&'s self, selector: &'s MatrixSelector) -> Result<Windows<'s>, QueryError> {
        let when = self.when(selector.vs.offset.as_ref(), selector.vs.at.as_ref());
        let series = matching(self.store, &selector.vs)?.into_iter();
        let series = series.map(|series| (Arc::clone(&series.labels), real_points(series))).collect();
        Ok(Windows { series, when, range: milliseconds(selector.range) })
    }
}

/// The samples of a series without stale markers, which a range never holds.
pub(super) fn real_points(series: &StoredSeries) -> Cow<'_, [Point]> {
    match series.ends {
        Ends::Unmarked => Cow::Borrowed(&series.points),
        Ends::Marked => series.points.iter().copied().filter(|point| !point.is_stale_marker()).collect(),
    }
}

/// The latest sample at each step, unless it is too old or says that the series has ended.
fn instants(points: &[Point], grid: Grid, when: When, pick: Pick) -> Vec<Option<f64>> {
    let mut after = 0;
    let step_value = |step| {
        let instant = when.at(step);
        // Instants ascend with the steps, so that one pass over the samples serves all of them.
        after += points[after..].iter().take_while(|point| point.at <= instant).count();
        let latest = points[..after].last()?;
        if latest.at < instant - LOOKBACK_MS || latest.is_stale_marker() {
            return None;
        }
        Some(match pick {
            Pick::Value => latest.value,
            Pick::Time => latest.at as f64 / 1000.0,
        })
    };
    grid.times().map(step_value).collect()
}

impl Windows<'_> {
    /// Evaluates `f` on the window of every series at every step where it holds a sample. `f` also gets the number
    /// of the step.
    pub fn evaluate(&self, grid: Grid, f: impl Fn(Window<'_>, usize) -> Option<f64>) -> Vec<Column> {
        let columns = self.series.iter().map(|(labels, points)| {
            let (mut first, mut after) = (0, 0);
            let values = grid.times().enumerate().map(|(index, step)| {
                let end = self.when.at(step);
                let start = end - self.range;
                after += points[after..].iter().take_while(|point| point.at <= end).count();
                first += points[first..].iter().take_while(|point| point.at < start).count();
                let points = points.get(first..after).filter(|points| !points.is_empty())?;
                f(Window { points, start, end, step }, index)
            });
            Column { labels: Arc::clone(labels), values: values.collect() }
        });
        columns.filter(|column| !column.is_empty()).collect()
    }

    /// An upper bound of the samples that evaluation looks at, for the query's budget.
    pub fn work(&self, grid: Grid) -> usize {
        let samples: usize = self.series.iter().map(|(_, points)| points.len()).sum();
        let overlap = (self.range / grid.step.max(1)).clamp(1, grid.count.max(1) as i64) as usize;
        samples.saturating_mul(overlap).saturating_add(self.series.len().saturating_mul(grid.count))
    }
}

pub(super) fn milliseconds(duration: Duration) -> i64 {
    // Cut to the maximum, which fits.
    duration.as_millis().min(MAX_DURATION_MS) as i64
}

fn since_epoch(instant: SystemTime) -> i64 {
    match instant.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => milliseconds(after),
        Err(before) => -milliseconds(before.duration()),
    }
}

/// The matchers of a selector; none for any other expression.
pub(super) fn selector_matchers(expr: &Expr) -> Result<&[Matcher], QueryError> {
    match expr {
        Expr::VectorSelector(selector) => plain_matchers(&selector.matchers),
        Expr::MatrixSelector(selector) => plain_matchers(&selector.vs.matchers),
        _ => Ok(&[]),
    }
}
