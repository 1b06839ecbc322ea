//! Fits the ranker's numbers on every second question of the repository's sets, and prints figures of the others.
//!
//! `cargo run -p memory --example fit_recall [-- --show]` prints what today's numbers give; with `--fit` it looks for
//! better ones first. The order's five are tried one after the other over a small grid until none gets better; the cut-off's
//! three are a logistic regression, its base moved until the fitting half is silent where it must be.

#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use memory::Ranker;
use memory::bench::{Answer, Figures, Half, Plain, Set, by_kind, repository};
use memory::rank::{Route, SURE, Weights};

/// What a change must gain to be made: less is one question more or less, and chance.
const WORTH_IT: f64 = 0.005;

struct Bench {
    sets: Vec<Set>,
    rankers: Vec<Ranker>,
    now: jiff::Timestamp,
}

impl Bench {
    fn new(which: Half, weights: Weights) -> Self {
        let sets = repository(which);
        let rankers = sets.iter().map(|set| Ranker::with(&set.memories, weights)).collect();
        Self { sets, rankers, now: jiff::Timestamp::from_second(1_772_800_000).unwrap_or_default() }
    }

    fn answers(&mut self, weights: Weights) -> Vec<Answer<'_>> {
        for ranker in &mut self.rankers {
            ranker.set(weights);
        }
        let now = self.now;
        self.sets.iter().zip(&self.rankers).flat_map(|(set, ranker)| set.ask_of(ranker, now)).collect()
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut weights = Weights::FITTED;
    if arguments.iter().any(|argument| argument == "--fit") {
        let mut bench = Bench::new(Half::Fitting, weights);
        weights = order(&mut bench, weights);
        weights = cut_off(&mut bench, weights);
        println!("{weights:#?}");
    }
    for (name, which) in [("fitting half", Half::Fitting), ("telling half", Half::Telling)] {
        println!("\n{name}");
        let mut bench = Bench::new(which, weights);
        let plain: Vec<Answer<'_>> = bench.sets.iter().flat_map(|set| Plain::of(&set.memories).ask(set)).collect();
        let plain_kinds = by_kind(&plain);
        let plain_all = Figures::of(&plain).ranked();
        let answers = bench.answers(weights);
        println!("  all {}  (BM25 {:.1})", Figures::of(&answers), 100.0 * plain_all);
        for (kind, figures) in by_kind(&answers) {
            println!("  {kind:12} {figures}  (BM25 {:.1})", 100.0 * plain_kinds[&kind].ranked());
        }
        if arguments.iter().any(|argument| argument == "--show") {
            show(&answers);
        }
    }
}

fn show(answers: &[Answer<'_>]) {
    for answer in answers {
        let wanted = &answer.question.wanted;
        let right = if wanted.is_empty() {
            answer.surfaced.is_empty()
        } else {
            answer.surfaced.iter().any(|path| wanted.contains(path))
        };
        if right {
            continue;
        }
        println!("[{}] {} -> {wanted:?} {:?}", answer.question.kind, answer.question.text, answer.surfaced);
        for hit in answer.ranked.iter().take(3) {
            println!(
                "    {:.2} {:?} {:.2} {:?} {} {:?}",
                hit.confidence, hit.route, hit.share, hit.figures, hit.path, hit.matched
            );
        }
    }
}

/// How good an order is: is a wanted memory among the first five, where does it stand, and how often does a question
/// that has an answer stand higher above chance than one that has none.
fn goodness(answers: &[Answer<'_>]) -> f64 {
    let figures = Figures::of(answers);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for answer in answers {
        let best = answer.ranked.iter().find(|hit| hit.route == Route::Likeness).map_or(-1.0, |hit| hit.figures.above);
        if answer.question.wanted.is_empty() { without.push(best) } else { with.push(best) }
    }
    let above: usize = with.iter().map(|one| without.iter().filter(|other| one > other).count()).sum();
    let told = above as f64 / (with.len() * without.len()).max(1) as f64;
    figures.ranked() + figures.reciprocal / figures.answerable.max(1) as f64 + told
}

/// A number, and what is tried for it.
type Grid = (fn(&mut Weights) -> &mut f32, &'static [f32]);

fn order(bench: &mut Bench, start: Weights) -> Weights {
    let grids: [Grid; 5] = [
        (|weights| &mut weights.saturation, &[0.5, 0.7, 0.9, 1.2, 1.6]),
        (|weights| &mut weights.length, &[0.2, 0.3, 0.4, 0.5, 0.75]),
        (|weights| &mut weights.language, &[0.2, 0.35, 0.5, 0.65]),
        (|weights| &mut weights.alike, &[0.25, 0.3, 0.35, 0.4, 0.5]),
        (|weights| &mut weights.soft, &[0.4, 0.6, 0.8, 1.0]),
    ];
    let mut best = (goodness(&bench.answers(start)), start);
    loop {
        let before = best.0;
        for (field, values) in &grids {
            for value in *values {
                let mut weights = best.1;
                *field(&mut weights) = *value;
                let found = goodness(&bench.answers(weights));
                if found > best.0 + WORTH_IT {
                    best = (found, weights);
                }
            }
        }
        println!("order {:.4} {:?}", best.0, best.1);
        if best.0 <= before {
            return best.1;
        }
    }
}

fn cut_off(bench: &mut Bench, weights: Weights) -> Weights {
    let answers = bench.answers(weights);
    // The likeliest memory of each question, and whether it is wanted; what is wanted and not found says nothing.
    let mut cases: Vec<(f64, f64, f64, &str)> = Vec::new();
    for answer in &answers {
        let Some(hit) = answer.ranked.iter().find(|hit| hit.route == Route::Likeness) else { continue };
        let wanted = &answer.question.wanted;
        let label = if wanted.is_empty() {
            0.0
        } else if answer.ranked.iter().take(5).any(|hit| wanted.contains(&hit.path)) {
            1.0
        } else {
            continue;
        };
        cases.push((f64::from(hit.figures.above), f64::from(hit.figures.missing), label, &answer.question.kind));
    }
    let share = cases.iter().map(|case| case.2).sum::<f64>() / cases.len() as f64;
    let (mut base, mut above, mut missing) = (0.0_f64, 5.0_f64, 5.0_f64);
    for _ in 0..20_000 {
        let mut slope = [0.0; 3];
        for (a, m, label, _) in &cases {
            let sure = 1.0 / (1.0 + (-(base + above * a - missing * m)).exp());
            let off = (label - sure) * if *label > 0.5 { 0.5 / share } else { 0.5 / (1.0 - share) };
            slope = [slope[0] + off, slope[1] + off * a, slope[2] - off * m];
        }
        let step = 4.0 / cases.len() as f64;
        base += step * slope[0];
        above += step * slope[1];
        missing += step * slope[2];
    }
    let silent = |base: f64, kinds: &[&str]| {
        let of: Vec<bool> = cases
            .iter()
            .filter(|case| case.2 < 0.5 && kinds.contains(&case.3))
            .map(|(a, m, ..)| 1.0 / (1.0 + (-(base + above * a - missing * m)).exp()) < f64::from(SURE))
            .collect();
        of.iter().filter(|silent| **silent).count() as f64 / of.len().max(1) as f64
    };
    base += 4.0;
    while silent(base, &["none", "foreign"]) < 0.9 || silent(base, &["near"]) < 0.84 {
        base -= 0.02;
    }
    Weights { sure_base: base as f32, sure_above: above as f32, sure_missing: missing as f32, ..weights }
}
