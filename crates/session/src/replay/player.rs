//! One session on its way through the layers.

use std::sync::Arc;

use context::layer::{Decision, LayerChange, Need, NeedAnswer};
use context::{Fact, LayerRole, Layers, Occasion, Situation, State, digest, summary_text};
use jiff::Timestamp;
use serde_json::json;
use tools::Tool;
use transcript::commit::Act;
use transcript::line::{Body, Line, TextSource};
use transcript::view::View;
use transcript::window::Window;
use transcript::{Block, Id, Log, Outcome, Usage, tool_names};

use super::recorded::{self, RecordedRound};
use super::replay_observer::{FileReadAgain, ReplayObserver, RequestAnswer, SentRequest};
use super::{LayerDeed, ReplayPlan, ReplayedRound};

/// Made-up text about a cleared result.
const WRITTEN_DOWN: &str = "something was found in it, and is told here in a line of some length\n";

/// The recorded answer to a need.
enum RecordedAnswer {
    Answer(NeedAnswer),
    /// The whole change.
    Change(Box<LayerChange>),
    Nothing,
}

/// The window in which a session is replayed.
pub(super) enum Windows {
    /// That of the layers.
    Given,
    /// Those of the record.
    Recorded,
}

pub(super) struct Player<'a> {
    plan: ReplayPlan<'a>,
    follower: &'a mut dyn ReplayObserver,
    layers: Layers,
    windows: Windows,
    tools: Vec<Arc<dyn Tool>>,
    log: Log,
    state: State,
    /// When the newest line was written.
    time: Timestamp,
    /// The layers' actions since the newest request; none if they were not asked yet.
    walked: Option<Vec<LayerDeed>>,
    occasion: Occasion,
    /// True if the last compaction was the user's: what it brought back is, too.
    is_by_hand: bool,
    newest_reply: Option<Id>,
    /// The usage of the newest reply, where somebody else than the record says it.
    reported: Option<Usage>,
    rounds: Vec<ReplayedRound>,
    differs_from: Option<usize>,
    /// True if the record has the prologue. Another program's session does not have it, but its usage includes it.
    has_prologue: bool,
    names: u64,
}

impl<'a> Player<'a> {
    pub(super) fn new(plan: &ReplayPlan<'a>, windows: Windows, follower: &'a mut dyn ReplayObserver) -> Self {
        let mut log = Log::default();
        log.use_estimator(plan.layers.estimator);
        Self {
            plan: *plan,
            follower,
            layers: plan.layers.clone(),
            windows,
            tools: tools::standard(),
            log,
            state: State::default(),
            time: Timestamp::UNIX_EPOCH,
            walked: None,
            occasion: Occasion::Request,
            is_by_hand: false,
            newest_reply: None,
            reported: None,
            rounds: Vec::new(),
            differs_from: None,
            has_prologue: false,
            names: 0,
        }
    }

    /// Plays all lines of a conversation, in their order.
    pub(super) fn play_all(&mut self, lines: &[Line]) {
        self.has_prologue = lines.iter().any(|line| matches!(line.body, Body::Prologue(_)));
        for at in 0..lines.len() {
            self.play(&lines[at], &lines[at..]);
        }
    }

    /// Every request, and the first round in which the layers did something else than the record says.
    pub(super) fn end(self) -> (Vec<ReplayedRound>, Option<usize>) {
        (self.rounds, self.differs_from)
    }

    fn is_in_step(&self) -> bool {
        self.differs_from.is_none()
    }

    /// Takes the next line; `rest` begins with it.
    fn play(&mut self, line: &Line, rest: &[Line]) {
        match &line.body {
            Body::Commit(commit) if recorded::is_by_layers(commit, self.is_by_hand) => {
                self.is_by_hand = false;
                if self.walked.is_none() {
                    self.time = line.time.unwrap_or(self.time);
                    self.walk(rest);
                }
                return;
            }
            Body::Commit(commit) if matches!(commit.act, Act::Compact { .. }) => self.is_by_hand = true,
            Body::User { source: TextSource::Summary, .. } if !self.is_by_hand => return,
            Body::Meta(_) => return self.learn(line),
            Body::Assistant { id, .. } if self.newest_reply.as_ref() != Some(id) => {
                self.newest_reply = Some(id.clone());
                self.request(id, rest);
            }
            Body::Other => return,
            _ => {}
        }
        let mut body = line.body.clone();
        if let Body::Assistant { usage, .. } = &mut body {
            if let Some(reported) = self.reported {
                *usage = Some(reported);
            } else if !(self.has_prologue && self.is_in_step()) {
                *usage = None; // it counts what was sent then, not what would be sent here
            }
        }
        let is_result_or_said = matches!(body, Body::User { source: TextSource::Direct, .. });
        let provided = match &body {
            Body::Assistant { blocks, .. } => blocks.iter().find_map(Block::compaction),
            _ => None,
        };
        self.append(line.id.clone(), line.time, body, line);
        if is_result_or_said {
            self.walked = None;
        }
        if let Some(summary) = provided {
            (self.occasion, self.walked) = (Occasion::Provided { summary }, None);
        }
    }

