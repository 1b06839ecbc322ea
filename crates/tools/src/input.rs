//! Conversion between a tool's input type and its JSON schema and calls.
//!
//! The schema is small and stable: everything inline, no titles, no formats, optional fields simply not required. The
//! type's doc comment becomes the tool's description. The model's input is checked strictly, and an error names the
//! field and the expected value, so that the model can correct itself.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use transcript::message::ToolDefinition;

/// Definition of a tool with this input.
pub(crate) fn definition<T: JsonSchema>(name: &str) -> ToolDefinition {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let description = schema["description"].as_str().map(unwrapped).unwrap_or_default();
    if let Value::Object(object) = &mut schema {
        object.shift_remove("description");
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    plain(&mut schema);
    ToolDefinition { name: name.to_owned(), description, input_schema: schema }
}

/// Parses an input; the error is a sentence that says what is wrong with it.
pub(crate) fn parse<T: DeserializeOwned>(input: Value) -> Result<T, String> {
    if !input.is_object() {
        return Err(format!("expected a JSON object, found {}", kind(&input)));
    }
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if path == "." { inner.to_string() } else { format!("`{path}`: {inner}") }
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Removes noise from a schema.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for noise in ["$schema", "title", "format"] {
                if object.get(noise).is_some_and(Value::is_string) {
                    object.shift_remove(noise);
                }
            }
            if object.get("default") == Some(&Value::Null) {
                object.shift_remove("default");
            }
            if object.get("minimum").and_then(Value::as_f64) == Some(0.0) {
                object.shift_remove("minimum");
            }
            if let Some(Value::Array(kinds)) = object.get("type")
                && let [only] = kinds.iter().filter(|kind| *kind != "null").collect::<Vec<_>>()[..]
            {
                let only = only.clone();
                object.insert("type".to_owned(), only);
            }
            optional(object);
            choices(object);
            if let Some(Value::String(description)) = object.get_mut("description") {
                *description = unwrapped(description);
            }
            object.values_mut().for_each(plain);
        }
        Value::Array(parts) => parts.iter_mut().for_each(plain),
        _ => {}
    }
}

/// Turns `anyOf: [X, null]` into X: an optional field is one that is not required.
fn optional(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get("anyOf") else { return };
    let real: Vec<&Value> = choices.iter().filter(|choice| choice["type"] != "null").collect();
    if let [Value::Object(only)] = real[..] {
        let only = only.clone();
        object.shift_remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// Turns `oneOf` constants into an enumeration; the field's description explains the choices.
fn choices(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get("oneOf") else { return };
    let names: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
    if let Some(names) = names {
        object.shift_remove("oneOf");
        object.insert("type".to_owned(), "string".into());
        object.insert("enum".to_owned(), names.into());
    }
}

/// A doc comment without the line breaks that only keep the source narrow: paragraphs and list items stay.
fn unwrapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines().map(str::trim) {
        if out.is_empty() || out.ends_with('\n') {
        } else if line.is_empty() || line.starts_with("- ") {
            out.push('\n');
        } else {
            out.push(' ');
        }
        out.push_str(line);
        if line.is_empty() {
            out.push('\n');
        }
    }
    out.trim().to_owned()
}
