//! PromQL over series in memory: the text of a query goes in, a value comes out, as a Prometheus server that holds
//! the same samples would give it (compared in `tests/it/promql.rs`). What is not built is refused by name.
//!
//! In reading order: parse, eval (the walk over the tree), select (which samples are seen), and the nodes.

mod aggregate;
mod binary;
mod calendar;
mod call;
mod error;
mod eval;
mod histogram;
mod labels;
mod math;
mod over_time;
mod parse;
mod select;
mod value;

use jiff::{SignedDuration, Timestamp};

use self::eval::Evaluator;
use self::value::{Column, Grid, Value};
use super::QueryValue;
use super::openmetrics::{Labels, Point, SeriesStore, StoredSeries};
use crate::domain::{Sample, Series, Window};

pub use self::error::QueryError;

/// Most steps of a range query, as in Prometheus.
pub const MAX_STEPS: usize = 11_000;

/// The value of a query at one instant. A vector keeps the order that `sort` and `topk` give.
pub fn instant(store: &SeriesStore, query: &str, at: Timestamp) -> Result<QueryValue, QueryError> {
    let expr = parse::parse(query)?;
    let grid = Grid { start: at.as_millisecond(), step: 1, count: 1 };
    let evaluator = Evaluator::new(store, grid);
    if let Some(series) = evaluator.raw_samples(&expr, grid.start)? {
        return Ok(QueryValue::Matrix(series));
    }
    Ok(match evaluator.eval(&expr, grid)? {
        Value::Scalar(values) => QueryValue::Scalar(Sample { at, value: values[0] }),
        Value::Text(text) => QueryValue::String(at, text),
        Value::Vector(columns) => QueryValue::Vector(columns.into_iter().filter_map(|c| non_empty(c, grid)).collect()),
    })
}

/// The value of a query from `window.start` to `window.end` at every `step`: a matrix, sorted by labels.
pub fn range(store: &SeriesStore, query: &str, window: Window, step: SignedDuration) -> Result<QueryValue, QueryError> {
    let expr = parse::parse(query)?;
    let grid = grid(window, step)?;
    let columns = match Evaluator::new(store, grid).eval(&expr, grid)? {
        Value::Vector(columns) => columns,
        Value::Scalar(values) => {
            vec![Column { labels: Default::default(), values: values.into_iter().map(Some).collect() }]
        }
        Value::Text(_) => {
            return Err(QueryError::Execution("a string has no values over a range; ask at one instant".to_owned()));
        }
    };
    let mut series: Vec<Series> = columns.into_iter().filter_map(|column| non_empty(column, grid)).collect();
    series.sort_by(|a, b| a.labels.cmp(&b.labels));
    Ok(QueryValue::Matrix(series))
}

/// The series that match a plain selector, or all when there is none, sorted by labels.
pub(super) fn select<'a>(store: &'a SeriesStore, selector: Option<&str>) -> Result<Vec<&'a StoredSeries>, QueryError> {
    match selector {
        None => Ok(store.candidates(None).collect()),
        Some(selector) => select::matching(store, &parse::parse_selector(selector)?),
    }
}

fn grid(window: Window, step: SignedDuration) -> Result<Grid, QueryError> {
    // What does not fit 64 bits of milliseconds is longer than any window.
    let step = i64::try_from(step.as_millis()).unwrap_or(i64::MAX);
    if step <= 0 {
        return Err(QueryError::Execution("expected a step of at least 1ms".to_owned()));
    }
    let (start, end) = (window.start.as_millisecond(), window.end.as_millisecond());
    let count = ((end - start) / step) as usize + 1;
    if count > MAX_STEPS {
        return Err(QueryError::TooLarge(format!(
            "it has {count} steps, at most {MAX_STEPS} are evaluated; take a longer step"
        )));
    }
    Ok(Grid { start, step, count })
}

fn non_empty(column: Column, grid: Grid) -> Option<Series> {
    let points = grid.times().zip(&column.values);
    let points: Vec<Point> = points.filter_map(|(at, value)| Some(Point { at, value: (*value)? })).collect();
    if points.is_empty() { None } else { Some(to_series(&column.labels, &points)) }
}

