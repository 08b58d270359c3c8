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
        unknown::variants(),
    ];
    families.into_iter().flatten().collect()
}
