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
/// Share of its likelihood that a service keeps when a callee explains all of its trouble.
const EXPLAINED_KEEPS: f64 = 0.5;
/// A callee with less than this share of a service's weight explains nothing of it; with as much, all.
const EXPLAINS_FROM: f64 = 0.4;
/// What a service gains for each anomalous caller that is no worse than it, in shares of its own weight.
const CALLER_ADDS: f64 = 0.3;
/// Callers beyond these add nothing.
const CALLERS_COUNTED: f64 = 3.0;
/// Share of its likelihood that a service keeps when the alerting service does not depend on it.
const UNRELATED_KEEPS: f64 = 0.3;
/// Weights under this share of the largest are no anomaly on the way from cause to alert.
const ANOMALOUS_SHARE: f64 = 0.1;
/// Series of one signal that are looked at together.
const STRONGEST: usize = 2;

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
    /// Reads the words of a metric name or expression. A status label that says failure counts as a word, too.
    pub fn of(expr: &str) -> Self {
        let expr = expr.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| expr.contains(word));
        // The count of a histogram of durations counts requests.
        let is_count = expr.contains("_count") && !expr.contains("_sum");
        if has(ERROR_WORDS) {
            Self::Errors
        } else if has(LATENCY_WORDS) && !is_count {
            Self::Latency
        } else if has(SATURATION_WORDS) && !is_count {
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
        Some(symptom) if signal.answers(symptom) => 1.25,
        // Nothing less: a slow callee makes its callers fail.
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
    for one in series {
        if let Some(service) = &one.service {
            groups.entry(service).or_default().push(one);
        }
    }
    let weights: BTreeMap<&str, f64> = groups.iter().map(|(service, group)| (*service, weight_of(group))).collect();
    let graph = Graph::new(&focus.topology, weights);
    let related = focus.service.as_deref().and_then(|front| graph.below(front));
    let mut ranked: Vec<RankedService> = groups
        .iter()
        .filter(|(_, group)| group[0].weight > 0.0)
        .map(|(service, group)| {
            let callee = graph.worst_callee(service);
            let is_related = related.as_ref().is_none_or(|related| related.contains(service));
            RankedService {
                service: (*service).to_owned(),
                score: graph.likelihood(service, callee.map(|(_, weight)| weight))
                    * if is_related { 1.0 } else { UNRELATED_KEEPS },
                onset: onset_of(group),
                anomalous: group
                    .iter()
                    .filter(|one| one.weight > 0.0)
                    .take(MAX_NAMED)
                    .map(|one| one.summary.expr.clone())
                    .collect(),
                reason: reason(group, callee.map(|(name, _)| name), is_related, focus),
            }
        })
        .collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.onset.cmp(&b.onset)));
    ranked
}

/// When the trouble of a service began: the earliest onset of its strong signs. A weak one may be chance.
fn onset_of(group: &[&RankedSeries]) -> Option<Timestamp> {
    let strong = group.iter().filter(|one| one.weight >= group[0].weight / 2.0);
    strong.filter_map(|one| one.summary.onset).min()
}

