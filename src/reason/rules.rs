//! The embedded reasoner: deterministic, without a model. It knows the kinds of root causes from signature files,
//! asks what tells them apart, and weighs what came back.

mod calls;

pub use calls::first_calls;
