//! A terminal: tmux on a socket of its own with a shell in it, gone when dropped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// How long anything on the screen may take: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(40);

pub struct Tmux {
    dir: tempfile::TempDir,
    target: &'static str,
}

/// Modes of the terminal, and what tmux knows of the screen.
#[derive(Debug, PartialEq, Eq)]
pub struct Modes {
    /// `stty -g`.
    pub stty: String,
    /// Alternate screen, cursor, mouse, keypad.
    pub screen: String,
}

impl Tmux {
    /// A shell of this size in the repository's folder, with a data folder and nothing of the user's own settings.
    pub fn start(columns: u16, rows: u16, data_dir: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("tmux.conf"),
            "set -g default-terminal tmux-256color\nset -g history-limit 5000\n",
        )
        .unwrap();
        let tmux = Self { dir, target: "t" };
        let bin = assert_cmd::cargo::cargo_bin("oncall");
        let bin_dir = bin.parent().unwrap().display().to_string();
        let path = format!("{bin_dir}:{}", std::env::var("PATH").unwrap_or_default());
        let data = data_dir.display().to_string();
        let variables = [
            ("PATH", path.as_str()),
            ("HOME", data.as_str()),
            ("XDG_CONFIG_HOME", data.as_str()),
            ("ONCALL_DATA_DIR", data.as_str()),
            ("ONCALL_AGENT_TOOL_TIMEOUT", "2m"),
            ("TZ", "UTC"),
            ("LANG", "C.UTF-8"),
            ("PS1", "ready$ "),
        ];
        let mut shell = String::from("exec env -i TERM=\"$TERM\"");
        variables.iter().for_each(|(name, value)| shell.push_str(&format!(" {name}='{value}'")));
        shell.push_str(" sh");
        let size = [columns.to_string(), rows.to_string()];
        let root = env!("CARGO_MANIFEST_DIR");
        tmux.tmux(&["new-session", "-d", "-s", "t", "-x", &size[0], "-y", &size[1], "-c", root, &shell]);
        tmux.wait_for("ready$");
        tmux
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = self.try_tmux(arguments).unwrap_or_else(|error| {
            panic!("tmux does not run ({error}): install it with .ci/install test");
        });
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn try_tmux(&self, arguments: &[&str]) -> std::io::Result<Output> {
        let socket = self.dir.path().join("socket");
        let config = self.dir.path().join("tmux.conf");
        Command::new("tmux").arg("-u").arg("-S").arg(socket).arg("-f").arg(config).args(arguments).output()
    }

    /// Text as if typed.
    pub fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-t", self.target, "-l", "--", text]);
    }

    /// Keys by their names in tmux: `Enter`, `Escape`, `C-c`, `PageDown`.
    pub fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", self.target], keys].concat());
        // What follows an escape at once would be read as one key with it.
        if keys.contains(&"Escape") {
            std::thread::sleep(Duration::from_millis(150));
        }
    }

    /// A line for the shell.
    pub fn run(&self, line: &str) {
        self.text(line);
        self.keys(&["Enter"]);
    }

    /// What is on the screen.
    pub fn pane(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", self.target])
    }

    /// The same with everything that has scrolled out above, and colours.
    pub fn history(&self, colours: bool) -> String {
        let flags: &[&str] = if colours { &["-e"] } else { &[] };
        self.tmux(&[&["capture-pane", "-p", "-J", "-S", "-", "-t", self.target], flags].concat())
    }

    /// Waits until the screen holds a text.
    pub fn wait_for(&self, wanted: &str) -> String {
        self.wait_until(wanted, |pane| pane.contains(wanted))
    }

    pub fn wait_until(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let pane = self.pane();
            if is_there(&pane) {
                return pane;
            }
            assert!(started.elapsed() < PATIENCE, "no {what:?} on the screen:\n{pane}");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.tmux(&["resize-window", "-t", self.target, "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// The terminal's modes, as the shell finds them.
    pub fn modes(&self) -> Modes {
        let file = self.file("modes");
        let _ = std::fs::remove_file(&file);
        self.run(&format!("stty -g > {}; echo told", file.display()));
        // Typed ahead of the prompt, the answer stands behind it.
        self.wait_until("told", |pane| pane.lines().any(|line| line == "told" || line == "ready$ told"));
        self.run("clear");
        let format = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_flag}";
        Modes {
            stty: std::fs::read_to_string(file).unwrap(),
            screen: self.tmux(&["display-message", "-p", "-t", self.target, format]),
        }
    }

    /// A path in the terminal's own folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.try_tmux(&["kill-server"]);
    }
}
