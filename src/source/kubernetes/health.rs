//! What is not as it should be.
//!
//! In: one status type. Out: yes or no; the reader of the answer judges how much it matters.

use crate::domain::{ContainerStatus, KubeEvent, NodeStatus, PodStatus, Window, Workload};

pub fn workload_is_bad(workload: &Workload) -> bool {
    let rolling_out = workload.kind != "Job" && workload.updated < workload.desired;
    let short = match workload.kind.as_str() {
        // A running job is short of completions all the time; it is bad when it says that it failed.
        "Job" => false,
        _ => workload.ready < workload.desired,
    };
    short || rolling_out || !workload.conditions.is_empty()
}

/// A pod that does not serve, or whose containers ended in the window.
pub fn pod_is_bad(pod: &PodStatus, window: Window) -> bool {
    if pod.phase == "Succeeded" {
        return false;
    }
    !pod.ready || !pod.conditions.is_empty() || pod.containers.iter().any(|c| container_is_bad(c, window))
}

/// A pod with a container that ended in the window and was started again.
pub fn pod_restarted(pod: &PodStatus, window: Window) -> bool {
    pod.containers.iter().any(|container| restarted(container, window))
}

fn container_is_bad(container: &ContainerStatus, window: Window) -> bool {
    restarted(container, window) || !(container.state == "running" || container.state == "unknown")
}

/// A restart of long ago is history; one without a time may be of the window.
fn restarted(container: &ContainerStatus, window: Window) -> bool {
    container.restarts > 0 && container.last_termination_at.is_none_or(|at| window.contains(at))
}

pub fn node_is_bad(node: &NodeStatus) -> bool {
    !node.ready || node.unschedulable || !node.conditions.is_empty()
}

pub fn event_is_bad(event: &KubeEvent) -> bool {
    event.kind != "Normal"
}
