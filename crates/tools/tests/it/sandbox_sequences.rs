//! Random sequences of file operations in the sandbox: a law, not an example.
//!
//! No operation here removes or overwrites what was there before, so all of it has to be there after: in the project, or
//! among what was set aside because it became part of a guarded path. And no guarded path is left but those that were there.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;
use tools::permission::is_guarded_name;

use super::attacks::as_ordinary_user;
use super::place::Place;
use super::sandbox::Confined;
use crate::skipped::is_full;

/// So many sequences run in one project, each in a folder of its own.
const TOGETHER: u64 = 10;
/// So many operations each, in two commands: what the first leaves, the second finds.
const OPERATIONS: usize = 12;

const PLACES: [&str; 14] = [
    ".",
    "src",
    "src/deep",
    "sub",
    "sub/inner",
    "packages",
    "packages/a",
    "mine",
    "mine/own",
    "shut",
    "shut/in",
    "linked",
    "elsewhere",
    "sub2",
];
/// Says whether something is mounted at a path: only on what is held are removals tried.
const HELD: &str = "held() { grep -qF \" $(realpath \"$1\") \" /proc/self/mountinfo; }";

const GUARDED: [&str; 7] = [".git", ".husky", ".vscode", ".envrc", ".Git", ".mcp.json", ".claude"];
const MODES: [&str; 7] = ["000", "311", "555", "700", "755", "111", "444"];

/// SANDBOX-2: whatever a command does with its own files and however it moves others, nothing that was there is lost. The
/// sequences are in four parts, so that these run beside one another.
#[tokio::test]
async fn nothing_that_was_there_is_lost_in_the_first_part() {
    nothing_is_lost(0).await;
}

/// SANDBOX-2: the same, with other sequences.
#[tokio::test]
async fn nothing_that_was_there_is_lost_in_the_second_part() {
    nothing_is_lost(1).await;
}

/// SANDBOX-2: the same, with other sequences.
#[tokio::test]
async fn nothing_that_was_there_is_lost_in_the_third_part() {
    nothing_is_lost(2).await;
}

/// SANDBOX-2: the same, with other sequences.
#[tokio::test]
async fn nothing_that_was_there_is_lost_in_the_fourth_part() {
    nothing_is_lost(3).await;
}

/// SANDBOX-2: and the same for whoever is not root.
#[test]
fn nothing_of_an_ordinary_user_is_lost() {
    as_ordinary_user(&["it::sandbox_sequences::nothing_that_was_there_is_lost_in_the_first_part"], &[]);
}

async fn nothing_is_lost(part: u64) {
    let sequences = if is_full() { 250 } else { 10 };
    let mut moved = 0;
    for first in (0..sequences).step_by(usize::try_from(TOGETHER).unwrap()).map(|first| part * 1_000 + first) {
        let Some(confined) = Confined::new().await else { return };
        let place = &confined.place;
        let mut cases: Vec<Case> = (first..first + TOGETHER).map(|seed| Case::new(place, seed)).collect();
        let contents = contents(&place.root);
        let guarded = guarded(&place.root);
        cases.iter().for_each(|case| case.shut(place));
        let kept = place.scope.temporary().join("kept");
        let mut log = String::new();
        for _ in 0..2 {
            let lines: String = cases.iter_mut().map(Case::script).collect();
            log += &lines;
            let output =
                place.call("Bash", json!({"command": format!("{HELD}\n{lines}\necho end"), "timeout": 300_000})).await;
            assert!(output.text().contains("end"), "{}", output.text());
            // As the engine does where nobody lets it stay.
            for made in &output.made {
                let was_there = guarded.contains(&made.identity.inode()) && !made.path.is_symlink();
                assert!(!was_there, "{} was there\n{log}", made.path.display());
                let set_aside = files::exact::set_aside(&made.path, &made.identity, &kept);
                assert!(set_aside.is_ok(), "{set_aside:?}\n{log}");
                moved += 1;
            }
        }
        open_all(&place.root);
        open_all(&kept);
        let mut after = self::contents(&place.root);
        for (content, count) in self::contents(&kept) {
            *after.entry(content).or_default() += count;
        }
        for (content, count) in &contents {
            assert!(after.get(content) >= Some(count), "{} is lost\n{log}", String::from_utf8_lossy(content));
        }
        let new: Vec<_> = self::guarded(&place.root).difference(&guarded).cloned().collect();
        assert!(new.is_empty(), "{new:?} stayed\n{log}");
    }
    assert!(moved > sequences / 5, "only {moved} guarded paths were made: the sequences try too little");
}

/// One sequence: a folder, and what is still to be done in it.
struct Case {
    folder: String,
    random: u64,
    serial: usize,
}

