//! Permission rules: what they match, and what follows in each mode.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;
use tools::permission::{ConfinementLevel, Decision, Mode, Places, Rule, RuleVerdict, Rules, Situation, Wall, decide};
use tools::sandbox::SandboxExit;
use tools::{Access, Subject, standard};

use super::place::Place;

fn places() -> Places {
    Places { directory: "/work".into(), settings: "/settings".into(), home: Some("/home/u".into()), file: None }
}

fn situation<'a>(mode: Mode, rules: &'a Rules, directories: &'a [PathBuf]) -> Situation<'a> {
    Situation {
        mode,
        rules,
        directories,
        directory: &directories[0],
        home: None,
        confined: ConfinementLevel::No,
        wall: Wall::Whole,
        leaves: SandboxExit::No,
    }
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| Rule::parse(text, &places()).unwrap()).collect()
}

fn allow(texts: &[&str]) -> Rules {
    Rules { allow: rules(texts), ..Rules::default() }
}

fn path(path: &str) -> Subject {
    Subject::Path { named: path.into(), real: path.into() }
}

fn command(text: &str) -> Subject {
    Subject::Command(text.to_owned())
}

/// TOOL-2: a rule that allows a command by its beginning cannot be tricked into allowing another.
#[test]
fn a_prefix_rule_allows_that_command_and_nothing_behind_it() {
    let rules = allow(&["Bash(git:*)", "Bash(npm run test *)", "Bash(make)", "Bash(docker * ps)"]);
    for allowed in [
        "git",
        "git status",
        "git log | git grep x",
        "git add . && git commit -m 'a; b'",
        "git diff 2>&1",
        "npm run test",
        "npm run test -- --watch",
        "make",
        "make && git push",
        "docker compose ps",
        "git commit -m \"x > y\"",
        "(git status)",
        "git \\\nstatus",
        "git {a,b}",
        "for i in 1 2; do git status; done",
        "LC_ALL=C git status",
    ] {
        assert_eq!(rules.decide("Bash", &command(allowed)), RuleVerdict::Allow, "{allowed}");
    }
    for not_allowed in [
        "git status; rm -rf x",
        "git status && rm x",
        "git status || rm x",
        "git status | sh",
        "git status & rm x",
        "git status\nrm x",
        "git $(rm x)",
        "git `rm x`",
        "git log > x",
        "git log >> x",
        "git log < x",
        "git diff <(rm x)",
        "git \"$(rm x)\"",
        "gitk",
        "git-evil",
        "npm run tests",
        "make x",
        "X=1 git status",
        "git #'\nrm x #'",
        "git 'x",
        "sudo git status",
        "/tmp/git status",
        "git ${X:-$(rm x)}",
        "docker ps",
        "npm_config_script_shell=./x npm run test",
        "env PATH=. make",
        "export PATH=.; make",
        "alias make=rm; make",
        "make() { rm x; }; make",
        "cd x; make",
    ] {
        assert_eq!(rules.decide("Bash", &command(not_allowed)), RuleVerdict::NoRule, "{not_allowed}");
    }
    assert_eq!(allow(&["Bash"]).decide("Bash", &command("git $(rm x)")), RuleVerdict::Allow);
    assert_eq!(allow(&["Bash(*)"]).decide("Bash", &command("anything; at all")), RuleVerdict::Allow);
}

/// TOOL-2: deny before ask before allow; what is denied is found wherever it stands.
#[test]
fn deny_wins_over_ask_and_ask_over_allow() {
    let rules = Rules {
        allow: rules(&["Bash", "Read", "Edit(src/**)"]),
        ask: rules(&["Bash(git push:*)", "Edit(src/generated/**)"]),
        deny: rules(&["Bash(rm:*)", "Bash(curl *)", "Read(.env)", "Read(//etc/**)"]),
    };
    let verdict = |tool: &str, subject: Subject| rules.decide(tool, &subject);
    let deny = |rule: &str| RuleVerdict::Deny(format!("`{rule}`"));
    assert_eq!(verdict("Bash", command("ls")), RuleVerdict::Allow);
    assert_eq!(verdict("Bash", command("ls && git push origin")), RuleVerdict::Ask("`Bash(git push:*)`".to_owned()));
    for denied in ["rm x", "git push && rm x", "echo $(rm x)", "sudo rm x", "if a; then rm x; fi", "bash -c 'rm x'"] {
        assert_eq!(verdict("Bash", command(denied)), deny("Bash(rm:*)"), "{denied}");
    }
    assert_eq!(verdict("Bash", command("rmdir x")), RuleVerdict::Allow);
    assert_eq!(verdict("Read", path("/work/deep/.env")), deny("Read(.env)"));
    assert_eq!(verdict("Grep", path("/etc/ssl")), deny("Read(//etc/**)"));
    assert_eq!(verdict("Edit", path("/work/src/a.rs")), RuleVerdict::Allow);
    assert_eq!(
        verdict("Write", path("/work/src/generated/a.rs")),
        RuleVerdict::Ask("`Edit(src/generated/**)`".to_owned())
    );
}

