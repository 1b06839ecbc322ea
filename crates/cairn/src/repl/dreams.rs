//! `/dream`: memories are brought into order, now, beside the conversation; and what dreams did.

use learning::dream::Site;

use super::conversation::Conversation;
use super::page::Part;
use crate::dreaming::{self, past};
use crate::judgement;
use crate::span::{Look, first_line};

impl Conversation {
    /// Begins one, stops it, or shows and takes back what the last one did.
    pub(super) async fn dream(&mut self, argument: &str) -> anyhow::Result<()> {
        let (word, id) = argument.split_once(' ').unwrap_or((argument, ""));
        let id = Some(id.trim()).filter(|id| !id.is_empty());
        if let Some(agent) = &mut self.agent {
            agent.take_in_dreams().await?; // one that is over is not under way
        }
        let Some(dreams) = self.agent.as_mut().and_then(engine::Agent::dreams) else {
            self.hint = Some("memory is off here, so there is nothing to dream of".to_owned());
            return Ok(());
        };
        match word {
            "" if dreams.start() => self.page.note("dreaming in the background; /dream stop ends it", Look::DIM),
            "" => self.hint = Some("a dream is under way; /dream stop ends it".to_owned()),
            "stop" if dreams.is_running() => {
                dreams.stop();
                self.hint = Some("stopping the dream".to_owned());
            }
            "stop" => self.hint = Some("no dream is under way here".to_owned()),
            "log" | "diff" | "undo" | "status" => {
                let site = dreams.site().clone();
                match self.of_the_past(word, id, &site) {
                    Ok(lines) if lines.is_empty() => self.hint = Some(past::NONE.to_owned()),
                    Ok(lines) => {
                        self.page.begin(Part::Note);
                        self.show_lines(&lines.iter().flat_map(|line| line.lines()).collect::<Vec<_>>());
                    }
                    Err(error) => self.hint = Some(format!("{error:#}")),
                }
            }
            other => self.hint = Some(format!("/dream {other} means nothing; /dream [stop|status|log|diff|undo]")),
        }
        Ok(())
    }

    /// How far the dream under way is, and what it said, the newest last.
    fn live(&self) -> Vec<String> {
        let Some(dream) = &self.dreaming else { return Vec::new() };
        let now = format!("{:<12} {}", dream.phase.word(), dream.line());
        let said = dream.said.iter().map(|text| format!("{:<12} {}", "", first_line(text, 200)));
        [now].into_iter().chain(said).collect()
    }

    fn of_the_past(&self, word: &str, id: Option<&str>, site: &Site) -> anyhow::Result<Vec<String>> {
        match word {
            "log" => Ok(past::log(site)),
            "diff" => past::diff(site, id),
            "undo" => Ok(past::undo(site, id)?.lines()),
            _ => {
                let rhythm = dreaming::rhythm(&judgement::settings(&self.place, self.args.settings.as_deref())?);
                Ok(past::status(site, &rhythm)?.into_iter().chain(self.live()).collect())
            }
        }
    }
}
