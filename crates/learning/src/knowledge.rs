//! What a session knows beside the conversation: instruction files and memory.
//!
//! Both enter as attachments, rendered once and frozen in the log; a resumed session reads off the log what it has seen
//! and attaches nothing twice. Instructions and the memory index come before the user's first words, and when a file or a
//! folder they are for is touched. Memories come by [`recall`]: when something is said, and when what the turn does brings
//! up an instruction. Nothing here is waited for, and nothing here can fail a turn.

mod by_hand;
mod daily;
pub mod outside;
mod recall;
mod selector;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use jiff::civil::Date;
use memory::instructions::{
    InstructionFault, InstructionSources, Instructions, LoadedInstruction, Note, Reason, first_message, nested,
};
use memory::rank::WorkAtHand;
use memory::secrets::{self, Remarks};
use memory::shelf::{Scope as Whose, Shelf};
use memory::spoken::Register;
use memory::store::IndexUpkeep;
use memory::{age, index};
use provider::Model;
use session::{Home, LineMeta, Session, World};
use settings::trust::Trust;
use tools::{EditInput, Scope, texts_put_in};
use transcript::{Injected, Purpose};

use crate::ledger::Ledger;
use outside::OutsideFile;
use recall::Recall;

pub use daily::DailyLog;
pub use recall::{Authors, RecallSwitch, UserMessage};
pub use selector::Selector;

/// Instruction files and memory of one session.
pub struct Knowledge {
    instructions: Instructions,
    /// Instruction files the model has seen.
    attached: HashSet<PathBuf>,
    /// What the user was told of those that were left out.
    told: HashSet<String>,
    /// What the user lets the project's files bring in from outside; none where nobody is to be asked.
    trust: Option<Trust>,
    /// Files from outside that were asked about, here or before the session began.
    asked: HashSet<PathBuf>,
    /// How many instruction files there were before the last touch.
    before: usize,
    /// Files that the user has changed since the last words.
    by_hand: Vec<PathBuf>,
    /// A folder that is a copy of another, whose instruction files hold in it.
    copy: Option<CopiedFolder>,
    recall: Recall,
    /// The day the model was told it is, where it keeps a daily log.
    day: Option<Date>,
    world: World,
}

/// What the settings say of memory and instruction files.
#[derive(Debug, Clone, PartialEq)]
pub struct KnowledgeSettings {
    /// Where memories lie, if memory is on.
    pub directory: Option<PathBuf>,
    /// Whether memories are brought up by themselves.
    pub recalling: RecallSwitch,
    /// The model that is asked which of them matter.
    pub selector: Option<String>,
    /// Instruction files that are not loaded.
    pub excludes: Vec<String>,
    /// Where the indexes of memory are.
    pub indexes: Vec<PathBuf>,
}

/// What agents that a session sends out know of its instruction files.
#[derive(Debug, Clone)]
pub struct InheritedInstructions {
    sources: InstructionSources,
    /// What the user was told of those that were left out.
    told: HashSet<String>,
}

/// A folder that is a copy of another, such as a worktree.
#[derive(Debug, Clone)]
pub struct CopiedFolder {
    /// Where it is.
    pub at: PathBuf,
    /// Of what.
    pub of: PathBuf,
}

impl CopiedFolder {
    /// The file that one of the copy stands for.
    fn original(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.at).ok().map(|inside| self.of.join(inside))
    }
}

/// Something to attach, with what the log is to remember of it.
#[derive(Debug)]
pub struct AttachedText {
    /// What the model sees.
    pub text: Injected,
    /// What a later session has to know.
    pub beside: LineMeta,
}

impl Knowledge {
    /// Loads instructions, opens the memory directory if there is one, and reads off the log what was seen before.
    pub fn new(
        sources: InstructionSources,
        memory_directory: Option<&Path>,
        selector: Option<Selector>,
        session: &Session,
    ) -> Self {
        let home = Home::at(&sources.config_home);
        let shelf = memory_directory.and_then(|directory| shelf(directory, &sources.working_directory, &home));
        let mut knowledge = Self {
            instructions: Instructions::load(sources, Reason::SessionStart),
            attached: HashSet::new(),
            told: HashSet::new(),
            trust: None,
            asked: HashSet::new(),
            by_hand: Vec::new(),
            before: 0,
            copy: None,
            recall: Recall::new(shelf, selector),
            day: None,
            world: session.world().clone(),
        };
        knowledge.remember(session);
        knowledge.recall.warm();
        knowledge
    }

