//! A teammate's side of the exchange with its lead: questions, interrupts and the mode it is held to.
//!
//! It goes through the mailboxes, and no model sees it. An answer counts once, for the request it names. A request that
//! nobody answers in time is denied.
//!
//! What it refuses to do: believe anybody but the lead; let an answer add rules.

use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use settings::permission::{Approver, PermissionAnswer, Question, Respondent, SharedMode};
use tools::permission::Mode;

use super::{Messenger, Team};
use crate::mailbox::{
    ControlMessage, InterruptVoidedBy, LEAD, LeadAnswer, MailError, Mailbox, Message, TeammateQuestion,
};

/// Interval between checks of a file; each is one stat.
pub const LOOK: Duration = Duration::from_millis(100);
/// Time to wait for an answer. A person may be away for a while; a waiting teammate holds up nobody else.
pub const PATIENCE: Duration = Duration::from_secs(3_600);
/// Result of a question that nobody answered.
pub const NOBODY: &str = "Nobody has answered on the lead's side. Do what you can without it.";

/// Approver of a teammate: passes questions to its lead.
#[derive(Debug)]
pub struct AskLead {
    post: Messenger,
    team: Team,
    /// Held while a question is open. A teammate's subagents ask here too, and a person is asked one thing at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Approver for AskLead {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let unanswered = |why: String| PermissionAnswer::Unanswered { why };
            let asked = tokio::time::timeout(PATIENCE, self.send_question(&question)).await;
            match asked {
                Ok(Ok(LeadAnswer::Allowed(input))) => PermissionAnswer::With { input, permissions: Vec::new() },
                Ok(Ok(LeadAnswer::Denied(why))) => PermissionAnswer::Deny { why },
                Ok(Ok(LeadAnswer::Unanswered(why))) => unanswered(why),
                Ok(Err(error)) => {
                    unanswered(format!("The lead could not be asked ({error}). Do what you can without it."))
                }
                Err(_) => unanswered(NOBODY.to_owned()),
            }
        })
    }

    fn respondent(&self) -> Respondent {
        Respondent::Program
    }
}

impl AskLead {
    /// An approver that sends through a teammate's post.
    pub fn new(post: Messenger, team: Team) -> Self {
        Self { post, team, turn: tokio::sync::Mutex::default() }
    }

    async fn send_question(&self, question: &Question) -> Result<LeadAnswer, MailError> {
        let request = self.post.fresh();
        let (about, input, suggestions) = match question {
            Question::Call(call) => (TeammateQuestion::Call, call.input.clone(), call.suggestions()),
            Question::Sender(sender) => (TeammateQuestion::Sender, json!({"message": sender.message}), Vec::new()),
            Question::Include(include) => (TeammateQuestion::Include, json!({"file_path": include.file}), Vec::new()),
            // Servers ask only the person at their own session.
            Question::Server(_) => return Ok(LeadAnswer::Unanswered(NOBODY.to_owned())),
        };
        let suggestions = suggestions.iter().filter_map(|one| serde_json::to_value(one).ok()).collect();
        let (tool, why) = (question.asker().to_owned(), question.why().to_owned());
        let word = ControlMessage::PermissionRequest { request: request.clone(), tool, input, why, suggestions, about };
        let own = self.team.mailbox()?;
        let _turn = self.turn.lock().await;
        self.post.say(LEAD, &word, None).await?;
        let mut looks = MailboxLook::default();
        loop {
            for message in looks.answers(&own)?.into_iter().filter(|message| message.from == LEAD) {
                match message.word() {
                    ControlMessage::PermissionResponse { request: of, answer } if of == request => return Ok(answer),
                    _ => {}
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// State of a mailbox's file when it was last read, and when reading it last failed.
#[derive(Debug, Default)]
struct MailboxLook {
    seen: Option<files::Glance>,
    broken: Option<files::Glance>,
}

impl MailboxLook {
    /// Answers since the last look. An unreadable mailbox may be in the middle of a write: it is read once more, and if
    /// the same file still cannot be read, that is an error.
    fn answers(&mut self, own: &Mailbox) -> Result<Vec<Message>, MailError> {
        let now = files::glance(own.path());
        if now == self.seen {
            return Ok(Vec::new());
        }
        // What answers an earlier question, that nobody waits with any more, is of no use.
        match own.take_between_programs(|word| matches!(word, ControlMessage::PermissionResponse { .. })) {
            Err(error) if now == self.broken => Err(error),
            Err(_) => {
                self.broken = now;
                Ok(Vec::new())
            }
            answers => {
                self.seen = now;
                answers
            }
        }
    }
}

/// Returns when the lead interrupts its teammate.
pub async fn interrupted(own: &Mailbox) {
    let mut seen = None;
    loop {
        let now = files::glance(own.path());
        if now != seen {
            seen = now;
            if own.take_interrupt(InterruptVoidedBy::Heard).unwrap_or_default() {
                return;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A teammate's mode: its own, limited to the lead's current one.
pub fn mode_below(team: Team, mode: Mode) -> SharedMode {
    let known = Mutex::new((None, Mode::default()));
    SharedMode::held_to(
        move || {
            let (now, mut known) = (team.glance(), known.lock());
            if now.is_none() || now != known.0 {
                *known = (now, team.mode());
            }
            known.1
        },
        mode,
    )
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// MSG-1: a mailbox that somebody is just writing ends no question: it is looked at again, and the answer counts. One that
    /// stays broken does.
    #[test]
    fn a_half_written_mailbox_ends_no_question() {
        let folder = tempfile::tempdir().unwrap();
        let own = Mailbox::create(folder.path(), "scout").unwrap();
        let mut looks = MailboxLook::default();
        assert!(looks.answers(&own).unwrap().is_empty());
        let word = ControlMessage::PermissionResponse { request: "r".to_owned(), answer: LeadAnswer::Allowed(None) };
        let text = word.to_text(LEAD, Timestamp::UNIX_EPOCH).unwrap();
        own.send(&Message::new("m".to_owned(), LEAD, text, Timestamp::UNIX_EPOCH)).unwrap();
        let whole = files::read(own.path(), 10_000).unwrap().bytes;
        files::replace(own.path(), &whole[..whole.len() / 2]).unwrap();
        assert!(looks.answers(&own).unwrap().is_empty());
        files::replace(own.path(), &whole).unwrap();
        assert_eq!(looks.answers(&own).unwrap().len(), 1);
        files::replace(own.path(), b"[").unwrap();
        assert!(looks.answers(&own).unwrap().is_empty());
        assert!(looks.answers(&own).is_err());
    }
}
