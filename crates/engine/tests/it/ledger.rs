//! What was spent, and what may still be.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use engine::Event;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use learning::ledger::{CONVERSATION, DREAM, EXTRACT, Ledger, NOTES, Spender};
use session::World;
use settings::Budget;
use transcript::price::{Price, Prices};
use transcript::{Id, Usage};

use crate::stage::{Stage, say};
use crate::worker;

/// Noon in Berlin, on the fifteenth.
const NOON: &str = "2026-11-15T11:00:00Z";
const HOUR: i64 = 3_600;

struct Clock(Arc<AtomicI64>);

impl Clock {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(NOON.parse::<Timestamp>().unwrap().as_second())))
    }

    fn step(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    fn world(&self) -> World {
        let seconds = self.0.clone();
        World::new(move || Timestamp::from_second(seconds.load(Ordering::Relaxed)).unwrap(), |_| Id::from("id"))
    }

    /// What a process of its own would have opened. A million tokens of output cost a dollar.
    fn ledger(&self, home: &Path, project: &str) -> Ledger {
        let spender = Spender { project: PathBuf::from(project), session: "s".into() };
        let prices = Prices::with(vec![("m".into(), Price::new(1.0, 1.0))]);
        let berlin = TimeZone::fixed(jiff::tz::offset(1));
        Ledger::at(home, spender, prices, Budget::default(), self.world()).with_zone(berlin)
    }
}

fn dollars(usd: f64) -> Usage {
    Usage { output_tokens: (usd * 1e6) as u64, ..Usage::default() }
}

/// TOK-7, BUDGET-1: what several processes spend is one sum a day, by kind; the conversation counts against no budget.
#[test]
fn all_processes_write_into_one_ledger() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Clock::new());
    let (one, other) = (clock.ledger(home.path(), "/one"), clock.ledger(home.path(), "/other"));
    one.record(CONVERSATION, "m", &dollars(50.0));
    one.record(NOTES, "m", &dollars(1.5));
    assert!(other.allows(EXTRACT).is_ok());
    other.record(EXTRACT, "m", &dollars(0.25));
    other.record(EXTRACT, "nobody-knows", &dollars(9.0));
    other.record(DREAM, "m", &dollars(0.25));
    for ledger in [&one, &other, &clock.ledger(home.path(), "/one")] {
        let today = ledger.today();
        let usd: Vec<(&str, f64)> = today.kinds.iter().map(|(kind, sum)| (kind.as_str(), sum.usd)).collect();
        assert_eq!(usd, [("conversation", 50.0), ("dream", 0.25), ("extract", 0.25), ("notes", 1.5)]);
        assert_eq!((today.background.usd, today.background.requests, today.total().usd), (2.0, 4, 52.0));
        let why = ledger.allows(NOTES).unwrap_err().to_string();
        assert_eq!(why, "background work pauses: $2.00 of $2.00 a day are spent (budget.usdPerDay)");
        assert!(ledger.allows(CONVERSATION).is_ok() && ledger.allows("compact").is_ok());
        assert!(ledger.allows(DREAM).is_err());
        assert_eq!(ledger.news(), [why], "said once a day");
        assert!(ledger.news().is_empty());
    }
}

/// BUDGET-1: tokens, and a project's own share, are bounds as well.
#[test]
fn tokens_and_projects_have_bounds_of_their_own() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Clock::new());
    let (one, other) = (clock.ledger(home.path(), "/one"), clock.ledger(home.path(), "/other"));
    one.record(NOTES, "nobody-knows", &dollars(0.3));
    let allowed = |budget: Budget| {
        one.set_budget(budget);
        other.set_budget(budget);
        (one.allows(NOTES).is_ok(), other.allows(NOTES).is_ok())
    };
    let none = Budget::default();
    assert_eq!(allowed(none), (true, true));
    assert_eq!(allowed(Budget { tokens: Some(300_000), ..none }), (false, false));
    assert_eq!(allowed(Budget { tokens: Some(300_001), ..none }), (true, true));
    assert_eq!(allowed(Budget { project_tokens: Some(1), ..none }), (false, true));
    one.record(NOTES, "m", &dollars(0.3));
    assert_eq!(allowed(Budget { project_usd: Some(0.3), ..none }), (false, true));
    assert_eq!(allowed(Budget { usd: 0.0, ..none }), (false, false), "none at all");
}

