//! Messages between a session and others: its mailbox, its team, its socket.
//!
//! A session that may start teammates learns so from the SendMessage tool; otherwise the tool is for its own agents
//! alone.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use engine::plan;
use engine::plan::mode::HandInPlan;
use engine::send_message::{SendMessage, SendPlainly};
use engine::teammates::{Lead, Teammates, briefing};
use mail::mailbox::{Mailbox, Seal, SealKey};
use mail::task_file::TaskBoard;
use mail::{Mail, MessageOrigin, Messenger, Team};
use session::{Session, World};
use settings::Settings;
use settings::permission::SharedMode;
use tools::Tool;
use tools::permission::Mode;
use transcript::tool_names;

use crate::args::RunArgs;
use crate::env;
use crate::message_socket::{self, INBOX, MessageListener};
use crate::program_paths::ProgramPaths;

/// So much is read of what a teammate's lead has for it.
const MOST_SECRET: u64 = 1_000;

/// The parts of a session that send and receive messages.
pub(crate) struct SessionMail {
    /// The list of tasks.
    pub(crate) board: TaskBoard,
    /// Outgoing messages.
    pub(crate) post: Messenger,
    /// Starts teammates, if that is allowed.
    pub(crate) teammates: Option<Teammates>,
    /// The team it is a teammate in.
    pub(crate) member_of: Option<Team>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,

    /// Others reach it for as long as this is there.
    listening: Option<MessageListener>,
}

impl SessionMail {
    /// For a session that was opened.
    pub(crate) fn open(
        args: &RunArgs,
        place: &ProgramPaths,
        settings: &Settings,
        session: &Session,
        mode: &SharedMode,
    ) -> anyhow::Result<Self> {
        let (mail, board, sockets) = (Mail::default(), TaskBoard::default(), message_socket::folder(place));
        let post = Messenger::new(World::real(), mail.clone(), Some(sockets.clone()));
        let folder = session.folder();
        let (teammates, member_of, warnings) = (None, None, Vec::new());
        let mut mailing = Self { board, post, teammates, member_of, warnings, listening: None };
        if args.is_bare() {
            return Ok(mailing);
        }
        let mailing_post = mailing.post.clone();
        if let (Some(team), Some(name)) = (&args.team_name, &args.agent_name) {
            let key = args.lead_key.as_deref().map(|key| SealKey::parse(key).context("--lead-key is not a key"));
            let key = key.transpose()?;
            let seal = key.is_some().then(secret).transpose()?.and_then(|secret| Seal::of_secret(&secret));
            let team = Team::of(place.home.path(), team, name)?.knowing(key).sealing_with(seal);
            mail.open(team.mailbox()?, MessageOrigin::Team);
            mailing.board.join(team.tasks(), name, &folder).map_err(anyhow::Error::msg)?;
            mailing_post.join(team.clone());
            mailing.member_of = Some(team);
            return Ok(mailing);
        }
        if env::AGENT_TEAMS.flag().or(settings.teammates) == Some(true) {
            let lead = lead(args, place, settings, session, &folder);
            let team = Team::led_by(place.home.path(), session.id())?;
            let teammates = Teammates::new(team, mailing_post.clone(), mailing.board.clone(), mode.clone(), lead);
            match teammates.go_on() {
                Ok(gone) if gone.is_empty() => {}
                Ok(gone) => mailing.warnings.push(format!(
                    "teammates ended when this session was last closed: {}. Write to one, and it continues",
                    gone.join(", ")
                )),
                Err(why) => mailing.warnings.push(format!("the team of this session cannot continue: {why}")),
            }
            mailing.teammates = Some(teammates);
        }
        if folder.join(format!("{INBOX}.json")).is_file() {
            match Mailbox::create(&folder, INBOX) {
                Ok(mailbox) => mail.open(mailbox, MessageOrigin::Elsewhere),
                Err(error) => {
                    mailing.warnings.push(format!("messages from other sessions cannot be received: {error}"));
                }
            }
        }
        // A session that cannot be reached works as well as any other.
        mailing.listening = MessageListener::start(&sockets, session.id(), &folder, &mail).ok();
        if let Some(listening) = &mailing.listening {
            mailing_post.listens_at(listening.path());
        }
        Ok(mailing)
    }

    /// Adds the tools that it needs.
    pub(crate) fn equip(&self, tools: &mut Vec<Arc<dyn Tool>>, mode: Mode) {
        if self.teammates.is_none() && self.member_of.is_none() {
            tools.push(Arc::new(SendPlainly(self.post.clone()))); // for the agents it sends out, where it may
            return;
        }
        tools.push(Arc::new(SendMessage { post: self.post.clone(), teammates: self.teammates.clone() }));
        if !tools.iter().any(|tool| tool.name() == tool_names::TASK_LIST) {
            tools.extend(plan::listed(&self.board));
        }
        if self.member_of.is_some() && mode == Mode::Plan {
            tools.push(Arc::new(HandInPlan(self.post.clone())));
        }
    }

    /// Text after the system prompt.
    pub(crate) fn appended(&self, said: Option<&str>) -> Option<String> {
        let briefing = self.member_of.as_ref().map(briefing);
        let parts: Vec<String> = briefing.into_iter().chain(said.map(str::to_owned)).collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }

    /// The session ends here, or is opened anew: nobody reaches it any more, and its team is gone.
    pub(crate) fn close(&mut self) {
        self.listening = None;
        if let Some(teammates) = self.teammates.take() {
            teammates.end();
        }
    }
}

impl Drop for SessionMail {
    fn drop(&mut self) {
        self.close();
    }
}

/// The secret with which a teammate seals its messages: its lead has written it into the pipe on stdin.
fn secret() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(MOST_SECRET).read_to_string(&mut text)?;
    Ok(text)
}

fn lead(args: &RunArgs, place: &ProgramPaths, settings: &Settings, session: &Session, folder: &Path) -> Lead {
    let program = env::program().unwrap_or_else(|| PathBuf::from("cairn"));
    Lead {
        session: session.id().to_owned(),
        folder: folder.to_owned(),
        sessions: place.home.project(&place.directory),
        prices: settings.prices.clone(),
        directory: place.directory.clone(),
        guard: Some(program.clone()),
        program,
        flags: flags(args),
        world: World::real(),
    }
}

/// The flags that hold for a lead's teammates too.
pub(crate) fn flags(args: &RunArgs) -> Vec<String> {
    let mut flags = Vec::new();
    let mut add = |flag: &str, values: &[String]| {
        // Joined to its flag, no value can be taken for another one.
        flags.extend(values.iter().map(|value| format!("--{flag}={value}")));
    };
    let directories: Vec<String> = args.add_dir.iter().map(|directory| directory.display().to_string()).collect();
    add("model", args.model.as_slice());
    add("settings", args.settings.as_slice());
    add("allowedTools", &args.allowed_tools);
    add("disallowedTools", &args.disallowed_tools);
    add("add-dir", &directories);
    add("agents", args.agents.as_slice());
    add("append-system-prompt", args.append_system_prompt.as_slice());
    add("max-turns", args.max_turns.map(|most| most.to_string()).as_slice());
    if args.trust {
        flags.push("--trust".to_owned());
    }
    flags
}
