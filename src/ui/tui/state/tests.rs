//! The reducer under any order of events and keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::run::{KEPT_CALLS, KEPT_EVIDENCE, KEPT_NOTES, Phase};
use super::*;
use crate::control::Approval;
use crate::domain::{
    Call, Category, Evidence, EvidenceKind, FailureKind, Finding, Hypothesis, Plan, RunStatus, Served, Step, StepState,
    Usage, Verdict,
};
use crate::event::CallResult;
use crate::ui::tui::{rows, view};

fn app(kind: Kind) -> App {
    App::new(kind, Lang::En, TimeZone::UTC, ThemeName::Dark, (100, 30), Timestamp::UNIX_EPOCH)
}

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_772_600_000_000 + milliseconds).unwrap()
}

fn event(seq: u64, kind: EventKind) -> Msg {
    Msg::Event(Box::new(Event { seq, at: at(seq as i64), kind }))
}

fn call(tool: &str) -> Call {
    Call { tool: tool.to_owned(), arguments: json!({"service": "订单-service"}) }
}

fn evidence(n: u64) -> Evidence {
    Evidence {
        id: format!("E{n}"),
        kind: EvidenceKind::Other,
        source: "s query(x=1)".into(),
        window: None,
        summary: format!("finding {n} 发现"),
        data: Finding::Other { value: json!({"n": n}) },
        stale_seconds: None,
    }
}

fn hypothesis() -> Hypothesis {
    Hypothesis {
        title: "Killed for lack of memory".into(),
        category: Category::OomKilled,
        service: Some("cart".into()),
        evidence_for: vec!["E1".into()],
        evidence_against: vec!["E2".into()],
        confidence: 0.7,
        verdict: Verdict::Possible,
        rationale: "It shows in [E1].".into(),
    }
}

fn plan(n: u32) -> Plan {
    let step = |id| Step {
        id,
        question: format!("question {id}?"),
        reason: "because".into(),
        calls: vec![call("search_logs")],
        state: StepState::Pending,
        conclusion: None,
        evidence: vec!["E1".into()],
    };
    Plan { steps: (1..=n).map(step).collect(), revisions: vec!["it changed".into()] }
}

fn result(ok: bool) -> CallResult {
    match ok {
        true => CallResult::Output {
            source: "files".into(),
            findings: 2,
            truncated: true,
            served: Served::Stale { age_seconds: 3 },
            preview: "{\"a\": 1}".into(),
            bytes: 8,
            retrieval: None,
        },
        false => CallResult::Failure { kind: FailureKind::Timeout, message: "too\u{1b}[31m slow".into() },
    }
}

