//! The tools of a run, by name.
//!
//! In: tools, built in or from elsewhere. Out: the one of a name, or a failure that names the nearest; and how all of
//! them present themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Tool;
use super::arguments::bad_arguments;
use crate::domain::text::{clean_line, nearest};
use crate::domain::{Failure, ToolSpec};

/// Tools by name.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<String, Arc<dyn Tool>>,
}

impl Registry {
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        Self { tools: tools.into_iter().map(|tool| (tool.spec().name.clone(), tool)).collect() }
    }

    /// Adds a tool; the one of that name before it, if any, is given back.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Option<Arc<dyn Tool>> {
        self.tools.insert(tool.spec().name.clone(), tool)
    }

    /// The tool of that name; else a failure that names the nearest one.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Tool>, Failure> {
        self.tools.get(name).ok_or_else(|| bad_arguments(self.unknown(name)))
    }

    /// How every tool presents itself, sorted by name.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.values().map(|tool| tool.spec().clone()).collect()
    }

    fn unknown(&self, name: &str) -> String {
        let shown = clean_line(name, 60);
        match (nearest(name, self.tools.keys().map(String::as_str)), self.tools.is_empty()) {
            (Some(near), _) => format!("there is no tool `{shown}`: did you mean `{near}`?"),
            (None, true) => format!("there is no tool `{shown}`: no source is configured, so there are no tools"),
            (None, false) => {
                let known: Vec<_> = self.tools.keys().map(String::as_str).collect();
                format!("there is no tool `{shown}`: there are {}", known.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::{Value, json};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::domain::{FailureKind, Outcome};

    struct Named(ToolSpec);

    #[async_trait]
    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        async fn call(&self, _arguments: Value, _cancel: &CancellationToken) -> Outcome {
            Outcome::Failure(bad_arguments("not called here"))
        }
    }

    fn registry(names: &[&str]) -> Registry {
        Registry::new(names.iter().map(|name| -> Arc<dyn Tool> {
            Arc::new(Named(ToolSpec {
                name: (*name).to_owned(),
                description: String::new(),
                input_schema: json!({}),
                server: "builtin".to_owned(),
                read_only: true,
            }))
        }))
    }

    fn complaint(registry: &Registry, name: &str) -> String {
        let failure = registry.get(name).err().unwrap();
        assert_eq!(failure.kind, FailureKind::BadArguments);
        failure.message
    }

    #[test]
    fn tools_are_listed_by_name() {
        let names: Vec<_> = registry(&["b", "c", "a"]).specs().into_iter().map(|spec| spec.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[test]
    fn an_unknown_tool_is_named_with_its_nearest() {
        let known = registry(&["search_logs", "query_metrics"]);
        assert!(known.get("search_logs").is_ok());
        assert_eq!(complaint(&known, "serach_logs"), "there is no tool `serach_logs`: did you mean `search_logs`?");
        assert_eq!(complaint(&known, "zzz"), "there is no tool `zzz`: there are query_metrics, search_logs");
        assert!(complaint(&registry(&[]), "zzz").ends_with("so there are no tools"));
    }
}
