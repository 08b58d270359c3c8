//! The one writer of a session: a thread of its own that folds events and writes what changed, so that the agent waits
//! for no disk and no server.
//!
//! Events come in through a bounded channel. When it is full (the store is locked, the disk is slow) they wait in the
//! handle, in order, and nothing is dropped: a run has a bounded number of events. Rows are written twice a second, each
//! once however often it changed, and all of them at the end: when the session is finished, and when the handle is
//! dropped by an error or a panic. `kill -9` therefore loses less than a second.

use std::collections::VecDeque;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use super::redact::{self, Redact};
use super::{Location, Owner, SessionStore, SqlStore, StoreError};
use crate::domain::{SessionRecord, SessionStatus};
use crate::event::{Event, EventKind};
use crate::trace::Trace;

/// Inputs that wait in the channel; more wait in the handle.
const CHANNEL: usize = 512;
/// How often changed rows are written.
const WRITE_EVERY: Duration = Duration::from_millis(500);
/// How long the end of a session waits for a store that is locked.
const LAST_WORDS: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Something done to the trace, in the order in which it was asked for.
type Edit = Box<dyn FnOnce(&mut Trace) + Send>;

/// What a recorder leaves: the whole record, without secrets, and what went wrong with the store.
pub struct Recorded {
    pub record: SessionRecord,
    pub stored: Result<(), StoreError>,
}

/// The handle of the writer.
pub struct Recorder {
    sender: Option<Sender<Edit>>,
    waiting: VecDeque<Edit>,
    thread: Option<JoinHandle<Recorded>>,
}

impl Recorder {
    /// Starts the writer of a session. Opening the store is the writer's business too.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(location: Location, trace: Trace, redact: Redact) -> std::io::Result<Self> {
        Self::spawn(Opening::Location(location), trace, redact)
    }

    /// The same over a store that is open.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn over(store: Box<dyn SessionStore>, trace: Trace, redact: Redact) -> std::io::Result<Self> {
        Self::spawn(Opening::Store(store), trace, redact)
    }

    fn spawn(opening: Opening, trace: Trace, redact: Redact) -> std::io::Result<Self> {
        let (sender, receiver) = channel(CHANNEL);
        let thread =
            std::thread::Builder::new().name("sessions".into()).spawn(move || run(opening, trace, redact, receiver))?;
        Ok(Self { sender: Some(sender), waiting: VecDeque::new(), thread: Some(thread) })
    }

    /// Takes an event; never waits.
    pub fn record(&mut self, event: &Event) {
        // A piece of an answer changes no row: the answer follows as a whole.
        if !matches!(event.kind, EventKind::AnswerDelta { .. }) {
            let event = event.clone();
            self.edit(move |trace| trace.apply(&event));
        }
    }

    /// Does something to the trace, after everything that was recorded before; never waits.
    pub fn edit(&mut self, edit: impl FnOnce(&mut Trace) + Send + 'static) {
        self.waiting.push_back(Box::new(edit));
        self.send_waiting();
    }

    fn send_waiting(&mut self) {
        let Some(sender) = &self.sender else { return };
        while let Some(edit) = self.waiting.pop_front() {
            match sender.try_send(edit) {
                Ok(()) => {}
                Err(TrySendError::Full(edit)) => return self.waiting.push_front(edit),
                // The writer gave up; why is told at the end.
                Err(TrySendError::Closed(_)) => return self.waiting.clear(),
            }
        }
    }

    /// Ends the session: everything is written when this returns.
    pub async fn finish(mut self) -> Option<Recorded> {
        if let Some(sender) = &self.sender {
            for edit in std::mem::take(&mut self.waiting) {
                if sender.send(edit).await.is_err() {
                    break;
                }
            }
        }
        self.sender = None;
        let thread = self.thread.take()?;
        // A writer that panicked has nothing to tell that its panic did not tell.
        tokio::task::spawn_blocking(move || thread.join().ok()).await.ok().flatten()
    }
}

/// An error or a panic leaves no session half written.
impl Drop for Recorder {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // The thread empties the channel whatever happens here, so that waiting for room ends.
        while !self.waiting.is_empty() && !thread.is_finished() {
            self.send_waiting();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.sender = None;
        let _ = thread.join();
    }
}

