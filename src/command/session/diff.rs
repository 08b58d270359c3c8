//! Two runs side by side: how they ended, and what one of them asked or found that the other did not.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::view;
use crate::domain::text::clean_line;
use crate::domain::{Lang, SessionRecord};
use crate::ui::timeline;

const LINE_CHARS: usize = 160;

/// What only one of two runs has.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub calls: Sides,
    pub evidence: Sides,
}

/// Texts that stand on one side alone, and how many stand on both.
#[derive(Debug, Clone, PartialEq)]
pub struct Sides {
    pub only_a: Vec<String>,
    pub only_b: Vec<String>,
    pub both: usize,
}

pub fn compare(a: &SessionRecord, b: &SessionRecord) -> Difference {
    Difference { calls: sides(calls(a), calls(b)), evidence: sides(evidence(a), evidence(b)) }
}

fn sides(a: BTreeSet<String>, b: BTreeSet<String>) -> Sides {
    Sides {
        only_a: a.difference(&b).cloned().collect(),
        only_b: b.difference(&a).cloned().collect(),
        both: a.intersection(&b).count(),
    }
}

fn calls(record: &SessionRecord) -> BTreeSet<String> {
    record.tool_invocations.iter().map(|call| format!("{} {}", call.tool, call.arguments)).collect()
}

fn evidence(record: &SessionRecord) -> BTreeSet<String> {
    let found = record.diagnosis.as_ref().and_then(|diagnosis| diagnosis.get("evidence")?.as_array());
    found.into_iter().flatten().filter_map(|evidence| evidence.get("summary")?.as_str()).map(str::to_owned).collect()
}

/// What is compared line by line: label, and the value of a run.
type Row = (&'static str, &'static str, fn(&SessionRecord) -> String);

const ROWS: [Row; 8] = [
    ("status", "状态", |record| record.session.status.id().to_owned()),
    ("reasoner", "推理器", |record| {
        let session = &record.session;
        let parts = [session.reasoner.as_deref(), session.model.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }),
    ("cause", "根因", |record| view::cause(&record.session).unwrap_or_else(|| "unknown".into())),
    ("calls", "调用", |record| record.tool_invocations.len().to_string()),
    ("failed calls", "失败调用", |record| {
        record.tool_invocations.iter().filter(|call| call.error.is_some()).count().to_string()
    }),
    ("evidence", "证据", |record| evidence(record).len().to_string()),
    ("tokens", "令牌", |record| (record.session.usage.input_tokens + record.session.usage.output_tokens).to_string()),
    ("took", "用时", |record| {
        let session = &record.session;
        session.ended_at.map_or_else(String::new, |end| {
            timeline::duration(u64::try_from(end.duration_since(session.started_at).as_micros()).unwrap_or(0))
        })
    }),
];

pub fn text(a: &SessionRecord, b: &SessionRecord, difference: &Difference, lang: Lang) -> String {
    let mut text = format!("A {}  {}\nB {}  {}\n\n", a.session.id, a.session.title, b.session.id, b.session.title);
    for (en, zh, value) in ROWS {
        let (left, right) = (value(a), value(b));
        let mark = if left == right { ' ' } else { '*' };
        let label = lang.pick(en, zh);
        let shown = if left == right { left } else { format!("{left} -> {right}") };
        let _ = writeln!(text, "{mark} {label}: {shown}");
    }
    let mut list = |heading: &str, sides: &Sides| {
        let _ = writeln!(text, "\n{heading}: {} {}", sides.both, lang.pick("in both", "两者皆有"));
        for (sign, lines) in [('-', &sides.only_a), ('+', &sides.only_b)] {
            for line in lines {
                let _ = writeln!(text, "{sign} {}", clean_line(line, LINE_CHARS));
            }
        }
    };
    list(lang.pick("Calls", "调用"), &difference.calls);
    list(lang.pick("Evidence", "证据"), &difference.evidence);
    text
}

pub fn json(a: &SessionRecord, b: &SessionRecord, difference: &Difference) -> Value {
    let rows: serde_json::Map<String, Value> =
        ROWS.iter().map(|(en, _, value)| ((*en).replace(' ', "_"), json!({ "a": value(a), "b": value(b) }))).collect();
    let sides = |sides: &Sides| json!({ "only_a": sides.only_a, "only_b": sides.only_b, "both": sides.both });
    json!({
        "schema": "oncall.session-diff/v1",
        "a": a.session.id,
        "b": b.session.id,
        "compared": rows,
        "calls": sides(&difference.calls),
        "evidence": sides(&difference.evidence),
    })
}
