//! A month of work: what it costs to know, and what is then known.
//!
//! A user has forty sessions in thirty days, on a clock that is moved. Over them sixty things are said that are worth
//! knowing: facts, preferences, and corrections of what was said before (`month.txt`). A scripted model works, learns after
//! its turns, chooses memories, and dreams when it is time, each as the program asks it to; it decides well, since what is
//! measured is what surrounds it. Of three corrections it makes two in the memory they correct, as it is told to, and one as a
//! memory of its own, which is left for a dream to clear up. Afterwards all sixty are asked for in other words, with the
//! ranker alone. The questions were written once, with what is said, and not changed after they were first asked. What the
//! scripted model writes (`month_written.txt`) was written by a real one, from what is said and the rules for a memory that
//! the program gives; it was not shown the questions. Beside it stands what a line for each would bring, and below it how much
//! of what is saved from recorded answers should not have been ([`crate::answers`]).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use engine::Agent;
use engine::agent::Parts;
use engine::provider::anthropic::{Anthropic, Auth, Config};
use engine::run::TurnEnd;
use engine::tools::Scope;
use jiff::Timestamp;
use learning::dream::DreamSite;
use learning::dream::session_dreams::SessionDreams;
use learning::dream::run::Dream;
use learning::knowledge::{Knowledge, Selector};
use learning::ledger::{self, Ledger, Spender};
use memory::instructions::InstructionSources;
use memory::rank::{WorkAtHand, RankQuestion};
use memory::store::IndexUpkeep;
use memory::{Memory, Ranker, index, scan};
use session::{Home, Session, World};
use settings::{Budget, Learning, Rhythm};
use simulator::{Options, Script, Simulator};
use transcript::Id;
use transcript::price::Prices;

use crate::table::{Row, Unit};

/// The models, for their prices.
const MODEL: &str = "claude-sonnet-5";
const SMALL: &str = "claude-haiku-4-5";
const SESSIONS: usize = 40;
const TURNS: usize = 6;
/// A turn reads so many files, one a round.
const ROUNDS: usize = 8;
const FILE_BYTES: usize = 6_000;
/// 2026-11-01, 09:00.
const BEGIN: i64 = 1_793_523_600;
const DAY: i64 = 86_400;
/// What work in the background may cost beside the foreground.
const SHARE: f64 = 0.08;
/// What the program asks for that writes down what was learnt.
const TASK: &str = "Beside the conversation, write down";

/// Something that is said once.
struct Item {
    kind: String,
    file: String,
    about: String,
    said: String,
    question: String,
    replaces: Option<String>,
    /// The memory, as a model wrote it.
    written: String,
}

fn items() -> Result<Vec<Item>> {
    let written: BTreeMap<&str, &str> =
        include_str!("month_written.txt").split("=== ").filter_map(|block| block.split_once('\n')).collect();
    let lines = include_str!("month.txt").lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let item = |line: &str| {
        let mut cells = line.split('|').map(|cell| cell.trim().to_owned());
        let mut next = || cells.next().with_context(|| format!("too few cells: {line}"));
        let (kind, file, about, said, question) = (next()?, next()?, next()?, next()?, next()?);
        let replaces = next()?;
        let written = written.get(file.as_str()).with_context(|| format!("nobody wrote {file}"))?;
        let (written, replaces) = (format!("{}\n", written.trim()), (!replaces.is_empty()).then_some(replaces));
        Ok(Item { kind, file, about, said, question, replaces, written })
    };
    lines.map(item).collect()
}

/// Plays the month, and asks.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    std::fs::create_dir_all(place)?;
    let root = std::fs::canonicalize(place)?.join("month");
    let _ = std::fs::remove_dir_all(&root);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let month = Month::new(root)?;
    let (soon, pollution) = runtime.block_on(async {
        let mut soon = 0;
        for session in 0..SESSIONS {
            eprintln!("  session {} …", session + 1);
            soon += month.session(session, TURNS).await?;
        }
        // One more begins: it learns what the last one left.
        month.session(SESSIONS, 1).await?;
        anyhow::Ok((soon, crate::answers::rows().await?))
    })?;
    let mut rows = month.rows(soon)?;
    rows.extend(pollution);
    Ok(rows)
}

struct Month {
    items: Vec<Item>,
    project: PathBuf,
    home: Home,
    memory: PathBuf,
    /// The clock, in seconds.
    clock: Arc<AtomicI64>,
    names: Arc<AtomicI64>,
}

