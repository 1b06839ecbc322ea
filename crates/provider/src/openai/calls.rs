//! Tool calls, put together from their pieces.
//!
//! By the book a call's first piece has its index, its id and its name, and further pieces have the index and more of
//! the arguments. Servers in the field leave out the index, or the id, or give every call the index 0, or send each call
//! whole, or repeat name and id with every piece. [`Calls`] tells from what is there whether a piece begins a call or
//! continues one. An id that never came is made up from the request, so that the same answer to the same request always
//! gets the same id, and no two requests of a conversation do.

use serde_json::Value;
use transcript::Block;

use super::wire::CallPiece;
use crate::event::{Event, input};

/// The calls of one reply, in the order they began.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<OpenCall>);

/// A call in the making.
#[derive(Debug)]
struct OpenCall {
    index: Option<u64>,
    id: String,
    is_made_up: bool,
    name: String,
    arguments: String,
}

impl Calls {
    /// Takes a piece of a call; gives what the caller should see of it.
    pub(crate) fn take(&mut self, piece: CallPiece, seed: u64) -> Option<Event> {
        let id = piece.id.filter(|id| !id.is_empty());
        let mut function = piece.function.unwrap_or_default();
        let name = function.name.take().filter(|name| !name.is_empty());
        let more = function.into_arguments();

        let continued = self.0.iter().rposition(|open| piece.index.is_none() || open.index == piece.index);
        let continued = continued.filter(|&at| !self.0[at].is_over(id.as_deref(), name.as_deref(), &more));
        let at = continued.unwrap_or(self.0.len());
        if continued.is_none() {
            let is_made_up = id.is_none();
            let id = id.unwrap_or_else(|| format!("call_{seed:016x}_{at}"));
            let name = name.clone().unwrap_or_default();
            self.0.push(OpenCall { index: piece.index, id, is_made_up, name, arguments: String::new() });
        }
        let open = self.0.get_mut(at)?;
        if let Some(name) = name.filter(|_| open.name.is_empty()) {
            open.name = name;
        }
        open.arguments.push_str(&more);
        let shown = Event::ToolInput { id: open.id.clone(), name: open.name.clone(), partial_json: more.clone() };
        (!more.is_empty()).then_some(shown)
    }

    /// The calls as blocks, or what is wrong with one.
    pub(crate) fn blocks(&self) -> Result<Vec<Block>, String> {
        let block = |open: &OpenCall| match open.name.is_empty() {
            true => Err("a tool call without a name".to_owned()),
            false => Ok(Block::tool_use(&open.id, &open.name, &input(None, &open.arguments))),
        };
        self.0.iter().map(block).collect()
    }
}

