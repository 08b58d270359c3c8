//! A real VictoriaLogs on loopback, in a folder of its own.

use serde_json::Value;

use super::compiled::{INSTALL, compiled};
use super::process::{Process, post};

pub struct VictoriaLogs(Process);

impl VictoriaLogs {
    pub fn start() -> Self {
        let arguments = |address: std::net::SocketAddr, folder: &std::path::Path| {
            vec![
                format!("-storageDataPath={}", folder.join("data").display()),
                format!("-httpListenAddr={address}"),
                "-retentionPeriod=10y".to_owned(),
            ]
        };
        Self(Process::start(&compiled("victoria-logs"), arguments, "/health", INSTALL))
    }

    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Stores log events; `service` and `pod` make a stream.
    pub fn store(&self, events: &[Value]) {
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        let url =
            format!("{}/insert/jsonline?_stream_fields=service,pod&_time_field=_time&_msg_field=_msg", self.url());
        post(&url, "application/stream+json", lines);
    }
}
