//! Text as the words a ranker compares.
//!
//! Latin text is split at everything that is not a letter or digit, identifiers also at case changes and underscores,
//! and each word is stemmed; the word itself is looked up in the table of meanings. Chinese, Japanese and Korean have
//! no such words: known ones are read as their English equivalents, Korean endings are dropped, and the rest is
//! compared by pairs of characters.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use rust_stemmers::{Algorithm, Stemmer};

use super::cjk_words;
use super::table::{self, TableWord};

/// A word longer than this is no word (a hash, an encoded blob).
const LONGEST_WORD: usize = 40;

/// Limit on the pieces of text a thread caches: more words than a person knows.
const MOST_KNOWN: usize = 20_000;

/// Form of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A stemmed word.
    Word,
    /// A number or a version.
    Number,
    /// An identifier of several words, written together.
    Compound,
    /// Two neighbouring characters of a script without spaces.
    Pair,
}

/// A word of a text.
#[derive(Debug, Clone)]
pub(crate) struct TextWord {
    /// The stem, the number, or the characters. Shared, as the same words are in many memories.
    pub(crate) text: Arc<str>,
    /// The word, for display.
    pub(crate) shown: String,
    /// Its form.
    pub(crate) form: Form,
    /// Its row in the table of meanings.
    pub(crate) row: Option<TableWord>,
    /// Fraction of a word: the pairs of one run share one.
    pub(crate) part: f32,
    /// Left out.
    pub(crate) stop: bool,
}

impl TextWord {
    fn exact(text: String, form: Form, part: f32) -> Self {
        Self { text: text.as_str().into(), shown: text, form, row: None, part, stop: false }
    }
}

/// Splits texts into tokens.
pub(crate) struct Splitter {
    stemmer: Stemmer,
}

impl Splitter {
    pub(crate) fn new() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English) }
    }

    /// The tokens of a text, in order.
    pub(crate) fn split(&self, text: &str) -> Vec<TextWord> {
        let mut tokens = Vec::new();
        self.each(text, |token| tokens.push(token.clone()));
        tokens
    }

    /// Calls `show` with each token of a text, in order.
    pub(crate) fn each(&self, text: &str, mut show: impl FnMut(&TextWord)) {
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let script = Script::of(c);
            if script == Script::Other {
                continue;
            }
            let mut end = at + c.len_utf8();
            while let Some((next, d)) = chars.peek().copied() {
                let joins = || {
                    script == Script::Latin
                        && is_joint(d)
                        && text[next + d.len_utf8()..].chars().next().is_some_and(|e| {
                            Script::of(e) == Script::Latin
                                && (d != '.'
                                    || e.is_ascii_digit() && text[at..next].ends_with(|f: char| f.is_ascii_digit()))
                        })
                };
                if Script::of(d) != script && !joins() {
                    break;
                }
                end = next + d.len_utf8();
                chars.next();
            }
            self.known(&text[at..end], script).iter().for_each(&mut show);
        }
    }

    /// The tokens of a piece of text in one script. The same pieces come again and again, so they are cached.
    fn known(&self, piece: &str, script: Script) -> Rc<[TextWord]> {
        type WordCache = HashMap<Box<str>, Rc<[TextWord]>>;
        thread_local! {
            static KNOWN: RefCell<WordCache> = RefCell::default();
        }
        if let Some(tokens) = KNOWN.with_borrow(|known| known.get(piece).cloned()) {
            return tokens;
        }
        let mut tokens = Vec::new();
        match script {
            Script::Latin => self.latin(piece, &mut tokens),
            Script::Han | Script::Katakana => self.runs(piece, &mut tokens),
            Script::Hangul => self.hangul(piece, &mut tokens),
            Script::Hiragana | Script::Other => {}
        }
        let tokens: Rc<[TextWord]> = tokens.into();
        if piece.len() <= LONGEST_WORD {
            KNOWN.with_borrow_mut(|known| {
                if known.len() >= MOST_KNOWN {
                    known.clear();
                }
                known.insert(piece.into(), Rc::clone(&tokens));
            });
        }
        tokens
    }

    /// A piece of Latin text without spaces: perhaps an identifier.
    fn latin(&self, piece: &str, tokens: &mut Vec<TextWord>) {
        let piece = piece.replace(['\u{2019}', '`'], "'");
        let lower = piece.to_lowercase();
        if is_stop(&lower) {
            return self.word(&lower, tokens);
        }
        let base = piece.strip_suffix("'s").unwrap_or(&piece);
        let parts = parts(base);
        for part in &parts {
            self.word(&part.to_lowercase(), tokens);
        }
        if parts.len() > 1 {
            let text: String = parts.concat().to_lowercase();
            if text.len() <= LONGEST_WORD {
                tokens.push(TextWord::exact(self.stem(&text), Form::Compound, 1.0));
            }
        }
    }

    fn word(&self, word: &str, tokens: &mut Vec<TextWord>) {
        if word.len() > LONGEST_WORD || word.is_empty() {
            return;
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            tokens.push(TextWord::exact(word.trim_end_matches(['.', '\'']).to_owned(), Form::Number, 1.0));
            return;
        }
        let text = self.stem(word);
        let row = table::row(word).or_else(|| table::row_of_stem(&text, |other| self.stem(other) == text));
        let stop = is_stop(word) || word.chars().count() < 2;
        tokens.push(TextWord { text: text.into(), shown: word.to_owned(), form: Form::Word, row, part: 1.0, stop });
    }

    /// The stem of a lower-case word.
    pub(crate) fn stem(&self, word: &str) -> String {
        if word.is_ascii() { self.stemmer.stem(word).into_owned() } else { word.to_owned() }
    }
}

