//! Every screen and state in three sizes, English and Chinese, with colours and without.

use std::fmt::Write as _;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Style};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::control::Control;
use crate::domain::{Category, Diagnosis, Evidence, HypothesisKey, Lang, Usage};
use crate::event::{Event, EventKind};
use crate::ui::tui::state::{Menu, MenuItem, Msg, Pick, Playback, Who};
use crate::ui::tui::theme::{Theme, ThemeName};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (60, 15)];

fn at(milliseconds: i64) -> Timestamp {
    "2026-03-04T06:33:00Z".parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_millis(milliseconds)
}

fn event(milliseconds: i64, kind: EventKind) -> Msg {
    Msg::Event(Box::new(Event { seq: 0, at: at(milliseconds), kind }))
}

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn alert() -> Value {
    json!({
        "name": "HighErrorRate", "service": "order-service", "severity": "critical", "status": "firing",
        "labels": {"alertname": "HighErrorRate", "service": "order-service"}, "annotations": {},
        "starts_at": "2026-03-04T06:30:00Z", "ends_at": null, "fingerprint": "f"
    })
}

fn facts(lang: Lang) -> Value {
    json!({
        "service": "order-service", "instance": null, "namespace": null, "pod": null, "node": null, "metric": null,
        "threshold": 5.0, "value": 23.0, "unit": "%", "symptom": "errors", "fired_at": "2026-03-04T06:30:00Z",
        "window": {"start": "2026-03-04T06:00:00Z", "end": "2026-03-04T06:33:00Z"}, "now": "2026-03-04T06:33:00Z",
        "runbook_url": null, "related": [], "lang": lang
    })
}

fn plan(lang: Lang, worked: bool) -> Value {
    let (state, conclusion) =
        if worked { ("done", json!("db_pool_active holds at 20 of 20 [E2]")) } else { ("pending", Value::Null) };
    let questions = lang.pick(
        [
            "Which errors does order-service log, and since when?",
            "Is the database itself slow or down?",
            "Was something deployed before 14:30?",
        ],
        ["order-service 记录了哪些错误，从何时开始？", "数据库本身是否变慢或不可用？", "14:30 之前是否有发布？"],
    );
    let steps: Vec<Value> = (1..=3)
        .map(|id| {
            json!({
                "id": id, "question": questions[id - 1], "reason": "runbook: high error rate",
                "calls": [{"tool": "search_logs", "arguments": {"service": "order-service"}}],
                "state": state, "conclusion": conclusion, "evidence": if worked { json!(["E1"]) } else { json!([]) }
            })
        })
        .collect();
    json!({"steps": steps, "revisions": []})
}

fn evidence(lang: Lang) -> Vec<Evidence> {
    let points: Vec<(i64, f64)> =
        (0..60).map(|n| (1_772_604_000 + n * 33, if n < 35 { 6.0 + (n % 3) as f64 } else { 20.0 })).collect();
    let pattern = json!({
        "type": "pattern", "id": "P1", "level": "error", "service": "order-service", "count": 1204, "before": 0,
        "first": "2026-03-04T06:23:02Z", "last": "2026-03-04T06:32:58Z",
        "template": "HikariPool-1 - Connection is not available, request timed out after <*>ms",
        "sample": "HikariPool-1 - Connection is not available, request timed out after 3000ms",
        "histogram": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,12,40,80,120,200,260,300,192],
        "instances": {"order-service-7d9f8b6c5d-x2x4q": 700, "order-service-7d9f8b6c5d-k8s2m": 504}
    });
    let series = json!({
        "type": "series", "expr": "db_pool_active", "labels": {"service": "order-service"}, "baseline": 7.0, "peak": 20.0,
        "peak_at": "2026-03-04T06:23:00Z", "now": 20.0, "shape": "saturated", "onset": "2026-03-04T06:19:00Z",
        "change_points": [{"at": "2026-03-04T06:19:15Z", "before": 7.0, "after": 20.0}], "score": 9.1, "samples": 60,
        "points": points
    });
    let said = lang.pick(
        [
            "\"Connection is not available, request timed out\" 1,204 times from 14:23:02, 0 before",
            "db_pool_active rose from 7 to 20 at 14:19 and holds there",
            "postgres is ready, 1 of 1",
        ],
        [
            "“Connection is not available, request timed out” 自 14:23:02 起 1,204 次，此前 0 次",
            "db_pool_active 于 14:19 从 7 升至 20 并保持",
            "postgres 就绪 1/1",
        ],
    );
    let make = |n: usize, kind: &str, source: &str, data: Value| -> Evidence {
        of(json!({
            "id": format!("E{n}"), "kind": kind, "source": source,
            "window": {"start": "2026-03-04T06:00:00Z", "end": "2026-03-04T06:33:00Z"}, "summary": said[n - 1], "data": data
        }))
    };
    vec![
        make(1, "log", "files/logs search_logs(service=order-service)", pattern),
        make(2, "metric", "files/metrics query_metrics(query=db_pool_active)", series),
        make(
            3,
            "status",
            "files/status workload_status(service=postgres)",
            json!({"type": "nothing", "what": "restarts"}),
        ),
    ]
}

