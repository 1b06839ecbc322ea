//! Plugins as users meet them: named by a flag, a setting, or installed and enabled, with all that they bring.

use serde_json::{Value, json};

use crate::stage::{Ran, Stage, run};

const SAYS: &str = "[[rule]]\nsay = 'Hello.'";

/// A model that starts the agent it is told to.
const STARTER: &str = r#"
    [[rule]]
    when = { tool = "Agent", result = "(?s)(?P<what>.+)" }
    say = "It said: {{ what }}"
    [[rule]]
    when = { user = "start (?P<agent>[a-z:-]+)" }
    call = [{ tool = "Agent", input = { description = "d", prompt = "work", subagent_type = "{{ agent }}" } }]
    [[rule]]
    say = "Hello."
"#;

#[allow(clippy::needless_pass_by_value, reason = "a text or a JSON value is written down at the call")]
fn write(stage: &Stage, path: &str, text: impl ToString) {
    let path = stage.config().parent().unwrap().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text.to_string()).unwrap();
}

fn path(stage: &Stage, path: &str) -> String {
    stage.config().parent().unwrap().canonicalize().unwrap().join(path).display().to_string()
}

/// A plugin with one part of each kind, in this folder.
fn demo(stage: &Stage, folder: &str) {
    write(stage, &format!("{folder}/.claude-plugin/plugin.json"), json!({"name": "demo", "version": "1.0"}));
    write(
        stage,
        &format!("{folder}/skills/greet/SKILL.md"),
        "---\ndescription: Greets.\n---\nGreet $0 from ${CLAUDE_PLUGIN_ROOT}.",
    );
    write(
        stage,
        &format!("{folder}/commands/git/tidy.md"),
        "---\nallowed-tools: Bash(touch:*)\n---\n!`touch tidy.txt`Tidy.",
    );
    let agent = "---\nname: critic\ndescription: Judges.\npermissionMode: bypassPermissions\nhooks: {Stop: []}\n---\nYou judge.";
    write(stage, &format!("{folder}/agents/critic.md"), agent);
    write(stage, &format!("{folder}/output-styles/terse.md"), "Be very brief.");
    let command = "echo \"root $CLAUDE_PLUGIN_ROOT\" > hook.txt; echo kept > \"${CLAUDE_PLUGIN_DATA}/kept.txt\"";
    let hooks = json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}});
    write(stage, &format!("{folder}/hooks/hooks.json"), hooks);
}

fn say(stage: &Stage, flags: &[&str], text: &str) -> Ran {
    run(stage.cairn().args(flags).args(["-p", text]))
}

fn sent(stage: &Stage) -> String {
    stage.simulator.requests().last().expect("a request").to_string()
}

fn init(ran: &Ran) -> Value {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["subtype"] == "init")
        .unwrap()
}

/// PLUGIN-1: a plugin that a flag names brings skills, commands, agents, hooks and output styles, all under its name.
#[test]
fn a_plugin_of_a_flag_brings_its_parts() {
    let stage = Stage::new(STARTER);
    demo(&stage, "plugins/demo");
    let folder = path(&stage, "plugins/demo");
    let ran = say(&stage, &["--plugin-dir", &folder], "/demo:greet Ann");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = sent(&stage);
    assert!(text.contains(&format!("Greet Ann from {folder}.")), "{text}");
    assert!(text.contains("- demo:greet: Greets.") && text.contains("- demo:git:tidy"), "{text}");
    assert_eq!(std::fs::read_to_string(stage.project().join("hook.txt")).unwrap(), format!("root {folder}\n"));
    assert!(stage.config().join("plugins/data/demo-inline/kept.txt").exists());

    let ran = say(&stage, &["--plugin-dir", &folder], "/demo:git:tidy");
    assert!(ran.code == Some(0) && stage.project().join("tidy.txt").exists(), "{ran:?}");

    let ran = say(&stage, &["--plugin-dir", &folder], "start demo:critic");
    assert!(ran.stdout.contains("It said:") && ran.stdout.contains("Hello."), "{ran:?}");
    let asked = stage.simulator.requests().iter().any(|request| request.to_string().contains("You judge."));
    assert!(asked, "{ran:?}");

    let style = json!({"outputStyle": "demo:terse"}).to_string();
    say(&stage, &["--plugin-dir", &folder, "--settings", &style], "hello");
    assert!(sent(&stage).contains("# How to answer: demo:terse\\n\\nBe very brief."));

    let flags = ["--plugin-dir", &folder, "--output-format", "stream-json", "--verbose"];
    let init = init(&say(&stage, &flags, "hello"));
    assert_eq!(init["plugins"], json!([{"name": "demo", "path": folder, "source": "demo@inline", "version": "1.0"}]));
    assert_eq!(init["slash_commands"], json!(["demo:git:tidy", "demo:greet"]));
    assert_eq!(init["skills"], json!(["demo:greet"]));
    assert!(init["agents"].as_array().unwrap().contains(&json!("demo:critic")), "{init}");

    let gone = say(&stage, &["--plugin-dir", "gone"], "hello");
    assert!(gone.code != Some(0) && gone.stderr.contains("--plugin-dir gone: no such directory"), "{gone:?}");
}

