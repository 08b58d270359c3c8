//! A server's tool as a tool of the registry.
//!
//! A tool that does not say that it only reads, and that the configuration does not allow, is not run unless a person
//! agrees: in a script the call fails with [`FailureKind::NotAllowed`] and the reason.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::client::{Offer, Server};
use super::result;
use crate::domain::{Failure, FailureKind, Outcome, ToolSpec};
use crate::tool::Tool;
use crate::tool::arguments::bad_arguments;

/// Whether calls that may not run unattended are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The user typed the call, or is asked before it is made.
    Given,
    /// Nobody is there: such calls are refused.
    Nobody,
}

/// The tool.
pub struct McpTool {
    server: Arc<Server>,
    offer: Offer,
    consent: Consent,
}

impl McpTool {
    pub fn new(server: Arc<Server>, mut offer: Offer, consent: Consent) -> Self {
        if !offer.runs_unattended && consent == Consent::Nobody {
            offer.spec.description.insert_str(0, "(Needs a person's consent; refused in this run.) ");
        }
        Self { server, offer, consent }
    }

    fn not_allowed(&self) -> Failure {
        let (server, tool) = (self.server.name(), &self.offer.tool);
        let name = &self.offer.spec.name;
        let message = format!(
            "`{name}` does not say that it only reads, so it is not run unattended: add \"{tool}\" to allow in \
             [mcp.{server}], or call it yourself with `oncall tools call {name}`"
        );
        Failure::of_source(self.server.source(), FailureKind::NotAllowed, message)
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.offer.spec
    }

    fn needs_consent(&self) -> bool {
        !self.offer.runs_unattended
    }

    async fn call(&self, arguments: Value, cancel: &CancellationToken) -> Outcome {
        let object = match into_object(arguments) {
            Ok(object) => object,
            Err(failure) => return Outcome::Failure(failure),
        };
        if !self.offer.runs_unattended && self.consent == Consent::Nobody {
            return Outcome::Failure(self.not_allowed());
        }
        match self.server.call(&self.offer.tool, object, cancel).await {
            Ok(answer) => result::outcome(&self.server.source(), answer),
            Err(error) => Outcome::Failure(error.failure(&self.server.source())),
        }
    }
}

/// The arguments as the protocol has them. Keys with null, which models send for what they leave out, are left out.
fn into_object(arguments: Value) -> Result<Map<String, Value>, Failure> {
    let parsed = match &arguments {
        // Some models send the object as a text that holds it.
        Value::String(text) if text.trim().is_empty() => Value::Null,
        Value::String(text) => serde_json::from_str(text).unwrap_or(arguments),
        _ => arguments,
    };
    match parsed {
        Value::Null => Ok(Map::new()),
        Value::Object(mut object) => {
            object.retain(|_, value| !value.is_null());
            Ok(object)
        }
        _ => Err(bad_arguments("the arguments are not a JSON object")),
    }
}
