//! What an alert says, made into [`Facts`]: where it hurts, what is measured, since when, and which time to look at.
//! In come the alerts of one root, the diagnosed one first; nothing is invented: what is not said stays `None`.

mod quantity;
mod symptom;
mod told;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use regex::Regex;

pub use told::told;

use crate::domain::{Alert, Facts, Lang, Window, service_of};

/// What happened before an alert explains it; an hour covers deployments and slow growth.
const LOOK_BACK: SignedDuration = SignedDuration::from_mins(60);
/// What comes long after an alert no longer belongs to it.
const LOOK_AHEAD: SignedDuration = SignedDuration::from_mins(30);

const SERVICE_LABELS: &[&str] = &[
    "service",
    "service_name",
    "app",
    "application",
    "app_kubernetes_io_name",
    "app.kubernetes.io/name",
    "deployment",
    "statefulset",
    "daemonset",
    "workload",
    "destination_workload",
    "destination_service_name",
    "component",
    "container",
    "job_name",
];
const INSTANCE_LABELS: &[&str] = &["instance", "host", "hostname", "server"];
const NAMESPACE_LABELS: &[&str] = &["namespace", "kubernetes_namespace", "k8s_namespace_name", "exported_namespace"];
const POD_LABELS: &[&str] = &["pod", "pod_name", "kubernetes_pod_name", "k8s_pod_name"];
const NODE_LABELS: &[&str] = &["node", "nodename", "kubernetes_node", "node_name"];
const EXPRESSION_KEYS: &[&str] = &["expr", "expression", "query", "promql", "rule", "metric", "metric_name"];

/// Jobs that watch others: their name is not the service in trouble.
const EXPORTERS: &[&str] =
    &["exporter", "kube-state-metrics", "kubelet", "cadvisor", "prometheus", "blackbox", "node", "otel", "apiserver"];

/// Reads the first alert; the others only lend their names. An empty list gives facts that say nothing.
pub fn analyze(alerts: &[Alert], now: Timestamp) -> Facts {
    let Some(alert) = alerts.first() else { return silent(now) };
    let fired_at = alert.starts_at;
    let expression = expression(alert);
    let (expr, condition) = match expression.as_deref() {
        Some(expr) => split_condition(expr),
        None => (None, None),
    };
    let pod = alert.label(POD_LABELS).map(str::to_string);
    let measured = quantity::measure(alert, condition);
    Facts {
        service: service(alert, expr.as_deref(), pod.as_deref()),
        instance: alert.label(INSTANCE_LABELS).map(str::to_string),
        namespace: alert
            .label(NAMESPACE_LABELS)
            .map(str::to_string)
            .or_else(|| expr.as_deref().and_then(|expr| selector_label(expr, NAMESPACE_LABELS))),
        pod,
        node: alert.label(NODE_LABELS).map(str::to_string),
        metric: expr,
        threshold: measured.threshold,
        value: measured.value,
        unit: measured.unit,
        symptom: symptom::of(alert, expression.as_deref()),
        fired_at,
        window: window(fired_at, now),
        now,
        runbook_url: runbook_url(alert),
        related: alerts[1..].iter().map(|other| other.name.clone()).collect(),
        lang: language(alert),
    }
}

fn silent(now: Timestamp) -> Facts {
    Facts {
        service: None,
        instance: None,
        namespace: None,
        pod: None,
        node: None,
        metric: None,
        threshold: None,
        value: None,
        unit: None,
        symptom: crate::domain::Symptom::Other,
        fired_at: None,
        window: window(None, now),
        now,
        runbook_url: None,
        related: Vec::new(),
        lang: Lang::En,
    }
}

/// From an hour before the alert to half an hour after it, or to now. An alert from the future (a skewed clock) is
/// looked at as if it came now.
fn window(fired_at: Option<Timestamp>, now: Timestamp) -> Window {
    let fired_at = fired_at.filter(|at| *at <= now).unwrap_or(now);
    let start = fired_at.checked_sub(LOOK_BACK).unwrap_or(Timestamp::MIN);
    let end = fired_at.checked_add(LOOK_AHEAD).map_or(now, |end| end.min(now));
    Window::new(start, end)
}

fn language(alert: &Alert) -> Lang {
    let text: String = std::iter::once(&alert.name).chain(alert.annotations.values()).map(String::as_str).collect();
    Lang::of(&text)
}

fn runbook_url(alert: &Alert) -> Option<String> {
    let named = alert
        .annotations
        .iter()
        .chain(&alert.labels)
        .find(|(key, value)| key.to_ascii_lowercase().contains("runbook") && value.starts_with("http"));
    named.map(|(_, value)| value.clone())
}

