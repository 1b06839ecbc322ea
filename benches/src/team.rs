//! A team server under load: how many requests a second, and how long the slowest take, on both databases.
//!
//! Eight clients ask over loopback, each the next question when the last is answered. Beside it stands what `pgbench` gets
//! from the same PostgreSQL with as many clients: its reads are the limit of ours, its updates that of a write, which is
//! several statements in a transaction that reaches the disk. Then members push into one repository, through one, two and
//! four servers on one database, each a file of its own and all of them the same one: how many pushes a second, and whether
//! ever a text came back that another had replaced. Last, what a pull costs when one entry changed: that must follow from the
//! change, not from how much the repository holds.

#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "the suite's own, used as it is")]
#[path = "../../crates/team/tests/it/databases.rs"]
mod databases;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use team::client::Client;
use team::mirror::Mirror;
use team::protocol::EntryWrite;
use team::sync_run::ReadResult;
use team::serve::{HEAD, Options, RunningServer, listen, service};
use team::store::{RepositoryLimits, Store};
use team::sync::Deletions;
use team::{EntryKey, Repository};

use self::databases::Postgres;
use crate::table::{Row, Unit};

/// Who ask at the same time.
const CLIENTS: usize = 8;
/// Requests of each.
const READS: usize = 400;
/// Writes of each.
const WRITES: usize = 50;
/// Entries of a repository that is read.
const ENTRIES: usize = 200;
/// How much more a pull of one change may cost in a repository that is twenty times as large.
const GROWTH: f64 = 2.0;
/// How long `pgbench` runs.
const SECONDS: &str = "5";
const NOW: i64 = 1_800_000_000_000;
/// How many servers share a database.
const SERVERS: [usize; 3] = [1, 2, 4];
/// Pushes of each member.
const PUSHES: usize = 20;
/// The file that all members change.
const SHARED: &str = "shared.md";

/// A server, and a token of its admin.
struct House {
    store: Store,
    running: RunningServer,
    token: String,
}

impl House {
    async fn open(database: &str) -> Result<Self> {
        let store = Store::open(database).await?;
        let first = store.invitations().first(NOW).await?.context("the database is not new")?;
        let token =
            store.invitations().accept(first.reveal(), "Ada", None, "bench", NOW).await?.token.reveal().to_owned();
        Self::serve(store, token).await
    }

    /// Another server on the same database.
    async fn beside(&self, database: &str) -> Result<Self> {
        Self::serve(Store::open(database).await?, self.token.clone()).await
    }

    async fn serve(store: Store, token: String) -> Result<Self> {
        let options = Options {
            limits: RepositoryLimits { entries: 10_000, ..RepositoryLimits::default() },
            body_bytes: 10_000_000,
            body_patience: Duration::from_secs(30),
            requests: 100_000_000,
            issuer: None,
            address: "http://127.0.0.1".to_owned(),
            clock: Arc::new(|| NOW),
        };
        let running = listen("127.0.0.1:0".parse()?, None, HEAD, service(store.clone(), options)).await?;
        Ok(Self { store, running, token })
    }

    fn client(&self, repository: &str) -> Result<Client> {
        let repository: Repository = repository.parse()?;
        Ok(Client::new(&format!("http://{}", self.running.address), &self.token, repository)?)
    }

    async fn close(self) {
        self.running.stop().await;
        self.store.close().await;
    }
}

fn entries(from: usize, to: usize, text: &str) -> Result<BTreeMap<EntryKey, String>> {
    (from..to)
        .map(|number| Ok((format!("entry-{number}.md").parse()?, format!("{text} {number}\n{}", "x".repeat(400)))))
        .collect()
}

/// Requests a second, and the middle and the 99th of a hundred, in milliseconds.
struct Measured {
    a_second: f64,
    middle: f64,
    late: f64,
}

impl Measured {
    fn of(mut each: Vec<f64>, seconds: f64) -> Self {
        each.sort_by(f64::total_cmp);
        let at = |part: f64| {
            each.get(((each.len() as f64 * part) as usize).min(each.len() - 1)).copied().unwrap_or_default()
        };
        Self { a_second: each.len() as f64 / seconds, middle: at(0.5) * 1e3, late: at(0.99) * 1e3 }
    }

    fn words(&self) -> String {
        format!("{:.0}/s, p50 {:.2} ms, p99 {:.2} ms", self.a_second, self.middle, self.late)
    }
}

/// Lets all clients do something so many times.
async fn load<F>(clients: Vec<Client>, times: usize, work: impl Fn(Client, usize) -> F) -> Result<Measured>
where
    F: Future<Output = Result<Vec<f64>>> + Send + 'static,
{
    let began = Instant::now();
    let tasks: Vec<_> = clients.into_iter().map(|client| tokio::spawn(work(client, times))).collect();
    let mut each = Vec::new();
    for task in tasks {
        each.extend(task.await??);
    }
    Ok(Measured::of(each, began.elapsed().as_secs_f64()))
}

