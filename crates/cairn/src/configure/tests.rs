use serde_json::{Value, json};
use session::Home;
use settings::SettingSources;
use settings::keys::{KEYS, Kind, SettingKey};

use super::*;
use crate::model;
use crate::trusted_settings::{RunTrust, judge};

#[path = "../../../../tests/setting_examples.rs"]
mod examples;

use examples::Examples;

/// Keys that decide about something else, by how they begin.
const ELSEWHERE: [(&str, &str); 12] = [
    ("mcpServers", "servers are read when a session starts"),
    ("disabledMcpServers", "servers are read when a session starts"),
    ("model", "which model is asked is chosen before"),
    ("searchPastContext", "it is a part of what the prompt says of memory"),
    ("teammates", "it adds a tool"),
    ("teamDeletions", "it is read whenever folders are brought into step"),
    ("extractHeadless", "it is about runs without a terminal"),
    ("outputStyle", "there is no style of that name"),
    ("enabledPlugins", "it is not installed"),
    ("pluginDirectories", "there is no such folder"),
    ("webPrivateHosts", "it is a part of a tool"),
    ("webSearch", "it adds a tool"),
];

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

struct Stage {
    _root: tempfile::TempDir,
    place: ProgramPaths,
}

impl Stage {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("project");
        std::fs::create_dir(&directory).unwrap();
        let home = Home::at(root.path().join("home"));
        let place = ProgramPaths {
            home,
            directory,
            user_home: None,
            sources: SettingSources::default(),
            plugin_folders: Vec::new(),
        };
        Self { _root: root, place }
    }

    async fn configuration(&self, args: &RunArgs, settings: &Value) -> Configuration {
        let judged = judge(&self.place, Some(&settings.to_string()), RunTrust::No).unwrap();
        let of_model = judge(&self.place, Some(&base().to_string()), RunTrust::No).unwrap();
        let chosen = model::choose(None, None, &of_model.settings).await.unwrap();
        configure(&Inputs::read(args, &self.place, &judged, &chosen, None).unwrap()).unwrap().0
    }
}

fn base() -> Value {
    let servers = json!({"a": {"baseUrl": "http://127.0.0.1:9", "model": "a"}});
    json!({"model": "a", "dreamModel": "dreams", "smallModel": "small", "providers": servers, "notes": true})
}

/// CONF-1: each key changes what a session starts with. That it counts when it is turned while one runs is seen at a
/// terminal.
#[tokio::test]
async fn every_key_decides_something() {
    let (stage, args) = (Stage::new(), RunArgs::default());
    let (base, mut without) = (base(), Vec::new());
    let nothing = stage.configuration(&args, &base).await;
    for key in KEYS {
        let mut is_changed = false;
        for value in key.kind.examples() {
            is_changed |= stage.configuration(&args, &with(&base, key, &value)).await != nothing;
        }
        if is_changed == ELSEWHERE.iter().any(|(name, _)| key.name.starts_with(name)) {
            without.push(key.name);
        }
    }
    assert!(without.is_empty(), "{without:?}");
}

/// CONF-1: the same files, flags and place give the same.
#[tokio::test]
async fn what_has_a_say_decides_alone() {
    let stage = Stage::new();
    let settings = json!({"permissions": {"allow": ["Read(/a)"]}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}});
    let mut both = base();
    both.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let args = RunArgs::default();
    assert_eq!(stage.configuration(&args, &both).await, stage.configuration(&args, &both).await);
    let denied = RunArgs { disallowed_tools: vec!["Bash".to_owned()], ..RunArgs::default() };
    assert_ne!(stage.configuration(&args, &both).await, stage.configuration(&denied, &both).await);
}
