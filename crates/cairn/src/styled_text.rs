//! Text that may be shown: a [`Span`] is one line of it in one style.
//!
//! Whatever becomes a span is cleaned on the way, so no text of a model, a file or a server can move the cursor, set the
//! window's title or turn a command around. Only control characters go: what can be read stays, however odd, or an
//! escape could hide a part of what the user is asked about.

use std::sync::Arc;

/// A run of text in one style, on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    text: String,
    look: TextStyle,
    /// The page that it leads to, for terminals that can open one.
    link: Option<Link>,
}

/// The address of a page: only what a terminal opens in a browser, and nothing that could end a link early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link(Arc<str>);

/// The longest address that terminals take.
const LONGEST_LINK: usize = 2_000;

impl Link {
    /// An address, if it is one of the web.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let is_plain = url.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        (is_web && is_plain && url.len() <= LONGEST_LINK).then(|| Self(url.into()))
    }
}

/// The style of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TextStyle {
    /// Bold.
    pub(crate) bold: bool,
    /// Dim.
    pub(crate) dim: bool,
    /// Italic.
    pub(crate) italic: bool,
    /// Struck through.
    pub(crate) struck: bool,
    /// A colour of the terminal's palette.
    pub(crate) colour: Option<Colour>,
}

/// The colours used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
    BrightRed,
    BrightMagenta,
}

impl Colour {
    /// The colour that a definition of an agent names, as near as the terminal's palette has it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "red" => Some(Self::Red),
            "orange" => Some(Self::BrightRed),
            "yellow" => Some(Self::Yellow),
            "green" => Some(Self::Green),
            "cyan" => Some(Self::Cyan),
            "blue" => Some(Self::Blue),
            "purple" | "magenta" => Some(Self::Magenta),
            "pink" => Some(Self::BrightMagenta),
            _ => None,
        }
    }
}

/// Colours, bold and the like, on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    /// The terminal's own, as they are meant for a dark background.
    On,
    /// Darker ones, which can be read on white.
    OnLight,
    Off,
}

impl Colour {
    /// The code on a dark background, or on a light one: there each has a contrast of 5 to 1 at least with white.
    fn code(self, colours: Colours) -> &'static str {
        let light = colours == Colours::OnLight;
        match self {
            Self::Red if light => "38;5;124",
            Self::Green if light => "38;5;22",
            Self::Yellow if light => "38;5;94",
            Self::Magenta if light => "38;5;90",
            Self::Cyan if light => "38;5;24",
            Self::Blue if light => "38;5;19",
            Self::BrightRed if light => "38;5;88",
            Self::BrightMagenta if light => "38;5;125",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Magenta => "35",
            Self::Cyan => "36",
            Self::BrightRed => "91",
            Self::BrightMagenta => "95",
        }
    }
}

/// What stands back on a light background. Many terminals make dim text there too pale to read.
const DIM_ON_LIGHT: &str = "38;5;242";

impl TextStyle {
    pub(crate) const PLAIN: Self = Self { bold: false, dim: false, italic: false, struck: false, colour: None };
    pub(crate) const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub(crate) const DIM: Self = Self { dim: true, ..Self::PLAIN };

    /// A colour.
    pub(crate) const fn of(colour: Colour) -> Self {
        Self { colour: Some(colour), ..Self::PLAIN }
    }

    fn codes(self, colours: Colours) -> Vec<&'static str> {
        let dim = if colours == Colours::OnLight { DIM_ON_LIGHT } else { "2" };
        let flags = [(self.bold, "1"), (self.dim, dim), (self.italic, "3"), (self.struck, "9")];
        let flags = flags.into_iter().filter(|(on, _)| *on).map(|(_, code)| code);
        flags.chain(self.colour.map(|colour| colour.code(colours))).collect()
    }
}

impl Span {
    /// Text in a style.
    pub(crate) fn new(text: &str, look: TextStyle) -> Self {
        Self { text: clean(text), look, link: None }
    }

    /// The same, leading to a page.
    pub(crate) fn leading_to(mut self, link: Option<Link>) -> Self {
        self.link = link;
        self
    }

    /// Another text in the same style, leading to the same page.
    pub(crate) fn with_text(&self, text: &str) -> Self {
        Self { text: clean(text), look: self.look, link: self.link.clone() }
    }

    /// True if both look the same and lead to the same page.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.look == other.look && self.link == other.link
    }

    /// Text as it is.
    pub(crate) fn plain(text: &str) -> Self {
        Self::new(text, TextStyle::PLAIN)
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Its style.
    pub(crate) fn look(&self) -> TextStyle {
        self.look
    }

    /// More text in the same style.
    pub(crate) fn push(&mut self, more: &str) {
        add(&mut self.text, more);
    }

    /// Without blanks at the end.
    pub(crate) fn trim_end(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        Self::plain(&text)
    }
}

/// Stands out.
pub(crate) fn bold(text: &str) -> Span {
    Span::new(text, TextStyle::BOLD)
}

/// Stands back.
pub(crate) fn dim(text: &str) -> Span {
    Span::new(text, TextStyle::DIM)
}

/// Good news.
pub(crate) fn green(text: &str) -> Span {
    Span::new(text, TextStyle::of(Colour::Green))
}

/// Bad news.
pub(crate) fn red(text: &str) -> Span {
    Span::new(text, TextStyle::of(Colour::Red))
}

/// Names and numbers.
pub(crate) fn cyan(text: &str) -> Span {
    Span::new(text, TextStyle::of(Colour::Cyan))
}

