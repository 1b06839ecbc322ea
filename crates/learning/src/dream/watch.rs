//! Watching a dream: its words and calls are reported as they happen, and it is stopped when its lock is another's.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use parking_lot::Mutex;
use provider::Model;
use tokio_util::sync::CancellationToken;
use transcript::block::Kind;
use transcript::{Block, Reply, Request};

use super::progress::DreamProgress;
use super::run::{HeldDreamLock, Listener};
use crate::unattended::UnattendedPolicy;

/// Watcher of a dream: reports its progress, and stops it when the lock is another's.
pub(super) struct DreamWatch {
    pub(super) restricted: Arc<UnattendedPolicy>,
    pub(super) lock: Option<HeldDreamLock>,
    pub(super) progress: Mutex<DreamProgress>,
    pub(super) listener: Listener,
    pub(super) cancel: CancellationToken,
}

impl DreamWatch {
    /// Changes the progress and reports it.
    pub(super) fn tell(&self, change: impl FnOnce(&mut DreamProgress)) {
        let now = self.now(change);
        (self.listener)(&now);
    }

    /// Changes the progress and returns it.
    pub(super) fn now(&self, change: impl FnOnce(&mut DreamProgress)) -> DreamProgress {
        let mut progress = self.progress.lock();
        let tally = self.restricted.saver().tally();
        progress.touches(tally.saved.into_iter().chain(tally.removed).collect());
        change(&mut progress);
        progress.clone()
    }

    fn round_begins(&self) {
        if self.lock.as_ref().is_some_and(|lock| !lock.is_ours()) {
            self.cancel.cancel();
        }
        self.tell(|_| {});
    }

    fn replied(&self, reply: &Reply) {
        let texts: Vec<String> = reply.blocks.iter().filter_map(Block::as_text).collect();
        let call = |block: &Block| match block.kind() {
            Kind::ToolUse { name, .. } => Some((name.to_string(), about(&block.input().unwrap_or_default()))),
            _ => None,
        };
        let calls = reply.blocks.iter().filter_map(call).collect();
        self.tell(|progress| progress.replied(texts.join("\n"), calls));
    }

    /// Number of replies.
    pub(super) fn rounds(&self) -> u32 {
        self.progress.lock().rounds
    }
}

/// Subject of a call.
fn about(input: &serde_json::Value) -> String {
    let keys = ["file_path", "pattern", "path", "words", "session"];
    keys.iter().find_map(|key| input[*key].as_str()).unwrap_or_default().to_owned()
}

/// A model whose replies are watched.
pub(super) struct WatchedModel {
    pub(super) model: Arc<dyn Model>,
    pub(super) watch: Arc<DreamWatch>,
}

impl Model for WatchedModel {
    fn stream(&self, request: Request) -> BoxStream<'static, provider::Event> {
        self.watch.round_begins();
        let watch = self.watch.clone();
        let seen = move |event: &provider::Event| match event {
            provider::Event::Done(reply) => watch.replied(reply),
            provider::Event::Retrying { after, why, .. } => {
                let waits = format!("{why}, again in {} s", after.as_secs_f64().ceil());
                watch.tell(|progress| progress.waits = Some(waits));
            }
            _ => {}
        };
        self.model.stream(request).inspect(seen).boxed()
    }

    fn count_tokens(&self, request: Request) -> BoxFuture<'static, Result<u64, provider::Error>> {
        self.model.count_tokens(request)
    }
}
