//! What a dream is told: the memories, what is wrong with them, what happened since. All of it is quoted, and bounded.

use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use memory::store::Store;
use memory::{Memory, doctor, drift, index, neutral, scan};
use minijinja::context;
use minijinja::syntax::SyntaxConfig;
use session::home::SessionFile;
use tools::Scope;

const SYSTEM: &str = include_str!("dream.md");
const TASK: &str = include_str!("dream_task.md");

/// How many memories are listed, and how many bytes of them are shown whole, and of one.
const LISTED: usize = 400;
const SHOWN: usize = 48_000;
const LARGEST: u64 = 4_096;
/// How many findings of each kind are told.
const FINDINGS: usize = 40;
/// How much is told of daily logs, and how much of one.
const LOGS: usize = 24_000;
const LOG: u64 = 12_000;
/// The largest index that is looked at.
const INDEX: u64 = 10_000_000;

/// The system prompt.
pub(super) fn system() -> String {
    render(
        SYSTEM,
        context! {
            line_length => index::LINE_LENGTH, index_lines => index::LINE_LIMIT, index_bytes => index::BYTE_LIMIT,
        },
    )
}

/// What it is to do: the first message. What is shown whole is noted in the scope as read.
pub(super) fn task(
    store: &Store,
    scope: &Scope,
    last: Option<Timestamp>,
    now: Timestamp,
    sessions: &[SessionFile],
) -> Result<String, memory::Error> {
    let root = store.root();
    let headers = scan::headers(root)?;
    let listed: Vec<scan::Header> = headers.iter().take(LISTED).cloned().collect();
    let mut manifest = scan::manifest(&listed);
    if headers.len() > LISTED {
        let _ = write!(manifest, "\n- and {} older ones; Glob lists them", headers.len() - LISTED);
    }
    let index = root.read(index::FILE, INDEX).map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    let index = index.unwrap_or_default();
    let limits: Vec<String> = index::warnings(&index).iter().map(ToString::to_string).collect();
    let zone = TimeZone::system();
    let date = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%A, %Y-%m-%d").to_string();
    let findings = doctor::examine(store)?;
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
            manifest => neutral::quoted(&manifest),
            team => headers.iter().any(|header| header.path.starts_with("team/")),
            texts => texts(store, scope, &listed),
            findings => list(findings.iter().map(ToString::to_string)),
            drift => list(drifted(store, scope.project())),
            logs => logs(store, last, now),
            sessions => super::sessions::told(sessions),
        },
    ))
}

/// The small memories, whole, the newest first, as far as they fit.
fn texts(store: &Store, scope: &Scope, headers: &[scan::Header]) -> String {
    let mut text = String::new();
    for header in headers {
        let Ok(file) = store.root().read(&header.path, LARGEST) else { continue };
        let Ok(content) = std::str::from_utf8(&file.bytes) else { continue };
        if text.len() + content.len() > SHOWN {
            break;
        }
        let path = store.root().path().join(&header.path);
        let quoted = neutral::quoted(content);
        // What had to be changed to be shown is not what an edit would find.
        if quoted == content {
            scope.note(&path, file.stamp);
        }
        let _ = writeln!(text, "<file path=\"{}\">\n{}\n</file>", neutral::quoted(&header.path), quoted.trim_end());
    }
    text
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

fn list(lines: impl IntoIterator<Item = String>) -> String {
    let lines = lines.into_iter().take(FINDINGS);
    lines.map(|line| format!("- {}", neutral::quoted(&line))).collect::<Vec<_>>().join("\n")
}

/// The daily logs of the days since the last dream, that day included.
fn logs(store: &Store, last: Option<Timestamp>, now: Timestamp) -> String {
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
        let Ok(head) = store.root().head(path, LOG) else { continue };
        let content = String::from_utf8_lossy(&head.bytes).into_owned();
        let more = if head.len > LOG { "\n[… read the rest]" } else { "" };
        let one = format!("<log path=\"{path}\">\n{}{more}\n</log>\n", neutral::quoted(content.trim_end()));
        if text.len() + one.len() > LOGS {
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
