//! Servers that give one call after another the same id.

use serde_json::json;
use transcript::commit::{Act, CallName, Commit, Reason, Replacement, Trigger};
use transcript::line::{Body, Line, TextSource};
use transcript::{Block, Id, Log, Outcome};

use crate::session::{context, read};

const CALL: &str = "functions.Bash:0";

#[derive(Default)]
struct Talk {
    log: Log,
    written: usize,
}

impl Talk {
    fn write(&mut self, body: Body) -> Id {
        self.written += 1;
        let id = Id::from(format!("line-{}", self.written));
        self.log.append(Line::new(id.clone(), self.log.tip().cloned(), jiff::Timestamp::UNIX_EPOCH, body));
        id
    }

    /// A call with the id that all have, and its result; gives the line of the reply.
    fn round(&mut self, result: &str) -> Id {
        let blocks = vec![Block::tool_use(CALL, "Bash", &json!({"command": "date"}))];
        let id = Id::from(format!("msg-{}", self.written));
        let reply = self.write(Body::Assistant { id, model: "m".into(), blocks, usage: None, stop: None });
        let blocks = vec![Block::tool_result(CALL, &[Block::text(result)], Outcome::Done)];
        self.write(Body::User { blocks, source: TextSource::Direct });
        reply
    }

    fn commit(&mut self, act: Act) -> Id {
        self.write(Body::Commit(Commit { act, reason: Reason::default() }))
    }

    /// The results in view, as it stands and as it is read back from a file.
    fn results(&self) -> Vec<String> {
        let of = |log: &Log| -> Vec<String> {
            let blocks = log.view().blocks().map(|(_, _, block)| block.result_text());
            blocks.filter(|text| !text.is_empty()).collect()
        };
        let file: String = self.log.lines().iter().map(|line| line.render(&context())).collect();
        assert_eq!(of(&read(file.as_bytes())), of(&self.log), "written and read back it is the same");
        of(&self.log)
    }
}

/// SPILL-4, LOG-12: a preview stands for the result that went to disk, and for no later one whose call has the same id.
#[test]
fn a_new_result_does_not_show_what_an_old_one_was_replaced_by() {
    let mut talk = Talk::default();
    talk.round("one");
    talk.commit(Act::Spill { replacements: vec![Replacement { call: CALL.into(), replacement: "preview".into() }] });
    talk.round("two");
    assert_eq!(talk.results(), ["preview", "two"]);
    assert_eq!(talk.log.view().fresh_results().len(), 1, "the new one is yet to be decided about");
    talk.commit(Act::Spill { replacements: vec![Replacement { call: CALL.into(), replacement: "second".into() }] });
    assert_eq!(talk.results(), ["preview", "second"]);
}

/// MICRO-1, LOG-12: a clearing takes the results it names by their replies, and no others of the same id; undone, each
/// says again what its own tool said.
#[test]
fn a_clearing_takes_the_results_it_names_by_place() {
    let mut talk = Talk::default();
    let replies: Vec<Id> = ["one", "two", "three"].iter().map(|text| talk.round(text)).collect();
    let named: Vec<CallName> =
        talk.log.view().visible().flat_map(|entry| entry.calls()).map(|call| call.name()).collect();
    let expected: Vec<CallName> =
        replies.iter().map(|reply| CallName { id: CALL.into(), reply: Some(reply.clone()) }).collect();
    assert_eq!(named, expected);
    let clear = talk.commit(Act::Clear { results: named[1..2].to_vec(), trigger: Trigger::Auto, digest: None });
    let cleared = transcript::commit::CLEARED;
    assert_eq!(talk.results(), ["one", cleared, "three"]);
    talk.round("four");
    assert_eq!(talk.results(), ["one", cleared, "three", "four"]);
    talk.commit(Act::Undo { commit: clear });
    assert_eq!(talk.results(), ["one", "two", "three", "four"]);
}

/// LOG-2: what another program cleared by the id alone is what had the id then.
#[test]
fn a_clearing_by_id_alone_takes_what_had_the_id_then() {
    let mut talk = Talk::default();
    talk.round("one");
    talk.round("two");
    talk.commit(Act::Clear { results: vec![CALL.into()], trigger: Trigger::Auto, digest: None });
    talk.round("three");
    let cleared = transcript::commit::CLEARED;
    assert_eq!(talk.results(), [cleared, cleared, "three"]);
}

/// LOG-2: the result of an abandoned branch is not taken for that of a live call with the same id.
#[test]
fn an_abandoned_result_answers_no_live_call() {
    let call = |id: &str, parent: &str, message: &str| {
        json!({"type": "assistant", "uuid": id, "parentUuid": parent, "message": {"id": message, "role": "assistant", "model": "m",
               "content": [{"type": "tool_use", "id": CALL, "name": "Bash", "input": {}}]}})
    };
    let result = |id: &str, parent: &str, text: &str| {
        json!({"type": "user", "uuid": id, "parentUuid": parent, "message": {"role": "user",
               "content": [{"type": "tool_result", "tool_use_id": CALL, "content": text}]}})
    };
    let lines = [
        json!({"type": "user", "uuid": "1", "parentUuid": null, "message": {"role": "user", "content": "go"}}),
        call("dead", "1", "m1"),
        call("2", "1", "m2"),
        result("dead-result", "dead", "abandoned"),
        result("3", "2", "live"),
    ];
    let log = read(lines.map(|line| line.to_string()).join("\n").as_bytes());
    let results: Vec<String> = log.view().blocks().map(|(_, _, block)| block.result_text()).collect();
    assert_eq!(results, ["", "", "live"]);
}