impl Case {
    fn new(place: &Place, seed: u64) -> Self {
        let folder = format!("case-{seed}");
        for name in [
            "src/work",
            "src/deep/work",
            ".git/config",
            "sub/.git/config",
            "sub/.git/hooks/x",
            "sub/inner/.envrc",
            "packages/a/.vscode/tasks.json",
            "packages/a/index",
            "shut/secret",
            "shut/in/.git/config",
            "real/config",
            "notes",
        ] {
            place.write(&format!("{folder}/{name}"), format!("{folder}/{name}\n"));
        }
        std::fs::create_dir(place.path(&format!("{folder}/linked"))).unwrap();
        symlink("../real", place.path(&format!("{folder}/linked/.git"))).unwrap();
        std::fs::hard_link(place.path(&format!("{folder}/sub/.git/config")), place.path(&format!("{folder}/alias")))
            .unwrap();
        Self { folder, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, serial: 0 }
    }

    /// Takes rights from a folder, where it is so in this sequence.
    fn shut(&self, place: &Place) {
        let mode = [0o000, 0o311, 0o755][usize::try_from(self.random % 3).unwrap()];
        let path = place.path(&format!("{}/shut", self.folder));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The next operations.
    fn script(&mut self) -> String {
        let operations: Vec<String> = (0..OPERATIONS / 2).map(|_| self.operation()).collect();
        format!("(cd {}; {}) 2>/dev/null\n", self.folder, operations.join("; "))
    }

    fn operation(&mut self) -> String {
        self.serial += 1;
        let (one, other) = (self.pick(&PLACES), self.pick(&PLACES));
        let (guarded, mode, serial) = (self.pick(&GUARDED), self.pick(&MODES), self.serial);
        let file = self.pick(&["notes", "src/work", "packages/a/index", "alias", "shut/secret", "real"]);
        match self.next() % 16 {
            0 => format!("mkdir -p {one}/own-{serial}"),
            1 => format!("mkdir -p {one}/{guarded}"),
            2 => format!("mkdir -p {one}/{guarded}; mv -n {other} {one}/{guarded}/"),
            3 => format!("mv -n {one} {other}"),
            4 => format!("mv -nT {one} {other}/{guarded}"),
            5 => format!("mv -n {file} {other}"),
            6 => format!("ln {file} {other}/own-{serial}; echo more > {other}/own-{serial}.txt"),
            7 => format!("ln -s {one} {other}/{guarded}"),
            8 => format!("chmod {mode} {one}"),
            9 => format!("chmod -R u+rwx {one}"),
            10 => format!("echo own > {one}/own-{serial}; rm -f {one}/own-{serial} {other}/own-*.txt"),
            11 => format!("git init -q {one}"),
            12 => format!("[ -e {one}/{guarded} ] || echo bad > {one}/{guarded}"),
            13 => {
                let tries = format!("echo bad > {one}/.git/config; echo bad > {one}/.git/hooks/x; rm -rf {one}/.git");
                format!("held {one}/.git && {{ {tries}; }}")
            }
            14 => format!("held {one}/.vscode && rm -rf {one}/.vscode; mv -n {one}/.git {other}/"),
            _ => format!("mv -n {one} mine-{serial}; mkdir -p {one}; chmod {mode} mine-{serial}"),
        }
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.next() % from.len() as u64).unwrap()]
    }

    /// Xorshift: the same numbers each time.
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 16
    }
}

/// Everything at and below a path; links are not followed.
fn below(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    if path.is_dir() && !path.is_symlink() {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        all.extend(entries.flat_map(|entry| below(&entry)));
    }
    all
}

/// The content of every file and the target of every link, and how often it is there. Other names of a file count once.
fn contents(root: &Path) -> BTreeMap<Vec<u8>, usize> {
    let mut seen = BTreeSet::new();
    let mut contents = BTreeMap::new();
    for path in below(root) {
        let metadata = path.symlink_metadata().unwrap();
        if !metadata.is_dir() && seen.insert((metadata.dev(), metadata.ino())) {
            let content = match path.read_link() {
                Ok(target) => format!("-> {}", target.display()).into_bytes(),
                Err(_) => std::fs::read(&path).unwrap(),
            };
            *contents.entry(content).or_default() += 1;
        }
    }
    contents
}

/// What is guarded, by what it is.
fn guarded(root: &Path) -> BTreeSet<u64> {
    let is_guarded = |path: &&PathBuf| path.file_name().is_some_and(is_guarded_name);
    let inside = |path: &&PathBuf| {
        !path.parent().unwrap().strip_prefix(root).is_ok_and(|above| above.iter().any(is_guarded_name))
    };
    let all = below(root);
    all.iter().filter(is_guarded).filter(inside).map(|path| path.symlink_metadata().unwrap().ino()).collect()
}

/// Lets the owner see everything.
fn open_all(path: &Path) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    if metadata.is_symlink() {
        return;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(metadata.mode() & 0o777 | 0o700)).unwrap();
    if metadata.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| open_all(&entry.unwrap().path()));
    }
}
