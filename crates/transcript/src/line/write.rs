//! From a [`Line`] to bytes.

use serde_json::{Value, json};

use super::{Body, Context, KeptMessages, Line, TextSource, VERSION_PREFIX, Writer};
use crate::commit::{Act, CallName, Commit, Reason, Trigger};

/// Version of lines translated from another program's format.
const IMPORTED: &str = "imported";

impl Line {
    /// The line as it is written to the file, newline included.
    pub fn render(&self, context: &Context) -> String {
        let mut out = json!({
            "parentUuid": self.parent,
            "isSidechain": self.sidechain || context.agent.is_some(),
            "userType": "external",
            "cwd": context.cwd,
            "sessionId": context.session,
            "version": match self.writer {
                Writer::Cairn => format!("{VERSION_PREFIX}{}", env!("CARGO_PKG_VERSION")),
                Writer::Other => IMPORTED.to_owned(),
            },
            "gitBranch": context.branch,
        });
        if let Some(agent) = &context.agent {
            out["agentId"] = json!(agent);
        }
        self.body.fill(&mut out);
        if let Body::Commit(Commit { act: Act::Compact { .. }, .. }) = self.body {
            // The chain starts anew at a boundary; what came before is its logical parent.
            out["logicalParentUuid"] = out["parentUuid"].take();
        }
        if let Some(KeptMessages { anchor, lines }) = self.kept.as_deref()
            && let (Some(head), Some(tail)) = (lines.first(), lines.last())
        {
            // Claude Code hangs the kept lines below the anchor when it loads the file.
            out["compactMetadata"]["preservedSegment"] =
                json!({"headUuid": head, "anchorUuid": anchor, "tailUuid": tail});
            out["compactMetadata"]["preservedMessages"] =
                json!({"anchorUuid": anchor, "uuids": lines, "allUuids": lines});
        }
        if let Some(result) = &self.result {
            out["toolUseResult"] = serde_json::from_str(result.get()).unwrap_or(Value::Null);
        }
        if let (Some(extra), None) = (&self.extra, out.get("cairn")) {
            out["cairn"] = serde_json::from_str(extra.get()).unwrap_or(Value::Null);
        }
        out["uuid"] = json!(self.id);
        out["timestamp"] = json!(self.time.map(|time| format!("{time:.3}")));
        let mut text = out.to_string();
        text.push('\n');
        text
    }
}

impl Body {
    fn fill(&self, out: &mut Value) {
        match self {
            Self::User { blocks, source } => {
                out["type"] = json!("user");
                out["message"] = json!({"role": "user", "content": blocks});
                match source {
                    TextSource::Direct => {}
                    TextSource::Injected => out["isMeta"] = json!(true),
                    TextSource::Summary => {
                        out["isVisibleInTranscriptOnly"] = json!(true);
                        out["isCompactSummary"] = json!(true);
                    }
                }
            }
            Self::Assistant { id, model, blocks, usage, stop } => {
                out["type"] = json!("assistant");
                out["message"] = json!({
                    "id": id, "type": "message", "role": "assistant", "model": model,
                    "content": blocks, "stop_reason": stop, "stop_sequence": null, "usage": usage,
                });
            }
            Self::Attachment { blocks } => {
                out["type"] = json!("attachment");
                // Claude Code asks every attachment for its kind, and shows nothing of one that it does not know.
                out["attachment"] = json!({"type": "cairn"});
                out["message"] = json!({"role": "user", "content": blocks});
            }
            Self::Commit(commit) => fill_commit(commit, out),
            Self::Prologue(prologue) => {
                out["type"] = json!("meta");
                let mut meta = json!({"kind": "prologue"});
                if let (Value::Object(meta), Ok(Value::Object(fields))) = (&mut meta, serde_json::to_value(prologue)) {
                    meta.extend(fields);
                }
                out["meta"] = meta;
            }
            Self::Meta(meta) => {
                out["type"] = json!("meta");
                out["meta"] = serde_json::from_str(meta.get()).unwrap_or(Value::Null);
            }
            Self::Other => out["type"] = json!("other"),
        }
    }
}

/// Spill, clear and compact in the form Claude Code writes them, with our reason added; the others in our own form.
fn fill_commit(commit: &Commit, out: &mut Value) {
    match &commit.act {
        Act::Spill { replacements } => {
            out["type"] = json!("content-replacement");
            let records = replacements
                .iter()
                .map(|one| json!({"kind": "tool-result", "toolUseId": one.call.id, "replacement": one.replacement}));
            out["replacements"] = records.collect();
            out["cairn"] = reason_json(&commit.reason, replacements.iter().map(|one| &one.call));
        }
        Act::Clear { results, trigger, digest } => {
            out["type"] = json!("system");
            out["subtype"] = json!("microcompact_boundary");
            out["content"] = json!("Context microcompacted");
            out["level"] = json!("info");
            out["isMeta"] = json!(false);
            out["microcompactMetadata"] = json!({
                "trigger": trigger, "preTokens": 0, "tokensSaved": commit.reason.freed.unwrap_or(0),
                "compactedToolIds": results.iter().map(|call| &call.id).collect::<Vec<_>>(), "clearedAttachmentUUIDs": [],
            });
            let mut ours = reason_json(&commit.reason, results.iter());
            if let Some(digest) = digest {
                ours["digest"] = json!(digest);
            }
            out["cairn"] = ours;
        }
        Act::Compact { extent, trigger, pre_tokens } => {
            out["type"] = json!("system");
            out["subtype"] = json!("compact_boundary");
            out["content"] = json!("Conversation compacted");
            out["level"] = json!("info");
            out["isMeta"] = json!(false);
            out["compactMetadata"] = json!({"trigger": trigger_name(*trigger), "preTokens": pre_tokens});
            let mut ours = json!(commit.reason);
            ours["extent"] = json!(extent);
            out["cairn"] = ours;
        }
        _ => {
            out["type"] = json!("commit");
            out["commit"] = json!(commit);
        }
    }
}

/// Our own key, for what other programs have no field for: the reason, and the replies that hold the calls.
fn reason_json<'a>(reason: &Reason, calls: impl Iterator<Item = &'a CallName>) -> Value {
    let mut ours = json!(reason);
    let replies: Vec<_> = calls.map(|call| &call.reply).collect();
    if replies.iter().any(|reply| reply.is_some()) {
        ours["replies"] = json!(replies);
    }
    ours
}

fn trigger_name(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Auto => "auto",
        Trigger::Manual => "manual",
    }
}
