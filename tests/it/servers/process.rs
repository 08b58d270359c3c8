//! A server program under a test: on a free port, in a folder of its own, gone when dropped.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Waits between two looks whether the server is up.
const POLL: Duration = Duration::from_millis(50);
const POLLS: usize = 1200;

pub struct Process {
    child: Child,
    pub address: SocketAddr,
    /// Where its data may live.
    folder: tempfile::TempDir,
    scheme: &'static str,
}

impl Process {
    /// Starts a program whose arguments depend on its address and folder, and waits until `ready` is answered. Panics
    /// with `install` when the program cannot be had.
    pub fn start(
        program: &Path,
        arguments: impl FnOnce(SocketAddr, &Path) -> Vec<String>,
        ready: &str,
        install: &str,
    ) -> Self {
        Self::launch(program, arguments, install, "http").until(ready, &client())
    }

    /// One that speaks HTTPS, with a certificate that `authority` (PEM) vouches for.
    pub fn start_over_tls(
        program: &Path,
        arguments: impl FnOnce(SocketAddr, &Path) -> Vec<String>,
        ready: &str,
        install: &str,
        authority: &str,
    ) -> Self {
        Self::launch(program, arguments, install, "https").until(ready, &client_that_trusts(authority))
    }

    fn launch(
        program: &Path,
        arguments: impl FnOnce(SocketAddr, &Path) -> Vec<String>,
        install: &str,
        scheme: &'static str,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // The port is free when it is asked for; the server takes it at once.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
        let log = fs::File::create(folder.path().join("log")).expect("a log file");
        let child = Command::new(program)
            .args(arguments(address, folder.path()))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}; {install}", program.display()));
        Self { child, address, folder, scheme }
    }

    fn until(mut self, ready: &str, client: &reqwest::Client) -> Self {
        let url = format!("{}{ready}", self.url());
        for _ in 0..POLLS {
            if get(client, &url).is_ok() {
                return self;
            }
            if let Some(status) = self.child.try_wait().expect("the state of the child") {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                panic!("the server ended with {status}: {log}");
            }
            std::thread::sleep(POLL);
        }
        panic!("the server did not become ready");
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request from outside of a runtime.
fn blocking<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(work)
        });
        worker.join().unwrap()
    })
}

fn get(client: &reqwest::Client, url: &str) -> Result<String, String> {
    blocking(async move {
        let answer = client.get(url).send().await.and_then(|answer| answer.error_for_status());
        match answer {
            Ok(answer) => answer.text().await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    })
}

/// Sends a body; panics when the server does not take it.
pub fn post(url: &str, kind: &str, body: String) -> Value {
    let client = client();
    blocking(async move {
        let answer = client.post(url).header("content-type", kind).body(body).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{url}: {status}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    })
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// A client that takes the certificates for which `authority` (PEM) vouches.
pub fn client_that_trusts(authority: &str) -> reqwest::Client {
    let authority = reqwest::Certificate::from_pem(authority.as_bytes()).unwrap();
    reqwest::Client::builder().no_proxy().tls_certs_only([authority]).build().unwrap()
}
