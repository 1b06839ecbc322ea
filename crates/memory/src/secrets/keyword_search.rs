//! Position of the keyword in a match.
//!
//! Running every rule whose keyword is in a text over all of that text is what makes scanners slow: half of all source
//! files have a `key` somewhere. But nearly every rule's match must hold one of its keywords, at a known distance from
//! its start. This is derived from the expression itself, so that a rule is tried at its keyword and nowhere else. If
//! it cannot be derived, there is no pin, and the whole text is searched.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassBytes, Hir, HirKind};

/// Limit on the offsets before a keyword at which a match is tried.
const MOST_STARTS: usize = 64;

/// Limit on the texts that are enumerated.
const MOST_WORDS: usize = 256;

/// Limit on the letters of a class that is enumerated.
const MOST_LETTERS: usize = 4;

/// Plan for trying a rule at a keyword.
#[derive(Debug, Clone)]
pub(super) struct KeywordSearch {
    /// The rule without its lead, anchored at the start of a text. It has the rule's groups.
    pub(super) probe: String,
    /// Least and greatest number of bytes of the probe before the keyword.
    pub(super) before: (usize, usize),
    /// Bytes with which the probe can begin.
    pub(super) first: [bool; 256],
    /// Part of a match that may precede the probe.
    pub(super) lead: Option<Lead>,
}

/// The start of an expression that may be empty: some bytes of a class, such as the rest of a variable's name.
#[derive(Debug, Clone)]
pub(super) struct Lead {
    class: ClassBytes,
    most: usize,
}

impl Lead {
    /// Start of a match, given the start of its probe.
    pub(super) fn start(&self, text: &[u8], probe: usize) -> usize {
        let fits = |byte: &u8| self.class.iter().any(|range| (range.start()..=range.end()).contains(byte));
        probe - text[..probe].iter().rev().take(self.most).take_while(|byte| fits(byte)).count()
    }
}

/// Derives the plan for trying a rule at its keywords; `None` if a match need not hold one, or not near its start.
pub(super) fn pin(pattern: &str, keywords: &[String]) -> Option<KeywordSearch> {
    let hir = ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok()?;
    let (lead, rest) = lead(&hir).map_or((None, hir.clone()), |(lead, rest)| (Some(lead), rest));
    let keywords: Vec<String> = keywords.iter().map(|keyword| keyword.to_ascii_lowercase()).collect();
    let before = keyword(&rest, &keywords)?;
    let (first, probe) = (first_bytes(&rest), format!(r"\A(?:{rest})"));
    (before.1 - before.0 < MOST_STARTS).then_some(KeywordSearch { probe, before, first, lead })
}

/// The lead of an expression, and the rest.
fn lead(hir: &Hir) -> Option<(Lead, Hir)> {
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let [first, rest @ ..] = parts.as_slice() else { return None };
    let HirKind::Repetition(repeated) = first.kind() else { return None };
    let (0, HirKind::Class(class)) = (repeated.min, repeated.sub.kind()) else { return None };
    let class = match class {
        Class::Bytes(class) => class.clone(),
        Class::Unicode(class) => class.to_byte_class()?,
    };
    let rest = Hir::concat(rest.to_vec());
    // What looks back at the lead cannot do without it.
    let lead = Lead { class, most: repeated.max? as usize };
    rest.properties().look_set_prefix_any().is_empty().then_some((lead, rest))
}

/// Least and greatest number of bytes before one of the keywords, if every match holds one.
fn keyword(hir: &Hir, keywords: &[String]) -> Option<(usize, usize)> {
    match hir.kind() {
        HirKind::Capture(capture) => keyword(&capture.sub, keywords),
        HirKind::Repetition(repeated) if repeated.min > 0 => keyword(&repeated.sub, keywords),
        HirKind::Alternation(ways) => {
            let all: Option<Vec<_>> = ways.iter().map(|way| keyword(way, keywords)).collect();
            let all = all?;
            Some((all.iter().map(|way| way.0).min()?, all.iter().map(|way| way.1).max()?))
        }
        HirKind::Concat(parts) => in_a_row(parts, keywords),
        HirKind::Literal(literal) => {
            let word = literal.0.to_ascii_lowercase();
            let at = keywords.iter().filter_map(|keyword| find(&word, keyword.as_bytes())).min()?;
            Some((at, at))
        }
        _ => None,
    }
}

/// The same for a sequence of parts: a keyword may be spread over several.
fn in_a_row(parts: &[Hir], keywords: &[String]) -> Option<(usize, usize)> {
    let (mut least, mut most) = (0usize, 0usize);
    for (at, part) in parts.iter().enumerate() {
        let words = words_of(&parts[at..]);
        let offset = |word: &Vec<u8>| keywords.iter().filter_map(|keyword| find(word, keyword.as_bytes())).min();
        let offsets: Option<Vec<usize>> = words.iter().map(offset).collect();
        if let Some(offsets) = offsets
            && let (Some(first), Some(last)) = (offsets.iter().min(), offsets.iter().max())
        {
            return Some((least + first, most + last));
        }
        if let Some((inner_least, inner_most)) = keyword(part, keywords) {
            return Some((least + inner_least, most + inner_most));
        }
        least += part.properties().minimum_len()?;
        most += part.properties().maximum_len()?;
    }
    None
}

