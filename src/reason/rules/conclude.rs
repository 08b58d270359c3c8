//! The conclusion in words: summary, hypotheses with their reasons, the root cause if one is good enough.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use super::coverage::Coverage;
use super::observe::{View, change_kind};
use super::remedy;
use super::score::{Candidate, rank};
use super::verdict::{Ranked, hypotheses, is_proof};
use super::windows;
use crate::domain::text::{clean_line, counted};
use crate::domain::{Hypothesis, Lang, RootCause, State, Verdict};
use crate::reason::{Conclusion, signature};

const MAX_CITED: usize = 3;
const MAX_LISTED: usize = 8;
const MAX_CITED_CHARS: usize = 260;

/// What the evidence of a state amounts to.
pub(super) fn conclude(state: &State, zone: &TimeZone) -> Conclusion {
    let view = View::of(state);
    let coverage = Coverage::of(state);
    let candidates = rank(&view);
    let ranked = hypotheses(&view, &candidates, &coverage);
    let lang = state.facts.lang;
    let cause = ranked
        .first()
        .filter(|first| first.verdict == Verdict::Supported && first.evidence_for.iter().any(|id| is_proof(&view, id)));
    let root_cause = cause.map(|cause| RootCause {
        title: title(cause, lang),
        service: cause.service.clone(),
        category: cause.category,
        confidence: round(cause.confidence),
        evidence: listed(&cause.evidence_for),
    });
    let summary = match cause {
        Some(cause) => supported_summary(&view, cause, &ranked, zone),
        None => unknown_summary(&view, &ranked, zone),
    };
    Conclusion {
        summary,
        next_steps: remedy::next_steps(state, cause),
        hypotheses: ranked.iter().map(|one| hypothesis(&view, one, lang)).collect(),
        unchecked: coverage.unchecked(lang),
        root_cause,
    }
}

/// Hundredths are all that a rule of thumb can tell.
fn round(confidence: f64) -> f64 {
    (confidence * 100.0).round() / 100.0
}

fn listed(ids: &[String]) -> Vec<String> {
    ids.iter().take(MAX_LISTED).cloned().collect()
}

fn title(one: &Ranked, lang: Lang) -> String {
    let kind = one.category.title(lang);
    match &one.service {
        Some(service) => {
            let service = clean_line(service, 80);
            lang.pick(format!("{kind}: {service}"), format!("{service}：{kind}"))
        }
        None => kind.to_string(),
    }
}

fn hypothesis(view: &View<'_>, one: &Ranked, lang: Lang) -> Hypothesis {
    Hypothesis {
        title: title(one, lang),
        category: one.category,
        service: one.service.clone(),
        evidence_for: listed(&one.evidence_for),
        evidence_against: listed(&one.evidence_against),
        confidence: round(one.confidence),
        verdict: one.verdict,
        rationale: rationale(view, one, lang),
    }
}

/// `[E3][E5]`.
pub(super) fn cite(ids: &[String]) -> String {
    ids.iter().take(MAX_CITED).map(|id| format!("[{id}]")).collect()
}

/// What some pieces of evidence say, each with its number.
fn quoted(view: &View<'_>, ids: &[String], most: usize, lang: Lang) -> String {
    let parts: Vec<String> = ids
        .iter()
        .filter_map(|id| view.state.evidence(id))
        .take(most)
        .map(|evidence| format!("{} [{}]", clean_line(&evidence.summary, MAX_CITED_CHARS), evidence.id))
        .collect();
    parts.join(lang.pick("; ", "；"))
}

fn rationale(view: &View<'_>, one: &Ranked, lang: Lang) -> String {
    let mut sentences = Vec::new();
    if let Some(reason) = &one.reason {
        let reason = clean_line(reason, MAX_CITED_CHARS);
        sentences.push(format!("{reason} {}", cite(&one.evidence_for)));
    } else if !one.evidence_for.is_empty() {
        let what = quoted(view, &one.evidence_for, 2, lang);
        sentences.push(lang.pick(format!("For it: {what}."), format!("支持：{what}。")));
    }
    if let Some((category, service)) = &one.explained_by {
        let kind = category.title(lang);
        let place = service.as_deref().map(|service| clean_line(service, 80)).unwrap_or_default();
        sentences.push(lang.pick(
            format!("It follows from another cause: {kind} at {place}."),
            format!("它是另一原因的结果：{place} 的{kind}。"),
        ));
    }
    let mut against: Vec<String> =
        one.against.iter().map(|(text, ids)| format!("{} {}", text.get(lang), cite(ids)).trim().to_string()).collect();
    against.truncate(MAX_CITED);
    if !against.is_empty() {
        let text = against.join(lang.pick("; ", "；"));
        sentences.push(lang.pick(format!("Against it: {text}."), format!("反对：{text}。")));
    }
    sentences.join(lang.pick(" ", ""))
}

