//! One file a command.

pub(crate) mod agents;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod dream;
pub(crate) mod hooks;
pub(crate) mod inbox;
pub(crate) mod instructions;
pub(crate) mod man;
pub(crate) mod memory;
pub(crate) mod policy;
pub(crate) mod print;
pub(crate) mod recall;
pub(crate) mod reference;
pub(crate) mod secrets;
pub(crate) mod send;
pub(crate) mod session;
pub(crate) mod simulate;
pub(crate) mod stats;
pub(crate) mod team;
pub(crate) mod trust;

use crate::args::{Args, Command, InputFormat, RunArgs};
use crate::exit::Code;
use crate::repl;
use crate::telemetry::Telemetry;
use std::io::IsTerminal;

/// Does what the command line says.
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
        Some(Command::Config(args)) => config::run(&args),
        Some(Command::Trust(args)) => trust::run(&args),
        Some(Command::Agents(args)) => agents::run(&args).await,
        Some(Command::Team(args)) => team::run(args).await,
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
        repl::plain::run(args).await
    }
}
