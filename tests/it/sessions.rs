//! The session store: the same tests on SQLite and on a real Postgres, many processes at once, processes that are
//! killed, stores that cannot be used, and what a user sees of stored sessions.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use oncall::domain::{Feedback, Judgement, Lang, Role, Session, SessionKind, SessionStatus};
use oncall::session::{Filter, Location, Owner, Recorder, Redact, SessionStore, SqlStore, StoreError};
use oncall::trace::Trace;
use serde_json::Value;

use crate::program::{indexed_data_dir, oncall, said};
use crate::servers::postgres::Postgres;
use crate::stored::{self, ID};

fn plain() -> Redact {
    Redact { text: Arc::new(str::to_owned), json: Arc::new(Value::clone) }
}

fn ids(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("019cb7a8-0000-7000-8000-{n:012}")).collect()
}

/// Everything that a store promises, whatever the database.
async fn keeps_its_promises(location: &Location) {
    what_was_recorded_is_read(location).await;
    a_listing_takes_filters(location).await;
    feedback_stays_until_its_session_is_forgotten(location).await;
}

async fn what_was_recorded_is_read(location: &Location) {
    let events = stored::events(ID);
    let begin = Session::begin(ID, SessionKind::Diagnosis, "graph", "HighErrorRate", Lang::En, stored::start());
    let mut recorder = Recorder::start(location.clone(), Trace::begin(begin), plain()).unwrap();
    events.iter().for_each(|event| recorder.record(event));
    let recorded = recorder.finish().await.unwrap();
    assert_eq!(recorded.stored, Ok(()));
    let store = SqlStore::open(location).await.unwrap();
    assert_eq!(store.read(ID).await.unwrap(), Some(stored::trace(ID, &events).record));
    assert_eq!(store.read("019c").await.unwrap(), None);
    assert_eq!(store.ids("019cb7a8", 9).await.unwrap(), [ID]);
    assert_eq!(store.ids("019c%", 9).await.unwrap(), Vec::<String>::new());
    store.close().await;
}

async fn a_listing_takes_filters(location: &Location) {
    let store = SqlStore::open(location).await.unwrap();
    let ids = ids(6);
    for (hour, id) in ids.iter().enumerate() {
        let at = stored::start().checked_add(SignedDuration::from_hours(hour as i64)).unwrap();
        let mut session = Session::begin(id, SessionKind::Question, "simple", &format!("q{hour}"), Lang::Zh, at);
        session.service = Some(if hour % 2 == 0 { "even" } else { "odd" }.into());
        session.fingerprint = Some(format!("f{hour}"));
        let mut trace = Trace::begin(session);
        if hour < 4 {
            trace.close(SessionStatus::Complete, None, at);
        }
        // The last one's process is gone: no process has such a number.
        let pid = if hour == 5 { 1 << 30 } else { Owner::this().pid };
        store.write(&trace.take_changes(), &Owner { pid, ..Owner::this() }).await.unwrap();
    }
    let listed = async |filter: Filter| -> Vec<usize> {
        let sessions = store.list(&filter).await.unwrap();
        sessions.iter().map(|session| ids.iter().position(|id| *id == session.id).unwrap()).collect()
    };
    let all = Filter::default;
    let hour = |hours| Some(stored::start().checked_add(SignedDuration::from_hours(hours)).unwrap());
    assert_eq!(listed(all()).await, [5, 4, 3, 2, 1, 0]);
    assert_eq!(listed(Filter { limit: Some(2), ..all() }).await, [5, 4]);
    assert_eq!(listed(Filter { since: hour(2), until: hour(4), ..all() }).await, [3, 2]);
    assert_eq!(listed(Filter { service: Some("odd".into()), ..all() }).await, [5, 3, 1]);
    assert_eq!(listed(Filter { alert: Some("f3".into()), ..all() }).await, [3]);
    assert_eq!(listed(Filter { alert: Some("q4".into()), ..all() }).await, [4]);
    assert_eq!(listed(Filter { kind: Some(SessionKind::Diagnosis), ..all() }).await, Vec::<usize>::new());
    assert_eq!(listed(Filter { status: Some(SessionStatus::Running), ..all() }).await, [4]);
    assert_eq!(listed(Filter { status: Some(SessionStatus::Interrupted), limit: Some(1), ..all() }).await, [5]);
    store.close().await;
}

