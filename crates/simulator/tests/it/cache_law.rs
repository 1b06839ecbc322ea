//! The laws of the prompt cache.

use std::time::Duration;

use serde_json::{Value, json};
use simulator::{Clock, Options};

use crate::client::{Client, body, marked, text};

const SAY: &str = "[[rule]]\nname = \"say\"\nsay = \"Fine.\"";

fn user(blocks: &[Value]) -> Value {
    json!({"role": "user", "content": blocks})
}

fn assistant(words: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": words}]})
}

fn total(usage: [u64; 3]) -> u64 {
    usage.iter().sum()
}

#[tokio::test]
async fn a_pure_append_reads_everything_before() {
    let client = Client::new(SAY).await;
    let first = client.usage(&body(json!([user(&[marked(text("one", 1000), "5m")])]))).await;
    assert_eq!([first[0], first[2]], [0, 0]);
    let second = client
        .usage(&body(json!([user(&[text("one", 1000)]), assistant("Fine."), user(&[marked(text("two", 500), "5m")]),])))
        .await;
    assert_eq!(second[2], first[1], "what was written is read");
    assert!(second[1] > 400 && second[1] < 700, "only what is new is written: {second:?}");
    assert_eq!(second[0], 0);
    let report = client.simulator.report();
    assert_eq!(report.requests[1].broke, None);
    assert_eq!(report.totals.largest_context, total(second));
    assert!((report.totals.rewrite_factor - 1.0).abs() < 1e-9, "everything was written once");
}

