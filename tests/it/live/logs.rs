//! Stores of logs: two emulators of search servers, and a Loki and a VictoriaLogs written by hand (a Loki cannot be had;
//! `compiled.rs` asks a real VictoriaLogs).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Setting, fired_at, log_documents};
use crate::servers::http::{Asked, Reply, Served};
use crate::servers::search::{Search, SearchServer};

/// About the example, which is set in the present.
pub fn example_query() -> String {
    let at = |minutes: i64| fired_at() + jiff::SignedDuration::from_mins(minutes);
    json!({"service": "order-service", "start": at(-15).to_string(), "end": at(15).to_string()}).to_string()
}

/// About what is written by hand.
const QUERY: &str =
    "{\"service\": \"order-service\", \"start\": \"2026-03-04T06:15:00Z\", \"end\": \"2026-03-04T06:45:00Z\"}";

pub fn search(setting: &Setting, query: &str) -> Value {
    setting.document(&["tools", "call", "search_logs", query], 0)["output"].clone()
}

pub fn volume(output: &Value) -> &Value {
    &output["findings"][0]
}

#[test]
fn both_dialects_of_search_give_what_the_files_give() {
    let documents = log_documents();
    let query = example_query();
    let files = search_files(&query);
    for which in [Search::OpenSearch, Search::Elasticsearch] {
        let server = SearchServer::start(which);
        server.store("logs-shop-2026.03.04", &documents);
        let table = |more: &str| {
            Setting::with(&format!("[sources.es]\nkind = \"elasticsearch\"\nurl = \"{}\"\n{more}", server.url()))
        };
        let setting = table("index = \"logs-*\"\nlimit = 200000\n");
        let live = search(&setting, &query);
        assert_eq!(volume(&live)["events"], volume(&files)["events"], "{which:?}: {live}");
        assert_eq!(volume(&live)["levels"], volume(&files)["levels"], "{which:?}");
        let template = |output: &Value| output["findings"][1]["template"].clone();
        assert_eq!(template(&live), template(&files), "{which:?}");

        let words = query.replace('}', ", \"keywords\": [\"HIKARIPOOL-1\"]}");
        let found = search(&setting, &words);
        let want = volume(&search_files(&words)).clone();
        assert_eq!(volume(&found)["events"], want["events"], "{which:?}: {found}");

        let nobody = search(&setting, &query.replace("order-service", "nobody"));
        assert_eq!(nobody["findings"][0]["type"], "nothing", "{which:?}");
        assert!(nobody["notes"][0].as_str().unwrap().contains("order-service"), "{which:?}: {nobody}");

        let part = search(&table("limit = 200\n"), &query);
        assert_eq!(part["truncated"], true, "{which:?}");
        let read = volume(&part)["events"].as_u64().unwrap_or_else(|| panic!("{which:?}: {part}"));
        assert!((20..=300).contains(&read), "{which:?}: {read}");
        assert!(part["notes"].to_string().contains("events match"), "{which:?}: {part}");

        let (code, out, _) = setting.run(&["doctor"]);
        assert_eq!(code, 0, "{out}");
        assert!(out.contains("time in @timestamp"), "{which:?}: {out}");
        let (code, out, _) = table("fields = { time = \"when\" }\n").run(&["doctor"]);
        assert_eq!(code, 3, "{out}");
        assert!(out.contains("`when` (fields.time) is no date field of `*`"), "{which:?}: {out}");
    }
}

pub fn search_files(query: &str) -> Value {
    let folder = super::example();
    let args = ["tools", "call", "search_logs", query, "--incident", folder.to_str().unwrap()];
    Setting::with("").document(&args, 0)["output"].clone()
}

