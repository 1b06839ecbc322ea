//! The ledger: spending by kind of work and day, and the budget that is left.
//!
//! `<config>/cairn/ledger/2026-11-15.jsonl` has a line for each request that began on that local day, whichever process
//! of the user made it, and one for its end, which counts in place of the first. Background work asks before each of
//! its rounds whether the day's budget allows one more. The conversation, and what it cannot go on without, is recorded
//! and never stopped.
//!
//! It is no lock: rounds that several processes begin at the same moment are all made, and the next are not. Spending
//! that cannot be written counts in this process all the same. A clock that steps back over midnight opens no second
//! budget: entries under tomorrow's date count as today's.

mod day;
mod under_way;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use parking_lot::Mutex;
use session::World;
use settings::Budget;
use transcript::Usage;
use transcript::price::Prices;

use day::{DayReading, LedgerEntry, Requests};

pub use day::{Day, Spending};
pub use under_way::{BYTES_PER_TOKEN, broken_off};

/// The conversation with the user.
pub const CONVERSATION: &str = "conversation";
/// Subagents.
pub const AGENT: &str = "agent";
/// Notes of the session.
pub const NOTES: &str = "notes";
/// The selector of memories.
pub const SELECT: &str = "select";
/// Extraction.
pub const EXTRACT: &str = "extract";
/// Dreams.
pub const DREAM: &str = "dream";
/// Labels of sessions and jobs.
pub const LABEL: &str = "label";

/// Kinds of background work. All others belong to the conversation.
const BACKGROUND: [&str; 5] = [NOTES, SELECT, EXTRACT, DREAM, LABEL];

/// Folder of the ledgers below the config home.
const FOLDER: &str = "cairn/ledger";

/// Default budget a day of background work with models that have no price, in tokens: some two dollars at the price of
/// a small one.
const UNPRICED_TOKENS: u64 = 2_000_000;

/// The reason background work has to wait for tomorrow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("background work pauses: {0}")]
pub struct BudgetPause(pub String);

/// Origin of spending.
#[derive(Debug, Clone, Default)]
pub struct Spender {
    /// The project's directory.
    pub project: PathBuf,
    /// The session, if there is one.
    pub session: String,
}

/// Spending, and the budget that is left.
#[derive(Debug)]
pub struct Ledger {
    /// Folder of the files; without one it counts for this process alone.
    folder: Option<PathBuf>,
    spender: Spender,
    prices: Prices,
    world: World,
    zone: TimeZone,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    budget: Budget,
    /// Today's files, as far as they were read.
    readings: Vec<(Date, DayReading)>,
    /// Requests that could not be written, by day.
    unwritten: Vec<(Date, Requests)>,
    /// Usage of this process, by model.
    spent: BTreeMap<String, Usage>,
    /// Known usage of its requests under way, by id.
    under_way: BTreeMap<String, (String, Usage)>,
    /// Messages for the user, and the days on which each was shown.
    news: Vec<String>,
    reported: Vec<(Date, LedgerNews)>,
}

/// A request whose reply has begun.
#[derive(Debug)]
pub(crate) struct BegunRequest {
    id: String,
    kind: &'static str,
    model: String,
    date: Date,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LedgerNews {
    Paused,
    NotWritten,
}

impl Ledger {
    /// The ledger below a config home.
    pub fn at(config_home: &Path, spender: Spender, prices: Prices, budget: Budget, world: World) -> Self {
        let state = Mutex::new(State { budget, ..State::default() });
        Self { folder: Some(config_home.join(FOLDER)), spender, prices, world, zone: TimeZone::system(), state }
    }

    /// A ledger that counts for this process alone.
    pub fn in_memory(world: World) -> Self {
        let (spender, prices, state) = (Spender::default(), Prices::default(), Mutex::default());
        Self { folder: None, spender, prices, world, zone: TimeZone::system(), state }
    }

    /// With the days of another time zone.
    #[must_use]
    pub fn with_zone(mut self, zone: TimeZone) -> Self {
        self.zone = zone;
        self
    }

    /// Price of a model, if known.
    pub fn price(&self, model: &str) -> Option<transcript::price::Price> {
        self.prices.of(model)
    }

