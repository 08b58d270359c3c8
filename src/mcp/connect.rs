//! One connection: the transport is opened and the generation of the protocol settled.
//!
//! In: settings. Out: a running client, or why there is none. Deadlines are the caller's.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, ProtocolVersion, RequestId};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, RxJsonRpcMessage, TxJsonRpcMessage,
};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, Transport};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, Command};

use super::handler::{Handler, Said};
use super::settings::{Generation, ServerSettings, Wire};
use super::{McpError, oauth};

/// Attempts to get a broken event stream back, and the longest pause between two.
const STREAM_ATTEMPTS: usize = 5;
const STREAM_PAUSE: Duration = Duration::from_secs(10);
/// Bytes of a line of stderr that are looked at.
const STDERR_LINE_BYTES: u64 = 4096;

/// A connected client.
pub type Running = RunningService<RoleClient, Handler>;

/// Connects. In [`Generation::Auto`] a server that breaks off at the question for discovery is asked again, on a new
/// connection, with the handshake.
pub async fn open(settings: &ServerSettings, handler: &Handler) -> Result<Running, McpError> {
    let versions = || vec![ProtocolVersion::LATEST];
    let mode = match settings.generation {
        Generation::Initialize => ClientLifecycleMode::Initialize,
        Generation::Discover => ClientLifecycleMode::Discover { preferred_versions: versions() },
        Generation::Auto => ClientLifecycleMode::Auto {
            preferred_versions: versions(),
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    };
    let first = attempt(settings, handler, mode).await;
    match &first {
        Err(McpError::Gone(_) | McpError::Protocol(_)) if settings.generation == Generation::Auto => {
            tracing::debug!("{}: discovery failed ({first:?}): trying the handshake", settings.name);
            attempt(settings, handler, ClientLifecycleMode::Initialize).await
        }
        _ => first,
    }
}

async fn attempt(settings: &ServerSettings, handler: &Handler, mode: ClientLifecycleMode) -> Result<Running, McpError> {
    let served = match &settings.wire {
        Wire::Stdio { .. } => {
            let child = child(settings, &handler.said)?;
            handler.clone().serve_with_lifecycle(InOrder { inner: child, asked: None }, mode).await
        }
        Wire::Http { url, http, bearer, credentials } => {
            let client = crate::http::client(url, http).map_err(|error| McpError::Settings(error.to_string()))?;
            let config = http_config(url, bearer.as_deref());
            match credentials.as_deref().filter(|path| bearer.is_none() && path.is_file()) {
                Some(path) => {
                    let client = oauth::client(client, url, path).await?;
                    let inner = StreamableHttpClientTransport::with_client(client, config);
                    handler.clone().serve_with_lifecycle(InOrder { inner, asked: None }, mode).await
                }
                None => {
                    let inner = StreamableHttpClientTransport::with_client(client, config);
                    handler.clone().serve_with_lifecycle(InOrder { inner, asked: None }, mode).await
                }
            }
        }
    };
    served.map_err(|error: ClientInitializeError| McpError::of_start(&error, &handler.said.last_words()))
}

fn http_config(url: &str, bearer: Option<&str>) -> StreamableHttpClientTransportConfig {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(HashMap::new())
        .reinit_on_expired_session(true);
    let mut backoff = ExponentialBackoff::default();
    backoff.max_times = Some(STREAM_ATTEMPTS);
    backoff.max_delay = Some(STREAM_PAUSE);
    config.retry_config = Arc::new(backoff);
    match bearer {
        Some(token) => config.auth_header(token),
        None => config,
    }
}

/// Starts the process; its stderr is drained, and the end of it kept.
fn child(settings: &ServerSettings, said: &Arc<Said>) -> Result<TokioChildProcess, McpError> {
    let Wire::Stdio { command, args, env, cwd } = &settings.wire else {
        return Err(McpError::Settings("it has no command".to_owned()));
    };
    let mut process = Command::new(command);
    process.args(args).env_clear().envs(env).kill_on_drop(true);
    if let Some(cwd) = cwd {
        process.current_dir(cwd);
    }
    let spawned = TokioChildProcess::builder(process).stderr(Stdio::piped()).spawn();
    let (child, stderr) = spawned.map_err(|error| McpError::Start {
        command: command.clone(),
        reason: match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such program; install it, or give its path".to_owned(),
            _ => error.to_string(),
        },
    })?;
    said.set_process(child.id());
    if let Some(stderr) = stderr {
        // Ends with the process, whose pipe it reads.
        tokio::spawn(drain(stderr, Arc::clone(said), settings.name.clone()));
    }
    Ok(child)
}

/// Reads to the end, however long a line is, so that the process never waits for a reader.
async fn drain(stderr: ChildStderr, said: Arc<Said>, server: String) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(STDERR_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                tracing::debug!("{server}: {}", crate::domain::text::clean_line(text.trim(), 300));
                said.add_stderr(&text);
            }
        }
    }
}

/// A transport that drops answers to a handshake that was given up: a process that wakes up late answers the question
/// for discovery after it was asked to initialise, which would be taken for a wrong answer.
struct InOrder<T> {
    inner: T,
    /// The handshake that waits for its answer.
    asked: Option<RequestId>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for InOrder<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item {
            let is_handshake =
                matches!(request.request, ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_));
            self.asked = is_handshake.then(|| request.id.clone());
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            let answers = match &message {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                _ => None,
            };
            match (&self.asked, answers) {
                // Some servers turn a number into a text.
                (Some(asked), Some(answers)) if asked.to_string() != answers.to_string() => {
                    tracing::debug!("a late answer to an earlier handshake is dropped");
                }
                _ => return Some(message),
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
