//! Detection of secrets in a text.
//!
//! The rules are those of gitleaks, shipped as data (`secret_rules`): some two hundred kinds of keys, tokens and passwords,
//! each with words that must be near, the least entropy of the secret, and exceptions that only look like one. A text
//! is read once for all keywords; a rule is tried only at its own keywords (`keyword_search`), and compiled when that happens
//! for the first time. Surroundings of a secret that the rules' authors did not think of are allowed for (`widened_patterns`).
//!
//! A [`SecretFinding`] has the rule and the line. It never holds the secret, nor any part of it, and nothing here keeps
//! the text. What it refuses to do: open files, or ask anybody whether a key is valid.

mod keyword_search;
mod note_passwords;
mod secret_rules;
mod widened_patterns;

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::bytes::{Captures, Regex};

use crate::error::Error;
use secret_rules::{AllowCandidate, SecretRule, SecretRules};

/// Distance from its keyword within which a secret must end; a private key of 16,384 bits has 13,000 characters.
const REACH: usize = 16 * 1024;

/// Marker of a line to be skipped.
const ALLOW: &[u8] = b"gitleaks:allow";

/// The scanner with the shipped rules.
static SHIPPED: LazyLock<Scanner> = LazyLock::new(Scanner::new);

/// A secret found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFinding {
    /// Id of the rule that found it.
    pub rule: &'static str,
    /// Description of the rule.
    pub description: &'static str,
    /// Line on which it begins, from 1; 0 if the file's name alone gives it away.
    pub line: usize,
}

/// Treatment of remarks in the text that excuse a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remarks {
    /// `gitleaks:allow` on a line excuses it: people review their commits.
    Heeded,
    /// Nothing in the text excuses it: a model may have written the text.
    Ignored,
}

/// Finds secrets in a text. `path` is the text's path, relative or not, with `/`; empty if it has none.
pub fn scan(text: &[u8], path: &str, remarks: Remarks) -> Vec<SecretFinding> {
    SHIPPED.scan(text, path, remarks)
}

/// The first secret in a note: one that a rule finds, or a password given in a sentence or a URL. A remark in the text
/// excuses nothing.
pub fn in_note(text: &str) -> Option<SecretFinding> {
    scan(text.as_bytes(), "", Remarks::Ignored).into_iter().next().or_else(|| note_passwords::first(text))
}

/// Fails if a text holds a secret. A remark in the text excuses nothing: a model may have written it.
pub fn no_secret(path: &str, text: &str) -> Result<(), Error> {
    match in_note(text) {
        Some(found) => Err(Error::Secret { path: path.to_owned(), rule: found.rule, line: found.line }),
        None => Ok(()),
    }
}

/// The names of all rules.
pub fn rules() -> impl Iterator<Item = &'static str> {
    SHIPPED.rules.iter().map(|kind| kind.rule.id.as_str())
}

struct Scanner {
    rules: Vec<Kind>,
    allowed: Vec<secret_rules::Allowed>,
    words: Option<AhoCorasick>,
    /// The rules that each keyword belongs to.
    of_word: Vec<Vec<usize>>,
}

struct Kind {
    rule: SecretRule,
    plan: OnceLock<RuleSearch>,
}

/// Way of searching for a rule.
enum RuleSearch {
    /// At its keywords, with wider surroundings. For a rule that finds a secret by a name alone, the original
    /// expression is tried first.
    Pinned { pin: Box<keyword_search::KeywordSearch>, probe: Regex, written: Option<Regex> },
    /// On the whole text.
    Whole,
}

/// A match that is still being judged.
struct PossibleSecret<'t> {
    rule: usize,
    at: usize,
    secret: &'t [u8],
}

