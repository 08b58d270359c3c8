//! Records to rows and back. Every number is a BIGINT, every time microseconds since 1970.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Row};

use super::Owner;
use crate::domain::{
    AgentStep, Feedback, InvocationStatus, Judgement, Lang, Message, RetrievalQuality, RetrievalVerdict, Role, Session,
    SessionKind, SessionStatus, ToolInvocation, Usage,
};

type Statement<'q> = Query<'q, Any, AnyArguments>;

const UPSERT_SESSION: &str = "\
    INSERT INTO diagnosis_session (id, kind, route, status, status_reason, title, service, alert_fingerprint, lang, \
    started_at, ended_at, reasoner, model, input_tokens, output_tokens, cached_tokens, model_calls, cost, category, cause, \
    cause_service, confidence, host, pid, heartbeat_at, alert_started_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26) \
    ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, route = excluded.route, status = excluded.status, \
    status_reason = excluded.status_reason, title = excluded.title, service = excluded.service, \
    alert_fingerprint = excluded.alert_fingerprint, lang = excluded.lang, started_at = excluded.started_at, \
    ended_at = excluded.ended_at, reasoner = excluded.reasoner, model = excluded.model, \
    input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, cached_tokens = excluded.cached_tokens, model_calls = excluded.model_calls, \
    cost = excluded.cost, category = excluded.category, cause = excluded.cause, \
    cause_service = excluded.cause_service, confidence = excluded.confidence, host = excluded.host, \
    pid = excluded.pid, heartbeat_at = excluded.heartbeat_at, alert_started_at = excluded.alert_started_at";

const UPSERT_STEP: &str = "\
    INSERT INTO agent_step (session_id, step_order, node, parent, plan_step, decision, reason, state_change, \
    started_at, milliseconds, input_tokens, output_tokens) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
    ON CONFLICT (session_id, step_order) DO UPDATE SET node = excluded.node, parent = excluded.parent, \
    plan_step = excluded.plan_step, decision = excluded.decision, reason = excluded.reason, \
    state_change = excluded.state_change, started_at = excluded.started_at, milliseconds = excluded.milliseconds, \
    input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens";

const UPSERT_INVOCATION: &str = "\
    INSERT INTO tool_invocation (session_id, id, step, tool, server, arguments, status, error, attempts, served_by, \
    started_at, milliseconds, output_preview, output_bytes, findings, truncated, l0_candidates, l0_best_distance, \
    l0_best_text_score, l1_kept, l1_best_score, l1_margin, l1_verdict) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23) \
    ON CONFLICT (session_id, id) DO UPDATE SET step = excluded.step, tool = excluded.tool, server = excluded.server, \
    arguments = excluded.arguments, status = excluded.status, error = excluded.error, attempts = excluded.attempts, \
    served_by = excluded.served_by, started_at = excluded.started_at, milliseconds = excluded.milliseconds, \
    output_preview = excluded.output_preview, output_bytes = excluded.output_bytes, findings = excluded.findings, \
    truncated = excluded.truncated, l0_candidates = excluded.l0_candidates, \
    l0_best_distance = excluded.l0_best_distance, l0_best_text_score = excluded.l0_best_text_score, \
    l1_kept = excluded.l1_kept, l1_best_score = excluded.l1_best_score, l1_margin = excluded.l1_margin, \
    l1_verdict = excluded.l1_verdict";

const UPSERT_MESSAGE: &str = "\
    INSERT INTO message (session_id, message_order, role, content, at) VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (session_id, message_order) DO UPDATE SET role = excluded.role, content = excluded.content, \
    at = excluded.at";

const INSERT_FEEDBACK: &str =
    "INSERT INTO feedback (id, session_id, judgement, cause, note, at) VALUES ($1, $2, $3, $4, $5, $6)";

/// A statement that is prepared anew each time. sqlx 0.9 gives a missing DOUBLE PRECISION to Postgres as a 4-byte float
/// (sqlx-postgres, `any.rs`), and a statement that was prepared so refuses the 8 bytes of the next value.
fn reprepared<'q>(statement: &'static str) -> Statement<'q> {
    sqlx::query(statement).persistent(false)
}

pub(super) fn upsert_session<'q>(session: &Session, owner: &Owner, now: Timestamp) -> Statement<'q> {
    reprepared(UPSERT_SESSION)
        .bind(session.id.clone())
        .bind(session.kind.id())
        .bind(session.route.clone())
        .bind(session.status.id())
        .bind(session.status_reason.clone())
        .bind(session.title.clone())
        .bind(session.service.clone())
        .bind(session.fingerprint.clone())
        .bind(session.lang.pick("en", "zh"))
        .bind(session.started_at.as_microsecond())
        .bind(session.ended_at.map(Timestamp::as_microsecond))
        .bind(session.reasoner.clone())
        .bind(session.model.clone())
        .bind(stored(session.usage.input_tokens))
        .bind(stored(session.usage.output_tokens))
        .bind(stored(session.usage.cached_tokens))
        .bind(stored(session.usage.calls))
        .bind(session.usage.cost)
        .bind(session.category.clone())
        .bind(session.cause.clone())
        .bind(session.cause_service.clone())
        .bind(session.confidence)
        .bind(owner.host.clone())
        .bind(owner.pid)
        .bind(now.as_microsecond())
        .bind(session.alert_started_at.map(Timestamp::as_microsecond))
}