/// Any event, about few things, so that they meet.
fn any_event() -> impl Strategy<Value = EventKind> {
    let id = || 0u64..6;
    let step = || 0u32..4;
    let text = || prop::sample::select(vec!["", "a", "连接池耗尽 [E1]", "x\u{1b}]52;c;AAAA\u{7}y\n# z", "E1 [E2]"]);
    let node = prop::sample::select(vec!["plan", "execute", "parallel_query", "retrieve_knowledge", "x"]);
    let control = prop_oneof![
        Just(Control::Stop),
        id().prop_map(|call_id| Control::CancelCall { call_id }),
        step().prop_map(|step| Control::SkipStep { step }),
        Just(Control::PinHypothesis { hypothesis: hypothesis().key() }),
        Just(Control::DismissHypothesis { hypothesis: hypothesis().key() }),
        Just(Control::ReleaseHypothesis { hypothesis: hypothesis().key() }),
        text().prop_map(|text| Control::AddFact { text: text.into() }),
    ];
    let status = prop::sample::select(vec![RunStatus::Complete, RunStatus::Incomplete, RunStatus::Cancelled]);
    prop_oneof![
        node.clone().prop_map(|node| EventKind::NodeStarted { node: node.into() }),
        (node, 0u64..5000).prop_map(|(node, milliseconds)| EventKind::NodeEnded { node: node.into(), milliseconds }),
        step().prop_map(|n| EventKind::PlanMade { plan: plan(n) }),
        (step(), text()).prop_map(|(n, reason)| EventKind::PlanRevised { plan: plan(n), reason: reason.into() }),
        (step(), text()).prop_map(|(step, text)| EventKind::StepStarted { step, question: text.into() }),
        (step(), text()).prop_map(|(step, text)| EventKind::StepEnded { step, conclusion: text.into() }),
        (prop::option::of(step()), text()).prop_map(|(step, text)| EventKind::Thought { step, text: text.into() }),
        (id(), prop::option::of(step())).prop_map(|(call_id, step)| EventKind::CallStarted {
            call_id,
            step,
            server: "builtin".into(),
            call: call("search_logs")
        }),
        (id(), 0u64..5000, any::<bool>()).prop_map(|(call_id, milliseconds, ok)| EventKind::CallEnded {
            call_id,
            milliseconds,
            attempts: 2,
            result: result(ok)
        }),
        text().prop_map(|text| EventKind::ToolClosed { tool: text.into(), failures: 3 }),
        (0u64..9).prop_map(|n| EventKind::EvidenceFound { evidence: Box::new(evidence(n)) }),
        Just(EventKind::ModelUsed {
            node: "plan".into(),
            model: "m".into(),
            milliseconds: 1,
            usage: Usage { input_tokens: 10, cost: Some(0.1), ..Usage::default() }
        }),
        text().prop_map(|text| EventKind::AnswerDelta { text: text.into() }),
        (0usize..3).prop_map(|n| EventKind::HypothesesRanked { hypotheses: vec![hypothesis(); n] }),
        id().prop_map(|request| EventKind::ApprovalRequested { request, server: "m".into(), call: call("delete") }),
        id().prop_map(|request| EventKind::ApprovalAnswered { request, approval: Approval::Once }),
        control.prop_map(|control| EventKind::Steered { control }),
        text().prop_map(|text| EventKind::Warning { message: text.into() }),
        status.prop_map(|status| EventKind::RunEnded { status, diagnosis: None }),
    ]
}

