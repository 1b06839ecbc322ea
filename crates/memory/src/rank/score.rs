//! From matches to confidence.

use std::collections::HashSet;

use jiff::Timestamp;

use super::Hit;
use super::corpus::{Corpus, Doc, Term};
use super::query::{Asked, Unit};
use super::standing::Turn;
use crate::taxonomy::Kind;

/// From this confidence on a memory is surfaced.
pub const SURE: f32 = 0.5;

/// How near to the first the others must be.
pub(super) const NEARLY: f32 = 0.6;

/// A count saturates around here (BM25's k, for weighted counts).
const SATURATION: f32 = 0.4;

/// How many memories are looked at closely.
const CLOSE_LOOK: usize = 60;

/// The weakest match of a unit that is worth counting.
const FAINT: f32 = 0.05;

/// What is left of the confidence in an instruction for another language than the turn's.
const OTHER_LANGUAGE: f32 = 0.5;

/// The weights of the confidence, chosen for how well answerable and unanswerable questions part on all three labelled
/// sets. How much is found counts for little: that depends on how many memories there are, what share of the question
/// is found does not. The bias puts nine in ten unanswerable ones below [`SURE`].
const COVERAGE: f32 = 7.0;
const EVIDENCE: f32 = 0.5;
const TOPIC: f32 = 3.0;
const BIAS: f32 = -3.92;

/// What it adds that a memory holds the kind of answer a question expects, and that it does not.
const HOLDS: f32 = 0.5;
const LACKS: f32 = -0.8;

/// How a memory was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Its words are like the question's.
    Likeness,
    /// It is a standing instruction for what the turn does.
    Standing,
}

/// A hit and the memory it is.
pub(super) struct Scored {
    pub(super) hit: Hit,
    pub(super) doc: usize,
    /// What orders hits.
    pub(super) order: f32,
}

/// The memories that have anything to do with a question, the best first.
pub(super) fn hits(corpus: &Corpus, asked: &Asked, turn: &Turn, now: Timestamp) -> Vec<Scored> {
    let evidence = evidence(corpus, asked);
    let mut near: Vec<usize> = (0..corpus.docs.len()).filter(|at| evidence[*at] > 0.0).collect();
    near.sort_by(|one, other| evidence[*other].total_cmp(&evidence[*one]));
    let mut seen: HashSet<usize> = near.iter().copied().take(CLOSE_LOOK).collect();
    let standing: Vec<(usize, f32)> = corpus
        .docs
        .iter()
        .enumerate()
        .filter_map(|(at, doc)| doc.scope.as_ref().map(|scope| (at, scope.fits(turn))).filter(|(_, fit)| *fit > 0.0))
        .collect();
    seen.extend(standing.iter().map(|(at, _)| *at));
    let asked_terms: HashSet<Term> = asked
        .units
        .iter()
        .filter(|unit| unit.weight >= 0.2)
        .flat_map(|unit| unit.stands.iter().map(|(term, _)| *term).chain(unit.grams.iter().flatten().copied()))
        .collect();
    let mut hits: Vec<Scored> = seen
        .into_iter()
        .map(|at| {
            let fit = standing.iter().find(|(doc, _)| *doc == at).map_or(0.0, |(_, fit)| *fit);
            let other = corpus.docs[at].scope.as_ref().is_some_and(|scope| scope.is_for_another_language(turn));
            let mut scored = scored(corpus, asked, &asked_terms, at, fit, now);
            if other {
                scored.hit.confidence *= OTHER_LANGUAGE;
                scored.order *= OTHER_LANGUAGE;
            }
            scored
        })
        .collect();
    hits.sort_by(|one, other| {
        other.order.total_cmp(&one.order).then_with(|| corpus.docs[one.doc].path.cmp(&corpus.docs[other.doc].path))
    });
    hits
}

