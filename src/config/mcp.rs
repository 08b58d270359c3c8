//! `[mcp.NAME]`: the servers that are plugged in, checked; and the `mcpServers` JSON of other hosts in the same shape.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::layers::{Values, invalid};
use super::shape::{AuthConfig, McpConfig, McpProtocol, McpProvides};
use super::{ConfigError, EndpointFile};
use crate::http::HttpSettings;

/// How long a server may take until it has told its tools.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// A server's name stands before `__` in the names of its tools, which may have 64 characters in all.
const MAX_NAME_CHARS: usize = 32;
/// What a child needs of the environment; everything else, keys above all, it gets only when `env` says so.
const INHERITED: [&str; 22] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// One MCP server, checked.
#[derive(Clone, PartialEq)]
pub struct McpServer {
    pub wire: McpWire,
    pub protocol: McpProtocol,
    /// For connecting and listing the tools.
    pub start_timeout: Duration,
    /// Patterns of tools that may run unattended; `*` stands for any characters.
    pub allow: Vec<String>,
    /// Patterns of tools that are not taken at all.
    pub deny: Vec<String>,
    pub provides: Vec<McpProvides>,
    /// Variables that the table names and that are not set: the server cannot be started until they are.
    pub unset: BTreeSet<String>,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum McpWire {
    Stdio {
        command: String,
        args: Vec<String>,
        /// The whole environment of the process.
        env: BTreeMap<String, String>,
        cwd: Option<PathBuf>,
    },
    Http {
        url: String,
        http: Box<HttpSettings>,
        bearer: Option<String>,
    },
}

/// Without what may be secret.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "McpServer({:?})", self.wire)
    }
}

/// Without arguments, environment and token.
impl fmt::Debug for McpWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            McpWire::Stdio { command, .. } => f.write_str(command),
            McpWire::Http { url, .. } => f.write_str(url),
        }
    }
}

/// Checks the tables. Relative paths count from `base`, the folder of the file.
pub(super) fn check(
    tables: &BTreeMap<String, McpConfig>,
    base: &Path,
    variables: &BTreeMap<String, String>,
    values: &Values,
) -> Result<BTreeMap<String, McpServer>, ConfigError> {
    let mut servers = BTreeMap::new();
    for (name, table) in tables {
        let checked = check_name(name)
            .map_err(|message| (String::new(), message))
            .and_then(|()| check_server(table, base, variables).map_err(|(key, message)| (format!(".{key}"), message)));
        let server = checked.map_err(|(key, message)| invalid(&format!("mcp.{name}{key}"), values, message))?;
        servers.insert(name.clone(), server);
    }
    Ok(servers)
}

/// Whether tools can be named after a server of this name.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !is_plain {
        return Err(format!(
            "is no name of a server: expected up to {MAX_NAME_CHARS} of the characters A-Z a-z 0-9 - _"
        ));
    }
    if name.contains("__") || name.starts_with('_') || name.ends_with('_') {
        return Err("is no name of a server: `__` parts it from the names of its tools".to_owned());
    }
    Ok(())
}

/// One table.
///
/// # Errors
/// The key with what is wrong with it.
pub fn check_server(
    table: &McpConfig,
    base: &Path,
    variables: &BTreeMap<String, String>,
) -> Result<McpServer, (&'static str, String)> {
    let mut expand = Expansion { variables, unset: BTreeSet::new() };
    let wire = match (&table.command, &table.url) {
        (Some(command), None) => stdio(table, command, base, &mut expand)?,
        (None, Some(url)) => http(table, url, base, &mut expand)?,
        (Some(_), Some(_)) => return Err(("url", "stands beside `command`: expected one of the two".into())),
        (None, None) => {
            return Err(("command", "is missing: expected the program to start, or `url` of a running server".into()));
        }
    };
    let start_timeout = match &table.start_timeout {
        Some(text) => parse_duration(text).ok_or_else(|| {
            ("start_timeout", format!("\"{text}\" is not a duration; expected one such as \"10s\" or \"5m\""))
        })?,
        None => START_TIMEOUT,
    };
    Ok(McpServer {
        wire,
        protocol: table.protocol.unwrap_or_default(),
        start_timeout,
        allow: table.allow.clone(),
        deny: table.deny.clone(),
        provides: table.provides.clone(),
        unset: expand.unset,
    })
}

