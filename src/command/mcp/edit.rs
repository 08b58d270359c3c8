//! `oncall mcp add` and `oncall mcp remove`: servers into and out of `oncall.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;

use super::super::{BadInput, Context, Exit, bad_input};
use crate::config::edit::{with_server, without_server};
use crate::config::{AuthConfig, CONFIG_FILE, McpConfig, McpProvides, Surroundings, import, mcp};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncall mcp add time -- mcp-server-time --local-timezone UTC
  oncall mcp add prom --url http://localhost:8004/mcp --provides metrics,status
  oncall mcp add grafana --url https://mcp.example/mcp --bearer-env GRAFANA_TOKEN
  oncall mcp add --from ~/.cursor/mcp.json           what another host has configured")]
pub struct AddArgs {
    /// A name for the server; its tools are called NAME__TOOL
    #[arg(required_unless_present = "from")]
    name: Option<String>,
    /// The program to start, with its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// The address of a running server instead (streamable HTTP)
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// A variable for the program: NAME=VALUE; ${NAME} in the value stands for a variable of yours
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// A header for the address: NAME=VALUE
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    header: Vec<(String, String)>,
    /// The variable that holds the bearer token for the address
    #[arg(long, value_name = "VARIABLE")]
    bearer_env: Option<String>,
    /// A tool that may run unattended though it does not say that it only reads; * stands for any characters
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
    /// Use it as a source of: logs, metrics, status
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = provides)]
    provides: Vec<McpProvides>,
    /// Take over the servers of another host's mcpServers file, or only the one of that NAME
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "url", "env", "header", "bearer_env", "provides"])]
    from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The server's name
    name: String,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    if name.trim().is_empty() {
        return Err("expected a name before `=`".to_owned());
    }
    Ok((name.trim().to_owned(), value.to_owned()))
}

fn provides(text: &str) -> Result<McpProvides, String> {
    match text.trim() {
        "logs" => Ok(McpProvides::Logs),
        "metrics" => Ok(McpProvides::Metrics),
        "status" => Ok(McpProvides::Status),
        _ => Err("expected logs, metrics or status".to_owned()),
    }
}

pub fn add(args: AddArgs, context: &Context) -> anyhow::Result<Exit> {
    let servers = match &args.from {
        Some(path) => imported(path, args.name.as_deref(), &args.allow, context)?,
        None => BTreeMap::from([given(args)?]),
    };
    let path = config_path(context);
    let mut text = read(&path)?;
    let base = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let variables = Surroundings::of_process().variables;
    for (name, server) in &servers {
        mcp::check_name(name).map_err(|wrong| bad_input(format!("`{name}` {wrong}")))?;
        let checked = mcp::check_server(server, &base, &variables);
        let checked = checked.map_err(|(key, wrong)| bad_input(format!("{name}: {key}: {wrong}")))?;
        text = with_server(&text, name, server).map_err(|wrong| bad_input(format!("{}: {wrong}", path.display())))?;
        if !checked.unset.is_empty() {
            let unset: Vec<_> = checked.unset.iter().map(String::as_str).collect();
            context.warn(&context.lang.unwrap_or_default().pick(
                format!("{name}: not set yet: {}", unset.join(", ")),
                format!("{name}：尚未设置变量：{}", unset.join(", ")),
            ));
        }
    }
    write(&path, &text)?;
    for name in servers.keys() {
        context.note(&context.lang.unwrap_or_default().pick(
            format!("{name} is in {}; `oncall mcp list` connects to it", path.display()),
            format!("已将 {name} 写入 {}；可用 `oncall mcp list` 连接", path.display()),
        ));
    }
    Ok(Exit::Success)
}

fn given(args: AddArgs) -> anyhow::Result<(String, McpConfig)> {
    let mut command = args.command.into_iter();
    let server = McpConfig {
        command: command.next(),
        args: command.collect(),
        env: args.env.into_iter().collect(),
        url: args.url,
        headers: args.header.into_iter().collect(),
        auth: args.bearer_env.map(|name| AuthConfig {
            bearer_env: Some(name),
            api_key_env: None,
            token_file: None,
            basic: None,
        }),
        allow: args.allow,
        provides: args.provides,
        ..McpConfig::default()
    };
    if server.command.is_none() && server.url.is_none() {
        return Err(BadInput("give the program after `--`, or an address with --url".to_owned()).into());
    }
    Ok((args.name.unwrap_or_default(), server))
}

fn imported(
    path: &Path,
    only: Option<&str>,
    allow: &[String],
    context: &Context,
) -> anyhow::Result<BTreeMap<String, McpConfig>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| bad_input(format!("cannot read {shown}: {error}")))?;
    let mut found = import::read(&text).map_err(|wrong| bad_input(format!("{shown}: {wrong}")))?;
    for (name, reason) in &found.left_out {
        context.warn(
            &context
                .lang
                .unwrap_or_default()
                .pick(format!("{shown}: {name} is left out: {reason}"), format!("{shown}：未采用 {name}：{reason}")),
        );
    }
    found.servers.retain(|name, _| only.is_none_or(|only| only == name));
    found.servers.values_mut().for_each(|server| server.allow = allow.to_vec());
    if found.servers.is_empty() {
        let what = only.map_or_else(|| "no server".to_owned(), |name| format!("no server `{name}`"));
        return Err(BadInput(format!("{shown}: there is {what} to take over")).into());
    }
    Ok(found.servers)
}

pub fn remove(args: &RemoveArgs, context: &Context) -> anyhow::Result<Exit> {
    let path = config_path(context);
    let text = without_server(&read(&path)?, &args.name);
    write(&path, &text.map_err(|wrong| bad_input(format!("{}: {wrong}", path.display())))?)?;
    context.note(&context.lang.unwrap_or_default().pick(
        format!("{} is no longer in {}", args.name, path.display()),
        format!("已从 {} 移除 {}", path.display(), args.name),
    ));
    Ok(Exit::Success)
}

/// The file in force, else one in the working folder.
fn config_path(context: &Context) -> PathBuf {
    context.config.file.clone().unwrap_or_else(|| PathBuf::from(CONFIG_FILE))
}

fn read(path: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(bad_input(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Beside the old file first, so that one that breaks off leaves the old; its rights stay, a new file is the user's own.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    // A link is followed, so that what it points at is changed and not replaced by a file.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let wrong = |error: std::io::Error| anyhow::anyhow!("cannot write {}: {error}", path.display());
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside).map_err(wrong)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(wrong)?;
    if let Ok(known) = std::fs::metadata(&path) {
        file.set_permissions(known.permissions()).map_err(wrong)?;
    }
    std::fs::rename(&beside, &path).map_err(wrong)
}
