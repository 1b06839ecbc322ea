//! Sending to others: to agents of this process by their queues, to the team by its mailboxes, to other sessions by
//! their sockets.
//!
//! What it refuses to do: send under another's name, reach a socket that is no session's, guess whom a name means.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use session::World;

use super::{Team, socket};
use crate::incoming::Mail;
use crate::mailbox::{ControlMessage, LEAD, MOST_TEXT, MailError, Message};
use crate::message_text::MessageOrigin;

/// Prefix of another session's address.
pub const SOCKET: &str = "uds:";
/// Prefix of an address kind that is not supported.
const BRIDGE: &str = "bridge:";

/// Sender of a session, or of one of its subagents. Clones share it.
#[derive(Debug, Clone)]
pub struct Messenger {
    inner: Arc<MessengerInner>,
}

#[derive(Debug)]
struct MessengerInner {
    world: World,
    mail: Mail,
    /// Set for a subagent: its own name, and its parent's name and mail.
    below: Option<SubagentMessenger>,
    /// Folder of the sockets of sessions.
    sockets: Option<PathBuf>,
    state: Mutex<MessengerState>,
}

#[derive(Debug, Default)]
struct MessengerState {
    /// Agents of this process.
    near: Vec<NearbyAgents>,
    team: Option<Team>,
    /// Our own socket, if we have one.
    own: Option<PathBuf>,
}

#[derive(Debug)]
struct SubagentMessenger {
    me: String,
    above: (String, Mail),
}

/// Agents of this process that can be written to by name.
pub trait Neighbours: Send + Sync {
    /// The names of all.
    fn names(&self) -> Vec<String>;

    /// The names of those that are at work.
    fn at_work(&self) -> Vec<String>;

    /// True if one has this name or id.
    fn knows(&self, name: &str) -> bool;

    /// Writes to one.
    fn write_to(self: Arc<Self>, name: &str, message: &Message, origin: MessageOrigin) -> Result<(), MailError>;
}

/// Subagents of one parent, and our relation to them.
struct NearbyAgents {
    neighbours: Weak<dyn Neighbours>,
    origin: MessageOrigin,
}

impl fmt::Debug for NearbyAgents {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "agents to whom we are {:?}", self.origin)
    }
}

impl Messenger {
    /// The post of a session with this mail. `sockets` is the folder of the sockets of sessions.
    pub fn new(world: World, mail: Mail, sockets: Option<PathBuf>) -> Self {
        Self { inner: Arc::new(MessengerInner { world, mail, below: None, sockets, state: Mutex::default() }) }
    }

