//! Why a server gave no answer, in words that tell what to do.

use std::error::Error;
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::domain::text::clean_line;
use crate::domain::{Failure, FailureKind};

/// Characters of what a server says in an error.
const QUOTED_CHARS: usize = 500;

/// Why a server, or a call of it, failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum McpError {
    /// The process cannot be started.
    #[error("cannot start `{command}`: {reason}")]
    Start { command: String, reason: String },
    /// A variable is not set, a file is missing, a URL is none.
    #[error("{0}")]
    Settings(String),
    #[error("gave no answer within {} s{}", .0.as_secs_f64(), last_words(.1))]
    Timeout(Duration, String),
    #[error("{0}")]
    Unauthorized(String),
    /// No connection, or one that broke off; a later call may find it again.
    #[error("{0}")]
    Gone(String),
    /// It is there, but what it says is not the protocol.
    #[error("{0}")]
    Protocol(String),
    /// It refused the arguments.
    #[error("{0}")]
    BadArguments(String),
    /// It answered with an error of its own.
    #[error("{0}")]
    Refused(String),
    #[error("cancelled")]
    Cancelled,
}

/// The end of what a process wrote to stderr, where it wrote something.
fn last_words(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("; its last words: {text}") }
}

impl McpError {
    /// A connection that was never made. `said` is the end of what the process wrote to stderr.
    pub(super) fn of_start(error: &ClientInitializeError, said: &str) -> Self {
        if error.is_authorization_required() || is_unauthorized(error) {
            return Self::Unauthorized(unauthorized(error.auth_challenge()));
        }
        match error {
            ClientInitializeError::ConnectionClosed(_) => {
                Self::Gone(format!("it ended before it answered{}", last_words(said)))
            }
            ClientInitializeError::TransportError { error, .. } => {
                Self::Gone(format!("{}{}", causes(error), last_words(said)))
            }
            ClientInitializeError::JsonRpcError(error) => {
                Self::Protocol(format!("it refused to begin: {}", told(error)))
            }
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
                Self::Protocol(format!(
                    "it speaks other versions of the protocol only: {}",
                    clean_line(&versions.join(", "), QUOTED_CHARS)
                ))
            }
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::of_start(fallback, said),
            ClientInitializeError::Cancelled => Self::Cancelled,
            other => Self::Protocol(format!(
                "what it says is not MCP: {}{}",
                clean_line(&other.to_string(), QUOTED_CHARS),
                last_words(said)
            )),
        }
    }

    /// A call, or a listing, that failed.
    pub(super) fn of_call(error: &ServiceError, said: &str) -> Self {
        if error.is_authorization_required() || is_unauthorized(error) {
            return Self::Unauthorized(unauthorized(error.auth_challenge()));
        }
        match error {
            ServiceError::McpError(error) if error.code == ErrorCode::INVALID_PARAMS => Self::BadArguments(told(error)),
            ServiceError::McpError(error) => Self::Refused(told(error)),
            ServiceError::TransportSend(error) => Self::Gone(causes(error)),
            ServiceError::TransportClosed => {
                Self::Gone(format!("the connection broke off while it worked{}", last_words(said)))
            }
            ServiceError::Cancelled { .. } => Self::Cancelled,
            ServiceError::Timeout { timeout } => Self::Timeout(*timeout, said.to_owned()),
            ServiceError::InputRequiredRoundsExceeded { .. } => {
                Self::Refused("it goes on asking for input, which is declined".to_owned())
            }
            ServiceError::UnexpectedResponse => {
                Self::Protocol("its answer is not in the shape of the protocol".to_owned())
            }
            other => Self::Protocol(clean_line(&other.to_string(), QUOTED_CHARS)),
        }
    }

    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Start { .. } | Self::Gone(_) => FailureKind::Unavailable,
            Self::Timeout(..) => FailureKind::Timeout,
            Self::Settings(_) | Self::Unauthorized(_) => FailureKind::Unauthorized,
            Self::Protocol(_) | Self::Refused(_) => FailureKind::SourceError,
            Self::BadArguments(_) => FailureKind::BadArguments,
            Self::Cancelled => FailureKind::Cancelled,
        }
    }

    /// As the failure of a call of that source.
    pub fn failure(&self, source: &str) -> Failure {
        Failure::of_source(source, self.kind(), self.to_string())
    }
}

fn told(error: &ErrorData) -> String {
    format!("{} ({})", clean_line(&error.message, QUOTED_CHARS), error.code.0)
}

/// 401 and 403 without a challenge come as plain status errors.
fn is_unauthorized(error: &(dyn Error + 'static)) -> bool {
    let text = causes(error);
    text.contains("401 Unauthorized")
        || text.contains("403 Forbidden")
        || text.contains("HTTP 401")
        || text.contains("HTTP 403")
}

fn unauthorized(challenge: Option<&str>) -> String {
    let remedy = "set auth = { bearer_env = \"VARIABLE\" } (or token_file) to a token of it";
    match challenge {
        Some(challenge) if challenge.contains("insufficient_scope") => {
            let scope =
                challenge.split_once("scope=\"").and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default();
            let scope = clean_line(scope, 200);
            format!("it wants further rights: log in again with `oncall mcp login NAME --scope \"{scope}\"`")
        }
        Some(challenge) if challenge.contains("resource_metadata") => {
            format!("it asks for OAuth: log in with `oncall mcp login NAME`, or {remedy}")
        }
        Some(challenge) if challenge.contains("invalid_token") => format!("it refuses the token: {remedy}"),
        _ => format!("it asks for a token, or refuses the one that it gets: {remedy}"),
    }
}

/// An error with what caused it, each once, on one line.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Its own cause is told by no `source`.
        if let Some(StreamableHttpError::Client(client)) = cause.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return clean_line(&crate::http::with_causes(client), QUOTED_CHARS);
        }
        let next = cause.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = cause.source();
    }
    // The transport's name is that of a type of the program.
    let text = match text.split_once("] error: ") {
        Some((head, rest)) if head.contains("Transport [") => rest.to_owned(),
        _ => text,
    };
    clean_line(&text, QUOTED_CHARS)
}
