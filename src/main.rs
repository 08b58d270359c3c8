//! Parse, run, exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use oncall::cli::{Cli, Command};
use oncall::command::{self, BadInput, Context, Exit, Style, Unreachable, Verbosity};
use oncall::config::ConfigError;
use oncall::knowledge::{EmbedError, KnowledgeError};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(code_of(&error))
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    // These two need no configuration, and must work where it is broken.
    match &cli.command {
        Command::Completions(args) => return command::completions::run(args),
        Command::Man => return command::completions::man(),
        _ => {}
    }
    let context = cli.global.context()?;
    start_logging(&context);
    for warning in &context.config.warnings {
        context.warn(warning);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        match cli.command {
            Command::Diagnose(args) => command::diagnose::run(args, &context).await,
            Command::Ask(args) => command::ask::run(args, &context).await,
            Command::Tui(args) => command::tui::run(args, &context).await,
            Command::Search(args) => command::search::run(args, &context).await,
            Command::Index(args) => command::index::run(args, &context).await,
            Command::Alert(args) => command::alert::run(args, &context).await,
            Command::Logs(args) => command::logs::run(args, &context).await,
            Command::Metrics(args) => command::metrics::run(args, &context).await,
            Command::Session(args) => command::session::run(args, &context).await,
            Command::Trace(args) => command::trace::run(args, &context).await,
            Command::Handoff(args) => command::handoff::run(args, &context).await,
            Command::Eval(args) => command::eval::run(args, &context).await,
            Command::Tools(args) => command::tools::run(args, &context).await,
            Command::Mcp(args) => command::mcp::run(args, &context).await,
            Command::Prompts(args) => command::prompts::run(args, &context).await,
            Command::Doctor(args) => command::doctor::run(args, &context).await,
            Command::Config(args) => command::config::run(args, &context).await,
            Command::Completions(args) => command::completions::run(&args),
            Command::Man => command::completions::man(),
        }
    });
    // A blocking read (a log that never ends) must not hold the exit.
    runtime.shutdown_background();
    result
}

/// Logs of the program itself go to stderr: warnings, with `-v` everything of ours, or what `ONCALL_LOG` says.
fn start_logging(context: &Context) {
    let default = match context.verbosity {
        // What goes wrong with an MCP server is told as an error of the call, in words of ours.
        Verbosity::Quiet => "error,rmcp=off",
        Verbosity::Normal => "error,rmcp=off,oncall=warn",
        Verbosity::Verbose => "warn,oncall=debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("ONCALL_LOG").unwrap_or_else(|_| default.into());
    let colored = context.stderr == Style::Colored;
    let writer = context.logbook.clone();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(colored).with_target(false).init();
}

fn code_of(error: &anyhow::Error) -> u8 {
    let embedding = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(KnowledgeError::Embed(error)) => Some(error),
        _ => None,
    });
    let is_users = |cause: &(dyn std::error::Error + 'static)| cause.is::<BadInput>() || cause.is::<ConfigError>();
    if error.chain().any(is_users) || matches!(embedding, Some(EmbedError::Settings(_))) {
        2
    } else if error.chain().any(|cause| cause.is::<Unreachable>()) || matches!(embedding, Some(EmbedError::Service(_)))
    {
        4
    } else {
        1
    }
}

/// Whoever read our output has gone (`oncall logs … | head`): no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
