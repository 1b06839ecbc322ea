//! The interactive session.
//!
//! One loop waits for a key, an event of the agent, a question or the end of a turn; nothing else wakes it, except a
//! tick while something is under way. The agent works in a task of its own and is handed back when the turn is over, so
//! typing never waits for it.

mod back;
mod bottom;
mod commands;
mod complete;
mod editor;
mod history;
mod keys;
mod markdown;
mod page;
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
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::EventStream;
use engine::agent::Turn;
use engine::permission::{Answer, Approver, Question};
use engine::{Agent, Event, Inbox};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::RunArgs;
use crate::exit::Code;
use crate::out::show;
use crate::setup::{self, Place, Ready};
use crate::style::Style;
use complete::Candidate;
use editor::Editor;
use history::History;
use markdown::Markdown;
use page::{Page, Part};
use picker::Picker;
use question::Asking;
use screen::Screen;
use status::Status;
use width::{Look, Span};

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
    let mut ready = wires.agent(args, &place).await?;
    let warnings = std::mem::take(&mut ready.warnings);
    let first = args.prompt.clone();
    let mut repl = Repl::new(args.clone(), place, wires, ready);
    let terminal = terminal::Raw::enter()?;
    let mut closing = terminal::Closing::watch()?;
    let mut keys = EventStream::new();
    let mut tick = tokio::time::interval(TICK);
    repl.greet(&warnings);
    if let Some(first) = first {
        repl.submit(&first).await?;
    }
    while !repl.leaving {
        repl.draw()?;
        tokio::select! {
            input = keys.next() => match input {
                Some(Ok(input)) => repl.input(input).await?,
                Some(Err(_)) | None => repl.leave(),
            },
            Some(event) = events.recv() => {
                repl.heard(event);
                // What has come meanwhile is drawn together.
                while let Ok(event) = events.try_recv() {
                    repl.heard(event);
                }
            }
            Some((question, reply)) = questions.recv() => {
                // What was done before it is shown before it.
                while let Ok(event) = events.try_recv() {
                    repl.heard(event);
                }
                repl.asked(question, reply);
            }
            ended = turns::ended(&mut repl.working) => {
                while let Ok(event) = events.try_recv() {
                    repl.heard(event);
                }
                repl.turn_ended(ended)?;
            }
            () = closing.wanted() => repl.leave(),
            _ = tick.tick(), if repl.working.is_some() => repl.ticks += 1,
        }
    }
    repl.screen.clear()?;
    drop(terminal);
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
    /// The end of what the model thinks.
    thought: String,
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
    /// What is printed with the next draw.
    page: Page,
    agent: Option<Agent>,
    working: Option<Working>,
    inbox: Inbox,
    jobs: Arc<tools::Jobs>,
    status: Status,
    editor: Editor,
    history: History,
    menu: (usize, Vec<Candidate>),
    menu_at: usize,
    asking: VecDeque<Asking>,
    choosing: Option<(Picker, Choosing)>,
    markdown: Markdown,
    calls: VecDeque<turns::Shown>,
    hint: Option<String>,
    /// Another Ctrl-C leaves.
    armed: bool,
    ticks: usize,
    leaving: bool,
}

impl Repl {
    fn new(args: RunArgs, place: Place, wires: Wires, ready: Ready) -> Self {
        let (columns, lines) = terminal::size();
        let colours = Style::stdout().is_on();
        let screen = Screen::new(std::io::stdout(), columns, lines, colours);
        let history = History::load(place.home.path(), &place.directory);
        Self {
            markdown: Markdown::new(screen.columns()),
            status: Status::of(&ready),
            inbox: ready.agent.inbox().clone(),
            jobs: ready.agent.scope().jobs().clone(),
            agent: Some(ready.agent),
            args,
            place,
            wires,
            page: Page::new(screen.columns()),
            screen,
            working: None,
            editor: Editor::default(),
            history,
            menu: (0, Vec::new()),
            menu_at: 0,
            asking: VecDeque::new(),
            choosing: None,
            calls: VecDeque::new(),
            hint: None,
            armed: false,
            ticks: 0,
            leaving: false,
        }
    }

    fn greet(&mut self, warnings: &[String]) {
        let place = format!(" {} · {}", env!("CARGO_PKG_VERSION"), self.short(&self.place.directory));
        self.page.begin(Part::Note);
        self.page.line(&[Span::new("cairn", Look::BOLD), Span::new(&place, Look::DIM)], 2);
        self.page.line(&[Span::new("/help shows commands and keys", Look::DIM)], 2);
        for warning in warnings {
            self.page.warning(warning);
        }
        self.replay();
    }

    /// A path as people write it: from the project, or from their home.
    fn short(&self, path: &Path) -> String {
        if let Ok(inside) = path.strip_prefix(&self.place.directory)
            && inside != Path::new("")
        {
            return inside.display().to_string();
        }
        let home = self.place.user_home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        home.map_or_else(|| path.to_owned(), |inside| PathBuf::from("~").join(inside)).display().to_string()
    }

    /// Ends the turn under way, if there is one, and what the session started; says how to go on.
    async fn close(mut self) {
        let ended = match &mut self.working {
            Some(working) => (&mut working.task).await.ok().map(|(agent, _)| agent),
            None => self.agent.take(),
        };
        let Some(agent) = ended else { return };
        let said = agent.session().log().tip().is_some();
        let id = agent.session().id().to_owned();
        put_away(agent).await;
        if said {
            show!("\n{}", Style::stdout().dim(&format!("go on with: cairn --resume {id}")));
        }
    }

    /// Prints what is finished, and draws the bottom anew.
    fn draw(&mut self) -> anyhow::Result<()> {
        // The window may have changed before the terminal's word of it has come.
        self.resize()?;
        let area = self.area();
        let finished = self.page.take();
        if finished.is_empty() {
            self.screen.draw(&area)?;
        } else {
            self.screen.print(&finished, &area)?;
        }
        Ok(())
    }

    fn resize(&mut self) -> anyhow::Result<()> {
        let (columns, lines) = terminal::size();
        self.screen.resize(columns, lines)?;
        self.markdown.set_columns(self.screen.columns());
        self.page.set_columns(self.screen.columns());
        Ok(())
    }
}

/// Ends what an agent started. A session in which nothing was said leaves no file.
async fn put_away(agent: Agent) {
    let unused = agent.session().log().tip().is_none().then(|| agent.session().path().to_owned());
    agent.close().await;
    if let Some(path) = unused {
        let _ = files::remove(&path); // one that stays is only an empty entry in a list
    }
}

/// The first line of a text, cut.
fn first_line(text: &str, most: usize) -> String {
    crate::style::one_line(text.lines().next().unwrap_or_default(), most)
}
