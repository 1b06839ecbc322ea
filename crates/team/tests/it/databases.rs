//! The databases the suite runs on: a file for SQLite, and a PostgreSQL of the test's own on a private socket.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::skipped::skipped;

/// Where distributions keep PostgreSQL's programs; the newest version is taken.
const PLACES: [&str; 3] = ["/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt/postgresql"];

/// A PostgreSQL that ends with the test.
pub(crate) struct Postgres {
    server: Child,
    folder: TempDir,
    owner: Option<u32>,
    databases: u32,
}

impl Postgres {
    /// Starts one; none where it is not installed, which is said.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            skipped("PostgreSQL is not installed");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("cairn-pg-").tempdir_in("/tmp").unwrap();
        let owner = owner(folder.path());
        let data = folder.path().join("data");
        let made = run_as(&programs.join("initdb"), owner)
            .args(["--auth=trust", "--username=cairn", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success());
        let server = serve(&programs, folder.path(), owner);
        let started = Self { server, folder, owner, databases: 0 };
        started.wait(&programs);
        Some(started)
    }

    /// Ends it while it is in use, and starts it again.
    #[allow(dead_code, reason = "not every suite does")]
    pub(crate) fn restart(&mut self) {
        self.stop();
        let programs = programs().unwrap();
        self.server = serve(&programs, self.folder.path(), self.owner);
        self.wait(&programs);
    }

    /// Where its socket lies.
    #[allow(dead_code, reason = "not every suite asks")]
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn stop(&mut self) {
        // SIGINT is its fast shutdown: connections are cut, and no process of it stays.
        let _ = Command::new("kill").args(["-INT", &self.server.id().to_string()]).status();
        let _ = self.server.wait();
    }

    /// Waits until it answers: `pg_isready` itself waits, so this does not spin.
    fn wait(&self, programs: &Path) {
        let ready = || {
            let asked = Command::new(programs.join("pg_isready"))
                .arg("-h")
                .arg(self.folder.path())
                .args(["-t", "5", "-q"])
                .status();
            asked.is_ok_and(|status| status.success())
        };
        assert!((0..2_000).any(|_| ready()), "PostgreSQL did not start");
    }

    /// The address of a new, empty database.
    pub(crate) fn database(&mut self) -> String {
        self.databases += 1;
        let name = format!("suite{}", self.databases);
        let programs = programs().unwrap();
        let made = Command::new(programs.join("createdb"))
            .arg("-h")
            .arg(self.folder.path())
            .args(["-U", "cairn", &name])
            .status()
            .unwrap();
        assert!(made.success());
        format!("postgres://cairn@localhost/{name}?host={}", self.folder.path().display())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(programs: &Path, folder: &Path, owner: Option<u32>) -> Child {
    run_as(&programs.join("postgres"), owner)
        .arg("-D")
        .arg(folder.join("data"))
        .arg("-k")
        .arg(folder)
        .args([
            "-c",
            "listen_addresses=",
            "-c",
            "max_connections=200",
            "-c",
            "fsync=off",
            "-c",
            "log_min_messages=fatal",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn programs() -> Option<PathBuf> {
    let versions = PLACES.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten();
    let mut found: Vec<PathBuf> =
        versions.map(|version| version.path().join("bin")).filter(|bin| bin.join("initdb").exists()).collect();
    found.sort();
    found.pop()
}

/// PostgreSQL refuses to run as root: there the folder is given to another user, who runs it.
fn owner(folder: &Path) -> Option<u32> {
    let id = Command::new("id").arg("-u").output().unwrap();
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        return None;
    }
    let other = Command::new("id").args(["-u", "nobody"]).output().unwrap();
    let other: u32 = String::from_utf8_lossy(&other.stdout).trim().parse().unwrap();
    std::os::unix::fs::chown(folder, Some(other), None).unwrap();
    Some(other)
}

fn run_as(program: &Path, user: Option<u32>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command
}