/// BUDGET-1: models without a price have a budget in tokens though nobody set one; what is spent on others does not count
/// against it.
#[test]
fn models_without_a_price_have_a_budget_in_tokens() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Clock::new());
    let ledger = clock.ledger(home.path(), "/one");
    ledger.record(NOTES, "m", &dollars(1.9));
    ledger.record(CONVERSATION, "nobody-knows", &dollars(50.0));
    ledger.record(NOTES, "nobody-knows", &dollars(1.99));
    assert!(ledger.allows(NOTES).is_ok());
    ledger.record(NOTES, "nobody-knows", &dollars(0.01));
    let why = ledger.allows(NOTES).unwrap_err().to_string();
    assert!(why.contains("2000000 of 2000000 tokens a day are spent on models without a price"), "{why}");
    ledger.set_budget(Budget { tokens: Some(10_000_000), ..Budget::default() });
    assert!(ledger.allows(NOTES).is_ok(), "the user's own bound counts in its place");
}

/// BUDGET-1: a request that is stopped, late or dropped after the provider has begun to answer stands in the ledger's file, also
/// where it said nothing of what it read; one that nothing came back for, or that was refused, does not.
#[tokio::test]
async fn a_request_whose_end_nobody_hears_is_in_the_ledger() {
    use futures_util::StreamExt;
    let started = || provider::Event::Started { id: "r".into(), model: "x".into(), usage: Usage::default() };
    let failed = || provider::Event::Failed(provider::Error::Settings { message: "no".into() });
    let waits = || provider::Event::Retrying {
        attempt: 1,
        after: std::time::Duration::ZERO,
        why: provider::Error::Settings { message: "busy".into() },
    };
    for (name, events, polled, counted) in [
        ("dropped before its first event", vec![], true, (0, 0)),
        ("dropped in the middle", vec![started(), provider::Event::Text("four".repeat(10))], true, (5_010, 1)),
        ("never sent", vec![], false, (0, 0)),
        ("refused", vec![failed()], true, (0, 0)),
        ("dropped while it waits", vec![waits()], true, (0, 0)),
    ] {
        let (home, clock) = (tempfile::tempdir().unwrap(), Clock::new());
        let ledger = Arc::new(clock.ledger(home.path(), "/one"));
        let model: Arc<dyn provider::Model> = Arc::new(Stalling(std::sync::Mutex::new(events)));
        let prologue = transcript::Prologue { model: "nobody-knows".into(), max_tokens: 100, ..Default::default() };
        let request = transcript::Request::about(prologue, "word ".repeat(4_000));
        let mut events = ledger.ask(EXTRACT, &model, request);
        while polled && futures_util::poll!(events.next()).is_ready() {}
        drop(events);
        let lines = std::fs::read_to_string(home.path().join("cairn/ledger/2026-11-15.jsonl")).unwrap_or_default();
        let broken_off = lines.lines().filter(|line| line.contains("brokenOff")).count() as u64;
        let today = ledger.today();
        assert_eq!((today.background.tokens, broken_off), counted, "{name}: {lines}");
        assert_eq!(today.unfinished, broken_off, "{name}");
    }
}

/// A model that says something and then nothing more.
struct Stalling(std::sync::Mutex<Vec<provider::Event>>);

