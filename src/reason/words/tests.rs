use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::domain::{ContainerStatus, KubeEvent, Level, NodeStatus, PodStatus, Rollout, Workload};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn both(finding: &Finding) -> [String; 2] {
    let zone = TimeZone::fixed(jiff::tz::offset(8));
    [summarize(finding, Lang::En, &zone), summarize(finding, Lang::Zh, &zone)]
}

fn pattern() -> LogPattern {
    LogPattern {
        id: "P1".into(),
        level: Some(Level::Error),
        service: Some("order-service".into()),
        count: 126,
        before: Some(0),
        first: Some(at("2026-03-04T06:23:05Z")),
        last: Some(at("2026-03-04T06:44:51Z")),
        template: "connection pool timeout after <*>".into(),
        sample: "connection pool timeout\n\tat x.Y\nCaused by: java.sql.SQLException: no\n\tat z\u{1b}[2J".into(),
        histogram: vec![],
        instances: BTreeMap::new(),
    }
}

fn series(shape: SeriesShape, peak: f64) -> Finding {
    Finding::Series(SeriesSummary {
        expr: "sum(rate(http_requests_total{status=~\"5..\"}[5m])) / sum(rate(http_requests_total[5m]))".into(),
        labels: BTreeMap::from([("service".into(), "order-service".into())]),
        baseline: 0.002,
        peak,
        peak_at: Some(at("2026-03-04T06:32:00Z")),
        now: Some(0.05),
        shape,
        onset: Some(at("2026-03-04T06:27:30Z")),
        change_points: vec![],
        score: 40.0,
        samples: 100,
        points: vec![],
    })
}

#[test]
fn a_pattern_says_how_often_when_and_how_often_before() {
    assert_eq!(
        both(&Finding::Pattern(pattern())),
        [
            "\"connection pool timeout ... Caused by: java.sql.SQLException: no\" 126 times from 14:23:05 to 14:44:51, 0 before (order-service, error)",
            "“connection pool timeout ... Caused by: java.sql.SQLException: no” 126 次，14:23:05 至 14:44:51，此前 0 次 (order-service, error)",
        ]
    );
}

#[test]
fn a_series_says_its_course_in_its_unit() {
    let name = "`sum(rate(http_requests_total{status=~\"5..\"}[5m])) / sum(rate(http_requests_total[5m]))` (service=order-service)";
    assert_eq!(
        both(&series(SeriesShape::Spike, 0.181)),
        [
            format!("{name} spiked from 0.2 % to 18.1 % at 14:32:00 since 14:27:30, now 5 %"),
            format!("{name} 从 0.2 % 突增至 18.1 %（14:32:00），始于 14:27:30，现在 5 %"),
        ]
    );
    assert_eq!(
        both(&series(SeriesShape::Flat, 0.002)),
        [format!("{name} stayed around 0.2 %"), format!("{name} 保持在 0.2 % 左右")]
    );
}

#[test]
fn a_pod_tells_how_its_containers_ended() {
    let pod = PodStatus {
        namespace: "shop".into(),
        name: "catalog-1".into(),
        node: Some("node-a".into()),
        owner: Some("catalog".into()),
        phase: "Running".into(),
        ready: false,
        conditions: vec![],
        started_at: None,
        containers: vec![ContainerStatus {
            name: "app".into(),
            restarts: 3,
            state: "waiting: CrashLoopBackOff".into(),
            last_termination: Some("OOMKilled (exit 137)".into()),
            last_termination_at: Some(at("2026-03-04T06:32:00Z")),
            limits: Some("memory=768Mi".into()),
            ..ContainerStatus::default()
        }],
    };
    assert_eq!(
        both(&Finding::Pod(pod)),
        [
            "pod catalog-1 on node-a: Running, not ready, 3 restarts; app: waiting: CrashLoopBackOff, last ended as OOMKilled (exit 137) at 14:32:00, limits memory=768Mi",
            "Pod catalog-1（node-a）：Running，未就绪，重启 3 次; app: waiting: CrashLoopBackOff, 上次退出：OOMKilled (exit 137)（14:32:00）, 限额 memory=768Mi",
        ]
    );
}

#[test]
fn status_and_changes_are_one_sentence_each() {
    let workload = Workload {
        kind: "Deployment".into(),
        namespace: "shop".into(),
        name: "order".into(),
        desired: 3,
        ready: 3,
        images: vec!["r.example/shop/order:1.2".into()],
        ..Workload::default()
    };
    assert_eq!(both(&Finding::Workload(workload))[0], "Deployment shop/order: 3 of 3 instances ready (order:1.2)");
    let event = KubeEvent {
        object: "Pod/a".into(),
        reason: "BackOff".into(),
        message: "restarting".into(),
        count: 4,
        last: Some(at("2026-03-04T06:32:00Z")),
        ..KubeEvent::default()
    };
    assert_eq!(both(&Finding::Event(event))[1], "事件 BackOff（Pod/a）4 次，最近 14:32:00：restarting");
    let node = NodeStatus {
        name: "n1".into(),
        ready: false,
        conditions: vec!["DiskPressure=True".into()],
        unschedulable: true,
    };
    assert_eq!(both(&Finding::Node(node))[0], "node n1: not ready, cordoned; DiskPressure=True");
    let rollout = Rollout {
        workload: "w".into(),
        namespace: "s".into(),
        revision: Some("7".into()),
        at: Some(at("2026-03-04T06:32:00Z")),
        images: vec!["w:2".into()],
        previous_images: vec!["w:1".into()],
        desired: 3,
        ready: 1,
    };
    assert_eq!(
        both(&Finding::Rollout(rollout))[0],
        "rollout of s/w revision 7 at 03-04 14:32: w:1 -> w:2, 1 of 3 ready"
    );
    let change = Change {
        time: at("2026-03-04T06:32:00Z"),
        service: Some("w".into()),
        kind: ChangeKind::Config,
        summary: "pool 20 -> 10".into(),
    };
    assert_eq!(
        both(&Finding::Change(change)),
        ["configuration change of w at 03-04 14:32: pool 20 -> 10", "03-04 14:32 w 配置变更：pool 20 -> 10"]
    );
    assert_eq!(
        both(&Finding::Nothing { what: "logs of x".into() }),
        ["nothing found: logs of x", "没有结果：logs of x"]
    );
}

#[test]
fn a_call_is_short_and_clean() {
    let made = Call {
        tool: "search_logs".into(),
        arguments: json!({"service": "order\u{1b}[31m-service", "start": "2026-03-04T06:00:00Z", "end": "2026-03-04T14:45:00+08:00", "keywords": ["a", "b"], "k": 3, "level": null}),
    };
    assert_eq!(call(&made), "search_logs(service=order-service, start=06:00Z, end=14:45, keywords=a|b, k=3)");
    assert_eq!(call(&Call { tool: "get_current_time".into(), arguments: json!(null) }), "get_current_time()");
}
