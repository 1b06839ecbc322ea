//! One simple command on the way: its redirections and assignments, and the commands it runs in turn.

use std::collections::HashMap;

use super::{Found, State, Walk, fields, is_number, noted};
use crate::shell::field::{self, Field, Source, Value};
use crate::shell::find::find;
use crate::shell::finding::{Finding, How, Touch, Verdict};
use crate::shell::git::git;
use crate::shell::scan::DEEPEST;
use crate::shell::simple::{bare_name, simple};
use crate::shell::tree::{Redirect, Simple};
use crate::shell::variables::{harmless_name, harmless_variable, plain_variable};
use crate::shell::word::{self, Piece};
use crate::shell::wrap::{Wrapped, unwrap};

/// Words that change the shell itself, so that what follows means something else.
const CHANGES_SHELL: &str = "alias unalias source . exec trap export declare typeset readonly local set shopt enable hash unset let \
    mapfile readarray eval getopts bind complete pushd popd function";

impl Walk {
    /// Notes what redirections do, and says where the input comes from then.
    pub(super) fn redirects(&mut self, redirects: &[Redirect], state: &mut State, input: &Source) -> Source {
        let mut source = input.clone();
        for redirect in redirects {
            let (path, how) = match redirect {
                Redirect::Same => continue,
                Redirect::Read(path) => (path, How::Contents),
                Redirect::Write(path) => (path, How::Written),
                Redirect::Document { text, expands } => {
                    source = Source::Anywhere;
                    if *expands && let Ok(pieces) = word::document(text, self.depth) {
                        self.pieces(&pieces, state);
                    }
                    continue;
                }
                Redirect::HereString(text) => {
                    source = Source::Anywhere;
                    self.word(text, state);
                    continue;
                }
            };
            let mut fields = self.word(path, state);
            let field =
                if fields.len() == 1 { fields.remove(0) } else { Field::unknown(field::Count::Any, Source::Anywhere) };
            if how == How::Contents {
                source = Source::Anywhere;
            }
            let finding = redirected(&field, how);
            if let Some(finding) = finding {
                self.note(state, finding);
            }
        }
        source
    }

    pub(super) fn simple(&mut self, command: &Simple, state: &mut State, input: &Source) -> Source {
        if let Some(why) = command.odd {
            self.note(state, Finding::unknown(why));
            state.changed = true;
        }
        let fields: Vec<Field> = command.words.iter().flat_map(|text| self.word(text, state)).collect();
        let mut variables = Vec::new();
        for (name, value) in &command.assignments {
            let mut values = match word::whole(value, self.depth) {
                Ok(pieces) => self.assigned(&pieces, state),
                Err(why) => {
                    self.note(state, Finding::opaque(format!("not understood: {why}")));
                    vec![Field::unknown(field::Count::One, Source::Anywhere)]
                }
            };
            variables.push((name.clone(), values.remove(0)));
        }
        let input = self.redirects(&command.redirects, state, input);
        if fields.is_empty() {
            self.assign(variables, state);
            return Source::Anywhere;
        }
        let printed = self.run(&fields, Some(command.words.join(" ")), &variables, state, &input);
        blurred(&command.redirects, printed)
    }

    /// The value of an assignment: one field, however many words it has.
    fn assigned(&mut self, pieces: &[Piece], state: &mut State) -> Vec<Field> {
        let printed = self.pieces(pieces, state);
        let quoted: Vec<Piece> = pieces.iter().cloned().map(quoted).collect();
        let mut fields = fields(&quoted, &printed, state);
        fields.truncate(1);
        fields
    }

    /// Assignments without a command.
    fn assign(&mut self, variables: Vec<(String, Field)>, state: &mut State) {
        for (name, value) in variables {
            if !harmless_name(&name) {
                self.note(state, Finding::unknown(format!("{name} may mean something to programs or to the shell")));
                state.changed = true;
            } else if let Field::Known(text) = &value {
                let finding = Finding::read_only(format!("{name} is set to {text}"));
                self.found.push(Found { changed: false, ..noted(state, finding) });
            }
            let value = match value {
                Field::Unknown { source, prefix, .. } if prefix.is_empty() => Value::Unknown(source),
                known if state.straight => Value::Field(known),
                Field::Known(text) if is_number(&text) => Value::Unknown(Source::Number),
                _ => Value::Unknown(Source::Anywhere),
            };
            state.variables.insert(name, value);
        }
    }

