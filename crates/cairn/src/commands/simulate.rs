//! `cairn simulate`: the scripted Messages API, for trying things out and for tests of other programs.

use std::path::PathBuf;

use simulator::{Clock, Options, Script, Simulator};

use crate::exit::Code;
use crate::out::{data, talk};

/// The largest script that is read.
const SCRIPT_LIMIT: u64 = 10_000_000;

/// Serve a scripted Messages API on loopback.
///
/// The script is TOML: rules that look at what is visible in a request and say what the model answers. It prints its
/// address, and on Ctrl-C a report: what each request read from and wrote to the cache, and what broke the prefix. The
/// same report is at GET /report while it runs.
#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// The script.
    #[arg(long, value_name = "FILE")]
    script: PathBuf,
    /// The port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0, value_name = "N")]
    port: u16,
    /// A window for every model, in tokens.
    #[arg(long, value_name = "TOKENS")]
    window: Option<u64>,
}

/// Serves until interrupted.
pub(crate) async fn run(args: &SimulateArgs) -> anyhow::Result<Code> {
    let bytes = files::read(std::path::absolute(&args.script)?, SCRIPT_LIMIT)?.bytes;
    let script = Script::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|error| anyhow::anyhow!("{}: {error}", args.script.display()))?;
    let options = Options { port: args.port, window: args.window, clock: Clock::Real, ..Options::default() };
    if !cfg!(feature = "schemas") {
        talk!("JSON schemas are not checked: this build does not include the feature schemas");
    }
    let simulator = Simulator::start(script, options).await?;
    data!("listening on {}", simulator.url())?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    data!("{}", serde_json::to_string_pretty(&simulator.report())?)?;
    simulator.shutdown().await;
    Ok(Code::Success)
}
