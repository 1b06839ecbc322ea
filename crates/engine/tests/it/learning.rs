//! What a session leaves behind: learning after turns.

use std::path::{Path, PathBuf};

use engine::{Agent, Event};
use learning::extract::{self, Outcome};
use memory::Memory;
use memory::store::IndexUpkeep;
use settings::Learning;
use tokio_util::sync::CancellationToken;
use tools::permission::{Places, Rule, Rules};
use transcript::price::Price;

use crate::stage::{Stage, say};
use crate::worker;

/// What a learning agent sees of its task.
pub const TASK: &str = "Beside the conversation, write down";

/// An agent that saves what the user said about deploys, in its own words.
pub const GOOD: &str = r##"
    [[rule]]
    name = "learnt"
    when = { visible = "Beside the conversation, write down", result = "Saved" }
    say = "Saved."

    [[rule]]
    name = "learns"
    when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`", "(?s).*deploy on (?P<day>\\w+)s"] }
    call = [{ tool = "Write", input = { file_path = "{{ dir }}/deploys_{{ day|lower }}.md", content = "---\nname: Deploys on {{ day }}s\ndescription: When this project is deployed\ntype: project\n---\n\nReleases go out on {{ day }}s.\n\n**Why:** the user said so.\n" } }]

    [[rule]]
    name = "nothing to learn"
    when = { visible = "Beside the conversation, write down" }
    say = "Nothing to save."

    [[rule]]
    name = "answers"
    say = "Good."
"##;

/// Waits until nothing is being learnt any more.
pub async fn settled(agent: &mut Agent) {
    let stop = CancellationToken::new();
    agent.finish_learning(&stop).await.unwrap();
    assert!(!agent.is_learning());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    names.sort();
    names
}

fn notes(agent: &Agent, kind: &str) -> Vec<serde_json::Value> {
    let log = std::fs::read_to_string(agent.session().path()).unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let metas = lines.map(|line| line["meta"].clone()).filter(|meta| meta["kind"] == kind);
    metas.collect()
}

/// The requests that learning made, by their number.
pub fn learning_requests(stage: &Stage) -> Vec<usize> {
    let requests = stage.simulator.requests();
    let is_one = |at: &usize| requests[*at].to_string().contains(TASK);
    (0..requests.len()).filter(is_one).collect()
}

/// EXTRACT-1, EXTRACT-5, EXTRACT-6, EXTRACT-7, SHELF-2: after a turn a memory is saved with where it comes from, announced
/// with its figures, and the log says which turn is covered; the conversation has no trace of it.
#[tokio::test]
async fn after_a_turn_what_was_learnt_is_saved_and_announced() {
    let stage = Stage::new(GOOD).await;
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "We deploy on Mondays, please keep that in mind.").await;
    settled(&mut agent).await;
    assert_eq!(names(&stage.memories()), ["MEMORY.md", "deploys_monday.md"]);
    let root = files::Root::open(stage.memories()).unwrap();
    let text = std::fs::read_to_string(stage.memories().join("deploys_monday.md")).unwrap();
    assert!(Memory::read(&root, "deploys_monday.md").unwrap().diagnostics.is_empty());
    for part in ["agent: extract", "model: claude-sonnet-5", &format!("originSessionId: {}", agent.session().id())] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let learnt = stage.learnt();
    let Outcome { messages, rounds, tally, failed, run, turns, .. } = &learnt[0];
    assert_eq!((learnt.len(), *messages, *rounds, failed), (1, 2, 2, &None));
    assert_eq!((tally.saved.clone(), tally.denied), (vec!["deploys_monday.md".to_owned()], 0));
    assert!(run.is_some() && learnt[0].usage.output_tokens > 0 && learnt[0].first.cache_read_input_tokens > 0);
    let noted = notes(&agent, "extracted");
    assert_eq!((noted.len(), &noted[0]["saved"]), (1, &serde_json::json!(["deploys_monday.md"])));
    assert_eq!(noted[0]["turns"], serde_json::json!([turns[0].to_string()]));
    assert!(!serde_json::to_string(&agent.request().unwrap().messages).unwrap().contains(TASK));
    // The same again: there is nothing new.
    settled(&mut agent).await;
    assert_eq!(stage.learnt().len(), 1);
}

/// EXTRACT-1: a turn that was stopped, and memory or learning that is off, cause no run.
#[tokio::test]
async fn nothing_is_learnt_where_it_is_off_or_a_turn_was_stopped() {
    let stage = Stage::new(GOOD).await;
    let mut agent = stage.knowing_agent(None, false).await;
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    drop(agent);
    let mut agent = stage.another_agent(500).with_learning(Learning { share: None, ..Learning::new(stage.home()) });
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    drop(agent);
    let mut agent = stage.another_learning_agent(900).await;
    let stopped = CancellationToken::new();
    stopped.cancel();
    agent.turn(vec![transcript::Block::text("We deploy on Mondays.")], &stopped).await;
    assert!(!agent.is_learning());
    assert_eq!((learning_requests(&stage), stage.learnt().len()), (vec![], 0));
}

/// EXTRACT-2: a turn in which the main agent itself saved a memory is covered, and nothing is asked.
#[tokio::test]
async fn a_turn_in_which_the_main_agent_saved_is_passed_over() {
    let saves = r##"
        [[rule]]
        name = "saves"
        when = { user = "remember", missing = "Saved" }
        call = [{ tool = "Write", input = { file_path = "{{ project }}/../memories/own.md", content = "---\nname: Own\ndescription: d\ntype: project\n---\nx\n" } }]
    "##;
    let stage = Stage::new(&format!("{saves}{GOOD}")).await;
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "We deploy on Mondays; remember it.").await;
    settled(&mut agent).await;
    assert_eq!((learning_requests(&stage), names(&stage.memories()).len()), (vec![], 2));
    let noted = notes(&agent, "extracted");
    assert!(noted[0]["skipped"].as_str().unwrap().contains("conversation itself"), "{noted:?}");
    // The next turn is learnt from, and it alone.
    say(&mut agent, "And releases: deploy on Fridays.").await;
    settled(&mut agent).await;
    assert_eq!(stage.learnt()[0].messages, 2);
}

/// EXTRACT-3, EXTRACT-8: every third turn; what is not covered then is learnt when the session ends.
#[tokio::test]
async fn every_third_turn_and_the_rest_at_the_end() {
    let stage = Stage::new(GOOD).await;
    let agent = stage.learning_agent(None).await;
    let learning = Learning { every: 3, share: None, ..Learning::new(stage.home()) };
    let mut agent = agent.with_learning(learning);
    for turn in 1..=4 {
        say(&mut agent, &format!("Turn {turn}.")).await;
        assert_eq!(agent.is_learning(), turn == 3, "turn {turn}");
        while agent.is_learning() {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(stage.learnt().iter().map(|one| one.messages).collect::<Vec<_>>(), [6]);
    assert!(agent.has_to_learn());
    settled(&mut agent).await;
    assert_eq!(stage.learnt().iter().map(|one| one.messages).collect::<Vec<_>>(), [6, 2]);
    assert!(!agent.has_to_learn());
}

/// EXTRACT-4: while one runs, only the newest request waits, and it runs once, about what is new by then.
#[tokio::test]
async fn while_one_runs_only_the_newest_waits() {
    let slow = format!("[[fault]]\nwhen = {{ visible = \"{TASK}\" }}\ndelay_ms = 400\n{GOOD}");
    let stage = Stage::new(&slow).await;
    let mut agent = stage.learning_agent(None).await;
    for turn in 1..=4 {
        say(&mut agent, &format!("Turn {turn}.")).await;
    }
    settled(&mut agent).await;
    assert_eq!(stage.learnt().iter().map(|one| one.messages).collect::<Vec<_>>(), [2, 6]);
    assert_eq!(learning_requests(&stage).len(), 2);
}

/// EXTRACT-6: only a run that came to its end covers turns: what a failed one was about is learnt with the next.
#[tokio::test]
async fn a_run_that_fails_covers_nothing() {
    let fails = format!("[[fault]]\nwhen = {{ visible = \"{TASK}\" }}\nstatus = 400\n{GOOD}");
    let stage = Stage::new(&fails).await;
    let mut agent = stage.learning_agent(None).await;
    let turn = say(&mut agent, "We deploy on Mondays.").await;
    assert!(matches!(turn.end, engine::run::TurnEnd::Ended(_)), "a failure of learning is none of the turn");
    while agent.is_learning() {
        tokio::task::yield_now().await;
    }
    assert!(stage.learnt()[0].failed.is_some());
    assert_eq!(notes(&agent, "extracted").len(), 0);
    say(&mut agent, "Yes.").await;
    settled(&mut agent).await;
    assert_eq!((notes(&agent, "extract-failed").len(), stage.learnt()[1].messages), (1, 4));
    assert_eq!(names(&stage.memories()).len(), 2);
}

/// EXTRACT-5: it is told of what is known, so that it updates; a run has at most five rounds.
#[tokio::test]
async fn it_is_told_what_is_known_and_never_goes_on_for_ever() {
    let endless = r##"
        [[rule]]
        name = "looks for ever"
        when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`"] }
        call = [{ tool = "Read", input = { file_path = "{{ dir }}/known.md" } }]
    "##;
    let stage = Stage::new(&format!("{endless}{GOOD}")).await;
    stage.remember("known.md", "How things are deployed", "On Tuesdays.");
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    let asked = learning_requests(&stage);
    assert_eq!(asked.len(), 5);
    let request = stage.simulator.requests()[asked[0]].to_string();
    assert!(request.contains("<memory path=\\\"known.md\\\">"), "{request}");
    assert!(request.contains("from the user's message that begins \\\"We deploy on Mondays.\\\""), "{request}");
    // A run that never came to its end is no success.
    assert!(notes(&agent, "extracted").is_empty());
    assert_eq!(
        stage.learnt()[0].failed.as_ref().map(|failure| failure.why.as_str()),
        Some("it had no end after its last round")
    );
}

