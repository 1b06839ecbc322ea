//! When results are cleared, and which.

use super::*;
use crate::sample::{SampleParts, Session};
use jiff::Timestamp;
use transcript::commit::Act;

/// The results that would be cleared, and the change; without a digest.
fn cleared(session: &Session, stage: &SampleParts) -> Option<(Vec<String>, LayerChange)> {
    let change = stage.with(|now| match Clear.decide(session.log.view(), now) {
        Decision::Nothing => None,
        Decision::Commit(change) => Some(change),
        Decision::Need(_) => Clear.answered(session.log.view(), now, &NeedAnswer::Failed("not today".into())).ok(),
    })?;
    let Act::Clear { results, digest: None, .. } = &change.commit.act else { panic!("{change:?}") };
    Some((results.iter().map(|call| call.id.clone()).collect(), change))
}

fn without_digests(window: u64) -> SampleParts {
    let mut stage = SampleParts::new(window);
    stage.layers.digest = false;
    stage
}

fn clearing(results: &[String]) -> Act {
    let results = results.iter().map(|id| id.as_str().into()).collect();
    Act::Clear { results, trigger: Trigger::Auto, digest: None }
}

fn after(minutes: i64) -> Timestamp {
    Timestamp::from_second(minutes * 60).unwrap()
}

/// MICRO-2: after an hour without a reply all results but the newest five are cleared, one at least stays whatever
/// the settings say; a minute less, and nothing is.
#[test]
fn after_an_hour_old_results_go() {
    let mut session = Session::default();
    session.say("go");
    let calls: Vec<String> = (0..8).map(|_| session.call("Bash", 3_000)).collect();
    session.reply("done");
    let mut stage = SampleParts::new(100_000);
    stage.layers.clear_when = ClearWhen::Window;
    stage.now = after(59);
    assert_eq!(cleared(&session, &stage), None);
    stage.now = after(60);
    let (results, change) = cleared(&session, &stage).unwrap();
    assert_eq!(results, calls[..3]);
    assert!(change.commit.reason.why.unwrap().contains("60 minutes"));
    stage.layers.kept_when_idle = 0;
    assert_eq!(cleared(&session, &stage).unwrap().0, calls[..7]);
    stage.layers.clear_when_idle = false;
    assert_eq!(cleared(&session, &stage), None);
}

/// MICRO-7: a result that the model has not been sent is never cleared, however long an approval was left open.
#[test]
fn what_the_model_has_not_seen_stays() {
    let mut session = Session::default();
    session.say("go");
    let seen: Vec<String> = (0..3).map(|_| session.call("Read", 3_000)).collect();
    session.calls("Read", 8, 3_000);
    let mut stage = SampleParts::new(100_000);
    (stage.now, stage.layers.kept_when_idle) = (after(90), 1);
    assert_eq!(cleared(&session, &stage).unwrap().0, seen[..2], "the newest eight were never sent");
}

/// MICRO-1: only results of tools that look or write are cleared; not what other servers' tools returned, nor what
/// was cleared already.
#[test]
fn only_what_can_be_had_again_is_cleared() {
    let mut session = Session::default();
    session.say("go");
    let mut calls = Vec::new();
    for tool in CLEARABLE.into_iter().chain(["mcp__db__query", "History", "Agent"]) {
        calls.push(session.call(tool, 1_000));
    }
    session.call("Bash", 10);
    session.reply("done");
    let mut stage = SampleParts::new(100_000);
    (stage.now, stage.layers.kept_when_idle) = (after(120), 1);
    let (results, _) = cleared(&session, &stage).unwrap();
    assert_eq!(results, calls[..8], "the newest of the nine stays, and so do the small and the foreign ones");
    session.commit(clearing(&results));
    assert_eq!(cleared(&session, &stage), None);
}

