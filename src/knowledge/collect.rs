//! Finds the documents below the paths that are to be indexed.
//!
//! In: files and folders, or nothing for the runbooks that are compiled in. Out: files in a stable order with the
//! names they are stored under, and what could not be read. Nothing here stops a run.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use include_dir::{Dir, include_dir};

use super::document::EXTENSIONS;

/// The runbooks that come with the program.
static RUNBOOKS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/docs-kb");
/// Opens the keys of compiled-in runbooks; no absolute path starts so.
const BUILT_IN: &str = "builtin:/";
/// Larger files are no documents that somebody reads.
const MAX_FILE_BYTES: u64 = 20 << 20;

/// Where documents come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    Paths(Vec<PathBuf>),
}

/// A document that was found and not read yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Names the document in the store: its real absolute path. Two roots may hold the same relative name.
    pub key: String,
    /// What users see: the path relative to the root, with `/`.
    pub source: String,
    place: Place,
}

#[derive(Debug, Clone, PartialEq)]
enum Place {
    Disk(PathBuf),
    BuiltIn(&'static [u8]),
}

/// A file or folder, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub path: String,
    pub why: String,
}

/// What is below the paths.
#[derive(Debug, Default)]
pub struct Collection {
    /// Sorted by root, then by path; no file twice.
    pub files: Vec<Found>,
    /// What should have been read and could not be.
    pub failed: Vec<Trouble>,
    /// What was passed over for a reason that is worth a line.
    pub skipped: Vec<Trouble>,
    /// The keys of the roots that were read: what is stored below one and was not found has vanished.
    pub roots: Vec<String>,
}

impl Found {
    pub fn read(&self) -> Result<Vec<u8>, String> {
        match &self.place {
            Place::BuiltIn(bytes) => Ok(bytes.to_vec()),
            Place::Disk(path) => {
                let size = fs::metadata(path).map_err(|error| plain_error(&error))?.len();
                if size > MAX_FILE_BYTES {
                    return Err(format!(
                        "too large: {} MiB, and a document has at most {}; split it",
                        size.div_ceil(1 << 20),
                        MAX_FILE_BYTES >> 20
                    ));
                }
                fs::read(path).map_err(|error| plain_error(&error))
            }
        }
    }

    /// What a file looks like from outside: a change of it shows here, mostly.
    pub fn fingerprint(&self) -> Option<(u64, std::time::SystemTime)> {
        match &self.place {
            Place::BuiltIn(_) => None,
            Place::Disk(path) => fs::metadata(path).and_then(|found| Ok((found.len(), found.modified()?))).ok(),
        }
    }
}

impl Collection {
    /// Adds a file that is stored and was not found below the paths, if it is still there.
    pub fn add_stored(&mut self, key: &str, source: &str) {
        let path = Path::new(key);
        if path.is_file() {
            let place = Place::Disk(path.to_path_buf());
            self.files.push(Found { key: key.to_string(), source: source.to_string(), place });
        }
    }

    /// Whether a stored key lies below one of the roots that were read.
    pub fn covers(&self, key: &str) -> bool {
        self.roots.iter().any(|root| {
            key.strip_prefix(root.as_str())
                .is_some_and(|rest| rest.is_empty() || root.ends_with(['/', '\\']) || rest.starts_with(['/', '\\']))
        })
    }
}

/// Whether a stored document is a runbook that was compiled in.
pub fn is_built_in(key: &str) -> bool {
    key.starts_with(BUILT_IN)
}

pub fn collect(origin: &Origin) -> Collection {
    let mut collection = Collection::default();
    match origin {
        Origin::BuiltIn => collect_built_in(&RUNBOOKS, &mut collection),
        Origin::Paths(paths) => {
            let mut seen = HashSet::new();
            for path in paths {
                collect_path(path, &mut seen, &mut collection);
            }
        }
    }
    collection
}

fn collect_built_in(folder: &'static Dir<'static>, collection: &mut Collection) {
    collection.roots.push(BUILT_IN.to_string());
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        folders.extend(folder.dirs());
        for file in folder.files().filter(|file| is_document(file.path())) {
            let source = with_slashes(file.path());
            let place = Place::BuiltIn(file.contents());
            collection.files.push(Found { key: format!("{BUILT_IN}{source}"), source, place });
        }
    }
    collection.files.sort_by(|a, b| a.key.cmp(&b.key));
}

/// A folder is walked; a file that is named is taken whatever its ending.
fn collect_path(path: &Path, seen: &mut HashSet<String>, collection: &mut Collection) {
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) => {
            collection.failed.push(Trouble { path: path.display().to_string(), why: plain_error(&error) });
            return;
        }
    };
    let root = readable_name(&real);
    if real.is_dir() {
        walk(path, &root, seen, collection);
        return;
    }
    collection.roots.push(root.clone());
    if seen.insert(root.clone()) {
        let source = real.file_name().map_or(root.clone(), |name| readable_name(Path::new(name)));
        collection.files.push(Found { key: root, source, place: Place::Disk(real) });
    }
}

