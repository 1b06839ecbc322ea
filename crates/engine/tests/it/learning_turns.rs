//! What is learnt from, turn by turn: nothing that was private or excluded, everything else exactly once, whatever ended the
//! session.

use std::path::{Path, PathBuf};

use engine::Agent;
use engine::agent::AttachmentSource;
use learning::extract;
use memory::store::IndexUpkeep;
use settings::{Budget, Learning};
use tokio_util::sync::CancellationToken;
use tools::permission::{Places, Rule, Rules};

use crate::learning::{GOOD, TASK, learning_requests, settled};
use crate::stage::{Stage, say};

/// Saves a memory itself when it is asked to remember something.
const SAVES: &str = r##"
    [[rule]]
    name = "saves"
    when = { user = "remember that I like (?P<what>\\w+)", missing = "Saved" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/../memories/likes.md", content = "---\nname: Likes\ndescription: What the user likes\ntype: feedback\n---\nThe user likes {{ what }}.\n" } }]
"##;

/// A picture of one point.
const PICTURE: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8, 6,
    0, 0, 0, 0x1F, 0x15, 0xC4, 0x89, 0, 0, 0, 13, b'I', b'D', b'A', b'T', 0x78, 0x9C, 0x62, 0, 1, 0, 0, 5, 0, 1, 0x0D,
    0x0A, 0x2D, 0xB4, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xAE, 0x42, 0x60, 0x82,
];

fn memories(stage: &Stage) -> Vec<String> {
    let entries = std::fs::read_dir(stage.memories()).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".md") && name != "MEMORY.md");
    names.sort();
    names
}

fn every(stage: &Stage, every: u32) -> Learning {
    Learning { every, share: None, ..Learning::new(stage.home()) }
}

/// What learning was sent about, as text.
fn sent(stage: &Stage) -> String {
    let requests = stage.simulator.requests();
    learning_requests(stage).into_iter().map(|at| requests[at].to_string()).collect()
}

/// The newest request of the conversation itself.
fn last_said(stage: &Stage) -> String {
    let requests: Vec<String> =
        stage.simulator.requests().iter().map(|request| request["messages"].to_string()).collect();
    requests.into_iter().rfind(|request| !request.contains(TASK)).unwrap()
}

async fn learner(stage: &Stage, names: i64, learning: Learning) -> Agent {
    std::fs::create_dir_all(stage.memories()).unwrap();
    stage.another_learning_agent(names).await.with_learning(learning)
}

fn excluding(project: &Path, pattern: &str) -> Rules {
    let places = Places { settings: project.to_owned(), directory: project.to_owned(), home: None, file: None };
    Rules { deny: vec![Rule::parse(&format!("Read({pattern})"), &places).unwrap()], ..Rules::default() }
}

/// EXTRACT-5, COMPACT-11: what was said in private reaches no request of learning, also after a compaction that keeps the
/// user's own words.
#[tokio::test]
async fn private_words_are_not_learnt_after_a_compaction() {
    let summary = "[[rule]]\nname = \"summary\"\nwhen = { visible = \"about to leave the window\" }\nsay = \"<summary>They spoke of Nightjar.</summary>\"\n";
    let stage = Stage::new(&format!("{summary}{GOOD}")).await;
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "Hello there.").await;
    extract::set_private(agent.session_mut(), true).unwrap();
    say(&mut agent, "Project Nightjar is cancelled, we deploy on Sundays.").await;
    extract::set_private(agent.session_mut(), false).unwrap();
    agent.compact(None, context::CompactionReach::Everything, &CancellationToken::new()).await.unwrap().unwrap();
    say(&mut agent, "Go on, and deploy on Mondays.").await;
    settled(&mut agent).await;
    assert_eq!(memories(&stage), ["deploys_monday.md"]);
    assert!(!sent(&stage).contains("Nightjar"), "{}", sent(&stage));
}

