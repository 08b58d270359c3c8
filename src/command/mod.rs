//! One file per subcommand: wiring only. Here: what every command gets ([`Context`]) and how it ends ([`Exit`]).

use std::io::{self, Write};

use crate::config::Config;
use crate::domain::Lang;

pub mod alert;
pub mod ask;
pub mod completions;
pub mod config;
mod detect;
pub mod diagnose;
mod diagnosing;
pub mod doctor;
pub mod eval;
mod extract;
mod firing;
pub mod handoff;
pub mod index;
pub mod live;
pub mod logbook;
pub mod logs;
pub mod mcp;
mod memory;
pub mod metrics;
pub mod models;
pub mod prompts;
mod record;
pub mod recording;
pub mod screen;
mod runbook;
pub mod search;
mod servers;
mod services;
pub mod session;
pub mod tools;
pub mod trace;
pub mod tui;
pub mod world;

/// How a command ended, when it was no error. [`std::process::ExitCode`] in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: answered or diagnosed.
    Success,
    /// 3: tools failing, a budget hit, or a part of the input failed; the best answer so far was printed.
    Incomplete,
    /// 130: interrupted; what was gathered is printed.
    Interrupted,
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Incomplete => 3,
            Self::Interrupted => 130,
        }
    }
}

/// The user's mistake: exit 2. The message names the file, the place and what was expected.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(pub String);

/// Something required cannot be reached and there is nothing to show: exit 4.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);

/// Turns any error into the user's own, for `map_err`.
pub fn bad_input(error: impl std::fmt::Display) -> anyhow::Error {
    BadInput(error.to_string()).into()
}

/// What stdout carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Text for people: Markdown or a table.
    Plain,
    /// The same, by a front end that lives on the terminal where a command has one.
    Tui,
    /// One JSON document, or JSON lines where a command says so.
    Json,
}

/// How much is said on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// Whether a stream may get colours and moving parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Colored,
}

/// What every command gets.
#[derive(Debug, Clone)]
pub struct Context {
    pub config: Config,
    pub view: View,
    /// `--lang`; `None`: the language of the input decides.
    pub lang: Option<Lang>,
    pub verbosity: Verbosity,
    pub stdout: Style,
    pub stderr: Style,
    /// What the terminal says of itself.
    pub terminal: screen::TerminalKind,
    /// Whether somebody is there who can be asked before a call that may change something.
    pub attended: bool,
    /// `--offline`.
    pub offline: bool,
    /// Where notes, warnings and logs go.
    pub logbook: logbook::Logbook,
}

impl Context {
    pub fn is_json(&self) -> bool {
        self.view == View::Json
    }

    /// Writes a part of the answer to stdout as it stands. A closed pipe is an error that `main` ends quietly on.
    pub fn print(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Tells what happens, on stderr, unless `--quiet`.
    pub fn note(&self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.logbook.line(text);
        }
    }

    /// Tells what went wrong without stopping the run, on stderr, `--quiet` or not.
    pub fn warn(&self, text: &str) {
        let warning = self.lang.unwrap_or_default().pick("warning", "警告");
        self.logbook.line(&format!("{warning}: {text}"));
    }

    /// Columns of the terminal on stdout; 100 when it is none.
    pub fn columns(&self) -> usize {
        terminal_size::terminal_size_of(io::stdout()).map_or(100, |(width, _)| usize::from(width.0).max(20))
    }
}
