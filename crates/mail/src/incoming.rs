//! Incoming messages of a session: from agents of this process, its team and other sessions.
//!
//! A message waits in a queue in memory or in a [mailbox](crate::mailbox) on disk, and enters the log of the session at
//! its next round. The log alone says what was delivered: an id that stands there is not entered again, and only then
//! is its letter marked. So each message enters once, whenever a process is killed.
//!
//! What it refuses to do: say who may write (the agent asks the user), treat another's words as the user's, show more
//! of a message than fits beside the work.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use files::Glance;
use parking_lot::Mutex;
use session::{Error, LineMeta, Session};
use tokio::sync::Notify;
use transcript::{Injected, Purpose};

use crate::mailbox::{ControlMessage, IdleReason, LEAD, MailError, Mailbox, Message};
use crate::message_text::{MessageOrigin, WaitingMessage, framed};

/// Interval between checks of a mailbox while nothing else happens; each is one stat.
const LOOK: Duration = Duration::from_millis(250);

/// Mailboxes for messages of agents in this process, by origin.
const KEPT: [(MessageOrigin, &str); 2] =
    [(MessageOrigin::Parent, "from-parent"), (MessageOrigin::Process, "from-agents")];

/// Mail of one session. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Mail {
    inner: Arc<MailInner>,
}

#[derive(Debug, Default)]
struct MailInner {
    state: Mutex<MailState>,
    news: Notify,
}

#[derive(Debug, Default)]
struct MailState {
    /// Folder for messages of agents in this process until they are delivered.
    kept: Option<PathBuf>,
    queue: VecDeque<WaitingMessage>,
    doors: Vec<OwnMailbox>,
    heard: HashSet<String>,
    life: SessionLife,
    /// Agents at work: by name and by who gave them the work, the id of the last message that did.
    busy: BTreeMap<(String, String), String>,
    /// The last such message that is done, as far as reported.
    done: BTreeMap<(String, String), String>,
    /// Names of agents that have announced their end.
    left: HashSet<String>,
    /// The newest message received from the team, by sender.
    newest: BTreeMap<String, String>,
    /// The newest message to others of the team since we were last idle, by recipient.
    handed: BTreeMap<String, String>,
    /// Problems that the user was already told about.
    warned: HashSet<String>,
}

/// A mailbox of the session's own.
#[derive(Debug)]
struct OwnMailbox {
    mailbox: Mailbox,
    origin: MessageOrigin,
    /// State of its file when it was last read.
    seen: Option<Glance>,
}

/// Lifecycle of a session in a team.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SessionLife {
    /// It goes on.
    #[default]
    GoesOn,
    /// The lead has asked it to end, and it has not answered.
    ShutdownRequested {
        /// Name of the sender.
        by: String,
        /// Id of the request, which the answer repeats.
        request: String,
    },
    /// It has agreed to end.
    Ends,
}

impl Mail {
    /// Adds a mailbox to the session's own.
    pub fn open(&self, mailbox: Mailbox, origin: MessageOrigin) {
        self.inner.state.lock().doors.push(OwnMailbox { mailbox, origin, seen: None });
        self.ring();
    }

    /// Keeps messages of agents in this process in a folder of the session, and opens the mailboxes that are already
    /// there.
    pub fn keep_in(&self, folder: PathBuf) -> Result<(), MailError> {
        for (origin, name) in KEPT {
            if files::glance(folder.join(format!("{name}.json"))).is_some() {
                self.door_of(origin, &folder, name)?;
            }
        }
        self.inner.state.lock().kept = Some(folder);
        Ok(())
    }

    /// Opens the mailbox for messages of an agent in this process, unless it is open.
    fn door_of(&self, origin: MessageOrigin, folder: &Path, name: &str) -> Result<(), MailError> {
        let is_open = self.inner.state.lock().doors.iter().any(|door| door.origin == origin);
        if !is_open {
            self.open(Mailbox::create(folder, name)?, origin);
        }
        Ok(())
    }

