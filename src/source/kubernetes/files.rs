//! The status source over files: what `kubectl` printed, and a list of changes that somebody wrote down.
//!
//! In: a folder of JSON files, read once. Out: answers from memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use encoding_rs::{UTF_16BE, UTF_16LE};
use jiff::Timestamp;

use super::inventory::Inventory;
use super::select;
use crate::domain::{Change, Window};
use crate::source::unpack::unpack;
use crate::source::{SourceError, StatusAnswer, StatusQuery, StatusSource};

/// Folders below the status folder that are looked into.
const MAX_DEPTH: usize = 4;
/// A file in UTF-16 is decoded in memory; a larger one is refused.
const MAX_UTF16_BYTES: u64 = 64 << 20;

/// Workload status and changes, in memory.
#[derive(Debug)]
pub struct FileStatus {
    name: String,
    inventory: Inventory,
    /// Oldest first.
    changes: Vec<Change>,
}

impl FileStatus {
    pub fn new(name: &str, inventory: Inventory, mut changes: Vec<Change>) -> Self {
        changes.sort_by_key(|change| change.time);
        Self { name: name.to_owned(), inventory, changes }
    }

    /// What could not be read and why.
    pub fn notes(&self) -> &[String] {
        &self.inventory.notes
    }

    /// The latest time that anything in it speaks of.
    pub fn last(&self) -> Option<Timestamp> {
        let pods = self.inventory.pods.values().flat_map(|pod| &pod.value.containers);
        let ended = pods.filter_map(|container| container.last_termination_at);
        let events = self.inventory.events.values().filter_map(|event| event.last);
        let created = self.inventory.replica_sets.values().filter_map(|set| set.value.created);
        ended.chain(events).chain(created).chain(self.changes.last().map(|change| change.time)).max()
    }
}

#[async_trait]
impl StatusSource for FileStatus {
    fn name(&self) -> &str {
        &self.name
    }

    async fn status(&self, query: &StatusQuery) -> Result<StatusAnswer, SourceError> {
        Ok(select::answer(&self.inventory, query))
    }

    async fn changes(&self, window: Window, service: Option<&str>) -> Result<Vec<Change>, SourceError> {
        let concerns = |change: &&Change| match (service, &change.service) {
            (Some(asked), Some(named)) => named.eq_ignore_ascii_case(asked.rsplit('/').next().unwrap_or(asked)),
            // A change of no service in particular may touch any.
            _ => true,
        };
        Ok(self.changes.iter().filter(|change| window.contains(change.time)).filter(concerns).cloned().collect())
    }
}

/// Reads every file of a folder and the folders in it, in the order of their names.
pub fn read_folder(folder: &Path) -> Inventory {
    let mut inventory = Inventory::default();
    for path in list(folder, MAX_DEPTH, &mut inventory) {
        let place = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        if let Err(error) = read_file(&path, &place, &mut inventory) {
            inventory.note(format!("{place}: {error}"));
        }
    }
    inventory
}

fn list(folder: &Path, depth: usize, inventory: &mut Inventory) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            inventory.note(format!("{}: {error}", folder.display()));
            return Vec::new();
        }
    };
    let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok()).map(|entry| entry.path()).collect();
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden {
            continue;
        }
        // A link to a folder is not followed: it may lead back up.
        if path.is_dir() && !path.is_symlink() && depth > 0 {
            files.extend(list(&path, depth - 1, inventory));
        } else if path.is_file() {
            files.push(path);
        }
    }
    files
}

fn read_file(path: &Path, place: &str, inventory: &mut Inventory) -> std::io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    if ![".json", ".jsonl", ".ndjson"].iter().any(|end| plain.ends_with(end)) {
        inventory.note(format!("{place}: not read: expected JSON (kubectl get ... -o json) in a file named *.json"));
        return Ok(());
    }
    read_text(BufReader::new(unpack(File::open(path)?)?), place, inventory)
}

/// Reads JSON in UTF-8, with or without a byte-order mark, or in the UTF-16 that PowerShell writes.
fn read_text(mut reader: impl BufRead, place: &str, inventory: &mut Inventory) -> std::io::Result<()> {
    let start = reader.fill_buf()?;
    let utf16 = match start {
        [0xFF, 0xFE, ..] => Some(UTF_16LE),
        [0xFE, 0xFF, ..] => Some(UTF_16BE),
        _ => None,
    };
    if start.starts_with(&[0xEF, 0xBB, 0xBF]) {
        reader.consume(3);
    }
    let Some(encoding) = utf16 else {
        inventory.read(place, reader);
        return Ok(());
    };
    let mut bytes = Vec::new();
    reader.take(MAX_UTF16_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_UTF16_BYTES {
        inventory.note(format!("{place}: not read: UTF-16 of over {MAX_UTF16_BYTES} bytes; save it as UTF-8"));
        return Ok(());
    }
    inventory.read(place, encoding.decode(&bytes).0.as_bytes());
    Ok(())
}
