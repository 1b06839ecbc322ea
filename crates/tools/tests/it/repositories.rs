//! Repositories that are laid out in another way than a plain clone.

use std::path::Path;

use tools::permission::{Mode, Rules};

use super::shell_asking::{CONFIG, Ground};

/// SEC-2: whatever is not laid out like a plain clone is not vouched for.
#[test]
fn odd_repositories_are_asked_about() {
    let none = Rules::default();
    let asks = |prepare: &dyn Fn(&Ground)| {
        let ground = Ground::new();
        prepare(&ground);
        ground.unheld(Mode::Default, &none, "git status") == "ask"
    };
    assert!(!asks(&|_| {}), "no repository, nothing to run");
    assert!(!asks(&|ground| ground.git(".git", CONFIG)));
    assert!(asks(&|ground| {
        ground.git("evil", CONFIG);
        std::fs::write(ground.project.join(".git"), "gitdir: evil\n").unwrap();
    }));
    assert!(asks(&|ground| ground.git("", CONFIG)), "a bare repository in the working directory");
    assert!(asks(&|ground| {
        ground.git(".git", CONFIG);
        std::fs::create_dir_all(ground.project.join(".git/hooks")).unwrap();
        std::fs::write(ground.project.join(".git/hooks/post-index-change"), "x").unwrap();
    }));
    assert!(asks(&|ground| {
        ground.git(".git", CONFIG);
        std::fs::write(ground.project.join(".git/config.worktree"), "[core]\n\tfsmonitor = x\n").unwrap();
    }));
    // A worktree of a repository elsewhere, which knows of it.
    type Change = &'static dyn Fn(&Path, &Path);
    let linked = |config: &'static str, change: Change| {
        move |ground: &Ground| {
            let main = ground.project.parent().unwrap().join("main/.git");
            let own = main.join("worktrees/w");
            std::fs::create_dir_all(&own).unwrap();
            std::fs::write(main.join("config"), config).unwrap();
            std::fs::write(own.join("commondir"), "../..\n").unwrap();
            std::fs::write(own.join("gitdir"), format!("{}/.git\n", ground.project.display())).unwrap();
            std::fs::write(ground.project.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
            change(&own, &ground.project);
        }
    };
    assert!(!asks(&linked(CONFIG, &|_, _| {})));
    assert!(!asks(&linked("[core]\n\tbare = true\n", &|_, _| {})), "which has no files of its own");
    assert!(asks(&linked("[core]\n\tfsmonitor = x\n", &|_, _| {})));
    let changes: [(&str, Change); 8] = [
        ("it points elsewhere", &|own, _| std::fs::write(own.join("gitdir"), "/elsewhere/.git\n").unwrap()),
        ("it does not point back", &|own, _| std::fs::remove_file(own.join("gitdir")).unwrap()),
        ("another common folder", &|own, project| {
            std::fs::write(own.join("commondir"), format!("{}\n", project.display())).unwrap();
        }),
        ("none", &|own, _| std::fs::remove_file(own.join("commondir")).unwrap()),
        ("its own configuration", &|own, _| {
            std::fs::write(own.join("config.worktree"), "[core]\n\tfsmonitor = x\n").unwrap();
        }),
        ("a hook", &|own, _| {
            let hooks = own.join("../../hooks");
            std::fs::create_dir_all(&hooks).unwrap();
            std::fs::write(hooks.join("post-index-change"), "x").unwrap();
        }),
        ("more lines", &|own, project| {
            std::fs::write(project.join(".git"), format!("gitdir: {}\nx\n", own.display())).unwrap();
        }),
        ("a link", &|_, project| {
            std::fs::rename(project.join(".git"), project.join("git")).unwrap();
            std::os::unix::fs::symlink("git", project.join(".git")).unwrap();
        }),
    ];
    for (what, change) in changes {
        assert!(asks(&linked(CONFIG, change)), "{what}");
    }
    let submodule = |config: &'static str| {
        move |ground: &Ground| {
            ground.git(".git", CONFIG);
            ground.git("sub/.git", config);
            std::fs::write(ground.project.join(".git/index"), index("sub")).unwrap();
        }
    };
    assert!(!asks(&submodule(CONFIG)));
    assert!(asks(&submodule("[core]\n\tfsmonitor = x\n")), "git looks into submodules");
}

/// An index with one file and one submodule.
fn index(submodule: &str) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x02".to_vec();
    for (mode, name) in [(0o100_644_u32, "a.txt"), (0o160_000, submodule)] {
        let start = bytes.len();
        bytes.extend([0; 24]);
        bytes.extend(mode.to_be_bytes());
        bytes.extend([0; 12 + 20 + 2]);
        bytes.extend(name.as_bytes());
        bytes.push(0);
        while !(bytes.len() - start).is_multiple_of(8) {
            bytes.push(0);
        }
    }
    bytes.extend([0; 20]);
    bytes
}
