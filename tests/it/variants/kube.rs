//! The objects of a world's cluster as `kubectl get … -o json` prints them. Everything is ready unless told otherwise.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::service::Service;
use super::world::World;

/// What is wrong with a pod.
#[derive(Clone, Copy)]
pub enum State {
    /// Ended `restarts` times, the last time at `at`; waits in CrashLoopBackOff.
    CrashLoop { reason: &'static str, exit: i64, restarts: i64, at: f64 },
    /// Ended `restarts` times, the last time at `at`; runs now.
    Restarted { reason: &'static str, exit: i64, restarts: i64, at: f64 },
    /// Made at `at`, waits before its first start: `ImagePullBackOff`, `CreateContainerConfigError`…
    Waiting { reason: &'static str, message: &'static str, at: f64 },
    /// Made at `at`; no node takes it.
    Pending { message: &'static str, at: f64 },
    /// Runs, and fails its readiness probe since `at`.
    Unready { restarts: i64, at: f64 },
    /// Its node is gone since `at`.
    Lost { at: f64 },
    /// Scaled away: there is no such pod, and the deployment does not want it.
    Gone,
    /// Evicted by its node at `at`.
    Evicted { message: &'static str, at: f64 },
}

/// A condition of a node: type, status, reason, message, minute since which it holds.
pub type NodeCondition = (&'static str, &'static str, &'static str, &'static str, &'static str, f64);

pub struct Objects {
    pub kubernetes: bool,
    pub namespace: &'static str,
    pub nodes: Vec<&'static str>,
    /// Nodes whose exporter was told already.
    pub hosts: Vec<&'static str>,
    /// Service, minute, version before.
    pub rollouts: Vec<(&'static str, f64, String)>,
    states: Vec<(&'static str, usize, State)>,
    /// Node, then its condition.
    conditions: Vec<NodeCondition>,
    events: Vec<Value>,
}

impl Default for Objects {
    fn default() -> Self {
        Objects {
            kubernetes: true,
            namespace: "prod",
            nodes: vec!["node-1", "node-2", "node-3"],
            hosts: Vec::new(),
            rollouts: Vec::new(),
            states: Vec::new(),
            conditions: Vec::new(),
            events: Vec::new(),
        }
    }
}

/// An event: kind and name of the object (`$service` is its first pod, `$service.2` its third), level, reason, message, first, last, count.
pub struct Event {
    pub on: (&'static str, &'static str),
    pub level: &'static str,
    pub reason: &'static str,
    pub message: &'static str,
    pub span: (f64, f64),
    pub count: i64,
}

impl World {
    pub fn pod(mut self, service: &'static str, index: usize, state: State) -> World {
        self.objects.states.push((service, index, state));
        self
    }

    pub fn node_condition(mut self, condition: NodeCondition) -> World {
        self.objects.conditions.push(condition);
        self
    }

    pub fn event(mut self, event: Event) -> World {
        let name = event.on.1.strip_prefix('$').map_or(event.on.1.to_string(), |service| self.pod_name(service));
        let first = self.time(event.span.0).to_string();
        self.objects.events.push(json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("{name}.{:x}", self.objects.events.len() + 4096), "namespace": self.objects.namespace, "creationTimestamp": first},
            "involvedObject": {"kind": event.on.0, "name": name, "namespace": self.objects.namespace},
            "type": event.level, "reason": event.reason, "message": event.message.replace("$pod", &name), "count": event.count,
            "firstTimestamp": first, "lastTimestamp": self.time(event.span.1).to_string(),
        }));
        self
    }

    /// `name` is the first pod of a service, `name.2` its third.
    fn pod_name(&self, name: &str) -> String {
        let (service, index) = name.split_once('.').unwrap_or((name, "0"));
        let known = self.services.iter().find(|known| known.name == service);
        let pods = known.map(Service::pods).unwrap_or_default();
        index.parse().ok().and_then(|index: usize| pods.get(index).cloned()).unwrap_or_else(|| name.to_string())
    }
}

impl Objects {
    pub fn write(&self, world: &World, dir: &Path) -> io::Result<()> {
        if !self.kubernetes {
            return Ok(());
        }
        fs::create_dir_all(dir.join("status"))?;
        let list = |items: Vec<Value>| json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let services = &world.services;
        let pods = services.iter().flat_map(|service| {
            let here = (0..service.replicas).filter(|index| !matches!(self.state(service, *index), Some(State::Gone)));
            here.map(|index| self.pod(world, service, index))
        });
        fs::write(dir.join("status/pods.json"), list(pods.collect()))?;
        fs::write(
            dir.join("status/deployments.json"),
            list(services.iter().map(|s| self.deployment(world, s)).collect()),
        )?;
        fs::write(
            dir.join("status/replicasets.json"),
            list(services.iter().flat_map(|s| self.replica_sets(world, s)).collect()),
        )?;
        fs::write(dir.join("status/nodes.json"), list(self.nodes.iter().map(|node| self.node(world, node)).collect()))?;
        let mut events = self.events.clone();
        for (service, minute, _) in &self.rollouts {
            let at = world.time(*minute).to_string();
            events.push(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{service}.roll"), "namespace": self.namespace},
                "involvedObject": {"kind": "Deployment", "name": service, "namespace": self.namespace}, "type": "Normal", "reason": "ScalingReplicaSet",
                "message": format!("Scaled up replica set {service}-{} to 1", self.digest(world, service)), "count": 1, "firstTimestamp": at, "lastTimestamp": at}));
        }
        fs::write(dir.join("status/events.json"), list(events))
    }

    fn digest(&self, world: &World, name: &str) -> String {
        let service = world.services.iter().find(|service| service.name == name);
        service.map(|service| service.digest(service.version)).unwrap_or_default()
    }

    /// When the running revision of a service was made: with its rollout, else days ago.
    fn born(&self, service: &Service) -> f64 {
        self.rollouts.iter().rev().find(|(name, ..)| *name == service.name).map_or(-9000.0, |(_, minute, _)| *minute)
    }

    fn state(&self, service: &Service, index: usize) -> Option<State> {
        self.states.iter().find(|(name, pod, _)| *name == service.name && *pod == index).map(|(_, _, state)| *state)
    }

    fn pod(&self, world: &World, service: &Service, index: usize) -> Value {
        let name = &service.pods()[index];
        let image = format!("registry.example/{}:{}", service.name, service.version);
        let at = |minute: f64| world.time(minute).to_string();
        let state = self.state(service, index);
        let born = at(match state {
            Some(State::Waiting { at, .. } | State::Pending { at, .. }) => at,
            _ => self.born(service),
        });
        let mut status = json!({"name": service.name, "image": image, "ready": true, "started": true, "restartCount": 0,
            "state": {"running": {"startedAt": born}}, "lastState": {}});
        if let Some(state) = state {
            container_state(&mut status, &at, name, state);
        }
        let mut pod_status = match state {
            Some(State::Lost { .. }) => json!({"phase": "Running", "reason": "NodeLost"}),
            Some(State::Evicted { message, .. }) => json!({"phase": "Failed", "reason": "Evicted", "message": message}),
            Some(State::Waiting { .. } | State::Pending { .. }) => json!({"phase": "Pending"}),
            _ => json!({"phase": "Running"}),
        };
        pod_status["conditions"] = json!([condition(service, &at, state, &born)]);
        pod_status["startTime"] = json!(born);
        let mut spec = json!({"containers": [{"name": service.name, "image": image, "resources": {"limits": {
            "cpu": format!("{}m", service.core_limit * 1000.0), "memory": format!("{}Mi", service.memory_limit)}}}]});
        if !matches!(state, Some(State::Pending { .. })) {
            pod_status["containerStatuses"] = json!([status]);
            let spread = self.nodes[(index + service.name.len()) % self.nodes.len()];
            spec["nodeName"] = json!(service.nodes.get(index).copied().unwrap_or(spread));
        }
        json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": pod_status, "metadata": {"name": name, "namespace": self.namespace,
            "creationTimestamp": born, "labels": {"app": service.name}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                "controller": true, "name": format!("{}-{}", service.name, service.digest(service.version))}]}})
    }

    fn ready(&self, service: &Service) -> usize {
        let well = |index: &usize| matches!(self.state(service, *index), None | Some(State::Restarted { .. }));
        (0..service.replicas).filter(well).count()
    }

    fn wanted(&self, service: &Service) -> usize {
        (0..service.replicas).filter(|index| !matches!(self.state(service, *index), Some(State::Gone))).count()
    }

    fn deployment(&self, world: &World, service: &Service) -> Value {
        let (ready, wanted) = (self.ready(service), self.wanted(service));
        let since = world.time(self.born(service)).to_string();
        let available = if ready < wanted {
            json!({"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "Deployment does not have minimum availability.", "lastTransitionTime": since})
        } else {
            json!({"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "lastTransitionTime": since})
        };
        let revision = if self.born(service) > -9000.0 { "19" } else { "18" };
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": service.name, "namespace": self.namespace, "annotations": {"deployment.kubernetes.io/revision": revision}, "labels": {"app": service.name}},
            "spec": {"replicas": wanted, "selector": {"matchLabels": {"app": service.name}},
                "template": {"spec": {"containers": [{"name": service.name, "image": format!("registry.example/{}:{}", service.name, service.version)}]}}},
            "status": {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": wanted - ready, "conditions": [available]}})
    }

    fn replica_sets(&self, world: &World, service: &Service) -> Vec<Value> {
        let set = |version: &str, wanted: usize, ready: usize, minute: f64, revision: &str| {
            let digest = service.digest(version);
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"name": format!("{}-{digest}", service.name), "namespace": self.namespace, "creationTimestamp": world.time(minute).to_string(),
                    "annotations": {"deployment.kubernetes.io/revision": revision}, "labels": {"app": service.name, "pod-template-hash": digest},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": service.name, "controller": true}]},
                "spec": {"replicas": wanted, "template": {"spec": {"containers": [{"name": service.name, "image": format!("registry.example/{}:{version}", service.name)}]}}},
                "status": {"replicas": wanted, "readyReplicas": ready, "availableReplicas": ready}})
        };
        let (ready, born) = (self.ready(service), self.born(service));
        let before = self.rollouts.iter().rev().find(|(name, ..)| *name == service.name).map(|(_, _, version)| version);
        let mut sets =
            vec![set(service.version, self.wanted(service), ready, born, if before.is_some() { "19" } else { "18" })];
        sets.extend(before.map(|version| set(version, 0, 0, -9000.0, "18")));
        sets
    }

    fn node(&self, world: &World, name: &str) -> Value {
        let long_ago = world.time(-90_000.0).to_string();
        let mut conditions: Vec<Value> = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
            .into_iter()
            .map(|kind| json!({"type": kind, "status": if kind == "Ready" { "True" } else { "False" }, "reason": format!("Kubelet{kind}"), "lastTransitionTime": long_ago}))
            .collect();
        for (node, kind, status, reason, message, since) in &self.conditions {
            if *node == name {
                conditions.retain(|condition| condition["type"] != *kind);
                let at = world.time(*since).to_string();
                conditions.push(json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}));
            }
        }
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "creationTimestamp": long_ago}, "spec": {},
            "status": {"capacity": {"cpu": "8", "memory": "32778240Ki"}, "conditions": conditions}})
    }
}

