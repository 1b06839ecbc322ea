#![allow(clippy::disallowed_methods, reason = "tests write the files they are about")]
#![allow(clippy::needless_pass_by_value, reason = "a text or a JSON value is written down at the call")]

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use tempfile::TempDir;

use super::installed::EnabledPlugin;
use super::*;

struct PluginFiles(TempDir);

impl PluginFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, relative: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join(relative)
    }

    fn write(&self, relative: &str, text: impl ToString) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.to_string()).unwrap();
    }

    fn load(&self, folder: &str) -> Result<Plugin, ExtensionTrouble> {
        let place = PluginPlace::named(&self.path(folder), PluginOrigin::Flag);
        Plugin::load(&place, &self.path("data"))
    }
}

fn names(plugin: &Plugin) -> Vec<&str> {
    plugin.skills.iter().map(|skill| skill.name.as_str()).collect()
}

/// PLUGIN-1: the usual folders need no manifest; what they hold is called by the plugin's name.
#[test]
fn a_folder_without_a_manifest_is_a_plugin_of_its_name() {
    let disk = PluginFiles::new();
    disk.write("demo/skills/hello/SKILL.md", "Hello from ${CLAUDE_PLUGIN_ROOT}.");
    disk.write("demo/skills/other/SKILL.md", "---\nname: second\n---\nOther.");
    disk.write("demo/commands/sub/one.md", "One.");
    disk.write("demo/agents/critic.md", "---\nname: critic\ndescription: Judges.\n---\nJudge ${CLAUDE_PLUGIN_ROOT}.");
    disk.write("demo/output-styles/terse.md", "---\nname: Terse\n---\nBe brief.");
    disk.write("demo/hooks/hooks.json", json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}));
    disk.write("demo/.mcp.json", json!({"mcpServers": {"db": {"command": "${CLAUDE_PLUGIN_ROOT}/db"}}}));
    let plugin = disk.load("demo").unwrap();
    assert_eq!((plugin.name.as_str(), plugin.id.as_str()), ("demo", "demo@inline"));
    assert_eq!(names(&plugin), ["demo:hello", "demo:other", "demo:sub:one"]);
    let root = disk.path("demo");
    assert_eq!((&plugin.folders.root, &plugin.folders.data), (&root, &disk.path("data/demo-inline")));
    assert_eq!(plugin.skills[0].plugin.as_ref(), Some(&plugin.folders));
    assert_eq!((plugin.agents[0].prefix.as_str(), plugin.agents.len()), ("demo", 1));
    assert!(plugin.agents[0].text.contains(&format!("Judge {}.", root.display())));
    assert_eq!(plugin.styles, [PluginStyle { name: "demo:Terse".into(), text: "Be brief.".into() }]);
    let (hooks, troubles) = plugin.hooks(Path::new("/"));
    assert_eq!((hooks.len(), troubles.len()), (1, 0));
    assert_eq!(hooks[0].variables["CLAUDE_PLUGIN_ROOT"], root.display().to_string());
    let server = &plugin.servers[0].servers["db"];
    assert_eq!(server["command"], format!("{}/db", root.display()));
    assert_eq!(server["env"]["CLAUDE_PLUGIN_DATA"], disk.path("data/demo-inline").display().to_string());
    assert_eq!(plugin.troubles, []);
}

/// PLUGIN-1: a manifest adds places for skills, hooks and servers, and replaces those for commands, agents and styles.
#[test]
fn a_manifest_says_where_parts_are() {
    let disk = PluginFiles::new();
    let manifest = json!({
        "name": "demo", "version": "1.2", "unknown": [1], "metadata": 3, "skills": ["./more", "./one"],
        "commands": {"hi": {"source": "./docs/hi.md", "description": "Says hi."}, "in": {"content": "Inline."}},
        "agents": "./people/critic.md", "hooks": {"Stop": []}, "mcpServers": ["./servers.json", {"b": {"command": "b"}}],
    });
    disk.write("x/.claude-plugin/plugin.json", manifest);
    disk.write("x/skills/usual/SKILL.md", "Usual.");
    disk.write("x/more/added/SKILL.md", "Added.");
    disk.write("x/one/SKILL.md", "One.");
    disk.write("x/commands/ignored.md", "Ignored.");
    disk.write("x/docs/hi.md", "Hi.");
    disk.write("x/people/critic.md", "---\ndescription: Judges.\n---\nJudge.");
    disk.write("x/servers.json", json!({"a": {"command": "a"}}));
    let plugin = disk.load("x").unwrap();
    assert_eq!(names(&plugin), ["demo:usual", "demo:added", "demo:one", "demo:hi", "demo:in"]);
    assert_eq!((plugin.skills[3].description.as_str(), plugin.skills[3].body.as_str()), ("Says hi.", "Hi."));
    assert_eq!(plugin.version.as_deref(), Some("1.2"));
    let servers: Vec<&str> = plugin.server_names().collect();
    assert_eq!((servers, plugin.hook_files.len(), plugin.agents.len()), (vec!["a", "b"], 1, 1));
    assert_eq!(plugin.troubles, []);
}

