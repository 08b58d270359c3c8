//! Recording a run: every event goes to the session store, and at the end the trace to an OTLP receiver where one is
//! configured. Trouble with either is a warning, told once; the answer does not depend on them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::services::redact_settings;
use super::{Context, bad_input};
use crate::config::OtlpConfig;
use crate::domain::{Lang, Role, Session, SessionKind, SessionRecord, SessionStatus};
use crate::event::Event;
use crate::http::{self, HttpError, HttpSettings, Retries};
use crate::llm::redact::Redactor;
use crate::session::{Location, Recorder, Redact};
use crate::trace::{Trace, otlp};

mod live;

use live::Live;

/// A session that is being recorded.
pub struct Recording {
    /// `None` where the system gives no thread: then nothing is stored.
    recorder: Option<Recorder>,
    /// `None` where no receiver is configured.
    live: Option<Live>,
    otlp: OtlpConfig,
    /// What the run lost to recording, and over how many events.
    lost: Duration,
    events: usize,
}

impl Recording {
    /// Begins the session of a diagnosis.
    ///
    /// # Errors
    /// `sessions.url` names no store.
    pub fn of_diagnosis(session_id: &str, alert_name: &str, lang: Lang, context: &Context) -> anyhow::Result<Self> {
        let begin = Session::begin(session_id, SessionKind::Diagnosis, "graph", alert_name, lang, Timestamp::now());
        Self::start(Trace::begin(begin), context)
    }

    /// Begins the session of a question.
    ///
    /// # Errors
    /// The same.
    pub fn of_question(session_id: &str, question: &str, lang: Lang, context: &Context) -> anyhow::Result<Self> {
        Self::start(crate::trace::question(session_id, question, lang, Timestamp::now()), context)
    }

    /// Goes on with a conversation that is stored.
    ///
    /// # Errors
    /// The same.
    pub fn of_follow_up(record: SessionRecord, question: &str, context: &Context) -> anyhow::Result<Self> {
        Self::start(crate::trace::follow_up(record, question, Timestamp::now()), context)
    }

    fn start(trace: Trace, context: &Context) -> anyhow::Result<Self> {
        let location = location(context)?;
        let otlp = context.config.otlp.clone();
        let live = match &otlp.endpoint {
            Some(url) => Some(Live::start(trace.clone(), url.clone(), otlp.clone(), redact(context)?)),
            None => None,
        };
        let recorder = Recorder::start(location, trace, redact(context)?);
        let recorder = recorder.inspect_err(|error| context.warn(&not_stored(&error.to_string(), context))).ok();
        Ok(Self { recorder, live, otlp, lost: Duration::ZERO, events: 0 })
    }

    /// Takes an event; never waits.
    pub fn event(&mut self, event: &Event) {
        let began = Instant::now();
        if let Some(recorder) = &mut self.recorder {
            recorder.record(event);
        }
        if let Some(live) = &self.live {
            live.event(event);
        }
        self.lost += began.elapsed();
        self.events += 1;
    }

    /// The answer to a question, by which route and whom; never waits.
    pub fn answered(&mut self, answer: &str, route: &'static str, model: Option<&str>) {
        let Some(recorder) = &mut self.recorder else { return };
        let (answer, model) = (answer.to_owned(), model.map(str::to_owned));
        recorder.edit(move |trace| {
            trace.message(Role::Assistant, &answer, Timestamp::now());
            let session = &mut trace.record.session;
            session.route = route.to_owned();
            session.reasoner = Some(if model.is_some() { "llm" } else { "rules" }.to_owned());
            session.model = model;
            // How the agent's run ended stays; an extract has no run.
            if session.status == SessionStatus::Running {
                trace.close(SessionStatus::Complete, None, Timestamp::now());
            }
        });
    }

    /// Ends the session: what is not stored yet is, and of the trace what was not sent.
    pub async fn finish(self, context: &Context) {
        tracing::debug!(events = self.events, microseconds = self.lost.as_micros(), "recorded");
        let sent = match self.live {
            Some(live) => live.finish().await,
            None => BTreeSet::new(),
        };
        let Some(recorder) = self.recorder else { return };
        let Some(recorded) = recorder.finish().await else { return };
        if let Err(error) = recorded.stored {
            context.warn(&not_stored(&error.to_string(), context));
        }
        if let Some(endpoint) = &self.otlp.endpoint
            && let Err(error) = export(&recorded.record, endpoint, &self.otlp, &sent).await
        {
            let lang = context.lang.unwrap_or_default();
            context.warn(&lang.pick(
                format!("the trace was not sent to {endpoint}: {error}"),
                format!("未能将追踪发送到 {endpoint}：{error}"),
            ));
        }
    }
}

fn not_stored(why: &str, context: &Context) -> String {
    let lang = context.lang.unwrap_or_default();
    lang.pick(format!("this session is not stored: {why}"), format!("本次会话未保存：{why}"))
}

/// Where sessions are kept.
///
/// # Errors
/// `sessions.url` names no store: exit 2.
pub fn location(context: &Context) -> anyhow::Result<Location> {
    Location::parse(&context.config.sessions_url, &context.config.data_dir).map_err(bad_input)
}

/// What takes secrets out of texts before they are stored.
///
/// # Errors
/// A pattern of `[redact]` that is none.
pub fn redact(context: &Context) -> anyhow::Result<Redact> {
    let redactor = Arc::new(Redactor::new(redact_settings(&context.config.redact)?));
    let of_documents = Arc::clone(&redactor);
    Ok(Redact {
        text: Arc::new(move |text| redactor.mask(text)),
        json: Arc::new(move |document| of_documents.mask_json(document)),
    })
}

/// Sends the spans of a record to an OTLP receiver (http/protobuf), but for those that it has.
///
/// # Errors
/// No connection, or an answer that is no success.
pub async fn export(
    record: &SessionRecord,
    url: &str,
    config: &OtlpConfig,
    sent: &BTreeSet<String>,
) -> Result<(), HttpError> {
    let body = otlp::encode(record, &config.service_name, |span| !sent.contains(&span.id));
    let retries = Retries { attempts: 3, longest_pause: Duration::from_secs(5), ..Retries::default() };
    send(body, url, config, retries).await
}

async fn send(body: Vec<u8>, url: &str, config: &OtlpConfig, retries: Retries) -> Result<(), HttpError> {
    let settings = HttpSettings { headers: config.headers.clone(), ..HttpSettings::default() };
    let client = http::client(url, &settings)?;
    let request = || client.post(url).header("content-type", otlp::CONTENT_TYPE).body(body.clone());
    http::send(request, retries, |_, _| {}).await.map(|_| ())
}

/// Waits until somebody wants the program to end: Ctrl-C, or the termination that a service manager sends.
pub async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
