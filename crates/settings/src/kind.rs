//! Types of setting values: how they are checked, split into parts and described, in words and in the schema.

use serde_json::{Value, json};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A string.
    Text,
    /// True or false.
    Switch,
    /// A whole number, not negative.
    Count,
    /// A number, not negative.
    Amount,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A list of strings.
    Texts,
    /// An object of strings by name.
    Variables,
    /// An object of numbers by name.
    Counts,
    /// An object of true or false by name.
    Switches,
    /// An object of anything.
    Object,
    /// An object with these keys.
    Entry(EntryForm),
    /// A list of such objects.
    List(EntryForm),
    /// An object of such entries by name.
    Entries(EntryForm),
    /// A list of `{matcher, hooks}`, with such entries as hooks.
    Hooks(EntryForm),
    /// An object of agent definitions by name, which are checked with all other definitions.
    Agents,
}

/// The fields of an entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntryForm {
    /// Its keys.
    pub keys: &'static [Field],
    /// Names of the required ones.
    pub required: &'static [&'static str],
}

/// A field of an entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Type of its value.
    pub kind: Kind,
    /// Its description.
    pub about: &'static str,
}

/// A part of a value that is judged by itself: an element of a list, an entry of an object, or the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValuePart {
    /// All of it.
    Whole,
    /// An element of a list.
    Element(usize),
    /// The value under a name.
    Entry(String),
    /// A hook: the index of its group, and its index there.
    Hook(usize, usize),
}

impl ValuePart {
    /// This part of a value. A hook comes with its group's matcher.
    pub(crate) fn of(&self, value: &Value) -> Option<Value> {
        match self {
            Self::Whole => Some(value.clone()),
            Self::Element(index) => value.get(index).cloned(),
            Self::Entry(entry) => value.get(entry).cloned(),
            Self::Hook(group, hook) => {
                let group = value.get(group)?;
                Some(json!({"matcher": group["matcher"], "hook": group["hooks"].get(hook)?}))
            }
        }
    }
}

impl Kind {
    /// True if values of several files are joined, instead of the strongest overriding the others.
    pub(super) fn is_joined(&self) -> bool {
        matches!(self, Self::Texts | Self::List(_) | Self::Hooks(_))
    }

    /// The parts of a value, each with whether it is valid; none if the value as a whole has the wrong type.
    pub(crate) fn parts(&self, value: &Value) -> Option<Vec<(ValuePart, bool)>> {
        let of_entries = |fits: &dyn Fn(&Value) -> bool| {
            let entries = value.as_object()?;
            Some(entries.iter().map(|(name, value)| (ValuePart::Entry(name.clone()), fits(value))).collect())
        };
        let of_elements = |fits: &dyn Fn(&Value) -> bool| {
            let elements = value.as_array()?.iter().enumerate();
            Some(elements.map(|(index, value)| (ValuePart::Element(index), fits(value))).collect())
        };
        match self {
            Self::Texts => of_elements(&Value::is_string),
            Self::List(entry) => of_elements(&|value| Self::Entry(*entry).fits(value)),
            Self::Variables => of_entries(&|value| value.is_string() || value.is_number() || value.is_boolean()),
            Self::Counts => of_entries(&|value| Self::Count.fits(value)),
            Self::Switches => of_entries(&Value::is_boolean),
            Self::Entries(entry) => of_entries(&|value| Self::Entry(*entry).fits(value)),
            Self::Agents => of_entries(&Value::is_object),
            Self::Hooks(entry) => {
                let mut parts = Vec::new();
                for (at, group) in value.as_array()?.iter().enumerate() {
                    match group["hooks"]
                        .as_array()
                        .filter(|_| group["matcher"].as_str().is_some() || group["matcher"].is_null())
                    {
                        Some(hooks) => parts.extend(
                            hooks
                                .iter()
                                .enumerate()
                                .map(|(of_it, hook)| (ValuePart::Hook(at, of_it), Self::Entry(*entry).fits(hook))),
                        ),
                        None => parts.push((ValuePart::Element(at), false)),
                    }
                }
                Some(parts)
            }
            _ => self.fits(value).then(|| vec![(ValuePart::Whole, true)]),
        }
    }

