//! A command as a small tree: lists of pipelines of commands, with the text of every word as it was written.
//!
//! The grammar is brush-parser's; the tokens are ours ([`lexer`]). What the tree has no room for
//! (functions, coprocesses, `select`, arithmetic commands, arrays) is one node that says so.

use brush_parser::{ParserOptions, SourcePosition, SourceSpan, Token as Brush, ast};

use crate::lexer::word::ParseRefusal;
use crate::lexer::{self, Kind};

/// Commands one after another.
pub(crate) type CommandList = Vec<AndOrList>;

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone)]
pub(crate) struct AndOrList {
    pub(crate) pipelines: Vec<Pipeline>,
    pub(crate) background: bool,
}

pub(crate) type Pipeline = Vec<CommandNode>;

#[derive(Debug, Clone)]
pub(crate) enum CommandNode {
    Simple(Simple),
    Compound(Compound, Vec<Redirect>),
    /// Not parsed further, with the reason.
    Other(ParseRefusal),
}

#[derive(Debug, Clone)]
pub(crate) enum Compound {
    /// Commands in sequence, as far as they run: also the conditions and bodies of `if`, `while` and `until`.
    Group {
        shell: Shell,
        list: CommandList,
    },
    For {
        variable: String,
        values: Vec<String>,
        body: CommandList,
    },
    Case {
        value: String,
        arms: Vec<(Vec<String>, CommandList)>,
    },
    Test(Vec<TestWord>),
}

/// Shell of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shell {
    Same,
    Own,
}

/// A word in `[[ … ]]` that is expanded.
#[derive(Debug, Clone)]
pub(crate) enum TestWord {
    /// Used only as text, or as a number.
    Text(String),
    /// The name of a file that is tested.
    File(String),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Simple {
    /// Names and values.
    pub(crate) assignments: Vec<(String, String)>,
    pub(crate) words: Vec<String>,
    pub(crate) redirects: Vec<Redirect>,
    /// The reason, if it has a part that is not parsed.
    pub(crate) odd: Option<ParseRefusal>,
}

#[derive(Debug, Clone)]
pub(crate) enum Redirect {
    Read(String),
    Write(String),
    /// A duplicate of an open descriptor, or closing it.
    Same,
    /// Text, expanded or as it stands.
    Document {
        text: String,
        expands: bool,
    },
    HereString(String),
}

/// Parses a command.
pub(crate) fn parse(text: &str, depth: usize) -> Result<CommandList, ParseRefusal> {
    let tokens = lexer::tokens(text, depth)?;
    let tokens: Vec<Brush> = tokens
        .into_iter()
        .map(|token| {
            let position = |index| SourcePosition { index, line: 1, column: 1 };
            let span = SourceSpan { start: position(token.start).into(), end: position(token.end).into() };
            match token.kind {
                Kind::Word(text) | Kind::Body(text) => Brush::Word(text, span),
                Kind::Operator(text) => Brush::Operator(text, span),
            }
        })
        .collect();
    let program = brush_parser::parse_tokens(&tokens, &ParserOptions::default()).map_err(|_| "not valid bash")?;
    Ok(program.complete_commands.iter().flat_map(list).collect())
}

fn list(list: &ast::CompoundList) -> CommandList {
    let item = |ast::CompoundListItem(joined, separator): &ast::CompoundListItem| {
        let others = joined.additional.iter().map(|(ast::AndOr::And(next) | ast::AndOr::Or(next))| next);
        AndOrList {
            pipelines: std::iter::once(&joined.first).chain(others).map(pipeline).collect(),
            background: matches!(separator, ast::SeparatorOperator::Async),
        }
    };
    list.0.iter().map(item).collect()
}

fn pipeline(pipeline: &ast::Pipeline) -> Pipeline {
    pipeline.seq.iter().map(command).collect()
}

fn command(command: &ast::Command) -> CommandNode {
    match command {
        ast::Command::Simple(command) => CommandNode::Simple(simple(command)),
        ast::Command::Compound(inner, outer) => match compound(inner) {
            Ok(compound) => CommandNode::Compound(compound, redirects(outer.as_ref())),
            Err(why) => CommandNode::Other(why),
        },
        ast::Command::Function(_) => CommandNode::Other("a function is defined"),
        ast::Command::ExtendedTest(test, outer) => {
            let mut words = Vec::new();
            test_words(&test.expr, &mut words);
            CommandNode::Compound(Compound::Test(words), redirects(outer.as_ref()))
        }
    }
}

fn compound(inner: &ast::CompoundCommand) -> Result<Compound, ParseRefusal> {
    use ast::CompoundCommand as Inner;
    let here = |lists: Vec<CommandList>| Compound::Group { shell: Shell::Same, list: lists.concat() };
    let texts = |words: &[ast::Word]| words.iter().map(|word| word.value.clone()).collect();
    Ok(match inner {
        Inner::BraceGroup(group) => here(vec![list(&group.list)]),
        Inner::Subshell(group) => Compound::Group { shell: Shell::Own, list: list(&group.list) },
        Inner::ForClause(clause) => Compound::For {
            variable: clause.variable_name.clone(),
            values: clause.values.as_deref().map(texts).unwrap_or_default(),
            body: list(&clause.body.list),
        },
        Inner::WhileClause(clause) | Inner::UntilClause(clause) => here(vec![list(&clause.0), list(&clause.1.list)]),
        Inner::IfClause(clause) => {
            let first = [list(&clause.condition), list(&clause.then)].into_iter();
            let others = clause.elses.iter().flatten();
            let others = others.flat_map(|other| other.condition.iter().chain([&other.body]).map(list));
            here(first.chain(others).collect())
        }
        Inner::CaseClause(clause) => {
            let arms = clause.cases.iter();
            let arms = arms.map(|case| (texts(&case.patterns), case.cmd.as_ref().map(list).unwrap_or_default()));
            Compound::Case { value: clause.value.value.clone(), arms: arms.collect() }
        }
        Inner::Coprocess(_) => return Err("a coprocess is started"),
        Inner::Arithmetic(_) | Inner::ArithmeticForClause(_) => return Err("arithmetic as a command"),
    })
}

fn simple(command: &ast::SimpleCommand) -> Simple {
    let mut simple = Simple::default();
    for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
        match item {
            ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                match (&assignment.name, &assignment.value) {
                    (ast::AssignmentName::VariableName(name), ast::AssignmentValue::Scalar(value))
                        if !assignment.append =>
                    {
                        simple.assignments.push((name.clone(), value.value.clone()));
                    }
                    _ => simple.odd = Some("an array assignment, or a variable added to"),
                }
            }
            ast::CommandPrefixOrSuffixItem::IoRedirect(found) => simple.redirects.push(redirect(found)),
            _ => simple.odd = Some("something unexpected before a command"),
        }
    }
    simple.words.extend(command.word_or_name.as_ref().map(|name| name.value.clone()));
    for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
        match item {
            ast::CommandPrefixOrSuffixItem::Word(word) | ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                simple.words.push(word.value.clone());
            }
            ast::CommandPrefixOrSuffixItem::IoRedirect(found) => simple.redirects.push(redirect(found)),
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(..) => {
                simple.odd = Some("a substitution that is not a word");
            }
        }
    }
    simple
}

