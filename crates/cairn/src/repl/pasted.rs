//! Long texts that were pasted: a placeholder stands for each in the prompt, and the text goes out in its place.
//!
//! It keeps every text until the session ends, since a prompt can come back; a placeholder that was changed by hand is only
//! words.

/// Lines and characters above which a text is long: less can be read where it is.
const LINES: usize = 10;
const CHARACTERS: usize = 1_000;

/// Texts that were pasted, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PastedTexts {
    texts: Vec<PastedText>,
}

/// A text that was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PastedText {
    placeholder: String,
    text: String,
}

impl PastedTexts {
    /// The placeholder of a text, if it is long.
    pub(super) fn collapsed(&mut self, text: &str) -> Option<String> {
        let lines = text.lines().count();
        if lines <= LINES && text.len() <= CHARACTERS {
            return None;
        }
        if let Some(known) = self.texts.iter().find(|known| known.text == text) {
            return Some(known.placeholder.clone());
        }
        let number = self.texts.len() + 1;
        let size = if lines > 1 { format!("{lines} lines") } else { format!("{} characters", text.chars().count()) };
        let placeholder = format!("[Pasted text #{number}, {size}]");
        self.texts.push(PastedText { placeholder: placeholder.clone(), text: text.to_owned() });
        Some(placeholder)
    }

    /// The placeholder of a picture, which stands for its path.
    pub(super) fn picture(&mut self, path: &str) -> String {
        let number = self.texts.iter().filter(|known| known.placeholder.starts_with("[Picture")).count() + 1;
        let placeholder = format!("[Picture #{number}]");
        self.texts.push(PastedText { placeholder: placeholder.clone(), text: path.to_owned() });
        placeholder
    }

    /// The text with every placeholder filled in.
    pub(super) fn filled_in(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        // What was filled in is not looked at again: a pasted text may contain anything.
        while let Some(at) = rest.find('[') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            match self.texts.iter().find(|known| rest.starts_with(&known.placeholder)) {
                Some(known) => {
                    out.push_str(&known.text);
                    rest = &rest[known.placeholder.len()..];
                }
                None => {
                    out.push('[');
                    rest = &rest[1..];
                }
            }
        }
        out.push_str(rest);
        out
    }

    /// The placeholder at the end of a text, and what it stands for.
    pub(super) fn at_end_of(&self, text: &str) -> Option<(&str, &str)> {
        let known = self.texts.iter().find(|known| text.ends_with(&known.placeholder))?;
        Some((&known.placeholder, &known.text))
    }

    /// The placeholder at the beginning of a text.
    pub(super) fn at_start_of(&self, text: &str) -> Option<&str> {
        self.texts.iter().find(|known| text.starts_with(&known.placeholder)).map(|known| known.placeholder.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_collapsed_and_filled_in_once() {
        let mut pasted = PastedTexts::default();
        assert_eq!(pasted.collapsed("short"), None);
        let long = "[Pasted text #1, 12 lines]\n".repeat(12);
        let placeholder = pasted.collapsed(&long).unwrap();
        assert_eq!(placeholder, "[Pasted text #1, 12 lines]");
        assert_eq!(pasted.collapsed(&long).unwrap(), placeholder, "the same text, the same placeholder");
        assert_eq!(pasted.collapsed(&"x".repeat(2_000)).unwrap(), "[Pasted text #2, 2000 characters]");
        assert_eq!(pasted.filled_in(&format!("a [b] {placeholder}!")), format!("a [b] {long}!"));
        assert_eq!(pasted.at_end_of(&format!("a {placeholder}")), Some((placeholder.as_str(), long.as_str())));
        assert_eq!(pasted.at_end_of("a"), None);
    }
}