/// How long each of several requests takes.
macro_rules! timed {
    ($times:expr, $request:expr) => {{
        let mut each = Vec::new();
        for _ in 0..$times {
            let began = Instant::now();
            $request;
            each.push(began.elapsed().as_secs_f64());
        }
        Ok(each)
    }};
}

/// The three requests on one database.
async fn requests(house: &House) -> Result<[Measured; 3]> {
    let client = house.client("acme/rocket")?;
    let written = client.write(&EntryWrite { entries: entries(0, ENTRIES, "text")?, ..EntryWrite::default() }, "").await?;
    let same = |client: Client, times| {
        let known = written.checksum.clone();
        async move { timed!(times, anyhow::ensure!(client.read(Some(&known), 1).await? == ReadResult::Unchanged)) }
    };
    let unchanged = load(vec![client.clone(); CLIENTS], READS, same).await?;
    let all = |client: Client, times| async move { timed!(times, client.hashes().await?) };
    let hashes = load(vec![client; CLIENTS], READS, all).await?;
    // Each in a repository of its own: what is measured is writing, not giving way.
    let clients = (0..CLIENTS).map(|number| house.client(&format!("acme/own-{number}"))).collect::<Result<_>>()?;
    let put = |client: Client, times| async move {
        let (mut known, mut number) = (String::new(), 0);
        timed!(times, {
            number += 1;
            known = client
                .write(&EntryWrite { entries: entries(0, 1, &number.to_string())?, ..EntryWrite::default() }, &known)
                .await?
                .checksum;
        })
    };
    let puts = load(clients, WRITES, put).await?;
    Ok([unchanged, hashes, puts])
}

/// Members that push through so many servers: pushes a second, and how many texts came back that others had replaced.
async fn pushes(database: &str, first: &House, servers: usize) -> Result<(Measured, usize)> {
    let repository = format!("acme/by-{servers}");
    let mut others = Vec::new();
    for _ in 1..servers {
        others.push(first.beside(database).await?);
    }
    let houses: Vec<&House> = std::iter::once(first).chain(&others).collect();
    let place = std::env::temp_dir().join(format!("cairn-bench-{}-by", std::process::id()));
    let began = Instant::now();
    let mut members = Vec::new();
    for member in 0..CLIENTS {
        let client = houses[member % servers].client(&repository)?;
        let (folder, state) = (place.join(format!("{member}")), place.join(format!("{member}.json")));
        members.push(tokio::spawn(async move {
            let mut mirror = Mirror::open(&folder, &state, client, Deletions::Travel)?;
            let (mut number, mut each) = (0, Vec::new());
            while number < PUSHES {
                number += 1;
                for file in [SHARED.to_owned(), format!("{member}.md")] {
                    std::fs::create_dir_all(&folder)?;
                    std::fs::write(folder.join(file), format!("{member} says {number}\n"))?;
                }
                let began = Instant::now();
                mirror.push().await?;
                each.push(began.elapsed().as_secs_f64());
            }
            anyhow::Ok(each)
        }));
    }
    let mut each = Vec::new();
    for member in members {
        each.extend(member.await??);
    }
    let measured = Measured::of(each, began.elapsed().as_secs_f64());
    let history = first.store.history().versions(&repository.parse()?, &SHARED.parse()?).await?;
    let texts: Vec<_> = history.iter().filter_map(|version| version.text.clone()).collect();
    let once: std::collections::BTreeSet<_> = texts.iter().collect();
    let reverts = texts.len() - once.len();
    for other in others {
        other.close().await;
    }
    std::fs::remove_dir_all(&place)?;
    Ok((measured, reverts))
}

/// The same with each number of servers.
async fn pushes_by_servers(database: &str, first: &House, name: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for servers in SERVERS {
        let (measured, reverts) = pushes(database, first, servers).await?;
        rows.push(Row::figure(format!("pushes, {servers} on {name}"), measured.words()));
        rows.push(Row::at_most("  texts that came back", Unit::Count, reverts as f64, 0.0));
    }
    Ok(rows)
}

