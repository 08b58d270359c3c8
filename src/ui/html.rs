//! A session as one HTML page that needs nothing else: answer, evidence, the timeline and the metric plots as SVG.
//! Everything from outside is escaped, and the page allows no scripts.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::timeline;
use crate::domain::text::clean;
use crate::domain::{Diagnosis, Finding, Lang, Role, SeriesSummary, SessionRecord};
use crate::trace::span::SpanEnd;
use crate::trace::{Span, SpanKind, spans};

const TEXT_CHARS: usize = 8000;
const MAX_PLOTS: usize = 12;
/// Sizes of the drawings in pixels.
const TIMELINE_WIDTH: f64 = 1000.0;
const NAME_WIDTH: f64 = 300.0;
const ROW_HEIGHT: f64 = 18.0;
const PLOT: (f64, f64) = (460.0, 90.0);

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;color:#1c2024}\
    h1{font-size:1.4em}h2{font-size:1.1em;border-bottom:1px solid #ddd;margin-top:2em}\
    table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #eee;padding:3px 8px;text-align:left;vertical-align:top}\
    code,pre{font:12px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}\
    .meta{color:#667}.plots{display:flex;flex-wrap:wrap;gap:12px}figure{margin:0}figcaption{font-size:12px;max-width:460px;overflow-wrap:anywhere}\
    svg text{font:12px system-ui,sans-serif}.failed{color:#b3261e}\
    @media(prefers-color-scheme:dark){body{background:#16181c;color:#dde1e6}td,th{border-color:#333}h2{border-color:#444}svg text{fill:#dde1e6}}";

/// The page.
pub fn page(record: &SessionRecord, lang: Lang, zone: &TimeZone) -> String {
    let session = &record.session;
    let diagnosis: Option<Diagnosis> =
        record.diagnosis.clone().and_then(|document| serde_json::from_value(document).ok());
    let mut body = format!("<h1>{}</h1>\n", escaped(&session.title));
    let at = session.started_at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z");
    let mut facts = vec![session.id.clone(), at.to_string(), timeline::status(session.status, lang).to_owned()];
    facts.extend([&session.service, &session.reasoner, &session.model].into_iter().flatten().cloned());
    let _ = writeln!(body, "<p class=\"meta\">{}</p>", escaped(&facts.join(" · ")));
    match &diagnosis {
        Some(diagnosis) => answer(&mut body, diagnosis, lang),
        None => messages(&mut body, record, lang),
    }
    let _ = writeln!(body, "<h2>{}</h2>\n{}", lang.pick("Timeline", "时间线"), drawn_timeline(record));
    if let Some(diagnosis) = &diagnosis {
        plots(&mut body, diagnosis, lang, zone);
        evidence(&mut body, diagnosis, lang);
    }
    calls(&mut body, record, lang);
    let code = lang.pick("en", "zh");
    let title = escaped(&session.title);
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    format!(
        "<!DOCTYPE html>\n<html lang=\"{code}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

fn answer(body: &mut String, diagnosis: &Diagnosis, lang: Lang) {
    let cause = diagnosis.root_cause.as_ref().map_or_else(
        || lang.pick("unknown", "未知").to_owned(),
        |cause| format!("{} ({:.0} %)", cause.title, cause.confidence * 100.0),
    );
    let _ = writeln!(body, "<h2>{}: {}</h2>", lang.pick("Root cause", "根因"), escaped(&cause));
    let _ = writeln!(body, "<p>{}</p>", escaped(&diagnosis.summary));
    if !diagnosis.hypotheses.is_empty() {
        let _ = writeln!(
            body,
            "<table><tr><th>{}</th><th>%</th><th>+</th><th>-</th></tr>",
            lang.pick("Hypothesis", "假设")
        );
        for hypothesis in &diagnosis.hypotheses {
            let _ = writeln!(
                body,
                "<tr><td>{}</td><td>{:.0}</td><td>{}</td><td>{}</td></tr>",
                escaped(&hypothesis.title),
                hypothesis.confidence * 100.0,
                escaped(&hypothesis.evidence_for.join(" ")),
                escaped(&hypothesis.evidence_against.join(" "))
            );
        }
        body.push_str("</table>\n");
    }
    if !diagnosis.next_steps.is_empty() {
        let _ = writeln!(body, "<h2>{}</h2>\n<ol>", lang.pick("Next steps", "后续步骤"));
        for step in &diagnosis.next_steps {
            let command =
                step.command.as_ref().map_or_else(String::new, |c| format!("<br><code>{}</code>", escaped(c)));
            let _ = writeln!(body, "<li>{}{command}</li>", escaped(&step.text));
        }
        body.push_str("</ol>\n");
    }
}

fn messages(body: &mut String, record: &SessionRecord, lang: Lang) {
    for message in record.messages.iter().filter(|message| message.role != Role::Thought) {
        let who = match message.role {
            Role::User => lang.pick("Question", "问题"),
            Role::Warning => lang.pick("Warning", "警告"),
            Role::Assistant | Role::Thought => lang.pick("Answer", "回答"),
        };
        let _ = writeln!(body, "<h2>{who}</h2>\n<pre>{}</pre>", escaped(&message.content));
    }
}

fn evidence(body: &mut String, diagnosis: &Diagnosis, lang: Lang) {
    let _ = writeln!(body, "<h2>{}</h2>\n<table>", lang.pick("Evidence", "证据"));
    for evidence in &diagnosis.evidence {
        let _ = writeln!(
            body,
            "<tr><td>{}</td><td>{}</td><td class=\"meta\">{}</td></tr>",
            escaped(&evidence.id),
            escaped(&evidence.summary),
            escaped(&evidence.source)
        );
    }
    body.push_str("</table>\n");
}

fn calls(body: &mut String, record: &SessionRecord, lang: Lang) {
    if record.tool_invocations.is_empty() {
        return;
    }
    let _ = writeln!(body, "<h2>{}</h2>\n<table>", lang.pick("Tool calls", "工具调用"));
    for call in &record.tool_invocations {
        let took = call.milliseconds.map_or_else(String::new, |spent| timeline::duration(spent * 1000));
        let (class, status) = match &call.error {
            Some(error) => (" class=\"failed\"", error.as_str()),
            None => ("", call.status.id()),
        };
        let _ = writeln!(
            body,
            "<tr><td>{}</td><td><code>{}</code></td><td>{took}</td><td{class}>{}</td></tr>",
            escaped(&call.tool),
            escaped(&call.arguments.to_string()),
            escaped(status)
        );
    }
    body.push_str("</table>\n");
}

/// Names on the left, bars on the right, a line of time above.
fn drawn_timeline(record: &SessionRecord) -> String {
    let spans = spans(record);
    let whole = spans.first().map_or(1, |run| run.microseconds.max(1)) as f64;
    let height = ROW_HEIGHT * (spans.len() as f64 + 1.5);
    let mut svg = format!("<svg viewBox=\"0 0 {TIMELINE_WIDTH} {height}\" width=\"100%\" role=\"img\">\n");
    let axis = TIMELINE_WIDTH - NAME_WIDTH;
    for quarter in 0..=4_u32 {
        let x = NAME_WIDTH + axis * f64::from(quarter) / 4.0;
        let label = timeline::duration((whole * f64::from(quarter) / 4.0) as u64);
        let anchor = if quarter == 4 { "end" } else { "start" };
        let _ = writeln!(svg, "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"14\" y2=\"{height}\" stroke=\"#8884\"/>");
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"11\" text-anchor=\"{anchor}\">{label}</text>");
    }
    for (row, span) in spans.iter().enumerate() {
        let y = ROW_HEIGHT * (row as f64 + 1.2);
        let start = span.start.duration_since(spans[0].start).as_micros().max(0) as f64;
        let x = NAME_WIDTH + axis * (start / whole).min(1.0);
        let width = (axis * span.microseconds as f64 / whole).clamp(2.0, (TIMELINE_WIDTH - x).max(2.0));
        let indent = 12.0 * span.depth as f64;
        let name = escaped(&crate::domain::text::clean_line(span.name, 40));
        let _ = writeln!(svg, "<text x=\"{indent}\" y=\"{:.1}\">{name}</text>", y + 12.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"11\" rx=\"2\" fill=\"{}\"><title>{}</title></rect>",
            y + 2.0,
            colour(span),
            escaped(&title(span))
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn colour(span: &Span<'_>) -> &'static str {
    match (span.end, span.kind) {
        (SpanEnd::Failed, _) => "#b3261e",
        (SpanEnd::Open, _) => "#9aa0a6",
        (_, SpanKind::Run) => "#5f6b7a",
        (_, SpanKind::Node(_)) => "#3b6fb6",
        (_, SpanKind::PlanStep(_)) => "#7e57c2",
        (_, SpanKind::Call(_)) => "#2e8b57",
    }
}

fn title(span: &Span<'_>) -> String {
    let spent = timeline::duration(span.microseconds);
    match span.kind {
        SpanKind::Call(call) => {
            let ended = call.error.as_deref().unwrap_or_else(|| call.status.id());
            format!("{} {}: {ended}, {spent}", call.tool, call.arguments)
        }
        SpanKind::Node(step) | SpanKind::PlanStep(step) => {
            format!("{}: {spent} {}", step.node, step.reason.as_deref().unwrap_or_default())
        }
        SpanKind::Run => spent,
    }
}

fn plots(body: &mut String, diagnosis: &Diagnosis, lang: Lang, zone: &TimeZone) {
    let series = diagnosis.evidence.iter().filter_map(|evidence| match &evidence.data {
        Finding::Series(series) if series.points.len() > 1 => Some((evidence.id.as_str(), series)),
        _ => None,
    });
    let drawn: Vec<String> = series.take(MAX_PLOTS).map(|(id, series)| plot(id, series, zone)).collect();
    if !drawn.is_empty() {
        let _ = writeln!(
            body,
            "<h2>{}</h2>\n<div class=\"plots\">{}</div>",
            lang.pick("Metrics", "指标"),
            drawn.join("\n")
        );
    }
}

/// A line with its onset, the range of its values and of its times.
fn plot(id: &str, series: &SeriesSummary, zone: &TimeZone) -> String {
    let (width, height) = PLOT;
    let values = || series.points.iter().map(|&(_, value)| value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let (first, last) = (series.points[0].0, series.points[series.points.len() - 1].0);
    let x = |at: i64| width * (at - first) as f64 / ((last - first).max(1)) as f64;
    let y = |value: f64| {
        let range = if high > low { high - low } else { 1.0 };
        height - 4.0 - (height - 8.0) * (value - low) / range
    };
    let line: Vec<String> = series.points.iter().map(|&(at, value)| format!("{:.1},{:.1}", x(at), y(value))).collect();
    let onset = series.onset.map(|at| at.as_second()).filter(|at| (first..=last).contains(at));
    let onset = onset.map_or_else(String::new, |at| {
        format!(
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{height}\" stroke=\"#b3261e\" stroke-dasharray=\"3 3\"/>",
            x(at)
        )
    });
    let clock = |at: i64| {
        let at = jiff::Timestamp::from_second(at).unwrap_or_default();
        at.to_zoned_datetime(zone.clone()).strftime("%H:%M").to_string()
    };
    format!(
        "<figure><svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">{onset}\
         <polyline fill=\"none\" stroke=\"#3b6fb6\" stroke-width=\"1.5\" points=\"{}\"/></svg>\
         <figcaption>{} <code>{}</code><br>{} - {}, {} - {}</figcaption></figure>",
        line.join(" "),
        escaped(id),
        escaped(&series.expr),
        figure(low),
        figure(high),
        clock(first),
        clock(last)
    )
}

fn figure(value: f64) -> String {
    if value.abs() >= 100.0 || value == value.trunc() { format!("{value:.0}") } else { format!("{value:.3}") }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text, TEXT_CHARS).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_from_outside_is_text() {
        assert_eq!(escaped("<script>a & 'b'</script>"), "&lt;script&gt;a &amp; &#39;b&#39;&lt;/script&gt;");
    }
}
