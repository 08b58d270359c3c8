//! The state of workloads, in the words of Kubernetes.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A deployment, stateful set, daemon set or job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub desired: i64,
    pub ready: i64,
    pub updated: i64,
    pub available: i64,
    /// Conditions that are not as they should be: `Available=False: MinimumReplicasUnavailable`.
    pub conditions: Vec<String>,
    pub images: Vec<String>,
    /// `deployment.kubernetes.io/revision`.
    pub revision: Option<String>,
}

/// One container of a pod.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContainerStatus {
    pub name: String,
    pub image: String,
    pub ready: bool,
    pub restarts: i64,
    /// `running`, `waiting: CrashLoopBackOff`, `terminated: Error (exit 1)`.
    pub state: String,
    /// The message beside the state, when there is one.
    pub message: Option<String>,
    /// `OOMKilled (exit 137)`, of the previous run.
    pub last_termination: Option<String>,
    #[schemars(with = "Option<String>")]
    pub last_termination_at: Option<Timestamp>,
    /// Limits as written: `cpu=500m, memory=512Mi`.
    pub limits: Option<String>,
}

/// One pod.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PodStatus {
    pub namespace: String,
    pub name: String,
    pub node: Option<String>,
    /// Name of the workload that owns it, with the replica set's hash cut off.
    pub owner: Option<String>,
    pub phase: String,
    pub ready: bool,
    /// Conditions that are not as they should be: `PodScheduled=False: Unschedulable: 0/3 nodes ...`.
    pub conditions: Vec<String>,
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    pub containers: Vec<ContainerStatus>,
}

/// A Kubernetes event, repeated ones counted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct KubeEvent {
    /// `Pod/order-service-7d9`.
    pub object: String,
    pub namespace: String,
    /// `Normal` or `Warning`.
    pub kind: String,
    pub reason: String,
    pub message: String,
    pub count: i64,
    #[schemars(with = "Option<String>")]
    pub first: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub last: Option<Timestamp>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NodeStatus {
    pub name: String,
    pub ready: bool,
    /// Conditions that are not as they should be: `DiskPressure=True: KubeletHasDiskPressure`.
    pub conditions: Vec<String>,
    pub unschedulable: bool,
}

/// A revision of a deployment coming up, read from its replica sets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rollout {
    pub workload: String,
    pub namespace: String,
    pub revision: Option<String>,
    #[schemars(with = "Option<String>")]
    pub at: Option<Timestamp>,
    pub images: Vec<String>,
    pub previous_images: Vec<String>,
    pub desired: i64,
    pub ready: i64,
}

/// What kind of change was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Deploy,
    Config,
    Scale,
    Flag,
    #[serde(other)]
    Other,
}

/// A change that somebody or something made: a line of `changes.jsonl`, or a rollout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    #[schemars(with = "String")]
    pub time: Timestamp,
    #[serde(default)]
    pub service: Option<String>,
    pub kind: ChangeKind,
    pub summary: String,
}
