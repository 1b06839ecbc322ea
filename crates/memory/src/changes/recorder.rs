//! A run of the user's own: started with the first change, so that a command that changes nothing leaves nothing
//! behind.

use super::{Changes, KeptChange, RunHead, Writer};
use crate::error::Error;

/// A run that starts with its first change.
#[derive(Debug)]
pub struct Recorder {
    changes: Changes,
    id: String,
    head: RunHead,
    writer: Option<Writer>,
}

impl Changes {
    /// A run under a new name, which starts with its first change.
    pub fn recorder(&self, id: String, head: RunHead) -> Recorder {
        Recorder { changes: self.clone(), id, head, writer: None }
    }
}

impl Recorder {
    /// Records a change that is about to be made.
    pub fn keep(&mut self, change: &KeptChange) -> Result<(), Error> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.changes.begin(&self.id, self.head.clone())?),
        };
        writer.keep(change)
    }

    /// Completes the run. Returns its name, if it changed something.
    pub fn end(&mut self) -> Result<Option<String>, Error> {
        let Some(writer) = self.writer.take() else { return Ok(None) };
        writer.end()?;
        Ok(Some(self.id.clone()))
    }
}
