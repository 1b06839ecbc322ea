//! A year of somebody's work: sessions one after the other and two at once, left by `/clear`, by leaving or by a kill, with
//! private stretches, excluded files, a model that fails now and then and believes all it reads, dreams, and a user who
//! edits, deletes and corrects memories by hand.
//!
//! What is said are readings of gauges. What the memories have to say of each follows from what the user said and did, and
//! that is all the laws look at.

mod laws;
mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use engine::Agent;
use engine::agent::Parts;
use engine::run::{RunEnd, TurnEnd};
use files::faults::{MountedDisk, mount};
use learning::dream::run::Dream;
use learning::dream::{DreamSite, SourcePurpose};
use learning::extract;
use learning::knowledge::Knowledge;
use learning::ledger::{Ledger, Spender};
use memory::store::{IndexUpkeep, Store};
use parking_lot::Mutex;
use session::{Fork, Home, Session, World};
use settings::{Budget, Learning};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tools::permission::{Mode, Places, Rule, Rules};
use transcript::price::Prices;
use transcript::{Block, Id};

use crate::it::chance::{Chance, is_full, run_seeds, seeds};
use crate::it::disk::{Counted, StormDisk};
use crate::it::session::model::NAME;
use laws::Gauge;
use model::YearModel;

/// Sessions of a year.
const SESSIONS: usize = 300;
/// The same in the quick form.
const FEW_SESSIONS: usize = 40;
/// From one session to the next, in milliseconds: a little more than a day.
const DAY: i64 = 104_900_000;
/// 2027-01-04, in milliseconds.
const BEGINNING: i64 = 1_799_020_800_000;
/// A session has seldom more effects on the disk.
const EFFECTS: usize = 120;
/// Sessions in which nothing goes wrong, at the end of the year: each takes up eight that were left.
const CALM: usize = 60;

pub(crate) struct Year {
    chance: Chance,
    place: TempDir,
    disk: Arc<Mutex<StormDisk>>,
    model: YearModel,
    /// Processes so far: names and times of one are not those of another.
    process: i64,
    diary: Mutex<Diary>,
    is_excluding: bool,
    _mounted: MountedDisk,
}

/// Where the user types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Terminal {
    First,
    Second,
}

/// What the user said and did.
#[derive(Default)]
struct Diary {
    says: usize,
    gauges: BTreeMap<String, Gauge>,
    /// Sessions that can be gone on with.
    sessions: Vec<String>,
    /// Sessions whose last turn was not answered and had something in it that nothing is learnt from: what the user adds
    /// belongs to it.
    unanswered: BTreeSet<String>,
}

/// What the user says in a turn.
enum Words {
    /// Something of a gauge.
    Stated { gauge: String, value: String },
    /// Nothing that matters.
    Chat,
}

