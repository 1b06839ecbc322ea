//! Structured output: only schemas that the provider can compile into a grammar.

use serde_json::Value;

use super::{Checked, invalid, tools};

/// Keywords that the grammar cannot hold to, with the type they belong to.
const UNSUPPORTED: &[(&str, &[&str])] = &[
    ("string", &["minLength", "maxLength"]),
    ("integer", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ("array", &["maxItems", "uniqueItems", "contains", "minContains", "maxContains"]),
    ("object", &["minProperties", "maxProperties", "patternProperties"]),
];

/// Keywords whose value is a schema.
const ONE_SCHEMA: &[&str] = &["items", "not", "if", "then", "else"];
/// Keywords whose value is a list of schemas.
const LISTS: &[&str] = &["anyOf", "allOf", "oneOf", "prefixItems"];
/// Keywords whose value is a table of schemas.
const TABLES: &[&str] = &["properties", "$defs", "definitions"];

pub(super) fn output(body: &Value) -> Checked {
    let formats =
        [("output_config.format", &body["output_config"]["format"]), ("output_format", &body["output_format"])];
    for (path, format) in formats {
        if format.is_null() {
            continue;
        }
        if format["type"] != "json_schema" {
            return Err(invalid(&format!("{path}.type"), "Input should be 'json_schema'"));
        }
        let (root, path) = (&format["schema"], format!("{path}.schema"));
        match root {
            Value::Null => return Err(invalid(&path, "Field required")),
            Value::Object(_) if tools::is_schema(root) => schema(&path, root, root, &mut Vec::new())?,
            Value::Object(_) => return Err(invalid(&path, "JSON schema is invalid")),
            _ => return Err(invalid(&path, "Input should be a valid dictionary")),
        }
    }
    Ok(())
}

/// Walks a schema; `inside` are the references that are being followed.
fn schema<'a>(path: &str, schema_: &'a Value, root: &'a Value, inside: &mut Vec<&'a str>) -> Checked {
    let kind = schema_["type"].as_str().unwrap_or_default();
    if kind == "object" && schema_["additionalProperties"] != false {
        let problem = "For 'object' type, 'additionalProperties' must be explicitly set to false";
        return Err(invalid(path, problem));
    }
    let unsupported = UNSUPPORTED.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, keys)| *keys);
    if let Some(key) = unsupported.iter().find(|key| !schema_[**key].is_null()) {
        return Err(invalid(path, format!("For '{kind}' type, property '{key}' is not supported")));
    }
    if kind == "array" && schema_["minItems"].as_u64().is_some_and(|least| least > 1) {
        return Err(invalid(path, "For 'array' type, 'minItems' values other than 0 or 1 are not supported"));
    }
    if let Some(reference) = schema_["$ref"].as_str() {
        return follow(path, reference, root, inside);
    }
    for key in ONE_SCHEMA.iter().filter(|key| schema_[**key].is_object()) {
        schema(&format!("{path}.{key}"), &schema_[*key], root, inside)?;
    }
    for key in LISTS {
        for (index, inner) in crate::prompt::items(&schema_[*key]).enumerate() {
            schema(&format!("{path}.{key}.{index}"), inner, root, inside)?;
        }
    }
    for key in TABLES {
        for (name, inner) in schema_[*key].as_object().into_iter().flatten() {
            schema(&format!("{path}.{key}.{name}"), inner, root, inside)?;
        }
    }
    Ok(())
}

fn follow<'a>(path: &str, reference: &'a str, root: &'a Value, inside: &mut Vec<&'a str>) -> Checked {
    if inside.contains(&reference) || reference == "#" {
        return Err(invalid(path, format!("Circular reference detected in schema definitions: {reference}")));
    }
    let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
    let Some(target) = target else {
        return Err(invalid(path, format!("reference '{reference}' cannot be resolved")));
    };
    inside.push(reference);
    schema(path, target, root, inside)?;
    inside.pop();
    Ok(())
}
