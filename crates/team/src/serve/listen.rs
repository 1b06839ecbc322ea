//! Listening: connections with bounds, TLS where it is asked for, and an end that lets what runs finish.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::error::Error;

/// The head of a request, or a TLS greeting, usually has to be there within this time.
pub const HEAD: Duration = Duration::from_secs(10);
/// So many connections at once; more wait to be accepted.
const CONNECTIONS: usize = 1_024;
/// At the end, what runs may take so long.
const GRACE: Duration = Duration::from_secs(20);

/// A certificate and its key, as PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate, with those that vouch for it.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// A server that runs.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// Accepts nothing more, lets what runs finish, and ends.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.task.await; // it ended either way
    }
}

/// Serves at an address. Who has not sent the head of a request after so long is cut.
pub async fn listen(address: SocketAddr, tls: Option<&Tls>, head: Duration, service: Router) -> Result<Running, Error> {
    let listener = TcpListener::bind(address).await.map_err(|error| Error::Listen { address, source: error })?;
    let address = listener.local_addr().map_err(|error| Error::Listen { address, source: error })?;
    let tls = tls.map(acceptor).transpose()?;
    let stop = CancellationToken::new();
    let task = tokio::spawn(accept(listener, tls, head, service, stop.clone()));
    Ok(Running { address, stop, task })
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Error> {
    let bad = |what: &str, path: &PathBuf| Error::Invalid(format!("{}: no {what} in it", path.display()));
    let certificates = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .ok()
        .filter(|certificates| !certificates.is_empty())
        .ok_or_else(|| bad("certificate", &tls.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|_| bad("private key", &tls.key))?;
    // Named, since others bring providers of their own.
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
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
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { break };
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                // Too many open files, or a peer that is gone: neither is the end.
                Err(_) => {
                    tokio::task::yield_now().await;
                    continue;
                }
            },
        };
        let (tls, service, watcher) = (tls.clone(), service.clone(), graceful.watcher());
        tokio::spawn(async move {
            let _place = place;
            match tls {
                None => serve(stream, peer, head, service, watcher).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(head, tls.accept(stream)).await {
                        serve(stream, peer, head, service, watcher).await;
                    }
                }
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await; // what is not done by then is cut
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    head: Duration,
    service: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let answer = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(peer));
        service.clone().call(request)
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head);
    let connection = builder.serve_connection(TokioIo::new(stream), answer);
    let _ = watcher.watch(connection.into_owned()).await; // a connection that breaks concerns nobody else
}
