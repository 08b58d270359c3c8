//! The command line itself: help, version, exit codes, configuration.

use crate::program::{oncall, said};

fn run(args: &[&str]) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    said(&oncall(dir.path()).args(args).output().unwrap())
}

#[test]
fn the_version_is_printed() {
    assert_eq!(run(&["--version"]), (0, format!("oncall {}\n", env!("CARGO_PKG_VERSION")), String::new()));
}

#[test]
fn help_lists_the_commands_with_examples() {
    let dir = tempfile::tempdir().unwrap();
    let (code, help, _) = said(&oncall(dir.path()).arg("--help").output().unwrap());
    assert_eq!(code, 0);
    insta::assert_snapshot!(help.replace(&dir.path().display().to_string(), "DIR"));
}

#[test]
fn an_unknown_command_is_bad_usage_and_names_the_nearest() {
    let (code, out, err) = run(&["diagnos"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("'diagnose'"), "{err}");
}

#[test]
fn every_shell_gets_a_completion_script_and_the_manual_is_roff() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = run(&["completions", shell]);
        assert_eq!(code, 0, "{shell}");
        assert!(script.contains("diagnose"), "{shell}");
    }
    let (code, page, _) = run(&["man"]);
    assert_eq!(code, 0);
    assert!(page.contains(".TH oncall 1") && page.contains("oncall\\-diagnose"), "{}", &page[..200]);
}

#[test]
fn completions_work_where_the_configuration_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("oncall.toml"), "model = [").unwrap();
    let output = oncall(dir.path()).current_dir(dir.path()).args(["completions", "bash"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_broken_configuration_is_bad_input_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("oncall.toml"), "[agent]\nmax_stpes = 3\n").unwrap();
    let output = oncall(dir.path()).current_dir(dir.path()).args(["config", "show"]).output().unwrap();
    let (code, out, err) = said(&output);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("oncall.toml: line 2, column 1: unknown key `max_stpes`; did you mean `max_steps`?"), "{err}");
}

#[test]
fn init_writes_a_file_once_and_show_tells_where_values_come_from() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| said(&oncall(dir.path()).current_dir(dir.path()).args(args).output().unwrap());
    assert_eq!(run(&["config", "init"]), (0, String::new(), "wrote oncall.toml\n".into()));
    let (code, _, err) = run(&["config", "init"]);
    assert_eq!((code, err.as_str()), (2, "error: oncall.toml exists already; it was left as it is\n"));
    let shown = oncall(dir.path())
        .current_dir(dir.path())
        .env_remove("ONCALL_AGENT_TOOL_TIMEOUT")
        .env("ONCALL_AGENT_MAX_STEPS", "4")
        .args(["config", "show"])
        .output()
        .unwrap();
    let folder = dir.path().canonicalize().unwrap().display().to_string();
    let text = said(&shown).1.replace(&folder, "DIR").replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(text);
}

#[test]
fn an_alert_is_required() {
    let (code, out, err) = run(&["diagnose"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("--alert"), "{err}");
}
