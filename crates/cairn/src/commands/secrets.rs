//! `cairn secrets`: does a text hold keys, tokens or passwords?
//!
//! What is printed names the rule, the file and the line, never the secret. Texts may be of any size; what is no text is
//! judged by its name alone. What cannot be read is said, and no success.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use files::{EntryKind, Root};
use memory::secrets::{Remarks, SecretFinding, scan};
use serde_json::json;

use crate::error::ScanFailure;
use crate::exit::Code;
use crate::out::{data, talk};
use crate::styled_text::first_line;

/// A text is looked at in pieces of this size.
const PIECE: usize = 8 * 1024 * 1024;

/// The overlap of two pieces: more than the longest secret with its surroundings.
const OVERLAP: usize = 64 * 1024;

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
    /// Search for secrets; exit code 1 if there are any. The output never contains one.
    #[command(after_help = "\
A line that ends in a comment with `gitleaks:allow` is skipped.

Examples:
  cairn secrets scan src docs
  git diff | cairn secrets scan --stdin
  printf '#!/bin/sh\\nexec cairn secrets scan --staged\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit")]
    Scan {
        /// Files and folders; the working directory if none is given.
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// The text on stdin.
        #[arg(long, conflicts_with_all = ["paths", "staged"])]
        stdin: bool,
        /// Files that are about to be committed: those in git's index that differ from the last commit.
        #[arg(long, conflicts_with = "paths")]
        staged: bool,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
}

/// A match and its place.
struct SecretHit {
    file: String,
    finding: SecretFinding,
}

/// Scans and prints.
pub(crate) fn run(args: &SecretsArgs) -> anyhow::Result<Code> {
    let SecretsCommand::Scan { paths, stdin, staged, json } = &args.command;
    let mut found = Vec::new();
    let mut unread = 0;
    if *stdin {
        look(std::io::stdin().lock(), "", "stdin", &mut found)?;
    } else if *staged {
        look_at_staged(&mut found)?;
    } else {
        let here = [PathBuf::from(".")];
        for path in if paths.is_empty() { &here } else { paths.as_slice() } {
            unread += below(path, &mut found)?;
        }
    }
    if *json {
        let rows: Vec<_> = found.iter().map(as_json).collect();
        data!("{}", json!(rows))?;
    } else {
        for SecretHit { file, finding } in &found {
            let line = if finding.line == 0 { String::new() } else { format!(":{}", finding.line) };
            data!("{file}{line}: {}: {}", finding.rule, finding.description)?;
        }
    }
    if found.is_empty() {
        return Ok(if unread == 0 { Code::Success } else { Code::Files });
    }
    let (count, them) =
        if found.len() == 1 { ("1 secret".to_owned(), "it") } else { (format!("{} secrets", found.len()), "them") };
    talk!("{count} found. Remove {them}, or mark a false alarm with `gitleaks:allow` on its line.");
    Ok(Code::Failure)
}

fn as_json(SecretHit { file, finding }: &SecretHit) -> serde_json::Value {
    json!({ "rule": finding.rule, "description": finding.description, "file": file, "line": finding.line })
}

/// Looks at a file, or at all files below a folder, without following links and without git's own. Says how many files
/// could not be read.
fn below(path: &Path, found: &mut Vec<SecretHit>) -> anyhow::Result<usize> {
    if !path.is_dir() {
        let name = path.display().to_string();
        look(files::open(path)?, &name, &name, found).context(name.clone())?;
        return Ok(0);
    }
    let root = Root::open(path)?;
    let below = root.walk(|folder| folder.file_name().is_none_or(|name| name != ".git"))?;
    let mut unread = 0;
    for file in below.iter().filter(|found| found.kind == EntryKind::File) {
        let whole = path.join(&file.path);
        let name = whole.display().to_string();
        let shown = name.strip_prefix("./").unwrap_or(&name);
        let looked = files::open(&whole).map_err(anyhow::Error::from).and_then(|text| {
            look(text, &name, shown, found)?;
            Ok(())
        });
        if let Err(error) = looked {
            talk!("not read: {error}");
            unread += 1;
        }
    }
    Ok(unread)
}

