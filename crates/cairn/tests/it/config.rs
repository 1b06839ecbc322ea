//! `cairn config`: what is set, where, and changing it.

use serde_json::{Value, json};

use crate::stage::{Ran, Stage, run};

const HELLO: &str = "[[rule]]\nsay = \"Hello.\"\n";

fn config(stage: &Stage, args: &[&str]) -> Ran {
    run(stage.cairn().arg("config").args(args))
}

fn user(stage: &Stage, text: &str) {
    std::fs::create_dir_all(stage.config()).unwrap();
    std::fs::write(stage.config().join("settings.json"), text).unwrap();
}

fn user_text(stage: &Stage) -> String {
    std::fs::read_to_string(stage.config().join("settings.json")).unwrap()
}

/// TRUST-1: every value is printed with whose it is, where it stands, and why it does not count.
#[test]
fn every_value_is_shown_with_its_origin() {
    let stage = Stage::new(HELLO);
    user(&stage, "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"deny\": [\"Read(.env)\"]\n  }\n}\n");
    std::fs::create_dir_all(stage.project().join(".claude")).unwrap();
    stage.write(".claude/settings.json", r#"{"model": "haiku", "providers": {"x": {"baseUrl": "http://x"}}}"#);
    let ran = config(&stage, &["show"]);
    assert_eq!(ran.stdout, "model = \"opus\"\npermissions.deny = \"Read(.env)\"\n");
    let ran = config(&stage, &["show", "--origin"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("model = \"opus\"  user ") && lines[0].ends_with("config/settings.json:2"), "{ran:?}");
    assert!(lines[1].starts_with("model = \"haiku\"  project ") && lines[1].ends_with("not trusted"), "{ran:?}");
    assert!(lines[2].contains("providers.x") && lines[2].contains("never from there"), "{ran:?}");
    let ran = config(&stage, &["show", "--origin", "--json"]);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown[3]["origin"]["line"], 4);
    assert_eq!((&shown[0]["counts"], &shown[1]["counts"]), (&json!(true), &json!(false)));
}

/// CONF-1: `config check` finds what is wrong, names Claude Code's own keys, and says so by its code.
#[test]
fn findings_are_told_with_line_and_column() {
    let stage = Stage::new(HELLO);
    user(&stage, "{\n  \"spinnerTipsEnabled\": true\n}");
    let ran = config(&stage, &["check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("note:") && ran.stdout.contains(":2:3: spinnerTipsEnabled is a setting of Claude Code"),
        "{ran:?}"
    );

    user(&stage, "{\n  \"modle\": \"x\",\n  \"notes\": 7,\n  \"permissions\": {\"allow\": [\"((\"]}\n}");
    std::fs::create_dir_all(stage.project().join(".claude")).unwrap();
    stage.write(".claude/settings.local.json", "{\"a\":");
    let ran = config(&stage, &["check", "--json"]);
    assert_eq!(ran.code, Some(1));
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let told: Vec<String> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{}:{} {}", one["line"], one["column"], one["text"].as_str().unwrap()))
        .collect();
    assert!(told[0].starts_with("2:3 unknown key modle; did you mean model?"), "{told:?}");
    assert!(told[1].starts_with("3:3 notes should be true or false"), "{told:?}");
    assert!(told[2].starts_with("4:29 the permission rule `((`"), "{told:?}");
    assert!(told[3].starts_with("1:5 not JSON"), "{told:?}");
}

/// CONF-1: what is valid for Claude Code is no error. A value that there is not here has another in its place, which is said and
/// counts, also where a weaker file says something else; a key that is like none known is left alone.
#[test]
fn what_only_claude_code_knows_is_no_error() {
    for mode in ["auto", "dontAsk", "delegate"] {
        let stage = Stage::new(HELLO);
        user(&stage, r#"{"permissions": {"defaultMode": "acceptEdits"}}"#);
        let managed = stage.config().join("managed");
        std::fs::create_dir_all(&managed).unwrap();
        let settings = json!({
            "permissions": {"defaultMode": mode}, "newerThanThisProgram": {"is": 1},
            "statusLine": {"type": "command", "command": "true", "padding": 0.5},
        });
        std::fs::write(managed.join("managed-settings.json"), settings.to_string()).unwrap();
        let config = |word: &str| run(stage.cairn().args(["config", word]).env("CAIRN_MANAGED_DIR", &managed));
        let ran = config("check");
        assert_eq!((ran.code, ran.stdout.matches("error:").count()), (Some(0), 0), "{ran:?}");
        let told = format!("permissions.defaultMode: \"{mode}\" ");
        assert!(ran.stdout.contains(&told) && ran.stdout.contains("\"default\" is used instead"), "{ran:?}");
        assert!(ran.stdout.contains("warning:") && ran.stdout.contains("unknown key newerThanThisProgram"), "{ran:?}");
        let shown = config("show").stdout;
        assert!(shown.contains("permissions.defaultMode = \"default\""), "{shown}");
        assert!(shown.contains("statusLine = "), "{shown}");
    }
}

/// TRUST-1: a key is set and unset, and every other byte of the file stays.
#[test]
fn a_key_is_changed_and_the_rest_of_the_file_stays() {
    let stage = Stage::new(HELLO);
    let text = "{\r\n\t\"zeta\":  [1 ,2],\r\n\r\n\t\"notes\" : true\r\n}";
    user(&stage, text);
    assert_eq!(config(&stage, &["set", "notes", "false", "--user"]).code, Some(0));
    assert_eq!(user_text(&stage), text.replace("true", "false"));
    assert_eq!(config(&stage, &["set", "model", "opus", "--user"]).code, Some(0));
    assert_eq!(user_text(&stage), text.replace("true\r\n", "false,\r\n\t\"model\": \"opus\"\r\n"));
    assert_eq!(config(&stage, &["unset", "model", "--user"]).code, Some(0));
    assert_eq!(user_text(&stage), text.replace("true", "false"));
    assert_eq!(config(&stage, &["unset", "model", "--user"]).code, Some(1));
    assert_eq!(config(&stage, &["set", "env.RUST_LOG", "debug", "--local"]).code, Some(0));
    let made = std::fs::read_to_string(stage.project().join(".claude/settings.local.json")).unwrap();
    assert_eq!(made, "{\n  \"env\": {\n    \"RUST_LOG\": \"debug\"\n  }\n}\n");
}

/// CONF-1: what would not be read is not written, and a broken file is not touched.
#[test]
fn nothing_is_written_that_would_not_count() {
    let stage = Stage::new(HELLO);
    user(&stage, "{}");
    for (args, told) in [
        (&["set", "modle", "x", "--user"][..], "did you mean model?"),
        (&["set", "notes", "maybe", "--user"], "should be true or false"),
        (&["set", "permissions.allow", "Read", "--user"], "a list of strings"),
        (&["set", "permissions.allow", "[\"((\"]", "--user"], "cannot be understood"),
        (&["set", "providers.x", r#"{"model": "m"}"#, "--user"], "should be {"),
        (&["set", "providers.x", r#"{"baseUrl": "http://x"}"#, "--local"], "use --user"),
        (&["set", "autoMemoryDirectory", "/a/b", "--local"], "use --user"),
        (&["set", "permissions.defaultMode", "bypassPermissions", "--local"], "use --user"),
        (&["set", "env.PATH", "x", "--local"], "use --user"),
        (&["set", "env", r#"{"LD_PRELOAD": "x"}"#, "--local"], "use --user"),
    ] {
        let ran = config(&stage, args);
        assert!(ran.code != Some(0) && ran.stderr.contains(told), "{args:?}: {ran:?}");
    }
    assert_eq!(user_text(&stage), "{}");
    assert!(!stage.project().join(".claude").exists());
    assert_eq!(config(&stage, &["set", "notes", "false"]).code, Some(2), "which file?");
    user(&stage, "{\"model\": }");
    let ran = config(&stage, &["set", "notes", "false", "--user"]);
    assert!(
        ran.code == Some(1) && ran.stderr.contains(":1:11: not JSON") && user_text(&stage) == "{\"model\": }",
        "{ran:?}"
    );
}
