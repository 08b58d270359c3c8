//! The conclusion of a model, after its citations were checked: what the evidence does not bear is struck, confidence is
//! capped by what was looked at, and the rules' view stands beside it.

use std::collections::BTreeSet;

use minijinja::context;

use super::check::Checker;
use super::shapes::{HypothesisAnswer, SynthesisAnswer, schema};
use super::{Llm, commands, digest};
use crate::domain::text::clean_line;
use crate::domain::{Category, Evidence, EvidenceKind, Finding, Hypothesis, NextStep, RootCause, State, Verdict};
use crate::llm::{Message, ModelError};
use crate::reason::{Conclusion, Reasoned, rules};

const SYNTHESIS_EVIDENCE: u64 = 1800;
/// Tokens of the evidence that an answer cites, when it is to be mended.
const MENDING_EVIDENCE: u64 = 900;
const OPINION_HYPOTHESES: usize = 4;
const PROBLEMS_SHOWN: usize = 8;
const TEXT_CHARS: usize = 300;
const NAME_CHARS: usize = 80;
const MAX_LISTED: usize = 8;
const MAX_NEXT_STEPS: usize = 6;
/// The best confidence by the number of kinds of evidence (metric, log, status, change) that bear a hypothesis.
const CAPS: [f64; 5] = [0.2, 0.65, 0.85, 0.92, 0.95];
/// From here on a hypothesis is called the cause.
const SUPPORTED: f64 = 0.5;
/// Below this, evidence against a hypothesis refutes it.
const REFUTED: f64 = 0.2;

impl Llm {
    pub(super) async fn conclude(&self, state: &State, floor: &Conclusion) -> Result<Reasoned<Conclusion>, ModelError> {
        let values = context! {
            language => digest::language(state.facts.lang),
            alert => digest::alert(state),
            done => digest::done(&state.plan.steps),
            evidence => digest::evidence(&state.evidence, SYNTHESIS_EVIDENCE),
            unchecked => floor.unchecked.join("\n"),
            opinion => opinion(floor),
            runbooks => digest::runbook_titles(&state.hits),
        };
        let mut request = self.request("synthesize", values)?;
        request.answer = schema::<SynthesisAnswer>("synthesize");
        let chat = &self.models.synthesizer;
        let (mut answer, mut usage) = chat.ask_shaped::<SynthesisAnswer>(request.clone(), |_| Ok(())).await?;
        let checker = Checker::new(state, &self.zone);
        let problems = problems(&answer, &checker);
        if !problems.is_empty() {
            request.messages.truncate(1);
            request.messages.push(Message::user(mending(&answer, &problems, state)));
            // A model that cannot mend it keeps its first answer, less what is struck.
            if let Ok((mended, more)) = chat.ask_shaped::<SynthesisAnswer>(request, |_| Ok(())).await {
                usage.add(more);
                answer = mended;
            }
        }
        let value = build(answer, state, &checker, floor);
        let names_nothing = value.hypotheses.is_empty() && value.summary.is_empty();
        if names_nothing {
            return Err(ModelError::Garbage("nothing of its conclusion stands in the evidence".into()));
        }
        Ok(Reasoned { value, usage })
    }
}

/// The rules' hypotheses, as a second opinion.
fn opinion(floor: &Conclusion) -> String {
    let lines: Vec<String> = floor
        .hypotheses
        .iter()
        .take(OPINION_HYPOTHESES)
        .map(|one| {
            let (on, against) = (one.evidence_for.join(" "), one.evidence_against.join(" "));
            let service = one.service.as_deref().unwrap_or("-");
            format!("{} at {service}: {:.2}, for: {on}, against: {against}", one.category.id(), one.confidence)
        })
        .collect();
    if lines.is_empty() { "(nothing fits)".into() } else { digest::fence(&lines.join("\n")) }
}

