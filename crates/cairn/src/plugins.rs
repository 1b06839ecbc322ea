//! The plugins of a session: those that the user installed and the settings enable, and folders that settings or flags name.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use extensions::ExtensionTrouble;
use extensions::plugin::installed::{self, EnabledPlugin};
use extensions::plugin::{Plugin, PluginOrigin, PluginPlace, PluginStyle};
use settings::agent_definitions::PluginAgent;
use settings::servers::PluginServers;
use settings::{Settings, Weight};

use crate::program_paths::ProgramPaths;

/// The plugins of a session, and what is wrong with others.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadedPlugins {
    /// Each name once.
    pub(crate) list: Vec<Plugin>,
    /// Problems with those that are left out, and with their hooks.
    pub(crate) troubles: Vec<ExtensionTrouble>,
}

impl LoadedPlugins {
    /// Reads the plugins that settings and flags name. Of several with one name the flag's counts before the settings' folders,
    /// and these before installed ones.
    pub(crate) fn read(place: &ProgramPaths, settings: &Settings) -> Self {
        let enabled = settings.enabled_plugins.iter().map(|(id, source)| {
            let by_project = source.is_below_project();
            let origin = if by_project { PluginOrigin::EnabledByProject } else { PluginOrigin::Installed };
            EnabledPlugin { id: id.clone(), origin }
        });
        let enabled: Vec<EnabledPlugin> = enabled.collect();
        let (installed, mut troubles) = installed::places(place.home.path(), &place.directory, &enabled);
        let named = |folders: &[PathBuf], origin| {
            let of = move |folder: &PathBuf| PluginPlace::named(&place.directory.join(folder), origin);
            folders.iter().map(of).collect::<Vec<_>>()
        };
        let of_flags = named(&place.plugin_folders, PluginOrigin::Flag);
        let of_settings = named(&settings.plugin_directories, PluginOrigin::Setting);
        let in_skills = if place.sources.user { installed::in_skills(place.home.path()) } else { Vec::new() };
        let data = place.home.path().join("plugins/data");
        let (mut list, mut names) = (Vec::new(), BTreeSet::new());
        for found in of_flags.into_iter().chain(of_settings).chain(installed).chain(in_skills) {
            match Plugin::load(&found, &data) {
                Ok(plugin) if names.insert(plugin.name.clone()) => list.push(plugin),
                Ok(plugin) => {
                    let what = format!("there is another plugin named {}; this one is left out", plugin.name);
                    troubles.push(ExtensionTrouble::warning(&plugin.folders.root, 1, what));
                }
                Err(trouble) => troubles.push(trouble),
            }
        }
        Self { list, troubles }
    }

    /// Adds their hooks to those of the settings, as far as these let them run.
    pub(crate) fn add_hooks(&mut self, settings: &mut Settings, place: &ProgramPaths) {
        for plugin in &self.list {
            let (hooks, troubles) = plugin.hooks(&place.directory);
            self.troubles.extend(troubles);
            let whose = settings.hooks.whose;
            let hooks = hooks.into_iter().filter(|hook| whose.lets_run(hook.origin.source));
            settings.hooks.list.extend(hooks.map(Arc::new));
        }
    }

    /// Their agents.
    pub(crate) fn agents(&self) -> Vec<PluginAgent> {
        self.list.iter().flat_map(|plugin| plugin.agents.iter().cloned()).collect()
    }

    /// Their servers.
    pub(crate) fn servers(&self) -> Vec<PluginServers> {
        self.list.iter().flat_map(|plugin| plugin.servers.iter().cloned()).collect()
    }

    /// The output style of a name.
    pub(crate) fn style(&self, name: &str) -> Option<&PluginStyle> {
        self.list.iter().flat_map(|plugin| &plugin.styles).find(|style| style.name.eq_ignore_ascii_case(name))
    }

    /// Makes the folders in which those that need it keep their own. Says where that failed.
    pub(crate) fn make_data_folders(&self) -> Vec<String> {
        let kept = self.list.iter().filter(|plugin| plugin.keeps_data());
        kept.filter_map(|plugin| files::create_directory(&plugin.folders.data).err())
            .map(|error| error.to_string())
            .collect()
    }

    /// Warnings when a session starts: the plugins that are left out.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let told = self.troubles.iter().filter(|trouble| trouble.weight == Weight::Error);
        told.map(ToString::to_string).collect()
    }
}
