//! Files of this machine by name: paths, folders and patterns in, the files with their rotated parts out.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};

use super::files::{LogFile, describe, list_files, unrotated};

/// Folders below the fixed part of a pattern that are looked into.
const MAX_DEPTH: usize = 8;

/// Every file that the patterns mean, sorted, with the reasons why some could not be listed.
pub fn list(patterns: &[PathBuf]) -> (Vec<LogFile>, Vec<String>) {
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    for pattern in patterns {
        let found = if pattern.is_dir() {
            list_files(std::slice::from_ref(pattern))
        } else if is_pattern(pattern) {
            matching(pattern)
        } else {
            with_rotated(pattern)
        };
        files.extend(found.0);
        notes.extend(found.1);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    (files, notes)
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '[', '{'])
}

/// A file by name, and its rotated parts beside it.
fn with_rotated(path: &Path) -> (Vec<LogFile>, Vec<String>) {
    let folder = path.parent().unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder);
    let beside = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        beside.filter(|other| other.is_file() && unrotated(other).is_some_and(|base| base == path)).collect();
    if path.is_file() {
        found.push(path.to_path_buf());
    }
    if found.is_empty() {
        return (Vec::new(), vec![format!("cannot list {}: there is no such file", path.display())]);
    }
    // All parts are of the same log.
    let of = |path: PathBuf, log: &Path| LogFile { path, ..describe(log, log.to_path_buf()) };
    (found.into_iter().map(|found| of(found, path)).collect(), Vec::new())
}

/// The files below the fixed part of a pattern that match it, or of which a rotated part does.
fn matching(pattern: &Path) -> (Vec<LogFile>, Vec<String>) {
    let root: PathBuf = pattern.components().take_while(|part| !is_pattern(Path::new(part.as_os_str()))).collect();
    let rest = pattern.strip_prefix(&root).unwrap_or(pattern);
    let rules = match rules(&root, rest) {
        Ok(rules) => rules,
        Err(error) => return (Vec::new(), vec![format!("{}: {error}", pattern.display())]),
    };
    let fits = |path: &Path| rules.matched(path, false).is_whitelist();
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    let walk = WalkBuilder::new(&root).standard_filters(false).follow_links(true).max_depth(Some(MAX_DEPTH)).build();
    for entry in walk {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                let path = entry.into_path();
                if fits(&path) || unrotated(&path).is_some_and(|base| fits(&base)) {
                    files.push(describe(&root, path));
                }
            }
            Ok(_) => {}
            Err(error) => notes.push(format!("cannot list {}: {error}", root.display())),
        }
    }
    if files.is_empty() && notes.is_empty() {
        notes.push(format!("no file matches {}", pattern.display()));
    }
    (files, notes)
}

/// Stars do not cross folders, two of them do.
fn rules(root: &Path, rest: &Path) -> Result<Override, ignore::Error> {
    OverrideBuilder::new(root).add(&format!("/{}", rest.to_string_lossy()))?.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path, patterns: &[&str]) -> Vec<String> {
        let patterns: Vec<PathBuf> = patterns.iter().map(|pattern| folder.join(pattern)).collect();
        let (files, notes) = list(&patterns);
        let shown = |file: &LogFile| {
            let path = file.path.strip_prefix(folder).unwrap().display().to_string();
            format!("{path} {}", file.service.as_deref().unwrap_or("-"))
        };
        files
            .iter()
            .map(shown)
            .chain(notes.iter().map(|note| note.replace(&folder.display().to_string(), "DIR")))
            .collect()
    }

    #[test]
    fn patterns_and_names_mean_their_rotated_parts_too() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "cart/app.log",
            "cart/app.log.1",
            "cart/app.log.2.gz",
            "cart/other.txt",
            "mail/app.log-20260304",
            "mail/deep/app.log",
            "stock.log",
            "stock.log.1",
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x\n").unwrap();
        }
        assert_eq!(
            names(folder.path(), &["*/app.log"]),
            ["cart/app.log cart", "cart/app.log.1 cart", "cart/app.log.2.gz cart", "mail/app.log-20260304 mail"]
        );
        assert_eq!(names(folder.path(), &["**/deep/*.log"]), ["mail/deep/app.log mail"]);
        assert_eq!(names(folder.path(), &["stock.log"]), ["stock.log stock", "stock.log.1 stock"]);
        assert_eq!(names(folder.path(), &["nosuch.log"]), ["cannot list DIR/nosuch.log: there is no such file"]);
        assert_eq!(names(folder.path(), &["*.nosuch"]), ["no file matches DIR/*.nosuch"]);
    }
}
