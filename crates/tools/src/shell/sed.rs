//! `sed`: its script, read far enough to know that it only prints.

use super::field::Field;
use super::finding::{Finding, How, Touch};
use super::options::{Options, Order, Others};

const OPTIONS: Options<'static> = Options {
    short: "nrEsuze:l:",
    long: "quiet silent regexp-extended separate unbuffered null-data expression= line-length= posix sandbox debug help version",
    others: Others::Harmful,
    order: Order::Mixed,
};

/// Looks at the arguments of sed.
pub(super) fn sed(arguments: &[Field]) -> Finding {
    let in_place = |field: &Field| {
        let text = field.beginning();
        text.starts_with("--in-place")
            || (text.starts_with('-') && !text.starts_with("--") && !text.starts_with("-e") && text.contains('i'))
    };
    if arguments.iter().take_while(|field| field.text() != Some("--")).any(in_place) {
        return Finding::writes("sed -i edits files in place");
    }
    let given = match OPTIONS.read(arguments) {
        Ok(given) => given,
        Err(why) => return Finding::unknown(format!("sed: {why}")),
    };
    let mut scripts: Vec<&Field> = given.values(&["e", "expression"]).collect();
    let mut operands = given.operands.iter();
    if scripts.is_empty() {
        scripts.extend(operands.next());
    }
    if scripts.is_empty() {
        return Finding::unknown("sed without a script");
    }
    for script in scripts {
        // Numbers in a script (`sed -n "${i}p"`) cannot be known here; a script that is not known whole is none.
        let Some(text) = script.text() else { return Finding::unknown("the script of sed is not known") };
        if let Err(why) = harmless(text) {
            return if why.starts_with("it writes") {
                Finding::writes(format!("sed: {why}"))
            } else {
                Finding::unknown(format!("sed: {why}"))
            };
        }
    }
    let mut finding = Finding::read_only("sed only prints");
    finding.touches.extend(operands.map(|path| Touch::read(path.clone(), How::Contents)));
    finding
}

/// Reads a script, or says what in it is not known to be harmless.
fn harmless(script: &str) -> Result<(), &'static str> {
    let mut rest = Script(script);
    loop {
        rest.skip(" \t\n;{}!");
        if rest.0.is_empty() {
            return Ok(());
        }
        rest.address()?;
        if rest.eat(',') {
            rest.skip(" \t");
            rest.skip("+~");
            rest.address()?;
        }
        rest.skip(" \t!");
        let command = rest.next().ok_or("its script ends in the middle")?;
        match command {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            'q' | 'Q' | 'l' | 'L' => {
                rest.skip(" \t");
                rest.skip("0123456789");
            }
            ':' | 'b' | 't' | 'T' => {
                rest.skip(" \t");
                rest.line(" \t;}");
            }
            '#' => drop(rest.line("")),
            'a' | 'i' | 'c' => {
                // The text goes to the end of the line. `a\` puts it on the next one; other backslashes are not read.
                let mut text = rest.line("");
                if text == "\\" {
                    text = rest.line("");
                }
                if text.contains('\\') {
                    return Err("text with backslashes");
                }
            }
            's' => {
                let delimiter = rest.delimiter()?;
                rest.part(delimiter)?;
                rest.part(delimiter)?;
                loop {
                    match rest.peek() {
                        Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => drop(rest.next()),
                        Some('w') => return Err("it writes a file (s///w)"),
                        Some('e') => return Err("s///e runs what it made"),
                        None | Some(';' | '\n' | '}' | ' ' | '\t' | '#') => break,
                        Some(_) => return Err("a flag that is not known"),
                    }
                }
            }
            'y' => {
                let delimiter = rest.delimiter()?;
                rest.part(delimiter)?;
                rest.part(delimiter)?;
            }
            'w' | 'W' => return Err("it writes a file (w)"),
            'e' => return Err("e runs a command"),
            'r' | 'R' => return Err("r reads another file"),
            _ => return Err("a command that is not known"),
        }
        rest.skip(" \t");
        match rest.peek() {
            None | Some(';' | '\n' | '}' | '#') => {}
            Some(_) if matches!(command, '{' | '}' | ':' | 'b' | 't' | 'T' | '#' | 'a' | 'i' | 'c') => {}
            Some(_) => return Err("a command is not ended"),
        }
    }
}

