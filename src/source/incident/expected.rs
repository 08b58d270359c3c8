//! `expected.toml`: what a diagnosis of the incident should find. Read by the evaluation only, never by a diagnosis.

use std::path::Path;

use super::IncidentError;
use super::settings::Table;
use crate::domain::Category;
use crate::domain::text::nearest;

const KEYS: [&str; 4] = ["category", "service", "must_mention", "must_not_claim"];

/// The right answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// `unknown` when nothing should be named.
    pub category: Category,
    pub service: Option<String>,
    /// Texts that the report has to hold.
    pub must_mention: Vec<String>,
    /// Categories or texts that the report must not give as the cause.
    pub must_not_claim: Vec<String>,
}

impl Expected {
    /// Reads `expected.toml` of an incident folder; `None` when there is none.
    pub fn read(folder: &Path) -> Result<Option<Self>, IncidentError> {
        let path = folder.join("expected.toml");
        match std::fs::read_to_string(&path) {
            Ok(text) => parse(&path, &text).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(IncidentError::Read { path, error }),
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<Expected, IncidentError> {
    let table = Table::parse(path, text)?;
    table.refuse_unknown(&KEYS)?;
    let Some(name) = table.text("category")? else {
        return Err(table.error("category", "`category` is missing: expected a category such as \"oom_killed\"".into()));
    };
    Ok(Expected {
        category: category(&table, &name)?,
        service: table.text("service")?,
        must_mention: table.texts("must_mention")?,
        must_not_claim: table.texts("must_not_claim")?,
    })
}

fn category(table: &Table, name: &str) -> Result<Category, IncidentError> {
    Category::from_id(name).ok_or_else(|| {
        let near = nearest(name, Category::ALL.iter().map(|known| known.id()));
        let hint = near.map(|id| format!(": did you mean `{id}`?")).unwrap_or_default();
        table.error("category", format!("`category`: there is no category `{name}`{hint}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Expected, String> {
        super::parse(Path::new("expected.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn all_keys_are_read() {
        assert_eq!(
            parse(
                "category = \"oom_killed\"\nservice = \"a\"\nmust_mention = [\"2.15.0\"]\nmust_not_claim = [\"crash\"]"
            ),
            Ok(Expected {
                category: Category::OomKilled,
                service: Some("a".into()),
                must_mention: vec!["2.15.0".into()],
                must_not_claim: vec!["crash".into()],
            })
        );
    }

    #[test]
    fn a_category_that_is_none_is_named_with_its_nearest() {
        assert_eq!(
            parse("\ncategory = \"oom_kiled\"").unwrap_err(),
            "expected.toml: line 2: `category`: there is no category `oom_kiled`: did you mean `oom_killed`?"
        );
        assert_eq!(
            parse("service = \"a\"").unwrap_err(),
            "expected.toml: line 1: `category` is missing: expected a category such as \"oom_killed\""
        );
    }
}
