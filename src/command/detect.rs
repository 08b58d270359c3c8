//! `oncall config init --detect`: what answers on the usual ports of this machine, and what the kubeconfig names, as entries
//! of the configuration file.

use std::time::Duration;

use kube::config::Kubeconfig;
use serde_json::Value;

use super::Context;
use crate::domain::text::clean_line;
use crate::http::{self, HttpSettings};

/// A server on this machine answers at once.
const DEADLINE: Duration = Duration::from_secs(2);
const MAX_NAME_CHARS: usize = 100;

/// A server that may be there.
struct Usual {
    name: &'static str,
    kind: &'static str,
    port: u16,
    /// Below the address, where the API begins.
    prefix: &'static str,
    path: &'static str,
    /// Whether an answer is one of such a server.
    is_it: fn(&str) -> bool,
}

const USUAL: [Usual; 9] = [
    prometheus("prometheus", 9090, ""),
    prometheus("thanos", 10902, ""),
    prometheus("mimir", 9009, "/prometheus"),
    prometheus("victoriametrics", 8428, ""),
    Usual {
        name: "alertmanager",
        kind: "alertmanager",
        port: 9093,
        prefix: "",
        path: "/api/v2/status",
        is_it: |body| member(body, "versionInfo"),
    },
    Usual {
        name: "elasticsearch",
        kind: "elasticsearch",
        port: 9200,
        prefix: "",
        path: "/",
        is_it: |body| member(body, "cluster_name"),
    },
    Usual {
        name: "loki",
        kind: "loki",
        port: 3100,
        prefix: "",
        path: "/loki/api/v1/labels",
        is_it: |body| member(body, "status"),
    },
    Usual {
        name: "victorialogs",
        kind: "victorialogs",
        port: 9428,
        prefix: "",
        path: "/metrics",
        is_it: |body| body.contains("victoria-logs"),
    },
    Usual {
        name: "victorialogs-cluster",
        kind: "victorialogs",
        port: 9471,
        prefix: "",
        path: "/metrics",
        is_it: |body| body.contains("victoria-logs"),
    },
];

const fn prometheus(name: &'static str, port: u16, prefix: &'static str) -> Usual {
    let path = "/api/v1/query?query=vector(1)";
    Usual { name, kind: "prometheus", port, prefix, path, is_it: |body| member(body, "data") }
}

fn member(body: &str, name: &str) -> bool {
    serde_json::from_str::<Value>(body).is_ok_and(|value| value.get(name).is_some())
}

/// The entries, as text of the file; what was found is told.
pub async fn entries(context: &Context) -> String {
    let lang = context.lang.unwrap_or_default();
    let mut text = String::new();
    let found = futures::future::join_all(USUAL.iter().map(|usual| probe(usual, usual.port))).await;
    for (usual, url) in USUAL.iter().zip(found) {
        let Some(url) = url else { continue };
        context.note(&lang.pick(format!("found {} at {url}", usual.name), format!("发现 {}：{url}", usual.name)));
        text.push_str(&entry(usual, &url));
    }
    let contexts = Kubeconfig::read().ok().map(|config| kubernetes(&config)).unwrap_or_default();
    if !contexts.is_empty() {
        context.note(lang.pick(
            "found a kubeconfig: its contexts stand in the file as comments",
            "发现 kubeconfig：其中的 context 以注释形式写入文件",
        ));
    }
    if text.is_empty() && contexts.is_empty() {
        context.note(lang.pick(
            "nothing answers on the usual ports of this machine, and there is no kubeconfig",
            "本机常用端口均无响应，也没有 kubeconfig",
        ));
    }
    text + &contexts
}

/// The address, when such a server answers there.
async fn probe(usual: &Usual, port: u16) -> Option<String> {
    let url = format!("http://127.0.0.1:{port}{}", usual.prefix);
    let settings = HttpSettings { connect_timeout: DEADLINE, read_timeout: DEADLINE, ..HttpSettings::default() };
    let client = http::client(&url, &settings).ok()?;
    let asked = client.get(format!("{url}{}", usual.path)).timeout(DEADLINE).send().await.ok()?;
    let body = asked.error_for_status().ok()?.text().await.ok()?;
    (usual.is_it)(&body).then_some(url)
}

fn entry(usual: &Usual, url: &str) -> String {
    format!("\n[sources.{}]\nkind = \"{}\"\nurl = \"{url}\"\n", usual.name, usual.kind)
}

/// Contexts may need a login, which nobody asked for: they are proposed, not tried.
fn kubernetes(config: &Kubeconfig) -> String {
    let current = config.current_context.as_deref();
    let mut text = String::new();
    for context in &config.contexts {
        let name = clean_line(&context.name, MAX_NAME_CHARS);
        let quoted = toml::Value::String(name.clone());
        let table: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let note = if current == Some(context.name.as_str()) { "   # the current context" } else { "" };
        text.push_str(&format!(
            "\n# [sources.kube-{}]\n# kind = \"kubernetes\"\n# context = {quoted}{note}\n",
            table.trim_matches('-')
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_such_that_the_configuration_reads_them() {
        let yaml = "{apiVersion: v1, kind: Config, current-context: b, clusters: [], users: [], contexts: [{name: 'arn:x/a'}, {name: b}]}";
        let config = Kubeconfig::from_yaml(yaml).unwrap();
        let commented = kubernetes(&config);
        assert!(
            commented
                .contains("# [sources.kube-b]\n# kind = \"kubernetes\"\n# context = \"b\"   # the current context")
        );
        let text: String =
            USUAL.iter().map(|usual| entry(usual, "http://127.0.0.1:1")).chain([commented.replace("# ", "")]).collect();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("oncall.toml"),
            crate::config::TEMPLATE.to_owned() + &text.replace("the current context", "# x"),
        )
        .unwrap();
        let around = crate::config::Surroundings { working_dir: dir.path().into(), ..Default::default() };
        let config = crate::config::load(&crate::config::Overrides::default(), &around).unwrap();
        assert_eq!(config.sources.len(), USUAL.len() + 2);
    }

    #[tokio::test]
    async fn what_answers_is_told_apart_by_its_answer() {
        let server = wiremock::MockServer::start().await;
        let answer = wiremock::ResponseTemplate::new(200).set_body_string("{\"versionInfo\": {\"version\": \"0.25\"}}");
        wiremock::Mock::given(wiremock::matchers::any()).respond_with(answer).mount(&server).await;
        let port = server.address().port();
        let mut answers = Vec::new();
        for usual in &USUAL {
            answers.extend(probe(usual, port).await.map(|_| usual.name));
        }
        assert_eq!(answers, ["alertmanager"]);
    }
}
