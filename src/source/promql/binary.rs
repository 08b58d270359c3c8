//! Operators between two expressions: arithmetic, comparison and sets, with the matching of vectors.

use std::collections::HashMap;
use std::sync::Arc;

use promql_parser::parser::token::{T_LAND, T_LOR, T_LUNLESS, TokenId};
use promql_parser::parser::{BinModifier, BinaryExpr, LabelModifier, VectorMatchCardinality};

use super::error::QueryError;
use super::eval::Evaluator;
use super::math::{arithmetic, comparison};
use super::value::{Column, Grid, Value, drop_names, show_labels, unite};
use crate::source::openmetrics::Labels;

/// What an operator makes of two numbers.
#[derive(Clone, Copy)]
enum Operator {
    Arithmetic(fn(f64, f64) -> f64),
    /// Keeps the left value where the comparison holds.
    Filter(fn(f64, f64) -> bool),
    /// One or zero (`bool`).
    Test(fn(f64, f64) -> bool),
}

impl Operator {
    fn of(expr: &BinaryExpr) -> Option<Self> {
        let compares = |f| if expr.return_bool() { Self::Test(f) } else { Self::Filter(f) };
        arithmetic(expr.op.id()).map(Self::Arithmetic).or_else(|| comparison(expr.op.id()).map(compares))
    }

    /// `kept` is what a filter lets through.
    fn apply(self, left: f64, right: f64, kept: f64) -> Option<f64> {
        match self {
            Self::Arithmetic(f) => Some(f(left, right)),
            Self::Filter(f) => f(left, right).then_some(kept),
            Self::Test(f) => Some(f64::from(u8::from(f(left, right)))),
        }
    }

    /// Only elements that pass a filter as they are keep their metric name.
    fn keeps_name(self) -> bool {
        matches!(self, Self::Filter(_))
    }
}

/// The value of a binary expression at each step.
pub(super) fn binary(evaluator: &Evaluator<'_>, expr: &BinaryExpr, grid: Grid) -> Result<Value, QueryError> {
    let modifier = expr.modifier.clone().unwrap_or_default();
    if modifier.fill_values != Default::default() {
        return Err(QueryError::Unsupported("fill".to_owned()));
    }
    let left = evaluator.eval(&expr.lhs, grid)?;
    let right = evaluator.eval(&expr.rhs, grid)?;
    if expr.op.is_set_operator() {
        return sets(expr.op.id(), left.into_vector()?, right.into_vector()?, &modifier, grid).map(Value::Vector);
    }
    let operator = Operator::of(expr).ok_or_else(|| QueryError::Unsupported(expr.op.to_string()))?;
    match (left, right) {
        (Value::Scalar(left), Value::Scalar(right)) => {
            let pairs = left.into_iter().zip(right);
            // The parser lets no filter between scalars through; NaN stands for a value that is not there.
            let values = pairs.map(|(left, right)| operator.apply(left, right, left).unwrap_or(f64::NAN));
            Ok(Value::Scalar(values.collect()))
        }
        (Value::Vector(left), Value::Scalar(right)) => {
            with_scalar(left, operator, |step, value| operator.apply(value, right[step], value))
        }
        (Value::Scalar(left), Value::Vector(right)) => {
            with_scalar(right, operator, |step, value| operator.apply(left[step], value, value))
        }
        (left, right) => {
            matched(operator, left.into_vector()?, right.into_vector()?, &modifier, grid).map(Value::Vector)
        }
    }
}

fn with_scalar(
    columns: Vec<Column>,
    operator: Operator,
    f: impl Fn(usize, f64) -> Option<f64>,
) -> Result<Value, QueryError> {
    let applied = columns.into_iter().map(|column| {
        let values = column.values.into_iter().enumerate();
        Column { labels: column.labels, values: values.map(|(step, value)| f(step, value?)).collect() }
    });
    let applied: Vec<Column> = applied.filter(|column| !column.is_empty()).collect();
    if operator.keeps_name() { Ok(Value::Vector(applied)) } else { drop_names(applied).map(Value::Vector) }
}

