//! Which fields of an index hold the time, the service, the instance and the message, by its field capabilities.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::source::LogQuery;
use crate::source::stored::{FieldNames, INSTANCE_FIELDS, SERVICE_FIELDS};

/// Fields that hold the time of an event, the first that is there wins.
pub const TIME_FIELDS: [&str; 5] = ["log_time", "@timestamp", "timestamp", "time", "ts"];
/// Fields that keywords are looked for in.
const TEXT_FIELDS: [&str; 13] = [
    "message",
    "msg",
    "log",
    "body",
    "event.original",
    "text",
    "textPayload",
    "error.message",
    "error.stack_trace",
    "exception",
    "exception.message",
    "stack_trace",
    "fields.message",
];

/// `_field_caps` as it arrives.
#[derive(Debug, Default, Deserialize)]
pub struct FieldCaps {
    /// By name, then by type.
    #[serde(default)]
    fields: BTreeMap<String, BTreeMap<String, Capability>>,
}

#[derive(Debug, Default, Deserialize)]
struct Capability {
    #[serde(default)]
    searchable: bool,
    #[serde(default)]
    aggregatable: bool,
}

/// A field that values are matched against.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub matching: Matching,
    pub aggregatable: bool,
}

/// How a value is looked for in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// Whole, as it is written.
    Exact,
    /// Word by word.
    Words,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    pub time: String,
    pub services: Vec<Field>,
    pub instances: Vec<Field>,
    pub texts: Vec<Field>,
}

/// The names to ask the capabilities of.
pub fn asked(names: &FieldNames) -> Vec<String> {
    let configured = [&names.time, &names.service, &names.instance, &names.message];
    let configured = configured.into_iter().flatten().map(String::as_str);
    let usual = TIME_FIELDS.iter().chain(SERVICE_FIELDS).chain(INSTANCE_FIELDS).chain(&TEXT_FIELDS).copied();
    let mut all: Vec<String> = Vec::new();
    for name in configured.chain(usual) {
        // A text field often has a part that is matched whole.
        all.extend([name.to_owned(), format!("{name}.keyword")]);
    }
    all.dedup();
    all
}

impl Mapping {
    /// What the capabilities give; an error names what was looked for.
    pub fn of(caps: &FieldCaps, names: &FieldNames, index: &str) -> Result<Self, String> {
        let is_date = |name: &str| {
            caps.fields.get(name).is_some_and(|types| types.contains_key("date") || types.contains_key("date_nanos"))
        };
        let time = match &names.time {
            Some(time) if is_date(time) => time.clone(),
            Some(time) => return Err(format!("`{time}` (fields.time) is no date field of `{index}`")),
            None => match TIME_FIELDS.iter().find(|name| is_date(name)) {
                Some(time) => (*time).to_owned(),
                None if caps.fields.is_empty() => {
                    return Err(format!("no index fits `{index}`, or none has a field of logs: set `index`"));
                }
                None => {
                    let looked = TIME_FIELDS.join(", ");
                    return Err(format!("none of {looked} is a date field of `{index}`: set fields.time"));
                }
            },
        };
        let chosen = |configured: &Option<String>, usual: &[&str]| match configured {
            Some(name) => caps.fields_of(name),
            None => usual.iter().flat_map(|name| caps.fields_of(name)).collect(),
        };
        Ok(Self {
            time,
            services: chosen(&names.service, SERVICE_FIELDS),
            instances: chosen(&names.instance, INSTANCE_FIELDS),
            texts: match &names.message {
                Some(name) => caps.fields_of(name),
                None => TEXT_FIELDS.iter().flat_map(|name| caps.fields_of(name)).collect(),
            },
        })
    }

    /// The query of a search, over a time of its own.
    pub fn query(&self, query: &LogQuery) -> Value {
        let range = json!({ "range": { &self.time: {
            "gte": query.window.start.to_string(),
            "lte": query.window.end.to_string(),
            "format": "strict_date_optional_time",
        }}});
        let mut filter = vec![range];
        for (name, fields) in [(&query.service, &self.services), (&query.instance, &self.instances)] {
            if let Some(name) = name {
                filter.push(any_of(fields.iter().map(|field| field.equals(name)).collect()));
            }
        }
        for word in &query.keywords {
            filter.push(any_of(self.texts.iter().map(|field| field.holds(word)).collect()));
        }
        json!({ "bool": { "filter": filter } })
    }
}

/// At least one; where there is none to choose from, nothing matches.
fn any_of(clauses: Vec<Value>) -> Value {
    match clauses.is_empty() {
        true => json!({ "match_none": {} }),
        false => json!({ "bool": { "should": clauses, "minimum_should_match": 1 } }),
    }
}

impl FieldCaps {
    /// Adds what another part of the fields can.
    pub fn merge(&mut self, other: Self) {
        self.fields.extend(other.fields);
    }

