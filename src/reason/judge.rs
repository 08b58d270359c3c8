//! What the engineer said of hypotheses weighs on a conclusion: what is dismissed is not named as the cause, what is
//! pinned stands first. Confidences stay what the evidence makes them.

use crate::domain::{Hypothesis, Judged, Lang, RootCause, Verdict};
use crate::reason::Conclusion;

/// The conclusion with the engineer's judgements in it; as it was when there are none.
pub fn apply(mut conclusion: Conclusion, judged: &Judged, lang: Lang) -> Conclusion {
    if judged.pinned.is_empty() && judged.dismissed.is_empty() {
        return conclusion;
    }
    let is_dismissed = |one: &Hypothesis| judged.dismissed.contains(&one.key());
    let is_pinned = |one: &Hypothesis| judged.pinned.contains(&one.key()) && one.verdict != Verdict::Refuted;
    for one in conclusion.hypotheses.iter_mut().filter(|one| is_dismissed(one) && one.verdict != Verdict::Refuted) {
        one.verdict = Verdict::Refuted;
        let said = lang.pick("Dismissed by the engineer.", "已被值班工程师排除。");
        one.rationale = format!("{said}{}{}", lang.pick(" ", ""), one.rationale).trim_end().to_owned();
    }
    // Stable: within each group the evidence decides.
    conclusion.hypotheses.sort_by_key(|one| (is_dismissed(one), !is_pinned(one)));
    let named = conclusion.root_cause.as_ref().map(|cause| (cause.category, cause.service.clone()));
    let first = conclusion.hypotheses.first().filter(|one| one.verdict == Verdict::Supported);
    if first.map(|one| (one.category, one.service.clone())) == named {
        return conclusion;
    }
    let next = first.map(|one| RootCause {
        title: one.title.clone(),
        service: one.service.clone(),
        category: one.category,
        confidence: one.confidence,
        evidence: one.evidence_for.clone(),
    });
    let was_dismissed = conclusion
        .hypotheses
        .iter()
        .any(|one| is_dismissed(one) && named.as_ref() == Some(&(one.category, one.service.clone())));
    // A cause that the reasoner named gives way only to what the engineer said, never to nothing by itself.
    if !was_dismissed && next.is_none() {
        return conclusion;
    }
    let said = match (&conclusion.root_cause, &next) {
        (Some(before), Some(now)) => lang.pick(
            format!("By the engineer's judgement {} comes before {}.", now.title, before.title),
            format!("按值班工程师的判断，{}优先于{}。", now.title, before.title),
        ),
        (Some(before), None) => lang.pick(
            format!("The engineer dismissed {}; no other cause is supported well enough.", before.title),
            format!("值班工程师已否决{}，其他原因证据不足。", before.title),
        ),
        (None, _) => String::new(),
    };
    if !said.is_empty() {
        conclusion.summary = format!("{said}{}{}", lang.pick(" ", ""), conclusion.summary);
    }
    conclusion.root_cause = next;
    conclusion
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Category, HypothesisKey};

    fn hypothesis(category: Category, confidence: f64, verdict: Verdict) -> Hypothesis {
        Hypothesis {
            title: category.id().to_owned(),
            category,
            service: None,
            evidence_for: vec!["E1".into()],
            evidence_against: Vec::new(),
            confidence,
            verdict,
            rationale: "It shows [E1].".into(),
        }
    }

    fn conclusion() -> Conclusion {
        let hypotheses = vec![
            hypothesis(Category::OomKilled, 0.9, Verdict::Supported),
            hypothesis(Category::BadDeployment, 0.6, Verdict::Supported),
            hypothesis(Category::DiskFull, 0.2, Verdict::Possible),
        ];
        let root_cause = Some(RootCause {
            title: "oom_killed".into(),
            service: None,
            category: Category::OomKilled,
            confidence: 0.9,
            evidence: vec!["E1".into()],
        });
        Conclusion { summary: "S.".into(), root_cause, hypotheses, next_steps: Vec::new(), unchecked: Vec::new() }
    }

    fn key(category: Category) -> HypothesisKey {
        HypothesisKey { category, service: None }
    }

    fn order(conclusion: &Conclusion) -> Vec<Category> {
        conclusion.hypotheses.iter().map(|one| one.category).collect()
    }

    #[test]
    fn a_dismissed_cause_gives_way_to_the_next_supported_one() {
        let judged = Judged { dismissed: vec![key(Category::OomKilled)], ..Judged::default() };
        let applied = apply(conclusion(), &judged, Lang::En);
        assert_eq!(order(&applied), [Category::BadDeployment, Category::DiskFull, Category::OomKilled]);
        assert_eq!(applied.root_cause.map(|cause| cause.category), Some(Category::BadDeployment));
        assert_eq!(applied.summary, "By the engineer's judgement bad_deployment comes before oom_killed. S.");
        assert_eq!(applied.hypotheses[2].verdict, Verdict::Refuted);
    }

    #[test]
    fn what_is_pinned_stands_first_but_is_the_cause_only_when_supported() {
        let pinned = |category| Judged { pinned: vec![key(category)], ..Judged::default() };
        let possible = apply(conclusion(), &pinned(Category::DiskFull), Lang::En);
        assert_eq!(order(&possible)[0], Category::DiskFull);
        assert_eq!(possible.root_cause.map(|cause| cause.category), Some(Category::OomKilled));
        let supported = apply(conclusion(), &pinned(Category::BadDeployment), Lang::En);
        assert_eq!(supported.root_cause.map(|cause| cause.category), Some(Category::BadDeployment));
    }

    #[test]
    fn without_judgements_nothing_changes() {
        assert_eq!(apply(conclusion(), &Judged::default(), Lang::En), conclusion());
    }
}
