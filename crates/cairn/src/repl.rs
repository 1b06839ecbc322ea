//! The interactive session.
//!
//! One loop waits for a key, an event of the agent, a question or the end of a turn; nothing else wakes it, except a
//! tick while something is under way. The agent works in a task of its own and is handed back when the turn is over, so
//! typing never waits for it.

mod activity;
mod asked_call;
mod background_list;
mod call_result;
mod choice_prompt;
mod clipboard;
mod commands;
mod complete;
mod conversation;
mod conversation_view;
mod custom_status_line;
mod dreams;
mod editor;
mod expand;
mod file_search;
mod form_prompt;
mod fuzzy;
mod keys;
mod learnt_memory;
mod leaving;
mod markdown;
mod mcp;
mod memories;
mod menu;
mod modes;
mod new_memory;
mod notice;
mod page;
mod pager;
mod pasted;
mod permission_rules;
mod picker;
pub(crate) mod plain_session;
mod prompt_area;
mod prompt_history;
mod question;
mod requests;
mod resume_and_rewind;
mod sandbox_command;
mod screen;
mod screen_choices;
mod session_state;
mod setup_commands;
mod skill_commands;
pub(crate) mod slash;
mod status_line;
mod status_line_input;
mod task_list;
mod team_list;
mod terminal;
mod terminal_owner;
mod text_layout;
mod turns;
mod width;
mod window;

use std::collections::VecDeque;
use std::io::{IsTerminal, Stdout};
use std::time::Duration;

use crossterm::event::{Event as Input, EventStream, KeyEventKind};
use engine::agent::Turn;
use engine::hooks::ExitReason;
use engine::{Agent, Event};
use futures_util::StreamExt;
use settings::EditorMode;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;

use crate::args::RunArgs;
use crate::exit::Code;
use crate::out::{self, show};
use crate::program_paths::ProgramPaths;
use crate::setup::PreparedSession;
use crate::shutdown::{ShutdownCause, ShutdownSignals};
use crate::styled_text::{Span, TextStyle, dim};
use crate::trust_prompt::{self, TrustAnswer};
use activity::TurnActivity;
use conversation::{AgentChannels, Conversation};
use conversation_view::Display;
use custom_status_line::{CustomStatusLine, StatusLineStep};
use editor::Editor;
use file_search::FileSearch;
use leaving::UnfinishedWork;
use markdown::Markdown;
use menu::CompletionMenu;
use page::PagePart;
use picker::Picker;
use prompt_history::PromptHistory;
use question::OpenQuestion;
use screen::Screen;
use terminal_owner::TerminalOwner;

/// Columns of the mark before the prompt.
const PROMPT_COLUMNS: usize = 2;
/// Shown until something was typed in a project.
const WHAT_TO_TRY: &str = "Try: explain this project · /init writes an AGENTS.md · @\u{a0}attaches a file · !\u{a0}runs a command · \
                           #\u{a0}saves a memory";
/// Interval at which the screen is redrawn while something is under way.
const TICK: Duration = Duration::from_millis(120);

/// True if this terminal can show the interactive session.
pub(crate) fn terminal_is_capable() -> bool {
    let dumb = crate::env::TERM.get().is_none_or(|term| term == "dumb");
    std::io::stdin().is_terminal() && out::stdout().is_terminal() && !dumb
}

