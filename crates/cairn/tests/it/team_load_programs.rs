//! Forty members at work as programs of their own, while programs and the server are killed, connections are cut and stall,
//! two programs work in one folder, and folders cannot be listed.
//!
//! Every text is typed once and no file is ever deleted. So whatever stands twice in an entry's history was an old text that
//! came back over a newer one, and whatever was deleted there was deleted by nobody. In `./test` it lasts some twenty
//! seconds, in `./test full` three minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use team::store::Store;

use crate::stage::{bare, run};
use crate::team::{Checkout, Server};

const MEMBERS: usize = 40;
/// Texts that everybody changes, some of them in a folder that cannot be listed now and then.
const CONTENDED: [&str; 5] = ["all-0.md", "all-1.md", "all-2.md", "shared/all-3.md", "shared/all-4.md"];
const SHORT: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(180);

/// Numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Stands between members and the server, and cuts some connections or lets them stall.
fn proxy(server: SocketAddr, is_calm: Arc<AtomicBool>, cut: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut chance = Chance(0x1234_5678_9abc_def1);
        for client in listener.incoming().flatten() {
            let drawn = if is_calm.load(Ordering::SeqCst) { 100 } else { chance.below(100) };
            let (up, down, stall) = match drawn {
                0..6 => (chance.below(2_000), u64::MAX, false),
                6..14 => (u64::MAX, chance.below(2_000), false),
                14..17 => (0, 0, true),
                _ => (u64::MAX, u64::MAX, false),
            };
            cut.fetch_add(usize::from(drawn < 17), Ordering::SeqCst);
            std::thread::spawn(move || exchange(client, server, up, down, stall));
        }
    });
    address
}

fn exchange(client: TcpStream, server: SocketAddr, up: u64, down: u64, stall: bool) {
    if stall {
        std::thread::sleep(Duration::from_secs(1));
        return;
    }
    let Ok(server) = TcpStream::connect(server) else { return };
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let sending = std::thread::spawn(move || carry(&mut from, &mut to, up));
    let (mut from, mut to) = (server, client);
    carry(&mut from, &mut to, down);
    let _ = sending.join();
}

