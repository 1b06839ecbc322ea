//! `cairn reference`: generates the pages of `docs/` that are made from the code. A test compares them with those in
//! the repository.

use std::fmt::Write;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory};
use settings::keys::{EntryForm, Field, KEYS, Kind, SettingGroup, SettingKey, schema};

use crate::commands::Args;
use crate::env;
use crate::exit::{self, Code};
use crate::out::data;
use crate::repl::slash;

/// Write the reference: commands, settings, environment.
#[derive(Debug, clap::Args)]
pub(crate) struct ReferenceArgs {
    /// Directory to write to.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Writes the pages.
pub(crate) fn run(args: &ReferenceArgs) -> anyhow::Result<Code> {
    let dir = env::directory()?.join(&args.dir);
    let schema = format!("{}\n", serde_json::to_string_pretty(&schema())?);
    let pages = [
        ("cli.md", cli()),
        ("settings.md", settings()),
        ("settings-tuning.md", tuning()),
        ("environment.md", environment()),
        ("settings.schema.json", schema),
    ];
    for (name, text) in pages {
        let file = dir.join(name);
        files::replace(&file, text.as_bytes())?;
        data!("{}", file.display())?;
    }
    Ok(Code::Success)
}

const MADE: &str = "<!-- Made from the code: UPDATE_DOCS=1 cargo nextest run -p cairn docs -->\n";

/// Commands, flags, exit codes, slash commands and keys.
fn cli() -> String {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let mut page = format!("# Commands\n\n{MADE}\n");
    section(&mut page, &command, 2);
    page.push_str("## In a session\n\n| command | what it does |\n|---|---|\n");
    for slash::SlashCommand { name, argument, about } in slash::COMMANDS {
        row(&mut page, format!("/{name} {argument}").trim(), about);
    }
    page.push_str("\n| key | what it does |\n|---|---|\n");
    slash::KEYS.iter().for_each(|(key, about)| row(&mut page, key, about));
    page.push_str("\n## Exit codes\n\n| code | what happened |\n|---|---|\n");
    exit::ALL.iter().for_each(|(code, about)| row(&mut page, &(*code as u8).to_string(), about));
    page
}

fn section(page: &mut String, command: &Command, depth: usize) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let _ = write!(page, "{} `{name}`\n\n{about}\n\n```text\n{usage}\n```\n\n", "#".repeat(depth));
    let inner: Vec<&Command> = command.get_subcommands().filter(|inner| !inner.is_hide_set()).collect();
    if !inner.is_empty() {
        page.push_str("| command | what it does |\n|---|---|\n");
        for inner in &inner {
            row(page, inner.get_name(), &inner.get_about().map(ToString::to_string).unwrap_or_default());
        }
        page.push('\n');
    }
    // Every command has these two.
    let own = |argument: &&Arg| !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str());
    let arguments: Vec<&Arg> = command.get_arguments().filter(own).collect();
    if !arguments.is_empty() {
        page.push_str("| argument | what it is |\n|---|---|\n");
        arguments.iter().for_each(|argument| row(page, &spelled(argument), &about_argument(argument)));
        page.push('\n');
    }
    if let Some(after) = command.get_after_help().map(ToString::to_string) {
        match after.strip_prefix("Examples:\n") {
            Some(examples) => {
                let examples: Vec<&str> = examples.lines().map(str::trim).collect();
                let _ = write!(page, "```sh\n{}\n```\n\n", commented(&examples));
            }
            None => page.push_str(&format!("{after}\n\n")),
        }
    }
    inner.iter().for_each(|inner| section(page, inner, depth + 1));
}

/// Examples, with their explanations as comments.
fn commented(examples: &[&str]) -> String {
    let split = |line: &&str| match line.split_once("  ") {
        Some((command, about)) => format!("{command:<44} # {}", about.trim()),
        None => (*line).to_owned(),
    };
    examples.iter().map(split).collect::<Vec<_>>().join("\n")
}

/// An argument as it is typed.
fn spelled(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>();
    let value = if argument.get_action().takes_values() { format!(" {}", names.join(" ")) } else { String::new() };
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let aliases = argument.get_visible_aliases().unwrap_or_default().into_iter().map(|alias| format!("--{alias}"));
    let flags: Vec<String> = short.into_iter().chain(long).chain(aliases).collect();
    format!("{}{value}", flags.join(", ")).trim().to_owned()
}

