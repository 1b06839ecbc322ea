//! The wording by which a sentence forbids or requires something for good.
//!
//! A sentence is brought into one spelling and cut into clauses. Then phrases count that say it anywhere, beginnings of
//! clauses that give an order, and words such as "never" where they are part of an order and not of a report. Where
//! nothing of it is there, a sign of a rule makes one likely.

use crate::standing_instructions::Strength;
use crate::standing_instructions::phrases::WORDING;
use crate::standing_instructions::spelling::{one_spelling, without_quotations};

/// Strength of a sentence; none if it surely neither forbids nor requires something for good.
pub(super) fn strength(sentence: &str) -> Option<Strength> {
    if is_output(sentence) {
        return None;
    }
    let text = one_spelling(&without_quotations(sentence));
    let end = sentence.trim_end_matches(|c: char| !c.is_alphanumeric() && !"?？؟".contains(c));
    let is_question = end.ends_with(['?', '？', '؟']);
    if is_question && !is_request(&text) && !has_tag(&text) {
        return None;
    }
    certain(sentence, &text).or_else(|| doubtful(sentence, is_question))
}

/// Strength of a list by the line above it: "Never touch:", "House rules:".
pub(super) fn strength_of_list(lead: &str) -> Option<Strength> {
    let is_heading = WORDING.list_headings.are_in(&one_spelling(lead)).then_some(Strength::Requires);
    strength(lead).filter(|strength| strength.is_certain()).max(is_heading)
}

/// Strength of a sentence that surely forbids or requires, by its own words, now and for more than once.
fn certain(sentence: &str, text: &str) -> Option<Strength> {
    let text = &own_words(text);
    let clauses: Vec<Vec<&str>> = text.split(" , ").map(|clause| without_leading(clause.split_whitespace())).collect();
    if WORDING.forbid_anywhere.are_in(text) || clauses.iter().any(|clause| forbids(clause)) {
        return Some(Strength::Forbids);
    }
    let lasts = WORDING.lasting.are_in(text);
    let requires = WORDING.require_anywhere.are_in(text)
        || WORDING.other_languages.are_in(text) && !WORDING.failing.are_in(text)
        || WORDING.unspaced.are_in(sentence)
        || clauses.iter().any(|clause| requires(clause, lasts))
        || must_come_first(text, &clauses)
        || goes_with_a_deed(&clauses);
    requires.then_some(Strength::Requires)
}

/// A sentence without what it tells of the past, of one time only, of others' words, and of the result of a task: "Write a
/// guide that says that nobody pushes, but don't push it" asks only for the guide, and not to push it.
fn own_words(text: &str) -> String {
    let mut is_inside = false;
    let mut own = String::from(" ");
    for part in text.split(" , ").map(|part| format!(" {} ", part.trim())) {
        if is_inside && WORDING.inside_a_task.begin(&part) {
            continue;
        }
        let mut said = WORDING.told.before(&part);
        let words = without_leading(part.split_whitespace().skip_while(|word| WORDING.polite.contains(word)));
        if WORDING.tasks.iter().any(|task| begins(&words, task)) {
            said = WORDING.inside_a_task.before(said);
        }
        is_inside = said.len() < part.len();
        if !WORDING.not_now.are_in(&part) && !WORDING.only_once.are_in(&part) {
            own = own + said.trim() + " , ";
        }
    }
    own
}

/// Strength of any other sentence: whatever somebody wrote may be a rule, if it is no talk.
fn doubtful(sentence: &str, is_question: bool) -> Option<Strength> {
    let text = one_spelling(sentence);
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != ",").collect();
    let is_unspaced = sentence.chars().filter(|c| *c >= '\u{3000}' && c.is_alphanumeric()).count() >= 4;
    if words.iter().all(|word| WORDING.talk.contains(word)) || words.len() < 2 && !is_unspaced {
        return None;
    }
    let is_named = |word: &str| word.trim_matches(|c: char| ".,;:!?".contains(c)).contains(['/', '`', '.', '_']);
    let signs = WORDING.signs.are_in(&text)
        || WORDING.unspaced_signs.are_in(sentence)
        || WORDING.stative.are_in(&text) && sentence.split_whitespace().any(is_named);
    match (signs, is_question) {
        (true, _) => Some(Strength::Likely),
        (false, false) => Some(Strength::Possible),
        (false, true) => None,
    }
}

