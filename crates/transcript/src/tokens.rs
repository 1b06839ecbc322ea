//! Token counts: estimates before a request, figures after it.
//!
//! The provider reports the size of each request, so only what came since has to be estimated, and the error is small.
//! Two estimators: the **rough** one everybody uses (4 bytes per token, 2 for JSON), and the **fitted** one, which
//! starts from averages of real sessions and moves towards this session's figures. Real tool output is denser than
//! prose: the rough estimator counts it 28 % too low, and a count that is too low is how a window overflows.

use serde::{Deserialize, Serialize};

use crate::block::Block;
use crate::line::Writer;
use crate::message::{Prologue, Usage};
use crate::size::Size;

/// Flat count of a picture or document.
pub const MEDIA_TOKENS: f64 = 2_000.0;

/// Bytes per token in tool results; from 17,000 request pairs of recorded sessions.
const RESULT_BYTES: f64 = 3.0;
/// Bytes per token in all other text; from the same pairs.
const TEXT_BYTES: f64 = 3.3;
/// Tokens per tool call; from the same pairs.
const CALL_TOKENS: f64 = 141.0;
/// Bounds of the fitted ratio, in bytes per token.
const BYTES_BOUNDS: (f64, f64) = (2.0, 6.0);
/// Tokens of evidence that move the fit half-way from its start to this session's figures.
const PRIOR_TOKENS: f64 = 8_000.0;

/// Choice of estimator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimator {
    /// Starts from recorded sessions and fits itself to this one.
    #[default]
    Fitted,
    /// 4 bytes per token, 2 for JSON.
    Rough,
}

/// The rough estimate of one block: 4 bytes per token for text, 2 for JSON, 2,000 tokens for a picture or document.
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

/// The running count of a conversation. It compares what is visible now with what was visible when the provider last
/// counted, so everything said, freed or restored since counts by its difference, and an undo counts the other way.
#[derive(Debug, Clone)]
pub struct Tally {
    estimator: Estimator,
    /// Size of what is visible now.
    visible: Size,
    /// Input of the newest reply with usage, prologue included.
    context: Option<u64>,
    /// Size of what was visible then, the reply included.
    counted: Size,
    /// Writer of the newest line. Another program's figures include a prologue that is not ours.
    writer: Option<Writer>,
    /// Cost of that reply when it is read again.
    reply: u64,
    /// True once the newest reply has reported its usage.
    is_measured: bool,
    /// True if the view has changed other than by growing since.
    disturbed: bool,
    /// Growth of the prologue since.
    prologue_grew: i64,
    /// Estimated tokens of the prologue, until a reported figure includes it.
    prologue: u64,
    /// Evidence: predicted and actual tokens of the stretches between replies.
    predicted: f64,
    actual: f64,
    /// The stretch before the newest reply, for the evidence.
    stretch: Option<Stretch>,
}

/// The stretch between two replies.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// Input and output of the first.
    before: u64,
    /// Size of what was said in between.
    between: Size,
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
            is_measured: true,
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
    /// The count of the whole conversation: the newest reply's figures, plus estimates of what came since, minus what
    /// was freed since.
    pub fn count(&self) -> u64 {
        let base = self.context.map_or(self.prologue, |context| context + self.reply);
        let since = self.estimate_change(self.counted, self.visible).ceil() as i64;
        base.saturating_add_signed(since + self.prologue_grew)
    }

    /// The estimate for a size.
    pub fn estimate(&self, size: Size) -> u64 {
        self.estimate_change(Size::default(), size).ceil() as u64
    }

    /// The estimate of a difference, which may be negative.
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

    /// Size of what is visible.
    pub fn visible(&self) -> Size {
        self.visible
    }

    /// Sets the estimator.
    pub fn use_estimator(&mut self, estimator: Estimator) {
        self.estimator = estimator;
    }

    /// The estimate of the prologue.
    pub fn of_prologue(&self, prologue: &Prologue) -> u64 {
        let system: Size = prologue.system.iter().map(Block::size).sum();
        let tools: usize = prologue
            .tools
            .iter()
            .chain(&prologue.loaded)
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

    /// Notes the writer of the next line. Another program's figures say nothing about our requests.
    pub(crate) fn written_by(&mut self, writer: Writer) {
        if self.writer.replace(writer).is_some_and(|before| before != writer) {
            self.forget();
        }
    }

    /// Drops the reported figures, so that everything visible is estimated.
    pub(crate) fn forget(&mut self) {
        (self.context, self.reply, self.stretch) = (None, 0, None);
        (self.counted, self.prologue_grew) = (Size::default(), 0);
    }

    /// Notes that a part of the view changed its size.
    pub(crate) fn shows(&mut self, before: Size, after: Size) {
        self.visible -= before;
        self.visible += after;
    }

    /// Notes that a commit changed the view, so that the next stretch is not only what was said.
    pub(crate) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// Begins a new reply: its usage will tell the size of the stretch before it.
    pub(crate) fn replied(&mut self) {
        let mut said = self.visible;
        self.stretch = self.context.filter(|_| !self.disturbed && self.is_measured).map(|context| {
            said -= self.counted;
            Stretch { before: context + self.reply, between: said }
        });
        self.is_measured = false;
    }

    /// Notes a part of the newest reply, which is already visible, and the usage as far as it is known. Placeholders
    /// for results that have yet to come are no part of the provider's count.
    pub(crate) fn reply(&mut self, added: Size, usage: Option<Usage>, unanswered: Size) {
        let Some(usage) = usage.filter(|usage| usage.context() > 0) else { return };
        if self.is_measured {
            // A further part of the same reply.
            self.reply = usage.output_tokens.max(self.reply + self.estimate(added));
        } else {
            self.is_measured = true;
            self.learn(&usage);
            self.context = Some(usage.context());
            (self.disturbed, self.prologue_grew) = (false, 0);
            self.reply = usage.output_tokens.max(self.estimate(added));
        }
        self.counted = self.visible;
        self.counted -= unanswered;
    }

    /// Compares the prediction for the stretch before this reply with the provider's count.
    fn learn(&mut self, usage: &Usage) {
        let Some(Stretch { before, between: said }) = self.stretch.take() else { return };
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

/// Tokens of tool calls. The flat figure is the mean of real calls; long inputs (a file being written) count by their
/// bytes.
fn call_tokens(bytes: f64, calls: f64) -> f64 {
    let (by_bytes, by_calls) = (bytes / TEXT_BYTES, calls * CALL_TOKENS * 0.5);
    if by_bytes.abs() > by_calls.abs() { by_bytes } else { by_calls }
}

fn per_token(start: f64, ratio: f64) -> f64 {
    (start / ratio).clamp(BYTES_BOUNDS.0, BYTES_BOUNDS.1)
}
