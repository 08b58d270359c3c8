//! Plain text in columns: cut and padded by display width, between whole characters as people see them.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The text in at most so many columns; a cut is marked with `..`.
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(2);
    let mut out = String::new();
    let mut width = 0;
    for grapheme in text.graphemes(true) {
        width += grapheme.width();
        if width > room {
            break;
        }
        out.push_str(grapheme);
    }
    out.push_str(&".."[..columns.min(2)]);
    out
}

/// The text in at most so many columns, cut in its middle: where the beginning says what and the end says how much.
pub fn cut_middle(text: &str, columns: usize) -> String {
    if text.width() <= columns || columns < 12 {
        return cut(text, columns);
    }
    let room = columns - 4;
    let head = cut(text, room * 2 / 5 + 2);
    let mut tail = String::new();
    let mut width = head.width();
    for grapheme in text.graphemes(true).rev() {
        width += grapheme.width();
        if width > columns {
            break;
        }
        tail.insert_str(0, grapheme);
    }
    format!("{head}{tail}")
}

/// The text in exactly so many columns.
pub fn pad(text: &str, columns: usize) -> String {
    let mut out = cut(text, columns);
    let missing = columns.saturating_sub(out.width());
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

/// The text in exactly so many columns, against their right edge.
pub fn pad_left(text: &str, columns: usize) -> String {
    let out = cut(text, columns);
    format!("{}{out}", " ".repeat(columns.saturating_sub(out.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_padded_by_display_width() {
        assert_eq!([cut("连接池超时", 7), cut("ab", 7), cut("abc", 1)], ["连接..", "ab", "."]);
        assert_eq!([pad("连接池超时", 8), pad_left("7 ms", 6)], ["连接池..", "  7 ms"]);
        assert_eq!([pad("连接池超时", 7), pad("ab", 4), pad("", 0)], ["连接.. ", "ab  ", ""]);
    }

    #[test]
    fn a_middle_is_cut_so_that_both_ends_stay() {
        assert_eq!(cut_middle("rate(http_requests_total) rose from 1 to 9", 24), "rate(htt..se from 1 to 9");
        assert_eq!(cut_middle("数据库连接池使用率从百分之七升至百分之二十", 20), "数据库..至百分之二十");
        assert_eq!(cut_middle("short", 24), "short");
    }

    #[test]
    fn a_family_of_one_column_pair_is_never_torn() {
        let family = "\u{1F469}\u{200D}\u{1F469}\u{200D}\u{1F467}";
        assert_eq!(cut(&format!("{family}{family}abc"), 4), format!("{family}.."));
    }
}
