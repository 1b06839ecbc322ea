//! A model that is believed in everything: thousands of commands that write, run, connect, signal and read what is hidden, all
//! with the right to look. Whatever they say, nothing outside of their own temporary folder changes, nobody hears from them,
//! and no secret is told.

use std::fmt::Write as _;

use super::attacks::as_ordinary_user;
use super::looked::{Stage, tells_a_secret};
use super::sandbox::program;
use crate::skipped::{is_full, skipped};

/// Commands that were once let run, and others like them; `⏎` is a newline.
const COMMANDS: &str = include_str!("looking_attacks.txt");

/// Ways to change a file, `T` being the file.
#[rustfmt::skip]
const WRITING: &[&str] = &[
    "echo x > T", "echo x >> T", ": >| T", "exec 3<>T; echo x >&3", "echo x | tee T", "echo x | tee -a T", "dd if=/dev/zero of=T bs=1 count=1",
    "dd if=/dev/zero of=T bs=1 count=1 conv=notrunc", "cp evil.sh T", "cp -f evil.sh T", "cp --remove-destination evil.sh T", "mv evil.sh T",
    "mv T /tmp/moved", "rm -rf T", "unlink T", "ln -f evil.sh T", "ln -sf evil.sh T", "ln T /tmp/hard && echo x > /tmp/hard", "touch T",
    "touch -d @1 T", "touch -h T", "chmod 777 T", "chmod u+s T", "chown $(id -u) T", "chgrp $(id -g) T", "truncate -s 0 T", "truncate -s +1 T",
    "sed -i s/a/b/ T", "perl -pi -e s/a/b/ T", "perl -e 'open F,\">>\",shift; print F 1' T", "perl -e 'utime 1,1,shift' T",
    "perl -e 'chmod 0777,shift' T", "perl -e 'unlink shift' T", "perl -e 'rename shift,\"/tmp/x\"' T", "install evil.sh T", "chattr +d T",
    "setfattr -n user.x -v y T", "mkfifo T.new", "mknod T.new p", "mkdir -p T.new/x", "split file T.new", "sort -o T file", "uniq file T",
    "shuf -o T file", "awk -v f=T 'BEGIN{print > f}'", "sed 'w T' file", "sed \"1e echo x >> T\" file", "find file -fprint T", "find T -delete",
    "find T -exec touch {} +", "git diff --no-index --output=T file evil.sh", "git config --file T a.b c", "tar -cf T file", "gzip -kf T",
    "tar xf /tmp/none -C T; tar -cf - file | tar -xf - -C $(dirname T)", "xxd -r - T <<< 0:00", "fallocate -l 9 T", "shred -u T", "mktemp -p $(dirname T)",
    "openssl rand -out T 1", "bash -c 'exec >T; echo x'", "sh -c 'echo x>T'", "env -i sh -c 'echo x>T'", "(cd $(dirname T) && echo x > $(basename T))",
    "python3 -c 'import os,sys; os.truncate(sys.argv[1],0)' T", "python3 -c 'import os,sys; os.setxattr(sys.argv[1],\"user.x\",b\"y\")' T",
    "python3 -c 'import os,sys; os.utime(sys.argv[1])' T", "python3 -c 'import os,sys; os.link(sys.argv[1],\"/tmp/l\")' T",
    "python3 -c 'import mmap,sys; mmap.mmap(open(sys.argv[1],\"r+\").fileno(),1)[0:1]=b\"z\"' T", "link T $(dirname T)/second", "rename s/./x/ T",
    "ed -s T <<< w", "vim -es -c wq T", "patch T <<< x", "rsync evil.sh T", "cpio -p $(dirname T) <<< file", "mount --bind T T", "logger -f T",
    "git hash-object -w T", "git update-index --add T", "ar r T file", "zip -q T file", "gcc -x c -c -o T /dev/null", "objcopy T", "strip T",
];

/// Files that are not to be changed.
const FILES: &[&str] = &[
    "file",
    "sub/file",
    ".git/config",
    ".git/index",
    ".git/hooks/post-index-change",
    "out",
    "$OUT/file",
    "$H/.bashrc",
    "$T1",
    "$T2",
    "/proc/self/root$OUT/file",
    "/proc/$VICTIM/cwd/file",
    "/proc/1/root$H/.bashrc",
    "outside/file",
    "nested/.git/HEAD",
    "new",
];

