//! `incident.toml`: name, clock, zone and topology of an incident.
//!
//! In: the file, which may be absent. Out: checked settings, or an error that names the line and, for an unknown key,
//! the nearest known one.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::{Offset, TimeZone};
use toml::{Spanned, Value};

use super::IncidentError;
use crate::domain::Topology;
use crate::domain::text::nearest;
use crate::domain::time::zone_named;

const KEYS: [&str; 4] = ["name", "now", "timezone", "topology"];

/// The years that an incident can be of: others leave no room for the times around it.
const PLAUSIBLE_YEARS: std::ops::Range<i32> = 1970..2100;

/// What the file says.
#[derive(Debug, Default, PartialEq)]
pub struct Settings {
    pub name: Option<String>,
    pub now: Option<Timestamp>,
    /// `timezone`, else the offset that `now` is written with.
    pub zone: Option<TimeZone>,
    pub topology: Topology,
    /// What was assumed.
    pub notes: Vec<String>,
}

/// Reads the file; an absent one gives empty settings.
pub fn read(path: &Path) -> Result<Settings, IncidentError> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
        Err(error) => Err(IncidentError::Read { path: path.to_path_buf(), error }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Settings, IncidentError> {
    let table = Table::parse(path, text)?;
    table.refuse_unknown(&KEYS)?;
    let zone = match table.text("timezone")? {
        Some(name) => Some(zone(&name).map_err(|message| table.error("timezone", message))?),
        None => None,
    };
    let mut settings = Settings { name: table.text("name")?, zone, topology: topology(&table)?, ..Settings::default() };
    let Some(now) = table.get("now") else {
        return Ok(settings);
    };
    let now = match now {
        Value::String(text) => text.trim().to_owned(),
        Value::Datetime(time) => time.to_string(),
        _ => return Err(table.error("now", "`now`: expected a time such as \"2026-03-04T14:45:00+08:00\"".into())),
    };
    let (at, offset) = instant(&now, &mut settings).map_err(|message| table.error("now", message))?;
    settings.now = Some(at);
    settings.zone = settings.zone.or(offset.map(TimeZone::fixed));
    Ok(settings)
}

/// An instant and the offset that it is written with. Without an offset it is a time of the incident's zone.
fn instant(text: &str, settings: &mut Settings) -> Result<(Timestamp, Option<Offset>), String> {
    const EXPECTED: &str = "expected a time such as \"2026-03-04T14:45:00+08:00\"";
    let unreadable = format!("`now`: cannot read `{text}`: {EXPECTED}");
    let year = text.split_once('-').and_then(|(year, _)| year.parse().ok());
    if year.is_some_and(|year: i32| !PLAUSIBLE_YEARS.contains(&year)) {
        return Err(format!("`now`: `{text}` lies outside of the years 1970 to 2099: {EXPECTED}"));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        let offset = Pieces::parse(text).ok().and_then(|pieces| pieces.offset());
        let offset = match offset {
            Some(PiecesOffset::Numeric(numeric)) => Some(numeric.offset()),
            _ => None,
        };
        return Ok((at, offset));
    }
    let civil: DateTime = text.parse().map_err(|_| unreadable.clone())?;
    let zone = settings.zone.clone().unwrap_or_else(|| {
        settings.notes.push("incident.toml: `now` has no offset and there is no `timezone`: UTC is assumed".to_owned());
        TimeZone::UTC
    });
    civil.to_zoned_datetime(zone).map(|zoned| (zoned.timestamp(), None)).map_err(|_| unreadable)
}

fn zone(name: &str) -> Result<TimeZone, String> {
    zone_named(name)
        .ok_or_else(|| format!("`timezone`: there is no zone `{name}`: expected a name such as \"Asia/Shanghai\""))
}

fn topology(table: &Table) -> Result<Topology, IncidentError> {
    const EXPECTED: &str = "`topology`: expected lines such as \"api-gateway\" = [\"order-service\", \"user-service\"]";
    let Some(value) = table.get("topology") else {
        return Ok(Topology::new());
    };
    let callees = |value: &Value| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|callee| callee.as_str().map(str::to_owned)).collect()
    };
    let entries = value.as_table().ok_or_else(|| table.error("topology", EXPECTED.into()))?;
    let read = |(caller, value): (&String, &Value)| {
        let callees = callees(value)
            .ok_or_else(|| table.error("topology", format!("`topology.{caller}` is no list of names; {EXPECTED}")))?;
        Ok((caller.clone(), callees))
    };
    entries.iter().map(read).collect()
}

/// The top level of a TOML file, with the places of its keys.
pub struct Table<'a> {
    path: &'a Path,
    text: &'a str,
    entries: BTreeMap<Spanned<String>, Value>,
}

