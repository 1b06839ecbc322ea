//! What the layers did, in words.

use engine::Event;
use engine::context::compact::Made;

/// What is to be told of an event, if it is one of the layers' and worth a line.
pub(crate) fn of_layers(event: &Event) -> Option<String> {
    let text = match event {
        Event::Spilled { results, freed } => {
            let results = if *results == 1 { "a result".to_owned() } else { format!("{results} results") };
            format!("{results} put on disk, {} kept out of the window", tokens(*freed))
        }
        Event::Cleared { results, freed, .. } => format!("{} cleared, {} less", results_of(*results), tokens(*freed)),
        Event::Compacting { tokens: all } => format!("compacting {} …", tokens(*all)),
        Event::Compacted { made, before, after } => {
            let what = match made {
                Made::Notes => "the session's notes",
                Made::Summary => "a summary",
            };
            format!("compacted: {what} and your own words stand for what was said ({before} → {})", tokens(*after))
        }
        Event::CompactionFailed { why } => format!("the compaction failed: {why}"),
        Event::NotesUpdated { failed: Some(why), .. } => format!("the session's notes were not updated: {why}"),
        Event::CacheBroke(broke) if !broke.is_declared() => {
            format!("the prompt cache broke ({} instead of {}): {}", broke.read, tokens(broke.expected), broke.cause)
        }
        _ => return None,
    };
    Some(text)
}

fn results_of(number: usize) -> String {
    format!("{number} old result{}", if number == 1 { "" } else { "s" })
}

fn tokens(number: u64) -> String {
    format!("{number} tokens")
}
