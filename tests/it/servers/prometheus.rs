//! A real Prometheus on loopback that holds the samples of an OpenMetrics text.
//!
//! History goes in as blocks that `promtool` writes: a server does not scrape the past.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

const INSTALL: &str = "Prometheus is needed for this test: apt-get install -y --no-install-recommends prometheus";

/// Waits between two looks whether the server is up.
const POLL: Duration = Duration::from_millis(50);
const POLLS: usize = 1200;

/// A running server; dropped, it is stopped and its data are removed.
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
    data: tempfile::TempDir,
}

impl Prometheus {
    /// Starts a server over the samples of a file. Panics with the reason when it cannot be had.
    pub fn with_history(openmetrics: &Path) -> Self {
        let data = tempfile::tempdir().expect("a temporary folder");
        let tsdb = data.path().join("tsdb");
        run_promtool(&["tsdb", "create-blocks-from", "openmetrics", "--quiet"], &[openmetrics, &tsdb]);
        let config = data.path().join("prometheus.yml");
        fs::write(&config, "scrape_configs: []\n").expect("a configuration file");
        // The port is free when it is asked for; the server takes it at once.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
        let log = fs::File::create(data.path().join("log")).expect("a log file");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", tsdb.display()))
            // The samples have fixed times and must not expire.
            .arg("--storage.tsdb.retention.time=100y")
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=warn")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start prometheus: {error}; {INSTALL}"));
        let mut server = Self { child, address, data };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&mut self) {
        for _ in 0..POLLS {
            if self.get("/-/ready").is_ok_and(|(status, _)| status == 200) {
                return;
            }
            if let Some(status) = self.child.try_wait().expect("the state of the child") {
                let log = fs::read_to_string(self.data.path().join("log")).unwrap_or_default();
                panic!("prometheus ended with {status}: {log}");
            }
            std::thread::sleep(POLL);
        }
        panic!("prometheus did not become ready");
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `data` of an API answer, or the error text.
    pub fn query(&self, endpoint: &str, parameters: &[(&str, &str)]) -> Result<Value, String> {
        let pairs: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let path = format!("/api/v1/{endpoint}?{}", pairs.join("&"));
        let (_, body) = self.get(&path).map_err(|error| error.to_string())?;
        let mut answer: Value = serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))?;
        match answer["status"].as_str() {
            Some("success") => Ok(answer["data"].take()),
            _ => Err(answer["error"].as_str().unwrap_or(&body).to_owned()),
        }
    }

    /// One request of HTTP/1.0, whose answer ends with the connection.
    fn get(&self, path: &str) -> std::io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.address)?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok((status, body.to_owned()))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run_promtool(arguments: &[&str], paths: &[&Path]) {
    let output = Command::new("promtool")
        .args(arguments)
        .args(paths)
        .output()
        .unwrap_or_else(|error| panic!("cannot start promtool: {error}; {INSTALL}"));
    assert!(output.status.success(), "promtool: {}", String::from_utf8_lossy(&output.stderr));
}

fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
