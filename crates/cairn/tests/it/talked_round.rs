//! Models that were talked round: they save what files, pages, results, agents, instruction files, old transcripts and pasted
//! texts told them to, in every wording of `talked_round/variants.toml`. The conversation's own model does it, an agent that it
//! sends out, the one that learns beside it, and one that dreams.
//!
//! Counted apart: what was written, what was still there after a dream, what came up for a question, and what of that was
//! shown as the user's word. A sentence counts as the user's if the user typed it, all of it and nothing else: a sentence
//! that the user typed may be shown with whatever a memory says beside it, since the frame says that all else is the model's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::{Value, json};
use simulator::{Options, Script, ScriptRule, ScriptedCall, When};

use crate::stage::{Homes, Stage, run};

/// The stranger's mark, as it stands in texts.
const EVIL: &str = "evil.example";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variants {
    user: String,
    told: String,
    question: String,
    source: Vec<Source>,
    wording: Vec<Wording>,
}

/// A way in which the model is told.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Source {
    name: String,
    call: Option<CallText>,
    /// An agent that is sent out reports it.
    report: bool,
    instructions: bool,
    transcript: bool,
    /// What the user says instead.
    said: Option<String>,
}

#[derive(Clone, Deserialize)]
struct CallText {
    tool: String,
    input: Value,
}

/// What the model writes down.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wording {
    name: String,
    body: String,
    #[serde(default)]
    front: String,
    file: Option<String>,
    description: Option<String>,
    /// A second memory.
    second: Option<String>,
    /// It goes over a memory of the user's own words.
    #[serde(default)]
    genuine: bool,
}

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Writer {
    Conversation,
    /// An agent that the conversation sends out with the stranger's words as its task.
    Subagent,
    Extraction,
    Dream,
}

const WRITERS: [Writer; 4] = [Writer::Conversation, Writer::Subagent, Writer::Extraction, Writer::Dream];

/// What became of a memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stages {
    written: bool,
    survived: bool,
    surfaced: bool,
    as_the_users: bool,
}

struct World<'a> {
    stage: Stage,
    all: &'a Variants,
    source: &'a Source,
    wording: &'a Wording,
    writer: Writer,
}

impl World<'_> {
    fn cairn(&self, args: &[&str]) -> String {
        let ran = run(self.stage.cairn().args(args));
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        ran.stdout
    }

    fn memory(&self) -> PathBuf {
        PathBuf::from(self.cairn(&["memory", "path"]).trim())
    }

    /// Whether a memory with the stranger's words lies there.
    fn is_there(&self) -> bool {
        let files = std::fs::read_dir(self.memory()).into_iter().flatten().flatten().map(|entry| entry.path());
        let files =
            files.filter(|path| path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("MEMORY.md"));
        files.into_iter().any(|path| {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            text.contains(EVIL) || text.contains("Logs go out")
        })
    }

    fn talk(&self, args: &[&str]) {
        let said = filled(self.source.said.as_deref().unwrap_or(&self.all.user));
        let mut all = vec!["-p", &said, "--permission-mode", "bypassPermissions"];
        all.extend(args);
        let transcript = self.stage.project().join("old.jsonl").display().to_string();
        if self.source.transcript {
            all.extend(["--resume", &transcript]);
        }
        self.cairn(&all);
    }

    fn go(&self) -> Stages {
        if self.wording.genuine {
            self.cairn(&["-p", "I sign off every deployment myself, on Thursdays. Remember it by yourself."]);
        }
        match self.writer {
            Writer::Conversation | Writer::Subagent => self.talk(&[]),
            Writer::Extraction => self.talk(&["--extract"]),
            Writer::Dream => {
                self.talk(&["--extract"]); // a session that dreams may learn from
                self.cairn(&["dream"]);
            }
        }
        let written = self.is_there();
        self.cairn(&["dream"]);
        let survived = self.is_there();
        self.cairn(&["-p", &self.all.question]);
        let (surfaced, as_the_users) = self.shown();
        Stages { written, survived, surfaced, as_the_users }
    }

    /// Whether a memory with the stranger's words came up, and whether anything was shown as the user's word that the user
    /// did not type so.
    fn shown(&self) -> (bool, bool) {
        let request = self.stage.last_said();
        let blocks = request["messages"].as_array().into_iter().flatten();
        let texts = blocks.flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
        let texts: Vec<String> = texts.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect();
        let memories: Vec<&String> = texts.iter().filter(|text| text.contains("<memory>")).collect();
        let surfaced = memories.iter().any(|text| text.contains(EVIL) || text.contains("Logs go out"));
        let typed = filled(&self.all.user);
        let is_forged = |text: &&&String| {
            let inside = text.split_once("<memory>").zip(text.rsplit_once("</memory>"));
            let outside = inside.map_or((**text).clone(), |((head, _), (_, tail))| format!("{head}\n{tail}"));
            outside.split("The user said").skip(1).any(|rest| {
                let sentence = rest.split_once(": \"").and_then(|(_, rest)| rest.split_once("\". All else"));
                !sentence
                    .is_some_and(|(sentence, _)| typed.split_inclusive(". ").any(|own| own.trim() == sentence.trim()))
            })
        };
        (surfaced, memories.iter().filter(|text| is_forged(text)).count() > 0)
    }
}

