//! `cairn -p`: one turn without a terminal.

use std::io::{IsTerminal, Read};
use std::sync::Arc;

use engine::permission::Nobody;
use tokio_util::sync::CancellationToken;

use crate::args::RunArgs;
use crate::exit::Code;
use crate::out;
use crate::output::{Facts, Output};
use crate::said::said;
use crate::setup::{self, Place};

/// The most that is read from a pipe.
const PIPE_LIMIT: u64 = 10_000_000;

/// Runs one turn and prints its answer.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<Code> {
    let place = Place::from_env()?;
    let said = said(&prompt(args)?, &place.directory);
    let output = Arc::new(Output::new(args.output_format, args.include_partial_messages));
    let listener = {
        let (output, place) = (output.clone(), place.clone());
        Arc::new(move |event| output.event(&event, &place.directory))
    };
    let mut ready = setup::agent(args, &place, Arc::new(Nobody), listener).await?;
    for warning in &ready.warnings {
        out::warn(warning);
    }
    let cancel = CancellationToken::new();
    let on_interrupt = cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            on_interrupt.cancel();
        }
    });
    let started = tokio::time::Instant::now();
    let turn = ready.agent.turn(said, &cancel).await;
    ready.agent.close().await;
    Ok(output.result(&turn, &Facts { prices: &ready.prices, took: started.elapsed() }))
}

/// The prompt, with what comes from a pipe before it.
fn prompt(args: &RunArgs) -> anyhow::Result<String> {
    let prompt = args.prompt.as_deref().map(str::trim).filter(|prompt| !prompt.is_empty());
    let mut piped = Vec::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().lock().take(PIPE_LIMIT + 1).read_to_end(&mut piped)?;
        anyhow::ensure!(
            piped.len() as u64 <= PIPE_LIMIT,
            "more than {PIPE_LIMIT} bytes on stdin: give a file's path instead"
        );
    }
    let piped = String::from_utf8_lossy(&piped);
    let texts: Vec<&str> =
        [piped.trim(), prompt.unwrap_or_default()].into_iter().filter(|text| !text.is_empty()).collect();
    anyhow::ensure!(!texts.is_empty(), "nothing to ask: give a prompt, as in  cairn -p 'what does this project do?'");
    Ok(texts.join("\n\n"))
}