/// For each memory how much of what the question says it has.
fn evidence(corpus: &Corpus, asked: &Asked) -> Vec<f32> {
    let mut sum = vec![0.0_f32; corpus.docs.len()];
    let mut best = vec![0.0_f32; corpus.docs.len()];
    let mut touched: Vec<u32> = Vec::new();
    let mut found = vec![0_u64; corpus.docs.len()];
    for unit in &asked.units {
        for (term, well) in &unit.stands {
            for (doc, count) in &corpus.postings[*term as usize] {
                let strength = well * saturated(*count);
                let slot = &mut best[*doc as usize];
                if *slot == 0.0 {
                    touched.push(*doc);
                }
                *slot = slot.max(strength);
            }
        }
        for (at, gram) in unit.grams.iter().enumerate().take(64) {
            let Some(gram) = gram else { continue };
            for (doc, _) in &corpus.postings[*gram as usize] {
                found[*doc as usize] |= 1 << at;
                touched.push(*doc);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for doc in touched.drain(..) {
            let doc = doc as usize;
            let by_grams = of_grams(unit, |at| found[doc] & (1 << at) != 0);
            sum[doc] += unit.weight * best[doc].max(by_grams);
            best[doc] = 0.0;
            found[doc] = 0;
        }
    }
    sum
}

fn saturated(count: f32) -> f32 {
    count / (count + SATURATION)
}

/// How much of a run is found: the share of its characters that stand in a found pair, if it is more than a chance.
fn of_grams(unit: &Unit, found: impl Fn(usize) -> bool) -> f32 {
    let pairs = unit.grams.len().min(64);
    if pairs == 0 {
        return 0.0;
    }
    if unit.label.chars().count() < 2 {
        return if found(0) { 0.6 } else { 0.0 };
    }
    let characters = (0..=pairs).filter(|at| *at < pairs && found(*at) || *at > 0 && found(*at - 1)).count();
    let share = characters as f32 / (pairs + 1) as f32;
    if share < 0.4 { 0.0 } else { share * 0.9 }
}

/// How well a memory matches a unit.
fn strength(doc: &Doc, unit: &Unit) -> f32 {
    let count = |term: Term| doc.terms.binary_search_by_key(&term, |(term, _)| *term).ok().map(|at| doc.terms[at].1);
    let by_word = unit.stands.iter().filter_map(|(term, well)| count(*term).map(|count| well * saturated(count)));
    let by_word = by_word.fold(0.0_f32, f32::max);
    by_word.max(of_grams(unit, |at| unit.grams[at].and_then(count).is_some()))
}

fn scored(corpus: &Corpus, asked: &Asked, asked_terms: &HashSet<Term>, at: usize, fit: f32, now: Timestamp) -> Scored {
    let doc = &corpus.docs[at];
    let mut evidence = 0.0;
    let mut missing = 0.0;
    let mut matched = Vec::new();
    for unit in &asked.units {
        let strength = strength(doc, unit);
        if strength > FAINT {
            evidence += unit.weight * strength;
            matched.push((unit.label.clone(), strength));
        }
        if !unit.bonus {
            missing += unit.cost * (1.0 - strength);
        }
    }
    let coverage = if evidence > 0.0 { evidence / (evidence + missing) } else { 0.0 };
    let topic = topic(corpus, doc, asked_terms);
    let answer = match asked.expected.answered_by(doc.held) {
        Some(true) => HOLDS,
        Some(false) => LACKS,
        None => 0.0,
    };
    let mut confidence = confidence(coverage, evidence, topic, answer);
    if doc.title.iter().flatten().any(|term| asked.left_out.contains(term)) {
        confidence *= 0.4;
    }
    let standing = fit * 0.9;
    let route = if standing > confidence { Route::Standing } else { Route::Likeness };
    // A standing instruction that also shares words is the likelier one.
    let confidence = confidence.max(standing * (0.85 + 0.15 * coverage.min(1.0)));
    let order = confidence + prior(doc, asked, now);
    let path = doc.path.clone();
    let hit = Hit {
        path,
        confidence,
        route,
        matched,
        coverage,
        evidence,
        topic,
        supersedes: Vec::new(),
        superseded_by: None,
    };
    Scored { hit, doc: at, order }
}

fn confidence(coverage: f32, evidence: f32, topic: f32, answer: f32) -> f32 {
    let sum = COVERAGE * coverage + EVIDENCE * evidence.max(0.01).ln() + TOPIC * topic + answer + BIAS;
    1.0 / (1.0 + (-sum).exp())
}

/// How much of a memory's name and description a question names, by how rare the words are.
fn topic(corpus: &Corpus, doc: &Doc, asked: &HashSet<Term>) -> f32 {
    let mut named = 0.0;
    let mut all = 0.0;
    for word in &doc.title {
        let rarity = word.first().map_or(0.0, |term| corpus.rarity(corpus.frequency(*term)));
        all += rarity;
        if word.iter().any(|term| asked.contains(term)) {
            named += rarity;
        }
    }
    // A title of one or two words is soon covered by chance.
    named / all.max(2.0)
}

/// What tips the scales between equals: newer before older, advice before facts, prohibitions for those who ask for them,
/// the language of the question before others.
fn prior(doc: &Doc, asked: &Asked, now: Timestamp) -> f32 {
    let days = crate::age::days(doc.dated, now) as f32;
    let recent = 0.02 * (-days / 90.0).exp();
    let kind = match doc.kind {
        Some(Kind::Feedback) => 0.01,
        Some(Kind::Project | Kind::User) => 0.005,
        Some(Kind::Reference) | None => 0.0,
    };
    let negative = if asked.negative && doc.negative { 0.03 } else { 0.0 };
    let script = if asked.script == Some(doc.script) { 0.04 } else { 0.0 };
    recent + kind + negative + script
}
