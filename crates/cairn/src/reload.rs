//! Settings files that change while a session runs: what they say now, with what flags say. New things that a project's
//! files ask for are not let in, not even by `--trust`, which was about what was there when the run began.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::agent::{Reload, Reloaded, Said};
use learning::knowledge::{Copied, Recollection};
use learning::ledger::Ledger;
use settings::trust::{self, Claim};
use settings::{Settings, Watch, keys};
use tools::permission::Mode;

use crate::args::RunArgs;
use crate::judgement::{self, Judged, OneRun};
use crate::knowledge::Plan;
use crate::model::{self, Chosen};
use crate::place::Place;
use crate::precedence::{self, Shape};
use crate::{agents, asking, dreaming};

/// Looks at the files, before they are read.
pub(crate) fn watch(args: &RunArgs, place: &Place) -> anyhow::Result<Watch> {
    let record = trust::file(place.home.path());
    Ok(Watch::new(place.settings_files(args.settings.as_deref())?, vec![record]))
}

/// What is asked before each request.
pub(crate) fn reload(watch: Watch, follower: Follower) -> Reload {
    let (watch, follower) = (Mutex::new(watch), Arc::new(follower));
    Arc::new(move || {
        let (files, name): (Vec<PathBuf>, _) = {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            let files = watch.changed();
            let names: Vec<_> = files.iter().map(|file| watch.told_as(file)).collect();
            (files, names)
        };
        let files: Vec<_> = files.into_iter().zip(name).collect();
        let follower = follower.clone();
        (!files.is_empty()).then(|| Box::pin(async move { follower.look(files).await.ok() }) as _)
    })
}

/// What a session was started with, and what it was last told.
pub(crate) struct Follower {
    args: RunArgs,
    place: Place,
    /// The model of the session that was resumed.
    known_model: Option<String>,
    /// What was let in for this run.
    let_in: Vec<Claim>,
    ledger: Arc<Ledger>,
    last: Mutex<Last>,
    /// The copy of the project that the session works in, if it does.
    copy: Option<Copied>,
}

/// What the settings said when they were last read.
struct Last {
    told: Vec<String>,
    mode: Mode,
    chosen: Chosen,
    /// All that the choice of a model depends on.
    model: String,
}

impl Follower {
    pub(crate) fn new(
        args: &RunArgs,
        place: &Place,
        judged: &Judged,
        known_model: Option<String>,
        chosen: Chosen,
        ledger: Arc<Ledger>,
    ) -> Self {
        let told = judged.settings.warnings().into_iter().chain(asking::told(judged)).collect();
        let (mode, model) = (precedence::mode_of(&judged.settings), model_said(&judged.settings));
        let last = Mutex::new(Last { told, mode, chosen, model });
        let (args, place, let_in) = (args.clone(), place.clone(), judged.let_in.clone());
        Self { args, place, known_model, let_in, ledger, last, copy: None }
    }

    /// For a session that works in a copy of the project: the project's rules hold there.
    pub(crate) fn in_copy(self, copy: Option<Copied>) -> Self {
        Self { copy, ..self }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look(&self, files: Vec<(PathBuf, Option<&'static str>)>) -> anyhow::Result<Reloaded> {
        let (args, place) = (&self.args, &self.place);
        let judged = judgement::judge(place, args.settings.as_deref(), OneRun::With(self.let_in.clone()))?;
        let settings = &judged.settings;
        let mut warnings = settings.warnings();
        warnings.extend(asking::left_out(&judged));
        let mut told: Vec<String> =
            warnings.iter().filter(|warning| !self.last().told.contains(warning)).cloned().collect();
        let model = self.model(settings, &mut told).await;
        let mut rules = settings.rules.clone();
        precedence::add_flags(&mut rules, args, place)?;
        let mut plan = (!args.is_bare()).then(|| Plan::new(place, settings));
        if let Some(plan) = &mut plan {
            rules.allow.extend(precedence::rules(&plan.prepare(), place)?);
        }
        if let Some(copy) = &self.copy {
            rules.hold_in_copy(&copy.at, &copy.of);
        }
        let (learning, why) = precedence::learning(args, place, settings, plan.as_ref());
        told.extend(why);
        let max_tokens = precedence::max_tokens(settings)?;
        let agents = if args.is_bare() {
            None
        } else {
            agents::registry(place, settings, &judged.trust, args.agents.as_deref()).ok()
        };
        // A session that is an agent of a type tries as hard as its definition says.
        let own = args.agent_type.as_ref().and_then(|kind| agents.as_ref()?.find(kind)?.effort);
        let mut last = self.last();
        last.told = warnings;
        let mode = precedence::mode_of(settings);
        let changed = std::mem::replace(&mut last.mode, mode) != mode;
        let shape = Shape::of(&last.chosen, args, max_tokens)?;
        let directories = settings.directories.iter().cloned().chain(precedence::added(args, place)).collect();
        let knowledge = plan.map(|plan| Recollection {
            directory: plan.directory.clone(),
            recalling: plan.recalling,
            selector: last.chosen.selector(settings, &self.ledger),
            excludes: plan.sources.excludes,
            indexes: plan.sources.indexes,
        });
        Ok(Reloaded {
            files,
            rules,
            mode: changed.then(|| Said { what: mode, managed: settings.is_managed(&keys::MODE) }),
            bypass: settings.bypass,
            directories,
            environment: engine::agent::environment(settings),
            messages: settings.messages.unwrap_or_default(),
            labelled: engine::label::every(settings.label_seconds),
            agents,
            hooks: shape.hooks(&settings.hooks),
            signals: settings.signals.clone(),
            layers: shape.layers(settings, place),
            sandbox: Said { what: settings.sandbox.clone(), managed: settings.is_managed(&keys::SANDBOX) },
            config: place.home.path().to_owned(),
            budget: settings.budget,
            dreams: dreaming::rhythm(settings),
            dream_model: dreaming::model(settings, &last.chosen),
            excluded: settings.extract.excluded(&place.ground()).ok(),
            learning,
            max_tokens,
            effort: own.or_else(|| precedence::effort(args, settings)),
            ttl: settings.cache_ttl.unwrap_or_default(),
            model,
            small: last.chosen.small(settings),
            knowledge,
            told,
        })
    }

    /// The model to talk to, where the settings now say another. One that cannot be had is not taken.
    async fn model(&self, settings: &Settings, told: &mut Vec<String>) -> Option<(Arc<dyn provider::Model>, String)> {
        let said = model_said(settings);
        if std::mem::replace(&mut self.last().model, said.clone()) == said {
            return None;
        }
        match model::choose(self.args.model.as_deref(), self.known_model.as_deref(), settings).await {
            Ok(chosen) => {
                let model = (chosen.model.clone(), chosen.name.clone());
                self.last().chosen = chosen;
                Some(model)
            }
            Err(error) => {
                told.push(format!("the model stays as it is: {error:#}"));
                None
            }
        }
    }
}

fn model_said(settings: &Settings) -> String {
    let Settings { model, providers, small_model, own_environment, .. } = settings;
    format!("{model:?} {providers:?} {small_model:?} {own_environment:?}")
}
