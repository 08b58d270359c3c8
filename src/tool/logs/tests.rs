//! Questions to a source in memory.

use futures::stream::BoxStream;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::domain::{FailureKind, LogVolume, Window};
use crate::source::{LogBatch, SourceError};

/// Gives its events in two batches, then fails where it is told to.
struct InMemory {
    events: Vec<LogEvent>,
    error: Option<SourceError>,
}

#[async_trait]
impl LogSource for InMemory {
    fn name(&self) -> &str {
        "memory"
    }

    fn search(&self, query: &LogQuery) -> BoxStream<'static, Result<LogBatch, SourceError>> {
        let matching = |event: &&LogEvent| {
            event.at.is_some_and(|at| query.window.contains(at))
                && (query.service.is_none() || event.service == query.service)
                && (query.instance.is_none() || event.instance == query.instance)
                && query.keywords.iter().all(|word| event.message.contains(word))
        };
        let mut events: Vec<_> = self.events.iter().filter(matching).cloned().collect();
        let second = events.split_off(events.len() / 2);
        let batch = |events| Ok(LogBatch { events, notes: vec!["zone assumed".into()], truncated: false });
        let mut batches = vec![batch(events), batch(second)];
        batches.extend(self.error.clone().map(Err));
        Box::pin(futures::stream::iter(batches))
    }

    async fn services(&self) -> Result<Vec<String>, SourceError> {
        Ok(vec!["order-service".into(), "user-service".into()])
    }
}

fn now() -> Timestamp {
    "2026-03-04T06:45:00Z".parse().unwrap()
}

fn event(minutes_ago: i64, level: Level, message: &str) -> LogEvent {
    LogEvent {
        at: Some(now().checked_sub(SignedDuration::from_mins(minutes_ago)).unwrap()),
        level: Some(level),
        service: Some("order-service".into()),
        instance: Some("pod-1".into()),
        message: message.to_owned(),
        line: 1,
        lines: 1,
    }
}

/// Half an hour of quiet, then half an hour with a burst of errors among ordinary lines.
fn events() -> Vec<LogEvent> {
    let mut events = Vec::new();
    for minute in 1..60 {
        for n in 0..20 {
            events.push(event(minute, Level::Info, &format!("GET /orders/{n}{minute} 200 in {n} ms")));
        }
        if minute < 30 {
            events.push(event(
                minute,
                Level::Error,
                &format!("connection pool \u{1b}[31mtimeout after {minute}000 ms"),
            ));
        }
        events.push(event(minute, Level::Warn, &format!("retrying in {minute} s")));
    }
    events
}

async fn ask(source: InMemory, arguments: Value) -> Outcome {
    let window = Window::ending_at(now(), SignedDuration::from_mins(30));
    let clock = ToolClock { now: now(), window, zone: TimeZone::UTC };
    SearchLogs::new(vec![Arc::new(source)], clock).call(arguments, &CancellationToken::new()).await
}

async fn output(arguments: Value) -> Output {
    match ask(InMemory { events: events(), error: None }, arguments).await {
        Outcome::Output(output) => output,
        Outcome::Failure(failure) => panic!("{failure:?}"),
    }
}

async fn failure(arguments: Value) -> Failure {
    match ask(InMemory { events: events(), error: None }, arguments).await {
        Outcome::Failure(failure) => failure,
        Outcome::Output(output) => panic!("{output:?}"),
    }
}

fn patterns(output: &Output) -> Vec<(&str, u64, Option<u64>)> {
    let mut patterns = Vec::new();
    for finding in &output.findings {
        if let Finding::Pattern(pattern) = finding {
            patterns.push((pattern.template.as_str(), pattern.count, pattern.before));
        }
    }
    patterns
}

#[tokio::test]
async fn the_volume_comes_first_and_the_burst_of_errors_next() {
    let output = output(json!({"service": "order-service"})).await;
    let Finding::LogVolume(volume) = &output.findings[0] else { panic!("{:?}", output.findings) };
    let levels = [("error", 29), ("info", 600), ("warn", 30)];
    assert_eq!(
        *volume,
        LogVolume {
            service: Some("order-service".into()),
            events: 659,
            first: Some("2026-03-04T06:15:00Z".parse().unwrap()),
            last: Some("2026-03-04T06:44:00Z".parse().unwrap()),
            levels: levels.into_iter().map(|(level, count)| (level.to_owned(), count)).collect(),
            patterns: 3,
        }
    );
    assert_eq!(
        patterns(&output),
        [
            ("connection pool timeout after <*>", 29, Some(0)),
            ("retrying in <*>", 30, Some(29)),
            ("GET <*> in <*>", 600, Some(580)),
        ]
    );
    assert_eq!((output.source.as_str(), output.notes.as_slice()), ("memory", &["zone assumed".to_owned()][..]));
}

