//! One request to the API server: sent once, read up to a limit, and refused in words that say what to do.

use axum::body::Body;
use futures::StreamExt;
use kube::Client;
use reqwest::{StatusCode, Url};
use serde::Deserialize;

use crate::domain::FailureKind;
use crate::domain::text::clean_line;
use crate::http;
use crate::source::SourceError;
use crate::source::rest::kind_of_status;

/// Bytes of one answer.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Bytes of an answer that says what is wrong.
const MAX_ERROR_BYTES: usize = 64 << 10;
const MAX_MESSAGE_CHARS: usize = 300;
const REMEDY: &str = ": check the user of the kubeconfig and its rights";

/// A request as `kube` builds it, by a type of the HTTP crate that this one does not name.
pub type Read = axum::http::Request<Vec<u8>>;

/// Why there is no answer, cleaned.
pub fn refusal(kind: FailureKind, message: &str) -> SourceError {
    SourceError::new(kind, clean_line(message, MAX_MESSAGE_CHARS))
}

/// What the API server says of a request that it does not serve (`Status` of the API).
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    reason: Option<String>,
    message: String,
}

/// Sends a request, which `kube` builds as a `GET`, to the server at `url`.
///
/// # Errors
/// No connection, an answer that is an error or leads elsewhere, that breaks off, or that is too large.
pub async fn send(client: &Client, url: &str, request: Read) -> Result<Vec<u8>, SourceError> {
    let url = format!("{}{}", url.trim_end_matches('/'), request.uri().path());
    let answer = client.send(request.map(kube::client::Body::from)).await.map_err(|error| unreachable(&url, &error))?;
    let (parts, body) = answer.into_parts();
    if parts.status.is_success() {
        return read(body, MAX_ANSWER_BYTES).await.map_err(|broken| broken.told(&url));
    }
    let elsewhere = Url::parse(&url).ok().and_then(|from| http::redirect_words(&from, parts.status, &parts.headers));
    if let Some(words) = elsewhere {
        let message = format!("{url} answered {}: {words}", parts.status.as_u16());
        return Err(refusal(FailureKind::SourceError, &message));
    }
    let said = read(body, MAX_ERROR_BYTES).await.unwrap_or_default();
    Err(refused(&url, parts.status, &String::from_utf8_lossy(&said)))
}

/// What a server at `url` means by a `Status` or another text that came with an HTTP status.
pub fn refused(url: &str, status: StatusCode, said: &str) -> SourceError {
    let code = status.as_u16();
    let message = match serde_json::from_str::<Status>(said) {
        Ok(Status { reason: Some(reason), message }) if !reason.is_empty() => {
            format!("{}: {message}", reason.to_lowercase())
        }
        Ok(Status { message, .. }) => format!("{url} answered {code}: {message}"),
        // A proxy before the server answers in its own words.
        Err(_) => format!("{url} answered {code}: {}", http::error_words(said, status)),
    };
    let mut refused = refusal(kind_of_status(code), &message);
    if code == 401 {
        refused.message.push_str(REMEDY);
    }
    refused
}

fn unreachable(url: &str, error: &kube::Error) -> SourceError {
    let why = match error {
        kube::Error::Service(inner) => causes(&**inner),
        error => causes(error),
    };
    refusal(FailureKind::Unavailable, &format!("cannot reach {url}: {why}"))
}

/// Why a body could not be read.
enum Broken {
    Off(String),
    TooLarge,
}

impl Broken {
    fn told(self, url: &str) -> SourceError {
        match self {
            Self::Off(why) => refusal(FailureKind::Unavailable, &format!("the answer of {url} broke off: {why}")),
            Self::TooLarge => {
                let most = MAX_ANSWER_BYTES >> 20;
                let message = format!("{url} answered over {most} MiB: name namespaces in the configuration");
                refusal(FailureKind::SourceError, &message)
            }
        }
    }
}

async fn read(body: kube::client::Body, limit: usize) -> Result<Vec<u8>, Broken> {
    let mut parts = Body::new(body).into_data_stream();
    let mut bytes = Vec::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| Broken::Off(causes(&error)))?;
        if bytes.len() + part.len() > limit {
            return Err(Broken::TooLarge);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// An error with its causes, where they say more.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = inner.source();
    }
    clean_line(&text, MAX_MESSAGE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_servers_words_with_what_to_do() {
        let status = r#"{"kind":"Status","reason":"Forbidden","message":"pods is forbidden"}"#;
        let said = |status, text| {
            let refused = refused("http://k/api/v1/pods", StatusCode::from_u16(status).unwrap(), text);
            (refused.kind, refused.message)
        };
        assert_eq!(said(403, status), (FailureKind::Unauthorized, "forbidden: pods is forbidden".to_owned()));
        let proxy = "http://k/api/v1/pods answered 401: who are you?: check the user of the kubeconfig and its rights";
        assert_eq!(said(401, "who are you?\n"), (FailureKind::Unauthorized, proxy.to_owned()));
        let busy = (FailureKind::Unavailable, "http://k/api/v1/pods answered 429: slow down".to_owned());
        assert_eq!(said(429, "slow down"), busy);
        let page = "http://k/api/v1/pods answered 502: Bad Gateway (a page of HTML, perhaps a proxy's)";
        assert_eq!(said(502, "<html>"), (FailureKind::Unavailable, page.to_owned()));
    }
}
