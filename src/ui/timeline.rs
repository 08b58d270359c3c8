//! The timeline of a session in the terminal: what ran when as bars on one time axis, indented by what ran inside what,
//! failures marked.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use unicode_width::UnicodeWidthStr;

use crate::domain::text::{clean_line, counted};
use crate::domain::{AgentStep, Lang, SessionRecord, SessionStatus, ToolInvocation};
use crate::trace::{Span, SpanKind, spans};
use crate::ui::columns::pad;

/// Columns of the names, at most.
const MAX_NAME: usize = 44;
/// Columns of the axis, at least and at most.
const AXIS: (usize, usize) = (16, 80);
/// Columns of the duration, with a space on both sides.
const DURATION: usize = 11;
const DETAIL_CHARS: usize = 400;

/// The whole timeline; ends with a line feed.
pub fn timeline(record: &SessionRecord, lang: Lang, zone: &TimeZone, columns: usize) -> String {
    let spans = spans(record);
    let mut text = head(record, lang, zone);
    let names: Vec<String> = spans.iter().map(|span| name(span, lang)).collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let axis = columns.saturating_sub(widest.min(MAX_NAME) + DURATION + 2).clamp(AXIS.0, AXIS.1);
    let name_columns = widest.min(MAX_NAME).min(columns.saturating_sub(axis + DURATION + 2).max(12));
    let whole = spans.first().map_or(1, |run| run.microseconds.max(1));
    let blank = " ".repeat(name_columns + DURATION);
    let end = duration(whole);
    let _ = writeln!(text, "\n{blank}0{end:>width$}", width = axis + 1);
    for (span, name) in spans.iter().zip(&names) {
        let start = micros_since(&spans[0], span);
        let bar = bar(span, start, whole, axis);
        let spent =
            if span.end == crate::trace::span::SpanEnd::Open { "...".into() } else { duration(span.microseconds) };
        let _ = write!(text, "{}{spent:>width$} |{bar}|", pad(name, name_columns), width = DURATION - 2);
        let _ = writeln!(text, "{}", remark(span, lang));
    }
    text
}

/// One node (or tool) in full: its runs, what they decided and why, and every call with what came of it.
pub fn node(record: &SessionRecord, wanted: &str, lang: Lang, zone: &TimeZone) -> Option<String> {
    let steps: Vec<&AgentStep> = record.steps.iter().filter(|step| step.node == wanted).collect();
    if steps.is_empty() {
        return None;
    }
    let mut text = String::new();
    for step in steps {
        describe_step(&mut text, record, step, lang, zone, 0);
    }
    Some(text)
}

fn describe_step(
    text: &mut String,
    record: &SessionRecord,
    step: &AgentStep,
    lang: Lang,
    zone: &TimeZone,
    depth: usize,
) {
    let indent = "  ".repeat(depth);
    let number = step.plan_step.map_or_else(String::new, |n| format!(" {n}"));
    let spent = step.milliseconds.map_or_else(|| "...".to_owned(), |spent| duration(spent * 1000));
    let at = step.started_at.to_zoned_datetime(zone.clone()).strftime("%H:%M:%S%.3f");
    let _ = writeln!(text, "{indent}{}{number}  {at}  {spent}", step.node);
    let mut line = |label: &str, value: &Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "{indent}  {label}: {}", clean_line(value, DETAIL_CHARS));
        }
    };
    line(lang.pick("why", "原因"), &step.reason);
    line(lang.pick("decided", "结论"), &step.decision);
    line(lang.pick("added", "新增"), &step.state_change);
    if step.input_tokens + step.output_tokens > 0 {
        let (input, output) = (step.input_tokens, step.output_tokens);
        let label = lang.pick("tokens", "令牌");
        let _ = writeln!(text, "{indent}  {label}: {input} + {output}");
    }
    for call in record.tool_invocations.iter().filter(|call| call.step == Some(step.order)) {
        describe_call(text, call, lang, depth + 1);
    }
    for inner in record.steps.iter().filter(|inner| inner.parent == Some(step.order)) {
        describe_step(text, record, inner, lang, zone, depth + 1);
    }
}

fn describe_call(text: &mut String, call: &ToolInvocation, lang: Lang, depth: usize) {
    let indent = "  ".repeat(depth);
    let spent = call.milliseconds.map_or_else(|| "...".to_owned(), |spent| duration(spent * 1000));
    let arguments = clean_line(&call.arguments.to_string(), DETAIL_CHARS);
    let _ = writeln!(text, "{indent}{} {arguments}", call.tool);
    let mut facts = vec![call.status.id().to_owned(), spent];
    if call.attempts > 1 {
        facts.push(lang.pick(format!("{} attempts", call.attempts), format!("尝试 {} 次", call.attempts)));
    }
    facts.extend(call.served_by.clone());
    facts.extend(call.findings.map(|n| lang.pick(format!("{n} findings"), format!("{n} 条结果"))));
    facts.extend(call.output_bytes.map(|n| lang.pick(format!("{n} bytes"), format!("{n} 字节"))));
    if let Some(quality) = &call.retrieval {
        let verdict = serde_json::to_value(quality.verdict).ok().and_then(|v| v.as_str().map(str::to_owned));
        facts.push(format!("L0 {} -> L1 {} ({})", quality.candidates, quality.kept, verdict.unwrap_or_default()));
    }
    let _ = writeln!(text, "{indent}  {}", facts.join(", "));
    for detail in [&call.error, &call.output_preview].into_iter().flatten() {
        let _ = writeln!(text, "{indent}  {}", clean_line(detail, DETAIL_CHARS));
    }
}

