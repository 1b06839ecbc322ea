//! What Claude Code makes of the commits in a session of ours.

use serde_json::{Value, json};
use session::{Home, Session, World};
use transcript::commit::{Act, Commit, Extent, Reason, Replacement, Trigger};
use transcript::line::{Body, TextSource};
use transcript::{Block, Id, Outcome, StopReason, Usage};

use super::claude_code;
use crate::stage::{Stage, run};

const MODEL: &str = "claude-opus-5";
const CALL: &str = "toolu_01Stone";

/// A session as the engine writes it: the names of its lines in order.
struct Said {
    session: Session,
    lines: Vec<Id>,
}

impl Said {
    fn new(stage: &Stage) -> Self {
        let session = Session::create(&Home::at(stage.config()), &stage.project(), None, World::real()).unwrap();
        let mut said = Self { session, lines: Vec::new() };
        said.user(vec![Block::text("first: the word is quartz")]);
        said.reply(vec![Block::text("I heard quartz.")], StopReason::EndTurn);
        said.user(vec![Block::text("second: look at the stone")]);
        let call = Block::tool_use(CALL, "Read", &json!({"file_path": stage.project().join("stone.txt")}));
        said.reply(vec![call], StopReason::ToolUse);
        said.user(vec![Block::tool_result(CALL, &[Block::text("granite, grey")], Outcome::Done)]);
        said.reply(vec![Block::text("It is a stone.")], StopReason::EndTurn);
        said.user(vec![Block::text("third: the colour is red")]);
        said.reply(vec![Block::text("Noted red.")], StopReason::EndTurn);
        said
    }

    fn add(&mut self, body: Body) {
        self.session.append(body).unwrap();
        self.lines.push(self.session.log().lines().last().unwrap().id.clone().unwrap());
    }

    fn user(&mut self, blocks: Vec<Block>) {
        self.add(Body::User { blocks, source: TextSource::Direct });
    }

    fn reply(&mut self, blocks: Vec<Block>, stop: StopReason) {
        let id = format!("msg_01Line{}", self.lines.len()).into();
        let usage = Some(Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() });
        self.add(Body::Assistant { id, model: MODEL.into(), blocks, usage, stop: Some(stop) });
    }

    fn commit(&mut self, act: Act) {
        self.add(Body::Commit(Commit { act, reason: Reason { why: Some("a test".into()), ..Reason::default() } }));
    }

    fn compact(&mut self, extent: Extent) {
        self.commit(Act::Compact { extent, trigger: Trigger::Auto, pre_tokens: 1_000 });
        self.add(Body::User { blocks: vec![Block::text("summary: quartz and granite")], source: TextSource::Summary });
    }
}

/// Writes something more into a session.
type Change = fn(&mut Said);

/// What stands in a request of Claude Code, without what it adds by itself.
fn conversation(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let (role, content) = (message["role"].as_str().unwrap(), &message["content"]);
        let whole = [json!({"type": "text", "text": content})];
        for block in content.as_array().map_or(&whole[..], Vec::as_slice) {
            let text = match block["type"].as_str().unwrap() {
                "text" => block["text"].as_str().unwrap().to_owned(),
                "tool_use" => format!("call {}", block["name"].as_str().unwrap()),
                "tool_result" => format!("result {}", block["content"]),
                other => other.to_owned(),
            };
            if role != "system" && !text.contains("<system-reminder>") {
                found.push(format!("{role}: {text}"));
            }
        }
    }
    found
}

/// What Claude Code sends when it goes on with a session in which `change` was written.
fn sent_after(change: impl FnOnce(&mut Said)) -> Option<Sent> {
    let stage = Stage::new("[[rule]]\nsay = 'Done.'");
    let mut claude = claude_code(&stage)?;
    let mut said = Said::new(&stage);
    change(&mut said);
    let (path, id) = (said.session.path().to_owned(), said.session.id().to_owned());
    drop(said);
    let written = std::fs::read(&path).unwrap();
    let ran = run(claude.args(["-p", "go on", "--resume", &id]));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "Done.\n", ""), "{ran:?}");
    assert!(std::fs::read(&path).unwrap().starts_with(&written), "our lines are as they were");
    assert_eq!(stage.simulator.report().totals.refused, 0, "{:?}", stage.simulator.report());
    let record = session::record::read(&path).unwrap();
    let ours = conversation(&json!({"messages": record.log.view().messages()}));
    Some(Sent { theirs: conversation(&stage.simulator.requests().pop().unwrap()), ours })
}

/// What was sent after it went on.
struct Sent {
    /// Its request.
    theirs: Vec<String>,
    /// What we see of the file that it has written to.
    ours: Vec<String>,
}

impl Sent {
    /// What it sent, which is also what we see, up to its answer.
    fn by_both(self) -> Vec<String> {
        let theirs = self.theirs.iter().map(|text| text.trim_end().to_owned());
        let theirs: Vec<String> = theirs.filter(|text| !text.contains("No response requested")).collect();
        assert_eq!(self.ours[..self.ours.len() - 1], theirs);
        assert_eq!(self.ours[self.ours.len() - 1], "assistant: Done.");
        theirs
    }
}

/// Everything that was ever said, when no commit counts.
const ALL: [&str; 9] = [
    "user: first: the word is quartz",
    "assistant: I heard quartz.",
    "user: second: look at the stone",
    "assistant: call Read",
    "user: result [{\"type\":\"text\",\"text\":\"granite, grey\"}]",
    "assistant: It is a stone.",
    "user: third: the colour is red",
    "assistant: Noted red.",
    "user: go on",
];

