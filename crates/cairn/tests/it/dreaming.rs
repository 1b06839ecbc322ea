//! `cairn dream`, from outside.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::stage::{Ran, Stage, run};
use crate::terminal::{ENTER, Terminal};

const SCRIPT: &str = r#"
    [[rule]]
    name = "merge"
    when = { system = "look after the memories", visible = "(?s)memories lie in `(?P<memory>[^`]+)`", missing = "Saved deploys.md" }
    say = "Both are about deploys."
    call = [
      { tool = "Write", input = { file_path = "{{ memory }}/deploys.md", content = "---\nname: Deploys\ndescription: who signs off\ntype: project\n---\n\nTwo people sign off every deploy, in the channel ops.\n" } },
      { tool = "Remove", input = { file_path = "{{ memory }}/channel.md", replaced_by = "{{ memory }}/deploys.md", reason = "It was half of the rule." } },
    ]

    [[rule]]
    say = "Merged the two."
"#;

fn stage_with(script: &str) -> Stage {
    let stage = Stage::new(script);
    let folder = memory(&stage);
    std::fs::create_dir_all(&folder).unwrap();
    let mut index = String::new();
    for (file, body) in [("deploys.md", "Two people sign off."), ("channel.md", "Sign offs go to the channel ops.")] {
        let head = format!("name: {file}\ndescription: {file}\ntype: project\nmetadata:\n  agent: extract");
        std::fs::write(folder.join(file), format!("---\n{head}\n---\n\n{body}\n")).unwrap();
        index.push_str(&format!("- [{file}]({file}) — {file}\n"));
    }
    std::fs::write(folder.join("MEMORY.md"), index).unwrap();
    stage
}

fn dream(stage: &Stage, args: &[&str]) -> Ran {
    run(stage.cairn().arg("dream").args(args))
}

/// The dreams there were, without what each did.
fn dreams(stage: &Stage) -> Vec<String> {
    let log = dream(stage, &["log"]).stdout;
    log.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect()
}

fn memory(stage: &Stage) -> PathBuf {
    PathBuf::from(run(stage.cairn().args(["memory", "path"])).stdout.trim())
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// DREAM-4, SEC-2: in a session the end of a dream stands in the event log with what it used and did, refused writes too.
#[test]
fn what_a_dream_used_and_did_is_in_the_event_log() {
    let outside = r#"{ tool = "Write", input = { file_path = "{{ project }}/elsewhere.md", content = "x" } },
    ]"#;
    let stage = stage_with(&SCRIPT.replacen("    ]", outside, 1));
    let file = stage.config().join("events.jsonl");
    let settings = serde_json::json!({"eventLog": file}).to_string();
    let mut terminal = Terminal::start_with(&stage, &["--settings", &settings]);
    terminal.keys(&format!("/dream{ENTER}"));
    terminal.shows("Improved 2 memory files.");
    terminal.leave();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = lines.iter().find(|line| line["event"] == "dream" && line["phase"] == "completed").unwrap();
    let counts = ["rounds", "saved", "saved_team", "removed", "denied_writes"].map(|key| line[key].as_u64());
    assert_eq!(counts, [2, 1, 0, 1, 1].map(Some), "{line}");
    assert!(line["usage"]["output"].as_u64() > Some(0) && line["duration_ms"].is_u64(), "{line}");
}

