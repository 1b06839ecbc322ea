//! What has to hold at the end of a year: what memory says of each gauge, by what the user said of it and did to it.

use std::path::{Path, PathBuf};

use super::Year;
use super::model::statements;

/// Something that happened to a gauge.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    at: i64,
    kind: StepKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum StepKind {
    /// The user said so, in a session, and may have been answered.
    Said { value: String, session: String, is_answered: bool },
    /// The user wrote so into its memory.
    Edited(String),
    /// The user removed its memory.
    Removed,
}

/// What the user said of a gauge and did to its memory, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge {
    steps: Vec<Step>,
}

impl Gauge {
    pub(crate) fn said(&mut self, value: &str, at: i64, session: &str) {
        let (value, session) = (value.to_owned(), session.to_owned());
        self.steps.push(Step { at, kind: StepKind::Said { value, session, is_answered: false } });
    }

    pub(crate) fn answered(&mut self, of: &str) {
        for step in &mut self.steps {
            if let StepKind::Said { value, is_answered, .. } = &mut step.kind {
                *is_answered |= value == of;
            }
        }
    }

    pub(crate) fn edited(&mut self, value: &str, at: i64) {
        self.steps.push(Step { at, kind: StepKind::Edited(value.to_owned()) });
    }

    pub(crate) fn removed(&mut self, at: i64) {
        self.steps.push(Step { at, kind: StepKind::Removed });
    }

    /// The newest value.
    pub(crate) fn newest(&self) -> Option<String> {
        self.steps.iter().rev().find_map(|step| match &step.kind {
            StepKind::Said { value, .. } | StepKind::Edited(value) => Some(value.clone()),
            StepKind::Removed => None,
        })
    }

    /// The sessions in which something was said of it.
    fn sessions<'a>(&'a self) -> Vec<&'a str> {
        let said = |step: &'a Step| {
            if let StepKind::Said { session, .. } = &step.kind { Some(session.as_str()) } else { None }
        };
        self.steps.iter().filter_map(said).collect()
    }

    /// What memory may say of it at the end; nothing is one of the answers where `None` is among them.
    fn allowed(&self, is_left: impl Fn(&str) -> bool) -> Vec<Option<String>> {
        let mut allowed = Vec::new();
        for step in self.steps.iter().rev() {
            match &step.kind {
                StepKind::Removed => break,
                StepKind::Edited(value) => {
                    allowed.push(Some(value.clone()));
                    break;
                }
                StepKind::Said { value, session, is_answered } => {
                    allowed.push(Some(value.clone()));
                    if *is_answered && !is_left(session) {
                        break;
                    }
                }
            }
        }
        // What was removed stays so: only what the user says or writes afterwards may stand there.
        if self.steps.iter().any(|step| step.kind == StepKind::Removed) {
            allowed.push(None);
        }
        let is_certain = self.steps.iter().any(|step| match &step.kind {
            StepKind::Said { session, is_answered, .. } => *is_answered && !is_left(session),
            StepKind::Edited(_) => true,
            StepKind::Removed => false,
        });
        if !is_certain {
            allowed.push(None);
        }
        allowed
    }
}

/// Looks at the memories, and at all files.
pub(crate) fn hold(year: &Year) {
    let mut broken = Vec::new();
    let all = all_files(year.place.path());
    let memories: Vec<(PathBuf, String)> = all
        .iter()
        .filter(|path| path.starts_with(year.memories()) && !path.ends_with("MEMORY.md"))
        .map(|path| (path.clone(), raw(path)))
        .filter(|(path, _)| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    let queue: Vec<String> = all
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "left"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    for (gauge, past) in &mut year.diary.lock().gauges {
        past.steps.sort_by_key(|step| step.at); // two terminals have a clock each
        let says = |text: &str| statements(text).into_iter().find(|(name, _)| name == gauge).map(|(_, value)| value);
        let found: Vec<String> = memories.iter().filter_map(|(_, text)| says(text)).collect();
        let allowed = past.allowed(|session| queue.iter().any(|id| id == session));
        match found.as_slice() {
            [] if allowed.contains(&None) => {}
            [value] if allowed.contains(&Some(value.clone())) => {}
            found => {
                broken.push(format!("of {gauge} memory says {found:?}, and may say {allowed:?}: {past:?}"));
                let told =
                    all.iter().filter(|path| past.sessions().iter().any(|id| path.ends_with(format!("{id}.jsonl"))));
                told.for_each(|path| year.model.mind().tell(&raw(path)));
            }
        }
    }
    // Sessions have all that was said, the vault what is in it.
    let apart: Vec<String> = year.model.mind().apart.keys().cloned().collect();
    let is_session = |path: &Path| path.starts_with(year.place.path().join("config/projects"));
    for path in all.iter().filter(|path| !is_session(path) && !path.starts_with(year.project())) {
        let text = raw(path);
        let words: std::collections::BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        for word in apart.iter().filter(|word| words.contains(word.as_str())) {
            broken.push(format!("{word} is in {}", path.display()));
        }
    }
    broken.into_iter().for_each(|law| year.model.mind().breaks(law));
}

fn raw(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}
