//! A live cluster: what its API server says of workloads, by requests that only read (`GET`).
//!
//! In: a kubeconfig (contexts, exec plugins) or the service account of the pod. Out: the same facts as from files of
//! `kubectl get -o json`, read by the same code. What may not be listed is said for each resource; the rest still counts.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::core::params::ListParams;
use kube::{Client, Config};
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::exchange::{causes, refusal, send};
use super::inventory::Inventory;
use super::select;
use crate::domain::text::clean_line;
use crate::domain::{Change, FailureKind, Window};
use crate::source::{SourceError, StatusAnswer, StatusQuery, StatusSource};

/// Objects of one page.
const PAGE: u32 = 500;
/// After this time no further page of a resource is asked for.
const LIST_TIME: Duration = Duration::from_secs(5);
/// So long an answer serves the questions of a run.
const FRESH: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How a cluster is found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClusterOptions {
    /// `None`: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    /// Empty: all that may be listed.
    pub namespaces: Vec<String>,
}

/// What is listed.
#[derive(Debug, Clone, Copy)]
struct Resource {
    group: &'static str,
    plural: &'static str,
    /// Of which items are made, where the list does not say it.
    kind: &'static str,
    is_namespaced: bool,
}

const fn resource(group: &'static str, plural: &'static str, kind: &'static str) -> Resource {
    Resource { group, plural, kind, is_namespaced: true }
}

const RESOURCES: [Resource; 7] = [
    resource("/apis/apps/v1", "deployments", "Deployment"),
    resource("/apis/apps/v1", "replicasets", "ReplicaSet"),
    resource("/apis/apps/v1", "statefulsets", "StatefulSet"),
    resource("/apis/apps/v1", "daemonsets", "DaemonSet"),
    resource("/apis/batch/v1", "jobs", "Job"),
    PODS,
    Resource { group: "/api/v1", plural: "nodes", kind: "Node", is_namespaced: false },
];
const PODS: Resource = resource("/api/v1", "pods", "Pod");
/// Both show the same events; the second is asked where the first may not be.
const EVENTS: [Resource; 2] =
    [resource("/api/v1", "events", "Event"), resource("/apis/events.k8s.io/v1", "events", "Event")];

/// A cluster.
pub struct Cluster {
    name: String,
    options: ClusterOptions,
    client: OnceCell<Connection>,
    /// What was listed last, by the namespace that is looked at where not all may be.
    listed: Mutex<BTreeMap<Option<String>, Listed>>,
}

struct Listed {
    at: Instant,
    inventory: Arc<OnceCell<Arc<Inventory>>>,
}

pub(super) struct Connection {
    pub client: Client,
    /// Of the context.
    default_namespace: String,
    url: String,
}

/// What tells a list from another answer, and its continuation.
#[derive(Deserialize)]
struct Page {
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(default)]
    metadata: PageMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    r#continue: Option<String>,
}

/// How a cluster is, for a check.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterState {
    pub url: String,
    pub version: String,
    /// Resources that cannot be listed, with the reason.
    pub refused: Vec<String>,
}

impl Cluster {
    pub fn new(name: &str, options: ClusterOptions) -> Self {
        Self { name: name.to_owned(), options, client: OnceCell::new(), listed: Mutex::default() }
    }

    pub(super) async fn connection(&self) -> Result<&Connection, SourceError> {
        self.client.get_or_try_init(|| self.connect()).await
    }

