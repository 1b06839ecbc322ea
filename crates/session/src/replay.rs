//! Replay: a recorded session, played through the layers without a model.
//!
//! What was said is said again, in its order and at its times; the same layers decide as in a live session; what the
//! model would have seen is checked at every round. What a layer needs is taken from the record: summaries, notes, what
//! was written down, where results went. Where the record has none, filler of a stated size stands for it.
//!
//! As long as the layers decide what the record says they decided, its usage figures and facts count, so that a session
//! played with the settings it had gives the commits it has. From the first difference on they tell of another session,
//! and are left out.

mod check;
mod recorded;

use context::layer::{Answer, Change, Decision, Need};
use context::list::LIST;
use context::{Fact, LayerRole, Layers, Occasion, Situation, State, digest, framing};
use jiff::Timestamp;
use serde::Serialize;
use transcript::commit::Act;
use transcript::line::{Body, Line, Source};
use transcript::mark::Ttl;
use transcript::view::Change as ViewChange;
use transcript::window::{AutoCompact, Window};
use transcript::{Block, Id, Log};

use check::Checked;
use recorded::Round as RecordedRound;

/// A summary that is made up has so many tokens, unless told otherwise.
pub const SUMMARY_TOKENS: u64 = 1_500;
/// What is made up of a result that is cleared, in words.
const WRITTEN_DOWN: &str = "something was found in it, and is told here in a line of some length\n";

/// One request that would have been sent.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Which, from 1.
    pub round: usize,
    /// The view's tokens.
    pub tokens: u64,
    /// What the layers did before it.
    pub commits: Vec<Done>,
}

/// What a layer did.
#[derive(Debug, Clone, Serialize)]
pub struct Done {
    /// Which layer.
    pub layer: &'static str,
    /// Tokens that left the view.
    pub freed: u64,
    /// Why.
    pub why: String,
    /// The calls whose results it took, where it took results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<String>,
}

/// A session, played again.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// Every request.
    pub rounds: Vec<Round>,
    /// What should never happen, and did.
    pub broken: Vec<String>,
    /// The first round in which the layers did something else than the record says; none if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs_from: Option<usize>,
}

/// Plays lines through the layers, in the windows that the record says they were worked in.
pub fn replay_as_recorded(lines: Vec<Line>, layers: &Layers, summary_tokens: u64) -> Replayed {
    play(lines, Player { windows: Windows::Recorded, ..Player::new(layers, summary_tokens) })
}

/// Plays lines through the layers.
pub fn replay(lines: Vec<Line>, layers: &Layers, summary_tokens: u64) -> Replayed {
    play(lines, Player::new(layers, summary_tokens))
}

fn play(lines: Vec<Line>, mut player: Player) -> Replayed {
    let mut live: Vec<Line> = Vec::new();
    Log::load_watching(lines, |_, line| live.push(line.clone()));
    player.has_prologue = live.iter().any(|line| matches!(line.body, Body::Prologue(_)));
    for at in 0..live.len() {
        player.play(&live[at], &live[at..]);
    }
    Replayed { rounds: player.rounds, broken: player.checked.broken, differs_from: player.differs_from }
}

/// What the record says to a need.
enum Said {
    Answer(Answer),
    /// What came of it, whole.
    Change(Box<Change>),
    Nothing,
}

/// Which window a session is played in.
enum Windows {
    /// That of the layers.
    Given,
    /// Those of the record.
    Recorded,
}

struct Player {
    layers: Layers,
    windows: Windows,
    summary_tokens: u64,
    log: Log,
    state: State,
    /// When the newest line was written.
    time: Timestamp,
    /// What the layers did since the newest request; none if they were not asked yet.
    walked: Option<Vec<Done>>,
    occasion: Occasion,
    /// Whether the compaction that was last written was the user's: what it brought back is, too.
    is_by_hand: bool,
    newest_reply: Option<Id>,
    checked: Checked,
    rounds: Vec<Round>,
    differs_from: Option<usize>,
    /// Whether the record has what stood before the messages. Of another program's session that is not known, and its
    /// usage counts it.
    has_prologue: bool,
    names: u64,
}

impl Player {
    fn new(layers: &Layers, summary_tokens: u64) -> Self {
        let mut log = Log::default();
        log.use_estimator(layers.estimator);
        Self {
            layers: layers.clone(),
            windows: Windows::Given,
            summary_tokens,
            log,
            state: State::default(),
            time: Timestamp::UNIX_EPOCH,
            walked: None,
            occasion: Occasion::Request,
            is_by_hand: false,
            newest_reply: None,
            checked: Checked::default(),
            rounds: Vec::new(),
            differs_from: None,
            has_prologue: false,
            names: 0,
        }
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
            Body::User { source: Source::Summary, .. } if !self.is_by_hand => return,
            Body::Meta(_) => return self.learn(line),
            Body::Assistant { id, .. } if self.newest_reply.as_ref() != Some(id) => {
                self.newest_reply = Some(id.clone());
                self.request(rest);
            }
            Body::Other => return,
            _ => {}
        }
        let mut body = line.body.clone();
        if let Body::Assistant { usage, .. } = &mut body
            && !(self.has_prologue && self.is_in_step())
        {
            *usage = None; // it counts what was sent then, not what would be sent here
        }
        let is_result_or_said = matches!(body, Body::User { source: Source::Said, .. });
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
    fn request(&mut self, rest: &[Line]) {
        if self.walked.is_none() {
            self.walk(rest);
        }
        let (round, tokens, limit) = (self.rounds.len() + 1, self.count(), self.layers.window.effective);
        if tokens > limit && self.layers.auto_compact == AutoCompact::On && !self.layers.reactive_only {
            self.checked.broken.push(format!("round {round}: {tokens} tokens are more than the window's {limit}"));
        }
        self.checked.request(round, self.log.view());
        self.rounds.push(Round { round, tokens, commits: self.walked.take().unwrap_or_default() });
        self.occasion = Occasion::Request;
    }

