//! The state of workloads from the series of kube-state-metrics, where no cluster can be asked.
//!
//! In: a source of metrics that has them. Out: what `kubectl` would have told, as far as the series go: no events, no
//! messages, and no images of earlier revisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::convert::{ReplicaSet, name_text};
use super::inventory::{Entry, Inventory, ObjectKey};
use super::select;
use crate::domain::{Change, ContainerStatus, NodeStatus, PodStatus, Series, Window, Workload};
use crate::source::{MetricSource, QueryValue, SourceError, StatusAnswer, StatusQuery, StatusSource};

/// All series that are read, at one instant.
const SERIES: &str = "{__name__=~\"kube_deployment_(spec_replicas|status_replicas_ready|status_replicas_updated|status_replicas_available|status_condition)|\
kube_statefulset_(replicas|status_replicas_ready|status_replicas_updated|status_replicas_available)|\
kube_daemonset_(status_desired_number_scheduled|status_number_ready|status_updated_number_scheduled|status_number_available)|\
kube_replicaset_(created|owner|spec_replicas|status_ready_replicas)|\
kube_pod_(info|start_time|status_phase|status_ready|status_scheduled)|\
kube_pod_container_(info|status_ready|status_running|status_restarts_total|status_waiting_reason|status_terminated_reason|status_last_terminated_reason|status_last_terminated_timestamp|resource_limits)|\
kube_node_(info|status_condition|spec_unschedulable)\"}";

/// Whether there are such series.
const PROBE: &str = "count(kube_pod_info)";

/// Workload status over a source of metrics.
pub struct StateMetrics {
    name: String,
    metrics: Arc<dyn MetricSource>,
}

impl StateMetrics {
    /// The source, when the metrics have the series at `now`.
    pub async fn find(metrics: Arc<dyn MetricSource>, now: Timestamp) -> Option<Self> {
        let found = metrics.instant(PROBE, now).await.ok()?;
        let has_pods = matches!(found.value, QueryValue::Vector(series) if !series.is_empty());
        has_pods.then(|| Self { name: format!("{}/kube-state-metrics", metrics.name()), metrics })
    }
}

#[async_trait]
impl StatusSource for StateMetrics {
    fn name(&self) -> &str {
        &self.name
    }

    async fn status(&self, query: &StatusQuery) -> Result<StatusAnswer, SourceError> {
        let answer = self.metrics.instant(SERIES, query.window.end).await?;
        let QueryValue::Vector(series) = answer.value else { return Ok(StatusAnswer::default()) };
        let mut state = select::answer(&inventory(&series), query);
        state.notes.extend(answer.warnings);
        state.notes.push("read from kube-state-metrics: it has no events and no messages".to_owned());
        Ok(state)
    }

    async fn changes(&self, _window: Window, _service: Option<&str>) -> Result<Vec<Change>, SourceError> {
        Ok(Vec::new())
    }
}

/// One sample of one series.
struct Fact<'a> {
    series: &'a Series,
    value: f64,
}

impl Fact<'_> {
    /// A label; where the scrape renamed it because the exporter's pod has one of that name, the renamed one.
    fn label(&self, name: &str) -> String {
        let labels = &self.series.labels;
        let value = labels.get(&format!("exported_{name}")).or_else(|| labels.get(name));
        name_text(value.map(String::as_str))
    }

    fn key(&self, name: &str) -> ObjectKey {
        (self.label("namespace"), self.label(name))
    }

    fn holds(&self) -> bool {
        self.value > 0.0
    }

    fn count(&self) -> i64 {
        self.value as i64
    }

    fn time(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.value as i64).ok()
    }
}

/// The objects that the series speak of.
fn inventory(series: &[Series]) -> Inventory {
    let mut inventory = Inventory::default();
    let facts = series.iter().filter_map(|series| {
        let value = series.samples.last()?.value;
        value.is_finite().then_some(Fact { series, value })
    });
    let mut owners: BTreeMap<ObjectKey, (String, String)> = BTreeMap::new();
    let facts: Vec<Fact<'_>> = facts.collect();
    for fact in &facts {
        let name = fact.series.name();
        let Some((kind, what)) = name.strip_prefix("kube_").and_then(|name| name.split_once('_')) else { continue };
        match kind {
            "deployment" => workload(&mut inventory, "Deployment", kind, what, fact),
            "statefulset" => workload(&mut inventory, "StatefulSet", kind, what, fact),
            "daemonset" => workload(&mut inventory, "DaemonSet", kind, what, fact),
            "replicaset" => replica_set(&mut inventory, what, fact),
            "pod" => pod(&mut inventory, &mut owners, what, fact),
            "node" => node(&mut inventory, what, fact),
            _ => {}
        }
    }
    own(&mut inventory, owners);
    inventory.kinds.extend(["Deployment", "Pod", "Node"].map(str::to_owned));
    inventory
}

fn unlabelled<T>(value: T) -> Entry<T> {
    Entry { value, services: Vec::new(), owner: None }
}

