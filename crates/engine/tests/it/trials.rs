//! What long sessions go through: going back around a compaction, approvals that are left open, calls whose ids are used
//! again, copies of a session that goes on, and windows of every size.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use context::CompactionReach;
use context::layer_settings::ClearWhen;
use engine::Agent;
use engine::agent::Parts;
use engine::run::TurnEnd;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::BoxStream;
use provider::anthropic::{Anthropic, Auth, Config};
use provider::{Event, Model};
use session::replay::{SUMMARY_TOKENS, replay_as_recorded};
use session::rewind::RewindExtent;
use session::{Fork, Session, World};
use settings::permission::{Approver, PermissionAnswer, Question};
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use transcript::block::Kind;
use transcript::{Block, Outcome, Request};

use crate::stage::{Stage, say, window};
use crate::worker;

const LISTENER: &str = r#"
    [[rule]]
    when = { visible = "about to leave the window" }
    say = "<summary>Stones were counted.</summary>"
    [[rule]]
    say = "I listen."
"#;

fn sent(stage: &Stage) -> String {
    stage.simulator.requests().pop().unwrap()["messages"].to_string()
}

fn plays_again(stage: &Stage, agent: &Agent) {
    let (lines, _) = session::record::lines(agent.session().path()).unwrap();
    let replayed = replay_as_recorded(lines, &stage.layers, SUMMARY_TOKENS);
    assert_eq!((replayed.differs_from, replayed.broken), (None, Vec::new()));
}

/// LOG-14, LOG-12: going back to a message behind a compaction leaves its summary; going back to one that it covers, or to
/// before all of them, lifts it: what was said until then stands there as it was said, and nothing of what came later.
#[tokio::test]
async fn going_back_behind_in_and_before_a_compaction() {
    // The message gone back to, whether the summary stays, and the messages that stay as they were said.
    let ways: [(&str, bool, &[&str]); 4] =
        [("four", true, &["three"]), ("three", true, &[]), ("two", false, &["one"]), ("one", false, &[])];
    for (to, summary_stays, stay) in ways {
        let stage = Stage::new(LISTENER).await;
        let mut agent = stage.agent(None);
        for words in ["one", "two"] {
            say(&mut agent, &format!("number {words}")).await;
        }
        agent.compact(None, CompactionReach::Everything, &CancellationToken::new()).await.unwrap().unwrap();
        for words in ["three", "four"] {
            say(&mut agent, &format!("number {words}")).await;
        }
        let points = agent.session().points();
        let point = points.iter().find(|point| point.text == format!("number {to}")).unwrap().line.clone();
        agent.session_mut().rewind(&point, RewindExtent::Conversation).unwrap();
        say(&mut agent, "and again").await;
        let sent = sent(&stage);
        assert_eq!(sent.contains("Stones were counted."), summary_stays, "{to}: {sent}");
        for words in ["one", "two", "three", "four"] {
            // Under a summary the user's words stay, too.
            let covered = summary_stays && ["one", "two"].contains(&words);
            let expected = covered || stay.contains(&words);
            assert_eq!(sent.contains(&format!("number {words}")), expected, "{to}, {words}: {sent}");
        }
        assert_eq!(stage.simulator.report().totals.refused, 0);
        plays_again(&stage, &agent);
    }
}

/// Says yes after an hour.
struct Slow(Arc<AtomicI64>);

impl Approver for Slow {
    fn ask(&self, _: Question) -> BoxFuture<'_, PermissionAnswer> {
        self.0.fetch_add(3_600, Ordering::Relaxed);
        Box::pin(ready(PermissionAnswer::Allow))
    }
}

/// MICRO-2, MICRO-7: eight parallel reads, and a question left open for an hour: what the model has not seen is sent whole,
/// and only what it had seen long ago is cleared.
#[tokio::test]
async fn what_waited_for_an_approval_is_sent_whole() {
    let reads: Vec<String> = (0..8)
        .map(|n| format!(r#"{{ tool = "Read", input = {{ file_path = "{{{{ project }}}}/f{n}.txt" }} }}"#))
        .collect();
    let script = format!(
        r#"
        [[rule]]
        when = {{ result = "made" }}
        say = "Done."
        [[rule]]
        when = {{ user = "make it" }}
        call = [{}, {{ tool = "Bash", input = {{ command = "touch x && echo made" }} }}]
        [[rule]]
        when = {{ result = "stone" }}
        say = "I have read it."
        [[rule]]
        call = [{{ tool = "Read", input = {{ file_path = "{{{{ project }}}}/f0.txt" }} }}]
        "#,
        reads.join(", ")
    );
    let mut stage = Stage::new(&script).await;
    for n in 0..8 {
        std::fs::write(stage.project().join(format!("f{n}.txt")), format!("stone {n} of many\n").repeat(60)).unwrap();
    }
    stage.mode = Mode::Default.into();
    stage.approver = Arc::new(Slow(stage.moved.clone()));
    stage.layers.digest = false;
    stage.layers.clear_when = ClearWhen::Window;
    let mut agent = stage.agent(None);
    for n in 0..8 {
        say(&mut agent, &format!("read it once more, {n}")).await;
    }
    let turn = say(&mut agent, "make it").await;
    assert_eq!(turn.text, "Done.");
    let sent = sent(&stage);
    for n in 1..8 {
        assert!(sent.contains(&format!("stone {n} of many")), "result {n} was never seen and is gone");
    }
    assert_eq!(sent.matches("Old tool result content cleared").count(), 3, "of eight that were seen five stay");
    plays_again(&stage, &agent);
}

/// A server that gives every call of a reply the same ids as those of the last. (The one behind it wants them to differ.)
struct Reusing(Anthropic);

/// A request whose ids differ from reply to reply.
fn told_apart(mut request: Request) -> Request {
    for (at, message) in request.messages.iter_mut().enumerate() {
        for block in &mut message.blocks {
            *block = match block.kind() {
                Kind::ToolUse { id, name } => Block::tool_use(&format!("{id}_{at}"), name, &block.input().unwrap()),
                Kind::ToolResult { id, failed } => {
                    let outcome = if *failed { Outcome::Failed } else { Outcome::Done };
                    Block::tool_result(&format!("{id}_{}", at - 1), &block.result_content(), outcome)
                }
                _ => continue,
            };
        }
    }
    request
}

impl Model for Reusing {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let renamed = |blocks: Vec<Block>| -> Vec<Block> {
            let mut calls = 0;
            let rename = |block: Block| match block.kind() {
                Kind::ToolUse { name, .. } => {
                    calls += 1;
                    Block::tool_use(&format!("functions_{name}_{}", calls - 1), name, &block.input().unwrap())
                }
                _ => block,
            };
            blocks.into_iter().map(rename).collect()
        };
        let events = self.0.stream(told_apart(request)).map(move |event| match event {
            Event::Done(mut reply) => {
                reply.blocks = renamed(reply.blocks);
                Event::Done(reply)
            }
            Event::Block(block) => Event::Block(renamed(vec![block]).remove(0)),
            event => event,
        });
        Box::pin(events)
    }

    fn count_tokens(&self, request: Request) -> BoxFuture<'static, Result<u64, provider::Error>> {
        self.0.count_tokens(request)
    }
}

