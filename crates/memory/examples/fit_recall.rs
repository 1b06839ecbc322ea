//! Fits the ranker's numbers on every second question of the repository's sets and on ten projects, and prints figures of the
//! others. Each set counts twice: its memories as they are, and with the questions that they say they answer.
//!
//! `cargo run -p memory --example fit_recall [-- --show]` prints what today's numbers give; with `--fit` it looks for
//! better ones first. The order's five are tried one after the other over a small grid until none gets better. Of the cut-off's
//! three, two are tried over a grid on the sets, and the third is moved until their fitting half is silent where it must be: what
//! then surfaces most is taken.

#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use memory::Ranker;
use memory::bench::{
    ASKED, Plain, QuestionHalf, QuestionOutcome, QuestionSet, RecallFigures, afterwards, afterwards_asked, by_kind,
    projects, projects_afterwards, repository,
};
use memory::rank::{Route, Weights};

/// What a change must gain to be made: less is two questions more or less, and chance.
const WORTH_IT: f64 = 0.015;

struct Bench {
    sets: Vec<QuestionSet>,
    rankers: Vec<Ranker>,
    now: jiff::Timestamp,
}

impl Bench {
    fn new(sets: Vec<QuestionSet>, weights: Weights) -> Self {
        let rankers = sets.iter().map(|set| Ranker::with(&set.memories, weights)).collect();
        Self { sets, rankers, now: jiff::Timestamp::from_second(1_772_800_000).unwrap_or_default() }
    }

    fn answers(&mut self, weights: Weights) -> Vec<QuestionOutcome<'_>> {
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
        let sets = [repository(QuestionHalf::Fitting), asked(QuestionHalf::Fitting)].concat();
        let mut all = Bench::new([sets.clone(), projects(QuestionHalf::Fitting)].concat(), weights);
        let mut sets = Bench::new(sets, weights);
        for _ in 0..2 {
            weights = order(&mut all, weights);
            weights = cut_off(&mut sets, weights);
        }
        println!("{weights:#?}");
    }
    for (name, sets) in [
        ("fitting half", repository(QuestionHalf::Fitting)),
        ("fitting half, with questions", asked(QuestionHalf::Fitting)),
        ("projects, to fit", projects(QuestionHalf::Fitting)),
        ("telling half", repository(QuestionHalf::Telling)),
        ("telling half, with questions", asked(QuestionHalf::Telling)),
        ("projects, to tell", projects(QuestionHalf::Telling)),
        ("four projects, asked once", projects_afterwards()),
        ("fourth to eighth set", afterwards()),
        ("fourth to eighth set, with questions", afterwards_asked()),
        ("all twenty projects in one directory", vec![all_projects()]),
        ("with a line that all begin with", with_line(&projects(QuestionHalf::Telling))),
    ] {
        println!("\n{name}");
        let mut bench = Bench::new(sets, weights);
        let plain: Vec<QuestionOutcome<'_>> =
            bench.sets.iter().flat_map(|set| Plain::of(&set.memories).ask(set)).collect();
        let plain_kinds = by_kind(&plain);
        let plain_all = RecallFigures::of(&plain);
        let answers = bench.answers(weights);
        println!("  {:12} {}  {}", "all", RecallFigures::of(&answers), against(&plain_all));
        for (kind, figures) in by_kind(&answers) {
            println!("  {kind:12} {figures}  {}", against(&plain_kinds[&kind]));
        }
        if arguments.iter().any(|argument| argument == "--show") {
            show(&answers);
        }
    }
}

fn all_projects() -> QuestionSet {
    QuestionSet::side_by_side(&[projects(QuestionHalf::Fitting), projects(QuestionHalf::Telling)].concat())
}

fn with_line(sets: &[QuestionSet]) -> Vec<QuestionSet> {
    let first_day = jiff::Timestamp::from_second(1_760_000_000).unwrap_or_default();
    sets.iter().map(|set| set.with_common_line(first_day)).collect()
}

/// What BM25 gives in the same place.
fn against(plain: &RecallFigures) -> String {
    if plain.answerable == 0 {
        return String::new();
    }
    format!("(BM25 R@1 {:.1}  R@5 {:.1})", 100.0 * plain.first(), 100.0 * plain.five())
}

