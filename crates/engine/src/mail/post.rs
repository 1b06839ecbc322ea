//! How a session reaches others: agents of its process by their queues, its team by their mailboxes, other sessions by
//! their sockets.
//!
//! What it refuses to do: send under another's name, reach a socket that is no session's, guess whom a name means.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Mail, Team, socket};
use crate::mailbox::{LEAD, MailError, Mailbox, Message};
use crate::world::World;

/// What an address of another session begins with.
pub const SOCKET: &str = "uds:";
/// What is no address here.
const BRIDGE: &str = "bridge:";

/// How a session reaches others. Clones share it.
#[derive(Debug, Clone)]
pub struct Post {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    world: World,
    mail: Mail,
    near: Near,
    team: Mutex<Option<Team>>,
    /// Where the sockets of sessions lie, and our own if we have one.
    sockets: Option<PathBuf>,
    own: Mutex<Option<PathBuf>>,
}

/// Agents of this process that can be written to.
#[derive(Debug, Clone, Default)]
pub struct Near(Arc<Mutex<BTreeMap<String, Mail>>>);

/// One who can be written to, until this is dropped.
#[derive(Debug)]
pub struct Joined {
    near: Near,
    name: String,
}

impl Near {
    /// Lets somebody be written to by a name.
    #[must_use]
    pub fn join(&self, name: &str, mail: Mail) -> Joined {
        lock(&self.0).insert(name.to_owned(), mail);
        Joined { near: self.clone(), name: name.to_owned() }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        lock(&self.near.0).remove(&self.name);
    }
}

impl Post {
    /// Of a session with this mail. `sockets` is where the sockets of sessions lie.
    pub fn new(world: World, mail: Mail, sockets: Option<PathBuf>) -> Self {
        let (near, team, own) = (Near::default(), Mutex::default(), Mutex::default());
        Self { inner: Arc::new(Inner { world, mail, near, team, sockets, own }) }
    }

    /// The session belongs to a team from now on.
    pub fn join(&self, team: Team) {
        *lock(&self.inner.team) = Some(team);
    }

    /// The session can be reached at a socket.
    pub fn listens_at(&self, path: &Path) {
        *lock(&self.inner.own) = Some(path.to_owned());
    }

    /// The session's own mail.
    pub fn mail(&self) -> &Mail {
        &self.inner.mail
    }

    /// The agents of this process.
    pub fn near(&self) -> &Near {
        &self.inner.near
    }

    /// The team, if there is one.
    pub fn team(&self) -> Option<Team> {
        lock(&self.inner.team).clone()
    }

    /// Under which name it is known to those of its process and its team.
    pub fn me(&self) -> String {
        self.team().map_or_else(|| LEAD.to_owned(), |team| team.me().to_owned())
    }

    /// A name nobody has yet.
    pub fn fresh(&self) -> String {
        self.inner.world.fresh_id().to_string()
    }

    /// Who can be written to by name.
    pub fn others(&self) -> Vec<String> {
        let mut names: Vec<String> = lock(&self.inner.near.0).keys().cloned().collect();
        names.extend(self.team().map(|team| team.others()).unwrap_or_default());
        names.sort();
        names.dedup();
        names
    }

    /// Sends a text. Says who has got it: it is in their queue, or in their mailbox on the disk.
    pub async fn send(&self, to: &str, text: &str, summary: Option<&str>) -> Result<Vec<String>, MailError> {
        if let Some(path) = to.strip_prefix(SOCKET) {
            let path = self.reachable(Path::new(path))?;
            let from = lock(&self.inner.own).clone();
            let from = from.map_or_else(|| "another session".to_owned(), |own| format!("{SOCKET}{}", own.display()));
            socket::send(&path, &self.message(&from, text, summary)).await?;
            return Ok(vec![to.to_owned()]);
        }
        if to.starts_with(BRIDGE) {
            return Err(MailError::Unsupported(to.to_owned()));
        }
        let others = self.others();
        let named = match to {
            "*" => others.clone(),
            name => others.iter().filter(|other| *other == name).cloned().collect(),
        };
        if named.is_empty() {
            return Err(MailError::Unknown { name: to.to_owned(), others });
        }
        for name in &named {
            let message = self.message(&self.me(), text, summary);
            let near = lock(&self.inner.near.0).get(name).cloned();
            match (near, self.team()) {
                (Some(mail), _) => mail.push(message),
                (None, Some(team)) => {
                    Mailbox::of(&team.inboxes(), name)?.send(&message)?;
                    self.inner.mail.works(name, &message.id);
                }
                (None, None) => return Err(MailError::Unknown { name: name.clone(), others }),
            }
        }
        Ok(named)
    }

    fn message(&self, from: &str, text: &str, summary: Option<&str>) -> Message {
        let message = Message::new(self.fresh(), from, text, self.inner.world.now());
        Message { summary: summary.map(str::to_owned), ..message }
    }

    /// Sockets of sessions lie in one folder. Another program's is not for us to write to.
    fn reachable(&self, path: &Path) -> Result<PathBuf, MailError> {
        let is_one = path.extension().is_some_and(|extension| extension == "sock");
        match &self.inner.sockets {
            Some(folder) if is_one && path.parent() == Some(folder) => Ok(path.to_owned()),
            _ => Err(MailError::NoSession(path.to_owned())),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