    /// Asks each layer in turn.
    fn walk(&mut self, rest: &[Line]) {
        let recorded = RecordedRound::of(rest);
        let before = self.is_in_step();
        let (mut done, mut acted, mut acts) = (self.walked.take().unwrap_or_default(), Vec::new(), Vec::new());
        let occasion = self.occasion.clone();
        for layer in LIST {
            let decision = self.look(&occasion, &acted, |view, now| layer.decide(view, now));
            let change = match decision {
                Decision::Nothing => continue,
                Decision::Commit(change) => Some(change),
                Decision::Need(need) => match self.answer(layer.role(), &need, &recorded) {
                    Said::Answer(answer) => {
                        self.look(&occasion, &acted, |view, now| layer.answered(view, now, &answer)).ok()
                    }
                    Said::Change(change) => Some(*change),
                    Said::Nothing => None,
                },
            };
            let Some(change) = change else { continue };
            acts.push((change.commit.act.clone(), change.summary.clone()));
            acted.push(layer.role());
            done.push(self.put(layer.name(), change, &recorded));
        }
        if before && acts != recorded.acts {
            self.differs_from = Some(self.rounds.len() + 1);
        }
        if !self.is_in_step() && acted.contains(&LayerRole::Compaction) {
            self.judge_compaction();
        }
        self.walked = Some(done);
    }

    fn look<T>(
        &self,
        occasion: &Occasion,
        done: &[LayerRole],
        look: impl FnOnce(&transcript::view::View, &Situation<'_>) -> T,
    ) -> T {
        let tools = tools::standard();
        let situation = Situation {
            occasion,
            now: self.time,
            layers: &self.layers,
            ttl: Ttl::default(),
            state: &self.state,
            notes: "session-memory/summary.md",
            limit: &|name| tools::limit_of(&tools, name),
            done,
        };
        look(self.log.view(), &situation)
    }

    /// What the record says to a need, or else filler. A file is as it was then: what came back is taken whole.
    fn answer(&self, role: LayerRole, need: &Need, recorded: &RecordedRound) -> Said {
        Said::Answer(match need {
            Need::Keep(spilled) => {
                let usual = |id: &str| Ok(format!("tool-results/{id}.txt"));
                let place = |id: &str| recorded.place_of(id).unwrap_or_else(|| usual(id));
                Answer::Kept(spilled.iter().map(|one| place(&one.id)).collect())
            }
            Need::Write(write) if role == LayerRole::Clear => match &recorded.digest {
                Some(Some(text)) => Answer::Text(digest::written(text).unwrap_or(text).to_owned()),
                Some(None) => Answer::Failed("nothing was written down".to_owned()),
                None => Answer::Text(WRITTEN_DOWN.repeat(write.directive.lines().count().saturating_sub(2).max(1))),
            },
            Need::Write(_) => match recorded.summary() {
                Some(text) => Answer::Text(format!("<summary>{}</summary>", framing::summary_of(text))),
                None => {
                    Answer::Text("something was done, and is told here. ".repeat(self.summary_tokens as usize / 12 + 1))
                }
            },
            Need::Notes => match recorded.notes() {
                Some(text) if self.is_in_step() => Answer::Text(framing::summary_of(text).to_owned()),
                _ => Answer::Failed("the record has no notes".to_owned()),
            },
            Need::Read { .. } => match recorded.restore.clone().filter(|_| self.is_in_step()) {
                Some(change) => return Said::Change(Box::new(change)),
                None => return Said::Nothing,
            },
            Need::Update(_) | Need::Stage(_) => return Said::Nothing,
        })
    }

    /// Writes what a layer decided, under the name it has in the record.
    fn put(&mut self, layer: &'static str, change: Change, recorded: &RecordedRound) -> Done {
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
            self.write(None, Body::User { blocks: vec![Block::text(text)], source: Source::Summary });
        }
        Done { layer, freed: before.saturating_sub(self.count()), why, results }
    }

    /// Whether a compaction did enough, where the record does not say.
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
        match self.log.append(line) {
            ViewChange::Grew => {}
            ViewChange::Prologue => self.checked.changed(0),
            ViewChange::From(item) => self.checked.changed(item),
        }
    }
}
