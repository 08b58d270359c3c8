//! Every signature on a small state of its own: it comes first there, and hence loses on its neighbours' states.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::conclude::conclude;
use super::{first_calls, planner};
use crate::domain::*;
use crate::reason::words;

fn now() -> Timestamp {
    "2026-03-04T06:45:00Z".parse().unwrap()
}

fn minutes_ago(minutes: i64) -> Timestamp {
    now().checked_sub(SignedDuration::from_mins(minutes)).unwrap()
}

/// A state in the making: the alert of `shop` fired 15 minutes ago.
struct World(State);

impl World {
    fn new(symptom: Symptom) -> Self {
        let alert = Alert {
            name: "SomethingIsWrong".into(),
            service: Some("shop".into()),
            severity: None,
            status: AlertStatus::Firing,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            starts_at: Some(minutes_ago(15)),
            ends_at: None,
            fingerprint: "f".into(),
        };
        let mut facts = crate::reason::facts::analyze(std::slice::from_ref(&alert), now());
        facts.symptom = symptom;
        let callees = ["stock", "postgres", "redis"].map(str::to_string).to_vec();
        let tools = ["query_metrics", "discover_metrics", "search_logs", "workload_status", "recent_changes"];
        let spec = |name: &str| ToolSpec {
            name: name.into(),
            description: String::new(),
            input_schema: json!({}),
            server: "builtin".into(),
            read_only: true,
        };
        Self(State {
            topology: [("shop".to_string(), callees)].into(),
            tools: tools.map(spec).to_vec(),
            ..State::begin(vec![alert], facts)
        })
    }

    /// Records a call and what it found.
    fn called(mut self, tool: &str, arguments: serde_json::Value, findings: Vec<Finding>) -> Self {
        let mut ids = Vec::new();
        for data in &findings {
            let id = format!("E{}", self.0.evidence.len() + 1);
            ids.push(id.clone());
            self.0.evidence.push(Evidence {
                id,
                kind: words::evidence_kind(data),
                source: "files".into(),
                window: None,
                summary: words::summarize(data, Lang::En, &TimeZone::UTC),
                data: data.clone(),
                stale_seconds: None,
            });
        }
        let outcome = Outcome::Output(Output {
            source: "files".into(),
            window: None,
            findings,
            notes: Vec::new(),
            truncated: false,
            served: Served::Live,
            asked: Vec::new(),
            retrieval: None,
        });
        self.0.invocations.push(Invocation {
            call: Call { tool: tool.into(), arguments },
            outcome,
            step: None,
            evidence: ids,
        });
        self
    }

    /// The service logged this 80 times since 18 minutes ago, never before.
    fn log(self, service: &str, message: &str) -> Self {
        let pattern = LogPattern {
            id: "P1".into(),
            level: Some(Level::Error),
            service: Some(service.into()),
            count: 80,
            before: Some(0),
            first: Some(minutes_ago(18)),
            last: Some(now()),
            template: message.into(),
            sample: message.into(),
            histogram: Vec::new(),
            instances: BTreeMap::new(),
        };
        self.called("search_logs", json!({"service": service}), vec![Finding::Pattern(pattern)])
    }

    fn series(self, service: &str, expr: &str, shape: SeriesShape, [baseline, peak]: [f64; 2]) -> Self {
        let series = SeriesSummary {
            expr: expr.into(),
            labels: [("service".to_string(), service.to_string())].into(),
            baseline,
            peak,
            peak_at: Some(minutes_ago(12)),
            now: Some(peak),
            shape,
            onset: (shape != SeriesShape::Flat).then(|| minutes_ago(18)),
            change_points: Vec::new(),
            score: if shape == SeriesShape::Flat { 0.5 } else { 30.0 },
            samples: 100,
            points: Vec::new(),
        };
        self.called("discover_metrics", json!({"show": "anomalies", "service": service}), vec![Finding::Series(series)])
    }

    fn up(self, service: &str, expr: &str) -> Self {
        self.series(service, expr, SeriesShape::Step, [1.0, 20.0])
    }

    fn status(self, finding: Finding) -> Self {
        self.called("workload_status", json!({}), vec![finding])
    }

