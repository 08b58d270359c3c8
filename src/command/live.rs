//! The configured sources, as what can be asked: chosen by the labels of the alert, each with a deadline of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Context;
use super::services::redact_settings;
use crate::config::{KubernetesSettings, LogFields, LogSettings, SourceAt, SourceSettings};
use crate::domain::{Alert, Lang, SourceReport, SourceStatus};
use crate::http::HttpError;
use crate::llm::redact::Redactor;
use crate::source::elasticsearch::Elasticsearch;
use crate::source::kubernetes::live::{Cluster, ClusterOptions};
use crate::source::kubernetes::pod_logs::PodLogs;
use crate::source::kubernetes::state_metrics::StateMetrics;
use crate::source::logfile::FileLogs;
use crate::source::loki::Loki;
use crate::source::prometheus::Prometheus;
use crate::source::stored::{FieldNames, StoreOptions};
use crate::source::victorialogs::VictoriaLogs;
use crate::source::{Bounded, LogSource, MetricSource, StatusSource};
use crate::tool::builtin::Sources;
use crate::tool::invoker::Fallback;
use crate::tool::kept::Kept;
use crate::tool::replay::Mask;

/// Labels of an alert.
pub type Labels = BTreeMap<String, String>;

/// Whether a server has the series of kube-state-metrics is asked for so long at most: nobody may wait for it.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// What the configuration gives for an alert.
#[derive(Default)]
pub struct Live {
    pub sources: Sources,
    /// Sources that are configured and not asked, with the reason.
    pub left_out: Vec<SourceReport>,
    /// For rules, which are no evidence.
    pub prometheus: Vec<Arc<Prometheus>>,
    /// Clusters, the name that their logs have, and whether these are wanted.
    clusters: Vec<(String, Arc<Cluster>, Option<bool>)>,
}

/// A source has less time than the tool that asks it: what the others said is used when one is late.
pub fn deadline(context: &Context) -> Duration {
    context.config.agent.tool_timeout.mul_f64(0.8)
}

/// The sources for an alert with these labels; without an alert, all.
pub async fn open(labels: Option<&Labels>, now: Timestamp, zone: &TimeZone, lang: Lang, context: &Context) -> Live {
    let mut live = Live::default();
    for (name, settings) in &context.config.sources {
        if labels.is_some_and(|labels| !settings.fits(labels)) {
            let select = settings.select.iter().map(|(label, value)| format!("{label}={value}"));
            let select = select.collect::<Vec<_>>().join(", ");
            live.leave_out(
                name,
                SourceStatus::Empty,
                lang.pick(
                    format!("not asked: it is for alerts with {select}"),
                    format!("未查询：仅用于带有 {select} 的告警"),
                ),
            );
            continue;
        }
        if let Err(error) = live.add(name, settings, now, zone, deadline(context)) {
            context.warn(&format!("sources.{name}: {error}"));
            live.leave_out(name, SourceStatus::Error, error);
        }
    }
    live.add_pod_logs(deadline(context));
    live.add_state_metrics(now, deadline(context)).await;
    live
}

/// What answers when a source does not: of an incident folder, what the run was told before; of live sources, also what
/// earlier runs were told by the same ones.
///
/// # Errors
/// A pattern of `[redact]` that cannot be used.
pub fn fallback(is_incident: bool, context: &Context) -> anyhow::Result<Fallback> {
    let config = &context.config;
    if is_incident || (config.sources.is_empty() && config.mcp.is_empty()) {
        return Ok(Fallback::Run);
    }
    let redactor = Redactor::new(redact_settings(&config.redact)?);
    let mask: Mask = Arc::new(move |value| redactor.mask_json(value));
    // Neither shows a secret.
    let scope = format!("{:?} {:?}", config.sources, config.mcp.keys().collect::<Vec<_>>());
    Ok(Fallback::Kept(Arc::new(Kept::open(config.data_dir.join("outcomes"), &scope, mask))))
}

/// Adds the expression of the alert's rule, as a Prometheus server has it, where the alert does not say what it watches.
pub async fn add_expression(alert: &mut Alert, context: &Context) {
    if crate::reason::facts::analyze(std::slice::from_ref(alert), Timestamp::now()).metric.is_some() {
        return;
    }
    let servers = context.config.sources.iter().filter_map(|(name, settings)| match &settings.at {
        SourceAt::Prometheus(remote) if settings.fits(&alert.labels) => Prometheus::new(name, remote.clone()).ok(),
        _ => None,
    });
    let servers: Vec<Prometheus> = servers.collect();
    let asking = servers.iter().map(|server| server.rule_of(&alert.name, &alert.labels));
    // A server that does not answer says so when it is asked for evidence.
    let asking = tokio::time::timeout(PROBE_TIME, futures::future::join_all(asking)).await;
    let found = asking.unwrap_or_default().into_iter().find_map(|answer| answer.ok().flatten());
    if let Some(expr) = found {
        alert.annotations.insert("expr".to_owned(), expr);
    }
}

