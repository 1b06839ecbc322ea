//! `cairn policy`: judging commands from a script.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::stage::{bare, run};

/// SEC-2: one command a line in, one object a line out, judged by the text alone.
#[test]
fn commands_on_stdin_are_judged_one_a_line() {
    let place = tempfile::tempdir().unwrap();
    let input = "git log | head\nrm x\n\nsort \"$f\"\necho $(rm x)\n";
    let mut command = bare(place.path(), &place.path().join(".config"));
    command.args(["policy", "check", "--stdin", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    let text = String::from_utf8(out.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdicts: Vec<&str> = rows.iter().map(|row| row["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["read_only", "writes", "read_only", "confined", "writes"]);
    let commands: Vec<&str> = rows.iter().map(|row| row["command"].as_str().unwrap()).collect();
    assert_eq!(commands.join("\n") + "\n", input);
    assert!(rows[1]["reason"].as_str().unwrap().contains("removes files"), "{}", rows[1]);
}

/// SEC-2: for people the verdict comes first, and the reason stands behind the command.
#[test]
fn a_command_in_the_arguments_is_judged_in_words() {
    let place = tempfile::tempdir().unwrap();
    let check =
        |args: &[&str]| run(bare(place.path(), &place.path().join(".config")).args(["policy", "check"]).args(args));
    let ran = check(&["ls -la", "sed -i s/a/b/ f"]);
    assert_eq!(
        ran.stdout,
        "read only  ls -la  (ls only reads)\nwrites     sed -i s/a/b/ f  (sed -i edits files in place)\n"
    );
    assert_eq!(check(&[]).code, Some(2), "a command has to be given");
}
