//! `oncall session`: stored sessions; listed, shown, exported, compared, judged, forgotten.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ZonedDateTime};
use serde_json::json;

use super::ask::{self, AskArgs};
use super::models::BudgetArgs;
use super::{BadInput, Context, Exit, Style, Unreachable, bad_input, recording};
use crate::domain::{Lang, SessionKind, SessionRecord, SessionStatus};
use crate::session::{Filter, SessionStore, SqlStore, StoreError};
use crate::ui;

mod diff;
mod export;
mod feedback;
mod postmortem;
pub(super) mod view;

pub(super) use export::{markdown as export_markdown, write_out};

/// Sessions that a listing shows unless it is told otherwise.
const LISTED: usize = 20;
/// Ids that are compared with one that does not exist.
const COMPARED_IDS: usize = 500;

#[derive(Debug, Args)]
pub struct SessionArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List sessions, the newest first
    List(ListArgs),
    /// Show a session: timeline, answer, feedback
    Show {
        /// An id, the beginning of one, or `last`
        id: String,
        /// Draft a post-mortem instead, its timeline filled from the evidence
        #[arg(long)]
        postmortem: bool,
    },
    /// Write a session as JSON, Markdown, or one HTML file
    Export {
        /// An id, the beginning of one, or `last`
        id: String,
        #[arg(long, value_enum, default_value_t = Format::Json)]
        format: Format,
        /// Write to this file instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Compare two sessions: what was asked, found and concluded
    Diff {
        /// An id, the beginning of one, or `last`
        a: String,
        b: String,
    },
    /// Ask on in a stored session: what was asked, found and answered in it is known
    Resume {
        /// An id, the beginning of one, or `last`
        id: String,
        /// The question; without it, or as "-", it is read from standard input
        question: Option<String>,
        #[command(flatten)]
        budget: BudgetArgs,
    },
    /// Say whether a diagnosis was right
    Feedback(feedback::FeedbackArgs),
    /// Forget old sessions
    Prune {
        /// Forget what started longer ago than this, such as 30d or 12h
        #[arg(long, value_name = "AGE")]
        older_than: String,
    },
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Started at or after: an age such as 8h or 7d, or a time such as 2026-03-04T14:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Started before
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[arg(long)]
    service: Option<String>,
    /// running, complete, incomplete, cancelled, failed or interrupted
    #[arg(long)]
    status: Option<String>,
    /// The name or the fingerprint of the alert
    #[arg(long)]
    alert: Option<String>,
    /// diagnosis or question
    #[arg(long)]
    kind: Option<String>,
    /// At most so many
    #[arg(short = 'n', long, default_value_t = LISTED, value_name = "N")]
    limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Md,
    Html,
}

pub async fn run(args: SessionArgs, context: &Context) -> anyhow::Result<Exit> {
    match args.action {
        Action::List(args) => list(args, context).await,
        Action::Show { id, postmortem } => {
            let record = read(&id, context).await?;
            let (lang, zone) = (lang_of(&record, context), TimeZone::system());
            let text = if postmortem {
                postmortem::draft(&record, lang, &zone).ok_or_else(|| no_diagnosis(&record))?
            } else if context.is_json() {
                export::json(&record)?
            } else {
                view::show(&record, lang, &zone, context.columns())
            };
            context.print(&text)?;
            Ok(Exit::Success)
        }
        Action::Export { id, format, output } => {
            let record = read(&id, context).await?;
            let (lang, zone) = (lang_of(&record, context), TimeZone::system());
            let text = match format {
                Format::Json => export::json(&record)?,
                Format::Md => export::markdown(&record, lang, &zone),
                Format::Html => ui::html::page(&record, lang, &zone),
            };
            write_out(&text, output.as_deref(), context)?;
            Ok(Exit::Success)
        }
        Action::Diff { a, b } => {
            let (a, b) = (read(&a, context).await?, read(&b, context).await?);
            let compared = diff::compare(&a, &b);
            let text = match context.is_json() {
                true => format!("{:#}\n", diff::json(&a, &b, &compared)),
                false => diff::text(&a, &b, &compared, lang_of(&b, context)),
            };
            context.print(&text)?;
            Ok(Exit::Success)
        }
        Action::Resume { id, question, budget } => {
            let question = question.unwrap_or_else(|| "-".to_owned());
            if question == "-" && io::stdin().is_terminal() {
                context.note(
                    context.lang.unwrap_or_default().pick("The question, then Ctrl-D:", "请输入问题，以 Ctrl-D 结束："),
                );
            }
            ask::run(AskArgs::follow_up(id, question, budget), context).await
        }
        Action::Feedback(args) => feedback::run(args, context).await,
        Action::Prune { older_than } => prune(&older_than, context).await,
    }
}

