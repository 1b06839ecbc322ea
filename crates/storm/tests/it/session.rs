//! A session in a storm: a conversation that sends agents out, agents that write to one another, and memories that are learnt,
//! in a process that is killed before any effect on its disk or at any moment, and goes on.
//!
//! A process is a runtime of its own whose clock stands still while anything works, so that what happens next follows from
//! the seed. After the last kill it becomes calm, everything is heard, and the laws are looked at in the files.

mod laws;
pub(crate) mod model;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use engine::Agent;
use engine::agent::Parts;
use engine::agents::{Subagents, SubagentsAtEnd};
use engine::hooks::{CallbackReply, ExitReason, HookCallbacks, registered_hooks};
use engine::run::RunEnd;
use engine::run::TurnEnd;
use engine::send_message::SendMessage;
use files::faults::{MountedDisk, mount};
use futures_util::future::BoxFuture;
use learning::knowledge::Knowledge;
use learning::ledger::{Ledger, Spender};
use mail::{Mail, Messenger};
use parking_lot::Mutex;
use serde_json::{Value, json};
use session::{Fork, Home, Session, World};
use settings::agent_definitions::{DefinitionSources, Registry};
use settings::{Budget, Learning};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use transcript::price::Prices;
use transcript::{Block, Id};

use crate::it::chance::{Chance, run_seeds, seeds};
use crate::it::disk::{Counted, StormDisk};
use model::StormModel;

const SESSION: &str = "00000000-0000-4000-8000-000000000001";
/// Processes that may be killed, before the calm one.
const LIVES: usize = 4;
/// A life has seldom more effects on the disk.
const EFFECTS: usize = 150;
/// Names of one life are not those of another.
const NAMES_OF_A_LIFE: i64 = 1_000_000;
/// Longer than anything takes in a calm world.
const CALM: usize = 400;

struct SessionWorld {
    chance: Chance,
    place: TempDir,
    disk: Arc<Mutex<StormDisk>>,
    model: StormModel,
    at_end: SubagentsAtEnd,
    life: i64,
    /// What was not synced may be gone, or the disk was full: what is only noted may be missing.
    is_forgetful: bool,
    _mounted: MountedDisk,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Killed,
    InOrder,
}

/// A program that takes a while whenever the conversation is about to end.
struct SlowStop(Mutex<Chance>);

impl HookCallbacks for SlowStop {
    fn call_back(&self, _: &str, _: &Value, _: Option<&str>) -> BoxFuture<'_, CallbackReply> {
        let while_ = Duration::from_millis(self.0.lock().below(2_000) as u64);
        Box::pin(async move {
            tokio::time::sleep(while_).await;
            CallbackReply::Answered(json!({}))
        })
    }
}

