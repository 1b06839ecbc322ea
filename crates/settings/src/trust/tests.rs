use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::effective_values::BasePaths;
use crate::values::Settings;
use crate::values::tests::Stage;
use crate::{LoadedSettings, SettingsSource};

/// A project with files in it, a config home and a home.
struct Scene {
    stage: Stage,
}

impl Scene {
    fn new() -> Self {
        let stage = Stage::new();
        files::replace(stage.path("project/.git/HEAD"), b"ref: refs/heads/main\n").unwrap();
        Self { stage }
    }

    fn trust(&self) -> Trust {
        self.trust_in("project")
    }

    fn trust_in(&self, directory: &str) -> Trust {
        Trust::read(TrustPlace {
            config_home: &self.stage.path("config"),
            claude_json: Some(&self.stage.path(".claude.json")),
            directory: &self.stage.path(directory),
            home: Some(&self.stage.path("")),
        })
    }

    fn loaded(&self) -> LoadedSettings {
        LoadedSettings::read(&self.stage.files())
    }

    fn claims(&self) -> Vec<Claim> {
        claims(&self.loaded(), self.trust().site())
    }

    fn settings(&self, trust: &Trust) -> Settings {
        let (directory, home) = (self.stage.path("project"), self.stage.path(""));
        let base_paths = BasePaths { directory: &directory, home: Some(&home) };
        Settings::of(&self.loaded(), &base_paths, &|set| trust.covers_set(set))
    }

