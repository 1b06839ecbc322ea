//! `cairn recall`: what would be surfaced for a message.

use std::io::BufRead;
use std::path::PathBuf;

use jiff::Timestamp;
use memory::quoted_sentences::Register;
use memory::rank::{Hit, RankQuestion, WorkAtHand, surfaced};
use memory::recall::RecallContext;
use memory::shelf::{Shelf, ShelfScope};
use memory::{recall, scan};
use serde_json::{Value, json};
use transcript::{Injected, Purpose};

use crate::exit::Code;
use crate::memory_setup;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{Span, bold, dim, green};

/// The number of ranked names that are shown.
const SHOWN: usize = 10;

/// Show what would be recalled for a message, and why. No model is asked.
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
    /// Any folder of memories, instead of this project's; several are ranked together.
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,
    /// One query a line on stdin; one JSON line each.
    #[arg(long, conflicts_with = "query")]
    stdin: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Ranks and prints.
pub(crate) fn run(args: &RecallArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let shelves = Shelves::open(&args.dir, &place)?;
    if args.stdin {
        for line in std::io::stdin().lock().lines() {
            let line = line?;
            data!("{}", as_json(&line, &shelves.rank(&line)))?;
        }
        return Ok(Code::Success);
    }
    let query = args.query.as_deref().unwrap_or_default();
    let hits = shelves.rank(query);
    let chosen = surfaced(hits.clone());
    match (args.json, args.explain) {
        (true, false) => data!("{}", as_json(query, &hits))?,
        (true, true) => {
            let mut explained = as_json(query, &hits);
            explained["ranked"] = hits.iter().map(explained_hit).collect();
            explained["manifest"] = shelves.headers()?.iter().map(ToString::to_string).collect();
            data!("{explained}")?;
        }
        (false, true) => {
            explain(&hits, &chosen)?;
            data!("\n{}", scan::manifest(&shelves.headers()?))?;
        }
        (false, false) => {
            if shelves.all.is_empty() {
                talk!("There are no memories of this project yet.");
            } else if chosen.is_empty() {
                talk!("Nothing would be recalled. --explain shows the closest.");
            }
            for hit in &chosen {
                data!("{}\n", shelves.surface(hit, &place)?)?;
            }
        }
    }
    Ok(Code::Success)
}

/// Places where memories lie, ranked together. With several that were named, a memory is known by its whole path.
struct Shelves {
    all: Vec<Shelf>,
    by_whole_path: bool,
    now: Timestamp,
}

impl Shelves {
    fn open(directories: &[PathBuf], place: &ProgramPaths) -> anyhow::Result<Self> {
        let directories: Vec<(PathBuf, ShelfScope)> = match directories {
            // A project without memories yet has no folder of them either.
            [] => {
                let own = (memory_setup::directory(place, None)?, ShelfScope::Project);
                let users = (memory::place::user_directory(place.home.path()), ShelfScope::User);
                [own, users].into_iter().filter(|(directory, _)| directory.exists()).collect()
            }
            given => {
                let named =
                    given.iter().map(|one| Ok((memory_setup::directory(place, Some(one))?, ShelfScope::Project)));
                named.collect::<anyhow::Result<_>>()?
            }
        };
        let by_whole_path = directories.iter().filter(|(_, scope)| *scope == ShelfScope::Project).count() > 1;
        let all = directories.into_iter().map(|(one, scope)| Shelf::read(one, scope)).collect::<Result<_, _>>()?;
        Ok(Self { all, by_whole_path, now: session::World::real().now() })
    }

    /// A memory as it is called here.
    fn name(&self, shelf: &Shelf, path: &str) -> String {
        if self.by_whole_path { shelf.file(path).display().to_string() } else { shelf.key(path) }
    }

    fn rank(&self, text: &str) -> Vec<Hit> {
        let doing = WorkAtHand::default();
        let question = RankQuestion { text, doing: &doing, now: self.now };
        let mut hits = Vec::new();
        for shelf in &self.all {
            let found = shelf.ranker().map(|ranker| ranker.rank(&question)).unwrap_or_default();
            hits.extend(found.into_iter().map(|hit| Hit { path: self.name(shelf, &hit.path), ..hit }));
        }
        if self.all.len() > 1 {
            hits.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
        }
        hits
    }

    fn headers(&self) -> anyhow::Result<Vec<scan::Header>> {
        let mut all = Vec::new();
        for shelf in &self.all {
            let headers = scan::headers(shelf.root())?.into_iter();
            all.extend(headers.map(|header| scan::Header { path: self.name(shelf, &header.path), ..header }));
        }
        Ok(all)
    }

    fn surface(&self, hit: &Hit, place: &ProgramPaths) -> anyhow::Result<String> {
        let below =
            |shelf: &Shelf| hit.path.strip_prefix(&format!("{}/", shelf.root().path().display())).map(str::to_owned);
        let found = self.all.iter().find_map(|shelf| Some((shelf, below(shelf)?)));
        let found = found.or_else(|| Some((self.all.first()?, hit.path.clone())));
        let (shelf, path) = found.ok_or_else(|| anyhow::anyhow!("{} is in no memory directory", hit.path))?;
        let register = Register::in_folder(place.home.changes(shelf.root().path()).folder()).read();
        let (tree, quotations) = (Some(place.directory.as_path()), Some(&register));
        let trust = shelf.trust(&path);
        let around = RecallContext { trust, older: &hit.older, tree, quotations, ..RecallContext::default() };
        let memory = recall::surface(shelf.root(), &path, &around, self.now)?;
        Ok(Injected::new(Purpose::Memory, &memory.text).text().to_owned())
    }
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
            data!([dim(&format!("        replaces the older {older}"))])?;
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
        "evidence": hit.figures.evidence, "largest_missing": hit.figures.missing, "older": hit.older,
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
