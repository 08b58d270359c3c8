//! Rollouts, read from the replica sets of deployments.
//!
//! In: an [`Inventory`]. Out: one [`Rollout`] per replica set that came up in the window, newest first, with the images
//! of the revision before it. Kubernetes keeps old replica sets (ten of them by default), which makes them a history.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::convert::ReplicaSet;
use super::inventory::Inventory;
use super::select::Scope;
use crate::domain::{Rollout, Window};

/// The rollouts of the window; those without a time count as of the window.
pub fn rollouts(inventory: &Inventory, scope: &Scope, window: Window) -> Vec<Rollout> {
    let mut by_deployment: BTreeMap<_, Vec<&ReplicaSet>> = BTreeMap::new();
    for ((namespace, name), entry) in &inventory.replica_sets {
        if let Some(deployment) = &entry.value.deployment
            && scope.covers(namespace, name, entry)
        {
            by_deployment.entry((namespace.clone(), deployment.clone())).or_default().push(&entry.value);
        }
    }
    let mut found = Vec::new();
    for (key, mut sets) in by_deployment {
        sets.sort_by_key(|set| (revision_number(set), set.created));
        for (index, set) in sets.iter().enumerate() {
            let is_newest = index + 1 == sets.len();
            let at = came_up_at(set, if is_newest { inventory.progressed.get(&key).copied() } else { None });
            if at.is_none_or(|at| window.contains(at)) {
                found.push(rollout(set, index.checked_sub(1).map(|before| sets[before]), at));
            }
        }
    }
    found.sort_by_key(|rollout| Reverse(rollout.at));
    found
}

fn revision_number(set: &ReplicaSet) -> u64 {
    set.revision.as_deref().and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

/// When a replica set took over: at its creation, or, where a rollback took an old one up again, when the deployment
/// last made progress.
fn came_up_at(set: &ReplicaSet, progressed: Option<Timestamp>) -> Option<Timestamp> {
    if set.reused { progressed.or(set.created) } else { set.created }
}

fn rollout(set: &ReplicaSet, before: Option<&ReplicaSet>, at: Option<Timestamp>) -> Rollout {
    Rollout {
        workload: set.deployment.clone().unwrap_or_default(),
        namespace: set.namespace.clone(),
        revision: set.revision.clone(),
        at,
        images: set.images.clone(),
        previous_images: before.map(|before| before.images.clone()).unwrap_or_default(),
        desired: set.desired,
        ready: set.ready,
    }
}
