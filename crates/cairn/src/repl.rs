//! The interactive session.
//!
//! One loop waits for a key, an event of the agent, a question or the end of a turn; nothing else wakes it, except a
//! tick while something is under way. The agent works in a task of its own and is handed back when the turn is over, so
//! typing never waits for it.

mod complete;
mod editor;
mod history;
mod markdown;
mod picker;
pub(crate) mod plain;
mod question;
mod screen;
pub(crate) mod slash;
mod status;
mod terminal;
mod turns;
mod width;

use std::collections::VecDeque;
use std::io::{IsTerminal, Stdout};
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event as Input, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use engine::agent::Turn;
use engine::permission::{Answer, Approver, Question};
use engine::{Agent, Event, Inbox};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use transcript::Block;

use crate::args::RunArgs;
use crate::exit::Code;
use crate::out::show;
use crate::said::said;
use crate::setup::{self, Place, Ready};
use crate::style::Style;
use complete::{Candidate, complete};
use editor::{Done, Editor};
use history::History;
use markdown::Markdown;
use picker::{Picked, Picker};
use question::{Answered, Asking};
use screen::{Area, Screen};
use status::Status;
use width::{Colour, Look, Span, wrap};

/// How often the screen is drawn anew while something is under way.
const TICK: Duration = Duration::from_millis(120);

/// Whether this terminal can show the interactive session.
pub(crate) fn terminal_is_capable() -> bool {
    let dumb = crate::env::TERM.get().is_none_or(|term| term == "dumb");
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !dumb
}

/// Runs the interactive session until the user leaves.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<Code> {
    let place = Place::from_env()?;
    let (events_in, mut events) = mpsc::unbounded_channel();
    let (questions_in, mut questions) = mpsc::unbounded_channel();
    let wires = Wires { events: events_in, questions: questions_in };
    let ready = wires.agent(args, &place).await?;
    let first = args.prompt.clone();
    let mut repl = Repl::new(args.clone(), place, wires, ready)?;
    let terminal = terminal::Raw::enter()?;
    let mut keys = EventStream::new();
    let mut tick = tokio::time::interval(TICK);
    repl.greet()?;
    if let Some(first) = first {
        repl.submit(&first).await?;
    }
    while !repl.leaving {
        repl.draw()?;
        tokio::select! {
            input = keys.next() => match input {
                Some(Ok(input)) => repl.input(input).await?,
                Some(Err(_)) | None => repl.leaving = true,
            },
            Some(event) = events.recv() => {
                repl.heard(event);
                // What has come meanwhile is drawn together.
                while let Ok(event) = events.try_recv() {
                    repl.heard(event);
                }
            }
            Some((question, reply)) = questions.recv() => repl.asked(question, reply),
            ended = turns::ended(&mut repl.working) => {
                while let Ok(event) = events.try_recv() {
                    repl.heard(event);
                }
                repl.turn_ended(ended)?;
            }
            _ = tick.tick(), if repl.working.is_some() => repl.ticks += 1,
        }
    }
    repl.screen.clear()?;
    drop(terminal);
    repl.say_goodbye();
    repl.close().await;
    Ok(Code::Success)
}

/// Where the agent's events and questions go.
#[derive(Clone)]
struct Wires {
    events: mpsc::UnboundedSender<Event>,
    questions: mpsc::UnboundedSender<(Question, oneshot::Sender<Answer>)>,
}

impl Wires {
    async fn agent(&self, args: &RunArgs, place: &Place) -> anyhow::Result<Ready> {
        let events = self.events.clone();
        let listener = Arc::new(move |event| drop(events.send(event)));
        setup::agent(args, place, Arc::new(self.clone()), listener).await
    }
}

impl Approver for Wires {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        let (reply, answer) = oneshot::channel();
        let gone = Answer::Deny { why: "The user has left.".to_owned() };
        if self.questions.send((question, reply)).is_err() {
            return Box::pin(std::future::ready(gone));
        }
        Box::pin(async move { answer.await.unwrap_or(gone) })
    }
}

/// A turn under way; the agent comes back with its end.
struct Working {
    task: JoinHandle<(Agent, Turn)>,
    cancel: CancellationToken,
    doing: String,
}

