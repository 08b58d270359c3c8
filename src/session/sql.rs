//! The store over SQLite and Postgres: one text of SQL for both.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::{AnyPool, AssertSqlSafe, Row};

use super::connect::{Access, classified, open};
use super::query::{Bind, is_judged_late, listing};
use super::{Filter, Location, Owner, SILENCE, SessionStore, StoreError, rows};
use crate::domain::{Feedback, Session, SessionRecord, SessionStatus};
use crate::trace::Changes;

const DIAGNOSIS: &str = "SELECT diagnosis FROM diagnosis_session WHERE id = $1";
const STEPS: &str = "SELECT * FROM agent_step WHERE session_id = $1 ORDER BY step_order";
const INVOCATIONS: &str = "SELECT * FROM tool_invocation WHERE session_id = $1 ORDER BY id";
const MESSAGES: &str = "SELECT * FROM message WHERE session_id = $1 ORDER BY message_order";
const FEEDBACK: &str = "SELECT * FROM feedback WHERE session_id = $1 ORDER BY at, id";
const HEARTBEAT: &str = "UPDATE diagnosis_session SET heartbeat_at = $1 WHERE id = $2";
const SET_DIAGNOSIS: &str = "UPDATE diagnosis_session SET diagnosis = $1 WHERE id = $2";
const IDS: &str = "SELECT id FROM diagnosis_session WHERE id LIKE $1 ORDER BY id LIMIT $2";
/// The tables that hang on a session, so that a store whose foreign keys are off keeps no orphans.
const PRUNE: [&str; 5] = [
    "DELETE FROM agent_step WHERE session_id IN (SELECT id FROM diagnosis_session WHERE started_at < $1)",
    "DELETE FROM tool_invocation WHERE session_id IN (SELECT id FROM diagnosis_session WHERE started_at < $1)",
    "DELETE FROM message WHERE session_id IN (SELECT id FROM diagnosis_session WHERE started_at < $1)",
    "DELETE FROM feedback WHERE session_id IN (SELECT id FROM diagnosis_session WHERE started_at < $1)",
    "DELETE FROM diagnosis_session WHERE started_at < $1",
];

/// An open store.
pub struct SqlStore {
    pool: AnyPool,
    location: Location,
    here: Owner,
}

