//! Evidence as the rules see it: whom it is about, since when, what it says, and how much it stands out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::calls;
use super::topology::{below, namesake};
use crate::domain::text::head;
use crate::domain::{
    ChangeKind, Evidence, Finding, KubeEvent, Level, LogPattern, PodStatus, SeriesShape, SeriesSummary, State,
    service_of,
};
use crate::reason::facts::{owner_of_pod, selector_label};
use crate::reason::signature::Place;
use crate::reason::words::quote;

/// Longer texts are stack traces, of which the first lines and the causes tell enough.
const MAX_TEXT_BYTES: usize = 2000;
const MAX_LINE_CHARS: usize = 300;
const MAX_SAMPLE_CHARS: usize = 800;
/// An anomaly of this score stands out in full.
const CLEAR_SCORE: f64 = 12.0;
/// Clocks, scrape intervals and rate windows blur times by this much.
pub(super) const BLUR: SignedDuration = SignedDuration::from_mins(3);

/// Labels that name the service in the selector of an expression.
const EXPR_LABELS: &[&str] =
    &["service", "app", "deployment", "service_name", "application", "container", "job", "workload"];

/// One piece of evidence.
pub(super) struct Observation<'a> {
    pub evidence: &'a Evidence,
    pub service: Option<String>,
    /// When it began.
    pub at: Option<Timestamp>,
    /// What patterns are matched against, in lower case.
    pub text: String,
    /// 0 to 1: how much it stands out of what is usual, and whether it came in time to be a cause.
    pub strength: f64,
}

/// What a state holds, seen from its symptom.
pub(super) struct View<'a> {
    pub state: &'a State,
    pub all: Vec<Observation<'a>>,
    /// When the symptom began.
    pub symptom_at: Option<Timestamp>,
    /// The alert's words, in lower case.
    pub alert: String,
    /// The services below each one that calls others.
    pub below: BTreeMap<String, BTreeSet<String>>,
    /// The services known to run on each host.
    hosted: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> View<'a> {
    pub fn of(state: &'a State) -> Self {
        let symptom_at = symptom_at(state);
        let all = state.evidence.iter().filter_map(|evidence| observe(evidence, state, symptom_at)).collect();
        let alert = state.alert().text().to_lowercase();
        let below = state.topology.keys().map(|caller| (caller.clone(), below(&state.topology, caller))).collect();
        Self { state, all, symptom_at, alert, below, hosted: hosted(state) }
    }
}

impl View<'_> {
    /// The service that its metrics rank first, for evidence that names none when the alert names none either.
    pub fn stands_out(&self) -> Option<&str> {
        self.all.iter().find_map(|one| match &one.evidence.data {
            Finding::RankedService(ranked) => Some(ranked.service.as_str()),
            _ => None,
        })
    }

    /// A node that is reported for its own conditions.
    pub fn is_bad_node(&self, name: &str) -> bool {
        self.all.iter().any(|one| match &one.evidence.data {
            Finding::Node(node) => node.name == name && (!node.ready || !node.conditions.is_empty()),
            _ => false,
        })
    }

    /// The service to which a cause at a host belongs: the alert's own when it runs there, else the only one known to
    /// log from it. What lies in hosts by its nature, or in a node that is bad itself, stays there.
    pub fn on_host(&self, host: &str, lies: Place) -> Option<String> {
        if lies == Place::Host || self.is_bad_node(host) {
            return None;
        }
        let Some(services) = self.hosted.get(host) else { return namesake(&self.state.topology, host) };
        let own = self.state.facts.service.as_ref().filter(|own| services.contains(*own));
        own.or_else(|| services.first().filter(|_| services.len() == 1)).cloned()
    }

    /// Whether `caller` depends on `callee`, directly or over others.
    pub fn depends(&self, caller: &str, callee: &str) -> bool {
        self.below.get(caller).is_some_and(|below| below.contains(callee))
    }
}

