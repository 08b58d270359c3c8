//! `search_logs`: what a service or an instance logged in a time, as patterns, never as a flood of lines.
//!
//! In: a service or an instance, a time, keywords, a level. Out: how much was logged, then the most telling patterns;
//! or, asked for one pattern, some of its events.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::arguments::{TimeArgument, ToolClock, bad_arguments, input_schema, outcome, parse_arguments};
use crate::domain::text::{clean, clean_line};
use crate::domain::{Failure, Finding, Level, LogEvent, LogPattern, Outcome, Output, Served, ToolSpec};
use crate::source::{LogQuery, LogSource};

mod gather;
mod rank;
mod template;
#[cfg(test)]
mod tests;

use gather::{Gathered, Question};
use template::Template;

pub const NAME: &str = "search_logs";

/// Patterns in one answer.
const MAX_PATTERNS: usize = 15;
/// Characters of a template and of a sample (a stack trace is worth some lines).
const MAX_TEMPLATE_CHARS: usize = 500;
const MAX_SAMPLE_CHARS: usize = 1500;
const MAX_NAME_CHARS: usize = 200;
const MAX_KEYWORDS: usize = 10;
/// Services that are named when the one asked for has no logs.
const MAX_SERVICES_NAMED: usize = 20;

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// Name of the service whose logs are wanted. It or `instance` is required.
    service: Option<String>,
    /// Pod, host or instance whose logs are wanted.
    instance: Option<String>,
    /// Start of the time to look at: RFC 3339, Unix seconds, or relative to now such as -30m. Default: the time around
    /// the alert.
    start: Option<TimeArgument>,
    /// End of that time, in the same forms.
    end: Option<TimeArgument>,
    /// Only events whose message holds every one of these words, ignoring case.
    keywords: Option<Vec<String>>,
    /// Only events of this level or worse: debug, info, warn, error, fatal.
    level: Option<String>,
    /// Shows up to 20 events of one pattern: its id (such as P3) or template from an earlier answer to the same
    /// question.
    pattern: Option<String>,
}

/// The tool.
pub struct SearchLogs {
    spec: ToolSpec,
    sources: Vec<Arc<dyn LogSource>>,
    clock: ToolClock,
}

impl SearchLogs {
    pub fn new(sources: Vec<Arc<dyn LogSource>>, clock: ToolClock) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: "What a service or instance logged in a time: the number of events by level, and at most 15 \
                          patterns with count, count in the equally long time before, first and last time and a \
                          sample; errors, bursts and rare ones first. With `pattern`: some events of that pattern."
                .to_owned(),
            input_schema: input_schema::<Arguments>(),
            server: "builtin".to_owned(),
            read_only: true,
        };
        Self { spec, sources, clock }
    }

    async fn answer(&self, arguments: Value, cancel: &CancellationToken) -> Result<Output, Failure> {
        let arguments: Arguments = parse_arguments(arguments)?;
        let question = question(&arguments, &self.clock)?;
        match arguments.pattern.as_deref().map(str::trim).filter(|pattern| !pattern.is_empty()) {
            None => self.patterns(question, cancel).await,
            Some(pattern) => self.events(question, pattern, cancel).await,
        }
    }
}

#[async_trait]
impl Tool for SearchLogs {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, cancel: &CancellationToken) -> Outcome {
        outcome(self.answer(arguments, cancel).await)
    }
}

impl SearchLogs {
    /// Asks for the service as it is written; when that has no logs, for the one service whose name differs only in
    /// case, separators or namespace.
    async fn gather(&self, question: Question, cancel: &CancellationToken) -> Result<Gathered, Failure> {
        let mut gathered = gather::gather(&self.sources, question, cancel).await?;
        let Some(service) = gathered.question.query.service.clone().filter(|_| gathered.volume.events == 0) else {
            return Ok(gathered);
        };
        let services = self.services().await;
        let alike: Vec<_> = services.iter().filter(|known| is_alike(known, &service)).cloned().collect();
        gathered.services = Some(services);
        let [known] = alike.as_slice() else {
            return Ok(gathered);
        };
        if *known == service {
            return Ok(gathered);
        }
        let mut question = gathered.question;
        question.query.service = Some(known.clone());
        let mut gathered = gather::gather(&self.sources, question, cancel).await?;
        gathered.said.notes.insert(0, format!("there are no logs of `{service}`; these are of `{known}`"));
        Ok(gathered)
    }

    /// The services that have logs; a source that cannot say is left out.
    async fn services(&self) -> Vec<String> {
        let answers = futures::future::join_all(self.sources.iter().map(|source| source.services())).await;
        let mut services: Vec<_> = answers.into_iter().flat_map(Result::unwrap_or_default).collect();
        services.sort();
        services.dedup();
        services
    }

    /// The volume, then the most telling patterns.
    async fn patterns(&self, question: Question, cancel: &CancellationToken) -> Result<Output, Failure> {
        let Gathered { question, said, mut patterns, volume, services } = self.gather(question, cancel).await?;
        let mut output = output(&question, said);
        if volume.events == 0 {
            output.findings.push(Finding::Nothing { what: question.sought() });
            name_services(services.as_deref().unwrap_or_default(), &question, &mut output);
            return Ok(output);
        }
        rank::rank(&mut patterns, volume.events);
        if patterns.len() > MAX_PATTERNS {
            let all = patterns.len();
            output.notes.push(format!("{MAX_PATTERNS} of {all} patterns are shown, the most telling ones"));
        }
        if patterns.is_empty() {
            output.findings.push(Finding::Nothing { what: question.sought() });
        }
        output.findings.push(Finding::LogVolume(volume));
        let telling = patterns.into_iter().take(MAX_PATTERNS);
        output.findings.extend(telling.map(|pattern| Finding::Pattern(cleaned(pattern))));
        Ok(output)
    }

