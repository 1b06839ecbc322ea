//! Input schemas of tools, in the form that every provider takes.
//!
//! One bad schema makes a provider refuse the whole request, so a tool whose schema is none is not offered. Nothing is
//! fetched: a reference that leads out of the schema is a problem of that tool.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The most bytes of a schema. Real ones have a few thousand.
const LONGEST_SCHEMA: usize = 64 << 10;
/// The most levels of a schema.
const DEEPEST_SCHEMA: usize = 64;
/// The most characters of an argument's name, as providers have it.
const LONGEST_ARGUMENT: usize = 64;
/// Alternatives, which no provider takes at the root.
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Problem of a tool's schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaProblem {
    /// Its root is something else.
    #[error("its schema does not describe an object")]
    NotAnObject,
    /// It is too long.
    #[error("its schema is longer than {} KB", LONGEST_SCHEMA >> 10)]
    TooLong,
    /// It is too deep.
    #[error("its schema is deeper than {DEEPEST_SCHEMA} levels")]
    TooDeep,
    /// It leads out of itself.
    #[error("its schema refers to {0:?}, which is not in it")]
    Reference(String),
    /// An argument's name.
    #[error("its argument {0:?} has a name that providers do not accept")]
    Argument(String),
    /// A keyword with a wrong value.
    #[error("its schema has an invalid {0:?}")]
    Keyword(String),
}

/// The schema as an object without alternatives at its root.
///
/// Of alternatives at the root, all properties are kept; required is what each of them requires, or any of `allOf`.
pub fn flat_schema(schema: &Value) -> Result<Value, SchemaProblem> {
    let Some(root) = schema.as_object() else { return Err(SchemaProblem::NotAnObject) };
    if schema.to_string().len() > LONGEST_SCHEMA {
        return Err(SchemaProblem::TooLong);
    }
    check(schema, schema, 0)?;
    let mut flat = root.clone();
    for keyword in ALTERNATIVES {
        if let Some(Value::Array(branches)) = flat.shift_remove(keyword) {
            merge(&mut flat, keyword, &branches, schema);
        }
    }
    match flat.get("type") {
        None => _ = flat.insert("type".to_owned(), json!("object")),
        Some(kind) if *kind == "object" => {}
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "object") => {
            flat.insert("type".to_owned(), json!("object"));
        }
        Some(_) => return Err(SchemaProblem::NotAnObject),
    }
    // The protocol's own dialect is what providers assume.
    flat.shift_remove("$schema");
    let properties = flat.entry("properties").or_insert_with(|| json!({}));
    let names = properties.as_object().ok_or_else(|| SchemaProblem::Keyword("properties".to_owned()))?;
    if let Some(name) = names.keys().find(|name| !is_argument(name)) {
        return Err(SchemaProblem::Argument(name.chars().take(LONGEST_ARGUMENT).collect()));
    }
    Ok(Value::Object(flat))
}

/// Adds to a root what its alternatives have.
fn merge(root: &mut Map<String, Value>, keyword: &str, branches: &[Value], whole: &Value) {
    let branches: Vec<&Map<String, Value>> =
        branches.iter().filter_map(|branch| resolved(branch, whole).as_object()).collect();
    let mut required: Vec<BTreeSet<&str>> = Vec::new();
    let mut properties = root.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for branch in branches {
        for (name, property) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
            properties.entry(name.clone()).or_insert_with(|| property.clone());
        }
        required.push(names(branch.get("required")).collect());
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    let by_all = |name: &&str| match keyword {
        "allOf" => required.iter().any(|one| one.contains(name)),
        _ => required.iter().all(|one| one.contains(name)),
    };
    let before: Vec<String> = names(root.get("required")).map(str::to_owned).collect();
    let known = |name: &&str| !before.iter().any(|one| one == name);
    let all: BTreeSet<&str> = required.iter().flatten().copied().collect();
    let more: Vec<String> = all.into_iter().filter(by_all).filter(known).map(str::to_owned).collect();
    if !before.is_empty() || !more.is_empty() {
        root.insert("required".to_owned(), json!([before, more].concat()));
    }
}

fn names(required: Option<&Value>) -> impl Iterator<Item = &str> {
    required.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The part of the schema that a reference names; one step, so that no circle is followed.
fn resolved<'a>(part: &'a Value, whole: &'a Value) -> &'a Value {
    let pointer = part.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| whole.pointer(pointer)).unwrap_or(part)
}

