//! The server's side: its arguments, which every build knows, and the work, which the feature `server` brings.

#[cfg(feature = "server")]
mod work;

use std::net::SocketAddr;
use std::path::PathBuf;

#[cfg(not(feature = "server"))]
pub(super) use absent::{back_up, restore, serve};
#[cfg(feature = "server")]
pub(super) use work::{back_up, restore, serve};

/// Serve team memory.
///
/// The first start prints an invitation for its admin. Without further arguments it listens on this machine alone and
/// keeps everything in one file below the config home.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cairn team serve
  cairn team serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --address https://team.example.org
  cairn team serve --database postgres://cairn@db/cairn --listen 0.0.0.0:8737")]
pub(super) struct ServeArgs {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:8737", value_name = "ADDRESS")]
    listen: SocketAddr,
    #[command(flatten)]
    database: DatabaseArgs,
    /// The address by which members reach it, if it is not the one it listens on.
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// The certificate and its chain (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The most entries of a repository.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    max_entries: u64,
    /// The most versions of an entry that are kept.
    #[arg(long, default_value_t = 100, value_name = "N")]
    versions: u64,
    /// Requests a minute that one member may make.
    #[arg(long, default_value_t = 600, value_name = "N")]
    requests: u32,
    /// The address of an OpenID Connect issuer whose accounts may sign in.
    #[arg(long, value_name = "URL", requires = "oidc_client")]
    oidc_issuer: Option<String>,
    /// This server's client id at the issuer. Its secret is in CAIRN_TEAM_OIDC_SECRET.
    #[arg(long, value_name = "ID")]
    oidc_client: Option<String>,
    /// Verified addresses of this domain become members, without rights at first.
    #[arg(long, value_name = "DOMAIN")]
    oidc_domain: Option<String>,
}

#[derive(Debug, clap::Args)]
struct DatabaseArgs {
    /// `postgres://…`, or the path of a file; default: CAIRN_TEAM_DATABASE.
    #[arg(long, value_name = "ADDRESS")]
    database: Option<String>,
}

/// A file that holds all.
#[derive(Debug, clap::Args)]
pub(super) struct BackupArgs {
    /// The file.
    file: PathBuf,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[cfg(not(feature = "server"))]
mod absent {
    use super::{BackupArgs, ServeArgs};
    use crate::error::NotBuilt;
    use crate::exit::Code;

    /// The feature that this build lacks.
    const SERVER: NotBuilt = NotBuilt { what: "the team server", feature: "server" };

    pub(crate) async fn serve(_: &ServeArgs) -> anyhow::Result<Code> {
        Err(SERVER.into())
    }

    pub(crate) async fn back_up(_: &BackupArgs) -> anyhow::Result<Code> {
        Err(SERVER.into())
    }

    pub(crate) async fn restore(_: &BackupArgs) -> anyhow::Result<Code> {
        Err(SERVER.into())
    }
}
