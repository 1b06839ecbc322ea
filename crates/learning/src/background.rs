//! Background work of a session: one set of it, each kind once at a time.
//!
//! Nothing waits for it, except where somebody asks to, and then not for long. Every piece has a deadline; a piece that
//! is not done by then is dropped. When the set is dropped, so is the work in it.

use std::future::Future;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio_util::task::AbortOnDropHandle;

/// Work under way, each piece with its result.
#[derive(Debug)]
pub struct Background<T> {
    running: Vec<BackgroundTask<T>>,
}

#[derive(Debug)]
struct BackgroundTask<T> {
    kind: &'static str,
    since: Timestamp,
    deadline: Duration,
    /// None if it was late.
    task: AbortOnDropHandle<Option<T>>,
}

impl<T> BackgroundTask<T> {
    fn is_stuck(&self, now: Timestamp) -> bool {
        now.duration_since(self.since) >= SignedDuration::try_from(self.deadline).unwrap_or(SignedDuration::MAX)
    }
}

impl<T> Default for Background<T> {
    fn default() -> Self {
        Self { running: Vec::new() }
    }
}

impl<T: Send + 'static> Background<T> {
    /// Starts a piece of work, unless one of its kind is under way.
    pub fn start(
        &mut self,
        kind: &'static str,
        deadline: Duration,
        now: Timestamp,
        work: impl Future<Output = T> + Send + 'static,
    ) {
        self.running.retain(|one| one.kind != kind || !one.is_stuck(now));
        if self.is_running(kind) {
            return;
        }
        let bounded = async move { tokio::time::timeout(deadline, work).await.ok() };
        let task = AbortOnDropHandle::new(tokio::spawn(bounded));
        self.running.push(BackgroundTask { kind, since: now, deadline, task });
    }

    /// True if work of a kind is under way.
    pub fn is_running(&self, kind: &str) -> bool {
        self.running.iter().any(|one| one.kind == kind)
    }

    /// Takes the results of finished work.
    pub async fn take_ended(&mut self) -> Vec<T> {
        let mut ended = Vec::new();
        while let Some(at) = self.running.iter().position(|one| one.task.is_finished()) {
            ended.extend(self.running.remove(at).task.await.ok().flatten());
        }
        ended
    }

    /// Waits for a kind, unless it is stuck; work that is not finished by then goes on.
    pub async fn wait_for(&mut self, kind: &str, patience: Duration, now: Timestamp) -> Option<T> {
        let at = self.running.iter().position(|one| one.kind == kind)?;
        if self.running[at].is_stuck(now) {
            self.running.remove(at);
            return None;
        }
        let ended = tokio::time::timeout(patience, &mut self.running[at].task).await.ok()?;
        self.running.remove(at);
        ended.ok().flatten()
    }

    /// Ends all of it after a time limit, and returns the results.
    pub async fn close(&mut self, patience: Duration) -> Vec<T> {
        let end = tokio::time::Instant::now() + patience;
        let mut ended = Vec::new();
        for mut work in self.running.drain(..) {
            let over = tokio::time::timeout_at(end, &mut work.task).await;
            ended.extend(over.ok().and_then(Result::ok).flatten());
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    const MINUTE: Duration = Duration::from_secs(60);

    /// NOTES-3, NOTES-7: each kind runs once at a time; one that is older than its deadline counts as stuck and makes way.
    #[tokio::test]
    async fn each_kind_runs_once_at_a_time() {
        let mut set: Background<u32> = Background::default();
        set.start("notes", MINUTE, at(0), std::future::pending());
        set.start("notes", MINUTE, at(1), async { 2 });
        set.start("extract", MINUTE, at(1), async { 3 });
        assert_eq!(set.wait_for("extract", MINUTE, at(2)).await, Some(3));
        assert!(set.take_ended().await.is_empty() && set.is_running("notes"));
        assert_eq!(set.wait_for("notes", Duration::ZERO, at(3)).await, None, "nobody waits for long");
        set.start("notes", MINUTE, at(61), async { 4 });
        assert_eq!(set.close(MINUTE).await, [4]);
        assert!(!set.is_running("notes"));
    }

    /// NOTES-3: what is not done by its deadline is dropped.
    #[tokio::test]
    async fn what_is_late_is_dropped() {
        let mut set: Background<u32> = Background::default();
        set.start("notes", Duration::from_millis(1), at(0), std::future::pending());
        assert_eq!(set.wait_for("notes", MINUTE, at(0)).await, None);
        assert!(!set.is_running("notes"));
    }
}
