//! Function calls: finds the function, evaluates its arguments, applies it. Names that are not here are refused.

use promql_parser::parser::{Call, Expr};

use super::error::QueryError;
use super::eval::{Evaluator, unwrap_parens};
use super::histogram::histogram_quantile;
use super::labels::{absent_labels, label_join, label_replace};
use super::over_time::{self, Change};
use super::select::{Pick, Window};
use super::value::{Column, Grid, Value, drop_names};
use super::{calendar, math};

/// The value of a call at each step.
pub(super) fn call(evaluator: &Evaluator<'_>, call: &Call, grid: Grid) -> Result<Value, QueryError> {
    let arguments = Arguments { evaluator, call, grid };
    let name = call.func.name;
    if let Some(f) = range_function(name) {
        return arguments.over_windows(0, Names::Drop, |window, _| f(window));
    }
    if let Some(f) = math::function(name) {
        let columns = arguments.vector(0)?.into_iter().map(|column| column.map(f));
        return drop_names(columns.collect()).map(Value::Vector);
    }
    if let Some(f) = calendar::function(name) {
        return arguments.calendar(f);
    }
    match name {
        "quantile_over_time" => {
            let q = arguments.scalar(0)?;
            arguments.over_windows(1, Names::Drop, |window, step| {
                Some(over_time::quantile(q[step], window.points.iter().map(|point| point.value).collect()))
            })
        }
        "predict_linear" => {
            let ahead = arguments.scalar(1)?;
            arguments.over_windows(0, Names::Drop, |window, step| {
                let line = over_time::regression(window.points, window.step)?;
                Some(line.slope * ahead[step] + line.intercept)
            })
        }
        "last_over_time" => {
            arguments.over_windows(0, Names::Keep, |window, _| window.points.last().map(|point| point.value))
        }
        "absent_over_time" => arguments.absent_over_time(),
        "absent" => arguments.absent(),
        "histogram_quantile" => histogram_quantile(&arguments.scalar(0)?, arguments.vector(1)?).map(Value::Vector),
        "time" => Ok(Value::Scalar(grid.times().map(|at| at as f64 / 1000.0).collect())),
        "pi" => Ok(Value::Scalar(vec![std::f64::consts::PI; grid.count])),
        "scalar" => arguments.vector(0).map(|columns| Value::Scalar(only_element(&columns, grid))),
        "vector" => arguments.scalar(0).map(|values| Value::Vector(vec![unlabelled(values)])),
        "timestamp" => arguments.timestamp(),
        "sort" => arguments.sorted(|a, b| nan_last(a, b).then(a.total_cmp(&b))),
        "sort_desc" => arguments.sorted(|a, b| nan_last(a, b).then(b.total_cmp(&a))),
        "round" | "clamp" | "clamp_min" | "clamp_max" => arguments.bounded(),
        "label_replace" => label_replace(arguments.vector(0)?, &arguments.texts(1)?).map(Value::Vector),
        "label_join" => label_join(arguments.vector(0)?, &arguments.texts(1)?).map(Value::Vector),
        _ => Err(QueryError::Unsupported(name.to_owned())),
    }
}

/// Whether a function keeps the metric name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Keep,
    Drop,
}

/// A function of one window alone.
fn range_function(name: &str) -> Option<fn(Window<'_>) -> Option<f64>> {
    Some(match name {
        "rate" => |window| over_time::extrapolated_change(window, Change::Rate),
        "increase" => |window| over_time::extrapolated_change(window, Change::Increase),
        "delta" => |window| over_time::extrapolated_change(window, Change::Delta),
        "irate" => |window| over_time::instant_change(window.points, Change::Rate),
        "idelta" => |window| over_time::instant_change(window.points, Change::Delta),
        "deriv" => |window| {
            let first = window.points.first()?;
            over_time::regression(window.points, first.at).map(|line| line.slope)
        },
        "changes" => |window| Some(over_time::changes(window.points)),
        "resets" => |window| Some(over_time::resets(window.points)),
        "sum_over_time" => |window| Some(over_time::sum(window.points)),
        "avg_over_time" => |window| Some(over_time::average(window.points)),
        "min_over_time" => |window| Some(over_time::min(window.points)),
        "max_over_time" => |window| Some(over_time::max(window.points)),
        "count_over_time" => |window| Some(window.points.len() as f64),
        "present_over_time" => |_| Some(1.0),
        "stddev_over_time" => |window| Some(over_time::variance(window.points).sqrt()),
        "stdvar_over_time" => |window| Some(over_time::variance(window.points)),
        _ => return None,
    })
}

/// The arguments of a call, evaluated on demand.
struct Arguments<'a> {
    evaluator: &'a Evaluator<'a>,
    call: &'a Call,
    grid: Grid,
}

