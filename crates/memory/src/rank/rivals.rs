//! Two memories about the same thing: the newer wins, and the older is named.
//!
//! Whether two texts contradict cannot be known without a model. What can be known is that their names and descriptions
//! speak of the same thing, that they match a question about equally well, and that one is newer. Then the newer one is
//! the one to believe. Where the question names what tells them apart, both stay.

use super::corpus::{Corpus, Doc};
use super::score::Scored;

/// How alike names and descriptions must be, by weight of their words.
const ALIKE: f32 = 0.42;

/// How much less sure the newer may be.
const AS_SURE: f32 = 0.75;

/// How many of the best are compared.
const COMPARED: usize = 8;

/// Puts newer before older where both speak of the same thing.
pub(super) fn settle(corpus: &Corpus, hits: &mut [Scored]) {
    let count = hits.len().min(COMPARED);
    for one in 0..count {
        for other in one + 1..count {
            let (a, b) = (&corpus.docs[hits[one].doc], &corpus.docs[hits[other].doc]);
            if a.kind != b.kind || a.dated == b.dated || likeness(corpus, a, b) < ALIKE {
                continue;
            }
            let (newer, older) = if a.dated > b.dated { (one, other) } else { (other, one) };
            if hits[newer].hit.confidence < hits[older].hit.confidence * AS_SURE
                || hits[older].hit.superseded_by.is_some()
            {
                continue;
            }
            // The older one covers a word the newer one does not: the question tells them apart.
            let covers = |at: usize, label: &str| hits[at].hit.matched.iter().any(|(matched, _)| matched == label);
            if hits[older].hit.matched.iter().any(|(label, well)| *well > 0.5 && !covers(newer, label)) {
                continue;
            }
            let path = corpus.docs[hits[older].doc].path.clone();
            hits[older].hit.superseded_by = Some(corpus.docs[hits[newer].doc].path.clone());
            let order = hits[older].order;
            hits[newer].order = hits[newer].order.max(order + 0.001);
            let sure = hits[older].hit.confidence;
            hits[newer].hit.confidence = hits[newer].hit.confidence.max(sure);
            hits[newer].hit.supersedes.push(path);
        }
    }
    hits.sort_by(|one, other| other.order.total_cmp(&one.order));
}

/// How alike the names and descriptions of two memories are, by how rare the words they share are.
fn likeness(corpus: &Corpus, one: &Doc, other: &Doc) -> f32 {
    let rarity = |word: &Vec<u32>| word.first().map_or(0.0, |term| corpus.rarity(corpus.frequency(*term)));
    let shared: f32 = one.title.iter().filter(|word| other.title.contains(word)).map(rarity).sum();
    let of = |doc: &Doc| doc.title.iter().map(rarity).sum::<f32>();
    let all = of(one).min(of(other));
    if all <= 0.0 { 0.0 } else { shared / all }
}
