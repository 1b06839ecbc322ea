//! Asking whether a directory is trusted, before a session starts in it: what its files would do, and an answer in a line.
//!
//! A whole line is read, not a key: what was typed ahead for the prompt is no answer. Only what was shown is trusted.

use std::io::{BufRead, IsTerminal};

use settings::trust::{Claim, Kind};

use crate::args::RunArgs;
use crate::out::{show, show_part};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{bold, dim};
use crate::trusted_settings::{self, RunTrust, TrustedSettings};

/// The most that is shown and asked about at once.
const MOST_SHOWN: usize = 100;
/// The longest claim that is asked about: a person cannot judge a longer one.
const LONGEST: usize = 2_000;
/// The most claims that a warning names.
const MOST_NAMED: usize = 5;

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAnswer {
    /// Start the session.
    GoOn,
    /// Do not.
    Quit,
}

/// Asks about what is new in this directory's files, if there is something and somebody to ask.
pub(crate) fn ask(args: &RunArgs, place: &ProgramPaths) -> anyhow::Result<TrustAnswer> {
    if args.one_run() == RunTrust::Trusted || !std::io::stdin().is_terminal() {
        return Ok(TrustAnswer::GoOn);
    }
    // A file that was just let in may ask for more.
    loop {
        match ask_once(args, place)? {
            TrustOutcome::Nothing => return Ok(TrustAnswer::GoOn),
            TrustOutcome::Trusted => {}
            TrustOutcome::Declined(answer) => return Ok(answer),
        }
    }
}

/// The outcome of asking.
enum TrustOutcome {
    /// There was nothing to ask about.
    Nothing,
    Trusted,
    Declined(TrustAnswer),
}

fn ask_once(args: &RunArgs, place: &ProgramPaths) -> anyhow::Result<TrustOutcome> {
    let mut judged = trusted_settings::judge(place, args.settings.as_deref(), RunTrust::No)?;
    judged.left_out.append(&mut judged.narrowed);
    // A bare session reads no instruction files and has no agents.
    judged.left_out.retain(|claim| !(args.is_bare() && matches!(claim.kind, Kind::Include | Kind::Agent)));
    judged.left_out.retain(|claim| !judged.trust.is_settled(claim));
    let short = |claim: &Claim| claim.what.chars().count() <= LONGEST;
    let (mut shown, too_long): (Vec<Claim>, Vec<Claim>) = judged.left_out.into_iter().partition(short);
    let more = shown.len().saturating_sub(MOST_SHOWN);
    shown.truncate(MOST_SHOWN);
    if shown.is_empty() {
        return Ok(TrustOutcome::Nothing);
    }
    show!([bold(&place.directory.display().to_string())]);
    show!("Files in this directory ask for more than you have allowed them. They would");
    for kind in Kind::all() {
        let mut claims = shown.iter().filter(|claim| claim.kind == kind).peekable();
        if claims.peek().is_some() {
            show!(["  ", kind.words(), ":"]);
        }
        claims.for_each(|claim| show!(["    ", claim.what.as_str(), dim(&format!("  {}", claim.place))]));
    }
    if more > 0 {
        show!("You will be asked about {more} more after these.");
    }
    if !too_long.is_empty() {
        show!("{} more are too long to show and are left out.", too_long.len());
    }
    show!("Until you trust them, they can only deny calls, or make Cairn ask you.");
    loop {
        show_part!("Trust them with this? t trust · g go on without · q quit: ");
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line)? == 0 {
            show!();
            return Ok(TrustOutcome::Declined(TrustAnswer::Quit));
        }
        match line.trim().to_lowercase().as_str() {
            "t" | "trust" => {
                judged.trust.remember(&shown)?;
                return Ok(TrustOutcome::Trusted);
            }
            "g" | "go" => {
                judged.trust.decline(&shown)?;
                return Ok(TrustOutcome::Declined(TrustAnswer::GoOn));
            }
            "q" | "quit" => return Ok(TrustOutcome::Declined(TrustAnswer::Quit)),
            _ => {}
        }
    }
}

/// A message for the user about claims that were left out or trusted.
pub(crate) fn claims_note(judged: &TrustedSettings) -> Option<String> {
    if judged.let_in.is_empty() {
        return left_out(judged);
    }
    Some(format!("--trust gives this directory's files: {}", named(&judged.let_in)))
}

/// A message for the user about claims that were left out.
pub(crate) fn left_out(judged: &TrustedSettings) -> Option<String> {
    // Includes are told one by one, with the file that asks for them.
    let left_out: Vec<Claim> = judged.left_out.iter().filter(|claim| claim.kind != Kind::Include).cloned().collect();
    if left_out.is_empty() {
        return None;
    }
    let declined = left_out.iter().all(|claim| judged.trust.is_settled(claim));
    let how = match judged.trust.site().root {
        Some(_) if declined => "you declined before; after `cairn trust revoke` you are asked again",
        Some(_) => "--trust allows it for one run; a session in a terminal asks",
        None => "the home directory is never trusted",
    };
    Some(format!("left out because this directory is not trusted with it: {} ({how})", named(&left_out)))
}

fn named(claims: &[Claim]) -> String {
    let name = |claim: &Claim| {
        // The end of a path says more than its beginning.
        let most = if claim.kind == Kind::Include { LONGEST } else { 80 };
        format!("{} {}", claim.kind.name(), crate::styled_text::one_line(&claim.what, most))
    };
    let mut names: Vec<String> = claims.iter().take(MOST_NAMED).map(name).collect();
    if claims.len() > MOST_NAMED {
        names.push(format!("{} more", claims.len() - MOST_NAMED));
    }
    names.join(", ")
}