/// Milliseconds of a pull of one change, the best of several, in a repository of so many entries: the exchange with the
/// server alone, and with the folder.
async fn pull(house: &House, size: usize) -> Result<(f64, f64)> {
    let client = house.client(&format!("acme/of-{size}"))?;
    let (mut known, mut version) = (String::new(), 0);
    for from in (0..size).step_by(500) {
        let write = EntryWrite { entries: entries(from, (from + 500).min(size), "text")?, ..EntryWrite::default() };
        let written = client.write(&write, &known).await?;
        (known, version) = (written.checksum, written.version);
    }
    let place = std::env::temp_dir().join(format!("cairn-bench-{}-{size}", std::process::id()));
    let mut mirror = Mirror::open(&place.join("team"), &place.join("state.json"), client.clone(), Deletions::Travel)?;
    mirror.pull().await?;
    // What was written a moment ago is read again each time: a change within the same tick could not be seen.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let (mut exchange, mut whole) = (f64::INFINITY, f64::INFINITY);
    for round in 0..9 {
        let (before, since) = (known.clone(), version);
        let write = EntryWrite { entries: entries(round, round + 1, "changed")?, ..EntryWrite::default() };
        let written = client.write(&write, &known).await?;
        (known, version) = (written.checksum, written.version);
        let began = Instant::now();
        client.read(Some(&before), since).await?;
        exchange = exchange.min(began.elapsed().as_secs_f64());
        let began = Instant::now();
        anyhow::ensure!(mirror.pull().await?.taken.len() == 1, "one entry has changed");
        whole = whole.min(began.elapsed().as_secs_f64());
    }
    std::fs::remove_dir_all(&place)?;
    Ok((exchange * 1e3, whole * 1e3))
}

/// What `pgbench` gets: transactions a second, and how long one takes on average in milliseconds.
fn pgbench(postgres: &Postgres, database: &str, kind: &str) -> Result<(f64, f64)> {
    let clients = CLIENTS.to_string();
    let run = Command::new("pgbench")
        .args(["-h", &postgres.folder().display().to_string(), "-U", "cairn", "-n", "-c", &clients, "-j", "2"])
        .args(["-T", SECONDS, kind, database])
        .output()?;
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let figure = |name: &str| -> Result<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("{name}? {text}"))?;
        Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
    };
    Ok((figure("tps = ")?, figure("latency average = ")?))
}

/// Both databases, `pgbench`, and what a pull costs.
pub(crate) fn measure(_place: &Path) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let folder = std::env::temp_dir().join(format!("cairn-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut rows = Vec::new();
    let names = ["GET, 304", "GET, hashes of 200", "PUT, one entry"];
    let database = folder.join("team.db").display().to_string();
    let sqlite = runtime.block_on(House::open(&database))?;
    for (name, measured) in names.iter().zip(runtime.block_on(requests(&sqlite))?) {
        rows.push(Row::figure(format!("{name}, SQLite"), measured.words()));
    }
    rows.extend(runtime.block_on(pushes_by_servers(&database, &sqlite, "SQLite"))?);
    if let Some(mut postgres) = Postgres::start() {
        let address = postgres.database();
        let house = runtime.block_on(House::open(&address))?;
        let ours = runtime.block_on(requests(&house))?;
        for (name, measured) in names.iter().zip(&ours) {
            rows.push(Row::figure(format!("{name}, PostgreSQL"), measured.words()));
        }
        rows.extend(runtime.block_on(pushes_by_servers(&address, &house, "PostgreSQL"))?);
        runtime.block_on(house.close());
        let database = address.split('?').next().and_then(|text| text.rsplit('/').next()).unwrap_or_default();
        let socket = postgres.folder().display().to_string();
        let made = Command::new("pgbench").args(["-h", &socket, "-U", "cairn", "-i", "-q", database]).output();
        if made.is_ok_and(|made| made.status.success()) {
            for (kind, name, ours) in [("-S", "pgbench, reads", &ours[0]), ("-N", "pgbench, updates", &ours[2])] {
                let (a_second, average) = pgbench(&postgres, database, kind)?;
                rows.push(Row::figure(name, format!("{a_second:.0}/s, {average:.2} ms on average")));
                let part = format!("{:.1} % of it", ours.a_second / a_second * 100.0);
                rows.push(Row::figure(if kind == "-S" { "  GET, 304" } else { "  PUT" }, part));
            }
        } else {
            rows.push(Row::figure("pgbench", "left out: it is not installed".to_owned()));
        }
    } else {
        rows.push(Row::figure("PostgreSQL", "left out: it is not installed".to_owned()));
    }
    let (small, small_pull) = runtime.block_on(pull(&sqlite, 100))?;
    let (large, large_pull) = runtime.block_on(pull(&sqlite, 2_000))?;
    rows.push(Row::figure("one change among 100", format!("{small:.2} ms asked, {small_pull:.2} ms with the folder")));
    rows.push(Row::figure(
        "one change among 2,000",
        format!("{large:.2} ms asked, {large_pull:.2} ms with the folder"),
    ));
    rows.push(Row::at_most("  asked, against 100", Unit::Times, large / small, GROWTH));
    rows.push(Row::figure("  pulled, against 100", format!("{:.2} ×", large_pull / small_pull)));
    runtime.block_on(sqlite.close());
    std::fs::remove_dir_all(&folder)?;
    Ok(rows)
}
