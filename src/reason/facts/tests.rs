use std::collections::BTreeMap;

use super::*;
use crate::domain::{AlertStatus, Symptom};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn pairs(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn alert(name: &str, labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> Alert {
    Alert {
        name: name.into(),
        service: None,
        severity: None,
        status: AlertStatus::Firing,
        labels: pairs(labels),
        annotations: pairs(annotations),
        starts_at: Some(at("2026-03-04T06:30:00Z")),
        ends_at: None,
        fingerprint: "f".into(),
    }
}

fn facts(name: &str, labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> Facts {
    analyze(&[alert(name, labels, annotations)], at("2026-03-04T06:45:00Z"))
}

#[test]
fn an_alert_of_prometheus_is_understood_whole() {
    let url = "http://p:9090/graph?g0.expr=sum+by+%28service%29+%28rate%28http_requests_total%7Bservice%3D%22order-service%22%7D%5B1m%5D%29%29+%2A+100+%3E+5&g0.tab=1";
    let facts = facts(
        "http_requests_error_rate",
        &[("service", "order-service"), ("namespace", "shop"), ("pod", "order-service-6c9f7d5b84-4xkqp")],
        &[
            ("generatorURL", url),
            ("summary", "order-service answers 23% of its requests with an error"),
            ("description", "http_requests_error_rate of order-service is 23% over the last minute (threshold 5%)."),
            ("runbook_url", "https://runbooks.example/x"),
        ],
    );
    let want = Facts {
        service: Some("order-service".into()),
        instance: None,
        namespace: Some("shop".into()),
        pod: Some("order-service-6c9f7d5b84-4xkqp".into()),
        node: None,
        metric: Some("sum by (service) (rate(http_requests_total{service=\"order-service\"}[1m])) * 100".into()),
        threshold: Some(5.0),
        value: Some(23.0),
        unit: Some("%".into()),
        symptom: Symptom::Errors,
        fired_at: Some(at("2026-03-04T06:30:00Z")),
        window: Window::new(at("2026-03-04T05:30:00Z"), at("2026-03-04T06:45:00Z")),
        now: at("2026-03-04T06:45:00Z"),
        runbook_url: Some("https://runbooks.example/x".into()),
        related: vec![],
        lang: Lang::En,
    };
    assert_eq!(facts, want);
}

#[test]
fn threshold_and_value_are_read_in_both_languages() {
    for (text, value, threshold, unit) in [
        ("网关最近 5 分钟有 15.8% 的请求返回 502，超过阈值 5%，下单受影响。", Some(15.8), Some(5.0), Some("%")),
        ("mall-gateway 的 502 比例为 15.8%，阈值 5%", Some(15.8), Some(5.0), Some("%")),
        ("p95 latency is 2.4s (threshold: 500ms) over the last 5 minutes", None, Some(500.0), Some("ms")),
        ("P99 响应时间 3.2秒，高于 1秒", Some(3.2), Some(1.0), Some("s")),
        ("Disk usage of /data exceeds 90%, current value: 96.5%", Some(96.5), Some(90.0), Some("%")),
        ("kube_x{a=\"b\"} is 1, threshold 3", Some(1.0), Some(3.0), None),
        ("consumer lag is 48,210", Some(48_210.0), None, None),
        ("everything is broken", None, None, None),
    ] {
        let facts = facts("x", &[], &[("description", text)]);
        assert_eq!((facts.value, facts.threshold, facts.unit.as_deref()), (value, threshold, unit), "{text}");
    }
}

#[test]
fn a_carried_share_becomes_the_percentage_of_the_text() {
    let facts = facts("x", &[], &[("value", "1.584039e-01"), ("description", "too many, threshold 5%")]);
    assert_eq!(facts.value.map(|value| (value * 100.0).round()), Some(1584.0));
}

#[test]
fn the_service_is_found_in_labels_pods_expressions_and_jobs() {
    for (labels, annotations, want) in [
        (vec![("deployment", "cart")], vec![], Some("cart")),
        (vec![("pod", "cart-6c9f7d5b84-4xkqp"), ("job", "kube-state-metrics")], vec![], Some("cart")),
        (vec![("pod", "kafka-2")], vec![], Some("kafka")),
        (vec![("job", "shop/cart")], vec![], Some("cart")),
        (vec![("job", "node-exporter"), ("instance", "10.0.0.1:9100")], vec![], None),
        (vec![], vec![("query", "rate(x_total{app=\"cart\"}[5m]) > 3")], Some("cart")),
        (vec![], vec![], None),
    ] {
        assert_eq!(facts("A", &labels, &annotations).service.as_deref(), want, "{labels:?} {annotations:?}");
    }
}

#[test]
fn symptoms_are_told_apart_by_name_then_text() {
    for (name, text, want) in [
        ("KubePodCrashLooping", "", Symptom::Restarts),
        ("KubeNodeNotReady", "", Symptom::Node),
        ("CPUThrottlingHigh", "", Symptom::Cpu),
        ("网关上游错误率过高", "", Symptom::Errors),
        ("HighRequestLatency", "", Symptom::Latency),
        ("NodeFilesystemAlmostOutOfSpace", "", Symptom::Disk),
        ("KafkaConsumerLag", "", Symptom::Queue),
        ("TLSCertificateExpiringSoon", "", Symptom::Certificate),
        ("DeploymentReplicasUnavailable catalog (shop)", "", Symptom::Unavailable),
        ("告警", "内存使用率 95%", Symptom::Memory),
        ("Something", "", Symptom::Other),
    ] {
        assert_eq!(facts(name, &[], &[("summary", text)]).symptom, want, "{name} {text}");
    }
}

#[test]
fn without_a_start_the_hour_before_now_is_looked_at() {
    let mut one = alert("x", &[], &[]);
    one.starts_at = None;
    let now = at("2026-03-04T06:45:00Z");
    assert_eq!(analyze(&[one], now).window, Window::new(at("2026-03-04T05:45:00Z"), now));
    assert_eq!(analyze(&[], now).window, Window::new(at("2026-03-04T05:45:00Z"), now));
}

#[test]
fn a_condition_is_cut_off_only_outside_of_brackets() {
    assert_eq!(split_condition("a / b > 0.05"), (Some("a / b".into()), Some(0.05)));
    assert_eq!(split_condition("sum(a > 5)"), (Some("sum(a > 5)".into()), None));
    assert_eq!(split_condition("up == 0"), (Some("up".into()), Some(0.0)));
    assert_eq!(split_condition(""), (None, None));
}

#[test]
fn the_language_is_that_of_name_and_text() {
    assert_eq!(facts("HighErrors", &[("team", "交易")], &[]).lang, Lang::En);
    assert_eq!(facts("HighErrors", &[], &[("summary", "错误率过高")]).lang, Lang::Zh);
}
