//! Servers that `.ci/compile-servers` compiles, since no package holds them. Not part of `make test`.

use std::path::PathBuf;

pub const INSTALL: &str = "it has to be compiled for this test: .ci/install servers";

/// Where the tests' own servers are.
pub fn test_servers() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    cache.unwrap_or_default().join("oncall/test-servers")
}

/// One of them.
pub fn compiled(name: &str) -> PathBuf {
    let program = test_servers().join(name);
    assert!(program.is_file(), "{} is not there; {INSTALL}", program.display());
    program
}
