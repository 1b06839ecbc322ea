//! A project, a config home and a simulated model for the real binary.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use simulator::{Options, Script, Simulator};
use tempfile::TempDir;

/// Where the home lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Homes {
    Plain,
    /// The home and the config home are links.
    Linked,
}

/// Everything a run needs, gone when dropped.
pub struct Stage {
    pub simulator: Simulator,
    root: TempDir,
    /// Serves for as long as the stage stands.
    _runtime: tokio::runtime::Runtime,
}

impl Stage {
    pub fn new(script: &str) -> Self {
        Self::with(script, Options::default())
    }

    pub fn with(script: &str, options: Options) -> Self {
        Self::of(Script::parse(script).unwrap(), options)
    }

    pub fn of(mut script: Script, options: Options) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        let project = std::fs::canonicalize(root.path().join("project")).unwrap();
        script.vars.insert("project".into(), project.display().to_string());
        let simulator = runtime.block_on(Simulator::start(script, options)).unwrap();
        Self { simulator, root, _runtime: runtime }
    }

    pub fn project(&self) -> PathBuf {
        std::fs::canonicalize(self.root.path().join("project")).unwrap()
    }

    pub fn config(&self) -> PathBuf {
        self.root.path().join("config")
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// From now on the home and the config home are links.
    pub fn put_behind_links(&self) {
        let real = self.root.path().join("real");
        std::fs::create_dir_all(real.join("dotfiles")).unwrap();
        symlink(&real, self.home()).unwrap();
        symlink(self.home().join("dotfiles"), self.config()).unwrap();
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The binary, in the project, with nothing of the outer environment that matters.
    pub fn cairn(&self) -> Command {
        let mut command = bare(&self.project(), &self.config());
        if self.home().exists() {
            command.env("HOME", self.home());
        }
        command.env("ANTHROPIC_API_KEY", "sk-test-key").env("ANTHROPIC_BASE_URL", self.simulator.url());
        command
    }

    /// The newest request of the conversation itself, not of what is learnt beside it.
    pub fn last_said(&self) -> serde_json::Value {
        let requests = self.simulator.requests();
        let said =
            requests.into_iter().rev().find(|request| !request.to_string().contains("Beside the conversation, write"));
        said.unwrap()
    }

    /// The session files of the project.
    pub fn session_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for project in std::fs::read_dir(self.config().join("projects")).into_iter().flatten().flatten() {
            let inside = std::fs::read_dir(project.path()).unwrap().flatten().map(|entry| entry.path());
            files.extend(inside.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")));
        }
        files.sort();
        files
    }
}

/// The binary without a model.
pub fn bare(project: &Path, config: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
    command.current_dir(project).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("SHELL", "/bin/bash").env("HOME", config.parent().unwrap()).env("CLAUDE_CONFIG_DIR", config);
    command
}

/// What a run printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What the program prints for lines that come from a pipe.
pub fn piped(stage: &Stage, args: &[&str], lines: &str) -> String {
    piped_into(stage.cairn().args(args), lines)
}

/// The same, for a command that is made otherwise.
pub fn piped_into(command: &mut Command, lines: &str) -> String {
    let mut child = command.arg("--plain").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}
