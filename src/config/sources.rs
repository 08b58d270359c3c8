//! `[sources.NAME]`: where evidence lives, checked. A key that the kind of source does not know is an error, as is one
//! that is missing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use jiff::tz::TimeZone;

use super::ConfigError;
use super::endpoint::EndpointFile;
use super::services::Checker;
use super::shape::{AuthConfig, LogFields, SourceConfig, SourceKind};
use crate::http::{Credentials, Redirects, RemoteSettings};

/// Events that one question reads at most: some seconds of a cluster's answer, and of memory some tens of megabytes.
const DEFAULT_LIMIT: usize = 50_000;
const MAX_LIMIT: usize = 1_000_000;
/// Answers are asked for by somebody who waits.
const READ_TIMEOUT: &str = "30s";
const CONNECT_TIMEOUT: &str = "5s";
/// How Mimir, Loki and others tell tenants apart.
const TENANT_HEADER: &str = "X-Scope-OrgID";

/// A source that can be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceSettings {
    pub at: SourceAt,
    /// Labels of the alerts that it is for; empty: all.
    pub select: BTreeMap<String, String>,
}

/// What speaks at the other end, and how it is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceAt {
    Prometheus(RemoteSettings),
    Alertmanager(RemoteSettings),
    Elasticsearch { remote: RemoteSettings, index: String, logs: LogSettings },
    Loki { remote: RemoteSettings, logs: LogSettings },
    Victorialogs { remote: RemoteSettings, logs: LogSettings },
    Kubernetes(KubernetesSettings),
    Files(FileSettings),
}

/// How stored logs are read.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSettings {
    pub fields: LogFields,
    /// Events that one question reads at most.
    pub limit: usize,
}

/// How a cluster is found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KubernetesSettings {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    /// Empty: all that may be listed.
    pub namespaces: Vec<String>,
    /// `None`: where there is no other source of logs.
    pub logs: Option<bool>,
}

/// Log files of this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSettings {
    /// Files, folders and patterns (`/var/log/*/app*.log`), absolute.
    pub paths: Vec<PathBuf>,
    /// `None`: this machine's.
    pub zone: Option<TimeZone>,
}

impl SourceSettings {
    pub fn kind(&self) -> SourceKind {
        match &self.at {
            SourceAt::Prometheus(_) => SourceKind::Prometheus,
            SourceAt::Alertmanager(_) => SourceKind::Alertmanager,
            SourceAt::Elasticsearch { .. } => SourceKind::Elasticsearch,
            SourceAt::Loki { .. } => SourceKind::Loki,
            SourceAt::Victorialogs { .. } => SourceKind::Victorialogs,
            SourceAt::Kubernetes(_) => SourceKind::Kubernetes,
            SourceAt::Files(_) => SourceKind::Files,
        }
    }

    /// The server, where it is one behind a URL.
    pub fn remote(&self) -> Option<&RemoteSettings> {
        match &self.at {
            SourceAt::Prometheus(remote) | SourceAt::Alertmanager(remote) => Some(remote),
            SourceAt::Elasticsearch { remote, .. }
            | SourceAt::Loki { remote, .. }
            | SourceAt::Victorialogs { remote, .. } => Some(remote),
            SourceAt::Kubernetes(_) | SourceAt::Files(_) => None,
        }
    }

    /// Whether it is for an alert with these labels.
    pub fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        self.select.iter().all(|(name, value)| labels.get(name) == Some(value))
    }
}

/// What is wrong with a key of the table.
type Wrong = (String, String);

fn wrong(key: &str, message: impl Into<String>) -> Wrong {
    (key.to_owned(), message.into())
}

