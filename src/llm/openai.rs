//! Chat completions as OpenAI speaks them and everybody else after: `POST {base_url}/chat/completions`.

use async_trait::async_trait;
use futures::StreamExt;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Map, Value, json};

use super::assemble::{Assembly, error_text};
use super::capability::{JsonMode, Learnt, Wire};
use super::{
    Answer, ChatModel, ChatRequest, MAX_ANSWER_BYTES, Message, ModelError, OnDelta, Role, sse, too_long, toolless,
};
use crate::domain::text::clean_line;
use crate::http::{self, HttpError, HttpSettings, Retries};

/// Steps down the ladder of capabilities within one call.
const MAX_STEPS_DOWN: usize = 6;
/// Models listed when the one asked for is not there.
const LISTED_MODELS: usize = 20;
const QUOTED_CHARS: usize = 300;

/// Where a model is, and how it is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// `https://api.openai.com/v1`; `/chat/completions` is appended where it is not there.
    pub base_url: String,
    pub model: String,
    pub api_key: Option<String>,
    /// The variable that should hold the key, for messages.
    pub api_key_env: Option<String>,
    pub http: HttpSettings,
    pub retries: Retries,
    pub temperature: Option<f64>,
    pub seed: Option<u64>,
    /// Added to the body of every request as it stands.
    pub body: Map<String, Value>,
    /// What the endpoint is taken to be able to do, at first.
    pub wire: Wire,
}

/// The client of one endpoint.
pub struct OpenAi {
    endpoint: Endpoint,
    client: Client,
    learnt: Learnt,
}

impl OpenAi {
    /// # Errors
    /// [`ModelError::Settings`]: a URL, header, proxy or certificate that cannot be used.
    pub fn new(endpoint: Endpoint) -> Result<Self, ModelError> {
        let client = client(&endpoint)?;
        Ok(Self { learnt: Learnt::new(endpoint.wire), endpoint, client })
    }

    /// What the endpoint turned out to be able to do.
    pub fn wire(&self) -> Wire {
        self.learnt.get()
    }

    fn url(&self) -> String {
        let base = self.endpoint.base_url.trim_end_matches('/');
        if base.ends_with("/chat/completions") { base.to_string() } else { format!("{base}/chat/completions") }
    }

