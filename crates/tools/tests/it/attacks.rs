//! Attempts to get out of the sandbox, on the kernel that is there: from a shell, an interpreter and a static binary.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tools::sandbox::{Confinement, Sandbox, SandboxStatus};

use super::sandbox::{Confined, program};
use crate::skipped::{skipped, skipped_on_this_machine};

/// SANDBOX-1: from a shell, nothing outside is reached.
#[tokio::test]
async fn a_shell_does_not_get_out() {
    let Some(stage) = Attacked::new().await else { return };
    let script = include_str!("../attacks/attacks.sh");
    stage.holds("bash attacks.sh", script, "attacks.sh").await;
}

/// SANDBOX-1: nor from an interpreter.
#[tokio::test]
async fn python_does_not_get_out() {
    let Some(stage) = Attacked::new().await else { return };
    let Some(python) = program("python3") else { return };
    stage.holds(&format!("{python} attacks.py"), include_str!("../attacks/attacks.py"), "attacks.py").await;
}

/// SANDBOX-1: nor from a program that needs no library and talks to the kernel alone.
#[tokio::test]
async fn a_static_binary_does_not_get_out() {
    let Some(stage) = Attacked::new().await else { return };
    let Some(compiler) = program("gcc") else { return };
    let source = stage.confined.place.write("attacks.c", include_str!("../attacks/attacks.c"));
    let built = std::process::Command::new(compiler)
        .args(["-static", "-o"])
        .arg(stage.confined.root().join("attacks"))
        .arg(source)
        .status()
        .unwrap();
    if !built.success() {
        return skipped("the compiler makes no static programs");
    }
    stage.holds("./attacks", "", "empty").await;
}

/// SANDBOX-1: the same for whoever is not root, where this is root.
#[test]
fn an_ordinary_user_is_held_as_well() {
    as_ordinary_user(&["it::sandbox::", "it::sandbox_keeps::", "it::attacks::"], &[]);
}

/// A folder that is not in `/tmp`, of which a confined command has its own, wherever this is built.
pub(crate) fn elsewhere() -> &'static str {
    let built = env!("CARGO_TARGET_TMPDIR");
    if built.starts_with("/tmp/") { "/opt" } else { built }
}

/// Runs tests as somebody who is not root, where this is root, with these variables.
pub(crate) fn as_ordinary_user(tests: &[&str], variables: &[(&str, &str)]) {
    if !rustix::process::geteuid().is_root() {
        return skipped_on_this_machine("only root can become somebody else");
    }
    if program("setpriv").is_none() {
        return;
    }
    const NOBODY: u32 = 65_534;
    let directory = tempfile::tempdir_in(elsewhere()).unwrap();
    std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(tests)
        .args(["--nocapture", "--test-threads=1"])
        .env("TMPDIR", directory.path())
        .env("SANDBOX_OUT", directory.path())
        .env("HOME", directory.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("test result: ok"), "{said}");
}

/// SANDBOX-1: where namespaces are refused, Landlock holds what it can.
#[tokio::test]
async fn landlock_alone_holds_files_keys_sockets_and_signals() {
    let Some(mut stage) = Attacked::new().await else { return };
    let place = &stage.confined.place;
    let confinement = Confinement::working_in([place.root.clone()], Some(&stage.confined.home));
    let standing = SandboxStatus::Partly { why: "a test".into() };
    place.scope.set_sandbox(Some(Arc::new(Sandbox::new(confinement, standing))));
    let (out, port) = (stage.outside.path().display(), stage.tcp.local_addr().unwrap().port());
    stage.confined.done("echo good > new && mkdir d && mv new d/ && cat d/new > /dev/null").await;
    for command in [
        format!("echo bad > {out}/file"),
        format!("touch {out}/new"),
        format!("rm {out}/file"),
        format!("ln {out}/file hard"),
        "echo bad > old-link".to_owned(),
        "cat old-key".to_owned(),
        format!("ls {}", stage.confined.home.display()),
        format!("exec 9<>/dev/tcp/127.0.0.1/{port}"),
        format!("kill {}", stage.outer.id()),
        format!("cat /proc/{}/environ", stage.outer.id()),
        "unshare -Urm true".to_owned(),
    ] {
        let said = stage.confined.failed(&command).await;
        assert!(
            ["ermission denied", "not permitted", "cross-device link"].iter().any(|word| said.contains(word)),
            "{command}: {said}"
        );
    }
    assert!(stage.outer.try_wait().unwrap().is_none());
    assert_eq!(std::fs::read_to_string(stage.outside.path().join("file")).unwrap(), "as it was\n");
}

/// Everything that an attack aims at.
struct Attacked {
    confined: Confined,
    outside: tempfile::TempDir,
    outer: std::process::Child,
    tcp: std::net::TcpListener,
    udp: std::net::UdpSocket,
    sockets: Vec<UnixListener>,
    name: String,
}

