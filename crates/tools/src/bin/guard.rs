//! The guard as a program of its own, for embedding programs whose own binary cannot be one.

use std::process::ExitCode;

fn main() -> ExitCode {
    tools::guard::main()
}
