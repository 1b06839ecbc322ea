//! What to do with each entry, from three checksums: what both sides last agreed on, what is here, what is there.
//!
//! Whoever alone changed an entry wins. Where both did, a text beats a deletion, and of two texts the one here wins: the
//! other stays in the server's history, and the conflict is told. Nothing here touches a disk or a network.

use std::collections::{BTreeMap, BTreeSet};

use crate::key::Key;
use crate::protocol::BATCH_BYTES;

/// Checksums by key.
pub type Checksums = BTreeMap<Key, String>;

/// What is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remote {
    /// The entries.
    pub entries: Checksums,
    /// Those that were deleted on purpose.
    pub deleted: BTreeSet<Key>,
}

/// Whether deletions travel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Deletions {
    /// A file that was deleted here is deleted for all.
    #[default]
    Travel,
    /// It comes back with the next pull.
    ComeBack,
}

/// What to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Take these from the server.
    pub take: BTreeSet<Key>,
    /// Remove these here.
    pub remove: BTreeSet<Key>,
    /// Send these to the server.
    pub send: BTreeSet<Key>,
    /// Delete these there.
    pub delete: BTreeSet<Key>,
    /// Both sides changed these; what was decided stands in the other sets.
    pub conflicts: BTreeSet<Key>,
}

impl Plan {
    /// Whether both sides are alike.
    pub fn is_empty(&self) -> bool {
        self.take.is_empty() && self.remove.is_empty() && self.send.is_empty() && self.delete.is_empty()
    }
}

/// Compares what was agreed on with what is here and what is there.
pub fn plan(agreed: &Checksums, here: &Checksums, there: &Remote, deletions: Deletions) -> Plan {
    let mut plan = Plan::default();
    let keys: BTreeSet<&Key> = agreed.keys().chain(here.keys()).chain(there.entries.keys()).collect();
    for key in keys {
        let (was, is, other) = (agreed.get(key), here.get(key), there.entries.get(key));
        if is == other {
            continue;
        }
        // Gone there without a word: an older server, or one that lost it. That is no reason to lose it here.
        let vanished = other.is_none() && !there.deleted.contains(key);
        let changed_here = is != was;
        let changed_there = other != was && !vanished;
        // Neither is what was agreed on, and they differ. A file that never was here is not deleted here.
        if changed_here && changed_there {
            plan.conflicts.insert(key.clone());
        }
        let set = match (changed_here, is, other) {
            (true, Some(_), _) => &mut plan.send,
            (false, Some(_), None) if vanished => &mut plan.send,
            (false, Some(_), None) => &mut plan.remove,
            (false, _, Some(_)) => &mut plan.take,
            (true, None, Some(_)) if changed_there || deletions == Deletions::ComeBack => &mut plan.take,
            (true, None, Some(_)) => &mut plan.delete,
            (_, None, None) => continue,
        };
        set.insert(key.clone());
    }
    plan
}