impl Checker<'_> {
    /// Every source, checked.
    ///
    /// # Errors
    /// The first key that is wrong, with its table.
    pub fn sources(
        &self,
        files: &BTreeMap<String, SourceConfig>,
    ) -> Result<BTreeMap<String, SourceSettings>, ConfigError> {
        files
            .iter()
            .map(|(name, file)| {
                let checked = self.source(name, file);
                let checked =
                    checked.map_err(|(key, message)| self.wrong(&format!("sources.{name}.{key}"), message))?;
                Ok((name.clone(), checked))
            })
            .collect()
    }

    fn source(&self, name: &str, file: &SourceConfig) -> Result<SourceSettings, Wrong> {
        only_keys_of_kind(file)?;
        let at = match file.kind {
            SourceKind::Prometheus => SourceAt::Prometheus(self.remote(name, file)?),
            SourceKind::Alertmanager => SourceAt::Alertmanager(self.remote(name, file)?),
            SourceKind::Elasticsearch => {
                SourceAt::Elasticsearch { remote: self.remote(name, file)?, index: index(file)?, logs: logs(file)? }
            }
            SourceKind::Loki => SourceAt::Loki { remote: self.remote(name, file)?, logs: logs(file)? },
            SourceKind::Victorialogs => SourceAt::Victorialogs { remote: self.remote(name, file)?, logs: logs(file)? },
            SourceKind::Kubernetes => SourceAt::Kubernetes(KubernetesSettings {
                kubeconfig: file.kubeconfig.as_ref().map(|path| self.base.join(path)),
                context: file.context.clone(),
                namespaces: file.namespaces.clone(),
                logs: file.logs,
            }),
            SourceKind::Files => SourceAt::Files(self.files(file)?),
        };
        Ok(SourceSettings { at, select: file.select.clone() })
    }

    fn remote(&self, name: &str, file: &SourceConfig) -> Result<RemoteSettings, Wrong> {
        let url = match (&file.url, &file.cloud_id) {
            (Some(url), None) => url.trim_end_matches('/').to_owned(),
            (None, Some(id)) => cloud_url(id)?,
            (Some(_), Some(_)) => return Err(wrong("cloud_id", "is given beside url: remove one of them")),
            (None, None) => {
                return Err(wrong("url", format!("is missing: expected a URL such as \"{}\"", usual_url(file.kind))));
            }
        };
        let parsed =
            reqwest::Url::parse(&url).map_err(|error| wrong("url", format!("\"{url}\" is no URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong("url", format!("\"{url}\": expected http:// or https://")));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(wrong(
                "url",
                "holds a user or a password: give them by auth = { basic = { user, password_env } }",
            ));
        }
        let mut headers = file.headers.clone();
        if let Some(tenant) = &file.tenant {
            headers.insert(TENANT_HEADER.to_owned(), tenant.clone());
        }
        let (connect_timeout, read_timeout) = (CONNECT_TIMEOUT.to_owned(), READ_TIMEOUT.to_owned());
        let endpoint = EndpointFile {
            table: name,
            base_url: None,
            model: None,
            api_key_env: None,
            headers: &headers,
            tls: file.tls.as_ref(),
            proxy: file.proxy.as_ref(),
            connect_timeout: file.connect_timeout.as_ref().or(Some(&connect_timeout)),
            read_timeout: file.read_timeout.as_ref().or(Some(&read_timeout)),
        };
        let mut http = endpoint.http(self.base).map_err(|(key, message)| wrong(key, message))?;
        http.redirects = Redirects::Refused;
        Ok(RemoteSettings { url, credentials: self.credentials(file.auth.as_ref())?, http })
    }

    fn credentials(&self, auth: Option<&AuthConfig>) -> Result<Credentials, Wrong> {
        let Some(auth) = auth else { return Ok(Credentials::None) };
        let value =
            |name: &str| self.variables.get(name).map(|value| value.trim().to_owned()).filter(|v| !v.is_empty());
        let secret = |key: &str, name: &str, make: &dyn Fn(String) -> Credentials| {
            // A key in place of its variable's name would be shown in messages.
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || name.len() > 64 {
                let message = "is no name of a variable: expected one such as \"PROM_TOKEN\", never a token";
                return Err(wrong(&format!("auth.{key}"), message));
            }
            Ok(value(name).map_or_else(|| Credentials::Missing(name.to_owned()), make))
        };
        let mut given = Vec::new();
        if let Some(name) = &auth.bearer_env {
            given.push(secret("bearer_env", name, &Credentials::Bearer)?);
        }
        if let Some(name) = &auth.api_key_env {
            given.push(secret("api_key_env", name, &Credentials::ApiKey)?);
        }
        if let Some(path) = &auth.token_file {
            given.push(Credentials::TokenFile(self.base.join(path)));
        }
        if let Some(basic) = &auth.basic {
            let make = |password| Credentials::Basic { user: basic.user.clone(), password };
            given.push(secret("basic.password_env", &basic.password_env, &make)?);
        }
        match (given.pop(), given.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(wrong("auth", "expected exactly one of bearer_env, token_file, api_key_env, basic")),
        }
    }

    fn files(&self, file: &SourceConfig) -> Result<FileSettings, Wrong> {
        if file.paths.is_empty() {
            return Err(wrong(
                "paths",
                "is missing: expected files, folders or patterns such as [\"/var/log/app/*.log\"]",
            ));
        }
        let zone = match &file.timezone {
            None => None,
            Some(name) => Some(TimeZone::get(name).map_err(|_| {
                wrong("timezone", format!("\"{name}\" is no time zone: expected one such as \"Asia/Shanghai\""))
            })?),
        };
        let home = self.variables.get("HOME");
        let path = |text: &String| match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
            _ => self.base.join(text),
        };
        Ok(FileSettings { paths: file.paths.iter().map(path).collect(), zone })
    }
}

