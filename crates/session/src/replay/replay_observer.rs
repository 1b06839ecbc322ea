//! The observer of a replay: it sees what changes, and can answer for the provider.

use std::path::PathBuf;

use context::Layers;
use context::layer::WritingTask;
use jiff::Timestamp;
use transcript::view::{View, ViewChange};
use transcript::{Id, Usage};

use super::LayerDeed;

/// Follows a replay. Each method is called as things happen, in their order.
pub trait ReplayObserver {
    /// A line was taken in, and the view changed so.
    fn changed(&mut self, view: &View, change: ViewChange) {
        let _ = (view, change);
    }

    /// A model was asked outside the conversation, and wrote this.
    fn written(&mut self, view: &View, now: Timestamp, write: &WritingTask, text: &str) {
        let _ = (view, now, write, text);
    }

    /// A layer acted before the request that comes next.
    fn acted(&mut self, done: &LayerDeed) {
        let _ = done;
    }

    /// Files are to be shown as they are now: gives those whose text is known.
    fn files(&mut self, paths: &[PathBuf]) -> Vec<(PathBuf, String)> {
        let _ = paths;
        Vec::new()
    }

    /// A request is sent, and the recorded reply follows; or another one before it.
    fn request(&mut self, sent: &SentRequest<'_>) -> RequestAnswer;
}

/// A request, as it is sent.
#[derive(Clone, Copy)]
pub struct SentRequest<'a> {
    /// Its number, from 1.
    pub round: usize,
    /// The view.
    pub view: &'a View,
    /// Its tokens, as the layers count them.
    pub tokens: u64,
    /// The layers.
    pub layers: &'a Layers,
    /// When the newest line before it was written.
    pub time: Timestamp,
    /// The recorded reply to it.
    pub reply: &'a Id,
}

/// The answer to a request.
#[derive(Debug)]
pub enum RequestAnswer {
    /// The reply of the record, with its usage as far as that counts here.
    AsRecorded,
    /// The reply of the record, with this usage.
    Reported(Usage),
    /// The model reads files again before it goes on as recorded.
    ReadAgain {
        /// The files.
        files: Vec<FileReadAgain>,
        /// Usage of this request.
        usage: Usage,
    },
}

/// A file that is read again.
#[derive(Debug, Clone)]
pub struct FileReadAgain {
    /// Its path.
    pub path: String,
    /// The visible text.
    pub text: String,
}
