//! A real Postgres on loopback, empty, in a folder of its own.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const INSTALL: &str = "Postgres is needed for this test: apt-get install -y --no-install-recommends postgresql";
/// Postgres refuses to run as root; its package makes this user.
const SERVICE_USER: &str = "postgres";

/// A running server; dropped, it is stopped and its data are removed.
pub struct Postgres {
    port: u16,
    programs: PathBuf,
    data: PathBuf,
    /// Holds `data`; removed after the server has stopped.
    _folder: tempfile::TempDir,
}

impl Postgres {
    /// Starts a server. Panics with the reason when it cannot be had.
    pub fn start() -> Self {
        let programs = programs().unwrap_or_else(|| panic!("no initdb is installed; {INSTALL}"));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        if is_root() {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a folder that others enter");
            let made = Command::new("install").args(["-d", "-m", "700", "-o", SERVICE_USER]).arg(&data).output();
            check("install", made.expect("coreutils"));
        }
        let init = ["-D", text(&data), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C"];
        check("initdb", as_user(&programs.join("initdb"), &init));
        // The port is free when it is asked for; the server takes it at once.
        let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = socket.local_addr().expect("an address").port();
        drop(socket);
        let server = Self { port, programs, data, _folder: folder };
        let options = format!(
            "-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories='' -c fsync=off -c max_connections=100"
        );
        let log = server.data.join("log");
        server.control(&["-w", "-l", text(&log), "-o", &options, "start"]);
        server
    }

    /// A database of this name, made now.
    pub fn database(&self, name: &str) -> String {
        let port = self.port.to_string();
        let made = as_user(&self.programs.join("createdb"), &["-h", "127.0.0.1", "-p", &port, "-U", "postgres", name]);
        check("createdb", made);
        format!("postgres://postgres@127.0.0.1:{port}/{name}")
    }

    fn control(&self, arguments: &[&str]) {
        let all = [&["-D", text(&self.data)], arguments].concat();
        check("pg_ctl", as_user(&self.programs.join("pg_ctl"), &all));
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = as_user(&self.programs.join("pg_ctl"), &["-D", text(&self.data), "-m", "immediate", "-w", "stop"]);
    }
}

/// The folder of the newest server programs: Debian keeps them off the path.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let initdb = folders.iter().find_map(|folder| folder.join("initdb").canonicalize().ok())?;
    initdb.parent().map(Path::to_path_buf)
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("coreutils");
    id.stdout == b"0\n"
}

/// Runs a program, as the service's user when this is root. Its output goes to files, so that a server that stays does
/// not hold a pipe.
fn as_user(program: &Path, arguments: &[&str]) -> Output {
    let mut command = if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", SERVICE_USER, "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    let said = tempfile::NamedTempFile::new().expect("a temporary file");
    let output = || said.as_file().try_clone().expect("a handle");
    let status = command.args(arguments).current_dir("/").stdout(output()).stderr(output()).status();
    let status = status.unwrap_or_else(|error| panic!("cannot start {}: {error}; {INSTALL}", program.display()));
    let stderr = fs::read(said.path()).unwrap_or_default();
    Output { status, stdout: Vec::new(), stderr }
}

fn check(what: &str, output: Output) {
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
