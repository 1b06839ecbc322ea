//! Learning: the agent extracts memories after its turns and at its end; dreams tidy them in the background.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use context::Fact;
use context::cache_economics::Rates;
use learning::dream::dream_log::DreamFinish;
use learning::dream::session_dreams::SessionDreams;
use learning::extract::{CLOSING, Extraction, KIND, LearningSource, Occasion, SavedSince, learnt};
use learning::knowledge::{AttachedText, Knowledge};
use learning::ledger;
use memory::Store;
use session::{Error, LineMeta};
use settings::Learning;
use tokio_util::sync::CancellationToken;
use transcript::{Injected, Purpose, Usage};

use super::Agent;
use crate::event::Event;

/// Ledger name for costs that belong to an earlier session.
const EARLIER: &str = "extract-earlier";

impl Agent {
    /// Enables learning. Repairs first what a killed run left half done.
    #[must_use]
    pub fn with_learning(mut self, learning: Learning) -> Self {
        if let Some(memory) = self.known.knowledge.as_ref().and_then(Knowledge::memory_directory)
            && let Ok(store) = Store::open(memory, learning.indexing)
        {
            let _ = learning.home.changes(memory).settle(&store); // what stays so is tried again at the next start
        }
        // What was saved when the session was left, nobody has told the model of yet.
        let untold = learnt(self.driver.live.session.log(), SavedSince::UserMessage);
        self.learnt = untold.into_iter().flat_map(|(_, paths)| paths).collect();
        self.extraction = Some(Extraction::new(learning));
        self
    }

    /// Settings of learning, if it is enabled.
    pub fn learning(&self) -> Option<&Learning> {
        self.extraction.as_ref().map(Extraction::learning)
    }

    /// Changes the settings of learning, or turns it off.
    pub fn set_learning(&mut self, learning: Option<Learning>) {
        match (&mut self.extraction, learning) {
            (Some(extraction), Some(learning)) => extraction.set_learning(learning),
            (_, learning) => self.extraction = learning.map(Extraction::new),
        }
    }

    /// Returns whether an extraction is running.
    pub fn is_learning(&self) -> bool {
        self.extraction.as_ref().is_some_and(Extraction::is_busy)
    }

    /// Starts an extraction over the new part of the conversation.
    pub(super) fn learn(&mut self, occasion: Occasion) -> Result<(), Error> {
        self.take_in_learnt()?;
        let memory = self.known.knowledge.as_ref().and_then(Knowledge::memory_directory).map(Path::to_owned);
        let (Some(extraction), Some(memory)) = (&mut self.extraction, memory) else { return Ok(()) };
        if let Some(note) = extraction.begins(&self.driver.live.session) {
            self.driver.live.session.note(&note)?;
        }
        let driver = &self.driver;
        let listener = driver.live.out.listener.clone();
        let conversation = LearningSource {
            session: &driver.live.session,
            parent: &|| driver.live.fork_request(driver.live.session.log().view().len()),
            model: &driver.live.talk.model,
            name: &driver.live.talk.name,
            tools: &driver.live.work.tools,
            scope: &driver.live.scope,
            rules: &driver.gate.consent.policy.rules,
            ledger: &driver.live.out.ledger,
            rates: Rates::of(driver.live.talk.layers.price, driver.live.talk.ttl),
            ttl: driver.live.talk.ttl,
            memory: &memory,
            heard: Arc::new(move |outcome| listener(Event::Extracted(Box::new(outcome.clone())))),
        };
        extraction.learn(&conversation, occasion);
        Ok(())
    }

    /// Finishes learning at the session's end: extracts from the rest, and waits up to a minute for running work,
    /// dreams included; `stop` ends the wait.
    pub async fn finish_learning(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let end = tokio::time::Instant::now() + CLOSING;
        self.learn(Occasion::End)?;
        if let Some(extraction) = &mut self.extraction {
            extraction.wait(CLOSING, stop).await;
        }
        self.take_in_learnt()?;
        self.finish_dreams(end.saturating_duration_since(tokio::time::Instant::now()), stop).await
    }

