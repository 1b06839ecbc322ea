//! Operations of a member on a repository, after its rights were checked.

use std::collections::BTreeMap;

use axum::http::StatusCode;

use super::Service;
use super::problem::Problem;
use crate::error::Error;
use crate::folder;
use crate::key::EntryKey;
use crate::protocol::{Details, EntryWrite, WriteAnswer};
use crate::repository::Repository;
use crate::store::{Action, Level, Member};

/// Characters of a refusal's reason in the audit log.
const REASON: usize = 500;

/// A repository, for a member that may work with it.
pub(super) struct Access<'a> {
    service: &'a Service,
    member: &'a Member,
    pub(super) repository: Repository,
    /// The member's rights.
    pub(super) level: Level,
}

impl<'a> Access<'a> {
    /// Access for a member with at least this level. A member who may not even read is told that the repository does
    /// not exist.
    pub(super) async fn check(
        service: &'a Service,
        member: &'a Member,
        repository: &str,
        needed: Level,
    ) -> Result<Self, Problem> {
        let repository: Repository = repository.parse().map_err(Error::from)?;
        match service.store.repositories().level(member, &repository).await? {
            Some(level) if level >= needed => Ok(Self { service, member, repository, level }),
            _ => Err(Problem::forbidden()),
        }
    }

    /// Writes entries, unless one of them holds a secret.
    pub(super) async fn write(&self, write: &EntryWrite, expected: Option<&str>) -> Result<WriteAnswer, Problem> {
        let found = |text: &String| folder::secret(text).map(str::to_owned);
        let secrets =
            write.entries.iter().chain(&write.kept).filter_map(|(key, text)| Some((key.to_string(), found(text)?)));
        let refused: BTreeMap<String, String> = secrets.collect();
        if !refused.is_empty() {
            let told: Vec<String> = refused.iter().map(|(key, rule)| format!("{key}: {rule}")).collect();
            let told = told.join(", ");
            let details = Details { error_code: "team_memory_secret".to_owned(), refused, ..Details::default() };
            return Err(Problem::bad(format!("nothing was written: secrets were found ({told})")).with(details));
        }
        let (entries, limits) = (self.service.store.entries(), &self.service.options.limits);
        Ok(entries.write(&self.repository, self.member, write, expected, limits, self.service.now()).await?)
    }

    /// Writes an earlier text of an entry once more.
    pub(super) async fn restore(&self, key: &str, version: u64) -> Result<WriteAnswer, Problem> {
        let key: EntryKey = key.parse().map_err(Error::from)?;
        let versions = self.service.store.history().versions(&self.repository, &key).await?;
        let version = versions.into_iter().find(|one| one.version == version);
        let text = version.and_then(|one| one.text).ok_or_else(|| Problem::missing("that version has no text"))?;
        let written = self.write(&EntryWrite { entries: [(key, text)].into(), ..EntryWrite::default() }, None).await;
        self.recorded(written).await
    }

    /// Passes a write's result on. A refusal goes into the audit log, for the admins of the repository and for the
    /// member.
    pub(super) async fn recorded(&self, written: Result<WriteAnswer, Problem>) -> Result<WriteAnswer, Problem> {
        if let Err(problem) = &written
            && matches!(problem.status, StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE)
        {
            let why: String = problem.message.chars().take(REASON).collect();
            let (audit, now) = (self.service.store.audit(), self.service.now());
            audit.add(&self.member.name, Action::Refused, Some(&self.repository), &why, now).await?;
        }
        written
    }
}
