//! `oncall mcp serve`: the sources of the configuration, or of an incident, as tools for other hosts.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::super::{BadInput, Context, Exit, Unreachable, bad_input, recording, tools, world};
use crate::config::Surroundings;
use crate::domain::{Lang, Window};
use crate::mcp::serve::http::{self, Listening, ServeError};
use crate::mcp::serve::{Catalogue, Ground, Host, Kind, ListDocuments, Topic, stdio};
use crate::source::incident::Incident;
use crate::tool::Tool;
use crate::tool::arguments::ToolClock;
use crate::tool::builtin::Sources;
use crate::tool::knowledge::RetrieveKnowledge;

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Which tools
    #[arg(value_enum)]
    kind: KindArg,
    /// How clients speak with it
    #[arg(long, value_enum, default_value_t = Transport::Stdio)]
    transport: Transport,
    /// Port for http [default: 8002 all, 8003 logs, 8004 monitor, 8005 knowledge; 0 picks a free one]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Address to listen on; any but loopback needs --token-env
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The variable that holds the bearer token which clients have to send
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,
    /// A further name under which clients reach it
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Serve the evidence of an incident folder, at its time
    #[arg(long, value_name = "DIR")]
    incident: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindArg {
    /// Log topics and events
    Logs,
    /// Metrics and the state of workloads
    Monitor,
    /// Runbooks
    Knowledge,
    /// All of them
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// Standard input and output: the client starts this program
    Stdio,
    /// Streamable HTTP at /mcp
    Http,
}

pub async fn run(args: ServeArgs, context: &Context) -> anyhow::Result<Exit> {
    let kind = match args.kind {
        KindArg::Logs => Kind::Logs,
        KindArg::Monitor => Kind::Monitor,
        KindArg::Knowledge => Kind::Knowledge,
        KindArg::All => Kind::All,
    };
    let lang = context.lang.unwrap_or_default();
    // What keeps it from listening is said before anything is opened.
    let listening = match args.transport {
        Transport::Stdio => None,
        Transport::Http => Some(listen(kind, &args).await?),
    };
    let ground = ground(kind, args.incident.as_deref(), lang, context).await?;
    let host = Host::new(kind, Arc::new(ground));
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let interrupts = tokio::spawn(async move {
        recording::interrupted().await;
        stop.cancel();
    });
    let served = match listening {
        None => stdio(host, cancel).await.map_err(bad_input),
        Some((listener, listening)) => over_http(host, kind, listener, listening, cancel, context).await,
    };
    interrupts.abort();
    served.map(|()| Exit::Success)
}

async fn listen(kind: Kind, args: &ServeArgs) -> anyhow::Result<(TcpListener, Listening)> {
    let token = args.token_env.as_deref().map(token_of).transpose()?;
    let listening = Listening {
        address: SocketAddr::new(args.host, args.port.unwrap_or(kind.port())),
        token,
        hosts: args.allow_host.clone(),
    };
    let listener = http::bind(&listening).await.map_err(|error| match error {
        ServeError::TokenNeeded(_) => bad_input(error),
        other => Unreachable(other.to_string()).into(),
    })?;
    Ok((listener, listening))
}

async fn over_http(
    host: Host,
    kind: Kind,
    listener: TcpListener,
    listening: Listening,
    cancel: CancellationToken,
    context: &Context,
) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    context.note(&context.lang.unwrap_or_default().pick(
        format!("serving {} at http://{address}{}", kind.as_str(), http::PATH),
        format!("正在 http://{address}{} 提供 {}", http::PATH, kind.as_str()),
    ));
    http::serve(host, listener, listening, cancel).await.map_err(|error| anyhow::anyhow!(error))
}

fn token_of(variable: &str) -> anyhow::Result<String> {
    let variables = Surroundings::of_process().variables;
    match variables.get(variable).map(|token| token.trim()).filter(|token| !token.is_empty()) {
        Some(token) => Ok(token.to_owned()),
        None => Err(BadInput(format!("the variable {variable}, which --token-env names, is not set")).into()),
    }
}

/// What the tools stand on: an incident with its clock, or the configured sources at the time of each call.
async fn ground(
    kind: Kind,
    incident: Option<&std::path::Path>,
    lang: Lang,
    context: &Context,
) -> anyhow::Result<Ground> {
    let knowledge = match kind {
        Kind::Knowledge | Kind::All => knowledge_tools(context).await?,
        Kind::Logs | Kind::Monitor => Vec::new(),
    };
    let catalogue = Arc::new(catalogue(context));
    if let Some(folder) = incident {
        let incident = Incident::open(folder).map_err(bad_input)?;
        incident.warnings.iter().for_each(|warning| context.warn(warning));
        let window = tools::window_of(&incident).await;
        let clock = ToolClock { now: incident.now, window, zone: incident.zone.clone() };
        let sources = Sources::from(&incident);
        let clock = Box::new(move || clock.clone());
        return Ok(Ground { sources, topology: incident.topology, catalogue, knowledge, clock });
    }
    let zone = TimeZone::system();
    let sources = world::configured_sources(&zone, lang, context).await;
    let is_wanted = matches!(kind, Kind::Logs | Kind::All) && sources.logs.is_empty()
        || matches!(kind, Kind::Monitor | Kind::All) && sources.metrics.is_empty() && sources.status.is_empty();
    if is_wanted {
        context.warn(lang.pick(
            "tools without a configured source will say so when called: add [sources] to oncall.toml, or give --incident DIR",
            "未配置数据来源的工具在被调用时会如实说明：请在 oncall.toml 中添加 [sources]，或使用 --incident DIR",
        ));
    }
    let clock = Box::new(move || {
        let now = Timestamp::now();
        ToolClock { now, window: Window::ending_at(now, tools::USUAL_WINDOW), zone: zone.clone() }
    });
    Ok(Ground { sources, topology: Default::default(), catalogue, knowledge, clock })
}

async fn knowledge_tools(context: &Context) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    let opened = world::open_knowledge(context).await;
    let knowledge = opened.map_err(|error| Unreachable(format!("the runbooks cannot be consulted: {error}")))?;
    let knowledge = Arc::new(knowledge);
    Ok(vec![
        Arc::new(RetrieveKnowledge::new(Arc::clone(&knowledge), context.config.knowledge.top_k)),
        Arc::new(ListDocuments::new(knowledge)),
    ])
}

fn catalogue(context: &Context) -> Catalogue {
    let topic = |topic: &crate::config::TopicConfig| Topic {
        region: topic.region.clone(),
        services: topic.services.clone(),
        description: topic.description.clone(),
    };
    Catalogue {
        regions: context.config.regions.clone(),
        topics: context.config.topics.iter().map(|(name, one)| (name.clone(), topic(one))).collect(),
    }
}
