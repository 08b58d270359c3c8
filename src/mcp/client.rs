//! Servers as the rest of the program sees them: connected once, all at the same time, called by name, connected again
//! when their process died or their session was lost.
//!
//! In: settings. Out: a [`Fleet`] of those that answered, with what they offer, and why the others did not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, JsonObject, PaginatedRequestParams, SubscriptionFilter, Tool,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connect::{self, Running};
use super::handler::{Handler, Said};
use super::{McpError, ServerSettings, names, schema};
use crate::domain::ToolSpec;
use crate::domain::text::{clean, clean_line};
use crate::http::jittered;

/// Tools of one server, and pages of its list.
const MAX_TOOLS: usize = 500;
const MAX_PAGES: usize = 100;
/// Characters of a tool's description: many tools have to fit a prompt.
const MAX_DESCRIPTION_CHARS: usize = 1200;
/// Connections in a row that fail before a server is given up for the run.
const MAX_RECONNECTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// For the word that nobody waits for an answer any more, when the connection is to end at once after it.
const CANCEL_PAUSE: Duration = Duration::from_millis(200);
/// Between two looks at whether a call still holds the connection.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// What a server gets for an orderly end.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(1500);

/// A tool that a server offers, ready for a registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// As the server calls it.
    pub tool: String,
    /// As everybody else does.
    pub spec: ToolSpec,
    /// Whether it says that it only reads, or the configuration allows it.
    pub runs_unattended: bool,
    /// What [`super::remembered`] compares between runs: all that a model or a person judges it by.
    pub fingerprint: String,
}

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// Version of the protocol that was agreed on.
    pub protocol: String,
    /// Its own name and version, where it told them.
    pub server: Option<String>,
    /// From the start to the list of tools.
    pub connected_in: Duration,
}

/// A connected server.
pub struct Server {
    settings: ServerSettings,
    said: Arc<Said>,
    about: About,
    offers: Vec<Offer>,
    /// Tools that are not offered, with the reason.
    left_out: Vec<(String, String)>,
    live: Mutex<Live>,
    /// One connects, the others wait for it.
    opening: Semaphore,
}

struct Live {
    running: Option<Arc<Running>>,
    /// Hears of changes of the tools, where they have to be subscribed to; aborted with the connection.
    listening: JoinSet<()>,
    /// Connections in a row that failed, and when the next may be tried.
    failures: u32,
    not_before: Instant,
}

impl Server {
    /// Connects and lists the tools, within the server's own deadline.
    pub async fn connect(settings: ServerSettings) -> Result<Self, McpError> {
        let said = Arc::new(Said::default());
        let started = Instant::now();
        let handler = Handler { server: settings.name.as_str().into(), said: Arc::clone(&said) };
        let opened = tokio::time::timeout(settings.start_timeout, async {
            let running = connect::open(&settings, &handler).await?;
            let tools = list(&running, &said).await?;
            Ok((running, tools))
        });
        let (running, tools) =
            opened.await.unwrap_or_else(|_| Err(McpError::Timeout(settings.start_timeout, said.last_words())))?;
        let about = about(&running, started.elapsed());
        let (offers, left_out) = offers(&settings, &tools);
        let listening = listen(&running, &said);
        let live = Live { running: Some(Arc::new(running)), listening, failures: 0, not_before: Instant::now() };
        Ok(Self { settings, said, about, offers, left_out, live: Mutex::new(live), opening: Semaphore::new(1) })
    }

    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The name under which its answers are cited.
    pub fn source(&self) -> String {
        format!("mcp/{}", self.settings.name)
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn offers(&self) -> &[Offer] {
        &self.offers
    }

    pub fn left_out(&self) -> &[(String, String)] {
        &self.left_out
    }

    /// Whether it offers a tool of this name, in its own words.
    pub fn has(&self, tool: &str) -> bool {
        self.offers.iter().any(|offer| offer.tool == tool)
    }

    /// Calls a tool by the server's own name of it. A server that has gone is connected again first; a call that broke
    /// off is not repeated: whether it may be, the caller knows. Dropping the future tells the server to stop.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, McpError> {
        let running = self.running().await?;
        if self.said.take_tools_changed() {
            self.check_still_there(&running, tool).await?;
        }
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        // Stays marked when the future is dropped.
        let mut abandoned = Abandoned { said: &self.said, is_answered: false };
        let answer = tokio::select! {
            biased;
            // Dropping the other branch sends the cancellation.
            () = cancel.cancelled() => return Err(McpError::Cancelled),
            answer = running.call_tool(params) => answer,
        };
        abandoned.is_answered = true;
        answer.map_err(|error| {
            let error = McpError::of_call(&error, &self.said.last_words());
            if matches!(error, McpError::Gone(_)) {
                self.forget(&running);
            }
            error
        })
    }

