//! What a session leaves behind, as people see it: notices, taking back, private stretches, leaving, switches.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::stage::{Stage, piped, run};
use crate::terminal::{DOWN, ENTER, ESC, SIZES, Terminal, ctrl};

/// An agent that saves when deploys happen; all else is answered with a word.
const MODEL: &str = r##"
    [[rule]]
    name = "learnt"
    when = { visible = "Beside the conversation, write down", result = "Saved" }
    say = "Saved."
    [[rule]]
    name = "knows it already"
    when = { visible = "Beside the conversation, write down", result = "Read it before" }
    say = "Nothing new."
    [[rule]]
    name = "learns"
    when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`", "(?s).*deploy on (?P<day>\\w+)s"] }
    call = [{ tool = "Write", input = { file_path = "{{ dir }}/deploys.md", content = "---\nname: Deploys\ndescription: When this project is deployed\ntype: project\n---\n\nReleases go out on {{ day }}s.\n" } }]
    [[rule]]
    name = "nothing to learn"
    when = { visible = "Beside the conversation, write down" }
    say = "Nothing to save."
    [[rule]]
    name = "answers"
    say = "Understood."
"##;

const STALLS: &str = "[[fault]]\nwhen = { visible = \"Beside the conversation\" }\nstall = true\ntimes = 9\n";
const FREELY: &str = r#"{"extractShare": 0}"#;

fn memory(stage: &Stage) -> PathBuf {
    let ran = run(stage.cairn().args(["memory", "path"]));
    PathBuf::from(ran.stdout.trim())
}

fn learning_requests(stage: &Stage) -> usize {
    let requests = stage.simulator.requests();
    requests.iter().filter(|request| request.to_string().contains("Beside the conversation, write down")).count()
}

/// What the ledger has of learning, in dollars.
fn spent_on_learning(stage: &Stage) -> f64 {
    let stats = run(stage.cairn().args(["stats", "--json"])).stdout;
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    stats["today"]["spent"]["kinds"]["extract"]["usd"].as_f64().unwrap_or_default()
}

fn deploys(stage: &Stage) -> bool {
    memory(stage).join("deploys.md").exists()
}

/// EXTRACT-7, EXTRACT-1: what was saved is told, and one key shows it and takes it back, with its line in the index.
#[test]
fn what_was_saved_is_told_and_one_key_takes_it_back() {
    let stage = Stage::new(MODEL);
    let mut terminal = Terminal::start_with(&stage, &["--settings", FREELY]);
    terminal.keys(&ctrl('s'));
    terminal.shows("nothing was learnt in this session yet");
    terminal.say("we deploy on Mondays");
    terminal.rests("saved 1 memory: deploys.md (Ctrl-S: look, change, take back)");
    terminal.keys(&ctrl('s'));
    terminal.shows("What was learnt:");
    terminal.keys(ENTER);
    terminal.shows("take back");
    terminal.keys(ENTER);
    terminal.rests("Releases go out on Mondays.");
    terminal.keys(&format!("{}{ENTER}", ctrl('s')));
    terminal.shows("take back");
    terminal.keys(&format!("{DOWN}{ENTER}"));
    terminal.holds("Change the memory deploys.md:");
    terminal.keys(&ctrl('u'));
    terminal.keys(&format!("{}{ENTER}", ctrl('s')));
    terminal.shows("take back");
    terminal.keys(&format!("{DOWN}{DOWN}{ENTER}"));
    terminal.rests("deploys.md is forgotten");
    assert!(!deploys(&stage));
    assert_eq!(std::fs::read_to_string(memory(&stage).join("MEMORY.md")).unwrap(), "");
    terminal.leave();
}

/// BUDGET-3, EXTRACT-7: what learning costs and how it is turned off is said after the first run, and never again.
#[test]
fn learning_is_announced_once() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(MODEL);
        for (message, is_first) in [("we deploy on Mondays", true), ("good evening", false)] {
            let mut cairn = stage.cairn();
            let mut terminal = Terminal::open(cairn.args(["--settings", FREELY]).env("TERM", "xterm"), columns, lines);
            terminal.until("a prompt", |screen| screen.has_prompt());
            let before = learning_requests(&stage);
            terminal.say(message);
            terminal.until("learning", |screen| {
                let is_done =
                    if is_first { screen.contains("saved 1 memory") } else { learning_requests(&stage) > before };
                is_done && !screen.is_working()
            });
            let words = terminal.everything().split_whitespace().collect::<Vec<_>>().join(" ");
            let is_announced = words.contains("this run cost $N.") && words.contains("extract false` turns it off");
            assert_eq!(is_announced, is_first, "{words}");
            terminal.leave();
        }
    }
}

