//! A record as an OTLP request: spans with the GenAI semantic conventions of OpenTelemetry
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>), ready for `POST …/v1/traces` as `application/x-protobuf`.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as OtlpSpan, Status, span, status};
use prost::Message;

use super::CHAT_NODE;
use super::span::{Span, SpanEnd, SpanKind, spans};
use crate::domain::{AgentStep, Session, SessionRecord, ToolInvocation};

pub const CONTENT_TYPE: &str = "application/x-protobuf";
/// Where a receiver takes traces, below its base address.
pub const TRACES_PATH: &str = "/v1/traces";
const AGENT_NAME: &str = "oncall";

/// The request with the spans that are wanted, encoded.
pub fn encode(record: &SessionRecord, service_name: &str, is_wanted: impl Fn(&Span<'_>) -> bool) -> Vec<u8> {
    request(record, service_name, is_wanted).encode_to_vec()
}

/// The address that takes traces: a base address gets [`TRACES_PATH`], one that has it already stays.
pub fn traces_url(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with(TRACES_PATH) { base.to_owned() } else { format!("{base}{TRACES_PATH}") }
}

fn request(
    record: &SessionRecord,
    service_name: &str,
    is_wanted: impl Fn(&Span<'_>) -> bool,
) -> ExportTraceServiceRequest {
    let trace_id = trace_id(&record.session.id);
    let wanted = spans(record).into_iter().filter(is_wanted);
    let spans = wanted.map(|span| otlp_span(record, &span, &trace_id)).collect();
    let resource = Resource {
        attributes: vec![
            text("service.name", service_name),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("telemetry.sdk.language", "rust"),
        ],
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: AGENT_NAME.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, schema_url: String::new() }];
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { resource: Some(resource), scope_spans, schema_url: String::new() }],
    }
}

/// The 16 bytes of the session's UUID; of an id that is none, a hash.
fn trace_id(session_id: &str) -> Vec<u8> {
    match uuid::Uuid::try_parse(session_id) {
        Ok(id) => id.as_bytes().to_vec(),
        Err(_) => blake3::hash(session_id.as_bytes()).as_bytes()[..16].to_vec(),
    }
}

/// Eight bytes that are the same whenever the record is exported.
fn span_id(trace_id: &[u8], id: &str) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(trace_id).update(id.as_bytes());
    hasher.finalize().as_bytes()[..8].to_vec()
}

fn otlp_span(record: &SessionRecord, span: &Span<'_>, trace_id: &[u8]) -> OtlpSpan {
    let session = &record.session;
    let (name, kind, mut attributes) = match span.kind {
        SpanKind::Run => (format!("invoke_agent {AGENT_NAME}"), span::SpanKind::Internal, run(session)),
        SpanKind::Node(step) if step.node == CHAT_NODE => (operation(step), span::SpanKind::Client, node(step)),
        SpanKind::Node(step) => (operation(step), span::SpanKind::Internal, node(step)),
        SpanKind::PlanStep(step) => {
            (format!("step {}", step.plan_step.unwrap_or(0)), span::SpanKind::Internal, node(step))
        }
        SpanKind::Call(call) => (format!("execute_tool {}", call.tool), span::SpanKind::Internal, tool(call)),
    };
    attributes.push(text("gen_ai.conversation.id", &session.id));
    if span.input_tokens + span.output_tokens > 0 {
        attributes.push(number("gen_ai.usage.input_tokens", span.input_tokens));
        attributes.push(number("gen_ai.usage.output_tokens", span.output_tokens));
    }
    let start = u64::try_from(span.start.as_nanosecond()).unwrap_or(0);
    let status = match span.end {
        SpanEnd::Failed => {
            let message = match span.kind {
                SpanKind::Call(call) => call.error.clone().unwrap_or_default(),
                _ => session.status_reason.clone().unwrap_or_default(),
            };
            Some(Status { message, code: status::StatusCode::Error as i32 })
        }
        SpanEnd::Ok | SpanEnd::Open => None,
    };
    OtlpSpan {
        trace_id: trace_id.to_vec(),
        span_id: span_id(trace_id, &span.id),
        parent_span_id: span.parent.as_ref().map(|parent| span_id(trace_id, parent)).unwrap_or_default(),
        name,
        kind: kind as i32,
        start_time_unix_nano: start,
        end_time_unix_nano: start.saturating_add(span.microseconds.saturating_mul(1000)),
        attributes,
        status,
        ..OtlpSpan::default()
    }
}

