//! What a dream is told: the memories, what is wrong with them, what happened since. All of it is quoted, and bounded.

use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use memory::store::Store;
use memory::tombstones::{Tombstone, Tombstones};
use memory::{Memory, doctor, drift, index, quoting, scan};
use minijinja::context;
use minijinja::syntax::SyntaxConfig;
use tools::Scope;

use super::room::DreamRoom;
use super::sources::SourcePurpose;
use crate::saver::Saver;

const SYSTEM: &str = include_str!("dream.md");
const TASK: &str = include_str!("dream_task.md");

/// How many memories are listed; the most that is shown whole of one, in bytes.
const LISTED: usize = 400;
const LARGEST: u64 = 4_096;
/// How many findings of each kind are told.
const FINDINGS: usize = 40;
/// How much is told of one daily log, in bytes.
const LOG: u64 = 12_000;
/// What each part may have of what is told, in percent; sessions have their own.
const MANIFEST_SHARE: usize = 20;
const TEXTS_SHARE: usize = 27;
const LOGS_SHARE: usize = 14;
const FINDINGS_SHARE: usize = 6;
pub(super) const SESSIONS_SHARE: usize = 27;
/// The largest index that is looked at.
const INDEX: u64 = 10_000_000;

/// The system prompt.
pub(super) fn system(purpose: SourcePurpose) -> String {
    render(
        SYSTEM,
        context! {
            learns => purpose == SourcePurpose::Learn,
            line_length => index::LINE_LENGTH, index_lines => index::LINE_LIMIT, index_bytes => index::BYTE_LIMIT,
        },
    )
}

/// What it is to do: the first message. What is shown whole is noted in the scope as read.
pub(super) fn task(
    (store, saver): (&Store, &Saver),
    scope: &Scope,
    last: Option<Timestamp>,
    now: Timestamp,
    (sessions, tombstones): (&str, &Tombstones),
    room: &DreamRoom,
) -> Result<String, memory::Error> {
    let root = store.root();
    let headers = scan::headers(root)?;
    let (mut listed, mut length) = (Vec::new(), 0);
    for header in headers.iter().take(LISTED) {
        length += header.path.len() + header.description.as_ref().map_or(0, String::len) + 40;
        if length > room.part(MANIFEST_SHARE) && !listed.is_empty() {
            break;
        }
        listed.push(header.clone());
    }
    let zone = TimeZone::system();
    let line = |header: &scan::Header| line(header, &zone, saver.is_users(&header.path));
    let mut manifest = listed.iter().map(line).collect::<Vec<_>>().join("\n");
    if headers.len() > listed.len() {
        let _ = write!(manifest, "\n- and {} older ones; Glob lists them", headers.len() - listed.len());
    }
    let index = root.read(index::FILE, INDEX).map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    let index = index.unwrap_or_default();
    let limits: Vec<String> = index::warnings(&index).iter().map(ToString::to_string).collect();
    let date = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%A, %Y-%m-%d").to_string();
    let mut findings = doctor::examine(store)?;
    findings.extend(doctor::over(store, now)?);
    Ok(render(
        TASK,
        context! {
            today => date(now),
            directory => root.path().display().to_string(),
            last => last.map_or_else(|| "never".to_owned(), date),
            lines => index.lines().count(),
            bytes => index.len(),
            index_lines => index::LINE_LIMIT,
            index_bytes => index::BYTE_LIMIT,
            limits => limits.join("\n"),
            manifest => quoting::quoted(&manifest),
            team => headers.iter().any(|header| header.path.starts_with("team/")),
            texts => texts(store, scope, &listed, room.part(TEXTS_SHARE)),
            findings => list(findings.iter().map(ToString::to_string), room),
            drift => list(drifted(store, scope.project()), room),
            logs => logs(store, last, now, room.part(LOGS_SHARE)),
            sessions,
            forgotten => list(forgotten(tombstones, &zone), room),
        },
    ))
}

/// A memory in the list, with the local day of its last change, and whether it is the user's.
fn line(header: &scan::Header, zone: &TimeZone, is_users: bool) -> String {
    let kind = header.kind.map(|kind| format!("[{kind}] ")).unwrap_or_default();
    let day = header.modified.map(|at| format!(" ({})", at.to_zoned(zone.clone()).date())).unwrap_or_default();
    let whose = if is_users { " [the user's]" } else { "" };
    let about = header.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    format!("- {kind}{}{day}{whose}{about}", header.path)
}

