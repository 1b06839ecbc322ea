//! Messages from other agents: they enter the log between two rounds, and start a turn when the user is idle.
//!
//! A message from outside the team needs the user's consent, once for each sender; with nobody to ask, it waits.

use context::Fact;
use mail::mailbox::{ControlMessage, LEAD, Message};
use mail::{Mail, MessageOrigin, WaitingMessage, sender, shown};
use serde::{Deserialize, Serialize};
use session::Error;
use settings::permission::{PermissionAnswer, Question, SenderQuestion};
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use transcript::Purpose;

use super::Agent;
use crate::event::Event;

/// Point at which messages are taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageTiming {
    /// They start a turn.
    Begins,
    /// They join the current turn.
    Joins,
}

/// The user's decision about a sender, as recorded in the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "consent")]
struct Consent {
    from: String,
    given: bool,
}

impl Agent {
    /// Lets other agents write to this one.
    #[must_use]
    pub fn with_mail(mut self, mail: Mail) -> Self {
        mail.remember(self.session());
        if let Err(error) = mail.keep_in(self.session().folder()) {
            self.driver.live.tell(Event::Warning(format!("messages to this session cannot be read: {error}")));
        }
        self.mail = mail;
        self
    }

    /// Messages from other agents.
    pub fn mail(&self) -> &Mail {
        &self.mail
    }

    /// Enters waiting messages into the log. Returns whether there were any.
    pub(super) async fn take_mail(&mut self, taking: MessageTiming, cancel: &CancellationToken) -> Result<bool, Error> {
        let mail = self.mail.clone();
        if !mail.is_open() {
            return Ok(false);
        }
        let waiting = match mail.waiting() {
            Ok(waiting) => waiting,
            Err(error) => {
                self.warn_once(format!("messages could not be read: {error}"));
                return Ok(false);
            }
        };
        let mut came = false;
        for arrived in waiting {
            let message = &arrived.message;
            match self.consent(&arrived, cancel).await? {
                None => continue,
                Some(false) => mail.forget(&message.id),
                Some(true) => {
                    if !came && taking == MessageTiming::Begins {
                        self.begin()?;
                    }
                    came = true;
                    mail.enter(&mut self.driver.live.session, &arrived)?;
                    if matches!(arrived.origin, MessageOrigin::Team | MessageOrigin::Parent) {
                        mail.obey(message);
                        self.obey(message);
                    }
                    let (from, text) = (sender(&arrived), shown(message));
                    self.driver.live.tell(Event::MessageArrived { from, text });
                }
            }
        }
        // The log has them: a mark that could not be set is set the next time.
        if let Err(error) = mail.mark() {
            self.warn_once(format!("a mailbox could not be written: {error}"));
        }
        Ok(came)
    }

    /// Reports a problem with a mailbox once, although mailboxes are checked before every request.
    fn warn_once(&mut self, text: String) {
        if self.mail.is_new(&text) {
            self.driver.live.tell(Event::Warning(text));
        }
    }

    /// Records the sessions of its teammates, so that their usage can be attributed.
    pub(super) fn name_teammates(&mut self) -> Result<(), Error> {
        let started = self.contacts.teammates.as_ref().map(|teammates| teammates.take_started());
        for (name, session) in started.into_iter().flatten() {
            self.driver.live.record(Fact::Teammate { name, session })?;
        }
        Ok(())
    }

    /// Tells the model what has become of its teammates.
    pub(super) fn tell_of_teammates(&mut self) -> Result<(), Error> {
        let untold = self.contacts.teammates.as_ref().map(|teammates| teammates.take_untold());
        for text in untold.into_iter().flatten() {
            self.driver.live.inject(Purpose::Teammates, &text)?;
        }
        Ok(())
    }

    /// Applies control messages: the lead's decision on a plan, and a teammate's usage.
    fn obey(&mut self, message: &Message) {
        self.contacts.teammates.iter().for_each(|teammates| teammates.heard(message));
        if let ControlMessage::PlanResponse { approve: true, .. } = message.word()
            && message.from == LEAD
            && self.mode().get() == Mode::Plan
        {
            self.mode().set(Mode::Default);
        }
    }

    /// Returns whether the user lets a sender write to this session; `None` if nobody could be asked.
    async fn consent(&mut self, arrived: &WaitingMessage, cancel: &CancellationToken) -> Result<Option<bool>, Error> {
        let WaitingMessage { message, origin: MessageOrigin::Elsewhere } = arrived else { return Ok(Some(true)) };
        let from = sender(arrived);
        if self.contacts.messages == settings::Admission::All {
            return Ok(Some(true));
        }
        let known = self.session().noted::<Consent>().filter(|consent| consent.from == from).last();
        if let Some(consent) = known {
            return Ok(Some(consent.given));
        }
        let question = Question::Sender(SenderQuestion { from: from.clone(), message: shown(message), teammate: None });
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(None),
            answer = self.driver.gate.consent.approver.ask(question) => answer,
        };
        let given = match answer {
            PermissionAnswer::Allow | PermissionAnswer::Always(_) | PermissionAnswer::With { .. } => true,
            PermissionAnswer::Deny { .. } => false,
            PermissionAnswer::Unanswered { .. } => return Ok(None),
        };
        self.driver.live.session.note(&serde_json::to_value(Consent { from, given }).unwrap_or_default())?;
        Ok(Some(given))
    }
}
