use super::*;

fn parse(text: &str) -> (Skill, Vec<String>) {
    let (skill, troubles) =
        Skill::parse(text, "one".to_owned(), SkillKind::Skill, SkillSource::User, Path::new("/s/one/SKILL.md"));
    (skill, troubles.iter().map(ToString::to_string).collect())
}

/// SKILL-2: every key counts, lists may be text or YAML, truths may be any of YAML's words, and a byte order mark is fine.
#[test]
fn every_key_is_read_in_every_form() {
    let text = "\u{feff}---\nname: One\ndescription: Does it\nwhen_to_use: when asked\nargument-hint: [file] [line]\narguments: file line\ndisable-model-invocation: yes\nuser-invocable: off\nallowed-tools: Bash(git add:*), Read Grep\ndisallowed-tools:\n  - Write\n  - Edit\nmodel: opus\neffort: high\ncontext: fork\nagent: Explore\nbackground: 0\npaths: \"src/**/*.rs, docs/*\"\nshell: bash\ncolour: red\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: echo\n---\n\nText\n";
    let (skill, _) = parse(text);
    assert_eq!(skill.label.as_deref(), Some("One"));
    assert_eq!((skill.description.as_str(), skill.when_to_use.as_deref()), ("Does it", Some("when asked")));
    assert_eq!(skill.argument_hint.as_deref(), Some("[file] [line]"));
    assert_eq!(skill.arguments, ["file", "line"]);
    assert_eq!((skill.model_use, skill.user_use), (ModelUse::Hidden, UserUse::Hidden));
    assert_eq!(skill.disallowed_tools, ["Write", "Edit"]);
    assert_eq!(skill.paths, ["src/**/*.rs", "docs/*"]);
    assert_eq!(skill.body.trim(), "Text");
    let grants = skill.rights.granted().unwrap();
    assert_eq!(grants.allowed_tools, ["Bash(git add:*)", "Read", "Grep"]);
    assert_eq!((grants.model.as_deref(), grants.effort), (Some("opus"), Some(Effort::High)));
    let waiting = ForkWait::Foreground;
    assert_eq!(grants.context, SkillContext::Fork { agent: Some("Explore".to_owned()), waiting });
    assert!(skill.is_about(Path::new("src/a/b.rs")) && !skill.is_about(Path::new("a/docs/x")));
}

/// SKILL-2: hooks are kept as they are written.
#[test]
fn hooks_are_kept_as_they_are_written() {
    let text = "---\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: echo\n---\n";
    let (skill, troubles) = parse(text);
    let hooks = skill.rights.granted().unwrap().hooks.clone().unwrap();
    assert_eq!(hooks["Stop"][0]["hooks"][0]["command"], "echo");
    assert_eq!(troubles, [""; 0]);
}

/// SKILL-2: a broken value is told of with its line and costs the skill nothing else.
#[test]
fn a_broken_value_is_told_of_and_the_skill_stays() {
    let text = "---\ndescription: fine\nuser-invocable: perhaps\nhooks: none\neffort: huge\n---\nText";
    let (skill, troubles) = parse(text);
    assert_eq!((skill.description.as_str(), skill.user_use), ("fine", UserUse::Callable));
    assert_eq!(
        troubles,
        [
            "/s/one/SKILL.md:5: unknown effort \"huge\"; the session's effort is used",
            "/s/one/SKILL.md:4: hooks must be an object; it is ignored",
            "/s/one/SKILL.md:3: user-invocable must be true or false, not \"perhaps\"; it is ignored",
        ]
    );
}

/// SKILL-2: without a description the first paragraph is it.
#[test]
fn the_first_paragraph_is_the_description_where_there_is_none() {
    assert_eq!(parse("# Title\n\nDoes this\nand that.\n\nMore.").0.description, "Does this and that.");
    assert_eq!(parse("---\nname: x\n---\n# Only a title\n").0.description, "Only a title");
    assert_eq!(parse("").0.description, "");
}

/// SKILL-2: without trust nothing of what a skill may do is left in it, but the words for it are.
#[test]
fn a_skill_without_trust_has_no_grants_to_read() {
    let (skill, _) = parse("---\nallowed-tools: Bash\nmodel: opus\ncontext: fork\n---\nRun !`date`");
    let withheld = skill.withheld();
    let words = ["allow Bash", "model opus", "agent of its own", "commands in its text"].map(str::to_owned).to_vec();
    assert_eq!(withheld.rights, SkillRights::Withheld(words));
    assert!(withheld.rights.granted().is_none());
}
