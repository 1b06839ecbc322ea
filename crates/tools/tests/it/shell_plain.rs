//! The judge that has to hold by itself: what it says only looks runs for real, unconfined, and leaves everything as it was.
//!
//! Commands are made of programs, options in every spelling and words that mean something to a shell or a program. The same
//! ones every time: a hole that others would find is found by making more, not by chance.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;
use shell::{CommandEffect, judge};
use tools::permission::{Mode, ReadOnlyView, Rights};
use tools::{Environment, Scope, ToolCall, run_all, standard};

use super::looked::outside;
use super::shell_asking::{CONFIG, Ground};
use crate::skipped::is_full;

/// How many commands are made beside the regular ones. Most are not judged to only look, and cost nothing.
const MADE: usize = 5_000;

/// How many run before the files are looked at.
const BATCH: usize = 50;

/// Programs of the list, and some that are like them.
#[rustfmt::skip]
const PROGRAMS: &[&str] = &[
    "cat", "tac", "rev", "head", "tail", "wc", "nl", "cut", "sort", "uniq", "comm", "paste", "fold", "tr", "diff", "cmp", "md5sum", "sha256sum", "b2sum", "cksum",
    "od", "hexdump", "ls", "dir", "stat", "file", "du", "df", "tree", "readlink", "realpath", "grep", "egrep", "fgrep", "rg", "which", "whoami", "nproc", "arch",
    "groups", "users", "uptime", "true", "false", ":", "pwd", "id", "uname", "hostname", "date", "echo", "basename", "dirname", "seq", "free", "type", "cd", "exit",
    "return", "printf", "command", "command -v", "sed", "sed -n", "find", "find .", "test", "[", "ps", "set", "git",
    "git status", "git log", "git show", "git diff", "git whatchanged", "git blame", "git grep", "git rev-parse", "git ls-files", "git ls-tree", "git cat-file", "git describe",
    "git shortlog", "git rev-list", "git merge-base", "git branch", "git tag", "git remote", "git count-objects", "git version", "git stash", "git stash list",
    "git worktree list", "git config", "git config --get", "git branch --list", "git tag -l", "git tag --list", "git --no-pager log", "git -C sub status", "git -C . diff",
    "git reflog", "git notes", "git fetch", "git gc", "git archive", "git bisect log", "git symbolic-ref", "git update-index",
    "shuf", "join", "expand", "xxd", "base64", "strings", "iconv", "column", "env", "xargs", "awk", "jq", "getconf", "tee", "split", "touch", "less", "eval", "source", "let", "read", "export",
    "/bin/cat", "/usr/bin/sort", "./pwn", "pwn", "0/ls",
];

/// Words of every kind: names of files, also such as look like options, and what a shell acts on.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "a.txt", "b.txt", "a.txt", "sub", ".", "sub/c", "HEAD", "HEAD~1", "HEAD:a.txt", "v1", "main", "1", "2", "5", "x", "one", "0", "''", "\"\"", "'b c.txt'", "b\\ c.txt",
    "-", "--", "-o", "out", "./out", "\"-o\"", "'-o'", "\\-o", "$'-o'", "$'\\x2do'", "$'\\055o'", "-\"o\"", "''-o", "./-o", "--output=out", "'--output=out'", "-delete", "'-i'",
    "-oout", "--output", "--out", "--o=out", "-fprint", "-exec", "./pwn", "pwn", "\\;", "';'", "+", "{}", "'{}'", "-O./pwn", "--open-files-in-pager=./pwn", "--pre=./pwn",
    "--ext-diff", "--textconv", "--files0-from=a.txt", "--compress-program=./pwn", "--in-place", "-i", "-s", "--set=1", "-C", "-m", "--filters", "--contents=a.txt",
    "{a,b}.txt", "{-o,out}", "-{o,i}", "{,-o}", "{a..c}", "{a", "a}", "a{b}c", "{a\\,b}", "'{a,b}'", "{\"a\",out}", "$!", "out$!", "--output=out$!", "-o$!", "$((1))", "$x", "\"$x\"",
    "$(echo x)", "`echo x`", "<(echo x)", "~", "~/x", "*", "-*", "?.txt", "[ab].txt", "[[:alpha:]].txt", "'*'", "%n", "%s", "%d\\n", "PATH", "%5n", "%*n", "'%s\\n'", "%b", "%(%s)T",
    "+%s", "+%Y", "+x", "01010101", "1,2p", "'$p'", "p", "1e", "'w out'", "1p", "'s/a/b/w out'", "-e", "-name", "'*.txt'", "-type", "f", "-newer", "-maxdepth", "-o", "-print", "-empty",
    "!", "'!'", "\\!", "\\(", "'('", "\\)", "-eq", "=", "-f", "-n", "-v", "'a[$(pwn)]'", "]", "-1", "-5", "--5", "-n-1", "-n1", "-c1", "-U3", "-U", "-S", "-G", "-L1,2", "-L:x:a.txt", "--format=%H",
    "--format=%G?", "--format=%(trailers)", "--pretty=oneline", "--oneline", "--stat", "--cached", "--all", "--no-color", "--color=always", "-p", "--name-only", "--since=1", "aux", "-ef",
    "core.editor", "alias.x", "user.name", "-euo", "pipefail", "+o", "posix", "-x", "x=-o", "A=~", "é", "\u{a0}", "$'a\\0b'", "$'\\'-o'", "\"a'b\"", "'a\"b'", "a#b", "#", "-d,", "-f1", "-t:", "-k1,1", "-rn", "-la",
];

