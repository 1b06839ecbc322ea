//! No sequence of merges loses a fact, whichever of their changes are refused.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use memory::changes::Changes;
use memory::echo_check::InjectedWords;
use memory::quoted_sentences::TypedMessages;
use memory::store::{IndexUpkeep, Store};
use proptest::prelude::*;
use session::World;
use tools::Scope;
use transcript::Id;

use crate::saver::{Author, Removal, Saver, SavingLimits, SavingPlace};

const MEMORIES: usize = 5;
/// So many of them are merged into the others.
const MERGED: usize = 3;

fn fact(n: usize) -> String {
    let words = ["harbour", "meadow", "lantern", "granite", "willow"];
    let word = words[n];
    format!("The {word} team keeps its {word} notes in the {word} cabinet near window {n}.")
}

fn text(facts: &BTreeSet<usize>) -> String {
    let body: Vec<String> = facts.iter().map(|n| fact(*n)).collect();
    format!("---\nname: Notes {facts:?}\ndescription: where notes are\ntype: project\n---\n\n{}\n", body.join("\n"))
}

/// Why a change is refused, if it is.
#[derive(Debug, Clone, Copy)]
enum Flaw {
    None,
    Malformed,
    Name,
    Elsewhere,
}

/// A part of a merge of one memory into another. What it writes is what the model believes both to say.
#[derive(Debug, Clone, Copy)]
enum Step {
    Remove { one: usize, into: usize, named: bool },
    Write { one: usize, into: usize, flaw: Flaw },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flaw = prop::sample::select(vec![Flaw::None, Flaw::Malformed, Flaw::Name, Flaw::Elsewhere]);
    let merge = (0..MERGED, MERGED..MEMORIES, flaw, any::<bool>())
        .prop_map(|(one, into, flaw, named)| [Step::Remove { one, into, named }, Step::Write { one, into, flaw }]);
    prop::collection::vec(merge, 1..6).prop_map(|merges| merges.concat()).prop_shuffle()
}

fn saver(memory: &std::path::Path, project: &std::path::Path) -> Saver {
    let author = Author {
        agent: crate::ledger::DREAM,
        session: None,
        message: None,
        model: "m".into(),
        injected: InjectedWords::default(),
        typed: TypedMessages::default(),
        newest_source: None,
        world: World::new(|| Timestamp::UNIX_EPOCH, |_| Id::from("id-1".to_owned())),
    };
    let place = SavingPlace {
        directory: memory.to_owned(),
        indexing: IndexUpkeep::Kept,
        changes: Changes::at(project.join("changes")),
    };
    Saver::new(place, author, SavingLimits::NONE, project).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// DREAM-3: every fact is in some memory after any steps of any merges, with and without refusals.
    #[test]
    fn no_merge_loses_a_fact(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (memory, scope) = (root.join("memory"), Scope::new(&root, root.join("tmp")));
        files::create_directory(&memory).unwrap();
        let path = |n: usize| format!("m{n}.md");
        let mut known: BTreeMap<usize, BTreeSet<usize>> = (0..MEMORIES).map(|n| (n, BTreeSet::from([n]))).collect();
        let saver = saver(&memory, &root);
        let write = |at: &str, text: &str| {
            let subject = scope.subject(&memory.join(at).to_string_lossy());
            saver.save(&subject, text, |_| Ok(text.to_owned()), &scope)
        };
        for (n, facts) in &known {
            write(&path(*n), &text(facts)).unwrap();
        }
        for step in &steps {
            match *step {
                Step::Remove { one, into, named } => {
                    let replaced_by = named.then(|| path(into));
                    let wants = Removal { path: path(one), replaced_by, reason: "Merged.".into() };
                    let _ = saver.remove(wants, &scope);
                }
                Step::Write { one, into, flaw } => {
                    let facts: BTreeSet<usize> = known[&one].union(&known[&into]).copied().collect();
                    let good = text(&facts);
                    let saved = match flaw {
                        Flaw::None => write(&path(into), &good),
                        Flaw::Malformed => write(&path(into), good.trim_start_matches("---\n")),
                        Flaw::Name => write("with a space.md", &good),
                        Flaw::Elsewhere => write("../outside.md", &good),
                    };
                    if saved.is_ok() {
                        known.insert(into, facts);
                    }
                }
            }
        }
        // A removal whose change was never tried is not refused: the run has ended before its time.
        saver.put_back_unreplaced();
        let store = Store::open(&memory, IndexUpkeep::Kept).unwrap();
        let all: String = memory::scan::paths(store.root()).unwrap().iter()
            .map(|path| memory::Memory::read(store.root(), path).unwrap().body)
            .collect();
        for n in 0..MEMORIES {
            prop_assert!(all.contains(&fact(n)), "{n} is lost: {all}");
        }
    }
}
