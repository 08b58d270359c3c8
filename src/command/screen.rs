//! The terminal front end as the commands use it: whether there is one, its theme, and one diagnosis shown on it.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::diagnose::exit_of;
use super::diagnosing::{self, Case, Diagnosing, Settings, Steered};
use super::logbook::Held;
use super::recording::Recording;
use super::world::World;
use super::{BadInput, Context, Exit, Style, View};
use crate::control::{self, ControlSink};
use crate::domain::{Diagnosis, Lang, SessionRecord};
use crate::event::{Event, EventKind};
use crate::trace::replay;
use crate::ui::report;
use crate::ui::tui::state::Playback;
use crate::ui::tui::{self, App, Effect, Kind, Left, Mode, Msg, Theme, ThemeName, ansi, markdown};

/// What to do where there is no terminal.
pub const AS_TEXT: &str = "use --view plain";
/// Lines of what happened before that are read back at once.
const READ_BACK: usize = 200_000;
/// Seconds between two events of a playback, at most: nobody watches a pause of minutes.
const LONGEST_WAIT: f64 = 30.0;

/// How a screen looks.
#[derive(Debug, Clone, Default, Args)]
pub struct ScreenArgs {
    /// Take the full screen: panels for plan, calls, evidence, timeline, hypotheses and report
    #[arg(long)]
    tui: bool,
    #[command(flatten)]
    pub theme: ThemeArgs,
}

/// The colours of a screen.
#[derive(Debug, Clone, Default, Args)]
pub struct ThemeArgs {
    /// The colours of the terminal front end
    #[arg(long, value_enum, default_value_t = ThemeArg::Auto, env = "ONCALL_THEME", value_name = "NAME")]
    theme: ThemeArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum ThemeArg {
    /// By what the terminal says of itself
    #[default]
    Auto,
    Dark,
    Light,
    /// The 16 colours that every terminal has
    #[value(name = "16")]
    Sixteen,
    /// No colours
    None,
}

impl ScreenArgs {
    /// # Errors
    /// A screen was asked for and there is none: exit 2.
    pub fn check(&self, context: &Context) -> anyhow::Result<()> {
        match (self.tui, context.view) {
            (true, View::Json) => return Err(BadInput("--tui does not go with --json".into()).into()),
            (true, _) => need_terminal("--tui", AS_TEXT)?,
            (false, View::Tui) => need_terminal("--view tui", AS_TEXT)?,
            (false, _) => {}
        }
        if self.tui && context.terminal.is_dumb() {
            let lang = context.lang.unwrap_or_default();
            context.note(lang.pick(
                "this terminal cannot be drawn on (TERM is empty or dumb): showing text",
                "此终端无法绘制界面（TERM 为空或 dumb），以文本显示",
            ));
        }
        Ok(())
    }

    /// How to show a diagnosis; `None`: as text.
    pub fn mode(&self, context: &Context) -> Option<Mode> {
        match (self.tui, context.view) {
            (true, _) if !context.terminal.is_dumb() => Some(Mode::Full),
            (false, View::Tui) => Some(Mode::Live),
            // A dumb terminal was asked for a screen: text is what it can show.
            _ => None,
        }
    }
}

/// # Errors
/// Input or output are no terminal: exit 2. `instead` says what to do about it.
pub fn need_terminal(what: &str, instead: &str) -> anyhow::Result<()> {
    let streams = [
        ("standard input", io::stdin().is_terminal()),
        ("standard output", io::stdout().is_terminal()),
        ("standard error", io::stderr().is_terminal()),
    ];
    match streams.into_iter().find(|(_, is_terminal)| !is_terminal) {
        Some((stream, _)) => Err(BadInput(format!("{what} needs a terminal, and {stream} is none: {instead}")).into()),
        None => Ok(()),
    }
}

/// The theme that was asked for, else what fits the terminal.
pub fn theme(args: &ThemeArgs, context: &Context) -> ThemeName {
    match args.theme {
        ThemeArg::Dark => ThemeName::Dark,
        ThemeArg::Light => ThemeName::Light,
        ThemeArg::Sixteen => ThemeName::Sixteen,
        ThemeArg::None => ThemeName::None,
        ThemeArg::Auto if context.stdout == Style::Plain => ThemeName::None,
        ThemeArg::Auto => context.terminal.theme(),
    }
}

/// A screen as it was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub mode: Mode,
    pub theme: ThemeName,
}

/// A front end with both ends of its channels.
pub struct Desk {
    pub app: App,
    pub inbox: UnboundedSender<Msg>,
    pub messages: UnboundedReceiver<Msg>,
    pub effects: UnboundedReceiver<Effect>,
    pub outbox: UnboundedSender<Effect>,
}

impl Desk {
    pub fn new(kind: Kind, lang: Lang, zone: TimeZone, theme: ThemeName) -> Self {
        let size = crossterm::terminal::size().unwrap_or((80, 24));
        let app = App::new(kind, lang, zone, theme, size, Timestamp::now());
        let (inbox, messages) = unbounded_channel();
        let (outbox, effects) = unbounded_channel();
        Self { app, inbox, messages, effects, outbox }
    }
}

