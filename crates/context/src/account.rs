//! The account of clearing in one session: its savings, its costs and its regrets.
//!
//! It is kept from the lines of the log alone, in tokens as the provider reported them. It is shown to the user, and
//! limits the risk of the next clearing: a session in which clearing has lost more than it saved clears less.
//!
//! A **regret** is a cleared result that turned out to be needed: its file is read again, it is looked up in the
//! history, or an edit of its file fails. It costs a request, and the result once more.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use transcript::block::Kind;
use transcript::commit::CallName;
use transcript::mark::Ttl;
use transcript::price::Price;
use transcript::{Block, Usage, tool_names};

use crate::cache_economics::Rates;

/// Output tokens of a call that reads a file again.
const CALL_OUTPUT: f64 = 150.0;
/// Bytes per token in results.
const RESULT_BYTES: u64 = 3;

/// Savings and costs of clearing in a session so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClearingAccount {
    /// Tokens that were not sent because their results had been cleared, over all requests.
    pub unsent_tokens: u64,
    /// Tokens that were written to the cache again because something before them had been cleared.
    pub rewritten_tokens: u64,
    /// Usage of the requests in which digests were written.
    pub digests: Usage,
    /// Results that were needed after they had been cleared.
    pub regrets: u32,
    /// Input of the requests in which they were asked for again.
    pub regret_read_tokens: u64,
    /// Tokens of what came back.
    pub regret_written_tokens: u64,
    /// Tokens that would be in view, had nothing been cleared.
    cleared_tokens: u64,
    /// Tokens that were cleared since the newest reply.
    freed: u64,
    /// Idle time before a clearing that no reply has followed yet.
    unanswered: Option<SignedDuration>,
    /// Input of the newest request.
    context: u64,
    /// True if the provider's cache lives an hour, by the newest reply that wrote to it.
    is_hour: bool,
    /// The newest call that read a file, by its path.
    reads: HashMap<String, String>,
    cleared_calls: HashSet<String>,
    /// Calls under way that edit a file whose text was cleared, and what showed that text.
    edits: HashMap<String, String>,
    /// Calls under way that bring something back.
    awaited: HashSet<String>,
}

/// The account in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ClearingFigures {
    /// Results that were needed after they had been cleared.
    pub regrets: u32,
    /// Savings of clearing.
    pub saved_usd: f64,
    /// Cost of writing the rest to the cache again, and of digests.
    pub rewriting_usd: f64,
    /// Cost of regrets.
    pub regrets_usd: f64,
}

impl ClearingAccount {
    /// Savings of clearing, in tokens of uncached input.
    pub fn saved(&self, rates: &Rates) -> f64 {
        self.unsent_tokens as f64 * rates.read
    }

    /// Cost of writing the rest to the cache again, and of digests.
    pub fn rewriting(&self, rates: &Rates) -> f64 {
        self.rewritten_tokens as f64 * (rates.write - rates.read) + rates.cost(&self.digests)
    }

    /// Cost of regrets.
    pub fn regretted(&self, rates: &Rates) -> f64 {
        self.regret_read_tokens as f64 * rates.read
            + self.regret_written_tokens as f64 * rates.write
            + f64::from(self.regrets) * CALL_OUTPUT * rates.output
    }

    /// Costs minus savings; negative if clearing paid.
    pub fn lost(&self, rates: &Rates) -> f64 {
        self.rewriting(rates) + self.regretted(rates) - self.saved(rates)
    }

    /// The account in dollars.
    pub fn figures(&self, price: Price) -> ClearingFigures {
        let rates = Rates::of(Some(price), self.ttl());
        let usd = |tokens: f64| tokens * price.input / 1_000_000.0;
        ClearingFigures {
            regrets: self.regrets,
            saved_usd: usd(self.saved(&rates)),
            rewriting_usd: usd(self.rewriting(&rates)),
            regrets_usd: usd(self.regretted(&rates)),
        }
    }

    fn ttl(&self) -> Ttl {
        if self.is_hour { Ttl::OneHour } else { Ttl::FiveMinutes }
    }