    /// A server that said that its tools changed is asked whether it still has this one, in the form that was shown.
    async fn check_still_there(&self, running: &Running, tool: &str) -> Result<(), McpError> {
        let tools = list(running, &self.said).await?;
        let now = offers(&self.settings, &tools).0;
        let known = self.offers.iter().find(|offer| offer.tool == tool);
        match (now.iter().find(|offer| offer.tool == tool), known) {
            (Some(now), Some(known)) if now.fingerprint == known.fingerprint => Ok(()),
            (Some(_), _) => {
                // The flag is set again: the next call has to learn it too.
                self.said.note_tools_changed();
                Err(McpError::Refused(format!(
                    "the server changed `{}` during the run: start again to use it",
                    clean_line(tool, 64)
                )))
            }
            (None, _) => {
                self.said.note_tools_changed();
                Err(McpError::Refused(format!("the server no longer offers `{}`", clean_line(tool, 64))))
            }
        }
    }

    /// The connection; a new one when the last has ended.
    async fn running(&self) -> Result<Arc<Running>, McpError> {
        if let Some(running) = self.alive() {
            return Ok(running);
        }
        // The semaphore is never closed, so that a permit always comes.
        let _permit = self.opening.acquire().await;
        if let Some(running) = self.alive() {
            return Ok(running);
        }
        let (failures, not_before) = {
            let live = self.live();
            (live.failures, live.not_before)
        };
        if failures >= MAX_RECONNECTS {
            return Err(McpError::Gone(format!(
                "it could not be connected again {failures} times and is given up for this run"
            )));
        }
        tokio::time::sleep_until(not_before).await;
        let handler = Handler { server: self.settings.name.as_str().into(), said: Arc::clone(&self.said) };
        let opened = tokio::time::timeout(self.settings.start_timeout, connect::open(&self.settings, &handler)).await;
        let opened =
            opened.unwrap_or_else(|_| Err(McpError::Timeout(self.settings.start_timeout, self.said.last_words())));
        let mut live = self.live();
        match opened {
            Ok(running) => {
                tracing::info!("{}: connected again", self.settings.name);
                live.listening = listen(&running, &self.said);
                let running = Arc::new(running);
                live.running = Some(Arc::clone(&running));
                // A server that dies at every call is not started for ever: only time forgives.
                live.failures += 1;
                live.not_before = Instant::now() + jittered(FIRST_PAUSE, live.failures);
                // What it offers may differ from what the last process did.
                self.said.note_tools_changed();
                Ok(running)
            }
            Err(error) => {
                live.failures += 1;
                live.not_before = Instant::now() + jittered(FIRST_PAUSE, live.failures);
                Err(error)
            }
        }
    }

    fn alive(&self) -> Option<Arc<Running>> {
        self.live().running.clone().filter(|running| !running.is_transport_closed())
    }

    /// Drops this connection, unless another has taken its place.
    fn forget(&self, running: &Arc<Running>) {
        let mut live = self.live();
        if live.running.as_ref().is_some_and(|known| Arc::ptr_eq(known, running)) {
            live.running = None;
        }
    }

