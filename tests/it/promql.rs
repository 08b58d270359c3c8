//! Our PromQL against a real Prometheus: both read the same OpenMetrics text and must answer every expression alike,
//! in labels and in values to nine digits, at single instants and over ranges.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use oncall::domain::{Series, Window};
use oncall::source::openmetrics::OpenMetricsFiles;
use oncall::source::{MetricSource, QueryValue, SourceError};
use serde_json::Value;

use crate::servers::prometheus::Prometheus;

/// First sample, in seconds; the history is two hours long and crosses the border of two storage blocks.
const START: i64 = 1_700_000_400;
const LENGTH: i64 = 2 * 3600;

/// Largest accepted difference, relative to the larger of two values.
const TOLERANCE: f64 = 1e-9;

#[tokio::test]
async fn every_expression_has_the_value_that_prometheus_gives_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.om");
    std::fs::write(&path, history()).unwrap();
    let server = Prometheus::with_history(&path);
    let ours = source(&path);
    let expressions: Vec<&str> = EXPRESSIONS.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(expressions.len() >= 80, "only {} expressions", expressions.len());
    let mut differences = Vec::new();
    let mut with_values = 0;
    for expr in &expressions {
        let mut samples = 0;
        for at in instants() {
            let theirs = server.query("query", &[("query", expr), ("time", &seconds(at))]);
            let ours = ours.instant(expr, at).await.map(|answer| answer.value);
            differences.extend(difference(ours, theirs).map(|what| format!("{expr} at {}: {what}", at.as_second())));
        }
        for (window, step) in ranges() {
            let (start, end) = (seconds(window.start), seconds(window.end));
            let width = step.as_secs().to_string();
            let theirs =
                server.query("query_range", &[("query", expr), ("start", &start), ("end", &end), ("step", &width)]);
            let ours = ours.range(expr, window, step).await.map(|answer| answer.value);
            samples += ours.as_ref().map_or(0, sample_count);
            differences.extend(difference(ours, theirs).map(|what| format!("{expr} every {width} s: {what}")));
        }
        with_values += usize::from(samples > 0);
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    // Two empty answers and two errors are alike too, and prove little.
    assert!(with_values >= 150, "only {with_values} of {} expressions have values", expressions.len());
}

fn sample_count(value: &QueryValue) -> usize {
    match value {
        QueryValue::Vector(series) | QueryValue::Matrix(series) => series.iter().map(|one| one.samples.len()).sum(),
        QueryValue::Scalar(_) | QueryValue::String(..) => 1,
    }
}

#[tokio::test]
async fn sorted_and_ranked_vectors_have_the_order_that_prometheus_gives_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.om");
    std::fs::write(&path, history()).unwrap();
    let server = Prometheus::with_history(&path);
    let ours = source(&path);
    let at = Timestamp::from_second(START + 3600).unwrap();
    for expr in [
        "sort(rate(http_requests_total[5m]))",
        "sort_desc(rate(http_requests_total[5m]))",
        "topk(4, http_requests_total)",
        "bottomk(4, http_requests_total)",
        "sort(edge)",
        "sort_desc(edge)",
    ] {
        let theirs = server.query("query", &[("query", expr), ("time", &seconds(at))]).unwrap();
        let theirs: Vec<String> =
            theirs["result"].as_array().unwrap().iter().map(|one| one["metric"].to_string()).collect();
        let QueryValue::Vector(ours) = ours.instant(expr, at).await.unwrap().value else { panic!("{expr}") };
        let ours: Vec<String> = ours.iter().map(|one| serde_json::to_string(&one.labels).unwrap()).collect();
        assert_eq!(ours, theirs, "{expr}");
    }
}

#[tokio::test]
async fn raw_series_and_range_selectors_hold_the_same_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.om");
    std::fs::write(&path, history()).unwrap();
    let server = Prometheus::with_history(&path);
    let ours = source(&path);
    let at = Timestamp::from_second(START + 3600).unwrap();
    for expr in ["node_load1[10m]", "{service=\"order\"}[30m]", "rate(http_requests_total[5m])[20m:5m]"] {
        let theirs = server.query("query", &[("query", expr), ("time", &seconds(at))]);
        let ours = ours.instant(expr, at).await.map(|answer| answer.value);
        assert_eq!(difference(ours, theirs), None, "{expr}");
    }
}

