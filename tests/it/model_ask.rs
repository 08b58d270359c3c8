//! Questions that a recorded model answers: the two ways, conversations, and what becomes of secrets.

use std::path::Path;

use serde_json::{Value, json};

use crate::model_agent::{calls, exchange, recording};
use crate::program::{indexed_data_dir, oncall, root, said};

const DISK: &str = "How do I find what fills the disk?";

/// Asks with a recording as the model; exit code, document and what stderr said.
fn asked_in(data: &Path, exchanges: &[Value], arguments: &[&str]) -> (i32, Value, String) {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path(), exchanges);
    let config = dir.path().join("oncall.toml");
    std::fs::write(&config, "model = \"r\"\n[models.r]\nprovider = \"replay\"\n").unwrap();
    let mut command = oncall(data);
    command.arg("--config").arg(&config).args(["ask", "--json"]).args(arguments);
    let (code, out, err) = said(&command.output().unwrap());
    (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}\n{err}")), err)
}

fn asked(exchanges: &[Value], arguments: &[&str]) -> (i32, Value, String) {
    asked_in(&indexed_data_dir(), exchanges, arguments)
}

fn look_up(query: &str) -> Value {
    calls("", &[("retrieve_knowledge", json!({ "query": query }))])
}

#[test]
fn a_simple_question_is_looked_up_and_its_citations_are_numbered() {
    let exchanges = [
        exchange("ask", &["Question: How do I find what fills the disk?"], look_up("what fills the disk")),
        exchange("ask", &["E1 "], json!("Look at `df -h` first [E1]. It was 4711 GB [E1]. Then see [E99].")),
    ];
    let (code, answer, err) = asked(&exchanges, &[DISK]);
    assert_eq!((code, &answer["route"]), (0, &json!("simple")), "{err}");
    assert_eq!(answer["answer"], "Look at `df -h` first [1].");
    assert_eq!(answer["references"].as_array().unwrap().len(), 1);
    assert!(answer["references"][0]["source"].as_str().unwrap().ends_with(".md"), "{}", answer["references"]);
    assert_eq!(
        answer["notes"],
        json!([
            "struck, for lack of evidence: It was 4711 GB [E1]. (4711 does not stand in E1)",
            "struck, for lack of evidence: Then see [E99]. (there is no E99)"
        ])
    );
    assert_eq!(answer["usage"]["calls"], 2);
}

#[test]
fn a_complex_question_is_planned_worked_and_answered() {
    let plan = json!({ "steps": [{ "question": "What do its logs say?", "calls": [
        { "tool": "search_logs", "arguments": { "service": "order-service", "level": "error" } }] }] });
    let exchanges = [
        exchange("plan", &["Why did orders fail?"], plan),
        exchange("execute", &["connection pool timeout"], json!("The pool timed out 210 times.")),
        exchange("replan", &[], json!({ "decision": "finish" })),
        exchange(
            "respond",
            &["Question: Why did orders fail?", "The pool timed out 210 times."],
            json!("The connection pool ran dry."),
        ),
    ];
    let incident = root().join("examples/order-service");
    let (code, answer, err) = asked(&exchanges, &["--incident", incident.to_str().unwrap(), "Why did orders fail?"]);
    assert_eq!(
        (code, &answer["route"], &answer["answer"]),
        (0, &json!("complex"), &json!("The connection pool ran dry.")),
        "{err}"
    );
    assert_eq!(answer["route_reason"], "it asks for a cause (\"why\")");
}

#[test]
fn the_model_chooses_the_way_when_looks_do_not_tell() {
    let question = "Tell me about the state of the payment path in the last hour, service by service.";
    let exchanges = [
        exchange("route", &["service by service"], json!({ "route": "simple", "reason": "one look" })),
        exchange("ask", &[], json!("Nothing is configured that could tell.")),
    ];
    let (_, answer, err) = asked(&exchanges, &[question]);
    assert_eq!((&answer["route"], &answer["route_reason"]), (&json!("simple"), &json!("one look")), "{err}");
}

