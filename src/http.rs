//! HTTP as every remote service is spoken to: one client with the user's proxy, authorities and time-outs, and retries
//! of what passes by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Identity, NoProxy, Proxy, RequestBuilder, Response, StatusCode, Url};

use crate::domain::text::clean_line;

/// Characters of a body that an error quotes.
const QUOTED_CHARS: usize = 500;
/// Bytes of an error's body that are read at all.
const ERROR_BODY_BYTES: usize = 64 << 10;

/// How a service is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSettings {
    pub connect_timeout: Duration,
    /// Between two reads of the answer, not for the whole of it: a long stream may go on.
    pub read_timeout: Duration,
    /// Instead of the system's proxy variables.
    pub proxy: Option<String>,
    /// PEM files.
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub insecure_skip_verify: bool,
    /// Sent with every request.
    pub headers: BTreeMap<String, String>,
    pub redirects: Redirects,
}

/// What is made of an answer that points elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirects {
    #[default]
    Followed,
    /// It is an error that names the place: credentials and the body of a request go nowhere that was not configured.
    Refused,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(120),
            proxy: None,
            ca_file: None,
            cert_file: None,
            key_file: None,
            insecure_skip_verify: false,
            headers: BTreeMap::new(),
            redirects: Redirects::Followed,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HttpError {
    /// The settings cannot be used; the user's to mend.
    #[error("{0}")]
    Settings(String),
    /// No connection, or one that broke off.
    #[error("cannot reach {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{url} gave no answer in time: {reason}")]
    Timeout { url: String, reason: String },
    #[error("{url} answered {status}: {body}")]
    Status {
        url: String,
        status: u16,
        /// The beginning of the body, cleaned, on one line.
        body: String,
        retry_after: Option<Duration>,
    },
}

/// A server, how it is reached, and who asks.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteSettings {
    /// Without a slash at the end.
    pub url: String,
    pub credentials: Credentials,
    pub http: HttpSettings,
}

/// How a request says who asks.
#[derive(Clone, PartialEq, Default)]
pub enum Credentials {
    #[default]
    None,
    Bearer(String),
    /// A file that holds a bearer token; read for each request, because such tokens are renewed.
    TokenFile(PathBuf),
    Basic {
        user: String,
        password: String,
    },
    /// `Authorization: ApiKey …`, as Elasticsearch has it.
    ApiKey(String),
    /// A variable that should hold them and is not set.
    Missing(String),
}

/// Without the secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bearer(_) => f.write_str("Bearer(***)"),
            Self::TokenFile(path) => write!(f, "TokenFile({})", path.display()),
            Self::Basic { user, .. } => write!(f, "Basic({user}, ***)"),
            Self::ApiKey(_) => f.write_str("ApiKey(***)"),
            Self::Missing(variable) => write!(f, "Missing({variable})"),
        }
    }
}

impl Credentials {
    /// The request with them.
    ///
    /// # Errors
    /// A variable that is not set, a file that cannot be read.
    pub fn sign(&self, request: RequestBuilder) -> Result<RequestBuilder, HttpError> {
        Ok(match self {
            Self::None => request,
            Self::Bearer(token) => request.bearer_auth(token),
            Self::TokenFile(path) => {
                let read = std::fs::read_to_string(path);
                let token = read.map_err(|error| HttpError::Settings(format!("{}: {error}", path.display())))?;
                request.bearer_auth(token.trim())
            }
            Self::Basic { user, password } => request.basic_auth(user, Some(password)),
            Self::ApiKey(key) => request.header(AUTHORIZATION, format!("ApiKey {key}")),
            Self::Missing(variable) => {
                return Err(HttpError::Settings(format!(
                    "the variable {variable} is not set: set it to the credentials"
                )));
            }
        })
    }
}

impl HttpError {
    /// Whether the same request may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Settings(_) => false,
            Self::Unreachable { .. } | Self::Timeout { .. } => true,
            // 529: overloaded, as Anthropic's servers say it.
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 529),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// How often and how long it is tried again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retries {
    /// Attempts in all.
    pub attempts: u32,
    /// Before the second attempt; it doubles from there.
    pub first_pause: Duration,
    /// A server that asks for a longer pause is not waited for.
    pub longest_pause: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { attempts: 4, first_pause: Duration::from_millis(500), longest_pause: Duration::from_secs(60) }
    }
}

