//! The one way in which agents save memories: the conversation's model, extraction, dreams.
//!
//! For every writer the same holds: no secret, nothing that only repeats what was shown to the model, nothing that
//! another memory already says, no change of a text that was not read or has changed since; each change is kept
//! beforehand, so that it can be undone. A sentence that the memory quotes is looked up among what the user typed: only
//! if it is there, it is shown as the user's.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use files::Stamp;
use jiff::Timestamp;
use memory::Error;
use memory::changes::{Changes, KeptChange, RunHead, Writer};
use memory::echo_check::InjectedWords;
use memory::import::first_sentence;
use memory::quoted_sentences::{QuotedSentence, Register, TypedMessages};
use memory::remember::MemoryOrigin;
use memory::shelf::is_about_the_user;
use memory::store::{IndexUpkeep, Store};
use memory::tombstones::{Tombstone, Tombstones};
use parking_lot::Mutex;
use session::{Home, World};
use tools::{Scope, Subject};

use crate::protection::Protection;

mod put_back;
mod removal;
mod tally;
mod user_shelf;

use put_back::{RefusedChange, RemovedMemory, SaveRefusal};
pub use removal::Removal;
pub use tally::{SavingLimits, Tally};
use user_shelf::UserShelf;

/// The largest memory that is edited.
const LIMIT: u64 = 1024 * 1024;

/// Agent name for changes of the conversation's own model.
pub const CONVERSATION: &str = "conversation";

/// Prefix of the team's memories, below the memory directory.
const TEAM: &str = "team/";

/// Place where memories are saved.
#[derive(Debug, Clone)]
pub struct SavingPlace {
    /// The memory directory.
    pub directory: PathBuf,
    /// Upkeep of its index.
    pub indexing: IndexUpkeep,
    /// The record of changes.
    pub changes: Changes,
}

impl SavingPlace {
    /// The memories of the user that hold in every project.
    pub fn of_user(home: &Home, indexing: IndexUpkeep) -> Self {
        let directory = memory::place::user_directory(home.path());
        let directory = files::real(&directory).unwrap_or(directory);
        Self { changes: home.changes(&directory), directory, indexing }
    }
}

/// Author of memories, with the evidence.
#[derive(Clone)]
pub struct Author {
    /// Name of the agent, under which its changes are kept.
    pub agent: &'static str,
    /// The session it works for.
    pub session: Option<String>,
    /// The newest message it knows of.
    pub message: Option<String>,
    /// The model.
    pub model: String,
    /// Text that no memory may be made from.
    pub injected: InjectedWords,
    /// Messages that the user typed.
    pub typed: TypedMessages,
    /// Time of the newest message that it learns from, if that may be long ago.
    pub newest_source: Option<Timestamp>,
    /// The time and fresh names.
    pub world: World,
}

/// Saves memories for one agent.
pub struct Saver {
    place: SavingPlace,
    author: Author,
    limits: SavingLimits,
    store: Store,
    /// The memory directory, links followed.
    directory: PathBuf,
    /// Tree in which names in memories are looked up.
    tree: PathBuf,
    /// Messages that the user typed, as far as the agent was shown them.
    typed: Mutex<TypedMessages>,
    /// Changes that were refused, and not made since: nothing is removed in their favour.
    unchanged: Mutex<Vec<RefusedChange>>,
    /// Memories that were removed, as long as nothing replaced them.
    gone: Mutex<Vec<RemovedMemory>>,
    /// Protected memories, if it works unattended.
    protection: OnceLock<Protection>,
    tally: Mutex<Tally>,
    /// The run of changes, from the first one on.
    run: Mutex<Option<Writer>>,
    /// Id of the run of all changes.
    run_id: Arc<OnceLock<String>>,
    /// Saver for memories about the user, which hold in every project.
    user: Option<Box<Saver>>,
    /// The user's memories that hold in every project.
    user_shelf: Option<UserShelf>,
    /// Memories that the user removed from other directories.
    removed_elsewhere: Option<Tombstones>,
}

impl Saver {
    /// Opens the memory directory and creates it if it is missing. Names in memories are looked up below `tree`.
    pub fn new(place: SavingPlace, author: Author, limits: SavingLimits, tree: &Path) -> Result<Self, Error> {
        let store = Store::create(&place.directory, place.indexing)?;
        let directory = files::real(&place.directory).unwrap_or_else(|_| place.directory.clone());
        let typed = Mutex::new(author.typed.clone());
        let (tally, run, unchanged, tree) = (Mutex::default(), Mutex::default(), Mutex::default(), tree.to_owned());
        let (protection, run_id) = (OnceLock::new(), Arc::default());
        let user = None;
        Ok(Self {
            place,
            author,
            limits,
            store,
            directory,
            tree,
            typed,
            unchanged,
            gone: Mutex::default(),
            protection,
            tally,
            run,
            run_id,
            user,
            user_shelf: None,
            removed_elsewhere: None,
        })
    }

