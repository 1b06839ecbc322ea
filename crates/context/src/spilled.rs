//! Choice of results to spill, and the text that stays in view.
//!
//! The checks come in this order: an empty result becomes a note (an empty one makes some models stop); one with a
//! picture passes whole; one over its limit is spilled; and if all results of a message together are still too much,
//! the largest follow until they fit.

use crate::standing_instructions;
use transcript::Block;
use transcript::block::Kind;

/// Limit on the sentences of a long message that forbid or require something and stay in view.
const MOST_SENTENCES: usize = 40;
/// Bytes above which every result is spilled, whatever its limit.
const MOST_BYTES: usize = 400_000;
/// Bytes of a spilled result that stay in view.
const PREVIEW_BYTES: usize = 2_000;
/// Characters of a failed command's output that stay in view, half of them from the end.
const FAILURE_CHARACTERS: usize = 10_000;

/// A result the model has not seen yet.
#[derive(Debug, Clone)]
pub struct UnseenResult<'a> {
    /// The call it answers.
    pub id: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The result as the log has it.
    pub result: &'a Block,
    /// Characters of it that may stay in view; none if the tool limits itself.
    pub limit: Option<usize>,
}

/// Treatment of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillResult {
    /// The call it answers.
    pub id: String,
    /// The file to write; none if there is nothing to write.
    pub file: Option<SpillFile>,
    kind: SpilledPart,
    text: String,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillFile {
    /// Its ending: `json` for JSON, else `txt`.
    pub extension: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpilledPart {
    Note,
    Preview,
    HeadAndTail,
}

/// Chooses the results to spill. Results that stay as they are are left out.
pub fn choose(results: &[UnseenResult<'_>], message_limit: usize) -> Vec<SpillResult> {
    let mut spills = Vec::new();
    let mut kept: Vec<(&UnseenResult<'_>, String, usize)> = Vec::new();
    for fresh in results {
        let content = fresh.result.result_content();
        let text = fresh.result.result_text();
        let has_media = content.iter().any(|block| matches!(block.kind(), Kind::Image | Kind::Document));
        if !has_media && text.trim().is_empty() {
            let note = format!("({} finished without output)", fresh.tool);
            spills.push(SpillResult { id: fresh.id.to_owned(), file: None, kind: SpilledPart::Note, text: note });
            continue;
        }
        if has_media {
            continue;
        }
        let characters = text.chars().count();
        let over = fresh.limit.is_some_and(|limit| characters > limit || text.len() > MOST_BYTES);
        if over {
            spills.push(spill(fresh, text));
        } else if fresh.limit.is_some() {
            kept.push((fresh, text, characters));
        }
    }
    let mut together: usize = kept.iter().map(|(_, _, characters)| characters).sum();
    kept.sort_by_key(|(_, _, characters)| std::cmp::Reverse(*characters));
    for (fresh, text, characters) in kept {
        if together <= message_limit {
            break;
        }
        together -= characters;
        spills.push(spill(fresh, text));
    }
    spills
}

fn spill(fresh: &UnseenResult<'_>, text: String) -> SpillResult {
    let failed = matches!(fresh.result.kind(), Kind::ToolResult { failed: true, .. });
    let is_json = text.trim_start().starts_with(['{', '[']) && text.trim_end().ends_with(['}', ']']);
    let kind = if failed { SpilledPart::HeadAndTail } else { SpilledPart::Preview };
    let file = Some(SpillFile { extension: if is_json { "json" } else { "txt" } });
    SpillResult { id: fresh.id.to_owned(), file, kind, text }
}

impl SpillResult {
    /// Content of the file.
    pub fn content(&self) -> &str {
        &self.text
    }

    /// Text in view, if the whole is in a file at `path`.
    pub fn replacement(&self, path: &str) -> String {
        match self.kind {
            SpilledPart::Note => self.text.clone(),
            SpilledPart::Preview => {
                let head = head(&self.text, PREVIEW_BYTES);
                format!(
                    "<persisted-output>\nThe output is {} bytes long; all of it is in {path}. Use Read with offset and limit \
                     to see more of it, or Grep to search it. It begins:\n\n{head}\n</persisted-output>",
                    self.text.len()
                )
            }
            SpilledPart::HeadAndTail => {
                format!("{}\n\n[All {} bytes are in {path}.]", head_and_tail(&self.text), self.text.len())
            }
        }
    }

    /// Text in view, if no file could be written.
    pub fn truncated(&self, why: &str) -> String {
        match self.kind {
            SpilledPart::Note => self.text.clone(),
            SpilledPart::Preview | SpilledPart::HeadAndTail => {
                format!(
                    "{}\n\n[Cut from {} bytes: the whole could not be kept ({why}).]",
                    head_and_tail(&self.text),
                    self.text.len()
                )
            }
        }
    }
}

/// The path named in the text that stays of a result, or the reason no file was written.
pub fn place_in(replacement: &str) -> Result<String, String> {
    let between = |open: &str, close: &str| {
        let (_, after) = replacement.rsplit_once(open)?;
        after.split_once(close).map(|(inside, _)| inside.to_owned())
    };
    match between("the whole could not be kept (", ").]") {
        Some(why) => Err(why),
        None => Ok(between("; all of it is in ", ". Use Read")
            .or_else(|| between(" bytes are in ", ".]"))
            .unwrap_or_default()),
    }
}

/// Text in view of a prompt that would not fit, when all of it is in a file.
pub fn long_prompt(text: &str, path: &str) -> String {
    let shown = head_and_tail(text);
    let sentences = standing_instructions::sentences(text).into_iter().filter(|(_, strength)| strength.is_certain());
    let hidden = sentences.map(|(sentence, _)| sentence).filter(|one| !shown.contains(one));
    let forbidden: Vec<&str> = hidden.take(MOST_SENTENCES).collect();
    let forbidden = match forbidden.is_empty() {
        true => String::new(),
        false => format!("\n\n[Between them, this is forbidden or required:]\n{}", forbidden.join("\n")),
    };
    format!(
        "[This message is {} bytes long, too long for the window. All of it is in {path}: use Read with offset and limit, \
         or Grep. Its beginning and its end:]\n\n{shown}{forbidden}",
        text.len(),
    )
}

/// The beginning of a text, cut at a line's end, or at a character where the first line is too long.
fn head(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let cut = text.floor_char_boundary(most);
    match text[..cut].rfind('\n') {
        Some(end) => &text[..end],
        None => &text[..cut],
    }
}

/// The beginning and the end of a text, with the size of what is left out between.
fn head_and_tail(text: &str) -> String {
    let characters = text.chars().count();
    if characters <= FAILURE_CHARACTERS {
        return text.to_owned();
    }
    let half = FAILURE_CHARACTERS / 2;
    let start: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(characters - half).collect();
    format!("{start}\n[… {} characters left out …]\n{end}", characters - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer_settings::MESSAGE_CHARACTERS;
    use proptest::prelude::*;
    use transcript::Outcome;

    fn result(id: &str, text: &str, outcome: Outcome) -> Block {
        Block::tool_result(id, &[Block::text(text)], outcome)
    }

    fn fresh<'a>(id: &'a str, result: &'a Block, limit: Option<usize>) -> UnseenResult<'a> {
        UnseenResult { id, tool: "Bash", result, limit }
    }

    /// SPILL-1, SPILL-2: over its limit a result goes to a file, and a preview with size, path and the first lines stays;
    /// Read bounds itself.
    #[test]
    fn a_result_over_its_limit_leaves_a_preview() {
        let long = format!("{}\n", "line of text").repeat(5_000);
        let block = result("t1", &long, Outcome::Done);
        assert_eq!(choose(&[fresh("t1", &block, None)], MESSAGE_CHARACTERS), []);
        assert_eq!(choose(&[fresh("t1", &result("t1", "short", Outcome::Done), Some(30_000))], MESSAGE_CHARACTERS), []);
        for limit in [30_000, 50_000] {
            let spills = choose(&[fresh("t1", &block, Some(limit))], MESSAGE_CHARACTERS);
            assert_eq!(spills.len(), 1);
            assert_eq!(spills[0].content(), long);
            let preview = spills[0].replacement("/s/t1.txt");
            assert!(preview.starts_with("<persisted-output>") && preview.contains("/s/t1.txt"), "{preview}");
            assert_eq!(place_in(&preview), Ok("/s/t1.txt".to_owned()));
            assert_eq!(place_in(&spills[0].truncated("disk full")), Err("disk full".to_owned()));
            assert!(preview.contains("65000 bytes") && preview.len() < 2_400);
            assert!(preview.contains("line of text\n</persisted-output>"), "cut at a line's end");
        }
    }

    /// SPILL-2: characters are Unicode scalars, and a first line that is too long is cut at a character.
    #[test]
    fn a_preview_of_one_long_line_is_cut_at_a_character() {
        let block = result("t", &"日本".repeat(20_000), Outcome::Done);
        assert_eq!(
            choose(&[fresh("t", &block, Some(40_000))], MESSAGE_CHARACTERS),
            [],
            "40,000 characters are 120,000 bytes"
        );
        let spills = choose(&[fresh("t", &block, Some(39_999))], MESSAGE_CHARACTERS);
        assert!(spills[0].replacement("/x").contains("日本"));
    }

    /// SPILL-3: results that are too much together are spilled, the largest first, until they fit.
    #[test]
    fn the_largest_of_too_many_results_are_spilled() {
        let blocks: Vec<Block> =
            (0..10).map(|n| result(&format!("t{n}"), &"x".repeat(20_000 + n * 1_000), Outcome::Done)).collect();
        let ids: Vec<String> = (0..10).map(|n| format!("t{n}")).collect();
        let all: Vec<UnseenResult<'_>> =
            blocks.iter().zip(&ids).map(|(block, id)| fresh(id, block, Some(50_000))).collect();
        let spilled: Vec<String> = choose(&all, MESSAGE_CHARACTERS).into_iter().map(|spill| spill.id).collect();
        assert_eq!(spilled, ["t9", "t8"], "245,000 characters less 29,000 and 28,000");
    }

    /// SPILL-6: nothing becomes a note; a picture passes whole; a failed command keeps its head and its tail.
    #[test]
    fn empty_pictures_and_failures_have_their_own_ways() {
        let empty = result("t", " \n", Outcome::Done);
        assert_eq!(
            choose(&[fresh("t", &empty, Some(10))], MESSAGE_CHARACTERS)[0].replacement(""),
            "(Bash finished without output)"
        );
        let picture = Block::tool_result("t", &[Block::image("image/png", &"A".repeat(900_000))], Outcome::Done);
        assert_eq!(choose(&[fresh("t", &picture, Some(10))], MESSAGE_CHARACTERS), []);
        let failed = result("t", &format!("first{}last", "x".repeat(60_000)), Outcome::Failed);
        let stays = choose(&[fresh("t", &failed, Some(30_000))], MESSAGE_CHARACTERS)[0].replacement("/x.txt");
        assert!(stays.starts_with("first") && stays.contains("last\n") && stays.contains("/x.txt"));
        assert!(stays.chars().count() < 10_200);
    }

    proptest! {
        #[test]
        fn previews_are_bounded_and_never_break_a_character(text in "\\PC{0,50}", times in 1..2_000usize) {
            let block = result("t", &text.repeat(times), Outcome::Done);
            for spill in choose(&[fresh("t", &block, Some(1_000))], MESSAGE_CHARACTERS) {
                prop_assert!(spill.replacement("/p").len() <= PREVIEW_BYTES + 400);
                prop_assert!(spill.truncated("full").chars().count() <= FAILURE_CHARACTERS + 200);
            }
        }
    }
}