fn hypotheses(lang: Lang) -> Value {
    let title = lang.pick(
        [
            "Database connection pool exhausted: order-service",
            "Database unavailable: postgres",
            "Crash loop: order-service",
        ],
        ["order-service：数据库连接池耗尽", "postgres：数据库不可用", "order-service：反复崩溃重启"],
    );
    let one = |n: usize, category: &str, confidence: f64, verdict: &str, yes: &[&str], no: &[&str]| {
        json!({
            "title": title[n], "category": category, "service": "order-service", "evidence_for": yes,
            "evidence_against": no, "confidence": confidence, "verdict": verdict,
            "rationale": "All 20 connections are in use [E2] while requests wait for one [E1]."
        })
    };
    json!([
        one(0, "db_connection_pool_exhausted", 0.92, "supported", &["E1", "E2"], &[]),
        one(1, "db_unavailable", 0.2, "possible", &["E1"], &["E3"]),
        one(2, "crash_loop", 0.03, "refuted", &[], &["E3"]),
    ])
}

fn diagnosis(lang: Lang) -> Diagnosis {
    let summary = lang.pick(
        "All connections of order-service's pool are in use since 14:19 [E2]; requests wait 3 s and give up [E1].",
        "order-service 的连接池自 14:19 起全部占用 [E2]，请求等待 3 秒后失败 [E1]。",
    );
    of(json!({
        "schema": "oncall.diagnosis/v1", "session_id": "01964f3a-7d1e", "status": "complete", "reasoner": "rules",
        "model": null, "alert": alert(), "related_alerts": [], "facts": facts(lang), "summary": summary,
        "root_cause": {
            "title": hypotheses(lang)[0]["title"], "service": "order-service",
            "category": "db_connection_pool_exhausted", "confidence": 0.92, "evidence": ["E1", "E2"]
        },
        "hypotheses": hypotheses(lang), "evidence": evidence(lang),
        "next_steps": [{
            "text": lang.pick("Find what holds the connections", "找出占用连接的会话"),
            "command": "psql -c \"select * from pg_stat_activity where state = 'idle in transaction'\"", "source": "[1]"
        }],
        "references": [{"n": 1, "title": "Connection pools", "source": "db/pools.md", "heading": "Exhausted"}],
        "sources": [{"name": "files/logs", "status": "ok", "detail": "3 questions"}], "unchecked": [],
        "plan": plan(lang, true), "usage": {"input_tokens": 0, "output_tokens": 0, "calls": 0}, "timings": []
    }))
}

fn started(id: u64, step: Option<u32>, tool: &str, arguments: Value) -> EventKind {
    EventKind::CallStarted {
        call_id: id,
        step,
        server: "builtin".into(),
        call: of(json!({"tool": tool, "arguments": arguments})),
    }
}

fn ended(id: u64, milliseconds: u64, result: Value) -> EventKind {
    EventKind::CallEnded { call_id: id, milliseconds, attempts: 1, result: of(result) }
}

fn output(source: &str) -> Value {
    json!({
        "status": "output", "source": source, "findings": 3, "truncated": false, "served": "live",
        "preview": "[{\"type\":\"pattern\",\"id\":\"P1\",\"count\":1204}]", "bytes": 2048
    })
}

