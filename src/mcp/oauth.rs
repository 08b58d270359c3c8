//! OAuth for servers that ask for it: a login by hand once, whose tokens are kept and refreshed from then on.
//!
//! In: a server's address. Out: an address for the user's browser, and, after the user has agreed there, credentials in
//! a file that only the user can read. Discovery, registration, PKCE and the exchange are the SDK's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Client;
use rmcp::transport::AuthClient;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, CredentialStore, OAuthState, StoredCredentials,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::McpError;
use super::settings::{ServerSettings, Wire};
use crate::domain::text::clean_line;

/// How long the user may take in the browser.
const LOGIN_DEADLINE: Duration = Duration::from_secs(300);
/// Bytes of the request that the browser is sent back with.
const MAX_REQUEST_BYTES: u64 = 16 << 10;
const CALLBACK: &str = "/callback";

/// Who the program is for the authorization server; without an id it registers itself.
#[derive(Debug, Clone, Default)]
pub struct Registered {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// Without any, those that the server asks for.
    pub scopes: Vec<String>,
}

/// Logs in. `show` gets the address that the user has to open.
pub async fn login(settings: &ServerSettings, registered: Registered, show: impl Fn(&str)) -> Result<(), McpError> {
    let Wire::Http { url, http, credentials: Some(path), .. } = &settings.wire else {
        return Err(McpError::Settings("only a server with a `url` can be logged in to".to_owned()));
    };
    let client = crate::http::client(url, http).map_err(|error| McpError::Settings(error.to_string()))?;
    let challenge = challenge(&client, url).await?;
    let listener =
        TcpListener::bind("127.0.0.1:0").await.map_err(|error| failed("cannot listen for the browser", &error))?;
    let port = listener.local_addr().map_err(|error| failed("cannot listen for the browser", &error))?.port();
    let mut manager = AuthorizationManager::new_allowing_private_addresses(url.as_str()).await.map_err(refused)?;
    // Its answers are those of a resource, whose authorities and proxy may be the user's own.
    manager.with_client(client).map_err(refused)?;
    manager.set_credential_store(FileStore { path: path.clone() });
    let mut state = OAuthState::Unauthorized(manager);
    state.start_authorization(request(port, registered, challenge)).await.map_err(refused)?;
    show(&state.get_authorization_url().await.map_err(refused)?);
    let back = tokio::time::timeout(LOGIN_DEADLINE, callback(&listener, port)).await;
    let back = back.map_err(|_| McpError::Timeout(LOGIN_DEADLINE, String::new()))??;
    state.handle_callback_url(&back).await.map_err(refused)
}

fn request(port: u16, registered: Registered, challenge: Option<String>) -> AuthorizationRequest {
    let mut request =
        AuthorizationRequest::new(format!("http://127.0.0.1:{port}{CALLBACK}")).with_client_name("oncall");
    if let Some(id) = registered.client_id {
        request = request.with_preregistered_client(id);
    }
    if let Some(secret) = registered.client_secret {
        request = request.with_client_secret(secret);
    }
    if !registered.scopes.is_empty() {
        request = request.with_scopes(registered.scopes);
    }
    match challenge {
        Some(challenge) => request.with_challenge(challenge),
        None => request,
    }
}

/// What the server says when it is asked without a token.
async fn challenge(client: &Client, url: &str) -> Result<Option<String>, McpError> {
    let body = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "oncall", "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let request = client.post(url).header("Accept", "application/json, text/event-stream").json(&body);
    let answer = request.send().await.map_err(|error| McpError::Gone(crate::http::with_causes(&error)))?;
    match answer.status().as_u16() {
        401 | 403 => {
            let header = answer.headers().get(reqwest::header::WWW_AUTHENTICATE);
            Ok(header.and_then(|header| header.to_str().ok()).map(str::to_owned))
        }
        // Some ask only when a tool is called: where to log in is then discovered.
        _ => Ok(None),
    }
}

/// Waits for the browser to come back; gives the whole address that it came to.
async fn callback(listener: &TcpListener, port: u16) -> Result<String, McpError> {
    loop {
        let (stream, _) = listener.accept().await.map_err(|error| failed("cannot listen for the browser", &error))?;
        // A browser also asks for an icon, and may open connections that it does not use.
        let Ok(Some(path)) = tokio::time::timeout(Duration::from_secs(10), answer(stream)).await else { continue };
        return Ok(format!("http://127.0.0.1:{port}{path}"));
    }
}

