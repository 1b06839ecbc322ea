//! The session for dumb terminals and screen readers: lines in, lines out, nothing redrawn.

use std::sync::Arc;

use engine::Event;
use engine::agent::{End, Turn};
use engine::permission::{Answer, Approver, Question};
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use transcript::Outcome;

use super::first_line;
use crate::args::RunArgs;
use crate::exit::Code;
use crate::out::{show, show_part, talk};
use crate::said::said;
use crate::setup::{self, Place};

const HELP: &str = "Type what you want to say. !command runs a command that the model sees with your next words.\n\
                    /exit or end of input leaves; Ctrl-C stops a turn, and leaves where there is none.";

/// Lines as they are typed. They are read by a thread of its own, which nobody has to wait for in the end.
type Input = Arc<Mutex<mpsc::UnboundedReceiver<String>>>;

/// Runs the session until the input ends or the user leaves.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<Code> {
    let place = Place::from_env()?;
    let input: Input = Arc::new(Mutex::new(lines()));
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
                match typed(&input).await {
                    Some(line) => line,
                    None => break,
                }
            }
        };
        match line.trim() {
            "" => continue,
            "/exit" => break,
            "/help" => show!("{HELP}"),
            command if command.starts_with('/') => {
                show!("Here only /help and /exit are commands; the rest needs a terminal that can be redrawn.");
            }
            text => {
                let cancel = CancellationToken::new();
                let turn = async {
                    match text.strip_prefix('!') {
                        Some(command) => {
                            let turn = ready.agent.shell(command.trim(), &cancel).await;
                            show!("{}", super::width::clean_lines(turn.text.trim_end()));
                            turn
                        }
                        None => ready.agent.turn(said(text, &place.directory), &cancel).await,
                    }
                };
                tell_end(&stopped_by_ctrl_c(turn, &cancel).await);
            }
        }
    }
    super::put_away(ready.agent).await;
    Ok(Code::Success)
}

fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// The next line; none at the end of the input, and when Ctrl-C is pressed.
async fn typed(input: &Input) -> Option<String> {
    let mut lines = input.lock().await;
    tokio::select! {
        line = lines.recv() => line,
        _ = tokio::signal::ctrl_c() => {
            show!();
            None
        }
    }
}

async fn stopped_by_ctrl_c(turn: impl Future<Output = Turn>, cancel: &CancellationToken) -> Turn {
    tokio::pin!(turn);
    loop {
        tokio::select! {
            turn = &mut turn => return turn,
            _ = tokio::signal::ctrl_c() => cancel.cancel(),
        }
    }
}

fn tell_end(turn: &Turn) {
    let Some(trouble) = super::turns::trouble(&turn.end) else { return };
    match turn.end {
        End::Failed(_) | End::NotWritten(_) => talk!("error: {trouble}"),
        End::Ended(_) | End::Cancelled => show!("\n{trouble}"),
    }
}

fn hear(event: &Event) {
    match event {
        Event::Text(text) => show_part!("{}", super::width::clean_lines(text)),
        Event::Replied { .. } => show!(),
        Event::ToolStarted { id, tool, input } if !super::turns::is_shell(id) => {
            let about =
                ["command", "file_path", "pattern"].iter().find_map(|key| input[*key].as_str()).unwrap_or_default();
            show!("{tool}: {}", first_line(about, 100));
        }
        Event::ToolEnded { id, tool, output } if !super::turns::is_shell(id) => {
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
            show!("{} wants to run, in {}:", question.tool, question.directory.display());
            for (key, value) in question.input.as_object().into_iter().flatten() {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                show!("  {key}: {}", super::width::clean_lines(&text).replace('\n', "\n    "));
            }
            show_part!("Allow it once? y or n, or say why not: ");
            let line = self.input.lock().await.recv().await.unwrap_or_default();
            match line.trim() {
                "y" | "yes" => Answer::Allow,
                "" | "n" | "no" => Answer::Deny { why: super::question::NO.to_owned() },
                why => Answer::Deny { why: format!("{}{why}", super::question::NO_BECAUSE) },
            }
        })
    }
}
