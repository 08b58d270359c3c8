//! The terminal front end in a real terminal: what is on the screen, and what the terminal is like afterwards.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oncall::domain::Lang;
use oncall::ui::tui::{App, Kind, Mode, ThemeName};

use crate::program::{indexed_data_dir, root};
use crate::servers::tmux::Tmux;

/// The order-service incident with one log that nobody writes to the end: searching the logs waits for it.
struct Slowed {
    dir: tempfile::TempDir,
}

impl Slowed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(&root().join("examples/order-service"), &dir.path().join("incident"));
        let slow = dir.path().join("incident/logs/order-service/slow.log");
        let made = std::process::Command::new("mkfifo").arg(&slow).status().unwrap();
        assert!(made.success());
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("incident")
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_diagnosis_on_a_terminal_is_followed_live_and_leaves_its_report_in_the_scrollback() {
    let tmux = Tmux::start(80, 24, &indexed_data_dir());
    let before = tmux.modes();
    let slowed = Slowed::new();
    tmux.run(&format!("oncall diagnose --incident {}; echo exit $?", slowed.path().display()));
    let pane = tmux.wait_until("a call under way", |pane| pane.contains("calls ") && pane.contains("search_logs("));
    assert!(pane.contains("Esc stops, Ctrl-C twice leaves"), "{pane}");
    // What was on the screen before stays above the live view.
    assert!(pane.contains("ready$ oncall diagnose"), "{pane}");
    tmux.keys(&["Escape"]);
    tmux.wait_for("exit 130");
    let history = tmux.history(false);
    for heading in ["Diagnosis: http_requests_error_rate", "Hypotheses", "Evidence", "Sources"] {
        assert!(history.contains(heading), "{heading}: {history}");
    }
    assert!(!history.contains("Esc stops"), "the live view is gone: {history}");
    assert!(tmux.history(true).contains("\u{1b}[1m"), "headings are bold");
    assert_eq!(tmux.modes(), before);
}

#[test]
fn on_the_full_screen_a_call_is_cancelled_evidence_opened_and_the_terminal_given_back() {
    let tmux = Tmux::start(120, 40, &indexed_data_dir());
    let before = tmux.modes();
    let slowed = Slowed::new();
    tmux.run(&format!("oncall diagnose --incident {} --tui; echo exit $?", slowed.path().display()));
    tmux.wait_until("the call that waits", |pane| {
        pane.contains("1 Plan") && pane.contains(".. ") && pane.contains("search_logs(")
    });
    // The panel of calls, and in it every call that still runs is cancelled.
    tmux.text("2g");
    let started = Instant::now();
    while !tmux.pane().contains("complete") {
        assert!(started.elapsed() < Duration::from_secs(90), "{}", tmux.pane());
        tmux.text(&format!("g{}", "xj".repeat(45)));
        std::thread::sleep(Duration::from_millis(150));
    }
    let pane = tmux.wait_for("complete");
    assert!(pane.contains("!!"), "a call was cancelled: {pane}");
    tmux.text("3g");
    tmux.wait_until("evidence", |pane| pane.contains("E1 ") && pane.contains("metric"));
    tmux.text("/hikaricp");
    tmux.keys(&["Enter", "Enter"]);
    let pane = tmux.wait_until("a chart", |pane| pane.contains("! alert") && pane.contains("baseline"));
    assert!(pane.contains("\"points\"") || pane.contains("\"expr\""), "the raw output is below: {pane}");
    tmux.resize(80, 24);
    tmux.wait_until("the smaller screen", |pane| {
        pane.lines().all(|line| line.chars().count() <= 80) && pane.contains("! alert")
    });
    tmux.resize(50, 10);
    tmux.wait_for("This screen is 50x10");
    tmux.resize(60, 15);
    tmux.keys(&["Escape"]);
    tmux.wait_for("3 Evidence");
    tmux.text("q");
    tmux.wait_for("exit 0");
    tmux.resize(120, 40);
    assert!(tmux.history(false).contains("Root cause"), "{}", tmux.history(false));
    assert_eq!(tmux.modes(), before);
}

