//! Settings files that change while a session runs: what they say now, with what flags say. New things that a project's
//! files ask for are not let in, not even by `--trust`, which was about what was there when the run began.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use engine::agent::{ChangedSettings, Reload};
use learning::knowledge::CopiedFolder;
use parking_lot::Mutex;
use provider::Model;
use settings::trust::{self, Claim};
use settings::{Provider, Settings, SettingsWatch};

use crate::args::RunArgs;
use crate::configure::{Inputs, configure};
use crate::model::{self, ChosenModel};
use crate::program_paths::ProgramPaths;
use crate::trust_prompt;
use crate::trusted_settings::{self, RunTrust, TrustedSettings};

/// Looks at the files, before they are read.
pub(crate) fn watch(args: &RunArgs, place: &ProgramPaths) -> anyhow::Result<SettingsWatch> {
    let record = trust::file(place.home.path());
    Ok(SettingsWatch::new(place.settings_files(args.settings.as_deref())?, vec![record]))
}

/// The check that runs before each request.
pub(crate) fn reload(watch: SettingsWatch, follower: SettingsReloader) -> Reload {
    let (watch, follower) = (Mutex::new(watch), Arc::new(tokio::sync::Mutex::new(follower)));
    Arc::new(move || {
        let files: Vec<_> = {
            let mut watch = watch.lock();
            let files = watch.changed();
            files.into_iter().map(|file| (file.clone(), watch.hook_source(&file))).collect()
        };
        let follower = follower.clone();
        (!files.is_empty()).then(|| Box::pin(async move { follower.lock().await.look(files).await.ok() }) as _)
    })
}

/// Settings that a session was started with, and the last that it was told.
pub(crate) struct SettingsReloader {
    args: RunArgs,
    place: ProgramPaths,
    /// The model of the session that was resumed.
    known_model: Option<String>,
    /// Claims trusted for this run.
    let_in: Vec<Claim>,
    /// The copy of the project that the session works in, if it does.
    copy: Option<CopiedFolder>,
    /// Warnings that the user has seen.
    shown_warnings: Vec<String>,
    chosen: ChosenModel,
    choice: ModelChoice,
}

/// All that the choice of a model depends on.
#[derive(PartialEq)]
struct ModelChoice {
    model: Option<settings::NamedModel>,
    providers: BTreeMap<String, Provider>,
    environment: BTreeMap<String, String>,
}

impl ModelChoice {
    fn of(settings: &Settings) -> Self {
        let Settings { model, providers, own_environment, .. } = settings;
        Self { model: model.clone(), providers: providers.clone(), environment: own_environment.clone() }
    }
}

impl SettingsReloader {
    pub(crate) fn new(
        args: &RunArgs,
        place: &ProgramPaths,
        judged: &TrustedSettings,
        known_model: Option<String>,
        chosen: ChosenModel,
        copy: Option<CopiedFolder>,
        shown_warnings: Vec<String>,
    ) -> Self {
        let (args, place, let_in) = (args.clone(), place.clone(), judged.let_in.clone());
        Self {
            args,
            place,
            known_model,
            let_in,
            copy,
            shown_warnings,
            chosen,
            choice: ModelChoice::of(&judged.settings),
        }
    }

    async fn look(&mut self, files: Vec<(PathBuf, Option<&'static str>)>) -> anyhow::Result<ChangedSettings> {
        let one_run = RunTrust::With(self.let_in.clone());
        let judged = trusted_settings::judge(&self.place, self.args.settings.as_deref(), one_run)?;
        let mut warnings = judged.settings.warnings();
        warnings.extend(trust_prompt::left_out(&judged));
        let (model, stays) = self.model(&judged.settings).await;
        let inputs = Inputs::read(&self.args, &self.place, &judged, &self.chosen, self.copy.as_ref())?;
        let (configuration, more) = configure(&inputs)?;
        warnings.extend(more);
        let new = warnings.iter().filter(|text| !self.shown_warnings.contains(text)).cloned();
        let told = new.chain(stays).collect();
        self.shown_warnings = warnings;
        Ok(ChangedSettings { files, configuration, model, messages: told })
    }

    /// The model to talk to, where the settings now say another. One that cannot be had is not taken.
    async fn model(&mut self, settings: &Settings) -> (Option<Arc<dyn Model>>, Option<String>) {
        let choice = ModelChoice::of(settings);
        if self.choice == choice {
            return (None, None);
        }
        self.choice = choice;
        match model::choose(self.args.model.as_deref(), self.known_model.as_deref(), settings).await {
            Ok(chosen) => {
                self.chosen = chosen;
                (Some(self.chosen.model.clone()), None)
            }
            Err(error) => (None, Some(format!("the model stays as it is: {error:#}"))),
        }
    }
}