    /// With a place of their own for memories about the user that name nothing of a project.
    pub fn with_user(self, place: SavingPlace) -> Result<Self, Error> {
        let removed_elsewhere = Some(self.place.changes.tombstones());
        let user = Self::new(place, self.author.clone(), self.limits, &self.tree)?;
        let saver = self.knowing_user(&user.place);
        let user = Some(Box::new(Self { run_id: saver.run_id.clone(), removed_elsewhere, ..user }));
        Ok(Self { user, ..saver })
    }

    /// Knows what is about the user in every project, and leaves it as it is.
    #[must_use]
    pub fn knowing_user(self, place: &SavingPlace) -> Self {
        let shelf = UserShelf::at(place);
        let removed_elsewhere = Some(shelf.tombstones().clone());
        Self { user_shelf: Some(shelf), removed_elsewhere, ..self }
    }

    /// True if a file, links followed, is a memory of this directory. Its index is none.
    pub fn keeps(&self, real: &Path) -> bool {
        let below = real.strip_prefix(&self.directory).ok().and_then(Path::to_str);
        below.is_some_and(|path| !is_index(path) && memory::store::checked(path).is_ok())
            || self.user.as_ref().is_some_and(|user| user.keeps(real))
    }

    /// The memory directory, links followed.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Tally of the work so far. Memories about the user are named by their whole path.
    pub fn tally(&self) -> Tally {
        let mut tally = self.tally.lock().clone();
        if let Some(user) = &self.user {
            let (theirs, whole) = (user.tally(), |path: String| user.directory.join(path).display().to_string());
            tally.saved.extend(theirs.saved.into_iter().map(whole));
            tally.removed.extend(theirs.removed.into_iter().map(whole));
            tally.bytes += theirs.bytes;
        }
        tally
    }

    /// Ends it: file and index are in step. Returns the run with the changes.
    pub fn end(&self) -> Option<String> {
        let theirs = self.user.as_ref().and_then(|user| user.end());
        let Some(run) = self.run.lock().take() else { return theirs };
        let id = run.id().to_owned();
        let _ = run.end(); // without this line they are looked at once more
        Some(id)
    }

    /// Leaves the user's memories alone from now on, and removes nothing without a reason.
    pub(crate) fn protect(&self, protection: Protection) {
        let _ = self.protection.set(protection); // whoever protects does so once
    }

    /// Checks that the agent may change a memory: not the user's, and not one newer than what it learns from, except
    /// those it has just written itself.
    fn may_change(&self, path: &str, before: Option<&str>) -> Result<(), String> {
        let Some(before) = before.filter(|_| !self.tally.lock().saved.iter().any(|saved| saved == path)) else {
            return Ok(());
        };
        let protects = |protection: &Protection| protection.protects(path, before, self.written(path));
        if let Some(why) = self.protection.get().and_then(protects) {
            return Err(format!("{path} stays as it is: {why}. You may build on it in another memory."));
        }
        if self.author.newest_source.is_some_and(|said| self.is_newer(path, before, said)) {
            return Err(format!("{path} stays as it is: the user said or wrote it later than what you learn from."));
        }
        Ok(())
    }

    /// True if a memory's words were said or written by the user after a time.
    fn is_newer(&self, path: &str, text: &str, said: Timestamp) -> bool {
        let Ok(memory) = memory::Memory::read(self.store.root(), path) else { return false };
        let quotations = Register::in_folder(self.place.changes.folder()).read();
        let at = match quotations.of(&memory.body) {
            Some(spoken) => spoken.time(),
            None => Protection::of(&self.place.changes).protects(path, text, self.written(path)).and(memory.dated),
        };
        at.is_some_and(|at| at > said)
    }

    /// True if a memory is the user's, and protected.
    pub(crate) fn is_users(&self, path: &str) -> bool {
        let text = self.store.root().read(path, LIMIT).ok().and_then(|file| String::from_utf8(file.bytes).ok());
        let protects = |text: &String| self.protection.get()?.protects(path, text, self.written(path));
        text.as_ref().and_then(protects).is_some()
    }