    fn learn(&mut self, line: &Line) {
        let Some(fact) = Fact::of(line) else { return };
        let is_of_layers = matches!(
            fact,
            Fact::CompactionMade { .. }
                | Fact::CompactionFailed { .. }
                | Fact::CompactionStopped
                | Fact::Staged { .. }
                | Fact::Summarised { .. }
        );
        match fact {
            Fact::Refused { over, window } if self.is_in_step() => {
                self.layers.window = Window { size: window.0, effective: window.1 };
                (self.occasion, self.walked) = (Occasion::Refused { over }, None);
            }
            Fact::Refused { .. } => return,
            Fact::Window { window } => match self.windows {
                Windows::Recorded => self.layers.window = Window { size: window.0, effective: window.1 },
                Windows::Given => return,
            },
            _ if is_of_layers && !self.is_in_step() => return,
            _ => {}
        }
        self.append(line.id.clone(), line.time, line.body.clone(), line);
    }

    /// A request is sent.
    fn request(&mut self, reply: &Id, rest: &[Line]) {
        self.reported = None;
        loop {
            if self.walked.is_none() {
                self.walk(rest);
            }
            let (round, tokens) = (self.rounds.len() + 1, self.count());
            self.rounds.push(ReplayedRound { round, tokens, commits: self.walked.take().unwrap_or_default() });
            self.occasion = Occasion::Request;
            let (view, layers, time) = (self.log.view(), &self.layers, self.time);
            match self.follower.request(&SentRequest { round, view, tokens, layers, time, reply }) {
                RequestAnswer::AsRecorded => return,
                RequestAnswer::Reported(usage) => {
                    self.reported = Some(usage);
                    return;
                }
                RequestAnswer::ReadAgain { files, usage } => self.read_again(&files, usage),
            }
        }
    }

    /// The model reads files again. From here on it is another session than the recorded one.
    fn read_again(&mut self, files: &[FileReadAgain], usage: Usage) {
        self.differs_from.get_or_insert(self.rounds.len());
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for file in files {
            self.names += 1;
            let id = format!("read-again-{}", self.names);
            calls.push(Block::tool_use(&id, tool_names::READ, &json!({"file_path": file.path})));
            results.push(Block::tool_result(&id, &[Block::text(&file.text)], Outcome::Done));
        }
        let id = Id::from(format!("read-again-{}", self.names));
        self.write(None, Body::Assistant { id, model: String::new(), blocks: calls, usage: Some(usage), stop: None });
        self.write(None, Body::User { blocks: results, source: TextSource::Direct });
        self.walked = None;
    }

    /// Asks each layer in turn.
    fn walk(&mut self, rest: &[Line]) {
        let recorded = RecordedRound::of(rest);
        let before = self.is_in_step();
        let (mut done, mut acted, mut acts) = (self.walked.take().unwrap_or_default(), Vec::new(), Vec::new());
        let occasion = self.occasion.clone();
        for layer in self.plan.list {
            let decision = self.look(&occasion, &acted, |view, now| layer.decide(view, now));
            let change = match decision {
                Decision::Nothing => continue,
                Decision::Commit(change) => Some(change),
                Decision::Need(need) => match self.answer(layer.role(), &need, &recorded) {
                    RecordedAnswer::Answer(answer) => {
                        if let (Need::Write(write), NeedAnswer::Text(text)) = (&need, &answer) {
                            self.follower.written(self.log.view(), self.time, write, text);
                        }
                        self.look(&occasion, &acted, |view, now| layer.answered(view, now, &answer)).ok()
                    }
                    RecordedAnswer::Change(change) => Some(*change),
                    RecordedAnswer::Nothing => None,
                },
            };
            let Some(change) = change else { continue };
            acts.push((change.commit.act.clone(), change.summary.clone()));
            acted.push(layer.role());
            let one = self.put(layer.name(), change, &recorded);
            self.follower.acted(&one);
            done.push(one);
        }
        if before && acts != recorded.acts {
            self.differs_from = Some(self.rounds.len() + 1);
        }
        if !self.is_in_step() && acted.contains(&LayerRole::Compaction) {
            self.judge_compaction();
        }
        self.walked = Some(done);
    }