/// What a list that is open is for.
enum Choosing {
    Resume(Vec<String>),
    Rewind(Vec<transcript::Id>),
    RewindScope(transcript::Id),
}

struct Repl {
    args: RunArgs,
    place: Place,
    wires: Wires,
    screen: Screen<Stdout>,
    agent: Option<Agent>,
    working: Option<Working>,
    inbox: Inbox,
    status: Status,
    editor: Editor,
    history: History,
    menu: (usize, Vec<Candidate>),
    menu_at: usize,
    asking: VecDeque<Asking>,
    choosing: Option<(Picker, Choosing)>,
    markdown: Markdown,
    /// Rows that are finished and wait for the next draw.
    finished: Vec<Vec<Span>>,
    calls: VecDeque<turns::Shown>,
    last_rewind: Option<transcript::Id>,
    hint: Option<String>,
    ticks: usize,
    leaving: bool,
}

impl Repl {
    fn new(args: RunArgs, place: Place, wires: Wires, ready: Ready) -> anyhow::Result<Self> {
        let (columns, lines) = crossterm::terminal::size().unwrap_or((80, 24));
        let colours = Style::stdout().is_on();
        let screen = Screen::new(std::io::stdout(), columns.into(), lines.into(), colours);
        let history = History::load(place.home.path(), &place.directory);
        let finished = ready.warnings.iter().map(|warning| warning_row(warning)).collect();
        Ok(Self {
            markdown: Markdown::new(screen.columns()),
            status: Status::of(&ready),
            inbox: ready.agent.inbox().clone(),
            agent: Some(ready.agent),
            args,
            place,
            wires,
            screen,
            working: None,
            editor: Editor::default(),
            history,
            menu: (0, Vec::new()),
            menu_at: 0,
            asking: VecDeque::new(),
            choosing: None,
            finished,
            calls: VecDeque::new(),
            last_rewind: None,
            hint: None,
            ticks: 0,
            leaving: false,
        })
    }

    fn greet(&mut self) -> anyhow::Result<()> {
        let name = vec![
            Span::new("cairn", Look::BOLD),
            Span::new(&format!(" {} · {}", env!("CARGO_PKG_VERSION"), self.place.directory.display()), Look::DIM),
        ];
        self.finished.insert(0, name);
        self.finished.push(vec![Span::new("/help shows commands and keys", Look::DIM)]);
        self.finished.push(Vec::new());
        if let Some(agent) = &self.agent {
            let rows = turns::replay(agent.session().log(), self.screen.columns());
            self.finished.extend(rows);
        }
        Ok(())
    }

    /// Ends the turn under way, if there is one, and what the session started.
    async fn close(mut self) {
        let ended = match &mut self.working {
            Some(working) => (&mut working.task).await.ok().map(|(agent, _)| agent),
            None => self.agent.take(),
        };
        if let Some(agent) = ended {
            agent.close().await;
        }
    }

    fn say_goodbye(&self) {
        if let Some(agent) = &self.agent
            && agent.session().log().tip().is_some()
        {
            show!("{}", Style::stdout().dim(&format!("go on with: cairn --resume {}", agent.session().id())));
        }
    }

    /// Shows what is finished, and draws the bottom anew.
    fn draw(&mut self) -> anyhow::Result<()> {
        let area = self.area();
        let finished = std::mem::take(&mut self.finished);
        if finished.is_empty() {
            self.screen.draw(&area)?;
        } else {
            self.screen.print(&finished, &area)?;
        }
        Ok(())
    }