enum Opening {
    Location(Location),
    Store(Box<dyn SessionStore>),
}

/// The thread.
fn run(opening: Opening, trace: Trace, redact: Redact, receiver: Receiver<Edit>) -> Recorded {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut trace = trace;
    let stored = match runtime {
        Ok(runtime) => runtime.block_on(write(opening, &mut trace, &redact, receiver)),
        Err(error) => Err(StoreError::Unusable { location: "writer".into(), why: error.to_string() }),
    };
    let mut record = trace.record;
    redact::record(&mut record, &redact);
    Recorded { record, stored }
}

async fn write(
    opening: Opening,
    trace: &mut Trace,
    redact: &Redact,
    mut receiver: Receiver<Edit>,
) -> Result<(), StoreError> {
    let opened: Result<Box<dyn SessionStore>, StoreError> = match opening {
        Opening::Store(store) => Ok(store),
        Opening::Location(location) => SqlStore::open(&location).await.map(|store| Box::new(store) as _),
    };
    let store = match opened {
        Ok(store) => store,
        Err(error) => return drain(trace, receiver, error).await,
    };
    let owner = Owner::this();
    let mut due = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(due) => {
                due = Instant::now() + WRITE_EVERY;
                match write_changes(&*store, trace, redact, &owner).await {
                    Err(error) if !error.is_passing() => return drain(trace, receiver, error).await,
                    // What is busy is tried again with the next rows.
                    _ => {}
                }
            }
            edit = receiver.recv() => match edit {
                Some(edit) => edit(trace),
                None => break,
            },
        }
    }
    close_if_open(trace);
    let deadline = Instant::now() + LAST_WORDS;
    let written = loop {
        match write_changes(&*store, trace, redact, &owner).await {
            Err(error) if error.is_passing() && Instant::now() < deadline => tokio::time::sleep(RETRY_PAUSE).await,
            written => break written,
        }
    };
    store.close().await;
    written
}

/// Nothing can be stored, but the record is still wanted.
async fn drain(trace: &mut Trace, mut receiver: Receiver<Edit>, error: StoreError) -> Result<(), StoreError> {
    while let Some(edit) = receiver.recv().await {
        edit(trace);
    }
    close_if_open(trace);
    Err(error)
}

/// Whoever recorded has gone without saying how the session ended.
fn close_if_open(trace: &mut Trace) {
    if trace.record.session.status == SessionStatus::Running {
        trace.close(SessionStatus::Failed, Some("it ended with an error, without an answer"), Timestamp::now());
    }
}

