//! Paths that were judged: no link is followed any more.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use files::{Error, exact};

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    std::fs::create_dir_all(base.join("a/b")).unwrap();
    std::fs::create_dir_all(base.join("elsewhere/b")).unwrap();
    (directory, base)
}

/// TRUST-5: a link that was put where a directory or the file itself was is refused, and what it leads to is untouched.
#[test]
fn a_link_put_in_the_way_is_refused_by_every_door() {
    let (_held, base) = place();
    std::fs::write(base.join("elsewhere/b/file"), "theirs").unwrap();
    std::fs::write(base.join("a/b/file"), "ours").unwrap();
    let path = base.join("a/b/file");
    let seen = exact::read(&path, 100).unwrap().stamp;
    for last in [false, true] {
        std::fs::remove_dir_all(base.join("a")).unwrap();
        if last {
            std::fs::create_dir_all(base.join("a/b")).unwrap();
            symlink(base.join("elsewhere/b/file"), &path).unwrap();
        } else {
            symlink(base.join("elsewhere"), base.join("a")).unwrap();
        }
        assert!(matches!(exact::open(&path), Err(Error::Linked { .. })));
        assert!(matches!(exact::read(&path, 100), Err(Error::Linked { .. })));
        assert!(matches!(exact::replace(&path, b"new"), Err(Error::Linked { .. })));
        assert!(matches!(exact::replace_unchanged(&path, b"new", &seen), Err(Error::Linked { .. })));
        assert!(exact::create_new(&path, b"new").is_err());
        assert_eq!(std::fs::read(base.join("elsewhere/b/file")).unwrap(), b"theirs");
        if last {
            exact::remove(&path).unwrap();
        } else {
            assert!(matches!(exact::remove(&path), Err(Error::Linked { .. })));
            std::fs::remove_file(base.join("a")).unwrap();
            std::fs::create_dir_all(base.join("a/b")).unwrap();
        }
        assert!(base.join("elsewhere/b/file").exists());
    }
}

/// Where no link is in the way, files are made with their directories, keep their mode, and are compared.
#[test]
fn without_links_it_writes_as_the_others_do() {
    let (_held, base) = place();
    let path = base.join("new/deep/file");
    let made = exact::create_new(&path, b"one").unwrap();
    assert!(matches!(exact::create_new(&path, b"two"), Err(Error::Exists { .. })));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let two = exact::replace_unchanged(&path, b"two", &made).unwrap();
    assert!(matches!(exact::replace_unchanged(&path, b"three", &made), Err(Error::Changed { .. })));
    assert!(exact::read(&path, 10).unwrap().stamp.same_content(&two));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o751);
    assert!(matches!(exact::read(base.join("new"), 10), Err(Error::IsDirectory { .. })));
    assert!(matches!(exact::read(base.join("none/x"), 10), Err(Error::NotFound { .. })));
    assert!(matches!(exact::read("relative", 10), Err(Error::Io { .. })));
    exact::remove(&path).unwrap();
    assert!(!path.exists());
}

/// SANDBOX-2: what is set aside is moved and never lost: into the folder, under a name that nothing has, also out of a
/// directory that was shut; and only while it is what was seen.
#[test]
fn what_is_set_aside_is_kept_whole() {
    let (_held, base) = place();
    let (path, folder) = (base.join("a/b/.hooks"), base.join("kept"));
    let make = |text: &str| {
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("file"), text).unwrap();
        exact::identity(&path).unwrap()
    };
    let first = make("one");
    assert_eq!(exact::set_aside(&path, &first, &folder).unwrap(), folder.join("kept-1.hooks"));
    let second = make("two");
    assert!(matches!(exact::set_aside(&path, &first, &folder), Err(Error::Changed { .. })), "it is another one");
    let mode = |mode| std::fs::set_permissions(base.join("a"), std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    assert_eq!(exact::set_aside(&path, &second, &folder).unwrap(), folder.join("kept-2.hooks"));
    assert_eq!(std::fs::metadata(base.join("a")).unwrap().permissions().mode() & 0o777, 0o000, "it is shut again");
    mode(0o700);
    for (name, text) in [("kept-1.hooks", "one"), ("kept-2.hooks", "two")] {
        assert_eq!(std::fs::read_to_string(folder.join(name).join("file")).unwrap(), text);
    }
    // Where the folder cannot be had, it is kept beside.
    let third = make("three");
    std::fs::write(base.join("file"), "").unwrap();
    let beside = exact::set_aside(&path, &third, base.join("file/kept")).unwrap();
    assert_eq!(beside, base.join("a/b/kept-1.hooks"));
    assert_eq!(std::fs::read_to_string(beside.join("file")).unwrap(), "three");
    // A link is moved itself, and none on the way is followed.
    symlink(base.join("elsewhere"), &path).unwrap();
    let link = exact::identity(&path).unwrap();
    assert_eq!(exact::set_aside(&path, &link, &folder).unwrap(), folder.join("kept-3.hooks"));
    assert!(base.join("elsewhere/b").exists());
    symlink(base.join("elsewhere"), base.join("linked")).unwrap();
    let inside = exact::identity(base.join("elsewhere/b")).unwrap();
    assert!(matches!(exact::set_aside(base.join("linked/b"), &inside, &folder), Err(Error::Linked { .. })));
}
