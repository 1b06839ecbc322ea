//! Agents that work in a git worktree of their own.

use std::path::Path;
use std::process::Command;

use engine::Event;
use engine::agents::{Subagents, SubagentsAtEnd, left_behind};
use engine::event::SubagentNews;
use engine::subagent::SubagentOutcome;
use mail::MessageOrigin;
use mail::mailbox::Message;
use serde_json::json;
use tools::Environment;

use crate::children::{agents, registry};
use crate::stage::{Stage, say};

fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).current_dir(directory);
    let ran = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

fn repository(project: &Path) {
    std::fs::write(project.join("list.txt"), "one\n").unwrap();
    commit(project);
}

/// Makes a folder a repository, with all that is in it.
pub fn commit(project: &Path) {
    git(project, &["init", "-q"]);
    git(project, &["add", "."]);
    git(project, &["commit", "-q", "-m", "first"]);
}

fn script(command: &str) -> String {
    format!(
        r#"
        [[rule]]
        when = {{ user = "^Do it", tool = "Bash", result = "(?s)(?P<what>.*)" }}
        say = "Done in {{{{ what }}}}"
        [[rule]]
        when = {{ user = "^Do it" }}
        call = [{{ tool = "Bash", input = {{ command = "{command}" }} }}]
        [[rule]]
        when = {{ tool = "Agent", result = "(?s)(?P<what>.+)" }}
        say = "{{{{ what }}}}"
        [[rule]]
        when = {{ user = "^go" }}
        call = [{{ tool = "Agent", input = {{ description = "d", prompt = "Do it.", subagent_type = "general-purpose", isolation = "worktree" }} }}]
        "#
    )
}

/// AGENT-2: worktrees are made one at a time, by whichever process: git fails where it comes across one that is half made.
#[tokio::test]
async fn a_worktree_is_made_when_no_other_is_half_made() {
    let mut stage = Stage::new(&script("pwd")).await;
    stage.agents = agents(json!({}));
    repository(&stage.project());
    let records = stage.home().path().join("cairn/worktrees");
    std::fs::create_dir_all(&records).unwrap();
    let another = files::Root::open(records.parent().unwrap()).unwrap().lock("worktrees.lock").unwrap();
    let half_made = stage.project().join(".git/worktrees/another");
    std::fs::create_dir_all(&half_made).unwrap();
    std::fs::write(half_made.join("commondir"), "").unwrap();
    let others = async {
        while std::fs::read_dir(&records).unwrap().count() < 1 {
            tokio::task::yield_now().await; // until it has written down that there is going to be one
        }
        for _ in 0..20 {
            tokio::task::spawn_blocking(|| Command::new("git").arg("--version").output().unwrap()).await.unwrap();
        }
        std::fs::remove_dir_all(&half_made).unwrap();
        drop(another);
    };
    let mut agent = stage.agent(None);
    let (turn, ()) = tokio::join!(say(&mut agent, "go"), others);
    assert!(turn.text.contains("Done in"), "{}", turn.text);
}

/// AGENT-2: an unchanged worktree goes with its branch; a changed one keeps both and is named; outside of git there is none.
#[tokio::test]
async fn an_agent_works_in_a_worktree_of_its_own() {
    for (command, changes) in [("pwd", false), ("pwd; echo two >> list.txt", true), ("pwd; touch new.txt", true)] {
        let mut stage = Stage::new(&script(command)).await;
        stage.agents = agents(json!({}));
        repository(&stage.project());
        let mut agent = stage.agent(None);
        let turn = say(&mut agent, "go").await;
        let id = agent.agents().unwrap().list()[0].id.clone();
        let branch = format!("agent-{id}");
        let place = agent.session().path().with_extension("").join("worktrees").join(&branch);
        assert!(turn.text.contains(&format!("Done in {}", place.display())), "{}", turn.text);
        assert_eq!(turn.text.contains(&format!("on the branch {branch}")), changes, "{}", turn.text);
        assert_eq!(git(&stage.project(), &["branch", "--list", &branch]).is_empty(), !changes);
        assert_eq!(place.exists(), changes, "{command}");
        assert_eq!(git(&stage.project(), &["status", "--porcelain"]), "", "nothing of it is seen here");
        let left =
            left_behind(stage.home().path(), &stage.project(), Path::new(""), &Environment::default(), None).await;
        assert!(left.is_empty(), "{left:?}");
    }
    let mut stage = Stage::new(&script("pwd")).await;
    stage.agents = agents(json!({}));
    let turn = say(&mut stage.agent(None), "go").await;
    assert!(
        turn.text.contains("it got no worktree: ") && turn.text.contains("is not in a git repository"),
        "{}",
        turn.text
    );
}

/// An agent that works in a worktree, and what it does when it is written to.
const AGAIN: &str = r#"
    [[rule]]
    when = { user = "agent-message", tool = "Bash", result = "(?s)(?P<what>.*)" }
    say = "Again: {{ what }}"
    [[rule]]
    when = { user = "agent-message" }
    call = [{ tool = "Bash", input = { command = "pwd; cat list.txt; git branch --show-current" } }]
    [[rule]]
    when = { user = "^Do it", tool = "Bash" }
    say = "Done."
    [[rule]]
    when = { user = "^Do it" }
    call = [{ tool = "Bash", input = { command = "sh {{ project }}/step.sh" } }]
    [[rule]]
    when = { user = "^go", tool = "Agent" }
    say = "Sent."
    [[rule]]
    when = { user = "^go" }
    call = [{ tool = "Agent", input = { description = "d", prompt = "Do it.", subagent_type = "general-purpose", name = "smith", isolation = "worktree" } }]
    [[rule]]
    say = "Heard."
