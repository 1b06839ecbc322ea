//! The sandbox, on the kernel that is there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tools::sandbox::{Confinement, Network, Sandbox, SandboxStatus, Sockets};

use super::place::{Place, guard, is_running, marked};
use crate::skipped::{skipped, skipped_on_this_machine};

/// A place whose commands run in a sandbox, with a home beside the project.
pub(crate) struct Confined {
    pub(crate) place: Place,
    pub(crate) home: PathBuf,
}

/// Says why something is left out, which is none where the kernel has namespaces, as others find out, and Landlock.
pub(crate) fn left_out(why: &str) {
    let unshared =
        std::process::Command::new("unshare").args(["--user", "--map-current-user", "--mount", "true"]).output();
    let has_namespaces = unshared.is_ok_and(|run| run.status.success());
    assert!(!has_namespaces || why.contains("Landlock"), "this should be here: {why}");
    skipped_on_this_machine(why);
}

impl Confined {
    pub(crate) async fn new() -> Option<Self> {
        Self::with(|confinement| confinement).await
    }

    pub(crate) async fn with(change: impl FnOnce(Confinement) -> Confinement) -> Option<Self> {
        let standing = SandboxStatus::find_out(Some(&guard())).await;
        if standing != SandboxStatus::Wholly {
            left_out(&format!("no sandbox here: {standing:?}"));
            return None;
        }
        let place = Place::new();
        let home = place.root.parent().unwrap().join("home");
        std::fs::create_dir_all(home.join(".ssh")).unwrap();
        std::fs::write(home.join(".ssh/id_rsa"), "a key\n").unwrap();
        let confinement = change(Confinement::working_in([place.root.clone()], Some(&home)));
        place.scope.set_sandbox(Some(Arc::new(Sandbox::new(confinement, standing))));
        Some(Self { place, home })
    }

    pub(crate) async fn done(&self, command: &str) -> String {
        self.place.done("Bash", json!({"command": command})).await
    }

    pub(crate) async fn failed(&self, command: &str) -> String {
        self.place.failed("Bash", json!({"command": command})).await
    }

    pub(crate) fn root(&self) -> &Path {
        &self.place.root
    }
}

/// SANDBOX-1: everything is read-only but the working directory and the temporary folder of the session.
#[tokio::test]
async fn files_are_changed_in_the_working_directory_and_nowhere_else() {
    let Some(confined) = Confined::new().await else { return };
    confined.done("echo here > file && mkdir -p sub && mv file sub/ && chmod 600 sub/file").await;
    assert_eq!(confined.place.content("sub/file"), "here\n");
    confined.done("echo kept > /tmp/file").await;
    assert_eq!(confined.done("cat /tmp/file").await, "kept", "the temporary folder is the session's");
    assert!(!Path::new("/tmp/file").exists());
    for path in [
        "/etc/x",
        "/usr/x",
        "/x",
        "/var/x",
        "/home/x",
        "/root/x",
        "/run/x",
        "/proc/sys/kernel/core_pattern",
        "/sys/x",
        "/dev/x",
    ] {
        let said = confined.failed(&format!("echo bad > {path}")).await;
        assert!(said.contains("Read-only file system") || said.contains("Permission denied"), "{path}: {said}");
    }
}

/// SANDBOX-1: what a command leaves behind does not open anything to the next one.
#[tokio::test]
async fn a_link_in_place_of_a_directory_opens_nothing() {
    let nested = |mut confinement: Confinement| {
        let root = confinement.writable[0].clone();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::create_dir(root.join("bin")).unwrap();
        confinement.readable.push(root.join("bin"));
        confinement.writable.push(root.join("sub"));
        confinement
    };
    let Some(confined) = Confined::with(nested).await else { return };
    let keys = confined.home.join(".ssh").display().to_string();
    // What is mounted cannot be moved away from inside, so somebody else has done it.
    for name in ["sub", "bin"] {
        std::fs::remove_dir(confined.root().join(name)).unwrap();
        std::os::unix::fs::symlink(&keys, confined.root().join(name)).unwrap();
    }
    std::os::unix::fs::symlink(&keys, confined.root().join(".git")).unwrap();
    for command in
        ["cat sub/id_rsa", "cat bin/id_rsa", "cat .git/id_rsa", &format!("cat {keys}/id_rsa"), "echo > sub/x"]
    {
        let said = confined.failed(command).await;
        assert!(said.contains("No such file or directory"), "{command}: {said}");
    }
    assert_eq!(std::fs::read_dir(&keys).unwrap().count(), 1);
}

