//! From weighed candidates to ranked hypotheses with calibrated confidence: what is supported, what is possible, and
//! what people would think of first but the evidence refutes.

use std::collections::BTreeSet;

use super::coverage::Coverage;
use super::observe::View;
use super::score::{Candidate, objections};
use crate::domain::{Category, EvidenceKind, Finding, RankedService, Symptom, Verdict};
use crate::reason::signature;

/// No evidence makes a cause certain.
const MAX_CONFIDENCE: f64 = 0.96;
/// From here on a hypothesis is called the cause.
pub(super) const SUPPORTED: f64 = 0.5;
/// Under this a candidate is not worth a line, unless something refutes it.
const WORTH_A_LINE: f64 = 0.08;
/// Objections of this weight refute what has little for it.
const REFUTING: f64 = 2.0;
/// No other hypothesis is more than this share as likely as the first.
const BEHIND_THE_FIRST: f64 = 0.95;
const MAX_HYPOTHESES: usize = 7;
const MAX_REFUTED: usize = 4;
const MAX_SERVICES: usize = 5;
/// Shares of confidence for services that only their metrics point to.
const RANKED_CONFIDENCE: f64 = 0.45;

/// A hypothesis before it is put into words.
pub(super) struct Ranked {
    pub category: Category,
    pub service: Option<String>,
    pub confidence: f64,
    pub verdict: Verdict,
    pub evidence_for: Vec<String>,
    pub evidence_against: Vec<String>,
    /// Texts of the objections, with the ids that show them.
    pub against: Vec<(&'static signature::Bilingual, Vec<String>)>,
    pub explained_by: Option<(Category, Option<String>)>,
    /// What the ranking of services says, where nothing else does.
    pub reason: Option<String>,
}

/// All hypotheses, best first.
pub(super) fn hypotheses(view: &View<'_>, candidates: &[Candidate], coverage: &Coverage) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let one = weigh(candidates, index, coverage);
        let is_known = ranked.iter().any(|known| known.category == one.category && known.service == one.service);
        let is_refuted = one.verdict == Verdict::Refuted && !one.against.is_empty();
        if !is_known && (candidate.probability() >= WORTH_A_LINE || is_refuted) {
            ranked.push(one);
        }
    }
    let has_cause = ranked.iter().any(|one| one.verdict == Verdict::Supported);
    ranked.extend(by_metrics(view, &ranked, has_cause));
    ranked.extend(thought_of_first(view, &ranked));
    if only_metrics(view) {
        order_by_metrics(view, &mut ranked);
    }
    ranked.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    shorten(ranked)
}

/// Whether nothing but metrics was found: then what a service measures, not what is known of it, is all there is.
fn only_metrics(view: &View<'_>) -> bool {
    view.all.iter().all(|one| {
        matches!(one.evidence.kind, EvidenceKind::Metric | EvidenceKind::Knowledge)
            || matches!(one.evidence.data, Finding::Nothing { .. })
    })
}

/// Puts the services of hypotheses into the order of the metrics' ranking, which weighs all series and who calls whom,
/// where a signature sees a few series of one service. The confidences stay; the services change places.
fn order_by_metrics(view: &View<'_>, ranked: &mut [Ranked]) {
    let order: Vec<&str> = ranked_services(view).map(|(service, _)| service.service.as_str()).collect();
    let is_open = |one: &Ranked| one.verdict != Verdict::Refuted;
    let best = |ranked: &[Ranked], service: &str| {
        let own = ranked.iter().filter(|one| is_open(one) && one.service.as_deref() == Some(service));
        own.map(|one| one.confidence).fold(0.0, f64::max)
    };
    let held: Vec<(&str, f64)> =
        order.into_iter().map(|service| (service, best(ranked, service))).filter(|(_, best)| *best > 0.0).collect();
    let mut places: Vec<f64> = held.iter().map(|(_, best)| *best).collect();
    places.sort_by(|a, b| b.total_cmp(a));
    for (n, ((service, best), place)) in held.into_iter().zip(places).enumerate() {
        for one in ranked.iter_mut().filter(|one| is_open(one) && one.service.as_deref() == Some(service)) {
            one.confidence *= place / best;
            let is_cause = n == 0 && one.confidence >= SUPPORTED.max(place) && one.explained_by.is_none();
            one.verdict = if is_cause { Verdict::Supported } else { Verdict::Possible };
        }
    }
}

