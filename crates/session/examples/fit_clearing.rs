//! Fits the numbers of clearing on recorded sessions, and prints the bill beside the edits that are missed.
//!
//! `cargo run --release -p session --example fit_clearing -- [--fit] [FOLDER…]` takes the folder that `REGRET_SESSIONS` names,
//! where none is given. Each folder gets a table of its own, so that recordings on which numbers were chosen stay apart from
//! others: the plain rules, and ours at five settings of caution, with what stands before the messages and without it, and of
//! the sessions apart that their own program did not compact. With `--fit` the
//! numbers are searched first, one after the other, on all folders together; what comes out belongs into `ClearNumbers`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]
#![allow(clippy::disallowed_methods, reason = "a measuring program is told by the environment what to measure")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use context::Layers;
use context::clear_numbers::ClearNumbers;
use context::layer_settings::ClearWhen;
use session::price::{BillTotal, PricePolicy, Recording, RepliesCounted, SessionBill, SessionFiles, price_files};
use transcript::mark::Ttl;
use transcript::price::Prices;
use transcript::window::{Window, WindowHints};

/// Names the folder.
const FOLDER: &str = "REGRET_SESSIONS";
const CAUTION: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
const WINDOWS: [u64; 3] = [200_000, 1_000_000, 100_000];
/// The plain rules that ours is compared with.
const PLAIN: [&str; 2] = ["age", "reads"];
const LIFETIMES: [Ttl; 2] = [Ttl::FiveMinutes, Ttl::OneHour];
/// Sessions with fewer requests are not judged by themselves.
const LEAST_REQUESTS: usize = 20;
/// Such sessions may cost this share of keeping everything, and this one at most.
const DEARER: f64 = 1.03;
const MUCH_DEARER: f64 = 1.10;
/// What one of them costs beyond this share counts against the numbers, so many times: a few dear sessions are hardly more
/// than chance, so how dear they are says more than how many.
const BORDER: f64 = 1.01;
const BORDER_WEIGHT: f64 = 10.0;
/// So many edits may be missed before it counts against the numbers, so many times.
const MOST_MISSED: f64 = 0.025;
const MISSED_WEIGHT: f64 = 2.0;
/// How often each number is tried anew.
const SWEEPS: usize = 3;

fn layers(size: u64, caution: f64, clear_numbers: ClearNumbers) -> Layers {
    let hints = WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() };
    Layers { window: Window::of(&hints), caution, clear_numbers, ..Layers::default() }
}

/// Recordings, each with its bill if everything is kept.
struct Recordings {
    sessions: Vec<(Recording, [SessionBill; 2])>,
}

/// What came of a policy on all recordings, at both lifetimes of the cache.
#[derive(Default)]
struct Outcome {
    everything: [f64; 2],
    totals: [BillTotal; 2],
    long: usize,
    dearer: [usize; 2],
    much_dearer: [usize; 2],
    /// The sum of what long sessions cost beyond the border, as shares.
    beyond: f64,
}

impl Recordings {
    fn of(folders: &[PathBuf], has_prologue: bool) -> Result<Self, Box<dyn std::error::Error>> {
        let mut found = SessionFiles::default();
        for folder in folders {
            found.add(&std::path::absolute(folder)?)?;
        }
        let everything = |recording: &Recording| LIFETIMES.map(|ttl| recording.bill_at(&PricePolicy::Everything, ttl));
        let price = |_: &_, recording: Recording| {
            let recording = if has_prologue { recording } else { recording.without_prologue() };
            let bills = everything(&recording);
            (recording, bills)
        };
        let (sessions, _) = price_files(&found.files, &Prices::default(), &price, &|_| {});
        Ok(Self { sessions })
    }

