//! A server of the test's own, with members, and folders that are kept in step with it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use team::Repository;
use team::client::{Client, Transport};
use team::mirror::Mirror;
use team::report::{EarlyEnd, SyncReport};
use team::serve::{HEAD, Options, RunningServer, listen, service};
use team::store::{Invitation, Level, Member, RepositoryLimits, Store};
use team::sync::Deletions;
use tempfile::TempDir;

/// When the test begins.
pub(crate) const NOW: i64 = 1_800_000_000_000;

/// What looks like a secret, put together here so that it stands in no file.
pub(crate) fn secret() -> String {
    ["ghp_", "x7Kp2mQ9vL4nT8", "wR3sY6bH1jD5fG0cZeA9uU"].concat()
}

/// A server, its store and its clock.
pub(crate) struct House {
    pub(crate) store: Store,
    pub(crate) clock: Arc<AtomicI64>,
    pub(crate) admin: Member,
    running: Option<RunningServer>,
    place: TempDir,
}

pub(crate) fn repository() -> Repository {
    "acme/rocket".parse().unwrap()
}

pub(crate) fn options(clock: &Arc<AtomicI64>) -> Options {
    let clock = clock.clone();
    Options {
        limits: RepositoryLimits::default(),
        body_bytes: 1_000_000,
        body_patience: Duration::from_secs(5),
        requests: 100_000,
        issuer: None,
        address: "http://127.0.0.1".to_owned(),
        clock: Arc::new(move || clock.load(Ordering::Relaxed)),
    }
}

impl House {
    pub(crate) async fn open() -> Self {
        Self::with(|_| {}).await
    }

    /// A house with some options changed.
    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::furnished(change, HEAD).await
    }

    /// One that waits only so long for the head of a request.
    pub(crate) async fn impatient(head: Duration) -> Self {
        Self::furnished(|_| {}, head).await
    }

    async fn furnished(change: impl FnOnce(&mut Options), head: Duration) -> Self {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("team.db").display().to_string()).await.unwrap();
        let invitation = store.invitations().first(NOW).await.unwrap().unwrap();
        let admin = store.invitations().accept(invitation.reveal(), "Ada", None, "test", NOW).await.unwrap().member;
        let clock = Arc::new(AtomicI64::new(NOW));
        let mut options = options(&clock);
        change(&mut options);
        let here: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let running = listen(here, None, head, service(store.clone(), options)).await.unwrap();
        Self { store, clock, admin, running: Some(running), place }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.running.as_ref().unwrap().address)
    }

    /// A token of a new member with a level in the repository.
    pub(crate) async fn token(&self, name: &str, level: Level) -> String {
        let invitation = Invitation::Repository(repository(), level);
        let invitation = self.store.invitations().create(&self.admin, &invitation, NOW).await.unwrap();
        self.store
            .invitations()
            .accept(invitation.reveal(), name, None, "test", NOW)
            .await
            .unwrap()
            .token
            .reveal()
            .to_owned()
    }

    pub(crate) async fn admin_token(&self) -> String {
        self.store.tokens().issue(&self.admin, "test", None, NOW).await.unwrap().reveal().to_owned()
    }

    /// A member's folder.
    pub(crate) async fn folder(&self, name: &str) -> Desk {
        self.desk(name, Level::Write).await
    }

    /// A folder of one who may only read.
    pub(crate) async fn reader(&self, name: &str) -> Desk {
        self.desk(name, Level::Read).await
    }

    async fn desk(&self, name: &str, level: Level) -> Desk {
        let token = self.token(name, level).await;
        let client = Client::new(&self.address(), &token, repository()).unwrap();
        let path = self.place.path().join(name);
        std::fs::create_dir_all(path.join("team")).unwrap();
        Desk { path, token, client, deletions: Deletions::Travel }
    }

    /// Serves the same store anew, with another limit of entries.
    pub(crate) async fn limit(&mut self, entries: u64) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        let mut options = options(&self.clock);
        options.limits.entries = entries;
        self.serve(options).await;
    }

    async fn serve(&mut self, options: Options) {
        let here: SocketAddr = "127.0.0.1:0".parse().unwrap();
        self.running = Some(listen(here, None, HEAD, service(self.store.clone(), options)).await.unwrap());
    }

    /// The same desk, at the address that the server has now.
    pub(crate) fn again(&self, desk: &Desk) -> Desk {
        desk.through(&self.address())
    }

    /// All that the server keeps, as a backup writes it.
    pub(crate) async fn back_up(&self) -> Vec<u8> {
        let mut backup = Vec::new();
        self.store.back_up(&mut backup).await.unwrap();
        backup
    }

    /// A server at another address, with what a backup has.
    pub(crate) async fn restore(&mut self, backup: &[u8]) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        self.store.close().await;
        let file = self.place.path().join(format!("restored-{}.db", backup.len()));
        let _ = std::fs::remove_file(&file);
        self.store = Store::open(&file.display().to_string()).await.unwrap();
        self.store.restore(&mut std::io::BufReader::new(backup), NOW).await.unwrap();
        let options = options(&self.clock);
        self.serve(options).await;
    }

    /// Tells it to stop; what is under way may finish.
    pub(crate) fn stopping(&mut self) -> impl Future<Output = ()> + use<> {
        self.running.take().unwrap().stop()
    }

    pub(crate) async fn close(mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        self.store.close().await;
    }
}