    /// A command with its words, and the commands it runs in turn.
    fn run(
        &mut self,
        words: &[Field],
        text: Option<String>,
        variables: &[(String, Field)],
        state: &mut State,
        input: &Source,
    ) -> Source {
        let (name, arguments) = (words[0].text().map(str::to_owned), &words[1..]);
        let mut changed = state.changed;
        for (variable, value) in variables {
            let for_read = variable == "IFS" && name.as_deref() == Some("read");
            if !harmless_variable(variable, value) && !for_read {
                self.note(state, Finding::unknown(format!("{variable} may change what programs do")));
                changed = true;
            }
        }
        let name = name.as_deref().and_then(bare_name).map(str::to_owned);
        let wrapped = name.as_deref().map_or(Wrapped::No, |name| unwrap(name, arguments, input));
        let directories = state.directories.clone();
        let (mut runs, mut places) = (Vec::new(), Vec::new());
        let finding = match (&name, &wrapped) {
            (None, _) => match words[0].text() {
                Some(name) => Finding::unknown(format!("{name} is a program of its own")),
                None => Finding::opaque("which command it runs is not known"),
            },
            (Some(name), Wrapped::Runs { .. }) => Finding::read_only(format!("{name} runs what follows")),
            (Some(name), Wrapped::Script(_)) => Finding::read_only(format!("{name} runs a command that is looked at")),
            (Some(name), Wrapped::Perhaps { why, .. }) => Finding::unknown(format!("{name}: {why}")),
            (Some(name), Wrapped::Something(why)) => Finding::opaque(format!("{name}: {why}")),
            (Some(name), Wrapped::No) => match name.as_str() {
                "cd" => self.cd(arguments, state),
                "git" => git(arguments),
                "find" | "gfind" => {
                    let (finding, commands) = find(arguments);
                    runs = commands;
                    places.extend(finding.touches.iter().map(|touch| touch.path.clone()));
                    finding
                }
                "read" => read(arguments, state, input),
                "env" => Finding::read_only("env only shows").showing("the environment"),
                "command" | "time" | "nice" | "nohup" | "timeout" | "stdbuf" | "builtin" => {
                    Finding::read_only(format!("{name} only shows"))
                }
                "export" => export(arguments, state),
                name => simple(name, arguments),
            },
        };
        let changes = name.as_deref().is_some_and(|name| CHANGES_SHELL.split_whitespace().any(|known| known == name));
        if changes && finding.verdict != Verdict::ReadOnly {
            state.changed = true;
        }
        let output = match &finding.lists {
            Some(places) => Source::Listing(places.clone()),
            None if finding.passes => input.clone(),
            None if finding.counts => Source::Number,
            None if finding.commits => Source::Commit,
            None => Source::Anywhere,
        };
        self.found.push(Found {
            words: words.to_vec(),
            text,
            finding,
            directories,
            changed,
            preset: !variables.iter().all(|(name, value)| plain_variable(name, value)),
            guessed: false,
        });
        match wrapped {
            Wrapped::No => {}
            Wrapped::Runs { command, variables } => {
                if self.depth >= DEEPEST {
                    self.note(state, Finding::opaque("too deeply nested"));
                    return Source::Anywhere;
                }
                self.depth += 1;
                let source = self.run(&command, None, &variables, state, input);
                self.depth -= 1;
                return source;
            }
            Wrapped::Script(script) => {
                // Variables that are not exported do not reach another shell, and what it does stays there.
                let mut own = State { variables: HashMap::new(), ..state.clone() };
                if name.as_deref() == Some("eval") {
                    self.script(&script, state, input);
                } else {
                    return self.script(&script, &mut own, input);
                }
            }
            Wrapped::Perhaps { commands, .. } => {
                for words in commands {
                    let finding = Finding::unknown("may be run");
                    self.found.push(Found { words, guessed: true, ..noted(state, finding) });
                }
            }
            Wrapped::Something(_) => {}
        }
        self.runs(runs, &places, state);
        output
    }

    /// What find runs for each file below these places.
    fn runs(&mut self, commands: Vec<Vec<Field>>, places: &[Field], state: &State) {
        for command in commands {
            if command.is_empty() || self.depth >= DEEPEST {
                self.note(state, Finding::opaque("find -exec with a command that is not known"));
                continue;
            }
            let command: Vec<Field> = command
                .into_iter()
                .map(|field| match field.text() {
                    // It begins with the place, which is no option.
                    Some("{}") => {
                        let source = Source::Listing(places.to_vec());
                        Field::Unknown { prefix: "./".into(), count: field::Count::One, source }
                    }
                    Some(text) if text.contains("{}") => Field::unknown(field::Count::One, Source::Anywhere),
                    _ => field,
                })
                .collect();
            self.depth += 1;
            self.run(&command, None, &[], &mut state.clone(), &Source::Anywhere);
            self.depth -= 1;
        }
    }

