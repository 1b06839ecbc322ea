//! A hundred members at work on two servers and one PostgreSQL, while clients, servers and the database are killed.
//!
//! A balancer of the test's own stands before the servers, as it would in a company: it sees every request and answer, so
//! what was answered while nothing was down can be told from what was not. A client that is killed stops wherever it is and
//! begins again from what lies on its disk. In `./test` the work is counted, in `./test full` it lasts a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use team::RequestTrouble;
use team::client::Client;
use team::mirror::Mirror;
use team::report::EarlyEnd;
use team::store::{Invitation, Level, Store};
use team::sync::Deletions;
use team::{EntryKey, Repository, checksum};

use crate::databases::Postgres;
use crate::skipped::is_full;
use crate::stage::bare;

/// So many members.
const CLIENTS: usize = 100;
/// So many pushes that were accepted, in the short form.
const PUSHES: usize = 60;
/// So long, in the long one.
const MINUTE: Duration = Duration::from_secs(60);
/// Texts that everybody changes.
const CONTENDED: usize = 5;
const NOW: i64 = 1_800_000_000_000;

fn repository() -> Repository {
    "acme/rocket".parse().unwrap()
}

/// Numbers that look like chance, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// What was down, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Down {
    Server,
    Database,
}

/// An answer that went to a client.
struct Answered {
    began: Instant,
    ended: Instant,
    status: u16,
    /// The balancer's own: no server gave one.
    is_own: bool,
}

/// What stands before the servers.
struct Balancer {
    servers: [SocketAddr; 2],
    next: AtomicUsize,
    http: reqwest::Client,
    answered: Mutex<Vec<Answered>>,
    outages: Mutex<Vec<(Down, Instant, Option<Instant>)>>,
}

impl Balancer {
    async fn start(servers: [SocketAddr; 2]) -> (Arc<Self>, String) {
        // No connection is kept: one to a server that was killed meanwhile would fail later than the server did.
        let http = team::client::http().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let balancer = Arc::new(Self {
            servers,
            next: AtomicUsize::new(0),
            http,
            answered: Mutex::default(),
            outages: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let routes = axum::Router::new().fallback(forward).with_state(balancer.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (balancer, address)
    }

    fn is_down(&self, what: Down) {
        self.outages.lock().unwrap().push((what, Instant::now(), None));
    }

    fn is_up(&self, what: Down) {
        let mut outages = self.outages.lock().unwrap();
        outages.iter_mut().rev().find(|(down, _, until)| *down == what && until.is_none()).unwrap().2 =
            Some(Instant::now());
    }

    /// Failures that nothing excuses.
    fn inexcusable(&self) -> Vec<u16> {
        let outages = self.outages.lock().unwrap();
        let excused = |answer: &Answered| {
            let what = if answer.is_own { Down::Server } else { Down::Database };
            outages.iter().any(|(down, from, until)| {
                *down == what && answer.ended >= *from && until.is_none_or(|until| answer.began <= until)
            })
        };
        let answered = self.answered.lock().unwrap();
        answered.iter().filter(|one| one.status >= 500 && !excused(one)).map(|one| one.status).collect()
    }
}

async fn forward(State(balancer): State<Arc<Balancer>>, request: Request) -> Response<Body> {
    let began = Instant::now();
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 3_000_000).await.unwrap();
    let first = balancer.next.fetch_add(1, Ordering::Relaxed);
    let mut answer = None;
    for turn in 0..2 {
        let server = balancer.servers[(first + turn) % 2];
        let address = format!("http://{server}{}", head.uri.path_and_query().unwrap());
        let mut headers = head.headers.clone();
        headers.remove("host");
        let request = balancer.http.request(head.method.clone(), address).headers(headers).body(body.clone());
        match request.send().await {
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers().clone());
                // A server that dies while it answers has not answered.
                if let Ok(body) = response.bytes().await {
                    answer = Some((status, headers, body));
                }
                break;
            }
            // It has got nothing of it, so another may.
            Err(error) if error.is_connect() => {}
            Err(_) => break,
        }
    }
    let (is_own, response) = match answer {
        Some((status, headers, body)) => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            response.headers_mut().remove("transfer-encoding");
            (false, response)
        }
        None => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            (true, response)
        }
    };
    let status = response.status().as_u16();
    balancer.answered.lock().unwrap().push(Answered { began, ended: Instant::now(), status, is_own });
    response
}