fn find(word: &[u8], keyword: &[u8]) -> Option<usize> {
    (!keyword.is_empty()).then(|| word.windows(keyword.len()).position(|window| window == keyword)).flatten()
}

/// All texts, in lower case, that the first of some parts can match, for as many parts as the number of texts stays
/// within the limit.
fn words_of(parts: &[Hir]) -> Vec<Vec<u8>> {
    let mut words = vec![Vec::new()];
    for part in parts {
        match words_of_one(part).and_then(|more| joined(&words, &more)) {
            Some(longer) => words = longer,
            None => break,
        }
    }
    words
}

fn joined(heads: &[Vec<u8>], tails: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let all = || heads.iter().flat_map(|head| tails.iter().map(move |tail| [head.as_slice(), tail].concat()));
    (heads.len() * tails.len() <= MOST_WORDS).then(|| all().collect())
}

/// All texts, in lower case, that an expression can match, if the number stays within the limit.
fn words_of_one(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let mut words = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![Vec::new()],
        HirKind::Literal(literal) => vec![literal.0.to_ascii_lowercase()],
        HirKind::Class(class) => {
            let class = match class {
                Class::Bytes(class) => class.clone(),
                Class::Unicode(class) => class.to_byte_class()?,
            };
            let size: usize = class.iter().map(|range| range.len()).sum();
            let letters = || class.iter().flat_map(|range| range.start()..=range.end());
            (size <= MOST_LETTERS).then(|| letters().map(|letter| vec![letter.to_ascii_lowercase()]).collect())?
        }
        HirKind::Capture(capture) => words_of_one(&capture.sub)?,
        HirKind::Repetition(repeated) if repeated.max == Some(1) => {
            let mut words = words_of_one(&repeated.sub)?;
            if repeated.min == 0 {
                words.push(Vec::new());
            }
            words
        }
        HirKind::Repetition(_) => return None,
        HirKind::Concat(parts) => {
            let each = parts.iter().map(words_of_one);
            each.reduce(|heads, tails| joined(&heads?, &tails?))??
        }
        HirKind::Alternation(ways) => {
            let all: Option<Vec<_>> = ways.iter().map(words_of_one).collect();
            all?.concat()
        }
    };
    words.sort();
    words.dedup();
    (words.len() <= MOST_WORDS).then_some(words)
}

/// Bytes with which a match of the probe can begin; all, if the texts cannot be enumerated.
fn first_bytes(hir: &Hir) -> [bool; 256] {
    let words = match hir.kind() {
        HirKind::Concat(parts) => words_of(parts),
        _ => words_of(std::slice::from_ref(hir)),
    };
    let firsts: Option<Vec<u8>> = words.iter().map(|word| word.first().copied()).collect();
    let Some(firsts) = firsts else { return [true; 256] };
    let mut can = [false; 256];
    for first in firsts {
        can[usize::from(first)] = true;
        can[usize::from(first.to_ascii_uppercase())] = true;
    }
    can
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(pattern: &str, keywords: &[&str]) -> Option<(usize, (usize, usize))> {
        let keywords: Vec<String> = keywords.iter().map(|word| (*word).to_owned()).collect();
        pin(pattern, &keywords).map(|pin| (pin.lead.map_or(0, |lead| lead.most), pin.before))
    }

    #[test]
    fn a_lead_reaches_back_over_its_class_and_no_further() {
        let pin = pin(r"[\w.-]{0,5}?key=x", &["key".to_owned()]).unwrap();
        assert_eq!(pin.lead.as_ref().unwrap().start(b"my_key=x", 3), 0);
        assert_eq!(pin.lead.as_ref().unwrap().start(b"my key=x", 3), 3);
        assert_eq!(pin.lead.unwrap().start(b"0123456789key=x", 10), 5);
    }

    #[test]
    fn a_keyword_is_found_wherever_every_match_has_it() {
        assert_eq!(before(r"\b(ghp_[0-9a-z]{36})\b", &["ghp_"]), Some((0, (0, 0))));
        assert_eq!(before(r"(?i)[\w.-]{0,50}?(?:acme)=([a-z]{8})", &["acme"]), Some((50, (0, 0))));
        assert_eq!(before(r"(?:ab|xyz)key[0-9]", &["key"]), Some((0, (2, 3))));
        assert_eq!(before(r"(?:key|token)=x", &["key"]), None);
        assert_eq!(before(r"(?:key|token)=x", &["key", "token"]), Some((0, (0, 0))));
        assert_eq!(before(r"(?i)(?:access|(?-i:[Aa]pi|API)|apply)_key", &["key"]), Some((0, (4, 7))));
        assert_eq!(before(r".*key", &["key"]), None);
        assert_eq!(before(r"[a-f0-9]{40}", &["sourcegraph"]), None);
    }
}