    /// Time of a memory's file.
    fn written(&self, path: &str) -> Option<Timestamp> {
        self.store.root().head(path, 0).ok()?.modified?.try_into().ok()
    }

    /// Records the user's words in a session that the agent was shown: a memory may quote them.
    pub(crate) fn hear(&self, words: &str, at: Option<Timestamp>, session: &str, message: Option<&str>) {
        self.typed.lock().add(words, at, Some(session), message);
        if let Some(user) = &self.user {
            user.hear(words, at, session, message);
        }
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, writes: bool) {
        let mut tally = self.tally.lock();
        tally.denied += 1;
        tally.denied_writes += u32::from(writes);
    }

    /// The memory of a path, relative to the memory directory.
    pub(crate) fn place(&self, subject: &Subject) -> Result<String, String> {
        if let Some(user) = self.user_of(subject) {
            return user.place(subject);
        }
        let shown = self.directory.display();
        let outside = || format!("Only memories can be written here: files `*.md` in {shown}.");
        let Subject::Path { named, real } = subject else { return Err(outside()) };
        let below = real.strip_prefix(&self.directory).map_err(|_| outside())?;
        let as_named = named.strip_prefix(&self.directory).or_else(|_| named.strip_prefix(&self.place.directory));
        if as_named != Ok(below) {
            return Err(format!(
                "{} is a symlink that leads elsewhere, and is not followed. {}",
                named.display(),
                outside()
            ));
        }
        let path = below.to_str().ok_or_else(outside)?;
        if is_index(path) {
            return Err(format!(
                "{path} is kept by itself: the line of a memory is its name and its description. Change these in its file."
            ));
        }
        memory::store::checked(path).map_err(|error| format!("{error}. {}", outside()))?;
        Ok(path.to_owned())
    }

    /// Saves the new text of a memory, given the old one. `new` is the text that the call brings.
    pub(crate) fn save(
        &self,
        subject: &Subject,
        new: &str,
        text: impl FnOnce(Option<&str>) -> Result<String, String>,
        scope: &Scope,
    ) -> Result<String, String> {
        if let Some(user) = self.user_of(subject) {
            return user.save(subject, new, text, scope).map_err(|why| why + &self.refuse_change(None, new, scope));
        }
        let elsewhere = |why: String| why + &self.refuse_change(None, new, scope);
        let path = self.place(subject).map_err(elsewhere)?;
        let saved = self.save_at(&path, text, scope);
        saved.map_err(|refusal| {
            let back = self.refuse_change(Some(&path), new, scope);
            if refusal.is_known {
                self.unchanged.lock().pop(); // it may be moved
            }
            refusal.why + &back
        })
    }

    fn save_at(
        &self,
        path: &str,
        text: impl FnOnce(Option<&str>) -> Result<String, String>,
        scope: &Scope,
    ) -> Result<String, SaveRefusal> {
        let seen = scope.seen(&self.directory.join(path));
        let before = self.before(path, seen.as_ref())?;
        self.may_change(path, before.as_deref())?;
        let text = text(before.as_deref())?;
        if before.is_some() && text.trim().is_empty() {
            if self.protection.get().is_some() {
                return Err(format!("{path} was not removed: Remove does that, and says why.").into());
            }
            self.is_not_awaited(path, before.as_deref().unwrap_or_default(), None)?;
            return Ok(self.discard(path, seen.as_ref(), None)?);
        }
        if before.is_none() && path.contains(char::is_whitespace) {
            // It is shown with the memory, outside of its frame: a name, and no sentence.
            return Err(format!("{path} was not saved: the name of a file has no spaces.").into());
        }
        let memory = memory::Memory::parse(path, text.as_bytes(), None, text.len() as u64);
        let is_shared = path.starts_with(TEAM);
        if let Some(user) = self.user.as_ref().filter(|_| before.is_none() && !is_shared)
            && is_about_the_user(memory.kind, &format!("{}\n{}", memory.name, description_and_body(&text)))
        {
            let known = user.before(path, scope.seen(&user.directory.join(path)).as_ref())?;
            let place = user.directory.join(path);
            let answer = user.write(path, &text, known.as_deref(), scope)?;
            return Ok(format!(
                "{answer} It is about the user, so it lies in {} and holds in every project.",
                place.display()
            ));
        }
        self.write(path, &text, before.as_deref(), scope)
    }

    /// The saver for memories about the user, if a call is about one of them.
    fn user_of(&self, subject: &Subject) -> Option<&Self> {
        let Subject::Path { real, .. } = subject else { return None };
        self.user.as_deref().filter(|user| real.starts_with(&user.directory))
    }

