//! Colours for code: comments, strings, numbers, keywords and types, line by line.
//!
//! It reads words and signs, not grammars: a line costs the same in every language, and a key never waits for it. What it does
//! not know stays as it is; no character is changed, added or left out.

use crate::styled_text::{Colour, Span, TextStyle};

/// Look of code in a kind of language.
#[derive(Debug)]
struct CodeSyntax {
    /// Names after a fence, and endings of files.
    names: &'static [&'static str],
    line_comment: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// Delimiters of strings; the longer ones first.
    strings: &'static [&'static str],
    keywords: &'static [&'static str],
}

/// Names of changes, whose lines say by their first sign what they are.
const DIFF: [&str; 2] = ["diff", "patch"];

const C_STRINGS: &[&str] = &["\"", "'"];

/// The kinds there are. Languages of one family share a kind: a word too many is no harm.
const SYNTAXES: &[CodeSyntax] = &[
    CodeSyntax {
        names: &["rust", "rs"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        // An apostrophe is a lifetime as often as a character.
        strings: &["\""],
        keywords: &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false",
            "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return",
            "self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
        ],
    },
    CodeSyntax {
        names: &["javascript", "js", "jsx", "mjs", "typescript", "ts", "tsx"],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        strings: &["\"", "'", "`"],
        keywords: &[
            "as",
            "async",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "default",
            "delete",
            "do",
            "else",
            "enum",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "from",
            "function",
            "if",
            "implements",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
            "of",
            "private",
            "public",
            "readonly",
            "return",
            "static",
            "super",
            "switch",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typeof",
            "undefined",
            "var",
            "void",
            "while",
            "yield",
        ],
    },
    CodeSyntax {
        names: &[
            "c", "h", "cc", "cpp", "hpp", "c++", "cs", "csharp", "java", "kotlin", "kt", "scala", "swift", "dart",
            "php", "go", "zig", "proto", "css", "scss",
        ],
        line_comment: &["//"],
        block_comment: Some(("/*", "*/")),
        strings: C_STRINGS,
        keywords: &[
            "abstract",
            "auto",
            "bool",
            "break",
            "case",
            "catch",
            "chan",
            "char",
            "class",
            "const",
            "continue",
            "default",
            "defer",
            "delete",
            "do",
            "double",
            "else",
            "enum",
            "extends",
            "extern",
            "false",
            "final",
            "float",
            "for",
            "func",
            "fun",
            "function",
            "go",
            "goto",
            "if",
            "implements",
            "import",
            "in",
            "include",
            "int",
            "interface",
            "let",
            "long",
            "map",
            "namespace",
            "new",
            "nil",
            "null",
            "nullptr",
            "override",
            "package",
            "private",
            "protected",
            "public",
            "range",
            "return",
            "select",
            "short",
            "sizeof",
            "static",
            "string",
            "struct",
            "super",
            "switch",
            "template",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typedef",
            "union",
            "unsigned",
            "using",
            "val",
            "var",
            "virtual",
            "void",
            "while",
        ],
    },
    CodeSyntax {
        names: &["python", "py", "pyi"],
        line_comment: &["#"],
        block_comment: None,
        strings: &["\"\"\"", "'''", "\"", "'"],
        keywords: &[
            "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
            "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
            "match", "nonlocal", "not", "or", "pass", "raise", "return", "self", "try", "while", "with", "yield",
        ],
    },
    CodeSyntax {
        names: &["bash", "sh", "shell", "zsh", "fish", "console", "dockerfile", "makefile", "make", "mk"],
        line_comment: &["# ", "#!"],
        block_comment: None,
        strings: C_STRINGS,
        keywords: &[
            "case", "do", "done", "elif", "else", "esac", "exit", "export", "fi", "for", "function", "if", "in",
            "local", "return", "set", "then", "until", "while",
        ],
    },
    CodeSyntax {
        names: &["ruby", "rb", "elixir", "ex", "exs", "perl", "pl", "r", "julia", "jl", "nix"],
        line_comment: &["#"],
        block_comment: None,
        strings: C_STRINGS,
        keywords: &[
            "and",
            "begin",
            "break",
            "case",
            "class",
            "def",
            "defmodule",
            "do",
            "else",
            "elsif",
            "end",
            "ensure",
            "false",
            "fn",
            "for",
            "function",
            "if",
            "import",
            "in",
            "inherit",
            "let",
            "module",
            "my",
            "next",
            "nil",
            "not",
            "or",
            "require",
            "rescue",
            "return",
            "self",
            "sub",
            "then",
            "true",
            "unless",
            "until",
            "use",
            "when",
            "while",
            "with",
            "yield",
        ],
    },
    CodeSyntax {
        names: &["toml", "yaml", "yml", "ini", "conf", "json", "jsonc", "json5", "properties", "hcl", "tf"],
        line_comment: &["#", "//", ";"],
        block_comment: None,
        strings: C_STRINGS,
        keywords: &["true", "false", "null", "yes", "no", "on", "off"],
    },
    CodeSyntax { names: &DIFF, line_comment: &[], block_comment: None, strings: &[], keywords: &[] },
    CodeSyntax {
        names: &["sql", "lua", "haskell", "hs", "elm", "ada"],
        line_comment: &["--"],
        block_comment: None,
        strings: C_STRINGS,
        keywords: &[
            "and", "as", "begin", "by", "case", "create", "data", "delete", "do", "drop", "else", "end", "false",
            "for", "from", "function", "group", "if", "in", "index", "insert", "instance", "into", "join", "left",
            "let", "limit", "local", "module", "nil", "not", "null", "of", "on", "or", "order", "repeat", "return",
            "select", "set", "table", "then", "true", "type", "union", "until", "update", "values", "where", "while",
            "with",
        ],
    },
];

