//! Streamable HTTP where it goes wrong: sessions that are lost, certificates that nobody vouches for, gateways that
//! answer in place of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use oncall::domain::{FailureKind, Outcome};
use oncall::http::HttpSettings;
use oncall::mcp::tool::{Consent, McpTool};
use oncall::mcp::{Generation, McpError, Server, ServerSettings, Wire};
use oncall::tool::Tool;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_util::sync::CancellationToken;

use crate::program::{oncall as program, said};
use crate::servers::mcp::HttpServer;

/// What a server with sessions went through.
#[derive(Default)]
struct Seen {
    /// Sessions that were begun; only the last is known.
    begun: AtomicU32,
    calls: AtomicU32,
}

/// A server of the older generation whose session is gone after every call.
async fn forgetful(State(seen): State<Arc<Seen>>, headers: HeaderMap, Json(message): Json<Value>) -> Response {
    let id = message["id"].clone();
    let answer = |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
    let session = headers.get("mcp-session-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    match message["method"].as_str().unwrap_or_default() {
        "server/discover" => {
            let error = json!({"code": -32601, "message": "Method not found"});
            Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
        }
        "initialize" => {
            let session =
                format!("s{}", seen.begun.fetch_add(1, Ordering::SeqCst) + 1 + seen.calls.load(Ordering::SeqCst));
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}});
            ([("mcp-session-id", session)], answer(result)).into_response()
        }
        _ if message.get("id").is_none() => StatusCode::ACCEPTED.into_response(),
        _ if session != Some(format!("s{}", seen.begun.load(Ordering::SeqCst) + seen.calls.load(Ordering::SeqCst))) => {
            StatusCode::NOT_FOUND.into_response()
        }
        "tools/list" => {
            let tool =
                json!({"name": "count", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
            answer(json!({"tools": [tool]}))
        }
        "tools/call" => {
            let call = seen.calls.fetch_add(1, Ordering::SeqCst) + 1;
            answer(json!({"content": [{"type": "text", "text": format!("call {call}")}]}))
        }
        _ => answer(json!({})),
    }
}

/// Serves on a free port until the test ends; the address.
async fn served(router: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

fn settings(url: &str) -> ServerSettings {
    ServerSettings {
        name: "f".into(),
        wire: Wire::Http { url: url.into(), http: Box::new(HttpSettings::default()), bearer: None, credentials: None },
        generation: Generation::Auto,
        start_timeout: Duration::from_secs(20),
        allow: Vec::new(),
        deny: Vec::new(),
    }
}

#[tokio::test]
async fn a_lost_session_is_begun_again() {
    let seen = Arc::new(Seen::default());
    // No stream of events: GET is answered with 405.
    let router = axum::Router::new().route("/mcp", post(forgetful)).with_state(Arc::clone(&seen));
    let server = Server::connect(settings(&served(router).await)).await.unwrap();
    for call in 1..=3 {
        let answer = server.call("count", Default::default(), &CancellationToken::new()).await;
        let answer = serde_json::to_value(answer.unwrap()).unwrap();
        assert_eq!(answer["content"][0]["text"], format!("call {call}"));
    }
    assert_eq!(seen.begun.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn what_answers_in_place_of_a_server_is_said() {
    let error = |router: axum::Router| async move {
        let error = Server::connect(settings(&served(router).await)).await.err().unwrap();
        error.to_string()
    };
    let page = |status: StatusCode| {
        axum::Router::new().fallback(move || async move { (status, [("content-type", "text/html")], "<h1>Oops</h1>") })
    };
    let (login, gone, broken) = tokio::join!(
        error(page(StatusCode::OK)),
        error(page(StatusCode::NOT_FOUND)),
        error(page(StatusCode::BAD_GATEWAY)),
    );
    assert!(login.contains("text/html"), "{login}");
    assert!(gone.contains("404"), "{gone}");
    assert!(broken.contains("502"), "{broken}");
    let refused = Server::connect(settings("http://127.0.0.1:9/mcp")).await.err().unwrap();
    assert!(matches!(&refused, McpError::Gone(text) if text.contains("onnect")), "{refused:?}");
}

/// A server with a certificate that it signed itself, before a plain one.
async fn behind_tls(plain: String, certificate: rcgen::CertifiedKey<rcgen::KeyPair>) -> u16 {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, plain) = (acceptor.clone(), plain.clone());
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(stream).await else { return };
                let Ok(mut server) = tokio::net::TcpStream::connect(plain).await else { return };
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_self_signed_certificate_is_refused_until_it_is_trusted() {
    let server = HttpServer::start(&["logs"], &[]);
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), certificate.cert.pem()).unwrap();
    let port = behind_tls(server.address().to_owned(), certificate).await;
    let call = |more: &str| {
        let config = format!("[mcp.logs]\nurl = \"https://localhost:{port}/mcp\"\n{more}\n");
        std::fs::write(folder.path().join("oncall.toml"), config).unwrap();
        let mut command = program(folder.path());
        command.current_dir(folder.path()).args(["tools", "call", "logs__get_current_timestamp", "--json"]);
        said(&command.output().unwrap())
    };
    let (code, _, err) = call("");
    assert_eq!(code, 4);
    assert!(err.contains("certificate"), "{err}");
    let (code, out, err) = call("tls = { ca_file = \"ca.pem\" }");
    assert_eq!((code, out.contains("timestamp_ms")), (0, true), "{err}");
}

#[tokio::test]
async fn a_tool_that_may_write_runs_with_consent_alone() {
    let (command, args) = crate::servers::mcp::misbehaving();
    let env = std::env::vars().filter(|(name, _)| name == "PATH").collect();
    let wire = Wire::Stdio { command, args, env, cwd: None };
    let server = Arc::new(Server::connect(ServerSettings { wire, ..settings("") }).await.unwrap());
    let offer = server.offers().iter().find(|offer| offer.tool == "write").unwrap().clone();
    let call = async |consent| {
        let tool = McpTool::new(Arc::clone(&server), offer.clone(), consent);
        tool.call(json!({"text": "x"}), &CancellationToken::new()).await
    };
    assert!(matches!(call(Consent::Given).await, Outcome::Output(_)));
    let refused = call(Consent::Nobody).await;
    assert!(matches!(refused, Outcome::Failure(failure) if failure.kind == FailureKind::NotAllowed));
    server.close().await;
}
