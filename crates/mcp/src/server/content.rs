//! Content of a server's as blocks: what a model can see as it is, and the rest named.
//!
//! All of it is data. Nothing here is trusted to be of the kind or the size it claims.

use serde_json::Value;
use transcript::block::{Block, Outcome};

use super::fault::words;
use crate::outcome::{PromptReply, ServerReply};

/// Pictures that models take.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Documents that models take.
const PDF: &str = "application/pdf";

/// Blocks of a reply with the room that is left for more.
struct Blocks {
    blocks: Vec<Block>,
    room: usize,
    left_out: usize,
}

/// The answer to a call. Structured content stands for its texts.
pub(super) fn reply(result: &Value, most: usize) -> ServerReply {
    let mut blocks = Blocks { blocks: Vec::new(), room: most, left_out: 0 };
    let structured = result.get("structuredContent").filter(|structured| !structured.is_null());
    if let Some(structured) = structured {
        blocks.text(&structured.to_string());
    }
    for part in result["content"].as_array().into_iter().flatten() {
        if structured.is_none() || part["type"] != "text" {
            blocks.part(part);
        }
    }
    let outcome = if result["isError"] == true { Outcome::Failed } else { Outcome::Done };
    ServerReply { blocks: blocks.finish(most), outcome }
}

/// The content of a resource.
pub(super) fn resource(result: &Value, most: usize) -> ServerReply {
    let mut blocks = Blocks { blocks: Vec::new(), room: most, left_out: 0 };
    for contents in result["contents"].as_array().into_iter().flatten() {
        blocks.contents(contents);
    }
    ServerReply { blocks: blocks.finish(most), outcome: Outcome::Done }
}

