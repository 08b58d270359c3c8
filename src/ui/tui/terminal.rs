//! The terminal while a screen of ours is on it: raw mode, the alternate screen, and giving all of it back whatever
//! happens: an end, an error, a panic, a signal.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};
use ratatui::text::Line;

use super::ansi;

/// Bytes of a text that is copied: what terminals take of one sequence.
const MAX_COPIED: usize = 74_000;

/// What is switched on now. A panic hook has no other way to know.
static ACTIVE: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const LIVE: u8 = 1;
const FULL: u8 = 2;

/// How a screen stands on the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Below what was there.
    Live,
    /// On a screen of its own.
    Full,
}

/// Which guard took the terminal last: an older one that is dropped later gives nothing back.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// The terminal in raw mode; given back when dropped.
#[derive(Debug)]
pub struct Guard(u64);

impl Guard {
    /// Takes the terminal.
    ///
    /// # Errors
    /// There is no terminal, or it refuses.
    pub fn enter(mode: Mode) -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| hook(thread::current().id()));
        // From here on dropping restores, also when the next line fails.
        let guard = Self(TAKEN.fetch_add(1, Ordering::SeqCst) + 1);
        ACTIVE.store(if mode == Mode::Full { FULL } else { LIVE }, Ordering::SeqCst);
        enable_raw_mode()?;
        match mode {
            Mode::Full => execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)?,
            Mode::Live => execute!(io::stdout(), Hide)?,
        }
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if TAKEN.load(Ordering::SeqCst) == self.0 {
            restore();
        }
    }
}

/// Gives the terminal back; harmless when it was given back already.
pub fn restore() {
    let active = ACTIVE.swap(NONE, Ordering::SeqCst);
    if active == NONE {
        return;
    }
    let mut out = io::stdout();
    // A terminal that is gone cannot be restored: nothing is left to do about an error.
    if active == FULL {
        let _ = queue!(out, DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen);
    }
    let _ = execute!(out, Show);
    let _ = disable_raw_mode();
}

/// A panic on the thread that draws gives the terminal back before it is told. One elsewhere (a tool's, which the agent
/// survives) goes to the log, so that it does not draw over the screen.
fn hook(drawer: ThreadId) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if ACTIVE.load(Ordering::SeqCst) == NONE {
            before(info);
        } else if thread::current().id() == drawer {
            restore();
            before(info);
        } else {
            tracing::error!("{info}");
        }
    }));
}

/// Stops this process as the terminal's suspend key would, with the terminal given back; returns when it goes on.
pub fn suspend() {
    restore();
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpid, kill_process};
        // Stopping oneself is always allowed.
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// Switches the reports of the mouse on or off.
pub fn mouse(on: bool) -> io::Result<()> {
    if on { execute!(io::stdout(), EnableMouseCapture) } else { execute!(io::stdout(), DisableMouseCapture) }
}

/// Hands a text to the terminal's clipboard (OSC 52), which also works over ssh; whether all of it went.
pub fn copy(text: &str) -> io::Result<bool> {
    let mut end = text.len().min(MAX_COPIED);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut out = io::stdout();
    write!(out, "\u{1b}]52;c;{}\u{7}", STANDARD.encode(&text.as_bytes()[..end]))?;
    out.flush()?;
    Ok(end == text.len())
}

/// Lines that are drawn again and again below what the terminal has shown. Moves are relative to the cursor: the terminal
/// is never asked where it is, so that this also works where nothing answers, and while keys are being read.
#[derive(Debug, Default)]
pub struct LiveRegion {
    /// As they stand on the screen, with their widths in columns.
    drawn: Vec<(String, usize)>,
}

impl LiveRegion {
    /// Draws the lines over those before. `columns` is the width of the screen now.
    pub fn draw(&mut self, out: &mut impl Write, lines: &[Line<'_>], columns: u16) -> io::Result<()> {
        let new: Vec<(String, usize)> = lines.iter().map(|line| (ansi::line(line), line.width())).collect();
        if new == self.drawn {
            return Ok(());
        }
        // A narrower screen has wrapped the old lines.
        let is_reflowed = self.drawn.iter().any(|(_, width)| *width > usize::from(columns));
        self.to_top(out, columns)?;
        if is_reflowed || new.len() < self.drawn.len() {
            write!(out, "\u{1b}[J")?;
            self.drawn.clear();
        }
        for (n, line) in new.iter().enumerate() {
            if n > 0 {
                write!(out, "\r\n")?;
            }
            if self.drawn.get(n) != Some(line) {
                write!(out, "\u{1b}[2K{}", line.0)?;
            }
        }
        self.drawn = new;
        out.flush()
    }

    /// Takes the lines away; what is written next stands where they stood.
    pub fn clear(&mut self, out: &mut impl Write, columns: u16) -> io::Result<()> {
        self.to_top(out, columns)?;
        self.drawn.clear();
        write!(out, "\u{1b}[J")?;
        out.flush()
    }

    fn to_top(&self, out: &mut impl Write, columns: u16) -> io::Result<()> {
        let columns = usize::from(columns).max(1);
        let rows: usize = self.drawn.iter().map(|(_, width)| width.div_ceil(columns).max(1)).sum();
        write!(out, "\r")?;
        if rows > 1 { write!(out, "\u{1b}[{}A", rows - 1) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(region: &mut LiveRegion, lines: &[&str], columns: u16) -> String {
        let lines: Vec<Line<'_>> = lines.iter().map(|line| Line::raw(*line)).collect();
        let mut out = Vec::new();
        region.draw(&mut out, &lines, columns).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_changed_is_written_and_nothing_when_nothing_did() {
        let mut region = LiveRegion::default();
        assert_eq!(drawn(&mut region, &["a", "b"], 80), "\r\u{1b}[2Ka\r\n\u{1b}[2Kb");
        assert_eq!(drawn(&mut region, &["a", "b"], 80), "");
        assert_eq!(drawn(&mut region, &["a", "c", "d"], 80), "\r\u{1b}[1A\r\n\u{1b}[2Kc\r\n\u{1b}[2Kd");
        assert_eq!(drawn(&mut region, &["x"], 80), "\r\u{1b}[2A\u{1b}[J\u{1b}[2Kx");
    }

    #[test]
    fn lines_that_a_narrower_screen_has_wrapped_are_taken_away_whole() {
        let mut region = LiveRegion::default();
        drawn(&mut region, &["0123456789", "ab"], 20);
        assert_eq!(drawn(&mut region, &["01234"], 5), "\r\u{1b}[2A\u{1b}[J\u{1b}[2K01234");
        let mut out = Vec::new();
        region.clear(&mut out, 5).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\r\u{1b}[J");
    }
}
