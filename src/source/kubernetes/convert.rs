//! Raw objects of the Kubernetes API → domain status types.
//!
//! In: [`RawObject`]s with whatever fields they have. Out: [`Workload`], [`PodStatus`], [`KubeEvent`], [`NodeStatus`]
//! and [`ReplicaSet`], every text cleaned and cut. What is absent becomes an empty text, zero or `None`.

use jiff::Timestamp;

use super::raw::{
    RawCondition, RawContainer, RawContainerStatus, RawObject, RawReference, RawState, RawStatus, RawStatusFields,
    RawTerminated,
};
use crate::domain::text::clean_line;
use crate::domain::{ContainerStatus, KubeEvent, NodeStatus, PodStatus, Workload};

/// Names, reasons and images are cut after this many characters (253 is the longest name that the API accepts).
pub const MAX_NAME_CHARS: usize = 300;
/// Messages of events, conditions and containers are cut after this many characters.
pub const MAX_MESSAGE_CHARS: usize = 600;

const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";

/// A replica set, of which rollouts are read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplicaSet {
    pub namespace: String,
    pub name: String,
    /// The deployment that owns it.
    pub deployment: Option<String>,
    pub revision: Option<String>,
    pub created: Option<Timestamp>,
    /// It served an earlier revision too: the deployment was rolled back to it, later than it was created.
    pub reused: bool,
    pub images: Vec<String>,
    pub desired: i64,
    pub ready: i64,
}

/// A name or another short text.
pub fn name_text(text: Option<&str>) -> String {
    clean_line(text.unwrap_or_default().trim(), MAX_NAME_CHARS)
}

fn message_text(text: Option<&str>) -> Option<String> {
    let text = clean_line(text?.trim(), MAX_MESSAGE_CHARS);
    (!text.is_empty()).then_some(text)
}

/// A time of the API; what is no time is absent.
pub fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.trim().parse().ok()
}

pub fn object_name(raw: &RawObject) -> String {
    name_text(raw.metadata.as_ref().and_then(|meta| meta.name.as_deref()))
}

pub fn object_namespace(raw: &RawObject) -> String {
    name_text(raw.metadata.as_ref().and_then(|meta| meta.namespace.as_deref()))
}

fn annotation<'a>(raw: &'a RawObject, key: &str) -> Option<&'a str> {
    raw.metadata.as_ref()?.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The first owner, which is the controller in practice.
pub fn owner(raw: &RawObject) -> Option<&RawReference> {
    raw.metadata.as_ref()?.owner_references.as_ref()?.first()
}

fn status(raw: &RawObject) -> Option<&RawStatusFields> {
    match raw.status.as_ref()? {
        RawStatus::Fields(fields) => Some(fields),
        RawStatus::Word(_) | RawStatus::Other(_) => None,
    }
}

fn template_images(raw: &RawObject) -> Vec<String> {
    let spec = raw.spec.as_ref().and_then(|spec| spec.template.as_ref()).and_then(|template| template.spec.as_ref());
    let containers = spec.and_then(|spec| spec.containers.as_deref()).unwrap_or_default();
    containers.iter().filter(|c| c.image.is_some()).map(|c| name_text(c.image.as_deref())).collect()
}

fn conditions(raw: &RawObject, is_bad: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let all = status(raw).and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    all.iter().filter_map(|condition| bad_condition(condition, &is_bad)).collect()
}

/// `Type=Status: Reason: message` of a condition that is not as it should be.
fn bad_condition(condition: &RawCondition, is_bad: impl Fn(&str, &str) -> bool) -> Option<String> {
    let (kind, status) = (condition.kind.as_deref()?, condition.status.as_deref()?);
    if !is_bad(kind, status) {
        return None;
    }
    let mut text = format!("{kind}={status}");
    // The message of an unavailable workload only repeats its reason.
    let message = condition.message.as_deref().filter(|_| kind != "Available");
    for part in [condition.reason.as_deref(), message].into_iter().flatten().filter(|part| !part.trim().is_empty()) {
        text.push_str(": ");
        text.push_str(part.trim());
    }
    Some(clean_line(&text, MAX_MESSAGE_CHARS))
}

/// A deployment, stateful set, daemon set, replica set or job.
pub fn workload(raw: &RawObject, kind: &str) -> Workload {
    let empty = RawStatusFields::default();
    let status = status(raw).unwrap_or(&empty);
    let spec = raw.spec.as_ref();
    let counts = |replicas: Option<i64>| replicas.unwrap_or(0);
    let (desired, ready, updated, available) = match kind {
        "DaemonSet" => (
            counts(status.desired_number_scheduled),
            counts(status.number_ready),
            counts(status.updated_number_scheduled),
            counts(status.number_available),
        ),
        "Job" => {
            // A job wants its completions; what succeeded is as ready as it gets.
            let desired = spec.and_then(|spec| spec.completions.or(spec.parallelism)).unwrap_or(1);
            let done = counts(status.succeeded);
            (desired, done, done + counts(status.active), done)
        }
        // An absent `replicas` means 1 to the API; replica sets have no count of updated ones, theirs are all alike.
        "ReplicaSet" => {
            let ready = counts(status.ready_replicas);
            let desired = spec.and_then(|spec| spec.replicas).unwrap_or(1);
            (desired, ready, desired, counts(status.available_replicas))
        }
        _ => (
            spec.and_then(|spec| spec.replicas).unwrap_or(1),
            counts(status.ready_replicas),
            counts(status.updated_replicas),
            counts(status.available_replicas.or(status.ready_replicas)),
        ),
    };
    Workload {
        kind: kind.to_owned(),
        namespace: object_namespace(raw),
        name: object_name(raw),
        desired,
        ready,
        updated,
        available,
        conditions: conditions(raw, workload_condition_is_bad),
        images: template_images(raw),
        revision: annotation(raw, REVISION).map(|text| name_text(Some(text))),
    }
}

