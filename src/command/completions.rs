//! `oncall completions SHELL` and `oncall man`.

use std::io::{self, Write};

use clap::{Args, CommandFactory};

use super::Exit;
use crate::cli::Cli;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to complete in
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Prints the completion script.
pub fn run(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "oncall", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Exit::Success)
}

/// Prints the manual page of the program and, one after another, of its commands (roff).
pub fn man() -> anyhow::Result<Exit> {
    let mut page = Vec::new();
    let mut command = Cli::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for subcommand in command.get_subcommands().filter(|c| c.get_name() != "help") {
        let name = format!("oncall-{}", subcommand.get_name());
        clap_mangen::Man::new(subcommand.clone().name(&name)).render(&mut page)?;
    }
    io::stdout().lock().write_all(&page)?;
    Ok(Exit::Success)
}
