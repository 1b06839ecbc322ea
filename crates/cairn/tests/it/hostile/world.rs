//! A home with keys in it, a stranger's repository below it, and the ways to open that.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use simulator::{Options, Script, ScriptRule, ScriptedCall, Simulator, When};
use tempfile::TempDir;

use super::repository::{Git, Repository};
use crate::terminal::{DOWN, ENTER, Screen, Terminal, ctrl};

/// How long a session may take that should wait for nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Larger files are told apart by their length alone.
const LOOKED_INTO: u64 = 1_000_000;

/// A server that no user has chosen. It counts who comes.
pub struct Stranger {
    address: SocketAddr,
    visits: Arc<AtomicUsize>,
}

impl Stranger {
    pub fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, visits) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = visits.clone();
        // It ends with the test.
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, visits }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    pub fn forget(&self) {
        self.visits.store(0, Ordering::SeqCst);
    }
}

/// How a repository is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Terminal,
    Headless,
    Resumed,
    /// What its instruction files and settings are, shown.
    Shown,
}

/// Whether it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    No,
    Yes,
}

/// How it went.
pub struct Opened {
    /// Every byte that reached the terminal.
    pub written: Vec<u8>,
    pub code: u32,
    /// Whether there should be no session.
    pub refused: bool,
    /// What was sent to the user's own server.
    pub requests: Vec<Value>,
}

pub struct World {
    root: TempDir,
    simulator: Simulator,
    evil: String,
    _runtime: tokio::runtime::Runtime,
}

