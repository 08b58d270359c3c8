//! The last good outcome of each call, kept on disk, so that a run can fall back to it when a source is down.
//!
//! In: calls and their outcomes, without their secrets. Out: the outcome of the same question about nearly the same time,
//! with its age. Files are bounded in number and size, and forgotten after a day.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::replay::Mask;
use super::{knowledge, time};
use crate::domain::{Call, Output, Served, SourceStatus, Window};

/// An older answer says nothing of today's trouble.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(24);
/// Calls that are kept, and their size in all.
const MAX_FILES: usize = 400;
const MAX_BYTES: u64 = 64 << 20;
/// The share of the asked time that a kept answer must be about.
const LEAST_OVERLAP: f64 = 0.5;
/// Arguments that only say when: the same question is asked again about another time.
const TIMES: [&str; 2] = ["start", "end"];

/// Outcomes of the calls that go to one set of sources.
pub struct Kept {
    folder: PathBuf,
    /// Which sources answer: what others said is not theirs.
    scope: String,
    mask: Mask,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    tool: String,
    arguments: Value,
    at: Timestamp,
    output: Output,
}

impl Kept {
    /// Opens the folder, which need not be there yet, and forgets what is old or too much.
    pub fn open(folder: PathBuf, scope: &str, mask: Mask) -> Self {
        forget(&folder, Timestamp::now());
        Self { folder, scope: scope.to_owned(), mask }
    }

    /// Keeps an outcome, if it is one worth falling back to. A folder that cannot be written is no fault of the run.
    pub fn keep(&self, call: &Call, output: &Output) {
        self.keep_at(call, output, Timestamp::now());
    }

    fn keep_at(&self, call: &Call, output: &Output, at: Timestamp) {
        let failed = |status: SourceStatus| status.badness() >= SourceStatus::Stale.badness();
        let is_whole = output.served == Served::Live && !output.asked.iter().any(|report| failed(report.status));
        if !is_whole || [knowledge::NAME, time::NAME].contains(&call.tool.as_str()) {
            return;
        }
        let entry = Entry { tool: call.tool.clone(), arguments: call.arguments.clone(), at, output: output.clone() };
        let written = serde_json::to_value(&entry)
            .map_err(io::Error::other)
            .and_then(|entry| write(&self.path(call), (self.mask)(&entry).to_string().as_bytes()));
        if let Err(error) = written {
            tracing::debug!("an outcome is not kept: {error}");
        }
    }

    /// The last good outcome of the same question and when it came, when it is not too old and about nearly the same
    /// time.
    pub fn find(&self, call: &Call) -> Option<(Timestamp, Output)> {
        self.find_at(call, Timestamp::now())
    }

    fn find_at(&self, call: &Call, now: Timestamp) -> Option<(Timestamp, Output)> {
        let entry: Entry = serde_json::from_slice(&fs::read(self.path(call)).ok()?).ok()?;
        let is_fresh = now.duration_since(entry.at) <= MAX_AGE;
        let same_time = match (asked_window(&call.arguments), entry.output.window) {
            (Some(asked), Some(kept)) => overlap(asked, kept) >= LEAST_OVERLAP,
            _ => true,
        };
        (is_fresh && same_time && entry.tool == call.tool).then_some((entry.at, entry.output))
    }

    fn path(&self, call: &Call) -> PathBuf {
        let mut question: BTreeMap<&String, &Value> = BTreeMap::new();
        for (name, value) in call.arguments.as_object().into_iter().flatten() {
            if !value.is_null() && !TIMES.contains(&name.as_str()) {
                question.insert(name, value);
            }
        }
        // Plain data, whose serialisation does not fail; were it to, all such calls would share a file.
        let question = serde_json::to_string(&question).unwrap_or_default();
        let hash = blake3::hash(format!("{}\n{}\n{question}", self.scope, call.tool).as_bytes());
        self.folder.join(format!("{}.json", hash.to_hex()))
    }
}