/// Looks at a text, piece by piece.
fn look(mut text: impl Read, path: &str, shown: &str, found: &mut Vec<SecretHit>) -> std::io::Result<()> {
    let mut piece = Vec::new();
    let mut lines_before = 0;
    let mut told: HashSet<(&'static str, usize)> = HashSet::new();
    let mut encoding = None;
    loop {
        let room = PIECE - piece.len();
        let read = text.by_ref().take(room as u64).read_to_end(&mut piece)?;
        let encoding = *encoding.get_or_insert_with(|| Encoding::of(&piece));
        let findings = scan(&encoding.utf8(&piece), path, Remarks::Heeded);
        let findings: Vec<SecretFinding> = findings
            .into_iter()
            .map(|finding| SecretFinding {
                line: finding.line + if finding.line == 0 { 0 } else { lines_before },
                ..finding
            })
            .filter(|finding| !told.contains(&(finding.rule, finding.line)))
            .collect();
        told.extend(findings.iter().map(|finding| (finding.rule, finding.line)));
        found.extend(findings.into_iter().map(|finding| SecretHit { file: shown.to_owned(), finding }));
        if read < room || encoding == Encoding::None {
            return Ok(());
        }
        let cut = piece.len() - OVERLAP;
        lines_before += encoding.utf8(&piece[..cut]).iter().filter(|byte| **byte == b'\n').count();
        piece.drain(..cut);
    }
}

/// The encoding of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// Bytes that hold ASCII: UTF-8 and its like.
    Plain,
    /// UTF-16, as Windows' tools write it.
    LittleEndian,
    /// The same, the other way round.
    BigEndian,
    /// It is no text.
    None,
}

impl Encoding {
    fn of(head: &[u8]) -> Self {
        match head {
            [0xFF, 0xFE, ..] => Self::LittleEndian,
            [0xFE, 0xFF, ..] => Self::BigEndian,
            _ if head[..head.len().min(HEAD)].contains(&0) => Self::None,
            _ => Self::Plain,
        }
    }

    fn utf8(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        let from = |unit: fn([u8; 2]) -> u16| {
            let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
            Cow::Owned(String::from_utf16_lossy(&units).into_bytes())
        };
        match self {
            Self::Plain => Cow::Borrowed(bytes),
            Self::LittleEndian => from(u16::from_le_bytes),
            Self::BigEndian => from(u16::from_be_bytes),
            Self::None => Cow::Borrowed(&[]),
        }
    }
}

/// Looks at what would be committed now. All of it comes from one process of git's.
fn look_at_staged(found: &mut Vec<SecretHit>) -> anyhow::Result<()> {
    let staged = staged_blobs()?;
    let mut child = git_command()
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("git cannot be started")?;
    let (Some(mut asks), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("git cannot be written to");
    };
    let mut answers = BufReader::new(answers);
    let looked = (|| {
        for (path, blob) in staged {
            writeln!(asks, "{blob}")?;
            let mut head = String::new();
            answers.read_line(&mut head)?;
            // `ID blob SIZE`, and after the text a line's end.
            let size = head.trim_end().split(' ').nth(2).and_then(|size| size.parse::<u64>().ok());
            let size = size.with_context(|| format!("git cat-file: {path}: {}", head.trim_end()))?;
            let mut text = answers.by_ref().take(size);
            look(&mut text, &path, &path, found)?;
            std::io::copy(&mut text, &mut std::io::sink())?;
            answers.read_exact(&mut [0])?;
        }
        anyhow::Ok(())
    })();
    drop(asks);
    drop(answers);
    child.wait()?;
    looked
}

/// The files that would be committed now, by path, with the ids of their contents.
fn staged_blobs() -> anyhow::Result<Vec<(String, String)>> {
    git(&["rev-parse", "--git-dir"])?;
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

/// The output of git.
fn git(args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let started = git_command().args(args).stdin(Stdio::null()).output();
    let out = started.map_err(|error| ScanFailure(format!("git cannot be started: {error}")))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        bail!(ScanFailure(format!("git {}: {}", args.first().unwrap_or(&""), first_line(&said, 300))));
    }
    Ok(out.stdout)
}

/// Git with nobody's settings: a repository's own may name programs to run.
fn git_command() -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager"])
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0");
    git
}
