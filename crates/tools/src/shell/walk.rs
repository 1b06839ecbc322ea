//! Going through a command in the order in which the shell would, with what is known on the way: where it is, what
//! variables hold, what comes through the pipe.
//!
//! Nothing is run and nothing on the disk is looked at. Both ways of a condition are taken. What a shell of its own does
//! to itself is forgotten at its end.

mod run;

use std::collections::HashMap;

use super::field::{self, Field, Source, Value};
use super::finding::{Finding, How, Touch};
use super::scan::DEEPEST;
use super::tree::{self, Command, Item, Join, List, Pipeline, Shell, TestWord};
use super::variables::{harmless_name, ordinary_name};
use super::word::{self, Piece};

/// How many pipelines are followed, each turn of a loop counted. More is unknown. A command of the longest length has
/// fewer.
const MOST_STEPS: usize = 10_000;

/// How many values of a loop are followed one by one.
const MOST_TURNS: usize = 16;

/// In how many directories a command may be, for all that is known.
const MOST_DIRECTORIES: usize = 4;

/// A simple command that was found, wherever it stands.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Its words, the name first.
    pub(crate) words: Vec<Field>,
    /// The words as they were written, where they were: for rules that allow.
    pub(crate) text: Option<String>,
    pub(crate) finding: Finding,
    /// The directories it may run in, from where the whole started.
    pub(crate) directories: Vec<Field>,
    /// Something before it, or in front of it, gives its words another meaning.
    pub(crate) changed: bool,
    /// Whether variables are set for it alone, of which any program but those of the table may make something.
    pub(crate) preset: bool,
    /// Whether it surely runs if the whole does, or is only guessed at.
    pub(crate) guessed: bool,
}

/// What is known at one point.
#[derive(Debug, Clone)]
struct State {
    directories: Vec<Field>,
    variables: HashMap<String, Value>,
    changed: bool,
    /// Whether it is certain that this point is reached once, and with what came before.
    straight: bool,
}

/// What a walk has found.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) found: Vec<Found>,
    depth: usize,
    steps: usize,
}

/// What the substitutions in a word print, by their text.
type Printed = Vec<(String, Source)>;

impl Walk {
    /// Goes through a whole command.
    pub(super) fn all(&mut self, text: &str) {
        let start = Field::Known(String::new());
        let mut state = State { directories: vec![start], variables: HashMap::new(), changed: false, straight: true };
        self.script(text, &mut state, &Source::Anywhere);
    }

    /// Goes through a text that is a command by itself. Says what it prints.
    fn script(&mut self, text: &str, state: &mut State, input: &Source) -> Source {
        if self.depth >= DEEPEST {
            self.note(state, Finding::opaque("too deeply nested"));
            return Source::Anywhere;
        }
        match tree::parse(text, self.depth) {
            Ok(list) => {
                self.depth += 1;
                let source = self.list(&list, state, input);
                self.depth -= 1;
                source
            }
            Err(why) => {
                self.note(state, Finding::opaque(format!("not understood: {why}")));
                Source::Anywhere
            }
        }
    }

    /// Notes something that is no simple command.
    fn note(&mut self, state: &State, finding: Finding) {
        self.found.push(Found {
            words: Vec::new(),
            text: None,
            finding,
            directories: state.directories.clone(),
            changed: true,
            preset: false,
            guessed: false,
        });
    }

    fn list(&mut self, list: &List, state: &mut State, input: &Source) -> Source {
        let mut source = Source::Anywhere;
        for item in list {
            source = self.item(item, state, input);
        }
        if list.len() == 1 { source } else { Source::Anywhere }
    }

