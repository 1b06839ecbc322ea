//! Standing instructions: memories that say how to work, found by what the turn is doing and not by likeness.
//!
//! "Never mock the database" is wanted when tests are written, whatever words the request has. So each such memory has
//! a scope, the files, languages, tools and activities it applies to: as its writer gave it in `applies_to`, else taken
//! from its name, its description and its line on how to apply it. A turn has the same facets, from the request, the
//! files it touches and the tools it uses. A question after a fact does nothing, and gets no instructions.

use super::corpus::phrases;
use super::lexicon::{Concept, Facet, LEXICON};
use super::words::{Form, Splitter, Token};
use crate::entry::Memory;
use crate::taxonomy::Kind;

/// What a turn is doing, beside what was said.
#[derive(Debug, Clone, Default)]
pub struct Doing {
    /// The files it reads or writes.
    pub files: Vec<String>,
    /// The tools and commands it runs.
    pub tools: Vec<String>,
}

/// What a standing instruction applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    facets: Vec<Concept>,
    /// What its writer gave, if they did: each by itself is enough.
    given: Vec<Given>,
}

/// One part of `applies_to`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    word: String,
    facets: Vec<Concept>,
}

/// What a turn does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    facets: Vec<Concept>,
    /// Facets the engine knows from files and tools, rather than from words.
    seen: Vec<Concept>,
    files: Vec<String>,
    acts: bool,
    writes_code: bool,
}

const DIRECTIVES: [&str; 44] = [
    "always",
    "never",
    "prefer",
    "don't",
    "don’t",
    "do not",
    "avoid",
    "must",
    "should",
    "only use",
    "instead of",
    "make sure",
    "stop ",
    "likes",
    "wants",
    "every time",
    "rather than",
    "whenever",
    "use ",
    "keep ",
    "no ",
    "总是",
    "永远",
    "不要",
    "禁止",
    "必须",
    "优先",
    "一律",
    "务必",
    "别",
    "喜欢",
    "偏好",
    "使用",
    "每次",
    "항상",
    "절대",
    "하지 마",
    "말 것",
    "선호",
    "반드시",
    "금지",
    "우선",
    "사용",
    "원함",
];

/// What a request begins with when it is one.
const ACTS: &str = "add fix write implement create refactor update commit push deploy release review rename migrate document explain \
    summarize summarise debug optimize optimise clean run generate set move remove delete format bump upgrade merge rebase open make build \
    wire extract split convert port draft put cover hook ship scaffold replace improve log test squash land cut tidy polish finish wrap start \
    continue rework rewrite introduce handle change show give describe prepare publish tag lint check compare design plan translate train \
    reply answer install configure enable disable turn bring drop tweak adjust sort simplify speed profile benchmark investigate look \
    load fetch render display call send store save parse connect expose support style document comment upload use apply let reorganize \
    tighten validate guard retry cache paginate";

const ACTS_ELSEWHERE: [&str; 36] = [
    "please",
    "can you",
    "could you",
    "let's",
    "lets ",
    "go ahead",
    "help me",
    "i want you",
    "i need you",
    "i'd like",
    "time to",
    "ready to",
    "i'm about to",
    "i am about to",
    "going to",
    "we need to",
    "i need to",
    "would you",
    "帮我",
    "帮忙",
    "请",
    "给我",
    "把",
    "写",
    "加",
    "改一下",
    "修一下",
    "해줘",
    "해 줘",
    "하자",
    "부탁",
    "주세요",
    "작성",
    "고쳐",
    "만들어",
    "추가해",
];

impl Scope {
    /// The scope of a memory, if it is a standing instruction.
    pub(crate) fn of(memory: &Memory, splitter: &Splitter) -> Option<Self> {
        let description = memory.description.as_deref().unwrap_or_default();
        let description = &description[..description.floor_char_boundary(1_000)];
        let body = &memory.body[..memory.body.floor_char_boundary(2_000)];
        let stands = match memory.kind {
            Some(Kind::Feedback) => true,
            Some(Kind::Project | Kind::Reference) => false,
            Some(Kind::User) | None => {
                let text = format!("{} {description} {body}", memory.name).to_lowercase();
                DIRECTIVES.iter().any(|word| text.contains(word))
            }
        };
        if !stands {
            return None;
        }
        if !memory.applies_to.is_empty() {
            let given = memory.applies_to.iter().map(|word| {
                let facets = if is_pattern(word) { Vec::new() } else { facets(&splitter.split(word)) };
                Given { word: word.to_lowercase(), facets }
            });
            return Some(Self { facets: Vec::new(), given: given.collect() });
        }
        let applies = body.lines().find(|line| line.contains("How to apply")).unwrap_or_default();
        let mut found = facets(&splitter.split(&format!("{}. {description}. {applies}", memory.name)));
        if found.is_empty() {
            found = facets(&splitter.split(&body[..body.floor_char_boundary(400)]));
        }
        Some(Self { facets: found, given: Vec::new() })
    }

    /// Whether it is for another language than the turn's.
    pub(crate) fn is_for_another_language(&self, turn: &Turn) -> bool {
        let is_language = |concept: &&Concept| LEXICON.facet(**concept) == Facet::Language;
        let mine: Vec<_> = self.facets.iter().filter(is_language).collect();
        let mut its = turn.facets.iter().chain(&turn.seen).filter(is_language).peekable();
        !mine.is_empty() && its.peek().is_some() && !its.any(|concept| mine.contains(&concept))
    }

