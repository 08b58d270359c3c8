//! Why the alert's figure and a measured one differ although both are right: they look through different windows.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use regex::Regex;

use super::calls;
use super::observe::View;
use crate::domain::{Finding, SeriesSummary};
use crate::reason::words::figure::{Unit, clock, figure, unit_of};

/// Dashboards usually look through five minutes.
pub(super) const USUAL_RANGE: &str = "5m";
/// Figures closer than this, relative to the alert's, need no explanation.
const NOTABLE: f64 = 0.1;

static RANGE: LazyLock<Regex> = LazyLock::new(|| {
    // A constant that the tests compile.
    Regex::new(r"\[(\d+)(s|m|h)\]").expect("constant")
});

/// The expression over the usual window, when its own is another one.
pub(super) fn over_usual_range(expr: &str) -> Option<String> {
    let own = range(expr)?;
    (own != USUAL_RANGE).then(|| RANGE.replace_all(expr, format!("[{USUAL_RANGE}]")).into_owned())
}

/// The first range of an expression, as written.
fn range(expr: &str) -> Option<String> {
    RANGE.captures(expr).map(|found| format!("{}{}", &found[1], &found[2]))
}

/// A sentence that reconciles the alert's value with the peak that the usual window shows.
pub(super) fn two_windows(view: &View<'_>, zone: &TimeZone) -> Option<String> {
    let facts = &view.state.facts;
    let (value, expr) = (facts.value?, facts.metric.as_deref()?);
    let own = range(expr)?;
    let usual = over_usual_range(expr)?;
    let (id, series) = measured(view, &usual)?;
    let is_percent = facts.unit.as_deref() == Some("%");
    let unit = unit_of(expr);
    let factor = if is_percent && unit != Unit::Percent { 100.0 } else { 1.0 };
    let peak = series.peak * factor;
    if !peak.is_finite() || (peak - value).abs() <= NOTABLE * value.abs() {
        return None;
    }
    let unit = if is_percent { Unit::Percent } else { unit };
    let [value, peak] = [value, peak].map(|value| figure(value, unit));
    let at = series.peak_at.map(|at| clock(at, zone)).unwrap_or_default();
    Some(facts.lang.pick(
        format!(
            "The alert's {value} is measured over a window of {own}; over {USUAL_RANGE} the same expression peaks at {peak} at {at} [{id}]: \
             the longer window averages a short burst and follows it later, so both figures are right."
        ),
        format!(
            "告警值 {value} 的统计窗口为 {own}；同一表达式按 {USUAL_RANGE} 统计的峰值是 {peak}（{at}）[{id}]：窗口越长，短时突增被平均得越低、出现得越晚，两个数值并不矛盾。"
        ),
    ))
}

fn measured<'v>(view: &'v View<'_>, expr: &str) -> Option<(&'v str, &'v SeriesSummary)> {
    let made = view
        .state
        .invocations
        .iter()
        .find(|made| made.call.tool == calls::METRICS && made.call.arguments["expr"] == expr)?;
    made.evidence.iter().find_map(|id| match view.state.evidence(id) {
        Some(evidence) => match &evidence.data {
            Finding::Series(series) => Some((evidence.id.as_str(), series)),
            _ => None,
        },
        None => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_window_is_asked_over_the_usual_one_too() {
        assert_eq!(
            over_usual_range("sum(rate(a[1m])) / sum(rate(b[1m]))").as_deref(),
            Some("sum(rate(a[5m])) / sum(rate(b[5m]))")
        );
        assert_eq!(over_usual_range("rate(a[5m])"), None);
        assert_eq!(over_usual_range("up"), None);
    }
}
