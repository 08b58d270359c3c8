//! Questions asked of samples of a real API server and of documents in the shapes that people save.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::files::read_folder;
use super::inventory::Inventory;
use super::select::answer;
use crate::domain::{ContainerStatus, KubeEvent, NodeStatus, PodStatus, Rollout, Window, Workload};
use crate::source::{StatusAnswer, StatusQuery};

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kubernetes").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn inventory(names: &[&str]) -> Inventory {
    let mut inventory = Inventory::default();
    for name in names {
        inventory.read(name, fixture(name).as_slice());
    }
    inventory
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn window() -> Window {
    Window::new(at("2026-11-30T08:00:00Z"), at("2026-11-30T10:00:00Z"))
}

fn ask(inventory: &Inventory, service: Option<&str>) -> StatusAnswer {
    answer(inventory, &StatusQuery { service: service.map(str::to_owned), namespace: None, window: window() })
}

const SAMPLES: [&str; 4] = ["deployments.json", "replicasets.json", "pods.json", "events.json"];

#[test]
fn a_deployment_of_a_real_server_shows_its_replicas_and_what_is_wrong() {
    let answer = ask(&inventory(&SAMPLES), Some("order-service"));
    assert_eq!(
        answer.workloads,
        [Workload {
            kind: "Deployment".into(),
            namespace: "shop".into(),
            name: "order-service".into(),
            desired: 2,
            ready: 1,
            updated: 2,
            available: 1,
            conditions: vec!["Available=False: MinimumReplicasUnavailable".into()],
            images: vec!["registry.local/order-service:1.42.0".into()],
            revision: Some("2".into()),
        }]
    );
}

#[test]
fn a_killed_container_shows_its_restarts_and_last_termination() {
    let answer = ask(&inventory(&SAMPLES), Some("order-service"));
    assert_eq!(
        answer.pods[0],
        PodStatus {
            namespace: "shop".into(),
            name: "order-service-56b6bb75bc-sc88f".into(),
            node: Some("node-1".into()),
            owner: Some("order-service".into()),
            phase: "Running".into(),
            ready: false,
            conditions: vec!["Ready=False: ContainersNotReady".into()],
            started_at: Some(at("2026-11-30T07:28:03Z")),
            containers: vec![ContainerStatus {
                name: "app".into(),
                image: "registry.local/order-service:1.42.0".into(),
                ready: false,
                restarts: 7,
                state: "waiting: CrashLoopBackOff".into(),
                message: Some(
                    "back-off 5m0s restarting failed container=app pod=order-service-56b6bb75bc-sc88f".into()
                ),
                last_termination: Some("OOMKilled (exit 137)".into()),
                last_termination_at: Some(at("2026-11-30T09:21:23Z")),
                limits: Some("memory=512Mi".into()),
            }],
        }
    );
    assert_eq!(answer.pods.len(), 2);
}

#[test]
fn a_rollout_is_read_from_replica_sets_with_both_images() {
    let answer = ask(&inventory(&SAMPLES), Some("order-service"));
    assert_eq!(
        answer.rollouts[0],
        Rollout {
            workload: "order-service".into(),
            namespace: "shop".into(),
            revision: Some("2".into()),
            at: Some(at("2026-11-30T09:26:25Z")),
            images: vec!["registry.local/order-service:1.42.0".into()],
            previous_images: vec!["registry.local/order-service:1.41.0".into()],
            desired: 2,
            ready: 1,
        }
    );
    assert_eq!(answer.rollouts[1].previous_images, Vec::<String>::new());
}

#[test]
fn warnings_come_before_normal_events_and_vanished_pods_keep_theirs() {
    let answer = ask(&inventory(&SAMPLES), Some("order-service"));
    let kinds: Vec<_> = answer.events.iter().map(|event| event.kind.as_str()).collect();
    assert!(kinds.is_sorted_by(|a, b| a >= b), "{kinds:?}");
    assert!(answer.events.iter().any(|event| event.reason == "Unhealthy" && event.count == 7));
    assert!(answer.events.iter().any(|event| event.object == "ReplicaSet/order-service-5d8cb48c5d"));
}

#[test]
fn the_same_objects_read_twice_count_once() {
    let twice = inventory(&["events.json", "events.json"]);
    let once = inventory(&["events.json"]);
    assert_eq!(ask(&twice, Some("order-service")), ask(&once, Some("order-service")));
}