    /// Records that results were cleared, after this idle time.
    pub(crate) fn cleared(&mut self, results: &[CallName], freed: u64, idle: SignedDuration) {
        self.cleared_tokens += freed;
        self.freed += freed;
        self.cleared_calls.extend(results.iter().map(|call| call.id.clone()));
        self.unanswered = Some(idle);
    }

    /// Records that the cleared results would be gone by now, or are back.
    pub(crate) fn reset_view(&mut self) {
        self.cleared_tokens = 0;
    }

    /// Records the usage of a reply.
    pub(crate) fn answered(&mut self, usage: &Usage) {
        let before = std::mem::replace(&mut self.context, usage.context());
        if usage.cache_creation_input_tokens > 0 {
            self.is_hour = usage.cache_creation.ephemeral_1h_input_tokens > 0;
        }
        self.unsent_tokens += self.cleared_tokens;
        let freed = std::mem::take(&mut self.freed);
        let Some(idle) = self.unanswered.take() else { return };
        // With a cold cache everything would have been written anyway.
        if idle < self.ttl().duration() {
            // What was sent before, neither gone nor read: written anew.
            self.rewritten_tokens += before.saturating_sub(usage.cache_read_input_tokens + freed);
        }
    }

    /// Records the calls of a reply.
    pub(crate) fn called(&mut self, blocks: &[Block]) {
        for block in blocks {
            let Kind::ToolUse { id, name } = block.kind() else { continue };
            let wanted = match &**name {
                tool_names::READ => "file_path",
                tool_names::EDIT => "file_path",
                tool_names::HISTORY => "id",
                _ => continue,
            };
            let Some(wanted) = block.input().and_then(|input| input[wanted].as_str().map(str::to_owned)) else {
                continue;
            };
            match &**name {
                tool_names::READ => {
                    let before = self.reads.insert(wanted, id.to_string());
                    self.regret_if_cleared(before.as_deref(), Some(id));
                }
                tool_names::EDIT => {
                    let shown = self.reads.get(&wanted).filter(|call| self.cleared_calls.contains(*call));
                    self.edits.extend(shown.map(|call| (id.to_string(), call.clone())));
                }
                _ => self.regret_if_cleared(Some(wanted.as_str()), Some(id)),
            }
        }
    }

    /// Records a result.
    pub(crate) fn came(&mut self, result: &Block) {
        let Kind::ToolResult { id, failed } = result.kind() else { return };
        let shown = self.edits.remove(&**id);
        if *failed {
            self.regret_if_cleared(shown.as_deref(), None);
        }
        if self.awaited.remove(&**id) {
            self.regret_written_tokens += result.size().result_bytes as u64 / RESULT_BYTES;
        }
    }

    /// Records a regret if a needed result was cleared, once. The call that brings it back is counted when its result
    /// comes.
    fn regret_if_cleared(&mut self, needed: Option<&str>, by: Option<&str>) {
        if needed.is_some_and(|call| self.cleared_calls.remove(call)) {
            self.regrets += 1;
            self.regret_read_tokens += self.context;
            self.awaited.extend(by.map(str::to_owned));
        }
    }
}