#[test]
fn path_patterns_start_where_their_beginning_says() {
    for (rule, inside, outside) in [
        ("Read(src/**)", "/work/src/a/b.rs", "/other/src/a.rs"),
        ("Read(./src/*.rs)", "/work/src/a.rs", "/work/src/a/b.rs"),
        ("Read(*.env)", "/work/a/x.env", "/x.env"),
        ("Read(/docs/**)", "/settings/docs/a", "/docs/a"),
        ("Read(//abs/path/**)", "/abs/path/x", "/work/abs/path/x"),
        ("Read(~/notes/**)", "/home/u/notes/x", "/home/v/notes/x"),
        ("Read(src)", "/work/src/deep/x", "/work/srcs"),
        ("Read(!x)", "/work/!x", "/work/y"),
    ] {
        let rules = allow(&[rule]);
        assert_eq!(rules.decide("Read", &path(inside)), RuleVerdict::Allow, "{rule}");
        assert_eq!(rules.decide("Read", &path(outside)), RuleVerdict::NoRule, "{rule}");
    }
}

#[test]
fn rules_are_about_the_tools_they_name() {
    let covers = |rule: &str, tool: &str| Rule::parse(rule, &places()).unwrap().covers(tool);
    assert!(covers("Edit", "Write") && !covers("Write", "Edit"));
    assert!(covers("Read", "Grep") && covers("Read", "Glob") && !covers("Grep", "Read"));
    assert!(covers("mcp__files", "mcp__files__read") && covers("mcp__files__*", "mcp__files__read"));
    assert!(covers("mcp__files__read", "mcp__files__read") && !covers("mcp__files__read", "mcp__files__read__all"));
    assert!(!covers("mcp__files", "mcp__filesystem__read") && !covers("Bash", "Read"));
    assert!(covers("mcp__*", "mcp__files__read") && !covers("mcp__*", "Bash") && covers("mcp__*", "mcp__a__b__c"));
    assert!(!covers("mcp__", "mcp__files__read") && !covers("mcp____*", "mcp__files__read"));
    for (bad, why) in [
        ("Bash(git", "does not close it"),
        ("(x)", "name of a tool"),
        ("", "name of a tool"),
        ("Read(../x)", "contains `..`"),
        ("Read(a{b)", "unclosed"),
    ] {
        let error = Rule::parse(bad, &places()).unwrap_err().to_string();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let homeless = Places { home: None, ..places() };
    assert!(Rule::parse("Read(~/x)", &homeless).is_err());
}

/// TOOL-2: the four modes.
#[test]
fn modes_decide_what_happens_without_a_rule() {
    let directories = [PathBuf::from("/work"), PathBuf::from("/extra")];
    let none = Rules::default();
    let short = |mode, access, tool: &str, subject: &Subject| match decide(
        &situation(mode, &none, &directories),
        access,
        tool,
        subject,
    ) {
        Decision::Allow(_) => "allow",
        Decision::Ask { .. } => "ask",
        Decision::Deny { .. } => "deny",
    };
    let (looks, changes) = (Access::ReadOnly, Access::Changes);
    let modes = [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::BypassPermissions];
    for (access, tool, subject, expected) in [
        (looks, "Read", path("/work/a"), ["allow", "allow", "allow", "allow"]),
        (looks, "Read", path("/extra/a"), ["allow", "allow", "allow", "allow"]),
        (looks, "Read", path("/workshop/a"), ["ask", "ask", "ask", "allow"]),
        (looks, "History", Subject::Whole, ["allow", "allow", "allow", "allow"]),
        (Access::Session, "TaskStop", Subject::Whole, ["allow", "allow", "allow", "allow"]),
        (changes, "Edit", path("/work/a"), ["ask", "allow", "deny", "allow"]),
        (changes, "Write", path("/etc/passwd"), ["ask", "ask", "deny", "allow"]),
        (changes, "Write", path("/work/.git/hooks/x"), ["ask", "ask", "deny", "allow"]),
        (changes, "Write", path("/work/.cairn/settings.json"), ["ask", "ask", "deny", "allow"]),
        (changes, "Bash", command("ls"), ["allow", "allow", "allow", "allow"]),
        (changes, "Bash", command("cat /etc/passwd"), ["ask", "ask", "ask", "allow"]),
        (changes, "Bash", command("make"), ["ask", "ask", "deny", "allow"]),
        (changes, "mcp__x__y", Subject::Whole, ["ask", "ask", "deny", "allow"]),
    ] {
        assert_eq!(modes.map(|mode| short(mode, access, tool, &subject)), expected, "{tool} {subject:?}");
    }
}

/// TOOL-2: rules hold in every mode: deny and ask also where everything else is bypassed.
#[test]
fn rules_hold_in_every_mode() {
    let rules = Rules {
        allow: rules(&["Bash(ls:*)", "Read(//usr/**)"]),
        ask: rules(&["Bash(git push:*)"]),
        deny: rules(&["Bash(rm:*)", "Read(secret)"]),
    };
    let directories = ["/work".into()];
    let decision =
        |mode, access, tool: &str, subject| decide(&situation(mode, &rules, &directories), access, tool, &subject);
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::BypassPermissions] {
        let denied = decision(mode, Access::Changes, "Bash", command("ls; rm x"));
        assert_eq!(
            denied,
            Decision::Deny { why: "Bash is denied here by the permission rule `Bash(rm:*)`.".to_owned() }
        );
        assert!(matches!(decision(mode, Access::ReadOnly, "Read", path("/work/secret")), Decision::Deny { .. }));
        assert!(decision(mode, Access::ReadOnly, "Read", path("/usr/x")).allows());
    }
    let push = |mode| decision(mode, Access::Changes, "Bash", command("git push"));
    assert!(matches!(push(Mode::BypassPermissions), Decision::Ask { .. }));
    assert!(matches!(push(Mode::Plan), Decision::Deny { .. }), "nothing is changed in plan mode, asked or not");
    assert!(decision(Mode::Default, Access::Changes, "Bash", command("ls -l")).allows());
}

