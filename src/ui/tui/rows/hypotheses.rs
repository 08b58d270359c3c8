//! Hypotheses, ranked, with what speaks for and against each.

use ratatui::text::{Line, Span};

use super::{Row, Target, evidence_under, is_open, mark, spread};
use crate::domain::{Hypothesis, Verdict};
use crate::ui::tui::markdown;
use crate::ui::tui::state::{App, Panel};
use crate::ui::tui::text;

pub fn rows(app: &App, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, hypothesis) in app.run.hypotheses.iter().enumerate() {
        let target = Target::Hypothesis(index);
        rows.push(Row::new(head(app, hypothesis, &target, columns), target.clone()));
        rows.push(weights(app, hypothesis, &target));
        if is_open(app, Panel::Hypotheses, &target) {
            rows.extend(inside(app, hypothesis, columns, &target));
        }
    }
    rows
}

fn head(app: &App, hypothesis: &Hypothesis, target: &Target, columns: usize) -> Line<'static> {
    let lang = app.lang;
    let style = match hypothesis.verdict {
        Verdict::Supported => app.theme.ok,
        Verdict::Possible => app.theme.warn,
        Verdict::Refuted => app.theme.dim,
    };
    let verdict = hypothesis.verdict.title(lang);
    let key = hypothesis.key();
    let said = if app.run.pinned.contains(&key) {
        lang.pick(" pinned", " 已置顶")
    } else if app.run.dismissed.contains(&key) {
        lang.pick(" dismissed", " 已否决")
    } else {
        ""
    };
    let percent = text::pad_left(&format!("{:.0} %", hypothesis.confidence * 100.0), 5);
    let right = format!("{verdict}{said}");
    let room = columns.saturating_sub(2 + 6 + 1 + unicode_width::UnicodeWidthStr::width(right.as_str()));
    let title = text::cut(&text::line(&hypothesis.title), room);
    let left = vec![
        Span::styled(mark(app, Panel::Hypotheses, target), app.theme.dim),
        Span::styled(format!("{percent} "), style),
        Span::styled(title, app.theme.text),
    ];
    spread(left, right, style, columns)
}

fn weights(app: &App, hypothesis: &Hypothesis, target: &Target) -> Row {
    let lang = app.lang;
    let mut spans = vec![Span::raw("    ")];
    for (label, ids, style) in [
        (lang.pick("for", "支持"), &hypothesis.evidence_for, app.theme.ok),
        (lang.pick("against", "反对"), &hypothesis.evidence_against, app.theme.error),
    ] {
        if !ids.is_empty() {
            spans.push(Span::styled(format!("{label} "), style));
            spans.push(Span::styled(format!("{}  ", ids.join(", ")), app.theme.cite));
        }
    }
    let cites = hypothesis.evidence_for.iter().chain(&hypothesis.evidence_against).cloned().collect();
    Row::citing(Line::from(spans), target.clone(), cites)
}

fn inside(app: &App, hypothesis: &Hypothesis, columns: usize, target: &Target) -> Vec<Row> {
    let lines = markdown::render(&text::line(&hypothesis.rationale), columns.saturating_sub(4), &app.theme);
    let mut rows: Vec<Row> = lines
        .into_iter()
        .map(|mut told| {
            told.line.spans.insert(0, Span::raw("    "));
            Row::citing(told.line, target.clone(), told.cites)
        })
        .collect();
    for (label, ids) in [
        (app.lang.pick("    for:", "    支持："), &hypothesis.evidence_for),
        (app.lang.pick("    against:", "    反对："), &hypothesis.evidence_against),
    ] {
        if !ids.is_empty() {
            rows.push(Row::new(Line::styled(label, app.theme.dim), target.clone()));
            rows.extend(ids.iter().map(|id| evidence_under(app, id, columns)));
        }
    }
    rows
}
