//! The form of a server's question: its fields in order, and what the user types as values for them.
//!
//! Labels are the server's text. A value is checked here, so that the user is asked again rather than the server sent nonsense.

use serde_json::{Map, Number, Value};

/// The most fields of a form that a person is asked to fill.
const MOST_FIELDS: usize = 50;

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    /// Its key in the answer.
    pub key: String,
    /// Its name for people.
    pub label: String,
    /// Its description.
    pub about: Option<String>,
    /// Its values.
    pub kind: FieldKind,
    /// True if it has to be filled.
    pub required: bool,
    /// Its value if it is left empty, as the user would type it.
    pub default: Option<String>,
    rules: FieldRules,
}

/// Values of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// Any text.
    Text,
    /// A number.
    Number,
    /// A number without fraction.
    Integer,
    /// One of these.
    One(Vec<FieldOption>),
    /// Some of these.
    Several(Vec<FieldOption>),
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldOption {
    /// The value.
    pub value: Value,
    /// Its name for people.
    pub label: String,
}

/// Bounds of a value: of a text's or list's length, or of a number.
#[derive(Debug, Clone, Default, PartialEq)]
struct FieldRules {
    least: Option<f64>,
    most: Option<f64>,
}

/// The fields of a form, in the order of the server.
pub fn form_fields(schema: &Value) -> Vec<FormField> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten().take(MOST_FIELDS);
    properties.map(|(key, property)| field(key, property, required.contains(&key.as_str()))).collect()
}

fn field(key: &str, property: &Value, required: bool) -> FormField {
    let text = |name: &str| property[name].as_str().map(str::to_owned);
    let number = |name: &str| property[name].as_f64();
    let (kind, least, most) = match property["type"].as_str() {
        Some("boolean") => {
            let option = |(value, label): (bool, &str)| FieldOption { value: value.into(), label: label.to_owned() };
            (FieldKind::One([(true, "yes"), (false, "no")].map(option).to_vec()), None, None)
        }
        Some("integer") => (FieldKind::Integer, number("minimum"), number("maximum")),
        Some("number") => (FieldKind::Number, number("minimum"), number("maximum")),
        Some("array") => (FieldKind::Several(options(&property["items"])), number("minItems"), number("maxItems")),
        _ => match options(property) {
            none if none.is_empty() => (FieldKind::Text, number("minLength"), number("maxLength")),
            some => (FieldKind::One(some), None, None),
        },
    };
    let default = property.get("default").and_then(|value| typed(&kind, value));
    let label = text("title").unwrap_or_else(|| key.to_owned());
    let rules = FieldRules { least, most };
    FormField { key: key.to_owned(), label, about: text("description"), kind, required, default, rules }
}

/// The values to choose: with names of their own, or without.
fn options(schema: &Value) -> Vec<FieldOption> {
    let titled = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(titled) = titled {
        let option = |one: &Value| {
            let value = one.get("const")?.clone();
            let label = one["title"].as_str().map_or_else(|| plain(&value), str::to_owned);
            Some(FieldOption { value, label })
        };
        return titled.iter().filter_map(option).collect();
    }
    let names = schema["enumNames"].as_array();
    let name = |at: usize| names?.get(at)?.as_str().map(str::to_owned);
    let values = schema["enum"].as_array().into_iter().flatten().enumerate();
    values
        .map(|(at, value)| FieldOption { value: value.clone(), label: name(at).unwrap_or_else(|| plain(value)) })
        .collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A default as the user would type it.
fn typed(kind: &FieldKind, value: &Value) -> Option<String> {
    let label = |options: &[FieldOption], value: &Value| {
        options.iter().find(|option| option.value == *value).map(|option| option.label.clone())
    };
    match kind {
        FieldKind::One(options) => label(options, value),
        FieldKind::Several(options) => {
            let labels: Option<Vec<String>> = value.as_array()?.iter().map(|value| label(options, value)).collect();
            labels.map(|labels| labels.join(", "))
        }
        FieldKind::Text | FieldKind::Number | FieldKind::Integer => Some(plain(value)),
    }
}

impl FormField {
    /// The value that the user has typed, by name or number where there is a choice; none if the field stays empty. An
    /// error is for the user.
    pub fn value(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = match (typed.trim(), &self.default) {
            ("", Some(default)) => default.as_str(),
            (typed, _) => typed,
        };
        if typed.is_empty() {
            return if self.required { Err("it has to be filled".to_owned()) } else { Ok(None) };
        }
        let value = match &self.kind {
            FieldKind::Text => {
                self.within(typed.chars().count(), "characters")?;
                Value::from(typed)
            }
            FieldKind::Integer => {
                let number: i64 = typed.parse().map_err(|_| "it has to be a whole number".to_owned())?;
                self.number(number.into())?
            }
            FieldKind::Number => {
                let number: f64 = typed.parse().map_err(|_| "it has to be a number".to_owned())?;
                self.number(Number::from_f64(number).ok_or("it has to be a number")?)?
            }
            FieldKind::One(options) => chosen(options, typed)?.value.clone(),
            FieldKind::Several(options) => {
                let parts = typed.split(',').map(str::trim).filter(|part| !part.is_empty());
                let values = parts.map(|part| chosen(options, part).map(|option| option.value.clone()));
                let values: Vec<Value> = values.collect::<Result<_, String>>()?;
                self.within(values.len(), "of them")?;
                Value::from(values)
            }
        };
        Ok(Some(value))
    }

    fn number(&self, number: Number) -> Result<Value, String> {
        let value = number.as_f64().unwrap_or_default();
        self.check(value, "")?;
        Ok(Value::Number(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "lengths of what a person types")]
    fn within(&self, count: usize, what: &str) -> Result<(), String> {
        self.check(count as f64, what)
    }

    fn check(&self, value: f64, what: &str) -> Result<(), String> {
        match (self.rules.least, self.rules.most) {
            (Some(least), _) if value < least => Err(format!("it has to be at least {least} {what}").trim().to_owned()),
            (_, Some(most)) if value > most => Err(format!("it has to be at most {most} {what}").trim().to_owned()),
            _ => Ok(()),
        }
    }
}

/// The option of this name, else of this number.
fn chosen<'o>(options: &'o [FieldOption], typed: &str) -> Result<&'o FieldOption, String> {
    let named = options.iter().find(|option| option.label == typed || plain(&option.value) == typed);
    let numbered = || options.get(typed.parse::<usize>().ok()?.checked_sub(1)?);
    named.or_else(numbered).ok_or_else(|| format!("there is no {typed}"))
}

