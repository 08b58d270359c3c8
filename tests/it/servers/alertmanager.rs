//! A real Alertmanager on loopback, which notifies nobody.

use std::path::Path;

use serde_json::{Value, json};

use super::process::{Process, post};

const INSTALL: &str =
    "Alertmanager is needed for this test: apt-get install -y --no-install-recommends prometheus-alertmanager";
/// An alert that inhibits others: a critical one keeps warnings of its service quiet.
const CONFIG: &str = "route: {receiver: none, group_wait: 1s}\nreceivers: [{name: none}]\ninhibit_rules:\n\
                      - {source_matchers: ['severity=\"critical\"'], target_matchers: ['severity=\"info\"'], equal: [service]}\n";

pub struct Alertmanager(Process);

impl Alertmanager {
    pub fn start() -> Self {
        // Debian calls it so; elsewhere it has its own name.
        let names = ["prometheus-alertmanager", "alertmanager"];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
        let program = found.into_iter().find(|program| program.is_file());
        let program = program.unwrap_or_else(|| panic!("{INSTALL}"));
        let arguments = |address, folder: &Path| {
            let config = folder.join("alertmanager.yml");
            std::fs::write(&config, CONFIG).unwrap();
            vec![
                format!("--config.file={}", config.display()),
                format!("--storage.path={}", folder.join("data").display()),
                format!("--web.listen-address={address}"),
                "--cluster.listen-address=".to_owned(),
                "--log.level=warn".to_owned(),
            ]
        };
        Self(Process::start(&program, arguments, "/-/ready", INSTALL))
    }

    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Lets alerts fire, as Prometheus does.
    pub fn fire(&self, alerts: &Value) {
        post(&format!("{}/api/v2/alerts", self.url()), "application/json", alerts.to_string());
    }

    pub fn silence(&self, label: &str, value: &str, comment: &str) {
        let now = jiff::Timestamp::now();
        let silence = json!({
            "matchers": [{"name": label, "value": value, "isRegex": false, "isEqual": true}],
            "startsAt": now.to_string(), "endsAt": (now + jiff::SignedDuration::from_hours(1)).to_string(),
            "createdBy": "ann", "comment": comment,
        });
        post(&format!("{}/api/v2/silences", self.url()), "application/json", silence.to_string());
    }
}
