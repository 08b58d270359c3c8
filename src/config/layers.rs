//! Merging the layers: defaults < file < `.env` and `ONCALL_*` < flags, each value with its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::{self, find_config_file};
use super::shape::File;
use super::{AgentConfig, Config, ConfigError, KnowledgeConfig, OtlpConfig, Overrides, services};
use crate::domain::text::nearest;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    /// A variable, with `.env` when it stood there.
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// The scalar keys with their defaults. `ONCALL_` + the key in capitals, dots as underscores, overrides each.
const DEFAULTS: &str = r#"
model = "none"
embedder.kind = "embedded"
knowledge.paths = []
knowledge.store = "knowledge"
knowledge.top_k = 3
knowledge.fetch_runbooks = false
knowledge.chunk = { size = 1600, overlap = 100, min = 300 }
knowledge.index = { kind = "auto", lists = 128 }
agent.max_steps = 10
agent.max_nodes = 30
agent.tool_timeout = "10s"
agent.tool_failures = 3
agent.max_time = "5m"
sessions.url = "sqlite"
redact.enabled = "remote"
redact.emails = true
serve.listen = "127.0.0.1:9900"
"#;

/// Variables that are flags, read by the command line itself.
const FLAG_VARIABLES: [&str; 6] =
    ["ONCALL_CONFIG", "ONCALL_DATA_DIR", "ONCALL_LANG", "ONCALL_VIEW", "ONCALL_THEME", "ONCALL_LOG"];

/// What surrounds the process, read once by the caller.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub working_dir: PathBuf,
    pub xdg_config: Option<PathBuf>,
    pub xdg_data: Option<PathBuf>,
    pub variables: BTreeMap<String, String>,
}

impl Surroundings {
    /// Those of this process, with `.env` of the working folder under the real variables.
    pub fn of_process() -> Self {
        let working_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let mut variables: BTreeMap<String, String> = BTreeMap::new();
        if let Ok(entries) = dotenvy::from_path_iter(working_dir.join(".env")) {
            variables.extend(entries.filter_map(Result::ok));
        }
        variables.extend(std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))));
        let (mut xdg_config, mut xdg_data) = (None, None);
        if let Ok(strategy) = etcetera::choose_base_strategy() {
            use etcetera::BaseStrategy;
            xdg_config = Some(strategy.config_dir());
            xdg_data = Some(strategy.data_dir());
        }
        Self { working_dir, xdg_config, xdg_data, variables }
    }
}

pub(super) type Values = BTreeMap<String, (toml::Value, Origin)>;

/// Reads all layers and checks the result.
///
/// # Errors
/// A file that cannot be read or parsed, a value of the wrong type, a model profile that does not exist.
pub fn load(overrides: &Overrides, around: &Surroundings) -> Result<Config, ConfigError> {
    let mut values = Values::new();
    let defaults = toml::from_str::<toml::Table>(DEFAULTS).unwrap_or_default();
    flatten("", &defaults, &Origin::Default, &mut values);
    let keys: Vec<String> = values.keys().cloned().collect();

    let path = match &overrides.file {
        Some(path) => Some(path.clone()),
        None => find_config_file(&around.working_dir, around.xdg_config.as_deref()),
    };
    if let Some(path) = &path {
        flatten("", &file::read(path)?, &Origin::File(path.clone()), &mut values);
    }
    let mut warnings = Vec::new();
    apply_variables(&keys, &around.variables, &mut values, &mut warnings);
    if let Some(model) = &overrides.model {
        values.insert("model".into(), (model.as_str().into(), Origin::Flag("--model")));
    }
    if overrides.offline {
        take_offline(&mut values);
    }
    let merged = parse_merged(&values)?;
    let mut config = check(merged, &values, path.as_deref(), &around.variables)?;
    config.data_dir = data_dir(overrides, around);
    config.otlp = super::otlp::receiver(&around.variables);
    config.warnings = warnings;
    config.values = values;
    Ok(config)
}

/// No service is asked: the embedded defaults stand in. Vectors of the embedded model have a store of their own beside
/// the one of the service's, which is there again without the flag.
fn take_offline(values: &mut Values) {
    let flag = |value: toml::Value| (value, Origin::Flag("--offline"));
    let text = |key: &str| values.get(key).and_then(|(value, _)| value.as_str()).map(str::to_owned);
    let is_remote = text("embedder.kind").is_some_and(|kind| kind != "embedded");
    if let Some(store) = text("knowledge.store").filter(|_| is_remote) {
        let beside = format!("{}-embedded", store.trim_end_matches('/'));
        values.insert("knowledge.store".into(), flag(beside.into()));
    }
    values.retain(|key, _| !key.starts_with("embedder.") && !key.starts_with("knowledge.rerank."));
    values.insert("model".into(), flag("none".into()));
    values.insert("embedder.kind".into(), flag("embedded".into()));
}

