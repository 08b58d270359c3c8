//! Several sources asked as one: a source that fails is a note beside what the others say; when all fail, so does the
//! call.

use super::arguments::source_failure;
use crate::domain::{Failure, FailureKind, SourceReport, SourceStatus};
use crate::source::SourceError;

/// Who answered, and what is to be said beside the answers.
#[derive(Debug, Default)]
pub struct Roll {
    /// The sources that answered.
    pub names: Vec<String>,
    pub notes: Vec<String>,
    /// How each source answered, in the order in which they were asked.
    asked: Vec<SourceReport>,
    failures: Vec<Failure>,
}

impl Roll {
    /// Takes down what a source gave; hands back the answer, if it is one.
    pub fn take<T>(&mut self, source: &str, answer: Result<T, SourceError>) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.names.push(source.to_owned());
                self.report(source, SourceStatus::Ok, String::new());
                Some(answer)
            }
            Err(error) => {
                self.fail(source, error);
                None
            }
        }
    }

    /// The source that answered last had nothing.
    pub fn found_nothing(&mut self) {
        if let Some(last) = self.asked.last_mut().filter(|last| last.status == SourceStatus::Ok) {
            last.status = SourceStatus::Empty;
        }
    }

    /// Takes down what is to be said of the source that answered last.
    pub fn says(&mut self, caveat: Option<String>) {
        if let (Some(last), Some(caveat)) = (self.asked.last_mut(), caveat) {
            last.detail = caveat;
        }
    }

    /// Takes down a failure.
    pub fn fail(&mut self, source: &str, error: SourceError) {
        self.notes.push(format!("{source}: {error}"));
        self.report(source, status_of(error.kind), error.message.clone());
        self.failures.push(source_failure(source, error));
    }

    /// Takes down how a source answered.
    pub fn report(&mut self, source: &str, status: SourceStatus, detail: String) {
        self.asked.push(SourceReport { name: source.to_owned(), status, detail });
    }

    /// What the same sources said to another question, taken down as well.
    pub fn merged(mut self, other: Self) -> Self {
        self.notes.extend(other.notes);
        for report in other.asked {
            match self.asked.iter_mut().find(|known| known.name == report.name) {
                Some(known) if known.status.badness() < report.status.badness() => *known = report,
                Some(_) => {}
                None => {
                    if !matches!(report.status, SourceStatus::Ok | SourceStatus::Empty) {
                        self.asked.push(report);
                        continue;
                    }
                    self.names.push(report.name.clone());
                    self.asked.push(report);
                }
            }
        }
        self
    }

    /// How each source answered, where there is more to say than the name of one.
    pub fn strip(&mut self) -> Vec<SourceReport> {
        let has_more = self.asked.len() > 1 || self.asked.iter().any(|report| !report.detail.is_empty());
        if has_more { std::mem::take(&mut self.asked) } else { Vec::new() }
    }

    /// The failures as one, when no source answered.
    pub fn checked(mut self) -> Result<Self, Failure> {
        if !self.names.is_empty() || self.failures.is_empty() {
            return Ok(self);
        }
        let message = self.notes.join("; ");
        let mut failure = self.failures.swap_remove(0);
        if !self.failures.is_empty() {
            failure.message = message;
            failure.asked = self.asked;
        }
        Err(failure)
    }
}

/// How a failure stands in the source strip.
pub fn status_of(kind: FailureKind) -> SourceStatus {
    match kind {
        FailureKind::Timeout => SourceStatus::Timeout,
        FailureKind::Unauthorized => SourceStatus::Unauthorized,
        _ => SourceStatus::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> SourceError {
        SourceError::new(FailureKind::Unauthorized, "refused")
    }

    #[test]
    fn a_source_that_fails_is_a_note_beside_the_others() {
        let mut roll = Roll::default();
        assert_eq!((roll.take::<u8>("a", Err(refused())), roll.take("b", Ok(7))), (None, Some(7)));
        let roll = roll.checked().unwrap();
        assert_eq!((roll.names, roll.notes), (vec!["b".to_owned()], vec!["a: refused".to_owned()]));
    }

    #[test]
    fn when_all_fail_the_first_failure_is_the_answer() {
        let mut roll = Roll::default();
        roll.fail("a", refused());
        roll.fail("b", SourceError::new(FailureKind::Timeout, "late"));
        let failure = roll.checked().unwrap_err();
        assert_eq!((failure.kind, failure.source.as_deref()), (FailureKind::Unauthorized, Some("a")));
        assert_eq!(failure.message, "a: refused; b: late");
        let strip: Vec<_> = failure.asked.iter().map(|report| (report.name.as_str(), report.status)).collect();
        assert_eq!(strip, [("a", SourceStatus::Unauthorized), ("b", SourceStatus::Timeout)]);
        assert!(Roll::default().checked().is_ok());
    }
}
