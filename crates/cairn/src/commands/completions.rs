//! `cairn completions`: a script that teaches a shell our commands and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::commands::Args;
use crate::exit::Code;
use crate::out::data;

/// Print a script that completes commands and flags in your shell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  cairn completions bash > ~/.local/share/bash-completion/completions/cairn
  cairn completions zsh > ~/.zfunc/_cairn          with fpath+=~/.zfunc before compinit in ~/.zshrc
  cairn completions fish > ~/.config/fish/completions/cairn.fish
  cairn completions elvish >> ~/.config/elvish/rc.elv
  cairn completions powershell >> $PROFILE";

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<Code> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "cairn", &mut script);
    data!("{}", String::from_utf8_lossy(&script).trim_end())?;
    Ok(Code::Success)
}