fn about_argument(argument: &Arg) -> String {
    let mut about = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let shown: Vec<PossibleValue> = argument.get_possible_values().into_iter().filter(|v| !v.is_hide_set()).collect();
    let value = |value: &PossibleValue| match value.get_help() {
        Some(help) => format!("`{}`: {help}", value.get_name()),
        None => format!("`{}`", value.get_name()),
    };
    if argument.get_action().takes_values() && !shown.is_empty() {
        about = format!("{about}<br>{}", shown.iter().map(value).collect::<Vec<_>>().join("<br>"));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        about = format!("{about}<br>Default: {}", defaults.join(", "));
    }
    about
}

/// The settings that people need, section by section.
fn settings() -> String {
    let mut page = format!("# Settings\n\n{MADE}\n{}\n", include_str!("reference/settings.md"));
    for group in SettingGroup::MAIN {
        let _ = writeln!(page, "## {}\n", group.title());
        keys(&mut page, group);
    }
    page.push_str("## Entries\n");
    for key in KEYS {
        if let Kind::Entries(entry) | Kind::List(entry) = key.kind {
            let _ = write!(page, "\n### An entry of `{}`\n\n", key.name);
            fields(&mut page, &entry);
        }
    }
    if let Some(SettingKey { kind: Kind::Hooks(entry), .. }) =
        KEYS.iter().find(|key| matches!(key.kind, Kind::Hooks(_)))
    {
        page.push_str("\n### A hook\n\n");
        fields(&mut page, entry);
    }
    page
}

/// The settings that few people change.
fn tuning() -> String {
    let mut page = format!("# Settings for tuning\n\n{MADE}\n{}\n", include_str!("reference/tuning.md"));
    keys(&mut page, SettingGroup::Tuning);
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// The table of a group's keys.
fn keys(page: &mut String, of: SettingGroup) {
    page.push_str("| key | value | what it does | whose files |\n|---|---|---|---|\n");
    for SettingKey { name, older, kind, reach, about, .. } in KEYS.iter().filter(|key| key.group == of) {
        let older = older.map(|older| format!(", before `{older}`")).unwrap_or_default();
        let (value, about) = (cell(&value(kind)), cell(about));
        let _ = writeln!(page, "| `{name}`{older} | {value} | {about} | {} |", reach.words());
    }
    page.push('\n');
}

fn fields(page: &mut String, EntryForm { keys, required }: &EntryForm) {
    page.push_str("| key | value | what it does |\n|---|---|---|\n");
    for Field { name, kind, about } in *keys {
        let _ = writeln!(page, "| `{name}` | {} | {} |", cell(&value(kind)), cell(about));
    }
    let required: Vec<String> = required.iter().map(|name| format!("`{name}`")).collect();
    let _ = write!(page, "\nRequired: {}.\n", required.join(", "));
}

/// Type of a value, in words.
fn value(kind: &Kind) -> String {
    match kind {
        Kind::Entry(_) => "an object".to_owned(),
        Kind::Entries(_) => "an object of entries by name".to_owned(),
        Kind::List(_) => "a list of entries".to_owned(),
        Kind::Variables => "an object of strings by name".to_owned(),
        Kind::Counts => "an object of whole numbers by name".to_owned(),
        Kind::OneOf(values) => values.iter().map(|value| format!("`\"{value}\"`")).collect::<Vec<_>>().join(", "),
        kind => kind.words(),
    }
}

fn environment() -> String {
    let mut page =
        format!("# Environment\n\n{MADE}\nThe variables that Cairn reads. An empty one counts as unset.\n\n");
    page.push_str("| variable | what it does |\n|---|---|\n");
    env::ALL.iter().for_each(|variable| row(&mut page, variable.name, variable.about));
    page.push_str("\nThe API key of a server in the settings is read from the variable that its `keyEnv` names.\n");
    page.push_str("\n## Files\n\n| file | what is in it |\n|---|---|\n");
    env::FILES.iter().for_each(|(file, about)| row(&mut page, file, about));
    page
}

/// A table row: a word of code and its description.
fn row(page: &mut String, typed: &str, about: &str) {
    let _ = writeln!(page, "| `{}` | {} |", cell(typed), cell(about));
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace("\n\n", "<br>").replace('\n', " ")
}
