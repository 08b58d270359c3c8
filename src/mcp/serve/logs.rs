//! The tools of the `logs` server: time, regions, topics, and events as they were logged.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::catalogue::{Catalogue, Told};
use super::{answered, spec};
use crate::domain::text::{clean, clean_line, nearest};
use crate::domain::{Failure, FailureKind, Level, LogEvent, Outcome, Output, ToolSpec};
use crate::mcp::exchange::{LogPage, SEARCH_LOG, SEARCH_TOPIC};
use crate::source::{LogQuery, LogSource};
use crate::tool::Tool;
use crate::tool::arguments::{TimeArgument, ToolClock, bad_arguments, outcome, parse_arguments};
use crate::tool::sources::Roll;

/// Events in an answer that does not say how many, and the most that may be asked for.
const USUAL_EVENTS: usize = 100;
const MAX_EVENTS: usize = 5000;
/// Bytes of the messages of an answer.
const MAX_BYTES: usize = 4 << 20;
/// Events that are held to be put in order.
const MAX_HELD: usize = 100_000;
const MAX_MESSAGE_CHARS: usize = 8000;
/// Topics in one answer.
const MAX_TOPICS: usize = 200;

/// All tools.
pub fn tools(sources: &[Arc<dyn LogSource>], catalogue: &Arc<Catalogue>, clock: &ToolClock) -> Vec<Arc<dyn Tool>> {
    let made = |question: Question| -> Arc<dyn Tool> {
        Arc::new(LogTool {
            spec: question.spec(),
            question,
            sources: sources.to_vec(),
            catalogue: Arc::clone(catalogue),
            clock: clock.clone(),
        })
    };
    [Question::Now, Question::Region, Question::Topic, Question::TopicsOfService, Question::Search].map(made).into()
}

/// What a tool answers.
#[derive(Debug, Clone, Copy)]
enum Question {
    Now,
    Region,
    Topic,
    TopicsOfService,
    Search,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArguments {}

#[derive(Debug, Deserialize, JsonSchema)]
struct RegionArguments {
    /// Name or code of the region, such as Shanghai, 上海 or ap-shanghai.
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct TopicArguments {
    /// Name or id of the topic.
    topic_name: String,
    /// Only topics of this region, by code or name.
    region: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ServiceArguments {
    /// Name of the service, or a part of it; all topics are listed without one.
    service_name: Option<String>,
    /// Only topics of this region, by code or name.
    region: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchArguments {
    /// The topic whose logs are wanted, as search_topic_by_service_name gives it.
    topic_id: Option<String>,
    /// The service whose logs are wanted.
    service: Option<String>,
    /// Pod, host or instance whose logs are wanted.
    instance: Option<String>,
    /// Start of the time to look at: RFC 3339, Unix seconds, or relative to now such as -15m. Default: an hour before
    /// the end.
    start: Option<TimeArgument>,
    /// End of that time, in the same forms. Default: now.
    end: Option<TimeArgument>,
    /// Only events whose message holds every one of these words, ignoring case.
    keywords: Option<Vec<String>>,
    /// The same as one text: every word of it must occur.
    query: Option<String>,
    /// Only events of this level or worse: debug, info, warn, error, fatal.
    level: Option<String>,
    /// How many events at most, 1 to 5000. Default: 100.
    limit: Option<usize>,
    /// How many matching events to skip: next_offset of the answer before.
    offset: Option<usize>,
}

impl Question {
    fn spec(self) -> ToolSpec {
        match self {
            Self::Now => spec::<NoArguments>(
                "get_current_timestamp",
                "The present time in Unix milliseconds and seconds, in UTC and in the local zone.",
            ),
            Self::Region => {
                spec::<RegionArguments>("get_region_code_by_name", "The code of a region by one of its names.")
            }
            Self::Topic => spec::<TopicArguments>(
                "get_topic_info_by_name",
                "A log topic by its name: id, region, services and description.",
            ),
            Self::TopicsOfService => {
                spec::<ServiceArguments>(SEARCH_TOPIC, "The log topics that hold logs of a service.")
            }
            Self::Search => spec::<SearchArguments>(
                SEARCH_LOG,
                "Events as they were logged in a time, oldest first: of a topic, a service or an instance, with all of \
                 some words, of a level or worse. A long answer comes in parts (next_offset).",
            ),
        }
    }
}

struct LogTool {
    spec: ToolSpec,
    question: Question,
    sources: Vec<Arc<dyn LogSource>>,
    catalogue: Arc<Catalogue>,
    clock: ToolClock,
}

#[async_trait]
impl Tool for LogTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, cancel: &CancellationToken) -> Outcome {
        outcome(match self.question {
            Question::Now => self.now(arguments),
            Question::Region => self.region(arguments),
            Question::Topic => self.topic(arguments).await,
            Question::TopicsOfService => self.topics_of_service(arguments).await,
            Question::Search => self.search(arguments, cancel).await,
        })
    }
}

impl LogTool {
    fn now(&self, arguments: Value) -> Result<Output, Failure> {
        let NoArguments {} = parse_arguments(arguments)?;
        let now = self.clock.now;
        let local = now.to_zoned_datetime(self.clock.zone.clone());
        Ok(answered(
            "clock".to_owned(),
            json!({
                "timestamp_ms": now.as_millisecond(),
                "timestamp": now.as_second(),
                "utc": now.to_string(),
                "local": local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            }),
        ))
    }

