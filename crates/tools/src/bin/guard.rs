//! The guard as a program of its own, for those who embed the engine and have no binary that can be one.

use std::process::ExitCode;

fn main() -> ExitCode {
    tools::guard::main()
}