fn events(lang: Lang) -> Vec<Msg> {
    let node = |node: &str| EventKind::NodeStarted { node: node.into() };
    let done = |node: &str, milliseconds| EventKind::NodeEnded { node: node.into(), milliseconds };
    let found = evidence(lang).into_iter().map(|one| EventKind::EvidenceFound { evidence: Box::new(one) });
    let [log, metric, status]: [EventKind; 3] = found.collect::<Vec<_>>().try_into().unwrap();
    let refused = json!({"status": "failure", "kind": "timeout", "message": "no answer within 10 s"});
    vec![
        event(0, EventKind::RunStarted { session_id: "01964f3a-7d1e".into(), alert: of(alert()) }),
        event(1, node("analyze_alert")),
        event(4, done("analyze_alert", 3)),
        event(4, EventKind::FactsFound { facts: of(facts(lang)) }),
        event(5, node("parallel_query")),
        event(5, node("retrieve_knowledge")),
        event(6, started(1, None, "search_logs", json!({"service": "order-service"}))),
        event(6, started(2, None, "query_metrics", json!({"query": "db_pool_active"}))),
        event(6, started(3, None, "retrieve_knowledge", json!({"query": "HighErrorRate"}))),
        event(320, ended(2, 314, output("files/metrics"))),
        event(480, ended(3, 474, output("knowledge"))),
        event(481, done("retrieve_knowledge", 476)),
        event(900, ended(1, 894, output("files/logs"))),
        event(901, done("parallel_query", 896)),
        event(902, log),
        event(902, metric),
        event(903, node("plan")),
        event(905, EventKind::PlanMade { plan: of(plan(lang, false)) }),
        event(905, done("plan", 2)),
        event(906, node("execute")),
        event(
            906,
            EventKind::StepStarted {
                step: 1,
                question: plan(lang, false)["steps"][0]["question"].as_str().unwrap().into(),
            },
        ),
        event(910, EventKind::Thought { step: Some(1), text: "the logs first".into() }),
        event(911, started(4, Some(1), "search_logs", json!({"service": "order-service", "level": "error"}))),
        event(1411, ended(4, 500, output("files/logs"))),
        event(1500, EventKind::StepEnded { step: 1, conclusion: "connections run out [E1]".into() }),
        event(1501, done("execute", 595)),
        event(1502, node("execute")),
        event(
            1502,
            EventKind::StepStarted {
                step: 2,
                question: plan(lang, false)["steps"][1]["question"].as_str().unwrap().into(),
            },
        ),
        event(1503, started(5, Some(2), "workload_status", json!({"service": "postgres"}))),
        event(1504, started(6, Some(2), "query_metrics", json!({"query": "pg_stat_activity_count{state=\"active\"}"}))),
        event(1700, ended(5, 197, refused)),
        event(1701, status),
        event(1702, EventKind::HypothesesRanked { hypotheses: of(hypotheses(lang)) }),
        event(
            1703,
            EventKind::ModelUsed {
                node: "execute".into(),
                model: "m".into(),
                milliseconds: 9,
                usage: Usage {
                    input_tokens: 1200,
                    output_tokens: 34,
                    calls: 1,
                    cost: Some(0.0123),
                    ..Usage::default()
                },
            },
        ),
    ]
}

fn finished(lang: Lang) -> Vec<Msg> {
    let mut messages = events(lang);
    messages.push(event(
        3000,
        EventKind::RunEnded { status: RunStatus::Complete, diagnosis: Some(Box::new(diagnosis(lang))) },
    ));
    messages
}

fn keys(app: &mut App, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        app.reduce(Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }
}

struct Screen {
    name: &'static str,
    kind: Kind,
    messages: fn(Lang) -> Vec<Msg>,
    keys: &'static str,
}

