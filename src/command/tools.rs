//! `oncall tools list` and `oncall tools call`: what can be asked, and one question asked by hand.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Context, Exit, Unreachable, Verbosity, bad_input, live, servers, world};
use crate::domain::{Call, Failure, FailureKind, Finding, Lang, Outcome, Output, Served, ToolSpec, Window};
use crate::event::EventSink;
use crate::mcp::Fleet;
use crate::mcp::tool::Consent;
use crate::reason::words;
use crate::source::incident::Incident;
use crate::tool::arguments::ToolClock;
use crate::tool::builtin::{Sources, builtin_tools};
use crate::tool::invoker::{Invoker, InvokerSettings};
use crate::tool::knowledge::{self, RetrieveKnowledge};
use crate::tool::registry::Registry;

/// The window of a call that names none, where no alert says when to look.
pub(super) const USUAL_WINDOW: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, Args)]
pub struct ToolsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the tools that the sources allow
    List {
        /// An incident folder whose evidence can be asked
        #[arg(long, value_name = "DIR")]
        incident: Option<PathBuf>,
    },
    /// Call one tool and print what it found
    Call {
        /// The tool, as `oncall tools list` names it
        name: String,
        /// Its arguments as a JSON object
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
        /// An incident folder whose evidence can be asked
        #[arg(long, value_name = "DIR")]
        incident: Option<PathBuf>,
    },
}

pub async fn run(args: ToolsArgs, context: &Context) -> anyhow::Result<Exit> {
    match args.action {
        Action::List { incident } => {
            let mut opened = open(incident, context).await?;
            let fleet = servers::connect(|_| true, context).await;
            servers::report(&fleet, context.lang.unwrap_or_default(), context);
            servers::tools(&fleet, Consent::Given).into_iter().for_each(|tool| {
                opened.registry.add(tool);
            });
            let exit = list(&opened, context);
            fleet.close().await;
            exit
        }
        Action::Call { name, arguments, incident } => {
            let arguments = serde_json::from_str(&arguments)
                .map_err(|error| bad_input(format!("the arguments are no JSON: {error}")))?;
            call(open(incident, context).await?, Call { tool: name, arguments }, context).await
        }
    }
}

/// The tools without the knowledge base, which is opened only when it is asked.
struct Opened {
    registry: Registry,
    zone: TimeZone,
    /// Kinds of evidence that nothing is there for.
    absent: Vec<&'static str>,
}

async fn open(folder: Option<PathBuf>, context: &Context) -> anyhow::Result<Opened> {
    let Some(folder) = folder else {
        let (now, zone) = (Timestamp::now(), TimeZone::system());
        let live = live::open(None, now, &zone, context.lang.unwrap_or_default(), context).await;
        let clock = ToolClock { now, window: Window::ending_at(now, USUAL_WINDOW), zone };
        return Ok(opened(live.sources, clock, Default::default()));
    };
    let incident = Incident::open(&folder).map_err(bad_input)?;
    for warning in &incident.warnings {
        context.warn(warning);
    }
    let window = window_of(&incident).await;
    let clock = ToolClock { now: incident.now, window, zone: incident.zone.clone() };
    Ok(opened(Sources::from(&incident), clock, incident.topology))
}

fn opened(sources: Sources, clock: ToolClock, topology: crate::domain::Topology) -> Opened {
    let absent = sources.absent().into_iter().map(|kind| kind.as_str()).collect();
    let zone = clock.zone.clone();
    Opened { registry: builtin_tools(sources, clock, topology), zone, absent }
}

/// The time around the incident's alert; the hour before its now where no alert can be read.
pub(super) async fn window_of(incident: &Incident) -> Window {
    let batch = match incident.alert_path.is_file() {
        true => super::alert::read(&incident.alert_path.display().to_string()).await.ok(),
        false => None,
    };
    match batch {
        Some(batch) if !batch.alerts.is_empty() => crate::reason::facts::analyze(&batch.alerts, incident.now).window,
        _ => Window::ending_at(incident.now, USUAL_WINDOW),
    }
}

fn list(opened: &Opened, context: &Context) -> anyhow::Result<Exit> {
    let mut specs = opened.registry.specs();
    specs.push(knowledge::spec());
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    if context.is_json() {
        let document = json!({"schema": "oncall.tools/v1", "tools": specs, "absent": opened.absent});
        context.print(&format!("{document}\n"))?;
        return Ok(Exit::Success);
    }
    let lang = context.lang.unwrap_or_default();
    let mut text: String = specs.iter().map(|spec| describe(spec, context.columns())).collect();
    if !opened.absent.is_empty() {
        let absent = opened.absent.join(", ");
        text.push_str(&lang.pick(
            format!("\nno source of: {absent} (configure one in oncall.toml, or give --incident DIR)\n"),
            format!("\n没有以下数据来源：{absent}（可在 oncall.toml 中配置，或用 --incident DIR 指定）\n"),
        ));
    }
    context.print(&text)?;
    Ok(Exit::Success)
}

/// A tool in a few lines: its name and server, its arguments (`?` marks optional ones), what it answers.
fn describe(spec: &ToolSpec, columns: usize) -> String {
    let required: Vec<&str> =
        spec.input_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = spec.input_schema["properties"].as_object();
    let arguments: Vec<_> = properties
        .into_iter()
        .flat_map(|properties| properties.keys())
        .map(|key| format!("{key}{}", if required.contains(&key.as_str()) { "" } else { "?" }))
        .collect();
    let options = textwrap::Options::new(columns).initial_indent("    ").subsequent_indent("    ");
    format!(
        "{} [{}] {{{}}}\n{}\n",
        spec.name,
        spec.server,
        arguments.join(", "),
        textwrap::fill(&spec.description, options)
    )
}