/// The small memories, whole, the newest first, as far as they fit.
fn texts(store: &Store, scope: &Scope, headers: &[scan::Header], most: usize) -> String {
    let mut text = String::new();
    for header in headers {
        let Ok(file) = store.root().read(&header.path, LARGEST) else { continue };
        let Ok(content) = std::str::from_utf8(&file.bytes) else { continue };
        if text.len() + content.len() > most {
            break;
        }
        let path = store.root().path().join(&header.path);
        let quoted = quoting::quoted(content);
        // What had to be changed to be shown is not what an edit would find.
        if quoted == content {
            scope.note(&path, file.stamp);
        }
        let _ = writeln!(text, "<file path=\"{}\">\n{}\n</file>", quoting::quoted(&header.path), quoted.trim_end());
    }
    text
}

/// What the user removed or took back, the newest first.
fn forgotten(tombstones: &Tombstones, zone: &TimeZone) -> Vec<String> {
    let told = |stone: &Tombstone| {
        let at = stone.at.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
        let day = at.map(|at| format!(", on {}", at.to_zoned(zone.clone()).date()));
        format!("{} ({}{})", stone.name, stone.path, day.unwrap_or_default())
    };
    tombstones.all().iter().rev().map(told).collect()
}

/// What memories name that is gone.
fn drifted(store: &Store, tree: &Path) -> Vec<String> {
    let paths = scan::paths(store.root()).unwrap_or_default();
    let memories = paths.iter().filter_map(|path| Memory::read(store.root(), path).ok().map(|memory| (path, memory)));
    let gone = memories.flat_map(|(path, memory)| {
        let gone = drift::check(&memory, tree);
        gone.into_iter().map(move |gone| format!("{path}: {gone}"))
    });
    gone.take(FINDINGS).collect()
}

fn list(lines: impl IntoIterator<Item = String>, room: &DreamRoom) -> String {
    let mut left = room.part(FINDINGS_SHARE);
    let lines = lines.into_iter().take(FINDINGS).map(|line| format!("- {}", quoting::quoted(&line)));
    let fits = |line: &String| {
        left = left.saturating_sub(line.len());
        left > 0
    };
    lines.take_while(fits).collect::<Vec<_>>().join("\n")
}

/// The daily logs of the days since the last dream, that day included.
fn logs(store: &Store, last: Option<Timestamp>, now: Timestamp, most: usize) -> String {
    let zone = TimeZone::system();
    let day = |at: Timestamp| at.to_zoned(zone.clone()).date().to_string();
    let since = last.map(day);
    let today = day(now);
    let is_new = |name: &str| since.as_deref().is_none_or(|since| name >= since) && name <= today.as_str();
    let found = store.root().walk(|_| true).unwrap_or_default();
    let mut logs: Vec<(String, String)> = found
        .into_iter()
        .filter_map(|found| {
            let path = found.path.to_str()?.to_owned();
            let name = path.strip_prefix("logs/")?.rsplit('/').next()?.strip_suffix(".md")?.to_owned();
            is_new(&name).then_some((name, path))
        })
        .collect();
    logs.sort();
    let mut text = String::new();
    // The newest are the ones to have; they are shown in the order they were written.
    let mut shown: Vec<String> = Vec::new();
    for (_, path) in logs.iter().rev() {
        let Ok(head) = store.root().head(path, LOG.min(most as u64 / 2)) else { continue };
        let content = String::from_utf8_lossy(&head.bytes).into_owned();
        let more = if head.len > head.bytes.len() as u64 { "\n[… read the rest]" } else { "" };
        let one = format!("<log path=\"{path}\">\n{}{more}\n</log>\n", quoting::quoted(content.trim_end()));
        if text.len() + one.len() > most {
            shown.push(format!("- {path} is there as well\n"));
            continue;
        }
        text.push_str(&one);
        shown.push(one);
    }
    shown.reverse();
    shown.concat()
}

fn render(template: &str, values: minijinja::Value) -> String {
    let mut environment = minijinja::Environment::new();
    // A tag on a line of its own leaves no line behind.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.render_str(template, values).map(|text| text.trim().to_owned()).unwrap_or_default()
}