fn any_msg() -> impl Strategy<Value = Msg> {
    let plain =
        prop::sample::select("jkhlgGnN/yxspdftm+-[]iq?1234567 az/".chars().map(KeyCode::Char).collect::<Vec<_>>());
    let special = prop::sample::select(vec![
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::F(1),
        KeyCode::Char('订'),
    ]);
    let modifiers = prop::sample::select(vec![KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::ALT]);
    let mouse = prop::sample::select(vec![
        MouseEventKind::ScrollDown,
        MouseEventKind::ScrollUp,
        MouseEventKind::Down(MouseButton::Left),
    ]);
    prop_oneof![
        6 => any_event().prop_map(|kind| event(1, kind)),
        3 => plain.prop_map(|code| Msg::Key(KeyEvent::new(code, KeyModifiers::NONE))),
        3 => (special, modifiers).prop_map(|(code, modifiers)| Msg::Key(KeyEvent::new(code, modifiers))),
        1 => (mouse, 0u16..120, 0u16..50).prop_map(|(kind, column, row)| {
            Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
        }),
        1 => (1u16..200, 1u16..60).prop_map(|(columns, rows)| Msg::Resize(columns, rows)),
        1 => prop::sample::select(vec!["/evidence E1\n", "a\r\nb", "/lang zh"]).prop_map(|text| Msg::Paste(text.into())),
        1 => Just(Msg::Answered { text: "It is [E1] and [E2, E3].".into() }),
        1 => Just(Msg::Failed("broken".into())),
        1 => Just(Msg::Refused("there is none".into())),
        1 => Just(Msg::Tick(at(50_000))),
        1 => Just(Msg::Began { title: "next".into(), at: at(60_000) }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_events_and_keys_is_drawn_and_loses_no_line(
        kind in prop::sample::select(vec![Kind::Diagnosis, Kind::Session]),
        messages in prop::collection::vec(any_msg(), 1..60),
    ) {
        let mut app = app(kind);
        for msg in messages {
            let said = match &msg {
                Msg::Event(event) => matches!(event.kind, EventKind::Thought { .. } | EventKind::Warning { .. } | EventKind::ToolClosed { .. }),
                _ => false,
            };
            let (began, lines) = (matches!(msg, Msg::Began { .. }), app.run.lines());
            app.reduce(msg);
            prop_assert!(began || app.run.lines() >= lines + u64::from(said));
            let mut terminal = Terminal::new(TestBackend::new(app.size.0, app.size.1)).unwrap();
            terminal.draw(|frame| view::draw(frame, &app)).unwrap();
            view::live::lines(&app);
            for panel in Panel::ALL {
                let rows = rows::of(&app, panel);
                prop_assert!(app.cursor(panel, rows.len()) < rows.len());
            }
        }
    }
}

#[test]
fn memory_stays_bounded_and_what_was_let_go_is_counted() {
    let mut app = app(Kind::Diagnosis);
    let total = 20_000u64;
    for n in 0..total {
        app.reduce(event(n, EventKind::CallStarted { call_id: n, step: None, server: "s".into(), call: call("t") }));
        app.reduce(event(n, EventKind::EvidenceFound { evidence: Box::new(evidence(n)) }));
        app.reduce(event(n, EventKind::Thought { step: None, text: "t".into() }));
        app.reduce(event(n, EventKind::AnswerDelta { text: "some words ".into() }));
        app.reduce(event(n, EventKind::StepStarted { step: n as u32, question: "q".into() }));
    }
    let run = &app.run;
    assert_eq!((run.calls.len(), run.calls.dropped), (KEPT_CALLS, total - KEPT_CALLS as u64));
    assert_eq!((run.evidence.len(), run.evidence.dropped), (KEPT_EVIDENCE, total - KEPT_EVIDENCE as u64));
    assert_eq!((run.notes.len(), run.lines()), (KEPT_NOTES, total));
    assert!(run.plan.steps.len() <= 500 && run.answer.len() <= 60_000);
    app.show(Panel::Calls);
    app.reduce(Msg::Key(KeyEvent::new(KeyCode::Char('g'), KeyModifiers::NONE)));
    let effects = app.reduce(Msg::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)));
    assert_eq!(effects, [Effect::ReadBack]);
}

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let key = |c: char| match c {
        '\n' => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
        '\u{1b}' => KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
        '\u{3}' => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
        '\t' => KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE),
        c => KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE),
    };
    keys.chars().flat_map(|c| app.reduce(Msg::Key(key(c)))).collect()
}

fn running() -> App {
    let mut app = app(Kind::Diagnosis);
    app.reduce(event(0, EventKind::NodeStarted { node: "execute".into() }));
    app.reduce(event(1, EventKind::PlanMade { plan: plan(3) }));
    app.reduce(event(2, EventKind::StepStarted { step: 1, question: "question 1?".into() }));
    let started =
        EventKind::CallStarted { call_id: 7, step: Some(1), server: "builtin".into(), call: call("search_logs") };
    app.reduce(event(3, started));
    app.reduce(event(4, EventKind::EvidenceFound { evidence: Box::new(evidence(1)) }));
    app.reduce(event(5, EventKind::HypothesesRanked { hypotheses: vec![hypothesis()] }));
    app
}

