//! What can be seen of a dream while it runs: where it is, what it says and does, what it has touched.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use transcript::Usage;

/// Of so many rounds is kept what was said.
pub const ROUNDS: usize = 30;

/// Where a dream is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DreamPhase {
    /// It looks around.
    #[default]
    Starting,
    /// It has written something.
    Updating,
    /// It came to its end.
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

/// What a dream used and did, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DreamFigures {
    /// What its requests used.
    pub usage: Usage,
    /// How many memories were made or changed.
    pub saved: usize,
    /// How many of them are shared with the team.
    pub saved_team: usize,
    /// How many were removed.
    pub removed: usize,
    /// How many calls were refused.
    pub denied: u32,
    /// How many of them would have written.
    pub denied_writes: u32,
    /// How long it took.
    pub took: Duration,
}

/// A dream as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DreamProgress {
    /// Where it is.
    pub phase: DreamPhase,
    /// How many replies came.
    pub rounds: u32,
    /// What the last of them said, the newest last.
    pub said: VecDeque<String>,
    /// How often each tool was called.
    pub tools: BTreeMap<String, u32>,
    /// What was called last: the tool, and what it was about.
    pub doing: Option<(String, String)>,
    /// Why it waits: a request that failed is made again.
    pub waits: Option<String>,
    /// The memories it has changed or removed.
    pub touched: Vec<String>,
    /// What it has come to, once it is over.
    pub figures: Option<DreamFigures>,
}

impl DreamProgress {
    /// A reply came.
    pub(super) fn replied(&mut self, text: String, calls: Vec<(String, String)>) {
        self.rounds += 1;
        self.waits = None;
        for call in calls {
            *self.tools.entry(call.0.clone()).or_default() += 1;
            self.doing = Some(call);
        }
        if !text.trim().is_empty() {
            self.said.push_back(text);
        }
        while self.said.len() > ROUNDS {
            self.said.pop_front();
        }
    }

    /// Whether it is under way.
    pub fn is_under_way(&self) -> bool {
        matches!(self.phase, DreamPhase::Starting | DreamPhase::Updating)
    }

    /// How far it is, in a line: the rounds, how often each tool ran, what it has touched.
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

    /// What it has touched by now.
    pub(super) fn touches(&mut self, touched: Vec<String>) {
        if !touched.is_empty() && self.phase == DreamPhase::Starting {
            self.phase = DreamPhase::Updating;
        }
        self.touched = touched;
    }
}

/// What a dream did to how many files, in words.
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
        assert_eq!((progress.phase, progress.rounds, progress.said.len()), (DreamPhase::Updating, 40, ROUNDS));
        assert_eq!((progress.said[0].as_str(), progress.tools["Read"]), ("round 10", 40));
        assert_eq!(progress.line(), "round 40, Read 40, a.md touched");
        assert_eq!(improved(3), "Improved 3 memory files");
    }
}
