//! A team in a storm: members with real folders, a person at each, up to two runs in a folder, and the real server.
//!
//! What happens next follows from the seed. A run is polled by hand, so that it stands still between any two steps, and is
//! killed there or before any effect on its disk.

mod laws;
mod server;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ::team::mirror::Mirror;
use ::team::report::{EarlyEnd, SyncReport};
use ::team::sync::Deletions;
use files::faults::{Effect, MountedDisk, mount};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::it::chance::{Chance, is_replay, run_seeds, seeds};
use crate::it::disk::StormDisk;
use laws::TeamLaws;
use server::{MEMBERS, TeamServer, client};
use wire::{Network, StormWire};

const NAMES: [&str; 6] = ["a.md", "b.md", "d/x.md", "d/y.md", "e/z.md", "e/w.md"];
/// Things that happen in one world before it becomes calm.
const EVENTS: usize = 160;
/// Time goes by in such steps: more than a client waits between two tries, so that its jitter changes nothing.
const WHILE: Duration = Duration::from_secs(5);
/// A run waits so long for another in its folder.
const PATIENCE: Duration = Duration::from_millis(200);
/// More polls than a run in a calm world has.
const POLLS: usize = 2_000;
/// A run has seldom more effects on the disk.
const EFFECTS: usize = 70;
/// At one effect in so many, a person writes just then.
const TYPED_MEANWHILE: usize = 60;

type Outcome = Result<SyncReport, EarlyEnd>;

/// What goes wrong beside kills, power cuts, a bad network, full disks and folders that cannot be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mishap {
    None,
    /// The server is restored from a backup.
    Restored,
    /// What a folder agreed on is lost, or is an old copy.
    StateLost,
}

struct Member {
    home: PathBuf,
    disk: Arc<Mutex<StormDisk>>,
    /// How often the server had been restored when the run began that is polled.
    began: Arc<AtomicUsize>,
    wire: StormWire,
    old_state: Option<Vec<u8>>,
    _mounted: MountedDisk,
}

impl Member {
    fn folder(&self) -> PathBuf {
        self.home.join("team")
    }

    fn state(&self) -> PathBuf {
        self.home.join("agreed.json")
    }

