//! Made-up text that is the same on every machine: what it says does not matter, how it is written does. Source code has
//! a newline, a tab or a quote every twenty bytes, and each is an escape in JSON.

/// Words that names and sentences are made of.
const WORDS: [&str; 24] = [
    "line", "result", "context", "branch", "commit", "session", "append", "value", "index", "reader", "window",
    "token", "view", "cache", "prefix", "replay", "summary", "offset", "buffer", "marker", "span", "reply", "tool",
    "path",
];

/// A stream of made-up text.
#[derive(Debug)]
pub(crate) struct Prose {
    state: u64,
}

impl Default for Prose {
    fn default() -> Self {
        Self { state: 0x9e37_79b9_7f4a_7c15 }
    }
}

impl Prose {
    /// A number below `end` (xorshift).
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % end as u64) as usize
    }

    /// A number of a range.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low)
    }

    /// So many hexadecimal digits.
    pub(crate) fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from(b"0123456789abcdef"[self.below(16)])).collect()
    }

    /// Sentences of about so many bytes.
    pub(crate) fn words(&mut self, bytes: usize) -> String {
        let mut out = String::with_capacity(bytes + 16);
        while out.len() < bytes {
            out.push_str(self.word());
            out.push_str(if self.below(12) == 0 { ".\n" } else { " " });
        }
        out
    }

    /// Source code of about so many bytes.
    pub(crate) fn code(&mut self, bytes: usize) -> String {
        let mut out = String::with_capacity(bytes + 80);
        while out.len() < bytes {
            let (name, argument, called) = (self.word(), self.word(), self.word());
            match self.below(50) {
                0 => out.push_str(&format!("\t// {name} — {argument} → {called}\n")),
                1..10 => out.push_str(&format!("\tif err := {name}.{called}({argument}); err != nil {{\n")),
                10..20 => out.push_str(&format!("\t\treturn fmt.Errorf(\"no {name} in {argument}: %w\", err)\n\t}}\n")),
                20..30 => out.push_str(&format!("\t// The {name} of a {argument} is found by its {called}, once.\n")),
                30..40 => out.push_str(&format!("\t{name} := {argument}.{called}({{\"{name}\": {argument}}})\n")),
                _ => out.push_str(&format!("func ({name} *{argument}) {called}() error {{\n")),
            }
        }
        out
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }
}
