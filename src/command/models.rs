//! The models as configured, with everything that their calls need: keys, prices, budgets, redaction, records.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jiff::tz::TimeZone;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::services::redact_settings;
use super::{BadInput, Context, bad_input};
use crate::config::{EndpointConfig, ModelConfig, ModelProvider, RedactWhen, ResponseFormat};
use crate::event::EventSink;
use crate::http::Retries;
use crate::llm::redact::Redactor;
use crate::llm::{
    AnswerSchema, Anthropic, Chat, ChatModel, ChatRequest, ChatSettings, Endpoint, JsonMode, Message, Meter,
    ModelError, OpenAi, Prices, Recorder, Replay, ToolDefinition, Wire,
};
use crate::reason::Reasoner;
use crate::reason::llm::prompts::Prompts;
use crate::reason::llm::{Llm, Models};
use crate::reason::rules::Rules;

/// Tokens of an answer to a probe: enough for models that think first.
const PROBE_TOKENS: u64 = 256;

/// What a run may take; flags over configuration.
#[derive(Debug, Clone, Default, Args)]
pub struct BudgetArgs {
    /// End with the best answer so far after this time, such as 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub max_time: Option<Duration>,
    /// End with the best answer so far when the model has used so many tokens
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// End with the best answer so far when the model has cost this much (by the prices of its profile)
    #[arg(long, value_name = "AMOUNT", value_parser = parse_cost)]
    pub max_cost: Option<f64>,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    parsed.filter(|time| !time.is_zero()).ok_or_else(|| "expected a duration such as \"90s\" or \"5m\"".to_string())
}

fn parse_cost(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|cost| cost.is_finite() && *cost > 0.0);
    parsed.ok_or_else(|| "expected an amount above 0".to_string())
}

/// What a run's models share.
pub struct Surroundings<'a> {
    pub events: &'a EventSink,
    pub cancel: &'a CancellationToken,
    pub zone: &'a TimeZone,
    /// The incident's folder, where a recording may lie.
    pub incident: Option<&'a Path>,
    pub budget: &'a BudgetArgs,
    pub recorder: Option<Arc<Recorder>>,
}

/// The model-driven reasoner; `None` when no model is configured.
///
/// # Errors
/// A profile, template or recording that cannot be used.
pub fn reasoner(context: &Context, around: &Surroundings<'_>) -> anyhow::Result<Option<Arc<Llm>>> {
    let Some(chosen) = &context.config.chosen else { return Ok(None) };
    let agent = &context.config.agent;
    let max_tokens = around.budget.max_tokens.or(agent.max_tokens);
    let max_cost = around.budget.max_cost.or(agent.max_cost);
    let priceless =
        [&chosen.planner, &chosen.executor, &chosen.synthesizer].into_iter().find(|model| model.price.is_none());
    if let (Some(_), Some(model)) = (max_cost, priceless) {
        let message =
            format!("a cost budget needs prices: set price in [models.{}], or leave out --max-cost", model.profile);
        return Err(BadInput(message).into());
    }
    let meter = Arc::new(Meter::new(max_tokens, max_cost));
    let redactor = Arc::new(Redactor::new(redact_settings(&context.config.redact)?));
    let mut opened: Vec<(&ModelConfig, Chat)> = Vec::new();
    let mut open = |config| -> anyhow::Result<Chat> {
        // Roles with one profile share one client, and one place in a recording.
        if let Some((_, chat)) = opened.iter().find(|(known, _)| *known == config) {
            return Ok(chat.clone());
        }
        let chat = chat(config, context, around, &meter, &redactor)?;
        opened.push((config, chat.clone()));
        Ok(chat)
    };
    let models = Models {
        planner: open(&chosen.planner)?,
        executor: open(&chosen.executor)?,
        synthesizer: open(&chosen.synthesizer)?,
    };
    let prompts = Prompts::load(agent.prompts.as_deref()).map_err(bad_input)?;
    Ok(Some(Arc::new(Llm::new(models, prompts, around.zone.clone()))))
}

/// The model-driven reasoner, or the rules where no model is configured.
///
/// # Errors
/// As of [`reasoner`].
pub fn reasoner_or_rules(context: &Context, around: &Surroundings<'_>) -> anyhow::Result<Arc<dyn Reasoner>> {
    Ok(match reasoner(context, around)? {
        Some(llm) => llm,
        None => Arc::new(Rules::new(around.zone.clone())),
    })
}

