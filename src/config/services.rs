//! The embedding and reranking services, and what is redacted before anything is sent: checked.

use std::collections::BTreeMap;
use std::path::Path;

use super::endpoint::EndpointFile;
use super::layers::{Values, invalid};
use super::shape::{EmbedderFile, EmbedderKind, RedactFile, RerankFile};
use super::{ConfigError, EmbedderConfig, EndpointConfig, RedactConfig, RemoteEmbedderConfig, RerankConfig};

/// Raw cosines differ between models; most put texts of different trades under this.
const DEFAULT_FLOOR: f64 = 0.25;
const DEFAULT_TOP_N: usize = 20;
/// What services take at a time.
const MAX_TOP_N: usize = 1000;
/// More than any model has; a table could not be made of it.
const MAX_DIMENSIONS: usize = 65_536;

/// Checks tables that name services; those of models in `models.rs`.
pub(super) struct Checker<'a> {
    /// Relative paths count from here.
    pub base: &'a Path,
    pub values: &'a Values,
    pub variables: &'a BTreeMap<String, String>,
}

impl Checker<'_> {
    pub fn embedder(&self, file: &EmbedderFile) -> Result<EmbedderConfig, ConfigError> {
        if file.kind == EmbedderKind::Embedded {
            return self.only_kind(file);
        }
        let endpoint = self.reached(&EndpointFile {
            table: "embedder",
            base_url: file.base_url.as_ref(),
            model: file.model.as_ref(),
            api_key_env: file.api_key_env.as_ref(),
            headers: &file.headers,
            tls: file.tls.as_ref(),
            proxy: file.proxy.as_ref(),
            connect_timeout: file.connect_timeout.as_ref(),
            read_timeout: file.read_timeout.as_ref(),
        })?;
        if file.dimensions.is_some_and(|dimensions| !(1..=MAX_DIMENSIONS).contains(&dimensions)) {
            return Err(self.wrong("embedder.dimensions", format!("expected 1 to {MAX_DIMENSIONS}")));
        }
        let floor = file.floor.unwrap_or(DEFAULT_FLOOR);
        if !(-1.0..=1.0).contains(&floor) {
            return Err(self.wrong("embedder.floor", format!("{floor} is no cosine: expected -1 to 1")));
        }
        let (dimensions, input_type) = (file.dimensions, file.input_type);
        Ok(EmbedderConfig::Remote(Box::new(RemoteEmbedderConfig { endpoint, dimensions, input_type, floor })))
    }

    /// A URL beside `kind = "embedded"` would not be used, which nobody means.
    fn only_kind(&self, file: &EmbedderFile) -> Result<EmbedderConfig, ConfigError> {
        if file.base_url.is_some() {
            let message =
                "the embedded model has none: set embedder.kind = \"openai\" to use it, or remove it".to_string();
            return Err(self.wrong("embedder.base_url", message));
        }
        Ok(EmbedderConfig::Embedded)
    }

    pub fn rerank(&self, file: &RerankFile) -> Result<RerankConfig, ConfigError> {
        let endpoint = self.reached(&EndpointFile {
            table: "knowledge.rerank",
            base_url: file.base_url.as_ref(),
            model: file.model.as_ref(),
            api_key_env: file.api_key_env.as_ref(),
            headers: &file.headers,
            tls: file.tls.as_ref(),
            proxy: file.proxy.as_ref(),
            connect_timeout: file.connect_timeout.as_ref(),
            read_timeout: file.read_timeout.as_ref(),
        })?;
        let top_n = file.top_n.unwrap_or(DEFAULT_TOP_N);
        if !(1..=MAX_TOP_N).contains(&top_n) {
            return Err(self.wrong("knowledge.rerank.top_n", format!("{top_n}: expected 1 to {MAX_TOP_N}")));
        }
        Ok(RerankConfig { endpoint, top_n })
    }

    pub fn redact(&self, file: RedactFile) -> Result<RedactConfig, ConfigError> {
        for pattern in &file.patterns {
            let message = match regex::Regex::new(pattern) {
                Ok(compiled) if compiled.is_match("") => "it matches the empty text, and so everything".to_string(),
                Ok(_) => continue,
                // The last line says what; the ones before draw the pattern.
                Err(error) => {
                    error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_string()
                }
            };
            let message = format!("\"{pattern}\" cannot be used: {message}; expected a regular expression");
            return Err(self.wrong("redact.patterns", message));
        }
        Ok(RedactConfig {
            enabled: file.enabled.unwrap_or_default(),
            emails: file.emails.unwrap_or(true),
            patterns: file.patterns,
        })
    }

    /// The endpoint that a table names.
    pub fn reached(&self, file: &EndpointFile<'_>) -> Result<EndpointConfig, ConfigError> {
        file.check(self.base, self.variables)
            .map_err(|(key, message)| self.wrong(&format!("{}.{key}", file.table), message))
    }

    pub fn wrong(&self, key: &str, message: String) -> ConfigError {
        invalid(key, self.values, message)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Config, Overrides, Surroundings, load};
    use super::*;
    use crate::http::HttpSettings;

    fn loaded(text: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("oncall.toml"), text).unwrap();
        let variables = BTreeMap::from([("SOME_KEY".to_string(), "k3y\n".to_string())]);
        let around = Surroundings { working_dir: dir.path().into(), variables, ..Surroundings::default() };
        let hide = |text: String| text.replace(&dir.path().display().to_string(), "DIR");
        load(&Overrides::default(), &around).map_err(|error| hide(error.to_string()))
    }

    #[test]
    fn services_have_their_settings_with_defaults() {
        let text = r#"
            [embedder]
            kind = "openai"
            base_url = "https://host/v1"
            model = "m"
            api_key_env = "SOME_KEY"
            dimensions = 1024
            input_type = true
            headers = { "X-Team" = "shop" }
            tls = { ca_file = "/ca.pem" }
            read_timeout = "30s"
            [knowledge.rerank]
            base_url = "http://localhost:8000/v1"
            model = "r"
        "#;
        let config = loaded(text).unwrap();
        let http = HttpSettings {
            headers: BTreeMap::from([("X-Team".into(), "shop".into())]),
            ca_file: Some("/ca.pem".into()),
            read_timeout: Duration::from_secs(30),
            ..HttpSettings::default()
        };
        let endpoint = EndpointConfig {
            base_url: "https://host/v1".into(),
            model: "m".into(),
            api_key_env: Some("SOME_KEY".into()),
            api_key: Some("k3y".into()),
            http,
        };
        let remote = RemoteEmbedderConfig { endpoint, dimensions: Some(1024), input_type: true, floor: 0.25 };
        assert_eq!(config.embedder, EmbedderConfig::Remote(Box::new(remote)));
        assert!(!format!("{config:?}").contains("k3y"));
        let endpoint = EndpointConfig {
            base_url: "http://localhost:8000/v1".into(),
            model: "r".into(),
            api_key_env: None,
            api_key: None,
            http: HttpSettings::default(),
        };
        assert_eq!(config.knowledge.rerank, Some(RerankConfig { endpoint, top_n: 20 }));
    }

    #[test]
    fn what_cannot_work_is_named_with_what_was_expected() {
        let remote = |rest: &str| format!("[embedder]\nkind = \"openai\"\n{rest}");
        let full = |rest: &str| remote(&format!("base_url = \"http://h/v1\"\nmodel = \"m\"\n{rest}"));
        for (text, expected) in [
            (remote(""), "configuration: embedder.base_url: is missing: expected a URL such as \"https://host/v1\""),
            (
                remote("base_url = \"host:80\"\n"),
                "DIR/oncall.toml: embedder.base_url: \"host:80\": expected http:// or https://",
            ),
            (
                remote("base_url = \"http://h/v1\"\n"),
                "configuration: embedder.model: is missing: expected the name that the service knows it by",
            ),
            (
                full("api_key_env = \"sk-12345\"\n"),
                "DIR/oncall.toml: embedder.api_key_env: is no name of a variable: expected one such as \"NVIDIA_API_KEY\", never a key",
            ),
            (full("dimensions = 0\n"), "DIR/oncall.toml: embedder.dimensions: expected 1 to 65536"),
            (full("floor = 3.0\n"), "DIR/oncall.toml: embedder.floor: 3 is no cosine: expected -1 to 1"),
            (
                full("read_timeout = \"soon\"\n"),
                "DIR/oncall.toml: embedder.read_timeout: \"soon\" is not a duration; expected one such as \"10s\" or \"5m\"",
            ),
            (
                "[embedder]\nbase_url = \"http://h/v1\"\n".into(),
                "DIR/oncall.toml: embedder.base_url: the embedded model has none: set embedder.kind = \"openai\" to use it, or remove it",
            ),
            (
                "[knowledge.rerank]\nbase_url = \"http://h\"\nmodel = \"r\"\ntop_n = 0\n".into(),
                "DIR/oncall.toml: knowledge.rerank.top_n: 0: expected 1 to 1000",
            ),
            (
                "[redact]\npatterns = [\"EMP-[0-9]+\", \"a(b\"]\n".into(),
                "DIR/oncall.toml: redact.patterns: \"a(b\" cannot be used: unclosed group; expected a regular expression",
            ),
            (
                "[redact]\npatterns = [\"x*\"]\n".into(),
                "DIR/oncall.toml: redact.patterns: \"x*\" cannot be used: it matches the empty text, and so everything; expected a regular expression",
            ),
        ] {
            assert_eq!(loaded(&text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn redaction_is_configured_as_written() {
        let config = loaded("[redact]\nenabled = \"always\"\nemails = false\npatterns = [\"EMP-[0-9]+\"]\n").unwrap();
        let expected = RedactConfig {
            enabled: super::super::RedactWhen::Always,
            emails: false,
            patterns: vec!["EMP-[0-9]+".into()],
        };
        assert_eq!(config.redact, expected);
    }
}