struct Script<'a>(&'a str);

impl<'a> Script<'a> {
    fn peek(&self) -> Option<char> {
        self.0.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.0 = &self.0[next.len_utf8()..];
        Some(next)
    }

    fn eat(&mut self, letter: char) -> bool {
        let eaten = self.0.starts_with(letter);
        if eaten {
            self.next();
        }
        eaten
    }

    fn skip(&mut self, letters: &str) {
        self.0 = self.0.trim_start_matches(|letter| letters.contains(letter));
    }

    fn address(&mut self) -> Result<(), &'static str> {
        match self.peek() {
            Some('0'..='9') => {
                self.skip("0123456789");
                if self.eat('~') {
                    self.skip("0123456789");
                }
            }
            Some('$') => drop(self.next()),
            Some('/') => {
                self.next();
                self.part('/')?;
                self.skip("IM");
            }
            Some('\\') => {
                self.next();
                let delimiter = self.delimiter()?;
                self.part(delimiter)?;
                self.skip("IM");
            }
            _ => {}
        }
        self.skip(" \t");
        Ok(())
    }

    fn delimiter(&mut self) -> Result<char, &'static str> {
        self.next()
            .filter(|letter| letter.is_ascii_punctuation() && *letter != '\\')
            .ok_or("a delimiter that is not known")
    }

    /// Everything up to the delimiter.
    fn part(&mut self, delimiter: char) -> Result<(), &'static str> {
        let length = pattern(self.0, delimiter)?;
        self.0 = &self.0[length..];
        Ok(())
    }

    /// The rest of the line, or up to one of `ends`.
    fn line(&mut self, ends: &str) -> &'a str {
        let end = self.0.find(|letter| letter == '\n' || ends.contains(letter)).unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at(end);
        self.0 = rest.strip_prefix('\n').unwrap_or(rest);
        line
    }
}

/// The length of a pattern with the delimiter that ends it. Programs differ on a delimiter between brackets, and on where
/// odd brackets end, so both are refused.
pub(super) fn pattern(text: &str, delimiter: char) -> Result<usize, &'static str> {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '\n' => return Err("a newline in a pattern"),
            _ if letter == delimiter => return Ok(at + letter.len_utf8()),
            '[' => {
                let inside = &text[at + 1..];
                let inside = inside.strip_prefix('^').unwrap_or(inside);
                let end = bracket(inside, delimiter)?;
                let skipped = text.len() - inside.len() + end;
                while letters.clone().next().is_some_and(|(at, _)| at < skipped) {
                    letters.next();
                }
            }
            _ => {}
        }
    }
    Err("a pattern is not closed")
}

/// The length of what stands behind a `[`, with the `]`.
fn bracket(text: &str, delimiter: char) -> Result<usize, &'static str> {
    let mut at = 0;
    if text.starts_with(']') {
        return Err("brackets that may be read in two ways");
    }
    loop {
        let rest = &text[at..];
        let letter = rest.chars().next().ok_or("a bracket is not closed")?;
        if let Some(class) = rest.strip_prefix("[:") {
            at += 2 + class.find(":]").ok_or("a bracket is not closed")? + 2;
            continue;
        }
        match letter {
            ']' => return Ok(at + 1),
            '[' | '\n' => return Err("brackets that may be read in two ways"),
            '\\' => {
                let next = rest[1..].chars().next().ok_or("a bracket is not closed")?;
                if next == ']' || next == delimiter {
                    return Err("brackets that may be read in two ways");
                }
                at += 1 + next.len_utf8();
            }
            _ if letter == delimiter => return Err("a delimiter between brackets"),
            _ => at += letter.len_utf8(),
        }
    }
}
