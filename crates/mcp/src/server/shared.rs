//! State that the parts of one server share: its status, the way to the peer, and the calls that wait.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use futures_util::FutureExt;
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::{Notify, watch};

use super::fault::{Challenge, FaultMeaning};
use super::{ServerLimits, ServerOptions, ServerState, ServerStatus};
use crate::elicitation::Elicitation;
use crate::endpoint::{Endpoint, LastWords};
use crate::names::cut;
use crate::outcome::{CallProgress, OnProgress};

/// The most bytes of a progress message.
const LONGEST_PROGRESS: usize = 500;

/// One server, as its parts see it.
pub(super) struct ServerCore {
    pub(super) name: String,
    pub(super) endpoint: Endpoint,
    pub(super) limits: ServerLimits,
    pub(super) elicitation: Option<Arc<dyn Elicitation>>,
    pub(super) roots: Mutex<Vec<PathBuf>>,
    pub(super) status: watch::Sender<Arc<ServerStatus>>,
    /// The connection, while there is one.
    pub(super) link: Mutex<Option<ServerLink>>,
    /// Number of connections so far.
    links: AtomicU64,
    pub(super) waiting: WaitingCalls,
    pub(super) stale: StaleLists,
    /// Challenge with which the server last wanted a login.
    pub(super) challenge: Mutex<Option<String>>,
    /// Problems of each list.
    pub(super) problems: Mutex<BTreeMap<List, Vec<String>>>,
    /// The end of the standard error of the process, while it runs.
    pub(super) last_words: Mutex<Option<LastWords>>,
    /// Told when a call found that the server cannot be reached any more.
    pub(super) unreachable: Notify,
    /// Told when a call found that the server wants a login.
    pub(super) unauthorized: Notify,
    /// Questions that the user has not answered yet.
    pub(super) questions: AtomicUsize,
    /// Requests of ours that are not over yet.
    pub(super) requests: AtomicUsize,
}

/// One connection.
#[derive(Clone)]
pub(super) struct ServerLink {
    number: u64,
    pub(super) peer: Peer<RoleClient>,
}

impl ServerLink {
    /// True if the server speaks a revision with a handshake.
    pub(super) fn has_handshake(&self) -> bool {
        self.peer.peer_info().is_none_or(|info| info.protocol_version.has_initialize())
    }
}

impl ServerCore {
    pub(super) fn new(name: &str, endpoint: Endpoint, options: ServerOptions) -> Self {
        Self {
            name: name.to_owned(),
            endpoint,
            limits: options.limits,
            elicitation: options.elicitation,
            roots: Mutex::new(options.roots),
            status: watch::channel(Arc::new(ServerStatus::off())).0,
            link: Mutex::new(None),
            links: AtomicU64::new(0),
            waiting: WaitingCalls::default(),
            stale: StaleLists::default(),
            challenge: Mutex::default(),
            problems: Mutex::default(),
            last_words: Mutex::default(),
            unreachable: Notify::new(),
            unauthorized: Notify::new(),
            questions: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
        }
    }

    /// Makes a connection the one for calls.
    pub(super) fn join(&self, peer: Peer<RoleClient>) {
        // What was told about an earlier one does not count any more.
        let _ = self.unreachable.notified().now_or_never();
        let _ = self.unauthorized.notified().now_or_never();
        let number = self.links.fetch_add(1, Ordering::AcqRel);
        *self.link.lock() = Some(ServerLink { number, peer });
    }

    /// Takes note of what a call over a connection found out about it.
    pub(super) fn found(&self, link: &ServerLink, meaning: FaultMeaning) {
        if self.link.lock().as_ref().is_none_or(|current| current.number != link.number) {
            return;
        }
        match meaning {
            FaultMeaning::Nothing | FaultMeaning::TooLarge => {}
            FaultMeaning::Unreachable => self.unreachable.notify_one(),
            FaultMeaning::Login(challenge) => {
                self.remember(challenge);
                self.unauthorized.notify_one();
            }
        }
    }

    /// Keeps what the server said about the login it wants; the scope also for a login by another process.
    pub(super) fn remember(&self, challenge: Challenge) {
        if let (Some(scope), Endpoint::Http(http)) = (&challenge.scope, &self.endpoint)
            && let Some(tokens) = &http.tokens
        {
            // A login without it asks again; nothing is lost.
            let _ = tokens.load().and_then(|known| tokens.save(&known.unwrap_or_default().wanting(scope)));
        }
        *self.challenge.lock() = Some(challenge.header).filter(|header| !header.is_empty());
    }