#[test]
fn equal_events_of_one_object_are_counted_together() {
    let mut inventory = Inventory::default();
    for (name, minute) in [("a", "10"), ("b", "05")] {
        let event = format!(
            r#"{{"kind":"Event","metadata":{{"name":"{name}","namespace":"n"}},"involvedObject":{{"kind":"Pod","name":"p","namespace":"n"}},
               "type":"Warning","reason":"OOMKilling","message":"Killed process {minute}","count":2,"firstTimestamp":"2026-11-30T09:{minute}:00Z","lastTimestamp":"2026-11-30T09:{minute}:30Z"}}"#
        );
        inventory.read("e.json", event.as_bytes());
    }
    assert_eq!(
        ask(&inventory, None).events,
        [KubeEvent {
            object: "Pod/p".into(),
            namespace: "n".into(),
            kind: "Warning".into(),
            reason: "OOMKilling".into(),
            message: "Killed process 10".into(),
            count: 4,
            first: Some(at("2026-11-30T09:05:00Z")),
            last: Some(at("2026-11-30T09:10:30Z")),
        }]
    );
}

#[test]
fn a_service_that_is_all_right_is_told_as_well() {
    let answer = ask(&inventory(&["mixed.json"]), Some("mysql"));
    assert_eq!(answer.workloads.len(), 1);
    assert_eq!((answer.workloads[0].ready, answer.workloads[0].desired), (3, 3));
    assert_eq!(answer.pods[0].containers[0].restarts, 0);
}

#[test]
fn without_a_service_only_what_is_wrong_is_told() {
    let answer = ask(&inventory(&["mixed.json", "nodes.json"]), None);
    let workloads: Vec<_> = answer.workloads.iter().map(|workload| workload.name.as_str()).collect();
    assert_eq!(workloads, ["fluent-bit", "migrate"]);
    let pods: Vec<_> = answer.pods.iter().map(|pod| (pod.name.as_str(), pod.conditions.clone())).collect();
    let unschedulable = "PodScheduled=False: Unschedulable: 0/3 nodes are available: 3 Insufficient memory.";
    assert_eq!(pods, [("lonely-x7k2p", vec![unschedulable.to_owned()])]);
    assert_eq!(
        answer.nodes,
        [
            NodeStatus {
                name: "node-1".into(),
                ready: true,
                conditions: vec!["DiskPressure=True: KubeletHasDiskPressure: kubelet has disk pressure".into()],
                unschedulable: false,
            },
            NodeStatus {
                name: "node-2".into(),
                ready: false,
                conditions: vec!["Ready=Unknown: NodeStatusUnknown: Kubelet stopped posting node status.".into()],
                unschedulable: true,
            },
        ]
    );
}

