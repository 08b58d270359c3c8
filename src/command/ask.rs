//! `oncall ask`: answers a question. With a model an agent looks things up with tools; without one, or when it fails, the
//! answer is an extract of the runbooks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::diagnosing::{self, Steered};
use super::models::{self, BudgetArgs};
use super::recording::Recording;
use super::screen::ThemeArgs;
use super::{BadInput, Context, Exit, bad_input, diagnose, extract, index, live, session, tui, world};
use crate::agent::Task;
use crate::agent::ask::{AskOutcome, AskTask, answer, answer_steered, question_alert};
use crate::domain::text::{clean_line, head};
use crate::domain::{Evidence, Facts, Finding, Hit, Lang, Reference, Role, RunStatus, SessionRecord, Usage};
use crate::event::{Event, EventKind, EventSink};
use crate::knowledge::Use;
use crate::llm::{Message, ModelError};
use crate::reason::facts;
use crate::reason::llm::{Checked, Llm, Question, Route, citations};
use crate::source::incident::Incident;

const EXCERPT_CHARS: usize = 200;
const LINE_CHARS: usize = 300;
const MAX_QUESTION_BYTES: u64 = 64 << 10;

#[derive(Debug, clap::Args)]
pub struct AskArgs {
    /// The question; "-" reads it from standard input; without one, on a terminal, the interactive session opens
    pub question: Option<String>,
    /// Look into this folder of evidence too (needs a model)
    #[arg(long, value_name = "DIR")]
    incident: Option<PathBuf>,
    /// Go on with a stored session: its questions and answers are known (an id, the beginning of one, or "last")
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    session: Option<String>,
    /// Go on with the newest session
    #[arg(long = "continue")]
    resume: bool,
    /// Answer with one agent, whatever the question looks like
    #[arg(long, conflicts_with = "complex")]
    simple: bool,
    /// Make a plan and work it, whatever the question looks like
    #[arg(long)]
    complex: bool,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    theme: ThemeArgs,
}

impl AskArgs {
    /// A question in a stored session.
    pub fn follow_up(session: String, question: String, budget: BudgetArgs) -> Self {
        let (question, session, theme) = (Some(question), Some(session), ThemeArgs::default());
        Self { question, incident: None, session, resume: false, simple: false, complex: false, budget, theme }
    }

    fn route(&self) -> Option<Route> {
        match (self.simple, self.complex) {
            (true, _) => Some(Route::Simple),
            (_, true) => Some(Route::Complex),
            _ => None,
        }
    }

    /// The session that is gone on with.
    async fn earlier(&self, context: &Context) -> anyhow::Result<Option<SessionRecord>> {
        match (&self.session, self.resume) {
            (Some(id), _) => session::read(id, context).await.map(Some),
            (None, true) => session::read("last", context).await.map(Some),
            (None, false) => Ok(None),
        }
    }
}

/// What was asked and answered before, oldest first.
pub(super) fn conversation(record: &SessionRecord) -> Vec<Message> {
    let turn = |message: &crate::domain::Message| match message.role {
        Role::User => Some(Message::user(message.content.clone())),
        Role::Assistant => Some(Message::assistant(message.content.clone(), Vec::new())),
        _ => None,
    };
    record.messages.iter().filter_map(turn).collect()
}

/// The document that `oncall ask --json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    schema: &'static str,
    pub answer: String,
    pub route: Route,
    /// Why this way was taken.
    #[serde(skip_serializing_if = "String::is_empty")]
    route_reason: String,
    references: Vec<Reference>,
    session_id: String,
    /// `None`: an extract, without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What was struck from the answer, or kept it from being one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    usage: Usage,
}