    /// Writes a memory, unless a check fails.
    fn write(&self, path: &str, text: &str, before: Option<&str>, scope: &Scope) -> Result<String, SaveRefusal> {
        let file = self.directory.join(path);
        let seen = before.and(scope.seen(&file));
        self.within_limits(path, text.len())?;
        if self.author.injected.is_echoed_by(&description_and_body(text), &self.known_text()) {
            return Err(format!(
                "{path} was not saved: it says again what was put before you (a file, a memory, a tool's output), and no \
                 memory is made from that. Keep only what the user said, or what came out of the work, in your own words."
            )
            .into());
        }
        let text = match self.author.agent == CONVERSATION {
            true => completed(path, text),
            false => text.to_owned(),
        };
        self.is_new_elsewhere(path, &text, before)?;
        let mut keep = |change: &KeptChange| {
            self.keep(change)?;
            // Before the memory is there, so that it never is without it.
            self.keep_spoken(path, change.after.as_deref().unwrap_or_default());
            Ok(())
        };
        let revised = self.store.revise(path, &text, seen.as_ref(), &self.origin(), Some(&self.tree), &mut keep);
        let revised = revised.map_err(|error| match (&error, self.protection.get()) {
            (Error::Known { by }, Some(_)) => {
                SaveRefusal { why: format!("{error}. To move or rename {by}, remove it first."), is_known: true }
            }
            _ => SaveRefusal { why: advice(&error), is_known: matches!(error, Error::Known { .. }) },
        })?;
        self.replaced(path, &description_and_body(&text));
        scope.note(&file, revised.stamp);
        let mut tally = self.tally.lock();
        tally.bytes += text.len();
        if !tally.saved.iter().any(|saved| saved == path) {
            tally.saved.push(path.to_owned());
        }
        let warnings: String = revised.saved.warnings.iter().map(|warning| format!("\n{warning}")).collect();
        Ok(format!("Saved {path}, and its line in the index.{warnings}"))
    }

    /// Fails for a new memory that the user's shelf says already, and for one that the user removed from another directory.
    fn is_new_elsewhere(&self, path: &str, text: &str, before: Option<&str>) -> Result<(), SaveRefusal> {
        let body = memory::Memory::parse(path, text.as_bytes(), None, text.len() as u64).body;
        let is_own = before.is_none() && !path.starts_with(TEAM); // others do not see the user's shelf
        if let Some(by) = self.user_shelf.as_ref().filter(|_| is_own).and_then(|shelf| shelf.says(&body)) {
            let why = format!("{}. It holds in every project and needs no copy here.", Error::Known { by });
            return Err(SaveRefusal { why, is_known: true });
        }
        let spoken = self.quoted(path, text);
        let stone = self.removed_elsewhere.as_ref().and_then(|stones| stones.refusing_text(text, spoken.as_ref()));
        let was_there = |stone: &Tombstone| before.is_some_and(|before| stone.is_in(before));
        match stone.filter(|stone| !was_there(stone)) {
            Some(stone) => Err(advice(&Error::Forgotten { path: path.to_owned(), removed: stone.path }).into()),
            None => Ok(()),
        }
    }

    /// Keeps the user's own words that a memory quotes, if it quotes any.
    fn keep_spoken(&self, path: &str, text: &str) {
        if let Some(spoken) = self.quoted(path, text) {
            let memory = memory::Memory::parse(path, text.as_bytes(), None, text.len() as u64);
            let register = Register::in_folder(self.place.changes.folder());
            let _ = register.keep(&memory.body, &spoken); // then it counts as the model's
        }
    }

    /// The sentence of the user that a memory quotes, if it quotes one.
    fn quoted(&self, path: &str, text: &str) -> Option<QuotedSentence> {
        let memory = memory::Memory::parse(path, text.as_bytes(), None, text.len() as u64);
        let mut typed = self.typed.lock().clone();
        Register::in_folder(self.place.changes.folder()).read().add_to(&mut typed);
        typed.quoted_in(&memory.body)
    }

    /// Text of all memories: repeating it in another file is no echo of what was read.
    fn known_text(&self) -> String {
        let mut known = String::new();
        for path in memory::scan::paths(self.store.root()).unwrap_or_default() {
            if let Ok(memory) = memory::Memory::read(self.store.root(), &path) {
                known.push('\n');
                known.push_str(&memory.description.unwrap_or_default());
                known.push('\n');
                known.push_str(&memory.body);
            }
        }
        known
    }