/// Refuses keys that the kind does not know.
fn only_keys_of_kind(file: &SourceConfig) -> Result<(), Wrong> {
    use SourceKind::{Alertmanager, Elasticsearch, Files, Kubernetes, Loki, Prometheus, Victorialogs};
    const REMOTE: &[SourceKind] = &[Prometheus, Alertmanager, Elasticsearch, Loki, Victorialogs];
    const LOGS: &[SourceKind] = &[Elasticsearch, Loki, Victorialogs];
    let keys: [(&str, bool, &[SourceKind]); 18] = [
        ("url", file.url.is_some(), REMOTE),
        ("cloud_id", file.cloud_id.is_some(), &[Elasticsearch]),
        ("index", file.index.is_some(), &[Elasticsearch]),
        ("fields", file.fields.is_some(), LOGS),
        ("limit", file.limit.is_some(), LOGS),
        ("tenant", file.tenant.is_some(), &[Prometheus, Loki]),
        ("kubeconfig", file.kubeconfig.is_some(), &[Kubernetes]),
        ("context", file.context.is_some(), &[Kubernetes]),
        ("namespaces", !file.namespaces.is_empty(), &[Kubernetes]),
        ("logs", file.logs.is_some(), &[Kubernetes]),
        ("paths", !file.paths.is_empty(), &[Files]),
        ("timezone", file.timezone.is_some(), &[Files]),
        ("auth", file.auth.is_some(), REMOTE),
        ("headers", !file.headers.is_empty(), REMOTE),
        ("tls", file.tls.is_some(), REMOTE),
        ("proxy", file.proxy.is_some(), REMOTE),
        ("connect_timeout", file.connect_timeout.is_some(), REMOTE),
        ("read_timeout", file.read_timeout.is_some(), REMOTE),
    ];
    for (key, is_given, kinds) in keys {
        if is_given && !kinds.contains(&file.kind) {
            let of: Vec<_> = kinds.iter().map(|kind| kind.id()).collect();
            let message = format!("is no key of kind = \"{}\", only of {}: remove it", file.kind.id(), of.join(", "));
            return Err(wrong(key, message));
        }
    }
    if file.auth.as_ref().is_some_and(|auth| auth.api_key_env.is_some()) && file.kind != Elasticsearch {
        return Err(wrong("auth.api_key_env", "is for kind = \"elasticsearch\": use bearer_env, token_file or basic"));
    }
    Ok(())
}

