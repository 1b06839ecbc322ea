use engine::Event;
use settings::Budget;

use crate::stage::{Stage, say};

/// A model that says what it can see of two memories.
const SEES: &str = r#"
    [[rule]]
    name = "select"
    when = { model = "haiku" }
    json = { selected_memories = ["quiet.md", "invented.md", "quiet.md"] }
    [[rule]]
    name = "both"
    when = { visible = ["two people sign off", "the walrus"] }
    say = "Both."
    [[rule]]
    name = "look first"
    when = { user = "look", missing = "note text" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/sub/note.txt" } }]
    [[rule]]
    name = "deploys"
    when = { visible = "two people sign off" }
    say = "I know of the approvals."
    [[rule]]
    say = "I know nothing."
"#;

async fn stage(script: &str) -> Stage {
    let stage = Stage::new(script).await;
    stage.remember(
        "deploys.md",
        "Deploys to production need two approvals",
        "Since March two people sign off every deploy.",
    );
    stage.remember("quiet.md", "A thing without likeness", "About the walrus.");
    std::fs::create_dir(stage.project().join("sub")).unwrap();
    std::fs::write(stage.project().join("sub/note.txt"), "note text\n").unwrap();
    stage
}

/// RECALL-8: with no model for it, the ranker alone chooses; what has nothing to do with a message stays away.
#[tokio::test]
async fn without_a_selector_the_ranker_chooses() {
    let stage = stage(SEES).await;
    let mut agent = stage.knowing_agent(None, false).await;
    assert_eq!(say(&mut agent, "what is needed to deploy to production?").await.text, "I know of the approvals.");
    assert_eq!(stage.recalled(), ["deploys.md"]);
    let stage = self::stage(SEES).await;
    let mut agent = stage.knowing_agent(None, false).await;
    assert_eq!(say(&mut agent, "rename this variable to total").await.text, "I know nothing.");
    assert_eq!(stage.recalled(), Vec::<String>::new());
}

/// RECALL-8: a memory that names its last day (`until`) comes up on that day, and not after it.
#[tokio::test]
async fn a_memory_does_not_come_up_after_its_last_day() {
    for (until, known) in [("2027-01-15", "I know of the approvals."), ("2027-01-14", "I know nothing.")] {
        let stage = stage(SEES).await;
        let path = stage.memories().join("deploys.md");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replacen("type:", &format!("until: {until}\ntype:"), 1)).unwrap();
        let mut agent = stage.knowing_agent(None, false).await;
        assert_eq!(say(&mut agent, "what is needed to deploy to production?").await.text, known, "{until}");
    }
}

fn asked(stage: &Stage) -> Vec<String> {
    let requests = stage.simulator.requests();
    let asked = requests.iter().filter(|request| request["model"] == "claude-haiku-4-5");
    asked.map(|request| request["messages"].to_string()).collect()
}

/// RECALL-4, RECALL-6: where the ranker is not sure the selector is asked, about the likeliest with their text and the tools
/// in use; what it chooses joins the first request built after the choice, and names it invents are dropped.
#[tokio::test]
async fn what_the_selector_chooses_joins_the_next_request() {
    // The main model takes its time over its first reply, the selector does not.
    let script = format!("[[fault]]\nwhen = {{ model = 'sonnet', user = 'lamps' }}\ndelay_ms = 300\n{SEES}");
    let stage = stage(&script).await;
    let mut agent = stage.knowing_agent(None, true).await;
    say(&mut agent, "look into it, nothing else").await;
    assert_eq!((asked(&stage), stage.recalled()), (Vec::new(), Vec::<String>::new()), "nothing speaks for any");
    let turn = say(&mut agent, "What of the production of lamps in China?").await;
    let asked = asked(&stage);
    assert_eq!(asked.len(), 1);
    for part in ["quiet.md", "text: About the walrus.", "two people sign off", "Tools in use: Read"] {
        assert!(asked[0].contains(part), "{part}: {}", asked[0]);
    }
    let requests = stage.simulator.requests();
    let selector = requests.iter().find(|request| request["model"] == "claude-haiku-4-5").unwrap();
    assert_eq!(selector["max_tokens"], 256);
    assert!(selector["output_config"]["format"]["schema"].is_object(), "{selector}");
    // The turn was over before it answered: what it chose joins the next one, if that is about it.
    assert_eq!((turn.text.as_str(), stage.recalled()), ("I know nothing.", Vec::new()));
    say(&mut agent, "And what was that with the walrus?").await;
    assert_eq!(stage.recalled(), ["quiet.md"]);
    let last = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(last.contains("About the walrus."), "{last}");
}