impl Attacked {
    async fn new() -> Option<Self> {
        let confined = Confined::new().await?;
        let place = &confined.place;
        let parent = std::env::var_os("SANDBOX_OUT").unwrap_or_else(|| elsewhere().into());
        let outside = tempfile::tempdir_in(parent).unwrap();
        std::fs::write(outside.path().join("file"), "as it was\n").unwrap();
        let key = confined.home.join(".ssh/id_rsa");
        for name in [".git/config", ".git/hooks/x", "deep/er/.Git/config", ".envrc", ".claude/settings.json"] {
            place.write(name, "guarded\n");
        }
        std::fs::remove_dir_all(place.path(".git")).unwrap();
        let made = std::process::Command::new("bash")
            .args(["-c", "git init -q . && git -c user.name=x -c user.email=x commit -q --allow-empty -m x"])
            .current_dir(&place.root)
            .status()
            .unwrap();
        assert!(made.success());
        std::fs::write(place.path(".git/config"), "[core]\n\tbare = false\n").unwrap();
        place.write("plain", "plain\n");
        std::fs::create_dir(place.path("other")).unwrap();
        std::fs::hard_link(place.path(".envrc"), place.path("alias")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("file"), place.path("old-link")).unwrap();
        std::os::unix::fs::symlink(&key, place.path("old-key")).unwrap();
        let name = format!("cairn-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let sockets = vec![
            UnixListener::bind(place.path("socket")).unwrap(),
            UnixListener::bind(outside.path().join("socket")).unwrap(),
            UnixListener::bind_addr(&address).unwrap(),
        ];
        let outer = std::process::Command::new("sleep").arg("1000").env("NOT_FOR_COMMANDS", "1").spawn().unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        Some(Self { confined, outside, outer, tcp, udp, sockets, name })
    }

    /// Runs an attack, and looks at what came of it from both sides.
    async fn holds(mut self, command: &str, script: &str, name: &str) {
        self.confined.place.write(name, script);
        let before = listing(self.outside.path());
        let guarded = self.guarded();
        let variables = format!(
            "export OUT={} SECRET_FILE={} HOME_DIRECTORY={} TCP={} UDP={} ABSTRACT={} OUTER={} SHARED=4242",
            self.outside.path().display(),
            self.confined.home.join(".ssh/id_rsa").display(),
            self.confined.home.display(),
            self.tcp.local_addr().unwrap().port(),
            self.udp.local_addr().unwrap().port(),
            self.name,
            self.outer.id(),
        );
        let output = self.confined.place.call("Bash", json!({"command": format!("{variables}; {command}")})).await;
        let said = output.text();
        println!("{said}");
        let broken: Vec<&str> =
            said.lines().filter(|line| line.starts_with("BROKEN") || line.starts_with("FAILS")).collect();
        assert!(broken.is_empty(), "{broken:#?}");
        assert!(said.lines().any(|line| line == "end"), "it did not come to its end: {said}");
        assert!(said.lines().filter(|line| line.starts_with("held")).count() > 25, "{said}");
        assert_eq!(listing(self.outside.path()), before, "nothing outside has changed");
        assert_eq!(self.guarded(), guarded, "nothing guarded has changed");
        assert_eq!(output.made, Vec::new());
        assert!(self.outer.try_wait().unwrap().is_none(), "who runs outside still runs");
        self.tcp.set_nonblocking(true).unwrap();
        self.udp.set_nonblocking(true).unwrap();
        assert!(self.tcp.accept().is_err(), "nobody came by TCP");
        assert!(self.udp.recv_from(&mut [0; 8]).is_err(), "nothing came by UDP");
        for socket in &self.sockets {
            socket.set_nonblocking(true).unwrap();
            assert!(socket.accept().is_err(), "nobody came to {socket:?}");
        }
    }

    fn guarded(&self) -> Vec<String> {
        [".git", "deep/er/.Git", ".envrc", ".claude", "alias"]
            .iter()
            .flat_map(|name| listing(&self.confined.root().join(name)))
            .collect()
    }
}

impl Drop for Attacked {
    fn drop(&mut self) {
        let _ = self.outer.kill();
        let _ = self.outer.wait();
    }
}

/// Everything at and below a path: name, kind, mode, owner, content.
fn listing(path: &Path) -> Vec<String> {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    let content = if metadata.is_file() { std::fs::read(path).unwrap() } else { Vec::new() };
    let (mode, owner) = (metadata.permissions().mode(), metadata.uid());
    let mut all = vec![format!("{} {mode:o} {owner} {}", path.display(), String::from_utf8_lossy(&content))];
    if metadata.is_dir() {
        let mut entries: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        all.extend(entries.iter().flat_map(|entry| listing(entry)));
    }
    all
}
