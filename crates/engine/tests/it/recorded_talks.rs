//! What becomes of a capable model's answers where it brings notes up to date, and where it writes down what goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Agent, Event};
use serde::Deserialize;
use serde_json::Value;
use transcript::line::{Body, TextSource};
use transcript::{Block, Outcome, Request, StopReason, Usage};

use crate::recorded::{Recorded, Run, compare, difference, fixtures, snapshot};
use crate::stage::{Stage, say};

/// A conversation, what the notes say so far, and what the model wrote.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Situation {
    /// The notes before, by section.
    #[serde(default)]
    notes: BTreeMap<String, String>,
    said: Vec<Said>,
    /// What the user says next.
    next: String,
    /// Whether the cache is cold by then, so that the results are read alone.
    #[serde(default)]
    cold: bool,
    /// What it wrote down before results were cleared.
    #[serde(default)]
    digest: Vec<Run>,
    /// How it brought the notes up to date.
    #[serde(default)]
    update: Vec<Run>,
}

/// One message, the user's or the model's, with calls and their results.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    user: Option<String>,
    model: Option<String>,
    #[serde(default)]
    calls: Vec<Answered>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    tool: String,
    input: Value,
    result: String,
}

/// Whether somebody asks beside the conversation.
fn is_asked(request: &Request) -> bool {
    let texts = request.messages.iter().flat_map(|message| &message.blocks).filter_map(Block::as_text);
    texts.into_iter().any(|text| text.starts_with("This message is not from the user"))
}

/// A session in which all of it was said.
fn play(agent: &mut Agent, situation: &Situation) {
    let session = agent.session_mut();
    for (at, said) in situation.said.iter().enumerate() {
        if let Some(words) = &said.user {
            let blocks = vec![Block::text(words)];
            session.append(Body::User { blocks, source: TextSource::Direct }).unwrap();
            continue;
        }
        let mut blocks: Vec<Block> = said.model.iter().map(Block::text).collect();
        let name = |n: usize| format!("toolu_{at}_{n}");
        let calls = said.calls.iter().enumerate();
        blocks.extend(calls.clone().map(|(n, call)| Block::tool_use(&name(n), &call.tool, &call.input)));
        let stop = Some(if said.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse });
        let (id, model) = (format!("msg_{at}").as_str().into(), "claude-sonnet-5".to_owned());
        let usage = Some(Usage { input_tokens: 2_000, output_tokens: 100, ..Usage::default() });
        session.append(Body::Assistant { id, model, blocks, usage, stop }).unwrap();
        let result = |(n, call): (usize, &Answered)| {
            Block::tool_result(&name(n), &[Block::text(call.result.trim_end())], Outcome::Done)
        };
        let blocks: Vec<Block> = calls.map(result).collect();
        if !blocks.is_empty() {
            session.append(Body::User { blocks, source: TextSource::Direct }).unwrap();
        }
    }
}

/// An agent that talks to a recorded model, in this conversation.
fn talk(stage: &Stage, situation: &Situation, run: &Run) -> (Agent, Arc<Recorded>) {
    let (folder, project) = (stage.home().project(&stage.project()), stage.project());
    let summary = folder.join("id-0/session-memory/summary.md");
    let places = [("{notes}", summary.as_path()), ("{project}", project.as_path())];
    let model = Recorded::new(run, &places, is_asked);
    let mut agent = stage.agent_with(None, |parts| parts.talk.model = model.clone());
    assert_eq!(agent.notes_path(), summary);
    std::fs::create_dir_all(summary.parent().unwrap()).unwrap();
    std::fs::write(&summary, notes(situation)).unwrap();
    play(&mut agent, situation);
    (agent, model)
}

fn notes(situation: &Situation) -> String {
    situation.notes.iter().fold(context::notes_format::TEMPLATE.to_owned(), |text, (section, body)| {
        let at = text.find(&format!("# {section}\n")).unwrap();
        let line = at + text[at..].find("_\n").unwrap() + 2;
        format!("{}{}\n{}", &text[..line], body.trim_end(), &text[line..])
    })
}

