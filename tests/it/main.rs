//! One crate for all tests that drive the binary, real servers or the whole source tree.

mod agent;
mod alerts;
mod cli;
mod diagnose;
mod eval;
mod hostile;
mod indexing;
mod layering;
mod live;
mod mcp;
mod mcp_http;
mod mcp_others;
mod model_agent;
mod model_ask;
mod model_wire;
mod program;
mod promql;
mod real_model;
mod remote_embedding;
mod replay;
mod servers;
mod sessions;
mod stored;
mod traces;
mod variants;
