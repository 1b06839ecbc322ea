#![allow(clippy::disallowed_methods, reason = "tests write the files they are about")]

use std::fs;

use settings::trust::TrustPlace;
use tempfile::TempDir;

use super::*;
use crate::skill::SkillRights;

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.path("project/.git")).unwrap();
        home
    }

    fn path(&self, relative: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join(relative)
    }

    fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn folders(&self) -> [SkillFolder; 2] {
        [
            SkillFolder {
                source: SkillSource::Project,
                folder: self.path("project/.claude"),
                bounds: Some(self.path("project")),
            },
            SkillFolder { source: SkillSource::User, folder: self.path("config"), bounds: None },
        ]
    }

    fn trust(&self) -> Trust {
        let (config, project) = (self.path("config"), self.path("project"));
        Trust::read(TrustPlace { config_home: &config, claude_json: None, directory: &project, home: None })
    }

    fn registry(&self) -> SkillRegistry {
        SkillRegistry::load(&self.folders(), &self.trust())
    }
}

/// SKILL-2: the user's counts before the project's, a skill before a command, and folders of commands are part of the name.
#[test]
fn the_users_counts_before_the_projects_and_a_skill_before_a_command() {
    let home = Home::new();
    home.write("config/skills/deploy/SKILL.md", "mine");
    home.write("project/.claude/skills/deploy/SKILL.md", "theirs");
    home.write("project/.claude/skills/check/SKILL.md", "a skill");
    home.write("project/.claude/commands/check.md", "a command");
    home.write("project/.claude/commands/git/wip/push.md", "pushes");
    home.write("config/commands/a b.md", "cannot be typed");
    let registry = home.registry();
    let all: Vec<(&str, &str)> =
        registry.all().iter().map(|skill| (skill.name.as_str(), skill.body.as_str())).collect();
    assert_eq!(all, [("check", "a skill"), ("deploy", "mine"), ("git:wip:push", "pushes")]);
}

/// SKILL-2: what a project's skill asks for beyond being read counts once its file is trusted, and no other.
#[test]
fn a_projects_skill_is_only_read_until_it_is_trusted() {
    let home = Home::new();
    let asks = "---\nallowed-tools: Bash(git *)\nmodel: opus\n---\nSee !`git log`.";
    home.write("project/.claude/skills/log/SKILL.md", asks);
    home.write("project/.claude/skills/plain/SKILL.md", "Only text.");
    home.write("config/skills/own/SKILL.md", asks);
    let registry = home.registry();
    assert!(registry.get("log").unwrap().rights.granted().is_none());
    assert!(registry.get("own").unwrap().rights.granted().is_some());

    let mut trust = home.trust();
    let claims = claims(&home.folders(), trust.site());
    let words: Vec<&str> = claims.iter().map(|claim| claim.what.as_str()).collect();
    assert_eq!(words, ["/log: allow Bash(git *), model opus, commands in its text"]);
    trust.remember(&claims).unwrap();
    assert!(matches!(home.registry().get("log").unwrap().rights, SkillRights::Granted(_)));
    home.write("project/.claude/skills/log/SKILL.md", &asks.replace("git log", "git push"));
    assert!(home.registry().get("log").unwrap().rights.granted().is_none());
}

/// SKILL-2: links are followed, but a project's not out of it; what two links lead to is there once.
#[cfg(unix)]
#[test]
fn a_projects_link_does_not_lead_out_of_it() {
    use std::os::unix::fs::symlink;
    let home = Home::new();
    home.write("secret/SKILL.md", "a key");
    home.write("project/shared/inside/SKILL.md", "inside");
    fs::create_dir_all(home.path("project/.claude/skills")).unwrap();
    fs::create_dir_all(home.path("config/skills")).unwrap();
    symlink(home.path("secret"), home.path("project/.claude/skills/stolen")).unwrap();
    symlink(home.path("project/shared/inside"), home.path("project/.claude/skills/a")).unwrap();
    symlink(home.path("project/shared/inside"), home.path("project/.claude/skills/b")).unwrap();
    let registry = home.registry();
    let names: Vec<&str> = registry.all().iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["a"]);
    assert!(registry.troubles[0].to_string().ends_with("stolen/SKILL.md:1: leads out of the project and is not read"));
    symlink(home.path("secret"), home.path("config/skills/mine")).unwrap();
    assert_eq!(home.registry().get("mine").unwrap().body, "a key");
}

/// SKILL-1: a skill for certain files is listed once one of them was touched.
#[test]
fn a_skill_for_certain_files_is_listed_once_one_was_touched() {
    let home = Home::new();
    home.write("config/skills/css/SKILL.md", "---\npaths: \"**/*.css\"\n---\nStyles.");
    let registry = home.registry();
    let css = registry.get("css").unwrap();
    assert!(css.is_about(Path::new("web/main.css")) && !css.is_about(Path::new("web/main.rs")));
}
