//! `oncall config show`: effective values with where each came from, secrets masked.

use super::Config;

/// Keys whose values may hold a secret.
const SECRET_WORDS: [&str; 6] = ["key", "token", "password", "secret", "authorization", "headers"];

/// Every value by its dotted key, masked, as TOML text, with its origin.
pub fn shown(config: &Config) -> Vec<(String, String, String)> {
    config.values.iter().map(|(key, (value, origin))| (key.clone(), masked(key, value), origin.to_string())).collect()
}

/// One line per value, in TOML, aligned, with the origin as a comment.
pub fn render(config: &Config) -> String {
    let mut lines = vec![
        (format!("# file: {}", config.file.as_ref().map_or_else(|| "none".into(), |f| f.display().to_string())), None),
        (format!("# data: {}", config.data_dir.display()), None),
    ];
    for (key, value, origin) in shown(config) {
        lines.push((format!("{key} = {value}"), Some(origin)));
    }
    let width = lines.iter().filter(|(_, o)| o.is_some()).map(|(l, _)| l.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (line, origin) in lines {
        match origin {
            Some(origin) => text.push_str(&format!("{line:<width$}  # {origin}\n")),
            None => text.push_str(&format!("{line}\n")),
        }
    }
    text
}

/// The value as TOML; what may be a secret is masked, and so is the user part of a URL.
fn masked(key: &str, value: &toml::Value) -> String {
    let lower = key.to_lowercase();
    let names_a_variable = lower.ends_with("_env") || lower.ends_with("_file");
    let is_environment = lower.starts_with("mcp.") && lower.contains(".env.");
    if is_environment || !names_a_variable && SECRET_WORDS.iter().any(|word| lower.contains(word)) {
        return "\"***\"".into();
    }
    match value {
        toml::Value::String(text) => toml::Value::String(without_user_info(text)).to_string(),
        other => other.to_string(),
    }
}

/// `postgres://me:secret@host/db` → `postgres://***@host/db`.
fn without_user_info(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_string() };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    match rest[..authority_end].rfind('@') {
        Some(at) => format!("{scheme}://***{}", &rest[at..]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_names_of_variables_are_not() {
        let text = |s: &str| toml::Value::String(s.into());
        assert_eq!(masked("models.a.headers.Authorization", &text("Bearer x")), "\"***\"");
        assert_eq!(masked("models.a.api_key_env", &text("NVIDIA_API_KEY")), "\"NVIDIA_API_KEY\"");
        assert_eq!(masked("sessions.url", &text("postgres://me:pw@db/oncall")), "\"postgres://***@db/oncall\"");
        assert_eq!(masked("agent.max_steps", &toml::Value::Integer(10)), "10");
    }
}
