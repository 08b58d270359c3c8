//! A question about workloads, answered from an [`Inventory`].
//!
//! In: a [`StatusQuery`]. Out: a [`StatusAnswer`], the worst first. Of a service everything is told, for that it is all
//! right is an answer too; without a service only what is not as it should be.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::health::{event_is_bad, node_is_bad, pod_is_bad, pod_restarted, workload_is_bad};
use super::inventory::{Entry, Inventory};
use super::rollout::rollouts;
use crate::domain::{KubeEvent, PodStatus, Window, Workload};
use crate::source::{StatusAnswer, StatusQuery};

/// Which objects are asked for.
pub struct Scope {
    service: Option<String>,
    namespace: Option<String>,
}

impl Scope {
    /// `namespace/service` is understood as a service, too.
    pub fn new(service: Option<&str>, namespace: Option<&str>) -> Self {
        let service = service.map(str::trim).filter(|service| !service.is_empty());
        let namespace = namespace.map(str::trim).filter(|namespace| !namespace.is_empty());
        let (namespace, service) = match (namespace, service.and_then(|service| service.split_once('/'))) {
            (None, Some((namespace, name))) => (Some(namespace), Some(name)),
            _ => (namespace, service),
        };
        Self { service: service.map(str::to_lowercase), namespace: namespace.map(str::to_owned) }
    }

    fn covers_namespace(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
    }

    /// Whether an object belongs to the service: by its name, its labels or its owner.
    pub fn covers<T>(&self, namespace: &str, name: &str, entry: &Entry<T>) -> bool {
        let Some(service) = &self.service else {
            return self.covers_namespace(namespace);
        };
        let is_service = |text: &str| text.to_lowercase() == *service;
        let named = is_service(name)
            || entry.services.iter().any(|label| is_service(label))
            || entry.owner.as_deref().is_some_and(is_service);
        // A bare pod has no labels to tell; its generated name still does.
        let unlabelled = entry.services.is_empty() && entry.owner.is_none();
        self.covers_namespace(namespace) && (named || (unlabelled && is_generated_from(&name.to_lowercase(), service)))
    }
}

/// Whether `name` is `base` with the suffixes that controllers add: an ordinal, or one or two random parts.
fn is_generated_from(name: &str, base: &str) -> bool {
    let Some(suffix) = name.strip_prefix(base).and_then(|rest| rest.strip_prefix('-')) else {
        return false;
    };
    let is_ordinal = !suffix.is_empty() && suffix.len() <= 4 && suffix.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<_> = suffix.split('-').collect();
    is_ordinal || (parts.len() <= 2 && parts.iter().all(|part| is_random(part)))
}

/// Kubernetes draws random parts from consonants and digits, so that no word comes out.
fn is_random(part: &str) -> bool {
    let has_digit = part.bytes().any(|b| b.is_ascii_digit());
    let has_vowel = part.bytes().any(|b| b"aeiouy".contains(&b));
    (5..=10).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric()) && (has_digit || !has_vowel)
}

/// Answers a question.
pub fn answer(inventory: &Inventory, query: &StatusQuery) -> StatusAnswer {
    let scope = Scope::new(query.service.as_deref(), query.namespace.as_deref());
    let asks_all = scope.service.is_none();
    let mut workloads = Vec::new();
    for ((_, (namespace, name)), entry) in &inventory.workloads {
        if scope.covers(namespace, name, entry) && (!asks_all || workload_is_bad(&entry.value)) {
            workloads.push(entry.value.clone());
        }
    }
    let mut pods = pods(inventory, &scope, &workloads);
    pods.retain(|pod| !asks_all || pod_is_bad(pod, query.window));
    let events = events(inventory, &scope, query.window, &workloads, &pods);
    let hosts: BTreeSet<_> = pods.iter().filter_map(|pod| pod.node.as_deref()).collect();
    let nodes = inventory.nodes.values().filter(|node| node_is_bad(node));
    let nodes = nodes.filter(|node| asks_all || hosts.contains(node.name.as_str())).cloned().collect();
    workloads.sort_by_key(|workload| !workload_is_bad(workload));
    // Only so many are shown: one that ends again and again must not stand behind many that wait to be scheduled.
    pods.sort_by_key(|pod| (!pod_is_bad(pod, query.window), !pod_restarted(pod, query.window)));
    StatusAnswer {
        workloads,
        pods,
        events,
        nodes,
        rollouts: rollouts(inventory, &scope, query.window),
        notes: inventory.notes.clone(),
    }
}

