//! One run of a session: a question answered or an alert diagnosed, in a task of its own, its events sent to the screen and
//! recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::lang_of;
use crate::command::ask::{self, Asked};
use crate::command::diagnosing::{self, Case, Diagnosing, Settings, Steered};
use crate::command::models::{self, BudgetArgs};
use crate::command::recording::Recording;
use crate::command::{Context, bad_input, diagnose, live, session, world};
use crate::control::ControlStream;
use crate::domain::{Alert, Diagnosis, Evidence, EvidenceKind, Finding, Hit, Lang, RunStatus};
use crate::event::{Event, EventKind, EventSink};
use crate::llm::ModelError;
use crate::reason::llm::{Llm, Question};
use crate::reason::{facts, words};
use crate::source::incident::Incident;
use crate::tool::approval::Approvals;
use crate::ui::tui::Msg;

/// What a run works with.
pub(super) struct Job {
    pub context: Context,
    pub inbox: UnboundedSender<Msg>,
    pub wishes: ControlStream,
    pub approvals: Arc<Approvals>,
    pub budget: BudgetArgs,
    /// The folder that questions look into.
    pub incident: Option<PathBuf>,
    /// The session that goes on.
    pub session_id: Option<String>,
}

/// What it leaves to the session.
pub(super) struct Finished {
    pub session_id: String,
    pub diagnosis: Option<Box<Diagnosis>>,
    pub incident: Option<PathBuf>,
}

impl Job {
    fn tell(&self, msg: Msg) {
        let _ = self.inbox.send(msg);
    }

    /// Diagnoses the alert at a place: a file, a URL, or an incident folder.
    pub async fn diagnosis(self, place: String) -> anyhow::Result<Finished> {
        self.tell(Msg::Began { title: place.clone(), at: Timestamp::now() });
        let folder = Some(Path::new(&place)).filter(|path| path.is_dir());
        let alert = if folder.is_some() { None } else { Some(place.as_str()) };
        let incident = diagnose::open_incident(alert, folder)?;
        let batch = diagnose::read_batch(alert, incident.as_ref(), &self.context).await?;
        let alerts = diagnose::choose(&batch, None, &self.context)?;
        self.diagnose(alerts, incident).await
    }

    /// Diagnoses an alert that was chosen.
    pub async fn diagnosis_of(self, alert: Alert) -> anyhow::Result<Finished> {
        self.tell(Msg::Began { title: alert.name.clone(), at: Timestamp::now() });
        self.diagnose(vec![alert], None).await
    }

    async fn diagnose(self, mut alerts: Vec<Alert>, incident: Option<Incident>) -> anyhow::Result<Finished> {
        let zone = incident.as_ref().map_or_else(TimeZone::system, |incident| incident.zone.clone());
        let now = incident.as_ref().map_or_else(Timestamp::now, |incident| incident.now);
        if incident.is_none() {
            live::add_expression(&mut alerts[0], &self.context).await;
        }
        let mut facts = facts::analyze(&alerts, now);
        facts.lang = self.context.lang.unwrap_or(facts.lang);
        let world = world::build(incident.as_ref(), alerts.first(), &facts, &zone, facts.lang, &self.context).await;
        let folder = incident.map(|incident| incident.folder);
        let case = Case { alerts, facts, zone, folder: folder.clone() };
        let Self { context, inbox, wishes, approvals, budget, .. } = self;
        let steered = Some(Steered { wishes, approvals });
        let settings = Settings { budget: &budget, record: None, refuses_stale: false, steered };
        let Diagnosing { session_id, mut events, run, mut recording, fleet } =
            diagnosing::begin(case, world, settings, &context, CancellationToken::new())?;
        // When this task is aborted, the run's own is too.
        let run = AbortOnDrop(run);
        while let Some(event) = events.recv().await {
            recording.event(&event);
            let _ = inbox.send(Msg::Event(Box::new(event)));
        }
        let diagnosis = run.wait().await?;
        recording.finish(&context).await;
        fleet.close().await;
        Ok(Finished { session_id, diagnosis: Some(Box::new(diagnosis)), incident: folder })
    }

    /// Answers a question: by the model, else by an extract of the runbooks.
    pub async fn question(self, question: String) -> anyhow::Result<Finished> {
        self.tell(Msg::Began { title: question.clone(), at: Timestamp::now() });
        let lang = lang_of(&question, &self.context);
        let earlier = match &self.session_id {
            Some(id) => Some(session::read(id, &self.context).await?),
            None => None,
        };
        let history = earlier.as_ref().map(ask::conversation).unwrap_or_default();
        let session_id = self.session_id.clone().unwrap_or_else(|| Uuid::now_v7().to_string());
        let recording = match earlier {
            Some(record) => Recording::of_follow_up(record, &question, &self.context)?,
            None => Recording::of_question(&session_id, &question, lang, &self.context)?,
        };
        let incident = self.incident.as_deref().map(Incident::open).transpose().map_err(bad_input)?;
        let zone = incident.as_ref().map_or_else(TimeZone::system, |incident| incident.zone.clone());
        let (events, received) = EventSink::channel();
        let cancel = CancellationToken::new();
        let around = models::Surroundings {
            events: &events,
            cancel: &cancel,
            zone: &zone,
            incident: self.incident.as_deref(),
            budget: &self.budget,
            recorder: None,
        };
        let llm = models::reasoner(&self.context, &around)?;
        let mut asking = Asking { job: self, question, lang, session_id, recording, received };
        match llm {
            Some(llm) => {
                let question = Question { text: asking.question.clone(), history };
                asking.by_model(llm, question, zone, incident.as_ref(), (events, cancel)).await?;
            }
            None => asking.by_extract(Vec::new(), &events).await?,
        }
        let Asking { job, session_id, recording, .. } = asking;
        recording.finish(&job.context).await;
        Ok(Finished { session_id, diagnosis: None, incident: None })
    }
}