    /// All files that are not hidden.
    fn files(&self) -> BTreeMap<String, String> {
        let (root, mut found) = (self.folder(), BTreeMap::new());
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Some(key) = key_of(&root, &path) {
                    found.insert(key, std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        found
    }
}

/// The name of an entry, if that is what a path is.
fn key_of(folder: &Path, path: &Path) -> Option<String> {
    let key = path.strip_prefix(folder).ok()?.to_str()?;
    (!key.split('/').any(|part| part.starts_with('.'))).then(|| key.to_owned())
}

struct Run {
    member: usize,
    began: usize,
    future: Pin<Box<dyn Future<Output = Outcome>>>,
}

struct World {
    chance: Chance,
    mishap: Mishap,
    members: Vec<Member>,
    runs: Vec<Run>,
    network: Arc<Mutex<Network>>,
    laws: Arc<Mutex<TeamLaws>>,
    _place: TempDir,
}

impl World {
    fn new(seed: u64, mishap: Mishap) -> Self {
        let mut chance = Chance::new(seed);
        let shared = Path::new("/dev/shm");
        let place = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let place = tempfile::tempdir_in(place.canonicalize().unwrap()).unwrap();
        let server = TeamServer::open(place.path());
        let laws: Arc<Mutex<TeamLaws>> = Arc::default();
        let network = Network { server, chance: chance.fork(), is_calm: false, late: Vec::new() };
        let network = Arc::new(Mutex::new(network));
        let members = (0..MEMBERS).map(|number| {
            let home = place.path().join(format!("member-{number}"));
            std::fs::create_dir_all(home.join("team")).unwrap();
            let began: Arc<AtomicUsize> = Arc::default();
            let observer = observer(number, &home.join("team"), &laws, &began, chance.fork());
            let disk = Arc::new(Mutex::new(StormDisk::new(chance.fork(), observer)));
            disk.lock().fails_to_sync = true;
            let wire = StormWire { member: number, network: network.clone(), laws: laws.clone(), disk: disk.clone() };
            let _mounted = mount(&home, disk.clone());
            Member { home, disk, began, wire, old_state: None, _mounted }
        });
        let members = members.collect();
        Self { chance, mishap, members, runs: Vec::new(), network, laws, _place: place }
    }

    fn tell(&self, what: String) {
        self.laws.lock().tell(what);
    }

    /// Something happens: mostly, a run takes its next steps.
    fn event(&mut self) {
        let number = self.chance.below(MEMBERS);
        let key = *self.chance.one_of(&NAMES);
        match self.chance.below(40) {
            0..=4 if self.runs.iter().filter(|run| run.member == number).count() < 2 => self.begin(number),
            5..=8 => self.person_types(number, key),
            9 => self.person_deletes(number, key),
            10 if !self.runs.is_empty() => {
                let at = self.chance.below(self.runs.len());
                self.members[self.runs[at].member].disk.lock().kill();
                self.bury(at);
            }
            11 | 19 | 20 => {
                let mut disk = self.members[number].disk.lock();
                disk.is_full = false;
                drop(disk);
                self.tell(format!("{number}: the disk has room"));
            }
            12 => {
                let folder = self.members[number].folder().join(*self.chance.one_of(&["d", "e"]));
                let unlisted = &mut self.members[number].disk.lock().unlisted;
                if !unlisted.remove(&folder) {
                    unlisted.insert(folder);
                }
            }
            13 if self.chance.one_in(6) => self.vanish(number),
            14 => self.network.lock().server.set_clock(self.chance.below(200_000_000) as i64 - 100_000_000),
            15 if self.mishap == Mishap::Restored => {
                let mut network = self.network.lock();
                match self.chance.one_in(2) {
                    true => {
                        network.server.back_up();
                        self.laws.lock().back_up();
                    }
                    false => {
                        network.server.restore();
                        self.laws.lock().restore();
                    }
                }
            }
            15 | 16 if self.mishap == Mishap::StateLost => {
                self.laws.lock().is_forgetful = true;
                self.lose_state(number);
            }
            17 | 18 => self.deliver_late(),
            _ if !self.runs.is_empty() => {
                // Steps come in spurts, so that some runs get to their end.
                let at = self.chance.below(self.runs.len());
                for _ in 0..=self.chance.below(12) {
                    if self.step(at) {
                        break;
                    }
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, number: usize) {
        let is_push = !self.chance.one_in(3);
        if self.chance.one_in(3) {
            let effects = self.chance.below(EFFECTS);
            self.members[number].disk.lock().kill_after(effects);
        }
        if self.chance.one_in(5) {
            let effects = self.chance.below(EFFECTS);
            self.members[number].disk.lock().fill_after(effects);
        }
        self.tell(format!("{number}: a run begins"));
        let run = self.run(number, is_push, Deletions::Travel);
        self.runs.push(run);
    }

    fn run(&self, number: usize, is_push: bool, deletions: Deletions) -> Run {
        let member = &self.members[number];
        let client = client(number).over(Arc::new(member.wire.clone()));
        let (folder, state) = (member.folder(), member.state());
        let future = Box::pin(async move {
            let mut mirror = Mirror::open(&folder, &state, client, deletions)?.with_patience(PATIENCE);
            if is_push { mirror.push().await } else { mirror.pull().await }
        });
        Run { member: number, began: self.laws.lock().epoch, future }
    }

    /// Lets a run take a step. Says whether it is over.
    fn step(&mut self, at: usize) -> bool {
        let run = &mut self.runs[at];
        let member = &self.members[run.member];
        member.began.store(run.began, Ordering::Relaxed);
        let number = run.member;
        let outcome = run.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.look(number);
        if self.members[number].disk.lock().is_dead() {
            self.bury(at);
            return true;
        }
        let Poll::Ready(outcome) = outcome else { return false };
        let told = match outcome {
            Ok(report) => format!("{number}: a run ends: sent {:?}, took {:?}", report.sent, report.taken),
            Err(error) => format!("{number}: a run stops: {error}"),
        };
        self.runs.swap_remove(at);
        self.tell(told);
        true
    }

    /// A run was killed: what it would do at its end does not happen. Perhaps the power is gone too.
    fn bury(&mut self, at: usize) {
        let number = self.runs[at].member;
        let disk = self.members[number].disk.clone();
        drop(self.runs.swap_remove(at));
        let told = match self.chance.one_in(2) {
            false => "a run is killed",
            true => {
                self.runs.retain(|run| run.member != number);
                disk.lock().cut_power();
                "the power is cut"
            }
        };
        disk.lock().revive();
        self.tell(format!("{number}: {told}"));
    }

    fn person_types(&mut self, number: usize, key: &str) {
        let member = &self.members[number];
        let text = self.laws.lock().new_text(number, key);
        let path = member.folder().join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        member.disk.lock().forget(&path);
        self.look(number);
    }

    fn person_deletes(&mut self, number: usize, key: &str) {
        let member = &self.members[number];
        let path = member.folder().join(key);
        if std::fs::remove_file(&path).is_ok() {
            self.laws.lock().person_deletes(number, key);
            member.disk.lock().forget(&path);
        }
    }

    /// The folder is removed, and made again by the next to come. Nobody deleted a file in it.
    fn vanish(&mut self, number: usize) {
        let member = &self.members[number];
        for key in member.files().keys() {
            member.disk.lock().forget(&member.folder().join(key));
        }
        std::fs::remove_dir_all(member.folder()).unwrap();
        std::fs::create_dir(member.folder()).unwrap();
        self.tell(format!("{number}: the folder vanishes"));
    }

    fn lose_state(&mut self, number: usize) {
        let kind = self.chance.below(3);
        let member = &mut self.members[number];
        let state = member.state();
        match (kind, member.old_state.clone()) {
            (0, _) => member.old_state = std::fs::read(&state).ok(),
            (1, Some(old)) => std::fs::write(&state, old).unwrap(),
            _ => drop(std::fs::remove_file(&state)),
        }
        member.disk.lock().forget(&state);
        self.tell(format!("{number}: the state is copied, old or lost: {kind}"));
    }

    /// Requests arrive that nobody waits for any more.
    fn deliver_late(&mut self) {
        let mut network = self.network.lock();
        for (member, request) in std::mem::take(&mut network.late) {
            network.deliver(member, &request, &self.laws);
        }
    }

    /// A person looks at her files.
    fn look(&self, number: usize) {
        let mut laws = self.laws.lock();
        for (key, text) in self.members[number].files() {
            laws.sees(number, &key, &text);
        }
    }

    /// Nothing goes wrong any more, and everybody pushes a few times.
    fn calm(&mut self) {
        for run in std::mem::take(&mut self.runs) {
            let disk = self.members[run.member].disk.clone();
            disk.lock().kill();
            drop(run);
            disk.lock().revive();
        }
        for member in &self.members {
            let mut disk = member.disk.lock();
            disk.revive();
            (disk.is_calm, disk.is_full) = (true, false);
            disk.unlisted.clear();
        }
        self.deliver_late();
        self.network.lock().is_calm = true;
        self.laws.lock().is_calm = true;
        self.tell("it becomes calm".to_owned());
        for round in 0..4 {
            for number in 0..MEMBERS {
                // Who is asked about many missing files says that nobody deleted them.
                let deletions = if round == 0 { Deletions::Travel } else { Deletions::ComeBack };
                let run = self.run(number, true, deletions);
                self.runs.push(run);
                let ended = (0..POLLS).any(|_| self.step(0));
                assert!(ended, "a run does not end");
                let told = self.laws.lock().story.last().cloned().unwrap_or_default();
                if told.contains("a run stops") {
                    self.laws.lock().note(format!("in a calm world: {told}"));
                }
            }
        }
        self.compare();
    }

    /// All folders are alike, and the server has what it acknowledged.
    fn compare(&self) {
        let network = self.network.lock();
        let mut laws = self.laws.lock();
        let mut there = BTreeMap::new();
        for key in NAMES {
            let history = network.server.history(key);
            if let Some(Some(text)) = history.first() {
                there.insert(key.to_owned(), text.clone());
            }
            let lost: Vec<_> = laws.accepted.history.iter().filter(|(of, _)| of == key).cloned().collect();
            for (_, text) in lost.into_iter().filter(|(_, text)| !history.contains(&Some(text.clone()))) {
                laws.note(format!("the server acknowledged {text:?} and does not have it"));
            }
        }
        let accepted = laws.accepted.current.clone();
        if there != accepted {
            laws.note(format!("the server has {there:?}, and acknowledged {accepted:?}"));
        }
        for (number, member) in self.members.iter().enumerate() {
            let here = member.files();
            if here != there {
                laws.note(format!("member {number} has {here:?}, the server {there:?}"));
            }
        }
    }
}

/// Sees what a run does to a folder just before it happens, and lets a person write meanwhile.
fn observer(
    number: usize,
    folder: &Path,
    laws: &Arc<Mutex<TeamLaws>>,
    began: &Arc<AtomicUsize>,
    mut chance: Chance,
) -> crate::it::disk::Observer {
    let (folder, laws, began) = (folder.to_owned(), laws.clone(), began.clone());
    Box::new(move |effect, path| {
        let is_here = path.starts_with(&folder);
        let mut laws = laws.lock();
        if is_replay() {
            laws.tell(format!("{number}:   {effect:?} {}", path.display()));
        }
        if let (Effect::Name | Effect::Remove, Some(key)) = (effect, key_of(&folder, path))
            && let Ok(text) = std::fs::read_to_string(path)
        {
            laws.run_takes_away(number, &key, &text, began.load(Ordering::Relaxed));
            if effect == Effect::Remove {
                laws.run_removes(number, &key);
            }
        }
        // Not between the last look at a file and its replacement: no program could keep what is written then.
        if is_here && !laws.is_calm && matches!(effect, Effect::Write | Effect::List) && chance.one_in(TYPED_MEANWHILE)
        {
            let key = *chance.one_of(&NAMES);
            let path = folder.join(key);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, laws.new_text(number, key)).unwrap();
            return Some(path);
        }
        None
    })
}

/// One world from its beginning to its end; gives what was broken in it.
fn live(seed: u64) -> Vec<String> {
    let mishap = [Mishap::None, Mishap::Restored, Mishap::StateLost][(seed % 3) as usize];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed, mishap);
        for _ in 0..EVENTS {
            world.event();
            if world.chance.one_in(4) {
                tokio::time::advance(WHILE).await;
            }
            tokio::task::yield_now().await; // so that a sleep that is over is not put off
        }
        world.calm();
        let laws = world.laws.lock();
        let mut broken = laws.broken.clone();
        if !broken.is_empty() && is_replay() {
            broken.extend(laws.story.iter().cloned());
        }
        broken
    })
}

/// Worlds that once broke a law.
const BROKE: [u64; 6] = [316, 1540, 3490, 4052, 4192, 4759];

/// TEAM-3, TEAM-5, TEAM-9: with kills before any effect on the disk, power cuts, a bad network, full disks, folders that
/// vanish or cannot be listed, servers that are restored and states that are lost: nothing acknowledged is lost, nothing older
/// replaces something newer, nothing is deleted that nobody deleted, and in the end all have the same.
#[test]
fn a_team_in_a_storm_keeps_the_laws() {
    run_seeds(&seeds(100, 5_000, &BROKE), live);
}
