//! The size of an answer, held to a limit.
//!
//! In: what a tool gave. Out: as many of its first findings, the most telling ones, as fit; a cut is marked and said.

use serde::Serialize;
use serde_json::Value;

use crate::domain::text::clean;
use crate::domain::{Finding, Output};

/// Findings in one answer.
pub const MAX_FINDINGS: usize = 100;
/// Bytes of all findings of an answer, as JSON.
pub const MAX_OUTPUT_BYTES: usize = 512 << 10;
/// Characters kept of a single finding that is larger than the whole limit.
const MAX_CUT_CHARS: usize = 20_000;

/// Cuts an answer to the limits.
pub fn cut(mut output: Output) -> Output {
    let found = output.findings.len();
    let mut bytes = 0usize;
    let fitting = output.findings.iter().take(MAX_FINDINGS).take_while(|finding| {
        bytes = bytes.saturating_add(json_length(finding));
        bytes <= MAX_OUTPUT_BYTES
    });
    let kept = fitting.count();
    if kept == found {
        return output;
    }
    if kept == 0 {
        let json = serde_json::to_string(&output.findings[0]).unwrap_or_default();
        output.findings[0] = Finding::Other { value: Value::String(clean(&json, MAX_CUT_CHARS)) };
    }
    output.findings.truncate(kept.max(1));
    output.truncated = true;
    output.notes.push(format!("cut: {} of {found} findings are shown; ask for less to see the others", kept.max(1)));
    output
}

/// Length as JSON, without making the text.
fn json_length(finding: &impl Serialize) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, finding) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Served;

    fn output(findings: Vec<Finding>) -> Output {
        Output {
            source: "s".into(),
            window: None,
            findings,
            notes: Vec::new(),
            truncated: false,
            served: Served::Live,
            asked: Vec::new(),
            retrieval: None,
        }
    }

    fn nothing(bytes: usize) -> Finding {
        Finding::Nothing { what: "x".repeat(bytes) }
    }

    #[test]
    fn an_answer_within_the_limits_stays_as_it_is() {
        let whole = output(vec![nothing(10); MAX_FINDINGS]);
        assert_eq!(cut(whole.clone()), whole);
    }

    #[test]
    fn the_first_findings_that_fit_are_kept() {
        let many = cut(output(vec![nothing(10); MAX_FINDINGS + 1]));
        assert_eq!((many.findings.len(), many.truncated), (MAX_FINDINGS, true));
        let large = cut(output(vec![nothing(MAX_OUTPUT_BYTES / 2 - 100); 3]));
        assert_eq!((large.findings.len(), large.truncated), (2, true));
        assert_eq!(large.notes, ["cut: 2 of 3 findings are shown; ask for less to see the others"]);
    }

    #[test]
    fn a_finding_over_the_whole_limit_is_cut_itself() {
        let cut = cut(output(vec![nothing(MAX_OUTPUT_BYTES * 2)]));
        let Finding::Other { value: Value::String(text) } = &cut.findings[0] else { panic!("{:?}", cut.findings) };
        assert_eq!((text.len(), cut.truncated), (MAX_CUT_CHARS + "...".len(), true));
    }
}
