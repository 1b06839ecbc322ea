//! A root: nothing outside it can be named.

use std::os::unix::fs::{PermissionsExt, symlink};

use files::{Error, Root};

#[test]
fn paths_that_lead_outside_are_refused_by_every_door() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("secret"), "s").unwrap();
    let root = Root::create(directory.path().join("root")).unwrap();
    symlink("../secret", directory.path().join("root/link")).unwrap();
    symlink("/", directory.path().join("root/slash")).unwrap();
    for path in ["../secret", "/etc/passwd", "link", "slash/etc/passwd", "a/../../secret"] {
        let read = root.read(path, 100).unwrap_err();
        assert!(matches!(read, Error::Escapes { .. } | Error::NotFound { .. }), "{path}: {read:?}");
    }
    for path in ["../new", "/tmp/new", "slash/tmp/new", ".."] {
        let error = root.replace(path, b"x", 0o600).unwrap_err();
        assert!(matches!(error, Error::Escapes { .. }), "{path}: {error:?}");
        assert!(root.create_new(path, b"x", 0o600).is_err());
        assert!(root.remove(path).is_err());
    }
    assert!(matches!(root.sub("slash").unwrap_err(), Error::Escapes { .. }));
    assert!(matches!(root.sub("..").unwrap_err(), Error::Escapes { .. }));
    assert_eq!(std::fs::read(directory.path().join("secret")).unwrap(), b"s");
}

/// MEM-7: files have the mode they were given and directories are private.
#[test]
fn files_are_written_with_their_mode_below_private_directories() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::create(directory.path().join("deep/root")).unwrap();
    root.replace("a/b.md", b"one", 0o600).unwrap();
    root.replace("a/b.md", b"two", 0o600).unwrap();
    assert!(matches!(root.create_new("a/b.md", b"three", 0o600).unwrap_err(), Error::Exists { .. }));
    root.create_new("a/c.md", b"three", 0o640).unwrap();
    let snapshot = root.read("a/b.md", 3).unwrap();
    assert_eq!(snapshot.bytes, b"two");
    assert!(matches!(root.read("a/c.md", 3).unwrap_err(), Error::TooLarge { .. }));
    assert!(matches!(root.read("a", 3).unwrap_err(), Error::IsDirectory { .. }));
    let mode = |path: &str| std::fs::metadata(directory.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        [mode("deep"), mode("deep/root"), mode("deep/root/a"), mode("deep/root/a/b.md"), mode("deep/root/a/c.md")],
        [0o700, 0o700, 0o700, 0o600, 0o640]
    );
    let below = root.sub("a").unwrap();
    let names: Vec<_> = below.list().unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["b.md", "c.md"]);
    below.remove("b.md").unwrap();
    assert!(matches!(root.read("a/b.md", 9).unwrap_err(), Error::NotFound { .. }));
    assert!(root.sub("none").is_err());
    root.create_sub("none/other").unwrap().replace("x", b"", 0o600).unwrap();
}

#[test]
fn a_pipe_below_a_root_does_not_hang() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::open(directory.path()).unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert!(matches!(root.read("pipe", 9).unwrap_err(), Error::NotRegular { .. }));
}

#[test]
fn a_head_is_the_beginning_of_a_file_and_its_length() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::open(directory.path()).unwrap();
    root.replace("a", b"0123456789", 0o600).unwrap();
    let head = root.head("a", 4).unwrap();
    assert_eq!((head.bytes.as_slice(), head.len, head.modified.is_some()), (&b"0123"[..], 10, true));
    assert_eq!(root.head("a", 10).unwrap().bytes, b"0123456789");
    assert_eq!(root.head("a", 1_000).unwrap().bytes, b"0123456789");
    root.replace("empty", b"", 0o600).unwrap();
    assert_eq!(root.head("empty", 9).unwrap().bytes, b"");
    rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    assert!(matches!(root.head("pipe", 9).unwrap_err(), Error::NotRegular { .. }));
    assert!(matches!(root.head(".", 9).unwrap_err(), Error::IsDirectory { .. }));
}

