//! The templates that a model gets: compiled in, each of which a file of an override folder replaces.

use std::path::{Path, PathBuf};

use minijinja::{Environment, UndefinedBehavior};

use crate::llm::Message;

/// Divides the system's part of a template from the user's.
const DIVIDER: &str = "<!-- user -->";

macro_rules! templates {
    ($($name:literal: $purpose:literal,)*) => {
        /// Every template, with what it is for.
        pub const TEMPLATES: &[Template] = &[$(Template {
            name: $name,
            purpose: $purpose,
            text: include_str!(concat!("../../../prompts/", $name, ".md")),
        },)*];
    };
}

templates! {
    "analyze": "reads names out of an alert that is plain text",
    "plan": "makes the plan from the first evidence and the runbooks",
    "execute": "works one step: thought, calls, observation",
    "replan": "goes on, revises what is left, or finishes",
    "synthesize": "concludes: hypotheses with evidence for and against",
    "route": "sorts a question into simple or complex",
    "ask": "answers a simple question with tools",
    "respond": "answers a complex question after an investigation",
    "rewrite": "makes a follow-up question understandable alone",
    "summarize": "keeps the memory of a long conversation",
}

/// A template as it is compiled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    pub name: &'static str,
    pub purpose: &'static str,
    pub text: &'static str,
}

/// A template that cannot be used; the user's to mend.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{place}: {message}")]
    Template { place: String, message: String },
}

/// The templates in force.
pub struct Prompts {
    environment: Environment<'static>,
    overridden: Vec<&'static str>,
}

impl Prompts {
    /// Those compiled in, with the files `NAME.md` of a folder in the place of theirs.
    ///
    /// # Errors
    /// A file that cannot be read, is no template, or has no line that divides the two parts.
    pub fn load(overrides: Option<&Path>) -> Result<Self, PromptError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let mut overridden = Vec::new();
        for template in TEMPLATES {
            let path = overrides.map(|dir| dir.join(format!("{}.md", template.name))).filter(|path| path.is_file());
            let (place, text) = match &path {
                Some(path) => {
                    overridden.push(template.name);
                    let text = std::fs::read_to_string(path)
                        .map_err(|error| PromptError::Read { path: path.clone(), error })?;
                    (path.display().to_string(), text)
                }
                None => (template.name.to_string(), template.text.to_string()),
            };
            let wrong = |message: String| PromptError::Template { place: place.clone(), message };
            if !text.contains(DIVIDER) {
                return Err(wrong(format!("expected a line `{DIVIDER}` between the system's part and the user's")));
            }
            environment
                .add_template_owned(template.name, text)
                .map_err(|error| wrong(format!("line {}: {error}", error.line().unwrap_or(1))))?;
        }
        Ok(Self { environment, overridden })
    }

    /// Names of the templates that files replace.
    pub fn overridden(&self) -> &[&'static str] {
        &self.overridden
    }

    /// System and user message of a template.
    ///
    /// # Errors
    /// A template that asks for a value that is not there.
    pub fn render(&self, name: &str, values: minijinja::Value) -> Result<Vec<Message>, PromptError> {
        let wrong =
            |error: minijinja::Error| PromptError::Template { place: name.to_string(), message: error.to_string() };
        let text = self.environment.get_template(name).and_then(|template| template.render(values)).map_err(wrong)?;
        let (system, user) = text.split_once(DIVIDER).unwrap_or(("", &text));
        Ok(vec![Message::system(system.trim()), Message::user(user.trim())])
    }
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    #[test]
    fn a_template_becomes_two_messages() {
        let prompts = Prompts::load(None).unwrap();
        let messages = prompts.render("route", context! { question => "why?" }).unwrap();
        assert!(messages[0].content.starts_with("You sort questions"));
        assert_eq!(messages[1], Message::user("Question: why?"));
        assert_eq!(prompts.overridden(), [""; 0]);
    }

    #[test]
    fn a_missing_value_is_an_error_and_not_an_empty_text() {
        let prompts = Prompts::load(None).unwrap();
        let error = prompts.render("route", context! {}).unwrap_err().to_string();
        assert!(error.contains("undefined value"), "{error}");
    }

    #[test]
    fn a_file_replaces_a_template_and_a_bad_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("route.md");
        let complaint = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Prompts::load(Some(dir.path())).err().unwrap().to_string().replace(&dir.path().display().to_string(), "DIR")
        };
        assert_eq!(
            complaint("no divider"),
            "DIR/route.md: expected a line `<!-- user -->` between the system's part and the user's"
        );
        assert!(complaint("a\n{{ b\n<!-- user -->").starts_with("DIR/route.md: line"));
        std::fs::write(&path, "sort\n<!-- user -->\n{{ question }}!").unwrap();
        let prompts = Prompts::load(Some(dir.path())).unwrap();
        let messages = prompts.render("route", context! { question => "why" }).unwrap();
        assert_eq!(messages, [Message::system("sort"), Message::user("why!")]);
        assert_eq!(prompts.overridden(), ["route"]);
    }
}