    /// True if all of a value is valid.
    pub fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Switch => value.is_boolean(),
            Self::Count => value.is_u64(),
            Self::Amount => value.as_f64().is_some_and(|amount| amount >= 0.0),
            Self::Object => value.is_object(),
            Self::OneOf(values) => value.as_str().is_some_and(|value| values.contains(&value)),
            Self::Entry(EntryForm { keys, required }) => value.as_object().is_some_and(|entry| {
                let wrong = |key: &Field| entry.get(key.name).is_some_and(|value| !key.kind.fits(value));
                required.iter().all(|name| entry.contains_key(*name)) && !keys.iter().any(wrong)
            }),
            Self::Texts
            | Self::List(_)
            | Self::Variables
            | Self::Counts
            | Self::Switches
            | Self::Entries(_)
            | Self::Hooks(_)
            | Self::Agents => self.parts(value).is_some_and(|parts| parts.iter().all(|(_, fits)| *fits)),
        }
    }

    /// The type in words.
    pub fn words(&self) -> String {
        match self {
            Self::Text => "a string".into(),
            Self::Switch => "true or false".into(),
            Self::Count => "a whole number".into(),
            Self::Amount => "a number of at least 0".into(),
            Self::OneOf(values) => {
                let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
                quoted.join(" or ")
            }
            Self::Texts => "a list of strings".into(),
            Self::Object => "an object".into(),
            Self::Variables => "an object of strings by name".into(),
            Self::Counts => "an object of whole numbers by name".into(),
            Self::Switches => "an object of true or false by name".into(),
            Self::Entry(_) => self.part_words(),
            Self::List(_) => format!("a list of {}", self.part_words()),
            Self::Entries(_) => format!("an object by name, each entry {}", self.part_words()),
            Self::Hooks(_) => "a list of hooks".into(),
            Self::Agents => "an object of definitions by name".into(),
        }
    }

    /// The type of a part, in words.
    pub(crate) fn part_words(&self) -> String {
        match self {
            Self::Entry(entry) | Self::List(entry) | Self::Entries(entry) => {
                let names: Vec<&str> = entry.keys.iter().map(|key| key.name).collect();
                let required = match entry.required {
                    [] => String::new(),
                    required => format!(", with at least {}", required.join(", ")),
                };
                format!("{{{}}}{required}", names.join(", "))
            }
            Self::Texts | Self::Variables => Self::Text.words(),
            Self::Counts => Self::Count.words(),
            Self::Switches => Self::Switch.words(),
            Self::Hooks(_) => "{matcher, hooks: [{type, …}]}, each hook with at least its type".into(),
            Self::Agents => "a definition of an agent: {description, prompt, …}".into(),
            _ => self.words(),
        }
    }

    pub(super) fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Switch => json!({"type": "boolean"}),
            Self::Count => json!({"type": "integer", "minimum": 0}),
            Self::Amount => json!({"type": "number", "minimum": 0}),
            Self::OneOf(values) => json!({"enum": values}),
            Self::Object => json!({"type": "object"}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Variables => {
                json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})
            }
            Self::Counts => json!({"type": "object", "additionalProperties": Self::Count.schema()}),
            Self::Switches => json!({"type": "object", "additionalProperties": Self::Switch.schema()}),
            Self::Entry(entry) => {
                let fields = entry.keys.iter().map(|field| (field.name, field.kind, field.about.to_owned()));
                object(fields, entry.required)
            }
            Self::List(entry) => json!({"type": "array", "items": Self::Entry(*entry).schema()}),
            Self::Entries(entry) => json!({"type": "object", "additionalProperties": Self::Entry(*entry).schema()}),
            Self::Agents => {
                let text = json!({"type": "string"});
                let properties = json!({"description": text, "prompt": text, "model": text});
                let agent = json!({"type": "object", "properties": properties, "required": ["description", "prompt"]});
                json!({"type": "object", "additionalProperties": agent})
            }
            Self::Hooks(entry) => {
                let hooks = json!({"type": "array", "items": Self::Entry(*entry).schema()});
                let properties = json!({"matcher": {"type": "string"}, "hooks": hooks});
                json!({"type": "array", "items": {"type": "object", "properties": properties, "required": ["hooks"]}})
            }
        }
    }
}

pub(super) fn object(keys: impl Iterator<Item = (&'static str, Kind, String)>, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": {}});
    for (name, kind, about) in keys {
        let mut inside = &mut schema;
        let (path, name) = name.rsplit_once('.').unwrap_or(("", name));
        for part in path.split('.').filter(|part| !part.is_empty()) {
            inside = &mut inside["properties"][part];
            inside["type"] = "object".into();
        }
        let mut value = kind.schema();
        value["description"] = about.into();
        inside["properties"][name] = value;
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}