    /// Returns whether there is anything to extract or to wait for before the session ends.
    pub fn has_to_learn(&self) -> bool {
        self.is_dreaming()
            || self.extraction.as_ref().is_some_and(|extraction| extraction.has_left(&self.driver.live.session))
    }

    /// Writes the results of finished extractions to the log.
    pub fn take_in_learnt(&mut self) -> Result<(), Error> {
        let Some(extraction) = &self.extraction else { return Ok(()) };
        let (ended, notes) = extraction.take_ended();
        for note in notes {
            self.driver.live.session.note(&note)?;
        }
        for outcome in ended {
            let own = outcome.session == self.driver.live.session.id();
            if outcome.usage != Usage::default() {
                let agent = if own { KIND } else { EARLIER }.to_owned();
                let (model, usage) = (outcome.model.clone(), outcome.usage);
                self.driver.live.record(Fact::Side { agent, model, usage })?;
            }
            if !outcome.tally.saved.is_empty() || !outcome.tally.removed.is_empty() {
                if let Some(knowledge) = &self.known.knowledge {
                    knowledge.memories_changed();
                }
                self.learnt.extend(outcome.tally.saved);
            }
        }
        Ok(())
    }

    /// Memories saved since the user's last message, so that the model knows what "forget that" means.
    pub(super) fn what_was_learnt(&mut self) -> Option<AttachedText> {
        let saved = std::mem::take(&mut self.learnt);
        let directory = self.known.knowledge.as_ref().and_then(Knowledge::memory_directory)?;
        (!saved.is_empty()).then(|| {
            let text = format!(
                "Since the last message these memories were saved in the background, in {}: {}. There is \
                 no need to mention it. If the user wants one forgotten, read its file and write it empty.",
                directory.display(),
                memory::quoting::quoted(&saved.join(", "))
            );
            AttachedText { text: Injected::new(Purpose::Learnt, &text), meta: LineMeta::default() }
        })
    }

    /// Enables dreams alongside the session.
    #[must_use]
    pub fn with_dreams(mut self, dreaming: SessionDreams) -> Self {
        self.dreaming = Some(dreaming);
        self
    }

    /// The dreams of this session, if enabled.
    pub fn dreams(&mut self) -> Option<&mut SessionDreams> {
        self.dreaming.as_mut()
    }

    /// Returns whether a dream is running.
    pub fn is_dreaming(&self) -> bool {
        self.dreaming.as_ref().is_some_and(SessionDreams::is_running)
    }

    /// Records finished dreams after a turn, and starts one if it is time.
    pub(super) async fn dream(&mut self) -> Result<(), Error> {
        self.take_in_dreams().await?;
        if let Some(dreaming) = &mut self.dreaming {
            dreaming.turn_ended();
        }
        Ok(())
    }

    /// Writes the results of finished dreams to the log.
    pub async fn take_in_dreams(&mut self) -> Result<(), Error> {
        let Some(dreaming) = &mut self.dreaming else { return Ok(()) };
        let ended = dreaming.take_ended().await;
        self.dreamt(ended)
    }

    /// Waits at the session's end for a running dream, up to `patience`; `stop` ends it.
    pub async fn finish_dreams(&mut self, patience: Duration, stop: &CancellationToken) -> Result<(), Error> {
        let Some(dreaming) = &mut self.dreaming else { return Ok(()) };
        let ended = dreaming.wait(patience, stop).await;
        self.dreamt(ended)
    }

    fn dreamt(&mut self, ended: Vec<DreamFinish>) -> Result<(), Error> {
        let model = self.dreaming.as_ref().map(|dreaming| dreaming.model().to_owned()).unwrap_or_default();
        for over in ended {
            let agent = ledger::DREAM.to_owned();
            self.driver.live.record(Fact::Side { agent, model: model.clone(), usage: over.usage })?;
        }
        Ok(())
    }
}
