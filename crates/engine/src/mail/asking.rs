//! What a teammate has to ask about: it goes to the lead's side through the mailboxes, and the answer comes back the same way.
//!
//! No model hears of either. A person is asked when they look; a program at once; where nobody is there, or nobody answers
//! in time, it is denied. An answer counts for the request it names and once.
//!
//! What it refuses to do: believe a question of somebody who is not in the team, or an answer of anybody but the lead; let
//! an answer add rules.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tools::{Scope, Subject};

use super::words::name_of;
use super::{Post, Team, lock};
use crate::agent::Listener;
use crate::event::Event;
use crate::mailbox::{LEAD, MailError, Mailbox, Message, Word};
use crate::permission::{Answer, Approver, Question, Who};
use crate::world::World;

/// How often a mailbox is looked at: a stat each.
const LOOK: Duration = Duration::from_millis(100);
/// How long an answer is waited for. A person may be away for a while; a teammate that waits holds up nobody else.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// What stands where nobody answers.
const NOBODY: &str = "Nobody has answered on the lead's side. Do what you can without it.";

/// One who is asked for a teammate: the lead's side.
#[derive(Debug)]
pub struct AskLead {
    post: Post,
    team: Team,
    /// Its agents ask here too: one after the other, since a person is asked one thing at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Approver for AskLead {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let asked = tokio::time::timeout(PATIENCE, self.asked(&question)).await;
            let unanswered = |why: String| Answer::Unanswered { why };
            match asked {
                Ok(Ok(Ok(input))) => Answer::With { input, permissions: Vec::new() },
                Ok(Ok(Err(why))) => Answer::Deny { why },
                Ok(Err(error)) => {
                    unanswered(format!("The lead could not be asked ({error}). Do what you can without it."))
                }
                Err(_) => unanswered(NOBODY.to_owned()),
            }
        })
    }

    fn who(&self) -> Who {
        Who::Program
    }
}

impl AskLead {
    /// Asks for a teammate, by its post, in its team.
    pub fn new(post: Post, team: Team) -> Self {
        Self { post, team, turn: tokio::sync::Mutex::default() }
    }