    fn event(self, object: &str, reason: &str, message: &str) -> Self {
        self.status(Finding::Event(KubeEvent {
            object: object.into(),
            kind: "Warning".into(),
            reason: reason.into(),
            message: message.into(),
            count: 9,
            first: Some(minutes_ago(18)),
            last: Some(now()),
            ..KubeEvent::default()
        }))
    }

    /// All instances there, none restarted.
    fn healthy(self, service: &str) -> Self {
        let workload =
            Workload { kind: "Deployment".into(), name: service.into(), desired: 3, ready: 3, ..Workload::default() };
        let pod = PodStatus {
            name: format!("{service}-6c9f7d5b84-4xkqp"),
            owner: Some(service.into()),
            phase: "Running".into(),
            ready: true,
            containers: vec![ContainerStatus {
                name: service.into(),
                ready: true,
                state: "running".into(),
                ..ContainerStatus::default()
            }],
            ..PodStatus::default()
        };
        self.status(Finding::Workload(workload)).status(Finding::Pod(pod))
    }

    fn ended(self, service: &str, how: &str) -> Self {
        let container = ContainerStatus {
            name: service.into(),
            restarts: 4,
            state: "waiting: CrashLoopBackOff".into(),
            last_termination: Some(how.into()),
            last_termination_at: Some(minutes_ago(10)),
            ..ContainerStatus::default()
        };
        self.status(Finding::Pod(PodStatus {
            name: format!("{service}-6c9f7d5b84-4xkqp"),
            owner: Some(service.into()),
            phase: "Running".into(),
            containers: vec![container],
            ..PodStatus::default()
        }))
    }

    fn change(self, service: &str, kind: ChangeKind, minutes: i64, summary: &str) -> Self {
        let change =
            Change { time: minutes_ago(minutes), service: Some(service.into()), kind, summary: summary.into() };
        self.called("recent_changes", json!({}), vec![Finding::Change(change)])
    }

    fn cause(&self) -> (Category, String) {
        let conclusion = conclude(&self.0, &TimeZone::UTC);
        match conclusion.root_cause {
            Some(cause) => (cause.category, cause.service.unwrap_or_default()),
            None => (Category::Unknown, String::new()),
        }
    }
}

