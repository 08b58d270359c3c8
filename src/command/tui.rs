//! `oncall tui`: the interactive session. The screen shows and takes in; what is asked for is done here, one run at a time,
//! each in a task of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jiff::tz::TimeZone;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

use super::logbook::Held;
use super::models::BudgetArgs;
use super::screen::{self, Desk, ThemeArgs};
use super::{BadInput, Context, Exit, View, session};
use crate::control::{self, Control, ControlSink};
use crate::domain::{Alert, Diagnosis, Lang, Role, SessionRecord};
use crate::tool::approval::Approvals;
use crate::trace::replay;
use crate::ui::tui::state::run::Phase;
use crate::ui::tui::state::{Pick, Who};
use crate::ui::tui::{self as front, Effect, Kind, Left, Mode, Msg};

mod commands;
mod job;

use job::{Finished, Job};

/// How long a run that was told to stop may take to put its answer together when the program ends.
const LAST_WORDS: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub struct TuiArgs {
    /// Open a stored session and go on with it (an id, the beginning of one, or "last")
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// A folder of evidence that questions may look into (needs a model)
    #[arg(long, value_name = "DIR")]
    pub incident: Option<PathBuf>,
    #[command(flatten)]
    pub budget: BudgetArgs,
    #[command(flatten)]
    pub theme: ThemeArgs,
}

pub async fn run(args: TuiArgs, context: &Context) -> anyhow::Result<Exit> {
    open(args, context).await
}

/// Opens the session, for whichever command.
///
/// # Errors
/// No terminal that can be drawn on, or no such session: exit 2.
pub(super) async fn open(args: TuiArgs, context: &Context) -> anyhow::Result<Exit> {
    if context.view == View::Json {
        return Err(BadInput("give a question: the interactive session prints no JSON".into()).into());
    }
    screen::need_terminal("the interactive session", "give a question, `oncall ask QUESTION`, or - to read one")?;
    if context.terminal.is_dumb() {
        let message = "this terminal cannot be drawn on (TERM is empty or dumb): `oncall ask` and `oncall diagnose` \
                       answer in text";
        return Err(BadInput(message.into()).into());
    }
    let earlier = match &args.session {
        Some(id) => Some(session::read(id, context).await?),
        None => None,
    };
    let lang = context.lang.or(earlier.as_ref().map(|record| record.session.lang)).unwrap_or_default();
    let theme = screen::theme(&args.theme, context);
    let mut desk = Desk::new(Kind::Session, lang, TimeZone::system(), theme);
    let mut owner = Owner {
        context: screen::quiet(context),
        inbox: desk.inbox.clone(),
        approvals: Arc::default(),
        budget: args.budget,
        incident: args.incident,
        session_id: None,
        work: None,
        last: None,
        listed: Vec::new(),
    };
    if let Some(record) = earlier {
        owner.show(&record);
    }
    let mut held = context.logbook.hold();
    let left = tokio::select! {
        left = front::run(&mut desk.app, Mode::Full, &mut desk.messages, &desk.outbox) => left?,
        never = owner.serve(&mut desk.effects, &mut held) => match never {},
    };
    drop(held);
    let has_ended = matches!(desk.app.run.phase, Phase::Ended(_));
    let was_busy = owner.leave(left, has_ended).await;
    if let Some(id) = &owner.session_id {
        let lang = desk.app.lang;
        context.note(&lang.pick(
            format!("session {id}: `oncall tui --session {id}` goes on with it"),
            format!("会话 {id}：可用 `oncall tui --session {id}` 继续"),
        ));
    }
    Ok(if was_busy || left == Left::Terminated { Exit::Interrupted } else { Exit::Success })
}

/// The session's owner: runs what the screen asks for.
struct Owner {
    context: Context,
    inbox: UnboundedSender<Msg>,
    /// What was approved for the session.
    approvals: Arc<Approvals>,
    budget: BudgetArgs,
    incident: Option<PathBuf>,
    session_id: Option<String>,
    work: Option<Work>,
    last: Option<Box<Diagnosis>>,
    /// The alerts that were listed last, to choose from.
    listed: Vec<Alert>,
}

/// The run under way.
struct Work {
    controls: ControlSink,
    task: JoinHandle<anyhow::Result<Finished>>,
}

impl Owner {
    fn tell(&self, msg: Msg) {
        // A screen that is gone needs no message.
        let _ = self.inbox.send(msg);
    }

    async fn serve(&mut self, effects: &mut UnboundedReceiver<Effect>, held: &mut Held) -> std::convert::Infallible {
        loop {
            tokio::select! {
                Some(effect) = effects.recv() => self.effect(effect).await,
                ended = ended(&mut self.work) => self.ended(ended),
                Some(line) = held.next() => self.tell(Msg::Logged(line)),
                else => std::future::pending().await,
            }
        }
    }

