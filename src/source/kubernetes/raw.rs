//! The JSON of the Kubernetes API as it arrives: every field optional, of any kind of object.
//!
//! In: objects of `kubectl get ... -o json`, of the API itself, or of a watch. Out: [`RawObject`]s. What is not read here
//! (managed fields, status of volumes) is left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object of a list; one that has a field of an impossible type does not take the others with it.
#[derive(Debug)]
pub struct RawItem(pub Result<RawObject, String>);

impl<'de> Deserialize<'de> for RawItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Self(serde_json::from_value(value).map_err(|error| error.to_string())))
    }
}

/// Any object. Which fields are there depends on its kind.
#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default, rename_all = "camelCase")]
pub struct RawObject {
    pub kind: Option<String>,
    pub metadata: Option<RawMetadata>,
    pub spec: Option<RawSpec>,
    /// A structure in workloads, pods and nodes; the text `Failure` in an error of the API.
    pub status: Option<RawStatus>,
    // Errors of the API (kind `Status`) and events.
    pub message: Option<String>,
    pub reason: Option<String>,
    pub details: Option<RawDetails>,
    // Events: core/v1 first, then what events.k8s.io/v1 calls the same.
    pub involved_object: Option<RawReference>,
    pub regarding: Option<RawReference>,
    pub note: Option<String>,
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    pub count: Option<i64>,
    pub deprecated_count: Option<i64>,
    pub first_timestamp: Option<String>,
    pub deprecated_first_timestamp: Option<String>,
    pub last_timestamp: Option<String>,
    pub deprecated_last_timestamp: Option<String>,
    pub event_time: Option<String>,
    pub series: Option<RawSeries>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default, rename_all = "camelCase")]
pub struct RawMetadata {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub creation_timestamp: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
    pub owner_references: Option<Vec<RawReference>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default)]
pub struct RawReference {
    pub kind: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default)]
pub struct RawDetails {
    pub kind: Option<String>,
    pub name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default, rename_all = "camelCase")]
pub struct RawSeries {
    pub count: Option<i64>,
    pub last_observed_time: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default, rename_all = "camelCase")]
pub struct RawSpec {
    pub replicas: Option<i64>,
    pub completions: Option<i64>,
    pub parallelism: Option<i64>,
    pub template: Option<RawTemplate>,
    pub containers: Option<Vec<RawContainer>>,
    pub init_containers: Option<Vec<RawContainer>>,
    pub node_name: Option<String>,
    pub unschedulable: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default)]
pub struct RawTemplate {
    pub metadata: Option<RawMetadata>,
    pub spec: Option<RawTemplateSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default, rename_all = "camelCase")]
pub struct RawTemplateSpec {
    pub containers: Option<Vec<RawContainer>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default)]
pub struct RawContainer {
    pub name: Option<String>,
    pub image: Option<String>,
    pub resources: Option<RawResources>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default)]
pub struct RawResources {
    /// Quantities are strings, but a bare number is accepted by the API as well.
    pub limits: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum RawStatus {
    Fields(Box<RawStatusFields>),
    Word(String),
    Other(Value),
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default, rename_all = "camelCase")]
pub struct RawStatusFields {
    pub conditions: Option<Vec<RawCondition>>,
    // Deployments, replica sets, stateful sets.
    pub ready_replicas: Option<i64>,
    pub updated_replicas: Option<i64>,
    pub available_replicas: Option<i64>,
    // Daemon sets.
    pub desired_number_scheduled: Option<i64>,
    pub number_ready: Option<i64>,
    pub updated_number_scheduled: Option<i64>,
    pub number_available: Option<i64>,
    // Jobs.
    pub active: Option<i64>,
    pub succeeded: Option<i64>,
    pub failed: Option<i64>,
    // Pods.
    pub phase: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub start_time: Option<String>,
    pub container_statuses: Option<Vec<RawContainerStatus>>,
    pub init_container_statuses: Option<Vec<RawContainerStatus>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default, rename_all = "camelCase")]
pub struct RawCondition {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub status: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub last_update_time: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default, rename_all = "camelCase")]
pub struct RawContainerStatus {
    pub name: Option<String>,
    pub image: Option<String>,
    pub ready: Option<bool>,
    pub restart_count: Option<i64>,
    pub state: Option<RawState>,
    pub last_state: Option<RawState>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default)]
pub struct RawState {
    pub running: Option<Value>,
    pub waiting: Option<RawWaiting>,
    pub terminated: Option<RawTerminated>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default)]
pub struct RawWaiting {
    pub reason: Option<String>,
    pub message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "an object", default, rename_all = "camelCase")]
pub struct RawTerminated {
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub finished_at: Option<String>,
}
