//! What is right in a diagnosis and what is not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::domain::{Category, Diagnosis, Usage, Verdict};
use crate::source::incident::Expected;
use crate::ui::report;

/// What a run took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spent {
    pub calls: usize,
    pub time: Duration,
    pub usage: Usage,
}

/// A diagnosis held against the right answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scored {
    pub incident: String,
    /// `rules`, or the model.
    pub reasoner: String,
    pub expected_category: &'static str,
    pub category: &'static str,
    pub expected_service: Option<String>,
    pub service: Option<String>,
    pub confidence: Option<f64>,
    /// Texts that the report should hold and does not.
    pub not_mentioned: Vec<String>,
    pub mentions: usize,
    /// What was named as a cause and must not be.
    pub forbidden: Vec<String>,
    /// Hypotheses held to be supported that cite nothing, or evidence that does not exist.
    pub unsupported: Vec<String>,
    pub tool_calls: usize,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost: Option<f64>,
    pub milliseconds: u64,
}

impl Scored {
    pub fn of(incident: &str, expected: &Expected, diagnosis: &Diagnosis, zone: &TimeZone, spent: Spent) -> Self {
        let text = report::markdown(diagnosis, zone);
        let cause = diagnosis.root_cause.as_ref();
        Self {
            incident: incident.to_owned(),
            reasoner: diagnosis.model.clone().unwrap_or_else(|| diagnosis.reasoner.clone()),
            expected_category: expected.category.id(),
            category: cause.map_or(Category::Unknown, |cause| cause.category).id(),
            expected_service: expected.service.clone(),
            service: cause.and_then(|cause| cause.service.clone()),
            confidence: cause.map(|cause| cause.confidence),
            not_mentioned: expected.must_mention.iter().filter(|text_| !text.contains(*text_)).cloned().collect(),
            mentions: expected.must_mention.len(),
            forbidden: forbidden(expected, diagnosis),
            unsupported: unsupported(diagnosis),
            tool_calls: spent.calls,
            input_tokens: spent.usage.input_tokens,
            output_tokens: spent.usage.output_tokens,
            cost: spent.usage.cost,
            milliseconds: u64::try_from(spent.time.as_millis()).unwrap_or(u64::MAX),
        }
    }

    pub fn category_is_right(&self) -> bool {
        self.category == self.expected_category
    }

    /// Nobody has to be named where no service is expected.
    pub fn service_is_right(&self) -> bool {
        self.expected_service.is_none() || self.service == self.expected_service
    }

    pub fn is_right(&self) -> bool {
        self.faults().is_empty()
    }

    /// Everything that is wrong, in words.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.category_is_right() {
            faults.push(format!("category {}, expected {}", self.category, self.expected_category));
        }
        if !self.service_is_right() {
            let named = |service: &Option<String>| service.clone().unwrap_or_else(|| "none".to_owned());
            faults.push(format!("service {}, expected {}", named(&self.service), named(&self.expected_service)));
        }
        faults.extend(self.not_mentioned.iter().map(|text| format!("not mentioned: {text}")));
        faults.extend(self.forbidden.iter().map(|text| format!("forbidden claim: {text}")));
        faults.extend(self.unsupported.iter().map(|text| format!("unsupported claim: {text}")));
        faults
    }
}

/// The cause, and hypotheses held to be supported, that are of a forbidden category or say a forbidden text.
fn forbidden(expected: &Expected, diagnosis: &Diagnosis) -> Vec<String> {
    let cause = diagnosis.root_cause.iter().map(|cause| (cause.category.id(), cause.title.as_str()));
    let supported = diagnosis.hypotheses.iter().filter(|hypothesis| hypothesis.verdict == Verdict::Supported);
    let claims: BTreeSet<(&str, &str)> =
        cause.chain(supported.map(|hypothesis| (hypothesis.category.id(), hypothesis.title.as_str()))).collect();
    let is_claimed = |text: &&String| claims.iter().any(|(id, title)| *id == text.as_str() || title.contains(*text));
    expected.must_not_claim.iter().filter(is_claimed).cloned().collect()
}