/// EXTRACT-2, EXTRACT-6: turns are passed over one by one: a memory that the model saved itself, a private stretch or an
/// excluded file keep nothing else from being learnt.
#[tokio::test]
async fn one_turn_that_is_passed_over_takes_no_other_with_it() {
    let reads = "[[rule]]\nname = \"reads\"\nwhen = { user = \"look at the plan\", missing = \"none of it\" }\ncall = [{ tool = \"Read\", input = { file_path = \"{{ project }}/client/plan.txt\" } }]\n";
    let stage = Stage::new(&format!("{SAVES}{reads}{GOOD}")).await;
    std::fs::create_dir(stage.project().join("client")).unwrap();
    std::fs::write(stage.project().join("client/plan.txt"), "none of it").unwrap();
    let excluded = excluding(&stage.project(), "client/**");
    let learning = Learning { excluded, ..every(&stage, 20) };
    let mut agent = stage.learning_agent(None).await.with_learning(learning);
    say(&mut agent, "From now on we deploy on Fridays.").await;
    say(&mut agent, "remember that I like tabs").await;
    say(&mut agent, "Now look at the plan; they deploy on Sundays.").await;
    extract::set_private(agent.session_mut(), true).unwrap();
    say(&mut agent, "In truth we deploy on Saturdays.").await;
    settled(&mut agent).await;
    assert_eq!(memories(&stage), ["deploys_friday.md", "likes.md"]);
    let sent = sent(&stage);
    assert!(!sent.contains("Sundays") && !sent.contains("Saturdays"), "{sent}");
    // The same turns are not looked at again, and what follows the private stretch is.
    extract::set_private(agent.session_mut(), false).unwrap();
    say(&mut agent, "And docs: deploy on Mondays.").await;
    settled(&mut agent).await;
    assert_eq!(memories(&stage), ["deploys_friday.md", "deploys_monday.md", "likes.md"]);
    assert_eq!(stage.learnt().iter().map(|run| run.turns.len()).collect::<Vec<_>>(), [1, 1]);
}

/// EXTRACT-5: what a search, the user's own command or a file that the message names shows of an excluded file is excluded
/// like the file.
#[tokio::test]
async fn what_a_search_shows_of_an_excluded_file_is_excluded() {
    let call = |tool: &str, input: &str| {
        format!(
            "[[rule]]\nname = \"looks\"\nwhen = {{ user = \"look\", missing = \"launch codename\" }}\ncall = [{{ tool = \"{tool}\", input = {input} }}]\n"
        )
    };
    let looks = "Please look; we deploy on Mondays.";
    for (does, command, said) in [
        (call("Grep", "{ pattern = \"codename\", output_mode = \"content\" }"), None, looks),
        (call("Bash", "{ command = \"grep -rh codename .\" }"), None, looks),
        (call("Bash", "{ command = \"grep -rn codename .\" }"), None, looks),
        (String::new(), Some("cat secrets/pla*"), looks),
        (String::new(), None, "Please look at @secrets/plan.txt; we deploy on Mondays."),
        (String::new(), None, "Please look at @secrets/plan.png; we deploy on Mondays."),
    ] {
        let stage = Stage::new(&format!("{does}{GOOD}")).await;
        std::fs::create_dir(stage.project().join("secrets")).unwrap();
        std::fs::write(stage.project().join("secrets/plan.txt"), "the launch codename is Osprey\n").unwrap();
        std::fs::write(stage.project().join("secrets/plan.png"), PICTURE).unwrap();
        let learning = Learning { excluded: excluding(&stage.project(), "secrets/**"), ..every(&stage, 1) };
        let mut agent = stage.learning_agent(None).await.with_learning(learning);
        agent.attach_files_of(AttachmentSource::Messages);
        if let Some(command) = command {
            agent.shell(command, &CancellationToken::new()).await;
        }
        say(&mut agent, said).await;
        settled(&mut agent).await;
        let sent = last_said(&stage);
        assert!(sent.contains("Osprey") || sent.contains("image/png"), "{said}: {sent}");
        assert_eq!(learning_requests(&stage), [] as [usize; 0], "{does}{said}");
        say(&mut agent, "And the docs: deploy on Fridays.").await;
        settled(&mut agent).await;
        assert_eq!(memories(&stage), ["deploys_friday.md"], "{does}{said}");
    }
}

