//! Names of tools as models accept them.
//!
//! In: a server's name and what it calls a tool. Out: `server__tool` within `[A-Za-z0-9_-]{1,64}`, the same in every
//! run. A name that had to be changed ends in a hash of what it was, so that two never become one.

/// What stands between server and tool.
pub const SEPARATOR: &str = "__";
/// As the model wire of most providers has it.
const MAX_CHARS: usize = 64;
const HASH_CHARS: usize = 6;

/// The name under which a server's tool is offered.
pub fn offered(server: &str, tool: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let whole = format!("{server}{SEPARATOR}{tool}");
    if !tool.is_empty() && whole.len() <= MAX_CHARS && whole.chars().all(plain) {
        return whole;
    }
    let hash = blake3::hash(tool.as_bytes()).to_hex();
    let room = MAX_CHARS - HASH_CHARS - 1;
    let kept: String = whole.chars().map(|c| if plain(c) { c } else { '_' }).take(room).collect();
    format!("{kept}_{}", &hash[..HASH_CHARS])
}

/// The server part of an offered name.
pub fn server_of(offered: &str) -> Option<&str> {
    offered.split_once(SEPARATOR).map(|(server, _)| server)
}

/// Whether a name fits a pattern in which `*` stands for any characters, none included.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    // `split` gives at least one part.
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_name_stays_and_another_is_marked_with_its_hash() {
        assert_eq!(offered("time", "get_current_time"), "time__get_current_time");
        assert_eq!(offered("k8s", "pods.list"), "k8s__pods_list_ffcb6e");
        assert_ne!(offered("k8s", "pods/list"), offered("k8s", "pods.list"));
        let long = offered("grafana", &"x".repeat(80));
        assert_eq!((long.len(), server_of(&long)), (64, Some("grafana")));
        assert_ne!(long, offered("grafana", &"x".repeat(81)));
    }

    #[test]
    fn patterns_have_stars() {
        for (pattern, name, want) in [
            ("*", "anything", true),
            ("*", "", true),
            ("get_*", "get_time", true),
            ("get_*", "set_time", false),
            ("*_list", "pods_list", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_models_accept(server in "[a-zA-Z0-9-]{1,32}", tool in "\\PC{0,100}") {
            let name = offered(&server, &tool);
            prop_assert!((1..=64).contains(&name.len()), "{name}");
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{name}");
            prop_assert_eq!(server_of(&name), Some(server.as_str()));
        }
    }
}
