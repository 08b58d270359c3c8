//! The Markdown report of a diagnosis, in either language.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::domain::text::{clean_line, counted};
use crate::domain::time::zone_named;
use crate::domain::{AlertStatus, Diagnosis, Hypothesis, Lang, RunStatus, SourceReport, Usage};

const CELL_CHARS: usize = 200;
const LINE_CHARS: usize = 1000;
/// Hypotheses beyond these are in the JSON document only.
const MAX_HYPOTHESES: usize = 6;

/// The whole report; ends with a line feed.
pub fn markdown(diagnosis: &Diagnosis, zone: &TimeZone) -> String {
    // What was stored is told in the zone of its own texts.
    let own = diagnosis.zone.as_deref().and_then(zone_named);
    let zone = own.as_ref().unwrap_or(zone);
    let sections = [
        heading(diagnosis, zone),
        cause(diagnosis),
        history(diagnosis, zone),
        hypotheses(diagnosis),
        evidence(diagnosis),
        next_steps(diagnosis),
        references(diagnosis),
        unchecked(diagnosis),
        sources(diagnosis),
        footer(diagnosis),
    ];
    let text: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    text.join("\n")
}

/// Breaks long lines of text at `columns` display columns; tables and code stay as they are.
pub fn wrap(report: &str, columns: usize) -> String {
    let mut fenced = false;
    let mut out = String::with_capacity(report.len());
    for line in report.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced || line.starts_with('|') || line.starts_with("    ") {
            out.push_str(line);
        } else {
            let indent = " ".repeat(hanging_indent(line));
            out.push_str(&textwrap::fill(line, textwrap::Options::new(columns).subsequent_indent(&indent)));
        }
        out.push('\n');
    }
    out
}