    fn item(&mut self, item: &Item, state: &mut State, input: &Source) -> Source {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            self.note(state, Finding::opaque("too much to follow"));
            return Source::Anywhere;
        }
        let mut own = state.clone();
        let here = if item.background { &mut own } else { state };
        let source = self.pipeline(&item.first, here, input);
        if item.then.is_empty() {
            return source;
        }
        // What was certain before the first `&&` stays so; the rest may or may not run.
        let mut ends = here.clone();
        let mut now = here.clone();
        now.straight = false;
        for (join, next) in &item.then {
            if *join == Join::Or {
                // Whatever stands before may have failed anywhere.
                now = ends.clone();
                now.straight = false;
            }
            self.pipeline(next, &mut now, input);
            ends = merged(&ends, &now);
        }
        *here = State { straight: here.straight, ..ends };
        Source::Anywhere
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: &mut State, input: &Source) -> Source {
        if let [command] = pipeline.as_slice() {
            return self.command(command, state, input);
        }
        let mut source = input.clone();
        for command in pipeline {
            source = self.command(command, &mut state.clone(), &source);
        }
        source
    }

    fn command(&mut self, command: &Command, state: &mut State, input: &Source) -> Source {
        match command {
            Command::Simple(simple) => return self.simple(simple, state, input),
            Command::Group { shell, list, redirects } => {
                let input = self.redirects(redirects, state, input);
                let printed = match shell {
                    Shell::Same => self.list(list, state, &input),
                    Shell::Own => self.list(list, &mut state.clone(), &input),
                };
                return run::blurred(redirects, printed);
            }
            Command::For { variable, values, body, redirects } => {
                let input = self.redirects(redirects, state, input);
                self.for_loop(variable, values.as_deref(), body, state, &input);
            }
            Command::While { condition, body, redirects } => {
                let input = self.redirects(redirects, state, input);
                self.turns(state, |walk, state| {
                    walk.list(condition, state, &input);
                    walk.list(body, state, &input);
                });
            }
            Command::If { arms, redirects } => {
                let input = self.redirects(redirects, state, input);
                let mut ends = state.clone();
                let mut now = state.clone();
                now.straight = false;
                for (condition, body) in arms {
                    if let Some(condition) = condition {
                        self.list(condition, &mut now, &input);
                        ends = merged(&ends, &now);
                    }
                    let mut inside = now.clone();
                    self.list(body, &mut inside, &input);
                    ends = merged(&ends, &inside);
                }
                *state = State { straight: state.straight, ..ends };
            }
            Command::Case { value, arms, redirects } => {
                let input = self.redirects(redirects, state, input);
                self.word(value, state);
                let mut ends = state.clone();
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.word(pattern, state);
                    }
                    // One arm may fall into the next.
                    let mut inside = ends.clone();
                    inside.straight = false;
                    self.list(body, &mut inside, &input);
                    ends = merged(&ends, &inside);
                }
                *state = State { straight: state.straight, ..ends };
            }
            Command::Test { words, redirects } => {
                self.redirects(redirects, state, input);
                self.test(words, state);
            }
            Command::Other(why) => {
                self.note(state, Finding::unknown(*why));
                state.changed = true;
            }
        }
        Source::Anywhere
    }

    /// Goes through something that may happen any number of times.
    fn turns(&mut self, state: &mut State, mut body: impl FnMut(&mut Self, &mut State)) {
        let mut first = state.clone();
        first.straight = false;
        body(self, &mut first);
        let mut ends = merged(state, &first);
        if ends.directories != state.directories || ends.variables != state.variables {
            // A second turn starts where the first ended, and a third where the second did: anywhere.
            let mut second = ends.clone();
            second.straight = false;
            if ends.directories != state.directories {
                second.directories = vec![Field::unknown(field::Count::One, Source::Anywhere)];
            }
            body(self, &mut second);
            ends = merged(&ends, &second);
        }
        *state = State { straight: state.straight, ..ends };
    }

    fn for_loop(&mut self, variable: &str, values: Option<&[String]>, body: &List, state: &mut State, input: &Source) {
        let values: Vec<Field> = match values {
            Some(values) => values.iter().flat_map(|value| self.word(value, state)).collect(),
            None => vec![Field::unknown(field::Count::Any, Source::Anywhere)],
        };
        if !harmless_name(variable) {
            self.note(state, Finding::unknown(format!("{variable} may mean something to programs")));
        }
        let one = |field: &Field| match field {
            Field::Unknown { source, .. } => Value::Unknown(source.clone()),
            known => Value::Field(known.clone()),
        };
        let turns: Vec<Value> = if values.len() <= MOST_TURNS {
            values.iter().map(one).collect()
        } else {
            vec![Value::Unknown(Source::Anywhere)]
        };
        for turn in turns {
            self.turns(state, |walk, state| {
                state.variables.insert(variable.to_owned(), turn.clone());
                walk.list(body, state, input);
            });
        }
        state.variables.insert(variable.to_owned(), Value::Unknown(Source::Anywhere));
    }

    fn test(&mut self, words: &[TestWord], state: &mut State) {
        let mut finding = Finding::read_only("a test only looks");
        for test in words {
            match test {
                TestWord::Text(text) => drop(self.word(text, state)),
                TestWord::File(text) => {
                    let fields = self.word(text, state);
                    finding.touches.extend(fields.into_iter().map(|field| Touch::read(field, How::Names)));
                }
                TestWord::Number(text) => {
                    let fields = self.word(text, state);
                    let number = |field: &Field| match field {
                        Field::Known(text) => is_number(text),
                        Field::Unknown { source, prefix, .. } => *source == Source::Number && prefix.is_empty(),
                        _ => false,
                    };
                    if !fields.iter().all(number) {
                        finding = Finding::unknown("[[ … ]] calculates with what is not known");
                    }
                }
                TestWord::Name => finding = Finding::unknown("[[ -v … ]] evaluates a name"),
            }
        }
        self.note(state, finding);
    }

    /// The fields of a word, with everything that runs in it noted.
    fn word(&mut self, text: &str, state: &mut State) -> Vec<Field> {
        match word::whole(text, self.depth) {
            Ok(pieces) => {
                let printed = self.pieces(&pieces, state);
                fields(&pieces, &printed, state)
            }
            Err(why) => {
                self.note(state, Finding::opaque(format!("not understood: {why}")));
                vec![Field::unknown(field::Count::Any, Source::Anywhere)]
            }
        }
    }

    /// Notes what runs in a word.
    fn pieces(&mut self, pieces: &[Piece], state: &mut State) -> Printed {
        let mut printed = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Quoted(_) | Piece::Bare(_) => {}
                Piece::Command { text, .. } | Piece::Process { text } => {
                    let source = self.script(text, &mut state.clone(), &Source::Anywhere);
                    printed.push((text.clone(), source));
                }
                Piece::Variable { name, words, assigns, .. } => {
                    if !state.variables.contains_key(name) && !ordinary_name(name) {
                        let finding = Finding::read_only(format!("{name} is looked up"));
                        let finding = finding.showing(format!("the variable {name} of the environment"));
                        self.found.push(Found { changed: false, ..noted(state, finding) });
                    }
                    for word in words {
                        self.pieces(word, state);
                    }
                    if *assigns {
                        if !harmless_name(name) {
                            self.note(state, Finding::unknown(format!("{name} may mean something to programs")));
                        }
                        state.variables.insert(name.clone(), Value::Unknown(Source::Anywhere));
                    }
                }
                Piece::Arithmetic { pieces } => {
                    let printed = self.pieces(pieces, state);
                    for inner in pieces {
                        let field = fields(std::slice::from_ref(inner), &printed, state);
                        let number = |field: &Field| match field {
                            Field::Known(text) => is_number(text),
                            Field::Unknown { source, .. } => *source == Source::Number,
                            _ => false,
                        };
                        if !matches!(inner, Piece::Arithmetic { .. }) && !field.iter().all(number) {
                            // The text of a variable is evaluated, and may hold a command.
                            self.note(state, Finding::unknown("it calculates with what is not known"));
                        }
                    }
                }
            }
        }
        printed
    }
}