impl Month {
    fn new(root: PathBuf) -> Result<Self> {
        let (project, home) = (root.join("project"), Home::at(root.join("config")));
        std::fs::create_dir_all(&project)?;
        for (turn, round) in (1..=TURNS).flat_map(|turn| (1..=ROUNDS).map(move |round| (turn, round))) {
            let mut text = format!("MARK {turn}-{round} \n");
            while text.len() < FILE_BYTES {
                let _ =
                    writeln!(text, "the reader of module {turn} takes line {} and finds nothing of note", text.len());
            }
            std::fs::write(project.join(format!("part-{turn}-{round}.txt")), text)?;
        }
        let memory = home.project(&project).join("memory");
        std::fs::create_dir_all(&memory)?;
        let (clock, names) = (Arc::new(AtomicI64::new(BEGIN)), Arc::default());
        Ok(Self { items: items()?, project, home, memory, clock, names })
    }

    fn world(&self) -> World {
        let (clock, names) = (self.clock.clone(), self.names.clone());
        World::new(
            move || Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap_or_default(),
            move |_| Id::from(format!("id-{}", names.fetch_add(1, Ordering::Relaxed))),
        )
    }

    fn ledger(&self, session: &str) -> Ledger {
        let spender = Spender { project: self.project.clone(), session: session.to_owned() };
        let budget = Budget { usd: f64::MAX, ..Budget::default() };
        Ledger::at(self.home.path(), spender, Prices::default(), budget, self.world())
    }

    /// One session: its turns, what is learnt beside them, and a dream, if it is time. Who leaves does not wait for what is left to
    /// learn. Says how many things were learnt in the session they were said in.
    async fn session(&self, number: usize, turns: usize) -> Result<usize> {
        self.clock.store(BEGIN + DAY * 30 * number as i64 / SESSIONS as i64, Ordering::Relaxed);
        let said = self.said_in_session(number);
        let simulator = Simulator::start(Script::parse(&self.script(number))?, Options::default()).await?;
        let client = Arc::new(Anthropic::new(Config::new(simulator.url(), Auth::ApiKey("bench".into())))?);
        let session = Session::create(&self.home, &self.project, None, self.world())?;
        let (id, file) = (session.id().to_owned(), session.path().to_owned());
        let ledger = Arc::new(self.ledger(&id));
        let selector = Selector { model: client.clone(), name: SMALL.to_owned(), ledger: ledger.clone() };
        let sources = InstructionSources {
            config_home: self.home.path().to_owned(),
            working_directory: self.project.clone(),
            indexes: vec![self.memory.join(index::FILE)],
            ..InstructionSources::default()
        };
        let knowledge = Knowledge::new(sources, Some(&self.memory), Some(selector), &session);
        let knowledge = knowledge.with_user_memories(&self.places()[1]);
        knowledge.ready().await;
        let mut parts = Parts::new(client.clone(), MODEL);
        parts.out.ledger = ledger.clone();
        parts.talk.layers.price = Prices::default().of(MODEL);
        let dream = Dream {
            site: DreamSite {
                home: self.home.clone(),
                memory: self.memory.clone(),
                project: self.project.clone(),
                session: Some(id),
                world: self.world(),
            },
            indexing: IndexUpkeep::Kept,
            model: client,
            name: SMALL.to_owned(),
            window: 200_000,
            purpose: Default::default(),
            scope: Scope::new(&self.project, self.project.join("tmp")),
            rules: Default::default(),
            excluded: Default::default(),
            ledger,
            listener: Arc::new(|_| {}),
            cancel: Default::default(),
        };
        let agent = Agent::new(session, parts)?.with_knowledge(knowledge);
        let mut agent =
            agent.with_learning(Learning::new(self.home.clone())).with_dreams(SessionDreams::new(dream, Rhythm::default()));
        for turn in 1..=turns {
            let words = said_in(&said, turn).map_or("Go on with the next module, please.", |item| item.said.as_str());
            let ended = agent.say(&format!("T{turn}: {words}")).await.end;
            ensure!(matches!(ended, TurnEnd::Ended(_)), "session {number}: {ended:?}");
            self.clock.fetch_add(60, Ordering::Relaxed);
            // Who reads the answer gives it time.
            while agent.is_learning() {
                tokio::task::yield_now().await;
            }
            agent.take_in_learnt()?;
        }
        let soon = said.iter().filter(|item| self.has_learnt(item)).count();
        agent.finish_dreams(Duration::from_secs(60), &Default::default()).await?;
        agent.close().await;
        simulator.shutdown().await;
        self.date(&file)?;
        Ok(soon)
    }

