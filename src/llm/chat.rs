//! A model in use: every call is fitted into the window, redacted, metered, tried again where that helps, and recorded.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::redact::{Redactor, Restorer};
use super::{
    Answer, ChatModel, ChatRequest, Delta, Finish, Message, ModelError, OnDelta, Recorder, TokenUsage, json, tokens,
    window,
};
use crate::domain::Usage;
use crate::event::{EventKind, EventSink};
use crate::http::jittered;

/// Attempts at a call whose answer breaks off or is unusable.
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Tokens kept free for an answer whose length nobody limits.
const ANSWER_TOKENS: u64 = 2048;
/// The share of the window that is used: the estimate of tokens is one.
const USED_PART: f64 = 0.9;
/// The share of what a server refused as too long that is tried instead.
const SHRINK: f64 = 0.6;

/// Money per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    /// Of input that the server had cached; the input's price where there is none.
    pub cached: Option<f64>,
}

impl Prices {
    fn cost(&self, usage: TokenUsage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cached) as f64;
        let cached = usage.cached as f64 * self.cached.unwrap_or(self.input);
        (fresh * self.input + cached + usage.output as f64 * self.output) / 1e6
    }
}

/// How one model is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChatSettings {
    /// The model's window in tokens.
    pub context: u64,
    /// Tokens of an answer, at most.
    pub max_tokens: Option<u64>,
    pub prices: Option<Prices>,
}

/// What a run may spend, and has spent, over all its models.
#[derive(Debug, Default)]
pub struct Meter {
    pub max_tokens: Option<u64>,
    pub max_cost: Option<f64>,
    spent: Mutex<Usage>,
}

impl Meter {
    pub fn new(max_tokens: Option<u64>, max_cost: Option<f64>) -> Self {
        Self { max_tokens, max_cost, spent: Mutex::default() }
    }

    pub fn spent(&self) -> Usage {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, usage: Usage) {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).add(usage);
    }

    /// Whether a prompt of so many tokens may still be sent.
    fn check(&self, next: u64) -> Result<(), ModelError> {
        let spent = self.spent();
        let tokens = spent.input_tokens + spent.output_tokens;
        if let Some(limit) = self.max_tokens.filter(|limit| tokens + next > *limit) {
            return Err(ModelError::Budget(format!(
                "the token budget is used up: {tokens} of {limit} spent, the next prompt takes about {next}"
            )));
        }
        match (self.max_cost, spent.cost) {
            (Some(limit), Some(cost)) if cost >= limit => {
                Err(ModelError::Budget(format!("the cost budget is used up: {cost:.4} of {limit} spent")))
            }
            _ => Ok(()),
        }
    }
}

/// An answer with what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub answer: Answer,
    pub usage: Usage,
}

/// A model with everything that a call of it needs.
#[derive(Clone)]
pub struct Chat {
    pub model: Arc<dyn ChatModel>,
    pub settings: ChatSettings,
    pub meter: Arc<Meter>,
    pub recorder: Option<Arc<Recorder>>,
    /// Takes secrets out of what is sent, and puts them back into what comes.
    pub redactor: Option<Arc<Redactor>>,
    pub events: EventSink,
    pub cancel: CancellationToken,
}

