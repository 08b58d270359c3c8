//! A real Kubernetes API server with its store (etcd), on loopback: TLS, RBAC, an audit of every request. No controller runs
//! beside it, so that what a test stored stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::compiled::{INSTALL, compiled};
use super::process::{Process, post};

const INSTALL_STORE: &str = "etcd is needed for this test: .ci/install servers";
const NAMESPACE: &str = "shop";

/// Whose requests the server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    Admin,
    /// Of the group that `examples/kubernetes-reader.yaml` gives its rights to.
    Reader,
    /// May list pods and events of the newer API in one namespace, nothing else.
    PartOfShop,
    /// May do nothing.
    Nobody,
}

impl User {
    const ALL: [Self; 4] = [Self::Admin, Self::Reader, Self::PartOfShop, Self::Nobody];

    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Reader => "reader",
            Self::PartOfShop => "part-of-shop",
            Self::Nobody => "nobody",
        }
    }

    fn group(self) -> &'static str {
        match self {
            Self::Admin => "system:masters",
            Self::Reader => "oncall",
            Self::PartOfShop | Self::Nobody => "others",
        }
    }

    pub fn token(self) -> String {
        format!("token-of-{}", self.name())
    }
}

/// A certificate with its key, as PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

pub struct ApiServer {
    process: Process,
    store: Process,
    folder: tempfile::TempDir,
    client: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    /// Of the certificates that the server takes for users.
    authority: (CertificateParams, KeyPair),
}

