//! Adding and removing servers: one entry of one file, and nothing else in it.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use mcp::ServerDefinition;
use serde_json::{Map, Value, json};
use settings::servers::PROJECT_FILE;
use settings::{Files, Json};

use crate::exit::Code;
use crate::out::talk;
use crate::program_paths::ProgramPaths;

/// The largest file that is changed.
const FILE_LIMIT: u64 = 1_000_000;
/// The object with the servers.
const SERVERS: &str = "mcpServers";

/// A server to add.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// Add it to the project's `.mcp.json`, for everybody who works on it.
    #[arg(long)]
    project: bool,

    /// A variable for the program, as NAME=VALUE; `${NAME}` in the value stands for one of yours.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// A header for the address, as 'Name: value'.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,

    /// Its name.
    name: String,

    /// An address, or a program with its arguments after `--`.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "URL_OR_PROGRAM")]
    way: Vec<String>,
}

impl AddArgs {
    fn entry(&self) -> anyhow::Result<Value> {
        let pairs = |texts: &[String], between: char, form: &str| {
            let pair = |text: &String| {
                let (name, value) =
                    text.split_once(between).with_context(|| format!("{text} should have the form {form}"))?;
                Ok((name.trim().to_owned(), json!(value.trim())))
            };
            texts.iter().map(pair).collect::<anyhow::Result<Map<String, Value>>>()
        };
        let (env, headers) = (pairs(&self.env, '=', "NAME=VALUE")?, pairs(&self.header, ':', "'Name: value'")?);
        let (first, rest) = self.way.split_first().context("name a program or an address")?;
        let is_address = first.starts_with("http://") || first.starts_with("https://");
        let mut entry = match is_address {
            true => json!({"type": "http", "url": first}),
            false => json!({"command": first, "args": rest}),
        };
        if is_address {
            anyhow::ensure!(env.is_empty(), "--env is for programs; an address takes --header");
            anyhow::ensure!(rest.is_empty(), "an address takes no arguments: {}", rest.join(" "));
        } else {
            anyhow::ensure!(headers.is_empty(), "--header is for addresses; a program takes --env");
        }
        if !env.is_empty() {
            entry["env"] = Value::Object(env);
        }
        if !headers.is_empty() {
            entry["headers"] = Value::Object(headers);
        }
        ServerDefinition::from_json(&entry)?;
        Ok(entry)
    }
}

/// Adds a server.
pub(super) fn add(place: &ProgramPaths, args: &AddArgs) -> anyhow::Result<Code> {
    let entry = args.entry()?;
    let checked = mcp::ServerDefinitions::from_json(&Value::from_iter([(args.name.clone(), entry.clone())]));
    if let Some(finding) = checked.findings.first() {
        anyhow::bail!("{finding}");
    }
    let path = change(place, args.project, |json| {
        let flag = if args.project { " --project" } else { "" };
        let is_there = json.without(&[SERVERS, &args.name]).is_some();
        anyhow::ensure!(!is_there, "{0} is there already; `cairn mcp remove{flag} {0}` removes it", args.name);
        Ok(Some(json.with(&[SERVERS, &args.name], &entry)?))
    })?;
    talk!("{} is in {}. `cairn mcp check {}` shows what it offers.", args.name, place.short(&path), args.name);
    Ok(Code::Success)
}

/// Removes a server.
pub(super) fn remove(place: &ProgramPaths, name: &str, project: bool) -> anyhow::Result<Code> {
    let mut found = false;
    let path = change(place, project, |json| {
        let text = json.without(&[SERVERS, name]);
        found = text.is_some();
        Ok(text)
    })?;
    if found {
        talk!("{name} is no longer in {}.", place.short(&path));
        return Ok(Code::Success);
    }
    talk!("{name} was not in {}.", place.short(&path));
    if let Ok(server) = super::named(place, name) {
        talk!("It is defined in {}.", server.place);
    }
    Ok(Code::Failure)
}

/// Changes the file; without a text it stays as it is.
fn change(
    place: &ProgramPaths,
    project: bool,
    edit: impl FnOnce(&Json) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<PathBuf> {
    let path = match project {
        true => place.directory.join(PROJECT_FILE),
        false => Files::usual(place.home.path(), &place.directory).user,
    };
    let bytes = match files::read(&path, FILE_LIMIT) {
        Ok(file) => file.bytes,
        Err(files::Error::NotFound { .. }) => b"{}\n".to_vec(),
        Err(error) => return Err(error.into()),
    };
    let json = Json::parse(&bytes)
        .map_err(|bad| anyhow::anyhow!("{}:{}:{}: {}", path.display(), bad.line, bad.column, bad.why))?;
    if let Some(text) = edit(&json)? {
        files::replace(&path, text.as_bytes())?;
    }
    Ok(path)
}
