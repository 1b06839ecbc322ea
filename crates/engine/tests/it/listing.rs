//! The list of agents that the model is told: an attachment, which is no part of the prefix.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::children::agents;
use crate::stage::{Stage, say, window};

/// AGENT-2: the agents there are stand in an attachment: neither a definition nor a new one changes the parent's prefix.
#[tokio::test]
async fn the_list_of_agents_is_no_part_of_the_prefix() {
    let mut prefixes = Vec::new();
    for more in [json!({}), json!({"painter": {"description": "Paints.", "prompt": "You paint."}})] {
        let mut stage = Stage::new("[[rule]]\nsay = \"Yes.\"").await;
        stage.agents = agents(more.clone());
        let mut agent = stage.agent(None);
        say(&mut agent, "hello").await;
        say(&mut agent, "and again").await;
        let requests = stage.simulator.requests();
        let text = requests[1]["messages"].to_string();
        assert_eq!(text.matches("Agents for the Agent tool").count(), 1, "it is listed once");
        assert_eq!(text.contains("painter: Paints. (Tools: all)"), more != json!({}));
        prefixes.push(requests[0]["tools"].clone());
    }
    assert_eq!(prefixes[0], prefixes[1]);
}

/// AGENT-2: an agent that is denied later is left out of a list that comes after; what was sent stays as it was.
#[tokio::test]
async fn a_denied_agent_is_left_out_and_what_was_sent_stays() {
    let mut stage = Stage::new("[[rule]]\nsay = \"Yes.\"").await;
    stage.agents = agents(json!({}));
    let mut agent = stage.agent(None);
    say(&mut agent, "hello").await;
    let id = agent.session().id().to_owned();
    drop(agent);
    (stage.agents, stage.settings) = (agents(json!({})), json!({"permissions": {"deny": ["Agent(Explore)"]}}));
    say(&mut stage.agent(Some(&id)), "again").await;
    let texts = |request: &Value| -> Vec<String> {
        let messages = request["messages"].as_array().unwrap().iter();
        let blocks = messages.flat_map(|message| message["content"].as_array().unwrap());
        blocks.map(|block| block["text"].as_str().unwrap().to_owned()).collect()
    };
    let requests = stage.simulator.requests();
    let (before, after) = (texts(&requests[0]), texts(&requests[1]));
    assert_eq!(after[..before.len()], before, "a prefix of what comes later");
    let lists = |texts: &[String]| -> Vec<bool> {
        let lists = texts.iter().filter(|text| text.contains("Agents for the Agent tool"));
        lists.map(|list| list.contains("- Explore: ")).collect()
    };
    assert_eq!((lists(&before), lists(&after)), (vec![true], vec![true, false]));
}

/// AGENT-2: after a compaction the agents are listed again, once.
#[tokio::test]
async fn the_list_of_agents_comes_back_after_a_compaction() {
    let mut stage = Stage::new(
        "[[rule]]\nwhen = { user = \"(?i)summar\" }\nsay = \"<summary>Greetings.</summary>\"\n[[rule]]\nsay = \"Yes.\"",
    )
    .await;
    stage.agents = agents(json!({}));
    let mut agent = stage.agent(None);
    for _ in 0..3 {
        say(&mut agent, "hello").await;
    }
    let done =
        agent.compact(None, engine::context::CompactionReach::Everything, &CancellationToken::new()).await.unwrap();
    assert_eq!(done, Ok(()));
    say(&mut agent, "and again").await;
    let last = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert_eq!(last.matches("Agents for the Agent tool").count(), 1, "{last}");
}

/// AGENT-2, COMPACT-4: where room was made by itself, the agents stand in the first request after it.
#[tokio::test]
async fn the_list_of_agents_stands_in_the_first_request_after_an_automatic_compaction() {
    let mut stage = Stage::new(
        "[[rule]]\nwhen = { visible = \"about to leave the window\" }\nsay = \"<summary>Greetings.</summary>\"\n\
         [[rule]]\nsay = \"Yes.\"",
    )
    .await;
    stage.layers.window = window(70_000);
    stage.agents = agents(json!({}));
    let mut agent = stage.agent(None);
    let mut compacted = 0;
    for n in 0..20 {
        say(&mut agent, &format!("message {n} {}", "words and more ".repeat(600))).await;
        let request = stage.simulator.requests().pop().unwrap()["messages"].to_string();
        assert_eq!(request.matches("Agents for the Agent tool").count(), 1, "at message {n}: {request}");
        compacted += usize::from(request.contains("Greetings."));
    }
    assert!(compacted > 0, "room was made");
}