impl ApiServer {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let authority = authority();
        let certificate = authority.0.self_signed(&authority.1).unwrap().pem();
        let own = issue(&authority, &["127.0.0.1"], &[]);
        let signing = KeyPair::generate().unwrap();
        let token = |user: User| format!("{},{},{},\"{}\"\n", user.token(), user.name(), user.name(), user.group());
        let files = [
            ("tls-cert-file", file("tls.crt", &own.certificate)),
            ("tls-private-key-file", file("tls.key", &own.key)),
            ("client-ca-file", file("ca.crt", &certificate)),
            ("token-auth-file", file("tokens.csv", &User::ALL.map(token).concat())),
            ("service-account-key-file", file("account.pub", &signing.public_key_pem())),
            ("service-account-signing-key-file", file("account.key", &signing.serialize_pem())),
            ("audit-policy-file", file("audit.yaml", AUDIT_POLICY)),
            ("audit-log-path", file("audit.log", "")),
        ];
        let store = store();
        let arguments = |address: std::net::SocketAddr, _: &Path| {
            let settings = [
                ("etcd-servers", store.url()),
                // So that a test can read and age what is stored.
                ("storage-media-type", "application/json".to_owned()),
                ("bind-address", address.ip().to_string()),
                ("advertise-address", address.ip().to_string()),
                ("secure-port", address.port().to_string()),
                ("authorization-mode", "RBAC".to_owned()),
                ("service-account-issuer", "https://127.0.0.1".to_owned()),
                ("service-cluster-ip-range", "10.96.0.0/16".to_owned()),
                ("kubelet-preferred-address-types", "InternalIP".to_owned()),
                ("disable-admission-plugins", "ServiceAccount".to_owned()),
                ("event-ttl", "24h".to_owned()),
            ];
            settings.into_iter().chain(files).map(|(name, value)| format!("--{name}={value}")).collect()
        };
        let program = compiled("kube-apiserver");
        let process = Process::start_over_tls(&program, arguments, "/readyz", INSTALL, &certificate);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = super::process::client_that_trusts(&certificate);
        Self { process, store, folder, client, runtime, authority }
    }

    /// A server that holds the workload of an example: its lists in `status`, with their own times and state.
    pub fn with_example(example: &Path) -> Self {
        let server = Self::start();
        server.create("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}));
        let mut ages = BTreeMap::new();
        for (group, plural) in [
            ("/api/v1", "nodes"),
            ("/apis/apps/v1", "deployments"),
            ("/apis/apps/v1", "replicasets"),
            ("/api/v1", "pods"),
            ("/api/v1", "events"),
        ] {
            let text = fs::read_to_string(example.join(format!("status/{plural}.json"))).unwrap();
            let list: Value = serde_json::from_str(&text).unwrap();
            for item in list["items"].as_array().unwrap() {
                let (path, name) = server.create_with_status(group, plural, item);
                let age = item["metadata"]["creationTimestamp"].as_str().unwrap().to_owned();
                assert!(ages.insert(stored_key(plural, &name), age).is_none(), "{path}/{name}");
            }
        }
        server.age(&ages);
        server.apply(&fs::read_to_string(crate::program::root().join("examples/kubernetes-reader.yaml")).unwrap());
        server.allow_part_of_shop();
        server
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.process.address)
    }

    /// Where the certificate lies that vouches for the server.
    pub fn authority_file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// A certificate for a user of the group `oncall`.
    pub fn certificate_of(&self, user: &str) -> Pair {
        issue(&self.authority, &[], &[(DnType::CommonName, user), (DnType::OrganizationName, "oncall")])
    }

    /// A kubeconfig in `folder` whose user has `credentials`.
    pub fn kubeconfig(&self, folder: &Path, credentials: Value) -> PathBuf {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": NAMESPACE,
            "clusters": [{"name": "c", "cluster": {"server": self.url(), "certificate-authority": self.authority_file()}}],
            "users": [{"name": "u", "user": credentials}],
            "contexts": [{"name": NAMESPACE, "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
        });
        let path = folder.join("kubeconfig");
        fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// What the API server answers an administrator; panics when it refuses.
    pub fn admin(&self, method: reqwest::Method, path: &str, kind: &str, body: &str) -> Value {
        let request = self
            .client
            .request(method, format!("{}{path}", self.url()))
            .bearer_auth(User::Admin.token())
            .header("content-type", kind)
            .body(body.to_owned());
        let (status, text) = self.runtime.block_on(async {
            let answer = request.send().await.unwrap();
            (answer.status(), answer.text().await.unwrap())
        });
        assert!(status.is_success(), "{path}: {status}: {text}\nof {body}");
        serde_json::from_str(&text).unwrap()
    }

    pub fn create(&self, path: &str, object: &Value) -> Value {
        self.admin(reqwest::Method::POST, path, "application/json", &object.to_string())
    }

    /// Creates the documents of a manifest, which are of RBAC.
    fn apply(&self, manifest: &str) {
        for document in manifest.split("\n---\n") {
            let kind = document.lines().find_map(|line| line.strip_prefix("kind: ")).unwrap();
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{}s", kind.to_lowercase());
            self.admin(reqwest::Method::POST, &path, "application/yaml", document);
        }
    }

    fn allow_part_of_shop(&self) {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}");
        let name = json!({"name": "part"});
        let rule =
            |group: &str, plural: &str| json!({"apiGroups": [group], "resources": [plural], "verbs": ["get", "list"]});
        let rules = [rule("", "pods"), rule("events.k8s.io", "events")];
        self.create(&format!("{path}/roles"), &json!({"metadata": name, "rules": rules}));
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "metadata": name,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "part"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": User::PartOfShop.name()}],
        });
        self.create(&format!("{path}/rolebindings"), &binding);
    }

    /// Creates an object as an example tells it, then sets the state that it tells. Gives the path of its list and its name.
    pub fn create_with_status(&self, group: &str, plural: &str, item: &Value) -> (String, String) {
        let path = match item["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
            None => format!("{group}/{plural}"),
        };
        let name = item["metadata"]["name"].as_str().unwrap().to_owned();
        let mut created = self.create(&path, &self.complete(item.clone()));
        if let Some(status) = item.get("status") {
            created["status"] = status.clone();
            let place = format!("{path}/{name}/status");
            self.admin(reqwest::Method::PUT, &place, "application/json", &created.to_string());
        }
        (path, name)
    }

    /// Adds what an API server wants to have and the files of an example leave out.
    fn complete(&self, mut item: Value) -> Value {
        let labels = item["metadata"]["labels"].clone();
        if item["spec"].get("template").is_some() {
            item["spec"]["selector"] = json!({"matchLabels": labels});
            item["spec"]["template"]["metadata"] = json!({"labels": labels});
        }
        for owner in item["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
            let plural = format!("{}s", owner["kind"].as_str().unwrap().to_lowercase());
            let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/{plural}/{}", owner["name"].as_str().unwrap());
            owner["uid"] = self.admin(reqwest::Method::GET, &path, "", "")["metadata"]["uid"].clone();
        }
        item
    }

    /// Sets the times of creation, which a server gives itself, in the store; by the key there.
    fn age(&self, ages: &BTreeMap<String, String>) {
        let call = |what: &str, body: Value| {
            post(&format!("{}/v3/kv/{what}", self.store.url()), "application/json", body.to_string())
        };
        for (key, age) in ages {
            let key = BASE64_STANDARD.encode(key);
            let found = call("range", json!({"key": key}));
            let stored = BASE64_STANDARD.decode(found["kvs"][0]["value"].as_str().unwrap()).unwrap();
            let mut object: Value = serde_json::from_slice(&stored).unwrap();
            object["metadata"]["creationTimestamp"] = json!(age);
            call("put", json!({"key": key, "value": BASE64_STANDARD.encode(object.to_string())}));
        }
    }

    /// `verb resource` of everything that users asked for, as the server wrote it down.
    pub fn audited(&self, user: User) -> BTreeSet<String> {
        let text = fs::read_to_string(self.folder.path().join("audit.log")).unwrap();
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_user = entries.filter(|entry| entry["user"]["username"] == user.name());
        of_user
            .map(|entry| {
                let part = |name: &str| entry["objectRef"][name].as_str().unwrap_or("").to_owned();
                let resource = match part("subresource").as_str() {
                    "" => part("resource"),
                    sub => format!("{}/{sub}", part("resource")),
                };
                format!("{} {resource}", entry["verb"].as_str().unwrap()).trim_end().to_owned()
            })
            .collect()
    }
}

