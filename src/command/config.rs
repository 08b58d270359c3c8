//! `oncall config init` and `oncall config show`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{BadInput, Context, Exit};
use crate::config::{CONFIG_FILE, TEMPLATE, render};

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write a commented oncall.toml; never over an existing one
    Init {
        /// Where to
        #[arg(default_value = CONFIG_FILE)]
        path: PathBuf,
        /// Add what answers on the usual ports of this machine, and name the contexts of the kubeconfig
        #[arg(long)]
        detect: bool,
    },
    /// Print effective values with where each came from, secrets masked
    Show,
}

pub async fn run(args: ConfigArgs, context: &Context) -> anyhow::Result<Exit> {
    match args.action {
        Action::Init { path, detect } => {
            let found = if detect { super::detect::entries(context).await } else { String::new() };
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&path).map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    BadInput(format!("{} exists already; it was left as it is", path.display()))
                }
                _ => BadInput(format!("cannot write {}: {error}", path.display())),
            })?;
            file.write_all(TEMPLATE.as_bytes())?;
            file.write_all(found.as_bytes())?;
            context.note(&format!("wrote {}", path.display()));
        }
        Action::Show if context.is_json() => {
            let config = &context.config;
            let values: serde_json::Map<_, _> = crate::config::shown(config)
                .into_iter()
                .map(|(key, value, origin)| (key, json!({ "value": value, "origin": origin })))
                .collect();
            let document = json!({ "schema": "oncall.config/v1", "file": config.file, "data_dir": config.data_dir, "values": values });
            context.print(&format!("{document}\n"))?;
        }
        Action::Show => context.print(&render(&context.config))?,
    }
    Ok(Exit::Success)
}
