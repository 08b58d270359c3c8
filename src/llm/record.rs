//! Keeps every exchange with a model as a line of `exchanges.jsonl`, which [`super::Replay`] reads.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{Answer, ChatRequest, Exchange};

/// A file that grows by a line an exchange.
#[derive(Debug)]
pub struct Recorder(Mutex<File>);

impl Recorder {
    /// Appends to the file, or makes it.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn append_to(path: &Path) -> io::Result<Self> {
        File::options().create(true).append(true).open(path).map(|file| Self(Mutex::new(file)))
    }

    /// What was sent and what came, as it left and entered this machine: secrets are placeholders.
    pub(super) fn keep(&self, request: &ChatRequest, answer: &Answer) -> io::Result<()> {
        let exchange = Exchange {
            kind: "model".into(),
            node: request.node.clone(),
            by_hand: false,
            request: Some(request.clone()),
            contains: Vec::new(),
            answer: answer.clone(),
        };
        let mut line = serde_json::to_string(&exchange)?;
        line.push('\n');
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }
}
