//! Settings that change while a session runs. What they say counts from the next request on; the prompt is not changed
//! before it is made anew.

use std::path::PathBuf;
use std::sync::Arc;

use context::Layers;
use tools::Environment;
use tools::permission::{Rule, Rules};

use super::{Agent, parts};
use crate::dream::gate::Rhythm;
use crate::error::Error;
use crate::event::Event;
use crate::ledger::Budget;
use crate::settings::Bypass;

/// Asked before each request: what the settings say, if their files have changed. It is to be cheap.
pub type Reload = Arc<dyn Fn() -> Option<Reloaded> + Send + Sync>;

/// What changed settings say.
pub struct Reloaded {
    /// The files that have changed.
    pub files: Vec<PathBuf>,
    /// All rules, those of flags too.
    pub rules: Rules,
    /// Whether the mode that asks nothing counts.
    pub bypass: Bypass,
    /// More directories to work in.
    pub directories: Vec<PathBuf>,
    /// The variables of commands.
    pub environment: Environment,
    /// How to keep within the window; its size is not taken from here.
    pub layers: Layers,
    /// What work in the background may spend.
    pub budget: Budget,
    /// When dreams come by themselves.
    pub dreams: Rhythm,
    /// What else is to be said.
    pub told: Vec<String>,
}

impl Agent {
    /// Takes in what the settings say now.
    pub(super) fn reload(&mut self) -> Result<(), Error> {
        let Some(new) = self.driver.parts.reload.as_ref().and_then(|reload| reload()) else { return Ok(()) };
        let Reloaded { files, mut rules, bypass, directories, environment, layers, budget, dreams, told } = new;
        rules.allow.extend(parts::kept(&self.driver.session)?);
        rules.allow.extend(self.driver.answered.iter().cloned());
        let now = &self.driver.parts;
        let layers = Layers { window: now.layers.window, ..layers };
        // Rules that were answered with "always" are in force already, so nobody hears of them again.
        let shown = |environment: &Environment, layers: &Layers, budget: Budget| {
            format!("{environment:?} {layers:?} {budget:?}")
        };
        let known = shown(&now.environment, &now.layers, now.ledger.budget());
        let before = (texts(&now.policy.rules), now.policy.bypass, &now.directories, known);
        let after = (texts(&rules), bypass, &directories, shown(&environment, &layers, budget));
        if before != after {
            let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            let text = format!("the settings have changed and count from now on: {}", names.join(", "));
            self.driver.tell(Event::Warning(text));
        }
        for text in told {
            self.driver.tell(Event::Warning(text));
        }
        let scope = self.driver.scope.clone().with_directories(directories.clone());
        self.driver.scope = scope.with_readable(parts::readable(&rules)).with_environment(environment.clone());
        if let Some(dreaming) = &mut self.dreaming {
            dreaming.set_rhythm(dreams);
        }
        let parts = &mut self.driver.parts;
        parts.ledger.set_budget(budget);
        (parts.directories, parts.environment, parts.layers) = (directories, environment, layers);
        (parts.policy.rules, parts.policy.bypass) = (rules, bypass);
        Ok(())
    }
}

fn texts(rules: &Rules) -> Vec<Vec<String>> {
    let sorted = |rules: &[Rule]| {
        let mut texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
        texts.sort();
        texts.dedup();
        texts
    };
    [&rules.allow, &rules.ask, &rules.deny].iter().map(|rules| sorted(rules)).collect()
}
