//! Appending and projecting one message costs the same however long the session is.
//!
//! A round is a reply with a tool call, and its result: about a thousand tokens. A session is built to its size and then
//! doubled, and only the doubling is counted. Doubling, because vectors and maps pay for their growth now and then: so
//! every size pays its share exactly once. Small sessions are doubled as many times over as it takes to append the same
//! number of rounds in all.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use serde_json::json;
use transcript::line::{Body, Line, TextSource};
use transcript::{Block, Id, Log, Outcome, Usage};

use crate::count::{self, Scope};
use crate::prose::Prose;
use crate::table::{Row, Unit};

/// How many rounds are appended in all, at every size.
const ROUNDS: usize = 1_000;

/// Tokens of one round, near enough: what [`session`] makes of text.
const ROUND_TOKENS: usize = 1_000;

/// Sizes of a session in tokens: the smallest is what the others are held against.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

/// How much dearer the longest session may be.
const TARGET: f64 = 1.2;

/// How often time is taken where instructions cannot be counted.
const TRIES: usize = 5;

/// The cost of a round at each size, and the ratio of the longest to the shortest.
pub(crate) fn measure(_: &Path) -> Result<Vec<Row>> {
    let counting = count::is_possible();
    let costs = SIZES.map(|tokens| if counting { counted(tokens) } else { timed(tokens) });
    let unit = if counting { "instructions" } else { "ns (no valgrind)" };
    let mut rows = Vec::new();
    let mut first = None;
    for (tokens, cost) in SIZES.into_iter().zip(costs) {
        let cost = cost? / ROUNDS as f64;
        let first = *first.get_or_insert(cost);
        let size = name(tokens);
        rows.push(Row::figure(format!("append and project a round at {size}"), format!("{cost:.0} {unit}")));
        if tokens != SIZES[0] {
            let against = format!("  {size} against {}", name(SIZES[0]));
            rows.push(Row::at_most(against, Unit::Times, cost / first, TARGET));
        }
    }
    Ok(rows)
}

fn counted(tokens: usize) -> Result<f64> {
    let size = tokens.to_string();
    let scope = Scope::Function("*append_rounds*");
    Ok(count::instructions(&scope, std::env::current_exe()?, &[count::CHILD, &size])? as f64)
}

/// The shortest of several runs, in nanoseconds.
fn timed(tokens: usize) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let output = Command::new(std::env::current_exe()?).args([count::CHILD, &tokens.to_string()]).output()?;
        let said = String::from_utf8(output.stdout)?;
        best = best.min(said.trim().parse().context("a child says how long it took")?);
    }
    Ok(best)
}

/// Builds sessions of a size, doubles them, and says how many nanoseconds the doubling took.
pub(crate) fn child(arguments: &[String]) -> Result<()> {
    let [tokens] = arguments else { bail!("a child is told a size") };
    let rounds = tokens.parse::<usize>()? / ROUND_TOKENS;
    let mut sessions: Vec<(Log, Vec<Line>)> = (0..ROUNDS / rounds).map(|_| session(rounds)).collect();
    let start = Instant::now();
    for (log, lines) in &mut sessions {
        append_rounds(log, std::mem::take(lines));
    }
    println!("{}", start.elapsed().as_nanos());
    std::mem::forget(black_box(sessions));
    Ok(())
}

/// What is counted: known to callgrind by its name.
#[inline(never)]
fn append_rounds(log: &mut Log, lines: Vec<Line>) {
    for line in lines {
        black_box(log.append(line));
    }
}

/// A session of so many rounds, and the lines of as many again that are still to be appended.
pub(crate) fn session(rounds: usize) -> (Log, Vec<Line>) {
    let mut prose = Prose::default();
    let mut lines = vec![line(0, Body::User { blocks: vec![Block::text("Tidy this up.")], source: TextSource::Direct })];
    for round in 0..2 * rounds {
        // The newest result is the same however long the session is, since layers look into it.
        let text = if round + 1 == rounds { Prose::default().code(2_400) } else { prose.code(2_400) };
        let call = format!("toolu_{round}");
        let blocks = vec![
            Block::text(prose.words(160)),
            Block::tool_use(&call, "Read", &json!({"file_path": "/work/src/lib.rs", "offset": round})),
        ];
        let usage =
            Usage { cache_read_input_tokens: (round * ROUND_TOKENS) as u64, output_tokens: 190, ..Usage::default() };
        let id = Id::from(format!("msg_{round}"));
        lines
            .push(line(lines.len(), Body::Assistant { id, model: "m".into(), blocks, usage: Some(usage), stop: None }));
        let result = Block::tool_result(&call, &[Block::text(text)], Outcome::Done);
        lines.push(line(lines.len(), Body::User { blocks: vec![result], source: TextSource::Direct }));
    }
    let rest = lines.split_off(1 + 2 * rounds);
    let mut log = Log::default();
    for line in lines {
        log.append(line);
    }
    (log, rest)
}

fn line(number: usize, body: Body) -> Line {
    // As long as a uuid, which is what hashing costs by.
    let id = |number: usize| Id::from(format!("00000000-0000-7000-8000-{number:012}"));
    Line::new(id(number), number.checked_sub(1).map(id), Timestamp::UNIX_EPOCH, body)
}

/// A size as people say it.
fn name(tokens: usize) -> String {
    if tokens < 1_000_000 { format!("{}K", tokens / 1_000) } else { format!("{}M", tokens / 1_000_000) }
}
