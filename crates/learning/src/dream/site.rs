//! Where dreams are dreamt: a memory directory, the project it belongs to, and what is known of dreams there.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use memory::changes::Changes;
use session::home::SessionFile;
use session::{Home, World};
use settings::Rhythm;

use super::book::DreamBook;
use super::disk::DreamLockPlace;
use super::gate::{self, DreamGate, GateDecision};
use super::lock::Mark;
use super::sessions;

/// Where daily logs lie, below the memory directory.
const LOGS: &str = "logs";

/// A memory directory, and the project it belongs to.
#[derive(Debug, Clone)]
pub struct DreamSite {
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

impl DreamSite {
    /// When the last dream was, and what the lock says.
    pub fn last(&self) -> Result<(Option<Timestamp>, Mark), files::Error> {
        let mark = self.lock()?.map(|place| place.mark()).transpose()?.unwrap_or_default();
        Ok((gate::last(&mark, self.book().interrupted(&mark)), mark))
    }

    /// Whether it is time.
    pub fn due(&self, gate: &mut DreamGate, rhythm: &Rhythm) -> Result<GateDecision, files::Error> {
        let (last, _) = self.last()?;
        let rests = self.book().rests_until();
        Ok(gate.ask(rhythm, (last, rests), self.world.now(), |since| self.sessions(since).len()))
    }

    /// Whether it is time to distil daily logs: the same, counting logs that were written to in the place of sessions.
    pub fn due_to_distil(&self, gate: &mut DreamGate, rhythm: &Rhythm) -> Result<GateDecision, files::Error> {
        let (last, _) = self.last()?;
        let rests = self.book().rests_until();
        Ok(gate.ask(rhythm, (last, rests), self.world.now(), |since| self.logs(since)))
    }

    /// How many daily logs were written to since a time.
    fn logs(&self, since: Option<Timestamp>) -> usize {
        let Ok(root) = files::Root::open(&self.memory) else { return 0 };
        let is_log =
            |path: &Path| path.starts_with(LOGS) && path.extension().is_some_and(|extension| extension == "md");
        let is_new = |path: &Path| {
            let modified = root.head(path, 0).ok().and_then(|head| Timestamp::try_from(head.modified?).ok());
            since.is_none() || modified > since
        };
        let found = root.walk(|_| true).unwrap_or_default();
        found.iter().filter(|found| is_log(&found.path) && is_new(&found.path)).count()
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
    pub fn book(&self) -> DreamBook {
        DreamBook::of(&self.home, &self.memory)
    }

    /// Where it is kept what they changed.
    pub fn changes(&self) -> Changes {
        self.home.changes(&self.memory)
    }

    fn lock(&self) -> Result<Option<DreamLockPlace>, files::Error> {
        match files::Root::open(&self.memory) {
            Ok(root) => Ok(Some(DreamLockPlace::new(root, self.world.now()))),
            Err(files::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