/// `--data-dir`, else `oncall` below the XDG data folder, else `.oncall` where nothing else is known.
fn data_dir(overrides: &Overrides, around: &Surroundings) -> PathBuf {
    match (&overrides.data_dir, &around.xdg_data) {
        (Some(dir), _) => around.working_dir.join(dir),
        (None, Some(data)) => data.join("oncall"),
        (None, None) => around.working_dir.join(".oncall"),
    }
}

/// Writes every leaf of a table under its dotted key. Tables that a user names (`[models.nim]`) are flattened too.
fn flatten(prefix: &str, table: &toml::Table, origin: &Origin, values: &mut Values) {
    for (key, value) in table {
        // A label such as `app.kubernetes.io/name` is one key.
        let key = if key.contains('.') { format!("\"{key}\"") } else { key.clone() };
        let path = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&path, inner, origin, values),
            leaf => {
                values.insert(path, (leaf.clone(), origin.clone()));
            }
        }
    }
}

fn apply_variables(
    keys: &[String],
    variables: &BTreeMap<String, String>,
    values: &mut Values,
    warnings: &mut Vec<String>,
) {
    let by_variable: BTreeMap<String, &String> =
        keys.iter().map(|key| (format!("ONCALL_{}", key.to_uppercase().replace('.', "_")), key)).collect();
    for (variable, text) in variables.iter().filter(|(name, _)| name.starts_with("ONCALL_")) {
        if FLAG_VARIABLES.contains(&variable.as_str()) {
            continue;
        }
        let Some(key) = by_variable.get(variable) else {
            let hint = nearest(variable, by_variable.keys().map(String::as_str))
                .map_or_else(String::new, |name| format!("; did you mean {name}?"));
            warnings.push(format!("{variable} is not a setting{hint}"));
            continue;
        };
        let value = typed_like(values.get(*key).map(|(value, _)| value), text);
        values.insert((*key).clone(), (value, Origin::Variable(variable.clone())));
    }
}

/// Reads the text of a variable as the type of the value that it replaces; what does not parse stays text and fails
/// the type check, which then names the variable.
fn typed_like(old: Option<&toml::Value>, text: &str) -> toml::Value {
    match old {
        Some(toml::Value::Integer(_)) => text.parse::<i64>().map_or_else(|_| text.into(), toml::Value::Integer),
        Some(toml::Value::Boolean(_)) => text.parse::<bool>().map_or_else(|_| text.into(), toml::Value::Boolean),
        Some(toml::Value::Array(_)) => {
            toml::Value::Array(text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(Into::into).collect())
        }
        _ => text.into(),
    }
}

/// Rebuilds the nested table and reads it as the file's shape; an error can only come from a variable or a flag,
/// since the file was checked alone.
fn parse_merged(values: &Values) -> Result<File, ConfigError> {
    let mut root = toml::Table::new();
    for (path, (value, _)) in values {
        insert_path(&mut root, path, value.clone());
    }
    root.try_into::<File>().map_err(|error| {
        let (origin, key) = values
            .iter()
            .find(|(_, (_, origin))| matches!(origin, Origin::Variable(_) | Origin::Flag(_)))
            .map_or_else(|| ("configuration".into(), String::new()), |(key, (_, o))| (o.to_string(), key.clone()));
        ConfigError::Value { origin, key, message: error.message().to_string() }
    })
}

fn insert_path(table: &mut toml::Table, path: &str, value: toml::Value) {
    let (head, rest) = match path.strip_prefix('"').and_then(|path| path.split_once('"')) {
        Some((quoted, rest)) => (quoted, rest.strip_prefix('.')),
        None => path.split_once('.').map_or((path, None), |(head, rest)| (head, Some(rest))),
    };
    match rest {
        None => {
            table.insert(head.to_string(), value);
        }
        Some(rest) => {
            let inner = table.entry(head).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let toml::Value::Table(inner) = inner {
                insert_path(inner, rest, value);
            }
        }
    }
}