    /// Takes a message of an agent in this process. If the session has a folder for it, it is on disk when this
    /// returns.
    pub fn take(&self, message: &Message, origin: MessageOrigin) -> Result<(), MailError> {
        let kept = self.inner.state.lock().kept.clone();
        let name = KEPT.iter().find(|(known, _)| *known == origin).map(|(_, name)| *name);
        let Some((folder, name)) = kept.zip(name) else {
            self.push(message.clone(), origin);
            return Ok(());
        };
        self.door_of(origin, &folder, name)?;
        if let Some(door) = self.inner.state.lock().doors.iter().find(|door| door.origin == origin) {
            door.mailbox.send(message)?;
        }
        self.ring();
        Ok(())
    }

    /// Adds a message about an agent in this process to the queue.
    pub fn push(&self, message: Message, origin: MessageOrigin) {
        self.inner.state.lock().queue.push_back(WaitingMessage { message, origin });
        self.ring();
    }

    /// True if a message waits.
    pub fn is_queued(&self) -> bool {
        self.waiting().is_ok_and(|waiting| !waiting.is_empty())
    }

    /// Wakes whoever waits for mail: something was put into a mailbox.
    pub fn ring(&self) {
        self.inner.news.notify_one();
    }

    /// Reads from the log which messages were delivered before.
    pub fn remember(&self, session: &Session) {
        self.inner.state.lock().heard.extend(session.heard());
    }

    /// True if the session has a mailbox or a message in its queue.
    pub fn is_open(&self) -> bool {
        let state = self.inner.state.lock();
        !state.doors.is_empty() || !state.queue.is_empty()
    }

    /// Messages not yet delivered, in the order of delivery: shutdown requests first, then the lead's, then by arrival.
    /// An unreadable mailbox is an error only if nothing else waits.
    pub fn waiting(&self) -> Result<Vec<WaitingMessage>, MailError> {
        let state = &mut *self.inner.state.lock();
        let mut waiting: Vec<WaitingMessage> = state.queue.iter().cloned().collect();
        let mut broken = None;
        for door in &mut state.doors {
            // Looked at before it is read: what comes in between is seen the next time.
            door.seen = files::glance(door.mailbox.path());
            let origin = door.origin;
            match door.mailbox.waiting() {
                Ok(messages) => waiting.extend(messages.into_iter().map(|message| WaitingMessage { message, origin })),
                Err(error) => broken = Some(error),
            }
        }
        let mut here = HashSet::new();
        waiting.retain(|WaitingMessage { message, .. }| {
            !state.heard.contains(&message.id) && here.insert(message.id.clone())
        });
        waiting.sort_by_key(|arrived| arrived.message.order());
        // What can be read is heard first, whatever is in another's place.
        match broken.filter(|_| waiting.is_empty()) {
            Some(error) => Err(error),
            None => Ok(waiting),
        }
    }

    /// True the first time a problem is reported.
    pub fn is_new(&self, trouble: &str) -> bool {
        self.inner.state.lock().warned.insert(trouble.to_owned())
    }

    /// Enters a message into the log, which delivers it.
    pub fn enter(&self, session: &mut Session, arrived: &WaitingMessage) -> Result<(), Error> {
        let WaitingMessage { message, .. } = arrived;
        let text = framed(arrived, |whole| session.keep_result(&format!("message-{}", message.id), "txt", whole).ok());
        let beside = LineMeta { message: Some(message.id.clone()), ..LineMeta::default() };
        session.inject(&Injected::framed(Purpose::Message, &text), beside)?;
        self.forget(&message.id);
        Ok(())
    }

    /// Counts a message as delivered and removes it from the queue.
    pub fn forget(&self, id: &str) {
        let mut state = self.inner.state.lock();
        state.heard.insert(id.to_owned());
        state.queue.retain(|arrived| arrived.message.id != id);
    }

    /// Marks delivered messages in the mailboxes.
    pub fn mark(&self) -> Result<(), MailError> {
        let state = self.inner.state.lock();
        let marked = state.doors.iter().map(|door| door.mailbox.delivered(&state.heard)).collect::<Vec<_>>();
        marked.into_iter().collect()
    }

