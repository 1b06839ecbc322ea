//! How many tokens: estimates before a request, figures after it.
//!
//! The provider tells what a request was, so only what came since has to be estimated, and the error is small. Two
//! estimators: the **rough** one everybody uses (4 bytes a token, 2 for JSON), and the **fitted** one, which starts from
//! what real sessions show and moves towards what this session's figures say. Real tool output is denser than prose:
//! the rough one counts it 28 % too low, and a count too low is how a window overflows.

use serde::{Deserialize, Serialize};

use crate::block::Block;
use crate::line::Writer;
use crate::message::{Prologue, Usage};
use crate::size::Size;

/// A picture or document, flat.
pub const MEDIA_TOKENS: f64 = 2_000.0;

/// Bytes a token in tool results; over 17,000 request pairs of recorded sessions.
const RESULT_BYTES: f64 = 3.0;
/// Bytes a token in all other text; from the same pairs.
const TEXT_BYTES: f64 = 3.3;
/// Tokens a tool call costs; from the same pairs.
const CALL_TOKENS: f64 = 141.0;
/// The fitted ratio stays within these bytes a token.
const BYTES_BOUNDS: (f64, f64) = (2.0, 6.0);
/// How many tokens of evidence it takes to move half-way from the start to what this session shows.
const PRIOR_TOKENS: f64 = 8_000.0;

/// Which estimator decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimator {
    /// Starts from recorded sessions and fits itself to this one.
    #[default]
    Fitted,
    /// 4 bytes a token, 2 for JSON.
    Rough,
}

/// The rough estimate of one block: 4 bytes a token for text, 2 for JSON, 2,000 for a picture or document.
pub fn rough(block: &Block) -> u64 {
    let size = block.size();
    let json_result =
        size.result_bytes > 0 && serde_json::from_str::<serde::de::IgnoredAny>(&block.result_text()).is_ok();
    let result_divisor = if json_result { 2.0 } else { 4.0 };
    let tokens = size.text_bytes as f64 / 4.0
        + size.result_bytes as f64 / result_divisor
        + size.call_bytes as f64 / 2.0
        + size.media as f64 * MEDIA_TOKENS;
    tokens.ceil() as u64
}

/// The running count of a conversation. It compares what is visible now with what was when the provider last counted it,
/// so whatever was said, freed or brought back since is counted by what it changed, and an undo counts the other way.
#[derive(Debug, Clone)]
pub struct Tally {
    estimator: Estimator,
    /// What is visible now.
    visible: Size,
    /// What the newest reply with usage reported: all it read, the prologue included.
    context: Option<u64>,
    /// What was visible then, the reply included.
    counted: Size,
    /// Who wrote the newest line. Another program's figures count a prologue that is not ours.
    writer: Option<Writer>,
    /// What that reply will cost when it is read again.
    reply: u64,
    /// Whether the newest reply has told its usage.
    told: bool,
    /// Whether something else than growing has happened since.
    disturbed: bool,
    /// What the prologue has grown by since.
    prologue_grew: i64,
    /// Tokens of the prologue, by estimate, until a figure contains it.
    prologue: u64,
    /// Evidence: what was predicted for the stretches between replies, and what they turned out to be.
    predicted: f64,
    actual: f64,
    /// The stretch before the newest reply, for the evidence.
    stretch: Option<Stretch>,
}

/// What came between two replies.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// What the first had read and written.
    before: u64,
    /// What was said then.
    said: Size,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            estimator: Estimator::default(),
            visible: Size::default(),
            context: None,
            counted: Size::default(),
            writer: None,
            reply: 0,
            told: true,
            disturbed: false,
            prologue_grew: 0,
            prologue: 0,
            predicted: PRIOR_TOKENS,
            actual: PRIOR_TOKENS,
            stretch: None,
        }
    }
}

impl Tally {
    /// The count of the whole conversation: what the newest reply reported, plus estimates of what came since, less what
    /// was freed since.
    pub fn count(&self) -> u64 {
        let base = self.context.map_or(self.prologue, |context| context + self.reply);
        let since = self.estimate_change(self.counted, self.visible).ceil() as i64;
        base.saturating_add_signed(since + self.prologue_grew)
    }

    /// The estimate of so much text.
    pub fn estimate(&self, size: Size) -> u64 {
        self.estimate_change(Size::default(), size).ceil() as u64
    }