/// Runs the interactive session until the user leaves.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?.of_run(args.setting_sources, &args.plugin_dir);
    if trust_prompt::ask(args, &place)? == TrustAnswer::Quit {
        return Ok(Code::Success);
    }
    let (events_in, mut events) = mpsc::unbounded_channel();
    let (questions_in, mut questions) = mpsc::unbounded_channel();
    let channels = AgentChannels { events: events_in, questions: questions_in };
    let mut args = args.clone();
    let is_choosing = args.take_choice_of_session();
    let mut ready = channels.agent(&args, &place).await?;
    let warnings = std::mem::take(&mut ready.warnings);
    let first = args.prompt.clone();
    let mut repl = Repl::new(args, place, channels, ready);
    let mut raw = Some(terminal::RawMode::enter()?);
    let mut closing = ShutdownSignals::watch_all()?;
    let mut code = Code::Success;
    let mut keys = Some(EventStream::new());
    let mut continued = terminal_owner::continued()?;
    let mut tick = tokio::time::interval(TICK);
    repl.greet(&warnings);
    if is_choosing {
        repl.choose_session().await?;
    }
    repl.line.set(repl.talk.session.signals.status_line.clone());
    if let Some(first) = first {
        repl.submit(&first).await?;
    }
    while !repl.talk.requests.leaving {
        repl.run_queued().await?;
        repl.ask_for_background();
        if repl.draw().is_err() {
            // There is no screen any more: what is under way still ends properly.
            code = Code::HungUp;
            repl.leave();
            break;
        }
        tokio::select! {
            input = next(&mut keys) => match input {
                Some(Ok(input)) => repl.input(input).await?,
                Some(Err(_)) | None => {
                    code = Code::HungUp;
                    repl.leave();
                }
            },
            Some(event) = events.recv() => {
                repl.heard(event);
                // What has come meanwhile is drawn together.
                repl.hear_all(&mut events);
            }
            Some((question, reply)) = questions.recv() => {
                // What was done before it is shown before it.
                repl.hear_all(&mut events);
                repl.asked(question, reply);
            }
            ended = turns::ended(&mut repl.working) => {
                repl.hear_all(&mut events);
                repl.turn_ended(ended)?;
            }
            () = repl.talk.mail_waits(), if repl.is_idle() => repl.start(Vec::new()),
            closed = closing.wanted() => {
                code = closed.code();
                repl.leave();
            }
            _ = continued.recv() => {
                // Somebody else had the terminal meanwhile. One that has gone sends this too; drawing tells.
                let _ = raw.as_ref().map(terminal::RawMode::enter_again);
                repl.screen.forget();
            }
            step = repl.line.next() => repl.own_line(step),
            found = repl.files.ends() => repl.found_files(found),
            () = until(repl.idle_at) => repl.waits(),
            // What runs in the background ends without a word, and is then no longer to be shown.
            _ = tick.tick(), if repl.is_drawn_moving => {
                repl.ticks += 1;
                repl.talk.session.background.follow(&mut repl.talk.view);
            }
        }
        if let Some(who) = repl.outside.take() {
            let came_back = repl.go_outside(who, &mut keys, &mut raw, &mut closing, &mut continued).await;
            if let Some(closed) = came_back.unwrap_or(Some(ShutdownCause::HungUp)) {
                code = closed.code();
                repl.leave();
            }
        }
    }
    if code == Code::Success && !repl.hurried {
        code = repl.finish(&mut keys, &mut events, &mut closing).await;
    }
    let _ = repl.screen.clear(); // one that has gone needs no clearing
    drop(raw);
    tokio::select! {
        () = repl.close() => {
            while let Ok(event) = events.try_recv() {
                if let Event::Warning(text) = event {
                    out::warn(&text);
                }
            }
            Ok(code)
        }
        // Told again, it leaves at once.
        closed = closing.wanted() => Ok(closed.code()),
    }
}

/// The next key; none when there are no keys any more.
async fn next(keys: &mut Option<EventStream>) -> Option<std::io::Result<crossterm::event::Event>> {
    match keys {
        Some(keys) => keys.next().await,
        None => None,
    }
}

/// Waits until then; for ever where there is no such time.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A turn under way; the agent comes back with its end.
struct RunningTurn {
    task: JoinHandle<(Agent, Turn)>,
    cancel: CancellationToken,
    activity: TurnActivity,
}

struct Repl {
    talk: Conversation,
    screen: Screen<Stdout>,
    working: Option<RunningTurn>,
    editor: Editor,
    history: PromptHistory,
    menu: CompletionMenu,
    files: FileSearch,
    asking: VecDeque<OpenQuestion>,
    picker: Option<Picker>,
    markdown: Markdown,
    /// Commands that wait for the end of the turn.
    queued: VecDeque<String>,
    /// Another Ctrl-C leaves.
    armed: bool,
    /// Another Esc rewinds, or clears the prompt.
    escaped: bool,
    /// True if the task list is left out.
    tasks_hidden: bool,
    /// It did: nothing is waited for.
    hurried: bool,
    /// When a key was last pressed for a message, in this turn.
    typed_at: Option<Instant>,
    /// The next owner of the terminal, for a while.
    outside: Option<TerminalOwner>,
    ticks: usize,
    /// The items and the width that the pager was filled with.
    read: (u64, usize),
    /// True if the screen shows something that moves or ends by itself.
    is_drawn_moving: bool,
    /// The user's own line.
    line: CustomStatusLine,
    /// When the user is told of being waited for.
    idle_at: Option<Instant>,
}

