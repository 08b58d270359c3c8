//! Kubernetes: the state of workloads, from what `kubectl get ... -o json` wrote into files, from a live cluster, or from
//! the series of kube-state-metrics.
//!
//! In: documents of the API in any mix (`document`, [`raw`]). They become domain types ([`convert`]), each object once
//! ([`inventory`]), of which questions are answered ([`select`], [`rollout`], [`health`]). [`files`], [`live`] and
//! [`state_metrics`] are the sources of status, [`pod_logs`] one of logs.

pub mod convert;
mod document;
mod exchange;
pub mod files;
pub mod health;
pub mod inventory;
pub mod live;
pub mod pod_logs;
pub mod raw;
pub mod rollout;
pub mod select;
pub mod state_metrics;

pub use files::FileStatus;

#[cfg(test)]
mod tests;
