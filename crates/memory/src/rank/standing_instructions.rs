//! Standing instructions: memories that say how to work, found by the turn's activity and not by likeness.
//!
//! "Never mock the database" is wanted when tests are written, however the request is worded. So each such memory has a
//! scope: given by its writer in `applies_to`, else derived from its name, its description and its line on how to apply
//! it. A turn has the same facets, from the files it touches, the tools and commands it runs and, if it asks for work,
//! the request. A question about a fact does nothing, and gets no instructions.

use std::sync::Arc;

use super::facets::{self, Facet, Sort};
use super::words::{Splitter, TextWord};
use crate::entry::Memory;
use crate::taxonomy::Kind;

/// Limit on instructions one turn gets by this route.
pub(crate) const MOST: usize = 2;

/// Activity of a turn, besides the message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkAtHand {
    /// The files it reads or writes.
    pub files: Vec<String>,
    /// The tools and commands it runs.
    pub tools: Vec<String>,
}

/// Scope of a standing instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppliesTo {
    facets: Vec<Facet>,
    /// Parts given by its writer, if any: one match is enough.
    given: Vec<AppliesToPart>,
}

/// One part of `applies_to`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AppliesToPart {
    /// The text, in lower case.
    text: String,
    /// The stems of its words.
    stems: Vec<Arc<str>>,
    facets: Vec<Facet>,
}

/// Facets of a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct TurnActivity {
    /// From the request, if it asks for work.
    from_request: Vec<Facet>,
    /// From files and tools.
    seen: Vec<Facet>,
    files: Vec<String>,
    /// The stems of tools, commands and the request.
    stems: Vec<Arc<str>>,
}

/// Words of an instruction without a type: whole words.
const DIRECTIVES: [&str; 8] = ["always", "never", "prefer", "prefers", "avoid", "must", "don't", "instead"];

/// The same for scripts without spaces between words.
const DIRECTIVES_WITHOUT_SPACES: [&str; 8] = ["总是", "永远", "不要", "禁止", "必须", "항상", "절대", "반드시"];

/// First words of a question.
const ASKING: &str =
    "who whom whose what what's when where where's which why how how's is are was were do does did has have had am";

/// Phrases that make a question a request.
const REQUESTING: [&str; 6] = ["can you", "could you", "would you", "will you", "please", "let's"];

/// Marks of a question in scripts where the question mark is often left out.
const ASKING_WITHOUT_SPACES: [&str; 16] = [
    "什么",
    "哪",
    "谁",
    "多少",
    "怎么",
    "如何",
    "为什么",
    "吗",
    "나요",
    "까요",
    "무엇",
    "어디",
    "언제",
    "누가",
    "얼마",
    "뭐",
];

impl AppliesTo {
    /// The scope of a memory, if it is a standing instruction.
    pub(crate) fn of(memory: &Memory, splitter: &Splitter) -> Option<Self> {
        let description = memory.description.as_deref().unwrap_or_default();
        let description = &description[..description.floor_char_boundary(1_000)];
        let body = &memory.body[..memory.body.floor_char_boundary(2_000)];
        let stands = match memory.kind {
            Some(Kind::Feedback) => true,
            Some(Kind::Project | Kind::Reference) => false,
            Some(Kind::User) | None => directs(&format!("{} {description} {body}", memory.name)),
        };
        if !stands {
            return None;
        }
        if !memory.applies_to.is_empty() {
            let given = memory.applies_to.iter().map(|text| AppliesToPart::read(text, splitter)).collect();
            return Some(Self { facets: Vec::new(), given });
        }
        let applies = body.lines().find(|line| line.contains("How to apply")).unwrap_or_default();
        let mut found = facets::of_text(&format!("{}. {description}. {applies}", memory.name), splitter);
        if found.is_empty() {
            found = facets::of_text(body, splitter);
        }
        Some(Self { facets: found, given: Vec::new() })
    }

    /// Match with a turn's activity, from 0 to 1.
    pub(crate) fn fits(&self, turn: &TurnActivity) -> f32 {
        if self.given.iter().any(|given| given.fits(turn)) {
            return 1.0;
        }
        let has = |facet: &Facet| turn.from_request.contains(facet) || turn.seen.contains(facet);
        let of = |sort: Sort| self.facets.iter().filter(move |facet| facets::sort(**facet) == sort);
        let its_languages =
            || turn.from_request.iter().chain(&turn.seen).filter(|facet| facets::sort(**facet) == Sort::Language);
        let (languages, in_its_language) = (of(Sort::Language).count(), of(Sort::Language).any(has));
        if languages > 0 && !in_its_language && (its_languages().next().is_some() || of(Sort::Activity).count() == 0) {
            return 0.0;
        }
        let (activities, done) = (of(Sort::Activity).count(), of(Sort::Activity).filter(|facet| has(facet)).count());
        let manner = of(Sort::Manner).any(has);
        match (activities, done, in_its_language) {
            // It names what is done, and that is done now.
            (_, 1.., _) => done as f32 / activities.min(2) as f32,
            // It is about a language, and that is written now.
            (0, _, true) => 1.0,
            _ if manner => 0.5,
            _ => 0.0,
        }
    }
}

