//! The dreams there were: their list, what they changed, and how to take it back.

use learning::dream::DreamSite;
use learning::dream::dream_log::{DreamFinish, DreamOutcome, DreamUndo, PastDream};
use learning::dream::rehearsal::{NotAppliedReason, RehearsedChanges};
use learning::dream::schedule::{DreamSchedule, ScheduleDecision};
use learning::saver::Removal;
use memory::changes::{ChangeRun, KEPT, UndoResult};
use memory::store::{IndexUpkeep, Store};
use serde_json::{Value, json};
use session::World;
use settings::Rhythm;

use crate::event_text::{diff_text, local_time};
use crate::styled_text::first_line;

/// Message if there was no dream.
pub(crate) const NONE: &str = "There has been no dream here yet.";

/// When the last one was, and whether the next is due.
pub(crate) fn status(site: &DreamSite, rhythm: &Rhythm) -> anyhow::Result<Vec<String>> {
    let (last, _) = site.last()?;
    let said = site.due(&mut DreamSchedule::default(), rhythm)?;
    let mut lines = vec![
        format!("memories     {}", site.memory.display()),
        format!("last dream   {}", last.map_or_else(|| "never".to_owned(), local_time)),
        format!("sessions     {} touched since", site.sessions(last).len()),
        format!("next         {}", why_not(&said, rhythm)),
    ];
    lines.extend(site.holder()?.map(|pid| format!("running      in process {pid}")));
    Ok(lines)
}

/// The same for programs.
pub(crate) fn status_object(site: &DreamSite, rhythm: &Rhythm) -> anyhow::Result<Value> {
    let (last, _) = site.last()?;
    let said = site.due(&mut DreamSchedule::default(), rhythm)?;
    Ok(json!({
        "memory": site.memory, "last": last.map(|at| at.to_string()), "sessionsSince": site.sessions(last).len(),
        "due": said == ScheduleDecision::Due, "why": why_not(&said, rhythm), "running": site.holder()?,
    }))
}

/// The dreams there were, each with what it changed, merged and removed, and why.
pub(crate) fn log(site: &DreamSite) -> Vec<String> {
    let dreams = site.dream_log().dreams();
    let line = |dreamt: &PastDream| {
        let (id, at) = (&dreamt.began.id, local_time(dreamt.began.at));
        format!("{id}  {at}  {:<10}{}", word(dreamt), first_line(&what(dreamt), 120)).trim_end().to_owned()
    };
    dreams.iter().flat_map(|dreamt| std::iter::once(line(dreamt)).chain(details(dreamt))).collect()
}

/// Changes of a dream to each memory, with the reasons, a line each.
fn details(dreamt: &PastDream) -> Vec<String> {
    let Some(over) = &dreamt.over else { return Vec::new() };
    let removal = |path: &String| match over.removals.iter().find(|removal| removal.path == *path) {
        Some(Removal { replaced_by: Some(by), reason, .. }) => {
            format!("    merged   {path} into {by}: {}", first_line(reason, 200))
        }
        Some(removal) => format!("    removed  {path}: {}", first_line(&removal.reason, 200)),
        None => format!("    removed  {path}"),
    };
    let changed = over.saved.iter().map(|path| format!("    changed  {path}"));
    changed.chain(over.removed.iter().map(removal)).collect()
}

/// The same for programs.
pub(crate) fn log_object(site: &DreamSite) -> Value {
    let dreams = site.dream_log().dreams();
    dreams.iter().map(|dreamt| json!({"began": dreamt.began, "over": dreamt.over, "undone": dreamt.undone})).collect()
}

fn word(dreamt: &PastDream) -> &'static str {
    match (&dreamt.over, &dreamt.undone) {
        (_, Some(_)) => "undone",
        (Some(over), _) => match over.how {
            DreamOutcome::Completed => "completed",
            DreamOutcome::Failed => "failed",
            DreamOutcome::Killed => "killed",
        },
        (None, _) => "cut off",
    }
}

fn what(dreamt: &PastDream) -> String {
    let Some(over) = &dreamt.over else { return String::new() };
    format!("{} changed, {} removed: {}", over.saved.len(), over.removed.len(), over.text)
}

/// The dream that is meant: by the beginning of its name, or the newest that changed something.
fn meant(site: &DreamSite, id: Option<&str>) -> anyhow::Result<(PastDream, ChangeRun)> {
    let changes = site.changes();
    let run_of = |dreamt: &PastDream| {
        let named = dreamt.over.as_ref().and_then(|over| over.run.clone());
        // One that was cut off has named no run: it is the first of a dream from then on.
        let later =
            |run: &ChangeRun| run.head.agent == learning::ledger::DREAM && run.head.began() >= Some(dreamt.began.at);
        let unnamed = || changes.runs().into_iter().rev().find(later).filter(|_| dreamt.over.is_none());
        named.and_then(|id| changes.run(&id).ok()).or_else(unnamed)
    };
    let mut dreams = site.dream_log().dreams().into_iter();
    match id {
        Some(id) => {
            let dreamt = dreams.find(|dreamt| dreamt.began.id.starts_with(id));
            let dreamt = dreamt.ok_or_else(|| anyhow::anyhow!("there is no dream {id}; dream log lists them"))?;
            let what = if dreamt.over.as_ref().is_some_and(|over| over.run.is_some()) {
                format!("what dream {} changed is no longer kept: only the last {KEPT} runs are", dreamt.began.id)
            } else {
                format!("dream {} changed nothing", dreamt.began.id)
            };
            let run = run_of(&dreamt).ok_or_else(|| anyhow::anyhow!(what))?;
            Ok((dreamt, run))
        }
        None => dreams
            .filter(|dreamt| dreamt.undone.is_none())
            .find_map(|dreamt| run_of(&dreamt).map(|run| (dreamt, run)))
            .ok_or_else(|| anyhow::anyhow!("no dream has changed anything")),
    }
}