/// Time since the newest reply.
pub(crate) fn idle(replied_at: Option<Timestamp>, now: Option<Timestamp>) -> SignedDuration {
    now.zip(replied_at).map_or(SignedDuration::ZERO, |(now, then)| now.duration_since(then))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;
    use crate::sample::Session;
    use serde_json::json;
    use transcript::Outcome;
    use transcript::commit::{Act, Commit, Reason, Trigger};
    use transcript::line::{Body, TextSource};
    use transcript::message::CacheCreation;

    const RATES: Rates = Rates { write: 1.25, read: 0.1, output: 5.0 };

    fn clear(session: &mut Session, calls: &[&str], freed: u64) {
        let results = calls.iter().map(|call| (*call).into()).collect();
        let act = Act::Clear { results, trigger: Trigger::Auto, digest: None };
        session.append(Body::Commit(Commit { act, reason: Reason { freed: Some(freed), ..Reason::default() } }));
    }

    fn read(session: &mut Session, path: &str) -> String {
        session.called("Read", &json!({"file_path": path}), &"x".repeat(3_000))
    }

    fn account(session: &Session) -> ClearingAccount {
        State::of(session.log.lines()).clearing
    }

    /// MICRO-9: a file that is read again after its result was cleared is a regret, once; so is a look into the history. What
    /// was not cleared is none.
    #[test]
    fn what_is_read_again_is_a_regret() {
        let mut session = Session::default();
        session.say("go");
        let (first, _) = (read(&mut session, "/a"), read(&mut session, "/b"));
        let command = session.call("Bash", 900);
        clear(&mut session, &[&first, &command], 1_000);
        read(&mut session, "/b");
        assert_eq!(account(&session).regrets, 0);
        read(&mut session, "/a");
        read(&mut session, "/a");
        assert_eq!((account(&session).regrets, account(&session).regret_written_tokens), (1, 1_000));
        for _ in 0..2 {
            session.called("History", &json!({"id": command}), "as it was");
        }
        assert_eq!(account(&session).regrets, 2);
    }

    /// MICRO-9: an edit that fails for want of a text that was cleared is a regret; one that finds its text is none.
    #[test]
    fn an_edit_without_its_text_is_a_regret() {
        let mut session = Session::default();
        session.say("go");
        let (first, second) = (read(&mut session, "/a"), read(&mut session, "/b"));
        clear(&mut session, &[&first, &second], 1_000);
        session.called("Edit", &json!({"file_path": "/a", "old_string": "x", "new_string": "y"}), "done");
        assert_eq!(account(&session).regrets, 0);
        let call = Block::tool_use("failing", "Edit", &json!({"file_path": "/b", "old_string": "?"}));
        let id = transcript::Id::from("failing-reply");
        session.append(Body::Assistant { id, model: "m".into(), blocks: vec![call], usage: None, stop: None });
        let result = Block::tool_result("failing", &[Block::text("no such text")], Outcome::Failed);
        session.append(Body::User { blocks: vec![result], source: TextSource::Direct });
        assert_eq!(account(&session).regrets, 1);
    }

    /// MICRO-9: saving and cost are those of the log: what was not sent in each request since, what was written again in the
    /// first, and the requests of regrets; after a compaction nothing more is saved.
    #[test]
    fn saving_and_cost_are_counted_beside_each_other() {
        let mut account = ClearingAccount::default();
        let usage = |written: u64, read: u64| Usage {
            cache_creation_input_tokens: written,
            cache_read_input_tokens: read,
            ..Usage::default()
        };
        account.answered(&usage(60_000, 0));
        account.cleared(&["call".into()], 30_000, SignedDuration::ZERO);
        account.answered(&usage(12_000, 20_000));
        account.answered(&usage(1_000, 32_000));
        let saved_and_cost = (account.saved(&RATES), account.rewriting(&RATES).round());
        assert_eq!(
            saved_and_cost,
            (6_000.0, 11_500.0),
            "2,000 of the 12,000 are new, and would have been written anyway"
        );
        assert_eq!(account.lost(&RATES).round(), 5_500.0);
        account.digests += Usage { output_tokens: 100, ..Usage::default() };
        assert_eq!(account.lost(&RATES).round(), 6_000.0, "a digest is paid for too");
        account.reads.insert("/a".into(), "call".into());
        account.called(&[Block::tool_use("again", "Read", &json!({"file_path": "/a"}))]);
        assert_eq!(account.regretted(&RATES), 33_000.0 * 0.1 + 750.0);
        account.reset_view();
        account.answered(&usage(0, 31_000));
        assert_eq!(account.unsent_tokens, 60_000);
        let dollars = |account: &ClearingAccount| account.figures(Price::new(3.0, 15.0)).rewriting_usd;
        let five_minutes = dollars(&account);
        let cache_creation = CacheCreation { ephemeral_1h_input_tokens: 100, ..CacheCreation::default() };
        account.answered(&Usage { cache_creation, ..usage(100, 31_000) });
        assert!(dollars(&account) > 1.5 * five_minutes, "an hour's cache is dearer to write");
        let mut cold = ClearingAccount::default();
        cold.answered(&usage(60_000, 0));
        cold.cleared(&[], 30_000, SignedDuration::from_mins(6));
        cold.answered(&usage(30_000, 0));
        assert_eq!(cold.rewritten_tokens, 0, "it would have been written anyway");
    }
}
