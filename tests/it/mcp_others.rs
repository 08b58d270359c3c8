//! MCP servers that others wrote, as they come from npm and PyPI, over both transports. Not part of `make test`: the
//! packages have to be installed first (`.ci/install servers`, into ~/.cache/oncall/mcp or $ONCALL_MCP_SERVERS).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::live::kubernetes::table_of;
use crate::program::{oncall, said};
use crate::servers::alertmanager::Alertmanager;
use crate::servers::http::nobody;
use crate::servers::mcp::free_port;
use crate::servers::prometheus::Prometheus;

/// Where the packages are.
fn installed() -> PathBuf {
    let usual = || PathBuf::from(std::env::var("HOME").unwrap()).join(".cache/oncall/mcp");
    let folder = std::env::var_os("ONCALL_MCP_SERVERS").map_or_else(usual, PathBuf::from);
    assert!(folder.is_dir(), "{} is not there: run `.ci/install servers`", folder.display());
    folder
}

fn npm(package: &str) -> PathBuf {
    installed().join("node_modules/@modelcontextprotocol").join(package).join("dist/index.js")
}

/// Runs a command with one server configured; stdout as JSON.
fn run(folder: &Path, config: &str, args: &[&str]) -> Value {
    std::fs::write(folder.join("oncall.toml"), config).unwrap();
    let mut command = oncall(folder);
    command.current_dir(folder).args(args).arg("--json");
    let (code, out, err) = said(&command.output().unwrap());
    assert_eq!(code, 0, "{args:?}: {out}{err}");
    serde_json::from_str(&out).unwrap()
}

/// A call with the configuration that is there: exit code, stdout, stderr.
fn ended(folder: &Path, tool: &str, arguments: Value) -> (i32, String, String) {
    let mut command = oncall(folder);
    command.current_dir(folder).args(["tools", "call", tool, &arguments.to_string()]);
    said(&command.output().unwrap())
}

fn found(folder: &Path, config: &str, tool: &str, arguments: Value) -> Value {
    let mut answer = run(folder, config, &["tools", "call", tool, &arguments.to_string()]);
    answer["output"]["findings"][0]["value"].take()
}

/// A child that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs `.ci/install servers`"]
fn everything_over_standard_streams() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("[mcp.all]\ncommand = \"node\"\nargs = [{:?}, \"stdio\"]\n", npm("server-everything"));
    assert_eq!(found(folder.path(), &config, "all__echo", json!({"message": "hi"})), "Echo: hi");
    let sum = found(folder.path(), &config, "all__get-sum", json!({"a": 2, "b": 3}));
    assert!(sum.as_str().unwrap().contains('5'), "{sum}");
    let structured = found(folder.path(), &config, "all__get-structured-content", json!({"location": "New York"}));
    assert!(structured["temperature"].is_number(), "{structured}");
    let image = run(folder.path(), &config, &["tools", "call", "all__get-tiny-image"]);
    assert!(image["output"]["notes"][0].as_str().unwrap().contains("image/png"), "{image}");
}

#[test]
#[ignore = "needs `.ci/install servers`"]
fn everything_over_http() {
    let port = free_port();
    let mut command = Command::new("node");
    command.arg(npm("server-everything")).arg("streamableHttp").env("PORT", port.to_string());
    let _server = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let start = std::time::Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed().as_secs() < 30, "it does not listen");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let folder = tempfile::tempdir().unwrap();
    let config = format!("[mcp.all]\nurl = \"http://127.0.0.1:{port}/mcp\"\n");
    assert_eq!(found(folder.path(), &config, "all__echo", json!({"message": "hi"})), "Echo: hi");
}

#[test]
#[ignore = "needs `.ci/install servers`"]
fn files_are_read_and_what_lies_outside_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "inside").unwrap();
    let place = folder.path().canonicalize().unwrap();
    let config = format!("[mcp.files]\ncommand = \"node\"\nargs = [{:?}, {place:?}]\n", npm("server-filesystem"));
    let read = found(&place, &config, "files__read_text_file", json!({"path": place.join("a.txt")}));
    assert_eq!(read, json!({"content": "inside"}));
    let (code, _, err) = ended(&place, "files__read_text_file", json!({"path": "/etc/hostname"}));
    assert_eq!((code, err.contains("Access denied")), (1, true), "{err}");
}

