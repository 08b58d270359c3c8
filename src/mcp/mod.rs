//! The Model Context Protocol, both ways.
//!
//! As a client: settings of servers → connections that outlive a process → their tools, named and described as models
//! accept them, and sources for the rules where a server speaks as oncall's own do. As a server: oncall's tools over
//! stdio or HTTP, for other hosts.

pub mod client;
mod connect;
mod error;
mod exchange;
mod handler;
pub mod names;
pub mod oauth;
pub mod remembered;
mod result;
pub mod schema;
pub mod serve;
pub mod settings;
pub mod sources;
pub mod tool;

pub use client::{Fleet, Offer, Server};
pub use error::McpError;
pub use settings::{Generation, ServerSettings, Wire};
