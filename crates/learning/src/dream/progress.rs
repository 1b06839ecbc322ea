//! Progress of a running dream: its phase, its words and calls, the memories it has touched.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use transcript::Usage;

/// Number of rounds whose text is kept.
pub const ROUNDS: usize = 30;

/// Phase of a dream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DreamPhase {
    /// It is reading.
    #[default]
    Starting,
    /// It has written something.
    Updating,
    /// It finished.
    Completed,
    /// Something went wrong.
    Failed,
    /// Somebody stopped it.
    Killed,
}

impl DreamPhase {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Updating => "updating",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

/// Figures of a dream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DreamFigures {
    /// Usage of its requests.
    pub usage: Usage,
    /// Number of memories created or changed.
    pub saved: usize,
    /// Number of them shared with the team.
    pub saved_team: usize,
    /// Number of memories removed.
    pub removed: usize,
    /// Number of refused calls.
    pub denied: u32,
    /// Number of them that would have written.
    pub denied_writes: u32,
    /// Its duration.
    pub took: Duration,
}

/// A dream as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DreamProgress {
    /// Its phase.
    pub phase: DreamPhase,
    /// Number of replies.
    pub rounds: u32,
    /// Texts of the last replies, the newest last.
    pub texts: VecDeque<String>,
    /// Number of calls by tool.
    pub tools: BTreeMap<String, u32>,
    /// The last call: the tool, and its subject.
    pub doing: Option<(String, String)>,
    /// The reason it waits: a failed request is retried.
    pub waits: Option<String>,
    /// The memories it has changed or removed.
    pub touched: Vec<String>,
    /// Its figures, once it is over.
    pub figures: Option<DreamFigures>,
}

impl DreamProgress {
    /// Records a reply.
    pub(super) fn replied(&mut self, text: String, calls: Vec<(String, String)>) {
        self.rounds += 1;
        self.waits = None;
        for call in calls {
            *self.tools.entry(call.0.clone()).or_default() += 1;
            self.doing = Some(call);
        }
        if !text.trim().is_empty() {
            self.texts.push_back(text);
        }
        while self.texts.len() > ROUNDS {
            self.texts.pop_front();
        }
    }

    /// True if it is under way.
    pub fn is_under_way(&self) -> bool {
        matches!(self.phase, DreamPhase::Starting | DreamPhase::Updating)
    }

    /// Progress in a line: rounds, calls by tool, touched memories.
    pub fn line(&self) -> String {
        let calls = self.tools.iter().map(|(tool, times)| format!("{tool} {times}"));
        let touched = (!self.touched.is_empty()).then(|| format!("{} touched", self.touched.join(", ")));
        let parts: Vec<String> = [format!("round {}", self.rounds)]
            .into_iter()
            .chain(calls)
            .chain(touched)
            .chain(self.waits.clone())
            .collect();
        parts.join(", ")
    }

    /// Records the touched memories.
    pub(super) fn touches(&mut self, touched: Vec<String>) {
        if !touched.is_empty() && self.phase == DreamPhase::Starting {
            self.phase = DreamPhase::Updating;
        }
        self.touched = touched;
    }
}

/// Result of a dream in words, by the number of files.
pub fn improved(files: usize) -> String {
    match files {
        0 => "Nothing had to be improved".to_owned(),
        1 => "Improved 1 memory file".to_owned(),
        files => format!("Improved {files} memory files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DREAM-4: from starting to updating at the first write; the text of the last 30 rounds; how often each tool ran.
    #[test]
    fn progress_goes_from_starting_to_updating_and_keeps_thirty_rounds() {
        let mut progress = DreamProgress::default();
        progress.touches(Vec::new());
        assert_eq!(progress.phase, DreamPhase::Starting);
        for round in 0..40 {
            progress.replied(format!("round {round}"), vec![("Read".into(), "a.md".into())]);
        }
        progress.touches(vec!["a.md".into()]);
        assert_eq!((progress.phase, progress.rounds, progress.texts.len()), (DreamPhase::Updating, 40, ROUNDS));
        assert_eq!((progress.texts[0].as_str(), progress.tools["Read"]), ("round 10", 40));
        assert_eq!(progress.line(), "round 40, Read 40, a.md touched");
        assert_eq!(improved(3), "Improved 3 memory files");
    }
}
