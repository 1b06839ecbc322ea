//! Listening: connections with limits, TLS if configured, and a shutdown that lets running requests finish.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

use super::connection_slots::{AnsweringGuard, ConnectionSlot, ConnectionSlots};
use crate::error::Error;

/// Usual time limit for the head of a request, or a TLS greeting.
pub const HEAD: Duration = Duration::from_secs(10);
/// Time limit for running requests at shutdown. Whoever stops a server waits for it.
const GRACE: Duration = Duration::from_secs(4);
/// Limit on connections that wait to be accepted. Beyond it the system keeps others waiting for seconds.
const BACKLOG: u32 = 1_024;
/// `ENFILE` and `EMFILE`: the system, or this process, can open no more files.
const NO_FILES: [i32; 2] = [23, 24];
/// Wait after an error in accepting a connection.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// A certificate and its key, as PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate, with those that vouch for it.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Address of the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(SocketAddr);

impl Peer {
    /// The peer's address; with IPv6 its network, since whoever has one address there has all of it.
    pub(super) fn network(self) -> IpAddr {
        match self.0.ip().to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address => address,
        }
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct RunningServer {
    /// Address it listens at.
    pub address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningServer {
    /// Stops accepting, lets running requests finish, and ends.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.task.await; // it ended either way
    }
}

/// Serves at an address. A client that has not sent the head of a request within this time is cut.
pub async fn listen(
    address: SocketAddr,
    tls: Option<&Tls>,
    head: Duration,
    service: Router,
) -> Result<RunningServer, Error> {
    let listener = bound(address).map_err(|error| Error::Listen { address, source: error })?;
    let address = listener.local_addr().map_err(|error| Error::Listen { address, source: error })?;
    let tls = tls.map(acceptor).transpose()?;
    let stop = CancellationToken::new();
    let task = tokio::spawn(accept(listener, tls, head, service, stop.clone()));
    Ok(RunningServer { address, stop, task })
}

fn bound(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Connections inherit it. A short answer would wait for the client to acknowledge its head.
    socket.set_nodelay(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Error> {
    let bad = |what: &str, path: &PathBuf| Error::Invalid(format!("{}: no {what} in it", path.display()));
    let certificates = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .ok()
        .filter(|certificates| !certificates.is_empty())
        .ok_or_else(|| bad("certificate", &tls.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|_| bad("private key", &tls.key))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| Error::Invalid(format!("{}: {error}", tls.certificate.display())))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    head: Duration,
    service: Router,
    stop: CancellationToken,
) {
    let (slots, open) = (Arc::new(ConnectionSlots::default()), TaskTracker::new());
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok((stream, peer)) => (stream, Peer(peer)),
            // Too many open files, or a peer that is gone. Neither is the end, and neither is better at once.
            Err(error) => {
                if error.raw_os_error().is_some_and(|code| NO_FILES.contains(&code)) {
                    slots.make_room();
                }
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(AFTER_ERROR) => continue,
                }
            }
        };
        let Some(slot) = slots.take(peer.network()) else { continue };
        let (tls, service, stop) = (tls.clone(), service.clone(), stop.clone());
        open.spawn(async move {
            let cut = slot.cut();
            let served = async {
                match tls {
                    None => serve(stream, peer, head, service, slot, stop).await,
                    Some(tls) => {
                        if let Ok(Ok(stream)) = tokio::time::timeout(head, tls.accept(stream)).await {
                            serve(stream, peer, head, service, slot, stop).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = cut.cancelled() => {}
                () = served => {}
            }
        });
    }
    drop(listener);
    open.close();
    slots.cut_waiting();
    if tokio::time::timeout(GRACE, open.wait()).await.is_err() {
        slots.cut_all();
        open.wait().await;
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    head: Duration,
    service: Router,
    slot: ConnectionSlot,
    stop: CancellationToken,
) {
    let answer = hyper::service::service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let answering = slot.answering();
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(peer);
        let answer = service.clone().call(request);
        async { answer.await.map(|answer| answer.map(|body| AnswerBody { body, _answering: answering })) }
    });
    // HTTP/1 alone: it is what clients and balancers speak, and its heads have a time.
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), answer));
    tokio::select! {
        _ = connection.as_mut() => return, // one that breaks concerns nobody else
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// The body of an answer being sent.
struct AnswerBody {
    body: axum::body::Body,
    _answering: AnsweringGuard,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