pub async fn run(args: AskArgs, context: &Context) -> anyhow::Result<Exit> {
    let Some(question) = &args.question else {
        let session = if args.resume { Some("last".to_owned()) } else { args.session };
        return tui::open(
            tui::TuiArgs { session, incident: args.incident, budget: args.budget, theme: args.theme },
            context,
        )
        .await;
    };
    let question = read_question(question)?;
    let lang = context.lang.unwrap_or_else(|| Lang::of(&question));
    let (events, received) = EventSink::channel();
    let cancel = CancellationToken::new();
    let incident = args.incident.as_deref().map(Incident::open).transpose().map_err(bad_input)?;
    let zone = incident.as_ref().map_or_else(TimeZone::system, |incident| incident.zone.clone());
    let around = models::Surroundings {
        events: &events,
        cancel: &cancel,
        zone: &zone,
        incident: args.incident.as_deref().map(Path::new),
        budget: &args.budget,
        recorder: None,
    };
    let earlier = args.earlier(context).await?;
    let history = earlier.as_ref().map(conversation).unwrap_or_default();
    let session_id = earlier.as_ref().map_or_else(|| Uuid::now_v7().to_string(), |record| record.session.id.clone());
    let recording = match earlier {
        Some(record) => Recording::of_follow_up(record, &question, context)?,
        None => Recording::of_question(&session_id, &question, lang, context)?,
    };
    let Some(llm) = models::reasoner(context, &around)? else {
        if args.incident.is_some() {
            context.warn(lang.pick(
                "without a model only the runbooks are asked; `oncall diagnose --incident` reads the evidence",
                "未配置模型时只查阅手册；可用 `oncall diagnose --incident` 分析证据",
            ));
        }
        let (document, _) = by_extract(&question, lang, &session_id, Vec::new(), context).await?;
        return finish(&document, recording, lang, Exit::Success, context).await;
    };
    let interrupts = tokio::spawn(diagnose::watch_interrupts(cancel.clone()));
    let watching = tokio::spawn(watch(received, recording, context.clone()));
    let asked = Asked {
        budget: &args.budget,
        route: args.route(),
        question: Question { text: question.clone(), history },
        lang,
        zone,
        incident: incident.as_ref(),
        session_id: &session_id,
    };
    let outcome = ask(asked, Arc::clone(&llm), (events, cancel), None, context).await;
    interrupts.abort();
    let recording = watching.await?;
    outcome.refused.iter().for_each(|reason| context.warn(reason));
    let document = match &outcome.result {
        Ok(answered) => document(&outcome, answered, &llm, lang, session_id),
        Err(error) => {
            let note = no_answer(error, lang);
            context.warn(&note);
            by_extract(&question, lang, &session_id, vec![note], context).await?.0
        }
    };
    finish(&document, recording, lang, exit_of(&outcome), context).await
}

fn exit_of(outcome: &AskOutcome) -> Exit {
    match outcome.status {
        RunStatus::Cancelled => Exit::Interrupted,
        RunStatus::Incomplete if matches!(outcome.result, Err(ModelError::Budget(_))) => Exit::Incomplete,
        RunStatus::Incomplete if !outcome.refused.is_empty() => Exit::Incomplete,
        RunStatus::Incomplete | RunStatus::Complete => Exit::Success,
    }
}

/// Records and prints the answer, and ends the session.
async fn finish(
    document: &Answer,
    mut recording: Recording,
    lang: Lang,
    exit: Exit,
    context: &Context,
) -> anyhow::Result<Exit> {
    record(document, &mut recording);
    print(document, lang, context)?;
    recording.finish(context).await;
    Ok(exit)
}

fn read_question(given: &str) -> anyhow::Result<String> {
    let question = match given {
        "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().take(MAX_QUESTION_BYTES).read_to_end(&mut bytes).context("cannot read standard input")?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        question => question.to_string(),
    };
    if question.trim().is_empty() {
        return Err(BadInput("the question is empty: expected a sentence".to_string()).into());
    }
    Ok(question)
}

