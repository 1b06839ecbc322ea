//! Place of dreams: a memory directory, the project it belongs to, and what is known of dreams there.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use memory::changes::Changes;
use memory::store::IndexUpkeep;
use session::home::SessionFile;
use session::{Home, World};
use settings::Rhythm;

use super::disk::DreamLockPlace;
use super::dream_log::DreamLog;
use super::lock::Mark;
use super::schedule::{self, DreamSchedule, ScheduleDecision};
use super::sessions;
use crate::saver::SavingPlace;

/// Folder of daily logs, below the memory directory.
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
    /// The session that asks, if one does; it is left out.
    pub session: Option<String>,
    /// The time and fresh names.
    pub world: World,
}

impl DreamSite {
    /// Time of the last dream, and the lock's mark.
    pub fn last(&self) -> Result<(Option<Timestamp>, Mark), files::Error> {
        let mark = self.lock()?.map(|place| place.mark()).transpose()?.unwrap_or_default();
        Ok((schedule::last(&mark, self.dream_log().interrupted(&mark)), mark))
    }

    /// The schedule's decision.
    pub fn due(&self, schedule: &mut DreamSchedule, rhythm: &Rhythm) -> Result<ScheduleDecision, files::Error> {
        let (last, _) = self.last()?;
        let rests = self.dream_log().rests_until();
        Ok(schedule.ask(rhythm, (last, rests), self.world.now(), |since| self.sessions(since).len()))
    }

    /// The schedule's decision about distilling daily logs: the same, counting changed logs in place of sessions.
    pub fn due_to_distil(
        &self,
        schedule: &mut DreamSchedule,
        rhythm: &Rhythm,
    ) -> Result<ScheduleDecision, files::Error> {
        let (last, _) = self.last()?;
        let rests = self.dream_log().rests_until();
        Ok(schedule.ask(rhythm, (last, rests), self.world.now(), |since| self.logs(since)))
    }

    /// Number of daily logs written to since a time.
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

    /// The process that is dreaming, if there is one.
    pub fn holder(&self) -> Result<Option<u32>, files::Error> {
        self.lock()?.map_or(Ok(None), |mut place| place.holder())
    }

    /// The sessions that were touched since a time.
    pub fn sessions(&self, since: Option<Timestamp>) -> Vec<SessionFile> {
        sessions::touched(&self.folders(), since, self.session.as_deref())
    }

    /// Folders of the sessions.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        sessions::folders(&self.home, &self.project)
    }

    /// The directory of the user's memories that hold in every project, unless the dream is about that one.
    pub(super) fn user_place(&self, indexing: IndexUpkeep) -> Option<SavingPlace> {
        let place = SavingPlace::of_user(&self.home, indexing);
        let own = files::real(&self.memory).unwrap_or_else(|_| self.memory.clone());
        (place.directory != own).then_some(place)
    }

    /// The record of dreams.
    pub fn dream_log(&self) -> DreamLog {
        DreamLog::of(&self.home, &self.memory)
    }

    /// The record of their changes.
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