/// Code being coloured, a line after the other.
#[derive(Debug)]
pub(crate) struct CodeColours {
    syntax: &'static CodeSyntax,
    /// The end of what a line has left open: a comment or a string over several lines.
    open: Option<(&'static str, TextStyle)>,
}

impl CodeColours {
    /// For a language, by its name or the ending of its files; none if it is not known.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let name = name.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
        let syntax = SYNTAXES.iter().find(|syntax| syntax.names.contains(&name.as_str()))?;
        Some(Self { syntax, open: None })
    }

    /// The next line; `base` is the look of what has none of its own.
    pub(crate) fn line(&mut self, line: &str, base: TextStyle) -> Vec<Span> {
        if self.syntax.names == DIFF {
            let look = match line.bytes().next() {
                Some(b'+') => coloured(Colour::Green, base),
                Some(b'-') => coloured(Colour::Red, base),
                Some(b'@') => coloured(Colour::Cyan, base),
                _ => base,
            };
            return vec![Span::new(line, look)];
        }
        let mut spans = CodeSpans::default();
        let mut rest = line;
        while !rest.is_empty() {
            let (len, look) = self.next(rest, base);
            spans.push(&rest[..len], look);
            rest = &rest[len..];
        }
        // Only what may span lines stays open.
        self.open = self.open.take().filter(|(end, _)| end.len() > 1 || *end == "`");
        spans.0
    }

    /// The length and the look of what a text begins with.
    fn next(&mut self, rest: &str, base: TextStyle) -> (usize, TextStyle) {
        if let Some((end, look)) = self.open {
            return self.until(rest, 0, end, look);
        }
        let comment = TextStyle { italic: true, ..TextStyle::DIM };
        if let Some((begin, end)) = self.syntax.block_comment.filter(|(begin, _)| rest.starts_with(begin)) {
            return self.until(rest, begin.len(), end, comment);
        }
        if self.syntax.line_comment.iter().any(|begin| rest.starts_with(begin)) {
            return (rest.len(), comment);
        }
        if let Some(quote) = self.syntax.strings.iter().find(|quote| rest.starts_with(**quote)) {
            return self.until(rest, quote.len(), quote, coloured(Colour::Green, base));
        }
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let first = rest.chars().next().unwrap_or_default();
        match word {
            0 => (first.len_utf8(), base),
            word if first.is_ascii_digit() => (word, coloured(Colour::Yellow, base)),
            word if self.is_keyword(&rest[..word]) => (word, coloured(Colour::Magenta, base)),
            word if first.is_uppercase() && word > 1 => (word, coloured(Colour::Cyan, base)),
            word => (word, base),
        }
    }

