//! `/jobs`: the commands that run in the background, also while the agent works.

use tools::JobState;

use super::conversation::Conversation;
use super::page::Part;
use crate::span::{Look, first_line};

/// How many of the last lines of a job are shown.
const SHOWN: usize = 40;

impl Conversation {
    /// Shows them all, or what one printed; or stops one.
    pub(super) fn jobs(&mut self, argument: &str) {
        match argument.split_once(' ').unwrap_or((argument, "")) {
            ("", _) => self.list_jobs(),
            ("stop", id) => self.stop_job(id.trim()),
            (id, _) => match self.jobs.recent(id) {
                Ok(text) if text.trim().is_empty() => self.hint = Some(format!("{id} has printed nothing yet")),
                Ok(text) => {
                    let lines: Vec<&str> = text.lines().collect();
                    self.page.begin(Part::Note);
                    self.show_lines(&lines[lines.len().saturating_sub(SHOWN)..]);
                }
                Err(error) => self.hint = Some(error.to_string()),
            },
        }
    }

    fn list_jobs(&mut self) {
        let jobs = self.jobs.list();
        if jobs.is_empty() {
            self.hint = Some("nothing runs in the background".into());
            return;
        }
        let row =
            |job: &tools::Job| (job.id.clone(), format!("{:<12} {}", state(job.state), first_line(&job.command, 200)));
        self.page.begin(Part::Note);
        self.page.table(&jobs.iter().map(row).collect::<Vec<_>>(), Look::BOLD);
    }

    fn stop_job(&mut self, id: &str) {
        let runs = |job: &tools::Job| job.id == id && job.state == JobState::Running;
        if !self.jobs.list().iter().any(runs) {
            self.hint = Some(format!("nothing called {id:?} runs in the background; /jobs shows what does"));
            return;
        }
        self.page.note(&format!("stopping {id}"), Look::PLAIN);
        let (all, id) = (self.jobs.clone(), id.to_owned());
        // It is given time to end by itself, which nobody has to wait for.
        tokio::spawn(async move { all.stop(&id).await.is_ok() });
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
