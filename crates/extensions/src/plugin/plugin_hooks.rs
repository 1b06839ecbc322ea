//! The hooks of plugins, as the settings' own are defined.

use std::collections::BTreeMap;
use std::path::Path;

use settings::hook_definitions::{Hook, Kind, in_text};
use settings::{SettingsSource, ValueOrigin};

use super::{Plugin, PluginOrigin};
use crate::trouble::ExtensionTrouble;

impl Plugin {
    /// Its hooks, for a session in this directory, and problems with the others.
    pub fn hooks(&self, directory: &Path) -> (Vec<Hook>, Vec<ExtensionTrouble>) {
        let (mut hooks, mut troubles) = (Vec::new(), Vec::new());
        let source = match self.origin {
            PluginOrigin::EnabledByProject => SettingsSource::Project,
            PluginOrigin::Installed | PluginOrigin::Setting | PluginOrigin::Flag => SettingsSource::User,
        };
        for of_file in &self.hook_files {
            let origin = ValueOrigin { source, file: Some(of_file.file.clone()), line: 1, column: 1 };
            let (found, told) = in_text(&of_file.events, &origin, directory);
            hooks.extend(found.into_iter().map(|hook| self.at_home(hook)));
            troubles.extend(told.into_iter().map(|what| ExtensionTrouble::warning(&of_file.file, 1, what)));
        }
        (hooks, troubles)
    }

    /// A hook that finds the plugin's folders: in variables, and filled in where no shell does that.
    fn at_home(&self, hook: Hook) -> Hook {
        let shown = |path: &Path| path.display().to_string();
        let (root, data) = (shown(&self.folders.root), shown(&self.folders.data));
        let kind = match hook.kind {
            // In a shell the variables do it; within single quotes only a path that a shell does not take apart can be put in.
            Kind::Command { command, args: None } if is_plain(&root) && is_plain(&data) => {
                Kind::Command { command: self.fill(&command), args: None }
            }
            Kind::Command { command, args: Some(args) } => {
                let args = args.iter().map(|word| self.fill(word)).collect();
                Kind::Command { command: self.fill(&command), args: Some(args) }
            }
            kind => kind,
        };
        let variables = self.folders.variables().map(|(name, folder)| (name.to_owned(), folder));
        let variables = BTreeMap::from(variables);
        Hook { kind, variables, ..hook }
    }

    /// True if one of its texts speaks of the folder for what it keeps.
    pub fn keeps_data(&self) -> bool {
        let texts = self.hook_files.iter().map(|hooks| hooks.events.to_string());
        texts.chain(self.servers.iter().map(|of| of.servers.to_string())).any(|text| text.contains("PLUGIN_DATA"))
    }
}

/// True if a shell reads a path as one word, as it is.
fn is_plain(path: &str) -> bool {
    path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '@' | '+' | ','))
}
