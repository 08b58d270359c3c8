//! What stores of logs (Elasticsearch, Loki, VictoriaLogs) have in common: which fields are meant, how events are made of
//! records, and how a part is read where the whole is too much.

use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::logfile::{RecordReader, level_of};
use super::{LogBatch, LogQuery, SourceError};
use crate::domain::{LogEvent, Window};

/// Names of fields, where they are not the usual ones.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldNames {
    pub time: Option<String>,
    pub service: Option<String>,
    pub instance: Option<String>,
    pub level: Option<String>,
    pub message: Option<String>,
}

/// How stored logs are read.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreOptions {
    pub fields: FieldNames,
    /// Events that one question reads at most.
    pub limit: usize,
}

/// Fields that name a service, the most telling first; in the spelling of stores (dots), and in Loki's (underscores).
pub const SERVICE_FIELDS: &[&str] = &[
    "service.name",
    "service_name",
    "service",
    "app",
    "application",
    "app_name",
    "kubernetes.labels.app",
    "kubernetes.labels.app_kubernetes_io/name",
    "kubernetes.labels.app.kubernetes.io/name",
    "app_kubernetes_io_name",
    "kubernetes.deployment.name",
    "k8s.deployment.name",
    "k8s_deployment_name",
    "kubernetes.container.name",
    "kubernetes.container_name",
    "k8s.container.name",
    "container",
    "container_name",
    "container.name",
    "job",
    "component",
    "appname",
    "syslog_identifier",
    "SYSLOG_IDENTIFIER",
    "_SYSTEMD_UNIT",
    "unit",
    "program",
];

/// Fields that name a pod, host or instance.
pub const INSTANCE_FIELDS: &[&str] = &[
    "kubernetes.pod.name",
    "kubernetes.pod_name",
    "k8s.pod.name",
    "k8s_pod_name",
    "pod",
    "pod_name",
    "service.instance.id",
    "instance",
    "instance_id",
    "host.name",
    "host.hostname",
    "hostname",
    "host",
    "_HOSTNAME",
    "node",
    "node_name",
    "nodename",
    "filename",
];

/// Batches that wait for whoever reads them.
const CHANNEL_BATCHES: usize = 4;
/// The parts that a time is read in when not all of it is.
pub const SLICES: usize = 32;

/// How many events of each part are read, so that the shares of the parts stay as they are: what is left out is left
/// out everywhere alike, and a burst remains a burst.
pub fn quotas(counts: &[u64], limit: usize) -> Vec<usize> {
    let all: u64 = counts.iter().sum();
    let share = |count: u64| match all <= limit as u64 {
        true => count as usize,
        false => ((count as f64 * limit as f64 / all as f64).ceil() as usize).min(count as usize),
    };
    counts.iter().map(|count| share(*count)).collect()
}

/// A window in equal parts that touch but do not overlap.
pub fn slices(window: Window, parts: usize) -> Vec<Window> {
    let step = window.duration().as_millis() / parts.max(1) as i128;
    let at = |index: usize| {
        let offset = SignedDuration::from_millis(i64::try_from(step * index as i128).unwrap_or(i64::MAX));
        window.start.checked_add(offset).unwrap_or(window.end)
    };
    let last = SignedDuration::from_millis(1);
    (0..parts)
        .map(|index| match index + 1 == parts {
            true => Window::new(at(index), window.end),
            false => Window::new(at(index), at(index + 1).checked_sub(last).unwrap_or(window.end)),
        })
        .collect()
}

/// What is to be said when only a part was read.
pub fn sampled_note(name: &str, read: usize, all: u64) -> String {
    let one_of = (all as f64 / read.max(1) as f64).max(1.0);
    format!(
        "{name}: {all} events match; {read} of them were read, spread over the whole time, so that counts are about 1 in \
         {one_of:.1}: raise `limit` of the source, or ask for a shorter time or with keywords"
    )
}

/// Makes events of records, and leaves out what a looser search brought along.
pub struct EventMaker {
    reader: RecordReader,
    query: LogQuery,
    keywords: Vec<String>,
}

impl EventMaker {
    pub fn new(query: &LogQuery) -> Self {
        Self {
            reader: RecordReader::new(query.window.end, jiff::tz::TimeZone::UTC),
            keywords: query.keywords.iter().map(|word| word.to_lowercase()).collect(),
            query: query.clone(),
        }
    }

