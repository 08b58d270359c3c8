//! All objects that were read, each once, by kind.
//!
//! In: documents, one after another, in any order and any mix. Out: an [`Inventory`] that can be asked. An object that
//! comes again (a watch, two files) replaces the earlier one; events of the same object, reason and message are counted
//! together when asked.

use std::collections::BTreeMap;
use std::io::Read;

use jiff::Timestamp;

use super::convert::{self, ReplicaSet};
use super::document;
use super::raw::{RawItem, RawObject, RawStatus};
use crate::domain::text::clean_line;
use crate::domain::{KubeEvent, NodeStatus, PodStatus, Workload};

/// Objects kept in all, so that a dump of a whole cluster cannot fill the memory.
pub const MAX_OBJECTS: usize = 100_000;
/// Notes kept about what could not be read.
const MAX_NOTES: usize = 50;
/// A note is cut after this many characters.
const MAX_NOTE_CHARS: usize = 400;
/// Labels that name the service of an object.
const SERVICE_LABELS: [&str; 5] = ["app", "app.kubernetes.io/name", "k8s-app", "service", "app.kubernetes.io/instance"];

/// Namespace and name.
pub type ObjectKey = (String, String);

/// An object with what says whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<T> {
    pub value: T,
    /// Values of the labels that name a service.
    pub services: Vec<String>,
    /// Name of the owner as written.
    pub owner: Option<String>,
}

/// Everything known, by kind and name.
#[derive(Debug, Default)]
pub struct Inventory {
    /// By kind, namespace and name.
    pub workloads: BTreeMap<(String, ObjectKey), Entry<Workload>>,
    pub pods: BTreeMap<ObjectKey, Entry<PodStatus>>,
    pub replica_sets: BTreeMap<ObjectKey, Entry<ReplicaSet>>,
    /// When each deployment last made progress.
    pub progressed: BTreeMap<ObjectKey, Timestamp>,
    pub nodes: BTreeMap<String, NodeStatus>,
    /// By the event's own namespace and name.
    pub events: BTreeMap<ObjectKey, KubeEvent>,
    /// What could not be read and why.
    pub notes: Vec<String>,
    /// Kinds that were read, if only as an empty list.
    pub kinds: std::collections::BTreeSet<String>,
    anonymous: usize,
    is_full: bool,
}

impl Inventory {
    /// Reads all documents of one file; `place` names it in notes. What stands before broken JSON is kept.
    pub fn read(&mut self, place: &str, reader: impl Read) {
        if let Err(error) = document::read(self, place, reader) {
            self.note(format!("{place}: {error}; what stands before it was read"));
        }
    }

    /// Adds the items of a list, which do not say their kind themselves.
    pub fn add_list(&mut self, place: &str, kind: &str, items: Vec<RawItem>) {
        self.kinds.insert(kind.to_owned());
        items.into_iter().for_each(|item| self.add_item(place, item, Some(kind), Change::Present));
    }