fn redirects(found: Option<&ast::RedirectList>) -> Vec<Redirect> {
    found.iter().flat_map(|list| &list.0).map(redirect).collect()
}

fn redirect(found: &ast::IoRedirect) -> Redirect {
    use ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target};
    match found {
        ast::IoRedirect::File(_, kind, target) => match (kind, target) {
            (_, Target::Fd(_)) => Redirect::Same,
            (Kind::Read, Target::Filename(word)) => Redirect::Read(word.value.clone()),
            (Kind::DuplicateInput | Kind::DuplicateOutput, Target::Duplicate(word)) if is_number(&word.value) => {
                Redirect::Same
            }
            // `<&$x` and `>&file`: written to, for all we know.
            (_, Target::Filename(word) | Target::Duplicate(word)) => Redirect::Write(word.value.clone()),
            (_, Target::ProcessSubstitution(..)) => Redirect::Write("a process".to_owned()),
        },
        ast::IoRedirect::HereDocument(_, document) => {
            Redirect::Document { text: document.doc.value.clone(), expands: document.requires_expansion }
        }
        ast::IoRedirect::HereString(_, word) => Redirect::HereString(word.value.clone()),
        ast::IoRedirect::OutputAndError(word, _) => Redirect::Write(word.value.clone()),
    }
}

/// `1` and `-`, as behind `>&`.
fn is_number(text: &str) -> bool {
    text == "-" || (!text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit()))
}

fn test_words(expression: &ast::ExtendedTestExpr, found: &mut Vec<TestWord>) {
    use ast::{BinaryPredicate as Binary, ExtendedTestExpr as Test, UnaryPredicate as Unary};
    match expression {
        Test::And(left, right) | Test::Or(left, right) => {
            test_words(left, found);
            test_words(right, found);
        }
        Test::Not(inner) | Test::Parenthesized(inner) => test_words(inner, found),
        Test::UnaryTest(predicate, word) => found.push(match predicate {
            // The name of a variable, which is not expanded.
            Unary::ShellVariableIsSetAndAssigned | Unary::ShellVariableIsSetAndNameRef => return,
            Unary::StringHasZeroLength
            | Unary::StringHasNonZeroLength
            | Unary::ShellOptionEnabled
            | Unary::FdIsOpenTerminal => TestWord::Text(word.value.clone()),
            _ => TestWord::File(word.value.clone()),
        }),
        Test::BinaryTest(predicate, left, right) => {
            let kind = match predicate {
                Binary::FilesReferToSameDeviceAndInodeNumbers
                | Binary::LeftFileIsNewerOrExistsWhenRightDoesNot
                | Binary::LeftFileIsOlderOrDoesNotExistWhenRightDoes => TestWord::File,
                _ => TestWord::Text,
            };
            found.extend([left, right].map(|word| kind(word.value.clone())));
        }
    }
}
