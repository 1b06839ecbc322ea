//! JSON Schema, as the provider holds tools and structured output to it. A build without `schemas` takes everything.

use serde_json::Value;

/// True if a value is a JSON Schema of draft 2020-12, whatever `$schema` says.
#[cfg(feature = "schemas")]
pub(crate) fn is_schema(schema: &Value) -> bool {
    jsonschema::draft202012::meta::is_valid(schema)
}

/// Violation of a schema by a value.
#[cfg(feature = "schemas")]
pub(crate) fn violation(schema: &Value, value: &Value) -> Option<String> {
    match jsonschema::validator_for(schema) {
        Ok(validator) => validator.validate(value).err().map(|problem| problem.to_string()),
        Err(problem) => Some(problem.to_string()),
    }
}

#[cfg(not(feature = "schemas"))]
pub(crate) fn is_schema(_: &Value) -> bool {
    true
}

#[cfg(not(feature = "schemas"))]
pub(crate) fn violation(_: &Value, _: &Value) -> Option<String> {
    None
}
