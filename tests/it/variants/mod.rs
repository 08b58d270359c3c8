//! Generated incidents that measure how well the reasoner generalises: for each category at least two, worded by
//! different stacks, and some that fit nothing. They are written without looking at the signatures.
//!
//! `variants()` lists them; `Variant::write` makes the folder of one, in the same bytes each time.

pub mod alert;
pub mod curve;
pub mod database;
pub mod dependency;
pub mod format;
pub mod host;
pub mod kube;
pub mod kubernetes;
pub mod rare;
pub mod resources;
pub mod service;
pub mod storage;
pub mod traffic;
pub mod unknown;
pub mod world;

use std::io;
use std::path::Path;

use world::World;

/// An incident with its known cause.
pub struct Variant {
    /// The identifier of the root cause; `unknown` where a diagnosis must not name one.
    pub category: &'static str,
    /// Where the cause is; empty for `unknown`.
    pub service: &'static str,
    /// Services that a fair reader would accept as well (the caller that holds the client, the node under the pod).
    pub also: &'static [&'static str],
    /// Of the folder.
    pub name: &'static str,
    /// The category that looks most alike and must not win.
    pub neighbour: &'static str,
    pub world: fn() -> World,
}

impl Variant {
    /// Writes the incident folder.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        (self.world)().write(dir, self.category, self.service, self.neighbour)
    }
}

/// All of them, by family.
pub fn variants() -> Vec<Variant> {
    let families = [
        database::variants(),
        dependency::variants(),
        resources::variants(),
        storage::variants(),
        kubernetes::variants(),
        traffic::variants(),
        rare::variants(),
        unknown::variants(),
    ];
    families.into_iter().flatten().collect()
}

#[test]
fn a_variant_is_the_same_each_time_it_is_written() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for variant in variants().iter().step_by(7) {
        let [first, second] = dirs.each_ref().map(|dir| {
            variant.write(&dir.path().join(variant.name)).unwrap();
            files(&dir.path().join(variant.name))
        });
        assert!(first == second, "{} differs", variant.name);
    }
}

#[test]
fn names_are_unique_and_neighbours_are_other_categories() {
    let variants = variants();
    let names: std::collections::BTreeSet<_> = variants.iter().map(|variant| variant.name).collect();
    assert_eq!(names.len(), variants.len());
    let own: Vec<_> = variants.iter().filter(|v| v.category == v.neighbour).map(|v| v.name).collect();
    assert_eq!(own, Vec::<&str>::new());
}

/// Every file below a folder with its bytes, in order of path.
#[cfg(test)]
fn files(dir: &Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.insert(path.strip_prefix(dir).unwrap().to_path_buf(), bytes);
            }
        }
    }
    found
}