    async fn asked(&self, question: &Question) -> Result<Result<Option<serde_json::Value>, String>, MailError> {
        let Question { tool, input, why, .. } = question;
        let request = self.post.fresh();
        let (tool, input, why) = (tool.clone(), input.clone(), why.clone());
        let word = Word::PermissionRequest { request: request.clone(), tool, input, why };
        let own = self.team.mailbox()?;
        let _turn = self.turn.lock().await;
        self.post.send(LEAD, &word.to_text().unwrap_or_default(), None).await?;
        let mut seen = None;
        loop {
            let now = files::glance(own.path());
            if now != seen {
                seen = now;
                let waiting = own.between_programs()?;
                // What answers an earlier question, before this process began, is of no use any more.
                own.delivered(&waiting.iter().map(|message| message.id.clone()).collect())?;
                let answers = waiting.into_iter().filter(|message| message.from == LEAD).map(|message| message.word());
                for answer in answers {
                    match answer {
                        Word::PermissionResponse { request: of, answer } if of == request => return Ok(answer),
                        _ => {}
                    }
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

type Kept = (Question, oneshot::Sender<Answer>);

/// Questions that wait until somebody looks, by who asks. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Questions(Arc<Mutex<BTreeMap<String, Kept>>>);

impl Questions {
    pub(super) fn names(&self) -> Vec<String> {
        lock(&self.0).iter().filter(|(_, (_, reply))| !reply.is_closed()).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn take(&self, name: &str) -> Option<Kept> {
        lock(&self.0).remove(name).filter(|(_, reply)| !reply.is_closed())
    }

    fn keep(&self, name: &str, question: Question) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        lock(&self.0).insert(name.to_owned(), (question, reply));
        answer
    }
}

/// Sees to it that teammates get answers, as long as there is a team. `asked` says who is asked for them.
pub(super) async fn answer(
    team: Team,
    world: World,
    questions: Questions,
    asked: impl Fn() -> Option<(Arc<dyn Approver>, Listener)>,
) {
    let Ok(own) = team.mailbox() else { return };
    // Whoever asked these is gone, with the lead they had.
    let mut seen = None;
    let mut left: HashSet<String> = own.between_programs().into_iter().flatten().map(|message| message.id).collect();
    let mut open = tokio::task::JoinSet::new();
    loop {
        let now = files::glance(own.path());
        if now != seen {
            seen = now;
            let waiting = own.between_programs().unwrap_or_default();
            let _ = own.delivered(&waiting.iter().map(|message| message.id.clone()).collect()); // or at the next look
            for message in waiting.into_iter().filter(|message| left.insert(message.id.clone())) {
                let is_one = team.members().iter().any(|member| member.is_active && member.name == message.from);
                let Word::PermissionRequest { request, tool, input, why } = message.word() else { continue };
                if !is_one {
                    continue;
                }
                let directory = directory(&team, &message.from);
                let question = Question {
                    id: request.clone(),
                    subject: subject(&tool, &input, &directory),
                    tool,
                    input,
                    directory,
                    why: format!("the teammate {} asks: {why}", name_of(&message.from)),
                    agent: None,
                    spared_by: None,
                    always: Vec::new(),
                };
                let (questions, asked) = (questions.clone(), asked());
                let (team, world, name) = (team.clone(), world.clone(), message.from);
                open.spawn(async move {
                    let answer = tokio::time::timeout(PATIENCE, ask(&name, question, &questions, asked)).await;
                    let answer = answer.unwrap_or_else(|_| Answer::Unanswered { why: NOBODY.to_owned() });
                    let word = Word::PermissionResponse { request, answer: said(answer) };
                    let id = world.fresh_id().to_string();
                    let message = Message::new(id, LEAD, word.to_text().unwrap_or_default(), world.now());
                    // One that is gone needs no answer.
                    let _ = Mailbox::of(&team.inboxes(), &name).and_then(|mailbox| mailbox.send(&message));
                });
            }
        }
        while open.try_join_next().is_some() {}
        tokio::time::sleep(LOOK).await;
    }
}

async fn ask(
    name: &str,
    question: Question,
    questions: &Questions,
    asked: Option<(Arc<dyn Approver>, Listener)>,
) -> Answer {
    let nobody = || Answer::Unanswered { why: NOBODY.to_owned() };
    let Some((approver, listener)) = asked else { return nobody() };
    if approver.who() != Who::Person {
        return approver.ask(question).await;
    }
    let tool = question.tool.clone();
    let answer = questions.keep(name, question);
    listener(Event::TeammateAsks { name: name_of(name), tool });
    answer.await.unwrap_or_else(|_| nobody())
}

/// What a teammate is told. Rules and modes of the lead's session stay with it.
fn said(answer: Answer) -> Result<Option<serde_json::Value>, String> {
    match answer {
        Answer::Allow | Answer::Always(_) => Ok(None),
        Answer::With { input, .. } => Ok(input),
        Answer::Deny { why } | Answer::Unanswered { why } => Err(why),
    }
}

/// What the call is about, by its input alone: what the teammate's program says of it is not taken for it.
fn subject(tool: &str, input: &serde_json::Value, directory: &Path) -> Subject {
    let known = tools::standard().into_iter().find(|one| one.name() == tool);
    known.map_or(Subject::Whole, |known| known.subject(input, &Scope::new(directory, directory)))
}

fn directory(team: &Team, name: &str) -> PathBuf {
    let member = team.members().into_iter().find(|member| member.name == name);
    member.map(|member| member.cwd).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use futures_util::future::{join, ready};
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::mail::{Invited, Mail};

    /// A program that denies everything, and says what.
    struct Denier;

    impl Approver for Denier {
        fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
            Box::pin(ready(Answer::Deny { why: question.tool }))
        }

        fn who(&self) -> Who {
            Who::Program
        }
    }

    fn about(tool: &str) -> Question {
        Question {
            id: String::new(),
            tool: tool.to_owned(),
            input: json!({}),
            subject: Subject::Whole,
            directory: PathBuf::new(),
            why: String::new(),
            agent: None,
            spared_by: None,
            always: Vec::new(),
        }
    }

    /// MSG-1: a teammate and its agents may ask at the same time, and each hears the answer to its own question.
    #[tokio::test]
    async fn questions_asked_at_once_each_get_their_answer() {
        let folder = tempfile::tempdir().unwrap();
        let lead = Team::led_by(folder.path(), "s1").unwrap();
        lead.begin("s1", folder.path(), Timestamp::UNIX_EPOCH).unwrap();
        let scout = Invited { name: "scout", kind: "scout", session: "s2" };
        lead.invite(&scout, folder.path(), Timestamp::UNIX_EPOCH).unwrap();
        let team = Team::of(folder.path(), lead.name(), "scout").unwrap();
        let post = Post::new(World::real(), Mail::default(), None);
        post.join(team.clone());
        let asking = AskLead::new(post, team);
        let asked = || Some((Arc::new(Denier) as Arc<dyn Approver>, Arc::new(|_| {}) as Listener));
        let both = join(asking.ask(about("Write")), asking.ask(about("Edit")));
        let (one, other) = tokio::select! {
            biased; // what was asked before it begins, somebody asked who is gone
            () = answer(lead, World::real(), Questions::default(), asked) => unreachable!("it goes on as long as the team"),
            answers = tokio::time::timeout(Duration::from_secs(30), both) => answers.expect("both are answered"),
        };
        assert_eq!((said(one), said(other)), (Err("Write".to_owned()), Err("Edit".to_owned())));
    }
}
