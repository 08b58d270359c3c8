//! Candidates, each a kind of cause at a service, weighed by log odds: evidence for in independent groups, evidence
//! against, how the service stands to the one that alerts, and which candidate is merely a consequence of another.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::absence;
use super::matching::{Match, contradictions, matches};
use super::observe::{BLUR, View};
use super::topology::{Relation, relation};
use crate::domain::{Category, Finding, Matched};
use crate::reason::signature::{self, Absence, Against, Place, Signature};

/// Several wordings of one message are one piece of evidence: after the first, each in a group counts this much less.
const DIMINISHING: [f64; 4] = [1.0, 0.35, 0.15, 0.05];
/// An alert of a kind that the cause usually raises.
const SYMPTOM_BONUS: f64 = 0.5;
/// The alert's own words point to the cause.
const ALERT_BONUS: f64 = 1.0;
/// What a consequence loses against the cause that explains it.
const EXPLAINED_PENALTY: f64 = 2.5;
/// What the same alert, or one like it, turned out to be before. It tips the scales where the evidence is even, and is
/// none itself.
const KNOWN_BEFORE: f64 = 0.5;
const ALIKE_BEFORE: f64 = 0.25;
const WRONG_BEFORE: f64 = 0.7;
/// Under this a candidate explains nothing, nor does one that is this much less credible than its consequence.
const LEAST_CREDIBLE: f64 = -0.5;
const STRONGER_EFFECT: f64 = 2.5;
/// A cause that explains others is the better for it, each by this much, twice at most.
const EXPLAINS_BONUS: f64 = 0.3;

/// Something that speaks against a candidate.
pub(super) struct Objection {
    pub against: &'static Against,
    pub ids: Vec<String>,
}

/// A possible cause.
pub(super) struct Candidate {
    pub signature: &'static Signature,
    pub service: Option<String>,
    /// Log odds.
    pub score: f64,
    /// Independent groups of evidence that speak for it.
    pub groups: usize,
    /// Whether a log message or a state of a workload is among it, rather than figures and times alone.
    pub has_telling: bool,
    /// Strongest first.
    pub evidence_for: Vec<String>,
    pub objections: Vec<Objection>,
    pub onset: Option<Timestamp>,
    /// The cause that explains it, as an index into the ranking.
    pub explained_by: Option<(Category, Option<String>)>,
}

impl Candidate {
    pub fn category(&self) -> Category {
        self.signature.category
    }

    pub fn probability(&self) -> f64 {
        1.0 / (1.0 + (-self.score).exp())
    }

    pub fn evidence_against(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.objections.iter().flat_map(|objection| &objection.ids).cloned().collect();
        ids.dedup();
        ids
    }
}

/// All candidates that any evidence speaks for, best first.
pub(super) fn rank(view: &View<'_>) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> =
        signature::all().iter().flat_map(|signature| of_signature(view, signature)).collect();
    explain(view, &mut candidates);
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.category().cmp(&b.category())));
    candidates
}

fn of_signature(view: &View<'_>, signature: &'static Signature) -> Vec<Candidate> {
    let mut by_service: BTreeMap<String, Vec<Match<'_, '_>>> = BTreeMap::new();
    let mut all = matches(view, signature);
    if let Some(teller) = teller(&all) {
        all.iter_mut().filter(|one| !one.is_placed).for_each(|one| one.service.clone_from(&teller));
    }
    for found in all {
        by_service.entry(found.service.clone()).or_default().push(found);
    }
    by_service.into_iter().map(|(service, found)| candidate(view, signature, service, found)).collect()
}

/// Who holds what names no service: the one that tells of the same in its own words, where the one that stands out has
/// nothing of its own to say of it.
fn teller(found: &[Match<'_, '_>]) -> Option<String> {
    let stands_out = &found.iter().find(|one| !one.is_placed)?.service;
    let placed = found.iter().filter(|one| one.is_placed);
    if placed.clone().any(|one| one.service == *stands_out) {
        return None;
    }
    let telling = placed.filter(|one| is_telling(&one.observation.evidence.data));
    telling.max_by(|a, b| a.weight.total_cmp(&b.weight)).map(|one| one.service.clone())
}

