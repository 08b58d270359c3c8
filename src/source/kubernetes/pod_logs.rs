//! The logs of pods, from the API server: of the containers that run, and of those that ended before them.
//!
//! In: a service or pod, a time. Out: events with the time at which the kubelet got them.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::Timestamp;
use kube::core::subresource::LogParams;

use super::live::{Cluster, log};
use super::select;
use crate::domain::{LogEvent, PodStatus};
use crate::source::stored::{Batches, EventMaker, Known, streamed};
use crate::source::{LogBatch, LogQuery, LogSource, SourceError, StatusQuery};

/// Pods of a service whose logs are read, those in trouble first.
const MAX_PODS: usize = 10;
/// Bytes of one log.
const LIMIT_BYTES: i64 = 4 << 20;
/// Logs that are read at a time.
const PARALLEL: usize = 4;

/// The logs of a cluster's pods.
#[derive(Clone)]
pub struct PodLogs {
    name: String,
    cluster: Arc<Cluster>,
}

/// One log of one container.
struct Wanted {
    pod: PodStatus,
    container: String,
    is_previous: bool,
}

impl PodLogs {
    pub fn new(name: &str, cluster: Arc<Cluster>) -> Self {
        Self { name: name.to_owned(), cluster }
    }

    async fn read(&self, query: &LogQuery, batches: &Batches) -> Result<(), SourceError> {
        let mut notes = Vec::new();
        let wanted = self.wanted(query, &mut notes).await?;
        let _ = batches.send(Ok(LogBatch { notes, ..LogBatch::default() })).await;
        let mut logs =
            futures::stream::iter(wanted.into_iter().map(|wanted| self.one(wanted, query))).buffer_unordered(PARALLEL);
        while let Some(batch) = logs.next().await {
            if batches.send(Ok(batch)).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    async fn wanted(&self, query: &LogQuery, notes: &mut Vec<String>) -> Result<Vec<Wanted>, SourceError> {
        let inventory = self.cluster.inventory(None).await?;
        let of_service = StatusQuery { service: query.service.clone(), namespace: None, window: query.window };
        // Without a service all pods count, healthy or not.
        let mut pods: Vec<PodStatus> = match &query.service {
            Some(_) => select::answer(&inventory, &of_service).pods,
            None => inventory.pods.values().map(|entry| entry.value.clone()).collect(),
        };
        if let Some(instance) = &query.instance {
            pods.retain(|pod| pod.name == *instance || pod.node.as_ref() == Some(instance));
        }
        if pods.len() > MAX_PODS {
            notes.push(format!("{}: logs of {MAX_PODS} of {} pods were read", self.name, pods.len()));
            pods.truncate(MAX_PODS);
        }
        let mut wanted = Vec::new();
        for pod in pods {
            for container in &pod.containers {
                let of = |is_previous| Wanted { pod: pod.clone(), container: container.name.clone(), is_previous };
                wanted.push(of(false));
                let ended_in_time = container.last_termination_at.is_none_or(|at| at >= query.window.start);
                if container.restarts > 0 && ended_in_time {
                    wanted.push(of(true));
                }
            }
        }
        Ok(wanted)
    }

    /// One log; that it cannot be read is said, and hides no other.
    async fn one(&self, wanted: Wanted, query: &LogQuery) -> LogBatch {
        let Wanted { pod, container, is_previous } = wanted;
        let parameters = LogParams {
            container: Some(container.clone()),
            previous: is_previous,
            since_seconds: (!is_previous).then(|| Timestamp::now().duration_since(query.window.start).as_secs().max(1)),
            timestamps: true,
            limit_bytes: Some(LIMIT_BYTES),
            ..LogParams::default()
        };
        let which = if is_previous { "the previous log of " } else { "the log of " };
        let place = format!("{}: {which}{}/{container}", self.name, pod.name);
        let text = match self.cluster.connection().await {
            Ok(connection) => log(connection, &pod.namespace, &pod.name, &parameters).await,
            Err(error) => Err(error),
        };
        match text {
            Ok(text) => {
                let truncated = text.len() as i64 >= LIMIT_BYTES;
                let notes = truncated.then(|| format!("{place} is over {} MiB: its end is missing", LIMIT_BYTES >> 20));
                let service = query.service.clone().or_else(|| pod.owner.clone());
                let events = events(&text, query, service.as_deref(), &pod.name);
                LogBatch { events, notes: notes.into_iter().collect(), truncated }
            }
            Err(error) => LogBatch { notes: vec![format!("{place} cannot be read: {error}")], ..LogBatch::default() },
        }
    }
}

/// The events of a log whose lines begin with the kubelet's time stamp.
fn events(text: &str, query: &LogQuery, service: Option<&str>, pod: &str) -> Vec<LogEvent> {
    // Words may stand in a continuation line: what does not hold them is left out when events are whole.
    let whole = EventMaker::new(&LogQuery { keywords: Vec::new(), ..query.clone() });
    let mut events: Vec<LogEvent> = Vec::new();
    for line in text.lines() {
        let (stamp, rest) = line.split_once(' ').unwrap_or((line, ""));
        let Ok(at) = stamp.parse() else { continue };
        if let (true, Some(last)) = (continues(rest), events.last_mut()) {
            last.message.push('\n');
            last.message.push_str(rest);
            last.lines += 1;
            continue;
        }
        let known = Known { at: Some(at), service, instance: Some(pod), ..Known::default() };
        events.extend(whole.event(rest, known));
    }
    let words: Vec<String> = query.keywords.iter().map(|word| word.to_lowercase()).collect();
    events.retain(|event| {
        let message = event.message.to_lowercase();
        words.iter().all(|word| message.contains(word))
    });
    events
}

/// Indented lines and the marks of stack traces belong to the line above.
fn continues(line: &str) -> bool {
    line.starts_with([' ', '\t', '}', ')']) || line.starts_with("Caused by: ") || line.starts_with("... ")
}

#[async_trait]
impl LogSource for PodLogs {
    fn name(&self) -> &str {
        &self.name
    }

    fn search(&self, query: &LogQuery) -> BoxStream<'static, Result<LogBatch, SourceError>> {
        let (logs, query) = (self.clone(), query.clone());
        streamed(move |batches| async move { logs.read(&query, &batches).await })
    }

    async fn services(&self) -> Result<Vec<String>, SourceError> {
        let inventory = self.cluster.inventory(None).await?;
        let mut names: Vec<String> = inventory
            .workloads
            .values()
            .map(|entry| entry.value.name.clone())
            .filter(|name| !name.is_empty())
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Level, Window};

    #[test]
    fn lines_of_the_kubelet_become_events_with_their_continuations() {
        let text = "2026-03-04T06:30:00.123456789Z 2026-03-04 14:30:00 ERROR pool is empty\n\
                    2026-03-04T06:30:00.123456800Z \tat a.B(C.java:1)\n\
                    2026-03-04T06:30:01Z {\"level\":\"info\",\"msg\":\"ok\"}\n\
                    2026-03-04T09:30:01Z too late\n";
        let query = |words: &[&str]| LogQuery {
            window: Window::new("2026-03-04T06:00:00Z".parse().unwrap(), "2026-03-04T07:00:00Z".parse().unwrap()),
            service: Some("cart".into()),
            instance: None,
            keywords: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        let all = events(text, &query(&[]), Some("cart"), "cart-0");
        let brief: Vec<_> = all.iter().map(|event| (event.message.as_str(), event.level, event.lines)).collect();
        assert_eq!(brief, [("pool is empty\n\tat a.B(C.java:1)", Some(Level::Error), 2), ("ok", Some(Level::Info), 1)]);
        assert_eq!(all[0].at, Some("2026-03-04T06:30:00.123456789Z".parse().unwrap()));
        assert_eq!(all[0].instance.as_deref(), Some("cart-0"));
        assert_eq!(events(text, &query(&["C.JAVA"]), None, "cart-0").len(), 1);
    }
}
