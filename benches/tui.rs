//! The terminal front end under load: a million events, then keys and frames while 10,000 events a second arrive.
//!
//! `cargo test --release --workspace --bench tui -- --nocapture` prints the figures; see benches/README.md.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use oncall::domain::{Call, Evidence, EvidenceKind, Finding, Lang, Served};
use oncall::event::{CallResult, Event, EventKind};
use oncall::ui::tui::{App, Kind, Msg, ThemeName, view};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const EVENTS: u64 = 1_000_000;
/// Events of one frame at 10,000 a second and 30 frames a second.
const PER_FRAME: u64 = 334;
const FRAMES: u64 = 300;

fn event(n: u64) -> Msg {
    let call_id = n / 5;
    let kind = match n % 5 {
        0 => EventKind::CallStarted {
            call_id,
            step: Some(1),
            server: "builtin".into(),
            call: Call {
                tool: "search_logs".into(),
                arguments: serde_json::json!({"service": "order-service", "n": n}),
            },
        },
        1 => EventKind::EvidenceFound {
            evidence: Box::new(Evidence {
                id: format!("E{}", n / 5 + 1),
                kind: EvidenceKind::Log,
                source: "files/logs search_logs(service=order-service)".into(),
                window: None,
                summary: format!("connection pool timeout {n} times 连接池超时"),
                data: Finding::Other { value: n.into() },
                stale_seconds: None,
            }),
        },
        2 => EventKind::Thought { step: Some(1), text: "the pool, then the database".into() },
        3 => EventKind::AnswerDelta { text: "the pool is exhausted ".into() },
        _ => EventKind::CallEnded {
            call_id,
            milliseconds: 12,
            attempts: 1,
            result: CallResult::Output {
                source: "files/logs".into(),
                findings: 3,
                truncated: false,
                served: Served::Live,
                preview: "x".repeat(500),
                bytes: 4000,
                retrieval: None,
            },
        },
    };
    Msg::Event(Box::new(Event { seq: n, at: Timestamp::from_microsecond(n as i64 * 100).unwrap(), kind }))
}

fn app() -> App {
    let zone = TimeZone::UTC;
    App::new(Kind::Diagnosis, Lang::En, zone, ThemeName::Dark, (120, 40), Timestamp::UNIX_EPOCH)
}

/// Resident memory in MiB, where the system tells it.
fn memory() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0.0);
    pages * 4096.0 / f64::from(1 << 20)
}

#[test]
fn a_million_events() {
    let mut app = app();
    let mut memories = Vec::new();
    let started = Instant::now();
    for n in 0..EVENTS {
        app.reduce(event(n));
        if n % (EVENTS / 10) == EVENTS / 10 - 1 {
            memories.push(format!("{:.0}", memory()));
        }
    }
    let rate = EVENTS as f64 / started.elapsed().as_secs_f64();
    println!("reducer: {rate:.0} events/s; memory in MiB after each tenth of a million: {}", memories.join(" "));
    assert_eq!(app.run.events, EVENTS);
}

#[test]
fn keys_and_frames_while_events_arrive() {
    let mut app = app();
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let (mut keys, mut frames): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for frame in 0..FRAMES {
        (frame * PER_FRAME..(frame + 1) * PER_FRAME).for_each(|n| drop(app.reduce(event(n))));
        let key = ['1', '2', '3', '4', '5', '6', 'j', 'k', 'G', 'g'][frame as usize % 10];
        let started = Instant::now();
        app.reduce(Msg::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE)));
        keys.push(started.elapsed());
        let started = Instant::now();
        terminal.draw(|drawn| view::draw(drawn, &app)).unwrap();
        frames.push(started.elapsed());
    }
    for (what, times) in [("a key is reduced", &mut keys), ("a frame is drawn", &mut frames)] {
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
        println!("{what} in {:.2} ms (median), {:.2} ms (99 %), {:.2} ms (longest)", at(0.5), at(0.99), at(1.0));
    }
}