impl OpenCall {
    /// True if a piece belongs to the next call.
    fn is_over(&self, id: Option<&str>, name: Option<&str>, more: &str) -> bool {
        match id {
            // An id alone begins nothing: some servers make a new one for every piece.
            Some(id) => name.is_some() && (self.is_made_up || id != self.id),
            // No id to go by: a name with arguments of its own, after arguments that are complete.
            None => name.is_some() && !more.is_empty() && is_object(&self.arguments),
        }
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The calls made of these pieces, as JSON without its frame.
    fn calls(pieces: &[Value]) -> Vec<(String, String, Value)> {
        let mut calls = Calls::default();
        for piece in pieces {
            calls.take(serde_json::from_value(piece.clone()).unwrap(), 7);
        }
        let field = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
        let blocks = calls.blocks().unwrap();
        blocks
            .iter()
            .map(Block::value)
            .map(|value| (field(&value, "id"), field(&value, "name"), value["input"].clone()))
            .collect()
    }

    fn expected(ids: [&str; 2]) -> Vec<(String, String, Value)> {
        let [one, two] = ids;
        vec![(one.into(), "Read".into(), json!({"a": 1})), (two.into(), "Bash".into(), json!({"b": [2]}))]
    }

    /// LOOP-2: whatever a server leaves out or repeats, the same calls come of it.
    #[test]
    fn servers_differ_and_the_calls_do_not() {
        let by_the_book = [
            json!({"index": 0, "id": "x", "type": "function", "function": {"name": "Read", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": "{\"a\""}}),
            json!({"index": 1, "id": "y", "function": {"name": "Bash", "arguments": "{\"b\":"}}),
            json!({"index": 0, "function": {"arguments": ": 1}"}}),
            json!({"index": 1, "function": {"arguments": "[2]}"}}),
        ];
        let always_repeated = [
            json!({"index": 0, "id": "x", "function": {"name": "Read", "arguments": "{\"a\""}}),
            json!({"index": 0, "id": "x", "function": {"name": "Read", "arguments": ": 1}"}}),
            json!({"index": 1, "id": "y", "function": {"name": "Bash", "arguments": "{\"b\": [2]"}}),
            json!({"index": 1, "id": "y", "function": {"name": "Bash", "arguments": "}"}}),
            json!({"index": 1, "id": "y", "function": {"name": "Bash", "arguments": ""}}),
        ];
        let always_the_first_index = [
            json!({"index": 0, "id": "x", "function": {"name": "Read", "arguments": "{\"a\": 1}"}}),
            json!({"index": 0, "id": "y", "function": {"name": "Bash", "arguments": "{\"b\": [2]}"}}),
        ];
        let no_index_and_objects = [
            json!({"id": "x", "function": {"name": "Read", "arguments": {"a": 1}}}),
            json!({"id": "y", "function": {"name": "Bash", "arguments": {"b": [2]}}}),
        ];
        let empty_ids_later = [
            json!({"index": 0, "id": "x", "function": {"name": "Read", "arguments": "{\"a\""}}),
            json!({"index": 0, "id": "", "function": {"name": null, "arguments": ": 1}"}}),
            json!({"index": 1, "id": "y", "function": {"name": "Bash", "arguments": "{\"b\": [2]}"}}),
            json!({"index": 1, "id": null, "function": {"name": "", "arguments": null}}),
        ];
        let an_id_for_every_piece = [
            json!({"index": 0, "id": "x", "function": {"name": "Read", "arguments": "{\"a\""}}),
            json!({"index": 0, "id": "x2", "function": {"arguments": ": 1}"}}),
            json!({"index": 1, "id": "y", "function": {"name": "Bash", "arguments": ""}}),
            json!({"index": 1, "id": "y2", "function": {"name": null, "arguments": "{\"b\": [2]}"}}),
        ];
        assert_eq!(calls(&an_id_for_every_piece), expected(["x", "y"]));
        assert_eq!(calls(&by_the_book), expected(["x", "y"]));
        assert_eq!(calls(&always_repeated), expected(["x", "y"]));
        assert_eq!(calls(&always_the_first_index), expected(["x", "y"]));
        assert_eq!(calls(&no_index_and_objects), expected(["x", "y"]));
        assert_eq!(calls(&empty_ids_later), expected(["x", "y"]));
    }

    #[test]
    fn ids_that_never_come_are_made_up_and_always_the_same() {
        let made_up = ["call_0000000000000007_0", "call_0000000000000007_1"];
        let with_index = [
            json!({"index": 0, "function": {"name": "Read", "arguments": "{\"a\":"}}),
            json!({"index": 0, "function": {"arguments": "1}"}}),
            json!({"index": 1, "function": {"name": "Bash", "arguments": "{\"b\":[2]}"}}),
        ];
        let with_nothing = [
            json!({"function": {"name": "Read", "arguments": "{\"a\":1}"}}),
            json!({"function": {"name": "Bash", "arguments": {"b": [2]}}}),
        ];
        assert_eq!(calls(&with_index), expected(made_up));
        assert_eq!(calls(&with_nothing), expected(made_up));
    }

    #[test]
    fn a_call_needs_a_name_and_no_arguments() {
        assert_eq!(calls(&[json!({"id": "x", "function": {"name": "Stop"}})])[0].2, json!({}));
        let mut calls = Calls::default();
        calls.take(CallPiece { id: Some("x".into()), ..CallPiece::default() }, 0);
        assert!(calls.blocks().is_err());
    }
}