impl Scanner {
    fn new() -> Self {
        // That the shipped file can be read is a test. A scanner without rules would find nothing, silently, so there is
        // no other file to fall back on.
        let SecretRules { allowlist, own_allowlists, rules } = SecretRules::shipped().unwrap_or_default();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let (mut words, mut of_word): (Vec<String>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        let pairs = rules.iter().enumerate().flat_map(|(at, rule)| rule.keywords.iter().map(move |word| (at, word)));
        for (rule, keyword) in pairs {
            let keyword = keyword.to_ascii_lowercase();
            let number = *numbers.entry(keyword.clone()).or_insert_with(|| {
                words.push(keyword);
                of_word.push(Vec::new());
                of_word.len() - 1
            });
            of_word[number].push(rule);
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .match_kind(MatchKind::Standard)
            .build(&words)
            .ok();
        let rules = rules.into_iter().map(|rule| Kind { rule, plan: OnceLock::new() }).collect();
        let allowed = std::iter::once(allowlist).chain(own_allowlists).collect();
        Self { rules, allowed, words, of_word }
    }

    fn scan(&'static self, text: &[u8], path: &str, remarks: Remarks) -> Vec<SecretFinding> {
        if self.allowed.iter().any(|allowed| allowed.passes_file(path)) {
            return Vec::new();
        }
        let named = self.rules.iter().filter(|kind| kind.rule.is_about_names() && kind.rule.is_about(path));
        let mut findings: Vec<SecretFinding> = named
            .filter(|_| !path.is_empty())
            .map(|kind| SecretFinding { rule: &kind.rule.id, description: &kind.rule.description, line: 0 })
            .collect();
        let mut search = Search::new(self, text, path, remarks);
        search.run();
        let mut found = search.found;
        found.sort_by_key(|found| (found.at, found.rule));
        let mut lines = LineCounter { text, line: 1, upto: 0 };
        let named: Vec<(usize, &PossibleSecret<'_>)> = found.iter().map(|found| (lines.of(found.at), found)).collect();
        for (line, one) in &named {
            let better = |(other_line, other): &(usize, &PossibleSecret<'_>)| {
                other_line == line && !self.is_generic(other.rule) && contains(other.secret, one.secret)
            };
            if self.is_generic(one.rule) && named.iter().any(better) {
                continue; // a rule that knows whose secret it is says so
            }
            let rule = &self.rules[one.rule].rule;
            findings.push(SecretFinding { rule: &rule.id, description: &rule.description, line: *line });
        }
        findings
    }

    fn is_generic(&self, rule: usize) -> bool {
        self.rules[rule].rule.is_generic()
    }
}

impl Kind {
    fn plan(&self) -> &RuleSearch {
        self.plan.get_or_init(|| {
            let pinned = |pattern: &str| keyword_search::pin(pattern, &self.rule.keywords);
            let compiled = |pin: &keyword_search::KeywordSearch| secret_rules::compile(&pin.probe);
            let pattern = self.rule.pattern().unwrap_or_default();
            let written = pinned(&pattern).filter(|pin| pin.lead.is_some());
            let wide =
                pinned(&self.rule.wide_pattern().unwrap_or_default()).and_then(|pin| Some((compiled(&pin)?, pin)));
            wide.map_or(RuleSearch::Whole, |(probe, pin)| RuleSearch::Pinned {
                pin: Box::new(pin),
                probe,
                written: written.as_ref().and_then(compiled),
            })
        })
    }
}

/// State of a rule during a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// None of its keywords was seen yet.
    New,
    /// Everything before this offset was searched.
    Looked(usize),
    /// The rule is not tried any more.
    Over,
}

/// Expression by which a rule matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// The original one, or a widened one for a secret of a known form.
    Written,
    /// Only the widened one, for a secret found by a name.
    Wide,
}

/// The scan of one text.
struct Search<'s, 't> {
    scanner: &'s Scanner,
    text: &'t [u8],
    path: &'t str,
    remarks: Remarks,
    states: Vec<State>,
    found: Vec<PossibleSecret<'t>>,
    /// Number of bytes on which rules were tried, counted once per try.
    tried: usize,
}

impl<'s, 't> Search<'s, 't> {
    fn new(scanner: &'s Scanner, text: &'t [u8], path: &'t str, remarks: Remarks) -> Self {
        let states = vec![State::New; scanner.rules.len()];
        Self { scanner, text, path, remarks, states, found: Vec::new(), tried: 0 }
    }

    fn run(&mut self) {
        let Some(words) = &self.scanner.words else { return };
        for hit in words.find_overlapping_iter(self.text) {
            for &rule in &self.scanner.of_word[hit.pattern().as_usize()] {
                let looked = match self.states[rule] {
                    State::Over => continue,
                    State::Looked(upto) => upto,
                    State::New => {
                        let rules = &self.scanner.rules[rule].rule;
                        if !rules.is_about(self.path) || rules.allowlists.iter().any(|one| one.passes_file(self.path)) {
                            self.states[rule] = State::Over;
                            continue;
                        }
                        0
                    }
                };
                self.states[rule] = self.try_rule(rule, hit.start(), looked);
            }
        }
    }

    /// Tries a rule at a keyword, and returns its new state.
    fn try_rule(&mut self, number: usize, at: usize, looked: usize) -> State {
        let kind = &self.scanner.rules[number];
        let RuleSearch::Pinned { pin, probe, written } = kind.plan() else {
            let mut from = 0;
            while let Some(end) = self.search(number, from, self.text.len()) {
                from = end;
            }
            return State::Over;
        };
        let end = self.text.len().min(at + REACH);
        let (most, least) = (at.saturating_sub(pin.before.1), at.saturating_sub(pin.before.0));
        for start in most.max(looked)..=least {
            if !pin.first[usize::from(self.text[start])] {
                continue;
            }
            let text = &self.text[start..end];
            self.tried += text.len();
            if !probe.is_match(text) {
                continue;
            }
            let taken = match &pin.lead {
                // What the probe cannot see is what stands before it: the rule itself decides.
                None => self.search(number, start, end),
                Some(lead) => {
                    let from = lead.start(self.text, start).max(looked);
                    let as_written = written.as_ref().and_then(|written| written.captures(text));
                    match as_written {
                        Some(groups) => self.weigh(number, &groups, (start, from), Reading::Written),
                        None => probe
                            .captures(text)
                            .and_then(|groups| self.weigh(number, &groups, (start, from), Reading::Wide)),
                    }
                }
            };
            if let Some(end) = taken {
                return State::Looked(end);
            }
        }
        State::Looked(looked)
    }

