//! `cairn config`: what the settings say, where each value comes from, and changing one.

mod change;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use settings::keys::ValuePart;
use settings::{LoadedSettings, SetValue, Settings, SettingsFinding, ValueStatus, Weight};

use crate::exit::Code;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{Span, cyan, dim, red};
use crate::trusted_settings::{self, RunTrust};

/// Show, check and change settings.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

const EXAMPLES: &str = "\
Examples:
  cairn config show                            the effective values
  cairn config show --origin                   every value, its file and line, and why it has no effect
  cairn config check                           typing errors, and keys that are Claude Code's alone
  cairn config set model opus --user
  cairn config set permissions.allow '[\"Bash(cargo test:*)\"]' --local
  cairn config set env.RUST_LOG debug --user   an entry of an object
  cairn config unset model --user";

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the settings in force.
    Show {
        /// Also print where each value is set, and values without effect.
        #[arg(long)]
        origin: bool,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Check the files for values that are broken, mistyped or have no effect. Exit code 1 if something is broken.
    Check {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Set a key. The rest of the file stays as it is, byte for byte.
    Set {
        /// The key; a dot leads into an object, as in permissions.allow or env.NAME.
        key: String,
        /// Its value, as JSON; text may go without quotes.
        value: String,
        #[command(flatten)]
        file: TargetFile,
    },
    /// Remove a key from a file.
    Unset {
        /// The key.
        key: String,
        #[command(flatten)]
        file: TargetFile,
    },
}

/// The file to change.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TargetFile {
    /// Your own settings, for every project.
    #[arg(long)]
    user: bool,
    /// Your settings for this project: .claude/settings.local.json.
    #[arg(long)]
    local: bool,
}

/// Shows, checks or changes.
pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    match &args.command {
        ConfigCommand::Show { origin, json } => show(&place, *origin, *json),
        ConfigCommand::Check { json } => check(&place, *json),
        ConfigCommand::Set { key, value, file } => change::set(&place, key, value, file.local),
        ConfigCommand::Unset { key, file } => change::unset(&place, key, file.local),
    }
}

fn show(place: &ProgramPaths, origin: bool, as_json: bool) -> anyhow::Result<Code> {
    let settings = trusted_settings::judge(place, None, RunTrust::No)?.settings;
    let shown = settings.sets.iter().filter(|set| origin || set.standing == ValueStatus::Counts);
    let mut shown: Vec<&SetValue> = shown.collect();
    let order = |set: &SetValue| settings::keys::KEYS.iter().position(|key| key.name == set.key.name);
    shown.sort_by_key(|set| order(set));
    if as_json {
        data!("{}", shown.into_iter().map(|set| value_json(set, origin)).collect::<Value>())?;
        return Ok(Code::Success);
    }
    if shown.is_empty() {
        talk!("No settings are set.");
    }
    for set in shown {
        let mut row = vec![Span::from(set.name()), Span::from(" = "), Span::from(set.value.to_string())];
        if origin {
            row.push(dim(&format!("  {} {}", set.origin.source.name(), set.origin)));
            row.extend(status_text(set.standing).map(|why| cyan(&format!("  {why}"))));
        }
        crate::out::data_row(&row)?;
    }
    Ok(Code::Success)
}

/// Why a value does not count.
fn status_text(standing: ValueStatus) -> Option<String> {
    match standing {
        ValueStatus::Counts => None,
        ValueStatus::Overridden => Some("overridden".to_owned()),
        ValueStatus::Untrusted => Some("not trusted".to_owned()),
        ValueStatus::Never(why) => Some(format!("never from there: {why}")),
    }
}

fn value_json(set: &SetValue, origin: bool) -> Value {
    let mut shown = json!({"key": set.key.name, "value": set.value});
    if let ValuePart::Entry(name) = &set.part {
        shown["entry"] = name.as_str().into();
    }
    if origin {
        let at = &set.origin;
        shown["origin"] = json!({"source": at.source.name(), "file": at.file, "line": at.line, "column": at.column});
        shown["counts"] = (set.standing == ValueStatus::Counts).into();
        shown["why"] = status_text(set.standing).into();
    }
    shown
}

fn check(place: &ProgramPaths, as_json: bool) -> anyhow::Result<Code> {
    // As if all were trusted: a rule that cannot be understood is one in any directory.
    let loaded = LoadedSettings::read(&place.settings_files(None)?);
    let settings = Settings::of(&loaded, &place.base_paths(), &|_| true);
    let mut findings = settings.findings;
    findings.sort_by(|one, other| (&one.file, one.line, one.column).cmp(&(&other.file, other.line, other.column)));
    if as_json {
        data!("{}", findings.iter().map(finding_json).collect::<Value>())?;
    } else {
        for finding in &findings {
            let name = match finding.weight {
                Weight::Error => red("error:"),
                Weight::Warning => cyan("warning:"),
                Weight::Note => dim("note:"),
            };
            data!([name, " ", finding.to_string()])?;
        }
        let files = loaded.files.len();
        talk!("{files} settings file{} read.", if files == 1 { "" } else { "s" });
    }
    let is_broken = findings.iter().any(|finding| finding.weight == Weight::Error);
    Ok(if is_broken { Code::Failure } else { Code::Success })
}

fn finding_json(finding: &SettingsFinding) -> Value {
    let weight = match finding.weight {
        Weight::Error => "error",
        Weight::Warning => "warning",
        Weight::Note => "note",
    };
    json!({
        "weight": weight, "file": finding.file, "line": finding.line, "column": finding.column, "key": finding.key,
        "text": finding.text,
    })
}
