//! Which questions to ask, in which order, and when enough is known.
//!
//! The first plan follows the alert's service, what it depends on, and what tells the leading causes apart; the
//! runbooks found give the reasons. Evidence that points elsewhere revises it.

use super::calls;
use super::conclude::{cite, leading};
use super::observe::View;
use super::remedy::list_items;
use super::score::{Candidate, rank};
use super::topology::names;
use super::windows::over_usual_range;
use crate::domain::text::clean_line;
use crate::domain::{Call, Decision, Finding, Lang, Outcome, Plan, State, Step, StepState, Symptom};
use crate::reason::StepMove;

/// Rounds of calls within one step.
const MAX_TURNS: usize = 3;
/// Series asked of one host.
const MAX_RANKED_SERIES: usize = 4;
/// Services looked at in one step.
const MAX_SERVICES: usize = 6;
/// Names under which the logs of machines are usually kept, beside those of services.
const MACHINE_LOGS: [&str; 2] = ["kernel", "kubelet"];
/// Services looked at because they share a queue with the first ones.
const MAX_SHARERS: usize = 3;
/// Nodes and other services looked at beside them.
const MAX_AROUND: usize = 4;
/// From this probability on a cause is decisive once its own questions are answered.
const DECISIVE: f64 = 0.9;
/// Steps in all: each costs a round.
const MAX_STEPS: usize = 9;
const MAX_QUOTE_CHARS: usize = 140;

/// A question of the first plan: in both languages, the words by which a runbook asks it, and the calls that answer it.
struct Asking {
    texts: (String, String),
    words: &'static [&'static str],
    calls: Vec<Call>,
}

/// The first plan.
pub(super) fn plan(state: &State) -> Plan {
    let centres = centres(state);
    let mut known = std::collections::BTreeSet::new();
    let callees = centres.iter().flat_map(|service| state.topology.get(service)).flatten();
    let callees: Vec<String> =
        callees.filter(|callee| known.insert(callee.as_str())).take(MAX_SERVICES).cloned().collect();
    let around = around(state, &centres, &callees);
    let asked = [
        own_metric(state),
        centre(state, &centres),
        dependencies(state, &callees),
        surroundings(state, &around),
        leading_cause(state),
        Some(earlier_changes(state)),
    ];
    let steps = asked.into_iter().flatten().enumerate().map(|(index, Asking { texts: (en, zh), words, calls })| {
        new_step(index as u32 + 1, state.facts.lang.pick(en, zh), reason(state, words), calls)
    });
    Plan { steps: steps.collect(), revisions: Vec::new() }
}

fn own_metric(state: &State) -> Option<Asking> {
    let expr = state.facts.metric.as_ref()?;
    let exprs = [Some(expr.clone()), over_usual_range(expr)];
    Some(Asking {
        texts: (
            "How does the alert's own metric run, over its own window and the usual one?".into(),
            "告警指标本身如何变化？按告警窗口和常用窗口分别查看".into(),
        ),
        words: &["metric", "rate", "指标", "error rate", "错误率"],
        calls: exprs.iter().flatten().filter_map(|expr| calls::metric(state, expr)).collect(),
    })
}

fn centre(state: &State, centres: &[String]) -> Option<Asking> {
    let list = listed(centres)?;
    Some(Asking {
        texts: (
            format!("What do logs, metrics and instances of {list} show?"),
            format!("{list} 的日志、指标和实例状态有什么异常？"),
        ),
        words: &["log", "日志", "pod", "instance", "实例", "error", "错误"],
        calls: centres.iter().flat_map(|service| look_at(state, service)).collect(),
    })
}

fn dependencies(state: &State, callees: &[String]) -> Option<Asking> {
    let list = listed(callees)?;
    Some(Asking {
        texts: (
            format!("Are the services that it depends on well: {list}?"),
            format!("它依赖的服务是否正常：{list}？"),
        ),
        words: &["depend", "downstream", "upstream", "database", "依赖", "下游", "上游", "数据库"],
        calls: callees.iter().flat_map(|service| look_at(state, service)).collect(),
    })
}

