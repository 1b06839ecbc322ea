//! A stage for commands that may only look: a project, and around it everything that they must not reach.
//!
//! Each secret holds [`SECRET`], so one look at an output tells whether any was read. Whatever can be changed from outside is
//! in a [`Stage::picture`], with the times of change that the kernel keeps: two that are equal mean that nothing happened.

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::json;
use tools::permission::{ReadOnlyView, Rights, Wall};
use tools::{Output, Scope, ToolCall, run_all, standard};

use super::place::guard;
use super::sandbox::left_out;

/// What stands in every secret, and nowhere else.
pub(crate) const SECRET: &str = "sEcReT-";

/// The same as programs print it that do not print text: base64, hexadecimal, backwards, letter by letter.
const DISGUISED: [&str; 6] =
    ["c0VjUmVU", "734563526554", "7345 6352 6554", "-TeRcEs", "73 45 63 52 65 54", "s   E   c   R"];

/// A variable of commands by which their processes are told from others.
const MARK: &str = "LOOKING_MARK";

pub(crate) struct Stage {
    pub(crate) scope: Scope,
    /// Where commands run.
    pub(crate) project: PathBuf,
    pub(crate) home: PathBuf,
    /// A directory beside the project.
    pub(crate) sibling: PathBuf,
    /// A process of the same user, with secrets in its environment.
    pub(crate) victim: Child,
    tcp: std::net::TcpListener,
    udp: std::net::UdpSocket,
    streams: Vec<UnixListener>,
    datagrams: Vec<UnixDatagram>,
    /// Files in folders that everybody shares.
    shared: Vec<tempfile::NamedTempFile>,
    memory: Option<String>,
    name: String,
    _directory: tempfile::TempDir,
}