fn run(session: &Session) -> Vec<KeyValue> {
    let mut attributes = vec![
        text("gen_ai.operation.name", "invoke_agent"),
        text("gen_ai.agent.name", AGENT_NAME),
        text("gen_ai.agent.version", env!("CARGO_PKG_VERSION")),
        text("oncall.session.kind", session.kind.id()),
        text("oncall.session.status", session.status.id()),
        text("oncall.session.title", &session.title),
    ];
    let optional = [
        ("gen_ai.request.model", &session.model),
        ("oncall.reasoner", &session.reasoner),
        ("oncall.alert.fingerprint", &session.fingerprint),
        ("oncall.alert.service", &session.service),
        ("oncall.cause.category", &session.category),
    ];
    attributes.extend(optional.iter().filter_map(|(key, value)| Some(text(key, value.as_deref()?))));
    attributes
}

/// A node that asks a model is an operation of the conventions; the others keep their names.
fn operation(step: &AgentStep) -> String {
    match step.node.as_str() {
        "plan" | "replan" => format!("plan {AGENT_NAME}"),
        CHAT_NODE => format!("chat {}", step.reason.as_deref().unwrap_or_default()),
        node => node.to_owned(),
    }
}

fn node(step: &AgentStep) -> Vec<KeyValue> {
    if step.node == CHAT_NODE {
        let model = step.reason.as_deref().unwrap_or_default();
        return vec![text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", model)];
    }
    let mut attributes = vec![text("oncall.node", &step.node)];
    if matches!(step.node.as_str(), "plan" | "replan") {
        attributes.push(text("gen_ai.operation.name", "plan"));
        attributes.push(text("gen_ai.agent.name", AGENT_NAME));
    }
    attributes.extend(step.plan_step.map(|n| number("oncall.step", u64::from(n))));
    let optional = [
        ("oncall.decision", &step.decision),
        ("oncall.reason", &step.reason),
        ("oncall.state_change", &step.state_change),
    ];
    attributes.extend(optional.iter().filter_map(|(key, value)| Some(text(key, value.as_deref()?))));
    attributes
}

fn tool(call: &ToolInvocation) -> Vec<KeyValue> {
    let mut attributes = vec![
        text("gen_ai.operation.name", "execute_tool"),
        text("gen_ai.tool.name", &call.tool),
        text("gen_ai.tool.call.id", &call.id.to_string()),
        text("gen_ai.tool.type", if call.server == "builtin" { "function" } else { "extension" }),
        text("gen_ai.tool.call.arguments", &call.arguments.to_string()),
        number("oncall.tool.attempts", u64::from(call.attempts)),
        text("oncall.tool.status", call.status.id()),
    ];
    if call.server != "builtin" && !call.server.is_empty() {
        attributes.push(text("mcp.method.name", "tools/call"));
        attributes.push(text("mcp.server.name", &call.server));
    }
    if let Some(error) = &call.error {
        // The kind alone: a message has too many values for an attribute that is counted by.
        attributes.push(text("error.type", error.split(':').next().unwrap_or(error)));
    }
    let optional = [("oncall.tool.served_by", &call.served_by), ("gen_ai.tool.call.result", &call.output_preview)];
    attributes.extend(optional.iter().filter_map(|(key, value)| Some(text(key, value.as_deref()?))));
    attributes.extend(call.output_bytes.map(|bytes| number("oncall.tool.output_bytes", bytes)));
    if let Some(quality) = &call.retrieval {
        attributes.push(number("oncall.retrieval.candidates", quality.candidates as u64));
        attributes.push(number("oncall.retrieval.kept", quality.kept as u64));
    }
    attributes
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, any_value::Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_address_gets_the_path_once() {
        assert_eq!(traces_url("http://collector:4318"), "http://collector:4318/v1/traces");
        assert_eq!(traces_url("http://collector:4318/"), "http://collector:4318/v1/traces");
        assert_eq!(traces_url("http://collector:4318/v1/traces"), "http://collector:4318/v1/traces");
    }
}