    fn look<T>(&self, occasion: &Occasion, done: &[LayerRole], look: impl FnOnce(&View, &Situation<'_>) -> T) -> T {
        let situation = Situation {
            occasion,
            now: self.time,
            layers: &self.layers,
            ttl: self.plan.ttl,
            state: &self.state,
            notes: "session-memory/summary.md",
            limit: &|name| tools::limit_of(&self.tools, name),
            done,
        };
        look(self.log.view(), &situation)
    }

    /// The recorded answer to a need, or else filler. A file is as it was then: what came back is taken whole.
    fn answer(&mut self, role: LayerRole, need: &Need, recorded: &RecordedRound) -> RecordedAnswer {
        RecordedAnswer::Answer(match need {
            Need::Keep(spilled) => {
                let usual = |id: &str| Ok(format!("tool-results/{id}.txt"));
                let place = |id: &str| recorded.place_of(id).unwrap_or_else(|| usual(id));
                NeedAnswer::Kept(spilled.iter().map(|one| place(&one.id)).collect())
            }
            Need::Write(write) if role == LayerRole::Clear => match &recorded.digest {
                Some(Some(text)) => NeedAnswer::Text(digest::written(text).unwrap_or(text).to_owned()),
                Some(None) => NeedAnswer::Failed("nothing was written down".to_owned()),
                None => NeedAnswer::Text(WRITTEN_DOWN.repeat(write.directive.lines().count().saturating_sub(2).max(1))),
            },
            Need::Write(_) => match recorded.summary() {
                Some(text) => NeedAnswer::Text(format!("<summary>{}</summary>", summary_text::summary_of(text))),
                None => NeedAnswer::Text(
                    "something was done, and is told here. ".repeat(self.plan.summary_tokens as usize / 12 + 1),
                ),
            },
            Need::Notes => match recorded.notes() {
                Some(text) if self.is_in_step() => NeedAnswer::Text(summary_text::summary_of(text).to_owned()),
                _ => NeedAnswer::Failed("the record has no notes".to_owned()),
            },
            Need::Read { files, most } => match recorded.restore.clone().filter(|_| self.is_in_step()) {
                Some(change) => return RecordedAnswer::Change(Box::new(change)),
                None => NeedAnswer::Files(self.follower.files(&files[..files.len().min(*most)])),
            },
            Need::Update(_) | Need::Stage(_) => return RecordedAnswer::Nothing,
        })
    }

    /// Writes what a layer decided, under the name it has in the record.
    fn put(&mut self, layer: &'static str, change: LayerChange, recorded: &RecordedRound) -> LayerDeed {
        let before = self.count();
        let why = change.commit.reason.why.clone().unwrap_or_default();
        let results = match &change.commit.act {
            Act::Clear { results, .. } => results.iter().map(|call| call.id.clone()).collect(),
            Act::Spill { replacements } => replacements.iter().map(|one| one.call.id.clone()).collect(),
            _ => Vec::new(),
        };
        let id = recorded.name_of(&change.commit.act).filter(|_| self.is_in_step());
        self.write(id, Body::Commit(change.commit));
        if let Some(text) = change.summary {
            self.write(None, Body::User { blocks: vec![Block::text(text)], source: TextSource::Summary });
        }
        LayerDeed { layer, freed: before.saturating_sub(self.count()), why, results }
    }

    /// Decides whether a compaction did enough, if the record does not say.
    fn judge_compaction(&mut self) {
        let (tokens, threshold) = (self.count(), self.layers.threshold());
        let fact = match tokens > threshold {
            true => Fact::CompactionFailed { why: "it did not do enough".to_owned() },
            false => Fact::CompactionMade { tokens },
        };
        if let Ok(raw) = serde_json::value::to_raw_value(&fact) {
            self.write(None, Body::Meta(raw));
        }
    }

    fn count(&self) -> u64 {
        self.log.view().tally().count()
    }

    fn write(&mut self, id: Option<Id>, body: Body) {
        let line = Line::new(Id::from(""), None, self.time, Body::Other);
        self.append(id, Some(self.time), body, &line);
    }

    fn append(&mut self, id: Option<Id>, time: Option<Timestamp>, body: Body, like: &Line) {
        let id = id.unwrap_or_else(|| {
            self.names += 1;
            Id::from(format!("replayed-{}", self.names))
        });
        self.time = time.unwrap_or(self.time);
        let mut line = Line::new(id, self.log.tip().cloned(), self.time, body);
        (line.extra, line.writer) = (like.extra.clone(), like.writer);
        self.state.fold(&line);
        let change = self.log.append(line);
        self.follower.changed(self.log.view(), change);
    }
}
