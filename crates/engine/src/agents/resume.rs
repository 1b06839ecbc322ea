//! Writing to an agent: one that is out hears it at its next round, one that has ended goes on from its transcript.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::FORK;
use super::child::{Begins, Order, Seat, Who};
use super::children::Children;
use super::definition::{Isolation, Runs};
use super::errand::{Badge, Errand};
use super::tool::start;
use crate::session::{CHILD_PREFIX, CHILDREN};

/// The largest of the small files beside a transcript that is read.
const MOST_META: u64 = 100_000;

/// What became of words for an agent.
#[derive(Debug, Clone)]
pub enum Told {
    /// It hears them at its next round.
    Hears(Arc<Errand>),
    /// It had ended, and goes on in the background.
    GoesOn(Arc<Errand>),
}

impl Children {
    /// Says something to an agent of this session, by its name or id. The error lists those there are.
    pub fn write_to(self: &Arc<Self>, to: &str, text: &str) -> Result<Told, String> {
        if let Some(errand) = self.find(to).filter(|errand| errand.is_out()) {
            errand.say(text);
            return Ok(Told::Hears(errand));
        }
        let seat = self.seat().ok_or("No agent can be written to from here.")?;
        let id = self.find(to).map_or_else(|| to.to_owned(), |errand| errand.id.clone());
        let plain = !id.is_empty() && id.chars().all(|one| one.is_ascii_alphanumeric());
        let file = seat.session.with_extension("").join(CHILDREN).join(format!("{CHILD_PREFIX}{id}.jsonl"));
        let meta = files::read(file.with_extension("meta.json"), MOST_META).ok().filter(|_| plain);
        let meta: Value =
            meta.and_then(|meta| serde_json::from_slice(&meta.bytes).ok()).ok_or_else(|| self.nobody(to))?;
        let errand = self.go_on(&seat, id, &file, &meta, text)?;
        Ok(Told::GoesOn(errand))
    }

    fn go_on(
        self: &Arc<Self>,
        seat: &Arc<Seat>,
        id: String,
        file: &Path,
        meta: &Value,
        text: &str,
    ) -> Result<Arc<Errand>, String> {
        let kind = meta["agentType"].as_str().unwrap_or_default().to_owned();
        let who = if kind == FORK { Who::Fork } else { Who::Typed(Box::new(self.named(&kind)?)) };
        let words = |key: &str| meta[key].as_str().map(str::to_owned);
        let badge = Badge {
            id,
            kind,
            name: words("name"),
            description: words("description").unwrap_or_default(),
            call: words("toolUseId"),
            file: file.to_owned(),
        };
        let (prompt, isolation, begins) = (text.to_owned(), Isolation::None, Begins::Again);
        start(self, seat, badge, Order { who, prompt, model: None, isolation, begins }, Runs::Background)
    }

    fn nobody(&self, to: &str) -> String {
        let names: Vec<String> =
            self.list().iter().map(|one| one.name.clone().unwrap_or_else(|| one.id.clone())).collect();
        let there = if names.is_empty() {
            "None was sent out.".to_owned()
        } else {
            format!("There are: {}.", names.join(", "))
        };
        format!("There is no agent {to:?} in this session. {there}")
    }
}
