//! One step worked by a model: a conversation that grows by its calls and their answers.

use std::sync::PoisonError;

use minijinja::context;
use serde_json::{Value, json};

use super::{Llm, digest};
use crate::domain::text::clean;
use crate::domain::{Call, State, Step, Usage};
use crate::llm::{Chat, Delta, Message, ModelError, ToolCall, ToolDefinition};
use crate::reason::{Reasoned, StepMove};

/// Tokens of evidence that a step starts with.
const STEP_EVIDENCE: u64 = 600;
/// Answers in a row that only look closer at what is there.
const MAX_EXPANSIONS: usize = 3;
/// Calls of one turn.
const MAX_CALLS: usize = 8;
const CONCLUSION_CHARS: usize = 600;
const EXPAND: &str = "expand";

/// The conversation of a step under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Talk {
    messages: Vec<Message>,
    /// Calls whose answers are still to be told to the model, by their ids.
    pending: Vec<(String, Call)>,
}

impl Llm {
    pub(super) async fn work_step(
        &self,
        state: &State,
        step: &Step,
        turn: usize,
    ) -> Result<Reasoned<StepMove>, ModelError> {
        // The plan's own calls need no second thought.
        if turn == 0 && step.calls.iter().any(|call| !state.was_called(call)) {
            let calls: Vec<Call> = step.calls.iter().filter(|call| !state.was_called(call)).cloned().collect();
            return Ok(Reasoned { value: StepMove::Call { thought: String::new(), calls }, usage: Usage::default() });
        }
        let known = self.talks.lock().unwrap_or_else(PoisonError::into_inner).remove(&step.id);
        let talk = match known {
            Some(talk) => talk.with_answers(state, step.id),
            None => Talk { messages: self.opening(state, step)?, pending: Vec::new() },
        };
        let (value, talk, usage) = converse(&self.models.executor, "execute", talk, state, &mut |_| {}).await?;
        if let StepMove::Call { .. } = &value {
            self.talks.lock().unwrap_or_else(PoisonError::into_inner).insert(step.id, talk);
        }
        Ok(Reasoned { value, usage })
    }

    /// System and user message of a step, with what its own calls gave.
    fn opening(&self, state: &State, step: &Step) -> Result<Vec<Message>, ModelError> {
        let own: Vec<String> = state
            .invocations
            .iter()
            .filter(|made| made.step == Some(step.id))
            .flat_map(|made| made.evidence.clone())
            .collect();
        let (found, before): (Vec<_>, Vec<_>) = state.evidence.iter().partition(|one| own.contains(&one.id));
        let mut evidence = digest::evidence(before, STEP_EVIDENCE);
        if !own.is_empty() || !step.calls.is_empty() {
            evidence.push_str(&format!(
                "\n\nAnswers to this step's calls:\n{}",
                digest::evidence(found, digest::OUTPUT_TOKENS)
            ));
        }
        let values = context! {
            language => digest::language(state.facts.lang),
            alert => digest::alert(state),
            evidence => evidence,
            step => step.id,
            question => step.question.as_str(),
            reason => step.reason.as_str(),
        };
        Ok(self.request("execute", values)?.messages)
    }
}

impl Talk {
    /// The conversation with the answers of the calls that were made since.
    fn with_answers(mut self, state: &State, step: u32) -> Self {
        for (id, call) in std::mem::take(&mut self.pending) {
            let made = state.invocations.iter().rev().find(|made| made.step == Some(step) && made.call == call);
            let text = made.map_or_else(|| "not made".to_string(), |made| digest::outcome(state, made));
            self.messages.push(Message::tool(id, text));
        }
        self
    }

    pub(super) fn starting(messages: Vec<Message>) -> Self {
        Self { messages, pending: Vec::new() }
    }

    pub(super) fn answered(self, state: &State, step: u32) -> Self {
        self.with_answers(state, step)
    }
}

/// Asks until the model wants calls or is done. Looking closer at evidence, and calls that cannot be made, are answered
/// here.
pub(super) async fn converse(
    chat: &Chat,
    node: &str,
    mut talk: Talk,
    state: &State,
    on_text: &mut (dyn FnMut(&str) + Send),
) -> Result<(StepMove, Talk, Usage), ModelError> {
    let mut usage = Usage::default();
    let mut tools = digest::definitions(&state.tools, &state.closed_tools);
    tools.push(expand_definition());
    for round in 0..=MAX_EXPANSIONS {
        let request = crate::llm::ChatRequest {
            node: node.to_string(),
            messages: talk.messages.clone(),
            // The last round is for an answer.
            tools: if round == MAX_EXPANSIONS { Vec::new() } else { tools.clone() },
            ..Default::default()
        };
        let mut on_delta = |delta: Delta<'_>| {
            if let Delta::Content(text) = delta {
                on_text(text);
            }
        };
        let reply = chat.ask(request, &mut on_delta).await?;
        usage.add(reply.usage);
        let answer = reply.answer;
        if answer.tool_calls.is_empty() {
            if answer.content.trim().is_empty() {
                return Err(ModelError::Garbage("neither an answer nor a call".into()));
            }
            return Ok((StepMove::Done { conclusion: clean(answer.content.trim(), CONCLUSION_CHARS) }, talk, usage));
        }
        talk.messages.push(Message::assistant(answer.content.clone(), answer.tool_calls.clone()));
        let mut calls = Vec::new();
        for (n, call) in answer.tool_calls.into_iter().enumerate() {
            match answered_here(&call, state, &tools, n) {
                Some(text) => talk.messages.push(Message::tool(call.id, text)),
                None => {
                    let made = Call { tool: call.name, arguments: call.arguments };
                    talk.pending.push((call.id, made.clone()));
                    calls.push(made);
                }
            }
        }
        if !calls.is_empty() {
            let thought = clean(answer.content.trim(), CONCLUSION_CHARS);
            return Ok((StepMove::Call { thought, calls }, talk, usage));
        }
    }
    Err(ModelError::Garbage("it looks at the same evidence again and again".into()))
}

/// The answer to a call that no tool is asked for; `None`: it is to be made.
fn answered_here(call: &ToolCall, state: &State, tools: &[ToolDefinition], n: usize) -> Option<String> {
    if let Some(malformed) = &call.malformed {
        return Some(format!("not made: the arguments are no JSON object: {malformed}"));
    }
    if call.name == EXPAND {
        let id = call.arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        let part = call.arguments.get("part").and_then(Value::as_u64).unwrap_or(1);
        return Some(digest::expanded(state, id, usize::try_from(part).unwrap_or(1).clamp(1, 50)));
    }
    if !tools.iter().any(|tool| tool.name == call.name) {
        let names = digest::tool_names(&state.tools, &state.closed_tools);
        return Some(format!("not made: there is no such tool; there are {names}"));
    }
    (n >= MAX_CALLS).then(|| format!("not made: at most {MAX_CALLS} calls a turn"))
}

fn expand_definition() -> ToolDefinition {
    ToolDefinition {
        name: EXPAND.into(),
        description: "Shows all that is known of one piece of evidence: samples, labels, courses.".into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "description": "its id, such as E7" },
                "part": { "type": "integer", "minimum": 1, "description": "where it goes on, from 1" },
            },
            "required": ["id"],
        }),
    }
}