fn check(
    file: File,
    values: &Values,
    path: Option<&Path>,
    variables: &BTreeMap<String, String>,
) -> Result<Config, ConfigError> {
    let base = path.and_then(Path::parent).unwrap_or(Path::new(""));
    let knowledge = file.knowledge.unwrap_or_default();
    let agent = file.agent.unwrap_or_default();
    let services = services::Checker { base, values, variables };
    let duration = |key: &str, text: Option<String>| checked_duration(key, &text.unwrap_or_default(), values);
    let roles = file.roles;
    let mut config = Config {
        model: file.model.unwrap_or_else(|| "none".into()),
        models: file.models,
        chosen: None,
        embedder: services.embedder(&file.embedder.unwrap_or_default())?,
        knowledge: KnowledgeConfig {
            paths: knowledge.paths.unwrap_or_default().iter().map(|path| base.join(path)).collect(),
            store: knowledge.store.unwrap_or_default(),
            top_k: positive("knowledge.top_k", knowledge.top_k, values)?,
            chunk: knowledge.chunk.unwrap_or_default(),
            index: knowledge.index.unwrap_or_default(),
            rerank: knowledge.rerank.map(|rerank| services.rerank(&rerank)).transpose()?,
            fetch_runbooks: knowledge.fetch_runbooks.unwrap_or_default(),
        },
        agent: AgentConfig {
            max_steps: positive("agent.max_steps", agent.max_steps, values)?,
            max_nodes: positive("agent.max_nodes", agent.max_nodes, values)?,
            tool_timeout: duration("agent.tool_timeout", agent.tool_timeout)?,
            tool_failures: agent.tool_failures.unwrap_or(3).max(1),
            max_time: duration("agent.max_time", agent.max_time)?,
            max_tokens: agent.max_tokens,
            max_cost: agent.max_cost,
            prompts: agent.prompts.map(|dir| base.join(dir)),
        },
        sources: services.sources(&file.sources)?,
        mcp: super::mcp::check(&file.mcp, base, variables, values)?,
        regions: file.regions,
        topics: file.topics,
        sessions_url: file.sessions.unwrap_or_default().url.unwrap_or_else(|| "sqlite".into()),
        redact: services.redact(file.redact.unwrap_or_default())?,
        serve_listen: file.serve.unwrap_or_default().listen.unwrap_or_default(),
        otlp: OtlpConfig::default(),
        data_dir: PathBuf::new(),
        file: path.map(Path::to_path_buf),
        values: Values::new(),
        warnings: Vec::new(),
    };
    check_model(&config, values)?;
    config.chosen = services.chosen(&config, &roles)?;
    check_chunk(&config, values)?;
    check_topics(&config, values)?;
    Ok(config)
}

fn check_topics(config: &Config, values: &Values) -> Result<(), ConfigError> {
    for (name, topic) in &config.topics {
        let Some(region) = topic.region.as_deref().filter(|region| !config.regions.contains_key(*region)) else {
            continue;
        };
        let known = config.regions.keys().map(String::as_str);
        let hint = nearest(region, known).map_or_else(
            || "expected a key of [regions], such as ap-shanghai = [\"Shanghai\"]".to_owned(),
            |near| format!("did you mean \"{near}\"?"),
        );
        return Err(invalid(
            &format!("topics.{name}.region"),
            values,
            format!("there is no region \"{region}\"; {hint}"),
        ));
    }
    Ok(())
}

pub(super) fn invalid(key: &str, values: &Values, message: String) -> ConfigError {
    let origin = values.get(key).map_or_else(|| "configuration".to_string(), |(_, origin)| origin.to_string());
    ConfigError::Value { origin, key: key.to_string(), message }
}

fn positive(key: &str, value: Option<usize>, values: &Values) -> Result<usize, ConfigError> {
    match value {
        Some(0) | None => Err(invalid(key, values, "must be at least 1".into())),
        Some(value) => Ok(value),
    }
}

fn checked_duration(key: &str, text: &str, values: &Values) -> Result<Duration, ConfigError> {
    let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|d| Duration::try_from(d).ok());
    match parsed {
        Some(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(invalid(key, values, format!("\"{text}\" is not a duration; expected one such as \"10s\" or \"5m\""))),
    }
}

fn check_model(config: &Config, values: &Values) -> Result<(), ConfigError> {
    if config.model == "none" || config.models.contains_key(&config.model) {
        return Ok(());
    }
    let known = std::iter::once("none").chain(config.models.keys().map(String::as_str));
    let known: Vec<&str> = known.collect();
    Err(invalid(
        "model",
        values,
        format!("no profile [models.{}]; expected one of: {}", config.model, known.join(", ")),
    ))
}