impl Year {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let shared = Path::new("/dev/shm");
        let place = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let place = tempfile::tempdir_in(place.canonicalize().unwrap()).unwrap();
        for folder in ["project", "project/vault", "memories", "config"] {
            std::fs::create_dir(place.path().join(folder)).unwrap();
        }
        let disk = Arc::new(Mutex::new(StormDisk::new(chance.fork(), Box::new(|_, _| None))));
        let model = YearModel::new(chance.fork(), disk.clone(), place.path().join("memories"));
        let _mounted = mount(place.path(), disk.clone());
        let is_excluding = !chance.one_in(3);
        Self { chance, place, disk, model, process: 0, diary: Mutex::default(), is_excluding, _mounted }
    }

    fn home(&self) -> Home {
        Home::at(self.place.path().join("config"))
    }

    fn project(&self) -> PathBuf {
        self.place.path().join("project")
    }

    fn memories(&self) -> PathBuf {
        self.place.path().join("memories")
    }

    fn tell(&self, what: &str) {
        self.model.mind().tell(what);
    }

    /// Now, in milliseconds.
    fn now(&self) -> i64 {
        BEGINNING + self.process * DAY
    }

    /// A clock that ticks a millisecond at every look, and names that count.
    fn world(&self) -> World {
        self.world_of(Terminal::First)
    }

    fn world_of(&self, terminal: Terminal) -> World {
        let later = if terminal == Terminal::Second { 500_000 } else { 0 };
        let (ticks, names) = (AtomicI64::new(self.now() + later), AtomicI64::new(self.process * 1_000_000 + later));
        World::new(
            move || jiff::Timestamp::from_millisecond(ticks.fetch_add(1, Ordering::Relaxed)).unwrap(),
            move |_| {
                let name = names.fetch_add(1, Ordering::Relaxed);
                Id::from(format!("{name:08x}-0000-4000-8000-{name:012x}"))
            },
        )
    }

    fn excluded(&self) -> Rules {
        let (settings, directory) = (self.project(), self.project());
        let places = Places { settings, directory, home: None, file: None };
        let deny = self.is_excluding.then(|| Rule::parse("Read(vault/**)", &places).unwrap());
        Rules { deny: deny.into_iter().collect(), ..Rules::default() }
    }

    fn ledger(&self, session: &str, world: World) -> Arc<Ledger> {
        let spender = Spender { project: self.project(), session: session.to_owned() };
        let budget = Budget { usd: 1_000.0, ..Budget::default() };
        Arc::new(Ledger::at(&self.place.path().join("config"), spender, Prices::default(), budget, world))
    }

    /// An agent on a session: a new one, or one that is gone on with.
    async fn open(&self, session: Session, every: u32) -> Result<Agent, session::Error> {
        let mut parts = Parts::new(Arc::new(self.model.clone()), NAME);
        parts.consent.policy.mode = Mode::BypassPermissions.into();
        parts.contacts.label_interval = None;
        parts.out.ledger = self.ledger(session.id(), session.world().clone());
        let agent = Agent::new(session, parts)?;
        let sources = memory::instructions::InstructionSources {
            config_home: self.place.path().join("config"),
            working_directory: self.project(),
            ..Default::default()
        };
        let knowledge = Knowledge::new(sources, Some(&self.memories()), None, agent.session());
        knowledge.ready().await;
        let learning = Learning { share: None, every, excluded: self.excluded(), ..Learning::new(self.home()) };
        Ok(agent.with_knowledge(knowledge).with_learning(learning))
    }

    fn session(&self, chance: &mut Chance, world: World) -> Result<Session, session::Error> {
        let sessions = self.diary.lock().sessions.clone();
        if !sessions.is_empty() && chance.one_in(8) {
            let id = chance.one_of(&sessions).clone();
            if let Ok((session, _)) = Session::resume(&self.home(), &self.project(), &id, Fork::No, world.clone()) {
                return Ok(session);
            }
        }
        Session::create(&self.home(), &self.project(), None, world)
    }

    /// What the user says next.
    fn words(&self, chance: &mut Chance) -> Words {
        let diary = self.diary.lock();
        let known: Vec<String> = diary.gauges.keys().cloned().collect();
        let gauge = match chance.below(10) {
            0..5 => format!("gauge{}", known.len()),
            5..8 if !known.is_empty() => chance.one_of(&known).clone(),
            _ => return Words::Chat,
        };
        let value = match diary.gauges.get(&gauge).and_then(Gauge::newest) {
            Some(value) if chance.one_in(3) => value, // said once more
            _ => format!("value{}", diary.says),
        };
        Words::Stated { gauge, value }
    }

    /// One session, as far as it comes. `private` words and excluded files are told to the model's mind before.
    async fn converse(&self, terminal: Terminal, mut chance: Chance) {
        let chance = &mut chance;
        let Ok(session) = self.session(chance, self.world_of(terminal)) else { return };
        let id = session.id().to_owned();
        self.tell(&format!("session {id}"));
        self.diary.lock().sessions.push(id);
        let every = 1 + chance.below(3) as u32;
        let Ok(mut agent) = self.open(session, every).await else { return };
        let mut private = extract::private(agent.session());
        for _ in 0..=chance.below(3) {
            if chance.one_in(6) {
                private = !private;
                if extract::set_private(agent.session_mut(), private).is_err() {
                    return;
                }
            }
            self.turn(&mut agent, private, chance).await;
        }
        match chance.below(3) {
            0 => drop(agent.finish_learning(&CancellationToken::new()).await),
            1 => tokio::time::sleep(Duration::from_millis(chance.below(3_000) as u64)).await,
            _ => {} // as /clear does
        }
        agent.close().await;
    }

    async fn turn(&self, agent: &mut Agent, private: bool, chance: &mut Chance) {
        let says = {
            let mut diary = self.diary.lock();
            diary.says += 1;
            diary.says
        };
        let number = format!("say-{says}.");
        let at = agent.session().world().now().as_millisecond();
        let apart = |word: &str, mark: &str| self.model.mind().apart.insert(word.to_owned(), mark.to_owned());
        let (said, stated) = if private {
            let secret = format!("secret{says}");
            let gauge = format!("gauge{}", chance.below(self.diary.lock().gauges.len() + 1));
            apart(&secret, &number);
            (format!("{number} Between us: {gauge} shows {secret} now."), None)
        } else if self.is_excluding && chance.one_in(8) {
            let cargo = format!("cargo{says}");
            let text = format!("the hold of this ship has {cargo} in it\n");
            std::fs::write(self.project().join(format!("vault/{says}.txt")), text).unwrap();
            apart(&cargo, "vault/");
            (format!("{number} Look at vault/{says}.txt please, we need it."), None)
        } else {
            match self.words(chance) {
                Words::Chat => (format!("{number} We go on as before."), None),
                Words::Stated { gauge, value } => {
                    let how = if chance.one_in(6) { "Remember" } else { "Keep in mind" };
                    let said = format!("{number} {how}: {gauge} shows {value} now.");
                    (said, Some((gauge, value)))
                }
            }
        };
        self.tell(&said);
        let session = agent.session().id().to_owned();
        if let Some((gauge, value)) = &stated {
            self.diary.lock().gauges.entry(gauge.clone()).or_default().said(value, at, &session);
        }
        let is_apart = private || said.contains("vault");
        let belongs_to_it = self.diary.lock().unanswered.contains(&session);
        if is_apart {
            self.diary.lock().unanswered.insert(session.clone());
        }
        let turn = agent.turn(vec![Block::text(said)], &CancellationToken::new()).await;
        self.tell(&format!("it ends: {:?}", turn.end));
        if !matches!(turn.end, TurnEnd::Ended(RunEnd::Answered)) {
            return;
        }
        self.diary.lock().unanswered.remove(&session);
        if let Some((gauge, value)) = stated.as_ref().filter(|_| !belongs_to_it) {
            self.diary.lock().gauges.entry(gauge.clone()).or_default().answered(value);
        }
    }

    /// One session, or one in each of two terminals, of which the second may be gone at any moment.
    async fn both(&self, mut chance: Chance) {
        let first = self.converse(Terminal::First, chance.fork());
        if !chance.one_in(3) {
            return first.await;
        }
        self.tell("two terminals");
        let moment = if chance.one_in(2) { Duration::from_millis(chance.below(2_000) as u64) } else { Duration::MAX };
        let second = tokio::time::timeout(moment, self.converse(Terminal::Second, chance.fork()));
        let _ = tokio::join!(first, second);
    }

    /// What is done in a day, until all of it may be killed.
    fn work(&mut self) {
        self.process += 1;
        let runtime = runtime();
        let mut chance = self.chance.fork();
        let died = self.disk.lock().died(if chance.one_in(4) { Counted::Elsewhere } else { Counted::There });
        let kill = if self.model.mind().is_calm { 9 } else { self.chance.below(6) };
        let moment = Duration::from_millis(self.chance.below(4_000) as u64);
        if kill == 0 {
            self.disk.lock().kill_after(self.chance.below(EFFECTS));
        }
        let disk = self.disk.clone();
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = died.notified() => {}
                () = tokio::time::sleep(moment), if kill == 1 => disk.lock().kill(),
                () = self.both(chance) => {}
            }
        });
        drop(runtime);
        if self.disk.lock().is_dead() {
            self.tell("killed");
        }
        self.disk.lock().revive();
    }

    /// The user goes over the memories by hand, or with a command; now and then there is a dream.
    fn by_hand(&mut self) {
        self.process += 1;
        let all: Vec<String> = self.diary.lock().gauges.keys().cloned().collect();
        let here: Vec<String> = all.into_iter().filter(|gauge| self.file(gauge).exists()).collect();
        if here.is_empty() {
            return;
        }
        let gauge = self.chance.one_of(&here).clone();
        let (file, at) = (self.file(&gauge), self.now());
        match self.chance.below(12) {
            0 => {
                let value = format!("hand{}", self.process);
                self.tell(&format!("by hand: {gauge} shows {value}"));
                let text = std::fs::read_to_string(&file).unwrap();
                let head = text.rfind("---\n").map_or("", |end| &text[..end + 4]);
                std::fs::write(&file, format!("{head}\n{gauge} shows {value}.\n")).unwrap();
                let stamp = SystemTime::UNIX_EPOCH + Duration::from_millis(at.unsigned_abs());
                std::fs::File::options().write(true).open(&file).unwrap().set_modified(stamp).unwrap();
                self.diary.lock().gauges.get_mut(&gauge).unwrap().edited(&value, at);
            }
            1 => {
                self.tell(&format!("removed by hand: {gauge}"));
                std::fs::remove_file(&file).unwrap();
                self.diary.lock().gauges.get_mut(&gauge).unwrap().removed(at);
            }
            2 => {
                self.tell(&format!("forgotten: {gauge}"));
                let text = std::fs::read_to_string(&file).unwrap();
                let changes = self.home().changes(&self.memories());
                let removed = jiff::Timestamp::from_millisecond(at).unwrap().to_string();
                Store::open(self.memories(), IndexUpkeep::Kept).unwrap().remove(&format!("{gauge}.md")).unwrap();
                changes.tombstones().plant(&format!("{gauge}.md"), &text, Some(removed)).unwrap();
                self.diary.lock().gauges.get_mut(&gauge).unwrap().removed(at);
            }
            3 => self.dream(),
            _ => {}
        }
    }

    fn dream(&mut self) {
        self.tell("a dream");
        let world = self.world();
        let site = DreamSite {
            home: self.home(),
            memory: self.memories(),
            project: self.project(),
            session: None,
            world: world.clone(),
        };
        let dream = Dream {
            site,
            indexing: IndexUpkeep::Kept,
            model: Arc::new(self.model.clone()),
            name: NAME.to_owned(),
            window: 200_000,
            scope: tools::Scope::new(self.project(), self.place.path().join("temporary")),
            rules: Rules::default(),
            excluded: self.excluded(),
            purpose: SourcePurpose::Learn,
            ledger: self.ledger("dream", world),
            listener: Arc::new(|_| {}),
            cancel: CancellationToken::new(),
        };
        let over = runtime().block_on(dream.run());
        self.tell(&format!("{over:?}"));
    }

    fn file(&self, gauge: &str) -> PathBuf {
        self.memories().join(format!("{gauge}.md"))
    }

    /// Nothing goes wrong any more, and what was left is learnt.
    fn calm(&mut self) {
        self.model.mind().is_calm = true;
        self.disk.lock().is_calm = true;
        self.tell("it becomes calm");
        let queue = self.home().learning(&self.memories());
        for _ in 0..CALM {
            self.process += 1;
            self.greet();
            if std::fs::read_dir(&queue).into_iter().flatten().count() == 0 {
                break;
            }
        }
        laws::hold(self);
    }

    fn greet(&self) {
        runtime().block_on(async {
            let session = Session::create(&self.home(), &self.project(), None, self.world()).unwrap();
            let mut agent = self.open(session, 1).await.unwrap();
            agent.turn(vec![Block::text("say-0. We say hello again.")], &CancellationToken::new()).await;
            agent.finish_learning(&CancellationToken::new()).await.unwrap();
            agent.close().await;
        });
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).max_blocking_threads(1).build().unwrap()
}

fn live(seed: u64) -> Vec<String> {
    let mut year = Year::new(seed);
    for _ in 0..if is_full() { SESSIONS } else { FEW_SESSIONS } {
        year.work();
        year.by_hand();
    }
    year.calm();
    let mind = year.model.mind();
    mind.broken.clone()
}

/// EXTRACT-5, EXTRACT-6, EXTRACT-8, TOMB-1, DREAM-3: a year of sessions with kills, private stretches, excluded files, a model
/// that fails, and a user who changes memories by hand: everything said is learnt once, nothing private or excluded is
/// learnt from, no correction is lost to what it corrects, and nothing that was removed comes back.
#[test]
fn a_year_of_learning_keeps_the_laws() {
    run_seeds(&seeds(6, 30, &[26, 34]), live);
}