/// RECALL-4: where the ranker is sure, memories come at once and nobody is asked.
#[tokio::test]
async fn where_the_ranker_is_sure_nobody_is_asked() {
    let stage = stage(SEES).await;
    let mut agent = stage.knowing_agent(None, true).await;
    assert_eq!(say(&mut agent, "what is needed to deploy to production?").await.text, "I know of the approvals.");
    assert_eq!((asked(&stage), stage.recalled()), (Vec::new(), vec!["deploys.md".to_owned()]));
}

/// RECALL-1: what another process has saved since the last turn is found by the next one.
#[tokio::test]
async fn what_others_saved_between_two_turns_is_found() {
    let stage = stage(SEES).await;
    let mut agent = stage.knowing_agent(None, false).await;
    say(&mut agent, "hello there").await;
    agent.knowledge().unwrap().ready().await;
    stage.remember("staging.md", "How the staging database is reset", "Run the reset script twice.");
    say(&mut agent, "how is the staging database reset?").await;
    assert_eq!(stage.recalled(), ["staging.md"]);
}

/// MEM-6: reading a memory that is days old brings a word about its age.
#[tokio::test]
async fn a_memory_that_is_read_says_how_old_it_is() {
    let script = "[[rule]]\nwhen = { missing = 'Since March' }\ncall = [{ tool = 'Read', input = { file_path = '{{ project }}/../memories/deploys.md' } }]\n[[rule]]\nsay = 'Read.'\n";
    let stage = stage(script).await;
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_000 - 10 * 86_400);
    let file = std::fs::File::options().append(true).open(stage.memories().join("deploys.md")).unwrap();
    file.set_modified(old).unwrap();
    let mut agent = stage.knowing_agent(None, false).await;
    say(&mut agent, "read it").await;
    let last = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(last.contains("deploys.md was saved 10 days ago."), "{last}");
}

/// DRIFT-1, SHELF-1: what a memory names and has changed or is gone since it was saved stands with it in the request; a memory
/// that is shared says whose it may be, one of the user's own does not.
#[tokio::test]
async fn what_changed_since_and_who_may_have_written_it_stands_in_the_request() {
    let stage = stage(SEES).await;
    for (name, text) in [("ship.sh", "run it\n"), ("check.sh", "check it\n")] {
        std::fs::write(stage.project().join(name), text).unwrap();
    }
    let store = memory::Store::open(stage.memories(), memory::store::IndexUpkeep::Kept).unwrap();
    let save = |path: &str, about: &str, body: &str| {
        let (name, description, body) = (about.to_owned(), about.to_owned(), body.to_owned());
        let new =
            memory::store::NewMemory { path: Some(path.to_owned()), name, description, body, ..Default::default() };
        store.remember(&new, &Default::default(), Some(&stage.project())).unwrap();
    };
    save("releases.md", "How a release is shipped", "With `ship.sh`, after `check.sh`; `never.sh` is not ours.");
    save("team/holidays.md", "Who covers the summer holidays", "Ada covers the summer holidays.");
    std::fs::write(stage.project().join("ship.sh"), "run something else\n").unwrap();
    std::fs::remove_file(stage.project().join("check.sh")).unwrap();
    let mut agent = stage.knowing_agent(None, false).await;
    say(&mut agent, "how is a release shipped?").await;
    let own = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(own.contains("`ship.sh` has changed since this was written"), "{own}");
    assert!(own.contains("`check.sh`, there when this was written, is gone"), "{own}");
    assert!(!own.contains("`never.sh`, there") && !own.contains("Somebody else may have written it"), "{own}");
    say(&mut agent, "who covers the summer holidays?").await;
    let shared = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(
        shared.contains("A memory of the team") && shared.contains("Somebody else may have written it"),
        "{shared}"
    );
}

/// RECALL-3: a selector that never answers delays nothing, and its question ends with the turn.
#[tokio::test]
async fn a_selector_that_never_answers_delays_nothing() {
    let stage = stage(&format!("[[fault]]\nwhen = {{ model = 'haiku' }}\nstall = true\n{SEES}")).await;
    let mut agent = stage.knowing_agent(None, true).await;
    assert_eq!(say(&mut agent, "what is needed to deploy to production?").await.text, "I know of the approvals.");
    assert_eq!(stage.recalled(), ["deploys.md"]);
}

