//! The slash commands; those that go back in a conversation are in `resume_and_rewind`. A change of the mode applies
//! from the next call on, even during a turn.

use std::path::PathBuf;
use std::sync::Arc;

use engine::agent::NoSubagents;
use engine::subagent::Subagent;
use session::stats::{Stats, causes, saved_text};
use settings::BypassPermission;
use tools::permission::Mode;

use super::conversation::Conversation;
use super::conversation_view::Display;
use super::mcp::show_servers;
use super::modes;
use super::page::PagePart;
use super::screen_choices;
use super::session_state::SessionState;
use super::setup_commands;
use super::slash::{self, COMMANDS, KEYS};
use crate::args::RunArgs;
use crate::event_text;
use crate::session_markdown::markdown;
use crate::styled_text::{Colour, Span, TextStyle};

/// The help for a session of plain lines.
const LINES_HELP: &str = "Type a message. !command runs a command; the model sees its output with your next message.\n\
                          The end of the input exits; Ctrl-C stops a turn, or exits if there is none.";

impl Conversation {
    /// A command that begins with a slash.
    pub(super) async fn command(&mut self, line: &str) -> anyhow::Result<()> {
        let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
        let argument = argument.trim();
        let Some(command) = slash::find(name) else {
            self.view.hint = Some(format!("there is no /{name}; /help lists the commands"));
            return Ok(());
        };
        if self.session.agent.is_none() && self.has_to_wait(line) {
            self.view.hint = Some(format!("/{name} has to wait for the end of the turn"));
            return Ok(());
        }
        if self.view.face != Display::Lines {
            self.view.page.begin(PagePart::Said);
            self.view.page.line(&[Span::new(&format!("› /{line}"), TextStyle::DIM)], 2);
        }
        match command.name {
            "help" => self.help(),
            "exit" => self.requests.leaving = true,
            "expand" => self.expand(),
            "clear" => self.clear().await?,
            "resume" => self.resume(argument).await?,
            "rewind" => self.rewind(argument)?,
            "undo" => self.undo()?,
            "memory" => self.memories(argument),
            "learnt" => self.learnt(),
            "private" => self.private(argument),
            "team" => {
                self.view.team(argument, self.sharing.as_ref(), self.session.memory.as_deref(), &self.place);
            }
            "dream" => {
                let flag = self.args.settings.as_deref();
                self.session.dream(argument, &mut self.view, &self.place, flag).await?;
            }
            "model" => self.model(argument).await?,
            "effort" => setup_commands::effort(self, argument).await?,
            "think" => setup_commands::think(self, argument).await?,
            "config" => setup_commands::show_config(self)?,
            "doctor" => setup_commands::doctor(self),
            "init" => setup_commands::init(self),
            "review" => setup_commands::review(self, argument),
            "theme" => screen_choices::choose_theme(self, argument),
            "vim" => screen_choices::switch_vim(self),
            "add-dir" => setup_commands::add_directory(self, argument).await?,
            "copy" => setup_commands::copy(self),
            "mode" => self.mode(argument),
            "permissions" => self.permissions(argument),
            "hooks" => self.hooks(),
            "tasks" => {
                let SessionState { background, status, .. } = &mut self.session;
                self.requests.taken = background.show(argument, &status.prices, &mut self.view, &self.place);
            }
            "agents" => self.show_agents(argument),
            "skills" => self.session.show_skills(argument, &mut self.view),
            "mcp" => show_servers(self.session.servers.as_ref(), argument, &mut self.view),
            "statusline" => self.set_up_line(argument),
            "sandbox" => {
                self.session.sandbox(argument, &mut self.args, &self.place, &mut self.view).await?;
            }
            "compact" => self.session.compact(argument, &mut self.view, &mut self.requests),
            "snip" => self.session.snip(&mut self.view, &mut self.requests),
            "context" => self.session.show_context(&mut self.view),
            "keep" => self.session.keep(argument, &mut self.view)?,
            "cost" => self.cost(),
            "status" => self.show_status(),
            "export" => self.export(argument),
            _ => {}
        }
        Ok(())
    }

