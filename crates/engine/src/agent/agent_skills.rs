//! Skills that are called: their text joins the conversation, and what they are trusted with holds for the turn.
//!
//! A skill's commands run before its text is put in, under the same gate as the model's, and nobody is asked for them: if one
//! may not run, or fails, the skill is not called at all. What commands print and what arguments say is quoted, so that it
//! cannot pass for text of this program.

use std::collections::BTreeSet;
use std::path::PathBuf;

use extensions::expand::{ExpandPlan, ExpandValues, fill_folders, stacked};
use extensions::skill::{ForkWait, Skill, SkillContext, SkillGrants, SkillRights, SkillSource};
use learning::fork::SmallModel;
use memory::quoting::quoted;
use serde_json::json;
use session::{Error, LineMeta};
use settings::hook_definitions::Hook;
use tokio_util::sync::CancellationToken;
use tools::permission::{Places, Rule, Rules};
use tools::{Output, ToolCall, TypedTool, run_all};
use transcript::window::Window;
use transcript::{Effort, Id, Injected, Outcome, Purpose, tool_names};

use super::{Agent, parent_snapshot};
use crate::agents::{AgentInput, StartAgent};
use crate::event::Event;
use crate::gate::{ModelCall, Ruling};
use crate::live::LiveSession;
use crate::skills::{SkillCall, Skills};

/// The agent that a skill works in if it names none.
const GENERAL: &str = "general-purpose";
/// The most files that are remembered for skills about certain files.
const MOST_TOUCHED: usize = 1_000;

/// Skills as one agent uses them.
#[derive(Default)]
pub(super) struct AgentSkills {
    /// Lines that list skills, with the names on each; unknown until first looked for.
    listings: Option<Vec<(Id, Vec<String>)>>,
    /// Files that were touched, from the top of the project.
    touched: Vec<PathBuf>,
    /// Hooks of skills that were called, and those skills.
    hooks: Vec<Hook>,
    hooked: BTreeSet<String>,
    /// The model and effort of the session, while a skill has others.
    before: Option<(SmallModel, Option<Effort>, Window)>,
}

/// The text of a skill that was called.
pub(super) struct CalledSkill {
    name: String,
    text: String,
}

/// The caller of a skill.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkillCaller {
    User,
    Model,
}

impl AgentSkills {
    /// Makes sure that the skills which the model can call are listed in view.
    pub(super) fn show(&mut self, live: &mut LiveSession) -> Result<(), Error> {
        let is_offered = live.work.tools.iter().any(|tool| tool.name() == tool_names::SKILL);
        let Some(skills) = live.work.skills.clone().filter(|_| is_offered) else { return Ok(()) };
        let listings = self.listings.get_or_insert_with(|| live.session.skill_listings());
        let view = live.session.log().view();
        listings.retain(|(line, _)| view.shows(line));
        let in_view: BTreeSet<String> = listings.iter().flat_map(|(_, names)| names.iter().cloned()).collect();
        let budget = extensions::skill_listing::budget(live.talk.layers.window.size);
        let called = || live.session.called_skills().into_iter().map(|(name, _)| name).collect();
        let (names, text) = skills.listing(&in_view, &self.touched, budget, called);
        if names.is_empty() {
            return Ok(());
        }
        let heading = if in_view.is_empty() { "The Skill tool can call these skills" } else { "There are more skills" };
        let listing = Injected::new(Purpose::Skills, &format!("{heading}:\n\n{}", text.trim_end()));
        live.session.inject(&listing, LineMeta { skills: names.clone(), ..LineMeta::default() })?;
        listings.extend(live.session.log().tip().cloned().map(|line| (line, names)));
        Ok(())
    }

    /// Hooks that stay for the rest of the session.
    pub(super) fn hooks(&self) -> Vec<Hook> {
        self.hooks.clone()
    }

    /// Notes the files that calls touched, and reads the skills that lie next to them.
    fn touch(&mut self, calls: &[ModelCall], skills: &Skills, live: &LiveSession) {
        for call in calls {
            let Some(tool) = live.work.tools.iter().find(|known| known.name() == call.tool) else { continue };
            let tools::Subject::Path { real, .. } = tool.subject(&call.input, &live.scope) else { continue };
            let Some((relative, troubles)) = skills.touched(&real) else { continue };
            troubles.iter().for_each(|trouble| live.tell(Event::Warning(trouble.to_string())));
            if self.touched.len() < MOST_TOUCHED && !self.touched.contains(&relative) {
                self.touched.push(relative);
            }
        }
    }
}

/// The skills that a message of the user calls, ready to be put in; or why they cannot be called.
pub(super) async fn skills_in(
    agent: &mut Agent,
    message: &str,
    cancel: &CancellationToken,
) -> Result<Vec<CalledSkill>, String> {
    let Some(skills) = agent.driver.live.work.skills.clone() else { return Ok(Vec::new()) };
    let (names, rest) = stacked(message, |name| skills.is_callable(name));
    let mut called = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let arguments = if at + 1 == names.len() { rest } else { "" };
        let call = SkillCall { name: (*name).to_owned(), arguments: arguments.to_owned() };
        called.push(call_skill(agent, &skills, &call, SkillCaller::User, cancel).await?);
    }
    Ok(called)
}

