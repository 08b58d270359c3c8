//! `diagnose --from-alertmanager`: the alerts that fire, grouped, with what keeps some of them quiet, and a choice.

use std::io::{self, BufRead, IsTerminal, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{BadInput, Context, Unreachable};
use crate::alert;
use crate::config::SourceAt;
use crate::domain::text::{clean_line, counted};
use crate::domain::{Alert, AlertBatch, AlertStatus, FailureKind, Lang, PayloadShape};
use crate::source::alertmanager::{Alertmanager, Fired, Silence};

const MAX_NAME_CHARS: usize = 80;
/// Alerts that are listed.
const MAX_LISTED: usize = 50;

/// The alerts that fire, those that nobody silenced first, as they were listed on stderr.
pub struct Firing {
    pub batch: AlertBatch,
    /// What the user chose of several groups.
    pub chosen: Option<Vec<Alert>>,
}

/// Reads, lists, and lets the user choose where there is somebody to ask.
///
/// # Errors
/// Exit 2 where no Alertmanager is configured or a filter is refused, exit 4 where none answers.
pub async fn read(filters: &[String], select: Option<usize>, context: &Context) -> anyhow::Result<Firing> {
    let lang = context.lang.unwrap_or_default();
    let alerts = alerts(filters, context).await?;
    context.note(&listing(&alerts, lang));
    let alerts: Vec<Alert> = alerts.into_iter().map(|(alert, _)| alert).collect();
    let chosen = if select.is_none() { choose(&alerts, lang, context)? } else { None };
    let batch = AlertBatch { shape: PayloadShape::AlertmanagerAlerts, alerts, missing: Vec::new(), truncated: 0 };
    Ok(Firing { batch, chosen })
}

/// The alerts that fire, those that nobody silenced first, each with why it is quiet where it is.
///
/// # Errors
/// The same.
pub async fn alerts(filters: &[String], context: &Context) -> anyhow::Result<Vec<(Alert, Option<String>)>> {
    let lang = context.lang.unwrap_or_default();
    let fired = ask(filters, context).await?;
    let mut alerts: Vec<(Alert, Option<String>)> = Vec::new();
    for fired in &fired {
        let batch = alert::parse(&fired.payload.to_string()).map_err(super::bad_input)?;
        for one in batch.alerts {
            // Servers of one cluster have the same alerts.
            if !alerts.iter().any(|(known, _)| known.fingerprint == one.fingerprint) {
                let why = why_quiet(&one, fired, &batch_names(fired), lang);
                alerts.push((one, why));
            }
        }
    }
    alerts.sort_by_key(|(alert, _)| alert.status == AlertStatus::Suppressed);
    Ok(alerts)
}

/// Every configured Alertmanager; one that fails is a warning beside the others.
async fn ask(filters: &[String], context: &Context) -> anyhow::Result<Vec<Fired>> {
    let mut servers = Vec::new();
    for (name, settings) in &context.config.sources {
        if let SourceAt::Alertmanager(remote) = &settings.at {
            servers.push(Alertmanager::new(name, remote.clone()).map_err(super::bad_input)?);
        }
    }
    if servers.is_empty() {
        let message = "no Alertmanager is configured: add [sources.NAME] with kind = \"alertmanager\" and its url to \
                       oncall.toml";
        return Err(BadInput(message.into()).into());
    }
    let deadline = context.config.agent.tool_timeout;
    let asking = servers.iter().map(|server| async move {
        let answer = tokio::time::timeout(deadline, server.alerts(filters)).await;
        (server.name(), answer)
    });
    let (mut fired, mut failures) = (Vec::new(), Vec::new());
    for (name, answer) in futures::future::join_all(asking).await {
        match answer {
            Ok(Ok(answer)) => {
                answer.notes.iter().for_each(|note| context.warn(note));
                fired.push(answer);
            }
            Ok(Err(error)) if error.kind == FailureKind::BadArguments => {
                return Err(BadInput(format!("{name}: {error}")).into());
            }
            Ok(Err(error)) => failures.push(format!("{name}: {error}")),
            Err(_) => failures.push(format!("{name}: no answer within {} s", deadline.as_secs_f64())),
        }
    }
    if fired.is_empty() {
        return Err(Unreachable(failures.join("; ")).into());
    }
    failures.iter().for_each(|failure| context.warn(failure));
    Ok(fired)
}

/// Names of alerts by fingerprint, to say by which one another is inhibited.
fn batch_names(fired: &Fired) -> Vec<(String, String)> {
    let alerts = fired.payload.as_array().into_iter().flatten();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    alerts.map(|alert| (text(&alert["fingerprint"]), text(&alert["labels"]["alertname"]))).collect()
}

fn why_quiet(alert: &Alert, fired: &Fired, names: &[(String, String)], lang: Lang) -> Option<String> {
    let quiet = fired.quiet.get(&alert.fingerprint)?;
    let silences = quiet.silenced_by.iter().map(|id| match fired.silences.get(id) {
        Some(silence) => silenced(silence, lang),
        None => lang.pick(format!("silenced ({id})"), format!("已静默（{id}）")),
    });
    let inhibitions = quiet.inhibited_by.iter().map(|fingerprint| {
        let name = names.iter().find(|(known, _)| known == fingerprint).map_or(fingerprint, |(_, name)| name);
        let name = clean_line(name, MAX_NAME_CHARS);
        lang.pick(format!("inhibited by {name}"), format!("被 {name} 抑制"))
    });
    Some(silences.chain(inhibitions).collect::<Vec<_>>().join("; "))
}

fn silenced(silence: &Silence, lang: Lang) -> String {
    let until = silence.until.map(shown).unwrap_or_default();
    let Silence { by, comment, .. } = silence;
    lang.pick(format!("silenced by {by} until {until}: {comment}"), format!("由 {by} 静默至 {until}：{comment}"))
}

fn shown(at: Timestamp) -> String {
    at.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
}

/// What fires, by group, each alert with its number; then what is quiet, with the reason.
fn listing(alerts: &[(Alert, Option<String>)], lang: Lang) -> String {
    let plain: Vec<Alert> = alerts.iter().map(|(alert, _)| alert.clone()).collect();
    let quiet = alerts.iter().filter(|(alert, _)| alert.status == AlertStatus::Suppressed).count();
    let loud = alerts.len() - quiet;
    let mut text = lang.pick(
        format!("{} firing, {quiet} quiet", counted(loud, "alert")),
        format!("{loud} 条告警触发，{quiet} 条静默"),
    );
    for (number, group) in alert::groups(&plain).iter().enumerate() {
        let service = group.iter().find_map(|index| plain[*index].service.as_deref());
        let of = service.map(|name| clean_line(name, MAX_NAME_CHARS)).unwrap_or_default();
        let (colon, full_colon) = if of.is_empty() { ("", "") } else { (": ", "：") };
        let number = number + 1;
        text.push_str(&lang.pick(format!("\ngroup {number}{colon}{of}"), format!("\n第 {number} 组{full_colon}{of}")));
        for &index in group.iter().take(MAX_LISTED) {
            let (alert, why) = &alerts[index];
            let name = clean_line(&alert.name, MAX_NAME_CHARS);
            let severity = alert.severity.map(|severity| format!("{severity:?}").to_lowercase()).unwrap_or_default();
            let since = alert.starts_at.map(shown).unwrap_or_default();
            text.push_str(&format!("\n  {:>3}  {name}  {severity}  {since}", index + 1));
            if let Some(why) = why {
                text.push_str(&format!("\n       {why}"));
            }
        }
    }
    text
}

/// Asks which group is meant, where there are several and somebody to ask.
fn choose(alerts: &[Alert], lang: Lang, context: &Context) -> anyhow::Result<Option<Vec<Alert>>> {
    let groups = alert::groups(alerts);
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal() && !context.is_json();
    if groups.len() < 2 || !can_ask {
        return Ok(None);
    }
    let count = groups.len();
    loop {
        let question = lang.pick(format!("which group? 1 to {count} [1] "), format!("诊断哪一组？1 至 {count} [1] "));
        let mut stderr = io::stderr().lock();
        write!(stderr, "{question}")?;
        stderr.flush()?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let number = if line.trim().is_empty() { Some(1) } else { line.trim().parse::<usize>().ok() };
        if let Some(group) = number.and_then(|number| groups.get(number.checked_sub(1)?)) {
            return Ok(Some(group.iter().map(|&index| alerts[index].clone()).collect()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_fires_is_listed_by_group_with_why_others_are_quiet() {
        let payload = serde_json::json!([
            {"labels": {"alertname": "Errors", "service": "cart", "severity": "critical"}, "fingerprint": "f1",
             "startsAt": "2026-03-04T06:30:00Z", "status": {"state": "active", "silencedBy": [], "inhibitedBy": []}},
            {"labels": {"alertname": "Pool\u{1b}[31m", "service": "cart"}, "fingerprint": "f2",
             "startsAt": "2026-03-04T06:31:00Z", "status": {"state": "suppressed", "silencedBy": ["s1"], "inhibitedBy": ["f1"]}},
        ]);
        let silence = Silence { id: "s1".into(), comment: "known".into(), by: "ann".into(), until: None };
        let quiet =
            crate::source::alertmanager::Quiet { silenced_by: vec!["s1".into()], inhibited_by: vec!["f1".into()] };
        let fired = Fired {
            payload: payload.clone(),
            quiet: BTreeMap::from([("f2".into(), quiet)]),
            silences: BTreeMap::from([("s1".into(), silence)]),
            notes: Vec::new(),
        };
        let alerts = alert::parse(&payload.to_string()).unwrap().alerts;
        let alerts: Vec<_> = alerts
            .into_iter()
            .map(|alert| {
                let why = why_quiet(&alert, &fired, &batch_names(&fired), Lang::En);
                (Alert { starts_at: None, ..alert }, why)
            })
            .collect();
        assert_eq!(
            listing(&alerts, Lang::En),
            "1 alert firing, 1 quiet\n\
             group 1: cart\n    1  Errors  critical  \n    2  Pool    \n       silenced by ann until : known; inhibited by Errors"
        );
    }
}
