//! OpenTelemetry: what happens in a session, as log records for the collector that the environment names (OTLP over HTTP,
//! JSON). Only builds with the feature `otel` have it, and only a session whose environment asks for it sends anything.
//!
//! A record holds what the [journal](engine::journal) holds: no text, no secret. Nobody waits for the collector but the
//! end of the program, and that not for long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::event::Listener;
use engine::{Event, journal};
use parking_lot::Mutex;
use serde_json::{Value, json};
use session::World;

use crate::{env, out};

/// Timeout of a collector.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many records wait at most; further ones are dropped.
const MOST: usize = 10_000;

/// The destination of records, if there is one. Clones share the queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Telemetry(Option<Arc<Collector>>);

#[derive(Debug)]
struct Collector {
    url: String,
    waiting: Mutex<Vec<Value>>,
    /// One request at a time: the end of the program waits for the one that is under way.
    sending: tokio::sync::Mutex<()>,
    /// True if a problem was reported.
    is_reported: AtomicBool,
}

impl Telemetry {
    /// As the environment says.
    pub(crate) fn from_env() -> Self {
        let wanted = env::TELEMETRY.flag() == Some(true);
        let url = env::COLLECTOR.get().filter(|_| wanted);
        let url = url.map(|url| format!("{}/v1/logs", url.trim_end_matches('/')));
        Self(url.map(|url| {
            Arc::new(Collector {
                url,
                waiting: Mutex::default(),
                sending: Default::default(),
                is_reported: AtomicBool::default(),
            })
        }))
    }

    /// One who hears of events and passes them on.
    pub(crate) fn hearing(&self, listener: Listener) -> Listener {
        let Some(collector) = self.0.clone() else { return listener };
        let (world, session) = (World::real(), Mutex::new(String::new()));
        Arc::new(move |event| {
            let mut session = session.lock();
            if let Event::SessionStarted { session: id, .. } = &event {
                session.clone_from(id);
            }
            if let Some((name, fields)) = journal::entry(&event) {
                let time = world.now().as_nanosecond().to_string();
                collector.add(record(name, &fields, &session, &time));
            }
            if let Event::TurnEnded { .. } = event {
                let (collector, listener) = (collector.clone(), listener.clone());
                tokio::spawn(async move {
                    if let Some(why) = collector.send().await {
                        listener(Event::Warning(why));
                    }
                });
            }
            listener(event);
        })
    }

    /// Sends what waits.
    pub(crate) async fn flush(&self) {
        let Some(collector) = &self.0 else { return };
        if let Some(why) = collector.send().await {
            out::warn(&why);
        }
    }
}

impl Collector {
    fn add(&self, record: Value) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < MOST {
            waiting.push(record);
        }
    }

    /// Sends what waits. What is wrong is said once.
    async fn send(&self) -> Option<String> {
        let _sending = self.sending.lock().await;
        let records = std::mem::take(&mut *self.waiting.lock());
        if records.is_empty() {
            return None;
        }
        let body = json!({"resourceLogs": [{
            "resource": {"attributes": [
                attribute("service.name", &json!("cairn")),
                attribute("service.version", &json!(env!("CARGO_PKG_VERSION"))),
            ]},
            "scopeLogs": [{"scope": {"name": "cairn"}, "logRecords": records}],
        }]});
        let sent = provider::post(&self.url, &BTreeMap::new(), body.to_string(), PATIENCE).await;
        let wrong = match sent {
            Ok(answer) if (200..300).contains(&answer.status) => return None,
            Ok(answer) => format!("the collector at {} answered with {}", self.url, answer.status),
            Err(why) => format!("the collector at {} could not be reached: {why}", self.url),
        };
        (!self.is_reported.swap(true, Ordering::Relaxed)).then_some(wrong)
    }
}

/// An event as a log record.
fn record(name: &str, fields: &Value, session: &str, time: &str) -> Value {
    let mut attributes = vec![attribute("event.name", &json!(name)), attribute("session.id", &json!(session))];
    flatten("", fields, &mut attributes);
    json!({
        "timeUnixNano": time, "severityNumber": 9, "severityText": "INFO",
        "body": {"stringValue": format!("cairn.{name}")}, "attributes": attributes,
    })
}

fn flatten(path: &str, fields: &Value, attributes: &mut Vec<Value>) {
    for (name, value) in fields.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => flatten(&format!("{path}{name}."), value, attributes),
            Value::Null => {}
            _ => attributes.push(attribute(&format!("{path}{name}"), value)),
        }
    }
}

fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(_) => json!({"boolValue": value}),
        // OTLP writes whole numbers as text.
        Value::Number(number) if number.is_f64() => json!({"doubleValue": value}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(_) => json!({"stringValue": value}),
        other => json!({"stringValue": other.to_string()}),
    };
    json!({"key": key, "value": value})
}