/// EXTRACT-5: behind a summary the agent gets what was said and no more: the new turn, and those before it, from the log.
#[tokio::test]
async fn behind_a_summary_the_words_themselves_are_learnt_from() {
    let summary = "[[rule]]\nname = \"summary\"\nwhen = { visible = \"about to leave the window\" }\nsay = \"<summary>All so far.</summary>\"\n";
    let stage = Stage::new(&format!("{summary}{GOOD}")).await;
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "The first words.").await;
    settled(&mut agent).await;
    agent.compact(None, context::CompactionReach::Everything, &CancellationToken::new()).await.unwrap().unwrap();
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    let asked = learning_requests(&stage);
    let requests = stage.simulator.requests();
    let last = requests.iter().rev().find(|request| request.to_string().contains(TASK)).unwrap().to_string();
    assert!(last.contains("between <new> and </new>") && !last.contains("All so far."), "{last}");
    let (before, new) = last.split_once("<new>").unwrap();
    assert!(before.contains("The first words.") && new.contains("We deploy on Mondays."), "{last}");
    assert!(asked.len() >= 2 && names(&stage.memories()).contains(&"deploys_monday.md".to_owned()));
}

/// EXTRACT-5, CACHE-3: a short conversation that the provider still has is forked, and nine tenths of the input are read
/// from its cache; a long one is not: its words alone are sent, at a fraction of the price.
#[tokio::test]
async fn a_long_conversation_is_learnt_from_by_its_words_alone() {
    for (bytes, steps, forked) in [(1_000, 12, true), (10_000, 25, false)] {
        let stage = Stage::new(&format!("{}{}", rules_only(GOOD), worker::script(steps))).await;
        for n in 0..300 {
            let about =
                format!("Something that is known, number {n}, described at some length for those who look for it");
            stage.remember(&format!("known_{n}.md"), &about, "Known.");
        }
        worker::equip(&stage.project(), bytes);
        let mut agent = stage.learning_agent(None).await;
        say(&mut agent, "Do all the steps, and deploy on Mondays.").await;
        settled(&mut agent).await;
        let (asked, report) = (learning_requests(&stage), stage.simulator.report());
        assert_eq!(asked.len(), 2, "it wrote, and was done");
        let requests = stage.simulator.requests();
        assert_eq!(requests[asked[0]].to_string().contains("from the user's message that begins"), forked);
        let first = report.requests[asked[0]].input;
        match forked {
            true => assert!(first.read * 10 >= first.total() * 6, "{} of {}", first.read, first.total()),
            false => assert!(first.total() < 9_000, "{}", first.total()),
        }
        assert_eq!(stage.learnt()[0].tally.saved, ["deploys_monday.md"]);
    }
}

