//! Prompt of a dream: the memories, the problems with them, the sessions since. All of it is quoted, and bounded.

use std::fmt::Write as _;
use std::path::Path;

use files::Root;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use memory::store::Store;
use memory::tombstones::Tombstone;
use memory::{Memory, doctor, drift, index, quoting, scan};
use minijinja::context;
use minijinja::syntax::SyntaxConfig;
use tools::Scope;

use super::room::DreamRoom;
use super::sources::SourcePurpose;
use crate::saver::Saver;

const SYSTEM: &str = include_str!("dream.md");
const TASK: &str = include_str!("dream_task.md");

/// Limit on listed memories, and bytes up to which one is shown whole.
const LISTED: usize = 400;
const LARGEST: u64 = 4_096;
/// Limit on findings of each kind.
const FINDINGS: usize = 40;
/// Bytes of a daily log that are shown.
const LOG: u64 = 12_000;
/// Share of each part of the prompt, in percent; sessions have their own.
const MANIFEST_SHARE: usize = 20;
const TEXTS_SHARE: usize = 23;
const USER_SHARE: usize = 6;
const LOGS_SHARE: usize = 12;
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

/// The material for a dream's prompt.
pub(super) struct DreamBrief<'a> {
    /// The memories.
    pub(super) store: &'a Store,
    /// The directory of the user's memories that hold in every project, unless the dream is about that one.
    pub(super) user: Option<&'a Path>,
    /// Knows which memories are the user's.
    pub(super) saver: &'a Saver,
    /// When the last dream was.
    pub(super) last: Option<Timestamp>,
    /// The time.
    pub(super) now: Timestamp,
    /// The room for all of it.
    pub(super) room: &'a DreamRoom,
}

impl DreamBrief<'_> {
    /// The first message: the task. Memories that are shown whole are noted in the scope as read.
    pub(super) fn task(&self, scope: &Scope, sessions: &str, removed: &[Tombstone]) -> Result<String, memory::Error> {
        let Self { store, saver, last, now, room, .. } = *self;
        let root = store.root();
        let headers = scan::headers(root)?;
        let zone = TimeZone::system();
        let listed = fitting(&headers, room.part(MANIFEST_SHARE));
        let whose = |header: &scan::Header| line(header, &zone, saver.is_users(&header.path));
        let manifest = manifest(listed, headers.len(), whose);
        let index = root.read(index::FILE, INDEX).map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
        let index = index.unwrap_or_default();
        let limits: Vec<String> = index::warnings(&index).iter().map(ToString::to_string).collect();
        let date = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%A, %Y-%m-%d").to_string();
        let mut findings = doctor::examine(store)?;
        findings.extend(doctor::over(store, now)?);
        let user = self.user.and_then(|user| user_memories(user, scope, &zone, room));
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
                texts => texts(root, "", scope, listed, room.part(TEXTS_SHARE)),
                user_directory => self.user.map(|user| user.display().to_string()),
                user => user.as_ref().map(|(manifest, _)| manifest),
                user_texts => user.as_ref().map(|(_, texts)| texts),
                findings => list(findings.iter().map(ToString::to_string), room),
                drift => list(drifted(store, scope.project()), room),
                logs => logs(store, last, now, room.part(LOGS_SHARE)),
                sessions,
                forgotten => list(forgotten(removed, &zone), room),
            },
        ))
    }
}

/// The user's memories that hold in every project: a list with their whole paths, and the small ones whole.
fn user_memories(directory: &Path, scope: &Scope, zone: &TimeZone, room: &DreamRoom) -> Option<(String, String)> {
    let root = Root::open(directory).ok()?;
    let headers = scan::headers(&root).ok().filter(|headers| !headers.is_empty())?;
    let listed = fitting(&headers, room.part(USER_SHARE) / 2);
    let whole = format!("{}/", root.path().display());
    let named = |header: &scan::Header| {
        line(&scan::Header { path: format!("{whole}{}", header.path), ..header.clone() }, zone, false)
    };
    let manifest = manifest(listed, headers.len(), named);
    Some((quoting::quoted(&manifest).into_owned(), texts(&root, &whole, scope, listed, room.part(USER_SHARE) / 2)))
}

/// The memories that fit into a list of so many bytes, the newest first.
fn fitting(headers: &[scan::Header], most: usize) -> &[scan::Header] {
    let mut length = 0;
    let fits = |header: &&scan::Header| {
        length += header.path.len() + header.description.as_ref().map_or(0, String::len) + 40;
        length <= most
    };
    let fit = headers.iter().take(LISTED).take_while(fits).count();
    &headers[..fit.max(headers.len().min(1))]
}

/// The list of memories, of so many.
fn manifest(listed: &[scan::Header], all: usize, line: impl Fn(&scan::Header) -> String) -> String {
    let mut manifest = listed.iter().map(line).collect::<Vec<_>>().join("\n");
    if all > listed.len() {
        let _ = write!(manifest, "\n- and {} older ones; Glob lists them", all - listed.len());
    }
    manifest
}

/// A memory in the list, with the local day of its last change, and whether it is the user's.
fn line(header: &scan::Header, zone: &TimeZone, is_users: bool) -> String {
    let kind = header.kind.map(|kind| format!("[{kind}] ")).unwrap_or_default();
    let day = header.modified.map(|at| format!(" ({})", at.to_zoned(zone.clone()).date())).unwrap_or_default();
    let whose = if is_users { " [the user's]" } else { "" };
    let about = header.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    format!("- {kind}{}{day}{whose}{about}", header.path)
}

/// The small memories, whole, the newest first, as far as they fit; before their paths stands where they are.
fn texts(root: &Root, below: &str, scope: &Scope, headers: &[scan::Header], most: usize) -> String {
    let mut text = String::new();
    for header in headers {
        let Ok(file) = root.read(&header.path, LARGEST) else { continue };
        let Ok(content) = std::str::from_utf8(&file.bytes) else { continue };
        if text.len() + content.len() > most {
            break;
        }
        let path = root.path().join(&header.path);
        let quoted = quoting::quoted(content);
        // What had to be changed to be shown is not what an edit would find.
        if quoted == content {
            scope.note(&path, file.stamp);
        }
        let named = format!("{below}{}", header.path);
        let _ = writeln!(text, "<file path=\"{}\">\n{}\n</file>", quoting::quoted(&named), quoted.trim_end());
    }
    text
}

/// Memories that the user removed or took back, the newest first.
fn forgotten(removed: &[Tombstone], zone: &TimeZone) -> Vec<String> {
    let told = |stone: &Tombstone| {
        let at = stone.at.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
        let day = at.map(|at| format!(", on {}", at.to_zoned(zone.clone()).date()));
        format!("{} ({}{})", stone.name, stone.path, day.unwrap_or_default())
    };
    let mut removed: Vec<&Tombstone> = removed.iter().collect();
    removed.sort_by(|one, other| other.at.cmp(&one.at));
    removed.into_iter().map(told).collect()
}

/// Drift of the memories: what they name that is gone.
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
