//! Knowledge of a session outside the conversation: instruction files and memory.
//!
//! Both enter as attachments, rendered once and frozen in the log; a resumed session learns from the log what was
//! attached and attaches nothing twice. Instructions and the memory index come before the user's first words, and when
//! a file or a folder they are for is touched. Memories come by `recall_for_message`: when the user writes, and when the work of
//! the turn makes an instruction relevant. Nothing here is waited for, and nothing here can fail a turn.

mod by_hand;
mod daily;
pub mod outside;
mod recall_for_message;
mod selector;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use jiff::civil::Date;
use memory::instructions::{
    InstructionFault, InstructionSources, Instructions, LoadedInstruction, Note, Reason, first_message, nested,
};
use memory::quoted_sentences::Register;
use memory::rank::WorkAtHand;
use memory::secrets::{self, Remarks};
use memory::shelf::{Shelf, ShelfScope};
use memory::store::IndexUpkeep;
use memory::{age, index};
use provider::Model;
use session::{Home, LineMeta, Session, World};
use settings::trust::Trust;
use tools::{EditInput, Scope, texts_put_in};
use transcript::{Injected, Purpose};

use crate::ledger::Ledger;
use outside::OutsideFile;
use recall_for_message::Recall;

pub use daily::DailyLog;
pub use recall_for_message::{Authors, RecallSwitch, UserMessage};
pub use selector::Selector;

/// Instruction files and memory of one session.
pub struct Knowledge {
    instructions: Instructions,
    /// Instruction files the model has seen.
    attached: HashSet<PathBuf>,
    /// Warnings about left-out files that the user was shown.
    shown_warnings: HashSet<String>,
    /// Trust in the files that the project's files include from outside; none if nobody can be asked.
    trust: Option<Trust>,
    /// Files from outside that were asked about, here or before the session began.
    questioned: HashSet<PathBuf>,
    /// Number of instruction files before the last touch.
    before: usize,
    /// Files that the user has changed since the last message.
    by_hand: Vec<PathBuf>,
    /// A copy of another folder, whose instruction files apply in it.
    copy: Option<CopiedFolder>,
    recall: Recall,
    /// The date that the model was told, if the session keeps a daily log.
    day: Option<Date>,
    world: World,
}

/// Settings of memory and instruction files.
#[derive(Debug, Clone, PartialEq)]
pub struct KnowledgeSettings {
    /// The memory directory, if memory is on.
    pub directory: Option<PathBuf>,
    /// Switch of recall.
    pub recalling: RecallSwitch,
    /// The model that selects among memories.
    pub selector: Option<String>,
    /// Instruction files that are not loaded.
    pub excludes: Vec<String>,
    /// Indexes of memory.
    pub indexes: Vec<PathBuf>,
}

/// Instruction files that subagents inherit.
#[derive(Debug, Clone)]
pub struct InheritedInstructions {
    sources: InstructionSources,
    /// Warnings about left-out files that the user was shown.
    shown_warnings: HashSet<String>,
}

/// A folder that is a copy of another, such as a worktree.
#[derive(Debug, Clone)]
pub struct CopiedFolder {
    /// The copy.
    pub at: PathBuf,
    /// The original.
    pub of: PathBuf,
}

impl CopiedFolder {
    /// The original of a file in the copy.
    fn original(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.at).ok().map(|inside| self.of.join(inside))
    }
}

/// An attachment, with the metadata for its line.
#[derive(Debug)]
pub struct AttachedText {
    /// Text for the model.
    pub text: Injected,
    /// Metadata for a later session.
    pub meta: LineMeta,
}

impl Knowledge {
    /// Loads instructions, opens the memory directory if there is one, and reads from the log what was attached before.
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
            shown_warnings: HashSet::new(),
            trust: None,
            questioned: HashSet::new(),
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

    /// Reads from the log what the model has seen and still sees: what was summarised, or taken back, may come again.
    pub fn remember(&mut self, session: &Session) {
        let known = std::mem::take(&mut self.attached);
        self.recall.forget();
        for meta in session.line_metas_in_view() {
            self.attached.extend(meta.instructions);
            if let Some(seen) = meta.memory {
                self.recall.was_surfaced(seen.path, seen.bytes);
            }
        }
        if !known.is_subset(&self.attached) {
            self.instructions.reload(Reason::SessionStart);
        }
    }

    /// With the folders in which agents keep memories of their own: each a root directory that no path leads out of,
    /// and the path inside it.
    #[must_use]
    pub fn with_agents(mut self, folders: Vec<(PathBuf, PathBuf)>) -> Self {
        self.recall.agents = folders;
        self
    }

