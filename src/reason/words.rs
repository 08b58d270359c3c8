//! Findings and calls in words: one sentence each, in English or Chinese, with figures and times. Quotations from
//! logs, labels and runbooks stay as they are, cleaned and cut.

pub mod figure;
mod status;

use jiff::tz::TimeZone;

use crate::domain::text::{clean_line, counted, head, plural};
use crate::domain::{
    Call, Change, ChangeKind, EvidenceKind, Finding, Hit, Lang, LogPattern, LogVolume, MetricInfo, RankedService,
    SeriesShape, SeriesSummary,
};
use figure::{clock, count, date, figure, unit_of};

const MAX_QUOTE_CHARS: usize = 180;
const MAX_EXPR_CHARS: usize = 140;
const MAX_NAME_CHARS: usize = 80;
const MAX_ARGUMENT_CHARS: usize = 60;
const MAX_CALL_CHARS: usize = 160;
/// Labels shown beside an expression.
const MAX_LABELS: usize = 3;

/// The question that a finding answers.
pub fn evidence_kind(finding: &Finding) -> EvidenceKind {
    match finding {
        Finding::Series(_) | Finding::RankedService(_) | Finding::Metric(_) => EvidenceKind::Metric,
        Finding::Pattern(_) | Finding::LogVolume(_) => EvidenceKind::Log,
        Finding::Workload(_) | Finding::Pod(_) | Finding::Event(_) | Finding::Node(_) => EvidenceKind::Status,
        Finding::Rollout(_) | Finding::Change(_) => EvidenceKind::Change,
        Finding::Hit(_) => EvidenceKind::Knowledge,
        Finding::Nothing { .. } | Finding::Other { .. } => EvidenceKind::Other,
    }
}

/// One sentence about a finding.
pub fn summarize(finding: &Finding, lang: Lang, zone: &TimeZone) -> String {
    match finding {
        Finding::Series(series) => series_words(series, lang, zone),
        Finding::RankedService(ranked) => ranked_words(ranked, lang, zone),
        Finding::Metric(metric) => metric_words(metric, lang),
        Finding::Pattern(pattern) => pattern_words(pattern, lang, zone),
        Finding::LogVolume(volume) => volume_words(volume, lang),
        Finding::Workload(workload) => status::workload(workload, lang),
        Finding::Pod(pod) => status::pod(pod, lang, zone),
        Finding::Event(event) => status::event(event, lang, zone),
        Finding::Node(node) => status::node(node, lang),
        Finding::Rollout(rollout) => status::rollout(rollout, lang, zone),
        Finding::Change(change) => change_words(change, lang, zone),
        Finding::Hit(hit) => hit_words(hit, lang),
        Finding::Nothing { what } => {
            let what = clean_line(what, MAX_QUOTE_CHARS);
            lang.pick(format!("nothing found: {what}"), format!("没有结果：{what}"))
        }
        Finding::Other { value } => clean_line(&value.to_string(), MAX_QUOTE_CHARS),
    }
}

/// A call in short: `search_logs(service=order-service, start=06:00Z)`.
pub fn call(call: &Call) -> String {
    let arguments: Vec<String> = match call.arguments.as_object() {
        Some(object) => object.iter().filter_map(|(key, value)| argument(key, value)).collect(),
        None => Vec::new(),
    };
    let tool = clean_line(&call.tool, MAX_NAME_CHARS);
    let inside = clean_line(&arguments.join(", "), MAX_CALL_CHARS);
    format!("{tool}({inside})")
}

fn argument(key: &str, value: &serde_json::Value) -> Option<String> {
    let text = match value {
        serde_json::Value::Null => return None,
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => {
            let texts: Vec<String> =
                items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_string)).collect();
            texts.join("|")
        }
        other => other.to_string(),
    };
    let shown = time_of_day(&text).unwrap_or_else(|| clean_line(&text, MAX_ARGUMENT_CHARS));
    Some(format!("{}={shown}", clean_line(key, MAX_ARGUMENT_CHARS)))
}

/// `06:00Z` for an RFC 3339 time in UTC, `14:00` for one with an offset.
fn time_of_day(text: &str) -> Option<String> {
    text.parse::<jiff::Timestamp>().ok()?;
    let time = text.split_once(['T', ' '])?.1;
    let zulu = if time.ends_with(['Z', 'z']) { "Z" } else { "" };
    Some(format!("{}{zulu}", head(time, 5)))
}