impl Repl {
    fn new(args: RunArgs, place: ProgramPaths, channels: AgentChannels, ready: PreparedSession) -> Self {
        let (columns, lines) = terminal::size();
        let colours = out::colours(&out::stdout());
        let screen = Screen::new(out::stdout(), columns, lines, colours);
        let files = FileSearch::new(&place.directory);
        let history = PromptHistory::load(place.home.path(), &place.directory);
        Self {
            markdown: Markdown::new(screen.columns()),
            talk: Conversation::new(args, place, channels, ready, Display::Screen { columns: screen.columns() }),
            screen,
            working: None,
            editor: Editor::default(),
            history,
            menu: CompletionMenu::default(),
            files,
            asking: VecDeque::new(),
            picker: None,
            queued: VecDeque::new(),
            armed: false,
            escaped: false,
            tasks_hidden: false,
            hurried: false,
            typed_at: None,
            outside: None,
            ticks: 0,
            read: (0, 0),
            is_drawn_moving: false,
            line: CustomStatusLine::default(),
            idle_at: None,
        }
    }

    fn greet(&mut self, warnings: &[String]) {
        let mut place =
            format!(" {} · {}", env!("CARGO_PKG_VERSION"), self.talk.place.short(&self.talk.place.directory));
        for fact in self.talk.session.found() {
            place.push_str(&format!(" · {fact}"));
        }
        self.talk.view.page.begin(PagePart::Note);
        self.talk.view.page.line(&[Span::new("cairn", TextStyle::BOLD), Span::new(&place, TextStyle::DIM)], 2);
        self.talk.view.page.line(&[Span::new("/help shows commands and keys", TextStyle::DIM)], 2);
        if self.history.is_empty() {
            self.talk.view.page.line(&[Span::new(WHAT_TO_TRY, TextStyle::DIM)], 2);
        }
        for warning in warnings {
            self.talk.view.page.warning(warning);
        }
        if self.talk.session.status.mode() == Mode::BypassPermissions {
            self.talk.view.page.warning(modes::BYPASS_WARNING);
        }
        self.talk.tell_news();
        self.talk.replay();
    }

    /// It is time for the user's own line, or it has run.
    fn own_line(&mut self, step: StatusLineStep) {
        match step {
            StatusLineStep::Due => {
                let (directory, environment) =
                    (self.talk.session.scope.directory(), self.talk.session.scope.environment().clone());
                let context =
                    custom_status_line::StatusLineContext { directory, environment, guard: crate::env::program() };
                self.line
                    .run(self.talk.session.figures.json(&self.talk.session, self.talk.thinks).to_string(), context);
            }
            StatusLineStep::Ran(ran) => {
                if let Some(warning) = self.line.ran(ran) {
                    self.talk.view.page.warning(&warning);
                }
            }
        }
    }

    /// Nothing was said for a while after the model has answered.
    fn waits(&mut self) {
        self.idle_at = None;
        if let Some(agent) = &self.talk.session.agent {
            agent.waits();
            notice::tell(self.talk.session.signals.channel, "Cairn is waiting for your input");
        }
    }

    /// Hears what has come so far.
    fn hear_all(&mut self, events: &mut mpsc::UnboundedReceiver<Event>) {
        while let Ok(event) = events.try_recv() {
            self.heard(event);
        }
    }