/// PLUGIN-1: a known key of the wrong type stops the plugin, and so does a path that is none.
#[test]
fn a_known_key_of_the_wrong_type_stops_the_plugin() {
    let disk = PluginFiles::new();
    for (manifest, why) in [
        (json!({"name": "a", "version": 1}).to_string(), "version should be a string; the plugin is left out"),
        (json!({"name": "a", "skills": "skills"}).to_string(), "skills should be a path that begins with `./`"),
        (json!({"name": "a", "agents": ["/etc/agents"]}).to_string(), "agents should be a path that begins with `./`"),
        (json!({"name": "a b"}).to_string(), "\"a b\" cannot be a name"),
        (json!({"name": "../a"}).to_string(), "cannot be a name"),
        (json!({}).to_string(), "it has no name"),
        ("[]".to_owned(), "this is not a JSON object"),
        ("{".to_owned(), "this is not JSON"),
    ] {
        disk.write("x/.claude-plugin/plugin.json", manifest);
        let trouble = disk.load("x").unwrap_err().to_string();
        assert!(trouble.contains(why) && trouble.contains("plugin.json:"), "{trouble}");
    }
    assert!(disk.load("gone").unwrap_err().to_string().contains("the plugin is left out"));
}

/// PLUGIN-1: neither a path nor a link leads out of the plugin.
#[test]
fn nothing_leads_out_of_a_plugin() {
    let disk = PluginFiles::new();
    disk.write("secret/SKILL.md", "Secret.");
    disk.write("secret/hooks.json", json!({"hooks": {"Stop": []}}));
    let manifest = json!({"name": "x", "skills": ["./../secret"], "hooks": "./../secret/hooks.json", "commands": "./../secret/SKILL.md"});
    disk.write("x/.claude-plugin/plugin.json", manifest);
    fs::create_dir_all(disk.path("x/skills")).unwrap();
    symlink(disk.path("secret"), disk.path("x/skills/linked")).unwrap();
    symlink(disk.path("secret"), disk.path("x/agents")).unwrap();
    symlink(disk.path("secret/hooks.json"), disk.path("x/.mcp.json")).unwrap();
    let plugin = disk.load("x").unwrap();
    assert_eq!((names(&plugin), plugin.agents.len()), (vec![], 0));
    assert_eq!((plugin.hook_files.len(), plugin.servers.len()), (0, 0));
    assert!(plugin.troubles.len() >= 3, "{:?}", plugin.troubles);
    assert!(!format!("{plugin:?}").contains("Secret."));
}

