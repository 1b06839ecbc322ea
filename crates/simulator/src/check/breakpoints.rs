//! Cache marks: their form, their number, their order, and what cannot carry one.

use serde_json::Value;

use super::{CheckedBody, invalid, no_other_fields};
use crate::cached_prompt::{Ttl, is_cacheable, items};

/// Breakpoints in a request, the automatic one included.
const MOST_BREAKPOINTS: usize = 4;

pub(super) fn marks(body: &Value) -> CheckedBody {
    let mut found: Vec<(String, Ttl)> = Vec::new();
    for (index, tool) in items(&body["tools"]).enumerate() {
        mark(&format!("tools.{index}"), tool, &mut found)?;
    }
    for (index, block) in items(&body["system"]).enumerate() {
        mark(&format!("system.{index}"), block, &mut found)?;
    }
    for (index, message) in items(&body["messages"]).enumerate() {
        for (inner, block) in items(&message["content"]).enumerate() {
            let path = format!("messages.{index}.content.{inner}");
            for (nested, value) in items(&block["content"]).enumerate() {
                mark(&format!("{path}.content.{nested}"), value, &mut found)?;
            }
            mark(&path, block, &mut found)?;
        }
    }
    if body["cache_control"].is_object() {
        form("cache_control", &body["cache_control"])?;
        found.push(("cache_control".to_owned(), Ttl::of(&body["cache_control"])));
    }
    if found.len() > MOST_BREAKPOINTS {
        let count = found.len();
        let problem =
            format!("A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {count}.");
        return Err(invalid("", problem));
    }
    for pair in found.windows(2) {
        if pair[0].1 < pair[1].1 {
            let problem = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that \
                           blocks are processed in the following order: `tools`, `system`, `messages`.";
            return Err(invalid(&format!("{}.cache_control.ttl", pair[1].0), problem));
        }
    }
    Ok(())
}

fn mark(path: &str, block: &Value, found: &mut Vec<(String, Ttl)>) -> CheckedBody {
    let control = &block["cache_control"];
    if control.is_null() {
        return Ok(());
    }
    form(&format!("{path}.cache_control"), control)?;
    if !is_cacheable(block) {
        let kind = block["type"].as_str().unwrap_or_default();
        return Err(invalid(&format!("{path}.{kind}.cache_control"), "Extra inputs are not permitted"));
    }
    found.push((path.to_owned(), Ttl::of(control)));
    Ok(())
}

fn form(path: &str, control: &Value) -> CheckedBody {
    refuse_if!(control["type"] != "ephemeral", &format!("{path}.type"), "Input should be 'ephemeral'");
    if !(control["ttl"].is_null() || control["ttl"] == "5m" || control["ttl"] == "1h") {
        return Err(invalid(&format!("{path}.ephemeral.ttl"), "Input should be '5m' or '1h'"));
    }
    no_other_fields(&format!("{path}.ephemeral"), control, &["type", "ttl"])
}