    fn outcome(&self, policy: &PricePolicy) -> Outcome {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut bills = Vec::new();
            while let Some((recording, _)) = self.sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
                let at = bills.len();
                bills.push((recording, LIFETIMES.map(|ttl| recording.bill_at(policy, ttl)), at));
            }
            bills
        };
        let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut billed: Vec<(&Recording, [SessionBill; 2], usize)> = thread::scope(|scope| {
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            started.into_iter().flat_map(|one| one.join().unwrap_or_default()).collect()
        });
        let place = |wanted: &Recording| self.sessions.iter().position(|(known, _)| std::ptr::eq(known, wanted));
        billed.sort_by_key(|(recording, ..)| place(recording));
        let (mut outcome, mut counted) = (Outcome::default(), RepliesCounted::default());
        for ((_, everything), (_, mut bills, _)) in self.sessions.iter().zip(billed) {
            let mut everything = everything.clone();
            counted.take(bills.iter_mut().chain(&mut everything));
            outcome.add(&everything, &bills);
        }
        outcome
    }
}

impl Outcome {
    fn add(&mut self, everything: &[SessionBill; 2], bills: &[SessionBill; 2]) {
        let is_long = everything[0].requests.len() >= LEAST_REQUESTS;
        self.long += usize::from(is_long);
        for (at, ttl) in LIFETIMES.into_iter().enumerate() {
            let (kept, bill) = (everything[at].total().cost.at(ttl), bills[at].total());
            let share = bill.cost.at(ttl) / kept;
            self.everything[at] += kept;
            self.totals[at] += &bill;
            self.dearer[at] += usize::from(is_long && share > DEARER);
            self.much_dearer[at] += usize::from(is_long && share > MUCH_DEARER);
            self.beyond += if is_long { (share - BORDER).max(0.0) } else { 0.0 };
        }
    }

    fn share(&self, at: usize) -> f64 {
        self.totals[at].cost.at(LIFETIMES[at]) / self.everything[at]
    }

    /// How bad it is: the bill, and what goes beyond the limits.
    fn badness(&self) -> f64 {
        let bill = (self.share(0) + self.share(1)) / 2.0;
        let missed = self.totals.iter().map(|total| (total.missed_share() - MOST_MISSED).max(0.0)).sum::<f64>();
        bill + missed * MISSED_WEIGHT + self.beyond / self.long.max(1) as f64 * BORDER_WEIGHT
    }

    fn print(&self, name: &str) {
        let [five, hour] = &self.totals;
        println!(
            "{name:<24} {:.3} / {:.3}  missed {:>4.1} / {:>4.1} %  >1.03 {:>2} / {:>2}  >1.10 {:>2} / {:>2} of {}  \
             cleared {:>4} / {:>4}  compacted {}",
            self.share(0),
            self.share(1),
            five.missed_share() * 100.0,
            hour.missed_share() * 100.0,
            self.dearer[0],
            self.dearer[1],
            self.much_dearer[0],
            self.much_dearer[1],
            self.long,
            five.times("clear"),
            hour.times("clear"),
            five.compactions(),
        );
    }
}

/// A number, how it is set, and what is tried.
type Number = (&'static str, fn(&mut ClearNumbers, f64), &'static [f64]);

const NUMBERS: [Number; 11] = [
    ("read rounds", |numbers, value| numbers.read_rounds = value as usize, &[3.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0]),
    ("named rounds", |numbers, value| numbers.named_rounds = value as usize, &[10.0, 20.0, 40.0, 1_000.0]),
    ("midturn tokens", |numbers, value| numbers.midturn_tokens = value as u64, &[8e4, 1e5, 1.2e5, 1.5e5, 1e9]),
    ("budget", |numbers, value| numbers.budget = value, &[0.02, 0.025, 0.03, 0.04, 0.06, 0.1, 1.0]),
    ("rounds at start", |numbers, value| numbers.rounds_at_start = value as u32, &[0.0, 1.0, 2.0, 3.0, 5.0]),
    ("rounds midturn", |numbers, value| numbers.rounds_midturn = value as u32, &[0.0, 3.0, 5.0, 8.0, 12.0]),
    ("midturn share", |numbers, value| numbers.midturn_share = value, &[0.4, 0.5, 0.6, 0.8, 1.0]),
    ("patience", |numbers, value| numbers.patience = value, &[0.4, 0.6, 0.8, 1.0]),
    ("uses", |numbers, value| numbers.uses = value, &[0.0, 0.05, 0.1, 0.2, 0.3]),
    ("likely uses", |numbers, value| numbers.likely_uses = value, &[0.1, 0.5, 1.0, 2.0]),
    ("edited rounds", |numbers, value| numbers.edited_rounds = value as usize, &[0.0, 3.0, 5.0, 10.0]),
];

