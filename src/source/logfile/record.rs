//! Single records, as stores of logs give them: a JSON object or a line comes in, an event goes out.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::line;
use super::stamp::Clock;
use crate::domain::LogEvent;

/// Reads records; `now` and `zone` complete stamps that leave something open.
pub struct RecordReader {
    clock: Clock,
}

impl RecordReader {
    pub fn new(now: Timestamp, zone: TimeZone) -> Self {
        Self { clock: Clock::new(now, zone) }
    }

    /// The event of a record; a text of several lines is one event.
    pub fn read(&self, text: &str) -> LogEvent {
        let (first, rest) = match text.starts_with('{') {
            true => (text, None),
            false => text.split_once('\n').map_or((text, None), |(first, rest)| (first, Some(rest))),
        };
        let line = line::parse(first.trim_end_matches('\r'), &self.clock);
        let mut message = line.message.into_owned();
        if let Some(rest) = rest {
            message.push('\n');
            message.push_str(rest.trim_end());
        }
        let lines = message.lines().count().max(1);
        LogEvent {
            at: line.at.and_then(|stamp| stamp.at),
            level: line.level,
            service: line.service.map(|service| service.into_owned()),
            instance: line.instance.map(|instance| instance.into_owned()),
            message,
            line: 0,
            lines: u32::try_from(lines).unwrap_or(u32::MAX),
        }
    }
}

/// The level that a word names (`WARN`, `warning`, `err`), in any case.
pub fn level_of(word: &str) -> Option<crate::domain::Level> {
    super::level::from_word(word.trim().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Level;

    fn read(text: &str) -> LogEvent {
        RecordReader::new("2026-03-04T06:45:00Z".parse().unwrap(), TimeZone::UTC).read(text)
    }

    #[test]
    fn an_object_is_read_by_its_fields() {
        let event = read(
            r#"{"@timestamp":"2026-03-04T06:30:00Z","log":{"level":"ERROR"},"service":{"name":"cart"},"message":"a\nb"}"#,
        );
        assert_eq!(event.at, Some("2026-03-04T06:30:00Z".parse().unwrap()));
        assert_eq!((event.level, event.service.as_deref()), (Some(Level::Error), Some("cart")));
        assert_eq!((event.message.as_str(), event.lines), ("a\nb", 2));
    }

    #[test]
    fn a_text_of_several_lines_is_one_event() {
        let event = read("2026-03-04 06:30:00 ERROR boom\n\tat x.y(Z.java:1)\n");
        assert_eq!((event.message.as_str(), event.level), ("boom\n\tat x.y(Z.java:1)", Some(Level::Error)));
        assert_eq!(read("plain").message, "plain");
        assert_eq!(level_of("warning"), Some(Level::Warn));
    }
}
