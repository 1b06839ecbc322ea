//! From bytes to a [`Line`].

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::from_str;
use serde_json::value::RawValue;

use super::{Body, Line, MalformedLine, SYNTHETIC_MODEL, TextSource, VERSION_PREFIX, Writer};
use crate::block::{Block, blocks_of, read_blocks};
use crate::commit::{Act, CallName, Commit, Extent, Reason, Replacement, Trigger};
use crate::id::Id;
use crate::message::{Prologue, StopReason, Usage};
use crate::text::{Cursor, Text, TextFault};

/// The fields the view needs; all others are skipped without being looked at.
#[derive(Default)]
struct WireLine<'a> {
    kind: Text<'a>,
    uuid: Text<'a>,
    parent_uuid: Text<'a>,
    logical_parent_uuid: Text<'a>,
    timestamp: Text<'a>,
    version: Text<'a>,
    subtype: Text<'a>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_visible_in_transcript_only: Option<bool>,
    is_api_error_message: Option<bool>,
    message: Option<WireMessage<'a>>,
    attachment: Option<&'a RawValue>,
    rendered: Option<&'a RawValue>,
    rendered_role: Option<&'a RawValue>,
    compact_metadata: Option<CompactMetadata>,
    microcompact_metadata: Option<MicrocompactMetadata>,
    snip_metadata: Option<SnipMetadata>,
    replacements: Option<&'a RawValue>,
    commit: Option<&'a RawValue>,
    meta: Option<&'a RawValue>,
    cairn: Option<&'a RawValue>,
    // A collapse, as some versions of Claude Code wrote it.
    first_archived_uuid: Option<String>,
    last_archived_uuid: Option<String>,
    summary_content: Option<String>,
}

impl<'a> WireLine<'a> {
    fn read(json: &'a str) -> Result<Self, serde_json::Error> {
        let mut wire = Self::default();
        let mut cursor = Cursor::new(json);
        let read = cursor.members(|key, cursor| wire.read_member(&key, cursor));
        match read.and_then(|()| cursor.end()) {
            Ok(()) => Ok(wire),
            Err(TextFault::Shape) => Err(what_is_wrong(json)),
            Err(TextFault::Part(error)) => Err(error),
        }
    }

    fn read_member(&mut self, key: &str, cursor: &mut Cursor<'a>) -> Result<(), TextFault> {
        if key == "message" {
            self.message = WireMessage::read(cursor)?;
            return Ok(());
        }
        let value = cursor.value()?;
        match key {
            "type" => self.kind = Text::read(value)?,
            "uuid" => self.uuid = Text::read(value)?,
            "parentUuid" => self.parent_uuid = Text::read(value)?,
            "logicalParentUuid" => self.logical_parent_uuid = Text::read(value)?,
            "timestamp" => self.timestamp = Text::read(value)?,
            "version" => self.version = Text::read(value)?,
            "subtype" => self.subtype = Text::read(value)?,
            "isSidechain" => self.is_sidechain = from_str(value)?,
            "isMeta" => self.is_meta = from_str(value)?,
            "isCompactSummary" => self.is_compact_summary = from_str(value)?,
            "isVisibleInTranscriptOnly" => self.is_visible_in_transcript_only = from_str(value)?,
            "isApiErrorMessage" => self.is_api_error_message = from_str(value)?,
            "attachment" => self.attachment = from_str(value)?,
            "rendered" => self.rendered = from_str(value)?,
            "renderedRole" => self.rendered_role = from_str(value)?,
            "compactMetadata" => self.compact_metadata = from_str(value)?,
            "microcompactMetadata" => self.microcompact_metadata = from_str(value)?,
            "snipMetadata" => self.snip_metadata = from_str(value)?,
            "replacements" => self.replacements = from_str(value)?,
            "commit" => self.commit = from_str(value)?,
            "meta" => self.meta = from_str(value)?,
            "cairn" => self.cairn = from_str(value)?,
            "firstArchivedUuid" => self.first_archived_uuid = from_str(value)?,
            "lastArchivedUuid" => self.last_archived_uuid = from_str(value)?,
            "summaryContent" => self.summary_content = from_str(value)?,
            _ => {}
        }
        Ok(())
    }
}

