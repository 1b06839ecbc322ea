//! The demo's part with agents: three forks look at three files on one cache write, and an agent in the background reports.

use std::path::Path;
use std::sync::Arc;

use engine::agent::Parts;
use engine::agents::{Subagents, SubagentsAtEnd};
use engine::event::SubagentNews;
use engine::run::{RunEnd, TurnEnd};
use engine::{Agent, Event};
use provider::anthropic::{Anthropic, Auth, Config};
use session::{Home, Session, World};
use settings::agent_definitions::{DefinitionSources, Registry};
use settings::permission::Policy;
use simulator::{Options, Script, Simulator};
use tools::permission::Mode;

use super::MODEL;
use crate::out::show;
use crate::styled_text::{cyan, dim, green, one_line};

const SCRIPT: &str = include_str!("agents.toml");
const STONES: [(&str, u32); 3] = [("red", 1), ("green", 2), ("blue", 3)];

/// Plays it below a folder; whether it reached its end.
pub(super) async fn play(root: &Path) -> anyhow::Result<bool> {
    let project = root.join("stones");
    for (colour, count) in STONES {
        files::replace(project.join(format!("{colour}.txt")), format!("{colour} stones: {count}\n").as_bytes())?;
    }
    let mut script = Script::parse(SCRIPT)?;
    script.vars.insert("project".into(), project.display().to_string());
    let simulator = Simulator::start(script, Options::default()).await?;
    let model = Anthropic::new(Config::new(simulator.url(), Auth::ApiKey("demo".into())))?;
    let mut parts = Parts::new(Arc::new(model), MODEL);
    parts.consent.policy = Policy { mode: Mode::Plan.into(), ..Policy::default() };
    parts.contacts.agents =
        Some(Subagents::new(Arc::new(Registry::load(&DefinitionSources::default())), SubagentsAtEnd::WaitsForThem));
    parts.out.listener = Arc::new(|event| show_event(&event));
    let session = Session::create(&Home::at(root.join("stones-config")), &project, None, World::real())?;
    let mut agent = Agent::new(session, parts)?;
    line("you", "How many stones are there?");
    let turn = agent.say("How many stones are there? Look at all three lists at once.").await;
    agent.close().await;
    let report = simulator.report();
    let is_fork = |request: &serde_json::Value| request["messages"].to_string().contains("<fork>");
    let first: Vec<_> = simulator
        .requests()
        .iter()
        .map(is_fork)
        .zip(&report.requests)
        .filter(|(fork, _)| *fork)
        .map(|(_, line)| line)
        .take(STONES.len())
        .collect();
    let writes = first.iter().map(|line| line.input.written()).max().unwrap_or_default();
    let read: u64 = first.iter().skip(1).map(|line| line.input.read).sum();
    show!([green(&format!(
        "three forks: one wrote {writes} tokens into the cache, the two others read {read} from it"
    ))]);
    simulator.shutdown().await;
    Ok(matches!(turn.end, TurnEnd::Ended(RunEnd::Answered)) && turn.text.contains("six stones are all"))
}

fn show_event(event: &Event) {
    match event {
        Event::Replied { reply } => {
            let said: Vec<String> = reply.blocks.iter().filter_map(transcript::Block::as_text).collect();
            if !said.is_empty() {
                line("model", &said.join(" "));
            }
        }
        Event::Agent { subagent, news } => match news {
            SubagentNews::Started if subagent.is_background() => {
                line(&subagent.kind, &format!("{} (in the background)", subagent.description));
            }
            SubagentNews::Started => line(&subagent.kind, &subagent.description),
            SubagentNews::Ended => line(&subagent.kind, "has reported"),
            _ => {}
        },
        _ => {}
    }
}

fn line(who: &str, what: &str) {
    show!([dim("         "), cyan(&format!("{who:<8} ")), one_line(what, 100)]);
}
