//! What a server may ask or tell while it is connected: its log and progress are passed on to the program's own log,
//! a change of its tools is noted, and requests for input or for a model are declined.

// Servers of the older generations log and sample as this crate deprecates it.
#![allow(deprecated)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorCode, ErrorData, Implementation, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

use crate::domain::text::clean_line;

/// Characters of a message, and messages that are kept of stderr.
const MESSAGE_CHARS: usize = 300;
const KEPT_LINES: usize = 3;

/// What one server said beside its answers; shared by all connections to it.
#[derive(Debug, Default)]
pub struct Said {
    tools_changed: AtomicBool,
    /// Whether a call was given up since this was asked the last time.
    abandoned: AtomicBool,
    stderr: Mutex<VecDeque<String>>,
    /// The process of the present connection; 0: none.
    process: AtomicI32,
}

impl Said {
    /// Whether the tools changed since this was asked the last time.
    pub fn take_tools_changed(&self) -> bool {
        self.tools_changed.swap(false, Ordering::Relaxed)
    }

    pub fn note_tools_changed(&self) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }

    pub fn note_abandoned(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub fn take_abandoned(&self) -> bool {
        self.abandoned.swap(false, Ordering::Relaxed)
    }

    pub fn set_process(&self, id: Option<u32>) {
        let id = id.and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        self.process.store(id, Ordering::Relaxed);
    }

    /// Ends the process at once. Only for one that is known to be there: it did not leave when its input ended.
    pub fn kill(&self) {
        let process = rustix::process::Pid::from_raw(self.process.swap(0, Ordering::Relaxed));
        if let Some(process) = process {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
    }

    pub fn add_stderr(&self, line: &str) {
        let line = clean_line(line.trim(), MESSAGE_CHARS);
        if line.is_empty() {
            return;
        }
        let mut kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    /// The end of what the process wrote to stderr, on one line.
    pub fn last_words(&self) -> String {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(String::as_str).collect::<Vec<_>>().join(" / ")
    }
}

/// The client's side of one connection.
#[derive(Debug, Clone)]
pub struct Handler {
    pub server: Arc<str>,
    pub said: Arc<Said>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        // Neither sampling nor elicitation nor roots: a server that keeps to the protocol does not ask for them.
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("oncall", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        tracing::debug!("{}: asked for a model's answer (sampling), which is declined", self.server);
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            "oncall declines sampling: it answers no prompts of servers",
            None,
        ))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tracing::debug!("{}: asked the user for input (elicitation), which is declined", self.server);
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let message = clean_line(params.message.as_deref().unwrap_or_default(), MESSAGE_CHARS);
        tracing::debug!("{}: progress {} of {:?} {message}", self.server, params.progress, params.total);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = match &params.data {
            serde_json::Value::String(text) => clean_line(text, MESSAGE_CHARS),
            other => clean_line(&other.to_string(), MESSAGE_CHARS),
        };
        match params.level {
            LoggingLevel::Debug | LoggingLevel::Info | LoggingLevel::Notice => {
                tracing::debug!("{}: {text}", self.server)
            }
            _ => tracing::info!("{}: {text}", self.server),
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.said.note_tools_changed();
    }
}