/// The repository's sets with the questions that their memories say they answer.
fn asked(which: QuestionHalf) -> Vec<QuestionSet> {
    repository(which).iter().zip(ASKED).map(|(set, asked)| set.with_asked(asked)).collect()
}

fn show(answers: &[QuestionOutcome<'_>]) {
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

/// How good an order is: is a wanted memory among the first five, and where does it stand.
fn goodness(bench: &mut Bench, weights: Weights) -> f64 {
    let figures = RecallFigures::of(&bench.answers(weights));
    figures.five() + figures.mrr()
}

/// Numbers with as much evidence asked for as silence needs, and what is then answered.
fn silenced(bench: &mut Bench, weights: Weights) -> (Weights, Vec<QuestionOutcome<'_>>) {
    let sure_from = enough(&bench.answers(weights), weights.sure_missing);
    let weights = Weights { sure_from, ..weights };
    (weights, bench.answers(weights))
}

/// A number, and what is tried for it.
type Grid = (fn(&mut Weights) -> &mut f32, &'static [f32]);

fn order(bench: &mut Bench, start: Weights) -> Weights {
    let grids: [Grid; 5] = [
        (|weights| &mut weights.saturation, &[0.5, 0.7, 0.9, 1.2, 1.6]),
        (|weights| &mut weights.length, &[0.2, 0.3, 0.4, 0.5, 0.75]),
        (|weights| &mut weights.alike, &[0.2, 0.25, 0.3, 0.35, 0.4]),
        (|weights| &mut weights.soft, &[0.4, 0.45, 0.5, 0.6, 0.8]),
        (|weights| &mut weights.title, &[0.0, 0.25, 0.5, 0.75, 1.0]),
    ];
    let mut best = (goodness(bench, start), start);
    loop {
        let before = best.0;
        for (field, values) in &grids {
            for value in *values {
                let mut weights = best.1;
                *field(&mut weights) = *value;
                let found = goodness(bench, weights);
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

/// How much silence is asked of the fitting half: so many deviations above the mean of those that must be silent. In a normal
/// distribution 1.28 would leave one of ten above; a few lie far off, so it takes more.
const SILENT: [(&str, f32); 3] = [("none", 1.4), ("foreign", 1.4), ("near", 1.0)];

fn cut_off(bench: &mut Bench, start: Weights) -> Weights {
    let mut best = (0.0, start);
    let others = [0.35, 0.4, 0.45, 0.5, 0.6].map(|most| [0.3, 0.4, 0.5, 0.6].map(|missing| (most, missing)));
    for (sure_most, sure_missing) in
        [(start.sure_most, start.sure_missing)].iter().chain(others.as_flattened()).copied()
    {
        let (weights, answers) = silenced(bench, Weights { sure_most, sure_missing, ..start });
        let surfaces = RecallFigures::of(&answers).surfaced();
        println!("cut-off {sure_most} {sure_missing}: from {:.4} surfaces {surfaces:.3}", weights.sure_from);
        if surfaces > best.0 + WORTH_IT {
            best = (surfaces, weights);
        }
    }
    // What is enough is rounded to the silent side.
    Weights { sure_from: (best.1.sure_from * 1_000.0).ceil() / 1_000.0, ..best.1 }
}

/// How much evidence is enough for so many to stay silent as must. It is told by the mean and the deviation of all, since of
/// seventy questions the last seven alone say little.
fn enough(answers: &[QuestionOutcome<'_>], missing: f32) -> f32 {
    let most = |answer: &QuestionOutcome<'_>| {
        let likely = answer.ranked.iter().filter(|hit| hit.route == Route::Likeness);
        likely.map(|hit| hit.figures.against(missing)).reduce(f32::max)
    };
    let of = |(kind, deviations): &(&str, f32)| {
        let of_kind = answers.iter().filter(|answer| answer.question.kind == *kind);
        let all: Vec<f32> = of_kind.filter_map(most).collect();
        let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len().max(1) as f32;
        let middle = mean(&all);
        let squares: Vec<f32> = all.iter().map(|one| (one - middle).powi(2)).collect();
        middle + deviations * mean(&squares).sqrt()
    };
    SILENT.iter().map(of).fold(0.0, f32::max)
}
