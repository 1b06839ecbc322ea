//! For people, in words: what happened, what the layers did, how a turn ended, and rows of lists.

use engine::Event;
use engine::context::account::ClearingFigures;
use engine::context::list;
use engine::context::summary_text::HistorySource;
use engine::event::{AttachedFile, SubagentNews, TeammateNews};
use engine::run::{RunEnd, TurnEnd};
use engine::subagent::Subagent;
use learning::dream::progress::{DreamPhase, DreamProgress, improved};
use learning::extract::Outcome;
use learning::ledger::Day;
use mail::mailbox::IdleReason;
use session::home::SessionFile;
use session::savings::Saving;
use session::stats::{SideWorkUse, Teammate, cost_with};
use settings::Budget;
use settings::hook_definitions::{Hook, HookRepetition, HookWait};
use similar::TextDiff;

use crate::diff_rows::DiffRows;
use crate::styled_text::{first_line, without_escapes};

/// The most characters of a call's end.
const SUMMARY: usize = 120;

/// Text about an event of the layers, if it is worth a line.
pub(crate) fn of_layers(event: &Event) -> Option<String> {
    let text = match event {
        Event::Spilled { results, freed } => {
            let results = if *results == 1 { "a result".to_owned() } else { format!("{results} results") };
            format!("{results} written to disk, {} kept out of the window", tokens(*freed))
        }
        Event::Attached { files } => {
            let file = |file: &AttachedFile| match &file.outcome {
                Ok(size) => format!("attached {} ({size})", file.name),
                Err(why) => format!("not attached: {}, {}", file.name, first_line(why, SUMMARY)),
            };
            files.iter().map(file).collect::<Vec<_>>().join("\n")
        }
        Event::Snipped { messages, freed } => {
            format!("the {messages} oldest messages dropped, {} less", tokens(*freed))
        }
        Event::Collapsed { messages, freed } => {
            format!("{messages} old messages replaced with a summary, {} less", tokens(*freed))
        }
        Event::Cleared { results, freed, .. } => format!("{} cleared, {} less", results_of(*results), tokens(*freed)),
        Event::Regretted { figures } => regrets(figures),
        Event::Compacting { tokens: all } => format!("compacting {} …", tokens(*all)),
        Event::Compacted { made, before, after } => {
            let what = match made {
                HistorySource::Notes => "the session's notes",
                HistorySource::Summary => "a summary",
            };
            format!("compacted: {what} and your own words replace the conversation ({before} → {})", tokens(*after))
        }
        Event::CompactionFailed { why } => format!("the compaction failed: {why}"),
        Event::NotesUpdated { failed: Some(why), .. } => format!("the session's notes were not updated: {why}"),
        Event::Extracted(outcome) => return learnt(outcome),
        Event::CacheBroke(broke) if !broke.is_declared() => {
            format!("the prompt cache broke ({} instead of {}): {}", broke.read, tokens(broke.expected), broke.cause)
        }
        Event::Dream(progress) => return of_dream(progress),
        _ => return None,
    };
    Some(text)
}

/// Results that were needed again after they had been cleared, beside what clearing saved.
pub(crate) fn regrets(figures: &ClearingFigures) -> String {
    let ClearingFigures { saved_usd, rewriting_usd, regrets_usd, .. } = figures;
    let results = count(figures.regrets as usize, "cleared result", "cleared results");
    let (were, more) = (if figures.regrets == 1 { "was" } else { "were" }, "for writing the rest again");
    format!(
        "{results} {were} needed again: ${regrets_usd:.4}; clearing saved ${saved_usd:.4}, for ${rewriting_usd:.4} {more}"
    )
}

