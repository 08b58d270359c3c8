//! Two emulators of search servers on loopback, one that speaks OpenSearch's API and one that speaks Elasticsearch's: the real
//! ones cannot be had in a test.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::compiled::test_servers;
use super::process::{Process, post};

const INSTALL: &str = "the search emulators are needed for this test: .ci/install test";

/// Which one.
#[derive(Debug, Clone, Copy)]
pub enum Search {
    OpenSearch,
    Elasticsearch,
}

pub struct SearchServer(Process);

impl SearchServer {
    pub fn start(which: Search) -> Self {
        let program = program(which);
        let arguments = |address: std::net::SocketAddr, folder: &Path| match which {
            Search::OpenSearch => {
                vec!["-addr".into(), address.to_string(), "-no-ja".into(), "-no-stdin-watch".into()]
            }
            Search::Elasticsearch => vec![
                "start".into(),
                "--data-dir".into(),
                folder.join("data").display().to_string(),
                "--only".into(),
                "elasticsearch".into(),
                "--elasticsearch-port".into(),
                address.port().to_string(),
            ],
        };
        Self(Process::start(&program, arguments, "/", INSTALL))
    }

    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Stores documents in an index, and makes them searchable.
    pub fn store(&self, index: &str, documents: &[Value]) {
        for part in documents.chunks(2000) {
            let mut body = String::new();
            for document in part {
                body.push_str(&format!("{{\"index\":{{\"_index\":\"{index}\"}}}}\n{document}\n"));
            }
            let answer = post(&format!("{}/_bulk?refresh=true", self.url()), "application/x-ndjson", body);
            assert_eq!(answer["errors"], false, "{answer}");
        }
    }
}

/// Where `.ci/install test` put them.
fn program(which: Search) -> PathBuf {
    let program = test_servers().join(match which {
        Search::OpenSearch => "osmem_server/bin/osmem-server",
        Search::Elasticsearch => "noida_db/noida-db",
    });
    assert!(program.is_file(), "{INSTALL} (looked for {})", program.display());
    program
}