    fn accepted_in_claude_code(&self, directory: &str) {
        let projects =
            json!({"projects": {self.stage.path(directory).to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
        files::replace(self.stage.path(".claude.json"), projects.to_string().as_bytes()).unwrap();
    }
}

fn words(claims: &[Claim]) -> Vec<String> {
    claims.iter().map(|claim| format!("{}: {}", claim.kind.name(), claim.what)).collect()
}

/// TRUST-2: what files would do is named, all of it, with its place.
#[test]
fn everything_beyond_caution_is_a_claim_and_caution_is_none() {
    let mut scene = Scene::new();
    let elsewhere = scene.stage.path("elsewhere");
    scene.stage.put(
        SettingsSource::Project,
        &json!({
            "permissions": {"allow": ["Bash(npm test)"], "deny": ["Read(.env)"], "ask": ["Bash(git push:*)"],
                "defaultMode": "acceptEdits", "additionalDirectories": ["../elsewhere"]},
            "env": {"APP_FOO": "bar", "LD_PRELOAD": "x"}, "model": "opus", "providers": {"x": {"baseUrl": "y"}},
            "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}]},
            "statusLine": {"type": "command", "command": "./line.sh"}, "sandbox": {"enabled": false},
        }),
    );
    let servers = json!({"mcpServers": {"db": {"command": "npx", "args": ["-y", "db"]}, "web": {"url": "http://x"}}});
    files::replace(scene.stage.path("project/.mcp.json"), servers.to_string().as_bytes()).unwrap();
    assert_eq!(
        words(&scene.claims()),
        [
            "hook: PreToolUse (Bash): ./check.sh".to_owned(),
            "server: db: npx -y db".into(),
            "server: web: http://x".into(),
            "helper: statusLine: ./line.sh".into(),
            "allow rule: Bash(npm test)".into(),
            "mode: acceptEdits".into(),
            "sandbox setting: sandbox.enabled: false".into(),
            format!("directory: {}", elsewhere.display()),
            "variable: APP_FOO=bar".into(),
            "setting: model: \"opus\"".into(),
        ]
    );
    assert_eq!(scene.claims()[4].place, ".claude/settings.json:1");
}

/// TRUST-2: a yes counts from then on, and what is new later is missing alone.
#[test]
fn what_is_new_later_is_asked_about_alone() {
    let mut scene = Scene::new();
    scene.stage.put(SettingsSource::Project, &json!({"permissions": {"allow": ["A"]}, "env": {"APP_FOO": "1"}}));
    let claims = scene.claims();
    let mut trust = scene.trust();
    assert_eq!(trust.missing(&claims).len(), 2);
    assert!(scene.settings(&trust).rules.allow.is_empty());
    trust.remember(&claims).unwrap();
    assert!(trust.missing(&claims).is_empty() && scene.trust().missing(&claims).is_empty());
    assert_eq!(scene.settings(&scene.trust()).rules.allow.len(), 1);

    scene.stage.put(SettingsSource::Project, &json!({"permissions": {"allow": ["B", "A"]}, "env": {"APP_FOO": "2"}}));
    let trust = scene.trust();
    assert_eq!(words(&trust.missing(&scene.claims())), ["allow rule: B", "variable: APP_FOO=2"]);
    let settings = scene.settings(&trust);
    assert_eq!((settings.rules.allow.len(), settings.environment.len()), (1, 0));
}

/// TRUST-2: a link that leads elsewhere later is another claim.
#[test]
fn a_directory_is_trusted_where_it_leads_to() {
    let mut scene = Scene::new();
    scene.stage.put(SettingsSource::Project, &json!({"permissions": {"additionalDirectories": ["link"]}}));
    let link = scene.stage.path("project/link");
    std::os::unix::fs::symlink(scene.stage.path("one"), &link).unwrap();
    scene.trust().remember(&scene.claims()).unwrap();
    assert_eq!(scene.settings(&scene.trust()).directories.len(), 1);
    files::remove(&link).unwrap();
    std::os::unix::fs::symlink("/", &link).unwrap();
    assert_eq!(words(&scene.trust().missing(&scene.claims())), ["directory: /"]);
    assert!(scene.settings(&scene.trust()).directories.is_empty());
}

/// TRUST-2: worktrees share what was said of their repository; other repositories and directories do not.
#[test]
fn worktrees_share_a_yes_and_others_do_not() {
    let scene = Scene::new();
    let git = scene.stage.path("project/.git");
    let tree = scene.stage.path("tree");
    files::replace(git.join("worktrees/tree/commondir"), b"../..\n").unwrap();
    files::replace(git.join("worktrees/tree/gitdir"), format!("{}\n", tree.join(".git").display()).as_bytes()).unwrap();
    files::replace(tree.join(".git"), format!("gitdir: {}\n", git.join("worktrees/tree").display()).as_bytes())
        .unwrap();
    files::replace(scene.stage.path("other/x"), b"").unwrap();
    let rule = |directory: &str| Claim::new(Kind::Rule, "A", "A", "", scene.trust_in(directory).site());
    scene.trust().remember(&[rule("project")]).unwrap();
    assert!(scene.trust_in("tree").covers(&rule("tree")));
    assert!(!scene.trust_in("other").covers(&rule("other")));
    assert!(!scene.trust_in("project/sub").covers(&rule("project/sub")), "`/` in a rule means another place there");
}

/// TRUST-2: the home, what holds it, and the root are never trusted; a directory in a home that is a repository is.
#[test]
fn the_home_directory_is_never_trusted() {
    let scene = Scene::new();
    files::replace(scene.stage.path(".git/HEAD"), b"ref: refs/heads/main\n").unwrap();
    let never = [scene.stage.path(""), PathBuf::from("/"), scene.stage.path("").parent().unwrap().to_owned()];
    for directory in never {
        assert_eq!(TrustSite::of(&directory, Some(&scene.stage.path(""))).root, None, "{directory:?}");
    }
    let mut home = scene.trust_in("");
    let claim = Claim::new(Kind::Rule, "A", "A", "", home.site());
    assert!(matches!(home.remember(std::slice::from_ref(&claim)), Err(TrustFault::Never)));
    assert!(!home.admit(std::slice::from_ref(&claim)) && !home.covers(&claim));
    scene.accepted_in_claude_code("");
    for directory in ["", "plain"] {
        let mut trust = scene.trust_in(directory);
        trust.take_over(std::slice::from_ref(&claim));
        assert!(!trust.covers(&claim), "the home's yes is nobody's: {directory:?}");
    }
    let plain = scene.stage.path("plain");
    assert_eq!(TrustSite::of(&plain, Some(&scene.stage.path(""))).root, Some(plain));
}

/// TRUST-2: a yes in Claude Code counts for rules, directories, variables and settings, not for what runs programs.
#[test]
fn a_yes_in_claude_code_counts_for_what_it_asked_about() {
    for kind in Kind::all() {
        let scene = Scene::new();
        scene.accepted_in_claude_code("project");
        let what = if kind == Kind::Rule { "Bash(npm test)" } else { "x" };
        let claim = Claim::new(kind, what, what, "", scene.trust().site());
        let mut trust = scene.trust();
        trust.take_over(std::slice::from_ref(&claim));
        let covered = [Kind::Rule, Kind::Directory, Kind::Variable, Kind::Setting].contains(&kind);
        assert_eq!((trust.covers(&claim), scene.trust().covers(&claim)), (covered, covered), "{kind:?}");
    }
}

/// TRUST-2: it is taken over once for a repository, for what is there then. What comes later is missing, also below it; what
/// was declined stays declined; and what was taken back is not taken over again.
#[test]
fn a_yes_in_claude_code_is_taken_over_once() {
    let scene = Scene::new();
    files::replace(scene.stage.path("project/sub/x"), b"").unwrap();
    let claim =
        |what: &str, directory: &str| Claim::new(Kind::Variable, what, what, "", scene.trust_in(directory).site());
    let (first, declined, later) = (claim("A=1", "project"), claim("B=1", "project"), claim("C=1", "project"));
    scene.trust().decline(std::slice::from_ref(&declined)).unwrap();
    scene.accepted_in_claude_code("project");
    scene.trust().take_over(&[first.clone(), declined.clone()]);
    let mut trust = scene.trust();
    trust.take_over(&[first.clone(), declined.clone(), later.clone()]);
    assert_eq!(words(&trust.missing(&[first.clone(), declined, later])), ["variable: B=1", "variable: C=1"]);
    let below = claim("A=1", "project/sub");
    let mut trust = scene.trust_in("project/sub");
    trust.take_over(std::slice::from_ref(&below));
    assert!(!trust.covers(&below));
    revoke(&scene.stage.path("config"), &scene.stage.path("project")).unwrap();
    let mut trust = scene.trust();
    trust.take_over(std::slice::from_ref(&first));
    assert!(!trust.covers(&first));
}

/// TRUST-2: a look at a repository that asks for nothing yet is its first look, too; and two processes that look at once
/// have one first look between them.
#[test]
fn the_first_look_is_the_first_whatever_is_there() {
    let scene = Scene::new();
    scene.accepted_in_claude_code("project");
    let claim = Claim::new(Kind::Variable, "A=1", "A=1", "", scene.trust().site());
    let (mut one, mut other) = (scene.trust(), scene.trust());
    one.take_over(&[]);
    other.take_over(std::slice::from_ref(&claim));
    assert!(!other.covers(&claim) && !scene.trust().covers(&claim));
}

/// TRUST-2: what cannot be kept is not taken over, and that is said.
#[test]
fn a_yes_that_cannot_be_kept_is_not_taken_over() {
    let scene = Scene::new();
    scene.accepted_in_claude_code("project");
    let claim = Claim::new(Kind::Variable, "A=1", "A=1", "", scene.trust().site());
    files::replace(scene.stage.path("config/cairn"), b"no folder").unwrap();
    let mut trust = scene.trust();
    trust.take_over(std::slice::from_ref(&claim));
    assert!(!trust.covers(&claim) && trust.warning.is_some());
}

/// TRUST-2: a yes in Claude Code is none to rules and directories that are about everything.
#[test]
fn a_yes_in_claude_code_is_none_to_everything() {
    let scene = Scene::new();
    let home = scene.stage.path("");
    let site = scene.trust().site().clone();
    let covered = |kind: Kind, what: &str| {
        let what = what.replace("HOME", home.to_str().unwrap());
        takeover::covers(&Claim::new(kind, what.clone(), &what, "", &site), &site)
    };
    for rule in [
        "Bash",
        "Bash()",
        "Bash(*)",
        "Bash( ** )",
        "Bash(:*)",
        "Bash(* install)",
        "Bash(b*h -c:*)",
        "Bash(git*)",
        "Bash(bash:*)",
        "Bash(env:*)",
        "Bash(/bin/sh -c:*)",
        "Bash(python3.12 *)",
        "Edit",
        "Edit(*)",
        "Edit(**)",
        "Edit(//**)",
        "Edit(//)",
        "Edit(//*/**)",
        "Write(~/**)",
        "Edit(~/*/x)",
        "Edit(/HOME/**)",
        "Read",
        "Read(//**)",
        "Read(//etc/**)",
        "Read(~/.ssh/**)",
        "Read(~/Library/**)",
        "Grep",
        "Glob",
        "WebFetch",
        "WebFetch(domain:*)",
        "mcp__*",
        "Agent",
        "Bash(ls",
        "(",
        "",
    ] {
        assert!(!covered(Kind::Rule, rule), "{rule}");
    }
    for rule in [
        "Bash(npm test)",
        "Bash(git log:*)",
        "Bash(cargo *)",
        "Bash(touch:*)",
        "Edit(src/**)",
        "Edit(/docs/**)",
        "Edit(./**)",
        "Read(~/notes/**)",
        "Read(/HOME/src/lib/**)",
        "Edit(/HOME/project/**)",
        "WebFetch(domain:example.com)",
        "Agent(Explore)",
    ] {
        assert!(covered(Kind::Rule, rule), "{rule}");
    }
    for directory in
        ["/", "/etc", "/usr/local", "/home", "HOME", "HOME/.ssh", "HOME/src/.env", "HOME/src/../..", "/tmp/x"]
    {
        assert!(!covered(Kind::Directory, directory), "{directory}");
    }
    for directory in ["./sub", ".", "HOME/src/lib", "HOME/other"] {
        assert!(covered(Kind::Directory, directory), "{directory}");
    }
}

/// TRUST-2: the record is private, a broken one trusts nothing and is not overwritten, and a yes can be taken back.
#[test]
fn a_yes_is_kept_privately_and_can_be_taken_back() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new();
    let config = scene.stage.path("config");
    let claim = Claim::new(Kind::Rule, "A", "A", "", scene.trust().site());
    scene.trust().remember(std::slice::from_ref(&claim)).unwrap();
    let path = config.join("cairn/trust.json");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let root = scene.stage.path("project");
    let said = |claims: &[&str], declined: &[&str]| {
        let words = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        vec![TrustRecord { root: root.clone(), claims: words(claims), declined: words(declined) }]
    };
    assert_eq!(list(&config).unwrap(), said(&["allow rule: A"], &[]));
    scene.trust().decline(std::slice::from_ref(&claim)).unwrap();
    assert_eq!(list(&config).unwrap(), said(&[], &["allow rule: A"]), "the last answer counts");
    assert!(!scene.trust().covers(&claim) && scene.trust().is_settled(&claim));
    scene.trust().remember(std::slice::from_ref(&claim)).unwrap();
    assert!(scene.trust().covers(&claim) && !scene.trust().is_settled(&claim));
    assert!(revoke(&config, &root).unwrap() && !revoke(&config, &root).unwrap());
    assert!(!scene.trust().covers(&claim) && list(&config).unwrap().is_empty());

    files::replace(&path, b"{").unwrap();
    let mut trust = scene.trust();
    assert!(!trust.covers(&claim) && trust.warning.as_deref().is_some_and(|told| told.contains("trust.json")));
    assert!(matches!(trust.remember(std::slice::from_ref(&claim)), Err(TrustFault::Broken(_))));
    assert_eq!(files::read(&path, 100).unwrap().bytes, b"{");
}
