//! Questions of a server in the middle of a call.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mcp::{Elicitation, ElicitationAnswer, ElicitationRequest, ServerOptions};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::scripted::{Act, Heard, answer, call, scripted, text, well_behaved};

/// A user who answers each question in the same way, after a while.
struct User {
    answer: ElicitationAnswer,
    thinks: Duration,
    asked: Mutex<Vec<ElicitationRequest>>,
}

impl User {
    fn new(answer: ElicitationAnswer, thinks: Duration) -> Arc<Self> {
        Arc::new(Self { answer, thinks, asked: Mutex::default() })
    }
}

impl Elicitation for User {
    fn ask(&self, request: ElicitationRequest) -> BoxFuture<'static, ElicitationAnswer> {
        self.asked.lock().push(request);
        let (answer, thinks) = (self.answer.clone(), self.thinks);
        Box::pin(async move {
            tokio::time::sleep(thinks).await;
            answer
        })
    }
}

/// A server that asks this when its tool is called, and answers the call once it was answered.
fn asking(method: &'static str, params: Value) -> impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static {
    let call = Mutex::new(Value::Null);
    move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            *call.lock() = message.clone();
            vec![Act::Say(json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params}))]
        }
        None => vec![answer(&call.lock(), text("thanks"))],
        _ => well_behaved(message),
    }
}

async fn ask(method: &'static str, params: Value, options: ServerOptions) -> Heard {
    let (server, heard) = scripted(asking(method, params), options);
    server.connect().await;
    assert_eq!(call(&server, "a").await.unwrap(), "thanks");
    heard
}

fn with(user: &Arc<User>) -> ServerOptions {
    let elicitation: Arc<dyn Elicitation> = user.clone();
    ServerOptions { elicitation: Some(elicitation), ..ServerOptions::default() }
}

fn form() -> Value {
    json!({"message": "who are you?", "requestedSchema": {"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer", "default": 7}}, "required": ["name"]}})
}

/// MCP-1: a form goes to the user, and defaults fill what the user leaves out. Meanwhile the call has all the time it needs.
#[tokio::test(start_paused = true)]
async fn a_form_is_filled_by_the_user() {
    let name: Map<String, Value> = [("name".to_owned(), json!("me"))].into_iter().collect();
    let user = User::new(ElicitationAnswer::Accept(name), Duration::from_secs(3600));
    let heard = ask("elicitation/create", form(), with(&user)).await;
    assert_eq!(heard.answers()[0]["result"], json!({"action": "accept", "content": {"name": "me", "age": 7}}));
    let asked = user.asked.lock();
    let ElicitationRequest::Form { server, message, schema } = &asked[0] else { panic!("{asked:?}") };
    assert_eq!((server.as_str(), message.as_str(), &schema["required"]), ("srv", "who are you?", &json!(["name"])));
    let capabilities = &heard.of("initialize")[0]["params"]["capabilities"];
    assert!(capabilities["elicitation"]["form"].is_object() && capabilities["elicitation"]["url"].is_object());
}

/// MCP-1: a page is shown with its whole address; what is no page is declined unasked.
#[tokio::test(start_paused = true)]
async fn a_page_is_asked_about_and_nothing_else_is_opened() {
    for (url, action, questions) in [("https://a.example/b?c", "accept", 1), ("file:///etc/passwd", "decline", 0)] {
        let user = User::new(ElicitationAnswer::Accept(Map::new()), Duration::ZERO);
        let params = json!({"mode": "url", "message": "come", "url": url, "elicitationId": "1"});
        let heard = ask("elicitation/create", params, with(&user)).await;
        assert_eq!(heard.answers()[0]["result"], json!({"action": action}));
        assert_eq!(user.asked.lock().len(), questions);
    }
}

/// MCP-1: without a way to the user every question is declined, and the server is told beforehand.
#[tokio::test(start_paused = true)]
async fn without_a_user_every_question_is_declined() {
    let heard = ask("elicitation/create", form(), ServerOptions::default()).await;
    assert_eq!(heard.answers()[0]["result"], json!({"action": "decline"}));
    assert!(heard.of("initialize")[0]["params"]["capabilities"].get("elicitation").is_none());
}

