//! The wording by which a sentence forbids or requires something for good.
//!
//! A sentence is brought into one spelling and cut into clauses. Then phrases count that say it anywhere, beginnings of
//! clauses that give an order, and words such as "never" where they are part of an order and not of a report.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::standing_instructions::Strength;

/// Phrases by what they say, and where they say it. Each field is a section of `wording.txt`.
struct Wording {
    /// Phrases that forbid something anywhere in a sentence.
    forbid_anywhere: Phrases,
    /// Phrases that require something anywhere in a sentence.
    require_anywhere: Phrases,
    /// Beginnings of a clause that forbid something; elsewhere they report.
    forbid_at_start: Vec<&'static str>,
    /// Beginnings of a clause that require something.
    require_at_start: Vec<&'static str>,
    /// Orders that hold for good only if the sentence also has one of `lasting`.
    orders: Vec<&'static str>,
    /// Words that make an order one that lasts.
    lasting: Phrases,
    /// What an agent does, in the words of those who forbid it.
    deeds: Vec<&'static str>,
    /// Subjects of which an order says that none may.
    nobody: Vec<&'static str>,
    /// Subjects of which an order says that all must.
    all: Vec<&'static str>,
    /// Verbs that make an order of a sentence about such a subject.
    demands: Vec<&'static str>,
    /// Words that may precede the beginning of a clause.
    leading: Vec<&'static str>,
    /// Words before "never", "always" and "don't" that address the agent.
    addressed: Vec<&'static str>,
    /// Words before them with which somebody reports.
    reporting: Vec<&'static str>,
    /// Verbs that say how something behaves.
    behaviour: Vec<&'static str>,
    /// Words with which a subordinate clause begins.
    subordinate: Vec<&'static str>,
    /// Words that begin a request put as a question.
    polite: Vec<&'static str>,
    /// Phrases in other languages that forbid or require.
    other_languages: Phrases,
    /// The same in languages without blanks between words.
    unspaced: Phrases,
}

static WORDING: LazyLock<Wording> = LazyLock::new(|| {
    let text = include_str!("wording.txt");
    let section = |name: &str| -> Vec<&str> {
        let (_, after) = text.split_once(&format!("\n[{name}]\n")).unwrap_or_default();
        let body = after.split_once("\n[").map_or(after, |(body, _)| body);
        body.split([',', '\n']).map(str::trim).filter(|phrase| !phrase.is_empty()).collect()
    };
    Wording {
        forbid_anywhere: Phrases::of_words(section("forbid anywhere")),
        require_anywhere: Phrases::of_words(section("require anywhere")),
        forbid_at_start: section("forbid at start"),
        require_at_start: section("require at start"),
        orders: section("orders"),
        lasting: Phrases::of_words(section("lasting")),
        deeds: section("deeds"),
        nobody: section("nobody"),
        all: section("all"),
        demands: section("demands"),
        leading: section("leading"),
        addressed: section("addressed"),
        reporting: section("reporting"),
        behaviour: section("behaviour"),
        subordinate: section("subordinate"),
        polite: section("polite"),
        other_languages: Phrases::of_words(section("other languages")),
        unspaced: Phrases::of(section("unspaced")),
    }
});

/// Phrases that are looked for all at once.
struct Phrases(Option<AhoCorasick>);

impl Phrases {
    fn of<T: AsRef<[u8]>>(phrases: impl IntoIterator<Item = T>) -> Self {
        Self(AhoCorasick::new(phrases).ok())
    }

    /// Phrases that begin and end with a word.
    fn of_words(phrases: Vec<&str>) -> Self {
        Self::of(phrases.into_iter().map(|phrase| format!(" {phrase} ")))
    }

    fn are_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|phrases| phrases.is_match(text))
    }
}

/// Whether a sentence forbids or requires something for good, and which of the two.
pub(super) fn strength(sentence: &str) -> Option<Strength> {
    let text = one_spelling(sentence);
    let first = text.split_whitespace().find(|word| *word != ",").unwrap_or_default();
    if sentence.trim_end().ends_with('?') && !WORDING.polite.contains(&first) {
        return None;
    }
    let clauses: Vec<Vec<&str>> = text.split(" , ").map(|clause| without_leading(clause.split_whitespace())).collect();
    if WORDING.forbid_anywhere.are_in(&text) || clauses.iter().any(|clause| forbids(clause)) {
        return Some(Strength::Forbids);
    }
    let lasts = WORDING.lasting.are_in(&text);
    let requires = WORDING.require_anywhere.are_in(&text)
        || WORDING.other_languages.are_in(&text)
        || WORDING.unspaced.are_in(sentence)
        || clauses.iter().any(|clause| requires(clause, lasts))
        || must_come_first(&text, &clauses);
    requires.then_some(Strength::Requires)
}

