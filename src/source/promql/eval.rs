//! The evaluator: walks the syntax tree and evaluates every node at all steps of the query.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use promql_parser::parser::{Expr, SubqueryExpr, UnaryExpr};

use super::aggregate::aggregate;
use super::binary::binary;
use super::call::call;
use super::error::QueryError;
use super::select::{Pick, Windows, milliseconds};
use super::to_series;
use super::value::{Grid, Value, drop_names};
use crate::domain::Series;
use crate::source::openmetrics::{Point, SeriesStore};

/// Step of a subquery that names none: the evaluation interval that Prometheus has when its configuration sets none.
const DEFAULT_SUBQUERY_STEP_MS: i64 = 60 * 1000;

/// Values that one query may produce in all its nodes together; 16 bytes each while they live.
const MAX_VALUES: usize = 20_000_000;

/// Samples that the range functions of one query may look at, a few seconds of work.
const MAX_WORK: usize = 2_000_000_000;

/// Evaluates one query over one store.
pub(super) struct Evaluator<'a> {
    pub store: &'a SeriesStore,
    /// First and last instant of the whole query, for `@ start()` and `@ end()`.
    pub query: (i64, i64),
    values: Cell<usize>,
    work: Cell<usize>,
}

impl<'a> Evaluator<'a> {
    pub fn new(store: &'a SeriesStore, grid: Grid) -> Self {
        let end = grid.times().last().unwrap_or(grid.start);
        Self { store, query: (grid.start, end), values: Cell::new(0), work: Cell::new(0) }
    }

    /// The value of an expression at each step.
    pub fn eval(&self, expr: &Expr, grid: Grid) -> Result<Value, QueryError> {
        self.charge(1, grid.count)?;
        match expr {
            Expr::NumberLiteral(number) => Ok(Value::Scalar(vec![number.val; grid.count])),
            Expr::StringLiteral(text) => Ok(Value::Text(text.val.clone())),
            Expr::Paren(paren) => self.eval(&paren.expr, grid),
            Expr::Unary(unary) => self.negate(unary, grid),
            Expr::VectorSelector(selector) => self.select_instants(selector, grid, Pick::Value).map(Value::Vector),
            Expr::Binary(expr) => binary(self, expr, grid),
            Expr::Aggregate(expr) => aggregate(self, expr, grid).map(Value::Vector),
            Expr::Call(expr) => call(self, expr, grid),
            Expr::MatrixSelector(_) | Expr::Subquery(_) => {
                Err(QueryError::Execution(format!("`{expr}` is a range vector; wrap it in a function such as rate()")))
            }
            Expr::Extension(extension) => Err(QueryError::Unsupported(extension.expr.name().to_owned())),
        }
    }

    fn negate(&self, unary: &UnaryExpr, grid: Grid) -> Result<Value, QueryError> {
        match self.eval(&unary.expr, grid)? {
            Value::Scalar(values) => Ok(Value::Scalar(values.into_iter().map(|value| -value).collect())),
            other => {
                let columns = other.into_vector()?.into_iter().map(|column| column.map(|value| -value));
                drop_names(columns.collect()).map(Value::Vector)
            }
        }
    }

    /// The windows of a range vector: a range selector or a subquery.
    pub fn windows<'s>(&'s self, expr: &'s Expr, grid: Grid) -> Result<Windows<'s>, QueryError> {
        let windows = match unwrap_parens(expr) {
            Expr::MatrixSelector(selector) => self.select_ranges(selector)?,
            Expr::Subquery(subquery) => self.subquery(subquery, grid)?,
            other => return Err(QueryError::Execution(format!("expected a range vector, found `{other}`"))),
        };
        self.work.set(self.work.get().saturating_add(windows.work(grid)));
        if self.work.get() > MAX_WORK {
            return Err(QueryError::TooLarge("its ranges hold too many samples; take a longer step".to_owned()));
        }
        Ok(windows)
    }

    /// Evaluates the inner expression at every multiple of the subquery's step that any window needs.
    fn subquery(&self, subquery: &SubqueryExpr, grid: Grid) -> Result<Windows<'static>, QueryError> {
        let when = self.when(subquery.offset.as_ref(), subquery.at.as_ref());
        let range = milliseconds(subquery.range);
        let step = subquery.step.map_or(DEFAULT_SUBQUERY_STEP_MS, milliseconds).max(1);
        let last_step = grid.times().last().unwrap_or(grid.start);
        let (first, last) = (when.at(grid.start) - range, when.at(last_step));
        // The first multiple of the step at or after `first`.
        let start = -(-first).div_euclid(step) * step;
        let count = if last < start { 0 } else { ((last - start) / step + 1) as usize };
        let inner = Grid { start, step, count };
        self.charge(1, count)?;
        let columns = self.eval(&subquery.expr, inner)?.into_vector()?;
        let series = columns.into_iter().map(|column| {
            let values = inner.times().zip(column.values);
            let points: Vec<Point> = values.filter_map(|(at, value)| Some(Point { at, value: value? })).collect();
            (Arc::clone(&column.labels), Cow::Owned(points))
        });
        Ok(Windows { series: series.collect(), when, range })
    }

    /// Counts the values that a node is about to produce against the query's budget.
    pub fn charge(&self, columns: usize, steps: usize) -> Result<(), QueryError> {
        self.values.set(self.values.get().saturating_add(columns.saturating_mul(steps)));
        if self.values.get() > MAX_VALUES {
            return Err(QueryError::TooLarge(
                "it has too many values; narrow the selector or take a longer step".to_owned(),
            ));
        }
        Ok(())
    }

    /// The samples of a range selector or subquery that is the whole query; `None` for any other expression.
    pub fn raw_samples(&self, expr: &Expr, at: i64) -> Result<Option<Vec<Series>>, QueryError> {
        if !matches!(unwrap_parens(expr), Expr::MatrixSelector(_) | Expr::Subquery(_)) {
            return Ok(None);
        }
        let windows = self.windows(expr, Grid { start: at, step: 1, count: 1 })?;
        let end = windows.when.at(at);
        let within = |point: &Point| end - windows.range <= point.at && point.at <= end;
        let series = windows.series.iter().map(|(labels, points)| {
            let points: Vec<Point> = points.iter().copied().filter(within).collect();
            to_series(labels, &points)
        });
        Ok(Some(series.filter(|series| !series.samples.is_empty()).collect()))
    }
}

pub(super) fn unwrap_parens(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => unwrap_parens(&paren.expr),
        other => other,
    }
}
