//! How many tokens a text is, estimated: every provider cuts text differently, and none of their vocabularies is ours to
//! carry. The estimate errs on the high side, so that what is measured to fit does fit.

use super::{ChatRequest, Message};

/// Tokens that a message costs besides its text: role and separators.
const PER_MESSAGE: u64 = 5;

/// Tokens of a text: a word of up to four letters or digits is one, longer ones one per four; a mark is one; a Chinese,
/// Japanese or Korean character is one. (Published vocabularies need about 1.3 tokens an English word and .6 to 1 a
/// Chinese character; identifiers and figures, which evidence is full of, cost the most.)
pub fn estimate(text: &str) -> u64 {
    let (mut tokens, mut word) = (0u64, 0u64);
    for c in text.chars() {
        if c.is_ascii_alphabetic() {
            word += 1;
            continue;
        }
        tokens += word.div_ceil(4);
        word = 0;
        match c {
            // Digits come in twos or threes.
            '0'..='9' => word += 2,
            ' ' | '\n' | '\t' | '\r' => {}
            _ => tokens += 1,
        }
    }
    tokens + word.div_ceil(4)
}

/// Tokens of a message with its calls.
pub fn of_message(message: &Message) -> u64 {
    let calls: u64 = message
        .tool_calls
        .iter()
        .map(|call| PER_MESSAGE + estimate(&call.name) + estimate(&call.arguments.to_string()))
        .sum();
    PER_MESSAGE + estimate(&message.content) + calls
}

/// Tokens of a whole request.
pub fn of_request(request: &ChatRequest) -> u64 {
    let messages: u64 = request.messages.iter().map(of_message).sum();
    let tools: u64 = request
        .tools
        .iter()
        .map(|tool| {
            PER_MESSAGE + estimate(&tool.name) + estimate(&tool.description) + estimate(&tool.parameters.to_string())
        })
        .sum();
    let schema = request.answer.as_ref().map_or(0, |answer| estimate(&answer.schema.to_string()));
    messages + tools + schema
}

/// The beginning of a text that costs at most `limit` tokens, at a character boundary.
pub fn head(text: &str, limit: u64) -> &str {
    if estimate(text) <= limit {
        return text;
    }
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let fits = ends.partition_point(|&end| estimate(&text[..end]) <= limit);
    &text[..ends[fits.saturating_sub(1)]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_marks_and_characters_count() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("the pool is exhausted"), 6);
        assert_eq!(estimate("连接池耗尽"), 5);
        assert_eq!(estimate("a=1, b=2"), 7);
    }

    #[test]
    fn a_head_fits_its_limit() {
        let text = "数据库 connection pool exhausted ".repeat(50);
        let cut = head(&text, 40);
        assert!(estimate(cut) <= 40 && estimate(cut) > 35, "{}", estimate(cut));
        assert!(text.starts_with(cut));
        assert_eq!(head("short", 40), "short");
    }
}
