//! Recall without a model: how much it finds, how often it keeps silent when there is nothing to find, and how fast.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use memory::bench::{
    ASKED, Figures, Half, Plain, Set, afterwards, afterwards_asked, by_kind, projects, projects_afterwards, repository,
};
use memory::rank::{Doing, Question};
use memory::{Ranker, scan};

use crate::table::{Row, Unit};

/// The day the labelled questions are asked on.
const TODAY: i64 = 1_772_800_000;

/// The figures of the half of the questions that nothing was fitted on, of the sets that were written afterwards, and of a
/// directory of 200 and one of 10,000 files. Where something answers: how often it is surfaced, and how much of what is surfaced is
/// right. Where nothing does: how often nothing is. In directories of 50 memories and of 1,000; the order beside BM25's.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    let now = jiff::Timestamp::from_second(TODAY)?;
    let sets = repository(Half::Telling);
    let mut rows = quality(&sets, now);
    let asked: Vec<Set> = sets.iter().zip(ASKED).map(|(set, asked)| set.with_asked(asked)).collect();
    rows.push(Row::figure("with the questions that they say they answer", String::new()));
    rows.extend(quality(&asked, now));
    rows.extend(told("ten projects of others", &projects(Half::Telling), now));
    rows.extend(told("four that were asked once, at the end", &projects_afterwards(), now));
    rows.extend(told("five sets written afterwards", &afterwards(), now));
    rows.extend(told("  with the questions they answer", &afterwards_asked(), now));
    let first_day = jiff::Timestamp::from_second(TODAY - 150 * 86_400)?;
    let lined: Vec<Set> = projects(Half::Telling).iter().map(|set| set.with_common_line(first_day)).collect();
    rows.extend(told("ten projects with a line that all begin with", &lined, now));
    rows.extend(large(now));
    rows.extend(speed(&sets[0], place)?);
    Ok(rows)
}

/// The figures of a directory of a thousand memories: twenty projects side by side.
fn large(now: jiff::Timestamp) -> Vec<Row> {
    let set = Set::side_by_side(&[projects(Half::Fitting), projects(Half::Telling)].concat());
    let (ours, plain) = (set.ask(now), Plain::of(&set.memories).ask(&set));
    let (all, all_plain, kinds) = (Figures::of(&ours), Figures::of(&plain), by_kind(&ours));
    let count = set.memories.len();
    let mut rows = vec![
        Row::at_least(
            format!("{count} memories: plain and first, surfaced"),
            Unit::Percent,
            kinds["plain"].surfaced_of_first(),
            0.7,
        ),
        Row::at_least("  right of what is surfaced", Unit::Percent, all.right(), 0.55),
        Row::at_least("  silent where nothing answers", Unit::Percent, kinds["none"].silent(), 0.9),
        Row::at_least("  R@1, and BM25", Unit::Percent, all.first(), all_plain.first()),
        Row::at_least("  R@5, and BM25", Unit::Percent, all.five(), all_plain.five()),
    ];
    rows.extend(told("  all", &[set], now));
    rows
}

/// The figures of some sets, and those by kind of question.
fn told(name: &str, sets: &[Set], now: jiff::Timestamp) -> Vec<Row> {
    let ours: Vec<_> = sets.iter().flat_map(|set| set.ask(now)).collect();
    let plain: Vec<_> = sets.iter().flat_map(|set| Plain::of(&set.memories).ask(set)).collect();
    let plain_kinds = by_kind(&plain);
    let kinds = by_kind(&ours);
    let kinds = kinds.iter().map(|(kind, figures)| match figures.answerable {
        0 => Row::figure(format!("  {kind}"), figures.to_string()),
        _ => Row::figure(format!("  {kind}"), both(figures, &plain_kinds[kind])),
    });
    std::iter::once(Row::figure(name, both(&Figures::of(&ours), &Figures::of(&plain)))).chain(kinds).collect()
}

fn quality(sets: &[Set], now: jiff::Timestamp) -> Vec<Row> {
    let ours: Vec<_> = sets.iter().flat_map(|set| set.ask(now)).collect();
    let plain: Vec<_> = sets.iter().flat_map(|set| Plain::of(&set.memories).ask(set)).collect();
    let (kinds, plain_kinds) = (by_kind(&ours), by_kind(&plain));
    let (all, all_plain) = (Figures::of(&ours), Figures::of(&plain));
    let silent = |kind: &str| kinds.get(kind).map_or(0.0, Figures::silent);
    let mut rows = vec![
        Row::at_least("answerable that surface their memory", Unit::Percent, all.surfaced(), 0.75),
        Row::at_least("right of what is surfaced", Unit::Percent, all.right(), 0.55),
        Row::at_least("unanswerable that surface nothing", Unit::Percent, silent("none"), 0.9),
        Row::at_least("questions of other projects that surface nothing", Unit::Percent, silent("foreign"), 0.9),
        Row::at_least("the same with our names in them", Unit::Percent, silent("near"), 0.8),
        Row::at_least("ranked first, and BM25", Unit::Percent, all.first(), all_plain.first()),
        Row::at_least("ranked among the first five, and BM25", Unit::Percent, all.five(), all_plain.five()),
    ];
    for (kind, figures) in kinds.iter().filter(|(_, figures)| figures.answerable > 0) {
        let plain = &plain_kinds[kind];
        rows.push(match figures.answerable {
            20.. => Row::at_least(format!("{kind}, and BM25"), Unit::Percent, figures.five(), plain.five()),
            _ => Row::figure(kind, both(figures, plain)),
        });
    }
    rows
}

fn both(ours: &Figures, plain: &Figures) -> String {
    format!("{ours}  (BM25 R@1 {:.1}  R@5 {:.1})", 100.0 * plain.first(), 100.0 * plain.five())
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
    let first = start.elapsed().as_secs_f64() * 1e3;
    let (doing, now) = (Doing::default(), jiff::Timestamp::from_second(TODAY)?);
    let ask = |text: &str| best(3, || !ranker.choose(&Question { text, doing: &doing, now }, |_| true).is_empty());
    let slowest = set.questions.iter().map(|question| ask(&question.text)).fold(0.0, f64::max);
    Ok(vec![
        Row::at_most("scan of 200 files", Unit::Milliseconds, scan_small, 3.0),
        Row::at_most("scan of 10,000 files / cat", Unit::Times, scan_large / cat, 2.0),
        Row::at_most("first load of 10,000", Unit::Milliseconds, first, 500.0),
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