async fn feedback_stays_until_its_session_is_forgotten(location: &Location) {
    let store = SqlStore::open(location).await.unwrap();
    let feedback = Feedback {
        judgement: Judgement::Wrong,
        cause: Some("a full disk 磁盘已满".into()),
        note: None,
        at: stored::start(),
    };
    let judged = Filter { judged: true, ..Filter::default() };
    assert_eq!(store.list(&judged).await.unwrap(), []);
    store.add_feedback(ID, &feedback).await.unwrap();
    let ids: Vec<String> = store.list(&judged).await.unwrap().into_iter().map(|session| session.id).collect();
    assert_eq!(ids, [ID]);
    assert_eq!(store.read(ID).await.unwrap().unwrap().feedback, [feedback]);
    let before = stored::start().checked_add(SignedDuration::from_mins(30)).unwrap();
    assert_eq!(store.prune(before).await.unwrap(), 1);
    assert_eq!(store.read(ID).await.unwrap(), None);
    assert_eq!(store.prune(before).await.unwrap(), 0);
    assert_eq!(store.list(&Filter::default()).await.unwrap().len(), 5);
    store.close().await;
}

#[tokio::test]
async fn sqlite_keeps_its_promises() {
    let dir = tempfile::tempdir().unwrap();
    keeps_its_promises(&Location::Sqlite(dir.path().join("a folder/sessions.db"))).await;
}

#[tokio::test]
async fn postgres_keeps_its_promises() {
    let server = Postgres::start();
    keeps_its_promises(&Location::Postgres(server.database("promises"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn many_that_make_a_store_at_once_all_get_it() {
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(dir.path().join("sessions.db"));
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let location = location.clone();
            opening.spawn(async move { SqlStore::open(&location).await });
        }
        for store in opening.join_all().await {
            store.unwrap().close().await;
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/sessions.db");
    let store = SqlStore::open(&Location::Sqlite(path.clone())).await.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&dir.path().join("data/sessions.db-wal")), 0o600);
    store.close().await;
}

/// This test program again, running one of the tests that are ignored otherwise.
fn child(test: &str, location: &str, prefix: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("TEST_STORE", location).env("TEST_PREFIX", prefix.to_string());
    command.stdout(Stdio::piped());
    command
}

/// Where a child is told to write; `None` when nobody told it.
fn told() -> Option<(Location, usize)> {
    let place = std::env::var("TEST_STORE").ok()?;
    let prefix = std::env::var("TEST_PREFIX").ok()?.parse().ok()?;
    let location = if place.contains("://") { Location::Postgres(place) } else { Location::Sqlite(place.into()) };
    Some((location, prefix))
}

const PROCESSES: usize = 8;
const SESSIONS: usize = 200;

#[test]
#[ignore = "started by the tests of many processes"]
fn writes_many_sessions() {
    let Some((location, prefix)) = told() else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = SqlStore::open(&location).await.unwrap();
        for n in 0..SESSIONS {
            let id = format!("{prefix:08x}-0000-7000-8000-{n:012}");
            let mut trace = stored::trace(&id, &stored::events(&id));
            let changes = trace.take_changes();
            while let Err(error) = store.write(&changes, &Owner::this()).await {
                assert!(error.is_passing(), "{error}");
            }
        }
        store.close().await;
    });
}

async fn many_processes_lose_nothing(place: &str, location: &Location) {
    let start = |n| child("sessions::writes_many_sessions", place, n).spawn().unwrap();
    let mut children: Vec<Child> = (0..PROCESSES).map(start).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let store = SqlStore::open(location).await.unwrap();
    let sessions = store.list(&Filter::default()).await.unwrap();
    assert_eq!(sessions.len(), PROCESSES * SESSIONS);
    for session in sessions.iter().step_by(97) {
        let want = stored::trace(&session.id, &stored::events(&session.id)).record;
        assert_eq!(store.read(&session.id).await.unwrap(), Some(want));
    }
    store.close().await;
}

#[tokio::test]
async fn eight_processes_write_into_one_file_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    many_processes_lose_nothing(path.to_str().unwrap(), &Location::Sqlite(path.clone())).await;
}

#[tokio::test]
async fn eight_processes_write_into_one_postgres_and_nothing_is_lost() {
    let server = Postgres::start();
    let url = server.database("many");
    many_processes_lose_nothing(&url, &Location::Postgres(url.clone())).await;
}

/// How often a thing happens in the session of the process that is killed.
const SAID_EVERY: Duration = Duration::from_millis(10);

#[test]
#[ignore = "started by the test that kills it"]
fn records_until_it_is_killed() {
    let Some((location, prefix)) = told() else { return };
    let id = format!("{prefix:08x}-0000-7000-8000-000000000000");
    let begin = Session::begin(&id, SessionKind::Diagnosis, "graph", "alert", Lang::En, Timestamp::now());
    let mut recorder = Recorder::start(location, Trace::begin(begin), plain()).unwrap();
    loop {
        let at = Timestamp::now();
        recorder.edit(move |trace| trace.message(Role::Thought, "a thought", at));
        println!("said {}", at.as_microsecond());
        std::thread::sleep(SAID_EVERY);
    }
}