    /// Reads off the log what the model has seen and still sees: what went with a summary, or was taken back, may come
    /// again.
    pub fn remember(&mut self, session: &Session) {
        let known = std::mem::take(&mut self.attached);
        self.recall.forget();
        for beside in session.beside_in_view() {
            self.attached.extend(beside.instructions);
            if let Some(seen) = beside.memory {
                self.recall.was_surfaced(seen.path, seen.bytes);
            }
        }
        if !known.is_subset(&self.attached) {
            self.instructions.reload(Reason::SessionStart);
        }
    }

    /// Names the folders where agents keep memories of their own: each a directory that is not left, whatever links are
    /// in it, and the way inside it.
    #[must_use]
    pub fn with_agents(mut self, folders: Vec<(PathBuf, PathBuf)>) -> Self {
        self.recall.agents = folders;
        self
    }

    /// Gives it what the user lets the project's files bring in from outside. What they ask for now was asked about before;
    /// what comes into view later is asked about then.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        let left = outside::settle(&mut self.instructions, &trust);
        self.asked.extend(left.into_iter().map(|outside| outside.real));
        self.trust = Some(trust);
        self
    }

    /// Names the directory of the user's memories that hold in every project.
    #[must_use]
    pub fn with_user_memories(mut self, directory: &Path) -> Self {
        if let Ok(root) = Root::open(directory) {
            let home = Home::at(&self.instructions.sources().config_home);
            self.recall.with_user(Shelf::new(root, Whose::User).with_register(register(directory, &home)));
        }
        self
    }

    /// Says whether the index is kept.
    #[must_use]
    pub fn with_indexing(mut self, indexing: IndexUpkeep) -> Self {
        self.recall.indexing = indexing;
        self
    }

    /// Says whether memories are brought up by themselves.
    #[must_use]
    pub fn with_recall(mut self, recalling: RecallSwitch) -> Self {
        self.recall.recalling = recalling;
        self
    }

    /// Names who is asked who wrote a memory that is shared.
    #[must_use]
    pub fn with_authors(mut self, authors: Authors) -> Self {
        self.recall.authors = Some(authors);
        self
    }

    /// Does as the settings say from now on. What the model was shown of memory and instructions stays where it is.
    pub fn follow(&mut self, said: KnowledgeSettings, model: &Arc<dyn Model>, ledger: &Arc<Ledger>) {
        if said.directory.as_deref() != self.memory_directory() {
            let sources = self.instructions.sources();
            let (tree, home) = (sources.working_directory.clone(), Home::at(&sources.config_home));
            let shelf = said.directory.as_deref().and_then(|directory| shelf(directory, &tree, &home));
            self.recall.turn_to(shelf);
        }
        self.instructions.follow(said.excludes, said.indexes);
        self.recall.recalling = said.recalling;
        let (model, ledger) = (model.clone(), ledger.clone());
        self.recall.selector = said.selector.map(|name| Selector { model, name, ledger });
    }

    /// What holds of what settings can say.
    pub fn in_force(&self) -> KnowledgeSettings {
        KnowledgeSettings {
            directory: self.memory_directory().map(Path::to_owned),
            recalling: self.recall.recalling,
            selector: self.recall.selector.as_ref().map(|selector| selector.name.clone()),
            excludes: self.instructions.excludes().to_vec(),
            indexes: self.instructions.sources().indexes.clone(),
        }
    }

    /// Files that were loaded, and what was wrong with others.
    pub fn instructions(&self) -> &Instructions {
        &self.instructions
    }

    /// Whether the index is kept.
    pub fn indexing(&self) -> IndexUpkeep {
        self.recall.indexing
    }

    /// Where memories lie, if memory is on.
    pub fn memory_directory(&self) -> Option<&Path> {
        self.recall.directory()
    }

    /// Whether a path lies in a memory directory.
    pub fn is_memory(&self, path: &Path) -> bool {
        let places = [self.memory_directory(), self.recall.user_directory()];
        places.into_iter().flatten().any(|directory| path.starts_with(directory))
    }

    /// Whether a path is an instruction file that was loaded.
    pub fn is_instruction(&self, path: &Path) -> bool {
        self.attached.contains(path) || self.instructions.files.iter().any(|file| file.path == path)
    }

    /// What the user has to know of instruction files: what a project's files would have brought in and did not, because it
    /// lies outside or is another user's; and which are long. Each is said once.
    pub fn warnings(&mut self) -> Vec<String> {
        let is_told = |note: &&Note| {
            matches!(note.what, InstructionFault::Outside(_) | InstructionFault::OfAnother | InstructionFault::Long(_))
        };
        let told = self.instructions.notes.iter().filter(is_told).map(Note::to_string);
        told.filter(|text| self.told.insert(text.clone())).collect()
    }

    /// What was attached is behind a summary: instructions are read again, and memories may come up again.
    pub fn compacted(&mut self) {
        self.instructions.reload(Reason::Compact);
        self.attached.clear();
        self.recall.forget();
    }

    /// What comes before the user's first words; nothing if it was said already.
    pub fn beginning(&mut self) -> Option<AttachedText> {
        if !self.attached.is_empty() {
            return None;
        }
        self.instructions.refresh_indexes(Reason::SessionStart);
        let today = self.world.now().to_zoned(jiff::tz::TimeZone::system()).date();
        let text = Injected::new(Purpose::Instructions, &first_message(&self.instructions.files, today));
        let mut paths: Vec<PathBuf> = self.instructions.files.iter().map(|file| file.path.clone()).collect();
        if paths.is_empty() {
            paths.push(PathBuf::new()); // said, though there was nothing but the date to say
        }
        self.attached.extend(paths.iter().cloned());
        Some(AttachedText { text, beside: LineMeta { instructions: paths, ..LineMeta::default() } })
    }

    /// What an agent that is sent out knows of it: the instruction files, without memories, which belong to the
    /// conversation.
    pub fn for_agents(&self) -> InheritedInstructions {
        let sources = InstructionSources { indexes: Vec::new(), ..self.instructions.sources().clone() };
        InheritedInstructions { sources, told: self.told.clone() }
    }

    /// Of an agent that was sent out. Nobody is asked about files from outside on its behalf: those that were not agreed to
    /// stay where they are.
    pub fn inherited(from: InheritedInstructions, copy: Option<CopiedFolder>, session: &Session) -> Self {
        Self { told: from.told, copy, ..Self::new(from.sources, None, None, session) }
    }

    /// Of a session that works in a copy of the folder that the instructions are from.
    #[must_use]
    pub fn in_copy(self, copy: CopiedFolder) -> Self {
        Self { copy: Some(copy), ..self }
    }

    /// What a file or a folder that was touched brings with it.
    pub fn touched(&mut self, path: &Path) -> Option<(Vec<LoadedInstruction>, AttachedText)> {
        self.before = self.instructions.files.len();
        let original = self.copy.as_ref().and_then(|copy| copy.original(path));
        let meant = original.as_deref().unwrap_or(path);
        let loaded = if path.is_dir() { self.instructions.entered(meant) } else { self.instructions.touched(meant) };
        let loaded: Vec<LoadedInstruction> =
            loaded.into_iter().filter(|file| self.attached.insert(file.path.clone())).collect();
        self.shown(loaded)
    }

    /// A file from outside that has come into view and that the user was not asked about. What was agreed to before is
    /// brought in by this.
    pub fn next_outside(&mut self) -> Option<OutsideFile> {
        let trust = self.trust.as_ref()?;
        let left = outside::settle(&mut self.instructions, trust);
        let next = left.into_iter().find(|one| !trust.is_settled(&one.claim) && !self.asked.contains(&one.real))?;
        (self.asked.len() < MOST_ASKED).then_some(())?;
        self.asked.insert(next.real.clone());
        Some(next)
    }

    /// What the user said of a file from outside. An answer that cannot be kept holds for this session.
    pub fn answered(&mut self, outside: &OutsideFile, agreed: IncludeConsent) {
        let Some(trust) = &mut self.trust else { return };
        let claims = std::slice::from_ref(&outside.claim);
        let _ = match agreed {
            IncludeConsent::Yes => trust.remember(claims),
            IncludeConsent::No => trust.decline(claims),
        };
        if agreed == IncludeConsent::Yes {
            self.instructions.agree(&outside.real);
        }
    }

    /// What a file that was touched brings with it since then, because the user agreed to it.
    pub fn agreed(&mut self, path: &Path) -> Option<(Vec<LoadedInstruction>, AttachedText)> {
        if !path.is_dir() {
            self.instructions.touched(path);
        }
        let loaded = self.instructions.files.get(self.before..).unwrap_or_default().to_vec();
        let loaded = loaded.into_iter().filter(|file| self.attached.insert(file.path.clone())).collect();
        self.shown(loaded)
    }

    fn shown(&self, loaded: Vec<LoadedInstruction>) -> Option<(Vec<LoadedInstruction>, AttachedText)> {
        if loaded.is_empty() {
            return None;
        }
        let paths = loaded.iter().map(|file| file.path.clone()).collect();
        let beside = LineMeta { instructions: paths, ..LineMeta::default() };
        let text = Injected::new(Purpose::Instructions, &nested(&loaded));
        Some((loaded, AttachedText { text, beside }))
    }

    /// The model wrote an index: which limits it passes now, for the model to read.
    pub fn wrote(&self, path: &Path) -> Option<AttachedText> {
        if path.file_name()? != index::FILE {
            return None;
        }
        let text = String::from_utf8_lossy(&files::read(path, INDEX_LIMIT).ok()?.bytes).into_owned();
        let warnings: Vec<String> = index::warnings(&text).iter().map(ToString::to_string).collect();
        (!warnings.is_empty()).then(|| {
            let text = Injected::new(Purpose::Index, &warnings.join("\n"));
            AttachedText { text, beside: LineMeta::default() }
        })
    }

    /// The user said something: what the ranker is sure of comes back at once; where it is not, the selector is asked.
    pub fn said(&mut self, said: &UserMessage<'_>, scope: &Scope) -> Vec<AttachedText> {
        self.recall.said(said, scope, self.world.now())
    }

    /// The model has read a memory: how old it is, where that makes a difference.
    pub fn age_of(&self, file: &Path) -> Option<AttachedText> {
        let directory = [self.memory_directory(), self.recall.user_directory()].into_iter().flatten();
        let (directory, path) =
            directory.into_iter().find_map(|place| Some((place, file.strip_prefix(place).ok()?)))?;
        let memory = memory::Memory::read(&Root::open(directory).ok()?, path.to_str()?).ok()?;
        let days = age::days(memory.dated, self.world.now());
        let text = format!("{} was saved {}.\n{}", file.display(), age::words(days), age::warning(days)?);
        Some(AttachedText { text: Injected::new(Purpose::Memory, &text), beside: LineMeta::default() })
    }

    /// The turn touched files or used tools: the instructions that apply to that.
    pub fn does(&mut self, doing: &WorkAtHand, scope: &Scope) -> Vec<AttachedText> {
        self.recall.does(doing, scope, self.world.now())
    }

    /// What the selector has chosen by now; nothing while it thinks.
    pub async fn chosen(&mut self) -> Vec<AttachedText> {
        self.recall.chosen(self.world.now()).await
    }

    /// The turn is over: changed memories are read again.
    pub fn turn_ended(&mut self) {
        self.recall.turn_ended();
    }

    /// Somebody else wrote memories: they are read again.
    pub fn memories_changed(&self) {
        self.recall.warm();
    }

    /// Waits until the memories are read, or cannot be, for those who have to know what would be recalled.
    pub async fn ready(&self) {
        self.recall.ready().await;
    }
}

