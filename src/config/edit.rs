//! `oncall.toml` changed by the program: a server's table added at the end or cut out, everything else left as it was
//! written, comments included.

use super::shape::{File, McpConfig};

/// The text with a table `[mcp.NAME]` at its end.
///
/// # Errors
/// The name is taken, or the file is none that can be added to.
pub fn with_server(text: &str, name: &str, server: &McpConfig) -> Result<String, String> {
    let before = parse(text)?;
    if before.mcp.contains_key(name) {
        return Err(format!(
            "there is a server `{name}` already: `oncall mcp remove {name}` first, or take another name"
        ));
    }
    let mut out = text.trim_end().to_owned();
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str(&table(name, server)?);
    match parse(&out) {
        Ok(after) if after.mcp.get(name) == Some(server) && after.mcp.len() == before.mcp.len() + 1 => Ok(out),
        _ => Err("the file is written in a way that cannot be added to: add the table by hand".to_owned()),
    }
}

/// The text without the table `[mcp.NAME]` and those below it.
///
/// # Errors
/// There is no such server, or its table cannot be cut out.
pub fn without_server(text: &str, name: &str) -> Result<String, String> {
    let before = parse(text)?;
    if !before.mcp.contains_key(name) {
        let near = crate::domain::text::nearest(name, before.mcp.keys().map(String::as_str));
        let hint = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("there is no server `{name}`{hint}"));
    }
    let mut kept = String::with_capacity(text.len());
    let mut is_cutting = false;
    for line in text.split_inclusive('\n') {
        if let Some(header) = header(line) {
            is_cutting = header.len() >= 2 && header[0] == "mcp" && header[1] == name;
        }
        if !is_cutting {
            kept.push_str(line);
        }
    }
    let mut wanted = before;
    wanted.mcp.remove(name);
    match parse(&kept) {
        Ok(after) if after.mcp == wanted.mcp && after.models == wanted.models && after.sources == wanted.sources => {
            Ok(kept)
        }
        _ => Err(format!("the table of `{name}` cannot be cut out of the file: remove it by hand")),
    }
}

fn parse(text: &str) -> Result<File, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    toml::from_str(text).map_err(|error| error.message().to_owned())
}

/// The parts of a line that opens a table: `[mcp."a"]` gives `mcp`, `a`.
fn header(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    if !line.starts_with('[') {
        return None;
    }
    let line = line.split('#').next()?.trim_end();
    let inner = line.trim_start_matches('[').trim_end_matches(']');
    Some(inner.split('.').map(|part| part.trim().trim_matches(['"', '\'']).to_owned()).collect())
}

/// The table as it is written: what is not set is left out, maps stand on one line.
fn table(name: &str, server: &McpConfig) -> Result<String, String> {
    let all = toml::Table::try_from(server).map_err(|error| error.to_string())?;
    let is_set = |value: &toml::Value| match value {
        toml::Value::Array(all) => !all.is_empty(),
        toml::Value::Table(all) => !all.is_empty(),
        _ => true,
    };
    let mut set: Vec<_> = all.iter().filter(|(_, value)| is_set(value)).collect();
    // What it is stands before how it is used.
    set.sort_by_key(|(key, _)| !matches!(key.as_str(), "command" | "url"));
    let lines = set.into_iter().map(|(key, value)| format!("{key} = {value}\n"));
    Ok(format!("[mcp.{name}]\n{}", lines.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time() -> McpConfig {
        McpConfig {
            command: Some("mcp-server-time".into()),
            args: vec!["--local-timezone".into(), "UTC".into()],
            env: [("A B".to_owned(), "\"x\"\n".to_owned())].into(),
            ..McpConfig::default()
        }
    }

    #[test]
    fn a_server_goes_to_the_end_and_out_again() {
        let text = "# ours\nmodel = \"none\" # rules\n\n[mcp.a]\ncommand = \"x\"\n";
        let with = with_server(text, "time", &time()).unwrap();
        assert!(with.starts_with(text) && with.contains("[mcp.time]\ncommand = \"mcp-server-time\"\n"), "{with}");
        assert_eq!(without_server(&with, "time").unwrap().trim_end(), text.trim_end());
        assert_eq!(without_server(&with, "a").unwrap().matches("[mcp.").count(), 1);
        assert!(with_server(&with, "time", &time()).unwrap_err().starts_with("there is a server `time` already"));
    }

    #[test]
    fn tables_below_go_with_it_and_others_stay() {
        let text = "[mcp.a]\ncommand = \"x\"\n[mcp.a.env]\nK = \"v\"\n# of b\n[mcp.b]\ncommand = \"y\"\n";
        assert_eq!(without_server(text, "a").unwrap(), "[mcp.b]\ncommand = \"y\"\n");
        assert_eq!(without_server(text, "c").unwrap_err(), "there is no server `c`");
    }

    #[test]
    fn what_is_written_otherwise_is_left_alone() {
        let text = "mcp = { a = { command = \"x\" } }\n";
        assert!(without_server(text, "a").unwrap_err().ends_with("remove it by hand"));
        assert!(with_server(text, "b", &time()).unwrap_err().ends_with("add the table by hand"));
    }
}