#[tokio::test]
async fn a_level_leaves_patterns_out_but_not_their_part_of_the_volume() {
    let output = output(json!({"service": "order-service", "level": "warning"})).await;
    let counts: Vec<_> = patterns(&output).into_iter().map(|(_, count, _)| count).collect();
    assert_eq!(counts, [29, 30]);
    assert!(matches!(&output.findings[0], Finding::LogVolume(volume) if volume.events == 659));
}

#[tokio::test]
async fn a_pattern_is_drilled_into_by_template_and_by_id() {
    let by_template =
        output(json!({"service": "order-service", "pattern": "connection pool timeout after <*> ms"})).await;
    assert_eq!(by_template.findings.len(), 20);
    let value = json!({
        "log_time": "2026-03-04T06:16:00Z",
        "level": "error",
        "service": "order-service",
        "instance": "pod-1",
        "message": "connection pool timeout after 29000 ms",
    });
    assert_eq!(by_template.findings[0], Finding::Other { value });
    let by_id = output(json!({"service": "order-service", "pattern": "P3"})).await;
    assert_eq!(by_id.findings, by_template.findings);
}

#[tokio::test]
async fn a_pattern_that_is_none_is_refused_or_nothing() {
    let refused = failure(json!({"service": "order-service", "pattern": "P9"})).await;
    assert_eq!(refused.message, "there is no pattern `P9` among the 3 of this question: ask without `pattern` first");
    let nothing = output(json!({"service": "order-service", "pattern": "disk full"})).await;
    let what = "log events of order-service like: disk full".to_owned();
    assert_eq!(nothing.findings, [Finding::Nothing { what }]);
}

#[tokio::test]
async fn no_logs_are_a_finding_that_names_who_has_some() {
    let output = output(json!({"service": "nosuch", "keywords": ["x"]})).await;
    assert_eq!(output.findings, [Finding::Nothing { what: "log events of nosuch with x".into() }]);
    assert_eq!(output.notes.last().unwrap(), "services with logs: order-service, user-service");
}

#[tokio::test]
async fn a_service_written_a_little_differently_is_found() {
    let output = output(json!({"service": "shop/Order_Service"})).await;
    assert_eq!(patterns(&output).len(), 3);
    assert_eq!(output.notes[0], "there are no logs of `shop/Order_Service`; these are of `order-service`");
}

#[tokio::test]
async fn a_service_or_an_instance_is_required_and_a_level_is_one() {
    for (arguments, want) in [
        (json!({}), "neither `service` nor `instance` is given: name whose logs are wanted"),
        (json!({"service": " "}), "neither `service` nor `instance` is given: name whose logs are wanted"),
        (json!({"service": "a", "level": "loud"}), "`level` is `loud`: expected debug, info, warn, error or fatal"),
    ] {
        let failure = failure(arguments).await;
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::BadArguments, want));
    }
    assert_eq!(patterns(&output(json!({"instance": "pod-1"})).await).len(), 3);
}

#[tokio::test]
async fn a_source_that_fails_midway_leaves_what_it_gave() {
    let error = SourceError::new(FailureKind::Unavailable, "connection reset");
    let partial = ask(
        InMemory { events: events(), error: Some(error.clone()) },
        json!({"service": "order-service", "start": "-30m"}),
    )
    .await;
    let Outcome::Output(partial) = partial else { panic!("{partial:?}") };
    assert!(partial.truncated && partial.notes.contains(&"memory: connection reset".to_owned()));
    let empty = ask(InMemory { events: Vec::new(), error: Some(error) }, json!({"service": "order-service"})).await;
    let failure = Failure::of_source("memory", FailureKind::Unavailable, "connection reset");
    assert_eq!(empty, Outcome::Failure(failure));
}

#[tokio::test]
async fn counts_before_are_projected_where_the_logs_begin_late() {
    let mut late = events();
    let start = now().checked_sub(SignedDuration::from_mins(45)).unwrap();
    late.retain(|event| event.at >= Some(start));
    let outcome = ask(InMemory { events: late, error: None }, json!({"service": "order-service"})).await;
    let Outcome::Output(output) = outcome else { panic!("{outcome:?}") };
    assert_eq!(patterns(&output)[2], ("GET <*> in <*>", 600, Some(600)));
    assert_eq!(
        output.notes.last().unwrap(),
        "the logs begin at 2026-03-04T06:00:00Z: counts of the time before are projected from that part of it"
    );
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    let window = Window::ending_at(now(), SignedDuration::from_mins(30));
    let clock = ToolClock { now: now(), window, zone: TimeZone::UTC };
    let source = Arc::new(InMemory { events: events(), error: None });
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = SearchLogs::new(vec![source], clock).call(json!({"service": "order-service"}), &cancel).await;
    assert!(matches!(outcome, Outcome::Failure(Failure { kind: FailureKind::Cancelled, .. })));
}
