//! Real servers, started by the tests that need them: on a free port, in a folder of their own, gone when dropped.

pub mod embeddings;
pub mod postgres;
pub mod prometheus;
