//! The loop: waits for one key, message or signal, takes in all that is there, draws at most at a fixed rate and only
//! what changed. Idle, it waits and costs nothing.

use std::io::{self, BufWriter, Stdout};
use std::time::Duration;

use crossterm::event::{Event as TerminalEvent, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{Clear, ClearType};
use futures::StreamExt;
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use super::state::run::Phase;
use super::state::{App, Effect, Msg};
use super::terminal::{self, Guard, LiveRegion, Mode};
use super::view;

/// 30 frames a second, at most.
const FRAME: Duration = Duration::from_millis(33);
/// How often running times are told anew.
const TICK: Duration = Duration::from_millis(250);
/// Messages that are taken in between two looks at the keys.
const BATCH: usize = 512;

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The user left, the run having ended; in the live view, the run ended.
    Done,
    /// The user left at once.
    AtOnce,
    /// The system wants the program to end.
    Terminated,
}

/// What the terminal shows.
enum Screen {
    Live { _guard: Guard, region: LiveRegion },
    Full { _guard: Guard, terminal: Box<FullTerminal> },
}

type FullTerminal = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

fn full_terminal() -> io::Result<FullTerminal> {
    Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())))
}

impl Screen {
    fn open(mode: Mode) -> io::Result<Self> {
        let guard = Guard::enter(mode)?;
        Ok(match mode {
            Mode::Live => Self::Live { _guard: guard, region: LiveRegion::default() },
            Mode::Full => Self::Full { _guard: guard, terminal: Box::new(full_terminal()?) },
        })
    }

    fn mode(&self) -> Mode {
        match self {
            Self::Live { .. } => Mode::Live,
            Self::Full { .. } => Mode::Full,
        }
    }

    fn draw(&mut self, app: &App) -> io::Result<()> {
        match self {
            Self::Live { region, .. } => region.draw(&mut io::stdout().lock(), &view::live::lines(app), app.size.0),
            Self::Full { terminal, .. } => terminal.draw(|frame| view::draw(frame, app)).map(|_| ()),
        }
    }

    /// Takes what is on the screen away and gives the terminal back.
    fn close(self, app: &App) -> io::Result<()> {
        if let Self::Live { mut region, .. } = self {
            region.clear(&mut io::stdout().lock(), app.size.0)?;
        }
        Ok(())
    }
}

/// The signals that concern a screen.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hang_up: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    stop: tokio::signal::unix::Signal,
    #[cfg(unix)]
    go_on: tokio::signal::unix::Signal,
}

enum Signal {
    Terminate,
    Interrupt,
    Stop,
    GoOn,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> io::Result<Self> {
        use rustix::process::Signal as Number;
        use tokio::signal::unix::{SignalKind, signal};
        let raw = |number: Number| signal(SignalKind::from_raw(number.as_raw()));
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: raw(Number::TSTP)?,
            go_on: raw(Number::CONT)?,
        })
    }

    #[cfg(unix)]
    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hang_up.recv() => Signal::Terminate,
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.stop.recv() => Signal::Stop,
            _ = self.go_on.recv() => Signal::GoOn,
        }
    }

    #[cfg(not(unix))]
    fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> Signal {
        let _ = tokio::signal::ctrl_c().await;
        Signal::Interrupt
    }
}

/// What one wait brought.
enum Woken {
    Terminal(Option<io::Result<TerminalEvent>>),
    Messages(usize),
    Tick,
    Frame,
    Signal(Signal),
}

/// The loop with what it owns.
struct Front<'a> {
    app: &'a mut App,
    screen: Screen,
    keys: EventStream,
    outbox: &'a UnboundedSender<Effect>,
    is_changed: bool,
}

/// Shows the state and changes it until the user leaves, or, in the live view, until the run has ended. The terminal is
/// given back when this returns.
///
/// # Errors
/// The terminal cannot be used.
pub async fn run(
    app: &mut App,
    mode: Mode,
    inbox: &mut UnboundedReceiver<Msg>,
    outbox: &UnboundedSender<Effect>,
) -> io::Result<Left> {
    let mut signals = Signals::listen()?;
    let screen = Screen::open(mode)?;
    let mut front = Front { app, screen, keys: EventStream::new(), outbox, is_changed: true };
    front.resized()?;
    let (mut next_frame, mut next_tick) = (Instant::now(), Instant::now());
    let mut batch = Vec::with_capacity(BATCH);
    let mut is_fed = true;
    loop {
        let woken = tokio::select! {
            biased;
            key = front.keys.next() => Woken::Terminal(key),
            signal = signals.next() => Woken::Signal(signal),
            () = tokio::time::sleep_until(next_frame), if front.is_changed => Woken::Frame,
            () = tokio::time::sleep_until(next_tick), if front.app.is_moving() => Woken::Tick,
            count = inbox.recv_many(&mut batch, BATCH), if is_fed => Woken::Messages(count),
        };
        let left = match woken {
            Woken::Terminal(Some(Ok(event))) => front.terminal_event(event)?,
            // Nobody is at the terminal any more.
            Woken::Terminal(_) => Some(Left::Terminated),
            Woken::Messages(0) => {
                is_fed = false;
                None
            }
            Woken::Messages(_) => front.take(batch.drain(..))?,
            Woken::Tick => {
                next_tick = Instant::now() + TICK;
                front.take([Msg::Tick(Timestamp::now())])?
            }
            Woken::Frame => {
                next_frame = Instant::now() + FRAME;
                front.is_changed = false;
                front.screen.draw(front.app)?;
                None
            }
            Woken::Signal(signal) => front.signal(signal)?,
        };
        if let Some(left) = left {
            let Front { app, screen, keys, .. } = front;
            // Whoever reads the terminal next must not share it with this.
            drop(keys);
            screen.close(app)?;
            return Ok(left);
        }
    }
}