/// Starts a process that records, kills it at a random moment, and returns when it said what, and when it was killed.
fn kill_at_a_random_moment(path: &Path, n: usize) -> (Vec<i64>, i64) {
    let mut child = child("sessions::records_until_it_is_killed", path.to_str().unwrap(), n).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said_at = |line: &str| line.split_once("said ").and_then(|(_, at)| at.trim().parse::<i64>().ok());
    let mut said: Vec<i64> = lines.by_ref().map_while(Result::ok).find_map(|line| said_at(&line)).into_iter().collect();
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), n);
    std::thread::sleep(Duration::from_millis(random % 2500));
    let killed = Timestamp::now().as_microsecond();
    child.kill().unwrap();
    child.wait().unwrap();
    said.extend(lines.map_while(Result::ok).filter_map(|line| said_at(&line)));
    (said, killed)
}

const KILLS: usize = 50;
const KILLS_AT_ONCE: usize = 10;
/// Microseconds before the kill of which nothing has to be there.
const MAY_BE_LOST: i64 = 1_000_000;
/// On a machine that is busy with other tests the writer's turn comes late now and then, but never by so much.
const NEVER_LOST: i64 = 4_000_000;

#[test]
fn a_killed_process_leaves_a_whole_store_that_misses_at_most_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut in_time = 0;
    for round in 0..KILLS / KILLS_AT_ONCE {
        let path = dir.path().join(format!("{round}.db"));
        let kills: Vec<(usize, Vec<i64>, i64)> = std::thread::scope(|scope| {
            let kill = |n| {
                let path = path.clone();
                scope.spawn(move || {
                    let (said, killed) = kill_at_a_random_moment(&path, n);
                    (n, said, killed)
                })
            };
            let threads: Vec<_> = (0..KILLS_AT_ONCE).map(kill).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        in_time += runtime.block_on(check_after_kills(&path, &kills));
    }
    assert!(in_time >= KILLS * 4 / 5, "{in_time} of {KILLS} lost no more than their last second");
}

/// How many of the killed lost no more than their last second.
async fn check_after_kills(path: &Path, kills: &[(usize, Vec<i64>, i64)]) -> usize {
    let url = format!("sqlite://{}", path.display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    let whole: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&pool).await.unwrap();
    assert_eq!(whole, "ok");
    pool.close().await;
    let store = SqlStore::open(&Location::Sqlite(path.to_path_buf())).await.unwrap();
    let mut in_time = 0;
    for (n, said, killed) in kills {
        let before = |lost: i64| said.iter().filter(|at| **at < killed - lost).count();
        let (due, due_by_design) = (before(NEVER_LOST), before(MAY_BE_LOST));
        let record = store.read(&format!("{n:08x}-0000-7000-8000-000000000000")).await.unwrap();
        match record {
            Some(record) => {
                assert_eq!(record.session.status, SessionStatus::Interrupted);
                let kept: Vec<i64> = record.messages.iter().map(|message| message.at.as_microsecond()).collect();
                assert!(kept.len() >= due, "killed after {} things, {due} due, {} kept", said.len(), kept.len());
                assert_eq!(kept, said[..kept.len().min(said.len())]);
                in_time += usize::from(kept.len() >= due_by_design);
            }
            // Killed before the first write.
            None => {
                assert_eq!(due, 0);
                in_time += usize::from(due_by_design == 0);
            }
        }
    }
    store.close().await;
    in_time
}

#[tokio::test]
async fn a_damaged_store_and_one_that_cannot_be_made_are_told_apart_from_a_busy_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    std::fs::write(
        &path,
        "this is no database, whatever its name says; it is long enough to have a header though\n".repeat(20),
    )
    .unwrap();
    let error = SqlStore::open(&Location::Sqlite(path.clone())).await.err().unwrap();
    let why = "file is not a database".to_owned();
    assert_eq!(error, StoreError::Unusable { location: path.display().to_string(), why });
    let beneath = Location::Sqlite(path.join("sessions.db"));
    assert!(matches!(SqlStore::open(&beneath).await.err(), Some(StoreError::Unusable { .. })));
}

