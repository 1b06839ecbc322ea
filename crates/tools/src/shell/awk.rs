//! `awk`: its program, read as words and signs, far enough to know that it only prints.
//!
//! Refused are pipes, redirections, `getline`, `system`, `close`, and anything that is neither a function of awk's own
//! nor one of its statements. A `>` is a comparison only where awk could take it for nothing else: between parentheses,
//! or in a pattern before its braces.

use super::field::Field;
use super::finding::{Finding, How, Touch};
use super::options::{Options, Order, Others};

const OPTIONS: Options<'static> = Options {
    short: "F:v:",
    long: "field-separator= assign= version help",
    others: Others::Harmful,
    order: Order::First,
};

/// Words with a parenthesis behind them that are harmless.
const FUNCTIONS: &str = "if while for printf print return length substr index split sub gsub match sprintf tolower toupper sin \
    cos atan2 exp log sqrt int rand srand gensub strftime systime mktime asort asorti and or xor lshift rshift compl strtonum in not \
    switch do else delete isarray typeof";

/// Looks at the arguments of awk.
pub(super) fn awk(arguments: &[Field]) -> Finding {
    let given = match OPTIONS.read(arguments) {
        Ok(given) => given,
        Err(why) => return Finding::unknown(format!("awk: {why}")),
    };
    if given.has(&["version", "help"]) {
        return Finding::read_only("awk prints its version");
    }
    let Some(program) = given.operands.first() else { return Finding::unknown("awk without a program") };
    let Some(text) = program.text() else { return Finding::unknown("the program of awk is not known") };
    if let Err(why) = harmless(text) {
        return Finding::unknown(format!("awk: {why}"));
    }
    let mut finding = Finding::read_only("awk only prints");
    for operand in &given.operands[1..] {
        // `x=1` sets a variable.
        let assigns = operand.text().is_some_and(|text| text.contains('=') && !text.contains('/'));
        if !assigns {
            finding.touches.push(Touch::read(operand.clone(), How::Contents));
        }
    }
    finding
}

fn harmless(program: &str) -> Result<(), &'static str> {
    let mut rest = program;
    let (mut parentheses, mut braces) = (0_usize, 0_usize);
    let mut slash = Slash::Pattern;
    let mut word_before = "";
    while let Some(next) = rest.chars().next() {
        let mut taken = next.len_utf8();
        let mut word = "";
        match next {
            ' ' | '\t' => {
                rest = &rest[taken..];
                continue;
            }
            '+' | '-' if rest[1..].starts_with(next) => {
                taken = 2;
                slash = Slash::Unclear;
            }
            '\n' | ';' | ',' | '!' | '~' | '=' | '+' | '-' | '*' | '%' | '^' | '?' | ':' => slash = Slash::Pattern,
            '(' => {
                let harmless = word_before.is_empty() || FUNCTIONS.split_whitespace().any(|known| known == word_before);
                if !harmless {
                    return Err("a function that is not known to be harmless");
                }
                parentheses += 1;
                slash = Slash::Pattern;
            }
            ')' => {
                parentheses = parentheses.saturating_sub(1);
                slash = Slash::Unclear;
            }
            '{' => {
                braces += 1;
                slash = Slash::Pattern;
            }
            '}' => {
                braces = braces.saturating_sub(1);
                slash = Slash::Pattern;
            }
            '[' => slash = Slash::Pattern,
            ']' => slash = Slash::Divides,
            '$' => slash = Slash::Pattern,
            '|' if rest.starts_with("||") => {
                taken = 2;
                slash = Slash::Pattern;
            }
            '|' => return Err("a pipe"),
            '&' if rest.starts_with("&&") => {
                taken = 2;
                slash = Slash::Pattern;
            }
            '>' if braces > 0 && parentheses == 0 => return Err("output to a file, or what may be taken for it"),
            '>' if rest.starts_with(">>") => return Err("output to a file"),
            '>' | '<' => slash = Slash::Pattern,
            '"' => {
                taken = quoted(rest)?;
                slash = Slash::Divides;
            }
            '/' => match slash {
                Slash::Pattern => {
                    taken = 1 + super::sed::pattern(&rest[1..], '/')?;
                    slash = Slash::Divides;
                }
                Slash::Divides => slash = Slash::Pattern,
                Slash::Unclear => return Err("a / that may divide or begin a pattern"),
            },
            '#' => taken = rest.find('\n').unwrap_or(rest.len()),
            '\\' if rest.starts_with("\\\n") => taken = 2,
            // Letters behind a number are a word of their own: `1system("x")`.
            '0'..='9' | '.' => {
                taken = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
                slash = Slash::Divides;
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                taken =
                    rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
                word = &rest[..taken];
                match word {
                    "getline" | "system" | "close" | "fflush" | "function" | "func" | "nextfile" | "ENVIRON" => {
                        return Err("a word that may run or read something else");
                    }
                    // `for (print > "file"; …)` is a program, too.
                    "print" | "printf" if parentheses > 0 => return Err("output where it may go to a file"),
                    "print" | "printf" | "return" | "in" | "else" | "do" | "case" | "exit" => slash = Slash::Pattern,
                    "length" | "next" | "delete" | "break" | "continue" => slash = Slash::Unclear,
                    _ => slash = Slash::Divides,
                }
            }
            // `@` calls functions by name and includes files.
            _ => return Err("a sign that is not known"),
        }
        rest = &rest[taken..];
        word_before = word;
    }
    Ok(())
}

/// What a `/` would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slash {
    Pattern,
    Divides,
    Unclear,
}

/// The length of a string with its quotes.
fn quoted(text: &str) -> Result<usize, &'static str> {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '\n' => return Err("a text is not closed"),
            '"' => return Ok(at + 1),
            _ => {}
        }
    }
    Err("a text is not closed")
}
