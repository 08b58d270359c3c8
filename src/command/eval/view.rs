//! The results for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::score::{Row, Scored};
use crate::domain::Lang;
use crate::ui::timeline;

const COLUMNS: usize = 12;

/// One line for each incident and reasoner, what was wrong under it, and the sums.
pub fn table(rows: &[Row], lang: Lang) -> String {
    let heads = lang.pick(
        [
            "INCIDENT",
            "REASONER",
            "RIGHT",
            "CATEGORY",
            "SERVICE",
            "MENTIONED",
            "FORBIDDEN",
            "UNSUPPORTED",
            "CALLS",
            "TOKENS",
            "COST",
            "TIME",
        ],
        ["事件", "推理器", "正确", "类别", "服务", "提及", "禁止", "无依据", "调用", "令牌", "费用", "用时"],
    );
    let mut lines: Vec<[String; COLUMNS]> = vec![heads.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let widths: Vec<usize> =
        (0..COLUMNS).map(|at| lines.iter().map(|line| line[at].width()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let padded =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        let _ = writeln!(text, "{}", padded.collect::<Vec<_>>().join("  ").trim_end());
        for fault in at.checked_sub(1).and_then(|at| rows.get(at)).into_iter().flat_map(|row| &row.faults) {
            let _ = writeln!(text, "  {fault}");
        }
    }
    text.push('\n');
    for (reasoner, (right, runs)) in sums(rows) {
        let _ = match lang {
            Lang::En => writeln!(text, "{reasoner}: {right} of {runs} right"),
            Lang::Zh => writeln!(text, "{reasoner}：{runs} 次中 {right} 次正确"),
        };
    }
    text
}

fn cells(row: &Row) -> [String; COLUMNS] {
    let of = |n: usize| format!("{n}/{}", row.runs);
    [
        row.incident.clone(),
        row.reasoner.clone(),
        of(row.right),
        of(row.category_right),
        of(row.service_right),
        format!("{}/{}", row.mentioned, row.mentions),
        row.forbidden.to_string(),
        row.unsupported.to_string(),
        row.tool_calls.to_string(),
        row.tokens.to_string(),
        row.cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.4}")),
        timeline::duration(row.milliseconds * 1000),
    ]
}

/// Right runs and runs of each reasoner.
fn sums(rows: &[Row]) -> BTreeMap<&str, (usize, usize)> {
    let mut sums: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(&row.reasoner).or_default();
        *sum = (sum.0 + row.right, sum.1 + row.runs);
    }
    sums
}

/// `oncall.eval/v1`: every run, and the sums.
pub fn json(scored: &[Scored], threshold: f64) -> Value {
    let runs: Vec<Value> = scored
        .iter()
        .map(|run| {
            let mut object = serde_json::to_value(run).unwrap_or_default();
            object["right"] = json!(run.is_right());
            object["faults"] = json!(run.faults());
            object
        })
        .collect();
    let right = scored.iter().filter(|run| run.is_right()).count();
    json!({
        "schema": "oncall.eval/v1",
        "runs": runs,
        "right": right,
        "threshold": threshold,
        "reached": right as f64 / scored.len().max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::super::score::rows;
    use super::super::score::tests::scored;
    use super::*;

    #[test]
    fn a_table_counts_and_names_what_was_wrong() {
        let wrong = Scored { category: "unknown", cost: Some(0.0125), ..scored("b") };
        insta::assert_snapshot!(table(&rows(&[scored("a"), wrong]), Lang::En));
    }
}