impl<'a> Arguments<'a> {
    fn expr(&self, index: usize) -> Result<&'a Expr, QueryError> {
        let found = self.call.args.args.get(index);
        found.map(|expr| unwrap_parens(expr)).ok_or_else(|| self.missing(index))
    }

    fn missing(&self, index: usize) -> QueryError {
        QueryError::Execution(format!("expected an argument {} in the call of {}", index + 1, self.call.func.name))
    }

    fn vector(&self, index: usize) -> Result<Vec<Column>, QueryError> {
        self.evaluator.eval(self.expr(index)?, self.grid)?.into_vector()
    }

    fn scalar(&self, index: usize) -> Result<Vec<f64>, QueryError> {
        self.evaluator.eval(self.expr(index)?, self.grid)?.into_scalar()
    }

    /// The string arguments from `first` on.
    fn texts(&self, first: usize) -> Result<Vec<&'a str>, QueryError> {
        let text = |index| match self.expr(index)? {
            Expr::StringLiteral(text) => Ok(text.val.as_str()),
            other => Err(QueryError::Execution(format!("expected a string, found `{other}`"))),
        };
        (first..self.call.args.args.len()).map(text).collect()
    }

    fn over_windows(
        &self,
        index: usize,
        names: Names,
        f: impl Fn(Window<'_>, usize) -> Option<f64>,
    ) -> Result<Value, QueryError> {
        let windows = self.evaluator.windows(self.expr(index)?, self.grid)?;
        self.evaluator.charge(windows.series.len(), self.grid.count)?;
        let columns = windows.evaluate(self.grid, f);
        match names {
            Names::Keep => Ok(Value::Vector(columns)),
            Names::Drop => drop_names(columns).map(Value::Vector),
        }
    }

    /// One where the argument has no element at all.
    fn absent(&self) -> Result<Value, QueryError> {
        let columns = self.vector(0)?;
        self.where_none(&columns, self.expr(0)?)
    }

    fn absent_over_time(&self) -> Result<Value, QueryError> {
        let windows = self.evaluator.windows(self.expr(0)?, self.grid)?;
        self.where_none(&windows.evaluate(self.grid, |_, _| Some(1.0)), self.expr(0)?)
    }

    fn where_none(&self, columns: &[Column], expr: &Expr) -> Result<Value, QueryError> {
        let absent = |step: usize| columns.iter().all(|column| column.values[step].is_none()).then_some(1.0);
        let column = Column { labels: absent_labels(expr)?, values: (0..self.grid.count).map(absent).collect() };
        Ok(Value::Vector(if column.is_empty() { Vec::new() } else { vec![column] }))
    }

    /// The instant of the sample itself when the argument is a selector, else of the evaluation.
    fn timestamp(&self) -> Result<Value, QueryError> {
        let columns = match self.expr(0)? {
            Expr::VectorSelector(selector) => self.evaluator.select_instants(selector, self.grid, Pick::Time)?,
            _ => {
                let mut columns = self.vector(0)?;
                for column in &mut columns {
                    for (value, at) in column.values.iter_mut().zip(self.grid.times()) {
                        *value = value.map(|_| at as f64 / 1000.0);
                    }
                }
                columns
            }
        };
        drop_names(columns).map(Value::Vector)
    }

    /// A part of the date: of the argument's values, or of the evaluation when there is none.
    fn calendar(&self, f: fn(f64) -> f64) -> Result<Value, QueryError> {
        let columns = match self.call.args.args.first() {
            None => vec![unlabelled(self.grid.times().map(|at| at as f64 / 1000.0).collect())],
            Some(_) => self.vector(0)?,
        };
        drop_names(columns.into_iter().map(|column| column.map(f)).collect()).map(Value::Vector)
    }

    /// `round` and the clamps: functions of a vector and of scalars that may differ from step to step.
    fn bounded(&self) -> Result<Value, QueryError> {
        let mut columns = self.vector(0)?;
        let count = self.call.args.args.len();
        let scalars = (1..count).map(|index| self.scalar(index)).collect::<Result<Vec<_>, _>>()?;
        let bound = |position: usize, step: usize| scalars.get(position).map_or(1.0, |values| values[step]);
        for column in &mut columns {
            for (step, value) in column.values.iter_mut().enumerate() {
                let (first, second) = (bound(0, step), bound(1, step));
                *value = value.and_then(|value| match self.call.func.name {
                    "round" => Some(math::round(value, first)),
                    "clamp_min" => Some(math::max(first, value)),
                    "clamp_max" => Some(math::min(first, value)),
                    // An empty interval clamps nothing: the result is empty.
                    _ if second < first => None,
                    _ => Some(math::max(first, math::min(second, value))),
                });
            }
        }
        columns.retain(|column| !column.is_empty());
        drop_names(columns).map(Value::Vector)
    }

    /// Sorts a vector at one instant; over a range the order has no meaning.
    fn sorted(&self, order: impl Fn(f64, f64) -> std::cmp::Ordering) -> Result<Value, QueryError> {
        let mut columns = self.vector(0)?;
        if self.grid.is_instant() {
            let value = |column: &Column| column.values[0].unwrap_or(f64::NAN);
            columns.sort_by(|a, b| order(value(a), value(b)));
        }
        Ok(Value::Vector(columns))
    }
}

fn nan_last(a: f64, b: f64) -> std::cmp::Ordering {
    a.is_nan().cmp(&b.is_nan())
}

fn unlabelled(values: Vec<f64>) -> Column {
    Column { labels: std::sync::Arc::default(), values: values.into_iter().map(Some).collect() }
}

/// The value of the only element at each step, NaN where there is none or more than one.
fn only_element(columns: &[Column], grid: Grid) -> Vec<f64> {
    let at_step = |step: usize| {
        let mut present = columns.iter().filter_map(|column| column.values[step]);
        match (present.next(), present.next()) {
            (Some(value), None) => value,
            _ => f64::NAN,
        }
    };
    (0..grid.count).map(at_step).collect()
}
