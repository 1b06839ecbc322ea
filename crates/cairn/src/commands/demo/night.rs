//! The demo's last part: weeks go by, and a dream brings memories into order. The clock is moved; the rest is real.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use learning::dream::DreamSite;
use learning::dream::dream_log::DreamOutcome;
use learning::dream::progress::{DreamProgress, improved};
use learning::dream::run::Dream;
use learning::dream::schedule::{DreamSchedule, ScheduleDecision};
use learning::ledger::Ledger;
use memory::Kind;
use memory::remember::MemoryOrigin;
use memory::store::{IndexUpkeep, NewMemory, Store};
use parking_lot::Mutex;
use provider::anthropic::{Anthropic, Auth, Config};
use session::{Home, World};
use settings::Rhythm;
use simulator::{Options, Script, Simulator};
use tokio_util::sync::CancellationToken;
use tools::Scope;

use crate::event_text::diff_text;
use crate::out::show;
use crate::styled_text::{cyan, dim, green, one_line, red};

const SCRIPT: &str = include_str!("night.toml");
const MODEL: &str = "claude-haiku-4-5";
/// A Monday.
const MONDAY: &str = "2026-11-02T09:00:00Z";
const DAY: u64 = 86_400;

/// Memories, each with the day after that Monday on which it was saved.
const MEMORIES: [(&str, &str, &str, u64); 4] = [
    ("deploys.md", "who signs off deploys", "Deploys need two approvals.", 0),
    ("deploy-channel.md", "how deploys are announced", "Two people sign off a deploy and say so in #ops.", 3),
    ("release.md", "when the release is", "The release is next Thursday.", 4),
    ("packages.md", "which package manager the project uses", "The project uses npm.", 1),
];

/// Plays it below a folder; whether it reached its end.
pub(super) async fn play(root: &Path) -> anyhow::Result<bool> {
    let monday: Timestamp = MONDAY.parse()?;
    let (project, home) = (root.join("project"), Home::at(root.join("night")));
    let memory = home.project(&project).join("memory");
    let store = Store::create(&memory, IndexUpkeep::Kept)?;
    let at = |days: u64| SystemTime::from(monday) + Duration::from_secs(days * DAY);
    for (file, about, body, day) in MEMORIES {
        let (path, name) = (Some(file.to_owned()), about.to_owned());
        let new = NewMemory {
            path,
            name,
            description: about.to_owned(),
            kind: Some(Kind::Project),
            body: body.to_owned(),
            ..NewMemory::default()
        };
        let origin = MemoryOrigin { agent: Some(learning::ledger::EXTRACT.to_owned()), ..MemoryOrigin::default() };
        store.remember(&new, &origin, None)?;
        store.root().date(file, at(day))?;
    }
    for n in 1..=5 {
        let said = if n == 5 { "We moved from npm to pnpm, by the way." } else { "Thanks, that is all for today." };
        let line = serde_json::json!({
            "type": "user", "uuid": n.to_string(), "parentUuid": null, "cwd": project, "timestamp": "2026-11-10T10:00:00.000Z",
            "message": {"role": "user", "content": said},
        });
        let folder = files::Root::create(home.project(&project))?;
        folder.create_new(format!("session-{n}.jsonl"), format!("{line}\n").as_bytes(), 0o600)?;
        folder.date(format!("session-{n}.jsonl"), at(7 + n))?;
    }
    let mut script = Script::parse(SCRIPT)?;
    script.vars.insert("memory".into(), memory.display().to_string());
    let simulator = Simulator::start(script, Options::default()).await?;
    let now = monday + SignedDuration::from_hours(14 * 24);
    let world = World::new(move || now, |_| "night".to_owned().into());
    let site = DreamSite { home, memory, project: project.clone(), session: None, world: world.clone() };
    let due = site.due(&mut DreamSchedule::default(), &Rhythm::default())? == ScheduleDecision::Due;
    show!([dim("         "), cyan("schedule "), one_line("five sessions since, and no dream yet: it is time", 100)]);
    let heard_last = Mutex::new(String::new());
    let heard = move |progress: &DreamProgress| {
        let mut last = heard_last.lock();
        if let Some(said) = progress.texts.back().filter(|said| **said != *last) {
            last.clone_from(said);
            show!([dim("         "), cyan("dream    "), one_line(said, 100)]);
        }
    };
    let dream = Dream {
        site: site.clone(),
        indexing: IndexUpkeep::Kept,
        model: Arc::new(Anthropic::new(Config::new(simulator.url(), Auth::ApiKey("demo".into())))?),
        name: MODEL.to_owned(),
        window: 200_000,
        scope: Scope::new(&project, root.join("night/tmp")),
        rules: Default::default(),
        excluded: Default::default(),
        purpose: Default::default(),
        ledger: Arc::new(Ledger::in_memory(world)),
        listener: Arc::new(heard),
        cancel: CancellationToken::new(),
    };
    let over = dream.run().await?;
    simulator.shutdown().await;
    show!([dim("         "), cyan("memory   "), green(&improved(over.saved.len() + over.removed.len()))]);
    show!();
    let run = over.run.as_ref().map(|run| site.changes().run(run)).transpose()?;
    for change in run.iter().flat_map(memory::changes::ChangeRun::net) {
        for line in diff_text(&change.path, change.before.as_deref(), change.after.as_deref()).lines() {
            match line.chars().next() {
                Some('+') => show!(["  ", green(line)]),
                Some('-') => show!(["  ", red(line)]),
                _ => show!(["  ", dim(line)]),
            }
        }
    }
    Ok(due && over.how == DreamOutcome::Completed && over.saved.len() == 3 && over.removed.len() == 1)
}