    /// The post of a subagent: it reaches its parent and the parent's other subagents, and nobody else.
    pub fn below(&self, me: &str, mail: &Mail, neighbours: &Arc<dyn Neighbours>) -> Self {
        let below = SubagentMessenger { me: me.to_owned(), above: (self.me(), self.inner.mail.clone()) };
        let near = NearbyAgents { neighbours: Arc::downgrade(neighbours), origin: MessageOrigin::Process };
        let inner = MessengerInner {
            world: self.inner.world.clone(),
            mail: mail.clone(),
            below: Some(below),
            sockets: None,
            state: Mutex::new(MessengerState { near: vec![near], ..MessengerState::default() }),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Adds the session's own subagents to those that can be written to.
    pub fn sends_out(&self, neighbours: &Arc<dyn Neighbours>) {
        let neighbours = Arc::downgrade(neighbours);
        let near = &mut self.inner.state.lock().near;
        near.retain(|near| !near.neighbours.ptr_eq(&neighbours) && near.neighbours.strong_count() > 0);
        near.push(NearbyAgents { neighbours, origin: MessageOrigin::Parent });
    }

    /// Joins the session to a team.
    pub fn join(&self, team: Team) {
        self.inner.state.lock().team = Some(team);
    }

    /// Sets the socket at which the session can be reached.
    pub fn listens_at(&self, path: &Path) {
        self.inner.state.lock().own = Some(path.to_owned());
    }

    /// The session's own mail.
    pub fn mail(&self) -> &Mail {
        &self.inner.mail
    }

    /// The team, if there is one.
    pub fn team(&self) -> Option<Team> {
        self.inner.state.lock().team.clone()
    }

    /// Its name within its process and its team.
    pub fn me(&self) -> String {
        match (&self.inner.below, self.team()) {
            (Some(below), _) => below.me.clone(),
            (None, Some(team)) => team.me().to_owned(),
            (None, None) => LEAD.to_owned(),
        }
    }

    /// A new unique id.
    pub fn fresh(&self) -> String {
        self.inner.world.fresh_id().to_string()
    }

    /// Names of the others in its team.
    pub fn teammates(&self) -> Vec<String> {
        self.team().map(|team| team.others()).unwrap_or_default()
    }

    /// Names that can be written to.
    pub fn others(&self) -> Vec<String> {
        self.named(|neighbours| neighbours.names())
    }

    fn named(&self, near: impl Fn(&dyn Neighbours) -> Vec<String>) -> Vec<String> {
        let mut names = self.teammates();
        names.extend(self.inner.below.iter().map(|below| below.above.0.clone()));
        names.extend(self.near().iter().flat_map(|(neighbours, _)| near(&**neighbours)));
        names.retain(|name| *name != self.me());
        names.sort();
        names.dedup();
        names
    }

    fn near(&self) -> Vec<(Arc<dyn Neighbours>, MessageOrigin)> {
        let state = self.inner.state.lock();
        state.near.iter().filter_map(|near| Some((near.neighbours.upgrade()?, near.origin))).collect()
    }

    /// Text of a control message sent from here.
    pub fn written(&self, word: &ControlMessage) -> String {
        word.to_text(&self.me(), self.inner.world.now()).unwrap_or_default()
    }

    /// Sends a control message.
    pub async fn say(&self, to: &str, word: &ControlMessage, summary: Option<&str>) -> Result<Vec<String>, MailError> {
        self.send(to, &self.written(word), summary).await
    }

    /// Sends a text and returns the names of the recipients. It is in their queues, or in their mailboxes on disk.
    pub async fn send(&self, to: &str, text: &str, summary: Option<&str>) -> Result<Vec<String>, MailError> {
        if text.len() > MOST_TEXT {
            return Err(MailError::Long(text.len()));
        }
        if let Some(path) = to.strip_prefix(SOCKET) {
            let path = self.reachable(Path::new(path))?;
            let from = self.inner.state.lock().own.clone();
            let from = from.map_or_else(|| "another session".to_owned(), |own| format!("{SOCKET}{}", own.display()));
            socket::send(&path, &self.message(&from, text, summary)).await?;
            return Ok(vec![to.to_owned()]);
        }
        if to.starts_with(BRIDGE) {
            return Err(MailError::Unsupported(to.to_owned()));
        }
        let named = match to {
            "*" => self.all(),
            name => vec![name.to_owned()],
        };
        if named.is_empty() {
            return Err(MailError::Unknown { name: to.to_owned(), others: self.others() });
        }
        for name in &named {
            self.send_to(name, &self.message(&self.me(), text, summary))?;
        }
        Ok(named)
    }

    /// Names of all that are at work: a message for everybody does not wake an agent that has ended.
    fn all(&self) -> Vec<String> {
        self.named(|neighbours| neighbours.at_work())
    }

    fn send_to(&self, name: &str, message: &Message) -> Result<(), MailError> {
        let unknown = || MailError::Unknown { name: name.to_owned(), others: self.others() };
        if name == self.me() {
            return Err(unknown());
        }
        if let Some(SubagentMessenger { above: (_, mail), .. }) =
            self.inner.below.as_ref().filter(|below| below.above.0 == name)
        {
            return mail.take(message, MessageOrigin::Process);
        }
        if let Some(team) = self.team().filter(|team| team.others().iter().any(|other| other == name)) {
            team.write_to(name, message)?;
            self.inner.mail.works(name, &message.id);
            return Ok(());
        }
        let near = self.near().into_iter().find(|(neighbours, _)| neighbours.knows(name));
        let (neighbours, origin) = near.ok_or_else(unknown)?;
        neighbours.write_to(name, message, origin)
    }

    fn message(&self, from: &str, text: &str, summary: Option<&str>) -> Message {
        let message = Message::new(self.fresh(), from, text, self.inner.world.now());
        Message { summary: summary.map(str::to_owned), ..message }
    }

    /// Path of a session's socket. All lie in one folder, and we do not write to sockets of other programs.
    fn reachable(&self, path: &Path) -> Result<PathBuf, MailError> {
        let is_one = path.extension().is_some_and(|extension| extension == "sock");
        match &self.inner.sockets {
            Some(folder) if is_one && path.parent() == Some(folder) => Ok(path.to_owned()),
            _ => Err(MailError::NoSession(path.to_owned())),
        }
    }
}
