//! What the gate costs a turn in which no hook has a say.
//!
//! The model is a function, so a turn is little more than the engine's own work, and the gate's share of it is as large as
//! it gets. A child of this program takes the same turns under callgrind; what is counted is the difference to a child that
//! takes none. Two figures: the share of all that is done in functions of the gate and of hooks, with what they call, save
//! for the rules, which a turn asked before there was a gate; and what a hook adds whose moment never comes, all of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use engine::Agent;
use engine::agent::Parts;
use engine::hooks::Hooks;
use engine::provider::{Error, Event, Model};
use engine::run::TurnEnd;
use engine::tools::permission::Mode;
use engine::transcript::block::Kind;
use engine::transcript::{Block, Remarks, Reply, Request, StopReason, Usage};
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::json;
use session::{Home, Session, World};
use settings::{Files, Flag, BasePaths, LoadedSettings, Settings};

use crate::count;
use crate::table::{Row, Unit};

/// The first argument of a child of this case.
pub(crate) const NAME: &str = "gate";
/// How many turns are taken: a session grows, and its turns with it.
const TURNS: u32 = 20;
/// What a turn may cost of what it did.
const TARGET: f64 = 1.02;
/// Functions of the gate, by what their names hold.
const GATE: [&str; 2] = ["engine::gate::", "engine::hooks::"];
/// What a turn did before there was a gate: it asked the rules, and saw what a call is about.
const BEFORE: [&str; 2] = ["permission::", "::subject"];

/// The rows.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    if !count::is_possible() {
        return Ok(vec![Row::figure("a turn without hooks", "not counted: there is no valgrind")]);
    }
    let counted = |turns: u32, hooks: &str| profile(place, turns, hooks);
    let (none, all, other) = (counted(0, "none")?, counted(TURNS, "none")?, counted(TURNS, "elsewhere")?);
    let idle = counted(0, "elsewhere")?;
    let turns = (all.all - none.all) as f64;
    let gate = all.gate.saturating_sub(none.gate) as f64;
    ensure!(all.gate > 0, "no function of the gate was seen: were they renamed?");
    Ok(vec![
        Row::figure("a turn of two rounds", format!("{:.2} M instructions", turns / f64::from(TURNS) / 1e6)),
        Row::at_most("  with the gate, of without it", Unit::Times, turns / (turns - gate), TARGET),
        Row::at_most("  with a hook that never comes", Unit::Times, (other.all - idle.all) as f64 / turns, TARGET),
    ])
}

/// What a child executed.
struct Counted {
    all: u64,
    /// Of which in the gate, with what it calls.
    gate: u64,
}

fn profile(place: &Path, turns: u32, hooks: &str) -> Result<Counted> {
    let file = place.join(format!("gate-{turns}-{hooks}.callgrind"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe()?)
        .args([count::CHILD, NAME, &turns.to_string(), hooks])
        .output()
        .context("valgrind does not run")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&file)?;
    std::fs::remove_file(&file)?;
    read(&text)
}

/// Reads what callgrind wrote: under each function a line for what it did itself, and two for each it called, the second
/// with what that did, callees included.
fn read(text: &str) -> Result<Counted> {
    let is_one = |names: &[&str], function: &str| names.iter().any(|name| function.contains(name));
    let cost = |line: &str| line.split(' ').nth(1).and_then(|count| count.parse::<u64>().ok());
    let (mut own, mut called) = (BTreeMap::<String, u64>::new(), BTreeMap::<(String, String), u64>::new());
    let (mut function, mut callee, mut is_call) = (String::new(), String::new(), false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            name.clone_into(&mut function);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            name.clone_into(&mut callee);
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || first == '+' || first == '-' || first == '*')
            && let Some(cost) = cost(line)
        {
            match std::mem::take(&mut is_call) {
                true => *called.entry((function.clone(), callee.clone())).or_default() += cost,
                false => *own.entry(function.clone()).or_default() += cost,
            }
        }
    }
    let all = own.values().sum();
    let mine = own.iter().filter(|(name, _)| is_one(&GATE, name)).map(|(_, cost)| cost).sum::<u64>();
    let elsewhere =
        called.iter().filter(|((from, to), _)| is_one(&GATE, from) && !is_one(&GATE, to) && !is_one(&BEFORE, to));
    Ok(Counted { all, gate: mine + elsewhere.map(|(_, cost)| cost).sum::<u64>() })
}

/// Takes so many turns.
pub(crate) fn child(arguments: &[String]) -> Result<()> {
    let [turns, hooks] = arguments else { bail!("a child is told how many turns, and which hooks") };
    let turns: u32 = turns.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let project = folder.path().join("project");
        std::fs::create_dir(&project)?;
        std::fs::write(project.join("note.txt"), "alpha\n")?;
        let mut parts = Parts::new(Arc::new(Reader(project.join("note.txt").display().to_string())), "claude-sonnet-5");
        parts.consent.policy.mode = Mode::Default.into();
        parts.consent.hooks = elsewhere(hooks == "elsewhere", &project);
        let session = Session::create(&Home::at(folder.path().join("config")), &project, None, World::real())?;
        let mut agent = Agent::new(session, parts)?;
        for _ in 0..turns {
            let turn = agent.say("read the note").await;
            ensure!(matches!(turn.end, TurnEnd::Ended(_)) && turn.rounds == 2, "the turn: {:?}", turn.end);
        }
        agent.close().await;
        Ok(())
    })
}

/// A hook whose moment never comes here, or none.
fn elsewhere(there_is: bool, project: &Path) -> Hooks {
    let hooks =
        if there_is { json!({"PreCompact": [{"hooks": [{"type": "command", "command": "true"}]}]}) } else { json!({}) };
    let flag = Some(Flag::Text(json!({"hooks": hooks}).to_string()));
    let loaded = LoadedSettings::read(&Files { flag, ..Files::default() });
    Hooks::new(Settings::of(&loaded, &BasePaths { directory: project, home: None }, &|_| true).hooks)
}

/// Reads the note, and says that it has.
struct Reader(String);

impl Model for Reader {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let last = request.messages.last();
        let answered =
            last.is_some_and(|last| last.blocks.iter().any(|block| matches!(block.kind(), Kind::ToolResult { .. })));
        let id = format!("call-{}", request.messages.len());
        let (blocks, stop) = match answered {
            true => (vec![Block::text("I have read it.")], StopReason::EndTurn),
            false => (vec![Block::tool_use(&id, "Read", &json!({"file_path": self.0}))], StopReason::ToolUse),
        };
        let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
        let model = request.prologue.model.clone();
        let reply = Reply { id: format!("reply-{id}"), model, blocks, stop, usage, remarks: Remarks::default() };
        stream::iter([Event::Done(reply)]).boxed()
    }

    fn count_tokens(&self, _: Request) -> BoxFuture<'static, Result<u64, Error>> {
        Box::pin(ready(Ok(0)))
    }
}