/// Two lines: what the session was, and how it ended.
fn head(record: &SessionRecord, lang: Lang, zone: &TimeZone) -> String {
    let session = &record.session;
    let at = session.started_at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z");
    let service = session.service.as_ref().map_or_else(String::new, |service| format!(" ({service})"));
    let mut text = format!("{}{service}\n", clean_line(&session.title, DETAIL_CHARS));
    let mut facts = vec![session.id.clone(), at.to_string(), status(session.status, lang).to_owned()];
    if let Some(end) = session.ended_at {
        let spent = u64::try_from(end.duration_since(session.started_at).as_micros()).unwrap_or(0);
        facts.push(duration(spent));
    }
    facts.extend(session.reasoner.clone());
    facts.extend(session.model.clone());
    let usage = session.usage;
    facts.push(lang.pick(
        format!("{} + {} tokens", usage.input_tokens, usage.output_tokens),
        format!("令牌 {} + {}", usage.input_tokens, usage.output_tokens),
    ));
    let calls = record.tool_invocations.len();
    let failed = record.tool_invocations.iter().filter(|call| call.error.is_some()).count();
    facts.push(
        lang.pick(format!("{}, {failed} failed", counted(calls, "call")), format!("调用 {calls} 次，失败 {failed} 次")),
    );
    let _ = writeln!(text, "{}", facts.join("  "));
    text
}

/// A status in words.
pub fn status(status: SessionStatus, lang: Lang) -> &'static str {
    match status {
        SessionStatus::Running => lang.pick("running", "进行中"),
        SessionStatus::Complete => lang.pick("complete", "完成"),
        SessionStatus::Incomplete => lang.pick("incomplete", "未完成"),
        SessionStatus::Cancelled => lang.pick("cancelled", "已取消"),
        SessionStatus::Failed => lang.pick("failed", "失败"),
        SessionStatus::Interrupted => lang.pick("interrupted", "已中断"),
    }
}

fn name(span: &Span<'_>, lang: Lang) -> String {
    let indent = "  ".repeat(span.depth);
    match span.kind {
        SpanKind::Run => lang.pick("session", "会话").to_owned(),
        SpanKind::Node(step) => format!("{indent}{}", step.node),
        SpanKind::PlanStep(step) => format!("{indent}{} {}", step.node, step.plan_step.unwrap_or(0)),
        SpanKind::Call(call) => format!("{indent}{} {}", call.tool, subject(call)),
    }
}

/// The argument that tells one call from the other.
fn subject(call: &ToolInvocation) -> String {
    let told = ["query", "expr", "metric", "service", "name", "namespace"];
    let value = told.iter().find_map(|key| call.arguments.get(key)?.as_str());
    clean_line(value.unwrap_or_default(), MAX_NAME)
}

fn remark(span: &Span<'_>, lang: Lang) -> String {
    let mut remarks = Vec::new();
    if span.input_tokens + span.output_tokens > 0 && span.kind != SpanKind::Run {
        let (input, output) = (span.input_tokens, span.output_tokens);
        remarks.push(lang.pick(format!("{input} + {output} tokens"), format!("令牌 {input} + {output}")));
    }
    if let SpanKind::Call(call) = span.kind {
        if call.attempts > 1 {
            remarks.push(lang.pick(format!("{} attempts", call.attempts), format!("尝试 {} 次", call.attempts)));
        }
        if call.status == crate::domain::InvocationStatus::Stale {
            remarks.extend(call.served_by.clone());
        }
        if let Some(error) = &call.error {
            let failed = lang.pick("FAILED", "失败");
            remarks.push(format!("{failed} {}", clean_line(error, 80)));
        }
    }
    if remarks.is_empty() { String::new() } else { format!(" {}", remarks.join("; ")) }
}

fn micros_since(run: &Span<'_>, span: &Span<'_>) -> u64 {
    u64::try_from(span.start.duration_since(run.start).as_micros()).unwrap_or(0)
}

/// `#` nodes, `=` calls, `-` steps, `x` what failed, `~` what never ended.
fn bar(span: &Span<'_>, start: u64, whole: u64, axis: usize) -> String {
    use crate::trace::span::SpanEnd;
    let place = |micros: u64| {
        // Both are at most a few weeks in microseconds; the product stays far below 2^128.
        usize::try_from(u128::from(micros) * axis as u128 / u128::from(whole)).unwrap_or(axis)
    };
    let from = place(start).min(axis - 1);
    let to = place(start.saturating_add(span.microseconds)).clamp(from + 1, axis);
    let mark = match (span.end, span.kind) {
        (SpanEnd::Failed, _) => "x",
        (SpanEnd::Open, _) => "~",
        (_, SpanKind::Call(_)) => "=",
        (_, SpanKind::PlanStep(_)) => "-",
        (_, SpanKind::Run | SpanKind::Node(_)) => "#",
    };
    format!("{}{}{}", " ".repeat(from), mark.repeat(to - from), " ".repeat(axis - to))
}

/// `7 ms`, `1.25 s`, `2 m 05 s`.
pub fn duration(microseconds: u64) -> String {
    let milliseconds = microseconds / 1000;
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{}.{:02} s", milliseconds / 1000, milliseconds % 1000 / 10),
        _ => format!("{} m {:02} s", milliseconds / 60_000, milliseconds % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_at_a_glance() {
        let shown = [7_900, 1_259_000, 125_000_000].map(duration);
        assert_eq!(shown, ["7 ms", "1.25 s", "2 m 05 s"]);
    }
}
