use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::settings::{Ground, Loaded, Settings, Source, tests::Stage};

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
        Trust::read(Place {
            config_home: &self.stage.path("config"),
            claude_json: Some(&self.stage.path(".claude.json")),
            directory: &self.stage.path(directory),
            home: Some(&self.stage.path("")),
        })
    }

    fn loaded(&self) -> Loaded {
        Loaded::read(&self.stage.files())
    }

    fn claims(&self) -> Vec<Claim> {
        claims(&self.loaded(), self.trust().site())
    }

    fn settings(&self, trust: &Trust) -> Settings {
        let (directory, home) = (self.stage.path("project"), self.stage.path(""));
        let ground = Ground { directory: &directory, home: Some(&home) };
        Settings::of(&self.loaded(), &ground, &|set| trust.covers_set(set))
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
        Source::Project,
        &json!({
            "permissions": {"allow": ["Bash(npm test)"], "deny": ["Read(.env)"], "ask": ["Bash(git push:*)"],
                "defaultMode": "acceptEdits", "additionalDirectories": ["../elsewhere"]},
            "env": {"FOO": "bar", "LD_PRELOAD": "x"}, "model": "opus", "providers": {"x": {"baseUrl": "y"}},
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
            "variable: FOO=bar".into(),
            "setting: model: \"opus\"".into(),
        ]
    );
    assert_eq!(scene.claims()[4].place, ".claude/settings.json:1");
}

/// TRUST-2: a yes counts from then on, and what is new later is missing alone.
#[test]
fn what_is_new_later_is_asked_about_alone() {
    let mut scene = Scene::new();
    scene.stage.put(Source::Project, &json!({"permissions": {"allow": ["A"]}, "env": {"FOO": "1"}}));
    let claims = scene.claims();
    let mut trust = scene.trust();
    assert_eq!(trust.missing(&claims).len(), 2);
    assert!(scene.settings(&trust).rules.allow.is_empty());
    trust.remember(&claims).unwrap();
    assert!(trust.missing(&claims).is_empty() && scene.trust().missing(&claims).is_empty());
    assert_eq!(scene.settings(&scene.trust()).rules.allow.len(), 1);

    scene.stage.put(Source::Project, &json!({"permissions": {"allow": ["B", "A"]}, "env": {"FOO": "2"}}));
    let trust = scene.trust();
    assert_eq!(words(&trust.missing(&scene.claims())), ["allow rule: B", "variable: FOO=2"]);
    let settings = scene.settings(&trust);
    assert_eq!((settings.rules.allow.len(), settings.environment.len()), (1, 0));
}

/// TRUST-2: a link that leads elsewhere later is another claim.
#[test]
fn a_directory_is_trusted_where_it_leads_to() {
    let mut scene = Scene::new();
    scene.stage.put(Source::Project, &json!({"permissions": {"additionalDirectories": ["link"]}}));
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
        assert_eq!(Site::of(&directory, Some(&scene.stage.path(""))).root, None, "{directory:?}");
    }
    let mut home = scene.trust_in("");
    let claim = Claim::new(Kind::Rule, "A", "A", "", home.site());
    assert!(matches!(home.remember(std::slice::from_ref(&claim)), Err(NotKept::Never)));
    assert!(!home.admit(std::slice::from_ref(&claim)) && !home.covers(&claim));
    scene.accepted_in_claude_code("");
    assert!(!scene.trust_in("").covers(&claim));
    assert!(!scene.trust_in("plain").covers(&claim), "the home's yes is nobody else's");
    let plain = scene.stage.path("plain");
    assert_eq!(Site::of(&plain, Some(&scene.stage.path(""))).root, Some(plain));
}

/// TRUST-2: Claude Code's record covers rules, directories, variables and settings, not what runs programs.
#[test]
fn claude_codes_record_covers_what_it_asked_about() {
    let scene = Scene::new();
    scene.accepted_in_claude_code("project");
    for kind in Kind::ALL {
        let claim = Claim::new(kind, "x", "x", "", scene.trust().site());
        let covered = [Kind::Rule, Kind::Directory, Kind::Variable, Kind::Setting].contains(&kind);
        assert_eq!(scene.trust().covers(&claim), covered, "{kind:?}");
    }
    files::replace(scene.stage.path("project/sub/x"), b"").unwrap();
    let claim = Claim::new(Kind::Rule, "x", "x", "", scene.trust_in("project/sub").site());
    assert!(scene.trust_in("project/sub").covers(&claim), "the checkout's directories are one");
    files::replace(scene.stage.path(".claude.json"), b"{\"projects\": []}").unwrap();
    assert!(!scene.trust().covers(&claim));
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
        vec![Trusted { root: root.clone(), claims: words(claims), declined: words(declined) }]
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
    assert!(matches!(trust.remember(std::slice::from_ref(&claim)), Err(NotKept::Broken(_))));
    assert_eq!(files::read(&path, 100).unwrap().bytes, b"{");
}
