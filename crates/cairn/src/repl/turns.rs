//! Turns on the screen: what the agent says and does, and what the commands do.

use std::path::PathBuf;

use engine::agent::{End, Turn};
use engine::rewind::Scope as RewindScope;
use engine::run::Ending;
use engine::stats::Stats;
use engine::{Agent, Event};
use tokio_util::sync::CancellationToken;
use transcript::block::Kind;
use transcript::{Block, Log, Outcome, Role};

use super::markdown::Markdown;
use super::picker::{Choice, Picker};
use super::slash::{COMMANDS, KEYS};
use super::status::mode_name;
use super::width::{Colour, Look, Span, wrap};
use super::{Choosing, Repl, Status, Working, first_line};
use crate::args::PermissionMode;
use crate::setup::Ready;

/// How many calls can be expanded.
const REMEMBERED_CALLS: usize = 20;
/// How many lines of a call are shown when it is expanded.
const EXPANDED_LINES: usize = 200;
/// How many messages are shown again when a session is resumed.
const REPLAYED: usize = 6;

/// A call that was shown in one line and can be shown whole.
pub(super) struct Shown {
    id: String,
    tool: String,
    input: serde_json::Value,
    text: Option<String>,
}

/// Waits for the end of the turn under way; forever, if there is none.
pub(super) async fn ended(working: &mut Option<Working>) -> Option<(Agent, Turn)> {
    match working {
        Some(working) => (&mut working.task).await.ok(),
        None => std::future::pending().await,
    }
}

impl Repl {
    /// Begins a turn.
    pub(super) fn start(&mut self, said: Vec<Block>) {
        self.work("waiting for the model", |mut agent, cancel| async move {
            let turn = agent.turn(said, &cancel).await;
            (agent, turn)
        });
    }

    /// Runs a command of the user's own; the model sees it with the next message.
    pub(super) fn start_shell(&mut self, command: &str) {
        let command = command.to_owned();
        self.finished.push(vec![Span::new("! ", Look::of(Colour::Yellow)), Span::plain(&command)]);
        self.work(&format!("$ {}", first_line(&command, 60)), |mut agent, cancel| async move {
            let turn = agent.shell(&command, &cancel).await;
            (agent, turn)
        });
    }

    fn work<Work, Doing>(&mut self, doing: &str, work: Doing)
    where
        Doing: FnOnce(Agent, CancellationToken) -> Work,
        Work: Future<Output = (Agent, Turn)> + Send + 'static,
    {
        let Some(agent) = self.agent.take() else { return };
        let cancel = CancellationToken::new();
        let task = tokio::spawn(work(agent, cancel.clone()));
        self.working = Some(Working { task, cancel, doing: doing.to_owned() });
    }

    /// A turn is over and the agent is back.
    pub(super) fn turn_ended(&mut self, ended: Option<(Agent, Turn)>) -> anyhow::Result<()> {
        self.working = None;
        self.asking.clear();
        let rows = self.markdown.finish();
        self.finished.extend(rows);
        let Some((agent, turn)) = ended else {
            anyhow::bail!("the turn broke down; what was written is safe: cairn --resume {}", self.status.session);
        };
        self.agent = Some(agent);
        let trouble = match &turn.end {
            End::Ended(Ending::Answered) => None,
            End::Cancelled => Some("stopped".to_owned()),
            End::Failed(error) => {
                Some(format!("{error}{}", error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default()))
            }
            End::NotWritten(error) => Some(format!("the session could not be written: {error}")),
            End::Ended(Ending::OutputLimit) => Some("the answer was cut at the output limit".to_owned()),
            End::Ended(Ending::Refused) => Some("the model declined to answer".to_owned()),
            End::Ended(Ending::WindowFull) => Some("the model's window is full".to_owned()),
            End::Ended(Ending::MaxRounds) => Some("the limit of rounds was reached".to_owned()),
            End::Ended(Ending::Looping) => Some("the model made the same call again and again".to_owned()),
        };
        if let Some(trouble) = trouble {
            for line in trouble.lines() {
                self.finished.push(vec![Span::new(line, Look::of(Colour::Red))]);
            }
        }
        self.finished.push(Vec::new());
        // What came too late for the turn's last round begins the next one.
        if matches!(turn.end, End::Ended(_))
            && let Some(said) = self.inbox.take_back()
        {
            self.start(said);
        }
        Ok(())
    }

