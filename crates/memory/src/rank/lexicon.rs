//! Words that mean about the same to developers, so that a question need not use the words of the memory.
//!
//! The groups stand in `lexicon.txt`, by hand, in English, Chinese, Korean and some Japanese; each is general vocabulary
//! and none is about a particular project. A word may be in several groups. The same table says which words name an
//! activity, a language or a tool: what a standing instruction can apply to.

use std::collections::HashMap;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

const GROUPS: &str = include_str!("lexicon.txt");
const COMMON: &str = include_str!("common.txt");
const FREQUENT: &str = include_str!("frequent.txt");
const STOP: &str = include_str!("stop.txt");

/// A group of words that mean about the same.
pub(crate) type Concept = u16;

/// What a group can be to a standing instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Facet {
    Activity,
    /// How code is written, whatever is being done.
    Aspect,
    Language,
    Tool,
    None,
}

/// The table, made once.
pub(crate) static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::new);

/// The table.
pub(crate) struct Lexicon {
    /// Stem (or stems with spaces between) to groups.
    words: HashMap<String, Vec<Concept>>,
    /// Words of scripts without spaces, to groups.
    runs: HashMap<String, Vec<Concept>>,
    /// The most characters such a word has.
    longest_run: usize,
    /// The most words a phrase has.
    longest_phrase: usize,
    /// The stems a phrase begins with.
    openings: HashMap<String, ()>,
    facets: Vec<Facet>,
    common: HashMap<String, ()>,
    stop: HashMap<String, ()>,
    /// In many texts of developers, and in some.
    frequent: [HashMap<String, ()>; 2],
}

/// How often a word occurs in developers' prose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frequency {
    /// In many texts.
    Often,
    /// In some.
    Sometimes,
    /// In few or none.
    Seldom,
}

impl Lexicon {
    fn new() -> Self {
        let stemmer = Stemmer::create(Algorithm::English);
        let mut lexicon = Self {
            words: HashMap::new(),
            runs: HashMap::new(),
            longest_run: 1,
            longest_phrase: 1,
            openings: HashMap::new(),
            facets: Vec::new(),
            common: set(COMMON, |word| stemmer.stem(word).into_owned()),
            stop: set(STOP, str::to_owned),
            frequent: {
                let (often, sometimes) = FREQUENT.split_once("\n%\n").unwrap_or((FREQUENT, ""));
                [often, sometimes].map(|words| set(words, |word| stemmer.stem(word).into_owned()))
            },
        };
        for line in GROUPS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let concept = Concept::try_from(lexicon.facets.len()).unwrap_or(Concept::MAX);
            let mut words = line.split_whitespace();
            lexicon.facets.push(match words.next() {
                Some("a") => Facet::Activity,
                Some("c") => Facet::Aspect,
                Some("l") => Facet::Language,
                Some("t") => Facet::Tool,
                _ => Facet::None,
            });
            for word in words {
                lexicon.enter(word, concept, &stemmer);
            }
        }
        lexicon
    }

    fn enter(&mut self, word: &str, concept: Concept, stemmer: &Stemmer) {
        if !word.is_ascii() {
            let word = word.replace('_', "");
            self.longest_run = self.longest_run.max(word.chars().count());
            push(self.runs.entry(word).or_default(), concept);
            return;
        }
        let stems: Vec<_> = word.split(['_', '-', '/']).map(|part| stemmer.stem(part).into_owned()).collect();
        self.longest_phrase = self.longest_phrase.max(stems.len());
        if let [first, _, ..] = stems.as_slice() {
            self.openings.insert(first.clone(), ());
        }
        push(self.words.entry(stems.join(" ")).or_default(), concept);
    }

    /// The groups of a stem, or of stems with spaces between.
    pub(crate) fn of_stem(&self, stem: &str) -> &[Concept] {
        self.words.get(stem).map_or(&[], Vec::as_slice)
    }

    /// The longest word of the table that `chars` begins with: how many characters, and its groups.
    pub(crate) fn longest_run(&self, chars: &[char]) -> Option<(usize, &[Concept])> {
        (1..=self.longest_run.min(chars.len())).rev().find_map(|len| {
            let word: String = chars[..len].iter().collect();
            self.runs.get(&word).map(|concepts| (len, concepts.as_slice()))
        })
    }

    /// Whether a phrase begins with a stem.
    pub(crate) fn opens_phrase(&self, stem: &str) -> bool {
        self.openings.contains_key(stem)
    }

    /// The most words a phrase has.
    pub(crate) fn longest_phrase(&self) -> usize {
        self.longest_phrase
    }

    /// What a group can be to a standing instruction.
    pub(crate) fn facet(&self, concept: Concept) -> Facet {
        self.facets.get(usize::from(concept)).copied().unwrap_or(Facet::None)
    }

    /// Whether a stem says little by itself.
    pub(crate) fn is_common(&self, stem: &str) -> bool {
        self.common.contains_key(stem)
    }

    /// How often a stem occurs in developers' prose.
    pub(crate) fn frequency(&self, stem: &str) -> Frequency {
        let [often, sometimes] = &self.frequent;
        if often.contains_key(stem) {
            Frequency::Often
        } else if sometimes.contains_key(stem) {
            Frequency::Sometimes
        } else {
            Frequency::Seldom
        }
    }

    /// Whether a word is left out.
    pub(crate) fn is_stop(&self, word: &str) -> bool {
        self.stop.contains_key(word)
    }
}

fn push(list: &mut Vec<Concept>, concept: Concept) {
    if !list.contains(&concept) {
        list.push(concept);
    }
}

fn set(words: &str, change: impl Fn(&str) -> String) -> HashMap<String, ()> {
    let lines = words.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).map(|word| (change(word), ())).collect()
}
