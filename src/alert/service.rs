//! Which service an alert is about: by its labels, else by its text.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

/// Labels that name a service, the most specific first.
const SERVICE_LABELS: [&str; 17] = [
    "service",
    "service_name",
    "service.name",
    "svc",
    "app",
    "app_kubernetes_io_name",
    "app.kubernetes.io/name",
    "application",
    "microservice",
    "component",
    "deployment",
    "statefulset",
    "daemonset",
    "workload",
    "subject_name",
    "container",
    "job",
];

/// Services that measure others: their name on an alert says who saw it, not who suffers.
const EXPORTERS: [&str; 10] = [
    "kube-state-metrics",
    "node-exporter",
    "node_exporter",
    "blackbox",
    "cadvisor",
    "kubelet",
    "prometheus",
    "pushgateway",
    "alertmanager",
    "telegraf",
];

/// `Deployment default/user-profile`, `pod shop/cart-7d9f-x`, as the Kubernetes mixin's descriptions have them.
static OBJECT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:deployment|statefulset|daemonset|replicaset|pod|job|container)\s+`?[a-z0-9-]+/([a-z0-9][a-z0-9-]*)",
    )
    .ok()
});

/// A word that ends like the name of a service.
static SERVICE_WORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"\b([a-z0-9]+(?:-[a-z0-9]+)*-(?:service|svc|api|server|gateway|worker|backend|frontend|proxy|web|app))\b",
    )
    .ok()
});

/// `服务：订单服务`, `service: cart`, `service=cart`, `服务 order-service`.
static SERVICE_FIELD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)(?:\bservice(?:[ _]name)?|\bapp|服务名?称?|应用)\s*[:=：]\s*["'`]?([\p{Alphabetic}\p{N}][\p{Alphabetic}\p{N}._-]*)"#).ok()
});

/// The service of an alert, if anything names it.
pub fn of(labels: &BTreeMap<String, String>, name: &str, annotations: &BTreeMap<String, String>) -> Option<String> {
    let labelled = SERVICE_LABELS
        .iter()
        .filter_map(|label| labels.get(*label))
        .map(|value| value.trim())
        .find(|value| !value.is_empty() && !is_exporter(value));
    if let Some(service) = labelled {
        return Some(service.to_string());
    }
    let exporter_saw_it = labels.values().any(|value| is_exporter(value));
    let pod = labels.get("pod").or_else(|| labels.get("pod_name")).filter(|pod| !(exporter_saw_it && is_exporter(pod)));
    if let Some(pod) = pod {
        return Some(workload_of_pod(pod).to_string());
    }
    let first = ["summary", "description", "message", "title", "details"];
    let explained = first.iter().filter_map(|key| annotations.get(*key));
    let texts: Vec<&str> = std::iter::once(name).chain(explained.map(String::as_str)).collect();
    let find = |regex: &Option<Regex>| {
        let regex = regex.as_ref()?;
        texts.iter().find_map(|text| Some(regex.captures(text)?.get(1)?.as_str().to_string()))
    };
    find(&SERVICE_FIELD)
        .or_else(|| find(&OBJECT).map(|object| workload_of_pod(&object).to_string()))
        .or_else(|| find(&SERVICE_WORD))
}

fn is_exporter(value: &str) -> bool {
    let value = value.to_lowercase();
    EXPORTERS.iter().any(|exporter| value.contains(exporter))
}

/// `cart-7d9f6c5b8-x2x4z` → `cart`, `db-0` → `db`: the suffixes that a replica set or stateful set appends.
pub fn workload_of_pod(pod: &str) -> &str {
    let Some((rest, last)) = pod.rsplit_once('-') else { return pod };
    if !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()) && last.len() <= 3 {
        return rest;
    }
    if last.len() != 5 || !is_hash(last) {
        return pod;
    }
    match rest.rsplit_once('-') {
        Some((workload, hash)) if (8..=10).contains(&hash.len()) && is_hash(hash) => workload,
        _ => rest,
    }
}

/// Kubernetes' safe alphabet has no vowels and no 0, 1, 3, so that a hash is never a word; old hashes are hexadecimal.
fn is_hash(part: &str) -> bool {
    let safe = part.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b));
    let hexadecimal = part.bytes().all(|b| b.is_ascii_hexdigit()) && part.bytes().any(|b| b.is_ascii_digit());
    safe || hexadecimal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffixes_of_pods_are_cut_and_words_are_not() {
        for (pod, workload) in [
            ("cart-7d9f6c5b8-x2x4z", "cart"),
            ("order-service-5c6f7d8b9c-abcde", "order-service-5c6f7d8b9c-abcde"),
            ("kafka-0", "kafka"),
            ("agent-x7k2p", "agent"),
            ("billing-queue", "billing-queue"),
            ("single", "single"),
        ] {
            assert_eq!(workload_of_pod(pod), workload, "{pod}");
        }
    }

    #[test]
    fn an_exporter_is_not_the_service_that_suffers() {
        let labels = BTreeMap::from([
            ("service".to_string(), "kube-prometheus-kube-state-metrics".to_string()),
            ("deployment".to_string(), "cart".to_string()),
        ]);
        assert_eq!(of(&labels, "", &BTreeMap::new()), Some("cart".into()));
    }

    #[test]
    fn text_names_the_service_where_labels_do_not() {
        let of_text = |text: &str| of(&BTreeMap::new(), text, &BTreeMap::new());
        assert_eq!(of_text("服务：order-service 错误率过高"), Some("order-service".into()));
        assert_eq!(of_text("Deployment default/user-profile has not matched"), Some("user-profile".into()));
        assert_eq!(of_text("high latency on checkout-api since 10:00"), Some("checkout-api".into()));
        assert_eq!(of_text("it is slow"), None);
    }
}
