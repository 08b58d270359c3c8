//! A model that answers from a recording, for tests and for incidents that are diagnosed again.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Answer, ChatModel, ChatRequest, Delta, ModelError, OnDelta};
use crate::domain::text::{clean_line, counted};

/// Characters of a text that a difference shows.
const SHOWN_CHARS: usize = 160;

/// A line of `exchanges.jsonl` that holds what a model was asked and answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// `model`; lines of other kinds are not read here.
    pub kind: String,
    /// The node that asks.
    pub node: String,
    /// Whether somebody wrote this exchange, instead of a recording of a real model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// What was asked; absent in exchanges written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ChatRequest>,
    /// Texts that the messages must hold, in exchanges written by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    pub answer: Answer,
}

/// The recording, used up from its beginning.
pub struct Replay {
    name: String,
    exchanges: Mutex<VecDeque<(usize, Exchange)>>,
}

impl Replay {
    /// # Errors
    /// [`ModelError::Settings`]: a file that cannot be read, or a line that is no exchange.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let place = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            ModelError::Settings(format!(
                "cannot read {place}: {error}; expected recorded exchanges, a JSON object a line"
            ))
        })?;
        Self::parse(&text, &place.to_string())
    }

    fn parse(text: &str, place: &str) -> Result<Self, ModelError> {
        let mut exchanges = VecDeque::new();
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |error: serde_json::Error| ModelError::Settings(format!("{place}: line {}: {error}", n + 1));
            let value: serde_json::Value = serde_json::from_str(line).map_err(wrong)?;
            if value.get("kind").and_then(serde_json::Value::as_str) != Some("model") {
                continue;
            }
            let exchange: Exchange = serde_json::from_value(value).map_err(wrong)?;
            if !exchange.by_hand && exchange.request.is_none() {
                let message = "a recorded exchange holds its `request`; one written by hand says \"by_hand\": true";
                return Err(ModelError::Settings(format!("{place}: line {}: {message}", n + 1)));
            }
            exchanges.push_back((n + 1, exchange));
        }
        Ok(Self { name: format!("replay of {place}"), exchanges: Mutex::new(exchanges) })
    }
}

#[async_trait]
impl ChatModel for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    async fn answer(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<Answer, ModelError> {
        let next = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some((line, exchange)) = next else {
            return Err(ModelError::Replay(format!(
                "{}: no exchange is left, and `{}` asks: {}",
                self.name,
                request.node,
                last_words(request)
            )));
        };
        if let Some(difference) = difference(&exchange, request) {
            return Err(ModelError::Replay(format!("{}: line {line} does not match: {difference}", self.name)));
        }
        on_delta(Delta::Content(&exchange.answer.content));
        Ok(exchange.answer)
    }
}

fn last_words(request: &ChatRequest) -> String {
    request.messages.last().map(|message| clean_line(&message.content, SHOWN_CHARS)).unwrap_or_default()
}

/// What is other than recorded, in words.
fn difference(exchange: &Exchange, asked: &ChatRequest) -> Option<String> {
    if exchange.node != asked.node {
        return Some(format!("expected a question of `{}`, got one of `{}`", exchange.node, asked.node));
    }
    if let Some(recorded) = &exchange.request {
        return (recorded != asked).then(|| first_difference(recorded, asked));
    }
    let missing =
        exchange.contains.iter().find(|text| !asked.messages.iter().any(|message| message.content.contains(*text)));
    missing.map(|text| {
        format!("expected `{}` in the messages, which end with: {}", clean_line(text, SHOWN_CHARS), last_words(asked))
    })
}

fn first_difference(recorded: &ChatRequest, asked: &ChatRequest) -> String {
    for (n, (old, new)) in recorded.messages.iter().zip(&asked.messages).enumerate() {
        if old == new {
            continue;
        }
        let lines = old.content.lines().zip(new.content.lines()).find(|(old, new)| old != new);
        let (old, new) = lines.unwrap_or((&old.content, &new.content));
        let (old, new) = (clean_line(old, SHOWN_CHARS), clean_line(new, SHOWN_CHARS));
        return format!("message {}: recorded `{old}`, now `{new}`", n + 1);
    }
    match (recorded.messages.len(), asked.messages.len()) {
        (old, new) if old != new => format!("{} recorded, now {new}", counted(old, "message")),
        _ => "the tools or the shape of the answer differ".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::llm::Message;

    fn request(node: &str, text: &str) -> ChatRequest {
        ChatRequest { node: node.into(), messages: vec![Message::user(text)], ..ChatRequest::default() }
    }

    async fn ask(replay: &Replay, request: &ChatRequest) -> Result<String, String> {
        replay.answer(request, &mut |_| {}).await.map(|answer| answer.content).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn exchanges_are_answered_in_order_and_differences_shown() {
        let lines = [
            json!({ "kind": "tool", "anything": 1 }),
            json!({ "kind": "model", "node": "plan", "by_hand": true, "contains": ["cart"], "answer": { "content": "one" } }),
            json!({ "kind": "model", "node": "plan", "request": request("plan", "a\nb"), "answer": { "content": "two" } }),
            json!({ "kind": "model", "node": "plan", "request": request("plan", "a\nb"), "answer": { "content": "three" } }),
            json!({ "kind": "model", "node": "plan", "by_hand": true, "contains": ["cart"], "answer": { "content": "four" } }),
            json!({ "kind": "model", "node": "plan", "by_hand": true, "answer": { "content": "five" } }),
        ];
        let text = lines.map(|line| line.to_string()).join("\n");
        let replay = Replay::parse(&text, "x.jsonl").unwrap();
        assert_eq!(ask(&replay, &request("plan", "the cart is slow")).await, Ok("one".into()));
        assert_eq!(ask(&replay, &request("plan", "a\nb")).await, Ok("two".into()));
        let complaint = |rest: &str| Err(format!("replay of x.jsonl: {rest}"));
        assert_eq!(
            ask(&replay, &request("plan", "a\nc")).await,
            complaint("line 4 does not match: message 1: recorded `b`, now `c`")
        );
        assert_eq!(
            ask(&replay, &request("plan", "nothing")).await,
            complaint("line 5 does not match: expected `cart` in the messages, which end with: nothing")
        );
        assert_eq!(
            ask(&replay, &request("replan", "x")).await,
            complaint("line 6 does not match: expected a question of `plan`, got one of `replan`")
        );
        assert_eq!(ask(&replay, &request("plan", "y")).await, complaint("no exchange is left, and `plan` asks: y"));
    }

    #[test]
    fn a_line_that_is_no_exchange_is_named() {
        let complaint = |text: &str| Replay::parse(text, "x.jsonl").err().unwrap().to_string();
        assert!(complaint("\n{").starts_with("x.jsonl: line 2: EOF"));
        assert!(complaint(r#"{"kind":"model","node":"plan","answer":{"content":""}}"#).contains("\"by_hand\": true"));
    }
}