"#;

/// MSG-2, AGENT-2: an agent that goes on has its worktree with what it did there. Where that is gone it has a fresh one, with
/// its branch if there still is one, and is told so; what stands in its place and is none is left alone.
#[tokio::test]
async fn an_agent_that_goes_on_has_its_worktree() {
    enum Between {
        Nothing,
        RemovedByHand,
        InTheWay,
    }
    for (step, between, list, fresh) in [
        ("echo two >> list.txt", Between::Nothing, "one\ntwo", false),
        ("true", Between::Nothing, "one\nthree", true),
        (
            "echo two >> list.txt; git -c user.name=a -c user.email=a@b commit -qam two",
            Between::RemovedByHand,
            "one\ntwo",
            true,
        ),
        ("echo two >> list.txt", Between::InTheWay, "", false),
    ] {
        let mut stage = Stage::new(AGAIN).await;
        stage.agents = agents(json!({}));
        let project = stage.project();
        repository(&project);
        std::fs::write(project.join("step.sh"), step).unwrap();
        let mut agent = stage.agent(None);
        say(&mut agent, "go").await;
        let children = agent.agents().unwrap().clone();
        let branch = format!("agent-{}", children.list()[0].id);
        let place = agent.session().path().with_extension("").join("worktrees").join(&branch);
        match between {
            Between::Nothing => {}
            Between::RemovedByHand => std::fs::remove_dir_all(&place).unwrap(),
            Between::InTheWay => {
                std::fs::remove_dir_all(&place).unwrap();
                std::fs::create_dir_all(&place).unwrap();
                std::fs::write(place.join("mine.txt"), "keep").unwrap();
            }
        }
        // The project goes on meanwhile.
        std::fs::write(project.join("list.txt"), "one\nthree\n").unwrap();
        git(&project, &["commit", "-q", "-a", "-m", "three"]);
        let message = Message::new("m-1", "team-lead", "Go on.", jiff::Timestamp::UNIX_EPOCH);
        children.write_to("smith", &message, MessageOrigin::Parent).unwrap();
        let ended = children.find("smith").unwrap().ended().await;
        if let Between::InTheWay = between {
            assert_eq!(
                ended.how,
                SubagentOutcome::Failed(format!("it got no worktree: {} is not a worktree any more", place.display()))
            );
            assert_eq!(std::fs::read_to_string(place.join("mine.txt")).unwrap(), "keep");
            continue;
        }
        let expected = format!("Again: {}\n{list}\n{branch}", place.display());
        assert!(ended.report.contains(&expected), "{step}: {} is not {expected}", ended.report);
        let told = std::fs::read_to_string(&children.find("smith").unwrap().file).unwrap();
        assert_eq!(told.contains("Your worktree was gone"), fresh, "{step}");
        assert_eq!(place.exists(), list.contains("two"), "what holds nothing goes again: {step}");
        assert_eq!(git(&project, &["branch", "--list", &branch]).is_empty(), !list.contains("two"), "{step}");
        let left = left_behind(stage.home().path(), &project, Path::new(""), &Environment::default(), None).await;
        assert!(left.is_empty(), "{left:?}");
    }
}

/// AGENT-2: what a session leaves behind that was killed, the next one names; what holds no work it takes away.
#[tokio::test]
async fn what_a_killed_session_leaves_is_named_and_cleaned() {
    for (command, changes) in [("sleep 600", false), ("echo two >> list.txt; sleep 600", true)] {
        let mut stage = Stage::new(&script(command)).await;
        stage.agents = Some(Subagents::new(registry(json!({})), SubagentsAtEnd::LeavesThem));
        repository(&stage.project());
        let (acts, mut acted) = tokio::sync::mpsc::unbounded_channel();
        stage.heard = std::sync::Arc::new(move |event| {
            if let Event::Agent { news: SubagentNews::Does(event), .. } = event
                && matches!(**event, Event::ToolStarted { .. })
            {
                let _ = acts.send(());
            }
        });
        let mut agent = stage.agent(None);
        let home = stage.home();
        {
            let turn = say(&mut agent, "go");
            tokio::select! {
                _ = turn => panic!("it never ends"),
                _ = acted.recv() => {}
            }
        }
        let subagent = agent.agents().unwrap().list()[0].clone();
        let branch = format!("agent-{}", subagent.id);
        let place = agent.session().path().with_extension("").join("worktrees").join(&branch);
        while changes && std::fs::read_to_string(place.join("list.txt")).unwrap() == "one\n" {
            tokio::task::yield_now().await;
        }
        let held = left_behind(home.path(), &stage.project(), Path::new(""), &Environment::default(), None).await;
        assert!(held.is_empty() && place.exists(), "somebody works there: {held:?}");
        agent.agents().unwrap().abandon(); // as a kill would
        drop(agent);
        let mut told = Vec::new();
        while told.is_empty() {
            tokio::task::yield_now().await;
            told = left_behind(home.path(), &stage.project(), Path::new(""), &Environment::default(), None).await;
        }
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(&place.display().to_string()), "{told:?}");
        assert_eq!((place.exists(), told[0].contains("left changes in")), (changes, changes), "{told:?}");
        assert_eq!(git(&stage.project(), &["branch", "--list", &branch]).is_empty(), !changes);
        let again = left_behind(home.path(), &stage.project(), Path::new(""), &Environment::default(), None).await;
        assert!(again.is_empty(), "each is told of once: {again:?}");
    }
}