    /// With the trust in files that the project's files include from outside. Those known now were asked about before;
    /// later ones are asked about then.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        let left = outside::settle(&mut self.instructions, &trust);
        self.questioned.extend(left.into_iter().map(|outside| outside.real));
        self.trust = Some(trust);
        self
    }

    /// With the directory of the user's memories that hold in every project.
    #[must_use]
    pub fn with_user_memories(mut self, directory: &Path) -> Self {
        if let Ok(root) = Root::open(directory) {
            let home = Home::at(&self.instructions.sources().config_home);
            self.recall.with_user(Shelf::new(root, ShelfScope::User).with_register(register(directory, &home)));
        }
        self
    }

    /// With this upkeep of the index.
    #[must_use]
    pub fn with_indexing(mut self, indexing: IndexUpkeep) -> Self {
        self.recall.indexing = indexing;
        self
    }

    /// With recall on or off.
    #[must_use]
    pub fn with_recall(mut self, recalling: RecallSwitch) -> Self {
        self.recall.recalling = recalling;
        self
    }

    /// With a lookup of the authors of shared memories.
    #[must_use]
    pub fn with_authors(mut self, authors: Authors) -> Self {
        self.recall.authors = Some(authors);
        self
    }

    /// Applies changed settings. Memories and instructions that the model was shown stay where they are.
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

    /// The settings in force.
    pub fn in_force(&self) -> KnowledgeSettings {
        KnowledgeSettings {
            directory: self.memory_directory().map(Path::to_owned),
            recalling: self.recall.recalling,
            selector: self.recall.selector.as_ref().map(|selector| selector.name.clone()),
            excludes: self.instructions.excludes().to_vec(),
            indexes: self.instructions.sources().indexes.clone(),
        }
    }

    /// The loaded files, and the problems with others.
    pub fn instructions(&self) -> &Instructions {
        &self.instructions
    }

    /// Upkeep of the index.
    pub fn indexing(&self) -> IndexUpkeep {
        self.recall.indexing
    }

    /// The memory directory, if memory is on.
    pub fn memory_directory(&self) -> Option<&Path> {
        self.recall.directory()
    }

    /// True if a path is in a memory directory.
    pub fn is_memory(&self, path: &Path) -> bool {
        let places = [self.memory_directory(), self.recall.user_directory()];
        places.into_iter().flatten().any(|directory| path.starts_with(directory))
    }

    /// True if a path is an instruction file that was loaded.
    pub fn is_instruction(&self, path: &Path) -> bool {
        self.attached.contains(path) || self.instructions.files.iter().any(|file| file.path == path)
    }

    /// Warnings about instruction files: those not included because they lie outside or belong to another user, and
    /// those that are long. Each is returned once.
    pub fn warnings(&mut self) -> Vec<String> {
        let is_told = |note: &&Note| {
            matches!(note.what, InstructionFault::Outside(_) | InstructionFault::OfAnother | InstructionFault::Long(_))
        };
        let told = self.instructions.notes.iter().filter(is_told).map(Note::to_string);
        told.filter(|text| self.shown_warnings.insert(text.clone())).collect()
    }

    /// Prepares for a compacted conversation: instructions are read again, and memories may come up again.
    pub fn compacted(&mut self) {
        self.instructions.reload(Reason::Compact);
        self.attached.clear();
        self.recall.forget();
    }

    /// The attachment before the user's first words; none if there was one already.
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
        Some(AttachedText { text, meta: LineMeta { instructions: paths, ..LineMeta::default() } })
    }

    /// Instruction files for a subagent, without memories, which belong to the conversation.
    pub fn for_agents(&self) -> InheritedInstructions {
        let sources = InstructionSources { indexes: Vec::new(), ..self.instructions.sources().clone() };
        InheritedInstructions { sources, shown_warnings: self.shown_warnings.clone() }
    }

    /// The knowledge of a subagent. Nobody is asked about files from outside on its behalf: those not agreed to are
    /// left out.
    pub fn inherited(from: InheritedInstructions, copy: Option<CopiedFolder>, session: &Session) -> Self {
        Self { shown_warnings: from.shown_warnings, copy, ..Self::new(from.sources, None, None, session) }
    }

    /// The knowledge of a session that works in a copy of the folder that the instructions are from.
    #[must_use]
    pub fn in_copy(self, copy: CopiedFolder) -> Self {
        Self { copy: Some(copy), ..self }
    }

    /// Instructions that apply to a touched file or folder.
    pub fn touched(&mut self, path: &Path) -> Option<(Vec<LoadedInstruction>, AttachedText)> {
        self.before = self.instructions.files.len();
        let original = self.copy.as_ref().and_then(|copy| copy.original(path));
        let meant = original.as_deref().unwrap_or(path);
        let loaded = if path.is_dir() { self.instructions.entered(meant) } else { self.instructions.touched(meant) };
        let loaded: Vec<LoadedInstruction> =
            loaded.into_iter().filter(|file| self.attached.insert(file.path.clone())).collect();
        self.shown(loaded)
    }

    /// A file from outside that newly applies and that the user was not asked about. Those agreed to before are
    /// included by this.
    pub fn next_outside(&mut self) -> Option<OutsideFile> {
        let trust = self.trust.as_ref()?;
        let left = outside::settle(&mut self.instructions, trust);
        let next =
            left.into_iter().find(|one| !trust.is_settled(&one.claim) && !self.questioned.contains(&one.real))?;
        (self.questioned.len() < MOST_OUTSIDE_FILES).then_some(())?;
        self.questioned.insert(next.real.clone());
        Some(next)
    }

    /// Records the user's answer about a file from outside. If it cannot be stored, it holds for this session.
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

    /// Instructions for a touched file that were added since, because the user agreed to them.
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
        let meta = LineMeta { instructions: paths, ..LineMeta::default() };
        let text = Injected::new(Purpose::Instructions, &nested(&loaded));
        Some((loaded, AttachedText { text, meta }))
    }

    /// A note for the model about the limits that an index it wrote exceeds.
    pub fn wrote(&self, path: &Path) -> Option<AttachedText> {
        if path.file_name()? != index::FILE {
            return None;
        }
        let text = String::from_utf8_lossy(&files::read(path, INDEX_LIMIT).ok()?.bytes).into_owned();
        let warnings: Vec<String> = index::warnings(&text).iter().map(ToString::to_string).collect();
        (!warnings.is_empty()).then(|| {
            let text = Injected::new(Purpose::Index, &warnings.join("\n"));
            AttachedText { text, meta: LineMeta::default() }
        })
    }

    /// Recall for a message of the user: memories that the ranker is sure of come back at once; otherwise the selector
    /// is asked.
    pub fn recall_for(&mut self, message: &UserMessage<'_>, scope: &Scope) -> Vec<AttachedText> {
        self.recall.recall_for(message, scope, self.world.now())
    }

    /// A note about the age of a memory that the model has read, if it matters.
    pub fn age_of(&self, file: &Path) -> Option<AttachedText> {
        let directory = [self.memory_directory(), self.recall.user_directory()].into_iter().flatten();
        let (directory, path) =
            directory.into_iter().find_map(|place| Some((place, file.strip_prefix(place).ok()?)))?;
        let memory = memory::Memory::read(&Root::open(directory).ok()?, path.to_str()?).ok()?;
        let days = age::days(memory.dated, self.world.now());
        let text = format!("{} was saved {}.\n{}", file.display(), age::words(days), age::warning(days)?);
        Some(AttachedText { text: Injected::new(Purpose::Memory, &text), meta: LineMeta::default() })
    }

    /// Instructions that apply to the files and tools of the turn.
    pub fn does(&mut self, doing: &WorkAtHand, scope: &Scope) -> Vec<AttachedText> {
        self.recall.does(doing, scope, self.world.now())
    }

    /// Memories that the selector has chosen by now; none while it runs.
    pub async fn chosen(&mut self) -> Vec<AttachedText> {
        self.recall.chosen(self.world.now()).await
    }

    /// Ends the turn: changed memories are read again.
    pub fn turn_ended(&mut self) {
        self.recall.turn_ended();
    }

    /// Reads memories again that somebody else wrote.
    pub fn memories_changed(&self) {
        self.recall.warm();
    }

    /// Waits until the memories are read, or cannot be, for callers that have to know what would be recalled.
    pub async fn ready(&self) {
        self.recall.ready().await;
    }
}