impl provider::Model for Stalling {
    fn stream(&self, _: transcript::Request) -> futures_util::stream::BoxStream<'static, provider::Event> {
        use futures_util::StreamExt;
        let events = std::mem::take(&mut *self.0.lock().unwrap());
        futures_util::stream::iter(events).chain(futures_util::stream::pending()).boxed()
    }

    fn count_tokens(
        &self,
        _: transcript::Request,
    ) -> futures_util::future::BoxFuture<'static, Result<u64, provider::Error>> {
        Box::pin(async { Ok(0) })
    }
}

/// TOK-7: a day is a local one, and a new one begins with nothing; what was is kept.
#[test]
fn a_new_day_begins_with_nothing() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Clock::new());
    let ledger = clock.ledger(home.path(), "/one");
    ledger.record(NOTES, "m", &dollars(3.0));
    clock.step(11 * HOUR); // 23:00 in Berlin
    assert!(ledger.allows(NOTES).is_err());
    clock.step(HOUR);
    assert!(ledger.allows(NOTES).is_ok(), "past midnight there, not yet in Greenwich");
    ledger.record(NOTES, "m", &dollars(1.0));
    let days: Vec<(String, f64)> =
        ledger.days(3).into_iter().map(|(date, day)| (date.to_string(), day.total().usd)).collect();
    assert_eq!(days, [("2026-11-16".into(), 1.0), ("2026-11-15".into(), 3.0), ("2026-11-14".into(), 0.0)]);
}

/// BUDGET-1: a clock that steps back over midnight opens no second budget.
#[test]
fn a_clock_that_steps_back_opens_no_second_budget() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Clock::new());
    let ledger = clock.ledger(home.path(), "/one");
    clock.step(13 * HOUR);
    ledger.record(NOTES, "m", &dollars(2.0));
    assert!(ledger.allows(NOTES).is_err());
    clock.step(-2 * HOUR);
    assert!(ledger.allows(NOTES).is_err() && clock.ledger(home.path(), "/one").allows(NOTES).is_err());
    assert_eq!(ledger.today().background.usd, 2.0);
    clock.step(26 * HOUR);
    assert!(ledger.allows(NOTES).is_ok(), "the day after");
}

/// BUDGET-1: lines that nobody can read are counted and passed over, whoever wrote them; a file that was replaced is read
/// from its beginning.
#[test]
fn a_broken_line_spoils_no_sum() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Clock::new());
    let ledger = clock.ledger(home.path(), "/one");
    let path = home.path().join("cairn/ledger/2026-11-15.jsonl");
    ledger.record(NOTES, "m", &dollars(0.5));
    let long = "x".repeat(100_000);
    let odd = [
        "not json",
        "{}",
        "",
        &long,
        r#"{"kind":"notes","background":true,"usd":-5,"tokens":1}"#,
        r#"{"kind":"notes","background":true,"usd":1e999}"#,
        r#"{"kind":"later","background":true,"usd":0.25,"more":[1]}"#,
        r#"{"kind":"notes","backgr"#,
    ];
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str(&odd.join("\n"));
    std::fs::write(&path, text).unwrap();
    let today = ledger.today();
    assert_eq!((today.background.usd, today.broken), (0.75, 4), "{today:?}");
    ledger.record(NOTES, "m", &dollars(0.5));
    let today = ledger.today();
    assert_eq!((today.background.usd, today.broken), (1.25, 5), "the torn one is by itself now");
    assert_eq!(today, clock.ledger(home.path(), "/one").today(), "read in parts or at once");
    std::fs::write(&path, "{\"kind\":\"notes\",\"background\":true,\"usd\":0.125}\n").unwrap();
    assert_eq!(ledger.today().background.usd, 0.125);
}

