//! Standing instructions: sentences in which the user forbids or requires something for good.
//!
//! "Never push to main." has to hold after any number of compactions, in the user's own words: a summary may drop or
//! soften it. Such sentences are recognised by their words alone. One too many costs a few tokens; one that is missed
//! costs trust, so a doubtful one counts, and whatever else the user typed is kept as long as there is room.

mod phrases;
mod sentence;
mod spelling;
mod wording;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;

use transcript::Id;

pub(crate) use sentence::split;

/// Strength of an instruction. Where there is not room for all, the strongest stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// No sign of a rule: "Rename foo to bar."
    Possible,
    /// A sign of a rule: "Tests live next to the code."
    Likely,
    /// "Always run the tests."
    Requires,
    /// "Never push to main."
    Forbids,
}

impl Strength {
    /// True if the wording leaves no doubt. The user is shown only these.
    pub fn is_certain(self) -> bool {
        self >= Self::Requires
    }
}

/// A sentence of the user's that holds, or may hold, until the user lifts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingInstruction {
    /// The sentence, word for word.
    pub text: String,
    /// Its strength.
    pub strength: Strength,
    /// The line of its message.
    pub line: Id,
}

impl StandingInstruction {
    /// The sentence with blanks for its line breaks, to show it in a list.
    pub fn on_one_line(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Bytes that it takes in a list, with its line break.
    pub(crate) fn size(&self) -> usize {
        self.text.len() + 1
    }
}

/// Limit on other words that are remembered, in bytes: more than a compaction leaves in view by itself, so that what it
/// no longer leaves is still known.
pub(crate) const MOST_REMEMBERED: usize = 60_000;

/// Drops the weakest and oldest of the user's other words where there are more than are remembered.
pub(crate) fn forget_weakest(other_words: &mut Vec<StandingInstruction>) {
    if other_words.iter().map(StandingInstruction::size).sum::<usize>() > MOST_REMEMBERED {
        *other_words = strongest(&*other_words, MOST_REMEMBERED).into_iter().cloned().collect();
    }
}

/// The strongest of them that fit into a room, the newest first, in the order they were given.
pub(crate) fn strongest<'s>(
    all: impl IntoIterator<Item = &'s StandingInstruction>,
    room: usize,
) -> Vec<&'s StandingInstruction> {
    let all: Vec<&StandingInstruction> = all.into_iter().collect();
    let mut left = room;
    let mut kept: Vec<usize> = (0..all.len()).rev().collect();
    kept.sort_by_key(|&at| Reverse(all[at].strength));
    kept.retain(|&at| {
        let rest = left.checked_sub(all[at].size());
        left = rest.unwrap_or(0);
        rest.is_some()
    });
    kept.sort_unstable();
    kept.into_iter().map(|at| all[at]).collect()
}

/// Length from which on a message is taken for pasted text: what its wording leaves in doubt counts less.
const PASTED: usize = 4_000;

/// The sentences of a text that forbid or require something, or may, word for word, each once.
pub fn sentences(text: &str) -> Vec<(&str, Strength)> {
    let mut found: Vec<(Range<usize>, Strength)> = Vec::new();
    let is_pasted = text.len() > PASTED;
    for sentence in split(text).into_iter().filter(|one| one.text.len() <= sentence::LONGEST) {
        let own = match wording::strength(sentence.text) {
            Some(strength) if strength.is_certain() && sentence.is_quoted => Some(Strength::Likely),
            Some(Strength::Requires) if permission(sentence.text).is_some() => Some(Strength::Likely),
            Some(Strength::Likely) if is_pasted => Some(Strength::Possible),
            Some(Strength::Possible) if is_pasted => None,
            strength => strength,
        };
        let lead = sentence.lead.as_ref().map(|lead| &text[lead.clone()]);
        let of_list = lead.and_then(|lead| wording::strength_of_list(lead).filter(|_| !is_pasted));
        match found.last_mut() {
            // "Never touch: …" is nothing without what follows.
            Some((range, strength))
                if of_list.is_some()
                    && strength.is_certain()
                    && sentence.lead.as_ref().is_some_and(|lead| lead.start == range.start)
                    && sentence.range.end - range.start <= sentence::LONGEST =>
            {
                range.end = sentence.range.end;
            }
            _ => found.extend(own.max(of_list).map(|strength| (sentence.range, strength))),
        }
    }
    let mut known = HashSet::new();
    let texts = found.into_iter().map(|(range, strength)| (&text[range], strength));
    texts.filter(|(sentence, _)| known.insert(*sentence)).collect()
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

/// Phrases by which the user lifts a requirement. They lift no prohibition: "you don't have to push" is no leave to push.
const SPARES: [&str; 3] = ["you don't need to", "you don't have to", "you needn't"];

/// Words after such a phrase that make a restriction of it.
const RESTRICTS: [&str; 3] = [" not ", " never ", " only "];

/// Words that make a permission one for a certain case: the rule still holds in all others.
const CONDITIONS: [&str; 10] =
    ["if", "unless", "when", "once", "until", "after", "as long as", "provided", "in case", "this time"];

/// Words too common to tell the subject of an instruction.
const COMMON: [&str; 26] = [
    "never", "always", "must", "should", "shall", "please", "without", "before", "until", "under", "from", "that",
    "this", "with", "your", "when", "they", "them", "then", "only", "ever", "again", "first", "have", "don't", "does",
];

/// A permission that holds from now on, whatever the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// "You may push to main now."
    ToDo,
    /// "You don't need to ask before you commit."
    ToOmit,
}

