//! Turns that other sessions left: these sessions are leased one by one, and learnt from until nothing is left.

use std::collections::HashSet;

use session::{Fork, Session, record};
use tokio_util::sync::CancellationToken;
use transcript::Id;

use super::job::Job;
use super::note::Note;
use super::queue::{Queue, SessionLease};
use super::turns::{LoggedTurn, Turns};
use super::work::{KIND, Learner};
use super::{ExtractionShared, RunListener, judged};

/// Number of sessions of the queue that are looked at before the next turn.
const SESSIONS: usize = 8;

impl ExtractionShared {
    /// Learns from turns that other sessions left.
    pub(super) async fn take_from(
        &self,
        queue: &Queue,
        current: &str,
        learner: &Learner,
        heard: &RunListener,
        cancel: &CancellationToken,
    ) {
        let others: Vec<String> = queue.sessions().into_iter().filter(|id| id != current).collect();
        let all = others.len() <= SESSIONS;
        for id in others.into_iter().take(SESSIONS) {
            if cancel.is_cancelled() || learner.ledger.allows(KIND).is_err() {
                return;
            }
            if let Some(lease) = queue.lease(&id) {
                self.learn_from(lease, &id, learner, heard, cancel).await;
            }
        }
        self.state.lock().queue_is_empty = all;
    }

    /// Learns from a session that nobody has open, until nothing is left.
    async fn learn_from(
        &self,
        lease: SessionLease,
        id: &str,
        learner: &Learner,
        heard: &RunListener,
        cancel: &CancellationToken,
    ) {
        let mut known: HashSet<Id> = HashSet::new();
        loop {
            let Some(UnlearntSession { job, is_left }) = left_in(&lease, id, learner, &known).await else {
                return lease.done(); // it is gone, or another program's by now
            };
            let Some(job) = job else {
                if !is_left {
                    lease.done();
                }
                return;
            };
            known.extend(job.ids());
            let Some((job, mut notes)) = judged(learner, job).await else { return };
            let mut failed = false;
            if !job.turns.is_empty() {
                let outcome = learner.run(job, cancel.clone()).await;
                failed = outcome.failed.is_some();
                notes.extend(outcome.note());
                self.state.lock().ended.push(outcome.clone());
                heard(&outcome);
            }
            write_down(&lease, &notes, learner);
            if failed {
                return;
            }
        }
    }
}

/// The rest of a session that is to be learnt from.
struct UnlearntSession {
    job: Option<Job>,
    /// True if there are turns whose runs all failed.
    is_left: bool,
}

/// The next run about a session of the queue; none if it is no session of ours.
async fn left_in(lease: &SessionLease, id: &str, learner: &Learner, known: &HashSet<Id>) -> Option<UnlearntSession> {
    let (file, directory, id) = (lease.session.clone(), lease.directory.clone(), id.to_owned());
    let (others, known, zone) = (lease.notes(), known.clone(), learner.zone.clone());
    let look = move || {
        let log = record::read(&file).ok()?.log;
        let turns = Turns::of(&log);
        if log.is_foreign() || !turns.learns() {
            return None;
        }
        let noted = |turn: &LoggedTurn| {
            others.iter().any(|note| matches!(note, Note::Extracted { turns, .. } if turns.contains(&turn.id)))
        };
        let mut new = turns.waiting(&log);
        new.retain(|turn| !known.contains(&turn.id) && !noted(turn));
        let job = Job::new((&id, &file), &directory, &log, &turns, &new, &zone);
        Some(UnlearntSession { job, is_left: !turns.given_up(&log).is_empty() })
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

/// Writes the outcome into a session's own log; if somebody has opened it meanwhile, beside its entry in the queue. The
/// file keeps its modification time, since nobody worked in it.
fn write_down(lease: &SessionLease, notes: &[Note], learner: &Learner) {
    let modified = files::stamp(&lease.session).ok().and_then(|stamp| stamp.modified);
    let (home, world) = (&learner.home, learner.world.clone());
    let opened = Session::resume_file(home, &lease.directory, &lease.session, Fork::No, world);
    let same = opened.ok().map(|(session, _)| session).filter(|session| session.path() == lease.session);
    let Some(mut session) = same else {
        notes.iter().for_each(|note| drop(lease.leave(note))); // without it the turns are looked at once more
        return;
    };
    let before = lease.notes();
    let mut all = before.iter().chain(notes);
    if all.all(|note| session.note(&note.value()).is_ok()) {
        lease.took_in();
    }
    drop(session);
    if let (Some(modified), Some(folder)) = (modified, lease.session.parent())
        && let Ok(root) = files::Root::open(folder)
    {
        let _ = root.date(lease.session.file_name().unwrap_or_default(), modified); // it then sorts as newer, no more
    }
}
