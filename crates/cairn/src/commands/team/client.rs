//! The member's side: joining, keeping in step, looking back.

use std::io::{IsTerminal, Read};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use similar::TextDiff;
use team::RequestTrouble;
use team::protocol::Level;
use team::report::{EarlyEnd, RemoteChange, SyncReport};
use team::sync::Deletions;

use super::JoinArgs;
use crate::event_text::{count, named_diff};
use crate::exit::Code;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{cyan, dim};
use crate::team_membership::{self, Membership};
use crate::{memory_setup, team_memory};

/// An answer of the server's administration has to be there within this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Seconds between two questions to the issuer whether somebody has signed in, if it does not say.
const ASK: u64 = 5;
/// The most refused names that are printed.
const REFUSED_SHOWN: usize = 20;

pub(super) async fn status(json: bool) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let Some(membership) = team_membership::here(&place)? else {
        if json {
            data!("{}", json!({"shared": false}))?;
        } else {
            data!("This repository's team memory is not shared.")?;
            talk!("hint: cairn team join SERVER --invitation CODE");
        }
        return Ok(Code::Success);
    };
    let folder = memory_setup::team_folder(&place)?;
    let mut mirror = membership.mirror(&place, &folder)?;
    let planned = mirror.plan().await;
    if json {
        let plan = planned.as_ref().ok().map(|(plan, found)| {
            json!({"take": plan.take, "remove": plan.remove, "send": plan.send, "delete": plan.delete,
                "conflicts": plan.conflicts, "left": found.left, "held": plan.held, "notTaken": plan.not_taken,
                "notSent": plan.not_sent})
        });
        let error = planned.as_ref().err().map(ToString::to_string);
        let told = json!({"shared": true, "server": membership.server, "repository": membership.repository,
            "folder": folder, "plan": plan, "error": error});
        data!("{told}")?;
        return Ok(if error.is_some() { Code::Unavailable } else { Code::Success });
    }
    data!(["repository  ", cyan(membership.repository.as_str())])?;
    data!("server      {}", membership.server)?;
    data!("folder      {}", folder.display())?;
    let (plan, found) = match planned {
        Ok(planned) => planned,
        Err(error) => {
            talk!("{error}");
            return Ok(code(&error));
        }
    };
    for (what, keys) in
        [("to take", &plan.take), ("to remove", &plan.remove), ("to send", &plan.send), ("to delete", &plan.delete)]
    {
        for key in keys {
            let conflict = if plan.conflicts.contains(key) { " (changed on both sides)" } else { "" };
            data!("{what:<11} {key}{conflict}")?;
        }
    }
    for key in &plan.keep {
        data!("to keep     {key} (the server has lost your text; it goes back into the history)")?;
    }
    for key in &plan.held {
        data!("missing     {key}")?;
    }
    for (name, why) in &found.left {
        data!("not shared  {name}: {why}")?;
    }
    for (what, keys) in [("not taken", &plan.not_taken), ("not sent", &plan.not_sent)] {
        for (key, why) in keys {
            data!("{what:<11} {key}: {why}")?;
        }
    }
    if plan.is_empty() {
        data!("Both sides are the same.")?;
    }
    Ok(Code::Success)
}

pub(super) async fn join(args: &JoinArgs) -> anyhow::Result<()> {
    let place = ProgramPaths::from_env()?;
    let repository = match &args.repo {
        Some(name) => name.parse()?,
        None => team_membership::remote(&place)?,
    };
    let label = place.directory.display().to_string();
    let token = match (&args.token, &args.invitation) {
        (Some(token), _) if token == "-" => from_stdin()?,
        (Some(token), _) => token.clone(),
        (None, Some(invitation)) => {
            let name = args.name.as_deref().context("say who you are: --name NAME")?;
            let body = json!({"invitation": invitation, "name": name, "label": label});
            let joined = ask(&args.server, "", Method::POST, "/api/team/join", Some(body)).await?;
            joined["token"].as_str().context("the server gave no token")?.to_owned()
        }
        (None, None) => sign_in(&args.server, &label).await?,
    };
    let membership = Membership::new(args.server.clone(), repository, token);
    let me = ask(&args.server, &membership.token(), Method::GET, "/api/team/me", None).await?;
    membership.client()?;
    let repository = membership.repository.clone();
    team_membership::change(&place, Some(membership))?;
    let name = me["name"].as_str().unwrap_or_default();
    data!(["shared as ", cyan(name), ": ", cyan(repository.as_str()), " at ", args.server.as_str()])?;
    talk!("Files in {} are sent with `cairn team push`.", memory_setup::team_folder(&place)?.display());
    Ok(())
}

