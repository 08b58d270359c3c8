//! A remote service that gets JSON and answers JSON: embeddings and reranking. What can go wrong is said with what to do.

use std::sync::Arc;

use futures::StreamExt;
use reqwest::{Client, Response};
use serde_json::Value;

use super::EmbedError;
use crate::domain::text::clean_line;
use crate::http::{self, HttpError, HttpSettings, Retries};

/// No answer that makes sense is longer: 64 vectors of 16,000 numbers take 20 MB.
const MAX_ANSWER: usize = 128 << 20;
const QUOTED_CHARS: usize = 300;

/// What a text passes before it leaves the machine.
pub type Outgoing = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A model behind a URL.
#[derive(Clone)]
pub struct ServiceSettings {
    /// The table of the configuration, as messages name it.
    pub table: &'static str,
    /// `https://host/v1`; the path of the call is appended where it is not there.
    pub base_url: String,
    pub model: String,
    /// The variable that holds the key, and the key.
    pub api_key: Option<(String, String)>,
    pub http: HttpSettings,
    pub retries: Retries,
    pub outgoing: Outgoing,
}

/// Why a service gave no answer that can be used.
#[derive(Debug)]
pub(super) enum ServiceError {
    Http(HttpError),
    /// It answered something else than agreed.
    Answer(String),
}

impl From<HttpError> for ServiceError {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

/// The client of one call of a service.
pub(super) struct Service {
    pub settings: ServiceSettings,
    client: Client,
    url: String,
}

impl Service {
    /// # Errors
    /// Settings that cannot be used: a proxy, a certificate, a header.
    pub fn new(settings: ServiceSettings, call: &str) -> Result<Self, EmbedError> {
        let client = http::client(&settings.base_url, &settings.http)
            .map_err(|error| EmbedError::Settings(format!("[{}]: {error}", settings.table)))?;
        let base = settings.base_url.trim_end_matches('/');
        let url = if base.ends_with(call) { base.to_string() } else { format!("{base}{call}") };
        Ok(Self { settings, client, url })
    }

    /// Sends a body and reads the answer, again and again where that may help.
    pub async fn post(&self, body: &Value) -> Result<Value, ServiceError> {
        let make = || {
            let request = self.client.post(&self.url).json(body);
            match &self.settings.api_key {
                Some((_, key)) => request.bearer_auth(key),
                None => request,
            }
        };
        let on_retry = |error: &HttpError, pause| tracing::info!("{error}; again in {pause:?}");
        let bytes = match whole_body(http::send(make, self.settings.retries, on_retry).await?).await {
            // An answer that breaks off is as transient as one that does not begin.
            Err(ServiceError::Http(error)) => {
                tracing::info!("{error}; once more");
                whole_body(http::send(make, self.settings.retries, on_retry).await?).await?
            }
            other => other?,
        };
        let answer: Value = serde_json::from_slice(&bytes).map_err(|error| {
            let beginning = clean_line(&String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]), QUOTED_CHARS);
            ServiceError::Answer(format!("no JSON ({error}): {beginning}"))
        })?;
        // Some servers report failures with a status of success.
        match error_of(&answer) {
            Some(message) => Err(ServiceError::Answer(format!("an error: {}", clean_line(&message, QUOTED_CHARS)))),
            None => Ok(answer),
        }
    }

    /// What a failure means for the user.
    pub fn explain(&self, error: ServiceError) -> EmbedError {
        let ServiceSettings { table, model, api_key, .. } = &self.settings;
        let url = &self.url;
        match error {
            ServiceError::Answer(what) => {
                EmbedError::Service(format!("{url} answered {}", clean_line(&what, 2 * QUOTED_CHARS)))
            }
            ServiceError::Http(error @ HttpError::Status { status: 401 | 403, .. }) => match api_key {
                Some((variable, _)) => EmbedError::Settings(format!(
                    "{error}: the key in {variable} was refused; set {variable} to one that is valid for this service"
                )),
                None => EmbedError::Settings(format!(
                    "{error}: the service wants a key; name the variable that holds it in [{table}] api_key_env"
                )),
            },
            ServiceError::Http(error @ HttpError::Status { status: 404 | 405, .. }) => EmbedError::Settings(format!(
                "{error}: check [{table}] base_url = \"{}\" and model = \"{model}\"",
                self.settings.base_url
            )),
            ServiceError::Http(error @ HttpError::Status { .. }) if !error.is_transient() => {
                EmbedError::Settings(format!("{error}: check the settings of [{table}], model = \"{model}\""))
            }
            ServiceError::Http(error @ HttpError::Settings(_)) => EmbedError::Settings(format!("[{table}]: {error}")),
            ServiceError::Http(error) => EmbedError::Service(error.to_string()),
        }
    }
}

async fn whole_body(response: Response) -> Result<Vec<u8>, ServiceError> {
    let mut bytes = Vec::new();
    let mut parts = response.bytes_stream();
    while let Some(part) = parts.next().await {
        bytes.extend_from_slice(&part.map_err(|error| http::transport_error(&error))?);
        if bytes.len() > MAX_ANSWER {
            return Err(ServiceError::Answer(format!("more than {} MB", MAX_ANSWER >> 20)));
        }
    }
    Ok(bytes)
}

/// `{"error": {"message": …}}`, `{"error": "…"}`, `{"object": "error", "message": …}`, `{"detail": …}`
fn error_of(answer: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let error = answer.get("error").filter(|error| !error.is_null());
    let is_error = answer.get("object").and_then(Value::as_str) == Some("error");
    match error {
        Some(error) => Some(text(error.get("message").unwrap_or(error))),
        None if is_error => Some(text(answer.get("message").unwrap_or(answer))),
        None => answer.get("detail").map(text),
    }
}