/// MICRO-5, MICRO-6: when it is tight, results older than three rounds go if the sum says that it pays; the commit
/// carries the sum and the tokens freed. With room enough nothing is touched.
#[test]
fn when_it_is_tight_old_results_go_if_that_pays() {
    let mut session = Session::default();
    session.say("go");
    let calls: Vec<String> = (0..13).map(|_| session.call("Bash", 10_000)).collect();
    let mut stage = SampleParts::new(100_000);
    stage.layers.clear_when = ClearWhen::Window;
    stage.state.pace.round();
    assert_eq!(cleared(&session, &stage), None, "44,000 tokens are not tight");
    session.call("Bash", 10_000);
    let (results, change) = cleared(&session, &stage).unwrap();
    assert_eq!(results, calls[..11], "those of the three newest replies stay");
    let reason = change.commit.reason;
    assert!((35_000..38_000).contains(&reason.freed.unwrap()), "{reason:?}");
    assert!(reason.why.unwrap().contains("× 8 rounds saves"));
    assert_eq!(reason.changes_from.unwrap().as_str(), "line-2");
    let before = session.log.view().tally().count();
    session.commit(clearing(&results));
    let freed = before - session.log.view().tally().count();
    assert!(freed.abs_diff(reason.freed.unwrap()) < 200, "{freed}");
    session.say(&"words ".repeat(30_000));
    session.reply("ok");
    assert_eq!(cleared(&session, &stage), None, "a text behind them would have to be written again");
}

/// MICRO-8: in a window with room old results go at the start of a user's turn, or with a cold cache, where that pays well;
/// not in the middle of a turn, and only as `clearWhen` says.
#[test]
fn with_room_in_the_window_old_results_go_at_natural_moments() {
    let mut session = Session::default();
    session.say("go");
    let calls: Vec<String> = (0..12).map(|_| session.call("Bash", 10_000)).collect();
    session.reply("done");
    session.say("and now the next thing");
    let mut stage = without_digests(1_000_000);
    let (results, change) = cleared(&session, &stage).unwrap();
    assert_eq!(results, calls[..10], "those of the newest replies stay");
    assert!(change.commit.reason.why.unwrap().contains("× 33 rounds saves"));
    for (when, goes) in [(ClearWhen::Window, false), (ClearWhen::Never, false), (ClearWhen::Pays, true)] {
        stage.layers.clear_when = when;
        assert_eq!(cleared(&session, &stage).is_some(), goes, "{when:?}");
    }
    stage.state.pace.round();
    assert_eq!(cleared(&session, &stage), None, "in the middle of a turn");
    stage.now = after(6);
    assert!(cleared(&session, &stage).is_some(), "the cache is cold");
}

/// MICRO-8: with room in the window what was read a few rounds ago stays, since it is edited next; what commands printed
/// does not, and where the window is tight neither does.
#[test]
fn what_was_read_a_few_rounds_ago_stays() {
    let mut session = Session::default();
    session.say("go");
    let calls: Vec<String> =
        (0..24).map(|at| session.call(if at % 2 == 0 { "Read" } else { "Bash" }, 10_000)).collect();
    session.reply("done");
    session.say("and now the next thing");
    let mut stage = without_digests(1_000_000);
    let stays = |results: &[String]| -> Vec<usize> { (0..24).filter(|at| !results.contains(&calls[*at])).collect() };
    let kept = [14, 16, 18, 20, 22, 23];
    assert_eq!(stays(&cleared(&session, &stage).unwrap().0), kept, "of twelve rounds, the answer one");
    stage.layers.clear_numbers.read_rounds = 0;
    assert_eq!(stays(&cleared(&session, &stage).unwrap().0), [22, 23]);
}

/// MICRO-9: clearing may lose a small part of what the session cost: where regrets and writing again have cost more than
/// was saved, nothing more is cleared until there is room for it; what was saved makes room.
#[test]
fn a_session_that_lost_by_clearing_clears_less() {
    let mut session = Session::default();
    session.say("go");
    (0..12).for_each(|_| drop(session.call("Bash", 10_000)));
    session.reply("done");
    session.say("and now the next thing");
    let mut stage = without_digests(1_000_000);
    stage.state.used = transcript::Usage { cache_read_input_tokens: 8_000_000, ..Default::default() };
    assert!(cleared(&session, &stage).is_some(), "800,000 were spent");
    stage.state.clearing.regrets = 3;
    stage.state.clearing.regret_read_tokens = 300_000;
    assert_eq!(cleared(&session, &stage), None, "32,250 are lost already");
    stage.state.clearing.unsent_tokens = 300_000;
    assert!(cleared(&session, &stage).is_some(), "but 30,000 were saved");
}

/// MICRO-8: with room in the window only what pays goes: an old result before a long text stays, since the text would have
/// to be written again for it.
#[test]
fn what_would_cost_more_than_it_saves_stays() {
    let mut session = Session::default();
    session.say("go");
    session.call("Bash", 3_000);
    session.reply(&"words ".repeat(20_000));
    session.say("more");
    let calls: Vec<String> = (0..12).map(|_| session.call("Bash", 10_000)).collect();
    session.reply("done");
    session.say("and now the next thing");
    let stage = without_digests(1_000_000);
    assert_eq!(cleared(&session, &stage).unwrap().0, calls[..10]);
}

