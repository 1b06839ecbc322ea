//! The sentences of a text, as slices of it.
//!
//! A text is cut into paragraphs first: a line break ends one unless the next line goes on with its sentence. A paragraph
//! is cut at marks that end a sentence, and a sentence that only says more about the one before it stays with it. Code between fences has no sentences.

use std::ops::Range;

/// A sentence of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence<'text> {
    /// The sentence, word for word.
    pub(crate) text: &'text str,
    /// Its place in the text.
    pub(super) range: Range<usize>,
    /// True if it stands in a quotation, line by line behind ">".
    pub(super) is_quoted: bool,
    /// For an item of a list: the place of the line above that the list belongs to.
    pub(super) lead: Option<Range<usize>>,
}

/// Length of the longest sentence, in bytes. A longer one is cut at its line breaks, or at its pauses.
pub(super) const LONGEST: usize = 900;

/// Width from which on a line may have been broken for its length alone, in characters.
const NARROWEST: usize = 40;

/// Marks that end a sentence, and what may close it behind them.
const MARKS: [char; 9] = ['.', '!', '?', '。', '！', '？', '…', '।', '؟'];
const CLOSING: [char; 9] = ['"', '\'', '”', '’', '»', ')', '*', '」', '』'];

/// Words after which no sentence ends, and a line may.
const OPEN_ENDS: &str = " a an the and or nor but of to in on at by for from with without into than as if unless until \
    when that which any each every all no not never always only be is are must should may und oder aber der die das den \
    dem ein eine von zu mit ohne für nicht nie kein keine et ou de du des le la les à sans pour y o el los las en con sin \
    para por que ";

/// Words with which a line goes on with the sentence of the line before.
const CONTINUATIONS: &str = " and or nor but unless until without except because so which that than if when while und \
    oder aber sondern ohne außer wenn weil damit dass et ou mais sauf sans parce y o pero salvo sin porque ";

/// Beginnings of a sentence that only says more about the one before it: when it does not hold, or how far it goes.
const ADDITIONS: [&str; 29] = [
    "unless",
    "except",
    "excepting",
    "not even",
    "not ever",
    "ever",
    "never ever",
    "no exception",
    "no exceptions",
    "the only exception",
    "only exception",
    "even if",
    "period",
    "full stop",
    "that includes",
    "this includes",
    "that applies",
    "this applies",
    "same for",
    "same goes for",
    "the same goes for",
    "es sei denn",
    "außer",
    "nicht einmal",
    "punkt",
    "sauf",
    "salvo",
    "excepto",
    "tranne",
];

/// Words with a dot that end no sentence.
const ABBREVIATIONS: &str = " e.g i.e eg ie cf vs viz approx incl excl resp fig sec ca nr z.b d.h u.a bzw usw ggf evtl \
    vgl bspw inkl p.ex p.ej p.s n.b ej dr mr mrs ms prof st bijv т.е т.д esp ext ver rev vol dept ";

/// The sentences of a text.
pub(crate) fn split(text: &str) -> Vec<Sentence<'_>> {
    let mut sentences: Vec<Sentence<'_>> = Vec::new();
    let mut lead: Option<Range<usize>> = None;
    for paragraph in paragraphs(text) {
        let line = &text[paragraph.clone()];
        let first = line.trim_start();
        let (is_quoted, is_heading) = (first.starts_with('>'), first.starts_with('#'));
        let is_item = marker(line) > 0 && !is_quoted && !is_heading;
        lead = lead.filter(|_| is_item);
        for range in sentences_of(text, paragraph) {
            let sentence = &text[range.clone()];
            let adds = is_addition(sentence) && !is_item;
            match sentences.last_mut() {
                _ if sentence.chars().filter(|c| c.is_alphabetic()).count() < 3 => {}
                Some(before)
                    if adds
                        && text[before.range.end..range.start].trim().is_empty()
                        && range.end - before.range.start <= LONGEST =>
                {
                    before.range.end = range.end;
                    before.text = &text[before.range.clone()];
                }
                _ => sentences.push(Sentence { text: sentence, range, is_quoted, lead: lead.clone() }),
            }
        }
        if !is_item && (line.ends_with([':', '：']) || is_heading) {
            lead = sentences.last().map(|sentence| sentence.range.clone());
        }
    }
    sentences
}

