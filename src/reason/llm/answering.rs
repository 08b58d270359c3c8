//! Questions: which way they go, and how they are answered.

use minijinja::context;
use serde::{Deserialize, Serialize};

use super::check::{Checked, Checker, cited};
use super::shapes::{RouteAnswer, RouteName, schema};
use super::working::{Talk, converse};
use super::{Llm, digest};
use crate::domain::text::{clean, clean_line};
use crate::domain::{State, Usage};
use crate::llm::{Delta, Message, ModelError, tokens};
use crate::reason::{Reasoned, StepMove};

const ANSWER_CHARS: usize = 12_000;
const RESPOND_EVIDENCE: u64 = 2400;
const ASK_EVIDENCE: u64 = 1000;
/// Tokens of a conversation in a prompt; what is older is summed up.
const HISTORY_TOKENS: u64 = 1500;
/// Characters up to which a question without further signs is simple.
const SHORT_QUESTION_CHARS: usize = 40;

/// The way of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// One agent with tools.
    Simple,
    /// Plan, steps, answer.
    Complex,
}

/// A way, and why it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    pub route: Route,
    pub reason: String,
}

/// A question with the conversation before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Question {
    pub text: String,
    /// Questions and answers before, oldest first.
    pub history: Vec<Message>,
}

/// The way of a question by what can be seen of it; `None` when that does not tell.
fn cheap_route(question: &str) -> Option<Routed> {
    let text = question.to_lowercase();
    let has = |words: &[&'static str]| words.iter().find(|word| text.contains(**word)).copied();
    let routed = |route: Route, reason: String| Some(Routed { route, reason });
    let why = has(&[
        "why ",
        "root cause",
        "what changed",
        "diagnose",
        "investigate",
        "compare",
        "correlat",
        "为什么",
        "根因",
        "原因是",
        "排查一下",
        "诊断",
        "对比",
        "怎么回事",
    ]);
    let how = has(&[
        "how do i",
        "how to",
        "what is",
        "what does",
        "where is",
        "which command",
        "runbook",
        "meaning of",
        "怎么",
        "如何",
        "什么是",
        "是什么",
        "哪个命令",
        "手册",
        "文档",
    ]);
    let questions = question.matches(['?', '？']).count();
    match (why, how) {
        (Some(word), _) => routed(Route::Complex, format!("it asks for a cause (\"{}\")", word.trim())),
        (None, _) if questions > 1 => routed(Route::Complex, format!("it holds {questions} questions")),
        (None, Some(word)) => routed(Route::Simple, format!("it asks for knowledge (\"{word}\")")),
        (None, None) if question.chars().count() <= SHORT_QUESTION_CHARS => routed(Route::Simple, "it is short".into()),
        (None, None) => None,
    }
}

impl Llm {
    /// The way of a question, by the model where its looks do not tell.
    pub async fn route(&self, question: &str) -> Reasoned<Routed> {
        let unsure = || Routed { route: Route::Simple, reason: "nothing speaks for an investigation".into() };
        if let Some(value) = cheap_route(question) {
            return Reasoned { value, usage: Usage::default() };
        }
        let asked = async {
            let mut request = self.request("route", context! { question => digest::fence(&clean(question, 2000)) })?;
            request.answer = schema::<RouteAnswer>("route");
            self.models.planner.ask_shaped::<RouteAnswer>(request, |_| Ok(())).await
        };
        match self.trouble.guard(asked).await {
            Some((answer, usage)) => {
                let route = match answer.route {
                    RouteName::Simple => Route::Simple,
                    RouteName::Complex => Route::Complex,
                };
                Reasoned { value: Routed { route, reason: clean_line(&answer.reason, 200) }, usage }
            }
            None => Reasoned { value: unsure(), usage: Usage::default() },
        }
    }

    /// A follow-up question with what it leaves to the conversation put in; the question itself when nothing came before.
    pub async fn standalone(&self, question: &Question) -> Reasoned<String> {
        let as_it_is = || Reasoned { value: question.text.clone(), usage: Usage::default() };
        if question.history.is_empty() {
            return as_it_is();
        }
        let asked = async {
            let values = context! { history => history(&question.history), question => question.text.as_str() };
            self.models.executor.ask(self.request("rewrite", values)?, &mut |_| {}).await
        };
        match self.trouble.guard(asked).await {
            Some(reply) if !reply.answer.content.trim().is_empty() => {
                Reasoned { value: clean_line(reply.answer.content.trim(), 1000), usage: reply.usage }
            }
            _ => as_it_is(),
        }
    }

    /// The next move of the agent that answers a simple question. The conversation is the caller's to keep. `on_text`
    /// hears what the model writes, which is the answer unless calls follow it.
    ///
    /// # Errors
    /// [`ModelError`]: the model cannot go on.
    pub async fn answer_move(
        &self,
        state: &State,
        question: &Question,
        talk: Option<AskTalk>,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(StepMove, AskTalk, Usage), ModelError> {
        let talk = match talk {
            Some(AskTalk(talk)) => talk.answered(state, ASK_STEP),
            None => {
                let has_sources =
                    state.tools.iter().any(|tool| tool.name == "search_logs" || tool.name == "query_metrics");
                let evidence = match state.evidence.is_empty() {
                    true => String::new(),
                    false => digest::evidence(&state.evidence, ASK_EVIDENCE),
                };
                let values = context! {
                    language => digest::language(state.facts.lang),
                    has_sources => has_sources,
                    history => history(&question.history),
                    evidence => evidence,
                    question => question.text.as_str(),
                };
                Talk::starting(self.request("ask", values)?.messages)
            }
        };
        let (next, talk, usage) = converse(&self.models.executor, "ask", talk, state, on_text).await?;
        Ok((next, AskTalk(talk), usage))
    }

    /// The answer to a complex question, from the steps that were worked. `on_text` hears it as it is written.
    ///
    /// # Errors
    /// [`ModelError`]: there is no answer.
    pub async fn respond(
        &self,
        state: &State,
        question: &Question,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Reasoned<Checked>, ModelError> {
        let values = context! {
            language => digest::language(state.facts.lang),
            history => history(&question.history),
            question => question.text.as_str(),
            done => digest::done(&state.plan.steps),
            evidence => digest::evidence(&state.evidence, RESPOND_EVIDENCE),
        };
        let request = self.request("respond", values)?;
        let mut on_delta = |delta: Delta<'_>| {
            if let Delta::Content(text) = delta {
                on_text(text);
            }
        };
        let reply = self.models.synthesizer.ask(request, &mut on_delta).await?;
        Ok(Reasoned { value: self.checked(state, &reply.answer.content), usage: reply.usage })
    }

    /// An answer without what its evidence does not bear.
    pub fn checked(&self, state: &State, text: &str) -> Checked {
        Checker::new(state, &self.zone).check(&clean(text, ANSWER_CHARS))
    }

    /// A conversation that has grown too long for a prompt, with its older part summed up.
    pub async fn remembered(&self, conversation: Vec<Message>) -> (Vec<Message>, Usage) {
        let total: u64 = conversation.iter().map(tokens::of_message).sum();
        if total <= HISTORY_TOKENS {
            return (conversation, Usage::default());
        }
        let (older, newer) = conversation.split_at(older_part(&conversation));
        let asked = async {
            let text = digest::fence(&turns(older, u64::MAX));
            self.models.executor.ask(self.request("summarize", context! { history => text })?, &mut |_| {}).await
        };
        let summary = match self.trouble.guard(asked).await {
            Some(reply) => (clean(reply.answer.content.trim(), 1500), reply.usage),
            // Without a model the older part is cut.
            None => (turns(older, HISTORY_TOKENS / 2), Usage::default()),
        };
        let mut messages = vec![Message::system(summary.0)];
        messages.extend(newer.iter().cloned());
        (messages, summary.1)
    }
}

/// The conversation of a question under way.
#[derive(Debug, Clone)]
pub struct AskTalk(Talk);

/// The step under which the calls for a question are kept.
pub const ASK_STEP: u32 = 1;

/// How many messages from the beginning are to be summed up, so that the rest is half of what may stay.
fn older_part(conversation: &[Message]) -> usize {
    let mut kept = 0;
    let newer = conversation.iter().rev().take_while(|message| {
        kept += tokens::of_message(message);
        kept <= HISTORY_TOKENS / 2
    });
    conversation.len() - newer.count()
}

/// A conversation as text, the newest turns first to stay.
fn history(conversation: &[Message]) -> String {
    if conversation.is_empty() { String::new() } else { digest::fence(&turns(conversation, HISTORY_TOKENS)) }
}

fn turns(conversation: &[Message], limit: u64) -> String {
    let mut spent = 0;
    let mut lines: Vec<String> = Vec::new();
    for message in conversation.iter().rev() {
        let who = match message.role {
            crate::llm::Role::User => "engineer",
            crate::llm::Role::System => "before that",
            _ => "assistant",
        };
        let line = format!("{who}: {}", clean(message.content.trim(), 4000));
        spent += tokens::estimate(&line);
        if spent > limit && !lines.is_empty() {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.join("\n")
}

/// The ids that an answer cites, in the order of their numbers.
pub fn citations(text: &str) -> Vec<String> {
    let mut ids: Vec<String> = cited(text).into_iter().collect();
    ids.sort_by_key(|id| id[1..].parse::<usize>().unwrap_or(usize::MAX));
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_questions_looks_tell_its_way() {
        let route = |text: &str| cheap_route(text).map(|routed| routed.route);
        for text in ["Why did checkout fail at 14:30?", "order-service 为什么变慢了？", "Is it up? And since when?"]
        {
            assert_eq!(route(text), Some(Route::Complex), "{text}");
        }
        for text in ["How do I find what fills the disk?", "怎么查看慢查询？", "disk full", "What is a retry storm?"]
        {
            assert_eq!(route(text), Some(Route::Simple), "{text}");
        }
        assert_eq!(route("Tell me about the state of the payment path in the last hour, service by service."), None);
    }

    #[test]
    fn the_newest_turns_stay() {
        let conversation: Vec<Message> =
            (0..40).map(|n| Message::user(format!("question {n} {}", "words ".repeat(40)))).collect();
        let text = turns(&conversation, 200);
        assert!(text.contains("question 39") && !text.contains("question 0 "), "{text}");
        let cut = older_part(&conversation);
        assert!((20..40).contains(&cut), "{cut}");
    }

    #[test]
    fn citations_are_listed_in_order() {
        assert_eq!(citations("b [E10], a [E2, E1]. plain E5"), ["E1", "E2", "E10"]);
    }
}