    /// Says something about what was read, once, cleaned and up to a limit.
    pub fn note(&mut self, text: String) {
        let text = clean_line(&text, MAX_NOTE_CHARS);
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    fn len(&self) -> usize {
        self.workloads.len() + self.pods.len() + self.replica_sets.len() + self.nodes.len() + self.events.len()
    }

    /// Adds an object, or notes why it cannot be.
    pub(super) fn add_item(&mut self, place: &str, item: RawItem, list_kind: Option<&str>, change: Change) {
        match item.0 {
            Ok(object) => self.add_object(place, &object, list_kind, change),
            Err(error) => self.note(format!("{place}: an object was left out: {error}")),
        }
    }

    fn add_object(&mut self, place: &str, raw: &RawObject, list_kind: Option<&str>, change: Change) {
        let Some(kind) = raw.kind.as_deref().or(list_kind).or_else(|| kind_by_shape(raw)) else {
            return self.note(format!("{place}: an object without a kind was left out"));
        };
        if kind == "Status" {
            return self.note(api_error(place, raw));
        }
        self.kinds.insert(kind.to_owned());
        if change == Change::Present && self.len() >= MAX_OBJECTS {
            if !self.is_full {
                self.is_full = true;
                self.note(format!("{place}: more than {MAX_OBJECTS} objects; the rest was left out"));
            }
            return;
        }
        let key = (convert::object_namespace(raw), convert::object_name(raw));
        match (kind, change) {
            ("Pod", Change::Present) => drop(self.pods.insert(key, entry(raw, convert::pod(raw)))),
            ("Pod", Change::Gone) => drop(self.pods.remove(&key)),
            ("Event", Change::Present) => self.add_event(key, raw),
            // An object without a name is a torn one.
            ("Node", Change::Present) if key.1.is_empty() => {
                self.note(format!("{place}: a node without a name was left out"))
            }
            ("Node", Change::Present) => drop(self.nodes.insert(key.1, convert::node(raw))),
            ("Node", Change::Gone) => drop(self.nodes.remove(&key.1)),
            ("ReplicaSet", Change::Present) => self.add_replica_set(key, raw),
            ("ReplicaSet", Change::Gone) => drop(self.replica_sets.remove(&key)),
            ("Deployment" | "StatefulSet" | "DaemonSet" | "Job", Change::Present) => {
                if let Some(at) = convert::progressed_at(raw) {
                    self.progressed.insert(key.clone(), at);
                }
                self.workloads.insert((kind.to_owned(), key), entry(raw, convert::workload(raw, kind)));
            }
            ("Deployment" | "StatefulSet" | "DaemonSet" | "Job", Change::Gone) => {
                self.workloads.remove(&(kind.to_owned(), key));
            }
            // An event that expired has happened all the same; other kinds say nothing about the state of workloads.
            _ => {}
        }
    }

    fn add_event(&mut self, mut key: ObjectKey, raw: &RawObject) {
        if key.1.is_empty() {
            self.anonymous += 1;
            key.1 = format!("#{}", self.anonymous);
        }
        self.events.insert(key, convert::event(raw));
    }

    fn add_replica_set(&mut self, key: ObjectKey, raw: &RawObject) {
        let set = convert::replica_set(raw);
        if set.deployment.is_none() {
            let workload = convert::workload(raw, "ReplicaSet");
            self.workloads.insert(("ReplicaSet".to_owned(), key.clone()), entry(raw, workload));
        }
        self.replica_sets.insert(key, entry(raw, set));
    }
}

/// What a document says of its object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    Present,
    Gone,
}

fn entry<T>(raw: &RawObject, value: T) -> Entry<T> {
    let labels = raw.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    let services = SERVICE_LABELS
        .iter()
        .filter_map(|name| labels?.get(*name))
        .map(|value| convert::name_text(Some(value)))
        .filter(|value| !value.is_empty())
        .collect();
    let owner = convert::owner(raw).map(|owner| convert::name_text(owner.name.as_deref()));
    Entry { value, services, owner }
}

/// The kind of an object that does not say it (an item of a list that was taken apart).
fn kind_by_shape(raw: &RawObject) -> Option<&'static str> {
    if raw.involved_object.is_some() || raw.regarding.is_some() {
        return Some("Event");
    }
    if let Some(RawStatus::Fields(status)) = &raw.status
        && (status.phase.is_some() || status.container_statuses.is_some())
    {
        return Some("Pod");
    }
    let owned_by_deployment = convert::owner(raw).is_some_and(|owner| owner.kind.as_deref() == Some("Deployment"));
    let has_template = raw.spec.as_ref().is_some_and(|spec| spec.template.is_some());
    match (has_template, owned_by_deployment) {
        (true, true) => Some("ReplicaSet"),
        (true, false) => Some("Deployment"),
        (false, _) => None,
    }
}

/// An error of the API that stands where a list was expected.
fn api_error(place: &str, raw: &RawObject) -> String {
    let reason = raw.reason.as_deref().unwrap_or("failure").to_lowercase();
    let what = raw.details.as_ref().and_then(|details| details.kind.as_deref()).unwrap_or("the answer");
    let message = raw.message.as_deref().unwrap_or("no message");
    format!("{place}: {what}: {reason}: {message}")
}
