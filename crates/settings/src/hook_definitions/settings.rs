//! The hooks of the settings: those that run, and warnings about them.

use std::sync::Arc;

use crate::effective_values::{BasePaths, EffectiveValues};
use crate::hook_definitions::Hook;
use crate::keys::{self, SettingKey};
use crate::rules::places;
use crate::{SettingsFinding, SettingsSource, Weight};

/// The sources whose hooks run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HooksOf {
    /// All, as far as they are trusted.
    #[default]
    All,
    /// Only an organisation's.
    Managed,
    /// None.
    Nobody,
}

impl HooksOf {
    pub(crate) fn of(counting: &EffectiveValues<'_>) -> Self {
        let says = |key: &SettingKey| counting.of(key).find(|set| set.value == true).map(|set| set.origin.source);
        match (says(&keys::NO_HOOKS), says(&keys::MANAGED_HOOKS)) {
            (Some(SettingsSource::Managed), _) => Self::Nobody,
            (None, None) => Self::All,
            _ => Self::Managed,
        }
    }

    /// True if the hooks of a source run.
    pub fn lets_run(self, source: SettingsSource) -> bool {
        match self {
            Self::All => true,
            Self::Managed => source == SettingsSource::Managed,
            Self::Nobody => false,
        }
    }
}

/// The hooks that run, and their limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookSettings {
    /// Those that run, in the order of the settings.
    pub list: Vec<Arc<Hook>>,
    /// URLs that http hooks may post to; any if none is given.
    pub urls: Option<Vec<String>>,
    /// Variables that headers may contain, among those a hook names; all if none is given.
    pub variables: Option<Vec<String>>,
    /// The sources whose hooks run.
    pub whose: HooksOf,
}

/// The hooks that run, and warnings about them.
pub(crate) fn hooks_of(
    whose: HooksOf,
    counting: &EffectiveValues<'_>,
    base_paths: &BasePaths<'_>,
    findings: &mut Vec<SettingsFinding>,
) -> HookSettings {
    let mut list = Vec::new();
    for set in counting.sets.iter().filter(|set| set.key.name.starts_with("hooks.")) {
        let Some((hook, told)) = Hook::of(set, &places(&set.origin, base_paths)) else { continue };
        let told = told.into_iter().map(|text| format!("a {} hook: {text}", hook.hook_event.name()));
        findings.extend(told.map(|text| SettingsFinding::at(&set.origin, Weight::Warning, set.key.name, text)));
        if whose.lets_run(hook.origin.source) {
            list.push(Arc::new(hook));
        }
    }
    let listed = |key: &SettingKey| Some(counting.texts(key)).filter(|texts| !texts.is_empty());
    HookSettings { list, urls: listed(&keys::HTTP_HOOKS), variables: listed(&keys::HTTP_VARIABLES), whose }
}
