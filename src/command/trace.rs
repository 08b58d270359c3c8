//! `oncall trace`: the timeline of a session, in the terminal, as a file for other viewers, or sent to a receiver.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::screen::{self, ThemeArgs};
use super::session::{lang_of, read, write_out};
use super::{Context, Exit, Unreachable, bad_input, recording};
use crate::domain::SessionRecord;
use crate::trace::span::SpanEnd;
use crate::trace::{SpanKind, chrome, otlp, spans};
use crate::ui::{html, timeline};

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// An id, the beginning of one, or `last`
    id: String,
    /// Show the runs of this node in full: why, what they decided, and every call
    #[arg(long, value_name = "NAME", conflicts_with_all = ["html", "chrome", "otlp"])]
    node: Option<String>,
    /// One HTML file that needs nothing else
    #[arg(long, conflicts_with_all = ["chrome", "otlp"])]
    html: bool,
    /// The trace-event format, which Perfetto and chrome://tracing open
    #[arg(long, conflicts_with = "otlp")]
    chrome: bool,
    /// Send it to an OTLP receiver (http/protobuf), such as http://localhost:4318
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Show it on the full screen of the terminal
    #[arg(long, conflicts_with_all = ["node", "html", "chrome", "otlp", "output"])]
    tui: bool,
    /// With --tui: play it back at so many times the speed at which it happened
    #[arg(long, value_name = "TIMES", requires = "tui", value_parser = parse_speed)]
    speed: Option<f64>,
    #[command(flatten)]
    theme: ThemeArgs,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| (0.1..=1000.0).contains(speed));
    speed.ok_or_else(|| "expected a number from 0.1 to 1000, such as 4".to_owned())
}

pub async fn run(args: TraceArgs, context: &Context) -> anyhow::Result<Exit> {
    let record = read(&args.id, context).await?;
    let lang = lang_of(&record, context);
    let zone = TimeZone::system();
    if args.tui {
        screen::need_terminal("--tui", "leave it out")?;
        let theme = screen::theme(&args.theme, context);
        return screen::play(&record, args.speed, lang, theme, context).await;
    }
    if let Some(url) = &args.otlp {
        let url = otlp::traces_url(url);
        let sent = recording::export(&record, &url, &context.config.otlp, &BTreeSet::new()).await;
        sent.map_err(|error| Unreachable(format!("the trace was not sent: {error}")))?;
        let n = spans(&record).len();
        context.note(&lang.pick(format!("sent {n} spans to {url}"), format!("已向 {url} 发送 {n} 个跨度")));
        return Ok(Exit::Success);
    }
    let text = if args.html {
        html::page(&record, lang, &zone)
    } else if args.chrome {
        format!("{}\n", chrome::document(&record))
    } else if let Some(node) = &args.node {
        timeline::node(&record, node, lang, &zone).ok_or_else(|| no_such_node(node, &record))?
    } else if context.is_json() {
        format!("{:#}\n", document(&record))
    } else {
        timeline::timeline(&record, lang, &zone, context.columns())
    };
    write_out(&text, args.output.as_deref(), context)?;
    Ok(Exit::Success)
}

fn no_such_node(node: &str, record: &SessionRecord) -> anyhow::Error {
    let mut nodes: Vec<&str> = record.steps.iter().map(|step| step.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    bad_input(format!("--node {node}: this session has no such node; it has: {}", nodes.join(", ")))
}

/// `oncall.trace/v1`: the spans in the order of the timeline, times in microseconds from the start of the session.
fn document(record: &SessionRecord) -> Value {
    let spans = spans(record);
    let start = record.session.started_at;
    let rows: Vec<Value> = spans
        .iter()
        .map(|span| {
            let kind = match span.kind {
                SpanKind::Run => "run",
                SpanKind::Node(_) => "node",
                SpanKind::PlanStep(_) => "step",
                SpanKind::Call(_) => "call",
            };
            let status = match span.end {
                SpanEnd::Ok => "ok",
                SpanEnd::Failed => "failed",
                SpanEnd::Open => "open",
            };
            json!({
                "id": span.id, "parent": span.parent, "kind": kind, "name": span.name, "status": status,
                "start": span.start.duration_since(start).as_micros() as i64, "duration": span.microseconds,
                "input_tokens": span.input_tokens, "output_tokens": span.output_tokens,
            })
        })
        .collect();
    json!({ "schema": "oncall.trace/v1", "session": record.session, "spans": rows })
}
