//! A network that loses, delays, repeats and reorders, between members and a server: in the end everybody has the same, and
//! what was acknowledged is kept, once.
//!
//! The proxy takes requests apart itself, so that it can lose either half of an exchange, answer in part, send a request
//! twice, or let a later one pass. What it does to which request follows from a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use team::EntryKey;
use team::RequestTrouble;
use team::client::Client;
use team::mirror::Mirror;
use team::report::EarlyEnd;
use team::store::Level;
use team::sync::Deletions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::house::{House, repository};
use crate::skipped::is_full;

/// What happens to an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Nothing,
    /// The request is lost.
    CutBefore,
    /// The server did it, and its answer is lost.
    CutAfter,
    /// Half of the answer arrives.
    CutWithin,
    Delay,
    /// It arrives twice at once.
    Duplicate,
    /// A later one is let through first.
    Reorder,
    /// It arrives once more when others have passed.
    Echo,
}

const FAULTS: [Fault; 12] = [
    Fault::Nothing,
    Fault::Nothing,
    Fault::Nothing,
    Fault::Nothing,
    Fault::CutBefore,
    Fault::CutAfter,
    Fault::CutWithin,
    Fault::Delay,
    Fault::Duplicate,
    Fault::Duplicate,
    Fault::Reorder,
    Fault::Echo,
];

