//! Walking through a command to find its simple commands, wherever they are: behind wrappers, in loops, in
//! substitutions, in scripts that are written out.
//!
//! Nothing is run and nothing on disk is read. All branches of a condition are taken. Changes that a subshell makes to
//! itself are dropped at its end.

use std::collections::HashMap;

use crate::field::{self, Field};
use crate::finding::{CommandEffect, CommandFinding, FilesRead};
use crate::lexer::DEEPEST;
use crate::lexer::word::{self, Piece};
use crate::tree::{self, AndOrList, CommandList, CommandNode, Compound, Pipeline, Redirect, Shell, Simple, TestWord};
use crate::variables::{harmless_name, harmless_variable, ordinary_name, plain_variable};
use crate::wrap::{WrappedCommand, unwrap};
use crate::{plain, readers};

/// Limit on pipelines; a command with more is unknown. A command of the longest length has fewer.
const MOST_STEPS: usize = 10_000;

/// Limit on the directories a command may be in.
const MOST_DIRECTORIES: usize = 4;

/// Directories whose programs are what their names say.
const PLACES: [&str; 6] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/"];

/// Words that change the shell itself, so that the following commands mean something else.
const CHANGES_SHELL: &str = "alias unalias source . exec trap export declare typeset readonly local shopt enable hash unset let \
    mapfile readarray eval getopts bind complete pushd popd function shift";

/// A simple command, found at any depth.
#[derive(Debug, Clone)]
pub struct SimpleCommand {
    /// Its words, the name first. For a redirection, the name is its operator.
    pub words: Vec<Field>,
    /// The words as written, if they were: for rules that allow.
    pub text: Option<String>,
    /// Findings about it.
    pub finding: CommandFinding,
    /// The directories it may run in, relative to the start; none if unknown.
    pub directories: Option<Vec<Field>>,
    /// True if something before it gives its words another meaning.
    pub changed: bool,
    /// True if variables are set for it alone that may influence the program.
    pub preset: bool,
    /// True if it is only a guess that it runs.
    pub guessed: bool,
}

impl SimpleCommand {
    /// The name of the program, without its directory.
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(Field::text).and_then(bare_name)
    }
}

/// Knowledge at one point of the walk.
#[derive(Debug, Clone)]
struct State {
    directories: Option<Vec<Field>>,
    /// Variables that were set here; `None` if the text is not known.
    variables: HashMap<String, Option<String>>,
    changed: bool,
}

/// Result of a walk.
#[derive(Debug, Default)]
pub(crate) struct CommandWalk {
    pub(crate) found: Vec<SimpleCommand>,
    depth: usize,
    steps: usize,
}

impl CommandWalk {
    /// Walks through a whole command.
    pub(crate) fn all(&mut self, text: &str) {
        let directories = Some(vec![Field::Plain(String::new())]);
        self.script(text, &mut State { directories, variables: HashMap::new(), changed: false });
    }

    /// Walks through a text that is a command by itself.
    fn script(&mut self, text: &str, state: &mut State) {
        if self.depth >= DEEPEST {
            return self.note(state, CommandFinding::opaque("too deeply nested"));
        }
        match tree::parse(text, self.depth) {
            Ok(list) => {
                self.depth += 1;
                self.list(&list, state);
                self.depth -= 1;
            }
            Err(why) => self.note(state, CommandFinding::opaque(format!("not understood: {why}"))),
        }
    }

    /// Records something that is not a simple command.
    fn note(&mut self, state: &State, finding: CommandFinding) {
        self.push(Vec::new(), state, finding);
    }

    fn push(&mut self, words: Vec<Field>, state: &State, finding: CommandFinding) {
        let (directories, changed) = (state.directories.clone(), state.changed);
        let (text, preset, guessed) = (None, false, false);
        self.found.push(SimpleCommand { words, text, finding, directories, changed, preset, guessed });
    }