/// COMPACT-14: in economy old results go when carrying them has cost as much as writing the rest again, and not
/// before.
#[test]
fn in_economy_results_go_when_they_have_been_paid_for() {
    let mut session = Session::default();
    session.say("go");
    let mut stage = SampleParts::new(1_000_000);
    (stage.layers.when, stage.layers.digest) = (LayerTiming::Economy, false);
    let mut rounds = 0;
    let (results, _) = loop {
        session.call("Bash", 10_000);
        rounds += 1;
        if let Some(cleared) = cleared(&session, &stage) {
            break cleared;
        }
    };
    assert!((9..14).contains(&rounds), "{rounds}");
    assert_eq!(results.len(), rounds - 3);
}

/// MICRO-8: in the middle of a turn results go too once much is carried, with room in the window; not before, and not
/// where only the window counts.
#[test]
fn where_much_is_carried_results_go_in_the_middle_of_a_turn() {
    let mut session = Session::default();
    session.say("go");
    let mut stage = without_digests(1_000_000);
    stage.state.pace.round();
    while session.log.view().tally().count() < stage.layers.clear_numbers.midturn_tokens {
        assert_eq!(cleared(&session, &stage), None);
        session.call("Bash", 10_000);
    }
    let (_, change) = cleared(&session, &stage).unwrap();
    assert!(change.commit.reason.freed.unwrap() > 50_000);
    stage.layers.clear_when = ClearWhen::Window;
    assert_eq!(cleared(&session, &stage), None);
}

/// MICRO-8: in a small window much is what takes two thirds of the room.
#[test]
fn in_a_small_window_less_is_much() {
    let mut session = Session::default();
    session.say("go");
    let mut stage = without_digests(100_000);
    stage.state.pace.round();
    while cleared(&session, &stage).is_none() {
        session.call("Bash", 10_000);
    }
    let count = session.log.view().tally().count();
    assert!((stage.layers.warning() * 6 / 10..stage.layers.warning()).contains(&count), "{count}");
}

/// MICRO-8: in the middle of a turn in a small window what was read stays; what commands printed does not.
#[test]
fn in_a_small_window_what_was_read_stays() {
    let mut session = Session::default();
    session.say("go");
    let read = session.call("Read", 20_000);
    let printed: Vec<String> = (0..14).map(|_| session.call("Bash", 8_000)).collect();
    let mut stage = without_digests(100_000);
    stage.state.pace.round();
    let (results, _) = cleared(&session, &stage).unwrap();
    assert!(results.contains(&printed[0]) && !results.contains(&read), "{results:?}");
    stage.layers.clear_numbers.midturn_tokens = 30_000;
    assert!(cleared(&session, &stage).unwrap().0.contains(&read), "it is old");
}

/// MICRO-8: carrying the results has to have cost most of what clearing them costs; patience says how much of it.
#[test]
fn results_go_when_carrying_them_has_cost_about_as_much() {
    let mut session = Session::default();
    session.say("go");
    let mut stage = without_digests(1_000_000);
    stage.layers.clear_numbers.midturn_tokens = 0;
    stage.state.pace.round();
    let rounds_until = |session: &mut Session, stage: &SampleParts| {
        (0..30).find(|_| {
            session.call("Bash", 10_000);
            cleared(session, stage).is_some()
        })
    };
    stage.layers.clear_numbers.patience = 0.0;
    let soon = rounds_until(&mut session, &stage).unwrap();
    stage.layers.clear_numbers.patience = 0.8;
    assert_eq!(cleared(&session, &stage), None, "they were hardly carried");
    let later = rounds_until(&mut session, &stage).unwrap();
    assert!(soon < 6 && (2..12).contains(&later), "{soon} {later}");
    stage.layers.clear_numbers.patience = 10.0;
    assert_eq!(cleared(&session, &stage), None);
}

