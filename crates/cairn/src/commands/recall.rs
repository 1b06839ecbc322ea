//! `cairn recall`: what would be surfaced for a message.

use std::io::BufRead;
use std::path::PathBuf;

use files::Root;
use memory::rank::{Doing, Hit, Question, surfaced};
use memory::{Ranker, recall, scan};
use serde_json::{Value, json};

use crate::exit::Code;
use crate::knowledge;
use crate::out::{data, talk};
use crate::setup::Place;
use crate::span::{Span, bold, dim, green};

/// How many ranked names are shown.
const SHOWN: usize = 10;

/// What would be recalled for a message, and why. No model is asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cairn recall 'how do we deploy?'
  cairn recall --explain 'fix the flaky test'
  cairn recall --dir ./memories --stdin < questions.txt")]
pub(crate) struct RecallArgs {
    /// The message.
    #[arg(required_unless_present = "stdin")]
    query: Option<String>,
    /// Why: scores, what matched, and the manifest.
    #[arg(long)]
    explain: bool,
    /// Any folder of memories, instead of this project's.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// One query a line on stdin; one JSON line each.
    #[arg(long, conflicts_with = "query")]
    stdin: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Ranks and prints.
pub(crate) fn run(args: &RecallArgs) -> anyhow::Result<Code> {
    let place = Place::from_env()?;
    let directory = knowledge::directory(&place, args.dir.as_deref())?;
    let root = Root::open(&directory)?;
    let ranker = Ranker::load(&root)?;
    let now = engine::World::real().now();
    let doing = Doing::default();
    let rank = |text: &str| ranker.rank(&Question { text, doing: &doing, now });
    if args.stdin {
        for line in std::io::stdin().lock().lines() {
            let line = line?;
            data!("{}", as_json(&line, &rank(&line)))?;
        }
        return Ok(Code::Success);
    }
    let query = args.query.as_deref().unwrap_or_default();
    let hits = rank(query);
    let chosen = surfaced(hits.clone());
    match (args.json, args.explain) {
        (true, false) => data!("{}", as_json(query, &hits))?,
        (true, true) => {
            let mut explained = as_json(query, &hits);
            explained["ranked"] = hits.iter().map(explained_hit).collect();
            explained["manifest"] = scan::headers(&root)?.iter().map(ToString::to_string).collect();
            data!("{explained}")?;
        }
        (false, true) => {
            explain(&hits, &chosen)?;
            data!("\n{}", scan::manifest(&scan::headers(&root)?))?;
        }
        (false, false) => {
            if chosen.is_empty() {
                talk!("Nothing would be recalled. --explain shows what came near.");
            }
            for hit in &chosen {
                data!("{}\n", recall::surface_over(&root, &hit.path, &hit.older, Some(&place.directory), now)?.text)?;
            }
        }
    }
    Ok(Code::Success)
}

fn explain(hits: &[Hit], chosen: &[Hit]) -> anyhow::Result<()> {
    data!([bold("  sure  route          has  memory")])?;
    for hit in hits.iter().take(SHOWN) {
        let mark = if chosen.iter().any(|one| one.path == hit.path) { green("✓") } else { Span::plain(" ") };
        let words: Vec<&str> = hit.matched.iter().map(|(word, _)| word.as_str()).collect();
        let route = route(hit);
        let covers = hit.share * 100.0;
        let row = format!(" {:.2}  {route:<11}  {covers:>5.0}%  {}  ", hit.confidence, hit.path);
        data!([mark, row, dim(&words.join(" "))])?;
        for older in &hit.older {
            data!([dim(&format!("        takes the place of {older}"))])?;
        }
    }
    Ok(())
}

fn route(hit: &Hit) -> String {
    format!("{:?}", hit.route).to_lowercase()
}

/// Why a memory stands where it stands.
fn explained_hit(hit: &Hit) -> Value {
    let words: Vec<&str> = hit.matched.iter().map(|(word, _)| word.as_str()).collect();
    json!({
        "path": hit.path, "score": hit.confidence, "route": route(hit), "share": hit.share, "matched": words,
        "above_chance": hit.figures.above, "largest_missing": hit.figures.missing, "older": hit.older,
    })
}

fn as_json(query: &str, hits: &[Hit]) -> Value {
    let ranked = hits.iter().map(|hit| json!({"path": hit.path, "score": hit.confidence}));
    let chosen = surfaced(hits.to_vec());
    json!({
        "query": query,
        "ranked": ranked.collect::<Vec<_>>(),
        "surfaced": chosen.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(),
    })
}
