//! Who calls whom: which services a cause can be seen from, and which callee a log line speaks of.

use std::collections::BTreeSet;

use crate::domain::{State, Topology};
use crate::reason::signature::Holder;

/// How a service stands to the one that alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Itself,
    /// Called by it, directly or over others.
    Below,
    /// Calls it.
    Above,
    /// In the topology, without a way from the one to the other.
    Apart,
    /// Nothing is known of it.
    Unknown,
}

/// All services that `service` depends on.
pub(super) fn below(topology: &Topology, service: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![service];
    while let Some(current) = open.pop() {
        for callee in topology.get(current).into_iter().flatten() {
            if callee != service && found.insert(callee.clone()) {
                open.push(callee);
            }
        }
    }
    found
}

pub(super) fn relation(state: &State, service: &str) -> Relation {
    let Some(own) = state.facts.service.as_deref() else { return Relation::Unknown };
    if own == service {
        return Relation::Itself;
    }
    let topology = &state.topology;
    if below(topology, own).contains(service) {
        return Relation::Below;
    }
    if below(topology, service).contains(own) {
        return Relation::Above;
    }
    let is_known = topology.contains_key(service) || topology.values().flatten().any(|callee| callee == service);
    if is_known { Relation::Apart } else { Relation::Unknown }
}

/// Every name that the topology knows.
pub(super) fn names(topology: &Topology) -> BTreeSet<&str> {
    topology.iter().flat_map(|(caller, callees)| std::iter::once(caller).chain(callees)).map(String::as_str).collect()
}

const DATABASES: &[&str] = &[
    "mysql",
    "postgres",
    "pg",
    "mongo",
    "oracle",
    "sqlserver",
    "mssql",
    "maria",
    "tidb",
    "clickhouse",
    "postgis",
    "cassandra",
    "db",
    "database",
    "elastic",
    "es",
    "influx",
    "tsdb",
    "timeseries",
    "solr",
    "hbase",
    "opensearch",
    "cockroach",
];
const CACHES: &[&str] = &["redis", "valkey", "memcached", "memcache", "cache", "hazelcast", "dragonfly"];

/// The service that holds what `logger` complains about: the one that the text names, else the only callee of the
/// kind, else the logger itself.
pub(super) fn holder(topology: &Topology, logger: &str, text: &str, holder: Holder) -> String {
    let kind: Option<&[&str]> = match holder {
        Holder::Here => return logger.to_string(),
        Holder::Callee | Holder::Named => None,
        Holder::Database => Some(DATABASES),
        Holder::Cache => Some(CACHES),
    };
    let is_kind =
        |name: &str| kind.is_none_or(|kind| kind.iter().any(|word| parts(name).any(|part| is_of(part, word))));
    if kind.is_some() && is_kind(logger) {
        return logger.to_string();
    }
    let text = text.to_lowercase();
    let callees = || topology.get(logger).into_iter().flatten();
    if let Some(named) = callees().find(|name| speaks_of(&text, name)) {
        return named.clone();
    }
    if let Some(named) =
        names(topology).into_iter().find(|name| *name != logger && is_kind(name) && speaks_of(&text, name))
    {
        return named.to_string();
    }
    if holder == Holder::Named {
        return logger.to_string();
    }
    let mut of_kind = callees().filter(|name| is_kind(name));
    match (of_kind.next(), of_kind.next()) {
        (Some(only), None) => only.clone(),
        _ => logger.to_string(),
    }
}

/// A short word has to be the whole part: `es` is not in `escrow`.
fn is_of(part: &str, word: &str) -> bool {
    if word.len() <= 2 { part == word } else { part.starts_with(word) }
}

fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split(['-', '_', '.'])
}

/// The only service after which a host is named: `vm-kafka-2` runs `kafka`, `vm-sess-1` runs `session-files`.
pub(super) fn namesake(topology: &Topology, host: &str) -> Option<String> {
    let known = names(topology);
    if known.contains(host) {
        return None;
    }
    let says_something = |part: &&str| {
        part.len() >= 2 && !part.starts_with(|c: char| c.is_ascii_digit()) && !GENERIC_PARTS.contains(part)
    };
    let is_named_after = |service: &str| {
        parts(host).filter(says_something).any(|part| parts(service).any(|other| other.starts_with(part)))
    };
    let mut services = known.into_iter().filter(|service| is_named_after(service));
    match (services.next(), services.next()) {
        (Some(only), None) => Some(only.to_string()),
        _ => None,
    }
}

/// Parts of host names that say nothing about what runs there.
const GENERIC_PARTS: &[&str] =
    &["vm", "host", "node", "server", "srv", "ip", "prod", "test", "worker", "master", "local"];

/// Whether a lower-case text holds the name as a word of its own: `pay` is not in `payment`.
fn speaks_of(text: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(&name).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_part)
            && !text[at + name.len()..].chars().next().is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology() -> Topology {
        let pairs =
            [("gateway", vec!["order", "user"]), ("order", vec!["pay", "postgres", "redis"]), ("pay", vec!["bank"])];
        pairs.map(|(caller, callees)| (caller.to_string(), callees.into_iter().map(str::to_string).collect())).into()
    }

    #[test]
    fn a_callee_is_found_by_name_then_by_kind() {
        let found = |text: &str, kind: Holder| holder(&topology(), "order", text, kind);
        assert_eq!(found("connection to https://pay:8443 failed", Holder::Callee), "pay");
        assert_eq!(found("payment failed", Holder::Callee), "order");
        assert_eq!(found("connection refused", Holder::Database), "postgres");
        assert_eq!(found("connection refused", Holder::Cache), "redis");
        assert_eq!(holder(&topology(), "pay", "timeout", Holder::Callee), "bank");
        assert_eq!(holder(&topology(), "postgres", "shutting down", Holder::Database), "postgres");
    }

    #[test]
    fn a_host_is_named_after_one_service_or_none() {
        let found = |host: &str| namesake(&topology(), host);
        assert_eq!(found("vm-post-2").as_deref(), Some("postgres"));
        assert_eq!(found("vm-p-2"), None);
        assert_eq!(found("node-3"), None);
        assert_eq!(found("pay"), None);
    }

    #[test]
    fn a_circle_of_calls_ends() {
        let topology: Topology =
            [("a".to_string(), vec!["b".to_string()]), ("b".to_string(), vec!["a".to_string()])].into();
        assert_eq!(below(&topology, "a"), BTreeSet::from(["b".to_string()]));
    }
}