fn screens() -> Vec<Screen> {
    let diagnosis = |name, messages, keys| Screen { name, kind: Kind::Diagnosis, messages, keys };
    let session = |name, messages, keys| Screen { name, kind: Kind::Session, messages, keys };
    let asked = |lang: Lang| {
        let mut messages = vec![Msg::Began { title: "why?".into(), at: at(0) }];
        messages.extend(events(lang).into_iter().skip(4));
        messages.push(event(1900, EventKind::AnswerDelta { text: "## Pool\n\nThe pool is **exhausted** [E2]".into() }));
        messages
    };
    let answered = |lang: Lang| {
        let mut messages = vec![Msg::Began { title: "why?".into(), at: at(0) }];
        messages.extend(events(lang).into_iter().skip(4));
        messages.push(event(2000, EventKind::RunEnded { status: RunStatus::Complete, diagnosis: None }));
        messages.push(Msg::Answered { text: lang.pick(
            "The pool is **exhausted** since 14:19 [E2]:\n\n1. an export holds connections\n2. requests wait [E1]\n\n| pool | used |\n|---|---:|\n| order-service | 20 |\n\n```sql\nselect 1;\n```\n",
            "连接池自 14:19 起**耗尽** [E2]：\n\n1. 导出任务占用连接\n2. 请求等待 [E1]\n\n| 连接池 | 已用 |\n|---|---:|\n| order-service | 20 |\n\n```sql\nselect 1;\n```\n",
        ).into() });
        messages
    };
    let opened = |_: Lang| {
        vec![Msg::Opened {
            title: "Disk".into(),
            said: vec![(Who::User, "what fills the disk?".into(), at(0)), (Who::Assistant, "Logs do.".into(), at(1))],
        }]
    };
    let approval = |lang: Lang| {
        let mut messages = events(lang);
        messages.push(event(1800, EventKind::ApprovalRequested { request: 7, server: "k8s".into(), call: of(json!({"tool": "restart_deployment", "arguments": {"namespace": "prod", "name": "order-service", "reason": "连接池耗尽"}})) }));
        messages
    };
    let steered = |lang: Lang| {
        let mut messages = events(lang);
        let hypothesis = HypothesisKey { category: Category::DbUnavailable, service: Some("order-service".into()) };
        messages.push(event(1801, EventKind::Steered { control: Control::DismissHypothesis { hypothesis } }));
        messages.push(event(1802, EventKind::Steered { control: Control::SkipStep { step: 3 } }));
        messages
    };
    let menu = |_: Lang| {
        vec![Msg::Choose(Menu {
            title: "2 alerts".into(),
            cursor: 1,
            items: ["HighErrorRate  order-service", "磁盘将满  订单库"]
                .map(|label| MenuItem { label: label.into(), pick: Pick::Model("x".into()) })
                .to_vec(),
        })]
    };
    let played = |lang: Lang| {
        let mut messages = events(lang);
        messages.push(Msg::Played(Playback { speed: 4.0, paused: true, played: 12, total: 40 }));
        messages
    };
    let read = |_: Lang| {
        vec![Msg::Read { title: "log".into(), lines: (0..100_000).map(|n| format!("line {n} 日志")).collect() }]
    };
    vec![
        diagnosis("plan", events, "1\n"),
        diagnosis("calls", events, "2gjjj\n"),
        diagnosis("evidence", events, "3j"),
        diagnosis("timeline", events, "4"),
        diagnosis("timeline_zoomed", events, "4++ll"),
        diagnosis("hypotheses", steered, "5\n"),
        diagnosis("report", finished, ""),
        diagnosis("report_unready", events, "6"),
        diagnosis("evidence_pattern", events, "3g\n"),
        diagnosis("evidence_series", events, "3j\n"),
        diagnosis("call_in_full", events, "2g\nG"),
        diagnosis("help", events, "?"),
        diagnosis("search", events, "3/pool\n"),
        diagnosis("fact", events, "frolled back at 14:40 回滚"),
        diagnosis("approval", approval, ""),
        diagnosis("playback", played, "4"),
        diagnosis("raw_output", read, "G"),
        session("session_empty", |_| Vec::new(), ""),
        session("session_opened", opened, ""),
        session("session_completion", |_| Vec::new(), "/s"),
        session("session_asked", asked, ""),
        session("session_answered", answered, ""),
        session("session_menu", menu, ""),
        session("session_typing", answered, "第一行 and more"),
    ]
}

fn app_of(screen: &Screen, lang: Lang, theme: ThemeName, size: (u16, u16)) -> App {
    let zone = TimeZone::fixed(jiff::tz::offset(8));
    let mut app = App::new(screen.kind, lang, zone, theme, size, at(0));
    for msg in (screen.messages)(lang) {
        app.reduce(msg);
    }
    app.reduce(Msg::Tick(at(2500)));
    keys(&mut app, screen.keys);
    app
}

fn drawn(app: &App) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(app.size.0, app.size.1)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    terminal.backend().buffer().clone()
}

/// The rows as text: what a wide character covers is left out.
fn text_rows(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    (0..area.height)
        .map(|y| {
            let mut row = String::new();
            let mut x = 0;
            while x < area.width {
                let symbol = buffer[(x, y)].symbol();
                row.push_str(symbol);
                x += (symbol.width() as u16).max(1);
            }
            row.trim_end().to_owned()
        })
        .collect()
}

