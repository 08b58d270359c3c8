//! The configured sources, as what can be asked: chosen by the labels of the alert, each with a deadline of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Context;
use crate::config::{SourceAt, SourceSettings};
use crate::domain::{Lang, SourceReport, SourceStatus};
use crate::source::prometheus::Prometheus;
use crate::source::{Bounded, LogSource, MetricSource, StatusSource};
use crate::tool::builtin::Sources;

/// Labels of an alert.
pub type Labels = BTreeMap<String, String>;

/// What the configuration gives for an alert.
#[derive(Default)]
pub struct Live {
    pub sources: Sources,
    /// Sources that are configured and not asked, with the reason.
    pub left_out: Vec<SourceReport>,
    /// For rules, which are no evidence.
    pub prometheus: Vec<Arc<Prometheus>>,
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
    live
}

impl Live {
    fn leave_out(&mut self, name: &str, status: SourceStatus, detail: String) {
        self.left_out.push(SourceReport { name: name.to_owned(), status, detail });
    }

    fn add(
        &mut self,
        name: &str,
        settings: &SourceSettings,
        _now: Timestamp,
        _zone: &TimeZone,
        deadline: Duration,
    ) -> Result<(), String> {
        let text = |error: crate::http::HttpError| error.to_string();
        match &settings.at {
            SourceAt::Prometheus(remote) => {
                let source = Arc::new(Prometheus::new(name, remote.clone()).map_err(text)?);
                self.prometheus.push(Arc::clone(&source));
                self.sources.metrics.push(metrics(source, deadline));
            }
            _ => {}
        }
        Ok(())
    }
}

fn metrics(source: Arc<dyn MetricSource>, deadline: Duration) -> Arc<dyn MetricSource> {
    Arc::new(Bounded::<dyn MetricSource>::new(source, deadline))
}

#[allow(dead_code)]
fn logs(source: Arc<dyn LogSource>, deadline: Duration) -> Arc<dyn LogSource> {
    Arc::new(Bounded::<dyn LogSource>::new(source, deadline))
}

#[allow(dead_code)]
fn status(source: Arc<dyn StatusSource>, deadline: Duration) -> Arc<dyn StatusSource> {
    Arc::new(Bounded::<dyn StatusSource>::new(source, deadline))
}