    async fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Control(control) => {
                if let Some(work) = &self.work {
                    work.controls.send(control);
                }
            }
            Effect::Ask(question) => self.begin(|job| job.question(question)),
            Effect::Command(command) => {
                if let Err(error) = self.command(command).await {
                    self.tell(Msg::Refused(format!("{error:#}")));
                }
            }
            Effect::Pick(Pick::Alert(index)) => {
                if let Some(alert) = self.listed.get(index).cloned() {
                    self.begin(move |job| job.diagnosis_of(alert));
                }
            }
            Effect::Pick(Pick::Resume(id)) => self.resume(&id).await,
            Effect::Pick(Pick::Model(name)) => self.choose_model(&name),
            Effect::ReadBack => {
                let msg = match &self.session_id {
                    Some(id) => screen::read_back(id, &self.context).await,
                    None => Msg::Refused("nothing is stored yet".into()),
                };
                self.tell(msg);
            }
            // What concerns the screen alone was done there.
            _ => {}
        }
    }

    /// Begins a run; the screen lets none begin while another goes.
    fn begin<F>(&mut self, run: impl FnOnce(Job) -> F)
    where
        F: Future<Output = anyhow::Result<Finished>> + Send + 'static,
    {
        if self.work.is_some() {
            return self.tell(Msg::Refused("something runs still".into()));
        }
        let (controls, wishes) = control::channel();
        let job = Job {
            context: self.context.clone(),
            inbox: self.inbox.clone(),
            wishes,
            approvals: Arc::clone(&self.approvals),
            budget: self.budget.clone(),
            incident: self.incident.clone(),
            session_id: self.session_id.clone(),
        };
        self.work = Some(Work { controls, task: tokio::spawn(run(job)) });
    }

    fn ended(&mut self, ended: anyhow::Result<Finished>) {
        self.work = None;
        match ended {
            Ok(finished) => {
                self.session_id = Some(finished.session_id);
                self.incident = finished.incident.or(self.incident.take());
                self.last = finished.diagnosis.or(self.last.take());
            }
            Err(error) => self.tell(Msg::Failed(format!("{error:#}"))),
        }
    }

    async fn resume(&mut self, id: &str) {
        match session::read(id, &self.context).await {
            Ok(record) => self.show(&record),
            Err(error) => self.tell(Msg::Refused(format!("{error:#}"))),
        }
    }

    /// Puts a stored session on the screen; what is asked next goes on with it.
    fn show(&mut self, record: &SessionRecord) {
        self.session_id = Some(record.session.id.clone());
        open_record(record, &self.inbox);
        self.last = record.diagnosis.clone().and_then(|value| serde_json::from_value(value).ok()).map(Box::new);
    }

    /// Ends what runs; whether something did. What has told its end is still written down.
    async fn leave(&mut self, left: Left, has_ended: bool) -> bool {
        let Some(Work { controls, mut task }) = self.work.take() else { return false };
        if left == Left::Terminated && !has_ended {
            controls.send(Control::Stop);
        }
        if (left == Left::Terminated || has_ended)
            && let Ok(Ok(Ok(finished))) = tokio::time::timeout(LAST_WORDS, &mut task).await
        {
            self.session_id = Some(finished.session_id);
            return !has_ended;
        }
        task.abort();
        // The recorder writes what it has when the task is gone.
        let _ = task.await;
        true
    }

    fn choose_model(&mut self, name: &str) {
        let overrides = crate::config::Overrides {
            file: self.context.config.file.clone(),
            data_dir: Some(self.context.config.data_dir.clone()),
            model: Some(name.to_owned()),
            offline: self.context.offline && name == "none",
        };
        match crate::config::load(&overrides, &crate::config::Surroundings::of_process()) {
            Ok(config) => {
                self.context.config = config;
                self.tell(Msg::Said(format!("model: **{name}**")));
            }
            Err(error) => self.tell(Msg::Refused(error.to_string())),
        }
    }
}

/// Waits for the end of the run; for ever where there is none.
async fn ended(work: &mut Option<Work>) -> anyhow::Result<Finished> {
    match work {
        Some(work) => match (&mut work.task).await {
            Ok(finished) => finished,
            Err(error) => Err(anyhow::anyhow!("the run broke off: {error}")),
        },
        None => std::future::pending().await,
    }
}

/// A stored session as messages for a screen: what was said, then what happened.
pub(super) fn open_record(record: &SessionRecord, inbox: &UnboundedSender<Msg>) {
    let said = record.messages.iter().filter_map(|message| {
        let who = match message.role {
            Role::User => Who::User,
            Role::Assistant => Who::Assistant,
            Role::Thought | Role::Warning => return None,
        };
        Some((who, message.content.clone(), message.at))
    });
    let _ = inbox.send(Msg::Language(record.session.lang));
    let _ = inbox.send(Msg::Opened { title: record.session.title.clone(), said: said.collect() });
    for event in replay::events(record) {
        let _ = inbox.send(Msg::Event(Box::new(event)));
    }
}

/// The language of a text, unless one was asked for.
fn lang_of(text: &str, context: &Context) -> Lang {
    context.lang.unwrap_or_else(|| Lang::of(text))
}
