//! Commands that change how the session is set up: its model, effort, thinking and directories; and those that hand the model
//! a task, or a reply to the clipboard.
//!
//! A session that is set up otherwise is opened anew with other arguments. Nothing here is written to a settings file.

use std::io::Write;

use base64::Engine;
use settings::{SetValue, ValueStatus};
use transcript::block::Kind;
use transcript::{Effort, Role, models};

use super::conversation::Conversation;
use super::picker::PickerEntry;
use super::resume_and_rewind::ListPurpose;
use crate::args::{RunArgs, ThinkingWish};
use crate::styled_text::{Colours, TextStyle};
use crate::trusted_settings::RunTrust;
use crate::{env, out, trusted_settings};

/// Short names of models that `/model` offers.
const MODELS: [(&str, &str); 3] =
    [("opus", "for the hardest work"), ("sonnet", "for most work"), ("haiku", "quick and cheap")];
/// Default subject of `/review`.
const UNCOMMITTED: &str = "what is not committed yet (`git status`, `git diff HEAD`, new files); if there is nothing, the \
                           commits of this branch that are not on the main branch";
/// Programs that the session runs.
const PROGRAMS: [&str; 2] = ["bash", "git"];
/// The largest text that terminals take for the clipboard, in bytes.
const CLIPBOARD: usize = 74_994;

/// Lets the model write the project's instruction file.
pub(super) fn init(talk: &mut Conversation) {
    talk.requests.saying = Some(include_str!("prompts/init.md").trim().to_owned());
}

/// Lets the model review changes.
pub(super) fn review(talk: &mut Conversation, what: &str) {
    talk.requests.saying = Some(review_prompt(what));
}

fn review_prompt(what: &str) -> String {
    let what = if what.is_empty() { UNCOMMITTED } else { what };
    include_str!("prompts/review.md").trim().replace("{{what}}", what)
}

/// Offers the models there are.
pub(super) fn choose_model(talk: &mut Conversation) {
    let now = talk.session.status.model.clone();
    let mut names: Vec<(String, String)> = MODELS
        .iter()
        .filter_map(|(short, about)| Some(((*short).to_owned(), format!("{}, {about}", models::newest_of(short)?))))
        .collect();
    names.extend(talk.session.providers.iter().map(|name| (name.clone(), "from your settings".to_owned())));
    let is_now = |name: &str| name == now || models::newest_of(name) == Some(now.as_str());
    let entry = |(name, about): &(String, String)| {
        let mark = if is_now(name) { " (in use)" } else { "" };
        PickerEntry { label: name.clone(), about: format!("{about}{mark}") }
    };
    let list = names.iter().map(entry).collect();
    let title = format!("Which model? It is {now}; /model NAME takes any other");
    talk.requests.choose(&title, list, ListPurpose::Model(names.into_iter().map(|(name, _)| name).collect()));
}

/// Why a model of this name cannot be talked to, where that is known before it is tried.
pub(super) fn unknown_model(talk: &Conversation, name: &str) -> Option<String> {
    let first = name.split('/').next().unwrap_or(name);
    let plain = name.strip_suffix("[1m]").unwrap_or(name);
    let is_known = models::newest_of(plain).is_some()
        || plain == "default"
        || plain.starts_with("claude-")
        || talk.session.providers.iter().any(|known| known == first);
    let is_anthropic = models::is_claude(&talk.session.status.model);
    (is_anthropic && !is_known).then(|| format!("there is no model {name:?}; /model shows those there are"))
}

/// Shows the effort, or opens the session with another.
pub(super) async fn effort(talk: &mut Conversation, level: &str) -> anyhow::Result<()> {
    let names = Effort::ALL.map(Effort::name).join(", ");
    if level.is_empty() {
        let now = talk.args.effort.map_or("the model's usual one", Effort::name);
        let levels = Effort::ALL.map(|level| (level.name(), if level.name() == now { "in use" } else { "" }));
        talk.requests.choose_command(&format!("Which effort? It is {now}"), "effort", &levels);
        return Ok(());
    }
    let Some(effort) = Effort::ALL.into_iter().find(|one| one.name() == level) else {
        talk.view.hint = Some(format!("levels of effort: {names}"));
        return Ok(());
    };
    if reopen(talk, |args| args.effort = Some(effort)).await? {
        talk.view.page.note(&format!("the effort is {level}"), TextStyle::PLAIN);
    }
    Ok(())
}

/// Says whether the model thinks before it answers, or switches it.
pub(super) async fn think(talk: &mut Conversation, wish: &str) -> anyhow::Result<()> {
    let wish = match wish {
        "on" => ThinkingWish::On,
        "off" => ThinkingWish::Off,
        "" => {
            let now = if talk.thinks { "on" } else { "off" };
            let text = format!("thinking is {now}; /think on|off (Alt-T) changes it, Ctrl-O shows what was thought");
            talk.view.page.note(&text, TextStyle::PLAIN);
            return Ok(());
        }
        _ => {
            talk.view.hint = Some("/think on, or /think off".into());
            return Ok(());
        }
    };
    if reopen(talk, |args| args.thinking = Some(wish)).await? {
        talk.thinks = wish == ThinkingWish::On;
        talk.view.page.note(&format!("thinking is {}", if talk.thinks { "on" } else { "off" }), TextStyle::PLAIN);
    }
    Ok(())
}