pub(super) fn upsert_step<'q>(session_id: &str, step: &AgentStep) -> Statement<'q> {
    sqlx::query(UPSERT_STEP)
        .bind(session_id.to_owned())
        .bind(i64::from(step.order))
        .bind(step.node.clone())
        .bind(step.parent.map(i64::from))
        .bind(step.plan_step.map(i64::from))
        .bind(step.decision.clone())
        .bind(step.reason.clone())
        .bind(step.state_change.clone())
        .bind(step.started_at.as_microsecond())
        .bind(step.milliseconds.map(stored))
        .bind(stored(step.input_tokens))
        .bind(stored(step.output_tokens))
}

pub(super) fn upsert_invocation<'q>(session_id: &str, made: &ToolInvocation) -> Statement<'q> {
    let quality = made.retrieval.as_ref();
    reprepared(UPSERT_INVOCATION)
        .bind(session_id.to_owned())
        .bind(stored(made.id))
        .bind(made.step.map(i64::from))
        .bind(made.tool.clone())
        .bind(made.server.clone())
        .bind(made.arguments.to_string())
        .bind(made.status.id())
        .bind(made.error.clone())
        .bind(i64::from(made.attempts))
        .bind(made.served_by.clone())
        .bind(made.started_at.as_microsecond())
        .bind(made.milliseconds.map(stored))
        .bind(made.output_preview.clone())
        .bind(made.output_bytes.map(stored))
        .bind(made.findings.map(stored))
        .bind(i64::from(made.truncated))
        .bind(quality.map(|quality| stored(quality.candidates as u64)))
        .bind(quality.and_then(|quality| quality.best_distance))
        .bind(quality.and_then(|quality| quality.best_text_score))
        .bind(quality.map(|quality| stored(quality.kept as u64)))
        .bind(quality.and_then(|quality| quality.best_score))
        .bind(quality.and_then(|quality| quality.margin))
        .bind(quality.map(|quality| verdict_id(quality.verdict)))
}

pub(super) fn upsert_message<'q>(session_id: &str, message: &Message) -> Statement<'q> {
    sqlx::query(UPSERT_MESSAGE)
        .bind(session_id.to_owned())
        .bind(i64::from(message.order))
        .bind(message.role.id())
        // Postgres takes no NUL in a text.
        .bind(message.content.replace('\0', ""))
        .bind(message.at.as_microsecond())
}

pub(super) fn insert_feedback<'q>(session_id: &str, feedback: &Feedback) -> Statement<'q> {
    sqlx::query(INSERT_FEEDBACK)
        .bind(uuid::Uuid::now_v7().to_string())
        .bind(session_id.to_owned())
        .bind(feedback.judgement.id())
        .bind(feedback.cause.clone())
        .bind(feedback.note.clone())
        .bind(feedback.at.as_microsecond())
}

/// Counts are far below 2^63.
fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) const SESSION_COLUMNS: &str = "id, kind, route, status, status_reason, title, service, alert_fingerprint, \
    lang, started_at, ended_at, reasoner, model, input_tokens, output_tokens, cached_tokens, model_calls, cost, category, cause, \
    cause_service, confidence, host, pid, heartbeat_at, alert_started_at";

/// A session with who works on it and when that was last heard of.
pub(super) fn session(row: &AnyRow) -> Result<(Session, Owner, Timestamp), sqlx::Error> {
    let session = Session {
        id: row.try_get("id")?,
        kind: id(row, "kind", SessionKind::of_id)?,
        route: row.try_get("route")?,
        status: id(row, "status", SessionStatus::of_id)?,
        status_reason: row.try_get("status_reason")?,
        title: row.try_get("title")?,
        service: row.try_get("service")?,
        fingerprint: row.try_get("alert_fingerprint")?,
        alert_started_at: optional_time(row, "alert_started_at")?,
        lang: if row.try_get::<String, _>("lang")? == "zh" { Lang::Zh } else { Lang::En },
        started_at: time(row, "started_at")?,
        ended_at: optional_time(row, "ended_at")?,
        reasoner: row.try_get("reasoner")?,
        model: row.try_get("model")?,
        usage: Usage {
            input_tokens: count(row, "input_tokens")?,
            output_tokens: count(row, "output_tokens")?,
            cached_tokens: count(row, "cached_tokens")?,
            calls: count(row, "model_calls")?,
            cost: row.try_get("cost")?,
        },
        category: row.try_get("category")?,
        cause: row.try_get("cause")?,
        cause_service: row.try_get("cause_service")?,
        confidence: row.try_get("confidence")?,
    };
    let owner = Owner { host: row.try_get("host")?, pid: row.try_get("pid")? };
    Ok((session, owner, time(row, "heartbeat_at")?))
}

