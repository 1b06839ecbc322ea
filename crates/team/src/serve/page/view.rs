//! Contents of the pages, as values for their templates. Templates escape everything they are given.

use minijinja::{AutoEscape, Environment};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use crate::key::EntryKey;
use crate::protocol::Snapshot;
use crate::repository::Repository;
use crate::store::{AuditLine, RepositoryRight, Time, Version, Visitor};

const TEMPLATES: [(&str, &str); 6] = [
    ("frame.html", include_str!("../pages/frame.html")),
    ("sign-in.html", include_str!("../pages/sign-in.html")),
    ("index.html", include_str!("../pages/index.html")),
    ("repository.html", include_str!("../pages/repository.html")),
    ("entry.html", include_str!("../pages/entry.html")),
    ("told.html", include_str!("../pages/told.html")),
];

/// A page as HTML: a template with these values in it.
pub(super) fn render(template: &str, values: &Value) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    for (name, text) in TEMPLATES {
        if let Err(error) = environment.add_template(name, text) {
            tracing::error!(%error, name, "a template is broken");
        }
    }
    let rendered =
        environment.get_template(template).and_then(|template| template.render(minijinja::value::Serde(values)));
    rendered.unwrap_or_else(|error| {
        tracing::error!(%error, "a page could not be rendered");
        "This page could not be made.".to_owned()
    })
}

/// The visiting member's name, and the secret of its forms.
fn visitor(visit: &Visitor) -> Value {
    json!({"name": visit.member.name, "form": visit.form})
}

/// The page with the repositories that a member may see.
pub(super) fn index(visit: &Visitor, repositories: &[Repository]) -> String {
    render("index.html", &json!({"visitor": visitor(visit), "repositories": repositories}))
}

/// The page of a repository.
pub(super) fn repository(
    visit: &Visitor,
    repository: &Repository,
    snapshot: Option<&Snapshot>,
    rights: &[RepositoryRight],
    audit: &[AuditLine],
) -> String {
    let content = snapshot.map(|snapshot| snapshot.content.clone()).unwrap_or_default();
    let entry = |(key, text): (&EntryKey, &String)| {
        let author = content.authors.get(key);
        let (name, at) = author.map_or(("", ""), |author| (&author.name, day(&author.at)));
        json!({"key": key, "author": name, "at": at, "bytes": text.len()})
    };
    let line =
        |one: &AuditLine| json!({"at": when(one.at), "who": one.who, "action": one.action, "detail": one.detail});
    let values = json!({
        "visitor": visitor(visit),
        "repository": repository,
        "entries": content.entries.iter().map(entry).collect::<Value>(),
        "rights": rights.iter().map(|one| json!([one.member, one.level])).collect::<Value>(),
        "audit": audit.iter().map(line).collect::<Value>(),
    });
    render("repository.html", &values)
}

/// The page of an entry with its history.
pub(super) fn entry(
    visit: &Visitor,
    repository: &Repository,
    key: &EntryKey,
    versions: &[Version],
    may_write: bool,
) -> String {
    let change = |(at, one): (usize, &Version)| {
        let before = versions.get(at + 1).and_then(|before| before.text.as_deref()).unwrap_or_default();
        json!({
            "version": one.version, "author": one.author, "at": when(one.at), "deleted": one.text.is_none(),
            "newest": at == 0, "lines": changed(before, one.text.as_deref().unwrap_or_default()),
        })
    };
    let values = json!({
        "visitor": visitor(visit),
        "repository": repository,
        "key": key,
        "text": versions.first().and_then(|newest| newest.text.as_ref()),
        "may_write": may_write,
        "versions": versions.iter().enumerate().map(change).collect::<Value>(),
    });
    render("entry.html", &values)
}

/// The changed lines with two around them, each with its kind.
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

fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}
