//! The socket by which other sessions of the same user write to this one.
//!
//! It is in a folder that only the user can enter, and is itself the user's alone; whoever connects all the same and is
//! somebody else is turned away. What comes is put into the session's mailbox before it is acknowledged. A socket that
//! nobody listens at any more is taken away by the next session that starts.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mail::mailbox::{ControlMessage, MailError, Mailbox, Message};
use mail::socket::{self, Patience};
use mail::{Mail, MessageOrigin};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use tokio::net::UnixListener;
use tokio_util::task::AbortOnDropHandle;

use crate::env;
use crate::program_paths::ProgramPaths;

/// The mailbox of a session for those who are not of its team, in the folder next to it.
pub(crate) const INBOX: &str = "inbox";
/// Extension of a socket's name.
pub(crate) const ENDING: &str = "sock";
/// Only the user enters the folder.
const PRIVATE_FOLDER: u32 = 0o700;
/// Only the user connects.
const PRIVATE_SOCKET: u32 = 0o600;
/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// So many connections are served at a time. One more, and the oldest is hung up on: who has something to say is long done.
const MOST: usize = 64;

/// The folder of the sessions' sockets.
pub(crate) fn folder(place: &ProgramPaths) -> PathBuf {
    let runtime = env::RUNTIME_DIR.get().map(PathBuf::from).filter(|path| path.is_absolute() && path.is_dir());
    runtime.map_or_else(|| place.home.path().join("sockets"), |runtime| runtime.join("cairn"))
}

/// The sessions that listen, each by its id and its socket.
pub(crate) fn sessions(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = files::list(folder).unwrap_or_default();
    let socket = |entry: &files::DirectoryEntry| {
        let path = folder.join(&entry.name);
        let id = path.file_stem()?.to_str()?.to_owned();
        (path.extension()? == ENDING && is_live(&path)).then_some((id, path))
    };
    entries.iter().filter_map(socket).collect()
}

/// True if somebody listens. Never waits: a stopped session accepts nothing, and the queue at its socket fills.
fn is_live(path: &Path) -> bool {
    let connected = || {
        let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        rustix::fs::fcntl_setfl(&socket, rustix::fs::OFlags::NONBLOCK)?;
        net::connect(&socket, &SocketAddrUnix::new(path)?)
    };
    matches!(connected(), Ok(()) | Err(Errno::AGAIN))
}

/// A session that can be written to, until this is dropped.
pub(crate) struct MessageListener {
    path: PathBuf,
    _task: AbortOnDropHandle<()>,
}

impl MessageListener {
    /// Listens for a session, whose folder and mail these are.
    pub(crate) fn start(sockets: &Path, session: &str, own: &Path, mail: &Mail) -> io::Result<Self> {
        make(sockets)?;
        let owner = std::fs::symlink_metadata(sockets)?.uid();
        sweep(sockets);
        let path = sockets.join(format!("{session}.{ENDING}"));
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(PRIVATE_SOCKET))?;
        let task = tokio::spawn(listen(listener, owner, own.to_owned(), mail.clone()));
        Ok(Self { path, _task: AbortOnDropHandle::new(task) })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MessageListener {
    fn drop(&mut self) {
        let _ = files::remove(&self.path); // the next session that starts takes it away
    }
}

/// Makes the folder. One that is there has to be a folder of the user's, which nobody else can enter.
fn make(folder: &Path) -> io::Result<()> {
    if let Some(above) = folder.parent() {
        files::create_directory(above).map_err(io::Error::other)?;
    }
    match std::fs::DirBuilder::new().mode(PRIVATE_FOLDER).create(folder) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let found = std::fs::symlink_metadata(folder)?;
    let private = found.is_dir() && found.mode() & 0o077 == 0 && found.uid() == rustix::process::geteuid().as_raw();
    if private { Ok(()) } else { Err(io::Error::other(format!("{} is open to other users", folder.display()))) }
}

/// Takes away the sockets of sessions that are gone.
fn sweep(folder: &Path) {
    for entry in files::list(folder).unwrap_or_default() {
        let path = folder.join(&entry.name);
        if path.extension().is_some_and(|extension| extension == ENDING) && !is_live(&path) {
            let _ = files::remove(&path); // another may have done so
        }
    }
}

async fn listen(listener: UnixListener, owner: u32, own: PathBuf, mail: Mail) {
    let mut served: VecDeque<AbortOnDropHandle<()>> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: others have to give some back first.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if stream.peer_cred().map(|peer| peer.uid()).ok() != Some(owner) {
            continue;
        }
        served.retain(|one| !one.is_finished());
        if served.len() >= MOST {
            served.pop_front();
        }
        let (own, mail) = (own.clone(), mail.clone());
        served.push_back(AbortOnDropHandle::new(tokio::spawn(async move {
            // One that breaks off has had what was acknowledged.
            let _ = socket::receive(stream, Patience::default(), |message| take(&own, &mail, message)).await;
        })));
    }
}

/// Puts a message into the session's mailbox, which is made for the first that comes.
fn take(own: &Path, mail: &Mail, message: &Message) -> Result<(), MailError> {
    if message.word() != ControlMessage::Text {
        return Err(MailError::NotWords); // what drives teammates is for a team alone
    }
    let is_new = !own.join(format!("{INBOX}.json")).is_file();
    let mailbox = Mailbox::create(own, INBOX)?;
    mailbox.send(message)?;
    if is_new {
        mail.open(mailbox, MessageOrigin::Elsewhere);
    }
    mail.ring();
    Ok(())
}
