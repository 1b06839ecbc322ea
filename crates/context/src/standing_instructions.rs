//! Standing instructions: sentences in which the user forbids or requires something for good.
//!
//! "Never push to main." has to hold after any number of compactions, in the user's own words: a summary may drop or
//! soften it. Such sentences are recognised by their words alone. One too many costs a few tokens; one that is missed
//! costs trust, so a doubtful one counts.

use transcript::Id;

/// A sentence of the user's that holds until the user lifts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingInstruction {
    /// The sentence, word for word.
    pub text: String,
    /// The line of its message.
    pub line: Id,
}

/// Length of the longest sentence that counts; longer ones are pasted text.
const LONGEST: usize = 600;

/// Phrases that forbid or require something anywhere in a sentence.
const ANYWHERE: [&str; 44] = [
    "under no circumstances",
    "under any circumstances",
    "in no case",
    "at no point",
    "no matter what",
    "not allowed",
    "not permitted",
    "forbidden",
    "prohibited",
    "off limits",
    "off-limits",
    "must",
    "mustn't",
    "shall not",
    "should not",
    "shouldn't",
    "may not",
    "needn't",
    "refrain from",
    "hands off",
    "without asking",
    "without my",
    "unless i",
    "ask me",
    "ask first",
    "ask before",
    "check with me",
    "confirm with me",
    "my approval",
    "my permission",
    "my consent",
    "my ok",
    "wait for my",
    "from now on",
    "from here on",
    "at all times",
    "every time",
    "make sure",
    "be sure to",
    "ever again",
    "i don't want you to",
    "i do not want you to",
    "no longer",
    "strictly",
];

/// Phrases that do so at the beginning of a clause; elsewhere they report something.
const AT_START: [&str; 24] = [
    "do not",
    "don't",
    "dont",
    "don’t",
    "avoid",
    "stop",
    "leave",
    "keep",
    "only",
    "no",
    "remember",
    "require",
    "use only",
    "stick to",
    "stay out",
    "stay away",
    "work only",
    "write only",
    "touch only",
    "change only",
    "ask",
    "refuse",
    "exclude",
    "ignore",
];

/// Adverbs that do so in an order, but not in a description.
const ADVERBS: [&str; 2] = ["never", "always"];

/// Phrases in other languages that do so anywhere in a sentence.
const ELSEWHERE: [&str; 22] = [
    "nie",
    "niemals",
    "immer",
    "keinesfalls",
    "auf keinen fall",
    "verboten",
    "darf nicht",
    "bitte nicht",
    "nicht ohne",
    "muss",
    "müssen",
    "jamais",
    "toujours",
    "interdit",
    "ne pas",
    "nunca",
    "jamás",
    "siempre",
    "prohibido",
    "mai",
    "sempre",
    "nooit",
];

/// Words that may stand before the beginning of a clause.
const LEADING: [&str; 16] = [
    "please",
    "and",
    "but",
    "also",
    "then",
    "so",
    "just",
    "ok",
    "okay",
    "oh",
    "note",
    "important",
    "rule",
    "remember",
    "now",
    "well",
];

/// Words before such an adverb that make it an order.
const BEFORE_ORDER: [&str; 14] =
    ["you", "we", "please", "must", "should", "shall", "to", "and", "but", "will", "or", "can", "may", "i'd"];

/// Words that begin a question.
const ASKING: [&str; 22] = [
    "why", "how", "what", "which", "who", "whose", "where", "when", "is", "are", "was", "were", "does", "do", "did",
    "has", "have", "had", "isn't", "aren't", "doesn't", "didn't",
];

/// The sentences of a text that forbid or require something, word for word, each once.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for sentence in split(text) {
        if sentence.len() <= LONGEST && is_standing(sentence) && !found.contains(&sentence) {
            found.push(sentence);
        }
    }
    found
}

/// Phrases by which the user lifts an earlier instruction.
const LIFTS: [&str; 14] = [
    "you may",
    "you can now",
    "you are allowed",
    "no longer applies",
    "no longer holds",
    "lift",
    "forget that",
    "forget the rule",
    "never mind",
    "allowed again",
    "is fine now",
    "is ok now",
    "is okay now",
    "feel free to",
];

/// Words too common to tell the subject of an instruction.
const COMMON: [&str; 26] = [
    "never", "always", "must", "should", "shall", "please", "without", "before", "until", "under", "from", "that",
    "this", "with", "your", "when", "they", "them", "then", "only", "ever", "again", "first", "have", "don't", "does",
];

/// True if a sentence lifts an instruction: it says so, and is about the same subject.
pub(crate) fn lifts(sentence: &str, instruction: &str) -> bool {
    let lower = sentence.to_lowercase();
    if !LIFTS.iter().any(|phrase| has_phrase(&lower, phrase)) {
        return false;
    }
    let instruction = instruction.to_lowercase();
    let about: Vec<&str> = instruction
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|word| word.chars().count() > 3 && !COMMON.contains(word))
        .collect();
    let same = about.iter().filter(|word| has_phrase(&lower, word)).count();
    !about.is_empty() && same * 3 >= about.len() * 2
}

/// The sentences of a text: they end at a full stop, a mark or a line's end. Code between fences has none.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        if is_code {
            continue;
        }
        let mut from = 0;
        for (at, mark) in line.char_indices().filter(|(_, c)| ".!?;".contains(*c)) {
            let end = at + mark.len_utf8();
            // A dot in a name or a number is none that ends a sentence.
            if line[end..].chars().next().is_none_or(char::is_whitespace) {
                sentences.push(line[from..end].trim());
                from = end;
            }
        }
        sentences.push(line[from..].trim());
    }
    sentences.retain(|sentence| sentence.chars().filter(|c| c.is_alphabetic()).count() > 3);
    sentences
}

