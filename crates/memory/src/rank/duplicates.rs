//! Memories about the same subject, of which the newer comes before the older.
//!
//! Contradictions between two texts cannot be found without a model. Two things can. Memories that say the same but for
//! their **values** (numbers, quotes and code) have one [`gist`]: the newest stands for all of them, and the older ones
//! are named with it, since some may still be valid. And memories **about the same subject** by their names and
//! descriptions may correct one another: of those that are surfaced anyway the newer comes first.

use super::corpus::{Corpus, Term};
use super::dates;
use super::words::{Form, Splitter};

/// Share of their titles that two memories must have in common. Between 0.18 and 0.22 nothing changes on any set.
const SHARED: f32 = 0.2;

/// Texts with fewer words are not compared.
const FEWEST: usize = 4;

/// Bytes of a text that are compared word by word; the rest must be identical.
const LONGEST: usize = 2_000;

/// Hash of a text without the values in it; `None` for a text that says too little.
pub(crate) fn gist(text: &str, splitter: &Splitter) -> Option<u64> {
    let (compared, rest) = text.split_at(text.floor_char_boundary(LONGEST));
    let mut words = Vec::new();
    for said in without_quoted(compared) {
        splitter.each(said, |token| {
            if !token.stop && token.form != Form::Number {
                words.push(hash(FIRST, token.text.as_bytes()));
            }
        });
    }
    words.sort_unstable();
    words.dedup();
    let gist = words.iter().fold(FIRST, |gist, word| hash(gist, &word.to_le_bytes()));
    (words.len() >= FEWEST).then(|| hash(gist, rest.as_bytes()))
}

/// Words of a memory's title, without numbers and dates.
pub(crate) fn called(title: &str, splitter: &Splitter) -> Vec<String> {
    let mut undated = title.to_owned();
    for mention in dates::mentions(title) {
        undated.replace_range(mention.range.clone(), &" ".repeat(mention.range.len()));
    }
    let mut words = Vec::new();
    splitter.each(&undated, |token| {
        if !token.stop && !token.text.starts_with(|c: char| c.is_ascii_digit()) {
            words.push(token.text.to_string());
        }
    });
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns true if two memories are about the same subject, by their titles. Words that many memories share weigh
/// little.
pub(crate) fn are_about_the_same(one: &[Term], other: &[Term], corpus: &Corpus) -> bool {
    let weight = |terms: &mut dyn Iterator<Item = &Term>| -> f32 { terms.map(|term| corpus.rarity_here(*term)).sum() };
    let both = weight(&mut one.iter().filter(|term| other.binary_search(term).is_ok()));
    let either = weight(&mut one.iter()) + weight(&mut other.iter()) - both;
    both > 0.0 && both >= SHARED * either
}

/// The parts of a text before, between and after quotations.
fn without_quoted(text: &str) -> Vec<&str> {
    let mut said = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(found) = text[at..].find(['`', '"', '\'', '“', '「']) {
        let open = at + found;
        let mark = text[open..].chars().next().unwrap_or('`');
        let inside = open + mark.len_utf8();
        at = inside;
        // An apostrophe is no quotation mark.
        if mark == '\'' && text[..open].ends_with(char::is_alphanumeric) {
            continue;
        }
        if let Some(end) = closed(&text[inside..], mark) {
            said.push(&text[from..open]);
            (from, at) = (inside + end, inside + end);
        }
    }
    said.push(&text[from..]);
    said
}

/// End of a quotation, after its closing mark. It ends on its line; an unclosed one is no quotation.
fn closed(inside: &str, open: char) -> Option<usize> {
    let close = match open {
        '“' => '”',
        '「' => '」',
        same => same,
    };
    let line = inside.split('\n').next().unwrap_or_default();
    let ends = |at: &usize| close != '\'' || !line[at + 1..].starts_with(char::is_alphanumeric);
    line.match_indices(close).map(|(at, _)| at).find(ends).map(|at| at + close.len_utf8())
}

/// Initial value of FNV.
const FIRST: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_one(one: &str, other: &str) -> bool {
        let splitter = Splitter::new();
        let one = gist(one, &splitter);
        one.is_some() && one == gist(other, &splitter)
    }

    /// RECALL-10: a changed value makes no other memory; another subject does.
    #[test]
    fn texts_that_differ_in_their_values_have_one_gist_and_others_do_not() {
        let port = "The web client listens on port `3000` in local development.";
        assert!(are_one(port, "The web client listens on port `5173` in local development."));
        assert!(are_one("Uploads may be 25 MB large at most today", "Uploads may be 100 MB large at most today"));
        assert!(are_one("Name the handler of users 'on_user', always", "Name the handler of users 'handle', always"));
        assert!(!are_one(port, "The mobile client listens on port `3000` in local development."));
        assert!(!are_one("Deploys", "Deploys"), "too short to say");
        assert!(!are_one("An open \"quote stays text here for long", "Another one without any of it at all"));
        let own = "the reviewer's branch and the author's branch are merged";
        assert!(!are_one(own, "the reviewer's notes and the author's branch are merged"), "no quotation");
        let long = "one two three four five six ".repeat(100);
        assert!(!are_one(&format!("{long} 1"), &format!("{long} 2")), "beyond what is compared word by word");
    }

    #[test]
    fn what_a_memory_is_called_has_no_numbers_and_no_dates() {
        let words = called("Freeze of 2025-10-09, 5 March: version 3.2 of ledger", &Splitter::new());
        assert_eq!(words, ["freez", "ledger", "version"]);
    }
}