impl Permission {
    /// True if it may lift an instruction of this strength.
    pub(crate) fn lifts(self, strength: Strength) -> bool {
        self == Self::ToDo || strength == Strength::Requires
    }
}

/// The permission that a sentence gives.
pub(crate) fn permission(sentence: &str) -> Option<Permission> {
    let text = spelling::one_spelling(sentence);
    if sentence.ends_with('?') || CONDITIONS.iter().any(|phrase| after_phrase(&text, phrase).next().is_some()) {
        return None;
    }
    let is_said =
        |phrase: &&str| after_phrase(&text, phrase).any(|rest| !RESTRICTS.iter().any(|word| rest.starts_with(word)));
    let to_omit = || SPARES.iter().any(is_said).then_some(Permission::ToOmit);
    LIFTS.iter().any(is_said).then_some(Permission::ToDo).or_else(to_omit)
}

/// True if a permission is about the same subject as an instruction.
pub(crate) fn is_about(sentence: &str, instruction: &str) -> bool {
    let (lower, instruction) = (sentence.to_lowercase(), instruction.to_lowercase());
    let about: Vec<&str> = instruction
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|word| word.chars().count() > 3 && !COMMON.contains(word))
        .collect();
    let same = about.iter().filter(|word| after_phrase(&lower, word).next().is_some()).count();
    !about.is_empty() && same * 3 >= about.len() * 2
}

