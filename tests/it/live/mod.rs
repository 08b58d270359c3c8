//! Live sources: real servers where they can be had (Prometheus, Alertmanager, emulators of search servers), answers written by
//! hand for the others (Kubernetes, Loki), and what can go wrong with each.

mod compiled;
mod faults;
pub mod kubernetes;
mod logs;
mod metrics;
mod runbooks;
mod together;

use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;

use oncall::source::logfile::{ReadOptions, list_files, read_events};
use serde_json::{Value, json};

use crate::program::{oncall_in, root, said};
use crate::servers::prometheus::Prometheus;

/// A folder with a configuration of its own.
pub struct Setting {
    pub folder: tempfile::TempDir,
}

impl Setting {
    /// Every source in its table, as it stands in `oncall.toml`.
    pub fn with(sources: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("oncall.toml"), sources).unwrap();
        Self { folder }
    }

    /// Runs the binary in the folder, with the runbooks of all tests.
    pub fn run(&self, args: &[&str]) -> (i32, String, String) {
        said(&self.output(args, "2m"))
    }

    pub fn output(&self, args: &[&str], tool_timeout: &str) -> Output {
        let mut command = oncall_in(self.folder.path());
        command.env("ONCALL_AGENT_TOOL_TIMEOUT", tool_timeout);
        // Outcomes that another test kept are not this one's: each has addresses of its own.
        command.args(args).output().unwrap()
    }

    /// The document of a run that ended with `code`.
    pub fn document(&self, args: &[&str], code: i32) -> Value {
        let (found, out, err) = self.run(&[args, &["--json", "--quiet"]].concat());
        assert_eq!(found, code, "{err}");
        serde_json::from_str(&out).unwrap()
    }
}

/// The order-service incident, set in the present by its generator. It ends a while from now, so that the sources have
/// something to say of every instant until the tests are over.
pub fn example() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let end = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(12);
        let made = std::process::Command::new("python3")
            .arg(root().join("examples/generator/order_service.py"))
            .args(["--now", &end.to_string(), "--out"])
            .arg(folder.path())
            .output()
            .expect("python3 is needed for this test: apt-get install -y python3");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        folder
    });
    folder.path()
}

/// The alert of the example, outside of its folder: nothing but the sources answers.
pub fn alert() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alert.json");
    std::fs::copy(example().join("alert.json"), &path).unwrap();
    (folder, path.to_str().unwrap().to_owned())
}

/// When it fired.
pub fn fired_at() -> jiff::Timestamp {
    let payload: Value = serde_json::from_slice(&std::fs::read(example().join("alert.json")).unwrap()).unwrap();
    payload["alerts"][0]["startsAt"].as_str().unwrap().parse().unwrap()
}

/// `name status` of every source in the strip but the runbooks.
pub fn strip(document: &Value) -> Vec<String> {
    let sources = document["sources"].as_array().unwrap().iter();
    let entry = |source: &Value| format!("{} {}", source["name"].as_str().unwrap(), source["status"].as_str().unwrap());
    sources.map(entry).filter(|entry| !entry.starts_with("knowledge")).collect()
}

pub fn cause(document: &Value) -> [&str; 2] {
    let cause = &document["root_cause"];
    [cause["category"].as_str().unwrap_or("unknown"), cause["service"].as_str().unwrap_or("")]
}

pub const POOL: [&str; 2] = ["db_connection_pool_exhausted", "order-service"];

/// A real Prometheus that holds the metrics of the example.
pub fn prometheus() -> Prometheus {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for name in ["cluster.om", "databases.om", "services.om"] {
        let part = std::fs::read_to_string(example().join("metrics").join(name)).unwrap();
        text.push_str(part.trim_end().trim_end_matches("# EOF"));
    }
    text.push_str("# EOF\n");
    let path = folder.path().join("all.om");
    std::fs::write(&path, text).unwrap();
    Prometheus::with_history(&path)
}

/// The log events of the example as documents in the manner of the Elastic Common Schema.
pub fn log_documents() -> Vec<Value> {
    let folder = example().join("logs");
    let zone = jiff::tz::TimeZone::get("Asia/Shanghai").unwrap();
    let mut documents = Vec::new();
    for file in list_files(&[folder]).0 {
        let now = fired_at();
        let options = ReadOptions {
            service: file.service.clone(),
            instance: file.instance.clone(),
            ..ReadOptions::new(now, zone.clone())
        };
        read_events(&file.path, &options, &mut |event| {
            documents.push(json!({
                "@timestamp": event.at.unwrap().to_string(),
                "service": {"name": event.service},
                "kubernetes": {"pod": {"name": event.instance}},
                "log": {"level": event.level},
                "message": event.message,
            }));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    }
    documents
}

/// A path as TOML text.
pub fn toml_path(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}