#[test]
fn a_pod_that_restarts_stands_before_those_that_wait_and_those_before_healthy_ones() {
    let pod = |name: &str, status: &str| {
        format!(
            r#"{{"kind": "Pod", "metadata": {{"name": "{name}", "namespace": "shop", "labels": {{"app": "cart"}}}}, "status": {status}}}"#
        )
    };
    let container = |restarts: u8, ready: bool| {
        format!(
            r#"{{"phase": "Running", "conditions": [{{"type": "Ready", "status": "{}"}}], "containerStatuses": [{{"name": "c", "ready": {ready},
               "restartCount": {restarts}, "state": {{"running": {{}}}},
               "lastState": {{"terminated": {{"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-30T09:00:00Z"}}}}}}]}}"#,
            if ready { "True" } else { "False" }
        )
    };
    let mut inventory = Inventory::default();
    let pods = [pod("a", &container(0, true)), pod("b", r#"{"phase": "Pending"}"#), pod("c", &container(3, true))];
    inventory.read("pods.json", pods.concat().as_bytes());
    let names: Vec<String> = ask(&inventory, Some("cart")).pods.into_iter().map(|pod| pod.name).collect();
    assert_eq!(names, ["c", "b", "a"]);
}

#[test]
fn a_service_is_found_by_label_and_a_bare_pod_by_its_name() {
    let inventory = inventory(&["mixed.json"]);
    assert_eq!(ask(&inventory, Some("order-service")).workloads[0].name, "migrate");
    assert_eq!(ask(&inventory, Some("lonely")).pods[0].name, "lonely-x7k2p");
    assert_eq!(ask(&inventory, Some("shop/mysql")).pods[0].name, "mysql-0");
    assert_eq!(ask(&inventory, Some("other/mysql")).pods, []);
}

#[test]
fn pods_without_their_deployment_are_found_by_owner() {
    let answer = ask(&inventory(&["pods.json"]), Some("order-service"));
    assert_eq!((answer.workloads.len(), answer.pods.len()), (0, 2));
}

#[test]
fn a_newer_event_is_read_and_its_text_cleaned() {
    let answer = ask(&inventory(&["mixed.json"]), Some("mysql"));
    assert_eq!(
        answer.events,
        [KubeEvent {
            object: "Pod/mysql-0".into(),
            namespace: "shop".into(),
            kind: "Warning".into(),
            reason: "Unhealthy".into(),
            message: "Liveness probe failed: timeout".into(),
            count: 12,
            first: Some(at("2026-11-30T09:00:00Z")),
            last: Some(at("2026-11-30T09:20:00Z")),
        }]
    );
}

#[test]
fn an_error_of_the_api_and_a_broken_object_become_notes() {
    let notes = ask(&inventory(&["error_forbidden.json", "mixed.json"]), None).notes;
    assert_eq!(
        notes[0],
        "error_forbidden.json: nodes: forbidden: nodes is forbidden: User \"oncall-ro\" cannot list resource \"nodes\" \
         in API group \"\" at the cluster scope"
    );
    assert_eq!(notes[1], "mixed.json: an object was left out: invalid type: integer `17`, expected a string");
    assert_eq!(notes.len(), 2);
}

#[test]
fn what_stands_before_broken_json_is_kept() {
    let mut inventory = Inventory::default();
    let mut bytes = fixture("nodes.json");
    bytes.extend_from_slice(b"{\"kind\": \"PodList\", \"items\": [");
    inventory.read("status.json", bytes.as_slice());
    assert_eq!(inventory.nodes.len(), 3);
    assert!(inventory.notes[0].starts_with("status.json: EOF while parsing"), "{:?}", inventory.notes);
}

#[test]
fn events_outside_the_window_are_left_out() {
    let window = Window::new(at("2026-11-30T10:00:00Z"), at("2026-11-30T11:00:00Z"));
    let query = StatusQuery { service: Some("order-service".into()), namespace: None, window };
    let answer = answer(&inventory(&SAMPLES), &query);
    assert_eq!((answer.events, answer.rollouts), (vec![], vec![]));
    assert_eq!(answer.pods.len(), 2);
}

#[test]
fn a_folder_is_read_with_marks_of_order_gzip_and_utf16() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let nodes = String::from_utf8(fixture("nodes.json")).unwrap();
    let mut utf16 = vec![0xFF, 0xFE];
    utf16.extend(nodes.encode_utf16().flat_map(u16::to_le_bytes));
    write("a-utf16.json", &utf16);
    write("b-bom.json", &[b"\xEF\xBB\xBF", fixture("mixed.json").as_slice()].concat());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &fixture("deployments.json")).unwrap();
    write("c.json.gz", &gzip.finish().unwrap());
    write("notes.txt", b"kubectl get pods");
    let inventory = read_folder(folder.path());
    assert_eq!((inventory.nodes.len(), inventory.workloads.len()), (3, 4));
    assert_eq!(
        inventory.notes.last().map(String::as_str),
        Some("notes.txt: not read: expected JSON (kubectl get ... -o json) in a file named *.json")
    );
}

#[test]
fn a_folder_that_is_not_there_is_a_note() {
    let inventory = read_folder(&PathBuf::from("/nonexistent/status"));
    assert!(inventory.is_empty() && inventory.notes.len() == 1);
}

#[test]
fn documents_cut_or_garbled_anywhere_are_notes_not_panics() {
    for name in SAMPLES.iter().chain(&["mixed.json", "nodes.json", "error_forbidden.json"]) {
        let whole = fixture(name);
        for at in (0..whole.len()).step_by(61) {
            let mut garbled = whole.clone();
            garbled[at] = b"{}[]\",:0\xFF"[at % 9];
            for bytes in [&whole[..at], garbled.as_slice()] {
                let mut inventory = Inventory::default();
                inventory.read(name, bytes);
                ask(&inventory, Some("order-service"));
                ask(&inventory, None);
            }
        }
    }
}
