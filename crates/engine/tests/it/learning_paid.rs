//! What learning costs: it keeps to the day's budget, and what it used stands in the ledger however it ends.

use std::sync::Arc;

use engine::Event;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use settings::Budget;
use tokio::sync::Notify;
use transcript::{Remarks, Reply, StopReason, Usage};

use crate::learning::{GOOD, TASK, learning_requests, settled};
use crate::stage::{Stage, say};

/// BUDGET-1: a budget that is spent stops learning within one round, visibly, and the conversation goes on.
#[tokio::test]
async fn a_budget_that_is_spent_stops_learning_within_a_round() {
    let stage = Stage::new(GOOD).await;
    let mut agent = stage.learning_agent(None).await;
    // The first round of the first run passes it.
    agent.ledger().set_budget(Budget { tokens: Some(1), ..Budget::default() });
    say(&mut agent, "We deploy on Mondays.").await;
    settled(&mut agent).await;
    assert_eq!(learning_requests(&stage).len(), 1);
    assert!(
        stage.learnt()[0].failed.as_ref().is_some_and(|failure| failure.why.contains("pauses")),
        "{:?}",
        stage.learnt()[0].failed
    );
    let turn = say(&mut agent, "And on Fridays we deploy on Fridays.").await;
    assert_eq!(turn.text, "Good.");
    settled(&mut agent).await;
    assert_eq!(learning_requests(&stage).len(), 1, "no further run begins");
    let events = stage.events.lock().unwrap();
    let told = |event: &Event| matches!(event, Event::Warning(text) if text.contains("pauses"));
    assert_eq!(events.iter().filter(|event| told(event)).count(), 1);
}

/// A model that answers, and whose learning begins to reply and does not come to an end.
struct Unfinished(Arc<Notify>);

impl provider::Model for Unfinished {
    fn stream(&self, request: transcript::Request) -> BoxStream<'static, provider::Event> {
        let usage = Usage { input_tokens: 700, output_tokens: 1, ..Usage::default() };
        let (id, model) = ("m".to_owned(), "claude-sonnet-5".to_owned());
        let started = provider::Event::Started { id: id.clone(), model: model.clone(), usage };
        if !serde_json::to_string(&request.messages).unwrap().contains(TASK) {
            let (blocks, stop) = (vec![transcript::Block::text("Good.")], StopReason::EndTurn);
            let reply = Reply { id, model, blocks, stop, usage, remarks: Remarks::default() };
            return stream::iter([started, provider::Event::Done(reply)]).boxed();
        }
        let begun = self.0.clone();
        let never = stream::once(async move {
            begun.notify_one();
            std::future::pending().await
        });
        stream::iter([started]).chain(never).boxed()
    }

    fn count_tokens(&self, _: transcript::Request) -> BoxFuture<'static, Result<u64, provider::Error>> {
        Box::pin(async { Ok(700) })
    }
}

/// BUDGET-1, EXTRACT-1: what learning has used that is stopped with the session stands in the ledger and in the log.
#[tokio::test]
async fn learning_that_is_stopped_with_the_session_is_paid_for() {
    let stage = Stage::new(GOOD).await;
    let begun = Arc::new(Notify::new());
    let unfinished = Arc::new(Unfinished(begun.clone()));
    let mut agent = stage.learning_agent_with(|parts| parts.talk.model = unfinished).await;
    say(&mut agent, "We deploy on Mondays, please keep that in mind.").await;
    begun.notified().await;
    let (ledger, path) = (agent.ledger().clone(), agent.session().path().to_owned());
    agent.close().await;
    assert_eq!(ledger.today().kinds["extract"].tokens, 701);
    let log = std::fs::read_to_string(path).unwrap();
    assert!(log.contains(r#""kind":"side","agent":"extract""#), "{log}");
}