/// Answers one request; the path, when it is the one that is waited for.
async fn answer(mut stream: TcpStream) -> Option<String> {
    let mut line = String::new();
    let (read, mut write) = stream.split();
    let mut reader = BufReader::new(tokio::io::AsyncReadExt::take(read, MAX_REQUEST_BYTES));
    reader.read_line(&mut line).await.ok()?;
    let path = line.split_whitespace().nth(1)?.to_owned();
    let is_it = path.split('?').next() == Some(CALLBACK);
    // The rest of the request is read, so that the browser sees an answer and no broken connection.
    let mut header = String::new();
    while reader.read_line(&mut header).await.ok()? > 2 {
        header.clear();
    }
    let (status, text) = match is_it {
        true => ("200 OK", "oncall has what it needs: this page can be closed.\n"),
        false => ("404 Not Found", "nothing here\n"),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    write.write_all(answer.as_bytes()).await.ok()?;
    write.shutdown().await.ok()?;
    is_it.then_some(path)
}

/// A client that sends the kept token and refreshes it when its time is over.
pub(super) async fn client(client: Client, url: &str, path: &Path) -> Result<AuthClient<Client>, McpError> {
    let mut manager = AuthorizationManager::new_allowing_private_addresses(url).await.map_err(refused)?;
    manager.with_client(client.clone()).map_err(refused)?;
    manager.set_credential_store(FileStore { path: path.to_path_buf() });
    match manager.initialize_from_store().await.map_err(refused)? {
        true => Ok(AuthClient::new(client, manager)),
        false => Err(McpError::Unauthorized("its login is no longer good: log in again".to_owned())),
    }
}

fn refused(error: AuthError) -> McpError {
    McpError::Unauthorized(format!("the login failed: {}", clean_line(&error.to_string(), 500)))
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> McpError {
    McpError::Settings(format!("{what}: {error}"))
}

/// Credentials in a file that only the user can read.
struct FileStore {
    path: PathBuf,
}

impl FileStore {
    fn wrong(&self, error: &dyn std::fmt::Display) -> AuthError {
        AuthError::CredentialStoreError(format!("{}: {error}", self.path.display()))
    }
}

#[async_trait]
impl CredentialStore for FileStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        match std::fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| self.wrong(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.wrong(&error)),
        }
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_vec(&credentials).map_err(|error| self.wrong(&error))?;
        write_private(&self.path, &text).map_err(|error| self.wrong(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(self.wrong(&error)),
            _ => Ok(()),
        }
    }
}

/// Beside the old file first, so that one that breaks off leaves the old.
fn write_private(path: &Path, text: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let mut folder = std::fs::DirBuilder::new();
    let mut file = std::fs::OpenOptions::new();
    file.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    }
    if let Some(parent) = path.parent() {
        folder.recursive(true).create(parent)?;
    }
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    file.open(&beside)?.write_all(text)?;
    std::fs::rename(beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn credentials_are_kept_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore { path: folder.path().join("tokens/a.json") };
        assert!(store.load().await.unwrap().is_none());
        store.save(StoredCredentials::new("id".into(), None, vec!["s".into()], Some(1))).await.unwrap();
        assert_eq!(store.load().await.unwrap().unwrap().client_id, "id");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&store.path), mode(store.path.parent().unwrap())), (0o600, 0o700));
        }
        store.clear().await.unwrap();
        assert!(store.load().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn the_browser_s_return_is_waited_for_among_other_requests() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let ask = |path: &'static str| async move {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
            answer
        };
        let (back, (icon, page)) = tokio::join!(callback(&listener, port), async {
            (ask("/favicon.ico").await, ask("/callback?code=c&state=s").await)
        });
        assert_eq!(back.unwrap(), format!("http://127.0.0.1:{port}/callback?code=c&state=s"));
        assert!(icon.starts_with("HTTP/1.1 404") && page.starts_with("HTTP/1.1 200"), "{icon}{page}");
    }
}
