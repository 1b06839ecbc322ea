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

/// TEAM-6: that nothing could be looked at is another exit code than that something was found, and is said in a line.
#[test]
fn where_there_is_no_repository_that_is_said() {
    let ran = Project::new().scan(&["--staged"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(7), 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("not a git repository"), "{}", ran.stderr);
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

/// TEAM-6: a real commit is held back by the hook, also with `commit -a` and from a folder below, and goes through clean.
#[test]
fn a_commit_with_a_secret_is_held_back_by_the_hook() {
    let project = Project::new();
    project.git(&["init", "-q"]);
    let hook = project.path().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let cairn = env!("CARGO_BIN_EXE_cairn");
    std::fs::write(&hook, format!("#!/bin/sh\nexec '{cairn}' secrets scan --staged\n")).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let commit = |below: &str, args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "x"];
        let mut git = Command::new("git");
        git.current_dir(project.path().join(below)).env("HOME", project.path()).args(identity).args(args);
        let out = git.output().unwrap();
        (
            out.status.success(),
            String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout),
        )
    };
    std::fs::create_dir(project.path().join("sub")).unwrap();
    project.write("sub/ein Schlüssel.md", "clean\n");
    project.write("b.md", "clean\n");
    project.git(&["add", "."]);
    assert!(commit("", &[]).0);
    project.write("sub/ein Schlüssel.md", &format!("the key is {}.\n", token()));
    let (went_through, said) = commit("sub", &["-a"]);
    assert!(!went_through && said.contains("sub/ein Schlüssel.md:1: github-pat"), "{said}");
    assert!(!said.contains(&token()[8..]), "{said}");
    project.write("b.md", "more\n");
    assert!(commit("", &["b.md"]).0, "only what this commit takes counts");
}

/// TEAM-6: size hides nothing: of a text in several pieces every line is looked at, and the line is the right one.
#[test]
fn a_secret_at_the_end_of_a_large_text_is_found() {
    let project = Project::new();
    let line = "nothing to see on this line of the log, and none on the next\n";
    let lines = 20_000_000 / line.len();
    project.write("large.log", &(line.repeat(lines) + &token() + "\n"));
    let ran = project.scan(&["large.log"]);
    assert_eq!(ran.stdout.split(": ").next(), Some(format!("large.log:{}", lines + 1).as_str()), "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), 1);
}

/// TEAM-6: a text of Windows' tools is a text; an image is none, whatever its bytes.
#[test]
fn what_is_a_text_is_looked_at_and_what_is_none_is_not() {
    let project = Project::new();
    let text = format!("eins\r\nzwei {}\r\n", token());
    let units = |order: fn(u16) -> [u8; 2], mark: [u8; 2]| -> Vec<u8> {
        mark.into_iter().chain(text.encode_utf16().flat_map(order)).collect()
    };
    std::fs::write(project.path().join("le.txt"), units(u16::to_le_bytes, [0xFF, 0xFE])).unwrap();
    std::fs::write(project.path().join("be.txt"), units(u16::to_be_bytes, [0xFE, 0xFF])).unwrap();
    std::fs::write(project.path().join("mark.txt"), format!("\u{feff}{}", token())).unwrap();
    std::fs::write(project.path().join("image"), [b"\x89IMG\0\0", token().as_bytes()].concat()).unwrap();
    let found: Value = serde_json::from_str(&project.scan(&["--json", "."]).stdout).unwrap();
    let mut found: Vec<String> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{}:{}", one["file"].as_str().unwrap(), one["line"]))
        .collect();
    found.sort();
    assert_eq!(found, ["be.txt:2", "le.txt:2", "mark.txt:1"]);
}

/// TEAM-6: what could not be read was not found clean.
#[test]
fn a_file_that_cannot_be_read_is_no_success() {
    let project = Project::new();
    project.write("a.md", "clean\n");
    let ran = project.scan(&["gone.md"]);
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    std::fs::set_permissions(project.path().join("a.md"), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    // Whoever may read everything reads it.
    let may_read = std::fs::read(project.path().join("a.md")).is_ok();
    let ran = project.scan(&["."]);
    assert_eq!(ran.code, Some(if may_read { 0 } else { 7 }), "{}", ran.stderr);
}