/// It understands a compaction, and sends the summary instead of what it covers.
#[test]
fn claude_code_sends_the_summary_of_our_compaction() {
    let Some(sent) = sent_after(|said| said.compact(Extent::Everything)) else { return };
    assert_eq!(sent.by_both(), ["user: summary: quartz and granite", "user: go on"]);
}

/// It understands a compaction that keeps the newest messages: the summary, then what was kept. Where it goes on from
/// there, we see the same.
#[test]
fn claude_code_sends_what_our_compaction_keeps() {
    let keep = |said: &mut Said| {
        said.add(Body::Attachment { blocks: vec![Block::text("<system-reminder>\nbeside\n</system-reminder>")] });
        said.compact(Extent::Before(said.lines[2].clone()));
    };
    let Some(sent) = sent_after(keep).map(Sent::by_both) else { return };
    let kept = &ALL[2..];
    assert_eq!(sent[0], "user: summary: quartz and granite");
    assert_eq!(sent[1..], *kept);
    let and_more = |said: &mut Said| {
        keep(said);
        said.user(vec![Block::text("fourth: the edge is sharp")]);
        said.reply(vec![Block::text("Noted sharp.")], StopReason::EndTurn);
    };
    let sent = sent_after(and_more).unwrap().by_both();
    let more = ["user: fourth: the edge is sharp", "assistant: Noted sharp.", "user: go on"];
    assert_eq!(sent[1..], *[&kept[..6], &more].concat());
}

/// Of a compaction in the middle it sends all that stands, though the summary first; we see it in its place.
#[test]
fn claude_code_sends_what_stands_around_our_compaction() {
    let middle = |said: &mut Said| {
        let (first, last) = (said.lines[2].clone(), said.lines[5].clone());
        said.compact(Extent::Span { first, last });
    };
    let Some(mut sent) = sent_after(middle) else { return };
    let summary = "user: summary: quartz and granite";
    let around: Vec<&str> = ALL[..2].iter().chain(&ALL[6..]).copied().collect();
    sent.theirs.iter_mut().for_each(|text| *text = text.trim_end().to_owned());
    assert_eq!(sent.theirs, [&[summary], &around[..]].concat());
    assert_eq!(sent.ours, [&around[..2], &[summary], &around[2..], &["assistant: Done."]].concat());
}

/// It honours a going back once something was said after it: our next line follows what was before.
#[test]
fn claude_code_goes_back_with_us() {
    let back = |said: &mut Said| {
        let first = said.lines[6].clone();
        said.session.rewind(&first, session::rewind::RewindExtent::Conversation).unwrap();
        said.user(vec![Block::text("third: the colour is blue")]);
        said.reply(vec![Block::text("Noted blue.")], StopReason::EndTurn);
    };
    let Some(sent) = sent_after(back).map(Sent::by_both) else { return };
    assert_eq!(sent[..6], ALL[..6]);
    assert_eq!(sent[6..], ["user: third: the colour is blue", "assistant: Noted blue.", "user: go on"]);
}

/// It steps over the commits it has no use for, and sends what was said: more than we would send, and never less.
#[test]
fn claude_code_steps_over_our_other_commits() {
    let changes: [(&str, Change); 6] = [
        ("no commit", |_| {}),
        ("spill", |said| {
            let one = Replacement { call: CALL.into(), replacement: "[kept in a file]".into() };
            said.commit(Act::Spill { replacements: vec![one] });
        }),
        ("clear", |said| said.commit(Act::Clear { results: vec![CALL.into()], trigger: Trigger::Auto, digest: None })),
        ("snip", |said| {
            let uuids = said.lines[..2].to_vec();
            said.commit(Act::Snip { uuids, marker: "[removed]".into() });
        }),
        ("collapse", |said| {
            let (first, last) = (said.lines[0].clone(), said.lines[5].clone());
            said.commit(Act::Collapse { first, last, summary: "[summarised]".into() });
        }),
        ("restore", |said| said.commit(Act::Restore { blocks: vec![Block::text("restored")] })),
    ];
    for (name, change) in changes {
        let Some(sent) = sent_after(change) else { return };
        assert_eq!(sent.theirs, ALL, "{name}");
    }
}

/// Its own compaction keeps the last message, and it goes on from there: we see what it sends.
#[test]
fn we_see_a_compaction_of_claude_code_as_it_sends_it() {
    let script =
        "[[rule]]\nwhen = { user = 'detailed summary' }\nsay = '<summary>quartz</summary>'\n[[rule]]\nsay = 'Done.'";
    let stage = Stage::new(script);
    let Some(mut claude) = claude_code(&stage) else { return };
    run(claude.args(["-p", "first: the word is quartz"]));
    for words in ["second: the stone is granite", "/compact", "go on"] {
        let ran = run(claude_code(&stage).unwrap().args(["-p", words, "--continue"]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let told = |body: &Value| {
        let texts = conversation(body).into_iter().map(|text| text.trim().to_owned());
        texts.filter(|text| !text.contains("No response requested") && !text.contains("<command-")).collect::<Vec<_>>()
    };
    let record = session::record::read(&stage.session_files()[0]).unwrap();
    let mut ours = told(&json!({"messages": record.log.view().messages()}));
    assert_eq!(ours.pop().as_deref(), Some("assistant: Done."));
    assert_eq!(ours, told(&stage.simulator.requests().pop().unwrap()));
    assert!(ours.iter().all(|text| !text.contains("first: the word")), "{ours:?}");
}