fn workload_condition_is_bad(kind: &str, status: &str) -> bool {
    match kind {
        "Available" | "Progressing" => status != "True",
        "ReplicaFailure" | "Failed" | "FailureTarget" | "Suspended" => status == "True",
        _ => false,
    }
}

/// When the deployment last made progress: the time of a rollback, which no replica set records.
pub fn progressed_at(raw: &RawObject) -> Option<Timestamp> {
    let conditions = status(raw)?.conditions.as_deref()?;
    let progressing = conditions.iter().find(|condition| condition.kind.as_deref() == Some("Progressing"))?;
    time(progressing.last_update_time.as_deref())
}

pub fn replica_set(raw: &RawObject) -> ReplicaSet {
    let owner = owner(raw).filter(|owner| owner.kind.as_deref().is_none_or(|kind| kind == "Deployment"));
    ReplicaSet {
        namespace: object_namespace(raw),
        name: object_name(raw),
        deployment: owner.map(|owner| name_text(owner.name.as_deref())),
        revision: annotation(raw, REVISION).map(|text| name_text(Some(text))),
        created: time(raw.metadata.as_ref().and_then(|meta| meta.creation_timestamp.as_deref())),
        reused: annotation(raw, REVISION_HISTORY).is_some(),
        images: template_images(raw),
        desired: raw.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
        ready: status(raw).and_then(|status| status.ready_replicas).unwrap_or(0),
    }
}

pub fn pod(raw: &RawObject) -> PodStatus {
    let empty = RawStatusFields::default();
    let status = status(raw).unwrap_or(&empty);
    let spec = raw.spec.as_ref();
    let phase = name_text(status.phase.as_deref());
    let finished = phase == "Succeeded";
    let mut bad = conditions(raw, |kind, status| !finished && pod_condition_is_bad(kind, status));
    // An evicted pod says so beside its conditions.
    if let Some(reason) = message_text(status.reason.as_deref()) {
        let message = message_text(status.message.as_deref()).map(|text| format!(": {text}")).unwrap_or_default();
        bad.insert(0, clean_line(&format!("{reason}{message}"), MAX_MESSAGE_CHARS));
    }
    let specified = spec.and_then(|spec| spec.containers.as_deref()).unwrap_or_default();
    let init_specified = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let init_running = status.init_container_statuses.as_deref().unwrap_or_default().iter().filter(|s| !is_done(s));
    let mut containers: Vec<_> = init_running.map(|s| container(s, init_specified)).collect();
    containers.extend(status.container_statuses.iter().flatten().map(|s| container(s, specified)));
    let ready = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.kind.as_deref() == Some("Ready") && condition.status.as_deref() == Some("True"));
    PodStatus {
        namespace: object_namespace(raw),
        name: object_name(raw),
        node: spec.and_then(|spec| spec.node_name.as_deref()).map(|node| name_text(Some(node))),
        owner: owner(raw).and_then(|owner| owner_name(raw, owner)),
        phase,
        ready,
        conditions: bad,
        started_at: time(status.start_time.as_deref()),
        containers,
    }
}

fn pod_condition_is_bad(kind: &str, status: &str) -> bool {
    match kind {
        "DisruptionTarget" => status == "True",
        // Readiness gates have names of their own; like the built-in conditions they are bad when they do not hold.
        _ => status != "True",
    }
}

/// The workload behind a pod's owner: a replica set's name without the hash of its template.
fn owner_name(raw: &RawObject, owner: &RawReference) -> Option<String> {
    let name = owner.name.as_deref()?;
    if owner.kind.as_deref() != Some("ReplicaSet") {
        return Some(name_text(Some(name)));
    }
    let labels = raw.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    let hash = labels.and_then(|labels| labels.get("pod-template-hash"));
    let cut = hash.and_then(|hash| name.strip_suffix(hash.as_str())).and_then(|name| name.strip_suffix('-'));
    let cut = cut.or_else(|| name.rsplit_once('-').map(|(workload, _)| workload));
    Some(name_text(Some(cut.unwrap_or(name))))
}

/// Whether an init container has done its part and is of no interest.
fn is_done(status: &RawContainerStatus) -> bool {
    let terminated = status.state.as_ref().and_then(|state| state.terminated.as_ref());
    terminated.is_some_and(|terminated| terminated.exit_code == Some(0))
}