    /// True if a command needs the agent, which is away while it works.
    pub(super) fn has_to_wait(&self, line: &str) -> bool {
        let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
        let Some(command) = slash::find(name) else { return false };
        match command.name {
            "help" | "exit" | "expand" | "memory" | "learnt" | "team" | "mode" | "tasks" | "agents" | "skills"
            | "mcp" | "cost" | "status" | "config" | "doctor" | "theme" | "vim" => false,
            "permissions" => argument.trim().is_empty(),
            _ => true,
        }
    }

    /// Shows whole what was shown in short.
    pub(super) fn expand(&mut self) {
        let folder = self.session.background.folder.clone();
        match self.view.face {
            Display::Screen { .. } => self.view.open_pager(&self.place, &folder),
            Display::Lines => self.view.expand(&self.place, &folder),
        }
    }

    fn help(&mut self) {
        let commands: Vec<(String, String)> = COMMANDS
            .iter()
            .map(|command| {
                (format!("/{} {}", command.name, command.argument).trim_end().to_owned(), command.about.into())
            })
            .collect();
        self.view.table(&commands, TextStyle::of(Colour::Cyan));
        if self.view.face == Display::Lines {
            self.view.page.note(LINES_HELP, TextStyle::PLAIN);
            return;
        }
        let keys: Vec<(String, String)> = KEYS.iter().map(|(key, about)| ((*key).into(), (*about).into())).collect();
        self.view.table(&keys, TextStyle::BOLD);
    }

    /// The next mode.
    pub(super) fn next_mode(&mut self) {
        let now = self.session.status.mode();
        self.change_mode(modes::after(now, self.bypass_offered));
    }

    /// Changes the mode and says for a moment what that means.
    pub(super) fn change_mode(&mut self, mode: Mode) {
        self.set_mode(mode);
        self.view.hint = Some(format!("{}: {}", mode.name(), modes::about(mode)));
    }

