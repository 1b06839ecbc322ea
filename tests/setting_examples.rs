//! Values that fit a kind of setting.

use serde_json::{Value, json};

use super::Kind;

pub(super) trait Examples {
    /// A value of this kind.
    fn example(&self) -> Value;

    /// Values of this kind, of which one at least is not what stands where nothing is said.
    fn examples(&self) -> Vec<Value>;
}

impl Examples for Kind {
    fn example(&self) -> Value {
        match self {
            Self::Text => json!("a"),
            Self::Switch => json!(true),
            Self::Count => json!(1),
            Self::Amount => json!(1.5),
            Self::OneOf(values) => json!(values[0]),
            Self::Texts => json!(["Read(/a)"]),
            Self::Counts => json!({"A": 1}),
            Self::Object => json!({"a": [1]}),
            Self::Switches => json!({"a@b": true}),
            Self::Variables => json!({"APP_A": "b", "APP_C": 1, "APP_D": true}),
            Self::Entry(entry) => entry.keys.iter().map(|key| (key.name, key.kind.example())).collect(),
            Self::List(entry) => json!([Self::Entry(*entry).example()]),
            Self::Entries(entry) => json!({"a": Self::Entry(*entry).example()}),
            Self::Agents => json!({"a": {"description": "b", "prompt": "c"}}),
            Self::Hooks(entry) => json!([{"matcher": "Bash", "hooks": [Self::Entry(*entry).example()]}]),
        }
    }

    fn examples(&self) -> Vec<Value> {
        match self {
            Self::Switch => vec![json!(true), json!(false)],
            Self::Count => vec![json!(1), json!(7)],
            Self::OneOf(values) => values.iter().map(|value| json!(value)).collect(),
            other => vec![other.example()],
        }
    }
}
