//! The command line: one file a command. Doc comments here are the help text.

mod agents;
mod audit;
mod completions;
mod config;
mod demo;
mod dream;
mod hooks;
mod inbox;
mod instructions;
mod login;
mod man;
mod mcp;
mod memory;
mod plugin;
mod policy;
mod print;
mod recall;
mod reference;
mod secrets;
mod send;
mod session;
mod simulate;
mod stats;
mod team;
mod trust;

use std::io::IsTerminal;

use clap::{Parser, Subcommand};

use crate::args::{InputFormat, RunArgs};
use crate::exit::{self, Code};
use crate::telemetry::Telemetry;
use crate::{env, repl};

/// Memory and context for AI agents, in plain files.
///
/// Runs an agent session on an append-only log: everything said, done and decided is kept, and what the model sees is
/// computed from it. Sessions are kept where Claude Code keeps its own, and each program can show the other's.
#[derive(Debug, Parser)]
#[command(name = "cairn", version, after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}\n{}", env::help(), exit::help()), args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Shown after the help, and in the manual page.
pub(crate) const EXAMPLES: &str = "\
Examples:
  cairn demo                                   see it work, without a key
  cairn                                        a session in the terminal
  cairn -p 'why does the build fail?'          one turn, answer on stdout
  git diff | cairn -p 'review this'            text from a pipe is added to the prompt
  cairn -p 'and the tests?' --continue         continue where you left off
  cairn -p 'fix it' --permission-mode acceptEdits --allowedTools 'Bash(cargo *)'
  cairn session list                           the sessions of this project
  cairn session view FILE                      the request that would be sent
  cairn recall 'how do we deploy?'             what it remembers about that
  cairn stats                                  what sessions used, cost and saved
  cairn audit                                  what all your sessions cost, and would have cost";

/// Commands other than running a session. Their help is in their own files.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArgs),
    Session(session::SessionArgs),
    Memory(memory::MemoryArgs),
    Dream(dream::DreamArgs),
    Team(team::TeamArgs),
    Recall(recall::RecallArgs),
    Send(send::SendArgs),
    Inbox(inbox::InboxArgs),
    Hooks(hooks::HooksArgs),
    Instructions(instructions::InstructionsArgs),
    Secrets(secrets::SecretsArgs),
    Policy(policy::PolicyArgs),
    Stats(stats::StatsArgs),
    Audit(audit::AuditArgs),
    Config(config::ConfigArgs),
    Trust(trust::TrustArgs),
    Mcp(mcp::McpArgs),
    Agents(agents::AgentsArgs),
    Plugin(plugin::PluginArgs),
    Login(login::LoginArgs),
    Simulate(simulate::SimulateArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
}

/// Runs the command of the command line.
pub(crate) async fn run(args: Args) -> anyhow::Result<Code> {
    match args.command {
        Some(Command::Demo(args)) => demo::run(&args).await,
        Some(Command::Memory(args)) => memory::run(&args),
        Some(Command::Dream(args)) => dream::run(&args).await,
        Some(Command::Recall(args)) => recall::run(&args),
        Some(Command::Send(args)) => send::run(&args).await,
        Some(Command::Inbox(args)) => inbox::run(&args),
        Some(Command::Secrets(args)) => secrets::run(&args),
        Some(Command::Policy(args)) => policy::run(&args),
        Some(Command::Hooks(args)) => hooks::run(&args).await,
        Some(Command::Instructions(args)) => instructions::run(&args),
        Some(Command::Session(args)) => session::run(&args),
        Some(Command::Stats(args)) => stats::run(&args),
        Some(Command::Audit(args)) => audit::run(&args),
        Some(Command::Config(args)) => config::run(&args),
        Some(Command::Trust(args)) => trust::run(&args),
        Some(Command::Mcp(args)) => mcp::run(&args).await,
        Some(Command::Plugin(args)) => plugin::run(&args),
        Some(Command::Agents(args)) => agents::run(&args).await,
        Some(Command::Team(args)) => team::run(args).await,
        Some(Command::Login(args)) => login::run(&args),
        Some(Command::Simulate(args)) => simulate::run(&args).await,
        Some(Command::Completions(args)) => completions::run(&args),
        Some(Command::Man(args)) => man::run(&args),
        Some(Command::Reference(args)) => reference::run(&args),
        None => {
            let args = RunArgs { telemetry: Telemetry::from_env(), ..args.run };
            let ended = session_of(&args).await;
            args.telemetry.flush().await;
            ended
        }
    }
}

/// Runs a session, in whichever form.
async fn session_of(args: &RunArgs) -> anyhow::Result<Code> {
    // A pipe on stdin asks once, as with -p; a terminal that cannot be redrawn gets plain lines.
    if args.print || args.input_format == InputFormat::StreamJson {
        print::run(args).await
    } else if repl::terminal_is_capable() && !args.plain {
        repl::run(args).await
    } else if !std::io::stdin().is_terminal() && !args.plain {
        print::run(args).await
    } else {
        repl::plain_session::run(args).await
    }
}
