//! The embedding and reranking services as configured, and what text passes on its way to them.

use std::sync::Arc;

use regex::Regex;

use super::{BadInput, Context, bad_input};
use crate::config::{EndpointConfig, RedactConfig, RedactWhen, RemoteEmbedderConfig, RerankConfig};
use crate::http::Retries;
use crate::knowledge::{Outgoing, RemoteEmbedder, RemoteSettings, Reranker, ServiceSettings};
use crate::llm::redact::{RedactFor, RedactSettings, Redactor};

/// What is redacted, and for whom.
pub fn redact_settings(config: &RedactConfig) -> anyhow::Result<RedactSettings> {
    Ok(RedactSettings {
        endpoints: match config.enabled {
            RedactWhen::Always => RedactFor::All,
            RedactWhen::Remote => RedactFor::Remote,
            RedactWhen::Never => RedactFor::None,
        },
        emails: config.emails,
        patterns: config.patterns.iter().map(|pattern| Regex::new(pattern)).collect::<Result<_, _>>()?,
    })
}

/// The client of `[embedder]`.
///
/// # Errors
/// Settings that cannot be used, a key that is not set.
pub fn remote_embedder(config: &RemoteEmbedderConfig, context: &Context) -> anyhow::Result<RemoteEmbedder> {
    let settings = RemoteSettings {
        service: service(&config.endpoint, "embedder", Retries::default(), context)?,
        dimensions: config.dimensions,
        input_type: config.input_type,
        floor: config.floor,
    };
    RemoteEmbedder::new(settings).map_err(bad_input)
}

/// The client of `[knowledge.rerank]`; its failure is told once, and the order stays as it was.
///
/// # Errors
/// As of [`remote_embedder`].
pub fn reranker(config: &RerankConfig, context: &Context) -> anyhow::Result<Reranker> {
    // Passages are in order without it: a service that does not come back at once is left alone.
    let retries = Retries { attempts: 2, ..Retries::default() };
    let service = service(&config.endpoint, "knowledge.rerank", retries, context)?;
    let (lang, warn) = (context.lang.unwrap_or_default(), context.clone());
    let on_failure = move |why: &str| {
        warn.warn(
            &lang.pick(format!("passages are not reranked: {why}"), format!("未能对段落重新排序，沿用原有次序：{why}")),
        );
    };
    Reranker::new(service, config.top_n, Box::new(on_failure)).map_err(bad_input)
}

fn service(
    endpoint: &EndpointConfig,
    table: &'static str,
    retries: Retries,
    context: &Context,
) -> anyhow::Result<ServiceSettings> {
    let api_key = match (&endpoint.api_key_env, &endpoint.api_key) {
        (Some(variable), Some(key)) => Some((variable.clone(), key.clone())),
        (Some(variable), None) => {
            let message = format!(
                "the variable {variable}, which [{table}] api_key_env names, is not set: set it to the key of {}, or pass \
                 --offline",
                endpoint.base_url
            );
            return Err(BadInput(message).into());
        }
        (None, _) => None,
    };
    Ok(ServiceSettings {
        table,
        base_url: endpoint.base_url.clone(),
        model: endpoint.model.clone(),
        api_key,
        http: endpoint.http.clone(),
        retries,
        outgoing: outgoing(endpoint, redact_settings(&context.config.redact)?),
    })
}

/// Nothing has to be restored from a vector, and the same text must give the same one tomorrow: secrets are masked.
fn outgoing(endpoint: &EndpointConfig, settings: RedactSettings) -> Outgoing {
    if !settings.covers(&endpoint.base_url) {
        return Arc::new(str::to_owned);
    }
    let redactor = Redactor::new(settings);
    Arc::new(move |text| redactor.mask(text))
}