/// The error that a strict parser reports for a text that is no JSON object.
fn what_is_wrong(json: &str) -> serde_json::Error {
    let strict = from_str::<serde_json::Map<String, serde_json::Value>>(json);
    strict.err().unwrap_or_else(|| serde::de::Error::custom("no object"))
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CompactMetadata {
    trigger: Option<Trigger>,
    pre_tokens: u64,
    preserved_segment: Option<PreservedSegment>,
    preserved_messages: Option<PreservedMessages>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreservedSegment {
    head_uuid: Id,
}

#[derive(Deserialize)]
struct PreservedMessages {
    #[serde(default)]
    uuids: Vec<Id>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MicrocompactMetadata {
    trigger: Option<Trigger>,
    tokens_saved: Option<u64>,
    compacted_tool_ids: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct SnipMetadata {
    removed_uuids: Vec<Id>,
}

/// Type of an attachment.
#[derive(Deserialize)]
struct AttachmentKind<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
}

/// Claude Code's attachments about itself, although it shows them beside the user's words.
const ABOUT_ITSELF: [&str; 1] = ["remote_session_change"];

/// A part of a rendered attachment.
#[derive(Deserialize)]
struct RenderedPart<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

/// The parts of a message that the view needs.
#[derive(Default)]
struct WireMessage<'a> {
    id: Text<'a>,
    model: Text<'a>,
    blocks: Vec<Block>,
    usage: Option<LenientUsage>,
    stop_reason: Option<StopReason>,
}

impl<'a> WireMessage<'a> {
    /// Reads a message at the cursor. None if a part of it has the wrong type.
    fn read(cursor: &mut Cursor<'a>) -> Result<Option<Self>, TextFault> {
        if cursor.peek() != Some(b'{') {
            cursor.value()?;
            return Ok(None);
        }
        let mut message = Self::default();
        let mut is_other = false;
        cursor.members(|key, cursor| {
            if key == "content" {
                message.blocks = read_blocks(cursor)?;
                return Ok(());
            }
            let value = cursor.value()?;
            let read = match key.as_ref() {
                "id" => Text::read(value).map(|id| message.id = id),
                "model" => Text::read(value).map(|model| message.model = model),
                "usage" => from_str(value).map(|usage| message.usage = usage),
                "stop_reason" => from_str(value).map(|stop| message.stop_reason = stop),
                _ => Ok(()),
            };
            match read {
                Err(error) if error.is_data() => is_other = true,
                read => read?,
            }
            Ok(())
        })?;
        Ok((!is_other).then_some(message))
    }
}

/// Usage as other programs record it: any figure may be null.
#[derive(Deserialize, Default)]
#[serde(default)]
struct LenientUsage {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<crate::message::CacheCreation>,
    output_tokens: Option<u64>,
    web_searches: Option<u64>,
}

impl From<LenientUsage> for Usage {
    fn from(usage: LenientUsage) -> Self {
        Self {
            input_tokens: usage.input_tokens.unwrap_or_default(),
            cache_read_input_tokens: usage.cache_read_input_tokens.unwrap_or_default(),
            cache_creation_input_tokens: usage.cache_creation_input_tokens.unwrap_or_default(),
            cache_creation: usage.cache_creation.unwrap_or_default(),
            output_tokens: usage.output_tokens.unwrap_or_default(),
            web_searches: usage.web_searches.unwrap_or_default(),
        }
        .bounded()
    }
}

/// Our own key on the boundary of a compaction.
#[derive(Deserialize)]
struct OurCompact {
    extent: Option<Extent>,
    #[serde(flatten)]
    reason: Reason,
}

/// Our own key on a clear commit.
#[derive(Deserialize, Default)]
struct OurClear {
    digest: Option<String>,
    #[serde(flatten)]
    reason: Reason,
}

/// Our own key on a commit that rewrites results: the replies that hold their calls, in the same order.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OurCalls {
    replies: Vec<Option<Id>>,
}

/// A replaced result, as Claude Code writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireReplacement {
    tool_use_id: String,
    replacement: String,
}

/// Type of a `meta` line.
#[derive(Deserialize)]
struct MetaKind<'a> {
    #[serde(borrow, default)]
    kind: Text<'a>,
}

impl Line {
    /// Reads a line. Unknown types and fields are no error.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedLine> {
        let text = std::str::from_utf8(bytes).map_err(|_| MalformedLine::Utf8)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // A lone surrogate is no text anywhere but in JavaScript; it becomes the replacement character.
        let mended = memchr::memmem::find(bytes, b"\\ud").and_then(|_| without_lone_surrogates(text));
        Ok(WireLine::read(mended.as_deref().unwrap_or(text))?.into_line())
    }
}

