//! Running the binary as a user would, with data of its own.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use assert_cmd::Command;

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A data folder in which `docs-kb` is indexed, made once for all tests of this process.
pub fn indexed_data_dir() -> PathBuf {
    static DIR: OnceLock<tempfile::TempDir> = OnceLock::new();
    let dir = DIR.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let index = oncall(dir.path()).args(["index", "docs-kb"]).output().unwrap();
        assert!(index.status.success(), "{}", String::from_utf8_lossy(&index.stderr));
        dir
    });
    dir.path().to_path_buf()
}

/// The binary in a folder of its own, with the runbooks of all tests: they are those of this folder too, so that what it
/// brings up to date by itself is what the other tests have indexed.
pub fn oncall_in(folder: &Path) -> Command {
    let runbooks = folder.join("docs-kb");
    if !runbooks.exists() {
        std::os::unix::fs::symlink(root().join("docs-kb"), runbooks).unwrap();
    }
    let mut command = oncall(&indexed_data_dir());
    command.current_dir(folder);
    command
}

/// The binary in the repository's folder, with this data folder and none of the user's own settings.
pub fn oncall(data_dir: &Path) -> Command {
    let mut command = Command::cargo_bin("oncall").unwrap();
    let settings = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ONCALL_"));
    for (name, _) in settings {
        command.env_remove(name);
    }
    // A machine that is busy with other tests is slow; that is no fault of a tool.
    command.env("ONCALL_AGENT_TOOL_TIMEOUT", "2m");
    command.current_dir(root()).env("XDG_CONFIG_HOME", data_dir).env("ONCALL_DATA_DIR", data_dir).env("TZ", "UTC");
    command
}

/// Exit code, stdout and stderr as text.
pub fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}