/// A member at work.
pub(crate) struct Desk {
    path: PathBuf,
    token: String,
    client: Client,
    pub(crate) deletions: Deletions,
}

impl Desk {
    pub(crate) fn mirror(&self) -> Mirror {
        let (folder, state) = (self.path.join("team"), self.path.join("agreed.json"));
        Mirror::open(&folder, &state, self.client.clone(), self.deletions).unwrap()
    }

    /// The same desk, that reaches the server by another address.
    pub(crate) fn through(&self, address: &str) -> Self {
        let client = Client::new(address, &self.token, repository()).unwrap();
        Self { path: self.path.clone(), token: self.token.clone(), client, deletions: self.deletions }
    }

    /// The same desk, on another network.
    pub(crate) fn over(&self, wire: Arc<dyn Transport>) -> Self {
        let client = self.client.clone().over(wire);
        Self { path: self.path.clone(), token: self.token.clone(), client, deletions: self.deletions }
    }

    pub(crate) async fn push(&self) -> Result<SyncReport, EarlyEnd> {
        self.mirror().push().await
    }

    pub(crate) async fn pull(&self) -> Result<SyncReport, EarlyEnd> {
        self.mirror().pull().await
    }

    /// Where what was agreed on is written down.
    pub(crate) fn state(&self) -> PathBuf {
        self.path.join("agreed.json")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join("team").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.file(name).parent().unwrap()).unwrap();
        std::fs::write(self.file(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.file(name)).ok()
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.file(name)).unwrap();
    }

    /// All files by name.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        let root = self.path.join("team");
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false if entry.file_name().to_string_lossy().starts_with('.') => {}
                    false => {
                        let name = entry.path().strip_prefix(&root).unwrap().display().to_string();
                        found.push((name, std::fs::read_to_string(entry.path()).unwrap()));
                    }
                }
            }
        }
        found.sort();
        found
    }
}

/// A request of the protocol, and its answer: status, state's name, body.
pub(crate) async fn call(
    house: &House,
    method: &str,
    query: &str,
    token: &str,
    header: Option<(&str, &str)>,
    body: Option<Value>,
) -> (u16, Option<String>, Value) {
    let address = format!("{}/api/claude_code/team_memory?repo=acme/rocket{query}", house.address());
    send(method, &address, token, header, body).await
}

/// A request, and its answer.
pub(crate) async fn send(
    method: &str,
    address: &str,
    token: &str,
    header: Option<(&str, &str)>,
    body: Option<Value>,
) -> (u16, Option<String>, Value) {
    let method: reqwest::Method = method.parse().unwrap();
    let mut request = team::client::http().no_proxy().build().unwrap().request(method, address);
    if !token.is_empty() {
        request = request.bearer_auth(token);
    }
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await.unwrap();
    let tag = response.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, tag, serde_json::from_str(&text).unwrap_or_else(|_| json!(text)))
}