fn source(path: &Path) -> OpenMetricsFiles {
    let source = OpenMetricsFiles::load("files/metrics", &[PathBuf::from(path)]).unwrap();
    assert!(source.warnings().is_empty(), "{:?}", source.warnings());
    source
}

/// Whole and broken seconds, within gaps, before the first and after the last sample.
fn instants() -> Vec<Timestamp> {
    let offsets = [0, 15_000, 1_234_567, 3_000_000, 3_600_000, 4_200_500, 5_555_555, 7_200_000, 7_320_000];
    offsets.iter().map(|offset| Timestamp::from_millisecond(START * 1000 + offset).unwrap()).collect()
}

fn ranges() -> Vec<(Window, SignedDuration)> {
    let window = |from, to| {
        let at = |offset| Timestamp::from_second(START + offset).unwrap();
        Window::new(at(from), at(to))
    };
    vec![(window(0, LENGTH + 600), SignedDuration::from_secs(60)), (window(1003, 5000), SignedDuration::from_secs(37))]
}

fn seconds(at: Timestamp) -> String {
    format!("{:.3}", at.as_millisecond() as f64 / 1000.0)
}

/// Samples by labels, each with its instant in milliseconds.
type Table = BTreeMap<BTreeMap<String, String>, Vec<(i64, f64)>>;

/// What differs between two answers, if anything. Two errors are alike: texts differ on purpose.
fn difference(ours: Result<QueryValue, SourceError>, theirs: Result<Value, String>) -> Option<String> {
    let (ours, theirs) = match (ours, theirs) {
        (Err(_), Err(_)) => return None,
        (Err(ours), Ok(theirs)) => return Some(format!("we fail: {ours}; they have {theirs:.300}")),
        (Ok(ours), Err(theirs)) => return Some(format!("they fail: {theirs}; we have {ours:.300?}")),
        (Ok(ours), Ok(theirs)) => (our_table(ours), their_table(&theirs)),
    };
    if ours.0 != theirs.0 {
        return Some(format!("we have a {}, they a {}", ours.0, theirs.0));
    }
    let (ours, theirs) = (ours.1, theirs.1);
    if ours.keys().ne(theirs.keys()) {
        let missing: Vec<_> = theirs.keys().filter(|labels| !ours.contains_key(*labels)).collect();
        let extra: Vec<_> = ours.keys().filter(|labels| !theirs.contains_key(*labels)).collect();
        return Some(format!("labels: missing {missing:?}, extra {extra:?}"));
    }
    ours.iter().zip(theirs.values()).find_map(|((labels, ours), theirs)| {
        if ours.len() != theirs.len() {
            return Some(format!("{labels:?}: we have {} samples, they {}", ours.len(), theirs.len()));
        }
        let mut pairs = ours.iter().zip(theirs);
        let (ours, theirs) = pairs.find(|(ours, theirs)| ours.0 != theirs.0 || !close(ours.1, theirs.1))?;
        Some(format!("{labels:?}: we have {ours:?}, they {theirs:?}"))
    })
}

fn close(a: f64, b: f64) -> bool {
    // Equal infinities are equal; what is zero but for rounding has no relative difference worth the name.
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= (TOLERANCE * a.abs().max(b.abs())).max(1e-12)
}

fn our_table(value: QueryValue) -> (&'static str, Table) {
    let table = |series: Vec<Series>| {
        let samples = |one: Series| one.samples.iter().map(|s| (s.at.as_millisecond(), s.value)).collect();
        series.into_iter().map(|one| (one.labels.clone(), samples(one))).collect()
    };
    match value {
        QueryValue::Scalar(sample) => {
            ("scalar", Table::from([(BTreeMap::new(), vec![(sample.at.as_millisecond(), sample.value)])]))
        }
        QueryValue::Vector(series) => ("vector", table(series)),
        QueryValue::Matrix(series) => ("matrix", table(series)),
        QueryValue::String(_, text) => ("string", Table::from([(BTreeMap::from([(text, String::new())]), Vec::new())])),
    }
}

