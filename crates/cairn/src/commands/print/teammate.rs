//! A teammate: a session without a terminal that works for a lead, message after message, until it is asked to end.
//!
//! It says to the lead when it has nothing more to do, and from time to time what it is doing. Interrupted by the lead, it
//! stops and stays. It has no way to outlive its lead: it runs below the lead's guard.

use std::convert::Infallible;
use std::sync::Arc;

use engine::Agent;
use engine::agent::Turn;
use engine::label::Labels;
use engine::run::{End, Ending};
use mail::mailbox::{LEAD, Mailbox, Rest, Unless, Word};
use mail::{Life, Post, interrupted};
use settings::permission::Nobody;
use tokio_util::sync::CancellationToken;

use super::{Headless, learn, part};
use crate::args::RunArgs;
use crate::exit::Code;
use crate::output::{Facts, Output};
use crate::place::Place;
use crate::{out, told};

/// How much of its last words the lead is told with the news that it is idle.
const LAST_WORDS: usize = 4_000;

/// Works until it is asked to end.
pub(super) async fn run(args: &RunArgs, place: &Place, output: Arc<Output>) -> anyhow::Result<Code> {
    let opened = Headless::open(args, place, output, Arc::new(Nobody)).await?;
    let Headless { ready, sharing, output, mut closing } = match opened {
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
        if own.take_interrupt(Unless::Sent).unwrap_or_default() {
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
        if turn.rounds == 0 && matches!(turn.end, End::Ended(Ending::Answered)) {
            continue;
        }
        output.result(
            &turn,
            &Facts {
                prices: &ready.prices,
                took: started.elapsed(),
                closed,
                used: agent.ledger().spent(),
                teammates: Vec::new(),
            },
        );
        let word = match mail.life() {
            Life::Ends => break,
            // It was asked to end and has ended its turn without a word on it: it has nothing left to do.
            Life::Asked { request, .. } => Word::ShutdownResponse { request, approve: true, reason: String::new() },
            Life::GoesOn => {
                let rest = match turn.end {
                    End::Cancelled => Rest::Interrupted,
                    End::Ended(Ending::Answered) => Rest::Available,
                    _ => Rest::Failed,
                };
                let left = match &worktree {
                    Some(worktree) => worktree.left().await.to_string(),
                    None => String::new(),
                };
                mail.idle(rest, format!("{}\n{left}", last_words(&turn)).trim_end())
            }
        };
        if let Err(error) = post.say(LEAD, &word, None).await {
            out::warn(&format!("the lead could not be told: {error}"));
        }
        if matches!(word, Word::ShutdownResponse { .. }) {
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
async fn keep_label(labels: &mut Labels, post: &Post, cancel: &CancellationToken) -> Infallible {
    loop {
        let label = labels.next(|| true, cancel).await;
        let _ = post.say(LEAD, &Word::Progress { label }, None).await; // the next ones may get there
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
    match told::trouble(&turn.end) {
        Some(trouble) => format!("[{trouble}] {said}"),
        None => said,
    }
}