async fn call(opened: Opened, call: Call, context: &Context) -> anyhow::Result<Exit> {
    let Opened { mut registry, zone, .. } = opened;
    let lang = context.lang.unwrap_or_default();
    if call.tool == knowledge::NAME {
        let opened = world::open_knowledge(context).await;
        let base = opened.map_err(|error| Unreachable(format!("the runbooks cannot be consulted: {error}")))?;
        registry.add(Arc::new(RetrieveKnowledge::new(Arc::new(base), context.config.knowledge.top_k)));
    }
    let fleet = servers_of(&call, context).await?;
    servers::tools(&fleet, Consent::Given).into_iter().for_each(|tool| {
        registry.add(tool);
    });
    let agent = &context.config.agent;
    let settings = InvokerSettings { deadline: agent.tool_timeout, ..InvokerSettings::default() };
    // One call needs no record; the sink does not mind that nobody listens.
    let (events, _) = EventSink::channel();
    let cancel = CancellationToken::new();
    let interrupt = cancel.clone();
    let watch = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupt.cancel();
        }
    });
    let outcome = Invoker::new(registry, settings, events).invoke(&call, None, &cancel).await;
    watch.abort();
    fleet.close().await;
    match outcome {
        Outcome::Output(output) => {
            context.print(&render(&call, &output, &zone, lang, context))?;
            Ok(Exit::Success)
        }
        Outcome::Failure(failure) => ended(failure),
    }
}

/// The server that a call names, connected; none for a built-in tool.
async fn servers_of(call: &Call, context: &Context) -> anyhow::Result<Fleet> {
    let named = crate::mcp::names::server_of(&call.tool).filter(|name| context.config.mcp.contains_key(*name));
    let Some(name) = named else { return Ok(Fleet::default()) };
    let fleet = servers::connect(|server| server == name, context).await;
    if let Some((name, error)) = fleet.failures.first() {
        return Err(Unreachable(format!("mcp.{name}: {error}")).into());
    }
    Ok(fleet)
}

fn render(call: &Call, output: &Output, zone: &TimeZone, lang: Lang, context: &Context) -> String {
    if context.is_json() {
        let document = json!({"schema": "oncall.tool/v1", "tool": call.tool, "output": output});
        return format!("{document}\n");
    }
    let mut text = String::new();
    for finding in &output.findings {
        // What has no type of its own is shown whole: a summary would cut it.
        let line = match finding {
            Finding::Other { value: Value::String(text) } => text.clone(),
            Finding::Other { value } => value.to_string(),
            finding => words::summarize(finding, lang, zone),
        };
        text.push_str(&format!("- {line}\n"));
    }
    let mut notes = output.notes.clone();
    if output.truncated {
        notes.push(lang.pick("a limit cut the answer", "答案因上限被截断").to_owned());
    }
    if let Served::Stale { age_seconds } = output.served {
        notes.push(
            lang.pick(format!("answered from memory, {age_seconds} s old"), format!("来自 {age_seconds} 秒前的记忆")),
        );
    }
    if context.verbosity > Verbosity::Quiet {
        notes.iter().for_each(|note| context.note(note));
    }
    text
}

/// Whose mistake it is decides the exit code.
fn ended(failure: Failure) -> anyhow::Result<Exit> {
    let message = match &failure.source {
        Some(source) => format!("{source}: {}", failure.message),
        None => failure.message,
    };
    match failure.kind {
        FailureKind::BadArguments => Err(bad_input(message)),
        FailureKind::Timeout | FailureKind::Unauthorized | FailureKind::Unavailable => Err(Unreachable(message).into()),
        FailureKind::Cancelled | FailureKind::Denied => Ok(Exit::Interrupted),
        FailureKind::SourceError | FailureKind::Closed | FailureKind::NotAllowed => Err(anyhow::anyhow!(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_described_with_its_arguments_and_which_are_optional() {
        let spec = ToolSpec {
            name: "retrieve_knowledge".into(),
            description: "Passages of the runbooks that fit a question.".into(),
            input_schema: json!({"type": "object", "properties": {"query": {}, "k": {}}, "required": ["query"]}),
            server: "builtin".into(),
            read_only: true,
        };
        let want =
            "retrieve_knowledge [builtin] {query, k?}\n    Passages of the\n    runbooks that fit a\n    question.\n";
        assert_eq!(describe(&spec, 24), want);
    }

    #[test]
    fn whose_mistake_a_failure_is_decides_how_the_command_ends() {
        let end = |kind| ended(Failure::of_source("files/logs", kind, "m"));
        let bad = end(FailureKind::BadArguments).unwrap_err();
        assert!(bad.downcast_ref::<crate::command::BadInput>().is_some());
        let gone = end(FailureKind::Unavailable).unwrap_err();
        assert_eq!(gone.downcast_ref::<Unreachable>().map(ToString::to_string).as_deref(), Some("files/logs: m"));
        assert_eq!(end(FailureKind::Cancelled).unwrap(), Exit::Interrupted);
    }
}