fn check_chunk(config: &Config, values: &Values) -> Result<(), ConfigError> {
    let chunk = config.knowledge.chunk;
    if chunk.size < 100 || chunk.overlap * 2 > chunk.size || chunk.min > chunk.size {
        let message = format!(
            "size {}, overlap {}, min {}: expected a size of at least 100, an overlap of at most half of it, and a \
             min no larger than it",
            chunk.size, chunk.overlap, chunk.min
        );
        return Err(invalid("knowledge.chunk.size", values, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(dir: &Path, variables: &[(&str, &str)]) -> Surroundings {
        Surroundings {
            working_dir: dir.to_path_buf(),
            xdg_config: None,
            xdg_data: Some(dir.join("data")),
            variables: variables.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        }
    }

    #[test]
    fn a_flag_beats_a_variable_which_beats_the_file_which_beats_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("oncall.toml");
        let text = "[agent]\nmax_steps = 4\nmax_nodes = 5\n[models.a]\nprovider = \"openai\"\nmodel = \"x\"\n[models.b]\nprovider = \"openai\"\nmodel = \"y\"\n";
        std::fs::write(&path, text).unwrap();
        let overrides = Overrides { model: Some("b".into()), ..Overrides::default() };
        let surroundings = around(dir.path(), &[("ONCALL_AGENT_MAX_NODES", "6"), ("ONCALL_MODEL", "a")]);
        let config = load(&overrides, &surroundings).unwrap();
        assert_eq!(
            (config.model.as_str(), config.agent.max_steps, config.agent.max_nodes, config.agent.tool_failures),
            ("b", 4, 6, 3)
        );
        assert_eq!(config.values["model"].1, Origin::Flag("--model"));
        assert_eq!(config.values["agent.max_nodes"].1, Origin::Variable("ONCALL_AGENT_MAX_NODES".into()));
        assert_eq!(config.values["agent.max_steps"].1, Origin::File(path));
        assert_eq!(config.values["agent.tool_failures"].1, Origin::Default);
        assert_eq!(config.data_dir, dir.path().join("data/oncall"));
    }

    #[test]
    fn an_unknown_variable_is_a_warning_with_the_nearest_name() {
        let dir = tempfile::tempdir().unwrap();
        let config = load(&Overrides::default(), &around(dir.path(), &[("ONCALL_AGENT_MAX_STEP", "6")])).unwrap();
        assert_eq!(config.warnings, ["ONCALL_AGENT_MAX_STEP is not a setting; did you mean ONCALL_AGENT_MAX_STEPS?"]);
    }

    #[test]
    fn a_bad_variable_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = load(&Overrides::default(), &around(dir.path(), &[("ONCALL_AGENT_MAX_STEPS", "six")]));
        assert_eq!(
            error.unwrap_err().to_string(),
            "ONCALL_AGENT_MAX_STEPS: agent.max_steps: invalid type: string \"six\", expected usize"
        );
    }

    #[test]
    fn values_that_cannot_work_are_refused_with_what_was_expected() {
        let dir = tempfile::tempdir().unwrap();
        let bad = |text: &str| {
            std::fs::write(dir.path().join("oncall.toml"), text).unwrap();
            let error = load(&Overrides::default(), &around(dir.path(), &[])).unwrap_err().to_string();
            error.replace(&dir.path().display().to_string(), "DIR")
        };
        assert_eq!(
            bad("[agent]\nmax_time = \"soon\"\n"),
            "DIR/oncall.toml: agent.max_time: \"soon\" is not a duration; expected one such as \"10s\" or \"5m\""
        );
        assert_eq!(bad("[agent]\nmax_steps = 0\n"), "DIR/oncall.toml: agent.max_steps: must be at least 1");
        assert_eq!(bad("model = \"nim\"\n"), "DIR/oncall.toml: model: no profile [models.nim]; expected one of: none");
    }

    #[test]
    fn offline_takes_the_embedded_defaults_whatever_the_file_says() {
        let dir = tempfile::tempdir().unwrap();
        let text = "model = \"a\"\n[models.a]\nprovider = \"openai\"\n[embedder]\nkind = \"openai\"\nbase_url = \"http://x\"\n";
        std::fs::write(dir.path().join("oncall.toml"), text).unwrap();
        let overrides = Overrides { offline: true, ..Overrides::default() };
        let config = load(&overrides, &around(dir.path(), &[])).unwrap();
        assert_eq!((config.model.as_str(), &config.embedder), ("none", &Default::default()));
        assert_eq!(config.store_location(), dir.path().join("data/oncall/knowledge-embedded").display().to_string());
    }
}
