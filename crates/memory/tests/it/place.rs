//! Where memory lives.

use std::path::{Path, PathBuf};

use memory::Error;
use memory::PlaceRule;
use memory::place::{BySource, Inputs, OffReason, Switch, canonical_root, directory, slug, switch};

fn inputs(working: &Path) -> Inputs {
    Inputs {
        config_home: PathBuf::from("/home/ann/.claude"),
        home: Some(PathBuf::from("/home/ann")),
        working_directory: working.to_owned(),
        ..Inputs::default()
    }
}

/// PATH-1: the slug is the path with everything but letters and digits as a dash; a long one is cut and hashed.
#[test]
fn a_slug_is_made_from_a_path() {
    assert_eq!(slug(Path::new("/work/My Project_2")), "-work-My-Project-2");
    let long = format!("/{}", "a".repeat(300));
    let other = format!("/{}b", "a".repeat(299));
    assert!(slug(Path::new(&long)).len() > 200);
    assert!(slug(Path::new(&long)).len() < 220);
    assert_ne!(slug(Path::new(&long)), slug(Path::new(&other)));
}

/// PATH-1: all worktrees of a repository share a memory; a submodule has its own; without a repository it is the
/// working directory.
#[test]
fn worktrees_share_the_root_of_the_main_checkout() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let main = base.join("main");
    let tree = base.join("tree");
    std::fs::create_dir_all(main.join(".git/worktrees/tree")).unwrap();
    std::fs::create_dir_all(main.join("deep/er")).unwrap();
    std::fs::create_dir_all(tree.join("src")).unwrap();
    std::fs::write(tree.join(".git"), format!("gitdir: {}\n", main.join(".git/worktrees/tree").display())).unwrap();
    std::fs::write(main.join(".git/worktrees/tree/commondir"), "../..\n").unwrap();
    std::fs::write(main.join(".git/worktrees/tree/gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
    assert_eq!(canonical_root(&main.join("deep/er")), main);
    assert_eq!(canonical_root(&tree.join("src")), main);

    // A checkout that names a repository which does not know it is not believed.
    let stranger = base.join("stranger");
    std::fs::create_dir_all(&stranger).unwrap();
    std::fs::write(stranger.join(".git"), format!("gitdir: {}\n", main.join(".git/worktrees/tree").display())).unwrap();
    assert_eq!(canonical_root(&stranger), stranger);

    let module = main.join("module");
    std::fs::create_dir_all(main.join(".git/modules/module")).unwrap();
    std::fs::create_dir_all(&module).unwrap();
    std::fs::write(module.join(".git"), "gitdir: ../.git/modules/module\n").unwrap();
    assert_eq!(canonical_root(&module), module);

    let plain = base.join("plain");
    std::fs::create_dir_all(&plain).unwrap();
    assert_eq!(canonical_root(&plain), plain);
}

/// PATH-1, as git itself makes a worktree.
#[test]
fn a_worktree_made_by_git_is_recognised() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let git = |at: &Path, arguments: &[&str]| {
        std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments)
            .current_dir(at)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let main = base.join("main");
    std::fs::create_dir(&main).unwrap();
    let made = git(&main, &["init", "-q"])
        && git(&main, &["commit", "-q", "--allow-empty", "-m", "x"])
        && git(&main, &["worktree", "add", "-q", "../tree"]);
    assert!(made, "git is needed for this test");
    assert_eq!(canonical_root(&base.join("tree")), main);
}

/// PATH-2: the override first, then settings by their source, then below the base; `~/` expands in settings.
#[test]
fn the_directory_is_chosen_in_order() {
    let here = tempfile::tempdir().unwrap();
    let mut inputs = inputs(here.path());
    let below = directory(&inputs).unwrap();
    assert!(below.starts_with("/home/ann/.claude/projects") && below.ends_with("memory"), "{below:?}");
    inputs.remote_memory_directory = Some("/mnt/remote".to_owned());
    assert!(directory(&inputs).unwrap().starts_with("/mnt/remote/projects"));
    inputs.auto_memory_directory = BySource { policy: None, flag: None, user: Some("~/notes".to_owned()) };
    assert_eq!(directory(&inputs).unwrap(), Path::new("/home/ann/notes"));
    inputs.auto_memory_directory.flag = Some("/srv/flag/x".to_owned());
    inputs.auto_memory_directory.policy = Some("/srv/policy/x".to_owned());
    assert_eq!(directory(&inputs).unwrap(), Path::new("/srv/policy/x"));
    inputs.path_override = Some("/a/b/whole".to_owned());
    assert_eq!(directory(&inputs).unwrap(), Path::new("/a/b/whole"));
}

/// PATH-3: each refusal names its rule.
#[test]
fn a_bad_place_is_refused_by_name() {
    let here = tempfile::tempdir().unwrap();
    let cases = [
        ("notes", PlaceRule::Relative),
        ("~", PlaceRule::Relative),
        ("/", PlaceRule::Root),
        ("/a/..", PlaceRule::Root),
        ("/tmp", PlaceRule::BelowRoot),
        ("/tmp/", PlaceRule::BelowRoot),
        ("/a/b/../../tmp", PlaceRule::BelowRoot),
        ("C:\\", PlaceRule::DriveRoot),
        ("d:", PlaceRule::DriveRoot),
        ("\\\\server\\share", PlaceRule::Unc),
        ("//server/share", PlaceRule::Unc),
        ("/a/b\0c", PlaceRule::Nul),
        ("~/", PlaceRule::Home),
        ("~/x/..", PlaceRule::Home),
    ];
    for (path, rule) in cases {
        let mut inputs = inputs(here.path());
        inputs.auto_memory_directory.user = Some(path.to_owned());
        match directory(&inputs) {
            Err(Error::Refused { rule: found, .. }) => assert_eq!(found, rule, "{path:?}"),
            other => panic!("{path:?}: {other:?}"),
        }
    }
}

/// PATH-4: what switches memory off, and which input has the first word.
#[test]
fn memory_is_switched_off_in_order() {
    let here = tempfile::tempdir().unwrap();
    let base = inputs(here.path());
    assert_eq!(switch(&base), Switch::On);
    let all = Inputs { simple: true, remote: true, enabled: Some(false), ..base.clone() };
    assert_eq!(switch(&Inputs { disable: Some(true), ..all.clone() }), Switch::Off(OffReason::Environment));
    assert_eq!(switch(&Inputs { disable: Some(false), ..all.clone() }), Switch::On);
    assert_eq!(switch(&all), Switch::Off(OffReason::Simple));
    assert_eq!(switch(&Inputs { simple: false, ..all.clone() }), Switch::Off(OffReason::Remote));
    let placed = Inputs { simple: false, remote_memory_directory: Some("/m/x".to_owned()), ..all };
    assert_eq!(switch(&placed), Switch::Off(OffReason::Settings));
    assert_eq!(switch(&Inputs { enabled: Some(true), ..placed }), Switch::On);
}
