//! Serving, backing up, restoring.

use std::io::{BufReader, BufWriter, Write};
use std::path::absolute;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use session::World;
use team::serve::{HEAD, Issuer, Options, Tls, listen, service};
use team::store::{RepositoryLimits, Store};

use super::{BackupArgs, DatabaseArgs, ServeArgs};
use crate::env;
use crate::exit::Code;
use crate::out::{TalkWriter, data, talk};
use crate::program_paths::ProgramPaths;

impl DatabaseArgs {
    async fn open(&self) -> anyhow::Result<Store> {
        let address = match self.database.clone().or_else(|| env::TEAM_DATABASE.get()) {
            Some(address) if address.contains("://") => address,
            Some(path) => absolute(path)?.display().to_string(),
            None => {
                let folder = ProgramPaths::from_env()?.home.path().join("cairn");
                files::create_directory(&folder)?;
                folder.join("team-server.db").display().to_string()
            }
        };
        Store::open(&address).await.context("the database cannot be opened")
    }
}

pub(crate) async fn serve(args: &ServeArgs) -> anyhow::Result<Code> {
    // What goes wrong inside is told to whoever runs it, never to its clients.
    tracing_subscriber::fmt()
        .with_writer(|| TalkWriter)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .init();
    let store = args.database.open().await?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls { certificate: absolute(certificate)?, key: absolute(key)? }),
        _ => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let issuer = args.oidc_issuer.clone().zip(args.oidc_client.clone()).map(|(address, client)| Issuer {
        address,
        client,
        secret: env::TEAM_OIDC_SECRET.get(),
        domain: args.oidc_domain.clone(),
    });
    let address = args.address.clone().unwrap_or_else(|| format!("{scheme}://{}", args.listen));
    let options = Options {
        limits: RepositoryLimits { entries: args.max_entries, versions: args.versions, ..RepositoryLimits::default() },
        body_bytes: 2_000_000,
        body_patience: Duration::from_secs(30),
        requests: args.requests,
        issuer,
        address: address.clone(),
        clock: Arc::new(now),
    };
    let invitation = store.invitations().first(now()).await?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let running = listen(args.listen, tls.as_ref(), HEAD, service(store.clone(), options)).await?;
    let shown = args.address.clone().unwrap_or_else(|| format!("{scheme}://{}", running.address));
    data!("listening on {shown}")?;
    if let Some(invitation) = invitation {
        data!("first admin: cairn team join {shown} --invitation {} --name NAME", invitation.reveal())?;
    }
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    talk!("stopping when the requests under way are finished");
    running.stop().await;
    store.close().await;
    Ok(Code::Success)
}

pub(crate) async fn back_up(args: &BackupArgs) -> anyhow::Result<Code> {
    let store = args.database.open().await?;
    let path = absolute(&args.file)?;
    let folder = path.parent().context("that is not a file")?;
    // Whole or not at all: it gets its name when it is written.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let mut out = BufWriter::new(&mut file);
    store.back_up(&mut out).await?;
    out.flush()?;
    drop(out);
    file.as_file().sync_all()?;
    file.persist(&path)?;
    store.close().await;
    data!("{}", path.display())?;
    Ok(Code::Success)
}

pub(crate) async fn restore(args: &BackupArgs) -> anyhow::Result<Code> {
    let file = files::open(absolute(&args.file)?)?;
    let store = args.database.open().await?;
    store.restore(&mut BufReader::new(file), now()).await?;
    let members = store.members().all().await?.len();
    store.close().await;
    data!("{members} members, with all they wrote")?;
    Ok(Code::Success)
}

/// Milliseconds since 1970.
fn now() -> i64 {
    World::real().now().as_millisecond()
}
