//! A directory for one test, and the tools in it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tools::{Output, Scope, ToolCall, run_all, standard};
use transcript::block::Outcome;

/// A project directory and a scope in it.
pub(crate) struct Place {
    pub(crate) scope: Scope,
    pub(crate) root: PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(directory.path()).unwrap().join("project");
        std::fs::create_dir(&root).unwrap();
        let scope = Scope::new(&root, directory.path().join("temporary")).with_guard(guard());
        Self { scope, root, _directory: directory }
    }

    /// The same, without a guard for commands.
    pub(crate) fn unguarded() -> Self {
        let mut place = Self::new();
        place.scope = Scope::new(&place.root, place.scope.temporary());
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, name: &str, input: Value) -> Output {
        let call = ToolCall::new(name, input);
        run_all(vec![call], &standard(), &self.scope, |_, _| {}).await.remove(0)
    }

    /// Calls a tool that must work, and returns its text.
    pub(crate) async fn done(&self, name: &str, input: Value) -> String {
        let output = self.call(name, input).await;
        assert_eq!(output.outcome, Outcome::Done, "{}", output.text());
        output.text()
    }

    /// Calls a tool that must fail, and returns what it says.
    pub(crate) async fn failed(&self, name: &str, input: Value) -> String {
        let output = self.call(name, input).await;
        assert_eq!(output.outcome, Outcome::Failed, "{}", output.text());
        output.text()
    }
}

/// The program below which commands run.
pub(crate) fn guard() -> PathBuf {
    env!("CARGO_BIN_EXE_guard").into()
}

/// Makes a pipe with a name.
pub(crate) fn pipe(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
}

/// Times to sleep that end in `.00` and a number tell processes apart, also from those of another run of these tests.
pub(crate) fn marked(text: &str) -> String {
    text.replace(".00", &format!(".{}00", std::process::id()))
}

/// Whether any process still has this marker in its command line.
pub(crate) fn is_running(marker: &str) -> bool {
    let marker = &marked(marker);
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| {
        let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let state = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let is_zombie = state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
        !is_zombie && String::from_utf8_lossy(&command).contains(marker)
    })
}