/// Every request is written down when it is answered.
const AUDIT_POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// The key under which an API server stores an object of the namespace `shop`, or of none.
fn stored_key(plural: &str, name: &str) -> String {
    match plural {
        "nodes" => format!("/registry/minions/{name}"),
        _ => format!("/registry/{plural}/{NAMESPACE}/{name}"),
    }
}

fn store() -> Process {
    let arguments = |address: std::net::SocketAddr, folder: &Path| {
        let url = format!("http://{address}");
        let peers = format!("http://127.0.0.1:{}", super::mcp::free_port());
        vec![
            format!("--data-dir={}", folder.join("data").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peers}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    };
    Process::start(Path::new("etcd"), arguments, "/health", INSTALL_STORE)
}

fn authority() -> (CertificateParams, KeyPair) {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(DnType::CommonName, "tests");
    (parameters, KeyPair::generate().unwrap())
}

/// A certificate for addresses, or for a subject.
fn issue(authority: &(CertificateParams, KeyPair), addresses: &[&str], subject: &[(DnType, &str)]) -> Pair {
    let addresses: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
    let mut parameters = CertificateParams::new(addresses).unwrap();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    for (kind, value) in subject {
        parameters.distinguished_name.push(kind.clone(), *value);
    }
    let usages = [rcgen::ExtendedKeyUsagePurpose::ServerAuth, rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    parameters.extended_key_usages = usages.to_vec();
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::from_params(&authority.0, &authority.1);
    Pair { certificate: parameters.signed_by(&key, &issuer).unwrap().pem(), key: key.serialize_pem() }
}