    /// Shows the mode, or changes it.
    pub(super) fn mode(&mut self, name: &str) {
        if name.is_empty() {
            let now = self.session.status.mode();
            self.view.page.note(&format!("the mode is {}: {}", now.name(), modes::about(now)), TextStyle::PLAIN);
            return;
        }
        match Mode::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name)) {
            Some(Mode::BypassPermissions) if self.session.bypass == BypassPermission::Disabled => {
                self.view.hint = Some("bypassPermissions is disabled by the settings".into());
            }
            Some(chosen) => {
                self.set_mode(chosen);
                self.view.page.note(&format!("the mode is {}", chosen.name()), TextStyle::PLAIN);
            }
            None => self.view.hint = Some("modes: default, acceptEdits, plan, bypassPermissions".into()),
        }
    }

    /// Shows the rules, or changes the mode.
    pub(super) fn permissions(&mut self, mode: &str) {
        if !mode.is_empty() {
            return self.mode(mode);
        }
        let Some(agent) = &mut self.session.agent else { return };
        let rules = agent.policy_mut().rules.clone();
        let own = [Some(self.session.background.folder.clone()), self.session.memory.clone()];
        let own = own.into_iter().flatten().chain([memory::place::user_directory(self.place.home.path())]);
        let own: Vec<String> = own.map(|folder| folder.display().to_string()).collect();
        let mut entries = vec![("mode".to_owned(), self.session.status.mode().name().to_owned())];
        for (name, rules) in [("allow", &rules.allow), ("ask", &rules.ask), ("deny", &rules.deny)] {
            let mut texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
            let mut seen = std::collections::HashSet::new();
            // That it may use its own folders and memories is no rule of anybody's.
            let is_own = |text: &str| own.iter().any(|folder| text.contains(folder));
            texts.retain(|text| !is_own(text) && seen.insert(text.clone()));
            if texts.is_empty() {
                texts.push("nothing".to_owned());
            }
            // One a row; the name stands before the first.
            let names = std::iter::once(name).chain(std::iter::repeat(""));
            entries.extend(names.zip(texts).map(|(name, text)| (name.to_owned(), text)));
        }
        self.view.table(&entries, TextStyle::DIM);
    }

    /// Sets the mode, also for sessions that are opened later.
    fn set_mode(&mut self, mode: Mode) {
        self.session.status.mode.set(mode);
        self.args.permission_mode = Some(mode);
        self.args.dangerously_skip_permissions = false;
    }

    fn hooks(&mut self) {
        let Some(agent) = &self.session.agent else { return };
        let entries: Vec<(String, String)> = agent.hooks().list().iter().map(|hook| event_text::hook(hook)).collect();
        if entries.is_empty() {
            return self
                .view
                .page
                .note("there are no hooks; `cairn hooks list` also counts those left out", TextStyle::PLAIN);
        }
        self.view.table(&entries, TextStyle::DIM);
    }

    fn show_agents(&mut self, name: &str) {
        let Some(agents) = &self.session.background.agents else {
            return self.view.page.note(&alone(self.session.background.alone), TextStyle::PLAIN);
        };
        let registry = agents.registry();
        if let Some(agent) = registry.find(name) {
            let mut rows = vec![(agent.name.clone(), agent.listing())];
            rows.push(("source".to_owned(), crate::agent_sources::source_text(agent, None, agents.denies(agent))));
            rows.push(("prompt".to_owned(), agent.prompt.clone()));
            self.view.page.begin(PagePart::Note);
            return self.view.page.table(&rows, TextStyle::BOLD);
        }
        let row = |agent: &settings::agent_definitions::Definition| {
            let whose = crate::agent_sources::source_text(agent, None, agents.denies(agent));
            (agent.name.clone(), format!("{} ({whose})", agent.description))
        };
        let rows: Vec<(String, String)> = registry.agents().map(row).collect();
        self.view.table(&rows, TextStyle::BOLD);
        self.view.page.note("`@agent-NAME` in a message starts one; `cairn agents new` creates one", TextStyle::DIM);
    }

    /// Lets an agent set up a status line of the user's own.
    fn set_up_line(&mut self, wish: &str) {
        if self.session.background.agents.is_none() {
            return self.view.page.note(&alone(self.session.background.alone), TextStyle::PLAIN);
        }
        let wish = if wish.is_empty() { "Take it from my shell's prompt." } else { wish };
        self.requests.saying = Some(format!("Let @agent-statusline-setup set up my status line. {wish}"));
    }

    async fn clear(&mut self) -> anyhow::Result<()> {
        self.reopen(|args| {
            (args.resume, args.continue_, args.session_id, args.cleared) = (None, false, None, true);
        })
        .await?;
        self.view.page.note("a new session; the one before is in /resume", TextStyle::DIM);
        Ok(())
    }

    /// Lets one choose the model, or changes it.
    pub(super) async fn model(&mut self, name: &str) -> anyhow::Result<()> {
        if name.is_empty() {
            setup_commands::choose_model(self);
            return Ok(());
        }
        if let Some(why) = setup_commands::unknown_model(self, name) {
            self.view.hint = Some(why);
            return Ok(());
        }
        let (name, session) = (name.to_owned(), self.session.status.session.clone());
        let change = |args: &mut RunArgs| {
            args.model = Some(name);
            (args.resume, args.continue_, args.session_id) = (Some(session), false, None);
        };
        if self.reopen(change).await? {
            self.view.page.note(&format!("the model is {}", self.session.status.model), TextStyle::PLAIN);
        }
        Ok(())
    }

    /// The session's figures with those of its teammates, and what all of it cost, also by agents that are still at work.
    /// While the agent works, they are those of the session's file.
    fn figures(&self) -> Option<(Stats, String)> {
        let (path, prices) = (self.session.file(), &self.session.status.prices);
        let read;
        let log = match &self.session.agent {
            Some(agent) => agent.session().log(),
            None => {
                read = session::record::read(&path).ok()?;
                &read.log
            }
        };
        let teammates = session::stats::teammates(&path, log, prices);
        let stats = Stats { teammates, ..Stats::of(log, prices) };
        let so_far: f64 = self.at_work().map(|subagent| subagent.progress().cost_usd).sum();
        let cost = event_text::cost(stats.cost_usd.map(|cost| cost + so_far), &stats.teammates);
        Some((stats, cost))
    }

    /// Agents whose cost the session has not written down yet.
    fn at_work(&self) -> impl Iterator<Item = Arc<Subagent>> {
        self.session.background.subagents().into_iter().filter(|subagent| subagent.is_out())
    }

    fn cost(&mut self) {
        let Some((stats, cost)) = self.figures() else { return };
        let input = format!(
            "{} uncached, {} written to the cache, {} read from it",
            stats.uncached_tokens, stats.cache_write_tokens, stats.cache_read_tokens
        );
        let cache = format!(
            "{:.1} % read, re-write factor {:.2}, {}",
            stats.hit_ratio * 100.0,
            stats.rewrite_factor,
            saved_text(stats.cache_saved_usd)
        );
        let output = stats.output_tokens.to_string();
        let mut entries = vec![("cost", cost), ("input", input), ("output", output), ("cache", cache)];
        let breaks = causes(&stats.breaks);
        // The name stands before the first of them.
        let names = std::iter::once("breaks").chain(std::iter::repeat(""));
        entries.extend(names.zip(breaks.iter().map(ToString::to_string)));
        if !stats.beside.is_empty() {
            entries.push(("background", event_text::side_work_text(&stats.beside)));
        }
        let so_far = |subagent: Arc<Subagent>| format!("{} ${:.4} so far", subagent.kind, subagent.progress().cost_usd);
        entries.extend(self.at_work().map(|subagent| ("at work", so_far(subagent))));
        entries.extend(stats.teammates.iter().map(|mate| ("teammate", event_text::teammate(mate))));
        let ledger = self.session.status.ledger();
        let (today, budget) = (ledger.today(), ledger.budget());
        entries.extend([("today", event_text::spent(&today)), ("budget", event_text::budget(&today, &budget))]);
        let entries: Vec<_> = entries.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        self.view.table(&entries, TextStyle::DIM);
    }

    fn show_status(&mut self) {
        let Some((stats, cost)) = self.figures() else { return };
        let entries = [
            ("session", self.session.status.session.clone()),
            ("file", self.place.short(&self.session.file())),
            ("model", self.session.status.model.clone()),
            ("window", format!("{} of {} tokens", stats.context_tokens, self.session.status.window.size)),
            ("directory", self.place.short(&self.session.scope.directory())),
            ("mode", self.session.status.mode().name().to_owned()),
            ("replies", format!("{}, {} tool calls, {cost}", stats.replies, stats.tool_calls)),
        ];
        self.view.table(&entries.map(|(name, text)| (name.to_owned(), text)), TextStyle::DIM);
    }

    fn export(&mut self, file: &str) {
        let Some(agent) = &self.session.agent else { return };
        let name = if file.is_empty() { format!("{}.md", agent.session().id()) } else { file.to_owned() };
        let path: PathBuf = self.place.directory.join(name);
        let text = markdown(agent.session().log());
        match files::create_new(&path, text.as_bytes()) {
            Ok(_) => self.view.page.note(&format!("written to {}", self.place.short(&path)), TextStyle::PLAIN),
            Err(error) => self.view.page.note(&format!("not written: {error}"), TextStyle::of(Colour::Red)),
        }
    }
}

/// The reason no agents can be started.
fn alone(why: Option<NoSubagents>) -> String {
    match why {
        Some(NoSubagents::BeganWithout(cache)) => format!(
            "this session began without agents, and adding them now would lose its whole cache. It gets them \
                when it is resumed {} minutes after its last reply; a new session (/clear) has them at once",
            cache.as_mins()
        ),
        Some(NoSubagents::Forbidden) => {
            "a rule denies the tool Agent, so no agents can be started; /permissions".to_owned()
        }
        Some(NoSubagents::NotGiven) | None => {
            "no agents can be started here: the session was started bare, or with --tools without Agent".to_owned()
        }
    }
}
