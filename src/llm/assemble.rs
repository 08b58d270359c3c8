//! Chunks of a streamed chat completion become one answer, however the server cuts them.

use serde_json::{Map, Value, json};

use super::{Answer, Delta, Finish, ModelError, OnDelta, TokenUsage, ToolCall, json::split_thoughts};
use crate::domain::text::clean_line;

const QUOTED_CHARS: usize = 300;

/// An answer that grows.
#[derive(Default)]
pub(super) struct Assembly {
    content: String,
    reasoning: String,
    calls: Vec<Fragments>,
    finish: Option<String>,
    usage: Option<TokenUsage>,
    thoughts: ThoughtFilter,
    /// Whether anything that looks like an answer came at all.
    seen: bool,
}

/// A call, as far as it has come.
#[derive(Default)]
struct Fragments {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Assembly {
    /// Takes in a chunk of a stream, or a whole completion.
    pub fn push(&mut self, chunk: &Value, on_delta: OnDelta<'_>) -> Result<(), ModelError> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(ModelError::Garbage(error_text(error)));
        }
        if let Some(usage) = chunk.get("usage").and_then(usage) {
            self.usage = Some(usage);
        }
        let Some(choice) = chunk.get("choices").and_then(Value::as_array).and_then(|choices| choices.first()) else {
            return Ok(());
        };
        self.seen = true;
        let reason = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
        if !reason.is_empty() {
            self.finish = Some(reason.to_string());
        }
        // A chunk without either is a notice (a content filter's, say).
        let Some(part) = choice.get("delta").or_else(|| choice.get("message")) else { return Ok(()) };
        for key in ["reasoning_content", "reasoning", "thinking"] {
            if let Some(text) = part.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()) {
                self.reasoning.push_str(text);
                on_delta(Delta::Reasoning(text));
                break;
            }
        }
        let text = content_text(part.get("content"));
        if !text.is_empty() {
            self.content.push_str(&text);
            self.thoughts.push(&text, on_delta);
        }
        if let Some(refusal) = part.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            return Err(ModelError::Refused(clean_line(refusal, QUOTED_CHARS)));
        }
        for fragment in part.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.push_call(fragment);
        }
        if let Some(call) = part.get("function_call").filter(|call| call.is_object()) {
            self.push_call(&json!({ "index": 0, "function": call }));
        }
        Ok(())
    }

    /// A fragment belongs to the call of its index, else of its id, else to the last one. A new id on a known index is
    /// another call: some servers give all of them index 0.
    fn push_call(&mut self, fragment: &Value) {
        let index = fragment.get("index").and_then(Value::as_u64);
        let id = fragment.get("id").and_then(Value::as_str).unwrap_or_default();
        let fits = |call: &Fragments| {
            let same_index = index.is_some() && call.index == index;
            let same_id = !id.is_empty() && call.id == id;
            let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
            same_id || (same_index && !other_id)
        };
        let known = self.calls.iter().rposition(fits);
        let continues_last = index.is_none() && id.is_empty() && !self.calls.is_empty();
        let at = match known {
            Some(at) => at,
            None if continues_last => self.calls.len() - 1,
            None => {
                self.calls.push(Fragments { index, ..Fragments::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id = id.to_string();
        }
        let function = fragment.get("function").unwrap_or(fragment);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        // The name comes once, in pieces, or again with every fragment.
        if !name.is_empty() && call.name != name {
            call.name.push_str(name);
        }
        match function.get("arguments") {
            Some(Value::String(text)) => call.arguments.push_str(text),
            Some(object @ Value::Object(_)) => call.arguments.push_str(&object.to_string()),
            _ => {}
        }
    }

    /// The answer. `done` says whether the server marked the end.
    pub fn finish(self, done: bool) -> Result<Answer, ModelError> {
        let received = self.content.chars().count() + self.reasoning.chars().count();
        if !self.seen {
            return Err(match done {
                true => ModelError::Garbage("an empty answer".into()),
                false => ModelError::Cut { received },
            });
        }
        if self.finish.is_none() && !done {
            return Err(ModelError::Cut { received });
        }
        let (thoughts, content) = split_thoughts(&self.content);
        let mut reasoning = self.reasoning;
        if !thoughts.is_empty() {
            reasoning.push_str(&thoughts);
        }
        let tool_calls: Vec<ToolCall> = self.calls.into_iter().flat_map(Fragments::calls).collect();
        let tool_calls = numbered(tool_calls);
        let finish = finish_of(self.finish.as_deref(), !tool_calls.is_empty());
        if finish == Finish::Filtered && content.is_empty() && tool_calls.is_empty() {
            return Err(ModelError::Refused("the provider's content filter stopped the answer".into()));
        }
        Ok(Answer { content, reasoning, tool_calls, finish, usage: self.usage })
    }
}

impl Fragments {
    /// The call, or the several that a server wrote into one (`{…}{…}`).
    fn calls(self) -> Vec<ToolCall> {
        if self.name.is_empty() && self.arguments.trim().is_empty() {
            return Vec::new();
        }
        let make = |arguments: Value, malformed: Option<String>, n: usize| ToolCall {
            id: if n == 0 || self.id.is_empty() { self.id.clone() } else { format!("{}-{}", self.id, n + 1) },
            name: self.name.clone(),
            arguments,
            malformed,
        };
        match arguments(&self.arguments) {
            Some(objects) => objects.into_iter().enumerate().map(|(n, object)| make(object, None, n)).collect(),
            None => vec![make(Value::Null, Some(clean_line(&self.arguments, QUOTED_CHARS)), 0)],
        }
    }
}

/// The objects of an arguments text; `None` when it holds anything else. No text at all is the empty object.
pub(super) fn arguments(text: &str) -> Option<Vec<Value>> {
    if text.trim().is_empty() {
        return Some(vec![Value::Object(Map::new())]);
    }
    let mut objects = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value.ok()? {
            object @ Value::Object(_) => objects.push(object),
            Value::Null => objects.push(Value::Object(Map::new())),
            // Encoded twice.
            Value::String(inner) => match serde_json::from_str(&inner).ok()? {
                object @ Value::Object(_) => objects.push(object),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(objects)
}

/// Calls without an id, or with one that another has, get their own.
fn numbered(mut calls: Vec<ToolCall>) -> Vec<ToolCall> {
    for n in 0..calls.len() {
        let taken = calls[..n].iter().any(|before| before.id == calls[n].id);
        if calls[n].id.is_empty() || taken {
            calls[n].id = format!("call_{}", n + 1);
        }
    }
    calls
}

fn finish_of(reason: Option<&str>, has_calls: bool) -> Finish {
    match reason {
        _ if has_calls => Finish::ToolCalls,
        None | Some("stop" | "eos" | "end_turn" | "stop_sequence" | "tool_calls" | "function_call") => Finish::Stop,
        Some("length" | "max_tokens") => Finish::Length,
        Some("content_filter" | "safety") => Finish::Filtered,
        Some(other) => Finish::Other(other.to_string()),
    }
}

/// Text, or the texts of its parts.
fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().concat()
        }
        _ => String::new(),
    }
}

fn usage(value: &Value) -> Option<TokenUsage> {
    let number = |path: &str| value.pointer(path).and_then(Value::as_u64);
    Some(TokenUsage {
        input: number("/prompt_tokens").or_else(|| number("/input_tokens"))?,
        output: number("/completion_tokens").or_else(|| number("/output_tokens")).unwrap_or(0),
        cached: number("/prompt_tokens_details/cached_tokens")
            .or_else(|| number("/prompt_cache_hit_tokens"))
            .unwrap_or(0),
    })
}

/// What an error object says.
pub(super) fn error_text(error: &Value) -> String {
    let text = match error {
        Value::String(text) => text.clone(),
        object => match object.get("message").and_then(Value::as_str) {
            Some(message) => message.to_string(),
            None => object.to_string(),
        },
    };
    clean_line(&text, QUOTED_CHARS)
}

/// Splits a stream into thoughts and answer at `<think>` tags, which chunks may cut.
#[derive(Default)]
struct ThoughtFilter {
    held: String,
    inside: bool,
}

impl ThoughtFilter {
    fn push(&mut self, text: &str, on_delta: OnDelta<'_>) {
        self.held.push_str(text);
        loop {
            let tag = if self.inside { "</think>" } else { "<think>" };
            let (ready, found) = match self.held.find(tag) {
                Some(at) => (at, true),
                // What may be the beginning of a tag waits.
                None => (self.held.len() - partial_tag(&self.held, tag), false),
            };
            let out: String = self.held.drain(..ready).collect();
            if !out.is_empty() {
                on_delta(if self.inside { Delta::Reasoning(&out) } else { Delta::Content(&out) });
            }
            if !found {
                return;
            }
            self.held.drain(..tag.len());
            self.inside = !self.inside;
        }
    }
}

/// Bytes at the end of the text that begin the tag.
fn partial_tag(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|&length| text.ends_with(&tag[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assemble(chunks: &[Value], done: bool) -> Result<Answer, ModelError> {
        let mut assembly = Assembly::default();
        for chunk in chunks {
            assembly.push(chunk, &mut |_| {})?;
        }
        assembly.finish(done)
    }

    fn delta(delta: Value) -> Value {
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
    }

    fn end(reason: Value) -> Value {
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
    }

    fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
        ToolCall { id: id.into(), name: name.into(), arguments, malformed: None }
    }

    fn calls(fragments: &[Value]) -> Vec<ToolCall> {
        let mut chunks: Vec<Value> = fragments.iter().map(|one| delta(json!({ "tool_calls": one }))).collect();
        chunks.push(end(json!("tool_calls")));
        assemble(&chunks, true).unwrap().tool_calls
    }

    #[test]
    fn text_and_usage_come_in_pieces() {
        let answer = assemble(
            &[
                delta(json!({ "role": "assistant", "content": "" })),
                delta(json!({ "content": "pool " })),
                delta(json!({ "content": "exhausted" })),
                end(json!("stop")),
                json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": { "cached_tokens": 4 } } }),
            ],
            true,
        );
        let usage = Some(TokenUsage { input: 7, output: 3, cached: 4 });
        assert_eq!(answer, Ok(Answer { content: "pool exhausted".into(), usage, ..Answer::default() }));
    }

    #[test]
    fn fragments_without_an_index_join_by_id_or_continue_the_last_call() {
        let got = calls(&[
            json!([{ "id": "a", "function": { "name": "search_logs", "arguments": "{\"ser" } }]),
            json!([{ "function": { "arguments": "vice\":\"x\"}" } }]),
            json!([{ "id": "b", "function": { "arguments": "{}" } }]),
            json!([{ "id": "b", "function": { "name": "status" } }]),
        ]);
        assert_eq!(got, [call("a", "search_logs", json!({ "service": "x" })), call("b", "status", json!({}))]);
    }

    #[test]
    fn several_calls_in_one_delta_or_on_one_index_stay_apart() {
        let got = calls(&[
            json!([
                { "index": 0, "id": "a", "function": { "name": "one", "arguments": "{\"x\":1}" } },
                { "index": 1, "id": "b", "function": { "name": "two", "arguments": "{\"y\":" } },
            ]),
            json!([{ "index": 1, "function": { "arguments": "2}" } }]),
            json!([{ "index": 1, "id": "c", "function": { "name": "three", "arguments": "" } }]),
        ]);
        assert_eq!(
            got,
            [call("a", "one", json!({ "x": 1 })), call("b", "two", json!({ "y": 2 })), call("c", "three", json!({}))]
        );
        let glued = calls(&[
            json!([{ "index": 0, "id": "a", "function": { "name": "one", "arguments": "{\"x\":1}{\"x\":2}" } }]),
        ]);
        assert_eq!(glued, [call("a", "one", json!({ "x": 1 })), call("a-2", "one", json!({ "x": 2 }))]);
    }

    #[test]
    fn a_name_may_come_late_in_pieces_or_again_and_again() {
        let got = calls(&[
            json!([{ "index": 0, "id": "a", "function": { "arguments": "{" } }]),
            json!([{ "index": 0, "function": { "name": "search_logs", "arguments": "}" } }]),
            json!([{ "index": 0, "function": { "name": "search_logs" } }]),
        ]);
        assert_eq!(got, [call("a", "search_logs", json!({}))]);
    }

    #[test]
    fn arguments_that_are_no_object_are_never_made_into_a_call() {
        for bad in ["{\"a\":", "nonsense", "[1]", "3", "\"{\""] {
            let got = calls(&[json!([{ "index": 0, "id": "a", "function": { "name": "one", "arguments": bad } }])]);
            assert_eq!((got.len(), got[0].malformed.as_deref()), (1, Some(bad)), "{bad}");
        }
        let twice = calls(&[
            json!([{ "index": 0, "id": "a", "function": { "name": "one", "arguments": "\"{\\\"x\\\":1}\"" } }]),
        ]);
        assert_eq!(twice, [call("a", "one", json!({ "x": 1 }))]);
        let object = calls(&[json!([{ "index": 0, "function": { "name": "one", "arguments": { "x": 1 } } }])]);
        assert_eq!(object, [call("call_1", "one", json!({ "x": 1 }))]);
    }

    #[test]
    fn the_end_is_told_by_a_reason_or_by_the_server() {
        let text = delta(json!({ "content": "half" }));
        assert_eq!(assemble(std::slice::from_ref(&text), false), Err(ModelError::Cut { received: 4 }));
        assert!(assemble(std::slice::from_ref(&text), true).is_ok());
        assert!(assemble(&[text.clone(), end(json!("stop"))], false).is_ok());
        assert_eq!(assemble(&[text.clone(), end(json!(""))], false), Err(ModelError::Cut { received: 4 }));
        let odd = assemble(&[text, end(json!("unheard_of"))], false).unwrap();
        assert_eq!(odd.finish, Finish::Other("unheard_of".into()));
        assert_eq!(assemble(&[], true), Err(ModelError::Garbage("an empty answer".into())));
        assert_eq!(assemble(&[], false), Err(ModelError::Cut { received: 0 }));
    }

    #[test]
    fn notices_and_null_contents_are_no_fault_and_errors_inside_a_stream_are() {
        let notice = json!({ "choices": [{ "content_filter_offset": 1, "finish_reason": null }] });
        let null = delta(json!({ "content": null, "tool_calls": null }));
        let answer = assemble(&[notice, null, delta(json!({ "content": "x" })), end(json!("stop"))], true).unwrap();
        assert_eq!(answer.content, "x");
        let error = json!({ "error": { "message": "overloaded", "code": 503 } });
        assert_eq!(assemble(&[error], true), Err(ModelError::Garbage("overloaded".into())));
        let filtered = assemble(&[end(json!("content_filter"))], true);
        assert!(matches!(filtered, Err(ModelError::Refused(_))), "{filtered:?}");
    }

    #[test]
    fn thoughts_never_reach_the_answer() {
        let mut pieces = (String::new(), String::new());
        let mut assembly = Assembly::default();
        for text in ["<thi", "nk>hm", "m</th", "ink>an", "swer <", "b>"] {
            let mut on_delta = |delta: Delta<'_>| match delta {
                Delta::Content(text) => pieces.0.push_str(text),
                Delta::Reasoning(text) => pieces.1.push_str(text),
            };
            assembly.push(&delta(json!({ "content": text })), &mut on_delta).unwrap();
        }
        assembly.push(&delta(json!({ "reasoning_content": "first " })), &mut |_| {}).unwrap();
        let answer = assembly.finish(true).unwrap();
        assert_eq!((answer.content.as_str(), answer.reasoning.as_str()), ("answer <b>", "first hmm"));
        assert_eq!(pieces, ("answer <b>".into(), "hmm".into()));
    }

    #[test]
    fn a_whole_completion_is_read_the_same_way() {
        let whole = json!({
            "choices": [{ "message": { "role": "assistant", "content": null, "reasoning": "why", "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "one", "arguments": "{\"x\":1}" } }
            ] }, "finish_reason": "tool_calls" }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 2 }
        });
        let answer = assemble(&[whole], true).unwrap();
        assert_eq!(answer.tool_calls, [call("a", "one", json!({ "x": 1 }))]);
        assert_eq!((answer.reasoning.as_str(), answer.finish), ("why", Finish::ToolCalls));
    }
}
