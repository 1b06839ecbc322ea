//! A teammate: a session without a terminal that works for a lead, message after message, until it is asked to end.
//!
//! It says to the lead when it has nothing more to do, and from time to time what it is doing. Interrupted by the lead, it
//! stops and stays. It has no way to outlive its lead: it runs below the lead's guard.

use std::convert::Infallible;
use std::sync::Arc;

use engine::Agent;
use engine::activity::ActivityReporter;
use engine::agent::Turn;
use engine::run::{RunEnd, TurnEnd};
use mail::mailbox::{ControlMessage, IdleReason, InterruptVoidedBy, LEAD, Mailbox};
use mail::{Messenger, SessionLife, interrupted};
use settings::permission::NoApprover;
use tokio_util::sync::CancellationToken;

use super::{HeadlessSession, learn, part};
use crate::args::RunArgs;
use crate::exit::Code;
use crate::output::{Output, TurnFacts};
use crate::program_paths::ProgramPaths;
use crate::{event_text, out};

/// The most characters of its last message that the lead gets when it becomes idle.
const LAST_WORDS: usize = 4_000;

/// Works until it is asked to end.
pub(super) async fn run(args: &RunArgs, place: &ProgramPaths, output: Arc<Output>) -> anyhow::Result<Code> {
    let opened = HeadlessSession::open(args, place, output, Arc::new(NoApprover)).await?;
    let HeadlessSession { ready, sharing, output, mut closing } = match opened {
        Ok(session) => session,
        Err(code) => return Ok(code),
    };
    let (mut agent, post, worktree) = (ready.agent, ready.mailing.post.clone(), ready.worktree);
    let mail = agent.mail().clone();
    let own = ready.mailing.member_of.as_ref().map(|team| team.mailbox()).transpose()?;
    let own = own.ok_or_else(|| anyhow::anyhow!("--agent-name needs --team-name"))?;
    let (mut code, mut gone) = (Code::Success, None);
    loop {
        tokio::select! {
            () = mail.rings() => {}
            closed = closing.wanted() => {
                (code, gone) = (closed.code(), Some(closed));
                break;
            }
        }
        let (cancel, started) = (CancellationToken::new(), tokio::time::Instant::now());
        if own.take_interrupt(InterruptVoidedBy::Sent).unwrap_or_default() {
            cancel.cancel(); // what the lead gave it to do, it has taken back before this began
        }
        let mut labels = agent.labels();
        let labelling = keep_label(&mut labels, &post, &cancel);
        let (turn, closed) = match closing.or_done(&cancel, work(&mut agent, &own, &cancel, labelling)).await {
            Ok(done) => done,
            Err(closed) => return Ok(closed.code()),
        };
        let _ = agent.account_for_labels(labels); // the ledger has it in any case
        if closed.is_some() {
            (code, gone) = (closed.map_or(Code::Success, |closed| closed.code()), closed);
            break;
        }
        if turn.rounds == 0 && matches!(turn.end, TurnEnd::Ended(RunEnd::Answered)) {
            continue;
        }
        output.result(
            &turn,
            &TurnFacts {
                prices: &ready.prices,
                took: started.elapsed(),
                closed,
                used: agent.ledger().spent(),
                teammates: Vec::new(),
            },
        );
        let word = match mail.life() {
            SessionLife::Ends => break,
            // It was asked to end and has ended its turn without a word on it: it has nothing left to do.
            SessionLife::ShutdownRequested { request, .. } => {
                ControlMessage::ShutdownResponse { request, approve: true, reason: String::new() }
            }
            SessionLife::GoesOn => {
                let rest = match turn.end {
                    TurnEnd::Cancelled => IdleReason::Interrupted,
                    TurnEnd::Ended(RunEnd::Answered) => IdleReason::Available,
                    _ => IdleReason::Failed,
                };
                let left = match &worktree {
                    Some(worktree) => worktree.left().await.to_string(),
                    None => String::new(),
                };
                mail.idle(rest, format!("{}\n{left}", last_words(&turn)).trim_end())
            }
        };
        if let Err(error) = post.say(LEAD, &word, None).await {
            out::warn(&format!("the lead could not be informed: {error}"));
        }
        if matches!(word, ControlMessage::ShutdownResponse { .. }) {
            break;
        }
    }
    learn(agent, &mut closing, gone).await;
    if let Some(worktree) = worktree {
        worktree.finish().await; // what it holds, the lead was told when this was last idle
    }
    part(sharing, &mut closing).await;
    Ok(code)
}

/// Says to the lead what it is doing, whenever there are new words for it.
async fn keep_label(labels: &mut ActivityReporter, post: &Messenger, cancel: &CancellationToken) -> Infallible {
    loop {
        let label = labels.next(|| true, cancel).await;
        let _ = post.say(LEAD, &ControlMessage::Progress { label }, None).await; // the next ones may get there
    }
}

/// One turn, which the lead may interrupt.
async fn work(
    agent: &mut Agent,
    own: &Mailbox,
    cancel: &CancellationToken,
    labels: impl Future<Output = Infallible>,
) -> Turn {
    let turn = agent.turn(Vec::new(), cancel);
    tokio::pin!(turn);
    tokio::select! {
        turn = &mut turn => return turn,
        () = interrupted(own) => cancel.cancel(),
        never = labels => match never {},
    }
    turn.await
}

fn last_words(turn: &Turn) -> String {
    let said: String = turn.text.chars().take(LAST_WORDS).collect();
    match event_text::trouble(&turn.end) {
        Some(trouble) => format!("[{trouble}] {said}"),
        None => said,
    }
}