/// Stretches of a text in which a line break ends no sentence.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let fences = text.lines().filter(|line| is_fence(line)).count();
    // A fence that is never closed is none.
    let mut fences_left = fences - fences % 2;
    let mut paragraphs: Vec<Range<usize>> = Vec::new();
    let (mut at, mut is_code, mut widest) = (0, false, 0);
    let mut before: Option<&str> = None;
    for whole in text.split_inclusive('\n') {
        let (start, line) = (at, whole.trim_end());
        at += whole.len();
        if is_fence(line) && fences_left > 0 {
            fences_left -= 1;
            is_code = !is_code;
        }
        if is_code || is_fence(line) || line.is_empty() {
            (before, widest) = (None, 0);
            continue;
        }
        if before.is_none() {
            widest = text[start..].lines().take_while(|line| !line.trim().is_empty()).map(width).max().unwrap_or(0);
        }
        let end = start + line.len();
        match paragraphs.last_mut() {
            Some(last) if before.is_some_and(|before| goes_on(before, line, widest)) && end - last.start <= LONGEST => {
                last.end = end;
            }
            _ => paragraphs.push(start..end),
        }
        before = Some(line);
    }
    paragraphs
}

fn is_fence(line: &str) -> bool {
    ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence))
}

fn width(line: &str) -> usize {
    line.trim_end().chars().count()
}

/// True if the sentence at a line's end goes on in the next line. `widest` is the width of the widest line around.
fn goes_on(line: &str, next: &str, widest: usize) -> bool {
    let has_ended = line.ends_with(|c| ".!?:。！？：।؟".contains(c));
    if has_ended || marker(next) > 0 || line.starts_with(['<', '#']) || next.starts_with('<') {
        return false;
    }
    let last = line.rsplit(char::is_whitespace).next().unwrap_or_default().to_lowercase();
    let first = next.split_whitespace().next().unwrap_or_default();
    let is_among = |words: &str, word: &str| words.contains(&format!(" {word} "));
    let is_full = widest >= NARROWEST && width(line) + 1 + first.chars().count() > widest;
    let is_indented = |line: &str| line.len() - line.trim_start().len();
    line.ends_with(',')
        || is_among(OPEN_ENDS, &last)
        || is_among(CONTINUATIONS, first)
        || is_full
        || marker(line) > 0 && is_indented(next) > is_indented(line)
}

/// Length of what marks a line as an item of a list, a heading, a quotation or a row; 0 if nothing does.
fn marker(line: &str) -> usize {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let number = text.len() - text.trim_start_matches(char::is_alphanumeric).len();
    let is_numbered = (1..=2).contains(&number) && text[number..].starts_with(['.', ')']);
    let mark = match text.chars().next() {
        Some(c) if "-*+•–—·>|#".contains(c) => text.len() - text.trim_start_matches(c).len(),
        Some('(') => text.find(") ").filter(|&end| end <= 3).map_or(0, |end| end + 1),
        _ if is_numbered => number + 1,
        _ => 0,
    };
    match text[mark..].starts_with(char::is_whitespace) {
        true if mark > 0 => {
            let rest = text[mark..].trim_start();
            let tick = ["[ ]", "[x]", "[X]"].iter().any(|tick| rest.starts_with(tick));
            indent + text.len() - rest.len() + if tick { 3 } else { 0 }
        }
        _ => 0,
    }
}

/// The sentences of a paragraph.
fn sentences_of(text: &str, paragraph: Range<usize>) -> Vec<Range<usize>> {
    let mut sentences = Vec::new();
    let mut from = paragraph.start + marker(&text[paragraph.clone()]);
    for (at, mark) in text[from..paragraph.end].char_indices().map(|(at, c)| (from + at, c)).collect::<Vec<_>>() {
        if at < from || !MARKS.contains(&mark) {
            continue;
        }
        let after = text[at..paragraph.end].trim_start_matches(MARKS);
        let rest = after.trim_start_matches(CLOSING);
        let end = paragraph.end - rest.len();
        let goes_on = after.len() > rest.len() && rest.trim_start().starts_with(char::is_lowercase);
        let is_end = rest.is_empty() || rest.starts_with(char::is_whitespace) && !goes_on;
        let is_wide = "。！？".contains(mark);
        if is_wide || is_end && (mark != '.' || ends_sentence(&text[from..at], rest)) {
            sentences.push(trimmed(text, from..end));
            from = end;
        }
    }
    sentences.push(trimmed(text, from..paragraph.end));
    sentences
        .into_iter()
        .flat_map(|range| if range.len() > LONGEST { clauses_of(text, range) } else { vec![range] })
        .collect()
}

/// The clauses of a sentence that is too long.
fn clauses_of(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut at = range.start;
    let clauses = text[range].split_inclusive([',', ';', '，', '；', '、', '\n']).map(|clause| {
        at += clause.len();
        trimmed(text, at - clause.len()..at)
    });
    clauses.collect()
}