/// A question on its way to the agent.
pub(super) struct Asked<'a> {
    pub budget: &'a BudgetArgs,
    pub route: Option<Route>,
    pub question: Question,
    pub lang: Lang,
    pub zone: TimeZone,
    pub incident: Option<&'a Incident>,
    pub session_id: &'a str,
}

/// Answers by the model; somebody at a screen may steer it.
pub(super) async fn ask(
    asked: Asked<'_>,
    llm: Arc<Llm>,
    (events, cancel): (EventSink, CancellationToken),
    steered: Option<Steered>,
    context: &Context,
) -> AskOutcome {
    let now = asked.incident.map_or_else(Timestamp::now, |incident| incident.now);
    let alerts = vec![question_alert(&asked.question.text)];
    let facts = Facts { lang: asked.lang, ..facts::analyze(&alerts, now) };
    let world = world::build(asked.incident, None, &facts, &asked.zone, asked.lang, context).await;
    let fallback = live::fallback(asked.incident.is_some(), context).unwrap_or_default();
    let approvals = steered.as_ref().map(|steered| Arc::clone(&steered.approvals));
    let channel = (events, cancel);
    let crew = diagnosing::crew(llm.clone(), world.registry, fallback, channel, asked.budget, approvals, context);
    let task = Task {
        session_id: asked.session_id.to_string(),
        alerts,
        facts,
        zone: asked.zone,
        history: None,
        topology: world.topology,
        absent_sources: world.absent,
    };
    let task = AskTask { question: asked.question, route: asked.route, task };
    let outcome = match steered {
        Some(Steered { wishes, .. }) => answer_steered(task, llm, crew, wishes).await,
        None => answer(task, llm, crew).await,
    };
    world.fleet.close().await;
    outcome
}

/// Why there is no answer of the model.
pub(super) fn no_answer(error: &ModelError, lang: Lang) -> String {
    lang.pick(format!("the model gave no answer: {error}"), format!("模型未能给出答案：{error}"))
}

/// Keeps the answer with its session.
pub(super) fn record(document: &Answer, recording: &mut Recording) {
    recording.answered(&document.answer, route_id(document.route), document.model.as_deref());
}

/// Tells on stderr what the agent does, and records it, until its run has ended: the reasoner keeps a sink of its own, so
/// that the stream does not.
async fn watch(
    mut received: tokio::sync::mpsc::UnboundedReceiver<Event>,
    mut recording: Recording,
    context: Context,
) -> Recording {
    while let Some(event) = received.recv().await {
        recording.event(&event);
        match event.kind {
            EventKind::Thought { text, .. } => context.note(&clean_line(&text, LINE_CHARS)),
            EventKind::CallStarted { call, .. } => context.note(&crate::reason::words::call(&call)),
            EventKind::StepStarted { step, question } => {
                context.note(&format!("{step}. {}", clean_line(&question, LINE_CHARS)));
            }
            EventKind::PlanRevised { reason, .. } => context.note(&clean_line(&reason, LINE_CHARS)),
            EventKind::Warning { message } => context.warn(&clean_line(&message, LINE_CHARS)),
            EventKind::RunEnded { .. } => break,
            _ => {}
        }
    }
    recording
}

/// The agent's answer, its citations as numbered references.
pub(super) fn document(outcome: &AskOutcome, answered: &Checked, llm: &Llm, lang: Lang, session_id: String) -> Answer {
    let ids = citations(&answered.text);
    let numbers: BTreeMap<&str, usize> = ids.iter().enumerate().map(|(n, id)| (id.as_str(), n + 1)).collect();
    let cited = ids.iter().filter_map(|id| outcome.evidence.iter().find(|one| one.id == *id));
    let references: Vec<Reference> = cited.enumerate().map(|(n, one)| evidence_reference(n + 1, one)).collect();
    let notes = answered
        .struck
        .iter()
        .map(|text| lang.pick(format!("struck, for lack of evidence: {text}"), format!("因缺乏证据已删除：{text}")));
    Answer {
        schema: "oncall.answer/v1",
        answer: renumbered(&answered.text, &numbers),
        route: outcome.routed.route,
        route_reason: outcome.routed.reason.clone(),
        references,
        session_id,
        model: Some(llm.model_name().to_string()),
        notes: notes.collect(),
        usage: outcome.usage,
    }
}