/// Spans as one string, with the escape sequences of their looks.
pub(crate) fn paint(spans: &[Span], colours: Colours) -> String {
    let mut out = String::new();
    for span in spans {
        let codes = span.look.codes(colours);
        let link = span.link.as_ref().filter(|_| colours != Colours::Off);
        if let Some(Link(url)) = link {
            out.push_str(&format!("\x1b]8;;{url}\x1b\\"));
        }
        if colours != Colours::Off && !codes.is_empty() {
            out.push_str(&format!("\x1b[{}m{}\x1b[0m", codes.join(";"), span.text));
        } else {
            out.push_str(&span.text);
        }
        if link.is_some() {
            out.push_str("\x1b]8;;\x1b\\");
        }
    }
    out
}

/// One line without control characters; tabs and separators of lines become blanks.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    add(&mut out, text);
    out
}

fn add(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            '\u{2028}' | '\u{2029}' => out.push(' '),
            c if steers(c) => {}
            c => out.push(c),
        }
    }
}

/// Text without control characters but tabs and ends of lines.
pub(crate) fn clean_lines(text: &str) -> String {
    text.chars().filter(|&c| matches!(c, '\n' | '\t') || !steers(c)).collect()
}

/// Output of a command as a terminal would leave it: without escape sequences, and of a line that was written over
/// only what came last. Not for what the user is asked about, where nothing may be hidden.
pub(crate) fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split('\n') {
        let line = line.trim_end_matches('\r');
        let last = line.rsplit('\r').find(|part| !part.is_empty()).unwrap_or_default();
        add_without_escapes(&mut out, last);
        out.push('\n');
    }
    out.pop();
    out
}

fn add_without_escapes(out: &mut String, line: &str) {
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        match chars.next() {
            // A control sequence ends with a letter or a sign like one.
            Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            // A title or a link ends with a bell or another escape.
            Some(']') => {
                while let Some(c) = chars.next().filter(|&c| c != '\u{7}') {
                    if c == '\u{1b}' {
                        chars.next();
                        break;
                    }
                }
            }
            Some('(' | ')') => drop(chars.next()),
            _ => {}
        }
    }
}

/// One line of a text from outside, at most so long: all blanks are one, and what is cut is told by an ellipsis.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(blank).collect();
    let text = clean(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    if text.chars().count() <= most {
        return text;
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// The first line of a text, at most so long.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    one_line(text.lines().next().unwrap_or_default(), most)
}

/// Characters that terminals obey instead of showing them: those of the sets C0 and C1, DEL, and those that change the
/// direction of what follows, so that a command can look like another one.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything a terminal obeys: colours, titles, the cursor, the bell, an answer it would type, other directions.
    const HOSTILE: &str = "a\x1b[31mb\x07\x1b]0;title\x07\u{9b}2Jc\u{9d}8;;x\u{9c}\x7f\r\x08\u{202e}d\u{200f}\u{2066}e";

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(clean(HOSTILE), "a[31mb]0;title2Jc8;;xde");
        assert_eq!(clean("a\tb\nc\u{2028}d"), "a    bc d");
        assert_eq!(clean_lines(&format!("{HOSTILE}\n\tx\r\n")), "a[31mb]0;title2Jc8;;xde\n\tx\n");
        assert_eq!(one_line("a\nb\u{85}c\x1b[1m  d\u{202e}", 20), "a b c [1m d");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }

    #[test]
    fn the_output_of_a_command_loses_its_colours_and_what_was_written_over() {
        let text =
            "\u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7}\n10 %\r100 %\r\n\u{1b}(Bend\u{1b}[";
        assert_eq!(without_escapes(text), "red link\n100 %\nend");
    }

    #[test]
    fn only_an_address_of_the_web_becomes_a_link_and_only_with_colours() {
        let span = |url: &str| [Span::plain("page").leading_to(Link::of(url))];
        assert_eq!(
            paint(&span("https://x.org/a?b=c"), Colours::On),
            "\x1b]8;;https://x.org/a?b=c\x1b\\page\x1b]8;;\x1b\\"
        );
        assert_eq!(paint(&span("https://x.org/"), Colours::Off), "page");
        for bad in ["javascript:alert(1)", "file:///etc/passwd", "https://x\x1b\\y", "https://x y", "https://é"] {
            assert_eq!(paint(&span(bad), Colours::On), "page", "{bad}");
        }
    }

    #[test]
    fn on_a_light_background_nothing_is_pale() {
        let spans = [Span::new("a", TextStyle::of(Colour::Yellow)), Span::new("b", TextStyle::DIM)];
        assert_eq!(paint(&spans, Colours::On), "\x1b[33ma\x1b[0m\x1b[2mb\x1b[0m");
        assert_eq!(paint(&spans, Colours::OnLight), "\x1b[38;5;94ma\x1b[0m\x1b[38;5;242mb\x1b[0m");
    }

    #[test]
    fn a_span_is_clean_whatever_it_is_made_of() {
        let mut span = Span::plain(HOSTILE);
        span.push(HOSTILE);
        let spans = [span, red(HOSTILE), Span::from(HOSTILE.to_owned())];
        assert!(!paint(&spans, Colours::Off).chars().any(steers));
        let painted = paint(&spans, Colours::On).replace("\x1b[31m", "").replace("\x1b[0m", "");
        assert!(!painted.chars().any(steers), "{painted:?}");
    }
}