/// What of an answer the evidence does not bear, in words for the model.
fn problems(answer: &SynthesisAnswer, checker: &Checker<'_>) -> Vec<String> {
    let mut problems = checker.check(&answer.summary).struck;
    for one in &answer.hypotheses {
        problems.extend(checker.check(&one.rationale).struck);
        for id in one.evidence_for.iter().chain(&one.evidence_against).filter(|id| !checker.exists(id)) {
            problems.push(format!("{}: there is no evidence {}", one.category.id(), clean_line(id, 20)));
        }
    }
    if let Some(cause) = &answer.root_cause {
        let named = answer.hypotheses.iter().find(|one| one.category.id() == cause.category);
        let shown = clean_line(&cause.category, NAME_CHARS);
        match named {
            None => problems.push(format!("the root cause {shown} is the category of no hypothesis")),
            Some(one) if !one.evidence_for.iter().any(|id| checker.exists(id)) => {
                problems.push(format!("the root cause {shown} has no evidence for it"));
            }
            Some(_) => {}
        }
    }
    problems.dedup();
    problems
}

/// The answer once more, with what is wrong and the evidence that it cites: shorter than everything again.
fn mending(answer: &SynthesisAnswer, problems: &[String], state: &State) -> String {
    let list: Vec<String> = problems.iter().take(PROBLEMS_SHOWN).map(|problem| format!("- {problem}")).collect();
    let text = serde_json::to_string(answer).unwrap_or_default();
    let cited = state.evidence.iter().filter(|one| {
        text.match_indices(&one.id).any(|(at, id)| !text[at + id.len()..].starts_with(|c: char| c.is_ascii_digit()))
    });
    format!(
        "{}\n\nYour first answer:\n{}\n\nIt was checked against the evidence and found wrong in these places:\n{}\n\nThe \
         evidence that it cites:\n{}\n\nAnswer again, whole, so that every claim cites ids that exist and holds only numbers \
         that stand in the evidence cited; leave out what you cannot show.",
        digest::alert(state),
        digest::fence(&text),
        digest::fence(&list.join("\n")),
        digest::evidence(cited, MENDING_EVIDENCE),
    )
}

/// The conclusion, of what stands.
fn build(answer: SynthesisAnswer, state: &State, checker: &Checker<'_>, floor: &Conclusion) -> Conclusion {
    let lang = state.facts.lang;
    let summary = checker.check(&answer.summary);
    let mut struck = summary.struck;
    let mut hypotheses: Vec<Hypothesis> = Vec::new();
    for one in answer.hypotheses {
        let rationale = checker.check(&one.rationale);
        struck.extend(rationale.struck);
        hypotheses.push(hypothesis(one, rationale.text, state));
    }
    add_refuted(&mut hypotheses, floor);
    hypotheses.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let root_cause = answer.root_cause.and_then(|cause| {
        let service = cause.service.map(|service| clean_line(&service, NAME_CHARS)).filter(|name| !name.is_empty());
        let category = Category::from_id(&cause.category)?;
        let same = |one: &&mut Hypothesis| {
            one.category == category && (service.is_none() || one.service.is_none() || one.service == service)
        };
        let named = hypotheses.iter_mut().find(same)?;
        let bears = category != Category::Unknown && named.evidence_for.iter().any(|id| is_proof(state, id));
        if !bears || named.confidence < SUPPORTED {
            return None;
        }
        named.verdict = Verdict::Supported;
        named.service = named.service.clone().or(service);
        Some(RootCause {
            title: title(named.category, named.service.as_deref(), state),
            service: named.service.clone(),
            category: named.category,
            confidence: named.confidence,
            evidence: named.evidence_for.iter().take(MAX_LISTED).cloned().collect(),
        })
    });
    let mut unchecked = floor.unchecked.clone();
    unchecked.extend(struck.into_iter().map(|sentence| {
        lang.pick(format!("struck, for lack of evidence: {sentence}"), format!("因缺乏证据已删除：{sentence}"))
    }));
    let next_steps =
        next_steps(answer.next_steps.into_iter().map(|step| (step.text, step.command)), floor, &root_cause);
    Conclusion { summary: summary.text, root_cause, hypotheses, next_steps, unchecked }
}

