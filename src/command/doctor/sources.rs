//! One cheap question to each source: its version, how long it took, what may not be read, the newest sample, and what
//! to do about what fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::Check;
use crate::command::Context;
use crate::command::live::{cluster_options, store_options};
use crate::config::{FileSettings, SourceAt, SourceSettings};
use crate::domain::text::counted;
use crate::domain::{FailureKind, Lang};
use crate::http::HttpError;
use crate::source::alertmanager::Alertmanager;
use crate::source::elasticsearch::Elasticsearch;
use crate::source::kubernetes::live::Cluster;
use crate::source::logfile::FileLogs;
use crate::source::loki::Loki;
use crate::source::prometheus::Prometheus;
use crate::source::victorialogs::VictoriaLogs;
use crate::source::{LogSource, MetricSource, SourceError};

/// A check is no diagnosis: who does not answer in this time is told of.
const DEADLINE: Duration = Duration::from_secs(10);
/// A newest sample older than this is worth a word.
const OLD: SignedDuration = SignedDuration::from_mins(10);
const MAX_NAMED: usize = 5;

/// Everything that is said of one source.
struct Found {
    parts: Vec<String>,
    newest: Option<Timestamp>,
    /// What works, but not as somebody may expect.
    doubts: Vec<String>,
}

/// Checks all sources at once.
pub async fn checks(context: &Context, lang: Lang) -> Vec<Check> {
    let checks = context.config.sources.iter().map(|(name, settings)| check(name, settings, lang));
    futures::future::join_all(checks).await
}

async fn check(name: &str, settings: &SourceSettings, lang: Lang) -> Check {
    let started = Instant::now();
    let told = tokio::time::timeout(DEADLINE, ask(name, settings, lang)).await;
    let milliseconds = started.elapsed().as_millis();
    let label = format!("sources.{name}");
    let kind = settings.kind().id();
    let late = || {
        let message = format!("no answer within {} s", DEADLINE.as_secs());
        Err(SourceError::new(FailureKind::Timeout, message))
    };
    match told.unwrap_or_else(|_| late()) {
        Ok(found) => {
            let mut parts = vec![kind.to_owned()];
            parts.extend(found.parts);
            parts.push(lang.pick(format!("{milliseconds} ms"), format!("{milliseconds} 毫秒")));
            let mut doubts = found.doubts;
            if let Some(newest) = found.newest {
                let age = Timestamp::now().duration_since(newest);
                parts.push(lang.pick(format!("newest {newest}"), format!("最新数据 {newest}")));
                if age > OLD {
                    let age = format!("{:#}", SignedDuration::from_secs(age.as_secs()));
                    doubts.push(lang.pick(
                        format!("the newest data are {age} old: does it still receive any?"),
                        format!("最新数据距今 {age}：是否仍在接收数据？"),
                    ));
                }
            }
            let detail = parts.join(", ");
            match doubts.is_empty() {
                true => Check::ok(&label, detail),
                false => Check::note(&label, detail, doubts.join("; ")),
            }
        }
        Err(error) => {
            Check::failed(&label, format!("{kind}, {}", error.message), remedy(name, error.kind, settings, lang))
        }
    }
}

