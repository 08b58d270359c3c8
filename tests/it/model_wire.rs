//! Models over HTTP: every oddity of the endpoints in the wild, on a real socket.

use std::time::Duration;

use oncall::http::{HttpError, HttpSettings, Retries};
use oncall::llm::{
    Answer, AnswerSchema, Anthropic, ChatModel, ChatRequest, Delta, Endpoint, Finish, JsonMode, Message, ModelError,
    OpenAi, TokenUsage, ToolCall, ToolDefinition, Wire,
};
use serde_json::{Map, Value, json};
use wiremock::matchers::{body_partial_json, body_string_contains, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

fn endpoint(server: &MockServer) -> Endpoint {
    Endpoint {
        base_url: format!("{}/v1", server.uri()),
        model: "m".into(),
        api_key: Some("k3y".into()),
        api_key_env: Some("MODEL_KEY".into()),
        http: HttpSettings::default(),
        retries: Retries { first_pause: Duration::from_millis(1), ..Retries::default() },
        temperature: None,
        seed: None,
        body: Map::new(),
        wire: Wire::default(),
    }
}

fn question() -> ChatRequest {
    ChatRequest { node: "ask".into(), messages: vec![Message::user("why?")], ..ChatRequest::default() }
}

fn with_tools() -> ChatRequest {
    let tool = |name: &str| ToolDefinition { name: name.into(), description: "d".into(), parameters: json!({}) };
    ChatRequest { tools: vec![tool("query_metrics"), tool("search_logs")], ..question() }
}

fn shaped() -> ChatRequest {
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } } });
    ChatRequest { answer: Some(AnswerSchema { name: "shape".into(), schema }), ..question() }
}

fn stream(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(text.as_bytes().to_vec(), "text/event-stream")
}

fn completion(content: &str) -> ResponseTemplate {
    let choice = json!({ "message": { "role": "assistant", "content": content }, "finish_reason": "stop" });
    ResponseTemplate::new(200).set_body_json(json!({ "choices": [choice] }))
}

fn refusal(status: u16, message: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(json!({ "error": { "message": message } }))
}

async fn ask(server: &MockServer, request: &ChatRequest) -> Result<Answer, ModelError> {
    OpenAi::new(endpoint(server)).unwrap().answer(request, &mut |_| {}).await
}

/// What one answer of a server is made into.
async fn answered(response: ResponseTemplate, request: &ChatRequest) -> Result<Answer, ModelError> {
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(response).mount(&server).await;
    ask(&server, request).await
}

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments, malformed: None }
}

/// As two parallel calls came from a mock server, in 10 pieces.
const PARALLEL_CALLS: &str = r#"data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":"Checking error rate."},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_prom1","type":"function","function":{"name":"query_metrics","arguments":""}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"expr\":\"sum(rate(h"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ttp_requests_total[5m]))\"}"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_logs1","type":"function","function":{"name":"search_logs","arguments":""}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"service\":\"order-service\"}"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":50,"total_tokens":57}}

data: [DONE]

"#;

#[tokio::test]
async fn parallel_calls_are_put_together_from_a_stream() {
    let server = MockServer::start().await;
    Mock::given(path("/v1/chat/completions"))
        .and(header("authorization", "Bearer k3y"))
        .and(header("x-team", "shop"))
        .and(body_partial_json(json!({ "model": "m", "stream": true, "top_k": 3, "tool_choice": "auto" })))
        .respond_with(stream(PARALLEL_CALLS))
        .mount(&server)
        .await;
    let mut endpoint = endpoint(&server);
    endpoint.http.headers.insert("x-team".into(), "shop".into());
    endpoint.body.insert("top_k".into(), json!(3));
    let mut heard = String::new();
    let mut on_delta = |delta: Delta<'_>| {
        if let Delta::Content(text) = delta {
            heard.push_str(text);
        }
    };
    let answer = OpenAi::new(endpoint).unwrap().answer(&with_tools(), &mut on_delta).await.unwrap();
    let calls = vec![
        call("call_prom1", "query_metrics", json!({ "expr": "sum(rate(http_requests_total[5m]))" })),
        call("call_logs1", "search_logs", json!({ "service": "order-service" })),
    ];
    let usage = Some(TokenUsage { input: 7, output: 50, cached: 0 });
    let content = "Checking error rate.".to_string();
    assert_eq!(answer, Answer { content, tool_calls: calls, finish: Finish::ToolCalls, usage, ..Answer::default() });
    assert_eq!(heard, "Checking error rate.");
}

