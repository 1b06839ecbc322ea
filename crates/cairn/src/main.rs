//! The binary: arguments, environment, terminal and exit codes. Everything worth a test elsewhere lives elsewhere.

mod agents;
mod args;
mod asking;
mod closing;
mod commands;
mod configure;
mod dreaming;
mod env;
mod error;
mod exit;
mod instructions;
mod judgement;
mod knowledge;
mod listening;
mod mailing;
mod manner;
mod membership;
mod model;
mod opening;
mod out;
mod output;
mod place;
mod price_plot;
mod pricing;
mod question_lines;
mod reload;
mod repl;
mod said;
mod session_markdown;
mod setup;
mod sharing;
mod span;
mod surroundings;
mod teammate_worktree;
#[cfg(feature = "otel")]
mod telemetry;
#[cfg(not(feature = "otel"))]
#[path = "no_telemetry.rs"]
mod telemetry;
mod told;
mod whose;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything is read or started: a guard is to cost nothing.
    if std::env::args_os().nth(1).is_some_and(|first| first == tools::guard::ARGUMENT) {
        return tools::guard::main();
    }
    // Our variables and our memory hold keys: no command may look into them (`/proc/PID/environ`).
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let args = match commands::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            if error.use_stderr() {
                // It repeats arguments, which may be anybody's text.
                out::talk_text(error.render().to_string().trim_end());
                return exit::Code::Usage.into();
            }
            let _ = error.print(); // help and version go to stdout and are no failure
            return exit::Code::Success.into();
        }
    };
    let result = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(commands::run(args)));
    match result {
        Ok(code) => code.into(),
        Err(error) if out::reader_has_gone(&error) => exit::Code::Success.into(),
        Err(error) => {
            error::print(&error);
            exit::Code::of(&error).into()
        }
    }
}
