//! What reaches a session from others: agents of this process, its team, other sessions.
//!
//! A message waits in a queue in memory or in a [mailbox](crate::mailbox) on the disk, and enters the log of the session
//! at its next round. The log alone says what was delivered: an id that stands there is not entered again, and only then
//! is its letter marked. Whoever is killed when, each message so enters once.
//!
//! What it refuses to do: say who may write (the agent asks the user), take another's words for the user's, show more of
//! a message than fits beside the work.

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

/// How often a mailbox is looked at while nothing else happens: a stat each.
const LOOK: Duration = Duration::from_millis(250);

/// The mailboxes for what agents in this process write, by where it comes from.
const KEPT: [(MessageOrigin, &str); 2] =
    [(MessageOrigin::Parent, "from-parent"), (MessageOrigin::Process, "from-agents")];

/// The mail of one session. Clones share it.
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
    /// Where messages of agents in this process are kept until they are heard.
    kept: Option<PathBuf>,
    queue: VecDeque<WaitingMessage>,
    doors: Vec<OwnMailbox>,
    heard: HashSet<String>,
    life: SessionLife,
    /// Who works, for whom, and the last message by which they were given something to do.
    busy: BTreeMap<(String, String), String>,
    /// The last such message that was done, where we heard of it.
    done: BTreeMap<(String, String), String>,
    /// Who has said that they end.
    left: HashSet<String>,
    /// The newest message of the team that was heard, by the sender.
    newest: BTreeMap<String, String>,
    /// The newest message to others of the team since we were last idle.
    handed: BTreeMap<String, String>,
    /// What the user was told that is wrong.
    warned: HashSet<String>,
}

/// A mailbox that is the session's own.
#[derive(Debug)]
struct OwnMailbox {
    mailbox: Mailbox,
    origin: MessageOrigin,
    /// Its file, when it was last read.
    seen: Option<Glance>,
}

/// Whether a session is to go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SessionLife {
    /// It is.
    #[default]
    GoesOn,
    /// The lead has asked it to end, and it has not answered.
    Asked {
        /// Who asked.
        by: String,
        /// By what the answer names the request.
        request: String,
    },
    /// It has agreed to end.
    Ends,
}

impl Mail {
    /// Opens a mailbox that is the session's own from now on.
    pub fn open(&self, mailbox: Mailbox, origin: MessageOrigin) {
        self.inner.state.lock().doors.push(OwnMailbox { mailbox, origin, seen: None });
        self.ring();
    }

    /// Keeps what agents in this process write in a folder of the session's own, and takes up what waits there.
    pub fn keep_in(&self, folder: PathBuf) -> Result<(), MailError> {
        for (origin, name) in KEPT {
            if files::glance(folder.join(format!("{name}.json"))).is_some() {
                self.door_of(origin, &folder, name)?;
            }
        }
        self.inner.state.lock().kept = Some(folder);
        Ok(())
    }

    /// Opens the mailbox for what an agent in this process writes, where it is not open yet.
    fn door_of(&self, origin: MessageOrigin, folder: &Path, name: &str) -> Result<(), MailError> {
        let is_open = self.inner.state.lock().doors.iter().any(|door| door.origin == origin);
        if !is_open {
            self.open(Mailbox::create(folder, name)?, origin);
        }
        Ok(())
    }

    /// Takes a message of an agent in this process. It is on the disk when this returns, where the session has a place for it.
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

    /// Puts a word about an agent in this process into the queue.
    pub fn push(&self, message: Message, origin: MessageOrigin) {
        self.inner.state.lock().queue.push_back(WaitingMessage { message, origin });
        self.ring();
    }

    /// Whether something waits.
    pub fn is_queued(&self) -> bool {
        self.waiting().is_ok_and(|waiting| !waiting.is_empty())
    }

    /// Somebody has put something into a mailbox: there is no need to wait until it is looked at.
    pub fn ring(&self) {
        self.inner.news.notify_one();
    }

    /// Takes from the log what was delivered before.
    pub fn remember(&self, session: &Session) {
        self.inner.state.lock().heard.extend(session.heard());
    }