fn surroundings(state: &State, around: &[String]) -> Option<Asking> {
    let list = listed(around)?;
    let of_each = around.iter().flat_map(|name| look_at(state, name));
    Some(Asking {
        texts: (
            format!("Is it in the machines under it, or in something else that stands out: {list}?"),
            format!("是否出在所在机器或其他异常对象上：{list}？"),
        ),
        words: &["node", "host", "machine", "节点", "主机", "机器"],
        calls: of_each.chain(MACHINE_LOGS.iter().filter_map(|name| calls::logs(state, name))).collect(),
    })
}

/// What tells the leading cause from the others.
fn leading_cause(state: &State) -> Option<Asking> {
    let view = View::of(state);
    let ranked = rank(&view);
    let first = leading(&ranked)?;
    let question = discriminating(first, state.facts.lang);
    let calls = questions_of(state, first);
    Some(Asking { texts: (question.clone(), question), words: &["metric", "指标"], calls })
}

fn earlier_changes(state: &State) -> Asking {
    Asking {
        texts: ("Was anything changed before it began?".into(), "开始之前有没有变更？".into()),
        words: &["deploy", "release", "rollback", "change", "发布", "变更", "回滚"],
        calls: calls::changes(state).into_iter().collect(),
    }
}

/// The names as a list; nothing when there are none.
fn listed(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(", "))
}

fn new_step(id: u32, question: String, reason: String, calls: Vec<Call>) -> Step {
    Step { id, question, reason, calls, state: StepState::Pending, conclusion: None, evidence: Vec::new() }
}

/// The services to begin with: the alert's, else those that their metrics rank first, else the ones nobody calls.
fn centres(state: &State) -> Vec<String> {
    if let Some(service) = &state.facts.service {
        return vec![service.clone()];
    }
    let ranked = state.evidence.iter().filter_map(|evidence| match &evidence.data {
        Finding::RankedService(ranked) => Some(ranked.service.clone()),
        Finding::Workload(workload) if workload.ready < workload.desired => Some(workload.name.clone()),
        _ => None,
    });
    let mut found: Vec<String> = ranked.take(3).collect();
    if found.is_empty() {
        let called: Vec<&String> = state.topology.values().flatten().collect();
        found.extend(state.topology.keys().filter(|caller| !called.contains(caller)).take(2).cloned());
    }
    if state.facts.symptom == Symptom::Queue {
        found.extend(sharers(state, &found));
    }
    found.dedup();
    found
}

/// Who calls the same as these: who fills a queue is not who falls behind with it.
fn sharers(state: &State, services: &[String]) -> Vec<String> {
    let callees: Vec<&String> = services.iter().filter_map(|service| state.topology.get(service)).flatten().collect();
    let shares = |called: &[String]| called.iter().any(|callee| callees.contains(&callee));
    let others = state.topology.iter().filter(|(caller, called)| !services.contains(caller) && shares(called));
    others.map(|(caller, _)| caller.clone()).take(MAX_SHARERS).collect()
}

/// What no call leads to: the nodes of the pods, and whatever else its metrics rank high.
fn around(state: &State, centres: &[String], callees: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let is_known = centres.iter().chain(callees).any(|known| known == name) || found.iter().any(|f| f == name);
        if !is_known && found.len() < MAX_AROUND {
            found.push(name.to_string());
        }
    };
    for evidence in &state.evidence {
        match &evidence.data {
            Finding::Pod(pod) => pod.node.as_deref().into_iter().for_each(&mut add),
            Finding::RankedService(ranked) => add(&ranked.service),
            _ => {}
        }
    }
    found
}

/// Everything about one service that was not asked yet.
fn look_at(state: &State, service: &str) -> Vec<Call> {
    let all =
        [calls::logs(state, service), calls::anomalies(state, Some(service)), calls::status(state, Some(service))];
    let all = all.into_iter().flatten().chain(ranked_series(state, service));
    all.filter(|call| !state.was_called(call)).collect()
}

