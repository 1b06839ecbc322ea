//! A team: a lead and its teammates, who share mailboxes and a task list, in one folder of the config home.
//!
//! The layout is Claude Code's: `teams/<team>/config.json` says who belongs to it, `inboxes/<name>.json` is each one's
//! mailbox. Teammates live below their lead, so a lead that begins anew begins alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use files::Root;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use settings::agent_definitions::Isolation;
use settings::permission::SharedMode;
use tools::permission::Mode;

use crate::mailbox::{LEAD, MailError, Mailbox, Message, PATIENCE, Seal, SealKey, SealKeys, checked, folder};
use crate::task_file;

/// The file with the members.
const CONFIG: &str = "config.json";
/// The file that is locked while that one is changed.
const LOCK: &str = "config.lock";
/// The file that the lead keeps locked while it runs.
const HELD: &str = "lead.lock";
/// The largest such file that is read.
const LARGEST: u64 = 1_000_000;
/// Access bits: only the owner reads and writes it.
const PRIVATE_FILE: u32 = 0o600;
/// Limit on members, lead included, the same as on jobs.
const MOST: usize = 16;

/// A team, as one of its members sees it.
#[derive(Debug, Clone)]
pub struct Team {
    /// Its folder.
    folder: PathBuf,
    name: String,
    me: String,
    /// Our private key, if we have one.
    seal: Option<Arc<Seal>>,
    /// Public keys of those who write to us.
    known: SealKeys,
    /// Private keys given to teammates, if we are the lead.
    given: Arc<Mutex<BTreeMap<String, Seal>>>,
    /// The lead's mode, if we are the lead.
    held: Option<Arc<HeldMode>>,
}