/// Names of long options: those of the list, and such as write, run or reach elsewhere.
#[rustfmt::skip]
const LONG: &[&str] = &[
    "number", "lines", "bytes", "quiet", "words", "fields", "delimiter", "output-delimiter", "key", "reverse", "unique", "count", "serial", "width", "delete", "unified", "brief", "color",
    "all", "recursive", "size", "directory", "time-style", "format", "printf", "mime-type", "max-depth", "exclude", "prune", "relative-to", "ignore-case", "files-with-matches", "include",
    "regexp", "type", "glob", "hidden", "no-ignore", "sort", "json", "utc", "iso-8601", "short", "porcelain", "ignored", "oneline", "graph", "decorate", "since", "author", "grep", "follow",
    "pretty", "date", "max-count", "skip", "stat", "patch", "word-diff", "diff-filter", "find-renames", "check", "exit-code", "function-context", "line-porcelain", "heading", "abbrev-ref",
    "show-toplevel", "git-dir", "exclude-standard", "stage", "name-only", "tags", "always", "abbrev", "fork-point", "show-current", "verbose", "list", "get",
    "output", "output-file", "open-files-in-pager", "ext-diff", "textconv", "no-index", "filters", "batch", "contents", "submodule", "exec", "upload-pack", "files0-from", "compress-program",
    "temporary-directory", "in-place", "expression", "file", "pre", "pre-glob", "hostname-bin", "search-zip", "set", "reference", "compile", "magic-file", "fromfile", "label", "paginate",
    "edit-description", "delete", "set-upstream-to", "force", "add", "unset", "replace-all", "line-prefix", "orderfile", "help", "version", "debug", "follow-symlinks", "dirty", "broken", "refresh", "stdin", "show-signature",
];

const PREFIXES: &[&str] = &[
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "LC_ALL=C ",
    "GIT_OPTIONAL_LOCKS=0 ",
    "GIT_OPTIONAL_LOCKS=1 ",
    "env GIT_OPTIONAL_LOCKS=true ",
    "CDPATH=0 ",
    "x=1 ",
    "TZ=UTC ",
    "PAGER=cat ",
    "GIT_PAGER=cat ",
    "PAGER=./pwn ",
    "GIT_PAGER=./pwn ",
    "GIT_EXTERNAL_DIFF=./pwn ",
    "PATH=. ",
    "PATH=0:$PATH ",
    "timeout 1 ",
    "timeout -s 9 1 ",
    "nice ",
    "nice -n 5 ",
    "nice -n -5 ",
    "time ",
    "time -p ",
    "env ",
    "env LC_ALL=C ",
    "env PATH=0 ",
    "env -i ",
    "env -S",
    "command ",
    "command -p ",
    "builtin ",
    "nohup ",
    "stdbuf ",
    "stdbuf -oL ",
    "! ",
    "exec ",
    "\\",
    "timeout 5 nice ",
    "ionice ",
    "eval ",
    "cd sub && ",
    "cd 0; ",
    "true; ",
    "true && ",
    "(",
    "{ ",
    "printf %n PATH; ",
    "set -e; ",
    "set -x; ",
    "LC_ALL=$(pwn) ",
    "if true; then ",
    "bash -c '",
    "sh -c '",
    "bash -c \"",
];

