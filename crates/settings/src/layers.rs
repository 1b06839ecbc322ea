//! What the settings say of the layers.

use std::collections::BTreeMap;

use context::layers::Tail;
use context::{Layers, When};
use transcript::price::Price;
use transcript::tokens::Estimator;
use transcript::window::{AutoCompact, Window};

use super::keys;
use crate::counting::Counting;

/// What the settings say of the layers.
#[derive(Debug, Clone, Default)]
pub struct LayerSettings {
    /// `autoCompact`.
    pub auto_compact: Option<bool>,
    /// `compactWhen`.
    pub when: Option<When>,
    /// `collapse`.
    pub collapse: Option<bool>,
    /// `resultLimits`.
    pub result_limits: BTreeMap<String, usize>,
    /// `messageResultLimit`.
    pub message_limit: Option<u64>,
    /// `snip`.
    pub snip: Option<bool>,
    /// `microcompact`.
    pub clear: Option<bool>,
    /// `digest`.
    pub digest: Option<bool>,
    /// `timeMicrocompact`.
    pub clear_when_idle: Option<bool>,
    /// `microcompactMinutes`.
    pub idle_minutes: Option<u64>,
    /// `microcompactKeep`.
    pub kept_when_idle: Option<u64>,
    /// `notes`.
    pub notes: Option<bool>,
    /// `notesCompact`.
    pub notes_compact: Option<bool>,
    /// `notesAfterTokens`.
    pub notes_first: Option<u64>,
    /// `notesEveryTokens`.
    pub notes_more: Option<u64>,
    /// `notesEveryCalls`.
    pub notes_calls: Option<u64>,
    /// `keepTokens`.
    pub keep_tokens: Option<u64>,
    /// `keepMessages`.
    pub keep_messages: Option<u64>,
    /// `keepMostTokens`.
    pub keep_most: Option<u64>,
    /// `notesShare`.
    pub notes_share: Option<u64>,
    /// `reactive`.
    pub reactive: Option<bool>,
    /// `reactiveOnly`.
    pub reactive_only: Option<bool>,
    /// `restoreFiles`.
    pub restored_files: Option<u64>,
    /// `cacheEdits`.
    pub cache_edits: Option<bool>,
    /// `cacheEditsAfter`.
    pub cache_edits_after: Option<u64>,
    /// `apiContextManagement`.
    pub api_edits: Option<bool>,
    /// `apiCompaction`.
    pub api_compact: Option<bool>,
    /// `apiThinkingTurns`.
    pub api_thinking: Option<u64>,
    /// `tokenEstimate`.
    pub estimator: Option<Estimator>,
    /// `cacheDiagnosis`.
    pub cache_diagnosis: Option<bool>,
}

impl LayerSettings {
    pub(super) fn of(sets: &Counting<'_>) -> Self {
        Self {
            auto_compact: sets.one(&keys::AUTO_COMPACT),
            when: sets.one(&keys::COMPACT_WHEN),
            collapse: sets.one(&keys::COLLAPSE),
            result_limits: sets.entries(&keys::RESULT_LIMITS).into_iter().collect(),
            message_limit: sets.one(&keys::MESSAGE_LIMIT),
            snip: sets.one(&keys::SNIP),
            clear: sets.one(&keys::MICROCOMPACT),
            digest: sets.one(&keys::DIGEST),
            clear_when_idle: sets.one(&keys::TIME_MICROCOMPACT),
            idle_minutes: sets.one(&keys::MICROCOMPACT_MINUTES),
            kept_when_idle: sets.one(&keys::MICROCOMPACT_KEEP),
            notes: sets.one(&keys::NOTES),
            notes_compact: sets.one(&keys::NOTES_COMPACT),
            notes_first: sets.one(&keys::NOTES_FIRST),
            notes_more: sets.one(&keys::NOTES_MORE),
            notes_calls: sets.one(&keys::NOTES_CALLS),
            keep_tokens: sets.one(&keys::KEEP_TOKENS),
            keep_messages: sets.one(&keys::KEEP_MESSAGES),
            keep_most: sets.one(&keys::KEEP_MOST),
            notes_share: sets.one(&keys::NOTES_SHARE),
            reactive: sets.one(&keys::REACTIVE),
            reactive_only: sets.one(&keys::REACTIVE_ONLY),
            restored_files: sets.one(&keys::RESTORE_FILES),
            cache_edits: sets.one(&keys::CACHE_EDITS),
            cache_edits_after: sets.one(&keys::CACHE_EDITS_AFTER),
            api_edits: sets.one(&keys::API_CONTEXT_MANAGEMENT),
            api_compact: sets.one(&keys::API_COMPACTION),
            api_thinking: sets.one(&keys::API_THINKING),
            estimator: sets.one(&keys::TOKEN_ESTIMATE),
            cache_diagnosis: sets.one(&keys::CACHE_DIAGNOSIS),
        }
    }

    /// The layers as they say, in a window, at a price.
    pub fn layers(&self, window: Window, price: Option<Price>) -> Layers {
        let usual = Layers::default();
        Layers {
            window,
            price,
            collapse: self.collapse.unwrap_or(usual.collapse),
            spill_limits: self.result_limits.clone(),
            message_limit: self.message_limit.map_or(usual.message_limit, |most| most as usize),
            snip: self.snip.unwrap_or(usual.snip),
            clear: self.clear.unwrap_or(usual.clear),
            digest: self.digest.unwrap_or(usual.digest),
            clear_when_idle: self.clear_when_idle.unwrap_or(usual.clear_when_idle),
            idle_minutes: self.idle_minutes.unwrap_or(usual.idle_minutes),
            kept_when_idle: self.kept_when_idle.map_or(usual.kept_when_idle, |kept| kept as usize),
            auto_compact: if self.auto_compact == Some(false) { AutoCompact::Off } else { AutoCompact::On },
            when: self.when.unwrap_or(usual.when),
            notes: self.notes.unwrap_or(usual.notes),
            notes_compact: self.notes_compact.unwrap_or(usual.notes_compact),
            notes_first: self.notes_first.unwrap_or(usual.notes_first),
            notes_more: self.notes_more.unwrap_or(usual.notes_more),
            notes_calls: self.notes_calls.unwrap_or(usual.notes_calls),
            tail: Tail {
                tokens: self.keep_tokens.unwrap_or(usual.tail.tokens),
                texts: self.keep_messages.map_or(usual.tail.texts, |texts| texts as usize),
                most: self.keep_most.unwrap_or(usual.tail.most),
            },
            notes_share: match self.notes_share {
                None => usual.notes_share,
                Some(percent) => (percent > 0).then_some(percent as f64 / 100.0),
            },
            reactive: self.reactive.unwrap_or(usual.reactive),
            reactive_only: self.reactive_only.unwrap_or(usual.reactive_only),
            restored_files: self.restored_files.map_or(usual.restored_files, |files| files as usize),
            cache_edits: self.cache_edits.unwrap_or(usual.cache_edits),
            cache_edits_after: self.cache_edits_after.map_or(usual.cache_edits_after, |most| most as usize),
            api_edits: self.api_edits.unwrap_or(usual.api_edits),
            api_compact: self.api_compact.unwrap_or(usual.api_compact),
            api_thinking: self.api_thinking.or(usual.api_thinking),
            estimator: self.estimator.unwrap_or(usual.estimator),
            cache_diagnosis: self.cache_diagnosis.unwrap_or(usual.cache_diagnosis),
            ..usual
        }
    }
}