    fn region(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: RegionArguments = parse_arguments(arguments)?;
        let code = self.catalogue.region(&arguments.name).map_err(bad_arguments)?;
        let names = self.catalogue.regions.get(&code).cloned().unwrap_or_default();
        let note = names.is_empty().then_some("no region is configured: everything lies in this one");
        Ok(answered("catalogue".to_owned(), json!({"region": code, "names": names, "note": note})))
    }

    async fn topic(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: TopicArguments = parse_arguments(arguments)?;
        let (topics, _) = self.topics(arguments.region.as_deref()).await?;
        let wanted = arguments.topic_name.trim().to_lowercase();
        match topics.iter().find(|topic| topic.topic_name.to_lowercase() == wanted) {
            Some(topic) => Ok(answered("catalogue".to_owned(), json!(topic))),
            None => {
                let near = nearest(&wanted, topics.iter().map(|topic| topic.topic_name.as_str()));
                let hint = near.map(|near| format!(": did you mean `{}`?", clean_line(near, 100)));
                let shown = clean_line(&arguments.topic_name, 100);
                Err(bad_arguments(format!("there is no topic `{shown}`{}", hint.unwrap_or_default())))
            }
        }
    }

    async fn topics_of_service(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: ServiceArguments = parse_arguments(arguments)?;
        let wanted = arguments.service_name.unwrap_or_default().trim().to_lowercase();
        let (topics, notes) = self.topics(arguments.region.as_deref()).await?;
        let mut found: Vec<Told> = topics
            .into_iter()
            .filter(|topic| topic.services.iter().any(|service| service.to_lowercase().contains(&wanted)))
            .collect();
        // The service itself before those that only hold its name.
        found.sort_by_key(|topic| !topic.services.iter().any(|service| service.to_lowercase() == wanted));
        let total = found.len();
        found.truncate(MAX_TOPICS);
        Ok(answered("catalogue".to_owned(), json!({"total": total, "topics": found, "notes": notes})))
    }

    /// The topics of a region, or all; a source that cannot say what it has is a note.
    async fn topics(&self, region: Option<&str>) -> Result<(Vec<Told>, Vec<String>), Failure> {
        let region = region.map(|name| self.catalogue.region(name)).transpose().map_err(bad_arguments)?;
        let answers = futures::future::join_all(self.sources.iter().map(|source| source.services())).await;
        let mut roll = Roll::default();
        let mut services: Vec<String> = Vec::new();
        for (source, answer) in self.sources.iter().zip(answers) {
            services.extend(roll.take(source.name(), answer).unwrap_or_default());
        }
        services.sort();
        services.dedup();
        let mut topics = self.catalogue.topics(&services);
        topics.retain(|topic| region.as_ref().is_none_or(|region| topic.region == *region));
        Ok((topics, roll.notes))
    }

    async fn search(&self, arguments: Value, cancel: &CancellationToken) -> Result<Output, Failure> {
        let arguments: SearchArguments = parse_arguments(arguments)?;
        if self.sources.is_empty() {
            return Err(Failure {
                kind: FailureKind::Unavailable,
                ..bad_arguments("no source of logs is configured: add one to [sources] of oncall.toml")
            });
        }
        let window = self.clock.window_of(arguments.start.as_ref(), arguments.end.as_ref())?;
        let limit = arguments.limit.unwrap_or(USUAL_EVENTS);
        if !(1..=MAX_EVENTS).contains(&limit) {
            return Err(bad_arguments(format!("`limit` is {limit}: expected 1 to {MAX_EVENTS}")));
        }
        let level = arguments.level.as_deref().map(read_level).transpose()?;
        let services = self.services_asked(&arguments).await?;
        let mut keywords = arguments.keywords.clone().unwrap_or_default();
        keywords.extend(arguments.query.iter().flat_map(|query| query.split_whitespace()).map(str::to_owned));
        keywords.retain(|word| !word.trim().is_empty());
        let queries: Vec<LogQuery> = services
            .into_iter()
            .map(|service| LogQuery {
                window,
                service,
                instance: arguments.instance.clone(),
                keywords: keywords.clone(),
            })
            .collect();
        let mut held = self.gather(&queries, cancel).await?;
        held.events.retain(|event| level.is_none_or(|level| event.level.is_some_and(|its| its >= level)));
        // Stable: events of one moment stay in the order of their file.
        held.events.sort_by_key(|event| event.at);
        let page = page(held, arguments.offset.unwrap_or_default(), limit);
        let source = page.source.clone();
        let mut value = serde_json::to_value(page).unwrap_or_default();
        value["window"] = json!(window);
        Ok(answered(source, value))
    }