/// A context for what runs below a screen: nothing draws but the screen.
pub fn quiet(context: &Context) -> Context {
    Context { stderr: Style::Plain, attended: true, ..context.clone() }
}

/// Runs a diagnosis while the screen follows and steers it; at the end its report stays in the scrollback.
pub(super) async fn diagnose(
    case: Case,
    world: World,
    settings: Settings<'_>,
    Wanted { mode, theme }: Wanted,
    context: &Context,
    cancel: CancellationToken,
) -> anyhow::Result<Exit> {
    let zone = case.zone.clone();
    let mut desk = Desk::new(Kind::Diagnosis, case.facts.lang, zone.clone(), theme);
    let quiet = quiet(context);
    let (controls, wishes) = control::channel();
    let steered = Some(Steered { wishes, approvals: Arc::default() });
    let settings = Settings { steered, ..settings };
    let Diagnosing { session_id, mut events, mut run, mut recording, fleet } =
        diagnosing::begin(case, world, settings, &quiet, cancel.clone())?;
    let mut held = context.logbook.hold();
    let mut helper = Helper { session_id, controls, inbox: desk.inbox.clone(), context: quiet };
    let left = {
        let serving = serve(&mut events, &mut desk.effects, &mut held, &mut recording, &mut helper);
        tokio::select! {
            left = tui::run(&mut desk.app, mode, &mut desk.messages, &desk.outbox) => left?,
            never = serving => match never {},
        }
    };
    drop(held);
    if left == Left::AtOnce {
        run.abort();
        return Ok(Exit::Interrupted);
    }
    if left == Left::Terminated {
        cancel.cancel();
    }
    while let Some(event) = events.recv().await {
        recording.event(&event);
    }
    let diagnosis = (&mut run).await?;
    print_report(&diagnosis, &zone, theme, context)?;
    recording.finish(context).await;
    fleet.close().await;
    Ok(exit_of(diagnosis.status))
}

/// What a diagnosis on a screen is served with.
struct Helper {
    session_id: String,
    controls: ControlSink,
    inbox: UnboundedSender<Msg>,
    context: Context,
}

/// Carries events to the screen and wishes to the agent, for as long as it is polled.
async fn serve(
    events: &mut UnboundedReceiver<Event>,
    effects: &mut UnboundedReceiver<Effect>,
    held: &mut Held,
    recording: &mut Recording,
    helper: &mut Helper,
) -> std::convert::Infallible {
    let (mut is_open, mut has_ended) = (true, false);
    loop {
        tokio::select! {
            event = events.recv(), if is_open => match event {
                Some(event) => {
                    recording.event(&event);
                    has_ended |= matches!(event.kind, EventKind::RunEnded { .. });
                    let _ = helper.inbox.send(Msg::Event(Box::new(event)));
                }
                None => {
                    is_open = false;
                    // A run that broke off says nothing more; what happened follows when the screen is gone.
                    if !has_ended {
                        let _ = helper.inbox.send(Msg::Failed("the run broke off".into()));
                    }
                }
            },
            Some(effect) = effects.recv() => helper.effect(effect).await,
            Some(line) = held.next() => {
                let _ = helper.inbox.send(Msg::Logged(line));
            }
            else => std::future::pending().await,
        }
    }
}

impl Helper {
    async fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Control(control) => self.controls.send(control),
            Effect::ReadBack => {
                let msg = read_back(&self.session_id, &self.context).await;
                let _ = self.inbox.send(msg);
            }
            // The rest belongs to a session.
            _ => {}
        }
    }
}

/// Shows a stored session on the full screen: all at once, or played back at a speed.
pub async fn play(
    record: &SessionRecord,
    speed: Option<f64>,
    lang: Lang,
    theme: ThemeName,
    context: &Context,
) -> anyhow::Result<Exit> {
    let mut desk = Desk::new(Kind::Diagnosis, lang, TimeZone::system(), theme);
    let (inbox, context) = (desk.inbox.clone(), quiet(context));
    let playing = async {
        let events = replay::events(record);
        let _ = inbox.send(Msg::Opened { title: record.session.title.clone(), said: Vec::new() });
        let mut playback = Playback { speed: speed.unwrap_or(1.0), paused: false, played: 0, total: events.len() };
        let mut last = events.first().map(|event| event.at);
        for event in events {
            if speed.is_some() {
                let due = last.map_or(0.0, |last| event.at.duration_since(last).as_secs_f64());
                pace(due, &mut playback, &mut desk.effects, &inbox, record, &context).await;
                playback.played += 1;
                let _ = inbox.send(Msg::Played(playback));
            }
            last = Some(event.at);
            let _ = inbox.send(Msg::Event(Box::new(event)));
        }
        while let Some(effect) = desk.effects.recv().await {
            if effect == Effect::ReadBack {
                let _ = inbox.send(read_back(&record.session.id, &context).await);
            }
        }
        std::future::pending::<std::convert::Infallible>().await
    };
    let left = tokio::select! {
        left = tui::run(&mut desk.app, Mode::Full, &mut desk.messages, &desk.outbox) => left?,
        never = playing => match never {},
    };
    Ok(if left == Left::Done { Exit::Success } else { Exit::Interrupted })
}