/// MICRO-5: the newest reply and what follows it were never sent: they are written in any case and cost nothing.
#[test]
fn what_was_not_sent_yet_is_not_written_again() {
    let mut session = Session::default();
    session.say("go");
    (0..12).for_each(|_| drop(session.call("Bash", 10_000)));
    let stage = without_digests(1_000_000);
    let again = |session: &Session| -> u64 {
        let why = cleared(session, &stage).unwrap().1.commit.reason.why.unwrap();
        let (_, behind) = why.split_once("writing ").unwrap();
        behind.split_once(' ').unwrap().0.parse().unwrap()
    };
    let before = again(&session);
    session.say(&"words ".repeat(2_000));
    assert_eq!(again(&session), before, "the next request brings it");
    session.reply("done");
    assert!(again(&session) > before + 2_000, "it was sent");
}

/// MICRO-8: in the middle of a turn nothing goes right after a commit: the work may be done.
#[test]
fn after_a_commit_nothing_goes_in_the_middle_of_a_turn() {
    let mut session = Session::default();
    session.say("go");
    (0..30).for_each(|_| drop(session.call("Bash", 10_000)));
    let mut stage = without_digests(1_000_000);
    stage.layers.clear_numbers.midturn_tokens = 50_000;
    stage.state.pace.round();
    assert!(cleared(&session, &stage).is_some());
    for shell in ["Bash", "PowerShell"] {
        session.called(shell, &serde_json::json!({"command": "cd /p && git commit -am done"}), "done");
        for _ in 0..3 {
            assert_eq!(cleared(&session, &stage), None, "{shell}");
            session.call("Bash", 1_000);
        }
    }
    assert!(cleared(&session, &stage).is_some(), "it goes on");
}

/// MICRO-8: what was read of a file that the user's last words name stays longer than the rest.
#[test]
fn what_the_user_names_stays_longer() {
    let mut session = Session::default();
    session.say("go");
    let read = |path: &str| serde_json::json!({"file_path": path});
    let calls =
        ["/p/named.rs", "/p/other.rs"].map(|path| session.called("Read", &read(path), &"x".repeat(30_000))).to_vec();
    (0..12).for_each(|_| drop(session.call("Bash", 10_000)));
    session.reply("done");
    let stage = without_digests(1_000_000);
    let stays = |session: &Session| -> Vec<bool> {
        let (results, _) = cleared(session, &stage).unwrap();
        calls.iter().map(|call| !results.contains(call)).collect()
    };
    session.say("and now named.rs");
    assert_eq!(stays(&session), [true, false]);
    (0..40).for_each(|_| drop(session.call("Bash", 1_000)));
    session.reply("done");
    session.say("and now named.rs");
    assert_eq!(stays(&session), [false, false], "forty rounds are enough");
}

/// MICRO-5: where the session cannot afford to write all again, it clears from a later result on, for which it can; and
/// nothing where it can afford nothing.
#[test]
fn a_session_clears_as_much_as_it_can_afford() {
    let mut session = Session::default();
    session.say("go");
    session.call("Bash", 60_000);
    session.reply(&"words ".repeat(10_000));
    let calls: Vec<String> = (0..12).map(|_| session.call("Bash", 10_000)).collect();
    session.reply("done");
    session.say("and now the next thing");
    let mut stage = without_digests(1_000_000);
    let with = |stage: &mut SampleParts, spent: u64| {
        stage.state.used = transcript::Usage { input_tokens: spent, ..Default::default() };
        cleared(&session, stage).map(|(results, _)| results)
    };
    let all = with(&mut stage, 10_000_000).unwrap();
    assert_eq!(all.len(), 11, "the long text is written again for the first");
    assert_eq!(with(&mut stage, 300_000).unwrap(), calls[..10]);
    assert_eq!(with(&mut stage, 100_000), None);
    stage.layers.clear_numbers.rounds_at_start = 4;
    assert_eq!(with(&mut stage, 100_000).unwrap(), calls[..10], "if it goes on for long enough");
    stage.ttl = transcript::mark::Ttl::OneHour;
    assert_eq!(with(&mut stage, 100_000), None, "what is dear to write has to be earned sooner");
}

/// MICRO-5: a session in the middle of a turn is trusted to go on for longer than one at the start of it, and so clears what
/// it could not afford if it were about to end.
#[test]
fn a_turn_under_way_is_trusted_to_go_on() {
    let mut session = Session::default();
    session.say("go");
    (0..12).for_each(|_| drop(session.call("Bash", 40_000)));
    let mut stage = without_digests(1_000_000);
    stage.state.pace.round();
    stage.state.used = transcript::Usage { input_tokens: 200_000, ..Default::default() };
    assert!(cleared(&session, &stage).is_some());
    stage.layers.clear_numbers.rounds_midturn = 0;
    assert_eq!(cleared(&session, &stage), None);
}