fn candidate(
    view: &View<'_>,
    signature: &'static Signature,
    service: String,
    mut found: Vec<Match<'_, '_>>,
) -> Candidate {
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    let mut support = 0.0;
    for one in &found {
        let nth = groups.entry(one.group).or_default();
        support += one.weight * DIMINISHING.get(*nth).copied().unwrap_or(0.0);
        *nth += 1;
    }
    let mut seen = BTreeSet::new();
    let evidence_for: Vec<String> =
        found.iter().map(|one| one.observation.evidence.id.clone()).filter(|id| seen.insert(id.clone())).collect();
    let objections = objections(view, signature, &service, &evidence_for);
    let lost: f64 = objections.iter().map(|objection| objection.against.weight).sum();
    let score = signature.prior + support - lost
        + of_alert(view, signature)
        + of_place(view, &service)
        + of_rank(view, &service)
        + of_history(view, signature.category, &service);
    Candidate {
        signature,
        score,
        groups: groups.len(),
        has_telling: found.iter().any(|one| one.weight > 0.5 && is_telling(&one.observation.evidence.data)),
        evidence_for,
        objections,
        onset: found.iter().filter(|one| one.weight > 0.5).filter_map(|one| one.observation.at).min(),
        explained_by: None,
        service: Some(service),
    }
}

fn is_telling(finding: &Finding) -> bool {
    matches!(finding, Finding::Pattern(_) | Finding::Pod(_) | Finding::Event(_) | Finding::Node(_))
}

/// What speaks against a cause at a service. Evidence for it is never turned against it.
pub(super) fn objections(
    view: &View<'_>,
    signature: &'static Signature,
    service: &str,
    evidence_for: &[String],
) -> Vec<Objection> {
    let is_log = |id: &String| view.state.evidence(id).is_some_and(|one| matches!(one.data, Finding::Pattern(_)));
    let has_logs = evidence_for.iter().any(is_log);
    let is_other = |id: &String| !evidence_for.contains(id);
    let mut objections = Vec::new();
    for against in &signature.against {
        let shown = match against.when {
            Some(Absence::NoLog) if has_logs => None,
            Some(when) => absence::shown(view, when, service),
            None => None,
        };
        // An empty list is silence that speaks; a list of nothing but evidence for the cause is no objection.
        let shown = shown.filter(|ids| ids.is_empty() || ids.iter().any(is_other));
        let found = contradictions(view, against, service);
        let found = found.iter().map(|observation| observation.evidence.id.clone()).filter(is_other).take(3);
        let found: Vec<String> = found.collect();
        match shown {
            Some(ids) => objections.push(Objection { against, ids }),
            None if !found.is_empty() => objections.push(Objection { against, ids: found }),
            None => {}
        }
    }
    objections
}

fn of_alert(view: &View<'_>, signature: &Signature) -> f64 {
    let kind = if signature.symptoms.contains(&view.state.facts.symptom) { SYMPTOM_BONUS } else { 0.0 };
    let words = signature.alert.as_ref().is_some_and(|words| words.is_match(&view.alert));
    kind + if words { ALERT_BONUS } else { 0.0 }
}

/// A cause lies in the alerting service or below it. What cannot be reached from it is most likely something else.
fn of_place(view: &View<'_>, service: &str) -> f64 {
    match relation(view.state, service) {
        Relation::Itself => 0.4,
        Relation::Below => 0.2,
        Relation::Unknown => 0.0,
        Relation::Above => -1.2,
        Relation::Apart => -2.2,
    }
}

/// How the metrics rank the service among the others.
fn of_rank(view: &View<'_>, service: &str) -> f64 {
    let mut ranked = view.all.iter().filter_map(|one| match &one.evidence.data {
        Finding::RankedService(ranked) => Some(ranked.service.as_str()),
        _ => None,
    });
    match ranked.position(|name| name == service) {
        Some(0) => 0.5,
        Some(1 | 2) => 0.25,
        _ => 0.0,
    }
}

/// What people said about earlier diagnoses of this alert.
fn of_history(view: &View<'_>, category: Category, service: &str) -> f64 {
    let precedents = view.state.history.iter().flat_map(|history| &history.precedents);
    let here = precedents.filter(|one| one.cause_service.as_deref().is_none_or(|at| at == service));
    let (mut known, mut wrong) = (0.0_f64, 0.0_f64);
    for one in here {
        if one.is_known() && one.category == Some(category) {
            known = known.max(if one.matched == Matched::Fingerprint { KNOWN_BEFORE } else { ALIKE_BEFORE });
        }
        if one.matched == Matched::Fingerprint && one.refuted == Some(category) {
            wrong = WRONG_BEFORE;
        }
    }
    known - wrong
}

