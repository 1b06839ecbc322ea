//! Topics of work: activities, coding practices, languages. A small table, the same for memories and for turns.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::{Splitter, TextWord};

const TABLE: &str = include_str!("facets.txt");

/// A line of the table.
pub(crate) type Facet = u8;

/// Category of a line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Activity,
    Manner,
    Language,
}

static FACETS: LazyLock<Facets> = LazyLock::new(Facets::read);

struct Facets {
    sorts: Vec<Sort>,
    /// Keyed by stem, or by two stems with a space between.
    words: HashMap<String, Vec<Facet>>,
    endings: HashMap<&'static str, Vec<Facet>>,
}

impl Facets {
    fn read() -> Self {
        let splitter = Splitter::new();
        let mut facets = Self { sorts: Vec::new(), words: HashMap::new(), endings: HashMap::new() };
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let (words, endings) = line.split_once(" : ").unwrap_or((line, ""));
            let mut words = words.split(' ');
            let facet = facets.sorts.len() as Facet;
            facets.sorts.push(match words.next() {
                Some("a") => Sort::Activity,
                Some("c") => Sort::Manner,
                _ => Sort::Language,
            });
            for word in words {
                let stems: Vec<String> = word.split('_').map(|part| splitter.stem(part)).collect();
                facets.words.entry(stems.join(" ")).or_default().push(facet);
            }
            for ending in endings.split_whitespace() {
                facets.endings.entry(ending).or_default().push(facet);
            }
        }
        facets
    }
}

/// Category of a line.
pub(crate) fn sort(facet: Facet) -> Sort {
    FACETS.sorts[usize::from(facet)]
}

/// Facets of a memory's text.
pub(crate) fn of_text(text: &str, splitter: &Splitter) -> Vec<Facet> {
    let mut found = of_tokens(&splitter.split(text));
    if names_go(text) {
        found.extend(FACETS.endings.get("go").into_iter().flatten());
    }
    sorted(found)
}

/// Returns true if a text names the language Go: capitalised, and not as in "Go ahead".
fn names_go(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let goes = ["to", "ahead", "on", "back", "through", "for", "with", "over", "into", "and"];
        if word == "Go" && words.peek().is_some_and(|next| !goes.contains(next)) {
            return true;
        }
    }
    false
}

/// Facets of a list of words.
pub(crate) fn of_tokens(tokens: &[TextWord]) -> Vec<Facet> {
    let single = tokens.iter().filter_map(|token| FACETS.words.get(&*token.text));
    let pairs = tokens.windows(2).filter_map(|pair| FACETS.words.get(&format!("{} {}", pair[0].text, pair[1].text)));
    sorted(single.chain(pairs).flatten().copied().collect())
}

/// Facets of a file, by its name.
pub(crate) fn of_file(file: &str, splitter: &Splitter) -> Vec<Facet> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_lowercase();
    let mut found = FACETS.endings.get(ending.as_str()).cloned().unwrap_or_default();
    // `tests/login.py`, `login_test.go`, `db/migrations/0042.sql`, `README.md`: folders and names tell what is done there.
    let words = splitter.split(&file.replace(['/', '.'], " "));
    found.extend(of_tokens(&words).into_iter().filter(|facet| sort(*facet) == Sort::Activity));
    sorted(found)
}

fn sorted(mut facets: Vec<Facet>) -> Vec<Facet> {
    facets.sort_unstable();
    facets.dedup();
    facets
}
