//! `/jobs`: the commands that run in the background, also while the agent works.

use tools::JobState;

use super::conversation::Conversation;
use super::page::Part;
use crate::span::{Look, first_line};

impl Conversation {
    /// Shows them, or stops one.
    pub(super) fn show_jobs(&mut self, argument: &str) {
        let jobs = self.jobs.list();
        if jobs.is_empty() {
            self.hint = Some("nothing runs in the background".into());
            return;
        }
        if let Some(id) = argument.strip_prefix("stop") {
            let id = id.trim().to_owned();
            let running = jobs.iter().any(|job| job.id == id && job.state == JobState::Running);
            if !running {
                self.hint = Some(format!("nothing called {id:?} runs in the background; /jobs shows what does"));
                return;
            }
            self.page.note(&format!("stopping {id}"), Look::PLAIN);
            let all = self.jobs.clone();
            // It is given time to end by itself, which nobody has to wait for.
            tokio::spawn(async move { all.stop(&id).await.is_ok() });
            return;
        }
        let row =
            |job: &tools::Job| (job.id.clone(), format!("{:<12} {}", state(job.state), first_line(&job.command, 200)));
        self.page.begin(Part::Note);
        self.page.table(&jobs.iter().map(row).collect::<Vec<_>>(), Look::BOLD);
    }
}

fn state(state: JobState) -> String {
    match state {
        JobState::Running => "running".to_owned(),
        JobState::Exited { code: Some(0) } => "done".to_owned(),
        JobState::Exited { code: Some(code) } => format!("failed ({code})"),
        JobState::Exited { code: None } => "ended".to_owned(),
        JobState::TimedOut => "timed out".to_owned(),
        JobState::Stopped => "stopped".to_owned(),
    }
}