/// The memories of the user, open.
fn shelf(directory: &Path, tree: &Path, home: &Home) -> Option<Shelf> {
    let shelf = Shelf::new(Root::open(directory).ok()?, Whose::Private).with_tree(tree);
    Some(shelf.with_register(register(directory, home)))
}

/// What the memories of a directory quote of the user's own words.
fn register(directory: &Path, home: &Home) -> Register {
    Register::in_folder(home.changes(directory).folder())
}

/// Why the model may not write this into a memory: it holds a secret, or the file would with it. The reason names the rule
/// and never the secret.
pub fn refuses(input: &serde_json::Value, file: &Path) -> Option<String> {
    let rules = |text: &str| -> Vec<&'static str> {
        let known = secrets::scan(text.as_bytes(), "", Remarks::Ignored);
        let all = if known.is_empty() { secrets::in_note(text).into_iter().collect() } else { known };
        all.into_iter().map(|finding| finding.rule).collect()
    };
    // What an edit takes out may be a secret: that is how one is mended.
    let mut found: Vec<&'static str> = texts_put_in(input).flat_map(rules).collect();
    if let Some((before, after)) = edited(input, file) {
        // A secret can come in two parts.
        let (before, after) = (rules(&before), rules(&after));
        found.extend(after.iter().filter(|rule| after.len() > before.len() || !before.contains(rule)));
    }
    let rule = found.first()?;
    Some(format!(
        "Not saved: the text holds what the rule `{rule}` knows as a secret. Memories are plain files: write where the \
         secret is kept, not the secret.",
    ))
}

/// What a file is, and would be after an edit.
fn edited(input: &serde_json::Value, file: &Path) -> Option<(String, String)> {
    let edit: EditInput = serde_json::from_value(input.clone()).ok()?;
    let text = String::from_utf8(files::read(file, INDEX_LIMIT).ok()?.bytes).ok()?;
    let after = tools::edited(&text, &edit).ok()?;
    Some((text, after))
}

/// What the user said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncludeConsent {
    /// Yes.
    Yes,
    /// No.
    No,
}

/// How many files from outside are asked about in a session; the rest is left out with a note.
const MOST_ASKED: usize = 100;

/// The largest index that is looked at.
const INDEX_LIMIT: u64 = 10_000_000;

impl std::fmt::Debug for Knowledge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Knowledge").field("files", &self.instructions.files.len()).finish_non_exhaustive()
    }
}
