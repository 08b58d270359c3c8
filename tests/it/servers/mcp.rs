//! MCP servers: the one in Python that misbehaves, and oncall's own over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

/// The command of the server in Python, with its arguments.
pub fn misbehaving() -> (String, Vec<String>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/servers/mcp_server.py");
    ("python3".to_owned(), vec![script.display().to_string()])
}

pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// `oncall mcp serve … --transport http` on a free port; ends when dropped.
pub struct HttpServer {
    child: Child,
    url: String,
    _data: tempfile::TempDir,
}

impl HttpServer {
    pub fn start(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("oncall"));
        command.args(["mcp", "serve"]).args(args).args(["--transport", "http", "--port", "0"]);
        command.env("ONCALL_DATA_DIR", data.path()).env("XDG_CONFIG_HOME", data.path()).current_dir(data.path());
        command.envs(variables.iter().copied()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines
            .find_map(|line| line.unwrap().split_once(" at http://").map(|(_, address)| format!("http://{address}")))
            .expect("it says where it listens");
        // What it says from here on is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url, _data: data }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp")
    }

    /// The status that a request gets which carries this header.
    pub fn status_with(&self, header: &str, value: &str) -> u16 {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let host = if header == "Host" { String::new() } else { format!("Host: {}\r\n", self.address()) };
        let request = format!(
            "POST /mcp HTTP/1.1\r\n{host}{header}: {value}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
