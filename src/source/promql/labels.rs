//! Functions that change labels.

use std::sync::Arc;

use promql_parser::label::MatchOp;
use promql_parser::parser::Expr;
use regex::Regex;

use super::error::QueryError;
use super::eval::unwrap_parens;
use super::select::selector_matchers;
use super::value::{Column, unite};
use crate::source::openmetrics::Labels;

/// `label_replace(vector, destination, replacement, source, regex)`: arguments from the second on.
pub(super) fn label_replace(columns: Vec<Column>, texts: &[&str]) -> Result<Vec<Column>, QueryError> {
    let &[destination, replacement, source, pattern] = texts else {
        return Err(QueryError::Execution("expected four strings in the call of label_replace".to_owned()));
    };
    let regex = Regex::new(&format!("^(?:{pattern})$"))
        .map_err(|_| QueryError::Execution(format!("invalid regular expression in label_replace(): {pattern}")))?;
    check_destination(destination, "label_replace")?;
    let replaced = columns.into_iter().map(|column| {
        let value = column.labels.get(source).map_or("", String::as_str);
        let Some(captures) = regex.captures(value) else { return column };
        let mut text = String::new();
        captures.expand(replacement, &mut text);
        with_label(column, destination, text)
    });
    unite(replaced.collect())
}

/// `label_join(vector, destination, separator, source…)`: arguments from the second on.
pub(super) fn label_join(columns: Vec<Column>, texts: &[&str]) -> Result<Vec<Column>, QueryError> {
    let [destination, separator, sources @ ..] = texts else {
        return Err(QueryError::Execution("expected at least two strings in the call of label_join".to_owned()));
    };
    check_destination(destination, "label_join")?;
    let joined = columns.into_iter().map(|column| {
        let values: Vec<&str> =
            sources.iter().map(|source| column.labels.get(*source).map_or("", String::as_str)).collect();
        let text = values.join(separator);
        with_label(column, destination, text)
    });
    unite(joined.collect())
}

/// The labels of what `absent` gives: those that the selector demands to be equal to something, once each.
pub(super) fn absent_labels(expr: &Expr) -> Result<Arc<Labels>, QueryError> {
    let mut labels = Labels::new();
    let mut seen = Vec::new();
    for matcher in selector_matchers(unwrap_parens(expr))? {
        if matcher.name == "__name__" {
            continue;
        }
        if matches!(matcher.op, MatchOp::Equal) && !seen.contains(&&matcher.name) {
            seen.push(&matcher.name);
            if !matcher.value.is_empty() {
                labels.insert(matcher.name.clone(), matcher.value.clone());
            }
        } else {
            labels.remove(&matcher.name);
        }
    }
    Ok(Arc::new(labels))
}

/// Whether a text is a label name as the classic format has them.
pub(super) fn is_label_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn check_destination(name: &str, function: &str) -> Result<(), QueryError> {
    match is_label_name(name) {
        true => Ok(()),
        false => Err(QueryError::Execution(format!("invalid destination label name in {function}(): {name}"))),
    }
}

/// An empty value takes the label away.
fn with_label(column: Column, name: &str, value: String) -> Column {
    let mut labels = Labels::clone(&column.labels);
    if value.is_empty() {
        labels.remove(name);
    } else {
        labels.insert(name.to_owned(), value);
    }
    Column { labels: Arc::new(labels), values: column.values }
}