/// The series for which something outside of the topology (a host) was ranked: it has no service label to ask by.
fn ranked_series(state: &State, name: &str) -> Vec<Call> {
    if names(&state.topology).contains(name) {
        return Vec::new();
    }
    let ranked = state.evidence.iter().find_map(|evidence| match &evidence.data {
        Finding::RankedService(ranked) if ranked.service == name => Some(ranked),
        _ => None,
    });
    let exprs = ranked.into_iter().flat_map(|ranked| &ranked.anomalous).take(MAX_RANKED_SERIES);
    exprs.filter_map(|expr| calls::metric(state, expr)).collect()
}

/// Why a step is asked: the line of a runbook that speaks of it, else the kind of the alert.
fn reason(state: &State, words: &[&str]) -> String {
    let lang = state.facts.lang;
    let named = state.hits.iter().enumerate().find_map(|(index, hit)| {
        let item = list_items(&hit.content).into_iter().find(|item| {
            let item = item.to_lowercase();
            words.iter().any(|word| item.contains(word))
        })?;
        Some((index + 1, clean_line(&item, MAX_QUOTE_CHARS)))
    });
    match named {
        Some((n, item)) => lang.pick(format!("runbook [{n}]: {item}"), format!("文档 [{n}]：{item}")),
        None => lang.pick("what such an alert needs first".into(), "此类告警首先要确认".into()),
    }
}

/// What tells the leading cause from its nearest neighbour.
fn discriminating(candidate: &Candidate, lang: Lang) -> String {
    let kind = candidate.category().title(lang);
    match candidate.signature.neighbours.first() {
        Some(neighbour) => {
            let other = neighbour.category.title(lang);
            lang.pick(format!("Is it \"{kind}\" rather than \"{other}\"?"), format!("是“{kind}”，还是“{other}”？"))
        }
        None => lang.pick(format!("Does more speak for \"{kind}\"?"), format!("还有什么支持“{kind}”？")),
    }
}

/// The calls that a signature asks for, as far as they were not made.
fn questions_of(state: &State, candidate: &Candidate) -> Vec<Call> {
    let service = candidate.service.as_deref().unwrap_or_default();
    let service = service.replace('\\', "\\\\").replace('"', "\\\"");
    let exprs = candidate.signature.questions.iter().flat_map(|question| &question.metrics);
    let mut calls: Vec<Call> =
        exprs.filter_map(|expr| calls::metric(state, &expr.replace("{service}", &service))).collect();
    if let Some(service) = candidate.service.as_deref() {
        calls.extend(look_at(state, service));
    }
    calls.retain(|call| !state.was_called(call));
    calls
}

/// The next move of a step.
pub(super) fn work(state: &State, step: &Step, turn: usize) -> StepMove {
    let lang = state.facts.lang;
    if turn == 0 {
        let calls: Vec<Call> =
            step.calls.iter().filter(|call| state.has_tool(&call.tool) && !state.was_called(call)).cloned().collect();
        if !calls.is_empty() {
            return StepMove::Call { thought: step.question.clone(), calls };
        }
    } else if turn < MAX_TURNS
        && let Some((service, ids, calls)) = elsewhere(state)
    {
        let service = clean_line(&service, 80);
        let cited = cite(&ids);
        let thought =
            lang.pick(format!("{cited} points to {service}: look there"), format!("{cited} 指向 {service}，继续查看"));
        return StepMove::Call { thought, calls };
    }
    StepMove::Done { conclusion: conclusion(state, step) }
}

/// The service that the leading cause lies in, with the calls that nobody made there yet.
fn elsewhere(state: &State) -> Option<(String, Vec<String>, Vec<Call>)> {
    let view = View::of(state);
    let ranked = rank(&view);
    let first = ranked.iter().take(3).find(|one| {
        let service = one.service.as_deref().unwrap_or_default();
        one.probability() >= 0.2 && !look_at(state, service).is_empty() && may_be_asked(state, service)
    })?;
    let service = first.service.clone()?;
    let calls = look_at(state, &service);
    Some((service, first.evidence_for.clone(), calls))
}

/// Hosts have no logs of their own; services that something is known of do.
fn may_be_asked(state: &State, service: &str) -> bool {
    names(&state.topology).contains(service)
        || state.facts.service.as_deref() == Some(service)
        || state.evidence.iter().any(|evidence| match &evidence.data {
            Finding::Workload(workload) => workload.name == service,
            Finding::Pattern(pattern) => pattern.service.as_deref() == Some(service),
            Finding::RankedService(ranked) => ranked.service == service,
            _ => false,
        })
}