/// A task that ends with whoever waits for it.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    async fn wait(mut self) -> Result<T, tokio::task::JoinError> {
        (&mut self.0).await
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A question under way.
struct Asking {
    job: Job,
    question: String,
    lang: Lang,
    session_id: String,
    recording: Recording,
    received: UnboundedReceiver<Event>,
}

impl Asking {
    async fn by_model(
        &mut self,
        llm: Arc<Llm>,
        question: Question,
        zone: TimeZone,
        incident: Option<&Incident>,
        channel: (EventSink, CancellationToken),
    ) -> anyhow::Result<()> {
        let events = channel.0.clone();
        let asked = Asked {
            budget: &self.job.budget,
            route: None,
            question,
            lang: self.lang,
            zone,
            incident,
            session_id: &self.session_id,
        };
        // The stream of wishes goes with this question; a later one gets its own.
        let wishes = std::mem::replace(&mut self.job.wishes, crate::control::channel().1);
        let steered = Some(Steered { wishes, approvals: Arc::clone(&self.job.approvals) });
        let outcome = {
            let answering = ask::ask(asked, Arc::clone(&llm), channel, steered, &self.job.context);
            tokio::pin!(answering);
            loop {
                tokio::select! {
                    biased;
                    Some(event) = self.received.recv() => follow(event, &mut self.recording, &self.job.inbox),
                    outcome = &mut answering => break outcome,
                }
            }
        };
        while let Ok(event) = self.received.try_recv() {
            follow(event, &mut self.recording, &self.job.inbox);
        }
        match &outcome.result {
            Ok(answered) => {
                let document = ask::document(&outcome, answered, &llm, self.lang, self.session_id.clone());
                ask::record(&document, &mut self.recording);
                self.job.tell(Msg::Answered { text: with_notes(answered.text.clone(), &document.notes) });
                Ok(())
            }
            Err(ModelError::Cancelled) => {
                self.job.tell(Msg::Said(self.lang.pick("stopped", "已停止").into()));
                Ok(())
            }
            Err(error) => self.by_extract(vec![ask::no_answer(error, self.lang)], &events).await,
        }
    }

    /// The passages become evidence, so that the answer's numbers can be opened.
    async fn by_extract(&mut self, notes: Vec<String>, events: &EventSink) -> anyhow::Result<()> {
        let context = &self.job.context;
        let (document, hits) = ask::by_extract(&self.question, self.lang, &self.session_id, notes, context).await?;
        for hit in &hits {
            events.emit(EventKind::EvidenceFound { evidence: Box::new(evidence(hit, self.lang)) });
        }
        events.emit(EventKind::RunEnded { status: RunStatus::Complete, diagnosis: None });
        while let Ok(event) = self.received.try_recv() {
            follow(event, &mut self.recording, &self.job.inbox);
        }
        ask::record(&document, &mut self.recording);
        self.job.tell(Msg::Answered { text: with_notes(citing(&document.answer, &hits), &document.notes) });
        Ok(())
    }
}

fn follow(event: Event, recording: &mut Recording, inbox: &UnboundedSender<Msg>) {
    recording.event(&event);
    let _ = inbox.send(Msg::Event(Box::new(event)));
}

fn evidence(hit: &Hit, lang: Lang) -> Evidence {
    let data = Finding::Hit(hit.clone());
    Evidence {
        id: format!("E{}", hit.rank),
        kind: EvidenceKind::Knowledge,
        source: hit.source.clone(),
        window: None,
        summary: words::summarize(&data, lang, &TimeZone::UTC),
        data,
        stale_seconds: None,
    }
}

/// `[2]` becomes `[E2]` where it is one of the passages.
fn citing(answer: &str, hits: &[Hit]) -> String {
    hits.iter()
        .fold(answer.to_owned(), |text, hit| text.replace(&format!("[{}]", hit.rank), &format!("[E{}]", hit.rank)))
}

fn with_notes(mut text: String, notes: &[String]) -> String {
    for note in notes {
        text.push_str(&format!("\n\n> {note}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_passages_become_citations_that_can_be_opened() {
        let hit = |rank| Hit {
            rank,
            score: 1.0,
            source: "a.md".into(),
            title: "A".into(),
            headings: Vec::new(),
            content: String::new(),
            via: Vec::new(),
            cosine: 1.0,
        };
        assert_eq!(citing("Look [1][2], list[3].", &[hit(1), hit(2)]), "Look [E1][E2], list[3].");
    }
}