/// TOOL-2: a link inside the project does not make what it leads to a part of it.
#[test]
fn a_link_that_leads_out_is_judged_by_where_it_leads() {
    let place = Place::new();
    symlink("/etc", place.path("out")).unwrap();
    symlink("/tmp/later", place.path("dangling")).unwrap();
    let tools = standard();
    let subject =
        |tool: &str, input| tools.iter().find(|found| found.name() == tool).unwrap().subject(&input, &place.scope);
    let directories = place.scope.directories();
    let read = subject("Read", json!({"file_path": "out/passwd"}));
    assert_eq!(read, Subject::Path { named: place.path("out/passwd"), real: "/etc/passwd".into() });
    let decision = |mode, access, tool, subject: &Subject, rules: &Rules| {
        decide(&situation(mode, rules, &directories), access, tool, subject)
    };
    assert!(matches!(
        decision(Mode::Default, Access::ReadOnly, "Read", &read, &Rules::default()),
        Decision::Ask { .. }
    ));
    let write = subject("Write", json!({"file_path": "dangling", "content": ""}));
    assert!(matches!(
        decision(Mode::AcceptEdits, Access::Changes, "Write", &write, &Rules::default()),
        Decision::Ask { .. }
    ));
    let here = Places { directory: place.root.clone(), settings: place.root.clone(), home: None, file: None };
    let allowing = Rules { allow: vec![Rule::parse("Read(out/**)", &here).unwrap()], ..Rules::default() };
    assert_eq!(allowing.decide("Read", &read), RuleVerdict::NoRule, "allowed as it is named, not where it leads");
    let denying = Rules { deny: vec![Rule::parse("Read(//etc/**)", &here).unwrap()], ..Rules::default() };
    assert!(matches!(denying.decide("Read", &read), RuleVerdict::Deny(_)));
    assert_eq!(subject("Glob", json!({"pattern": "/etc/**/*.conf"})), path("/etc"));
    assert_eq!(subject("Grep", json!({"pattern": "x"})), path(&place.root.to_string_lossy()));
    assert_eq!(
        subject("Read", json!({"file_path": "a/../../x"})),
        path(&Path::new(&place.root).with_file_name("x").to_string_lossy())
    );
    assert_eq!(subject("Read", json!({"nonsense": 1})), Subject::Whole);
}