/// A series of the domain. Instants that no timestamp can hold do not occur: all lie within those of the files and
/// of the query.
pub(super) fn to_series(labels: &Labels, points: &[Point]) -> Series {
    let sample = |point: &Point| Some(Sample { at: Timestamp::from_millisecond(point.at).ok()?, value: point.value });
    Series { labels: labels.clone(), samples: points.iter().filter_map(sample).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::openmetrics::store_of;

    /// What a query gives at a second, as `labels value` lines.
    fn at(text: &str, query: &str, second: i64) -> Vec<String> {
        let value = instant(&store_of(text), query, Timestamp::from_second(second).unwrap());
        match value.unwrap_or_else(|error| panic!("{query}: {error}")) {
            QueryValue::Scalar(sample) => vec![sample.value.to_string()],
            QueryValue::String(_, text) => vec![text],
            QueryValue::Vector(series) | QueryValue::Matrix(series) => series
                .iter()
                .map(|one| {
                    let values: Vec<String> = one.samples.iter().map(|sample| sample.value.to_string()).collect();
                    format!("{} {}", value::show_labels(&one.labels), values.join(","))
                })
                .collect(),
        }
    }

    fn error(text: &str, query: &str) -> String {
        instant(&store_of(text), query, Timestamp::from_second(100).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn a_sample_stands_for_five_minutes_and_no_longer() {
        let text = "up 1 1000\n";
        assert_eq!(at(text, "up", 999), [] as [&str; 0]);
        assert_eq!(at(text, "up", 1000), ["up{} 1"]);
        assert_eq!(at(text, "up", 1300), ["up{} 1"]);
        assert_eq!(at(text, "up", 1301), [] as [&str; 0]);
    }

    #[test]
    fn a_stale_marker_ends_a_series_at_once_and_is_in_no_range() {
        let text = "up 1 1000\nup StaleNaN 1015\nup 1 1030\n";
        assert_eq!(at(text, "up", 1014), ["up{} 1"]);
        assert_eq!(at(text, "up", 1015), [] as [&str; 0]);
        assert_eq!(at(text, "absent(up)", 1020), ["{} 1"]);
        assert_eq!(at(text, "up", 1030), ["up{} 1"]);
        assert_eq!(at(text, "count_over_time(up[1m])", 1030), ["{} 2"]);
    }

    #[test]
    fn a_range_includes_both_of_its_ends() {
        let text = "a 1 0\na 2 60\na 3 120\n";
        assert_eq!(at(text, "a[1m]", 120), ["a{} 2,3"]);
        assert_eq!(at(text, "a[59s]", 120), ["a{} 3"]);
        assert_eq!(at(text, "a[1m] offset 1m", 120), ["a{} 1,2"]);
        assert_eq!(at(text, "a[2m] @ 60", 500), ["a{} 1,2"]);
    }

    #[test]
    fn the_rate_of_the_documentation_s_kind_of_counter() {
        // 60 in 60 s; 30 s are missing on each side, which is under 1.1 distances: 60 * 120 / 60 / 120.
        let text = "c_total 1000 130\nc_total 1060 190\n";
        assert_eq!(at(text, "rate(c_total[2m])", 220), ["{} 1"]);
        assert_eq!(at(text, "increase(c_total[2m])", 220), ["{} 120"]);
    }

    const FRUIT: &str = "a{x=\"1\"} 10 100\na{x=\"2\"} 20 100\nb{x=\"1\"} 3 100\nb{x=\"2\",y=\"n\"} 4 100\n";

    #[test]
    fn vectors_match_on_their_labels() {
        assert_eq!(at(FRUIT, "a / b", 100), ["{x=\"1\"} 3.3333333333333335"]);
        assert_eq!(at(FRUIT, "a + on (x) b", 100), ["{x=\"1\"} 13", "{x=\"2\"} 24"]);
        assert_eq!(at(FRUIT, "a * on (x) group_left (y) b", 100), ["{x=\"1\"} 30", "{x=\"2\", y=\"n\"} 80"]);
        assert_eq!(at(FRUIT, "a > on (x) b * 4", 100), ["{x=\"2\"} 20"]);
        assert_eq!(at(FRUIT, "a > 10", 100), ["a{x=\"2\"} 20"]);
        assert_eq!(at(FRUIT, "a > bool 10", 100), ["{x=\"1\"} 0", "{x=\"2\"} 1"]);
        assert_eq!(at(FRUIT, "b and a", 100), ["b{x=\"1\"} 3"]);
        assert_eq!(at(FRUIT, "b unless a", 100), ["b{x=\"2\", y=\"n\"} 4"]);
        assert_eq!(at(FRUIT, "b or on (x) a", 100), ["b{x=\"1\"} 3", "b{x=\"2\", y=\"n\"} 4"]);
    }

    #[test]
    fn ambiguous_matches_are_errors_that_say_what_to_do() {
        assert_eq!(
            error(FRUIT, "a + on () b"),
            "found duplicate series for the match group on the right hand-side of the operation: b{x=\"1\"} and \
             b{x=\"2\", y=\"n\"}; many-to-many matching not allowed: matching labels must be unique on one side"
        );
        assert_eq!(
            error(FRUIT, "a + on () b{x=\"1\"}"),
            "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)"
        );
        assert_eq!(
            error(FRUIT, "abs({x=\"1\"})"),
            "vector cannot contain metrics with the same labelset: {x=\"1\"} occurs twice; keep more labels apart"
        );
    }

    #[test]
    fn sorting_and_ranking_decide_the_order_at_an_instant() {
        assert_eq!(at(FRUIT, "sort_desc(a)", 100), ["a{x=\"2\"} 20", "a{x=\"1\"} 10"]);
        assert_eq!(at(FRUIT, "topk(1, a)", 100), ["a{x=\"2\"} 20"]);
        assert_eq!(at(FRUIT, "bottomk(5, a)", 100), ["a{x=\"1\"} 10", "a{x=\"2\"} 20"]);
    }

    #[test]
    fn what_is_not_built_is_refused_by_name() {
        for (query, name) in [
            ("holt_winters(a[5m], 0.1, 0.1)", "holt_winters"),
            ("histogram_fraction(0, 1, a)", "histogram_fraction"),
            ("limitk(2, a)", "limitk"),
            ("a + fill(0) b", "fill"),
            ("a{x=\"1\" or x=\"2\"}", "or between matchers"),
        ] {
            assert_eq!(error(FRUIT, query), format!("not supported here: {name}"), "{query}");
        }
    }

    #[test]
    fn a_query_without_bounds_is_refused() {
        assert!(error(FRUIT, "sum_over_time(a[100y:1ms])").starts_with("the query is too large"));
        let window = Window::new(Timestamp::from_second(0).unwrap(), Timestamp::from_second(100_000).unwrap());
        let steps = |step| range(&store_of(FRUIT), "a", window, step).unwrap_err().to_string();
        assert!(steps(SignedDuration::from_secs(1)).starts_with("the query is too large: it has 100001 steps"));
        assert_eq!(steps(SignedDuration::ZERO), "expected a step of at least 1ms");
    }

    #[test]
    fn a_range_query_gives_one_sample_per_step_where_there_is_one() {
        let window = Window::new(Timestamp::from_second(0).unwrap(), Timestamp::from_second(500).unwrap());
        let value = range(&store_of(FRUIT), "sum(a)", window, SignedDuration::from_secs(100)).unwrap();
        let QueryValue::Matrix(series) = value else { panic!("{value:?}") };
        let samples: Vec<(i64, f64)> = series[0].samples.iter().map(|s| (s.at.as_second(), s.value)).collect();
        assert_eq!(samples, [(100, 30.0), (200, 30.0), (300, 30.0), (400, 30.0)]);
    }

    /// Expressions put together at random from the words of the language; most are wrong, many are right.
    fn expressions() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        let leaf = prop::sample::select(vec![
            "a",
            "b",
            "1",
            "-0.5",
            "NaN",
            "Inf",
            "\"x\"",
            "a{x=\"1\"}",
            "{x=~\".+\"}",
            "a[1m]",
            "b[5m:10s]",
            "time()",
            "a offset -1y",
            "a @ 0",
            "a @ end()",
            "a[1y] @ -1e15",
            "nothing",
        ]);
        leaf.prop_map(str::to_owned).prop_recursive(5, 40, 3, |inner| {
            let call = prop::sample::select(vec![
                "rate",
                "increase",
                "irate",
                "deriv",
                "abs",
                "ln",
                "sum",
                "avg by (x)",
                "count without (x)",
                "topk",
                "bottomk by (x)",
                "quantile",
                "count_values",
                "histogram_quantile",
                "clamp",
                "round",
                "absent",
                "scalar",
                "vector",
                "sort",
                "label_replace",
                "label_join",
                "timestamp",
                "minute",
                "predict_linear",
                "quantile_over_time",
                "absent_over_time",
                "last_over_time",
                "stddev",
                "year",
                "",
            ]);
            let operator = prop::sample::select(vec![
                "+",
                "/",
                "%",
                "^",
                "==",
                "> bool",
                "and",
                "or",
                "unless",
                "* on (x)",
                "- ignoring (x) group_left",
                "< on () group_right (y)",
                "atan2",
                "!=",
            ]);
            prop_oneof![
                (call, prop::collection::vec(inner.clone(), 0..4))
                    .prop_map(|(name, args)| format!("{name}({})", args.join(", "))),
                (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
                inner.clone().prop_map(|a| format!("-{a}")),
                inner.prop_map(|a| format!("({a})[3m:7s] offset 1m")),
            ]
        })
    }

    proptest::proptest! {
        #[test]
        fn random_expressions_never_panic(query in expressions()) {
            let store = store_of(FRUIT);
            let second = |at| Timestamp::from_second(at).unwrap();
            let _ = instant(&store, &query, second(130));
            let _ = range(&store, &query, Window::new(second(0), second(600)), SignedDuration::from_secs(60));
            let _ = range(&store, &query, Window::new(Timestamp::MIN, Timestamp::MAX), SignedDuration::from_hours(100_000));
        }

        #[test]
        fn random_text_never_panics(query in "[a-c(){}\\[\\]=~!\"'`@:,.+*/ 0-9einfmsINxo#\\\\^$%<>-]{0,40}") {
            let _ = instant(&store_of(FRUIT), &query, Timestamp::UNIX_EPOCH);
        }

        #[test]
        fn random_unicode_never_panics(query in "\\PC{0,30}") {
            let _ = instant(&store_of(FRUIT), &query, Timestamp::UNIX_EPOCH);
        }
    }
}