/// The labels by which elements of both sides find each other.
fn signature(labels: &Labels, matching: Option<&LabelModifier>) -> Labels {
    let counts = |name: &String| match matching {
        Some(LabelModifier::Include(names)) => names.labels.contains(name),
        Some(LabelModifier::Exclude(names)) => name != "__name__" && !names.labels.contains(name),
        None => name != "__name__",
    };
    labels.iter().filter(|(name, _)| counts(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn sets(
    operator: TokenId,
    left: Vec<Column>,
    right: Vec<Column>,
    modifier: &BinModifier,
    grid: Grid,
) -> Result<Vec<Column>, QueryError> {
    let matching = modifier.matching.as_ref();
    match operator {
        T_LAND | T_LUNLESS => {
            let present = presence(&right, matching, grid);
            let wanted = operator == T_LAND;
            Ok(masked(left, matching, |found| found == wanted, &present))
        }
        T_LOR => {
            let present = presence(&left, matching, grid);
            let added = masked(right, matching, |found| !found, &present);
            unite(left.into_iter().chain(added).collect())
        }
        _ => Err(QueryError::Unsupported("this set operator".to_owned())),
    }
}

/// At which steps any column has a value, per signature.
fn presence(columns: &[Column], matching: Option<&LabelModifier>, grid: Grid) -> HashMap<Labels, Vec<bool>> {
    let mut present: HashMap<Labels, Vec<bool>> = HashMap::new();
    for column in columns {
        let steps = present.entry(signature(&column.labels, matching)).or_insert_with(|| vec![false; grid.count]);
        for (found, value) in steps.iter_mut().zip(&column.values) {
            *found |= value.is_some();
        }
    }
    present
}

/// Keeps values at steps where `keep` holds of whether the other side has an element of the same signature.
fn masked(
    mut columns: Vec<Column>,
    matching: Option<&LabelModifier>,
    keep: impl Fn(bool) -> bool,
    present: &HashMap<Labels, Vec<bool>>,
) -> Vec<Column> {
    for column in &mut columns {
        let steps = present.get(&signature(&column.labels, matching));
        for (step, value) in column.values.iter_mut().enumerate() {
            if !keep(steps.is_some_and(|steps| steps[step])) {
                *value = None;
            }
        }
    }
    columns.retain(|column| !column.is_empty());
    columns
}

/// The side that has at most one element per signature and step.
struct OneSide<'a> {
    columns: Vec<&'a Column>,
    /// Index of the column that has the value, per step.
    at_step: Vec<Option<usize>>,
}

/// Arithmetic and comparison between vectors.
fn matched(
    operator: Operator,
    left: Vec<Column>,
    right: Vec<Column>,
    modifier: &BinModifier,
    grid: Grid,
) -> Result<Vec<Column>, QueryError> {
    let one_is_left = matches!(modifier.card, VectorMatchCardinality::OneToMany(_));
    let (many, one) = if one_is_left { (right, left) } else { (left, right) };
    let matching = modifier.matching.as_ref();
    let sides = one_sides(&one, &many, modifier, grid)?;
    let mut taken: HashMap<Labels, Vec<bool>> = HashMap::new();
    let mut results = Vec::new();
    for column in &many {
        let signature = signature(&column.labels, matching);
        let Some(side) = sides.get(&signature) else { continue };
        let taken = taken.entry(signature).or_insert_with(|| vec![false; grid.count]);
        // The partner of a column may change over time, and with it the labels that are taken from it.
        let mut partners: Vec<Option<Column>> = vec![None; side.columns.len()];
        for (step, value) in column.values.iter().enumerate() {
            let (Some(value), Some(partner)) = (*value, side.at_step[step]) else { continue };
            let Some(other) = side.columns[partner].values[step] else { continue };
            let (a, b) = if one_is_left { (other, value) } else { (value, other) };
            let Some(result) = operator.apply(a, b, a) else { continue };
            if modifier.card == VectorMatchCardinality::OneToOne && std::mem::replace(&mut taken[step], true) {
                return Err(QueryError::Execution(
                    "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)"
                        .to_owned(),
                ));
            }
            let into = partners[partner].get_or_insert_with(|| Column {
                labels: Arc::new(result_labels(&column.labels, &side.columns[partner].labels, operator, modifier)),
                values: vec![None; grid.count],
            });
            into.values[step] = Some(result);
        }
        results.extend(partners.into_iter().flatten());
    }
    unite(results)
}

/// Sorts the "one" side by signature. Two elements of one signature at a step are an error where the other side has
/// any element at all.
fn one_sides<'a>(
    one: &'a [Column],
    many: &[Column],
    modifier: &BinModifier,
    grid: Grid,
) -> Result<HashMap<Labels, OneSide<'a>>, QueryError> {
    let any: Vec<bool> = (0..grid.count).map(|step| many.iter().any(|column| column.values[step].is_some())).collect();
    let mut sides: HashMap<Labels, OneSide<'a>> = HashMap::new();
    for column in one {
        let signature = signature(&column.labels, modifier.matching.as_ref());
        let side =
            sides.entry(signature).or_insert_with(|| OneSide { columns: Vec::new(), at_step: vec![None; grid.count] });
        for (step, value) in column.values.iter().enumerate() {
            if value.is_none() {
                continue;
            }
            if let (Some(earlier), true) = (side.at_step[step], any[step]) {
                let name = if matches!(modifier.card, VectorMatchCardinality::OneToMany(_)) { "left" } else { "right" };
                return Err(QueryError::Execution(format!(
                    "found duplicate series for the match group on the {name} hand-side of the operation: {} and {}; \
                     many-to-many matching not allowed: matching labels must be unique on one side",
                    show_labels(&side.columns[earlier].labels),
                    show_labels(&column.labels)
                )));
            }
            side.at_step[step] = Some(side.columns.len());
        }
        side.columns.push(column);
    }
    Ok(sides)
}

/// The labels of a result: of the "many" side, cut to what was matched, with those that `group_x(…)` names taken
/// from the "one" side.
fn result_labels(many: &Labels, one: &Labels, operator: Operator, modifier: &BinModifier) -> Labels {
    let mut labels = many.clone();
    if !operator.keeps_name() {
        labels.remove("__name__");
    }
    if modifier.card == VectorMatchCardinality::OneToOne {
        match &modifier.matching {
            Some(LabelModifier::Include(names)) => labels.retain(|name, _| names.labels.contains(name)),
            Some(LabelModifier::Exclude(names)) => labels.retain(|name, _| !names.labels.contains(name)),
            None => {}
        }
    }
    for name in modifier.card.labels().into_iter().flat_map(|names| &names.labels) {
        match one.get(name) {
            Some(value) => labels.insert(name.clone(), value.clone()),
            None => labels.remove(name),
        };
    }
    labels
}
