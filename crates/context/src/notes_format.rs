//! Layout of the notes: one file a session, in ten sections.
//!
//! This module has the prompt for their writer, the check that edits keep the layout, the addition of digests, and the
//! excerpt for a compaction. It opens no file.

use crate::template::fill;

/// An empty notes file.
pub const TEMPLATE: &str = include_str!("prompts/notes.md");
/// Prompt for the fork.
pub const PROMPT: &str = include_str!("prompts/notes_update.md");

/// Limit on a section, in tokens.
const SECTION_TOKENS: u64 = 2_000;
/// Limit on all sections together.
const ALL_TOKENS: u64 = 12_000;
/// The section that every update has to rewrite.
const CURRENT: &str = "Current State";
/// The section that says nothing by itself.
const TITLE: &str = "Session Title";
/// The section to which digests are added before results are cleared.
const RESULTS: &str = "Key results";

/// Mark at the beginning and end of a block of code.
const CODE: &str = "```";

/// A section of the notes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section<'a> {
    heading: &'a str,
    /// The line in italics.
    hint: &'a str,
    body: &'a str,
}

/// The sections of a file. Lines in a block of code are not headings.
fn sections(text: &str) -> Vec<Section<'_>> {
    let (mut starts, mut at, mut in_code) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        in_code ^= line.starts_with(CODE);
        if !in_code && line.starts_with("# ") {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let section = |(start, end): (&usize, usize)| {
        let (heading, rest) = text[*start..end].split_once('\n').unwrap_or((&text[*start..end], ""));
        let (first, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let is_hint = first.len() > 1 && first.starts_with('_') && first.trim_end().ends_with('_');
        let (hint, body) = if is_hint { (first, after) } else { ("", rest) };
        Section { heading: heading[1..].trim(), hint: hint.trim_end(), body: body.trim() }
    };
    starts.iter().zip(ends).map(section).collect()
}

/// Checks that an edit keeps the layout: the same headings and the same lines in italics, in the same order.
pub fn keeps_form(before: &str, after: &str) -> Result<(), String> {
    let (before, after) = (sections(before), sections(after));
    for (index, was) in before.iter().enumerate() {
        let Some(is) = after.get(index).filter(|is| is.heading == was.heading) else {
            return Err(format!("the heading `# {}` has to stay where it is", was.heading));
        };
        if is.hint != was.hint {
            return Err(format!("the line in italics below `# {}` has to stay as it is", was.heading));
        }
    }
    match after.get(before.len()) {
        Some(new) => Err(format!("there is no section `# {}`; write into one of those that are there", new.heading)),
        None => Ok(()),
    }
}

/// True if an update did not change the section that it had to rewrite.
pub fn left_current_state(before: &str, after: &str) -> bool {
    let current =
        |text| sections(text).into_iter().find(|section| section.heading == CURRENT).map(|one| one.body.to_owned());
    current(before) == current(after)
}

/// True if nobody could go on from them: nothing was written, or nothing but a title.
pub fn says_nothing(text: &str) -> bool {
    sections(text).iter().all(|section| section.body.is_empty() || section.heading == TITLE)
}

/// The notes with an addition to the section for results; none if they have no such section.
pub fn with_results(notes: &str, more: &str) -> Option<String> {
    let at = sections(notes).iter().position(|section| section.heading == RESULTS)?;
    let start = notes.find(&format!("# {RESULTS}\n"))?;
    let end = match sections(notes).get(at + 1) {
        Some(next) => start + notes[start..].find(&format!("\n# {}", next.heading))? + 1,
        None => notes.len(),
    };
    // A line of it must not pass for a heading, or hide those that follow.
    let more: Vec<String> = more
        .trim()
        .lines()
        .filter(|line| !line.starts_with(CODE))
        .map(|line| if line.starts_with("# ") { format!("#{line}") } else { line.to_owned() })
        .collect();
    Some(format!("{}\n{}\n\n{}", notes[..end].trim_end(), more.join("\n"), &notes[end..]))
}

/// Prompt for the fork: the template with the notes, their path, and the names of sections that are too long.
pub fn prompt(template: &str, notes: &str, path: &str, tokens: impl Fn(&str) -> u64) -> String {
    let long: Vec<&str> =
        sections(notes).iter().filter(|one| tokens(one.body) > SECTION_TOKENS).map(|one| one.heading).collect();
    let mut limits = format!("- At most {SECTION_TOKENS} tokens a section and {ALL_TOKENS} in all.");
    if !long.is_empty() {
        limits.push_str(&format!(" Too long now, to be shortened first: {}.", long.join(", ")));
    } else if tokens(notes) > ALL_TOKENS {
        limits.push_str(" All together they are too long now: shorten what matters least.");
    }
    let filled = fill(template, &[("currentNotes", notes), ("notesPath", path), ("limits", &limits)]);
    // Words of the user's own have no place for it.
    let is_over = !long.is_empty() || tokens(notes) > ALL_TOKENS;
    if is_over && !template.contains("{{limits}}") { format!("{filled}\n\n{limits}") } else { filled }
}

/// Excerpt of the notes for a compaction: each section within its limit, all within theirs, and a pointer to the file
/// if something was cut. The lines in italics are for the writer and stay out.
pub fn for_summary(notes: &str, path: &str, most: u64, tokens: impl Fn(&str) -> u64) -> String {
    let mut left = ALL_TOKENS.min(most);
    let mut out = String::new();
    for section in sections(notes).iter().filter(|section| !section.body.is_empty()) {
        let room = SECTION_TOKENS.min(left);
        let kept = if section.heading == RESULTS { KeptEnd::End } else { KeptEnd::Beginning };
        let (body, was_cut) = cut(section.body, room, kept, &tokens);
        left = left.saturating_sub(tokens(&body));
        out.push_str(&format!("# {}\n{body}\n", section.heading));
        if was_cut {
            out.push_str(&format!("[Cut here; the rest of this section is in {path}.]\n"));
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// The end of a text that stays when it is cut.
#[derive(Clone, Copy)]
enum KeptEnd {
    Beginning,
    /// The end: for a section that is added to, the newest.
    End,
}

/// A text within so many tokens, cut at a line's end.
fn cut(text: &str, most: u64, kept: KeptEnd, tokens: impl Fn(&str) -> u64) -> (String, bool) {
    if tokens(text) <= most {
        return (text.to_owned(), false);
    }
    let mut left = most;
    let fits = |line: &&str| {
        let needed = tokens(line);
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    };
    let kept: String = match kept {
        KeptEnd::Beginning => text.split_inclusive('\n').take_while(fits).collect(),
        KeptEnd::End => {
            let mut lines: Vec<&str> = text.split_inclusive('\n').rev().take_while(fits).collect();
            lines.reverse();
            lines.concat()
        }
    };
    (kept.trim_end().to_owned(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> u64 {
        text.len() as u64 / 4
    }

    fn with(section: &str, body: &str) -> String {
        let at = TEMPLATE.find(&format!("# {section}\n")).unwrap();
        let line = at + TEMPLATE[at..].find("_\n").unwrap() + 2;
        format!("{}{body}\n{}", &TEMPLATE[..line], &TEMPLATE[line..])
    }

    /// NOTES-1: ten sections in their order, each with a heading and one line in italics.
    #[test]
    fn the_template_has_ten_sections() {
        let headings: Vec<&str> = sections(TEMPLATE).iter().map(|section| section.heading).collect();
        assert_eq!(
            headings,
            [
                "Session Title",
                "Current State",
                "Task specification",
                "Files and Functions",
                "Workflow",
                "Errors & Corrections",
                "Codebase and System Documentation",
                "Learnings",
                "Key results",
                "Worklog"
            ]
        );
        assert!(sections(TEMPLATE).iter().all(|section| !section.hint.is_empty() && section.body.is_empty()));
        assert!(says_nothing(TEMPLATE) && !says_nothing(&with("Learnings", "one")));
        assert!(says_nothing(&with("Session Title", "Ten words about it")), "a title is no summary");
    }

    /// NOTES-4: an edit keeps every heading and every line in italics, in their order, and adds none.
    #[test]
    fn an_edit_that_breaks_the_form_is_refused() {
        let edited = with("Current State", "# not a heading? it is");
        assert!(keeps_form(TEMPLATE, &with("Current State", "Fixing the parser.\n## a smaller heading")).is_ok());
        for (broken, word) in [
            (edited, "Task specification"),
            (TEMPLATE.replace("# Worklog\n", "# Log\n"), "Worklog"),
            (TEMPLATE.replace("_Exact results", "_Results"), "Key results"),
            (format!("{TEMPLATE}\n# Extra\n"), "Extra"),
            (String::new(), "Session Title"),
        ] {
            let why = keeps_form(TEMPLATE, &broken).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
        let code = "```sh\n# a comment\ncargo test\n```";
        assert!(keeps_form(TEMPLATE, &with("Workflow", code)).is_ok(), "a comment is no heading");
        assert!(keeps_form(TEMPLATE, &with("Workflow", "```sh\n# not closed")).is_err());
        assert!(left_current_state(TEMPLATE, &with("Learnings", "x")));
        assert!(!left_current_state(TEMPLATE, &with("Current State", "x")));
    }

    /// MICRO-7, NOTES-4: what is written down before results are cleared is added to their section, in the form; of a long
    /// one the newest goes into a compaction.
    #[test]
    fn results_are_added_to_their_section() {
        let once = with_results(TEMPLATE, "the port is 8841").unwrap();
        let twice = with_results(&once, "# the key is k-7\n").unwrap();
        assert!(keeps_form(TEMPLATE, &twice).is_ok(), "{twice}");
        let body = sections(&twice).into_iter().find(|one| one.heading == "Key results").unwrap().body.to_owned();
        assert_eq!(body, "the port is 8841\n## the key is k-7");
        assert!(twice.contains("\n# Worklog\n"));
        let code = with_results(TEMPLATE, "```\n# cut off before its end").unwrap();
        assert!(keeps_form(TEMPLATE, &code).is_ok() && code.contains("## cut off"), "{code}");
        let long: String = (0..400).map(|n| format!("result {n} of the search is here\n")).collect();
        let kept = for_summary(&with_results(TEMPLATE, &long).unwrap(), "/n.md", u64::MAX, tokens);
        assert!(kept.contains("result 399 ") && !kept.contains("result 1 "));
        let own = "# Results\n_mine_\n";
        assert_eq!(with_results(own, "x"), None, "a form of one's own has no such section");
    }

    /// NOTES-4, COMPACT-2: the fork is told what is too long; a compaction takes 2,000 tokens a section and 12,000 in all,
    /// and a cut names the file.
    #[test]
    fn long_sections_are_named_and_cut() {
        let line = "a line of forty characters, more or less\n";
        let notes = with("Workflow", &line.repeat(400));
        let told = prompt(PROMPT, &notes, "/n.md", tokens);
        assert!(told.contains("to be shortened first: Workflow.") && told.contains("/n.md"));
        assert!(!prompt(PROMPT, TEMPLATE, "/n.md", tokens).contains("too long now"));
        let own = prompt("My own words: {{currentNotes}}", &notes, "/n.md", tokens);
        assert!(own.ends_with("to be shortened first: Workflow."), "words of one's own hear of it too");
        let short = for_summary(&notes, "/n.md", u64::MAX, tokens);
        assert!(short.starts_with("# Workflow\na line") && short.ends_with("is in /n.md.]"), "{short}");
        assert!(tokens(&short) < 2_100);
        let all = sections(TEMPLATE).iter().fold(String::new(), |all, section| {
            format!("{all}# {}\n{}\n{}", section.heading, section.hint, line.repeat(190))
        });
        assert!(tokens(&for_summary(&all, "/n.md", u64::MAX, tokens)) < 12_500);
        assert_eq!(for_summary(TEMPLATE, "/n.md", u64::MAX, tokens), "");
    }
}
