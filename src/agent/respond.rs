//! Node `respond`: conclusion and state become the document, with the source strip and how the run ended.

use std::collections::BTreeMap;

use super::graph::Stop;
use super::{Crew, Task};
use crate::domain::diagnosis::DIAGNOSIS_SCHEMA;
use crate::domain::text::{clean, counted};
use crate::domain::time::zone_name;
use crate::domain::{
    Diagnosis, FailureKind, Finding, Hit, Invocation, Lang, Outcome, Reference, RunStatus, Served, SourceReport,
    SourceStatus, State,
};
use crate::reason::{Conclusion, Reasoned};
use crate::tool::sources::status_of;

const EXCERPT_CHARS: usize = 400;

pub(super) fn run(
    task: &Task,
    crew: &Crew,
    state: State,
    reasoned: Reasoned<Conclusion>,
    stop: Option<Stop>,
) -> Diagnosis {
    let Conclusion { summary, root_cause, hypotheses, next_steps, mut unchecked } = reasoned.value;
    let lang = state.facts.lang;
    let failing = failing_tools(&state);
    let tools_failing = !failing.is_empty() && root_cause.is_none();
    let (mut status, mut status_reason) = ending(stop, tools_failing, lang);
    if let (RunStatus::Complete, Some(reason)) = (status, crew.reasoner.shortfall(lang)) {
        (status, status_reason) = (RunStatus::Incomplete, Some(reason));
    }
    if let (RunStatus::Complete, Some(reason)) = (status, not_allowed(&state.invocations).into_iter().next()) {
        (status, status_reason) = (RunStatus::Incomplete, Some(reason));
    }
    unchecked.extend(failing_tools_note(&failing, lang));
    unchecked.extend(stale_notes(&state.invocations, lang));
    unchecked.extend(crew.reasoner.notes(&state));
    Diagnosis {
        schema: DIAGNOSIS_SCHEMA.into(),
        session_id: task.session_id.clone(),
        status,
        status_reason,
        reasoner: crew.reasoner.name().into(),
        model: crew.reasoner.model().map(str::to_string),
        summary,
        root_cause,
        hypotheses,
        next_steps,
        references: state.hits.iter().enumerate().map(|(i, hit)| reference(i + 1, hit)).collect(),
        sources: source_strip(&state.invocations, &task.absent_sources, lang),
        unchecked,
        alert: state.alerts[0].clone(),
        related_alerts: state.alerts[1..].to_vec(),
        zone: Some(zone_name(&task.zone, state.facts.now)),
        facts: state.facts,
        history: state.history,
        evidence: state.evidence,
        plan: state.plan,
        usage: state.usage,
        timings: Vec::new(),
    }
}

fn reference(n: usize, hit: &Hit) -> Reference {
    Reference {
        n,
        title: hit.title.clone(),
        source: hit.source.clone(),
        heading: hit.heading_path(),
        excerpt: clean(&hit.content, EXCERPT_CHARS),
    }
}

fn ending(stop: Option<Stop>, tools_failing: bool, lang: Lang) -> (RunStatus, Option<String>) {
    let incomplete = |en: &str, zh: &str| (RunStatus::Incomplete, Some(lang.pick(en, zh).to_string()));
    match stop {
        Some(Stop::Cancelled) => {
            (RunStatus::Cancelled, Some(lang.pick("interrupted by the user", "已被用户中断").to_string()))
        }
        _ if tools_failing => incomplete("tool layer failing, a human is needed", "工具层异常，请人工介入"),
        Some(Stop::Time) => incomplete("the time budget is used up", "时间预算已用完"),
        Some(Stop::Steps) => {
            incomplete("the limit of rounds (agent.max_steps) was hit", "已达到轮数上限 (agent.max_steps)")
        }
        Some(Stop::Nodes) => {
            incomplete("the limit of node runs (agent.max_nodes) was hit", "已达到节点运行次数上限 (agent.max_nodes)")
        }
        // A loop only means that another round would have brought nothing.
        Some(Stop::Loop) | None => (RunStatus::Complete, None),
    }
}

/// Why calls were refused that nobody was there to agree to, each reason once.
pub(super) fn not_allowed(invocations: &[Invocation]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for invocation in invocations {
        match &invocation.outcome {
            Outcome::Failure(failure) if failure.kind == FailureKind::NotAllowed => {
                reasons.push(failure.message.clone())
            }
            _ => {}
        }
    }
    reasons.sort();
    reasons.dedup();
    reasons
}

