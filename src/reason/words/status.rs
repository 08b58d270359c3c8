//! The state of workloads in words.

use jiff::tz::TimeZone;

use super::figure::{clock, date};
use super::{MAX_NAME_CHARS, MAX_QUOTE_CHARS};
use crate::domain::text::clean_line;
use crate::domain::{ContainerStatus, KubeEvent, Lang, NodeStatus, PodStatus, Rollout, Workload};

fn name(text: &str) -> String {
    clean_line(text, MAX_NAME_CHARS)
}

fn conditions(list: &[String], lang: Lang) -> String {
    if list.is_empty() {
        return String::new();
    }
    let text = clean_line(&list.join("; "), MAX_QUOTE_CHARS);
    lang.pick(format!("; {text}"), format!("；{text}"))
}

/// The last part of an image reference, which holds its version.
fn image(reference: &str) -> String {
    name(reference.rsplit('/').next().unwrap_or(reference))
}

fn images(list: &[String]) -> String {
    list.iter().map(|reference| image(reference)).collect::<Vec<_>>().join(", ")
}

pub(super) fn workload(workload: &Workload, lang: Lang) -> String {
    let (kind, place) = (name(&workload.kind), format!("{}/{}", name(&workload.namespace), name(&workload.name)));
    let (ready, desired) = (workload.ready, workload.desired);
    let version = images(&workload.images);
    let version = if version.is_empty() { String::new() } else { format!(" ({version})") };
    let rest = conditions(&workload.conditions, lang);
    lang.pick(
        format!("{kind} {place}: {ready} of {desired} instances ready{version}{rest}"),
        format!("{kind} {place}：{desired} 个实例中 {ready} 个就绪{version}{rest}"),
    )
}

pub(super) fn pod(pod: &PodStatus, lang: Lang, zone: &TimeZone) -> String {
    let title = name(&pod.name);
    let on = pod.node.as_deref().map(name);
    let ready = if pod.ready { lang.pick("ready", "已就绪") } else { lang.pick("not ready", "未就绪") };
    let restarts: i64 = pod.containers.iter().map(|container| container.restarts).sum();
    let troubles: Vec<String> =
        pod.containers.iter().filter_map(|container| container_trouble(container, lang, zone)).collect();
    let troubles = if troubles.is_empty() { String::new() } else { format!("; {}", troubles.join("; ")) };
    let rest = conditions(&pod.conditions, lang);
    let phase = name(&pod.phase);
    let en_on = on.as_deref().map(|node| format!(" on {node}")).unwrap_or_default();
    let zh_on = on.map(|node| format!("（{node}）")).unwrap_or_default();
    let plural = if restarts == 1 { "" } else { "s" };
    lang.pick(
        format!("pod {title}{en_on}: {phase}, {ready}, {restarts} restart{plural}{troubles}{rest}"),
        format!("Pod {title}{zh_on}：{phase}，{ready}，重启 {restarts} 次{troubles}{rest}"),
    )
}

/// What is wrong with a container, or nothing when it runs and never ended otherwise.
fn container_trouble(container: &ContainerStatus, lang: Lang, zone: &TimeZone) -> Option<String> {
    let mut parts = Vec::new();
    if container.state != "running" && !container.state.is_empty() {
        parts.push(clean_line(&container.state, MAX_QUOTE_CHARS));
    }
    if let Some(message) = &container.message {
        parts.push(clean_line(message, MAX_QUOTE_CHARS));
    }
    if let Some(last) = &container.last_termination {
        let last = clean_line(last, MAX_QUOTE_CHARS);
        let at = container
            .last_termination_at
            .map(|at| lang.pick(format!(" at {}", clock(at, zone)), format!("（{}）", clock(at, zone))))
            .unwrap_or_default();
        parts.push(lang.pick(format!("last ended as {last}{at}"), format!("上次退出：{last}{at}")));
    }
    if parts.is_empty() {
        return None;
    }
    if let Some(limits) = &container.limits {
        parts.push(lang.pick(format!("limits {}", name(limits)), format!("限额 {}", name(limits))));
    }
    Some(format!("{}: {}", name(&container.name), parts.join(", ")))
}

pub(super) fn event(event: &KubeEvent, lang: Lang, zone: &TimeZone) -> String {
    let (reason, object) = (name(&event.reason), clean_line(&event.object, 120));
    let message = clean_line(&event.message, MAX_QUOTE_CHARS);
    let last = event
        .last
        .or(event.first)
        .map(|at| lang.pick(format!(", last at {}", clock(at, zone)), format!("，最近 {}", clock(at, zone))))
        .unwrap_or_default();
    let times = event.count.max(1);
    let plural = if times == 1 { "" } else { "s" };
    lang.pick(
        format!("event {reason} on {object}, {times} time{plural}{last}: {message}"),
        format!("事件 {reason}（{object}）{times} 次{last}：{message}"),
    )
}

pub(super) fn node(node: &NodeStatus, lang: Lang) -> String {
    let title = name(&node.name);
    let ready = if node.ready { lang.pick("ready", "就绪") } else { lang.pick("not ready", "未就绪") };
    let cordoned = if node.unschedulable { lang.pick(", cordoned", "，已禁止调度") } else { "" };
    let rest = conditions(&node.conditions, lang);
    lang.pick(format!("node {title}: {ready}{cordoned}{rest}"), format!("节点 {title}：{ready}{cordoned}{rest}"))
}

pub(super) fn rollout(rollout: &Rollout, lang: Lang, zone: &TimeZone) -> String {
    let title = format!("{}/{}", name(&rollout.namespace), name(&rollout.workload));
    let at = rollout.at.map(|at| date(at, zone)).unwrap_or_default();
    let revision = rollout
        .revision
        .as_deref()
        .map(|revision| lang.pick(format!(" revision {}", name(revision)), format!(" 版本 {}", name(revision))))
        .unwrap_or_default();
    let (from, to) = (images(&rollout.previous_images), images(&rollout.images));
    let change = if from.is_empty() || from == to { to } else { format!("{from} -> {to}") };
    let (ready, desired) = (rollout.ready, rollout.desired);
    let en_at = if at.is_empty() { String::new() } else { format!(" at {at}") };
    let zh_at = if at.is_empty() { String::new() } else { format!("{at} ") };
    lang.pick(
        format!("rollout of {title}{revision}{en_at}: {change}, {ready} of {desired} ready"),
        format!("{zh_at}{title}{revision} 发布：{change}，{desired} 个中 {ready} 个就绪"),
    )
}
