//! The list of the layers.

use crate::cache_edit::CacheEdit;
use crate::clear::Clear;
use crate::collapse::Collapse;
use crate::compact::Compact;
use crate::compact_by_provider::ProviderSummary;
use crate::compact_from_notes::NotesSummary;
use crate::compact_names_only::NamesOnly;
use crate::keep::Keep;
use crate::layer::Layer;
use crate::layer_settings::Layers;
use crate::notes::Notes;
use crate::restore::Restore;
use crate::snip::Snip;
use crate::spill::Spill;

/// The layers, in the order in which they act.
pub const LIST: &[&dyn Layer] = &[
    &Spill,
    &Snip,
    &Clear,
    &Collapse,
    &ProviderSummary,
    &NotesSummary,
    &Compact,
    &NamesOnly,
    &Restore,
    &Keep,
    &CacheEdit,
    &Notes,
];

/// The layers' names in order, each once: rows of a table.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = LIST.iter().map(|layer| layer.name()).collect();
    names.dedup();
    names
}

/// The names of the layers that are off, in order.
pub fn off(layers: &Layers) -> Vec<&'static str> {
    let is_on = |name: &str| LIST.iter().any(|layer| layer.name() == name && layer.is_on(layers));
    names().into_iter().filter(|name| !is_on(name)).collect()
}
