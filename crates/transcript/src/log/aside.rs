//! Live lines that the chain of parents does not lead through.
//!
//! **Lines taken back.** After a rewind our next line follows the one before the first that was taken back, so that
//! other programs do not see those either. For us they stay live, behind their commit: undoing it shows them again. We
//! abandon lines in no other way, so each line of ours keeps alive the one that we wrote before it.
//!
//! **The summary before a kept tail.** A compaction that keeps the newest messages writes boundary and summary after
//! them. Claude Code continues from the last kept line, whose parents lead past both: it attaches the kept lines below
//! the summary when it loads the file.

use std::collections::HashMap;

use crate::commit::{Act, Commit, Extent};
use crate::id::Id;
use crate::line::{Body, Line, TextSource, Writer};

/// Marks the lines that lead to a line: its ancestors, and the lines we wrote before.
pub(super) fn mark_chain(lines: &[Line], place: &HashMap<&Id, usize>, live: &mut [bool], from: Option<usize>) {
    let mut open: Vec<usize> = from.into_iter().collect();
    while let Some(here) = open.pop() {
        if std::mem::replace(&mut live[here], true) {
            continue;
        }
        let line = &lines[here];
        open.extend(line.parent.as_ref().and_then(|parent| place.get(parent)));
        if line.writer == Writer::Cairn && line.in_chain() {
            let before = lines[..here].iter().rposition(|line| !line.sidechain && line.in_chain());
            open.extend(before.filter(|&before| lines[before].writer == Writer::Cairn));
        }
    }
}

/// Marks the summaries of compactions whose kept lines are live.
pub(super) fn mark_summaries(lines: &[Line], place: &HashMap<&Id, usize>, live: &mut [bool]) {
    // A line through which the chain leads when what was kept is live.
    let kept = |line: &Line| match &line.body {
        Body::Commit(Commit { act: Act::Compact { extent, .. }, .. }) => match extent {
            Extent::Before(through) | Extent::Span { last: through, .. } => place.get(through).copied(),
            Extent::Everything => None,
        },
        _ => None,
    };
    for (here, line) in lines.iter().enumerate() {
        if let Body::User { source: TextSource::Summary, .. } = &line.body
            && let Some(&boundary) = line.parent.as_ref().and_then(|parent| place.get(parent))
            && kept(&lines[boundary]).is_some_and(|kept| live[kept])
        {
            live[here] = true;
        }
    }
}
