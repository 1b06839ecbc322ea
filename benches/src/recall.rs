//! Recall: what is surfaced with a model to choose and without one, how often it keeps silent when there is nothing to find, and
//! how fast it is.
//!
//! With a model the way is the real one, from files to what is surfaced. The model is a script that reads its request and
//! answers truthfully: of the memories it is shown it chooses those that answer the question, by the question's label, and of
//! others it knows nothing. So what is measured is what surrounds it: is the memory among what it is shown, and what is surfaced
//! without asking it? The ranker alone has other targets: an order and answers no worse than BM25's at the same silence, and how much
//! of what it surfaces is right. How many of all answerable questions it surfaces alone is told without a target: what is asked
//! in other words is left to the model, and nearly all of what it could add by itself would be wrong.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use memory::bench::{
    ASKED, QuestionOutcome, Comparison, Difference, RecallFigures, QuestionHalf, LabelledQuestion, Plain, SelectionOutcome, QuestionSet, afterwards, afterwards_asked,
    by_kind, projects, projects_afterwards, read_keys, repository,
};
use memory::rank::{WorkAtHand, RankQuestion};
use memory::shelf::{Shelf, ShelfScope};
use memory::store::{self, NewMemory};
use memory::{Memory, Ranker, scan};

use crate::table::{Row, Unit};

/// The day the labelled questions are asked on.
const TODAY: i64 = 1_772_800_000;

/// A difference by kind of question says something from so many questions on.
const ENOUGH: usize = 20;

/// Some sets, and what is expected of them.
struct Group {
    name: &'static str,
    sets: Vec<QuestionSet>,
    held_out: bool,
}

/// The figures of the sets that nothing was fitted on, of a directory of a thousand memories, and of one of 200 and one of
/// 10,000 files.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    let now = jiff::Timestamp::from_second(TODAY)?;
    let first_day = jiff::Timestamp::from_second(TODAY - 150 * 86_400)?;
    let sets = repository(QuestionHalf::Telling);
    let asked = sets.iter().zip(ASKED).map(|(set, asked)| set.with_asked(asked)).collect();
    let lined = projects(QuestionHalf::Telling).iter().map(|set| set.with_common_line(first_day)).collect();
    let all = QuestionSet::side_by_side(&[projects(QuestionHalf::Fitting), projects(QuestionHalf::Telling)].concat());
    let held_out = |name, sets| Group { name, sets, held_out: true };
    let groups = [
        held_out("the repository's sets, telling half", sets.clone()),
        held_out("the same with the questions they answer", asked),
        held_out("ten projects of others", projects(QuestionHalf::Telling)),
        held_out("four that were asked once, at the end", projects_afterwards()),
        held_out("five sets written afterwards", afterwards()),
        held_out("the same with the questions they answer", afterwards_asked()),
        Group { name: "ten projects, with a line that all begin with", sets: lined, held_out: false },
        Group { name: "twenty projects in one directory", sets: vec![all], held_out: false },
    ];
    let mut rows = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        rows.extend(group.rows(&place.join(format!("recall-{at}")), now)?);
    }
    rows.extend(speed(&sets[0], place)?);
    Ok(rows)
}

impl Group {
    fn rows(&self, place: &Path, now: jiff::Timestamp) -> Result<Vec<Row>> {
        let mut selected: Vec<SelectionOutcome<'_>> = Vec::new();
        for (at, set) in self.sets.iter().enumerate() {
            let shelf = laid_out(set, &place.join(at.to_string()))?;
            selected.extend(set.ask_with(&shelf, now, truthful));
        }
        let ours: Vec<QuestionOutcome<'_>> = self.sets.iter().flat_map(|set| set.ask(now)).collect();
        let plain: Vec<QuestionOutcome<'_>> = self.sets.iter().flat_map(|set| Plain::of(&set.memories).ask(set)).collect();
        let memories: usize = self.sets.iter().map(|set| set.memories.len()).sum();
        let name = format!("{}: {} questions, {memories} memories in {}", self.name, ours.len(), self.sets.len());
        let mut rows = vec![Row::figure(name, String::new())];
        rows.extend(self.with_model(&selected));
        rows.extend(self.without_model(&ours, &plain));
        Ok(rows)
    }