/// BUDGET-1: where the ledger cannot be written, what this process spends counts all the same, and the user hears of it
/// once; where it cannot be read, nothing is spent that nobody waits for.
#[test]
fn a_ledger_that_cannot_be_written_still_bounds() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Clock::new());
    std::fs::create_dir(home.path().join("cairn")).unwrap();
    std::os::unix::fs::symlink("/proc/self", home.path().join("cairn/ledger")).unwrap(); // nobody writes there
    let ledger = clock.ledger(home.path(), "/one");
    ledger.record(NOTES, "m", &dollars(1.0));
    assert!(ledger.allows(NOTES).is_ok());
    ledger.record(NOTES, "m", &dollars(1.0));
    assert!(ledger.allows(NOTES).is_err());
    let news = ledger.news();
    assert!(news.len() == 2 && news[0].starts_with("spending cannot be recorded"), "{news:?}");

    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("cairn/ledger/2026-11-15.jsonl")).unwrap();
    let ledger = clock.ledger(home.path(), "/one");
    assert!(ledger.allows(NOTES).unwrap_err().to_string().contains("cannot be read"));
    assert!(ledger.allows(CONVERSATION).is_ok());
}

/// BUDGET-1, NOTES-2: with the budget spent no notes are written, the user hears of it once, and the work goes on to its
/// end.
#[tokio::test]
async fn the_conversation_goes_on_when_the_budget_is_spent() {
    let heard = |usd: f64| async move {
        let mut stage = Stage::new(&worker::script(12)).await;
        stage.layers.notes_share = None;
        worker::equip(&stage.project(), 9_000);
        let mut agent = stage.agent(None);
        agent.ledger().set_budget(Budget { usd, ..Budget::default() });
        say(&mut agent, "Do all the steps.").await;
        agent.settled().await.unwrap();
        say(&mut agent, "Are you done?").await;
        let today = agent.ledger().today();
        assert_eq!(worker::done(&stage.project()).len(), 12);
        let requests: u64 = today.kinds.values().map(|sum| sum.requests).sum();
        assert_eq!(requests, stage.simulator.requests().len() as u64, "every one of them is in the ledger");
        let events = stage.events.lock().unwrap();
        let paused = |event: &&Event| matches!(event, Event::Warning(text) if text.contains("background work pauses"));
        (today.kinds.into_keys().collect::<Vec<_>>(), events.iter().filter(paused).count())
    };
    assert_eq!(heard(2.0).await, (vec!["conversation".to_owned(), "notes".to_owned()], 0));
    assert_eq!(heard(0.0).await, (vec!["conversation".to_owned()], 1));
}

/// BUDGET-1: a fork whose budget is spent meanwhile makes no further round.
#[tokio::test]
async fn a_spent_budget_stops_a_fork_within_one_round() {
    let script = "[[rule]]\nwhen = { visible = \"Aside\" }\ncall = [{ tool = \"Bash\", input = { command = \"ls\" } }]\n\
                  [[rule]]\nsay = \"hello\"\n";
    let stage = Stage::new(script).await;
    let mut agent = stage.agent(None);
    say(&mut agent, "hi").await;
    let clock = Clock::new();
    let home = tempfile::tempdir().unwrap();
    let ledger = Arc::new(clock.ledger(home.path(), "/one"));
    let fork = |kind: &'static str| {
        let mut fork = crate::forking::fork(&stage, agent.request().unwrap(), "Aside: look around.");
        (fork.kind, fork.rounds, fork.ledger) = (kind, 5, ledger.clone());
        fork
    };
    let rounds = || stage.simulator.requests().len();
    ledger.set_budget(Budget { tokens: Some(1), ..Budget::default() });
    let (outcome, usage) = fork(DREAM).run().await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, learning::fork::ForkError::Paused(_)), "{error}");
    assert_eq!(
        (rounds(), usage.total()),
        (2, ledger.today().background.tokens),
        "one round, and what it used is known"
    );
    assert!(fork(DREAM).run().await.0.is_err());
    assert_eq!(rounds(), 2);
    let forked = fork("compact").run().await.0.unwrap();
    assert_eq!((rounds(), forked.rounds, ledger.today().kinds["compact"].requests), (7, 5, 5));
}
