//! Indexing where things go wrong: a full disk, no rights, two at once, killed in the middle; and what changes while it
//! watches. Whatever happens, the next run ends with every document there, once.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::program::{oncall, said};

/// A folder with documents of several passages each, and a place for the data.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn with_documents(count: usize) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.docs()).unwrap();
        place.configure("");
        (0..count).for_each(|n| place.write(&format!("{n:03}.md"), n));
        place
    }

    fn write(&self, name: &str, n: usize) {
        let section = |m: usize| {
            let words = format!("Queue number {n}, part {m}: look at the consumers, then at the broker. ");
            format!("# Queue {n}\n\n## Part {m}\n\n{words}\n\n")
        };
        std::fs::write(self.docs().join(name), (0..3).map(section).collect::<String>()).unwrap();
    }

    /// A configuration of these documents, so that no search takes in others.
    fn configure(&self, more: &str) {
        let text = format!("[knowledge]\npaths = [{:?}]\n{more}", self.docs().display().to_string());
        std::fs::write(self.config(), text).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("oncall.toml")
    }

    fn docs(&self) -> PathBuf {
        self.folder.path().join("docs")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn oncall(&self, args: &[&str]) -> (i32, String, String) {
        said(&oncall(&self.data()).env("ONCALL_CONFIG", self.config()).args(args).output().unwrap())
    }

    fn index(&self, flags: &[&str]) -> (i32, Value, String) {
        let docs = self.docs().display().to_string();
        let args = ["index", &docs, "--json"];
        let (code, out, err) = self.oncall(&args.into_iter().chain(flags.iter().copied()).collect::<Vec<_>>());
        (code, serde_json::from_str(&out).unwrap_or(Value::Null), err)
    }

    /// The binary as a process that goes on.
    fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("oncall"));
        command
            .arg("index")
            .arg(self.docs())
            .args(args)
            .env("ONCALL_DATA_DIR", self.data())
            .env("ONCALL_CONFIG", self.config());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Every document has its passages, and none of them twice.
    fn is_whole(&self, documents: usize) {
        let (code, report, err) = self.index(&[]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(
            (&report["unchanged"], &report["passages"]),
            (&documents.into(), &(documents * 3).into()),
            "{report}"
        );
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn two_that_index_at_once_leave_every_document_once() {
    let place = Place::with_documents(30);
    let children = [place.start(&[]), place.start(&[])];
    for child in children {
        let (code, out, err) = said(&child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("90 passages in all"), "{out}");
    }
    place.is_whole(30);
}

#[test]
fn killed_at_any_moment_the_next_run_completes_the_store() {
    let place = Place::with_documents(60);
    // A whole run takes some seconds; these moments lie before, in and after its writes.
    for moment in [50, 400, 900, 1600, 2500] {
        let mut child = place.start(&[]);
        std::thread::sleep(Duration::from_millis(moment));
        signal(&child, "-KILL");
        child.wait().unwrap();
    }
    let (code, report, err) = place.index(&[]);
    assert_eq!((code, report["failed"].as_array().map(Vec::len)), (0, Some(0)), "{err}");
    place.is_whole(60);
    place.write("007.md", 700);
    let mut child = place.start(&[]);
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert_eq!(place.index(&[]).1["passages"], 180);
    place.is_whole(60);
}

#[test]
fn what_vanished_is_forgotten_when_it_is_asked_for() {
    let place = Place::with_documents(4);
    assert_eq!(place.index(&[]).1["added"], 4);
    std::fs::remove_file(place.docs().join("002.md")).unwrap();
    assert_eq!(place.index(&[]).1["passages"], 12);
    let (code, report, _) = place.index(&["--prune"]);
    assert_eq!((code, &report["pruned"], &report["passages"]), (0, &1.into(), &9.into()));
    place.is_whole(3);
}

#[test]
fn a_watch_takes_in_what_changes_and_ends_when_it_is_told_to() {
    let place = Place::with_documents(2);
    let mut child = place.start(&["--watch"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "2 added, 0 replaced, 0 unchanged, 0 removed, 0 skipped, 0 failed; 6 passages in all");
    place.write("new.md", 9);
    assert_eq!(next(), "1 added, 0 replaced, 2 unchanged, 0 removed, 0 skipped, 0 failed; 9 passages in all");
    place.write("001.md", 1000);
    assert_eq!(next(), "0 added, 1 replaced, 2 unchanged, 0 removed, 0 skipped, 0 failed; 9 passages in all");
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// As root every folder can be read, so that root gives that right away first.
fn without_special_rights(command: &Path) -> Command {
    let is_root = String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout).unwrap().trim() == "0";
    if !is_root {
        return Command::new(command);
    }
    let mut lowered = Command::new("setpriv");
    lowered.args(["--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]).arg(command);
    lowered
}

#[cfg(unix)]
#[test]
fn a_folder_without_rights_is_named_and_the_rest_is_indexed() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with_documents(2);
    let closed = place.docs().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::write(closed.join("secret.md"), "# Secret\n\ntext").unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    set(&closed, 0o000);
    set(&place.docs().join("001.md"), 0o000);
    let mut command = without_special_rights(&assert_cmd::cargo::cargo_bin("oncall"));
    command.arg("index").arg(place.docs()).env("ONCALL_DATA_DIR", place.data());
    let (code, out, err) = said(&command.output().expect("setpriv runs: it comes with util-linux"));
    set(&closed, 0o700);
    let err = err.replace(&place.docs().display().to_string(), "DOCS");
    assert_eq!(
        (code, out.as_str()),
        (3, "1 added, 0 replaced, 0 unchanged, 0 removed, 0 skipped, 2 failed; 3 passages in all\n"),
        "{err}"
    );
    let why = "permission denied: it needs read rights";
    assert_eq!(
        err,
        format!(
            "indexing 1 of 2 documents\nwarning: cannot index DOCS/closed: {why}\nwarning: cannot index 001.md: {why}\n"
        )
    );
}

/// On a file system of 160 kB, which only a mount namespace of its own sees.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_with_room_the_same_command_goes_on() {
    let place = Place::with_documents(40);
    std::fs::create_dir(place.data()).unwrap();
    let script = r#"
        set -e
        mount -t tmpfs -o size=160k none "$DATA"
        code=0; "$ONCALL" index "$DOCS" || code=$?
        echo "exit $code"
        mount -o remount,size=200m "$DATA"
        "$ONCALL" index "$DOCS"
        "$ONCALL" search "queue number 17" -k 1 --json --quiet | head -c 200
    "#;
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script]);
    command.env("ONCALL", assert_cmd::cargo::cargo_bin("oncall")).env("DATA", place.data()).env("DOCS", place.docs());
    command.env("ONCALL_DATA_DIR", place.data()).env("ONCALL_CONFIG", place.config());
    let output = command.output().expect("unshare runs: it comes with util-linux");
    let (code, out, err) = said(&output);
    assert_eq!(code, 0, "user namespaces have to be allowed for this test: {out}{err}");
    let out = out.replace(&place.docs().display().to_string(), "DOCS");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "exit 1", "{out}{err}");
    assert!(err.contains("is full: what was indexed before is still there; free some space"), "{err}");
    assert!(lines[1].ends_with("0 failed; 120 passages in all"), "{out}");
    assert!(lines[2].contains("\"source\":\"017.md\""), "{out}");
}

#[test]
fn a_vector_index_finds_what_a_scan_finds() {
    let [scan, indexed] = [Place::with_documents(60), Place::with_documents(60)];
    indexed.configure("index = { kind = \"ivf_flat\", lists = 8 }\n");
    for place in [scan, indexed] {
        assert_eq!(place.index(&[]).1["passages"], 180);
        let query = ["search", "queue number 41, part 2", "-k", "1", "--json", "--quiet"];
        let (code, out, err) = place.oncall(&query);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["source"], "041.md");
    }
}