/// TRUST-6: a rule that covers a guarded path in passing does not allow it; one that names it does.
#[test]
fn no_rule_covers_a_guarded_path_in_passing() {
    let directories = [PathBuf::from("/work")];
    let from_file = Places { file: Some("/home/u/.claude/settings.json".into()), ..places() };
    let decision = |rule: &str, places: &Places, file: &str| {
        let rules = Rules { allow: vec![Rule::parse(rule, places).unwrap()], ..Rules::default() };
        decide(&situation(Mode::AcceptEdits, &rules, &directories), Access::Changes, "Edit", &path(file))
    };
    let asks = |rule: &str, places: &Places, file: &str| matches!(decision(rule, places, file), Decision::Ask { .. });
    for file in [
        "/work/.git/hooks/pre-commit",
        "/work/.GIT/hooks/pre-commit",
        "/work/a/.claude/settings.json",
        "/work/.husky/x",
        "/work/.vscode/tasks.json",
        "/work/.envrc",
        "/work/sub/.mcp.json",
        "/work/.Gitmodules",
    ] {
        for rule in ["Edit", "Edit(**)", "Edit(/**)", "Edit(//work/**)", "Edit(.*)", "Edit(.git*)", "Edit(a)"] {
            assert!(asks(rule, &from_file, file), "{rule} {file}");
            assert!(asks(rule, &places(), file), "{rule} {file} from a flag");
        }
    }
    assert!(asks("Edit(.husky/**)", &from_file, "/work/.husky/x"), "a file's rule has to be exact");
    assert!(decision("Edit(.husky/x)", &from_file, "/work/.husky/x").allows());
    assert!(decision("Edit(.husky/**)", &places(), "/work/.husky/x").allows(), "a flag names the directory");
    assert!(asks("Edit(.husky/**)", &places(), "/work/.husky/.git/x"), "it names one guarded directory, not the other");
    let kept = "Edit(//work/.claude/projects/x/memory/**)";
    assert!(decision(kept, &places(), "/work/.claude/projects/x/memory/a.md").allows());
}

/// TOOL-2: a question and a refusal say which rule of which file decided.
#[test]
fn a_question_and_a_refusal_name_the_rule_and_its_file() {
    let file = |file: &str| Places { file: Some(file.into()), ..places() };
    let rules = Rules {
        deny: vec![Rule::parse("Bash(rm:*)", &file("/home/u/.claude/settings.json")).unwrap()],
        ask: vec![Rule::parse("Bash(git push:*)", &file("/work/.claude/settings.json")).unwrap()],
        ..Rules::default()
    };
    let directories = [PathBuf::from("/work")];
    let situation = situation(Mode::Default, &rules, &directories);
    let why = |text: &str| match decide(&situation, Access::Changes, "Bash", &command(text)) {
        Decision::Ask { why } | Decision::Deny { why } => why,
        Decision::Allow(_) => String::new(),
    };
    assert!(why("rm x").contains("`Bash(rm:*)` in ~/.claude/settings.json"), "{}", why("rm x"));
    assert!(why("git push").contains("`Bash(git push:*)` in /work/.claude/settings.json"), "{}", why("git push"));
}

/// SANDBOX-1: in a sandbox that holds all it promises commands run unasked; rules and plan mode still speak.
#[test]
fn a_wholly_confined_command_runs_unasked_unless_a_rule_or_plan_mode_speaks() {
    let rules = Rules { ask: rules(&["Bash(git push:*)"]), deny: rules(&["Bash(rm:*)"]), ..Rules::default() };
    let directories = [PathBuf::from("/work")];
    let decision = |mode, confined, text| {
        let situation = Situation { confined, ..situation(mode, &rules, &directories) };
        match decide(&situation, Access::Changes, "Bash", &command(text)) {
            Decision::Allow(_) => "allow",
            Decision::Ask { .. } => "ask",
            Decision::Deny { .. } => "deny",
        }
    };
    assert_eq!(decision(Mode::Default, ConfinementLevel::Wholly, "make"), "allow");
    assert_eq!(decision(Mode::Default, ConfinementLevel::Partly, "make"), "ask");
    assert_eq!(decision(Mode::Default, ConfinementLevel::Wholly, "git push"), "ask");
    assert_eq!(decision(Mode::Default, ConfinementLevel::Wholly, "rm x"), "deny");
    assert_eq!(decision(Mode::Plan, ConfinementLevel::Wholly, "make"), "deny");
}
