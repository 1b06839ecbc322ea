//! Forty members at work as programs of their own, while programs and the server are killed, connections are cut and stall,
//! two programs work in one folder, folders cannot be listed, disks are full, clocks are set back, and the server moves and
//! is restored from a backup.
//!
//! A program is killed as soon as it has changed a file: then it has taken some of what others wrote, and not all. Every text
//! is typed once and no file is ever deleted. So whatever stands twice in an entry's history was an old text that came back
//! over a newer one, and whatever was deleted there was deleted by nobody. Each member has files that nobody else writes:
//! what was typed last is what they say in the end. In `./test` it lasts some seconds, in `./test full` three minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use team::store::{Store, Version};

use crate::skipped::is_full;
use crate::stage::{bare, run};
use crate::team::{Checkout, Server};
use crate::team_load_trouble::{Means, Trouble, set_back};

const MEMBERS: usize = 40;
/// Texts that everybody changes, some of them in a folder that cannot be listed now and then.
const CONTENDED: [&str; 5] = ["all-0.md", "all-1.md", "all-2.md", "shared/all-3.md", "shared/all-4.md"];
const SHORT: Duration = Duration::from_secs(6);
const LONG: Duration = Duration::from_secs(180);
/// How often it is looked whether a program has changed a file.
const LOOK: Duration = Duration::from_millis(1);
/// By how many seconds the clock of a server is behind that of the one before.
const SERVER_BACK: u64 = 600;
/// Files that a member alone writes.
const OWN: usize = 4;

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

/// Stands between members and the server, wherever that is now, and cuts some connections or lets them stall.
fn proxy(server: Arc<Mutex<SocketAddr>>, is_calm: Arc<AtomicBool>, cut: Arc<AtomicUsize>) -> SocketAddr {
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
            let server = *server.lock().unwrap();
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
    /// Of those, the ones that had changed a file already.
    cut_short: AtomicUsize,
    twins: AtomicUsize,
    /// Runs on a full disk, or beside a folder that may not be listed.
    troubled: AtomicUsize,
    /// Members that do nothing any more.
    over: AtomicUsize,
    /// Counts how often an older backup took the place of the server.
    epoch: AtomicUsize,
    /// Texts that were told to have been sent, by entry, by a server that is still there.
    acknowledged: Mutex<Texts>,
    /// What each member typed last into the files that nobody else writes.
    own: Mutex<BTreeMap<String, String>>,
    /// What happened, in order, for whoever has to find out why it failed: the member and what it did, none for the server.
    journal: Mutex<Vec<(Option<usize>, String)>>,
}

impl Tally {
    fn notes(&self, member: Option<usize>, what: String) {
        self.journal.lock().unwrap().push((member, what));
    }

    /// What a member and the server did.
    fn story(&self, member: usize) -> String {
        let journal = self.journal.lock().unwrap();
        let of_them = journal.iter().filter(|(who, _)| who.is_none_or(|who| who == member));
        of_them.map(|(_, what)| format!("{what}\n")).collect()
    }

    fn runs(&self) -> usize {
        self.well.load(Ordering::Relaxed) + self.failed.load(Ordering::Relaxed)
    }
}

/// Texts by the entry they were written to.
type Texts = BTreeMap<String, BTreeSet<String>>;

struct Member {
    number: usize,
    checkout: Checkout,
    folder: PathBuf,
    trouble: Trouble,
}

impl Member {
    fn command(&self) -> Command {
        let mut command = bare(&self.checkout.home.join("project"), &self.checkout.home.join(".claude"));
        self.trouble.beset(&mut command);
        command.args(["team", "push"]);
        command
    }

