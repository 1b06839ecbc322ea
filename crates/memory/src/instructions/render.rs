//! Instruction files as the model sees them: one reminder, in the first user message.

use jiff::civil::Date;

use super::{Loaded, Owner};
use crate::neutral;

/// The first user message: all files in order, the date, and how to take it.
pub fn first_message(files: &[Loaded], today: Date) -> String {
    let mut text = String::from("<system-reminder>\nBackground for this conversation.\n");
    if !files.is_empty() {
        text.push_str(
            "\n# Instructions\nInstructions for the project and from the user follow. They come before your default \
             behaviour: follow them as they are written. Where two disagree, the later one holds.\n",
        );
        for file in files {
            text.push('\n');
            text.push_str(&section(file));
        }
    }
    text.push_str(&format!(
        "\n# Date\nToday is {today}.\n\nThis may or may not have to do with what you are asked. Leave it unmentioned \
         unless it does.\n</system-reminder>"
    ));
    text
}

/// Files that were loaded later, because a file or directory was touched.
pub fn nested(files: &[Loaded]) -> String {
    let sections: Vec<String> = files.iter().map(section).collect();
    format!("<system-reminder>\n{}</system-reminder>", sections.join("\n"))
}

fn section(file: &Loaded) -> String {
    let whose = match file.owner {
        Owner::Managed => "set by the organisation",
        Owner::User => "the user's own, for all projects",
        Owner::Project => "the project's, checked in",
        Owner::Local => "the user's own, for this project",
        Owner::AutoMem => "the index of your memory, kept across conversations",
    };
    let path = file.path.display().to_string();
    format!("Contents of {} ({whose}):\n\n{}\n", neutral::inside_reminder(&path), neutral::inside_reminder(&file.text))
}
