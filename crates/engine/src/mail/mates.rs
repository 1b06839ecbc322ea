//! Teammates: processes that work beside a session, each with a session of its own.
//!
//! One is started below the session's guard, among its jobs, so it ends with its lead however that ends. Its first task is
//! a message in its mailbox like any later one. It may no more than the lead: it gets the lead's flags, and the mode the
//! lead is in when it starts; what would have to be asked is denied to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tools::permission::Mode;
use tools::{JobState, Jobs};

use super::{Origin, Post, Team};
use crate::mailbox::{LEAD, Message};
use crate::permission::LiveMode;
use crate::plan::board::Board;
use crate::world::World;

/// What a teammate is told before anything else.
const PROMPT: &str = include_str!("../prompts/teammate.md");

/// Starts teammates for a session. Clones share the team.
#[derive(Debug, Clone)]
pub struct Teammates {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    team: Team,
    post: Post,
    board: Board,
    mode: LiveMode,
    begun: AtomicBool,
    lead: Lead,
}

/// The lead, as far as its teammates need to know it.
#[derive(Debug, Clone)]
pub struct Lead {
    /// Its session.
    pub session: String,
    /// Where its own task list lies.
    pub folder: PathBuf,
    /// Where it works.
    pub directory: PathBuf,
    /// The program that a teammate is.
    pub program: PathBuf,
    /// The lead's flags that hold for its teammates too.
    pub flags: Vec<String>,
    /// The guard, if there is one.
    pub guard: Option<PathBuf>,
    /// The time.
    pub world: World,
}

/// A teammate that is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// What it is to do.
    pub prompt: String,
    /// What it is, by the name of a definition.
    pub kind: Option<String>,
    /// The model, where another is asked for than the lead's.
    pub model: Option<String>,
    /// Whether it has to plan first, and to wait for the lead's word on the plan.
    pub plans: bool,
}

impl Teammates {
    /// For a session that leads a team, once it has one.
    pub fn new(team: Team, post: Post, board: Board, mode: LiveMode, lead: Lead) -> Self {
        Self { inner: Arc::new(Inner { team, post, board, mode, begun: AtomicBool::new(false), lead }) }
    }

    /// The team.
    pub fn team(&self) -> &Team {
        &self.inner.team
    }

    /// Starts one. It runs when this returns, and has its first message.
    pub fn start(&self, wanted: &Wanted, jobs: &Jobs) -> Result<String, String> {
        let Inner { team, post, lead, .. } = &*self.inner;
        self.begin()?;
        let said = |error: crate::mailbox::MailError| error.to_string();
        let (name, now) = (wanted.name.as_str(), lead.world.now());
        if name == LEAD {
            return Err(format!("{LEAD} is the lead's own name"));
        }
        let kind = wanted.kind.as_deref().unwrap_or("teammate");
        let mailbox = team.invite(name, kind, &lead.directory, now).map_err(said)?;
        let first = Message::new(post.fresh(), LEAD, &wanted.prompt, now);
        let started = mailbox
            .send(&first)
            .map_err(said)
            .and_then(|()| jobs.start_teammate(name, self.words(wanted), &lead.directory, lead.guard.as_deref()));
        let ended = match started {
            Ok(ended) => ended,
            Err(why) => {
                team.dismiss(name).map_err(said)?;
                return Err(why);
            }
        };
        post.mail().works(name, &first.id);
        let (team, post, name) = (team.clone(), post.clone(), name.to_owned());
        tokio::spawn(async move {
            let state = ended.await;
            let _ = team.dismiss(&name); // the next lead of this team begins alone in any case
            post.mail().rests(&name, None);
            if state != (JobState::Exited { code: Some(0) }) && state != JobState::Stopped {
                let text = "[its process has ended; what it had begun is given back]";
                post.mail().push(Message::new(post.fresh(), name, text, World::real().now()));
            }
            post.mail().ring();
        });
        Ok(format!(
            "{} works in a process of its own. It tells you when it is idle; write to it with SendMessage.",
            wanted.name
        ))
    }

    /// Goes on with the team of a session that is resumed: what was written to it meanwhile is heard.
    pub fn go_on(&self) -> Result<(), String> {
        if self.inner.team.members().is_empty() { Ok(()) } else { self.begin() }
    }

    /// The team begins with the first who is started.
    fn begin(&self) -> Result<(), String> {
        let Inner { team, post, board, lead, begun, .. } = &*self.inner;
        if begun.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let mailbox =
            team.begin(&lead.session, &lead.directory, lead.world.now()).map_err(|error| error.to_string())?;
        post.mail().open(mailbox, Origin::Team);
        board.join(team.tasks(), LEAD, &lead.folder)?;
        post.join(team.clone());
        Ok(())
    }

    fn words(&self, wanted: &Wanted) -> Vec<String> {
        let Inner { team, mode, lead, .. } = &*self.inner;
        let mode = match (wanted.plans, mode.get()) {
            (true, _) | (_, Mode::Plan) => "plan",
            (_, Mode::Default) => "default",
            (_, Mode::AcceptEdits) => "acceptEdits",
            (_, Mode::BypassPermissions) => "bypassPermissions",
        };
        let own = ["--print", "--team-name", team.name(), "--agent-name", &wanted.name, "--permission-mode", mode];
        let mut words = vec![lead.program.display().to_string()];
        words.extend(own.map(str::to_owned));
        if let Some(model) = &wanted.model {
            words.extend(["--model".to_owned(), model.clone()]);
        }
        words.extend(lead.flags.iter().cloned());
        words
    }

    /// The session ends, and its team with it.
    pub fn end(&self) {
        if self.inner.begun.load(Ordering::SeqCst) {
            let _ = self.inner.team.end(); // what stays is found by the session that goes on here
        }
    }
}

/// What a teammate is told before anything else.
pub fn briefing(team: &Team) -> String {
    let values = minijinja::context! { name => team.me(), team => team.name() };
    minijinja::Environment::new().render_str(PROMPT, values).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MSG-1: a teammate is told who it is, whom it works for, and what a message is worth.
    #[test]
    fn a_teammate_is_told_who_it_is() {
        let team = Team::of(std::path::Path::new("/c"), "session-1", "scout").unwrap();
        let text = briefing(&team);
        assert!(text.contains("You are scout, a teammate in the team session-1."), "{text}");
        assert!(!text.contains("{{"), "{text}");
    }
}