/// A client for the services below `base_url`. Loopback is reached directly, whatever the proxy variables say, unless a
/// proxy is configured by name.
///
/// # Errors
/// [`HttpError::Settings`]: a file that cannot be read, a header or URL that is none.
pub fn client(base_url: &str, settings: &HttpSettings) -> Result<Client, HttpError> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| HttpError::Settings(format!("{what}: {error}"));
    let url = Url::parse(base_url).map_err(|error| wrong(&format!("`{base_url}` is no URL"), &error))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(HttpError::Settings(format!("`{base_url}`: expected a URL with http:// or https://")));
    }
    let mut builder = Client::builder()
        .connect_timeout(settings.connect_timeout)
        .read_timeout(settings.read_timeout)
        .user_agent(concat!("oncall/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers(&settings.headers)?)
        .tls_danger_accept_invalid_certs(settings.insecure_skip_verify);
    if settings.redirects == Redirects::Refused {
        builder = builder.redirect(Policy::none());
    }
    match &settings.proxy {
        Some(proxy) => {
            let proxy = Proxy::all(proxy).map_err(|error| wrong(&format!("proxy `{proxy}`"), &error))?;
            builder = builder.proxy(proxy.no_proxy(NoProxy::from_env()));
        }
        None if is_loopback(&url) => builder = builder.no_proxy(),
        None => {}
    }
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error| wrong(&path.display().to_string(), &error));
    if let Some(path) = &settings.ca_file {
        let what = format!("{}: expected certificates in PEM", path.display());
        let authorities = Certificate::from_pem_bundle(&read(path)?).map_err(|error| wrong(&what, &error))?;
        if authorities.is_empty() {
            return Err(HttpError::Settings(format!("{what}, found none")));
        }
        builder = builder.tls_certs_merge(authorities);
    }
    if let Some(path) = &settings.cert_file {
        let mut pem = read(path)?;
        if let Some(key) = &settings.key_file {
            pem.extend(read(key)?);
        }
        let what = format!("{}: expected a certificate and its key in PEM", path.display());
        builder = builder.identity(Identity::from_pem(&pem).map_err(|error| wrong(&what, &error))?);
    }
    builder.build().map_err(|error| wrong("the HTTP client cannot be built", &with_causes(&error)))
}

fn headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, HttpError> {
    let mut map = HeaderMap::new();
    for (name, value) in given {
        let wrong = |error: &dyn std::fmt::Display| HttpError::Settings(format!("header `{name}`: {error}"));
        let mut value = HeaderValue::from_str(value).map_err(|error| wrong(&error))?;
        value.set_sensitive(true);
        map.insert(HeaderName::try_from(name).map_err(|error| wrong(&error))?, value);
    }
    Ok(map)
}

/// Whether a URL stays on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost"
                || host.ends_with(".localhost")
                || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

/// Sends a request until it succeeds, fails for good, or the attempts are used up. `on_retry` hears of every pause.
///
/// # Errors
/// What the last attempt failed with.
pub async fn send(
    make: impl Fn() -> RequestBuilder,
    retries: Retries,
    mut on_retry: impl FnMut(&HttpError, Duration),
) -> Result<Response, HttpError> {
    let mut attempt = 1;
    loop {
        let error = match send_once(make()).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let pause = error.retry_after().unwrap_or_else(|| jittered(retries.first_pause, attempt));
        if !error.is_transient() || attempt >= retries.attempts || pause > retries.longest_pause {
            return Err(error);
        }
        on_retry(&error, pause);
        tokio::time::sleep(pause).await;
        attempt += 1;
    }
}

async fn send_once(request: RequestBuilder) -> Result<Response, HttpError> {
    let response = request.send().await.map_err(|error| transport_error(&error))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let (url, status) = (shown(response.url()), response.status());
    let retry_after = retry_after(response.headers(), Timestamp::now());
    let body = match redirected(&response) {
        Some(body) => body,
        None => error_body(response, status).await,
    };
    Err(HttpError::Status { url, status: status.as_u16(), body, retry_after })
}

/// Where an answer points that was not followed.
fn redirected(response: &Response) -> Option<String> {
    redirect_words(response.url(), response.status(), response.headers())
}

/// Where the answer of `from` points, without the query, which may hold a secret.
pub fn redirect_words(from: &Url, status: StatusCode, headers: &HeaderMap) -> Option<String> {
    let place = headers.get(LOCATION).filter(|_| status.is_redirection())?;
    let place = place.to_str().map_or_else(
        |_| "elsewhere".to_owned(),
        |place| match from.join(place) {
            Ok(url) => shown(&url),
            Err(_) => clean_line(place, QUOTED_CHARS),
        },
    );
    Some(format!("it redirects to {place}: configure that address, or log in there"))
}

/// The beginning of a body; a page of HTML says less than the status's own words.
async fn error_body(mut response: Response, status: StatusCode) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(part)) = response.chunk().await {
        bytes.extend_from_slice(&part);
        if bytes.len() > ERROR_BODY_BYTES {
            break;
        }
    }
    error_words(&String::from_utf8_lossy(&bytes), status)
}

