//! Structured output: only schemas that the provider can compile into a grammar.

use std::collections::HashSet;

use serde_json::Value;

use super::{CheckedBody, invalid};
use crate::cached_prompt::items;
use crate::schema::is_schema;

/// Keywords that the grammar cannot hold to, with the type they belong to.
const UNSUPPORTED: &[(&str, &[&str])] = &[
    ("string", &["minLength", "maxLength"]),
    ("integer", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ("array", &["maxItems", "uniqueItems", "contains", "minContains", "maxContains"]),
    ("object", &["minProperties", "maxProperties", "patternProperties"]),
];

/// References inside references, at most.
const DEEPEST: usize = 64;

/// Keywords whose value is a schema.
const ONE_SCHEMA: &[&str] = &["items", "not", "if", "then", "else"];
/// Keywords whose value is a list of schemas.
const LISTS: &[&str] = &["anyOf", "allOf", "oneOf", "prefixItems"];
/// Keywords whose value is a table of schemas.
const TABLES: &[&str] = &["properties", "$defs", "definitions"];

pub(super) fn output(body: &Value) -> CheckedBody {
    let formats =
        [("output_config.format", &body["output_config"]["format"]), ("output_format", &body["output_format"])];
    for (path, format) in formats {
        if format.is_null() {
            continue;
        }
        refuse_if!(format["type"] != "json_schema", &format!("{path}.type"), "Input should be 'json_schema'");
        let (root, path) = (&format["schema"], format!("{path}.schema"));
        match root {
            Value::Null => return Err(invalid(&path, "Field required")),
            Value::Object(_) if is_schema(root) => {
                SchemaWalk { root, inside: Vec::new(), sound: HashSet::new() }.schema(&path, root)?;
            }
            Value::Object(_) => return Err(invalid(&path, "JSON schema is invalid")),
            _ => return Err(invalid(&path, "Input should be a valid dictionary")),
        }
    }
    Ok(())
}

/// A walk through a schema and the definitions it refers to.
struct SchemaWalk<'a> {
    root: &'a Value,
    /// References that are being followed.
    inside: Vec<&'a str>,
    /// References that have been followed, so that each is followed once.
    sound: HashSet<&'a str>,
}

impl<'a> SchemaWalk<'a> {
    fn schema(&mut self, path: &str, schema: &'a Value) -> CheckedBody {
        let kind = schema["type"].as_str().unwrap_or_default();
        if kind == "object" && schema["additionalProperties"] != false {
            let problem = "For 'object' type, 'additionalProperties' must be explicitly set to false";
            return Err(invalid(path, problem));
        }
        let unsupported = UNSUPPORTED.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, keys)| *keys);
        if let Some(key) = unsupported.iter().find(|key| !schema[**key].is_null()) {
            return Err(invalid(path, format!("For '{kind}' type, property '{key}' is not supported")));
        }
        if kind == "array" && schema["minItems"].as_u64().is_some_and(|least| least > 1) {
            return Err(invalid(path, "For 'array' type, 'minItems' values other than 0 or 1 are not supported"));
        }
        if let Some(reference) = schema["$ref"].as_str() {
            return self.follow(path, reference);
        }
        for key in ONE_SCHEMA.iter().filter(|key| schema[**key].is_object()) {
            self.schema(&format!("{path}.{key}"), &schema[*key])?;
        }
        for key in LISTS {
            for (index, inner) in items(&schema[*key]).enumerate() {
                self.schema(&format!("{path}.{key}.{index}"), inner)?;
            }
        }
        for key in TABLES {
            for (name, inner) in schema[*key].as_object().into_iter().flatten() {
                self.schema(&format!("{path}.{key}.{name}"), inner)?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, path: &str, reference: &'a str) -> CheckedBody {
        if self.inside.contains(&reference) || reference == "#" {
            return Err(invalid(path, format!("Circular reference detected in schema definitions: {reference}")));
        }
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target else {
            return Err(invalid(path, format!("reference '{reference}' cannot be resolved")));
        };
        refuse_if!(self.inside.len() == DEEPEST, path, "Schema is too complex.");
        if self.sound.insert(reference) {
            self.inside.push(reference);
            self.schema(path, target)?;
            self.inside.pop();
        }
        Ok(())
    }
}
