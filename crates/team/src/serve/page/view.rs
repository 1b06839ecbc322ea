//! What the pages show, as values for their templates. Templates escape everything they are given.

use minijinja::{AutoEscape, Environment};
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::key::Key;
use crate::protocol::Snapshot;
use crate::repository::Repository;
use crate::store::{AuditLine, Right, Time, Version, Visit};

/// A page: its template, and what stands in it.
pub(super) trait Page: Serialize {
    /// The template's name.
    const TEMPLATE: &'static str;
}

const TEMPLATES: [(&str, &str); 6] = [
    ("frame.html", include_str!("../pages/frame.html")),
    ("sign-in.html", include_str!("../pages/sign-in.html")),
    ("index.html", include_str!("../pages/index.html")),
    ("repository.html", include_str!("../pages/repository.html")),
    ("entry.html", include_str!("../pages/entry.html")),
    ("told.html", include_str!("../pages/told.html")),
];

/// The page as HTML.
pub(super) fn render<P: Page>(page: &P) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    for (name, text) in TEMPLATES {
        if let Err(error) = environment.add_template(name, text) {
            tracing::error!(%error, name, "a template is broken");
        }
    }
    let rendered =
        environment.get_template(P::TEMPLATE).and_then(|template| template.render(minijinja::value::Serde(page)));
    rendered.unwrap_or_else(|error| {
        tracing::error!(%error, "a page could not be rendered");
        "This page could not be made.".to_owned()
    })
}

/// Signing in.
#[derive(Serialize)]
pub(super) struct SignIn {
    /// Whether there is an issuer.
    pub(super) issuer: bool,
    /// Whether a token was tried, and is none.
    pub(super) wrong: bool,
}

impl Page for SignIn {
    const TEMPLATE: &'static str = "sign-in.html";
}

/// Something to tell.
#[derive(Serialize)]
pub(super) struct Told {
    /// In a sentence.
    pub(super) message: String,
}

impl Page for Told {
    const TEMPLATE: &'static str = "told.html";
}

/// Who visits, on every page.
#[derive(Serialize)]
struct Visitor {
    name: String,
    form: String,
}

impl Visitor {
    fn of(visit: &Visit) -> Self {
        Self { name: visit.member.name.clone(), form: visit.form.clone() }
    }
}

/// The first page.
#[derive(Serialize)]
pub(super) struct Index {
    visitor: Visitor,
    repositories: Vec<String>,
}

impl Index {
    pub(super) fn new(visit: &Visit, repositories: &[Repository]) -> Self {
        Self { visitor: Visitor::of(visit), repositories: repositories.iter().map(Repository::to_string).collect() }
    }
}

impl Page for Index {
    const TEMPLATE: &'static str = "index.html";
}

/// One repository.
#[derive(Serialize)]
pub(super) struct Shown {
    visitor: Visitor,
    repository: String,
    entries: Vec<Row>,
    rights: Vec<(String, &'static str)>,
    audit: Vec<Line>,
}

#[derive(Serialize)]
struct Row {
    key: String,
    author: String,
    at: String,
    bytes: usize,
}

#[derive(Serialize)]
struct Line {
    at: String,
    who: String,
    action: String,
    detail: String,
}

impl Shown {
    pub(super) fn new(
        visit: &Visit,
        repository: &Repository,
        snapshot: Option<&Snapshot>,
        rights: &[Right],
        audit: &[AuditLine],
    ) -> Self {
        let content = snapshot.map(|snapshot| &snapshot.content);
        let row = |(key, text): (&Key, &String)| {
            let author = content.and_then(|content| content.authors.get(key));
            Row {
                key: key.to_string(),
                author: author.map(|author| author.name.clone()).unwrap_or_default(),
                at: author.map(|author| day(&author.at)).unwrap_or_default(),
                bytes: text.len(),
            }
        };
        let line = |one: &AuditLine| Line {
            at: when(one.at),
            who: one.who.clone(),
            action: serde_json::to_value(one.action)
                .ok()
                .and_then(|word| word.as_str().map(str::to_owned))
                .unwrap_or_default(),
            detail: one.detail.clone(),
        };
        Self {
            visitor: Visitor::of(visit),
            repository: repository.to_string(),
            entries: content.map(|content| content.entries.iter().map(row).collect()).unwrap_or_default(),
            rights: rights.iter().map(|one| (one.member.clone(), one.level.word())).collect(),
            audit: audit.iter().map(line).collect(),
        }
    }
}

impl Page for Shown {
    const TEMPLATE: &'static str = "repository.html";
}

/// One entry.
#[derive(Serialize)]
pub(super) struct Entry {
    visitor: Visitor,
    repository: String,
    key: String,
    text: Option<String>,
    may_write: bool,
    versions: Vec<Change>,
}

/// A version, with what it changed.
#[derive(Serialize)]
struct Change {
    version: u64,
    author: String,
    at: String,
    deleted: bool,
    newest: bool,
    lines: Vec<(&'static str, String)>,
}

impl Entry {
    pub(super) fn new(
        visit: &Visit,
        repository: &Repository,
        key: &Key,
        versions: &[Version],
        may_write: bool,
    ) -> Self {
        let change = |(at, one): (usize, &Version)| {
            let before = versions.get(at + 1).and_then(|before| before.text.as_deref()).unwrap_or_default();
            Change {
                version: one.version,
                author: one.author.clone(),
                at: when(one.at),
                deleted: one.text.is_none(),
                newest: at == 0,
                lines: changed(before, one.text.as_deref().unwrap_or_default()),
            }
        };
        Self {
            visitor: Visitor::of(visit),
            repository: repository.to_string(),
            key: key.to_string(),
            text: versions.first().and_then(|newest| newest.text.clone()),
            may_write,
            versions: versions.iter().enumerate().map(change).collect(),
        }
    }
}

impl Page for Entry {
    const TEMPLATE: &'static str = "entry.html";
}

/// The lines that changed, with two around them: what each is, and its text.
fn changed(before: &str, after: &str) -> Vec<(&'static str, String)> {
    let diff = TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for (at, group) in diff.grouped_ops(2).iter().enumerate() {
        if at > 0 {
            lines.push(("gap", "…".to_owned()));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let kind = match change.tag() {
                ChangeTag::Delete => "out",
                ChangeTag::Insert => "in",
                ChangeTag::Equal => "same",
            };
            lines.push((kind, change.value().trim_end_matches('\n').to_owned()));
        }
    }
    lines
}

fn when(time: Time) -> String {
    let text = jiff::Timestamp::from_millisecond(time).unwrap_or_default().to_string();
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

fn day(time: &str) -> String {
    time.get(..10).unwrap_or(time).to_owned()
}