    /// Text of a memory, if it is the one that was read.
    fn before(&self, path: &str, seen: Option<&Stamp>) -> Result<Option<String>, String> {
        let file = match self.store.root().read(path, LIMIT) {
            Err(files::Error::NotFound { .. }) => return Ok(None),
            file => file.map_err(|error| format!("{error}."))?,
        };
        let same = seen.is_some_and(|seen| seen.same_content(&file.stamp));
        let unread = || match seen {
            Some(_) => advice(&files::Error::Changed { path: self.directory.join(path) }.into()),
            None => advice(&Error::Unseen { path: path.to_owned() }),
        };
        let text = String::from_utf8(file.bytes).map_err(|_| format!("{path} is not UTF-8 text; it stays as it is."));
        if same { text.map(Some) } else { Err(unread()) }
    }

    fn within_limits(&self, path: &str, bytes: usize) -> Result<(), String> {
        let (tally, limits) = (self.tally.lock(), self.limits);
        if tally.bytes.saturating_add(bytes) > limits.bytes {
            return Err(format!(
                "{path} was not saved: at most {} bytes are written in one run. Stop here.",
                limits.bytes
            ));
        }
        if tally.saved.len() >= limits.files && !tally.saved.iter().any(|saved| saved == path) {
            return Err(format!("{path} was not saved: at most {} memories are written in one run.", limits.files));
        }
        Ok(())
    }

    /// Keeps a change before it is made.
    fn keep(&self, change: &KeptChange) -> Result<(), Error> {
        let spoken = change.after.as_deref().and_then(|text| self.quoted(&change.path, text));
        let mut run = self.run.lock();
        let writer = match &mut *run {
            Some(writer) => writer,
            none => {
                let (author, at) = (&self.author, self.author.world.now());
                self.place.changes.bury_removed(&self.store, at)?;
                let id = self.run_id.get_or_init(|| {
                    let fresh = author.world.fresh_id().to_string();
                    let tail: String = fresh.chars().filter(char::is_ascii_alphanumeric).collect();
                    let tail = &tail[tail.len().saturating_sub(8)..];
                    format!("{}-{}-{tail}", at.strftime("%Y%m%d-%H%M%S"), author.agent)
                });
                let head = RunHead {
                    agent: author.agent.to_owned(),
                    session: author.session.clone(),
                    model: Some(author.model.clone()),
                    at: at.to_string(),
                    directory: self.directory.clone(),
                };
                none.insert(self.place.changes.begin(id, head)?)
            }
        };
        writer.keep_quoting(change, spoken.as_ref())
    }

    fn origin(&self) -> MemoryOrigin {
        let author = &self.author;
        MemoryOrigin {
            session: author.session.clone(),
            message: author.message.clone(),
            agent: Some(author.agent.to_owned()),
            model: Some(author.model.clone()),
            at: Some(author.world.now()),
        }
    }
}

/// True if a path below the memory directory is an index.
fn is_index(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case(memory::index::FILE))
}

/// A memory with missing head lines added: a model that a user talks to is not asked again for a formality.
fn completed(path: &str, text: &str) -> String {
    let text = memory::frontmatter::mended(text);
    let memory = memory::Memory::parse(path, text.as_bytes(), None, text.len() as u64);
    let named = memory::frontmatter::read(&text).text("name").filter(|name| !name.is_empty());
    let missing = [
        ("name", named.is_none().then(|| memory.name.clone())),
        ("description", memory.description.is_none().then(|| first_sentence(&memory.body))),
        ("type", memory.kind.is_none().then(|| memory::Kind::Project.to_string())),
    ];
    let set = |text: String, (key, value): (&str, Option<String>)| match value {
        Some(value) => memory::frontmatter::set(&text, key, &value),
        None => text,
    };
    missing.into_iter().fold(text, set)
}

/// Description and text of a memory.
fn description_and_body(text: &str) -> String {
    let memory = memory::Memory::parse("", text.as_bytes(), None, text.len() as u64);
    format!("{}\n{}", memory.description.unwrap_or_default(), memory.body)
}

/// An error, with advice.
fn advice(error: &Error) -> String {
    let hint = match error {
        Error::Secret { .. } => "Write where it is kept, never the secret itself",
        Error::Known { .. } => "Read that one, and change it if something is new",
        Error::Unseen { .. } => "Read it before you change it",
        Error::Files(files::Error::Changed { .. }) => "Read it again, then decide anew",
        Error::Files(files::Error::Linked { .. }) => "Links are not followed",
        _ => return format!("{error}."),
    };
    format!("{error}. {hint}.")
}