    /// The event of a record (JSON or a line). What the store knows of it (`known`) goes before what the record says,
    /// and what is known of neither is what was asked for. `None`: it lies outside of the question.
    pub fn event(&self, text: &str, known: Known<'_>) -> Option<LogEvent> {
        let mut event = self.reader.read(text);
        event.at = known.at.or(event.at);
        if let Some(message) = known.message {
            event.message = message.to_owned();
        }
        event.level = known.level.and_then(level_of).or(event.level);
        event.service = known.service.map(str::to_owned).or(event.service).or_else(|| self.query.service.clone());
        event.instance = known.instance.map(str::to_owned).or(event.instance).or_else(|| self.query.instance.clone());
        let message = if self.keywords.is_empty() { String::new() } else { event.message.to_lowercase() };
        let has_words = self.keywords.iter().all(|word| message.contains(word));
        (event.at.is_some_and(|at| self.query.window.contains(at)) && has_words).then_some(event)
    }
}

/// What a store says of an event beside its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    pub at: Option<Timestamp>,
    pub level: Option<&'a str>,
    pub service: Option<&'a str>,
    pub instance: Option<&'a str>,
    pub message: Option<&'a str>,
}

/// Where a reading sends what it finds. It goes on as long as somebody listens.
pub type Batches = mpsc::Sender<Result<LogBatch, SourceError>>;

/// The batches that `read` sends; its failure is the last of them.
pub fn streamed<R>(read: impl FnOnce(Batches) -> R) -> BoxStream<'static, Result<LogBatch, SourceError>>
where
    R: Future<Output = Result<(), SourceError>> + Send + 'static,
{
    let (batches, receiver) = mpsc::channel(CHANNEL_BATCHES);
    let reading = read(batches.clone());
    let mut task = JoinSet::new();
    task.spawn(async move {
        if let Err(error) = reading.await {
            let _ = batches.send(Err(error)).await;
        }
    });
    // The task is owned by the stream and ends with it.
    let stream = futures::stream::unfold((receiver, task), |(mut receiver, task)| async move {
        receiver.recv().await.map(|batch| (batch, (receiver, task)))
    });
    stream.boxed()
}

/// How many events each part of the time has, and how many of them are read: all in one, where they are no more than
/// `limit` (more may have come since they were counted), else of each part its share.
pub fn shares(
    parts: impl IntoIterator<Item = (Window, u64)>,
    whole: Window,
    limit: usize,
) -> (u64, Vec<(Window, usize)>) {
    let (windows, counts): (Vec<Window>, Vec<u64>) = parts.into_iter().unzip();
    let all = counts.iter().sum();
    if all <= limit as u64 {
        return (all, vec![(whole, limit)]);
    }
    (all, windows.into_iter().zip(quotas(&counts, limit)).filter(|(_, quota)| *quota > 0).collect())
}

/// A string of LogQL or LogsQL.
pub fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

/// A batch that only says something.
pub fn note(text: String) -> LogBatch {
    LogBatch { notes: vec![text], ..LogBatch::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_the_shares_of_the_whole() {
        assert_eq!(quotas(&[1000, 0, 9000], 100), [10, 0, 90]);
        assert_eq!(quotas(&[5, 7], 100), [5, 7]);
        assert_eq!(quotas(&[1, 1_000_000], 10), [1, 10]);
        assert_eq!(quotas(&[], 10), [0usize; 0]);
    }

    #[test]
    fn parts_of_a_window_touch_and_do_not_overlap() {
        let window = Window::ending_at("2026-03-04T06:45:00Z".parse().unwrap(), SignedDuration::from_mins(10));
        let parts = slices(window, 4);
        assert_eq!((parts[0].start, parts[3].end), (window.start, window.end));
        for pair in parts.windows(2) {
            assert_eq!(pair[1].start.duration_since(pair[0].end), SignedDuration::from_millis(1));
        }
    }

    #[test]
    fn what_the_store_knows_goes_first_and_what_does_not_fit_is_left_out() {
        let at: Timestamp = "2026-03-04T06:30:00Z".parse().unwrap();
        let query = LogQuery {
            window: Window::ending_at("2026-03-04T06:45:00Z".parse().unwrap(), SignedDuration::from_hours(1)),
            service: Some("cart".into()),
            instance: None,
            keywords: vec!["Pool".into()],
        };
        let maker = EventMaker::new(&query);
        let known = Known { at: Some(at), level: Some("warning"), ..Known::default() };
        let event = maker.event("connection pool is empty", known).unwrap();
        assert_eq!((event.at, event.service.as_deref()), (Some(at), Some("cart")));
        assert_eq!(event.level, Some(crate::domain::Level::Warn));
        assert_eq!(maker.event("all is well", known), None);
        assert_eq!(maker.event("pool", Known::default()), None);
    }
}