/// The user's memories, opened.
fn shelf(directory: &Path, tree: &Path, home: &Home) -> Option<Shelf> {
    let shelf = Shelf::new(Root::open(directory).ok()?, ShelfScope::Project).with_tree(tree);
    Some(shelf.with_register(register(directory, home)))
}

/// The register of the user's words that the memories of a directory quote.
fn register(directory: &Path, home: &Home) -> Register {
    Register::in_folder(home.changes(directory).folder())
}

/// The reason the model may not write this into a memory: it contains a secret, or the file would with it. It names the
/// rule and never the secret.
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

/// Text of a file before and after an edit.
fn edited(input: &serde_json::Value, file: &Path) -> Option<(String, String)> {
    let edit: EditInput = serde_json::from_value(input.clone()).ok()?;
    let text = String::from_utf8(files::read(file, INDEX_LIMIT).ok()?.bytes).ok()?;
    let after = tools::edited(&text, &edit).ok()?;
    Some((text, after))
}

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncludeConsent {
    /// Yes.
    Yes,
    /// No.
    No,
}

/// Limit on files from outside that are asked about in a session; the rest is left out with a note.
const MOST_OUTSIDE_FILES: usize = 100;

/// The largest index that is looked at.
const INDEX_LIMIT: u64 = 10_000_000;

impl std::fmt::Debug for Knowledge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Knowledge").field("files", &self.instructions.files.len()).finish_non_exhaustive()
    }
}
