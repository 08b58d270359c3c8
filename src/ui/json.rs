//! `--view json`: one document on stdout; with `--events` every event as a JSON line instead, the last one with
//! the diagnosis in it.

use std::io::{self, Write};

use serde::Serialize;

use super::Renderer;
use crate::domain::Diagnosis;
use crate::event::Event;

/// What goes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Document,
    Events,
}

/// Writes JSON to `out`.
pub struct JsonRenderer<W> {
    out: W,
    output: Output,
}

impl<W: Write> JsonRenderer<W> {
    /// One document at the end.
    pub fn document(out: W) -> Self {
        Self { out, output: Output::Document }
    }

    /// A line per event, as they happen.
    pub fn events(out: W) -> Self {
        Self { out, output: Output::Events }
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

impl<W: Write> Renderer for JsonRenderer<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match self.output {
            Output::Events => self.line(event),
            Output::Document => Ok(()),
        }
    }

    fn finish(&mut self, diagnosis: &Diagnosis) -> io::Result<()> {
        match self.output {
            Output::Events => Ok(()),
            Output::Document => self.line(diagnosis),
        }
    }
}
