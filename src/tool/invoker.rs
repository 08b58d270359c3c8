//! The one way to call a tool: with a deadline, retries, a limit of concurrency, a memory of good answers, and a count
//! of failures that closes a tool for the rest of the run.
//!
//! In: [`Call`]s. Out: an [`Outcome`] for each, always; and the events of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::approval::Approvals;
use super::kept::Kept;
use super::output_limit;
use super::registry::Registry;
use crate::control::Approval;
use crate::domain::text::{counted, head};
use crate::domain::{Call, Failure, FailureKind, Outcome, Output, Served};
use crate::event::{CallResult, EventKind, EventSink};
use crate::http::jittered;

/// The pause before the second attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Characters of the findings that an event carries.
const PREVIEW_CHARS: usize = 500;
/// Good answers that are remembered.
const MAX_REMEMBERED: usize = 256;

/// How patient the invoker is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InvokerSettings {
    /// For a call with all its attempts. Waiting for a free place does not count.
    pub deadline: Duration,
    /// Attempts in all, of a call that only reads and fails for a passing reason.
    pub attempts: u32,
    /// Final failures in a row after which a tool is closed.
    pub failures_to_close: u32,
    /// Calls at the same time.
    pub concurrency: usize,
}

impl Default for InvokerSettings {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(10), attempts: 3, failures_to_close: 3, concurrency: 8 }
    }
}

/// Calls the tools of one run.
pub struct Invoker {
    registry: Registry,
    settings: InvokerSettings,
    events: EventSink,
    places: Semaphore,
    next_id: AtomicU64,
    memory: Mutex<Memory>,
    fallback: Fallback,
    /// Who is asked before a call that may change something; `None`: whoever made the registry decided.
    approvals: Option<Arc<Approvals>>,
}

/// What answers when a source does not.
#[derive(Clone, Default)]
pub enum Fallback {
    /// What this run was told before.
    #[default]
    Run,
    /// That, and what earlier runs were told.
    Kept(Arc<Kept>),
    /// Nothing: old answers are refused.
    None,
}

/// What a run remembers of its calls.
#[derive(Default)]
struct Memory {
    /// The last good answer by tool and arguments, and when it came.
    good: BTreeMap<String, (Instant, Output)>,
    /// Final failures in a row by tool.
    failures: BTreeMap<String, u32>,
    closed: BTreeSet<String>,
    /// What breaks off the calls under way, by their ids.
    under_way: BTreeMap<u64, CancellationToken>,
}

impl Invoker {
    pub fn new(registry: Registry, settings: InvokerSettings, events: EventSink) -> Self {
        let places = Semaphore::new(settings.concurrency.max(1));
        Self {
            registry,
            settings,
            events,
            places,
            next_id: AtomicU64::new(1),
            memory: Mutex::default(),
            fallback: Fallback::Run,
            approvals: None,
        }
    }

    /// The same, with another fallback.
    pub fn falling_back(self, fallback: Fallback) -> Self {
        Self { fallback, ..self }
    }

    /// Asks before calls that may change something.
    pub fn asking(self, approvals: Arc<Approvals>) -> Self {
        Self { approvals: Some(approvals), ..self }
    }

    /// Answers the request of a call that waits.
    pub fn answer_approval(&self, request: u64, approval: Approval) {
        if let Some(approvals) = &self.approvals {
            approvals.answer(request, approval);
        }
    }

