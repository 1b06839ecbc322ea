//! A hook that asks a small model whether a condition holds.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::{Value, json};
use transcript::mark::Marks;
use transcript::{Block, Message, Prologue, Request, Role, Usage};

use super::answer::Said;
use super::moment::Moment;
use crate::agent::Small;

const SYSTEM: &str = include_str!("prompt.md");
/// The longest answer, in tokens.
const ANSWER: u64 = 1_000;
/// What stands for the input in a question.
const ARGUMENTS: &str = "$ARGUMENTS";

/// Asks.
pub(super) async fn ask(moment: Moment, prompt: &str, input: &Value, asked: &Small) -> Said {
    let request = request(prompt, input, &asked.name);
    let mut events = asked.model.stream(request);
    while let Some(event) = events.next().await {
        match event {
            provider::Event::Done(reply) => {
                let text: Vec<String> = reply.blocks.iter().filter_map(Block::as_text).collect();
                return answered(moment, &text.join("\n"), (asked.name.clone(), reply.usage));
            }
            provider::Event::Failed(error) => return Said::failed(format!("the model was not reached: {error}")),
            _ => {}
        }
    }
    Said::failed("the model did not answer")
}

fn request(prompt: &str, input: &Value, model: &str) -> Request {
    let input = input.to_string();
    let question = match prompt.contains(ARGUMENTS) {
        true => prompt.replace(ARGUMENTS, &input),
        false => format!("{prompt}\n\n{input}"),
    };
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string"}},
        "required": ["ok"],
        "additionalProperties": false,
    });
    let prologue = Prologue {
        model: model.to_owned(),
        max_tokens: ANSWER,
        system: vec![Block::text(SYSTEM.trim())],
        static_blocks: 1,
        format: Some(schema),
        ..Prologue::default()
    };
    let messages = vec![Message { role: Role::User, blocks: vec![Block::text(question)] }];
    Request { prologue: Arc::new(prologue), messages, marks: Marks::default() }
}

fn answered(moment: Moment, text: &str, used: (String, Usage)) -> Said {
    // A small model may put words around it.
    let found = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    let answer: Option<Value> = found.and_then(|found| serde_json::from_str(found).ok());
    let said = match answer.as_ref().and_then(|answer| Some((answer, answer["ok"].as_bool()?))) {
        Some((_, true)) => Said::default(),
        Some((answer, false)) => {
            let reason = answer["reason"].as_str().unwrap_or("the condition does not hold").to_owned();
            Said::refusing(moment, reason)
        }
        None => Said::failed("the model's answer could not be understood"),
    };
    Said { used: Some(used), ..said }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HOOK-2: `$ARGUMENTS` is the input; where it does not stand, the input follows.
    #[test]
    fn the_input_stands_where_the_question_says() {
        let asked = |prompt: &str| request(prompt, &json!({"a": 1}), "m").messages[0].blocks[0].as_text().unwrap();
        assert_eq!(asked("Is $ARGUMENTS fine?"), r#"Is {"a":1} fine?"#);
        assert_eq!(asked("Fine?"), "Fine?\n\n{\"a\":1}");
    }

    /// HOOK-2: no is no, and an answer that is none decides nothing.
    #[test]
    fn a_models_answer_decides() {
        let of = |text: &str| answered(Moment::Stop, text, ("m".into(), Usage::default()));
        assert_eq!(of("{\"ok\": true}").block, None);
        assert_eq!(of("Sure: {\"ok\": false, \"reason\": \"tests\"}.").block.as_deref(), Some("tests"));
        assert!(of("yes").failed.is_some() && of("{\"ok\": 1}").failed.is_some());
    }
}
