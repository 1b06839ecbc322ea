//! The lead's service for its teammates: answers to their permission requests, and the mode they are held to.
//!
//! A person is asked when they look; a program at once; what the lead's own mode allows unasked is not asked. An answer
//! is a yes or a no for one call.
//!
//! It refuses to trust a request from outside the team, or a teammate's own description of a call.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use mail::mailbox::{ControlMessage, IdleReason, LEAD, LeadAnswer, Message, TeammateQuestion};
use mail::{LOOK, Mail, NOBODY, PATIENCE, Team, name_of};
use parking_lot::Mutex;
use serde_json::Value;
use session::World;
use settings::permission::{
    Approver, CallGrant, CallQuestion, IncludeQuestion, PermissionAnswer, PermissionUpdate, Policy, Question,
    Respondent, RuleDecision, SenderQuestion,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use tools::{Scope, Subject, Tool};

use crate::activity;
use crate::event::TeammateNews::{self, Labelled};
use crate::event::{Event, Listener};

/// The lead, as its teammates see it.
pub(super) struct LeadService {
    pub(super) team: Team,
    pub(super) world: World,
    pub(super) mail: Mail,
    pub(super) questions: Questions,
}

/// Approver of the teammates' requests, and receiver of their events.
pub(super) type LeadContacts = (Arc<dyn Approver>, Listener);

/// Permission policy of the lead's own session.
#[derive(Debug, Clone)]
pub(super) struct LeadPolicy {
    pub(super) policy: Policy,
    pub(super) scope: Scope,
}

impl LeadPolicy {
    /// Returns whether the lead could make the call unasked, by its own rules and mode, with the same subject.
    fn allows(&self, question: &CallQuestion) -> bool {
        let Some(tool) = known(&question.tool) else { return false };
        let weigh = || self.policy.weigh(&*tool, &question.input, &self.scope, CallGrant::None);
        tool.subject(&question.input, &self.scope) == question.subject && matches!(weigh(), RuleDecision::Allow(_))
    }
}

type HeldQuestions = (Question, oneshot::Sender<PermissionAnswer>);

/// Permission requests that wait until somebody looks, by teammate. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Questions {
    kept: Arc<Mutex<BTreeMap<String, HeldQuestions>>>,
    /// Tokens that withdraw them, also from a program that is being asked.
    open: Arc<Mutex<BTreeMap<String, CancellationToken>>>,
}

impl Questions {
    pub(super) fn names(&self) -> Vec<String> {
        self.kept.lock().iter().filter(|(_, (_, reply))| !reply.is_closed()).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn take(&self, name: &str) -> Option<HeldQuestions> {
        self.kept.lock().remove(name).filter(|(_, reply)| !reply.is_closed())
    }

    /// Withdraws a teammate's requests.
    pub(super) fn withdraw(&self, name: &str) {
        self.kept.lock().remove(name);
        if let Some(open) = self.open.lock().remove(name) {
            open.cancel();
        }
    }

    fn opens(&self, name: &str) -> CancellationToken {
        self.withdraw(name); // one asks one thing at a time
        self.open.lock().entry(name.to_owned()).or_default().clone()
    }

    fn keep(&self, name: &str, question: Question) -> oneshot::Receiver<PermissionAnswer> {
        let (reply, answer) = oneshot::channel();
        self.kept.lock().insert(name.to_owned(), (question, reply));
        answer
    }
}

impl LeadService {
    /// Answers teammates and tells them the mode, as long as there is a team. `contacts` returns the approver, and `tell`
    /// passes on their news.
    pub(super) async fn serve(
        self,
        contacts: impl Fn() -> Option<LeadContacts>,
        policy: impl Fn() -> Option<LeadPolicy>,
        tell: impl Fn(&str, TeammateNews),
    ) {
        let Ok(own) = self.team.mailbox() else { return };
        // Whoever asked these is gone, with the lead they had.
        let mut left: HashSet<String> =
            own.between_programs().into_iter().flatten().map(|message| message.id).collect();
        let mut seen = None;
        let mut open = tokio::task::JoinSet::new();
        loop {
            let _ = self.team.tell_mode(); // tried again the next time
            let now = files::glance(own.path());
            if now != seen {
                seen = now;
                let waiting = own.take_between_programs(|_| true).unwrap_or_default();
                for message in waiting.into_iter().filter(|message| left.insert(message.id.clone())) {
                    let members = self.team.members();
                    let Some(member) = members.iter().find(|one| one.is_active && one.name == message.from) else {
                        continue;
                    };
                    match message.word() {
                        ControlMessage::Idle { rest: IdleReason::Interrupted, heard, .. } => {
                            self.mail.has_done(&message.from, heard);
                            tell(&message.from, TeammateNews::Rests(IdleReason::Interrupted));
                        }
                        // One that has said since that it is idle does this no more.
                        ControlMessage::Progress { label } if self.mail.busy().contains(&message.from) => {
                            activity::words(&label).into_iter().for_each(|label| tell(&message.from, Labelled(label)));
                        }
                        ControlMessage::PermissionRequest { request, tool, input, why, suggestions, about } => {
                            let teammate = name_of(&message.from);
                            let question = match about {
                                TeammateQuestion::Call => Question::Call(Box::new(CallQuestion {
                                    id: request.clone(),
                                    subject: subject(&tool, &input, &member.cwd),
                                    tool,
                                    input,
                                    directory: member.cwd.clone(),
                                    why: format!("the teammate {teammate} asks: {why}"),
                                    agent: Some(teammate),
                                    allowed_in_mode: None,
                                    always: Vec::new(),
                                })),
                                TeammateQuestion::Sender => {
                                    let message = input["message"].as_str().unwrap_or_default().to_owned();
                                    Question::Sender(SenderQuestion { from: tool, message, teammate: Some(teammate) })
                                }
                                TeammateQuestion::Include => {
                                    let file = input["file_path"].as_str().unwrap_or_default().into();
                                    Question::Include(IncludeQuestion { place: tool, file, teammate: Some(teammate) })
                                }
                            };
                            // What a hook or a rule of the teammate's wants asked is asked, whatever the lead may do.
                            let is_settled = match &question {
                                Question::Call(call) if is_unasked_when_accepting(&suggestions) => {
                                    policy().is_some_and(|policy| policy.allows(call))
                                }
                                _ => false,
                            };
                            open.spawn(self.answer(message.from, request, question, is_settled, contacts()));
                        }
                        _ => {}
                    }
                }
            }
            while open.try_join_next().is_some() {}
            tokio::time::sleep(LOOK).await;
        }
    }

