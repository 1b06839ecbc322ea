//! The phrases of `wording.txt`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// Phrases by what they say, and where they say it. Each field is a section of `wording.txt`.
pub(super) struct Wording {
    /// Phrases that forbid something anywhere in a sentence.
    pub(super) forbid_anywhere: Phrases,
    /// Phrases that require something anywhere in a sentence.
    pub(super) require_anywhere: Phrases,
    /// Beginnings of a clause that forbid something; elsewhere they report.
    pub(super) forbid_at_start: Vec<&'static str>,
    /// Beginnings of a clause that require something.
    pub(super) require_at_start: Vec<&'static str>,
    /// Orders that hold for good only if the sentence also has one of `lasting`.
    pub(super) orders: Vec<&'static str>,
    /// Words that make an order one that lasts.
    pub(super) lasting: Phrases,
    /// Deeds of an agent, in the words of those who forbid them.
    pub(super) deeds: Vec<&'static str>,
    /// Subjects of which an order says that none may.
    pub(super) nobody: Vec<&'static str>,
    /// Subjects of which an order says that all must.
    pub(super) all: Vec<&'static str>,
    /// Verbs that make an order of a sentence about such a subject.
    pub(super) demands: Vec<&'static str>,
    /// Words that may precede the beginning of a clause.
    pub(super) leading: Vec<&'static str>,
    /// Words before "never", "always" and "don't" that address the agent.
    pub(super) addressed: Vec<&'static str>,
    /// Words before them with which somebody reports.
    pub(super) reporting: Vec<&'static str>,
    /// Verbs that say how something behaves.
    pub(super) behaviour: Vec<&'static str>,
    /// Words with which a subordinate clause begins.
    pub(super) subordinate: Vec<&'static str>,
    /// Words that begin a request put as a question.
    pub(super) polite: Vec<&'static str>,
    /// Phrases in other languages that forbid or require.
    pub(super) other_languages: Phrases,
    /// The same in languages without blanks between words.
    pub(super) unspaced: Phrases,
    /// Signs of a rule, in several languages.
    pub(super) signs: Phrases,
    /// The same in languages without blanks between words.
    pub(super) unspaced_signs: Phrases,
    /// Verbs that make a rule of a sentence about a path or a piece of code.
    pub(super) stative: Phrases,
    /// Words of greetings, of thanks and of assent.
    pub(super) talk: Vec<&'static str>,
    /// Ends of an order that look like a question.
    pub(super) tags: Vec<&'static str>,
    /// Words in the line above a list that make rules of its items.
    pub(super) list_headings: Phrases,
    /// Beginnings of what a program prints.
    pub(super) output: Vec<&'static str>,
    /// Phrases of what was, or might have been.
    pub(super) not_now: Phrases,
    /// Phrases of what holds for one time only.
    pub(super) only_once: Phrases,
    /// Phrases behind which somebody else's words stand.
    pub(super) told: Phrases,
    /// Verbs of a task.
    pub(super) tasks: Vec<&'static str>,
    /// Words in a task behind which stands what its result does.
    pub(super) inside_a_task: Phrases,
    /// Verbs in other languages that say how something behaves.
    pub(super) failing: Phrases,
}

pub(super) static WORDING: LazyLock<Wording> = LazyLock::new(|| {
    let text = include_str!("wording.txt");
    let section = |name: &str| -> Vec<&str> {
        let (_, after) = text.split_once(&format!("\n[{name}]\n")).unwrap_or_default();
        let body = after.split_once("\n[").map_or(after, |(body, _)| body);
        body.split([',', '\n']).map(str::trim).filter(|phrase| !phrase.is_empty()).collect()
    };
    Wording {
        forbid_anywhere: Phrases::of_words(section("forbid anywhere")),
        require_anywhere: Phrases::of_words(section("require anywhere")),
        forbid_at_start: section("forbid at start"),
        require_at_start: section("require at start"),
        orders: section("orders"),
        lasting: Phrases::of_words(section("lasting")),
        deeds: section("deeds"),
        nobody: section("nobody"),
        all: section("all"),
        demands: section("demands"),
        leading: section("leading"),
        addressed: section("addressed"),
        reporting: section("reporting"),
        behaviour: section("behaviour"),
        subordinate: section("subordinate"),
        polite: section("polite"),
        other_languages: Phrases::of_words(section("other languages")),
        unspaced: Phrases::of(section("unspaced")),
        signs: Phrases::of_words(section("signs")),
        unspaced_signs: Phrases::of(section("unspaced signs")),
        stative: Phrases::of_words(section("stative")),
        talk: section("talk"),
        tags: section("tags"),
        list_headings: Phrases::of_words(section("list headings")),
        output: section("output"),
        not_now: Phrases::of_words(section("not now")),
        only_once: Phrases::of_words(section("only once")),
        told: Phrases::of_words(section("told")),
        tasks: section("tasks"),
        inside_a_task: Phrases::of_words(section("inside a task")),
        failing: Phrases::of_words(section("failing")),
    }
});

/// Phrases that are looked for all at once.
pub(super) struct Phrases(Option<AhoCorasick>);

impl Phrases {
    fn of<T: AsRef<[u8]>>(phrases: impl IntoIterator<Item = T>) -> Self {
        Self(AhoCorasick::new(phrases).ok())
    }

    /// Phrases that begin and end with a word.
    fn of_words(phrases: Vec<&str>) -> Self {
        Self::of(phrases.into_iter().map(|phrase| format!(" {phrase} ")))
    }

    pub(super) fn are_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|phrases| phrases.is_match(text))
    }

    /// True if a text begins with one of them, or does behind "and".
    pub(super) fn begin(&self, text: &str) -> bool {
        let text = text.strip_prefix(" and").unwrap_or(text);
        self.before(text).trim().is_empty()
    }

    /// A text up to the first of them.
    pub(super) fn before<'text>(&self, text: &'text str) -> &'text str {
        let found = self.0.as_ref().and_then(|phrases| phrases.find(text));
        found.map_or(text, |phrase| &text[..=phrase.start()])
    }
}
