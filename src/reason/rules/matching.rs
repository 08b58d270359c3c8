//! Which clues of a signature an observation carries.

use super::observe::{Observation, View, change_kind};
use super::topology::holder;
use crate::domain::{Finding, SeriesShape, SeriesSummary};
use crate::reason::signature::{Against, Holder, Move, Signature};

/// A clue found in an observation.
pub(super) struct Match<'v, 'a> {
    pub observation: &'v Observation<'a>,
    pub group: &'static str,
    /// Log odds, with the observation's strength in them.
    pub weight: f64,
    /// Who holds the cause.
    pub service: String,
    /// Whether anything says that it is this service, rather than that it stands out.
    pub is_placed: bool,
}

/// A change explains what follows it within this many seconds in full, and nothing after the second bound.
const CHANGE_FULL_SECONDS: f64 = 12.0 * 60.0;
const CHANGE_NONE_SECONDS: f64 = 60.0 * 60.0;

/// All clues of a signature in a view.
pub(super) fn matches<'v, 'a>(view: &'v View<'a>, signature: &'static Signature) -> Vec<Match<'v, 'a>> {
    view.all.iter().flat_map(|observation| matches_of(view, observation, signature)).collect()
}

fn matches_of<'v, 'a>(
    view: &'v View<'a>,
    observation: &'v Observation<'a>,
    signature: &'static Signature,
) -> Vec<Match<'v, 'a>> {
    let mut found = Vec::new();
    let text = observation.text.as_str();
    let mut add = |group: &'static str, weight: f64, held: Holder| {
        let named = observation.service.as_deref().or(view.state.facts.service.as_deref());
        if let Some(own) = named.or(view.stands_out()).filter(|_| weight > 0.0) {
            let service = holder(&view.state.topology, own, text, held);
            let service = view.on_host(&service, signature.lies).unwrap_or(service);
            let is_placed = named.is_some() || service != own;
            found.push(Match { observation, group, weight, service, is_placed });
        }
    };
    let strength = observation.strength;
    match &observation.evidence.data {
        Finding::Pattern(_) => {
            for clue in signature.logs.iter().filter(|clue| clue.is_shown_by(text)) {
                add(clue.group.as_deref().unwrap_or("logs"), clue.weight * strength, clue.holder);
            }
        }
        Finding::Series(series) => {
            for clue in signature.metrics.iter().filter(|clue| clue.names.is_match(text)) {
                let excluded = clue.except.as_ref().is_some_and(|except| except.is_match(text));
                if !excluded && moves(series, &clue.moves) && within(series, clue.above, clue.below) {
                    let strength = strength.max(level_strength(&clue.moves));
                    add(clue.group.as_deref().unwrap_or("metrics"), clue.weight * strength, clue.holder);
                }
            }
        }
        Finding::Pod(_) | Finding::Event(_) | Finding::Node(_) | Finding::Workload(_) => {
            for clue in signature.status.iter().filter(|clue| clue.is_shown_by(text)) {
                add(clue.group.as_deref().unwrap_or("status"), clue.weight * strength, clue.holder);
            }
        }
        Finding::Change(_) | Finding::Rollout(_) => {
            let kind = change_kind(&observation.evidence.data);
            for clue in signature.changes.iter().filter(|clue| kind.is_some_and(|kind| clue.kinds.contains(&kind))) {
                if clue.patterns.as_ref().is_none_or(|patterns| patterns.is_match(text)) {
                    let weight = clue.weight * precedence(view, observation);
                    add(clue.group.as_deref().unwrap_or("change"), weight, Holder::Here);
                }
            }
        }
        _ => {}
    }
    found
}

/// A level that holds (`any` with a bound, `flat`) says the same whether or not the series moved.
fn level_strength(wanted: &[Move]) -> f64 {
    if wanted.iter().any(|one| matches!(one, Move::Any | Move::Flat)) { 0.8 } else { 0.0 }
}

/// How well a change explains a symptom by its time: shortly before it fully, long before it or after it not at all.
pub(super) fn precedence(view: &View<'_>, observation: &Observation<'_>) -> f64 {
    let (Some(at), Some(symptom)) = (observation.at, view.symptom_at) else { return 0.3 };
    let ahead = symptom.duration_since(at).as_secs_f64();
    if ahead < -60.0 {
        return 0.0;
    }
    (1.0 - (ahead - CHANGE_FULL_SECONDS) / (CHANGE_NONE_SECONDS - CHANGE_FULL_SECONDS)).clamp(0.0, 1.0)
}

/// Whether a series moves in one of the wanted ways.
pub(super) fn moves(series: &SeriesSummary, wanted: &[Move]) -> bool {
    let moved = series.shape != SeriesShape::Flat;
    wanted.iter().any(|one| match one {
        Move::Up => moved && series.rose() && series.shape != SeriesShape::Absent,
        Move::Down => moved && series.peak < series.baseline,
        Move::Ramp => series.shape == SeriesShape::Ramp && series.rose(),
        Move::Saturated => series.shape == SeriesShape::Saturated,
        Move::Absent => series.shape == SeriesShape::Absent,
        Move::Zero => moved && series.peak.abs() < f64::EPSILON && series.baseline > 0.0,
        Move::Flat => !moved,
        Move::Any => true,
    })
}

fn within(series: &SeriesSummary, above: Option<f64>, below: Option<f64>) -> bool {
    let values = [Some(series.peak), series.now.filter(|_| series.shape != SeriesShape::Spike), Some(series.baseline)];
    let high = values.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max);
    let low = values.into_iter().flatten().fold(f64::INFINITY, f64::min);
    above.is_none_or(|bound| high >= bound) && below.is_none_or(|bound| low <= bound)
}

/// The observations that carry a finding which speaks against a cause at `service`.
pub(super) fn contradictions<'v, 'a>(view: &'v View<'a>, against: &Against, service: &str) -> Vec<&'v Observation<'a>> {
    view.all
        .iter()
        .filter(|observation| observation.service.as_deref() == Some(service))
        .filter(|observation| match &observation.evidence.data {
            Finding::Pattern(_) => {
                observation.strength > 0.3 && against.logs.as_ref().is_some_and(|logs| logs.is_match(&observation.text))
            }
            Finding::Series(series) => {
                against.names.as_ref().is_some_and(|names| names.is_match(&observation.text))
                    && moves(series, &against.moves)
                    && within(series, against.above, against.below)
            }
            Finding::Pod(_) | Finding::Event(_) | Finding::Node(_) | Finding::Workload(_) => {
                observation.strength > 0.3
                    && against.status.as_ref().is_some_and(|status| status.is_match(&observation.text))
            }
            _ => false,
        })
        .collect()
}
