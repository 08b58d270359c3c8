//! The model profiles that are used, by role: checked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::endpoint::EndpointFile;
use super::services::Checker;
use super::shape::{ModelProfile, Price, ResponseFormat};
use super::{Config, ConfigError, EndpointConfig};
use crate::domain::text::nearest;

/// The window of a model whose profile does not say; every model in use has at least this.
const DEFAULT_CONTEXT: u64 = 32_768;
const LEAST_CONTEXT: u64 = 2048;
const ROLES: [&str; 3] = ["planner", "executor", "synthesizer"];

/// Who answers.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelProvider {
    OpenAi(EndpointConfig),
    Anthropic(EndpointConfig),
    /// Recorded exchanges.
    Replay(PathBuf),
}

/// One profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Its name in the file.
    pub profile: String,
    pub provider: ModelProvider,
    /// Tokens.
    pub context: u64,
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    pub seed: Option<u64>,
    pub stream: bool,
    pub tools: bool,
    pub response_format: ResponseFormat,
    pub body: toml::Table,
    pub price: Option<Price>,
}

impl ModelConfig {
    /// The model and where it is, in words.
    pub fn called(&self) -> String {
        match &self.provider {
            ModelProvider::OpenAi(endpoint) | ModelProvider::Anthropic(endpoint) => {
                format!("{} at {}", endpoint.model, endpoint.base_url)
            }
            ModelProvider::Replay(path) => path.display().to_string(),
        }
    }
}

/// The profiles by role.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelsConfig {
    pub planner: ModelConfig,
    pub executor: ModelConfig,
    pub synthesizer: ModelConfig,
}

impl Checker<'_> {
    /// The profile `model`, or another where a role names one.
    pub fn chosen(
        &self,
        config: &Config,
        roles: &BTreeMap<String, String>,
    ) -> Result<Option<ModelsConfig>, ConfigError> {
        if let Some(unknown) = roles.keys().find(|role| !ROLES.contains(&role.as_str())) {
            let hint = nearest(unknown, ROLES).map_or_else(String::new, |role| format!("; did you mean `{role}`?"));
            let message = format!("there is no such role: expected {}{hint}", ROLES.join(", "));
            return Err(self.wrong(&format!("roles.{unknown}"), message));
        }
        if config.model == "none" {
            return Ok(None);
        }
        let of_role = |role: &str| {
            let name = roles.get(role).unwrap_or(&config.model);
            let key = if roles.contains_key(role) { format!("roles.{role}") } else { "model".to_string() };
            let profile = config.models.get(name).ok_or_else(|| {
                let known: Vec<&str> = config.models.keys().map(String::as_str).collect();
                self.wrong(&key, format!("no profile [models.{name}]; expected one of: {}", known.join(", ")))
            })?;
            self.model(name, profile)
        };
        let [planner, executor, synthesizer] = ROLES.map(of_role);
        Ok(Some(ModelsConfig { planner: planner?, executor: executor?, synthesizer: synthesizer? }))
    }

    fn model(&self, name: &str, profile: &ModelProfile) -> Result<ModelConfig, ConfigError> {
        let table = format!("models.{name}");
        let context = profile.context.unwrap_or(DEFAULT_CONTEXT);
        if context < LEAST_CONTEXT {
            let message = format!("{context} tokens are too few to work with: expected at least {LEAST_CONTEXT}");
            return Err(self.wrong(&format!("{table}.context"), message));
        }
        let provider = match profile.provider.as_str() {
            "openai" => ModelProvider::OpenAi(self.endpoint(&table, profile, "https://api.openai.com/v1")?),
            "anthropic" => ModelProvider::Anthropic(self.endpoint(&table, profile, "https://api.anthropic.com")?),
            "replay" => {
                let file = profile.file.as_deref().unwrap_or("exchanges.jsonl");
                ModelProvider::Replay(self.base.join(file))
            }
            other => {
                let message = format!("\"{other}\" is no provider: expected openai, anthropic or replay");
                return Err(self.wrong(&format!("{table}.provider"), message));
            }
        };
        Ok(ModelConfig {
            profile: name.to_string(),
            provider,
            context,
            max_tokens: profile.max_tokens,
            temperature: profile.temperature,
            seed: profile.seed,
            stream: profile.stream.unwrap_or(true),
            tools: profile.tools.unwrap_or(true),
            response_format: profile.response_format.unwrap_or(ResponseFormat::Schema),
            body: profile.body.clone(),
            price: profile.price,
        })
    }

    fn endpoint(&self, table: &str, profile: &ModelProfile, default_url: &str) -> Result<EndpointConfig, ConfigError> {
        let base_url = profile.base_url.clone().unwrap_or_else(|| default_url.to_string());
        let file = EndpointFile {
            table,
            base_url: Some(&base_url),
            model: profile.model.as_ref(),
            api_key_env: profile.api_key_env.as_ref(),
            headers: &profile.headers,
            tls: profile.tls.as_ref(),
            proxy: profile.proxy.as_ref(),
            connect_timeout: profile.connect_timeout.as_ref(),
            read_timeout: profile.read_timeout.as_ref(),
        };
        self.reached(&file)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Overrides, Surroundings, load};
    use super::*;

    fn loaded(text: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("oncall.toml"), text).unwrap();
        let around = Surroundings {
            working_dir: dir.path().to_path_buf(),
            variables: [("KEY".to_string(), "secret".to_string())].into(),
            ..Surroundings::default()
        };
        load(&Overrides::default(), &around)
            .map_err(|error| error.to_string().replace(&dir.path().display().to_string(), "DIR"))
    }

    #[test]
    fn roles_may_have_profiles_of_their_own() {
        let text = "model = \"a\"\n[roles]\nplanner = \"b\"\n[models.a]\nprovider = \"openai\"\nmodel = \"m\"\napi_key_env = \"KEY\"\n\
                    [models.b]\nprovider = \"replay\"\nfile = \"x.jsonl\"\ncontext = 4096\n";
        let chosen = loaded(text).unwrap().chosen.unwrap();
        let ModelProvider::OpenAi(endpoint) = &chosen.executor.provider else { panic!("{chosen:?}") };
        assert_eq!(
            (endpoint.base_url.as_str(), endpoint.api_key.as_deref(), chosen.executor.context),
            ("https://api.openai.com/v1", Some("secret"), 32_768)
        );
        assert_eq!(chosen.synthesizer, chosen.executor);
        assert_eq!((chosen.planner.profile.as_str(), chosen.planner.context), ("b", 4096));
        assert!(!format!("{chosen:?}").contains("secret"));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let complaint = |text: &str| loaded(text).err().unwrap();
        assert_eq!(
            complaint("model = \"a\"\n[models.a]\nprovider = \"opnai\"\n"),
            "DIR/oncall.toml: models.a.provider: \"opnai\" is no provider: expected openai, anthropic or replay"
        );
        assert!(complaint("model = \"a\"\n[models.a]\nprovider = \"openai\"\n").contains("model: is missing"));
        assert_eq!(
            complaint("[roles]\nplaner = \"a\"\n"),
            "DIR/oncall.toml: roles.planer: there is no such role: expected planner, executor, synthesizer; did you mean `planner`?"
        );
        assert_eq!(
            complaint("model = \"a\"\n[roles]\nplanner = \"b\"\n[models.a]\nprovider = \"replay\"\n"),
            "DIR/oncall.toml: roles.planner: no profile [models.b]; expected one of: a"
        );
        let small = "model = \"a\"\n[models.a]\nprovider = \"replay\"\ncontext = 100\n";
        assert!(complaint(small).contains("expected at least 2048"));
    }
}