/// The learning rules alone, without the answer to everything.
fn rules_only(script: &str) -> String {
    script.split("[[rule]]").filter(|rule| !rule.contains("name = \"answers\"")).collect::<Vec<_>>().join("[[rule]]")
}

/// EXTRACT-8, BUDGET-1: learning stays within 8 % of what the session costs otherwise, what is learnt before it ends aside.
#[tokio::test]
async fn learning_stays_within_its_share_of_the_cost() {
    let turns = r##"
        [[rule]]
        name = "answers at length"
        say = "I looked at it."
        say_bytes = 6000
    "##;
    let stage = Stage::new(&format!("{}{turns}", rules_only(GOOD))).await;
    let agent = stage.learning_agent(None).await;
    let mut agent = agent.with_learning(Learning::new(stage.home()));
    for turn in 1..=30 {
        say(&mut agent, &format!("Look at part {turn} and tell me.")).await;
        while agent.is_learning() {
            tokio::task::yield_now().await;
        }
        agent.take_in_learnt().unwrap();
    }
    let price = Price::new(3.0, 15.0);
    let runs = stage.learnt();
    let spent: f64 = runs.iter().map(|one| price.cost(&one.usage)).sum();
    let state = agent.session().state();
    let others = price.cost(&state.used) - price.cost(&state.used_by_extract);
    assert!(runs.len() >= 3, "{} runs", runs.len());
    assert!(spent <= others * 0.08, "{spent} of {others}: {:.1} %", 100.0 * spent / others);
    eprintln!("{} runs in 30 turns, {:.1} % of the rest", runs.len(), 100.0 * spent / others);
}

