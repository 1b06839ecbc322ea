//! The window: what fills it, and making room in it by hand.

use engine::context::{CompactionReach, keep, list};
use session::window_usage::WindowUsage;
use transcript::Id;

use super::conversation_view::ConversationView;
use super::page::PagePart;
use super::picker::PickerEntry;
use super::requests::PendingRequests;
use super::resume_and_rewind::ListPurpose;
use super::session_state::SessionState;
use crate::event_text::{self, count};
use crate::styled_text::{Colour, Span, TextStyle, first_line};

/// Length of the bar of a full window.
const BAR: u64 = 40;
const SHORTEST_BAR: u64 = 4;
/// Columns of what stands around it, without the name.
const AROUND_BAR: usize = 32;

impl SessionState {
    /// Shows what fills the window, as bars.
    pub(super) fn show_context(&self, view: &mut ConversationView) {
        let Some(agent) = &self.agent else { return };
        let (window_usage, layers) = (agent.window_usage(), agent.layers());
        let fill = layers.window.fill(window_usage.tokens, layers.auto_compact);
        let threshold = layers.window.threshold(layers.auto_compact);
        let heading = format!(
            "{} of {} tokens, compaction is due at {} ({} % left)",
            grouped(window_usage.tokens),
            grouped(layers.window.size),
            grouped(threshold),
            fill.percent_left
        );
        view.page.begin(PagePart::Note);
        view.page.line(&[Span::new(&heading, TextStyle::BOLD)], 2);
        let off = list::off(layers);
        bars(&window_usage, threshold, view);
        let figures = agent.clearing_figures();
        if figures.regrets > 0 {
            view.page.line(&[Span::new(&event_text::regrets(&figures), TextStyle::DIM)], 2);
        }
        if !off.is_empty() {
            let text = format!("layers that are off: {}", off.join(", "));
            view.page.line(&[Span::new(&text, TextStyle::DIM)], 2);
        }
    }

