//! Team memory as its members meet it: a server, two checkouts, and what the guide says.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::databases::Postgres;
use crate::stage::{Ran, bare, run};

/// A server that runs as a program, and what it printed at first.
pub struct Server {
    child: Child,
    pub address: String,
    pub invitation: String,
}

impl Server {
    pub fn start(home: &Path) -> Self {
        std::fs::create_dir_all(home).unwrap();
        let mut command = bare(home, &home.join(".claude"));
        command.args(["team", "serve", "--listen", "127.0.0.1:0"]);
        Self::of(&mut command)
    }

    /// One that is started otherwise, for the first time.
    pub fn of(command: &mut Command) -> Self {
        let (mut server, mut lines) = Self::listening(command);
        let line = lines.next().unwrap().unwrap();
        server.invitation = line.split("--invitation ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        server
    }

    /// One whose database knows members already: it prints no invitation.
    pub fn again(command: &mut Command) -> Self {
        Self::listening(command).0
    }

    fn listening(command: &mut Command) -> (Self, std::io::Lines<BufReader<std::process::ChildStdout>>) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.next().unwrap().unwrap().strip_prefix("listening on ").unwrap().to_owned();
        (Self { child, address, invitation: String::new() }, lines)
    }

    /// How long it has worked.
    pub fn worked(&self) -> std::time::Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let numbers: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = numbers[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        std::time::Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// Ends it as systemd would.
    pub fn stop(mut self) -> Option<i32> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // one that was stopped is gone already
        let _ = self.child.wait();
    }
}

/// A member's home and checkout.
pub struct Checkout {
    pub home: PathBuf,
}