    fn request(&self, body: &Value) -> RequestBuilder {
        let request = self.client.post(self.url()).json(body);
        match &self.endpoint.api_key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    async fn attempt(&self, request: &ChatRequest, wire: Wire, on_delta: OnDelta<'_>) -> Result<Answer, ModelError> {
        let instructed = (!wire.tools && !request.tools.is_empty()).then(|| toolless::instruct(request));
        let body = body(instructed.as_ref().unwrap_or(request), &self.endpoint, wire);
        let retried = |error: &HttpError, pause: std::time::Duration| {
            tracing::debug!(%error, ?pause, "the model's server is asked again");
        };
        let response = http::send(|| self.request(&body), self.endpoint.retries, retried).await?;
        let answer = read(response, on_delta).await?;
        Ok(toolless::read_calls(answer, request))
    }

    /// What a refusal means; names of models are asked for where one is unknown.
    async fn explained(&self, error: ModelError) -> ModelError {
        let ModelError::Http(HttpError::Status { url, status, body, .. }) = &error else { return error };
        match status {
            401 | 403 => ModelError::Unauthorized(unauthorized(url, *status, body, &self.endpoint)),
            404 => self.not_found(url, body).await,
            400 | 413 | 422 if is_overflow(body) => ModelError::Overflow(body.clone()),
            400 | 422 if is_unknown_model(body) => self.not_found(url, body).await,
            400 if body.to_lowercase().contains("content_filter") || body.contains("data_inspection_failed") => {
                ModelError::Refused(body.clone())
            }
            _ => error,
        }
    }

    async fn not_found(&self, url: &str, body: &str) -> ModelError {
        let known = self.models().await.unwrap_or_default();
        if known.is_empty() && !is_unknown_model(body) {
            return ModelError::Settings(format!(
                "{url} does not exist ({body}): check base_url of the profile; it usually ends in /v1"
            ));
        }
        ModelError::UnknownModel { model: self.endpoint.model.clone(), known }
    }

    /// The names of the endpoint's models, at most 20, those like the one asked for first.
    ///
    /// # Errors
    /// An endpoint that cannot be reached or has no such list.
    pub async fn models(&self) -> Result<Vec<String>, ModelError> {
        let base = self.endpoint.base_url.trim_end_matches('/').trim_end_matches("/chat/completions");
        let make = || {
            let request = self.client.get(format!("{base}/models"));
            match &self.endpoint.api_key {
                Some(key) => request.bearer_auth(key),
                None => request,
            }
        };
        let once = Retries { attempts: 1, ..self.endpoint.retries };
        let response = http::send(make, once, |_, _| {}).await?;
        let list: Value = response.json().await.map_err(|error| http::transport_error(&error))?;
        let entries = list.get("data").or_else(|| list.get("models")).and_then(Value::as_array);
        let name =
            |entry: &Value| entry.get("id").or_else(|| entry.get("name")).and_then(Value::as_str).map(str::to_string);
        let mut names: Vec<String> = entries.into_iter().flatten().filter_map(name).collect();
        let likeness = |name: &str| strsim::jaro_winkler(name, &self.endpoint.model);
        names.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
        names.truncate(LISTED_MODELS);
        Ok(names.iter().map(|name| clean_line(name, 80)).collect())
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    fn name(&self) -> &str {
        &self.endpoint.model
    }

    async fn answer(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<Answer, ModelError> {
        let mut wire = self.learnt.get();
        for _ in 0..MAX_STEPS_DOWN {
            let error = match self.attempt(request, wire, on_delta).await {
                Ok(answer) => {
                    self.learnt.set(wire);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let refusal = match &error {
                ModelError::Http(HttpError::Status { status: 400 | 404 | 415 | 422 | 500 | 501, body, .. })
                    if !is_overflow(body) && !is_unknown_model(body) =>
                {
                    body
                }
                _ => return Err(self.explained(error).await),
            };
            match wire.without(refusal) {
                Some(next) => {
                    tracing::debug!(refusal, ?next, "the endpoint cannot do all of it");
                    wire = next;
                }
                None => return Err(self.explained(error).await),
            }
        }
        Err(ModelError::Garbage("the endpoint refuses every way of asking".into()))
    }
}

/// The HTTP client of an endpoint.
pub(super) fn client(endpoint: &Endpoint) -> Result<Client, ModelError> {
    http::client(&endpoint.base_url, &endpoint.http).map_err(|error| ModelError::Settings(error.to_string()))
}

/// Names the variable: that is what the user can mend.
pub(super) fn unauthorized(url: &str, status: u16, body: &str, endpoint: &Endpoint) -> String {
    let remedy = match (&endpoint.api_key_env, &endpoint.api_key) {
        (Some(variable), Some(_)) => format!("check the key in the variable {variable}"),
        (Some(variable), None) => format!("set the variable {variable} to a key"),
        (None, _) => "name the variable that holds a key: api_key_env in the profile".to_string(),
    };
    format!("{url} refused the key ({status}: {body}): {remedy}")
}

/// As OpenAI, vLLM, llama.cpp, DeepSeek, DashScope, Anthropic and gateways word it.
pub(super) fn is_overflow(text: &str) -> bool {
    let text = text.to_lowercase();
    [
        "context_length",
        "context length",
        "maximum context",
        "context window",
        "context size",
        "prompt is too long",
        "input is too long",
        "too many tokens",
        "reduce the length",
        "exceeds the maximum",
        "range of input length",
    ]
    .iter()
    .any(|words| text.contains(words))
}

fn is_unknown_model(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("model")
        && ["not found", "does not exist", "not exist", "unknown model", "invalid model", "model_not_found"]
            .iter()
            .any(|words| text.contains(words))
}

/// The body of a request.
fn body(request: &ChatRequest, endpoint: &Endpoint, wire: Wire) -> Value {
    let mut messages: Vec<Value> = request.messages.iter().map(message).collect();
    let mut body = Map::from_iter([("model".into(), json!(endpoint.model)), ("stream".into(), json!(wire.stream))]);
    if wire.stream && wire.stream_usage {
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    if !request.tools.is_empty() {
        let tool = |tool: &super::ToolDefinition| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters } })
        };
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
        body.insert("tool_choice".into(), json!("auto"));
    }
    if let Some(answer) = &request.answer {
        match wire.json {
            JsonMode::Schema => {
                let schema = json!({ "name": answer.name, "schema": answer.schema });
                body.insert("response_format".into(), json!({ "type": "json_schema", "json_schema": schema }));
            }
            JsonMode::Object => {
                body.insert("response_format".into(), json!({ "type": "json_object" }));
            }
            JsonMode::Instruction => {}
        }
        if wire.json != JsonMode::Schema {
            messages.push(message(&Message::user(format!(
                "Answer with one JSON object and nothing else. It must fit this JSON schema:\n{}",
                answer.schema
            ))));
        }
    }
    body.insert("messages".into(), Value::Array(messages));
    if let Some(limit) = request.max_tokens {
        let key = if wire.completion_limit { "max_completion_tokens" } else { "max_tokens" };
        body.insert(key.into(), json!(limit));
    }
    if let Some(temperature) = endpoint.temperature.filter(|_| wire.temperature) {
        body.insert("temperature".into(), json!(temperature));
    }
    if let Some(seed) = endpoint.seed.filter(|_| wire.seed) {
        body.insert("seed".into(), json!(seed));
    }
    body.extend(endpoint.body.clone());
    Value::Object(body)
}

fn message(message: &Message) -> Value {
    match message.role {
        Role::System => json!({ "role": "system", "content": message.content }),
        Role::User => json!({ "role": "user", "content": message.content }),
        Role::Tool => json!({ "role": "tool", "tool_call_id": message.tool_call_id, "content": message.content }),
        // An empty text beside calls is taken everywhere; null and nothing at all are not.
        Role::Assistant if message.tool_calls.is_empty() => json!({ "role": "assistant", "content": message.content }),
        Role::Assistant => {
            let calls: Vec<Value> = message
                .tool_calls
                .iter()
                .map(|call| {
                    let arguments = call.malformed.clone().unwrap_or_else(|| call.arguments.to_string());
                    json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": arguments } })
                })
                .collect();
            json!({ "role": "assistant", "content": message.content, "tool_calls": calls })
        }
    }
}

/// Reads the answer, streamed or whole, as the server chose to send it.
async fn read(response: Response, on_delta: OnDelta<'_>) -> Result<Answer, ModelError> {
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    if kind.starts_with("text/html") {
        return Err(ModelError::Garbage("a page of HTML, perhaps a proxy's: check base_url and the proxy".into()));
    }
    if kind.contains("application/json") {
        return whole(&read_all(response).await?, on_delta);
    }
    let mut events = std::pin::pin!(sse::data(response));
    let mut assembly = Assembly::default();
    let mut done = false;
    while let Some(data) = events.next().await {
        let data = match data {
            Err(ModelError::Cut { .. }) => break,
            data => data?,
        };
        if data.trim() == "[DONE]" {
            done = true;
            break;
        }
        let chunk: Value = serde_json::from_str(&data).map_err(|_| {
            ModelError::Garbage(format!("a chunk that is no JSON: {}", clean_line(&data, QUOTED_CHARS)))
        })?;
        assembly.push(&chunk, on_delta)?;
    }
    assembly.finish(done)
}

fn whole(bytes: &[u8], on_delta: OnDelta<'_>) -> Result<Answer, ModelError> {
    let value: Value = serde_json::from_slice(bytes).map_err(|_| {
        let text = clean_line(&String::from_utf8_lossy(bytes), QUOTED_CHARS);
        ModelError::Garbage(format!("no JSON: {text}"))
    })?;
    let mut assembly = Assembly::default();
    assembly.push(&value, on_delta)?;
    match assembly.finish(true) {
        Err(ModelError::Garbage(_)) => Err(ModelError::Garbage(format!("no choices: {}", error_text(&value)))),
        answer => answer,
    }
}

pub(super) async fn read_all(mut response: Response) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|error| http::transport_error(&error))? {
        bytes.extend_from_slice(&part);
        if bytes.len() > MAX_ANSWER_BYTES {
            return Err(too_long());
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{AnswerSchema, ToolCall, ToolDefinition};

    fn endpoint() -> Endpoint {
        Endpoint {
            base_url: "http://127.0.0.1:1/v1/".into(),
            model: "m".into(),
            api_key: None,
            api_key_env: Some("KEY".into()),
            http: HttpSettings::default(),
            retries: Retries::default(),
            temperature: Some(0.0),
            seed: Some(7),
            body: Map::from_iter([("top_k".into(), json!(1))]),
            wire: Wire::default(),
        }
    }

    #[test]
    fn a_body_holds_what_the_wire_can_carry() {
        let request = ChatRequest {
            node: "plan".into(),
            messages: vec![
                Message::system("s"),
                Message::assistant(
                    "",
                    vec![ToolCall { id: "a".into(), name: "t".into(), arguments: json!({ "x": 1 }), malformed: None }],
                ),
                Message::tool("a", "r"),
            ],
            tools: vec![ToolDefinition {
                name: "t".into(),
                description: "d".into(),
                parameters: json!({ "type": "object" }),
            }],
            answer: Some(AnswerSchema { name: "plan".into(), schema: json!({ "type": "object" }) }),
            max_tokens: Some(9),
        };
        let full = body(&request, &endpoint(), Wire::default());
        assert_eq!(
            full,
            json!({
                "model": "m", "stream": true, "stream_options": { "include_usage": true },
                "tools": [{ "type": "function", "function": { "name": "t", "description": "d", "parameters": { "type": "object" } } }],
                "tool_choice": "auto",
                "response_format": { "type": "json_schema", "json_schema": { "name": "plan", "schema": { "type": "object" } } },
                "messages": [
                    { "role": "system", "content": "s" },
                    { "role": "assistant", "content": "", "tool_calls": [
                        { "id": "a", "type": "function", "function": { "name": "t", "arguments": "{\"x\":1}" } }] },
                    { "role": "tool", "tool_call_id": "a", "content": "r" },
                ],
                "max_tokens": 9, "temperature": 0.0, "seed": 7, "top_k": 1,
            })
        );
        let least = Wire {
            json: JsonMode::Instruction,
            tools: false,
            stream: false,
            stream_usage: false,
            completion_limit: true,
            temperature: false,
            seed: false,
        };
        let body = body(&ChatRequest { tools: Vec::new(), ..request }, &endpoint(), least);
        let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["model", "stream", "messages", "max_completion_tokens", "top_k"]);
        let asked = body["messages"][3]["content"].as_str().unwrap();
        assert!(asked.ends_with("It must fit this JSON schema:\n{\"type\":\"object\"}"), "{asked}");
    }

    #[test]
    fn a_refused_key_names_the_variable() {
        let with_key = Endpoint { api_key: Some("k".into()), ..endpoint() };
        let nameless = Endpoint { api_key_env: None, ..endpoint() };
        assert_eq!(
            unauthorized("u", 401, "no", &with_key),
            "u refused the key (401: no): check the key in the variable KEY"
        );
        assert_eq!(
            unauthorized("u", 401, "no", &endpoint()),
            "u refused the key (401: no): set the variable KEY to a key"
        );
        assert!(unauthorized("u", 403, "no", &nameless).ends_with("api_key_env in the profile"));
    }

    #[test]
    fn overflow_is_known_in_the_words_of_the_servers() {
        for text in [
            "This model's maximum context length is 8192 tokens",
            "the request exceeds the available context size, try increasing it",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "Range of input length should be [1, 30720]",
            "{\"code\":\"context_length_exceeded\"}",
        ] {
            assert!(is_overflow(text), "{text}");
        }
        assert!(!is_overflow("max_tokens must be positive"));
    }
}