/// Searches the numbers, one after the other.
fn fit(recordings: &[Recordings]) -> ClearNumbers {
    let badness = |numbers: ClearNumbers| -> f64 {
        let ours = WINDOWS.map(|window| PricePolicy::Ours(Box::new(layers(window, 1.0, numbers))));
        // What stands before the messages leaves no room to work in the smallest window.
        let outcome = |at: usize, ours: &PricePolicy| recordings[at].outcome(ours).badness();
        let sum = outcome(0, &ours[0]) + outcome(0, &ours[1]) + ours.iter().map(|ours| outcome(1, ours)).sum::<f64>();
        sum / 5.0
    };
    let mut numbers = ClearNumbers::default();
    let mut best = badness(numbers);
    println!("{best:.4} {numbers:?}");
    for _ in 0..SWEEPS {
        let before = numbers;
        for (name, set, values) in NUMBERS {
            for &value in values {
                let mut tried = numbers;
                set(&mut tried, value);
                let bad = if tried == numbers { best } else { badness(tried) };
                eprintln!("  {name} {value}: {bad:.4}");
                if bad < best {
                    (best, numbers) = (bad, tried);
                }
            }
        }
        println!("{best:.4} {numbers:?}");
        if numbers == before {
            break;
        }
    }
    numbers
}

fn print_tables(folder: &Path, numbers: ClearNumbers) -> Result<(), Box<dyn std::error::Error>> {
    let ours = |layers: Layers| PricePolicy::Ours(Box::new(layers));
    for (has_prologue, is_whole, heading) in [
        (true, false, "with what stands before the messages"),
        (true, true, "the same, without those that their own program compacted"),
        (false, false, "messages alone"),
    ] {
        let mut recordings = Recordings::of(&[folder.to_owned()], has_prologue)?;
        recordings.sessions.retain(|(recording, _)| !is_whole || recording.is_whole());
        println!("\n{}, {} sessions, {heading}", folder.display(), recordings.sessions.len());
        for name in PLAIN {
            let policy = PricePolicy::named(name, &Layers::default()).ok_or(name)?;
            recordings.outcome(&policy).print(name);
        }
        for window in WINDOWS {
            let window_only = Layers { clear_when: ClearWhen::Window, ..layers(window, 1.0, numbers) };
            recordings.outcome(&ours(window_only)).print(&format!("{window}, clearWhen window"));
            let cautions: &[f64] = if window == WINDOWS[0] { &CAUTION } else { &[1.0] };
            for caution in cautions {
                let outcome = recordings.outcome(&ours(layers(window, *caution, numbers)));
                outcome.print(&format!("{window}, caution {caution}"));
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, folders): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word == "--fit");
    let mut folders: Vec<PathBuf> = folders.into_iter().map(PathBuf::from).collect();
    if folders.is_empty() {
        folders.push(std::env::var_os(FOLDER).ok_or(format!("name a folder, or set {FOLDER}"))?.into());
    }
    let numbers = if flags.is_empty() {
        ClearNumbers::default()
    } else {
        fit(&[Recordings::of(&folders, true)?, Recordings::of(&folders, false)?])
    };
    folders.iter().try_for_each(|folder| print_tables(folder, numbers))
}
