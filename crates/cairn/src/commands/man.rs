//! `cairn man`: the manual pages, made from the same text as the help.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::commands::{Args, EXAMPLES};
use crate::env;
use crate::exit::{self, Code};
use crate::out::data;

/// Print the manual page, or write the pages of all commands.
#[derive(Debug, clap::Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands into this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

const MAN_EXAMPLES: &str = "\
Examples:
  cairn man | man -l -                             read it now
  cairn man --dir ~/.local/share/man/man1          from then on: man cairn, man cairn-session";

/// Prints or writes the pages.
pub(crate) fn run(args: &ManArgs) -> anyhow::Result<Code> {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    match &args.dir {
        None => data!("{}", String::from_utf8_lossy(&page(&command)?).trim_end())?,
        Some(dir) => write(&command, &env::directory()?.join(dir))?,
    }
    Ok(Code::Success)
}

fn write(command: &Command, dir: &Path) -> anyhow::Result<()> {
    let file = dir.join(format!("{}.1", name(command)));
    files::replace(&file, &page(command)?)?;
    data!("{}", file.display())?;
    command.get_subcommands().filter(|inner| !inner.is_hide_set()).try_for_each(|inner| write(inner, dir))
}

fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// One page. The text after the help has sections of its own here.
fn page(command: &Command) -> anyhow::Result<Vec<u8>> {
    let version = format!("cairn {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(name(command).to_uppercase()).source(version).manual("Cairn");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    if command.get_name() == "cairn" {
        roff.control("SH", ["FILES"]);
        env::FILES.iter().for_each(|(file, about)| item(&mut roff, file, about));
        roff.control("SH", ["ENVIRONMENT"]);
        env::ALL.iter().for_each(|variable| item(&mut roff, variable.name, variable.about));
        roff.control("SH", ["EXIT STATUS"]);
        exit::ALL.iter().for_each(|(code, about)| item(&mut roff, &(*code as u8).to_string(), about));
        literal(&mut roff, EXAMPLES);
    } else if let Some(text) = command.get_after_help() {
        literal(&mut roff, &text.to_string());
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}

fn item(roff: &mut Roff, term: &str, about: &str) {
    roff.control("TP", []).text([bold(term)]).text([roman(about)]);
}

/// Examples line by line as they are; other text as a paragraph.
fn literal(roff: &mut Roff, text: &str) {
    match text.strip_prefix("Examples:\n") {
        Some(examples) => {
            roff.control("SH", ["EXAMPLES"]).control("nf", []);
            for line in examples.lines() {
                roff.text([roman(line.trim())]);
            }
            roff.control("fi", []);
        }
        None => {
            roff.control("SH", ["NOTES"]).text([roman(text)]);
        }
    }
}
