//! Anthropic's Messages: `POST {base_url}/v1/messages`.

use async_trait::async_trait;
use futures::StreamExt;
use reqwest::{Client, RequestBuilder};
use serde_json::{Map, Value, json};

use super::assemble::{arguments, error_text};
use super::openai::{Endpoint, client, is_overflow, read_all, unauthorized};
use super::{
    Answer, ChatModel, ChatRequest, Delta, Finish, Message, ModelError, OnDelta, Role, TokenUsage, ToolCall, sse,
};
use crate::domain::text::clean_line;
use crate::http::{self, HttpError};

/// The version of the wire that is written here.
const VERSION: &str = "2023-06-01";
/// The wire wants a limit; this is one that every model takes.
const DEFAULT_MAX_TOKENS: u64 = 4096;
const QUOTED_CHARS: usize = 300;

/// The client of one endpoint.
pub struct Anthropic {
    endpoint: Endpoint,
    client: Client,
}

impl Anthropic {
    /// # Errors
    /// [`ModelError::Settings`]: a URL, header, proxy or certificate that cannot be used.
    pub fn new(endpoint: Endpoint) -> Result<Self, ModelError> {
        Ok(Self { client: client(&endpoint)?, endpoint })
    }

    fn request(&self, body: &Value) -> RequestBuilder {
        let base = self.endpoint.base_url.trim_end_matches('/').trim_end_matches("/v1");
        let request = self.client.post(format!("{base}/v1/messages")).header("anthropic-version", VERSION).json(body);
        match &self.endpoint.api_key {
            Some(key) => request.header("x-api-key", key),
            None => request,
        }
    }

    fn explained(&self, error: HttpError) -> ModelError {
        let HttpError::Status { url, status, body, .. } = &error else { return ModelError::Http(error) };
        match status {
            401 | 403 => ModelError::Unauthorized(unauthorized(url, *status, body, &self.endpoint)),
            404 => ModelError::UnknownModel { model: self.endpoint.model.clone(), known: Vec::new() },
            400 | 413 if is_overflow(body) => ModelError::Overflow(body.clone()),
            _ => ModelError::Http(error),
        }
    }
}

#[async_trait]
impl ChatModel for Anthropic {
    fn name(&self) -> &str {
        &self.endpoint.model
    }

    async fn answer(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<Answer, ModelError> {
        let body = body(request, &self.endpoint);
        let sent = http::send(
            || self.request(&body),
            self.endpoint.retries,
            |error, pause| {
                tracing::debug!(%error, ?pause, "the model's server is asked again");
            },
        );
        let response = sent.await.map_err(|error| self.explained(error))?;
        let kind = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut message = Growing::default();
        if !is_stream {
            let bytes = read_all(response).await?;
            let value: Value = serde_json::from_slice(&bytes).map_err(|_| {
                ModelError::Garbage(format!("no JSON: {}", clean_line(&String::from_utf8_lossy(&bytes), QUOTED_CHARS)))
            })?;
            message.whole(&value, on_delta)?;
            return message.finish(true).map(|answer| shaped(answer, request));
        }
        let mut events = std::pin::pin!(sse::data(response));
        while let Some(data) = events.next().await {
            let data = match data {
                Err(ModelError::Cut { .. }) => break,
                data => data?,
            };
            let event: Value = serde_json::from_str(&data).map_err(|_| {
                ModelError::Garbage(format!("an event that is no JSON: {}", clean_line(&data, QUOTED_CHARS)))
            })?;
            if message.push(&event, on_delta)? {
                return message.finish(true).map(|answer| shaped(answer, request));
            }
        }
        message.finish(false).map(|answer| shaped(answer, request))
    }
}

/// The body of a request. An answer of a given shape is the input of a tool that must be called.
fn body(request: &ChatRequest, endpoint: &Endpoint) -> Value {
    let of_role = |role: Role| request.messages.iter().filter(move |message| message.role == role);
    let system: Vec<&str> = of_role(Role::System).map(|message| message.content.as_str()).collect();
    let mut body = Map::from_iter([
        ("model".into(), json!(endpoint.model)),
        ("max_tokens".into(), json!(request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS))),
        ("stream".into(), json!(endpoint.wire.stream)),
        ("messages".into(), Value::Array(turns(&request.messages))),
    ]);
    if !system.is_empty() {
        body.insert("system".into(), json!(system.join("\n\n")));
    }
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters }))
        .collect();
    if let Some(answer) = &request.answer {
        tools.push(json!({ "name": answer.name, "description": "Give the answer.", "input_schema": answer.schema }));
        body.insert("tool_choice".into(), json!({ "type": "tool", "name": answer.name }));
    }
    if !tools.is_empty() {
        body.insert("tools".into(), Value::Array(tools));
    }
    if let Some(temperature) = endpoint.temperature {
        body.insert("temperature".into(), json!(temperature));
    }
    body.extend(endpoint.body.clone());
    Value::Object(body)
}

