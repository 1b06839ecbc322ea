//! The cascade: each layer is there to keep the next, dearer one from acting. Does it?
//!
//! A session is billed with all layers, and once more without each that acted. The difference is what the layer does.

use context::{Layers, list};
use serde::Serialize;
use transcript::mark::Ttl;

use super::bill::{BillTotal, SessionBill};
use super::policy::PricePolicy;
use super::recording::Recording;

/// Longer sessions are not billed again without each layer: what nothing holds back grows with every request.
const MOST_REQUESTS: usize = 2_000;

/// The effect of one layer, over many sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerAudit {
    /// The layer.
    pub layer: &'static str,
    /// The number of its actions.
    pub times: usize,
    /// Tokens it takes out of the view.
    pub freed_tokens: u64,
    /// The additional cost of the same sessions without it, in dollars.
    pub saved_usd: f64,
    /// Clearings that are made without it, less those made with it.
    pub spared_clearings: i64,
    /// Compactions, likewise.
    pub spared_compactions: i64,
    /// Requests larger than the window, likewise.
    pub spared_overflows: i64,
}

/// Bills of one session with our layers, and without each that acted.
#[derive(Debug)]
pub(super) struct CascadeBills {
    pub(super) ours: SessionBill,
    without: Vec<(&'static str, SessionBill)>,
    /// True if it was billed without them.
    pub(super) is_judged: bool,
}

impl CascadeBills {
    pub(super) fn of(recording: &Recording, layers: &Layers, ttl: Ttl) -> Self {
        let layers = Box::new(layers.clone());
        let ours = recording.bill_at(&PricePolicy::Ours(layers.clone()), ttl);
        let acted = ours.total();
        let is_judged = recording.len() <= MOST_REQUESTS;
        let names = list::names().into_iter().filter(|name| is_judged && acted.times(name) > 0);
        let without = |name| (name, recording.bill_at(&PricePolicy::OursWithout(layers.clone(), name), ttl));
        Self { without: names.map(without).collect(), ours, is_judged }
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut SessionBill> {
        [&mut self.ours].into_iter().chain(self.without.iter_mut().map(|(_, bill)| bill))
    }
}

/// The effects of all layers, in the order in which they act; for sessions that are too long, only their number.
#[derive(Debug, Clone, Default)]
pub(super) struct Cascade {
    layers: Vec<LayerAudit>,
}

impl Cascade {
    /// Adds a session whose costs are scaled.
    pub(super) fn add(&mut self, bills: &CascadeBills, ttl: Ttl, scale: f64) {
        let ours = bills.ours.total();
        for acted in &ours.layers {
            let sum = self.layer(acted.layer);
            sum.times += acted.times;
            sum.freed_tokens += acted.freed_tokens;
        }
        for (name, without) in &bills.without {
            let without = without.total();
            let more = |of: fn(&BillTotal) -> usize| of(&without) as i64 - of(&ours) as i64;
            let sum = self.layer(name);
            sum.saved_usd += (without.cost.at(ttl) - ours.cost.at(ttl)) * scale;
            // A layer does not spare what it does itself.
            if *name != "clear" {
                sum.spared_clearings += more(|total| total.times("clear"));
            }
            if *name != "compact" {
                sum.spared_compactions += more(BillTotal::compactions);
            }
            sum.spared_overflows += more(|total| total.overflows);
        }
    }

    pub(super) fn end(mut self) -> Vec<LayerAudit> {
        let order = list::names();
        self.layers.sort_by_key(|layer| order.iter().position(|name| *name == layer.layer));
        self.layers
    }

    fn layer(&mut self, name: &'static str) -> &mut LayerAudit {
        let at = self.layers.iter().position(|known| known.layer == name).unwrap_or_else(|| {
            self.layers.push(LayerAudit { layer: name, ..LayerAudit::default() });
            self.layers.len() - 1
        });
        &mut self.layers[at]
    }
}