    fn cd(&mut self, arguments: &[Field], state: &mut State) -> Finding {
        let operands: Vec<&Field> =
            arguments.iter().filter(|field| !matches!(field.text(), Some("-L" | "-P" | "--" | "-e"))).collect();
        let target = match operands.as_slice() {
            [] => Field::Home(String::new()),
            [field] if !field.may_be_option() && field.text() != Some("-") => (*field).clone(),
            _ => Field::unknown(field::Count::One, Source::Anywhere),
        };
        let moved = state.directories.iter().map(|directory| joined(directory, &target));
        // It may fail, and then what follows runs where it was: whoever resolves the path looks whether it is there.
        let mut directories: Vec<Field> = moved.collect();
        directories.dedup();
        let mut finding = Finding::read_only("cd only moves");
        finding.touches.push(Touch::read(target, How::Entered));
        state.directories = directories;
        finding
    }
}

/// What is printed then: where another stream may be joined to it, what that says is not known.
pub(super) fn blurred(redirects: &[Redirect], printed: Source) -> Source {
    if redirects.iter().any(|redirect| matches!(redirect, Redirect::Same)) { Source::Anywhere } else { printed }
}

/// What a redirection does. None: nothing.
fn redirected(field: &Field, how: How) -> Option<Finding> {
    let text = field.text();
    if how == How::Written {
        return match text {
            Some("/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/fd/1" | "/dev/fd/2" | "/dev/tty") => None,
            Some(path) if path == field::PROCESS => None,
            _ => {
                let mut finding = Finding::writes(match text {
                    Some(path) => format!("output goes to the file {path}"),
                    None => "output goes to a file".to_owned(),
                });
                finding.touches.push(Touch { path: field.clone(), how });
                Some(finding)
            }
        };
    }
    if text == Some(field::PROCESS) {
        return None;
    }
    // bash opens connections for such names.
    let connects = |text: &str| text.starts_with("/dev/tcp") || text.starts_with("/dev/udp");
    let mut finding = match field {
        Field::Known(path) if connects(path) => Finding::unknown("input from the network"),
        Field::Unknown { prefix, .. } if prefix.is_empty() || prefix.starts_with('/') => {
            Finding::unknown("input from a file that is not known")
        }
        _ => Finding::read_only("input from a file"),
    };
    finding.touches.push(Touch::read(field.clone(), how));
    Some(finding)
}

fn quoted(piece: Piece) -> Piece {
    match piece {
        Piece::Variable { name, plain, words, assigns, .. } => {
            Piece::Variable { name, plain, words, assigns, quoted: true }
        }
        Piece::Command { text, .. } => Piece::Command { text, quoted: true },
        // No files are matched and no braces expanded in an assignment.
        Piece::Bare(text) if !text.contains('~') => Piece::Quoted(text),
        other => other,
    }
}

/// A directory seen from another.
fn joined(directory: &Field, target: &Field) -> Field {
    let behind = |path: &str, text: &str| if path.is_empty() { text.to_owned() } else { format!("{path}/{text}") };
    match (directory, target) {
        (_, Field::Known(text)) if text.starts_with('/') => target.clone(),
        (_, Field::Home(_)) => target.clone(),
        (Field::Known(path), Field::Known(text)) => Field::Known(behind(path, text)),
        (Field::Home(path), Field::Known(text)) => Field::Home(format!("{path}/{text}")),
        _ => Field::unknown(field::Count::One, Source::Anywhere),
    }
}

/// The shell's `read`: it sets variables to what comes.
fn read(arguments: &[Field], state: &mut State, input: &Source) -> Finding {
    let mut rest = arguments.iter();
    let mut names = Vec::new();
    while let Some(field) = rest.next() {
        match field.text() {
            Some("-r" | "-s" | "-rs") if names.is_empty() => {}
            Some("-d" | "-n" | "-N" | "-t" | "-p" | "-u" | "-rd" | "-rn")
                if names.is_empty() && rest.next().is_some_and(Field::is_one) => {}
            Some(name) if harmless_name(name) && !name.starts_with(|letter: char| letter.is_ascii_digit()) => {
                names.push(name.to_owned());
            }
            _ => return Finding::unknown("read sets something that is not a plain variable"),
        }
    }
    let whole = names.len() == 1;
    for name in names {
        let source = if whole { input.clone() } else { Source::Anywhere };
        state.variables.insert(name, Value::Unknown(source));
    }
    Finding::read_only("read sets variables")
}

fn export(arguments: &[Field], state: &mut State) -> Finding {
    for field in arguments {
        let Some((name, value)) = field.text().and_then(|text| text.split_once('=')) else {
            return Finding::unknown("export changes the shell for what follows");
        };
        if !plain_variable(name, &Field::Known(value.to_owned())) {
            return Finding::unknown(format!("{name} may change what programs do"));
        }
        state.variables.insert(name.to_owned(), Value::Unknown(Source::Anywhere));
    }
    Finding::read_only("export sets variables")
}
