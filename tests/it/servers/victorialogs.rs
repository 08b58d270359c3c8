//! A real VictoriaLogs on loopback, in a folder of its own.

use std::time::Duration;

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

    /// Stores log events, so that they are found from then on; `service` and `pod` make a stream.
    pub fn store(&self, events: &[Value]) {
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        let url =
            format!("{}/insert/jsonline?_stream_fields=service,pod&_time_field=_time&_msg_field=_msg", self.url());
        post(&url, "application/stream+json", lines);
        // What was taken in is found some seconds later: events first, then their fields.
        let ask = |what: &str, query: &str| {
            let form = format!("query={query}");
            post(&format!("{}/select/logsql/{what}", self.url()), "application/x-www-form-urlencoded", form)
        };
        let count = || ask("query", "* | stats count() events")["events"].as_str().and_then(|n| n.parse().ok());
        let fields = || ask("field_names", "*")["values"].as_array().map_or(0, Vec::len);
        let all = events[0].as_object().unwrap().len();
        for _ in 0..600 {
            if count() == Some(events.len()) && fields() >= all {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{} events of {all} fields were stored, {:?} of {} are found", events.len(), count(), fields());
    }
}