fn walk(folder: &Path, root: &str, seen: &mut HashSet<String>, collection: &mut Collection) {
    let failed_before = collection.failed.len();
    let walk = WalkBuilder::new(folder)
        .standard_filters(false)
        .hidden(true)
        .follow_links(true)
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                note_walk_error(folder, &error, collection);
                continue;
            }
        };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if !is_file || !is_document(entry.path()) {
            continue;
        }
        let source = with_slashes(entry.path().strip_prefix(folder).unwrap_or(entry.path()));
        match fs::canonicalize(entry.path()) {
            Ok(real) => {
                let key = readable_name(&real);
                if seen.insert(key.clone()) {
                    collection.files.push(Found { key, source, place: Place::Disk(real) });
                }
            }
            Err(error) => collection.failed.push(Trouble { path: source, why: plain_error(&error) }),
        }
    }
    // What lies behind an unreadable folder is not known to have vanished.
    if collection.failed.len() == failed_before {
        collection.roots.push(root.to_string());
    }
}

fn note_walk_error(folder: &Path, error: &ignore::Error, collection: &mut Collection) {
    let (path, cause) = path_and_cause(error);
    let path = path.map_or_else(|| folder.display().to_string(), |path| path.display().to_string());
    if let ignore::Error::Loop { ancestor, child } = cause {
        let why = format!("a link back to {}: not followed", ancestor.display());
        collection.skipped.push(Trouble { path: child.display().to_string(), why });
        return;
    }
    let why = match cause {
        ignore::Error::Io(error) => plain_error(error),
        other => other.to_string(),
    };
    collection.failed.push(Trouble { path, why });
}

fn path_and_cause(error: &ignore::Error) -> (Option<&Path>, &ignore::Error) {
    match error {
        ignore::Error::WithPath { path, err } => {
            let (inner, cause) = path_and_cause(err);
            (inner.or(Some(path)), cause)
        }
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_and_cause(err),
        other => (None, other),
    }
}

fn is_document(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str()))
}

fn with_slashes(path: &Path) -> String {
    path.components().map(|part| readable_name(Path::new(part.as_os_str()))).collect::<Vec<_>>().join("/")
}

/// A name that is not Unicode keeps its odd bytes as escapes, so that two such names stay two.
fn readable_name(path: &Path) -> String {
    match path.to_str() {
        Some(name) => name.to_string(),
        None => format!("{}", path.as_os_str().as_encoded_bytes().escape_ascii()),
    }
}

fn plain_error(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or folder".to_string(),
        std::io::ErrorKind::PermissionDenied => "permission denied: it needs read rights".to_string(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        folder
    }

    fn sources(collection: &Collection) -> Vec<&str> {
        collection.files.iter().map(|file| file.source.as_str()).collect()
    }

    #[test]
    fn documents_are_found_below_a_folder_and_other_files_are_not() {
        let folder = tree(&["b.md", "a/z.TXT", "a/x.rst", "a/pic.png", ".git/HEAD.md", "don't.md", "50%.md", "README"]);
        let found = collect(&Origin::Paths(vec![folder.path().into()]));
        assert_eq!(sources(&found), ["50%.md", "a/x.rst", "a/z.TXT", "b.md", "don't.md"]);
        assert_eq!((found.failed, found.skipped), (vec![], vec![]));
    }

    #[test]
    fn a_file_that_is_named_is_taken_whatever_its_ending() {
        let folder = tree(&["NOTES"]);
        assert_eq!(sources(&collect(&Origin::Paths(vec![folder.path().join("NOTES")]))), ["NOTES"]);
    }

    #[test]
    fn no_file_is_found_twice_and_two_roots_may_share_a_name() {
        let folder = tree(&["one/a.md", "two/a.md"]);
        let paths = [folder.path().join("one"), folder.path().join("two"), folder.path().to_path_buf()];
        let found = collect(&Origin::Paths(paths.to_vec()));
        assert_eq!(sources(&found), ["a.md", "a.md"]);
        assert_ne!(found.files[0].key, found.files[1].key);
    }

    #[test]
    fn a_missing_path_fails_and_the_others_are_read() {
        let folder = tree(&["a.md"]);
        let missing = folder.path().join("missing");
        let found = collect(&Origin::Paths(vec![missing.clone(), folder.path().into()]));
        assert_eq!(
            found.failed,
            [Trouble { path: missing.display().to_string(), why: "no such file or folder".into() }]
        );
        assert_eq!(sources(&found), ["a.md"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_loops_are_not() {
        let folder = tree(&["real/a.md"]);
        std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("real/loop")).unwrap();
        let found = collect(&Origin::Paths(vec![folder.path().into()]));
        assert_eq!(sources(&found), ["link/a.md"]);
        assert!(found.skipped.iter().all(|trouble| trouble.why.ends_with(": not followed")));
        assert_eq!((found.skipped.len(), found.failed), (2, vec![]));
    }

    #[test]
    fn a_root_covers_what_lies_below_it_only() {
        let covers = |root: &str, key| Collection { roots: vec![root.into()], ..Default::default() }.covers(key);
        assert!(covers("/docs", "/docs/a.md") && covers("/docs/a.md", "/docs/a.md") && covers("/", "/a.md"));
        assert!(!covers("/docs", "/docs-kb/a.md"));
        assert!(covers(BUILT_IN, "builtin:/en/a.md"));
    }

    #[test]
    fn runbooks_are_compiled_in() {
        let found = collect(&Origin::BuiltIn);
        assert!(!found.files.is_empty() && found.files.iter().all(|file| is_built_in(&file.key)));
    }
}
