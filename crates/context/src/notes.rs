//! Layer 3: notes are kept while the work goes on, so that compaction finds a summary ready.
//!
//! One file a session, in ten sections. A fork of the conversation brings it up to date from time to time; this module
//! says when that is due and worth its price, what the fork is told, which of its edits keep the form, and what of the
//! notes goes into a compaction.

use crate::template::fill;

/// An empty notes file.
pub const TEMPLATE: &str = include_str!("prompts/notes.md");
/// What the fork is told.
pub const PROMPT: &str = include_str!("prompts/notes_update.md");

/// Notes begin when the conversation has so many tokens.
const FIRST_TOKENS: u64 = 10_000;
/// They are brought up to date when so many tokens have come.
const MORE_TOKENS: u64 = 5_000;
/// And so many calls were made.
const MORE_CALLS: u32 = 3;
/// The most a section should have, in tokens.
const SECTION_TOKENS: u64 = 2_000;
/// The most all sections should have together.
const ALL_TOKENS: u64 = 12_000;
/// The section that every update has to rewrite.
const CURRENT: &str = "Current State";

/// Where the notes stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// The conversation's tokens when they were last brought up to date.
    pub tokens: Option<u64>,
    /// Calls since.
    pub calls: u32,
    /// Whether the newest reply made calls.
    pub calling: bool,
    /// Whether they were brought up to date since it became tight.
    pub ready: bool,
}

/// What notes may cost, in any unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Purse {
    /// What the session has cost so far.
    pub session: f64,
    /// What notes have cost of that.
    pub spent: f64,
    /// What notes have saved so far: summaries that nobody had to write.
    pub saved: f64,
    /// What an update will cost.
    pub next: f64,
    /// The share of the session's cost that notes may have; none is no limit.
    pub share: Option<f64>,
}

impl Purse {
    /// Whether an update can be paid: within the share, and out of what notes have saved.
    fn allows(&self) -> bool {
        match self.share {
            None => true,
            Some(share) => self.spent + self.next <= (self.session * share).min(self.saved),
        }
    }
}

/// Whether the notes should be brought up to date: enough has happened, and it is worth its price. Once it becomes tight
/// it is always worth it, since a compaction will need them.
pub fn is_due(count: u64, tight: u64, progress: &Progress, purse: &Purse) -> bool {
    let enough = match progress.tokens {
        None => count >= FIRST_TOKENS,
        Some(then) => count >= then + MORE_TOKENS && (progress.calls >= MORE_CALLS || !progress.calling),
    };
    let last_chance = count >= tight && !progress.ready;
    enough && (last_chance || purse.allows())
}

/// A section of the notes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section<'a> {
    heading: &'a str,
    /// The line in italics.
    hint: &'a str,
    body: &'a str,
}

/// The sections of a file.
fn sections(text: &str) -> Vec<Section<'_>> {
    let mut starts: Vec<usize> = text.match_indices("\n# ").map(|(at, _)| at + 1).collect();
    if text.starts_with("# ") {
        starts.insert(0, 0);
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

/// Whether an edit keeps the form: the same headings and the same lines in italics, in the same order.
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

/// Whether an update left the section alone that it had to rewrite.
pub fn left_current_state(before: &str, after: &str) -> bool {
    let current =
        |text| sections(text).into_iter().find(|section| section.heading == CURRENT).map(|one| one.body.to_owned());
    current(before) == current(after)
}

/// Whether nothing was written yet.
pub fn is_empty(text: &str) -> bool {
    sections(text).iter().all(|section| section.body.is_empty())
}

/// What the fork is told: the prompt with the notes and their path, and which sections are too long.
pub fn prompt(template: &str, notes: &str, path: &str, tokens: impl Fn(&str) -> u64) -> String {
    let long: Vec<&str> =
        sections(notes).iter().filter(|one| tokens(one.body) > SECTION_TOKENS).map(|one| one.heading).collect();
    let mut limits = format!("- At most {SECTION_TOKENS} tokens a section and {ALL_TOKENS} in all.");
    if !long.is_empty() {
        limits.push_str(&format!(" Too long now, to be shortened first: {}.", long.join(", ")));
    } else if tokens(notes) > ALL_TOKENS {
        limits.push_str(" All together they are too long now: shorten what matters least.");
    }
    fill(template, &[("currentNotes", notes), ("notesPath", path), ("limits", &limits)])
}

/// What of the notes goes into a compaction: each section within its limit, all within theirs, and a pointer to the
/// file where something was cut. The lines in italics are for the writer and stay out.
pub fn for_summary(notes: &str, path: &str, most: u64, tokens: impl Fn(&str) -> u64) -> String {
    let mut left = ALL_TOKENS.min(most);
    let mut out = String::new();
    for section in sections(notes).iter().filter(|section| !section.body.is_empty()) {
        let room = SECTION_TOKENS.min(left);
        let (body, was_cut) = cut(section.body, room, &tokens);
        left = left.saturating_sub(tokens(&body));
        out.push_str(&format!("# {}\n{body}\n", section.heading));
        if was_cut {
            out.push_str(&format!("[Cut here; the rest of this section is in {path}.]\n"));
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// A text within so many tokens, cut at a line's end.
fn cut(text: &str, most: u64, tokens: impl Fn(&str) -> u64) -> (String, bool) {
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
    let kept: String = text.split_inclusive('\n').take_while(fits).collect();
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
        assert!(is_empty(TEMPLATE) && !is_empty(&with("Learnings", "one")));
    }

    /// NOTES-2: first at 10,000 tokens; then 5,000 more and three calls, or a reply without one; the tokens always.
    #[test]
    fn notes_are_due_when_enough_has_happened() {
        let free = Purse { session: 0.0, spent: 0.0, saved: 0.0, next: 1.0, share: None };
        let due = |count, tokens, calls, calling| {
            is_due(count, u64::MAX, &Progress { tokens, calls, calling, ready: false }, &free)
        };
        assert!(!due(9_999, None, 9, false) && due(10_000, None, 0, true));
        assert!(!due(14_999, Some(10_000), 9, false), "the tokens are always required");
        assert!(!due(15_000, Some(10_000), 2, true), "too few calls, and more to come");
        assert!(due(15_000, Some(10_000), 3, true) && due(15_000, Some(10_000), 0, false));
    }

    /// NOTES-8: an update has to be within its share and paid out of what notes have saved; once it is tight it runs
    /// once, whatever it costs.
    #[test]
    fn notes_wait_until_they_can_be_paid() {
        let purse = Purse { session: 100_000.0, spent: 3_000.0, saved: 9_000.0, next: 4_000.0, share: Some(0.1) };
        let due = |count, ready, purse: &Purse| {
            is_due(count, 47_000, &Progress { tokens: Some(20_000), calls: 5, calling: true, ready }, purse)
        };
        assert!(due(30_000, false, &purse), "7,000 of 9,000 and of 10,000");
        assert!(!due(30_000, false, &Purse { saved: 6_000.0, ..purse }), "nothing was saved that could pay for it");
        assert!(!due(30_000, false, &Purse { session: 60_000.0, ..purse }), "more than a tenth");
        let poor = Purse { saved: 0.0, ..purse };
        assert!(due(47_000, false, &poor) && !due(47_000, true, &poor), "once");
        assert!(due(30_000, false, &Purse { share: None, ..poor }), "no limit was asked for");
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
        assert!(left_current_state(TEMPLATE, &with("Learnings", "x")));
        assert!(!left_current_state(TEMPLATE, &with("Current State", "x")));
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
