//! The team's real server on a SQLite file, called without a socket. A call is one step of the world: it runs to its end on
//! a runtime of its own, so that the world's clock stands still meanwhile.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use team::client::Client;
use team::serve::{Options, service};
use team::store::{Invitation, Level, RepositoryLimits, Store};
use team::{EntryKey, Repository};
use tokio::runtime::Runtime;
use tower_service::Service;

pub(crate) const MEMBERS: usize = 3;
/// When a world begins.
const NOW: i64 = 1_800_000_000_000;
/// More than any answer has.
const ANSWER_BYTES: usize = 10_000_000;

pub(crate) fn repository() -> Repository {
    "acme/rocket".parse().unwrap()
}

/// Where servers run; it ends with the process, since a runtime cannot be dropped inside another.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

/// A database with members in it, made once, and their clients.
struct Template {
    database: Vec<u8>,
    clients: Vec<Client>,
}

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("team.db");
    apart(async {
        let store = Store::open(&path.display().to_string()).await.unwrap();
        let first = store.invitations().first(NOW).await.unwrap().unwrap();
        let admin = store.invitations().accept(first.reveal(), "admin", None, "test", NOW).await.unwrap().member;
        let mut clients = Vec::new();
        for number in 0..MEMBERS {
            let invitation = Invitation::Repository(repository(), Level::Write);
            let invitation = store.invitations().create(&admin, &invitation, NOW).await.unwrap();
            let name = format!("member-{number}");
            let token = store.invitations().accept(invitation.reveal(), &name, None, "test", NOW).await.unwrap().token;
            clients.push(Client::new("http://127.0.0.1:1", token.reveal(), repository()).unwrap());
        }
        store.close().await;
        Template { database: std::fs::read(&path).unwrap(), clients }
    })
});

/// The client of each member; it still needs a wire.
pub(crate) fn client(member: usize) -> Client {
    TEMPLATE.clients[member].clone()
}

/// An answer, read whole.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct TeamServer {
    place: PathBuf,
    store: Store,
    router: Router,
    clock: Arc<AtomicI64>,
    backup: Vec<u8>,
    restored: usize,
}

impl TeamServer {
    pub(crate) fn open(place: &Path) -> Self {
        let file = place.join("team.db");
        std::fs::write(&file, &TEMPLATE.database).unwrap();
        let clock = Arc::new(AtomicI64::new(NOW));
        let (store, router) = apart(opened(&file, &clock));
        let mut server = Self { place: place.to_owned(), store, router, clock, backup: Vec::new(), restored: 0 };
        server.back_up();
        server
    }

    /// One request, to its end.
    pub(crate) fn call(&mut self, request: Request<Vec<u8>>) -> Answer {
        let router = &mut self.router;
        self.clock.fetch_add(1, Ordering::Relaxed);
        apart(async {
            let answer = router.call(request.map(Body::from)).await.unwrap();
            let (parts, body) = answer.into_parts();
            let body = to_bytes(body, ANSWER_BYTES).await.unwrap().to_vec();
            Answer { status: parts.status, headers: parts.headers, body }
        })
    }

    /// The clock is set forward, or back.
    pub(crate) fn set_clock(&self, by: i64) {
        self.clock.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn back_up(&mut self) {
        let mut backup = Vec::new();
        apart(async { self.store.back_up(&mut backup).await.unwrap() });
        self.backup = backup;
    }

    /// Another server, with what the backup has.
    pub(crate) fn restore(&mut self) {
        self.restored += 1;
        let file = self.place.join(format!("restored-{}.db", self.restored));
        (self.store, self.router) = apart(async {
            self.store.close().await;
            let (store, router) = opened(&file, &self.clock).await;
            store.restore(&mut std::io::BufReader::new(self.backup.as_slice()), NOW).await.unwrap();
            (store, router)
        });
    }

    /// The texts that the history of an entry has, the newest first; nothing where it was deleted.
    pub(crate) fn history(&self, key: &str) -> Vec<Option<String>> {
        let key: EntryKey = key.parse().unwrap();
        let versions = apart(async { self.store.history().versions(&repository(), &key).await.unwrap() });
        versions.into_iter().map(|version| version.text).collect()
    }
}

impl Drop for TeamServer {
    fn drop(&mut self) {
        apart(self.store.close());
    }
}

async fn opened(file: &Path, clock: &Arc<AtomicI64>) -> (Store, Router) {
    let store = Store::open(&file.display().to_string()).await.unwrap();
    let clock = clock.clone();
    let options = Options {
        limits: RepositoryLimits::default(),
        body_bytes: 1_000_000,
        body_patience: Duration::from_secs(5),
        requests: 1_000_000,
        issuer: None,
        address: "http://127.0.0.1".to_owned(),
        clock: Arc::new(move || clock.load(Ordering::Relaxed)),
    };
    let router = service(store.clone(), options);
    (store, router)
}

/// Runs something to its end on another runtime, outside of the world's.
fn apart<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| scope.spawn(|| RUNTIME.block_on(future)).join().unwrap())
}