/// Puts in the skills that the calls of a reply have called.
pub(super) async fn take_called_skills(
    agent: &mut Agent,
    calls: &[ModelCall],
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let Some(skills) = agent.driver.live.work.skills.clone() else { return Ok(()) };
    agent.skills.touch(calls, &skills, &agent.driver.live);
    for call in skills.take_called(calls.iter().map(|call| call.id.as_str())) {
        match call_skill(agent, &skills, &call, SkillCaller::Model, cancel).await {
            Ok(called) => put_in(agent, called)?,
            Err(why) => agent.driver.live.inject(Purpose::Skill, &quoted(&why))?,
        }
    }
    Ok(())
}

/// Puts the text of a skill into the conversation.
pub(super) fn put_in(agent: &mut Agent, CalledSkill { name, text }: CalledSkill) -> Result<(), Error> {
    let text = Injected::new(Purpose::Skill, &text);
    agent.driver.live.session.inject(&text, LineMeta { skill: Some(name), ..LineMeta::default() })?;
    agent.declare()
}

/// The turn is over: what skills were trusted with no longer holds.
pub(super) fn end_skills(agent: &mut Agent) -> Result<(), Error> {
    agent.driver.gate.consent.policy.of_turn = Rules::default();
    if let Some((model, effort, window)) = agent.skills.before.take() {
        let talk = &mut agent.driver.live.talk;
        (talk.model, talk.name, talk.effort, talk.layers.window) = (model.model, model.name, effort, window);
        agent.declare()?;
    }
    Ok(())
}

async fn call_skill(
    agent: &mut Agent,
    skills: &Skills,
    call: &SkillCall,
    caller: SkillCaller,
    cancel: &CancellationToken,
) -> Result<CalledSkill, String> {
    let SkillCall { name, arguments } = call;
    let not_called = |why: String| format!("/{name} was not called: {why}");
    let skill = skills.find(name).ok_or_else(|| not_called("it is gone".to_owned()))?;
    let live = &agent.driver.live;
    let (session, project) = (live.session.id().to_owned(), live.scope.project().to_owned());
    let values = ExpandValues {
        session: &session,
        effort: live.talk.effort.map(Effort::name).unwrap_or_default(),
        project: Some(&project),
        skill: skill.folder(),
        plugin: skill.plugin.as_ref(),
    };
    let plan = ExpandPlan::new(&skill, &quoted(arguments), &values);
    let rules = turn_rules(agent, &skill, &values);
    let forks = skill.rights.granted().map(|grants| grants.context.clone());
    let before = agent.driver.gate.consent.policy.of_turn.clone();
    extend(&mut agent.driver.gate.consent.policy.of_turn, &rules);
    let outputs = run_commands(agent, &plan, cancel).await;
    if outputs.is_err() {
        agent.driver.gate.consent.policy.of_turn = before.clone();
    }
    let body = plan.text(&outputs.map_err(not_called)?).unwrap_or_default();
    let folder = skill.folder().map(|folder| format!("Base directory for this skill: {}\n\n", folder.display()));
    let text = folder.unwrap_or_default() + body.trim();
    if let Some(SkillContext::Fork { agent: kind, waiting }) = forks {
        agent.driver.gate.consent.policy.of_turn = before;
        let text = work_apart(agent, &skill, text, (kind, waiting), rules, cancel).await.map_err(not_called)?;
        return Ok(CalledSkill { name: name.clone(), text });
    }
    take_on(agent, &skill);
    let who = match caller {
        SkillCaller::User => format!("The user called /{name}."),
        SkillCaller::Model => format!("You called the skill {name}."),
    };
    Ok(CalledSkill { name: name.clone(), text: format!("{who} Follow its instructions.\n\n{text}") })
}

/// The rules of a skill, for this turn.
fn turn_rules(agent: &Agent, skill: &Skill, values: &ExpandValues<'_>) -> Rules {
    let live = &agent.driver.live;
    let places = Places {
        directory: live.scope.directory(),
        settings: live.scope.project().to_owned(),
        home: live.scope.home().map(ToOwned::to_owned),
        file: Some(skill.file.clone()),
    };
    let parse = |text: &String| match Rule::parse(&fill_folders(text, values), &places) {
        Ok(rule) => Some(rule),
        Err(bad) => {
            live.tell(Event::Warning(format!("/{}: {bad}", skill.name)));
            None
        }
    };
    let allowed = skill.rights.granted().map(|grants| grants.allowed_tools.as_slice()).unwrap_or_default();
    if let SkillRights::Withheld(requests) = &skill.rights {
        let text = format!("/{} is not trusted, so it works without: {}", skill.name, requests.join(", "));
        live.tell(Event::Warning(text));
    }
    Rules {
        allow: allowed.iter().filter_map(parse).collect(),
        ask: Vec::new(),
        deny: skill.disallowed_tools.iter().filter_map(parse).collect(),
    }
}

