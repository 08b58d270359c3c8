//! Aggregations: `sum by (a) (…)` and its kin, and those that choose elements (`topk`, `bottomk`).

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use promql_parser::parser::token::{
    T_AVG, T_BOTTOMK, T_COUNT, T_COUNT_VALUES, T_GROUP, T_MAX, T_MIN, T_QUANTILE, T_STDDEV, T_STDVAR, T_SUM, T_TOPK,
    TokenId,
};
use promql_parser::parser::{AggregateExpr, Expr, LabelModifier};

use super::error::QueryError;
use super::eval::{Evaluator, unwrap_parens};
use super::labels::is_label_name;
use super::over_time::quantile;
use super::value::{Column, Grid};
use crate::source::openmetrics::Labels;

/// The value of an aggregation at each step.
pub(super) fn aggregate(
    evaluator: &Evaluator<'_>,
    expr: &AggregateExpr,
    grid: Grid,
) -> Result<Vec<Column>, QueryError> {
    let columns = evaluator.eval(&expr.expr, grid)?.into_vector()?;
    let operator = expr.op.id();
    let modifier = expr.modifier.as_ref();
    if operator == T_COUNT_VALUES {
        return Ok(count_values(columns, modifier, &label_parameter(expr)?, grid));
    }
    let groups = grouped(columns, modifier);
    match operator {
        T_TOPK | T_BOTTOMK => {
            let wanted =
                parameter(evaluator, expr, grid)?.into_iter().map(element_count).collect::<Result<Vec<_>, _>>()?;
            Ok(groups.into_iter().flat_map(|group| chosen(group.members, operator, &wanted, grid)).collect())
        }
        T_QUANTILE => {
            let q = parameter(evaluator, expr, grid)?;
            Ok(combined(groups, grid, |step, values| quantile(q[step], values.to_vec())))
        }
        _ => {
            let f = combination(operator).ok_or_else(|| QueryError::Unsupported(expr.op.to_string()))?;
            Ok(combined(groups, grid, |_, values| f(values)))
        }
    }
}

/// Columns that are aggregated into one label set.
struct Group {
    labels: Labels,
    members: Vec<Column>,
}

/// Groups in the order of their first member.
fn grouped(columns: Vec<Column>, modifier: Option<&LabelModifier>) -> Vec<Group> {
    let mut positions: HashMap<Labels, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for column in columns {
        let labels = group_labels(&column.labels, modifier);
        let position = *positions.entry(labels).or_insert_with_key(|labels| {
            groups.push(Group { labels: labels.clone(), members: Vec::new() });
            groups.len() - 1
        });
        groups[position].members.push(column);
    }
    groups
}

