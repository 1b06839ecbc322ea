//! Taking a shell command apart, conservatively.
//!
//! This is not a shell grammar and does not try to be one. It answers two questions, each erring to its own safe side:
//!
//! - [`surely`]: the simple commands this is made of, or `None` as soon as anything appears whose meaning is not plain:
//!   substitutions, variables, redirections (but for the harmless few), groups, comments, here-documents, escapes of
//!   newlines, control characters, quotes that do not close. For rules that allow.
//! - [`perhaps`]: everything in it that could be run as a command, with quotes and known wrappers taken off. It finds too
//!   much rather than too little. For rules that deny or ask: a fence against accidents, not a wall against an
//!   adversary, since a shell can spell any command in endless ways.

/// Redirections that neither write a file nor read one.
const HARMLESS: [&str; 8] =
    ["2>&1", "1>&2", ">&2", "2>/dev/null", "1>/dev/null", ">/dev/null", "&>/dev/null", "</dev/null"];

/// Words that may stand before a command and run it.
const WRAPPERS: [&str; 22] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "time", "{", "sudo", "env", "command", "builtin",
    "exec", "nohup", "nice", "xargs", "eval", "coproc", "doas", "setsid",
];

/// The simple commands a command consists of, if that is plain to see.
pub(super) fn surely(command: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut rest = command;
    let mut at_word_start = true;
    while let Some(next) = rest.chars().next() {
        if at_word_start && let Some(after) = harmless_redirection(rest) {
            rest = after;
            continue;
        }
        let mut taken = next.len_utf8();
        match next {
            '\n' | ';' | '|' | '&' => {
                if rest.starts_with("&&") || rest.starts_with("||") || rest.starts_with("|&") {
                    taken = 2;
                }
                parts.push(String::new());
                rest = &rest[taken..];
                at_word_start = true;
                continue;
            }
            '\'' => taken = 2 + rest[1..].find('\'')?,
            '"' => taken = double_quoted(rest)?,
            '\\' => {
                let escaped = rest[1..].chars().next()?;
                if escaped == '\n' || escaped.is_control() {
                    return None;
                }
                taken = 1 + escaped.len_utf8();
            }
            '$' | '`' | '<' | '>' | '(' | ')' | '{' | '}' => return None,
            // A comment would hide quotes from the shell that we would take for quotes.
            '#' if at_word_start => return None,
            '\t' => {}
            other if other.is_control() => return None,
            _ => {}
        }
        at_word_start = matches!(next, ' ' | '\t');
        if let Some(part) = parts.last_mut() {
            part.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|part| part.trim_matches([' ', '\t']))
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    (!parts.is_empty()).then_some(parts)
}

/// The length of a double-quoted text in which nothing is expanded.
fn double_quoted(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some(index + 1),
            '$' | '`' => return None,
            // An escaped newline vanishes, an escaped letter keeps its backslash: both are rare.
            '\\' => match characters.next()?.1 {
                '"' | '\\' | '$' | '`' => {}
                _ => return None,
            },
            other if other.is_control() && other != '\n' && other != '\t' => return None,
            _ => {}
        }
    }
    None
}

/// What follows a redirection that does no harm, if one stands here as a word of its own.
fn harmless_redirection(text: &str) -> Option<&str> {
    HARMLESS.iter().find_map(|redirection| {
        let after = text.strip_prefix(redirection)?;
        let ends = after.is_empty() || after.starts_with([' ', '\t', '\n', ';', '|']) || after.starts_with("&&");
        ends.then_some(after)
    })
}

