//! Prints how good recall without a model is on the labelled set, and how fast it is on many files.
//!
//! `recall_bench [--misses] [--none] [--features] [--speed] [MEMORIES QUERIES]`

#![allow(clippy::disallowed_methods, reason = "a measuring program: it reads its set and the clock")]
#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use memory::bench::{self, Figures, Set};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    if flag("--speed") {
        if let Err(error) = speed() {
            println!("not measured: {error}");
        }
        return;
    }
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
    let (one, other) = bench::halves(&answers);
    println!("{} memories, {} questions", set.memories.len(), set.questions.len());
    println!("all    {}", Figures::of(&answers));
    println!("half   {}", Figures::of(one));
    println!("other  {}", Figures::of(other));
    for (kind, figures) in bench::by_kind(&answers) {
        println!("  {kind:12} {figures}");
    }
    if files.is_empty() {
        let second = Set::read(
            include_str!("../tests/recall/other_memories.txt"),
            include_str!("../tests/recall/other_queries.txt"),
        );
        println!("\nsecond set, {} memories, {} questions", second.memories.len(), second.questions.len());
        let answers = second.ask(now);
        println!("all    {}", Figures::of(&answers));
        for (kind, figures) in bench::by_kind(&answers) {
            println!("  {kind:12} {figures}");
        }
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

/// How long scanning, loading and asking take, beside `cat` over the same files, the best of several runs.
fn speed() -> Result<(), Box<dyn std::error::Error>> {
    let set = Set::read(include_str!("../tests/recall/memories.txt"), include_str!("../tests/recall/queries.txt"));
    let doing = memory::rank::Doing::default();
    let now = jiff::Timestamp::from_second(1_772_800_000)?;
    for count in [200, 10_000] {
        let directory = tempfile::tempdir()?;
        for number in 0..count {
            let like = &set.memories[number % set.memories.len()];
            let filler = format!("{} note {number}. ", like.body.trim()).repeat(6);
            let text = format!(
                "---\nname: {} {number}\ndescription: {}\ntype: project\n---\n\n{filler}\n",
                like.name,
                like.description.as_deref().unwrap_or_default(),
            );
            std::fs::write(directory.path().join(format!("m{number}.md")), text)?;
        }
        let root = files::Root::open(directory.path())?;
        let scan = best(9, || memory::scan::headers(&root).map(drop).is_ok());
        let command = format!("find '{}' -name '*.md' -print0 | xargs -0 cat > /dev/null", directory.path().display());
        let cat = best(5, || std::process::Command::new("sh").args(["-c", &command]).status().is_ok());
        let load = best(2, || memory::Ranker::load(&root).is_ok());
        let mut ranker = memory::Ranker::load(&root)?;
        let reload = best(3, || ranker.reload(&root).is_ok());
        let mut slowest: f64 = 0.0;
        let mut sum = 0.0;
        for question in &set.questions {
            let asked = memory::rank::Question { text: &question.text, doing: &doing, now };
            let took = best(3, || !ranker.choose(&asked, |_| true).is_empty());
            slowest = slowest.max(took);
            sum += took;
        }
        let mean = sum / set.questions.len() as f64;
        println!(
            "{count} files: scan {scan:.2} ms, cat {cat:.2} ms; load the ranker {load:.1} ms, reload {reload:.2} ms; a query {mean:.3} ms, the slowest {slowest:.3} ms"
        );
    }
    Ok(())
}

/// The shortest of several runs, in milliseconds.
fn best(runs: usize, mut run: impl FnMut() -> bool) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = std::time::Instant::now();
        std::hint::black_box(run());
        best = best.min(start.elapsed().as_secs_f64() * 1_000.0);
    }
    best
}
