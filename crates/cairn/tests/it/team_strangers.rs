//! Strangers at a team server's door, with many connections and nothing to say: members are served, and it ends when it is
//! told to.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::stage::bare;
use crate::team::Server;

/// The beginning of HTTP/2, with empty settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
/// Half the head of a request.
const HALF: &[u8] = b"GET /health HTTP/1.1\r\nhost: x\r\nx-slow: ";
/// A whole one, after which the connection stays.
const WHOLE: &[u8] = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n";

/// A server that may have so many files open.
fn server(home: &Path, files: u64) -> Server {
    std::fs::create_dir_all(home).unwrap();
    let inner = bare(home, &home.join(".claude"));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh"]).arg(inner.get_program());
    command.args(["team", "serve", "--listen", "127.0.0.1:0"]).current_dir(home).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Server::of(&mut command)
}

/// Lets this test have as many files open as it may.
fn with_many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// Opens connections that say so much and no more, several at a time. They stay open on this side.
fn open(address: &str, count: usize, says: &[u8]) -> Vec<TcpStream> {
    const AT_ONCE: usize = 20;
    let connect = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(says); // one that was cut already says nothing
        stream
    };
    std::thread::scope(|scope| {
        let some = |_| scope.spawn(|| (0..count / AT_ONCE).map(connect).collect::<Vec<_>>());
        let opening: Vec<_> = (0..AT_ONCE).map(some).collect();
        opening.into_iter().flat_map(|some| some.join().unwrap()).collect()
    })
}

/// How long the server takes to say that it is well, tried again where it cuts the connection.
fn health(address: &str) -> Duration {
    let began = Instant::now();
    loop {
        let mut answer = String::new();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let asked = stream.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let _ = asked.and_then(|()| stream.read_to_string(&mut answer));
        if answer.starts_with("HTTP/1.1 200") {
            return began.elapsed();
        }
        assert!(began.elapsed() < Duration::from_secs(20), "it does not answer: {answer:?}");
    }
}

/// TEAM-8: two thousand connections that say nothing, greet in HTTP/2, send half a head, or stay after an answer: others are
/// served within a second, and SIGTERM ends the server within five.
#[test]
fn silent_connections_keep_nobody_out() {
    with_many_files();
    let place = tempfile::tempdir().unwrap();
    for (files, share) in [(1_024, 1), (64, 5)] {
        let server = server(&place.path().join(files.to_string()), files);
        let address = server.address.strip_prefix("http://").unwrap().to_owned();
        let mut kept = Vec::new();
        for (count, says) in [(2_000, &b""[..]), (2_000, GREETING), (500, HALF), (500, WHOLE)] {
            kept.extend(open(&address, count / share, says));
            for _ in 0..3 {
                let took = health(&address);
                assert!(took < Duration::from_secs(1), "{took:?} beside {} connections, {files} files", kept.len());
            }
        }
        let began = Instant::now();
        assert_eq!(server.stop(), Some(0));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

/// TEAM-8: a server that can open no more files waits for some, and does not spin.
#[test]
fn a_server_without_files_does_not_spin() {
    with_many_files();
    let place = tempfile::tempdir().unwrap();
    let server = server(&place.path().join("home"), 64);
    let address = server.address.strip_prefix("http://").unwrap().to_owned();
    // In the middle of a request nobody is cut: these hold all files for as long as a body may take.
    let joining = b"POST /api/team/join HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n";
    let mut kept = open(&address, 40, joining);
    for stream in &mut kept {
        let mut said = [0; 12];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 100");
    }
    let before = server.worked();
    let began = Instant::now();
    // Who has not sent a word yet gives way to others, so it takes some tries until nobody does.
    let mut is_full = || {
        kept.extend(open(&address, 40, joining));
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        stream.write_all(WHOLE).unwrap();
        stream.read(&mut [0; 1]).is_err()
    };
    assert!((0..20).any(|_| is_full()), "there is no file for it");
    let worked = server.worked() - before;
    assert!(worked < Duration::from_secs(1), "{worked:?} of work in {:?}", began.elapsed());
    let began = Instant::now();
    assert_eq!(server.stop(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
