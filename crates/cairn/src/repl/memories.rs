//! `/memory`: what is remembered of this project, and one memory whole.

use files::Root;
use memory::{Kind, Memory, age, scan};

use super::back::Choosing;
use super::conversation::Conversation;
use super::markdown::Markdown;
use super::page::Part;
use super::picker::Entry;
use crate::span::{Look, Span, first_line};

/// How much of a description stands in the list.
const DESCRIPTION: usize = 100;

impl Conversation {
    /// Shows the memory that is named, or a list of all.
    pub(super) fn memories(&mut self, name: &str) {
        let Some(directory) = &self.memory else {
            self.hint = Some("memory is off".into());
            return;
        };
        let mut all = match all(directory) {
            Ok(all) => all,
            Err(error) => {
                self.hint = Some(format!("memory cannot be read: {error}"));
                return;
            }
        };
        if all.is_empty() {
            self.hint = Some(format!("there are no memories in {} yet", self.short(directory)));
            return;
        }
        if name.is_empty() {
            let list = all.iter().map(choice).collect();
            let paths = all.into_iter().map(|memory| memory.path).collect();
            self.choose("Show which memory?", list, Choosing::Memory(paths));
            return;
        }
        match find(&all, name).as_slice() {
            [] => self.hint = Some(format!("there is no memory called {name}; /memory lists them")),
            [one] => {
                let memory = all.swap_remove(*one);
                self.show_memory(&memory);
            }
            several => {
                let (list, paths) = several.iter().map(|&at| (choice(&all[at]), all[at].path.clone())).unzip();
                self.choose("Show which memory?", list, Choosing::Memory(paths));
            }
        }
    }

    /// Shows a memory by its path below the memory directory.
    pub(super) fn memory_at(&mut self, path: &str) {
        let read = self.memory.as_ref().map(|directory| Memory::read(&Root::open(directory)?, path));
        match read {
            Some(Ok(memory)) => self.show_memory(&memory),
            Some(Err(error)) => self.hint = Some(format!("{path} cannot be read: {error}")),
            None => {}
        }
    }

    fn show_memory(&mut self, memory: &Memory) {
        let directory = self.memory.clone().unwrap_or_default();
        self.page.begin(Part::Note);
        let about = format!("  {}", facts(memory));
        self.page.line(&[Span::new(&memory.name, Look::BOLD), Span::new(&about, Look::DIM)], 2);
        self.page.line(&[Span::new(&self.short(&directory.join(&memory.path)), Look::DIM)], 2);
        if let Some(description) = &memory.description {
            self.page.line(&[Span::plain(description)], 2);
        }
        let mut markdown = Markdown::new(self.page.columns());
        self.page.begin(Part::Reply);
        self.page.rows(markdown.push(memory.body.trim()));
        self.page.rows(markdown.finish());
    }
}

/// All memories below a directory, newest first.
fn all(directory: &std::path::Path) -> Result<Vec<Memory>, memory::Error> {
    let root = Root::open(directory)?;
    let mut all: Vec<Memory> = scan::paths(&root)?.iter().filter_map(|path| Memory::read(&root, path).ok()).collect();
    all.sort_by(|one, other| other.modified.cmp(&one.modified).then_with(|| one.path.cmp(&other.path)));
    Ok(all)
}

/// The memories a name can mean: those that are called so, else those whose name begins so, else those that contain it.
fn find(all: &[Memory], name: &str) -> Vec<usize> {
    let wanted = name.to_lowercase();
    let names = |memory: &Memory| {
        let path = memory.path.to_lowercase();
        [memory.name.to_lowercase(), path.trim_end_matches(".md").to_owned(), path]
    };
    let fitting = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..all.len()).filter(|&at| names(&all[at]).iter().any(|name| fits(name))).collect()
    };
    let ways: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name == wanted, &|name| name.starts_with(&wanted), &|name| name.contains(&wanted)];
    ways.iter().map(|way| fitting(way)).find(|found| !found.is_empty()).unwrap_or_default()
}

fn choice(memory: &Memory) -> Entry {
    let description = first_line(memory.description.as_deref().unwrap_or_default(), DESCRIPTION);
    let about = format!("{}  {description}", facts(memory));
    Entry { label: first_line(&memory.name, 60), about: about.trim_end().to_owned() }
}

/// Type and age.
fn facts(memory: &Memory) -> String {
    let age = age::words(age::days(memory.modified, engine::World::real().now()));
    match memory.kind.map(Kind::name) {
        Some(kind) => format!("{kind}, {age}"),
        None => age,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_the_nearest_memories() {
        let memory =
            |path: &str, name: &str| Memory::parse(path, format!("---\nname: {name}\n---\ntext\n").as_bytes(), None, 0);
        let all = [memory("deploy.md", "Deploys"), memory("deploy_old.md", "Old ways"), memory("team/x.md", "Tests")];
        for (name, found) in [
            ("deploys", vec![0]),
            ("deploy", vec![0]),
            ("deploy_old.md", vec![1]),
            ("depl", vec![0, 1]),
            ("team/x", vec![2]),
            ("ways", vec![1]),
            ("nothing", vec![]),
        ] {
            assert_eq!(find(&all, name), found, "{name}");
        }
    }
}
