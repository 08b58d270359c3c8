//! `oncall mcp`: the servers of the configuration, and oncall as a server.

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::{BadInput, Context, Exit, Unreachable, bad_input, servers};
use crate::config::Surroundings;
use crate::domain::Lang;
use crate::domain::text::{clean_line, counted};
use crate::mcp::Fleet;
use crate::mcp::oauth::{self, Registered};

mod edit;
mod serve;

#[derive(Debug, Args)]
pub struct McpArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Connect to the configured servers and show their state, protocol, tools and latency
    List,
    /// Serve our tools to other hosts, over standard streams or HTTP
    Serve(serve::ServeArgs),
    /// Put a server into oncall.toml
    Add(edit::AddArgs),
    /// Take a server out of oncall.toml
    Remove(edit::RemoveArgs),
    /// Log in to a server that asks for OAuth, in a browser
    Login(LoginArgs),
}

pub async fn run(args: McpArgs, context: &Context) -> anyhow::Result<Exit> {
    match args.action {
        Action::List => list(context).await,
        Action::Serve(args) => serve::run(args, context).await,
        Action::Add(args) => edit::add(args, context),
        Action::Remove(args) => edit::remove(&args, context),
        Action::Login(args) => login(args, context).await,
    }
}

#[derive(Debug, Args)]
struct LoginArgs {
    /// The server's name
    name: String,
    /// The id of this program there, where it cannot register itself
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The variable that holds the secret to that id
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,
    /// A scope to ask for instead of those that the server names
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
}

async fn login(args: LoginArgs, context: &Context) -> anyhow::Result<Exit> {
    let lang = context.lang.unwrap_or_default();
    let name = &args.name;
    let Some(server) = context.config.mcp.get(name) else {
        return Err(BadInput(format!("there is no server `{name}`: `oncall mcp add {name} --url URL` first")).into());
    };
    let secret = match &args.client_secret_env {
        None => None,
        Some(variable) => match Surroundings::of_process().variables.remove(variable) {
            Some(secret) => Some(secret.trim().to_owned()),
            None => return Err(BadInput(format!("the variable {variable} is not set")).into()),
        },
    };
    let registered = Registered { client_id: args.client_id, client_secret: secret, scopes: args.scope };
    let settings = servers::settings_of(name, server, context).map_err(bad_input)?;
    // Whatever `--quiet` says: without the address there is no login.
    let show = |url: &str| {
        eprintln!(
            "{}\n{url}",
            lang.pick("open this address in a browser, and agree there:", "请在浏览器中打开以下地址并授权：")
        );
    };
    let logged_in = oauth::login(&settings, registered, show).await;
    logged_in.map_err(|error| Unreachable(format!("mcp.{name}: {error}")))?;
    context.note(&lang.pick(format!("logged in to {name}"), format!("已登录 {name}")));
    Ok(Exit::Success)
}

/// One server, as the list shows it.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// What is started or called.
    place: String,
    /// `connected` or `failed`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    milliseconds: Option<u128>,
    tools: Vec<ToolRow>,
    /// Tools that no model would accept, with the reason.
    left_out: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct ToolRow {
    name: String,
    /// Whether it may run when nobody is there to agree.
    unattended: bool,
}

async fn list(context: &Context) -> anyhow::Result<Exit> {
    let lang = context.lang.unwrap_or_default();
    let fleet = servers::connect(|_| true, context).await;
    let rows = rows(&fleet, context);
    fleet.close().await;
    if context.is_json() {
        context.print(&format!("{}\n", json!({"schema": "oncall.mcp/v1", "servers": rows})))?;
    } else if rows.is_empty() {
        context.print(lang.pick(
            "no MCP server is configured: `oncall mcp add NAME -- COMMAND`, or [mcp.NAME] in oncall.toml\n",
            "未配置 MCP 服务：使用 `oncall mcp add NAME -- COMMAND`，或在 oncall.toml 中写 [mcp.NAME]\n",
        ))?;
    } else {
        context.print(&rows.iter().map(|row| describe(row, lang)).collect::<String>())?;
    }
    Ok(if fleet.failures.is_empty() { Exit::Success } else { Exit::Incomplete })
}

fn rows(fleet: &Fleet, context: &Context) -> Vec<Row> {
    let row = |(name, configured): (&String, &crate::config::McpServer)| {
        let place =
            servers::settings_of(name, configured, context).map(|settings| settings.place()).unwrap_or_default();
        let failure = fleet.failures.iter().find(|(failed, _)| failed == name).map(|(_, error)| error.to_string());
        let server = fleet.server(name);
        let about = server.map(|server| server.about());
        Row {
            name: name.clone(),
            place: clean_line(&place, 200),
            state: if server.is_some() { "connected" } else { "failed" },
            server: about.and_then(|about| about.server.clone()),
            protocol: about.map(|about| about.protocol.clone()),
            milliseconds: about.map(|about| about.connected_in.as_millis()),
            tools: server
                .into_iter()
                .flat_map(|server| server.offers())
                .map(|offer| ToolRow { name: offer.spec.name.clone(), unattended: offer.runs_unattended })
                .collect(),
            left_out: server
                .into_iter()
                .flat_map(|server| server.left_out())
                .map(|(tool, reason)| format!("{tool}: {reason}"))
                .collect(),
            error: failure,
        }
    };
    context.config.mcp.iter().map(row).collect()
}

/// A server in a few lines; tools that ask for consent are marked with `?`.
fn describe(row: &Row, lang: Lang) -> String {
    let mut text = match &row.error {
        Some(error) => {
            format!("{}  {}  {}\n    {error}\n", row.name, lang.pick("FAILED", "失败"), row.place)
        }
        None => format!(
            "{}  {}  {}\n    {}, {}, {} ms, {}\n",
            row.name,
            lang.pick("ok", "正常"),
            row.place,
            row.server.as_deref().unwrap_or("-"),
            row.protocol.as_deref().unwrap_or("-"),
            row.milliseconds.unwrap_or_default(),
            lang.pick(counted(row.tools.len() as u64, "tool"), format!("{} 个工具", row.tools.len())),
        ),
    };
    for tool in &row.tools {
        text.push_str(&format!("    - {}{}\n", tool.name, if tool.unattended { "" } else { " ?" }));
    }
    for left_out in &row.left_out {
        text.push_str(&format!("    - {} {left_out}\n", lang.pick("left out:", "未采用：")));
    }
    if row.tools.iter().any(|tool| !tool.unattended) {
        text.push_str(&format!(
            "    ? {}\n",
            lang.pick(
                "does not say that it only reads: not run unattended unless `allow` names it",
                "未声明只读：除非列入 allow，否则不会无人值守运行"
            )
        ));
    }
    text
}
