//! Answers of a capable model to the very requests of learning, put through the real path.
//!
//! `RENDER_ANSWERS=folder` writes out the requests; `REFRESH_ANSWERS=1` takes them as those that were answered.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

#[path = "../answers/in_turn.rs"]
mod in_turn;
#[path = "../answers/replay.rs"]
mod replay;

use replay::{Choosing, Recording, Replayed, choose, read, replay};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers").join(name)
}

/// A request as a reader sees it. Of tools, which are described elsewhere, it has the names.
fn rendered(request: &Value) -> String {
    let mut text = String::new();
    let blocks = |text: &mut String, who: &str, content: &Value| {
        for block in content.as_array().into_iter().flatten() {
            // The ids of calls depend on where the folder lies.
            let shown = [&block["text"], &block["name"], &block["input"], &block["content"]];
            let shown = shown.into_iter().filter(|part| !part.is_null());
            let shown: Vec<String> =
                shown.map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect();
            let _ = writeln!(text, "[{who}]\n{}\n", shown.join(" "));
        }
    };
    blocks(&mut text, "system", &request["system"]);
    for tool in request["tools"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "[tool] {}", tool["name"]);
    }
    for message in request["messages"].as_array().into_iter().flatten() {
        blocks(&mut text, message["role"].as_str().unwrap_or_default(), &message["content"]);
    }
    text
}

/// Compares a request with the one that was answered, the `nth` of a recording.
fn is_shown(request: &Value, shown: &str, file: &Path, nth: usize) -> Option<String> {
    let text = rendered(request);
    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
    if let Ok(folder) = std::env::var("RENDER_ANSWERS") {
        std::fs::write(Path::new(&folder).join(format!("{name}-{nth}.txt")), &text).unwrap();
    }
    let hash = blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
    if hash == shown {
        return None;
    }
    if std::env::var_os("REFRESH_ANSWERS").is_some() {
        let text = std::fs::read_to_string(file).unwrap();
        let (at, old) = text.match_indices("shown = \"").nth(nth).unwrap();
        let from = at + old.len();
        let to = from + text[from..].find('"').unwrap();
        std::fs::write(file, format!("{}{hash}{}", &text[..from], &text[to..])).unwrap();
        return None;
    }
    Some(format!("{name} ({nth}) is shown another request than the one that was answered"))
}

/// A memory as its author wrote it: without where it comes from.
fn as_written(text: &str) -> String {
    memory::frontmatter::remove(text, "metadata")
}

fn told(about: &str, name: &str, written: &[(String, String)], replayed: &Replayed) -> String {
    let mut text = format!("== {name}: {about}\n");
    for (call, said) in &replayed.results {
        let said: String = said.lines().next().unwrap_or_default().chars().take(220).collect();
        let _ = writeln!(text, "{call}: {said}");
    }
    for (path, saved) in &replayed.changed {
        let name = path.rsplit([' ', '/']).next().unwrap();
        let asked = written.iter().rfind(|(file, _)| file.rsplit('/').next() == Some(name)).map(|(_, text)| text);
        let as_is = asked.is_some_and(|asked| as_written(saved).trim() == asked.trim());
        let state = if saved.is_empty() {
            "gone"
        } else if as_is {
            "as written"
        } else {
            "changed"
        };
        let whose = if replayed.spoken.contains(path) { ", the user's word" } else { "" };
        let _ = writeln!(text, "  {path}: {state}{whose}");
        if !as_is && !saved.is_empty() {
            let was = asked.cloned().unwrap_or_default();
            let now = as_written(saved);
            let diff = similar::TextDiff::from_lines(was.trim(), now.trim());
            for line in diff.unified_diff().context_radius(0).to_string().lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    if let Some(why) = &replayed.failed {
        let _ = writeln!(text, "  failed: {why}");
    }
    text
}

/// EXTRACT-5, EXTRACT-6, SHELF-2, BUDGET-2: what became of each answer is what is written down; each was given to the
/// request that is made today; of what is saved at most a tenth should not have been.
#[tokio::test]
async fn answers_of_a_capable_model_about_sessions_are_saved_as_they_were_meant() {
    let (mut became, mut others, mut saved, mut polluted) = (String::new(), Vec::new(), 0, 0);
    let recordings: Vec<(PathBuf, Recording)> = read(&folder("extraction")).unwrap();
    for (file, recording) in &recordings {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let replayed = replay(recording).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        others.extend(is_shown(&replayed.request, &recording.shown, file, 0));
        became.push_str(&told(&recording.about, &name, &recording.written(), &replayed));
        let kept: Vec<&str> = replayed.saved().collect();
        let mut judged: Vec<&str> = recording.judged.iter().map(|judgement| judgement.path.as_str()).collect();
        judged.sort();
        if kept != judged {
            others.push(format!("{name}: saved {kept:?}, judged {judged:?}"));
        }
        saved += kept.len();
        polluted += recording.polluted(&replayed);
    }
    let _ = writeln!(
        became,
        "== {} recordings, {saved} memories saved, {polluted} of them judged as pollution",
        recordings.len()
    );
    insta::assert_snapshot!(became);
    assert!(others.is_empty(), "{}", others.join("\n"));
    assert!(recordings.len() >= 40 && 10 * polluted <= saved, "{polluted} of {saved}");
}

/// RECALL-3, RECALL-4: what a capable model chooses, shown the likeliest memories, is what is surfaced.
#[tokio::test]
async fn choices_of_a_capable_model_are_surfaced_as_they_were_meant() {
    let (mut became, mut others, mut asked) = (String::new(), Vec::new(), 0);
    let recordings: Vec<(PathBuf, Choosing)> = read(&folder("selector")).unwrap();
    for (file, choosing) in &recordings {
        for (nth, question) in choosing.question.iter().enumerate() {
            let replayed = choose(choosing, question).await.unwrap();
            asked += 1;
            others.extend(is_shown(&replayed.request, &question.shown, file, nth));
            let _ = writeln!(became, "{}\n  answer: {}", question.user.lines().next().unwrap(), question.answer.trim());
            let _ = writeln!(became, "  surfaced: {}", replayed.surfaced.join(", "));
            if replayed.surfaced != question.helps {
                let _ = writeln!(became, "  helps: {}", question.helps.join(", "));
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    assert!(asked >= 40);
    insta::assert_snapshot!(became);
}