/// PLUGIN-1: installed plugins are those that are enabled; one of a directory marketplace is read where it is.
#[test]
fn installed_plugins_are_found_where_they_are_read() {
    let disk = PluginFiles::new();
    let installed = |path: &str| json!([{"scope": "user", "installPath": disk.path(path), "version": "1"}]);
    let for_project = json!([
        {"scope": "user", "installPath": disk.path("cache/usual")},
        {"scope": "project", "installPath": disk.path("cache/here"), "projectPath": disk.path("project")},
    ]);
    let list = json!({"version": 2, "plugins": {
        "demo@mkt": installed("cache/demo"), "git@far": installed("cache/git"), "off@far": installed("cache/off"),
        "both@far": for_project,
    }});
    disk.write("config/plugins/installed_plugins.json", &list);
    let known = json!({
        "mkt": {"source": {"source": "directory", "path": disk.path("mkt")}, "installLocation": disk.path("mkt")},
        "far": {"source": {"source": "github", "repo": "a/b"}, "installLocation": disk.path("far")},
    });
    disk.write("config/plugins/known_marketplaces.json", known);
    let listed = json!({"name": "mkt", "owner": {"name": "o"}, "metadata": {"pluginRoot": "./all"}, "plugins": [
        {"name": "demo", "source": "./demo", "description": "From the list."},
    ]});
    disk.write("mkt/.claude-plugin/marketplace.json", listed);
    disk.write("mkt/all/demo/commands/now.md", "Now.");
    disk.write("cache/demo/commands/then.md", "Then.");
    let far = json!({"name": "far", "owner": {"name": "o"}, "plugins": [
        {"name": "git", "source": {"source": "github", "repo": "a/git"}, "strict": false, "skills": ["./one"]},
    ]});
    disk.write("far/.claude-plugin/marketplace.json", far);
    disk.write("cache/git/one/SKILL.md", "One.");
    let enabled = ["demo@mkt", "git@far", "both@far", "gone@far", "x@builtin"]
        .map(|id| EnabledPlugin { id: id.to_owned(), origin: PluginOrigin::Installed });
    let (places, troubles) = installed::places(&disk.path("config"), &disk.path("project"), &enabled);
    let folders: Vec<&PathBuf> = places.iter().map(|place| &place.folder).collect();
    assert_eq!(folders, [&disk.path("mkt/all/demo"), &disk.path("cache/git"), &disk.path("cache/here")]);
    assert!(troubles.len() == 1 && troubles[0].what.contains("gone@far is enabled but not installed"), "{troubles:?}");
    let load = |at: usize| Plugin::load(&places[at], &disk.path("data")).unwrap();
    assert_eq!((names(&load(0)), load(0).description.as_str()), (vec!["demo:now"], "From the list."));
    assert_eq!((names(&load(1)), load(1).id.as_str()), (vec!["git:one"], "git@far"));

    disk.write("config/plugins/installed_plugins.json", list.to_string().replace("\"version\":2", "\"version\":1"));
    let (places, troubles) = installed::places(&disk.path("config"), &disk.path("project"), &enabled);
    assert!(places.is_empty() && troubles[0].what.contains("not of version 2"), "{troubles:?}");
}

/// PLUGIN-1: the source of a plugin does not lead out of its marketplace.
#[test]
fn the_source_of_a_plugin_stays_in_its_marketplace() {
    let disk = PluginFiles::new();
    disk.write("elsewhere/commands/x.md", "X.");
    disk.write("mkt/.claude-plugin/marketplace.json", json!({"plugins": [{"name": "x", "source": "./../elsewhere"}]}));
    let known = json!({"mkt": {"source": {"source": "directory", "path": disk.path("mkt")}}});
    disk.write("config/plugins/known_marketplaces.json", known);
    let list = json!({"version": 2, "plugins": {"x@mkt": [{"scope": "user", "installPath": disk.path("cache/x")}]}});
    disk.write("config/plugins/installed_plugins.json", list);
    let enabled = [EnabledPlugin { id: "x@mkt".to_owned(), origin: PluginOrigin::Installed }];
    let (places, troubles) = installed::places(&disk.path("config"), &disk.path("p"), &enabled);
    assert_eq!(places[0].folder, disk.path("cache/x"));
    assert!(troubles[0].what.contains("is not a folder of the marketplace"), "{troubles:?}");
}

/// PLUGIN-1: a folder that a shell would take apart is put into no command line, only into variables.
#[test]
fn a_folder_with_an_odd_name_is_not_put_into_a_command_line() {
    let disk = PluginFiles::new();
    let hooks = json!({"Stop": [{"hooks": [
        {"type": "command", "command": "'${CLAUDE_PLUGIN_ROOT}'/x"},
        {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/x", "args": ["${CLAUDE_PLUGIN_DATA}"]},
    ]}]});
    for folder in ["plain", "odd $(touch x)"] {
        disk.write(&format!("{folder}/.claude-plugin/plugin.json"), json!({"name": "x", "hooks": hooks}));
    }
    let shown = |folder: &str| {
        let (hooks, _) = disk.load(folder).unwrap().hooks(Path::new("/"));
        hooks.iter().map(settings::hook_definitions::Hook::shown).collect::<Vec<_>>()
    };
    let (root, data) = (disk.path("plain").display().to_string(), disk.path("data/x-inline").display().to_string());
    assert_eq!(shown("plain"), [format!("'{root}'/x"), format!("{root}/x {data}")]);
    let odd = disk.path("odd $(touch x)").display().to_string();
    assert_eq!(shown("odd $(touch x)"), ["'${CLAUDE_PLUGIN_ROOT}'/x".to_owned(), format!("{odd}/x {data}")]);
}
