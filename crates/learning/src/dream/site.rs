//! Where dreams are dreamt: a memory directory, the project it belongs to, and what is known of dreams there.

use std::path::PathBuf;

use jiff::Timestamp;
use memory::changes::Changes;
use session::home::SessionFile;
use session::{Home, World};
use settings::Rhythm;

use super::book::Book;
use super::disk::Place;
use super::gate::{self, Gate, Said};
use super::lock::Mark;
use super::sessions;

/// A memory directory, and the project it belongs to.
#[derive(Debug, Clone)]
pub struct Site {
    /// The config home.
    pub home: Home,
    /// The memory directory.
    pub memory: PathBuf,
    /// The project.
    pub project: PathBuf,
    /// The session that asks, if one does; it is not looked at.
    pub session: Option<String>,
    /// The time and fresh names.
    pub world: World,
}

impl Site {
    /// When the last dream was, and what the lock says.
    pub fn last(&self) -> Result<(Option<Timestamp>, Mark), files::Error> {
        let mark = self.lock()?.map(|place| place.mark()).transpose()?.unwrap_or_default();
        Ok((gate::last(&mark, self.book().interrupted(&mark)), mark))
    }

    /// Whether it is time.
    pub fn due(&self, gate: &mut Gate, rhythm: &Rhythm) -> Result<Said, files::Error> {
        let (last, _) = self.last()?;
        Ok(gate.ask(rhythm, last, self.world.now(), |since| self.sessions(since).len()))
    }

    /// The process that dreams, if one does.
    pub fn holder(&self) -> Result<Option<u32>, files::Error> {
        self.lock()?.map_or(Ok(None), |mut place| place.holder())
    }

    /// The sessions that were touched since a time.
    pub fn sessions(&self, since: Option<Timestamp>) -> Vec<SessionFile> {
        sessions::touched(&self.folders(), since, self.session.as_deref())
    }

    /// Where they lie.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        sessions::folders(&self.home, &self.project)
    }

    /// Where dreams are written down.
    pub fn book(&self) -> Book {
        Book::of(&self.home, &self.memory)
    }

    /// Where it is kept what they changed.
    pub fn changes(&self) -> Changes {
        self.home.changes(&self.memory)
    }

    fn lock(&self) -> Result<Option<Place>, files::Error> {
        match files::Root::open(&self.memory) {
            Ok(root) => Ok(Some(Place::new(root, self.world.now()))),
            Err(files::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