fn container(raw: &RawContainerStatus, specified: &[RawContainer]) -> ContainerStatus {
    let (state, message) = state(raw.state.as_ref());
    let last = raw.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let spec = specified.iter().find(|spec| spec.name == raw.name);
    ContainerStatus {
        name: name_text(raw.name.as_deref()),
        image: name_text(raw.image.as_deref()),
        ready: raw.ready.unwrap_or(false),
        restarts: raw.restart_count.unwrap_or(0),
        state,
        message,
        last_termination: last.map(termination),
        last_termination_at: last.and_then(|terminated| time(terminated.finished_at.as_deref())),
        limits: spec.and_then(limits),
    }
}

fn state(raw: Option<&RawState>) -> (String, Option<String>) {
    let Some(raw) = raw else {
        return ("unknown".to_owned(), None);
    };
    if let Some(waiting) = &raw.waiting {
        let reason = name_text(waiting.reason.as_deref());
        let text = if reason.is_empty() { "waiting".to_owned() } else { format!("waiting: {reason}") };
        return (text, message_text(waiting.message.as_deref()));
    }
    if let Some(terminated) = &raw.terminated {
        return (format!("terminated: {}", termination(terminated)), message_text(terminated.message.as_deref()));
    }
    let text = if raw.running.is_some() { "running" } else { "unknown" };
    (text.to_owned(), None)
}

/// `OOMKilled (exit 137)`.
fn termination(raw: &RawTerminated) -> String {
    let reason = match name_text(raw.reason.as_deref()) {
        reason if reason.is_empty() => "terminated".to_owned(),
        reason => reason,
    };
    match (raw.exit_code, raw.signal.filter(|signal| *signal != 0)) {
        (Some(code), Some(signal)) => format!("{reason} (exit {code}, signal {signal})"),
        (Some(code), None) => format!("{reason} (exit {code})"),
        (None, Some(signal)) => format!("{reason} (signal {signal})"),
        (None, None) => reason,
    }
}

/// `cpu=500m, memory=512Mi`.
fn limits(container: &RawContainer) -> Option<String> {
    let limits = container.resources.as_ref()?.limits.as_ref()?;
    let parts: Vec<_> = limits
        .iter()
        .map(|(resource, quantity)| match quantity.as_str() {
            Some(text) => format!("{resource}={text}"),
            None => format!("{resource}={quantity}"),
        })
        .collect();
    (!parts.is_empty()).then(|| clean_line(&parts.join(", "), MAX_NAME_CHARS))
}

pub fn node(raw: &RawObject) -> NodeStatus {
    let all = status(raw).and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    // A node that does not say is not called unready: a truncated document must not look like an outage.
    let ready = !all.iter().any(|c| c.kind.as_deref() == Some("Ready") && c.status.as_deref() != Some("True"));
    NodeStatus {
        name: object_name(raw),
        ready,
        conditions: conditions(raw, node_condition_is_bad),
        unschedulable: raw.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false),
    }
}

fn node_condition_is_bad(kind: &str, status: &str) -> bool {
    match kind {
        "Ready" => status != "True",
        "MemoryPressure" | "DiskPressure" | "PIDPressure" | "NetworkUnavailable" => status != "False",
        // Conditions of a problem detector (`KernelDeadlock`) are named for the trouble.
        _ => status == "True",
    }
}

/// An event of core/v1 or events.k8s.io/v1.
pub fn event(raw: &RawObject) -> KubeEvent {
    let object = raw.involved_object.as_ref().or(raw.regarding.as_ref());
    let object_kind = object.and_then(|object| object.kind.as_deref()).unwrap_or("Object");
    let object_name = object.and_then(|object| object.name.as_deref()).unwrap_or_default();
    let namespace = object.and_then(|object| object.namespace.as_deref());
    let series = raw.series.as_ref();
    let event_time = time(raw.event_time.as_deref());
    let created = time(raw.metadata.as_ref().and_then(|meta| meta.creation_timestamp.as_deref()));
    let first = time(raw.first_timestamp.as_deref())
        .or_else(|| time(raw.deprecated_first_timestamp.as_deref()))
        .or(event_time)
        .or(created);
    let last = series
        .and_then(|series| time(series.last_observed_time.as_deref()))
        .or_else(|| time(raw.last_timestamp.as_deref()))
        .or_else(|| time(raw.deprecated_last_timestamp.as_deref()))
        .or(first);
    let count = series.and_then(|series| series.count).or(raw.count).or(raw.deprecated_count);
    KubeEvent {
        object: format!("{}/{}", name_text(Some(object_kind)), name_text(Some(object_name))),
        namespace: namespace.map_or_else(|| object_namespace(raw), |namespace| name_text(Some(namespace))),
        kind: name_text(raw.event_type.as_deref()),
        reason: name_text(raw.reason.as_deref()),
        message: message_text(raw.message.as_deref().or(raw.note.as_deref())).unwrap_or_default(),
        count: count.unwrap_or(1).max(1),
        first,
        last,
    }
}
