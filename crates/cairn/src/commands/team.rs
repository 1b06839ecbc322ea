//! `cairn team`: memory that all collaborators of a repository share.

mod client;
mod serve;

use crate::exit::Code;

/// Share memories with all collaborators of a repository.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cairn team serve                                     a server on this machine
  cairn team join http://127.0.0.1:8737 --invitation CODE --name Ada
  cairn team invite --level write                      a code for a colleague
  cairn team push                                      send what changed, get what others changed
  cairn team log deploy.md                             who changed it, and what
  cairn team restore deploy.md 12                      bring version 12 back")]
pub(crate) struct TeamArgs {
    #[command(subcommand)]
    command: TeamCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TeamCommand {
    /// Show what is shared here, with whom, and what would be sent or received.
    Status {
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Share this repository's team memory with a server.
    Join(JoinArgs),
    /// Stop sharing; the files stay.
    Leave,
    /// Get what others changed.
    Pull {
        /// Bring back files that are missing here.
        #[arg(long)]
        missing: bool,
    },
    /// Get what others changed, and send what was changed here.
    Push {
        /// Delete for everyone what is missing here, however much it is.
        #[arg(long)]
        delete: bool,
    },
    /// Show what would be sent and received, as a diff.
    Diff,
    /// List the versions of an entry, or the latest changes.
    Log {
        /// The entry.
        key: Option<String>,
    },
    /// Restore a version of an entry.
    Restore {
        /// The entry.
        key: String,
        /// The version, as `team log` shows it.
        version: u64,
    },
    /// Create an invitation, which can be used once within a week.
    Invite {
        /// The new member's level: read, write or admin.
        #[arg(long, default_value = "write")]
        level: team::protocol::Level,
        /// Make the new member an administrator of the server.
        #[arg(long)]
        server_admin: bool,
    },
    /// List the members and their levels.
    Members,
    /// Change a member's level, or revoke it.
    Grant {
        /// The member.
        member: String,
        /// read, write, admin or none.
        level: String,
    },
    /// Remove a member from the server, or a repository with its history.
    Remove {
        /// The member.
        #[arg(required_unless_present = "repository")]
        member: Option<String>,
        /// The repository. Members keep the files they have.
        #[arg(long, value_name = "OWNER/NAME", conflicts_with = "member")]
        repository: Option<String>,
    },
    /// Print this machine's token, for signing in to the web page.
    Token(TokenArgs),
    /// Serve team memory.
    Serve(serve::ServeArgs),
    /// Write everything on a server to one file.
    Backup(serve::BackupArgs),
    /// Restore a backup into an empty database.
    RestoreBackup(serve::BackupArgs),
}

#[derive(Debug, clap::Args)]
struct JoinArgs {
    /// The server's address.
    server: String,
    /// The invitation. Without one, you sign in with your organisation, if the server supports that.
    #[arg(long, value_name = "CODE")]
    invitation: Option<String>,
    /// The name that others see.
    #[arg(long)]
    name: Option<String>,
    /// A token that you already have; `-` reads it from stdin.
    #[arg(long, value_name = "TOKEN", conflicts_with = "invitation")]
    token: Option<String>,
    /// The repository's name on the server, if it differs from the git remote's.
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct TokenArgs {
    /// Create a new one; the old one becomes invalid.
    #[arg(long)]
    rotate: bool,
    /// List all your tokens, with their ids.
    #[arg(long)]
    list: bool,
    /// Revoke one of them, such as that of a lost machine.
    #[arg(long, value_name = "ID")]
    revoke: Option<String>,
}

/// Does what it says.
pub(crate) async fn run(args: TeamArgs) -> anyhow::Result<Code> {
    match args.command {
        TeamCommand::Serve(args) => return serve::serve(&args).await,
        TeamCommand::Backup(args) => return serve::back_up(&args).await,
        TeamCommand::RestoreBackup(args) => return serve::restore(&args).await,
        TeamCommand::Status { json } => return client::status(json).await,
        TeamCommand::Join(args) => client::join(&args).await?,
        TeamCommand::Leave => client::leave()?,
        TeamCommand::Pull { missing } => return client::pull(missing).await,
        TeamCommand::Push { delete } => return client::push(delete).await,
        TeamCommand::Diff => client::diff().await?,
        TeamCommand::Log { key } => client::log(key.as_deref()).await?,
        TeamCommand::Restore { key, version } => client::restore(&key, version).await?,
        TeamCommand::Invite { level, server_admin } => client::invite(level, server_admin).await?,
        TeamCommand::Members => client::members().await?,
        TeamCommand::Grant { member, level } => client::grant(&member, &level).await?,
        TeamCommand::Remove { member: Some(member), .. } => client::remove_member(&member).await?,
        TeamCommand::Remove { repository, .. } => client::remove_repository(&repository.unwrap_or_default()).await?,
        TeamCommand::Token(TokenArgs { list: true, .. }) => client::tokens().await?,
        TeamCommand::Token(TokenArgs { revoke: Some(id), .. }) => client::revoke(&id).await?,
        TeamCommand::Token(TokenArgs { rotate, .. }) => client::token(rotate).await?,
    }
    Ok(Code::Success)
}
