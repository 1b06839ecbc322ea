//! Recall without a model: how much it finds, how often it keeps silent when there is nothing to find, and how fast.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use memory::bench::{Figures, Set, by_kind};
use memory::rank::{Doing, Question};
use memory::{Ranker, scan};

use crate::table::{Row, Unit};

/// The day the labelled questions are asked on.
const TODAY: i64 = 1_772_800_000;

/// The figures of the labelled sets, and of a directory of 200 and one of 10,000 files.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    let set = Set::read(
        include_str!("../../crates/memory/tests/recall/memories.txt"),
        include_str!("../../crates/memory/tests/recall/queries.txt"),
    );
    let other = Set::read(
        include_str!("../../crates/memory/tests/recall/other_memories.txt"),
        include_str!("../../crates/memory/tests/recall/other_queries.txt"),
    );
    let third = Set::read(
        include_str!("../../crates/memory/tests/recall/third_memories.txt"),
        include_str!("../../crates/memory/tests/recall/third_queries.txt"),
    );
    let mut rows = quality(&set)?;
    rows.extend(speed(&set, place)?);
    let now = jiff::Timestamp::from_second(TODAY)?;
    rows.push(Row::figure("another trade", Figures::of(&other.ask(now)).to_string()));
    rows.push(Row::figure("a third trade", Figures::of(&third.ask(now)).to_string()));
    Ok(rows)
}

fn quality(set: &Set) -> Result<Vec<Row>> {
    let answers = set.ask(jiff::Timestamp::from_second(TODAY)?);
    let figures = Figures::of(&answers);
    let mut rows = vec![
        Row::at_least("Recall@5 of the answerable", Unit::Percent, figures.recall(), 0.9),
        Row::at_least("unanswerable that surface nothing", Unit::Percent, figures.abstention(), 0.9),
    ];
    for (kind, figures) in by_kind(&answers) {
        rows.push(Row::figure(kind, figures.to_string()));
    }
    Ok(rows)
}

fn speed(set: &Set, place: &Path) -> Result<Vec<Row>> {
    let small = filled(set, &place.join("memories-200"), 200)?;
    let large = filled(set, &place.join("memories-10000"), 10_000)?;
    let scan_small = best(15, || scan::headers(&small).is_ok());
    let scan_large = best(5, || scan::headers(&large).is_ok());
    let cat = format!("find '{}' -name '*.md' -print0 | xargs -0 cat > /dev/null", large.path().display());
    let cat = best(5, || Command::new("sh").args(["-c", &cat]).status().is_ok());
    let start = Instant::now();
    let ranker = Ranker::load(&large)?;
    let first = format!("{:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let (doing, now) = (Doing::default(), jiff::Timestamp::from_second(TODAY)?);
    let ask = |text: &str| best(3, || !ranker.choose(&Question { text, doing: &doing, now }, |_| true).is_empty());
    let slowest = set.questions.iter().map(|question| ask(&question.text)).fold(0.0, f64::max);
    Ok(vec![
        Row::at_most("scan of 200 files", Unit::Milliseconds, scan_small, 3.0),
        Row::at_most("scan of 10,000 files / cat", Unit::Times, scan_large / cat, 2.0),
        Row::figure("first load of 10,000", first),
        Row::at_most("slowest query over 10,000, warm", Unit::Milliseconds, slowest, 5.0),
    ])
}

/// A directory of so many memories, made once.
fn filled(set: &Set, directory: &Path, count: usize) -> Result<files::Root> {
    let done = directory.join("done");
    if !done.exists() {
        std::fs::create_dir_all(directory)?;
        for number in 0..count {
            let like = &set.memories[number % set.memories.len()];
            let filler = format!("{} note {number}. ", like.body.trim()).repeat(6);
            let (name, about) = (&like.name, like.description.as_deref().unwrap_or_default());
            let text = format!("---\nname: {name} {number}\ndescription: {about}\ntype: project\n---\n\n{filler}\n");
            std::fs::write(directory.join(format!("m{number}.md")), text)?;
        }
        std::fs::write(done, "")?;
    }
    let directory = std::fs::canonicalize(directory)?;
    files::Root::open(&directory).with_context(|| directory.display().to_string())
}

/// The shortest of several runs, in milliseconds.
fn best(runs: usize, mut run: impl FnMut() -> bool) -> f64 {
    let time = |run: &mut dyn FnMut() -> bool| {
        let start = Instant::now();
        std::hint::black_box(run());
        start.elapsed().as_secs_f64() * 1_000.0
    };
    (0..runs).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min)
}
