//! An audit: what recorded work cost, and what it would have cost with this program's layers.
//!
//! Every session is billed as it is recorded, and under our layers with the cache lifetime that it had. For each layer
//! that acts in a session, the session is billed once more without it: what the layer saves, and which dearer actions it
//! spares, is the difference. What was paid beside a conversation counts the same on both sides.

use std::collections::BTreeMap;

use context::{Layers, list};
use jiff::Timestamp;
use serde::Serialize;
use transcript::mark::Ttl;

use super::bill::{BillTotal, SessionBill};
use super::collection::{FileLeftOut, RepliesCounted};
use super::policy::PricePolicy;
use super::recording::Recording;
use crate::child::is_child;
use crate::home::SessionFile;

/// Sessions with fewer requests are not named among the worst: there is little that could be saved in them.
const LEAST_REQUESTS: usize = 20;
/// So many of the worst are named.
const MOST_WORST: usize = 5;

/// Bills of one session, for an audit.
#[derive(Debug)]
pub struct SessionAudit {
    file: SessionFile,
    project: String,
    ttl: Ttl,
    /// Whether the recording program took nothing out of it.
    is_whole: bool,
    recorded: SessionBill,
    /// What was paid beside the conversation.
    beside: SessionBill,
    everything: SessionBill,
    ours: SessionBill,
    /// The bills without each layer that acted.
    without: Vec<(&'static str, SessionBill)>,
}

impl SessionAudit {
    /// Bills a session of a project.
    pub fn of(file: &SessionFile, project: String, recording: &Recording, layers: &Layers) -> Self {
        let (ttl, layers) = (recording.ttl(), Box::new(layers.clone()));
        let ours = recording.bill_at(&PricePolicy::Ours(layers.clone()), ttl);
        let acted = ours.total();
        let names = list::names().into_iter().filter(|name| acted.times(name) > 0);
        let without =
            names.map(|name| (name, recording.bill_at(&PricePolicy::OursWithout(layers.clone(), name), ttl))).collect();
        Self {
            file: file.clone(),
            project,
            ttl,
            is_whole: recording.is_whole(),
            recorded: recording.bill(&PricePolicy::Recorded),
            beside: recording.bill_beside(),
            everything: recording.bill_at(&PricePolicy::Everything, ttl),
            ours,
            without,
        }
    }

    fn bills(&mut self) -> impl Iterator<Item = &mut SessionBill> {
        let own = [&mut self.recorded, &mut self.beside, &mut self.everything, &mut self.ours];
        own.into_iter().chain(self.without.iter_mut().map(|(_, bill)| bill))
    }
}

/// Cost in dollars, three ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditCost {
    /// As recorded.
    pub recorded_usd: f64,
    /// With everything kept.
    pub everything_usd: f64,
    /// With our layers.
    pub ours_usd: f64,
}

/// One project, audited.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectAudit {
    /// The folder its sessions lie in.
    pub project: String,
    /// Sessions, without those of subagents.
    pub sessions: usize,
    /// Requests.
    pub requests: usize,
    /// Its cost.
    #[serde(flatten)]
    pub cost: AuditCost,
    /// Edits that would have needed a file again.
    pub missed_edits: usize,
}

/// One layer, audited.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerAudit {
    /// The layer.
    pub layer: &'static str,
    /// How often it acts.
    pub times: usize,
    /// Tokens it takes out of the view.
    pub freed_tokens: u64,
    /// How much more the same sessions cost without it, in dollars.
    pub saved_usd: f64,
    /// Clearings that are made without it, less those made with it.
    pub spared_clearings: i64,
    /// Compactions, likewise.
    pub spared_compactions: i64,
    /// Requests larger than the window, likewise.
    pub spared_overflows: i64,
}

/// A session that would have cost more than with everything kept.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorstSession {
    /// Its id.
    pub session: String,
    /// Its project.
    pub project: String,
    /// Requests.
    pub requests: usize,
    /// Its cost.
    #[serde(flatten)]
    pub cost: AuditCost,
    /// Our layers' cost as a share of keeping everything.
    pub share: f64,
}

/// An audit of many sessions.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// Sessions, without those of subagents.
    pub sessions: usize,
    /// Subagents that have files of their own.
    pub subagents: usize,
    /// Requests.
    pub requests: usize,
    /// Cost of all.
    #[serde(flatten)]
    pub cost: AuditCost,
    /// Edits that replace text.
    pub edits: usize,
    /// Edits that would have needed a file again.
    pub missed_edits: usize,
    /// Requests whose model has no known price: they count for nothing.
    pub unpriced_requests: usize,
    /// What this arithmetic gives for sessions that nothing was taken out of, as a share of what is recorded.
    pub arithmetic_share: Option<f64>,
    /// By project, the dearest first.
    pub projects: Vec<ProjectAudit>,
    /// By layer, in the order in which they act.
    pub layers: Vec<LayerAudit>,
    /// The sessions that would have gained least, the worst first.
    pub worst: Vec<WorstSession>,
    /// Files that were left out.
    pub left_out: Vec<FileLeftOut>,
}

