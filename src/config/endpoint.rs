//! How a remote service is reached: what the tables that name one have in common, checked.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::shape::TlsConfig;
use crate::http::HttpSettings;

/// A model behind a URL.
#[derive(Clone, PartialEq)]
pub struct EndpointConfig {
    pub base_url: String,
    pub model: String,
    /// The variable that holds the key; `None`: the service wants none.
    pub api_key_env: Option<String>,
    /// What the variable holds; `None` where it is not set.
    pub api_key: Option<String>,
    pub http: HttpSettings,
}

/// Without the key.
impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base_url, model, api_key_env, .. } = self;
        write!(f, "EndpointConfig({base_url}, {model}, key in {api_key_env:?})")
    }
}

/// The keys of a table that names a service, as they are written.
pub struct EndpointFile<'a> {
    /// The table, as messages name it.
    pub table: &'a str,
    pub base_url: Option<&'a String>,
    pub model: Option<&'a String>,
    pub api_key_env: Option<&'a String>,
    pub headers: &'a BTreeMap<String, String>,
    pub tls: Option<&'a TlsConfig>,
    pub proxy: Option<&'a String>,
    pub connect_timeout: Option<&'a String>,
    pub read_timeout: Option<&'a String>,
}

impl EndpointFile<'_> {
    /// The checked endpoint. Relative paths count from `base`, the folder of the file.
    ///
    /// # Errors
    /// The key, below the table, with what is wrong with it.
    pub fn check(
        &self,
        base: &Path,
        variables: &BTreeMap<String, String>,
    ) -> Result<EndpointConfig, (&'static str, String)> {
        let url = self.base_url.ok_or(("base_url", "is missing: expected a URL such as \"https://host/v1\"".into()))?;
        let parsed = reqwest::Url::parse(url).map_err(|error| ("base_url", format!("\"{url}\" is no URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(("base_url", format!("\"{url}\": expected http:// or https://")));
        }
        let model = self.model.filter(|model| !model.trim().is_empty());
        let model = model.ok_or(("model", "is missing: expected the name that the service knows it by".into()))?;
        let variable = self.api_key_env.map(String::as_str);
        // A key in place of its variable's name would be shown in messages.
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if variable.is_some_and(|name| !is_name(name) || name.len() > 64) {
            return Err((
                "api_key_env",
                "is no name of a variable: expected one such as \"NVIDIA_API_KEY\", never a key".into(),
            ));
        }
        let key = variable.and_then(|name| variables.get(name)).map(|key| key.trim()).filter(|key| !key.is_empty());
        Ok(EndpointConfig {
            base_url: url.clone(),
            model: model.clone(),
            api_key_env: variable.map(str::to_owned),
            api_key: key.map(str::to_owned),
            http: self.http(base)?,
        })
    }

    /// How it is reached.
    ///
    /// # Errors
    /// A duration that is none.
    pub fn http(&self, base: &Path) -> Result<HttpSettings, (&'static str, String)> {
        let defaults = HttpSettings::default();
        let path = |path: &Option<String>| path.as_ref().map(|path| base.join(path));
        let tls = |of: fn(&TlsConfig) -> &Option<String>| self.tls.and_then(|tls| path(of(tls)));
        Ok(HttpSettings {
            connect_timeout: duration("connect_timeout", self.connect_timeout, defaults.connect_timeout)?,
            read_timeout: duration("read_timeout", self.read_timeout, defaults.read_timeout)?,
            proxy: self.proxy.cloned(),
            ca_file: tls(|tls| &tls.ca_file),
            cert_file: tls(|tls| &tls.cert_file),
            key_file: tls(|tls| &tls.key_file),
            insecure_skip_verify: self.tls.is_some_and(|tls| tls.insecure_skip_verify),
            headers: self.headers.clone(),
            redirects: defaults.redirects,
        })
    }
}

fn duration(key: &'static str, text: Option<&String>, default: Duration) -> Result<Duration, (&'static str, String)> {
    let Some(text) = text else { return Ok(default) };
    let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|duration| Duration::try_from(duration).ok());
    let wrong = || (key, format!("\"{text}\" is not a duration; expected one such as \"10s\" or \"5m\""));
    parsed.filter(|duration| !duration.is_zero()).ok_or_else(wrong)
}
