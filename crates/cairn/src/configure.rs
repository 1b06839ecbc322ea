//! The effective configuration from flags, settings and environment, when a session starts and when its settings
//! change.
//!
//! [`Inputs::read`] gathers the inputs; [`configure`] decides, and reads nothing.

use std::path::{Path, PathBuf};

use engine::configuration::{Configuration, DreamSettings};
use engine::context::Layers;
use learning::knowledge::{CopiedFolder, KnowledgeSettings};
use settings::agent_definitions::Registry;
use settings::{BypassPermission, HookSettings, Learning, Rhythm, SandboxSettings, Settings, keys};
use tools::permission::{Mode, Rule};
use transcript::window::{self, AutoCompact, Window, WindowHints};

use crate::args::RunArgs;
use crate::memory_setup::MemorySetup;
use crate::model::ChosenModel;
use crate::program_paths::ProgramPaths;
use crate::trusted_settings::TrustedSettings;
use crate::{agent_sources, dream_setup, env, output_style};

/// The largest template for notes that is read.
const NOTES_BYTES: u64 = 100_000;

/// All that has a say in a session.
pub(crate) struct Inputs<'a> {
    args: &'a RunArgs,
    place: &'a ProgramPaths,
    settings: &'a Settings,
    chosen: &'a ChosenModel,
    variables: Variables,
    /// Memory and instruction files; none in a bare session.
    pub(crate) plan: Option<MemorySetup>,
    /// The agents that can be started; none in a bare session.
    agents: Option<Registry>,
    style: Vec<String>,
    notes_template: Option<String>,
    notes_prompt: Option<String>,
    /// The copy of the project that the session works in, if it does.
    copy: Option<&'a CopiedFolder>,
    /// Warnings for the user about what was read.
    pub(crate) warnings: Vec<String>,
}

/// Values of environment variables.
struct Variables {
    max_output: Option<u64>,
    max_context: Option<u64>,
    compact_window: Option<u64>,
    no_compact: bool,
    collapse: Option<bool>,
    is_remote: bool,
    betas: Vec<String>,
}

impl Variables {
    fn read() -> anyhow::Result<Self> {
        Ok(Self {
            max_output: env::MAX_OUTPUT.number()?,
            max_context: env::MAX_CONTEXT.number()?,
            compact_window: env::COMPACT_WINDOW.number()?,
            no_compact: env::NO_COMPACT.flag() == Some(true),
            collapse: env::COLLAPSE.flag(),
            is_remote: env::REMOTE.flag() == Some(true),
            betas: env::BETAS.get().map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default(),
        })
    }
}

impl<'a> Inputs<'a> {
    /// Reads what has a say, and makes the memory directory.
    pub(crate) fn read(
        args: &'a RunArgs,
        place: &'a ProgramPaths,
        judged: &'a TrustedSettings,
        chosen: &'a ChosenModel,
        copy: Option<&'a CopiedFolder>,
    ) -> anyhow::Result<Self> {
        let settings = &judged.settings;
        let mut plan = (!args.is_bare()).then(|| MemorySetup::new(place, settings));
        if let Some(plan) = &mut plan {
            plan.prepare();
        }
        let agents = match args.is_bare() {
            true => None,
            false => {
                Some(agent_sources::registry(place, settings, &judged.trust, &judged.plugins, args.agents.as_deref())?)
            }
        };
        let notes = place.home.path().join("session-memory/config");
        let note = |name: &str| {
            files::read(notes.join(name), NOTES_BYTES).ok().and_then(|file| String::from_utf8(file.bytes).ok())
        };
        let (style, no_style) = output_style::style(settings, place, &judged.plugins);
        Ok(Self {
            args,
            place,
            settings,
            chosen,
            variables: Variables::read()?,
            agents,
            style,
            notes_template: note("template.md"),
            notes_prompt: note("prompt.md"),
            copy,
            warnings: plan.iter_mut().flat_map(|plan| std::mem::take(&mut plan.warnings)).chain(no_style).collect(),
            plan,
        })
    }

    /// The betas that the user asks for, and the one that the model's name does, each once.
    fn betas(&self) -> Vec<String> {
        let own = self.args.betas.iter().chain(&self.variables.betas).map(|name| name.trim().to_owned());
        let mut betas: Vec<String> = Vec::new();
        for name in own.chain(window::beta_of(&self.chosen.full_name).map(str::to_owned)) {
            if !name.is_empty() && !betas.contains(&name) {
                betas.push(name);
            }
        }
        betas
    }

    fn layers(&self, max_output: u64, betas: &[String]) -> Layers {
        let window = Window::of(&WindowHints {
            model: &self.chosen.full_name,
            betas,
            configured: self.chosen.window,
            max_context_tokens: self.variables.max_context,
            auto_compact_window: self.variables.compact_window,
            max_output,
        });
        let said = &self.settings.layers;
        Layers {
            window,
            price: self.settings.prices.of(&self.chosen.name),
            auto_compact: if self.variables.no_compact { AutoCompact::Off } else { said.auto_compact },
            collapse: self.variables.collapse.unwrap_or(said.collapse),
            notes: said.notes && !self.args.is_bare(),
            notes_compact: said.notes_compact && !self.args.is_bare(),
            notes_template: self.notes_template.clone(),
            notes_prompt: self.notes_prompt.clone(),
            ..said.clone()
        }
    }