/// Text about learnt memories, if there are any.
fn learnt(outcome: &Outcome) -> Option<String> {
    let (saved, removed) = (&outcome.tally.saved, &outcome.tally.removed);
    let of = |what: &str, names: &[String]| {
        let text = format!("{what} {}: {}", count(names.len(), "memory", "memories"), names.join(", "));
        (!names.is_empty()).then_some(text)
    };
    let parts: Vec<String> = of("saved", saved).into_iter().chain(of("removed", removed)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Text about the end of a dream, if it is worth a line.
fn of_dream(progress: &DreamProgress) -> Option<String> {
    let said = progress.texts.back().map(|text| first_line(text, 200)).unwrap_or_default();
    let files = progress.touched.len();
    match progress.phase {
        DreamPhase::Completed if files > 0 => {
            Some(format!("dream: {}. {said} (/dream diff, /dream undo)", improved(files)))
        }
        DreamPhase::Failed => Some(format!("the dream failed: {said}")),
        DreamPhase::Killed => Some(format!("the dream was stopped after {files} memory files")),
        _ => None,
    }
}

/// Text about the end of a turn, unless it is an answer.
pub(crate) fn trouble(end: &TurnEnd) -> Option<String> {
    Some(match end {
        TurnEnd::Ended(RunEnd::Answered) => return None,
        TurnEnd::Cancelled => "stopped".to_owned(),
        TurnEnd::Failed(error) => error.to_string(),
        TurnEnd::NoRoom(why) | TurnEnd::NotCalled(why) => why.clone(),
        TurnEnd::Stopped(why) => format!("a hook ended it: {why}"),
        TurnEnd::NotWritten(error) => {
            format!("the session could not be written: {error}; what was written before is safe")
        }
        TurnEnd::Ended(RunEnd::OutputLimit) => "the answer was cut off at the output limit".to_owned(),
        TurnEnd::Ended(RunEnd::Refused) => "the model declined to answer".to_owned(),
        TurnEnd::Ended(RunEnd::WindowFull) => "the model's window is full".to_owned(),
        TurnEnd::Ended(RunEnd::BudgetSpent) => "the token budget is spent".to_owned(),
        TurnEnd::Ended(RunEnd::CostLimit) => "the session has cost as much as --max-budget-usd allows".to_owned(),
        TurnEnd::Ended(RunEnd::MaxRounds) => "the limit of --max-turns was reached".to_owned(),
        TurnEnd::Ended(RunEnd::Looping) => {
            "the model made the same call again and again, so the turn was ended".to_owned()
        }
    })
}

/// The same, with what to do about it.
pub(crate) fn trouble_and_hint(end: &TurnEnd) -> Option<String> {
    let hint = match end {
        TurnEnd::Failed(error) => error.hint().map(|hint| format!("\nhint: {hint}")),
        _ => None,
    };
    trouble(end).map(|trouble| trouble + &hint.unwrap_or_default())
}

/// The end of a call, in a few words: of a change, the lines it adds and removes.
pub(crate) fn ended(output: &tools::Output) -> String {
    match &output.rewrite {
        Some(rewrite) => DiffRows::of(&rewrite.before, &rewrite.after).counts(),
        None if output.summary == tools::PRINTED_NOTHING => "printed nothing".to_owned(),
        None => first_line(&without_escapes(&output.summary), SUMMARY),
    }
}

/// A number and its noun.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn results_of(number: usize) -> String {
    count(number, "old result", "old results")
}

fn tokens(number: u64) -> String {
    format!("{number} tokens")
}

/// A number of tokens in few characters: `950`, `1.2k`, `340k`.
pub(crate) fn short_tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..100_000 => format!("{:.1}k", number as f64 / 1_000.0),
        _ => format!("{}k", number / 1_000),
    }
}

/// Spending of a day: the total first, then by kind of work.
pub(crate) fn spent(day: &Day) -> String {
    let kinds: Vec<String> = day.kinds.iter().map(|(kind, sum)| format!("{kind} ${:.4}", sum.usd)).collect();
    let cut = match day.unfinished {
        0 => String::new(),
        1 => "; 1 request is unfinished and counts as far as it is known".to_owned(),
        many => format!("; {many} requests are unfinished and count as far as they are known"),
    };
    match kinds.is_empty() {
        true => "nothing".to_owned(),
        false => format!("${:.4}: {}{cut}", day.total().usd, kinds.join(", ")),
    }
}

/// Background requests, by kind of work.
pub(crate) fn side_work_text(all: &[SideWorkUse]) -> String {
    let whose: Vec<String> = all.iter().map(|one| format!("{} {}× ${:.4}", one.who, one.times, one.cost_usd)).collect();
    format!("${:.4}: {}", all.iter().map(|one| one.cost_usd).sum::<f64>(), whose.join(", "))
}

/// The rest of the budget for background work.
pub(crate) fn budget(day: &Day, budget: &Budget) -> String {
    let (spent, most) = (day.background.usd, budget.usd);
    let rest = if spent < most { "" } else { "; it pauses until tomorrow" };
    let tokens = budget.tokens.map(|most| format!(", {} of {most} tokens", day.background.tokens));
    format!("${spent:.4} of ${most:.2} a day for background work{}{rest}", tokens.unwrap_or_default())
}

