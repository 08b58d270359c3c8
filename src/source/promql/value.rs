//! What expressions evaluate to. An expression is evaluated at all steps of a query at once: a vector is a set of
//! columns, one per label set, so that labels are handled once per series and not once per step.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::QueryError;
use crate::source::openmetrics::Labels;

/// The instants at which an expression is evaluated, in milliseconds: `start`, `start + step`, …
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    pub start: i64,
    /// Positive.
    pub step: i64,
    pub count: usize,
}

impl Grid {
    pub fn times(self) -> impl Iterator<Item = i64> {
        (0..self.count).map(move |index| self.start + self.step * index as i64)
    }

    /// Whether this is a query at one instant, where the order of a vector is kept.
    pub fn is_instant(self) -> bool {
        self.count == 1
    }
}

/// The values of one label set, one per step; `None` where the vector has no such element.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub labels: Arc<Labels>,
    pub values: Vec<Option<f64>>,
}

impl Column {
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let values = self.values.into_iter().map(|value| value.map(&f)).collect();
        Self { labels: self.labels, values }
    }

    pub fn is_empty(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }
}

/// The value of an expression over a grid.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Scalar(Vec<f64>),
    Vector(Vec<Column>),
    Text(String),
}

impl Value {
    pub fn into_scalar(self) -> Result<Vec<f64>, QueryError> {
        match self {
            Self::Scalar(values) => Ok(values),
            other => Err(other.type_error("a scalar")),
        }
    }

    pub fn into_vector(self) -> Result<Vec<Column>, QueryError> {
        match self {
            Self::Vector(columns) => Ok(columns),
            other => Err(other.type_error("an instant vector")),
        }
    }

    fn type_error(&self, expected: &str) -> QueryError {
        let found = match self {
            Self::Scalar(_) => "a scalar",
            Self::Vector(_) => "an instant vector",
            Self::Text(_) => "a string",
        };
        QueryError::Execution(format!("expected {expected}, found {found}"))
    }
}

/// The labels without the metric name, which no computed value keeps.
pub(super) fn without_name(labels: &Arc<Labels>) -> Arc<Labels> {
    if !labels.contains_key("__name__") {
        return Arc::clone(labels);
    }
    let mut rest = Labels::clone(labels);
    rest.remove("__name__");
    Arc::new(rest)
}

/// Columns without their metric names.
pub(super) fn drop_names(columns: Vec<Column>) -> Result<Vec<Column>, QueryError> {
    unite(columns.into_iter().map(|column| Column { labels: without_name(&column.labels), ..column }).collect())
}

/// Puts columns whose labels have become equal into one. Two values at one step are an error, as in Prometheus.
pub(super) fn unite(columns: Vec<Column>) -> Result<Vec<Column>, QueryError> {
    let mut positions: HashMap<Arc<Labels>, usize> = HashMap::with_capacity(columns.len());
    let mut united: Vec<Column> = Vec::with_capacity(columns.len());
    for column in columns {
        let position = *positions.entry(Arc::clone(&column.labels)).or_insert(united.len());
        let Some(earlier) = united.get_mut(position) else {
            united.push(column);
            continue;
        };
        for (into, value) in earlier.values.iter_mut().zip(column.values) {
            if into.is_some() && value.is_some() {
                let labels = show_labels(&earlier.labels);
                return Err(QueryError::Execution(format!(
                    "vector cannot contain metrics with the same labelset: {labels} occurs twice; keep more labels apart"
                )));
            }
            *into = into.or(value);
        }
    }
    Ok(united)
}

/// Labels as a selector shows them.
pub(super) fn show_labels(labels: &Labels) -> String {
    let name = labels.get("__name__").map_or("", String::as_str);
    let pairs: Vec<String> = labels
        .iter()
        .filter(|(label, _)| *label != "__name__")
        .map(|(label, value)| format!("{label}={value:?}"))
        .collect();
    format!("{name}{{{}}}", pairs.join(", "))
}
