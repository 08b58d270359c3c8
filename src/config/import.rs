//! The `mcpServers` JSON that other hosts keep their servers in, read as tables of `[mcp.NAME]`.
//!
//! In: the text of such a file (`mcpServers` of Claude Desktop, Claude Code, Cursor, Windsurf and Cline, `servers` of
//! VS Code, `context_servers` of Zed). Out: tables by name, and what was left out with the reason. What another host may
//! do without asking is not taken over.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::mcp::check_name;
use super::shape::McpConfig;

/// Where hosts keep their servers.
const KEYS: [&str; 3] = ["mcpServers", "servers", "context_servers"];

/// What was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    pub servers: BTreeMap<String, McpConfig>,
    /// By name, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// Reads the file's text.
///
/// # Errors
/// It is no JSON, or holds no servers.
pub fn read(text: &str) -> Result<Imported, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    // VS Code's settings hold them one level down.
    let places = [&root, &root["mcp"]];
    let found = places.iter().flat_map(|place| KEYS.iter().map(|key| &place[*key])).find_map(Value::as_object);
    let servers = found.ok_or_else(|| "it holds no servers: expected an object under \"mcpServers\"".to_owned())?;
    let mut imported = Imported::default();
    for (name, server) in servers {
        match one(server) {
            Ok(config) => {
                imported.servers.insert(usable_name(name, &imported.servers), config);
            }
            Err(reason) => imported.left_out.push((name.clone(), reason)),
        }
    }
    Ok(imported)
}

fn one(server: &Value) -> Result<McpConfig, String> {
    let table = server.as_object().ok_or("expected an object with `command` or `url`")?;
    if table.get("disabled") == Some(&Value::Bool(true)) || table.get("enabled") == Some(&Value::Bool(false)) {
        return Err("it is switched off there".to_owned());
    }
    let kind = text(table, "type").or_else(|| text(table, "transport"));
    if kind.as_deref() == Some("sse") {
        return Err("it speaks the old HTTP+SSE transport: ask for its streamable HTTP address (often /mcp)".to_owned());
    }
    let url = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| text(table, key));
    // Zed has an object in `command`.
    let (command, inner) = match table.get("command") {
        Some(Value::Object(inner)) => (text(inner, "path"), inner),
        _ => (text(table, "command"), table),
    };
    if command.is_none() && url.is_none() {
        return Err("it has neither `command` nor `url`".to_owned());
    }
    let args = match inner.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all.iter().map(as_text).collect::<Option<_>>().ok_or("an argument is no text")?,
        Some(_) => return Err("`args` is no list".to_owned()),
    };
    Ok(McpConfig {
        args: if command.is_some() { args } else { Vec::new() },
        env: if command.is_some() { texts(inner, "env")? } else { BTreeMap::new() },
        cwd: text(table, "cwd").filter(|_| command.is_some()),
        headers: if command.is_none() { texts(table, "headers")? } else { BTreeMap::new() },
        url: url.filter(|_| command.is_none()),
        command,
        ..McpConfig::default()
    })
}

fn text(table: &Map<String, Value>, key: &str) -> Option<String> {
    table.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn texts(table: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, String> {
    match table.get(key) {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(all)) => {
            let pairs = all.iter().map(|(name, value)| Some((name.clone(), as_text(value)?)));
            pairs.collect::<Option<_>>().ok_or_else(|| format!("a value of `{key}` is no text"))
        }
        Some(_) => Err(format!("`{key}` is no object")),
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// The name, or one like it that a server may have here and none has yet.
fn usable_name(name: &str, taken: &BTreeMap<String, McpConfig>) -> String {
    if check_name(name).is_ok() && !taken.contains_key(name) {
        return name.to_owned();
    }
    let mut plain = String::new();
    for c in name.chars() {
        match c.is_ascii_alphanumeric() {
            true => plain.push(c),
            false if plain.is_empty() || plain.ends_with('-') => {}
            false => plain.push('-'),
        }
    }
    let plain: String = plain.chars().take(28).collect();
    let plain = plain.trim_matches('-');
    let plain = if plain.is_empty() { "server" } else { plain };
    let numbered = (2..).map(|n| format!("{plain}-{n}"));
    // The numbers do not end, so that one is free.
    std::iter::once(plain.to_owned()).chain(numbered).find(|name| !taken.contains_key(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_files_of_the_usual_hosts_are_read() {
        let stdio = json!({"command": "npx", "args": ["-y", "x", 1], "env": {"KEY": "${KEY}"}, "alwaysAllow": ["*"]});
        let want = McpConfig {
            command: Some("npx".into()),
            args: vec!["-y".into(), "x".into(), "1".into()],
            env: [("KEY".to_owned(), "${KEY}".to_owned())].into(),
            ..McpConfig::default()
        };
        for file in [
            json!({"mcpServers": {"x": stdio}}),
            json!({"servers": {"x": stdio}}),
            json!({"mcp": {"servers": {"x": stdio}}}),
            json!({"context_servers": {"x": {"command": {"path": "npx", "args": ["-y", "x", 1], "env": {"KEY": "${KEY}"}}}}}),
        ] {
            assert_eq!(read(&file.to_string()).unwrap().servers, [("x".to_owned(), want.clone())].into(), "{file}");
        }
        let http = json!({"mcpServers": {"y": {"type": "http", "url": "https://h/mcp", "headers": {"A": "b"}}}});
        let server = read(&http.to_string()).unwrap().servers.remove("y").unwrap();
        assert_eq!((server.url.as_deref(), server.headers["A"].as_str()), (Some("https://h/mcp"), "b"));
    }

    #[test]
    fn names_become_usable_and_differ() {
        let file = json!({"mcpServers": {"My Server!": {"command": "a"}, "my__x": {"command": "b"}, "服务": {"command": "c"}, "My-Server": {"command": "d"}}});
        let names: Vec<_> = read(&file.to_string()).unwrap().servers.into_keys().collect();
        assert_eq!(names, ["My-Server", "My-Server-2", "my-x", "server"]);
    }

    #[test]
    fn what_cannot_be_used_is_left_out_with_the_reason() {
        let file = json!({"mcpServers": {
            "a": {"disabled": true, "command": "x"}, "b": {"type": "sse", "url": "http://h/sse"}, "c": {}, "d": 1,
        }});
        let left_out: Vec<_> = read(&file.to_string()).unwrap().left_out;
        let reasons: Vec<&str> = left_out.iter().map(|(_, reason)| reason.as_str()).collect();
        assert_eq!(
            reasons,
            [
                "it is switched off there",
                "it speaks the old HTTP+SSE transport: ask for its streamable HTTP address (often /mcp)",
                "it has neither `command` nor `url`",
                "expected an object with `command` or `url`"
            ]
        );
        assert!(read("{").unwrap_err().starts_with("it is no JSON: "));
        assert_eq!(read("[]").unwrap_err(), "it holds no servers: expected an object under \"mcpServers\"");
    }
}