    /// Ends the connection in order: the process sees the end of its input and has a moment to leave.
    pub async fn close(&self) {
        let running = {
            let mut live = self.live();
            live.listening.abort_all();
            live.running.take()
        };
        // A call that was given up may not have been dropped yet: it holds the connection, and dropping it is what tells
        // the server.
        let until = Instant::now() + CANCEL_PAUSE;
        while running.as_ref().is_some_and(|running| Arc::strong_count(running) > 1) && Instant::now() < until {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        if self.said.take_abandoned() {
            tokio::time::sleep(CANCEL_PAUSE).await;
        }
        if let Some(mut running) = running.and_then(|running| Arc::try_unwrap(running).ok()) {
            // `Ok(None)`: it is still there.
            if let Ok(None) = running.close_with_timeout(CLOSE_TIMEOUT).await {
                self.said.kill();
            }
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        // Nothing panics while it is held.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes a call that ended before it was answered.
struct Abandoned<'a> {
    said: &'a Said,
    is_answered: bool,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.said.note_abandoned();
        }
    }
}

fn about(running: &Running, connected_in: Duration) -> About {
    let info = running.peer_info();
    let server = info.as_deref().and_then(|info| info.server_info.as_ref());
    About {
        protocol: info.as_deref().map_or_else(String::new, |info| clean_line(info.protocol_version.as_str(), 40)),
        server: server.map(|server| clean_line(&format!("{} {}", server.name, server.version), 80)),
        connected_in,
    }
}

/// Subscribes to changes of the tools: without a handshake a server tells them to nobody else.
fn listen(running: &Running, said: &Arc<Said>) -> JoinSet<()> {
    let mut listening = JoinSet::new();
    let info = running.peer_info();
    let is_told_otherwise = info.as_deref().is_none_or(|info| info.protocol_version.has_initialize());
    let tools = info.as_deref().and_then(|info| info.capabilities.tools.as_ref());
    if is_told_otherwise || tools.is_none_or(|tools| tools.list_changed != Some(true)) {
        return listening;
    }
    let (peer, said) = (running.peer().clone(), Arc::clone(said));
    listening.spawn(async move {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        // A server that refuses says no more of its tools than one that has no changes.
        let Ok(mut subscription) = peer.listen(filter).await else { return };
        while let Ok(Some(_)) = subscription.next().await {
            said.note_tools_changed();
        }
    });
    listening
}

/// All tools, page by page. A server without tools is not asked for them.
async fn list(running: &Running, said: &Said) -> Result<Vec<Tool>, McpError> {
    if running.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(Vec::new());
    }
    let mut tools: Vec<Tool> = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let page = running.list_tools(Some(params)).await;
        let page = page.map_err(|error| McpError::of_call(&error, &said.last_words()))?;
        tools.extend(page.tools);
        if page.next_cursor.is_none() || page.next_cursor == cursor || tools.len() >= MAX_TOOLS {
            break;
        }
        cursor = page.next_cursor;
    }
    tools.truncate(MAX_TOOLS);
    Ok(tools)
}

/// What of the tools can be offered, and why the rest is left out.
fn offers(settings: &ServerSettings, tools: &[Tool]) -> (Vec<Offer>, Vec<(String, String)>) {
    let (mut offers, mut left_out): (Vec<Offer>, _) = (Vec::new(), Vec::new());
    let fits = |patterns: &[String], tool: &str| patterns.iter().any(|pattern| names::matches(pattern, tool));
    for tool in tools.iter().filter(|tool| !fits(&settings.deny, &tool.name)) {
        let plain = match schema::plain(&tool.input_schema) {
            Ok(plain) => plain,
            Err(reason) => {
                left_out.push((clean_line(&tool.name, 80), reason));
                continue;
            }
        };
        let name = names::offered(&settings.name, &tool.name);
        if offers.iter().any(|known| known.spec.name == name) {
            left_out.push((clean_line(&tool.name, 80), "there is another of this name".to_owned()));
            continue;
        }
        let only_reads = tool
            .annotations
            .as_ref()
            .is_some_and(|said| said.read_only_hint == Some(true) && said.destructive_hint != Some(true));
        let description = clean(tool.description.as_deref().unwrap_or_default().trim(), MAX_DESCRIPTION_CHARS);
        offers.push(Offer {
            runs_unattended: only_reads || fits(&settings.allow, &tool.name),
            fingerprint: fingerprint(tool),
            tool: tool.name.to_string(),
            spec: ToolSpec {
                name,
                description,
                input_schema: plain,
                server: settings.name.clone(),
                read_only: only_reads,
            },
        });
    }
    (offers, left_out)
}

fn fingerprint(tool: &Tool) -> String {
    let judged = serde_json::json!([tool.description, tool.input_schema, tool.annotations]);
    blake3::hash(judged.to_string().as_bytes()).to_hex()[..16].to_owned()
}

/// The servers of a run.
#[derive(Default)]
pub struct Fleet {
    pub servers: Vec<Arc<Server>>,
    /// Those that could not be connected, by name.
    pub failures: Vec<(String, McpError)>,
}

impl Fleet {
    /// Connects to all at the same time: it takes as long as the slowest, whose deadline is its own.
    pub async fn connect(settings: Vec<ServerSettings>) -> Self {
        let names: Vec<String> = settings.iter().map(|one| one.name.clone()).collect();
        let connected = futures::future::join_all(settings.into_iter().map(Server::connect)).await;
        let mut fleet = Self::default();
        for (name, server) in names.into_iter().zip(connected) {
            match server {
                Ok(server) => fleet.servers.push(Arc::new(server)),
                Err(error) => fleet.failures.push((name, error)),
            }
        }
        fleet
    }

    pub fn server(&self, name: &str) -> Option<&Arc<Server>> {
        self.servers.iter().find(|server| server.name() == name)
    }

    /// Ends all connections, together.
    pub async fn close(&self) {
        futures::future::join_all(self.servers.iter().map(|server| server.close())).await;
    }
}