/// Texts in batches for one request each, in the order of their keys. A text that is larger than a batch travels alone.
pub fn batches(texts: BTreeMap<Key, String>) -> Vec<BTreeMap<Key, String>> {
    let mut batches: Vec<(usize, BTreeMap<Key, String>)> = Vec::new();
    for (key, text) in texts {
        let bytes = key.as_str().len() + text.len();
        match batches.last_mut() {
            Some((filled, batch)) if *filled + bytes <= BATCH_BYTES => {
                *filled += bytes;
                batch.insert(key, text);
            }
            _ => batches.push((bytes, BTreeMap::from([(key, text)]))),
        }
    }
    batches.into_iter().map(|(_, batch)| batch).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(name: &str) -> Key {
        name.parse().unwrap()
    }

    fn one(checksum: Option<&str>) -> Checksums {
        checksum.iter().map(|checksum| (key("a"), (*checksum).to_owned())).collect()
    }

    /// What is done with one entry, in a word, and whether it is a conflict.
    fn done(was: Option<&str>, is: Option<&str>, other: Option<&str>) -> (&'static str, bool) {
        let deleted = if other.is_none() { BTreeSet::from([key("a")]) } else { BTreeSet::new() };
        let there = Remote { entries: one(other), deleted };
        word(&plan(&one(was), &one(is), &there, Deletions::Travel))
    }

    fn word(plan: &Plan) -> (&'static str, bool) {
        let sets = [("take", &plan.take), ("remove", &plan.remove), ("send", &plan.send), ("delete", &plan.delete)];
        let done = sets.iter().find(|(_, set)| !set.is_empty()).map_or("nothing", |(word, _)| word);
        (done, !plan.conflicts.is_empty())
    }

    /// TEAM-3: the server wins per key except for what was changed here; where both changed, the text here wins.
    #[test]
    fn every_case_has_its_answer() {
        assert_eq!(done(None, None, Some("1")), ("take", false), "new there");
        assert_eq!(done(None, Some("1"), None), ("send", false), "new here");
        assert_eq!(done(Some("1"), Some("1"), Some("1")), ("nothing", false));
        assert_eq!(done(Some("1"), Some("1"), Some("2")), ("take", false), "changed there");
        assert_eq!(done(Some("1"), Some("2"), Some("1")), ("send", false), "changed here");
        assert_eq!(done(Some("1"), Some("2"), Some("2")), ("nothing", false), "changed alike");
        assert_eq!(done(Some("1"), Some("2"), Some("3")), ("send", true), "changed on both sides");
        assert_eq!(done(None, Some("2"), Some("3")), ("send", true), "made on both sides");
    }

    /// TEAM-5: deletions travel; a text that the other side changed meanwhile beats them.
    #[test]
    fn a_text_beats_a_deletion() {
        assert_eq!(done(Some("1"), Some("1"), None), ("remove", false), "deleted there");
        assert_eq!(done(Some("1"), None, Some("1")), ("delete", false), "deleted here");
        assert_eq!(done(Some("1"), None, None), ("nothing", false), "deleted on both sides");
        assert_eq!(done(Some("1"), Some("2"), None), ("send", true), "changed here, deleted there");
        assert_eq!(done(Some("1"), None, Some("2")), ("take", true), "deleted here, changed there");
        let there = Remote { entries: one(Some("1")), deleted: BTreeSet::new() };
        let back = plan(&one(Some("1")), &Checksums::new(), &there, Deletions::ComeBack);
        assert_eq!(word(&back), ("take", false), "with tombstones off a deleted file returns");
        let lost = plan(&one(Some("1")), &one(Some("1")), &Remote::default(), Deletions::Travel);
        assert_eq!(word(&lost), ("send", false), "gone there without a tombstone");
    }

    /// TEAM-3: batches have at most 200,000 bytes; what is larger travels alone; nothing is lost.
    #[test]
    fn texts_are_sent_in_batches() {
        let text = |bytes: usize| "x".repeat(bytes);
        let texts: BTreeMap<Key, String> = [("a", 90_000), ("b", 90_000), ("c", 90_000), ("d", 240_000), ("e", 10)]
            .into_iter()
            .map(|(name, bytes)| (key(name), text(bytes)))
            .collect();
        let sent = batches(texts.clone());
        let names: Vec<String> = sent.iter().map(|batch| batch.keys().map(Key::as_str).collect::<String>()).collect();
        assert_eq!(names, ["ab", "c", "d", "e"]);
        assert_eq!(sent.into_iter().flatten().collect::<BTreeMap<_, _>>(), texts);
    }

    /// A member's folder, and what it last agreed on with the server.
    #[derive(Debug, Clone, Default)]
    struct Folder {
        agreed: Checksums,
        here: Checksums,
    }

    impl Folder {
        /// Pulls and pushes once, in a world where nobody else does so meanwhile.
        fn meet(&mut self, server: &mut Remote) {
            let plan = plan(&self.agreed, &self.here, server, Deletions::Travel);
            for key in &plan.take {
                self.here.insert(key.clone(), server.entries[key].clone());
            }
            for key in &plan.remove {
                self.here.remove(key);
            }
            for key in &plan.send {
                server.entries.insert(key.clone(), self.here[key].clone());
                server.deleted.remove(key);
            }
            for key in &plan.delete {
                server.entries.remove(key);
                server.deleted.insert(key.clone());
            }
            self.agreed = self.here.clone();
        }
    }

    proptest! {
        /// TEAM-3: whatever members change and whenever they meet the server, in the end all have the same.
        #[test]
        fn all_members_converge(
            steps in proptest::collection::vec((0..3_usize, 0..4_usize, proptest::option::of(0..5_u8), any::<bool>()), 0..60)
        ) {
            let (mut folders, mut server) = (vec![Folder::default(); 3], Remote::default());
            for (who, name, text, meets) in steps {
                let name = key(["a", "b", "c", "d"][name]);
                match text {
                    Some(text) => drop(folders[who].here.insert(name, text.to_string())),
                    None => drop(folders[who].here.remove(&name)),
                }
                if meets {
                    folders[who].meet(&mut server);
                }
            }
            for _ in 0..2 {
                folders.iter_mut().for_each(|folder| folder.meet(&mut server));
            }
            for folder in &folders {
                prop_assert_eq!(&folder.here, &server.entries);
            }
        }

        /// TEAM-3: a text that only one side has is never removed unless the other side deleted it on purpose.
        #[test]
        fn no_text_goes_without_a_tombstone(
            was in proptest::option::of("[12]"), is in proptest::option::of("[12]"), other in proptest::option::of("[12]"),
            deleted in any::<bool>()
        ) {
            let deleted = if deleted && other.is_none() { BTreeSet::from([key("a")]) } else { BTreeSet::new() };
            let there = Remote { entries: one(other.as_deref()), deleted: deleted.clone() };
            let plan = plan(&one(was.as_deref()), &one(is.as_deref()), &there, Deletions::Travel);
            prop_assert!(plan.remove.is_empty() || (was == is && !deleted.is_empty()));
            prop_assert!(plan.delete.is_empty() || (was == other && is.is_none()));
        }
    }
}