/// The lead's mode, and the one last published to the team.
#[derive(Debug)]
struct HeldMode {
    mode: SharedMode,
    published_mode: Mutex<Option<Mode>>,
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamMember {
    /// Its name with its team's.
    pub agent_id: String,
    /// Its name.
    pub name: String,
    /// Its agent type.
    #[serde(default)]
    pub agent_type: String,
    /// Time of joining, in milliseconds.
    #[serde(default)]
    pub joined_at: i64,
    /// Its working directory.
    #[serde(default)]
    pub cwd: PathBuf,
    /// Its session, which is resumed if somebody writes to it after its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its isolation: a worktree of its own, or none.
    #[serde(default, skip_serializing_if = "Isolation::is_none")]
    pub isolation: Isolation,
    /// True while it runs.
    #[serde(default = "yes")]
    pub is_active: bool,
    /// The permission mode; the lead's entry holds for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Fields written by other programs.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A member to be added.
#[derive(Debug, Clone, Copy)]
pub struct TeamInvitation<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its agent type.
    pub kind: &'a str,
    /// The id of its session.
    pub session: &'a str,
    /// Its isolation.
    pub isolation: Isolation,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TeamConfig {
    name: String,
    created_at: i64,
    lead_agent_id: String,
    lead_session_id: String,
    members: Vec<TeamMember>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

fn yes() -> bool {
    true
}

impl Team {
    /// The team of a session that leads it.
    pub fn led_by(config: &Path, session: &str) -> Result<Self, MailError> {
        Ok(Self::of(config, &format!("session-{session}"), LEAD)?.sealing_with(Seal::new()))
    }

    /// The team, as member `me` sees it.
    pub fn of(config: &Path, team: &str, me: &str) -> Result<Self, MailError> {
        let inboxes = folder(config, team)?;
        let own = inboxes.parent().unwrap_or(&inboxes).to_owned();
        Ok(Self {
            folder: own,
            name: team.to_owned(),
            me: checked(me)?.to_owned(),
            seal: None,
            known: SealKeys::default(),
            given: Arc::default(),
            held: None,
        })
    }

    /// With the lead's public key: letters in its name count only if sealed with it.
    #[must_use]
    pub fn knowing(self, lead: Option<SealKey>) -> Self {
        lead.into_iter().for_each(|key| self.known.insert(LEAD, key));
        self
    }

    /// With our private key, which seals our letters. An unsealed letter in our name does not count.
    #[must_use]
    pub fn sealing_with(self, seal: Option<Seal>) -> Self {
        seal.iter().for_each(|seal| self.known.insert(&self.me, seal.key()));
        Self { seal: seal.map(Arc::new), ..self }
    }

    /// A teammate's private key, the same for as long as this lead runs: what a teammate wrote before it ended still
    /// counts as its own.
    pub fn secret_for(&self, name: &str) -> Option<String> {
        let mut given = self.given.lock();
        if !given.contains_key(name) {
            given.insert(name.to_owned(), Seal::new()?);
        }
        let seal = given.get(name)?;
        let secret = seal.secret();
        self.known.insert(name, seal.key());
        Some(secret)
    }

    /// As its lead sees it, whose mode holds for all.
    #[must_use]
    pub fn held_to(self, mode: SharedMode) -> Self {
        Self { held: Some(Arc::new(HeldMode { mode, published_mode: Mutex::default() })), ..self }
    }

    /// Our public key, with which others verify our letters.
    pub fn key(&self) -> Option<SealKey> {
        self.seal.as_ref().map(|seal| seal.key())
    }

    /// Puts a message into a member's mailbox, sealed if it is ours. The lead's mode is published before it.
    pub fn write_to(&self, name: &str, message: &Message) -> Result<(), MailError> {
        self.tell_mode()?;
        let mailbox = Mailbox::of(&self.inboxes(), name)?;
        match &self.seal {
            Some(seal) if message.from == self.me => mailbox.send_sealed(message, seal),
            _ => mailbox.send(message),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Our own name in it.
    pub fn me(&self) -> &str {
        &self.me
    }

    /// Folder of its mailboxes.
    pub fn inboxes(&self) -> PathBuf {
        self.folder.join("inboxes")
    }

    /// Folder of its task list.
    pub fn tasks(&self) -> &Path {
        &self.folder
    }

    /// Our own mailbox.
    pub fn mailbox(&self) -> Result<Mailbox, MailError> {
        self.root()?;
        Ok(Mailbox::create(&self.inboxes(), &self.me)?.knowing(self.known.clone()))
    }

    /// Begins the team, or resumes it: members started by an earlier lead have ended with it.
    pub fn begin(&self, session: &str, directory: &Path, now: Timestamp) -> Result<Mailbox, MailError> {
        self.change(|config| {
            config.members.retain(|member| member.name != LEAD);
            for gone in &mut config.members {
                gone.is_active = false;
                let _ = task_file::give_back(self.tasks(), &gone.name); // a task that stays taken is the lead's to give back
            }
            if config.created_at == 0 {
                config.created_at = now.as_millisecond();
            }
            config.name.clone_from(&self.name);
            (config.lead_agent_id, config.lead_session_id) = (self.id_of(LEAD), session.to_owned());
            config.members.insert(0, self.member(LEAD, LEAD, directory, now));
            Ok(())
        })?;
        self.held.iter().for_each(|held| *held.published_mode.lock() = None);
        self.tell_mode()?;
        self.mailbox()
    }

    /// Shows that the lead is running, for as long as the lock is kept, however the process ends.
    pub fn hold(&self) -> Result<files::Lock, MailError> {
        Ok(self.root()?.lock_within(HELD, PATIENCE)?)
    }

    /// True if its lead is running: teammates end with it, whatever the file says of them.
    pub fn is_led(&self) -> bool {
        let free = |root: Root| root.lock_within(HELD, Duration::ZERO).is_ok();
        files::glance(self.folder.join(HELD)).is_some() && !Root::open(&self.folder).is_ok_and(free)
    }

    /// State of the file with the members.
    pub(super) fn glance(&self) -> Option<files::Glance> {
        files::glance(self.folder.join(CONFIG))
    }

    /// The lead's mode; the default one, which asks, if it cannot be read.
    pub fn mode(&self) -> Mode {
        let lead = self.members().into_iter().find(|member| member.name == LEAD);
        let mode = lead.and_then(|lead| lead.mode).map(Value::String);
        mode.and_then(|mode| serde_json::from_value(mode).ok()).unwrap_or_default()
    }

    /// Publishes the lead's mode, unless the team already has it.
    pub fn tell_mode(&self) -> Result<(), MailError> {
        let Some(held) = &self.held else { return Ok(()) };
        let mut told = held.published_mode.lock();
        let mode = held.mode.get();
        if *told == Some(mode) {
            return Ok(());
        }
        let name = Some(mode.name().to_owned());
        self.change_member(LEAD, |lead| lead.mode = name)?;
        *told = Some(mode);
        Ok(())
    }

    /// Adds a member, with a session and an empty mailbox.
    pub fn invite(&self, who: &TeamInvitation<'_>, directory: &Path, now: Timestamp) -> Result<Mailbox, MailError> {
        let name = checked(who.name)?;
        self.change(|config| {
            let active = config.members.iter().filter(|member| member.is_active);
            // Some disks, and most people, do not tell upper case from lower.
            if let Some(there) = active.clone().find(|member| member.name.eq_ignore_ascii_case(name)) {
                return Err(MailError::Taken(there.name.clone()));
            }
            if active.count() >= MOST {
                return Err(MailError::Crowded(MOST));
            }
            config.members.retain(|member| !member.name.eq_ignore_ascii_case(name));
            let (session_id, isolation) = (Some(who.session.to_owned()), who.isolation);
            config.members.push(TeamMember { session_id, isolation, ..self.member(name, who.kind, directory, now) });
            Ok(())
        })?;
        match files::remove(self.inboxes().join(format!("{name}.json"))) {
            Ok(()) | Err(files::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Mailbox::create(&self.inboxes(), name)
    }

    /// Marks a member as ended, and gives back its tasks.
    pub fn dismiss(&self, name: &str) -> Result<(), MailError> {
        if files::glance(self.folder.join(CONFIG)).is_none() {
            return Ok(()); // the team is gone, and is not to come back for this
        }
        self.change_member(name, |member| member.is_active = false)?;
        let _ = task_file::give_back(self.tasks(), name); // a task that stays taken is the lead's to give back
        Ok(())
    }

    /// Marks a former member as running again; its messages are kept.
    pub fn welcome(&self, name: &str) -> Result<(), MailError> {
        self.change_member(name, |member| member.is_active = true)
    }

    fn change_member(&self, name: &str, by: impl FnOnce(&mut TeamMember)) -> Result<(), MailError> {
        self.change(|config| {
            config.members.iter_mut().find(|member| member.name == name).map(by);
            Ok(())
        })
    }

    /// All members, also those who have left; none if it has not begun.
    pub fn members(&self) -> Vec<TeamMember> {
        let read = || {
            let file = Root::open_own(&self.folder).ok()?.read(CONFIG, LARGEST).ok()?;
            serde_json::from_slice::<TeamConfig>(&file.bytes).ok()
        };
        read().map(|config| config.members).unwrap_or_default()
    }

    /// Names of the other running members.
    pub fn others(&self) -> Vec<String> {
        let there = self.members().into_iter().filter(|member| member.is_active && member.name != self.me);
        there.map(|member| member.name).collect()
    }

    /// Removes the team's folder, unless messages wait for the lead, other members are running, or tasks are on the
    /// list: whoever resumes the session then finds them.
    pub fn end(&self) -> Result<(), MailError> {
        let waits = Mailbox::of(&self.inboxes(), LEAD).and_then(|mailbox| mailbox.waiting());
        let is_over = waits.is_ok_and(|waiting| waiting.is_empty()) && self.others().is_empty();
        if is_over && task_file::is_empty(self.tasks()) {
            files::remove_tree(&self.folder)?;
        }
        Ok(())
    }

    fn id_of(&self, name: &str) -> String {
        format!("{name}@{}", self.name)
    }

    fn member(&self, name: &str, kind: &str, directory: &Path, now: Timestamp) -> TeamMember {
        TeamMember {
            agent_id: self.id_of(name),
            name: name.to_owned(),
            agent_type: kind.to_owned(),
            joined_at: now.as_millisecond(),
            cwd: directory.to_owned(),
            session_id: None,
            isolation: Isolation::None,
            is_active: true,
            mode: None,
            more: Map::new(),
        }
    }

    /// The team's folder, if nobody else may write there.
    fn root(&self) -> Result<Root, MailError> {
        files::create_directory(&self.folder)?;
        if let Some(teams) = self.folder.parent() {
            Root::open_own(teams)?;
        }
        Ok(Root::open_own(&self.folder)?)
    }

    fn change(&self, by: impl FnOnce(&mut TeamConfig) -> Result<(), MailError>) -> Result<(), MailError> {
        let root = self.root()?;
        let _held = root.lock_within(LOCK, PATIENCE)?;
        let broken = |error: serde_json::Error| MailError::Broken {
            path: self.folder.join(CONFIG),
            what: "team",
            why: error.to_string(),
        };
        let mut config = match root.read(CONFIG, LARGEST) {
            Ok(file) => serde_json::from_slice(&file.bytes).map_err(broken)?,
            Err(files::Error::NotFound { .. }) => TeamConfig::default(),
            Err(error) => return Err(error.into()),
        };
        by(&mut config)?;
        let text = serde_json::to_vec_pretty(&config).map_err(broken)?;
        Ok(root.replace(CONFIG, &text, PRIVATE_FILE)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AGENT-2: a letter of the lead's is read in the mode it was written in: the mode is there before the letter, also where
    /// nobody has looked since it changed, and also when the team begins anew.
    #[test]
    fn the_mode_is_there_before_the_letter() {
        let (folder, now) = (tempfile::tempdir().unwrap(), Timestamp::UNIX_EPOCH);
        let mode = SharedMode::from(Mode::AcceptEdits);
        let lead = Team::led_by(folder.path(), "s1").unwrap().held_to(mode.clone());
        lead.begin("s1", folder.path(), now).unwrap();
        lead.invite(
            &TeamInvitation { name: "scout", kind: "scout", session: "s2", isolation: Isolation::None },
            folder.path(),
            now,
        )
        .unwrap();
        let scout = Team::of(folder.path(), lead.name(), "scout").unwrap();
        assert_eq!(scout.mode(), Mode::AcceptEdits);
        for (id, to) in [("1", Mode::Plan), ("2", Mode::Default), ("3", Mode::AcceptEdits)] {
            mode.set(to);
            assert_ne!(scout.mode(), to);
            lead.write_to("scout", &Message::new(id.to_owned(), LEAD, "Write it.", now)).unwrap();
            assert_eq!(scout.mode(), to);
        }
        lead.begin("s1", folder.path(), now).unwrap();
        assert_eq!(scout.mode(), Mode::AcceptEdits);
    }
}