    fn area(&self) -> Area {
        let columns = self.screen.columns();
        let mut rows = Vec::new();
        let pending = self.markdown.pending();
        if !pending.is_empty() {
            let wrapped = wrap(&[Span::plain(pending)], columns, 0);
            let most = self.screen.lines() / 2;
            rows.extend(wrapped[wrapped.len().saturating_sub(most)..].iter().cloned());
        }
        if let Some(working) = &self.working
            && self.asking.is_empty()
        {
            let spin = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇"][self.ticks % 6];
            rows.push(vec![
                Span::new(&format!("{spin} {}", working.doing), Look::of(Colour::Cyan)),
                Span::new("  (Esc stops)", Look::DIM),
            ]);
        }
        for said in self.inbox.peek() {
            let text = said.iter().find_map(Block::as_text).unwrap_or_default();
            rows.push(vec![Span::new(&format!("queued › {}", first_line(&text, 200)), Look::DIM)]);
        }
        let (lines, cursor) = if let Some(asking) = self.asking.front() {
            asking.rows(columns)
        } else if let Some((picker, _)) = &self.choosing {
            picker.rows(columns)
        } else {
            self.editor.rows(&Span::new("› ", Look::of(Colour::Cyan)), columns)
        };
        let cursor = (rows.len() + cursor.0, cursor.1);
        rows.extend(lines);
        for (at, candidate) in self.menu.1.iter().enumerate() {
            let look = if at == self.menu_at { Look::of(Colour::Cyan) } else { Look::PLAIN };
            rows.push(vec![
                Span::new(&format!("  {:<16}", candidate.text), look),
                Span::new(&format!(" {}", candidate.about), Look::DIM),
            ]);
        }
        rows.push(match &self.hint {
            Some(hint) => vec![Span::new(hint, Look::of(Colour::Yellow))],
            None => self.status.row(self.asking.len()),
        });
        Area { rows, cursor }
    }