/// SANDBOX-1, TRUST-6: a guarded path that a command makes is told about, wherever it is and however it is written.
#[tokio::test]
async fn a_guarded_path_that_was_made_is_told_about() {
    let Some(confined) = Confined::new().await else { return };
    confined.place.write(".vscode/tasks.json", "{}");
    std::os::unix::fs::symlink("nowhere", confined.root().join(".mcp.json")).unwrap();
    let command = "mkdir -p .husky a/b/.CLAUDE plain && touch .envrc a/.gitmodules && ln -s elsewhere .cairn && ! ln -sfn x .mcp.json && false";
    let output = confined.place.call("Bash", json!({"command": command})).await;
    let mut names: Vec<_> = output.made.iter().map(|made| made.path.strip_prefix(confined.root()).unwrap()).collect();
    names.sort();
    let expected = [".cairn", ".envrc", ".husky", "a/.gitmodules", "a/b/.CLAUDE"];
    assert_eq!(names, expected.map(Path::new));
    let output = confined.place.call("Bash", json!({"command": "touch other; rm -rf .vscode .husky"})).await;
    assert_eq!(output.made, Vec::new(), "what was there is not made");
    let left = [".envrc", ".husky", ".vscode/tasks.json"].map(|name| confined.root().join(name).exists());
    assert_eq!(left, [true; 3], "and cannot be removed any more");
}

/// SANDBOX-1: no process in it outlives its call, its session or its guard.
#[tokio::test]
async fn nobody_stays_behind_in_a_sandbox() {
    let Some(confined) = Confined::new().await else { return };
    let place = &confined.place;
    let said = confined.done(&marked("(setsid sleep 4000.001 &) ; trap '' TERM; echo done")).await;
    assert_eq!(said, "done\n[processes that were still running in the background were stopped]");
    assert!(!is_running("4000.001"));
    let stubborn = marked("trap '' TERM; (setsid sleep 4000.002 &); sleep 4000.002; sleep 4000.002");
    let said = place.failed("Bash", json!({"command": stubborn, "timeout": 300})).await;
    assert!(said.starts_with("Timed out"), "{said}");
    assert!(!is_running("4000.002"));
    assert_eq!(confined.failed("kill -34 $$").await, "Exit code 162 (ended by signal 34)");
    assert_eq!(confined.failed("kill -9 1; exit 7").await, "Exit code 7", "the guard inside is not to be killed");
    // Also when the guard outside is killed, which nobody inside can do.
    let sleep = marked("touch started; setsid sleep 4000.003");
    let call = place.call("Bash", json!({"command": sleep}));
    let kill = async {
        while !place.path("started").exists() {
            tokio::task::yield_now().await;
        }
        let guards = subagents_folder(std::process::id());
        assert_eq!(guards.len(), 1);
        rustix::process::kill_process(guards[0], rustix::process::Signal::KILL).unwrap();
    };
    let (output, ()) = futures_util::join!(call, kill);
    assert_eq!(output.text(), "The command was lost: its guard was killed.");
    while is_running("4000.003") {
        tokio::task::yield_now().await;
    }
}

/// SANDBOX-1: with the network allowed all of it is there, and with sockets allowed these.
#[tokio::test]
async fn an_allowed_network_is_all_of_it() {
    let all = |confinement| Confinement { network: Network::All, ..confinement };
    let Some(confined) = Confined::with(all).await else { return };
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    confined.done(&format!("exec 9<>/dev/tcp/127.0.0.1/{port}")).await;
    assert!(tcp.accept().is_ok());
    assert!(confined.failed("echo > /etc/x").await.contains("Read-only"));
    assert!(confined.failed(&format!("cat {}/.ssh/id_rsa", confined.home.display())).await.contains("No such file"));
    if let Some(python) = program("python3") {
        let listens = "import socket; socket.socket(socket.AF_UNIX).bind('mine')";
        confined.failed(&format!("{python} -c \"{listens}\"")).await;
        let sockets = |confinement| Confinement { sockets: Sockets::All, ..confinement };
        let Some(confined) = Confined::with(sockets).await else { return };
        confined.done(&format!("{python} -c \"{listens}\"")).await;
        assert!(confined.failed(&format!("exec 9<>/dev/tcp/127.0.0.1/{port}")).await.contains("refused"));
    }
}

