//! Cuts a passage into what can be quoted by itself: sentences, list items, blocks of code, tables.

use super::blocks::{BlockKind, Syntax, blocks};
use super::pack::{Boundary, next_boundary};

/// The sentences of a passage in Markdown. Lines of one paragraph are joined; code and tables stay as they stand.
pub fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for block in blocks(text, Syntax::Markdown) {
        let part = &text[block.range];
        if block.kind != BlockKind::Text {
            found.push(part.trim_end().to_string());
            continue;
        }
        for item in items(part) {
            let mut from = 0;
            while from < item.len() {
                // The full stop of `1.` ends no sentence.
                let search = if from == 0 { number_end(&item) } else { from };
                let end = next_boundary(&item, search, item.len(), Boundary::Sentence);
                found.push(item[from..end].trim().to_string());
                from = end;
            }
        }
    }
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// The list items of a paragraph, or the whole of it, each on one line.
fn items(paragraph: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in paragraph.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match items.last_mut() {
            Some(item) if !starts_item(line) => {
                let wide = |c: Option<char>| c.is_some_and(|c| !c.is_ascii());
                // Chinese has no blank where a line was broken.
                if !(wide(item.chars().last()) && wide(line.chars().next())) {
                    item.push(' ');
                }
                item.push_str(line);
            }
            _ => items.push(line.to_string()),
        }
    }
    items
}

/// The length of the number that starts a list item.
fn number_end(line: &str) -> usize {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = rest.len() < line.len() && rest.starts_with(['.', ')']) && rest[1..].starts_with(' ');
    if is_number { line.len() - rest.len() + 1 } else { 0 }
}

fn starts_item(line: &str) -> bool {
    number_end(line) > 0 || ["- ", "* ", "+ ", "> "].iter().any(|mark| line.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_list_items_and_code_are_told_apart() {
        let text = "# Head\n\nFirst one\nover two lines. Second.\n\n- item one\n  goes on\n- item two\n1. step\n\n```sh\ndf -h\n\nls\n```\n";
        assert_eq!(
            sentences(text),
            [
                "# Head",
                "First one over two lines.",
                "Second.",
                "- item one goes on",
                "- item two",
                "1. step",
                "```sh\ndf -h\n\nls\n```",
            ]
        );
        assert_eq!(sentences("磁盘满了\n先清理。再扩容。"), ["磁盘满了先清理。", "再扩容。"]);
    }
}