/// What a service's series are worth together: of each signal the mean of the three strongest, as one percentile that
/// jumps while its sisters stand still is noise; the strongest signal counts, the others add a little.
fn weight_of(group: &[&RankedSeries]) -> f64 {
    let mut signals: BTreeMap<Signal, Vec<f64>> = BTreeMap::new();
    for one in group {
        signals.entry(one.signal).or_default().push(one.weight);
    }
    let mut strengths: Vec<f64> = signals
        .into_values()
        .map(|weights| {
            let strongest = &weights[..weights.len().min(STRONGEST)];
            strongest.iter().sum::<f64>() / strongest.len() as f64
        })
        .collect();
    strengths.sort_by(|a, b| b.total_cmp(a));
    strengths.iter().enumerate().map(|(place, strength)| strength / (1 << (2 * place)) as f64).sum()
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
        _ if focus.topology.is_empty() => String::new(),
        _ if !is_related => lang
            .pick("; the alerting service is not known to depend on it".to_owned(), "；未见告警服务依赖它".to_owned()),
        Some(callee) => lang.pick(
            format!("; its callee {callee} is anomalous too and may explain it"),
            format!("；其下游 {callee} 同样异常，可能是来源"),
        ),
        None => lang.pick("; none of its callees is anomalous".to_owned(), "；其下游均无异常".to_owned()),
    };
    let group: Vec<&&RankedSeries> = group.iter().filter(|one| one.weight > 0.0).collect();
    let (count, score) = (group.len(), strongest.score);
    lang.pick(
        format!("{count} anomalous series, the strongest {direction} by {score:.0} times its usual range{place}"),
        format!("{count} 条异常序列，最强者{direction}，幅度为平时波动的 {score:.0} 倍{place}"),
    )
}

/// The service graph, with the names of the topology matched to those of the series.
struct Graph<'a> {
    callees: BTreeMap<&'a str, Vec<&'a str>>,
    callers: BTreeMap<&'a str, Vec<&'a str>>,
    /// Of every service that has series; 0 where none stands out.
    weights: BTreeMap<&'a str, f64>,
    heaviest: f64,
}

