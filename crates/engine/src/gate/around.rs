//! What hooks are told of that nobody decides: files and directories that change, people who are waited for.

use std::path::{Path, PathBuf};

use memory::instructions::Loaded;
use session::Error;
use settings::hooks::{Matcher, Moment};
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::hooks::Happening;

impl Driver {
    /// A person is waited for. Nobody waits for these hooks.
    pub(crate) fn notify(&self, message: &str, kind: &str) {
        if !self.parts.hooks.any(Moment::Notification) {
            return;
        }
        let happening = Happening::notification(message, kind);
        let (hooks, ground) = (self.parts.hooks.clone(), self.ground_for(&happening));
        hooks.clone().beside(async move { hooks.run(&happening, &ground, &hooks.session_ends()).await });
    }

    /// Instruction files were loaded.
    pub(crate) async fn loaded(
        &mut self,
        files: &[Loaded],
        trigger: Option<&Path>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        if !self.parts.hooks.any(Moment::InstructionsLoaded) {
            return Ok(());
        }
        for file in files {
            self.hooked(&Happening::instructions_loaded(file, trigger), cancel).await?;
        }
        Ok(())
    }

    /// A command has moved the working directory.
    pub(crate) async fn moved(&mut self, old: &Path, cancel: &CancellationToken) -> Result<(), Error> {
        let new = self.scope.directory();
        if new != old && self.parts.hooks.any(Moment::CwdChanged) {
            self.prepare_variables();
            let answers = self.hooked(&Happening::cwd_changed(old, &new), cancel).await?;
            self.gate.aside.extend(answers.context());
        }
        Ok(())
    }

    /// Looks whether files have changed that hooks want to know of.
    pub(crate) async fn look_at_files(&mut self, cancel: &CancellationToken) -> Result<(), Error> {
        if !self.parts.hooks.any(Moment::FileChanged) {
            return Ok(());
        }
        let now: Vec<_> = self.watched().into_iter().map(|path| (files::glance(&path), path)).collect();
        let before = std::mem::take(&mut self.gate.watched);
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
        self.gate.watched = now.into_iter().map(|(glance, path)| (path, glance)).collect();
        for (path, event) in changed {
            self.prepare_variables();
            let answers = self.hooked(&Happening::file_changed(&path, event), cancel).await?;
            self.attach_words(answers.context())?;
        }
        Ok(())
    }

    /// The files that hooks want to know of: those their matchers name in the working directory, and those they asked for.
    fn watched(&self) -> Vec<PathBuf> {
        let directory = self.scope.directory();
        let hooks = self.parts.hooks.list().iter().filter(|hook| hook.moment == Moment::FileChanged);
        let named = hooks.flat_map(|hook| match &hook.matcher {
            Matcher::Names(names) => names.clone(),
            // A name with a dot in it is no pattern here.
            Matcher::Pattern(_) | Matcher::Broken => {
                hook.matcher_text.split('|').map(|name| name.trim().to_owned()).collect()
            }
            Matcher::All => Vec::new(),
        });
        let mut files: Vec<PathBuf> = named.map(|name| directory.join(name)).collect();
        files.extend(self.gate.asked_for.iter().cloned());
        files.sort();
        files.dedup();
        files
    }

    /// Makes the place where commands of hooks may leave variables.
    pub(crate) fn prepare_variables(&self) {
        let _ = files::create_directory(self.session.folder()); // without it there are none
    }

    /// Gives commands the variables that hooks have left: every shell reads them first.
    pub(crate) fn take_variables(&mut self) {
        let leaves = |moment| self.parts.hooks.any(moment);
        if ![Moment::SessionStart, Moment::CwdChanged, Moment::FileChanged].into_iter().any(leaves) {
            return;
        }
        let file = self.ground().variables;
        if files::stamp(&file).is_err() || self.parts.environment.given.contains_key(VARIABLES) {
            return;
        }
        let mut environment = self.parts.environment.clone();
        environment.given.insert(VARIABLES.to_owned(), file.display().to_string());
        self.scope = self.scope.clone().with_environment(environment);
    }
}

/// The variable that names what a shell reads first.
const VARIABLES: &str = "BASH_ENV";