    fn list(&mut self, list: &CommandList, state: &mut State) {
        for AndOrList { pipelines, background } in list {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return self.note(state, CommandFinding::opaque("too many steps to follow"));
            }
            let mut own = state.clone();
            let here = if *background { &mut own } else { &mut *state };
            for pipeline in pipelines {
                self.pipeline(pipeline, here);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: &mut State) {
        if let [command] = pipeline.as_slice() {
            return self.command(command, state);
        }
        for command in pipeline {
            self.command(command, &mut state.clone());
        }
    }

    fn command(&mut self, command: &CommandNode, state: &mut State) {
        match command {
            CommandNode::Simple(simple) => self.simple(simple, state),
            CommandNode::Compound(compound, redirects) => {
                self.redirects(redirects, state);
                self.compound(compound, state);
            }
            CommandNode::Other(why) => {
                self.note(state, CommandFinding::unknown(*why));
                state.changed = true;
            }
        }
    }

    fn compound(&mut self, compound: &Compound, state: &mut State) {
        match compound {
            Compound::Group { shell: Shell::Same, list } => self.list(list, state),
            Compound::Group { shell: Shell::Own, list } => self.list(list, &mut state.clone()),
            Compound::For { variable, values, body } => {
                for value in values {
                    self.word(value, state);
                }
                state.changed |= !harmless_name(variable);
                state.variables.insert(variable.clone(), None);
                self.list(body, state);
            }
            Compound::Case { value, arms } => {
                self.word(value, state);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.word(pattern, state);
                    }
                    self.list(body, state);
                }
            }
            Compound::Test(words) => {
                let mut fields = vec![Field::Known("[[".into())];
                for test in words {
                    let (TestWord::Text(text) | TestWord::File(text)) = test;
                    let made = self.word(text, state);
                    fields.extend(made.into_iter().filter(|_| matches!(test, TestWord::File(_))));
                }
                self.push(fields, state, CommandFinding::confined("a test only reads"));
            }
        }
    }

    /// The fields of a word. Commands in it are recorded.
    fn word(&mut self, text: &str, state: &mut State) -> Vec<Field> {
        match word::whole(text, self.depth) {
            Ok(pieces) => {
                self.pieces(&pieces, state);
                field::fields(&pieces, &|name| state.variables.get(name).cloned().flatten())
            }
            Err(why) => {
                self.note(state, CommandFinding::opaque(format!("not understood: {why}")));
                vec![Field::unknown()]
            }
        }
    }

    /// Records the commands in a word.
    fn pieces(&mut self, pieces: &[Piece], state: &mut State) {
        for piece in pieces {
            match piece {
                Piece::Quoted(_) | Piece::Bare(_) => {}
                Piece::Command { text, .. } | Piece::Process { text } => self.script(text, &mut state.clone()),
                Piece::Arithmetic { pieces } => self.pieces(pieces, state),
                Piece::Variable { name, words, assigns, .. } => {
                    if !state.variables.contains_key(name) && !ordinary_name(name) {
                        let finding = CommandFinding::confined(format!("{name} is looked up"));
                        self.note(state, finding.showing(format!("the variable {name} of the environment")));
                    }
                    for word in words {
                        self.pieces(word, state);
                    }
                    if *assigns {
                        state.changed |= !harmless_name(name);
                        state.variables.insert(name.clone(), None);
                    }
                }
            }
        }
    }

    /// Records the effects of redirections.
    fn redirects(&mut self, redirects: &[Redirect], state: &mut State) {
        for redirect in redirects {
            match redirect {
                Redirect::Same => {}
                Redirect::Document { text, expands } => {
                    if *expands && let Ok(pieces) = word::document(text, self.depth) {
                        self.pieces(&pieces, state);
                    }
                }
                Redirect::HereString(text) => drop(self.word(text, state)),
                Redirect::Read(path) => {
                    let path = self.word(path, state);
                    // bash opens connections for such names.
                    let connects =
                        |field: &Field| ["/dev/tcp", "/dev/udp"].iter().any(|name| field.beginning().starts_with(name));
                    let finding = match path.as_slice() {
                        [field] if connects(field) => CommandFinding::unknown("input from the network"),
                        [Field::Plain(_)] => CommandFinding {
                            verdict: CommandEffect::ReadOnly,
                            reads: FilesRead::Files,
                            ..CommandFinding::confined("input from a file")
                        },
                        _ => CommandFinding::confined("input from a file"),
                    };
                    self.push(std::iter::once(Field::Plain("<".into())).chain(path).collect(), state, finding);
                }
                Redirect::Write(path) => {
                    let path = self.word(path, state);
                    let nowhere = [
                        "/dev/null",
                        "/dev/stdout",
                        "/dev/stderr",
                        "/dev/fd/1",
                        "/dev/fd/2",
                        "/dev/tty",
                        field::PROCESS,
                    ];
                    let text = path.first().and_then(Field::text);
                    if path.len() == 1 && text.is_some_and(|text| nowhere.contains(&text)) {
                        continue;
                    }
                    let finding = CommandFinding::writes(match text {
                        Some(path) => format!("output goes to the file {path}"),
                        None => "output goes to a file".to_owned(),
                    });
                    self.push(std::iter::once(Field::Plain(">".into())).chain(path).collect(), state, finding);
                }
            }
        }
    }

    fn simple(&mut self, command: &Simple, state: &mut State) {
        if let Some(why) = command.odd {
            self.note(state, CommandFinding::unknown(why));
            state.changed = true;
        }
        let words: Vec<Field> = command.words.iter().flat_map(|text| self.word(text, state)).collect();
        let mut variables = Vec::new();
        for (name, value) in &command.assignments {
            let mut fields = self.word(value, state);
            let value = if fields.len() == 1 { fields.remove(0) } else { Field::unknown() };
            variables.push((name.clone(), value));
        }
        self.redirects(&command.redirects, state);
        if words.is_empty() {
            return self.assign(variables, state);
        }
        self.run(&words, Some(command.words.join(" ")), &variables, state);
    }

    /// Assignments without a command.
    fn assign(&mut self, variables: Vec<(String, Field)>, state: &mut State) {
        for (name, value) in variables {
            self.note(state, CommandFinding::confined(format!("{name} is set")));
            state.changed |= !harmless_name(&name);
            let text = value.text().map(str::to_owned);
            let known = state.variables.get(&name).is_none_or(|before| *before == text);
            state.variables.insert(name, text.filter(|_| known));
        }
    }

    /// Records a command with its words, and the commands it runs in turn.
    fn run(&mut self, words: &[Field], text: Option<String>, variables: &[(String, Field)], state: &mut State) {
        if self.depth >= DEEPEST {
            return self.note(state, CommandFinding::opaque("too deeply nested"));
        }
        let name = words[0].text().and_then(bare_name).map(str::to_owned);
        let arguments = &words[1..];
        let wrapped = name.as_deref().map_or(WrappedCommand::No, |name| unwrap(name, arguments));
        let mut finding = match (&name, &wrapped) {
            (None, _) => match words[0].text() {
                Some(name) => CommandFinding::unknown(format!("{name} is a separate program")),
                None => CommandFinding::opaque("the command it runs is not known"),
            },
            (Some(name), WrappedCommand::No) => readers::judge(name, arguments),
            (Some(name), WrappedCommand::Runs { .. }) => CommandFinding::confined(format!("{name} runs what follows")),
            (Some(name), WrappedCommand::Script(_)) => {
                CommandFinding::confined(format!("{name} runs a command that is judged too"))
            }
            (Some(name), WrappedCommand::Perhaps { why, .. }) => CommandFinding::unknown(format!("{name}: {why}")),
            (Some(name), WrappedCommand::Something(why)) => CommandFinding::opaque(format!("{name}: {why}")),
        };
        let for_read = |variable: &str| variable == "IFS" && name.as_deref() == Some("read");
        let harmless = |(name, value): &(String, Field)| harmless_variable(name, value) || for_read(name);
        let changed = state.changed || !variables.iter().all(harmless);
        let preset = !variables.iter().all(|(name, value)| plain_variable(name, value));
        if finding.verdict == CommandEffect::Confined
            && !changed
            && !preset
            && let Some(reads) = plain::reads(name.as_deref().unwrap_or_default(), arguments, &wrapped)
        {
            finding = CommandFinding { verdict: CommandEffect::ReadOnly, reads, ..finding };
        }
        let directories = state.directories.clone();
        self.found.push(SimpleCommand {
            words: words.to_vec(),
            text,
            finding,
            directories,
            changed,
            preset,
            guessed: false,
        });
        self.depth += 1;
        match wrapped {
            WrappedCommand::No | WrappedCommand::Something(_) => {}
            WrappedCommand::Runs { command, variables, .. } => self.run(&command, None, &variables, state),
            WrappedCommand::Script(script) if name.as_deref() == Some("eval") => self.script(&script, state),
            WrappedCommand::Script(script) => {
                // Variables that are not exported do not reach another shell, and what it does stays there.
                self.script(&script, &mut State { variables: HashMap::new(), ..state.clone() });
            }
            WrappedCommand::Perhaps { commands, .. } => {
                for words in commands {
                    self.push(words, state, CommandFinding::unknown("may be run"));
                    self.found.last_mut().into_iter().for_each(|found| found.guessed = true);
                }
            }
        }
        if name.as_deref() == Some("find") {
            for command in readers::find_runs(arguments) {
                self.run(&command, None, &[], &mut state.clone());
            }
        }
        self.depth -= 1;
        self.change(name.as_deref().unwrap_or_default(), arguments, state);
    }

    /// Applies the effect of a builtin on the shell.
    fn change(&mut self, name: &str, arguments: &[Field], state: &mut State) {
        match name {
            "cd" => cd(arguments, state),
            "read" => {
                for field in arguments.iter().filter(|field| !field.is_option()) {
                    state.changed |= !field.text().is_some_and(harmless_name);
                    state.variables.insert(field.beginning().to_owned(), None);
                }
            }
            "printf" => {
                state.changed |= !arguments.first().and_then(Field::text).is_some_and(plain::is_plain_format);
            }
            "set" => state.changed |= !plain::is_plain_set(arguments),
            "export" => {
                for field in arguments {
                    let plain = field
                        .text()
                        .and_then(|text| text.split_once('='))
                        .is_some_and(|(name, value)| plain_variable(name, &Field::Plain(value.to_owned())));
                    state.changed |= !plain;
                }
            }
            name => state.changed |= CHANGES_SHELL.split_whitespace().any(|known| known == name),
        }
    }
}

