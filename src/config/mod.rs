//! One checked configuration out of four layers: defaults, `oncall.toml`, `ONCALL_*` variables and flags.
//!
//! The file is searched in the working folder, then its parents, then the XDG config folder; the first one found
//! is the only one read. Nothing else in the program reads configuration files or the environment.

pub mod edit;
mod endpoint;
mod file;
pub mod import;
mod layers;
pub mod mcp;
mod models;
mod otlp;
mod services;
mod shape;
mod show;
mod sources;
mod template;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use endpoint::{EndpointConfig, EndpointFile};
pub use file::{CONFIG_FILE, find_config_file};
pub use layers::{Origin, Surroundings, load};
pub use mcp::{McpServer, McpWire};
pub use models::{ModelConfig, ModelProvider, ModelsConfig};
pub use shape::{
    AuthConfig, ChunkConfig, IndexConfig, IndexKind, LogFields, McpConfig, McpProtocol, McpProvides, ModelProfile,
    Price, RedactWhen, RegionNames, ResponseFormat, SourceKind, TlsConfig, TopicConfig,
};
pub use show::{render, shown};
pub use sources::{FileSettings, KubernetesSettings, LogSettings, SourceAt, SourceSettings};
pub use template::TEMPLATE;

/// Everything that can be set, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// A profile of `models`, or `none`.
    pub model: String,
    pub models: BTreeMap<String, ModelProfile>,
    /// The profiles that are used, by role; `None`: the rules alone.
    pub chosen: Option<ModelsConfig>,
    pub embedder: EmbedderConfig,
    pub knowledge: KnowledgeConfig,
    pub agent: AgentConfig,
    pub sources: BTreeMap<String, SourceSettings>,
    pub mcp: BTreeMap<String, McpServer>,
    /// Names of regions by their code, for the `logs` server.
    pub regions: BTreeMap<String, RegionNames>,
    pub topics: BTreeMap<String, TopicConfig>,
    /// `sqlite`, or a Postgres URL.
    pub sessions_url: String,
    pub redact: RedactConfig,
    pub serve_listen: String,
    /// Where traces are sent, as the variables of OpenTelemetry say it.
    pub otlp: OtlpConfig,
    /// Where the store and all other data live.
    pub data_dir: PathBuf,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// Every effective value by its dotted key, with where it came from; for `config show`.
    pub values: BTreeMap<String, (toml::Value, Origin)>,
    /// Things that did not stop the program, to be said once.
    pub warnings: Vec<String>,
}

/// `[embedder]`
#[derive(Debug, Clone, PartialEq, Default)]
pub enum EmbedderConfig {
    #[default]
    Embedded,
    Remote(Box<RemoteEmbedderConfig>),
}

/// An embedding service.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteEmbedderConfig {
    pub endpoint: EndpointConfig,
    /// `None`: as the service answers.
    pub dimensions: Option<usize>,
    /// Whether the service wants to know `passage` from `query`.
    pub input_type: bool,
    /// The cosine under which a passage is no match.
    pub floor: f64,
}

/// `[knowledge.rerank]`
#[derive(Debug, Clone, PartialEq)]
pub struct RerankConfig {
    pub endpoint: EndpointConfig,
    /// Candidates that are ordered anew.
    pub top_n: usize,
}

/// `[redact]`
#[derive(Debug, Clone, PartialEq)]
pub struct RedactConfig {
    pub enabled: RedactWhen,
    pub emails: bool,
    /// Regular expressions that compile.
    pub patterns: Vec<String>,
}

/// `[knowledge]`
#[derive(Debug, Clone, PartialEq)]
pub struct KnowledgeConfig {
    /// Absolute; relative ones of the file count from the file's folder.
    pub paths: Vec<PathBuf>,
    /// A folder below the data folder, an absolute path, or `s3://bucket/prefix`.
    pub store: String,
    pub top_k: usize,
    pub chunk: ChunkConfig,
    pub index: IndexConfig,
    pub rerank: Option<RerankConfig>,
    /// Whether the runbook that an alert links to is fetched when it is not indexed.
    pub fetch_runbooks: bool,
}

/// `[agent]`
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    pub max_steps: usize,
    pub max_nodes: usize,
    pub tool_timeout: Duration,
    pub tool_failures: u32,
    pub max_time: Duration,
    /// Tokens of a run, in and out.
    pub max_tokens: Option<u64>,
    /// In the currency of the configured prices.
    pub max_cost: Option<f64>,
    /// A folder of templates that replace those compiled in.
    pub prompts: Option<PathBuf>,
}

/// `OTEL_EXPORTER_OTLP_ENDPOINT` and what belongs to it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OtlpConfig {
    /// The address that takes traces; `None`: nothing is sent unless it is asked for.
    pub endpoint: Option<String>,
    pub headers: BTreeMap<String, String>,
    pub service_name: String,
}

/// What flags may override.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--config`; it must exist.
    pub file: Option<PathBuf>,
    pub data_dir: Option<PathBuf>,
    pub model: Option<String>,
    /// Embedded defaults only: no model, no embedding service.
    pub offline: bool,
}

/// A configuration that cannot be used; the user's to mend.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{}: line {line}, column {column}: {message}", path.display())]
    Syntax { path: PathBuf, line: usize, column: usize, message: String },
    #[error("{origin}: {key}: {message}")]
    Value { origin: String, key: String, message: String },
}

impl Config {
    /// The folder or URL of the knowledge store.
    pub fn store_location(&self) -> String {
        if self.knowledge.store.contains("://") {
            return self.knowledge.store.clone();
        }
        self.data_dir.join(Path::new(&self.knowledge.store)).display().to_string()
    }
}