/// A server that is a process.
struct Server {
    home: PathBuf,
    database: String,
    address: SocketAddr,
    child: Child,
}

impl Server {
    fn start(home: PathBuf, database: String, address: SocketAddr) -> Self {
        std::fs::create_dir_all(&home).unwrap();
        let child = Self::spawn(&home, &database, address);
        Self { home, database, address, child }
    }

    fn spawn(home: &std::path::Path, database: &str, address: SocketAddr) -> Child {
        let mut command = bare(home, &home.join(".claude"));
        command.args(["team", "serve", "--listen", &address.to_string(), "--requests", "1000000"]);
        command.args(["--versions", "1000000", "--max-entries", "1000000", "--database", database]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line}");
        child
    }

    /// SIGKILL, and a new one in its place.
    fn kill(&mut self, balancer: &Balancer) {
        balancer.is_down(Down::Server);
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(&self.home, &self.database, self.address);
        balancer.is_up(Down::Server);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What all clients did.
#[derive(Default)]
struct Tally {
    accepted: AtomicUsize,
    conflicts: AtomicUsize,
    troubles: AtomicUsize,
    killed: AtomicUsize,
    /// What was acknowledged: texts by key.
    acknowledged: Mutex<BTreeMap<EntryKey, BTreeSet<String>>>,
}

fn count(what: &AtomicUsize) {
    what.fetch_add(1, Ordering::Relaxed);
}

/// A member's machine.
struct Member {
    folder: PathBuf,
    state: PathBuf,
    client: Client,
}

impl Member {
    fn mirror(&self) -> Mirror {
        Mirror::open(&self.folder, &self.state, self.client.clone(), Deletions::Travel).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes and pushes until it is told to stop, or so many times.
    async fn works(&self, number: usize, tally: &Tally, goes_on: impl Fn() -> bool) {
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut mirror = self.mirror();
        for round in 0.. {
            if !goes_on() {
                return;
            }
            self.write(&format!("m{number}/{round}.md"), &format!("{number} wrote {round}\n"));
            if chance.below(4) == 0 {
                self.write(&format!("all-{}.md", chance.below(CONTENDED as u64)), &format!("{number} in {round}\n"));
            }
            let done = if chance.below(5) == 0 {
                let moment = Duration::from_millis(chance.below(60));
                tokio::time::timeout(moment, mirror.push()).await
            } else {
                Ok(mirror.push().await)
            };
            match done {
                Err(_) => {
                    count(&tally.killed);
                    mirror = self.mirror();
                }
                Ok(Ok(done)) => {
                    count(&tally.accepted);
                    let mut acknowledged = tally.acknowledged.lock().unwrap();
                    for key in done.sent {
                        let text = std::fs::read_to_string(self.folder.join(key.as_str())).unwrap();
                        acknowledged.entry(key).or_default().insert(text);
                    }
                }
                Ok(Err(EarlyEnd::Server(RequestTrouble::Conflict))) => count(&tally.conflicts),
                Ok(Err(EarlyEnd::Server(RequestTrouble::Later { .. }))) => count(&tally.troubles),
                Ok(Err(error)) => panic!("{error}"),
            }
            // People do not all press a key at once.
            tokio::time::sleep(Duration::from_millis(chance.below(2_000))).await;
        }
    }

    /// What lies in the folder, in one checksum.
    fn checksum(&self) -> String {
        let found = team::folder::Folder::open(&self.folder).unwrap().look().unwrap();
        assert!(found.left.is_empty(), "{:?}", found.left);
        checksum::of_all(found.files.iter().map(|(key, checksum)| (key, checksum.as_str())))
    }
}

async fn members(store: &Store, address: &str, root: &std::path::Path) -> Vec<Arc<Member>> {
    let first = store.invitations().first(NOW).await.unwrap().unwrap();
    let admin = store.invitations().accept(first.reveal(), "Ada", None, "test", NOW).await.unwrap().member;
    let mut members = Vec::new();
    for number in 0..CLIENTS {
        let invitation = Invitation::Repository(repository(), Level::Write);
        let invitation = store.invitations().create(&admin, &invitation, NOW).await.unwrap();
        let name = format!("member {number}");
        let joined = store.invitations().accept(invitation.reveal(), &name, None, "test", NOW).await.unwrap();
        let client = Client::new(address, joined.token.reveal(), repository()).unwrap();
        let home = root.join(format!("member-{number}"));
        std::fs::create_dir_all(&home).unwrap();
        members.push(Arc::new(Member { folder: home.join("team"), state: home.join("state.json"), client }));
    }
    members
}

/// TEAM-2, TEAM-3, TEAM-8: no acknowledged write is lost, everybody ends with the same, and nothing fails except while
/// something is down.
#[test]
fn a_hundred_members_lose_nothing_while_servers_and_the_database_die() {
    let Some(mut postgres) = Postgres::start() else { return };
    let is_long = is_full();
    // A hundred machines have a hundred disks: here they share one, so where it can their folders lie in memory, and there
    // are threads enough that one member's writing holds up no other.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(32).enable_all().build().unwrap();
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let database = postgres.database();
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let addresses = [free(), free()];
    let mut servers =
        [0, 1].map(|at| Server::start(root.path().join(format!("server-{at}")), database.clone(), addresses[at]));
    let (balancer, address) = runtime.block_on(Balancer::start(addresses));
    let store = runtime.block_on(Store::open(&database)).unwrap();
    let members = runtime.block_on(members(&store, &address, root.path()));

    let tally = Arc::new(Tally::default());
    let began = Instant::now();
    let works: Vec<_> = members
        .iter()
        .enumerate()
        .map(|(number, member)| {
            let (member, tally) = (member.clone(), tally.clone());
            runtime.spawn(async move {
                let accepted = |tally: &Tally| tally.accepted.load(Ordering::Relaxed);
                let goes_on = || if is_long { began.elapsed() < MINUTE } else { accepted(&tally) < PUSHES };
                member.works(number, &tally, goes_on).await;
            })
        })
        .collect();
    // What dies, at which part of the work.
    let part = || {
        if is_long {
            began.elapsed().as_secs_f64() / MINUTE.as_secs_f64()
        } else {
            tally.accepted.load(Ordering::Relaxed) as f64 / PUSHES as f64
        }
    };
    let kills = if is_long { 10 } else { 3 };
    let (mut server_kills, mut restarts) = (0, 0);
    for kill in 0..kills {
        while part() < (f64::from(kill) + 0.5) / f64::from(kills) {
            std::thread::sleep(Duration::from_millis(20));
        }
        if kill == kills / 2 {
            balancer.is_down(Down::Database);
            postgres.restart();
            balancer.is_up(Down::Database);
            restarts += 1;
        } else {
            servers[kill as usize % 2].kill(&balancer);
            server_kills += 1;
        }
    }
    runtime.block_on(async {
        for work in works {
            work.await.unwrap();
        }
    });
    let worked = began.elapsed();

    // Everything is up: everybody sends what is left, ten at a time, and then takes what others sent.
    let store = runtime.block_on(async {
        store.close().await;
        Store::open(&database).await.unwrap()
    });
    let send = |member: Arc<Member>| async move {
        for attempt in 0.. {
            match member.mirror().push().await {
                Ok(_) => break,
                Err(error) => assert!(attempt < 30, "{error}"),
            }
        }
    };
    let all = futures_util::stream::iter(members.iter().cloned());
    runtime.block_on(futures_util::StreamExt::for_each_concurrent(all, 10, |member| async {
        runtime.spawn(send(member)).await.unwrap();
    }));
    let pulls: Vec<_> = members
        .iter()
        .cloned()
        .map(|member| runtime.spawn(async move { member.mirror().pull().await.map(drop) }))
        .collect();
    for pulled in pulls {
        runtime.block_on(pulled).unwrap().unwrap();
    }

    let hashes = runtime.block_on(store.entries().hashes(&repository())).unwrap().unwrap();
    for member in &members {
        assert_eq!(member.checksum(), hashes.checksum, "{}", member.folder.display());
    }
    let acknowledged = tally.acknowledged.lock().unwrap().clone();
    let mut texts = 0;
    for (key, sent) in &acknowledged {
        let history = runtime.block_on(store.history().versions(&repository(), key)).unwrap();
        let kept: BTreeSet<String> = history.into_iter().filter_map(|version| version.text).collect();
        assert!(sent.is_subset(&kept), "{key}: {:?} is lost", sent.difference(&kept).collect::<Vec<_>>());
        texts += sent.len();
    }
    let inexcusable = balancer.inexcusable();
    let answered = balancer.answered.lock().unwrap();
    let failed = answered.iter().filter(|one| one.status >= 500).count();
    let refused = answered.iter().filter(|one| one.status == 412).count();
    let load = |value: &AtomicUsize| value.load(Ordering::Relaxed);
    eprintln!(
        "{CLIENTS} clients, {:.1} s: {} pushes accepted, {} gave way, {} met an outage, {} clients killed; \
         {server_kills} servers killed, {restarts} restart of the database; {} requests ({:.0}/s), {refused} answered 412, \
         {failed} failed during outages; {} entries, {texts} acknowledged texts, none lost",
        worked.as_secs_f64(),
        load(&tally.accepted),
        load(&tally.conflicts),
        load(&tally.troubles),
        load(&tally.killed),
        answered.len(),
        answered.len() as f64 / began.elapsed().as_secs_f64(),
        hashes.entry_checksums.len(),
    );
    assert!(inexcusable.is_empty(), "{inexcusable:?}");
    assert!(load(&tally.accepted) >= PUSHES && load(&tally.killed) > 0 && restarts == 1 && server_kills > 0);
    drop(answered);
    runtime.block_on(store.close());
}

/// TEAM-2: of many who write the same entry at once through two servers, each under its lock, what was accepted is the
/// history: nothing more, nothing less, in one line of versions.
#[test]
fn what_is_accepted_under_contention_is_the_history() {
    const WRITERS: usize = 20;
    const EACH: usize = 5;
    let Some(mut postgres) = Postgres::start() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let root = tempfile::tempdir().unwrap();
    let database = postgres.database();
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let addresses = [free(), free()];
    let servers =
        [0, 1].map(|at| Server::start(root.path().join(format!("server-{at}")), database.clone(), addresses[at]));
    let store = runtime.block_on(Store::open(&database)).unwrap();
    let (accepted, refused) = runtime.block_on(async {
        let first = store.invitations().first(NOW).await.unwrap().unwrap();
        let admin = store.invitations().accept(first.reveal(), "Ada", None, "test", NOW).await.unwrap();
        let token = admin.token.reveal().to_owned();
        let writers = (0..WRITERS).map(|writer| {
            let client = Client::new(&format!("http://{}", addresses[writer % 2]), &token, repository()).unwrap();
            async move {
                let (mut accepted, mut refused) = (Vec::new(), 0);
                while accepted.len() < EACH {
                    let known = client.hashes().await.unwrap().map(|hashes| hashes.checksum).unwrap_or_default();
                    let text = format!("writer {writer}, {}", accepted.len());
                    let entries = [("count.md".parse().unwrap(), text.clone())].into();
                    let write = team::protocol::EntryWrite { entries, ..Default::default() };
                    match client.write(&write, &known).await {
                        Ok(written) => accepted.push((written.version, text)),
                        Err(RequestTrouble::Conflict) => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                (accepted, refused)
            }
        });
        let all = futures_util::future::join_all(writers).await;
        let refused: usize = all.iter().map(|(_, refused)| refused).sum();
        let mut accepted: Vec<(u64, String)> = all.into_iter().flat_map(|(accepted, _)| accepted).collect();
        accepted.sort();
        (accepted, refused)
    });
    let history = runtime.block_on(store.history().versions(&repository(), &"count.md".parse().unwrap())).unwrap();
    let mut kept: Vec<(u64, String)> =
        history.into_iter().map(|version| (version.version, version.text.unwrap())).collect();
    kept.sort();
    eprintln!("{} writes accepted, {refused} refused, {} in the history", accepted.len(), kept.len());
    assert_eq!(accepted, kept);
    assert_eq!(kept.last().unwrap().0, (WRITERS * EACH) as u64);
    runtime.block_on(store.close());
    drop(servers);
}
