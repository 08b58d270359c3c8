//! What a user sees of a run: a renderer takes every event, and the diagnosis at the end.

pub mod columns;
pub mod html;
mod json;
mod plain;
pub mod report;
pub mod timeline;
pub mod tui;

use std::io;

use crate::domain::Diagnosis;
use crate::event::Event;

pub use json::JsonRenderer;
pub use plain::{PlainRenderer, Progress};

/// A front end of one run.
pub trait Renderer {
    /// Something happened.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// The run has ended with this answer.
    fn finish(&mut self, diagnosis: &Diagnosis) -> io::Result<()>;
}