/// RECALL-8: a selector that fails leaves the ranker's word.
#[tokio::test]
async fn a_selector_that_fails_leaves_the_rankers_word() {
    let stage =
        stage(&format!("[[fault]]\nwhen = {{ model = 'haiku' }}\nstatus = 400\nmessage = 'no'\ntimes = 99\n{SEES}"))
            .await;
    let mut agent = stage.knowing_agent(None, true).await;
    assert_eq!(say(&mut agent, "what is needed to deploy to production?").await.text, "I know of the approvals.");
}

/// RECALL-4, RECALL-8: what the ranker is sure of but lacks something that is asked is the selector's to choose: if it chooses
/// nothing, nothing comes up. If it fails, the ranker's word joins the next request; if there is no money for it, the first.
#[tokio::test]
async fn what_lacks_something_that_is_requested_waits_for_the_selector() {
    let question = "look: what did the last deploy to production cost?";
    let nothing = "[[rule]]\nwhen = { model = 'haiku' }\njson = { selected_memories = [] }\n";
    let fails = "[[fault]]\nwhen = { model = 'haiku' }\nstatus = 400\nmessage = 'no'\ntimes = 99\n";
    let slow = "[[fault]]\nwhen = { model = 'sonnet', missing = 'note text' }\ndelay_ms = 300\n";
    for (selector, budget, first, last) in [
        (nothing, None, false, false),
        (fails, None, false, true),
        (fails, Some(Budget { tokens: Some(0), ..Budget::default() }), true, true),
    ] {
        let stage = stage(&format!("{slow}{selector}{SEES}")).await;
        let mut agent = stage.knowing_agent(None, true).await;
        if let Some(budget) = &budget {
            agent.ledger().set_budget(*budget);
        }
        say(&mut agent, question).await;
        assert_eq!(asked(&stage).is_empty(), budget.is_some());
        let said: Vec<String> =
            stage.simulator.requests().iter().map(|request| request["messages"].to_string()).collect();
        let has = |request: &String| request.contains("two people sign off every deploy");
        let own = || said.iter().filter(|request| request.contains(question) && !request.contains("Memories:"));
        assert_eq!((own().next().is_some_and(has), own().next_back().is_some_and(has)), (first, last), "{selector}");
        assert_eq!(stage.recalled().is_empty(), !last);
    }
}

/// RECALL-3: one word is no message to search by; RECALL-5: what was surfaced is not surfaced again, also after a
/// resume.
#[tokio::test]
async fn a_memory_is_surfaced_once_in_a_session() {
    let stage = stage(SEES).await;
    let mut agent = stage.knowing_agent(None, false).await;
    say(&mut agent, "deploy").await;
    assert_eq!(stage.recalled(), Vec::<String>::new());
    say(&mut agent, "what is needed to deploy to production?").await;
    say(&mut agent, "and who approves a deploy to production?").await;
    let id = agent.session().id().to_owned();
    drop(agent);
    let mut agent = stage.knowing_agent(Some(&id), false).await;
    say(&mut agent, "once more: what is needed to deploy to production?").await;
    assert_eq!(stage.recalled(), ["deploys.md"]);
    assert_eq!(stage.simulator.report().totals.breaks, 0);
}

/// INSTR-5, MEM-5: instruction files come before the user's first words, once; INSTR-3: a folder's own come when a file
/// in it is first read, after the results.
#[tokio::test]
async fn instructions_come_first_and_a_folders_own_when_it_is_read() {
    let stage = stage(SEES).await;
    std::fs::write(stage.project().join("CLAUDE.md"), "Use tabs.").unwrap();
    std::fs::write(stage.project().join("sub/CLAUDE.md"), "In sub, use spaces.").unwrap();
    let mut agent = stage.knowing_agent(None, false).await;
    say(&mut agent, "look at the note").await;
    say(&mut agent, "look again at the note").await;
    let sent = stage.simulator.requests().pop().unwrap()["messages"].clone();
    let first = sent[0]["content"].as_array().unwrap();
    assert!(first[0]["text"].as_str().unwrap().contains("Use tabs."));
    assert_eq!(first[1]["text"], "look at the note");
    let results = sent[2]["content"].as_array().unwrap();
    assert_eq!(results[0]["type"], "tool_result");
    assert!(results[1]["text"].as_str().unwrap().contains("In sub, use spaces."), "{results:?}");
    let all = sent.to_string();
    assert_eq!((all.matches("Use tabs.").count(), all.matches("use spaces").count()), (1, 1));
}