    async fn connect(&self) -> Result<Connection, SourceError> {
        let unusable = |error: &dyn std::error::Error| {
            let message = format!("the cluster cannot be reached as configured: {}", causes(error));
            SourceError::new(FailureKind::Unavailable, message)
        };
        let options = KubeConfigOptions { context: self.options.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &self.options.kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unusable(&error))?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| unusable(&error))?
            }
            None if self.options.context.is_some() => {
                Config::from_kubeconfig(&options).await.map_err(|error| unusable(&error))?
            }
            None => Config::infer().await.map_err(|error| unusable(&error))?,
        };
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // Who asks for a tool tries again, and within its deadline.
        config.default_retry = false;
        let (default_namespace, url) = (config.default_namespace.clone(), config.cluster_url.to_string());
        let client = Client::try_from(config).map_err(|error| unusable(&error))?;
        Ok(Connection { client, default_namespace, url })
    }

    /// Everything that may be listed; `namespace` is looked at where not all namespaces may be.
    pub(super) async fn inventory(&self, namespace: Option<&str>) -> Result<Arc<Inventory>, SourceError> {
        let key = namespace.map(str::to_owned);
        let cell = {
            let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            let known = listed.get(&key).filter(|known| known.at.elapsed() < FRESH);
            let cell = known.map_or_else(|| Arc::new(OnceCell::new()), |known| Arc::clone(&known.inventory));
            if known.is_none() {
                listed.insert(key, Listed { at: Instant::now(), inventory: Arc::clone(&cell) });
            }
            cell
        };
        cell.get_or_try_init(|| self.list_all(namespace)).await.map(Arc::clone)
    }

    async fn list_all(&self, namespace: Option<&str>) -> Result<Arc<Inventory>, SourceError> {
        let connection = self.connection().await?;
        let listing = RESOURCES.iter().map(|resource| self.list_where_allowed(connection, *resource, namespace));
        let (lists, events) = tokio::join!(futures::future::join_all(listing), self.list_events(connection, namespace));
        let mut inventory = Inventory::default();
        let (mut refusals, mut partly) = (Vec::new(), BTreeMap::<String, Vec<&str>>::new());
        for (resource, list) in RESOURCES.iter().zip(lists).chain([(&EVENTS[0], events)]) {
            inventory.kinds.extend((!list.pages.is_empty()).then(|| resource.kind.to_owned()));
            for page in &list.pages {
                inventory.read_list(resource.plural, resource.kind, Cursor::new(page));
            }
            list.notes.into_iter().for_each(|note| inventory.note(note));
            if let Some(namespace) = list.only_in {
                partly.entry(namespace).or_default().push(resource.plural);
            }
            if let Some(refusal) = list.refusal {
                inventory.note(format!("{}: {}", resource.plural, refusal.message));
                refusals.push(refusal);
            }
        }
        for (namespace, plurals) in partly {
            let plurals = plurals.join(", ");
            inventory.note(format!("only namespace {namespace} was looked at: listing all is forbidden for {plurals}"));
        }
        match refusals.into_iter().next() {
            // Nothing at all could be listed: that is no answer.
            Some(first) if inventory.kinds.is_empty() => Err(first),
            _ => Ok(Arc::new(inventory)),
        }
    }

    async fn list_events(&self, connection: &Connection, namespace: Option<&str>) -> List {
        let first = self.list_where_allowed(connection, EVENTS[0], namespace).await;
        match first.refusal {
            None => first,
            Some(_) => {
                let second = self.list_where_allowed(connection, EVENTS[1], namespace).await;
                if second.refusal.is_none() { second } else { first }
            }
        }
    }

    /// All namespaces (or those configured), else the one that is asked for or that of the context.
    async fn list_where_allowed(&self, connection: &Connection, resource: Resource, namespace: Option<&str>) -> List {
        if !resource.is_namespaced {
            return list(connection, resource, None).await;
        }
        if !self.options.namespaces.is_empty() {
            let each = self.options.namespaces.iter().map(|name| list(connection, resource, Some(name)));
            return List::together(futures::future::join_all(each).await);
        }
        let all = list(connection, resource, None).await;
        if !matches!(&all.refusal, Some(SourceError { kind: FailureKind::Unauthorized, .. })) {
            return all;
        }
        let one = namespace.unwrap_or(&connection.default_namespace);
        let mut inner = list(connection, resource, Some(one)).await;
        if inner.refusal.is_none() {
            inner.only_in = Some(one.to_owned());
            return inner;
        }
        all
    }

    /// What a check of the cluster tells.
    ///
    /// # Errors
    /// When the API server does not say its version.
    pub async fn state(&self) -> Result<ClusterState, SourceError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let connection = self.connection().await?;
        let version = get(connection, "/version").await?;
        let version: Option<Version> = serde_json::from_slice(&version).ok();
        let inventory = self.inventory(None).await?;
        Ok(ClusterState {
            url: connection.url.clone(),
            version: clean_line(&version.map(|version| version.git_version).unwrap_or_default(), 60),
            refused: inventory.notes.clone(),
        })
    }
}

