//! Styled lines as text with colour sequences, for what stays in the scrollback after the screen is gone.

use std::fmt::Write as _;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

/// One line, without a line feed; what it switched on is switched off at its end.
pub fn line(line: &Line<'_>) -> String {
    let mut out = String::new();
    for span in &line.spans {
        let style = line.style.patch(span.style);
        let codes = codes(style);
        // What is drawn was cleaned on its way in; this is the last gate before the terminal.
        let text: String = span.content.chars().filter(|c| !c.is_control()).collect();
        if codes.is_empty() {
            out.push_str(&text);
        } else {
            let _ = write!(out, "\u{1b}[{codes}m{text}\u{1b}[0m");
        }
    }
    out
}

/// The parameters of a style (ECMA-48, SGR), separated by semicolons.
pub fn codes(style: Style) -> String {
    let mut codes: Vec<String> = Vec::new();
    for (modifier, code) in [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ] {
        if style.add_modifier.contains(modifier) {
            codes.push(code.to_owned());
        }
    }
    codes.extend(style.fg.and_then(|color| color_code(color, 30)));
    codes.extend(style.bg.and_then(|color| color_code(color, 40)));
    codes.join(";")
}

/// The code of a colour; `base` is 30 for text, 40 for what is behind it.
fn color_code(color: Color, base: u8) -> Option<String> {
    let plain = |n: u8| Some((base + n).to_string());
    let bright = |n: u8| Some((base + 60 + n).to_string());
    match color {
        Color::Reset => None,
        Color::Black => plain(0),
        Color::Red => plain(1),
        Color::Green => plain(2),
        Color::Yellow => plain(3),
        Color::Blue => plain(4),
        Color::Magenta => plain(5),
        Color::Cyan => plain(6),
        Color::Gray => plain(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(n) => Some(format!("{};5;{n}", base + 8)),
        Color::Rgb(r, g, b) => Some(format!("{};2;{r};{g};{b}", base + 8)),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::text::Span;

    use super::*;

    #[test]
    fn styles_become_codes_and_plain_text_none() {
        let styled = Style::new().fg(Color::Indexed(117)).add_modifier(Modifier::BOLD);
        let told = Line::from(vec![Span::raw("a "), Span::styled("b", styled), Span::styled("c", Color::Red)]);
        assert_eq!(line(&told), "a \u{1b}[1;38;5;117mb\u{1b}[0m\u{1b}[31mc\u{1b}[0m");
        assert_eq!(line(&Line::raw("x\u{1b}[2Jy")), "x[2Jy");
    }
}
