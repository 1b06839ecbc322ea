//! What the commands that begin with a slash do; those that go to another place in time are in `back`.

use std::path::PathBuf;
use std::sync::Arc;

use engine::agent::Alone;
use engine::errand::Errand;
use session::stats::{Stats, causes, saved_text};

use super::conversation::{Conversation, Face};
use super::page::Part;
use super::slash::{self, COMMANDS, KEYS};
use super::status::mode_name;
use crate::args::RunArgs;
use crate::session_markdown::markdown;
use crate::span::{Colour, Look, Span};
use crate::told;

/// What `/help` says of a session of plain lines.
const LINES_HELP: &str = "Type what you want to say. !command runs a command that the model sees with your next words.\n\
                          The end of the input leaves; Ctrl-C stops a turn, and leaves where there is none.";

impl Conversation {
    /// A command that begins with a slash.
    pub(super) async fn command(&mut self, line: &str) -> anyhow::Result<()> {
        let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
        let argument = argument.trim();
        let Some(command) = slash::find(name) else {
            self.hint = Some(format!("there is no /{name}; /help lists the commands"));
            return Ok(());
        };
        let waits = match command.name {
            "help" | "exit" | "expand" | "memory" | "learnt" | "team" | "mode" | "tasks" | "agents" => false,
            "permissions" => argument.is_empty(),
            _ => true,
        };
        if waits && self.agent.is_none() {
            self.hint = Some(format!("/{name} has to wait for the end of the turn"));
            return Ok(());
        }
        if self.face != Face::Lines {
            self.page.begin(Part::Said);
            self.page.line(&[Span::new(&format!("› /{line}"), Look::DIM)], 2);
        }
        match command.name {
            "help" => self.help(),
            "exit" => self.leaving = true,
            "expand" => self.expand(),
            "clear" => self.clear().await?,
            "resume" => self.resume(argument).await?,
            "rewind" => self.rewind(argument)?,
            "undo" => self.undo()?,
            "memory" => self.memories(argument),
            "learnt" => self.learnt(),
            "private" => self.private(argument),
            "team" => self.team(argument),
            "dream" => self.dream(argument).await?,
            "model" => self.model(argument).await?,
            "mode" => self.mode(argument),
            "permissions" => self.permissions(argument),
            "hooks" => self.hooks(),
            "tasks" => self.background(argument),
            "agents" => self.show_agents(argument),
            "statusline" => self.set_up_line(argument),
            "sandbox" => self.sandbox(argument).await?,
            "compact" => self.compact(argument),
            "snip" => self.snip(),
            "context" => self.show_context(),
            "cost" => self.cost(),
            "status" => self.show_status(),
            "export" => self.export(argument),
            _ => {}
        }
        Ok(())
    }

    fn help(&mut self) {
        let commands: Vec<(String, String)> = COMMANDS
            .iter()
            .map(|command| {
                (format!("/{} {}", command.name, command.argument).trim_end().to_owned(), command.about.into())
            })
            .collect();
        self.page.begin(Part::Note);
        self.page.table(&commands, Look::of(Colour::Cyan));
        if self.face == Face::Lines {
            self.page.note(LINES_HELP, Look::PLAIN);
            return;
        }
        let keys: Vec<(String, String)> = KEYS.iter().map(|(key, about)| ((*key).into(), (*about).into())).collect();
        self.page.begin(Part::Note);
        self.page.table(&keys, Look::BOLD);
    }

    fn hooks(&mut self) {
        let Some(agent) = &self.agent else { return };
        let entries: Vec<(String, String)> = agent.hooks().list().iter().map(|hook| told::hook(hook)).collect();
        if entries.is_empty() {
            return self.page.note("there are no hooks; `cairn hooks list` tells of those left out", Look::PLAIN);
        }
        self.page.begin(Part::Note);
        self.page.table(&entries, Look::DIM);
    }

    fn show_agents(&mut self, name: &str) {
        let Some(agents) = &self.agents else { return self.page.note(&alone(self.alone), Look::PLAIN) };
        let registry = agents.registry();
        if let Some(agent) = registry.find(name) {
            let mut rows = vec![(agent.name.clone(), agent.listing())];
            rows.push(("whose".to_owned(), crate::agents::whose(agent, None, agents.denies(agent))));
            rows.push(("prompt".to_owned(), agent.prompt.clone()));
            self.page.begin(Part::Note);
            return self.page.table(&rows, Look::BOLD);
        }
        let row = |agent: &settings::agents::Definition| {
            let whose = crate::agents::whose(agent, None, agents.denies(agent));
            (agent.name.clone(), format!("{} ({whose})", agent.description))
        };
        let rows: Vec<(String, String)> = registry.agents().map(row).collect();
        self.page.begin(Part::Note);
        self.page.table(&rows, Look::BOLD);
        self.page.note("`@agent-NAME` in a message sends one out; `cairn agents new` makes one", Look::DIM);
    }

