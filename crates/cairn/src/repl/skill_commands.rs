//! Skills and commands of the user's and the project's, as `/name`.

use std::path::Path;

use engine::servers::SessionServer;
use extensions::skill::{ModelUse, Skill, SkillRights, UserUse};

use super::complete::Completion;
use super::conversation_view::ConversationView;
use super::session_state::SessionState;
use super::slash;
use crate::styled_text::{TextStyle, one_line};

/// The most characters of a description in a list.
const ABOUT: usize = 80;

impl SessionState {
    /// The command in a line that begins with a slash: none if the line calls a skill, which is a message.
    pub(super) fn command_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        let command = text.strip_prefix('/').filter(|rest| !rest.starts_with('/'))?;
        let name = command.split_whitespace().next().unwrap_or_default();
        // A path is no command, and what stands behind it is meant for the model.
        let is_path = !name.is_empty() && slash::find(name).is_none() && Path::new("/").join(name).exists();
        if name.contains('/') || is_path {
            return None;
        }
        // Which prompts there are is for the servers to say, and some may be on their way.
        if name.starts_with("mcp__") && self.servers.as_ref().is_some_and(|servers| !servers.is_empty()) {
            return None;
        }
        let is_skill = slash::find(name).is_none() && self.skills.as_ref().is_some_and(|known| known.is_callable(name));
        (!is_skill).then_some(command)
    }

    /// The skills that the user can call, to complete.
    pub(super) fn skill_completions(&self) -> Vec<Completion> {
        let all = self.skills.as_ref().map(|skills| skills.all()).unwrap_or_default();
        let completion = |skill: Skill| {
            let hint = skill.argument_hint.map(|hint| format!("{hint} ")).unwrap_or_default();
            let about = one_line(&format!("{hint}{}", skill.description), ABOUT);
            Completion { text: format!("/{}", skill.name), about }
        };
        let is_callable = |skill: &Skill| skill.user_use == UserUse::Callable && slash::find(&skill.name).is_none();
        let skills = all.into_iter().filter(is_callable).map(completion);
        skills.chain(self.prompt_completions()).collect()
    }

    /// Prompts of connected servers, to complete.
    fn prompt_completions(&self) -> Vec<Completion> {
        let servers = self.servers.as_ref().map(|servers| servers.all()).unwrap_or_default();
        let of_server = |server: &std::sync::Arc<SessionServer>| {
            let prompts = server.status().map(|status| status.prompts.clone()).unwrap_or_default();
            let completion = |(name, prompt): (String, mcp::PromptOffer)| {
                let arguments: Vec<String> = prompt.arguments.into_iter().map(|argument| argument.name).collect();
                let hint = if arguments.is_empty() { String::new() } else { format!("[{}] ", arguments.join("] [")) };
                let about = one_line(&format!("{hint}{}", prompt.description.unwrap_or_default()), ABOUT);
                Completion { text: format!("/{name}"), about }
            };
            server.prompt_names().into_iter().zip(prompts).map(completion).collect::<Vec<_>>()
        };
        servers.iter().flat_map(of_server).collect()
    }

    /// Resources of connected servers, to complete after `@`.
    pub(super) fn resource_completions(&self) -> Vec<Completion> {
        let servers = self.servers.as_ref().map(|servers| servers.all()).unwrap_or_default();
        let of_server = |server: &std::sync::Arc<SessionServer>| {
            let resources = server.status().map(|status| status.resources.clone()).unwrap_or_default();
            let completion = |resource: mcp::ResourceOffer| Completion {
                text: format!("@{}:{}", server.name, resource.uri),
                about: one_line(&resource.name, ABOUT),
            };
            resources.into_iter().map(completion).collect::<Vec<_>>()
        };
        servers.iter().flat_map(of_server).collect()
    }

    /// Lists the skills, or shows one.
    pub(super) fn show_skills(&self, name: &str, view: &mut ConversationView) {
        let skills = self.skills.as_ref().map(|skills| skills.all()).unwrap_or_default();
        if let Some(skill) = skills.iter().find(|skill| skill.name == name.trim_start_matches('/')) {
            let rows = vec![
                (format!("/{}", skill.name), skill.description.clone()),
                ("file".to_owned(), skill.file.display().to_string()),
                ("source".to_owned(), origin_text(skill)),
                ("text".to_owned(), skill.body.trim().to_owned()),
            ];
            return view.table(&rows, TextStyle::BOLD);
        }
        if skills.is_empty() {
            let text = "there are no skills; one is a file .claude/skills/NAME/SKILL.md or .claude/commands/NAME.md, here \
                        or in your home directory";
            return view.page.note(text, TextStyle::PLAIN);
        }
        let row = |skill: &Skill| {
            (format!("/{}", skill.name), format!("{} ({})", one_line(&skill.description, ABOUT), origin_text(skill)))
        };
        view.table(&skills.iter().map(row).collect::<Vec<_>>(), TextStyle::BOLD);
        let troubles = self.skills.as_ref().map(|skills| skills.troubles()).unwrap_or_default();
        for trouble in troubles {
            view.page.note(&trouble.to_string(), TextStyle::DIM);
        }
    }
}

/// The source of a skill, and who can call it.
fn origin_text(skill: &Skill) -> String {
    let untrusted = if matches!(skill.rights, SkillRights::Withheld(_)) { ", not trusted" } else { "" };
    let callers = match (skill.user_use, skill.model_use) {
        (UserUse::Callable, ModelUse::Hidden) => ", yours to call",
        (UserUse::Hidden, ModelUse::Listed | ModelUse::NameOnly) => ", the model's to call",
        (UserUse::Hidden, ModelUse::Hidden) => ", off",
        (UserUse::Callable, _) => "",
    };
    let plugin = skill.plugin.as_ref().and_then(|_| skill.name.split_once(':'));
    let source = plugin.map_or_else(|| skill.source.name().to_owned(), |(name, _)| format!("plugin {name}"));
    format!("{source}{untrusted}{callers}")
}