impl AppliesToPart {
    fn read(text: &str, splitter: &Splitter) -> Self {
        let tokens = splitter.split(text);
        let facets = if is_pattern(text) { Vec::new() } else { facets::of_tokens(&tokens) };
        let stems = tokens.into_iter().filter(|token| !token.stop).map(|token| token.text).collect();
        Self { text: text.to_lowercase(), stems, facets }
    }

    fn fits(&self, turn: &TurnActivity) -> bool {
        if is_pattern(&self.text) {
            return turn.files.iter().any(|file| matches_file(&self.text, file));
        }
        let has = |facet: &Facet| turn.from_request.contains(facet) || turn.seen.contains(facet);
        let by_facet = !self.facets.is_empty() && self.facets.iter().all(has);
        let by_word = !self.stems.is_empty() && self.stems.iter().all(|stem| turn.stems.contains(stem));
        by_facet || by_word
    }
}

impl TurnActivity {
    /// Collects the facets of a request and the turn around it.
    pub(crate) fn of(request: &str, tokens: &[TextWord], doing: &WorkAtHand, splitter: &Splitter) -> Self {
        let mut turn = Self { files: doing.files.clone(), ..Self::default() };
        for file in &doing.files {
            turn.seen.extend(facets::of_file(file, splitter));
        }
        for tool in &doing.tools {
            let tokens = splitter.split(tool);
            turn.seen.extend(facets::of_tokens(&tokens));
            turn.stems.extend(tokens.into_iter().map(|token| token.text));
        }
        if asks_for_work(request) {
            turn.from_request = facets::of_tokens(tokens);
            for word in request.split_whitespace().filter(|word| word.contains('.')) {
                let word = word.trim_matches(|c: char| !c.is_alphanumeric());
                turn.from_request.extend(facets::of_file(word, splitter));
            }
            turn.stems.extend(tokens.iter().filter(|token| !token.stop).map(|token| token.text.clone()));
        }
        turn
    }
}

/// Returns true if a text is an instruction that always holds.
pub(crate) fn directs(text: &str) -> bool {
    let text = text.to_lowercase().replace('\u{2019}', "'");
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.any(|word| DIRECTIVES.contains(&word)) || DIRECTIVES_WITHOUT_SPACES.iter().any(|word| text.contains(word))
}

/// Returns true if a message asks for work and not about a fact.
fn asks_for_work(message: &str) -> bool {
    let lower = message.trim().to_lowercase();
    if REQUESTING.iter().any(|words| lower.starts_with(words) || lower.contains(&format!(" {words}"))) {
        return true;
    }
    let first = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').find(|word| !word.is_empty());
    let asks = first.is_some_and(|first| ASKING.split(' ').any(|word| word == first))
        || lower.ends_with(['?', '？'])
        || ASKING_WITHOUT_SPACES.iter().any(|word| lower.contains(word));
    !asks
}

/// Returns true if a part of `applies_to` means files.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '/']) || text.starts_with('.') || text.contains('.') && !text.contains(' ')
}

/// Returns true if a file matches a part of `applies_to`: a glob, an extension, a folder.
fn matches_file(pattern: &str, file: &str) -> bool {
    let file = file.to_lowercase();
    let pattern = match pattern {
        folder if folder.ends_with('/') => format!("{folder}**"),
        ending if ending.starts_with('.') && !ending.contains(['/', '*']) => format!("*{ending}"),
        other => other.to_owned(),
    };
    globset::Glob::new(&pattern).is_ok_and(|glob| {
        let matcher = glob.compile_matcher();
        matcher.is_match(&file) || file.match_indices('/').any(|(at, _)| matcher.is_match(&file[at + 1..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RECALL-10: a request for work is told from a question about a fact, by grammar alone.
    #[test]
    fn a_request_is_told_from_a_question() {
        for request in ["fix the login test", "can you add a test?", "could you please look at it", "修复登录测试"]
        {
            assert!(asks_for_work(request), "{request}");
        }
        for question in ["who leads the rewrite?", "is the port 3000", "部署需要什么", "배포는 언제 하나요"]
        {
            assert!(!asks_for_work(question), "{question}");
        }
    }

    /// RECALL-10: only whole words count: "because" says nothing about "use", "tablets" nothing about "lets".
    #[test]
    fn a_directive_is_a_whole_word() {
        assert!(directs("Never mock the database") && directs("Don’t push on Fridays") && directs("不要在周五部署"));
        assert!(!directs("mustard, nevertheless and preferences") && !directs("because the tablets show it"));
    }
}
