//! A run of the user's own: begun with the first change, so that a command that changes nothing leaves nothing.

use super::{Changes, KeptChange, RunHead, Writer};
use crate::error::Error;

/// A run that begins when something is changed.
#[derive(Debug)]
pub struct Recorder {
    changes: Changes,
    id: String,
    head: RunHead,
    writer: Option<Writer>,
}

impl Changes {
    /// A run under a name nobody has yet, which begins with its first change.
    pub fn recorder(&self, id: String, head: RunHead) -> Recorder {
        Recorder { changes: self.clone(), id, head, writer: None }
    }
}

impl Recorder {
    /// Keeps a change that is about to be made.
    pub fn keep(&mut self, change: &KeptChange) -> Result<(), Error> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.changes.begin(&self.id, self.head.clone())?),
        };
        writer.keep(change)
    }

    /// The run is over. Says what it is called, if it changed something.
    pub fn end(&mut self) -> Result<Option<String>, Error> {
        let Some(writer) = self.writer.take() else { return Ok(None) };
        writer.end()?;
        Ok(Some(self.id.clone()))
    }
}