impl Front<'_> {
    fn terminal_event(&mut self, event: TerminalEvent) -> io::Result<Option<Left>> {
        let msg = match event {
            TerminalEvent::Key(key) if key.kind == KeyEventKind::Release => return Ok(None),
            TerminalEvent::Key(key) if self.screen.mode() == Mode::Live && key.code == KeyCode::Char('f') => {
                self.go_full()?;
                return Ok(None);
            }
            // The other keys belong to panels, and the live view has none.
            TerminalEvent::Key(key)
                if self.screen.mode() == Mode::Live
                    && key.code != KeyCode::Esc
                    && !key.modifiers.contains(KeyModifiers::CONTROL) =>
            {
                return Ok(None);
            }
            TerminalEvent::Key(key) if super::layout::is_too_small(self.app) && key.code == KeyCode::Char('q') => {
                return Ok(Some(Left::AtOnce));
            }
            TerminalEvent::Key(key) => Msg::Key(key),
            TerminalEvent::Paste(text) => Msg::Paste(text),
            TerminalEvent::Mouse(event) => Msg::Mouse(event),
            TerminalEvent::Resize(columns, rows) => Msg::Resize(columns, rows),
            TerminalEvent::FocusGained | TerminalEvent::FocusLost => return Ok(None),
        };
        self.take([msg])
    }

    /// Takes messages in and does what comes of them here; the rest is the owner's.
    fn take(&mut self, messages: impl IntoIterator<Item = Msg>) -> io::Result<Option<Left>> {
        self.is_changed = true;
        for msg in messages {
            for effect in self.app.reduce(msg) {
                match effect {
                    Effect::Quit => return Ok(Some(Left::Done)),
                    Effect::Leave => return Ok(Some(Left::AtOnce)),
                    Effect::Suspend => self.suspend()?,
                    Effect::Redraw => self.redraw()?,
                    Effect::Mouse(on) => terminal::mouse(on)?,
                    Effect::Copy(text) => {
                        if !terminal::copy(&text)? {
                            let said =
                                self.app.lang.pick("copied the beginning: it is too long", "内容过长，只复制了开头");
                            self.app.tell(said.to_owned());
                        }
                    }
                    other => {
                        let _ = self.outbox.send(other);
                    }
                }
            }
        }
        if self.screen.mode() == Mode::Live {
            if matches!(self.app.run.phase, Phase::Ended(_)) {
                return Ok(Some(Left::Done));
            }
            // A call that needs approval is shown in full.
            if !self.app.run.approvals.is_empty() {
                self.go_full()?;
            }
        }
        Ok(None)
    }

    fn signal(&mut self, signal: Signal) -> io::Result<Option<Left>> {
        match signal {
            Signal::Terminate => return Ok(Some(Left::Terminated)),
            Signal::Interrupt => {
                let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
                return self.take([Msg::Key(key)]);
            }
            Signal::Stop => self.suspend()?,
            // Somebody else stopped us, and the shell may have changed the terminal meanwhile.
            Signal::GoOn => self.reopen()?,
        }
        Ok(None)
    }

    fn go_full(&mut self) -> io::Result<()> {
        if let Screen::Live { region, .. } = &mut self.screen {
            region.clear(&mut io::stdout().lock(), self.app.size.0)?;
        }
        terminal::restore();
        self.screen = Screen::open(Mode::Full)?;
        self.resized()
    }

    fn suspend(&mut self) -> io::Result<()> {
        if let Screen::Live { region, .. } = &mut self.screen {
            region.clear(&mut io::stdout().lock(), self.app.size.0)?;
        }
        terminal::suspend();
        self.reopen()
    }

    /// Takes the terminal anew, as after a suspension.
    fn reopen(&mut self) -> io::Result<()> {
        let mode = self.screen.mode();
        terminal::restore();
        self.screen = Screen::open(mode)?;
        if self.app.mouse && mode == Mode::Full {
            terminal::mouse(true)?;
        }
        self.resized()?;
        self.redraw()
    }

    /// Forgets what is on the screen. Ratatui's own way to clear asks the terminal where its cursor is, and the answer
    /// would go to whoever reads the keys.
    fn redraw(&mut self) -> io::Result<()> {
        if let Screen::Full { terminal, .. } = &mut self.screen {
            crossterm::execute!(io::stdout(), Clear(ClearType::All))?;
            **terminal = full_terminal()?;
        }
        self.is_changed = true;
        Ok(())
    }

    fn resized(&mut self) -> io::Result<()> {
        let (columns, rows) = crossterm::terminal::size()?;
        self.app.reduce(Msg::Resize(columns, rows));
        self.is_changed = true;
        Ok(())
    }
}