    /// Lets an agent set up a status line of the user's own.
    fn set_up_line(&mut self, wish: &str) {
        if self.agents.is_none() {
            return self.page.note(&alone(self.alone), Look::PLAIN);
        }
        let wish = if wish.is_empty() { "Take it from my shell's prompt." } else { wish };
        self.saying = Some(format!("Let @agent-statusline-setup set up my status line. {wish}"));
    }

    async fn clear(&mut self) -> anyhow::Result<()> {
        self.reopen(|args| {
            (args.resume, args.continue_, args.session_id, args.cleared) = (None, false, None, true);
        })
        .await?;
        self.page.note("a new session; the one before is in /resume", Look::DIM);
        Ok(())
    }

    async fn model(&mut self, name: &str) -> anyhow::Result<()> {
        if name.is_empty() {
            self.page.note(&format!("the model is {}; /model NAME changes it", self.status.model), Look::PLAIN);
            return Ok(());
        }
        let (name, session) = (name.to_owned(), self.status.session.clone());
        let change = |args: &mut RunArgs| {
            args.model = Some(name);
            (args.resume, args.continue_, args.session_id) = (Some(session), false, None);
        };
        if self.reopen(change).await? {
            self.page.note(&format!("the model is {}", self.status.model), Look::PLAIN);
        }
        Ok(())
    }

    /// The session's figures with those of its teammates, and what all of it cost, also by agents that are still at work.
    fn figures(&self) -> Option<(Stats, String)> {
        let (session, prices) = (self.agent.as_ref()?.session(), &self.status.prices);
        let teammates = session::stats::teammates(session.path(), session.log(), prices);
        let stats = Stats { teammates, ..Stats::of(session.log(), prices) };
        let so_far: f64 = self.at_work().map(|errand| errand.progress().cost_usd).sum();
        let cost = told::cost(stats.cost_usd.map(|cost| cost + so_far), &stats.teammates);
        Some((stats, cost))
    }

    /// Agents whose cost the session has not written down yet.
    fn at_work(&self) -> impl Iterator<Item = Arc<Errand>> {
        self.errands().into_iter().filter(|errand| errand.is_out())
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
            entries.push(("beside", told::beside(&stats.beside)));
        }
        let so_far = |errand: Arc<Errand>| format!("{} ${:.4} so far", errand.kind, errand.progress().cost_usd);
        entries.extend(self.at_work().map(|errand| ("at work", so_far(errand))));
        entries.extend(stats.teammates.iter().map(|mate| ("teammate", told::teammate(mate))));
        if let Some(agent) = &self.agent {
            let (today, budget) = (agent.ledger().today(), agent.ledger().budget());
            entries.extend([("today", told::spent(&today)), ("budget", told::budget(&today, &budget))]);
        }
        let entries: Vec<_> = entries.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        self.page.begin(Part::Note);
        self.page.table(&entries, Look::DIM);
    }

    fn show_status(&mut self) {
        let (Some((stats, cost)), Some(agent)) = (self.figures(), &self.agent) else { return };
        let entries = [
            ("session", agent.session().id().to_owned()),
            ("file", self.short(agent.session().path())),
            ("model", self.status.model.clone()),
            ("window", format!("{} of {} tokens", stats.context_tokens, self.status.window.size)),
            ("directory", self.short(&agent.scope().directory())),
            ("mode", mode_name(self.status.mode()).to_owned()),
            ("replies", format!("{}, {} tool calls, {cost}", stats.replies, stats.tool_calls)),
        ];
        self.page.begin(Part::Note);
        self.page.table(&entries.map(|(name, text)| (name.to_owned(), text)), Look::DIM);
    }

    fn export(&mut self, file: &str) {
        let Some(agent) = &self.agent else { return };
        let name = if file.is_empty() { format!("{}.md", agent.session().id()) } else { file.to_owned() };
        let path: PathBuf = self.place.directory.join(name);
        let text = markdown(agent.session().log());
        match files::create_new(&path, text.as_bytes()) {
            Ok(_) => self.page.note(&format!("written to {}", self.short(&path)), Look::PLAIN),
            Err(error) => self.page.note(&format!("not written: {error}"), Look::of(Colour::Red)),
        }
    }
}

/// Why no agents can be sent out.
fn alone(why: Option<Alone>) -> String {
    match why {
        Some(Alone::BeganWithout(cache)) => format!(
            "this session began without agents, and to add them now would cost all of its cache. It has them when it is \
             resumed {} minutes after its last reply; a new one (/clear) has them at once",
            cache.as_mins()
        ),
        Some(Alone::Forbidden) => "a rule denies the tool Agent, so no agents can be sent out; /permissions".to_owned(),
        Some(Alone::NotGiven) | None => {
            "no agents can be sent out here: the session was started bare, or with --tools without Agent".to_owned()
        }
    }
}
