//! The report, and what is kept of requests.

use serde_json::{Value, json};
use simulator::{Options, Price};

use crate::client::{Client, MODEL, body, marked, text};

const SAY: &str = "[[rule]]\nname = \"say\"\nsay = \"Fine.\"\noutput_tokens = 1000";

fn conversation(system: &str, turns: &[&str]) -> Value {
    let roles = ["user", "assistant"];
    let messages: Vec<Value> =
        turns.iter().enumerate().map(|(index, text)| json!({"role": roles[index % 2], "content": text})).collect();
    let mut request = body(json!(messages));
    request["system"] = json!([marked(text(system, 900), "5m")]);
    request["metadata"] = json!({"user_id": json!({"session": "s1", "agent": "main"}).to_string()});
    request
}

#[tokio::test]
async fn each_request_has_its_split_price_and_rule() {
    let client = Client::new(SAY).await;
    client.reply(&conversation("s", &["a"])).await;
    client.reply(&conversation("s", &["a", "b", "c"])).await;
    let report: Value =
        serde_json::from_str(&client.get("/report").send().await.unwrap().text().await.unwrap()).unwrap();
    let (first, second) = (&report["requests"][0], &report["requests"][1]);
    assert_eq!((first["agent"].as_str(), first["rule"].as_str()), (Some("main"), Some("say")));
    assert_eq!(first["write_5m"], second["read"]);
    let expected = |line: &Value| {
        let tokens = |key: &str| line[key].as_f64().unwrap();
        (tokens("uncached") * 5.0 + tokens("write_5m") * 6.25 + tokens("read") * 0.5 + tokens("output") * 25.0) / 1e6
    };
    for line in [first, second] {
        assert!((line["price"].as_f64().unwrap() - expected(line)).abs() < 1e-9);
        assert_eq!(line["broke"], Value::Null);
    }
    let totals = &report["totals"];
    assert_eq!((totals["requests"].as_u64(), totals["output"].as_u64()), (Some(2), Some(2000)));
    assert!(totals["hit_ratio"].as_f64().unwrap() > 0.4);
    assert_eq!(serde_json::from_value::<simulator::Report>(report).unwrap(), client.simulator.report());
}

#[tokio::test]
async fn a_break_names_the_place_and_what_stood_there() {
    let client = Client::new(SAY).await;
    client.reply(&conversation("now it is 10:01", &["a"])).await;
    client.reply(&conversation("now it is 10:02", &["a", "b", "c"])).await;
    client.reply(&conversation("now it is 10:02", &["a", "b", "C", "d", "e"])).await;
    let mut choosing = conversation("now it is 10:02", &["a", "b", "C", "d", "e", "f", "g"]);
    choosing["tools"] = json!([]);
    choosing["thinking"] = json!({"type": "adaptive"});
    client.reply(&choosing).await;
    let report = client.simulator.report();
    let broke = |index: usize| report.requests[index].broke.clone().unwrap();
    assert_eq!(broke(1).place, "system[0]");
    assert!(broke(1).before.starts_with("now it is 10:01") && broke(1).after.starts_with("now it is 10:02"));
    assert_eq!(
        (broke(2).place, broke(2).before, broke(2).after),
        ("messages[2].content[0]".into(), "c".into(), "C".into())
    );
    assert_eq!(broke(3).place, "parameters");
    assert!(broke(3).after.contains("thinking adaptive"));
    assert_eq!(report.totals.breaks, 3);
}

#[tokio::test]
async fn prices_can_be_set_and_counts_scaled() {
    let prices = [(MODEL.to_owned(), Price { input: 0.0, output: 7.0 })].into();
    let dear = Client::with(SAY, Options { prices, count_factor: Some(2.0), ..Options::default() }).await;
    let plain = Client::new(SAY).await;
    let request = conversation("s", &["a"]);
    dear.reply(&request).await;
    plain.reply(&request).await;
    let (dear, plain) = (dear.simulator.report(), plain.simulator.report());
    assert!((dear.totals.price - 0.007).abs() < 1e-12);
    let (more, less) = (dear.totals.input.total(), plain.totals.input.total());
    assert!(more.abs_diff(less * 2) <= 1, "{more} {less}");
}

#[tokio::test]
async fn only_the_newest_bodies_are_kept() {
    let client = Client::with(SAY, Options { keep_requests: 2, ..Options::default() }).await;
    for words in ["a", "b", "c"] {
        client.reply(&conversation("s", &[words])).await;
    }
    let kept: Vec<Value> =
        client.simulator.requests().iter().map(|body| body["messages"][0]["content"].clone()).collect();
    assert_eq!(kept, ["b", "c"]);
}

#[tokio::test]
async fn a_request_can_ask_why_it_missed_the_cache() {
    let client = Client::new(SAY).await;
    let first = client.reply(&conversation("s", &["a"])).await;
    let ask = |system: &str, previous: &Value| {
        let mut request = conversation(system, &["a", "b", "c"]);
        request["diagnostics"] = json!({"previous_message_id": previous});
        request
    };
    let changed = client.reply(&ask("S", &first["id"])).await;
    assert_eq!(changed["diagnostics"]["cache_miss_reason"]["type"], "system_changed");
    assert!(changed["diagnostics"]["cache_miss_reason"]["cache_missed_input_tokens"].as_u64().unwrap() > 800);
    let extended = client.reply(&ask("s", &first["id"])).await;
    assert_eq!(extended["diagnostics"], Value::Null);
}
