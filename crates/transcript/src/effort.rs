//! Effort levels, and the models that support them.

use serde::{Deserialize, Serialize};

/// Effort a model spends on an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Quick answers.
    Low,
    /// Between low and high.
    Medium,
    /// The default of models.
    High,
    /// More than high.
    Xhigh,
    /// The most it can.
    Max,
}

use Effort::{High, Low, Max, Medium, Xhigh};

/// Levels that models accept, by a part of their name; the first match counts. Other models accept none.
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
    /// All levels, lowest first.
    pub const ALL: [Self; 5] = [Low, Medium, High, Xhigh, Max];

    /// Its name in settings and requests.
    pub fn name(self) -> &'static str {
        match self {
            Low => "low",
            Medium => "medium",
            High => "high",
            Xhigh => "xhigh",
            Max => "max",
        }
    }

    /// The level to ask a model for: this one, or the highest below it that the model supports; none if it supports
    /// none.
    pub fn of(self, model: &str) -> Option<Self> {
        let (_, known) = TABLE.iter().find(|(part, _)| model.contains(part))?;
        known.iter().copied().filter(|effort| *effort <= self).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AGENT-1: a model is asked for a level it supports, and one that supports none is not asked.
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