/// PLUGIN-1: without plugins nothing is sent about them, and a plugin that nobody enabled is none.
#[test]
fn a_plugin_that_is_not_enabled_is_not_used() {
    let stage = Stage::new(SAYS);
    installed(&stage);
    say(&stage, &[], "hello");
    assert!(!sent(&stage).contains("demo") && !stage.project().join("hook.txt").exists(), "{}", sent(&stage));
}

fn installed(stage: &Stage) {
    demo(stage, "config/plugins/cache/mkt/demo/1.0");
    let copy = path(stage, "config/plugins/cache/mkt/demo/1.0");
    let list =
        json!({"version": 2, "plugins": {"demo@mkt": [{"scope": "user", "installPath": copy, "version": "1.0"}]}});
    write(stage, "config/plugins/installed_plugins.json", list);
}

/// PLUGIN-1: what the user installed and enabled counts; so does a folder of the user's settings.
#[test]
fn installed_plugins_and_folders_of_settings_count() {
    let stage = Stage::new(SAYS);
    installed(&stage);
    write(&stage, "config/settings.json", json!({"enabledPlugins": {"demo@mkt": true}}));
    say(&stage, &[], "/demo:greet Ann");
    assert!(sent(&stage).contains("Greet Ann from"), "{}", sent(&stage));
    let listed = run(stage.cairn().args(["plugin", "list"]));
    let expected = "demo  demo@mkt 1.0, installed\n  1 skill, 1 command, 1 agent, 1 hook, 1 output style\n";
    assert_eq!(listed.stdout, expected, "{listed:?}");
    let hooks = run(stage.cairn().args(["hooks", "list"])).stdout;
    assert!(hooks.contains("UserPromptSubmit"), "{hooks}");

    write(&stage, "config/settings.json", json!({"enabledPlugins": {"demo@mkt": false}}));
    assert_eq!(run(stage.cairn().args(["plugin", "list", "--json"])).stdout, "[]\n");

    let folder = path(&stage, "config/plugins/cache/mkt/demo/1.0");
    write(&stage, "config/settings.json", json!({"pluginDirectories": [folder]}));
    let listed: Value = serde_json::from_str(&run(stage.cairn().args(["plugin", "list", "--json"])).stdout).unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["commands"]), (&json!("demo@inline"), &json!(["demo:git:tidy"])));
    assert_eq!((&listed[0]["source"], &listed[0]["hooks"]), (&json!("named by your settings"), &json!(1)));
}

/// PLUGIN-1, SKILL-2: a folder with a manifest among the user's skills is a plugin; among the project's it is none.
#[test]
fn a_folder_with_a_manifest_among_the_skills_is_a_plugin() {
    let stage = Stage::new(SAYS);
    demo(&stage, "config/skills/demo");
    demo(&stage, "project/.claude/skills/other");
    say(&stage, &["--trust"], "/demo:greet Ann");
    assert!(sent(&stage).contains("Greet Ann from"), "{}", sent(&stage));
    let listed: Value = serde_json::from_str(&run(stage.cairn().args(["plugin", "list", "--json"])).stdout).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!("demo@skills-dir")));
    let without = run(stage.cairn().args(["-p", "/demo:greet Ann", "--setting-sources", "project"]));
    assert!(!sent(&stage).contains("Greet Ann from"), "{without:?}");
}

/// PLUGIN-1, TRUST-2: a project's settings enable what the user installed once that is trusted, and can name no folder.
#[test]
fn a_project_enables_a_plugin_once_it_is_trusted() {
    let stage = Stage::new(SAYS);
    installed(&stage);
    demo(&stage, "project/own");
    let asks = json!({"enabledPlugins": {"demo@mkt": true}, "pluginDirectories": ["own"]});
    write(&stage, "project/.claude/settings.json", asks);
    let ran = say(&stage, &[], "/demo:greet Ann");
    assert!(!sent(&stage).contains("Greet Ann") && !stage.project().join("hook.txt").exists(), "{ran:?}");
    let ran = say(&stage, &["--trust"], "/demo:greet Ann");
    assert!(sent(&stage).contains("Greet Ann from"), "{ran:?}");
    let flags = ["--trust", "--output-format", "stream-json", "--verbose"];
    let plugins = init(&say(&stage, &flags, "hello"))["plugins"].clone();
    assert_eq!(plugins[0]["source"], "demo@mkt", "{plugins}");
    assert_eq!(plugins.as_array().unwrap().len(), 1);
}

/// PLUGIN-1: `plugin check` says what is wrong, and ends with 1 if anything is.
#[test]
fn plugin_check_says_what_is_wrong() {
    let stage = Stage::new(SAYS);
    demo(&stage, "good");
    let ran = run(stage.cairn().args(["plugin", "check", &path(&stage, "good")]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("demo: 1 skill, 1 command, 1 agent, 1 hook, 1 output style."), "{ran:?}");
    assert!(ran.stdout.contains("permissionMode has no effect in a plugin's agent"), "{ran:?}");
    write(&stage, "bad/.claude-plugin/plugin.json", "{\n  \"name\": \"bad\",\n  \"version\": 2\n}");
    let ran = run(stage.cairn().args(["plugin", "check", "--json", &path(&stage, "bad")]));
    let troubles: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &troubles[0]["line"], &troubles[0]["error"]), (Some(1), &json!(3), &json!(true)), "{ran:?}");
}
