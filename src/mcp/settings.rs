//! What is to be known of a server before it is connected.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::http::HttpSettings;

/// One server.
#[derive(Clone)]
pub struct ServerSettings {
    /// As configured; stands before the names of its tools.
    pub name: String,
    pub wire: Wire,
    pub generation: Generation,
    /// For connecting and listing the tools.
    pub start_timeout: Duration,
    /// Patterns of tools that may run unattended though they do not say that they only read.
    pub allow: Vec<String>,
    /// Patterns of tools that are not taken.
    pub deny: Vec<String>,
}

/// How it is reached.
#[derive(Clone)]
pub enum Wire {
    /// A child that speaks on its standard streams; `env` is its whole environment.
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<PathBuf> },
    /// Streamable HTTP. `credentials` is where those of a login are kept.
    Http { url: String, http: Box<HttpSettings>, bearer: Option<String>, credentials: Option<PathBuf> },
}

/// Which generation of the protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Discovery first, then the handshake.
    Auto,
    Initialize,
    Discover,
}

impl ServerSettings {
    /// What is started or called, without what may be secret.
    pub fn place(&self) -> String {
        match &self.wire {
            Wire::Stdio { command, args, .. } => {
                std::iter::once(command.as_str()).chain(args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
            }
            Wire::Http { url, .. } => match reqwest::Url::parse(url) {
                Ok(mut url) => {
                    // Neither fails for an http URL; a query may hold a key.
                    let _ = (url.set_username(""), url.set_password(None));
                    url.set_query(None);
                    url.to_string()
                }
                Err(_) => url.clone(),
            },
        }
    }
}

/// Without what may be secret.
impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerSettings({}: {})", self.name, self.place())
    }
}