fn supported_summary(view: &View<'_>, cause: &Ranked, ranked: &[Ranked], zone: &TimeZone) -> String {
    let lang = view.state.facts.lang;
    let percent = (cause.confidence * 100.0).round();
    let name = title(cause, lang);
    let explanation = signature::of(cause.category).map(|known| known.explanation.get(lang)).unwrap_or_default();
    let what = quoted(view, &cause.evidence_for, MAX_CITED, lang);
    let mut text = lang.pick(
        format!("Most likely cause ({percent} %): {name}. {explanation} It shows in: {what}."),
        format!("最可能的原因（{percent}%）：{name}。{explanation}依据：{what}。"),
    );
    let mut push = |sentence: Option<String>| {
        if let Some(sentence) = sentence {
            text.push_str(lang.pick(" ", ""));
            text.push_str(&sentence);
        }
    };
    push(change_before(view, cause.service.as_deref()));
    push(consequences(cause, ranked, lang));
    push(windows::two_windows(view, zone));
    push(ruled_out(ranked, lang));
    text
}

/// A change of the service shortly before the symptom belongs into the story, whatever the mechanism.
fn change_before(view: &View<'_>, service: Option<&str>) -> Option<String> {
    let lang = view.state.facts.lang;
    let symptom = view.symptom_at?;
    let change = view
        .all
        .iter()
        .filter(|one| {
            change_kind(&one.evidence.data).is_some() && one.service.is_some() && one.service.as_deref() == service
        })
        .filter(|one| super::matching::precedence(view, one) > 0.2)
        .max_by_key(|one| one.at)?;
    let minutes = symptom.duration_since(change.at?).as_mins().max(0);
    let what = clean_line(&change.evidence.summary, MAX_CITED_CHARS);
    let id = &change.evidence.id;
    Some(lang.pick(
        format!("{} before the symptom there was a change: {what} [{id}].", counted(minutes, "minute")),
        format!("症状出现前 {minutes} 分钟有变更：{what} [{id}]。"),
    ))
}

fn consequences(cause: &Ranked, ranked: &[Ranked], lang: Lang) -> Option<String> {
    let of_this = Some((cause.category, cause.service.clone()));
    let effects: Vec<String> = ranked
        .iter()
        .filter(|one| one.explained_by == of_this)
        .take(2)
        .map(|one| format!("{} {}", title(one, lang), cite(&one.evidence_for)))
        .collect();
    if effects.is_empty() {
        return None;
    }
    let list = effects.join(lang.pick("; ", "；"));
    Some(lang.pick(format!("Explained by it: {list}."), format!("由它引起：{list}。")))
}

fn ruled_out(ranked: &[Ranked], lang: Lang) -> Option<String> {
    // The same kind at two services is one thought.
    let mut named = BTreeSet::new();
    let refuted: Vec<String> = ranked
        .iter()
        .filter(|one| one.verdict == Verdict::Refuted && named.insert(one.category))
        .take(MAX_CITED)
        .map(|one| format!("{} {}", one.category.title(lang), cite(&one.evidence_against)).trim().to_string())
        .collect();
    if refuted.is_empty() {
        return None;
    }
    let list = refuted.join(lang.pick(", ", "、"));
    Some(lang.pick(format!("Ruled out: {list}."), format!("已排除：{list}。")))
}

fn unknown_summary(view: &View<'_>, ranked: &[Ranked], zone: &TimeZone) -> String {
    let lang = view.state.facts.lang;
    let proof = view.all.iter().any(|one| is_proof(view, &one.evidence.id));
    let mut text = if proof {
        lang.pick(
            "The evidence does not fit any known kind of cause well enough to name one.".to_string(),
            "现有证据与任何已知原因都不够吻合，无法确定根因。".to_string(),
        )
    } else {
        lang.pick(
            "No evidence could be gathered, so no cause can be named; the steps below come from the runbooks."
                .to_string(),
            "没有采集到任何证据，无法判断根因；以下步骤来自运维文档。".to_string(),
        )
    };
    let possible = ranked.iter().filter(|one| one.verdict == Verdict::Possible).take(MAX_CITED);
    let possible: Vec<String> =
        possible.map(|one| format!("{} {}", title(one, lang), cite(&one.evidence_for)).trim().to_string()).collect();
    let mut push = |sentence: Option<String>| {
        if let Some(sentence) = sentence {
            text.push_str(lang.pick(" ", ""));
            text.push_str(&sentence);
        }
    };
    if !possible.is_empty() {
        let list = possible.join(lang.pick("; ", "；"));
        push(Some(lang.pick(format!("Worth a look: {list}."), format!("值得查看：{list}。"))));
    }
    push(windows::two_windows(view, zone));
    push(ruled_out(ranked, lang));
    text
}

/// The leading candidate and how sure it is, for whoever plans the next questions.
pub(super) fn leading(candidates: &[Candidate]) -> Option<&Candidate> {
    candidates.first().filter(|first| first.probability() >= 0.3)
}
