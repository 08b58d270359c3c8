//! Processor and memory of a service, whatever its exporter calls them.
//!
//! In: a service. Out: its series of metrics whose names tell of the resource, found through the labels that name a
//! service or its pods; counters as rates; each summarised as `query_metrics` of the agent does.

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::answered;
use crate::domain::metric::SERVICE_LABELS;
use crate::domain::text::clean_line;
use crate::domain::{Failure, Finding, MetricType, Outcome, Output, Window};
use crate::source::MetricSource;
use crate::tool::Tool;
use crate::tool::arguments::ToolClock;
use crate::tool::metrics::QueryMetrics;
use crate::tool::sources::Roll;

/// Metrics that are queried for one answer.
const MAX_METRICS: usize = 12;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub enum Resource {
    Cpu,
    Memory,
}

impl Resource {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }

    fn is_told_by(self, metric: &str) -> bool {
        let words: &[&str] = match self {
            Self::Cpu => &["cpu", "processor", "throttl"],
            Self::Memory => &["memory", "mem_", "_mem", "heap", "_rss", "oom", "swap"],
        };
        let metric = metric.to_lowercase();
        words.iter().any(|word| metric.contains(word))
    }
}

/// What a service uses of a resource.
pub async fn of(
    resource: Resource,
    service: &str,
    sources: &[Arc<dyn MetricSource>],
    window: Window,
    clock: &ToolClock,
    cancel: &CancellationToken,
) -> Result<Output, Failure> {
    let (mut exprs, roll) = expressions(resource, service, sources, window).await?;
    let (mut notes, found) = (roll.notes, exprs.len());
    if found > MAX_METRICS {
        notes.push(format!("{MAX_METRICS} of {found} metrics are shown: query_metrics has the others"));
        exprs.truncate(MAX_METRICS);
    }
    let ask = QueryMetrics::new(sources.to_vec(), clock.clone());
    let calls = exprs.iter().map(|expr| {
        let (start, end) = (window.start.to_string(), window.end.to_string());
        ask.call(json!({"expr": expr, "start": start, "end": end}), cancel)
    });
    let mut series = Vec::new();
    for (expr, answer) in exprs.iter().zip(futures::future::join_all(calls).await) {
        match answer {
            Outcome::Output(output) => {
                series.extend(output.findings.into_iter().filter(|one| matches!(one, Finding::Series(_))));
                notes.extend(output.notes);
            }
            Outcome::Failure(failure) => notes.push(format!("{}: {}", clean_line(expr, 200), failure.message)),
        }
    }
    if series.is_empty() {
        let what = format!("no series of {service} tells of its {} in this time", resource.as_str());
        notes.push(format!("{}: list_metrics shows what there is", clean_line(&what, 200)));
    }
    let source = roll.names.join(", ");
    let answer = json!({
        "service": service, "resource": resource.as_str(), "window": window, "series": series, "notes": notes,
        "source": source,
    });
    Ok(answered(source, answer))
}

/// What to ask, each once, sorted: a selector of a metric with the label that names the service, in a rate where the
/// metric counts.
async fn expressions(
    resource: Resource,
    service: &str,
    sources: &[Arc<dyn MetricSource>],
    window: Window,
) -> Result<(Vec<String>, Roll), Failure> {
    let quoted = service.replace('\\', "\\\\").replace('"', "\\\"");
    let pods = format!("{}-.*", regex::escape(service)).replace('\\', "\\\\").replace('"', "\\\"");
    let by_label = SERVICE_LABELS.iter().map(|label| format!("{label}=\"{quoted}\""));
    let matchers: Vec<String> = by_label.chain([format!("pod=~\"{pods}\"")]).collect();
    let mut roll = Roll::default();
    let mut found: Vec<(String, String)> = Vec::new();
    for source in sources {
        let selectors: Vec<String> = matchers.iter().map(|matcher| format!("{{{matcher}}}")).collect();
        let asked = selectors.iter().map(|selector| source.metrics(Some(selector), window));
        let answers: Result<Vec<_>, _> = futures::future::join_all(asked).await.into_iter().collect();
        let Some(answers) = roll.take(source.name(), answers) else { continue };
        for (matcher, metrics) in matchers.iter().zip(answers) {
            for metric in metrics.into_iter().filter(|metric| resource.is_told_by(&metric.name)) {
                // The first label that names the service is enough.
                if found.iter().any(|(name, _)| *name == metric.name) {
                    continue;
                }
                let counts = metric.kind == MetricType::Counter || metric.name.ends_with("_total");
                let selector = format!("{}{{{matcher}}}", metric.name);
                let expr = if counts { format!("rate({selector}[5m])") } else { selector };
                found.push((metric.name, expr));
            }
        }
    }
    let roll = roll.checked()?;
    found.sort();
    Ok((found.into_iter().map(|(_, expr)| expr).collect(), roll))
}
