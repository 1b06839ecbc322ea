//! Hook notifications that decide nothing: changed files and directories, waiting for a person.

use std::path::{Path, PathBuf};

use memory::instructions::LoadedInstruction;
use settings::hook_definitions::{HookEvent, Matcher};
use tokio_util::sync::CancellationToken;
use tools::Environment;

use super::{Gate, GateSite};
use crate::hooks::{HookInput, HookMessage};

impl Gate {
    /// Notifies hooks in the background that a person is waited for.
    pub(crate) fn notify(&self, site: &GateSite<'_>, message: &str, kind: &str) {
        if !self.consent.hooks.any(HookEvent::Notification) {
            return;
        }
        let hook_input = HookInput::notification(message, kind);
        let (hooks, context) = (self.consent.hooks.clone(), self.context_for(site, &hook_input));
        hooks.clone().run_in_background(async move { hooks.run(&hook_input, &context, &hooks.session_ends()).await });
    }

    /// Tells hooks that instruction files were loaded.
    pub(crate) async fn loaded(
        &mut self,
        site: &GateSite<'_>,
        files: &[LoadedInstruction],
        trigger: Option<&Path>,
        cancel: &CancellationToken,
    ) {
        if !self.consent.hooks.any(HookEvent::InstructionsLoaded) {
            return;
        }
        for file in files {
            self.hooked(site, &HookInput::instructions_loaded(file, trigger), cancel).await;
        }
    }

    /// Tells hooks that a command has changed the working directory.
    pub(crate) async fn moved(&mut self, site: &GateSite<'_>, old: &Path, cancel: &CancellationToken) {
        let new = site.scope.directory();
        if new != old && self.consent.hooks.any(HookEvent::CwdChanged) {
            site.prepare_variables();
            let answers = self.hooked(site, &HookInput::cwd_changed(old, &new), cancel).await;
            self.aside.extend(answers.context());
        }
    }

    /// Checks watched files for changes. Returns the messages of hooks for the model.
    pub(crate) async fn look_at_files(&mut self, site: &GateSite<'_>, cancel: &CancellationToken) -> Vec<HookMessage> {
        if !self.consent.hooks.any(HookEvent::FileChanged) {
            return Vec::new();
        }
        let now: Vec<_> = self.watched(site).into_iter().map(|path| (files::glance(&path), path)).collect();
        let before = std::mem::take(&mut self.watched);
        let mut changed = Vec::new();
        for (glance, path) in &now {
            let Some((_, was)) = before.iter().find(|(known, _)| known == path) else { continue };
            match (was, glance) {
                (None, Some(_)) => changed.push((path.clone(), "add")),
                (Some(_), None) => changed.push((path.clone(), "unlink")),
                (Some(was), Some(is)) if was != is => changed.push((path.clone(), "change")),
                _ => {}
            }
        }
        self.watched = now.into_iter().map(|(glance, path)| (path, glance)).collect();
        let mut words = Vec::new();
        for (path, event) in changed {
            site.prepare_variables();
            words.extend(self.hooked(site, &HookInput::file_changed(&path, event), cancel).await.context());
        }
        words
    }

    /// The files that hooks watch: those their matchers name in the working directory, and those they asked for.
    fn watched(&self, site: &GateSite<'_>) -> Vec<PathBuf> {
        let directory = site.scope.directory();
        let hooks = self.consent.hooks.list().iter().filter(|hook| hook.hook_event == HookEvent::FileChanged);
        let named = hooks.flat_map(|hook| match &hook.matcher {
            Matcher::Names(names) => names.clone(),
            // A name with a dot in it is no pattern here.
            Matcher::Pattern(_) | Matcher::Broken => {
                hook.matcher_text.split('|').map(|name| name.trim().to_owned()).collect()
            }
            Matcher::All => Vec::new(),
        });
        let mut files: Vec<PathBuf> = named.map(|name| directory.join(name)).collect();
        files.extend(self.asked_for.iter().cloned());
        files.sort();
        files.dedup();
        files
    }

    /// The environment of commands with the variables that hooks have set, if any: every shell reads them first.
    pub(crate) fn environment_with_variables(&self, site: &GateSite<'_>) -> Option<Environment> {
        let leaves = |hook_event| self.consent.hooks.any(hook_event);
        let file = site.variables_file();
        let there = [HookEvent::SessionStart, HookEvent::CwdChanged, HookEvent::FileChanged].into_iter().any(leaves)
            && files::stamp(&file).is_ok()
            && !site.work.environment.given.contains_key(VARIABLES);
        there.then(|| {
            let mut environment = site.work.environment.clone();
            environment.given.insert(VARIABLES.to_owned(), file.display().to_string());
            environment
        })
    }
}

impl GateSite<'_> {
    /// Makes the folder for the file in which hook commands may set variables.
    pub(super) fn prepare_variables(&self) {
        let _ = files::create_directory(self.session.folder()); // without it there are none
    }
}

/// Variable that names the file which a shell reads first.
const VARIABLES: &str = "BASH_ENV";