    /// How well it fits what a turn does, from 0 to 1.
    pub(crate) fn fits(&self, turn: &Turn) -> f32 {
        if self.given.iter().any(|given| turn.files.iter().any(|file| matches_file(&given.word, file))) {
            return 0.95;
        }
        if !turn.acts && turn.seen.is_empty() {
            return 0.0;
        }
        let has = |concept: &Concept| turn.facets.contains(concept) || turn.seen.contains(concept);
        if self.given.iter().any(|given| !given.facets.is_empty() && given.facets.iter().all(has)) {
            return 0.9;
        }
        if self.facets.is_empty() {
            return 0.0;
        }
        if self.is_for_another_language(turn) {
            return 0.0;
        }
        let mut matched = 0.0_f32;
        let mut wanted = 0.0_f32;
        for concept in &self.facets {
            let facet = LEXICON.facet(*concept);
            let weight = match facet {
                Facet::Language => 0.8,
                Facet::Aspect => 0.7,
                // Everything is answered; that a memory is about answers says little.
                _ if is_answering(*concept) => 0.4,
                _ => 1.0,
            };
            wanted += weight;
            matched += match facet {
                _ if has(concept) => weight,
                // Whoever writes code names things, handles errors and adds packages.
                Facet::Aspect if turn.writes_code => weight * 0.5,
                _ => 0.0,
            };
        }
        // Of a scope with many parts, two are enough.
        let share = matched / wanted.min(1.7);
        if matched < 0.69 { 0.0 } else { share.min(1.0) }
    }
}

/// Whether a group is about answering, which every turn does.
fn is_answering(concept: Concept) -> bool {
    LEXICON.of_stem("explain").contains(&concept)
}

impl Turn {
    /// What a request and the turn around it do.
    pub(crate) fn of(query: &str, tokens: &[Token], doing: &Doing, splitter: &Splitter) -> Self {
        let mut seen = Vec::new();
        for file in &doing.files {
            let name = file.rsplit('/').next().unwrap_or(file);
            let ending = name.rsplit_once('.').map_or(name, |(_, ending)| ending).to_lowercase();
            let word = if ending == "go" { "golang" } else { &ending };
            seen.extend(LEXICON.of_stem(&splitter.stem(word)).iter().filter(|concept| is_facet(**concept)));
            if name.contains("test") || name.contains("spec") {
                seen.extend(LEXICON.of_stem(&splitter.stem("test")));
            }
        }
        for tool in &doing.tools {
            seen.extend(facets(&splitter.split(tool)));
        }
        let mut facets = facets(tokens);
        // A file named in the request.
        for word in query.split_whitespace() {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            if let Some((stem, ending)) = word.rsplit_once('.')
                && !stem.is_empty()
                && ending.len() <= 5
            {
                let ending = ending.to_lowercase();
                let word = if ending == "go" { "golang" } else { &ending };
                let groups = LEXICON.of_stem(&splitter.stem(word));
                facets.extend(groups.iter().filter(|concept| LEXICON.facet(**concept) == Facet::Language));
            }
        }
        Self { facets, seen, files: doing.files.clone(), acts: acts(query), writes_code: writes_code(query) }
    }
}

fn is_facet(concept: Concept) -> bool {
    LEXICON.facet(concept) != Facet::None
}

fn facets(tokens: &[Token]) -> Vec<Concept> {
    let single =
        tokens.iter().filter(|token| !token.stop || token.form != Form::Word).flat_map(|token| token.concepts.clone());
    let mut found: Vec<Concept> =
        single.chain(phrases(tokens).into_iter().flat_map(|(_, concepts)| concepts)).collect();
    found.retain(|concept| is_facet(*concept));
    found.sort_unstable();
    found.dedup();
    found
}

fn acts(query: &str) -> bool {
    let lower = query.trim().to_lowercase();
    if ACTS_ELSEWHERE.iter().any(|words| lower.contains(words)) {
        return true;
    }
    let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    let first = words.find(|word| {
        !matches!(*word, "ok" | "okay" | "now" | "and" | "then" | "so" | "also" | "next" | "just" | "quickly")
    });
    first.is_some_and(|first| ACTS.split_whitespace().any(|act| act == first))
}

/// Whether a request is for code to be written.
fn writes_code(query: &str) -> bool {
    let lower = query.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        matches!(
            word,
            "implement"
                | "write"
                | "add"
                | "create"
                | "build"
                | "fix"
                | "refactor"
                | "rewrite"
                | "extend"
                | "port"
                | "code"
        )
    }) || ["实现", "编写", "写", "加", "修", "重构", "구현", "작성", "만들", "추가", "고쳐", "수정"]
        .iter()
        .any(|word| lower.contains(word))
}

/// Whether a word of `applies_to` means files.
fn is_pattern(word: &str) -> bool {
    word.contains(['*', '/', '.'])
}

/// Whether a file is one that a word of `applies_to` means: a glob, an ending, a folder.
fn matches_file(word: &str, file: &str) -> bool {
    if !is_pattern(word) {
        return false;
    }
    let file = file.to_lowercase();
    globset::Glob::new(word).is_ok_and(|glob| {
        let matcher = glob.compile_matcher();
        matcher.is_match(&file) || file.match_indices('/').any(|(at, _)| matcher.is_match(&file[at + 1..]))
    })
}