/// The time that the arguments name in full.
fn asked_window(arguments: &Value) -> Option<Window> {
    let time = |name: &str| arguments[name].as_str()?.parse::<Timestamp>().ok();
    Some(Window::new(time("start")?, time("end")?))
}

fn overlap(asked: Window, kept: Window) -> f64 {
    let (start, end) = (asked.start.max(kept.start), asked.end.min(kept.end));
    let common = end.duration_since(start).as_secs_f64().max(0.0);
    match asked.duration().as_secs_f64() {
        0.0 => f64::from(u8::from(kept.contains(asked.start))),
        length => common / length,
    }
}

/// Writes a file that nobody else reads, whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    // Runs side by side write to files of their own first.
    let beside = path.with_extension(format!("{}.tmp", uuid::Uuid::now_v7().simple()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&beside).and_then(|mut file| file.write_all(bytes));
    written.and_then(|()| fs::rename(&beside, path)).inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Removes what is older than a day, and the oldest of what is too much.
fn forget(folder: &Path, now: Timestamp) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(Timestamp, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let modified = Timestamp::try_from(metadata.modified().ok()?).ok()?;
            Some((modified, metadata.len(), entry.path()))
        })
        .collect();
    files.sort_by_key(|(modified, ..)| std::cmp::Reverse(*modified));
    let (mut count, mut bytes) = (0, 0);
    for (modified, size, path) in files {
        (count, bytes) = (count + 1, bytes + size);
        if count > MAX_FILES || bytes > MAX_BYTES || now.duration_since(modified) > MAX_AGE {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::domain::Finding;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn output(window: Window) -> Output {
        Output {
            source: "prod".into(),
            window: Some(window),
            findings: vec![Finding::Nothing { what: "secret=hunter2".into() }],
            notes: Vec::new(),
            truncated: false,
            served: Served::Live,
            asked: Vec::new(),
            retrieval: None,
        }
    }

    fn call(start: &str, end: &str) -> Call {
        Call { tool: "search_logs".into(), arguments: json!({"service": "cart", "start": start, "end": end}) }
    }

    fn kept(folder: &Path, scope: &str) -> Kept {
        let mask: Mask =
            Arc::new(|value: &Value| serde_json::from_str(&value.to_string().replace("hunter2", "***")).unwrap());
        Kept::open(folder.to_path_buf(), scope, mask)
    }

    #[test]
    fn the_same_question_about_nearly_the_same_time_is_answered_without_its_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("outcomes");
        let (start, end) = ("2026-03-04T06:00:00Z", "2026-03-04T07:00:00Z");
        let now = at("2026-03-04T07:00:00Z");
        kept(&folder, "a").keep_at(&call(start, end), &output(Window::new(at(start), at(end))), now);
        let find = |scope: &str, start: &str, end: &str, now: &str| {
            kept(&folder, scope).find_at(&call(start, end), at(now)).map(|(at, output)| (at, output.findings))
        };
        let clean = vec![Finding::Nothing { what: "secret=***".into() }];
        assert_eq!(
            find("a", "2026-03-04T06:10:00Z", "2026-03-04T07:10:00Z", "2026-03-04T07:10:00Z"),
            Some((now, clean))
        );
        assert_eq!(find("b", start, end, "2026-03-04T07:10:00Z"), None, "other sources");
        assert_eq!(
            find("a", "2026-03-04T06:50:00Z", "2026-03-04T07:50:00Z", "2026-03-04T07:50:00Z"),
            None,
            "other time"
        );
        assert_eq!(find("a", start, end, "2026-03-05T07:00:01Z"), None, "too old");
        #[cfg(unix)]
        for entry in fs::read_dir(&folder).unwrap() {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn what_is_too_much_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        for index in 0..MAX_FILES + 5 {
            fs::write(folder.path().join(format!("{index}.json")), "{}").unwrap();
        }
        kept(folder.path(), "a");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MAX_FILES);
        forget(folder.path(), Timestamp::now() + SignedDuration::from_hours(25));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