fn workload(inventory: &mut Inventory, kind: &str, label: &str, what: &str, fact: &Fact<'_>) {
    let key = fact.key(label);
    let entry = inventory.workloads.entry((kind.to_owned(), key.clone())).or_insert_with(|| {
        unlabelled(Workload { kind: kind.to_owned(), namespace: key.0, name: key.1, ..Workload::default() })
    });
    let workload = &mut entry.value;
    match what {
        "spec_replicas" | "replicas" | "status_desired_number_scheduled" => workload.desired = fact.count(),
        "status_replicas_ready" | "status_number_ready" => workload.ready = fact.count(),
        "status_replicas_updated" | "status_updated_number_scheduled" => workload.updated = fact.count(),
        "status_replicas_available" | "status_number_available" => workload.available = fact.count(),
        "status_condition" if fact.holds() => {
            let (condition, status) = (fact.label("condition"), fact.label("status"));
            let is_bad = match condition.as_str() {
                "ReplicaFailure" => status == "true",
                _ => status == "false",
            };
            if is_bad {
                let status = if status == "true" { "True" } else { "False" };
                workload.conditions.push(format!("{condition}={status}"));
            }
        }
        _ => {}
    }
}

fn replica_set(inventory: &mut Inventory, what: &str, fact: &Fact<'_>) {
    let key = fact.key("replicaset");
    let entry = inventory
        .replica_sets
        .entry(key.clone())
        .or_insert_with(|| unlabelled(ReplicaSet { namespace: key.0, name: key.1, ..ReplicaSet::default() }));
    match what {
        "created" => entry.value.created = fact.time(),
        "owner" if fact.label("owner_kind") == "Deployment" => {
            entry.value.deployment = Some(fact.label("owner_name"));
            entry.owner = entry.value.deployment.clone();
        }
        "spec_replicas" => entry.value.desired = fact.count(),
        "status_ready_replicas" => entry.value.ready = fact.count(),
        _ => {}
    }
}

fn pod(inventory: &mut Inventory, owners: &mut BTreeMap<ObjectKey, (String, String)>, what: &str, fact: &Fact<'_>) {
    let key = fact.key("pod");
    let entry = inventory.pods.entry(key.clone()).or_insert_with(|| {
        unlabelled(PodStatus { namespace: key.0.clone(), name: key.1.clone(), ..PodStatus::default() })
    });
    let pod = &mut entry.value;
    if let Some(what) = what.strip_prefix("container_") {
        return container(pod, what, fact);
    }
    match what {
        "info" => {
            pod.node = Some(fact.label("node")).filter(|node| !node.is_empty());
            owners.insert(key, (fact.label("created_by_kind"), fact.label("created_by_name")));
        }
        "start_time" => pod.started_at = fact.time(),
        "status_phase" if fact.holds() => pod.phase = fact.label("phase"),
        "status_ready" if fact.label("condition") == "true" => pod.ready = fact.holds(),
        "status_scheduled" if fact.holds() && fact.label("condition") == "false" => {
            pod.conditions.push("PodScheduled=False".to_owned());
        }
        _ => {}
    }
}

fn container(pod: &mut PodStatus, what: &str, fact: &Fact<'_>) {
    let name = fact.label("container");
    let index = pod.containers.iter().position(|container| container.name == name).unwrap_or_else(|| {
        pod.containers.push(ContainerStatus { name, state: "unknown".to_owned(), ..ContainerStatus::default() });
        pod.containers.len() - 1
    });
    let container = &mut pod.containers[index];
    let reason = || fact.label("reason");
    match what {
        "info" => container.image = fact.label("image"),
        "status_ready" => container.ready = fact.holds(),
        "status_restarts_total" => container.restarts = fact.count(),
        "status_running" if fact.holds() => container.state = "running".to_owned(),
        "status_waiting_reason" if fact.holds() => container.state = format!("waiting: {}", reason()),
        "status_terminated_reason" if fact.holds() => container.state = format!("terminated: {}", reason()),
        "status_last_terminated_reason" if fact.holds() => container.last_termination = Some(reason()),
        "status_last_terminated_timestamp" => container.last_termination_at = fact.time(),
        "resource_limits" => {
            let value = match fact.label("resource").as_str() {
                "memory" => format!("memory={}Mi", fact.count() >> 20),
                resource => format!("{resource}={}", fact.value),
            };
            container.limits = Some(container.limits.take().map_or(value.clone(), |known| format!("{known}, {value}")));
        }
        _ => {}
    }
}

fn node(inventory: &mut Inventory, what: &str, fact: &Fact<'_>) {
    let name = fact.label("node");
    let node = inventory.nodes.entry(name.clone()).or_insert_with(|| NodeStatus {
        name,
        ready: true,
        ..NodeStatus::default()
    });
    match what {
        "spec_unschedulable" => node.unschedulable = fact.holds(),
        "status_condition" if fact.holds() => {
            let (condition, status) = (fact.label("condition"), fact.label("status"));
            let is_bad = if condition == "Ready" { status != "true" } else { status == "true" };
            if is_bad {
                node.ready &= condition != "Ready";
                let status = if status == "true" { "True" } else { "False" };
                node.conditions.push(format!("{condition}={status}"));
            }
        }
        _ => {}
    }
}

