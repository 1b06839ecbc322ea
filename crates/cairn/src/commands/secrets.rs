//! `cairn secrets`: does a text hold keys, tokens or passwords?
//!
//! What is printed names the rule, the file and the line, never the secret.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use files::{EntryKind, Root};
use memory::secrets::{Finding, Remarks, scan};
use serde_json::json;

use crate::exit::Code;
use crate::out::{data, talk};

/// The most that is read of one file.
const FILE_LIMIT: u64 = 64 * 1024 * 1024;

/// A file with a zero byte this early is no text.
const HEAD: usize = 8_000;

/// Find keys, tokens and passwords in files.
#[derive(Debug, clap::Args)]
pub(crate) struct SecretsArgs {
    #[command(subcommand)]
    command: SecretsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SecretsCommand {
    /// Look for secrets; exit code 1 if there are any. What is printed never holds one.
    #[command(after_help = "\
A line that ends in a comment with `gitleaks:allow` is passed over.

Examples:
  cairn secrets scan src docs
  git diff | cairn secrets scan --stdin
  printf '#!/bin/sh\\nexec cairn secrets scan --staged\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit")]
    Scan {
        /// Files and folders; the working directory, where none is given.
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// The text on stdin.
        #[arg(long, conflicts_with_all = ["paths", "staged"])]
        stdin: bool,
        /// What is about to be committed: the files in git's index that differ from the last commit.
        #[arg(long, conflicts_with = "paths")]
        staged: bool,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
}

/// What was found where.
struct Found {
    file: String,
    finding: Finding,
}

/// Scans and prints.
pub(crate) fn run(args: &SecretsArgs) -> anyhow::Result<Code> {
    let SecretsCommand::Scan { paths, stdin, staged, json } = &args.command;
    let mut found = Vec::new();
    if *stdin {
        let mut text = Vec::new();
        std::io::stdin().lock().take(FILE_LIMIT).read_to_end(&mut text)?;
        look(&text, "", "stdin", &mut found);
    } else if *staged {
        for (path, blob) in staged_blobs()? {
            look(&git(&["cat-file", "blob", &blob])?, &path, &path, &mut found);
        }
    } else {
        let here = [PathBuf::from(".")];
        for path in if paths.is_empty() { &here } else { paths.as_slice() } {
            below(path, &mut found)?;
        }
    }
    if *json {
        let rows: Vec<_> = found.iter().map(as_json).collect();
        data!("{}", json!(rows))?;
    } else {
        for Found { file, finding } in &found {
            let line = if finding.line == 0 { String::new() } else { format!(":{}", finding.line) };
            data!("{file}{line}: {}: {}", finding.rule, finding.description)?;
        }
    }
    if found.is_empty() {
        return Ok(Code::Success);
    }
    talk!("{} found. Take them out, or mark a line that holds none with `gitleaks:allow`.", count(found.len()));
    Ok(Code::Failure)
}

fn count(found: usize) -> String {
    if found == 1 { "1 secret".to_owned() } else { format!("{found} secrets") }
}

fn as_json(Found { file, finding }: &Found) -> serde_json::Value {
    json!({ "rule": finding.rule, "description": finding.description, "file": file, "line": finding.line })
}

/// Looks at a file, or at all files below a folder, without following links and without git's own.
fn below(path: &Path, found: &mut Vec<Found>) -> anyhow::Result<()> {
    if !path.is_dir() {
        let snapshot = files::read(path, FILE_LIMIT)?;
        let name = path.display().to_string();
        look(&snapshot.bytes, &name, &name, found);
        return Ok(());
    }
    let root = Root::open(path)?;
    let below = root.walk(|folder| folder.file_name().is_none_or(|name| name != ".git"))?;
    for file in below.iter().filter(|found| found.kind == EntryKind::File) {
        // What cannot be read, or is larger than any text, is said and passed over.
        match root.read(&file.path, FILE_LIMIT) {
            Ok(snapshot) => {
                let name = path.join(&file.path).display().to_string();
                look(&snapshot.bytes, &name, name.strip_prefix("./").unwrap_or(&name), found);
            }
            Err(error) => talk!("not read: {error}"),
        }
    }
    Ok(())
}

fn look(text: &[u8], path: &str, shown: &str, found: &mut Vec<Found>) {
    let text = if text[..text.len().min(HEAD)].contains(&0) { &[] } else { text };
    let file = |finding| Found { file: shown.to_owned(), finding };
    found.extend(scan(text, path, Remarks::Heeded).into_iter().map(file));
}

/// The files that would be committed now, by path, with the ids of their contents.
fn staged_blobs() -> anyhow::Result<Vec<(String, String)>> {
    let raw = git(&["diff", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff"])?;
    let text = String::from_utf8_lossy(&raw);
    let mut parts = text.split('\0');
    let mut blobs = Vec::new();
    while let (Some(state), Some(path)) = (parts.next(), parts.next()) {
        // `:100644 100644 OLD NEW M`; a submodule (160000) and what is deleted (0…0) have no text.
        let fields: Vec<&str> = state.trim_start_matches(':').split(' ').collect();
        if let [_, mode, _, blob, _] = fields.as_slice()
            && mode.starts_with("100")
            && blob.contains(|c| c != '0')
        {
            blobs.push((path.to_owned(), (*blob).to_owned()));
        }
    }
    Ok(blobs)
}

/// What git prints, with nobody's settings: a repository's own may name programs to run.
fn git(args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let out = Command::new("git")
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager"])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .output()
        .context("git cannot be started")?;
    if !out.status.success() {
        bail!("git {}: {}", args.first().unwrap_or(&""), String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(out.stdout)
}