    fn is_keyword(&self, word: &str) -> bool {
        // SQL is written in capitals as often as not.
        self.syntax.keywords.contains(&word)
            || self.syntax.names.contains(&"sql") && self.syntax.keywords.contains(&word.to_lowercase().as_str())
    }

    /// To the end of a string or comment that begins here; what has no end stays open.
    fn until(&mut self, rest: &str, begin: usize, end: &'static str, look: TextStyle) -> (usize, TextStyle) {
        let mut from = begin;
        while let Some(at) = rest[from..].find(end).map(|at| from + at) {
            let escapes = rest[begin..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
            from = at + end.len();
            if end.len() > 1 || escapes % 2 == 0 {
                self.open = None;
                return (from, look);
            }
        }
        self.open = Some((end, look));
        (rest.len(), look)
    }
}

fn coloured(colour: Colour, base: TextStyle) -> TextStyle {
    TextStyle { colour: Some(colour), ..base }
}

/// Spans of one line; neighbours of one look are one.
#[derive(Default)]
struct CodeSpans(Vec<Span>);

impl CodeSpans {
    fn push(&mut self, text: &str, look: TextStyle) {
        match self.0.last_mut() {
            Some(last) if last.look() == look => last.push(text),
            _ => self.0.push(Span::new(text, look)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text and colour of each span; `d` is a comment, `.` has no look.
    fn seen(language: &str, lines: &[&str]) -> Vec<Vec<(String, char)>> {
        let mut colours = CodeColours::of(language).unwrap();
        let mark = |look: TextStyle| match look.colour {
            Some(Colour::Green) => 's',
            Some(Colour::Yellow) => 'n',
            Some(Colour::Magenta) => 'k',
            Some(Colour::Cyan) => 't',
            _ if look.dim => 'd',
            _ => '.',
        };
        let row = |line: &&str| colours.line(line, TextStyle::PLAIN);
        let rows: Vec<Vec<Span>> = lines.iter().map(row).collect();
        rows.iter().map(|row| row.iter().map(|span| (span.text().to_owned(), mark(span.look()))).collect()).collect()
    }

    fn row(parts: &[(&str, char)]) -> Vec<(String, char)> {
        parts.iter().map(|(text, mark)| ((*text).to_owned(), *mark)).collect()
    }

    #[test]
    fn words_strings_numbers_and_comments_have_colours() {
        assert_eq!(
            seen("rust", &["let x: Vec<u8> = f(\"a\\\"b\", 12); // why", "/* a", "b */ fn g<'a>() {}"]),
            [
                row(&[
                    ("let", 'k'),
                    (" x: ", '.'),
                    ("Vec", 't'),
                    ("<u8> = f(", '.'),
                    ("\"a\\\"b\"", 's'),
                    (", ", '.'),
                    ("12", 'n'),
                    ("); ", '.'),
                    ("// why", 'd')
                ]),
                row(&[("/* a", 'd')]),
                row(&[("b */", 'd'), (" ", '.'), ("fn", 'k'), (" g<'a>() {}", '.')])
            ]
        );
        assert_eq!(
            seen("py", &["x = \"\"\"one", "two\"\"\" # end", "y = 'open", "if"]),
            [
                row(&[("x = ", '.'), ("\"\"\"one", 's')]),
                row(&[("two\"\"\"", 's'), (" ", '.'), ("# end", 'd')]),
                row(&[("y = ", '.'), ("'open", 's')]),
                row(&[("if", 'k')])
            ]
        );
        let mark = |line: &str| CodeColours::of("diff").unwrap().line(line, TextStyle::PLAIN)[0].look().colour;
        assert_eq!([mark("+ a"), mark("- a"), mark(" a")], [Some(Colour::Green), Some(Colour::Red), None]);
        assert!(CodeColours::of("brainfuck").is_none());
    }

    #[test]
    fn no_character_is_lost() {
        for syntax in SYNTAXES {
            let mut colours = CodeColours::of(syntax.names[0]).unwrap();
            for line in ["a 'b \"c` /* x", "日本 = \"語\\", "*/ --é# 1.5e3", "", "'''", "\\\"\\\\\""] {
                let text: String =
                    colours.line(line, TextStyle::PLAIN).iter().map(|span| span.text().to_owned()).collect();
                assert_eq!(text, line, "{}", syntax.names[0]);
            }
        }
    }
}