impl Chat {
    /// Asks once.
    ///
    /// # Errors
    /// [`ModelError`], after the attempts that may help.
    pub async fn ask(&self, request: ChatRequest, on_delta: OnDelta<'_>) -> Result<Reply, ModelError> {
        let Some(redactor) = &self.redactor else { return self.ask_as_it_is(request, on_delta).await };
        let mut restorer = Restorer::new(Arc::clone(redactor));
        let mut restoring = |delta: Delta<'_>| match delta {
            Delta::Content(text) => on_delta(Delta::Content(&restorer.push(text))),
            Delta::Reasoning(_) => {}
        };
        let mut reply = self.ask_as_it_is(redacted(request, redactor), &mut restoring).await?;
        on_delta(Delta::Content(&restorer.finish()));
        reply.answer.content = redactor.restore(&reply.answer.content);
        for call in &mut reply.answer.tool_calls {
            call.arguments = redactor.restore_json(&call.arguments);
        }
        Ok(reply)
    }

    async fn ask_as_it_is(&self, request: ChatRequest, on_delta: OnDelta<'_>) -> Result<Reply, ModelError> {
        let max_tokens = request.max_tokens.or(self.settings.max_tokens);
        let room = self.settings.context.saturating_sub(max_tokens.unwrap_or(ANSWER_TOKENS));
        let request = window::fit(ChatRequest { max_tokens, ..request }, (room as f64 * USED_PART) as u64);
        match self.attempt_all(&request, on_delta).await {
            Err(ModelError::Overflow(words)) => {
                tracing::debug!(words, "the prompt is shortened");
                let limit = (tokens::of_request(&request) as f64 * SHRINK) as u64;
                self.attempt_all(&window::fit(request, limit), on_delta).await
            }
            result => result,
        }
    }

    async fn attempt_all(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<Reply, ModelError> {
        let mut attempt = 1;
        loop {
            self.meter.check(tokens::of_request(request))?;
            let error = match self.attempt(request, on_delta).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if !error.is_transient() || attempt >= ATTEMPTS {
                return Err(error);
            }
            tracing::debug!(%error, "the model is asked again");
            tokio::select! {
                () = self.cancel.cancelled() => return Err(ModelError::Cancelled),
                () = tokio::time::sleep(jittered(FIRST_PAUSE, attempt)) => {}
            }
            attempt += 1;
        }
    }

    async fn attempt(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<Reply, ModelError> {
        let started = Instant::now();
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(ModelError::Cancelled),
            answer = self.model.answer(request, on_delta) => answer?,
        };
        if let Some(Err(error)) = self.recorder.as_ref().map(|recorder| recorder.keep(request, &answer)) {
            self.events.emit(EventKind::Warning { message: format!("the exchange could not be recorded: {error}") });
        }
        let counted = answer.usage.unwrap_or_else(|| estimated(request, &answer));
        let usage = Usage {
            input_tokens: counted.input,
            output_tokens: counted.output,
            cached_tokens: counted.cached,
            calls: 1,
            cost: self.settings.prices.map(|prices| prices.cost(counted)),
        };
        self.meter.add(usage);
        let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (node, model) = (request.node.clone(), self.model.name().to_string());
        self.events.emit(EventKind::ModelUsed { node, model, milliseconds, usage });
        Ok(Reply { answer, usage })
    }

    /// Asks for an answer of a given shape; one that does not fit is sent back once, with what is wrong.
    ///
    /// # Errors
    /// [`ModelError::Garbage`] when the second answer does not fit either.
    pub async fn ask_shaped<T: DeserializeOwned>(
        &self,
        mut request: ChatRequest,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Result<(T, Usage), ModelError> {
        if let Some(redactor) = &self.redactor {
            request = redacted(request, redactor);
        }
        let mut spent = Usage::default();
        let mut complaint = String::new();
        for _ in 0..2 {
            let reply = self.ask_as_it_is(request.clone(), &mut |_| {}).await?;
            spent.add(reply.usage);
            let shaped =
                shaped::<T>(&reply.answer, self.redactor.as_deref()).and_then(|value| check(&value).map(|()| value));
            match shaped {
                Ok(value) => return Ok((value, spent)),
                Err(words) => complaint = words,
            }
            request.messages.push(Message::assistant(reply.answer.content, Vec::new()));
            request.messages.push(Message::user(format!(
                "That answer cannot be used: {complaint}. Answer again with one JSON object that fits the schema."
            )));
        }
        Err(ModelError::Garbage(complaint))
    }
}

/// A request without its secrets.
fn redacted(mut request: ChatRequest, redactor: &Redactor) -> ChatRequest {
    for message in &mut request.messages {
        message.content = redactor.redact(&message.content);
        for call in &mut message.tool_calls {
            call.arguments = redactor.redact_json(&call.arguments);
        }
    }
    request
}

/// Secrets are put back after parsing: one may hold a quote.
fn shaped<T: DeserializeOwned>(answer: &Answer, redactor: Option<&Redactor>) -> Result<T, String> {
    let or_cut = |complaint: String| match answer.finish {
        Finish::Length => "it was cut at the limit of tokens".to_string(),
        _ => complaint,
    };
    let value = json::find(&answer.content).ok_or_else(|| or_cut("it holds no JSON object".into()))?;
    let value = match redactor {
        Some(redactor) => redactor.restore_json(&value),
        None => value,
    };
    serde_json::from_value(value).map_err(|error| or_cut(error.to_string()))
}

/// For servers that do not count.
fn estimated(request: &ChatRequest, answer: &Answer) -> TokenUsage {
    let said = Message::assistant(format!("{}{}", answer.reasoning, answer.content), answer.tool_calls.clone());
    TokenUsage { input: tokens::of_request(request), output: tokens::of_message(&said), cached: 0 }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;

    /// Answers in turn; the last answer stays.
    struct Scripted(Mutex<Vec<Result<Answer, ModelError>>>);

    #[async_trait]
    impl ChatModel for Scripted {
        fn name(&self) -> &str {
            "scripted"
        }

        async fn answer(&self, request: &ChatRequest, _: OnDelta<'_>) -> Result<Answer, ModelError> {
            let mut script = self.0.lock().unwrap();
            let next = if script.len() > 1 { script.remove(0) } else { script[0].clone() };
            match next {
                Err(ModelError::Overflow(_)) if tokens::of_request(request) < 200 => Ok(text("it fits")),
                other => other,
            }
        }
    }

    fn text(content: &str) -> Answer {
        Answer { content: content.into(), ..Answer::default() }
    }

    fn chat(script: Vec<Result<Answer, ModelError>>, meter: Meter) -> Chat {
        let prices = Some(Prices { input: 1.0, output: 2.0, cached: Some(0.5) });
        Chat {
            model: Arc::new(Scripted(Mutex::new(script))),
            settings: ChatSettings { context: 8192, max_tokens: None, prices },
            meter: Arc::new(meter),
            recorder: None,
            redactor: None,
            events: EventSink::channel().0,
            cancel: CancellationToken::new(),
        }
    }

    fn request(text: &str) -> ChatRequest {
        ChatRequest { messages: vec![Message::user(text)], ..ChatRequest::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_breaks_off_is_asked_for_again_and_costs_are_counted() {
        let usage = Some(TokenUsage { input: 1_000_000, output: 500_000, cached: 200_000 });
        let chat =
            chat(vec![Err(ModelError::Cut { received: 3 }), Ok(Answer { usage, ..text("x") })], Meter::default());
        let reply = chat.ask(request("q"), &mut |_| {}).await.unwrap();
        let want = Usage {
            input_tokens: 1_000_000,
            output_tokens: 500_000,
            cached_tokens: 200_000,
            calls: 1,
            cost: Some(1.9),
        };
        assert_eq!((reply.answer.content.as_str(), reply.usage), ("x", want));
        assert_eq!(chat.meter.spent(), want);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_help_is_not_tried_again() {
        let refused = ModelError::Unauthorized("no".into());
        let chat = chat(vec![Err(refused.clone()), Ok(text("x"))], Meter::default());
        assert_eq!(chat.ask(request("q"), &mut |_| {}).await, Err(refused));
    }

    #[tokio::test(start_paused = true)]
    async fn an_overflow_is_shortened_and_tried_once() {
        let chat = chat(vec![Err(ModelError::Overflow("8".into()))], Meter::default());
        let reply = chat.ask(request(&"word ".repeat(260)), &mut |_| {}).await.unwrap();
        assert_eq!(reply.answer.content, "it fits");
        let error = chat.ask(request(&"word ".repeat(2000)), &mut |_| {}).await;
        assert_eq!(error, Err(ModelError::Overflow("8".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn budgets_end_before_the_call_that_would_break_them() {
        let tokens = chat(vec![Ok(text("x"))], Meter::new(Some(20), None));
        tokens.ask(request("q"), &mut |_| {}).await.unwrap();
        let error = tokens.ask(request(&"word ".repeat(30)), &mut |_| {}).await.unwrap_err();
        assert!(error.to_string().starts_with("the token budget is used up: 12 of 20 spent"), "{error}");
        let usage = Some(TokenUsage { input: 1_000_000, output: 0, cached: 0 });
        let cost = chat(vec![Ok(Answer { usage, ..text("x") })], Meter::new(None, Some(0.5)));
        cost.ask(request("q"), &mut |_| {}).await.unwrap();
        let error = cost.ask(request("q"), &mut |_| {}).await.unwrap_err();
        assert_eq!(error, ModelError::Budget("the cost budget is used up: 1.0000 of 0.5 spent".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_shape_that_does_not_fit_is_sent_back_once() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Shape {
            n: u32,
        }
        let small = |shape: &Shape| if shape.n < 9 { Ok(()) } else { Err(format!("{} is too large", shape.n)) };
        for bad in ["no", "{\"n\": \"x\"}", "{\"n\": 10}"] {
            let chat = chat(vec![Ok(text(bad)), Ok(text("```json\n{\"n\": 3}\n```"))], Meter::default());
            let (shape, usage) = chat.ask_shaped(request("q"), small).await.unwrap();
            assert_eq!((shape, usage.calls), (Shape { n: 3 }, 2), "{bad}");
        }
        let chat = chat(vec![Ok(text("{\"n\": 10}"))], Meter::default());
        let error = chat.ask_shaped(request("q"), small).await.unwrap_err();
        assert_eq!(error, ModelError::Garbage("10 is too large".into()));
    }

    #[tokio::test]
    async fn an_interruption_ends_a_call_at_once() {
        let chat = chat(vec![Ok(text("x"))], Meter::default());
        chat.cancel.cancel();
        assert_eq!(chat.ask(request("q"), &mut |_| {}).await, Err(ModelError::Cancelled));
    }
}