/// SANDBOX-1: settings open and close single paths, the deeper one counting.
#[tokio::test]
async fn named_paths_are_opened_and_closed() {
    let named = |mut confinement: Confinement| {
        let root = confinement.writable[0].clone();
        let home = root.parent().unwrap().join("home");
        for path in ["notes/open", "notes/shut", "data"] {
            std::fs::create_dir_all(home.join(path)).unwrap();
            std::fs::write(home.join(path).join("file"), "text\n").unwrap();
        }
        std::fs::create_dir(root.join("fixed")).unwrap();
        std::fs::write(root.join("env"), "secret\n").unwrap();
        confinement.readable.extend([home.join("notes"), home.join("missing")]);
        confinement.hidden.extend([home.join("notes/shut"), root.join("env")]);
        confinement.writable.push(home.join("data"));
        confinement.read_only.push(root.join("fixed"));
        confinement
    };
    let Some(confined) = Confined::with(named).await else { return };
    let home = confined.home.display().to_string();
    assert_eq!(
        confined.done(&format!("cat {home}/notes/open/file; echo more >> {home}/data/file; ls {home}")).await,
        "text\ndata\nnotes"
    );
    assert_eq!(confined.done(&format!("ls {home}/notes/shut")).await, "The command succeeded and printed nothing.");
    for command in [
        format!("echo > {home}/notes/open/file"),
        "echo > fixed/x".into(),
        format!("touch {home}/x"),
        "rm -f env".into(),
        "cat env".into(),
    ] {
        confined.failed(&command).await;
    }
    assert_eq!(std::fs::read_to_string(confined.home.join("data/file")).unwrap(), "text\nmore\n");
    assert_eq!(confined.place.content("env"), "secret\n");
}

/// SANDBOX-1: a restricted agent sees what it was given, and nothing of anybody's home.
#[tokio::test]
async fn a_restricted_agent_sees_what_it_was_given() {
    let restricted = |confinement: Confinement| {
        let root = confinement.writable[0].clone();
        std::fs::create_dir(root.join("memory")).unwrap();
        let hidden = vec![root.parent().unwrap().to_owned()];
        Confinement { hidden, ..Confinement::restricted(vec![root.clone()], vec![root.join("memory")]) }
    };
    let Some(confined) = Confined::with(restricted).await else { return };
    confined.place.write("file", "text\n");
    assert_eq!(confined.done("cat file; echo kept > memory/note; cat memory/note").await, "text\nkept");
    assert!(confined.failed("echo > file").await.contains("Read-only"));
    assert!(confined.failed("cat ../home/.ssh/id_rsa").await.contains("No such file"));
}

