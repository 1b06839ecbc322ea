//! Settings that change while a session runs: every key is turned, and what can be seen of it is looked at.

use serde_json::{Value, json};
use settings::keys::Kind;
use settings::keys::{self, KEYS, SettingKey};

use crate::stage::{Stage, run};
use crate::terminal::{ENTER, Screen, Terminal};

/// A model that answers, or does what it is asked to.
const WORKER: &str = r#"
    [[rule]]
    name = "over"
    when = { result = "." }
    say = "Done."
    [[rule]]
    name = "write"
    when = { user = "write" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/made.txt", content = "made" } }]
    [[rule]]
    name = "variable"
    when = { user = "variable" }
    call = [{ tool = "Bash", input = { command = "printenv GREETING" } }]
    [[rule]]
    say = "Done."
"#;

/// What is told when something else holds from now on.
const CHANGED: &str = "the settings have changed and are now in effect";

/// A session in plain lines.
struct House {
    stage: Stage,
    terminal: Terminal,
}

impl House {
    fn open(args: &[&str]) -> Self {
        let stage = Stage::new(WORKER);
        std::fs::create_dir_all(stage.config()).unwrap();
        let mut terminal = Terminal::open(stage.cairn().arg("--plain").args(args).env("TERM", "dumb"), 200, 200);
        terminal.until("a prompt", |screen| last(screen) == ">");
        Self { stage, terminal }
    }

    fn user(&self, settings: &Value) {
        std::fs::write(self.stage.config().join("settings.json"), settings.to_string()).unwrap();
    }

    /// Says something, and returns all that was printed until the next prompt. Questions are answered with no.
    fn say(&mut self, text: &str) -> String {
        let (from, said) = (self.terminal.written.len(), format!("> {text}"));
        let before = self.terminal.screen().count(&said);
        self.terminal.keys(&format!("{text}{ENTER}"));
        loop {
            let screen = self.terminal.until("a prompt or a question", |screen| {
                screen.count(&said) > before && (last(screen) == ">" || last(screen).ends_with("say why not:"))
            });
            if last(&screen) == ">" {
                return String::from_utf8_lossy(&self.terminal.written[from..]).into_owned();
            }
            self.terminal.keys("n");
            self.terminal.until("the answer", |screen| last(screen).ends_with("say why not: n"));
            self.terminal.keys(ENTER);
            self.terminal.until("the answer taken", |screen| !last(screen).contains("say why not"));
        }
    }

    /// The conversation's last request. A selector is asked at the same time, and has no tools.
    fn last_request(&self) -> Value {
        let is_said = |request: &Value| {
            !request["tools"].is_null() && !request.to_string().contains("Beside the conversation, write")
        };
        self.stage.simulator.requests().into_iter().rfind(is_said).unwrap()
    }
}

/// The last row that is not empty.
fn last(screen: &Screen) -> String {
    screen.rows.iter().rev().find(|row| !row.trim().is_empty()).map(|row| row.trim().to_owned()).unwrap_or_default()
}

/// Keys of which a conversation that runs is told nothing, by how they begin, and why. Each is turned in a test below, or of
/// its own.
const LATER: [(&str, &str); 10] = [
    ("mcpServers", "servers are connected when a session starts"),
    ("disabledMcpServers", "servers are connected when a session starts"),
    ("language", "it is a part of the prompt, which stays as it was sent until /clear"),
    ("outputStyle", "it is a part of the prompt, which stays as it was sent until /clear"),
    ("searchPastContext", "it is a part of the prompt, which stays as it was sent until /clear"),
    ("teammates", "it adds a tool, which is a part of the prompt"),
    ("extractHeadless", "it is about runs without a terminal"),
    ("webPrivateHosts", "it is a part of a tool, which stays as it is"),
    ("webSearch", "it adds a tool, which is a part of the prompt"),
    ("teamDeletions", "it is read whenever folders are brought into step"),
];

fn hook(command: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": command}]}])
}

/// A plugin with a hook.
fn plugin(stage: &Stage) -> std::path::PathBuf {
    let folder = stage.config().with_file_name("demo");
    std::fs::create_dir_all(folder.join("hooks")).unwrap();
    std::fs::write(folder.join("hooks/hooks.json"), json!({"hooks": {"Notification": hook("true")}}).to_string())
        .unwrap();
    folder
}

fn install(plugin: &std::path::Path, stage: &Stage) {
    let list = json!({"version": 2, "plugins": {"demo@mkt": [{"scope": "user", "installPath": plugin}]}});
    std::fs::create_dir_all(stage.config().join("plugins")).unwrap();
    std::fs::write(stage.config().join("plugins/installed_plugins.json"), list.to_string()).unwrap();
}

/// Settings in which a key has something to say, and two values of it that say different things.
fn turned(key: &SettingKey, stage: &Stage) -> (Value, [Value; 2]) {
    let inside = |name: &str| {
        let path = stage.config().with_file_name(name);
        std::fs::create_dir_all(&path).unwrap();
        json!(path)
    };
    let is = |other: &SettingKey| other.name == key.name;
    let base = match key.name {
        "providers" => json!({"model": "mine/m"}),
        name if name.starts_with("sandbox.network.denied") => {
            json!({"sandbox": {"enabled": true, "network": {"allowedDomains": ["*"]}}})
        }
        name if name.starts_with("sandbox.") && !is(&keys::SANDBOX) => json!({"sandbox": {"enabled": true}}),
        "notesCompact" | "notesShare" | "notesAfterTokens" | "notesEveryTokens" | "notesEveryCalls" => {
            json!({"notes": true})
        }
        "disableAllHooks" | "allowManagedHooksOnly" => json!({"hooks": {"Notification": hook("true")}}),
        "apiThinkingTurns" => json!({"apiContextManagement": true}),
        _ => json!({}),
    };
    let provider = |window: u64| json!({"mine": {"type": "anthropic", "baseUrl": stage.simulator.url(), "keyEnv": "ANTHROPIC_API_KEY", "window": window}});
    let values = match &key.kind {
        Kind::Switch => [json!(true), json!(false)],
        Kind::Count => [json!(5_000), json!(6_000)],
        Kind::Amount => [json!(5.5), json!(6)],
        Kind::OneOf([only]) => [json!(only), Value::Null],
        Kind::OneOf(names) => [json!(names[names.len() - 1]), json!(names[0])],
        Kind::Text if is(&keys::MEMORY_DIRECTORY) => [inside("one"), inside("two")],
        Kind::Text => [json!("claude-opus-5"), json!("claude-haiku-4-5")],
        Kind::Texts if is(&keys::DIRECTORIES) => [json!([inside("one")]), json!([inside("two")])],
        Kind::Texts if key.name.starts_with("permissions.") => [json!(["Bash(true:*)"]), json!(["Bash(false:*)"])],
        Kind::Texts if key.name.starts_with("sandbox.filesystem") => [json!([inside("one")]), json!([inside("two")])],
        Kind::Texts if is(&keys::SANDBOX_DOMAINS) => [json!(["*"]), json!(["example.org"])],
        Kind::Texts if is(&keys::SANDBOX_NO_DOMAINS) => [json!(["example.org"]), json!([])],
        Kind::Texts if is(&keys::PLUGIN_DIRECTORIES) => [json!([plugin(stage)]), json!([])],
        Kind::Texts => [json!(["one"]), json!(["two"])],
        Kind::List(_) if is(&keys::SANDBOX_NO_FILES) => [json!([{"path": "/one"}]), json!([{"path": "/two"}])],
        Kind::List(_) => [json!([{"name": "ONE"}]), json!([{"name": "TWO"}])],
        Kind::Agents => ["one", "two"].map(|text| json!({"painter": {"description": text, "prompt": "You paint."}})),
        Kind::Hooks(_) => [hook("true"), hook("true; true")],
        Kind::Object => [json!({"a": 1}), json!({"a": 2})],
        Kind::Counts => [json!({"Bash": 1_000}), json!({"Bash": 2_000})],
        Kind::Switches => {
            install(&plugin(stage), stage);
            [json!({"demo@mkt": true}), json!({"demo@mkt": false})]
        }
        Kind::Variables => [json!({"GREETING": "one"}), json!({"GREETING": "two"})],
        Kind::Entries(_) if is(&keys::PROVIDERS) => [provider(100_000), provider(200_000)],
        Kind::Entries(_) => {
            let price = |input: u64| {
                let price = json!({"input": input, "output": 5, "cacheWrite5m": 2, "cacheWrite1h": 3, "cacheRead": 1});
                json!({"claude-sonnet-5": price})
            };
            [price(1), price(2)]
        }
        Kind::Entry(_) => ["true", "true; true"].map(|command| json!({"type": "command", "command": command})),
    };
    (base, values)
}

fn with(base: &Value, key: &SettingKey, value: &Value) -> Value {
    let mut settings = base.clone();
    let place = key.name.split('.').fold(&mut settings, |place, part| {
        if !place.is_object() {
            *place = json!({});
        }
        &mut place[part]
    });
    *place = value.clone();
    settings
}

/// CONF-2: whatever key is turned while a session runs, it counts from the next round on, and that is told.
#[test]
fn every_key_counts_from_the_next_round_on() {
    let mut house = House::open(&[]);
    let mut wrong = Vec::new();
    for (at, key) in KEYS.iter().enumerate() {
        let (base, [one, other]) = turned(key, &house.stage);
        house.user(&with(&base, key, &one));
        house.say(&format!("first {at}"));
        house.user(&with(&base, key, &other));
        let told = house.say(&format!("second {at}")).contains(CHANGED);
        if told == LATER.iter().any(|(later, _)| key.name.starts_with(later)) {
            wrong.push(key.name);
        }
        if house.say(&format!("third {at}")).contains(CHANGED) {
            wrong.push("told twice");
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// CONF-2: what a changed file says can be seen in what is sent and done.
#[test]
fn what_has_changed_can_be_seen_in_what_is_done() {
    let mut house = House::open(&[]);
    let memories = house.stage.config().with_file_name("memories");
    std::fs::create_dir_all(&memories).unwrap();
    let memory = "---\nname: deploys\ndescription: Deploys to production need two approvals\ntype: project\n---\nTwo sign off.\n";
    std::fs::write(memories.join("deploys.md"), memory).unwrap();
    house.say("hello");
    let before = house.last_request();
    let text_of = |request: &Value| format!("{} {}", request["system"], request["tools"]);

    house.user(&json!({"maxOutputTokens": 4321, "cacheTtl": "1h"}));
    house.say("hello");
    let request = house.last_request();
    assert_eq!(request["max_tokens"], 4321);
    assert!(request.to_string().contains(r#""ttl":"1h""#), "{request}");
    let plain = |text: String| text.replace(r#","ttl":"1h""#, "");
    assert_eq!(plain(text_of(&request)), text_of(&before), "the prompt stays");

    house.user(&json!({"effortLevel": "low"}));
    house.say("hello");
    let request = house.last_request();
    assert_eq!(request["output_config"], json!({"effort": "low"}));
    assert_eq!(text_of(&request), text_of(&before), "the prompt stays");

    house.user(&json!({"model": "claude-opus-5"}));
    house.say("hello");
    assert_eq!(house.last_request()["model"], "claude-opus-5");
    house.user(&json!({}));
    house.say("hello");
    assert_eq!(house.last_request()["model"], before["model"]);

    house.user(&json!({"permissions": {"defaultMode": "acceptEdits"}}));
    house.say("write");
    assert!(house.stage.project().join("made.txt").exists());
    std::fs::remove_file(house.stage.project().join("made.txt")).unwrap();
    house.user(&json!({}));
    house.say("write");
    assert!(!house.stage.project().join("made.txt").exists(), "it was asked about");

    house
        .user(&json!({"env": {"GREETING": "hello from the settings"}, "permissions": {"allow": ["Bash(printenv:*)"]}}));
    house.say("variable");
    assert!(house.last_request().to_string().contains("hello from the settings"));

    house.user(&json!({"autoMemoryDirectory": memories}));
    house.say("hello");
    // They are read beside the conversation, which waits for nobody.
    let asks = |house: &mut House| {
        house.say("what do deploys to production need? approvals");
        house.last_request().to_string().contains("Two sign off.")
    };
    assert!((0..100).any(|_| asks(&mut house)));
    for off in [json!({"recall": false}), json!({"autoMemoryEnabled": false})] {
        let mut house = House::open(&[]);
        house.user(&with(&json!({}), &keys::MEMORY_DIRECTORY, &json!(memories)));
        house.say("hello");
        house.user(&with(&off, &keys::MEMORY_DIRECTORY, &json!(memories)));
        house.say("hello");
        assert!(!(0..5).any(|_| asks(&mut house)), "{off}");
    }

    house.user(&json!({"sandbox": {"enabled": true}}));
    house.say("hello");
    assert!(house.say("/sandbox").contains("the sandbox is on"));
}

/// CONF-2: what belongs to the prompt stays as it was sent, and counts from the next `/clear` on.
#[test]
fn the_text_of_the_prompt_changes_with_the_next_clear() {
    for (key, value, sign) in [
        ("language", json!("French"), "French"),
        ("outputStyle", json!("Explanatory"), "Explanatory"),
        ("searchPastContext", json!(true), "Searching past context"),
        ("teammates", json!(true), "starts a teammate"),
    ] {
        let mut house = House::open(&[]);
        let prompt = |house: &House| {
            let request = house.last_request();
            format!("{} {}", request["system"], request["tools"])
        };
        house.say("hello");
        let before = prompt(&house);
        assert!(!before.contains(sign), "{key}: {before}");
        house.user(&json!({key: value}));
        house.say("hello");
        assert_eq!(prompt(&house), before, "{key}");
        house.say("/clear");
        house.say("hello");
        assert!(prompt(&house).contains(sign), "{key}: {}", prompt(&house));
        house.user(&json!({}));
        house.say("/clear");
        house.say("hello");
        assert!(!prompt(&house).contains(sign), "{key}");
    }
}

/// CONF-2, DREAM-1: whether dreams come, when, and which model dreams, counts from the next turn on.
#[test]
fn dreams_come_as_the_settings_say_now() {
    let mut house = House::open(&[]);
    let kept =
        run(house.stage.cairn().args(["memory", "add", "Tabs", "--type", "feedback", "--body", "They like tabs."]));
    assert_eq!(kept.code, Some(0), "{kept:?}");
    // Nobody else talks to these models.
    let (one, other) = ("claude-opus-5", "claude-opus-4-8");
    let settings =
        |dream: bool, model: &str| json!({"dreamSessions": 0, "dreamHours": 0, "dream": dream, "dreamModel": model});
    let dreamt = |house: &House, model: &str| house.stage.simulator.requests().iter().any(|one| one["model"] == model);
    house.user(&settings(false, one));
    house.say("hello");
    house.say("hello");
    house.user(&settings(true, other));
    house.say("hello");
    let began = std::time::Instant::now();
    while !dreamt(&house, other) {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "{:?}", house.stage.simulator.report());
        std::thread::yield_now();
    }
    assert!(!dreamt(&house, one));
}

/// CONF-2: what was chosen by hand, by a flag or a command, a file does not change.
#[test]
fn what_was_chosen_by_hand_stays() {
    let files =
        json!({"permissions": {"defaultMode": "acceptEdits"}, "model": "claude-opus-5", "sandbox": {"enabled": false}});
    let mut house = House::open(&["--permission-mode", "plan", "--model", "haiku"]);
    house.say("/sandbox on");
    house.user(&files);
    house.say("write");
    assert!(!house.stage.project().join("made.txt").exists());
    assert_eq!(house.last_request()["model"], "claude-haiku-4-5");
    assert!(house.say("/mode").contains("the mode is plan"));
    assert!(house.say("/sandbox").contains("the sandbox is on"));

    let mut house = House::open(&[]);
    house.say("/mode plan");
    house.user(&files);
    house.say("write");
    assert!(!house.stage.project().join("made.txt").exists());
    assert!(house.say("/mode").contains("the mode is plan"));
    assert_eq!(house.last_request()["model"], "claude-opus-5");
}

/// TRUST-2, CONF-2: what a project's files newly say while a session runs is not let in, whatever key it is.
#[test]
fn a_projects_files_gain_nothing_while_a_session_runs() {
    let mut house = House::open(&["--trust"]);
    house.user(&json!({"sandbox": {"enabled": true}}));
    house.say("hello");
    let before = house.last_request();
    std::fs::create_dir_all(house.stage.project().join(".claude")).unwrap();
    let claims = json!({
        "permissions": {"defaultMode": "acceptEdits", "allow": ["Bash", "Write"]}, "model": "claude-opus-5",
        "sandbox": {"enabled": false}, "maxOutputTokens": 77, "cacheTtl": "1h", "autoMemoryEnabled": false,
    });
    house.stage.write(".claude/settings.json", &claims.to_string());
    let told = house.say("write");
    assert!(
        told.contains("left out because this directory is not trusted with it") && !told.contains(CHANGED),
        "{told}"
    );
    assert!(!house.stage.project().join("made.txt").exists());
    let request = house.last_request();
    assert_eq!((&request["model"], &request["max_tokens"]), (&before["model"], &before["max_tokens"]));
    assert!(house.say("/sandbox").contains("the sandbox is on"));
}
