//! Single files by absolute path: bounded, never hanging, atomic.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use files::{EntryKind, Error};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_pipe_a_device_and_a_directory_are_refused_without_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let socket = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [&pipe, &socket, Path::new("/dev/zero")] {
        assert!(matches!(files::read(path, 10).unwrap_err(), Error::NotRegular { .. }));
        assert!(matches!(files::stamp(path).unwrap_err(), Error::NotRegular { .. }));
        assert!(matches!(files::replace(path, b"x").unwrap_err(), Error::NotRegular { .. }));
    }
    assert!(matches!(files::read(directory.path(), 10).unwrap_err(), Error::IsDirectory { .. }));
    assert!(matches!(files::replace(directory.path(), b"").unwrap_err(), Error::IsDirectory { .. }));
}

#[test]
fn reading_is_bounded_even_where_the_length_is_not_known() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    std::fs::write(&path, "12345").unwrap();
    assert_eq!(files::read(&path, 5).unwrap().bytes, b"12345");
    assert!(matches!(files::read(&path, 4).unwrap_err(), Error::TooLarge { size: 5, limit: 4, .. }));
    assert!(matches!(files::read("/proc/self/status", 10).unwrap_err(), Error::TooLarge { limit: 10, .. }));
    assert_eq!(files::read_range(&path, 1, 3).unwrap(), b"234");
    assert_eq!(files::read_range(&path, 4, u64::MAX).unwrap(), b"5");
    assert_eq!(files::read_range(&path, 9, 3).unwrap(), b"");
    assert!(matches!(files::read(directory.path().join("none"), 1).unwrap_err(), Error::NotFound { .. }));
}

/// MEM-7: a file is replaced atomically, with its mode, through a link, and nothing is left beside it.
#[test]
fn replacing_keeps_the_mode_and_writes_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    let link = directory.path().join("link");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    symlink("script", &link).unwrap();
    files::replace(&link, b"new").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(mode(&path), 0o751);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(files::list(directory.path()).unwrap().len(), 2);
}

#[test]
fn replacing_makes_directories_and_the_target_of_a_dangling_link() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/c.txt");
    files::replace(&path, b"x").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"x");
    let dangling = directory.path().join("dangling");
    symlink("a/b/later", &dangling).unwrap();
    files::replace(&dangling, b"y").unwrap();
    assert_eq!(std::fs::read(directory.path().join("a/b/later")).unwrap(), b"y");
    symlink("circle", directory.path().join("circle")).unwrap();
    assert!(files::replace(directory.path().join("circle"), b"").is_err());
    assert!(files::replace("relative", b"").unwrap_err().to_string().contains("must be absolute"));
}

/// MEM-7: a concurrent edit is never overwritten silently.
#[test]
fn a_file_that_changed_since_it_was_read_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.md");
    std::fs::write(&path, "mine").unwrap();
    let seen = files::read(&path, 100).unwrap().stamp;
    std::fs::write(&path, "user").unwrap();
    let error = files::replace_unchanged(&path, b"other", &seen).unwrap_err();
    assert!(matches!(error, Error::Changed { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), b"user");

    let seen = files::stamp(&path).unwrap();
    std::fs::write(&path, "user").unwrap();
    let written = files::replace_unchanged(&path, b"other", &seen).unwrap();
    assert!(written.same_content(&files::stamp(&path).unwrap()), "touched is not changed");
}

#[test]
fn creating_never_overwrites() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new");
    files::create_new(&path, b"first").unwrap();
    assert!(matches!(files::create_new(&path, b"second").unwrap_err(), Error::Exists { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), b"first");
    let entries = files::list(directory.path()).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].kind, entries[0].len), (EntryKind::File, 5));
    files::remove(&path).unwrap();
    assert!(files::list(directory.path()).unwrap().is_empty());
}

#[test]
fn the_real_path_follows_links_and_keeps_what_does_not_exist() {
    let directory = tempfile::tempdir().unwrap();
    let base = std::fs::canonicalize(directory.path()).unwrap();
    std::fs::create_dir(base.join("dir")).unwrap();
    symlink("/etc", base.join("out")).unwrap();
    symlink("dir", base.join("in")).unwrap();
    assert_eq!(files::real(base.join("out/passwd")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(files::real(base.join("in/./none/../x")).unwrap(), base.join("dir/x"));
    assert_eq!(files::real(base.join("out/../usr")).unwrap(), Path::new("/usr"));
}

/// What belongs to us or to the system is ours; what belongs to another is not, unless what is known belongs to them too.
#[test]
fn a_file_of_another_user_is_not_ours() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
    std::fs::write(&ours, "").unwrap();
    std::fs::write(&theirs, "").unwrap();
    assert!(files::is_own(&ours, "/") && files::is_own("/", &ours));
    assert!(!files::is_own(directory.path().join("none"), "/"));
    // Only root can give a file away.
    if std::os::unix::fs::chown(&theirs, Some(54_321), None).is_ok() {
        assert!(!files::is_own(&theirs, &ours));
        assert!(files::is_own(&theirs, &theirs));
    }
}

#[test]
fn what_is_private_is_its_owners_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/below/file");
    files::replace_private(&path, b"one").unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    files::replace_private(&path, b"two").unwrap();
    assert_eq!((mode(&path), std::fs::read(&path).unwrap()), (0o600, b"two".to_vec()));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    files::make_private(&path).unwrap();
    assert_eq!((mode(&path), std::fs::read(&path).unwrap()), (0o600, b"two".to_vec()), "what is in it stays");
    let new = directory.path().join("empty");
    files::make_private(&new).unwrap();
    assert_eq!((mode(&new), std::fs::read(&new).unwrap()), (0o600, Vec::new()));
}