impl World {
    pub fn of(repository: &Repository, stranger: &Stranger) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let simulator = runtime.block_on(Simulator::start(Script::saying("not yet"), Options::default())).unwrap();
        let evil = format!("http://{}", stranger.address());
        let root = tempfile::tempdir().unwrap();
        let mut world = Self { root, simulator, evil, _runtime: runtime };
        let script = world.script(repository);
        world.simulator = world._runtime.block_on(Simulator::start(script, Options::default())).unwrap();
        world.furnish();
        world.build(repository);
        if !repository.pulled.is_empty() {
            headless(world.cairn(repository).args(["-p", &repository.prompt]));
            for (path, text) in &repository.pulled {
                write(&world.project().join(world.filled(path)), world.filled(text).as_bytes());
            }
        }
        world
    }

    fn base(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub fn home(&self) -> PathBuf {
        self.base().join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.home().join("src/repository")
    }

    fn config(&self) -> PathBuf {
        self.home().join(".claude")
    }

    fn ran(&self) -> PathBuf {
        self.base().join("outside/ran")
    }

    /// A text with its places filled in.
    pub fn filled(&self, text: &str) -> String {
        let slug = self.project().display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let shown = |path: PathBuf| path.display().to_string();
        [
            ("home", shown(self.home())),
            ("project", shown(self.project())),
            ("config", shown(self.config())),
            ("other", shown(self.home().join("src/other"))),
            ("slug", slug),
            ("evil", self.evil.clone()),
            ("ran", shown(self.ran())),
            ("deep", format!("{}1{}", "{\"a\":[".repeat(20_000), "]}".repeat(20_000))),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
    }

    /// A model that was talked round: it tries the worst first, then what the repository adds, and says something.
    fn script(&self, repository: &Repository) -> Script {
        let call = |tool: &str, input: Value| ScriptedCall { tool: tool.to_owned(), input };
        let mut calls = vec![
            call("Bash", json!({"command": "touch {{ran}}"})),
            call("Read", json!({"file_path": "{{home}}/.aws/credentials"})),
            call("Grep", json!({"pattern": "CANAR.", "path": "{{home}}", "output_mode": "content"})),
            call("Write", json!({"file_path": "{{home}}/.profile", "content": "evil, tried"})),
        ];
        calls.extend(repository.calls.iter().cloned());
        for call in &mut calls {
            call.input = serde_json::from_str(&self.filled(&call.input.to_string())).unwrap();
        }
        let when = When { missing: vec!["evil, tried".to_owned()], ..When::default() };
        let tries = ScriptRule { name: "tries".to_owned(), when, call: calls, ..ScriptRule::default() };
        let says = ScriptRule { name: "says".to_owned(), say: Some(repository.says.clone()), ..ScriptRule::default() };
        Script { rules: vec![tries, says], ..Script::default() }
    }

    /// What the user has at home.
    fn furnish(&self) {
        for (path, text) in [
            (".aws/credentials", "[default]\naws_secret_access_key = CANARY-aws\n"),
            (".ssh/id_rsa", "CANARY-ssh\n"),
            (".netrc", "CANARY-netrc\n"),
            ("secret.md", "CANARY-home\n"),
            ("notes/MEMORY.md", "- [CANARY-note](note.md): CANARY\n"),
            ("notes/note.md", "---\nname: note\ndescription: hello CANARY\ntype: user\n---\nCANARY\n"),
            ("src/other/.git/HEAD", "ref: refs/heads/CANARY-branch\n"),
            ("src/other/secret.md", "CANARY-other\n"),
            (".claude/CLAUDE.md", "Words of the user's own.\n"),
            (".claude/settings.json", "{}\n"),
        ] {
            write(&self.home().join(path), text.as_bytes());
        }
        let picture = [b"\x89PNG\r\n\x1a\n.".as_slice(), b"CANARY"].concat();
        write(&self.home().join("secret.png"), &picture);
        std::fs::create_dir_all(self.ran().parent().unwrap()).unwrap();
    }

    fn build(&self, repository: &Repository) {
        let place = |path: &str| self.project().join(self.filled(path));
        std::fs::create_dir_all(place(&repository.directory)).unwrap();
        if repository.git == Git::Empty {
            write(&place(".git/HEAD"), b"ref: refs/heads/main\n");
            std::fs::create_dir_all(place(".git/objects")).unwrap();
            std::fs::create_dir_all(place(".git/refs/heads")).unwrap();
            write(&place(".git/config"), b"[core]\n\trepositoryformatversion = 0\n");
        }
        let late = |path: &str| repository.git == Git::Committed && path.starts_with(".git/");
        for (path, text) in repository.files.iter().filter(|(path, _)| !late(path)) {
            write(&place(path), self.filled(text).as_bytes());
        }
        for (path, text) in &repository.programs {
            write(&place(path), self.filled(text).as_bytes());
            std::fs::set_permissions(place(path), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        for (path, target) in &repository.links {
            std::fs::create_dir_all(place(path).parent().unwrap()).unwrap();
            symlink(self.filled(target), place(path)).unwrap();
        }
        for path in &repository.pipes {
            std::fs::create_dir_all(place(path).parent().unwrap()).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, place(path), rustix::fs::Mode::RWXU).unwrap();
        }
        for (path, len) in &repository.large {
            write(&place(path), b"");
            std::fs::OpenOptions::new().write(true).open(place(path)).unwrap().set_len(*len).unwrap();
        }
        let said = r#"{"type": "user", "message": {"role": "user", "content": "earlier"}}"#.to_owned();
        let lines = if repository.transcript.is_empty() { &vec![said] } else { &repository.transcript };
        let lines: String = lines.iter().enumerate().map(|(at, line)| self.line(at, line)).collect();
        let planted = repository.resumes.as_ref().filter(|id| !id.ends_with(".jsonl"));
        let planted = planted.map(|id| format!("{{{{config}}}}/projects/{{{{slug}}}}/{id}.jsonl"));
        write(&place(planted.as_deref().unwrap_or("session.jsonl")), lines.as_bytes());
        if repository.git == Git::Committed {
            for arguments in [
                &["init", "-q"][..],
                &["add", "-A", "-f"],
                &["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"],
            ] {
                let mut git = Command::new("git");
                git.args(arguments).current_dir(self.project()).env("HOME", self.home());
                assert!(git.status().unwrap().success());
            }
        }
        for (path, text) in repository.files.iter().filter(|(path, _)| late(path)) {
            write(&place(path), self.filled(text).as_bytes());
        }
    }

    /// A line of a transcript, with what it leaves out.
    fn line(&self, at: usize, line: &str) -> String {
        let line = self.filled(line);
        let Ok(mut value) = serde_json::from_str::<Value>(&line) else { return line + "\n" };
        let parent = at.checked_sub(1).map(|before| format!("t-{before}"));
        for (key, default) in [
            ("uuid", json!(format!("t-{at}"))),
            ("parentUuid", json!(parent)),
            ("sessionId", json!("x")),
            ("isSidechain", json!(false)),
            ("timestamp", json!("2026-01-01T00:00:00.000Z")),
            ("version", json!("cairn-0.1.0")),
            ("cwd", json!(self.project())),
        ] {
            if value.get(key).is_none() {
                value[key] = default;
            }
        }
        format!("{value}\n")
    }

    /// The program in the repository, with what a user has in the environment.
    fn cairn(&self, repository: &Repository) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
        command.current_dir(self.project().join(self.filled(&repository.directory))).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.home());
        command.env("ANTHROPIC_API_KEY", "sk-CANARY-key").env("ANTHROPIC_BASE_URL", self.simulator.url());
        command.env("AWS_SECRET_ACCESS_KEY", "CANARY-variable").env("GITHUB_TOKEN", "CANARY-token");
        command.env("TERM", "xterm-256color").env("CAIRN_NO_LOCAL_SERVER", "1");
        command
    }

    pub fn open(&self, repository: &Repository, way: Way, trust: Trust) -> Opened {
        // What the user said before is forgotten.
        headless(self.cairn(repository).args(["trust", "revoke"]));
        match (way, trust) {
            (Way::Headless, Trust::Yes) => self.open_with(repository, way, trust, &["--trust"]),
            _ => self.open_with(repository, way, trust, &[]),
        }
    }

    pub fn open_with(&self, repository: &Repository, way: Way, trust: Trust, arguments: &[&str]) -> Opened {
        let before = self.simulator.requests().len();
        let mut command = self.cairn(repository);
        command.args(arguments);
        let resumes = repository.resumes.as_deref().unwrap_or("{{project}}/session.jsonl");
        let (resumes, prompt) = (self.filled(resumes), self.filled(&repository.prompt));
        let refused = way == Way::Shown || repository.refuses && way == Way::Resumed;
        let (written, code) = match way {
            Way::Terminal => interactive(&command, &prompt, trust, Back::No),
            // What was said before is shown.
            Way::Resumed if !repository.transcript.is_empty() => {
                interactive(command.args(["--resume", &resumes]), &prompt, trust, Back::ToTheBeginning)
            }
            Way::Resumed => headless(command.args(["--resume", &resumes, "-p", &prompt])),
            Way::Headless => headless(command.args(["-p", &prompt])),
            Way::Shown => {
                let (mut written, code) = headless(command.args(["instructions", "show"]));
                let (more, other) = headless(self.cairn(repository).args(["config", "show", "--origin"]));
                written.extend(more);
                (written, code.max(other))
            }
        };
        Opened { written, code, refused, requests: self.simulator.requests().split_off(before) }
    }

    /// Whether something ran that leaves a sign.
    pub fn has_run(&self) -> bool {
        std::fs::read_dir(self.ran().parent().unwrap()).unwrap().next().is_some()
    }

    pub fn forget_run(&self) {
        let _ = std::fs::remove_file(self.ran());
    }

    /// Everything in the home.
    pub fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        below(&self.home(), &mut found);
        found
    }

    /// What has changed in the home that is no session of ours and no history.
    pub fn changes(&self, before: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
        let after = self.tree();
        let sessions = self.config().join("projects");
        let own = |path: &Path| {
            let new = !before.contains_key(path);
            let is_session = path.extension().is_some_and(|ending| ending == "jsonl");
            path.starts_with(&sessions) && (new || is_session)
                || path == self.config().join("history.jsonl")
                || path.starts_with(self.config().join("cairn"))
        };
        let mut changed: Vec<PathBuf> = before.keys().filter(|path| !after.contains_key(*path)).cloned().collect();
        changed
            .extend(after.iter().filter(|(path, what)| before.get(*path) != Some(what)).map(|(path, _)| path.clone()));
        changed.retain(|path| !own(path));
        changed
    }
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn below(directory: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let what = if kind.is_dir() {
            below(&path, found);
            continue;
        } else if kind.is_symlink() {
            format!("link {}", std::fs::read_link(&path).unwrap().display())
        } else if kind.is_file() {
            let len = entry.metadata().unwrap().len();
            let mut hasher = DefaultHasher::new();
            (len <= LOOKED_INTO).then(|| std::fs::read(&path).unwrap()).hash(&mut hasher);
            format!("file {len} {}", hasher.finish())
        } else {
            "other".to_owned()
        };
        found.insert(path, what);
    }
}