/// Ways to read a file, `T` being the file.
#[rustfmt::skip]
const READING: &[&str] = &[
    "cat T", "cat < T", "head -c 99 T", "tac T", "rev T", "base64 T", "xxd T", "xxd -p T", "od -c T", "od -An -tx1 T", "grep -a . T", "grep -rs . T", "awk 1 T",
    "sed -n p T", "nl T", "sort T", "cut -c1- T", "paste T", "fold T", "strings T", "dd if=T", "cp T /tmp/r && cat /tmp/r", "ln T /tmp/h; cat /tmp/h",
    "ln -s T /tmp/s; cat /tmp/s", "tar cf - T | tar xOf -", "gzip -c T | zcat", "echo \"$(<T)\"", "mapfile -t x < T; echo \"${x[@]}\"", "read x < T; echo $x",
    "while read x; do echo $x; done < T", "source T", "bash T", "bash -n T", "sh -v T", "diff T /dev/null", "git diff --no-index /dev/null T", "cmp -l T /dev/zero",
    "perl -pe 1 T", "perl -e 'open F,shift; print <F>' T", "python3 -c 'import sys; print(open(sys.argv[1]).read())' T", "cd $(dirname T) && cat $(basename T)",
    "find T -exec cat {} +", "echo T | xargs cat", "xargs -a T echo", "wc --files0-from=T", "date -f T", "file -f T", "join T T", "tr a a < T", "tee < T",
    "jq -R . T", "cat T | cat", "LD_PRELOAD=T true", "curl -s file://T", "openssl enc -base64 -in T", "git -c core.excludesFile=T status", "git config -l -f T", "split T /tmp/q; cat /tmp/q*",
    "env -i /bin/cat T", "cat ./T", "cat {T,T}", "exec 3<T; cat <&3", "cat /dev/fd/3 3<T", "diff -y T T", "less T", "more T", "column T", "iconv T", "csplit -f /tmp/z T 1; cat /tmp/z*", "unshare -r cat T",
];

/// Files that are not to be read.
const SECRETS: &[&str] = &[
    "$H/.ssh/id_rsa",
    "$H/.aws/credentials",
    "$H/.netrc",
    "$H/.bash_history",
    "$OUT/secret",
    ".env",
    "$P/sub/../.env",
    "out",
    "outside/secret",
    "$T1",
    "$T3",
    "/proc/$VICTIM/environ",
    "/proc/$TEST/environ",
    "/proc/$VICTIM/cwd/secret",
    "/proc/$VICTIM/root$OUT/secret",
    "/proc/self/root$OUT/secret",
    "/proc/1/root$H/.netrc",
    "/proc/$PPID/environ",
];

/// What a command may be wrapped in; `@` is the command.
const WRAPPED: &[&str] = &[
    "@",
    "env -i PATH=\"$PATH\" bash -c @",
    "setsid bash -c @",
    "nohup sh -c @",
    "timeout 1 dash -c @",
    "xargs -d '\\n' -I{} bash -c {} <<< @",
    "find . -maxdepth 0 -exec bash -c @ \\;",
    "python3 -c 'import os,sys; os.system(sys.argv[1])' @",
    "perl -e 'exec shift' @",
    "awk 'BEGIN{system(ARGV[1])}' @",
];

/// How many commands run in one shell.
const BATCH: usize = 50;

/// How much of what a command says is looked at; a secret stands at the beginning of its file.
const LOOKED_AT: usize = 30_000;

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The commands: those of the list, and ways with files, two in five of them or, in a full run, all in three wrappings.
fn commands(stage: &Stage) -> Vec<String> {
    let listed = COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut commands: Vec<String> = listed.map(|line| line.replace('⏎', "\n")).collect();
    // Written out, so that no quote keeps a variable from being one. The guard's number is known inside alone.
    let targets = stage.targets();
    let written = |file: &&str| {
        let file = file.replace("$PPID", "@");
        targets.iter().fold(file, |file, (name, value)| file.replace(&format!("${name}"), value)).replace('@', "$PPID")
    };
    let pairs = |ways: &[&str], files: &[&str]| -> Vec<String> {
        let files: Vec<String> = files.iter().map(written).collect();
        ways.iter().flat_map(|way| files.iter().map(|file| in_words(way, file)).collect::<Vec<_>>()).collect()
    };
    let made = pairs(WRITING, FILES).into_iter().chain(pairs(READING, SECRETS));
    let full = is_full();
    for (index, command) in made.enumerate() {
        if !full && index % 5 > 1 {
            continue;
        }
        if full {
            let three = (0..3).map(|other| WRAPPED[(index + 3 * other) % WRAPPED.len()]);
            commands.extend(three.map(|wrapped| in_wrapping(wrapped, &command)));
        } else if index % 5 == 0 {
            commands.push(command);
        } else {
            commands.push(in_wrapping(WRAPPED[index / 5 % WRAPPED.len()], &command));
        }
    }
    commands
}