/// Everything in a command that could be run as one, and the command itself.
pub(super) fn perhaps(command: &str) -> Vec<String> {
    let command = command.replace("\\\n", "");
    let mut found = vec![command.trim().to_owned()];
    for piece in command.split(['\n', ';', '|', '&', '(', ')', '`', '{', '}', '<', '>']) {
        // Once with quoted text as further commands (`bash -c 'rm x'`), once with the quotes simply gone (`r"m" x`).
        let quoted = piece.split(['\'', '"']).map(str::to_owned);
        let bare = piece.replace(['\'', '"', '\\'], "");
        for candidate in quoted.chain([bare]) {
            found.extend(unwrapped(&candidate.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The command as it stands, and behind each wrapper, option or assignment that it starts with.
fn unwrapped(candidate: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = candidate.trim().trim_start_matches('$').trim_start();
    let mut wrapped = false;
    while !rest.is_empty() {
        found.push(rest.to_owned());
        // `/bin/rm` is `rm`.
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        if let Some((_, name)) = word.rsplit_once('/')
            && !name.is_empty()
        {
            found.push(format!("{name} {after}").trim_end().to_owned());
        }
        let name = word.rsplit_once('/').map_or(word, |(_, name)| name);
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        });
        if WRAPPERS.contains(&name) {
            wrapped = true;
        } else if !is_assignment && !wrapped {
            break;
        }
        // Behind a wrapper any word may be the command: its options can take values.
        rest = after.trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_commands_are_taken_apart() {
        let parts = |command| surely(command).unwrap();
        assert_eq!(parts("git status"), ["git status"]);
        assert_eq!(parts(" git log -n 1 && cargo test;ls | wc -l\n"), ["git log -n 1", "cargo test", "ls", "wc -l"]);
        assert_eq!(parts("git commit -m 'a; b && c $(d)'"), ["git commit -m 'a; b && c $(d)'"]);
        assert_eq!(parts(r#"git commit -m "say \"hi\"; #1""#), [r#"git commit -m "say \"hi\"; #1""#]);
        assert_eq!(parts("cargo test 2>&1 | tail -5"), ["cargo test", "tail -5"]);
        assert_eq!(parts("ls >/dev/null 2>&1; a#b"), ["ls", "a#b"]);
        assert_eq!(parts(r"find . -name \*.rs"), [r"find . -name \*.rs"]);
    }

    #[test]
    fn what_is_not_plain_is_not_taken_apart() {
        for command in [
            "git $(rm x)",
            "git `rm x`",
            "git \"$(rm x)\"",
            "git \"`rm x`\"",
            "git $X",
            "git ${X}",
            "git > x",
            "git >> x",
            "git < x",
            "git <(rm x)",
            "git 2>&1x",
            "git 2>&10",
            "git >/dev/nullx",
            "(rm x)",
            "{ rm x; }",
            "git 'x",
            "git \"x",
            "git \\",
            "git \\\nrm",
            "git # it's\nrm -rf x #'",
            "git\r\nrm",
            "git\0rm",
            "git $'\\n'rm",
            "",
            "  ",
            ";",
            "git \"\\\nx\"",
            "git {a,b}",
            "f() { rm x; }",
            "cat <<E\nrm\nE",
            "git 2>&1&rm",
            "git 2>/dev/null>x",
        ] {
            assert_eq!(surely(command), None, "{command:?}");
        }
    }

    #[test]
    fn whatever_could_run_is_found() {
        for command in [
            "rm -rf x",
            "ls; rm -rf x",
            "ls\nrm -rf x",
            "echo $(rm -rf x)",
            "echo `rm -rf x`",
            "(rm -rf x)",
            "{ rm -rf x; }",
            "if true; then rm -rf x; fi",
            "X=1 rm -rf x",
            "sudo -u root rm -rf x",
            "/bin/rm -rf x",
            "bash -c 'rm -rf x'",
            "r\"m\" -rf x",
            "r\\m -rf x",
            "ls|xargs -n 1 rm -rf x",
            "env -i A=b rm -rf x",
            "cat <(rm -rf x)",
            "rm  -rf\tx",
            "rm \\\n-rf x",
            "! rm -rf x",
        ] {
            assert!(
                perhaps(command).iter().any(|found| found.starts_with("rm -rf x")),
                "{command:?}: {:?}",
                perhaps(command)
            );
        }
    }

    fn shellish() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[a-z ]{0,4}",
            Just("'".to_owned()),
            Just("\"".to_owned()),
            Just("\\".to_owned()),
            Just("$(".to_owned()),
            Just(")".to_owned()),
            Just(";".to_owned()),
            Just("&".to_owned()),
            Just("|".to_owned()),
            Just("\n".to_owned()),
            Just(" #".to_owned()),
            Just(" 2>&1".to_owned()),
            Just(">".to_owned()),
            Just("`".to_owned()),
            any::<String>(),
        ];
        proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

        /// TOOL-2: taking a command apart never panics and never lets anything through that it does not understand.
        #[test]
        fn no_part_of_a_plain_command_holds_anything_unquoted_that_a_shell_acts_on(command in shellish()) {
            let _ = perhaps(&command);
            for part in surely(&command).into_iter().flatten() {
                // An independent reading: take quoted and escaped text out, then look.
                let mut bare = String::new();
                let mut characters = part.chars();
                while let Some(character) = characters.next() {
                    match character {
                        '\\' => drop(characters.next()),
                        '\'' => while characters.next().is_some_and(|next| next != '\'') {},
                        '"' => while let Some(next) = characters.next() {
                            match next {
                                '"' => break,
                                '\\' => drop(characters.next()),
                                _ => prop_assert!(!"$`".contains(next)),
                            }
                        },
                        other => bare.push(other),
                    }
                }
                prop_assert!(!bare.contains(['$', '`', ';', '|', '&', '<', '>', '(', ')', '{', '}', '\n', '\r', '\0']), "{part:?}");
            }
        }
    }
}