impl Live {
    fn leave_out(&mut self, name: &str, status: SourceStatus, detail: String) {
        self.left_out.push(SourceReport { name: name.to_owned(), status, detail });
    }

    fn add(
        &mut self,
        name: &str,
        settings: &SourceSettings,
        now: Timestamp,
        zone: &TimeZone,
        deadline: Duration,
    ) -> Result<(), String> {
        let text = |error: HttpError| error.to_string();
        match &settings.at {
            SourceAt::Prometheus(remote) => {
                let source = Arc::new(Prometheus::new(name, remote.clone()).map_err(text)?);
                self.prometheus.push(Arc::clone(&source));
                self.sources.metrics.push(metrics(source, deadline));
            }
            // It has alerts, which are no evidence of what is behind them.
            SourceAt::Alertmanager(_) => {}
            SourceAt::Elasticsearch { remote, index, logs: settings } => {
                let source = Elasticsearch::new(name, index, store_options(settings), remote.clone()).map_err(text)?;
                self.sources.logs.push(logs(Arc::new(source), deadline));
            }
            SourceAt::Loki { remote, logs: settings } => {
                let source = Loki::new(name, store_options(settings), remote.clone()).map_err(text)?;
                self.sources.logs.push(logs(Arc::new(source), deadline));
            }
            SourceAt::Victorialogs { remote, logs: settings } => {
                let source = VictoriaLogs::new(name, store_options(settings), remote.clone()).map_err(text)?;
                self.sources.logs.push(logs(Arc::new(source), deadline));
            }
            SourceAt::Kubernetes(settings) => {
                let cluster = Arc::new(Cluster::new(name, cluster_options(settings)));
                self.clusters.push((format!("{name}/logs"), Arc::clone(&cluster), settings.logs));
                self.sources.status.push(status(cluster, deadline));
            }
            SourceAt::Files(files) => {
                let zone = files.zone.clone().unwrap_or_else(|| zone.clone());
                let source = FileLogs::of_this_machine(name, files.paths.clone(), now, zone);
                self.sources.logs.push(logs(Arc::new(source), deadline));
            }
        }
        Ok(())
    }

    /// The logs of pods are asked where it is said so, or where there are no others.
    fn add_pod_logs(&mut self, deadline: Duration) {
        let has_others = !self.sources.logs.is_empty();
        for (name, cluster, wanted) in std::mem::take(&mut self.clusters) {
            if wanted.unwrap_or(!has_others) {
                self.sources.logs.push(logs(Arc::new(PodLogs::new(&name, cluster)), deadline));
            }
        }
    }

    /// Without a cluster to ask, the series of kube-state-metrics tell of workloads, where there are any.
    async fn add_state_metrics(&mut self, now: Timestamp, deadline: Duration) {
        if !self.sources.status.is_empty() {
            return;
        }
        let probes = self.prometheus.iter().map(|source| {
            let source: Arc<dyn MetricSource> = Arc::clone(source) as _;
            StateMetrics::find(metrics(source, PROBE_TIME.min(deadline)), now)
        });
        for found in futures::future::join_all(probes).await.into_iter().flatten() {
            self.sources.status.push(status(Arc::new(found), deadline));
        }
    }
}

/// How the configuration names fields, as the sources take it.
pub fn store_options(settings: &LogSettings) -> StoreOptions {
    let LogFields { time, service, instance, level, message } = settings.fields.clone();
    StoreOptions { fields: FieldNames { time, service, instance, level, message }, limit: settings.limit }
}

pub fn cluster_options(settings: &KubernetesSettings) -> ClusterOptions {
    let KubernetesSettings { kubeconfig, context, namespaces, logs: _ } = settings.clone();
    ClusterOptions { kubeconfig, context, namespaces }
}

fn metrics(source: Arc<dyn MetricSource>, deadline: Duration) -> Arc<dyn MetricSource> {
    Arc::new(Bounded::<dyn MetricSource>::new(source, deadline))
}

fn logs(source: Arc<dyn LogSource>, deadline: Duration) -> Arc<dyn LogSource> {
    Arc::new(Bounded::<dyn LogSource>::new(source, deadline))
}

fn status(source: Arc<dyn StatusSource>, deadline: Duration) -> Arc<dyn StatusSource> {
    Arc::new(Bounded::<dyn StatusSource>::new(source, deadline))
}
