//! The shape of `oncall.toml` as it is written: every key optional, unknown keys refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct File {
    pub model: Option<String>,
    #[serde(default)]
    pub models: BTreeMap<String, ModelProfile>,
    #[serde(default)]
    pub roles: BTreeMap<String, String>,
    pub embedder: Option<EmbedderFile>,
    pub knowledge: Option<KnowledgeFile>,
    pub agent: Option<AgentFile>,
    #[serde(default)]
    pub sources: BTreeMap<String, SourceConfig>,
    #[serde(default)]
    pub mcp: BTreeMap<String, McpConfig>,
    /// Names of regions by their code.
    #[serde(default)]
    pub regions: BTreeMap<String, RegionNames>,
    #[serde(default)]
    pub topics: BTreeMap<String, TopicConfig>,
    pub sessions: Option<SessionsFile>,
    pub redact: Option<RedactFile>,
    pub serve: Option<ServeFile>,
}

/// A model and how it is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct ModelProfile {
    /// `openai`, `anthropic` or `replay`.
    pub provider: String,
    pub base_url: Option<String>,
    pub model: Option<String>,
    /// The name of a variable, never a key.
    pub api_key_env: Option<String>,
    /// Tokens.
    pub context: Option<u64>,
    pub price: Option<Price>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub tls: Option<TlsConfig>,
    pub proxy: Option<String>,
    pub connect_timeout: Option<String>,
    pub read_timeout: Option<String>,
    /// For `replay`.
    pub file: Option<String>,
    pub temperature: Option<f64>,
    pub seed: Option<u64>,
    /// Tokens of an answer, at most.
    pub max_tokens: Option<u64>,
    /// Whether answers come in pieces.
    pub stream: Option<bool>,
    /// Whether the endpoint is taken to know tools.
    pub tools: Option<bool>,
    /// How JSON is asked for at first: `schema`, `object` or `instruction`.
    pub response_format: Option<ResponseFormat>,
    /// Added to the body of every request as it stands.
    #[serde(default)]
    pub body: toml::Table,
}

/// How an answer in JSON is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResponseFormat {
    Schema,
    Object,
    Instruction,
}

/// Per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cached: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct TlsConfig {
    pub ca_file: Option<String>,
    pub cert_file: Option<String>,
    pub key_file: Option<String>,
    #[serde(default)]
    pub insecure_skip_verify: bool,
}

/// Who turns texts into vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbedderKind {
    #[default]
    Embedded,
    Openai,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct EmbedderFile {
    #[serde(default)]
    pub kind: EmbedderKind,
    pub base_url: Option<String>,
    pub model: Option<String>,
    pub api_key_env: Option<String>,
    pub dimensions: Option<usize>,
    #[serde(default)]
    pub input_type: bool,
    pub floor: Option<f64>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub tls: Option<TlsConfig>,
    pub proxy: Option<String>,
    pub connect_timeout: Option<String>,
    pub read_timeout: Option<String>,
}

/// A service that orders passages anew.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RerankFile {
    pub base_url: Option<String>,
    pub model: Option<String>,
    pub api_key_env: Option<String>,
    pub top_n: Option<usize>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub tls: Option<TlsConfig>,
    pub proxy: Option<String>,
    pub connect_timeout: Option<String>,
    pub read_timeout: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct KnowledgeFile {
    pub paths: Option<Vec<String>>,
    pub store: Option<String>,
    pub top_k: Option<usize>,
    pub chunk: Option<ChunkConfig>,
    pub index: Option<IndexConfig>,
    pub fetch_runbooks: Option<bool>,
    pub rerank: Option<RerankFile>,
}

/// Sizes in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields, default)]
pub struct ChunkConfig {
    pub size: usize,
    pub overlap: usize,
    pub min: usize,
}

impl Default for ChunkConfig {
    fn default() -> Self {
        Self { size: 1600, overlap: 100, min: 300 }
    }
}

/// Which vector index is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexKind {
    /// None for small tables, `ivf_flat` from 50,000 rows up.
    #[default]
    Auto,
    None,
    IvfFlat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields, default)]
