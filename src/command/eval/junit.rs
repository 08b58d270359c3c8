//! The results as JUnit XML, which build servers show.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::score::Scored;

/// One suite for each reasoner, one case for each run.
///
/// # Errors
/// None that is known: the document is made of plain texts.
pub fn report(scored: &[Scored]) -> anyhow::Result<String> {
    let mut suites: BTreeMap<&str, TestSuite> = BTreeMap::new();
    for run in scored {
        let suite =
            suites.entry(&run.reasoner).or_insert_with(|| TestSuite::new(format!("oncall eval: {}", run.reasoner)));
        suite.add_test_case(case(run));
    }
    let mut report = Report::new("oncall eval");
    report.add_test_suites(suites.into_values());
    Ok(report.to_string()?)
}

fn case(run: &Scored) -> TestCase {
    let status = if run.is_right() {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(run.faults().join("; "));
        status
    };
    let mut case = TestCase::new(run.incident.clone(), status);
    case.set_classname(run.reasoner.clone());
    case.set_time(Duration::from_millis(run.milliseconds));
    case
}

#[cfg(test)]
mod tests {
    use super::super::score::tests::scored;
    use super::*;

    #[test]
    fn a_wrong_run_is_a_failure_with_what_was_wrong() {
        let wrong = Scored { category: "unknown", ..scored("b") };
        let xml = report(&[scored("a"), wrong]).unwrap();
        assert!(xml.contains(r#"tests="2""#) && xml.contains(r#"failures="1""#), "{xml}");
        assert!(xml.contains(r#"message="category unknown, expected oom_killed""#), "{xml}");
        assert!(xml.contains(r#"time="1.500""#), "{xml}");
    }
}
