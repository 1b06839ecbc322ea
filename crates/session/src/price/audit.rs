//! An audit: what recorded work cost, and what it would have cost with this program's layers.
//!
//! Every session is billed as it is recorded, and under our layers with the cache lifetime that it had. What was paid beside
//! a conversation counts the same on both sides.
//!
//! A cost that is computed knows nothing of a cache that broke for no reason. So it is scaled: for a session that nothing
//! was taken out of, keeping everything costs what is recorded; for the others, as much more as for most of those. That is
//! their median, since a few sessions cost many times what is computed: some providers have no cache.

use std::collections::BTreeMap;

use context::Layers;
use jiff::Timestamp;
use serde::Serialize;
use transcript::mark::Ttl;

use super::bill::{BillTotal, SessionBill};
use super::cascade::{Cascade, CascadeBills, LayerAudit};
use super::collection::{FileLeftOut, RepliesCounted};
use super::policy::PricePolicy;
use super::recording::Recording;
use crate::child::is_subagent;
use crate::home::SessionFile;

/// Sessions with fewer requests are not named among the worst: there is little that could be saved in them.
const LEAST_REQUESTS: usize = 20;
/// Nor are those that cost less than this share of keeping everything.
const DEARER: f64 = 1.005;
/// So many of the worst are named.
const MOST_WORST: usize = 5;

/// Bills of one session, for an audit.
#[derive(Debug)]
pub struct SessionAudit {
    file: SessionFile,
    project: String,
    ttl: Ttl,
    /// True if the recording program took nothing out of it.
    is_whole: bool,
    had_smaller_window: bool,
    recorded: SessionBill,
    /// Cost outside the conversation.
    beside: SessionBill,
    everything: SessionBill,
    cascade: CascadeBills,
}

impl SessionAudit {
    /// Bills a session of a project.
    pub fn of(file: &SessionFile, project: String, recording: &Recording, layers: &Layers) -> Self {
        let ttl = recording.ttl();
        Self {
            file: file.clone(),
            project,
            ttl,
            is_whole: recording.is_whole(),
            had_smaller_window: recording.was_compacted_below_half(layers.window.size),
            recorded: recording.bill(&PricePolicy::Recorded),
            beside: recording.bill_beside(),
            everything: recording.bill_at(&PricePolicy::Everything, ttl),
            cascade: CascadeBills::of(recording, layers, ttl),
        }
    }

    fn bills(&mut self) -> impl Iterator<Item = &mut SessionBill> {
        [&mut self.recorded, &mut self.beside, &mut self.everything].into_iter().chain(self.cascade.all())
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
    /// The computed cost of a session that nothing was taken out of, as a share of what is recorded for it: the median, in
    /// which a session weighs as much as it cost.
    pub computed_share: Option<f64>,
    /// Sessions that the recording program compacted before half of the window was full that they have here.
    pub smaller_windows: usize,
    /// Sessions too long to tell what each layer saves and spares in them.
    pub unjudged_sessions: usize,
    /// By project, the dearest first.
    pub projects: Vec<ProjectAudit>,
    /// By layer, in the order in which they act.
    pub layers: Vec<LayerAudit>,
    /// Sessions that would have cost more than with everything kept, the worst first.
    pub worst: Vec<WorstSession>,
    /// Files that were left out.
    pub left_out: Vec<FileLeftOut>,
}

impl Audit {
    /// Adds up sessions, as far as their requests were made since a time.
    pub fn of(sessions: Vec<SessionAudit>, left_out: Vec<FileLeftOut>, since: Option<Timestamp>) -> Self {
        let mut counted = RepliesCounted::default();
        let mut billed: Vec<(SessionAudit, SessionTotals)> = Vec::new();
        for mut session in sessions {
            counted.take(session.bills());
            for bill in session.bills() {
                bill.requests.retain(|request| request.time.zip(since).is_none_or(|(time, since)| time >= since));
            }
            let totals = SessionTotals::of(&session);
            if totals.recorded.requests > 0 {
                billed.push((session, totals));
            }
        }
        let whole = billed.iter().filter(|(session, _)| session.is_whole).map(|(_, totals)| totals);
        let usual = usual_scale(whole);
        let mut audit = Self { left_out, ..Self::default() };
        let (mut projects, mut cascade): (BTreeMap<&str, ProjectAudit>, Cascade) = Default::default();
        for (session, totals) in &billed {
            let scale = totals.scale().filter(|_| session.is_whole).or(usual).unwrap_or(1.0);
            cascade.add(&session.cascade, session.ttl, scale);
            audit.add(session, totals, scale, projects.entry(&session.project).or_default());
        }
        audit.computed_share = usual.map(|scale| 1.0 / scale);
        let named = |(name, project): (&str, ProjectAudit)| ProjectAudit { project: name.to_owned(), ..project };
        audit.projects = projects.into_iter().map(named).collect();
        audit.projects.sort_by(|a, b| b.cost.recorded_usd.total_cmp(&a.cost.recorded_usd));
        audit.layers = cascade.end();
        audit.worst.sort_by(|a, b| b.share.total_cmp(&a.share));
        audit.worst.truncate(MOST_WORST);
        audit
    }