pub struct IndexConfig {
    pub kind: IndexKind,
    pub lists: usize,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self { kind: IndexKind::Auto, lists: 128 }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct AgentFile {
    pub max_steps: Option<usize>,
    pub max_nodes: Option<usize>,
    pub tool_timeout: Option<String>,
    pub tool_failures: Option<u32>,
    pub max_time: Option<String>,
    /// Tokens of a run, in and out.
    pub max_tokens: Option<u64>,
    /// In the currency of the configured prices.
    pub max_cost: Option<f64>,
    /// A folder whose `NAME.md` replace the templates of that name.
    pub prompts: Option<String>,
}

/// What speaks at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    Prometheus,
    Alertmanager,
    #[serde(alias = "opensearch")]
    Elasticsearch,
    Loki,
    Victorialogs,
    Kubernetes,
    Files,
}

impl SourceKind {
    /// The name, as it is written.
    pub fn id(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::Alertmanager => "alertmanager",
            Self::Elasticsearch => "elasticsearch",
            Self::Loki => "loki",
            Self::Victorialogs => "victorialogs",
            Self::Kubernetes => "kubernetes",
            Self::Files => "files",
        }
    }
}

/// One evidence source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct SourceConfig {
    pub kind: SourceKind,
    pub url: Option<String>,
    /// For `elasticsearch`, instead of the URL.
    pub cloud_id: Option<String>,
    /// For `elasticsearch`: an index, a data stream, or a pattern of either.
    pub index: Option<String>,
    /// For logs: the names of fields, where they are not the usual ones.
    pub fields: Option<LogFields>,
    /// For logs: events that one question reads at most.
    pub limit: Option<usize>,
    /// For `prometheus` and `loki`: the tenant (`X-Scope-OrgID`).
    pub tenant: Option<String>,
    /// For `kubernetes`: instead of `KUBECONFIG` and `~/.kube/config`.
    pub kubeconfig: Option<String>,
    pub context: Option<String>,
    /// For `kubernetes`: without any, all that may be listed.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// For `kubernetes`: whether the logs of pods are read; without it, where there is no other source of logs.
    pub logs: Option<bool>,
    /// For `files`.
    #[serde(default)]
    pub paths: Vec<String>,
    /// For `files`: the zone of stamps that name none.
    pub timezone: Option<String>,
    pub auth: Option<AuthConfig>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub tls: Option<TlsConfig>,
    pub proxy: Option<String>,
    pub connect_timeout: Option<String>,
    pub read_timeout: Option<String>,
    /// Used for alerts with these labels.
    #[serde(default)]
    pub select: BTreeMap<String, String>,
}

/// Names of fields in stored logs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct LogFields {
    pub time: Option<String>,
    pub service: Option<String>,
    pub instance: Option<String>,
    pub level: Option<String>,
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct AuthConfig {
    pub bearer_env: Option<String>,
    /// For `elasticsearch`.
    pub api_key_env: Option<String>,
    pub token_file: Option<String>,
    pub basic: Option<BasicAuth>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct BasicAuth {
    pub user: String,
    pub password_env: String,
}

/// One MCP server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct McpConfig {
    pub command: Option<String>,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub cwd: Option<String>,
    pub url: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// `bearer_env` or `token_file`.
    pub auth: Option<AuthConfig>,
    pub tls: Option<TlsConfig>,
    pub proxy: Option<String>,
    /// For connecting and listing the tools.
    pub start_timeout: Option<String>,
    pub protocol: Option<McpProtocol>,
    #[serde(default)]
    pub allow: Vec<String>,
    #[serde(default)]
    pub deny: Vec<String>,
    #[serde(default)]
    pub provides: Vec<McpProvides>,
}

/// Which generation of the protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpProtocol {
    /// Discovery is tried first, then the handshake.
    #[default]
    Auto,
    /// With the `initialize` handshake (2025-11-25 and before).
    Initialize,
    /// Stateless, with `server/discover` (2026-07-28 and later).
    Discover,
}

/// What of oncall's own sources a server stands in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpProvides {
    Logs,
    Metrics,
    Status,
}

/// A place that log topics lie in, as `[regions]` names it.
pub type RegionNames = Vec<String>;

/// A log topic, as the `logs` server tells it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct TopicConfig {
    /// A key of `[regions]`.
    pub region: Option<String>,
    /// The services whose logs it holds.
    #[serde(default)]
    pub services: Vec<String>,
    pub description: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct SessionsFile {
    pub url: Option<String>,
}

/// When secrets are taken out of what leaves the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedactWhen {
    Always,
    #[default]
    Remote,
    Never,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct RedactFile {
    pub enabled: Option<RedactWhen>,
    pub emails: Option<bool>,
    #[serde(default)]
    pub patterns: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(expecting = "a table", deny_unknown_fields)]
pub struct ServeFile {
    pub listen: Option<String>,
}
