//! A session inside a program of your own.
//!
//! ```text
//! ANTHROPIC_API_KEY=… cargo run -p engine --example embed -- 'What does this project do?'
//! ```
//!
//! It may look around and edit files in the working directory; whatever else would have to be asked is denied, since
//! nobody is there. Everything is written to a session file, which `cairn session show FILE` shows.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program, not the library")]

use std::sync::Arc;

use engine::agent::Parts;
use engine::provider::anthropic::{Anthropic, Auth, BASE_URL, Config};
use engine::tools::permission::Mode;
use engine::{Agent, Event, Home, Session, World};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prompt = std::env::args().nth(1).ok_or("what should it do?")?;
    let key = std::env::var("ANTHROPIC_API_KEY")?;
    let url = std::env::var("ANTHROPIC_BASE_URL").unwrap_or_else(|_| BASE_URL.into());
    let model = Anthropic::new(Config::new(url, Auth::ApiKey(key.into())))?;

    let home = Home::at(std::env::temp_dir().join("embed"));
    let session = Session::create(&home, &std::env::current_dir()?, None, World::real())?;

    let mut parts = Parts::new(Arc::new(model), "claude-sonnet-5");
    parts.consent.policy.mode = Mode::AcceptEdits.into();
    parts.out.listener = Arc::new(|event| match event {
        Event::Text(text) => print!("{text}"),
        Event::ToolStarted { tool, input, .. } => println!("\n[{tool} {input}]"),
        _ => {}
    });

    let mut agent = Agent::new(session, parts)?;
    let turn = agent.say(&prompt).await;
    println!("\n\n{:?} after {} requests: {}", turn.end, turn.rounds, agent.session().path().display());
    agent.close().await;
    Ok(())
}