/// The name of a program without its directory; none if that is not one of [`PLACES`].
pub(crate) fn bare_name(name: &str) -> Option<&str> {
    if !name.contains('/') {
        return Some(name);
    }
    PLACES.iter().find_map(|place| name.strip_prefix(place)).filter(|rest| !rest.contains('/'))
}

/// Changes the directory. `cd` may fail, and then the old directory stays possible.
fn cd(arguments: &[Field], state: &mut State) {
    let operands: Vec<&Field> = arguments.iter().filter(|field| !field.is_option()).collect();
    let target = match operands.as_slice() {
        [] => Some(Field::Home(String::new())),
        [field @ (Field::Plain(text) | Field::Known(text))] if text != "-" => Some((*field).clone()),
        [field @ Field::Home(_)] => Some((*field).clone()),
        _ => None,
    };
    let Some((target, mut directories)) = target.zip(state.directories.take()) else {
        state.directories = None;
        return;
    };
    let moved: Vec<Field> = directories.iter().map(|directory| joined(directory, &target)).collect();
    directories.extend(moved);
    directories.dedup();
    state.directories = (directories.len() <= MOST_DIRECTORIES).then_some(directories);
}

/// A directory relative to another.
fn joined(directory: &Field, target: &Field) -> Field {
    let behind = |path: &str, text: &str| if path.is_empty() { text.to_owned() } else { format!("{path}/{text}") };
    match (directory, target) {
        (Field::Home(path), Field::Plain(text) | Field::Known(text)) if !text.starts_with('/') => {
            Field::Home(format!("{path}/{text}"))
        }
        (Field::Plain(path), Field::Plain(text) | Field::Known(text)) if !text.starts_with('/') => {
            Field::Plain(behind(path, text))
        }
        (_, Field::Known(text)) => Field::Plain(text.clone()),
        _ => target.clone(),
    }
}