fn unsupported(diagnosis: &Diagnosis) -> Vec<String> {
    let ids: BTreeSet<&str> = diagnosis.evidence.iter().map(|evidence| evidence.id.as_str()).collect();
    let is_bare = |cited: &[String]| cited.is_empty() || cited.iter().any(|id| !ids.contains(id.as_str()));
    let supported = diagnosis.hypotheses.iter().filter(|hypothesis| hypothesis.verdict == Verdict::Supported);
    let hypotheses = supported.filter(|hypothesis| is_bare(&hypothesis.evidence_for)).map(|h| h.title.clone());
    let cause = diagnosis.root_cause.iter().filter(|cause| is_bare(&cause.evidence)).map(|cause| cause.title.clone());
    hypotheses.chain(cause).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The runs of one incident by one reasoner.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub incident: String,
    pub reasoner: String,
    pub runs: usize,
    pub right: usize,
    pub category_right: usize,
    pub service_right: usize,
    /// Over all runs.
    pub mentioned: usize,
    pub mentions: usize,
    pub forbidden: usize,
    pub unsupported: usize,
    /// Means of a run.
    pub tool_calls: usize,
    pub tokens: u64,
    pub cost: Option<f64>,
    pub milliseconds: u64,
    /// What was wrong, each once.
    pub faults: BTreeSet<String>,
}

/// One row for each incident and reasoner, by their names.
pub fn rows(scored: &[Scored]) -> Vec<Row> {
    let mut groups: BTreeMap<(&str, &str), Vec<&Scored>> = BTreeMap::new();
    for run in scored {
        groups.entry((&run.incident, &run.reasoner)).or_default().push(run);
    }
    groups.into_iter().map(|((incident, reasoner), runs)| row(incident, reasoner, &runs)).collect()
}

fn row(incident: &str, reasoner: &str, runs: &[&Scored]) -> Row {
    let n = runs.len().max(1);
    let count = |is: fn(&Scored) -> bool| runs.iter().filter(|run| is(run)).count();
    let sum = |of: fn(&Scored) -> usize| runs.iter().map(|run| of(run)).sum::<usize>();
    let costs: Vec<f64> = runs.iter().filter_map(|run| run.cost).collect();
    Row {
        incident: incident.to_owned(),
        reasoner: reasoner.to_owned(),
        runs: runs.len(),
        right: count(Scored::is_right),
        category_right: count(Scored::category_is_right),
        service_right: count(Scored::service_is_right),
        mentioned: sum(|run| run.mentions - run.not_mentioned.len()),
        mentions: sum(|run| run.mentions),
        forbidden: sum(|run| run.forbidden.len()),
        unsupported: sum(|run| run.unsupported.len()),
        tool_calls: sum(|run| run.tool_calls) / n,
        tokens: runs.iter().map(|run| run.input_tokens + run.output_tokens).sum::<u64>() / n as u64,
        cost: (!costs.is_empty()).then(|| costs.iter().sum::<f64>() / costs.len() as f64),
        milliseconds: runs.iter().map(|run| run.milliseconds).sum::<u64>() / n as u64,
        faults: runs.iter().flat_map(|run| run.faults()).collect(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn scored(incident: &str) -> Scored {
        Scored {
            incident: incident.into(),
            reasoner: "rules".into(),
            expected_category: "oom_killed",
            category: "oom_killed",
            expected_service: Some("cart".into()),
            service: Some("cart".into()),
            confidence: Some(0.9),
            not_mentioned: Vec::new(),
            mentions: 2,
            forbidden: Vec::new(),
            unsupported: Vec::new(),
            tool_calls: 12,
            input_tokens: 0,
            output_tokens: 0,
            cost: None,
            milliseconds: 1500,
        }
    }

    #[test]
    fn every_fault_is_told_and_one_is_enough_to_be_wrong() {
        assert!(scored("a").is_right());
        let wrong = Scored {
            category: "unknown",
            service: None,
            not_mentioned: vec!["2.15.0".into()],
            forbidden: vec!["crash_loop".into()],
            unsupported: vec!["a guess".into()],
            ..scored("a")
        };
        let want = [
            "category unknown, expected oom_killed",
            "service none, expected cart",
            "not mentioned: 2.15.0",
            "forbidden claim: crash_loop",
            "unsupported claim: a guess",
        ];
        assert_eq!(wrong.faults(), want);
    }

    #[test]
    fn runs_of_one_incident_are_one_row() {
        let wrong = Scored { category: "unknown", milliseconds: 500, ..scored("a") };
        let rows = rows(&[scored("b"), scored("a"), wrong]);
        let counts: Vec<_> = rows.iter().map(|row| (row.incident.as_str(), row.runs, row.right)).collect();
        assert_eq!(counts, [("a", 2, 1), ("b", 1, 1)]);
        assert_eq!((rows[0].milliseconds, rows[0].mentioned, rows[0].mentions), (1000, 4, 4));
    }
}
