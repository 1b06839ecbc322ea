//! Messages to subagents: a running one reads them at its next round, an ended one resumes from its transcript.

use std::sync::Arc;

use mail::mailbox::{MailError, Message};
use mail::{Mail, MessageOrigin, Neighbours, WaitingMessage};
use session::child::{SubagentMeta, folder_of, id_of, meta_of, subagents_folder, transcript_of};
use settings::agent_definitions::{FORK, Isolation, Runs};

use super::agent_tool::spawn;
use super::child::{ParentSnapshot, SpawnKind, SpawnRequest, SubagentStart};
use super::subagents::Subagents;
use crate::subagent::{Subagent, SubagentCard};

/// Characters of a message that are quoted back to its sender.
const QUOTED: usize = 200;

/// Outcome of a message to a subagent.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// It is running, and reads the message at its next round.
    Hears(Arc<Subagent>),
    /// It had ended, and resumes in the background.
    GoesOn(Arc<Subagent>),
}

impl Neighbours for Subagents {
    fn names(&self) -> Vec<String> {
        self.list().iter().map(|subagent| subagent.called().to_owned()).collect()
    }

    fn at_work(&self) -> Vec<String> {
        self.list().iter().filter(|subagent| subagent.is_out()).map(|subagent| subagent.called().to_owned()).collect()
    }

    fn knows(&self, to: &str) -> bool {
        self.find(to).is_some() || self.parent().is_some_and(|parent| left(&parent, to).is_some())
    }

    fn write_to(self: Arc<Self>, name: &str, message: &Message, origin: MessageOrigin) -> Result<(), MailError> {
        Subagents::write_to(&self, name, message, origin).map(drop)
    }
}

impl Subagents {
    /// Delivers a message to a subagent of this session, by name or id. The error lists the existing ones.
    pub fn write_to(self: &Arc<Self>, to: &str, message: &Message, from: MessageOrigin) -> Result<Delivery, MailError> {
        if let Some(subagent) = self.hand(to, message, from)? {
            return Ok(Delivery::Hears(subagent));
        }
        let nobody = || MailError::Unknown { name: to.to_owned(), others: self.names() };
        let parent = self.parent().ok_or_else(nobody)?;
        let card = match self.find(to) {
            Some(subagent) => card_of(&subagent, Mail::default()),
            None => left(&parent, to).ok_or_else(nobody)?,
        };
        card.mail.keep_in(folder_of(&card.file))?;
        card.mail.take(message, from)?;
        let subagent = self.go_on(&parent, card).map_err(|why| MailError::Ended { name: to.to_owned(), why })?;
        Ok(Delivery::GoesOn(subagent))
    }

    /// Resumes a subagent that received a message while it was ending.
    pub(super) fn again(
        self: &Arc<Self>,
        parent: &Arc<ParentSnapshot>,
        subagent: &Subagent,
    ) -> Result<Arc<Subagent>, String> {
        self.go_on(parent, card_of(subagent, subagent.mail.clone()))
    }

    /// Tells the senders why a subagent could not resume for their messages.
    pub(super) fn give_back(&self, parent: &ParentSnapshot, subagent: &Subagent, why: &str) {
        let Some(post) = &parent.parts.contacts.post else { return };
        for WaitingMessage { message, .. } in subagent.mail.waiting().unwrap_or_default() {
            let begins: String = message.text.chars().take(QUOTED).collect();
            let text = format!("[it ended before it read your message {begins:?}, and could not continue: {why}]");
            let word = Message::new(post.fresh(), subagent.called(), text, parent.world.now());
            // Another agent that is still out, or else the one who sent it.
            let is_handed = |to: &str| self.hand(to, &word, MessageOrigin::Process).is_ok_and(|to| to.is_some());
            if message.from == post.me() || !is_handed(&message.from) {
                post.mail().push(word, MessageOrigin::Process);
            }
        }
    }

    fn go_on(self: &Arc<Self>, parent: &Arc<ParentSnapshot>, card: SubagentCard) -> Result<Arc<Subagent>, String> {
        let who =
            if card.kind == FORK { SpawnKind::Fork(None) } else { SpawnKind::Typed(Box::new(self.named(&card.kind)?)) };
        let isolation = match SubagentMeta::read(&card.file).worktree_path.is_some() {
            true => Isolation::Worktree,
            false => Isolation::None,
        };
        let (prompt, model, start) = (String::new(), card.model.clone(), SubagentStart::Resumed);
        spawn(self, parent, card, SpawnRequest { who, prompt, model, isolation, start }, Runs::Background)
    }
}

fn card_of(subagent: &Subagent, mail: Mail) -> SubagentCard {
    let Subagent { id, kind, name, description, model, call, file, .. } = subagent;
    SubagentCard {
        id: id.clone(),
        kind: kind.clone(),
        name: name.clone(),
        description: description.clone(),
        color: None,
        model: model.clone(),
        call: call.clone(),
        file: file.clone(),
        mail,
    }
}

/// A subagent of an earlier run of this session; the newest if several share a name.
fn left(parent: &ParentSnapshot, to: &str) -> Option<SubagentCard> {
    let mut entries = files::list(subagents_folder(&parent.session)).unwrap_or_default();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.modified));
    entries.iter().find_map(|entry| {
        let id = id_of(&entry.name)?;
        let file = transcript_of(&parent.session, id);
        let meta = SubagentMeta::read(&file);
        let is_meta = meta_of(&file).file_name() == Some(&entry.name);
        (is_meta && (id == to || meta.name.as_deref() == Some(to))).then(|| SubagentCard {
            id: id.to_owned(),
            kind: meta.agent_type,
            name: meta.name,
            description: meta.description,
            color: None,
            model: None,
            call: meta.tool_use_id,
            file,
            mail: Mail::default(),
        })
    })
}
