//! The server's side of the protocol: lists tools, calls them with a deadline, and turns outcomes into results.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as Told, ToolAnnotations,
};
use rmcp::service::{QuitReason, RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{Ground, Kind, tools};
use crate::domain::{Finding, Outcome, Output, ToolSpec};
use crate::tool::arguments::bad_arguments;
use crate::tool::output_limit;

/// For one call; the client may have a shorter one of its own.
const CALL_DEADLINE: Duration = Duration::from_secs(60);

/// A server of one kind; cheap to clone, one for each session.
#[derive(Clone)]
pub struct Host {
    kind: Kind,
    ground: Arc<Ground>,
}

impl Host {
    pub fn new(kind: Kind, ground: Arc<Ground>) -> Self {
        Self { kind, ground }
    }

    async fn answer(&self, name: &str, arguments: Value, cancel: CancellationToken) -> Result<Outcome, ErrorData> {
        let tools = tools(self.kind, &self.ground);
        let Some(tool) = tools.iter().find(|tool| tool.spec().name == name).cloned() else {
            let shown = crate::domain::text::clean_line(name, 64);
            return Err(ErrorData::invalid_params(format!("there is no tool `{shown}`"), None));
        };
        // Dropping the set at a time-out aborts the task; a panic in it stays inside.
        let mut task = tokio::task::JoinSet::new();
        let guard = cancel.clone().drop_guard();
        task.spawn(async move { tool.call(arguments, &cancel).await });
        let ended = tokio::time::timeout(CALL_DEADLINE, task.join_next()).await;
        drop(guard);
        match ended {
            Ok(Some(Ok(outcome))) => Ok(outcome),
            Ok(Some(Err(error))) => Err(ErrorData::internal_error(format!("the call broke off: {error}"), None)),
            Ok(None) | Err(_) => {
                let seconds = CALL_DEADLINE.as_secs();
                let message = format!("no answer within {seconds} s: ask for a shorter window");
                Ok(Outcome::Failure(crate::domain::Failure {
                    kind: crate::domain::FailureKind::Timeout,
                    ..bad_arguments(message)
                }))
            }
        }
    }
}

impl ServerHandler for Host {
    fn get_info(&self) -> ServerConfig {
        let name = format!("oncall-{}", self.kind.as_str());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(name, env!("CARGO_PKG_VERSION")))
            .with_instructions(self.kind.instructions())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = tools(self.kind, &self.ground);
        Ok(ListToolsResult::with_all_items(all.iter().map(|tool| told(tool.spec())).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Told> {
        tools(self.kind, &self.ground).iter().find(|tool| tool.spec().name == name).map(|tool| told(tool.spec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let outcome = self.answer(&request.name, arguments, context.ct.child_token()).await?;
        Ok(CallToolResponse::Complete(result(outcome)))
    }
}

fn told(spec: &ToolSpec) -> Told {
    let schema: Map<String, Value> = spec.input_schema.as_object().cloned().unwrap_or_default();
    Told::new(spec.name.clone(), spec.description.clone(), Arc::new(schema))
        .with_annotations(ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false))
}

/// An output as structured content: its value where it is one, else its findings with what belongs to them. A failure
/// is an error of the tool, which hosts show to their models, with its kind beside the text.
fn result(outcome: Outcome) -> CallToolResult {
    match outcome {
        Outcome::Output(output) => CallToolResult::structured(value_of(output)),
        Outcome::Failure(failure) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(failure.message.clone())]);
            result.structured_content = Some(json!({"error": failure.kind.id(), "message": failure.message}));
            result
        }
    }
}

fn value_of(mut output: Output) -> Value {
    // What is one value has its own limits.
    if let [Finding::Other { value: Value::Object(object) }] = &mut output.findings[..] {
        return Value::Object(std::mem::take(object));
    }
    let output = output_limit::cut(output);
    json!({
        "source": output.source,
        "window": output.window,
        "findings": output.findings,
        "notes": output.notes,
        "truncated": output.truncated,
    })
}

/// Serves one client on standard input and output until it leaves or the token is cancelled.
///
/// # Errors
/// What a client says is not the protocol.
pub async fn stdio(host: Host, cancel: CancellationToken) -> Result<(), String> {
    let served = host.serve_with_ct(rmcp::transport::stdio(), cancel.clone()).await;
    let running = match served {
        Ok(running) => running,
        // A client that leaves before it said anything did so in order.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(crate::domain::text::clean_line(&error.to_string(), 300)),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(error.to_string()),
        Ok(_) => Ok(()),
    }
}