    /// Something happened.
    pub(super) fn heard(&mut self, event: Event) {
        self.status.heard(&event);
        match event {
            Event::PromptSubmitted { text, .. } => {
                let columns = self.screen.columns();
                for (at, line) in text.lines().enumerate() {
                    let lead = Span::new(if at == 0 { "› " } else { "  " }, Look::of(Colour::Cyan));
                    self.finished.extend(wrap(&[lead, Span::new(line, Look::BOLD)], columns, 2));
                }
            }
            Event::RequestSent { .. } => self.doing("waiting for the model"),
            Event::Text(text) => {
                self.doing("writing");
                let rows = self.markdown.push(&text);
                self.finished.extend(rows);
            }
            Event::Thinking(_) => self.doing("thinking"),
            Event::CallWriting { tool } => self.doing(&format!("writing a call of {tool}")),
            Event::Restarted => {
                self.markdown.finish();
                self.finished.push(vec![Span::new("(the reply broke off and begins again)", Look::DIM)]);
            }
            Event::Retrying { attempt, after, why } => {
                let text = format!("attempt {attempt} failed: {why}; again in {:.1} s", after.as_secs_f32());
                self.finished.push(vec![Span::new(&text, Look::DIM)]);
            }
            Event::Replied { .. } => {
                let rows = self.markdown.finish();
                self.finished.extend(rows);
            }
            Event::ToolStarted { id, tool, input } => {
                self.doing(&format!("{tool} {}", about(&input, &self.place.directory)));
                self.calls.push_back(Shown { id, tool, input, text: None });
                if self.calls.len() > REMEMBERED_CALLS {
                    self.calls.pop_front();
                }
            }
            Event::ToolDenied { tool, input, why, .. } => {
                let what = format!("{tool} {}", about(&input, &self.place.directory));
                self.finished.push(vec![
                    Span::new("✗ ", Look::of(Colour::Red)),
                    Span::new(&what, Look::BOLD),
                    Span::new(&format!(" — {}", first_line(&why, 120)), Look::DIM),
                ]);
            }
            Event::ToolEnded { id, tool, output } => self.tool_ended(&id, &tool, &output),
            Event::Recalled { paths } => {
                let text = format!("{} recalled: {}", count(paths.len(), "memory", "memories"), paths.join(", "));
                self.finished.push(vec![Span::new(&text, Look::DIM)]);
            }
            Event::InstructionsLoaded { files } => {
                let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
                self.finished.push(vec![Span::new(&format!("instructions loaded: {}", names.join(", ")), Look::DIM)]);
            }
            Event::MemorySaved { path } => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                self.finished.push(vec![Span::new(&format!("memory saved: {name}"), Look::of(Colour::Green))]);
            }
            Event::Warning(text) => self.finished.push(super::warning_row(&text)),
            Event::Spilled { results, freed } => {
                let text = format!(
                    "{} put into files, {freed} tokens kept out of the window",
                    count(results, "result", "results")
                );
                self.finished.push(vec![Span::new(&text, Look::DIM)]);
            }
            Event::SessionStarted { .. } | Event::TurnEnded { .. } => {}
        }
    }

    fn doing(&mut self, what: &str) {
        if let Some(working) = &mut self.working
            && !working.cancel.is_cancelled()
        {
            working.doing = what.to_owned();
        }
    }

    fn tool_ended(&mut self, id: &str, tool: &str, output: &tools::Output) {
        let Some(shown) = self.calls.iter_mut().find(|shown| shown.id == id) else { return };
        shown.text = Some(output.text());
        let what = about(&shown.input, &self.place.directory);
        let (mark, look) = match output.outcome {
            Outcome::Done => ("✓ ", Look::of(Colour::Green)),
            Outcome::Failed => ("✗ ", Look::of(Colour::Red)),
        };
        self.finished.push(super::width::fit(
            &[
                Span::new(mark, look),
                Span::new(&format!("{tool} "), Look::BOLD),
                Span::plain(&what),
                Span::new(&format!(" — {}", first_line(&output.summary, 120)), Look::DIM),
            ],
            self.screen.columns(),
        ));
    }

    /// Shows the newest call that was not shown whole yet.
    pub(super) fn expand(&mut self) {
        let Some(shown) = self.calls.pop_back() else {
            self.hint = Some("no tool call to expand".into());
            return;
        };
        self.finished.push(vec![Span::new(&shown.tool, Look::BOLD), Span::new(" called with", Look::DIM)]);
        let input = serde_json::to_string_pretty(&shown.input).unwrap_or_default();
        let text = shown.text.unwrap_or_else(|| "(still running)".into());
        let lines: Vec<&str> = input.lines().chain(["", "gave"]).chain(text.lines()).collect();
        let columns = self.screen.columns();
        for line in lines.iter().take(EXPANDED_LINES) {
            self.finished.extend(wrap(&[Span::plain("  "), Span::plain(line)], columns, 2));
        }
        if lines.len() > EXPANDED_LINES {
            let rest = format!("  … {} more lines, in the session file", lines.len() - EXPANDED_LINES);
            self.finished.push(vec![Span::new(&rest, Look::DIM)]);
        }
    }

    /// A command that begins with a slash.
    pub(super) async fn command(&mut self, line: &str) -> anyhow::Result<()> {
        let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
        let argument = argument.trim();
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            self.hint = Some(format!("there is no /{name}; /help lists the commands"));
            return Ok(());
        };
        self.finished.push(vec![Span::new(&format!("› /{line}"), Look::DIM)]);
        match command.name {
            "help" => self.help(),
            "exit" => self.leave(),
            "expand" => self.expand(),
            _ if self.agent.is_none() => self.hint = Some(format!("/{name} has to wait for the end of the turn")),
            "clear" => self.reopen(|args| (args.resume, args.continue_, args.session_id) = (None, false, None)).await?,
            "resume" => self.resume(argument).await?,
            "rewind" => self.rewind(),
            "undo" => self.undo_rewind()?,
            "model" => self.model(argument).await?,
            "permissions" => self.permissions(argument),
            "cost" | "status" => self.figures(name),
            "export" => self.export(argument)?,
            _ => {}
        }
        Ok(())
    }

    fn help(&mut self) {
        for command in COMMANDS {
            let name = format!("/{} {}", command.name, command.argument);
            self.finished
                .push(vec![Span::new(&format!("  {name:<28}"), Look::of(Colour::Cyan)), Span::plain(command.about)]);
        }
        self.finished.push(Vec::new());
        for (key, about) in KEYS {
            self.finished.push(vec![Span::new(&format!("  {key:<28}"), Look::BOLD), Span::plain(about)]);
        }
        self.finished.push(Vec::new());
    }

    /// Opens another session, or this one with other arguments, in place of the present one.
    async fn reopen(&mut self, change: impl FnOnce(&mut crate::args::RunArgs)) -> anyhow::Result<()> {
        let before = self.args.clone();
        let session = self.status.session.clone();
        change(&mut self.args);
        self.args.prompt = None;
        // The session is held by its agent: it has to go before the file can be opened again.
        if let Some(agent) = self.agent.take() {
            agent.close().await;
        }
        let ready = match self.wires.agent(&self.args, &self.place).await {
            Ok(ready) => ready,
            Err(error) => {
                self.finished.push(vec![Span::new(&format!("{error}"), Look::of(Colour::Red))]);
                self.args = before;
                (self.args.resume, self.args.continue_, self.args.session_id) = (Some(session), false, None);
                self.wires.agent(&self.args, &self.place).await?
            }
        };
        self.take_over(ready);
        Ok(())
    }

    fn take_over(&mut self, ready: Ready) {
        self.status = Status::of(&ready);
        self.inbox = ready.agent.inbox().clone();
        self.finished.extend(ready.warnings.iter().map(|warning| super::warning_row(warning)));
        self.finished.extend(replay(ready.agent.session().log(), self.screen.columns()));
        self.agent = Some(ready.agent);
        (self.calls, self.last_rewind) = Default::default();
    }

    async fn resume(&mut self, id: &str) -> anyhow::Result<()> {
        if !id.is_empty() {
            let id = id.to_owned();
            return self.reopen(|args| (args.resume, args.continue_, args.session_id) = (Some(id), false, None)).await;
        }
        let sessions = self.place.home.sessions(&self.place.directory)?;
        let choices = sessions
            .iter()
            .map(|session| Choice {
                label: crate::commands::session::first_words(&session.path),
                about: format!(
                    "{}  {}",
                    &session.id[..session.id.len().min(8)],
                    crate::commands::session::when(session)
                ),
            })
            .collect();
        let ids = sessions.into_iter().map(|session| session.id).collect();
        self.choosing = Some((Picker::new("Go on with which session?", choices), Choosing::Resume(ids)));
        Ok(())
    }

    fn rewind(&mut self) {
        let Some(agent) = &self.agent else { return };
        let points = agent.session().points();
        let choices = points
            .iter()
            .map(|point| Choice {
                label: first_line(&point.text, 60),
                about: format!("{} files changed since", point.files),
            })
            .collect();
        let lines = points.into_iter().map(|point| point.line).collect();
        self.choosing = Some((Picker::new("Go back to before which message?", choices), Choosing::Rewind(lines)));
    }

    /// A choice was made in an open list.
    pub(super) async fn chosen(&mut self, at: usize) -> anyhow::Result<()> {
        let Some((_, choosing)) = self.choosing.take() else { return Ok(()) };
        match choosing {
            Choosing::Resume(mut ids) => {
                let id = ids.swap_remove(at);
                self.reopen(|args| (args.resume, args.continue_, args.session_id) = (Some(id), false, None)).await
            }
            Choosing::Rewind(mut lines) => {
                let line = lines.swap_remove(at);
                let choice = |label: &str, about: &str| Choice { label: label.into(), about: about.into() };
                let choices = vec![
                    choice("conversation and files", "both as they were"),
                    choice("conversation", "files stay as they are"),
                    choice("files", "the conversation stays"),
                ];
                self.choosing = Some((Picker::new("What goes back?", choices), Choosing::RewindScope(line)));
                Ok(())
            }
            Choosing::RewindScope(line) => {
                let scope = [RewindScope::Both, RewindScope::Conversation, RewindScope::Files][at.min(2)];
                self.rewind_to(&line, scope)
            }
        }
    }

    fn rewind_to(&mut self, line: &transcript::Id, scope: RewindScope) -> anyhow::Result<()> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let text = agent.session().points().into_iter().find(|point| point.line == *line).map(|point| point.text);
        let rewound = agent.session_mut().rewind(line, scope)?;
        let mut said = format!("went back; {} files brought back", rewound.files.len());
        for (path, why) in &rewound.failed {
            said.push_str(&format!("\n{} stays: {why}", path.display()));
        }
        if rewound.commit.is_some() {
            said.push_str("; /undo takes the conversation forward again");
            self.editor.set(&text.unwrap_or_default());
        }
        self.last_rewind = rewound.commit;
        self.note(&said);
        Ok(())
    }

    fn undo_rewind(&mut self) -> anyhow::Result<()> {
        let (Some(agent), Some(commit)) = (&mut self.agent, self.last_rewind.take()) else {
            self.hint = Some("nothing to undo".into());
            return Ok(());
        };
        match agent.session_mut().undo(&commit, &self.status.window) {
            Ok(()) => self.note("the conversation is where it was"),
            Err(error) => self.note(&error.to_string()),
        }
        Ok(())
    }

    async fn model(&mut self, name: &str) -> anyhow::Result<()> {
        if name.is_empty() {
            self.note(&format!("the model is {}; /model NAME changes it", self.status.model));
            return Ok(());
        }
        let (name, session) = (name.to_owned(), self.status.session.clone());
        self.reopen(|args| {
            args.model = Some(name);
            (args.resume, args.continue_, args.session_id) = (Some(session), false, None);
        })
        .await?;
        self.note(&format!("the model is {}", self.status.model));
        Ok(())
    }

    fn permissions(&mut self, mode: &str) {
        let Some(agent) = &mut self.agent else { return };
        if mode.is_empty() {
            let rules = &agent.policy_mut().rules;
            let list = |name: &str, rules: &[tools::permission::Rule]| {
                let texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
                format!("{name}: {}", if texts.is_empty() { "none".to_owned() } else { texts.join(", ") })
            };
            let lists = [list("allow", &rules.allow), list("ask", &rules.ask), list("deny", &rules.deny)];
            self.note(&format!("mode: {}\n{}", mode_name(self.status.mode()), lists.join("\n")));
            return;
        }
        match <PermissionMode as clap::ValueEnum>::from_str(mode, true) {
            Ok(chosen) => {
                agent.policy_mut().mode = chosen.into();
                self.status.set_mode(chosen.into());
                self.args.permission_mode = Some(chosen);
            }
            Err(_) => self.hint = Some("modes: default, acceptEdits, plan, bypassPermissions".into()),
        }
    }

    fn figures(&mut self, which: &str) {
        let Some(agent) = &self.agent else { return };
        let stats = Stats::of(agent.session().log(), &self.status.prices);
        let cost =
            stats.cost_usd.map_or_else(|| "unknown: no price for this model".to_owned(), |cost| format!("${cost:.4}"));
        let text = if which == "cost" {
            format!(
                "cost      {cost}\ninput     {} uncached, {} written to the cache, {} read from it\noutput    {}\ncache     {:.1} % read, re-write factor {:.2}",
                stats.uncached_tokens,
                stats.cache_write_tokens,
                stats.cache_read_tokens,
                stats.output_tokens,
                stats.hit_ratio * 100.0,
                stats.rewrite_factor
            )
        } else {
            format!(
                "session   {}\nfile      {}\nmodel     {}\nwindow    {} of {} tokens\ndirectory {}\nmode      {}\nreplies   {}, {} tool calls, {cost}",
                agent.session().id(),
                agent.session().path().display(),
                self.status.model,
                stats.context_tokens,
                self.status.window.size,
                agent.scope().directory().display(),
                mode_name(self.status.mode()),
                stats.replies,
                stats.tool_calls
            )
        };
        self.note(&text);
    }

    fn export(&mut self, file: &str) -> anyhow::Result<()> {
        let Some(agent) = &self.agent else { return Ok(()) };
        let name = if file.is_empty() { format!("{}.md", agent.session().id()) } else { file.to_owned() };
        let path: PathBuf = self.place.directory.join(name);
        let text = crate::commands::session::markdown(agent.session().log());
        match files::create_new(&path, text.as_bytes()) {
            Ok(_) => self.note(&format!("written to {}", path.display())),
            Err(error) => self.note(&format!("not written: {error}")),
        }
        Ok(())
    }
}

