//! Shared by the commands that price sessions: the layers for a session's model, and progress.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use engine::configuration::MAX_OUTPUT_TOKENS;
use engine::context::Layers;
use session::price::{FileLeftOut, PricingProgress, Recording};
use transcript::price::Prices;
use transcript::window::{Window, WindowHints};

use crate::out::talk;
use crate::program_paths::ProgramPaths;
use crate::styled_text::{cyan, dim};
use crate::{env, trusted_settings};

/// So many files that were left out are named; of the rest only the number is said.
const MOST_NAMED: usize = 10;
/// Nothing is said of work that takes no longer.
const FIRST: Duration = Duration::from_secs(1);
/// Then so often.
const EVERY: Duration = Duration::from_secs(3);

/// Settings by which sessions are priced.
pub(crate) struct Pricing {
    /// Prices of tokens.
    pub(crate) prices: Prices,
    layers: Layers,
    /// The window in tokens, where one is given.
    window: Option<u64>,
    max_context_tokens: Option<u64>,
    auto_compact_window: Option<u64>,
}

impl Pricing {
    /// The settings in force.
    pub(crate) fn new(place: &ProgramPaths, flag: Option<&str>, window: Option<u64>) -> anyhow::Result<Self> {
        let settings = trusted_settings::settings(place, flag)?;
        Ok(Self {
            prices: settings.prices,
            layers: settings.layers,
            window,
            max_context_tokens: env::MAX_CONTEXT.number()?,
            auto_compact_window: env::COMPACT_WINDOW.number()?,
        })
    }

    /// The layers for a session, in the window that is given or that of its model.
    pub(crate) fn layers(&self, recording: &Recording) -> Layers {
        let window = match self.window {
            Some(size) => given_window(size),
            None => Window::of(&WindowHints {
                model: recording.model(),
                max_context_tokens: self.max_context_tokens,
                auto_compact_window: self.auto_compact_window,
                max_output: MAX_OUTPUT_TOKENS,
                ..WindowHints::default()
            }),
        };
        Layers { window, price: self.prices.of(recording.model()), ..self.layers.clone() }
    }
}

/// A window of so many tokens.
pub(crate) fn given_window(size: u64) -> Window {
    Window::of(&WindowHints { configured: Some(size), max_output: MAX_OUTPUT_TOKENS, ..WindowHints::default() })
}

/// Does a pricing, and says on stderr how far it is where it takes long.
pub(crate) fn with_progress<T>(work: impl FnOnce(&(dyn Fn(PricingProgress) + Sync)) -> T) -> T {
    let pace = PricingPace::default();
    thread::scope(|scope| {
        scope.spawn(|| pace.talk());
        let _end = EndOfWork(&pace);
        work(&|so_far| pace.set(|pace| pace.so_far = Some(so_far)))
    })
}

/// Progress, shared by the workers and the one who reports it.
#[derive(Default)]
struct PricingPace {
    state: Mutex<PaceState>,
    changed: Condvar,
}

#[derive(Default)]
struct PaceState {
    so_far: Option<PricingProgress>,
    is_over: bool,
}

impl PricingPace {
    fn set(&self, set: impl FnOnce(&mut PaceState)) {
        set(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Says from time to time how far it is, until it is over.
    fn talk(&self) {
        let mut wait = FIRST;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let woken = self.changed.wait_timeout_while(state, wait, |state| !state.is_over);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            if state.is_over {
                return;
            }
            match state.so_far {
                Some(PricingProgress { files: (done, all), bytes: (bytes, all_bytes) }) => {
                    let bytes = format!("{} of {} MB", bytes / 1_000_000, all_bytes / 1_000_000);
                    talk!([cyan(&format!("{done} of {all} files")), ", ", dim(&bytes)]);
                }
                None => talk!([dim("reading …")]),
            }
            wait = EVERY;
        }
    }
}

/// Ends the talk with the work, however that ends.
struct EndOfWork<'a>(&'a PricingPace);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        self.0.set(|pace| pace.is_over = true);
        self.0.changed.notify_all();
    }
}

/// Names files that were left out, a row for each.
pub(crate) fn left_out_rows(place: &ProgramPaths, left_out: &[FileLeftOut]) -> Vec<String> {
    let row = |one: &FileLeftOut| format!("left out: {}: {}", place.short(&one.file), one.why);
    let mut rows: Vec<String> = left_out.iter().take(MOST_NAMED).map(row).collect();
    if let Some(more) = left_out.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        rows.push(format!("left out: {more} more; --json names all of them"));
    }
    rows
}