/// A sentence in lower case with one spelling for each negation, one blank around each word, and a comma for each pause.
fn one_spelling(sentence: &str) -> String {
    let mut text = String::from(" ");
    for c in sentence.to_lowercase().replace(['’', '`'], "'").chars() {
        match c {
            ',' | ':' | '(' | ')' | '–' | '—' | '!' => text.push_str(" , "),
            c if c.is_alphanumeric() || c == '\'' || c == '-' => text.push(c),
            _ => text.push(' '),
        }
    }
    text.push(' ');
    let words: Vec<&str> = text.split_whitespace().map(|word| word.trim_matches('\'')).filter(|w| *w != "-").collect();
    let mut text = format!(" {} ", words.join(" "));
    for (from, to) in [
        (" do not ", " don't "),
        (" dont ", " don't "),
        (" cannot ", " can't "),
        (" can not ", " can't "),
        (" are not to ", " aren't to "),
        (" is not to be ", " not to be "),
        (" pls ", " please "),
        (" plz ", " please "),
        (" u ", " you "),
    ] {
        text = text.replace(from, to);
    }
    text
}

fn without_leading<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    words.skip_while(|word| WORDING.leading.contains(word)).collect()
}

/// True if a clause begins with a phrase.
fn begins(clause: &[&str], phrase: &str) -> bool {
    phrase.split(' ').enumerate().all(|(at, word)| clause.get(at) == Some(&word))
}

fn forbids(clause: &[&str]) -> bool {
    let starts = WORDING.forbid_at_start.iter().any(|start| begins(clause, start) && !is_known_talk(start, clause));
    let second = clause.get(1).copied().unwrap_or_default();
    let deeds_on_nothing =
        clause.first().is_some_and(|verb| WORDING.deeds.contains(verb) || ["do", "make"].contains(verb))
            && ["no", "nothing", "none", "nobody"].contains(&second);
    let nobody_may = WORDING.nobody.iter().any(|subject| begins(clause, subject))
        && (demands(clause) || clause.contains(&"gets"))
        || clause.windows(2).any(|two| WORDING.nobody.contains(&two[0]) && is_deed_of_others(two[1]));
    starts || deeds_on_nothing || nobody_may || order_with(clause, "never") || has_negative_order(clause)
}

fn requires(clause: &[&str], lasts: bool) -> bool {
    let starts = WORDING.require_at_start.iter().any(|start| begins(clause, start) && !is_known_talk(start, clause));
    let lasting_order = lasts && clause.first().is_some_and(|verb| WORDING.orders.contains(verb));
    let all_must = WORDING.all.iter().any(|subject| begins(clause, subject)) && demands(clause);
    starts
        || lasting_order
        || all_must
        || has_duty(clause)
        || order_with(clause, "always")
        || has_only_on_word(clause)
        || spares(clause)
}

/// True for "must", unless it is a guess: "it must be stale", "there must be a limit", "it must have been called".
fn has_duty(clause: &[&str]) -> bool {
    clause.iter().enumerate().filter(|(_, word)| **word == "must").any(|(at, _)| {
        let before = at.checked_sub(1).map_or("", |before| clause[before]);
        let next = clause.get(at + 1).copied().unwrap_or_default();
        next != "have" && !(next == "be" && ["there", "it", "that", "this"].contains(&before))
    })
}

/// True if a clause says what its subject has to do, or does as a rule.
fn demands(clause: &[&str]) -> bool {
    let text = format!(" {} ", clause.join(" "));
    WORDING.demands.iter().any(|demand| text.contains(&format!(" {demand} ")))
        || clause.iter().any(|word| is_deed_of_others(word))
}

/// True for "deletes", "pushes", "changes".
fn is_deed_of_others(word: &str) -> bool {
    let is_deed = |end: &str| word.strip_suffix(end).is_some_and(|verb| WORDING.deeds.contains(&verb));
    is_deed("s") || is_deed("es")
}

/// True for "before deleting anything, ask", "tests have to pass before each commit" and the like.
fn must_come_first(text: &str, clauses: &[Vec<&str>]) -> bool {
    const DUTIES: [&str; 4] = [" have to ", " has to ", " need to ", " needs to "];
    const ORDER: [&str; 6] = [" before ", " first ", " each ", " every ", " always ", " any "];
    let is_duty = DUTIES.iter().any(|duty| text.contains(duty)) && ORDER.iter().any(|order| text.contains(order));
    const CHECKS: [&str; 13] = [
        "ask", "check", "confirm", "run", "get", "tell", "test", "verify", "request", "consult", "review", "make",
        "wait",
    ];
    let is_order = |clause: &Vec<&str>| clause.first().is_some_and(|verb| CHECKS.contains(verb));
    is_duty || text.contains(" before ") && clauses.iter().any(is_order)
}