/// The changes of a dream.
pub(crate) fn diff(site: &DreamSite, id: Option<&str>) -> anyhow::Result<Vec<String>> {
    let net = meant(site, id)?.1.net();
    Ok(net.iter().map(|one| diff_text(&one.path, one.before.as_deref(), one.after.as_deref())).collect())
}

/// The same for programs.
pub(crate) fn diff_object(site: &DreamSite, id: Option<&str>) -> anyhow::Result<Value> {
    let (dreamt, run) = meant(site, id)?;
    let net = run.net();
    let rows = net.iter().map(|one| json!({"path": one.path, "before": one.before, "after": one.after}));
    Ok(json!({"id": dreamt.began.id, "changes": rows.collect::<Vec<_>>()}))
}

/// A dream that was taken back.
pub(crate) struct UndoneDream {
    id: String,
    undone: Vec<UndoResult>,
    /// The memories that were changed since, and stay.
    kept: Vec<String>,
}

/// Takes back what a dream did.
pub(crate) fn undo(site: &DreamSite, id: Option<&str>) -> anyhow::Result<UndoneDream> {
    if let Some(pid) = site.holder()? {
        anyhow::bail!("a dream is running in process {pid}; stop it before undoing one");
    }
    let (dreamt, run) = meant(site, id)?;
    let store = Store::open(&site.memory, IndexUpkeep::Kept)?;
    let undone = site.changes().undo(&run.id, None, &store, site.world.now())?;
    let kept = undone.iter().filter_map(|one| match one {
        UndoResult::ChangedSince { path, .. } => Some(path.clone()),
        _ => None,
    });
    let (id, kept) = (dreamt.began.id, kept.collect::<Vec<_>>());
    site.dream_log().undone(&DreamUndo { id: id.clone(), at: World::real().now(), kept: kept.clone() })?;
    Ok(UndoneDream { id, undone, kept })
}

impl UndoneDream {
    /// True if memories that were changed since are kept.
    pub(crate) fn kept_some(&self) -> bool {
        !self.kept.is_empty()
    }

    /// For people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |one: &UndoResult| match one {
            UndoResult::Restored { path } => vec![format!("restored {path}")],
            UndoResult::Removed { path } => vec![format!("removed {path}, which the dream had made")],
            UndoResult::ChangedSince { path, before, now } => vec![
                format!("{path} has been changed since and stays as it is; undoing would change this:"),
                diff_text(path, now.as_deref(), before.as_deref()),
            ],
        };
        self.undone.iter().flat_map(line).collect()
    }

    /// For programs.
    pub(crate) fn object(&self) -> Value {
        let paths = |wanted: fn(&UndoResult) -> Option<&String>| {
            self.undone.iter().filter_map(wanted).cloned().collect::<Vec<String>>()
        };
        let restored = paths(|one| if let UndoResult::Restored { path } = one { Some(path) } else { None });
        let removed = paths(|one| if let UndoResult::Removed { path } = one { Some(path) } else { None });
        json!({"id": self.id, "restored": restored, "removed": removed, "changedSince": self.kept})
    }
}

/// Carries out what was rehearsed.
pub(crate) fn apply(site: &DreamSite, indexing: IndexUpkeep) -> anyhow::Result<DreamFinish> {
    let plan = RehearsedChanges::of(site).ok_or(NotAppliedReason::NoPlan)?;
    Ok(plan.apply(site, indexing)?)
}

/// Applied changes, a line each.
pub(crate) fn applied(over: &DreamFinish) -> Vec<String> {
    let changed = over.saved.iter().map(|path| format!("changed {path}"));
    changed.chain(over.removed.iter().map(|path| format!("removed {path}"))).collect()
}

/// Why no dream is due.
pub(crate) fn why_not(said: &ScheduleDecision, rhythm: &Rhythm) -> String {
    match said {
        ScheduleDecision::Due => "A dream is due.".to_owned(),
        ScheduleDecision::Off => "Automatic dreams are off here.".to_owned(),
        ScheduleDecision::TooSoon(at) => format!("Not before {}: the last one was too recent.", local_time(*at)),
        ScheduleDecision::Rests(at) => format!("Not before {}: the last one did not finish.", local_time(*at)),
        ScheduleDecision::JustLooked => "That was checked a moment ago.".to_owned(),
        ScheduleDecision::TooFew(sessions) => {
            format!("Not yet: {sessions} of the {} sessions needed were used since the last one.", rhythm.sessions)
        }
    }
}
