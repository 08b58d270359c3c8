//! Alerts of one root: those that concern the same service, or the same machine where no service is named.

use crate::domain::{Alert, AlertStatus};

/// Indices into `alerts`, one list per root, the most pressing alert of each first. Roots that still fire come
/// first, then the more severe, the larger and the earlier ones.
pub fn groups(alerts: &[Alert]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (i, alert) in alerts.iter().enumerate() {
        let root = root(alert);
        match groups.iter_mut().find(|(known, _)| *known == root) {
            Some((_, group)) => group.push(i),
            None => groups.push((root, vec![i])),
        }
    }
    let mut groups: Vec<Vec<usize>> = groups.into_iter().map(|(_, group)| group).collect();
    for group in &mut groups {
        group.sort_by_key(|&i| pressing(&alerts[i]));
    }
    groups.sort_by_key(|group| {
        let (resolved, severity, start) = pressing(&alerts[group[0]]);
        (resolved, severity, std::cmp::Reverse(group.len()), start)
    });
    groups
}

fn root(alert: &Alert) -> &str {
    let machine = ["instance", "node", "host", "hostname"];
    alert.service.as_deref().or_else(|| alert.label(&machine)).unwrap_or(&alert.name)
}

/// Sorts what fires before what does not, then by severity, then by start.
fn pressing(alert: &Alert) -> (u8, std::cmp::Reverse<Option<crate::domain::Severity>>, jiff::Timestamp) {
    let state = match alert.status {
        AlertStatus::Firing => 0,
        AlertStatus::Pending => 1,
        AlertStatus::Suppressed => 2,
        AlertStatus::Resolved => 3,
    };
    (state, std::cmp::Reverse(alert.severity), alert.starts_at.unwrap_or(jiff::Timestamp::MAX))
}