fn hypothesis(one: HypothesisAnswer, rationale: String, state: &State) -> Hypothesis {
    let existing = |ids: Vec<String>| -> Vec<String> {
        let mut seen = BTreeSet::new();
        ids.into_iter().filter(|id| state.evidence(id).is_some() && seen.insert(id.clone())).take(MAX_LISTED).collect()
    };
    let (evidence_for, evidence_against) = (existing(one.evidence_for), existing(one.evidence_against));
    let claimed = if one.confidence.is_finite() { one.confidence.clamp(0.0, 1.0) } else { 0.0 };
    let confidence = (claimed.min(cap(state, &evidence_for)) * 100.0).round() / 100.0;
    let verdict =
        if confidence <= REFUTED && !evidence_against.is_empty() { Verdict::Refuted } else { Verdict::Possible };
    let service = one.service.map(|service| clean_line(&service, NAME_CHARS)).filter(|name| !name.is_empty());
    Hypothesis {
        title: title(one.category, service.as_deref(), state),
        category: one.category,
        service,
        evidence_for,
        evidence_against,
        confidence,
        verdict,
        rationale,
    }
}

/// No more confidence than the kinds of evidence for it, and what was looked at at all, allow.
fn cap(state: &State, evidence_for: &[String]) -> f64 {
    let kinds: BTreeSet<u8> = evidence_for
        .iter()
        .filter(|id| is_proof(state, id))
        .filter_map(|id| state.evidence(id))
        .map(|one| one.kind as u8)
        .collect();
    CAPS[kinds.len().min(CAPS.len() - 1)] * rules::coverage_factor(state)
}

/// Whether a piece of evidence shows something about the world: runbooks and empty answers do not.
fn is_proof(state: &State, id: &str) -> bool {
    let shows = |one: &Evidence| {
        one.kind != EvidenceKind::Knowledge && !matches!(one.data, Finding::Nothing { .. } | Finding::Hit(_))
    };
    state.evidence(id).is_some_and(shows)
}

/// What the rules refuted and the model did not speak of: people think of it first.
fn add_refuted(hypotheses: &mut Vec<Hypothesis>, floor: &Conclusion) {
    for one in floor.hypotheses.iter().filter(|one| one.verdict == Verdict::Refuted) {
        if !hypotheses.iter().any(|known| known.category == one.category) {
            hypotheses.push(one.clone());
        }
    }
}

fn title(category: Category, service: Option<&str>, state: &State) -> String {
    let lang = state.facts.lang;
    let kind = category.title(lang);
    match service {
        Some(service) => lang.pick(format!("{kind}: {service}"), format!("{service}：{kind}")),
        None => kind.to_string(),
    }
}

