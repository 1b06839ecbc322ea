//! Names that a memory says mean the same thing: what was renamed, what is also called.
//!
//! "`atlas` was renamed to `compass`" lets a question about atlas find what is written about compass. The patterns are
//! those of ordinary sentences; a name is the nearest word that is written like one.

use std::sync::LazyLock;

use regex::Regex;

use super::words::{Form, Splitter};

/// How much of a memory is looked through: the statement stands near the top.
const LOOKED_AT: usize = 4_000;

const NAME: &str = r#"[`"'*“「]*([\p{L}\p{N}][\p{L}\p{N}_./-]*)[`"'*”」]*"#;

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        format!(r"(?i){NAME}\s+(?:has been|was|is|got|were)?\s*renamed\s+(?:as|to|into)?\s*{NAME}"),
        format!(r"(?i)renamed?\s+(?:from\s+)?{NAME}\s+(?:to|as|into|→|->)\s+{NAME}"),
        format!(r"(?i){NAME}\s*[(,]?\s*(?:formerly|previously|originally|once)\s+(?:known as|called|named)?\s*{NAME}"),
        format!(r"(?i){NAME}\s*[(,]\s*(?:aka|a\.k\.a\.|also known as|also called|nicknamed|code-?named?)\s+{NAME}"),
        format!(r"(?i){NAME}\s+(?:is|are)\s+(?:now|nowadays)\s+(?:called|named|known as)\s+{NAME}"),
        format!(r"(?i){NAME}\s+(?:used to be|was)\s+(?:called|named|known as)\s+{NAME}"),
        format!(r"(?i){NAME}\s+(?:stands for|is short for)\s+{NAME}"),
        format!(r"{NAME}\s*(?:现在)?(?:已经|已)?(?:改名为|更名为|改名叫|重命名为|改叫|现在叫|现称)\s*{NAME}"),
        format!(r"{NAME}\s*[（(，,]?\s*(?:原名|旧名|以前叫|曾用名|原来叫|又名|也叫)\s*{NAME}"),
        format!(r"{NAME}\s*[(,]\s*(?:이전 이름|옛 이름|구명칭|예전 이름)(?:은|:)?\s*{NAME}"),
    ]
    .iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

/// Words that make the sentence worth a closer look.
const HINTS: [&str; 22] = [
    "enamed",
    "ename ",
    "ormerly",
    "reviously",
    "riginally",
    "aka ",
    "a.k.a",
    "also known",
    "also called",
    "icknamed",
    "odename",
    "ode-name",
    "now called",
    "now named",
    "now known",
    "used to be",
    "was called",
    "short for",
    "stands for",
    "名",
    "叫",
    "이름",
];

/// The pairs of names a text says mean the same, as they stand in the index.
pub(crate) fn find(text: &str, splitter: &Splitter) -> Vec<(String, String)> {
    let text = &text[..text.floor_char_boundary(LOOKED_AT)];
    let mut found = Vec::new();
    if !HINTS.iter().any(|hint| text.contains(hint)) {
        return found;
    }
    for captures in PATTERNS.iter().flat_map(|pattern| pattern.captures_iter(text)) {
        let name = |at: usize| captures.get(at).and_then(|name| as_term(name.as_str(), splitter));
        if let (Some(one), Some(other)) = (name(1), name(2))
            && one != other
        {
            found.push((one, other));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// A name as it stands in the index, if it is a name and no ordinary word.
fn as_term(name: &str, splitter: &Splitter) -> Option<String> {
    let tokens = splitter.split(name);
    let compound = tokens.iter().find(|token| token.form == Form::Compound);
    let token = compound.or_else(|| tokens.iter().find(|token| !token.stop && token.form == Form::Word))?;
    let ordinary = super::lexicon::LEXICON.is_common(&token.text) || !token.concepts.is_empty();
    (!ordinary && token.text.len() >= 2).then(|| token.text.clone())
}