fn stdio(
    table: &McpConfig,
    command: &str,
    base: &Path,
    expand: &mut Expansion<'_>,
) -> Result<McpWire, (&'static str, String)> {
    if command.trim().is_empty() {
        return Err(("command", "is empty: expected the program to start".into()));
    }
    for (key, is_set) in [
        ("headers", !table.headers.is_empty()),
        ("auth", table.auth.is_some()),
        ("tls", table.tls.is_some()),
        ("proxy", table.proxy.is_some()),
    ] {
        if is_set {
            return Err((key, "is for servers with a `url`: this one is a `command`".into()));
        }
    }
    let inherited = INHERITED.iter().filter_map(|name| expand.variables.get_key_value(*name));
    let mut env: BTreeMap<String, String> = inherited.map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in &table.env {
        env.insert(name.clone(), expand.text(value));
    }
    // A command with a slash is a path, which counts from the file as all others do; a bare name is found in PATH.
    let command = expand.text(command);
    let command = match command.contains('/') {
        true => base.join(&command).display().to_string(),
        false => command,
    };
    Ok(McpWire::Stdio {
        command,
        args: table.args.iter().map(|arg| expand.text(arg)).collect(),
        env,
        cwd: table.cwd.as_ref().map(|cwd| base.join(expand.text(cwd))),
    })
}

fn http(
    table: &McpConfig,
    url: &str,
    base: &Path,
    expand: &mut Expansion<'_>,
) -> Result<McpWire, (&'static str, String)> {
    for (key, is_set) in
        [("args", !table.args.is_empty()), ("env", !table.env.is_empty()), ("cwd", table.cwd.is_some())]
    {
        if is_set {
            return Err((key, "is for servers with a `command`: this one is a `url`".into()));
        }
    }
    let url = expand.text(url);
    let headers: BTreeMap<String, String> =
        table.headers.iter().map(|(name, value)| (name.clone(), expand.text(value))).collect();
    let none = None;
    let model = "none".to_owned();
    let endpoint = EndpointFile {
        table: "mcp",
        base_url: Some(&url),
        model: Some(&model),
        api_key_env: none.as_ref(),
        headers: &headers,
        tls: table.tls.as_ref(),
        proxy: table.proxy.as_ref(),
        connect_timeout: None,
        read_timeout: None,
    };
    let checked = endpoint.check(base, expand.variables).map_err(|(key, message)| match key {
        "base_url" => ("url", message),
        key => (key, message),
    })?;
    let bearer = bearer(table.auth.as_ref(), base, expand)?;
    Ok(McpWire::Http { url, http: Box::new(checked.http), bearer })
}

fn bearer(
    auth: Option<&AuthConfig>,
    base: &Path,
    expand: &mut Expansion<'_>,
) -> Result<Option<String>, (&'static str, String)> {
    let Some(auth) = auth else { return Ok(None) };
    if auth.basic.is_some() || auth.api_key_env.is_some() {
        return Err(("auth", "MCP servers take bearer tokens: expected bearer_env or token_file".into()));
    }
    if let Some(name) = &auth.bearer_env {
        return Ok(Some(expand.variable(name, None)).filter(|token| !token.is_empty()));
    }
    let Some(file) = &auth.token_file else {
        return Err(("auth", "is empty: expected bearer_env or token_file".into()));
    };
    let path = base.join(file);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|token| !token.is_empty())),
        Err(error) => Err(("auth", format!("cannot read {}: {error}", path.display()))),
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let duration = text.parse::<jiff::SignedDuration>().ok()?;
    Duration::try_from(duration).ok().filter(|duration| !duration.is_zero())
}

/// `${NAME}` and `${NAME:-default}` in texts, as other hosts write them.
struct Expansion<'a> {
    variables: &'a BTreeMap<String, String>,
    unset: BTreeSet<String>,
}

