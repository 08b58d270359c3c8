//! Which series, and which services, stand out: many series come in, an order with reasons goes out.
//!
//! Series are ordered by the score of [`super::series`] (as BARO's RobustScorer), weighed by what the metric measures:
//! traffic moves with everything, so that it proves little by itself. Services are ordered by their series and, where
//! it is known who calls whom, by traversal of the service graph (as in MonitorRank, Kim et al., SIGMETRICS 2013, and
//! the baselines of PetShop, Hardt et al., CLeaR 2024): a service whose callees are healthy explains its callers'
//! trouble, and not the other way round.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::series::{ANOMALOUS, summarize};
use crate::domain::{Lang, RankedService, Series, SeriesShape, SeriesSummary, Symptom, Topology, Window, service_of};

/// Expressions named for one service.
const MAX_NAMED: usize = 8;
/// Share of its weight that a service keeps when a callee explains all of its trouble.
const EXPLAINED_KEEPS: f64 = 0.25;
/// Share of its weight that a service keeps when the alerting service does not depend on it.
const UNRELATED_KEEPS: f64 = 0.3;
/// Weights under this are no anomaly.
const ANOMALOUS_WEIGHT: f64 = 0.5;

/// What a metric measures, read from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    Errors,
    Latency,
    Saturation,
    Traffic,
    Other,
}

impl Signal {
    /// Reads the words of a metric name or expression.
    pub fn of(name: &str) -> Self {
        let name = name.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(ERROR_WORDS) {
            Self::Errors
        } else if has(LATENCY_WORDS) {
            Self::Latency
        } else if has(SATURATION_WORDS) {
            Self::Saturation
        } else if has(TRAFFIC_WORDS) {
            Self::Traffic
        } else {
            Self::Other
        }
    }

    /// How much an anomaly of it says about a cause.
    fn weight(self) -> f64 {
        match self {
            Self::Errors | Self::Latency => 1.0,
            Self::Saturation => 0.9,
            Self::Other => 0.7,
            Self::Traffic => 0.4,
        }
    }

    /// Whether an alert of this symptom speaks of it.
    fn answers(self, symptom: Symptom) -> bool {
        match symptom {
            Symptom::Errors | Symptom::Unavailable | Symptom::Certificate => self == Self::Errors,
            Symptom::Latency => self == Self::Latency,
            Symptom::Traffic => self == Self::Traffic,
            Symptom::Cpu | Symptom::Memory | Symptom::Disk | Symptom::Queue => self == Self::Saturation,
            _ => false,
        }
    }
}

const ERROR_WORDS: &[&str] = &[
    "error",
    "fail",
    "fault",
    "availab",
    "exception",
    "timeout",
    "timed_out",
    "rejected",
    "refused",
    "dropped",
    "abort",
    "5xx",
    "4xx",
    "success",
    "oom",
    "restart",
    "unhealthy",
];
const LATENCY_WORDS: &[&str] = &[
    "latency",
    "duration",
    "response_time",
    "elapsed",
    "_seconds_sum",
    "_seconds_bucket",
    "wait",
    "rtt",
    "delay",
    "slow",
];
const SATURATION_WORDS: &[&str] = &[
    "pool",
    "queue",
    "pending",
    "active",
    "usage",
    "utili",
    "throttl",
    "saturat",
    "memory",
    "heap",
    "cpu",
    "load",
    "disk",
    "filesystem",
    "inode",
    "_fds",
    "threads",
    "lag",
    "backlog",
    "evict",
    "gc_",
    "connections",
    "blocked",
    "lock",
];
const TRAFFIC_WORDS: &[&str] =
    &["request", "rps", "qps", "throughput", "bytes", "packets", "received", "sent", "calls", "messages", "hits"];

/// What is known of the trouble before its series are looked at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Focus {
    /// When the alert fired: the trouble began by then.
    pub alert_at: Option<Timestamp>,
    /// The service that alerts.
    pub service: Option<String>,
    pub symptom: Option<Symptom>,
    pub topology: Topology,
    /// The language of reasons.
    pub lang: Lang,
}

/// A series with its place among the others.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedSeries {
    pub summary: SeriesSummary,
    pub service: Option<String>,
    pub signal: Signal,
    /// What it is worth as a sign of trouble: the logarithm of its score, weighed by what it measures. 0 when it
    /// does not stand out.
    pub weight: f64,
}

