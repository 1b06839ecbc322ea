use std::path::Path;

use serde_json::json;
use transcript::Log;
use transcript::line::Translator;

use crate::pairing::fault;
use crate::skipped::skipped_on_this_machine;

fn load(text: &str) -> Log {
    let mut translator = Translator::default();
    Log::load(text.lines().flat_map(|line| translator.parse(line.as_bytes()).unwrap_or_default()).collect())
}

/// LOG-2: sessions recorded by other agents load as they are and project to a history the API accepts.
/// (Runs where the recordings lie beside the project.)
#[test]
fn recorded_sessions_of_other_agents_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/transcripts");
    let Ok(files) = std::fs::read_dir(&folder) else {
        return skipped_on_this_machine(&format!("there are no recordings at {}", folder.display()));
    };
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

/// LOG-2: what Claude Code put beside the user's words is seen as it was sent; what it told the model about itself (its
/// tools, its model) is not ours to repeat.
#[test]
fn attachments_of_claude_code_are_read_as_they_were_rendered() {
    let lines = [
        json!({"type": "user", "uuid": "1", "parentUuid": null, "message": {"role": "user", "content": "see @stone.txt"}}),
        json!({"type": "attachment", "uuid": "2", "parentUuid": "1", "attachment": {"type": "file"}, "renderedRole": "user",
               "rendered": [{"content": "called Read"}, {"content": [{"type": "text", "text": "granite"}]}]}),
        json!({"type": "attachment", "uuid": "3", "parentUuid": "2", "attachment": {"type": "skill_listing"},
               "renderedRole": "system", "rendered": [{"content": "skills of another program"}]}),
        json!({"type": "attachment", "uuid": "4", "parentUuid": "3", "attachment": {"type": "session_context"}}),
        json!({"type": "attachment", "uuid": "5", "parentUuid": "4", "attachment": {"type": "odd"}, "rendered": 7, "renderedRole": []}),
        json!({"type": "attachment", "uuid": "s", "parentUuid": "5", "attachment": {"type": "remote_session_change"},
               "renderedRole": "user", "rendered": [{"content": "the session moved to another machine"}]}),
        json!({"type": "user", "uuid": "6", "parentUuid": "s", "message": {"role": "user", "content": "well?"}}),
    ];
    let log = load(&lines.map(|line| line.to_string()).join("\n"));
    let texts: Vec<String> = log.view().blocks().filter_map(|(_, _, block)| block.as_text()).collect();
    assert_eq!(texts, ["see @stone.txt", "called Read", "granite", "well?"]);
}

/// LOG-2: after a compaction that keeps a tail Claude Code goes on from the last kept line: the parents lead past
/// boundary and summary, and the summary stands before what was kept all the same.
#[test]
fn a_compaction_of_claude_code_keeps_its_tail() {
    let user = |id: &str, parent: &str, text: &str| json!({"type": "user", "uuid": id, "parentUuid": parent, "message": {"role": "user", "content": text}});
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
        "logicalParentUuid": "3", "compactMetadata": {"trigger": "auto", "preTokens": 9,
        "preservedMessages": {"anchorUuid": "s", "uuids": ["2", "3"]}}});
    let mut summary = user("s", "b", "summary of one");
    summary["isCompactSummary"] = true.into();
    let before = [user("1", "0", "one"), user("2", "1", "two"), user("3", "2", "three"), boundary, summary];
    for (parent, case) in [("3", "from the kept line"), ("s", "from the summary")] {
        let text: Vec<String> = before.iter().chain([&user("4", parent, "four")]).map(ToString::to_string).collect();
        let log = load(&text.join("\n"));
        let texts: Vec<String> = log.view().blocks().filter_map(|(_, _, block)| block.as_text()).collect();
        assert_eq!(texts, ["summary of one", "two", "three", "four"], "{case}");
    }
}

/// LOG-2: a summary that nothing leads to, of a compaction that kept nothing, was abandoned with its branch.
#[test]
fn an_abandoned_compaction_of_claude_code_does_not_count() {
    let lines = [
        json!({"type": "user", "uuid": "1", "parentUuid": null, "message": {"role": "user", "content": "one"}}),
        json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null, "logicalParentUuid": "1",
               "compactMetadata": {"trigger": "manual"}}),
        json!({"type": "user", "uuid": "s", "parentUuid": "b", "isCompactSummary": true,
               "message": {"role": "user", "content": "summary"}}),
        json!({"type": "user", "uuid": "2", "parentUuid": "1", "message": {"role": "user", "content": "two"}}),
    ];
    let log = load(&lines.map(|line| line.to_string()).join("\n"));
    let texts: Vec<String> = log.view().blocks().filter_map(|(_, _, block)| block.as_text()).collect();
    assert_eq!(texts, ["one", "two"]);
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
