//! Several sources asked as one: a source that fails is a note beside what the others say; when all fail, so does the
//! call.

use super::arguments::source_failure;
use crate::domain::Failure;
use crate::source::SourceError;

/// Who answered, and what is to be said beside the answers.
#[derive(Debug, Default)]
pub struct Roll {
    /// The sources that answered.
    pub names: Vec<String>,
    pub notes: Vec<String>,
    first_failure: Option<Failure>,
}

impl Roll {
    /// Takes down what a source gave; hands back the answer, if it is one.
    pub fn take<T>(&mut self, source: &str, answer: Result<T, SourceError>) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.names.push(source.to_owned());
                Some(answer)
            }
            Err(error) => {
                self.fail(source, error);
                None
            }
        }
    }

    /// Takes down a failure.
    pub fn fail(&mut self, source: &str, error: SourceError) {
        self.notes.push(format!("{source}: {error}"));
        self.first_failure.get_or_insert(source_failure(source, error));
    }

    /// The first failure, when no source answered.
    pub fn checked(self) -> Result<Self, Failure> {
        match self.first_failure {
            Some(failure) if self.names.is_empty() => Err(failure),
            _ => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::FailureKind;

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
        assert!(Roll::default().checked().is_ok());
    }
}