/// DREAM-1: a run without a terminal dreams where that is asked for and due, after the answer; otherwise never.
#[test]
fn a_run_without_a_terminal_dreams_only_where_that_is_asked_for() {
    let stage = stage_with(&format!("[[rule]]\nwhen = {{ user = \"^hello\" }}\nsay = \"Yes.\"\n{SCRIPT}"));
    let settings = r#"{"dreamHours": 1, "dreamSessions": 1}"#;
    let dreamt = || {
        let requests = stage.simulator.requests();
        requests.iter().any(|request| request["system"].to_string().contains("look after the memories"))
    };
    for _ in 0..3 {
        let ran = run(stage.cairn().args(["-p", "hello", "--settings", settings]));
        assert_eq!((ran.stdout.as_str(), dreamt()), ("Yes.\n", false), "{ran:?}");
    }
    let ran = run(stage.cairn().args(["-p", "hello", "--dream", "--settings", r#"{"dreamSessions": 99}"#]));
    assert_eq!((ran.stdout.as_str(), dreamt()), ("Yes.\n", false), "it is not due: {ran:?}");
    let ran = run(stage.cairn().args(["-p", "hello", "--dream", "--settings", settings]));
    assert_eq!((ran.stdout.as_str(), ran.code), ("Yes.\n", Some(0)), "{ran:?}");
    assert!(dreamt() && !memory(&stage).join("channel.md").exists(), "{ran:?}");
    assert!(dream(&stage, &["log"]).stdout.contains("completed"));
}

/// DREAM-4, DREAM-5: dreaming, looking at what it changed, taking it back; for people and as JSON.
#[test]
fn a_dream_is_run_looked_at_and_taken_back() {
    let stage = stage_with(SCRIPT);
    let status = json(&dream(&stage, &["status", "--json"]));
    assert_eq!((status["last"].is_null(), status["due"].as_bool()), (true, Some(false)), "{status}");
    let ran = dream(&stage, &["--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("+Two people sign off every deploy") && ran.stdout.contains("+++ /dev/null"),
        "{ran:?}"
    );
    assert!(memory(&stage).join("channel.md").exists() && dream(&stage, &["log"]).stdout.is_empty());

    let ran = dream(&stage, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains("Improved 2 memory files. Merged the two.") && ran.stderr.contains("Write 1"),
        "{ran:?}"
    );
    assert!(!memory(&stage).join("channel.md").exists());
    let log = dream(&stage, &["log"]).stdout;
    assert!(log.contains("completed") && log.contains("1 changed, 1 removed"), "{log}");
    assert!(
        log.contains("changed  deploys.md") && log.contains("merged   channel.md into deploys.md: It was half"),
        "{log}"
    );
    let diff = dream(&stage, &["diff"]).stdout;
    assert!(diff.contains("-Two people sign off.\n") && diff.contains("--- a/channel.md\n+++ /dev/null"), "{diff}");
    let status = json(&dream(&stage, &["status", "--json"]));
    assert!(status["last"].is_string() && status["running"].is_null(), "{status}");

    let undone = json(&dream(&stage, &["undo", "--json"]));
    assert_eq!(undone["restored"], serde_json::json!(["channel.md", "deploys.md"]), "{undone}");
    assert!(std::fs::read_to_string(memory(&stage).join("deploys.md")).unwrap().contains("Two people sign off.\n"));
    assert!(dream(&stage, &["log"]).stdout.contains("undone"));
    let again = dream(&stage, &["undo"]);
    assert!(again.code != Some(0) && again.stderr.contains("no dream has changed anything"), "{again:?}");
    assert_eq!(dream(&stage, &["diff", "nonsense"]).code, Some(1));
}

/// DREAM-5: what was edited since stays, and is shown.
#[test]
fn an_undo_keeps_what_was_edited_since() {
    let stage = stage_with(SCRIPT);
    assert_eq!(dream(&stage, &[]).code, Some(0));
    let file = memory(&stage).join("deploys.md");
    let mine = "---\nname: Deploys\ndescription: d\ntype: project\n---\n\nThree people, since today.\n";
    std::fs::write(&file, mine).unwrap();
    let ran = dream(&stage, &["undo"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stdout.contains("-Three people, since today.") && ran.stdout.contains("+Two people sign off."),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("restored channel.md"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), mine);
}

/// DREAM-2: ten processes started together: one dreams, the others say why not.
#[test]
fn of_ten_processes_one_dreams() {
    let slow = format!("[[fault]]\nrequest = 1\ndelay_ms = 300\n{SCRIPT}");
    let stage = stage_with(&slow);
    std::fs::create_dir_all(stage.config()).unwrap();
    std::fs::write(stage.config().join("settings.json"), r#"{"dreamSessions": 0}"#).unwrap();
    let spawn = |_| {
        let mut command: Command = stage.cairn();
        command.args(["dream", "--if-due"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = (0..10).map(spawn).collect();
    let said: Vec<String> = running
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stderr).unwrap()
        })
        .collect();
    assert_eq!(said.iter().filter(|said| said.contains("Merged the two.")).count(), 1, "{said:#?}");
    assert_eq!(said.iter().filter(|said| said.starts_with("Not")).count(), 9, "{said:#?}");
    assert_eq!(dreams(&stage).len(), 1);
    assert_eq!(stage.simulator.requests().len(), 2, "the rounds of one dream");
}

/// DREAM-4: a signal stops it within two seconds; nothing counts as dreamt, and nothing is left running.
#[test]
fn a_signal_stops_a_dream() {
    let stage = stage_with("[[fault]]\nstall = true\ntimes = 9\n");
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let seen = stage.simulator.requests().len();
        let mut child = stage.cairn().arg("dream").stderr(Stdio::piped()).spawn().unwrap();
        while stage.simulator.requests().len() == seen {
            std::thread::yield_now();
        }
        let began = std::time::Instant::now();
        Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(began.elapsed().as_secs() < 2, "{signal}: {:?}", began.elapsed());
    }
    assert!(!memory(&stage).join(".consolidate-lock").exists(), "as if it had never been");
    assert!(dream(&stage, &["log"]).stdout.lines().all(|line| line.contains("killed")));
}

/// DREAM-2: killed in the middle, it leaves whole files, an index in step, and nothing in the way of the next.
#[test]
fn a_dream_that_is_killed_leaves_nothing_in_the_way() {
    let stage = stage_with(&format!("[[fault]]\nrequest = 2\nstall = true\n{SCRIPT}"));
    let mut child = stage.cairn().arg("dream").stderr(Stdio::null()).spawn().unwrap();
    while stage.simulator.requests().len() < 2 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(memory(&stage).join(".consolidate-lock").exists() && dream(&stage, &["log"]).stdout.contains("cut off"));
    let diff = dream(&stage, &["diff"]).stdout;
    assert!(diff.contains("+Two people sign off every deploy"), "what it did is known: {diff}");
    let ran = dream(&stage, &[]);
    assert!(ran.code == Some(0) && ran.stderr.contains("Merged the two."), "{ran:?}");
    assert_eq!(run(stage.cairn().args(["memory", "doctor"])).code, Some(0));
}

/// DREAM-1: other projects, by name or all of them; where it is not time, a timer's run does nothing.
#[test]
fn a_timer_goes_through_all_projects() {
    let stage = stage_with(SCRIPT);
    let talk = run(stage.cairn().args(["-p", "hello there"]));
    assert_eq!(talk.code, Some(0), "{talk:?}");
    let before = stage.simulator.requests().len();
    let ran = dream(&stage, &["--all-projects", "--if-due"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("Not yet: 1 of the 5 sessions") && ran.stderr.contains("project"), "{ran:?}");
    assert_eq!(stage.simulator.requests().len(), before, "no request");
    let elsewhere = stage.project().parent().unwrap().to_owned();
    let project = stage.project().display().to_string();
    let ran = run(stage.cairn().current_dir(&elsewhere).args(["dream", "--project", &project]));
    assert!(ran.code == Some(0) && ran.stderr.contains("Merged the two."), "{ran:?}");
    let ran = run(stage.cairn().current_dir(&elsewhere).args(["dream", "--project", "nowhere"]));
    assert!(ran.code != Some(0) && ran.stderr.contains("nowhere"), "{ran:?}");
}

/// DREAM-4, DREAM-5: `/dream` in a session: what dreams did is shown and taken back there; one that runs can be stopped.
#[test]
fn a_session_shows_and_takes_back_what_dreams_did() {
    let stage = stage_with(SCRIPT);
    assert_eq!(dream(&stage, &[]).code, Some(0));
    let shown =
        crate::stage::piped(&stage, &[], "/dream status\n/dream log\n/dream diff\n/dream undo\n/dream nonsense\n");
    for words in [
        "last dream   20",
        "1 changed, 1 removed",
        "-Two people sign off.",
        "restored channel.md",
        "there is no /dream ",
    ] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(memory(&stage).join("channel.md").exists());
    let stage = stage_with("[[fault]]\nstall = true\ntimes = 9\n");
    let shown = crate::stage::piped(&stage, &[], "/dream stop\n/dream\n/dream\n/dream stop\n");
    for words in ["no dream is under way", "dreaming in the background", "a dream is under way", "stopping the dream"] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(!memory(&stage).join(".consolidate-lock").exists());
}

/// DREAM-4: while a dream runs the line below the prompt says so, `/tasks` lists it, and `/dream status` shows what it said
/// and did.
#[test]
fn a_dream_under_way_can_be_watched() {
    let stage = stage_with(&format!("[[fault]]\nrequest = 2\nstall = true\n{SCRIPT}"));
    let mut terminal = Terminal::start(&stage);
    terminal.keys(&format!("/dream{ENTER}"));
    terminal.shows("· dream: updating, round 1");
    terminal.keys(&format!("/tasks{ENTER}"));
    terminal.shows("round 1, Remove 1, Write 1, deploys.md, channel.md touched");
    terminal.keys(&format!("/dream status{ENTER}"));
    terminal.shows("Both are about deploys.");
    terminal.keys(&format!("/dream stop{ENTER}"));
    terminal
        .until("it is over", |screen| screen.contains("the dream was stopped") && !screen.contains("dream: updating"));
    terminal.leave();
}

/// BUDGET-1: where there are no memories and no sessions no model is paid.
#[test]
fn where_there_is_nothing_no_model_is_asked() {
    let stage = Stage::new(SCRIPT);
    for args in [&[][..], &["--dry-run"]] {
        let ran = dream(&stage, args);
        assert!(ran.code == Some(0) && ran.stderr.contains("Not now: there are no memories here"), "{ran:?}");
    }
    assert!(stage.simulator.requests().is_empty() && dream(&stage, &["log"]).stdout.is_empty());
    assert!(!memory(&stage).join(".consolidate-lock").exists(), "as if it had never been");
}

/// DREAM-4: a server that cannot be reached is told of while it is tried again, not only at the end.
#[test]
fn a_dream_that_waits_says_for_what() {
    let stage = stage_with(&format!("[[fault]]\nrequest = 1\nstatus = 529\nretry_after = 0\n{SCRIPT}"));
    let ran = dream(&stage, &[]);
    assert!(ran.code == Some(0) && ran.stderr.contains("waits: ") && ran.stderr.contains("again in"), "{ran:?}");
}

/// DREAM-4: a dream that is over is not under way, so another can be asked for at once; and who asks while another process
/// dreams is told so.
#[test]
fn one_dream_after_another_can_be_asked_for() {
    let stage = stage_with(SCRIPT);
    let mut terminal = Terminal::start(&stage);
    terminal.keys(&format!("/dream log{ENTER}"));
    terminal.shows("There has been no dream here yet");
    terminal.keys(&format!("/dream{ENTER}"));
    terminal.rests("Improved 2 memory files");
    terminal.keys(&format!("/dream stop{ENTER}"));
    terminal.shows("no dream is under way here");
    terminal.keys(&format!("/dream undo{ENTER}"));
    terminal.rests("restored deploys.md");
    let seen = stage.simulator.requests().len();
    terminal.keys(&format!("/dream{ENTER}"));
    terminal.until("the second one has begun", |_| stage.simulator.requests().len() > seen);
    terminal.leave();
    assert_eq!(dreams(&stage).len(), 2);

    let stage = stage_with("[[fault]]\nstall = true\ntimes = 9\n");
    let mut other = stage.cairn().arg("dream").stderr(Stdio::null()).spawn().unwrap();
    while stage.simulator.requests().is_empty() {
        std::thread::yield_now();
    }
    let mut terminal = Terminal::start(&stage);
    terminal.keys(&format!("/dream{ENTER}"));
    terminal.rests("the dream failed: another process is dreaming (pid ");
    terminal.leave();
    other.kill().unwrap();
    other.wait().unwrap();
}

/// DREAM-4, EXTRACT-8: leaving waits for a dream, and says so; a key ends it at once, a signal within two seconds; nothing
/// counts as dreamt, and nothing is left in the way of the next.
#[test]
fn leaving_waits_for_a_dream_and_a_key_or_a_signal_ends_it() {
    let stage = stage_with("[[fault]]\nstall = true\ntimes = 9\n");
    let dreaming = |seen: usize| {
        let mut terminal = Terminal::start(&stage);
        terminal.keys(&format!("/dream{ENTER}"));
        terminal.shows("dreaming in the background");
        while stage.simulator.requests().len() == seen {
            std::thread::yield_now();
        }
        terminal.keys(&format!("/exit{ENTER}"));
        terminal.shows("waiting for a dream; any key leaves");
        (terminal, std::time::Instant::now())
    };
    let (mut terminal, began) = dreaming(0);
    terminal.keys("x");
    assert_eq!(terminal.ended(), 0);
    assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
    let (mut terminal, began) = dreaming(stage.simulator.requests().len());
    Command::new("kill").args(["-TERM", &terminal.process().to_string()]).status().unwrap();
    assert_eq!(terminal.ended(), 143);
    assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
    assert!(!memory(&stage).join(".consolidate-lock").exists(), "as if it had never been");
    let log = dream(&stage, &["log"]).stdout;
    assert!(log.lines().count() == 2 && log.lines().all(|line| line.contains("killed")), "{log}");

    let stage = stage_with(SCRIPT);
    let mut terminal = Terminal::start(&stage);
    terminal.keys(&format!("/dream{ENTER}"));
    terminal.shows("dreaming in the background");
    terminal.keys(&format!("/exit{ENTER}"));
    assert_eq!(terminal.ended(), 0);
    assert!(dream(&stage, &["log"]).stdout.contains("1 changed, 1 removed"), "it was waited for");
}

/// DREAM-1: `--all-projects` finds a project whose sessions all lie elsewhere: in a subdirectory, or in a worktree.
#[test]
fn all_projects_are_found_by_sessions_that_lie_elsewhere() {
    for place in ["sub/folder", "worktree"] {
        let stage = stage_with(SCRIPT);
        let git = |args: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            let ran = Command::new("git").current_dir(stage.project()).args(identity).args(args).output().unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        let directory = match place {
            "worktree" => {
                let other = stage.project().parent().unwrap().join("elsewhere");
                git(&["worktree", "add", "-q", other.to_str().unwrap()]);
                other
            }
            below => stage.project().join(below),
        };
        std::fs::create_dir_all(&directory).unwrap();
        let talk = run(stage.cairn().current_dir(&directory).args(["-p", "hello there"]));
        assert_eq!(talk.code, Some(0), "{talk:?}");
        let ran = dream(&stage, &["--all-projects"]);
        assert!(ran.code == Some(0) && ran.stderr.contains("Merged the two."), "{place}: {ran:?}");
    }
}

/// DREAM-5: what a dry run showed is carried out without a model, and can be taken back like any dream; not where a memory
/// has changed since.
#[test]
fn a_dry_run_can_be_applied() {
    let stage = stage_with(SCRIPT);
    let none = dream(&stage, &["apply"]);
    assert!(none.code != Some(0) && none.stderr.contains("there is nothing to apply here"), "{none:?}");
    let ran = dream(&stage, &["--dry-run"]);
    assert!(ran.stderr.contains("cairn dream apply"), "{ran:?}");
    let asked = stage.simulator.requests().len();
    let ran = dream(&stage, &["apply"]);
    assert!(ran.code == Some(0) && ran.stdout == "changed deploys.md\nremoved channel.md\n", "{ran:?}");
    assert_eq!(stage.simulator.requests().len(), asked, "no model is asked");
    assert!(!memory(&stage).join("channel.md").exists());
    let log = dream(&stage, &["log"]).stdout;
    assert!(log.contains("merged   channel.md into deploys.md: It was half of the rule."), "{log}");
    let again = dream(&stage, &["apply"]);
    assert!(again.code != Some(0) && again.stderr.contains("there is nothing to apply here"), "{again:?}");
    assert_eq!(dream(&stage, &["undo"]).code, Some(0));
    assert!(memory(&stage).join("channel.md").exists());

    // What was taken back is the user's now, so another dream is needed.
    let stage = stage_with(SCRIPT);
    assert_eq!(dream(&stage, &["--dry-run"]).code, Some(0));
    let mine = "---\nname: Channel\ndescription: mine\ntype: project\n---\n\nMine.\n";
    std::fs::write(memory(&stage).join("channel.md"), mine).unwrap();
    let deploys = std::fs::read_to_string(memory(&stage).join("deploys.md")).unwrap();
    let ran = dream(&stage, &["apply"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("no longer as they were in the dry run: channel.md"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(memory(&stage).join("channel.md")).unwrap(), mine);
    assert_eq!(std::fs::read_to_string(memory(&stage).join("deploys.md")).unwrap(), deploys, "all or nothing");
}

/// DREAM-5: a dry run that was killed leaves a copy of the memories only until the next start.
#[test]
fn a_copy_that_a_killed_dry_run_left_is_removed() {
    let stage = stage_with(&format!("[[fault]]\nrequest = 1\nstall = true\n{SCRIPT}"));
    let copies = || {
        let listed = std::fs::read_dir(stage.config().join("cairn/rehearsals")).unwrap();
        listed.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    };
    let mut child = stage.cairn().args(["dream", "--dry-run"]).stderr(Stdio::null()).spawn().unwrap();
    while stage.simulator.requests().is_empty() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(copies(), 1);
    assert_eq!(dream(&stage, &[]).code, Some(0));
    assert_eq!(copies(), 0);
}

/// DREAM-6, TOK-7: every date is that of the place the user is in: in the prompt, in what a dream is told of today and of
/// when something was said, and in the name of the ledger's file.
#[test]
fn dates_are_those_of_the_place() {
    let jiff_date = |hours: i32| {
        let now = jiff::Timestamp::now();
        now.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::Offset::constant(hours as i8))).date().to_string()
    };
    for (zone, hours) in [("Pacific/Kiritimati", 14), ("Pacific/Niue", -11)] {
        if !std::path::Path::new("/usr/share/zoneinfo").join(zone).exists() {
            crate::skipped::skipped("no time zones are installed (tzdata)");
            return;
        }
        let stage = stage_with(&format!("[[rule]]\nwhen = {{ user = \"^hello\" }}\nsay = \"Yes.\"\n{SCRIPT}"));
        let before = jiff_date(hours);
        let cairn = || {
            let mut command = stage.cairn();
            command.env("TZ", zone);
            command
        };
        let talk = run(cairn().args(["-p", "hello, something was said", "--extract"]));
        assert_eq!(talk.code, Some(0), "{talk:?}");
        assert_eq!(run(cairn().arg("dream")).code, Some(0));
        let today = jiff_date(hours);
        if today != before {
            return; // midnight came between
        }
        let requests = stage.simulator.requests();
        let is_dream = |request: &&Value| request["system"].to_string().contains("look after the memories");
        let told = requests.iter().find(is_dream).unwrap()["messages"].to_string();
        let today_in = |text: &str| text.contains(&format!(", {today}. The memories"));
        assert!(today_in(&told), "{zone}: {told}");
        assert!(told.contains(&format!(", {today}: hello, something was said")), "{zone}: {told}");
        let system =
            requests.iter().find(|request| request["tools"].to_string().contains("\"Bash\"")).unwrap()["system"]
                .to_string();
        assert!(system.contains(&today), "{zone}: {system}");
        assert!(stage.config().join(format!("cairn/ledger/{today}.jsonl")).exists(), "{zone}");
        for shows in ["status", "log"] {
            let shown = run(cairn().args(["dream", shows])).stdout;
            assert!(shown.contains(&format!("{today} ")), "{zone}: {shown}");
        }
    }
}

/// DREAM-6: with `dailyLog` a session is told to keep a log and not to save memories; no dream comes by itself beside it. A
/// timer's dream distils what was logged, once.
#[test]
fn a_daily_log_takes_the_place_of_memories() {
    let stage = stage_with("[[rule]]\nsay = 'Hello.'\n");
    std::fs::write(stage.config().join("settings.json"), r#"{"dailyLog": true, "dreamSessions": 0}"#).unwrap();
    assert_eq!(run(stage.cairn().args(["-p", "hello there"])).code, Some(0));
    // A selector is asked at the same time, and has no tools.
    let requests = stage.simulator.requests();
    let system = requests.iter().find(|request| !request["tools"].is_null()).unwrap()["system"].to_string();
    assert!(system.contains("logs/YYYY/MM/YYYY-MM-DD.md") && !system.contains("one file for each"), "{system}");
    let dreamt = || {
        let requests = stage.simulator.requests();
        requests.iter().filter(|request| request["system"].to_string().contains("look after the memories")).count()
    };
    let ran = dream(&stage, &["--if-due"]);
    assert!(ran.stderr.contains("Not yet: nothing was logged") && dreamt() == 0, "{ran:?}");
    let day = memory(&stage).join("logs/2026/11");
    std::fs::create_dir_all(&day).unwrap();
    std::fs::write(day.join("2026-11-14.md"), "- 14:05 the user prefers tabs\n").unwrap();
    let ran = dream(&stage, &["--if-due"]);
    assert!(ran.code == Some(0) && dreamt() == 1, "{ran:?}");
    let told = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(told.contains("the user prefers tabs"), "{told}");
    let ran = dream(&stage, &["--if-due"]);
    assert!(ran.stderr.contains("Not before") && dreamt() == 1, "{ran:?}");
    std::fs::write(stage.config().join("settings.json"), r#"{"dailyLog": true, "dream": false}"#).unwrap();
    assert!(dream(&stage, &["--if-due"]).stderr.contains("Dreams are off here"));
}