/// EXTRACT-1: nothing is learnt from a private stretch, also not later, nor from what is excluded.
#[tokio::test]
async fn nothing_is_learnt_from_what_is_private_or_excluded() {
    let stage = Stage::new(GOOD).await;
    let mut agent = stage.learning_agent(None).await;
    extract::set_private(agent.session_mut(), true).unwrap();
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    assert!(extract::private(agent.session()) && learning_requests(&stage).is_empty());
    extract::set_private(agent.session_mut(), false).unwrap();
    say(&mut agent, "Thanks.").await;
    settled(&mut agent).await;
    assert_eq!(stage.learnt()[0].messages, 2, "what was private is passed");
    let reads = "[[rule]]\nname = \"reads\"\nwhen = { user = \"look\", missing = \"none of it\" }\ncall = [{ tool = \"Read\", input = { file_path = \"{{ project }}/client/plan.txt\" } }]\n";
    let shows = reads.replace("Read", "Bash").replace("file_path = \"{{ project }}/", "command = \"cat ./");
    for (rule, words, does) in [
        ("Read(client/**)", "look at the plan; we deploy on Mondays", reads),
        ("Read(client/**)", "look at the plan; we deploy on Mondays", &shows),
        ("Read(**)", "deploy on Mondays", reads),
    ] {
        let stage = Stage::new(&format!("{does}{GOOD}")).await;
        std::fs::create_dir(stage.project().join("client")).unwrap();
        std::fs::write(stage.project().join("client/plan.txt"), "none of it").unwrap();
        let directory = if rule == "Read(**)" { PathBuf::from("/") } else { stage.project() };
        let places = Places { settings: directory.clone(), directory, home: None, file: None };
        let excluded = Rules { deny: vec![Rule::parse(rule, &places).unwrap()], ..Rules::default() };
        let learning = Learning { share: None, excluded, ..Learning::new(stage.home()) };
        let mut agent = stage.learning_agent(None).await.with_learning(learning);
        say(&mut agent, words).await;
        settled(&mut agent).await;
        assert!(learning_requests(&stage).is_empty(), "{rule}");
    }
}

/// EXTRACT-8: what was left when a session was killed is learnt by the next one, from what was said in it alone, and
/// once.
#[tokio::test]
async fn the_next_session_learns_what_the_last_one_left() {
    let stalls = format!("[[fault]]\nwhen = {{ visible = \"{TASK}\" }}\nstall = true\n{GOOD}");
    let stage = Stage::new(&stalls).await;
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "We deploy on Mondays.").await;
    while learning_requests(&stage).is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(agent.is_learning());
    let (first, id) = (agent.session().path().to_owned(), agent.session().id().to_owned());
    agent.close().await; // as a signal ends it
    let written = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_000); // by the clock of the stage
    std::fs::File::options().append(true).open(&first).unwrap().set_modified(written).unwrap();
    assert!(names(&stage.memories()).is_empty());
    let mut agent = stage.another_learning_agent(500).await;
    say(&mut agent, "Hello there.").await;
    settled(&mut agent).await;
    assert_eq!(names(&stage.memories()), ["MEMORY.md", "deploys_monday.md"]);
    let text = std::fs::read_to_string(stage.memories().join("deploys_monday.md")).unwrap();
    assert!(text.contains(&format!("originSessionId: {id}")), "{text}");
    assert!(std::fs::read_to_string(&first).unwrap().contains(r#""kind":"extracted""#));
    assert_eq!(std::fs::metadata(&first).unwrap().modified().unwrap(), written, "nobody worked in it");
    let runs = stage.learnt().len();
    agent.close().await;
    let mut agent = stage.another_learning_agent(900).await;
    say(&mut agent, "Hello again.").await;
    settled(&mut agent).await;
    assert_eq!(stage.learnt().len(), runs + 1, "only its own turn");
}

/// EXTRACT-8: ending waits for what runs; whoever does not want to wait ends it at once.
#[tokio::test]
async fn whoever_does_not_want_to_wait_ends_it_at_once() {
    let stalls = format!("[[fault]]\nwhen = {{ visible = \"{TASK}\" }}\nstall = true\n{GOOD}");
    let stage = Stage::new(&stalls).await;
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "We deploy on Mondays.").await;
    let stop = CancellationToken::new();
    stop.cancel();
    let began = tokio::time::Instant::now();
    agent.finish_learning(&stop).await.unwrap();
    agent.close().await;
    assert!(began.elapsed() < std::time::Duration::from_secs(2));
}