/// Returns true if a lower-case word is grammar or small talk.
fn is_stop(word: &str) -> bool {
    static STOP: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
        let lines = include_str!("stop.txt").lines().filter(|line| !line.starts_with('#'));
        lines.flat_map(str::split_whitespace).collect()
    });
    STOP.contains(word)
}

/// The pairs of neighbouring characters of a run; the character itself if it is alone.
fn pairs(run: &str) -> Vec<String> {
    let chars: Vec<char> = run.chars().collect();
    if chars.len() < 2 {
        return vec![run.to_owned()];
    }
    chars.windows(2).map(|pair| pair.iter().collect()).collect()
}

/// The words of an identifier: `getUserName`, `get_user_name`, `get-user-name`. A version stays whole.
fn parts(piece: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in piece.split(['_', '-', '/', '+', '@', '\'']).filter(|part| !part.is_empty()) {
        let versioned = part.strip_prefix(['v', 'V']).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(version) = versioned {
            parts.push(version);
            continue;
        }
        let chars: Vec<(usize, char)> = part.char_indices().collect();
        let mut from = 0;
        for window in 1..chars.len() {
            let (at, c) = chars[window];
            let before = chars[window - 1].1;
            let after = chars.get(window + 1).map(|(_, c)| *c);
            let hump = c.is_uppercase()
                && (before.is_lowercase() || after.is_some_and(char::is_lowercase) && before.is_uppercase());
            if hump {
                parts.push(&part[from..at]);
                from = at;
            }
        }
        parts.push(&part[from..]);
    }
    parts
}

/// Script of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Han,
    Katakana,
    Hiragana,
    Hangul,
    Other,
}

impl Script {
    fn of(c: char) -> Self {
        match c {
            '\0'..='\u{7f}' if c.is_ascii_alphanumeric() => Self::Latin,
            '\0'..='\u{7f}' => Self::Other,
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}' => {
                Self::Han
            }
            '\u{30a0}'..='\u{30ff}' => Self::Katakana,
            '\u{3040}'..='\u{309f}' => Self::Hiragana,
            '\u{ac00}'..='\u{d7af}' | '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' => Self::Hangul,
            c if c.is_alphanumeric() => Self::Latin,
            _ => Self::Other,
        }
    }
}

/// Returns true if a character counts as a word of its own.
pub(crate) fn is_word_by_itself(c: char) -> bool {
    matches!(Script::of(c), Script::Han | Script::Katakana | Script::Hiragana)
}

/// Characters that hold an identifier, a version or a contraction together.
fn is_joint(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '\'' | '\u{2019}' | '/' | '+')
}

/// Chinese words without meaning in a question.
const HAN_STOP: &str = "我们 你们 他们 咱们 我 你 他 她 它 的 了 吗 呢 吧 啊 呀 是 在 有 和 与 或 及 就 都 也 还 要 会 能 可以 应该 需要 怎么 怎样 如何 \
    什么 哪里 哪个 哪些 哪儿 谁 多少 几 为什么 为何 是否 有没有 能不能 可不可以 请 请问 一下 这个 那个 这些 那些 这 那 把 被 给 对 从 到 \
    向 跟 让 用 使用 时候 时 上 下 里 中 之 以 于 其 但 而 且 如果 因为 所以 然后 现在 目前 一个 一些 帮我 帮 告诉 知道 关于 说 做 去 来 \
    没有 没 不是 不 很 太 最 更 再 又 才 只 个 们 得 着 过 地 想 该 那么 这么 还是 或者 以及 进行 情况 问题 东西 事情 方面 之前 之后";

/// The stop word that a text begins with.
fn han_stop(text: &str) -> Option<&str> {
    static STOP: LazyLock<HashSet<&'static str>> = LazyLock::new(|| HAN_STOP.split_whitespace().collect());
    cjk_words::beginnings(text).take(4).filter(|word| STOP.contains(word)).last()
}