    /// Whether somebody can write to the session at all.
    pub fn is_open(&self) -> bool {
        let state = self.inner.state.lock();
        !state.doors.is_empty() || !state.queue.is_empty()
    }

    /// What waits and was not heard, in the order in which it is to be: an end first, then the lead, then as it came. A
    /// mailbox that cannot be read is an error where nothing else waits.
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
        // What can be read is heard first, whatever lies in another's place.
        match broken.filter(|_| waiting.is_empty()) {
            Some(error) => Err(error),
            None => Ok(waiting),
        }
    }

    /// Whether a trouble was not told of yet.
    pub fn is_new(&self, trouble: &str) -> bool {
        self.inner.state.lock().warned.insert(trouble.to_owned())
    }

    /// Enters a message into the log: now it is delivered.
    pub fn enter(&self, session: &mut Session, arrived: &WaitingMessage) -> Result<(), Error> {
        let WaitingMessage { message, .. } = arrived;
        let text = framed(arrived, |whole| session.keep_result(&format!("message-{}", message.id), "txt", whole).ok());
        let beside = LineMeta { message: Some(message.id.clone()), ..LineMeta::default() };
        session.inject(&Injected::framed(Purpose::Message, &text), beside)?;
        self.forget(&message.id);
        Ok(())
    }

    /// Nobody is to hear of it any more.
    pub fn forget(&self, id: &str) {
        let mut state = self.inner.state.lock();
        state.heard.insert(id.to_owned());
        state.queue.retain(|arrived| arrived.message.id != id);
    }

    /// Marks in the mailboxes what was delivered.
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

    /// Waits until something is there that is not heard yet, or cannot be read.
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

    /// Whether the session is to go on.
    pub fn life(&self) -> SessionLife {
        self.inner.state.lock().life.clone()
    }

    /// It was asked to end, has agreed to, or goes on after all.
    pub fn set_life(&self, life: SessionLife) {
        self.inner.state.lock().life = life;
    }

    /// Takes in what a message of the team does beside being read.
    pub fn obey(&self, message: &Message) {
        let is_lead = message.from == LEAD;
        match message.word() {
            ControlMessage::ShutdownRequest { request, .. } if is_lead => {
                self.set_life(SessionLife::Asked { by: message.from.clone(), request });
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

    /// Who has said that they end.
    pub fn left(&self) -> Vec<String> {
        self.inner.state.lock().left.iter().cloned().collect()
    }

    /// Whether somebody has said that they end; asked once.
    pub fn has_left(&self, name: &str) -> bool {
        self.inner.state.lock().left.remove(name)
    }

    /// Somebody was given something to do, by us.
    pub fn works(&self, name: &str, message: &str) {
        self.inner.state.lock().handed.insert(name.to_owned(), message.to_owned());
        self.works_for(name, LEAD, message);
    }

    /// Somebody was given something to do, by another, unless we know already that it is done.
    pub fn works_for(&self, name: &str, other: &str, message: &str) {
        let (who, message) = ((name.to_owned(), other.to_owned()), message.to_owned());
        let mut state = self.inner.state.lock();
        if state.done.get(&who) != Some(&message) {
            state.busy.insert(who, message);
        }
    }

    /// Somebody has nothing more to do of what they were given by these messages, the newest of each sender.
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

    /// Somebody has nothing to do any more, whatever it was.
    pub fn rests(&self, name: &str) {
        self.inner.state.lock().busy.retain(|(busy, _), _| busy != name);
    }

    /// Who works for us, or for others who do.
    pub fn busy(&self) -> Vec<String> {
        let mut names: Vec<String> = self.inner.state.lock().busy.keys().map(|(name, _)| name.clone()).collect();
        names.dedup();
        names
    }

    /// What is said to the lead when there is nothing more to do.
    pub fn idle(&self, rest: IdleReason, said: &str) -> ControlMessage {
        let mut state = self.inner.state.lock();
        let (heard, handed) = (state.newest.clone(), std::mem::take(&mut state.handed));
        ControlMessage::Idle { rest, said: said.to_owned(), heard, handed }
    }
}
