//! Policies: what is kept of a conversation, and when it goes.

use context::list::LIST;
use context::{Layer, Layers};
use transcript::window::{AutoCompact, Window, WindowHints};

use super::clearing_rules::{AgeRule, MaskRule, ProviderRule};

/// A way to keep a conversation, or the way it was kept.
#[derive(Debug, Clone)]
pub enum PricePolicy {
    /// As it was: the usage lines of the record at list prices.
    Recorded,
    /// Nothing is ever cleared or compacted.
    Everything,
    /// The layers of this program.
    Ours(Box<Layers>),
    /// The same without one of them, by its name.
    OursWithout(Box<Layers>, &'static str),
    /// Results older than so many rounds are cleared in batches.
    Age(AgeRule),
    /// Results of all but the newest rounds are masked at every step.
    Mask(MaskRule),
    /// The provider clears by itself.
    Provider(ProviderRule),
}

/// Names of the policies that can be asked for, with what each is.
pub const POLICIES: [(&str, &str); 7] = [
    ("recorded", "as recorded: its own usage at list prices"),
    ("everything", "nothing is ever cleared or compacted"),
    ("ours", "the layers of this program"),
    ("age", "results older than five rounds go, in batches of 20,000 tokens"),
    ("reads", "what was read stays for twenty rounds, other results for five; batches of 15,000 tokens"),
    ("mask", "all results but those of the last ten rounds are masked at every step"),
    ("provider", "the provider clears old results by itself"),
];

/// Rounds for which the plain rules keep a result.
const RULE_ROUNDS: usize = 5;
/// Rounds for which the second of them keeps what was read.
const RULE_READ_ROUNDS: usize = 20;
/// Rounds whose results are not masked.
const MASK_ROUNDS: usize = 10;
/// Tokens that the plain rules clear at a time.
const RULE_TOKENS: u64 = 20_000;
const RULE_READ_TOKENS: u64 = 15_000;

impl PricePolicy {
    /// The policy of a name; the layers are for ours, and their window for the provider's.
    pub fn named(name: &str, layers: &Layers) -> Option<Self> {
        let age = |read_rounds, least_tokens| Self::Age(AgeRule { rounds: RULE_ROUNDS, read_rounds, least_tokens });
        Some(match name {
            "recorded" => Self::Recorded,
            "everything" => Self::Everything,
            "ours" => Self::Ours(Box::new(layers.clone())),
            "age" => age(RULE_ROUNDS, RULE_TOKENS),
            "reads" => age(RULE_READ_ROUNDS, RULE_READ_TOKENS),
            "mask" => Self::Mask(MaskRule { rounds: MASK_ROUNDS }),
            "provider" => Self::Provider(ProviderRule::of(layers)),
            _ => return None,
        })
    }

    /// The layers under it. Policies without any of ours have no window either.
    pub(super) fn layers(&self) -> Layers {
        match self {
            Self::Ours(layers) | Self::OursWithout(layers, _) => (**layers).clone(),
            _ => Layers { auto_compact: AutoCompact::Off, ..Layers::none(Window::of(&WindowHints::default())) },
        }
    }

    /// The layers that act under it, in their order.
    pub(super) fn list(&self) -> Vec<&dyn Layer> {
        match self {
            Self::Recorded | Self::Everything => Vec::new(),
            Self::Ours(_) => LIST.to_vec(),
            Self::OursWithout(_, name) => LIST.iter().filter(|layer| layer.name() != *name).copied().collect(),
            Self::Age(rule) => vec![rule],
            Self::Mask(rule) => vec![rule],
            Self::Provider(rule) => vec![rule],
        }
    }

    /// The window that a conversation is kept in, where it is kept in one.
    pub(super) fn window(&self) -> Option<Window> {
        match self {
            Self::Ours(layers) | Self::OursWithout(layers, _) => Some(layers.window),
            _ => None,
        }
    }

    /// True if it depends on the lifetime of the provider's cache.
    pub(super) fn minds_lifetime(&self) -> bool {
        matches!(self, Self::Ours(_) | Self::OursWithout(..))
    }
}
