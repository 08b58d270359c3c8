//! Asking before a call that may change something: the request goes out as an event, the answer comes back through
//! [`Approvals::answer`]. What was granted for the session is remembered by tool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::control::Approval;
use crate::domain::Call;
use crate::event::{EventKind, EventSink};

/// The open requests of a session and what was granted in it. Shared by its runs.
#[derive(Debug, Default)]
pub struct Approvals {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<u64, oneshot::Sender<Approval>>,
    granted: BTreeSet<String>,
}

impl Approvals {
    /// Whether the call may be made. Waits for the answer; a run that is cancelled, or a front end that is gone, is a no.
    pub async fn ask(
        &self,
        request: u64,
        server: &str,
        call: &Call,
        events: &EventSink,
        cancel: &CancellationToken,
    ) -> bool {
        if self.inner().granted.contains(&call.tool) {
            return true;
        }
        let (sender, receiver) = oneshot::channel();
        self.inner().open.insert(request, sender);
        events.emit(EventKind::ApprovalRequested { request, server: server.to_owned(), call: call.clone() });
        let approval = tokio::select! {
            biased;
            () = cancel.cancelled() => Approval::Deny,
            answered = receiver => answered.unwrap_or_default(),
        };
        self.inner().open.remove(&request);
        if approval == Approval::Session {
            self.inner().granted.insert(call.tool.clone());
        }
        events.emit(EventKind::ApprovalAnswered { request, approval });
        approval != Approval::Deny
    }

    /// Answers a request; one that is not open (answered already, or its call cancelled) stays as it is.
    pub fn answer(&self, request: u64, approval: Approval) {
        if let Some(waiting) = self.inner().open.remove(&request) {
            let _ = waiting.send(approval);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it is held; were it so, the maps would still be whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
