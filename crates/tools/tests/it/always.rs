//! What "always" offers for a call.

use std::path::PathBuf;

use tools::permission::{ConfinementLevel, Mode, Rules, Situation, Wall, always};
use tools::sandbox::SandboxExit;
use tools::{Access, Subject};

use super::shell_asking::{CONFIG, Ground};

/// TRUST-6: "always" offers what a person means, one rule for each part, and never what runs anything.
#[test]
fn always_offers_what_a_person_means() {
    let ground = Ground::new();
    ground.git(".git", CONFIG);
    let offered = |rules: &Rules, command: &str| {
        let directories = [ground.project.clone()];
        let situation = Situation {
            mode: Mode::Default,
            rules,
            directories: &directories,
            directory: &ground.project,
            home: Some(&ground.home),
            confined: ConfinementLevel::No,
            wall: Wall::Whole,
            leaves: SandboxExit::No,
        };
        let subject = Subject::Command(command.to_owned());
        let offered = always(&situation, Access::Changes, "Bash", &subject);
        if !offered.is_empty() {
            let mut then = rules.clone();
            then.allow.extend(offered.iter().map(|(_, rule)| rule.clone()));
            assert!(ground.decide(Mode::Default, &then, command).allows(), "{command}");
        }
        offered.into_iter().map(|(text, _)| text).collect::<Vec<_>>()
    };
    let none = Rules::default();
    for (command, expected) in [
        ("cargo test", vec!["Bash(cargo test:*)"]),
        ("cargo test --lib 2>&1 | tail -5", vec!["Bash(cargo test:*)"]),
        ("npm run build", vec!["Bash(npm run build:*)"]),
        ("npm run test:unit -- --watch", vec!["Bash(npm run test:unit:*)"]),
        ("git add . && git commit -m 'x y'", vec!["Bash(git add:*)", "Bash(git commit:*)"]),
        ("cd src && git push origin main", vec!["Bash(git push:*)"]),
        ("timeout 60 cargo test", vec!["Bash(cargo test:*)"]),
        ("touch a.txt", vec!["Bash(touch a.txt)"]),
        ("bash -c 'cargo test; rm x'", vec!["Bash(cargo test:*)", "Bash(rm x)"]),
        ("cargo test && cargo test --all", vec!["Bash(cargo test:*)"]),
        ("./run-tests", vec!["Bash(./run-tests)"]),
        ("for i in 1 2; do cargo build; done", vec!["Bash(cargo build:*)"]),
    ] {
        assert_eq!(offered(&none, command), expected, "{command}");
    }
    let some = ground.rules(&["Bash(git add:*)"], &[], &[]);
    assert_eq!(offered(&some, "git add . && git commit -m x"), ["Bash(git commit:*)"]);
    for command in [
        "bash -c 'cargo test; python3 x.py'",
        "bash test.sh",
        "/bin/sh x",
        "python3 -c 'x'",
        "python3.12 x.py",
        "node x.js",
        "sudo cargo test",
        "timeout 5 python3 x.py",
        "env X=1 make",
        "xargs rm",
        "find . -exec rm {} +",
        "find . -delete",
        "eval \"$x\"",
        "npx x",
        "npm exec x",
        "docker run x",
        "go run x.go",
        "make",
        "git config core.pager x",
        "git -c core.pager=x log",
        "git submodule foreach x",
        "rm .git/index",
        "cp x .claude/settings.json",
        "touch .ENVRC",
        "cargo test > log",
        "cargo test $x",
        "cargo test $(rm x)",
        "cargo test && python3 x.py",
        "sed -i s/a/b/ x",
        "rm *",
        "PATH=. cargo test",
        "alias a=b; cargo test",
        "ls",
    ] {
        assert_eq!(offered(&none, command), [""; 0], "{command}");
    }
    let denied = ground.rules(&[], &["Bash(cargo test:*)"], &[]);
    assert_eq!(offered(&denied, "cargo test"), [""; 0], "a rule that asks goes on asking");
}

/// TRUST-6: for files outside "always" is their folder, if it is not the home or what lies above it; edits are no rule's.
#[test]
fn always_for_a_file_is_its_folder() {
    let ground = Ground::new();
    std::fs::create_dir_all(ground.home.join("notes")).unwrap();
    std::fs::create_dir_all(ground.home.join(".ssh")).unwrap();
    let directories = [ground.project.clone()];
    let offered = |access, tool, path: PathBuf| {
        let rules = Rules::default();
        let situation = Situation {
            mode: Mode::Default,
            rules: &rules,
            directories: &directories,
            directory: &ground.project,
            home: Some(&ground.home),
            confined: ConfinementLevel::No,
            wall: Wall::Whole,
            leaves: SandboxExit::No,
        };
        let subject = Subject::Path { named: path.clone(), real: path };
        always(&situation, access, tool, &subject).into_iter().map(|(text, _)| text).collect::<Vec<_>>()
    };
    let notes = ground.home.join("notes");
    assert_eq!(offered(Access::ReadOnly, "Read", notes.join("a")), [format!("Read(/{}/**)", notes.display())]);
    for path in [ground.home.join("private"), ground.home.join(".ssh/key"), "/etc/passwd".into(), "/x".into()] {
        assert_eq!(offered(Access::ReadOnly, "Read", path.clone()), [""; 0], "{path:?}");
    }
    assert_eq!(offered(Access::Changes, "Edit", ground.project.join("a.txt")), [""; 0]);
    assert_eq!(offered(Access::Changes, "Edit", ground.project.join(".git/config")), [""; 0]);
}