    /// Adds one session, also to its project.
    fn add(&mut self, session: &SessionAudit, totals: &SessionTotals, scale: f64, project: &mut ProjectAudit) {
        let (cost, requests) = (totals.cost(scale), totals.recorded.requests);
        let is_session = usize::from(!is_subagent(&session.file.path));
        (self.sessions, self.subagents) = (self.sessions + is_session, self.subagents + 1 - is_session);
        self.requests += requests;
        self.unpriced_requests += totals.recorded.unpriced;
        self.smaller_windows += usize::from(session.had_smaller_window);
        self.unjudged_sessions += usize::from(!session.cascade.is_judged);
        self.edits += totals.ours.edits;
        self.missed_edits += totals.ours.missed_edits;
        self.cost.add(&cost);
        project.sessions += is_session;
        project.requests += requests;
        project.missed_edits += totals.ours.missed_edits;
        project.cost.add(&cost);
        let share = cost.ours_usd / cost.everything_usd;
        if requests >= LEAST_REQUESTS && share > DEARER {
            let (id, project) = (session.file.id.clone(), session.project.clone());
            self.worst.push(WorstSession { session: id, project, requests, cost, share });
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

/// The median ratio of recorded to computed costs, in which a session weighs as much as it is computed to cost.
fn usual_scale<'t>(whole: impl Iterator<Item = &'t SessionTotals>) -> Option<f64> {
    let mut scales: Vec<(f64, f64)> = whole.filter_map(|totals| Some((totals.scale()?, totals.everything))).collect();
    scales.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = scales.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let middle = scales.into_iter().find(|(_, weight)| {
        left -= weight;
        left <= 0.0
    });
    middle.map(|(scale, _)| scale)
}

/// Sums of one session's bills, in dollars at its cache lifetime.
struct SessionTotals {
    recorded: BillTotal,
    ours: BillTotal,
    /// The conversation with everything kept, as it is computed.
    everything: f64,
    /// The conversation with our layers, as it is computed.
    with_layers: f64,
    /// Cost outside the conversation.
    beside: f64,
}

impl SessionTotals {
    fn of(session: &SessionAudit) -> Self {
        let at = |bill: &SessionBill| bill.total().cost.at(session.ttl);
        Self {
            recorded: session.recorded.total(),
            ours: session.cascade.ours.total(),
            everything: at(&session.everything),
            with_layers: at(&session.cascade.ours),
            beside: at(&session.beside),
        }
    }

    /// Recorded cost of the conversation alone.
    fn recorded_conversation(&self) -> f64 {
        self.recorded.cost.five_minutes - self.beside
    }

    /// Ratio of the recorded to the computed cost.
    fn scale(&self) -> Option<f64> {
        let scale = self.recorded_conversation() / self.everything;
        (scale.is_finite() && scale > 0.0).then_some(scale)
    }

    fn cost(&self, scale: f64) -> AuditCost {
        AuditCost {
            recorded_usd: self.recorded.cost.five_minutes,
            everything_usd: self.everything * scale + self.beside,
            ours_usd: self.with_layers * scale + self.beside,
        }
    }
}
