//! Settings of learning.

use std::path::PathBuf;

use memory::store::IndexUpkeep;
use session::Home;
use tools::permission::{BadRule, Rules};

use super::{keys, rules};
use crate::effective_values::{BasePaths, EffectiveValues};

/// Settings of learning; none where nothing is set.
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

    /// Files that nothing is learnt from, as deny rules for Read.
    pub fn excluded(&self, base_paths: &BasePaths<'_>) -> Result<Rules, BadRule> {
        let excluded: Vec<String> = self.excludes.iter().map(|pattern| format!("Read({pattern})")).collect();
        Ok(Rules { deny: rules(&excluded, base_paths)?, ..Rules::default() })
    }

    /// The configuration of learning; none if it is off. An invalid pattern is an error: files that were meant to be
    /// excluded must not be learnt from.
    pub fn learning(&self, home: &Home, base_paths: &BasePaths<'_>) -> Result<Option<Learning>, BadRule> {
        let usual = Learning::new(home.clone());
        let learning = Learning {
            every: self.every.map_or(usual.every, |every| u32::try_from(every.max(1)).unwrap_or(u32::MAX)),
            share: match self.share {
                None => usual.share,
                Some(percent) => (percent > 0).then_some(percent as f64 / 100.0),
            },
            excluded: self.excluded(base_paths)?,
            filter: if self.gate == Some(true) { ExtractFilter::Signals } else { ExtractFilter::Open },
            ..usual
        };
        Ok((self.on != Some(false)).then_some(learning))
    }
}

/// Default share of a session's cost that learning may have, not counting what is learnt when the session ends. With 15
/// % `./bench month` pays half as much again and learns no sooner; with 5 % a tenth of what is said waits for the next
/// session.
pub const SHARE: f64 = 0.08;

/// Configuration of a session's learning.
#[derive(Debug, Clone, PartialEq)]
pub struct Learning {
    /// The config home.
    pub home: Home,
    /// Number of turns between runs.
    pub every: u32,
    /// The most it may cost, as a share of the session's cost; none is no limit.
    pub share: Option<f64>,
    /// Files and directories that nothing is learnt from, as deny rules for Read.
    pub excluded: Rules,
    /// Filter for turns without a sign of something to remember.
    pub filter: ExtractFilter,
    /// The team's memory directory, if memories may go there.
    pub team: Option<PathBuf>,
    /// Upkeep of the index.
    pub indexing: IndexUpkeep,
}

/// Filter for turns without a sign of something to remember.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExtractFilter {
    /// Every turn is looked at.
    #[default]
    Open,
    /// Such turns are skipped before a model is paid.
    Signals,
}

impl Learning {
    /// Learning after every turn, within the default share.
    pub fn new(home: Home) -> Self {
        Self {
            home,
            every: 1,
            share: Some(SHARE),
            excluded: Rules::default(),
            filter: ExtractFilter::Open,
            team: None,
            indexing: IndexUpkeep::Kept,
        }
    }
}