/// MCP-1: no server samples the model.
#[tokio::test(start_paused = true)]
async fn sampling_is_refused() {
    let params = json!({"maxTokens": 5, "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]});
    let heard = ask("sampling/createMessage", params, ServerOptions::default()).await;
    assert_eq!(heard.answers()[0]["error"]["code"], -32601);
    assert!(heard.of("initialize")[0]["params"]["capabilities"].get("sampling").is_none());
}

/// MCP-1: a server of an older revision may know the folders, and is told when they change.
#[tokio::test(start_paused = true)]
async fn folders_are_told_to_those_who_ask() {
    let roots = |folder: &str| vec![PathBuf::from(folder)];
    let options = ServerOptions { roots: roots("/home/me/a b"), ..ServerOptions::default() };
    let (server, heard) = scripted(asking("roots/list", json!({})), options);
    server.connect().await;
    call(&server, "a").await.unwrap();
    let told = json!({"roots": [{"uri": "file:///home/me/a%20b", "name": "a b"}]});
    assert_eq!(heard.answers()[0]["result"], told);
    server.set_roots(roots("/home/me/a b")).await;
    server.set_roots(roots("/else")).await;
    call(&server, "a").await.unwrap();
    assert_eq!(heard.of("notifications/roots/list_changed").len(), 1);
    assert_eq!(heard.answers()[1]["result"]["roots"][0]["uri"], "file:///else");
}

/// MCP-1: a call that wants a page visited first is repeated once the user has, and only once.
#[tokio::test(start_paused = true)]
async fn a_call_that_wants_a_page_visited_first_is_repeated() {
    for (stubborn, answer_of_user, calls) in [(false, true, 2), (true, true, 2), (false, false, 1)] {
        let first = Mutex::new(true);
        let act = move |_: usize, message: &Value| match message["method"].as_str() {
            Some("tools/call") if std::mem::replace(&mut *first.lock(), false) || stubborn => {
                let page = json!({"mode": "url", "message": "come", "url": "https://a.example/", "elicitationId": "1"});
                vec![Act::Say(json!({"jsonrpc": "2.0", "id": message["id"],
                    "error": {"code": -32042, "message": "visit first", "data": {"elicitations": [page]}}}))]
            }
            _ => well_behaved(message),
        };
        let answer = if answer_of_user { ElicitationAnswer::Accept(Map::new()) } else { ElicitationAnswer::Decline };
        let user = User::new(answer, Duration::ZERO);
        let (server, heard) = scripted(act, with(&user));
        server.connect().await;
        let called = call(&server, "a").await;
        assert_eq!(called.is_ok(), answer_of_user && !stubborn, "{called:?}");
        assert_eq!((heard.of("tools/call").len(), user.asked.lock().len()), (calls, 1));
    }
}

/// MCP-1: a server that was asked nothing asks the user nothing, and one that asks too much at once is declined.
#[tokio::test(start_paused = true)]
async fn questions_that_nobody_expects_are_declined() {
    let question = |id: u32| {
        let params = json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}});
        Act::Say(json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}))
    };
    let act = move |_: usize, message: &Value| match message["method"].as_str() {
        Some("notifications/initialized") => vec![question(1)],
        Some("tools/call") => {
            let wait = Act::Wait(Duration::from_secs(60));
            [(2..10).map(question).collect(), vec![wait], well_behaved(message)].concat()
        }
        _ => well_behaved(message),
    };
    let user = User::new(ElicitationAnswer::Accept(Map::new()), Duration::from_secs(10));
    let (server, heard) = scripted(act, with(&user));
    server.connect().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(user.asked.lock().is_empty());
    call(&server, "a").await.unwrap();
    assert_eq!(user.asked.lock().len(), 3);
    let declined = heard.answers().iter().filter(|answer| answer["result"]["action"] == "decline").count();
    assert_eq!(declined, 1 + 5);
}
