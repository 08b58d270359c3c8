//! The page that `oncall metrics` prints for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Answer;
use crate::analysis::series::ANOMALOUS;
use crate::analysis::sparkline::sparkline;
use crate::domain::text::clean_line;
use crate::domain::{ChangePoint, Lang, Sample, SeriesShape, SeriesSummary, Window, value_text};
use crate::source::QueryValue;

/// Series shown; the rest is counted.
const MAX_SHOWN: usize = 20;
/// Change points told per series.
const MAX_CHANGES: usize = 6;
const WIDEST_SPARKLINE: usize = 80;
const LABEL_CHARS: usize = 500;

/// Where and how an answer is shown.
pub(super) struct Page<'a> {
    pub expr: &'a str,
    pub window: Window,
    pub zone: TimeZone,
    pub lang: Lang,
    pub columns: usize,
}

impl Page<'_> {
    pub fn render(&self, answer: &Answer) -> String {
        match &answer.value {
            QueryValue::String(_, text) => format!("{}\n", clean_line(text, LABEL_CHARS)),
            QueryValue::Scalar(sample) if answer.summaries.is_empty() => format!("{}\n", value_text(sample.value)),
            value => self.render_series(answer, latest(value)),
        }
    }

    fn render_series(&self, answer: &Answer, latest: Vec<(String, Sample)>) -> String {
        if answer.summaries.is_empty() && latest.is_empty() {
            let expr = clean_line(self.expr, LABEL_CHARS);
            return self.lang.pick(format!("no data for {expr}\n"), format!("{expr} 没有数据\n"));
        }
        let mut page = format!("{}\n", fit(&self.heading(answer.step.as_secs()), self.columns));
        let mut summaries: Vec<&SeriesSummary> = answer.summaries.iter().collect();
        summaries.sort_by(|a, b| b.score.total_cmp(&a.score));
        for summary in summaries.iter().take(MAX_SHOWN) {
            page.push('\n');
            self.render_one(summary, &latest, &mut page);
        }
        if summaries.len() > MAX_SHOWN {
            let left = summaries.len() - MAX_SHOWN;
            page.push_str(&self.lang.pick(
                format!("\n{left} more series, less anomalous: aggregate or filter to see them\n"),
                format!("\n另有 {left} 条序列偏离较小：可聚合或过滤后查看\n"),
            ));
        }
        page
    }

    fn heading(&self, step: i64) -> String {
        let date = |at: Timestamp| at.to_zoned_datetime(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
        let end = self.window.end.to_zoned_datetime(self.zone.clone());
        let offset = end.strftime("%:z");
        let (start, end) = (date(self.window.start), date(self.window.end));
        self.lang.pick(
            format!("{start} to {end} ({offset}), a point every {step} s"),
            format!("{start} 至 {end}（{offset}），每 {step} 秒一个点"),
        )
    }

    fn render_one(&self, summary: &SeriesSummary, latest: &[(String, Sample)], page: &mut String) {
        let labels = labels_of(&summary.labels);
        let width = self.columns.min(WIDEST_SPARKLINE);
        page.push_str(&format!("{}\n", fit(&labels, self.columns)));
        page.push_str(&format!("{}\n", sparkline(&summary.points, self.window, width).trim_end()));
        // The source's own last value, where it was asked for one: it may be NaN, which a summary leaves out.
        let now = latest.iter().find(|(name, _)| *name == labels).map(|(_, sample)| sample.value).or(summary.now);
        for line in [Some(self.course(summary, now)), self.changes(summary)].into_iter().flatten() {
            for wrapped in textwrap::wrap(&line, self.columns) {
                page.push_str(&format!("{wrapped}\n"));
            }
        }
    }

    /// What the series did, in one sentence.
    fn course(&self, summary: &SeriesSummary, now: Option<f64>) -> String {
        let lang = self.lang;
        let now = now.map_or_else(|| lang.pick("none", "无").to_owned(), number);
        let (baseline, peak) = (number(summary.baseline), number(summary.peak));
        let shape = shape_name(summary.shape, lang);
        let Some(onset) = summary.onset else {
            return lang.pick(
                format!("{shape}; now {now}, median {baseline}"),
                format!("{shape}；当前 {now}，中位数 {baseline}"),
            );
        };
        let (onset, score) = (self.time(onset), summary.score.max(ANOMALOUS));
        let peak_at = summary.peak_at.map(|at| self.time(at)).unwrap_or_default();
        lang.pick(
            format!("{shape} since {onset}; baseline {baseline}, peak {peak} at {peak_at}, now {now}; {score:.0} times its usual range"),
            format!("{shape}，始于 {onset}；基线 {baseline}，峰值 {peak}（{peak_at}），当前 {now}；偏离为平时波动的 {score:.0} 倍"),
        )
    }

    fn changes(&self, summary: &SeriesSummary) -> Option<String> {
        let list = |change: &ChangePoint| {
            format!("{} {} -> {}", self.time(change.at), number(change.before), number(change.after))
        };
        let shown: Vec<String> = summary.change_points.iter().take(MAX_CHANGES).map(list).collect();
        let left = summary.change_points.len().saturating_sub(MAX_CHANGES);
        let more = match left {
            0 => String::new(),
            _ => self.lang.pick(format!(" and {left} more"), format!("，另有 {left} 处")),
        };
        (!shown.is_empty()).then(|| self.lang.pick("changes: ", "变化：").to_owned() + &shown.join(", ") + &more)
    }

    fn time(&self, at: Timestamp) -> String {
        at.to_zoned_datetime(self.zone.clone()).strftime("%H:%M:%S").to_string()
    }
}

/// The last sample of each series, by its labels as shown.
fn latest(value: &QueryValue) -> Vec<(String, Sample)> {
    let QueryValue::Vector(series) = value else { return Vec::new() };
    series.iter().filter_map(|one| Some((labels_of(&one.labels), *one.samples.last()?))).collect()
}

/// The labels as PromQL writes them, cleaned.
fn labels_of(labels: &std::collections::BTreeMap<String, String>) -> String {
    let name = labels.get("__name__").map_or("", String::as_str);
    let rest: Vec<String> = labels
        .iter()
        .filter(|(label, _)| *label != "__name__")
        .map(|(label, value)| format!("{label}={value:?}"))
        .collect();
    let rest = if rest.is_empty() && !name.is_empty() { String::new() } else { format!("{{{}}}", rest.join(", ")) };
    clean_line(&format!("{name}{rest}"), LABEL_CHARS)
}

/// The text cut to a number of columns.
fn fit(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 3;
    let head: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect();
    head + "..."
}

/// Four digits that count; very large and very small ones with an exponent.
fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return value_text(value);
    }
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = if size == 0.0 { 0 } else { (3 - size.log10().floor() as i32).clamp(0, 6) as usize };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn shape_name(shape: SeriesShape, lang: Lang) -> &'static str {
    match shape {
        SeriesShape::Flat => lang.pick("flat", "平稳"),
        SeriesShape::Spike => lang.pick("spike", "尖峰"),
        SeriesShape::Dip => lang.pick("dip", "下探"),
        SeriesShape::Step => lang.pick("step", "阶跃"),
        SeriesShape::Ramp => lang.pick("ramp", "持续变化"),
        SeriesShape::Saturated => lang.pick("saturated", "触顶"),
        SeriesShape::Absent => lang.pick("ended", "中断"),
    }
}
