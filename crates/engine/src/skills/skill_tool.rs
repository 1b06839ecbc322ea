//! The tool by which the model calls a skill. It only checks the call; the text of the skill follows the results.

use std::sync::Arc;

use extensions::skill::{ModelUse, SkillContext};
use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Access, Output, Scope, Subject, TypedTool};
use transcript::tool_names;

use super::{SkillCall, Skills};

/// Calls a skill of the list of skills: its instructions follow the results of this reply.
///
/// Call one that fits the task before you begin with it, and only one that is in the list. A message that begins with
/// /name has its instructions already: do not call that skill again.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SkillInput {
    /// Its name in the list.
    pub skill: String,
    /// Its arguments.
    pub args: Option<String>,
}

/// The tool that calls a skill.
pub struct CallSkill(Arc<Skills>);

impl CallSkill {
    /// Creates the tool for a session's skills.
    pub fn of(skills: Arc<Skills>) -> Self {
        Self(skills)
    }

    fn call(&self, input: SkillInput, scope: &Scope) -> Result<Output, String> {
        let name = plain(&input.skill);
        let Some(skill) = self.0.find(name) else {
            let known: Vec<String> =
                self.0.all().into_iter().filter(|one| one.model_use != ModelUse::Hidden).map(|one| one.name).collect();
            return Err(format!("There is no skill called {name}. There are: {}.", known.join(", ")));
        };
        if skill.model_use == ModelUse::Hidden {
            return Err(format!("Only the user can call the skill {name}."));
        }
        let id = scope.call().ok_or("A skill can only be called in a conversation.")?;
        let call = SkillCall { name: name.to_owned(), arguments: input.args.unwrap_or_default() };
        self.0.called.lock().insert(id.to_owned(), call);
        let forks = skill.rights.granted().is_some_and(|grants| grants.context != SkillContext::Conversation);
        let text = if forks { "works in an agent of its own" } else { "is loaded: its instructions follow" };
        Ok(Output::done(format!("The skill {name} {text}."), format!("/{name}")))
    }
}

/// A name without the slash that people type before it.
fn plain(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix('/').unwrap_or(name)
}

impl TypedTool for CallSkill {
    type Input = SkillInput;
    const NAME: &'static str = tool_names::SKILL;
    /// Loading a skill only reads. Its calls are asked about when they are made.
    const ACCESS: Access = Access::ReadOnly;

    fn subject(&self, input: &SkillInput, _: &Scope) -> Subject {
        Subject::Name(plain(&input.skill).to_owned())
    }

    fn run(&self, input: SkillInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(ready(self.call(input, &scope).unwrap_or_else(Output::failed)))
    }
}