/// An answer that is an error, on one line.
pub fn error_words(body: &str, status: StatusCode) -> String {
    let text = clean_line(body, QUOTED_CHARS);
    let reason = status.canonical_reason().unwrap_or("no reason given");
    match text.trim() {
        "" => reason.to_string(),
        page if page.starts_with('<') => format!("{reason} (a page of HTML, perhaps a proxy's)"),
        text => text.to_string(),
    }
}

/// An error of the transport, with the reason that reqwest leaves to the causes.
pub fn transport_error(error: &reqwest::Error) -> HttpError {
    let url = error.url().map_or_else(|| "the server".to_string(), shown);
    let reason = clean_line(&with_causes(error), QUOTED_CHARS);
    match error.is_timeout() {
        true => HttpError::Timeout { url, reason },
        false => HttpError::Unreachable { url, reason },
    }
}

/// A URL without what may be secret: user, password, query.
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

/// reqwest's own message leaves the reason (refused, time-out, certificate) to the causes, and repeats the URL.
pub fn with_causes(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        causes.push(inner.to_string());
        cause = inner.source();
    }
    match causes.is_empty() {
        true => error.to_string(),
        false => causes.join(": "),
    }
}

/// `Retry-After` in seconds or as an HTTP date (RFC 9110, 10.2.3); `retry-after-ms` where a server is more exact.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse::<u64>().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// The pause after an attempt (from 1): it doubles, and up to as much again is added at random, so that callers who
/// failed together do not come back together.
pub fn jittered(first: Duration, attempt: u32) -> Duration {
    let base = first.saturating_mul(1 << attempt.saturating_sub(1).min(10));
    // The standard hasher is keyed at random; that is random enough to spread retries.
    let random = RandomState::new().hash_one(attempt);
    base + Duration::from_millis(random % (base.as_millis() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_an_answer_points_is_told_without_what_may_be_secret() {
        let from = Url::parse("http://k/api/v1/pods").unwrap();
        let told = |place: &str| {
            let headers = HeaderMap::from_iter([(LOCATION, place.parse().unwrap())]);
            redirect_words(&from, StatusCode::FOUND, &headers).unwrap()
        };
        let want = |place| format!("it redirects to {place}: configure that address, or log in there");
        assert_eq!(told("/login?token=s3cret"), want("http://k/login"));
        assert_eq!(told("http://u:p@login.example/x?a=b"), want("http://login.example/x"));
        assert_eq!(redirect_words(&from, StatusCode::OK, &HeaderMap::new()), None);
    }

    fn after(name: &'static str, value: &'static str) -> Option<Duration> {
        let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
        retry_after(&headers, "2026-03-04T06:45:00Z".parse().unwrap())
    }

    #[test]
    fn a_pause_is_read_in_seconds_and_as_a_date() {
        assert_eq!(after("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(after("retry-after", "1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(after("retry-after", "Wed, 04 Mar 2026 06:45:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(after("retry-after", "Wed, 04 Mar 2026 06:44:30 GMT"), Some(Duration::ZERO));
        assert_eq!(after("retry-after", "soon"), None);
        assert_eq!(after("retry-after", "-3"), None);
        assert_eq!(after("retry-after-ms", "250"), Some(Duration::from_millis(250)));
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let loopback = |text: &str| is_loopback(&Url::parse(text).unwrap());
        for url in
            ["http://localhost:1/v1", "http://127.0.0.1", "http://127.8.8.8/", "http://[::1]:8/", "http://a.localhost"]
        {
            assert!(loopback(url), "{url}");
        }
        for url in ["http://10.0.0.1", "https://localhost.example.com", "http://[fe80::1]", "https://127.example.com"] {
            assert!(!loopback(url), "{url}");
        }
    }

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        assert_eq!(shown(&Url::parse("https://u:p@h.example/v1?key=s").unwrap()), "https://h.example/v1");
    }

    #[test]
    fn settings_that_cannot_be_used_say_which() {
        let complaint = |url: &str, settings: HttpSettings| client(url, &settings).err().unwrap().to_string();
        let with = |name: &str, value: &str| HttpSettings {
            headers: BTreeMap::from([(name.into(), value.into())]),
            ..HttpSettings::default()
        };
        assert!(complaint("h:1", HttpSettings::default()).contains("expected a URL with http://"));
        assert!(complaint("nonsense", HttpSettings::default()).starts_with("`nonsense` is no URL"));
        assert!(complaint("http://h", with("a b", "c")).starts_with("header `a b`"));
        assert!(complaint("http://h", with("a", "c\n")).starts_with("header `a`"));
        let ca = HttpSettings { ca_file: Some("/nowhere/ca.pem".into()), ..HttpSettings::default() };
        assert!(complaint("http://h", ca).starts_with("/nowhere/ca.pem: "));
    }
}
