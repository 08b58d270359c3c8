//! Severity from the words and numbers that logs use for it.

use crate::domain::Level;

/// The level that a word names, in the spellings of the usual libraries; `None` for any other word.
pub fn from_word(word: &[u8]) -> Option<Level> {
    // Most words are none: one look at length and first letter tells.
    if !(3..=13).contains(&word.len()) || !b"acdefilnpstvw".contains(&(word[0] | 0x20)) {
        return None;
    }
    let mut lower = [0u8; 13];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"trace" | b"trc" | b"trce" | b"finest" | b"finer" | b"verbose" | b"debug3" | b"debug4" | b"debug5" => {
            Level::Trace
        }
        b"debug" | b"dbg" | b"dbug" | b"debu" | b"fine" | b"config" | b"debug1" | b"debug2" => Level::Debug,
        b"info" | b"inf" | b"notice" | b"information" | b"informational" | b"note" | b"log" | b"statement"
        | b"default" => Level::Info,
        b"warn" | b"warning" | b"wrn" | b"warni" => Level::Warn,
        b"error" | b"err" | b"eror" | b"severe" | b"failure" | b"erro" => Level::Error,
        b"fatal" | b"ftl" | b"fata" | b"crit" | b"critical" | b"panic" | b"emerg" | b"emergency" | b"alert"
        | b"dpanic" => Level::Fatal,
        _ => return None,
    })
}

/// The level of a word before a colon. The console logger of .NET writes `fail:`; elsewhere that word begins a
/// sentence.
pub fn from_label(word: &[u8]) -> Option<Level> {
    if word.eq_ignore_ascii_case(b"fail") { Some(Level::Error) } else { from_word(word) }
}

/// The mark by which Redis and its forks write a level: debug, verbose, notice, warning.
pub fn from_redis_mark(mark: u8) -> Option<Level> {
    Some(match mark {
        b'.' | b'-' => Level::Debug,
        b'*' => Level::Info,
        b'#' => Level::Warn,
        _ => return None,
    })
}

/// The level of a word written in capitals, as a header has it in the midst of other words; `error` in lower case
/// may be part of a sentence.
pub fn from_capitals(word: &[u8]) -> Option<Level> {
    let capitals = word.len() > 2 && word.iter().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    capitals.then(|| from_word(word)).flatten()
}

/// The one-letter levels of glog, klog, Android and MongoDB.
pub fn from_letter(letter: u8) -> Option<Level> {
    Some(match letter {
        b'V' | b'T' => Level::Trace,
        b'D' => Level::Debug,
        b'I' => Level::Info,
        b'W' => Level::Warn,
        b'E' => Level::Error,
        b'F' | b'C' | b'A' => Level::Fatal,
        _ => return None,
    })
}

/// Syslog severities (RFC 5424, table 2), from 0 to 7.
pub fn from_syslog_severity(severity: i64) -> Option<Level> {
    Some(match severity {
        0..=2 => Level::Fatal,
        3 => Level::Error,
        4 => Level::Warn,
        5 | 6 => Level::Info,
        7 => Level::Debug,
        _ => return None,
    })
}

/// The numbers of structured loggers: bunyan and pino count from 10 to 60 (Python's `logging` shares the tens),
/// smaller ones are syslog severities.
pub fn from_number(number: i64) -> Option<Level> {
    match number {
        0..=7 => from_syslog_severity(number),
        10..=19 => Some(if number < 15 { Level::Trace } else { Level::Debug }),
        20..=29 => Some(Level::Debug),
        30..=39 => Some(Level::Info),
        40..=49 => Some(Level::Warn),
        50..=59 => Some(Level::Error),
        60..=70 => Some(Level::Fatal),
        _ => None,
    }
}

/// A request's level by its HTTP status: the server's failures are errors, refusals of the client warnings.
pub fn from_http_status(status: i64) -> Option<Level> {
    match status {
        500..=599 => Some(Level::Error),
        400..=499 => Some(Level::Warn),
        100..=399 => Some(Level::Info),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_many_libraries_name_the_same_levels() {
        let read = |word: &str| from_word(word.as_bytes());
        assert_eq!(read("WARNING"), read("warn"));
        assert_eq!(read("Information"), Some(Level::Info));
        assert_eq!(read("CRITICAL"), Some(Level::Fatal));
        assert_eq!(read("message"), None);
        assert_eq!(read("a-very-long-word-indeed"), None);
        assert_eq!(from_capitals(b"error"), None);
    }

    #[test]
    fn numbers_are_read_by_their_range() {
        assert_eq!(
            [30, 50, 3, 6, 100].map(from_number),
            [Some(Level::Info), Some(Level::Error), Some(Level::Error), Some(Level::Info), None]
        );
        assert_eq!(
            [200, 404, 503, 0].map(from_http_status),
            [Some(Level::Info), Some(Level::Warn), Some(Level::Error), None]
        );
    }
}