    /// Some events of one pattern, named by its id or template.
    async fn events(&self, question: Question, pattern: &str, cancel: &CancellationToken) -> Result<Output, Failure> {
        let (question, template) = if is_id(pattern) {
            let gathered = self.gather(question, cancel).await?;
            let named = gathered.patterns.iter().find(|known| known.id.eq_ignore_ascii_case(pattern));
            let Some(named) = named else {
                let count = gathered.volume.patterns;
                return Err(bad_arguments(format!(
                    "there is no pattern `{pattern}` among the {count} of this question: ask without `pattern` first"
                )));
            };
            (gathered.question, Template::of(named))
        } else {
            (question, Template::new(pattern))
        };
        let (events, said) = gather::events_of(&self.sources, &question, &template, cancel).await?;
        let mut output = output(&question, said);
        output.findings = events.into_iter().map(event_finding).collect();
        if output.findings.is_empty() {
            let pattern = clean_line(pattern, MAX_TEMPLATE_CHARS);
            output.findings.push(Finding::Nothing { what: format!("{} like: {pattern}", question.sought()) });
        }
        Ok(output)
    }
}

/// Where a service has no logs at all, the ones that have some are named.
fn name_services(services: &[String], question: &Question, output: &mut Output) {
    let Some(service) = &question.query.service else { return };
    if services.is_empty() || services.contains(service) {
        return;
    }
    let names: Vec<_> = services.iter().take(MAX_SERVICES_NAMED).map(|name| clean_line(name, MAX_NAME_CHARS)).collect();
    output.notes.push(format!("services with logs: {}", names.join(", ")));
}

/// `P` and a number.
fn is_id(pattern: &str) -> bool {
    let number = pattern.strip_prefix(['P', 'p']).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

fn output(question: &Question, said: gather::Said) -> Output {
    Output {
        source: said.names.join(", "),
        window: Some(question.query.window),
        findings: Vec::new(),
        notes: said.notes,
        truncated: said.truncated,
        served: Served::Live,
        asked: said.asked,
        retrieval: None,
    }
}

fn event_finding(event: LogEvent) -> Finding {
    let value = json!({
        "log_time": event.at.map(|at| at.to_string()),
        "level": event.level,
        "service": event.service.map(|name| clean_line(&name, MAX_NAME_CHARS)),
        "instance": event.instance.map(|name| clean_line(&name, MAX_NAME_CHARS)),
        "message": clean(&event.message, MAX_SAMPLE_CHARS),
    });
    Finding::Other { value }
}

/// What the arguments ask, checked.
fn question(arguments: &Arguments, clock: &ToolClock) -> Result<Question, Failure> {
    let named =
        |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let (service, instance) = (named(&arguments.service), named(&arguments.instance));
    if service.is_none() && instance.is_none() {
        return Err(bad_arguments("neither `service` nor `instance` is given: name whose logs are wanted"));
    }
    let mut keywords: Vec<String> = arguments.keywords.clone().unwrap_or_default();
    keywords.retain(|word| !word.trim().is_empty());
    if keywords.len() > MAX_KEYWORDS {
        return Err(bad_arguments(format!("{} keywords: at most {MAX_KEYWORDS} are possible", keywords.len())));
    }
    let window = clock.window_of(arguments.start.as_ref(), arguments.end.as_ref())?;
    let level = named(&arguments.level).map(|name| level(&name)).transpose()?;
    Ok(Question { query: LogQuery { window, service, instance, keywords }, level })
}

fn level(name: &str) -> Result<Level, Failure> {
    match name.to_lowercase().as_str() {
        "trace" => Ok(Level::Trace),
        "debug" => Ok(Level::Debug),
        "info" | "notice" => Ok(Level::Info),
        "warn" | "warning" => Ok(Level::Warn),
        "error" | "err" => Ok(Level::Error),
        "fatal" | "critical" | "crit" | "panic" | "emerg" | "alert" => Ok(Level::Fatal),
        _ => Err(bad_arguments(format!("`level` is `{name}`: expected debug, info, warn, error or fatal"))),
    }
}

/// Whether two names are of one service: case, `_` for `-`, and a namespace before a `/` do not count.
fn is_alike(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase().replace(['_', '.'], "-");
    plain(a) == plain(b)
}

fn cleaned(pattern: LogPattern) -> LogPattern {
    LogPattern {
        template: clean_line(&pattern.template, MAX_TEMPLATE_CHARS),
        sample: clean(&pattern.sample, MAX_SAMPLE_CHARS),
        service: pattern.service.map(|name| clean_line(&name, MAX_NAME_CHARS)),
        instances: pattern
            .instances
            .into_iter()
            .map(|(name, count)| (clean_line(&name, MAX_NAME_CHARS), count))
            .collect(),
        ..pattern
    }
}