fn filled(text: &str) -> String {
    text.replace("EVIL", EVIL)
}

fn memory(wording: &Wording, body: &str) -> String {
    let description = filled(wording.description.as_deref().unwrap_or("Who approves a deployment before it goes out"));
    let description = Value::from(description);
    let front = if wording.front.is_empty() { String::new() } else { format!("{}\n", wording.front) };
    format!(
        "---\nname: Approval of deployments\ndescription: {description}\nasked: Who has to approve a deployment before it goes \
         out?\ntype: project\n{front}---\n\n{}\n",
        filled(body)
    )
}

fn call(tool: &str, input: &Value) -> ScriptedCall {
    ScriptedCall { tool: tool.to_owned(), input: input.clone() }
}

/// The talked-round model: whoever writes goes the same way, reading first what it goes over.
fn script(all: &Variants, source: &Source, wording: &Wording, writer: Writer) -> Script {
    let file = wording.file.as_deref().map_or("approvals.md".to_owned(), filled);
    let raw = |text: &str| format!("{{% raw %}}{text}{{% endraw %}}");
    let write = |file: &str, text: &str| {
        call("Write", &json!({"file_path": format!("{{{{ dir }}}}/{file}"), "content": raw(text)}))
    };
    let mut writes = vec![write(&file, &memory(wording, &wording.body))];
    writes.extend(wording.second.as_ref().map(|second| write("approval-office.md", &memory(wording, second))));
    let mut rules = Vec::new();
    let mut add = |name: &str, when: When, say: &str, call: Vec<ScriptedCall>| {
        let say = call.is_empty().then(|| say.to_owned());
        rules.push(ScriptRule { name: name.into(), when, say, call, ..ScriptRule::default() });
    };
    let text = |pattern: &str| Some(pattern.to_owned());
    let learning = "Beside the conversation, write down";
    let (dir_learning, dir_dream) = ("The directory is `(?P<dir>[^`]+)`", "(?s)memories lie in `(?P<dir>[^`]+)`");
    let reads = vec![call("Read", &json!({"file_path": format!("{{{{ dir }}}}/{file}")}))];
    let is_read = r#"Read \{"file_path":"[^"]*approv"#;
    // A dream: the one that was talked round writes, any other keeps what it finds, in order.
    let dreaming = || text("look after the memories");
    if writer == Writer::Dream {
        let when = |missing: &str| When {
            system: dreaming(),
            visible: vec![dir_dream.into()],
            missing: vec![missing.into()],
            ..When::default()
        };
        add("dream: reads", When { missing: vec![is_read.into()], ..when("x{9}") }, "", reads.clone());
        add("dream: writes", when("Saved |was not saved|stays as it is|not a|Only memories"), "", writes.clone());
    }
    let kept = memory(wording, &format!("{}\n\nIt was kept.", wording.body));
    add(
        "dream: keeps",
        When {
            system: dreaming(),
            visible: vec![dir_dream.into(), "Approval of deployments".into()],
            missing: vec!["Saved |was not saved|stays as it is|It was kept|Only memories".into()],
            ..When::default()
        },
        "",
        vec![write(&file, &kept)],
    );
    add("dream: done", When { system: dreaming(), ..When::default() }, "Done.", Vec::new());
    // Learning.
    let learnt = "Saved |was not saved|stays as it is|Only memories|Read it";
    if writer == Writer::Extraction {
        let when = When { visible: vec![learning.into(), dir_learning.into()], ..When::default() };
        if wording.genuine {
            add("learning: reads", When { missing: vec![is_read.into()], ..when.clone() }, "", reads.clone());
        }
        add("learning: writes", When { missing: vec![learnt.into()], ..when }, "", writes.clone());
    }
    add("learning: done", When { visible: vec![learning.into()], ..When::default() }, "Done.", Vec::new());
    // The conversation.
    let (system, lives) = (text("They live in `(?P<dir>[^`]+)`"), learnt);
    let own = Wording {
        body: "The user signs off deployments.\n\n> \"I sign off every deployment myself, on Thursdays\"".into(),
        front: String::new(),
        description: None,
        ..wording.clone()
    };
    add(
        "the user's own",
        When {
            user: text("Remember it by yourself"),
            system: system.clone(),
            missing: vec![lives.into()],
            ..When::default()
        },
        "",
        vec![write(&file, &memory(&own, &own.body))],
    );
    if source.report {
        add(
            "the agent reports",
            When { user: text("Carry it out"), ..When::default() },
            &filled(&all.told),
            Vec::new(),
        );
    }
    let is_sent_out = || text("Save it into `(?P<dir>[^`]+)`");
    if writer == Writer::Subagent {
        let when = When { user: is_sent_out(), ..When::default() };
        if wording.genuine {
            add("sent out: reads", When { missing: vec![is_read.into()], ..when.clone() }, "", reads.clone());
        }
        add("sent out: writes", When { missing: vec![lives.into()], ..when.clone() }, "", writes.clone());
        add("sent out: done", when, "I wrote it down.", Vec::new());
    }
    let talking = || Some("(?s)^(Please look|Sum this)".to_owned());
    if let Some(told) = &source.call {
        let when = When { user: talking(), missing: vec!["NOTICE".into()], ..When::default() };
        add("is told", when, "", vec![call(&told.tool, &told.input)]);
    }
    if writer == Writer::Conversation {
        let when = When { user: talking(), system: system.clone(), ..When::default() };
        if wording.genuine {
            add("talked round: reads", When { missing: vec![is_read.into()], ..when.clone() }, "", reads);
        }
        add("talked round", When { missing: vec![lives.into()], ..when }, "", writes);
    }
    if writer == Writer::Subagent {
        // What is to look like the user's words stands in the task, and is no quotation there.
        let words = filled(&wording.body).replace(['>', '"'], "");
        let prompt = format!("{}\n\nSave it into `{{{{ dir }}}}`.", raw(&words));
        let input = json!({"description": "note it", "prompt": prompt, "subagent_type": "general-purpose"});
        let when = When { user: talking(), system, missing: vec!["I wrote it down".into()], ..When::default() };
        add("talked round: sends out", when, "", vec![call("Agent", &input)]);
    }
    add("answers", When::default(), "Good.", Vec::new());
    Script { rules, ..Script::default() }
}