/// The services that the metrics' ranking names, the most suspicious first, with the evidence of each.
fn ranked_services<'a>(view: &'a View<'_>) -> impl Iterator<Item = (&'a RankedService, &'a String)> {
    view.all.iter().filter_map(|one| match &one.evidence.data {
        Finding::RankedService(ranked) if ranked.score > 0.0 => Some((ranked, &one.evidence.id)),
        _ => None,
    })
}

/// The best ones; refuted ones stay few, and so do services.
fn shorten(ranked: Vec<Ranked>) -> Vec<Ranked> {
    let (mut refuted, mut open) = (0, 0);
    let mut services: BTreeSet<Option<String>> = BTreeSet::new();
    let kept = ranked.into_iter().filter(|one| {
        let is_new = !services.contains(&one.service);
        if is_new && services.len() >= MAX_SERVICES {
            return false;
        }
        services.insert(one.service.clone());
        let counter = if one.verdict == Verdict::Refuted { &mut refuted } else { &mut open };
        *counter += 1;
        *counter <= if one.verdict == Verdict::Refuted { MAX_REFUTED } else { MAX_HYPOTHESES }
    });
    kept.collect()
}

fn weigh(candidates: &[Candidate], index: usize, coverage: &Coverage) -> Ranked {
    let candidate = &candidates[index];
    let alone = candidate.probability();
    let rival = rival(candidates, index);
    // Two causes that fit alike cannot both be more likely than not.
    let contested = if index == 0 { alone * (1.0 - 0.4 * rival.powi(2)) } else { alone };
    let mut confidence = (contested * coverage.factor()).min(MAX_CONFIDENCE);
    if index > 0 {
        // What is contested at the top does not thereby fall behind what contests it.
        confidence = confidence.min(weigh(candidates, 0, coverage).confidence * BEHIND_THE_FIRST);
    }
    let lost: f64 = candidate.objections.iter().map(|objection| objection.against.weight).sum();
    let is_independent = candidate.explained_by.is_none();
    let verdict = if is_independent && index == 0 && confidence >= SUPPORTED {
        Verdict::Supported
    } else if lost >= REFUTING && alone < 0.25 {
        Verdict::Refuted
    } else {
        Verdict::Possible
    };
    Ranked {
        category: candidate.category(),
        service: candidate.service.clone(),
        confidence,
        verdict,
        evidence_for: candidate.evidence_for.clone(),
        evidence_against: candidate.evidence_against(),
        against: candidate.objections.iter().map(|one| (&one.against.text, one.ids.clone())).collect(),
        explained_by: candidate.explained_by.clone(),
        reason: None,
    }
}

/// The probability of the best other cause that is not a consequence, nor the same cause at another service.
fn rival(candidates: &[Candidate], index: usize) -> f64 {
    let own = candidates[index].category();
    let others = candidates.iter().enumerate().filter(|(other, candidate)| {
        *other != index && candidate.category() != own && candidate.explained_by.is_none()
    });
    others.map(|(_, candidate)| candidate.probability()).fold(0.0, f64::max)
}