impl Stage {
    /// The stage, where the kernel can hold commands to looking.
    pub(crate) async fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(directory.path()).unwrap();
        let (project, home, sibling) = (root.join("project"), root.join("home"), root.join("sibling"));
        for folder in [&project, &home, &sibling] {
            std::fs::create_dir(folder).unwrap();
        }
        let scope = Scope::new(&project, root.join("temporary")).with_guard(guard()).with_home(home.clone());
        scope.find_wall().await;
        if scope.wall() != Wall::Whole {
            left_out(&format!("commands cannot be held to looking here: {:?}", scope.no_wall()));
            return None;
        }
        let name = format!("cairn-looking-{}-{}", std::process::id(), root.file_name().unwrap().display());
        lay_out(&project, &home, &sibling);
        let listener = |path: PathBuf| UnixListener::bind(path).unwrap();
        let abstractly = |kind: &str| SocketAddr::from_abstract_name(format!("{name}-{kind}")).unwrap();
        let streams = vec![
            listener(project.join("stream")),
            listener(sibling.join("stream")),
            UnixListener::bind_addr(&abstractly("stream")).unwrap(),
        ];
        let datagrams = vec![
            UnixDatagram::bind(project.join("datagram")).unwrap(),
            UnixDatagram::bind(sibling.join("datagram")).unwrap(),
            UnixDatagram::bind_addr(&abstractly("datagram")).unwrap(),
        ];
        let victim = Command::new("sleep")
            .arg("1000")
            .env("API_KEY", format!("{SECRET}environ"))
            .current_dir(&sibling)
            .spawn()
            .unwrap();
        let shared = ["/tmp", "/var/tmp", "/dev/shm"].into_iter().filter(|folder| Path::new(folder).is_dir());
        let shared = shared.map(|folder| {
            let file = tempfile::NamedTempFile::new_in(folder).unwrap();
            std::fs::write(file.path(), format!("{SECRET}shared\n")).unwrap();
            file
        });
        let made = Command::new("ipcmk").args(["-M", "64", "-p", "0666"]).output();
        let memory = made.ok().and_then(|made| {
            String::from_utf8_lossy(&made.stdout)
                .trim()
                .rsplit(' ')
                .next()
                .map(str::to_owned)
                .filter(|id| !id.is_empty())
        });
        Some(Self {
            scope,
            victim,
            tcp: std::net::TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: std::net::UdpSocket::bind("127.0.0.1:0").unwrap(),
            streams,
            datagrams,
            shared: shared.collect(),
            memory,
            name,
            project,
            home,
            sibling,
            _directory: directory,
        })
    }

    /// Runs a command that may only look, for at most this long.
    pub(crate) async fn look_for(&self, command: &str, milliseconds: u64) -> Output {
        let looking = ReadOnlyView { hidden: vec![self.project.join(".env")], readable: Vec::new() };
        let input = json!({"command": command, "timeout": milliseconds});
        let call = ToolCall { rights: Rights::ReadOnly(looking), ..ToolCall::new("Bash", input) };
        run_all(vec![call], &standard(), &self.scope, |_, _| {}).await.remove(0)
    }

    /// Runs a command that may only look, and returns what it says.
    pub(crate) async fn look(&self, command: &str) -> String {
        self.look_for(&format!("{}\n{command}", self.variables()), 60_000).await.text()
    }

    /// What attacks aim at, by the names of variables.
    pub(crate) fn targets(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Path| path.display().to_string();
        let shared = |index: usize| self.shared.get(index).map_or("/none".into(), |file| path(file.path()));
        vec![
            ("P", path(&self.project)),
            ("H", path(&self.home)),
            ("OUT", path(&self.sibling)),
            ("VICTIM", self.victim.id().to_string()),
            ("TEST", std::process::id().to_string()),
            ("TCP", self.tcp.local_addr().unwrap().port().to_string()),
            ("UDP", self.udp.local_addr().unwrap().port().to_string()),
            ("ABSTRACT", self.name.clone()),
            ("SHM", self.memory.clone().unwrap_or("0".into())),
            ("T1", shared(0)),
            ("T2", shared(1)),
            ("T3", shared(2)),
        ]
    }

    /// The line that sets these variables, and the one by which processes are known.
    pub(crate) fn variables(&self) -> String {
        let targets = self.targets();
        let set = targets.iter().map(|(name, value)| format!(" {name}={value}")).collect::<String>();
        format!("export {MARK}={}{set}", self.name)
    }

    /// Everything outside of a command's own temporary folder that it could change.
    pub(crate) fn picture(&self) -> BTreeMap<String, String> {
        let mut picture = BTreeMap::new();
        for root in [&self.project, &self.home, &self.sibling] {
            tree(root, &mut picture);
        }
        self.shared.iter().for_each(|file| tree(file.path(), &mut picture));
        for device in ["/dev/null", "/dev/zero", "/dev/full"] {
            tree(Path::new(device), &mut picture);
        }
        picture.insert("host name".into(), std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap());
        for process in [self.victim.id(), std::process::id()] {
            picture.insert(format!("process {process}"), process_state(process));
        }
        if let Some(id) = &self.memory {
            let all = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
            let ours = all.lines().find(|line| line.split_whitespace().nth(1) == Some(id));
            picture.insert("shared memory".into(), ours.unwrap_or("gone").to_owned());
        }
        picture
    }

    /// Fails if anything outside has been changed since, reached, or left running; `doing` says by what.
    pub(crate) fn check(&mut self, before: &BTreeMap<String, String>, doing: &str) {
        let after = self.picture();
        let differs = |(key, value): &(&String, &String)| before.get(*key) != Some(*value);
        let changed: Vec<_> = after.iter().filter(differs).collect();
        let gone: Vec<_> = before.keys().filter(|key| !after.contains_key(*key)).collect();
        assert!(changed.is_empty() && gone.is_empty(), "changed: {changed:#?}\ngone: {gone:#?}\nby one of:\n{doing}");
        assert!(self.victim.try_wait().unwrap().is_none(), "who runs outside was stopped, by one of:\n{doing}");
        self.tcp.set_nonblocking(true).unwrap();
        self.udp.set_nonblocking(true).unwrap();
        assert!(self.tcp.accept().is_err(), "somebody came by TCP, from one of:\n{doing}");
        assert!(self.udp.recv_from(&mut [0; 8]).is_err(), "something came by UDP, from one of:\n{doing}");
        for socket in &self.streams {
            socket.set_nonblocking(true).unwrap();
            assert!(socket.accept().is_err(), "somebody came to {socket:?}, from one of:\n{doing}");
        }
        for socket in &self.datagrams {
            socket.set_nonblocking(true).unwrap();
            assert!(socket.recv(&mut [0; 8]).is_err(), "something came to {socket:?}, from one of:\n{doing}");
        }
        assert_eq!(self.running(), Vec::<String>::new(), "still running, from one of:\n{doing}");
    }

    /// Processes that a command has left.
    pub(crate) fn running(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.name);
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let ours = processes.filter(|process| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        });
        ours.map(|process| std::fs::read_to_string(process.join("cmdline")).unwrap_or_default()).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        if let Some(id) = &self.memory {
            let _ = Command::new("ipcrm").args(["-m", id]).output();
        }
    }
}