/// Entries of a Loki that is written by hand: one a second for half an hour, two at each instant.
fn loki() -> Served {
    let start: Timestamp = "2026-03-04T06:15:00Z".parse().unwrap();
    Served::start(move |asked| {
        let parameter = |name: &str| parameter(asked, name);
        if asked.path() == "/loki/api/v1/labels" {
            return Reply::json(r#"{"status":"success","data":["app","level","pod"]}"#);
        }
        if asked.path().ends_with("/values") {
            return Reply::json(r#"{"status":"success","data":["order-service","cart"]}"#);
        }
        let (from, to) = (parameter("start").parse::<i128>().unwrap(), parameter("end").parse::<i128>().unwrap());
        let at = |second: i128| start.as_nanosecond() + second * 1_000_000_000;
        if parameter("query").starts_with("sum(") {
            let step: i128 = parameter("step").trim_end_matches('s').parse().unwrap();
            let counts: Vec<Value> = (0..)
                .map(|n| from + n * step * 1_000_000_000)
                .take_while(|end| *end <= to)
                .map(|end| {
                    let count = (0..1800).filter(|s| at(*s) > end - step * 1_000_000_000 && at(*s) <= end).count() * 2;
                    json!([(end / 1_000_000_000) as i64, count.to_string()])
                })
                .collect();
            let body = json!({"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": counts}]}});
            return Reply::json(body.to_string());
        }
        let limit: usize = parameter("limit").parse().unwrap();
        let entry = |second: i128, twin: usize| json!([at(second).to_string(), format!("level=error msg=\"pool is empty\" request={second} twin={twin}"), {"trace_id": "x"}]);
        let all = (0..1800).flat_map(|second| [(second, 0), (second, 1)]);
        let values: Vec<Value> = all
            .filter(|(second, _)| at(*second) >= from && at(*second) < to)
            .take(limit)
            .map(|(second, twin)| entry(second, twin))
            .collect();
        let stream = json!({"stream": {"app": "order-service", "pod": "order-service-0"}, "values": values});
        Reply::json(json!({"status": "success", "data": {"resultType": "streams", "result": [stream]}}).to_string())
    })
}

/// A parameter of the address, decoded.
fn parameter(asked: &Asked, name: &str) -> String {
    let url = reqwest::Url::parse(&format!("http://x{}", asked.target)).unwrap();
    let found = url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    found.unwrap_or_default()
}

#[test]
fn loki_is_read_past_the_limit_of_one_answer_and_nothing_twice() {
    let server = loki();
    let setting =
        Setting::with(&format!("[sources.loki]\nkind = \"loki\"\nurl = \"{}\"\ntenant = \"shop\"\n", server.url()));
    let output = search(&setting, QUERY);
    assert_eq!(volume(&output)["events"], 3600, "{output}");
    assert_eq!(volume(&output)["levels"], json!({"error": 3600}));
    assert_eq!(output["truncated"], false);
    let asked = server.asked();
    let queries: Vec<String> =
        asked.iter().map(|one| parameter(one, "query")).filter(|query| query.starts_with('{')).collect();
    assert!(queries.len() > 3 && queries.iter().all(|query| query == "{app=\"order-service\"}"), "{queries:?}");
    assert!(asked.iter().all(|one| one.method == "GET" && one.headers["x-scope-orgid"] == "shop"));

    let words = search(&setting, &QUERY.replace('}', ", \"keywords\": [\"a.b\\\"c\"]}"));
    assert_eq!(words["findings"][0]["type"], "nothing");
    let asked = server.asked();
    let last = asked.iter().rev().map(|one| parameter(one, "query")).find(|query| query.starts_with('{')).unwrap();
    assert_eq!(last, "{app=\"order-service\"} |~ \"(?i)a\\\\.b\\\"c\"");
}