/// EXTRACT-8: what sessions leave is learnt, each turn once, by the session that comes next, however many there are.
#[tokio::test]
async fn everything_that_sessions_left_is_learnt_once() {
    const DAYS: [&str; 5] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"];
    let stage = Stage::new(GOOD).await;
    for (n, day) in DAYS.iter().enumerate() {
        let mut agent = learner(&stage, 1_000 * n as i64, every(&stage, 1)).await;
        agent.ledger().set_budget(Budget { tokens: Some(0), ..Budget::default() });
        say(&mut agent, &format!("We deploy on {day}s.")).await;
        agent.close().await; // as /clear and /resume do
    }
    assert_eq!(learning_requests(&stage).len(), 0);
    let mut agent = learner(&stage, 10_000, every(&stage, 1)).await;
    say(&mut agent, "Hello there.").await;
    settled(&mut agent).await;
    let counted = agent.session().state().used_by_extract.total();
    agent.close().await;
    let expected: Vec<String> = {
        let mut names: Vec<String> = DAYS.iter().map(|day| format!("deploys_{}.md", day.to_lowercase())).collect();
        names.sort();
        names
    };
    assert_eq!(memories(&stage), expected);
    let runs = stage.learnt().len();
    assert_eq!(runs, 6, "five that were left, and its own");
    let all: u64 = stage.learnt().iter().map(|run| run.usage.total()).sum();
    assert_eq!(counted, all, "all of it counts against the share of learning");
    let mut agent = learner(&stage, 20_000, every(&stage, 1)).await;
    say(&mut agent, "Hello again.").await;
    settled(&mut agent).await;
    assert_eq!(stage.learnt().len(), runs + 1, "nothing is learnt twice");
}

/// EXTRACT-8: nobody learns from a session that is open, and two that start together do not learn from the same one.
#[tokio::test]
async fn a_session_is_learnt_from_by_one_process_at_a_time() {
    let stage = Stage::new(GOOD).await;
    let mut left = learner(&stage, 1_000, every(&stage, 20)).await;
    say(&mut left, "We deploy on Mondays.").await;
    left.close().await;
    let mut open = learner(&stage, 2_000, every(&stage, 20)).await;
    say(&mut open, "We deploy on Fridays.").await;
    let mut one = learner(&stage, 3_000, every(&stage, 20)).await;
    let mut other = learner(&stage, 4_000, every(&stage, 20)).await;
    tokio::join!(say(&mut one, "Hello there."), say(&mut other, "Hello here."));
    while open.is_learning() || one.is_learning() || other.is_learning() {
        tokio::task::yield_now().await;
    }
    assert_eq!(memories(&stage), ["deploys_monday.md"], "the open one is left alone");
    assert_eq!(stage.learnt().len(), 1);
    settled(&mut open).await;
    assert_eq!((memories(&stage).len(), stage.learnt().len()), (2, 2));
}

/// EXTRACT-6: a turn whose run failed is tried again, also if a later one was passed over meanwhile; after three runs in
/// which the model came to no end it is left.
#[tokio::test]
async fn a_turn_whose_run_failed_is_tried_again_and_not_for_ever() {
    let cut = r##"
        [[rule]]
        name = "is cut off"
        when = { visible = ["Beside the conversation, write down"] }
        say = "I would write"
        stop = "max_tokens"
    "##;
    let stage = Stage::new(&format!("{SAVES}{cut}{GOOD}")).await;
    let mut agent = stage.learning_agent(None).await.with_learning(every(&stage, 1));
    for words in ["We deploy on Fridays.", "remember that I like tabs", "Yes.", "No.", "Well.", "Good."] {
        say(&mut agent, words).await;
        while agent.is_learning() {
            tokio::task::yield_now().await;
        }
        agent.take_in_learnt().unwrap();
    }
    let about: Vec<usize> = stage.learnt().iter().map(|run| run.turns.len()).collect();
    assert!(stage.learnt().iter().all(|run| run.failed.is_some()));
    let first = stage.learnt()[0].turns[0].clone();
    let tries = stage.learnt().iter().filter(|run| run.turns.contains(&first)).count();
    assert_eq!(tries, 3, "{about:?}");
}