const ENDS: &[&str] = &[
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    " | cat",
    " | head -3",
    " && ls",
    "; pwd",
    " || true",
    " > /dev/null",
    " 2>&1",
    " < a.txt",
    " <> out",
    " > out",
    " >| out",
    " >> a.txt",
    " &> /dev/null",
    " &> out",
    " | tee out",
    " | sort -o out",
    " | sort | uniq -c | sort -rn",
    " &",
    " 2>/dev/null",
    " 2> out",
    " <<< x",
    " | xargs ls",
    " | xargs",
    " >&2",
    " > /dev/stderr",
    " >&out",
    " | while read f; do cat \"$f\"; done",
    "; pwn",
    " #pwn",
    " | uniq - out",
    " | uniq",
    " | wc -l",
    " < /dev/tcp/127.0.0.1/$TCP",
    " | grep -c x",
    " <<E\nx\nE",
    " | bash",
    " | sh",
    " 3>out",
    " 1<>out",
    " < <(pwn)",
    "\npwd",
    "\n./pwn",
    " | cut -d, -f1",
    " &&\nls",
];

/// A row of numbers that is the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn letter(&mut self) -> char {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        char::from(LETTERS[self.below(LETTERS.len())])
    }

    /// An option: a letter or several, with or without a value, attached, behind it, or missing.
    fn option(&mut self) -> String {
        let value = self.pick(WORDS);
        match self.below(8) {
            0..=2 => format!("-{}", self.letter()),
            3 => format!("-{}{}", self.letter(), self.letter()),
            4 => format!("-{}{value}", self.letter()),
            5 => format!("-{} {value}", self.letter()),
            6 => format!("--{}", self.pick(LONG)),
            _ if self.below(2) == 0 => format!("--{}={value}", self.pick(LONG)),
            _ => format!("--{} {value}", self.pick(LONG)),
        }
    }

    fn simple(&mut self) -> String {
        let mut command = self.pick(PROGRAMS).to_owned();
        for _ in 0..self.below(4) {
            let word = if self.below(3) == 0 { self.option() } else { self.pick(WORDS).to_owned() };
            command = format!("{command} {word}");
        }
        if command.starts_with("[ ") { format!("{command} ]") } else { command }
    }

    fn command(&mut self) -> String {
        let (prefix, command, end) = (self.pick(PREFIXES), self.simple(), self.pick(ENDS));
        let closed = match prefix {
            "(" => ")",
            "{ " => "; }",
            "if true; then " => "; fi",
            "bash -c '" | "sh -c '" => "'",
            "bash -c \"" => "\"",
            _ => "",
        };
        format!("{prefix}{command}{closed}{end}")
    }
}

/// Every program with every letter and every long option, behind everything that may stand before it, and at random; in a
/// quick run a part of it.
fn commands() -> BTreeSet<String> {
    let (step, others) = if is_full() { (1, 40 * MADE) } else { (7, MADE) };
    let letters = (0..=127_u8).map(char::from).filter(char::is_ascii_alphanumeric).map(|letter| format!("-{letter}"));
    let long = LONG.iter().flat_map(|name| [format!("--{name}"), format!("--{name}=out")]);
    let options: Vec<String> = letters.chain(long).collect();
    let with_options =
        PROGRAMS.iter().flat_map(|program| options.iter().map(move |option| format!("{program} {option}")));
    let behind = PREFIXES.iter().flat_map(|prefix| PROGRAMS.iter().map(move |program| format!("{prefix}{program}")));
    let ends = ["", " a.txt", " a.txt out", " HEAD", " out a.txt"];
    let regular = with_options.step_by(step).chain(behind.step_by(step.div_ceil(4))).enumerate();
    let regular = regular.map(|(index, command)| format!("{command}{}", ends[index % ends.len()]));
    let mut dice = Dice(7);
    regular.chain((0..others).map(|_| dice.command())).collect()
}

