//! Log topics and the regions that they lie in, as the configuration names them. A service that no topic names is a topic
//! of its own; without regions everything lies in the region `default`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::domain::text::nearest;

/// The region of everything where none is configured.
pub const DEFAULT_REGION: &str = "default";

/// What is configured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalogue {
    /// Names by code.
    pub regions: BTreeMap<String, Vec<String>>,
    /// By name.
    pub topics: BTreeMap<String, Topic>,
}

/// A place where logs of services are.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Topic {
    pub region: Option<String>,
    pub services: Vec<String>,
    pub description: Option<String>,
}

/// A topic, as it is told.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told {
    pub topic_id: String,
    pub topic_name: String,
    pub region: String,
    pub services: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Catalogue {
    /// The code of a region by its code or one of its names, in any case of letters.
    ///
    /// # Errors
    /// What is known instead.
    pub fn region(&self, name: &str) -> Result<String, String> {
        let wanted = name.trim().to_lowercase();
        if self.regions.is_empty() {
            return Ok(DEFAULT_REGION.to_owned());
        }
        let is_it = |code: &str, names: &[String]| {
            code.to_lowercase() == wanted || names.iter().any(|name| name.to_lowercase() == wanted)
        };
        let found = self.regions.iter().find(|(code, names)| is_it(code, names));
        found.map(|(code, _)| code.clone()).ok_or_else(|| {
            let all = self.regions.iter().flat_map(|(code, names)| std::iter::once(code).chain(names));
            let near = nearest(&wanted, all.map(String::as_str)).map(|near| format!("did you mean `{near}`? "));
            let codes: Vec<_> = self.regions.keys().map(String::as_str).collect();
            let shown = crate::domain::text::clean_line(name, 60);
            format!("there is no region `{shown}`: {}known: {}", near.unwrap_or_default(), codes.join(", "))
        })
    }

    /// All topics; `services` are those that have logs.
    pub fn topics(&self, services: &[String]) -> Vec<Told> {
        let configured = self.topics.iter().map(|(name, topic)| Told {
            topic_id: name.clone(),
            topic_name: name.clone(),
            region: topic.region.clone().unwrap_or_else(|| DEFAULT_REGION.to_owned()),
            services: topic.services.clone(),
            description: topic.description.clone(),
        });
        let is_named = |service: &String| {
            self.topics.contains_key(service) || self.topics.values().any(|topic| topic.services.contains(service))
        };
        let own = services.iter().filter(|service| !is_named(service)).map(|service| Told {
            topic_id: service.clone(),
            topic_name: service.clone(),
            region: DEFAULT_REGION.to_owned(),
            services: vec![service.clone()],
            description: None,
        });
        configured.chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let topic = Topic { region: Some("ap-shanghai".into()), services: vec!["order".into()], description: None };
        Catalogue {
            regions: [("ap-shanghai".to_owned(), vec!["Shanghai".to_owned(), "上海".to_owned()])].into(),
            topics: [("orders".to_owned(), topic)].into(),
        }
    }

    #[test]
    fn a_region_has_names() {
        for name in ["ap-shanghai", "上海", " SHANGHAI "] {
            assert_eq!(catalogue().region(name), Ok("ap-shanghai".to_owned()));
        }
        let error = "there is no region `Shanghia`: did you mean `Shanghai`? known: ap-shanghai";
        assert_eq!(catalogue().region("Shanghia"), Err(error.to_owned()));
        assert_eq!(Catalogue::default().region("x"), Ok("default".to_owned()));
    }

    #[test]
    fn a_service_that_no_topic_names_is_one_itself() {
        let told = catalogue().topics(&["order".to_owned(), "redis".to_owned()]);
        let names: Vec<_> = told.iter().map(|topic| (topic.topic_id.as_str(), topic.region.as_str())).collect();
        assert_eq!(names, [("orders", "ap-shanghai"), ("redis", "default")]);
    }
}