fn service(alert: &Alert, expr: Option<&str>, pod: Option<&str>) -> Option<String> {
    let job = || alert.label(&["job", "exported_job"]).filter(|job| !is_exporter(job)).map(last_segment);
    let known = alert.service.as_deref().map(str::trim).filter(|name| !name.is_empty());
    known
        .or_else(|| alert.label(SERVICE_LABELS).filter(|name| !is_exporter(name)))
        .map(str::to_string)
        .or_else(|| pod.and_then(owner_of_pod))
        .or_else(|| expr.and_then(|expr| selector_label(expr, SERVICE_LABELS)))
        .or_else(|| job().map(str::to_string))
}

fn is_exporter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    EXPORTERS.iter().any(|exporter| name == *exporter || name.contains("exporter") || name.starts_with("kube-state"))
}

/// `shop/order-service` is a job of the service monitor with that name.
fn last_segment(job: &str) -> &str {
    job.rsplit('/').next().unwrap_or(job)
}

/// The workload of a pod, as for series that carry nothing but a pod's name.
pub fn owner_of_pod(pod: &str) -> Option<String> {
    service_of(&BTreeMap::from([("pod".to_string(), pod.to_string())]))
}

/// The value of the first of these labels that a selector of the expression fixes by `=`.
pub fn selector_label(expr: &str, names: &[&str]) -> Option<String> {
    static MATCHER: LazyLock<Regex> = LazyLock::new(|| {
        // A constant that the tests below compile.
        Regex::new(r#"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)+)""#).expect("constant")
    });
    names
        .iter()
        .find_map(|name| MATCHER.captures_iter(expr).find(|found| &found[1] == *name).map(|found| found[2].to_string()))
}

/// The expression that the rule evaluates, from the generator's address, an annotation, or the text.
fn expression(alert: &Alert) -> Option<String> {
    let texts = || alert.annotations.iter().chain(&alert.labels);
    let from_url = texts().find_map(|(_, value)| expression_in_url(value));
    let from_key = || {
        texts()
            .find(|(key, value)| {
                let key = key.to_ascii_lowercase();
                !value.trim().is_empty()
                    && EXPRESSION_KEYS.iter().any(|known| key == *known || key.ends_with(&format!(".{known}")))
            })
            .map(|(_, value)| value.trim().to_string())
    };
    let from_text = || texts().find_map(|(_, value)| expression_in_text(value));
    let name = alert.name.trim();
    let from_name = || is_metric_name(name).then(|| name.to_string());
    from_url.or_else(from_key).or_else(from_text).or_else(from_name)
}

fn expression_in_url(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("g0.expr=")?;
    let encoded = rest.split(['&', ' ', '\n']).next()?;
    let decoded = decode_url(encoded);
    (!decoded.trim().is_empty()).then(|| decoded.trim().to_string())
}

/// Undoes percent encoding and `+` for blanks; what is not valid stays as it is.
fn decode_url(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = bytes.get(index + 1..index + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[index], hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                index += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        index += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A selector written out in prose: `kube_deployment_status_replicas_available{deployment="x"} is 1`.
fn expression_in_text(text: &str) -> Option<String> {
    static SELECTOR: LazyLock<Regex> = LazyLock::new(|| {
        // A constant that the tests below compile.
        Regex::new(r#"[A-Za-z_:][A-Za-z0-9_:]*_[A-Za-z0-9_:]*\{[^{}\n]*="[^{}\n]*\}"#).expect("constant")
    });
    SELECTOR.find(text).map(|found| found.as_str().to_string())
}

/// Lower case with an underscore, as metrics are named and titles are not.
fn is_metric_name(name: &str) -> bool {
    name.contains('_') && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | ':'))
}

/// An expression without its trailing comparison to a number, and that number: asked as written it would be empty
/// whenever the alert does not fire.
pub fn split_condition(expr: &str) -> (Option<String>, Option<f64>) {
    static CONDITION: LazyLock<Regex> = LazyLock::new(|| {
        // A constant that the tests below compile.
        Regex::new(r"^(?s)(.*?)\s*(?:>=|<=|==|!=|>|<)\s*(?:bool\s+)?([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*$")
            .expect("constant")
    });
    let expr = expr.trim();
    match CONDITION.captures(expr) {
        Some(found) if balanced(&found[1]) && !found[1].trim().is_empty() => {
            (Some(found[1].trim().to_string()), found[2].parse().ok())
        }
        _ => ((!expr.is_empty()).then(|| expr.to_string()), None),
    }
}

/// Whether the comparison stood outside of all brackets.
fn balanced(text: &str) -> bool {
    text.matches('(').count() == text.matches(')').count() && text.matches('{').count() == text.matches('}').count()
}

#[cfg(test)]
mod tests;
