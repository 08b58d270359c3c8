//! `oncall diagnose --record DIR`: the diagnosis as an incident folder, from which it is made again without its sources.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::services::redact_settings;
use super::world::World;
use super::{BadInput, Context, bad_input};
use crate::domain::{Alert, AlertStatus, Topology};
use crate::llm::Recorder;
use crate::llm::redact::Redactor;
use crate::tool::replay::{Mask, recorded};

/// Exchanges with tools and models, one a line.
pub const EXCHANGES: &str = "exchanges.jsonl";

/// Begins the folder, and gives the tools back as ones whose every call is kept in it.
///
/// # Errors
/// A folder that holds an incident already, or cannot be written: exit 2.
pub fn begin(
    dir: &Path,
    alerts: &[Alert],
    now: Timestamp,
    zone: &TimeZone,
    world: World,
    context: &Context,
) -> anyhow::Result<World> {
    if ["incident.toml", "alert.json", EXCHANGES].iter().any(|name| dir.join(name).exists()) {
        let message = format!("--record {}: an incident is in it already: expected a new folder", dir.display());
        return Err(BadInput(message).into());
    }
    let redactor = Arc::new(Redactor::new(redact_settings(&context.config.redact)?));
    let mask: Mask = Arc::new(move |value: &Value| redactor.mask_json(value));
    let unwritable = |error: std::io::Error| bad_input(format!("--record {}: {error}", dir.display()));
    make_folder(dir).map_err(unwritable)?;
    write(&dir.join("alert.json"), &format!("{:#}\n", mask(&payload(alerts)))).map_err(unwritable)?;
    write(&dir.join("incident.toml"), &settings(alerts, now, zone, &world.topology)).map_err(unwritable)?;
    write(&dir.join("config.toml"), &crate::config::render(&context.config)).map_err(unwritable)?;
    let file = new_file(&dir.join(EXCHANGES)).map_err(unwritable)?;
    let registry = recorded(&world.registry, &world.absent, file, mask).map_err(unwritable)?;
    Ok(World { registry, ..world })
}

/// What keeps the exchanges with models, in the same file.
///
/// # Errors
/// A file that cannot be written: exit 2.
pub fn of_models(dir: &Path) -> anyhow::Result<Arc<Recorder>> {
    let kept = Recorder::append_to(&dir.join(EXCHANGES));
    kept.map(Arc::new).map_err(|error| bad_input(format!("--record {}: {error}", dir.display())))
}

/// The alerts as Alertmanager sends them.
fn payload(alerts: &[Alert]) -> Value {
    let one = |alert: &Alert| {
        let mut labels = alert.labels.clone();
        labels.entry("alertname".into()).or_insert_with(|| alert.name.clone());
        if let Some(service) = &alert.service {
            labels.entry("service".into()).or_insert_with(|| service.clone());
        }
        let status = if alert.status == AlertStatus::Resolved { "resolved" } else { "firing" };
        json!({
            "status": status, "labels": labels, "annotations": alert.annotations,
            "startsAt": alert.starts_at, "endsAt": alert.ends_at, "fingerprint": alert.fingerprint,
        })
    };
    json!({ "version": "4", "status": "firing", "alerts": alerts.iter().map(one).collect::<Vec<_>>() })
}

fn settings(alerts: &[Alert], now: Timestamp, zone: &TimeZone, topology: &Topology) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let name = alerts.first().map_or("recorded", |alert| alert.name.as_str());
    let mut text = format!("name = {}\nnow = {}\n", quoted(name), quoted(&now.to_string()));
    if let Some(zone) = zone.iana_name() {
        let _ = writeln!(text, "timezone = {}", quoted(zone));
    }
    if !topology.is_empty() {
        text.push_str("\n[topology]\n");
        for (caller, callees) in topology {
            let callees: Vec<String> = callees.iter().map(|callee| quoted(callee)).collect();
            let _ = writeln!(text, "{} = [{}]", quoted(caller), callees.join(", "));
        }
    }
    text
}

fn make_folder(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn new_file(path: &Path) -> std::io::Result<File> {
    let mut options = std::fs::OpenOptions::new();
    // Appending, since models and tools share a file.
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    new_file(path)?.write_all(text.as_bytes())
}
