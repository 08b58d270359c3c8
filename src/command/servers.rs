//! The MCP servers of the configuration: connected, reported, and put beside the built-in tools and sources.

use std::sync::Arc;

use super::Context;
use crate::config::{McpProtocol, McpProvides, McpServer, McpWire};
use crate::domain::{Lang, SourceReport, SourceStatus};
use crate::mcp::remembered::{self, Changes};
use crate::mcp::sources::{self, Provides};
use crate::mcp::tool::{Consent, McpTool};
use crate::mcp::{Fleet, Generation, McpError, Offer, Server, ServerSettings, Wire};
use crate::tool::Tool;
use crate::tool::builtin::Sources;

/// What the tools of servers looked like in the last run.
const REMEMBERED: &str = "mcp-tools.json";
/// Credentials of logins, a file for each server.
const TOKENS: &str = "mcp-tokens";

/// What the servers bring into a run.
#[derive(Default)]
pub struct Plugged {
    pub tools: Vec<Arc<dyn Tool>>,
    /// Servers that could not be connected.
    pub failed: Vec<SourceReport>,
    pub fleet: Fleet,
}

/// Connects to all servers for a run. Where somebody attends it, the invoker asks before each call that may change
/// something; else such calls are refused.
pub async fn plug(into: &mut Sources, lang: Lang, context: &Context) -> Plugged {
    let fleet = connect(|_| true, context).await;
    report(&fleet, lang, context);
    let consent = if context.attended { Consent::Given } else { Consent::Nobody };
    let failed = fleet.failures.iter().map(|(name, error)| failed_source(name, error)).collect();
    let mut tools = Vec::new();
    for server in &fleet.servers {
        let mut bound = Vec::new();
        for provides in provided(server.name(), context) {
            match sources::bind(server, provides, into) {
                Ok(()) => bound.push(provides),
                Err(lack) => context.warn(&format!("mcp.{}: {lack}", server.name())),
            }
        }
        tools.extend(tools_of(server, consent, |tool| !sources::is_asked_through_sources(tool, &bound)));
    }
    Plugged { tools, failed, fleet }
}

/// The tools of all servers.
pub fn tools(fleet: &Fleet, consent: Consent) -> Vec<Arc<dyn Tool>> {
    fleet.servers.iter().flat_map(|server| tools_of(server, consent, |_| true)).collect()
}

fn tools_of(server: &Arc<Server>, consent: Consent, wanted: impl Fn(&str) -> bool) -> Vec<Arc<dyn Tool>> {
    let made = |offer: &Offer| -> Arc<dyn Tool> { Arc::new(McpTool::new(Arc::clone(server), offer.clone(), consent)) };
    server.offers().iter().filter(|offer| wanted(&offer.tool)).map(made).collect()
}

/// What a server is configured to provide.
fn provided(name: &str, context: &Context) -> Vec<Provides> {
    let configured = context.config.mcp.get(name).map(|server| server.provides.as_slice()).unwrap_or_default();
    let provides = |one: &McpProvides| match one {
        McpProvides::Logs => Provides::Logs,
        McpProvides::Metrics => Provides::Metrics,
        McpProvides::Status => Provides::Status,
    };
    configured.iter().map(provides).collect()
}

/// Connects to the servers whose names are wanted, at the same time.
pub async fn connect(wanted: impl Fn(&str) -> bool, context: &Context) -> Fleet {
    let (mut settings, mut unusable) = (Vec::new(), Vec::new());
    for (name, server) in context.config.mcp.iter().filter(|(name, _)| wanted(name)) {
        match settings_of(name, server, context) {
            Ok(one) => settings.push(one),
            Err(error) => unusable.push((name.clone(), error)),
        }
    }
    let mut fleet = Fleet::connect(settings).await;
    fleet.failures.extend(unusable);
    fleet.failures.sort_by(|a, b| a.0.cmp(&b.0));
    fleet
}

/// The settings of a configured server.
///
/// # Errors
/// A variable that its table names is not set.
pub fn settings_of(name: &str, server: &McpServer, context: &Context) -> Result<ServerSettings, McpError> {
    if !server.unset.is_empty() {
        let names: Vec<_> = server.unset.iter().map(String::as_str).collect();
        return Err(McpError::Settings(format!("not set, though [mcp.{name}] names it: {}", names.join(", "))));
    }
    let wire = match &server.wire {
        McpWire::Stdio { command, args, env, cwd } => {
            Wire::Stdio { command: command.clone(), args: args.clone(), env: env.clone(), cwd: cwd.clone() }
        }
        McpWire::Http { url, http, bearer } => Wire::Http {
            url: url.clone(),
            http: http.clone(),
            bearer: bearer.clone(),
            credentials: Some(context.config.data_dir.join(TOKENS).join(format!("{name}.json"))),
        },
    };
    Ok(ServerSettings {
        name: name.to_owned(),
        wire,
        generation: match server.protocol {
            McpProtocol::Auto => Generation::Auto,
            McpProtocol::Initialize => Generation::Initialize,
            McpProtocol::Discover => Generation::Discover,
        },
        start_timeout: server.start_timeout,
        allow: server.allow.clone(),
        deny: server.deny.clone(),
    })
}

/// Says which servers failed, which tools are left out, and what changed since the last run.
pub fn report(fleet: &Fleet, lang: Lang, context: &Context) {
    for (name, error) in &fleet.failures {
        context.warn(&lang.pick(format!("mcp.{name}: {error}"), format!("MCP 服务 {name}：{error}")));
    }
    for server in &fleet.servers {
        for (tool, reason) in server.left_out() {
            let name = server.name();
            context.warn(&lang.pick(
                format!("mcp.{name}: its tool {tool} is left out: {reason}"),
                format!("MCP 服务 {name}：未采用工具 {tool}：{reason}"),
            ));
        }
    }
    let path = context.config.data_dir.join(REMEMBERED);
    match remembered::compare(&path, fleet.servers.iter().map(Arc::as_ref)) {
        Ok(changes) => changes.iter().for_each(|one| context.warn(&told(one, lang))),
        Err(error) => context.warn(&lang.pick(
            format!("cannot remember the tools of MCP servers in {}: {error}", path.display()),
            format!("无法在 {} 记录 MCP 工具：{error}", path.display()),
        )),
    }
}

fn told(changes: &Changes, lang: Lang) -> String {
    let list = |en: &str, zh: &str, tools: &[String]| {
        (!tools.is_empty()).then(|| format!("{} {}", lang.pick(en, zh), tools.join(", ")))
    };
    let parts: Vec<String> = [
        list("changed:", "已改动：", &changes.altered),
        list("new:", "新增：", &changes.added),
        list("gone:", "消失：", &changes.removed),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (server, parts) = (&changes.server, parts.join("; "));
    lang.pick(
        format!("mcp.{server}: its tools are not those of the last run: {parts} (see `oncall tools list`)"),
        format!("MCP 服务 {server}：工具与上次运行不同：{parts}（见 `oncall tools list`）"),
    )
}

fn failed_source(name: &str, error: &McpError) -> SourceReport {
    use crate::domain::FailureKind::{Timeout, Unauthorized};
    let status = match error.kind() {
        Timeout => SourceStatus::Timeout,
        Unauthorized => SourceStatus::Unauthorized,
        _ => SourceStatus::Error,
    };
    SourceReport { name: format!("mcp/{name}"), status, detail: error.to_string() }
}
