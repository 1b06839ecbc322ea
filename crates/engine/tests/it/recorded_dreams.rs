//! What becomes of a capable model's answers to the requests of a dream.

use std::path::Path;

use learning::dream::run::Dream;
use memory::changes::{KeptChange, RunHead};
use memory::quoted_sentences::Register;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dreaming::House;
use crate::recorded::{Recorded, Run, compare, difference, fixtures, snapshot};

/// A memory directory, what was said since, and what the model did about it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Situation {
    #[serde(default)]
    memory: Vec<MemoryFile>,
    #[serde(default)]
    session: Vec<SaidSession>,
    /// Memories that the user removed.
    #[serde(default)]
    forgotten: Vec<MemoryFile>,
    /// Files of the project, by path.
    #[serde(default)]
    project: std::collections::BTreeMap<String, String>,
    run: Vec<Run>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryFile {
    file: String,
    /// How many days ago it was written.
    days: i64,
    /// Who wrote it.
    by: Writer,
    head: String,
    body: String,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Writer {
    Agent,
    /// An agent, and the user has edited it since.
    Edited,
    Hand,
    ClaudeCode,
    /// No memory: a log of a day, as it is.
    Log,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidSession {
    id: String,
    days: i64,
    /// The user's words and the model's, in turn.
    said: Vec<String>,
}

impl MemoryFile {
    fn text(&self) -> String {
        let origin = match self.by {
            Writer::Agent | Writer::Edited => "metadata:\n  agent: extract\n",
            Writer::ClaudeCode => "metadata:\n  node_type: memory\n  originSessionId: 5d0c0f1e\n",
            Writer::Hand => "",
            Writer::Log => return self.body.clone(),
        };
        // Where the situation has words of its own under `metadata`, they stand there.
        let head = match self.head.split_once("metadata:\n") {
            Some((head, own)) => format!("{head}{origin}{own}"),
            None => format!("{}{origin}", self.head),
        };
        format!("---\n{head}---\n\n{}\n", self.body.trim_end())
    }
}

/// 2026-11-15, noon, so many days ago.
fn date(days: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_794_744_000 - days * 86_400).unwrap()
}

fn touch(path: &Path, days: i64) {
    std::fs::File::options().write(true).open(path).unwrap().set_modified(date(days).into()).unwrap();
}

async fn house(situation: &Situation) -> House {
    let house = House::new("[[rule]]\nsay = \"unused\"").await;
    let mut index = String::new();
    for memory in &situation.memory {
        let path = house.memory().join(&memory.file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, memory.text()).unwrap();
        touch(&path, memory.days);
        let parsed = memory::Memory::parse(&memory.file, memory.text().as_bytes(), None, 0);
        if memory.by != Writer::Log {
            let about = parsed.description.unwrap_or_default();
            index.push_str(&format!("- [{}]({}) — {about}\n", parsed.name, memory.file));
        }
    }
    std::fs::write(house.memory().join("MEMORY.md"), index).unwrap();
    for (path, text) in &situation.project {
        let path = format!("home/project/{path}");
        house.put(&path, text);
        // Glob lists the newest first.
        touch(Path::new(&house.at(&path)), 0);
    }
    for session in &situation.session {
        let (mut lines, mut parent) = (String::new(), Value::Null);
        for (n, words) in session.said.iter().enumerate() {
            let id = format!("{}-{n}", session.id);
            let (role, content) = match n % 2 {
                0 => ("user", json!(words)),
                _ => ("assistant", json!([{"type": "text", "text": words}])),
            };
            let at = (date(session.days) + jiff::SignedDuration::from_mins(n as i64)).to_string();
            let line = json!({
                "type": role, "uuid": id, "parentUuid": parent, "cwd": house.at("home/project"), "timestamp": at,
                "message": {"role": role, "id": format!("m-{id}"), "model": "m", "content": content},
            });
            lines.push_str(&format!("{line}\n"));
            parent = json!(id);
        }
        std::fs::create_dir_all(house.sessions()).unwrap();
        let path = house.sessions().join(format!("{}.jsonl", session.id));
        std::fs::write(&path, lines).unwrap();
        touch(&path, session.days);
    }
    let changes = house.site().changes();
    for memory in situation.memory.iter().filter(|memory| memory.by == Writer::Edited) {
        let (agent, at, directory) = ("extract".into(), date(memory.days).to_string(), house.memory());
        let head = RunHead { agent, session: None, model: None, at, directory };
        let mut run = changes.begin(&format!("20261101-{}", memory.file.replace(['.', '/'], "-")), head).unwrap();
        let after = Some(memory.text().replace(memory.body.trim(), "As the agent had written it."));
        run.keep(&KeptChange { path: memory.file.clone(), before: None, after, line: None }).unwrap();
        run.end().unwrap();
    }
    for memory in &situation.forgotten {
        changes.tombstones().plant(&memory.file, &memory.text(), Some(date(memory.days).to_string())).unwrap();
    }
    house
}

/// The memories as they are, but their index.
fn memories(house: &House) -> std::collections::BTreeMap<String, String> {
    let name = |path: &Path| path.strip_prefix(house.memory()).unwrap().display().to_string();
    let files = house.memories().into_iter().filter(|(path, _)| path.is_file());
    files.map(|(path, bytes)| (name(&path), String::from_utf8(bytes).unwrap())).collect()
}

/// DREAM-3, EXTRACT-6: recorded dreams do what their model meant, or are told why not; the user's own memories are as they were.
#[tokio::test]
async fn recorded_dreams_do_what_was_meant() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, situation) in fixtures::<Situation>("dream") {
        let mut runs = Vec::new();
        let mut report = String::new();
        for (number, run) in situation.run.iter().enumerate() {
            let house = house(&situation).await;
            let (memory, project, home) = (house.memory(), house.at("home/project"), house.at("home"));
            let places = [("{memory}", &*memory), ("{project}", &*project), ("{home}", &*home)];
            let model = Recorded::new(run, &places, |_| true);
            let before = memories(&house);
            let over = Dream { model: model.clone(), ..house.dream() }.run().await.unwrap();
            let after = memories(&house);
            let said = Register::in_folder(house.site().changes().folder()).read();
            report.push_str(&format!("== run {}: {:?}, {} rounds\n", number + 1, over.how, over.rounds));
            report.push_str(&model.became());
            report.push_str(&format!("said: {}\n", over.text.trim()));
            for name in before.keys().chain(after.keys()).collect::<std::collections::BTreeSet<_>>() {
                match (before.get(name), after.get(name)) {
                    (Some(was), Some(is)) if was == is => {}
                    (was, is) => {
                        let how = if is.is_none() {
                            "removed"
                        } else if was.is_none() {
                            "new"
                        } else {
                            "changed"
                        };
                        let (was, is) = (was.map_or("", |text| text), is.map_or("", |text| text));
                        let lines = if how == "removed" { String::new() } else { difference(was, is) };
                        report.push_str(&format!("{how} {name}\n{lines}"));
                        let parsed = memory::Memory::parse(name, is.as_bytes(), None, is.len() as u64);
                        match said.of(&parsed.body) {
                            Some(spoken) => report.push_str(&format!("  the user said: {}\n", spoken.sentence)),
                            None if is.contains("\n> ") => report.push_str("  the quotation is nobody's\n"),
                            None => {}
                        }
                    }
                }
            }
            count += 1;
            runs.push((run, model));
        }
        wrong.extend(compare(&path, &runs));
        snapshot(&path, &report);
    }
    assert!(
        wrong.is_empty(),
        "{wrong:#?}\nRead them with RENDER_ANSWERS=DIR; REFRESH_ANSWERS=1 takes the hashes anew."
    );
    assert!(count >= 40, "{count} runs");
}