pub(super) fn step(row: &AnyRow) -> Result<AgentStep, sqlx::Error> {
    Ok(AgentStep {
        order: small(row, "step_order")?.unwrap_or(0),
        node: row.try_get("node")?,
        parent: small(row, "parent")?,
        plan_step: small(row, "plan_step")?,
        decision: row.try_get("decision")?,
        reason: row.try_get("reason")?,
        state_change: row.try_get("state_change")?,
        started_at: time(row, "started_at")?,
        milliseconds: optional_count(row, "milliseconds")?,
        input_tokens: count(row, "input_tokens")?,
        output_tokens: count(row, "output_tokens")?,
    })
}

pub(super) fn invocation(row: &AnyRow) -> Result<ToolInvocation, sqlx::Error> {
    let arguments: String = row.try_get("arguments")?;
    let verdict: Option<String> = row.try_get("l1_verdict")?;
    let retrieval = match verdict {
        None => None,
        Some(verdict) => Some(RetrievalQuality {
            candidates: count(row, "l0_candidates")? as usize,
            best_distance: row.try_get("l0_best_distance")?,
            best_text_score: row.try_get("l0_best_text_score")?,
            kept: count(row, "l1_kept")? as usize,
            best_score: row.try_get("l1_best_score")?,
            margin: row.try_get("l1_margin")?,
            verdict: match verdict.as_str() {
                "strong" => RetrievalVerdict::Strong,
                "weak" => RetrievalVerdict::Weak,
                _ => RetrievalVerdict::None,
            },
        }),
    };
    Ok(ToolInvocation {
        id: count(row, "id")?,
        step: small(row, "step")?,
        tool: row.try_get("tool")?,
        server: row.try_get("server")?,
        // Written by us; what somebody changed by hand is shown as the text that it is.
        arguments: serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
        status: id(row, "status", InvocationStatus::of_id)?,
        error: row.try_get("error")?,
        attempts: small(row, "attempts")?.unwrap_or(0),
        served_by: row.try_get("served_by")?,
        started_at: time(row, "started_at")?,
        milliseconds: optional_count(row, "milliseconds")?,
        output_preview: row.try_get("output_preview")?,
        output_bytes: optional_count(row, "output_bytes")?,
        findings: optional_count(row, "findings")?,
        truncated: row.try_get::<i64, _>("truncated")? != 0,
        retrieval,
    })
}

pub(super) fn message(row: &AnyRow) -> Result<Message, sqlx::Error> {
    Ok(Message {
        order: small(row, "message_order")?.unwrap_or(0),
        role: id(row, "role", Role::of_id)?,
        content: row.try_get("content")?,
        at: time(row, "at")?,
    })
}

pub(super) fn feedback(row: &AnyRow) -> Result<Feedback, sqlx::Error> {
    Ok(Feedback {
        judgement: id(row, "judgement", Judgement::of_id)?,
        cause: row.try_get("cause")?,
        note: row.try_get("note")?,
        at: time(row, "at")?,
    })
}

fn verdict_id(verdict: RetrievalVerdict) -> &'static str {
    match verdict {
        RetrievalVerdict::Strong => "strong",
        RetrievalVerdict::Weak => "weak",
        RetrievalVerdict::None => "none",
    }
}

fn id<T>(row: &AnyRow, column: &str, of_id: impl Fn(&str) -> Option<T>) -> Result<T, sqlx::Error> {
    let text: String = row.try_get(column)?;
    of_id(&text).ok_or_else(|| undecodable(column, &format!("`{text}` is none of its values")))
}

fn time(row: &AnyRow, column: &str) -> Result<Timestamp, sqlx::Error> {
    let micros: i64 = row.try_get(column)?;
    Timestamp::from_microsecond(micros).map_err(|error| undecodable(column, &error.to_string()))
}

fn optional_time(row: &AnyRow, column: &str) -> Result<Option<Timestamp>, sqlx::Error> {
    match row.try_get::<Option<i64>, _>(column)? {
        None => Ok(None),
        Some(_) => time(row, column).map(Some),
    }
}

fn count(row: &AnyRow, column: &str) -> Result<u64, sqlx::Error> {
    Ok(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or(0))
}

fn optional_count(row: &AnyRow, column: &str) -> Result<Option<u64>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(|count| u64::try_from(count).unwrap_or(0)))
}

fn small(row: &AnyRow, column: &str) -> Result<Option<u32>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(|count| u32::try_from(count).unwrap_or(0)))
}

fn undecodable(column: &str, why: &str) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source: why.to_owned().into() }
}