    /// The budget.
    pub fn budget(&self) -> Budget {
        self.state.lock().budget
    }

    /// Changes the budget.
    pub fn set_budget(&self, budget: Budget) {
        self.state.lock().budget = budget;
    }

    /// Checks before each round that a kind of work may make one more.
    pub fn allows(&self, kind: &str) -> Result<(), BudgetPause> {
        if !BACKGROUND.contains(&kind) {
            return Ok(());
        }
        let today = self.today();
        let mut state = self.state.lock();
        let paused = today.unread.clone().or_else(|| exceeded_by(&state.budget, &today));
        let Some(why) = paused else { return Ok(()) };
        let paused = BudgetPause(why);
        state.tell(self.date(), LedgerNews::Paused, paused.to_string());
        Err(paused)
    }

    /// Records the usage of a request that was not followed from its beginning.
    pub fn record(&self, kind: &str, model: &str, usage: &Usage) {
        *self.state.lock().spent.entry(model.to_owned()).or_default() += *usage;
        self.write(self.date(), self.entry(kind, model, usage));
    }

    /// Records that a reply has begun, with its known usage.
    fn begin(&self, kind: &'static str, model: &str, usage: &Usage) -> BegunRequest {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let (now, serial) = (self.world.now().as_millisecond(), SERIAL.fetch_add(1, Ordering::Relaxed));
        let id = format!("{}-{now}-{serial}", std::process::id());
        let begun = BegunRequest { id, kind, model: model.to_owned(), date: self.date() };
        self.state.lock().under_way.insert(begun.id.clone(), (begun.model.clone(), *usage));
        let entry = self.entry(kind, model, usage);
        self.write(begun.date, LedgerEntry { begins: Some(begun.id.clone()), ..entry });
        begun
    }

    /// Records the usage of a finished request.
    fn end(&self, begun: BegunRequest, usage: &Usage) {
        self.settle(begun, usage, false);
    }

    /// Records the known usage of a request that is not finished.
    fn break_off(&self, begun: BegunRequest, usage: &Usage) {
        self.settle(begun, usage, true);
    }

    fn settle(&self, begun: BegunRequest, usage: &Usage, broken_off: bool) {
        let mut state = self.state.lock();
        state.under_way.remove(&begun.id);
        *state.spent.entry(begun.model.clone()).or_default() += *usage;
        drop(state);
        let entry = self.entry(begun.kind, &begun.model, usage);
        // On the day it began, where it is looked for.
        self.write(begun.date, LedgerEntry { ends: Some(begun.id), broken_off, ..entry });
    }

    fn entry(&self, kind: &str, model: &str, usage: &Usage) -> LedgerEntry {
        LedgerEntry {
            at: self.world.now().to_string(),
            kind: kind.to_owned(),
            background: BACKGROUND.contains(&kind),
            project: self.spender.project.display().to_string(),
            session: self.spender.session.clone(),
            model: model.to_owned(),
            tokens: usage.total(),
            usd: self.prices.of(model).map(|price| price.cost(usage)),
            begins: None,
            ends: None,
            broken_off: false,
        }
    }

    fn write(&self, date: Date, entry: LedgerEntry) {
        let Some(folder) = &self.folder else {
            self.state.lock().keep(date, entry, &self.spender.project);
            return;
        };
        let line = serde_json::to_vec(&entry).unwrap_or_default();
        if let Err(error) = files::add_line(file(folder, date), &line) {
            let mut state = self.state.lock();
            state.keep(date, entry, &self.spender.project);
            let text = format!("spending cannot be recorded, so it counts for this session alone: {error}");
            state.tell(date, LedgerNews::NotWritten, text);
        }
    }

    /// Usage since this was opened, for all kinds of work, by model. Requests under way count with their known usage.
    pub fn spent(&self) -> BTreeMap<String, Usage> {
        let state = self.state.lock();
        let mut spent = state.spent.clone();
        for (model, usage) in state.under_way.values() {
            *spent.entry(model.clone()).or_default() += *usage;
        }
        spent
    }