    fn answer(
        &self,
        name: String,
        request: String,
        question: Question,
        is_settled: bool,
        contacts: Option<LeadContacts>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (questions, withdrawn) = (self.questions.clone(), self.questions.opens(&name));
        let (team, world) = (self.team.clone(), self.world.clone());
        async move {
            let answer = if is_settled {
                PermissionAnswer::Allow
            } else {
                tokio::select! {
                    biased;
                    () = withdrawn.cancelled() => return,
                    answer = tokio::time::timeout(PATIENCE, ask(&name, question, &questions, contacts)) => {
                        answer.unwrap_or_else(|_| PermissionAnswer::Unanswered { why: NOBODY.to_owned() })
                    }
                }
            };
            let word = ControlMessage::PermissionResponse { request, answer: lead_answer(answer) };
            let (id, now) = (world.fresh_id().to_string(), world.now());
            let message = Message::new(id, LEAD, word.to_text(LEAD, now).unwrap_or_default(), now);
            // One that is gone needs no answer.
            let _ = team.write_to(&name, &message);
        }
    }
}

/// Returns whether the teammate says that it would not have asked in `acceptEdits`. That alone allows nothing.
fn is_unasked_when_accepting(suggestions: &[Value]) -> bool {
    let accepts = |update| matches!(update, PermissionUpdate::SetMode { mode: Mode::AcceptEdits, .. });
    suggestions.iter().any(|suggestion| PermissionUpdate::of(suggestion).is_ok_and(accepts))
}

async fn ask(
    name: &str,
    question: Question,
    questions: &Questions,
    contacts: Option<(Arc<dyn Approver>, Listener)>,
) -> PermissionAnswer {
    let nobody = || PermissionAnswer::Unanswered { why: NOBODY.to_owned() };
    let Some((approver, listener)) = contacts else { return nobody() };
    if approver.respondent() != Respondent::Person {
        return approver.ask(question).await;
    }
    let tool = match &question {
        Question::Call(call) => call.tool.clone(),
        Question::Sender(_) => "a sender".to_owned(),
        Question::Include(_) => "an include".to_owned(),
        Question::Server(_) => return nobody(),
    };
    let answer = questions.keep(name, question);
    listener(Event::TeammateAsks { name: name_of(name), tool });
    answer.await.unwrap_or_else(|_| nobody())
}

/// The answer for a teammate. Rules and modes of the lead's session stay with the lead.
fn lead_answer(answer: PermissionAnswer) -> LeadAnswer {
    match answer {
        PermissionAnswer::Allow | PermissionAnswer::Always(_) => LeadAnswer::Allowed(None),
        PermissionAnswer::With { input, .. } => LeadAnswer::Allowed(input),
        PermissionAnswer::Deny { why } => LeadAnswer::Denied(why),
        PermissionAnswer::Unanswered { why } => LeadAnswer::Unanswered(why),
    }
}

/// Subject of the call, from its input alone: the teammate's own description is not trusted.
fn subject(tool: &str, input: &serde_json::Value, directory: &Path) -> Subject {
    known(tool).map_or(Subject::Whole, |known| known.subject(input, &Scope::new(directory, directory)))
}

fn known(tool: &str) -> Option<Arc<dyn Tool>> {
    tools::standard().into_iter().find(|one| one.name() == tool)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use futures_util::future::{BoxFuture, join, ready};
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use mail::{AskLead, Messenger, TeamInvitation};
    use settings::agent_definitions::Isolation;

    /// An approver that denies everything, with the tool's name as the reason.
    struct Denier;

    impl Approver for Denier {
        fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
            Box::pin(ready(PermissionAnswer::Deny { why: question.asker().to_owned() }))
        }

        fn respondent(&self) -> Respondent {
            Respondent::Program
        }
    }