#[test]
fn a_run_is_steered_by_keys_on_what_the_cursor_is_on() {
    let mut app = running();
    // Panels of a diagnosis: 1 plan, 2 calls, 3 evidence, 4 timeline, 5 hypotheses.
    assert_eq!(press(&mut app, "2x"), [Effect::Control(Control::CancelCall { call_id: 7 })]);
    assert_eq!(press(&mut app, "1js"), [Effect::Control(Control::SkipStep { step: 2 })]);
    let hypothesis = hypothesis().key();
    assert_eq!(press(&mut app, "5d"), [Effect::Control(Control::DismissHypothesis { hypothesis: hypothesis.clone() })]);
    app.reduce(event(6, EventKind::Steered { control: Control::DismissHypothesis { hypothesis: hypothesis.clone() } }));
    assert_eq!(press(&mut app, "d"), [Effect::Control(Control::ReleaseHypothesis { hypothesis })]);
    assert_eq!(press(&mut app, "frolled back\n"), [Effect::Control(Control::AddFact { text: "rolled back".into() })]);
    assert_eq!(press(&mut app, "\u{1b}"), [Effect::Control(Control::Stop)]);
}

#[test]
fn q_leaves_only_when_the_run_has_ended_and_ctrl_c_twice_at_any_time() {
    let mut app = running();
    assert_eq!(press(&mut app, "q"), []);
    assert!(app.notice.as_deref().is_some_and(|notice| notice.contains("still running")));
    assert_eq!(press(&mut app, "\u{3}j\u{3}"), [Effect::Control(Control::Stop), Effect::Control(Control::Stop)]);
    assert_eq!(press(&mut app, "\u{3}"), [Effect::Leave]);
    app.reduce(event(9, EventKind::RunEnded { status: RunStatus::Cancelled, diagnosis: None }));
    assert_eq!(app.run.phase, Phase::Ended(RunStatus::Cancelled));
    assert_eq!(press(&mut app, "q"), [Effect::Quit]);
}

#[test]
fn a_request_for_approval_takes_the_keys_and_its_default_is_no() {
    let mut app = running();
    for request in [8, 9] {
        app.reduce(event(8, EventKind::ApprovalRequested { request, server: "m".into(), call: call("delete") }));
    }
    assert_eq!(press(&mut app, "qjx"), []);
    let answer = |request, approval| [Effect::Control(Control::AnswerApproval { request, approval })];
    assert_eq!(press(&mut app, "\n"), answer(8, Approval::Deny));
    assert_eq!(press(&mut app, "y"), answer(9, Approval::Once));
    assert_eq!(
        press(&mut app, "y"),
        [Effect::Copy(
            "E1 finding 1 发现\ns query(x=1)\n{\n  \"type\": \"other\",\n  \"value\": {\n    \"n\": 1\n  }\n}\n".into()
        )]
    );
}

#[test]
fn questions_and_commands_are_entered_and_mistakes_stay_to_be_mended() {
    let mut app = app(Kind::Session);
    assert_eq!(press(&mut app, "why?\n"), [Effect::Ask("why?".into())]);
    assert_eq!(press(&mut app, "/diag\tx.json\n"), [Effect::Command(slash::Command::Diagnose("x.json".into()))]);
    assert_eq!(press(&mut app, "/nothing\n"), []);
    assert_eq!(app.input.text(), "/nothing");
    app.input.clear();
    assert_eq!(press(&mut app, "/quit\n"), [Effect::Quit]);
}

#[test]
fn a_citation_opens_its_evidence_also_after_its_run_is_gone() {
    let mut app = app(Kind::Session);
    app.reduce(event(1, EventKind::EvidenceFound { evidence: Box::new(evidence(1)) }));
    app.reduce(Msg::Answered { text: "It is so [E1].".into() });
    app.reduce(Msg::Began { title: "next".into(), at: at(9) });
    app.reduce(event(2, EventKind::RunEnded { status: RunStatus::Complete, diagnosis: None }));
    press(&mut app, "\t1g\n");
    let detail = app.detail.as_ref().expect("the evidence is open");
    assert_eq!(
        (detail.title.as_str(), detail.lines.join("").as_str()),
        ("E1", "{  \"type\": \"other\",  \"value\": {    \"n\": 1  }}")
    );
    press(&mut app, "\u{1b}");
    assert_eq!(app.detail, None);
}
