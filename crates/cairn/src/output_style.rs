//! Language and style of answers.
//!
//! A style is a text for the system prompt. Some are built in; the user's own are in `output-styles` below the config
//! home, those of plugins are named `plugin:style`. A trusted project can name one but brings none: its texts are instructions, and are loaded as such.

use memory::frontmatter;
use settings::Settings;

use crate::plugins::LoadedPlugins;
use crate::program_paths::ProgramPaths;

/// The largest file of a style that is read.
const LARGEST: u64 = 64 * 1024;

/// The styles that are ours.
const STYLES: [(&str, &str); 2] =
    [("explanatory", include_str!("prompts/explanatory.md")), ("learning", include_str!("prompts/learning.md"))];

/// The parts of the system prompt, and what the user should know of them.
pub(crate) fn style(
    settings: &Settings,
    place: &ProgramPaths,
    plugins: &LoadedPlugins,
) -> (Vec<String>, Option<String>) {
    let language = settings.language.as_deref().and_then(|language| language.lines().next()).map(str::trim);
    let language = language.filter(|language| !language.is_empty()).map(|language| {
        format!(
            "# Language\n\nAnswer in {language:.60}, whatever language files and results are in. Code, names and what belongs \
             into files stay in the language of the project."
        )
    });
    let (style, warning) = match settings.output_style.as_deref().map(str::trim) {
        None | Some("" | "default" | "Default") => (None, None),
        Some(name) => match text_of_style(name, place, plugins) {
            Some(text) => (Some(text), None),
            None => (None, Some(format!("there is no output style named {name}; the default is used"))),
        },
    };
    (language.into_iter().chain(style).collect(), warning)
}

fn text_of_style(name: &str, place: &ProgramPaths, plugins: &LoadedPlugins) -> Option<String> {
    let own = own_style(name, place);
    let ours = || STYLES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, text)| (*text).to_owned());
    let of_plugin = || plugins.style(name).map(|style| style.text.clone());
    own.or_else(of_plugin).or_else(ours).map(|text| format!("# How to answer: {name}\n\n{}", text.trim()))
}

/// The style of a file whose name, or whose `name`, it is.
fn own_style(name: &str, place: &ProgramPaths) -> Option<String> {
    let folder = files::Root::open(place.home.path().join("output-styles")).ok()?;
    let mut listed: Vec<String> =
        folder.list().ok()?.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect();
    listed.sort();
    listed.iter().filter(|file| file.ends_with(".md")).find_map(|file| {
        let text = String::from_utf8(folder.read(file, LARGEST).ok()?.bytes).ok()?;
        let top = frontmatter::read(&text);
        let called = top.text("name").unwrap_or_else(|| file.trim_end_matches(".md").to_owned());
        let body = text[top.body_start()..].trim();
        (called.eq_ignore_ascii_case(name) && !body.is_empty()).then(|| body.to_owned())
    })
}