/// Takes on the model, effort and hooks of a trusted skill.
fn take_on(agent: &mut Agent, skill: &Skill) {
    let Some(SkillGrants { model, effort, hooks, .. }) = skill.rights.granted() else { return };
    if model.is_some() || effort.is_some() {
        let talk = &mut agent.driver.live.talk;
        let own = SmallModel { model: talk.model.clone(), name: talk.name.clone() };
        agent.skills.before.get_or_insert((own, talk.effort, talk.layers.window));
        talk.effort = effort.or(talk.effort);
        if let Some(model) = model {
            talk.choose(model);
        }
    }
    if let Some(hooks) = hooks
        && agent.skills.hooked.insert(skill.name.clone())
    {
        let source = match skill.source {
            SkillSource::Policy => settings::SettingsSource::Managed,
            SkillSource::User | SkillSource::Plugin => settings::SettingsSource::User,
            SkillSource::Project => settings::SettingsSource::Project,
        };
        let origin = settings::ValueOrigin { source, file: Some(skill.file.clone()), line: 1, column: 1 };
        let (hooks, told) = settings::hook_definitions::in_text(hooks, &origin, agent.driver.live.session.directory());
        let consent = &mut agent.driver.gate.consent;
        consent.hooks = consent.hooks.clone().and(hooks.clone());
        agent.skills.hooks.extend(hooks);
        told.into_iter().for_each(|text| {
            agent.driver.live.tell(Event::Warning(format!("/{}: {text}", skill.name)));
        });
    }
}

/// Runs the commands of a skill, as far as they may run without a question. The first that may not, or fails, is the
/// last.
async fn run_commands(agent: &mut Agent, plan: &ExpandPlan, cancel: &CancellationToken) -> Result<Vec<String>, String> {
    let mut outputs = Vec::new();
    for command in plan.commands() {
        let id = format!("skill-{}", agent.session().world().fresh_id());
        let input = json!({"command": command});
        let mut call = ModelCall {
            id: id.clone(),
            tool: tool_names::BASH.to_owned(),
            input,
            runs: tools::Runs::Alone,
            invalid: None,
        };
        let ruling = agent.driver.gate.decide_unasked(&agent.driver.live.site(), &mut call, cancel).await;
        agent.driver.write_used().map_err(|error| error.to_string())?;
        let (subject, rights) = match ruling {
            Ruling::Run(subject, rights) => (subject, rights),
            Ruling::Refused { why } => return Err(format!("its command `{command}` may not run: {why}")),
        };
        let scope = agent.driver.live.scope.clone().with_cancel(cancel.clone());
        let run = ToolCall { name: call.tool, input: call.input, subject: Some(subject), rights, id: Some(id.clone()) };
        let output = run_all(vec![run], &agent.driver.live.work.tools, &scope, |_, _| {}).await.pop();
        let output = output.unwrap_or_else(|| Output::failed("it did not run"));
        if output.outcome != Outcome::Done {
            return Err(format!("its command `{command}` failed: {}", output.text().trim()));
        }
        outputs.push(quoted(&agent.driver.live.bounded_output(&id, &output.text())).into_owned());
    }
    Ok(outputs)
}

/// Lets an agent of its own do the work of a skill.
async fn work_apart(
    agent: &mut Agent,
    skill: &Skill,
    prompt: String,
    (kind, waiting): (Option<String>, ForkWait),
    rules: Rules,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let name = &skill.name;
    let kind = kind.unwrap_or_else(|| GENERAL.to_owned());
    let none = || "it works in an agent of its own, and none can be started here".to_owned();
    let subagents = agent.contacts.agents.clone().ok_or_else(none)?;
    let call = ModelCall {
        id: format!("skill-{}", agent.session().world().fresh_id()),
        tool: tool_names::AGENT.to_owned(),
        input: json!({"subagent_type": kind}),
        runs: tools::Runs::Alone,
        invalid: None,
    };
    let caller = parent_snapshot::caller(agent, &[call], rules, cancel).ok_or_else(none)?;
    let input = AgentInput {
        description: format!("/{name}"),
        prompt,
        subagent_type: Some(kind),
        name: None,
        model: skill.rights.granted().and_then(|grants| grants.model.clone()),
        run_in_background: Some(waiting == ForkWait::Background),
        isolation: None,
    };
    let scope = agent.driver.live.scope.clone().with_cancel(cancel.clone()).with_caller(caller);
    let output = StartAgent::of(subagents).run(input, scope).await;
    match output.outcome {
        Outcome::Done => Ok(format!("/{name} works in an agent of its own.\n\n{}", output.text())),
        _ => Err(output.text()),
    }
}

fn extend(rules: &mut Rules, more: &Rules) {
    rules.allow.extend(more.allow.iter().cloned());
    rules.deny.extend(more.deny.iter().cloned());
}
