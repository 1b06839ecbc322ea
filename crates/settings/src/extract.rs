//! What the settings say of learning.

use std::path::PathBuf;

use memory::store::IndexUpkeep;
use session::Home;
use tools::permission::{BadRule, Rules};

use super::{keys, rules};
use crate::effective_values::{BasePaths, EffectiveValues};

/// What the settings say of learning; none where they say nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extract {
    /// `extract`.
    pub on: Option<bool>,
    /// `extractEvery`.
    pub every: Option<u64>,
    /// `extractShare`.
    pub share: Option<u64>,
    /// `extractHeadless`.
    pub headless: Option<bool>,
    /// `extractExcludes`.
    pub excludes: Vec<String>,
    /// `extractGate`.
    pub gate: Option<bool>,
}

impl Extract {
    pub(super) fn of(sets: &EffectiveValues<'_>) -> Self {
        Self {
            on: sets.one(&keys::EXTRACT),
            every: sets.one(&keys::EXTRACT_EVERY),
            share: sets.one(&keys::EXTRACT_SHARE),
            headless: sets.one(&keys::EXTRACT_HEADLESS),
            excludes: sets.texts(&keys::EXTRACT_EXCLUDES),
            gate: sets.one(&keys::EXTRACT_GATE),
        }
    }

    /// What nothing is learnt from, as rules for Read that deny.
    pub fn excluded(&self, ground: &BasePaths<'_>) -> Result<Rules, BadRule> {
        let excluded: Vec<String> = self.excludes.iter().map(|pattern| format!("Read({pattern})")).collect();
        Ok(Rules { deny: rules(&excluded, ground)?, ..Rules::default() })
    }

    /// How a session learns; none where it does not. A pattern that cannot be understood is an error: what was meant to be
    /// left out must not be learnt from.
    pub fn learning(&self, home: &Home, ground: &BasePaths<'_>) -> Result<Option<Learning>, BadRule> {
        let usual = Learning::new(home.clone());
        let learning = Learning {
            every: self.every.map_or(usual.every, |every| u32::try_from(every.max(1)).unwrap_or(u32::MAX)),
            share: match self.share {
                None => usual.share,
                Some(percent) => (percent > 0).then_some(percent as f64 / 100.0),
            },
            excluded: self.excluded(ground)?,
            gate: if self.gate == Some(true) { ExtractGate::Signals } else { ExtractGate::Open },
            ..usual
        };
        Ok((self.on != Some(false)).then_some(learning))
    }
}

/// Learning may have this share of what a session costs, what is learnt before it ends aside. With 15 % `./bench month` pays half as
/// much again and learns no sooner; with 5 % a tenth of what is said waits for the next session.
pub const SHARE: f64 = 0.08;

/// How a session learns.
#[derive(Debug, Clone, PartialEq)]
pub struct Learning {
    /// The config home.
    pub home: Home,
    /// Runs after every so many turns.
    pub every: u32,
    /// The share of the session's cost it may have; none is no limit.
    pub share: Option<f64>,
    /// Files and directories that nothing is learnt from: rules for Read that deny.
    pub excluded: Rules,
    /// Whether turns without any sign of something to remember are passed over before a model is paid.
    pub gate: ExtractGate,
    /// The directory that is shared, if memories may go there.
    pub team: Option<PathBuf>,
    /// Whether the index is kept.
    pub indexing: IndexUpkeep,
}

/// Whether turns without any sign of something to remember are passed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExtractGate {
    /// Every turn is looked at.
    #[default]
    Open,
    /// Those that say nothing to remember are passed over.
    Signals,
}

impl Learning {
    /// After every turn, within the usual share.
    pub fn new(home: Home) -> Self {
        Self {
            home,
            every: 1,
            share: Some(SHARE),
            excluded: Rules::default(),
            gate: ExtractGate::Open,
            team: None,
            indexing: IndexUpkeep::Kept,
        }
    }
}
