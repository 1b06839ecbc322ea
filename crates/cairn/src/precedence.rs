//! What holds where flags, settings and environment each have a say, when a session starts and when its settings change.

use std::path::{Path, PathBuf};

use engine::context::Layers;
use engine::hooks::Hooks;
use engine::parts::MAX_OUTPUT_TOKENS;
use settings::hooks::HookSettings;
use settings::{Bypass, Learning, Settings, keys};
use tools::permission::{Mode, Rule, Rules};
use transcript::Effort;
use transcript::window::{AutoCompact, Window, WindowHints};

use crate::args::RunArgs;
use crate::env;
use crate::knowledge::Plan;
use crate::model::Chosen;
use crate::place::Place;

/// The largest template for notes that is read.
const NOTES_BYTES: u64 = 100_000;

/// How a session learns, if it does; and why not, where something is wrong.
pub(crate) fn learning(
    args: &RunArgs,
    place: &Place,
    settings: &Settings,
    plan: Option<&Plan>,
) -> (Option<Learning>, Option<String>) {
    let wanted = !args.print || args.extract || settings.extract.headless == Some(true);
    // What a long-lived session logs is distilled by dreams.
    let logs = settings.daily_log == Some(true);
    let Some(plan) = plan.filter(|plan| plan.directory.is_some()) else { return (None, None) };
    if !wanted || logs || env::REMOTE.flag() == Some(true) {
        return (None, None);
    }
    match settings.extract.learning(&place.home, &place.ground()) {
        Ok(learning) => {
            let team = plan.shared().map(Path::to_owned);
            let indexing = plan.indexing;
            (learning.map(|learning| Learning { team, indexing, ..learning }), None)
        }
        Err(error) => (None, Some(format!("nothing is learnt: {error}"))),
    }
}

/// What the layers depend on beside the settings.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    window: Window,
    model: String,
    bare: bool,
}

impl Shape {
    /// For a model.
    pub(crate) fn of(chosen: &Chosen, args: &RunArgs, max_tokens: u64) -> anyhow::Result<Self> {
        let window = Window::of(&WindowHints {
            model: &chosen.full_name,
            configured: chosen.window,
            max_context_tokens: env::MAX_CONTEXT.number()?,
            auto_compact_window: env::COMPACT_WINDOW.number()?,
            max_output: max_tokens,
            ..WindowHints::default()
        });
        Ok(Self { window, model: chosen.name.clone(), bare: args.is_bare() })
    }

    /// The model's window.
    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// The hooks that run: none in a bare session.
    pub(crate) fn hooks(&self, hooks: &HookSettings) -> Hooks {
        if self.bare { Hooks::default() } else { Hooks::new(hooks.clone()) }
    }

    /// How a session keeps within its window.
    pub(crate) fn layers(&self, settings: &Settings, place: &Place) -> Layers {
        let (window, price) = (self.window, settings.prices.of(&self.model));
        let mut layers = Layers { window, price, ..settings.layers.clone() };
        if env::NO_COMPACT.flag() == Some(true) {
            layers.auto_compact = AutoCompact::Off;
        }
        layers.collapse = env::COLLAPSE.flag().unwrap_or(layers.collapse);
        let notes = place.home.path().join("session-memory/config");
        let own = |name: &str| {
            files::read(notes.join(name), NOTES_BYTES).ok().and_then(|file| String::from_utf8(file.bytes).ok())
        };
        (layers.notes_template, layers.notes_prompt) = (own("template.md"), own("prompt.md"));
        if self.bare {
            (layers.notes, layers.notes_compact) = (false, false);
        }
        layers
    }
}

/// The most a reply may be.
pub(crate) fn max_tokens(settings: &Settings) -> anyhow::Result<u64> {
    Ok(env::MAX_OUTPUT.number()?.or(settings.max_output_tokens).unwrap_or(MAX_OUTPUT_TOKENS))
}

/// How hard the model tries: what is managed, what a flag says, what the settings say.
pub(crate) fn effort(args: &RunArgs, settings: &Settings) -> Option<Effort> {
    args.effort.filter(|_| !settings.is_managed(&keys::EFFORT)).or(settings.effort)
}

/// Rules from their texts.
pub(crate) fn rules(texts: &[String], place: &Place) -> anyhow::Result<Vec<Rule>> {
    Ok(settings::rules(texts, &place.ground()).map_err(session::Error::from)?)
}

/// Adds the rules that flags name.
pub(crate) fn add_flags(all: &mut Rules, args: &RunArgs, place: &Place) -> anyhow::Result<()> {
    all.allow.extend(rules(&args.allowed_tools, place)?);
    all.deny.extend(rules(&args.disallowed_tools, place)?);
    Ok(())
}

/// The directories that flags add.
pub(crate) fn added(args: &RunArgs, place: &Place) -> Vec<PathBuf> {
    args.add_dir.iter().map(|directory| place.directory.join(directory)).collect()
}

/// The mode the settings say.
pub(crate) fn mode_of(settings: &Settings) -> Mode {
    let mode = settings.mode.unwrap_or_default();
    if mode == Mode::BypassPermissions && settings.bypass == Bypass::Disabled { Mode::Default } else { mode }
}