/// Writes what changed, and in any case that the session is alive. What could not be written counts as changed again.
async fn write_changes(
    store: &dyn SessionStore,
    trace: &mut Trace,
    redact: &Redact,
    owner: &Owner,
) -> Result<(), StoreError> {
    let changes = trace.take_changes();
    let written = store.write(&redact::changes(changes.clone(), redact), owner).await;
    if written.is_err() {
        trace.restore(&changes);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;

    use super::*;
    use crate::domain::{Feedback, Lang, Role, Session};
    use crate::session::Filter;
    use crate::trace::Changes;

    /// A store in memory that follows a script: each write first takes the next answer.
    #[derive(Clone, Default)]
    struct Scripted {
        failures: Arc<Mutex<VecDeque<StoreError>>>,
        pause: Duration,
        written: Arc<Mutex<Vec<Changes>>>,
    }

    #[async_trait]
    impl SessionStore for Scripted {
        async fn write(&self, changes: &Changes, _: &Owner) -> Result<(), StoreError> {
            tokio::time::sleep(self.pause).await;
            if let Some(error) = self.failures.lock().unwrap().pop_front() {
                return Err(error);
            }
            self.written.lock().unwrap().push(changes.clone());
            Ok(())
        }

        async fn list(&self, _: &Filter) -> Result<Vec<Session>, StoreError> {
            Ok(Vec::new())
        }

        async fn ids(&self, _: &str, _: usize) -> Result<Vec<String>, StoreError> {
            Ok(Vec::new())
        }

        async fn read(&self, _: &str) -> Result<Option<SessionRecord>, StoreError> {
            Ok(None)
        }

        async fn add_feedback(&self, _: &str, _: &Feedback) -> Result<(), StoreError> {
            Ok(())
        }

        async fn prune(&self, _: Timestamp) -> Result<u64, StoreError> {
            Ok(0)
        }

        async fn close(&self) {}
    }

    fn recorder(store: &Scripted) -> Recorder {
        let trace = crate::trace::question("s", "why?", Lang::En, Timestamp::UNIX_EPOCH);
        let redact = Redact {
            text: Arc::new(|text: &str| text.replace("hunter2", "***")),
            json: Arc::new(|value| value.clone()),
        };
        Recorder::over(Box::new(store.clone()), trace, redact).unwrap()
    }

    /// The messages as a reader of the store sees them: the last written of each.
    fn messages(store: &Scripted) -> Vec<String> {
        let written = store.written.lock().unwrap();
        let mut rows = std::collections::BTreeMap::new();
        for message in written.iter().flat_map(|changes| &changes.messages) {
            rows.insert(message.order, message.content.clone());
        }
        rows.into_values().collect()
    }

    fn status(store: &Scripted) -> Option<SessionStatus> {
        let written = store.written.lock().unwrap();
        written.iter().filter_map(|changes| changes.session.as_ref()).next_back().map(|session| session.status)
    }

    #[tokio::test]
    async fn more_than_the_channel_holds_waits_and_nothing_is_dropped_or_reordered() {
        let store = Scripted { pause: Duration::from_millis(50), ..Scripted::default() };
        let mut recorder = recorder(&store);
        let said = 4 * CHANNEL;
        for n in 0..said {
            recorder.edit(move |trace| trace.message(Role::Thought, &n.to_string(), Timestamp::UNIX_EPOCH));
        }
        recorder.edit(|trace| trace.close(SessionStatus::Complete, None, Timestamp::UNIX_EPOCH));
        let recorded = recorder.finish().await.unwrap();
        assert_eq!(recorded.stored, Ok(()));
        let want: Vec<String> = std::iter::once("why?".to_owned()).chain((0..said).map(|n| n.to_string())).collect();
        assert_eq!(messages(&store), want);
        assert_eq!(status(&store), Some(SessionStatus::Complete));
    }

    #[tokio::test]
    async fn a_locked_store_is_tried_again_and_gets_every_row() {
        let busy = StoreError::Busy { location: "s".into(), why: "locked".into() };
        let store = Scripted { failures: Arc::new(Mutex::new(vec![busy; 3].into())), ..Scripted::default() };
        let mut recorder = recorder(&store);
        recorder.edit(|trace| trace.message(Role::Assistant, "because", Timestamp::UNIX_EPOCH));
        assert_eq!(recorder.finish().await.unwrap().stored, Ok(()));
        assert_eq!(messages(&store), ["why?", "because"]);
    }

    #[tokio::test]
    async fn a_store_that_cannot_be_used_is_told_once_and_the_record_is_whole() {
        let unusable = StoreError::Unusable { location: "s".into(), why: "read-only".into() };
        let store = Scripted { failures: Arc::new(Mutex::new(vec![unusable.clone()].into())), ..Scripted::default() };
        let mut recorder = recorder(&store);
        recorder.edit(|trace| trace.message(Role::Assistant, "because", Timestamp::UNIX_EPOCH));
        let recorded = recorder.finish().await.unwrap();
        assert_eq!(recorded.stored, Err(unusable));
        assert_eq!(recorded.record.messages.len(), 2);
        assert_eq!(messages(&store), Vec::<String>::new());
    }

    #[test]
    fn a_panic_leaves_the_session_written_and_failed() {
        let store = Scripted::default();
        let inner = store.clone();
        let panicked = std::panic::catch_unwind(move || {
            let mut recorder = recorder(&inner);
            recorder.edit(|trace| trace.message(Role::Thought, "my key is hunter2", Timestamp::UNIX_EPOCH));
            panic!("as scripted");
        });
        assert!(panicked.is_err());
        assert_eq!(messages(&store), ["why?", "my key is ***"]);
        assert_eq!(status(&store), Some(SessionStatus::Failed));
    }
}