fn is_argument(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    !name.is_empty() && name.len() <= LONGEST_ARGUMENT && name.chars().all(letter)
}

/// Checks the keywords whose wrong values make providers refuse a request.
fn check(part: &Value, whole: &Value, depth: usize) -> Result<(), SchemaProblem> {
    if depth > DEEPEST_SCHEMA {
        return Err(SchemaProblem::TooDeep);
    }
    let part = match part {
        Value::Object(part) => part,
        Value::Bool(_) => return Ok(()),
        _ => return Err(SchemaProblem::Keyword("schema".to_owned())),
    };
    for (keyword, value) in part {
        let wrong = || SchemaProblem::Keyword(keyword.clone());
        match keyword.as_str() {
            "type" => {
                let known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
                let all = value.as_array().is_some_and(|kinds| !kinds.is_empty() && kinds.iter().all(known));
                if !known(value) && !all {
                    return Err(wrong());
                }
            }
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                for inner in value.as_object().ok_or_else(wrong)?.values() {
                    check(inner, whole, depth + 1)?;
                }
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                let inner = value.as_array().filter(|inner| !inner.is_empty()).ok_or_else(wrong)?;
                inner.iter().try_for_each(|inner| check(inner, whole, depth + 1))?;
            }
            "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
                check(value, whole, depth + 1)?;
            }
            "required" => {
                let names = value.as_array().ok_or_else(wrong)?;
                if !names.iter().all(Value::is_string) {
                    return Err(wrong());
                }
            }
            "enum" if !value.is_array() => return Err(wrong()),
            "$ref" => {
                let reference = value.as_str().ok_or_else(wrong)?;
                let target = reference.strip_prefix('#').and_then(|pointer| whole.pointer(pointer));
                if target.is_none() {
                    return Err(SchemaProblem::Reference(reference.chars().take(100).collect()));
                }
            }
            "pattern" | "title" | "description" | "format" if !value.is_string() => return Err(wrong()),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" if !value.is_number() => {
                return Err(wrong());
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
                if !value.is_u64() =>
            {
                return Err(wrong());
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MCP-1: providers take no alternatives at the root of a schema: they are flattened into one object.
    #[test]
    fn alternatives_at_the_root_become_one_object() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "oneOf": [
            {"properties": {"b": {"type": "string"}, "c": {}}, "required": ["b", "c"]},
            {"$ref": "#/$defs/other"},
        ], "$defs": {"other": {"properties": {"d": {}, "c": {"type": "number"}}, "required": ["c", "d"]}}});
        let flat = flat_schema(&schema).unwrap();
        let names: Vec<_> = flat["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert_eq!(flat["required"], json!(["a", "c"]));
        assert!(flat.get("oneOf").is_none());
        let all = flat_schema(&json!({"allOf": [{"properties": {"x": {}}, "required": ["x"]}, {"required": ["y"]}]}));
        assert_eq!(all.unwrap()["required"], json!(["x", "y"]));
    }

    #[test]
    fn a_schema_without_type_or_properties_is_that_of_an_object() {
        assert_eq!(flat_schema(&json!({})).unwrap(), json!({"type": "object", "properties": {}}));
        let inner = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}});
        assert_eq!(flat_schema(&inner).unwrap(), inner, "alternatives inside stay");
    }

    /// MCP-1: a schema that providers refuse costs its own tool, not the request.
    #[test]
    fn a_schema_that_providers_refuse_is_a_problem_of_its_tool() {
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "array", "items": deep});
        }
        for (schema, words) in [
            (json!("x"), "does not describe an object"),
            (json!({"type": "string"}), "does not describe an object"),
            (json!({"type": "banana"}), "\"type\""),
            (json!({"properties": []}), "\"properties\""),
            (json!({"properties": {"a": {"type": []}}}), "\"type\""),
            (json!({"properties": {"a b": {}}}), "\"a b\""),
            (json!({"properties": {"a": {"$ref": "https://evil/schema.json"}}}), "https://evil"),
            (json!({"properties": {"a": {"$ref": "#/$defs/nope"}}}), "#/$defs/nope"),
            (json!({"properties": {"a": deep}}), "64 levels"),
            (json!({"description": "x".repeat(70_000)}), "64 KB"),
            (json!({"required": "a"}), "\"required\""),
            (json!({"properties": {"a": {"minLength": -1}}}), "\"minLength\""),
        ] {
            let problem = flat_schema(&schema).unwrap_err().to_string();
            assert!(problem.contains(words), "{problem} for {schema:.80}");
        }
    }
}