/// True if a dot between these texts ends a sentence: no abbreviation, and nothing in brackets.
fn ends_sentence(before: &str, after: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || "(\"'".contains(c)).next().unwrap_or_default();
    let mut next = after.trim_start().chars();
    let (next, second) = (next.next(), next.next());
    let is_abbreviation = match word.to_lowercase().as_str() {
        "" => true,
        // "Etc." and "no." may be both.
        "etc" => next.is_some_and(char::is_lowercase),
        "no" => next.is_some_and(|c| c.is_ascii_digit()),
        word if word.chars().count() == 1 => next.is_some_and(char::is_lowercase) || second == Some('.'),
        word => ABBREVIATIONS.contains(&format!(" {word} ")),
    };
    let is_in_brackets = before.rfind('(') > before.rfind(')') && after.contains(')');
    !is_abbreviation && !is_in_brackets
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + inside.len() - inside.trim_start().len();
    start..start + inside.trim().len()
}

fn is_addition(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    ADDITIONS.iter().any(|start| lower.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str) -> Vec<&str> {
        split(text).into_iter().map(|sentence| sentence.text).collect()
    }

    /// KEEP-1: a rule is taken whole: a dot in a name, an abbreviation or a semicolon ends no sentence.
    #[test]
    fn a_dot_that_ends_no_sentence_is_none() {
        for text in [
            "Never edit v1.2 of config.yml.",
            "Never touch generated files, e.g. the lockfile, i.e. whatever a tool writes.",
            "Never run git checkout . or git reset in here.",
            "Never push to main; open a pull request instead.",
            "Never say \"it works.\" without a test.",
            "Bitte keine neuen Pakete, z. B. lodash, ohne Rückfrage.",
            "Never use more than approx. 5 MB!!",
            "Never touch the indexes (esp. those of the orders. Ines needs them).",
        ] {
            assert_eq!(texts(text), [text], "{text}");
        }
        assert_eq!(
            texts("It is slow etc. Never mind. 好。不要推送！"),
            ["It is slow etc.", "Never mind.", "不要推送！"]
        );
        assert_eq!(texts("He said \"no.\" Never push."), ["He said \"no.\"", "Never push."]);
    }

    /// KEEP-1: a rule that goes over a line's end is taken whole; lines that are sentences of their own are not joined.
    #[test]
    fn a_sentence_may_go_over_several_lines() {
        let wrapped = "Never push anything to the main branch of this repository or to any of\nthe release branches, \
                       not even when all of the tests have passed and\nsomebody asks for it.";
        assert_eq!(texts(&format!("{wrapped}\nMend the parser.")), [wrapped, "Mend the parser."]);
        assert_eq!(texts("never push to main,\nnot even once"), ["never push to main,\nnot even once"]);
        assert_eq!(
            texts("- never push to main\n  or to a release branch\n- use tabs"),
            ["never push to main\n  or to a release branch", "use tabs"]
        );
        assert_eq!(
            texts("never touch vendor\nalways run the tests\nUse tabs"),
            ["never touch vendor", "always run the tests", "Use tabs"]
        );
        assert_eq!(
            texts("1. Ask first\n2) Use tabs\n* [ ] no mocks\n## Rules\n> quoted words"),
            ["Ask first", "Use tabs", "no mocks", "Rules", "quoted words"]
        );
    }

    /// KEEP-1: what says when a rule does not hold, or how far it goes, stays with it.
    #[test]
    fn an_exception_stays_with_its_rule() {
        let text = "Never push to main. Unless I say so. Not even for hotfixes!\nExcept on Fridays.";
        assert_eq!(texts(&format!("{text} Thank you.")), [text, "Thank you."]);
    }

    #[test]
    fn code_has_no_sentences_but_a_fence_that_is_not_closed_is_none() {
        assert_eq!(texts("Look:\n```\n// never do this\n```\nUse tabs."), ["Look:", "Use tabs."]);
        assert_eq!(texts("```\nnever push"), ["never push"]);
    }

    #[test]
    fn a_sentence_that_is_too_long_is_cut_at_its_pauses() {
        let long = format!("{} and so on, never push to main, {}", "so I thought ".repeat(50), "and then ".repeat(50));
        assert_eq!(texts(&long)[1], "never push to main,");
    }

    proptest! {
        /// Sentences are slices of a text in order, whatever is typed.
        #[test]
        fn sentences_are_slices_in_order(text in "([a-zäЖ不。.!?:,;\"'`#>()*\\-0-9 \n]|e\\.g\\.|unless|```){0,300}") {
            let mut end = 0;
            for sentence in split(&text) {
                prop_assert_eq!(&text[sentence.range.clone()], sentence.text);
                prop_assert!(sentence.range.start >= end);
                end = sentence.range.end;
            }
        }
    }
}
