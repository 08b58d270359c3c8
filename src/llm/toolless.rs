//! Tools for models without tool calling: they stand in the prompt, and calls are read out of the answer's text.

use serde_json::{Value, json};

use super::{Answer, ChatRequest, Finish, Message, Role, ToolCall, json};

const INSTRUCTION: &str = "You can use tools. To call some, answer with one JSON object and nothing else: \
{\"tool_calls\": [{\"name\": \"NAME\", \"arguments\": {…}}]}. Otherwise answer in plain text. The tools:\n";

/// The same request without tools on the wire.
pub(super) fn instruct(request: &ChatRequest) -> ChatRequest {
    let mut text = INSTRUCTION.to_string();
    for tool in &request.tools {
        text.push_str(&format!("- {}: {} Arguments (JSON schema): {}\n", tool.name, tool.description, tool.parameters));
    }
    let mut messages: Vec<Message> = request.messages.iter().map(plain).collect();
    match messages.first_mut().filter(|first| first.role == Role::System) {
        Some(system) => system.content = format!("{}\n\n{text}", system.content),
        None => messages.insert(0, Message::system(text)),
    }
    ChatRequest { messages, tools: Vec::new(), ..request.clone() }
}

/// Calls and their answers as text.
fn plain(message: &Message) -> Message {
    match message.role {
        Role::Tool => Message::user(format!("Result of the tool call:\n{}", message.content)),
        Role::Assistant if !message.tool_calls.is_empty() => {
            let calls: Vec<Value> = message
                .tool_calls
                .iter()
                .map(|call| json!({ "name": call.name, "arguments": call.arguments }))
                .collect();
            Message::assistant(format!("{}\n{}", message.content, json!({ "tool_calls": calls })).trim(), Vec::new())
        }
        _ => message.clone(),
    }
}

/// Calls that an answer holds as text. Only names of offered tools count, so that JSON in an ordinary answer stays one.
pub(super) fn read_calls(mut answer: Answer, request: &ChatRequest) -> Answer {
    if !answer.tool_calls.is_empty() || request.tools.is_empty() {
        return answer;
    }
    let found = json::find(&answer.content).map(calls_of).unwrap_or_default();
    let offered = |call: &ToolCall| request.tools.iter().any(|tool| tool.name == call.name);
    if found.is_empty() || !found.iter().all(offered) {
        return answer;
    }
    answer.content =
        answer.content.find(['{', '[', '<', '`']).map_or("", |at| &answer.content[..at]).trim().to_string();
    answer.tool_calls = found;
    answer.finish = Finish::ToolCalls;
    answer
}

fn calls_of(value: Value) -> Vec<ToolCall> {
    let list = match value {
        Value::Array(list) => list,
        Value::Object(ref object) if object.get("tool_calls").is_some_and(Value::is_array) => {
            object["tool_calls"].as_array().cloned().unwrap_or_default()
        }
        one => vec![one],
    };
    list.iter().enumerate().filter_map(|(n, call)| read_call(call, n)).collect()
}

fn read_call(call: &Value, n: usize) -> Option<ToolCall> {
    let function = call.get("function").filter(|function| function.is_object()).unwrap_or(call);
    let name = ["name", "tool"].iter().find_map(|key| function.get(key).and_then(Value::as_str))?;
    let arguments = ["arguments", "parameters", "args"].iter().find_map(|key| function.get(key));
    let arguments = match arguments {
        None | Some(Value::Null) => json!({}),
        Some(object @ Value::Object(_)) => object.clone(),
        Some(Value::String(text)) => serde_json::from_str::<Value>(text).ok().filter(Value::is_object)?,
        Some(_) => return None,
    };
    Some(ToolCall { id: format!("call_{}", n + 1), name: name.to_string(), arguments, malformed: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ToolDefinition;

    fn request() -> ChatRequest {
        let tool = |name: &str| ToolDefinition { name: name.into(), description: "d".into(), parameters: json!({}) };
        ChatRequest { tools: vec![tool("search_logs"), tool("status")], ..ChatRequest::default() }
    }

    fn read(content: &str) -> Vec<(String, Value)> {
        let answer = Answer { content: content.into(), ..Answer::default() };
        read_calls(answer, &request()).tool_calls.into_iter().map(|call| (call.name, call.arguments)).collect()
    }

    #[test]
    fn calls_are_read_in_the_shapes_that_models_write() {
        let want = vec![("search_logs".to_string(), json!({ "service": "a" }))];
        for text in [
            r#"{"tool_calls": [{"name": "search_logs", "arguments": {"service": "a"}}]}"#,
            r#"<tool_call>{"name": "search_logs", "arguments": {"service": "a"}}</tool_call>"#,
            "Let me look.\n```json\n{\"tool\": \"search_logs\", \"args\": {\"service\": \"a\"}}\n```",
            r#"[{"function": {"name": "search_logs", "arguments": "{\"service\":\"a\"}"}}]"#,
            r#"{"name":"search_logs","parameters":{"service":"a"}}"#,
        ] {
            assert_eq!(read(text), want, "{text}");
        }
    }

    #[test]
    fn json_that_is_no_call_of_an_offered_tool_stays_text() {
        for text in [
            r#"{"name": "rm", "arguments": {}}"#,
            r#"{"summary": "x"}"#,
            "plain",
            r#"{"name": "search_logs", "arguments": 3}"#,
        ] {
            assert_eq!(read(text), [], "{text}");
        }
    }

    #[test]
    fn a_conversation_with_calls_becomes_plain_text() {
        let call = ToolCall { id: "a".into(), name: "status".into(), arguments: json!({ "x": 1 }), malformed: None };
        let messages = vec![
            Message::system("Be brief."),
            Message::user("why?"),
            Message::assistant("", vec![call]),
            Message::tool("a", "all ready"),
        ];
        let plain = instruct(&ChatRequest { messages, ..request() });
        assert_eq!(plain.tools, []);
        assert!(plain.messages[0].content.starts_with("Be brief.\n\nYou can use tools."));
        assert!(plain.messages[0].content.contains("- status: d Arguments (JSON schema): {}"));
        assert_eq!(plain.messages[2].content, r#"{"tool_calls":[{"name":"status","arguments":{"x":1}}]}"#);
        assert_eq!(
            (plain.messages[3].role, plain.messages[3].content.as_str()),
            (Role::User, "Result of the tool call:\nall ready")
        );
    }
}