async fn ask(name: &str, settings: &SourceSettings, lang: Lang) -> Result<Found, SourceError> {
    match &settings.at {
        SourceAt::Prometheus(remote) => {
            let source = Prometheus::new(name, remote.clone()).map_err(unusable)?;
            prometheus(&source, lang).await
        }
        SourceAt::Alertmanager(remote) => {
            let source = Alertmanager::new(name, remote.clone()).map_err(unusable)?;
            let (version, peers) = source.state().await?;
            let fired = source.alerts(&[]).await?;
            let alerts = counted(fired.payload.as_array().map_or(0, Vec::len), "alert");
            let peers = if peers > 0 { counted(peers, "peer") } else { String::new() };
            Ok(found([version, alerts, peers], None, source.clock_note()))
        }
        SourceAt::Elasticsearch { remote, index, logs } => {
            let source = Elasticsearch::new(name, index, store_options(logs), remote.clone()).map_err(unusable)?;
            let state = source.state().await?;
            let events = lang.pick(
                format!("{} in {index}, time in {}", counted(state.events, "event"), state.time_field),
                format!("{index} 中有 {} 条，时间字段 {}", state.events, state.time_field),
            );
            Ok(found([state.version, events], state.newest, source.caveat()))
        }
        SourceAt::Loki { remote, logs } => {
            let source = Loki::new(name, store_options(logs), remote.clone()).map_err(unusable)?;
            let (version, labels) = source.state().await?;
            let mut found = found([version], None, source.caveat());
            match labels.is_empty() {
                true => found.doubts.push(lang.pick(
                    "no label names services: set fields = { service = \"LABEL\" }".to_owned(),
                    "没有标识服务的标签：请设置 fields = { service = \"LABEL\" }".to_owned(),
                )),
                false => found.parts.push(
                    lang.pick(format!("services by {}", labels.join(", ")), format!("服务标签 {}", labels.join(", "))),
                ),
            }
            Ok(found)
        }
        SourceAt::Victorialogs { remote, logs } => {
            let source = VictoriaLogs::new(name, store_options(logs), remote.clone()).map_err(unusable)?;
            let (version, newest) = source.state().await?;
            Ok(found([version], newest, source.caveat()))
        }
        SourceAt::Kubernetes(settings) => {
            let cluster = Cluster::new(name, cluster_options(settings));
            let state = cluster.state().await?;
            Ok(Found { doubts: state.refused, ..found([state.url, state.version], None, None) })
        }
        SourceAt::Files(settings) => files(name, settings).await,
    }
}

fn found<const N: usize>(parts: [String; N], newest: Option<Timestamp>, doubt: Option<String>) -> Found {
    let parts = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Found { parts, newest, doubts: doubt.into_iter().collect() }
}

async fn prometheus(source: &Prometheus, lang: Lang) -> Result<Found, SourceError> {
    let state = source.state().await?;
    let mut found = found([state.version], state.newest, source.caveat());
    if state.up + state.down.len() > 0 {
        let (up, all) = (state.up, state.up + state.down.len());
        found.parts.push(lang.pick(format!("{up} of {all} targets up"), format!("{all} 个目标中 {up} 个正常")));
    }
    found.doubts.extend(state.down.into_iter().take(MAX_NAMED).map(|(url, error)| format!("down: {url}: {error}")));
    if state.newest.is_none() {
        found
            .doubts
            .push(lang.pick("it holds no samples of the last 5 minutes".to_owned(), "最近 5 分钟没有样本".to_owned()));
    }
    Ok(found)
}

async fn files(name: &str, settings: &FileSettings) -> Result<Found, SourceError> {
    let zone = settings.zone.clone().unwrap_or_else(TimeZone::system);
    let source = Arc::new(FileLogs::of_this_machine(name, settings.paths.clone(), Timestamp::now(), zone));
    let services = source.services().await?;
    let named = services.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let doubts = if services.is_empty() { vec!["no file names a service".to_owned()] } else { Vec::new() };
    Ok(Found { doubts, ..found([counted(services.len(), "service"), named], None, None) })
}

fn unusable(error: HttpError) -> SourceError {
    SourceError::new(FailureKind::BadArguments, error.to_string())
}

fn remedy(name: &str, kind: FailureKind, settings: &SourceSettings, lang: Lang) -> String {
    let table = format!("[sources.{name}]");
    match kind {
        FailureKind::Unauthorized => lang.pick(
            format!("give {table} credentials that may read (auth), or its user the rights"),
            format!("为 {table} 配置有读取权限的凭据（auth），或为其用户授权"),
        ),
        FailureKind::Unavailable | FailureKind::Timeout => match settings.remote() {
            Some(remote) => lang.pick(
                format!("is the server up, and {} its address as seen from here (proxy, VPN)?", remote.url),
                format!("服务是否运行？从本机是否能访问 {}（代理、VPN）？", remote.url),
            ),
            None => lang.pick(
                "is the cluster up, and the context of the kubeconfig the right one?".to_owned(),
                "集群是否运行？kubeconfig 的 context 是否正确？".to_owned(),
            ),
        },
        _ => lang.pick(
            format!("mend {table} in oncall.toml: url, tls and kind"),
            format!("修正 oncall.toml 中的 {table}：url、tls 与 kind"),
        ),
    }
}
