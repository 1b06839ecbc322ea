//! The session for dumb terminals and screen readers: lines in, lines out, nothing redrawn.

use std::sync::Arc;

use engine::Event;
use engine::agent::End;
use engine::permission::{Answer, Approver, Question};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use transcript::Outcome;

use super::first_line;
use crate::args::RunArgs;
use crate::exit::Code;
use crate::out::{show, show_part, talk};
use crate::said::said;
use crate::setup::{self, Place};

type Input = Arc<Mutex<Lines<BufReader<Stdin>>>>;

/// Runs the session until the input ends or the user says `/exit`.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<Code> {
    let place = Place::from_env()?;
    let input: Input = Arc::new(Mutex::new(BufReader::new(tokio::io::stdin()).lines()));
    let asker = Arc::new(Asker { input: input.clone() });
    let mut ready = setup::agent(args, &place, asker, Arc::new(|event| hear(&event))).await?;
    for warning in &ready.warnings {
        talk!("warning: {warning}");
    }
    let mut next = args.prompt.clone();
    loop {
        let line = match next.take() {
            Some(line) => line,
            None => {
                show_part!("> ");
                match input.lock().await.next_line().await? {
                    Some(line) => line,
                    None => break,
                }
            }
        };
        match line.trim() {
            "" => continue,
            "/exit" => break,
            "/help" => show!("Type what you want to say. /exit or end of input leaves; Ctrl-C stops a turn."),
            command if command.starts_with('/') => {
                show!("Here only /help and /exit are commands; the rest needs a terminal that can be redrawn.");
            }
            text => {
                let cancel = CancellationToken::new();
                let stop = cancel.clone();
                let watch = tokio::spawn(async move {
                    if tokio::signal::ctrl_c().await.is_ok() {
                        stop.cancel();
                    }
                });
                let turn = ready.agent.turn(said(text, &place.directory), &cancel).await;
                watch.abort();
                match turn.end {
                    End::Ended(engine::run::Ending::Answered) => {}
                    End::Ended(ending) => show!("the turn ended: {ending:?}"),
                    End::Cancelled => show!("stopped"),
                    End::Failed(error) => talk!("error: {error}"),
                    End::NotWritten(error) => talk!("error: the session could not be written: {error}"),
                }
            }
        }
    }
    ready.agent.close().await;
    Ok(Code::Success)
}

fn hear(event: &Event) {
    match event {
        Event::Text(text) => show_part!("{}", super::width::clean_lines(text)),
        Event::Replied { .. } => show!(),
        Event::ToolStarted { tool, input, .. } => {
            let about =
                ["command", "file_path", "pattern"].iter().find_map(|key| input[*key].as_str()).unwrap_or_default();
            show!("{tool}: {}", first_line(about, 100));
        }
        Event::ToolEnded { tool, output, .. } => {
            let ended = if output.outcome == Outcome::Done { "done" } else { "failed" };
            show!("{tool} {ended}: {}", first_line(&output.summary, 100));
        }
        Event::ToolDenied { tool, why, .. } => show!("{tool} denied: {}", first_line(why, 100)),
        Event::Restarted => show!("\n(the reply broke off and begins again)"),
        Event::Retrying { attempt, after, why } => {
            talk!("attempt {attempt} failed: {why}; again in {:.1} s", after.as_secs_f32());
        }
        Event::Warning(text) => talk!("warning: {text}"),
        _ => {}
    }
}

/// Asks on the same input that the prompts come from.
struct Asker {
    input: Input,
}

impl Approver for Asker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            show!("{} wants to run: {}", question.tool, first_line(&question.input.to_string(), 300));
            show_part!("Allow it once? y or n, or say why not: ");
            let line = self.input.lock().await.next_line().await.ok().flatten().unwrap_or_default();
            match line.trim() {
                "y" | "yes" => Answer::Allow,
                "" | "n" | "no" => Answer::Deny { why: "The user said no.".to_owned() },
                why => Answer::Deny { why: format!("The user said no, and why: {why}") },
            }
        })
    }
}
