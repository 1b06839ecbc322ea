//! Dreams beside a session.

use std::sync::Arc;
use std::time::Duration;

use engine::Agent;
use engine::agent::Parts;
use learning::dream::session_dreams::SessionDreams;
use learning::knowledge::{DailyLog, Knowledge};
use learning::ledger::Ledger;
use memory::instructions::InstructionSources;
use provider::anthropic::{Anthropic, Auth, Config};
use session::{Fork, Session};
use settings::{Budget, Rhythm};
use tokio_util::sync::CancellationToken;

use crate::dreaming::House;
use crate::stage::say;

/// Whenever a turn has ended, if the last one was an hour ago.
const OFTEN: Rhythm = Rhythm { on: true, hours: 1, sessions: 0 };

const TALK: &str = "[[rule]]\nwhen = { user = 'hello' }\nsay = 'Hello.'\n";
const TIDY: &str = "[[rule]]\nwhen = { system = 'look after the memories' }\nsay = 'All is in order.'\n";

fn agent(house: &House, resume: Option<&str>, daily: DailyLog) -> Agent {
    let (site, dream) = (house.site(), house.dream());
    let session = match resume {
        Some(id) => Session::resume(&site.home, &site.project, id, Fork::No, house.world()).unwrap().0,
        None => Session::create(&site.home, &site.project, None, house.world()).unwrap(),
    };
    let model = Anthropic::new(Config::new(house.simulator.url(), Auth::ApiKey("k".into()))).unwrap();
    let sources = InstructionSources {
        config_home: house.at("home/.claude"),
        working_directory: site.project.clone(),
        ..InstructionSources::default()
    };
    let knowledge = Knowledge::new(sources, Some(&site.memory), None, &session).with_daily_log(daily, &session);
    let mut parts = Parts::new(Arc::new(model), "claude-sonnet-5");
    parts.talk.max_tokens = 8_000;
    let agent = Agent::new(session, parts).unwrap();
    agent.with_knowledge(knowledge).with_dreams(SessionDreams::new(dream, OFTEN))
}

fn dreams(house: &House) -> usize {
    let is_dream = |request: &&serde_json::Value| request["system"].to_string().contains("look after the memories");
    house.simulator.requests().iter().filter(is_dream).count()
}

/// LOOP-1, DREAM-4: when a turn has ended and it is time, a dream begins beside the session; what it cost is in its log.
#[tokio::test]
async fn a_dream_begins_when_a_turn_has_ended() {
    let house = House::new(&format!("{TIDY}{TALK}")).await;
    house.remember("a.md", "something", "Text.", 1);
    let mut agent = agent(&house, None, DailyLog::None);
    assert_eq!(say(&mut agent, "hello there").await.text, "Hello.");
    assert!(agent.is_dreaming(), "and nobody waited for it");
    assert!(agent.has_to_learn(), "whoever leaves is told that something is under way");
    agent.finish_learning(&CancellationToken::new()).await.unwrap();
    assert_eq!((dreams(&house), agent.has_to_learn()), (1, false));
    let log = std::fs::read_to_string(agent.session().path()).unwrap();
    assert!(log.contains("\"dream\"") && log.contains("claude-haiku-4-5"), "{log}");
    say(&mut agent, "hello again").await;
    assert!(!agent.is_dreaming(), "not so soon");
    house.wait(3_600);
    say(&mut agent, "hello later").await;
    assert!(agent.is_dreaming());
    agent.close().await;
}

/// DREAM-2, DREAM-4: when the session ends, a dream under way ends within two seconds, as if it had never been.
#[tokio::test]
async fn a_dream_ends_with_its_session() {
    let stall = "[[fault]]\nwhen = { system = 'look after the memories' }\nstall = true\ntimes = 9\n";
    let house = House::new(&format!("{stall}{TALK}")).await;
    house.remember("a.md", "something", "Text.", 1);
    for how in ["close", "stop", "drop"] {
        let mut agent = agent(&house, None, DailyLog::None);
        let before = dreams(&house);
        say(&mut agent, "hello there").await;
        assert!(agent.is_dreaming(), "{how}");
        while dreams(&house) == before {
            tokio::task::yield_now().await;
        }
        let lock = house.memory().join(".consolidate-lock");
        assert!(lock.exists());
        let began = std::time::Instant::now();
        match how {
            "close" => agent.close().await,
            "stop" => {
                agent.dreams().unwrap().stop();
                agent.finish_dreams(Duration::from_secs(60), &CancellationToken::new()).await.unwrap();
            }
            _ => {
                drop(agent);
                while lock.exists() {
                    tokio::task::yield_now().await;
                }
            }
        }
        assert!(began.elapsed() < Duration::from_secs(2), "{how}: {:?}", began.elapsed());
        assert!(!lock.exists(), "{how}");
        let mut next = self::agent(&house, None, DailyLog::None);
        say(&mut next, "hello there").await;
        assert!(!next.is_dreaming(), "{how}: one that was cut off is tried again once an hour, by whichever process");
        next.close().await;
        house.wait(3_600);
    }
}

