//! Settings files that change while a session runs: what they say now, with what flags say. New things that a project's
//! files ask for are not let in, not even by `--trust`, which was about what was there when the run began.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use engine::agent::{Parts, Reload, Reloaded};
use engine::settings::Watch;
use engine::trust;
use tools::permission::Rules;

use crate::args::RunArgs;
use crate::asking;
use crate::dreaming;
use crate::setup::{Judged, OneRun, Place, Shape};

/// Looks at the files, before they are read.
pub(crate) fn watch(args: &RunArgs, place: &Place) -> anyhow::Result<Watch> {
    let record = trust::file(place.home.path());
    Ok(Watch::new(place.settings_files(args.settings.as_deref())?, vec![record]))
}

/// What is asked before each request.
pub(crate) fn reload(
    watch: Watch,
    args: &RunArgs,
    place: &Place,
    judged: &Judged,
    parts: &Parts,
    shape: Shape,
) -> Reload {
    // What is there beside the settings comes from flags and from where memory lies, and stays.
    let beside = |now: &[_], settings: usize| now.get(settings..).unwrap_or_default().to_vec();
    let (now, said) = (&parts.policy.rules, &judged.settings.rules);
    let flags = Rules {
        allow: beside(&now.allow, said.allow.len()),
        ask: beside(&now.ask, said.ask.len()),
        deny: beside(&now.deny, said.deny.len()),
    };
    let directories: Vec<PathBuf> =
        parts.directories.get(judged.settings.directories.len()..).unwrap_or_default().to_vec();
    let (flag, place, let_in) = (args.settings.clone(), place.clone(), judged.let_in.clone());
    let told = judged.settings.warnings().into_iter().chain(asking::told(judged)).collect::<Vec<_>>();
    let state = Mutex::new((watch, told));
    Arc::new(move || {
        let (watch, told) = &mut *state.lock().unwrap_or_else(PoisonError::into_inner);
        let files = watch.changed();
        if files.is_empty() {
            return None;
        }
        let judged = place.judged(flag.as_deref(), OneRun::With(let_in.clone())).ok()?;
        let layers = shape.layers(&judged.settings, &place);
        let mut warnings = judged.settings.warnings();
        warnings.extend(asking::left_out(&judged));
        let new = warnings.iter().filter(|warning| !told.contains(warning)).cloned().collect();
        *told = warnings;
        let settings = judged.settings;
        let dreams = dreaming::rhythm(&settings);
        let environment = engine::agent::environment(&settings);
        let (mut rules, budget) = (settings.rules, settings.budget);
        rules.allow.extend(flags.allow.iter().cloned());
        rules.ask.extend(flags.ask.iter().cloned());
        rules.deny.extend(flags.deny.iter().cloned());
        let directories = settings.directories.into_iter().chain(directories.iter().cloned()).collect();
        let bypass = settings.bypass;
        Some(Reloaded { files, rules, bypass, directories, environment, layers, budget, dreams, told: new })
    })
}