/// The first line of a message, and the last `Caused by` of its stack trace: that is where the reason stands.
pub fn quote(message: &str) -> String {
    let mut lines = message.lines();
    let mut text = lines.next().unwrap_or_default().to_string();
    if let Some(cause) = lines.rfind(|line| line.trim_start().starts_with("Caused by:")) {
        text = format!("{} ... {}", clean_line(&text, MAX_QUOTE_CHARS), cause.trim());
        return clean_line(&text, 2 * MAX_QUOTE_CHARS);
    }
    clean_line(&text, MAX_QUOTE_CHARS)
}

fn pattern_words(pattern: &LogPattern, lang: Lang, zone: &TimeZone) -> String {
    let text = if pattern.sample.trim().is_empty() { &pattern.template } else { &pattern.sample };
    let text = quote(text);
    let times = count(pattern.count);
    let when = match (pattern.first, pattern.last) {
        (Some(first), Some(last)) => {
            let (first, last) = (clock(first, zone), clock(last, zone));
            lang.pick(format!(" from {first} to {last}"), format!("，{first} 至 {last}"))
        }
        _ => String::new(),
    };
    let before = match pattern.before {
        Some(before) => lang.pick(format!(", {} before", count(before)), format!("，此前 {} 次", count(before))),
        None => String::new(),
    };
    let who = [pattern.service.as_deref(), pattern.level.map(|level| level.as_str())];
    let who: Vec<String> = who.into_iter().flatten().map(|part| clean_line(part, MAX_NAME_CHARS)).collect();
    let who = if who.is_empty() { String::new() } else { format!(" ({})", who.join(", ")) };
    let plural = if pattern.count == 1 { "" } else { "s" };
    lang.pick(
        format!("\"{text}\" {times} time{plural}{when}{before}{who}"),
        format!("“{text}” {times} 次{when}{before}{who}"),
    )
}

fn volume_words(volume: &LogVolume, lang: Lang) -> String {
    let service = volume.service.as_deref().map(|service| clean_line(service, MAX_NAME_CHARS));
    let levels: Vec<String> = volume
        .levels
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(level, n)| format!("{} {}", clean_line(level, 20), count(*n)))
        .collect();
    let levels = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
    let events = count(volume.events);
    let en_of = service.as_deref().map(|service| format!(" of {service}")).unwrap_or_default();
    let zh_of = service.map(|service| format!("{service} ")).unwrap_or_default();
    lang.pick(
        format!(
            "{events} {}{en_of} in {}{levels}",
            plural(&volume.events, "log event"),
            counted(volume.patterns, "pattern")
        ),
        format!("{zh_of}共 {events} 条日志，{} 种模式{levels}", volume.patterns),
    )
}

/// Expression and telling labels of a series.
pub fn series_name(series: &SeriesSummary) -> String {
    let expr = clean_line(&series.expr, MAX_EXPR_CHARS);
    let labels: Vec<String> = series
        .labels
        .iter()
        .filter(|(name, value)| *name != "__name__" && !value.is_empty() && !series.expr.contains(value.as_str()))
        .take(MAX_LABELS)
        .map(|(name, value)| format!("{}={}", clean_line(name, 40), clean_line(value, 60)))
        .collect();
    if labels.is_empty() { format!("`{expr}`") } else { format!("`{expr}` ({})", labels.join(", ")) }
}

