//! `/dream`: memories are brought into order, now, beside the conversation; and what dreams did.

use engine::dream::Site;

use super::conversation::Conversation;
use super::page::Part;
use crate::commands::dream::past;
use crate::dreaming;
use crate::span::Look;

impl Conversation {
    /// Begins one, stops it, or shows and takes back what the last one did.
    pub(super) fn dream(&mut self, argument: &str) {
        let (word, id) = argument.split_once(' ').unwrap_or((argument, ""));
        let id = Some(id.trim()).filter(|id| !id.is_empty());
        let Some(dreams) = self.agent.as_mut().and_then(engine::Agent::dreams) else {
            self.hint = Some("memory is off here, so there is nothing to dream of".to_owned());
            return;
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
                    Ok(lines) => {
                        self.page.begin(Part::Note);
                        self.show_lines(&lines.iter().flat_map(|line| line.lines()).collect::<Vec<_>>());
                    }
                    Err(error) => self.hint = Some(format!("{error:#}")),
                }
            }
            other => self.hint = Some(format!("/dream {other} means nothing; /dream [stop|status|log|diff|undo]")),
        }
    }

    fn of_the_past(&self, word: &str, id: Option<&str>, site: &Site) -> anyhow::Result<Vec<String>> {
        match word {
            "log" => Ok(past::log(site)),
            "diff" => past::diff(site, id),
            "undo" => Ok(past::undo(site, id)?.lines()),
            _ => past::status(site, &dreaming::rhythm(&self.place.settings(self.args.settings.as_deref())?)),
        }
    }
}