async fn list(args: ListArgs, context: &Context) -> anyhow::Result<Exit> {
    let now = ZonedDateTime::now();
    let filter = Filter {
        since: args.since.map(|text| instant(&text, "--since", &now)).transpose()?,
        until: args.until.map(|text| instant(&text, "--until", &now)).transpose()?,
        service: args.service,
        status: args.status.map(|text| known("--status", &text, SessionStatus::of_id, &STATUS_IDS)).transpose()?,
        kind: args.kind.map(|text| known("--kind", &text, SessionKind::of_id, &KIND_IDS)).transpose()?,
        alert: args.alert,
        judged: false,
        limit: Some(args.limit),
    };
    let sessions = match open_existing(context).await? {
        Some(store) => store.list(&filter).await.map_err(trouble)?,
        None => Vec::new(),
    };
    let lang = context.lang.unwrap_or_default();
    if context.is_json() {
        context.print(&format!("{:#}\n", json!({ "schema": "oncall.sessions/v1", "sessions": sessions })))?;
    } else if sessions.is_empty() {
        context.note(
            lang.pick(
                "no session fits: `oncall diagnose` makes one",
                "没有符合条件的会话：`oncall diagnose` 会产生会话",
            ),
        );
    } else {
        // A pipe gets whole cells, whatever their width.
        let columns = (context.stdout == Style::Colored).then(|| context.columns());
        context.print(&view::table(&sessions, lang, &TimeZone::system(), columns))?;
    }
    Ok(Exit::Success)
}

const STATUS_IDS: [&str; 6] = ["running", "complete", "incomplete", "cancelled", "failed", "interrupted"];
const KIND_IDS: [&str; 2] = ["diagnosis", "question"];

fn known<T>(flag: &str, text: &str, of_id: impl Fn(&str) -> Option<T>, ids: &[&'static str]) -> anyhow::Result<T> {
    of_id(text).ok_or_else(|| {
        let hint = crate::domain::text::nearest(text, ids.iter().copied());
        let hint =
            hint.map_or_else(|| format!("expected one of: {}", ids.join(", ")), |id| format!("did you mean {id}?"));
        BadInput(format!("{flag} {text}: {hint}")).into()
    })
}

async fn prune(older_than: &str, context: &Context) -> anyhow::Result<Exit> {
    let before = instant(older_than, "--older-than", &ZonedDateTime::now())?;
    let pruned = match open_existing(context).await? {
        Some(store) => {
            let pruned = store.prune(before).await.map_err(trouble)?;
            store.close().await;
            pruned
        }
        None => 0,
    };
    let lang = context.lang.unwrap_or_default();
    if context.is_json() {
        context.print(&format!("{}\n", json!({ "pruned": pruned, "before": before })))?;
    } else {
        let plural = if pruned == 1 { "" } else { "s" };
        context.print(&lang.pick(format!("forgot {pruned} session{plural}\n"), format!("已清除 {pruned} 个会话\n")))?;
    }
    Ok(Exit::Success)
}

/// `--lang`, else the language of the session.
pub(super) fn lang_of(record: &SessionRecord, context: &Context) -> Lang {
    context.lang.unwrap_or(record.session.lang)
}

/// A session by its id, a unique beginning of one, or `last`.
///
/// # Errors
/// No or several sessions of this id: exit 2. A store that cannot be read: exit 4.
pub(super) async fn read(id: &str, context: &Context) -> anyhow::Result<SessionRecord> {
    let store = open_existing(context).await?.ok_or_else(|| no_such(id, None))?;
    let id = resolve(&store, id).await?;
    let record = store.read(&id).await.map_err(trouble)?;
    store.close().await;
    record.ok_or_else(|| no_such(&id, None))
}

/// The store; `None` when nothing was ever stored.
pub(super) async fn open_existing(context: &Context) -> anyhow::Result<Option<SqlStore>> {
    let location = recording::location(context)?;
    if !location.exists() {
        return Ok(None);
    }
    SqlStore::open_for_reading(&location).await.map(Some).map_err(trouble)
}

async fn resolve(store: &SqlStore, text: &str) -> anyhow::Result<String> {
    let newest = |limit: usize| Filter { limit: Some(limit), ..Filter::default() };
    if text == "last" {
        let last = store.list(&newest(1)).await.map_err(trouble)?;
        return last.into_iter().next().map(|session| session.id).ok_or_else(|| no_such(text, None));
    }
    let found = if text.is_empty() { Vec::new() } else { store.ids(text, 3).await.map_err(trouble)? };
    match found.as_slice() {
        [id] => Ok(id.clone()),
        [] => {
            let recent = store.list(&newest(COMPARED_IDS)).await.map_err(trouble)?;
            Err(no_such(text, nearest_id(text, recent.iter().map(|session| session.id.as_str()))))
        }
        [exact, ..] if exact == text => Ok(exact.clone()),
        [first, second, ..] => {
            Err(bad_input(format!("several sessions begin with `{text}`: {first}, {second}, ...: give more of the id")))
        }
    }
}

/// The id that has most of its beginning in common with a text, and of those the most similar one.
fn nearest_id<'a>(text: &str, ids: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |id: &str| {
        let beginning: String = id.chars().take(text.chars().count().max(8)).collect();
        strsim::jaro_winkler(text, &beginning)
    };
    ids.map(|id| (likeness(id), id)).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, id)| id)
}

