//! Definitions of servers' tools that a compaction took out of view come back, within limits: the model goes on calling them.

use session::{Error, LineMeta};
use transcript::{Injected, Purpose};

use crate::live::LiveSession;
use crate::servers::definitions;

/// The most characters of definitions that come back: 5,000 tokens.
const MOST_CHARACTERS: usize = 20_000;

/// Shows the definitions that were loaded, those that were loaded last before others, as far as their servers are there.
pub(super) fn restore(live: &mut LiveSession) -> Result<(), Error> {
    let Some(servers) = live.work.servers.clone() else { return Ok(()) };
    let loaded = live.session.loaded_tools();
    let offered = servers.offered();
    let (mut names, mut text) = (Vec::new(), String::new());
    for name in loaded.iter().rev() {
        let Some(tool) = offered.iter().find(|tool| tool.name == *name) else { continue };
        let one = definitions(std::slice::from_ref(tool));
        if !names.contains(name) && text.len() + one.len() <= MOST_CHARACTERS {
            text.push_str(&one);
            names.push(name.clone());
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    let text = format!("Tools of MCP servers that you loaded before:\n{}", text.trim_end());
    let meta = LineMeta { loaded: names, ..LineMeta::default() };
    live.session.inject(&Injected::new(Purpose::Servers, &text), meta)?;
    Ok(())
}