/// Messages in turns: results of tools are parts of a user's turn, and neighbours of one role are one turn.
fn turns(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, parts) = match message.role {
            Role::System => continue,
            Role::User => ("user", vec![json!({ "type": "text", "text": message.content })]),
            Role::Tool => (
                "user",
                vec![json!({ "type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content })],
            ),
            Role::Assistant => ("assistant", spoken(message)),
        };
        match turns.last_mut() {
            Some((last, known)) if *last == role => known.extend(parts),
            _ if parts.is_empty() => {}
            _ => turns.push((role, parts)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn spoken(message: &Message) -> Vec<Value> {
    let text = (!message.content.is_empty()).then(|| json!({ "type": "text", "text": message.content }));
    let call = |call: &ToolCall| {
        let input = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
        json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
    };
    text.into_iter().chain(message.tool_calls.iter().map(call)).collect()
}

/// A message that grows by events.
#[derive(Default)]
struct Growing {
    content: String,
    reasoning: String,
    /// Id, name and the input's text, by the index of the block.
    calls: Vec<(u64, String, String, String)>,
    stop: Option<String>,
    usage: TokenUsage,
    started: bool,
}

impl Growing {
    /// Takes in an event; true at the end of the message.
    fn push(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<bool, ModelError> {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let index = event.get("index").and_then(Value::as_u64).unwrap_or_default();
        match text("/type") {
            "message_start" => {
                self.started = true;
                self.count(event.pointer("/message/usage"));
            }
            "content_block_start" if text("/content_block/type") == "tool_use" => {
                self.calls.push((
                    index,
                    text("/content_block/id").into(),
                    text("/content_block/name").into(),
                    String::new(),
                ));
            }
            "content_block_delta" => match text("/delta/type") {
                "text_delta" => self.say(text("/delta/text"), on_delta),
                "thinking_delta" => {
                    self.reasoning.push_str(text("/delta/thinking"));
                    on_delta(Delta::Reasoning(text("/delta/thinking")));
                }
                "input_json_delta" => {
                    if let Some(call) = self.calls.iter_mut().find(|call| call.0 == index) {
                        call.3.push_str(text("/delta/partial_json"));
                    }
                }
                _ => {}
            },
            "message_delta" => {
                self.stop = Some(text("/delta/stop_reason").to_string()).filter(|reason| !reason.is_empty());
                self.count(event.get("usage"));
            }
            "message_stop" => return Ok(true),
            "error" => return Err(ModelError::Garbage(error_text(&event["error"]))),
            _ => {}
        }
        Ok(false)
    }

    /// A message that came in one piece.
    fn whole(&mut self, value: &Value, on_delta: OnDelta<'_>) -> Result<(), ModelError> {
        if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
            return Err(ModelError::Garbage(error_text(error)));
        }
        let blocks = value.get("content").and_then(Value::as_array);
        self.started = blocks.is_some();
        for (index, block) in blocks.into_iter().flatten().enumerate() {
            let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
            match text("type") {
                "text" => self.say(text("text"), on_delta),
                "thinking" => self.reasoning.push_str(text("thinking")),
                "tool_use" => {
                    let input = block.get("input").map(Value::to_string).unwrap_or_default();
                    self.calls.push((index as u64, text("id").into(), text("name").into(), input));
                }
                _ => {}
            }
        }
        self.stop = value.get("stop_reason").and_then(Value::as_str).map(str::to_string);
        self.count(value.get("usage"));
        Ok(())
    }

    fn say(&mut self, text: &str, on_delta: OnDelta<'_>) {
        self.content.push_str(text);
        on_delta(Delta::Content(text));
    }

    /// Counts come in parts: the input's with the start, the output's with the end.
    fn count(&mut self, usage: Option<&Value>) {
        let number = |key: &str| usage.and_then(|usage| usage.get(key)).and_then(Value::as_u64);
        let cached = number("cache_read_input_tokens").unwrap_or_default();
        if let Some(input) = number("input_tokens") {
            let written = number("cache_creation_input_tokens").unwrap_or_default();
            (self.usage.input, self.usage.cached) = (input + cached + written, cached);
        }
        if let Some(output) = number("output_tokens") {
            self.usage.output = output;
        }
    }

    fn finish(self, done: bool) -> Result<Answer, ModelError> {
        let received = self.content.chars().count();
        if !done && self.stop.is_none() {
            return Err(ModelError::Cut { received });
        }
        if !self.started {
            return Err(ModelError::Garbage("a message without content".into()));
        }
        if self.stop.as_deref() == Some("refusal") {
            return Err(ModelError::Refused(clean_line(&self.content, QUOTED_CHARS)));
        }
        let call = |(_, id, name, input): (u64, String, String, String)| match arguments(&input).as_deref() {
            Some([one]) => ToolCall { id, name, arguments: one.clone(), malformed: None },
            _ => ToolCall { id, name, arguments: Value::Null, malformed: Some(clean_line(&input, QUOTED_CHARS)) },
        };
        let tool_calls: Vec<ToolCall> = self.calls.into_iter().map(call).collect();
        let finish = match self.stop.as_deref() {
            _ if !tool_calls.is_empty() => Finish::ToolCalls,
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            None | Some("end_turn" | "stop_sequence" | "tool_use") => Finish::Stop,
            Some(other) => Finish::Other(other.to_string()),
        };
        let usage = (self.usage != TokenUsage::default()).then_some(self.usage);
        Ok(Answer { content: self.content, reasoning: self.reasoning, tool_calls, finish, usage })
    }
}

/// The input of the tool that stands for an answer's shape is the answer.
fn shaped(mut answer: Answer, request: &ChatRequest) -> Answer {
    let Some(wanted) = &request.answer else { return answer };
    if let Some(at) = answer.tool_calls.iter().position(|call| call.name == wanted.name && call.malformed.is_none()) {
        answer.content = answer.tool_calls.remove(at).arguments.to_string();
        answer.finish = Finish::Stop;
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{HttpSettings, Retries};
    use crate::llm::{AnswerSchema, Wire};

    #[test]
    fn a_conversation_is_written_in_turns() {
        let call = ToolCall { id: "a".into(), name: "t".into(), arguments: json!({ "x": 1 }), malformed: None };
        let request = ChatRequest {
            messages: vec![
                Message::system("s"),
                Message::user("q"),
                Message::assistant("hm", vec![call]),
                Message::tool("a", "r"),
                Message::user("and?"),
            ],
            answer: Some(AnswerSchema { name: "plan".into(), schema: json!({ "type": "object" }) }),
            ..ChatRequest::default()
        };
        let endpoint = Endpoint {
            base_url: "http://127.0.0.1:1".into(),
            model: "m".into(),
            api_key: None,
            api_key_env: None,
            http: HttpSettings::default(),
            retries: Retries::default(),
            temperature: None,
            seed: None,
            body: Map::new(),
            wire: Wire::default(),
        };
        assert_eq!(
            body(&request, &endpoint),
            json!({
                "model": "m", "max_tokens": 4096, "stream": true, "system": "s",
                "messages": [
                    { "role": "user", "content": [{ "type": "text", "text": "q" }] },
                    { "role": "assistant", "content": [
                        { "type": "text", "text": "hm" }, { "type": "tool_use", "id": "a", "name": "t", "input": { "x": 1 } }] },
                    { "role": "user", "content": [
                        { "type": "tool_result", "tool_use_id": "a", "content": "r" }, { "type": "text", "text": "and?" }] },
                ],
                "tool_choice": { "type": "tool", "name": "plan" },
                "tools": [{ "name": "plan", "description": "Give the answer.", "input_schema": { "type": "object" } }],
            })
        );
    }

    #[test]
    fn events_become_an_answer() {
        let mut message = Growing::default();
        let events = [
            json!({ "type": "message_start", "message": { "usage": { "input_tokens": 5, "cache_read_input_tokens": 3 } } }),
            json!({ "type": "ping" }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "why" } }),
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "text_delta", "text": "look" } }),
            json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "tool_use", "id": "a", "name": "t" } }),
            json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "input_json_delta", "partial_json": "{\"x\":" } }),
            json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "input_json_delta", "partial_json": "1}" } }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 4 } }),
        ];
        for event in &events {
            assert!(!message.push(event, &mut |_| {}).unwrap());
        }
        assert!(message.push(&json!({ "type": "message_stop" }), &mut |_| {}).unwrap());
        let answer = message.finish(true).unwrap();
        let call = ToolCall { id: "a".into(), name: "t".into(), arguments: json!({ "x": 1 }), malformed: None };
        let usage = Some(TokenUsage { input: 8, output: 4, cached: 3 });
        let (content, reasoning) = ("look".into(), "why".into());
        assert_eq!(answer, Answer { content, reasoning, tool_calls: vec![call], finish: Finish::ToolCalls, usage });
    }
}
