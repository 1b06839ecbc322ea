//! What only looks, and shows what is the user's: it is asked about, since what is shown is sent to the model.

use std::path::{Path, PathBuf};

use tools::permission::{ConfinementLevel, Decision, Mode, Rules, Situation, Wall, decide};
use tools::sandbox::SandboxExit;
use tools::{Access, Subject};

fn decided(command: &str, mode: Mode) -> Decision {
    let place = tempfile::tempdir().unwrap();
    let directory = std::fs::canonicalize(place.path()).unwrap();
    std::fs::write(directory.join("a.json"), "{}").unwrap();
    let directories: Vec<PathBuf> = vec![directory.clone()];
    let situation = Situation {
        mode,
        rules: &Rules::default(),
        directories: &directories,
        directory: &directory,
        home: Some(Path::new("/home/nobody")),
        confined: ConfinementLevel::No,
        wall: Wall::Whole,
        leaves: SandboxExit::No,
    };
    decide(&situation, Access::Changes, "Bash", &Subject::Command(command.to_owned()))
}

/// TRUST-5: variables of the environment may hold keys, and whatever prints them is asked about, in every mode that asks.
#[test]
fn what_shows_the_environment_is_asked_about() {
    for command in [
        "env",
        "env | grep KEY",
        "printenv",
        "printenv AWS_SECRET_ACCESS_KEY",
        "set",
        "echo $AWS_SECRET_ACCESS_KEY",
        "echo \"${GITHUB_TOKEN}\"",
        "echo \"${GITHUB_TOKEN:-none}\"",
        "echo ${#GITHUB_TOKEN}",
        "printf '%s' \"$GITHUB_TOKEN\"",
        "cat <<< \"$SECRET\"",
        "cat <<E\n$SECRET\nE",
        "x=$SECRET; echo $x",
        "for f in $SECRET; do echo $f; done",
        "grep \"$SECRET\" a.json",
        "bash -c 'echo $SECRET'",
        "ps auxe",
        "ps eww",
        "jq -n env",
        "jq -n '$ENV.HOME'",
        "git config --list",
        "git config --global -l",
    ] {
        for mode in [Mode::Default, Mode::Plan, Mode::AcceptEdits] {
            let decision = decided(command, mode);
            assert!(matches!(&decision, Decision::Ask { .. }), "{command}: {decision:?}");
        }
    }
}

/// TRUST-5: what the command set itself, and what says where things are, is no secret.
#[test]
fn ordinary_variables_are_not_asked_about() {
    for command in [
        "echo $HOME",
        "echo \"$PWD\"",
        "echo $?",
        "echo $PATH",
        "x=1; echo $x",
        "for f in *.json; do echo \"$f\"; done",
        "while read -r line; do echo \"$line\"; done < a.json",
        "ps aux",
        "ps -ef",
        "jq . a.json",
        "jq -r '.name' a.json",
        "echo $((1 + 2))",
    ] {
        assert!(decided(command, Mode::Default).allows(), "{command}");
    }
}

/// TRUST-4: names behind a link that leads out of the project are the user's as well; without such a link nobody is asked.
#[test]
fn nothing_is_listed_or_read_that_links_lead_to() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "x").unwrap();
    let listed = |command: &str, linked: bool, wall: Wall| {
        let place = tempfile::tempdir().unwrap();
        let directory = std::fs::canonicalize(place.path()).unwrap();
        if linked {
            std::os::unix::fs::symlink(outside.path(), directory.join("out")).unwrap();
        }
        let situation = Situation {
            mode: Mode::Default,
            rules: &Rules::default(),
            directories: std::slice::from_ref(&directory),
            directory: &directory,
            home: None,
            confined: ConfinementLevel::No,
            wall,
            leaves: SandboxExit::No,
        };
        decide(&situation, Access::Changes, "Bash", &Subject::Command(command.to_owned()))
    };
    let follow = "find -L . ; find -L . -name '*.txt' ; find . -follow -name '*.txt' ; ls -L ; ls -lL . ; ls -RL ; \
        ls --dereference . ; du -L ; du -shL . ; du --dereference ; tree -l ; tree -al . ; fd -L txt ; fd --follow . . ; rg -L x ; \
        rg --follow x . ; rg --files -L ; rg --files --follow . ; grep -R x . ; grep --dereference-recursive x ; ag -f x ; \
        diff -r . . ; cat $(find -L . -type f) ; ls -L | head";
    for command in follow.split(" ; ").map(str::trim) {
        assert!(matches!(listed(command, true, Wall::None), Decision::Ask { .. }), "{command}");
        // Where the kernel holds it, what a link leads to is not there.
        assert!(listed(command, true, Wall::Whole).allows(), "{command}");
    }
    let stay = "find . -name '*.txt' ; ls -la ; ls -R ; du -sh . ; tree -L 2 ; tree -d ; rg x ; rg --files ; grep -r x . ; grep -rL x .";
    for command in stay.split(" ; ").map(str::trim) {
        assert!(listed(command, true, Wall::None).allows(), "{command} follows no link below");
    }
}