/// A number and its noun.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// What a call is about, in a few words.
fn about(input: &serde_json::Value, project: &std::path::Path) -> String {
    let keys = ["command", "file_path", "pattern", "path"];
    let text = keys.iter().find_map(|key| input[*key].as_str()).unwrap_or_default();
    let prefix = format!("{}/", project.display());
    first_line(text.strip_prefix(&prefix).unwrap_or(text), 80)
}

/// The last messages of a session that is resumed, as they looked.
pub(super) fn replay(log: &Log, columns: usize) -> Vec<Vec<Span>> {
    let messages = log.view().messages();
    let mut rows = Vec::new();
    for message in &messages[messages.len().saturating_sub(REPLAYED)..] {
        for block in &message.blocks {
            let text = block.as_text().unwrap_or_default();
            match (message.role, block.kind()) {
                (Role::User, Kind::Text) if !text.starts_with('<') => {
                    let lead = Span::new("› ", Look::of(Colour::Cyan));
                    rows.extend(wrap(&[lead, Span::new(&first_line(&text, 400), Look::BOLD)], columns, 2));
                }
                (Role::Assistant, Kind::Text) => {
                    let mut markdown = Markdown::new(columns);
                    rows.extend(markdown.push(&text));
                    rows.extend(markdown.finish());
                    rows.push(Vec::new());
                }
                (_, Kind::ToolUse { name, .. }) => rows.push(vec![Span::new(&format!("· {name}"), Look::DIM)]),
                _ => {}
            }
        }
    }
    rows
}
