//! Bills: what requests cost, and what was done and missed for it.

use jiff::Timestamp;
use serde::Serialize;
use transcript::Id;
use transcript::mark::Ttl;

/// An amount in dollars, at both lifetimes of the provider's cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// With a cache that lives five minutes.
    #[serde(rename = "5m")]
    pub five_minutes: f64,
    /// With a cache that lives an hour.
    #[serde(rename = "1h")]
    pub one_hour: f64,
}

impl Cost {
    /// The same at both.
    pub fn both(amount: f64) -> Self {
        Self { five_minutes: amount, one_hour: amount }
    }

    /// The amount at one.
    pub fn at(&self, ttl: Ttl) -> f64 {
        match ttl {
            Ttl::FiveMinutes => self.five_minutes,
            Ttl::OneHour => self.one_hour,
        }
    }

    /// Adds an amount at one.
    pub(super) fn add_at(&mut self, ttl: Ttl, amount: f64) {
        match ttl {
            Ttl::FiveMinutes => self.five_minutes += amount,
            Ttl::OneHour => self.one_hour += amount,
        }
    }

    /// Its share of another; 1 if the other is nothing.
    pub fn share_of(&self, whole: &Self) -> Self {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
        Self {
            five_minutes: share(self.five_minutes, whole.five_minutes),
            one_hour: share(self.one_hour, whole.one_hour),
        }
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.five_minutes += other.five_minutes;
        self.one_hour += other.one_hour;
    }
}

/// An action of a layer before a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerAction {
    /// The layer.
    pub layer: &'static str,
    /// Tokens that left the view.
    pub freed: u64,
}

/// Bill of one recorded request under a policy: itself, and all that the policy asked for before it.
#[derive(Debug, Clone, Default)]
pub struct RequestBill {
    /// Its reply; none of a fork in the record.
    pub reply: Option<Id>,
    /// When it was made, where the record says it.
    pub time: Option<Timestamp>,
    /// Everything.
    pub cost: Cost,
    /// Of that, digests and summaries.
    pub forks: Cost,
    /// Of that, requests that read a file again.
    pub regrets: Cost,
    /// Edits in its reply that replace text.
    pub edits: usize,
    /// Edits whose text was in no view.
    pub missed_edits: usize,
    /// Actions of layers before it.
    pub actions: Vec<LayerAction>,
    /// True if it was larger than the window.
    pub overflows: bool,
    /// True if its model has no known price.
    pub is_unpriced: bool,
}

/// Bill of one session under one policy, request by request.
#[derive(Debug, Clone, Default)]
pub struct SessionBill {
    /// Its requests, in order.
    pub requests: Vec<RequestBill>,
}

impl SessionBill {
    /// The sum of all requests.
    pub fn total(&self) -> BillTotal {
        self.total_of(|_| true)
    }

    /// The sum of some requests.
    pub fn total_of(&self, counts: impl Fn(&RequestBill) -> bool) -> BillTotal {
        let mut total = BillTotal::default();
        for request in self.requests.iter().filter(|request| counts(request)) {
            total.requests += 1;
            total.cost += request.cost;
            total.forks += request.forks;
            total.regrets += request.regrets;
            total.edits += request.edits;
            total.missed_edits += request.missed_edits;
            total.overflows += usize::from(request.overflows);
            total.unpriced += usize::from(request.is_unpriced);
            for action in &request.actions {
                total.act(action.layer, 1, action.freed);
            }
        }
        total
    }

    /// The same requests with the costs of another walk for a cache that lives an hour.
    pub(super) fn with_hour_of(mut self, other: &Self) -> Self {
        for (own, other) in self.requests.iter_mut().zip(&other.requests) {
            own.cost.one_hour = other.cost.one_hour;
            own.forks.one_hour = other.forks.one_hour;
            own.regrets.one_hour = other.regrets.one_hour;
        }
        self
    }
}

/// Sum of bills.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BillTotal {
    /// Requests.
    pub requests: usize,
    /// Everything, in dollars.
    pub cost: Cost,
    /// Of that, digests and summaries.
    pub forks: Cost,
    /// Of that, requests that read a file again.
    pub regrets: Cost,
    /// Edits that replace text.
    pub edits: usize,
    /// Edits whose text was in no view.
    pub missed_edits: usize,
    /// Requests that were larger than the window.
    pub overflows: usize,
    /// Requests whose model has no known price: they count for nothing.
    pub unpriced: usize,
    /// Totals by layer.
    pub layers: Vec<LayerTotal>,
}

/// The total of one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerTotal {
    /// The layer.
    pub layer: &'static str,
    /// The number of its actions.
    pub times: usize,
    /// Tokens it took out of the view.
    pub freed_tokens: u64,
}

impl BillTotal {
    /// The number of a layer's actions.
    pub fn times(&self, layer: &str) -> usize {
        self.layers.iter().find(|known| known.layer == layer).map_or(0, |known| known.times)
    }

    /// The number of compactions.
    pub fn compactions(&self) -> usize {
        self.times("compact")
    }

    /// Part of the edits whose text was in no view.
    pub fn missed_share(&self) -> f64 {
        if self.edits == 0 { 0.0 } else { self.missed_edits as f64 / self.edits as f64 }
    }

    fn act(&mut self, layer: &'static str, times: usize, freed: u64) {
        match self.layers.iter_mut().find(|known| known.layer == layer) {
            Some(known) => (known.times, known.freed_tokens) = (known.times + times, known.freed_tokens + freed),
            None => self.layers.push(LayerTotal { layer, times, freed_tokens: freed }),
        }
    }
}

impl std::ops::AddAssign<&BillTotal> for BillTotal {
    fn add_assign(&mut self, other: &Self) {
        self.requests += other.requests;
        self.cost += other.cost;
        self.forks += other.forks;
        self.regrets += other.regrets;
        self.edits += other.edits;
        self.missed_edits += other.missed_edits;
        self.overflows += other.overflows;
        self.unpriced += other.unpriced;
        for layer in &other.layers {
            self.act(layer.layer, layer.times, layer.freed_tokens);
        }
    }
}