#[tokio::test]
async fn comments_bare_colons_and_carriage_returns_are_read() {
    let text = ": keep-alive\r\n\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"yes\"}}]}\r\n\r\ndata:\r\n\r\n: ping\r\n\r\n\
                data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}";
    assert_eq!(answered(stream(text), &question()).await.unwrap().content, "yes");
}

#[tokio::test]
async fn a_stream_that_is_cut_is_no_answer() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"this answe\"},\"finish_reason\":null}]}\n\n";
    assert_eq!(answered(stream(text), &question()).await, Err(ModelError::Cut { received: 10 }));
}

#[tokio::test]
async fn a_stream_without_end_is_ended() {
    let piece = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(1 << 20));
    let endless = piece.repeat(17);
    let want = Err(ModelError::Garbage("an answer of over 16 MiB".into()));
    assert_eq!(answered(stream(&endless), &question()).await, want);
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(stream(&endless)).mount(&server).await;
    assert_eq!(Anthropic::new(endpoint(&server)).unwrap().answer(&question(), &mut |_| {}).await, want);
}

#[tokio::test]
async fn errors_pages_and_nonsense_are_told_apart_from_answers() {
    let garbage = |text: &str| Err(ModelError::Garbage(text.into()));
    let inside = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";
    assert_eq!(answered(stream(inside), &question()).await, garbage("overloaded"));
    let page = ResponseTemplate::new(200).set_body_raw("<html>login</html>", "text/html");
    assert_eq!(
        answered(page, &question()).await,
        garbage("a page of HTML, perhaps a proxy's: check base_url and the proxy")
    );
    let object = ResponseTemplate::new(200).set_body_json(json!({ "error": "no such thing" }));
    assert_eq!(answered(object, &question()).await, garbage("no such thing"));
    let broken = ResponseTemplate::new(200).set_body_raw("{\"choices\": [", "application/json");
    assert_eq!(answered(broken, &question()).await, garbage("no JSON: {\"choices\": ["));
    let empty = ResponseTemplate::new(200).set_body_json(json!({ "choices": [] }));
    assert_eq!(answered(empty, &question()).await, garbage("no choices: {\"choices\":[]}"));
    let chunk = "data: {nonsense}\n\n";
    assert_eq!(answered(stream(chunk), &question()).await, garbage("a chunk that is no JSON: {nonsense}"));
}