/// EXTRACT-7, SEC-2: the event log has in one line what learning used and did: tokens, cache, rounds, time, memories saved, those
/// of the team among them, and writes that were denied.
#[test]
fn what_learning_used_and_did_is_in_the_event_log() {
    let model = r##"
        [[rule]]
        when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`"], missing = "Saved" }
        call = [
            { tool = "Write", input = { file_path = "{{ dir }}/deploys.md", content = "---\nname: Deploys\ndescription: When this project is deployed\ntype: project\n---\n\nReleases go out on Mondays.\n" } },
            { tool = "Write", input = { file_path = "{{ dir }}/team/staging.md", content = "---\nname: Staging\ndescription: Where staging runs\ntype: reference\n---\n\nStaging listens on port nine thousand.\n" } },
            { tool = "Write", input = { file_path = "{{ project }}/elsewhere.md", content = "x" } },
        ]
        [[rule]]
        when = { visible = "Beside the conversation, write down" }
        say = "Saved."
        [[rule]]
        say = "Understood."
    "##;
    let stage = Stage::new(model);
    let file = stage.config().join("events.jsonl");
    let settings = serde_json::json!({"extractShare": 0, "eventLog": file}).to_string();
    let mut terminal = Terminal::start_with(&stage, &["--settings", &settings]);
    terminal.say("we deploy on Mondays");
    terminal.rests("saved 2 memories");
    terminal.leave();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let extracted: Vec<_> = lines.iter().filter(|line| line["event"] == "extracted").collect();
    assert_eq!(extracted.len(), 1, "{text}");
    let line = extracted[0];
    let counts = ["rounds", "saved", "saved_team", "removed", "denied", "denied_writes"].map(|key| line[key].as_u64());
    assert_eq!(counts, [2, 2, 1, 0, 1, 1].map(Some), "{line}");
    assert!(line["messages"].as_u64() > Some(0) && line["duration_ms"].is_u64() && line["failed"].is_null(), "{line}");
    let used = ["output", "cache_read"].map(|key| line["usage"][key].as_u64());
    assert!(used.iter().all(|tokens| *tokens > Some(0)), "{line}");
    assert!(!stage.project().join("elsewhere.md").exists());
}

/// EXTRACT-7: what was saved as a session was left is known when it goes on: one key shows it, and the model is told, so that
/// "forget that" works. The screen says that it is forgotten, and the line below what all of it has cost.
#[test]
fn a_session_that_goes_on_knows_what_was_learnt_in_it() {
    let forgetting = r##"
        [[rule]]
        when = { user = "forget that", result = "Removed" }
        say = "Gone."
        [[rule]]
        when = { user = "forget that", tool = "Read", visible = "saved in the background, in (?P<dir>[^:]+): deploys.md" }
        call = [{ tool = "Write", input = { file_path = "{{ dir }}/deploys.md", content = "" } }]
        [[rule]]
        when = { user = "forget that", visible = "saved in the background, in (?P<dir>[^:]+): deploys.md" }
        call = [{ tool = "Read", input = { file_path = "{{ dir }}/deploys.md" } }]
    "##;
    let stage = Stage::new(&format!("{forgetting}{MODEL}"));
    let mut terminal = Terminal::start_with(&stage, &["--extract"]);
    terminal.say("we deploy on Mondays");
    terminal.rests("Understood.");
    terminal.keys(&format!("/exit{ENTER}"));
    assert_eq!(terminal.ended(), 0);
    assert!(deploys(&stage));
    let mut terminal = Terminal::start_with(&stage, &["--continue"]);
    terminal.keys(&ctrl('s'));
    terminal.shows("What was learnt:");
    terminal.keys(ESC);
    terminal.until("it closes", |screen| !screen.contains("What was learnt:"));
    terminal.say("forget that");
    terminal.rests("memory forgotten: deploys.md");
    terminal.rests("Gone.");
    assert!(!deploys(&stage));
    terminal.keys(&format!("{}{ENTER}", ctrl('s')));
    terminal.shows("take back");
    terminal.keys(&format!("{DOWN}{DOWN}{ENTER}"));
    terminal.rests("deploys.md is forgotten");
    terminal.leave();
}

/// BUDGET-1: the line below the prompt and `/cost` tell the same: what was learnt beside the conversation is in both, as soon
/// as it is over.
#[test]
fn the_line_below_the_prompt_counts_what_was_learnt() {
    let stage = Stage::new(MODEL);
    let mut terminal = Terminal::start_with(&stage, &["--settings", FREELY]);
    terminal.say("we deploy on Mondays");
    terminal.rests("saved 1 memory: deploys.md");
    terminal.keys(&format!("/cost{ENTER}"));
    let cost = terminal.until("what it cost", |screen| screen.contains("budget"));
    let shown = cost.text();
    let after = |words: &str| {
        let rest = shown.split(words).nth(1).unwrap_or_else(|| panic!("{words} in {shown}"));
        rest.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(after("% context left ·"), after("\ncost"), "{shown}");
    let line = shown.lines().next_back().unwrap();
    assert!(line.contains("today $") && line.contains(" background"), "{shown}");
    terminal.leave();
}

/// EXTRACT-8: leaving does not wait for what is left to learn. A request that is under way is stopped, stands in the ledger with
/// what was answered, and is no failure of the turn. The next session learns from the turn, once.
#[test]
fn leaving_waits_for_nothing_and_the_next_session_learns_it() {
    let stalls = STALLS.replace("times = 9", "cut_after = 3\ntimes = 1");
    for (settings, fault, begun) in [("{}", "", 0), (FREELY, stalls.as_str(), 1)] {
        let stage = Stage::new(&format!("{fault}{MODEL}"));
        let mut terminal = Terminal::start_with(&stage, &["--settings", settings]);
        terminal.say("we deploy on Mondays");
        terminal.rests("Understood.");
        let until = Instant::now() + Duration::from_secs(10);
        while begun > 0 && spent_on_learning(&stage) == 0.0 && Instant::now() < until {
            std::thread::yield_now();
        }
        let began = Instant::now();
        terminal.keys(&format!("/exit{ENTER}"));
        assert_eq!(terminal.ended(), 0);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(!terminal.everything().contains("any key leaves"));
        assert_eq!((learning_requests(&stage), deploys(&stage)), (begun, false), "{settings}");
        let spent = spent_on_learning(&stage);
        assert_eq!(spent > 0.0, begun > 0, "{spent}");
        let log = std::fs::read_to_string(&stage.session_files()[0]).unwrap();
        assert!(!log.contains("\"extract-failed\"") && !log.contains("\"extracted\""), "{log}");

        let mut terminal = Terminal::start_with(&stage, &["--settings", settings]);
        terminal.say("hello there");
        terminal.rests("saved 1 memory: deploys.md");
        assert!(deploys(&stage) && spent_on_learning(&stage) > spent);
        terminal.leave();
        let mut terminal = Terminal::start_with(&stage, &["--settings", settings, "--extract"]);
        terminal.say("hello again");
        terminal.rests("Understood.");
        terminal.leave();
        let requests = stage.simulator.requests();
        let saves = |request: &&serde_json::Value| request["messages"].to_string().contains("Saved");
        assert_eq!(requests.iter().filter(saves).count(), 1, "nothing is learnt twice");
    }
}

/// EXTRACT-8: who asks for it with a flag waits for what is being learnt, is told so, and can leave with a key all the same.
#[test]
fn whoever_asks_for_it_waits_for_what_is_being_learnt() {
    let stage = Stage::new(MODEL);
    let mut terminal = Terminal::start_with(&stage, &["--extract"]);
    terminal.say("we deploy on Mondays");
    terminal.rests("Understood.");
    terminal.keys(&format!("/exit{ENTER}"));
    assert_eq!(terminal.ended(), 0);
    assert!(deploys(&stage), "it was waited for");
    assert!(terminal.everything().contains("saved 1 memory: deploys.md (cairn memory log: look, take back)"));

    let stage = Stage::new(&format!("{STALLS}{MODEL}"));
    let mut terminal = Terminal::start_with(&stage, &["--extract"]);
    terminal.say("we deploy on Mondays");
    terminal.rests("Understood.");
    terminal.keys(&format!("/exit{ENTER}"));
    terminal.shows("writing down what was learnt; any key leaves");
    let began = Instant::now();
    terminal.keys("x");
    assert_eq!(terminal.ended(), 0);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(!deploys(&stage));
}

/// EXTRACT-8: a signal does not wait for anything that is being learnt.
#[test]
fn a_signal_ends_it_at_once() {
    let stage = Stage::new(&format!("{STALLS}{MODEL}"));
    let mut terminal = Terminal::start_with(&stage, &["--settings", FREELY]);
    terminal.say("we deploy on Mondays");
    terminal.rests("Understood.");
    let until = Instant::now() + Duration::from_secs(10);
    while learning_requests(&stage) == 0 && Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(learning_requests(&stage), 1);
    let began = Instant::now();
    let process = rustix::process::Pid::from_raw(terminal.process().cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert_eq!(terminal.ended(), 143);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// EXTRACT-8: killed while it learns, the next session learns what was left, file and index are in step, and no process is
/// left.
#[test]
fn what_a_killed_session_left_is_learnt_by_the_next() {
    let stage = Stage::new(&format!("{}{MODEL}", STALLS.replace("times = 9", "times = 1")));
    let mut terminal = Terminal::start_with(&stage, &["--settings", FREELY]);
    terminal.say("we deploy on Mondays");
    terminal.rests("Understood.");
    let until = Instant::now() + Duration::from_secs(10);
    while learning_requests(&stage) == 0 && Instant::now() < until {
        std::thread::yield_now();
    }
    let process = rustix::process::Pid::from_raw(terminal.process().cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    terminal.ended();
    let out = piped(&stage, &["--extract", "--settings", FREELY], "hello there\n");
    assert!(out.contains("saved 1 memory: deploys.md"), "{out}");
    assert!(std::fs::read_to_string(memory(&stage).join("MEMORY.md")).unwrap().contains("(deploys.md)"));
}

/// EXTRACT-1: nothing is learnt from what is said in private; the status line says so.
#[test]
fn what_is_said_in_private_is_not_learnt() {
    let stage = Stage::new(MODEL);
    let mut terminal = Terminal::start_with(&stage, &["--extract", "--settings", FREELY]);
    terminal.keys(&format!("/private{ENTER}"));
    terminal
        .until("it says so", |screen| screen.contains("private: nothing is learnt") && screen.contains("· private"));
    terminal.say("we deploy on Mondays");
    terminal.rests("Understood.");
    terminal.keys(&format!("/private off{ENTER}"));
    terminal.shows("no longer private");
    terminal.keys(&format!("/exit{ENTER}"));
    assert_eq!((terminal.ended(), learning_requests(&stage)), (0, 0));
}

/// CONF-2, EXTRACT-1: runs without a terminal learn only where a flag or a setting says so, and the answer comes first.
#[test]
fn runs_without_a_terminal_learn_where_they_are_told_to() {
    for (args, learns) in [
        (&["-p", "we deploy on Mondays"][..], false),
        (&["-p", "we deploy on Mondays", "--extract"][..], true),
        (&["-p", "we deploy on Mondays", "--settings", r#"{"extractHeadless": true}"#][..], true),
        (&["-p", "we deploy on Mondays", "--extract", "--bare"][..], false),
    ] {
        let stage = Stage::new(MODEL);
        let ran = run(stage.cairn().args(args));
        assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Understood."), "{args:?} {ran:?}");
        assert_eq!(deploys(&stage), learns, "{args:?}");
    }
    let stage = Stage::new(MODEL);
    let ran = run(stage.cairn().args(["-p", "we deploy on Mondays", "--extract"]).env("CLAUDE_CODE_REMOTE", "1"));
    assert_eq!((ran.code, learning_requests(&stage)), (Some(0), 0));
}

/// CONF-2: every switch of learning does what it says.
#[test]
fn every_switch_of_learning_does_what_it_says() {
    let said = "we deploy on Mondays\nthanks\n";
    for (settings, requests) in [
        (r#"{"extractShare": 0}"#, 4), // one that saves and is done, and one that finds it saved
        (r#"{"extract": false}"#, 0),
        (r#"{"autoMemoryEnabled": false}"#, 0),
        (r#"{"dailyLog": true}"#, 0),
        (r#"{"extractShare": 0, "extractEvery": 2}"#, 2),
        (r#"{"extractShare": 1}"#, 2), // all of it at the end
        (r#"{"extractShare": 0, "extractExcludes": ["**"]}"#, 0),
        (r#"{"extractShare": 0, "extractExcludes": ["elsewhere/**"]}"#, 4),
        (r#"{"extractShare": 0, "extractExcludes": ["../.."]}"#, 0), // what is not understood excludes all
        (r#"{"extractShare": 0, "extractGate": true}"#, 2),          // thanks is no sign
        (r#"{"extractShare": 0, "budget": {"usdPerDay": 0}}"#, 0),
    ] {
        let stage = Stage::new(MODEL);
        piped(&stage, &["--extract", "--settings", settings], said);
        assert_eq!(learning_requests(&stage), requests, "{settings}");
    }
}

/// SEC-2, DREAM-5: what agents changed is listed, shown and taken back from the command line.
#[test]
fn what_agents_changed_is_listed_and_taken_back() {
    let stage = Stage::new(MODEL);
    piped(&stage, &["--extract"], "we deploy on Mondays\n");
    let log = run(stage.cairn().args(["memory", "log", "--diff"])).stdout;
    assert!(log.contains("-extract-") && log.contains("made deploys.md"), "{log}");
    assert!(log.contains("+Releases go out on Mondays."), "{log}");
    let json: serde_json::Value =
        serde_json::from_str(&run(stage.cairn().args(["memory", "log", "--json"])).stdout).unwrap();
    let id = json[0]["id"].as_str().unwrap();
    assert_eq!((&json[0]["agent"], &json[0]["changes"][0]["before"]), (&"extract".into(), &serde_json::Value::Null));
    assert_eq!(run(stage.cairn().args(["memory", "undo", "nonsense"])).code, Some(1));
    let ran = run(stage.cairn().args(["memory", "undo", &id[..id.len() - 2]]));
    assert!(ran.code == Some(0) && ran.stderr.contains("deploys.md was new and has been removed"), "{ran:?}");
    assert!(!deploys(&stage));
}

/// CONF-2: learning that is switched off while a session runs is off from the next turn on.
#[test]
fn learning_can_be_switched_off_while_a_session_runs() {
    let stage = Stage::new(MODEL);
    let settings = stage.config().join("settings.json");
    std::fs::create_dir_all(stage.config()).unwrap();
    std::fs::write(&settings, r#"{"extractShare": 0}"#).unwrap();
    let mut terminal = Terminal::start_with(&stage, &["--extract"]);
    std::fs::write(&settings, r#"{"extractShare": 0, "extract": false}"#).unwrap();
    terminal.say("we deploy on Mondays");
    terminal.rests("Understood.");
    terminal.leave();
    assert_eq!(learning_requests(&stage), 0);
}

/// SHELF-2: a memory is not edited into one that holds a secret.
#[test]
fn an_edit_that_brings_in_a_secret_is_refused() {
    let stage = Stage::new(MODEL);
    assert_eq!(
        run(stage.cairn().args(["memory", "add", "Token", "--type", "reference", "--body", "In the vault."])).code,
        Some(0)
    );
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD2fG4");
    let ran = run(stage.cairn().args(["memory", "edit", "token.md", "--body", &format!("It is {token}")]));
    assert!(ran.code != Some(0) && ran.stderr.contains("github-pat") && !ran.stderr.contains(&token[4..]), "{ran:?}");
    assert!(std::fs::read_to_string(memory(&stage).join("token.md")).unwrap().contains("In the vault."));
}

/// CONF-2, MEM-4: without an index none is kept or loaded and the prompt has no step for it; the part on past sessions comes
/// with its switch.
#[test]
fn the_index_and_the_search_of_the_past_have_switches() {
    let stage = Stage::new(MODEL);
    let settings = r#"{"skipIndex": true, "searchPastContext": true}"#;
    let ran = run(stage.cairn().args(["-p", "we deploy on Mondays", "--extract", "--settings", settings]));
    assert_eq!((ran.code, deploys(&stage)), (Some(0), true), "{ran:?}");
    assert!(!memory(&stage).join("MEMORY.md").exists());
    let system = |request: usize| stage.simulator.requests()[request]["system"].to_string();
    assert!(
        !system(0).contains("is the index: a line for each memory") && system(0).contains("Searching past context")
    );
    run(stage.cairn().args(["-p", "hello"]));
    let last = stage.simulator.requests().len() - 1;
    assert!(
        system(last).contains("is the index: a line for each memory")
            && !system(last).contains("Searching past context")
    );
}

/// SEC-2: where the sandbox holds, the learning agent's commands that only read run in it; no other runs anywhere.
#[test]
fn commands_of_the_learning_agent_look_and_run_in_the_sandbox() {
    let looks = r##"
        [[rule]]
        name = "done"
        when = { visible = "Beside the conversation, write down", result = "was not run|do not run" }
        say = "Done."
        [[rule]]
        name = "looks"
        when = { visible = "Beside the conversation, write down" }
        call = [
            { tool = "Bash", input = { command = "cat note.txt; touch made" } },
            { tool = "Bash", input = { command = "cat note.txt" } },
            { tool = "Bash", input = { command = "cat ../secret.txt" } },
        ]
    "##;
    let stage = Stage::new(&format!("{looks}{MODEL}"));
    stage.write("note.txt", "what the note says\n");
    std::fs::write(stage.project().parent().unwrap().join("secret.txt"), "the secret text").unwrap();
    assert_eq!(run(stage.cairn().args(["-p", "hello", "--extract"])).code, Some(0));
    assert!(!stage.project().join("made").exists());
    let answers = stage.simulator.requests().last().unwrap()["messages"].to_string();
    let holds = !answers.contains("no sandbox can be enforced");
    assert_eq!(answers.contains("what the note says"), holds, "{answers}");
    assert!(!answers.contains("the secret text"), "{answers}");
    let ended = run(stage.cairn().args(["stats"]));
    assert_eq!(ended.code, Some(0));
}

/// INBOX-1: what was learnt since the last session is said at the start of the next, once, and a key looks at it and drops it.
#[test]
fn what_was_learnt_since_the_last_session_is_shown_at_the_start() {
    let stage = Stage::new(MODEL);
    let ran = run(stage.cairn().args(["-p", "we deploy on Mondays", "--extract"]));
    assert_eq!((ran.code, deploys(&stage)), (Some(0), true), "{ran:?}");
    let mut terminal = Terminal::start(&stage);
    terminal.shows("1 memory was learnt since your last session: deploys.md");
    terminal.keys(&ctrl('s'));
    terminal.shows("What was learnt:");
    terminal.keys(ENTER);
    terminal.shows("take back");
    terminal.keys(&format!("{DOWN}{DOWN}{ENTER}"));
    terminal.rests("deploys.md is forgotten");
    assert!(!deploys(&stage));
    terminal.leave();
    let mut terminal = Terminal::start(&stage);
    terminal.rests("/help shows commands");
    assert!(!terminal.screen().contains("since your last session"), "it is said once");
    terminal.leave();
}

/// MEM-7, SEC-1, SHELF-2: where the home and the config home are links, the model saves memories without being asked, and no
/// secret, with the mode, the index line and the origin that they have anywhere.
#[test]
fn a_home_behind_links_has_the_same_guards() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let saves = |text: &str| {
        format!(
            "[[rule]]\nwhen = {{ user = 'remember', system = \"They live in `(?P<dir>[^`]+)`\", missing = 'Saved|Not saved' }}\ncall = [{{ tool = 'Write', input = {{ file_path = '{{{{ dir }}}}/note.md', content = \"---\\nname: Note\\ndescription: d\\ntype: project\\n---\\n{text}\\n\" }} }}]\n"
        )
    };
    let token = format!("It is ghp_{}.", "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD2fG4");
    for (text, saved) in [("The freeze begins in May.", true), (token.as_str(), false)] {
        let stage = Stage::new(&format!("{}{MODEL}", saves(text)));
        let (real, home) = (stage.config().with_file_name("real"), stage.config().with_file_name("home"));
        std::fs::create_dir_all(real.join("dotfiles")).unwrap();
        symlink(&real, &home).unwrap();
        symlink(home.join("dotfiles"), stage.config()).unwrap();
        let mut cairn = stage.cairn();
        cairn.env("HOME", &home).args(["-p", "remember that the freeze begins in May"]);
        let ran = run(&mut cairn);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let file = memory(&stage).join("note.md");
        assert_eq!(file.exists(), saved, "{ran:?}");
        if saved {
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            assert!(std::fs::read_to_string(&file).unwrap().contains("agent: conversation"));
            assert!(std::fs::read_to_string(memory(&stage).join("MEMORY.md")).unwrap().contains("note.md"));
        }
    }
}
