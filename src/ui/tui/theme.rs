//! Colours by what they mean. Every screen names a meaning; the theme says how it looks.

use ratatui::style::{Color, Modifier, Style};

/// The themes, in the order in which a key goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThemeName {
    #[default]
    Dark,
    Light,
    /// The 16 colours that every terminal has.
    Sixteen,
    /// No colours: bold, underline and reverse only.
    None,
}

impl ThemeName {
    pub const ALL: [Self; 4] = [Self::Dark, Self::Light, Self::Sixteen, Self::None];

    pub fn id(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Sixteen => "16",
            Self::None => "none",
        }
    }

    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.id() == id)
    }

    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|theme| *theme == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

/// How each meaning looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Theme {
    pub text: Style,
    /// What stands back: times, units, hints.
    pub dim: Style,
    pub heading: Style,
    /// What can be acted on, and what runs.
    pub accent: Style,
    pub ok: Style,
    pub warn: Style,
    pub error: Style,
    pub code: Style,
    pub link: Style,
    pub cite: Style,
    /// The bar of a panel without the focus, and with it.
    pub bar: Style,
    pub bar_focused: Style,
    /// The line under the cursor.
    pub cursor: Style,
    /// What a search found.
    pub found: Style,
    /// Whether headings keep their `#`, since nothing else may tell them.
    pub marks_headings: bool,
}

impl Theme {
    pub fn of(name: ThemeName) -> Self {
        match name {
            ThemeName::Dark => Self::indexed([246, 117, 114, 221, 210, 180, 111, 176, 236, 24, 238]),
            ThemeName::Light => Self::indexed([242, 25, 28, 94, 160, 94, 25, 90, 254, 153, 252]),
            ThemeName::Sixteen => Self::sixteen(),
            ThemeName::None => Self::none(),
        }
    }

    /// Dim, accent, ok, warn, error, code, link, cite, bar, focused bar and cursor of the 256 colours.
    fn indexed(colors: [u8; 11]) -> Self {
        let [dim, accent, ok, warn, error, code, link, cite, ..] =
            colors.map(|color| Style::new().fg(Color::Indexed(color)));
        let on = |color: u8| Style::new().bg(Color::Indexed(color));
        Self {
            text: Style::new(),
            dim,
            heading: accent.add_modifier(Modifier::BOLD),
            accent,
            ok,
            warn,
            error: error.add_modifier(Modifier::BOLD),
            code,
            link: link.add_modifier(Modifier::UNDERLINED),
            cite,
            bar: on(colors[8]),
            bar_focused: on(colors[9]).add_modifier(Modifier::BOLD),
            cursor: on(colors[10]),
            found: Style::new().add_modifier(Modifier::REVERSED),
            marks_headings: false,
        }
    }

    fn sixteen() -> Self {
        let of = |color: Color| Style::new().fg(color);
        Self {
            text: Style::new(),
            dim: of(Color::DarkGray),
            heading: of(Color::Cyan).add_modifier(Modifier::BOLD),
            accent: of(Color::Cyan),
            ok: of(Color::Green),
            warn: of(Color::Yellow),
            error: of(Color::Red).add_modifier(Modifier::BOLD),
            code: of(Color::Yellow),
            link: of(Color::Blue).add_modifier(Modifier::UNDERLINED),
            cite: of(Color::Magenta),
            bar: Style::new().add_modifier(Modifier::REVERSED | Modifier::DIM),
            bar_focused: Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
            cursor: Style::new().add_modifier(Modifier::REVERSED),
            found: Style::new().add_modifier(Modifier::UNDERLINED | Modifier::BOLD),
            marks_headings: false,
        }
    }

    fn none() -> Self {
        let with = |modifier: Modifier| Style::new().add_modifier(modifier);
        Self {
            text: Style::new(),
            dim: Style::new(),
            heading: with(Modifier::BOLD),
            accent: Style::new(),
            ok: Style::new(),
            warn: with(Modifier::BOLD),
            error: with(Modifier::BOLD),
            code: Style::new(),
            link: with(Modifier::UNDERLINED),
            cite: Style::new(),
            bar: with(Modifier::UNDERLINED),
            bar_focused: with(Modifier::REVERSED),
            cursor: with(Modifier::REVERSED),
            found: with(Modifier::UNDERLINED | Modifier::BOLD),
            marks_headings: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_theme_has_a_name_that_finds_it_and_the_key_goes_through_all() {
        assert!(ThemeName::ALL.iter().all(|theme| ThemeName::of_id(theme.id()) == Some(*theme)));
        let walked: Vec<ThemeName> = std::iter::successors(Some(ThemeName::Dark), |t| Some(t.next())).take(5).collect();
        assert_eq!(walked, [ThemeName::Dark, ThemeName::Light, ThemeName::Sixteen, ThemeName::None, ThemeName::Dark]);
    }

    #[test]
    fn without_colours_there_is_none() {
        let Theme {
            text,
            dim,
            heading,
            accent,
            ok,
            warn,
            error,
            code,
            link,
            cite,
            bar,
            bar_focused,
            cursor,
            found,
            ..
        } = Theme::of(ThemeName::None);
        for style in [text, dim, heading, accent, ok, warn, error, code, link, cite, bar, bar_focused, cursor, found] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