/// Numbers that look like chance, from a seed.
fn chance(seed: u64, number: u64) -> u64 {
    let mut value = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A request as it came.
#[derive(Clone)]
struct Taken {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

struct Proxy {
    server: String,
    seed: u64,
    http: reqwest::Client,
    number: AtomicU64,
    calm: AtomicBool,
    passed: Notify,
    done: Mutex<BTreeMap<Fault, usize>>,
}

impl Proxy {
    async fn start(server: String, seed: u64) -> (Arc<Self>, String) {
        let proxy = Arc::new(Self {
            server,
            seed,
            http: team::client::http().no_proxy().build().unwrap(),
            number: AtomicU64::new(0),
            calm: AtomicBool::new(false),
            passed: Notify::new(),
            done: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let accepting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let proxy = accepting.clone();
                tokio::spawn(async move { proxy.exchange(stream).await });
            }
        });
        (proxy, address)
    }

    /// One request a connection.
    async fn exchange(&self, mut stream: TcpStream) {
        let Some(taken) = take(&mut stream).await else { return };
        let number = self.number.fetch_add(1, Ordering::SeqCst);
        let drawn = chance(self.seed, number);
        let is_calm = self.calm.load(Ordering::SeqCst);
        let fault = if is_calm { Fault::Nothing } else { FAULTS[(drawn % FAULTS.len() as u64) as usize] };
        *self.done.lock().unwrap().entry(fault).or_default() += 1;
        match fault {
            Fault::CutBefore => return,
            Fault::Delay => tokio::time::sleep(Duration::from_millis((drawn >> 8) & 31)).await,
            // It waits for another to pass, but not for ever: there may be none.
            Fault::Reorder => {
                let _ = tokio::time::timeout(Duration::from_millis(200), self.passed.notified()).await;
            }
            _ => {}
        }
        let answer = self.forward(&taken).await;
        let answer = if fault == Fault::Duplicate { self.forward(&taken).await } else { answer };
        self.passed.notify_waiters();
        if fault == Fault::Echo {
            let _ = tokio::time::timeout(Duration::from_millis(200), self.passed.notified()).await;
            self.forward(&taken).await;
        }
        let sent = match fault {
            Fault::CutAfter => 0,
            Fault::CutWithin => answer.len() / 2,
            _ => answer.len(),
        };
        let _ = stream.write_all(&answer[..sent]).await;
        let _ = stream.shutdown().await;
    }

    async fn forward(&self, taken: &Taken) -> Vec<u8> {
        let mut request = self.http.request(taken.method.clone(), format!("{}{}", self.server, taken.path));
        for (name, value) in &taken.headers {
            request = request.header(name, value);
        }
        let response = request.body(taken.body.clone()).send().await.unwrap();
        let mut answer = format!("HTTP/1.1 {}\r\nconnection: close\r\n", response.status()).into_bytes();
        for name in ["etag", "content-type", "retry-after"] {
            if let Some(value) = response.headers().get(name) {
                answer.extend_from_slice(format!("{name}: {}\r\n", value.to_str().unwrap()).as_bytes());
            }
        }
        let body = response.bytes().await.unwrap();
        answer.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        answer.extend_from_slice(&body);
        answer
    }
}

/// A way to the server that holds the first write back until it is opened.
pub(crate) struct Gate {
    pub(crate) address: String,
    came: Arc<Notify>,
    opened: Arc<tokio::sync::Semaphore>,
}

impl Gate {
    pub(crate) async fn start(server: String) -> Self {
        let (proxy, _) = Proxy::start(server, 0).await;
        proxy.calm.store(true, Ordering::SeqCst);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (came, opened) = (Arc::new(Notify::new()), Arc::new(tokio::sync::Semaphore::new(0)));
        let gate = Self { address, came: came.clone(), opened: opened.clone() };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (proxy, came, opened) = (proxy.clone(), came.clone(), opened.clone());
                tokio::spawn(async move {
                    let Some(taken) = take(&mut stream).await else { return };
                    if taken.method == Method::PUT {
                        came.notify_one();
                        drop(opened.acquire().await.unwrap());
                    }
                    let answer = proxy.forward(&taken).await;
                    let _ = stream.write_all(&answer).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        gate
    }

    /// A write is held back.
    pub(crate) async fn first_write(&self) {
        self.came.notified().await;
    }

    pub(crate) fn open(&self) {
        self.opened.add_permits(1);
    }
}

/// Reads a request.
async fn take(stream: &mut TcpStream) -> Option<Taken> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.parse().ok()?, first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let kept = ["authorization", "if-match", "if-none-match", "content-type"];
    let headers = headers.into_iter().filter(|(name, _)| kept.contains(&name.as_str())).collect();
    Some(Taken { method, path, headers, body })
}

/// A member whose every request goes through the proxy.
struct Desk {
    place: tempfile::TempDir,
    client: Client,
}

impl Desk {
    fn mirror(&self) -> Mirror {
        let (folder, state) = (self.place.path().join("team"), self.place.path().join("state.json"));
        Mirror::open(&folder, &state, self.client.clone(), Deletions::Travel).unwrap()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join("team").join(name)
    }

    fn all(&self) -> BTreeMap<String, String> {
        let files = std::fs::read_dir(self.place.path().join("team")).unwrap().flatten();
        files
            .filter(|file| !file.file_name().to_string_lossy().starts_with('.'))
            .map(|file| (file.file_name().into_string().unwrap(), std::fs::read_to_string(file.path()).unwrap()))
            .collect()
    }
}

async fn survives(seed: u64) -> BTreeMap<Fault, usize> {
    let house = House::open().await;
    let (proxy, address) = Proxy::start(house.address(), seed).await;
    let mut desks = Vec::new();
    for number in 0..4 {
        let token = house.token(&format!("member {number}"), Level::Write).await;
        let client = Client::new(&address, &token, repository()).unwrap();
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("team")).unwrap();
        desks.push(Desk { place, client });
    }
    let acknowledged: Mutex<BTreeMap<EntryKey, BTreeSet<String>>> = Mutex::default();
    let work = desks.iter().enumerate().map(|(number, desk)| {
        let acknowledged = &acknowledged;
        async move {
            for round in 0..6_u64 {
                let drawn = chance(seed ^ 77, number as u64 * 100 + round);
                std::fs::write(desk.file(&format!("m{number}-{round}.md")), format!("{number} {round}\n")).unwrap();
                std::fs::write(desk.file(&format!("all-{}.md", drawn % 3)), format!("{number} in {round}\n")).unwrap();
                if drawn.is_multiple_of(5) && round > 0 {
                    let _ = std::fs::remove_file(desk.file(&format!("m{number}-{}.md", round - 1)));
                }
                match desk.mirror().push().await {
                    Ok(done) => {
                        for key in done.sent {
                            let text = std::fs::read_to_string(desk.file(key.as_str())).unwrap();
                            acknowledged.lock().unwrap().entry(key).or_default().insert(text);
                        }
                    }
                    Err(EarlyEnd::Server(RequestTrouble::Conflict | RequestTrouble::Later { .. })) => {}
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
        }
    });
    futures_util::future::join_all(work).await;
    proxy.calm.store(true, Ordering::SeqCst);
    for desk in desks.iter().chain(&desks) {
        desk.mirror().push().await.unwrap();
    }
    for desk in &desks {
        assert_eq!(desk.all(), desks[0].all(), "seed {seed}");
    }
    for (key, sent) in acknowledged.into_inner().unwrap() {
        let history = house.store.history().versions(&repository(), &key).await.unwrap();
        let kept: BTreeSet<String> = history.iter().filter_map(|version| version.text.clone()).collect();
        assert!(sent.is_subset(&kept), "seed {seed}, {key}: {sent:?} {kept:?}");
        // A request that arrived twice was done once.
        let mut texts = history.iter().map(|version| version.text.clone()).collect::<Vec<_>>();
        let all = texts.len();
        texts.dedup();
        assert_eq!(texts.len(), all, "seed {seed}, {key}: {history:?}");
    }
    house.close().await;
    proxy.done.lock().unwrap().clone()
}

/// TEAM-2, TEAM-3: whatever the network does, members converge, acknowledged texts are kept, and nothing is done twice.
#[tokio::test]
async fn a_bad_network_loses_and_doubles_nothing() {
    let seeds = if is_full() { 1..=12 } else { 1..=2 };
    let mut done: BTreeMap<Fault, usize> = BTreeMap::new();
    for seed in seeds {
        for (fault, times) in survives(seed).await {
            *done.entry(fault).or_default() += times;
        }
    }
    eprintln!("{done:?}");
    let all: BTreeSet<Fault> = FAULTS.into_iter().collect();
    assert_eq!(done.keys().copied().collect::<BTreeSet<_>>(), all, "each fault happened");
}