fn chat(
    config: &ModelConfig,
    context: &Context,
    around: &Surroundings<'_>,
    meter: &Arc<Meter>,
    redactor: &Arc<Redactor>,
) -> anyhow::Result<Chat> {
    let recorded = around.recorder.is_some() && context.config.redact.enabled != RedactWhen::Never;
    let redacts = recorded || redacts(config, context)?;
    Ok(Chat {
        model: model(config, around.incident)?,
        settings: ChatSettings {
            context: config.context,
            max_tokens: config.max_tokens,
            prices: config.price.map(|price| Prices { input: price.input, output: price.output, cached: price.cached }),
        },
        meter: Arc::clone(meter),
        recorder: around.recorder.clone(),
        redactor: redacts.then(|| Arc::clone(redactor)),
        events: around.events.clone(),
        cancel: around.cancel.clone(),
    })
}

/// Whether secrets are taken out of what this model gets.
///
/// # Errors
/// A pattern that is no regular expression.
pub fn redacts(config: &ModelConfig, context: &Context) -> anyhow::Result<bool> {
    Ok(match &config.provider {
        ModelProvider::OpenAi(endpoint) | ModelProvider::Anthropic(endpoint) => {
            redact_settings(&context.config.redact)?.covers(&endpoint.base_url)
        }
        // As it was recorded.
        ModelProvider::Replay(_) => context.config.redact.enabled != RedactWhen::Never,
    })
}

/// A small question whose answer has a shape.
pub fn shaped_probe() -> ChatRequest {
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    ChatRequest {
        node: "doctor".into(),
        messages: vec![Message::user("Answer with {\"ok\": true}.")],
        answer: Some(AnswerSchema { name: "probe".into(), schema }),
        max_tokens: Some(PROBE_TOKENS),
        ..ChatRequest::default()
    }
}

/// A small question with a tool at hand.
pub fn tool_probe() -> ChatRequest {
    let parameters = json!({ "type": "object", "properties": { "service": { "type": "string", "maxLength": 20 } } });
    ChatRequest {
        node: "doctor".into(),
        messages: vec![Message::user("Look up the state of the service `cart`.")],
        tools: vec![ToolDefinition {
            name: "workload_status".into(),
            description: "State of a service.".into(),
            parameters,
        }],
        max_tokens: Some(PROBE_TOKENS),
        ..ChatRequest::default()
    }
}

/// The client of a profile; a recording may lie in the incident's folder.
///
/// # Errors
/// Settings or a recording that cannot be used.
pub fn model(config: &ModelConfig, incident: Option<&Path>) -> anyhow::Result<Arc<dyn ChatModel>> {
    let opened: Result<Arc<dyn ChatModel>, ModelError> = match &config.provider {
        ModelProvider::OpenAi(endpoint) => open_ai(config, endpoint).map(|model| Arc::new(model) as _),
        ModelProvider::Anthropic(reached) => {
            Anthropic::new(endpoint(config, reached)).map(|model| Arc::new(model) as _)
        }
        ModelProvider::Replay(path) => {
            // A recording belongs to its incident; the name alone is enough there.
            let beside = incident.zip(path.file_name()).map(|(dir, name)| dir.join(name)).filter(|path| path.is_file());
            let path = if path.is_file() { path.clone() } else { beside.unwrap_or_else(|| path.clone()) };
            Replay::open(&path).map(|model| Arc::new(model) as _)
        }
    };
    opened.map_err(bad_input)
}

/// The OpenAI-compatible client of a profile.
///
/// # Errors
/// Settings that cannot be used.
pub fn open_ai(config: &ModelConfig, reached: &EndpointConfig) -> Result<OpenAi, ModelError> {
    OpenAi::new(endpoint(config, reached))
}

fn endpoint(config: &ModelConfig, reached: &EndpointConfig) -> Endpoint {
    Endpoint {
        base_url: reached.base_url.clone(),
        model: reached.model.clone(),
        api_key: reached.api_key.clone(),
        api_key_env: reached.api_key_env.clone(),
        http: reached.http.clone(),
        retries: Retries::default(),
        temperature: config.temperature,
        seed: config.seed,
        body: match serde_json::to_value(&config.body) {
            Ok(serde_json::Value::Object(body)) => body,
            _ => serde_json::Map::new(),
        },
        wire: Wire {
            json: match config.response_format {
                ResponseFormat::Schema => JsonMode::Schema,
                ResponseFormat::Object => JsonMode::Object,
                ResponseFormat::Instruction => JsonMode::Instruction,
            },
            tools: config.tools,
            stream: config.stream,
            ..Wire::default()
        },
    }
}