impl Checkout {
    pub fn new(root: &Path, name: &str, remote: &str) -> Self {
        let home = root.join(name);
        std::fs::create_dir_all(home.join("project/.git")).unwrap();
        let config = format!("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = {remote}\n\tfetch = +refs/*\n");
        std::fs::write(home.join("project/.git/config"), config).unwrap();
        std::fs::write(home.join("project/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::create_dir_all(home.join("project/.git/objects")).unwrap();
        std::fs::create_dir_all(home.join("project/.git/refs")).unwrap();
        Self { home }
    }

    pub fn team(&self, args: &[&str]) -> Ran {
        run(bare(&self.home.join("project"), &self.home.join(".claude")).arg("team").args(args))
    }

    /// Where its team memory lies, as the program says.
    pub fn folder(&self) -> PathBuf {
        let told = self.team(&["status"]).stdout;
        PathBuf::from(told.lines().find_map(|line| line.strip_prefix("folder      ")).unwrap())
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.folder()).unwrap();
        std::fs::write(self.folder().join(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder().join(name)).ok()
    }
}

/// TEAM-1, TEAM-3, TEAM-8: the five minutes of the guide: serve, join, push, invite, pull, a conflict, and back again.
#[test]
fn two_members_share_what_they_know() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::start(&root.path().join("server"));
    let ada = Checkout::new(root.path(), "ada", "git@github.com:acme/rocket.git");
    let grace = Checkout::new(root.path(), "grace", "https://github.com/acme/rocket");
    assert!(ada.team(&["push"]).stderr.contains("not shared"), "nobody joins by cloning");
    let joined = ada.team(&["join", &server.address, "--invitation", &server.invitation, "--name", "Ada"]);
    assert!(joined.code == Some(0) && joined.stdout.contains("acme/rocket"), "{joined:?}");
    let kept = ada.home.join(".claude/cairn/team.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&kept).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    ada.write("deploy.md", "two approvals\n");
    let pushed = ada.team(&["push"]);
    assert!(pushed.stdout.contains("sent     deploy.md"), "{pushed:?}");
    let invited = ada.team(&["invite", "--level", "write"]).stdout;
    let code = invited.split("--invitation ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(grace.team(&["join", &server.address, "--invitation", code, "--name", "Grace"]).code, Some(0));
    assert!(grace.team(&["pull"]).stdout.contains("took     deploy.md"));
    assert_eq!(grace.read("deploy.md").unwrap(), "two approvals\n");

    ada.write("deploy.md", "three approvals\n");
    grace.write("deploy.md", "one approval\n");
    ada.team(&["push"]);
    let conflict = grace.team(&["push"]);
    assert!(conflict.stderr.contains("changed on both sides"), "{conflict:?}");
    let log = ada.team(&["log", "deploy.md"]).stdout;
    assert!(log.contains("version 2") && log.contains("+three approvals"), "{log}");
    assert_eq!(ada.team(&["restore", "deploy.md", "2"]).code, Some(0));
    ada.team(&["pull"]);
    assert_eq!(ada.read("deploy.md").unwrap(), "three approvals\n");

    let secret = ["ghp_", "x7Kp2mQ9vL4nT8", "wR3sY6bH1jD5fG0cZeA9uU"].concat();
    ada.write("keys.md", &secret);
    let refused = ada.team(&["push"]);
    assert!(refused.stderr.contains("keys.md") && refused.stderr.contains("github-pat"), "{refused:?}");
    assert!(!format!("{refused:?}").contains(&secret));

    let token = grace.team(&["token"]).stdout;
    assert!(grace.team(&["token", "--rotate"]).stdout != token);
    assert_eq!(ada.team(&["remove", "Grace"]).code, Some(0));
    assert_eq!(grace.team(&["pull"]).code, Some(3), "a removed member has no token that counts");
    assert_eq!(ada.team(&["leave"]).code, Some(0));
    assert!(ada.folder_is_kept());
    assert_eq!(server.stop(), Some(0));
}

impl Checkout {
    /// Whether the files are still there after leaving.
    fn folder_is_kept(&self) -> bool {
        let found = std::fs::read_dir(self.home.join(".claude/projects")).unwrap().flatten();
        found.into_iter().any(|project| project.path().join("memory/team/deploy.md").exists())
    }
}

/// TEAM-8: a backup of a running server's database is read into a new one, and its members' tokens still count.
#[test]
fn a_server_moves_by_backup() {
    let root = tempfile::tempdir().unwrap();
    let (old, new) = (root.path().join("old"), root.path().join("new"));
    let server = Server::start(&old);
    let ada = Checkout::new(root.path(), "ada", "git@example.org:acme/rocket.git");
    ada.team(&["join", &server.address, "--invitation", &server.invitation, "--name", "Ada"]);
    ada.write("a.md", "one");
    ada.team(&["push"]);
    let database = old.join(".claude/cairn/team-server.db");
    let file = root.path().join("backup.jsonl");
    let arguments = |what: &str, database: &Path| {
        let (file, database) = (file.display().to_string(), database.display().to_string());
        run(bare(&old, &old.join(".claude")).args(["team", what, &file, "--database", &database]))
    };
    assert_eq!(arguments("backup", &database).code, Some(0));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "it holds everything");
    server.stop();
    std::fs::create_dir_all(&new).unwrap();
    let moved = new.join("team.db");
    assert_eq!(arguments("restore-backup", &moved).code, Some(0));
    assert_ne!(arguments("restore-backup", &moved).code, Some(0), "only into an empty database");
}

/// TEAM-1: a token is not sent over plain HTTP to another machine, and an address that is none is told.
#[test]
fn a_token_does_not_travel_in_the_open() {
    let root = tempfile::tempdir().unwrap();
    let ada = Checkout::new(root.path(), "ada", "git@example.org:acme/rocket.git");
    for address in ["http://team.example.org", "team.example.org", "ftp://127.0.0.1"] {
        let ran = ada.team(&["join", address, "--token", "cairn_team_x_y"]);
        assert!(ran.code != Some(0) && ran.stderr.contains("address"), "{address}: {ran:?}");
    }
    let folder = Checkout::new(root.path(), "folder", "/srv/git/rocket.git");
    let ran = folder.team(&["join", "http://127.0.0.1:9", "--token", "x"]);
    assert!(ran.stderr.contains("folder on this machine"), "{ran:?}");
}

/// TEAM-5: a deletion travels, and with `teamDeletions` off the file comes back instead; no project's file says which.
#[test]
fn a_setting_of_the_user_says_whether_deletions_travel() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::start(&root.path().join("server"));
    let ada = Checkout::new(root.path(), "ada", "git@github.com:acme/rocket.git");
    ada.team(&["join", &server.address, "--invitation", &server.invitation, "--name", "Ada"]);
    ada.write("a.md", "one\n");
    ada.write("b.md", "a folder that is empty would come back\n");
    ada.team(&["push"]);
    let settings = ada.home.join(".claude/settings.json");
    std::fs::create_dir_all(ada.home.join("project/.claude")).unwrap();
    std::fs::write(ada.home.join("project/.claude/settings.json"), r#"{"teamDeletions": true}"#).unwrap();
    std::fs::write(&settings, r#"{"teamDeletions": false}"#).unwrap();
    std::fs::remove_file(ada.folder().join("a.md")).unwrap();
    assert!(ada.team(&["push"]).stdout.contains("took     a.md"));
    std::fs::write(&settings, "{}").unwrap();
    std::fs::remove_file(ada.folder().join("a.md")).unwrap();
    assert!(ada.team(&["push"]).stdout.contains("deleted  a.md"));
    assert_eq!(server.stop(), Some(0));
}

/// TEAM-3: two checkouts of one repository on one machine have a folder each; what one has not is not deleted for all.
#[test]
fn a_second_checkout_deletes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::start(&root.path().join("server"));
    let ada = Checkout::new(root.path(), "ada", "git@github.com:acme/rocket.git");
    ada.team(&["join", &server.address, "--invitation", &server.invitation, "--name", "Ada"]);
    ada.write("a.md", "one\n");
    ada.team(&["push"]);
    let token = ada.team(&["token"]).stdout;
    let again = ada.home.join("again");
    std::fs::create_dir_all(again.join(".git")).unwrap();
    std::fs::copy(ada.home.join("project/.git/config"), again.join(".git/config")).unwrap();
    let team = |args: &[&str]| run(bare(&again, &ada.home.join(".claude")).arg("team").args(args));
    assert_eq!(team(&["join", &server.address, "--token", token.trim()]).code, Some(0));
    let pushed = team(&["push"]).stdout;
    assert!(pushed.contains("took     a.md") && !pushed.contains("deleted"), "{pushed}");
    assert_eq!(server.stop(), Some(0));
}

/// TEAM-8: what goes wrong inside a server is told to whoever runs it, and not to its clients.
#[test]
fn troubles_of_a_server_are_for_whoever_runs_it() {
    let Some(mut postgres) = Postgres::start() else { return };
    let root = tempfile::tempdir().unwrap();
    let errors = root.path().join("errors");
    let mut command = bare(root.path(), &root.path().join(".claude"));
    command.args(["team", "serve", "--listen", "127.0.0.1:0", "--database", &postgres.database()]);
    let server = Server::of(command.stderr(std::fs::File::create(&errors).unwrap()));
    drop(postgres);
    let ada = Checkout::new(root.path(), "ada", "git@github.com:acme/rocket.git");
    let refused = ada.team(&["join", &server.address, "--invitation", &server.invitation, "--name", "Ada"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("cannot answer now"), "{refused:?}");
    let told = std::fs::read_to_string(&errors).unwrap();
    assert!(told.contains("a request failed error=") && !refused.stderr.contains("database"), "{told} {refused:?}");
    assert!(!told.contains(&server.invitation), "{told}");
}

/// TEAM-8: of two servers that are started on a new database each prints an invitation, and either counts, until there is a
/// first admin.
#[test]
fn a_second_server_does_not_take_the_firsts_invitation_back() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (Server::start(root.path()), Server::start(root.path()));
    let ada = Checkout::new(root.path(), "ada", "git@github.com:acme/rocket.git");
    let joined = ada.team(&["join", &first.address, "--invitation", &first.invitation, "--name", "Ada"]);
    assert_eq!(joined.code, Some(0), "{joined:?}");
    let eve = Checkout::new(root.path(), "eve", "git@github.com:acme/rocket.git");
    let late = eve.team(&["join", &second.address, "--invitation", &second.invitation, "--name", "Eve"]);
    assert_ne!(late.code, Some(0), "{late:?}");
}

/// TEAM-8: a lost machine's token is taken back, and a repository is removed with its history; files of members stay.
#[test]
fn tokens_and_repositories_can_be_taken_away() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::start(&root.path().join("server"));
    let ada = Checkout::new(root.path(), "ada", "git@github.com:acme/rocket.git");
    ada.team(&["join", &server.address, "--invitation", &server.invitation, "--name", "Ada"]);
    ada.write("deploy.md", "two approvals\n");
    ada.team(&["push"]);
    let invited = ada.team(&["invite"]).stdout;
    let code = invited.split("--invitation ").nth(1).unwrap().split(' ').next().unwrap();
    let grace = Checkout::new(root.path(), "grace", "https://github.com/acme/rocket");
    grace.team(&["join", &server.address, "--invitation", code, "--name", "Grace"]);
    let refused = grace.team(&["remove", "--repository", "acme/rocket"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("may not"), "{refused:?}");

    let removed = ada.team(&["remove", "--repository", "acme/rocket"]);
    assert!(removed.code == Some(0) && removed.stdout.contains("history"), "{removed:?}");
    assert_eq!(ada.team(&["pull"]).code, Some(0));
    assert_eq!(ada.read("deploy.md").as_deref(), Some("two approvals\n"));
    let missing = ada.team(&["remove", "--repository", "acme/other"]);
    assert!(missing.code != Some(0), "{missing:?}");

    let tokens = ada.team(&["token", "--list"]).stdout;
    let id = tokens.split(' ').next().unwrap();
    assert!(tokens.lines().count() == 1 && !id.is_empty(), "{tokens}");
    assert_eq!(ada.team(&["token", "--revoke", id]).code, Some(0));
    assert_eq!(ada.team(&["pull"]).code, Some(3));
}
