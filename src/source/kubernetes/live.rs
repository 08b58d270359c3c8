//! A live cluster: what its API server says of workloads, by requests that only read (`GET`).
//!
//! In: a kubeconfig (contexts, exec plugins) or the service account of the pod. Out: the same facts as from files of
//! `kubectl get -o json`, read by the same code. What may not be listed is said for each resource; the rest still counts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::core::params::ListParams;
use kube::{Client, Config};
use reqwest::StatusCode;
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::document::Page;
use super::exchange::{causes, refusal, refused, send};
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
    listing: Arc<OnceCell<Listing>>,
}

/// Everything that could be listed.
#[derive(Clone)]
struct Listing {
    inventory: Arc<Inventory>,
    /// Something that has a namespace may not be listed in all of them.
    is_partial: bool,
}

pub(super) struct Connection {
    pub client: Client,
    /// Of the context.
    default_namespace: String,
    url: String,
}

/// How much of each list is read.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    Whole,
    /// One object: enough to know whether it may be.
    First,
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
        let everywhere = self.listing(None).await;
        let is_partial = match &everywhere {
            Ok(listing) => listing.is_partial,
            Err(refusal) => refusal.kind == FailureKind::Unauthorized,
        };
        match namespace.filter(|_| is_partial) {
            Some(namespace) => self.listing(Some(namespace)).await.map(|listing| listing.inventory),
            None => everywhere.map(|listing| listing.inventory),
        }
    }

    /// What was listed a while ago, or is listed now: once, whoever asks.
    async fn listing(&self, namespace: Option<&str>) -> Result<Listing, SourceError> {
        let key = namespace.map(str::to_owned);
        let cell = {
            let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            let known = listed.get(&key).filter(|known| known.at.elapsed() < FRESH);
            let cell = known.map_or_else(|| Arc::new(OnceCell::new()), |known| Arc::clone(&known.listing));
            if known.is_none() {
                listed.insert(key, Listed { at: Instant::now(), listing: Arc::clone(&cell) });
            }
            cell
        };
        cell.get_or_try_init(|| self.list_all(namespace, Extent::Whole)).await.cloned()
    }

    async fn list_all(&self, namespace: Option<&str>, extent: Extent) -> Result<Listing, SourceError> {
        let lister = Lister { connection: self.connection().await?, extent, inventory: Mutex::default() };
        let listing = RESOURCES.iter().map(|resource| self.list_where_allowed(&lister, *resource, namespace));
        let (lists, events) = tokio::join!(futures::future::join_all(listing), self.list_events(&lister, namespace));
        let mut inventory = lister.inventory.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut refusals, mut partly) = (Vec::new(), BTreeMap::<String, Vec<&str>>::new());
        let mut is_partial = false;
        for (resource, list) in RESOURCES.iter().zip(lists).chain([(&EVENTS[0], events)]) {
            list.notes.into_iter().for_each(|note| inventory.note(note));
            if let Some(namespace) = list.only_in {
                partly.entry(namespace).or_default().push(resource.plural);
            }
            if let Some(refusal) = list.refusal {
                is_partial |= resource.is_namespaced && refusal.kind == FailureKind::Unauthorized;
                inventory.note(format!("{}: {}", resource.plural, refusal.message));
                refusals.push(refusal);
            }
        }
        is_partial |= !partly.is_empty();
        for (namespace, plurals) in partly {
            let plurals = plurals.join(", ");
            inventory.note(format!("only namespace {namespace} was looked at: listing all is forbidden for {plurals}"));
        }
        match refusals.into_iter().next() {
            // Nothing at all could be listed: that is no answer.
            Some(first) if inventory.kinds.is_empty() => Err(first),
            _ => Ok(Listing { inventory: Arc::new(inventory), is_partial }),
        }
    }

    async fn list_events(&self, lister: &Lister<'_>, namespace: Option<&str>) -> List {
        let first = self.list_where_allowed(lister, EVENTS[0], namespace).await;
        match first.refusal {
            None => first,
            Some(_) => {
                let second = self.list_where_allowed(lister, EVENTS[1], namespace).await;
                if second.refusal.is_none() { second } else { first }
            }
        }
    }

    /// All namespaces (or those configured), else the one that is asked for or that of the context.
    async fn list_where_allowed(&self, lister: &Lister<'_>, resource: Resource, namespace: Option<&str>) -> List {
        if !resource.is_namespaced {
            return lister.list(resource, None).await;
        }
        if !self.options.namespaces.is_empty() {
            let each = self.options.namespaces.iter().map(|name| lister.list(resource, Some(name)));
            return List::together(futures::future::join_all(each).await);
        }
        let all = lister.list(resource, None).await;
        if !matches!(&all.refusal, Some(SourceError { kind: FailureKind::Unauthorized, .. })) {
            return all;
        }
        let one = namespace.unwrap_or(&lister.connection.default_namespace);
        let mut inner = lister.list(resource, Some(one)).await;
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
        let inventory = self.list_all(None, Extent::First).await?.inventory;
        Ok(ClusterState {
            url: connection.url.clone(),
            version: clean_line(&version.map(|version| version.git_version).unwrap_or_default(), 60),
            refused: inventory.notes.clone(),
        })
    }
}