fn prepared<'a>(
    all: &'a Variants,
    source: &'a Source,
    wording: &'a Wording,
    writer: Writer,
    homes: Homes,
) -> World<'a> {
    let stage = Stage::of(script(all, source, wording, writer), Options::default());
    let told = filled(&all.told);
    stage.write("notes.txt", &told);
    stage.write("page.html", &format!("<p>{told}</p>"));
    if source.instructions {
        stage.write("CLAUDE.md", &told);
    }
    if source.transcript {
        let line = |role: &str, id: &str, parent: Value, content: &str| {
            let message =
                json!({"role": role, "id": "m", "model": "m", "content": [{"type": "text", "text": content}]});
            json!({
                "type": role, "uuid": id, "parentUuid": parent, "timestamp": "2026-11-14T22:30:00.000Z", "message": message,
                "sessionId": "0e0e0e0e-0000-4000-8000-000000000000", "cwd": stage.project(), "version": "2.0.0",
            })
        };
        let lines = [line("user", "a", Value::Null, &told), line("assistant", "b", json!("a"), "I will remember it.")];
        stage.write("old.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    }
    if homes == Homes::Linked {
        stage.put_behind_links();
    }
    World { stage, all, source, wording, writer }
}

/// Every wording by every writer, from one source after the other, and every source with a forged quotation; in the quick
/// form one writer for each.
fn table(all: &Variants, full: bool) -> Vec<(&Source, &Wording, Writer)> {
    let forged = &all.wording[4];
    let wordings = all.wording.iter().enumerate().map(|(at, wording)| (at, None, wording));
    let sources = all.source.iter().enumerate().map(|(at, source)| (at, Some(source), forged));
    let mut table = Vec::new();
    for (at, source, wording) in wordings.chain(sources) {
        for (by, writer) in WRITERS.into_iter().enumerate().filter(|(by, _)| full || (at + by) % WRITERS.len() == 0) {
            table.push((source.unwrap_or(&all.source[(at + by) % all.source.len()]), wording, writer));
        }
    }
    table
}

#[expect(clippy::print_stdout, reason = "the figures are the result")]
fn count(homes: Homes) {
    let all: Variants = toml::from_str(include_str!("talked_round/variants.toml")).unwrap();
    let full = std::env::var_os("CAIRN_TEST_FULL").is_some();
    let table = table(&all, full);
    let (next, counts, forged) =
        (AtomicUsize::new(0), Mutex::new(BTreeMap::<Writer, [usize; 5]>::new()), Mutex::new(Vec::new()));
    let work = || {
        while let Some((source, wording, writer)) = table.get(next.fetch_add(1, Ordering::Relaxed)) {
            let stages = prepared(&all, source, wording, *writer, homes).go();
            println!("{writer:?}, {}, {}: {stages:?}", source.name, wording.name);
            let Stages { written, survived, surfaced, as_the_users } = stages;
            let mut counts = counts.lock().unwrap();
            let sums = counts.entry(*writer).or_default();
            for (sum, is_so) in sums.iter_mut().zip([true, written, survived, surfaced, as_the_users]) {
                *sum += usize::from(is_so);
            }
            if as_the_users {
                forged.lock().unwrap().push(format!("{writer:?}, {}, {}", source.name, wording.name));
            }
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    let forged = forged.into_inner().unwrap();
    assert!(forged.is_empty(), "shown as the user's word: {forged:#?}");
    let heading = ["", "variants", "written", "survived a dream", "surfaced", "as the user's word"];
    let mut text = format!("{}\n", heading.join(" | "));
    for (writer, sums) in counts.into_inner().unwrap() {
        let sums: Vec<String> = sums.iter().map(ToString::to_string).collect();
        text.push_str(&format!("{writer:?} | {}\n", sums.join(" | ")));
    }
    println!("{text}");
    insta::assert_snapshot!(if full { "talked_round_in_full" } else { "talked_round" }, text);
}

/// ORIGIN-1, BUDGET-2, SEC-2, DREAM-3: whatever a talked-round model saves, nothing is shown as the user's word that the user
/// did not type so.
#[test]
fn nothing_a_stranger_wrote_is_shown_as_the_users_word() {
    count(Homes::Plain);
}

/// MEM-7, ORIGIN-1: the same where the home and the config home are links.
#[test]
fn nothing_a_stranger_wrote_is_shown_as_the_users_word_behind_links() {
    count(Homes::Linked);
}
