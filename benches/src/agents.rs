//! Twenty agents at once: what they add to the parent's process, and whether a round of the parent waits for them.
//!
//! The model is a function: the parent sends twenty agents to the background, each looks around once and then thinks for
//! ever. What is held then, against what is held with one agent out, is what an agent costs.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use engine::Agent;
use engine::agent::Parts;
use engine::agents::{SubagentsAtEnd, Subagents, MOST_OUT};
use engine::provider::{Error, Event, Model};
use engine::run::TurnEnd;
use engine::tools::permission::Mode;
use engine::transcript::block::Kind;
use engine::transcript::{Block, Remarks, Reply, Request, StopReason, Usage};
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::json;
use session::{Home, Session, World};
use settings::agent_definitions::{Registry, DefinitionSources};

use crate::table::{Row, Unit};

/// What an agent may add to the process, beyond its messages.
const MOST_BYTES: f64 = 2.0 * 1024.0 * 1024.0;
/// How long the parent's turn may take while they think. Far less than any of them.
const MOST_MILLISECONDS: f64 = 5_000.0;
/// Linux counts memory in pages of so many bytes.
const PAGE: u64 = 4_096;

/// The rows.
pub(crate) fn measure(_: &Path) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let one = sent(1).await?;
        let all = sent(MOST_OUT).await?;
        let more = (MOST_OUT - 1) as f64;
        let held = all.held.saturating_sub(one.held) as f64 / more - (all.messages - one.messages) as f64 / more;
        Ok(vec![
            Row::figure("agents out at once", MOST_OUT.to_string()),
            Row::at_most("bytes each adds to the process", Unit::Count, held.max(0.0), MOST_BYTES),
            Row::at_most("the parent's turn while they think", Unit::Milliseconds, all.turn, MOST_MILLISECONDS),
        ])
    })
}

/// What was seen with so many out.
struct Seen {
    /// What the process held more than before, in bytes.
    held: u64,
    /// What their messages are, in bytes.
    messages: u64,
    /// How long the parent's turn took, in milliseconds.
    turn: f64,
}

async fn sent(count: usize) -> Result<Seen> {
    let folder = tempfile::tempdir()?;
    let project = folder.path().join("project");
    std::fs::create_dir(&project)?;
    let mut parts = Parts::new(Arc::new(Thinker { count }), "claude-sonnet-5");
    parts.consent.policy.mode = Mode::Plan.into();
    let children = Subagents::new(Arc::new(Registry::load(&DefinitionSources::default())), SubagentsAtEnd::LeavesThem);
    parts.contacts.agents = Some(children.clone());
    let session = Session::create(&Home::at(folder.path().join("config")), &project, None, World::real())?;
    let mut agent = Agent::new(session, parts)?;
    let before = held()?;
    let started = Instant::now();
    let turn = agent.say("go").await;
    let took = started.elapsed().as_secs_f64() * 1_000.0;
    ensure!(matches!(turn.end, TurnEnd::Ended(_)) && turn.rounds == 2, "the parent's turn: {:?}", turn.end);
    let deep = |errand: &Arc<engine::subagent::Subagent>| errand.progress().requests > 0 && errand.progress().calls > 0;
    while !children.list().iter().all(deep) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let out = children.list();
    ensure!(out.len() == count && out.iter().all(|errand| errand.is_out()), "{} are out", out.len());
    let messages = out.iter().filter_map(|errand| std::fs::metadata(&errand.file).ok()).map(|file| file.len()).sum();
    let seen = Seen { held: held()?.saturating_sub(before), messages, turn: took };
    agent.close().await;
    Ok(seen)
}

/// What the process holds in memory, in bytes.
fn held() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split_whitespace().nth(1).context("statm has no second field")?.parse()?;
    Ok(pages * PAGE)
}

/// Sends agents out, and as one of them looks around once and thinks for ever.
struct Thinker {
    count: usize,
}

impl Model for Thinker {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let blocks = || request.messages.iter().flat_map(|message| &message.blocks);
        let is_agent = blocks().any(|block| block.as_text().as_deref() == Some("Look around."));
        let answered = blocks().any(|block| matches!(block.kind(), Kind::ToolResult { .. }));
        let reply = match (is_agent, answered) {
            (true, true) => return stream::pending().boxed(),
            (true, false) => vec![Block::tool_use("look", "Glob", &json!({"pattern": "*"}))],
            (false, true) => vec![Block::text("They are out.")],
            (false, false) => {
                let call = |n: usize| {
                    let input = json!({
                        "description": "look", "prompt": "Look around.", "subagent_type": "Explore", "run_in_background": true,
                    });
                    Block::tool_use(&format!("call-{n}"), "Agent", &input)
                };
                (0..self.count).map(call).collect()
            }
        };
        let calls = reply.iter().any(|block| matches!(block.kind(), Kind::ToolUse { .. }));
        let stop = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
        let (id, model) = ("reply".to_owned(), request.prologue.model.clone());
        let reply = Reply { id, model, blocks: reply, stop, usage, remarks: Remarks::default() };
        stream::iter([Event::Done(reply)]).boxed()
    }

    fn count_tokens(&self, _: Request) -> BoxFuture<'static, Result<u64, Error>> {
        Box::pin(ready(Ok(0)))
    }
}
