//! What a diagnosis, or a single tool call, can ask: the incident's sources and the knowledge base, as tools.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::live;
use super::record::EXCHANGES;
use super::runbook::{self, Runbook};
use super::servers::{self, Plugged};
use super::{Context, index, memory};
use crate::domain::{Alert, Facts, History, Lang, SourceReport, SourceStatus, Topology};
use crate::knowledge::{Knowledge, Use};
use crate::mcp::Fleet;
use crate::source::incident::Incident;
use crate::tool::arguments::ToolClock;
use crate::tool::builtin::{SourceKind, Sources, builtin_tools};
use crate::tool::knowledge::RetrieveKnowledge;
use crate::tool::registry::Registry;
use crate::tool::replay::replayed;

/// The tools of a run, and what they stand on.
pub struct World {
    pub registry: Registry,
    pub topology: Topology,
    /// Kinds of evidence that nothing is there for, and servers that could not be connected.
    pub absent: Vec<SourceReport>,
    /// What is remembered of the alert.
    pub history: Option<History>,
    /// The MCP servers that some of the tools belong to.
    pub fleet: Fleet,
}

/// The tools for an incident, or else for the configured sources that fit the labels of an alert, with the knowledge
/// base beside them, and what is remembered of the alert.
pub async fn build(
    incident: Option<&Incident>,
    alert: Option<&Alert>,
    facts: &Facts,
    zone: &TimeZone,
    lang: Lang,
    context: &Context,
) -> World {
    if let Some(recorded) = recorded(incident, lang, context) {
        return recorded;
    }
    let (mut sources, left_out) = match incident {
        Some(incident) => (Sources::from(incident), Vec::new()),
        None => {
            let live = live::open(alert.map(|alert| &alert.labels), facts.now, zone, lang, context).await;
            (live.sources, live.left_out)
        }
    };
    let plugged = match incident {
        // An incident is a world of its own time: servers of today know nothing of it.
        Some(_) => Plugged::default(),
        None => servers::plug(&mut sources, lang, context).await,
    };
    let mut absent: Vec<SourceReport> = sources.absent().into_iter().map(|kind| absent_report(kind, lang)).collect();
    absent.extend(left_out);
    let topology = incident.map(|incident| incident.topology.clone()).unwrap_or_default();
    let clock = ToolClock { now: facts.now, window: facts.window, zone: zone.clone() };
    let mut registry = builtin_tools(sources, clock, topology.clone());
    absent.extend(plugged.failed);
    plugged.tools.into_iter().for_each(|tool| {
        registry.add(tool);
    });
    let knowledge = open_knowledge(context).await;
    let history = match alert {
        Some(alert) => memory::recall(alert, knowledge.as_ref().ok(), context).await,
        None => None,
    };
    match knowledge {
        Ok(knowledge) => {
            // The links of an incident are of its own time.
            let linked = alert.filter(|_| incident.is_none()).zip(facts.runbook_url.as_deref());
            let runbook = match linked {
                Some((alert, url)) => runbook::resolve(url, &alert.name, &knowledge, lang, context).await,
                None => Runbook::default(),
            };
            absent.extend(runbook.report);
            let distrusted = history.as_ref().map(memory::distrusted).unwrap_or_default();
            let tool = RetrieveKnowledge::new(Arc::new(knowledge), context.config.knowledge.top_k);
            registry.add(Arc::new(tool.with_distrusted(distrusted).with_runbook(runbook.document, runbook.page)));
        }
        Err(error) => {
            let detail = error.to_string();
            context.warn(
                &lang.pick(format!("the runbooks cannot be consulted: {detail}"), format!("无法查阅手册：{detail}")),
            );
            absent.push(SourceReport { name: "knowledge".into(), status: SourceStatus::Error, detail });
        }
    }
    for warning in incident.into_iter().flat_map(|incident| &incident.warnings) {
        context.warn(warning);
    }
    World { registry, topology, absent, history, fleet: plugged.fleet }
}

/// What the configuration names as sources, for a server of other hosts.
pub(super) async fn configured_sources(zone: &TimeZone, lang: Lang, context: &Context) -> Sources {
    live::open(None, Timestamp::now(), zone, lang, context).await.sources
}

/// The tools of an incident that was recorded: they answer as they did then.
fn recorded(incident: Option<&Incident>, lang: Lang, context: &Context) -> Option<World> {
    let incident = incident?;
    match replayed(&incident.folder.join(EXCHANGES)) {
        Ok(found) => {
            let (registry, absent) = found?;
            // What a machine remembers is no part of a recording.
            let topology = incident.topology.clone();
            Some(World { registry, topology, absent, history: None, fleet: Fleet::default() })
        }
        Err(error) => {
            context.warn(&lang.pick(format!("the recording is not used: {error}"), format!("未使用录制内容：{error}")));
            None
        }
    }
}

fn absent_report(kind: SourceKind, lang: Lang) -> SourceReport {
    SourceReport {
        name: kind.as_str().into(),
        status: SourceStatus::Empty,
        detail: lang.pick("no such source is configured", "未配置此类数据来源").into(),
    }
}

/// The knowledge base, indexed on first use and brought up to date, which is announced.
pub(super) async fn open_knowledge(context: &Context) -> anyhow::Result<Knowledge> {
    let knowledge = index::open(context, Use::AsItIs).await?;
    index::refresh(&knowledge, context).await?;
    Ok(knowledge)
}
