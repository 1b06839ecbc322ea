//! Turns through the real engine, against the simulated model.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, unreachable_pub, reason = "tests")]

#[path = "../../../tests/skipped.rs"]
mod skipped;
#[path = "it/stage.rs"]
mod stage;

#[path = "it/answers.rs"]
mod answers;
#[path = "it/asking.rs"]
mod asking;
#[path = "it/built_in.rs"]
mod built_in;
#[path = "it/children.rs"]
mod children;
#[path = "it/claiming.rs"]
mod claiming;
#[path = "it/clearing.rs"]
mod clearing;
#[path = "it/compacting.rs"]
mod compacting;
#[path = "it/continuing.rs"]
mod continuing;
#[path = "it/cost.rs"]
mod cost;
#[path = "it/covering.rs"]
mod covering;
#[path = "it/crash.rs"]
mod crash;
#[path = "it/defining.rs"]
mod defining;
#[path = "it/dreaming.rs"]
mod dreaming;
#[path = "it/dreaming_badly.rs"]
mod dreaming_badly;
#[path = "it/dreaming_beside.rs"]
mod dreaming_beside;
#[path = "it/dreaming_gently.rs"]
mod dreaming_gently;
#[path = "it/dreaming_sources.rs"]
mod dreaming_sources;
#[path = "it/dreaming_user_shelf.rs"]
mod dreaming_user_shelf;
#[path = "it/elsewhere.rs"]
mod elsewhere;
#[path = "it/embed.rs"]
mod embed;
#[path = "it/forking.rs"]
mod forking;
#[path = "it/forks.rs"]
mod forks;
#[path = "it/gate.rs"]
mod gate;
#[path = "it/hearing.rs"]
mod hearing;
#[path = "it/hostile_mail.rs"]
mod hostile_mail;
#[path = "it/hostile_team.rs"]
mod hostile_team;
#[path = "it/injected.rs"]
mod injected;
#[path = "it/keeping.rs"]
mod keeping;
#[path = "it/knowing.rs"]
mod knowing;
#[path = "it/learning.rs"]
mod learning;
#[path = "it/learning_paid.rs"]
mod learning_paid;
#[path = "it/learning_removed.rs"]
mod learning_removed;
#[path = "it/learning_turns.rs"]
mod learning_turns;
#[path = "it/ledger.rs"]
mod ledger;
#[path = "it/listing.rs"]
mod listing;
#[path = "it/mailing.rs"]
mod mailing;
#[path = "it/media.rs"]
mod media;
#[path = "it/outfits.rs"]
mod outfits;
#[path = "it/plan.rs"]
mod plan;
#[path = "it/posting.rs"]
mod posting;
#[path = "it/recorded.rs"]
mod recorded;
#[path = "it/recorded_dreams.rs"]
mod recorded_dreams;
#[path = "it/recorded_talks.rs"]
mod recorded_talks;
#[path = "it/replaying.rs"]
mod replaying;
#[path = "it/restricted.rs"]
mod restricted;
#[path = "it/restricted_tricks.rs"]
mod restricted_tricks;
#[path = "it/retention.rs"]
mod retention;
#[path = "it/rewind.rs"]
mod rewind;
#[path = "it/scenario.rs"]
mod scenario;
#[path = "it/server.rs"]
mod server;
#[path = "it/shape.rs"]
mod shape;
#[path = "it/spilling.rs"]
mod spilling;
#[path = "it/subagents.rs"]
mod subagents;
#[path = "it/trials.rs"]
mod trials;
#[path = "it/unruly.rs"]
mod unruly;
#[path = "it/worker.rs"]
mod worker;
#[path = "it/worktrees.rs"]
mod worktrees;
#[path = "it/writing.rs"]
mod writing;