    /// The services to ask for; one `None` asks for all.
    async fn services_asked(&self, arguments: &SearchArguments) -> Result<Vec<Option<String>>, Failure> {
        if let Some(service) = arguments.service.as_ref().filter(|service| !service.trim().is_empty()) {
            return Ok(vec![Some(service.clone())]);
        }
        let Some(id) = &arguments.topic_id else { return Ok(vec![None]) };
        let (topics, _) = self.topics(None).await?;
        match topics.iter().find(|topic| topic.topic_id == *id) {
            Some(topic) if topic.services.is_empty() => Ok(vec![None]),
            Some(topic) => Ok(topic.services.iter().cloned().map(Some).collect()),
            None => {
                let near = nearest(id, topics.iter().map(|topic| topic.topic_id.as_str()));
                let hint = near.map(|near| format!(": did you mean `{}`?", clean_line(near, 100)));
                Err(bad_arguments(format!("there is no topic `{}`{}", clean_line(id, 100), hint.unwrap_or_default())))
            }
        }
    }

    async fn gather(&self, queries: &[LogQuery], cancel: &CancellationToken) -> Result<Held, Failure> {
        let mut held = Held::default();
        let mut roll = Roll::default();
        for source in &self.sources {
            for query in queries {
                let mut stream = source.search(query);
                let mut answer = Ok(());
                while let Some(batch) = stream.next().await {
                    if cancel.is_cancelled() {
                        return Err(Failure { kind: FailureKind::Cancelled, ..bad_arguments("cancelled") });
                    }
                    match batch {
                        Ok(batch) => {
                            held.notes.extend(batch.notes);
                            held.truncated |= batch.truncated;
                            held.events.extend(batch.events);
                        }
                        Err(error) => answer = Err(error),
                    }
                    if held.events.len() > MAX_HELD {
                        held.events.truncate(MAX_HELD);
                        held.truncated = true;
                        held.notes.push(format!("more than {MAX_HELD} events match: ask for a shorter time"));
                        break;
                    }
                }
                let failed_midway = answer.is_err() && !held.events.is_empty();
                if let (true, Err(error)) = (failed_midway, &answer) {
                    held.notes.push(format!("{}: {error}", source.name()));
                    held.truncated = true;
                    answer = Ok(());
                }
                roll.take(source.name(), answer);
            }
        }
        let roll = roll.checked()?;
        let mut names = roll.names;
        names.dedup();
        held.source = names.join(", ");
        held.notes.extend(roll.notes);
        held.notes.sort();
        held.notes.dedup();
        Ok(held)
    }
}

/// What matches, before it is cut into parts.
#[derive(Default)]
struct Held {
    source: String,
    events: Vec<LogEvent>,
    notes: Vec<String>,
    truncated: bool,
}

fn page(held: Held, offset: usize, limit: usize) -> LogPage {
    let total = held.events.len();
    let mut bytes = 0;
    let events: Vec<LogEvent> = held
        .events
        .into_iter()
        .skip(offset)
        .take(limit)
        .map(|event| LogEvent { message: clean(&event.message, MAX_MESSAGE_CHARS), ..event })
        .take_while(|event| {
            bytes += event.message.len();
            bytes <= MAX_BYTES
        })
        .collect();
    let end = offset.saturating_add(events.len());
    LogPage {
        source: held.source,
        next_offset: (end < total && !events.is_empty()).then_some(end),
        events,
        total,
        notes: held.notes,
        truncated: held.truncated,
    }
}

fn read_level(text: &str) -> Result<Level, Failure> {
    let lower = text.trim().to_lowercase();
    let known = match lower.as_str() {
        "warning" => "warn",
        "critical" | "panic" => "fatal",
        "err" => "error",
        other => other,
    };
    serde_json::from_value(json!(known)).map_err(|_| {
        bad_arguments(format!("`level` is `{}`: expected debug, info, warn, error or fatal", clean_line(text, 40)))
    })
}