/// Columns under which the text of a list item continues.
fn hanging_indent(line: &str) -> usize {
    let text = line.trim_start();
    let lead = line.len() - text.len();
    if text.starts_with("- ") {
        return lead + 2;
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 && text[digits..].starts_with(". ") { lead + digits + 2 } else { lead }
}

fn heading(diagnosis: &Diagnosis, zone: &TimeZone) -> String {
    let lang = diagnosis.facts.lang;
    let alert = &diagnosis.alert;
    let service = alert.service.as_deref().or(diagnosis.facts.service.as_deref());
    let on = service.map_or_else(String::new, |s| format!(" ({})", clean_line(s, CELL_CHARS)));
    let mut text = format!("# {}: {}{on}\n\n", lang.pick("Diagnosis", "诊断"), clean_line(&alert.name, CELL_CHARS));
    let mut facts = Vec::new();
    if let Some(at) = alert.starts_at {
        facts.push(format!("{} {}", lang.pick("fired", "触发于"), local(at, zone)));
    }
    if alert.status == AlertStatus::Resolved {
        let at = alert.ends_at.map_or_else(String::new, |at| format!(" {}", local(at, zone)));
        facts.push(format!("{}{at}", lang.pick("**resolved**", "**已恢复**")));
    }
    if !diagnosis.related_alerts.is_empty() {
        let names: BTreeSet<&str> = diagnosis.related_alerts.iter().map(|alert| alert.name.as_str()).collect();
        let names = clean_line(&names.into_iter().collect::<Vec<_>>().join(", "), CELL_CHARS);
        let n = diagnosis.related_alerts.len();
        facts.push(lang.pick(format!("together with {n} more: {names}"), format!("同组另有 {n} 条：{names}")));
    }
    if !facts.is_empty() {
        text.push_str(&facts.join(lang.pick("; ", "；")));
        text.push('\n');
    }
    text
}

fn local(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
}

fn cause(diagnosis: &Diagnosis) -> String {
    let lang = diagnosis.facts.lang;
    let mut text = String::new();
    if diagnosis.status != RunStatus::Complete {
        let reason = diagnosis.status_reason.as_deref().unwrap_or_default();
        let state = match diagnosis.status {
            RunStatus::Cancelled => lang.pick("Cancelled", "已取消"),
            _ => lang.pick("Incomplete", "未完成"),
        };
        text.push_str(&format!("> **{state}**: {reason}\n\n"));
    }
    let headline = match &diagnosis.root_cause {
        Some(cause) => {
            let confidence = percent(cause.confidence);
            let title = clean_line(&cause.title, CELL_CHARS);
            lang.pick(
                format!("**Root cause: {title}** (confidence {confidence})"),
                format!("**根因：{title}**（置信度 {confidence}）"),
            )
        }
        None => lang.pick("**Root cause: unknown**", "**根因：未知**").to_string(),
    };
    text.push_str(&format!("{headline}\n\n{}\n", clean_line(&diagnosis.summary, 4 * LINE_CHARS)));
    text
}

fn history(diagnosis: &Diagnosis, zone: &TimeZone) -> String {
    let Some(history) = &diagnosis.history else { return String::new() };
    let lang = diagnosis.facts.lang;
    let lines = history.lines(lang, zone).into_iter().map(|line| format!("- {}\n", clean_line(&line, LINE_CHARS)));
    format!("## {}\n\n{}", lang.pick("Seen before", "历史情况"), lines.collect::<String>())
}

fn percent(confidence: f64) -> String {
    format!("{:.0} %", confidence * 100.0)
}

fn hypotheses(diagnosis: &Diagnosis) -> String {
    let lang = diagnosis.facts.lang;
    if diagnosis.hypotheses.is_empty() {
        return String::new();
    }
    let mut text = format!("## {}\n\n", lang.pick("Hypotheses", "假设"));
    for (i, hypothesis) in diagnosis.hypotheses.iter().take(MAX_HYPOTHESES).enumerate() {
        text.push_str(&hypothesis_item(i + 1, hypothesis, lang));
    }
    text
}

fn hypothesis_item(n: usize, hypothesis: &Hypothesis, lang: Lang) -> String {
    let verdict = hypothesis.verdict.title(lang);
    let title = clean_line(&hypothesis.title, CELL_CHARS);
    let mut item = format!("{n}. **{title}**: {verdict}, {}", percent(hypothesis.confidence));
    for (name, ids) in [
        (lang.pick("for", "支持"), &hypothesis.evidence_for),
        (lang.pick("against", "反对"), &hypothesis.evidence_against),
    ] {
        if !ids.is_empty() {
            item.push_str(&format!("; {name} {}", ids.join(", ")));
        }
    }
    item.push('\n');
    if !hypothesis.rationale.is_empty() {
        item.push_str(&format!("   {}\n", clean_line(&hypothesis.rationale, LINE_CHARS)));
    }
    item
}

/// The evidence that something in the report cites, in order of its numbers.
fn evidence(diagnosis: &Diagnosis) -> String {
    let lang = diagnosis.facts.lang;
    let cited = cited_ids(diagnosis);
    let items: Vec<_> = diagnosis.evidence.iter().filter(|evidence| cited.contains(evidence.id.as_str())).collect();
    if items.is_empty() {
        return String::new();
    }
    let mut text = format!("## {}\n\n", lang.pick("Evidence", "证据"));
    for evidence in items {
        let kind = evidence.kind.title(lang);
        let stale = evidence.stale_seconds.map_or_else(String::new, |seconds| {
            lang.pick(format!(" ({seconds} s old)"), format!("（{seconds} 秒前的结果）"))
        });
        text.push_str(&format!("- {} [{kind}] {}{stale}\n", evidence.id, clean_line(&evidence.summary, LINE_CHARS)));
    }
    text
}

/// Ids named by hypotheses shown, and by the texts in brackets.
fn cited_ids(diagnosis: &Diagnosis) -> BTreeSet<&str> {
    let mut cited: BTreeSet<&str> = BTreeSet::new();
    let shown = diagnosis.hypotheses.iter().take(MAX_HYPOTHESES);
    for hypothesis in shown.clone() {
        cited.extend(hypothesis.evidence_for.iter().chain(&hypothesis.evidence_against).map(String::as_str));
    }
    let texts = std::iter::once(&diagnosis.summary)
        .chain(shown.map(|hypothesis| &hypothesis.rationale))
        .chain(diagnosis.unchecked.iter());
    for text in texts {
        cited.extend(text.split('[').skip(1).filter_map(|rest| rest.split(']').next()).flat_map(|ids| ids.split(", ")));
    }
    cited
}

fn next_steps(diagnosis: &Diagnosis) -> String {
    let lang = diagnosis.facts.lang;
    if diagnosis.next_steps.is_empty() {
        return String::new();
    }
    let mut text = format!("## {}\n\n", lang.pick("Next steps", "下一步"));
    for (i, step) in diagnosis.next_steps.iter().enumerate() {
        let source = if step.source.starts_with('[') { format!(" {}", step.source) } else { String::new() };
        text.push_str(&format!("{}. {}{source}\n", i + 1, clean_line(&step.text, LINE_CHARS)));
        if let Some(command) = &step.command {
            text.push_str(&format!("   `{}`\n", clean_line(command, LINE_CHARS)));
        }
    }
    text
}

fn references(diagnosis: &Diagnosis) -> String {
    let lang = diagnosis.facts.lang;
    if diagnosis.references.is_empty() {
        return String::new();
    }
    let mut text = format!("## {}\n\n", lang.pick("Runbooks", "手册"));
    for reference in &diagnosis.references {
        let heading = if reference.heading.is_empty() { String::new() } else { format!(" > {}", reference.heading) };
        let place = clean_line(&format!("{}{heading}", reference.title), CELL_CHARS);
        text.push_str(&format!("- [{}] {place} ({})\n", reference.n, clean_line(&reference.source, CELL_CHARS)));
    }
    text
}

fn unchecked(diagnosis: &Diagnosis) -> String {
    let lang = diagnosis.facts.lang;
    if diagnosis.unchecked.is_empty() {
        return String::new();
    }
    let mut text = format!("## {}\n\n", lang.pick("Could not be checked", "未能检查"));
    for item in &diagnosis.unchecked {
        text.push_str(&format!("- {}\n", clean_line(item, LINE_CHARS)));
    }
    text
}

fn sources(diagnosis: &Diagnosis) -> String {
    let lang = diagnosis.facts.lang;
    if diagnosis.sources.is_empty() {
        return String::new();
    }
    let mut text = format!("## {}\n\n", lang.pick("Sources", "数据来源"));
    for source in &diagnosis.sources {
        text.push_str(&source_line(source, lang));
    }
    text
}

fn source_line(source: &SourceReport, lang: Lang) -> String {
    let status = source.status.title(lang);
    let name = clean_line(&source.name, CELL_CHARS);
    let detail = clean_line(&source.detail, LINE_CHARS);
    if detail.is_empty() { format!("- {name}: {status}\n") } else { format!("- {name}: {status} ({detail})\n") }
}

fn footer(diagnosis: &Diagnosis) -> String {
    let lang = diagnosis.facts.lang;
    let by = match (&diagnosis.model, diagnosis.reasoner.as_str()) {
        (Some(model), "rules") => lang.pick(
            format!("rules, in place of the model {model}{}", spent(&diagnosis.usage, lang)),
            format!("规则推理，代替模型 {model}{}", spent(&diagnosis.usage, lang)),
        ),
        (Some(model), _) => format!("{model}{}", spent(&diagnosis.usage, lang)),
        (None, _) => lang.pick("rules, no model", "规则推理，未使用模型").to_string(),
    };
    let id = clean_line(&diagnosis.session_id, CELL_CHARS);
    lang.pick(format!("Session {id}, reasoner: {by}\n"), format!("会话 {id}，推理：{by}\n"))
}

/// What the model used: `, 7 calls, 12345 tokens in (2000 cached), 678 out, cost 0.0123`.
fn spent(usage: &Usage, lang: Lang) -> String {
    let Usage { calls, input_tokens, output_tokens, cached_tokens, cost } = *usage;
    if calls == 0 {
        return String::new();
    }
    let cached = match cached_tokens {
        0 => String::new(),
        cached => lang.pick(format!(" ({cached} cached)"), format!("（缓存 {cached}）")),
    };
    let cost = cost.map(|cost| lang.pick(format!(", cost {cost:.4}"), format!("，费用 {cost:.4}"))).unwrap_or_default();
    lang.pick(
        format!(", {}, {input_tokens} tokens in{cached}, {output_tokens} out{cost}", counted(calls, "call")),
        format!("，调用 {calls} 次，输入 {input_tokens} token{cached}，输出 {output_tokens} token{cost}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_items_hang_under_their_text_and_code_stays_whole() {
        let report =
            "- one two three four\n1. one two three four\n    code code code code code\n| a | very wide table row |\n";
        assert_eq!(
            wrap(report, 12),
            "- one two\n  three four\n1. one two\n   three\n   four\n    code code code code code\n| a | very wide table row |\n"
        );
    }

    #[test]
    fn chinese_wraps_at_display_width() {
        assert_eq!(wrap("- 数据库连接池耗尽\n", 10), "- 数据库连\n  接池耗尽\n");
    }
}