fn is_standing(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let words: Vec<&str> =
        lower.split(|c: char| !(c.is_alphanumeric() || c == '\'')).filter(|w| !w.is_empty()).collect();
    if sentence.ends_with('?') && words.first().is_some_and(|first| ASKING.contains(first)) {
        return false;
    }
    let has = |phrase: &str| has_phrase(&lower, phrase);
    ANYWHERE.iter().chain(&ELSEWHERE).any(|phrase| has(phrase)) || starts_clause(&lower) || orders(&words)
}

/// True if a text contains a phrase as whole words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '\'';
    text.match_indices(phrase).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_word)
            && !text[at + phrase.len()..].chars().next().is_some_and(is_word)
    })
}

/// True if a clause begins with a phrase that forbids or requires.
fn starts_clause(text: &str) -> bool {
    text.split([',', ':', '(', '–', '—']).any(|clause| {
        let mut clause = clause.trim_start_matches(|c: char| !c.is_alphanumeric());
        while let Some(rest) = LEADING.iter().find_map(|word| {
            let rest = clause.strip_prefix(word)?;
            rest.starts_with(|c: char| !c.is_alphanumeric() && c != '\'').then_some(rest)
        }) {
            clause = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        }
        AT_START.iter().any(|start| {
            clause
                .strip_prefix(start)
                .is_some_and(|rest| rest.starts_with(char::is_whitespace) && !is_known_talk(start, rest))
        })
    })
}

/// True for phrases that begin like an order but are none.
fn is_known_talk(start: &str, rest: &str) -> bool {
    let rest = rest.trim_start();
    let begins = |words: &[&str]| words.iter().any(|word| rest.starts_with(word));
    match start {
        "no" => begins(&[
            "idea", "problem", "worries", "need", "way", "one", "thanks", "thank", "it", "that", "this", "i ", "we ",
            "longer",
        ]),
        "leave" | "keep" => {
            !(has_phrase(rest, "alone")
                || has_phrase(rest, "untouched")
                || has_phrase(rest, "as it is")
                || has_phrase(rest, "as they are")
                || has_phrase(rest, "out of")
                || has_phrase(rest, "away")
                || has_phrase(rest, "in place"))
        }
        "don't" | "do not" | "dont" => begins(&["worry", "know", "you think", "understand", "we "]),
        _ => false,
    }
}

/// True if "never" or "always" is part of an order: at the beginning of a clause, after a word that addresses somebody,
/// or before a verb that is no statement about a third party.
fn orders(words: &[&str]) -> bool {
    words.iter().enumerate().filter(|(_, word)| ADVERBS.contains(word)).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        let next = words.get(at + 1).copied().unwrap_or_default();
        let tells =
            (next.ends_with('s') && !next.ends_with("ss")) || next.ends_with("ed") || ["been", "had"].contains(&next);
        match before {
            None => true,
            Some(before) if BEFORE_ORDER.contains(before) || LEADING.contains(before) => true,
            Some(before) => {
                !tells && !["i", "it", "that", "this", "he", "she", "has", "have", "had", "was"].contains(before)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KEEP-1: what the user forbids or requires is found in the user's words, and what only tells of something is not.
    #[test]
    fn prohibitions_and_requirements_are_found() {
        for text in [
            "Never push to main.",
            "never touch the vendor folder",
            "Do not edit anything below `legacy/`.",
            "Please don't use unwrap.",
            "Always ask before running a migration.",
            "You must not contact production.",
            "Ask me first if it costs money.",
            "Under no circumstances delete snapshots.",
            "No force pushes.",
            "Only use tabs.",
            "Leave config.toml alone.",
            "Commits should never contain secrets.",
            "From now on, write tests first.",
            "The generated files are off limits.",
            "Avoid adding dependencies.",
            "Could you please never rebase shared branches?",
            "Niemals auf main pushen.",
            "I don't want you to touch the schema.",
            "And: never log a token!",
            "Keep the public API untouched.",
            "Make sure the tests pass before you commit.",
            "Stop reformatting files you did not change.",
        ] {
            assert_eq!(sentences(text), [text], "{text}");
        }
        for text in [
            "Why does it never finish?",
            "The server always returns 500.",
            "I don't know what it does.",
            "It never worked for me.",
            "The tests do not pass.",
            "No problem.",
            "Keep going.",
            "Look at main.rs and mend the parser.",
            "Does it always do that?",
        ] {
            assert_eq!(sentences(text), Vec::<&str>::new(), "{text}");
        }
    }

    /// KEEP-1: the user lifts an instruction by saying so about the same matter, and by nothing else.
    #[test]
    fn an_instruction_is_lifted_by_saying_so() {
        let instruction = "Never push to main.";
        for text in ["You may push to main now.", "The rule never to push to main no longer applies."] {
            assert!(lifts(text, instruction), "{text}");
        }
        for text in ["Push the button on the main page.", "You may delete the cache.", "Why can I not push to main?"] {
            assert!(!lifts(text, instruction), "{text}");
        }
    }

    /// KEEP-1: a sentence is taken as it stands, out of whatever stands around it; code is none.
    #[test]
    fn a_sentence_is_taken_word_for_word() {
        let text = "Mend v1.2 of the parser. Never touch `src/lib.rs`, not even once! Thanks.\n- always ask before deleting\n\
                    ```\nnever();\n// always do this\n```\nNever touch `src/lib.rs`, not even once!";
        assert_eq!(sentences(text), ["Never touch `src/lib.rs`, not even once!", "- always ask before deleting"]);
    }
}