fn no_such(text: &str, nearest: Option<&str>) -> anyhow::Error {
    let hint = nearest.map_or_else(
        || "nothing is stored yet".to_owned(),
        |id| format!("did you mean {id}? `oncall session list` shows all"),
    );
    bad_input(format!("no session begins with `{text}`: {hint}"))
}

fn no_diagnosis(record: &SessionRecord) -> anyhow::Error {
    let id = &record.session.id;
    bad_input(format!("session {id} came to no diagnosis, so there is nothing to draft a post-mortem from"))
}

/// A store that cannot be read leaves nothing to show.
pub(super) fn trouble(error: StoreError) -> anyhow::Error {
    Unreachable(error.to_string()).into()
}

/// An age (`30d`, `8h`) before now, or a time.
pub(super) fn instant(text: &str, flag: &str, now: &ZonedDateTime) -> anyhow::Result<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    if let Ok(civil) = text.parse::<jiff::civil::DateTime>()
        && let Ok(at) = civil.to_zoned_datetime(now.time_zone().clone())
    {
        return Ok(at.timestamp());
    }
    let age = text.parse::<Span>().ok().filter(|span| !span.is_negative() && !span.is_zero());
    let at = age.and_then(|age| now.checked_sub(age).ok()).map(|at| at.timestamp());
    at.ok_or_else(|| {
        let expected = "expected an age such as 30d or 8h, or a time such as 2026-03-04T14:00:00Z";
        BadInput(format!("{flag} {text}: {expected}")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_times_are_instants_and_anything_else_is_refused() {
        let now: ZonedDateTime = "2026-03-04T12:00:00+08:00[Asia/Shanghai]".parse().unwrap();
        let of = |text: &str| instant(text, "--since", &now).map(|at| at.to_string()).map_err(|e| e.to_string());
        assert_eq!(of("8h"), Ok("2026-03-03T20:00:00Z".into()));
        assert_eq!(of("30d"), Ok("2026-02-02T04:00:00Z".into()));
        assert_eq!(of("2026-03-01T00:00:00Z"), Ok("2026-03-01T00:00:00Z".into()));
        assert_eq!(of("2026-03-01"), Ok("2026-02-28T16:00:00Z".into()));
        let expected = "expected an age such as 30d or 8h, or a time such as 2026-03-04T14:00:00Z";
        for wrong in ["soon", "-8h", "0d", ""] {
            assert_eq!(of(wrong), Err(format!("--since {wrong}: {expected}")));
        }
    }

    #[test]
    fn the_nearest_id_begins_alike() {
        let ids = ["0198aaaa-1111-7000-8000-000000000000", "0198bbbb-2222-7000-8000-000000000000"];
        assert_eq!(nearest_id("0198bbbc", ids.into_iter()), Some(ids[1]));
        assert_eq!(nearest_id("x", std::iter::empty()), None);
    }
}