impl<'a> Table<'a> {
    pub fn parse(path: &'a Path, text: &'a str) -> Result<Self, IncidentError> {
        // Editors of some systems put a byte-order mark first, which TOML does not know.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match toml::from_str(text) {
            Ok(entries) => Ok(Self { path, text, entries }),
            Err(error) => {
                let line = line_of(text, error.span().map_or(0, |span| span.start));
                Err(IncidentError::Settings { path: path.to_path_buf(), line, message: error.message().to_owned() })
            }
        }
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|(_, value)| value)
    }

    fn entry(&self, key: &str) -> Option<(&Spanned<String>, &Value)> {
        self.entries.iter().find(|(name, _)| name.as_ref() == key)
    }

    /// An error at the line of `key`.
    pub fn error(&self, key: &str, message: String) -> IncidentError {
        let start = self.entry(key).map_or(0, |(name, _)| name.span().start);
        IncidentError::Settings { path: self.path.to_path_buf(), line: line_of(self.text, start), message }
    }

    pub fn refuse_unknown(&self, known: &[&str]) -> Result<(), IncidentError> {
        let unknown = self.entries.keys().filter(|name| !known.contains(&name.as_ref().as_str()));
        // The first in the order of the file, not of the alphabet.
        let Some(name) = unknown.min_by_key(|name| name.span().start) else {
            return Ok(());
        };
        let near = nearest(name.as_ref(), known.iter().copied());
        let hint = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
        let message = format!("unknown key `{}`{hint} (known: {})", name.as_ref(), known.join(", "));
        Err(self.error(name.as_ref(), message))
    }

    /// The text of a key; absent when the key is.
    pub fn text(&self, key: &str) -> Result<Option<String>, IncidentError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.error(key, format!("`{key}`: expected a text, found {}", other.type_str()))),
        }
    }

    /// The list of texts of a key; empty when the key is absent.
    pub fn texts(&self, key: &str) -> Result<Vec<String>, IncidentError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let texts = value.as_array().and_then(|values| {
            values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.ok_or_else(|| self.error(key, format!("`{key}`: expected a list of texts such as [\"one\", \"two\"]")))
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        super::parse(Path::new("incident.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn all_keys_are_read() {
        let text = "name = \"pool\"\nnow = \"2026-03-04T14:45:00+08:00\"\ntimezone = \"Asia/Shanghai\"\n\n[topology]\n\"a-b\" = [\"c\", \"d\"]\n";
        assert_eq!(
            parse(text),
            Ok(Settings {
                name: Some("pool".into()),
                now: Some("2026-03-04T06:45:00Z".parse().unwrap()),
                zone: Some(TimeZone::get("Asia/Shanghai").unwrap()),
                topology: Topology::from([("a-b".into(), vec!["c".into(), "d".into()])]),
                notes: vec![],
            })
        );
    }

    #[test]
    fn the_clock_may_be_a_toml_time_and_its_offset_names_the_zone() {
        let settings = parse("now = 2026-03-04T14:45:00+08:00").unwrap();
        assert_eq!(settings.now, Some("2026-03-04T06:45:00Z".parse().unwrap()));
        assert_eq!(settings.zone, Some(TimeZone::fixed(jiff::tz::offset(8))));
    }

    #[test]
    fn a_clock_without_an_offset_is_a_time_of_the_zone() {
        let settings = parse("timezone = \"+08:00\"\nnow = \"2026-03-04 14:45\"").unwrap();
        assert_eq!((settings.now, settings.notes), (Some("2026-03-04T06:45:00Z".parse().unwrap()), vec![]));
        let assumed = parse("now = 2026-03-04T14:45:00").unwrap();
        assert_eq!(assumed.now, Some("2026-03-04T14:45:00Z".parse().unwrap()));
        assert_eq!(assumed.notes.len(), 1);
    }

    #[test]
    fn mistakes_name_their_line_and_what_was_expected() {
        for (text, want) in [
            (
                "name = \"x\"\ntimezon = \"UTC\"\n",
                "incident.toml: line 2: unknown key `timezon`: did you mean `timezone`? (known: name, now, timezone, topology)",
            ),
            ("zzz = 1", "incident.toml: line 1: unknown key `zzz` (known: name, now, timezone, topology)"),
            ("\nname = 3", "incident.toml: line 2: `name`: expected a text, found integer"),
            (
                "timezone = \"Asia/Shangai\"",
                "incident.toml: line 1: `timezone`: there is no zone `Asia/Shangai`: expected a name such as \"Asia/Shanghai\"",
            ),
            (
                "now = \"yesterday\"",
                "incident.toml: line 1: `now`: cannot read `yesterday`: expected a time such as \"2026-03-04T14:45:00+08:00\"",
            ),
            (
                "now = \"9999-12-31T23:59:59Z\"",
                "incident.toml: line 1: `now`: `9999-12-31T23:59:59Z` lies outside of the years 1970 to 2099: expected a time such as \"2026-03-04T14:45:00+08:00\"",
            ),
            (
                "name = \"x\"\n[topology]\na = \"b\"",
                "incident.toml: line 2: `topology.a` is no list of names; `topology`: expected lines such as \"api-gateway\" = [\"order-service\", \"user-service\"]",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), want);
        }
        assert!(parse("name = \"x\"\nnow = = 3").unwrap_err().starts_with("incident.toml: line 2: "));
    }
}
