//! Usage of teammates, from the logs of their own sessions, whatever they wrote to their lead.

use std::collections::BTreeMap;
use std::path::Path;

use context::Fact;
use serde::Serialize;
use transcript::line::Line;
use transcript::price::Prices;
use transcript::{Log, Usage};

use super::{cost, replies, side_work};
use crate::{record, savings};

/// Usage of one teammate.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Teammate {
    /// Its name.
    pub name: String,
    /// Its session.
    pub session: String,
    /// Its usage.
    #[serde(flatten)]
    pub used: SessionUse,
    /// The same by the model, with what was asked outside its conversation.
    #[serde(skip)]
    pub models: BTreeMap<String, Usage>,
}

/// Usage of a session, in three figures.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionUse {
    /// The number of replies.
    pub replies: usize,
    /// Tokens read and written.
    pub tokens: u64,
    /// In dollars; none when a model has no known price.
    pub cost_usd: Option<f64>,
}

impl SessionUse {
    /// By the lines of a log.
    pub fn of(lines: &[Line], prices: &Prices) -> Self {
        let replies = replies(lines);
        let tokens = replies.iter().map(|(_, _, usage)| usage.total()).sum();
        Self { replies: replies.len(), tokens, cost_usd: cost(&replies, &side_work(lines, prices), prices) }
    }
}

impl Teammate {
    /// One whose session is in a folder; of that, all after so many lines. None where it cannot be read.
    pub fn of(folder: &Path, (name, session): (&str, &str), after: usize, prices: &Prices) -> Option<Self> {
        let is_plain = session.chars().all(|one| one.is_ascii_alphanumeric() || one == '-');
        let file = folder.join(format!("{session}.jsonl"));
        let lines = is_plain.then(|| record::lines(&file).ok()).flatten()?.0;
        let lines = lines.get(after..)?;
        let mut models: BTreeMap<String, Usage> = BTreeMap::new();
        let said = replies(lines).into_iter().map(|(_, model, usage)| (model.to_owned(), usage));
        let asked = savings::of_forks(lines).into_iter().map(|(_, model, usage)| (model, usage));
        for (model, usage) in said.chain(asked) {
            *models.entry(model).or_default() += usage;
        }
        Some(Self { name: name.to_owned(), session: session.to_owned(), used: SessionUse::of(lines, prices), models })
    }
}

/// The cost of a session and its teammates together; none if a price is not known.
pub fn cost_with(own: Option<f64>, teammates: &[Teammate]) -> Option<f64> {
    teammates.iter().map(|mate| mate.used.cost_usd).chain([own]).sum()
}

/// Usage of a session's teammates: their sessions are next to its file. One whose session is gone is left out.
pub fn teammates(file: &Path, log: &Log, prices: &Prices) -> Vec<Teammate> {
    let folder = file.parent().unwrap_or(file);
    let started = log.lines().iter().filter_map(Fact::of).filter_map(|fact| match fact {
        Fact::Teammate { name, session } => Some((name, session)),
        _ => None,
    });
    started.filter_map(|(name, session)| Teammate::of(folder, (&name, &session), 0, prices)).collect()
}