/// True for "only after I say so", "only when explicitly told" and the like, about something that is done.
fn has_only_on_word(clause: &[&str]) -> bool {
    let at =
        clause.windows(2).position(|two| two[0] == "only" && ["after", "when", "if", "once", "with"].contains(&two[1]));
    at.is_some_and(|at| {
        !clause[..at].iter().any(|word| {
            WORDING.behaviour.contains(word)
                || word.strip_suffix('s').is_some_and(|verb| WORDING.behaviour.contains(&verb))
        })
    })
}

/// True for "without touching the database", "instead of deleting it" and the like.
fn spares(clause: &[&str]) -> bool {
    let spared = |at: usize| clause.get(at + 1).is_some_and(|deed| is_deed_in_progress(deed));
    clause
        .iter()
        .enumerate()
        .any(|(at, word)| (*word == "without" || *word == "of" && at > 0 && clause[at - 1] == "instead") && spared(at))
}

/// True for "deleting", "committing", "changing".
fn is_deed_in_progress(word: &str) -> bool {
    let Some(stem) = word.strip_suffix("ing") else { return false };
    let mut doubled = stem.chars();
    doubled.next_back();
    WORDING.deeds.contains(&stem)
        || WORDING.deeds.contains(&format!("{stem}e").as_str())
        || WORDING.deeds.contains(&doubled.as_str())
}

/// True for "don't" in the middle of a clause, where it is addressed to the agent.
fn has_negative_order(clause: &[&str]) -> bool {
    clause.iter().enumerate().skip(1).filter(|(_, word)| **word == "don't").any(|(at, _)| {
        let (before, next) = (clause[at - 1], clause.get(at + 1).copied().unwrap_or_default());
        match before {
            "we" => WORDING.deeds.contains(&next),
            before if WORDING.addressed.contains(&before) => !WORDING.behaviour.contains(&next),
            before if WORDING.reporting.contains(&before) => false,
            _ => {
                WORDING.subordinate.contains(&clause[0])
                    && !WORDING.behaviour.contains(&next)
                    && WORDING.deeds.contains(&next)
            }
        }
    })
}

/// True if "never" or "always" is part of an order: at the beginning of a clause, after a word that addresses somebody,
/// or before a verb that is no statement about a third party.
fn order_with(clause: &[&str], adverb: &str) -> bool {
    clause.iter().enumerate().filter(|(_, word)| **word == adverb).any(|(at, _)| {
        let next = clause.get(at + 1).copied().unwrap_or_default();
        let tells = (next.ends_with('s') && !next.ends_with("ss"))
            || next.ends_with("ed")
            || ["been", "had", "seen", "heard", "got", "knew", "saw", "came", "thought", "out"].contains(&next);
        match at.checked_sub(1).map(|before| clause[before]) {
            None => true,
            Some(before) if WORDING.addressed.contains(&before) => true,
            Some(before) => !tells && !WORDING.reporting.contains(&before),
        }
    })
}

/// True for clauses that begin like an order but are none.
fn is_known_talk(start: &str, clause: &[&str]) -> bool {
    let rest = &clause[start.split(' ').count()..];
    let next = rest.first().copied().unwrap_or_default();
    match start {
        "no" => {
            rest.is_empty()
                || [
                    "idea", "problem", "problems", "worries", "need", "way", "one", "thanks", "thank", "it", "that",
                    "this", "i", "we", "longer", "wait", "rush", "hurry", "such", "luck", "matter", "you",
                ]
                .contains(&next)
        }
        "don't" => {
            ["worry", "know", "you", "understand", "we", "think"].contains(&next) && rest.get(1) != Some(&"dare")
        }
        "keep" => ["going", "on", "working", "trying", "it", "that", "this", "calm", "looking", "digging", "up"]
            .contains(&next),
        "leave" => ["a", "me", "some"].contains(&next),
        "stop" => rest.is_empty() || ["here", "now", "it", "that", "this", "there", "the"].contains(&next),
        "ignore" => ["that", "this", "it", "my"].contains(&next),
        "ask" => rest.is_empty() || ["the", "it", "them", "him", "her"].contains(&next),
        "remember" => ["when", "how", "that", "the", "what"].contains(&next) && clause.len() < 6,
        "follow the" => clause.last() == Some(&"link"),
        "only" => ["the", "a", "one", "two", "three", "four", "five", "half", "some", "then"].contains(&next),
        _ => false,
    }
}
