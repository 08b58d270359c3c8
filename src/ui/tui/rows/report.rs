//! The report, rendered; until it is there, the answer as far as it is written.

use super::{Row, Target};
use crate::ui::tui::markdown;
use crate::ui::tui::state::App;

pub fn rows(app: &App, columns: usize) -> Vec<Row> {
    let text = if app.report.is_empty() { &app.run.answer } else { &app.report };
    let lines = markdown::render(text, columns, &app.theme);
    lines.into_iter().map(|told| Row::citing(told.line, Target::Nothing, told.cites)).collect()
}