/// Adds a directory to work in.
pub(super) async fn add_directory(talk: &mut Conversation, name: &str) -> anyhow::Result<()> {
    if name.is_empty() {
        let all: Vec<String> = talk.session.scope.directories().iter().map(|path| talk.place.short(path)).collect();
        talk.view.page.note(&format!("working directories: {}", all.join(", ")), TextStyle::PLAIN);
        return Ok(());
    }
    let path = talk.session.scope.absolute(name);
    if !path.is_dir() {
        talk.view.hint = Some(format!("{} is not a directory", talk.place.short(&path)));
        return Ok(());
    }
    let added = path.clone();
    if reopen(talk, move |args| args.add_dir.push(added)).await? {
        talk.view.page.note(&format!("{} is a working directory now", talk.place.short(&path)), TextStyle::PLAIN);
    }
    Ok(())
}

/// Hands the newest reply to the terminal's clipboard.
pub(super) fn copy(talk: &mut Conversation) {
    let Some(agent) = &talk.session.agent else { return };
    let log = agent.session().log();
    let view = log.view();
    let texts: Vec<(usize, String)> = view
        .blocks()
        .filter(|(_, role, block)| *role == Role::Assistant && *block.kind() == Kind::Text)
        .filter_map(|(item, _, block)| Some((item, block.as_text()?)))
        .collect();
    let Some(newest) = texts.last().map(|(item, _)| *item) else {
        talk.view.hint = Some("there is no reply to copy yet".into());
        return;
    };
    let text =
        texts.iter().filter(|(item, _)| *item == newest).map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
    let encoded = base64::engine::general_purpose::STANDARD.encode(&text);
    if encoded.len() > CLIPBOARD {
        talk.view.hint = Some("the reply is too long for the terminal's clipboard; /export writes it to a file".into());
        return;
    }
    let mut out = out::stdout();
    let sent = write!(out, "\x1b]52;c;{encoded}\x07").and_then(|()| out.flush());
    let said = if sent.is_ok() { "copied, if the terminal lets programs do that" } else { "the terminal is gone" };
    talk.view.hint = Some(format!("{} characters {said}", text.chars().count()));
}

/// Shows the settings that count, and where each is.
pub(super) fn show_config(talk: &mut Conversation) -> anyhow::Result<()> {
    let settings = trusted_settings::judge(&talk.place, talk.args.settings.as_deref(), RunTrust::No)?.settings;
    let counting = settings.sets.iter().filter(|set| set.standing == ValueStatus::Counts);
    let row = |set: &SetValue| (set.name(), format!("{}  ({} {})", set.value, set.origin.source.name(), set.origin));
    let rows: Vec<(String, String)> = counting.map(row).collect();
    if rows.is_empty() {
        talk.view.page.note("no settings are set; `cairn config set --user KEY VALUE` sets one", TextStyle::PLAIN);
        return Ok(());
    }
    talk.view.table(&rows, TextStyle::BOLD);
    for warning in settings.warnings() {
        talk.view.page.warning(&warning);
    }
    Ok(())
}

/// Shows the state of this session, and what is wrong with it.
pub(super) fn doctor(talk: &mut Conversation) {
    let colours = if out::colours(&out::stdout()) != Colours::Off { "colours" } else { "no colours" };
    let (columns, lines) = super::terminal::size();
    let terminal = env::TERM.get().unwrap_or_else(|| "unknown".to_owned());
    let directory = talk.session.scope.directory();
    let branch = session::home::git_branch(&directory);
    let repository = if branch.is_empty() { "no git repository".to_owned() } else { format!("branch {branch}") };
    let memory = talk.session.memory.as_ref().map_or_else(|| "off".to_owned(), |folder| talk.place.short(folder));
    let settings = trusted_settings::judge(&talk.place, talk.args.settings.as_deref(), RunTrust::No);
    let (settings, warnings) = match settings {
        Ok(judged) => (format!("{} that count", judged.settings.sets.len()), judged.settings.warnings()),
        Err(error) => ("cannot be read".to_owned(), vec![format!("{error:#}")]),
    };
    let rows = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("terminal", format!("{terminal}, {columns}×{lines}, {colours}")),
        ("model", format!("{}, {} tokens", talk.session.status.model, talk.session.status.window.size)),
        ("directory", format!("{}, {repository}", talk.place.short(&directory))),
        ("found", talk.session.found().join(", ")),
        ("memory", memory),
        ("session", talk.place.short(&talk.session.file())),
        ("settings", settings),
        ("programs", PROGRAMS.iter().map(|name| program(name)).collect::<Vec<_>>().join(", ")),
    ];
    let rows: Vec<_> =
        rows.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name.to_owned(), text)).collect();
    talk.view.table(&rows, TextStyle::BOLD);
    for warning in warnings {
        talk.view.page.warning(&warning);
    }
}

/// A program, and whether it is there.
fn program(name: &str) -> String {
    let paths = env::named("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&paths).any(|folder| folder.join(name).is_file());
    if is_there { name.to_owned() } else { format!("{name} is missing") }
}

/// Opens the session with other arguments.
async fn reopen(talk: &mut Conversation, change: impl FnOnce(&mut RunArgs)) -> anyhow::Result<bool> {
    let session = talk.session.status.session.clone();
    talk.reopen(|args| {
        change(args);
        (args.resume, args.continue_, args.session_id) = (Some(session), false, None);
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompts_are_rendered() {
        assert!(review_prompt("").starts_with("Review what is not committed yet (`git status`"));
        assert!(review_prompt("pull request 7").starts_with("Review pull request 7. Read"));
        assert!(!review_prompt("x").contains("{{") && include_str!("prompts/init.md").contains("AGENTS.md"));
    }
}
