//! `/sandbox`: what holds of it here, and turning it on and off.

use std::sync::Arc;

use settings::keys;
use settings::permission::ChosenBy;

use super::conversation::Conversation;
use crate::span::Look;
use crate::{judgement, setup};

/// What becomes of commands that run unasked because they only look.
async fn unasked(scope: &tools::Scope) -> String {
    scope.find_wall().await;
    match scope.no_wall() {
        None => "Commands that only look run unasked, and the kernel holds them to that, with the sandbox or without."
            .to_owned(),
        Some(why) => format!(
            "Commands that only look cannot be confined here ({why}): only those made of plain words and common options run \
             unasked."
        ),
    }
}

impl Conversation {
    pub(super) async fn sandbox(&mut self, argument: &str) -> anyhow::Result<()> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let settings = judgement::settings(&self.place, self.args.settings.as_deref())?;
        match argument {
            "" => {
                let (now, sandbox) = match agent.scope().sandbox() {
                    Some(sandbox) => ("on: commands run in it", sandbox),
                    None => ("off", Arc::new(setup::sandbox(&settings, &self.place, agent).await?)),
                };
                let text = format!(
                    "the sandbox is {now}; /sandbox on or off changes it\n{}{}",
                    sandbox.describe(),
                    unasked(agent.scope()).await
                );
                self.page.note(&text, Look::PLAIN);
            }
            "on" => {
                let sandbox = setup::sandbox(&settings, &self.place, agent).await?;
                self.page.note(&format!("commands run in the sandbox\n{}", sandbox.describe()), Look::PLAIN);
                agent.set_sandbox(Some(sandbox), ChosenBy::Hand);
                self.args.sandbox = Some(true);
            }
            "off" if settings.is_managed(&keys::SANDBOX) && settings.sandbox.enabled == Some(true) => {
                self.hint = Some("the sandbox is on by managed settings".to_owned());
            }
            "off" => {
                agent.set_sandbox(None, ChosenBy::Hand);
                self.args.sandbox = Some(false);
                self.page.note("commands run outside of the sandbox", Look::PLAIN);
            }
            _ => self.hint = Some("/sandbox, /sandbox on or /sandbox off".to_owned()),
        }
        Ok(())
    }
}