/// A small state for each kind of cause, with the service that holds it.
fn worlds() -> Vec<(Category, &'static str, World)> {
    use Category::*;
    let world = World::new;
    vec![
        (DbConnectionPoolExhausted, "shop", world(Symptom::Errors).log("shop", "QueuePool limit of size 20 overflow 10 reached, connection timed out").up("shop", "db_pool_waiting_requests").healthy("shop")),
        (DbUnavailable, "postgres", world(Symptom::Errors).log("shop", "dial tcp 10.0.0.7:5432: connect: connection refused").series("postgres", "pg_up", SeriesShape::Step, [1.0, 0.0])),
        (DbLockContention, "postgres", world(Symptom::Latency).log("shop", "ERROR: canceling statement due to lock timeout").up("postgres", "pg_locks_count")),
        (SlowQuery, "postgres", world(Symptom::Latency).log("postgres", "duration: 8312.114 ms  statement: SELECT * FROM orders WHERE note LIKE '%x%'").up("postgres", "pg_stat_statements_mean_exec_milliseconds")),
        (DependencyUnavailable, "stock", world(Symptom::Errors).log("shop", "Post \"http://stock:8080/reserve\": connection refused").event("Deployment/stock", "x", "").status(Finding::Workload(Workload { name: "stock".into(), desired: 0, ..Workload::default() }))),
        (DependencySlow, "stock", world(Symptom::Latency).log("shop", "GET http://stock/items: net/http: request canceled (Client.Timeout exceeded while awaiting headers)").up("stock", "http_server_duration_seconds_p99").healthy("shop")),
        (RetryStorm, "stock", world(Symptom::Errors).log("shop", "call to stock failed, retrying immediately (attempt 7/10)").up("shop", "client_retries_total{target=\"stock\"}")),
        (DnsFailure, "shop", world(Symptom::Errors).log("shop", "dial tcp: lookup stock.prod.svc on 10.96.0.10:53: no such host")),
        (TlsCertificateExpired, "stock", world(Symptom::Errors).log("shop", "Get \"https://stock:8443/\": x509: certificate has expired or is not yet valid")),
        (NetworkLoss, "shop", world(Symptom::Latency).up("shop", "rate(node_netstat_Tcp_RetransSegs[2m])").log("shop", "keepalive ping failed to receive ACK within timeout")),
        (CpuSaturation, "shop", world(Symptom::Latency).series("shop", "rate(process_cpu_seconds_total[2m])", SeriesShape::Saturated, [0.4, 4.0]).healthy("shop")),
        (CpuThrottling, "shop", world(Symptom::Latency).up("shop", "rate(container_cpu_cfs_throttled_periods_total[2m])").series("shop", "rate(container_cpu_usage_seconds_total[2m])", SeriesShape::Saturated, [0.2, 0.5])),
        (MemoryLeak, "shop", world(Symptom::Memory).series("shop", "container_memory_working_set_bytes", SeriesShape::Ramp, [2e8, 9e8]).series("shop", "go_goroutines", SeriesShape::Ramp, [40.0, 9000.0])),
        (OomKilled, "shop", world(Symptom::Restarts).ended("shop", "OOMKilled (exit 137)").series("shop", "container_memory_working_set_bytes", SeriesShape::Ramp, [2e8, 7e8])),
        (GcPressure, "shop", world(Symptom::Latency).log("shop", "GC(412) Pause Full (G1 Compaction Pause) 4095M->4090M(4096M) 2841.5ms").up("shop", "rate(jvm_gc_pause_seconds_sum[2m])")),
        (DiskFull, "shop", world(Symptom::Errors).log("shop", "write /data/x: no space left on device").series("shop", "kubelet_volume_stats_available_bytes", SeriesShape::Ramp, [4e9, 0.0])),
        (DiskIoSaturation, "postgres", world(Symptom::Latency).up("postgres", "rate(node_disk_io_time_seconds_total[2m])").log("postgres", "checkpoint complete: sync took 48.1 s; fsync is slow")),
        (InodeExhausted, "shop", world(Symptom::Errors).log("shop", "open /tmp/sess_1: no space left on device").series("shop", "node_filesystem_files_free", SeriesShape::Ramp, [1e6, 0.0])),
        (FileDescriptorExhausted, "shop", world(Symptom::Errors).log("shop", "accept tcp [::]:8080: accept4: too many open files").series("shop", "process_open_fds", SeriesShape::Saturated, [200.0, 1024.0])),
        (ConnectionTableFull, "node-3", world(Symptom::Network).log("node-3", "nf_conntrack: nf_conntrack: table full, dropping packet")),
        (ThreadPoolExhausted, "shop", world(Symptom::Latency).log("shop", "java.util.concurrent.RejectedExecutionException: Task rejected from ThreadPoolExecutor").series("shop", "tomcat_threads_busy_threads", SeriesShape::Saturated, [20.0, 200.0])),
        (BadDeployment, "shop", world(Symptom::Errors).change("shop", ChangeKind::Deploy, 20, "shop 2.1 -> 2.2").log("shop", "java.lang.NullPointerException: Cannot invoke \"Cart.total()\"").healthy("shop")),
        (ConfigError, "shop", world(Symptom::Errors).change("shop", ChangeKind::Config, 20, "set PAY_URL").log("shop", "invalid configuration: environment variable PAY_URL is not set")),
        (CrashLoop, "shop", world(Symptom::Restarts).ended("shop", "Error (exit 2)").log("shop", "panic: runtime error: index out of range [3] with length 3")),
        (ImagePullFailure, "shop", world(Symptom::Rollout).event("Pod/shop-6c9f7d5b84-4xkqp", "Failed", "Failed to pull image \"r/shop:9\": manifest unknown")),
        (ProbeFailure, "shop", world(Symptom::Unavailable).event("Pod/shop-6c9f7d5b84-4xkqp", "Unhealthy", "Readiness probe failed: context deadline exceeded")),
        (Unschedulable, "shop", world(Symptom::Unavailable).event("Pod/shop-6c9f7d5b84-4xkqp", "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.")),
        (NodeNotReady, "node-2", world(Symptom::Node).status(Finding::Node(NodeStatus { name: "node-2".into(), ready: false, conditions: vec!["Ready=Unknown: NodeStatusUnknown: Kubelet stopped posting node status.".into()], unschedulable: false }))),
        (TrafficSurge, "shop", world(Symptom::Traffic).up("shop", "rate(http_requests_total[2m])").series("shop", "rate(process_cpu_seconds_total[2m])", SeriesShape::Step, [0.5, 2.0]).log("shop", "overloaded: shedding requests")),
        (RateLimited, "shop", world(Symptom::Errors).log("shop", "provider answered 429 Too Many Requests, Retry-After: 30")),
        (QueueBacklog, "shop", world(Symptom::Queue).series("shop", "kafka_consumergroup_lag", SeriesShape::Ramp, [10.0, 90_000.0])),
        (CacheFailure, "redis", world(Symptom::Latency).log("shop", "redis: connection pool: dial tcp 10.0.0.9:6379: connect: connection refused").series("redis", "redis_up", SeriesShape::Step, [1.0, 0.0])),
        (AuthExpired, "shop", world(Symptom::Errors).log("shop", "stock answered 401 Unauthorized: token expired")),
        (ClockSkew, "vm-2", world(Symptom::Errors).up("vm-2", "node_timex_offset_seconds").log("vm-2", "chronyd: System clock wrong by 94.2 seconds")),
        (QuotaExceeded, "shop", world(Symptom::Unavailable).event("ReplicaSet/shop-6c9f7d5b84", "FailedCreate", "pods \"shop-1\" is forbidden: exceeded quota: team, requested: pods=1")),
        (MonitoringGap, "prometheus", world(Symptom::Unavailable).log("prometheus", "scrape failed: context deadline exceeded target=shop:8080/metrics").healthy("shop")),
    ]
}

