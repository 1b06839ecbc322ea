//! Prints how good recall without a model is on the labelled set, and how fast it is on many files.
//!
//! `recall_bench [--misses] [--features] [MEMORIES QUERIES]`

#![allow(clippy::disallowed_methods, reason = "a measuring program: it reads its set and the clock")]
#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use memory::bench::{self, Figures, Set};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let files: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let read = |at: usize, own: &str| match files.get(at) {
        Some(path) => std::fs::read_to_string(path).unwrap_or_default(),
        None => own.to_owned(),
    };
    let set = Set::read(
        &read(0, include_str!("../tests/recall/memories.txt")),
        &read(1, include_str!("../tests/recall/queries.txt")),
    );
    let now = jiff::Timestamp::from_second(1_772_800_000).unwrap_or_default();
    let answers = set.ask(now);
    let (tuned, held) = bench::halves(&answers);
    println!("{} memories, {} questions", set.memories.len(), set.questions.len());
    println!("all    {}", Figures::of(&answers));
    println!("tuned  {}", Figures::of(tuned));
    println!("held   {}", Figures::of(held));
    for (kind, figures) in bench::by_kind(&answers) {
        println!("  {kind:12} {figures}");
    }
    for (at, answer) in answers.iter().enumerate() {
        let good = |hit: &memory::rank::Hit| answer.question.wanted.contains(&hit.path);
        if flag("--features") {
            for (rank, hit) in answer.ranked.iter().take(5).enumerate() {
                let label = u8::from(good(hit));
                println!("F {at} {rank} {label} {} {} {} {:?}", hit.coverage, hit.evidence, hit.topic, hit.route);
            }
        }
        if flag("--none") && answer.question.wanted.is_empty() {
            let half = if at % 2 == 0 { "tuned" } else { "held" };
            for hit in answer.ranked.iter().take(1) {
                println!(
                    "N {:.2} {half} {} -> {} cov {:.2} ev {:.2} top {:.2} {:?} {:?}",
                    hit.confidence,
                    answer.question.text,
                    hit.path,
                    hit.coverage,
                    hit.evidence,
                    hit.topic,
                    hit.route,
                    hit.matched
                );
            }
        }
        let wrong = if answer.question.wanted.is_empty() {
            !answer.surfaced.is_empty()
        } else {
            !answer.surfaced.first().is_some_and(|path| answer.question.wanted.contains(path))
        };
        if flag("--misses") && wrong {
            let half = if at % 2 == 0 { "tuned" } else { "held" };
            println!("\n{half} [{}] {} -> {:?}", answer.question.kind, answer.question.text, answer.question.wanted);
            for hit in answer.ranked.iter().take(3) {
                let mark = if good(hit) { '*' } else { ' ' };
                println!(
                    "  {mark} {:.2} {} cov {:.2} ev {:.2} top {:.2} {:?} {:?}",
                    hit.confidence, hit.path, hit.coverage, hit.evidence, hit.topic, hit.route, hit.matched
                );
            }
        }
    }
}
