//! Bills of several policies side by side.

use std::fmt;

use serde::Serialize;

use super::bill::{BillTotal, Cost, SessionBill};

/// Sessions with fewer requests are not looked at one by one: there is nothing to gain in them.
const LEAST_REQUESTS: usize = 20;
/// A session is dearer under a policy above the first of these shares, and much dearer above the second.
const DEARER: f64 = 1.03;
const MUCH_DEARER: f64 = 1.10;

/// Bills of several policies side by side, each against keeping everything.
#[derive(Debug, Clone, Serialize)]
pub struct PriceTable {
    /// One for each policy.
    pub rows: Vec<PriceRow>,
}

/// Bill of one policy.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PriceRow {
    /// The policy's name.
    pub policy: String,
    /// Its bill.
    #[serde(flatten)]
    pub total: BillTotal,
    /// Its cost as a share of keeping everything.
    pub of_everything: Cost,
    /// Part of the edits whose text was in no view.
    pub missed_share: f64,
    /// The number of compactions.
    pub compactions: usize,
    /// Sessions of 20 requests or more that cost above 1.03 of keeping everything, at the worse of both lifetimes.
    pub sessions_above_103: usize,
    /// The same above 1.10.
    pub sessions_above_110: usize,
}

impl PriceTable {
    /// Adds up bills. `sessions` has one for each policy, and `everything` one for each session.
    pub fn of(policies: &[String], sessions: &[&[SessionBill]], everything: &[&SessionBill]) -> Self {
        let whole: Vec<BillTotal> = everything.iter().map(|bill| bill.total()).collect();
        let mut all = BillTotal::default();
        whole.iter().for_each(|one| all += one);
        let row = |at: usize, policy: &String| {
            let (mut total, mut shares) = (BillTotal::default(), Vec::new());
            for (bills, everything) in sessions.iter().zip(&whole) {
                let bill = bills[at].total();
                if everything.requests >= LEAST_REQUESTS {
                    let share = bill.cost.share_of(&everything.cost);
                    shares.push(share.five_minutes.max(share.one_hour));
                }
                total += &bill;
            }
            let above = |limit: f64| shares.iter().filter(|share| **share > limit).count();
            PriceRow {
                policy: policy.clone(),
                of_everything: total.cost.share_of(&all.cost),
                missed_share: total.missed_share(),
                compactions: total.compactions(),
                sessions_above_103: above(DEARER),
                sessions_above_110: above(MUCH_DEARER),
                total,
            }
        };
        Self { rows: policies.iter().enumerate().map(|(at, policy)| row(at, policy)).collect() }
    }
}

impl fmt::Display for PriceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = self.rows.iter().map(|row| row.policy.len()).max().unwrap_or(0).max("policy".len());
        write!(f, "{:<widest$}  {:>10}  {:>10}  {:>6}  {:>6}", "policy", "5 min", "1 h", "5 min", "1 h")?;
        write!(f, "  {:>20}  {:>11}  {:>11}", "edits without text", "compactions", ">1.03 >1.10")?;
        for row in &self.rows {
            let PriceRow { total, of_everything: share, .. } = row;
            let cost = |amount: f64| format!("${amount:.2}");
            let missed = match row.policy.as_str() {
                "recorded" => "not known".to_owned(),
                _ => format!("{} of {} {:>5.1} %", total.missed_edits, total.edits, row.missed_share * 100.0),
            };
            write!(
                f,
                "\n{:<widest$}  {:>10}  {:>10}  {:>6.3}  {:>6.3}  {missed:>20}  {:>11}  {:>5} {:>5}",
                row.policy,
                cost(total.cost.five_minutes),
                cost(total.cost.one_hour),
                share.five_minutes,
                share.one_hour,
                row.compactions,
                row.sessions_above_103,
                row.sessions_above_110,
            )?;
        }
        Ok(())
    }
}