/// Savings by layer: a heading, and a row for each; those that are off say so.
pub(crate) fn savings(savings: &[Saving], off: &[&str]) -> (String, Vec<String>) {
    let row = |layer: &str, cells: [String; 5]| {
        let [times, out, unsent, saved, cost] = cells;
        format!("{layer:<10} {times:>6} {out:>12} {unsent:>14} {saved:>10} {cost:>10}")
    };
    let head = ["times", "taken out", "not sent again", "saved", "cost"].map(str::to_owned);
    let dollars = |amount: f64| format!("${amount:.4}");
    let acted = |one: &Saving| {
        let (out, unsent) = (one.freed_tokens.to_string(), one.unsent_tokens.to_string());
        row(one.layer, [one.times.to_string(), out, unsent, dollars(one.saved_usd), dollars(one.cost_usd)])
    };
    let rows = list::names().into_iter().filter_map(|name| match savings.iter().find(|one| one.layer == name) {
        Some(one) => Some(acted(one)),
        None => off.contains(&name).then(|| format!("{name:<10} {:>6}", "off")),
    });
    (row("layer", head), rows.collect())
}

/// Cost of a session, and the part of its teammates.
pub(crate) fn cost(own: Option<f64>, teammates: &[Teammate]) -> String {
    let Some(all) = cost_with(own, teammates) else { return "unknown: no price for this model".to_owned() };
    let theirs = all - own.unwrap_or_default();
    if teammates.is_empty() { format!("${all:.4}") } else { format!("${all:.4}, ${theirs:.4} of it by teammates") }
}

/// Usage of a teammate.
pub(crate) fn teammate(mate: &Teammate) -> String {
    format!("{} {}", mate.name, used(&mate.used))
}

/// Usage of a session.
pub(crate) fn used(used: &session::stats::SessionUse) -> String {
    let cost = used.cost_usd.map_or_else(|| "unknown".to_owned(), |cost| format!("${cost:.4}"));
    format!("{cost}, {}, {} tokens", count(used.replies, "reply", "replies"), used.tokens)
}

/// Text about news of a teammate.
pub(crate) fn mate_news(name: &str, news: &TeammateNews, used: &session::stats::SessionUse) -> Option<String> {
    let what = match news {
        TeammateNews::Started => return None,     // the call that starts it says so
        TeammateNews::Labelled(_) => return None, // the status line does
        TeammateNews::Rests(IdleReason::Interrupted) => "was interrupted",
        TeammateNews::Rests(_) => "is idle",
        TeammateNews::Ended(_) => "has ended",
    };
    Some(format!("{name} {what}: {}", self::used(used)))
}

/// Text about news of a background agent, if it is worth a line.
pub(crate) fn subagent_news(subagent: &Subagent, news: &SubagentNews) -> Option<String> {
    let Subagent { id, kind, description, .. } = subagent;
    match news {
        SubagentNews::Asks => Some(format!("{kind} asks something: /tasks {id}")),
        SubagentNews::Backgrounded => Some(format!("{kind} continues in the background as {id}")),
        SubagentNews::Ended if subagent.ended_behind() => {
            Some(format!("{kind} has ended: {}", first_line(description, 100)))
        }
        SubagentNews::Started | SubagentNews::Does(_) | SubagentNews::Labelled | SubagentNews::Ended => None,
    }
}

/// A hook in two columns: when it runs, and what.
pub(crate) fn hook(hook: &Hook) -> (String, String) {
    let matcher = if hook.matcher_text.is_empty() { String::new() } else { format!(" ({})", hook.matcher_text) };
    let mut more = Vec::new();
    more.extend(hook.condition.as_ref().map(|rule| format!("if {rule}")));
    more.extend((hook.times == HookRepetition::Once).then(|| "once".to_owned()));
    more.extend((hook.waiting == HookWait::No).then(|| "not waited for".to_owned()));
    more.push(hook.origin.to_string());
    (format!("{}{matcher}", hook.hook_event.name()), format!("{}  [{}]", hook.shown(), more.join(", ")))
}

/// When a session was last written, by the clock on the wall.
pub(crate) fn when(session: &SessionFile) -> String {
    written(session).map(local_time).unwrap_or_default()
}

/// A time by the clock on the wall.
pub(crate) fn local_time(time: jiff::Timestamp) -> String {
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// The same as a moment.
pub(crate) fn written(session: &SessionFile) -> Option<jiff::Timestamp> {
    session.modified.and_then(|time| jiff::Timestamp::try_from(time).ok())
}

/// The change of one file.
pub(crate) fn diff_text(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let name =
        |side: &str, text: Option<&str>| text.map_or_else(|| "/dev/null".to_owned(), |_| format!("{side}/{path}"));
    named_diff((&name("a", before), before.unwrap_or_default()), (&name("b", after), after.unwrap_or_default()))
}

/// A change of a text, under the names of what was before and after.
pub(crate) fn named_diff((old, before): (&str, &str), (new, after): (&str, &str)) -> String {
    let diff = TextDiff::from_lines(before, after).unified_diff().header(old, new).to_string();
    diff.trim_end().to_owned()
}