/// Ranks series, each with the expression that gives it; most anomalous first.
pub fn rank_series<'a>(
    series: impl IntoIterator<Item = (&'a str, &'a Series)>,
    window: Window,
    focus: &Focus,
) -> Vec<RankedSeries> {
    let mut ranked: Vec<RankedSeries> = series
        .into_iter()
        .map(|(expr, series)| {
            let summary = summarize(expr, series, window, focus.alert_at);
            let signal = Signal::of(expr);
            let weight = weigh(&summary, signal, focus.symptom);
            RankedSeries { service: service_of(&summary.labels), signal, weight, summary }
        })
        .collect();
    ranked.sort_by(|a, b| {
        let by_onset = || match (a.summary.onset, b.summary.onset) {
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        b.weight.total_cmp(&a.weight).then_with(by_onset).then_with(|| a.summary.expr.cmp(&b.summary.expr))
    });
    ranked
}

fn weigh(summary: &SeriesSummary, signal: Signal, symptom: Option<Symptom>) -> f64 {
    if summary.onset.is_none() || summary.score < ANOMALOUS {
        return 0.0;
    }
    let heed = match symptom {
        Some(symptom) if signal.answers(symptom) => 1.5,
        _ => 1.0,
    };
    // An improvement is a change too, but seldom the trouble.
    let direction = if improved(summary) { 0.4 } else { 1.0 };
    (summary.score / ANOMALOUS).ln_1p() * signal.weight() * heed * direction
}

/// Whether the series moved to the better side: fewer errors, shorter times, more successes.
fn improved(summary: &SeriesSummary) -> bool {
    let name = summary.expr.to_lowercase();
    let good_when_high = ["availab", "success", "_up", "ready", "hit_ratio"].iter().any(|word| name.contains(word));
    match Signal::of(&name) {
        _ if good_when_high => summary.rose(),
        Signal::Errors | Signal::Latency => !summary.rose(),
        _ => false,
    }
}

/// Ranks services as the place where the trouble started; most likely first. Only services with an anomalous series
/// are listed.
pub fn rank_services(series: &[RankedSeries], focus: &Focus) -> Vec<RankedService> {
    let mut groups: BTreeMap<&str, Vec<&RankedSeries>> = BTreeMap::new();
    for one in series.iter().filter(|one| one.weight > 0.0) {
        if let Some(service) = &one.service {
            groups.entry(service).or_default().push(one);
        }
    }
    let weights: BTreeMap<&str, f64> = groups.iter().map(|(service, group)| (*service, weight_of(group))).collect();
    let graph = Graph::new(&focus.topology, weights.keys().copied());
    let related = focus.service.as_deref().and_then(|front| graph.below(front));
    let mut ranked: Vec<RankedService> = groups
        .iter()
        .map(|(service, group)| {
            let callee = graph.worst_callee(service, &weights);
            let own = weights[service];
            let explained = callee.map_or(0.0, |(_, weight)| (weight / own).min(1.0));
            let is_related = related.as_ref().is_none_or(|related| related.contains(service));
            let keeps = (1.0 - explained * (1.0 - EXPLAINED_KEEPS)) * if is_related { 1.0 } else { UNRELATED_KEEPS };
            RankedService {
                service: (*service).to_owned(),
                score: own * keeps,
                onset: group.iter().filter_map(|one| one.summary.onset).min(),
                anomalous: group.iter().take(MAX_NAMED).map(|one| one.summary.expr.clone()).collect(),
                reason: reason(group, callee.map(|(name, _)| name), is_related, focus),
            }
        })
        .collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.onset.cmp(&b.onset)));
    ranked
}

/// The strongest sign counts, and others add a little: a service with many series is not the cause for that.
fn weight_of(group: &[&RankedSeries]) -> f64 {
    group.iter().take(4).enumerate().map(|(place, one)| one.weight / (1 << (2 * place)) as f64).sum()
}

fn reason(group: &[&RankedSeries], callee: Option<&str>, is_related: bool, focus: &Focus) -> String {
    let strongest = &group[0].summary;
    let lang = focus.lang;
    let direction = match (strongest.shape, strongest.rose()) {
        (SeriesShape::Absent, _) => lang.pick("ended", "中断"),
        (_, true) => lang.pick("rose", "上升"),
        (_, false) => lang.pick("fell", "下降"),
    };
    let place = match callee {
        Some(callee) => lang.pick(
            format!("; its callee {callee} is anomalous too and may explain it"),
            format!("；其下游 {callee} 同样异常，可能是来源"),
        ),
        None if focus.topology.is_empty() => String::new(),
        None if !is_related => lang
            .pick("; the alerting service is not known to depend on it".to_owned(), "；未见告警服务依赖它".to_owned()),
        None => lang.pick("; none of its callees is anomalous".to_owned(), "；其下游均无异常".to_owned()),
    };
    let (count, score) = (group.len(), strongest.score);
    lang.pick(
        format!("{count} anomalous series, the strongest {direction} by {score:.0} times its usual range{place}"),
        format!("{count} 条异常序列，最强者{direction}，幅度为平时波动的 {score:.0} 倍{place}"),
    )
}

/// The service graph, with the names of the topology matched to those of the series.
struct Graph<'a> {
    callees: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Graph<'a> {
    fn new(topology: &'a Topology, services: impl Iterator<Item = &'a str>) -> Self {
        let by_key: BTreeMap<String, &str> = services.map(|service| (key(service), service)).collect();
        let resolve = |name: &'a str| by_key.get(&key(name)).copied().unwrap_or(name);
        let mut callees: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (caller, called) in topology {
            callees.entry(resolve(caller)).or_default().extend(called.iter().map(|callee| resolve(callee)));
        }
        Self { callees }
    }

    /// `front` and everything that it calls, directly or not; `None` when the graph does not know it.
    fn below(&self, front: &str) -> Option<BTreeSet<&'a str>> {
        let front = self.callees.keys().copied().find(|name| key(name) == key(front))?;
        let mut seen = BTreeSet::from([front]);
        let mut open = vec![front];
        while let Some(service) = open.pop() {
            for &callee in self.callees.get(service).into_iter().flatten() {
                if seen.insert(callee) {
                    open.push(callee);
                }
            }
        }
        Some(seen)
    }

    /// The most anomalous service that `service` calls, directly or through services without anomalous series.
    fn worst_callee(&self, service: &str, weights: &BTreeMap<&'a str, f64>) -> Option<(&'a str, f64)> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = self.callees.get(service).cloned().unwrap_or_default();
        let mut worst: Option<(&str, f64)> = None;
        while let Some(callee) = open.pop() {
            if callee == service || !seen.insert(callee) {
                continue;
            }
            match weights.get(callee) {
                Some(&weight) if weight >= ANOMALOUS_WEIGHT => {
                    if worst.is_none_or(|(_, most)| weight > most) {
                        worst = Some((callee, weight));
                    }
                }
                _ => open.extend(self.callees.get(callee).into_iter().flatten()),
            }
        }
        worst
    }
}

/// Names that differ in case or separators only are the same service.
fn key(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}