    /// Its answer about a tool, as the teammate receives it.
    fn denied(tool: &str) -> LeadAnswer {
        LeadAnswer::Denied(tool.to_owned())
    }

    fn about(tool: &str) -> Question {
        Question::Call(Box::new(CallQuestion {
            id: String::new(),
            tool: tool.to_owned(),
            input: json!({}),
            subject: Subject::Whole,
            directory: PathBuf::new(),
            why: String::new(),
            agent: None,
            allowed_in_mode: None,
            always: Vec::new(),
        }))
    }

    /// The lead's answers to two questions of its teammate, in a folder.
    async fn answers(folder: &Path, policy: Option<Policy>, one: Question, other: Question) -> [PermissionAnswer; 2] {
        let lead = Team::led_by(folder, "s1").unwrap();
        lead.begin("s1", folder, Timestamp::UNIX_EPOCH).unwrap();
        let scout = TeamInvitation { name: "scout", kind: "scout", session: "s2", isolation: Isolation::None };
        lead.invite(&scout, folder, Timestamp::UNIX_EPOCH).unwrap();
        let team = Team::of(folder, lead.name(), "scout").unwrap();
        let post = Messenger::new(World::real(), Mail::default(), None);
        post.join(team.clone());
        let asking = AskLead::new(post, team);
        let scope = Scope::new(folder, folder);
        let policy = || policy.clone().map(|policy| LeadPolicy { policy, scope: scope.clone() });
        let asked = || Some((Arc::new(Denier) as Arc<dyn Approver>, Arc::new(|_| {}) as Listener));
        let (mail, questions) = (Mail::default(), Questions::default());
        let side = LeadService { team: lead, world: World::real(), mail, questions };
        let both = join(asking.ask(one), asking.ask(other));
        let (one, other) = tokio::select! {
            biased; // what was asked before it begins, somebody asked who is gone
            () = side.serve(asked, policy, |_, _| {}) => unreachable!("it goes on as long as the team"),
            answers = tokio::time::timeout(Duration::from_secs(30), both) => answers.expect("both are answered"),
        };
        [one, other]
    }

    /// MSG-1: a teammate and its subagents may ask at the same time, and each gets the answer to its own question.
    #[tokio::test]
    async fn questions_asked_at_once_each_get_their_answer() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = answers(folder.path(), None, about("Write"), about("Edit")).await;
        assert_eq!((lead_answer(one), lead_answer(other)), (denied("Write"), denied("Edit")));
    }

    /// AGENT-2: a call that the lead could make unasked is not asked about for its teammate either; that depends on the
    /// call itself, not on the teammate's description of it.
    #[tokio::test]
    async fn a_letter_that_calls_it_an_edit_allows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = std::fs::canonicalize(folder.path()).unwrap();
        let claimed = |tool: &str, input: Value| match about(tool) {
            Question::Call(call) => {
                let allowed_in_mode = Some(Mode::AcceptEdits);
                Question::Call(Box::new(CallQuestion { input, allowed_in_mode, ..*call }))
            }
            other => other,
        };
        let write = |path: PathBuf| claimed("Write", json!({"file_path": path, "content": "x"}));
        let accepting = || Some(Policy { mode: Mode::AcceptEdits.into(), ..Policy::default() });
        let [inside, outside] = answers(&place, accepting(), write(place.join("a")), write("/etc/passwd".into())).await;
        assert_eq!((lead_answer(inside), lead_answer(outside)), (LeadAnswer::Allowed(None), denied("Write")));
        let command = claimed("Bash", json!({"command": "rm -rf x"}));
        let [command, unknown] = answers(&place, accepting(), command, claimed("Odd", json!({}))).await;
        assert_eq!((lead_answer(command), lead_answer(unknown)), (denied("Bash"), denied("Odd")));
        let asking = Some(Policy::default());
        let [one, other] = answers(&place, asking, write(place.join("a")), write(place.join("b"))).await;
        assert_eq!((lead_answer(one), lead_answer(other)), (denied("Write"), denied("Write")));
    }
}