    /// What is surfaced with a model that answers truthfully.
    fn with_model(&self, selected: &[SelectionOutcome<'_>]) -> Vec<Row> {
        let answers: Vec<QuestionOutcome<'_>> = selected.iter().map(|one| one.answer.clone()).collect();
        let (all, kinds) = (RecallFigures::of(&answers), by_kind(&answers));
        let answerable = || selected.iter().filter(|one| !one.answer.question.wanted.is_empty());
        let is_surfaced =
            |one: &&SelectionOutcome<'_>| one.answer.surfaced.iter().any(|path| one.answer.question.wanted.contains(path));
        let candidates = answerable().filter(|one| one.is_candidate);
        let (among, of_these) =
            candidates.fold((0_u32, 0_u32), |(all, found), one| (all + 1, found + u32::from(is_surfaced(&one))));
        let surfaced = "  with a selector: answerable that surface their memory";
        let mut rows = vec![match self.held_out {
            true => Row::at_least(surfaced, Unit::Percent, all.surfaced(), 0.85),
            false => Row::figure(surfaced, format!("{:.2} %", 100.0 * all.surfaced())),
        }];
        let of_these = f64::from(of_these) / f64::from(among.max(1));
        rows.push(Row::at_least(
            "    of those whose memory is among the twelve likeliest",
            Unit::Percent,
            of_these,
            0.95,
        ));
        for (kind, words, least) in [
            ("none", "silent where nothing answers", 0.9),
            ("foreign", "silent on questions of other projects", 0.9),
            ("near", "silent on those with our names, or on what is left out", 0.8),
            ("known", "silent where the matter is known and the answer is not", 0.8),
        ] {
            let silent = kinds.get(kind).filter(|figures| figures.unanswerable > 0).map(RecallFigures::silent);
            rows.extend(silent.map(|silent| Row::at_least(format!("    {words}"), Unit::Percent, silent, least)));
        }
        let at_once = answerable().filter(|one| one.asked.is_none()).filter(is_surfaced).count();
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let prompts: Vec<usize> = selected.iter().filter_map(|one| one.asked).collect();
        let nothing = selected.iter().filter(|one| one.answer.question.wanted.is_empty());
        let (unanswerable, asked) =
            nothing.fold((0, 0), |(all, asked), one| (all + 1, asked + usize::from(one.asked.is_some())));
        rows.push(Row::figure(
            "    surfaced before it is asked; asked, of all and of the unanswerable; bytes of a prompt",
            format!(
                "{:.1} %; {:.1} %, {:.1} %; {}",
                share(at_once, all.answerable),
                share(prompts.len(), selected.len()),
                share(asked, unanswerable),
                prompts.iter().sum::<usize>() / prompts.len().max(1)
            ),
        ));
        rows
    }

    /// What the ranker does alone, beside BM25.
    fn without_model(&self, ours: &[QuestionOutcome<'_>], plain: &[QuestionOutcome<'_>]) -> Vec<Row> {
        let (all, kinds) = (RecallFigures::of(ours), by_kind(ours));
        let mut rows = vec![Row::figure("  without a model", all.to_string())];
        let Comparison { first, five, surfaced } = Comparison::of(ours, plain);
        rows.push(against("R@1", &first));
        rows.push(against("R@5", &five));
        rows.push(against("surfaced at equal silence", &surfaced));
        rows.push(Row::at_least("    right of what is surfaced", Unit::Percent, all.right(), 0.55));
        for (kind, figures) in &kinds {
            match figures.answerable {
                ENOUGH.. => {
                    let five = Comparison::of(&of_kind(ours, kind), &of_kind(plain, kind)).five;
                    rows.push(against(&format!("{kind}: surfaced {:.1}, R@5", 100.0 * figures.surfaced()), &five));
                }
                _ => rows.push(Row::figure(format!("    {kind}"), figures.to_string())),
            }
        }
        // RECALL-8 sets these for the repository's set, RECALL.md that of plain questions for large directories.
        if let Some(foreign) = kinds.get("foreign") {
            let none = kinds["none"].silent();
            rows.push(Row::at_least("    unanswerable that surface nothing", Unit::Percent, none, 0.9));
            rows.push(Row::at_least("    of other projects, likewise", Unit::Percent, foreign.silent(), 0.9));
        }
        if let [set] = self.sets.as_slice()
            && set.memories.len() > 1_000
        {
            let plain = kinds["plain"].surfaced_of_first();
            rows.push(Row::at_least("    plain and ranked first, surfaced", Unit::Percent, plain, 0.7));
            rows.push(Row::at_least("    silent where nothing answers", Unit::Percent, kinds["none"].silent(), 0.9));
        }
        rows
    }
}

fn of_kind<'s>(answers: &[QuestionOutcome<'s>], kind: &str) -> Vec<QuestionOutcome<'s>> {
    answers.iter().filter(|answer| answer.question.kind == kind).cloned().collect()
}

