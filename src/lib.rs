//! An on-call assistant: an alert goes in, a diagnosis comes out whose every claim cites evidence.
//!
//! The modules in reading order, which is the order of the data flow:

pub mod agent; // the graph that runs it
pub mod alert; // payload → alert
pub mod analysis; // pure algorithms over evidence
pub mod cli; // what a user types
pub mod command;
pub mod config; // one checked configuration
pub mod domain; // plain types
pub mod event; // what happened, for front ends and stores
pub mod knowledge; // runbooks: split → embed → store → retrieve
pub mod reason; // who plans and concludes
pub mod source; // where evidence lives
pub mod tool; // questions that can be asked
pub mod ui; // what a user sees // one file per subcommand