    /// The estimate of what one is more than the other, which may be less.
    fn estimate_change(&self, before: Size, after: Size) -> f64 {
        let more = |of: fn(&Size) -> usize| of(&after) as f64 - of(&before) as f64;
        let (text, result) = (more(|size| size.text_bytes), more(|size| size.result_bytes));
        let (input, calls) = (more(|size| size.call_bytes), more(|size| size.calls));
        let media = more(|size| size.media) * MEDIA_TOKENS;
        match self.estimator {
            Estimator::Rough => (text + result) / 4.0 + input / 2.0 + media,
            Estimator::Fitted => {
                let ratio = self.actual / self.predicted;
                text / per_token(TEXT_BYTES, ratio)
                    + result / per_token(RESULT_BYTES, ratio)
                    + call_tokens(input, calls) * ratio.clamp(0.5, 1.5)
                    + media
            }
        }
    }

    /// How much is visible, for estimates.
    pub fn visible(&self) -> Size {
        self.visible
    }

    /// Chooses the estimator.
    pub fn use_estimator(&mut self, estimator: Estimator) {
        self.estimator = estimator;
    }

    /// The estimate of what stands before the messages.
    pub fn of_prologue(&self, prologue: &Prologue) -> u64 {
        let system: Size = prologue.system.iter().map(Block::size).sum();
        let tools: usize = prologue
            .tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len())
            .sum();
        self.estimate(system) + (tools as f64 / TEXT_BYTES) as u64
    }

    pub(crate) fn prologue(&mut self, prologue: &Prologue) {
        let tokens = self.of_prologue(prologue);
        if self.context.is_some() {
            // The figure contains the old one.
            self.prologue_grew += tokens.cast_signed() - self.prologue.cast_signed();
            self.disturbed = true;
        }
        self.prologue = tokens;
    }

    /// The next line is by this program. What another one's requests weighed says nothing about its own.
    pub(crate) fn written_by(&mut self, writer: Writer) {
        if self.writer.replace(writer).is_some_and(|before| before != writer) {
            self.forget();
        }
    }

    /// What was reported counts no more; all that is visible is estimated.
    pub(crate) fn forget(&mut self) {
        (self.context, self.reply, self.stretch) = (None, 0, None);
        (self.counted, self.prologue_grew) = (Size::default(), 0);
    }

    /// A part of the view shows more or less than it did.
    pub(crate) fn shows(&mut self, before: Size, after: Size) {
        self.visible -= before;
        self.visible += after;
    }

    /// A commit changes the view: what comes between two replies is not only what was said.
    pub(crate) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// A new reply begins: its usage will tell what the stretch before it was.
    pub(crate) fn replied(&mut self) {
        let mut said = self.visible;
        self.stretch = self.context.filter(|_| !self.disturbed && self.told).map(|context| {
            said -= self.counted;
            Stretch { before: context + self.reply, said }
        });
        self.told = false;
    }

    /// A part of the newest reply, which is visible by now, and the usage as far as it is known. What stands for results
    /// that are yet to come is no part of what the provider counted.
    pub(crate) fn reply(&mut self, added: Size, usage: Option<Usage>, unanswered: Size) {
        let Some(usage) = usage.filter(|usage| usage.context() > 0) else { return };
        if self.told {
            // A further part of the same reply.
            self.reply = usage.output_tokens.max(self.reply + self.estimate(added));
        } else {
            self.told = true;
            self.learn(&usage);
            self.context = Some(usage.context());
            (self.disturbed, self.prologue_grew) = (false, 0);
            self.reply = usage.output_tokens.max(self.estimate(added));
        }
        self.counted = self.visible;
        self.counted -= unanswered;
    }

    /// Compares what was expected of the stretch before this reply with what the provider counted.
    fn learn(&mut self, usage: &Usage) {
        let Some(Stretch { before, said }) = self.stretch.take() else { return };
        let ratio = self.actual / self.predicted;
        let predicted = self.estimate(said) as f64 / ratio;
        let media = said.media as f64 * MEDIA_TOKENS;
        let actual = usage.context() as f64 - before as f64 - media;
        // A stretch that is mostly pictures, shrank, or is beyond all likelihood says nothing about text.
        if predicted > 50.0 && actual > 0.0 && (0.3..3.0).contains(&(actual / predicted)) {
            self.predicted += predicted - media;
            self.actual += actual;
        }
    }
}

/// The flat figure is the mean of real calls; long inputs (a file being written) count by their bytes.
fn call_tokens(bytes: f64, calls: f64) -> f64 {
    let (by_bytes, by_calls) = (bytes / TEXT_BYTES, calls * CALL_TOKENS * 0.5);
    if by_bytes.abs() > by_calls.abs() { by_bytes } else { by_calls }
}

fn per_token(start: f64, ratio: f64) -> f64 {
    (start / ratio).clamp(BYTES_BOUNDS.0, BYTES_BOUNDS.1)
}
