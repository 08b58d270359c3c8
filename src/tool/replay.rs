//! Tools that keep what they were asked and answered, and tools that answer from such a recording: an incident that was
//! recorded is diagnosed again without its sources.
//!
//! A recording is a part of `exchanges.jsonl`: one line of kind `tools` (how the tools presented themselves, and what was
//! not there), then one of kind `tool` for each call. Lines of other kinds belong to others.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::registry::Registry;
use crate::domain::{Failure, FailureKind, Outcome, SourceReport, ToolSpec};

/// What takes secrets out of a line before it is kept.
pub type Mask = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// A line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Tools { specs: Vec<ToolSpec>, absent: Vec<SourceReport> },
    Tool { tool: String, arguments: Value, outcome: Box<Outcome> },
}

/// The file that grows by a line a call.
struct Kept {
    file: Mutex<File>,
    mask: Mask,
}

impl Kept {
    fn keep(&self, line: &Line) -> io::Result<()> {
        let mut text = (self.mask)(&serde_json::to_value(line)?).to_string();
        text.push('\n');
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes())
    }
}

/// The same tools, every call of which is appended to a file.
///
/// # Errors
/// A file that cannot be written.
pub fn recorded(registry: &Registry, absent: &[SourceReport], file: File, mask: Mask) -> io::Result<Registry> {
    let kept = Arc::new(Kept { file: Mutex::new(file), mask });
    let specs = registry.specs();
    kept.keep(&Line::Tools { specs: specs.clone(), absent: absent.to_vec() })?;
    let tools = specs.iter().filter_map(|spec| registry.get(&spec.name).ok());
    Ok(Registry::new(
        tools.map(|tool| -> Arc<dyn Tool> { Arc::new(Recorded { inner: Arc::clone(tool), kept: Arc::clone(&kept) }) }),
    ))
}

struct Recorded {
    inner: Arc<dyn Tool>,
    kept: Arc<Kept>,
}

#[async_trait]
impl Tool for Recorded {
    fn needs_consent(&self) -> bool {
        self.inner.needs_consent()
    }

    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    async fn call(&self, arguments: Value, cancel: &CancellationToken) -> Outcome {
        let outcome = self.inner.call(arguments.clone(), cancel).await;
        let line = Line::Tool { tool: self.spec().name.clone(), arguments, outcome: Box::new(outcome.clone()) };
        if let Err(error) = self.kept.keep(&line) {
            tracing::warn!("a call is missing in the recording: {error}");
        }
        outcome
    }
}

/// The tools of a recording, and what was not there; `None` when the file is not there or holds no calls.
///
/// # Errors
/// A file that cannot be read or a line that is none, with its number.
pub fn replayed(path: &Path) -> Result<Option<(Registry, Vec<SourceReport>)>, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let mut presented = None;
    let mut calls: Vec<(String, Value, Outcome)> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |error: serde_json::Error| format!("{}: line {}: {error}", path.display(), number + 1);
        let value: Value = serde_json::from_str(line).map_err(wrong)?;
        if !matches!(value["kind"].as_str(), Some("tools" | "tool")) {
            continue;
        }
        match serde_json::from_value(value).map_err(wrong)? {
            Line::Tools { specs, absent } => presented = Some((specs, absent)),
            Line::Tool { tool, arguments, outcome } => calls.push((tool, arguments, *outcome)),
        }
    }
    Ok(presented.map(|(specs, absent)| {
        let tools = specs.into_iter().map(|spec| -> Arc<dyn Tool> {
            let of_tool = calls.iter().filter(|(tool, ..)| *tool == spec.name);
            let answers = of_tool.map(|(_, arguments, outcome)| (arguments.clone(), outcome.clone())).collect();
            Arc::new(Replayed { spec, answers: Mutex::new(answers) })
        });
        (Registry::new(tools), absent)
    }))
}

