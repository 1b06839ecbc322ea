//! Two shelves and one saver: what one says, or what was removed from one, is not saved on the other.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use memory::echo_check::InjectedWords;
use memory::quoted_sentences::TypedMessages;
use memory::store::IndexUpkeep;
use session::{Home, World};
use tools::Scope;
use transcript::Id;

use crate::saver::{Author, Saver, SavingLimits, SavingPlace};

const TABS: &str = "Indents with tabs, everywhere and always.";

struct Shelves {
    _folder: tempfile::TempDir,
    root: PathBuf,
    home: Home,
}

impl Shelves {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        Self { home: Home::at(root.join("config")), root, _folder: folder }
    }

    fn user(&self) -> SavingPlace {
        SavingPlace::of_user(&self.home, IndexUpkeep::Kept)
    }

    fn project(&self) -> SavingPlace {
        let directory = self.root.join("memory");
        SavingPlace { changes: self.home.changes(&directory), directory, indexing: IndexUpkeep::Kept }
    }

    /// A saver for what the user typed at a second.
    fn saver(&self, typed: &str, at: i64) -> Saver {
        let mut heard = TypedMessages::default();
        heard.add(typed, Timestamp::from_second(at).ok(), Some("s"), None);
        let author = Author {
            agent: "extract",
            session: None,
            message: None,
            model: "m".into(),
            injected: InjectedWords::default(),
            typed: heard,
            newest_source: None,
            world: World::new(|| Timestamp::UNIX_EPOCH, move |_| Id::from(format!("id-{at}"))),
        };
        let saver = Saver::new(self.project(), author, SavingLimits::NONE, &self.root).unwrap();
        saver.with_user(self.user()).unwrap()
    }

    fn save(&self, saver: &Saver, path: &str, kind: &str, body: &str) -> Result<String, String> {
        let scope = Scope::new(&self.root, self.root.join("tmp"));
        let text = text(path, kind, body);
        let subject = scope.subject(&self.project().directory.join(path).to_string_lossy());
        saver.save(&subject, &text, |_| Ok(text.clone()), &scope)
    }

    fn lies(&self, directory: &Path, path: &str) -> bool {
        files::read(directory.join(path), 10_000).is_ok()
    }
}

fn text(path: &str, kind: &str, body: &str) -> String {
    let name = path.trim_end_matches(".md");
    format!("---\nname: {name}\ndescription: how it is done\ntype: {kind}\n---\n\n{body}\n")
}

/// SHELF-2, SHELF-3: what the user's shelf says is not saved in a project again, but for the team, which does not see it.
#[test]
fn a_project_repeats_nothing_of_the_users_shelf() {
    let shelves = Shelves::new();
    let saver = shelves.saver("", 0);
    shelves.save(&saver, "tabs.md", "user", TABS).unwrap();
    assert!(shelves.lies(&shelves.user().directory, "tabs.md"));
    let why = shelves.save(&saver, "indent.md", "feedback", TABS).unwrap_err();
    assert!(why.contains("tabs.md says the same already"), "{why}");
    assert!(!shelves.lies(&shelves.project().directory, "indent.md"));
    shelves.save(&saver, "team/indent.md", "feedback", TABS).unwrap();
}

/// TOMB-1: what the user removed from one shelf comes back on neither, unless the user says it anew. A name alone is none of
/// it on the other shelf.
#[test]
fn what_was_removed_from_one_shelf_comes_back_on_neither() {
    let removed = Timestamp::from_second(1_000).unwrap().to_string();
    let lies = |shelves: &Shelves| {
        let places = [shelves.project().directory, shelves.user().directory];
        places.iter().any(|directory| shelves.lies(directory, "again.md"))
    };
    for (from_user, kind) in [(true, "feedback"), (false, "user")] {
        let shelves = Shelves::new();
        let place = if from_user { shelves.user() } else { shelves.project() };
        place.changes.tombstones().plant("tabs.md", &text("tabs.md", kind, TABS), Some(removed.clone())).unwrap();
        let before = shelves.saver(TABS, 900);
        let why = shelves.save(&before, "again.md", kind, &format!("> \"{TABS}\"")).unwrap_err();
        assert!(why.contains("does not want it back") && !lies(&shelves), "{why}");
        let other = if kind == "user" { "Opens many browser windows." } else { "The browser opens many windows." };
        shelves.save(&before, "tabs.md", kind, other).unwrap();
        let since = shelves.saver(TABS, 1_100);
        shelves.save(&since, "again.md", kind, &format!("> \"{TABS}\"")).unwrap();
        assert!(lies(&shelves));
    }
}