/// Ours, and that it is not below BM25 by more than the 95 % interval.
fn against(name: &str, difference: &Difference) -> Row {
    let Difference { ours, plain, interval } = *difference;
    let name = format!("    {name} (BM25 {:.1}, ± {:.1})", 100.0 * plain, 100.0 * interval);
    Row::at_least(name, Unit::Percent, ours, difference.least())
}

/// A selector that knows what answers a question, of what it is shown.
fn truthful(question: &LabelledQuestion, prompt: &str) -> String {
    let shown = read_keys(prompt);
    let chosen: Vec<&&str> = shown.iter().filter(|key| question.wanted.iter().any(|path| path == **key)).collect();
    serde_json::json!({ "selected_memories": chosen }).to_string()
}

/// A set as files, each as old as its memory.
fn laid_out(set: &QuestionSet, directory: &Path) -> Result<Arc<Shelf>> {
    let _ = std::fs::remove_dir_all(directory);
    for memory in &set.memories {
        let file = directory.join(&memory.path);
        std::fs::create_dir_all(file.parent().context("a memory lies in a folder")?)?;
        std::fs::write(&file, as_file(memory))?;
        let at = memory.dated.unwrap_or_default().as_second().unsigned_abs();
        std::fs::File::options()
            .append(true)
            .open(&file)?
            .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(at))?;
    }
    Ok(Arc::new(Shelf::read(std::fs::canonicalize(directory)?, ShelfScope::Project)?))
}

fn as_file(memory: &Memory) -> String {
    store::render(&NewMemory {
        name: memory.name.clone(),
        description: memory.description.clone().unwrap_or_default(),
        asked: memory.asked.clone(),
        kind: memory.kind,
        body: memory.body.clone(),
        ..NewMemory::default()
    })
}

fn speed(set: &QuestionSet, place: &Path) -> Result<Vec<Row>> {
    let small = filled(set, &place.join("memories-200"), 200)?;
    let large = filled(set, &place.join("memories-10000"), 10_000)?;
    let scan_small = best(15, || scan::headers(&small).is_ok());
    let scan_large = best(5, || scan::headers(&large).is_ok());
    let cat = format!("find '{}' -name '*.md' -print0 | xargs -0 cat > /dev/null", large.path().display());
    let cat = best(5, || Command::new("sh").args(["-c", &cat]).status().is_ok());
    let start = Instant::now();
    let ranker = Ranker::load(&large)?;
    let first = start.elapsed().as_secs_f64() * 1e3;
    let (doing, now) = (WorkAtHand::default(), jiff::Timestamp::from_second(TODAY)?);
    let ask = |text: &str| best(3, || !ranker.choose(&RankQuestion { text, doing: &doing, now }, |_| true).is_empty());
    let slowest = set.questions.iter().map(|question| ask(&question.text)).fold(0.0, f64::max);
    Ok(vec![
        Row::at_most("scan of 200 files", Unit::Milliseconds, scan_small, 3.0),
        Row::at_most("scan of 10,000 files / cat", Unit::Times, scan_large / cat, 2.0),
        Row::at_most("first load of 10,000", Unit::Milliseconds, first, 500.0),
        Row::at_most("slowest query over 10,000, warm", Unit::Milliseconds, slowest, 5.0),
    ])
}

/// A directory of so many memories, made once.
fn filled(set: &QuestionSet, directory: &Path, count: usize) -> Result<files::Root> {
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