/// A VictoriaLogs that is written by hand, in the shapes of answers of a real one: one event a second for half an hour.
fn victorialogs() -> Served {
    let start: Timestamp = "2026-03-04T06:15:00Z".parse().unwrap();
    let at = move |second: i64| start + jiff::SignedDuration::from_secs(second);
    Served::start(move |asked| {
        let parameter = |name: &str| parameter(asked, name);
        match asked.path() {
            "/select/logsql/field_names" => Reply::json(
                r#"{"values":[{"value":"_msg","hits":1800},{"value":"level","hits":1800},{"value":"pod","hits":1800},{"value":"service","hits":1800}]}"#,
            ),
            "/select/logsql/field_values" => {
                Reply::json(r#"{"values":[{"value":"order-service","hits":1800},{"value":"cart","hits":3}]}"#)
            }
            "/select/logsql/hits" => {
                let step: i64 = parameter("step").trim_end_matches('s').parse().unwrap();
                let starts: Vec<i64> = (0..1800).step_by(step as usize).collect();
                let times: Vec<String> = starts.iter().map(|second| at(*second).to_string()).collect();
                let counts: Vec<i64> = starts.iter().map(|second| step.min(1800 - second)).collect();
                let course = json!({"fields": {}, "timestamps": times, "values": counts, "total": 1800});
                Reply::json(json!({"hits": [course]}).to_string())
            }
            _ => {
                let (query, limit) = (parameter("query"), parameter("limit").parse().unwrap());
                let (from, rest) = query.trim_start_matches("_time:[").split_once(", ").unwrap();
                let (to, filters) = rest.split_once(']').unwrap();
                let (from, to): (Timestamp, Timestamp) = (from.parse().unwrap(), to.parse().unwrap());
                let is_wanted = |second: &i64| !filters.contains('~') && from <= at(*second) && at(*second) <= to;
                let lines = (0..1800).filter(is_wanted).take(limit).map(|second| {
                    let event = json!({
                        "_time": at(second).to_string(), "_stream_id": "00", "_stream": "{service=\"order-service\"}",
                        "_msg": format!("pool is empty, request {second}"), "level": "ERROR", "pod": "order-service-0",
                        "service": "order-service",
                    });
                    format!("{event}\n")
                });
                Reply::json(lines.collect::<String>())
            }
        }
    })
}

#[test]
fn victorialogs_is_read_part_by_part_and_a_limit_is_told() {
    let server = victorialogs();
    let table = format!("[sources.vl]\nkind = \"victorialogs\"\nurl = \"{}\"\n", server.url());
    let output = search(&Setting::with(&table), QUERY);
    assert_eq!(volume(&output)["events"], 1800, "{output}");
    assert_eq!(volume(&output)["levels"], json!({"error": 1800}));
    assert_eq!((&output["truncated"], &output["source"]), (&json!(false), &json!("vl")));
    let filter = r#""service":="order-service""#;
    let queries: Vec<String> = server.asked().iter().map(|asked| parameter(asked, "query")).collect();
    let parts: Vec<&String> = queries.iter().filter(|query| query.starts_with("_time:[")).collect();
    assert!(!parts.is_empty() && parts.iter().all(|query| query.contains(filter)), "{queries:?}");

    let limited = search(&Setting::with(&format!("{table}limit = 600\n")), QUERY);
    assert_eq!(limited["truncated"], true, "{limited}");
    assert!(limited["notes"][0].as_str().unwrap().contains("1800 events match; "), "{}", limited["notes"]);

    let words = search(&Setting::with(&table), &QUERY.replace('}', ", \"keywords\": [\"a.b\\\"c\"]}"));
    assert_eq!(words["findings"][0]["type"], "nothing");
    let last = server.asked().iter().map(|asked| parameter(asked, "query")).rfind(|query| query.contains('~')).unwrap();
    assert!(last.ends_with(r#""_msg":~"(?i)a\\.b\"c""#), "{last}");
}

#[test]
fn log_files_of_this_machine_are_read_with_their_rotated_parts() {
    let setting =
        Setting::with("[sources.host]\nkind = \"files\"\npaths = [\"logs/*/app.log\"]\ntimezone = \"Asia/Shanghai\"\n");
    let folder = setting.folder.path().join("logs/cart");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("app.log"), "2026-03-04 14:30:00 ERROR pool is empty\n").unwrap();
    std::fs::write(folder.join("app.log.1"), "2026-03-04 14:20:00 ERROR pool is empty\n").unwrap();
    std::fs::write(folder.join("other.log"), "2026-03-04 14:20:00 ERROR not asked\n").unwrap();
    let output = search(&setting, &QUERY.replace("order-service", "cart"));
    assert_eq!(volume(&output)["events"], 2, "{output}");
    assert_eq!(volume(&output)["first"], "2026-03-04T06:20:00Z");
}