/// Signs in with the organisation's account: the user types a code at the issuer's page.
async fn sign_in(server: &str, label: &str) -> anyhow::Result<String> {
    let issuer = ask(server, "", Method::GET, "/api/team/issuer", None).await?;
    let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned).with_context(|| format!("no {key}"));
    let (client, device, token) = (text(&issuer, "client")?, text(&issuer, "device")?, text(&issuer, "token")?);
    let http = team::client::http().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).build()?;
    let form = [("client_id", client.as_str()), ("scope", "openid email profile")];
    let begun: Value = http.post(&device).form(&form).send().await?.error_for_status()?.json().await?;
    let code = text(&begun, "device_code")?;
    talk!("Open {} and type {}", text(&begun, "verification_uri")?, text(&begun, "user_code")?);
    let mut every = begun["interval"].as_u64().unwrap_or(ASK).max(1);
    let mut left = begun["expires_in"].as_u64().unwrap_or(600) as i64;
    while left > 0 {
        tokio::time::sleep(Duration::from_secs(every)).await;
        left -= every as i64;
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("device_code", code.as_str()),
            ("client_id", client.as_str()),
        ];
        let answer: Value = http.post(&token).form(&form).send().await?.json().await?;
        if let Some(id_token) = answer["id_token"].as_str() {
            let body = json!({"id_token": id_token, "label": label});
            let signed = ask(server, "", Method::POST, "/api/team/sign-in", Some(body)).await?;
            return text(&signed, "token");
        }
        match answer["error"].as_str() {
            Some("authorization_pending") => {}
            Some("slow_down") => every += ASK,
            other => bail!("the issuer refused: {}", other.unwrap_or("it gave no reason")),
        }
    }
    bail!("nobody signed in; begin again")
}

fn from_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        talk!("The token, then Enter and Ctrl-D:");
    }
    std::io::stdin().take(1_000).read_to_string(&mut text)?;
    let token = text.trim().to_owned();
    ensure!(!token.is_empty(), "there was no token on stdin");
    Ok(token)
}

pub(super) fn leave() -> anyhow::Result<()> {
    let place = ProgramPaths::from_env()?;
    match team_membership::change(&place, None)? {
        Some(was) => data!("No longer shared: {} at {}. The files stay.", was.repository, was.server)?,
        None => data!("This repository was not shared.")?,
    }
    Ok(())
}

pub(super) async fn pull(missing: bool) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let mirror = team_membership::required(&place)?.mirror(&place, &memory_setup::team_folder(&place)?)?;
    let mut mirror = if missing { mirror.with_deletions(Deletions::ComeBack) } else { mirror };
    let done = mirror.pull().await;
    print_report(done)
}

pub(super) async fn push(delete: bool) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let mut mirror = team_membership::required(&place)?.mirror(&place, &memory_setup::team_folder(&place)?)?;
    if delete {
        return print_report(mirror.push_all_deletions().await);
    }
    let done = mirror.push().await;
    let held = done.as_ref().map_or(0, |done| done.held.len());
    let code = print_report(done)?;
    if held > 0 && std::io::stdin().is_terminal() && agrees(held)? {
        return print_report(mirror.push_all_deletions().await);
    }
    Ok(code)
}

