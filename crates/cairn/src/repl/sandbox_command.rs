//! `/sandbox`: what holds of it here, and turning it on and off.

use std::sync::Arc;

use settings::keys;
use settings::permission::ChosenBy;

use super::conversation_view::ConversationView;
use super::session_state::SessionState;
use crate::args::RunArgs;
use crate::program_paths::ProgramPaths;
use crate::styled_text::TextStyle;
use crate::{setup, trusted_settings};

/// Describes the confinement of commands that run unasked because they only read.
async fn unasked(scope: &tools::Scope) -> String {
    scope.find_wall().await;
    match scope.no_wall() {
        None => {
            "Commands that only read run unasked, and the kernel enforces that, with or without the sandbox.".to_owned()
        }
        Some(why) => format!(
            "Commands that only read cannot be confined here ({why}): only those made of plain words and common options run \
             unasked."
        ),
    }
}

impl SessionState {
    /// Shows how it stands, or turns it on or off, also for what is opened later.
    pub(super) async fn sandbox(
        &mut self,
        argument: &str,
        args: &mut RunArgs,
        place: &ProgramPaths,
        view: &mut ConversationView,
    ) -> anyhow::Result<()> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let settings = trusted_settings::settings(place, args.settings.as_deref())?;
        match argument {
            "" => {
                let (now, sandbox) = match agent.scope().sandbox() {
                    Some(sandbox) => ("on: commands run in it", sandbox),
                    None => ("off", Arc::new(setup::sandbox(&settings.sandbox, place, agent).await?)),
                };
                let text = format!(
                    "the sandbox is {now}; /sandbox on or off changes it\n{}{}",
                    sandbox.describe(),
                    unasked(agent.scope()).await
                );
                view.page.note(&text, TextStyle::PLAIN);
            }
            "on" => {
                let sandbox = setup::sandbox(&settings.sandbox, place, agent).await?;
                view.page.note(&format!("commands run in the sandbox\n{}", sandbox.describe()), TextStyle::PLAIN);
                agent.set_sandbox(Some(sandbox), ChosenBy::Hand);
                args.sandbox = Some(true);
            }
            "off" if settings.is_managed(&keys::SANDBOX) && settings.sandbox.enabled == Some(true) => {
                view.hint = Some("managed settings keep the sandbox on".to_owned());
            }
            "off" => {
                agent.set_sandbox(None, ChosenBy::Hand);
                args.sandbox = Some(false);
                view.page.note("commands run outside the sandbox", TextStyle::PLAIN);
            }
            _ => view.hint = Some("/sandbox, /sandbox on or /sandbox off".to_owned()),
        }
        Ok(())
    }
}