#[test]
fn a_store_that_cannot_be_written_is_warned_of_once_and_the_answer_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let run = || {
        let args = ["ask", "how do I find what fills the disk?", "--lang", "en"];
        let knowledge = indexed_data_dir().join("knowledge");
        said(&oncall(dir.path()).env("ONCALL_KNOWLEDGE_STORE", knowledge).arg("--quiet").args(args).output().unwrap())
    };
    let (code, with_store, err) = run();
    assert_eq!((code, err.as_str()), (0, ""));
    for name in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    std::fs::create_dir(dir.path().join("sessions.db")).unwrap();
    let (code, without, err) = run();
    assert_eq!((code, without), (0, with_store));
    assert!(err.starts_with("warning: this session is not stored: the session store "), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn a_diagnosis_is_stored_with_its_steps_calls_and_retrieval() {
    let run = |args: &[&str]| said(&oncall(&indexed_data_dir()).args(args).output().unwrap());
    let (code, out, err) = run(&["diagnose", "--incident", "examples/oom-rollout", "--json", "--quiet"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let diagnosis: Value = serde_json::from_str(&out).unwrap();
    let id = diagnosis["session_id"].as_str().unwrap();
    let (code, out, err) = run(&["session", "show", id, "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let record: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(record["schema"], "oncall.session/v1");
    assert_eq!(record["diagnosis"], diagnosis);
    let session = &record["session"];
    assert_eq!((&session["status"], &session["category"]), (&"complete".into(), &"oom_killed".into()));
    let nodes: Vec<&str> =
        record["steps"].as_array().unwrap().iter().map(|step| step["node"].as_str().unwrap()).collect();
    for node in ["analyze_alert", "parallel_query", "retrieve_knowledge", "plan", "synthesize", "respond"] {
        assert!(nodes.contains(&node), "{nodes:?}");
    }
    let calls = record["tool_invocations"].as_array().unwrap();
    assert!(calls.len() > 3);
    for call in calls {
        assert_ne!(call["status"], "running", "{call}");
        assert!(call["output_preview"].as_str().is_none_or(|preview| preview.chars().count() <= 500), "{call}");
    }
    let retrieval = calls.iter().find(|call| call["tool"] == "retrieve_knowledge").unwrap();
    assert!(retrieval["retrieval"]["candidates"].as_u64().unwrap() >= retrieval["retrieval"]["kept"].as_u64().unwrap());
}

#[cfg(unix)]
#[test]
fn a_terminated_diagnosis_is_stored_as_cancelled() {
    let data_dir = indexed_data_dir();
    let mut command = oncall(&data_dir);
    command.args(["diagnose", "--incident", "examples/order-service", "--json", "--events", "--quiet"]);
    let mut child = into_std(&command).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let started = lines.find(|line| line.contains("run_started")).unwrap();
    let started: Value = serde_json::from_str(&started).unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let id = started["session_id"].as_str().unwrap();
    let (_, out, _) = said(&oncall(&data_dir).args(["session", "show", id, "--json"]).output().unwrap());
    let record: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(record["session"]["status"], "cancelled");
}

/// The same command as one that can be started and left running.
fn into_std(command: &assert_cmd::Command) -> Command {
    let mut plain = Command::new(command.get_program());
    plain.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => plain.env(name, value),
            None => plain.env_remove(name),
        };
    }
    plain.current_dir(crate::program::root());
    plain
}

/// A data folder with three made sessions.
fn seeded() -> (tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let ids = vec![
        ID.to_owned(),
        "019cbcce-4c00-7000-8000-000000000002".into(),
        "019cc1f4-a800-7000-8000-000000000003".into(),
    ];
    stored::seed(dir.path(), &ids.iter().map(String::as_str).collect::<Vec<_>>());
    (dir, ids)
}

fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    said(&oncall(dir).args(args).output().unwrap())
}

#[test]
fn sessions_are_listed_and_shown_in_both_languages() {
    let (dir, _) = seeded();
    for lang in ["en", "zh"] {
        let (code, table, err) = run(dir.path(), &["session", "list", "--lang", lang]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(format!("session_list_{lang}"), table);
        let (code, shown, err) = run(dir.path(), &["session", "show", ID, "--lang", lang]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(format!("session_show_{lang}"), shown);
    }
}

#[test]
fn an_id_is_a_unique_beginning_or_last_and_a_wrong_one_names_the_nearest() {
    let (dir, ids) = seeded();
    let session = |text: &str| {
        let (code, out, err) = run(dir.path(), &["session", "show", text, "--json"]);
        let record: Option<Value> = serde_json::from_str(&out).ok();
        (code, record.map(|record| record["session"]["id"].as_str().unwrap().to_owned()), err)
    };
    assert_eq!(session("last"), (0, Some(ids[2].clone()), String::new()));
    assert_eq!(session("019cbc"), (0, Some(ids[1].clone()), String::new()));
    let hint = "did you mean 019cbcce-4c00-7000-8000-000000000002? `oncall session list` shows all";
    assert_eq!(session("019cbcc0"), (2, None, format!("error: no session begins with `019cbcc0`: {hint}\n")));
    let both = format!("{}, {}", ids[0], ids[1]);
    assert_eq!(
        session("019c"),
        (2, None, format!("error: several sessions begin with `019c`: {both}, ...: give more of the id\n"))
    );
    let empty = tempfile::tempdir().unwrap();
    let (code, _, err) = run(empty.path(), &["session", "show", "last"]);
    assert_eq!((code, err.as_str()), (2, "error: no session begins with `last`: nothing is stored yet\n"));
}

#[test]
fn filters_that_are_none_are_refused_with_the_nearest() {
    let (dir, _) = seeded();
    let (code, _, err) = run(dir.path(), &["session", "list", "--status", "complet"]);
    assert_eq!((code, err.as_str()), (2, "error: --status complet: did you mean complete?\n"));
    let (code, _, err) = run(dir.path(), &["session", "list", "--since", "soon"]);
    let expected = "expected an age such as 30d or 8h, or a time such as 2026-03-04T14:00:00Z";
    assert_eq!((code, err), (2, format!("error: --since soon: {expected}\n")));
}

#[test]
fn old_sessions_are_forgotten_and_young_ones_stay() {
    let (dir, ids) = seeded();
    let before = "2026-03-06T00:00:00Z";
    assert_eq!(
        run(dir.path(), &["session", "prune", "--older-than", before]),
        (0, "forgot 2 sessions\n".into(), String::new())
    );
    let (_, out, _) = run(dir.path(), &["session", "list", "--json"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    let left: Vec<&str> =
        document["sessions"].as_array().unwrap().iter().map(|session| session["id"].as_str().unwrap()).collect();
    assert_eq!(left, [ids[2].as_str()]);
}

#[test]
fn feedback_is_noted_and_exported() {
    let (dir, _) = seeded();
    let note = ["session", "feedback", ID, "--right", "--note", "restarted stock", "--quiet"];
    assert_eq!(run(dir.path(), &note), (0, String::new(), String::new()));
    let (_, out, _) = run(dir.path(), &["session", "export", ID, "--format", "json"]);
    let record: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(record["feedback"][0]["judgement"], "right");
    assert_eq!(record["feedback"][0]["note"], "restarted stock");
    let (code, _, err) = run(dir.path(), &["session", "feedback", ID]);
    assert_eq!(code, 2);
    assert!(err.contains("--right"), "{err}");
}

#[test]
fn an_export_is_markdown_or_one_page_without_scripts() {
    let (dir, _) = seeded();
    let (code, text, _) = run(dir.path(), &["session", "export", ID, "--format", "md"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("session_export_md", text);
    let file = dir.path().join("session.html");
    let args = ["session", "export", ID, "--format", "html", "-o", file.to_str().unwrap(), "--quiet"];
    assert_eq!(run(dir.path(), &args), (0, String::new(), String::new()));
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("Out of memory in stock") && page.contains("<svg "), "{page}");
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"), "{page}");
}

#[test]
fn a_diff_tells_what_one_run_has_and_the_other_has_not() {
    let (dir, ids) = seeded();
    let (code, text, _) = run(dir.path(), &["session", "diff", &ids[0], &ids[1]]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("session_diff", text);
}

#[test]
fn a_session_url_that_is_no_store_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let asked = oncall(dir.path()).env("ONCALL_SESSIONS_URL", "mysql://db/x").args(["ask", "why?"]).output().unwrap();
    let (code, out, err) = said(&asked);
    let expected = "expected \"sqlite\" or postgres://user@host/database";
    let want = format!("error: sessions.url: \"mysql://db/x\" is no session store: {expected}\n");
    assert_eq!((code, out.as_str(), err), (2, "", want));
}

#[test]
fn a_stored_session_is_gone_on_with() {
    let (dir, _) = seeded();
    let mut command = oncall(dir.path());
    command.env("ONCALL_KNOWLEDGE_STORE", indexed_data_dir().join("knowledge"));
    command.args(["session", "resume", ID, "what fills the disk?", "--json", "--quiet"]);
    let (code, out, err) = said(&command.output().unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["session_id"], ID);
    let (_, out, _) = run(dir.path(), &["session", "show", ID, "--json"]);
    let record: Value = serde_json::from_str(&out).unwrap();
    let said = record["messages"].as_array().unwrap().iter().rev().take(2).map(|message| message["role"].clone());
    assert_eq!(said.collect::<Vec<_>>(), ["assistant", "user"]);
}