    /// Breaks off one call; whether it was under way.
    pub fn cancel_call(&self, call_id: u64) -> bool {
        let token = self.memory().under_way.get(&call_id).cloned();
        token.inspect(CancellationToken::cancel).is_some()
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The tools that were closed, sorted.
    pub fn closed_tools(&self) -> Vec<String> {
        self.memory().closed.iter().cloned().collect()
    }

    /// Makes a call.
    pub async fn invoke(&self, call: &Call, step: Option<u32>, cancel: &CancellationToken) -> Outcome {
        let call_id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let server = self.registry.get(&call.tool).map(|tool| tool.spec().server.clone()).unwrap_or_default();
        self.events.emit(EventKind::CallStarted { call_id, step, server: server.clone(), call: call.clone() });
        let started = Instant::now();
        let cancel = cancel.child_token();
        self.memory().under_way.insert(call_id, cancel.clone());
        let (outcome, attempts) = match self.may_be_made(call_id, &server, call, &cancel).await {
            true => self.answer(call, &cancel).await,
            false => (Outcome::Failure(denied(&call.tool)), 0),
        };
        self.memory().under_way.remove(&call_id);
        let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.events.emit(EventKind::CallEnded { call_id, milliseconds, attempts, result: call_result(&outcome) });
        outcome
    }

    /// Makes all calls at once; the outcomes are in the order of the calls, and a call waits for no other.
    pub async fn invoke_all(&self, calls: &[Call], step: Option<u32>, cancel: &CancellationToken) -> Vec<Outcome> {
        futures::future::join_all(calls.iter().map(|call| self.invoke(call, step, cancel))).await
    }

    /// What only reads may; for the rest somebody is asked, where there is somebody.
    async fn may_be_made(&self, call_id: u64, server: &str, call: &Call, cancel: &CancellationToken) -> bool {
        let (Some(approvals), Ok(tool)) = (&self.approvals, self.registry.get(&call.tool)) else { return true };
        !tool.needs_consent() || approvals.ask(call_id, server, call, &self.events, cancel).await
    }

    /// The outcome and how many attempts it took.
    async fn answer(&self, call: &Call, cancel: &CancellationToken) -> (Outcome, u32) {
        let tool = match self.registry.get(&call.tool) {
            Ok(tool) => Arc::clone(tool),
            Err(failure) => return (Outcome::Failure(failure), 0),
        };
        let key = format!("{} {}", call.tool, canonical(&call.arguments));
        if self.memory().closed.contains(&call.tool) {
            return (self.fall_back(call, &key, closed(&call.tool, self.settings.failures_to_close)).await, 0);
        }
        let (outcome, attempts) = tokio::select! {
            biased;
            () = cancel.cancelled() => return (Outcome::Failure(cancelled()), 0),
            // The semaphore is never closed, so that a permit always comes.
            _permit = self.places.acquire() => self.attempt_all(&tool, call, cancel).await,
        };
        (self.remember(call, key, outcome).await, attempts)
    }

    /// Attempts until the call succeeds, fails for good, or its time is up.
    async fn attempt_all(&self, tool: &Arc<dyn Tool>, call: &Call, cancel: &CancellationToken) -> (Outcome, u32) {
        let deadline = Instant::now() + self.settings.deadline;
        let mut attempts = 0;
        let mut earlier: Option<Failure> = None;
        loop {
            attempts += 1;
            let outcome = self.attempt(tool, call, deadline, cancel).await;
            // What a source said before the time was up says more than that it was.
            let outcome = match (outcome, earlier.take()) {
                (Outcome::Failure(late), Some(said)) if late.kind == FailureKind::Timeout && late.source.is_none() => {
                    return (Outcome::Failure(said), attempts);
                }
                (outcome, _) => outcome,
            };
            let Outcome::Failure(failure) = &outcome else {
                return (outcome, attempts);
            };
            let may_retry = tool.spec().read_only && failure.kind.is_transient() && attempts < self.settings.attempts;
            let next = Instant::now() + jittered(FIRST_PAUSE, attempts);
            if !may_retry || next >= deadline {
                return (outcome, attempts);
            }
            earlier = failure.source.is_some().then(|| failure.clone());
            tokio::select! {
                biased;
                () = cancel.cancelled() => return (Outcome::Failure(cancelled()), attempts),
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// One attempt, in a task of its own, so that a tool that computes holds up no other and a panic stays inside.
    async fn attempt(
        &self,
        tool: &Arc<dyn Tool>,
        call: &Call,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Outcome {
        let token = cancel.child_token();
        let (running, arguments) = (Arc::clone(tool), call.arguments.clone());
        // Dropping the set aborts the task; the guard tells what the tool itself has started.
        let _guard = token.clone().drop_guard();
        let mut task = JoinSet::new();
        task.spawn(async move { running.call(arguments, &token).await });
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => return Outcome::Failure(cancelled()),
            ended = tokio::time::timeout_at(deadline, task.join_next()) => ended,
        };
        match ended {
            Ok(Some(Ok(Outcome::Output(output)))) => Outcome::Output(output_limit::cut(output)),
            Ok(Some(Ok(failure))) => failure,
            Ok(Some(Err(error))) => Outcome::Failure(crashed(&call.tool, error)),
            Ok(None) | Err(_) => Outcome::Failure(timed_out(&call.tool, self.settings.deadline)),
        }
    }

    /// Books the outcome; a failure is replaced by the last good answer of the same call, where there is one.
    async fn remember(&self, call: &Call, key: String, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Output(output) => {
                {
                    let mut memory = self.memory();
                    memory.failures.remove(&call.tool);
                    if memory.good.len() < MAX_REMEMBERED || memory.good.contains_key(&key) {
                        memory.good.insert(key, (Instant::now(), output.clone()));
                    }
                }
                self.on_disk(call, Some(&output), |kept, call, output| {
                    output.into_iter().for_each(|output| kept.keep(call, output));
                })
                .await;
                Outcome::Output(output)
            }
            Outcome::Failure(failure) => {
                use FailureKind::{BadArguments, Cancelled, Denied, NotAllowed};
                if matches!(failure.kind, BadArguments | Cancelled | Denied | NotAllowed) {
                    return Outcome::Failure(failure);
                }
                self.count_failure(&call.tool);
                self.fall_back(call, &key, failure).await
            }
        }
    }

    fn count_failure(&self, tool: &str) {
        let closed_after = {
            let mut memory = self.memory();
            let failures = memory.failures.entry(tool.to_owned()).or_default();
            *failures += 1;
            let failures = *failures;
            let closes = failures >= self.settings.failures_to_close && memory.closed.insert(tool.to_owned());
            closes.then_some(failures)
        };
        if let Some(failures) = closed_after {
            self.events.emit(EventKind::ToolClosed { tool: tool.to_owned(), failures });
        }
    }

    async fn fall_back(&self, call: &Call, key: &str, failure: Failure) -> Outcome {
        if matches!(self.fallback, Fallback::None) {
            return Outcome::Failure(failure);
        }
        let of_run = self.memory().good.get(key).cloned();
        let found = match of_run {
            Some((at, output)) => Some((i64::try_from(at.elapsed().as_secs()).unwrap_or(i64::MAX), output)),
            None => self.of_earlier_runs(call).await,
        };
        let Some((age_seconds, mut output)) = found else { return Outcome::Failure(failure) };
        output.served = Served::Stale { age_seconds };
        output.notes.push(format!("answered from memory, {age_seconds} s old: {}", failure.message));
        Outcome::Output(output)
    }

    /// What an earlier run was told, with its age in seconds.
    async fn of_earlier_runs(&self, call: &Call) -> Option<(i64, Output)> {
        let (at, output) = self.on_disk(call, None, |kept, call, _| kept.find(call)).await??;
        Some((Timestamp::now().duration_since(at).as_secs().max(0), output))
    }

    /// Work with the files of earlier runs, off the threads that serve tasks.
    async fn on_disk<T: Send + 'static>(
        &self,
        call: &Call,
        output: Option<&Output>,
        work: impl FnOnce(&Kept, &Call, Option<&Output>) -> T + Send + 'static,
    ) -> Option<T> {
        let Fallback::Kept(kept) = &self.fallback else { return None };
        let (kept, call, output) = (Arc::clone(kept), call.clone(), output.cloned());
        tokio::task::spawn_blocking(move || work(&kept, &call, output.as_ref())).await.ok()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Nothing panics while it is held; were it so, the maps would still be whole.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Arguments with sorted keys and without nulls, so that equal calls have equal texts.
fn canonical(arguments: &Value) -> String {
    match arguments {
        Value::Object(object) => {
            let sorted: BTreeMap<_, _> = object.iter().filter(|(_, value)| !value.is_null()).collect();
            let fields: Vec<_> = sorted
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

fn call_result(outcome: &Outcome) -> CallResult {
    match outcome {
        Outcome::Output(output) => {
            // Findings are plain data, whose serialisation does not fail; were it to, the preview is empty.
            let json = serde_json::to_string(&output.findings).unwrap_or_default();
            CallResult::Output {
                source: output.source.clone(),
                findings: output.findings.len(),
                truncated: output.truncated,
                served: output.served,
                preview: head(&json, PREVIEW_CHARS).to_owned(),
                bytes: json.len(),
                retrieval: output.retrieval,
            }
        }
        Outcome::Failure(failure) => CallResult::Failure { kind: failure.kind, message: failure.message.clone() },
    }
}

fn failure(kind: FailureKind, message: String) -> Failure {
    Failure::new(kind, message)
}

fn cancelled() -> Failure {
    failure(FailureKind::Cancelled, "cancelled before it was answered".to_owned())
}

fn denied(tool: &str) -> Failure {
    let message = format!("`{tool}` may change something and the engineer did not approve the call: go on without it");
    failure(FailureKind::Denied, message)
}

fn closed(tool: &str, failures: u32) -> Failure {
    let message =
        format!("`{tool}` failed {} in a row and is closed for this run: use other tools", counted(failures, "time"));
    failure(FailureKind::Closed, message)
}

fn timed_out(tool: &str, deadline: Duration) -> Failure {
    let message = format!(
        "`{tool}` gave no answer within {} s: ask for a shorter window, or raise agent.tool_timeout",
        deadline.as_secs_f64()
    );
    failure(FailureKind::Timeout, message)
}

fn crashed(tool: &str, error: tokio::task::JoinError) -> Failure {
    let text = error.try_into_panic().ok().and_then(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned())
    });
    let text = crate::domain::text::clean_line(&text.unwrap_or_default(), 200);
    failure(FailureKind::SourceError, format!("`{tool}` broke off with an internal error: {text}"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use async_trait::async_trait;
    use serde_json::json;
    use tokio::sync::mpsc::UnboundedReceiver;

    use super::*;
    use crate::domain::{Finding, ToolSpec};
    use crate::event::Event;

    /// A tool that follows a script: what it does at its first call, its second, ..., its last from then on.
    struct Scripted {
        spec: ToolSpec,
        script: Vec<Turn>,
        calls: AtomicU32,
    }

    #[derive(Clone)]
    enum Turn {
        Answer,
        Fail(FailureKind),
        After(Duration, Box<Turn>),
        Panic,
    }

    fn scripted(name: &str, script: impl IntoIterator<Item = Turn>) -> Arc<Scripted> {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({}),
            server: "builtin".to_owned(),
            read_only: true,
        };
        Arc::new(Scripted { spec, script: script.into_iter().collect(), calls: AtomicU32::new(0) })
    }

    fn after(seconds: u64, turn: Turn) -> Turn {
        Turn::After(Duration::from_secs(seconds), Box::new(turn))
    }

    fn good() -> Output {
        Output {
            source: "s".into(),
            window: None,
            findings: vec![Finding::Nothing { what: "x".into() }],
            notes: Vec::new(),
            truncated: false,
            served: Served::Live,
            asked: Vec::new(),
            retrieval: None,
        }
    }

    #[async_trait]
    impl Tool for Scripted {
        fn spec(&self) -> &ToolSpec {
            &self.spec
        }

        async fn call(&self, _arguments: Value, _cancel: &CancellationToken) -> Outcome {
            let call = self.calls.fetch_add(1, Ordering::Relaxed) as usize;
            let mut turn = self.script[call.min(self.script.len() - 1)].clone();
            while let Turn::After(pause, next) = turn {
                tokio::time::sleep(pause).await;
                turn = *next;
            }
            match turn {
                Turn::Answer => Outcome::Output(good()),
                Turn::Fail(kind) => Outcome::Failure(failure(kind, "as scripted".to_owned())),
                Turn::Panic => panic!("as scripted"),
                Turn::After(..) => unreachable!("the loop ends on another turn"),
            }
        }
    }

    fn invoker(tools: &[&Arc<Scripted>]) -> (Invoker, UnboundedReceiver<Event>) {
        let (events, received) = EventSink::channel();
        let registry = Registry::new(tools.iter().map(|tool| -> Arc<dyn Tool> { Arc::clone(*tool) as _ }));
        (Invoker::new(registry, InvokerSettings::default(), events), received)
    }

    fn call(tool: &str) -> Call {
        Call { tool: tool.to_owned(), arguments: json!({"service": "a"}) }
    }

    fn kind(outcome: &Outcome) -> Option<FailureKind> {
        match outcome {
            Outcome::Output(_) => None,
            Outcome::Failure(failure) => Some(failure.kind),
        }
    }

    async fn invoke(invoker: &Invoker, tool: &str) -> Outcome {
        invoker.invoke(&call(tool), None, &CancellationToken::new()).await
    }

    #[tokio::test(start_paused = true)]
    async fn three_tools_of_two_seconds_end_together_and_a_failing_one_delays_none() {
        let slow = scripted("slow", [after(2, Turn::Answer)]);
        let slower = scripted("slower", [after(2, Turn::Answer)]);
        let failing = scripted("failing", [Turn::Fail(FailureKind::Unavailable)]);
        let (invoker, _events) = invoker(&[&slow, &slower, &failing]);
        let started = Instant::now();
        let calls = [call("slow"), call("failing"), call("slower"), call("slow")];
        let outcomes = invoker.invoke_all(&calls, None, &CancellationToken::new()).await;
        assert!(started.elapsed() < Duration::from_millis(2200), "{:?}", started.elapsed());
        let kinds: Vec<_> = outcomes.iter().map(kind).collect();
        assert_eq!(kinds, [None, Some(FailureKind::Unavailable), None, None]);
        assert_eq!(failing.calls.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_over_its_deadline_is_a_time_out() {
        let slow = scripted("slow", [after(60, Turn::Answer)]);
        let (invoker, _events) = invoker(&[&slow]);
        let started = Instant::now();
        let outcome = invoke(&invoker, "slow").await;
        assert_eq!(started.elapsed().as_secs(), 10);
        let message = "`slow` gave no answer within 10 s: ask for a shorter window, or raise agent.tool_timeout";
        assert_eq!(outcome, Outcome::Failure(failure(FailureKind::Timeout, message.into())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_passing_failure_is_tried_again_and_a_lasting_one_is_not() {
        let passing = scripted("passing", [Turn::Fail(FailureKind::Unavailable), Turn::Answer]);
        let lasting = scripted("lasting", [Turn::Fail(FailureKind::Unauthorized)]);
        let (invoker, _events) = invoker(&[&passing, &lasting]);
        assert_eq!(kind(&invoke(&invoker, "passing").await), None);
        assert_eq!(kind(&invoke(&invoker, "lasting").await), Some(FailureKind::Unauthorized));
        assert_eq!((passing.calls.load(Ordering::Relaxed), lasting.calls.load(Ordering::Relaxed)), (2, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_good_answer_of_the_same_call_stands_in_for_a_failure() {
        let tool = scripted("tool", [Turn::Answer, Turn::Fail(FailureKind::SourceError)]);
        let (invoker, _events) = invoker(&[&tool]);
        invoke(&invoker, "tool").await;
        tokio::time::advance(Duration::from_secs(90)).await;
        let same = Call { tool: "tool".into(), arguments: json!({"namespace": null, "service": "a"}) };
        let stale = invoker.invoke(&same, None, &CancellationToken::new()).await;
        let want = Output {
            served: Served::Stale { age_seconds: 90 },
            notes: vec!["answered from memory, 90 s old: as scripted".into()],
            ..good()
        };
        assert_eq!(stale, Outcome::Output(want));
        let other = Call { tool: "tool".into(), arguments: json!({"service": "b"}) };
        let outcome = invoker.invoke(&other, None, &CancellationToken::new()).await;
        assert_eq!(kind(&outcome), Some(FailureKind::SourceError));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_is_closed_after_three_failures_in_a_row() {
        let tool = scripted("tool", [Turn::Fail(FailureKind::SourceError)]);
        let (invoker, mut events) = invoker(&[&tool]);
        for _ in 0..3 {
            assert_eq!(kind(&invoke(&invoker, "tool").await), Some(FailureKind::SourceError));
        }
        assert_eq!(kind(&invoke(&invoker, "tool").await), Some(FailureKind::Closed));
        assert_eq!(invoker.closed_tools(), ["tool"]);
        assert_eq!(tool.calls.load(Ordering::Relaxed), 3);
        let mut closings = Vec::new();
        while let Ok(event) = events.try_recv() {
            if let EventKind::ToolClosed { tool, failures } = event.kind {
                closings.push((tool, failures));
            }
        }
        assert_eq!(closings, [("tool".to_owned(), 3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_between_failures_and_bad_arguments_keep_a_tool_open() {
        let fail = || Turn::Fail(FailureKind::SourceError);
        let bad = || Turn::Fail(FailureKind::BadArguments);
        let tool = scripted("tool", [fail(), fail(), Turn::Answer, bad(), bad(), bad(), fail(), fail(), Turn::Answer]);
        let (invoker, _events) = invoker(&[&tool]);
        for n in 0..9 {
            let call = Call { tool: "tool".into(), arguments: json!({"n": n}) };
            invoker.invoke(&call, None, &CancellationToken::new()).await;
        }
        assert_eq!(invoker.closed_tools(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn cancelling_ends_running_and_waiting_calls_at_once() {
        let slow = scripted("slow", [after(5, Turn::Answer)]);
        let (events, _received) = EventSink::channel();
        let settings = InvokerSettings { concurrency: 1, ..InvokerSettings::default() };
        let invoker = Invoker::new(Registry::new([Arc::clone(&slow) as Arc<dyn Tool>]), settings, events);
        let cancel = CancellationToken::new();
        let started = Instant::now();
        let calls = [call("slow"), call("slow")];
        let (outcomes, ()) = tokio::join!(invoker.invoke_all(&calls, None, &cancel), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        });
        assert_eq!(started.elapsed().as_secs(), 1);
        assert!(outcomes.iter().all(|outcome| kind(outcome) == Some(FailureKind::Cancelled)));
        assert_eq!(slow.calls.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_calls_run_at_once_than_allowed() {
        let slow = scripted("slow", [after(2, Turn::Answer)]);
        let (events, _received) = EventSink::channel();
        let settings = InvokerSettings { concurrency: 2, ..InvokerSettings::default() };
        let invoker = Invoker::new(Registry::new([slow as Arc<dyn Tool>]), settings, events);
        let started = Instant::now();
        let calls = vec![call("slow"); 4];
        invoker.invoke_all(&calls, None, &CancellationToken::new()).await;
        assert_eq!(started.elapsed().as_secs(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_is_broken_off_and_the_others_go_on() {
        let (slow, quick) = (scripted("slow", [after(5, Turn::Answer)]), scripted("quick", [after(2, Turn::Answer)]));
        let (invoker, mut events) = invoker(&[&slow, &quick]);
        let calls = [call("slow"), call("quick")];
        let cancel = CancellationToken::new();
        let (outcomes, ()) = tokio::join!(invoker.invoke_all(&calls, None, &cancel), async {
            let Some(Event { kind: EventKind::CallStarted { call_id, .. }, .. }) = events.recv().await else {
                panic!("the first event is the start of the first call");
            };
            assert!(invoker.cancel_call(call_id));
            assert!(!invoker.cancel_call(99));
        });
        assert_eq!([kind(&outcomes[0]), kind(&outcomes[1])], [Some(FailureKind::Cancelled), None]);
        assert!(invoker.memory().under_way.is_empty());
    }

    /// The outcomes of calls of a tool that may change something, each request answered in its turn.
    async fn asked(answers: &[Approval]) -> (Vec<Option<FailureKind>>, u32) {
        let mut changing = Scripted {
            spec: scripted("changing", [Turn::Answer]).spec.clone(),
            script: vec![Turn::Answer],
            calls: AtomicU32::new(0),
        };
        changing.spec.read_only = false;
        let changing = Arc::new(changing);
        let (invoker, mut events) = invoker(&[&changing]);
        let invoker = invoker.asking(Arc::default());
        let calls = async {
            let mut outcomes = Vec::new();
            for n in 0..3 {
                let call = Call { tool: "changing".into(), arguments: json!({ "n": n }) };
                outcomes.push(kind(&invoker.invoke(&call, None, &CancellationToken::new()).await));
            }
            outcomes
        };
        let answering = async {
            let mut answers = answers.iter();
            while let Some(event) = events.recv().await {
                if let EventKind::ApprovalRequested { request, .. } = event.kind {
                    let answer = answers.next().copied().expect("no more requests than answers");
                    invoker.answer_approval(request, answer);
                }
            }
        };
        let outcomes = tokio::select! {
            outcomes = calls => outcomes,
            () = answering => unreachable!("the invoker keeps its sink"),
        };
        (outcomes, changing.calls.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_call_that_may_change_something_is_made_only_when_it_is_approved() {
        let denied = Some(FailureKind::Denied);
        assert_eq!(asked(&[Approval::Deny, Approval::Once, Approval::Deny]).await, (vec![denied, None, denied], 1));
        assert_eq!(asked(&[Approval::Deny, Approval::Session]).await, (vec![denied, None, None], 2));
    }

    #[tokio::test]
    async fn a_run_that_is_cancelled_takes_no_for_an_answer() {
        let (events, _received) = EventSink::channel();
        let approvals = Approvals::default();
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert!(!approvals.ask(1, "s", &call("t"), &events, &cancel).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_stays_inside_the_call() {
        let (invoker, _events) = invoker(&[&scripted("tool", [Turn::Panic])]);
        let message = "`tool` broke off with an internal error: as scripted";
        assert_eq!(invoke(&invoker, "tool").await, Outcome::Failure(failure(FailureKind::SourceError, message.into())));
    }

    #[tokio::test(start_paused = true)]
    async fn every_call_has_a_start_and_an_end_with_what_it_gave() {
        let (invoker, mut events) = invoker(&[&scripted("tool", [after(1, Turn::Answer)])]);
        invoker.invoke(&call("tool"), Some(2), &CancellationToken::new()).await;
        invoke(&invoker, "tol").await;
        let mut kinds = Vec::new();
        while let Ok(event) = events.try_recv() {
            kinds.push(event.kind);
        }
        let unknown = Call { tool: "tol".into(), ..call("tool") };
        assert_eq!(
            kinds,
            [
                EventKind::CallStarted { call_id: 1, step: Some(2), server: "builtin".into(), call: call("tool") },
                EventKind::CallEnded {
                    call_id: 1,
                    milliseconds: 1000,
                    attempts: 1,
                    result: CallResult::Output {
                        source: "s".into(),
                        findings: 1,
                        truncated: false,
                        served: Served::Live,
                        preview: r#"[{"type":"nothing","what":"x"}]"#.into(),
                        bytes: 31,
                        retrieval: None,
                    },
                },
                EventKind::CallStarted { call_id: 2, step: None, server: String::new(), call: unknown },
                EventKind::CallEnded {
                    call_id: 2,
                    milliseconds: 0,
                    attempts: 0,
                    result: CallResult::Failure {
                        kind: FailureKind::BadArguments,
                        message: "there is no tool `tol`: did you mean `tool`?".into(),
                    },
                },
            ]
        );
    }
}
