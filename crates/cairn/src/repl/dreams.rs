//! `/dream`: memories are brought into order, now, outside the conversation; and what dreams did.

use learning::dream::DreamSite;

use super::conversation_view::ConversationView;
use super::page::PagePart;
use super::session_state::SessionState;
use crate::dream_setup::{self, past};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{TextStyle, first_line};
use crate::trusted_settings;

impl SessionState {
    /// Begins one, stops it, or shows and takes back what the last one did.
    pub(super) async fn dream(
        &mut self,
        argument: &str,
        view: &mut ConversationView,
        place: &ProgramPaths,
        flag: Option<&str>,
    ) -> anyhow::Result<()> {
        let (word, id) = argument.split_once(' ').unwrap_or((argument, ""));
        let id = Some(id.trim()).filter(|id| !id.is_empty());
        if let Some(agent) = &mut self.agent {
            agent.take_in_dreams().await?; // one that is over is not under way
        }
        let Some(dreams) = self.agent.as_mut().and_then(engine::Agent::dreams) else {
            view.hint = Some("memory is off here, so there is nothing to dream about".to_owned());
            return Ok(());
        };
        match word {
            "" if dreams.start() => view.page.note("dreaming in the background; /dream stop ends it", TextStyle::DIM),
            "" => view.hint = Some("a dream is under way; /dream stop ends it".to_owned()),
            "stop" if dreams.is_running() => {
                dreams.stop();
                view.hint = Some("stopping the dream".to_owned());
            }
            "stop" => view.hint = Some("no dream is under way here".to_owned()),
            "log" | "diff" | "undo" | "status" | "apply" => {
                let (site, indexing) = (dreams.site().clone(), dreams.indexing());
                let shown = match word {
                    "log" => Ok(past::log(&site)),
                    "diff" => past::diff(&site, id),
                    "undo" => past::undo(&site, id).map(|back| back.lines()),
                    "apply" => past::apply(&site, indexing).map(|over| past::applied(&over)),
                    _ => self.dream_status(&site, place, flag),
                };
                match shown {
                    Ok(lines) if lines.is_empty() => view.hint = Some(past::NONE.to_owned()),
                    Ok(lines) => {
                        view.page.begin(PagePart::Note);
                        view.show_lines(&lines.iter().flat_map(|line| line.lines()).collect::<Vec<_>>());
                    }
                    Err(error) => view.hint = Some(format!("{error:#}")),
                }
            }
            other => {
                view.hint = Some(format!("there is no /dream {other}; /dream [stop|status|log|diff|undo|apply]"));
            }
        }
        Ok(())
    }

    /// Progress of the running dream and its messages, the newest last.
    fn live(&self) -> Vec<String> {
        let Some(dream) = &self.background.dreaming else { return Vec::new() };
        let now = format!("{:<12} {}", dream.phase.word(), dream.line());
        let said = dream.texts.iter().map(|text| format!("{:<12} {}", "", first_line(text, 200)));
        [now].into_iter().chain(said).collect()
    }

    fn dream_status(&self, site: &DreamSite, place: &ProgramPaths, flag: Option<&str>) -> anyhow::Result<Vec<String>> {
        let rhythm = dream_setup::rhythm(&trusted_settings::settings(place, flag)?);
        Ok(past::status(site, &rhythm)?.into_iter().chain(self.live()).collect())
    }
}