#[test]
#[ignore = "needs `.ci/install servers`"]
fn a_graph_of_memories_is_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("memory.json");
    let config = format!(
        "[mcp.memory]\ncommand = \"node\"\nargs = [{:?}]\nenv = {{ MEMORY_FILE_PATH = {memory:?} }}\n",
        npm("server-memory")
    );
    let entity = json!({"entities": [{"name": "postgres", "entityType": "database", "observations": ["slow"]}]});
    found(folder.path(), &config, "memory__create_entities", entity);
    let graph = found(folder.path(), &config, "memory__read_graph", json!({}));
    assert_eq!(graph["entities"][0]["name"], "postgres", "{graph}");
}

#[test]
#[ignore = "needs `.ci/install servers`"]
fn the_time_of_a_server_in_python() {
    let folder = tempfile::tempdir().unwrap();
    let program = installed().join("venv/bin/mcp-server-time");
    let config = format!("[mcp.time]\ncommand = {program:?}\nargs = [\"--local-timezone\", \"UTC\"]\n");
    let time = found(folder.path(), &config, "time__get_current_time", json!({"timezone": "Asia/Shanghai"}));
    assert_eq!(time["timezone"], "Asia/Shanghai", "{time}");
}

#[test]
#[ignore = "needs `.ci/install servers`"]
fn a_prometheus_is_asked_through_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("history.om");
    std::fs::write(&history, "# TYPE up gauge\nup{job=\"cart\"} 1 1772604000\n# EOF\n").unwrap();
    let prometheus = Prometheus::with_history(&history);
    let program = installed().join("venv/bin/prometheus-mcp-server");
    let config = format!("[mcp.prom]\ncommand = {program:?}\nenv = {{ PROMETHEUS_URL = \"{}\" }}\n", prometheus.url());
    let arguments = json!({"query": "up", "time": "1772604000"});
    let answer = found(folder.path(), &config, "prom__execute_query", arguments);
    assert_eq!(answer["result"][0]["metric"]["job"], "cart", "{answer}");
    let (code, _, err) = ended(folder.path(), "prom__execute_query", json!({"query": "up{"}));
    assert_eq!((code, err.contains("400 Client Error")), (1, true), "{err}");
}

#[test]
#[ignore = "needs `.ci/install servers`"]
fn firing_alerts_come_from_the_server_of_an_alertmanager() {
    let alertmanager = Alertmanager::start();
    alertmanager.fire(&json!([{"labels": {"alertname": "DiskFull", "severity": "critical"}}]));
    let folder = tempfile::tempdir().unwrap();
    let script = installed().join("node_modules/mcp-alertmanager/bin/index.js");
    let config = format!(
        "[mcp.am]\ncommand = \"node\"\nargs = [{script:?}]\nenv = {{ ALERTMANAGER_URL = \"{}\" }}\n",
        alertmanager.url()
    );
    let alerts = found(folder.path(), &config, "am__getAlerts", json!({}));
    assert_eq!(alerts[0]["labels"]["alertname"], "DiskFull", "{alerts}");
    // What silences alerts is not run unattended.
    let tools = run(folder.path(), &config, &["mcp", "list"])["servers"][0]["tools"].take();
    let may_run = |name: &str| -> Option<bool> {
        let tool = tools.as_array()?.iter().find(|tool| tool["name"] == name)?;
        tool["unattended"].as_bool()
    };
    assert_eq!((may_run("am__getAlerts"), may_run("am__createSilence")), (Some(true), Some(false)), "{tools}");
}

/// Both speak the generation of the protocol without a handshake, and stand before servers that are not there.
#[test]
#[ignore = "needs `.ci/install servers`"]
fn what_stands_behind_a_server_and_is_gone_is_told_in_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| installed().join(name);
    let kubeconfig = folder.path().join("kubeconfig");
    table_of(folder.path(), &nobody(), "");
    let grafana = format!(
        "[mcp.grafana]\ncommand = {:?}\nenv = {{ GRAFANA_URL = \"{}\", GRAFANA_API_KEY = \"k\" }}\n",
        place("venv/bin/mcp-grafana"),
        nobody()
    );
    let cluster = format!(
        "[mcp.cluster]\ncommand = {:?}\nargs = [\"--kubeconfig\", {kubeconfig:?}]\n",
        place("node_modules/.bin/kubernetes-mcp-server")
    );
    for (config, tool) in [(grafana, "grafana__list_datasources"), (cluster, "cluster__pods_list")] {
        let protocol = run(folder.path(), &config, &["mcp", "list"])["servers"][0]["protocol"].take();
        assert_eq!(protocol, "2026-07-28");
        let (code, _, err) = ended(folder.path(), tool, json!({}));
        assert_eq!((code, err.contains("connection refused")), (1, true), "{err}");
    }
}
