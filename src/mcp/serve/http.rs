//! The servers over streamable HTTP: on loopback for anybody on the machine, elsewhere only with a token. Requests whose
//! `Host` or `Origin` is of another site are refused, so that no page in a browser reaches them by a name that it makes
//! point here (DNS rebinding).

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Host;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";

/// Where and for whom it is served.
pub struct Listening {
    pub address: SocketAddr,
    /// Wanted of every request; `None` on loopback only.
    pub token: Option<String>,
    /// Further names under which clients reach it.
    pub hosts: Vec<String>,
}

/// Why it cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(
        "{0} can be reached from other machines: give --token-env VARIABLE, which holds the token that clients send"
    )]
    TokenNeeded(SocketAddr),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("serving broke off: {0}")]
    Broken(std::io::Error),
}

/// Listens. The address that it has is that of the listener (port 0 picks a free one).
pub async fn bind(listening: &Listening) -> Result<TcpListener, ServeError> {
    let address = listening.address;
    if !address.ip().is_loopback() && listening.token.is_none() {
        return Err(ServeError::TokenNeeded(address));
    }
    TcpListener::bind(address).await.map_err(|error| ServeError::Listen { address, error })
}

/// Serves until the token is cancelled.
pub async fn serve(
    host: Host,
    listener: TcpListener,
    listening: Listening,
    cancel: CancellationToken,
) -> Result<(), ServeError> {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts(&listening))
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(str::to_owned))
        .with_cancellation_token(cancel.child_token());
    let service =
        StreamableHttpService::new(move || Ok(host.clone()), Arc::new(LocalSessionManager::default()), config);
    let mut router = Router::new().nest_service(PATH, service);
    if let Some(token) = listening.token {
        router = router.layer(middleware::from_fn_with_state(Arc::<str>::from(token), authorized));
    }
    axum::serve(listener, router).with_graceful_shutdown(cancel.cancelled_owned()).await.map_err(ServeError::Broken)
}

/// The names in `Host` that are ours: loopback, the address itself, and what is given.
fn hosts(listening: &Listening) -> Vec<String> {
    let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    let ip = listening.address.ip();
    if !ip.is_unspecified() && !ip.is_loopback() {
        hosts.push(ip.to_string());
    }
    hosts.extend(listening.hosts.iter().cloned());
    hosts
}

/// Lets requests pass that carry the token.
async fn authorized(State(token): State<Arc<str>>, request: Request, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given =
        given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let challenge = match given {
        Some((_, given)) if is_same(given.trim(), &token) => return next.run(request).await,
        Some(_) => "Bearer error=\"invalid_token\"",
        None => "Bearer",
    };
    let headers = [(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))];
    (StatusCode::UNAUTHORIZED, headers, "a bearer token is needed\n").into_response()
}

/// Compares hashes, so that the time taken tells nothing of where the texts differ.
fn is_same(a: &str, b: &str) -> bool {
    // `blake3::Hash` compares in constant time.
    blake3::hash(a.as_bytes()) == blake3::hash(b.as_bytes())
}
