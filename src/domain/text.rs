//! Cleaning and cutting of text that came from outside (logs, labels, runbooks, model output) before it reaches a
//! screen or a prompt. Every such text passes [`clean`] or [`clean_line`].

/// Text without escape sequences and control characters, at most `max_chars` characters long; a cut is marked
/// with `...`. Line feeds and tabs stay.
pub fn clean(text: &str, max_chars: usize) -> String {
    sanitize(text, max_chars, Lines::Keep)
}

/// As [`clean`], on one line: line breaks and tabs become single spaces.
pub fn clean_line(text: &str, max_chars: usize) -> String {
    sanitize(text, max_chars, Lines::Join)
}

#[derive(Clone, Copy, PartialEq)]
enum Lines {
    Keep,
    Join,
}

fn sanitize(text: &str, max_chars: usize, lines: Lines) -> String {
    let mut out = String::with_capacity(text.len().min(max_chars.saturating_mul(4)));
    let mut length = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let kept = match c {
            '\u{1b}' => {
                skip_escape_sequence(&mut chars);
                continue;
            }
            '\u{9b}' => {
                skip_control_sequence(&mut chars);
                continue;
            }
            '\n' | '\t' if lines == Lines::Keep => c,
            '\r' if lines == Lines::Keep => continue,
            '\n' | '\t' | '\r' => {
                if out.ends_with(' ') {
                    continue;
                }
                ' '
            }
            c if c.is_control() || is_invisible(c) => continue,
            c => c,
        };
        if length == max_chars {
            out.push_str("...");
            return out;
        }
        out.push(kept);
        length += 1;
    }
    out
}

/// Bidirectional overrides and zero-width characters can make a screen show what the text does not say.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

/// Skips what follows an ESC: a control sequence (`[`), an operating-system or device command (`]`, `P`, `X`, `^`,
/// `_`, up to BEL or ST), or a sequence of two characters (ECMA-48).
fn skip_escape_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            // An unterminated command ends with its line: a log must not lose what follows it.
            while let Some(&c) = chars.peek() {
                if c == '\n' {
                    return;
                }
                chars.next();
                match c {
                    '\u{7}' | '\u{9c}' => return,
                    '\u{1b}' => {
                        if chars.peek() == Some(&'\\') {
                            chars.next();
                        }
                        return;
                    }
                    _ => {}
                }
            }
        }
        Some(' '..='/') => {
            while matches!(chars.peek(), Some(' '..='/')) {
                chars.next();
            }
            chars.next();
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

/// Skips the parameters, intermediates and final byte of a control sequence (ECMA-48, 5.4).
fn skip_control_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while matches!(chars.peek(), Some(' '..='?')) {
        chars.next();
    }
    if matches!(chars.peek(), Some('@'..='~')) {
        chars.next();
    }
}

/// The first `max` characters of a text, without a mark; never cuts inside a character.
pub fn head(text: &str, max: usize) -> &str {
    match text.char_indices().nth(max) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// How alike two names must be for one to be suggested for the other (Jaro-Winkler, 0 to 1).
const SUGGESTION_LIKENESS: f64 = 0.75;

/// The name most like `word` in any case of letters, if one is like it at all.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&word, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > SUGGESTION_LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A count with its English noun: `1 alert`, `2 alerts`, `3 entries`.
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    format!("{count} {}", plural(&count, noun))
}

/// An English noun for that many: in the plural unless the count is one.
pub fn plural<N: PartialEq + From<u8>>(count: &N, noun: &str) -> String {
    if *count == N::from(1) {
        return noun.to_string();
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if noun.ends_with(['s', 'x', 'h']) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_control_characters_vanish_and_text_stays() {
        let hostile = "a\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}b\u{1b}(Bc\u{9b}2Jd\u{8}\u{0}e\u{202e}f";
        assert_eq!(clean(hostile, 100), "ared bcdef");
    }

    #[test]
    fn an_unterminated_command_ends_with_its_line() {
        assert_eq!(clean("x\u{1b}]0;never closed\nkept", 100), "x\nkept");
    }

    #[test]
    fn line_breaks_become_single_spaces_on_one_line() {
        assert_eq!(clean_line("a\r\n\tb\nc", 100), "a b c");
    }

    #[test]
    fn a_cut_is_marked_and_falls_between_characters() {
        assert_eq!(clean("连接池超时", 3), "连接池...");
        assert_eq!(clean("连接池", 3), "连接池");
        assert_eq!(head("连接池超时", 2), "连接");
    }

    #[test]
    fn the_nearest_name_is_found_in_any_case_and_only_when_it_is_alike() {
        let names = ["max_steps", "max_nodes", "tool_timeout"];
        assert_eq!(nearest("max_stepz", names), Some("max_steps"));
        assert_eq!(nearest("MAX_NODE", names), Some("max_nodes"));
        assert_eq!(nearest("zzz", names), None);
        assert_eq!(nearest("oncall_modle", ["ONCALL_MODEL"]), Some("ONCALL_MODEL"));
    }

    #[test]
    fn one_is_singular_and_all_else_plural() {
        assert_eq!(counted(1usize, "alert"), "1 alert");
        assert_eq!(counted(0u64, "alert"), "0 alerts");
        assert_eq!(
            [counted(2u32, "entry"), counted(2u32, "day"), counted(2u32, "match"), counted(2u32, "log event")],
            ["2 entries", "2 days", "2 matches", "2 log events"]
        );
    }
}