/// What came of listing a resource, but for its objects.
#[derive(Default)]
struct List {
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

/// Lists resources into an inventory, each page as soon as it comes, so that memory grows with what is kept.
struct Lister<'a> {
    connection: &'a Connection,
    extent: Extent,
    inventory: Mutex<Inventory>,
}

impl Lister<'_> {
    /// Lists a resource page by page; what came before a failure or the end of the time is kept.
    async fn list(&self, resource: Resource, namespace: Option<&str>) -> List {
        let Resource { group, plural, .. } = resource;
        let path = match namespace {
            Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
            None => format!("{group}/{plural}"),
        };
        let until = Instant::now() + LIST_TIME;
        let mut found = List::default();
        let size = if self.extent == Extent::First { 1 } else { PAGE };
        let mut parameters = ListParams::default().limit(size);
        let mut count = 0;
        loop {
            let (objects, next) = match self.page(&path, resource, &parameters).await {
                Ok(page) => page,
                Err(refusal) if parameters.continue_token.is_none() => {
                    found.refusal = Some(refusal);
                    return found;
                }
                Err(refusal) => {
                    found.notes.push(format!("{plural}: a part is missing: {}", refusal.message));
                    return found;
                }
            };
            count += objects;
            let Some(token) = next.filter(|_| self.extent == Extent::Whole) else { return found };
            if parameters.continue_token.as_ref() == Some(&token) {
                found.notes.push(format!("{plural}: a part may be missing: the server names the same next page again"));
                return found;
            }
            if Instant::now() > until {
                found.notes.push(format!(
                    "{plural}: only the first {count} were read in time: name namespaces in the configuration"
                ));
                return found;
            }
            parameters = parameters.continue_token(&token);
        }
    }

    /// Reads one page; gives the number of its objects and the token of the next page.
    async fn page(
        &self,
        path: &str,
        resource: Resource,
        parameters: &ListParams,
    ) -> Result<(usize, Option<String>), SourceError> {
        let request = Request::new(path).list(parameters);
        let request = request.map_err(|error| refusal(FailureKind::SourceError, &error.to_string()))?;
        let bytes = send(&self.connection.client, &self.connection.url, request).await?;
        let page = parse_page(path, &bytes)?;
        let mut inventory = self.inventory.lock().unwrap_or_else(PoisonError::into_inner);
        let items = page.items.unwrap_or_default();
        let next = page.metadata.and_then(|metadata| metadata.r#continue).filter(|token| !token.is_empty());
        let count = items.len();
        inventory.add_list(resource.plural, resource.kind, items);
        Ok((count, next))
    }
}

/// A page of a list; anything else is told as what it is.
fn parse_page(path: &str, bytes: &[u8]) -> Result<Page, SourceError> {
    let what = match serde_json::from_slice::<Page>(bytes) {
        Ok(page) if page.kind.ends_with("List") => return Ok(page),
        Ok(Page { kind, code, .. }) if kind == "Status" => {
            let status = code.and_then(|code| StatusCode::from_u16(code).ok());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return Err(refused(path, status, &String::from_utf8_lossy(bytes)));
        }
        Ok(Page { kind, .. }) => format!("an object of kind `{kind}`"),
        Err(_) if bytes.trim_ascii_start().first() == Some(&b'<') => "a page of HTML".to_owned(),
        Err(error) => format!("no list ({error})"),
    };
    let message = format!("{path} answered {what}: is this the address of the API server?");
    Err(refusal(FailureKind::SourceError, &message))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_list_is_told_as_what_it_is() {
        let told = |bytes: &str| {
            let page = parse_page("/api/v1/pods", bytes.as_bytes());
            page.map(|page| page.items.map(|items| items.len())).map_err(|error| (error.kind, error.message))
        };
        assert_eq!(told(r#"{"kind":"PodList","metadata":null,"items":null}"#), Ok(None));
        assert_eq!(told(r#"{"kind":"PodList","metadata":{"continue":""},"items":[{},7]}"#), Ok(Some(2)));
        let forbidden =
            r#"{"kind":"Status","status":"Failure","reason":"Forbidden","message":"no\u001b[31m","code":403}"#;
        assert_eq!(told(forbidden), Err((FailureKind::Unauthorized, "forbidden: no".to_owned())));
        let wrong = |what: &str| {
            let message = format!("/api/v1/pods answered {what}: is this the address of the API server?");
            Err((FailureKind::SourceError, message))
        };
        assert_eq!(told("<html>"), wrong("a page of HTML"));
        assert_eq!(told(r#"{"kind":"Pod"}"#), wrong("an object of kind `Pod`"));
        // The reader's own words say where.
        let deep = format!(r#"{{"kind":"PodList","items":{}"#, "[".repeat(500));
        for (bytes, words) in
            [("[]", "no list ("), (deep.as_str(), "no list (recursion limit exceeded at line 1 column ")]
        {
            let (kind, message) = told(bytes).unwrap_err();
            assert_eq!(kind, FailureKind::SourceError);
            assert!(message.starts_with(&format!("/api/v1/pods answered {words}")), "{message}");
        }
    }
}
