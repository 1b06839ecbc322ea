//! Dreams against the simulated model: good ones, and ones that want to do harm.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use learning::dream::disk::DreamLockPlace;
use learning::dream::dream_log::DreamOutcome;
use learning::dream::progress::{DreamPhase, DreamProgress};
use learning::dream::run::{Dream, NoDreamReason};
use learning::dream::schedule::{DreamSchedule, ScheduleDecision};
use learning::dream::{DreamSite, SourcePurpose};
use learning::ledger::Ledger;
use memory::changes::UndoResult;
use memory::store::{IndexUpkeep, Store};
use provider::anthropic::{Anthropic, Auth, Config};
use session::{Home, World};
use settings::Rhythm;
use simulator::{Options, Script, Simulator};
use tokio_util::sync::CancellationToken;
use tools::Scope;
use transcript::Id;

/// 2026-11-15, noon.
const NOW: i64 = 1_794_744_000;
const DAY: i64 = 86_400;

/// A home with keys, a project, memories, sessions, and a model that dreams.
pub struct House {
    pub simulator: Simulator,
    root: tempfile::TempDir,
    pub seen: Arc<Mutex<Vec<DreamProgress>>>,
    moved: Arc<AtomicI64>,
    names: Arc<AtomicI64>,
}

impl House {
    pub async fn new(script: &str) -> Self {
        // In memory, where there is such a place: every change is brought to the disk.
        let shared = Path::new("/dev/shm");
        let place = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let root = tempfile::tempdir_in(place).unwrap();
        let mut script = Script::parse(script).unwrap();
        let base = root.path().canonicalize().unwrap();
        script.vars.insert("home".into(), base.join("home").display().to_string());
        script.vars.insert("memory".into(), base.join("home/.claude/projects/p/memory").display().to_string());
        let sessions = Home::at(base.join("home/.claude")).project(&base.join("home/project"));
        script.vars.insert("sessions".into(), sessions.display().to_string());
        let simulator = Simulator::start(script, Options::default()).await.unwrap();
        let house = Self { simulator, root, seen: Arc::default(), moved: Arc::default(), names: Arc::default() };
        for (file, text) in [
            ("home/.ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n"),
            ("home/.claude/settings.json", "{}"),
            ("home/project/src/main.rs", "fn main() {}\n"),
        ] {
            house.put(file, text);
        }
        std::fs::create_dir_all(house.memory()).unwrap();
        house
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    pub fn memory(&self) -> PathBuf {
        self.at("home/.claude/projects/p/memory")
    }

    pub fn sessions(&self) -> PathBuf {
        Home::at(self.at("home/.claude")).project(&self.at("home/project"))
    }

    pub fn put(&self, file: &str, text: &str) {
        std::fs::create_dir_all(self.at(file).parent().unwrap()).unwrap();
        std::fs::write(self.at(file), text).unwrap();
    }

    /// Saves a memory, so many days ago.
    pub fn remember(&self, file: &str, description: &str, body: &str, days: i64) {
        let text = memory(file, description, body);
        let path = self.memory().join(file);
        std::fs::write(&path, text).unwrap();
        self.date(&path, days);
        let index = self.memory().join("MEMORY.md");
        let mut lines = std::fs::read_to_string(&index).unwrap_or_default();
        lines.push_str(&format!("- [{file}]({file}) — {description}\n"));
        std::fs::write(index, lines).unwrap();
    }

    fn date(&self, path: &Path, days: i64) {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs((NOW - days * DAY).unsigned_abs());
        std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    }

    /// A session in which something was said.
    pub fn session(&self, id: &str, said: &str, days: i64) {
        let (project, folder) = (self.at("home/project"), self.sessions());
        std::fs::create_dir_all(&folder).unwrap();
        let line = serde_json::json!({
            "type": "user", "uuid": id, "parentUuid": null, "cwd": project, "timestamp": "2026-11-14T10:00:00.000Z",
            "message": {"role": "user", "content": said},
        });
        let path = folder.join(format!("{id}.jsonl"));
        std::fs::write(&path, format!("{line}\n")).unwrap();
        self.date(&path, days);
    }

    pub fn world(&self) -> World {
        let (moved, names) = (self.moved.clone(), self.names.clone());
        World::new(
            move || Timestamp::from_second(NOW + moved.load(Ordering::Relaxed)).unwrap(),
            move |_| Id::from(format!("id-{}", names.fetch_add(1, Ordering::Relaxed))),
        )
    }

    pub fn wait(&self, seconds: i64) {
        self.moved.fetch_add(seconds, Ordering::Relaxed);
    }

    pub fn site(&self) -> DreamSite {
        DreamSite {
            home: Home::at(self.at("home/.claude")),
            memory: self.memory(),
            project: self.at("home/project"),
            session: None,
            world: self.world(),
        }
    }

    pub fn dream(&self) -> Dream {
        let seen = self.seen.clone();
        let model = Anthropic::new(Config::new(self.simulator.url(), Auth::ApiKey("k".into()))).unwrap();
        Dream {
            site: self.site(),
            indexing: IndexUpkeep::Kept,
            model: Arc::new(model),
            name: "claude-haiku-4-5".into(),
            window: 200_000,
            scope: Scope::new(self.at("home/project"), self.at("temporary")).with_home(self.at("home")),
            rules: tools::permission::Rules::default(),
            excluded: tools::permission::Rules::default(),
            purpose: SourcePurpose::Learn,
            ledger: Arc::new(Ledger::in_memory(self.world())),
            listener: Arc::new(move |progress: &DreamProgress| seen.lock().unwrap().push(progress.clone())),
            cancel: CancellationToken::new(),
        }
    }

    /// All files but the memories and what is kept about them, by path.
    pub fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let kept = ["memory-changes", "cairn"].map(|name| self.at("home/.claude").join(name));
        tree(&self.at("home"), &|path| path != self.memory() && !kept.iter().any(|kept| path == kept))
    }

