//! Two memories about the same: the newer stands before the older.
//!
//! Whether two texts contradict each other cannot be known without a model, and titles that look alike say nothing. Two
//! things can be known. That they are **kin**: the shorter's words are for a good part the other's, or one's description says
//! all that the other's says; then the newer may be a correction, and comes first and together with the older. And that they are **twins**: one is the
//! other with a value changed, the same words but for numbers, names in quotes and code; then the older is overtaken.

use super::corpus::{Corpus, Term};
use super::words::{Form, Splitter};

/// How much of the shorter memory's weight of words the other must have. Chosen by looking at all pairs of the first four
/// sets and of the month in `benches`: of those that correct one another all but two have 0.41 and more, others 0.39 and less.
pub(crate) const KIN: f32 = 0.4;

/// A memory of more words than this is about many things.
const MOST: usize = 400;

/// How alike the words of twins are: hardly one of ten may differ.
const ALIKE: f32 = 0.9;

/// Fewer words than this say nothing about likeness.
const FEWEST: usize = 4;

/// One word of a description names a field, two name a subject.
const SUBJECT: usize = 2;

/// How much of a text is compared, in bytes.
const LONGEST: usize = 2_000;

/// A text without the values in it: its words, hashed and sorted.
pub(crate) fn gist(text: &str, splitter: &Splitter) -> Vec<u64> {
    let mut gist = Vec::new();
    for said in without_quoted(&text[..text.floor_char_boundary(LONGEST)]) {
        splitter.each(said, |token| {
            if !token.stop && token.form != Form::Number {
                gist.push(hash(&token.text));
            }
        });
    }
    gist.sort_unstable();
    gist.dedup();
    gist.shrink_to_fit();
    gist
}

/// Whether two memories are about the same.
pub(crate) fn are_kin(one: usize, other: usize, corpus: &Corpus) -> bool {
    let (one, other) = (&corpus.docs[one], &corpus.docs[other]);
    let (ones, others) = (one.own(), other.own());
    if [&ones, &others].iter().any(|terms| !(FEWEST..=MOST).contains(&terms.len())) {
        return false;
    }
    if have_one_subject(&one.about, &other.about) {
        return true;
    }
    let worth = |terms: &mut dyn Iterator<Item = &Term>| -> f32 { terms.map(|term| corpus.worth(*term)).sum() };
    let shared = worth(&mut ones.iter().filter(|term| others.binary_search(term).is_ok()));
    shared >= KIN * worth(&mut ones.iter()).min(worth(&mut others.iter()))
}

/// Whether one description has all words of the other.
fn have_one_subject(one: &[Term], other: &[Term]) -> bool {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.len() >= SUBJECT && few.iter().all(|term| many.binary_search(term).is_ok())
}

/// Whether one is the other with other values.
pub(crate) fn are_twins(one: &[u64], other: &[u64]) -> bool {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    if few.len() < FEWEST || (few.len() as f32) < ALIKE * many.len() as f32 {
        return false;
    }
    let shared = few.iter().filter(|word| many.binary_search(word).is_ok()).count();
    shared as f32 >= ALIKE * (one.len() + other.len() - shared) as f32
}

/// What stands before, between and after what is quoted.
fn without_quoted(text: &str) -> Vec<&str> {
    let mut said = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '"', '“', '「']) {
        let (before, quoted) = rest.split_at(at);
        said.push(before);
        let open = quoted.chars().next().unwrap_or('`');
        let close = match open {
            '“' => '”',
            '「' => '」',
            same => same,
        };
        let inside = &quoted[open.len_utf8()..];
        // A quotation ends on its line; what is not closed is none.
        let line = inside.split('\n').next().unwrap_or_default();
        rest = match line.find(close) {
            Some(end) => &inside[end + close.len_utf8()..],
            None => inside,
        };
    }
    said.push(rest);
    said
}

fn hash(word: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    word.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twins(one: &str, other: &str) -> bool {
        let splitter = Splitter::new();
        are_twins(&gist(one, &splitter), &gist(other, &splitter))
    }

    #[test]
    fn a_description_that_says_all_of_another_has_its_subject() {
        assert!(have_one_subject(&[3, 7], &[1, 3, 7]) && have_one_subject(&[1, 3, 7], &[3, 7]));
        assert!(!have_one_subject(&[3, 8], &[1, 3, 7]), "a word of its own");
        assert!(!have_one_subject(&[3], &[3, 7]), "one word is a field");
    }

    /// RECALL-10: a value that changed makes no other memory; another subject does.
    #[test]
    fn texts_that_differ_in_their_values_are_twins_and_others_are_not() {
        let port = "The web client listens on port `3000` in local development.";
        assert!(twins(port, "The web client listens on port `5173` in local development."));
        assert!(twins("Uploads may be 25 MB large at most today", "Uploads may be 100 MB large at most today"));
        assert!(!twins(port, "The mobile client listens on port `3000` in local development."));
        assert!(!twins("Deploys", "Deploys"), "too short to say");
        assert!(!twins("An open \"quote stays text here for long", "Another one without any of it at all"));
    }
}
