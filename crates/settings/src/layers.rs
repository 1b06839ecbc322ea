//! Settings of the layers.

use context::Layers;
use serde::de::DeserializeOwned;
use transcript::window::AutoCompact;

use crate::effective_values::EffectiveValues;
use crate::keys::{self, SettingKey};

/// The configured layers, with window and price still to be set.
pub(crate) fn layers(sets: &EffectiveValues<'_>) -> Layers {
    let mut layers = Layers::default();
    /// Takes the value of a key, if it is set.
    fn take<T: DeserializeOwned>(sets: &EffectiveValues<'_>, key: &SettingKey, to: &mut T) {
        if let Some(said) = sets.one(key) {
            *to = said;
        }
    }
    if sets.one(&keys::AUTO_COMPACT) == Some(false) {
        layers.auto_compact = AutoCompact::Off;
    }
    take(sets, &keys::COMPACT_WHEN, &mut layers.when);
    take(sets, &keys::COLLAPSE, &mut layers.collapse);
    layers.spill_limits = sets.entries(&keys::RESULT_LIMITS).into_iter().collect();
    take(sets, &keys::MESSAGE_LIMIT, &mut layers.message_limit);
    take(sets, &keys::SNIP, &mut layers.snip);
    take(sets, &keys::MICROCOMPACT, &mut layers.clear);
    take(sets, &keys::CLEAR_WHEN, &mut layers.clear_when);
    take(sets, &keys::DIGEST, &mut layers.digest);
    take(sets, &keys::TIME_MICROCOMPACT, &mut layers.clear_when_idle);
    take(sets, &keys::MICROCOMPACT_MINUTES, &mut layers.idle_minutes);
    take(sets, &keys::MICROCOMPACT_KEEP, &mut layers.kept_when_idle);
    take(sets, &keys::NOTES, &mut layers.notes);
    take(sets, &keys::KEEP_INSTRUCTIONS, &mut layers.keep);
    take(sets, &keys::NOTES_COMPACT, &mut layers.notes_compact);
    take(sets, &keys::NOTES_FIRST, &mut layers.notes_first);
    take(sets, &keys::NOTES_MORE, &mut layers.notes_more);
    take(sets, &keys::NOTES_CALLS, &mut layers.notes_calls);
    take(sets, &keys::KEEP_TOKENS, &mut layers.tail.tokens);
    take(sets, &keys::KEEP_MESSAGES, &mut layers.tail.texts);
    take(sets, &keys::KEEP_MOST, &mut layers.tail.most);
    if let Some(percent) = sets.one::<u64>(&keys::NOTES_SHARE) {
        layers.notes_share = (percent > 0).then_some(percent as f64 / 100.0);
    }
    take(sets, &keys::REACTIVE, &mut layers.reactive);
    take(sets, &keys::REACTIVE_ONLY, &mut layers.reactive_only);
    take(sets, &keys::RESTORE_FILES, &mut layers.restored_files);
    take(sets, &keys::CACHE_EDITS, &mut layers.cache_edits);
    take(sets, &keys::CACHE_EDITS_AFTER, &mut layers.cache_edits_after);
    take(sets, &keys::API_CONTEXT_MANAGEMENT, &mut layers.api_edits);
    take(sets, &keys::API_COMPACTION, &mut layers.api_compact);
    layers.api_thinking = sets.one(&keys::API_THINKING).or(layers.api_thinking);
    take(sets, &keys::TOKEN_ESTIMATE, &mut layers.estimator);
    take(sets, &keys::CACHE_DIAGNOSIS, &mut layers.cache_diagnosis);
    layers
}
