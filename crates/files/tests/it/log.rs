//! The log: durable, torn-write safe, one writer.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use files::{Error, LineEnding, Lines, Log, Text};

/// Every line that ends in a newline and says something.
pub(crate) fn whole_lines(path: &Path) -> Vec<Vec<u8>> {
    let mut lines = Lines::open(path).unwrap();
    let mut whole = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        if let (Text::Whole(text), LineEnding::Newline) = (line.text, line.ending)
            && !text.is_empty()
        {
            whole.push(text.to_vec());
        }
    }
    whole
}

/// LOG-7: a file cut at any byte loads with every whole line before the cut, takes the next append on a line of its
/// own, and keeps the torn one.
#[test]
fn every_byte_prefix_of_a_log_loads_and_takes_the_next_append() {
    let directory = tempfile::tempdir().unwrap();
    let log = "{\"n\":1}\n{\"text\":\"zwölf\"}\n\n{\"n\":3}\n".as_bytes();
    for cut in 0..=log.len() {
        let path = directory.path().join(format!("{cut}.jsonl"));
        std::fs::write(&path, &log[..cut]).unwrap();
        let before = whole_lines(&path);
        let lines = log[..cut].split_inclusive(|byte| *byte == b'\n');
        let complete = lines.filter(|line| line.ends_with(b"\n") && line.len() > 1).count();
        assert_eq!(before.len(), complete, "cut at {cut}");

        Log::open(&path, "test").unwrap().append(b"{\"next\":true}\n").unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.starts_with(&log[..cut]), "nothing is removed, cut at {cut}");
        assert!(bytes.ends_with(b"\n{\"next\":true}\n") || cut == 0);
        let after = whole_lines(&path);
        assert_eq!(after[..before.len()], before, "cut at {cut}");
        assert_eq!(after.last().unwrap(), b"{\"next\":true}");
    }
}

#[test]
fn appends_are_whole_lines_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/log.jsonl");
    let mut log = Log::open(&path, "test").unwrap();
    log.append(b"one\ntwo\n").unwrap();
    log.append(b"").unwrap();
    log.append(b"three without its newline").unwrap();
    log.append(b"four\n").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\nthree without its newline\nfour\n");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&directory.path().join("deep")), 0o700);
    assert_eq!(mode(&directory.path().join("deep/er")), 0o700);
}

/// LOG-8: the second to open a log for writing is told who holds it, by whatever name it comes; reading goes on.
#[test]
fn the_second_writer_is_told_who_holds_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.jsonl");
    let holder = format!("pid {}, since 10:15", std::process::id());
    let mut first = Log::open(&path, &holder).unwrap();
    first.append(b"one\n").unwrap();
    let link = directory.path().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for name in [&path, &link] {
        let error = Log::open(name, "me").unwrap_err();
        assert!(matches!(&error, Error::Held { by, .. } if *by == holder), "{error:?}");
        assert!(error.to_string().ends_with(&format!("is open for writing elsewhere: {holder}")));
    }
    assert_eq!(whole_lines(&path).len(), 1);
    drop(first);
    Log::open(&path, "me").unwrap().append(b"two\n").unwrap();
    assert_eq!(whole_lines(&path).len(), 2);
    assert!(!directory.path().join("log.jsonl.writer").exists(), "nothing says it is held when it is not");
}

#[test]
fn what_a_dead_writer_left_does_not_look_like_a_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.jsonl");
    std::fs::write(directory.path().join("log.jsonl.writer"), "pid 1, long dead").unwrap();
    let holder = format!("pid {}", std::process::id());
    let _first = Log::open(&path, &holder).unwrap();
    assert!(matches!(Log::open(&path, "me").unwrap_err(), Error::Held { by, .. } if by == holder));
}

#[test]
fn a_pipe_or_a_directory_is_no_log() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert!(matches!(Log::open(&pipe, "x").unwrap_err(), Error::NotRegular { .. }));
    assert!(matches!(Log::open(directory.path(), "x").unwrap_err(), Error::IsDirectory { .. }));
}

/// LOG-7: a process that is killed while it starts another leaves the log to that one for a moment. Whoever opens it then
/// gets it all the same.
#[test]
fn a_log_is_opened_as_soon_as_a_dying_process_lets_go_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.jsonl");
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    // Its child has what it had open, until it runs something else.
    std::fs::write(&path, "").unwrap();
    std::fs::write(directory.path().join("log.jsonl.writer"), format!("pid {}", gone.id())).unwrap();
    let inherited = std::fs::File::open(&path).unwrap();
    inherited.lock().unwrap();
    let lets_go = std::thread::spawn(move || {
        (0..20).for_each(|_| std::thread::yield_now());
        drop(inherited);
    });
    Log::open(&path, "me").unwrap();
    lets_go.join().unwrap();
}
