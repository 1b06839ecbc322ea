//! How things look: colours only on terminals, errors in three parts.

use std::io::IsTerminal;

use crate::env;
use crate::out::talk;

/// A colour, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    on: bool,
}

impl Style {
    /// For what goes to stdout.
    pub(crate) fn stdout() -> Self {
        Self { on: std::io::stdout().is_terminal() && env::NO_COLOR.get().is_none() }
    }

    /// For what goes to stderr.
    pub(crate) fn stderr() -> Self {
        Self { on: std::io::stderr().is_terminal() && env::NO_COLOR.get().is_none() }
    }

    /// Whether colours are on.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Stands out.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Stands back.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Good news.
    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Bad news.
    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Names and numbers.
    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }
}

/// `error:`, its `cause:`s, and after a blank line what to do.
pub(crate) fn print_error(error: &anyhow::Error) {
    let style = Style::stderr();
    talk!("{} {error}", style.red("error:"));
    let mut shown = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !shown.contains(&cause) {
            talk!("{} {cause}", style.red("cause:"));
        }
        shown = cause;
    }
    if let Some(hint) = hint(error) {
        talk!("\n{} {hint}", style.cyan("hint:"));
    }
}

fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(error) = error.downcast_ref::<engine::Error>() {
        return error.hint();
    }
    if let Some(error) = error.downcast_ref::<provider::Error>() {
        return error.hint().map(str::to_owned);
    }
    error.downcast_ref::<crate::model::NoModel>().map(crate::model::NoModel::hint)
}

/// Text from outside made safe for a terminal: no control characters, one line, at most so long.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if clean.chars().count() <= most {
        return clean;
    }
    let cut: String = clean.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}