    /// Waits for a dream and, where that was asked for, for what is left to learn, for a while; any key leaves at once. Says with
    /// what code the program is to end.
    async fn finish(
        &mut self,
        keys: &mut Option<EventStream>,
        events: &mut mpsc::UnboundedReceiver<Event>,
        closing: &mut ShutdownSignals,
    ) -> Code {
        let Some(mut agent) = self.talk.session.agent.take() else { return Code::Success };
        let (stop, mut code) = (CancellationToken::new(), Code::Success);
        if let Some(awaited) = UnfinishedWork::of(&agent, &self.talk.args) {
            self.talk.view.hint = Some(format!("{awaited}; any key leaves"));
            let _ = self.draw(); // who cannot see it can still leave
            let work = awaited.wait(&mut agent, &stop);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    biased;
                    ended = &mut work => {
                        if let Err(error) = ended {
                            self.talk.view.page.warning(&error.to_string());
                        }
                        break;
                    }
                    closed = closing.wanted() => {
                        code = closed.code();
                        stop.cancel();
                    }
                    input = next(keys), if !stop.is_cancelled() => match input {
                        Some(Ok(Input::Key(key))) if key.kind == KeyEventKind::Release => {}
                        Some(Ok(Input::Key(_) | Input::Paste(_))) | Some(Err(_)) | None => stop.cancel(),
                        Some(Ok(_)) => {}
                    },
                    Some(event) = events.recv() => self.heard(event),
                }
            }
        }
        self.hear_all(events);
        self.talk.view.hint = None;
        self.talk.session.agent = Some(agent);
        let _ = self.draw();
        code
    }

    /// Ends the turn under way, if there is one, and what the session started; says how to go on.
    async fn close(mut self) {
        let ended = match &mut self.working {
            Some(working) => (&mut working.task).await.ok().map(|(agent, _)| agent),
            None => self.talk.session.agent.take(),
        };
        let Some(agent) = ended else { return };
        let said = !agent.session().log().is_empty();
        let id = agent.session().id().to_owned();
        put_away(agent, ExitReason::PromptInputExit).await;
        self.talk.part_from_team().await;
        if said {
            show!();
            show!([dim(&format!("continue with: cairn --resume {id}"))]);
        }
    }

    /// True if a turn could begin.
    fn is_idle(&self) -> bool {
        self.working.is_none() && self.picker.is_none() && self.talk.session.agent.is_some()
    }

    /// True if something is under way that is shown as it goes on.
    fn is_moving(&self) -> bool {
        self.working.is_some() || self.running_jobs() > 0 || self.talk.session.background.front.is_some()
    }

    /// Prints what is finished, and draws the bottom anew.
    fn draw(&mut self) -> anyhow::Result<()> {
        self.screen.set_title(&self.title())?;
        self.screen.set_colours(screen_choices::colours(&self.talk));
        if self.talk.view.pager.is_some() {
            return self.draw_pager();
        }
        self.screen.uncover()?;
        // The window may have changed before the terminal's word of it has come.
        self.resize()?;
        // Looked at before it is drawn: what ends in between is drawn once more.
        self.is_drawn_moving = self.is_moving();
        let area = self.area();
        let finished = self.talk.view.page.take();
        if finished.is_empty() {
            self.screen.draw(&area)?;
        } else {
            self.screen.print(&finished, &area)?;
        }
        Ok(())
    }

    /// State of the session, for the window's title: a question, work, or rest.
    fn title(&self) -> String {
        let directory = &self.talk.place.directory;
        let name = directory.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy());
        let mark = match (self.asking.is_empty(), &self.working) {
            (false, _) => "? ",
            (true, Some(_)) => "● ",
            (true, None) => "",
        };
        format!("{mark}cairn · {name}")
    }

    /// Draws what is being read over the whole window.
    fn draw_pager(&mut self) -> anyhow::Result<()> {
        let (columns, lines) = terminal::size();
        let columns = columns.saturating_sub(1);
        self.is_drawn_moving = self.is_moving();
        let shown = (self.talk.view.shown_changes, columns);
        if let Some(pager) = &mut self.talk.view.pager {
            pager.set_lines(lines);
        }
        if self.talk.view.pager_has_items && self.read != shown {
            self.read = shown;
            self.talk.view.page.set_columns(columns);
            let rows = self.talk.view.expanded(&self.talk.place, &self.talk.session.background.folder).0;
            if let Some(pager) = &mut self.talk.view.pager {
                pager.replace(rows);
            }
        }
        let waiting = (!self.asking.is_empty()).then_some("a question waits");
        if let Some(pager) = &self.talk.view.pager {
            self.screen.cover(pager.window(columns, waiting))?;
        }
        Ok(())
    }

    fn resize(&mut self) -> anyhow::Result<()> {
        let (columns, lines) = terminal::size();
        self.screen.resize(columns, lines)?;
        self.editor.set_columns(PROMPT_COLUMNS, self.screen.columns());
        self.editor.set_vim(screen_choices::editor_mode(&self.talk) == EditorMode::Vim);
        self.markdown.set_columns(self.screen.columns());
        self.talk.view.page.set_columns(self.screen.columns());
        Ok(())
    }
}

/// Ends what an agent started. A session in which nothing was said leaves no file.
async fn put_away(agent: Agent, why: ExitReason) {
    let unused = agent.session().log().is_empty().then(|| agent.session().path().to_owned());
    agent.leave(why).await;
    if let Some(path) = unused {
        let _ = files::remove(&path); // one that stays is only an empty entry in a list
    }
}