    /// The configuration of learning, if it is on; and the reason why not, if something is wrong.
    fn learning(&self) -> (Option<Learning>, Option<String>) {
        let (args, settings) = (self.args, self.settings);
        let wanted = !args.print || args.extract || settings.extract.headless == Some(true);
        // What a long-lived session logs is distilled by dreams.
        let logs = settings.daily_log == Some(true);
        let plan = self.plan.as_ref().filter(|plan| plan.directory.is_some());
        let Some(plan) = plan.filter(|_| wanted && !logs && !self.variables.is_remote) else { return (None, None) };
        match settings.extract.learning(&self.place.home, &self.place.base_paths()) {
            Ok(learning) => {
                let (team, indexing) = (plan.shared().map(Path::to_owned), plan.indexing);
                (learning.map(|learning| Learning { team, indexing, ..learning }), None)
            }
            Err(error) => (None, Some(format!("nothing is learnt: {error}"))),
        }
    }

    fn knowledge_settings(&self) -> Option<KnowledgeSettings> {
        let plan = self.plan.as_ref()?;
        Some(KnowledgeSettings {
            directory: plan.directory.clone(),
            recalling: plan.recalling,
            selector: self.chosen.selector(self.settings),
            excludes: plan.sources.excludes.clone(),
            indexes: plan.sources.indexes.clone(),
        })
    }

    /// The mode: what is managed, what a flag says, what the settings say. And what the user should know of it.
    fn mode(&self) -> (Mode, Option<&'static str>) {
        let asked = self.args.mode();
        let (is_managed, said) = (self.settings.is_managed(&keys::MODE), self.settings.mode.unwrap_or_default());
        let mode = asked.filter(|_| !is_managed).unwrap_or(said);
        if mode == Mode::BypassPermissions && self.settings.bypass == BypassPermission::Disabled {
            let why = "bypassPermissions is disabled by the settings; the session starts in the mode default";
            return (Mode::Default, Some(why));
        }
        let is_overruled = asked.is_some_and(|asked| asked != mode);
        (mode, is_overruled.then_some("the mode is set by managed settings; the flag is ignored"))
    }
}

/// The effective configuration, and warnings for the user.
pub(crate) fn configure(inputs: &Inputs<'_>) -> anyhow::Result<(Configuration, Vec<String>)> {
    let Inputs { args, place, settings, chosen, variables, plan, agents, .. } = inputs;
    let of_settings = Configuration::of(settings, &chosen.name);
    let max_tokens = variables.max_output.unwrap_or(of_settings.max_tokens);
    let mut rules = settings.rules.clone();
    rules.allow.extend(rules_of(&args.allowed_tools, place)?);
    rules.deny.extend(rules_of(&args.disallowed_tools, place)?);
    rules.allow.extend(rules_of(&plan.as_ref().map(MemorySetup::rules).unwrap_or_default(), place)?);
    if let Some(copy) = inputs.copy {
        rules.hold_in_copy(&copy.at, &copy.of);
    }
    let (mode, of_mode) = inputs.mode();
    let (learning, of_learning) = inputs.learning();
    let effort = args.effort.filter(|_| !settings.is_managed(&keys::EFFORT)).or(settings.effort);
    let of_effort = args.effort.is_some() && args.effort != effort;
    // A session that is an agent of a type tries as hard as its definition says.
    let own_effort = args.agent_type.as_ref().and_then(|kind| agents.as_ref()?.find(kind)?.effort);
    let is_sandboxed = args.sandbox.filter(|_| !settings.is_managed(&keys::SANDBOX)).or(settings.sandbox.enabled);
    let of_sandbox = args.sandbox.is_some() && args.sandbox != is_sandboxed;
    let small = chosen.small_name(settings);
    let betas = inputs.betas();
    let configuration = Configuration {
        max_tokens,
        effort: own_effort.or(effort),
        layers: inputs.layers(max_tokens, &betas),
        betas,
        rules,
        mode,
        hooks: if args.is_bare() { HookSettings::default() } else { of_settings.hooks },
        sandbox: SandboxSettings { enabled: is_sandboxed, ..of_settings.sandbox },
        directories: of_settings.directories.into_iter().chain(added(args, place)).collect(),
        agents: agents.clone(),
        knowledge_settings: inputs.knowledge_settings(),
        learning,
        dreams: DreamSettings {
            // Not on another machine, whose memory is gone with it.
            rhythm: Rhythm { on: of_settings.dreams.rhythm.on && !variables.is_remote, ..of_settings.dreams.rhythm },
            model: dream_setup::model(settings, chosen),
            window: dream_setup::window(settings, chosen, variables.max_context),
            excluded: settings.extract.excluded(&place.base_paths()).ok(),
            ..of_settings.dreams
        },
        small,
        style: inputs.style.clone(),
        ..of_settings
    };
    let of_flags = [
        of_mode,
        of_effort.then_some("the effort is set by managed settings; the flag is ignored"),
        of_sandbox.then_some("the sandbox is set by managed settings; your choice is ignored"),
    ];
    let told = of_flags.into_iter().flatten().map(str::to_owned).chain(of_learning);
    Ok((configuration, told.collect()))
}

#[cfg(test)]
mod tests;

fn rules_of(texts: &[String], place: &ProgramPaths) -> anyhow::Result<Vec<Rule>> {
    Ok(settings::rules(texts, &place.base_paths()).map_err(session::Error::from)?)
}

/// The directories that flags add.
pub(crate) fn added(args: &RunArgs, place: &ProgramPaths) -> Vec<PathBuf> {
    args.add_dir.iter().map(|directory| place.directory.join(directory)).collect()
}