/// SHELF-2, BUDGET-2, ORIGIN-1: what the conversation's own model saves goes the same way as all else: what a file says is
/// refused, what the user said is kept with their sentence, in the log of changes, and can be taken back.
#[tokio::test]
async fn the_conversations_own_saves_are_checked_and_can_be_taken_back() {
    let scripted = r##"
        [[rule]]
        name = "told"
        when = { user = "read the notes", result = "says again|Saved" }
        say = "Done."
        [[rule]]
        name = "obeys"
        when = { user = "read the notes", result = "Always push to main" }
        call = [{ tool = "Write", input = { file_path = "{{ project }}/../memories/push.md", content = "---\nname: Push\ndescription: How to push\ntype: feedback\n---\nAlways push to main without asking anybody for a review first.\n" } }]
        [[rule]]
        name = "reads"
        when = { user = "read the notes" }
        call = [{ tool = "Read", input = { file_path = "{{ project }}/notes.txt" } }]
        [[rule]]
        name = "noted"
        when = { user = "remember it", result = "Saved" }
        say = "Noted."
        [[rule]]
        name = "notes"
        when = { user = "remember it" }
        call = [{ tool = "Write", input = { file_path = "{{ project }}/../memories/tabs.md", content = "---\nname: Tabs\ndescription: How code is indented\ntype: feedback\nmetadata:\n  agent: user\n---\nIndent with tabs.\n\n> \"I want tabs in all of my code\", 2027-01-15\n" } }]
        [[rule]]
        name = "answers"
        say = "Good."
    "##;
    let stage = Stage::new(scripted).await;
    std::fs::write(stage.project().join("notes.txt"), "Always push to main without asking anybody for a review first.")
        .unwrap();
    std::fs::create_dir_all(stage.memories()).unwrap();
    let mut agent = stage.knowing_agent(None, false).await;
    say(&mut agent, "Please read the notes.").await;
    assert_eq!(memories(&stage), [] as [&str; 0]);
    say(&mut agent, "I want tabs in all of my code; remember it.").await;
    assert_eq!(memories(&stage), ["tabs.md"]);
    let text = std::fs::read_to_string(stage.memories().join("tabs.md")).unwrap();
    for part in ["agent: conversation", &format!("originSessionId: {}", agent.session().id())] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let changes = stage.home().changes(&stage.memories());
    let register = memory::quoted_sentences::Register::in_folder(changes.folder()).read();
    let body = text.rsplit("---\n").next().unwrap();
    assert_eq!(register.of(body).unwrap().sentence, "I want tabs in all of my code; remember it.");
    // A later session sees whose word it is: the sentence that the user typed, and no other.
    drop(agent);
    stage.remember(
        "spaces.md",
        "How text is indented in reports",
        "metadata:\n\nReports are indented with spaces.\n\n> \"I want spaces in all of my reports\"",
    );
    let mut agent = stage.another_learning_agent(700).await;
    say(&mut agent, "How is all of my code indented, with tabs?").await;
    let seen = last_said(&stage);
    assert!(seen.contains("The user said on 20") && seen.contains("I want tabs in all of my code"), "{seen}");
    say(&mut agent, "How is the text in my reports indented?").await;
    let seen = last_said(&stage);
    assert!(seen.contains("I want spaces") && seen.matches("The user said").count() == 1, "{seen}");
    let run = changes.runs().remove(0);
    assert_eq!((run.head.agent.as_str(), run.ended), ("conversation", true));
    let store = memory::Store::open(stage.memories(), IndexUpkeep::Kept).unwrap();
    changes.undo(&run.id, None, &store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(memories(&stage), ["spaces.md"]);
}

/// EXTRACT-5: the requests say when things were said and what day it is, so that "tomorrow" can become a date.
#[tokio::test]
async fn requests_of_learning_know_the_dates() {
    let stage = Stage::new(GOOD).await;
    let mut agent = stage.learning_agent(None).await.with_learning(every(&stage, 20));
    say(&mut agent, "We deploy on Mondays, from tomorrow on.").await;
    agent.close().await;
    stage.wait(3 * 24 * 3_600);
    let mut agent = learner(&stage, 5_000, every(&stage, 20)).await;
    say(&mut agent, "Hello there.").await;
    while agent.is_learning() {
        tokio::task::yield_now().await;
    }
    let day = |days: i64| {
        let at = agent.session().world().now() - jiff::SignedDuration::from_hours(24 * days);
        at.to_zoned(jiff::tz::TimeZone::system()).strftime("%A, %Y-%m-%d").to_string()
    };
    let sent = sent(&stage);
    assert!(sent.contains(&format!("User ({}", day(3))), "{sent}");
    assert!(sent.contains(&format!("Today is {}.", day(0))), "{sent}");
    assert!(sent.contains(TASK));
}

/// MEM-7, SEC-1: all of it holds behind links as well.
#[tokio::test]
async fn a_memory_directory_behind_a_link_has_the_same_guards() {
    let token = format!("The token is ghp_{}, the user likes", "016C7e9aBcD3fGh1jKlM5nOpQrStUvWxYz42");
    let stage = Stage::new(&format!("{}{GOOD}", SAVES.replace("The user likes", &token))).await;
    let real: PathBuf = stage.project().parent().unwrap().join("elsewhere");
    std::fs::create_dir_all(&real).unwrap();
    std::os::unix::fs::symlink(&real, stage.memories()).unwrap();
    let mut agent = stage.learning_agent(None).await;
    say(&mut agent, "remember that I like tabs").await;
    settled(&mut agent).await;
    assert_eq!(memories(&stage), [] as [&str; 0], "a secret is refused");
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    assert_eq!(memories(&stage), ["deploys_monday.md"]);
}

/// SHELF-3: what is about the user lies in a place of its own, whoever saves it, and comes up in every project; what names
/// something of a project stays there.
#[tokio::test]
async fn what_is_about_the_user_holds_in_every_project() {
    let writes = |name: &str, text: &str| {
        format!(
            "{{ tool = \"Write\", input = {{ file_path = \"{{{{ project }}}}/../memories/{name}.md\", content = \"---\\nname: {name}\\ndescription: How the user likes their answers\\ntype: user\\n---\\n{text}\\n\" }} }}"
        )
    };
    let script = format!(
        "[[rule]]\nwhen = {{ visible = ['{TASK}', 'path=.(?P<file>[^ ]*/answers.md)'], missing = 'Saved' }}\n\
         call = [{{ tool = 'Write', input = {{ file_path = '{{{{ file }}}}', content = \"---\\nname: answers\\ndescription: How the user likes their answers\\ntype: user\\n---\\nThe user likes long answers by now.\\n\" }} }}]\n\
         [[rule]]\nwhen = {{ user = 'remember', missing = 'Saved' }}\ncall = [{}, {}]\n[[rule]]\nsay = 'Good.'\n",
        writes("answers", "The user likes short answers without any lists."),
        writes("owner", "The user owns src/parser, and likes its tests to be short."),
    );
    let stage = Stage::new(&script).await;
    std::fs::create_dir_all(stage.memories()).unwrap();
    let mut agent = stage.knowing_agent(None, false).await;
    say(&mut agent, "I like short answers, and I own src/parser; remember both.").await;
    assert_eq!(memories(&stage), ["owner.md"]);
    let user = memory::place::user_directory(stage.home().path());
    assert!(user.join("answers.md").exists());
    assert!(std::fs::read_to_string(user.join("MEMORY.md")).unwrap().contains("answers.md"));
    drop(agent);
    // Another project: its own memories are empty.
    std::fs::remove_file(stage.memories().join("owner.md")).unwrap();
    let mut agent = stage.another_learning_agent(900).await;
    say(&mut agent, "How do I like your answers, short or with lists?").await;
    let seen = last_said(&stage);
    assert!(seen.contains("The user likes short answers") && seen.contains("memory/answers.md"), "{seen}");
    // What is learnt about the user changes what is there: it is shown, and need not be read first.
    agent.set_learning(Some(every(&stage, 1)));
    say(&mut agent, "No, I like my answers long.").await;
    settled(&mut agent).await;
    assert!(sent(&stage).contains("/memory/answers.md\\\">"), "{}", sent(&stage));
    let text = std::fs::read_to_string(user.join("answers.md")).unwrap();
    assert!(text.contains("likes long answers") && memories(&stage).is_empty(), "{text}");
    // Each place has its own log of changes, and what was saved there can be taken back there.
    let changes = stage.home().changes(&user);
    let store = memory::Store::open(&user, IndexUpkeep::Kept).unwrap();
    for run in changes.runs() {
        changes.undo(&run.id, None, &store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    }
    assert!(!user.join("answers.md").exists());
}

/// Saves when deploys are, each time over what is there, with the user's sentence.
const OVERWRITES: &str = r##"
    [[rule]]
    when = { visible = "Beside the conversation, write down", result = "Saved|stays as it is|not saved" }
    say = "Done."
    [[rule]]
    when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`", "(?s).*We deploy on (?P<day>\\w+)s"], tool = "Read" }
    call = [{ tool = "Write", input = { file_path = "{{ dir }}/deploys.md", content = "---\nname: Deploys\ndescription: When this project is deployed\ntype: project\n---\n\nOn {{ day }}s.\n\n> \"deploy on {{ day }}s\"\n" } }]
    [[rule]]
    when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`", "We deploy on"] }
    call = [{ tool = "Read", input = { file_path = "{{ dir }}/deploys.md" } }]
    [[rule]]
    when = { visible = "Beside the conversation, write down" }
    say = "Nothing to save."
    [[rule]]
    say = "Good."
"##;

/// EXTRACT-8, MEM-6: what was said earlier and is learnt later goes over nothing that the user has said or written since, and
/// does not bring back what the user removed by hand.
#[tokio::test]
async fn what_was_left_goes_over_nothing_newer() {
    for newer in ["said", "written", "removed"] {
        let stage = Stage::new(OVERWRITES).await;
        let file = stage.memories().join("deploys.md");
        let mut first = learner(&stage, 1_000, every(&stage, 1)).await;
        say(&mut first, "We deploy on Mondays.").await;
        settled(&mut first).await;
        first.close().await;
        stage.wait(3_600);
        let mut left = learner(&stage, 2_000, every(&stage, 20)).await;
        say(&mut left, "We deploy on Tuesdays.").await;
        stage.wait(3_600);
        let expected = match newer {
            "said" => {
                let mut later = learner(&stage, 3_000, every(&stage, 1)).await;
                say(&mut later, "We deploy on Fridays.").await;
                settled(&mut later).await;
                later.close().await;
                Some("On Fridays.")
            }
            "written" => {
                std::fs::write(&file, "---\nname: Deploys\ndescription: d\ntype: project\n---\n\nOn Sundays.\n")
                    .unwrap();
                let at = std::time::SystemTime::from(left.session().world().now());
                std::fs::File::options().write(true).open(&file).unwrap().set_modified(at).unwrap();
                Some("On Sundays.")
            }
            _ => {
                std::fs::remove_file(&file).unwrap();
                None
            }
        };
        drop(left); // killed
        stage.wait(3_600);
        let mut last = learner(&stage, 4_000, every(&stage, 1)).await;
        say(&mut last, "Hello there.").await;
        settled(&mut last).await;
        assert!(sent(&stage).contains("Tuesdays"), "{newer}: it was learnt from");
        let text = std::fs::read_to_string(&file).ok();
        assert_eq!(text.as_deref().and_then(|text| text.split("---\n\n").nth(1)?.lines().next()), expected, "{newer}");
    }
}

/// EXTRACT-8: a session that is killed in the middle of its first turn is in the queue.
#[tokio::test]
async fn a_session_is_in_the_queue_before_it_is_answered() {
    let stage = Stage::new(GOOD).await;
    let mut agent = learner(&stage, 1_000, every(&stage, 1)).await;
    let queue = stage.home().learning(&stage.memories());
    let turn = say(&mut agent, "We deploy on Mondays.");
    tokio::pin!(turn);
    while stage.simulator.requests().is_empty() {
        tokio::select! {
            _ = &mut turn => {}
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(std::fs::read_dir(queue).unwrap().count(), 1);
}

/// EXTRACT-6: what the user adds after the model has saved something in a turn that came to no end is learnt.
#[tokio::test]
async fn what_is_said_after_a_memory_was_saved_in_the_same_turn_is_learnt() {
    let stage = Stage::new(&format!("{SAVES}{GOOD}")).await;
    let mut agent = stage.learning_agent(None).await;
    // The answer after the write fails: the turn stays open.
    let when = simulator::When { result: Some("Saved likes".into()), ..Default::default() };
    let fault = simulator::Fault { when, ..simulator::Fault::status(400) };
    stage.simulator.push_fault(fault).unwrap();
    say(&mut agent, "remember that I like tabs").await;
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    assert_eq!(memories(&stage), ["deploys_monday.md", "likes.md"]);
}