    /// Whether what an item says stands in a memory.
    fn has_learnt(&self, item: &Item) -> bool {
        let text = item.written.trim().rsplit("\n\n").next().unwrap_or_default();
        let name = format!("{}.md", self.file_of(item));
        let files = self.places().map(|place| std::fs::read_to_string(place.join(&name)).unwrap_or_default());
        files.iter().any(|file| file.contains(text))
    }

    /// Files are dated by the moved clock, as they would be.
    fn date(&self, session: &Path) -> Result<()> {
        let seconds = self.clock.load(Ordering::Relaxed).unsigned_abs();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let horizon = SystemTime::UNIX_EPOCH + Duration::from_secs((BEGIN - DAY).unsigned_abs());
        let entries = self.places().into_iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten();
        let written = entries.flatten().map(|entry| entry.path()).filter(|path| {
            let modified = path.metadata().and_then(|metadata| metadata.modified());
            path.extension().is_some_and(|extension| extension == "md")
                && modified.is_ok_and(|modified| !(horizon..=at).contains(&modified) || modified > at)
        });
        for path in written.chain([session.to_owned()]) {
            std::fs::File::options().append(true).open(path)?.set_modified(at)?;
        }
        Ok(())
    }

    fn said_in_session(&self, number: usize) -> Vec<&Item> {
        let items = self.items.iter().enumerate();
        items.filter(|(at, _)| at * SESSIONS / self.items.len() == number).map(|(_, item)| item).collect()
    }

    /// What the model does in a session. It learns from that and from what earlier ones left.
    fn script(&self, number: usize) -> String {
        let mut script = String::new();
        let _ = writeln!(
            script,
            "[[rule]]\nwhen = {{ system = 'You choose which saved memories' }}\njson = {{ selected_memories = [] }}"
        );
        self.dream_rules(&mut script);
        for session in (0..=number).rev() {
            self.learning_rules(&self.said_in_session(session), &mut script);
        }
        let _ = writeln!(script, "[[rule]]\nwhen = {{ visible = '{TASK}' }}\nsay = 'Nothing to save.'");
        for turn in 1..=TURNS {
            let (here, next) = (format!("T{turn}:"), format!("T{}:", turn + 1));
            for round in 1..=ROUNDS {
                let path = self.project.join(format!("part-{turn}-{round}.txt")).display().to_string();
                let _ = writeln!(
                    script,
                    "[[rule]]\nwhen = {{ visible = '{here}', missing = ['{next}', 'MARK {turn}-{round} '] }}\n\
                     say = 'I read on.'\ncall = [{{ tool = 'Read', input = {{ file_path = {} }} }}]",
                    quoted(&path)
                );
            }
            let _ = writeln!(
                script,
                "[[rule]]\nwhen = {{ visible = '{here}', missing = '{next}' }}\nsay = 'Module {turn} is done.'\nsay_bytes = 900"
            );
        }
        script
    }

    /// What is written down of what is new in a request: all of it in one round, after what it corrects was read.
    fn learning_rules(&self, said: &[&Item], script: &mut String) {
        let turns: Vec<(usize, &Item)> = (1..=TURNS).filter_map(|turn| Some((turn, said_in(said, turn)?))).collect();
        // Those that are new together come first.
        for count in (1..=turns.len()).rev() {
            for some in turns.windows(count) {
                for is_fork in [true, false] {
                    self.learning_rule(some, is_fork, script);
                }
            }
        }
    }

    fn learning_rule(&self, some: &[(usize, &Item)], is_fork: bool, script: &mut String) {
        // What is about the user has been put with what holds in every project.
        let path = |item: &Item| {
            let name = format!("{}.md", self.file_of(item));
            let place = self.places().into_iter().rev().find(|place| place.join(&name).exists());
            place.unwrap_or_else(|| self.memory.clone()).join(name).display().to_string()
        };
        let mut visible = vec![format!("'{TASK}'")];
        let (mut written, mut read) = (Vec::new(), Vec::new());
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for (turn, item) in some {
            let said = item.said.replace(|c: char| !c.is_ascii_alphanumeric(), ".");
            match is_fork {
                true => visible.extend([format!("'that begins .T[1-{turn}]:'"), format!("'T{turn}: {said}'")]),
                false => visible.push(format!("'(?s)<new>.*T{turn}: {said}'")),
            }
            let path = path(item);
            written.push(format!("'(Saved|Not saved)[^ ]* [^ ]*{}.md'", self.file_of(item)));
            let content = quoted(&item.written);
            writes.push(format!("{{ tool = 'Write', input = {{ file_path = '{path}', content = {content} }} }}"));
            if self.file_of(item) != item.file {
                read.push(format!("'Read \\{{\"file_path\":\"{path}\"'"));
                reads.push(format!("{{ tool = 'Read', input = {{ file_path = '{path}' }} }}"));
            }
        }
        let visible = visible.join(", ");
        if !reads.is_empty() {
            let (missing, reads) = ([written.clone(), read].concat().join(", "), reads.join(", "));
            let _ = writeln!(
                script,
                "[[rule]]\nwhen = {{ visible = [{visible}], missing = [{missing}] }}\ncall = [{reads}]"
            );
        }
        let (missing, writes) = (written.join(", "), writes.join(", "));
        let _ =
            writeln!(script, "[[rule]]\nwhen = {{ visible = [{visible}], missing = [{missing}] }}\ncall = [{writes}]");
    }