#[tokio::test]
async fn a_whole_answer_to_a_request_for_a_stream_is_read_too() {
    assert_eq!(answered(completion("<think>hm</think>yes"), &question()).await.unwrap().content, "yes");
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says_so() {
    for retry_after in ["0", "Wed, 04 Mar 2020 06:45:30 GMT"] {
        let server = MockServer::start().await;
        let busy = refusal(429, "Rate limit reached").insert_header("retry-after", retry_after);
        Mock::given(method("POST")).respond_with(busy).up_to_n_times(2).mount(&server).await;
        Mock::given(method("POST")).respond_with(completion("ok after retry")).mount(&server).await;
        assert_eq!(ask(&server, &question()).await.unwrap().content, "ok after retry");
        assert_eq!(server.received_requests().await.unwrap().len(), 3);
    }
}

#[tokio::test]
async fn a_server_that_asks_for_too_long_a_pause_or_never_recovers_is_left() {
    let server = MockServer::start().await;
    let far = refusal(429, "come back tomorrow").insert_header("retry-after", "86400");
    Mock::given(method("POST")).respond_with(far).mount(&server).await;
    let error = ask(&server, &question()).await.unwrap_err();
    assert!(matches!(&error, ModelError::Http(HttpError::Status { status: 429, .. })), "{error}");
    assert_eq!(server.received_requests().await.unwrap().len(), 1);

    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(refusal(503, "server had an error")).mount(&server).await;
    let error = ask(&server, &question()).await.unwrap_err();
    assert!(error.to_string().contains("answered 503: {\"error\":{\"message\":\"server had an error\"}}"), "{error}");
    assert_eq!(server.received_requests().await.unwrap().len(), 4);
}

#[tokio::test]
async fn what_an_endpoint_cannot_do_is_left_out_and_remembered() {
    let server = MockServer::start().await;
    for kind in ["json_schema", "json_object"] {
        Mock::given(body_string_contains(format!("\"type\":\"{kind}\"")))
            .respond_with(refusal(400, &format!("response_format {kind} is not supported")))
            .mount(&server)
            .await;
    }
    Mock::given(body_string_contains("stream_options"))
        .respond_with(refusal(400, "unknown field stream_options"))
        .mount(&server)
        .await;
    Mock::given(method("POST")).respond_with(completion("{\"ok\": true}")).mount(&server).await;
    let client = OpenAi::new(endpoint(&server)).unwrap();
    assert_eq!(client.answer(&shaped(), &mut |_| {}).await.unwrap().content, "{\"ok\": true}");
    assert_eq!(client.wire(), Wire { json: JsonMode::Instruction, stream_usage: false, ..Wire::default() });
    let asked = server.received_requests().await.unwrap().len();
    client.answer(&shaped(), &mut |_| {}).await.unwrap();
    assert_eq!(server.received_requests().await.unwrap().len(), asked + 1);
}

#[tokio::test]
async fn a_model_without_tools_gets_them_in_its_prompt() {
    let server = MockServer::start().await;
    Mock::given(body_string_contains("\"tools\""))
        .respond_with(refusal(400, "this model does not support tools"))
        .mount(&server)
        .await;
    Mock::given(body_string_contains("You can use tools."))
        .respond_with(completion("{\"tool_calls\":[{\"name\":\"search_logs\",\"arguments\":{\"service\":\"a\"}}]}"))
        .mount(&server)
        .await;
    let answer = ask(&server, &with_tools()).await.unwrap();
    assert_eq!(answer.tool_calls, [call("call_1", "search_logs", json!({ "service": "a" }))]);
}

#[tokio::test]
async fn a_refused_key_names_its_variable_and_an_unknown_model_what_there_is() {
    let error = answered(refusal(401, "bad key"), &question()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with("(401: {\"error\":{\"message\":\"bad key\"}}): check the key in the variable MODEL_KEY"),
        "{text}"
    );

    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(refusal(404, "The model `m` does not exist")).mount(&server).await;
    let list = json!({ "data": [{ "id": "other" }, { "id": "m2" }] });
    Mock::given(path("/v1/models")).respond_with(ResponseTemplate::new(200).set_body_json(list)).mount(&server).await;
    let error = ask(&server, &question()).await.unwrap_err();
    assert_eq!(error.to_string(), "the endpoint has no model `m`: it has m2, other");

    let error = answered(ResponseTemplate::new(404).set_body_string("not here"), &question()).await.unwrap_err();
    assert!(error.to_string().contains("check base_url of the profile; it usually ends in /v1"), "{error}");
}

#[tokio::test]
async fn an_overflow_and_a_filter_are_known_by_their_words() {
    let overflow = answered(refusal(400, "maximum context length is 8192 tokens"), &question()).await;
    assert!(matches!(overflow, Err(ModelError::Overflow(_))), "{overflow:?}");
    let filtered = answered(refusal(400, "content_filter triggered"), &question()).await;
    assert!(matches!(filtered, Err(ModelError::Refused(_))), "{filtered:?}");
}

#[tokio::test]
async fn a_server_that_falls_silent_is_a_time_out() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(completion("late").set_delay(Duration::from_secs(30)))
        .mount(&server)
        .await;
    let mut endpoint = endpoint(&server);
    endpoint.http.read_timeout = Duration::from_millis(50);
    endpoint.retries.attempts = 1;
    let error = OpenAi::new(endpoint).unwrap().answer(&question(), &mut |_| {}).await.unwrap_err();
    assert!(matches!(&error, ModelError::Http(HttpError::Timeout { .. })), "{error}");
}

#[tokio::test]
async fn messages_of_anthropic_are_written_and_read() {
    let server = MockServer::start().await;
    let events = [
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 9 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "a", "name": "shape", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": "{\"ok\":true}" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 4 } }),
        json!({ "type": "message_stop" }),
    ];
    let text: String =
        events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect();
    Mock::given(path("/v1/messages"))
        .and(header("x-api-key", "k3y"))
        .and(header("anthropic-version", "2023-06-01"))
        .and(body_partial_json(json!({ "tool_choice": { "type": "tool", "name": "shape" } })))
        .respond_with(stream(&text))
        .mount(&server)
        .await;
    let answer = Anthropic::new(endpoint(&server)).unwrap().answer(&shaped(), &mut |_| {}).await.unwrap();
    let usage = Some(TokenUsage { input: 9, output: 4, cached: 0 });
    assert_eq!(answer, Answer { content: "{\"ok\":true}".into(), usage, ..Answer::default() });

    let busy = refusal(529, "Overloaded");
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(busy).up_to_n_times(1).mount(&server).await;
    let whole = json!({ "content": [{ "type": "text", "text": "yes" }], "stop_reason": "end_turn" });
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(200).set_body_json(whole)).mount(&server).await;
    let answer = Anthropic::new(endpoint(&server)).unwrap().answer(&question(), &mut |_| {}).await.unwrap();
    assert_eq!(answer.content, "yes");
}