#[test]
fn a_follow_up_question_is_understood_from_the_conversation() {
    let data = tempfile::tempdir().unwrap();
    let (_, first, err) = asked_in(data.path(), &[exchange("ask", &[], json!("Look at df."))], &[DISK]);
    assert_eq!(first["answer"], "Look at df.", "{err}");
    let exchanges = [
        exchange(
            "rewrite",
            &["engineer: How do I find what fills the disk?", "assistant: Look at df.", "and inodes?"],
            json!("How do I find what uses up the inodes?"),
        ),
        exchange(
            "ask",
            &["Question: How do I find what uses up the inodes?", "assistant: Look at df."],
            json!("Look at df -i."),
        ),
    ];
    let (_, second, err) = asked_in(data.path(), &exchanges, &["--continue", "and inodes?"]);
    assert_eq!(second["answer"], "Look at df -i.", "{err}");
    assert_eq!(second["session_id"], first["session_id"]);
    let shown = oncall(data.path()).args(["session", "show", "last", "--json"]).output().unwrap();
    let (code, out, err) = said(&shown);
    assert_eq!(code, 0, "{err}");
    let session: Value = serde_json::from_str(&out).unwrap();
    let turns: Vec<&str> = session["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user" || message["role"] == "assistant")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(turns, [DISK, "Look at df.", "and inodes?", "Look at df -i."]);
}

#[test]
fn a_session_that_is_not_there_is_bad_usage() {
    let data = tempfile::tempdir().unwrap();
    let output = oncall(data.path()).args(["ask", "--session", "nope", "and?"]).output().unwrap();
    let (code, _, err) = said(&output);
    assert_eq!((code, err.as_str()), (2, "error: no session begins with `nope`: nothing is stored yet\n"));
}

#[test]
fn a_model_without_an_answer_leaves_an_extract_and_says_why() {
    let (code, answer, err) = asked(&[], &[DISK]);
    assert_eq!((code, &answer["model"]), (0, &Value::Null));
    assert!(answer["answer"].as_str().unwrap().starts_with("From the runbooks, word for word:"), "{answer}");
    assert!(err.contains("warning: the model gave no answer: replay of"), "{err}");
}

#[test]
fn a_secret_never_reaches_the_model_and_the_user_sees_it() {
    let incident = tempfile::tempdir().unwrap();
    let logs = incident.path().join("logs/cart");
    std::fs::create_dir_all(&logs).unwrap();
    std::fs::write(incident.path().join("alert.json"), r#"{"labels":{"alertname":"A","service":"cart"}}"#).unwrap();
    std::fs::write(incident.path().join("incident.toml"), "now = \"2026-03-04T06:45:00Z\"\n").unwrap();
    let line = "2026-03-04T06:40:00Z ERROR login refused: password=hunter2-Sommer for db\n";
    std::fs::write(logs.join("app.log"), line).unwrap();
    let exchanges = [
        exchange("ask", &[], calls("", &[("search_logs", json!({ "service": "cart" }))])),
        exchange(
            "ask",
            &["password=[redacted:password:1] for db"],
            json!("It logs the password [redacted:password:1] [E2]."),
        ),
    ];
    let (_, answer, err) =
        asked(&exchanges, &["--simple", "--incident", incident.path().to_str().unwrap(), "What is logged?"]);
    assert_eq!(answer["answer"], "It logs the password hunter2-Sommer [1].", "{err}");
}

#[test]
fn prompts_are_listed_shown_and_copied_to_be_changed() {
    let data = tempfile::tempdir().unwrap();
    let run =
        |arguments: &[&str]| said(&oncall(data.path()).current_dir(data.path()).args(arguments).output().unwrap());
    let (code, out, _) = run(&["prompts", "list"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("prompts_list", out);
    let (_, ejected, _) = run(&["prompts", "eject", "mine"]);
    assert_eq!(ejected.lines().count(), 10, "{ejected}");
    std::fs::write(data.path().join("mine/route.md"), "sort\n<!-- user -->\n{{ question }}").unwrap();
    std::fs::write(data.path().join("oncall.toml"), "[agent]\nprompts = \"mine\"\n").unwrap();
    let (_, shown, _) = run(&["prompts", "show", "route"]);
    assert_eq!(shown, "sort\n<!-- user -->\n{{ question }}");
    let (_, list, _) = run(&["prompts", "list"]);
    assert!(list.contains("route       sorts a question into simple or complex (yours)"), "{list}");
    let (code, _, err) = run(&["prompts", "show", "rout"]);
    assert_eq!((code, err.as_str()), (2, "error: there is no template `rout`: did you mean `route`?\n"));
    std::fs::write(data.path().join("mine/plan.md"), "no divider").unwrap();
    let (code, _, err) = run(&["prompts", "list"]);
    assert_eq!(code, 2);
    assert!(err.contains("plan.md: expected a line `<!-- user -->`"), "{err}");
}
