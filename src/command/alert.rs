//! `oncall alert show`: what was understood of a payload, and what is missing. Also reads payloads for `diagnose`.

use std::io::Read;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Context, Exit, Unreachable, bad_input};
use crate::alert;
use crate::config::SourceSettings;
use crate::domain::decode::decode;
use crate::domain::text::{clean_line, counted};
use crate::domain::{Alert, AlertBatch, Lang};
use crate::http::{self, RemoteSettings};

/// A payload larger than this is no alert.
const MAX_PAYLOAD_BYTES: u64 = 16 << 20;
const FETCH_DEADLINE: Duration = Duration::from_secs(10);
const VALUE_CHARS: usize = 300;
const EXPECTED: &str = "expected an alert payload (JSON or text)";

#[derive(Debug, Args)]
pub struct AlertArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show what was understood of an alert payload, and what is missing
    Show {
        /// A file, - for standard input, or a URL
        #[arg(value_name = "FILE|-|URL")]
        place: String,
    },
}

pub async fn run(args: AlertArgs, context: &Context) -> anyhow::Result<Exit> {
    let Action::Show { place } = args.action;
    let batch = read(&place).await?;
    if context.is_json() {
        let document = json!({
            "schema": "oncall.alerts/v1",
            "shape": batch.shape,
            "alerts": batch.alerts,
            "missing": batch.missing,
            "truncated": batch.truncated,
        });
        context.print(&format!("{document}\n"))?;
    } else {
        context.print(&render(&batch, context.lang.unwrap_or_default()))?;
    }
    Ok(Exit::Success)
}

/// Reads and parses a payload from a file, standard input (`-`) or a URL.
///
/// # Errors
/// Exit 2 for what cannot be read or is no alert, exit 4 for a URL that does not answer.
pub async fn read(place: &str) -> anyhow::Result<AlertBatch> {
    read_through(place, None).await
}

/// The same; a URL of a configured source is fetched with its credentials and certificates.
///
/// # Errors
/// As of [`read`].
pub async fn read_as_configured(place: &str, context: &Context) -> anyhow::Result<AlertBatch> {
    let remotes = context.config.sources.values().filter_map(SourceSettings::remote);
    let below = |remote: &&RemoteSettings| {
        place.strip_prefix(&remote.url).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    };
    let remote = remotes.filter(below).max_by_key(|remote| remote.url.len());
    read_through(place, remote).await
}

async fn read_through(place: &str, remote: Option<&RemoteSettings>) -> anyhow::Result<AlertBatch> {
    let bytes = if place.starts_with("http://") || place.starts_with("https://") {
        fetch(place, remote).await?
    } else {
        let place = place.to_string();
        tokio::task::spawn_blocking(move || read_local(&place)).await??
    };
    let unreadable = |reason: &dyn std::fmt::Display| bad_input(format!("cannot read {}: {reason}", name_of(place)));
    let decoded = decode(&bytes).ok_or_else(|| unreadable(&format!("binary content: {EXPECTED}")))?;
    alert::parse(&decoded.text).map_err(|error| unreadable(&error))
}

fn name_of(place: &str) -> &str {
    if place == "-" { "standard input" } else { place }
}

fn read_local(place: &str) -> anyhow::Result<Vec<u8>> {
    let unreadable = |error: std::io::Error| bad_input(format!("cannot read {}: {error}", name_of(place)));
    if std::path::Path::new(place).is_dir() {
        let remedy = "give a file in it; a whole incident folder is for oncall diagnose --incident";
        return Err(bad_input(format!("cannot read {place}: it is a folder: {EXPECTED}; {remedy}")));
    }
    let reader: Box<dyn Read> = match place {
        "-" => Box::new(std::io::stdin().lock()),
        path => Box::new(std::fs::File::open(path).map_err(unreadable)?),
    };
    let mut bytes = Vec::new();
    reader.take(MAX_PAYLOAD_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_PAYLOAD_BYTES {
        return Err(bad_input(format!("{} is over {} MiB: {EXPECTED}", name_of(place), MAX_PAYLOAD_BYTES >> 20)));
    }
    Ok(bytes)
}

async fn fetch(url: &str, remote: Option<&RemoteSettings>) -> anyhow::Result<Vec<u8>> {
    let unreachable = |error: reqwest::Error| Unreachable(format!("cannot fetch {url}: {}", http::with_causes(&error)));
    let settings = remote.map(|remote| remote.http.clone()).unwrap_or_default();
    let client = http::client(url, &settings).map_err(bad_input)?;
    let request = client.get(url).timeout(FETCH_DEADLINE);
    let request = match remote {
        Some(remote) => remote.credentials.sign(request).map_err(bad_input)?,
        None => request,
    };
    let mut response = request.send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(Unreachable(format!("cannot fetch {url}: the server answered {}", response.status())).into());
    }
    let mut bytes = Vec::new();
    while let Some(part) = response.chunk().await.map_err(unreachable)? {
        bytes.extend_from_slice(&part);
        if bytes.len() as u64 > MAX_PAYLOAD_BYTES {
            return Err(bad_input(format!("{url} sent over {} MiB: {EXPECTED}", MAX_PAYLOAD_BYTES >> 20)));
        }
    }
    Ok(bytes)
}

fn render(batch: &AlertBatch, lang: Lang) -> String {
    let count = batch.alerts.len();
    let shape = word(&batch.shape);
    let mut text = lang
        .pick(format!("{} (shape: {shape})\n", counted(count, "alert")), format!("{count} 条告警（格式：{shape}）\n"));
    for (i, alert) in batch.alerts.iter().enumerate() {
        text.push_str(&render_alert(i + 1, alert, lang));
    }
    if !batch.missing.is_empty() {
        text.push_str(lang.pick("\nmissing:\n", "\n缺少：\n"));
        for item in &batch.missing {
            text.push_str(&format!("- {item}\n"));
        }
    }
    text
}

fn render_alert(n: usize, alert: &Alert, lang: Lang) -> String {
    let mut text = format!("\n{n}. {} [{}]\n", clean_line(&alert.name, VALUE_CHARS), word(&alert.status));
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("   {key}: {}\n", clean_line(&value, VALUE_CHARS)));
        }
    };
    line(lang.pick("service", "服务"), alert.service.clone());
    line(lang.pick("severity", "级别"), alert.severity.map(|severity| word(&severity)));
    line(lang.pick("started", "开始"), alert.starts_at.map(|at| at.to_string()));
    line(lang.pick("ended", "结束"), alert.ends_at.map(|at| at.to_string()));
    line(lang.pick("fingerprint", "指纹"), Some(alert.fingerprint.clone()));
    for (key, value) in &alert.labels {
        line(&format!("{} {}", lang.pick("label", "标签"), clean_line(key, 80)), Some(value.clone()));
    }
    for (key, value) in &alert.annotations {
        line(&format!("{} {}", lang.pick("annotation", "注解"), clean_line(key, 80)), Some(value.clone()));
    }
    text
}

/// The word that stands for a value in JSON.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_string)).unwrap_or_default()
}
