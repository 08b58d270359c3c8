//! Traces: the timeline in the terminal, files for other viewers, and what a receiver of OTLP gets, decoded by the types
//! of OpenTelemetry.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::Value;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::program::{indexed_data_dir, oncall, said};
use crate::stored::{self, ID};

fn seeded() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    stored::seed(dir.path(), &[ID]);
    dir
}

fn trace(dir: &Path, args: &[&str]) -> (i32, String, String) {
    said(&oncall(dir).args(["trace", ID]).args(args).output().unwrap())
}

#[test]
fn the_timeline_shows_nodes_calls_side_by_side_failures_and_tokens() {
    let dir = seeded();
    for lang in ["en", "zh"] {
        let (code, text, err) = trace(dir.path(), &["--lang", lang]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(format!("trace_{lang}"), text);
    }
}

#[test]
fn a_node_is_shown_in_full_and_an_unknown_one_lists_those_that_are() {
    let dir = seeded();
    let (code, text, _) = trace(dir.path(), &["--node", "execute"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("trace_node", text);
    let (code, out, err) = trace(dir.path(), &["--node", "exec"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.starts_with("error: --node exec: this session has no such node; it has: analyze_alert, "), "{err}");
}

#[test]
fn events_of_one_lane_contain_or_follow_each_other() {
    let dir = seeded();
    let (_, text, _) = trace(dir.path(), &["--chrome"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let complete: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    let interval = |event: &Value| {
        let start = event["ts"].as_i64().unwrap();
        (start, start + event["dur"].as_i64().unwrap())
    };
    let mut names = BTreeSet::new();
    for (at, event) in complete.iter().enumerate() {
        names.insert(event["name"].as_str().unwrap());
        let (start, end) = interval(event);
        for other in complete[..at].iter().filter(|other| other["tid"] == event["tid"]) {
            let (s, e) = interval(other);
            assert!(end <= s || e <= start || (s <= start && end <= e), "{event} and {other}");
        }
    }
    for name in ["HighErrorRate", "parallel_query", "search_logs", "step", "chat"] {
        assert!(names.contains(name), "{names:?}");
    }
    let failed: Vec<&Value> = complete.into_iter().filter(|event| event["cname"] == "terrible").collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["args"]["attempts"], 3);
}

#[test]
fn the_document_counts_from_the_start_of_the_session() {
    let dir = seeded();
    let (_, text, _) = trace(dir.path(), &["--json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "oncall.trace/v1");
    let spans = document["spans"].as_array().unwrap();
    let run = &spans[0];
    assert_eq!((&run["kind"], &run["start"], &run["duration"]), (&"run".into(), &0.into(), &3_303_000.into()));
    let call = spans.iter().find(|span| span["id"] == "call 2").unwrap();
    assert_eq!((&call["parent"], &call["status"]), (&"step 2".into(), &"failed".into()));
    assert_eq!((&call["start"], &call["duration"]), (&3000.into(), &900_000.into()));
}

/// A receiver that takes what is sent as OTLP over HTTP has to be sent.
async fn receiver() -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/traces"))
        .and(header("content-type", "application/x-protobuf"))
        .respond_with(ResponseTemplate::new(200))
        .mount(&server)
        .await;
    server
}

/// Every span that the receiver got.
async fn received(server: &MockServer) -> Vec<Span> {
    let requests = server.received_requests().await.unwrap();
    let decode = |body: &[u8]| ExportTraceServiceRequest::decode(body).unwrap();
    let spans = requests.iter().flat_map(|request| decode(&request.body).resource_spans);
    spans.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let text = |value: &any_value::Value| match value {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let pair = |pair: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        (pair.key.clone(), text(pair.value.as_ref().unwrap().value.as_ref().unwrap()))
    };
    span.attributes.iter().map(pair).collect()
}

#[tokio::test]
async fn an_otlp_receiver_gets_one_tree_of_spans_with_the_conventions() {
    let server = receiver().await;
    let dir = tokio::task::spawn_blocking(seeded).await.unwrap();
    let (uri, folder) = (server.uri(), dir.path().to_path_buf());
    let (code, out, err) = tokio::task::spawn_blocking(move || trace(&folder, &["--otlp", &uri])).await.unwrap();
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let spans = received(&server).await;
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    assert_eq!(roots.len(), 1);
    assert_eq!(roots[0].name, "invoke_agent oncall");
    let ids: BTreeSet<&[u8]> = spans.iter().map(|span| span.span_id.as_slice()).collect();
    assert_eq!(ids.len(), spans.len());
    let session = uuid::Uuid::parse_str(ID).unwrap();
    for span in &spans {
        assert_eq!((span.trace_id.as_slice(), span.span_id.len()), (session.as_bytes().as_slice(), 8));
        assert!(span.parent_span_id.is_empty() || ids.contains(span.parent_span_id.as_slice()), "{}", span.name);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        assert_eq!(attributes(span)["gen_ai.conversation.id"], ID);
    }
    let operations: BTreeSet<String> =
        spans.iter().filter_map(|span| attributes(span).get("gen_ai.operation.name").cloned()).collect();
    assert_eq!(operations, ["chat", "execute_tool", "invoke_agent", "plan"].map(str::to_owned).into());
    let failed = spans.iter().find(|span| span.name == "execute_tool search_logs").unwrap();
    assert_eq!(failed.status.as_ref().unwrap().code, 2);
    assert_eq!(attributes(failed)["error.type"], "timeout");
    let chat = spans.iter().find(|span| span.name == "chat made/model-1").unwrap();
    assert_eq!(attributes(chat)["gen_ai.usage.input_tokens"], "2400");
    assert_eq!(chat.end_time_unix_nano - chat.start_time_unix_nano, 1_190_000_000);
}

#[tokio::test]
async fn a_run_is_sent_when_the_variable_names_a_receiver() {
    let server = receiver().await;
    let dir = tempfile::tempdir().unwrap();
    let (uri, folder) = (server.uri(), dir.path().to_path_buf());
    let asked = tokio::task::spawn_blocking(move || {
        let mut command = oncall(&folder);
        command.env("ONCALL_KNOWLEDGE_STORE", indexed_data_dir().join("knowledge"));
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", uri).args(["ask", "what fills the disk?", "--quiet"]);
        said(&command.output().unwrap())
    });
    let (code, _, err) = asked.await.unwrap();
    assert_eq!((code, err.as_str()), (0, ""));
    let spans = received(&server).await;
    assert_eq!(spans[0].name, "invoke_agent oncall");
    assert_eq!(attributes(&spans[0])["oncall.session.kind"], "question");
}

#[test]
fn a_receiver_that_is_not_there_is_exit_4() {
    let dir = seeded();
    let (code, _, err) = trace(dir.path(), &["--otlp", "http://127.0.0.1:1"]);
    assert_eq!(code, 4, "{err}");
    assert!(err.starts_with("error: the trace was not sent: "), "{err}");
}

/// A run is watched while it goes on: what has ended is sent before the end, and nothing twice.
#[tokio::test]
async fn spans_are_sent_while_the_run_goes_on_and_each_once() {
    let server = receiver().await;
    let dir = tempfile::tempdir().unwrap();
    let (uri, folder) = (server.uri(), dir.path().to_path_buf());
    let ran = tokio::task::spawn_blocking(move || {
        let mut command = oncall(&folder);
        command.env("ONCALL_KNOWLEDGE_STORE", indexed_data_dir().join("knowledge"));
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", uri);
        // Some 200,000 lines of logs take longer than a second to search.
        command.args(["diagnose", "--incident", "examples/order-service", "--quiet", "--json"]);
        said(&command.output().unwrap())
    });
    let (code, _, err) = ran.await.unwrap();
    assert_eq!((code, err.as_str()), (0, ""));
    let spans = received(&server).await;
    let ids: BTreeSet<&[u8]> = spans.iter().map(|span| span.span_id.as_slice()).collect();
    assert_eq!(ids.len(), spans.len());
    let requests = server.received_requests().await.unwrap();
    assert!(requests.len() > 1, "{} requests", requests.len());
    // The run itself ends last.
    let last = ExportTraceServiceRequest::decode(requests.last().unwrap().body.as_slice()).unwrap();
    let names = last.resource_spans.iter().flat_map(|resource| &resource.scope_spans).flat_map(|scope| &scope.spans);
    assert!(names.into_iter().any(|span| span.name == "invoke_agent oncall"));
}
