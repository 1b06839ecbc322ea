//! The dreams there were: their list, what they changed, and how to take it back.

use engine::World;
use engine::dream::Site;
use engine::dream::book::{Dreamt, How, Undone as TakenBack};
use engine::dream::gate::Gate;
use memory::changes::Undone;
use memory::store::{Indexing, Store};
use serde_json::json;
use similar::TextDiff;

use super::{DreamCommand, why_not};
use crate::dreaming;
use crate::exit::Code;
use crate::out::{data, talk};
use crate::setup::Place;
use crate::span::{Span, cyan, dim, first_line};

/// Runs one of the commands about the past.
pub(super) fn run(command: &DreamCommand, place: &Place, as_json: bool) -> anyhow::Result<Code> {
    let settings = place.settings(None)?;
    let site = dreaming::site(place, &settings)?;
    match command {
        DreamCommand::Log => log(&site, as_json),
        DreamCommand::Diff { id } => diff(&site, id.as_deref(), as_json),
        DreamCommand::Undo { id } => undo(&site, id.as_deref(), as_json),
        DreamCommand::Status => {
            let (last, mark) = site.last()?;
            let holder = site.holder()?;
            let sessions = site.sessions(last).len();
            let said = site.due(&mut Gate::default(), &settings.rhythm())?;
            if as_json {
                data!(
                    "{}",
                    json!({
                        "memory": site.memory, "last": last.map(|at| at.to_string()), "sessionsSince": sessions,
                        "due": said == engine::dream::gate::Said::Due, "why": why_not(&said),
                        "running": holder, "lock": mark.dreamt.map(|at| at.to_string()),
                    })
                )?;
                return Ok(Code::Success);
            }
            data!("memories     {}", site.memory.display())?;
            data!("last dream   {}", last.map_or_else(|| "never".to_owned(), |at| format!("{at:.0}")))?;
            data!("sessions     {sessions} touched since")?;
            data!("next         {}", why_not(&said))?;
            if let Some(pid) = holder {
                data!("running      in process {pid}")?;
            }
            Ok(Code::Success)
        }
    }
}

fn log(site: &Site, as_json: bool) -> anyhow::Result<Code> {
    let dreams = site.book().dreams();
    if as_json {
        let rows =
            dreams.iter().map(|dreamt| json!({"began": dreamt.began, "over": dreamt.over, "undone": dreamt.undone}));
        data!("{}", rows.collect::<serde_json::Value>())?;
        return Ok(Code::Success);
    }
    if dreams.is_empty() {
        talk!("No dream yet.");
    }
    for dreamt in &dreams {
        data!([
            cyan(&dreamt.began.id),
            Span::plain(&format!("  {:.0}  {:<10}", dreamt.began.at, word(dreamt))),
            dim(&first_line(&what(dreamt), 120)),
        ])?;
    }
    Ok(Code::Success)
}

fn word(dreamt: &Dreamt) -> &'static str {
    match (&dreamt.over, &dreamt.undone) {
        (_, Some(_)) => "undone",
        (Some(over), _) => match over.how {
            How::Completed => "completed",
            How::Failed => "failed",
            How::Killed => "killed",
        },
        (None, _) => "cut off",
    }
}

fn what(dreamt: &Dreamt) -> String {
    let Some(over) = &dreamt.over else { return String::new() };
    format!("{} changed, {} removed: {}", over.saved.len(), over.removed.len(), over.text)
}

/// The dream that is meant: by the beginning of its name, or the newest that changed something.
fn meant(site: &Site, id: Option<&str>) -> anyhow::Result<(Dreamt, memory::changes::Run)> {
    let changes = site.changes();
    let run_of = |dreamt: &Dreamt| {
        let named = dreamt.over.as_ref().and_then(|over| over.run.clone());
        // One that was cut off has named no run: it is the first of a dream from then on.
        let later = |run: &memory::changes::Run| run.head.agent == "dream" && run.head.began() >= Some(dreamt.began.at);
        let unnamed = || changes.runs().into_iter().rev().find(later).filter(|_| dreamt.over.is_none());
        named.and_then(|id| changes.run(&id).ok()).or_else(unnamed)
    };
    let mut dreams = site.book().dreams().into_iter();
    match id {
        Some(id) => {
            let dreamt = dreams.find(|dreamt| dreamt.began.id.starts_with(id));
            let dreamt = dreamt.ok_or_else(|| anyhow::anyhow!("there is no dream {id}; cairn dream log lists them"))?;
            let run = run_of(&dreamt).ok_or_else(|| anyhow::anyhow!("dream {} changed nothing", dreamt.began.id))?;
            Ok((dreamt, run))
        }
        None => dreams
            .filter(|dreamt| dreamt.undone.is_none())
            .find_map(|dreamt| run_of(&dreamt).map(|run| (dreamt, run)))
            .ok_or_else(|| anyhow::anyhow!("no dream has changed anything")),
    }
}

fn diff(site: &Site, id: Option<&str>, as_json: bool) -> anyhow::Result<Code> {
    let (dreamt, run) = meant(site, id)?;
    let net = run.net();
    if as_json {
        let rows = net.iter().map(|one| json!({"path": one.path, "before": one.before, "after": one.after}));
        data!("{}", json!({"id": dreamt.began.id, "changes": rows.collect::<Vec<_>>()}))?;
        return Ok(Code::Success);
    }
    for change in &net {
        data!("{}", diff_text(&change.path, change.before.as_deref(), change.after.as_deref()))?;
    }
    Ok(Code::Success)
}

fn undo(site: &Site, id: Option<&str>, as_json: bool) -> anyhow::Result<Code> {
    let now = World::real().now();
    if let Some(pid) = site.holder()? {
        anyhow::bail!("a dream runs in process {pid}; stop it before you take one back");
    }
    let (dreamt, run) = meant(site, id)?;
    let store = Store::open(&site.memory, Indexing::Kept)?;
    let undone = site.changes().undo(&run.id, None, &store)?;
    let kept = undone.iter().filter_map(|one| match one {
        Undone::ChangedSince { path, .. } => Some(path.clone()),
        _ => None,
    });
    let kept: Vec<String> = kept.collect();
    site.book().undone(&TakenBack { id: dreamt.began.id.clone(), at: now, kept: kept.clone() })?;
    if as_json {
        let paths =
            |wanted: fn(&Undone) -> Option<&String>| undone.iter().filter_map(wanted).cloned().collect::<Vec<_>>();
        let restored = paths(|one| if let Undone::Restored { path } = one { Some(path) } else { None });
        let removed = paths(|one| if let Undone::Removed { path } = one { Some(path) } else { None });
        data!("{}", json!({"id": dreamt.began.id, "restored": restored, "removed": removed, "changedSince": kept}))?;
    } else {
        for one in &undone {
            match one {
                Undone::Restored { path } => talk!("restored {path}"),
                Undone::Removed { path } => talk!("removed {path}, which the dream had made"),
                Undone::ChangedSince { path, before, now } => {
                    talk!("{path} was changed since and stays as it is; taken back it would change so:");
                    data!("{}", diff_text(path, now.as_deref(), before.as_deref()))?;
                }
            }
        }
    }
    Ok(if kept.is_empty() { Code::Success } else { Code::Failure })
}

/// The change of one file.
pub(crate) fn diff_text(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let name =
        |side: &str, text: Option<&str>| text.map_or_else(|| "/dev/null".to_owned(), |_| format!("{side}/{path}"));
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
    diff.unified_diff().header(&name("a", before), &name("b", after)).to_string().trim_end().to_owned()
}