/// Which services run on which hosts, by the nodes of their pods and the instances that logged.
fn hosted(state: &State) -> BTreeMap<String, BTreeSet<String>> {
    let mut hosted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |host: &str, service: &str| {
        if host != service {
            hosted.entry(host.to_string()).or_default().insert(service.to_string());
        }
    };
    for evidence in &state.evidence {
        match &evidence.data {
            Finding::Pod(pod) => {
                let owner = pod.owner.clone().or_else(|| owner_of_pod(&pod.name));
                if let (Some(node), Some(owner)) = (&pod.node, owner) {
                    add(node, &owner);
                }
            }
            Finding::Pattern(pattern) => {
                let service = pattern.service.as_deref().unwrap_or_default();
                pattern.instances.keys().filter(|_| !service.is_empty()).for_each(|host| add(host, service));
            }
            _ => {}
        }
    }
    hosted
}

/// The onset of the alert's own series, or when it fired, whichever is earlier.
fn symptom_at(state: &State) -> Option<Timestamp> {
    let metric = state.facts.metric.as_deref();
    let own = state.invocations.iter().filter(|made| made.call.tool == calls::METRICS);
    let own = own.filter(|made| made.call.arguments["expr"].as_str() == metric);
    let onset = own
        .flat_map(|made| &made.evidence)
        .filter_map(|id| match &state.evidence(id)?.data {
            Finding::Series(series) if series.shape != SeriesShape::Flat => series.onset,
            _ => None,
        })
        .filter(|at| state.facts.window.contains(*at))
        .min();
    match (onset, state.facts.fired_at) {
        (Some(onset), Some(fired)) => Some(onset.min(fired)),
        (onset, fired) => onset.or(fired),
    }
}

fn observe<'a>(evidence: &'a Evidence, state: &State, symptom_at: Option<Timestamp>) -> Option<Observation<'a>> {
    let start = state.facts.window.start;
    let (service, at, text, strength) = match &evidence.data {
        Finding::Series(series) => (series_service(series), series.onset, series_text(series), series_strength(series)),
        Finding::Pattern(pattern) => {
            let text = format!(
                "{}\n{}\n{}",
                head(&pattern.template, MAX_LINE_CHARS),
                quote(&pattern.sample),
                head(&pattern.sample, MAX_SAMPLE_CHARS)
            );
            (pattern.service.clone(), pattern.first, text, pattern_strength(pattern, start))
        }
        Finding::Pod(pod) => {
            let at = pod.containers.iter().filter_map(|container| container.last_termination_at).max();
            (pod.owner.clone().or_else(|| owner_of_pod(&pod.name)), None, pod_text(pod), recent(at, start))
        }
        Finding::Event(event) => {
            let strength = if event.kind == "Normal" { 0.4 } else { 1.0 } * recent(event.last.or(event.first), start);
            (object_service(&event.object), event.first, event_text(event), strength)
        }
        Finding::Node(node) => {
            let ready = if node.ready { "Ready" } else { "NotReady" };
            let cordon = if node.unschedulable { " cordoned" } else { "" };
            (Some(node.name.clone()), None, format!("node {ready}{cordon} {}", node.conditions.join("; ")), 1.0)
        }
        Finding::Workload(workload) => {
            let missing = if workload.ready < workload.desired { " missing-instances" } else { "" };
            let scaled = if workload.desired == 0 { " scaled-to-zero" } else { "" };
            let text = format!(
                "workload {}{missing}{scaled} {}/{} {}",
                workload.name,
                workload.ready,
                workload.desired,
                workload.conditions.join("; ")
            );
            (Some(workload.name.clone()), None, text, 1.0)
        }
        Finding::Change(change) => (change.service.clone(), Some(change.time), change.summary.clone(), 1.0),
        Finding::Rollout(rollout) => {
            let text = format!("rollout {} -> {}", rollout.previous_images.join(","), rollout.images.join(","));
            (Some(rollout.workload.clone()), rollout.at, text, 1.0)
        }
        Finding::RankedService(ranked) => (Some(ranked.service.clone()), ranked.onset, String::new(), 1.0),
        _ => return None,
    };
    let mut text = text.to_lowercase();
    let end = (0..=MAX_TEXT_BYTES.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.truncate(end);
    let is_change = change_kind(&evidence.data).is_some();
    let strength = if is_change { strength } else { strength * timeliness(at, symptom_at) };
    Some(Observation { evidence, service, at, text, strength })
}