    /// The memory an item is written into: its own, or, of two corrections in three, the one it corrects.
    fn file_of<'i>(&self, item: &'i Item) -> &'i str {
        let corrections = self.items.iter().filter(|one| one.replaces.is_some());
        match (corrections.map(|one| &one.file).position(|file| *file == item.file), &item.replaces) {
            (Some(at), Some(old)) if at % 3 != 2 => old,
            _ => &item.file,
        }
    }

    /// Where memories lie: the project's, and those of the user that hold in every project.
    fn places(&self) -> [PathBuf; 2] {
        [self.memory.clone(), memory::place::user_directory(self.home.path())]
    }

    /// A dream that removes what was corrected, as far as it is there.
    fn dream_rules(&self, script: &mut String) {
        let dreams = "system = 'look after the memories'";
        let is_there = |file: &str| self.memory.join(format!("{file}.md")).exists();
        let gone = self.items.iter().filter(|item| is_there(&item.file)).filter_map(|item| item.replaces.as_ref());
        let calls: Vec<String> = gone
            .filter(|old| is_there(old))
            .map(|old| {
                let path = self.memory.join(format!("{old}.md")).display().to_string();
                format!(
                    "{{ tool = 'Remove', input = {{ file_path = {}, reason = 'It was corrected.' }} }}",
                    quoted(&path)
                )
            })
            .collect();
        let _ =
            writeln!(script, "[[rule]]\nwhen = {{ {dreams}, tool = 'Remove' }}\nsay = 'Removed what was corrected.'");
        if !calls.is_empty() {
            let _ = writeln!(script, "[[rule]]\nwhen = {{ {dreams} }}\ncall = [{}]", calls.join(", "));
        }
        let _ = writeln!(script, "[[rule]]\nwhen = {{ {dreams} }}\nsay = 'All is in order.'");
    }

    /// The memories that are there, each as a line on what it is about and what was said.
    fn bare(&self, root: &files::Root) -> Result<Vec<Memory>> {
        let paths = scan::paths(root)?;
        let last = |path: &String| self.items.iter().rfind(|item| format!("{}.md", self.file_of(item)) == *path);
        let memory = |path: &String| {
            let (item, dated) = (last(path)?, Memory::read(root, path).ok()?.modified);
            let name = item.file.replace('-', " ");
            let text =
                format!("---\nname: {name}\ndescription: {}\ntype: {}\n---\n\n{}\n", item.about, item.kind, item.said);
            Some(Memory::parse(path, text.as_bytes(), dated, text.len() as u64))
        };
        Ok(paths.iter().filter_map(memory).collect())
    }

    /// Asks for all that was said; what is not found is told.
    fn ask(&self, ranker: &Ranker, missed: impl Fn(&Item)) -> Asked {
        let mut asked = Asked::default();
        for item in &self.items {
            let by = self.items.iter().find(|other| other.replaces.as_ref() == Some(&item.file));
            let wanted = format!("{}.md", self.file_of(by.unwrap_or(item)));
            let old = by.map(|_| &item.file).or(item.replaces.as_ref()).map(|old| format!("{old}.md"));
            let old = old.filter(|old| *old != wanted);
            let (doing, now) = (WorkAtHand::default(), self.world().now());
            let question = RankQuestion { text: &item.question, doing: &doing, now };
            let chosen: Vec<String> = ranker.choose(&question, |_| true).into_iter().map(|hit| hit.path).collect();
            let ranked = ranker.rank(&question).into_iter().map(|hit| hit.path).take(5).any(|path| path == wanted);
            let at = |wanted: &String| chosen.iter().position(|path| path == wanted);
            let is_stale = old.as_ref().and_then(at).is_some_and(|old| at(&wanted).is_none_or(|new| new > old));
            asked.surfaced += usize::from(at(&wanted).is_some());
            asked.first += usize::from(ranked);
            asked.stale += usize::from(is_stale);
            if at(&wanted).is_none() || !ranked || is_stale {
                missed(item);
            }
        }
        asked
    }

    fn rows(&self, soon: usize) -> Result<Vec<Row>> {
        let mut spent: BTreeMap<String, f64> = BTreeMap::new();
        for (_, day) in self.ledger("").days(40) {
            for (kind, sum) in day.kinds {
                *spent.entry(kind).or_default() += sum.usd;
            }
        }
        let foreground = spent.get(ledger::CONVERSATION).copied().unwrap_or_default();
        let share = |kind: &str| spent.get(kind).copied().unwrap_or_default() / foreground;
        let kinds = [ledger::EXTRACT, ledger::DREAM, ledger::SELECT];
        let mut rows = vec![Row::figure("foreground", format!("${foreground:.2}"))];
        for kind in kinds {
            rows.push(Row::figure(format!("  {kind} beside it"), format!("{:.2} %", share(kind) * 100.0)));
        }
        rows.push(Row::at_most(
            "  all three beside it",
            Unit::Percent,
            kinds.iter().map(|kind| share(kind)).sum(),
            SHARE,
        ));
        let site = DreamSite {
            home: self.home.clone(),
            memory: self.memory.clone(),
            project: self.project.clone(),
            session: None,
            world: self.world(),
        };
        rows.push(Row::figure("dreams", site.dream_log().dreams().len().to_string()));
        let root = files::Root::open(&self.memory)?;
        let mut memories = Vec::new();
        for place in self.places().into_iter().filter_map(|place| files::Root::open(place).ok()) {
            memories.extend(scan::paths(&place)?.iter().filter_map(|path| Memory::read(&place, path).ok()));
        }
        let ranker = Ranker::of(&memories);
        let found = self.ask(&ranker, |item| eprintln!("  {}: {}", item.file, item.question));
        let bare = self.ask(&Ranker::of(&self.bare(&root)?), |_| {});
        let all = self.items.len() as f64;
        let is_corrected = |item: &&Item| self.items.iter().any(|one| one.replaces.as_ref() == Some(&item.file));
        let valid: Vec<&Item> = self.items.iter().filter(|item| !is_corrected(item)).collect();
        let learnt = valid.iter().filter(|item| self.has_learnt(item)).count() as f64;
        for item in valid.iter().filter(|item| !self.has_learnt(item)) {
            eprintln!("  not known: {}, in {}", item.file, self.file_of(item));
        }
        rows.push(Row::at_least(
            "said and still valid, known at the end",
            Unit::Percent,
            learnt / valid.len() as f64,
            1.0,
        ));
        let soon = format!("{:.1} %", 100.0 * soon as f64 / all);
        rows.push(Row::figure("  learnt in the session they were said in", soon));
        let text = std::fs::read_to_string(self.memory.join(index::FILE))?;
        rows.push(Row::at_least("asked in other words: surfaced", Unit::Percent, found.surfaced as f64 / all, 0.90));
        rows.push(Row::at_least("  among the first five", Unit::Percent, found.first as f64 / all, 0.95));
        rows.push(Row::at_most("  stale without its correction above", Unit::Count, found.stale as f64, 0.0));
        rows.push(Row::figure(
            "  with a line for each instead: surfaced, first five",
            format!("{:.1} %, {:.1} %", 100.0 * bare.surfaced as f64 / all, 100.0 * bare.first as f64 / all),
        ));
        rows.push(Row::at_most(
            "lines of the index",
            Unit::Count,
            text.lines().count() as f64,
            index::LINE_LIMIT as f64,
        ));
        rows.push(Row::at_most("bytes of the index", Unit::Count, text.len() as f64, index::BYTE_LIMIT as f64));
        Ok(rows)
    }
}

/// What was found of what was asked for.
#[derive(Default)]
struct Asked {
    surfaced: usize,
    /// Among the first five, surfaced or not.
    first: usize,
    /// What was corrected, without its correction above it.
    stale: usize,
}

/// What is said in a turn: the first thing in the second, the next in the fourth.
fn said_in<'i>(said: &[&'i Item], turn: usize) -> Option<&'i Item> {
    (turn % 2 == 0).then(|| said.get(turn / 2 - 1).copied()).flatten()
}

/// A text as a script has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