/// A repository in which scripts leave a mark if they are run, and files are named like options.
struct Tree {
    root: PathBuf,
    scope: Scope,
    tcp: std::net::TcpListener,
    directory: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(directory.path()).unwrap();
        let root = base.join("tree");
        std::fs::create_dir_all(root.join("0")).unwrap();
        std::fs::create_dir_all(root.join("sub/0")).unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        for name in [
            "a.txt",
            "b.txt",
            "c",
            "b c.txt",
            "sub/c",
            "-o",
            "-i",
            "--output=out",
            "-delete",
            "-exec",
            "--",
            "1",
            "w",
            "$x",
            "*",
            "[a]",
            "{a,b}.txt",
            "'q'",
            "%n",
            "PATH",
            "-name",
        ] {
            std::fs::write(root.join(name), "a x 1\none\n").unwrap();
        }
        for name in ["pwn", "0/ls", "0/git", "0/cat", "sub/pwn", "sub/0/ls", "ls", "cat", "git"] {
            std::fs::write(root.join(name), format!("#!/bin/sh\n: > {}/ran\n", root.display())).unwrap();
            std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        let port = tcp.local_addr().unwrap().port();
        outside(
            &root,
            &format!(
                "git init -q -b main . && git remote add origin http://127.0.0.1:{port}/x && git add -A && git commit -qm one && git tag v1 && git branch other && \
                 echo two >> a.txt && git commit -qam two && echo three >> a.txt && git stash -q && echo four >> b.txt && git add b.txt && echo five >> sub/c && \
                 touch -d @1000000000 c w 1"
            ),
        );
        outside(&base, "cp -a tree kept");
        // No guard: nothing holds these commands but the judge.
        Self { scope: Scope::new(&root, base.join("temporary")), root, tcp, directory }
    }

    async fn run(&self, commands: &[String]) {
        let port = self.tcp.local_addr().unwrap().port();
        let mut script =
            format!("export TCP={port} x=-oout; pwn() {{ : > {}/ran; }}; export -f pwn\n", self.root.display());
        for command in commands {
            let quoted = command.replace('\'', r"'\''");
            script.push_str(&format!("timeout -k 1 3 bash -c '{quoted}' </dev/null >/dev/null 2>&1\n"));
        }
        let input = json!({"command": script, "timeout": 300_000});
        let call = ToolCall { rights: Rights::ReadOnly(ReadOnlyView::default()), ..ToolCall::new("Bash", input) };
        run_all(vec![call], &standard(), &self.scope, |_, _| {}).await;
    }

    /// Every file with its content, its rights and its date; directories too.
    fn picture(&self) -> BTreeMap<String, (u32, i64, i64, Vec<u8>)> {
        fn look(path: &Path, into: &mut BTreeMap<String, (u32, i64, i64, Vec<u8>)>) {
            let metadata = std::fs::symlink_metadata(path).unwrap();
            let content = if metadata.is_file() { std::fs::read(path).unwrap() } else { Vec::new() };
            into.insert(
                path.display().to_string(),
                (metadata.mode(), metadata.mtime(), metadata.mtime_nsec(), content),
            );
            if metadata.is_dir() {
                std::fs::read_dir(path).unwrap().for_each(|entry| look(&entry.unwrap().path(), into));
            }
        }
        let mut picture = BTreeMap::new();
        look(&self.root, &mut picture);
        picture
    }

    fn restore(&self) {
        outside(self.directory.path(), "rm -rf tree && cp -a kept tree");
    }

    /// What came of commands that ran: nothing, or what.
    fn trace(&self, before: &BTreeMap<String, (u32, i64, i64, Vec<u8>)>) -> Option<String> {
        let after = self.picture();
        let changed: Vec<&String> =
            after.iter().filter(|(path, state)| before.get(*path) != Some(state)).map(|(path, _)| path).collect();
        let gone: Vec<&String> = before.keys().filter(|path| !after.contains_key(*path)).collect();
        let reached = self.tcp.accept().is_ok();
        (!changed.is_empty() || !gone.is_empty() || reached)
            .then(|| format!("changed {changed:?}, gone {gone:?}, reached {reached}"))
    }
}

/// What would set the clock or the name of the machine, were it judged wrongly: it is not run to find out.
fn sets_the_machine(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    words.iter().any(|word| ["hostname", "date"].contains(word))
        && words.iter().any(|word| {
            !word.starts_with(['-', '+']) && word.chars().any(|letter| letter.is_ascii_digit()) || word.contains("txt")
        })
}

