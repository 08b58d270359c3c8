//! What to do next: the remedies of the cause, then the runbooks; without a cause the runbooks' own steps.

use super::verdict::Ranked;
use crate::domain::chunk::is_field;
use crate::domain::text::{clean_line, head};
use crate::domain::{Hit, Lang, NextStep, State};
use crate::reason::signature::{self, RemedyKind};

const MAX_REMEDIES: usize = 8;
const MAX_RUNBOOK_STEPS: usize = 8;
const MAX_STEP_CHARS: usize = 240;
/// How runbooks mark a step that changes things.
const CHANGING: [&str; 2] = ["CHANGE", "【变更】"];

pub(super) fn next_steps(state: &State, cause: Option<&Ranked>) -> Vec<NextStep> {
    let Some(cause) = cause else { return runbook_steps(state) };
    let lang = state.facts.lang;
    let mut remedies: Vec<_> = signature::of(cause.category).into_iter().flat_map(|known| &known.remedies).collect();
    remedies.sort_by_key(|remedy| remedy.kind);
    let mut steps: Vec<NextStep> = remedies
        .into_iter()
        .take(MAX_REMEDIES)
        .map(|remedy| NextStep {
            text: format!("{}{}", label(remedy.kind, lang), lang.pick(&remedy.en, &remedy.zh)),
            command: remedy.command.as_deref().map(|command| fill(command, state, cause.service.as_deref())),
            source: "signature".into(),
        })
        .collect();
    let mut documents = std::collections::BTreeSet::new();
    let first_of_each = state.hits.iter().enumerate().filter(|(_, hit)| documents.insert(&hit.source));
    steps.extend(first_of_each.take(2).map(|(index, hit)| {
        let title = clean_line(&hit.title, 80);
        NextStep {
            text: lang.pick(format!("Read the runbook: {title}"), format!("参考文档：{title}")),
            command: None,
            source: format!("[{}]", index + 1),
        }
    }));
    steps
}

fn label(kind: RemedyKind, lang: Lang) -> &'static str {
    match kind {
        RemedyKind::Mitigate => lang.pick("Mitigate: ", "止损："),
        RemedyKind::Verify => lang.pick("Verify: ", "确认："),
        RemedyKind::Fix => lang.pick("Fix: ", "根治："),
    }
}

/// A command with its placeholders filled in. `{ns}` becomes `-n NAMESPACE ` where the namespace is known.
pub(super) fn fill(command: &str, state: &State, service: Option<&str>) -> String {
    let service = service.or(state.facts.service.as_deref()).map_or_else(|| "SERVICE".into(), quote_for_shell);
    let namespace = state.facts.namespace.as_deref().map(quote_for_shell);
    let flag = namespace.map(|namespace| format!("-n {namespace} ")).unwrap_or_default();
    command.replace("{ns}", &flag).replace("{service}", &service)
}

/// A word that a POSIX shell takes as it is.
pub(super) fn quote_for_shell(word: &str) -> String {
    let word = clean_line(word, 200);
    let is_plain = !word.is_empty()
        && !word.starts_with('-')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@'));
    if is_plain { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The list items of the passages found: first those of passages that say what to check, then the others in their
/// order. What changes things is not for somebody who does not know the cause yet.
fn runbook_steps(state: &State) -> Vec<NextStep> {
    let mut hits: Vec<(usize, &Hit)> = state.hits.iter().enumerate().collect();
    hits.sort_by_key(|(_, hit)| !says_what_to_check(hit));
    let mut steps: Vec<NextStep> = Vec::new();
    for (index, hit) in hits {
        let mut items = list_items(&hit.content);
        items.retain(|item| !CHANGING.iter().any(|mark| item.starts_with(mark)));
        if items.is_empty() {
            items.extend(hit.content.lines().find(|line| is_prose(line)).map(|line| line.trim().to_string()));
        }
        for text in items {
            let text = clean_line(&text, MAX_STEP_CHARS);
            if steps.len() < MAX_RUNBOOK_STEPS && !steps.iter().any(|step| step.text == text) {
                steps.push(NextStep { text, command: None, source: format!("[{}]", index + 1) });
            }
        }
    }
    steps
}

fn says_what_to_check(hit: &Hit) -> bool {
    let heading = hit.headings.last().map(|heading| heading.to_lowercase()).unwrap_or_default();
    ["check", "diagnos", "investigat", "triage", "steps", "检查", "排查", "诊断", "步骤", "处理"]
        .iter()
        .any(|word| heading.contains(word))
}

/// A line of text, not a heading, a fence, or a field for machines.
fn is_prose(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with(['#', '`', '~', '|']) && !is_field(line)
}

/// Numbered and bulleted lines outside of code fences, without their marks.
pub(super) fn list_items(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if let Some(item) = (!fenced).then(|| unmark(line)).flatten() {
            items.push(item.to_string());
        }
    }
    items
}

fn unmark(line: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
    let numbered = || {
        let digits = line.find(|c: char| !c.is_ascii_digit()).filter(|&end| (1..=2).contains(&end))?;
        let rest = &line[digits..];
        [". ", ") ", "、", "．"].iter().find_map(|mark| rest.strip_prefix(mark))
    };
    let item = bullet.or_else(numbered)?.trim();
    let item = item.strip_prefix("[ ] ").unwrap_or(item);
    (head(item, 4).chars().count() >= 4).then_some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote_for_shell("order-service"), "order-service");
        assert_eq!(quote_for_shell("a b; rm -rf '/'"), r"'a b; rm -rf '\''/'\'''");
        assert_eq!(quote_for_shell("-x"), "'-x'");
        assert_eq!(quote_for_shell(""), "''");
    }

    #[test]
    fn list_items_are_found_outside_of_fences() {
        let text = "Intro\n1. Check the pool\n```\n- not this one\n```\n- [ ] Roll back\n2、查看连接池\n- x\n";
        assert_eq!(list_items(text), ["Check the pool", "Roll back", "查看连接池"]);
    }
}