/// 1 for what began before the symptom or with it; less the later it came: a cause comes first.
fn timeliness(at: Option<Timestamp>, symptom_at: Option<Timestamp>) -> f64 {
    let (Some(at), Some(symptom)) = (at, symptom_at) else { return 1.0 };
    let late = at.duration_since(symptom).as_secs_f64() - BLUR.as_secs_f64();
    if late <= 0.0 { 1.0 } else { (1.0 - late / 1800.0).max(0.3) }
}

/// States that date from long before the time looked at prove little about it.
fn recent(at: Option<Timestamp>, start: Timestamp) -> f64 {
    if at.is_some_and(|at| at < start) { 0.15 } else { 1.0 }
}

fn pattern_strength(pattern: &LogPattern, start: Timestamp) -> f64 {
    let count = pattern.count as f64;
    let burst = match pattern.before {
        Some(before) => (0.25 + 0.375 * (count / (before as f64 + 1.0)).log2()).clamp(0.1, 1.0),
        // Nothing is known of the time before; what runs from the first minute on is rather usual.
        None if pattern.first.is_some_and(|first| first < start.checked_add(BLUR).unwrap_or(start)) => 0.6,
        None => 0.85,
    };
    let volume = (0.45 + 0.55 * (count + 1.0).log10()).min(1.0);
    let level = match pattern.level {
        Some(Level::Error | Level::Fatal) => 1.0,
        Some(Level::Warn) => 0.9,
        None => 0.85,
        Some(_) => 0.55,
    };
    burst * volume * level
}

/// The service of a series: what its labels name, else what its expression selects.
fn series_service(series: &SeriesSummary) -> Option<String> {
    service_of(&series.labels).or_else(|| selector_label(&series.expr, EXPR_LABELS))
}

fn series_text(series: &SeriesSummary) -> String {
    let labels: Vec<String> = series.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{} {}", series.expr, labels.join(" "))
}

fn series_strength(series: &SeriesSummary) -> f64 {
    match series.shape {
        SeriesShape::Flat => 0.0,
        SeriesShape::Absent | SeriesShape::Saturated => 1.0,
        _ if !series.score.is_finite() => relative_change(series),
        _ => (series.score.max(0.0).ln_1p() / CLEAR_SCORE.ln_1p()).clamp(0.2, 1.0) * relative_change(series),
    }
}

/// 1 for a series that at least doubled or fell to nothing; a quiet series may stand out by little that means nothing.
fn relative_change(series: &SeriesSummary) -> f64 {
    let change = (series.peak - series.baseline).abs() / series.baseline.abs().max(f64::MIN_POSITIVE);
    if change.is_finite() { change.clamp(0.3, 1.0) } else { 1.0 }
}

fn pod_text(pod: &PodStatus) -> String {
    let ready = if pod.ready { "ready" } else { "not-ready" };
    let mut text = format!("pod {} {} {ready} {}", pod.name, pod.phase, pod.conditions.join("; "));
    for container in &pod.containers {
        let restarted = if container.restarts > 0 { " restarted" } else { "" };
        text.push_str(&format!("\ncontainer {}{restarted} {}", container.name, container.state));
        for more in [&container.message, &container.last_termination].into_iter().flatten() {
            text.push_str(" | ");
            text.push_str(more);
        }
    }
    text
}

fn event_text(event: &KubeEvent) -> String {
    format!("event {} {} {} [{}]", event.kind, event.reason, event.message, event.object)
}

/// The service that an event's object belongs to: `Pod/order-6c9f7d5b84-4xkqp` is of `order`.
fn object_service(object: &str) -> Option<String> {
    let (kind, name) = object.split_once('/')?;
    match kind {
        "Pod" => owner_of_pod(name),
        // A replica set is named as its pods are, without their own suffix.
        "ReplicaSet" => owner_of_pod(&format!("{name}-xxxxx")),
        _ => Some(name.to_string()),
    }
}

/// Whether a finding is a change, and of which kind.
pub(super) fn change_kind(finding: &Finding) -> Option<ChangeKind> {
    match finding {
        Finding::Change(change) => Some(change.kind),
        Finding::Rollout(_) => Some(ChangeKind::Deploy),
        _ => None,
    }
}
