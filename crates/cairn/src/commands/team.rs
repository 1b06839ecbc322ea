//! `cairn team`: memory that all collaborators of a repository share.

mod client;
mod serve;

use crate::exit::Code;

/// Memory that all collaborators of a repository share.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cairn team serve                                     a server on this machine
  cairn team join http://127.0.0.1:8737 --invitation CODE --name Ada
  cairn team invite --level write                      a code for a colleague
  cairn team push                                      send what changed, take in what others did
  cairn team log deploy.md                             who changed it, and what
  cairn team restore deploy.md 12                      bring version 12 back")]
pub(crate) struct TeamArgs {
    #[command(subcommand)]
    command: TeamCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TeamCommand {
    /// What is shared here, with whom, and what would be sent or taken.
    Status {
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Share this repository's team memory with a server.
    Join(JoinArgs),
    /// Stop sharing; the files stay.
    Leave,
    /// Take in what others did.
    Pull {
        /// Bring back files that are missing here.
        #[arg(long)]
        missing: bool,
    },
    /// Take in what others did, and send what was done here.
    Push {
        /// Delete for all what is missing here, however much it is.
        #[arg(long)]
        delete: bool,
    },
    /// What would be sent and taken, as a diff.
    Diff,
    /// The versions of an entry, or what happened lately.
    Log {
        /// The entry.
        key: Option<String>,
    },
    /// Bring a version of an entry back.
    Restore {
        /// The entry.
        key: String,
        /// The version, as `team log` shows it.
        version: u64,
    },
    /// Make an invitation, to be used once within a week.
    Invite {
        /// What the one who comes may do: read, write or admin.
        #[arg(long, default_value = "write")]
        level: team::protocol::Level,
        /// To administer the server itself.
        #[arg(long)]
        server_admin: bool,
    },
    /// Who may do what here.
    Members,
    /// Give a member another level, or none.
    Grant {
        /// The member.
        member: String,
        /// read, write, admin or none.
        level: String,
    },
    /// Take a member off the server, or a repository with its history.
    Remove {
        /// The member.
        #[arg(required_unless_present = "repository")]
        member: Option<String>,
        /// The repository. Members keep the files they have.
        #[arg(long, value_name = "OWNER/NAME", conflicts_with = "member")]
        repository: Option<String>,
    },
    /// This machine's token, for signing in to the page.
    Token(TokenArgs),
    /// Serve team memory.
    Serve(serve::ServeArgs),
    /// Write all that a server keeps into one file.
    Backup(serve::BackupArgs),
    /// Read such a file into an empty database.
    RestoreBackup(serve::BackupArgs),
}

#[derive(Debug, clap::Args)]
struct JoinArgs {
    /// The server's address.
    server: String,
    /// The invitation. Without one, you sign in with your organisation, where the server has that.
    #[arg(long, value_name = "CODE")]
    invitation: Option<String>,
    /// What others see of you.
    #[arg(long)]
    name: Option<String>,
    /// A token you have already; `-` reads it from stdin.
    #[arg(long, value_name = "TOKEN", conflicts_with = "invitation")]
    token: Option<String>,
    /// The repository's name on the server, where it is not that of the git remote.
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct TokenArgs {
    /// Make a new one; the old one counts no more.
    #[arg(long)]
    rotate: bool,
    /// All tokens you have, with their ids.
    #[arg(long)]
    list: bool,
    /// Take one of them back, that of a lost machine for instance.
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
