//! The terminal front end: a live view below the scrollback, or a full screen with panels and a conversation.
//!
//! `state` is a pure reducer over messages; `rows` and `view` draw from it; `input` edits; `terminal` takes the terminal
//! and gives it back; `run` is the loop between them. Nothing here knows the agent: events come in, effects go out.

pub mod ansi;
pub mod chart;
pub mod input;
pub mod layout;
pub mod markdown;
pub mod rows;
mod run;
pub mod state;
mod terminal;
pub mod text;
pub mod theme;
pub mod view;

pub use run::{Left, run};
pub use state::{App, Effect, Kind, Msg};
pub use terminal::Mode;
pub use theme::{Theme, ThemeName};