impl SqlStore {
    /// Opens a store, making it where it is not there.
    ///
    /// # Errors
    /// A store that is locked for long, read-only, damaged, of a newer version, or cannot be reached.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        let pool = open(location, Access::ReadWrite).await?;
        Ok(Self { pool, location: location.clone(), here: Owner::this() })
    }

    /// The same for reading: a file that cannot be written is read as it stands.
    pub async fn open_for_reading(location: &Location) -> Result<Self, StoreError> {
        match Self::open(location).await {
            Err(StoreError::Unusable { .. }) if matches!(location, Location::Sqlite(_)) => {
                let pool = open(location, Access::ReadOnly).await?;
                Ok(Self { pool, location: location.clone(), here: Owner::this() })
            }
            opened => opened,
        }
    }

    fn failed(&self, error: &sqlx::Error) -> StoreError {
        classified(&self.location, error)
    }

    async fn write_all(&self, changes: &Changes, owner: &Owner) -> Result<(), sqlx::Error> {
        let now = Timestamp::now();
        let id = changes.session_id.as_str();
        let mut transaction = self.pool.begin().await?;
        // The first statement writes, so that SQLite waits for the lock here and nowhere else.
        match &changes.session {
            Some(session) => rows::upsert_session(session, owner, now).execute(&mut *transaction).await?,
            None => {
                let beat = sqlx::query(HEARTBEAT).bind(now.as_microsecond()).bind(id.to_owned());
                beat.execute(&mut *transaction).await?
            }
        };
        for step in &changes.steps {
            rows::upsert_step(id, step).execute(&mut *transaction).await?;
        }
        for made in &changes.invocations {
            rows::upsert_invocation(id, made).execute(&mut *transaction).await?;
        }
        for message in &changes.messages {
            rows::upsert_message(id, message).execute(&mut *transaction).await?;
        }
        if let Some(diagnosis) = &changes.diagnosis {
            let set = sqlx::query(SET_DIAGNOSIS).bind(diagnosis.to_string()).bind(id.to_owned());
            set.execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    async fn list_all(&self, filter: &Filter) -> Result<Vec<Session>, sqlx::Error> {
        let (sql, binds) = listing(filter);
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for bind in binds {
            query = match bind {
                Bind::Text(text) => query.bind(text),
                Bind::Number(number) => query.bind(number),
            };
        }
        let found = query.fetch_all(&self.pool).await?;
        let mut sessions = found.iter().map(|row| self.judged(row)).collect::<Result<Vec<_>, _>>()?;
        if is_judged_late(filter.status) {
            sessions.retain(|session| Some(session.status) == filter.status);
            sessions.truncate(filter.limit.unwrap_or(usize::MAX));
        }
        Ok(sessions)
    }

    /// A running session whose worker is gone, or silent for long, was interrupted.
    fn judged(&self, row: &sqlx::any::AnyRow) -> Result<Session, sqlx::Error> {
        let (mut session, owner, heard) = rows::session(row)?;
        let is_silent = Timestamp::now().duration_since(heard) > SILENCE;
        if session.status == SessionStatus::Running && (is_silent || owner.is_gone(&self.here)) {
            session.status = SessionStatus::Interrupted;
        }
        Ok(session)
    }

    async fn read_all(&self, id: &str) -> Result<Option<SessionRecord>, sqlx::Error> {
        let sql = format!("SELECT {} FROM diagnosis_session WHERE id = $1", rows::SESSION_COLUMNS);
        let found = sqlx::query(AssertSqlSafe(sql)).bind(id.to_owned()).fetch_optional(&self.pool).await?;
        let Some(row) = found else { return Ok(None) };
        let mut record = SessionRecord::begin(self.judged(&row)?);
        let fetch = |sql: &'static str| sqlx::query(sql).bind(id.to_owned()).fetch_all(&self.pool);
        record.steps = fetch(STEPS).await?.iter().map(rows::step).collect::<Result<_, _>>()?;
        record.tool_invocations = fetch(INVOCATIONS).await?.iter().map(rows::invocation).collect::<Result<_, _>>()?;
        record.messages = fetch(MESSAGES).await?.iter().map(rows::message).collect::<Result<_, _>>()?;
        record.feedback = fetch(FEEDBACK).await?.iter().map(rows::feedback).collect::<Result<_, _>>()?;
        let row = sqlx::query(DIAGNOSIS).bind(id.to_owned()).fetch_one(&self.pool).await?;
        let diagnosis: Option<String> = row.try_get("diagnosis")?;
        record.diagnosis = diagnosis.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Some(record))
    }

    async fn prune_all(&self, before: Timestamp) -> Result<u64, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        let mut pruned = 0;
        for sql in PRUNE {
            let done = sqlx::query(sql).bind(before.as_microsecond()).execute(&mut *transaction).await?;
            // The sessions themselves come last.
            pruned = done.rows_affected();
        }
        transaction.commit().await?;
        Ok(pruned)
    }

    async fn ids_from(&self, prefix: &str, limit: usize) -> Result<Vec<String>, sqlx::Error> {
        // What no id holds would be a wildcard.
        if !prefix.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let query = sqlx::query(IDS).bind(format!("{}%", prefix.to_ascii_lowercase())).bind(limit);
        query.fetch_all(&self.pool).await?.iter().map(|row| row.try_get("id")).collect()
    }
}

#[async_trait]
impl SessionStore for SqlStore {
    async fn write(&self, changes: &Changes, owner: &Owner) -> Result<(), StoreError> {
        self.write_all(changes, owner).await.map_err(|error| self.failed(&error))
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<Session>, StoreError> {
        self.list_all(filter).await.map_err(|error| self.failed(&error))
    }

    async fn ids(&self, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.ids_from(prefix, limit).await.map_err(|error| self.failed(&error))
    }

    async fn read(&self, id: &str) -> Result<Option<SessionRecord>, StoreError> {
        self.read_all(id).await.map_err(|error| self.failed(&error))
    }

    async fn add_feedback(&self, id: &str, feedback: &Feedback) -> Result<(), StoreError> {
        let added = rows::insert_feedback(id, feedback).execute(&self.pool).await;
        added.map(|_| ()).map_err(|error| self.failed(&error))
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.prune_all(before).await.map_err(|error| self.failed(&error))
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