    /// Shows what the user forbade or required, or lifts one of it.
    pub(super) fn keep(&mut self, argument: &str, view: &mut ConversationView) -> anyhow::Result<()> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let standing = agent.standing_instructions().to_vec();
        let wanted = argument.strip_prefix("drop").and_then(|number| number.trim().parse::<usize>().ok());
        let wanted = wanted.and_then(|number| standing.get(number.checked_sub(1)?));
        match (argument, wanted) {
            (_, Some(one)) => {
                agent.lift(&one.text)?;
                view.page.note(&format!("dropped: {}", one.on_one_line()), TextStyle::PLAIN);
            }
            ("", None) if standing.is_empty() => {
                view.page.note("nothing is kept: say \"never …\" or \"always …\", and it will be", TextStyle::DIM);
            }
            ("", None) => {
                let kept = keep::fitting(agent.standing_instructions());
                let rows = standing.iter().enumerate().map(|(at, one)| {
                    let is_kept = kept.contains(&one);
                    let note = if is_kept { "" } else { "  (no room: a compaction will remove it from view)" };
                    ((at + 1).to_string(), format!("{}{note}", one.on_one_line()))
                });
                view.table(&rows.collect::<Vec<_>>(), TextStyle::of(Colour::Cyan));
            }
            _ => view
                .page
                .note("which one? /keep shows them with their numbers, /keep drop 2 drops the second", TextStyle::DIM),
        }
        Ok(())
    }

    /// Makes room: all of it, or what follows or precedes a message that is chosen from a list.
    pub(super) fn compact(&self, argument: &str, view: &mut ConversationView, requests: &mut PendingRequests) {
        let wish = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        match argument.split_once(' ').unwrap_or((argument, "")) {
            ("from", rest) => self.choose_message("Summarise from which message on?", view, requests, |lines| {
                ListPurpose::CompactFrom(lines, wish(rest))
            }),
            ("up-to", rest) => {
                self.choose_message("Summarise everything before which message?", view, requests, |lines| {
                    ListPurpose::CompactUpTo(lines, wish(rest))
                });
            }
            _ => requests.compacting = Some((wish(argument), CompactionReach::Everything)),
        }
    }

    /// Drops what precedes a message that is chosen from a list.
    pub(super) fn snip(&self, view: &mut ConversationView, requests: &mut PendingRequests) {
        self.choose_message("Drop everything before which message?", view, requests, ListPurpose::Snip);
    }

    fn choose_message(
        &self,
        title: &str,
        view: &mut ConversationView,
        requests: &mut PendingRequests,
        what: impl FnOnce(Vec<Id>) -> ListPurpose,
    ) {
        let Some(agent) = &self.agent else { return };
        let points = agent.session().points_in_view();
        if points.is_empty() {
            view.hint = Some("nothing was said yet".into());
            return;
        }
        let choice =
            |point: &session::rewind::Point| PickerEntry { label: first_line(&point.text, 60), about: String::new() };
        let choices = points.iter().map(choice).collect();
        requests.choose(title, choices, what(points.into_iter().map(|point| point.line).collect()));
    }

    pub(super) fn snip_before(&mut self, line: &Id, view: &mut ConversationView) -> anyhow::Result<()> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        match agent.session_mut().snip_before(line)? {
            0 => view.hint = Some("there is nothing to drop: the newest reply and all after it stay".into()),
            dropped => {
                let text = format!(
                    "{} dropped from the window; /undo brings them back",
                    count(dropped, "message", "messages")
                );
                view.page.note(&text, TextStyle::PLAIN);
            }
        }
        Ok(())
    }

    /// Brings back what a compaction or a snip covers, if there is room for it.
    pub(super) fn uncover(&mut self, commit: &Id, view: &mut ConversationView) -> anyhow::Result<()> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let before = agent.session().log().view().tally().count();
        match agent.session_mut().undo(commit, &self.status.window) {
            Ok(()) => {
                let after = agent.session().log().view().tally().count();
                view.page.note(
                    &format!("what was said is back in the window ({before} → {after} tokens)"),
                    TextStyle::PLAIN,
                );
            }
            Err(error @ session::Error::WouldNotFit { .. }) => {
                view.page.note(&error.to_string(), TextStyle::of(Colour::Red));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let comma = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    digits.chars().enumerate().flat_map(|(at, digit)| comma(at).then_some(',').into_iter().chain([digit])).collect()
}

/// A bar for each part, and one for what is left.
fn bars(window_usage: &WindowUsage, threshold: u64, view: &mut ConversationView) {
    let room = threshold.saturating_sub(window_usage.tokens);
    let widest = window_usage.parts.iter().map(|part| part.name.len()).max().unwrap_or(0);
    // The bar takes what the figures leave.
    let bar = (view.page.columns().saturating_sub(widest + AROUND_BAR) as u64).clamp(SHORTEST_BAR, BAR);
    let row = |name: &str, tokens: u64, end: String, look: TextStyle| {
        // What fills less than half a cell has none.
        let cells = ((tokens * bar + threshold / 2) / threshold.max(1)).min(bar) as usize;
        let share = tokens * 100 / threshold.max(1);
        let cells = if cells == 0 { String::new() } else { format!("{} ", "█".repeat(cells)) };
        [
            Span::plain(&format!("{name:<widest$}  {:>9}  {share:>3} %  ", grouped(tokens))),
            Span::new(&cells, look),
            Span::new(&end, TextStyle::DIM),
        ]
    };
    for part in &window_usage.parts {
        let look = TextStyle::of(if part.name.starts_with("result") { Colour::Yellow } else { Colour::Cyan });
        view.page.cut(&row(part.name, part.tokens, format!("in {}", count(part.count, "part", "parts")), look));
    }
    view.page.cut(&row("room", room, String::new(), TextStyle::DIM));
}