    async fn input(&mut self, input: Input) -> anyhow::Result<()> {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.key(key).await?,
            Input::Paste(text) if self.asking.is_empty() && self.choosing.is_none() => {
                self.editor.insert(&text);
                self.look_for_menu();
            }
            Input::Resize(columns, lines) => {
                self.screen.resize(columns.into(), lines.into())?;
                self.markdown.set_columns(self.screen.columns());
            }
            _ => {}
        }
        Ok(())
    }

    async fn key(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        let armed = self.hint.take().is_some();
        if let Some(asking) = self.asking.front_mut() {
            let title = asking.title();
            return match asking.key(key) {
                Answered::Not => Ok(()),
                answered => self.answered(&title, answered),
            };
        }
        if let Some((picker, _)) = &mut self.choosing {
            return match picker.key(key) {
                Picked::Open => Ok(()),
                Picked::Closed => {
                    self.choosing = None;
                    Ok(())
                }
                Picked::Chosen(at) => self.chosen(at).await,
            };
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => self.interrupt(armed),
            KeyCode::Esc if !self.menu.1.is_empty() => self.menu.1.clear(),
            KeyCode::Esc if self.working.is_some() => self.stop(),
            KeyCode::Char('d') if control && self.editor.text().is_empty() => self.leave(),
            KeyCode::Char('o') if control => self.expand(),
            KeyCode::Char('r') if control => {
                let part = self.editor.text().to_owned();
                match self.history.search(&part) {
                    Some(entry) => self.editor.set(&entry),
                    None => self.hint = Some("nothing in the history contains this".into()),
                }
            }
            KeyCode::Tab if !self.menu.1.is_empty() => self.accept_candidate(),
            KeyCode::Up if !self.menu.1.is_empty() => self.menu_at = self.menu_at.saturating_sub(1),
            KeyCode::Down if !self.menu.1.is_empty() => {
                self.menu_at = (self.menu_at + 1).min(self.menu.1.len() - 1);
            }
            KeyCode::Enter if self.menu_differs() => self.accept_candidate(),
            _ => return self.edit(key).await,
        }
        Ok(())
    }

    async fn edit(&mut self, key: KeyEvent) -> anyhow::Result<()> {
        match self.editor.key(key) {
            Done::Submit => {
                let text = self.editor.take();
                self.menu.1.clear();
                return self.submit(&text).await;
            }
            Done::Older if self.editor.text().is_empty() && self.take_back() => {}
            Done::Older => {
                if let Some(entry) = self.history.older(self.editor.text()) {
                    self.editor.set(&entry);
                }
            }
            Done::Newer => {
                if let Some(entry) = self.history.newer() {
                    self.editor.set(&entry);
                }
            }
            Done::Edited | Done::Nothing => self.look_for_menu(),
        }
        Ok(())
    }

    fn look_for_menu(&mut self) {
        self.menu = complete(self.editor.before(), &self.place.directory);
        self.menu_at = 0;
    }

    /// Whether Enter should take the chosen candidate rather than send: a command that is not spelled out yet.
    fn menu_differs(&self) -> bool {
        let chosen = self.menu.1.get(self.menu_at);
        self.editor.text().starts_with('/') && chosen.is_some_and(|chosen| !self.editor.text().ends_with(&chosen.text))
    }

    fn accept_candidate(&mut self) {
        let (len, candidates) = std::mem::take(&mut self.menu);
        if let Some(candidate) = candidates.get(self.menu_at) {
            let end = if candidate.text.ends_with('/') { "" } else { " " };
            self.editor.replace_before(len, &format!("{}{end}", candidate.text));
            self.look_for_menu();
        }
    }

    /// The newest queued message goes back into the editor.
    fn take_back(&mut self) -> bool {
        let Some(said) = self.inbox.take_back() else { return false };
        self.editor.set(&said.iter().find_map(Block::as_text).unwrap_or_default());
        true
    }

    fn interrupt(&mut self, armed: bool) {
        if self.working.is_some() {
            if armed { self.leave() } else { self.stop() }
        } else if !self.editor.text().is_empty() {
            self.editor.take();
            self.menu.1.clear();
        } else if armed {
            self.leave();
        } else {
            self.hint = Some("Ctrl-C again leaves".into());
        }
    }

    fn stop(&mut self) {
        if let Some(working) = &mut self.working {
            working.cancel.cancel();
            working.doing = "stopping".into();
            self.hint = Some("stopping; Ctrl-C again leaves".into());
        }
    }

    fn leave(&mut self) {
        if let Some(working) = &self.working {
            working.cancel.cancel();
        }
        self.leaving = true;
    }

    fn asked(&mut self, question: Question, reply: oneshot::Sender<Answer>) {
        self.asking.push_back(Asking::new(question, reply, &self.place.directory));
    }

    fn answered(&mut self, title: &str, answered: Answered) -> anyhow::Result<()> {
        self.asking.pop_front();
        let row = match answered {
            Answered::Yes(Some(rule)) => {
                let written = crate::rules::allow(&self.place.directory, &rule);
                let said = match written {
                    Ok(path) => format!("allowed, and {rule} from now on ({})", path.display()),
                    Err(error) => format!("allowed; the rule could not be written: {error}"),
                };
                Span::new(&format!("{said} — {title}"), Look::DIM)
            }
            Answered::Yes(None) => return Ok(()),
            Answered::No | Answered::Not => Span::new(&format!("denied — {title}"), Look::of(Colour::Red)),
        };
        self.finished.push(vec![row]);
        Ok(())
    }

    /// What was typed: a command, a shell escape, or words for the model.
    async fn submit(&mut self, text: &str) -> anyhow::Result<()> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Ok(());
        }
        self.history.add(trimmed, &self.status.session, engine::World::real().now());
        if let Some(command) = trimmed.strip_prefix('/').filter(|rest| !rest.starts_with('/')) {
            return self.command(command).await;
        }
        match (&self.working, trimmed.strip_prefix('!')) {
            (Some(_), Some(_)) => self.hint = Some("a command can be run when the turn is over".into()),
            (None, Some(command)) => self.start_shell(command.trim()),
            (Some(_), None) => self.inbox.push(said(trimmed, &self.place.directory)),
            (None, None) => self.start(said(trimmed, &self.place.directory)),
        }
        Ok(())
    }

    fn note(&mut self, text: &str) {
        let columns = self.screen.columns();
        for line in text.lines() {
            self.finished.extend(wrap(&[Span::plain(line)], columns, 2));
        }
        self.finished.push(Vec::new());
    }
}

fn warning_row(text: &str) -> Vec<Span> {
    vec![Span::new("warning: ", Look::of(Colour::Yellow)), Span::plain(text)]
}

/// The first line of a text, cut.
fn first_line(text: &str, most: usize) -> String {
    crate::style::one_line(text.lines().next().unwrap_or_default(), most)
}