fn group_labels(labels: &Labels, modifier: Option<&LabelModifier>) -> Labels {
    let keep = |name: &String| match modifier {
        None => false,
        Some(LabelModifier::Include(names)) => names.labels.contains(name),
        Some(LabelModifier::Exclude(names)) => name != "__name__" && !names.labels.contains(name),
    };
    labels.iter().filter(|(name, _)| keep(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// One column per group: `f` of the values that are present, where any is.
fn combined(groups: Vec<Group>, grid: Grid, f: impl Fn(usize, &[f64]) -> f64) -> Vec<Column> {
    let mut present = Vec::new();
    let mut combine = |group: Group| {
        let at_step = |step: usize| {
            present.clear();
            present.extend(group.members.iter().filter_map(|column| column.values[step]));
            if present.is_empty() { None } else { Some(f(step, &present)) }
        };
        Column { labels: Arc::new(group.labels), values: (0..grid.count).map(at_step).collect() }
    };
    groups.into_iter().map(&mut combine).collect()
}

/// A function of at least one value.
fn combination(operator: TokenId) -> Option<fn(&[f64]) -> f64> {
    Some(match operator {
        T_SUM => |values| values.iter().sum(),
        T_AVG => mean,
        T_COUNT => |values| values.len() as f64,
        T_GROUP => |_| 1.0,
        // NaN is taken only where there is nothing else.
        T_MAX => |values| values.iter().fold(f64::NAN, |max, &v| if v > max || max.is_nan() { v } else { max }),
        T_MIN => |values| values.iter().fold(f64::NAN, |min, &v| if v < min || min.is_nan() { v } else { min }),
        T_STDDEV => |values| variance(values).sqrt(),
        T_STDVAR => variance,
        _ => return None,
    })
}

/// The mean, updated step by step so that sums of huge values do not overflow.
fn mean(values: &[f64]) -> f64 {
    let mut mean = 0.0_f64;
    for (index, &value) in values.iter().enumerate() {
        let count = (index + 1) as f64;
        if mean.is_infinite() && ((value.is_infinite() && (mean > 0.0) == (value > 0.0)) || value.is_finite()) {
            continue;
        }
        mean += value / count - mean / count;
    }
    mean
}

/// The population variance (Welford's method).
fn variance(values: &[f64]) -> f64 {
    let (mut mean, mut squares) = (0.0, 0.0);
    for (index, &value) in values.iter().enumerate() {
        let delta = value - mean;
        mean += delta / (index + 1) as f64;
        squares += delta * (value - mean);
    }
    squares / values.len() as f64
}

fn parameter(evaluator: &Evaluator<'_>, expr: &AggregateExpr, grid: Grid) -> Result<Vec<f64>, QueryError> {
    match &expr.param {
        Some(param) => evaluator.eval(param, grid)?.into_scalar(),
        None => Err(QueryError::Execution(format!("expected a parameter in {}", expr.op))),
    }
}

fn element_count(k: f64) -> Result<usize, QueryError> {
    if k.is_nan() || k.abs() > i64::MAX as f64 {
        return Err(QueryError::Execution(format!("expected a number of elements, found {k}")));
    }
    // Negative numbers become zero.
    Ok(k as usize)
}

/// The `k` largest or smallest elements of each step, `wanted[step]` of them. At one instant in the order of rank.
fn chosen(members: Vec<Column>, operator: TokenId, wanted: &[usize], grid: Grid) -> Vec<Column> {
    let order = |a: f64, b: f64| match operator {
        T_TOPK => b.partial_cmp(&a),
        _ => a.partial_cmp(&b),
    };
    let mut kept: Vec<Column> = members
        .iter()
        .map(|column| Column { labels: Arc::clone(&column.labels), values: vec![None; grid.count] })
        .collect();
    let mut ranks = Vec::new();
    for (step, &wanted) in wanted.iter().enumerate() {
        let present =
            members.iter().enumerate().filter_map(|(position, column)| Some((position, column.values[step]?)));
        ranks = present.collect::<Vec<(usize, f64)>>();
        // NaN ranks behind everything; among equals the earlier label set wins.
        ranks.sort_by(|(_, a), (_, b)| a.is_nan().cmp(&b.is_nan()).then(order(*a, *b).unwrap_or(Ordering::Equal)));
        ranks.truncate(wanted);
        for &(position, value) in &ranks {
            kept[position].values[step] = Some(value);
        }
    }
    if grid.is_instant() {
        return ranks.into_iter().map(|(position, _)| kept[position].clone()).collect();
    }
    kept.retain(|column| !column.is_empty());
    kept
}

fn label_parameter(expr: &AggregateExpr) -> Result<String, QueryError> {
    match expr.param.as_deref().map(unwrap_parens) {
        Some(Expr::StringLiteral(label)) if is_label_name(&label.val) => Ok(label.val.clone()),
        Some(other) => Err(QueryError::Execution(format!("expected a label name in count_values, found `{other}`"))),
        None => Err(QueryError::Execution("expected a label name in count_values".to_owned())),
    }
}

/// How often each value occurs. The value becomes a label before the elements are grouped, so that it takes the
/// place of a label of that name.
fn count_values(columns: Vec<Column>, modifier: Option<&LabelModifier>, label: &str, grid: Grid) -> Vec<Column> {
    let mut positions: HashMap<Labels, usize> = HashMap::new();
    let mut counted: Vec<Column> = Vec::new();
    for column in columns {
        let mut known: HashMap<u64, usize> = HashMap::new();
        for (step, value) in column.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let position = *known.entry(value.to_bits()).or_insert_with(|| {
                let labels = labels_with_value(&column.labels, modifier, label, *value);
                *positions.entry(labels).or_insert_with_key(|labels| {
                    counted.push(Column { labels: Arc::new(labels.clone()), values: vec![None; grid.count] });
                    counted.len() - 1
                })
            });
            let count = &mut counted[position].values[step];
            *count = Some(count.unwrap_or(0.0) + 1.0);
        }
    }
    counted
}

fn labels_with_value(labels: &Labels, modifier: Option<&LabelModifier>, label: &str, value: f64) -> Labels {
    let excluded =
        matches!(modifier, Some(LabelModifier::Exclude(names)) if names.labels.iter().any(|name| name == label));
    let mut labels = group_labels(labels, modifier);
    if !excluded {
        labels.insert(label.to_owned(), shown(value));
    }
    labels
}

/// A number as Prometheus writes it into a label.
fn shown(value: f64) -> String {
    if value.is_infinite() { if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned() } else { value.to_string() }
}
