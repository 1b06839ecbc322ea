//! The gate: the one place where it is decided whether something happens, with everybody who has a say.
//!
//! It is asked about calls, about what the user says, about compactions and about the end of a turn. It can let them
//! happen, prevent them, change a call's input, tell the model something, or end the turn. For a call the order is fixed:
//! hooks that look at every call; the rules, on the input as these have left it; hooks that answer questions; the person
//! or the program. No hook makes a call run that a rule denies or asks about: a hook's yes is worth what a rule's is, and
//! a rule that denies or asks is stronger than one that allows.

mod around;
mod call;
mod turn;

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use files::Glance;
use session::{Beside, Error};
use settings::hooks::{Hook, Kind};
use tokio_util::sync::CancellationToken;
use transcript::Block;

use crate::agent::Small;
use crate::driver::Driver;
use crate::event::Event;
use crate::hooks::{Answers, Asking, Common, Ground, Happening, Hooks, LIMIT_NAME, LONGEST, Said, Word};

pub(crate) use call::{Ruling, told_input};

/// What hooks have left behind in a session.
#[derive(Default)]
pub(crate) struct State {
    /// The last words of the user that were submitted.
    prompt: Option<String>,
    /// What the model is to be told beside the next results.
    aside: Vec<Word>,
    /// Why the turn is over.
    stopped: Option<String>,
    /// What the user was told of hooks that fail.
    told: HashSet<String>,
    /// Files to look at, and as they were last.
    watched: Vec<(PathBuf, Option<Glance>)>,
    /// Those of them that a hook asked for.
    asked_for: BTreeSet<PathBuf>,
}

impl State {
    /// The last words of the user that were submitted.
    pub(crate) fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }
}

impl Driver {
    /// Runs the hooks that a happening concerns, and tells what they have to say to the user.
    pub(crate) async fn hooked(&mut self, happening: &Happening, cancel: &CancellationToken) -> Result<Answers, Error> {
        let Some((hooks, ground)) = self.begin_hooks(happening) else { return Ok(Answers::default()) };
        let answers = hooks.run(happening, &ground, cancel).await;
        self.take_in(&answers)?;
        Ok(answers)
    }

    /// Tells that hooks begin, and gives what they run with; none where no hook is concerned.
    fn begin_hooks(&self, happening: &Happening) -> Option<(Hooks, Ground)> {
        if !self.parts.hooks.any(happening.moment) {
            return None;
        }
        let concerned = self.parts.hooks.concerned(happening);
        let status = concerned.iter().find_map(|hook| hook.status.clone());
        if concerned.is_empty() {
            return None;
        }
        self.tell(Event::HooksStarted { moment: happening.moment, status });
        Some((self.parts.hooks.clone(), self.ground_for(happening)))
    }

    /// Where hooks run now that a happening concerns, and whom they can ask.
    fn ground_for(&self, happening: &Happening) -> Ground {
        let asks = |hook: &Arc<Hook>| matches!(hook.kind, Kind::Prompt { .. } | Kind::Agent { .. });
        let asking = self.parts.hooks.concerned(happening).iter().any(asks).then(|| Arc::new(self.asking()));
        Ground { asking, ..self.ground() }
    }

    /// Whom hooks can ask.
    fn asking(&self) -> Asking {
        let own = || Small { model: self.parts.model.clone(), name: self.parts.name.clone() };
        Asking {
            small: self.parts.small.clone().unwrap_or_else(own),
            policy: self.parts.policy.clone(),
            scope: self.scope.clone(),
            ledger: self.parts.ledger.clone(),
        }
    }

    /// Where hooks run now. Nobody is there to be asked.
    fn ground(&self) -> Ground {
        Ground {
            common: Common {
                session: self.session.id().to_owned(),
                transcript: self.parts.sent.as_ref().map_or(self.session.path(), |sent| &sent.session).to_owned(),
                agent: self.parts.sent.as_ref().map(|sent| (sent.id.clone(), sent.kind.clone())),
                directory: self.scope.directory(),
                prompt: self.gate.prompt.clone(),
                mode: self.parts.policy.mode.get(),
                effort: self.parts.effort.and_then(|effort| effort.of(&self.parts.name)),
            },
            project: self.scope.project().to_owned(),
            environment: self.parts.environment.clone(),
            guard: self.parts.guard.clone(),
            variables: self.variables_file(),
            asking: None,
            variable: self.parts.variable,
        }
    }

    /// Tells and writes down what every answer can hold: what failed, messages, what models used, files to look at.
    pub(crate) fn take_in(&mut self, answers: &Answers) -> Result<(), Error> {
        for (hook, said) in &answers.0 {
            let Said { failed, message, used, watch, .. } = said;
            if let Some(why) = failed {
                let text = format!("a {} hook failed ({}): {why}", hook.moment.name(), hook.shown());
                // One that fails at every call is told of once.
                if self.gate.told.insert(text.clone()) {
                    self.tell(Event::Warning(text));
                }
            }
            if let Some(text) = message {
                let text = self.bounded_word(text);
                self.tell(Event::HookSaid { moment: hook.moment, text });
            }
            if let Some((model, usage)) = used {
                let (agent, model, usage) = (crate::hooks::KIND.to_owned(), model.clone(), *usage);
                self.record(context::Fact::Side { agent, model, usage })?;
            }
            let project = self.scope.project().to_owned();
            self.gate.asked_for.extend(watch.iter().map(|path| project.join(path)));
        }
        Ok(())
    }

    /// Puts what hooks said beside what was said.
    pub(crate) fn attach_words(&mut self, words: Vec<Word>) -> Result<(), Error> {
        for word in words {
            let word = Word { text: self.bounded_word(&word.text), ..word };
            self.attach(vec![Block::text(word.reminder())], &Beside::default())?;
        }
        Ok(())
    }

    /// A hook's words, where they are not too many: else they go to a file, and their beginning stays.
    pub(crate) fn bounded_word(&self, text: &str) -> String {
        let longest = self.parts.layers.spill_limits.get(LIMIT_NAME).copied().unwrap_or(LONGEST);
        if text.chars().count() <= longest {
            return text.to_owned();
        }
        let beginning: String = text.chars().take(longest / 5).collect();
        let id = format!("hook-{}", self.session.world().fresh_id());
        match self.session.keep_result(&id, "txt", text) {
            Ok(path) => format!("{beginning}\n[… all of it is in {}]", path.display()),
            Err(error) => format!("{beginning}\n[… the rest could not be kept: {error}]"),
        }
    }

    /// What a hook said against something, as the model is told.
    pub(crate) fn said_no(&self, word: &Word) -> String {
        Word { text: self.bounded_word(&word.text), ..word.clone() }.plain()
    }

    /// Why a hook has ended the turn, if one has.
    pub(crate) fn take_stopped(&mut self) -> Option<String> {
        self.gate.stopped.take()
    }

    /// Where commands of hooks may leave variables for later commands.
    fn variables_file(&self) -> PathBuf {
        self.session.folder().join("hook-variables.sh")
    }
}
