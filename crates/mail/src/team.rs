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
use settings::agents::Isolation;
use settings::permission::SharedMode;
use tools::permission::Mode;

use crate::mailbox::{LEAD, MailError, Mailbox, Message, PATIENCE, Seal, SealKey, SealKeys, checked, folder};
use crate::task_file;

/// Who belongs to the team.
const CONFIG: &str = "config.json";
/// What is locked while that is changed.
const LOCK: &str = "config.lock";
/// What the lead holds while it is there.
const HELD: &str = "lead.lock";
/// The largest such file that is read.
const LARGEST: u64 = 1_000_000;
/// It is its owner's alone.
const PRIVATE_FILE: u32 = 0o600;
/// So many may belong to a team, the lead among them: more than the same number of jobs would not run.
const MOST: usize = 16;

/// A team, as one of its members sees it.
#[derive(Debug, Clone)]
pub struct Team {
    /// Its folder.
    folder: PathBuf,
    name: String,
    me: String,
    /// With what we seal our letters, where we have something.
    seal: Option<Arc<Seal>>,
    /// Whose letters to us are known, and by what.
    known: SealKeys,
    /// What teammates were given for theirs, where we are the lead.
    given: Arc<Mutex<BTreeMap<String, Seal>>>,
    /// What it is held to, where we are the lead.
    held: Option<Arc<HeldMode>>,
}

/// The lead's mode, and which one the team was told last.
#[derive(Debug)]
struct HeldMode {
    mode: SharedMode,
    told: Mutex<Option<Mode>>,
}

/// One who belongs to a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamMember {
    /// Its name and its team's.
    pub agent_id: String,
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub agent_type: String,
    /// When it came, in milliseconds.
    #[serde(default)]
    pub joined_at: i64,
    /// Where it works.
    #[serde(default)]
    pub cwd: PathBuf,
    /// Its session, with which it goes on when it is written to after its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Whether it works in a worktree of its own.
    #[serde(default, skip_serializing_if = "Isolation::is_none")]
    pub isolation: Isolation,
    /// Whether it is there.
    #[serde(default = "yes")]
    pub is_active: bool,
    /// How much may happen without asking: the lead's own, which holds for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What others wrote there.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One who is to come.
#[derive(Debug, Clone, Copy)]
pub struct TeamInvitation<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is.
    pub kind: &'a str,
    /// The id of its session.
    pub session: &'a str,
    /// Where it works.
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

    /// A team that somebody belongs to.
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

    /// As one sees it who was told by what to know the lead's letters.
    #[must_use]
    pub fn knowing(self, lead: Option<SealKey>) -> Self {
        lead.into_iter().for_each(|key| self.known.insert(LEAD, key));
        self
    }

    /// As one sees it who seals its letters. What it has not sealed is not its own.
    #[must_use]
    pub fn sealing_with(self, seal: Option<Seal>) -> Self {
        seal.iter().for_each(|seal| self.known.insert(&self.me, seal.key()));
        Self { seal: seal.map(Arc::new), ..self }
    }

    /// What a teammate is to seal its letters with, the same for as long as this lead is there: what it wrote before it
    /// ended is still its own.
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
        Self { held: Some(Arc::new(HeldMode { mode, told: Mutex::default() })), ..self }
    }

    /// By what others are to know the lead's letters.
    pub fn key(&self) -> Option<SealKey> {
        self.seal.as_ref().map(|seal| seal.key())
    }

    /// Puts a message into somebody's mailbox; our own is sealed. Who reads it knows the mode it was written in.
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

    /// Who of it we are.
    pub fn me(&self) -> &str {
        &self.me
    }

    /// Where its mailboxes lie.
    pub fn inboxes(&self) -> PathBuf {
        self.folder.join("inboxes")
    }

    /// Where its task list lies.
    pub fn tasks(&self) -> &Path {
        &self.folder
    }

    /// Our own mailbox.
    pub fn mailbox(&self) -> Result<Mailbox, MailError> {
        self.root()?;
        Ok(Mailbox::create(&self.inboxes(), &self.me)?.knowing(self.known.clone()))
    }

    /// Begins the team, or goes on with it: whoever was in it is gone with the lead that had started them.
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
        self.held.iter().for_each(|held| *held.told.lock() = None);
        self.tell_mode()?;
        self.mailbox()
    }

    /// Says that the lead is there, for as long as this is kept, however it ends.
    pub fn hold(&self) -> Result<files::Lock, MailError> {
        Ok(self.root()?.lock_within(HELD, PATIENCE)?)
    }

    /// Whether its lead is there: teammates end with it, whatever is written of them.
    pub fn is_led(&self) -> bool {
        let free = |root: Root| root.lock_within(HELD, Duration::ZERO).is_ok();
        files::glance(self.folder.join(HELD)).is_some() && !Root::open(&self.folder).is_ok_and(free)
    }

    /// When the file was changed that says who belongs to it.
    pub(super) fn glance(&self) -> Option<files::Glance> {
        files::glance(self.folder.join(CONFIG))
    }

    /// The lead's mode. Where it cannot be read it is the one that asks.
    pub fn mode(&self) -> Mode {
        let lead = self.members().into_iter().find(|member| member.name == LEAD);
        let mode = lead.and_then(|lead| lead.mode).map(Value::String);
        mode.and_then(|mode| serde_json::from_value(mode).ok()).unwrap_or_default()
    }

    /// Says in which mode the lead is, where the team was not told of it yet.
    pub fn tell_mode(&self) -> Result<(), MailError> {
        let Some(held) = &self.held else { return Ok(()) };
        let mut told = held.told.lock();
        let mode = held.mode.get();
        if *told == Some(mode) {
            return Ok(());
        }
        let name = Some(mode.name().to_owned());
        self.change_member(LEAD, |lead| lead.mode = name)?;
        *told = Some(mode);
        Ok(())
    }

    /// Takes somebody in, with a session and a mailbox that is empty.
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

    /// Lets somebody go, and gives back what they had begun.
    pub fn dismiss(&self, name: &str) -> Result<(), MailError> {
        if files::glance(self.folder.join(CONFIG)).is_none() {
            return Ok(()); // the team is gone, and is not to come back for this
        }
        self.change_member(name, |member| member.is_active = false)?;
        let _ = task_file::give_back(self.tasks(), name); // a task that stays taken is the lead's to give back
        Ok(())
    }

    /// Takes somebody in again who was there before, with what waits for them.
    pub fn welcome(&self, name: &str) -> Result<(), MailError> {
        self.change_member(name, |member| member.is_active = true)
    }

    fn change_member(&self, name: &str, by: impl FnOnce(&mut TeamMember)) -> Result<(), MailError> {
        self.change(|config| {
            config.members.iter_mut().find(|member| member.name == name).map(by);
            Ok(())
        })
    }

    /// Who belongs to it, also those who have left; nobody where it has not begun.
    pub fn members(&self) -> Vec<TeamMember> {
        let read = || {
            let file = Root::open_own(&self.folder).ok()?.read(CONFIG, LARGEST).ok()?;
            serde_json::from_slice::<TeamConfig>(&file.bytes).ok()
        };
        read().map(|config| config.members).unwrap_or_default()
    }

    /// The others, by name.
    pub fn others(&self) -> Vec<String> {
        let there = self.members().into_iter().filter(|member| member.is_active && member.name != self.me);
        there.map(|member| member.name).collect()
    }

    /// Takes it away whole, unless something waits for the lead to be heard, or one is there who ends without a word: whoever
    /// goes on with the session is told so.
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

    /// Its folder, and nobody else's.
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
