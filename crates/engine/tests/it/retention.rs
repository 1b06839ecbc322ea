//! What is left of a session after it was compacted again and again, judged by the bytes of the next request alone.

use context::CompactionReach;
use tokio_util::sync::CancellationToken;
use transcript::block::Kind;
use transcript::line::{Body, TextSource};

use crate::stage::{Stage, say};

const SCRIPT: &str = r##"
    [[rule]]
    name = "summary"
    when = { visible = "about to leave the window" }
    say = "<summary>Work was done, and some things were decided.</summary>"

    [[rule]]
    name = "found again"
    when = { user = "(?m)^Where is (?P<what>[a-z]+-\\w+)\\?", result = "(?P<found>[a-z]+-\\w+ is \\w+)", tool = "History" }
    say = "{{ found }}"

    [[rule]]
    name = "look it up"
    when = { user = "(?m)^Where is (?P<what>[a-z]+-\\w+)\\?" }
    call = [{ tool = "History", input = { query = "{{ what }}" } }]

    [[rule]]
    name = "decide"
    when = { user = "(?s).*Rule (?P<n>\\d+)", result = "result-" }
    say = "I decided: decision-{{ n }} is blue{{ n }}."

    [[rule]]
    name = "work"
    when = { user = "(?s).*Rule (?P<n>\\d+)" }
    call = [{ tool = "Bash", input = { command = "echo result-{{ n }} is red{{ n }}" } }]
"##;

/// A fact, and the ids that lead to it.
struct Fact {
    text: String,
    kind: &'static str,
    ids: Vec<String>,
}

/// 1 if it can be seen, 0.5 if an id that leads to it can, else 0.
fn score(fact: &Fact, request: &str) -> f64 {
    if request.contains(&fact.text) {
        1.0
    } else if fact.ids.iter().any(|id| request.contains(id.as_str())) {
        0.5
    } else {
        0.0
    }
}

fn facts(agent: &engine::Agent) -> Vec<Fact> {
    let mut facts = Vec::new();
    for line in agent.session().log().lines() {
        let (blocks, is_user) = match &line.body {
            Body::User { blocks, source: TextSource::Direct } => (blocks, true),
            Body::Assistant { blocks, .. } => (blocks, false),
            _ => continue,
        };
        for block in blocks {
            let (text, kind) = match block.kind() {
                Kind::Text => (block.as_text().unwrap(), if is_user { "instruction" } else { "decision" }),
                Kind::ToolResult { .. } => (block.result_text(), "result"),
                _ => continue,
            };
            let Some(at) = text.find(&format!("{kind}-")) else { continue };
            let words: Vec<&str> = text[at..].split_whitespace().take(3).collect();
            let mut ids = vec![line.id.as_ref().unwrap().to_string()];
            if let Kind::ToolResult { id, .. } = block.kind() {
                ids.push(id.to_string());
            }
            facts.push(Fact { text: words.join(" ").trim_end_matches('.').to_owned(), kind, ids });
        }
    }
    facts
}

/// COMPACT-11, COMPACT-13: after one, three and five compactions what the user said is there word for word, everything
/// else is there or named by an id, and a model that looks it up gets every fact back.
#[tokio::test]
async fn no_fact_is_lost_to_compaction() {
    let mut stage = Stage::new(SCRIPT).await;
    stage.layers.notes = false;
    let mut agent = stage.agent(None);
    for compaction in 1..=5 {
        for n in 0..4 {
            let n = compaction * 10 + n;
            let turn = say(&mut agent, &format!("Rule {n}: instruction-{n} is green{n}.")).await;
            assert!(turn.text.contains("I decided"), "{}", turn.text);
        }
        agent.compact(None, CompactionReach::Everything, &CancellationToken::new()).await.unwrap().unwrap();
        if [1, 3, 5].contains(&compaction) {
            let request = agent.request().unwrap();
            let bytes = serde_json::to_string(&request.messages).unwrap();
            for fact in facts(&agent) {
                let score = score(&fact, &bytes);
                let least = if fact.kind == "instruction" { 1.0 } else { 0.5 };
                assert!(score >= least, "{} ({}) scores {score} after {compaction}:\n{bytes}", fact.text, fact.kind);
            }
        }
    }
    let all = facts(&agent);
    assert_eq!(all.len(), 5 * 4 * 3);
    for fact in all {
        let name = fact.text.split_whitespace().next().unwrap();
        let turn = say(&mut agent, &format!("Where is {name}?")).await;
        assert_eq!(turn.text, fact.text);
    }
    insta::assert_snapshot!(
        agent.request().unwrap().messages[0].blocks[0]
            .as_text()
            .unwrap()
            .lines()
            .map(redact)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// Call ids depend on the temporary folder.
fn redact(line: &str) -> String {
    match line.split_once("toolu_") {
        Some((before, after)) => {
            let end = after.find(' ').unwrap_or(after.len());
            format!("{before}toolu_…{}", &after[end..])
        }
        None => line.to_owned(),
    }
}