#[test]
fn a_walk_finds_what_lies_below_and_ends_in_a_loop_of_links() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::open(directory.path()).unwrap();
    for path in ["b.md", "a/c.md", "a/d/e.md", "logs/f.md"] {
        root.replace(path, b"", 0o600).unwrap();
    }
    symlink("..", directory.path().join("a/loop")).unwrap();
    let found = root.walk(|path| path != std::path::Path::new("logs")).unwrap();
    let paths: Vec<_> = found.iter().map(|found| (found.path.to_str().unwrap(), found.kind)).collect();
    let file = files::EntryKind::File;
    assert_eq!(paths, [("a/c.md", file), ("a/d/e.md", file), ("a/loop", files::EntryKind::Link), ("b.md", file)]);
}

/// TEAM-9: a walk names what it could not list, and goes on.
#[test]
fn a_walk_names_what_it_could_not_list() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::open(directory.path()).unwrap();
    let deep = "d/".repeat(34);
    for path in ["a.md", "sub/b.md", "skipped/c.md", &format!("{deep}e.md")] {
        root.replace(path, b"", 0o600).unwrap();
    }
    let walk = root.walk_whole(|path| path != std::path::Path::new("skipped")).unwrap();
    let paths: Vec<_> = walk.found.iter().map(|found| found.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["a.md", "sub/b.md"]);
    assert_eq!(walk.unlisted, [std::path::PathBuf::from(&deep[..2 * 33 - 1])], "too deep to be entered");
}

/// MEM-7: a file that changed since it was read is not overwritten, nor is one that is in the way of a new name.
#[test]
fn what_changed_meanwhile_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::open(directory.path()).unwrap();
    root.replace("a", b"one", 0o600).unwrap();
    let seen = root.read("a", 9).unwrap().stamp;
    root.replace_unchanged("a", b"two", &seen, 0o600).unwrap();
    assert!(matches!(root.replace_unchanged("a", b"three", &seen, 0o600).unwrap_err(), Error::Changed { .. }));
    assert_eq!(root.read("a", 9).unwrap().bytes, b"two");
    root.replace("b", b"", 0o600).unwrap();
    assert!(matches!(root.rename("a", "b").unwrap_err(), Error::Exists { .. }));
    assert!(matches!(root.rename("none", "c").unwrap_err(), Error::NotFound { .. }));
    assert!(root.rename("a", "../c").is_err());
    root.rename("a", "sub/c").unwrap();
    assert!(matches!(root.read("a", 9).unwrap_err(), Error::NotFound { .. }));
    assert_eq!(root.read("sub/c", 9).unwrap().bytes, b"two");
    root.remove("sub/c").unwrap();
    assert!(matches!(root.replace_unchanged("sub/c", b"x", &seen, 0o600).unwrap_err(), Error::Changed { .. }));
}

#[test]
fn a_lock_keeps_a_second_holder_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::open(directory.path()).unwrap();
    let held = root.lock(".lock").unwrap();
    let path = directory.path().to_owned();
    let (say, heard) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || {
        let lock = Root::open(&path).unwrap().lock(".lock").unwrap();
        say.send(()).unwrap();
        drop(lock);
    });
    assert!(heard.try_recv().is_err());
    drop(held);
    heard.recv().unwrap();
    waiting.join().unwrap();
    assert!(root.lock("../lock").is_err());
}

/// A lock that somebody holds and never gives back is not waited for without end; one that is given back is had.
#[test]
fn a_lock_is_waited_for_no_longer_than_said() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::open(folder.path()).unwrap();
    let held = root.lock("x.lock").unwrap();
    let moment = std::time::Duration::from_millis(20);
    let error = root.lock_within("x.lock", moment).unwrap_err();
    assert!(error.to_string().contains("x.lock"), "{error}");
    drop(held);
    root.lock_within("x.lock", moment).unwrap();
}
