//! What goes wrong, when it is asked to.

use std::time::Duration;

use serde_json::{Value, json};
use simulator::{Fault, When};

use crate::client::{Client, body, marked, read, text};

const SAY: &str = "[[rule]]\nname = \"say\"\nsay = \"A reply of several pieces, to be cut.\"\n";

fn hello() -> Value {
    body(json!([{"role": "user", "content": "hello"}]))
}

fn streamed() -> Value {
    let mut body = hello();
    body["stream"] = json!(true);
    body
}

#[tokio::test]
async fn statuses_come_with_their_type_and_retry_after() {
    let script = format!("{SAY}[[fault]]\nstatus = 429\nretry_after = 7\ntimes = 2\n");
    let client = Client::new(&script).await;
    for _ in 0..2 {
        let answer = client.send(&hello()).await;
        assert_eq!(answer.status, 429);
        assert_eq!(answer.headers["retry-after"], "7");
        assert_eq!(answer.json()["error"]["type"], "rate_limit_error");
    }
    assert_eq!(client.send(&hello()).await.status, 200);
    for (status, kind) in
        [(529, "overloaded_error"), (500, "api_error"), (504, "timeout_error"), (402, "billing_error")]
    {
        client.simulator.push_fault(Fault::status(status)).unwrap();
        let answer = client.send(&hello()).await;
        assert_eq!((answer.status, answer.json()["error"]["type"].as_str()), (status, Some(kind)));
    }
    let report = client.simulator.report();
    assert_eq!(report.totals.refused, 6);
    assert_eq!(report.requests[0].fault.as_deref(), Some("status 429"));
}

#[tokio::test]
async fn a_fault_strikes_by_number_or_by_what_is_visible() {
    let script =
        format!("{SAY}[[fault]]\nrequest = 2\nstatus = 500\n[[fault]]\nwhen = {{ user = \"boom\" }}\nstatus = 529\n");
    let client = Client::new(&script).await;
    let mut statuses = Vec::new();
    for words in ["a", "b", "c", "boom", "boom"] {
        let request = body(json!([{"role": "user", "content": words}]));
        statuses.push(client.send(&request).await.status);
    }
    assert_eq!(statuses, [200, 500, 200, 529, 200]);
}

#[tokio::test]
async fn a_cut_stream_ends_in_the_middle() {
    let client = Client::new(SAY).await;
    client.simulator.push_fault(Fault { cut_after: Some(3), ..Fault::default() }).unwrap();
    let mut response = client.post("/v1/messages").body(streamed().to_string()).send().await.unwrap();
    let mut received = String::new();
    let problem = loop {
        match response.chunk().await {
            Ok(Some(bytes)) => received.push_str(std::str::from_utf8(&bytes).unwrap()),
            Ok(None) => break None,
            Err(problem) => break Some(problem),
        }
    };
    assert!(problem.is_some(), "the connection was dropped, not closed");
    assert_eq!(received.matches("event: ").count(), 3, "{received}");
    assert_eq!(client.send(&streamed()).await.events().last().unwrap().0, "message_stop");
}

#[tokio::test]
async fn an_error_can_arrive_inside_a_stream() {
    let client = Client::new(SAY).await;
    client.simulator.push_fault(Fault { cut_after: Some(2), ..Fault::status(529) }).unwrap();
    let events = client.send(&streamed()).await.events();
    assert_eq!(events.len(), 3);
    assert_eq!((events[2].0.as_str(), &events[2].1["error"]["type"]), ("error", &json!("overloaded_error")));
}

#[tokio::test]
async fn a_stalled_stream_sends_no_other_byte_and_does_not_hold_up_the_shutdown() {
    let client = Client::new(SAY).await;
    client.simulator.push_fault(Fault { stall: true, cut_after: Some(1), ..Fault::default() }).unwrap();
    let mut response = client.post("/v1/messages").body(streamed().to_string()).send().await.unwrap();
    let first = response.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: message_start"));
    let mut next = Box::pin(response.chunk());
    assert!(futures_util::poll!(&mut next).is_pending());
    client.simulator.shutdown().await;
    assert!(next.await.is_err());
}

#[tokio::test]
async fn an_unstreamed_reply_can_be_cut_too() {
    let client = Client::new(SAY).await;
    client.simulator.push_fault(Fault { cut_after: Some(3), ..Fault::default() }).unwrap();
    let response = client.post("/v1/messages").body(hello().to_string()).send().await;
    let read = match response {
        Ok(response) => response.text().await,
        Err(problem) => Err(problem),
    };
    assert!(read.is_err());
}

#[tokio::test]
async fn an_overflow_can_be_claimed() {
    let script =
        format!("{SAY}[[fault]]\noverflow = {{ tokens = 214000, maximum = 200000 }}\n[[fault]]\noverflow = {{}}\n");
    let client = Client::new(&script).await;
    assert_eq!(client.send(&hello()).await.message(), "prompt is too long: 214000 tokens > 200000 maximum");
    let counted = read(client.post("/v1/messages/count_tokens").body(hello().to_string())).await.json();
    let real = format!("prompt is too long: {} tokens > 1000000 maximum", counted["input_tokens"]);
    assert_eq!(client.send(&hello()).await.message(), real);
}

#[tokio::test]
async fn a_slow_reply_is_the_same_reply() {
    let client = Client::new(SAY).await;
    let quick = client.send(&streamed()).await.text;
    client.simulator.push_fault(Fault { delay_ms: 1, slow_ms_per_event: 1, ..Fault::default() }).unwrap();
    assert_eq!(client.send(&streamed()).await.text, quick);
}

#[tokio::test]
async fn an_entry_is_readable_only_once_its_reply_has_begun() {
    let client = Client::new(SAY).await;
    let stall = Fault { stall: true, when: When { user: Some("stall".into()), ..When::default() }, ..Fault::default() };
    client.simulator.push_fault(stall).unwrap();
    let with = |tail: &str, stream: bool| {
        let mut body =
            body(json!([{"role": "user", "content": [marked(text("x", 900), "5m"), {"type": "text", "text": tail}]}]));
        body["stream"] = json!(stream);
        body
    };
    let stalled = client.post("/v1/messages").body(with("stall", true).to_string()).send().await.unwrap();
    assert_eq!(client.usage(&with("b", false)).await[2], 0, "the first reply never began");
    assert!(client.usage(&with("c", false)).await[2] > 0);
    drop(stalled);
}

#[tokio::test]
async fn dropping_the_simulator_stops_it() {
    let client = Client::new(SAY).await;
    let url = client.simulator.url();
    drop(client.simulator);
    let mut refused = false;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
        let http = super::client::http().timeout(Duration::from_secs(5)).build().unwrap();
        refused = http.get(&url).send().await.is_err();
        if refused {
            break;
        }
    }
    assert!(refused);
}
