//! A source with a deadline: one that is slow is a failure of its own, in time for what the others said to be used.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    LogBatch, LogQuery, LogSource, MetricSource, QueryAnswer, SourceError, StatusAnswer, StatusQuery, StatusSource,
};
use crate::domain::{Change, FailureKind, MetricInfo, Series, Window};

/// A source of any kind that answers within `deadline` or fails.
pub struct Bounded<S: ?Sized> {
    inner: Arc<S>,
    deadline: Duration,
}

impl<S: ?Sized> Bounded<S> {
    pub fn new(inner: Arc<S>, deadline: Duration) -> Self {
        Self { inner, deadline }
    }

    async fn within<T>(&self, answer: impl Future<Output = Result<T, SourceError>>) -> Result<T, SourceError> {
        timeout(self.deadline, answer).await.unwrap_or_else(|_| Err(late(self.deadline)))
    }
}

fn late(deadline: Duration) -> SourceError {
    let seconds = deadline.as_secs_f64();
    SourceError::new(FailureKind::Timeout, format!("no answer within {seconds} s (four fifths of agent.tool_timeout)"))
}

#[async_trait]
impl MetricSource for Bounded<dyn MetricSource> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn caveat(&self) -> Option<String> {
        self.inner.caveat()
    }

    async fn instant(&self, expr: &str, at: Timestamp) -> Result<QueryAnswer, SourceError> {
        self.within(self.inner.instant(expr, at)).await
    }

    async fn range(&self, expr: &str, window: Window, step: SignedDuration) -> Result<QueryAnswer, SourceError> {
        self.within(self.inner.range(expr, window, step)).await
    }

    async fn metrics(&self, matcher: Option<&str>, window: Window) -> Result<Vec<MetricInfo>, SourceError> {
        self.within(self.inner.metrics(matcher, window)).await
    }

    async fn series(&self, matcher: &str, window: Window) -> Result<(Vec<Series>, bool), SourceError> {
        self.within(self.inner.series(matcher, window)).await
    }
}

#[async_trait]
impl LogSource for Bounded<dyn LogSource> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn caveat(&self) -> Option<String> {
        self.inner.caveat()
    }

    fn search(&self, query: &LogQuery) -> BoxStream<'static, Result<LogBatch, SourceError>> {
        let (until, deadline) = (Instant::now() + self.deadline, self.deadline);
        let batches = Some(self.inner.search(query));
        futures::stream::unfold(batches, move |batches| async move {
            let mut batches = batches?;
            match timeout_at(until, batches.next()).await {
                Ok(batch) => Some((batch?, Some(batches))),
                Err(_) => Some((Err(late(deadline)), None)),
            }
        })
        .boxed()
    }

    async fn services(&self) -> Result<Vec<String>, SourceError> {
        self.within(self.inner.services()).await
    }
}

#[async_trait]
impl StatusSource for Bounded<dyn StatusSource> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn caveat(&self) -> Option<String> {
        self.inner.caveat()
    }

    async fn status(&self, query: &StatusQuery) -> Result<StatusAnswer, SourceError> {
        self.within(self.inner.status(query)).await
    }

    async fn changes(&self, window: Window, service: Option<&str>) -> Result<Vec<Change>, SourceError> {
        self.within(self.inner.changes(window, service)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a batch, then keeps silent.
    struct Slow;

    #[async_trait]
    impl LogSource for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        fn search(&self, _query: &LogQuery) -> BoxStream<'static, Result<LogBatch, SourceError>> {
            futures::stream::iter([Ok(LogBatch::default())]).chain(futures::stream::pending()).boxed()
        }

        async fn services(&self) -> Result<Vec<String>, SourceError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_in_time_stands_and_the_rest_is_late() {
        let slow = Bounded::<dyn LogSource>::new(Arc::new(Slow), Duration::from_secs(8));
        let window = Window::ending_at(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(1));
        let query = LogQuery { window, service: None, instance: None, keywords: Vec::new() };
        let batches: Vec<_> = slow.search(&query).collect().await;
        assert_eq!(batches[0].as_ref().unwrap(), &LogBatch::default());
        let error = batches[1].as_ref().unwrap_err();
        assert_eq!((error.kind, batches.len()), (FailureKind::Timeout, 2));
        assert_eq!(slow.services().await.unwrap_err().kind, FailureKind::Timeout);
    }
}
