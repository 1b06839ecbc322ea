//! The price of recorded work, under policies.
//!
//! A [`Recording`] is what was said in a session. Under a [`PricePolicy`] it is replayed: the same words at the same times,
//! and what the policy takes out of the view. The [`SessionBill`] has every request at list prices, with the provider's
//! cache by the recorded clock, at both of its lifetimes; the digests and summaries that a policy asks for; and for every
//! edit whose text is in no view any more one request that reads the file again.
//!
//! ```
//! use session::price::{PricePolicy, price};
//! use transcript::line::Line;
//! use transcript::price::Prices;
//!
//! let lines = [
//!     r#"{"type":"user","uuid":"1","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hello"}}"#,
//!     r#"{"type":"assistant","uuid":"2","parentUuid":"1","timestamp":"2026-01-01T00:00:02Z","message":{"id":"m",
//!         "role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"hi"}],
//!         "usage":{"cache_creation_input_tokens":20000,"output_tokens":4}}}"#,
//! ];
//! let lines = lines.map(|line| Line::parse(line.as_bytes()).unwrap()).to_vec();
//! let bill = price(lines, &PricePolicy::Everything, &Prices::default());
//! assert_eq!(format!("{:.4}", bill.total().cost.five_minutes), "0.0751");
//! ```
//!
//! A policy that decides by a model's words cannot be priced: what the model would have said is what it said.

mod audit;
mod bill;
mod cache;
mod cascade;
mod clearing_rules;
mod collection;
mod edited;
#[cfg(test)]
mod laws;
mod meter;
mod policy;
mod recording;
#[cfg(test)]
mod sample_sessions;
mod shown_files;
mod table;
mod weight;

use context::Layers;
use transcript::line::Line;
use transcript::mark::Ttl;
use transcript::price::Prices;

use crate::replay::{ReplayPlan, SUMMARY_TOKENS, follow};
use meter::Meter;
use recording::PaidRequest;

pub use audit::{Audit, AuditCost, ProjectAudit, SessionAudit, WorstSession};
pub use bill::{BillTotal, Cost, LayerAction, LayerTotal, RequestBill, SessionBill};
pub use cache::{CacheClock, CacheSplit};
pub use cascade::LayerAudit;
pub use clearing_rules::{AgeRule, MaskRule, ProviderRule};
pub use collection::{FileLeftOut, PricingProgress, RepliesCounted, SessionFiles, price_files};
pub use edited::file_lines;
pub use policy::{POLICIES, PricePolicy};
pub use recording::Recording;
pub use table::{PriceRow, PriceTable};

/// Prices recorded lines under a policy.
pub fn price(lines: Vec<Line>, policy: &PricePolicy, prices: &Prices) -> SessionBill {
    Recording::of(lines, prices).bill(policy)
}

impl Recording {
    /// Prices the session under a policy.
    pub fn bill(&self, policy: &PricePolicy) -> SessionBill {
        let bill = self.bill_at(policy, Ttl::FiveMinutes);
        if policy.minds_lifetime() { bill.with_hour_of(&self.bill_at(policy, Ttl::OneHour)) } else { bill }
    }

    /// Prices the session under a policy that knows one lifetime of the provider's cache. Of a policy that minds it, only
    /// the costs at that lifetime count.
    pub fn bill_at(&self, policy: &PricePolicy, ttl: Ttl) -> SessionBill {
        if matches!(policy, PricePolicy::Recorded) {
            return self.recorded_bill(|_| true);
        }
        let layers = policy.layers();
        let layers = Layers { price: layers.price.or(self.price()), ..layers };
        let list = policy.list();
        let plan = ReplayPlan { list: &list, layers: &layers, ttl, summary_tokens: SUMMARY_TOKENS };
        let mut meter = Meter::new(self, policy.window(), ttl);
        follow(&self.lines, &plan, &mut meter);
        meter.end()
    }

    /// The recorded cost outside the conversation: subagents in the same file, abandoned branches, forks that are no
    /// layer's.
    pub fn bill_beside(&self) -> SessionBill {
        let is_beside = |request: &PaidRequest| match &request.reply {
            Some(reply) => self.place_of(reply).is_none(),
            None => !request.is_for_layers(),
        };
        self.recorded_bill(is_beside)
    }

    /// The recorded cost of the requests that count.
    fn recorded_bill(&self, counts: impl Fn(&PaidRequest) -> bool) -> SessionBill {
        let mut bill = SessionBill::default();
        for request in self.paid.iter().filter(|request| counts(request)) {
            let place = request.reply.as_ref().and_then(|reply| self.place_of(reply));
            bill.requests.push(RequestBill {
                reply: request.reply.clone(),
                time: request.time,
                cost: Cost::both(request.price.map_or(0.0, |price| price.cost(&request.usage))),
                edits: place.map_or(0, |at| self.requests[at].edits.len()),
                actions: vec![LayerAction { layer: "compact", freed: 0 }; request.compactions],
                is_unpriced: request.price.is_none(),
                ..RequestBill::default()
            });
        }
        bill
    }
}