#[test]
fn each_kind_of_cause_comes_first_on_its_own_state() {
    let wrong: Vec<String> = worlds()
        .into_iter()
        .filter(|(category, service, world)| world.cause() != (*category, (*service).to_string()))
        .map(|(category, service, world)| format!("{} at {service}: {:?}", category.id(), world.cause()))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_category_has_a_state() {
    let covered: Vec<Category> = worlds().iter().map(|(category, ..)| *category).collect();
    let missing: Vec<&Category> =
        Category::ALL.iter().filter(|one| **one != Category::Unknown && !covered.contains(one)).collect();
    assert_eq!(missing, Vec::<&Category>::new());
}

#[test]
fn nothing_at_all_gives_no_cause_and_says_what_was_not_looked_at() {
    let conclusion = conclude(&World::new(Symptom::Errors).0, &TimeZone::UTC);
    assert_eq!(conclusion.root_cause, None);
    assert_eq!(conclusion.hypotheses, vec![]);
    assert_eq!(conclusion.unchecked.len(), 4);
}

#[test]
fn confidence_is_never_certain_and_evidence_is_cited() {
    for (category, _, world) in worlds() {
        let conclusion = conclude(&world.0, &TimeZone::UTC);
        let cause = conclusion.root_cause.unwrap();
        assert!(cause.confidence > 0.5 && cause.confidence < 0.97, "{}: {}", category.id(), cause.confidence);
        assert!(conclusion.summary.contains(&format!("[{}]", cause.evidence[0])), "{}", conclusion.summary);
        assert!(conclusion.next_steps.len() >= 3, "{}", category.id());
    }
}

#[test]
fn a_crash_is_refuted_by_instances_that_are_all_there() {
    let world = World::new(Symptom::Errors)
        .log("shop", "HikariPool-1 - Connection is not available, request timed out after 3000ms")
        .healthy("shop");
    let conclusion = conclude(&world.0, &TimeZone::UTC);
    let crash = conclusion.hypotheses.iter().find(|one| one.category == Category::CrashLoop).unwrap();
    assert_eq!(
        (crash.verdict, crash.evidence_against.as_slice()),
        (Verdict::Refuted, &["E3".to_string(), "E2".to_string()][..])
    );
}

#[test]
fn an_unrelated_or_old_deployment_is_no_cause() {
    let unrelated = World::new(Symptom::Errors)
        .change("other", ChangeKind::Deploy, 20, "other 1 -> 2")
        .log("shop", "TypeError: x is undefined");
    let old = World::new(Symptom::Errors)
        .change("shop", ChangeKind::Deploy, 600, "shop 1 -> 2")
        .log("shop", "TypeError: x is undefined");
    for world in [unrelated, old] {
        assert_ne!(world.cause().0, Category::BadDeployment);
    }
}

#[test]
fn a_message_that_was_as_frequent_before_is_no_cause() {
    let mut world = World::new(Symptom::Errors).log("shop", "nf_conntrack: table full, dropping packet").0;
    if let Finding::Pattern(pattern) = &mut world.evidence[0].data {
        pattern.before = Some(80);
    }
    assert_eq!(World(world).cause().0, Category::Unknown);
}

#[test]
fn missing_sources_lower_the_confidence() {
    let full = worlds().remove(0).2;
    let mut poor = worlds().remove(0).2;
    poor.0.invocations.retain(|made| made.call.tool == "search_logs");
    let confidence =
        |world: &World| conclude(&world.0, &TimeZone::UTC).root_cause.map_or(0.0, |cause| cause.confidence);
    assert!(confidence(&poor) < confidence(&full));
}

#[test]
fn the_first_questions_use_only_tools_that_are_there() {
    let mut world = World::new(Symptom::Errors);
    let tools = |state: &State| first_calls(state).into_iter().map(|call| call.tool).collect::<Vec<_>>();
    assert_eq!(
        tools(&world.0),
        ["discover_metrics", "discover_metrics", "search_logs", "workload_status", "workload_status", "recent_changes"]
    );
    world.0.tools.retain(|tool| tool.name == "search_logs");
    assert_eq!(tools(&world.0), ["search_logs"]);
}

#[test]
fn evidence_that_points_to_a_callee_revises_the_plan() {
    let world = World::new(Symptom::Errors)
        .log("shop", "Get \"https://stock:8443/\": x509: certificate has expired or is not yet valid");
    let Decision::Revise { pending, reason } = planner::replan(&world.0) else { panic!("no revision") };
    assert_eq!(reason, "[E1] points to stock: TLS certificate expired");
    let asked: Vec<&str> = pending[0].calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(asked, ["query_metrics", "search_logs", "discover_metrics", "workload_status"]);
}

#[test]
fn a_plan_has_unique_steps_and_ends() {
    let state = World::new(Symptom::Errors).log("shop", "too many open files").0;
    let plan = planner::plan(&state);
    let ids: Vec<u32> = plan.steps.iter().map(|step| step.id).collect();
    assert_eq!(ids, (1..=ids.len() as u32).collect::<Vec<_>>());
    assert!((3..=6).contains(&plan.steps.len()));
}

#[test]
fn what_people_said_of_earlier_diagnoses_tips_the_scales_and_is_no_evidence() {
    let with = |category, refuted, matched| {
        let mut world = worlds().remove(0).2;
        let precedent = Precedent {
            session_id: "s".into(),
            at: minutes_ago(600),
            alert: "ShopErrors".into(),
            fingerprint: "f".into(),
            service: None,
            category,
            refuted,
            cause_service: None,
            cause: Some("in words".into()),
            judgement: Some(Judgement::Right),
            corrected: false,
            note: None,
            relied_on: Vec::new(),
            matched,
            similarity: None,
        };
        world.0.history = Some(History { times: 2, days: 7, flapping: false, precedents: vec![precedent] });
        conclude(&world.0, &TimeZone::UTC).root_cause.unwrap()
    };
    let category = worlds()[0].0;
    let plain = conclude(&worlds().remove(0).2.0, &TimeZone::UTC).root_cause.unwrap();
    let known = with(Some(category), None, Matched::Fingerprint);
    let alike = with(Some(category), None, Matched::Similarity);
    let wrong = with(None, Some(category), Matched::Fingerprint);
    assert!(known.confidence >= alike.confidence && alike.confidence >= plain.confidence);
    assert!(wrong.confidence < plain.confidence, "{} {}", wrong.confidence, plain.confidence);
    assert_eq!((known.evidence, known.category), (plain.evidence, category));
    // Nothing but memory is no reason to name a cause.
    let mut empty = World::new(Symptom::Errors);
    empty.0.history = Some(History { times: 9, days: 7, flapping: true, precedents: Vec::new() });
    assert_eq!(conclude(&empty.0, &TimeZone::UTC).root_cause, None);
}