/// A prompt with its messages in order.
pub(super) fn prompt(result: &Value, most: usize) -> PromptReply {
    let mut blocks = Blocks { blocks: Vec::new(), room: most, left_out: 0 };
    let messages = result["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let is_dialogue = messages.iter().any(|message| message["role"] == "assistant");
    for message in messages {
        if is_dialogue {
            blocks.text(if message["role"] == "assistant" { "[assistant]" } else { "[user]" });
        }
        match &message["content"] {
            Value::Array(parts) => parts.iter().for_each(|part| blocks.part(part)),
            part => blocks.part(part),
        }
    }
    PromptReply { description: result["description"].as_str().map(words), blocks: blocks.finish(most) }
}

impl Blocks {
    fn part(&mut self, part: &Value) {
        let field = |key: &str| part[key].as_str().unwrap_or_default();
        match field("type") {
            "text" => self.text(field("text")),
            "image" => self.binary("image", field("mimeType"), field("data"), None),
            "audio" => self.binary("audio", field("mimeType"), field("data"), None),
            "resource" => self.contents(&part["resource"]),
            "resource_link" => {
                let mut link = format!("[link to the resource {}", one_line(field("uri")));
                for key in ["name", "mimeType", "description"] {
                    if !field(key).is_empty() {
                        link += &format!(", {}", one_line(field(key)));
                    }
                }
                self.text(&(link + "]"));
            }
            kind => self.text(&format!("[content of the unknown type {}]", one_line(kind))),
        }
    }

    /// Text or bytes of a resource.
    fn contents(&mut self, contents: &Value) {
        let field = |key: &str| contents[key].as_str();
        let (uri, kind) = (one_line(field("uri").unwrap_or("without address")), field("mimeType").unwrap_or_default());
        match (field("text"), field("blob")) {
            (Some(text), _) => self.text(&format!("[resource {uri}]\n{text}")),
            (None, Some(blob)) => self.binary("resource", kind, blob, Some(&uri)),
            (None, None) => self.text(&format!("[resource {uri}, empty]")),
        }
    }

    fn text(&mut self, text: &str) {
        let kept = &text[..text.floor_char_boundary(self.room.min(text.len()))];
        self.left_out += text.len() - kept.len();
        self.room -= kept.len();
        if !kept.is_empty() {
            self.blocks.push(Block::text(kept));
        }
    }

    fn binary(&mut self, what: &str, media_type: &str, base64: &str, uri: Option<&str>) {
        if base64.len() > self.room {
            self.left_out += base64.len();
            return;
        }
        let is_base64 = is_base64(base64);
        if is_base64 && PICTURES.contains(&media_type) && what != "audio" {
            self.room -= base64.len();
            self.blocks.push(Block::image(media_type, base64));
        } else if is_base64 && media_type == PDF {
            self.room -= base64.len();
            self.blocks.push(Block::document(media_type, base64));
        } else {
            let uri = uri.map(|uri| format!(" {uri}")).unwrap_or_default();
            let kind = if media_type.is_empty() { "unknown" } else { media_type };
            self.text(&format!(
                "[{what}{uri} of type {}, {} bytes, cannot be shown]",
                one_line(kind),
                base64.len() / 4 * 3
            ));
        }
    }

    fn finish(mut self, most: usize) -> Vec<Block> {
        if self.left_out > 0 {
            let (left_out, most) = (self.left_out, most >> 20);
            self.blocks.push(Block::text(format!("[{left_out} more bytes were left out: a reply may have {most} MB]")));
        }
        self.blocks
    }
}

/// A text of the server's for a line of ours.
fn one_line(text: &str) -> String {
    let line: String = words(text).chars().map(|c| if matches!(c, '\n' | '[' | ']') { ' ' } else { c }).collect();
    line.trim().to_owned()
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(reply: &ServerReply) -> Vec<String> {
        reply.blocks.iter().map(|block| block.as_text().unwrap_or_else(|| block.json().to_owned())).collect()
    }

    /// MCP-1: structured content stands for its texts; pictures next to it stay.
    #[test]
    fn structured_content_is_preferred_to_text() {
        let picture = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
        let both = json!({"content": [{"type": "text", "text": "{\"a\": 1}"}, picture], "structuredContent": {"a": 1}});
        let reply = super::reply(&both, 1 << 20);
        assert_eq!(texts(&reply)[0], r#"{"a":1}"#);
        assert_eq!(reply.blocks[1], Block::image("image/png", "aGk="));
        assert_eq!((reply.blocks.len(), reply.outcome), (2, Outcome::Done));
    }

    /// MCP-1: what a model cannot see is named, and a server cannot forge such a name.
    #[test]
    fn what_cannot_be_shown_is_named() {
        let result = json!({"isError": true, "content": [
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "image", "mimeType": "image/tiff", "data": "AAAA"},
            {"type": "image", "mimeType": "image/png", "data": "not base64"},
            {"type": "resource_link", "uri": "file:///a]\n[b", "name": "n"},
            {"type": "resource", "resource": {"uri": "demo://x", "text": "hello"}},
            {"type": "resource", "resource": {"uri": "demo://y", "mimeType": "image/png", "blob": "aGk="}},
            {"type": "resource", "resource": {"uri": "demo://z", "mimeType": "application/zip", "blob": "aGk="}},
            {"type": "hologram"}, 5,
        ]});
        let reply = super::reply(&result, 1 << 20);
        assert_eq!(reply.outcome, Outcome::Failed);
        assert_eq!(
            texts(&reply),
            [
                "[audio of type audio/wav, 3 bytes, cannot be shown]",
                "[image of type image/tiff, 3 bytes, cannot be shown]",
                "[image of type image/png, 6 bytes, cannot be shown]",
                "[link to the resource file:///a   b, n]",
                "[resource demo://x]\nhello",
                Block::image("image/png", "aGk=").json(),
                "[resource demo://z of type application/zip, 3 bytes, cannot be shown]",
                "[content of the unknown type hologram]",
                "[content of the unknown type ]",
            ]
        );
    }

    /// MCP-1: a reply has a limit; what is left out is said.
    #[test]
    fn a_reply_that_is_too_long_says_what_was_left_out() {
        let long = "é".repeat(600);
        let result = json!({"content": [{"type": "text", "text": long}, {"type": "text", "text": "more"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA".repeat(300)}]});
        let reply = super::reply(&result, 1001);
        let texts = texts(&reply);
        assert_eq!(texts[0], "é".repeat(500));
        assert!(texts.last().unwrap().starts_with("[1403 more bytes were left out"), "{texts:?}");
    }

    #[test]
    fn a_prompt_of_both_roles_says_who_speaks() {
        let result = json!({"description": "d", "messages": [
            {"role": "user", "content": {"type": "text", "text": "a"}},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        ]});
        let prompt = super::prompt(&result, 1000);
        let texts: Vec<_> = prompt.blocks.iter().filter_map(Block::as_text).collect();
        assert_eq!(texts, ["[user]", "a", "[assistant]", "b"]);
    }
}