    /// The same in dollars; none if a price is unknown.
    pub fn here(&self) -> Option<f64> {
        let cost = |(model, usage): (&String, &Usage)| Some(self.prices.of(model)?.cost(usage));
        let all: Option<f64> = self.spent().iter().map(cost).sum();
        all.map(|all| all + 0.0) // the sum of nothing is a negative zero
    }

    /// Spending today, of all processes.
    pub fn today(&self) -> Day {
        let today = self.date();
        let counts = |date: &Date| *date == today || Some(*date) == tomorrow(today);
        let state = &mut *self.state.lock();
        state.readings.retain(|(date, _)| counts(date));
        let mut sum = Day::default();
        if let Some(folder) = &self.folder {
            for date in [Some(today), tomorrow(today)].into_iter().flatten() {
                let at = state.readings.iter().position(|(known, _)| *known == date).unwrap_or_else(|| {
                    state.readings.push((date, DayReading::default()));
                    state.readings.len() - 1
                });
                let reading = &mut state.readings[at].1;
                reading.refresh(&file(folder, date), &self.spender.project);
                sum.add_day(&reading.day(&self.spender.project));
            }
        }
        state.unwritten.retain(|(date, _)| counts(date));
        state.unwritten.iter().for_each(|(_, requests)| sum.add_day(&requests.day(&self.spender.project)));
        sum
    }

    /// Spending on the last days, the newest first. Today's is as it stands in the file.
    pub fn days(&self, most: usize) -> Vec<(Date, Day)> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let days = std::iter::successors(Some(self.date()), |date| date.yesterday().ok()).take(most);
        let read = days.map(|date| {
            let mut reading = DayReading::default();
            reading.refresh(&file(folder, date), &self.spender.project);
            (date, reading.day(&self.spender.project))
        });
        read.collect()
    }

    /// Messages for the user: each once a day.
    pub fn news(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().news)
    }

    fn date(&self) -> Date {
        self.date_of(self.world.now())
    }

    fn date_of(&self, now: Timestamp) -> Date {
        now.to_zoned(self.zone.clone()).date()
    }
}

impl State {
    fn keep(&mut self, date: Date, entry: LedgerEntry, project: &Path) {
        let at = self.unwritten.iter().position(|(known, _)| *known == date).unwrap_or_else(|| {
            self.unwritten.push((date, Requests::default()));
            self.unwritten.len() - 1
        });
        self.unwritten[at].1.add(entry, project);
    }

    fn tell(&mut self, date: Date, news: LedgerNews, text: String) {
        if !self.reported.contains(&(date, news)) {
            self.reported.push((date, news));
            self.news.push(text);
        }
    }
}

/// The part of the budget that a day has used up, in words.
fn exceeded_by(budget: &Budget, day: &Day) -> Option<String> {
    let (all, project) = (&day.background, &day.project_background);
    let usd = |spent: f64, budget: f64, whose: &str, key: &str| {
        (spent >= budget).then(|| format!("${spent:.2} of {whose}${budget:.2} a day are spent ({key})"))
    };
    let tokens = |spent: u64, budget: u64, whose: &str, key: &str| {
        (spent >= budget).then(|| format!("{spent} of {whose}{budget} tokens a day are spent ({key})"))
    };
    let unpriced = || match budget.tokens {
        Some(budget) => tokens(all.tokens, budget, "", "budget.tokensPerDay"),
        None => (all.unpriced_tokens >= UNPRICED_TOKENS).then(|| {
            let spent = all.unpriced_tokens;
            format!(
                "{spent} of {UNPRICED_TOKENS} tokens a day are spent on models without a price (budget.tokensPerDay)"
            )
        }),
    };
    usd(all.usd, budget.usd, "", "budget.usdPerDay")
        .or_else(unpriced)
        .or_else(|| usd(project.usd, budget.project_usd?, "this project's ", "budget.projectUsdPerDay"))
        .or_else(|| tokens(project.tokens, budget.project_tokens?, "this project's ", "budget.projectTokensPerDay"))
}

fn tomorrow(today: Date) -> Option<Date> {
    today.checked_add(Span::new().days(1)).ok()
}

fn file(folder: &Path, date: Date) -> PathBuf {
    folder.join(format!("{date}.jsonl"))
}