/// SANDBOX-1: the user's tools work in it, also stand-ins that find the real program elsewhere in the home, for restricted
/// agents too; what lies beside them and holds keys is not there.
#[tokio::test]
async fn the_users_tools_work_and_their_keys_are_not_there() {
    const TOOLS: [(&str, &str, &str); 6] = [
        (".pyenv/shims/python3", ".pyenv/libexec/pyenv", ".pyenv/versions/3.13/bin/python3"),
        (".cargo/bin/cargo", ".rustup/settings.toml", ".rustup/toolchains/stable/bin/cargo"),
        (".asdf/shims/ruby", ".asdf/bin/asdf", ".asdf/installs/ruby/3/bin/ruby"),
        (".volta/bin/node", ".volta/bin/volta-shim", ".volta/tools/image/node/22/bin/node"),
        (".local/share/mise/shims/go", ".local/bin/mise", ".local/share/mise/installs/go/1/bin/go"),
        (".sdkman/candidates/java/current/bin/java", ".sdkman/etc/config", ".sdkman/candidates/java/21/bin/java"),
    ];
    const KEYS: &str = ".cargo/credentials.toml .npmrc .gem/credentials .pub-cache/credentials.json .config/gh/hosts.yml \
        .local/share/uv/credentials/x .dotnet/corefx/x .npm-global/etc/npmrc .docker/config.json .aws/credentials .kube/config \
        .netrc .pypirc .m2/settings.xml .gradle/gradle.properties .composer/auth.json .config/pip/pip.conf .git-credentials \
        .config/mise/config.toml .terraform.d/credentials.tfrc.json .ssh/id_rsa .gnupg/private-keys-v1.d/x .bash_history";
    let furnish = |home: &Path| {
        let put = |name: &str, text: &str| {
            std::fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            std::fs::write(home.join(name), text).unwrap();
            std::fs::set_permissions(home.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        for (shim, through, real) in TOOLS {
            let (through, to) = (home.join(through), home.join(real));
            put(shim, &format!("#!/bin/sh\n[ -r {} ] && exec {}\n", through.display(), to.display()));
            put(through.strip_prefix(home).unwrap().to_str().unwrap(), "plain\n");
            put(real, &format!("#!/bin/sh\necho {real}\n"));
        }
        KEYS.split_whitespace().for_each(|name| put(name, "token = 'a key'\n"));
    };
    for restricted in [false, true] {
        let with_tools = |confinement: Confinement| {
            let (root, hidden) = (confinement.writable[0].clone(), confinement.hidden.clone());
            let home = root.parent().unwrap().join("home");
            furnish(&home);
            match restricted {
                false => Confinement::working_in([root], Some(&home)),
                true => Confinement { hidden, ..Confinement::restricted(vec![], vec![root]) },
            }
        };
        let Some(confined) = Confined::with(with_tools).await else { return };
        let home = confined.home.display();
        for (shim, _, real) in TOOLS {
            let (folder, name) = shim.rsplit_once('/').unwrap();
            // The guard looks at the path it is started with.
            let own = vec![("PATH".to_owned(), format!("{home}/{folder}:{home}/.local/bin:/usr/bin:/bin"))];
            let environment = tools::Environment { given: own.into_iter().collect(), ..Default::default() };
            let scope = confined.place.scope.clone().with_environment(environment);
            let call = tools::ToolCall::new("Bash", json!({"command": name}));
            let said = tools::run_all(vec![call], &tools::standard(), &scope, |_, _| {}).await.remove(0).text();
            assert_eq!(said, real, "{shim}, restricted: {restricted}");
        }
        for name in KEYS.split_whitespace() {
            let said = confined.failed(&format!("cat {home}/{name}")).await;
            assert!(!said.contains("a key"), "{name}: {said}");
        }
    }
}

/// SANDBOX-1: whoever ran into the sandbox is told so, and which way there is.
#[tokio::test]
async fn what_was_denied_is_told() {
    let Some(confined) = Confined::new().await else { return };
    let said = confined.failed("echo > /etc/x").await;
    assert!(said.contains("[this ran in a sandbox: it could write only below "), "{said}");
    assert!(said.ends_with("it can run outside with dangerouslyDisableSandbox, and the user is asked]"), "{said}");
    let said = confined.failed("echo > /dev/udp/192.0.2.1/53").await;
    assert!(said.contains("it had no network but a loopback of its own"), "{said}");
    assert_eq!(confined.failed("false").await, "Exit code 1", "what has nothing to do with it is not told so");
    let outside =
        json!({"command": format!("cat {}/.ssh/id_rsa", confined.home.display()), "dangerouslyDisableSandbox": true});
    assert_eq!(confined.place.done("Bash", outside).await, "a key");
}

/// SANDBOX-1: `cargo test` of a small crate runs in it.
#[tokio::test]
async fn a_small_crate_is_tested_in_it() {
    let sysroot = std::process::Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
        .args(["--print", "sysroot"])
        .output();
    let Ok(sysroot) = sysroot.map(|output| PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())) else {
        return skipped_on_this_machine("there is no rustc that this user can run");
    };
    let tools = sysroot.clone();
    let with_tools = move |mut confinement: Confinement| {
        confinement.readable.push(tools);
        confinement
    };
    let Some(confined) = Confined::with(with_tools).await else { return };
    confined.place.write("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    confined.place.write("src/lib.rs", "#[test]\nfn it_works() {\n    assert_eq!(2 + 2, 4);\n}\n");
    let sysroot = sysroot.display();
    let test = format!(
        "export PATH={sysroot}/bin:/usr/bin:/bin; unset RUSTC CARGO_HOME CARGO_TARGET_DIR; HOME={} cargo test --offline",
        confined.home.display()
    );
    let said = confined.place.done("Bash", json!({"command": test, "timeout": 300_000})).await;
    assert!(said.contains("test it_works ... ok"), "{said}");
}

/// SANDBOX-1: and so does `npm test` of a small package.
#[tokio::test]
async fn a_small_package_is_tested_in_it() {
    let Some(confined) = Confined::new().await else { return };
    if program("npm").is_none() {
        return;
    }
    confined
        .place
        .write("package.json", r#"{"name": "small", "version": "1.0.0", "scripts": {"test": "node --test"}}"#);
    confined
        .place
        .write("small.test.js", "require('node:test')('it works', () => require('assert').equal(2 + 2, 4));\n");
    let test = format!("HOME={} npm test", confined.home.display());
    let said = confined.place.done("Bash", json!({"command": test, "timeout": 300_000})).await;
    assert!(said.contains("pass 1") && said.contains("fail 0"), "{said}");
}

/// The processes that a process has started.
fn subagents_folder(parent: u32) -> Vec<rustix::process::Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    let is_subagent = |number: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(1) == Some(&parent.to_string())
    };
    numbers.filter(is_subagent).filter_map(rustix::process::Pid::from_raw).collect()
}

/// Where a program is; without it the test is skipped.
pub(crate) fn program(name: &str) -> Option<String> {
    let output = std::process::Command::new("bash").args(["-c", &format!("command -v {name}")]).output().unwrap();
    let path = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    // A stand-in below a home that is not shown is of no use.
    let path = if path.contains("/shims/") { format!("/usr/bin/{name}") } else { path };
    if path.is_empty() || !Path::new(&path).exists() {
        skipped(&format!("there is no {name}"));
        return None;
    }
    Some(path)
}

/// SANDBOX-1: where there is no sandbox, commands run without one and are not taken for confined; unless they must be.
#[tokio::test]
async fn without_a_sandbox_nothing_is_taken_for_confined() {
    use tools::permission::ConfinementLevel as How;
    use tools::sandbox::SandboxExit;
    let none = || SandboxStatus::No { why: "a test".into() };
    let place = Place::new();
    let working = || Confinement::working_in([place.root.clone()], None);
    let sandbox = Sandbox::new(working(), none());
    assert_eq!(sandbox.confined("ls", SandboxExit::No), How::No);
    place.scope.set_sandbox(Some(Arc::new(sandbox)));
    assert_eq!(place.done("Bash", json!({"command": "echo out"})).await, "out");
    place.scope.set_sandbox(Some(Arc::new(Sandbox::restricted(vec![], vec![place.root.clone()], none()))));
    let said = place.failed("Bash", json!({"command": "echo out", "dangerouslyDisableSandbox": true})).await;
    assert_eq!(said, "Commands run in a sandbox or not at all, and there is none: a test.");
    let said = place.failed("Bash", json!({"command": "echo out", "run_in_background": true})).await;
    assert!(said.starts_with("Commands run in a sandbox or not at all"), "{said}");
    // All promises, and then one fewer.
    let whole = || Sandbox::new(working(), SandboxStatus::Wholly);
    assert_eq!(whole().confined("ls", SandboxExit::No), How::Wholly);
    assert_eq!(whole().confined("ls", SandboxExit::Yes), How::No);
    assert_eq!(whole().closed().confined("ls", SandboxExit::Yes), How::Wholly);
    assert_eq!(whole().ask_because("a test").confined("ls", SandboxExit::No), How::Partly);
    let home = Confinement::working_in([PathBuf::from("/home/me")], Some(Path::new("/home/me")));
    assert_eq!(
        Sandbox::new(home, SandboxStatus::Wholly).confined("ls", SandboxExit::No),
        How::Partly,
        "all of the home is in it"
    );
    assert_eq!(SandboxStatus::find_out(None).await.confined(), How::No);
    assert_eq!(SandboxStatus::find_out(Some(Path::new("/bin/false"))).await.confined(), How::No);
}

/// SANDBOX-1: folders of the system show in a sandbox what they hold, also where the view is put together.
#[tokio::test]
async fn folders_of_the_system_show_what_they_hold() {
    let Some(confined) = Confined::new().await else { return };
    for folder in ["/mnt", "/media", "/srv", "/opt"] {
        let listing = std::process::Command::new("ls").args(["-A", folder]).output().unwrap();
        let held = String::from_utf8(listing.stdout).unwrap();
        let shown = confined.done(&format!("echo held; ls -A {folder}")).await;
        assert!(shown.starts_with(format!("held\n{held}").trim_end()), "{folder}: {shown}");
        assert_eq!(shown.matches('\n').count(), held.matches('\n').count(), "{folder}: {shown}");
    }
}