/// Values for the answer, by the fields that have one.
pub fn form_values(filled: impl IntoIterator<Item = (String, Option<Value>)>) -> Map<String, Value> {
    filled.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(property: &Value) -> FormField {
        form_fields(&json!({"properties": {"it": property}, "required": ["it"]})).remove(0)
    }

    /// MCP-1: a form of every kind that the protocol has becomes fields in the server's order.
    #[test]
    fn fields_of_every_kind_take_what_people_type() {
        let fields = form_fields(&json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Your name", "description": "as in a passport", "minLength": 2},
            "age": {"type": "integer", "minimum": 18, "maximum": 120},
            "size": {"type": "number", "default": 1.5},
            "wants": {"type": "boolean", "default": true},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"], "default": "g"},
            "plain": {"type": "string", "enum": ["one", "two"]},
            "titled": {"type": "string", "oneOf": [{"const": "a", "title": "The first"}, {"const": "b"}]},
            "some": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"anyOf": [
                {"const": "x", "title": "Ex"}, {"const": "y", "title": "Why"}, {"const": "z", "title": "Zed"}]}},
        }}));
        let keys: Vec<&str> = fields.iter().map(|field| field.key.as_str()).collect();
        assert_eq!(keys, ["name", "age", "size", "wants", "colour", "plain", "titled", "some"]);
        let value = |key: &str, typed: &str| {
            fields.iter().find(|field| field.key == key).unwrap().value(typed).map(Option::unwrap_or_default)
        };
        for (key, typed, wanted) in [
            ("name", " Ada ", json!("Ada")),
            ("age", "18", json!(18)),
            ("age", "", json!(null)),
            ("size", "", json!(1.5)),
            ("size", "2", json!(2.0)),
            ("wants", "no", json!(false)),
            ("wants", "", json!(true)),
            ("colour", "red", json!("r")),
            ("colour", "", json!("g")),
            ("plain", "2", json!("two")),
            ("titled", "The first", json!("a")),
            ("titled", "b", json!("b")),
            ("some", "Ex, 3", json!(["x", "z"])),
        ] {
            assert_eq!(value(key, typed), Ok(wanted), "{key} {typed:?}");
        }
        for (key, typed, wanted) in [
            ("name", "", "it has to be filled"),
            ("name", "A", "it has to be at least 2 characters"),
            ("age", "17", "it has to be at least 18"),
            ("age", "121", "it has to be at most 120"),
            ("age", "1.5", "it has to be a whole number"),
            ("size", "NaN", "it has to be a number"),
            ("colour", "blue", "there is no blue"),
            ("plain", "0", "there is no 0"),
            ("some", "Ex, Why, Zed", "it has to be at most 2 of them"),
        ] {
            assert_eq!(value(key, typed), Err(wanted.to_owned()), "{key} {typed:?}");
        }
        assert_eq!((fields[0].label.as_str(), fields[0].about.as_deref()), ("Your name", Some("as in a passport")));
    }

    /// MCP-1: what is no form asks nothing, and a field of an unknown kind takes text.
    #[test]
    fn odd_schemas_ask_for_text_or_for_nothing() {
        assert_eq!(form_fields(&json!({"properties": 3})), []);
        assert_eq!(form_fields(&json!(null)), []);
        assert_eq!(one(&json!({"type": "odd"})).value("x"), Ok(Some(json!("x"))));
        let many: Map<String, Value> = (0..100).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect();
        assert_eq!(form_fields(&json!({"properties": many})).len(), MOST_FIELDS);
    }
}