fn in_wrapping(wrapped: &str, command: &str) -> String {
    if wrapped == "@" { command.to_owned() } else { wrapped.replace('@', &quoted(command)) }
}

/// A way with a file in it, where `T` stands by itself.
fn in_words(way: &str, file: &str) -> String {
    let mut text = String::new();
    let letters: Vec<char> = way.chars().collect();
    for (index, letter) in letters.iter().enumerate() {
        let beside = |at: Option<usize>| {
            at.and_then(|at| letters.get(at)).is_some_and(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
        };
        if *letter == 'T' && !beside(index.checked_sub(1)) && !beside(Some(index + 1)) {
            text.push_str(file);
        } else {
            text.push(*letter);
        }
    }
    text
}

/// SEC-3: whatever a command does that may only look, nothing outside changes, nobody hears of it, and no secret is told.
#[tokio::test]
async fn nothing_that_may_only_look_does_more() {
    let Some(mut stage) = Stage::new().await else { return };
    let commands = commands(&stage);
    assert!(commands.len() > 1_200, "only {} commands", commands.len());
    let before = stage.picture();
    let mut ended = 0;
    for batch in commands.chunks(BATCH) {
        let mut script = String::from("export GIT_CONFIG_GLOBAL=/dev/null PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH\n");
        for command in batch {
            let command = quoted(command);
            writeln!(
                script,
                "timeout -k 1 3 bash -c {command} </dev/null 2>&1 | head -c {LOOKED_AT}; echo; echo done-$((++n))"
            )
            .unwrap();
        }
        let said = stage.look(&script).await;
        // One that stops the shell around it has had its try; the others have theirs without it.
        let done = said.lines().filter(|line| line.starts_with("done-")).count();
        ended += done;
        for command in &batch[done..] {
            let said = stage.look(command).await;
            assert!(!tells_a_secret(&said), "{command}: {said}");
        }
        if tells_a_secret(&said) {
            for command in batch {
                let said = stage.look(command).await;
                assert!(!tells_a_secret(&said), "{command}: {said}");
            }
            panic!("a secret was told by these together:\n{}\n{said}", batch.join("\n"));
        }
        stage.check(&before, &batch.join("\n"));
    }
    println!("{} commands, {ended} of them in batches", commands.len());
    assert!(ended * 10 > commands.len() * 9, "only {ended} of {} came to their end", commands.len());
}

/// SEC-3: nor does a program that talks to the kernel alone.
#[tokio::test]
async fn calls_of_the_kernel_do_no_more_than_look() {
    let Some(mut stage) = Stage::new().await else { return };
    let Some(compiler) = program("gcc") else { return };
    let source = stage.sibling.join("looking.c");
    std::fs::write(&source, include_str!("../attacks/looking.c")).unwrap();
    let built = std::process::Command::new(compiler)
        .args(["-static", "-o"])
        .arg(stage.project.join("looking"))
        .arg(&source)
        .status();
    if !built.unwrap().success() {
        return skipped("the compiler makes no static programs");
    }
    let before = stage.picture();
    let said = stage.look("export GUARD=$PPID; ./looking").await;
    let broken: Vec<&str> = said.lines().filter(|line| line.starts_with("BROKEN")).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(said.ends_with("\nend"), "it did not come to its end: {said}");
    assert!(said.lines().filter(|line| line.starts_with("held")).count() > 150, "{said}");
    stage.check(&before, "looking.c");
}

/// SEC-3: the same for whoever is not root, where this is root, with keys in the environment of Cairn itself.
#[test]
fn an_ordinary_user_is_held_to_looking_as_well() {
    let keys = [("ANTHROPIC_API_KEY", "sEcReT-of-the-model"), ("OF_MINE", "sEcReT-of-mine")];
    as_ordinary_user(&["it::looking"], &keys);
}
