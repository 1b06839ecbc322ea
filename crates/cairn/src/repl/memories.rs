//! `/memory`: what is remembered of this project and which instruction files hold, to look at or to edit.

use std::path::{Path, PathBuf};

use files::Root;
use memory::instructions::{LoadedInstruction, Owner};
use memory::{Kind, Memory, age, lookup};

use super::conversation::Conversation;
use super::conversation_view::Display;
use super::page::PagePart;
use super::picker::PickerEntry;
use super::resume_and_rewind::ListPurpose;
use super::terminal_owner;
use crate::styled_text::{Span, TextStyle, first_line};

/// The most characters of a description in the list.
const DESCRIPTION: usize = 100;
/// The largest instruction file that is shown.
const SHOWN_LIMIT: u64 = 1_000_000;

/// A file that `/memory` can show and open.
#[derive(Debug, Clone)]
pub(super) enum MemoryFile {
    /// A memory, by its path below the memory directory.
    Memory(String),
    /// An instruction file.
    Instructions(PathBuf),
}

/// The actions on one, in the order in which they are offered.
const DEEDS: [(&str, &str); 2] =
    [("look at it", ""), ("edit it", "in your editor; changes apply from your next message")];

impl Conversation {
    /// Shows the memory that is named, or a list of all memories and instruction files.
    pub(super) fn memories(&mut self, name: &str) {
        let mut all =
            match self.session.memory.as_deref().map(|directory| lookup::all(&Root::open(directory)?)).transpose() {
                Ok(all) => all.unwrap_or_default(),
                Err(error) => {
                    self.view.hint = Some(format!("memory cannot be read: {error}"));
                    return;
                }
            };
        if name.is_empty() {
            let memories = all.iter().map(|memory| (choice(memory), MemoryFile::Memory(memory.path.clone())));
            let (list, files): (Vec<PickerEntry>, Vec<MemoryFile>) = memories.chain(self.instruction_files()).unzip();
            match (&self.session.memory, list.is_empty()) {
                (None, true) => self.view.hint = Some("memory is off".into()),
                (Some(directory), true) => {
                    self.view.hint = Some(format!("there are no memories in {} yet", self.place.short(directory)));
                }
                (_, false) => {
                    self.requests.choose("Which memory or instruction file?", list, ListPurpose::MemoryFile(files));
                }
            }
            return;
        }
        match lookup::find(&all, name).as_slice() {
            [] => self.view.hint = Some(format!("there is no memory called {name}; /memory lists them")),
            [one] => {
                let memory = all.swap_remove(*one);
                self.show_memory(&memory);
            }
            several => {
                let file = |&at: &usize| (choice(&all[at]), MemoryFile::Memory(all[at].path.clone()));
                let (list, files) = several.iter().map(file).unzip();
                self.requests.choose("Which memory?", list, ListPurpose::MemoryFile(files));
            }
        }
    }

    /// The instruction files that are loaded, and with an editor those that could be made. While the agent works it alone knows
    /// them.
    fn instruction_files(&self) -> Vec<(PickerEntry, MemoryFile)> {
        let Some(knowledge) = self.session.agent.as_ref().and_then(engine::Agent::knowledge) else { return Vec::new() };
        let entry = |path: &Path, about: String| {
            (PickerEntry { label: self.place.short(path), about }, MemoryFile::Instructions(path.to_owned()))
        };
        let is_instruction = |file: &&LoadedInstruction| !matches!(file.owner, Owner::AutoMem | Owner::TeamMem);
        let loaded: Vec<&LoadedInstruction> = knowledge.instructions().files.iter().filter(is_instruction).collect();
        let mut files: Vec<_> =
            loaded.iter().map(|file| entry(&file.path, format!("instructions, {}", file.owner.name()))).collect();
        if self.can_edit() {
            let possible = [(self.place.home.path(), "for all projects"), (&self.place.directory, "for this project")];
            for (directory, whom) in possible {
                let path = directory.join("CLAUDE.md");
                if files::stamp(&path).is_err() {
                    files.push(entry(&path, format!("instructions {whom}, not there yet")));
                }
            }
        }
        files
    }