fn their_table(data: &Value) -> (String, Table) {
    let kind = data["resultType"].as_str().unwrap();
    let sample = |pair: &Value| {
        let at = (pair[0].as_f64().unwrap() * 1000.0).round() as i64;
        (at, pair[1].as_str().unwrap().parse::<f64>().unwrap())
    };
    let result = &data["result"];
    let table = match kind {
        "scalar" => Table::from([(BTreeMap::new(), vec![sample(result)])]),
        "string" => Table::from([(BTreeMap::from([(result[1].as_str().unwrap().to_owned(), String::new())]), vec![])]),
        _ => result
            .as_array()
            .unwrap()
            .iter()
            .map(|series| {
                let labels = series["metric"].as_object().unwrap().iter();
                let labels = labels.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
                let samples = match series.get("values") {
                    Some(values) => values.as_array().unwrap().iter().map(sample).collect(),
                    None => vec![sample(&series["value"])],
                };
                (labels, samples)
            })
            .collect(),
    };
    (kind.to_owned(), table)
}

/// Two hours of a small system: counters with resets, a histogram, gauges with gaps, NaN and infinities, instances
/// that come and go, a rollout, awkward label values.
fn history() -> String {
    let mut random = Random(42);
    let mut text = String::new();
    counters(&mut text, &mut random);
    histogram(&mut text, &mut random);
    gauges(&mut text, &mut random);
    text.push_str("# EOF\n");
    text
}

/// A linear congruential generator (Knuth's constants): the same numbers on every machine.
struct Random(u64);

impl Random {
    /// From 0 up to, not including, 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn counters(text: &mut String, random: &mut Random) {
    text.push_str("# HELP http_requests Requests served.\n# TYPE http_requests counter\n");
    for service in ["order", "payment", "search"] {
        for instance in ["a", "b"] {
            for (status, rate) in [("200", 40.0), ("404", 0.4), ("500", 0.05)] {
                let mut total = 0.0;
                for at in (0..=LENGTH).step_by(15) {
                    // The second instance of each service restarts; payment-b stops being scraped for ten minutes.
                    if instance == "b" && at == 4005 {
                        total = 0.0;
                    }
                    let burst = if status == "500" && (3600..4800).contains(&at) { 80.0 } else { 1.0 };
                    // Not whole numbers, so that no two series are equal and rankings are certain.
                    total += random.unit() * 2.0 * rate * burst * 15.0;
                    if service == "payment" && instance == "b" && (2400..3000).contains(&at) {
                        continue;
                    }
                    let labels =
                        format!("service=\"{service}\",instance=\"{service}-{instance}:8080\",status=\"{status}\"");
                    writeln!(text, "http_requests_total{{{labels}}} {total:.3} {}", START + at).unwrap();
                }
            }
        }
    }
    // A counter that begins at zero in the middle, and one with a single sample.
    text.push_str("# TYPE jobs counter\n");
    for at in (3000..5000).step_by(30) {
        writeln!(text, "jobs_total{{queue=\"mail\"}} {} {}", (at - 3000) / 60, START + at).unwrap();
    }
    writeln!(text, "jobs_total{{queue=\"once\"}} 7 {}", START + 3590).unwrap();
}