/// The model's steps, then those of the rules for the same cause. A command that may change something is not shown as
/// one.
fn next_steps(
    proposed: impl Iterator<Item = (String, Option<String>)>,
    floor: &Conclusion,
    cause: &Option<RootCause>,
) -> Vec<NextStep> {
    let mut steps: Vec<NextStep> = proposed
        .filter(|(text, _)| !text.trim().is_empty())
        .map(|(text, command)| {
            let command = command.map(|command| clean_line(command.trim(), TEXT_CHARS));
            NextStep {
                text: clean_line(text.trim(), TEXT_CHARS),
                command: command.filter(|command| commands::is_read_only(command)),
                source: "model".into(),
            }
        })
        .collect();
    let same = cause.as_ref().map(|cause| cause.category) == floor.root_cause.as_ref().map(|cause| cause.category);
    if same || steps.is_empty() {
        steps.extend(floor.next_steps.iter().cloned());
    }
    steps.truncate(MAX_NEXT_STEPS);
    steps
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::*;
    use crate::domain::{Change, ChangeKind};
    use crate::reason::facts;

    fn state() -> State {
        let payload = r#"{"labels":{"alertname":"HighErrorRate","service":"cart"},"startsAt":"2026-03-04T06:30:00Z"}"#;
        let alerts = crate::alert::parse(payload).unwrap().alerts;
        let facts = facts::analyze(&alerts, "2026-03-04T06:45:00Z".parse().unwrap());
        let mut state = State::begin(alerts, facts);
        let evidence = |n: usize, kind: EvidenceKind, summary: &str, data: Finding| Evidence {
            id: format!("E{n}"),
            kind,
            source: "s".into(),
            window: None,
            summary: summary.into(),
            data,
            stale_seconds: None,
        };
        let change = Finding::Change(Change {
            time: "2026-03-04T06:00:00Z".parse().unwrap(),
            service: Some("cart".into()),
            kind: ChangeKind::Deploy,
            summary: "3.1".into(),
        });
        state.evidence = vec![
            evidence(1, EvidenceKind::Log, "pool timeout 210 times", Finding::Other { value: json!({ "count": 210 }) }),
            evidence(2, EvidenceKind::Change, "deployment of cart", change),
            evidence(3, EvidenceKind::Other, "nothing found", Finding::Nothing { what: "x".into() }),
        ];
        state
    }

    fn floor() -> Conclusion {
        Conclusion { summary: "f".into(), root_cause: None, hypotheses: vec![], next_steps: vec![], unchecked: vec![] }
    }

    fn built(answer: serde_json::Value) -> Conclusion {
        let state = state();
        let zone = TimeZone::UTC;
        build(serde_json::from_value(answer).unwrap(), &state, &Checker::new(&state, &zone), &floor())
    }

    #[test]
    fn a_hallucinated_number_and_an_unknown_id_are_struck_and_told() {
        let conclusion = built(json!({
            "summary": "The pool ran dry [E1]. CPU stood at 97 % [E1]. See [E9].",
            "root_cause": { "category": "db_connection_pool_exhausted", "service": "cart" },
            "hypotheses": [{ "category": "db_connection_pool_exhausted", "service": "cart", "confidence": 0.99,
                "evidence_for": ["E1", "E2", "E9", "E1"], "rationale": "210 timeouts [E1]." }],
        }));
        assert_eq!(conclusion.summary, "The pool ran dry [E1].");
        assert_eq!(
            conclusion.unchecked,
            [
                "struck, for lack of evidence: CPU stood at 97 % [E1]. (97 does not stand in E1)",
                "struck, for lack of evidence: See [E9]. (there is no E9)"
            ]
        );
        let cause = conclusion.root_cause.unwrap();
        assert_eq!((cause.evidence, cause.service.as_deref()), (vec!["E1".to_string(), "E2".into()], Some("cart")));
        assert!(cause.confidence < 0.85, "{}", cause.confidence);
        assert_eq!(conclusion.hypotheses[0].verdict, Verdict::Supported);
    }

    #[test]
    fn a_cause_without_proof_is_no_cause() {
        for ids in [json!([]), json!(["E3"]), json!(["E7"])] {
            let conclusion = built(json!({
                "summary": "s", "root_cause": { "category": "dns_failure" },
                "hypotheses": [{ "category": "dns_failure", "confidence": 0.9, "evidence_for": ids }],
            }));
            assert_eq!(conclusion.root_cause, None, "{ids}");
            assert!(conclusion.hypotheses[0].confidence <= 0.2, "{ids}");
        }
    }

    #[test]
    fn a_command_that_may_change_something_is_not_shown() {
        let conclusion = built(json!({
            "summary": "s", "hypotheses": [],
            "next_steps": [
                { "text": "Restart it", "command": "kubectl rollout restart deploy/cart" },
                { "text": "Look at it", "command": "kubectl get pods" },
            ],
        }));
        let commands: Vec<_> = conclusion.next_steps.iter().map(|step| step.command.as_deref()).collect();
        assert_eq!(commands, [None, Some("kubectl get pods")]);
    }

    #[test]
    fn problems_are_listed_for_the_model() {
        let state = state();
        let answer: SynthesisAnswer = serde_json::from_value(json!({
            "summary": "See [E9].", "root_cause": { "category": "dns_failure" },
            "hypotheses": [{ "category": "dns_failure", "confidence": 0.9, "evidence_for": ["E8"] }],
        }))
        .unwrap();
        assert_eq!(
            problems(&answer, &Checker::new(&state, &TimeZone::UTC)),
            [
                "See [E9]. (there is no E9)",
                "dns_failure: there is no evidence E8",
                "the root cause dns_failure has no evidence for it"
            ]
        );
    }
}
