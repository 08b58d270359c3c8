//! Which kinds of evidence were looked at, and which could not be: what is missing lowers confidence and is told.

use super::calls;
use crate::domain::text::clean_line;
use crate::domain::{Lang, Outcome, State};

/// A kind of evidence with the tools that give it.
struct Kind {
    tools: &'static [&'static str],
    en: &'static str,
    zh: &'static str,
    /// Share of confidence lost without it.
    loss: f64,
}

const KINDS: &[Kind] = &[
    Kind { tools: &[calls::METRICS, calls::DISCOVER], en: "metrics", zh: "指标", loss: 0.08 },
    Kind { tools: &[calls::LOGS], en: "logs", zh: "日志", loss: 0.1 },
    Kind { tools: &[calls::STATUS], en: "states of workloads", zh: "工作负载状态", loss: 0.06 },
    Kind { tools: &[calls::CHANGES], en: "recent changes", zh: "近期变更", loss: 0.03 },
];
const MAX_REASON_CHARS: usize = 160;

/// What was and was not looked at.
pub(super) struct Coverage {
    missing: Vec<(&'static Kind, Option<String>)>,
}

impl Coverage {
    pub fn of(state: &State) -> Self {
        let missing = KINDS
            .iter()
            .filter(|kind| {
                let made = state.invocations.iter().filter(|made| kind.tools.contains(&made.call.tool.as_str()));
                !made.into_iter().any(|made| matches!(made.outcome, Outcome::Output(_)))
            })
            .map(|kind| (kind, failure(state, kind)))
            .collect();
        Self { missing }
    }

    /// What confidence is multiplied by.
    pub fn factor(&self) -> f64 {
        1.0 - self.missing.iter().map(|(kind, _)| kind.loss).sum::<f64>()
    }

    /// One sentence for each kind that is missing.
    pub fn unchecked(&self, lang: Lang) -> Vec<String> {
        self.missing
            .iter()
            .map(|(kind, reason)| match reason {
                Some(reason) => lang
                    .pick(format!("{} could not be read: {reason}", kind.en), format!("{}无法读取：{reason}", kind.zh)),
                None => lang.pick(
                    format!("{} were not looked at: no source is configured, or nothing names what to ask", kind.en),
                    format!("未查看{}：没有配置数据源，或告警未指明查询对象", kind.zh),
                ),
            })
            .collect()
    }
}

fn failure(state: &State, kind: &Kind) -> Option<String> {
    state.invocations.iter().filter(|made| kind.tools.contains(&made.call.tool.as_str())).find_map(|made| {
        match &made.outcome {
            Outcome::Failure(failure) => Some(clean_line(&failure.message, MAX_REASON_CHARS)),
            Outcome::Output(_) => None,
        }
    })
}
