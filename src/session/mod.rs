//! The session store: everything that happened, kept.
//!
//! In go the changes of a [`crate::trace::Trace`], written by one [`writer::Recorder`] that the agent never waits for;
//! out come sessions for `oncall session` and `oncall trace`. SQLite below the data folder, or Postgres by URL: the
//! same SQL and the same migrations on both.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use crate::domain::{Feedback, Session, SessionKind, SessionRecord, SessionStatus};
use crate::trace::Changes;

mod connect;
mod owner;
mod query;
pub mod redact;
mod rows;
mod sql;
pub mod writer;

pub use connect::{Location, LocationError};
pub use owner::Owner;
pub use redact::Redact;
pub use sql::SqlStore;
pub use writer::{Recorded, Recorder};

/// A running session that was not heard of for so long was interrupted.
pub const SILENCE: SignedDuration = SignedDuration::from_secs(15);

/// What went wrong with a store.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// Locked by somebody else, or the server cannot be reached now: the same may work a moment later.
    #[error("the session store {location} is busy: {why}")]
    Busy { location: String, why: String },
    /// It cannot be used as it is: read-only, damaged, of a newer version, refused.
    #[error("the session store {location} cannot be used: {why}")]
    Unusable { location: String, why: String },
}

impl StoreError {
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}

/// Which sessions are wanted; the newest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub service: Option<String>,
    pub status: Option<SessionStatus>,
    pub kind: Option<SessionKind>,
    /// The title or the fingerprint of the alert, exactly.
    pub alert: Option<String>,
    /// Only those of which somebody said whether they were right.
    pub judged: bool,
    /// At most so many; `None`: all.
    pub limit: Option<usize>,
}

/// Where sessions are kept.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Writes all rows or none, and says that the owner is alive.
    async fn write(&self, changes: &Changes, owner: &Owner) -> Result<(), StoreError>;

    /// Newest first; a session whose worker is gone shows as interrupted.
    async fn list(&self, filter: &Filter) -> Result<Vec<Session>, StoreError>;

    /// Ids that begin with a text, at most `limit`, in order.
    async fn ids(&self, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError>;

    async fn read(&self, id: &str) -> Result<Option<SessionRecord>, StoreError>;

    async fn add_feedback(&self, id: &str, feedback: &Feedback) -> Result<(), StoreError>;

    /// Forgets sessions that started before an instant; returns how many.
    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError>;

    /// Writes what a database keeps back and lets go of it.
    async fn close(&self);
}