/// LOG-12, MICRO-1, SPILL-4: with a server that uses the ids of its calls again the work is done once, results are cleared
/// and written down by the reply they stand in, and played again the session does the same.
#[tokio::test]
async fn calls_whose_ids_are_used_again_are_told_apart() {
    let mut stage = Stage::new(&format!("[model]\nwindow = 64000\n{}", worker::script(40))).await;
    worker::equip(&stage.project(), 5_000);
    stage.layers.window = window(64_000);
    let mut agent = stage.agent_with(None, |parts: &mut Parts| {
        let url = stage.simulator.url();
        parts.talk.model = Arc::new(Reusing(Anthropic::new(Config::new(url, Auth::ApiKey("k".into()))).unwrap()));
    });
    let turn = say(&mut agent, "Do all the steps.").await;
    assert!(matches!(turn.end, TurnEnd::Ended(_)), "{turn:?}");
    assert_eq!(worker::done(&stage.project()), (1..=40).collect::<Vec<_>>());
    let sent = sent(&stage);
    assert!(sent.contains("work 40: FACT") && sent.contains("FACT step 1: v1-7919"), "{sent}");
    assert!(sent.contains("functions_Bash_0") && !sent.contains("toolu_"));
    plays_again(&stage, &agent);
}

/// LOG-2, LOG-8: a copy of a session that somebody else is going on with: each goes its own way from the same beginning.
#[tokio::test]
async fn a_copy_of_a_live_session_goes_its_own_way() {
    let stage = Stage::new(LISTENER).await;
    let mut agent = stage.agent(None);
    say(&mut agent, "number one").await;
    agent.compact(None, CompactionReach::Everything, &CancellationToken::new()).await.unwrap().unwrap();
    say(&mut agent, "number two").await;
    let id = agent.session().id().to_owned();
    let (copy, _) = Session::resume(&stage.home(), &stage.project(), &id, Fork::Yes, World::real()).unwrap();
    assert_ne!((copy.id(), copy.path()), (id.as_str(), agent.session().path()));
    assert_eq!(copy.log().view().messages(), agent.session().log().view().messages());
    say(&mut agent, "number three").await;
    let mut other = stage.agent_on(copy);
    say(&mut other, "number four").await;
    let of_copy = sent(&stage);
    assert!(of_copy.contains("Stones were counted.") && of_copy.contains("number two"), "{of_copy}");
    assert!(of_copy.contains("number four") && !of_copy.contains("number three"), "{of_copy}");
    say(&mut agent, "number five").await;
    let of_original = sent(&stage);
    assert!(of_original.contains("number three") && !of_original.contains("number four"), "{of_original}");
    plays_again(&stage, &other);
}

/// TOK-5, COMPACT-12: the same work is done in windows from 32,000 tokens to a million: nothing is refused, no step is done
/// twice, and the model still has what it found.
#[tokio::test]
async fn the_same_work_is_done_in_windows_of_every_size() {
    for size in [32_000, 48_000, 64_000, 128_000, 200_000, 1_000_000] {
        let mut stage = Stage::new(&format!("[model]\nwindow = {size}\n{}", worker::script(24))).await;
        worker::equip(&stage.project(), 5_000);
        stage.layers.window = window(size);
        let mut agent = stage.agent(None);
        let turn = say(&mut agent, "Do all the steps.").await;
        agent.settled().await.unwrap();
        assert!(matches!(turn.end, TurnEnd::Ended(_)), "{size}: {turn:?}");
        assert_eq!(worker::done(&stage.project()), (1..=24).collect::<Vec<_>>(), "{size}");
        assert_eq!(stage.simulator.report().totals.refused, 0, "{size}");
        let sent = sent(&stage);
        let facts = (1..=24).filter(|step| sent.contains(&format!("FACT step {step}: v{step}-"))).count();
        assert!(facts >= 23, "{size}: {facts} facts");
        plays_again(&stage, &agent);
    }
}
