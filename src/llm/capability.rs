//! What an endpoint can do, found out as it refuses: the strongest way is tried first, and a refusal that names a
//! parameter steps down to the next.

use std::sync::{Mutex, PoisonError};

/// How an answer in JSON is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonMode {
    /// `response_format` with the schema.
    Schema,
    /// `response_format` of any object; the schema stands in the prompt.
    Object,
    /// The prompt alone.
    Instruction,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    pub json: JsonMode,
    /// Tools as the wire has them; else they stand in the prompt.
    pub tools: bool,
    pub stream: bool,
    /// `stream_options`, without which OpenAI's servers count no tokens of a stream.
    pub stream_usage: bool,
    /// `max_completion_tokens`, as newer models of OpenAI want it, instead of `max_tokens`.
    pub completion_limit: bool,
    pub temperature: bool,
    pub seed: bool,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            json: JsonMode::Schema,
            tools: true,
            stream: true,
            stream_usage: true,
            completion_limit: false,
            temperature: true,
            seed: true,
        }
    }
}

impl Wire {
    /// One step down, as far as the refusal's words tell which; `None` when they tell nothing that can be left out.
    pub fn without(self, refusal: &str) -> Option<Self> {
        let text = refusal.to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let mut next = self;
        if names(&["response_format", "json_schema", "json_object", "guided", "structured output", "grammar"]) {
            next.json = match self.json {
                JsonMode::Schema => JsonMode::Object,
                JsonMode::Object | JsonMode::Instruction => JsonMode::Instruction,
            };
        } else if names(&["max_completion_tokens"]) {
            next.completion_limit = true;
        } else if names(&["stream_options", "include_usage"]) {
            next.stream_usage = false;
        } else if names(&["temperature"]) {
            next.temperature = false;
        } else if names(&["seed"]) {
            next.seed = false;
        } else if names(&["tool", "function call", "function_call", "functions"]) {
            next.tools = false;
        } else if names(&["stream"]) {
            next.stream = false;
        }
        (next != self).then_some(next)
    }
}

/// What was learnt of an endpoint, for all its calls.
pub(super) struct Learnt(Mutex<Wire>);

impl Learnt {
    pub fn new(wire: Wire) -> Self {
        Self(Mutex::new(wire))
    }

    pub fn get(&self) -> Wire {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, wire: Wire) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = wire;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_steps_down_what_it_names_and_nothing_else() {
        let full = Wire::default();
        let object = full.without("`response_format` of type json_schema is not supported").unwrap();
        assert_eq!(object, Wire { json: JsonMode::Object, ..full });
        let instruction = object.without("response_format: unknown field").unwrap();
        assert_eq!(instruction, Wire { json: JsonMode::Instruction, ..full });
        assert_eq!(instruction.without("response_format: unknown field"), None);
        assert_eq!(full.without("this model does not support tools"), Some(Wire { tools: false, ..full }));
        let limit = "Use 'max_completion_tokens' instead of 'max_tokens'";
        assert_eq!(full.without(limit), Some(Wire { completion_limit: true, ..full }));
        assert_eq!(full.without("Unknown parameter: stream_options"), Some(Wire { stream_usage: false, ..full }));
        assert_eq!(full.without("temperature must be 1"), Some(Wire { temperature: false, ..full }));
        assert_eq!(full.without("the moon is full"), None);
    }
}