    /// Waits until there may be something new.
    pub async fn rings(&self) {
        while !self.has_news() {
            tokio::select! {
                () = self.inner.news.notified() => {}
                () = tokio::time::sleep(LOOK), if self.is_open() => {}
            }
        }
    }

    /// Waits until a message waits or a mailbox cannot be read.
    pub async fn arrives(&self) {
        loop {
            self.rings().await;
            if self.waiting().is_ok_and(|waiting| waiting.is_empty()) {
                continue;
            }
            return;
        }
    }

    fn has_news(&self) -> bool {
        let changed = |door: &OwnMailbox| files::glance(door.mailbox.path()) != door.seen;
        let state = self.inner.state.lock();
        !state.queue.is_empty() || state.doors.iter().any(changed)
    }

    /// State of the session's lifecycle.
    pub fn life(&self) -> SessionLife {
        self.inner.state.lock().life.clone()
    }

    /// Sets the state of the session's lifecycle.
    pub fn set_life(&self, life: SessionLife) {
        self.inner.state.lock().life = life;
    }

    /// Applies the effects of a team message on this session's state.
    pub fn obey(&self, message: &Message) {
        let is_lead = message.from == LEAD;
        match message.word() {
            ControlMessage::ShutdownRequest { request, .. } if is_lead => {
                self.set_life(SessionLife::ShutdownRequested { by: message.from.clone(), request });
            }
            ControlMessage::ShutdownResponse { approve: true, .. } => {
                self.inner.state.lock().left.insert(message.from.clone());
                self.rests(&message.from);
            }
            ControlMessage::Idle { heard, .. } => self.has_done(&message.from, heard),
            _ => {}
        }
        self.inner.state.lock().newest.insert(message.from.clone(), message.id.clone());
    }

    /// Names of agents that have announced their end.
    pub fn left(&self) -> Vec<String> {
        self.inner.state.lock().left.iter().cloned().collect()
    }

    /// True if an agent has announced its end. Asking removes the announcement.
    pub fn has_left(&self, name: &str) -> bool {
        self.inner.state.lock().left.remove(name)
    }

    /// Records that we gave an agent something to do.
    pub fn works(&self, name: &str, message: &str) {
        self.inner.state.lock().handed.insert(name.to_owned(), message.to_owned());
        self.works_for(name, LEAD, message);
    }

    /// Records that somebody else gave an agent something to do, unless it is known to be done.
    pub fn works_for(&self, name: &str, other: &str, message: &str) {
        let (who, message) = ((name.to_owned(), other.to_owned()), message.to_owned());
        let mut state = self.inner.state.lock();
        if state.done.get(&who) != Some(&message) {
            state.busy.insert(who, message);
        }
    }

    /// Records that an agent has finished what these messages gave it; they are the newest it received from each
    /// sender.
    pub fn has_done(&self, name: &str, messages: BTreeMap<String, String>) {
        let mut state = self.inner.state.lock();
        for (other, message) in messages {
            let who = (name.to_owned(), other);
            if state.busy.get(&who) == Some(&message) {
                state.busy.remove(&who);
            }
            state.done.insert(who, message);
        }
    }

    /// Records that an agent has nothing left to do.
    pub fn rests(&self, name: &str) {
        self.inner.state.lock().busy.retain(|(busy, _), _| busy != name);
    }

    /// Names of agents that work for us, or for others who do.
    pub fn busy(&self) -> Vec<String> {
        let mut names: Vec<String> = self.inner.state.lock().busy.keys().map(|(name, _)| name.clone()).collect();
        names.dedup();
        names
    }

    /// Message to the lead that there is nothing left to do.
    pub fn idle(&self, rest: IdleReason, said: &str) -> ControlMessage {
        let mut state = self.inner.state.lock();
        let (heard, handed) = (state.newest.clone(), std::mem::take(&mut state.handed));
        ControlMessage::Idle { rest, last_text: said.to_owned(), heard, handed }
    }
}