    /// Judges the first match between two offsets, if there is one, and returns its end.
    fn search(&mut self, number: usize, from: usize, end: usize) -> Option<usize> {
        let rule = &self.scanner.rules[number].rule;
        self.tried += end - from;
        let groups = rule.wide()?.captures_at(&self.text[..end], from)?;
        let all = groups.get(0)?;
        let after = all.end().max(from + 1);
        let is_believed = (!rule.knows_a_name() && rule.has_keyword(all.as_bytes()))
            || rule.regex().is_some_and(|regex| regex.is_match(all.as_bytes()));
        let reading = match (is_believed, rule.knows_a_name()) {
            (true, _) => Reading::Written,
            (false, true) => Reading::Wide,
            // Neither a form nor a name, such as any hash in a text about the service.
            (false, false) => return Some(after),
        };
        self.weigh(number, &groups, (0, all.start()), reading);
        Some(after)
    }

    /// Keeps a match if it is a secret, and returns its end; `None` if it is no secret and the original expression may
    /// still find one in it. The groups count from `base`; the match begins at `from`.
    fn weigh(
        &mut self,
        number: usize,
        groups: &Captures<'_>,
        (base, from): (usize, usize),
        reading: Reading,
    ) -> Option<usize> {
        let rule = &self.scanner.rules[number].rule;
        let end = base + groups.get(0)?.end();
        let group = match rule.secret_group {
            0 => groups.iter().skip(1).flatten().find(|group| !group.is_empty()),
            group => groups.get(group),
        };
        let text = self.text;
        let matched = trim(&text[from..end]);
        let secret = group.map_or(matched, |group| &text[base + group.start()..base + group.end()]);
        let after = group.and_then(|group| text.get(base + group.end()));
        let bits = entropy(secret);
        let doubtful =
            reading == Reading::Wide && !widened_patterns::looks_random(secret, bits, after, rule.is_generic());
        let passed_over = (reading == Reading::Written).then_some(end);
        if doubtful || rule.entropy.is_some_and(|least| bits <= least) {
            return passed_over;
        }
        let at = from + text[from..end].iter().take_while(|byte| **byte == b'\n').count();
        let line = line(text, at, at + matched.len());
        // `key: SomeType1 = …` declares a type: what stands between is no value.
        if rule.is_generic() && !matched.contains(&b'"') && text[end..].trim_ascii_start().starts_with(b"= ") {
            return passed_over;
        }
        let candidate = AllowCandidate { secret, matched, line };
        let excused = self.remarks == Remarks::Heeded && contains(line, ALLOW);
        let mut allowed = rule.allowlists.iter().chain(&self.scanner.allowed);
        if excused || allowed.any(|one| one.passes(candidate, self.path)) {
            return passed_over;
        }
        self.found.push(PossibleSecret { rule: number, at, secret });
        Some(end)
    }
}

/// Counts lines, forwards only.
struct LineCounter<'t> {
    text: &'t [u8],
    line: usize,
    upto: usize,
}

impl LineCounter<'_> {
    fn of(&mut self, at: usize) -> usize {
        self.line += memchr::memchr_iter(b'\n', &self.text[self.upto..at]).count();
        self.upto = at;
        self.line
    }
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b'\n', rest @ ..] | [rest @ .., b'\n'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The lines that a match is on.
fn line(text: &[u8], start: usize, end: usize) -> &[u8] {
    let from = memchr::memrchr(b'\n', &text[..start]).map_or(0, |at| at + 1);
    let to = memchr::memchr(b'\n', &text[end..]).map_or(text.len(), |at| end + at);
    &text[from..to]
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// Shannon entropy of a text in bits per character, relative to its length in bytes, as the rules' bounds expect.
fn entropy(text: &[u8]) -> f64 {
    let of = |count: usize| {
        let share = count as f64 / text.len() as f64;
        if count == 0 { 0.0 } else { -share * share.log2() }
    };
    if text.is_ascii() {
        let mut counts = [0usize; 128];
        text.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        return counts.into_iter().map(of).sum();
    }
    let mut counts: HashMap<char, usize> = HashMap::new();
    String::from_utf8_lossy(text).chars().for_each(|c| *counts.entry(c).or_default() += 1);
    counts.into_values().map(of).sum()
}

#[cfg(test)]
mod tests;
