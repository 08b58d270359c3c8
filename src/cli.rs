//! What a user types: the grammar of the command line, and how it becomes a [`Context`].

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};

use crate::command::logbook::Logbook;
use crate::command::screen::TerminalKind;
use crate::command::{
    Context, Style, Verbosity, View, alert, ask, completions, config, diagnose, doctor, eval, handoff, index, logs,
    mcp, metrics, prompts, search, session, tools, trace, tui,
};
use crate::config::{ConfigError, Overrides, Surroundings};
use crate::domain::Lang;

/// An on-call assistant: an alert goes in, a diagnosis comes out whose every claim cites evidence.
#[derive(Debug, Parser)]
#[command(name = "oncall", version, max_term_width = 100, after_help = EXAMPLES, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  oncall diagnose --alert alert.json                 diagnose what fired
  oncall diagnose --incident examples/order-service  the same, offline, from a folder of evidence
  oncall ask \"how do I find what fills the disk?\"    answer from the runbooks
  oncall logs app.log other.log.gz                   which messages, how often, since when
  oncall alert show alert.json                       what was understood of a payload
  oncall index docs-kb                               make runbooks searchable

Exit codes: 0 answered, 2 bad input, 3 incomplete, 4 nothing could be reached, 130 interrupted.";

/// Flags that every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Read this configuration file and no other
    #[arg(long, global = true, value_name = "FILE", env = "ONCALL_CONFIG")]
    pub config: Option<PathBuf>,
    /// Keep the store and other data here
    #[arg(long, global = true, value_name = "DIR", env = "ONCALL_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// No model and no embedding service: embedded defaults only
    #[arg(long, global = true)]
    pub offline: bool,
    /// Reason with this model profile ("none": the rules alone)
    #[arg(long, global = true, value_name = "NAME")]
    pub model: Option<String>,
    /// How to show the answer; tui is a live view on a terminal, which auto chooses there
    #[arg(long, global = true, value_enum, default_value_t = ViewArg::Auto, env = "ONCALL_VIEW")]
    pub view: ViewArg,
    /// The same as --view json
    #[arg(long, global = true)]
    pub json: bool,
    /// Language of reports; without it the language of the question or alert decides
    #[arg(long, global = true, value_enum, env = "ONCALL_LANG")]
    pub lang: Option<LangArg>,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = ColorArg::Auto, value_name = "WHEN")]
    pub color: ColorArg,
    /// Say nothing but the answer and warnings
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more on stderr
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ViewArg {
    // Doc comments here would make the whole --help long.
    // A live view on a terminal, plain text elsewhere
    Auto,
    // A live view on the terminal
    Tui,
    // Text
    Plain,
    // One JSON document
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LangArg {
    En,
    Zh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    Auto,
    Always,
    Never,
}

/// One file below `command` each.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Diagnose an alert: gather evidence, consult the runbooks, name the cause
    Diagnose(diagnose::DiagnoseArgs),
    /// Answer a question from the knowledge base
    Ask(ask::AskArgs),
    /// Open the interactive session: ask, diagnose, look into evidence
    Tui(tui::TuiArgs),
    /// Find passages in the knowledge base, with their scores
    Search(search::SearchArgs),
    /// Split, embed and store documents
    Index(index::IndexArgs),
    /// Show what was understood of an alert payload
    Alert(alert::AlertArgs),
    /// Find the patterns in log files: count, first, last, sample
    Logs(logs::LogsArgs),
    /// Evaluate PromQL, with a sparkline, a summary and change points
    Metrics(metrics::MetricsArgs),
    /// List, show, export, compare, judge and forget stored sessions
    Session(session::SessionArgs),
    /// Show the timeline of a session
    Trace(trace::TraceArgs),
    /// Write what a shift saw, as Markdown for the next one
    Handoff(handoff::HandoffArgs),
    /// Diagnose incidents whose cause is known, and count what was found
    Eval(eval::EvalArgs),
    /// List the tools, or call one
    Tools(tools::ToolsArgs),
    /// Serve our tools to other hosts, and plug in the servers of others
    Mcp(mcp::McpArgs),
    /// Show the templates that a model gets, or copy them to change them
    Prompts(prompts::PromptsArgs),
    /// Check configuration, store, model and sources
    Doctor(doctor::DoctorArgs),
    /// Write a commented configuration file, or show what is in force
    Config(config::ConfigArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page
    Man,
}

impl GlobalArgs {
    /// Loads the configuration and settles what is automatic.
    pub fn context(&self) -> Result<Context, ConfigError> {
        let overrides = Overrides {
            file: self.config.clone(),
            data_dir: self.data_dir.clone(),
            model: self.model.clone(),
            offline: self.offline,
        };
        let surroundings = Surroundings::of_process();
        let config = crate::config::load(&overrides, &surroundings)?;
        let style = |terminal: bool| self.style(terminal, &surroundings);
        let variable = |name: &str| surroundings.variables.get(name).cloned().unwrap_or_default();
        Ok(Context {
            config,
            view: self.view(&surroundings),
            lang: self.lang.map(|lang| match lang {
                LangArg::En => Lang::En,
                LangArg::Zh => Lang::Zh,
            }),
            verbosity: match (self.quiet, self.verbose) {
                (true, _) => Verbosity::Quiet,
                (_, true) => Verbosity::Verbose,
                _ => Verbosity::Normal,
            },
            stdout: style(io::stdout().is_terminal()),
            stderr: style(io::stderr().is_terminal()),
            terminal: TerminalKind {
                term: variable("TERM"),
                colorterm: variable("COLORTERM"),
                colorfgbg: variable("COLORFGBG"),
            },
            attended: false,
            offline: self.offline,
            logbook: Logbook::default(),
        })
    }

    /// A dumb terminal is one for text, whatever was asked for. What cannot be had though it was asked for is told by
    /// the command that needs it.
    fn view(&self, surroundings: &Surroundings) -> View {
        let is_dumb = surroundings.variables.get("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let on_terminal = || io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        match self.view {
            _ if self.json => View::Json,
            ViewArg::Json => View::Json,
            ViewArg::Tui if !is_dumb => View::Tui,
            ViewArg::Auto if !self.quiet && !is_dumb && on_terminal() => View::Tui,
            ViewArg::Auto | ViewArg::Tui | ViewArg::Plain => View::Plain,
        }
    }

    /// `NO_COLOR` (no-color.org) and a dumb terminal count under `auto`; a pipe gets no escape codes either way
    /// unless it is asked for by name.
    fn style(&self, is_terminal: bool, surroundings: &Surroundings) -> Style {
        let variable = |name: &str| surroundings.variables.get(name).map(String::as_str);
        let refused = variable("NO_COLOR").is_some_and(|v| !v.is_empty()) || variable("TERM") == Some("dumb");
        match self.color {
            ColorArg::Always => Style::Colored,
            ColorArg::Auto if is_terminal && !refused => Style::Colored,
            ColorArg::Auto | ColorArg::Never => Style::Plain,
        }
    }

    /// The same for clap's own messages.
    pub fn color_choice(&self) -> ColorChoice {
        match self.color {
            ColorArg::Always => ColorChoice::Always,
            ColorArg::Auto => ColorChoice::Auto,
            ColorArg::Never => ColorChoice::Never,
        }
    }
}