    /// An editor needs the terminal to itself: lines that come from elsewhere leave it none.
    fn can_edit(&self) -> bool {
        self.view.face != Display::Lines && terminal_owner::editor().is_some()
    }

    /// Shows a file, or asks whether to edit it, where that can be done.
    pub(super) fn choose_what_with(&mut self, file: MemoryFile) {
        if !self.can_edit() {
            return self.show_file(&file);
        }
        let entry = |(label, about): &(&str, &str)| PickerEntry { label: (*label).into(), about: (*about).into() };
        self.requests.choose(
            "What do you want to do with it?",
            DEEDS.iter().map(entry).collect(),
            ListPurpose::MemoryFileWhat(file),
        );
    }

    /// Shows a file, or has it opened in the user's editor.
    pub(super) fn do_with_file(&mut self, file: MemoryFile, deed: usize) {
        match (deed, file, &self.session.memory) {
            (0, file, _) => self.show_file(&file),
            (_, MemoryFile::Instructions(path), _) => self.requests.editing = Some(path),
            (_, MemoryFile::Memory(path), Some(directory)) => self.requests.editing = Some(directory.join(path)),
            (_, MemoryFile::Memory(_), None) => {}
        }
    }

    /// The user has changed a file: the agent hears of it, now or when it is back.
    pub(super) fn was_edited(&mut self, path: PathBuf) {
        self.view.page.note(&format!("{} was changed", self.place.short(&path)), TextStyle::DIM);
        self.requests.edited.push(path);
        self.take_in_edited();
    }

    /// Tells the agent of files that were changed, if it is there.
    pub(super) fn take_in_edited(&mut self) {
        if let Some(agent) = &mut self.session.agent {
            self.requests.edited.drain(..).for_each(|path| agent.edited_by_hand(&path));
        }
    }

    /// Shows a file whole.
    pub(super) fn show_file(&mut self, file: &MemoryFile) {
        let read = match file {
            MemoryFile::Memory(path) => {
                let read = self.session.memory.as_ref().map(|directory| Memory::read(&Root::open(directory)?, path));
                match read {
                    Some(Ok(memory)) => self.show_memory(&memory),
                    Some(Err(error)) => self.view.hint = Some(format!("{path} cannot be read: {error}")),
                    None => {}
                }
                return;
            }
            MemoryFile::Instructions(path) => files::read(path, SHOWN_LIMIT).map(|file| (path, file)),
        };
        match read {
            Ok((path, file)) => {
                self.view.page.begin(PagePart::Note);
                self.view.page.line(&[Span::new(&self.place.short(path), TextStyle::BOLD)], 2);
                self.view.show_markdown(String::from_utf8_lossy(&file.bytes).trim());
            }
            Err(error) => self.view.hint = Some(error.to_string()),
        }
    }

    fn show_memory(&mut self, memory: &Memory) {
        let directory = self.session.memory.clone().unwrap_or_default();
        self.view.page.begin(PagePart::Note);
        let about = format!("  {}", facts(memory));
        self.view.page.line(&[Span::new(&memory.name, TextStyle::BOLD), Span::new(&about, TextStyle::DIM)], 2);
        self.view.page.line(&[Span::new(&self.place.short(&directory.join(&memory.path)), TextStyle::DIM)], 2);
        if let Some(description) = &memory.description {
            self.view.page.line(&[Span::plain(description)], 2);
        }
        self.view.show_markdown(memory.body.trim());
    }
}

fn choice(memory: &Memory) -> PickerEntry {
    let description = first_line(memory.description.as_deref().unwrap_or_default(), DESCRIPTION);
    let about = format!("{}  {description}", facts(memory));
    PickerEntry { label: first_line(&memory.name, 60), about: about.trim_end().to_owned() }
}

/// Type and age.
fn facts(memory: &Memory) -> String {
    let age = age::words(age::days(memory.dated, session::World::real().now()));
    match memory.kind.map(Kind::name) {
        Some(kind) => format!("{kind}, {age}"),
        None => age,
    }
}
