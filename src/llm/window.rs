//! Making a conversation fit a model's window: what tools answered long ago goes first.

use super::{ChatRequest, Message, Role, tokens};

/// What stays of a tool's answer that had to make room, in tokens.
const STUB_TOKENS: u64 = 60;
/// A message is not cut below this.
const LEAST_TOKENS: u64 = 200;
const CUT: &str = "\n[cut here to fit the model's window]";

/// The request at no more than `limit` estimated tokens, as far as cutting allows: answers of tools are shortened, oldest
/// first, then the longest of the other messages. The first system message and the last message stay whole.
pub(super) fn fit(mut request: ChatRequest, limit: u64) -> ChatRequest {
    let mut total = tokens::of_request(&request);
    let last = request.messages.len().saturating_sub(1);
    for at in 0..last {
        if total <= limit {
            return request;
        }
        if request.messages[at].role == Role::Tool {
            total -= shorten(&mut request.messages[at], STUB_TOKENS);
        }
    }
    while total > limit {
        let longest = (0..request.messages.len())
            .filter(|&at| request.messages[at].role != Role::System)
            .max_by_key(|&at| tokens::of_message(&request.messages[at]));
        let Some(at) = longest else { break };
        let size = tokens::estimate(&request.messages[at].content);
        let target = size.saturating_sub(total - limit).max(LEAST_TOKENS).min(size * 3 / 4);
        let saved = shorten(&mut request.messages[at], target);
        if size <= LEAST_TOKENS || saved == 0 {
            break;
        }
        total -= saved;
    }
    request
}

/// Cuts a message to about so many tokens, marked; returns what that saved.
fn shorten(message: &mut Message, target: u64) -> u64 {
    let before = tokens::estimate(&message.content);
    if before <= target + tokens::estimate(CUT) {
        return 0;
    }
    message.content = format!("{}{CUT}", tokens::head(&message.content, target));
    before.saturating_sub(tokens::estimate(&message.content))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: Vec<Message>) -> ChatRequest {
        ChatRequest { messages, ..ChatRequest::default() }
    }

    #[test]
    fn old_answers_of_tools_make_room_first() {
        let long = "connection pool timeout ".repeat(100);
        let messages = vec![
            Message::system("be brief"),
            Message::user("why does order-service fail?"),
            Message::tool("a", long.clone()),
            Message::tool("b", long.clone()),
        ];
        let whole = tokens::of_request(&request(messages.clone()));
        assert_eq!(fit(request(messages.clone()), whole), request(messages.clone()));
        let cut = fit(request(messages.clone()), whole - 50);
        assert!(cut.messages[2].content.ends_with(CUT) && cut.messages[2].content.len() < long.len());
        assert_eq!((&cut.messages[1], &cut.messages[3]), (&messages[1], &messages[3]));
    }

    #[test]
    fn a_single_message_that_is_too_long_is_cut_itself() {
        let messages = vec![Message::system("s"), Message::user("数据库连接池耗尽".repeat(1000))];
        let cut = fit(request(messages), 1000);
        assert!(tokens::of_request(&cut) <= 1000, "{}", tokens::of_request(&cut));
        assert!(cut.messages[1].content.ends_with(CUT));
    }

    #[test]
    fn what_cannot_be_cut_further_ends_in_order() {
        let messages = vec![Message::system("word ".repeat(500)), Message::user("short")];
        assert_eq!(fit(request(messages.clone()), 10), request(messages));
    }
}