#[tokio::test]
async fn the_split_adds_up_to_the_count() {
    let client = Client::new(SAY).await;
    let body = json!({
        "model": "claude-opus-5", "max_tokens": 10,
        "tools": [{"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}],
        "system": [marked(text("system", 700), "1h")],
        "messages": [user(&[marked(text("a", 300), "5m"), text("b", 90)])],
    });
    let counted = crate::client::read(client.post("/v1/messages/count_tokens").body(body.to_string())).await.json();
    let usage = client.reply(&body).await["usage"].clone();
    let (five, hour) =
        (&usage["cache_creation"]["ephemeral_5m_input_tokens"], &usage["cache_creation"]["ephemeral_1h_input_tokens"]);
    let sum = usage["input_tokens"].as_u64().unwrap() + five.as_u64().unwrap() + hour.as_u64().unwrap();
    assert_eq!(counted["input_tokens"].as_u64(), Some(sum));
    assert!(five.as_u64().unwrap() > 200 && hour.as_u64().unwrap() > 900, "{usage}");
    let again = client.usage(&body).await;
    assert_eq!(again, [usage["input_tokens"].as_u64().unwrap(), 0, sum - usage["input_tokens"].as_u64().unwrap()]);
}

#[tokio::test]
async fn a_change_in_the_middle_breaks_there() {
    let client = Client::new(SAY).await;
    let with = |middle: &str| {
        body(json!([
            user(&[marked(text("start", 800), "5m")]),
            assistant(middle),
            user(&[marked(text("end", 800), "5m")]),
        ]))
    };
    let first = client.usage(&with("yes")).await;
    let second = client.usage(&with("no")).await;
    assert!(first[1] > second[1], "the first time, all is written");
    assert!(second[2] > 700 && second[2] < 1000, "only the start is read: {second:?}");
    let broke = client.simulator.report().requests[1].broke.clone().unwrap();
    assert_eq!(
        (broke.place.as_str(), broke.before.as_str(), broke.after.as_str()),
        ("messages[1].content[0]", "yes", "no")
    );
}

#[tokio::test]
async fn look_back_ends_after_twenty_positions_unless_a_mark_stands_at_the_last_tail() {
    let start = || text("start", 900);
    let grown = |tail_marked: bool| {
        let first = if tail_marked { marked(start(), "5m") } else { start() };
        let many: Vec<Value> = (0..25).map(|index| text(&format!("block {index}"), 20)).collect();
        let last = marked(text("last", 20), "5m");
        body(json!([user(&[vec![first], many, vec![last]].concat())]))
    };
    for (tail_marked, reads) in [(false, false), (true, true)] {
        let client = Client::new(SAY).await;
        let first = client.usage(&body(json!([user(&[marked(start(), "5m")])]))).await;
        let second = client.usage(&grown(tail_marked)).await;
        assert_eq!(second[2], if reads { first[1] } else { 0 });
    }
}

#[tokio::test]
async fn look_back_counts_the_breakpoint_as_the_first_of_twenty() {
    for (new, reads) in [(19, true), (20, false)] {
        let client = Client::new(SAY).await;
        client.usage(&body(json!([user(&[marked(text("start", 900), "5m")])]))).await;
        let mut blocks = vec![text("start", 900)];
        blocks.extend((0..new).map(|index| text(&format!("block {index}"), 20)));
        let last = blocks.pop().unwrap();
        blocks.push(marked(last, "5m"));
        assert_eq!(client.usage(&body(json!([user(&blocks)]))).await[2] > 0, reads, "{new}");
    }
}

#[tokio::test]
async fn entries_live_five_minutes_or_an_hour_from_their_last_use() {
    for (ttl, minutes) in [("5m", 5), ("1h", 60)] {
        let client = Client::new(SAY).await;
        let request = body(json!([user(&[marked(text("x", 900), ttl)])]));
        let almost = Duration::from_secs(minutes * 60 - 1);
        assert!(client.usage(&request).await[1] > 0);
        client.simulator.advance(almost);
        assert!(client.usage(&request).await[2] > 0, "alive at the end of its time");
        client.simulator.advance(almost);
        assert!(client.usage(&request).await[2] > 0, "reading refreshed it");
        client.simulator.advance(almost + Duration::from_secs(1));
        assert_eq!(client.usage(&request).await[2], 0, "unused, it is gone");
    }
}

#[tokio::test]
async fn a_prefix_below_the_minimum_is_not_cached_and_not_refused() {
    let client = Client::new(SAY).await;
    for (model, least) in
        [("claude-opus-5", 512), ("claude-sonnet-5", 1024), ("claude-opus-4-7", 2048), ("claude-haiku-4-5", 4096)]
    {
        for (tokens, cached) in [(least - 20, false), (least + 20, true)] {
            let mut request = body(json!([user(&[marked(text("x", tokens), "5m")])]));
            request["model"] = json!(model);
            assert_eq!(client.usage(&request).await[1] > 0, cached, "{model} {tokens}");
        }
    }
}

#[tokio::test]
async fn without_a_breakpoint_nothing_is_written_or_read() {
    let client = Client::new(SAY).await;
    client.usage(&body(json!([user(&[marked(text("x", 900), "5m")])]))).await;
    let usage = client.usage(&body(json!([user(&[text("x", 900)])]))).await;
    assert_eq!(usage[1..], [0, 0]);
}

#[tokio::test]
async fn an_automatic_breakpoint_follows_the_conversation() {
    let client = Client::new(SAY).await;
    let mut request = body(json!([user(&[text("x", 900)])]));
    request["cache_control"] = json!({"type": "ephemeral"});
    let first = client.usage(&request).await;
    assert_eq!(first[0], 0);
    request["messages"].as_array_mut().unwrap().extend([assistant("Fine."), user(&[text("y", 100)])]);
    let second = client.usage(&request).await;
    assert_eq!([second[0], second[2]], [0, first[1]]);
}

#[tokio::test]
async fn what_invalidates_the_messages_leaves_the_system_prompt() {
    let base = json!({
        "model": "claude-opus-5", "max_tokens": 2048,
        "tools": [{"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}],
        "system": [marked(text("system", 900), "5m")],
        "messages": [user(&[marked(text("x", 900), "5m")])],
    });
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let changes: [(&str, Value); 3] = [
        ("tool_choice", json!({"type": "none"})),
        ("thinking", json!({"type": "enabled", "budget_tokens": 1024})),
        ("messages", json!([user(&[marked(text("x", 900), "5m"), image])])),
    ];
    for (key, value) in changes {
        let client = Client::new(SAY).await;
        let written = client.usage(&base).await[1];
        let mut changed = base.clone();
        changed[key] = value;
        let read = client.usage(&changed).await[2];
        assert!(read > 1000 && read < written - 800, "{key}: {read} of {written}");
    }
    let client = Client::new(SAY).await;
    client.usage(&base).await;
    let mut changed = base.clone();
    changed["tools"][0]["description"] = json!("runs things");
    assert_eq!(client.usage(&changed).await[2], 0, "tools invalidate everything");
}

#[tokio::test]
async fn a_refused_request_writes_nothing() {
    let client = Client::new("[[fault]]\nrequest = 1\nstatus = 529\n[[rule]]\nname = \"say\"\nsay = \"Fine.\"").await;
    let request = body(json!([user(&[marked(text("x", 900), "5m")])]));
    assert_eq!(client.send(&request).await.status, 529);
    assert_eq!(client.usage(&request).await[2], 0);
}

#[tokio::test]
async fn max_tokens_zero_warms_the_cache() {
    let client = Client::new(SAY).await;
    let mut request = body(json!([user(&[marked(text("x", 900), "5m")])]));
    request["max_tokens"] = json!(0);
    let warm = client.reply(&request).await;
    assert_eq!((warm["content"].clone(), warm["usage"]["output_tokens"].clone()), (json!([]), json!(0)));
    request["max_tokens"] = json!(100);
    assert!(client.usage(&request).await[2] > 0);
}

#[tokio::test]
async fn parallel_requests_are_all_accounted() {
    let client = Client::with(SAY, Options { clock: Clock::Real, ..Options::default() }).await;
    let request = body(json!([user(&[marked(text("x", 900), "5m")])]));
    let many = (0..20).map(|_| client.usage(&request));
    let usages = futures_util::future::join_all(many).await;
    let whole = total(usages[0]);
    assert!(usages.iter().all(|usage| total(*usage) == whole && usage[0] == 0));
    let totals = client.simulator.report().totals;
    assert_eq!(totals.requests, 20);
    assert_eq!(totals.input.total(), whole * 20);
}