    /// The field of that name, and the part of it that is matched whole: the latter alone where both are there.
    fn fields_of(&self, name: &str) -> Vec<Field> {
        let keyword = format!("{name}.keyword");
        let exact = self.field(&keyword).filter(|field| field.matching == Matching::Exact);
        match (self.field(name), exact) {
            (Some(field), _) if field.matching == Matching::Exact => vec![field],
            // Words are found in the text; the whole is compared with the part.
            (Some(field), Some(exact)) => vec![exact, field],
            (Some(field), None) => vec![field],
            (None, Some(exact)) => vec![exact],
            (None, None) => Vec::new(),
        }
    }

    fn field(&self, name: &str) -> Option<Field> {
        let types = self.fields.get(name)?;
        let capability = |kinds: &[&str]| kinds.iter().find_map(|kind| types.get(*kind));
        let (matching, found) = match capability(&["keyword", "constant_keyword", "wildcard"]) {
            Some(found) => (Matching::Exact, found),
            None => (Matching::Words, capability(&["text", "match_only_text"])?),
        };
        let name = name.to_owned();
        found.searchable.then_some(Field { name, matching, aggregatable: found.aggregatable })
    }
}

impl Field {
    fn equals(&self, value: &str) -> Value {
        match self.matching {
            Matching::Exact => json!({ "term": { &self.name: value } }),
            Matching::Words => json!({ "match_phrase": { &self.name: value } }),
        }
    }

    fn holds(&self, word: &str) -> Value {
        match self.matching {
            Matching::Words => json!({ "match_phrase": { &self.name: word } }),
            Matching::Exact => {
                let escaped = word.replace('\\', "\\\\").replace('*', "\\*").replace('?', "\\?");
                json!({ "wildcard": { &self.name: { "value": format!("*{escaped}*"), "case_insensitive": true } } })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Window;

    fn caps(fields: &[(&str, &str)]) -> FieldCaps {
        let mut caps = FieldCaps::default();
        for (name, kind) in fields {
            let capability = Capability { searchable: true, aggregatable: *kind == "keyword" };
            caps.fields.entry((*name).to_owned()).or_default().insert((*kind).to_owned(), capability);
        }
        caps
    }

    fn names(mapping: &[Field]) -> Vec<&str> {
        mapping.iter().map(|field| field.name.as_str()).collect()
    }

    #[test]
    fn fields_are_found_by_their_usual_names_and_types() {
        let caps = caps(&[
            ("@timestamp", "date"),
            ("ts", "long"),
            ("service.name", "text"),
            ("service.name.keyword", "keyword"),
            ("app", "keyword"),
            ("message", "text"),
            ("host.name", "keyword"),
        ]);
        let mapping = Mapping::of(&caps, &FieldNames::default(), "logs-*").unwrap();
        assert_eq!(mapping.time, "@timestamp");
        assert_eq!(names(&mapping.services), ["service.name.keyword", "service.name", "app"]);
        assert_eq!((names(&mapping.instances), names(&mapping.texts)), (vec!["host.name"], vec!["message"]));
    }

    #[test]
    fn configured_fields_are_the_only_ones() {
        let caps = caps(&[("@timestamp", "date"), ("when", "date_nanos"), ("svc", "keyword"), ("app", "keyword")]);
        let names_of =
            |time: &str| FieldNames { time: Some(time.into()), service: Some("svc".into()), ..FieldNames::default() };
        let mapping = Mapping::of(&caps, &names_of("when"), "a").unwrap();
        assert_eq!((mapping.time.as_str(), names(&mapping.services)), ("when", vec!["svc"]));
        let error = Mapping::of(&caps, &names_of("svc"), "a").unwrap_err();
        assert_eq!(error, "`svc` (fields.time) is no date field of `a`");
        assert!(Mapping::of(&FieldCaps::default(), &FieldNames::default(), "a").unwrap_err().contains("no index fits"));
    }

    #[test]
    fn a_query_filters_by_time_service_and_words() {
        let caps = caps(&[("ts", "date"), ("app", "keyword"), ("message", "text"), ("msg", "keyword")]);
        let mapping = Mapping::of(&caps, &FieldNames::default(), "a").unwrap();
        let query = LogQuery {
            window: Window::new("2026-03-04T06:00:00Z".parse().unwrap(), "2026-03-04T06:45:00Z".parse().unwrap()),
            service: Some("cart".into()),
            instance: Some("x".into()),
            keywords: vec!["a*b".into()],
        };
        assert_eq!(
            mapping.query(&query),
            json!({"bool": {"filter": [
                {"range": {"ts": {"gte": "2026-03-04T06:00:00Z", "lte": "2026-03-04T06:45:00Z",
                                  "format": "strict_date_optional_time"}}},
                {"bool": {"should": [{"term": {"app": "cart"}}], "minimum_should_match": 1}},
                {"match_none": {}},
                {"bool": {"should": [
                    {"match_phrase": {"message": "a*b"}},
                    {"wildcard": {"msg": {"value": "*a\\*b*", "case_insensitive": true}}},
                ], "minimum_should_match": 1}},
            ]}})
        );
    }
}