/// Whether a secret stands in what was printed, plainly or in disguise.
pub(crate) fn tells_a_secret(said: &str) -> bool {
    said.contains(SECRET) || DISGUISED.iter().any(|disguise| said.contains(disguise))
}

/// Runs a script where everything is allowed.
pub(crate) fn outside(directory: &Path, script: &str) -> String {
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_PAGER", "cat");
    for (name, value) in [("NAME", "x"), ("EMAIL", "x@x")] {
        bash.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Puts files, secrets and hostile repositories in place.
fn lay_out(project: &Path, home: &Path, sibling: &Path) {
    let write = |path: PathBuf, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for name in [".ssh/id_rsa", ".aws/credentials", ".netrc", ".bash_history"] {
        write(home.join(name), &format!("{SECRET}home\n"));
    }
    write(home.join(".bashrc"), "# as it was\n");
    write(sibling.join("secret"), &format!("{SECRET}sibling\n"));
    write(sibling.join("file"), "as it was\n");
    for name in ["file", "README.md", "data.txt", "sub/file", "x work/a", "empty/.keep"] {
        write(project.join(name), "as it was\nx 1\n");
    }
    for name in ["evil.sh", "0/ls", "0/git"] {
        write(project.join(name), "#!/bin/sh\ntouch pwned \"$OUT/pwned\" \"$H/pwned\"\n");
        std::fs::set_permissions(project.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    symlink(sibling.join("secret"), project.join("out")).unwrap();
    symlink(home.join(".ssh/id_rsa"), project.join("sub/out")).unwrap();
    symlink(sibling, project.join("outside")).unwrap();
    outside(
        project,
        "git init -q . && echo '* diff=x filter=x' > .gitattributes && git add -A && git commit -qm one && \
         echo more >> file && git commit -qam two && echo most >> file && git init -q nested && cd nested && echo 1 > f && \
         git add f && git commit -qm 1 && echo 2 > f && git commit -qam 2 && cd .. && \
         git update-index --add --cacheinfo 160000,$(git -C nested rev-parse HEAD~1),nested && git commit -qm A && \
         git update-index --cacheinfo 160000,$(git -C nested rev-parse HEAD),nested && git commit -qm B",
    );
    let hostile = "\n[core]\n\tfsmonitor = ./evil.sh\n\tpager = ./evil.sh\n\tsshCommand = ./evil.sh\n\teditor = ./evil.sh\n[diff]\n\texternal = \
         $P/evil.sh\n\tsubmodule = diff\n[diff \"x\"]\n\ttextconv = $P/evil.sh\n\tcommand = $P/evil.sh\n[filter \"x\"]\n\tclean = $P/evil.sh\n\tsmudge = \
         $P/evil.sh\n[alias]\n\tx = !./evil.sh\n[pager]\n\tlog = ./evil.sh\n[credential]\n\thelper = !./evil.sh\n";
    for repository in ["", "nested/"] {
        let path = project.join(format!("{repository}.git/config"));
        let text = std::fs::read_to_string(&path).unwrap() + hostile;
        std::fs::write(path, text).unwrap();
    }
    write(project.join(".git/hooks/post-index-change"), "#!/bin/sh\ntouch pwned\n");
    // After the commits: what git has kept of a file is not hidden with it.
    write(project.join(".env"), &format!("{SECRET}env\n"));
}

/// Everything at and below a path, with all that the kernel would note of a change.
fn tree(path: &Path, into: &mut BTreeMap<String, String>) {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return };
    let content = if metadata.is_file() { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    let target = path.read_link().unwrap_or_default();
    let state = format!(
        "{} {:o} {} {} {} {}.{} {}.{} {target:?} {}",
        metadata.ino(),
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.nlink(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
        String::from_utf8_lossy(&content),
    );
    into.insert(path.display().to_string(), state);
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            tree(&entry.path(), into);
        }
    }
}

/// What others can change of a process: whether it is stopped, how much it counts, what it may use.
fn process_state(id: u32) -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let stopped = fields.first().is_some_and(|state| ["T", "t"].contains(state));
    let status = read("status");
    let cpus = status.lines().find(|line| line.starts_with("Cpus_allowed:"));
    // The nice value and the policy stand behind the name as the 17th and the 39th.
    format!("{stopped} {:?} {:?} {cpus:?} {} {}", fields.get(16), fields.get(38), read("oom_score_adj"), read("limits"))
}