/// True if a clause begins as one asks for something: "Could you …?"
fn is_request(text: &str) -> bool {
    text.split(" , ").any(|clause| {
        let words: Vec<&str> = clause.split_whitespace().collect();
        let rest = without_leading(words.iter().copied());
        WORDING.polite.iter().any(|start| begins(&words, start) || begins(&rest, start))
    })
}

/// True if a question ends with a word that only asks for assent: "…, okay?" Many leave the comma out, and then it must not
/// begin as a real question does: "Is it always clear?"
fn has_tag(text: &str) -> bool {
    const ASKS: [&str; 13] =
        ["why", "what", "how", "who", "which", "is", "are", "was", "were", "does", "did", "has", "should"];
    let asks = text.split_whitespace().next().is_some_and(|first| ASKS.contains(&first));
    let pause = if asks { " ," } else { "" };
    WORDING.tags.iter().any(|tag| text.ends_with(&format!("{pause} {tag} ")))
}

/// True for code, and for what a program printed.
fn is_output(sentence: &str) -> bool {
    let first = sentence.split_whitespace().next().unwrap_or_default().to_lowercase();
    let is_error = first.strip_suffix(':').is_some_and(|name| WORDING.output.iter().any(|end| name.ends_with(end)));
    let bare: String = sentence.split('`').step_by(2).collect();
    let strange = bare.chars().filter(|c| "{}()[]<>=;|&$\\+*".contains(*c)).count();
    let digits = bare.chars().filter(char::is_ascii_digit).count();
    is_error || strange * 5 > bare.len() || digits * 2 > bare.len()
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
    let no_deeds = clause.windows(2).any(|two| two[0] == "no" && is_deed_in_progress(two[1]));
    starts || deeds_on_nothing || nobody_may || no_deeds || order_with(clause, "never") || has_negative_order(clause)
}