impl Replayed {
    /// The arguments are the caller's choice, so that the tool stays open, whatever is asked.
    fn not_asked(&self) -> Outcome {
        let message = format!("`{}` was not asked this when the incident was recorded", self.spec.name);
        Outcome::Failure(Failure::new(FailureKind::BadArguments, message))
    }
}

/// Answers a call as it was answered; the last answer of the same call again and again.
struct Replayed {
    spec: ToolSpec,
    answers: Mutex<VecDeque<(Value, Outcome)>>,
}

#[async_trait]
impl Tool for Replayed {
    /// It only tells what was answered then.
    fn needs_consent(&self) -> bool {
        false
    }

    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, _cancel: &CancellationToken) -> Outcome {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let same = answers.iter().filter(|(asked, _)| *asked == arguments).count();
        let first = answers.iter().position(|(asked, _)| *asked == arguments);
        let answer = match (first, same) {
            (None, _) => None,
            (Some(only), 1) => answers.get(only).cloned(),
            (Some(first), _) => answers.remove(first),
        };
        answer.map_or_else(|| self.not_asked(), |(_, outcome)| outcome)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{Finding, Output, Served, SourceStatus};

    struct Counting(ToolSpec, Mutex<u32>);

    #[async_trait]
    impl Tool for Counting {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        async fn call(&self, _: Value, _: &CancellationToken) -> Outcome {
            let mut calls = self.1.lock().unwrap();
            *calls += 1;
            Outcome::Output(Output {
                source: "s".into(),
                window: None,
                findings: vec![Finding::Nothing { what: format!("call {calls} of hunter2") }],
                notes: Vec::new(),
                truncated: false,
                served: Served::Live,
                asked: Vec::new(),
                retrieval: None,
            })
        }
    }

    #[tokio::test]
    async fn what_was_answered_is_answered_again_in_order_and_without_secrets() {
        let spec = ToolSpec {
            name: "count".into(),
            description: "counts".into(),
            input_schema: json!({}),
            server: "builtin".into(),
            read_only: true,
        };
        let registry = Registry::new([Arc::new(Counting(spec.clone(), Mutex::new(0))) as Arc<dyn Tool>]);
        let absent = [SourceReport { name: "logs".into(), status: SourceStatus::Empty, detail: String::new() }];
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("exchanges.jsonl");
        let mask: Mask = Arc::new(|value| serde_json::from_str(&value.to_string().replace("hunter2", "***")).unwrap());
        let recording = recorded(&registry, &absent, File::create(&path).unwrap(), mask).unwrap();
        let cancel = CancellationToken::new();
        let ask = async |registry: &Registry, n: u32| match registry
            .get("count")
            .unwrap()
            .call(json!({ "n": n }), &cancel)
            .await
        {
            Outcome::Output(output) => serde_json::to_value(&output.findings[0]).unwrap()["what"].to_string(),
            Outcome::Failure(failure) => failure.message,
        };
        for n in [1, 1, 2] {
            ask(&recording, n).await;
        }
        let (replay, was_absent) = replayed(&path).unwrap().unwrap();
        assert_eq!((replay.specs(), was_absent), (vec![spec], absent.to_vec()));
        let mut said = Vec::new();
        for n in [1, 2, 1, 1, 3] {
            said.push(ask(&replay, n).await);
        }
        let unknown = "`count` was not asked this when the incident was recorded";
        assert_eq!(said, ["\"call 1 of ***\"", "\"call 3 of ***\"", "\"call 2 of ***\"", "\"call 2 of ***\"", unknown]);
    }

    #[test]
    fn a_file_without_calls_is_no_recording_and_a_broken_line_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("exchanges.jsonl");
        assert!(replayed(&path).unwrap().is_none());
        std::fs::write(&path, "{\"kind\":\"model\"}\n").unwrap();
        assert!(replayed(&path).unwrap().is_none());
        std::fs::write(&path, "\n{\"kind\":\"tool\"}\n").unwrap();
        let error = replayed(&path).err().unwrap();
        assert!(error.ends_with("exchanges.jsonl: line 2: missing field `tool`"), "{error}");
    }
}