/// Services that stand out in their metrics and that no hypothesis speaks of yet.
fn by_metrics(view: &View<'_>, known: &[Ranked], has_cause: bool) -> Vec<Ranked> {
    if has_cause {
        return Vec::new();
    }
    let ranked: Vec<_> = ranked_services(view).take(MAX_SERVICES).collect();
    let total: f64 = ranked.iter().map(|(ranked, _)| ranked.score).sum();
    ranked
        .into_iter()
        .filter(|(ranked, _)| {
            !known.iter().any(|one| one.service.as_deref() == Some(&ranked.service) && one.confidence > 0.3)
        })
        .map(|(ranked, id)| Ranked {
            category: kind_of_anomaly(view, &ranked.service, &ranked.anomalous),
            service: Some(ranked.service.clone()),
            confidence: RANKED_CONFIDENCE * ranked.score / total,
            verdict: Verdict::Possible,
            evidence_for: vec![id.clone()],
            evidence_against: Vec::new(),
            against: Vec::new(),
            explained_by: None,
            reason: Some(ranked.reason.clone()),
        })
        .collect()
}

/// What the most anomalous series of a service measure says what kind of trouble it is in, as far as names go.
fn kind_of_anomaly(view: &View<'_>, service: &str, anomalous: &[String]) -> Category {
    let Some(first) = anomalous.first().map(|expr| expr.to_lowercase()) else { return Category::Unknown };
    let has = |words: &[&str]| words.iter().any(|word| first.contains(word));
    let is_other = view.state.facts.service.as_deref() != Some(service);
    if has(&["throttl"]) {
        Category::CpuThrottling
    } else if has(&["cpu", "load"]) {
        Category::CpuSaturation
    } else if is_other && has(&["latency", "duration", "response_time", "seconds_bucket"]) {
        Category::DependencySlow
    } else if is_other && has(&["error", "availab", "fail", "success"]) {
        Category::DependencyUnavailable
    } else {
        Category::Unknown
    }
}

/// What people would look for first at the alerting service, where the evidence refutes it.
fn thought_of_first(view: &View<'_>, known: &[Ranked]) -> Vec<Ranked> {
    let Some(service) = view.state.facts.service.clone() else { return Vec::new() };
    usual_suspects(view.state.facts.symptom)
        .iter()
        .filter(|category| !known.iter().any(|one| one.category == **category))
        .filter_map(|category| signature::of(*category))
        .filter_map(|signature| {
            let objections = objections(view, signature, &service, &[]);
            let lost: f64 = objections.iter().map(|objection| objection.against.weight).sum();
            let ids: Vec<String> = objections.iter().flat_map(|objection| objection.ids.clone()).collect();
            // Refuted by something that can be cited, not by silence alone.
            (lost >= REFUTING && !ids.is_empty()).then(|| Ranked {
                category: signature.category,
                service: Some(service.clone()),
                confidence: 1.0 / (1.0 + (lost - signature.prior).exp()),
                verdict: Verdict::Refuted,
                evidence_for: Vec::new(),
                evidence_against: ids,
                against: objections.iter().map(|one| (&one.against.text, one.ids.clone())).collect(),
                explained_by: None,
                reason: None,
            })
        })
        .take(MAX_REFUTED)
        .collect()
}

fn usual_suspects(symptom: Symptom) -> &'static [Category] {
    use Category::*;
    match symptom {
        Symptom::Memory | Symptom::Restarts => &[OomKilled, CrashLoop, MemoryLeak, BadDeployment],
        Symptom::Cpu | Symptom::Latency => &[CpuSaturation, CrashLoop, BadDeployment, DbUnavailable],
        Symptom::Node => &[NodeNotReady, DiskFull, NetworkLoss],
        _ => &[CrashLoop, BadDeployment, DbUnavailable, CpuSaturation, OomKilled, NodeNotReady],
    }
}

/// Whether an id is of evidence that a cause may rest on: runbooks alone prove nothing.
pub(super) fn is_proof(view: &View<'_>, id: &str) -> bool {
    view.state
        .evidence(id)
        .is_some_and(|evidence| !matches!(evidence.kind, EvidenceKind::Knowledge | EvidenceKind::Other))
}