#[test]
fn every_screen_in_three_sizes_and_two_languages() {
    for screen in screens() {
        let mut all = String::new();
        for size in SIZES {
            for lang in [Lang::En, Lang::Zh] {
                let buffer = drawn(&app_of(&screen, lang, ThemeName::None, size));
                let _ = writeln!(all, "--- {}x{} {lang:?}", size.0, size.1);
                text_rows(&buffer).iter().for_each(|row| all.push_str(&format!("{row}\n")));
            }
        }
        insta::assert_snapshot!(screen.name, all);
    }
}

/// Runs of equal style as `columns style`, where a style says something.
fn style_rows(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut out = String::new();
    for (y, text) in text_rows(buffer).iter().enumerate() {
        let _ = writeln!(out, "{text}");
        let mut x = 0;
        while x < area.width {
            let cell = &buffer[(x, y as u16)];
            let (from, style) = (x, cell.style());
            while x < area.width && buffer[(x, y as u16)].style() == style {
                x += 1;
            }
            let name =
                |color: Option<Color>| color.filter(|c| *c != Color::Reset).map_or("-".to_owned(), |c| c.to_string());
            let style = Style { underline_color: None, ..style };
            let said = format!("{}/{} {:?}", name(style.fg), name(style.bg), style.add_modifier);
            if said != "-/- NONE" {
                let _ = writeln!(out, "    {from}-{} {said}", x - 1);
            }
        }
    }
    out
}

#[test]
fn colours_tell_what_matters() {
    for (theme, name) in
        [(ThemeName::Dark, "dark"), (ThemeName::Light, "light"), (ThemeName::Sixteen, "16"), (ThemeName::None, "none")]
    {
        let mut all = String::new();
        for screen in screens()
            .iter()
            .filter(|screen| ["evidence_series", "hypotheses", "session_answered"].contains(&screen.name))
        {
            let _ = writeln!(all, "--- {}", screen.name);
            all.push_str(&style_rows(&drawn(&app_of(screen, Lang::En, theme, (80, 24)))));
        }
        insta::assert_snapshot!(format!("colours_{name}"), all);
    }
}

#[test]
fn without_colours_no_cell_has_one() {
    for screen in screens() {
        let buffer = drawn(&app_of(&screen, Lang::En, ThemeName::None, (80, 24)));
        let is_plain = |color: Color| color == Color::Reset;
        assert!(buffer.content.iter().all(|cell| is_plain(cell.fg) && is_plain(cell.bg)), "{}", screen.name);
    }
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    for size in [(59, 15), (60, 14), (20, 3), (1, 1)] {
        for screen in screens() {
            let rows = text_rows(&drawn(&app_of(&screen, Lang::En, ThemeName::Dark, size)));
            let first: String =
                format!("This screen is {}x{}", size.0, size.1).chars().take(usize::from(size.0)).collect();
            assert!(rows[0].starts_with(first.trim_end()) || size.0 < 20, "{rows:?}");
        }
    }
}

#[test]
fn the_live_view_in_three_sizes_and_two_languages() {
    let mut all = String::new();
    for size in SIZES {
        for lang in [Lang::En, Lang::Zh] {
            let screen = Screen { name: "live", kind: Kind::Diagnosis, messages: events, keys: "" };
            let app = app_of(&screen, lang, ThemeName::None, size);
            let lines = live::lines(&app);
            assert!(lines.iter().all(|line| line.width() < usize::from(size.0)), "{size:?} {lang:?}");
            assert!(lines.len() <= usize::from(size.1) - 2);
            let _ = writeln!(all, "--- {}x{} {lang:?}", size.0, size.1);
            lines.iter().for_each(|line| all.push_str(&format!("{}\n", text::plain(line).trim_end())));
        }
    }
    insta::assert_snapshot!("live", all);
}

#[test]
fn the_report_in_the_scrollback_has_colours_only_where_there_are_some() {
    let report = crate::ui::report::markdown(&diagnosis(Lang::En), &TimeZone::UTC);
    let shown = |theme| {
        let lines = crate::ui::tui::markdown::render(&report, 78, &Theme::of(theme));
        lines.iter().map(|told| crate::ui::tui::ansi::line(&told.line)).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("scrollback_16", shown(ThemeName::Sixteen).replace('\u{1b}', "ESC"));
    let none = shown(ThemeName::None)
        .replace("\u{1b}[1m", "")
        .replace("\u{1b}[1;4m", "")
        .replace("\u{1b}[4m", "")
        .replace("\u{1b}[0m", "");
    assert!(!none.contains('\u{1b}'), "{none}");
}
