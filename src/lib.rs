//! An on-call assistant: an alert goes in, a diagnosis comes out whose every claim cites evidence.
//!
//! The modules in reading order, which is the order of the data flow:

/// Plain types that every other module speaks.
pub mod domain;
/// What happened, for front ends and stores.
pub mod event;
/// What a front end tells the agent.
pub mod control;
/// How remote services are spoken to.
pub mod http;
/// Events folded into records and spans.
pub mod trace;
/// One checked configuration.
pub mod config;
/// Payload → alert.
pub mod alert;
/// Where evidence lives.
pub mod source;
/// Pure algorithms over evidence.
pub mod analysis;
/// Language models.
pub mod llm;
/// Runbooks: split → embed → store → retrieve.
pub mod knowledge;
/// Everything that happened, kept.
pub mod session;
/// Questions that can be asked.
pub mod tool;
/// The Model Context Protocol: tools of other servers, and ours for other hosts.
pub mod mcp;
/// Who plans and concludes.
pub mod reason;
/// The graph that runs it.
pub mod agent;
/// What a user sees.
pub mod ui;
/// What a user types.
pub mod cli;
/// One file per subcommand.
pub mod command;