impl WireLine<'_> {
    fn into_line(self) -> Line {
        let parent = self.parent_uuid.get().or(self.logical_parent_uuid.get()).map(Id::from);
        let ours = self.version.0.starts_with(VERSION_PREFIX);
        Line {
            id: self.uuid.get().map(Id::from),
            parent,
            time: self.timestamp.get().and_then(|time| time.parse().ok()),
            sidechain: self.is_sidechain.unwrap_or(false),
            writer: if ours { Writer::Cairn } else { Writer::Other },
            extra: self.cairn.map(ToOwned::to_owned),
            kept: None,
            result: None,
            body: self.body(),
        }
    }

    fn body(mut self) -> Body {
        let message = self.message.take();
        match self.kind.0.as_ref() {
            "user" => message.map_or(Body::Other, |message| self.user(message)),
            "assistant" => message.map_or(Body::Other, |message| self.assistant(message)),
            "attachment" => self.attachment(message),
            "system" => match self.subtype.0.as_ref() {
                "compact_boundary" => self.compact(),
                "microcompact_boundary" => self.clear(),
                "snip_boundary" => self.snip(),
                _ => Body::Other,
            },
            "content-replacement" => self.spill(),
            "marble-origami-commit" => self.collapse(),
            "commit" => self.commit.and_then(|raw| from_str(raw.get()).ok()).map_or(Body::Other, Body::Commit),
            "meta" => self.meta(),
            _ => Body::Other,
        }
    }

    /// Ours is a message. Claude Code's is data, along with the text the model was shown: on the user's side, or as the
    /// system's, which is about that program's own tools and is left out.
    fn attachment(&self, message: Option<WireMessage<'_>>) -> Body {
        if let Some(message) = message {
            return Body::Attachment { blocks: message.blocks };
        }
        let about_itself = self.attachment.is_some_and(|raw| {
            from_str::<AttachmentKind<'_>>(raw.get()).is_ok_and(|one| ABOUT_ITSELF.contains(&one.kind.0.as_ref()))
        });
        let beside_user = self.rendered_role.is_some_and(|role| role.get() == "\"user\"") && !about_itself;
        let rendered: Option<Vec<RenderedPart<'_>>> = self.rendered.and_then(|raw| from_str(raw.get()).ok());
        match rendered {
            Some(parts) if beside_user => {
                Body::Attachment { blocks: parts.iter().flat_map(|part| blocks_of(part.content)).collect() }
            }
            _ => Body::Other,
        }
    }

    fn user(&self, message: WireMessage<'_>) -> Body {
        let summary = self.is_compact_summary.unwrap_or(false);
        if self.is_visible_in_transcript_only.unwrap_or(false) && !summary {
            return Body::Other;
        }
        let source = match (summary, self.is_meta.unwrap_or(false)) {
            (true, _) => TextSource::Summary,
            (false, true) => TextSource::Injected,
            (false, false) => TextSource::Direct,
        };
        Body::User { blocks: message.blocks, source }
    }

    fn assistant(&self, message: WireMessage<'_>) -> Body {
        if message.model.0 == SYNTHETIC_MODEL || self.is_api_error_message.unwrap_or(false) {
            return Body::Other;
        }
        // A reply without an id of its own is a reply by itself.
        let id = message.id.get().or(self.uuid.get()).map_or_else(|| Id::from(""), Id::from);
        Body::Assistant {
            id,
            model: message.model.0.into_owned(),
            blocks: message.blocks,
            stop: message.stop_reason,
            usage: message.usage.map(Usage::from),
        }
    }

    fn reason(&self) -> Reason {
        self.cairn.and_then(|raw| from_str(raw.get()).ok()).unwrap_or_default()
    }

    fn compact(&self) -> Body {
        let metadata = self.compact_metadata.as_ref();
        let ours: Option<OurCompact> = self.cairn.and_then(|raw| from_str(raw.get()).ok());
        let kept = metadata.and_then(|metadata| {
            let messages = metadata.preserved_messages.as_ref().and_then(|kept| kept.uuids.first());
            messages.or(metadata.preserved_segment.as_ref().map(|segment| &segment.head_uuid)).cloned()
        });
        let (extent, reason) = match ours {
            Some(OurCompact { extent: Some(extent), reason }) => (extent, reason),
            other => {
                let extent = kept.map_or(Extent::Everything, Extent::Before);
                (extent, other.map(|ours| ours.reason).unwrap_or_default())
            }
        };
        let act = Act::Compact {
            extent,
            trigger: metadata.and_then(|metadata| metadata.trigger).unwrap_or_default(),
            pre_tokens: metadata.map_or(0, |metadata| metadata.pre_tokens),
        };
        Body::Commit(Commit { act, reason })
    }

    fn clear(&self) -> Body {
        let Some(metadata) = &self.microcompact_metadata else { return Body::Other };
        let ours: Option<OurClear> = self.cairn.and_then(|raw| from_str(raw.get()).ok());
        let OurClear { digest, mut reason } = ours.unwrap_or_default();
        if self.cairn.is_none() {
            reason.freed = metadata.tokens_saved;
        }
        let results = self.call_names(metadata.compacted_tool_ids.iter().cloned());
        let trigger = metadata.trigger.unwrap_or_default();
        Body::Commit(Commit { act: Act::Clear { results, trigger, digest }, reason })
    }

    fn snip(&self) -> Body {
        let Some(metadata) = &self.snip_metadata else { return Body::Other };
        let act = Act::Snip { uuids: metadata.removed_uuids.clone(), marker: "[earlier messages removed]".to_owned() };
        Body::Commit(Commit { act, reason: Reason::default() })
    }

    fn spill(&self) -> Body {
        let wire: Option<Vec<WireReplacement>> = self.replacements.and_then(|raw| from_str(raw.get()).ok());
        let Some(wire) = wire else { return Body::Other };
        let (ids, texts): (Vec<String>, Vec<String>) =
            wire.into_iter().map(|one| (one.tool_use_id, one.replacement)).unzip();
        let calls = self.call_names(ids.into_iter());
        let replacements = calls.into_iter().zip(texts).map(|(call, replacement)| Replacement { call, replacement });
        Body::Commit(Commit { act: Act::Spill { replacements: replacements.collect() }, reason: self.reason() })
    }

    /// Calls by their ids and, if we recorded them, the replies that hold them.
    fn call_names(&self, ids: impl Iterator<Item = String>) -> Vec<CallName> {
        let ours: Option<OurCalls> = self.cairn.and_then(|raw| from_str(raw.get()).ok());
        let mut replies = ours.unwrap_or_default().replies.into_iter();
        ids.map(|id| CallName { id, reply: replies.next().flatten() }).collect()
    }

    fn collapse(&self) -> Body {
        let (Some(first), Some(last), Some(summary)) =
            (&self.first_archived_uuid, &self.last_archived_uuid, &self.summary_content)
        else {
            return Body::Other;
        };
        let act = Act::Collapse { first: first.into(), last: last.into(), summary: summary.clone() };
        Body::Commit(Commit { act, reason: Reason::default() })
    }

    fn meta(&self) -> Body {
        let Some(raw) = self.meta else { return Body::Other };
        let kind = from_str::<MetaKind<'_>>(raw.get()).map(|meta| meta.kind.0).unwrap_or(Cow::Borrowed(""));
        match kind.as_ref() {
            "prologue" => from_str::<Prologue>(raw.get()).map_or(Body::Other, Body::Prologue),
            _ => Body::Meta(raw.to_owned()),
        }
    }
}