/// The pages of a list, as far as they came.
#[derive(Default)]
struct List {
    pages: Vec<Vec<u8>>,
    notes: Vec<String>,
    /// The one namespace that was looked at, where all would be forbidden.
    only_in: Option<String>,
    refusal: Option<SourceError>,
}

impl List {
    /// The lists of several namespaces; it is refused when all of them are.
    fn together(lists: Vec<List>) -> Self {
        let mut all = Self::default();
        let refused = lists.iter().filter(|list| list.refusal.is_some()).count();
        let everywhere = refused == lists.len();
        for mut list in lists {
            all.pages.append(&mut list.pages);
            all.notes.append(&mut list.notes);
            match list.refusal {
                Some(refusal) if everywhere => all.refusal = Some(refusal),
                Some(refusal) => all.notes.push(refusal.message),
                None => {}
            }
        }
        all
    }
}

/// Lists a resource page by page; what came before a failure or the end of the time is kept.
async fn list(connection: &Connection, resource: Resource, namespace: Option<&str>) -> List {
    let Resource { group, plural, .. } = resource;
    let path = match namespace {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
        None => format!("{group}/{plural}"),
    };
    let until = Instant::now() + LIST_TIME;
    let mut found = List::default();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let request = match Request::new(&path).list(&parameters) {
            Ok(request) => request,
            Err(error) => {
                found.refusal = Some(refusal(FailureKind::SourceError, &error.to_string()));
                return found;
            }
        };
        let read = send(&connection.client, &connection.url, request).await;
        let (page, token) = match read.and_then(|page| continued(&path, page)) {
            Ok(page) => page,
            Err(refusal) if found.pages.is_empty() => {
                found.refusal = Some(refusal);
                return found;
            }
            Err(refusal) => {
                found.notes.push(format!("{plural}: a part is missing: {}", refusal.message));
                return found;
            }
        };
        found.pages.push(page);
        let Some(token) = token else { return found };
        if Instant::now() > until {
            let count = found.pages.len() * PAGE as usize;
            found.notes.push(format!(
                "{plural}: only the first {count} were read in time: name namespaces in the configuration"
            ));
            return found;
        }
        parameters = parameters.continue_token(&token);
    }
}

/// A page with the token of the next one.
fn continued(path: &str, page: Vec<u8>) -> Result<(Vec<u8>, Option<String>), SourceError> {
    match serde_json::from_slice::<Page>(&page) {
        Ok(read) => Ok((page, read.metadata.r#continue.filter(|token| !token.is_empty()))),
        Err(error) => {
            let what = match page.trim_ascii_start().first() {
                Some(b'<') => "a page of HTML".to_owned(),
                _ => format!("no list ({error})"),
            };
            let message = format!("{path} answered {what}: is this the address of the API server?");
            Err(refusal(FailureKind::SourceError, &message))
        }
    }
}

async fn get(connection: &Connection, path: &str) -> Result<Vec<u8>, SourceError> {
    let request = Request::new(path).list(&ListParams::default());
    let request = request.map_err(|error| refusal(FailureKind::SourceError, &error.to_string()))?;
    send(&connection.client, &connection.url, request).await
}

/// Reads the log of a container.
pub(super) async fn log(
    connection: &Connection,
    namespace: &str,
    pod: &str,
    parameters: &kube::core::subresource::LogParams,
) -> Result<String, SourceError> {
    let request = Request::new(format!("/api/v1/namespaces/{namespace}/pods")).logs(pod, parameters);
    let request = request.map_err(|error| SourceError::new(FailureKind::SourceError, error.to_string()))?;
    let bytes = send(&connection.client, &connection.url, request).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[async_trait]
impl StatusSource for Cluster {
    fn name(&self) -> &str {
        &self.name
    }

    async fn status(&self, query: &StatusQuery) -> Result<StatusAnswer, SourceError> {
        let inventory = self.inventory(query.namespace.as_deref()).await?;
        Ok(select::answer(&inventory, query))
    }

    /// Nobody wrote changes down here; rollouts are told with the status.
    async fn changes(&self, _window: Window, _service: Option<&str>) -> Result<Vec<Change>, SourceError> {
        Ok(Vec::new())
    }
}