impl Expansion<'_> {
    fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else { break };
            let inner = &rest[start + 2..start + length];
            out.push_str(&rest[..start]);
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            // VS Code writes `${env:NAME}`.
            let name = name.strip_prefix("env:").unwrap_or(name);
            out.push_str(&self.variable(name, default));
            rest = &rest[start + length + 1..];
        }
        out.push_str(rest);
        out
    }

    fn variable(&mut self, name: &str, default: Option<&str>) -> String {
        match (self.variables.get(name), default) {
            (Some(value), _) => value.trim_end_matches(['\r', '\n']).to_owned(),
            (None, Some(default)) => default.to_owned(),
            (None, None) => {
                self.unset.insert(name.to_owned());
                String::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Overrides, Surroundings, load};
    use super::*;

    fn loaded(text: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("oncall.toml"), text).unwrap();
        std::fs::write(dir.path().join("token"), "from-file\n").unwrap();
        let variables = [("PATH", "/bin"), ("SECRET", "s3cret"), ("OTHER", "x")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let around = Surroundings { working_dir: dir.path().into(), variables, ..Surroundings::default() };
        let hide = |text: String| text.replace(&dir.path().display().to_string(), "DIR");
        load(&Overrides::default(), &around).map_err(|error| hide(error.to_string()))
    }

    fn server(text: &str) -> McpServer {
        loaded(&format!("[mcp.a]\n{text}")).unwrap().mcp.remove("a").unwrap()
    }

    #[test]
    fn a_child_gets_the_usual_variables_and_those_that_are_named() {
        let server =
            server("command = \"time\"\nargs = [\"--zone\", \"${ZONE:-UTC}\"]\nenv = { TOKEN = \"${SECRET}\" }\n");
        let McpWire::Stdio { command, args, env, cwd } = server.wire else { panic!("{:?}", server.wire) };
        assert_eq!((command.as_str(), args, cwd), ("time", vec!["--zone".to_owned(), "UTC".to_owned()], None));
        let want = [("PATH", "/bin"), ("TOKEN", "s3cret")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!((env, server.unset), (want.into(), BTreeSet::new()));
        assert_eq!(server.start_timeout, Duration::from_secs(30));
    }

    #[test]
    fn a_token_comes_of_a_variable_or_a_file_and_is_not_shown() {
        for (auth, want) in [("bearer_env = \"SECRET\"", "s3cret"), ("token_file = \"token\"", "from-file")] {
            let server = server(&format!("url = \"http://h/mcp\"\nauth = {{ {auth} }}\n"));
            assert!(!format!("{server:?}").contains(want));
            let McpWire::Http { bearer, .. } = server.wire else { panic!("{auth}") };
            assert_eq!(bearer.as_deref(), Some(want));
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_kept_for_the_moment_of_connecting() {
        let server =
            server("url = \"http://h/mcp\"\nauth = { bearer_env = \"NOSUCH\" }\nheaders = { A = \"${env:GONE}\" }\n");
        assert_eq!(server.unset, ["GONE".to_owned(), "NOSUCH".to_owned()].into());
    }

    #[test]
    fn what_cannot_work_is_named() {
        let error = |text: &str| loaded(text).unwrap_err();
        for (text, want) in [
            (
                "[mcp.a]\nallow = []\n",
                "mcp.a.command: is missing: expected the program to start, or `url` of a running server",
            ),
            (
                "[mcp.a]\ncommand = \"x\"\nurl = \"http://h\"\n",
                "DIR/oncall.toml: mcp.a.url: stands beside `command`: expected one of the two",
            ),
            (
                "[mcp.a__b]\ncommand = \"x\"\n",
                "mcp.a__b: is no name of a server: `__` parts it from the names of its tools",
            ),
            ("[mcp.a]\nurl = \"h:80\"\n", "DIR/oncall.toml: mcp.a.url: \"h:80\": expected http:// or https://"),
            (
                "[mcp.a]\nurl = \"http://h\"\ncwd = \"x\"\n",
                "DIR/oncall.toml: mcp.a.cwd: is for servers with a `command`: this one is a `url`",
            ),
            (
                "[mcp.a]\ncommand = \"x\"\nstart_timeout = \"soon\"\n",
                "DIR/oncall.toml: mcp.a.start_timeout: \"soon\" is not a duration; expected one such as \"10s\" or \"5m\"",
            ),
            ("[mcp.a]\ncommand = \"x\"\nprovides = [\"logz\"]\n", "line 3, column 13: unknown variant `logz`"),
            ("[mcp.a]\ncomand = \"x\"\n", "line 2, column 1: unknown key `comand`; did you mean `command`?"),
        ] {
            assert!(error(text).contains(want), "{text}: {}", error(text));
        }
    }
}
