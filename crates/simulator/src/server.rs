//! The HTTP server: routes, and a request's way from its bytes to its reply.
//!
//! A request is read (bounded), let in by its key, checked, edited by its own context management, laid out as a prompt
//! and measured against the window. Then a fault may strike; else a rule replies. The cache is asked when the request
//! arrives and told when the reply begins, so two requests in flight cannot read each other's writes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Error;
use crate::cache::Cache;
use crate::clock::{Clock, Stopwatch};
use crate::count::Counter;
use crate::faults::{Fault, Faults};
use crate::report::Report;
use crate::request_price::Price;
use crate::script::Script;
use crate::script::choose::Chooser;
use crate::trail::Trails;

mod answer;
mod routes;

/// Bodies kept for [`Simulator::requests`], unless options say otherwise.
const KEPT_REQUESTS: usize = 1_000;
/// Bytes of bodies kept, whatever their number.
const KEPT_BYTES: usize = 256 * 1024 * 1024;

/// Behaviour of the provider, beyond the script.
#[derive(Debug, Clone)]
pub struct Options {
    /// Port on the loopback interface; 0 takes a free one.
    pub port: u16,
    /// The clock that cache entries live by.
    pub clock: Clock,
    /// Context window for every model, instead of the script's or the model's own.
    pub window: Option<u64>,
    /// Fixes ids and signatures, instead of the script's seed.
    pub seed: Option<u64>,
    /// Scales every token count, instead of the script's factor.
    pub count_factor: Option<f64>,
    /// Accept the private `cache_edits` beta.
    pub cache_edits: bool,
    /// Prices by model name, instead of the public ones.
    pub prices: BTreeMap<String, Price>,
    /// Number of request bodies to keep; the oldest go first.
    pub keep_requests: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            clock: Clock::Virtual,
            window: None,
            seed: None,
            count_factor: None,
            cache_edits: false,
            prices: BTreeMap::new(),
            keep_requests: KEPT_REQUESTS,
        }
    }
}

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct Simulator {
    port: u16,
    shared: Arc<ServerState>,
    closing: watch::Sender<bool>,
    serving: Option<JoinHandle<()>>,
}

impl Simulator {
    /// Opens the port and serves on the current tokio runtime.
    pub async fn start(script: Script, options: Options) -> Result<Self, Error> {
        let unable = |source| Error::Bind { port: options.port, source };
        let listener = TcpListener::bind(("127.0.0.1", options.port)).await.map_err(unable)?;
        let port = listener.local_addr().map_err(unable)?.port();
        // A reply is several small writes; the system would hold back each until the one before is acknowledged.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let (closing, closed) = watch::channel(false);
        let shared = Arc::new(ServerState::new(&script, options, closed.clone())?);
        let router = routes::router(shared.clone());
        let serving = tokio::spawn(async move {
            // Serving ends only by the signal; a failing accept is retried inside.
            let _ended = axum::serve(listener, router).with_graceful_shutdown(until_closed(closed)).await;
        });
        Ok(Self { port, shared, closing, serving: Some(serving) })
    }

    /// The base address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Report so far.
    pub fn report(&self) -> Report {
        self.shared.state.lock().report.clone()
    }

    /// The bodies of recent requests to `/v1/messages`, oldest first, refused ones included.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.state.lock().bodies.iter().filter_map(|body| serde_json::from_slice(body).ok()).collect()
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.shared.watch.advance(by);
    }

    /// Adds a fault after those that wait already.
    pub fn push_fault(&self, fault: Fault) -> Result<(), Error> {
        self.shared.state.lock().faults.push(fault)
    }

    /// Stops, and waits until open replies have ended; stalled ones are dropped.
    pub async fn shutdown(mut self) {
        self.closing.send_replace(true);
        if let Some(serving) = self.serving.take() {
            // Only a panic inside the server makes this an error, and then it has ended too.
            let _ended = serving.await;
        }
    }

    /// Waits until the server ends.
    pub async fn wait(mut self) {
        if let Some(serving) = self.serving.take() {
            let _ended = serving.await;
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

async fn until_closed(mut closed: watch::Receiver<bool>) {
    // An error means that the sender is gone, which is the same.
    let _closed = closed.wait_for(|closed| *closed).await;
}

/// State shared by all requests.
#[derive(Debug)]
struct ServerState {
    options: Options,
    seed: u64,
    window: Option<u64>,
    counter: Counter,
    default_thinking: Option<String>,
    watch: Stopwatch,
    closed: watch::Receiver<bool>,
    state: Mutex<State>,
}

/// State that requests change.
#[derive(Debug)]
struct State {
    chooser: Chooser,
    faults: Faults,
    cache: Cache,
    trails: Trails,
    report: Report,
    bodies: VecDeque<bytes::Bytes>,
    body_bytes: usize,
    /// Requests of any route, for request ids.
    received: u64,
    /// Requests to `/v1/messages`, for faults and the report.
    asked: u64,
}

impl ServerState {
    fn new(script: &Script, options: Options, closed: watch::Receiver<bool>) -> Result<Self, Error> {
        let mut faults = Faults::default();
        for fault in &script.faults {
            faults.push(fault.clone())?;
        }
        let state = State {
            chooser: Chooser::new(script)?,
            faults,
            cache: Cache::default(),
            trails: Trails::default(),
            report: Report::default(),
            bodies: VecDeque::new(),
            body_bytes: 0,
            received: 0,
            asked: 0,
        };
        Ok(Self {
            seed: options.seed.or(script.model.seed).unwrap_or_default(),
            window: options.window.or(script.model.window),
            counter: Counter::new(options.count_factor.or(script.model.count_factor).unwrap_or(1.0)),
            default_thinking: script.model.thinking.clone(),
            watch: Stopwatch::new(options.clock),
            closed,
            options,
            state: Mutex::new(state),
        })
    }
}

impl State {
    fn keep(&mut self, body: bytes::Bytes, most: usize) {
        self.body_bytes += body.len();
        self.bodies.push_back(body);
        while self.bodies.len() > most || self.body_bytes > KEPT_BYTES {
            let Some(oldest) = self.bodies.pop_front() else {
                break;
            };
            self.body_bytes -= oldest.len();
        }
    }
}