impl<'a> Graph<'a> {
    fn new(topology: &'a Topology, weights: BTreeMap<&'a str, f64>) -> Self {
        let by_key: BTreeMap<String, &str> = weights.keys().map(|service| (key(service), *service)).collect();
        let known: BTreeSet<&str> = weights.keys().copied().collect();
        let resolve = |name: &'a str| match known.contains(name) {
            true => name,
            false => by_key.get(&key(name)).copied().unwrap_or(name),
        };
        let (mut callees, mut callers): (BTreeMap<_, Vec<_>>, BTreeMap<_, Vec<_>>) = Default::default();
        for (caller, called) in topology {
            for callee in called {
                let (caller, callee) = (resolve(caller), resolve(callee));
                callees.entry(caller).or_default().push(callee);
                callers.entry(callee).or_default().push(caller);
            }
        }
        let heaviest = weights.values().copied().fold(0.0, f64::max);
        Self { callees, callers, weights, heaviest }
    }

    fn weight(&self, service: &str) -> f64 {
        self.weights.get(service).copied().unwrap_or(0.0)
    }

    /// How likely the trouble starts in `service`: its own weight, more for the anomalous callers that it explains,
    /// less what an anomalous callee explains of it.
    fn likelihood(&self, service: &'a str, worst_callee: Option<f64>) -> f64 {
        let own = self.weight(service);
        let share = worst_callee.map_or(0.0, |weight| weight / own);
        let explained = ((share - EXPLAINS_FROM) / (1.0 - EXPLAINS_FROM)).clamp(0.0, 1.0);
        let callers = self.anomalous_callers(service);
        let explains: f64 = callers.iter().map(|caller| (self.weight(caller) / own).min(1.0)).sum();
        own * (1.0 + CALLER_ADDS * explains.min(CALLERS_COUNTED)) * (1.0 - explained * (1.0 - EXPLAINED_KEEPS))
    }

    /// `front` and everything that it calls, directly or not; `None` when the graph does not know it.
    fn below(&self, front: &str) -> Option<BTreeSet<&'a str>> {
        let front = self.callees.keys().copied().find(|name| key(name) == key(front))?;
        Some(self.reach(front, &self.callees, |_| true))
    }

    /// The services that call `service` over a chain of anomalous services, or of services without series.
    fn anomalous_callers(&self, service: &'a str) -> BTreeSet<&'a str> {
        let mut found =
            self.reach(service, &self.callers, |caller| self.is_anomalous(caller) || !self.is_known(caller));
        found.remove(service);
        found
    }

    fn reach(
        &self,
        from: &'a str,
        edges: &BTreeMap<&'a str, Vec<&'a str>>,
        passes: impl Fn(&str) -> bool,
    ) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(service) = open.pop() {
            for &next in edges.get(service).into_iter().flatten() {
                if passes(next) && seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    }

    fn is_anomalous(&self, service: &str) -> bool {
        self.weight(service) > 0.0 && self.weight(service) >= ANOMALOUS_SHARE * self.heaviest
    }

    fn is_known(&self, service: &str) -> bool {
        self.weights.contains_key(service)
    }

    /// The most anomalous service that `service` calls, directly or through services without series.
    fn worst_callee(&self, service: &str) -> Option<(&'a str, f64)> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = self.callees.get(service).cloned().unwrap_or_default();
        let mut worst: Option<(&str, f64)> = None;
        while let Some(callee) = open.pop() {
            if callee == service || !seen.insert(callee) {
                continue;
            }
            let weight = self.weight(callee);
            if !self.is_known(callee) {
                open.extend(self.callees.get(callee).into_iter().flatten());
            } else if self.is_anomalous(callee) && worst.is_none_or(|(_, most)| weight > most) {
                worst = Some((callee, weight));
            }
        }
        worst
    }
}

/// Names that differ in case or separators only are the same service.
fn key(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::Sample;

    const START: i64 = 1_772_600_000;
    const STEP: i64 = 15;

    fn at(index: usize) -> Timestamp {
        Timestamp::from_second(START + STEP * index as i64).unwrap()
    }

    /// A series of 240 samples around `level`, to which `change` is done from sample `from` on.
    fn series(service: &str, level: f64, from: usize, change: impl Fn(f64) -> f64) -> Series {
        let mut state = service.bytes().fold(7u64, |state, byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let value = |index: usize, noise: f64| {
            let usual = level * (0.95 + noise / 10.0);
            if index >= from { change(usual) } else { usual }
        };
        let samples = (0..240).map(|index| Sample { at: at(index), value: value(index, noise()) }).collect();
        Series { labels: [("service".to_owned(), service.to_owned())].into(), samples }
    }

    fn topology(edges: &[(&str, &[&str])]) -> Topology {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(caller, callees)| ((*caller).to_owned(), owned(callees))).collect()
    }

    fn rank(series: &[(&str, Series)], focus: &Focus) -> Vec<RankedSeries> {
        let window = Window::new(at(0), at(239));
        rank_series(series.iter().map(|(expr, series)| (*expr, series)), window, focus)
    }

    fn shop() -> Focus {
        Focus {
            alert_at: Some(at(200)),
            service: Some("front".into()),
            topology: topology(&[("front", &["cart", "search"]), ("cart", &["stock_db"]), ("batch", &["stock_db"])]),
            ..Focus::default()
        }
    }

    #[test]
    fn the_deepest_anomalous_callee_is_the_cause_and_its_callers_are_not() {
        let found = rank(
            &[
                ("latency", series("front", 0.2, 183, |v| v * 6.0)),
                ("latency", series("cart", 0.1, 182, |v| v * 8.0)),
                ("latency", series("stock-db", 0.01, 180, |v| v * 7.0)),
                ("latency", series("search", 0.1, 300, |v| v)),
                ("cpu_usage", series("batch", 0.5, 190, |v| v * 5.0)),
            ],
            &shop(),
        );
        let services = rank_services(&found, &shop());
        let order: Vec<&str> = services.iter().map(|one| one.service.as_str()).collect();
        assert_eq!(order, ["stock-db", "cart", "front", "batch"]);
        assert_eq!(services[0].onset, Some(at(180)));
        assert_eq!(services[0].anomalous, ["latency"]);
        assert!(services[0].reason.ends_with("none of its callees is anomalous"), "{}", services[0].reason);
        assert!(services[1].reason.contains("its callee stock-db is anomalous too"), "{}", services[1].reason);
        assert!(services[3].reason.ends_with("is not known to depend on it"), "{}", services[3].reason);
    }

    #[test]
    fn traffic_that_moves_with_everything_does_not_hide_the_errors() {
        let found = rank(
            &[
                ("rate(http_requests_total[1m])", series("front", 900.0, 180, |v| v * 1.5)),
                ("rate(http_requests_total[1m])", series("search", 400.0, 180, |v| v * 1.5)),
                ("rate(http_errors_total[1m])", series("cart", 0.5, 182, |v| v * 4.0)),
            ],
            &Focus { topology: Topology::new(), ..shop() },
        );
        assert_eq!(found[0].service.as_deref(), Some("cart"));
        let services = rank_services(&found, &Focus { topology: Topology::new(), ..shop() });
        assert_eq!(services[0].service, "cart");
    }

    #[test]
    fn getting_better_is_no_trouble() {
        let found = rank(
            &[("latency", series("front", 0.2, 180, |v| v / 10.0)), ("latency", series("cart", 0.2, 180, |v| v * 2.0))],
            &Focus::default(),
        );
        assert_eq!(found[0].service.as_deref(), Some("cart"));
    }

    #[test]
    fn a_callee_that_hardly_moves_explains_nothing() {
        let focus = Focus { topology: topology(&[("cart", &["dns"])]), ..Focus::default() };
        let found = rank(
            &[
                ("latency", series("cart", 0.1, 180, |v| v * 20.0)),
                ("latency", series("dns", 0.001, 180, |v| v * 1.25)),
            ],
            &focus,
        );
        assert_eq!(rank_services(&found, &focus)[0].service, "cart");
    }

    #[test]
    fn a_cycle_and_unknown_services_in_the_graph_do_no_harm() {
        let focus = Focus {
            service: Some("a".into()),
            topology: topology(&[("a", &["b", "a"]), ("b", &["a", "lb"]), ("lb", &["c"])]),
            ..Focus::default()
        };
        let found = rank(
            &[("latency", series("a", 1.0, 180, |v| v * 5.0)), ("latency", series("c", 1.0, 180, |v| v * 5.0))],
            &focus,
        );
        assert_eq!(rank_services(&found, &focus)[0].service, "c");
        assert_eq!(rank_services(&[], &focus), []);
    }

    #[test]
    fn metric_names_tell_what_is_measured() {
        for (name, want) in [
            ("rate(http_requests_total{code=\"200\"}[1m])", Signal::Traffic),
            ("rate(http_request_errors_total[1m])", Signal::Errors),
            ("histogram_quantile(0.99, rate(rpc_seconds_bucket[1m]))", Signal::Latency),
            ("rate(http_request_duration_seconds_count[1m])", Signal::Traffic),
            ("hikaricp_connections_active", Signal::Saturation),
            ("availability_Average", Signal::Errors),
            ("up", Signal::Other),
        ] {
            assert_eq!(Signal::of(name), want, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_series_are_ranked_with_finite_scores(
            values in prop::collection::vec(prop::collection::vec(any::<f64>(), 0..30), 0..6),
        ) {
            let names = ["a", "b", "c"];
            let all: Vec<(&str, Series)> = values.iter().enumerate().map(|(place, values)| {
                let samples = values.iter().enumerate().map(|(index, &value)| Sample { at: at(index), value }).collect();
                let labels = [("service".to_owned(), names[place % 3].to_owned())].into();
                ("errors", Series { labels, samples })
            }).collect();
            let focus = Focus {
                topology: topology(&[("a", &["b"]), ("b", &["c", "a"])]),
                service: Some("a".into()),
                ..Focus::default()
            };
            let found = rank(&all, &focus);
            prop_assert!(found.iter().all(|one| one.weight.is_finite()));
            prop_assert!(rank_services(&found, &focus).iter().all(|one| one.score.is_finite()));
        }
    }
}