/// The text with escapes of lone surrogates replaced, or none if there are none.
fn without_lone_surrogates(text: &str) -> Option<String> {
    let escape = |at: usize| -> Option<u16> {
        let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        match escape(at) {
            Some(0xd800..=0xdbff) if matches!(escape(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    (copied > 0).then(|| out + &text[copied..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(content: &str) -> String {
        format!(r#"{{"type":"user","uuid":"u","message":{{"role":"user","content":{content}}},"toolUseResult":[tru]}}"#)
    }

    /// LOG-2: what the view keeps is checked as a strict reader would; what it does not keep may be anything.
    #[test]
    fn a_message_that_is_no_json_is_malformed() {
        for content in [r#""a\nb""#, r#"[{"type":"text","text":"a"}]"#, "null", "[]", "7", r#"["a",1]"#] {
            assert!(Line::parse(line(content).as_bytes()).is_ok(), "{content}");
        }
        for content in [
            "\"a\tb\"",
            r#""\x""#,
            "nul",
            "[nul]",
            r#"[{"type":"text","text":"\u12g4"}]"#,
            r#"[{"type":"tool_use","id":"t","name":"n","input":{"a":01}}]"#,
            r#"[{"type":"tool_result","tool_use_id":"t","content":"\q"}]"#,
            r#"[{"type":"tool_result","tool_use_id":"t","content":[tru]}]"#,
            r#"[{"type":"hologram","light":+1}]"#,
        ] {
            assert!(Line::parse(line(content).as_bytes()).is_err(), "{content}");
        }
    }
}