/// A run without a terminal session, its output on a terminal.
fn headless(command: &mut Command) -> (Vec<u8>, u32) {
    let mut terminal = Terminal::open(command, 200, 100);
    let code = terminal.ended();
    (std::mem::take(&mut terminal.written), code)
}

/// Whether the session goes back in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Back {
    No,
    ToTheBeginning,
}

/// A session in a terminal: with or without trust, something said, no to every question, back where that is wanted, and
/// out.
fn interactive(command: &Command, prompt: &str, trust: Trust, back: Back) -> (Vec<u8>, u32) {
    const ASKED: &str = "go on without · q quit:";
    let mut terminal = Terminal::open(command, 200, 200).patient(PATIENCE);
    let mut asked = 0;
    loop {
        let started = terminal.comes("a question or a prompt", |screen| {
            screen.count(ASKED) > asked
                || screen.has_prompt() && !screen.rows.last().is_some_and(|row| row.contains(ASKED))
        });
        if started.count(ASKED) == asked {
            break;
        }
        asked += 1;
        terminal.keys(if trust == Trust::Yes { "t\r" } else { "g\r" });
    }
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say(prompt);
    loop {
        let asks = |screen: &Screen| screen.contains("yes, once") || screen.contains("yes, now and later");
        let screen = terminal.until("an end or a question", |screen| {
            asks(screen) || screen.contains("Done.") && screen.has_prompt() && !screen.is_working()
        });
        if !asks(&screen) {
            break;
        }
        terminal.keys("n");
        if screen.contains("yes, now and later") {
            terminal.until("the answer taken", |screen| !screen.contains("yes, now and later"));
            continue;
        }
        terminal.shows("no, because");
        terminal.keys(ENTER);
        terminal.until("the answer taken", |screen| !screen.contains("no, because"));
    }
    if back == Back::ToTheBeginning {
        terminal.keys(&format!("/rewind{ENTER}"));
        terminal.shows("before which message");
        terminal.keys(&format!("{}{ENTER}", DOWN.repeat(20)));
        terminal.shows("What goes back?");
        terminal.keys(ENTER);
        terminal.rests("back to before");
        terminal.keys(&ctrl('u'));
        terminal.holds("");
    }
    let code = terminal.leaves_at_once();
    (std::mem::take(&mut terminal.written), code)
}