/// Notes are brought up to date.
async fn update(situation: &Situation, run: &Run) -> (String, Arc<Recorded>) {
    let mut stage = Stage::new("[[rule]]\nsay = 'unused'").await;
    (stage.layers.clear, stage.layers.clear_when_idle) = (false, false);
    (stage.layers.notes_first, stage.layers.notes_more, stage.layers.notes_share) = (1, 1_000_000, None);
    let (mut agent, model) = talk(&stage, situation, run);
    let before = std::fs::read_to_string(agent.notes_path()).unwrap();
    say(&mut agent, &situation.next).await;
    agent.settled().await.unwrap();
    let after = std::fs::read_to_string(agent.notes_path()).unwrap();
    let told = stage.events.lock().unwrap().iter().find_map(|event| match event {
        Event::NotesUpdated { left_current_state, failed, .. } => Some((*left_current_state, failed.clone())),
        _ => None,
    });
    let (left, failed) = told.unwrap();
    let left = if left { ", Current State was left" } else { "" };
    let failed = failed.map(|why| format!(", {why}")).unwrap_or_default();
    let log = std::fs::read_to_string(agent.session().path()).unwrap();
    let covers = if log.contains(r#""kind":"notes","covers""#) { "" } else { ", covers nothing" };
    let report =
        format!("{} rounds{left}{failed}{covers}\n{}{}", run.round.len(), model.became(), difference(&before, &after));
    (report, model)
}

/// Results are cleared, and what matters in them is written down.
async fn digest(situation: &Situation, run: &Run) -> (String, Arc<Recorded>) {
    let mut stage = Stage::new("[[rule]]\nsay = 'unused'").await;
    (stage.layers.idle_minutes, stage.layers.kept_when_idle) = (1, 1);
    let (mut agent, model) = talk(&stage, situation, run);
    let before = std::fs::read_to_string(agent.notes_path()).unwrap();
    stage.wait(if situation.cold { 7_200 } else { 120 });
    say(&mut agent, &situation.next).await;
    let noted = difference(&before, &std::fs::read_to_string(agent.notes_path()).unwrap());
    let messages = agent.request().unwrap().messages;
    let texts: Vec<String> = messages.iter().flat_map(|one| &one.blocks).map(Block::result_text).collect();
    let cleared = texts.iter().filter(|text| text.starts_with(transcript::commit::CLEARED)).count();
    let shown: Vec<&str> = texts.iter().filter_map(|text| context::digest::written(text)).collect();
    let shown = shown.join("\n");
    let mut report = format!("{cleared} results cleared\n{}", model.became());
    report.extend(shown.lines().map(|line| format!("  {line}\n")));
    let lost = shown.lines().filter(|line| !noted.contains(line.trim())).count();
    if lost > 0 {
        report.push_str(&format!("{lost} lines are not in the notes\n"));
    }
    (report, model)
}

/// MICRO-7, NOTES-3, NOTES-4: recorded digests stand in the view where results stood, and in the notes; recorded updates
/// bring the notes up to date in their form, or are told why not.
#[tokio::test]
async fn recorded_answers_beside_a_conversation_do_what_was_meant() {
    let (mut wrong, mut digests, mut updates) = (Vec::new(), 0, 0);
    for (path, situation) in fixtures::<Situation>("talk") {
        let (mut runs, mut report) = (Vec::new(), String::new());
        for run in &situation.digest {
            let (became, model) = digest(&situation, run).await;
            report.push_str(&format!("== digest: {became}"));
            runs.push((run, model));
        }
        for run in &situation.update {
            let (became, model) = update(&situation, run).await;
            report.push_str(&format!("== update: {became}"));
            runs.push((run, model));
        }
        (digests, updates) = (digests + situation.digest.len(), updates + situation.update.len());
        wrong.extend(compare(&path, &runs));
        snapshot(&path, &report);
    }
    assert!(
        wrong.is_empty(),
        "{wrong:#?}\nRead them with RENDER_ANSWERS=DIR; REFRESH_ANSWERS=1 takes the hashes anew."
    );
    assert!(digests >= 40 && updates >= 40, "{digests} digests, {updates} updates");
}
