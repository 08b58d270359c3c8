//! The filter of a listing as SQL with numbered parameters, which both databases take.

use super::Filter;
use super::rows::SESSION_COLUMNS;
use crate::domain::SessionStatus;

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bind {
    Text(String),
    Number(i64),
}

/// The statement and its parameters, in order.
pub(super) fn listing(filter: &Filter) -> (String, Vec<Bind>) {
    let mut conditions = Vec::new();
    let mut binds = Vec::new();
    let mut add = |condition: &str, bind: Bind| {
        binds.push(bind);
        conditions.push(condition.replace('?', &format!("${}", binds.len())));
    };
    if let Some(since) = filter.since {
        add("started_at >= ?", Bind::Number(since.as_microsecond()));
    }
    if let Some(until) = filter.until {
        add("started_at < ?", Bind::Number(until.as_microsecond()));
    }
    if let Some(service) = &filter.service {
        add("service = ?", Bind::Text(service.clone()));
    }
    if let Some(kind) = filter.kind {
        add("kind = ?", Bind::Text(kind.id().into()));
    }
    if let Some(alert) = &filter.alert {
        add("(alert_fingerprint = ? OR title = ?)", Bind::Text(alert.clone()));
    }
    if let Some(status) = filter.status {
        add("status = ?", Bind::Text(stored_status(status).id().into()));
    }
    // Needs no parameter, so that it stands behind those that do.
    if filter.judged {
        conditions.push("id IN (SELECT session_id FROM feedback)".to_owned());
    }
    let mut sql = format!("SELECT {SESSION_COLUMNS} FROM diagnosis_session");
    if !conditions.is_empty() {
        sql.push_str(" WHERE ");
        sql.push_str(&conditions.join(" AND "));
    }
    sql.push_str(" ORDER BY started_at DESC, id DESC");
    // Which of the running ones are interrupted is known only after they are read.
    if let Some(limit) = filter.limit.filter(|_| !is_judged_late(filter.status)) {
        sql.push_str(&format!(" LIMIT {limit}"));
    }
    (sql, binds)
}

/// As what a status stands in the store: nobody is there to write that a session was interrupted.
fn stored_status(status: SessionStatus) -> SessionStatus {
    match status {
        SessionStatus::Interrupted => SessionStatus::Running,
        status => status,
    }
}

pub(super) fn is_judged_late(status: Option<SessionStatus>) -> bool {
    matches!(status, Some(SessionStatus::Running | SessionStatus::Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_becomes_a_condition() {
        let (sql, binds) = listing(&Filter { limit: Some(5), ..Filter::default() });
        assert!(sql.ends_with("FROM diagnosis_session ORDER BY started_at DESC, id DESC LIMIT 5"), "{sql}");
        assert_eq!(binds, []);
        let filter = Filter {
            service: Some("cart".into()),
            alert: Some("HighErrorRate".into()),
            status: Some(SessionStatus::Interrupted),
            limit: Some(5),
            judged: true,
            ..Filter::default()
        };
        let (sql, binds) = listing(&filter);
        let tail = "WHERE service = $1 AND (alert_fingerprint = $2 OR title = $2) AND status = $3 \
                    AND id IN (SELECT session_id FROM feedback) ORDER BY started_at DESC, id DESC";
        assert!(sql.ends_with(tail), "{sql}");
        let text = |text: &str| Bind::Text(text.into());
        assert_eq!(binds, [text("cart"), text("HighErrorRate"), text("running")]);
    }
}