/// Finds consequences: a candidate that an earlier or simultaneous one explains ranks behind it.
fn explain(view: &View<'_>, candidates: &mut [Candidate]) {
    let before: Vec<f64> = candidates.iter().map(|one| one.score).collect();
    let causes = causes(view, candidates, &before);
    yield_to_mechanisms(candidates, &before);
    for (effect, cause) in causes.iter().enumerate().filter_map(|(effect, cause)| Some((effect, (*cause)?))) {
        candidates[effect].explained_by = Some((candidates[cause].category(), candidates[cause].service.clone()));
        let probability = 1.0 / (1.0 + (-before[cause]).exp());
        candidates[effect].score = (before[effect] - EXPLAINED_PENALTY * probability).min(before[cause] - 0.5);
    }
    for (effect, cause) in causes.iter().enumerate().filter_map(|(effect, cause)| Some((effect, (*cause)?))) {
        // What shows the same cause at another place shows it here.
        if candidates[effect].category() == candidates[cause].category() {
            candidates[cause].score = candidates[cause].score.max(before[effect]);
        }
    }
    for (cause, candidate) in candidates.iter_mut().enumerate().filter(|(_, one)| one.explained_by.is_none()) {
        let effects = causes.iter().zip(&before).filter(|(by, score)| **by == Some(cause) && **score > -1.0).count();
        candidate.score += EXPLAINS_BONUS * effects.min(2) as f64;
    }
}

/// A change that is known by its time alone is what set off a mechanism, where one shows itself in logs or status: the
/// mechanism is the cause to name, and the change stays a line below it.
fn yield_to_mechanisms(candidates: &mut [Candidate], before: &[f64]) {
    let mechanism = candidates
        .iter()
        .zip(before)
        .filter(|(one, _)| one.has_telling && !is_trigger(one))
        .map(|(_, score)| *score)
        .fold(f64::NEG_INFINITY, f64::max);
    if mechanism > LEAST_CREDIBLE {
        for one in candidates.iter_mut().filter(|one| is_trigger(one)) {
            one.score = one.score.min(mechanism - 0.7);
        }
    }
}

/// A change with nothing but its time, and symptoms of any kind, for it.
fn is_trigger(candidate: &Candidate) -> bool {
    matches!(candidate.category(), Category::BadDeployment | Category::ConfigError) && !candidate.has_telling
}

/// The cause of each candidate that is a consequence. The most credible cause takes its consequences first, and
/// nothing becomes, over others, the cause of itself.
fn causes(view: &View<'_>, candidates: &[Candidate], before: &[f64]) -> Vec<Option<usize>> {
    let mut by_credibility: Vec<usize> = (0..candidates.len()).filter(|&one| before[one] > LEAST_CREDIBLE).collect();
    by_credibility.sort_by(|&a, &b| before[b].total_cmp(&before[a]));
    let mut causes: Vec<Option<usize>> = vec![None; candidates.len()];
    for &cause in &by_credibility {
        for effect in 0..candidates.len() {
            let is_free = effect != cause && causes[effect].is_none();
            let is_set_off = is_trigger(&candidates[cause]) && candidates[effect].has_telling;
            if is_free
                && !is_set_off
                && before[effect] - before[cause] <= STRONGER_EFFECT
                && !leads_to(&causes, cause, effect)
                && is_cause_of(view, &candidates[cause], &candidates[effect])
            {
                causes[effect] = Some(cause);
            }
        }
    }
    causes
}

/// Whether `from` is, over its causes, a consequence of `to`.
fn leads_to(causes: &[Option<usize>], from: usize, to: usize) -> bool {
    std::iter::successors(Some(from), |&one| causes[one]).any(|one| one == to)
}

fn is_cause_of(view: &View<'_>, cause: &Candidate, effect: &Candidate) -> bool {
    // The cheap test first: this runs for every pair.
    if cause.category() != effect.category() && !cause.signature.explains.contains(&effect.category()) {
        return false;
    }
    let in_time = match (cause.onset, effect.onset) {
        (Some(cause), Some(effect)) => cause.duration_since(effect) <= BLUR,
        _ => true,
    };
    if !in_time {
        return false;
    }
    let (Some(at), Some(seen)) = (cause.service.as_deref(), effect.service.as_deref()) else { return false };
    let is_below = view.depends(seen, at);
    let is_above = view.depends(at, seen);
    // A host or a shared piece of infrastructure is in no topology: it may be below anything.
    let is_outside = |name: &str| !super::topology::names(&view.state.topology).contains(name);
    if cause.category() == effect.category() {
        return match cause.signature.lies {
            Place::Callee if is_outside(seen) && !view.is_bad_node(seen) => !is_outside(at),
            Place::Callee => is_below || (at != seen && view.is_bad_node(at)),
            // Of a chain of callers only the one next to the server that refuses.
            Place::Caller => is_above && !view.below.contains_key(seen),
            Place::Host => is_below || (is_outside(at) && !is_outside(seen)),
        };
    }
    let is_outside = is_outside(at);
    cause.signature.explains.contains(&effect.category()) && (at == seen || is_below || is_outside || is_above)
}