/// The fields that pieces become.
fn fields(pieces: &[Piece], printed: &Printed, state: &State) -> Vec<Field> {
    field::fields(pieces, &mut |piece| match piece {
        Piece::Variable { name, plain: true, .. } => match name.as_str() {
            "HOME" if !state.variables.contains_key("HOME") => Value::Field(Field::Home(String::new())),
            "PWD" if !state.variables.contains_key("PWD") => Value::Field(Field::Known(".".into())),
            "?" | "#" | "$" | "!" => Value::Unknown(Source::Number),
            name => state.variables.get(name).cloned().unwrap_or(Value::Unknown(Source::Anywhere)),
        },
        Piece::Command { text, .. } if text.trim() == "pwd" => Value::Field(Field::Known(".".into())),
        Piece::Command { text, .. } => {
            let source = printed.iter().find(|(known, _)| known == text).map(|(_, source)| source.clone());
            Value::Unknown(source.unwrap_or(Source::Anywhere))
        }
        _ => Value::Unknown(Source::Anywhere),
    })
}

fn noted(state: &State, finding: Finding) -> Found {
    Found {
        words: Vec::new(),
        text: None,
        finding,
        directories: state.directories.clone(),
        changed: true,
        preset: false,
        guessed: false,
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() < 18 && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// Whether a value is surely a number.
fn counts(value: &Value) -> bool {
    match value {
        Value::Field(Field::Known(text)) => is_number(text),
        Value::Unknown(source) => *source == Source::Number,
        Value::Field(_) => false,
    }
}

/// Where both may be true.
fn merged(one: &State, other: &State) -> State {
    let mut directories = one.directories.clone();
    directories.extend(other.directories.iter().filter(|new| !one.directories.contains(new)).cloned());
    if directories.len() > MOST_DIRECTORIES {
        directories = vec![Field::unknown(field::Count::One, Source::Anywhere)];
    }
    let mut variables = HashMap::new();
    for name in one.variables.keys().chain(other.variables.keys()) {
        let value = match (one.variables.get(name), other.variables.get(name)) {
            (Some(one), Some(other)) if one == other => one.clone(),
            (Some(one), Some(other)) if counts(one) && counts(other) => Value::Unknown(Source::Number),
            _ => Value::Unknown(Source::Anywhere),
        };
        variables.insert(name.clone(), value);
    }
    State { directories, variables, changed: one.changed || other.changed, straight: one.straight && other.straight }
}
