//! `--view plain`: one line per happening on stderr, a spinner on a terminal, the Markdown report on stdout.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;

use super::{Renderer, report};
use crate::domain::text::{clean_line, counted};
use crate::domain::{Call, Diagnosis, Lang};
use crate::event::{CallResult, Event, EventKind};

const LINE_CHARS: usize = 400;
const SPINNER_TICK: Duration = Duration::from_millis(120);

/// What stderr gets while the run is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing but warnings.
    Silent,
    /// A line per happening.
    Lines,
    /// The same, above a spinner that tells what runs now.
    Spinner,
}

/// Writes happenings to `err` and the report to `out`.
pub struct PlainRenderer<O, E> {
    out: O,
    err: E,
    progress: Progress,
    lang: Lang,
    zone: TimeZone,
    /// Columns to wrap the report at; `None` leaves lines whole, for pipes.
    columns: Option<usize>,
    spinner: Option<ProgressBar>,
    running: BTreeMap<u64, Call>,
}

impl<O: Write, E: Write> PlainRenderer<O, E> {
    pub fn new(out: O, err: E, progress: Progress, lang: Lang, zone: TimeZone, columns: Option<usize>) -> Self {
        let spinner = (progress == Progress::Spinner).then(|| {
            let bar = ProgressBar::new_spinner().with_style(ProgressStyle::default_spinner().tick_chars("|/-\\ "));
            bar.enable_steady_tick(SPINNER_TICK);
            bar
        });
        Self { out, err, progress, lang, zone, columns, spinner, running: BTreeMap::new() }
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        let text = clean_line(text, LINE_CHARS);
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| writeln!(self.err, "{text}")),
            None => writeln!(self.err, "{text}"),
        }
    }

    fn show_running(&self) {
        let Some(spinner) = &self.spinner else { return };
        let tools: Vec<&str> = self.running.values().map(|call| call.tool.as_str()).collect();
        spinner.set_message(tools.join(", "));
    }

    /// The line that tells an event, where it deserves one.
    fn describe(&mut self, kind: &EventKind) -> Option<String> {
        let lang = self.lang;
        match kind {
            EventKind::RunStarted { alert, .. } => {
                Some(lang.pick(format!("alert: {}", alert.name), format!("告警：{}", alert.name)))
            }
            EventKind::FactsFound { facts } => {
                self.lang = facts.lang;
                let service = facts.service.as_deref().unwrap_or("?");
                let (from, to) = (self.clock(facts.window.start), self.clock(facts.window.end));
                Some(self.lang.pick(
                    format!("facts: service {service}, looking at {from} to {to}"),
                    format!("要点：服务 {service}，查看 {from} 至 {to}"),
                ))
            }
            EventKind::PlanMade { plan } => {
                let n = plan.steps.len();
                Some(lang.pick(format!("plan: {}", counted(n, "step")), format!("计划：{n} 步")))
            }
            EventKind::PlanRevised { reason, .. } => {
                Some(lang.pick(format!("plan revised: {reason}"), format!("计划调整：{reason}")))
            }
            EventKind::StepStarted { step, question } => {
                Some(lang.pick(format!("step {step}: {question}"), format!("步骤 {step}：{question}")))
            }
            EventKind::StepEnded { step, conclusion } if !conclusion.is_empty() => {
                Some(lang.pick(format!("step {step} done: {conclusion}"), format!("步骤 {step} 完成：{conclusion}")))
            }
            EventKind::CallStarted { call_id, call, .. } => {
                self.running.insert(*call_id, call.clone());
                self.show_running();
                None
            }
            EventKind::CallEnded { call_id, milliseconds, result, .. } => {
                let call = self.running.remove(call_id);
                self.show_running();
                call.map(|call| describe_call(&call, *milliseconds, result, lang))
            }
            EventKind::ToolClosed { tool, failures } => Some(lang.pick(
                format!("closed {tool} after {} in a row", counted(*failures, "failure")),
                format!("{tool} 连续失败 {failures} 次，已停用"),
            )),
            _ => None,
        }
    }

    fn clock(&self, at: jiff::Timestamp) -> String {
        at.to_zoned_datetime(self.zone.clone()).strftime("%H:%M:%S").to_string()
    }
}

fn describe_call(call: &Call, milliseconds: u64, result: &CallResult, lang: Lang) -> String {
    let call = crate::reason::words::call(call);
    match result {
        CallResult::Output { findings, .. } => lang.pick(
            format!("{call}: {} in {milliseconds} ms", counted(*findings, "finding")),
            format!("{call}：{findings} 条结果，{milliseconds} 毫秒"),
        ),
        CallResult::Failure { message, .. } => {
            lang.pick(format!("{call}: failed: {message}"), format!("{call}：失败：{message}"))
        }
    }
}

impl<O: Write, E: Write> Renderer for PlainRenderer<O, E> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if let EventKind::Warning { message } = &event.kind {
            let text = self.lang.pick(format!("warning: {message}"), format!("警告：{message}"));
            return self.line(&text);
        }
        match self.describe(&event.kind) {
            Some(text) if self.progress != Progress::Silent => self.line(&text),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, diagnosis: &Diagnosis) -> io::Result<()> {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
        let report = report::markdown(diagnosis, &self.zone);
        let report = match self.columns {
            Some(columns) => report::wrap(&report, columns),
            None => report,
        };
        self.out.write_all(report.as_bytes())?;
        self.out.flush()
    }
}
