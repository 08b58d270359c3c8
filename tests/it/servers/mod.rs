//! Real servers, started by the tests that need them: on a free port, in a folder of their own, gone when dropped. And one
//! that answers by hand, for those that cannot be had.

pub mod alertmanager;
pub mod compiled;
pub mod embeddings;
pub mod http;
pub mod kubernetes;
pub mod mcp;
pub mod postgres;
pub mod process;
pub mod prometheus;
pub mod search;
pub mod tmux;
pub mod victorialogs;
