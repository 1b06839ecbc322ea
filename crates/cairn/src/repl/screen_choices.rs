//! The background that colours are chosen for, and the keys of the prompt: by the settings, or by a command until the program
//! ends.

use settings::{EditorMode, Theme};

use super::conversation::Conversation;
use crate::styled_text::{Colours, TextStyle};
use crate::{env, out};

/// Numbers of the light ones among the sixteen colours; 8 is a bright black.
const LIGHT: [&str; 8] = ["7", "9", "10", "11", "12", "13", "14", "15"];

/// Choices made by a command; they outlive a change of the session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScreenChoices {
    theme: Option<Theme>,
    editor_mode: Option<EditorMode>,
}

/// The colours of the screen.
pub(super) fn colours(talk: &Conversation) -> Colours {
    let colours = out::colours(&out::stdout());
    let is_light = match theme(talk) {
        Theme::Auto => background_is_light(env::COLOURS.get().as_deref()),
        Theme::Dark => false,
        Theme::Light => true,
    };
    if colours == Colours::On && is_light { Colours::OnLight } else { colours }
}

fn theme(talk: &Conversation) -> Theme {
    talk.screen_choices.theme.unwrap_or(talk.session.signals.theme)
}

/// What a terminal says of its colours: `foreground;background`, sometimes with something in between.
fn background_is_light(said: Option<&str>) -> bool {
    said.and_then(|said| said.rsplit(';').next()).is_some_and(|background| LIGHT.contains(&background))
}

/// The keys of the prompt.
pub(super) fn editor_mode(talk: &Conversation) -> EditorMode {
    talk.screen_choices.editor_mode.unwrap_or(talk.session.signals.editor_mode)
}

/// Shows the theme, or changes it.
pub(super) fn choose_theme(talk: &mut Conversation, name: &str) {
    let chosen = match name {
        "auto" => Theme::Auto,
        "dark" => Theme::Dark,
        "light" => Theme::Light,
        "" => {
            let now = match theme(talk) {
                Theme::Auto => "auto",
                Theme::Dark => "dark",
                Theme::Light => "light",
            };
            let themes = [
                ("auto", "as the terminal says of itself"),
                ("dark", "for a dark background"),
                ("light", "for a light background"),
            ];
            return talk.requests.choose_command(&format!("Which theme? It is {now}"), "theme", &themes);
        }
        _ => {
            talk.view.hint = Some("themes: auto, dark, light".into());
            return;
        }
    };
    talk.screen_choices.theme = Some(chosen);
    let text = format!("the theme is {name}; `cairn config set --user theme {name}` keeps it");
    talk.view.page.note(&text, TextStyle::PLAIN);
}

/// Changes between the keys of vim and the usual ones.
pub(super) fn switch_vim(talk: &mut Conversation) {
    let (next, name) = match editor_mode(talk) {
        EditorMode::Normal => (EditorMode::Vim, "vim"),
        EditorMode::Vim => (EditorMode::Normal, "normal"),
    };
    talk.screen_choices.editor_mode = Some(next);
    let keys = if next == EditorMode::Vim { "those of vim" } else { "the usual ones" };
    let text = format!("the keys of the prompt are {keys}; `cairn config set --user editorMode {name}` keeps it");
    talk.view.page.note(&text, TextStyle::PLAIN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_says_whether_its_background_is_light() {
        assert!(background_is_light(Some("0;15")) && background_is_light(Some("0;default;7")));
        assert!(!background_is_light(Some("15;0")) && !background_is_light(Some("7;8")) && !background_is_light(None));
    }
}