/// Carries so many bytes, then hangs up on both.
fn carry(from: &mut TcpStream, to: &mut TcpStream, most: u64) {
    let (mut buffer, mut left) = ([0; 8192], most);
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let part = read.min(usize::try_from(left).unwrap_or(usize::MAX));
        if to.write_all(&buffer[..part]).is_err() || part < read {
            break;
        }
        left -= part as u64;
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[derive(Default)]
struct Tally {
    well: AtomicUsize,
    failed: AtomicUsize,
    killed: AtomicUsize,
    twins: AtomicUsize,
    /// Texts that were told to have been sent, by entry.
    acknowledged: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

struct Member {
    number: usize,
    checkout: Checkout,
    folder: PathBuf,
}

impl Member {
    fn push(&self) -> Child {
        let mut command = bare(&self.checkout.home.join("project"), &self.checkout.home.join(".claude"));
        command.args(["team", "push"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn write(&self, name: &str, text: &str) -> bool {
        let path = self.folder.join(name);
        let is_link = path.parent().unwrap().is_symlink();
        if !is_link {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        !is_link
    }

    fn works(&self, tally: &Tally, until: Instant) {
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ (self.number as u64 + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
        for round in 0.. {
            if Instant::now() > until {
                return;
            }
            let mut typed = BTreeMap::new();
            let mut writes = |name: String, text: String| {
                if self.write(&name, &text) {
                    typed.insert(name, text);
                }
            };
            writes(format!("m{}/{}.md", self.number, round % 4), format!("{} types {round}\n", self.number));
            let contended = CONTENDED[chance.below(CONTENDED.len() as u64) as usize];
            if chance.below(2) == 0 {
                writes(contended.to_owned(), format!("{} types {round} here\n", self.number));
            }
            let hidden = chance.below(12) == 0 && self.hide();
            let mut child = self.push();
            let twin = (chance.below(100) < 8).then(|| self.push());
            if chance.below(100) < 15 {
                std::thread::sleep(Duration::from_millis(chance.below(900)));
                let _ = child.kill();
                tally.killed.fetch_add(1, Ordering::Relaxed);
            }
            let output = child.wait_with_output().unwrap();
            if let Some(twin) = twin {
                tally.twins.fetch_add(1, Ordering::Relaxed);
                let _ = twin.wait_with_output();
            }
            if hidden {
                self.show();
            }
            let outcome = if output.status.code() == Some(0) { &tally.well } else { &tally.failed };
            outcome.fetch_add(1, Ordering::Relaxed);
            if output.status.code() == Some(0) {
                let told = String::from_utf8_lossy(&output.stdout).into_owned();
                let mut acknowledged = tally.acknowledged.lock().unwrap();
                for name in told.lines().filter_map(|line| line.strip_prefix("sent     ")) {
                    if let Some(text) = typed.remove(name) {
                        acknowledged.entry(name.to_owned()).or_default().insert(text);
                    }
                }
            }
        }
    }

    /// The shared folder becomes a link to where it lies now: nothing of it can be listed.
    fn hide(&self) -> bool {
        let (folder, away) = (self.folder.join("shared"), self.checkout.home.join("away"));
        folder.is_dir()
            && !folder.is_symlink()
            && std::fs::rename(&folder, &away).is_ok()
            && std::os::unix::fs::symlink(&away, &folder).is_ok()
    }

    fn show(&self) {
        let (folder, away) = (self.folder.join("shared"), self.checkout.home.join("away"));
        std::fs::remove_file(&folder).unwrap();
        std::fs::rename(away, folder).unwrap();
    }

    fn texts(&self) -> BTreeMap<String, String> {
        let found = team::folder::Folder::open(&self.folder).unwrap().look().unwrap();
        assert!(found.left.is_empty(), "{:?}", found.left);
        found.files.into_iter().map(|(key, checksum)| (key.to_string(), checksum)).collect()
    }
}

fn serve(home: &Path, address: &str) -> std::process::Command {
    let mut command = bare(home, &home.join(".claude"));
    command.args(["team", "serve", "--listen", address, "--requests", "1000000", "--versions", "1000000"]);
    command.args(["--max-entries", "1000000"]).stderr(Stdio::null());
    command
}

/// TEAM-3, TEAM-5, TEAM-9: nothing acknowledged is lost, no old text comes back over a newer one, nothing is deleted, and in
/// the end all folders are alike.
#[test]
fn forty_members_lose_nothing_whatever_is_killed() {
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let home = root.path().join("server");
    std::fs::create_dir_all(&home).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let first = Server::of(&mut serve(&home, &address.to_string()));
    let invitation = first.invitation.clone();
    let mut server = Some(first);
    let (is_calm, cut) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let way = format!("http://{}", proxy(address, is_calm.clone(), cut.clone()));
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let checkout = Checkout::new(root.path(), &format!("member-{number}"), "git@github.com:acme/rocket.git");
        let code = match members.first() {
            None => invitation.clone(),
            Some(Member { checkout, .. }) => {
                let invited = checkout.team(&["invite"]).stdout;
                invited.split("--invitation ").nth(1).unwrap().split(' ').next().unwrap().to_owned()
            }
        };
        let joined = checkout.team(&["join", &way, "--invitation", &code, "--name", &format!("m{number}")]);
        assert_eq!(joined.code, Some(0), "{joined:?}");
        let folder = checkout.folder();
        members.push(Member { number, checkout, folder });
    }
    is_calm.store(false, Ordering::SeqCst);
    let lasts = if std::env::var_os("CAIRN_TEST_FULL").is_some() { LONG } else { SHORT };
    let (tally, until) = (Tally::default(), Instant::now() + lasts);
    let mut kills = 0;
    std::thread::scope(|scope| {
        let tally = &tally;
        let works: Vec<_> = members.iter().map(|member| scope.spawn(move || member.works(tally, until))).collect();
        let mut chance = Chance(0xfeed_beef);
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(4_000 + chance.below(3_000)));
            // SIGKILL, and another in its place.
            drop(server.take());
            server = Some(Server::again(&mut serve(&home, &address.to_string())));
            kills += 1;
        }
        works.into_iter().for_each(|work| work.join().unwrap());
    });
    is_calm.store(true, Ordering::SeqCst);
    for member in members.iter().chain(&members) {
        let pushed =
            run(bare(&member.checkout.home.join("project"), &member.checkout.home.join(".claude"))
                .args(["team", "push"]));
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
    }
    drop(server);
    judge(&home, &members, &tally);
    let count = |what: &AtomicUsize| what.load(Ordering::Relaxed);
    eprintln!(
        "{MEMBERS} members, {lasts:?}: {} runs ended well, {} otherwise, {} killed, {} with another in the folder; server \
         killed {kills} times, {} connections cut or stalled",
        count(&tally.well),
        count(&tally.failed),
        count(&tally.killed),
        count(&tally.twins),
        count(&cut)
    );
    assert!(count(&tally.killed) > 0 && count(&tally.twins) > 0 && kills > 0);
}

fn judge(home: &Path, members: &[Member], tally: &Tally) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = home.join(".claude/cairn/team-server.db").display().to_string();
    let repository = "acme/rocket".parse().unwrap();
    runtime.block_on(async {
        let store = Store::open(&database).await.unwrap();
        let hashes = store.hashes(&repository).await.unwrap().unwrap();
        let there: BTreeMap<String, String> =
            hashes.entry_checksums.iter().map(|(key, checksum)| (key.to_string(), checksum.clone())).collect();
        for member in members {
            assert_eq!(member.texts(), there, "{}", member.folder.display());
        }
        assert!(hashes.deleted.is_empty(), "nobody deleted {:?}", hashes.deleted);
        let (mut came_back, mut lost) = (Vec::new(), Vec::new());
        let mut acknowledged = tally.acknowledged.lock().unwrap().clone();
        for key in hashes.entry_checksums.keys() {
            let texts: Vec<String> =
                store.history(&repository, key).await.unwrap().into_iter().filter_map(|one| one.text).collect();
            let all: BTreeSet<&String> = texts.iter().collect();
            if all.len() < texts.len() {
                came_back.push(format!("{key}: {} of {}", texts.len() - all.len(), texts.len()));
            }
            let sent = acknowledged.remove(key.as_str()).unwrap_or_default();
            lost.extend(sent.into_iter().filter(|text| !all.contains(text)));
        }
        assert!(lost.is_empty() && acknowledged.is_empty(), "lost: {lost:?} {acknowledged:?}");
        assert!(came_back.is_empty(), "old texts came back over newer ones: {came_back:?}");
        store.close().await;
    });
}
