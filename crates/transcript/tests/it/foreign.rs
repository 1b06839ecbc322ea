use std::path::Path;

use transcript::Log;
use transcript::line::Translator;

use crate::pairing::fault;

fn load(text: &str) -> Log {
    let mut translator = Translator::default();
    Log::load(text.lines().flat_map(|line| translator.parse(line.as_bytes()).unwrap_or_default()).collect())
}

/// LOG-2: sessions recorded by other agents load as they are and project to a history the API accepts.
/// (Runs where the recordings lie beside the project.)
#[test]
fn recorded_sessions_of_other_agents_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/transcripts");
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for file in
        files.flatten().map(|file| file.path()).filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
    {
        let log = load(&std::fs::read_to_string(&file).unwrap());
        let messages = log.view().messages();
        assert_eq!(fault(&messages), None, "{}", file.display());
        assert!(messages.len() > 1 && log.lines().len() > 50 && log.is_foreign(), "{}", file.display());
    }
}

/// LOG-2: a boundary and its summary hide what came before; parallel calls that branch keep all their results; an
/// abandoned branch is gone; lines of one reply merge though a result stands between them; unknown lines are no error.
#[test]
fn a_session_of_claude_code_loads_as_it_is() {
    let log = load(include_str!("../data/claude-code.jsonl"));
    insta::assert_snapshot!(shape(&log));
}

/// LOG-2: a session of pi loads: its order is the conversation, and its compaction keeps the entries it names.
#[test]
fn a_session_of_pi_loads_as_it_is() {
    let log = load(include_str!("../data/pi.jsonl"));
    insta::assert_snapshot!(shape(&log));
}

fn shape(log: &Log) -> String {
    let line = |message: &transcript::Message| {
        let blocks: Vec<&str> = message.blocks.iter().map(|block| block.json()).collect();
        format!("{:?}\n  {}\n", message.role, blocks.join("\n  "))
    };
    log.view().messages().iter().map(line).collect()
}