    fn push(&self) -> Child {
        self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn write(&self, name: &str, text: &str) -> bool {
        let path = self.folder.join(name);
        let is_link = path.parent().unwrap().is_symlink();
        if !is_link {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            self.trouble.give(&path, &self.checkout.home);
        }
        !is_link
    }

    /// A glance at the files that everybody changes.
    fn glances(&self) -> Vec<Option<files::Glance>> {
        CONTENDED.iter().map(|name| files::glance(self.folder.join(name))).collect()
    }

    /// Kills a program as soon as it has changed a file. Says whether it had.
    fn cut_short(&self, child: &mut Child) -> bool {
        let before = self.glances();
        while child.try_wait().unwrap().is_none() {
            if self.glances() != before {
                let _ = child.kill();
                return true;
            }
            std::thread::sleep(LOOK);
        }
        false
    }

    fn works(&self, tally: &Tally, until: Instant) {
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ (self.number as u64 + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
        for round in 0.. {
            if Instant::now() > until {
                tally.over.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let mut typed = BTreeMap::new();
            let mut writes = |name: String, text: String| {
                if self.write(&name, &text) {
                    typed.insert(name, text);
                }
            };
            let (own, text) =
                (format!("m{}/{}.md", self.number, round % OWN), format!("{} types {round}\n", self.number));
            tally.own.lock().unwrap().insert(own.clone(), text.clone());
            writes(own, text);
            let contended = CONTENDED[chance.below(CONTENDED.len() as u64) as usize];
            if chance.below(2) == 0 {
                writes(contended.to_owned(), format!("{} types {round} here\n", self.number));
            }
            let hidden = chance.below(12) == 0 && self.hide();
            let shared = self.folder.join("shared");
            let troubled = !hidden && chance.below(4) == 0 && self.trouble.begin(&shared);
            let epoch = tally.epoch.load(Ordering::SeqCst);
            let mut child = self.push();
            let twin = (chance.below(100) < 8).then(|| self.push());
            if chance.below(100) < 40 && self.cut_short(&mut child) {
                tally.cut_short.fetch_add(1, Ordering::Relaxed);
                tally.killed.fetch_add(1, Ordering::Relaxed);
            }
            let output = child.wait_with_output().unwrap();
            let mut outputs = vec![output];
            if let Some(twin) = twin {
                tally.twins.fetch_add(1, Ordering::Relaxed);
                outputs.extend(twin.wait_with_output());
            }
            tally.notes(Some(self.number), format!("{round} hidden {hidden}, in trouble {troubled}: {outputs:?}"));
            let output = &outputs[0];
            if hidden {
                self.show();
            }
            if troubled {
                self.trouble.end(&shared);
                tally.troubled.fetch_add(1, Ordering::Relaxed);
            }
            let outcome = if output.status.code() == Some(0) { &tally.well } else { &tally.failed };
            outcome.fetch_add(1, Ordering::Relaxed);
            if output.status.code() == Some(0) {
                let told = String::from_utf8_lossy(&output.stdout).into_owned();
                let mut acknowledged = tally.acknowledged.lock().unwrap();
                if tally.epoch.load(Ordering::SeqCst) != epoch {
                    continue; // it was told so by a server that is gone
                }
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

/// An address that nobody listens at.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn serve(home: &Path, address: &str) -> Command {
    let mut command = bare(home, &home.join(".claude"));
    command.args(["team", "serve", "--listen", address, "--requests", "1000000", "--versions", "1000000"]);
    command.args(["--max-entries", "1000000"]).stderr(Stdio::null());
    command
}

/// The server, where it is now.
struct House<'r> {
    root: &'r Path,
    home: PathBuf,
    address: Arc<Mutex<SocketAddr>>,
    server: Option<Server>,
    moves: usize,
    /// The library that sets back a clock.
    clock: Option<PathBuf>,
}

impl House<'_> {
    fn command(&self, home: &Path, args: &[&str]) {
        let done = run(bare(home, &home.join(".claude")).args(["team"]).args(args));
        assert_eq!(done.code, Some(0), "{done:?}");
    }

    /// SIGKILL.
    fn kill(&mut self) {
        drop(self.server.take());
    }

    /// Another server in place of the one that was killed.
    fn start(&mut self) {
        let address = self.address.lock().unwrap().to_string();
        let mut command = serve(&self.home, &address);
        if let Some(library) = &self.clock {
            set_back(&mut command, library, self.moves as u64 * SERVER_BACK);
        }
        self.server = Some(Server::again(&mut command));
    }

    fn back_up(&self) -> PathBuf {
        let file = self.root.join(format!("backup-{}", self.moves));
        self.command(&self.home, &["backup", &file.display().to_string()]);
        file
    }

    /// Another server on another database at another address, with what a backup has.
    fn restore(&mut self, backup: &Path) {
        self.moves += 1;
        self.home = self.root.join(format!("server-{}", self.moves));
        std::fs::create_dir_all(&self.home).unwrap();
        self.command(&self.home, &["restore-backup", &backup.display().to_string()]);
        *self.address.lock().unwrap() = free_address();
        self.start();
    }

    /// Something happens to the server.
    fn suffers(&mut self, what: usize, tally: &Tally) {
        tally.notes(None, format!("the server suffers {what}"));
        match what {
            // It moves: nothing of it is lost.
            1 => {
                self.kill();
                let backup = self.back_up();
                self.restore(&backup);
            }
            // A backup takes its place that is older than what was acknowledged last.
            2 => {
                let before = tally.acknowledged.lock().unwrap().clone();
                let backup = self.back_up();
                tally.notes(None, "a backup was made".to_owned());
                wait_for_runs(tally, MEMBERS / 2);
                self.kill();
                let mut acknowledged = tally.acknowledged.lock().unwrap();
                tally.epoch.fetch_add(1, Ordering::SeqCst);
                *acknowledged = before;
                drop(acknowledged);
                self.restore(&backup);
                tally.notes(None, "it was restored".to_owned());
            }
            _ => {
                self.kill();
                self.start();
            }
        }
    }
}

/// Waits until so many more runs have ended, or there are none any more.
fn wait_for_runs(tally: &Tally, more: usize) {
    let enough = tally.runs() + more;
    while tally.runs() < enough && tally.over.load(Ordering::Relaxed) < MEMBERS {
        std::thread::sleep(LOOK);
    }
}

/// TEAM-3, TEAM-5, TEAM-9: nothing acknowledged is lost, no old text comes back over a newer one, nothing is deleted, and in
/// the end all folders are alike.
#[test]
fn forty_members_lose_nothing_whatever_is_killed() {
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let means = Means::of(root.path());
    let home = root.path().join("server");
    std::fs::create_dir_all(&home).unwrap();
    let address = Arc::new(Mutex::new(free_address()));
    let first = Server::of(&mut serve(&home, &address.lock().unwrap().to_string()));
    let invitation = first.invitation.clone();
    let mut house = House {
        root: root.path(),
        home,
        address: address.clone(),
        server: Some(first),
        moves: 0,
        clock: means.clock.clone(),
    };
    let (is_calm, cut) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let way = format!("http://{}", proxy(address, is_calm.clone(), cut.clone()));
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let name = format!("member-{number}");
        let trouble = means.trouble(number, &root.path().join(&name));
        let checkout = Checkout::new(root.path(), &name, "git@github.com:acme/rocket.git");
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
        trouble.give_all(&checkout.home);
        members.push(Member { number, checkout, folder, trouble });
    }
    is_calm.store(false, Ordering::SeqCst);
    let lasts = if is_full() { LONG } else { SHORT };
    let (tally, until) = (Tally::default(), Instant::now() + lasts);
    let mut kills = 0;
    std::thread::scope(|scope| {
        let tally = &tally;
        let works: Vec<_> = members.iter().map(|member| scope.spawn(move || member.works(tally, until))).collect();
        while Instant::now() < until {
            wait_for_runs(tally, MEMBERS / 2);
            kills += 1;
            house.suffers(kills % 3, tally);
        }
        works.into_iter().for_each(|work| work.join().unwrap());
    });
    is_calm.store(true, Ordering::SeqCst);
    // A few rounds: what a restored server lost is sent again, or put back into its history and then taken.
    for member in members.iter().chain(&members).chain(&members) {
        let pushed = run(&mut member.command());
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
    }
    house.kill();
    judge(&house.home, &members, &tally);
    let count = |what: &AtomicUsize| what.load(Ordering::Relaxed);
    eprintln!(
        "{MEMBERS} members, {lasts:?}: {} runs ended well, {} otherwise, {} killed after they had changed a file, {} with \
         another in the folder, {} on a full disk or beside a folder that may not be listed; server killed {kills} times, moved or restored {} times, {} connections cut or stalled",
        count(&tally.well),
        count(&tally.failed),
        count(&tally.cut_short),
        count(&tally.twins),
        count(&tally.troubled),
        house.moves,
        count(&cut)
    );
    assert!(count(&tally.cut_short) > 0 && count(&tally.twins) > 0 && kills > 0);
}

/// The texts of an entry, the oldest first, without those that were put back into the history: each is followed by what was
/// there above it, once more.
fn written(mut history: Vec<Version>) -> Vec<String> {
    history.reverse();
    let mut texts: Vec<(u64, String)> = Vec::new();
    for Version { version, text, .. } in history {
        let Some(text) = text else { continue };
        if let [.., (_, above), (put_back, _)] = texts.as_slice()
            && *above == text
            && *put_back + 1 == version
        {
            texts.pop();
            continue;
        }
        texts.push((version, text));
    }
    texts.into_iter().map(|(_, text)| text).collect()
}

fn judge(home: &Path, members: &[Member], tally: &Tally) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = home.join(".claude/cairn/team-server.db").display().to_string();
    let repository = "acme/rocket".parse().unwrap();
    runtime.block_on(async {
        let store = Store::open(&database).await.unwrap();
        let hashes = store.entries().hashes(&repository).await.unwrap().unwrap();
        let there: BTreeMap<String, String> =
            hashes.entry_checksums.iter().map(|(key, checksum)| (key.to_string(), checksum.clone())).collect();
        for member in members {
            assert_eq!(member.texts(), there, "{}", member.folder.display());
        }
        assert!(hashes.deleted.is_empty(), "nobody deleted {:?}", hashes.deleted);
        let (mut came_back, mut lost) = (Vec::new(), Vec::new());
        let mut acknowledged = tally.acknowledged.lock().unwrap().clone();
        let own = tally.own.lock().unwrap().clone();
        for (name, text) in &own {
            let now = there.get(name).map(String::as_str);
            if now != Some(team::checksum::of(text).as_str()) {
                let member = name[1..].split('/').next().unwrap().parse().unwrap();
                let history = store.history().versions(&repository, &name.parse().unwrap()).await.unwrap();
                panic!("{name} is not {text:?}, typed last:\n{history:#?}\n{}", tally.story(member));
            }
        }
        for key in hashes.entry_checksums.keys() {
            let history = store.history().versions(&repository, key).await.unwrap();
            let all: BTreeSet<String> = history.iter().filter_map(|one| one.text.clone()).collect();
            let texts = written(history);
            let once: BTreeSet<&String> = texts.iter().collect();
            if once.len() < texts.len() {
                came_back.push(format!("{key}: {} of {}", texts.len() - once.len(), texts.len()));
            }
            let sent = acknowledged.remove(key.as_str()).unwrap_or_default();
            lost.extend(sent.into_iter().filter(|text| !all.contains(text)));
        }
        assert!(lost.is_empty() && acknowledged.is_empty(), "lost: {lost:?} {acknowledged:?}");
        assert!(came_back.is_empty(), "old texts came back over newer ones: {came_back:?}");
        store.close().await;
    });
}
