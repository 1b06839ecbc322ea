use std::sync::{Arc, Mutex};

use engine::Event;
use futures_util::future::{BoxFuture, ready};
use settings::permission::{Approver, CallQuestion, PermissionAnswer, Question, SharedMode};
use tools::permission::Mode;

use crate::stage::{Stage, call, say};

const WRITER: &str = r#"
    [[rule]]
    name = "tell"
    when = { result = "(?P<what>.+)" }
    say = "It said: {{ what }}"
    [[rule]]
    name = "write"
    call = [{ tool = "Write", input = { file_path = "{{ project }}/x", content = "y" } }]
"#;

/// Answers what it was told to, and remembers what it was asked.
struct Answers(PermissionAnswer, Mutex<Vec<CallQuestion>>);

impl Approver for Answers {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        self.1.lock().unwrap().push(call(question));
        Box::pin(ready(self.0.clone()))
    }
}

/// TOOL-2: what no rule decides is asked, with what it is about and why; a no goes to the model with its reason.
#[tokio::test]
async fn a_question_is_asked_and_its_answer_holds() {
    let mut stage = Stage::new(WRITER).await;
    stage.mode = Mode::Default.into();
    let no = Arc::new(Answers(PermissionAnswer::Deny { why: "not on a Sunday".into() }, Mutex::default()));
    stage.approver = no.clone();
    let turn = say(&mut stage.agent(None), "write").await;
    assert_eq!(turn.text, "It said: not on a Sunday");
    assert!(!stage.project().join("x").exists());
    let asked = no.1.lock().unwrap().remove(0);
    assert_eq!((asked.tool.as_str(), asked.input["content"].as_str()), ("Write", Some("y")));
    assert!(asked.why.contains("may make changes"), "{}", asked.why);
    assert!(stage.events.lock().unwrap().iter().any(|event| matches!(event, Event::ToolDenied { .. })));
}

/// Changes the mode when it is asked, as a person would by a key.
struct Changes(SharedMode, Mutex<u32>);

impl Approver for Changes {
    fn ask(&self, _: Question) -> BoxFuture<'_, PermissionAnswer> {
        self.0.set(Mode::AcceptEdits);
        *self.1.lock().unwrap() += 1;
        Box::pin(ready(PermissionAnswer::Allow))
    }
}

/// TOOL-2: a mode that is changed while a turn runs holds for the next call that is judged.
#[tokio::test]
async fn a_changed_mode_holds_for_the_next_call() {
    let mut stage = Stage::new(
        r#"
        [[rule]]
        when = { missing = "tool_result" }
        times = 1
        call = [
            { tool = "Write", input = { file_path = "{{ project }}/x", content = "y" } },
            { tool = "Write", input = { file_path = "{{ project }}/z", content = "y" } },
        ]
        [[rule]]
        say = "Done."
    "#,
    )
    .await;
    let mode = SharedMode::default();
    let changes = Arc::new(Changes(mode.clone(), Mutex::default()));
    (stage.mode, stage.approver) = (mode, changes.clone());
    say(&mut stage.agent(None), "write").await;
    assert!(stage.project().join("z").exists());
    assert_eq!(*changes.1.lock().unwrap(), 1, "the second was not asked about");
}

/// TOOL-2: a yes lets it run.
#[tokio::test]
async fn a_yes_lets_it_run() {
    let mut stage = Stage::new(WRITER).await;
    stage.mode = Mode::Default.into();
    stage.approver = Arc::new(Answers(PermissionAnswer::Allow, Mutex::default()));
    say(&mut stage.agent(None), "write").await;
    assert_eq!(std::fs::read_to_string(stage.project().join("x")).unwrap(), "y");
}

const RUNNER: &str = r#"
    [[rule]]
    name = "look"
    times = 1
    call = [{ tool = "Bash", input = { command = "ls && echo looked" } }]
    [[rule]]
    name = "make"
    times = 2
    call = [{ tool = "Bash", input = { command = "touch x; git tag y" } }]
    [[rule]]
    say = "Done."
"#;

/// Says always to whatever is asked.
struct Always(Mutex<Vec<CallQuestion>>);

impl Approver for Always {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        let question = call(question);
        let rules = question.always.iter().map(|(_, rule)| rule.clone()).collect();
        self.0.lock().unwrap().push(question);
        Box::pin(ready(PermissionAnswer::Always(rules)))
    }
}

/// TRUST-6: a command that only looks is not asked about; "always" offers a rule for each part of another, and they hold.
#[tokio::test]
async fn always_is_offered_part_by_part_and_holds() {
    let mut stage = Stage::new(RUNNER).await;
    stage.mode = Mode::Default.into();
    let always = Arc::new(Always(Mutex::default()));
    stage.approver = always.clone();
    say(&mut stage.agent(None), "go").await;
    let asked = always.0.lock().unwrap();
    let offered: Vec<Vec<&str>> =
        asked.iter().map(|question| question.always.iter().map(|(text, _)| text.as_str()).collect()).collect();
    assert_eq!(offered, [["Bash(touch x)", "Bash(git tag:*)"]], "the second time nothing is asked");
    assert!(stage.project().join("x").exists());
}

const OBEYS: &str = r#"
    [[rule]]
    name = "tell"
    when = { result = "(?P<what>.+)" }
    say = "done"
    [[rule]]
    name = "write"
    when = { user = "write (?P<path>\\S+)" }
    call = [{ tool = "Write", input = { file_path = "{{ path }}", content = "y" } }]
"#;

/// CACHE-1: files of its own an agent leaves in the scratchpad that its prompt names, unasked; beside it nothing is unasked,
/// nor in the scratchpad of another session.
#[tokio::test]
async fn an_agent_writes_to_its_scratchpad_unasked() {
    let mut stage = Stage::new(OBEYS).await;
    stage.mode = Mode::Default.into();
    let no = Arc::new(Answers(PermissionAnswer::Deny { why: "no".into() }, Mutex::default()));
    stage.approver = no.clone();
    let mut agent = stage.agent(None);
    let folder = agent.session().path().with_extension("");
    let other = folder.with_file_name("00000000-0000-7000-8000-00000000ffff").join("scratchpad/x");
    let (own, beside) = (folder.join("scratchpad/x"), folder.join("x"));
    for path in [&own, &beside, &other] {
        say(&mut agent, &format!("write {}", path.display())).await;
    }
    assert!(own.exists() && !beside.exists() && !other.exists());
    assert_eq!(no.1.lock().unwrap().len(), 2);
    let told = agent.request().unwrap().prologue;
    let text = told.system.last().unwrap().as_text().unwrap();
    assert!(text.ends_with(&format!(" {}", own.parent().unwrap().display())), "{text}");
}

/// SPILL-2: how much of what a hook says stays in view is a setting, beside those of tools.
#[tokio::test]
async fn what_a_hook_says_has_a_limit_of_its_own() {
    let says = serde_json::json!({"hooks": {"UserPromptSubmit": [{"hooks": [
        {"type": "command", "command": "head -c 3000 /dev/zero | tr '\\0' w"}
    ]}]}});
    for (limit, stays) in [(None, 3_000), (Some(1_000), 200)] {
        let mut stage = Stage::new(OBEYS).await;
        stage.settings = says.clone();
        stage.layers.spill_limits.extend(limit.map(|limit| ("Hook".to_owned(), limit)));
        say(&mut stage.agent(None), "hello").await;
        let request = &stage.simulator.requests()[0]["messages"].to_string();
        let longest = request.split(|c| c != 'w').map(str::len).max();
        assert_eq!((longest, request.contains("all of it is in")), (Some(stays), limit.is_some()), "{request}");
    }
}