/// MEM-7, EXTRACT-1: a memory that the user edits while it is being changed keeps the user's edit.
#[tokio::test]
async fn a_memory_the_user_edits_meanwhile_keeps_the_edit() {
    let edits = r##"
        [[rule]]
        name = "gives up"
        when = { visible = "Beside the conversation, write down", result = "Read it again|Saved" }
        say = "Done."
        [[rule]]
        name = "edits"
        when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`"], result = "On Tuesdays" }
        call = [{ tool = "Edit", input = { file_path = "{{ dir }}/known.md", old_string = "On Tuesdays.", new_string = "On Mondays." } }]
        [[rule]]
        name = "reads"
        when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`"] }
        call = [{ tool = "Read", input = { file_path = "{{ dir }}/known.md" } }]
    "##;
    for meanwhile in [false, true] {
        let slow =
            "[[fault]]\nwhen = { visible = \"Beside the conversation\", result = \"On Tuesdays\" }\ndelay_ms = 300\n";
        let stage = Stage::new(&format!("{slow}{edits}{GOOD}")).await;
        stage.remember("known.md", "How things are deployed", "On Tuesdays.");
        let mut agent = stage.learning_agent(None).await;
        say(&mut agent, "No, we deploy on Mondays.").await;
        if meanwhile {
            while learning_requests(&stage).len() < 2 {
                tokio::task::yield_now().await;
            }
            let file = stage.memories().join("known.md");
            let text = std::fs::read_to_string(&file).unwrap().replace("On Tuesdays.", "On Tuesdays. I add this.");
            std::fs::write(&file, text).unwrap();
        }
        settled(&mut agent).await;
        let text = std::fs::read_to_string(stage.memories().join("known.md")).unwrap();
        assert_eq!(text.contains("I add this."), meanwhile, "{text}");
        assert_eq!(text.contains("On Mondays."), !meanwhile, "{text}");
    }
}

/// EXTRACT-7: the model hears of what was saved with the user's next words, so that "forget that" works; a memory it
/// writes empty is gone, with its line.
#[tokio::test]
async fn forget_that_works() {
    let forgets = r##"
        [[rule]]
        name = "forgotten"
        when = { user = "forget that", result = "Removed" }
        say = "It is forgotten."
        [[rule]]
        name = "empties"
        when = { user = "forget that", visible = "in the background, in (?P<dir>[^:]+): (?P<file>[a-z_]+\\.md)", result = "Deploys" }
        call = [{ tool = "Write", input = { file_path = "{{ dir }}/{{ file }}", content = "" } }]
        [[rule]]
        name = "reads it"
        when = { user = "forget that", visible = "in the background, in (?P<dir>[^:]+): (?P<file>[a-z_]+\\.md)" }
        call = [{ tool = "Read", input = { file_path = "{{ dir }}/{{ file }}" } }]
    "##;
    let stage =
        Stage::new(&format!("{}{forgets}[[rule]]\nname = \"answers\"\nsay = \"Good.\"\n", rules_only(GOOD))).await;
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    assert!(stage.memories().join("deploys_monday.md").exists());
    let turn = say(&mut agent, "Please forget that.").await;
    assert_eq!(turn.text, "It is forgotten.");
    assert_eq!(names(&stage.memories()), ["MEMORY.md"]);
    assert_eq!(std::fs::read_to_string(stage.memories().join("MEMORY.md")).unwrap(), "");
}

/// SEC-2: what was saved can be taken back, from the changes that were kept.
#[tokio::test]
async fn what_was_learnt_can_be_taken_back() {
    let stage = Stage::new(GOOD).await;
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    let run = stage.learnt()[0].run.clone().unwrap();
    let store = memory::Store::open(stage.memories(), IndexUpkeep::Kept).unwrap();
    stage.home().changes(&stage.memories()).undo(&run, None, &store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(names(&stage.memories()), ["MEMORY.md"]);
    let events = stage.events.lock().unwrap();
    assert!(events.iter().any(|event| matches!(event, Event::Extracted(_))));
}