/// DREAM-1: after a dream that failed none begins by itself for an hour, in any process, and for a day after three in a row,
/// though no dream counts as dreamt.
#[tokio::test]
async fn a_dream_that_failed_is_not_tried_again_at_once() {
    let refuse = "[[fault]]\nwhen = { system = 'look after the memories' }\nstatus = 400\ntimes = 9\n";
    let house = House::new(&format!("{refuse}{TALK}")).await;
    house.remember("a.md", "something", "Text.", 1);
    for (wait, tried) in [(0, 1), (900, 1), (3_600, 2), (1_800, 2), (1_800, 3), (3_600, 3), (79_200, 3), (3_600, 4)] {
        house.wait(wait);
        let mut agent = agent(&house, None, DailyLog::None);
        say(&mut agent, "hello there").await;
        while agent.is_dreaming() && dreams(&house) < tried {
            tokio::task::yield_now().await;
        }
        // The next turn takes in what came of it.
        tokio::task::yield_now().await;
        agent.finish_learning(&CancellationToken::new()).await.unwrap();
        assert_eq!(dreams(&house), tried, "after {wait} s");
        agent.close().await;
    }
    assert!(!house.memory().join(".consolidate-lock").exists());
}

/// BUDGET-1: where the day's budget is spent, no dream begins, and the conversation goes on.
#[tokio::test]
async fn a_spent_budget_keeps_dreams_from_beginning() {
    let house = House::new(&format!("{TIDY}{TALK}")).await;
    house.remember("a.md", "something", "Text.", 1);
    let ledger = Ledger::in_memory(house.world());
    ledger.set_budget(Budget { usd: 0.0, ..Budget::default() });
    let mut dream = house.dream();
    dream.ledger = Arc::new(ledger);
    let over = dream.clone().run().await.unwrap();
    assert!(over.text.contains("pauses") && over.rounds == 0, "{over:?}");
    let mut agent = agent(&house, None, DailyLog::None).with_dreams(SessionDreams::new(dream, OFTEN));
    assert_eq!(say(&mut agent, "hello there").await.text, "Hello.");
    assert_eq!((agent.is_dreaming(), dreams(&house)), (false, 0));
}

/// DREAM-6: a session that keeps a daily log is told when a new day has begun, once; also when it is gone on with.
#[tokio::test]
async fn a_new_day_is_told_once() {
    const DAY: i64 = 86_400;
    let house = House::new(TALK).await;
    let told = |house: &House| {
        let request = house.simulator.requests().pop().unwrap()["messages"].to_string();
        request.matches("A new day has begun").count()
    };
    let mut agent = agent(&house, None, DailyLog::Log);
    agent.dreams().unwrap().set_rhythm(Rhythm { on: false, ..OFTEN });
    say(&mut agent, "hello there").await;
    assert_eq!(told(&house), 0, "the first message has the date");
    house.wait(DAY);
    say(&mut agent, "hello again").await;
    say(&mut agent, "hello once more").await;
    assert_eq!(told(&house), 1);
    let last = house.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(last.contains("Monday, 2026-11-16") && last.contains("logs/2026/11/2026-11-16.md"), "{last}");
    let id = agent.session().id().to_owned();
    agent.close().await;
    house.wait(DAY);
    let mut agent = self::agent(&house, Some(&id), DailyLog::Log);
    agent.dreams().unwrap().set_rhythm(Rhythm { on: false, ..OFTEN });
    say(&mut agent, "hello from another day").await;
    assert_eq!(told(&house), 2);
    let mut other = self::agent(&house, None, DailyLog::None);
    house.wait(DAY);
    other.dreams().unwrap().set_rhythm(Rhythm { on: false, ..OFTEN });
    say(&mut other, "hello there").await;
    assert_eq!(told(&house), 0, "others need not know");
}

/// DREAM-6, DREAM-3: a dream distils daily logs and leaves them as they are.
#[tokio::test]
async fn a_dream_distils_daily_logs() {
    let script = r#"
        [[rule]]
        name = "distil"
        when = { visible = "14:05 the user prefers (?P<what>\\w+) for", missing = "Saved editor.md" }
        say = "A preference."
        call = [{ tool = "Write", input = { file_path = "{{ memory }}/editor.md", content = "---\nname: Indentation\ndescription: how the user indents\ntype: user\n---\n\nThe user prefers {{ what }}.\n" } }]

        [[rule]]
        say = "Distilled."
    "#;
    let house = House::new(script).await;
    let log = "home/.claude/projects/p/memory/logs/2026/11/2026-11-14.md";
    house.put(log, "- 14:05 the user prefers tabs for everything\n");
    house.put("home/.claude/projects/p/memory/logs/2025/01/2025-01-01.md", "- 09:00 an old line\n");
    house.dream().run().await.unwrap();
    assert!(house.read("editor.md").contains("prefers tabs") && house.read("MEMORY.md").contains("editor.md"));
    assert_eq!(std::fs::read_to_string(house.at(log)).unwrap(), "- 14:05 the user prefers tabs for everything\n");
    house.wait(10 * 86_400);
    house.dream().run().await.unwrap();
    let task = house.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(!task.contains("14:05") && !task.contains("09:00"), "what was distilled is not told again: {task}");
}