/// Tools that were closed, or never gave an answer however often they were asked.
fn failing_tools(state: &State) -> Vec<String> {
    let mut answered: BTreeMap<&str, bool> = BTreeMap::new();
    // Runbooks are no evidence: a diagnosis does without them.
    for invocation in state.invocations.iter().filter(|made| made.call.tool != crate::tool::knowledge::NAME) {
        let gave = match &invocation.outcome {
            Outcome::Output(_) => true,
            // The caller's mistake, or the user's wish, says nothing about the tool.
            Outcome::Failure(failure) => {
                use FailureKind::{BadArguments, Cancelled, Denied, NotAllowed};
                if matches!(failure.kind, BadArguments | Cancelled | Denied | NotAllowed) {
                    continue;
                }
                false
            }
        };
        *answered.entry(&invocation.call.tool).or_default() |= gave;
    }
    let silent = answered.into_iter().filter(|(_, gave)| !gave).map(|(tool, _)| tool.to_string());
    let mut failing: Vec<String> = state.closed_tools.iter().cloned().chain(silent).collect();
    failing.sort();
    failing.dedup();
    failing
}

fn failing_tools_note(failing: &[String], lang: Lang) -> Option<String> {
    (!failing.is_empty()).then(|| {
        let names = failing.join(", ");
        lang.pick(format!("tools that failed: {names}"), format!("工具调用失败：{names}"))
    })
}

/// What was answered from memory is of an earlier time: how it is now, nobody looked.
fn stale_notes(invocations: &[Invocation], lang: Lang) -> Vec<String> {
    let mut oldest: BTreeMap<&str, i64> = BTreeMap::new();
    for invocation in invocations {
        if let Outcome::Output(output) = &invocation.outcome
            && let Served::Stale { age_seconds } = output.served
        {
            let age = oldest.entry(&output.source).or_default();
            *age = age_seconds.max(*age);
        }
    }
    let note = |(source, age): (&str, i64)| {
        lang.pick(
            format!("{source} did not answer: what it said {age} s ago stands in its place, so its present state was not checked"),
            format!("{source} 无响应：使用 {age} 秒前的结果代替，其当前状态未检查"),
        )
    };
    oldest.into_iter().map(note).collect()
}

/// One entry per source: the worst of its answers, with the reason. A source that answered at least once with
/// something is not empty because another question found nothing.
fn source_strip(invocations: &[Invocation], absent: &[SourceReport], lang: Lang) -> Vec<SourceReport> {
    let mut strip: BTreeMap<String, (SourceStatus, String, usize)> = BTreeMap::new();
    for invocation in invocations {
        for SourceReport { name, status, detail } in answered(invocation, lang) {
            let entry = strip.entry(name).or_insert((SourceStatus::Empty, String::new(), 0));
            entry.2 += 1;
            let is_told = entry.1.is_empty() && status == entry.0;
            if status.badness() > entry.0.badness() || is_told {
                (entry.0, entry.1) = (status, detail);
            }
        }
    }
    let mut reports: Vec<SourceReport> = strip
        .into_iter()
        .map(|(name, (status, detail, asked))| SourceReport {
            name,
            status,
            detail: match (detail.is_empty(), asked) {
                (false, _) => detail,
                (true, n) => lang.pick(counted(n, "question"), format!("{n} 次查询")),
            },
        })
        .collect();
    reports.extend(absent.iter().cloned());
    reports
}

/// How the sources of a call answered.
fn answered(invocation: &Invocation, lang: Lang) -> Vec<SourceReport> {
    let report = |name: String, status, detail| vec![SourceReport { name, status, detail }];
    match &invocation.outcome {
        Outcome::Output(output) => {
            let nothing = output.findings.iter().all(|finding| matches!(finding, Finding::Nothing { .. }));
            let (status, detail) = match output.served {
                Served::Stale { age_seconds } => (
                    SourceStatus::Stale,
                    lang.pick(format!("{age_seconds} s old"), format!("{age_seconds} 秒前的结果")),
                ),
                Served::Live if output.truncated => (SourceStatus::Truncated, output.notes.join("; ")),
                Served::Live if nothing => (SourceStatus::Empty, String::new()),
                Served::Live => (SourceStatus::Ok, String::new()),
            };
            // What came from memory says nothing of how its sources answered today.
            match output.served {
                Served::Live if !output.asked.is_empty() => output.asked.clone(),
                Served::Live => report(output.source.clone(), status, detail),
                Served::Stale { .. } => {
                    let names = output.source.split(", ");
                    names.flat_map(|name| report(name.to_owned(), status, detail.clone())).collect()
                }
            }
        }
        Outcome::Failure(failure) if !failure.asked.is_empty() => failure.asked.clone(),
        Outcome::Failure(failure) => {
            let status = status_of(failure.kind);
            let name = failure.source.clone().unwrap_or_else(|| invocation.call.tool.clone());
            report(name, status, failure.message.clone())
        }
    }
}