#[test]
fn a_session_answers_questions_opens_citations_and_goes_on_later() {
    let data = indexed_data_dir();
    let tmux = Tmux::start(80, 24, &data);
    let before = tmux.modes();
    tmux.run("oncall tui; echo exit $?");
    tmux.wait_for("Ask something");
    tmux.text("磁盘满了怎么办？");
    tmux.wait_for("> 磁盘满了怎么办？");
    tmux.keys(&["Enter"]);
    tmux.wait_until("an answer", |pane| pane.contains("[E2]"));
    tmux.keys(&["Tab"]);
    tmux.text("1g/[E2]");
    tmux.keys(&["Enter", "Enter"]);
    tmux.wait_until("the passage", |pane| pane.starts_with(" E2 ") && pane.contains(".md"));
    tmux.keys(&["Escape"]);
    tmux.text("i/diag");
    tmux.wait_for("/diagnose FILE|DIR|URL");
    tmux.keys(&["Tab"]);
    tmux.text("examples/oom-rollout");
    tmux.keys(&["Enter"]);
    // Its last line: the head still says how the question ended until the diagnosis has begun.
    tmux.wait_for("reasoner: rules, no model");
    tmux.text("/quit");
    tmux.keys(&["Enter"]);
    tmux.wait_for("exit 0");
    let told = tmux.history(false);
    let id = told
        .split("oncall tui --session ")
        .nth(1)
        .and_then(|rest| rest.split('`').next())
        .expect("the session is named");
    assert_eq!(tmux.modes(), before);
    tmux.run(&format!("clear; oncall tui --session {id}; echo exit $?"));
    tmux.wait_until("the stored session", |pane| pane.contains("complete") && pane.contains("reasoner: rules"));
    tmux.keys(&["Escape"]);
    tmux.text("q");
    tmux.wait_for("exit 0");
    tmux.run(&format!("clear; oncall trace {id} --tui --speed 100; echo exit $?"));
    tmux.wait_until("the playback", |pane| pane.contains("x100") && pane.contains("6 Report"));
    tmux.text("q");
    tmux.wait_for("exit 0");
    assert_eq!(tmux.modes(), before);
}

#[test]
fn signals_and_suspension_give_the_terminal_back() {
    let tmux = Tmux::start(100, 30, &indexed_data_dir());
    let before = tmux.modes();
    let slowed = Slowed::new();
    let command = format!("oncall diagnose --incident {} --tui", slowed.path().display());
    tmux.run(&command);
    tmux.wait_until("the screen", |pane| pane.contains("1 Plan") && pane.contains("running"));
    tmux.keys(&["C-z"]);
    tmux.wait_until("the shell", |pane| pane.contains("Stopped") || pane.contains("ready$"));
    assert_eq!(tmux.modes().screen, before.screen);
    tmux.run("fg");
    tmux.wait_until("the screen again", |pane| pane.contains("1 Plan") && pane.contains("running"));
    // Twice: leave at once.
    tmux.keys(&["C-c", "C-c"]);
    tmux.wait_until("the shell", |pane| pane.trim_end().ends_with("ready$"));
    assert_eq!(tmux.modes(), before);

    let file = tmux.file("pid");
    tmux.run(&format!("sh -c 'echo $$ > {}; exec {command}'; echo exit $?", file.display()));
    tmux.wait_until("the screen", |pane| pane.contains("1 Plan") && pane.contains("running"));
    let pid = std::fs::read_to_string(file).unwrap();
    assert!(std::process::Command::new("kill").args(["-TERM", pid.trim()]).status().unwrap().success());
    tmux.wait_for("exit 130");
    assert!(tmux.history(false).contains("Diagnosis:"), "the best answer so far is printed");
    assert_eq!(tmux.modes(), before);
}

#[test]
fn a_dumb_terminal_and_view_plain_get_text_and_a_pipe_is_told() {
    let tmux = Tmux::start(100, 40, &indexed_data_dir());
    let before = tmux.modes();
    tmux.run("TERM=dumb oncall diagnose --incident examples/oom-rollout > /dev/null; echo exit $?");
    tmux.wait_for("exit 0");
    assert!(tmux.history(false).contains("plan: "), "lines of progress: {}", tmux.history(false));
    tmux.run("clear; TERM=dumb oncall tui; echo exit $?");
    tmux.wait_until("an error", |pane| pane.contains("cannot be drawn on") && pane.contains("exit 2"));
    tmux.run("clear; oncall diagnose --incident examples/oom-rollout --tui | cat; echo done");
    tmux.wait_for("--tui needs a terminal, and standard output is none: use --view plain");
    tmux.run("clear; oncall diagnose --view plain --incident examples/oom-rollout; echo exit $?");
    tmux.wait_for("exit 0");
    assert!(tmux.history(false).contains("plan: "));
    assert_eq!(tmux.modes(), before);
}

/// Runs inside the terminal of the test below: a screen is open when this thread panics.
#[test]
#[ignore = "it panics on purpose, in a terminal of its own"]
fn panic_with_a_screen_open() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let zone = jiff::tz::TimeZone::UTC;
        let mut app = App::new(Kind::Session, Lang::En, zone, ThemeName::Dark, (80, 24), jiff::Timestamp::now());
        let (_inbox, mut messages) = tokio::sync::mpsc::unbounded_channel();
        let (outbox, _effects) = tokio::sync::mpsc::unbounded_channel();
        tokio::select! {
            left = oncall::ui::tui::run(&mut app, Mode::Full, &mut messages, &outbox) => { left.unwrap(); }
            () = async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                panic!("on purpose");
            } => {}
        }
    });
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_is_told() {
    let tmux = Tmux::start(80, 24, &indexed_data_dir());
    let before = tmux.modes();
    let this = std::env::current_exe().unwrap();
    let test = "terminal::panic_with_a_screen_open";
    tmux.run(&format!("{} --ignored --exact {test} --nocapture; echo exit $?", this.display()));
    tmux.wait_for("Ask something");
    let pane = tmux.wait_for("exit 101");
    assert!(pane.contains("on purpose"), "{pane}");
    assert_eq!(tmux.modes(), before);
}
