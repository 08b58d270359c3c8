//! Kubernetes: the state of workloads, from what `kubectl get ... -o json` wrote into files.
//!
//! In: documents of the API in any mix (`document`, [`raw`]). They become domain types ([`convert`]), each object once
//! ([`inventory`]), of which questions are answered ([`select`], [`rollout`], [`health`]). [`files`] is the source.

pub mod convert;
mod document;
pub mod files;
pub mod health;
pub mod inventory;
pub mod raw;
pub mod rollout;
pub mod select;

pub use files::FileStatus;

#[cfg(test)]
mod tests;
