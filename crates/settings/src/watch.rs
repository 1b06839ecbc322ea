//! Notices changed settings files. Cheap: nothing is opened.

use std::path::{Path, PathBuf};

use files::Glance;

use super::source::{Files, Flag};

/// The files, as of the last look.
#[derive(Debug)]
pub struct SettingsWatch {
    files: Files,
    more: Vec<PathBuf>,
    seen: Vec<(PathBuf, Option<Glance>)>,
}

impl SettingsWatch {
    /// Takes a first look at the files, and at others that matter. Call it before they are read.
    pub fn new(files: Files, more: Vec<PathBuf>) -> Self {
        let mut watch = Self { files, more, seen: Vec::new() };
        watch.seen = watch.look();
        watch
    }

    /// The name that hooks get for the source of a file; none for a file that is no settings file.
    pub fn hook_source(&self, path: &Path) -> Option<&'static str> {
        let Files { user, project, local, flag, .. } = &self.files;
        let is_flag = matches!(flag, Some(Flag::File(file)) if file == path);
        match path {
            path if path == user => Some("user_settings"),
            path if path == project => Some("project_settings"),
            path if path == local => Some("local_settings"),
            _ if is_flag => Some("flag_settings"),
            path if self.more.iter().any(|more| more == path) => None,
            _ => Some("policy_settings"),
        }
    }

    /// The files that were changed, created or removed since the last look.
    pub fn changed(&mut self) -> Vec<PathBuf> {
        let now = self.look();
        let was = |path: &PathBuf| self.seen.iter().find(|(seen, _)| seen == path).and_then(|(_, glance)| *glance);
        let mut changed: Vec<PathBuf> =
            now.iter().filter(|(path, glance)| was(path) != *glance).map(|(path, _)| path.clone()).collect();
        let gone =
            self.seen.iter().filter(|(path, glance)| glance.is_some() && !now.iter().any(|(now, _)| now == path));
        changed.extend(gone.map(|(path, _)| path.clone()));
        self.seen = now;
        changed
    }

    fn look(&self) -> Vec<(PathBuf, Option<Glance>)> {
        let look = |path: PathBuf| {
            let glance = files::glance(&path);
            (path, glance)
        };
        self.files.all().into_iter().chain(self.more.iter().cloned()).map(look).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::SettingsSource;
    use super::*;
    use crate::values::tests::Stage;
    use serde_json::json;

    /// CONF-2: a file that changes, comes or goes is noticed once.
    #[test]
    fn a_change_is_noticed_once() {
        let mut stage = Stage::new();
        stage.put(SettingsSource::User, &json!({"notes": true}));
        let more = stage.path("more");
        let mut watch = SettingsWatch::new(stage.files(), vec![more.clone()]);
        assert!(watch.changed().is_empty());
        stage.put(SettingsSource::User, &json!({"notes": null}));
        assert_eq!(watch.changed(), [stage.path("config/settings.json")], "of the same length");
        assert!(watch.changed().is_empty());
        let managed = stage.path("managed/managed-settings.d/1.json");
        for path in [&more, &managed] {
            files::replace(path, b"{}").unwrap();
            assert_eq!(watch.changed(), std::slice::from_ref(path));
            files::remove(path).unwrap();
            assert_eq!(watch.changed(), std::slice::from_ref(path));
        }
        assert!(watch.changed().is_empty());
    }
}