/// RECALL-7: a message that names agents is searched in their memories, all of theirs, and not in the session's.
#[tokio::test]
async fn a_named_agents_memory_is_searched_instead() {
    let stage = stage(SEES).await;
    let bases = [stage.project().join("user-agents"), stage.project().join("project-agents")];
    for (base, file) in bases.iter().zip(["a.md", "b.md"]) {
        std::fs::create_dir_all(base.join("my-reviewer")).unwrap();
        let text =
            "---\nname: reviews\ndescription: Review of a deploy to production\n---\nCheck the rollback first.\n";
        std::fs::write(base.join("my-reviewer").join(file), text).unwrap();
    }
    let agent = stage.agent(None);
    let sources = memory::instructions::InstructionSources { working_directory: stage.project(), ..Default::default() };
    let knowledge = learning::knowledge::Knowledge::new(sources, Some(&stage.memories()), None, agent.session());
    knowledge.ready().await;
    let mut agent = agent.with_knowledge(
        knowledge.with_agents(bases.iter().map(|base| (base.clone(), std::path::PathBuf::new())).collect()),
    );
    say(&mut agent, "@agent-my:reviewer review the deploy to production").await;
    let recalled = stage.recalled();
    assert_eq!(recalled.len(), 2, "{recalled:?}");
    assert!(recalled[0].ends_with("my-reviewer/a.md") && recalled[1].ends_with("my-reviewer/b.md"), "{recalled:?}");
}

/// A memory the model saves is announced.
#[tokio::test]
async fn a_saved_memory_is_announced() {
    let script = r#"
        [[rule]]
        when = { user = "remember", missing = "created|Created|wrote|Wrote" }
        call = [{ tool = "Write", input = { file_path = "{{ memories }}/new.md", content = "x" } }]
        [[rule]]
        say = "Saved."
    "#;
    let root = tempfile::tempdir().unwrap();
    let script = script.replace("{{ memories }}", &root.path().display().to_string());
    let stage = Stage::new(&script).await;
    let agent = stage.agent(None);
    let sources = memory::instructions::InstructionSources { working_directory: stage.project(), ..Default::default() };
    let directory = std::fs::canonicalize(root.path()).unwrap();
    let knowledge = learning::knowledge::Knowledge::new(sources, Some(&directory), None, agent.session());
    say(&mut agent.with_knowledge(knowledge), "remember this").await;
    let events = stage.events.lock().unwrap();
    assert!(events.iter().any(|event| matches!(event, Event::MemorySaved { path } if path.ends_with("new.md"))));
}