/// SEC-2, SEC-3: the programs themselves are the witnesses: what is judged to surely only look writes nothing, not even git's
/// index, runs no other program and reaches nobody, with nothing that holds it.
#[tokio::test]
async fn what_surely_only_looks_does_so_unconfined() {
    let tree = Tree::new();
    let before = tree.picture();
    let commands = commands();
    let made = commands.len();
    let looks = commands.into_iter().filter(|command| judge(command).verdict == CommandEffect::ReadOnly);
    let looks: Vec<String> = looks.filter(|command| !sets_the_machine(command)).collect();
    println!("{} of {made} commands run", looks.len());
    assert!(made > 10_000 && looks.len() > 1_000, "{} of {made} commands are judged to only look", looks.len());
    let mut holes = Vec::new();
    for batch in looks.chunks(BATCH) {
        tree.run(batch).await;
        if tree.trace(&before).is_none() {
            continue;
        }
        for command in batch {
            tree.restore();
            let before = tree.picture();
            tree.run(std::slice::from_ref(command)).await;
            holes.extend(tree.trace(&before).map(|trace| format!("{command:?}: {trace}")));
        }
        break;
    }
    assert!(holes.is_empty(), "{holes:#?}");
    assert_eq!(tree.trace(&before), None, "something was changed by several commands together");
}

/// SEC-2: the stage can fail: what does not only look leaves a trace on it.
#[tokio::test]
async fn what_does_more_than_look_leaves_a_trace() {
    let tree = Tree::new();
    for command in [
        "pwn",
        "./pwn",
        "cd 0 && ./ls",
        "touch c",
        "git status; git update-index --refresh",
        "echo x > out",
        "sort -o a.txt b.txt",
        ": < /dev/tcp/127.0.0.1/$TCP",
        "rm ./-o",
        "chmod 600 c",
        "git fetch",
    ] {
        tree.restore();
        let before = tree.picture();
        tree.run(&[command.to_owned()]).await;
        assert!(tree.trace(&before).is_some(), "{command}");
    }
    tree.restore();
    let before = tree.picture();
    tree.run(&["git status; git diff; ls -la; cat a.txt".to_owned()]).await;
    assert_eq!(tree.trace(&before), None);
}

/// SEC-2, SEC-3: what looks by its words may be shown what it should not see by where they lead, or by a rule: then it does not
/// run unasked where nothing holds it.
#[test]
fn where_words_lead_counts_beside_the_words() {
    let ground = Ground::new();
    ground.git(".git", &format!("{CONFIG}[diff]\n\tsubmodule = diff\n"));
    std::fs::create_dir(ground.project.join("empty")).unwrap();
    std::fs::write(ground.project.join("link"), "plain\n").unwrap();
    std::os::unix::fs::symlink(ground.home.join("private"), ground.project.join("src/link")).unwrap();
    let rules = ground.rules(&[], &[], &["Read(.env)"]);
    for command in [
        "cd src && cat /proc/self/cwd/link",
        "cat /proc/self/cwd/link",
        "cat src/link",
        "git log -p",
        "git show --stat -U3",
        "git show --quiet -U1",
        "diff . empty",
        "grep -r x .",
        "cat /etc/passwd",
    ] {
        assert_eq!(judge(command).verdict, CommandEffect::ReadOnly, "{command}");
        assert_ne!(ground.unheld(Mode::Default, &rules, command), "allow", "{command}");
    }
    assert_eq!(ground.unheld(Mode::Default, &rules, "cat a.txt"), "allow");
}

/// SEC-3: a directory is the one that is named, whatever the environment says.
#[tokio::test]
async fn a_directory_is_where_it_says() {
    let tree = Tree::new();
    let elsewhere = tree.directory.path().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join("sub")).unwrap();
    let given = [("CDPATH".to_owned(), elsewhere.display().to_string())].into();
    let scope = tree.scope.clone().with_environment(Environment { given, ..Environment::default() });
    let call = ToolCall::new("Bash", json!({"command": "cd sub && pwd -P"}));
    let call = ToolCall { rights: Rights::ReadOnly(ReadOnlyView::default()), ..call };
    let said = run_all(vec![call], &standard(), &scope, |_, _| {}).await.remove(0).text();
    assert_eq!(said, tree.root.join("sub").display().to_string());
}

/// SEC-2: what once passed for looking and did more is not judged so.
#[test]
fn what_once_passed_for_looking_does_not() {
    let commands = include_str!("shell_refused.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let commands: Vec<String> = commands.map(|line| line.replace('⏎', "\n")).collect();
    let passed: Vec<&String> =
        commands.iter().filter(|command| judge(command).verdict == CommandEffect::ReadOnly).collect();
    assert!(passed.is_empty(), "{passed:#?}");
    assert!(commands.len() > 90, "only {} commands", commands.len());
}
