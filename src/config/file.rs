//! Finding and reading `oncall.toml`, with errors that point at the line and name the nearest key.

use std::path::{Path, PathBuf};

use super::ConfigError;
use super::shape::File;
use crate::domain::text::nearest;

/// The file's name, everywhere.
pub const CONFIG_FILE: &str = "oncall.toml";

/// The first `oncall.toml` of the working folder, its parents, and the XDG config folder.
pub fn find_config_file(working_dir: &Path, xdg_config: Option<&Path>) -> Option<PathBuf> {
    let nearby = working_dir.ancestors().map(|dir| dir.join(CONFIG_FILE));
    let home = xdg_config.map(|dir| dir.join("oncall").join(CONFIG_FILE));
    nearby.chain(home).find(|path| path.is_file())
}

/// Reads one file and checks it against the shape.
pub fn read(path: &Path) -> Result<toml::Table, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Read { path: path.to_path_buf(), error })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    toml::from_str::<File>(text).map_err(|error| syntax_error(path, text, &error))?;
    toml::from_str::<toml::Table>(text).map_err(|error| syntax_error(path, text, &error))
}

fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let offset = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = text.get(..offset).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    ConfigError::Syntax { path: path.to_path_buf(), line, column, message: with_nearest_key(error.message()) }
}

/// Turns serde's "unknown field `modle`, expected one of `model`, …" into a question that names the nearest key.
fn with_nearest_key(message: &str) -> String {
    let message = message.trim();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let (true, Some(unknown)) = (message.starts_with("unknown field"), quoted.next()) else {
        return message.to_string();
    };
    let known: Vec<&str> = quoted.collect();
    match nearest(unknown, known.iter().copied()) {
        Some(key) => format!("unknown key `{unknown}`; did you mean `{key}`?"),
        None => format!("unknown key `{unknown}`; known here: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(CONFIG_FILE);
        std::fs::write(&path, text).unwrap();
        let error = read(&path).err().unwrap().to_string();
        error.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest_key() {
        assert_eq!(
            error_of("model = \"none\"\n[agent]\nmax_stepz = 3\n"),
            "DIR/oncall.toml: line 3, column 1: unknown key `max_stepz`; did you mean `max_steps`?"
        );
    }

    #[test]
    fn an_unknown_key_like_nothing_lists_what_is_known() {
        assert_eq!(
            error_of("[sessions]\nzzz = 1\n"),
            "DIR/oncall.toml: line 2, column 1: unknown key `zzz`; known here: url"
        );
    }

    #[test]
    fn a_wrong_type_says_what_was_expected() {
        assert_eq!(
            error_of("[agent]\nmax_steps = \"many\"\n"),
            "DIR/oncall.toml: line 2, column 13: invalid type: string \"many\", expected usize"
        );
        assert_eq!(
            error_of("agent = 3\n"),
            "DIR/oncall.toml: line 1, column 9: invalid type: integer `3`, expected a table"
        );
    }

    #[test]
    fn the_nearest_folder_wins_then_the_parents_then_the_users() {
        let root = tempfile::tempdir().unwrap();
        let (xdg, inner) = (root.path().join("xdg"), root.path().join("work/inner"));
        std::fs::create_dir_all(xdg.join("oncall")).unwrap();
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(xdg.join("oncall").join(CONFIG_FILE), "").unwrap();
        assert_eq!(find_config_file(&inner, Some(&xdg)), Some(xdg.join("oncall").join(CONFIG_FILE)));
        std::fs::write(root.path().join("work").join(CONFIG_FILE), "").unwrap();
        assert_eq!(find_config_file(&inner, Some(&xdg)), Some(root.path().join("work").join(CONFIG_FILE)));
        std::fs::write(inner.join(CONFIG_FILE), "").unwrap();
        assert_eq!(find_config_file(&inner, Some(&xdg)), Some(inner.join(CONFIG_FILE)));
    }
}