fn requires(clause: &[&str], lasts: bool) -> bool {
    let starts = WORDING.require_at_start.iter().any(|start| begins(clause, start) && !is_known_talk(start, clause));
    let lasting_order = lasts && WORDING.orders.iter().any(|order| begins(clause, order));
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
        // "This function must return" tells of the code at hand.
        !["this", "that", "it"].contains(&clause[0])
            && next != "have"
            && !(next == "be" && ["there", "it", "that", "this"].contains(&before))
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

/// True for "if you add a file, add a license header" and the like.
fn goes_with_a_deed(clauses: &[Vec<&str>]) -> bool {
    let is_deed =
        |clause: &[&str]| matches!(clause, ["when" | "if" | "once", "you", verb, ..] if WORDING.deeds.contains(verb));
    let is_order = |verb: &&str| WORDING.deeds.contains(verb) || WORDING.orders.contains(verb);
    clauses.iter().any(|clause| is_deed(clause)) && clauses.iter().any(|clause| clause.first().is_some_and(is_order))
}

/// True for "before deleting anything, ask", "tests have to pass before each commit" and the like.
fn must_come_first(text: &str, clauses: &[Vec<&str>]) -> bool {
    const DUTIES: [&str; 4] = [" have to ", " has to ", " need to ", " needs to "];
    const ORDER: [&str; 6] = [" before ", " first ", " each ", " every ", " always ", " any "];
    let is_duty = DUTIES.iter().any(|duty| text.contains(duty)) && ORDER.iter().any(|order| text.contains(order));
    const CHECKS: [&str; 22] = [
        "ask", "check", "confirm", "run", "get", "tell", "test", "verify", "request", "consult", "review", "make",
        "wait", "show", "send", "present", "propose", "discuss", "talk", "back", "explain", "let",
    ];
    let is_order = |clause: &Vec<&str>| clause.first().is_some_and(|verb| CHECKS.contains(verb));
    is_duty || text.contains(" before ") && clauses.iter().any(is_order)
}

/// True for "only after I say so", "only when explicitly told" and the like, about something that is done.
fn has_only_on_word(clause: &[&str]) -> bool {
    const ONLY_ON: [&str; 10] = ["after", "when", "if", "once", "with", "via", "through", "from", "inside", "within"];
    let at = clause.windows(2).position(|two| two[0] == "only" && ONLY_ON.contains(&two[1]));
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
    const MODALS: [&str; 9] = ["please", "must", "should", "shall", "to", "will", "can", "may", "absolutely"];
    clause.iter().enumerate().filter(|(_, word)| **word == adverb).any(|(at, _)| {
        let next = clause.get(at + 1).copied().unwrap_or_default();
        match at.checked_sub(1).map(|before| clause[before]) {
            Some(before) if MODALS.contains(&before) => next != "have",
            Some(before) if WORDING.reporting.contains(&before) => false,
            Some(_) => !is_report(next),
            None if next == "mind" => false,
            // "Never globals!"
            None => !is_report(next) || next.ends_with('s') && !REPORTS.contains(&next),
        }
    })
}

/// Verbs of a report that no ending tells.
const REPORTS: [&str; 18] = [
    "been", "had", "has", "is", "was", "were", "did", "does", "would", "seen", "heard", "got", "knew", "saw", "came",
    "thought", "out", "have",
];

/// True for a verb in the past or of a third party: "worked", "returns", "was".
fn is_report(verb: &str) -> bool {
    let ends = |ends: &[&str]| ends.iter().any(|end| verb.ends_with(end));
    let is_third_person = ends(&["s"]) && !ends(&["ss", "us", "as", "is"]);
    let is_past = ends(&["ed"]) && !ends(&["eed", "embed", "shed"]);
    REPORTS.contains(&verb) || is_third_person || is_past
}

/// True for clauses that begin like an order but are none.
fn is_known_talk(start: &str, clause: &[&str]) -> bool {
    let rest = &clause[start.split(' ').count()..];
    let next = rest.first().copied().unwrap_or_default();
    match start {
        "no" => {
            rest.is_empty()
                || rest.iter().any(|word| ["was", "were", "found", "has"].contains(word))
                || rest.len() < 4
                    && ["output", "error", "errors", "luck", "result", "results", "response"].contains(&next)
                || [
                    "idea", "problem", "problems", "worries", "need", "way", "one", "thanks", "thank", "it", "that",
                    "this", "i", "we", "longer", "wait", "rush", "hurry", "such", "luck", "matter", "you",
                ]
                .contains(&next)
        }
        "don't" => {
            let is_idiom = ["worry", "know", "you", "understand", "we", "think", "bother", "forget", "they", "i"];
            let is_aside = ["ask", "tell"].contains(&next) && rest.get(1).is_none_or(|word| *word == "me");
            (is_idiom.contains(&next) || is_aside) && rest.get(1).is_none_or(|word| !["dare", "ever"].contains(word))
        }
        "keep" => ["going", "on", "working", "trying", "it", "that", "this", "calm", "looking", "digging", "up"]
            .contains(&next),
        "leave" => ["a", "me", "some"].contains(&next),
        "never" => next == "mind",
        "stop" => rest.is_empty() || ["here", "now", "it", "that", "this", "there", "the"].contains(&next),
        "ignore" => ["that", "this", "it", "my"].contains(&next),
        "ask" => rest.is_empty() || ["the", "it", "them", "him", "her"].contains(&next),
        "remember" => ["when", "how", "that", "the", "what"].contains(&next) && clause.len() < 6,
        "follow the" => clause.last() == Some(&"link"),
        "only" => {
            rest.iter().any(|word| ["did", "was", "were", "found"].contains(word))
                || ["the", "a", "one", "two", "three", "four", "five", "half", "some", "then"].contains(&next)
        }
        _ => false,
    }
}
