//! `oncall prompts list|show|eject`: the templates that a model gets, and a copy of them to change.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{BadInput, Context, Exit, bad_input};
use crate::domain::text::nearest;
use crate::reason::llm::prompts::{Prompts, TEMPLATES, Template};

/// Where templates go when nobody says.
const DEFAULT_FOLDER: &str = "prompts";

#[derive(Debug, Args)]
pub struct PromptsArgs {
    #[command(subcommand)]
    command: PromptsCommand,
}

#[derive(Debug, Subcommand)]
enum PromptsCommand {
    /// Name every template, what it is for, and whether a file replaces it
    List,
    /// Print a template as it is in force
    Show {
        /// Its name, as `list` gives it
        name: String,
    },
    /// Write the built-in templates into a folder, to be changed there; files that are there stay
    Eject {
        /// The folder; without it agent.prompts of the configuration, else ./prompts
        dir: Option<PathBuf>,
    },
}

pub async fn run(args: PromptsArgs, context: &Context) -> anyhow::Result<Exit> {
    let folder = context.config.agent.prompts.clone();
    match args.command {
        PromptsCommand::List => list(context)?,
        PromptsCommand::Show { name } => {
            let template = find(&name)?;
            Prompts::load(folder.as_deref()).map_err(bad_input)?;
            let own = folder.map(|dir| dir.join(format!("{}.md", template.name))).filter(|path| path.is_file());
            match own {
                Some(path) => context.print(&std::fs::read_to_string(path)?)?,
                None => context.print(template.text)?,
            }
        }
        PromptsCommand::Eject { dir } => {
            let is_configured = dir.is_none() && folder.is_some();
            let dir = dir.or(folder).unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER));
            eject(&dir, is_configured, context)?;
        }
    }
    Ok(Exit::Success)
}

fn find(name: &str) -> anyhow::Result<&'static Template> {
    TEMPLATES.iter().find(|template| template.name == name).ok_or_else(|| {
        let names = || TEMPLATES.iter().map(|template| template.name);
        let message = match nearest(name, names()) {
            Some(near) => format!("there is no template `{name}`: did you mean `{near}`?"),
            None => format!("there is no template `{name}`: there are {}", names().collect::<Vec<_>>().join(", ")),
        };
        BadInput(message).into()
    })
}

fn list(context: &Context) -> anyhow::Result<()> {
    let prompts = Prompts::load(context.config.agent.prompts.as_deref()).map_err(bad_input)?;
    let is_own = |template: &Template| prompts.overridden().contains(&template.name);
    if context.is_json() {
        let list: Vec<_> = TEMPLATES
            .iter()
            .map(|one| json!({ "name": one.name, "purpose": one.purpose, "overridden": is_own(one) }))
            .collect();
        context.print(&format!("{}\n", json!({ "schema": "oncall.prompts/v1", "prompts": list })))?;
        return Ok(());
    }
    let width = TEMPLATES.iter().map(|one| one.name.len()).max().unwrap_or(0);
    for one in TEMPLATES {
        let mark = if is_own(one) { " (yours)" } else { "" };
        context.print(&format!("{:width$}  {}{mark}\n", one.name, one.purpose))?;
    }
    Ok(())
}

fn eject(dir: &std::path::Path, is_configured: bool, context: &Context) -> anyhow::Result<()> {
    let place = |error: std::io::Error| bad_input(format!("cannot write into {}: {error}", dir.display()));
    std::fs::create_dir_all(dir).map_err(place)?;
    for template in TEMPLATES {
        let path = dir.join(format!("{}.md", template.name));
        if path.exists() {
            context.note(&format!("{} is there already and stays", path.display()));
            continue;
        }
        std::fs::write(&path, template.text).map_err(place)?;
        context.print(&format!("{}\n", path.display()))?;
    }
    if !is_configured {
        context.note(&format!("to use them, set in oncall.toml:\n[agent]\nprompts = \"{}\"", dir.display()));
    }
    Ok(())
}
