//! The documentation says what the program does.
//!
//! The reference is made by `cairn reference`. Where it is out of date: `UPDATE_DOCS=1 cargo nextest run -p cairn docs`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::stage::{bare, run};

/// The largest picture a README should make people load.
const PICTURE_LIMIT: usize = 60_000;

fn root() -> PathBuf {
    std::fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The pages that list commands, variables and settings.
fn reference() -> String {
    ["cli", "environment", "settings", "settings-tuning"].map(|page| text(&format!("docs/{page}.md"))).concat()
}

/// Output of a command that needs no files.
fn cairn(args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(bare(folder.path(), &folder.path().join("config")).args(args));
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

#[test]
fn the_reference_is_what_the_code_says() {
    let made = tempfile::tempdir().unwrap();
    let listed = cairn(&["reference", "--dir", made.path().to_str().unwrap()]);
    assert_eq!(listed.lines().count(), 5, "{listed}");
    for file in listed.lines() {
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        let (page, kept) = (std::fs::read_to_string(file).unwrap(), root().join("docs").join(name));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&kept, &page).unwrap();
        }
        let kept = std::fs::read_to_string(&kept).unwrap_or_default();
        assert!(kept == page, "docs/{name} is out of date: UPDATE_DOCS=1 cargo nextest run -p cairn docs");
    }
}

#[test]
fn the_schema_takes_the_settings_the_docs_show_and_refuses_wrong_ones() {
    let schema: Value = serde_json::from_str(&text("docs/settings.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut shown = 0;
    for page in ["docs/settings.md", "docs/guide.md"] {
        for block in text(page).split("```json\n").skip(1) {
            let example: Value = serde_json::from_str(block.split("```").next().unwrap()).unwrap();
            assert!(schema.is_valid(&example), "{page}: {:?}", schema.validate(&example));
            shown += 1;
        }
    }
    assert!(shown >= 2);
    let wrong = [
        json!({"model": 1}),
        json!({"permissions": {"defaultMode": "anything"}}),
        json!({"permissions": {"allow": "Bash"}}),
        json!({"providers": {"local": {}}}),
    ];
    for settings in wrong {
        assert!(!schema.is_valid(&settings), "{settings}");
    }
    assert!(schema.is_valid(&json!({"theirs": {"anything": 1}})));
}

/// Flags of other programs that the pages show.
const FOREIGN: [&str; 5] = ["--", "--all-features", "--path", "--release", "--staged"];

/// The words of a page that stand in code, in backticks or in a block; an empty one before each piece or line.
fn words_of_code(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in text.split("```").enumerate() {
        let code: Vec<&str> = if at % 2 == 1 {
            part.lines().skip(1).collect() // the first line names the language
        } else {
            part.split('`').skip(1).step_by(2).collect()
        };
        for piece in code {
            let plain = |word: &str| word.trim_start_matches('\'').trim_end_matches([',', '.', ':', '\'']).to_owned();
            words.push(String::new());
            words.extend(piece.split_whitespace().map(plain));
        }
    }
    words
}

#[test]
fn flags_commands_and_variables_in_the_guide_exist() {
    let known = words_of_code(&reference());
    let (cli, mut checked) = (text("docs/cli.md"), 0);
    for page in ["docs/guide.md", "README.md"] {
        let words = words_of_code(&text(page));
        let before = std::iter::once("").chain(words.iter().map(String::as_str));
        for (before, word) in before.zip(&words) {
            let name = word.split('=').next().unwrap();
            let is_variable = name.contains('_') && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            let is_slash = word.len() > 1 && word.starts_with('/') && word[1..].chars().all(char::is_alphabetic);
            let exists = if before == "cairn" && !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase()) {
                cli.contains(&format!("`cairn {word}`"))
            } else if word.starts_with("--") || is_variable || is_slash {
                known.iter().any(|known| known == name) || FOREIGN.contains(&name)
            } else {
                continue;
            };
            checked += 1;
            assert!(exists, "{page} names {word}, which the reference does not have");
        }
    }
    assert!(checked > 40, "only {checked} words: are the pages read right?");
}

/// CONF-2: each older name of a switch leads to a setting, a variable, a flag or a command that there is.
#[test]
fn older_names_lead_to_settings_that_exist() {
    let reference = reference();
    let page = text("docs/older-names.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let mut names = 0;
    for row in rows {
        let here = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap();
        for name in here.split('`').skip(1).step_by(2) {
            assert!(reference.contains(&format!("`{name}`")), "{name} in {row}");
            names += 1;
        }
    }
    assert!(names > 25, "only {names}");
}

#[test]
fn links_lead_somewhere() {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "docs/guide.md",
        "docs/settings.md",
        "docs/settings-tuning.md",
        "docs/cli.md",
        "docs/older-names.md",
    ];
    let mut links = 0;
    for page in pages {
        let text = text(page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { root().join(page) } else { root().join(page).parent().unwrap().join(file) };
            assert!(target.exists(), "{page}: {link}");
            if !heading.is_empty() {
                let there = std::fs::read_to_string(&target).unwrap();
                let slug = |line: &str| {
                    let line = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                    line.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect::<String>()
                };
                let mut headings = there.lines().filter(|line| line.starts_with('#')).map(slug);
                assert!(headings.any(|known| known == heading), "{page}: {link}");
            }
            links += 1;
        }
    }
    assert!(links > 10, "only {links}");
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = cairn(&["completions", shell]);
        for word in ["session", "simulate", "permission-mode"] {
            assert!(script.contains(word), "{shell} does not complete {word}");
        }
    }
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let page = cairn(&["man"]);
    for part in
        [".TH CAIRN 1", ".SH FILES", ".SH ENVIRONMENT", "ANTHROPIC_API_KEY", ".SH \"EXIT STATUS\"", "cairn demo"]
    {
        assert!(page.contains(part), "{part}");
    }
    let folder = tempfile::tempdir().unwrap();
    let listed = cairn(&["man", "--dir", folder.path().to_str().unwrap()]);
    // One page for each heading of the reference that names a command.
    let commands = text("docs/cli.md").lines().filter(|line| line.starts_with('#') && line.contains("`cairn")).count();
    assert_eq!(listed.lines().count(), commands, "{listed}");
    assert!(folder.path().join("cairn-session-list.1").is_file(), "{listed}");
}

#[test]
fn the_picture_is_small_and_of_this_program() {
    let picture = text("docs/picture.svg");
    assert!(picture.len() < PICTURE_LIMIT, "{} bytes", picture.len());
    for part in ["cairn", "The tests fail. Make them pass.", "yes, once", "context left"] {
        assert!(picture.contains(part), "the picture lacks {part:?}: remake it with scripts/picture");
    }
}