fn pods(inventory: &Inventory, scope: &Scope, workloads: &[Workload]) -> Vec<PodStatus> {
    let names: BTreeSet<_> = workloads.iter().map(|workload| (&workload.namespace, &workload.name)).collect();
    let mut found = Vec::new();
    for ((namespace, name), entry) in &inventory.pods {
        let owner = entry.value.owner.as_ref();
        let is_owned = owner.is_some_and(|owner| names.contains(&(namespace, owner)));
        let owner_is_service = owner.map(|owner| owner.to_lowercase()) == scope.service && scope.service.is_some();
        if scope.covers(namespace, name, entry)
            || (scope.service.is_some() && is_owned)
            || (owner_is_service && scope.covers_namespace(namespace))
        {
            found.push(entry.value.clone());
        }
    }
    found
}

/// Events of the objects found, and of objects that are gone but were named for the service.
fn events(
    inventory: &Inventory,
    scope: &Scope,
    window: Window,
    workloads: &[Workload],
    pods: &[PodStatus],
) -> Vec<KubeEvent> {
    let mut objects = BTreeSet::new();
    objects.extend(workloads.iter().map(|w| (w.namespace.clone(), format!("{}/{}", w.kind, w.name))));
    objects.extend(pods.iter().map(|pod| (pod.namespace.clone(), format!("Pod/{}", pod.name))));
    for ((namespace, name), entry) in &inventory.replica_sets {
        if scope.covers(namespace, name, entry) {
            objects.insert((namespace.clone(), format!("ReplicaSet/{name}")));
        }
    }
    let hosts: BTreeSet<_> = pods.iter().filter_map(|pod| pod.node.as_ref()).map(|n| format!("Node/{n}")).collect();
    let mut counted = BTreeMap::new();
    for event in inventory.events.values().filter(|event| falls_into(event, window)) {
        let is_wanted = match &scope.service {
            None => scope.covers_namespace(&event.namespace) && event_is_bad(event),
            Some(service) => {
                let is_host = hosts.contains(&event.object) && event_is_bad(event);
                is_host
                    || (scope.covers_namespace(&event.namespace)
                        && (objects.contains(&(event.namespace.clone(), event.object.clone()))
                            || is_left_behind(inventory, event, service)))
            }
        };
        if is_wanted {
            count(&mut counted, event);
        }
    }
    let mut events: Vec<_> = counted.into_values().collect();
    events.sort_by_key(|event| (!event_is_bad(event), Reverse(event.last)));
    events
}

/// Whether an event is about an object of the service that no longer exists, or of a kind that was not read.
fn is_left_behind(inventory: &Inventory, event: &KubeEvent, service: &str) -> bool {
    let Some((kind, name)) = event.object.split_once('/') else {
        return false;
    };
    let key = (event.namespace.clone(), name.to_owned());
    let is_known = match kind {
        "Pod" => inventory.pods.contains_key(&key),
        "ReplicaSet" => inventory.replica_sets.contains_key(&key),
        _ => inventory.workloads.contains_key(&(kind.to_owned(), key)),
    };
    let name = name.to_lowercase();
    !is_known && kind != "Node" && (name == service || is_generated_from(&name, service))
}

fn falls_into(event: &KubeEvent, window: Window) -> bool {
    event.first.is_none_or(|first| first <= window.end) && event.last.is_none_or(|last| window.start <= last)
}

/// Adds an event to the one that says the same of the same object; numbers (a process, an address) may differ, and the
/// latest message is kept.
fn count(counted: &mut BTreeMap<(String, String, String, String), KubeEvent>, event: &KubeEvent) {
    let said: String = event.message.chars().filter(|c| !c.is_ascii_digit()).collect();
    let key = (event.namespace.clone(), event.object.clone(), event.reason.clone(), said);
    match counted.get_mut(&key) {
        Some(known) => {
            known.count = known.count.saturating_add(event.count);
            known.first = known.first.into_iter().chain(event.first).min();
            if event.last > known.last {
                known.last = event.last;
                known.message.clone_from(&event.message);
            }
        }
        None => {
            counted.insert(key, event.clone());
        }
    }
}