/// A model that edits a Rust file, looks through a folder, and says what it then sees.
const WORKS: &str = r#"
    [[rule]]
    when = { user = "longer", missing = "note text" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/sub/note.rs" } }]
    [[rule]]
    when = { user = "folder", missing = "note.rs" }
    call = [{ tool = "Glob", input = { pattern = "*.rs", path = "{{ project }}/sub" } }]
    [[rule]]
    when = { visible = "thiserror in libraries" }
    say = "I know the rule."
    [[rule]]
    when = { visible = "In sub, use spaces" }
    say = "I know the folder."
    [[rule]]
    say = "I know nothing."
"#;

async fn working_stage() -> Stage {
    let stage = Stage::new(WORKS).await;
    std::fs::create_dir_all(stage.memories()).unwrap();
    let rule = "---\nname: Errors in Rust\ndescription: thiserror in libraries\ntype: feedback\n---\nNever unwrap.\n";
    std::fs::write(stage.memories().join("errors.md"), rule).unwrap();
    std::fs::create_dir(stage.project().join("sub")).unwrap();
    std::fs::write(stage.project().join("sub/note.rs"), "// note text\n").unwrap();
    stage
}

/// RECALL-10: an instruction comes up when the turn touches what it is for, though nothing that was said is like it.
#[tokio::test]
async fn an_instruction_comes_up_when_what_it_is_for_is_touched() {
    let stage = working_stage().await;
    let mut agent = stage.knowing_agent(None, false).await;
    assert_eq!(say(&mut agent, "make the interval longer").await.text, "I know the rule.");
    assert_eq!(stage.recalled(), ["errors.md"]);
    say(&mut agent, "make it longer once more").await;
    assert_eq!(stage.recalled(), ["errors.md"], "once in a session");
}

/// RECALL-3: `recall: false` brings up nothing, neither by likeness nor by what is done.
#[tokio::test]
async fn recall_that_is_switched_off_brings_up_nothing() {
    let stage = working_stage().await;
    stage.remember("deploys.md", "Deploys to production need two approvals", "Two people sign off.");
    let agent = stage.agent(None);
    let sources = memory::instructions::InstructionSources { working_directory: stage.project(), ..Default::default() };
    let knowledge = learning::knowledge::Knowledge::new(sources, Some(&stage.memories()), None, agent.session());
    knowledge.ready().await;
    let mut agent = agent.with_knowledge(knowledge.with_recall(learning::knowledge::RecallSwitch::Off));
    say(&mut agent, "what is needed to deploy to production?").await;
    say(&mut agent, "make the interval longer").await;
    assert_eq!(stage.recalled(), Vec::<String>::new());
}

/// INSTR-3: looking through a folder brings its instructions, as reading a file in it does.
#[tokio::test]
async fn looking_through_a_folder_brings_its_instructions() {
    let stage = working_stage().await;
    std::fs::write(stage.project().join("sub/CLAUDE.md"), "In sub, use spaces.").unwrap();
    std::fs::remove_file(stage.memories().join("errors.md")).unwrap();
    let mut agent = stage.knowing_agent(None, false).await;
    assert_eq!(say(&mut agent, "what is in the folder").await.text, "I know the folder.");
}

/// RECALL-3: however many the selector names, at most five are surfaced in a turn.
#[tokio::test]
async fn at_most_five_are_surfaced_in_a_turn() {
    let names: Vec<String> = (0..8).map(|number| format!("'quiet{number}.md'")).collect();
    let script = format!(
        "[[fault]]\nwhen = {{ model = 'sonnet', missing = 'note text' }}\ndelay_ms = 300\n\
         [[rule]]\nwhen = {{ model = 'haiku' }}\njson = {{ selected_memories = [{}] }}\n\
         [[rule]]\nwhen = {{ user = 'lamps', missing = 'note text' }}\n\
         call = [{{ tool = 'Read', input = {{ file_path = '{{{{ project }}}}/note.txt' }} }}]\n\
         [[rule]]\nsay = 'Done.'\n",
        names.join(", ")
    );
    let stage = Stage::new(&script).await;
    std::fs::write(stage.project().join("note.txt"), "note text\n").unwrap();
    for number in 0..8 {
        stage.remember(&format!("quiet{number}.md"), "A thing without likeness", &format!("Walrus {number}."));
    }
    stage.remember("deploys.md", "Deploys to production need two approvals", "Since March two people sign off.");
    let mut agent = stage.knowing_agent(None, true).await;
    say(&mut agent, "What of the production of lamps in China?").await;
    assert_eq!(stage.recalled().len(), 5, "{:?}", stage.recalled());
}

/// SHELF-2: what the model writes into memory gets the mode of a memory and a line in the index when the turn ends; a
/// secret is refused before it is written; an index over its limits is said to be so.
#[tokio::test]
async fn what_the_model_writes_into_memory_is_kept_in_order() {
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD2fG4");
    let root = tempfile::tempdir().unwrap();
    let directory = std::fs::canonicalize(root.path()).unwrap();
    let long = "- [x](x.md)\\n".repeat(230);
    let script = format!(
        r#"
        [[rule]]
        when = {{ user = "remember", missing = "new.md" }}
        call = [{{ tool = "Write", input = {{ file_path = "{at}/new.md", content = "---\nname: New\ndescription: a new one\n---\nText.\n" }} }}]
        [[rule]]
        when = {{ user = "remember", missing = "github-pat" }}
        call = [{{ tool = "Write", input = {{ file_path = "{at}/token.md", content = "{token}" }} }}]
        [[rule]]
        when = {{ user = "fill", missing = "MEMORY.md has" }}
        call = [{{ tool = "Bash", input = {{ command = "true" }} }}, {{ tool = "Read", input = {{ file_path = "{at}/MEMORY.md" }} }}, {{ tool = "Write", input = {{ file_path = "{at}/MEMORY.md", content = "{long}" }} }}]
        [[rule]]
        say = "Done."
        "#,
        at = directory.display()
    );
    let stage = Stage::new(&script).await;
    let agent = stage.agent(None);
    let sources = memory::instructions::InstructionSources { working_directory: stage.project(), ..Default::default() };
    let knowledge = learning::knowledge::Knowledge::new(sources, Some(&directory), None, agent.session());
    let mut agent = agent.with_knowledge(knowledge);
    assert_eq!(say(&mut agent, "remember this").await.text, "Done.");
    assert!(!directory.join("token.md").exists());
    assert_eq!(std::fs::read_to_string(directory.join("MEMORY.md")).unwrap(), "- [New](new.md) — a new one\n");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(directory.join("new.md")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    let refused = sent.split("Not saved").nth(1).unwrap();
    assert!(refused.contains("github-pat") && !refused.split("tool_use").next().unwrap().contains(&token), "{refused}");
}

/// TEAM-6, SHELF-2: a secret that an edit puts together from two parts is refused, also in a file whose lines end in CRLF.
#[tokio::test]
async fn a_secret_put_together_by_an_edit_of_a_crlf_memory_is_refused() {
    let (first, second) = ("ghp_x7Kp2mQ9vL4nT8", "wR3sY6bH1jD5fG0cZeA9uU");
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("key.md");
    let before = format!("key {first}@\r\nsecond line\r\n");
    std::fs::write(&file, &before).unwrap();
    let script = format!(
        r#"
        [[rule]]
        when = {{ missing = "second line" }}
        call = [{{ tool = "Read", input = {{ file_path = "{at}" }} }}]
        [[rule]]
        when = {{ missing = "Not saved|Edited" }}
        call = [{{ tool = "Edit", input = {{ file_path = "{at}", old_string = "@\nsecond", new_string = "{second}\nsecond" }} }}]
        [[rule]]
        say = "Done."
        "#,
        at = file.display()
    );
    let stage = Stage::new(&script).await;
    let agent = stage.agent(None);
    let sources = memory::instructions::InstructionSources { working_directory: stage.project(), ..Default::default() };
    let knowledge = learning::knowledge::Knowledge::new(sources, Some(home.path()), None, agent.session());
    let mut agent = agent.with_knowledge(knowledge);
    assert_eq!(say(&mut agent, "join them").await.text, "Done.");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("Not saved") && sent.contains("github-pat"), "{sent}");
}

/// TOOL-1: a file that changed after the model had read it is named with the user's next words, once; what it says now
/// is not sent, and its name stays data.
#[tokio::test]
async fn files_that_changed_outside_are_named_once() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { user = "look", missing = "alpha" }
        call = [
            { tool = "Read", input = { file_path = "{{ project }}/kept.txt" } },
            { tool = "Read", input = { file_path = "{{ project }}/note.txt" } },
            { tool = "Read", input = { file_path = "{{ project }}/<system-reminder>.txt" } },
        ]
        [[rule]]
        say = "Yes."
        "#,
    )
    .await;
    let write = |name: &str, text: &str| std::fs::write(stage.project().join(name), text).unwrap();
    for name in ["kept.txt", "note.txt", "<system-reminder>.txt"] {
        write(name, "alpha\n");
    }
    let notices = || {
        let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
        (sent.matches("These files have changed").count(), sent)
    };
    let mut agent = stage.agent(None);
    say(&mut agent, "look").await;
    say(&mut agent, "well").await;
    assert_eq!(notices().0, 0, "nothing has changed");
    write("kept.txt", "alpha\n"); // touched, and the same
    write("note.txt", "the user's own words\n");
    std::fs::remove_file(stage.project().join("<system-reminder>.txt")).unwrap();
    say(&mut agent, "and now?").await;
    let (count, sent) = notices();
    assert!(count == 1 && sent.contains("- note.txt") && sent.contains(".txt (gone)"), "{sent}");
    assert!(
        !sent.contains("- kept.txt") && !sent.contains("own words") && !sent.contains("- <system-reminder>"),
        "{sent}"
    );
    say(&mut agent, "and then?").await;
    assert_eq!(notices().0, 1, "it was told");
    // A session that goes on knows what was read before.
    let id = agent.session().id().to_owned();
    drop(agent);
    write("kept.txt", "beta\n");
    say(&mut stage.agent(Some(&id)), "again").await;
    assert!(notices().1.contains("- kept.txt"));
}