/// The rests of a text behind a phrase, wherever it stands as whole words.
fn after_phrase<'text>(text: &'text str, phrase: &str) -> impl Iterator<Item = &'text str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '\'';
    let length = phrase.len();
    text.match_indices(phrase)
        .map(move |(at, _)| (&text[..at], &text[at + length..]))
        .filter_map(move |(before, after)| (!before.ends_with(is_word) && !after.starts_with(is_word)).then_some(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        let certain = sentences(text).into_iter().filter(|(_, strength)| strength.is_certain());
        certain.map(|(sentence, _)| sentence).collect()
    }

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
            "If a test is flaky do not disable it.",
            "It is important that you do not delete the logs.",
            "You are not to modify the schema.",
            "Nothing under vendor/ is to be changed.",
            "In this team nobody disables a lint rule inline.",
            "Treat the migrations folder as read-only.",
            "The `legacy` package shall remain untouched.",
            "Run anything destructive by me first.",
            "Before deleting any file, ask.",
            "Deployments only after I say so.",
            "Tests have to pass before each commit.",
            "Use pnpm, not npm.",
            "We don't use mocks in this repo.",
            "Make no changes to the lockfile.",
            "do everything without touching the database",
            "pls dont edit package-lock.json",
            "Ne touche jamais à la base de production.",
            "No toques la rama main.",
            "Перед каждым коммитом обязательно запускай тесты.",
            "不要推送到主分支。",
            "Could you please not rebase shared branches?",
            "don't spend more than $5 on calls ok?",
            "cada vez que cambies el esquema, actualiza el diagrama vale?",
            "And you do NOT reset my branch again, got it?",
            "The nginx is shared so no restarting it, not today not next week.",
            "alwyas quote shell variables pls",
            "Force pushing is taboo.",
            "It's not ok to disable a test.",
            "Steer clear of global state.",
            "Nothing from the `patients` schema may leave this machine.",
            "Nothing gets merged without a green build.",
            "Only Lisa deploys.",
            "Could you get into the habit of running the linter?",
            "Keep your answers under ten lines.",
            "La carpeta migrations ni se toca, ¿vale?",
            "An der Datenbank wird nichts geändert.",
            "Не трогай папку vendor.",
            "設定ファイルは触らないこと。",
        ] {
            assert_eq!(texts(text), [text], "{text}");
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
            "The tests don't pass on Windows.",
            "I've never seen this error before.",
            "There must be a limit somewhere.",
            "It must have been called twice.",
            "The bug appears only on Safari.",
            "Why don't we use async here?",
            "Use the existing logger for this.",
            "Rename foo to bar in all files.",
            "We always used Redis for that until last spring.",
            "Add an error message saying \"You must be logged in\".",
            "Write a section that explains why one should never store passwords.",
            "The docs say \"callers must not hold the lock\".",
            "In this change, rename `always_flush` to `flush_policy`.",
            "Previously the rule was that nobody touches vendor.",
            "Don't forget to add the import.",
            "I should have asked you before I upgraded.",
            "The old intern would never write tests.",
            "error: you must specify an input",
            "no tests were found",
            "Only now did I notice it.",
            "Don't tell me it was the cache again!",
            "For the demo tonight, make sure the button is blue.",
            "Never mind, found it.",
            "You don't need to ask before committing.",
            "Das hat unter Windows noch nie funktioniert.",
        ] {
            assert_eq!(texts(text), Vec::<&str>::new(), "{text}");
        }
    }

    /// KEEP-1: words of the user's that may be a rule are known as such, those with a sign of one before the others;
    /// questions, thanks, code and what a program printed are not.
    #[test]
    fn what_may_be_a_rule_is_kept_apart() {
        let strengths = |text| sentences(text).into_iter().map(|(_, strength)| strength).collect::<Vec<_>>();
        for text in [
            "README.md is written by hand.",
            "commits are signed here",
            "All money amounts are integers in cents.",
            "PAY-1234 stays open.",
            "prod.yml belongs to Kim",
            "Can we keep the old name?",
            "> Never round before the last step.",
        ] {
            assert_eq!(strengths(text), [Strength::Likely], "{text}");
        }
        for text in ["tests live next to the code", "Rename foo to bar.", "Tabs, four wide.", "Αλλάξτε το όνομα."]
        {
            assert_eq!(strengths(text), [Strength::Possible], "{text}");
        }
        for text in [
            "Why does it keep failing?",
            "Does the schema never change?",
            "Why must this always be clear?",
            "Thanks a lot!",
            "ok",
            "Hello there.",
            "error: every item must have a name",
            "if (x) { return f(x); }",
            "```\nkeep this\n```",
        ] {
            assert_eq!(strengths(text), [], "{text}");
        }
        assert_eq!(strengths(&"Look at all of it. Mend the parser. ".repeat(200)), [Strength::Possible]);
    }

    /// KEEP-1: the items of a list are forbidden or required by the line above it, and stay with it where that is short.
    #[test]
    fn a_list_is_ruled_by_the_line_above_it() {
        let list = "Never touch:\n- vendor/\n- legacy/";
        assert_eq!(texts(&format!("Hi.\n{list}\n\nMend it.")), [list]);
        assert_eq!(
            texts("## House rules\n- four blanks\n- British spelling\n\nDo:\n- mend it"),
            ["four blanks", "British spelling"]
        );
        let long = format!("Never touch:\n{}", "- the folder of the colleagues next door\n".repeat(50));
        assert!(texts(&long).iter().all(|text| text.len() <= sentence::LONGEST));
    }

    /// KEEP-1: the user lifts an instruction by saying so about the same matter, and by nothing else.
    #[test]
    fn an_instruction_is_lifted_by_saying_so() {
        let instruction = "Never push to main.";
        let lifts = |text: &str, strength: Strength, instruction: &str| {
            permission(text).is_some_and(|permission| permission.lifts(strength)) && is_about(text, instruction)
        };
        for text in ["You may push to main now.", "The rule never to push to main no longer applies."] {
            assert!(lifts(text, Strength::Forbids, instruction), "{text}");
        }
        assert!(lifts("you dont need to ask before you commit", Strength::Requires, "Always ask before you commit."));
        for text in [
            "Push the button on the main page.",
            "You may delete the cache.",
            "Why can I not push to main?",
            "You may never push to main.",
            "You may push to main if CI is green.",
            "You may push to main this time.",
            "Do you think you may push to main?",
            "You don't have to push to main.",
        ] {
            assert!(!lifts(text, Strength::Forbids, instruction), "{text}");
        }
    }

    /// KEEP-1: a sentence is taken as it stands, out of whatever stands around it; code is none.
    #[test]
    fn a_sentence_is_taken_word_for_word() {
        let text = "Mend v1.2 of the parser. Never touch `src/lib.rs`, not even once! Thanks.\n- always ask before deleting\n\
                    ```\nnever();\n// always do this\n```\nNever touch `src/lib.rs`, not even once!";
        assert_eq!(texts("先看日志。不要推送！谢谢"), ["不要推送！"]);
        assert_eq!(texts(text), ["Never touch `src/lib.rs`, not even once!", "always ask before deleting"]);
    }
}
