//! oncall as a server: its tools for other hosts, over standard streams or HTTP.
//!
//! In: sources, a clock, names of topics and regions, the knowledge base. Out: the tools of `logs`, `monitor`,
//! `knowledge` or all of them, answered as structured content; an answer that failed says so with its kind.

mod catalogue;
mod host;
pub mod http;
mod knowledge;
mod logs;
mod monitor;
mod usage;

use std::sync::Arc;

pub use catalogue::{Catalogue, Topic};
pub use host::{Host, stdio};
pub use knowledge::ListDocuments;

use crate::domain::{Finding, Output, Served, ToolSpec, Topology};
use crate::tool::Tool;
use crate::tool::arguments::ToolClock;
use crate::tool::builtin::{Sources, builtin_tools};

/// Which tools are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Logs,
    Monitor,
    Knowledge,
    All,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Monitor => "monitor",
            Self::Knowledge => "knowledge",
            Self::All => "all",
        }
    }

    /// Where it listens unless told otherwise.
    pub fn port(self) -> u16 {
        match self {
            Self::All => 8002,
            Self::Logs => 8003,
            Self::Monitor => 8004,
            Self::Knowledge => 8005,
        }
    }

    /// What a host is told of it.
    pub fn instructions(self) -> &'static str {
        match self {
            Self::Logs => {
                "Logs of services, read-only. Find the topic of a service with search_topic_by_service_name, then read \
                 it with search_log, or its patterns with search_logs. Times are RFC 3339, Unix seconds, or relative to \
                 now such as -15m."
            }
            Self::Monitor => {
                "Metrics and the state of workloads, read-only. query_cpu_metrics and query_memory_metrics need only a \
                 service; query_metrics takes PromQL; workload_status tells replicas, restarts, events and nodes. Times \
                 are RFC 3339, Unix seconds, or relative to now such as -15m."
            }
            Self::Knowledge => {
                "Runbooks, English and Chinese, read-only. retrieve_knowledge finds passages for a question, an alert \
                 name or an error message."
            }
            Self::All => {
                "An on-call assistant's evidence, read-only: logs, metrics, state of workloads, changes and runbooks. \
                 Times are RFC 3339, Unix seconds, or relative to now such as -15m. Patterns (search_logs) before single \
                 lines (search_log); discover_metrics with show=\"anomalies\" tells which metrics stand out."
            }
        }
    }
}

/// What the tools stand on.
pub struct Ground {
    pub sources: Sources,
    pub topology: Topology,
    pub catalogue: Arc<Catalogue>,
    /// The tools of the knowledge base; none where it is not served.
    pub knowledge: Vec<Arc<dyn Tool>>,
    /// The time of a call: an incident's, or the wall's.
    pub clock: Box<dyn Fn() -> ToolClock + Send + Sync>,
}

/// The tools of a kind, with the time of this moment. Those without a source are there and say so when called.
pub fn tools(kind: Kind, ground: &Ground) -> Vec<Arc<dyn Tool>> {
    let clock = (ground.clock)();
    let has = |wanted: Kind| kind == wanted || kind == Kind::All;
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if has(Kind::Logs) {
        tools.extend(logs::tools(&ground.sources.logs, &ground.catalogue, &clock));
        tools.extend(built_in(&["search_logs"], ground, &clock));
    }
    if has(Kind::Monitor) {
        tools.extend(monitor::tools(&ground.sources, &clock));
        tools.extend(built_in(&["discover_metrics", "recent_changes"], ground, &clock));
    }
    if has(Kind::Knowledge) {
        tools.extend(ground.knowledge.iter().cloned());
    }
    tools
}

/// Tools of the agent itself, where there is a source for them.
fn built_in(names: &[&str], ground: &Ground, clock: &ToolClock) -> Vec<Arc<dyn Tool>> {
    let registry = builtin_tools(ground.sources.clone(), clock.clone(), ground.topology.clone());
    names.iter().filter_map(|name| registry.get(name).ok().cloned()).collect()
}

/// How a served tool presents itself.
fn spec<T: schemars::JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: crate::tool::arguments::input_schema::<T>(),
        server: "builtin".to_owned(),
        read_only: true,
    }
}

/// An answer that is one value.
fn answered(source: String, value: serde_json::Value) -> Output {
    Output {
        source,
        window: None,
        findings: vec![Finding::Other { value }],
        notes: Vec::new(),
        truncated: false,
        served: Served::Live,
        retrieval: None,
        asked: Vec::new(),
    }
}