/// Asks the user whether so many files should be deleted for everyone.
fn agrees(held: usize) -> anyhow::Result<bool> {
    talk!("Delete {held} files for everyone? [y/N]");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn print_report(done: Result<SyncReport, EarlyEnd>) -> anyhow::Result<Code> {
    let done = match done {
        Ok(done) => done,
        Err(error) => {
            let code = code(&error);
            talk!("error: {error}");
            return Ok(code);
        }
    };
    for (what, keys) in
        [("took", &done.taken), ("removed", &done.removed), ("sent", &done.sent), ("deleted", &done.deleted)]
    {
        for key in keys {
            data!("{what:<8} {key}")?;
        }
    }
    for change in &done.changes {
        let RemoteChange { key, before, after, author } = change;
        let [before, after] = [before, after].map(|text| text.as_deref().unwrap_or_default());
        let (here, there) = (format!("here/{key}"), format!("{}/{key}", author.as_deref().unwrap_or("the server")));
        data!("{}", named_diff((&here, before), (&there, after)))?;
    }
    for key in &done.conflicts {
        talk!("{}", team_memory::conflict(&done, key));
    }
    for text in &done.overwritten {
        talk!("{}", team_memory::overwritten_text(text));
    }
    for (name, why) in &done.left {
        talk!("not shared: {name}: {why}");
    }
    for (key, why) in &done.not_sent {
        talk!("not sent: {key}: {why}");
    }
    for (key, why) in &done.not_written {
        talk!("not taken: {key}: {why}");
    }
    if !done.held.is_empty() {
        talk!("{} missing here, and not deleted for others:", count(done.held.len(), "file is", "files are"));
        done.held.iter().take(REFUSED_SHOWN).for_each(|key| talk!("  {key}"));
        talk!("hint: cairn team push --delete deletes them for everyone; cairn team pull --missing brings them back");
    }
    for (name, why) in done.refused.iter().take(REFUSED_SHOWN) {
        talk!("refused what the server sent: {name:?}: {why}");
    }
    if let more @ 1.. = done.refused.len().saturating_sub(REFUSED_SHOWN) {
        talk!("and {more} more");
    }
    if done.taken.is_empty() && done.removed.is_empty() && done.sent.is_empty() && done.deleted.is_empty() {
        let is_alike = done.kept_back().is_empty() && done.held.is_empty();
        data!("{}", if is_alike { "Both sides are the same." } else { "Nothing was received or sent." })?;
    }
    Ok(match (done.limit, done.not_written.is_empty()) {
        (Some(_), _) => Code::Limit,
        (None, false) => Code::Files,
        (None, true) => Code::Success,
    })
}

fn code(error: &EarlyEnd) -> Code {
    match error {
        EarlyEnd::Server(RequestTrouble::Permanent { status: 401 | 403, .. }) => Code::Credentials,
        EarlyEnd::Server(RequestTrouble::Conflict | RequestTrouble::Later { .. }) => Code::Unavailable,
        EarlyEnd::Server(RequestTrouble::TooMany { .. }) => Code::Limit,
        EarlyEnd::Server(RequestTrouble::Permanent { .. } | RequestTrouble::Refused { .. }) => Code::Refused,
        EarlyEnd::Busy { .. } => Code::Unavailable,
        EarlyEnd::Here(_) => Code::Files,
    }
}

pub(super) async fn diff() -> anyhow::Result<()> {
    let place = ProgramPaths::from_env()?;
    let membership = team_membership::required(&place)?;
    let mut mirror = membership.mirror(&place, &memory_setup::team_folder(&place)?)?;
    let (plan, found) = mirror.plan().await?;
    let theirs = match membership.client()?.read(None, 0).await? {
        team::sync_run::ReadResult::Changed(snapshot) => snapshot.content.entries,
        _ => std::collections::BTreeMap::new(),
    };
    for key in plan.take.iter().chain(&plan.keep).chain(&plan.remove).chain(&plan.send).chain(&plan.delete) {
        let there = theirs.get(key).map(String::as_str).unwrap_or_default();
        let here = mirror.text(key, &found).unwrap_or_default();
        let takes = [&plan.take, &plan.keep, &plan.remove].iter().any(|keys| keys.contains(key));
        let (before, after) = if takes { (here.as_str(), there) } else { (there, here.as_str()) };
        let (from, to) = if takes { ("here", "server") } else { ("server", "here") };
        data!("{}", named_diff((&format!("{from}/{key}"), before), (&format!("{to}/{key}"), after)))?;
    }
    if plan.is_empty() {
        talk!("Both sides are the same.");
    }
    Ok(())
}

pub(super) async fn log(key: Option<&str>) -> anyhow::Result<()> {
    let membership = team_membership::required(&ProgramPaths::from_env()?)?;
    let Some(key) = key else {
        let answer = about(&membership, Method::GET, "/api/team/audit", &[]).await?;
        for line in answer["audit"].as_array().into_iter().flatten() {
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            data!([
                dim(&when(&line["at"])),
                "  ",
                cyan(&text("who")),
                format!("  {}  {}", text("action"), text("detail")).as_str()
            ])?;
        }
        return Ok(());
    };
    let answer = about(&membership, Method::GET, "/api/team/history", &[("key", key)]).await?;
    let versions = answer["versions"].as_array().cloned().unwrap_or_default();
    ensure!(!versions.is_empty(), "the server has no {key}");
    for (at, version) in versions.iter().enumerate() {
        let text =
            |version: Option<&Value>| version.and_then(|one| one["text"].as_str()).unwrap_or_default().to_owned();
        let (after, before) = (text(Some(version)), text(versions.get(at + 1)));
        let author = version["author"].as_str().unwrap_or_default();
        let deleted = if version["text"].is_null() { "  deleted" } else { "" };
        let head = format!("version {}", version["version"]);
        data!([cyan(&head), "  ", dim(&when(&version["at"])), format!("  {author}{deleted}").as_str()])?;
        data!("{}", TextDiff::from_lines(&before, &after).unified_diff().to_string().trim_end())?;
    }
    Ok(())
}

fn when(time: &Value) -> String {
    let time = jiff::Timestamp::from_millisecond(time.as_i64().unwrap_or_default()).unwrap_or_default().to_string();
    time.get(..16).unwrap_or(&time).replace('T', " ")
}

pub(super) async fn restore(key: &str, version: u64) -> anyhow::Result<()> {
    let membership = team_membership::required(&ProgramPaths::from_env()?)?;
    let body = json!({"repo": membership.repository, "key": key, "version": version});
    ask(&membership.server, &membership.token(), Method::POST, "/api/team/restore", Some(body)).await?;
    Ok(data!("Version {version} of {key} is the newest again. `cairn team pull` brings it here.")?)
}

pub(super) async fn invite(level: Level, server_admin: bool) -> anyhow::Result<()> {
    let membership = team_membership::required(&ProgramPaths::from_env()?)?;
    let body = match server_admin {
        true => json!({}),
        false => json!({"repo": membership.repository, "level": level}),
    };
    let answer =
        ask(&membership.server, &membership.token(), Method::POST, "/api/team/invitations", Some(body)).await?;
    let invitation = answer["invitation"].as_str().context("the server gave no invitation")?;
    data!("cairn team join {} --invitation {invitation} --name NAME", membership.server)?;
    talk!("It can be used once, within a week.");
    Ok(())
}

pub(super) async fn members() -> anyhow::Result<()> {
    let membership = team_membership::required(&ProgramPaths::from_env()?)?;
    let answer = about(&membership, Method::GET, "/api/team/rights", &[]).await?;
    for right in answer["rights"].as_array().into_iter().flatten() {
        let text = |key: &str| right[key].as_str().unwrap_or_default().to_owned();
        data!("{:<6} {}", text("level"), text("member"))?;
    }
    Ok(())
}

pub(super) async fn grant(member: &str, level: &str) -> anyhow::Result<()> {
    let membership = team_membership::required(&ProgramPaths::from_env()?)?;
    let level: Option<Level> = if level == "none" { None } else { Some(level.parse()?) };
    let body = json!({"repo": membership.repository, "member": member, "level": level});
    ask(&membership.server, &membership.token(), Method::PUT, "/api/team/rights", Some(body)).await?;
    Ok(data!("{member}: {}", level.map_or("nothing", Level::word))?)
}

pub(super) async fn remove_member(member: &str) -> anyhow::Result<()> {
    delete("members", member).await?;
    Ok(data!("{member} is no longer a member; what they wrote stays.")?)
}

pub(super) async fn remove_repository(name: &str) -> anyhow::Result<()> {
    let mut membership = team_membership::required(&ProgramPaths::from_env()?)?;
    membership.repository = name.parse()?;
    about(&membership, Method::DELETE, "/api/team/repositories", &[]).await?;
    Ok(data!("{name} is gone from the server, with its history; members keep the files they have.")?)
}

pub(super) async fn tokens() -> anyhow::Result<()> {
    let membership = team_membership::required(&ProgramPaths::from_env()?)?;
    let answer = ask(&membership.server, &membership.token(), Method::GET, "/api/team/tokens", None).await?;
    for token in answer["tokens"].as_array().into_iter().flatten() {
        let text = |key: &str| token[key].as_str().unwrap_or_default().to_owned();
        data!("{}  {}  {}", text("id"), when(&token["created"]), text("label"))?;
    }
    Ok(())
}

pub(super) async fn revoke(id: &str) -> anyhow::Result<()> {
    delete("tokens", id).await?;
    Ok(data!("{id} is no longer valid")?)
}

/// Takes something that has a name away from the server.
async fn delete(kind: &str, name: &str) -> anyhow::Result<()> {
    let membership = team_membership::required(&ProgramPaths::from_env()?)?;
    let mut path = reqwest::Url::parse("http://x/api/team/")?;
    path.path_segments_mut().ok().context("no path")?.pop_if_empty().extend([kind, name]);
    ask(&membership.server, &membership.token(), Method::DELETE, path.path(), None).await?;
    Ok(())
}

pub(super) async fn token(rotate: bool) -> anyhow::Result<()> {
    let place = ProgramPaths::from_env()?;
    let mut membership = team_membership::required(&place)?;
    if rotate {
        let answer =
            ask(&membership.server, &membership.token(), Method::POST, "/api/team/tokens", Some(json!({}))).await?;
        let token = answer["token"].as_str().context("the server gave no token")?.to_owned();
        membership = Membership::new(membership.server.clone(), membership.repository.clone(), token);
        team_membership::change(&place, Some(membership.clone()))?;
    }
    Ok(data!("{}", membership.token())?)
}

/// A question about this repository.
async fn about(membership: &Membership, method: Method, path: &str, more: &[(&str, &str)]) -> anyhow::Result<Value> {
    let mut address = reqwest::Url::parse("http://x")?;
    address.set_path(path);
    address.query_pairs_mut().append_pair("repo", membership.repository.as_str()).extend_pairs(more);
    let path = format!("{}?{}", address.path(), address.query().unwrap_or_default());
    ask(&membership.server, &membership.token(), method, &path, None).await
}

/// A question to the server's administration.
async fn ask(server: &str, token: &str, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
    // The client refuses addresses that a token must not be sent to.
    team::client::Client::new(server, token, "a/b".parse()?)?;
    let http = team::client::http().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none());
    let is_here = server.contains("://127.0.0.1") || server.contains("://localhost") || server.contains("://[::1]");
    let http = if is_here { http.no_proxy().build()? } else { http.build()? };
    let mut request = http.request(method, format!("{}{path}", server.trim_end_matches('/')));
    if !token.is_empty() {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request
        .send()
        .await
        .map_err(|error| error.without_url())
        .with_context(|| format!("{server} cannot be reached"))?;
    let status = response.status();
    let answer: Value = response.json().await.unwrap_or_default();
    if !status.is_success() {
        let message = answer["error"]["message"].as_str().map_or_else(|| status.to_string(), str::to_owned);
        bail!("{server} refused: {message}");
    }
    Ok(answer)
}