fn route_id(route: Route) -> &'static str {
    match route {
        Route::Simple => "simple",
        Route::Complex => "complex",
    }
}

/// `[E7, E3]` becomes `[2][1]`.
fn renumbered(text: &str, numbers: &BTreeMap<&str, usize>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let Some(end) = rest[start..].find(']').map(|end| start + end) else { break };
        let ids: Option<Vec<usize>> = rest[start + 1..end]
            .split([',', '，', '、', ' '])
            .filter(|id| !id.is_empty())
            .map(|id| numbers.get(id).copied())
            .collect();
        out.push_str(&rest[..start]);
        match ids.filter(|ids| !ids.is_empty()) {
            Some(ids) => ids.iter().for_each(|n| out.push_str(&format!("[{n}]"))),
            None => out.push_str(&rest[start..=end]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

fn evidence_reference(n: usize, one: &Evidence) -> Reference {
    match &one.data {
        Finding::Hit(hit) => Reference { n, ..reference(hit) },
        _ => Reference {
            n,
            title: clean_line(&one.summary, LINE_CHARS),
            source: clean_line(&one.source, LINE_CHARS),
            heading: String::new(),
            excerpt: String::new(),
        },
    }
}

/// An extract of the runbooks, and the passages that its numbers mean.
pub(super) async fn by_extract(
    question: &str,
    lang: Lang,
    session_id: &str,
    notes: Vec<String>,
    context: &Context,
) -> anyhow::Result<(Answer, Vec<Hit>)> {
    let knowledge = index::open(context, Use::AsItIs).await?;
    index::refresh(&knowledge, context).await?;
    let hits = knowledge.search(question, context.config.knowledge.top_k).await?;
    let document = Answer {
        schema: "oncall.answer/v1",
        answer: extract::answer(&knowledge, question, &hits, lang).await?,
        route: Route::Simple,
        route_reason: String::new(),
        references: hits.iter().map(reference).collect(),
        session_id: session_id.to_string(),
        model: None,
        notes,
        usage: Usage::default(),
    };
    Ok((document, hits))
}

fn print(document: &Answer, lang: Lang, context: &Context) -> anyhow::Result<()> {
    if context.is_json() {
        context.print(&format!("{}\n", serde_json::to_string_pretty(document)?))?;
        return Ok(());
    }
    let mut text = document.answer.clone();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if !document.references.is_empty() {
        let _ = writeln!(text, "\n{}", lang.pick("References", "参考"));
        for reference in &document.references {
            let Reference { n, title, source, heading, .. } = reference;
            let heading = if heading.is_empty() { String::new() } else { format!(" > {heading}") };
            let _ = writeln!(text, "[{n}] {title}{heading} ({source})");
        }
    }
    if document.model.is_some() {
        for note in &document.notes {
            let _ = writeln!(text, "\n> {note}");
        }
    }
    context.print(&text)?;
    Ok(())
}

fn reference(hit: &Hit) -> Reference {
    Reference {
        n: hit.rank,
        title: hit.title.clone(),
        source: hit.source.clone(),
        heading: hit.heading_path(),
        excerpt: head(&clean_line(hit.content.trim(), EXCERPT_CHARS + 1), EXCERPT_CHARS).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_become_numbers_and_other_brackets_stay() {
        let numbers = BTreeMap::from([("E2", 1), ("E10", 2)]);
        let text = "Look [E2, E10]. See [E2] and [this](x) or [E99], list[0] [";
        assert_eq!(renumbered(text, &numbers), "Look [1][2]. See [1] and [this](x) or [E99], list[0] [");
    }
}
