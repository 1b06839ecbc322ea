//! The secret scanner on public text: how fast it reads, and what it finds there.
//!
//! The text is the source of the crates this project is built from, as `Cargo.lock` names them, in its order, up to
//! [`ENOUGH`]. Every find is printed with a verdict; one that nobody has judged counts as false.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use memory::secrets::{Remarks, scan};

use crate::table::{Row, Unit};

/// How much is read.
const ENOUGH: usize = 60_000_000;

/// A find that was looked at.
struct Judged {
    /// Crate without its version, and file.
    file: &'static str,
    verdict: Verdict,
    why: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Secret,
    False,
}

/// What was found, looked at one by one.
const JUDGED: &[Judged] = &[
    Judged { file: "aws-lc-rs/examples/cipher.rs", verdict: Verdict::Secret, why: "a cipher's key in an example" },
    Judged { file: "aws-lc-rs/src/ed25519.rs", verdict: Verdict::Secret, why: "private keys of test vectors" },
    Judged { file: "aws-lc-rs/src/agreement/agreement_tests.rs", verdict: Verdict::False, why: "the name of a type" },
    Judged {
        file: "dotenvy/tests/test-multiline.rs",
        verdict: Verdict::False,
        why: "the frame of a key, with nothing in it",
    },
];

/// The rows.
pub(crate) fn measure(_: &Path) -> Result<Vec<Row>> {
    let texts = texts()?;
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let pass = || -> Result<(f64, Vec<String>)> {
        let start = on_the_core()?;
        let mut found = Vec::new();
        for (name, text) in &texts {
            let finds = scan(text, name, Remarks::Heeded);
            found.extend(finds.iter().map(|one| format!("{} {name}:{}", one.rule, one.line)));
        }
        Ok((on_the_core()? - start, found))
    };
    let (_, found) = pass()?; // the first compiles the rules
    let best = (0..3).map(|_| pass().map(|(took, _)| took)).collect::<Result<Vec<_>>>()?;
    let best = best.into_iter().fold(f64::INFINITY, f64::min);
    let mut wrong = 0;
    for find in &found {
        let judged = JUDGED.iter().find(|judged| plain(find).contains(judged.file));
        let (verdict, why) =
            judged.map_or((Verdict::False, "not looked at yet"), |judged| (judged.verdict, judged.why));
        wrong += usize::from(verdict == Verdict::False);
        let word = if verdict == Verdict::Secret { "a secret" } else { "false" };
        eprintln!("  {find}: {word}: {why}");
    }
    let (last, size) = (texts.last().map_or("", |(name, _)| name), bytes / 1_000_000);
    Ok(vec![
        Row::figure("text", format!("{size} MB of crates, up to {}", last.split('/').next().unwrap_or_default())),
        Row::at_least("MB/s on one core", Unit::Count, bytes as f64 / 1e6 / best, 200.0),
        Row::figure("finds", found.len().to_string()),
        Row::at_most("of these false", Unit::Count, wrong as f64, 3.0),
    ])
}

/// A find's file with the crate's version taken out.
fn plain(find: &str) -> String {
    let file = find.split(' ').nth(1).unwrap_or_default();
    let (package, rest) = file.split_once('/').unwrap_or((file, ""));
    format!("{}/{rest}", package.rsplit_once('-').map_or(package, |(name, _)| name))
}

/// The seconds this thread has spent on a core: on a busy machine the clock says nothing about a program.
fn on_the_core() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: u64 = text.split(' ').next().context("schedstat is empty")?.parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

/// The text: a name, which begins with the crate and its version, and the bytes.
fn texts() -> Result<Vec<(String, Vec<u8>)>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources: Vec<PathBuf> = std::fs::read_dir(home.context("no home")?.join("registry/src"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    let lock = std::fs::read_to_string("Cargo.lock")?;
    let (mut texts, mut bytes) = (Vec::new(), 0);
    for package in lock.split("[[package]]").filter(|package| package.contains("\nsource = ")) {
        let field =
            |name: &str| package.split(&format!("\n{name} = \"")).nth(1).and_then(|rest| rest.split('"').next());
        let (Some(name), Some(version)) = (field("name"), field("version")) else { continue };
        let name = format!("{name}-{version}");
        let Some(place) = sources.iter().map(|source| source.join(&name)).find(|place| place.is_dir()) else {
            continue;
        };
        let root = files::Root::open(&place)?;
        for file in root.walk(|_| true)? {
            let is_text = file.path.extension().is_some_and(|ending| ending == "rs" || ending == "md");
            if let (true, Ok(read)) = (is_text, root.read(&file.path, 16 << 20)) {
                bytes += read.bytes.len();
                texts.push((format!("{name}/{}", file.path.display()), read.bytes));
            }
        }
        if bytes >= ENOUGH {
            return Ok(texts);
        }
    }
    bail!("there are only {bytes} bytes of crates to read");
}