fn series_words(series: &SeriesSummary, lang: Lang, zone: &TimeZone) -> String {
    let name = series_name(series);
    let unit = unit_of(&series.expr);
    let [base, peak] = [series.baseline, series.peak].map(|value| figure(value, unit));
    let since = series
        .onset
        .map(|at| lang.pick(format!(" since {}", clock(at, zone)), format!("，始于 {}", clock(at, zone))))
        .unwrap_or_default();
    let peak_at = series
        .peak_at
        .map(|at| lang.pick(format!(" at {}", clock(at, zone)), format!("（{}）", clock(at, zone))))
        .unwrap_or_default();
    let now = match series.now {
        Some(now) => lang.pick(format!(", now {}", figure(now, unit)), format!("，现在 {}", figure(now, unit))),
        None => lang.pick(", no value at the end".to_string(), "，末尾无数据".to_string()),
    };
    let text = match series.shape {
        SeriesShape::Flat => lang.pick(format!("stayed around {base}"), format!("保持在 {base} 左右")),
        SeriesShape::Spike => lang.pick(
            format!("spiked from {base} to {peak}{peak_at}{since}"),
            format!("从 {base} 突增至 {peak}{peak_at}{since}"),
        ),
        SeriesShape::Dip => lang.pick(
            format!("dipped from {base} to {peak}{peak_at}{since}"),
            format!("从 {base} 骤降至 {peak}{peak_at}{since}"),
        ),
        SeriesShape::Step if series.rose() => {
            lang.pick(format!("stepped up from {base} to {peak}{since}"), format!("从 {base} 阶跃升至 {peak}{since}"))
        }
        SeriesShape::Step => {
            lang.pick(format!("stepped down from {base} to {peak}{since}"), format!("从 {base} 阶跃降至 {peak}{since}"))
        }
        SeriesShape::Ramp if series.rose() => lang
            .pick(format!("grew steadily from {base} to {peak}{since}"), format!("从 {base} 持续增长到 {peak}{since}")),
        SeriesShape::Ramp => lang
            .pick(format!("fell steadily from {base} to {peak}{since}"), format!("从 {base} 持续下降到 {peak}{since}")),
        SeriesShape::Saturated => lang.pick(
            format!("holds at a ceiling of {peak}, normally {base}{since}"),
            format!("顶在上限 {peak}，平时 {base}{since}"),
        ),
        SeriesShape::Absent => {
            lang.pick(format!("disappeared, last around {base}"), format!("数据消失，此前约 {base}"))
        }
    };
    let now = if matches!(series.shape, SeriesShape::Absent | SeriesShape::Flat) { String::new() } else { now };
    format!("{name} {text}{now}")
}

fn ranked_words(ranked: &RankedService, lang: Lang, zone: &TimeZone) -> String {
    let service = clean_line(&ranked.service, MAX_NAME_CHARS);
    let reason = clean_line(&ranked.reason, MAX_QUOTE_CHARS);
    let onset = ranked
        .onset
        .map(|at| lang.pick(format!(", anomalous since {}", clock(at, zone)), format!("，{} 起异常", clock(at, zone))))
        .unwrap_or_default();
    let score = figure(ranked.score, figure::Unit::Plain);
    lang.pick(
        format!("{service} stands out with a score of {score}{onset}: {reason}"),
        format!("{service} 异常得分 {score}{onset}：{reason}"),
    )
}

fn metric_words(metric: &MetricInfo, lang: Lang) -> String {
    let name = clean_line(&metric.name, MAX_EXPR_CHARS);
    let help = clean_line(&metric.help, MAX_QUOTE_CHARS);
    let help = if help.is_empty() { String::new() } else { lang.pick(format!(": {help}"), format!("：{help}")) };
    lang.pick(
        format!("metric `{name}` with {} series{help}", metric.series),
        format!("指标 `{name}`，{} 条序列{help}", metric.series),
    )
}

/// What kind of change, in words.
pub fn change_kind(kind: ChangeKind, lang: Lang) -> &'static str {
    match kind {
        ChangeKind::Deploy => lang.pick("deployment", "发布"),
        ChangeKind::Config => lang.pick("configuration change", "配置变更"),
        ChangeKind::Scale => lang.pick("scaling", "扩缩容"),
        ChangeKind::Flag => lang.pick("feature flag", "开关变更"),
        ChangeKind::Other => lang.pick("change", "变更"),
    }
}

fn change_words(change: &Change, lang: Lang, zone: &TimeZone) -> String {
    let kind = change_kind(change.kind, lang);
    let summary = clean_line(&change.summary, MAX_QUOTE_CHARS);
    let at = date(change.time, zone);
    let service = change.service.as_deref().map(|service| clean_line(service, MAX_NAME_CHARS));
    match service {
        Some(service) => {
            lang.pick(format!("{kind} of {service} at {at}: {summary}"), format!("{at} {service} {kind}：{summary}"))
        }
        None => lang.pick(format!("{kind} at {at}: {summary}"), format!("{at} {kind}：{summary}")),
    }
}

fn hit_words(hit: &Hit, lang: Lang) -> String {
    let title = clean_line(&hit.title, MAX_NAME_CHARS);
    let heading = clean_line(&hit.heading_path(), MAX_QUOTE_CHARS);
    let heading = if heading.is_empty() { String::new() } else { format!(" > {heading}") };
    let source = clean_line(&hit.source, MAX_QUOTE_CHARS);
    lang.pick(format!("runbook {title}{heading} ({source})"), format!("文档 {title}{heading}（{source}）"))
}

#[cfg(test)]
mod tests;