fn histogram(text: &mut String, random: &mut Random) {
    text.push_str("# TYPE http_request_duration_seconds histogram\n# UNIT http_request_duration_seconds seconds\n");
    let bounds = ["0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "+Inf"];
    let usual = [0.3, 0.55, 0.85, 0.95, 0.99, 0.998, 1.0];
    let slow = [0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0];
    for service in ["order", "payment"] {
        let mut rows: Vec<(i64, [f64; 7], f64)> = Vec::new();
        let (mut buckets, mut sum) = ([0.0; 7], 0.0);
        for at in (0..=LENGTH).step_by(15) {
            let shares = if service == "order" && (3600..4800).contains(&at) { slow } else { usual };
            let count = (random.unit() * 1200.0).round();
            for (bucket, share) in buckets.iter_mut().zip(shares) {
                *bucket += (count * share).round();
            }
            sum += count * (0.1 + random.unit() / 5.0);
            rows.push((at, buckets, sum));
        }
        let name = "http_request_duration_seconds";
        for (position, bound) in bounds.iter().enumerate() {
            for (at, buckets, _) in &rows {
                let value = buckets[position];
                writeln!(text, "{name}_bucket{{service=\"{service}\",le=\"{bound}\"}} {value} {}", START + at).unwrap();
            }
        }
        for (at, buckets, _) in &rows {
            writeln!(text, "{name}_count{{service=\"{service}\"}} {} {}", buckets[6], START + at).unwrap();
        }
        for (at, _, sum) in &rows {
            writeln!(text, "{name}_sum{{service=\"{service}\"}} {sum} {}", START + at).unwrap();
        }
    }
}

fn gauges(text: &mut String, random: &mut Random) {
    let mut gauge = |name: &str, labels: &str, step: i64, value: &mut dyn FnMut(i64) -> Option<String>| {
        for at in (0..=LENGTH).step_by(step as usize) {
            if let Some(value) = value(at) {
                writeln!(text, "{name}{{{labels}}} {value} {}", START + at).unwrap();
            }
        }
    };
    for (service, usual) in [("order", 12), ("payment", 7)] {
        let mut in_use = |at| Some(if (3480..4800).contains(&at) { 50 } else { usual + at / 60 % 5 }.to_string());
        gauge("pool_in_use", &format!("service=\"{service}\",pool=\"{service}s\""), 30, &mut in_use);
    }
    gauge("pool_max", "service=\"order\"", 60, &mut |_| Some("50".to_owned()));
    gauge("pool_max", "service=\"payment\"", 60, &mut |_| Some("20".to_owned()));
    // Negative values, NaN for a while, a gap longer than the look-back.
    let mut temperature = |at: i64| match at {
        1200..1300 => Some("NaN".to_owned()),
        4000..4700 => None,
        _ => Some(format!("{:.3}", (random.unit() - 0.4) * 30.0)),
    };
    gauge("temperature_celsius", "room=\"north\"", 20, &mut temperature);
    gauge("temperature_celsius", "room=\"south\"", 20, &mut |at| Some(format!("{}", 20 - at / 600)));
    gauge("edge", "kind=\"plus\"", 60, &mut |at| Some(if at > 3000 { "+Inf" } else { "3" }.to_owned()));
    gauge("edge", "kind=\"minus\"", 60, &mut |at| Some(if at > 3000 { "-Inf" } else { "-3" }.to_owned()));
    gauge("edge", "kind=\"nan\"", 60, &mut |_| Some("NaN".to_owned()));
    // A rollout: the old version ends, the new one begins.
    gauge("build_info", "service=\"order\",version=\"1.4.0\"", 30, &mut |at| (at < 3300).then(|| "1".to_owned()));
    gauge("build_info", "service=\"order\",version=\"1.5.0\"", 30, &mut |at| (at >= 3300).then(|| "1".to_owned()));
    gauge("build_info", "service=\"payment\",version=\"2.0.1\"", 30, &mut |_| Some("1".to_owned()));
    gauge("up", "job=\"api\",instance=\"a:1\"", 15, &mut |at| Some(i64::from(at % 700 > 100).to_string()));
    gauge("up", "job=\"api\",instance=\"b:1\"", 15, &mut |_| Some("1".to_owned()));
    gauge("up", "job=\"db\",instance=\"c:1\"", 15, &mut |at| (at < 5000).then(|| "1".to_owned()));
    gauge("awkward", r#"path="C:\\tmp\\\"x\"",city="杭州",empty="""#, 60, &mut |at| Some((at % 7).to_string()));
    gauge("last_deploy_seconds", "service=\"order\"", 60, &mut |at| Some((START + at / 3600 * 3600).to_string()));
    // Broken seconds, and distances that vary.
    let mut at = 500;
    while at < LENGTH * 1000 {
        writeln!(
            text,
            "node_load1{{instance=\"a\"}} {:.2} {}.{:03}",
            random.unit() * 8.0,
            START + at / 1000,
            at % 1000
        )
        .unwrap();
        at += 10_000 + (random.unit() * 40.0) as i64 * 250;
    }
}

/// One expression a line. Left out are the cases in which Prometheus 2.42 itself strays from its documentation:
/// `atan2` keeps metric names, and `predict_linear(x[5m] @ t, …)` over a range moves the window that `@` fixes.
/// Which of several equal elements `topk` takes is left open by both.
const EXPRESSIONS: &str = r#"
up
up{job="api"}
up{job!="api"}
up{job=~"a.*|db"}
up{job!~"a.+"}
{__name__=~"pool_.*",service="order"}
{job="api",instance=~".+"}
up{missing=""}
awkward
awkward{path="C:\\tmp\\\"x\""}
awkward{city=~"杭."}
up offset 7m
up offset -2m
up @ 1700003000
up @ end()
http_requests_total @ start() offset -30m
rate(http_requests_total[5m])
rate(http_requests_total[1m])
rate(http_requests_total[15s])
rate(http_requests_total[37s] offset 3m)
rate(http_requests_total[5m] @ 1700004200)
rate(jobs_total[5m])
rate(node_load1[90s])
increase(http_requests_total{status="500"}[10m])
increase(jobs_total[30m])
irate(http_requests_total[2m])
delta(pool_in_use[5m])
delta(node_load1[3m])
idelta(temperature_celsius[2m])
deriv(temperature_celsius[10m])
deriv(node_load1[5m])
predict_linear(pool_in_use[10m], 600)
predict_linear(node_load1[10m], scalar(pool_max{service="order"}))
changes(up[20m])
changes(edge[10m])
resets(http_requests_total[1h])
avg_over_time(node_load1[5m])
avg_over_time(edge[10m])
avg_over_time(temperature_celsius[10m])
sum_over_time(temperature_celsius{room="south"}[10m])
min_over_time(temperature_celsius[10m])
max_over_time(temperature_celsius[10m])
max_over_time(edge[1h])
count_over_time(temperature_celsius[10m])
count_over_time(up[15s])
stddev_over_time(node_load1[10m])
stdvar_over_time(http_requests_total[10m])
quantile_over_time(0.9, node_load1[10m])
quantile_over_time(scalar(pool_max{service="order"}) / 100, node_load1[10m])
last_over_time(jobs_total[20m])
present_over_time(jobs_total[10m])
absent_over_time(jobs_total{queue="mail"}[10m])
absent_over_time(temperature_celsius{room="north"}[5m])
histogram_quantile(0.95, rate(http_request_duration_seconds_bucket[5m]))
histogram_quantile(0.5, sum by (le) (rate(http_request_duration_seconds_bucket[5m])))
histogram_quantile(0.99, sum by (le, service) (increase(http_request_duration_seconds_bucket[10m])))
histogram_quantile(0.999, http_request_duration_seconds_bucket)
histogram_quantile(1.5, http_request_duration_seconds_bucket)
histogram_quantile(0.5, http_request_duration_seconds_bucket{le!="+Inf"})
histogram_quantile(0.1, rate(http_request_duration_seconds_bucket{service="order"}[1m]))
histogram_quantile(0.9, http_requests_total)
rate(http_request_duration_seconds_sum[5m]) / rate(http_request_duration_seconds_count[5m])
sum(http_requests_total)
sum by (service) (rate(http_requests_total[5m]))
sum without (instance, status) (rate(http_requests_total[5m]))
sum by (service, nothing) (http_requests_total)
sum(temperature_celsius)
avg by (status) (rate(http_requests_total[5m]))
avg(edge)
min(temperature_celsius)
max(temperature_celsius)
max by (kind) (edge)
min(edge)
count(up)
count by (job) (up == 1)
count without (instance) (up)
group by (service) (http_requests_total)
stddev by (service) (http_requests_total)
stdvar(rate(http_requests_total[5m]))
quantile(0.75, rate(http_requests_total[5m]))
quantile by (service) (0.2, http_requests_total)
topk(3, rate(http_requests_total[5m]))
topk by (service) (1, http_requests_total{status="200"})
bottomk(2, http_requests_total{status="404"})
bottomk(1, temperature_celsius)
topk(0, up)
topk(scalar(pool_max{service="payment"}) / 10, http_requests_total)
count_values("value", pool_max)
count_values by (job) ("v", up)
count_values without (instance) ("job", up)
http_requests_total / 1000
1 - up
up * 2 + 1
2 ^ pool_in_use % 7
-temperature_celsius
-2 ^ 2
pool_in_use / on (service) pool_max
pool_in_use / on (service) group_left pool_max > 0.5
pool_in_use / ignoring (pool) pool_max
pool_max - on (service) group_right pool_in_use
rate(http_requests_total[5m]) * on (service) group_left (version) build_info
sum by (service) (http_requests_total) * on (service) build_info
rate(http_requests_total{status="500"}[5m]) / ignoring (status) rate(http_requests_total{status="200"}[5m])
rate(http_requests_total{status="500"}[5m]) / ignoring (status) group_left sum without (status) (rate(http_requests_total[5m]))
sum by (service) (rate(http_requests_total{status=~"5.."}[5m])) / sum by (service) (rate(http_requests_total[5m])) > 0.05
http_requests_total / http_requests_total
up + pool_max
up + on () up
temperature_celsius > 10
temperature_celsius >= bool 10
10 < temperature_celsius
temperature_celsius != temperature_celsius
pool_in_use == 50
pool_in_use > on (service) pool_max
pool_in_use > bool on (service) pool_max
pool_in_use <= ignoring (pool) group_left pool_max
1 > bool 2
3 % 2 ^ 2 * 5 - 7 / 2
1 / 0
-1 / 0
0 / 0
up and up == 1
pool_in_use and on (service) (build_info{version="1.5.0"})
up unless up == 1
up unless on (job) up{instance="c:1"}
up == 0 or up{job="db"}
pool_in_use or pool_max
pool_max or on (service) pool_in_use
vector(1) or up
absent(up)
absent(nothing{job="api",instance="x",zone=~"a|b"})
absent(nothing{job="a",job="b"})
absent(jobs_total{queue="once"})
absent(sum(nothing))
clamp(temperature_celsius, 0, 10)
clamp(temperature_celsius, 10, 0)
clamp_min(temperature_celsius, 5)
clamp_max(edge, 2)
abs(temperature_celsius)
ceil(node_load1)
floor(node_load1)
round(node_load1)
round(node_load1, 0.5)
round(temperature_celsius * -1, 10)
exp(node_load1)
ln(node_load1)
log2(temperature_celsius)
log10(http_requests_total)
sqrt(temperature_celsius)
sgn(temperature_celsius)
sin(node_load1)
deg(atan(node_load1))
time()
time() - last_deploy_seconds
timestamp(node_load1)
timestamp(up offset 1m)
timestamp(sum(up))
vector(3)
vector(time() / 2)
scalar(pool_max{service="order"})
scalar(up)
pi() * 2
sort(http_requests_total)
sort_desc(temperature_celsius)
minute()
hour(last_deploy_seconds)
day_of_week(last_deploy_seconds) + day_of_month(last_deploy_seconds) + day_of_year(last_deploy_seconds)
days_in_month(vector(1700000000))
month() + year()
label_replace(up, "host", "$1", "instance", "(.*):.*")
label_replace(up, "host", "h-${1}x$$", "instance", "([ab]):.*")
label_replace(up, "job", "", "job", "db")
label_replace(up, "instance", "same", "instance", ".*")
label_replace(up, "__name__", "renamed", "job", "api")
label_join(pool_in_use, "both", "-", "service", "pool", "nothing")
max_over_time(rate(http_requests_total{status="500"}[2m])[20m:1m])
avg_over_time((pool_in_use / on (service) pool_max)[10m:30s])
sum_over_time(sum(up)[10m:])
rate(sum by (service) (http_requests_total)[10m:30s] offset 5m)
max_over_time(up[10m:1m] @ 1700004000)
min_over_time(avg_over_time(node_load1[2m])[10m:2m])
(sum by (service) (increase(http_requests_total[5m])) > 1000) * 2 or vector(0)
atan2(1, 2)
edge * 0
edge + ignoring (kind) group_left sum(edge)
(up atan2 pool_max) * 1
(node_load1 atan2 node_load1) * 1
"a string"
rate(up)
up[5m] + 1
sum(1)
foo bar
sum by (service) (topk by (service) (2, http_requests_total))
sum(rate(http_request_duration_seconds_bucket{le="0.25"}[5m])) by (service) / sum(rate(http_request_duration_seconds_count[5m])) by (service)
"#;
