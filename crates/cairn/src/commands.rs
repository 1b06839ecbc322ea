//! One file a command.

pub(crate) mod demo;
pub(crate) mod print;
pub(crate) mod session;
pub(crate) mod simulate;

use crate::args::{Args, Command};
use crate::exit::Code;

/// Does what the command line says.
pub(crate) async fn run(args: Args) -> anyhow::Result<Code> {
    match args.command {
        Some(Command::Demo(args)) => demo::run(&args).await,
        Some(Command::Session(args)) => session::run(&args),
        Some(Command::Simulate(args)) => simulate::run(&args).await,
        None => print::run(&args.run).await,
    }
}