impl Audit {
    /// Adds up sessions, as far as their requests were made since a time.
    pub fn of(sessions: Vec<SessionAudit>, left_out: Vec<FileLeftOut>, since: Option<Timestamp>) -> Self {
        let mut audit = Self { left_out, ..Self::default() };
        let mut counted = RepliesCounted::default();
        let mut projects: BTreeMap<String, ProjectAudit> = BTreeMap::new();
        let (mut whole_recorded, mut whole_everything) = (0.0, 0.0);
        for mut session in sessions {
            counted.take(session.bills());
            for bill in session.bills() {
                bill.requests.retain(|request| request.time.zip(since).is_none_or(|(time, since)| time >= since));
            }
            let totals = Totals::of(&session);
            if totals.recorded.requests == 0 {
                continue;
            }
            let project = projects.entry(session.project.clone()).or_default();
            let is_session = usize::from(!is_child(&session.file.path));
            (audit.sessions, audit.subagents) = (audit.sessions + is_session, audit.subagents + 1 - is_session);
            project.sessions += is_session;
            project.requests += totals.recorded.requests;
            project.missed_edits += totals.ours.missed_edits;
            project.cost.add(&totals.cost);
            audit.requests += totals.recorded.requests;
            audit.unpriced_requests += totals.recorded.unpriced;
            audit.edits += totals.ours.edits;
            audit.missed_edits += totals.ours.missed_edits;
            audit.cost.add(&totals.cost);
            if session.is_whole && since.is_none_or(|since| session.began() >= Some(since)) {
                whole_recorded += totals.cost.recorded_usd;
                whole_everything += totals.cost.everything_usd;
            }
            audit.judge_layers(&session, &totals.ours);
            audit.worst.extend(totals.worst(&session));
        }
        audit.arithmetic_share = (whole_recorded > 0.0).then(|| whole_everything / whole_recorded);
        audit.projects =
            projects.into_iter().map(|(name, project)| ProjectAudit { project: name, ..project }).collect();
        audit.projects.sort_by(|a, b| b.cost.recorded_usd.total_cmp(&a.cost.recorded_usd));
        let order = list::names();
        audit.layers.sort_by_key(|layer| order.iter().position(|name| *name == layer.layer));
        audit.worst.sort_by(|a, b| b.share.total_cmp(&a.share));
        audit.worst.truncate(MOST_WORST);
        audit
    }

    /// What each layer did in a session, and what would have been without it.
    fn judge_layers(&mut self, session: &SessionAudit, ours: &BillTotal) {
        for layer in &ours.layers {
            let Some((_, without)) = session.without.iter().find(|(name, _)| *name == layer.layer) else { continue };
            let without = without.total();
            let more = |of: fn(&BillTotal) -> usize| of(&without) as i64 - of(ours) as i64;
            let at = self.layers.iter().position(|known| known.layer == layer.layer).unwrap_or_else(|| {
                self.layers.push(LayerAudit { layer: layer.layer, ..LayerAudit::default() });
                self.layers.len() - 1
            });
            let sum = &mut self.layers[at];
            sum.times += layer.times;
            sum.freed_tokens += layer.freed_tokens;
            sum.saved_usd += without.cost.at(session.ttl) - ours.cost.at(session.ttl);
            // Its own actions are not spared by it.
            if layer.layer != "clear" {
                sum.spared_clearings += more(|total| total.times("clear"));
            }
            if layer.layer != "compact" {
                sum.spared_compactions += more(BillTotal::compactions);
            }
            sum.spared_overflows += more(|total| total.overflows);
        }
    }
}

impl AuditCost {
    fn add(&mut self, other: &Self) {
        self.recorded_usd += other.recorded_usd;
        self.everything_usd += other.everything_usd;
        self.ours_usd += other.ours_usd;
    }
}

/// The sums of one session's bills.
struct Totals {
    recorded: BillTotal,
    ours: BillTotal,
    cost: AuditCost,
}

impl Totals {
    fn of(session: &SessionAudit) -> Self {
        let (recorded, ours) = (session.recorded.total(), session.ours.total());
        let beside = session.beside.total().cost.at(session.ttl);
        let cost = AuditCost {
            recorded_usd: recorded.cost.at(session.ttl),
            everything_usd: session.everything.total().cost.at(session.ttl) + beside,
            ours_usd: ours.cost.at(session.ttl) + beside,
        };
        Self { recorded, ours, cost }
    }

    fn worst(&self, session: &SessionAudit) -> Option<WorstSession> {
        let share = self.cost.ours_usd / self.cost.everything_usd;
        (self.recorded.requests >= LEAST_REQUESTS && share > 1.0).then(|| WorstSession {
            session: session.file.id.clone(),
            project: session.project.clone(),
            requests: self.recorded.requests,
            cost: self.cost,
            share,
        })
    }
}

impl SessionAudit {
    fn began(&self) -> Option<Timestamp> {
        self.recorded.requests.iter().find_map(|request| request.time)
    }
}