    /// The state of a server that rejected what it was sent. No login helps where a definition has its own authorization.
    pub(super) fn rejected(&self) -> ServerState {
        let Endpoint::Http(http) = &self.endpoint else { return ServerState::NeedsLogin };
        let is_own = http.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        match (is_own, &http.helper) {
            (_, Some(_)) => ServerState::Failed("it rejected the headers that the helper printed".to_owned()),
            (true, None) => ServerState::Failed("it rejected the authorization in its definition".to_owned()),
            (false, None) => ServerState::NeedsLogin,
        }
    }

    /// True if the headers of the next connection are new ones.
    pub(super) fn has_helper(&self) -> bool {
        matches!(&self.endpoint, Endpoint::Http(http) if http.helper.is_some())
    }

    /// Changes the status, and tells those who watch it if it did change.
    pub(super) fn update(&self, change: impl FnOnce(&mut ServerStatus)) {
        self.status.send_if_modified(|status| {
            let mut new = ServerStatus::clone(status);
            change(&mut new);
            let is_new = new != **status;
            if is_new {
                *status = Arc::new(new);
            }
            is_new
        });
    }

    pub(super) fn all_problems(&self) -> Vec<String> {
        self.problems.lock().values().flatten().cloned().collect()
    }

    pub(super) fn set_state(&self, state: ServerState) {
        self.update(|status| status.state = state);
    }
}

/// Calls that wait for their answer, by the token under which the server reports progress.
#[derive(Default)]
pub(super) struct WaitingCalls(Mutex<HashMap<ProgressToken, WaitingCall>>);

struct WaitingCall {
    on_progress: Option<OnProgress>,
    sign: Arc<Notify>,
}

/// One call in the list, until it is dropped.
pub(super) struct CallEntry<'a> {
    calls: &'a WaitingCalls,
    token: ProgressToken,
    /// Told at each sign of progress.
    pub(super) sign: Arc<Notify>,
}

impl WaitingCalls {
    pub(super) fn enter(&self, token: ProgressToken, on_progress: Option<OnProgress>) -> CallEntry<'_> {
        let sign = Arc::new(Notify::new());
        self.0.lock().insert(token.clone(), WaitingCall { on_progress, sign: sign.clone() });
        CallEntry { calls: self, token, sign }
    }

    /// Passes progress on. That of a call that nobody waits for is dropped.
    pub(super) fn report(&self, progress: ProgressNotificationParam) {
        let on_progress = {
            let calls = self.0.lock();
            let Some(call) = calls.get(&progress.progress_token) else { return };
            call.sign.notify_one();
            call.on_progress.clone()
        };
        if let Some(on_progress) = on_progress {
            let message = progress.message.map(|message| cut(&message, LONGEST_PROGRESS).into_owned());
            on_progress(CallProgress { done: progress.progress, total: progress.total, message });
        }
    }
}

impl Drop for CallEntry<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.token);
    }
}

/// One of the lists that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    Tools,
    Resources,
    Prompts,
}

impl List {
    pub(super) const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

/// Lists that the server says have changed.
#[derive(Default)]
pub(super) struct StaleLists {
    lists: [AtomicBool; List::ALL.len()],
    told: Notify,
}

impl StaleLists {
    pub(super) fn mark(&self, list: List) {
        self.lists[list as usize].store(true, Ordering::Release);
        self.told.notify_one();
    }

    pub(super) fn clear(&self) {
        self.take();
    }

    fn take(&self) -> Vec<List> {
        List::ALL.into_iter().filter(|list| self.lists[*list as usize].swap(false, Ordering::AcqRel)).collect()
    }

    /// Waits until there are some.
    pub(super) async fn next(&self) -> Vec<List> {
        loop {
            let stale = self.take();
            if !stale.is_empty() {
                return stale;
            }
            self.told.notified().await;
        }
    }
}

/// One more of something, until it is dropped.
pub(super) struct OneMore<'a>(&'a AtomicUsize);

impl<'a> OneMore<'a> {
    pub(super) fn of(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for OneMore<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