    /// The memories and their index.
    pub fn memories(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        tree(&self.memory(), &|path| path.extension().is_none_or(|extension| extension == "md") && !is_lock(path))
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.memory().join(file)).unwrap()
    }

    /// Takes back all that the newest dream did.
    pub fn undo(&self) -> Vec<UndoResult> {
        let site = self.site();
        let run = site.dream_log().dreams().remove(0).over.unwrap().run.unwrap();
        let store = Store::open(self.memory(), IndexUpkeep::Kept).unwrap();
        site.changes().undo(&run, None, &store, site.world.now()).unwrap()
    }
}

fn is_lock(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains("lock"))
}

fn tree(at: &Path, enter: &dyn Fn(&Path) -> bool) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for path in std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).filter(|path| enter(path)) {
        if path.is_symlink() {
            all.insert(path.clone(), std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else if path.is_dir() {
            all.insert(path.clone(), Vec::new());
            all.extend(tree(&path, enter));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

/// A memory that an agent saved.
pub fn memory(name: &str, description: &str, body: &str) -> String {
    let head = "type: project\nmetadata:\n  agent: extract\n";
    format!("---\nname: {name}\ndescription: {description}\n{head}---\n\n{body}\n")
}

const GOOD: &str = include_str!("dreaming.toml");

/// A house with two memories that overlap, a relative date, and a fact that a session contradicts.
async fn untidy() -> House {
    let house = House::new(GOOD).await;
    house.remember("deploys.md", "who signs off deploys", "Deploys need two approvals.", 20);
    house.remember("deploy-rule.md", "the rule for deploys", "Two people sign off a deploy; say so in #ops.", 10);
    house.remember("release.md", "when the release is", "The release is next Thursday.", 6);
    house.remember("packages.md", "which package manager", "We use npm.", 30);
    house.session("s-1", "We moved from npm to pnpm last week, remember that.", 1);
    house
}

/// DREAM-3, DREAM-4, DREAM-5: a dream merges what overlaps, makes dates absolute, drops what is contradicted, keeps the
/// index in step; it is dated, written down, shown while it runs, and can be taken back.
#[tokio::test]
async fn a_dream_brings_memories_into_order_and_can_be_undone() {
    let house = untidy().await;
    let (outside, before) = (house.outside(), house.memories());
    let over = house.dream().run().await.unwrap();
    assert_eq!(
        (over.how, over.text.as_str()),
        (DreamOutcome::Completed, "Merged the deploy rules, fixed a date, dropped npm.")
    );
    assert_eq!(over.saved, ["deploys.md", "release.md", "packages.md"]);
    assert_eq!((over.removed.as_slice(), over.denied), (["deploy-rule.md".to_owned()].as_slice(), 0));
    assert!(house.read("deploys.md").contains("#ops") && !house.memory().join("deploy-rule.md").exists());
    assert!(house.read("release.md").contains("2026-11-12") && house.read("packages.md").contains("pnpm"));
    assert!(house.read("packages.md").contains("agent: dream"), "where it comes from: {}", house.read("packages.md"));
    let index = house.read("MEMORY.md");
    assert!(
        !index.contains("deploy-rule.md") && index.contains("(deploys.md)") && index.lines().count() == 3,
        "{index}"
    );
    assert_eq!(house.outside(), outside);

    let first = &house.simulator.requests()[0];
    let (system, task) = (first["system"].to_string(), first["messages"].to_string());
    assert!(system.contains("four phases") && !task.contains("four phases"), "a prompt of its own");
    for told in [
        "Sunday, 2026-11-15",
        "was never",
        "We moved from npm",
        "session s-1 (1 message)",
        "deploys.md (2026-10-26): who",
        "Deploys need two approvals",
    ] {
        assert!(task.contains(told), "{told} in {task}");
    }
    let phases: Vec<DreamPhase> = house.seen.lock().unwrap().iter().map(|progress| progress.phase).collect();
    assert_eq!((phases[0], *phases.last().unwrap()), (DreamPhase::Starting, DreamPhase::Completed));
    assert!(phases.contains(&DreamPhase::Updating) && phases.is_sorted_by_key(|phase| *phase as u8), "{phases:?}");
    let last = house.seen.lock().unwrap().last().cloned().unwrap();
    assert_eq!((last.tools["Write"], last.tools["Remove"], last.touched.len()), (3, 1, 4));

    let mark = DreamLockPlace::new(files::Root::open(house.memory()).unwrap(), house.world().now()).mark().unwrap();
    assert_eq!((mark.holder, mark.dreamt), (None, Some(Timestamp::from_second(NOW).unwrap())));
    let undone = house.undo();
    assert!(undone.len() == 4 && undone.iter().all(|one| matches!(one, UndoResult::Restored { .. })), "{undone:?}");
    let mut after = house.memories();
    let sorted = |tree: &mut BTreeMap<PathBuf, Vec<u8>>| {
        let index = tree.get_mut(&house.memory().join("MEMORY.md")).unwrap();
        let mut lines: Vec<&[u8]> = index.split(|byte| *byte == b'\n').collect();
        lines.sort();
        *index = lines.concat();
    };
    let mut was = before;
    sorted(&mut was);
    sorted(&mut after);
    assert_eq!(after, was, "all as it was, but for the order of lines in the index");
}

/// MEM-4, TEAM-1: a dream over shared memories is told what belongs where; one without them is not.
#[tokio::test]
async fn a_dream_is_told_what_is_shared() {
    for (shared, times) in [(false, 0), (true, 1)] {
        let house = untidy().await;
        if shared {
            std::fs::create_dir_all(house.memory().join("team")).unwrap();
            std::fs::write(house.memory().join("team/freeze.md"), memory("freeze.md", "merge freeze", "Until Friday."))
                .unwrap();
        }
        house.dream().run().await.unwrap();
        let said = house.simulator.requests()[0]["messages"].to_string();
        assert_eq!(said.matches("are shared with everyone who works on this repository").count(), times, "{said}");
    }
}

/// DREAM-1: five other sessions and a day, or no dream; the clock moved on lets it be due.
#[tokio::test]
async fn a_dream_is_due_after_a_day_and_five_sessions() {
    let house = untidy().await;
    let rhythm = Rhythm::default();
    let due = || house.site().due(&mut DreamSchedule::default(), &rhythm).unwrap();
    assert_eq!(due(), ScheduleDecision::TooFew(1));
    (2..=5).for_each(|n| house.session(&format!("s-{n}"), "hello there", 1));
    assert_eq!(due(), ScheduleDecision::Due);
    let own = DreamSite { session: Some("s-5".into()), ..house.site() };
    assert_eq!(
        own.due(&mut DreamSchedule::default(), &rhythm).unwrap(),
        ScheduleDecision::TooFew(4),
        "its own does not count"
    );
    house.dream().run().await.unwrap();
    assert_eq!(due(), ScheduleDecision::TooSoon(Timestamp::from_second(NOW + DAY).unwrap()));
    house.wait(DAY);
    assert_eq!(due(), ScheduleDecision::TooFew(0), "none of them was touched since");
    (1..=5).for_each(|n| house.session(&format!("s-{n}"), "hello again", -1));
    assert_eq!(due(), ScheduleDecision::Due);
}

/// DREAM-1, DREAM-2: a dream whose process was killed does not count. The next comes by itself after an hour; who asks for
/// one takes the lock at once.
#[tokio::test]
async fn after_a_kill_the_next_dream_comes_within_the_hour() {
    let house = untidy().await;
    (2..=5).for_each(|n| house.session(&format!("s-{n}"), "hello there", 1));
    let dream = house.site();
    let dead = u32::MAX / 2;
    std::fs::write(house.memory().join(".consolidate-lock"), dead.to_string()).unwrap();
    house.date(&house.memory().join(".consolidate-lock"), 0);
    assert!(
        matches!(dream.due(&mut DreamSchedule::default(), &Rhythm::default()).unwrap(), ScheduleDecision::TooSoon(_)),
        "perhaps another's"
    );
    let at = house.world().now();
    let began = learning::dream::dream_log::DreamStart {
        id: "x".into(),
        at,
        pid: dead,
        model: "m".into(),
        sessions: 5,
        before: None,
    };
    dream.dream_log().begin(&began).unwrap();
    let due = |site: &DreamSite| site.due(&mut DreamSchedule::default(), &Rhythm::default()).unwrap();
    assert_eq!(due(&dream), ScheduleDecision::Rests(Timestamp::from_second(NOW + 3_600).unwrap()), "ours, and cut off");
    house.wait(3_600);
    assert_eq!(due(&dream), ScheduleDecision::Due);
    house.wait(-3_600);
    assert_eq!(house.dream().run().await.unwrap().how, DreamOutcome::Completed);
}

/// DREAM-2, DREAM-4: stopped, failed or dropped, it leaves the date as it was, and nothing in the way of the next; while one
/// runs no other does.
#[tokio::test]
async fn a_dream_that_is_stopped_sets_the_date_back() {
    let house = House::new("[[fault]]\nstall = true\ntimes = 9\n").await;
    house.remember("a.md", "something", "Text.", 1);
    let lock = house.memory().join(".consolidate-lock");
    let dream = house.dream();
    let cancel = dream.cancel.clone();
    let running = tokio::spawn(dream.run());
    while house.simulator.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), std::process::id().to_string());
    assert!(matches!(house.dream().run().await, Err(NoDreamReason::Busy(Some(_)))));
    cancel.cancel();
    let over = running.await.unwrap().unwrap();
    assert_eq!(over.how, DreamOutcome::Killed);
    assert!(!lock.exists(), "there was none before");
    assert_eq!(house.seen.lock().unwrap().last().unwrap().phase, DreamPhase::Killed);

    let running = tokio::spawn(house.dream().run());
    while house.simulator.requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert!(!lock.exists(), "dropped in the middle");
    let dreams = house.site().dream_log().dreams();
    assert_eq!((dreams.len(), dreams[0].over.is_some(), dreams[1].over.is_some()), (2, false, true));
}

/// DREAM-2: a lock that another program took over ends the dream before its next round.
#[tokio::test]
async fn a_dream_ends_when_its_lock_is_anothers() {
    let script = "[[rule]]\nsay = 'On.'\ncall = [{ tool = 'Glob', input = { pattern = '*.md' } }]\n";
    let house = House::new(script).await;
    house.remember("a.md", "something", "Text.", 1);
    let lock = house.memory().join(".consolidate-lock");
    let theirs = lock.clone();
    let listener: learning::dream::run::Listener = Arc::new(move |progress: &DreamProgress| {
        if progress.rounds == 3 {
            std::fs::write(&theirs, "1").unwrap();
        }
    });
    let over = Dream { listener, ..house.dream() }.run().await.unwrap();
    assert_eq!((over.how, over.rounds), (DreamOutcome::Killed, 3));
    assert_eq!(std::fs::read_to_string(lock).unwrap(), "1", "it is not ours to touch");
}

/// MEM-7, DREAM-5: what the user edits while a dream runs stays as the user wrote it; and an undo leaves alone what was
/// edited since, and says so.
#[tokio::test]
async fn a_user_who_edits_meanwhile_loses_nothing() {
    let house = untidy().await;
    let path = house.memory().join("release.md");
    let users = memory("release.md", "when the release is", "It was cancelled. I wrote this just now.");
    let (theirs, text) = (path.clone(), users.clone());
    let listener: learning::dream::run::Listener = Arc::new(move |progress: &DreamProgress| {
        if progress.rounds == 0 {
            std::fs::write(&theirs, &text).unwrap();
        }
    });
    let over = Dream { listener, ..house.dream() }.run().await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), users);
    assert_eq!((over.how, over.denied, over.saved.len()), (DreamOutcome::Completed, 1, 2), "the rest went on");
    let edited = memory("packages.md", "which package manager", "Bun, since today.");
    std::fs::write(house.memory().join("packages.md"), &edited).unwrap();
    let kept: Vec<String> = house
        .undo()
        .into_iter()
        .filter_map(|one| match one {
            UndoResult::ChangedSince { path, before, now } => {
                assert!(before.unwrap().contains("npm") && now.unwrap() == edited);
                Some(path)
            }
            _ => None,
        })
        .collect();
    assert_eq!((kept, house.read("packages.md")), (vec!["packages.md".to_owned()], edited));
    assert!(house.read("deploy-rule.md").contains("#ops"), "the rest came back");
}

/// DREAM-5: a rehearsal changes nothing, and says what it would change.
#[tokio::test]
async fn a_rehearsal_changes_nothing() {
    let house = untidy().await;
    let all = tree(&house.at("home"), &|path| !path.ends_with("cairn"));
    let script = GOOD.replace("{{ memory }}", "{{ (messages|matches('/[^`]*rehearsals/[^`]*/memory'))[0] }}");
    let rehearsing = House::new(&script).await;
    let model = Anthropic::new(Config::new(rehearsing.simulator.url(), Auth::ApiKey("k".into()))).unwrap();
    let (over, net) = Dream { model: Arc::new(model), ..house.dream() }.rehearse().await.unwrap();
    assert_eq!((over.how, net.len()), (DreamOutcome::Completed, 4), "{over:?}");
    assert!(net.iter().any(|change| change.path == "deploy-rule.md" && change.after.is_none()));
    assert_eq!(tree(&house.at("home"), &|path| !path.ends_with("cairn")), all);
    let left = std::fs::read_dir(house.at("home/.claude/cairn/rehearsals")).unwrap().map(|entry| entry.unwrap().path());
    assert!(left.into_iter().all(|path| path.is_file()), "only the plan stays, and no copy");
}