/// The one condition of a pod that tells most.
fn condition(service: &Service, at: &impl Fn(f64) -> String, state: Option<State>, born: &str) -> Value {
    let since = match state {
        None | Some(State::Restarted { .. } | State::Gone) => {
            return json!({"type": "Ready", "status": "True", "lastTransitionTime": born});
        }
        Some(State::Pending { message, at: made }) => {
            return json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                "lastTransitionTime": at(made)});
        }
        Some(
            State::CrashLoop { at, .. }
            | State::Unready { at, .. }
            | State::Waiting { at, .. }
            | State::Lost { at }
            | State::Evicted { at, .. },
        ) => at,
    };
    json!({"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": at(since),
        "message": format!("containers with unready status: [{}]", service.name)})
}

fn container_state(status: &mut Value, at: &impl Fn(f64) -> String, pod: &str, state: State) {
    match state {
        State::CrashLoop { reason, exit, restarts, at: minute } => {
            status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff", "message": format!("back-off 5m0s restarting failed container in pod {pod}")}});
            status["lastState"] = json!({"terminated": {"reason": reason, "exitCode": exit, "startedAt": at(minute - 0.4), "finishedAt": at(minute)}});
            (status["restartCount"], status["ready"]) = (json!(restarts), json!(false));
        }
        State::Restarted { reason, exit, restarts, at: minute } => {
            status["state"] = json!({"running": {"startedAt": at(minute + 0.3)}});
            status["lastState"] = json!({"terminated": {"reason": reason, "exitCode": exit, "startedAt": at(minute - 9.0), "finishedAt": at(minute)}});
            status["restartCount"] = json!(restarts);
        }
        State::Waiting { reason, message, .. } => {
            status["state"] = json!({"waiting": {"reason": reason, "message": message}});
            (status["ready"], status["started"]) = (json!(false), json!(false));
        }
        State::Unready { restarts, at: minute } => {
            (status["ready"], status["restartCount"]) = (json!(false), json!(restarts));
            if restarts > 0 {
                status["state"] = json!({"running": {"startedAt": at(minute + 0.1)}});
                status["lastState"] =
                    json!({"terminated": {"reason": "Error", "exitCode": 143, "finishedAt": at(minute)}});
            }
        }
        State::Lost { .. } => status["ready"] = json!(false),
        State::Pending { .. } | State::Gone => {}
        State::Evicted { message, at: minute } => {
            status["state"] = json!({"terminated": {"reason": "Error", "exitCode": 137, "finishedAt": at(minute), "message": message}});
            status["ready"] = json!(false);
        }
    }
}
