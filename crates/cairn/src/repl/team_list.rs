//! `/team`: how this project's shared memory stands, and what others changed in it since the session began.

use std::path::Path;

use engine::event::TeamChange;
use team::watch_folder::WatchStatus;

use super::conversation_view::ConversationView;
use super::page::PagePart;
use crate::diff_rows::DiffRows;
use crate::program_paths::ProgramPaths;
use crate::styled_text::{Colour, Span, TextStyle};
use crate::team_memory::{self, TeamMemory};

/// So many changes of others are shown with what changed in them, the newest.
const SHOWN: usize = 10;
/// The most lines of each.
const LINES: usize = 300;

impl ConversationView {
    /// Shows how it stands, or brings both sides in step now.
    pub(super) fn team(
        &mut self,
        what: &str,
        sharing: Option<&TeamMemory>,
        memory: Option<&Path>,
        place: &ProgramPaths,
    ) {
        let Some(sharing) = sharing else {
            let why = if memory.is_some() { "this project's team memory is not shared" } else { "memory is off" };
            self.hint = Some(format!("{why}; `cairn team join SERVER` shares it"));
            return;
        };
        match what {
            "" => {}
            "now" => {
                sharing.hurry();
                self.hint = Some("team memory is being synchronised".into());
                return;
            }
            "delete" => {
                sharing.delete_missing();
                self.hint = Some("files that are missing here are deleted for everyone".into());
                return;
            }
            other => {
                self.hint = Some(format!(
                    "there is no /team {other}; /team now synchronises, /team delete deletes for everyone \
                        what is missing here"
                ));
                return;
            }
        }
        let standing = sharing.status();
        let mut entries = vec![
            ("repository", sharing.repository.clone()),
            ("server", sharing.server.clone()),
            ("folder", place.short(&sharing.folder)),
            ("in step", when(&standing)),
        ];
        entries.extend(standing.waiting.iter().map(|key| ("to send", key.to_string())));
        entries.extend(standing.conflicts.iter().map(|key| ("changed twice", format!("{key}: yours is kept"))));
        entries.extend(standing.left.iter().map(|(name, why)| ("not shared", format!("{name}: {why}"))));
        entries.extend(standing.kept_back.iter().map(|(name, why)| ("not in step", format!("{name}: {why}"))));
        entries.extend(
            standing.held.iter().map(|key| ("missing", format!("{key}: /team delete deletes it for everyone"))),
        );
        entries.extend(standing.trouble().map(|trouble| ("trouble", trouble)));
        let entries: Vec<_> = entries.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        self.table(&entries, TextStyle::DIM);
        let old = standing.changes.len().saturating_sub(SHOWN);
        let changed: Vec<TeamChange> = standing.changes[old..].iter().map(team_memory::change).collect();
        self.team_changes(&changed);
    }

    /// Shows what others changed, as diffs.
    pub(super) fn team_changes(&mut self, changed: &[TeamChange]) {
        for one in changed {
            self.page.begin(PagePart::Note);
            self.page.line(&[Span::new(&one.title, TextStyle::of(Colour::Cyan))], 2);
            let diff = DiffRows::of(&one.before, &one.after);
            self.page.rows(diff.capped(LINES, ""));
        }
    }
}

fn when(standing: &WatchStatus) -> String {
    let Some(met) = standing.met else { return "not yet".to_owned() };
    let seconds = (session::World::real().now().as_millisecond() - met).max(0) / 1000;
    match seconds {
        ..5 => "now".to_owned(),
        5..120 => format!("{seconds} seconds ago"),
        _ => format!("{} minutes ago", seconds / 60),
    }
}