/// What a step found, with citations.
fn conclusion(state: &State, step: &Step) -> String {
    let lang = state.facts.lang;
    let made: Vec<_> =
        state.invocations.iter().filter(|made| made.step == Some(step.id) || step.calls.contains(&made.call)).collect();
    let failed: Vec<&str> = made
        .iter()
        .filter_map(|made| match &made.outcome {
            Outcome::Failure(failure) => Some(failure.message.as_str()),
            Outcome::Output(_) => None,
        })
        .collect();
    let view = View::of(state);
    let ids: Vec<&String> = made.iter().flat_map(|made| &made.evidence).collect();
    let mut telling: Vec<_> =
        view.all.iter().filter(|one| ids.contains(&&one.evidence.id) && one.strength >= 0.5).collect();
    telling.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    let parts: Vec<String> = telling
        .iter()
        .take(3)
        .map(|one| format!("{} [{}]", clean_line(&one.evidence.summary, 200), one.evidence.id))
        .collect();
    match (parts.is_empty(), failed.first()) {
        (false, _) => parts.join(lang.pick("; ", "；")),
        (true, Some(message)) => {
            let message = clean_line(message, MAX_QUOTE_CHARS);
            lang.pick(format!("could not be answered: {message}"), format!("未能查明：{message}"))
        }
        (true, None) => lang.pick("nothing that stands out".into(), "没有明显异常".into()),
    }
}

/// What to do after a step.
pub(super) fn replan(state: &State) -> Decision {
    let lang = state.facts.lang;
    let view = View::of(state);
    let ranked = rank(&view);
    let pending: Vec<Step> = state.plan.steps.iter().filter(|step| step.state == StepState::Pending).cloned().collect();
    let has_room = state.plan.steps.iter().filter(|step| step.state != StepState::Skipped).count() < MAX_STEPS;
    if has_room && let Some(decision) = redirect(state, &ranked, &pending) {
        return decision;
    }
    if let Some(first) = ranked.first()
        && first.probability() >= DECISIVE
        && first.groups >= 2
        && questions_of(state, first).is_empty()
        && pending.iter().all(|step| step.calls.iter().all(|call| state.was_called(call)))
    {
        let kind = first.category().title(lang);
        let cited = cite(&first.evidence_for);
        let reason = lang.pick(
            format!("{kind} is well supported {cited}, and nothing is left that could change it"),
            format!("{kind}证据充分 {cited}，无需继续"),
        );
        return Decision::Finish { reason };
    }
    if pending.is_empty() {
        return Decision::Finish { reason: lang.pick("nothing is left to ask".into(), "没有更多问题".into()) };
    }
    Decision::Continue
}

/// A revision when the leading cause lies where nobody looked, or has questions of its own that nobody asked.
fn redirect(state: &State, ranked: &[Candidate], pending: &[Step]) -> Option<Decision> {
    let lang = state.facts.lang;
    let asked = |call: &Call| pending.iter().any(|step| step.calls.contains(call));
    let leading = ranked.iter().take(2).find(|one| {
        one.probability() >= 0.2
            && may_be_asked(state, one.service.as_deref().unwrap_or_default())
            && questions_of(state, one).iter().any(|call| !asked(call))
    })?;
    let service = clean_line(leading.service.as_deref().unwrap_or_default(), 80);
    let calls = questions_of(state, leading);
    let id = state.plan.steps.iter().map(|step| step.id).max().unwrap_or(0) + 1;
    let kind = leading.category().title(lang);
    let cited = cite(&leading.evidence_for);
    let reason = lang.pick(format!("{cited} points to {service}: {kind}"), format!("{cited} 指向 {service}：{kind}"));
    let mut steps = vec![new_step(id, discriminating(leading, lang), reason.clone(), calls)];
    // Pending steps keep their place under new numbers: a number once skipped stays skipped.
    let others = pending.iter().enumerate().map(|(index, step)| Step { id: id + 1 + index as u32, ..step.clone() });
    steps.extend(others);
    Some(Decision::Revise { pending: steps, reason })
}