impl SessionWorld {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let shared = Path::new("/dev/shm");
        let place = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let place = tempfile::tempdir_in(place.canonicalize().unwrap()).unwrap();
        for folder in ["project", "memories", "config"] {
            std::fs::create_dir(place.path().join(folder)).unwrap();
        }
        let disk = Arc::new(Mutex::new(StormDisk::new(chance.fork(), Box::new(|_, _| None))));
        let model = StormModel::new(chance.fork(), disk.clone());
        let _mounted = mount(place.path(), disk.clone());
        let at_end = if chance.one_in(2) { SubagentsAtEnd::WaitsForThem } else { SubagentsAtEnd::LeavesThem };
        Self { chance, place, disk, model, at_end, life: 0, is_forgetful: false, _mounted }
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
        self.model.minutes().tell(what);
    }

    /// A clock that ticks a millisecond at every look, and names that count.
    fn world(&self) -> World {
        let (ticks, names) = (AtomicI64::new(0), AtomicI64::new(self.life * NAMES_OF_A_LIFE));
        let began = 1_800_000_000_000 + self.life * NAMES_OF_A_LIFE;
        World::new(
            move || jiff::Timestamp::from_millisecond(began + ticks.fetch_add(1, Ordering::Relaxed)).unwrap(),
            move |_| Id::from(format!("id{:010}", names.fetch_add(1, Ordering::Relaxed))),
        )
    }

    /// The agent of this process: of the session, if there is one already.
    async fn open(&self, chance: &mut Chance) -> Result<Agent, session::Error> {
        let (home, project, world) = (self.home(), self.project(), self.world());
        let session = match home.find(&project, SESSION) {
            Ok(found) => match Session::resume(&home, &project, SESSION, Fork::No, world.clone()) {
                // Its first line was torn: there is nothing to go on with.
                Err(session::Error::NotASession { .. }) if self.model.minutes().heard.is_empty() => {
                    std::fs::remove_file(&found.path).unwrap();
                    Session::create(&home, &project, Some(SESSION), world.clone())?
                }
                resumed => resumed?.0,
            },
            Err(_) => Session::create(&home, &project, Some(SESSION), world.clone())?,
        };
        let mut parts = Parts::new(Arc::new(self.model.clone()), model::NAME);
        parts.consent.policy.mode = Mode::BypassPermissions.into();
        parts.contacts.label_interval = None;
        let definitions = json!({"worker": {"description": "works", "prompt": "Work."}});
        let flag = definitions.as_object().cloned();
        let registry = Registry::load(&DefinitionSources { flag, ..DefinitionSources::default() });
        parts.contacts.agents = Some(Subagents::new(Arc::new(registry), self.at_end));
        let post = Messenger::new(world.clone(), Mail::default(), None);
        parts.contacts.post = Some(post.clone());
        parts.work.tools.push(Arc::new(SendMessage { post: post.clone(), teammates: None }));
        let spender = Spender { project, session: SESSION.to_owned() };
        let budget = Budget { usd: 1_000.0, ..Budget::default() };
        let config = self.place.path().join("config");
        parts.out.ledger = Arc::new(Ledger::at(&config, spender, Prices::default(), budget, world));
        if chance.one_in(2) {
            let asked = json!({"Stop": [{"hookCallbackIds": ["slow"]}]});
            let hooks = registered_hooks(asked.as_object().unwrap()).0;
            parts.consent.hooks = parts.consent.hooks.driven(hooks, Arc::new(SlowStop(Mutex::new(chance.fork()))));
        }
        let agent = Agent::new(session, parts)?.with_mail(post.mail().clone());
        let sources = memory::instructions::InstructionSources {
            config_home: self.place.path().join("config"),
            working_directory: self.project(),
            ..Default::default()
        };
        let knowledge = Knowledge::new(sources, Some(&self.memories()), None, agent.session());
        knowledge.ready().await;
        let learning = Learning { share: None, ..Learning::new(self.home()) };
        Ok(agent.with_knowledge(knowledge).with_learning(learning))
    }

    /// One process, from its beginning to its end.
    fn live(&mut self) -> Death {
        self.life += 1;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .max_blocking_threads(1)
            .build()
            .unwrap();
        // What a process draws after it was killed changes nothing for the next.
        let mut chance = self.chance.fork();
        let counted = if chance.one_in(4) { Counted::Elsewhere } else { Counted::There };
        let died = self.disk.lock().died(counted);
        let moment = Duration::from_millis(self.chance.below(12_000) as u64);
        let kill = self.chance.below(4);
        self.tell(&format!("life {}, kill {kill}", self.life));
        match kill {
            0 | 1 => self.disk.lock().kill_after(self.chance.below(EFFECTS)),
            2 if self.chance.one_in(3) => {
                self.is_forgetful = true;
                self.disk.lock().fill_after(self.chance.below(EFFECTS));
            }
            _ => {}
        }
        let disk = self.disk.clone();
        let death = runtime.block_on(async {
            tokio::select! {
                biased;
                () = died.notified() => Death::Killed,
                () = tokio::time::sleep(moment), if kill == 2 => {
                    disk.lock().kill();
                    Death::Killed
                }
                () = self.work(&mut chance) => Death::InOrder,
            }
        });
        drop(runtime);
        let is_killed = death == Death::Killed || self.disk.lock().is_dead();
        if is_killed {
            self.model.minutes().killed();
            if self.chance.one_in(2) {
                self.is_forgetful = true;
                self.disk.lock().cut_power();
                self.tell("the power is cut");
            }
        } else {
            self.model.minutes().ended();
        }
        let mut disk = self.disk.lock();
        disk.revive();
        disk.is_full = false;
        drop(disk);
        self.tell(&format!("{death:?}"));
        death
    }

    /// What the user does in one process.
    async fn work(&mut self, chance: &mut Chance) {
        let mut agent = match self.open(chance).await {
            Ok(agent) => agent,
            Err(error) => return self.tell(&format!("it cannot be opened: {error}")),
        };
        for _ in 0..=chance.below(3) {
            let said = format!("say-{}. We deploy on Mondays, keep that in mind.", self.model.minutes().number());
            let cancel = CancellationToken::new();
            let stops = chance.one_in(4).then(|| Duration::from_millis(chance.below(3_000) as u64));
            let turn = agent.turn(vec![Block::text(said)], &cancel);
            let stop = async {
                match stops {
                    Some(after) => tokio::time::sleep(after).await,
                    None => std::future::pending().await,
                }
                cancel.cancel();
                std::future::pending::<()>().await;
            };
            let turn = tokio::select! {
                turn = turn => turn,
                () = stop => continue,
            };
            self.tell(&format!("a turn ends: {:?}", turn.end));
            let is_unheard = agent.agents().is_some_and(|children| children.in_background() > 0 || children.has_news());
            if self.at_end == SubagentsAtEnd::WaitsForThem
                && is_unheard
                && matches!(turn.end, TurnEnd::Ended(RunEnd::Answered))
            {
                self.model.minutes().broken.push("a turn ended before all agents were heard".to_owned());
            }
        }
        tokio::time::sleep(Duration::from_millis(chance.below(3_000) as u64)).await;
        self.tell("it hears");
        self.hear(&mut agent, 1).await;
        if chance.one_in(2) {
            self.tell("it learns");
            let _ = agent.finish_learning(&CancellationToken::new()).await;
        }
        self.tell("it leaves");
        agent.leave(ExitReason::Other).await;
    }

    /// Turns for what others have to say, as a screen begins them.
    async fn hear(&mut self, agent: &mut Agent, most: usize) {
        for _ in 0..most {
            let is_out = agent.agents().is_some_and(|children| children.in_background() > 0);
            let turn = agent.turn(Vec::new(), &CancellationToken::new()).await;
            if turn.rounds == 0 && !is_out {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Nothing goes wrong any more, and everything is heard.
    fn calm(&mut self) {
        self.life += 1;
        self.disk.lock().is_calm = true;
        self.model.minutes().is_calm = true;
        self.tell("it becomes calm");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let mut chance = self.chance.fork();
        runtime.block_on(async {
            let mut agent = match self.open(&mut chance).await {
                Ok(agent) => agent,
                Err(error) => return self.model.minutes().broken.push(format!("it cannot be opened: {error}")),
            };
            let said = format!("say-{}. Is all done?", self.model.minutes().number());
            let turn = agent.turn(vec![Block::text(said)], &CancellationToken::new()).await;
            self.tell(&format!("the last turn ends: {:?}", turn.end));
            self.hear(&mut agent, CALM).await;
            let _ = agent.finish_learning(&CancellationToken::new()).await;
            self.model.minutes().ended();
            let told = session::stats::Stats::of(agent.session().log(), &Prices::default());
            laws::costs(self, told.cost_usd);
            agent.leave(ExitReason::Other).await;
        });
        drop(runtime);
        laws::files(self);
    }
}

fn live(seed: u64) -> Vec<String> {
    let mut world = SessionWorld::new(seed);
    for _ in 0..LIVES {
        world.live();
    }
    world.calm();
    let minutes = world.model.minutes();
    minutes.broken.clone()
}

/// LOG-7, AGENT-2, MSG-1, EXTRACT-1, BUDGET-1: with kills before any effect on the disk and at any moment, power cuts, full
/// disks, replies that break off and users who interrupt: nothing acknowledged is lost, every call and every agent is answered
/// once, and what was billed is told.
#[test]
fn a_session_in_a_storm_keeps_the_laws() {
    run_seeds(&seeds(100, 5_000, &[]), live);
}
