use std::sync::{Arc, Mutex};

use engine::Event;
use engine::permission::{Answer, Approver, Question};
use futures_util::future::{BoxFuture, ready};
use tools::permission::Mode;

use crate::stage::{Stage, say};

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
struct Answers(Answer, Mutex<Vec<Question>>);

impl Approver for Answers {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        self.1.lock().unwrap().push(question);
        Box::pin(ready(self.0.clone()))
    }
}

/// TOOL-2: what no rule decides is asked, with what it is about and why; a no goes to the model with its reason.
#[tokio::test]
async fn a_question_is_asked_and_its_answer_holds() {
    let mut stage = Stage::new(WRITER).await;
    stage.mode = Mode::Default;
    let no = Arc::new(Answers(Answer::Deny { why: "not on a Sunday".into() }, Mutex::default()));
    stage.approver = no.clone();
    let turn = say(&mut stage.agent(None), "write").await;
    assert_eq!(turn.text, "It said: not on a Sunday");
    assert!(!stage.project().join("x").exists());
    let asked = no.1.lock().unwrap().remove(0);
    assert_eq!((asked.tool.as_str(), asked.input["content"].as_str()), ("Write", Some("y")));
    assert!(asked.why.contains("could change"), "{}", asked.why);
    assert!(stage.events.lock().unwrap().iter().any(|event| matches!(event, Event::ToolDenied { .. })));
}

/// TOOL-2: a yes lets it run.
#[tokio::test]
async fn a_yes_lets_it_run() {
    let mut stage = Stage::new(WRITER).await;
    stage.mode = Mode::Default;
    stage.approver = Arc::new(Answers(Answer::Allow, Mutex::default()));
    say(&mut stage.agent(None), "write").await;
    assert_eq!(std::fs::read_to_string(stage.project().join("x")).unwrap(), "y");
}
