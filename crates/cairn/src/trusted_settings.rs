//! The settings in force, judged by what the user trusts the project's files with.

use learning::knowledge::outside;
use settings::trust::{self, Claim, Trust};
use settings::{LoadedSettings, Settings};

use crate::plugins::LoadedPlugins;
use crate::program_paths::ProgramPaths;
use crate::{agent_sources, env, instruction_files, skill_sources};

/// Trust in the project's files for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunTrust {
    /// As far as the user has said before.
    No,
    /// With all they ask for.
    Trusted,
    /// With what was let in when the run began.
    With(Vec<Claim>),
}

/// Settings, and what the project's files asked for.
pub(crate) struct TrustedSettings {
    /// The effective settings.
    pub(crate) settings: Settings,
    /// The plugins of the session. Their hooks are among those of the settings.
    pub(crate) plugins: LoadedPlugins,
    /// The user's trust in the project's files.
    pub(crate) trust: Trust,
    /// Claims that are not trusted.
    pub(crate) left_out: Vec<Claim>,
    /// Agents and skills of which only that counts which takes away.
    pub(crate) narrowed: Vec<Claim>,
    /// Claims that are trusted for this run only.
    pub(crate) let_in: Vec<Claim>,
}

/// The settings in force.
pub(crate) fn settings(place: &ProgramPaths, flag: Option<&str>) -> anyhow::Result<Settings> {
    Ok(judge(place, flag, RunTrust::No)?.settings)
}

/// The settings in force, and what of the project's files is left out.
pub(crate) fn judge(place: &ProgramPaths, flag: Option<&str>, one_run: RunTrust) -> anyhow::Result<TrustedSettings> {
    let loaded = LoadedSettings::read(&place.settings_files(flag)?);
    let mut trust = place.trust();
    let claims = trust::claims(&loaded, trust.site());
    let extensions = [agent_sources::claims(place, trust.site()), skill_sources::claims(place, trust.site())].concat();
    trust.take_over(&claims);
    let (is_new_let_in, mut let_in) = match one_run {
        RunTrust::No => (false, Vec::new()),
        RunTrust::Trusted => (true, trust.missing(&[claims.clone(), extensions.clone()].concat())),
        RunTrust::With(claims) => (false, claims),
    };
    if !trust.admit(&let_in) {
        let_in.clear();
    }
    let (mut left_out, narrowed) = (trust.missing(&claims), trust.missing(&extensions));
    let mut settings = Settings::of(&loaded, &place.base_paths(), &|set| trust.covers_set(set));
    let mut plugins = LoadedPlugins::read(place, &settings);
    plugins.add_hooks(&mut settings, place);
    env::extend(&settings.own_environment);
    let mut instructions = instruction_files::load(place, &settings);
    loop {
        let outside = outside::settle(&mut instructions, &trust);
        let missing: Vec<Claim> = outside.into_iter().map(|outside| outside.claim).collect();
        // What is let in may ask for more.
        if is_new_let_in && !missing.is_empty() && trust.admit(&missing) {
            let_in.extend(missing);
        } else {
            left_out.extend(missing);
            return Ok(TrustedSettings { settings, plugins, trust, left_out, narrowed, let_in });
        }
    }
}