/// Waits for the next event of a playback, by its speed; keys change the speed and pause meanwhile.
async fn pace(
    mut due: f64,
    playback: &mut Playback,
    effects: &mut UnboundedReceiver<Effect>,
    inbox: &UnboundedSender<Msg>,
    record: &SessionRecord,
    context: &Context,
) {
    loop {
        let started = Instant::now();
        let wait = Duration::try_from_secs_f64((due / playback.speed).clamp(0.0, LONGEST_WAIT)).unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(wait), if !playback.paused => return,
            Some(effect) = effects.recv() => {
                if !playback.paused {
                    due -= started.elapsed().as_secs_f64() * playback.speed;
                }
                match effect {
                    Effect::Play(changed) => (playback.speed, playback.paused) = (changed.speed, changed.paused),
                    Effect::ReadBack => {
                        let _ = inbox.send(read_back(&record.session.id, context).await);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// What the store holds of a session, line by line.
pub async fn read_back(session_id: &str, context: &Context) -> Msg {
    match super::session::read(session_id, context).await {
        Ok(record) => {
            let title = record.session.title.clone();
            Msg::Read { title, lines: lines_of(&record) }
        }
        Err(error) => Msg::Refused(format!("{error:#}")),
    }
}

/// Messages and calls in the order of time.
pub fn lines_of(record: &SessionRecord) -> Vec<String> {
    let mut lines: Vec<(Timestamp, String)> = Vec::new();
    for message in &record.messages {
        let who = message.role.id();
        lines.extend(message.content.lines().map(|line| (message.at, format!("{who}: {line}"))));
    }
    for made in &record.tool_invocations {
        let spent = made.milliseconds.map_or_else(|| "...".to_owned(), |spent| format!("{spent} ms"));
        let outcome = made.error.clone().or_else(|| made.output_preview.clone()).unwrap_or_default();
        let status = made.status.id();
        lines.push((made.started_at, format!("call {}: {} {} {status} {spent}", made.id, made.tool, made.arguments)));
        lines.extend(outcome.lines().map(|line| (made.started_at, format!("    {line}"))));
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.truncate(READ_BACK);
    let told = |(at, line): (Timestamp, String)| format!("{} {line}", at.strftime("%H:%M:%S"));
    lines.into_iter().map(told).collect()
}

/// The report on stdout, rendered for the terminal: it is the answer.
pub fn print_report(diagnosis: &Diagnosis, zone: &TimeZone, theme: ThemeName, context: &Context) -> anyhow::Result<()> {
    print_markdown(&report::markdown(diagnosis, zone), theme, context)
}

/// A text on stdout, rendered for the terminal.
pub fn print_markdown(text: &str, theme: ThemeName, context: &Context) -> anyhow::Result<()> {
    let theme = Theme::of(if context.stdout == Style::Colored { theme } else { ThemeName::None });
    let mut out = io::stdout().lock();
    for line in markdown::render(text, context.columns(), &theme) {
        writeln!(out, "{}", ansi::line(&line.line))?;
    }
    out.flush()?;
    Ok(())
}

/// What the terminal says of itself.
#[derive(Debug, Clone, Default)]
pub struct TerminalKind {
    pub term: String,
    pub colorterm: String,
    pub colorfgbg: String,
}

impl TerminalKind {
    pub fn is_dumb(&self) -> bool {
        self.term.is_empty() || self.term == "dumb"
    }

    fn theme(&self) -> ThemeName {
        let has_256 = self.term.contains("256color") || !self.colorterm.is_empty();
        if !has_256 {
            return ThemeName::Sixteen;
        }
        // `15;0`: white on black. 7 and what is brighter is a light ground.
        let ground = self.colorfgbg.rsplit(';').next().and_then(|n| n.parse::<u8>().ok());
        if ground.is_some_and(|n| n == 7 || (9..=15).contains(&n)) { ThemeName::Light } else { ThemeName::Dark }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theme_follows_what_the_terminal_says() {
        let of = |term: &str, colorfgbg: &str| {
            let (term, colorfgbg) = (term.to_owned(), colorfgbg.to_owned());
            TerminalKind { term, colorterm: String::new(), colorfgbg }.theme()
        };
        assert_eq!(of("screen", "15;0"), ThemeName::Sixteen);
        assert_eq!(of("xterm-256color", ""), ThemeName::Dark);
        assert_eq!(of("tmux-256color", "0;15"), ThemeName::Light);
        assert_eq!(of("xterm-256color", "15;default;0"), ThemeName::Dark);
    }
}
