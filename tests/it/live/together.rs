//! The order-service incident from live sources at once: Alertmanager, Prometheus, a search server and a cluster. The verdict is
//! that of the files.

use serde_json::{Value, json};

use super::kubernetes::{Rights, cluster, table};
use super::{POOL, Setting, cause, log_documents, prometheus, strip};
use crate::servers::alertmanager::Alertmanager;
use crate::servers::prometheus::Prometheus;
use crate::servers::search::{Search, SearchServer};

/// The alert of the example as Prometheus sends it, and two that are kept quiet.
fn alerts() -> Value {
    let text = std::fs::read_to_string(super::example().join("alert.json")).unwrap();
    let payload: Value = serde_json::from_str(&text).unwrap();
    let fired = &payload["alerts"][0];
    let other = |name: &str, severity: &str| json!({"labels": {"alertname": name, "service": "order-service", "severity": severity}, "startsAt": fired["startsAt"]});
    json!([
        {"labels": fired["labels"], "annotations": fired["annotations"], "startsAt": fired["startsAt"],
         "generatorURL": fired["generatorURL"]},
        other("DbPoolExhausted", "warning"),
        other("SlowOrders", "info"),
        {"labels": {"alertname": "DiskFull", "instance": "db-1:9100", "severity": "warning"}, "startsAt": fired["startsAt"]},
    ])
}

/// Servers that hold the example's alerts and metrics.
pub struct Watching {
    metrics: Prometheus,
    alertmanager: Alertmanager,
}

impl Watching {
    pub fn start() -> Self {
        let watching = Self { metrics: prometheus(), alertmanager: Alertmanager::start() };
        watching.alertmanager.fire(&alerts());
        watching.alertmanager.silence("alertname", "DbPoolExhausted", "known since Monday");
        watching
    }

    /// Diagnoses what fires, with these and `tables` (a `cluster` and the source `logs` among them) as the sources; the
    /// verdict is that of the files.
    pub fn diagnose(&self, setting: &Setting, tables: &str, logs: &str) {
        let tables = format!(
            "[sources.alerts]\nkind = \"alertmanager\"\nurl = \"{}\"\n[sources.prod]\nkind = \"prometheus\"\nurl = \"{}\"\n{tables}",
            self.alertmanager.url(),
            self.metrics.url(),
        );
        std::fs::write(setting.folder.path().join("oncall.toml"), tables).unwrap();
        let (code, out, err) = setting.run(&["diagnose", "--from-alertmanager", "--json", "--lang", "en"]);
        assert_eq!(code, 0, "{err}");
        let document: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(cause(&document), POOL, "{logs}");
        let mut want = ["cluster ok".to_owned(), format!("{logs} ok"), "prod ok".to_owned()];
        want.sort();
        let want = [&want[..], &["runbook_url empty".to_owned()]].concat();
        assert_eq!(strip(&document), want, "{}", document["sources"]);
        assert!(err.contains("2 alerts firing, 2 quiet"), "{err}");
        assert!(err.contains("silenced by ann until ") && err.contains(": known since Monday"), "{err}");
        assert!(err.contains("inhibited by http_requests_error_rate"), "{err}");

        let kinds: std::collections::BTreeSet<&str> =
            document["evidence"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert!(kinds.is_superset(&["log", "metric", "status"].into()), "{kinds:?}");
    }
}

/// The table of a search server that holds the example's logs.
pub fn search_table(logs: &SearchServer) -> String {
    format!("[sources.es]\nkind = \"elasticsearch\"\nurl = \"{}\"\nlimit = 200000\n", logs.url())
}

#[test]
fn the_order_service_is_diagnosed_from_live_sources_as_from_files() {
    let (watching, cluster) = (Watching::start(), cluster(Rights::All));
    let documents = log_documents();
    for which in [Search::OpenSearch, Search::Elasticsearch] {
        let logs = SearchServer::start(which);
        logs.store("logs-shop", &documents);
        let setting = Setting::with("");
        let tables = search_table(&logs) + &table(setting.folder.path(), &cluster, "");
        watching.diagnose(&setting, &tables, "es");
        assert!(cluster.asked().iter().all(|asked| asked.method == "GET"), "{which:?}");
    }
}

#[test]
fn alerts_are_filtered_and_what_cannot_be_is_said() {
    let alertmanager = Alertmanager::start();
    let setting =
        Setting::with(&format!("[sources.alerts]\nkind = \"alertmanager\"\nurl = \"{}\"\n", alertmanager.url()));
    let (code, out, err) = setting.run(&["diagnose", "--from-alertmanager"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", "0 alerts firing, 0 quiet\n"));
    alertmanager.fire(&alerts());
    let disk = ["diagnose", "--from-alertmanager", "--filter", "alertname=\"DiskFull\"", "--json"];
    let (code, out, err) = setting.run(&disk);
    assert_eq!(code, 0, "{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&document["alert"]["name"], document["related_alerts"].as_array().unwrap().len()),
        (&json!("DiskFull"), 0)
    );
    let (code, _, err) = setting.run(&["diagnose", "--from-alertmanager", "--filter", "=~"]);
    assert_eq!(code, 2);
    assert!(err.starts_with("error: alerts: ") && err.contains("bad matcher"), "{err}");
    let (code, _, err) = Setting::with("").run(&["diagnose", "--from-alertmanager"]);
    assert_eq!(code, 2);
    assert!(err.starts_with("error: no Alertmanager is configured: add [sources.NAME]"), "{err}");
    let gone = format!("[sources.alerts]\nkind = \"alertmanager\"\nurl = \"{}\"\n", crate::servers::http::nobody());
    let (code, _, err) = Setting::with(&gone).run(&["diagnose", "--from-alertmanager"]);
    assert_eq!(code, 4);
    assert!(err.starts_with("error: alerts: cannot reach http://127.0.0.1:"), "{err}");
}