/// Names the workload that each pod belongs to: of a replica set, its deployment.
fn own(inventory: &mut Inventory, owners: BTreeMap<ObjectKey, (String, String)>) {
    for ((namespace, name), (kind, owner)) in owners {
        let deployment = inventory.replica_sets.get(&(namespace.clone(), owner.clone()));
        let deployment = deployment.and_then(|set| set.value.deployment.clone());
        let workload = match kind.as_str() {
            "ReplicaSet" => deployment.or_else(|| owner.rsplit_once('-').map(|(name, _)| name.to_owned())),
            _ => None,
        };
        if let Some(entry) = inventory.pods.get_mut(&(namespace, name)) {
            let workload = workload.unwrap_or(owner);
            entry.value.owner = Some(workload).filter(|owner| !owner.is_empty());
            entry.owner = entry.value.owner.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Sample;

    fn series(name: &str, labels: &[(&str, &str)], value: f64) -> Series {
        let mut all: BTreeMap<String, String> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        all.insert("__name__".into(), format!("kube_{name}"));
        Series { labels: all, samples: vec![Sample { at: Timestamp::UNIX_EPOCH, value }] }
    }

    #[test]
    fn series_tell_what_kubectl_would() {
        let pod = [
            ("namespace", "monitoring"),
            ("exported_namespace", "shop"),
            ("pod", "ksm-0"),
            ("exported_pod", "cart-7d9f8b6c5d-x2x4q"),
        ];
        let with = |more: &[(&'static str, &'static str)]| [&pod[..], more].concat();
        let shop = |more: &[(&'static str, &'static str)]| [&[("namespace", "shop")][..], more].concat();
        let all = [
            series("deployment_spec_replicas", &shop(&[("deployment", "cart")]), 2.0),
            series("deployment_status_replicas_ready", &shop(&[("deployment", "cart")]), 1.0),
            series(
                "deployment_status_condition",
                &shop(&[("deployment", "cart"), ("condition", "Available"), ("status", "false")]),
                1.0,
            ),
            series(
                "replicaset_owner",
                &shop(&[("replicaset", "cart-7d9f8b6c5d"), ("owner_kind", "Deployment"), ("owner_name", "cart")]),
                1.0,
            ),
            series("replicaset_created", &shop(&[("replicaset", "cart-7d9f8b6c5d")]), 1000.0),
            series(
                "pod_info",
                &with(&[("node", "n1"), ("created_by_kind", "ReplicaSet"), ("created_by_name", "cart-7d9f8b6c5d")]),
                1.0,
            ),
            series("pod_status_phase", &with(&[("phase", "Running")]), 1.0),
            series("pod_status_phase", &with(&[("phase", "Failed")]), 0.0),
            series(
                "pod_container_status_waiting_reason",
                &with(&[("container", "app"), ("reason", "CrashLoopBackOff")]),
                1.0,
            ),
            series(
                "pod_container_status_last_terminated_reason",
                &with(&[("container", "app"), ("reason", "OOMKilled")]),
                1.0,
            ),
            series("pod_container_status_restarts_total", &with(&[("container", "app")]), 7.0),
            series(
                "pod_container_resource_limits",
                &with(&[("container", "app"), ("resource", "memory")]),
                536_870_912.0,
            ),
            series("node_status_condition", &[("node", "n1"), ("condition", "DiskPressure"), ("status", "true")], 1.0),
            series("node_status_condition", &[("node", "n1"), ("condition", "Ready"), ("status", "true")], 1.0),
        ];
        let window = Window::new(Timestamp::UNIX_EPOCH, Timestamp::from_second(2000).unwrap());
        let query = StatusQuery { service: Some("cart".into()), namespace: None, window };
        let answer = select::answer(&inventory(&all), &query);
        let workload = &answer.workloads[0];
        assert_eq!(
            (workload.desired, workload.ready, workload.conditions.as_slice()),
            (2, 1, &["Available=False".to_owned()][..])
        );
        let pod = &answer.pods[0];
        assert_eq!(
            (pod.owner.as_deref(), pod.phase.as_str(), pod.namespace.as_str()),
            (Some("cart"), "Running", "shop")
        );
        let container = &pod.containers[0];
        assert_eq!((container.state.as_str(), container.restarts), ("waiting: CrashLoopBackOff", 7));
        assert_eq!(
            (container.last_termination.as_deref(), container.limits.as_deref()),
            (Some("OOMKilled"), Some("memory=512Mi"))
        );
        assert_eq!(
            (answer.nodes[0].ready, answer.nodes[0].conditions.as_slice()),
            (true, &["DiskPressure=True".to_owned()][..])
        );
        assert_eq!(answer.rollouts[0].at, Timestamp::from_second(1000).ok());
    }
}
