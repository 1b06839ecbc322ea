//! How hard a model is asked to try, and which models can be asked.

use serde::{Deserialize, Serialize};

/// How hard a model tries before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Quick answers.
    Low,
    /// Between.
    Medium,
    /// As models do by themselves.
    High,
    /// More.
    Xhigh,
    /// As much as it can.
    Max,
}

use Effort::{High, Low, Max, Medium, Xhigh};

/// What models take, by what their name contains; the first that fits counts. Any other refuses to be asked.
const TABLE: [(&str, &[Effort]); 9] = [
    ("opus-4-5", &[Low, Medium, High]),
    ("opus-4-6", &[Low, Medium, High, Max]),
    ("sonnet-4-6", &[Low, Medium, High, Max]),
    ("opus-4-7", &Effort::ALL),
    ("opus-4-8", &Effort::ALL),
    ("opus-5", &Effort::ALL),
    ("sonnet-5", &Effort::ALL),
    ("fable-5", &Effort::ALL),
    ("mythos-5", &Effort::ALL),
];

impl Effort {
    /// All of them, the least first.
    pub const ALL: [Self; 5] = [Low, Medium, High, Xhigh, Max];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Low => "low",
            Medium => "medium",
            High => "high",
            Xhigh => "xhigh",
            Max => "max",
        }
    }

    /// What a model can be asked for: this, or the most below it that it knows; nothing where it cannot be asked at all.
    pub fn of(self, model: &str) -> Option<Self> {
        let (_, known) = TABLE.iter().find(|(part, _)| model.contains(part))?;
        known.iter().copied().filter(|effort| *effort <= self).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AGENT-1: a model is asked for what it knows, and one that knows no effort is not asked.
    #[test]
    fn a_model_is_asked_for_what_it_knows() {
        for (model, wanted, asked) in [
            ("claude-opus-5", Xhigh, Some(Xhigh)),
            ("claude-sonnet-5[1m]", Max, Some(Max)),
            ("claude-sonnet-4-6", Xhigh, Some(High)),
            ("claude-opus-4-6", Max, Some(Max)),
            ("claude-opus-4-5-20251101", Max, Some(High)),
            ("claude-opus-4-5", Low, Some(Low)),
            ("claude-sonnet-4-5", Low, None),
            ("claude-haiku-4-5", High, None),
            ("local", High, None),
        ] {
            assert_eq!(wanted.of(model), asked, "{model} {wanted:?}");
        }
        for effort in Effort::ALL {
            assert_eq!(serde_json::to_value(effort).unwrap(), effort.name());
        }
    }
}
