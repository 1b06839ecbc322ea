//! The binary: arguments, environment, terminal and exit codes. Everything worth a test elsewhere lives elsewhere.

mod agent_sources;
mod args;
mod browser;
mod code_colours;
mod commands;
mod configure;
mod diff_rows;
mod dream_setup;
mod env;
mod error;
mod event_text;
mod exit;
mod instruction_files;
mod memory_setup;
mod memory_shelves;
mod message_socket;
mod messaging;
mod model;
mod notebooks;
mod open_session;
mod out;
mod output;
mod output_style;
mod plugins;
mod price_plot;
mod pricing;
mod program_paths;
mod question_lines;
mod reload;
mod repl;
mod server_host;
mod server_setup;
mod session_kind;
mod session_markdown;
mod setup;
mod shutdown;
mod skill_sources;
mod stored_key;
mod styled_text;
mod system_facts;
mod team_membership;
mod team_memory;
mod teammate_worktree;
#[cfg(feature = "otel")]
mod telemetry;
#[cfg(not(feature = "otel"))]
#[path = "no_telemetry.rs"]
mod telemetry;
mod trust_prompt;
mod trusted_settings;

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