/// Korean particles and verb endings, the ones a noun meets in a sentence about work.
const HANGUL_ENDINGS: &str = "으로부터 에서부터 에게서 이라고 이라는 이라도 입니까 습니까 했습니다 합니다 됩니다 입니다 습니다 하나요 되나요 인가요 \
    은가요 는가요 할까요 될까요 했나요 됐나요 었나요 았나요 해주세요 해줘요 해줘 하세요 해야 하는 하고 하면 하지 하기 한다 했다 했던 하자 할지 \
    되어 되는 되면 된다 됐다 에서 에게 으로 까지 부터 처럼 보다 마다 이나 이랑 에는 에도 에서는 으로는 이고 이며 인지 일까 이야 이에요 예요 \
    을 를 이 가 은 는 에 로 의 도 와 과 만 나 랑 께 요 야 들 해 할 한 된 될 인 고 며 면";

/// Korean words without meaning in a question.
const HANGUL_STOP: &str = "우리 저희 나 너 제 그 이 저 것 거 수 때 등 및 또는 그리고 그런데 하지만 어떻게 어떤 무엇 무슨 뭐 뭐야 뭔가요 무엇인가요 어디 \
    어디서 어디에 언제 누가 누구 왜 몇 얼마 있나요 있어 있는 있다 있습니까 없나요 없는 없다 해야 하나요 하나 하는 하고 해줘 줘 주세요 해주세요 \
    알려줘 알려주세요 알려 좀 다시 지금 현재 이번 그거 이거 저거 여기 거기 관련 대한 대해 위한 위해 경우 방법 어느 되나요 되는 된 됐지 했지 \
    했어 했더라 뭐였지 뭐지 인가요 쓰나요 써야 쓰는 사용 사용해 사용하나요 사용하는 때문 정도 그냥 제발 이제 먼저";

impl Splitter {
    /// Splits a run of Han or kana: words of the dictionary, and the rest between stop words.
    fn runs(&self, piece: &str, tokens: &mut Vec<TextWord>) {
        let (mut pending, mut rest) = (String::new(), piece);
        while let Some(c) = rest.chars().next() {
            let known = cjk_words::longest(rest);
            let stop = han_stop(rest);
            let len = match (known, stop) {
                (Some((word, english)), stop) if stop.is_none_or(|stop| stop.len() <= word.len()) => {
                    flush(&mut pending, tokens);
                    self.foreign(word, english, tokens);
                    word.len()
                }
                (_, Some(stop)) => {
                    flush(&mut pending, tokens);
                    stop.len()
                }
                _ => {
                    pending.push(c);
                    c.len_utf8()
                }
            };
            rest = &rest[len..];
        }
        flush(&mut pending, tokens);
    }

    /// Adds a known word of another script as its English equivalent.
    fn foreign(&self, shown: &str, english: &str, tokens: &mut Vec<TextWord>) {
        let part = 1.0 / english.split(' ').count() as f32;
        for word in english.split(' ') {
            for token in self.known(word, Script::Latin).iter() {
                tokens.push(TextWord { part, stop: false, shown: shown.to_owned(), ..token.clone() });
            }
        }
    }

    /// Adds a Korean word: known words in it, and the rest without its ending.
    fn hangul(&self, piece: &str, tokens: &mut Vec<TextWord>) {
        static ENDINGS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| HANGUL_ENDINGS.split_whitespace().collect());
        static STOP: LazyLock<HashSet<&'static str>> = LazyLock::new(|| HANGUL_STOP.split_whitespace().collect());
        if STOP.contains(piece) {
            return;
        }
        let (mut pending, mut rest) = (String::new(), piece);
        let mut after_a_known_word = false;
        while let Some(c) = rest.chars().next() {
            if let Some((word, english)) = cjk_words::longest(rest) {
                flush(&mut pending, tokens);
                self.foreign(word, english, tokens);
                after_a_known_word = true;
                rest = &rest[word.len()..];
            } else {
                pending.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        let (count, least) = (pending.chars().count(), if after_a_known_word { 0 } else { 1 });
        let mut starts = pending.char_indices().enumerate().skip(least);
        let cut = starts.find(|(from, (at, _))| ENDINGS.contains(&pending[*at..]) && (*from != 1 || count == 2));
        pending.truncate(cut.map_or(pending.len(), |(_, (at, _))| at));
        if !STOP.contains(pending.as_str()) {
            flush(&mut pending, tokens);
        }
    }
}

/// Adds the rest of a run as pairs.
fn flush(pending: &mut String, tokens: &mut Vec<TextWord>) {
    let run = std::mem::take(pending);
    if !run.is_empty() {
        let pairs = pairs(&run);
        let part = 1.0 / pairs.len() as f32;
        tokens.extend(pairs.into_iter().map(|pair| TextWord::exact(pair, Form::Pair, part)));
    }
}
