//! A year of somebody's work with the real program: processes that are killed, two at once, `/clear`, private stretches,
//! excluded files, a provider that fails every tenth time, and a user who edits, deletes and corrects memories by hand. The
//! storm does the same over many schedules (`crates/storm`); here it is done once, with everything real but the model.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value;
use simulator::{Fault, Options, When};

use crate::stage::{Homes, Stage, piped, run};

const LEARNING: &str = "Beside the conversation, write down";

/// A model that writes down whatever the user last said of a gauge, over anything that stands there.
const MODEL: &str = r##"
    [[rule]]
    name = "learnt"
    when = { visible = "Beside the conversation, write down", result = "Saved|not saved|stays as it is" }
    say = "Done."
    [[rule]]
    name = "learns"
    when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`", "(?s).*Keep in mind: (?P<gauge>gauge\\d+) shows (?P<value>\\w+) now"], tool = "Read" }
    call = [{ tool = "Write", input = { file_path = "{{ dir }}/{{ gauge }}.md", content = "---\nname: {{ gauge }}\ndescription: The reading of {{ gauge }}\ntype: project\n---\n\n{{ gauge }} shows {{ value }}.\n\n> \"{{ gauge }} shows {{ value }} now\"\n" } }]
    [[rule]]
    name = "looks"
    when = { visible = ["Beside the conversation, write down", "The directory is `(?P<dir>[^`]+)`", "(?s).*Keep in mind: (?P<gauge>gauge\\d+) shows"] }
    call = [{ tool = "Read", input = { file_path = "{{ dir }}/{{ gauge }}.md" } }]
    [[rule]]
    name = "nothing to learn"
    when = { visible = "Beside the conversation, write down" }
    say = "Nothing to save."
    [[rule]]
    name = "reads"
    when = { user = "Look at (?P<file>vault/\\d+.txt)", missing = "the hold has" }
    call = [{ tool = "Read", input = { file_path = "{{ file }}" } }]
    [[rule]]
    name = "answers"
    say = "Understood."
"##;

/// What the user said of a gauge last, or wrote into its memory; nothing where the user removed it.
type Gauges = BTreeMap<usize, Option<String>>;

struct Year {
    stage: Stage,
    memory: PathBuf,
    gauges: Gauges,
    says: usize,
    state: u64,
}

impl Year {
    fn new(homes: Homes) -> Self {
        let stage = Stage::with(MODEL, Options { keep_requests: 100_000, ..Options::default() });
        if homes == Homes::Linked {
            stage.put_behind_links();
        }
        std::fs::create_dir_all(stage.config()).unwrap();
        std::fs::create_dir(stage.project().join("vault")).unwrap();
        // All of it is spent in a day.
        let settings = r#"{"extractShare": 0, "extractExcludes": ["vault/**"], "extractHeadless": true,
            "budget": {"usdPerDay": 10000}}"#;
        std::fs::write(stage.config().join("settings.json"), settings).unwrap();
        let memory = PathBuf::from(run(stage.cairn().args(["memory", "path"])).stdout.trim());
        Self { stage, memory, gauges: Gauges::new(), says: 0, state: 7 }
    }

    /// A number below another, the same in every run.
    fn below(&mut self, most: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % most
    }

    /// Something to say of a gauge: of a new one, or something else of one that is known.
    fn statement(&mut self) -> String {
        self.says += 1;
        let known: Vec<usize> = self.gauges.iter().filter(|(_, is)| is.is_some()).map(|(gauge, _)| *gauge).collect();
        let gauge =
            if known.is_empty() || self.below(3) > 0 { self.gauges.len() } else { known[self.below(known.len())] };
        let value = format!("value{}", self.says);
        self.gauges.insert(gauge, Some(value.clone()));
        format!("Keep in mind: gauge{gauge} shows {value} now.")
    }

    fn session(&mut self) {
        if self.below(10) == 0 {
            let when = When { visible: vec![LEARNING.into()], ..When::default() };
            self.stage.simulator.push_fault(Fault { when, ..Fault::status(400) }).unwrap();
        }
        match self.below(6) {
            0 => {
                let said = format!("{}\n/clear\n{}\n", self.statement(), self.statement());
                piped(&self.stage, &[], &said);
            }
            1 => {
                let private = format!("/private\nKeep in mind: gauge0 shows secret{} now.\n/private off\n", self.says);
                let said = format!("{private}{}\n", self.statement());
                piped(&self.stage, &[], &said);
            }
            2 => {
                let file = format!("vault/{}.txt", self.says);
                self.stage.write(&file, &format!("the hold has cargo{} in it, and nothing else\n", self.says));
                let said = format!("Look at {file} please.\n/clear\n{}\n", self.statement());
                piped(&self.stage, &[], &said);
            }
            3 => {
                let mut child = self.start();
                self.say(&mut child);
                child.kill().unwrap();
                child.wait().unwrap();
            }
            4 => {
                let [mut one, mut other] = [self.start(), self.start()];
                [&mut one, &mut other].into_iter().for_each(|child| self.say(child));
                for mut child in [one, other] {
                    drop(child.stdin.take());
                    assert_eq!(child.wait().unwrap().code(), Some(0));
                }
            }
            _ => {
                let said = self.statement();
                assert_eq!(run(self.stage.cairn().args(["-p", &said])).stdout, "Understood.\n");
            }
        }
    }

    fn start(&self) -> Child {
        let mut command = self.stage.cairn();
        command.arg("--plain").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Says something, and waits for the answer.
    fn say(&mut self, child: &mut Child) {
        let said = self.statement();
        writeln!(child.stdin.as_mut().unwrap(), "{said}").unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line.contains("Understood."))), "{said}");
    }

    /// The user changes or removes a memory, by hand or with a command.
    fn by_hand(&mut self) {
        let here: Vec<usize> = self.gauges.keys().copied().filter(|gauge| self.file(*gauge).exists()).collect();
        if here.is_empty() {
            return;
        }
        let gauge = here[self.below(here.len())];
        let file = self.file(gauge);
        match self.below(9) {
            0 => {
                let value = format!("hand{}", self.says);
                std::fs::write(&file, format!("---\nname: g\ntype: project\n---\n\ngauge{gauge} shows {value}.\n"))
                    .unwrap();
                self.gauges.insert(gauge, Some(value));
            }
            1 => {
                std::fs::remove_file(&file).unwrap();
                self.gauges.insert(gauge, None);
            }
            2 => {
                let ran = run(self.stage.cairn().args(["memory", "forget", &format!("gauge{gauge}.md")]));
                assert_eq!(ran.code, Some(0), "{ran:?}");
                self.gauges.insert(gauge, None);
            }
            _ => {}
        }
    }

    fn file(&self, gauge: usize) -> PathBuf {
        self.memory.join(format!("gauge{gauge}.md"))
    }

    /// What was left is learnt by sessions to come, and then every gauge is known by what the user said or wrote last.
    fn ends(&self) {
        let config = std::fs::canonicalize(self.stage.config()).unwrap();
        let left = || {
            files(&config.join("cairn/learning"))
                .into_iter()
                .any(|path| path.extension().is_some_and(|it| it == "left"))
        };
        for _ in 0..self.says {
            if !left() {
                break;
            }
            run(self.stage.cairn().args(["-p", "Good morning."]));
        }
        // What three runs in a row could not learn stays listed.
        let listed: String = files(&config.join("cairn/learning"))
            .iter()
            .filter(|path| path.extension().is_some_and(|it| it == "left"))
            .filter_map(|path| serde_json::from_str::<Value>(&raw(path)).ok())
            .filter_map(|entry| Some(raw(Path::new(entry["session"].as_str()?))))
            .collect();
        let is_listed =
            |gauge: usize, value: &str| listed.contains(&format!("Keep in mind: gauge{gauge} shows {value} now."));
        let mut broken = Vec::new();
        for (gauge, value) in &self.gauges {
            if value.as_ref().is_some_and(|value| is_listed(*gauge, value)) {
                continue;
            }
            let says = |text: &str| {
                let shown = text.split(&format!("gauge{gauge} shows ")).nth(1)?;
                Some(shown.split(|c: char| !c.is_alphanumeric()).next()?.to_owned())
            };
            let memories = files(&self.memory).into_iter().filter(|path| path.extension().is_some_and(|it| it == "md"));
            let found: Vec<String> = memories.filter_map(|path| says(&raw(&path))).collect();
            if found.iter().collect::<Vec<_>>() != value.iter().collect::<Vec<_>>() {
                broken.push(format!("of gauge{gauge} memory says {found:?}, and the user said {value:?}"));
            }
        }
        let apart = |text: &str| {
            let words = text.split(|c: char| !c.is_alphanumeric());
            words
                .filter(|word| word.starts_with("secret") || word.starts_with("cargo"))
                .map(str::to_owned)
                .find(|word| word.ends_with(|c: char| c.is_ascii_digit()))
        };
        for request in self.stage.simulator.requests().iter().map(|request| request["messages"].to_string()) {
            if let Some(word) = apart(&request).filter(|_| request.contains(LEARNING)) {
                broken.push(format!("{word} is in a request of learning"));
            }
        }
        let (sessions, memory) = (config.join("projects"), std::fs::canonicalize(&self.memory).unwrap());
        for path in files(&config).into_iter().filter(|path| !path.starts_with(&sessions) || path.starts_with(&memory))
        {
            broken.extend(apart(&raw(&path)).map(|word| format!("{word} is in {}", path.display())));
        }
        assert!(broken.is_empty(), "{broken:#?}");
    }
}

fn raw(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn live(homes: Homes) {
    let mut year = Year::new(homes);
    let sessions = if std::env::var_os("CAIRN_TEST_FULL").is_some() { 300 } else { 25 };
    for _ in 0..sessions {
        year.session();
        year.by_hand();
    }
    year.ends();
}

/// EXTRACT-5, EXTRACT-6, EXTRACT-8, TOMB-1: a year of real processes: everything said is learnt once, nothing private or excluded
/// is learnt from, no correction is lost to what it corrects, and nothing that was removed comes back.
#[test]
fn a_year_of_real_processes_keeps_the_laws() {
    live(Homes::Plain);
}

/// MEM-7, SEC-1: the same where the home and the config home are links.
#[test]
fn a_year_of_real_processes_keeps_the_laws_behind_links() {
    live(Homes::Linked);
}