fn usual_url(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Alertmanager => "http://alertmanager:9093",
        SourceKind::Elasticsearch => "http://elasticsearch:9200",
        SourceKind::Loki => "http://loki:3100",
        SourceKind::Victorialogs => "http://victorialogs:9428",
        _ => "http://prometheus:9090",
    }
}

fn index(file: &SourceConfig) -> Result<String, Wrong> {
    let index = file.index.clone().unwrap_or_else(|| "*".to_owned());
    let is_plain = |c: char| c.is_alphanumeric() || "*-_.,:<>{}/+@".contains(c);
    if index.is_empty() || !index.chars().all(is_plain) || index.contains("..") || index.starts_with('/') {
        return Err(wrong(
            "index",
            format!("\"{index}\" is no index: expected one such as \"logs-*\" or \"app-a,app-b\""),
        ));
    }
    Ok(index)
}

fn logs(file: &SourceConfig) -> Result<LogSettings, Wrong> {
    let limit = file.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(wrong("limit", format!("{limit}: expected 1 to {MAX_LIMIT} events")));
    }
    Ok(LogSettings { fields: file.fields.clone().unwrap_or_default(), limit })
}

/// `NAME:BASE64(domain$elasticsearch-id$kibana-id)`, as Elastic Cloud shows it; a port may follow the domain or the id.
fn cloud_url(id: &str) -> Result<String, Wrong> {
    let unreadable =
        || wrong("cloud_id", "cannot be read: expected \"NAME:…\" as the console of Elastic Cloud shows it");
    let encoded = id.rsplit(':').next().unwrap_or(id).trim();
    let bytes = STANDARD.decode(encoded).or_else(|_| STANDARD_NO_PAD.decode(encoded)).map_err(|_| unreadable())?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable())?;
    let mut parts = text.split('$');
    let (Some(domain), Some(cluster)) = (parts.next(), parts.next().filter(|part| !part.is_empty())) else {
        return Err(unreadable());
    };
    let (host, port) = domain.split_once(':').unwrap_or((domain, "443"));
    let (cluster, port) = cluster.split_once(':').unwrap_or((cluster, port));
    let url = format!("https://{cluster}.{host}:{port}");
    reqwest::Url::parse(&url).map_err(|_| unreadable())?;
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Config, Overrides, Surroundings, load};
    use super::*;

    fn config(text: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("oncall.toml"), text).unwrap();
        let variables = BTreeMap::from([("PROM_TOKEN".to_owned(), "t0ken".to_owned())]);
        let around = Surroundings { working_dir: dir.path().into(), variables, ..Surroundings::default() };
        load(&Overrides::default(), &around)
            .map_err(|error| error.to_string().replace(&dir.path().display().to_string(), "DIR"))
    }

    fn source(keys: &str) -> Result<SourceSettings, String> {
        config(&format!("[sources.a]\n{keys}\n")).map(|config| config.sources["a"].clone())
    }

    fn complaint(keys: &str) -> String {
        source(keys).unwrap_err().replace("DIR/oncall.toml: ", "")
    }

    #[test]
    fn a_server_is_reached_as_its_table_says() {
        let keys = "kind = \"prometheus\"\nurl = \"http://p:9090/\"\nauth = { bearer_env = \"PROM_TOKEN\" }\n\
                    tenant = \"shop\"\nselect = { \"app.io/cluster\" = \"prod\" }\nread_timeout = \"3s\"";
        let source = source(keys).unwrap();
        let remote = source.remote().unwrap();
        assert_eq!((remote.url.as_str(), &remote.credentials), ("http://p:9090", &Credentials::Bearer("t0ken".into())));
        assert_eq!(remote.http.headers, BTreeMap::from([("X-Scope-OrgID".to_owned(), "shop".to_owned())]));
        assert_eq!((remote.http.read_timeout, remote.http.redirects), (Duration::from_secs(3), Redirects::Refused));
        let labels = |value: &str| BTreeMap::from([("app.io/cluster".to_owned(), value.to_owned())]);
        assert_eq!(
            [source.fits(&labels("prod")), source.fits(&labels("x")), source.fits(&BTreeMap::new())],
            [true, false, false]
        );
        assert!(!format!("{source:?}").contains("t0ken"));
    }

    #[test]
    fn a_variable_that_is_not_set_is_told_when_the_source_is_asked() {
        let source =
            source("kind = \"loki\"\nurl = \"http://l\"\nauth = { basic = { user = \"u\", password_env = \"NONE\" } }");
        assert_eq!(source.unwrap().remote().unwrap().credentials, Credentials::Missing("NONE".into()));
    }

    #[test]
    fn a_cloud_id_names_the_cluster() {
        let id = STANDARD.encode("eu.example.io$abc$def");
        let url = |id: &str| {
            source(&format!("kind = \"elasticsearch\"\ncloud_id = \"{id}\""))
                .map(|source| source.remote().unwrap().url.clone())
        };
        assert_eq!(url(&format!("prod:{id}")).unwrap(), "https://abc.eu.example.io:443");
        assert!(url("prod:nonsense").unwrap_err().contains("sources.a.cloud_id: cannot be read"));
    }

    #[test]
    fn keys_that_are_wrong_or_missing_are_named() {
        for (keys, want) in [
            ("kind = \"prometheus\"", "sources.a.url: is missing: expected a URL such as \"http://prometheus:9090\""),
            ("kind = \"loki\"\nurl = \"loki:3100\"", "sources.a.url: \"loki:3100\": expected http:// or https://"),
            (
                "kind = \"prometheus\"\nurl = \"http://u:p@h\"",
                "sources.a.url: holds a user or a password: give them by auth = { basic = { user, password_env } }",
            ),
            (
                "kind = \"prometheus\"\nurl = \"http://h\"\nindex = \"x\"",
                "sources.a.index: is no key of kind = \"prometheus\", only of elasticsearch: remove it",
            ),
            (
                "kind = \"elasticsearch\"\nurl = \"http://h\"\nindex = \"a b\"",
                "sources.a.index: \"a b\" is no index: expected one such as \"logs-*\" or \"app-a,app-b\"",
            ),
            (
                "kind = \"files\"",
                "sources.a.paths: is missing: expected files, folders or patterns such as [\"/var/log/app/*.log\"]",
            ),
            (
                "kind = \"files\"\npaths = [\"x\"]\ntimezone = \"Mars\"",
                "sources.a.timezone: \"Mars\" is no time zone: expected one such as \"Asia/Shanghai\"",
            ),
            (
                "kind = \"prometheus\"\nurl = \"http://h\"\nauth = { bearer_env = \"A\", token_file = \"t\" }",
                "sources.a.auth: expected exactly one of bearer_env, token_file, api_key_env, basic",
            ),
            (
                "kind = \"prometheus\"\nurl = \"http://h\"\nauth = { bearer_env = \"ey.ab\" }",
                "sources.a.auth.bearer_env: is no name of a variable: expected one such as \"PROM_TOKEN\", never a token",
            ),
            ("kind = \"loki\"\nurl = \"http://h\"\nlimit = 0", "sources.a.limit: 0: expected 1 to 1000000 events"),
        ] {
            assert_eq!(complaint(keys).replace("configuration: ", ""), want, "{keys}");
        }
    }

    #[test]
    fn unknown_keys_and_kinds_are_named_with_the_nearest() {
        let complaint = complaint("kind = \"prometheus\"\nurll = \"http://h\"");
        assert!(complaint.contains("urll"), "{complaint}");
        assert!(super::tests::complaint("kind = \"promteheus\"").contains("promteheus"));
    }
}
