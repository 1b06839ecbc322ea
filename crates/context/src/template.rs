//! Filling in a text: `{{name}}` by its value, in a single pass.
//!
//! Inserted text is never looked at again, so a value may contain anything; an unknown name stays as it is written.

/// Fills in a template.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find("{{") {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let name = rest.find("}}").map(|close| (rest[2..close].trim(), close + 2));
        let value = name.and_then(|(name, end)| values.iter().find(|(known, _)| *known == name).map(|(_, v)| (v, end)));
        match value {
            Some((value, end)) => {
                out.push_str(value);
                rest = &rest[end..];
            }
            None => {
                out.push_str("{{");
                rest = &rest[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NOTES-6: values are put in once and are never looked at again; unknown names stay; `$` means nothing.
    #[test]
    fn what_was_filled_in_is_not_looked_at_again() {
        let values = [("currentNotes", "a {{notesPath}} $1 \\0"), ("notesPath", "/n.md")];
        let filled = fill("{{currentNotes}}|{{ notesPath }}|{{other}}|{{unclosed", &values);
        assert_eq!(filled, "a {{notesPath}} $1 \\0|/n.md|{{other}}|{{unclosed");
    }
}
