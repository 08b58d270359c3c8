//! Live export of a run's trace: what has ended is sent to the OTLP receiver once a second, so that somebody who watches
//! there sees the run as it goes on. What could not be sent is left to the export at the end, which also tells.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::send;
use crate::config::OtlpConfig;
use crate::event::Event;
use crate::http::Retries;
use crate::session::{Redact, redact};
use crate::trace::span::SpanEnd;
use crate::trace::{Trace, otlp, spans};

const SEND_EVERY: Duration = Duration::from_secs(1);
/// A receiver that does not answer in time is asked again with the next spans.
const PATIENCE: Duration = Duration::from_secs(3);

/// The exporter of one run.
pub(super) struct Live {
    events: UnboundedSender<Event>,
    task: JoinHandle<BTreeSet<String>>,
}

impl Live {
    /// Starts it, with the trace as it is before the first event.
    pub fn start(trace: Trace, url: String, config: OtlpConfig, redact: Redact) -> Self {
        let (events, received) = unbounded_channel();
        Self { events, task: tokio::spawn(run(trace, url, config, redact, received)) }
    }

    pub fn event(&self, event: &Event) {
        // It is gone only after a panic; the export at the end sends everything then.
        let _ = self.events.send(event.clone());
    }

    /// The spans that the receiver has.
    pub async fn finish(self) -> BTreeSet<String> {
        drop(self.events);
        self.task.await.unwrap_or_default()
    }
}

async fn run(
    mut trace: Trace,
    url: String,
    config: OtlpConfig,
    redact: Redact,
    mut events: UnboundedReceiver<Event>,
) -> BTreeSet<String> {
    // A session that goes on has been sent before, as far as it went.
    let mut sent = ended(&trace, &BTreeSet::new());
    let mut due = Instant::now() + SEND_EVERY;
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(event) => trace.apply(&event),
                None => return sent,
            },
            () = tokio::time::sleep_until(due) => {
                let news = ended(&trace, &sent);
                if !news.is_empty() && offered(&trace, &news, &url, &config, &redact).await {
                    sent.extend(news);
                }
                due = Instant::now() + SEND_EVERY;
            }
        }
    }
}

/// Ids of the spans that have ended and are not among these.
fn ended(trace: &Trace, sent: &BTreeSet<String>) -> BTreeSet<String> {
    let spans = spans(&trace.record).into_iter().skip(1);
    spans.filter(|span| span.end != SpanEnd::Open && !sent.contains(&span.id)).map(|span| span.id).collect()
}

async fn offered(trace: &Trace, news: &BTreeSet<String>, url: &str, config: &OtlpConfig, redact: &Redact) -> bool {
    let mut record = trace.record.clone();
    redact::record(&mut record, redact);
    let body = otlp::encode(&record, &config.service_name, |span| news.contains(&span.id));
    let once = Retries { attempts: 1, ..Retries::default() };
    matches!(tokio::time::timeout(PATIENCE, send(body, url, config, once)).await, Ok(Ok(())))
}
