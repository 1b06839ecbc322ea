//! The secret scanner, from outside.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::stage::{Ran, bare, run};

/// A project without a model.
struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn scan(&self, args: &[&str]) -> Ran {
        run(bare(self.path(), &self.path().join(".config")).args(["secrets", "scan"]).args(args))
    }

    fn git(&self, args: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let out = Command::new("git").current_dir(self.path()).args(identity).args(args).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
}

/// A token that is written down nowhere.
fn token() -> String {
    let tail: String = (0..36u8).map(|at| char::from(b"aB3dE5gH7jK9mN1pQ2sT4vW6"[usize::from(at * 7 % 24)])).collect();
    format!("ghp_{tail}")
}

/// TEAM-6: a find is an exit code of 1 and names rule, file and line, never the secret.
#[test]
fn a_find_names_rule_file_and_line_and_never_the_secret() {
    let project = Project::new();
    project.write("notes.md", &format!("# Notes\n\nthe token is {}\n", token()));
    project.write("clean.md", "nothing here\n");
    let ran = project.scan(&["."]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("notes.md:3: github-pat: "), "{}", ran.stdout);
    let ran = project.scan(&["--json", "notes.md", "clean.md"]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!((found[0]["rule"].as_str(), found[0]["line"].as_u64()), (Some("github-pat"), Some(3)));
    assert_eq!(found[0]["file"], "notes.md");
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(&token()[8..]));
    assert_eq!(project.scan(&["clean.md"]).code, Some(0));
}

/// TEAM-6: a text on stdin is a text too.
#[test]
fn a_pipe_is_scanned() {
    let project = Project::new();
    let mut command = bare(project.path(), &project.path().join(".config"));
    let mut child = command
        .args(["secrets", "scan", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(token().as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("stdin:1: github-pat"));
}

/// TEAM-6: before a commit, what is staged is looked at, and not what lies in the folder.
#[test]
fn what_is_staged_is_scanned_and_nothing_else() {
    let project = Project::new();
    project.git(&["init", "-q"]);
    project.write("a.md", &token());
    project.git(&["add", "a.md"]);
    project.write("a.md", "taken out again\n");
    let ran = project.scan(&["--staged"]);
    assert_eq!(ran.code, Some(1), "the first commit, {}", ran.stderr);
    assert!(ran.stdout.starts_with("a.md:1: github-pat"), "{}", ran.stdout);
    project.git(&["add", "a.md"]);
    project.write("b.md", &token());
    let ran = project.scan(&["--staged"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    project.git(&["commit", "-q", "-m", "one"]);
    project.git(&["rm", "-q", "a.md"]);
    assert_eq!(project.scan(&["--staged"]).code, Some(0), "what is deleted has no text");
}

/// TEAM-6: a repository's settings start no program while it is scanned.
#[test]
fn a_repository_cannot_run_a_program_by_being_scanned() {
    let project = Project::new();
    project.git(&["init", "-q"]);
    let trap = project.path().join("trap.sh");
    std::fs::write(&trap, format!("#!/bin/sh\ntouch '{}/ran'\n", project.path().display())).unwrap();
    std::fs::set_permissions(&trap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    project.write("a.md", "text\n");
    project.git(&["add", "a.md"]);
    for key in ["core.fsmonitor", "diff.external", "core.pager", "pager.diff", "diff.t.textconv", "filter.t.smudge"] {
        project.git(&["config", key, trap.to_str().unwrap()]);
    }
    project.write(".gitattributes", "*.md diff=t filter=t\n");
    assert_eq!(project.scan(&["--staged"]).code, Some(0));
    assert!(!project.path().join("ran").exists());
}
