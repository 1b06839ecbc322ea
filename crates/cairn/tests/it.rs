//! The program as its users meet it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    unreachable_pub,
    reason = "tests"
)]

#[path = "it/memory_commands.rs"]
mod memory_commands;
#[path = "it/memory_of_subagents.rs"]
mod memory_of_subagents;
#[path = "../../../tests/skipped.rs"]
mod skipped;
#[path = "it/stage.rs"]
mod stage;

// What the team's own suite stands on: databases and an issuer.
#[cfg(feature = "server")]
#[path = "../../team/tests/it/databases.rs"]
mod databases;
#[cfg(feature = "server")]
#[path = "../../team/tests/it/office.rs"]
mod office;

#[path = "it/agents.rs"]
mod agents;
#[path = "it/agents_heard.rs"]
mod agents_heard;
#[path = "it/agents_hostile.rs"]
mod agents_hostile;
#[path = "it/agents_killed.rs"]
mod agents_killed;
#[path = "it/agents_kills.rs"]
mod agents_kills;
#[path = "it/agents_screen.rs"]
mod agents_screen;
#[path = "it/bare.rs"]
mod bare;
#[path = "it/clients.rs"]
mod clients;
#[path = "it/config.rs"]
mod config;
#[path = "it/consent.rs"]
mod consent;
#[path = "it/docs.rs"]
mod docs;
#[path = "it/dreaming.rs"]
mod dreaming;
#[path = "it/edges.rs"]
mod edges;
#[path = "it/ends.rs"]
mod ends;
#[path = "it/headless.rs"]
mod headless;
#[path = "it/hooks.rs"]
mod hooks;
#[path = "it/hooks_events.rs"]
mod hooks_events;
#[path = "it/hooks_hostile.rs"]
mod hooks_hostile;
#[path = "it/hooks_servers.rs"]
mod hooks_servers;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/includes.rs"]
mod includes;
#[path = "it/journal.rs"]
mod journal;
#[path = "it/kills.rs"]
mod kills;
#[path = "it/learning.rs"]
mod learning;
#[path = "it/plugins.rs"]
mod plugins;
#[path = "it/policy.rs"]
mod policy;
#[path = "it/prices.rs"]
mod prices;
#[path = "it/recall.rs"]
mod recall;
#[path = "it/regrets.rs"]
mod regrets;
#[path = "it/reload.rs"]
mod reload;
#[path = "it/sandbox.rs"]
mod sandbox;
#[path = "it/sdk.rs"]
mod sdk;
#[path = "it/secrets.rs"]
mod secrets;
#[path = "it/servers.rs"]
mod servers;
#[path = "it/servers_hostile.rs"]
mod servers_hostile;
#[path = "it/servers_real.rs"]
mod servers_real;
#[path = "it/session_flags.rs"]
mod session_flags;
#[path = "it/sessions.rs"]
mod sessions;
#[path = "it/skills.rs"]
mod skills;
#[path = "it/spending.rs"]
mod spending;
#[path = "it/stream.rs"]
mod stream;
#[path = "it/surroundings.rs"]
mod surroundings;
#[path = "it/talked_round.rs"]
mod talked_round;
#[cfg(feature = "server")]
#[path = "it/team.rs"]
mod team;
#[cfg(feature = "server")]
#[path = "it/team_docs.rs"]
mod team_docs;
#[cfg(feature = "server")]
#[path = "it/team_load.rs"]
mod team_load;
#[cfg(feature = "server")]
#[path = "it/team_load_programs.rs"]
mod team_load_programs;
#[cfg(feature = "server")]
#[path = "it/team_load_trouble.rs"]
mod team_load_trouble;
#[cfg(feature = "server")]
#[path = "it/team_recovery.rs"]
mod team_recovery;
#[cfg(feature = "server")]
#[path = "it/team_session.rs"]
mod team_session;
#[cfg(feature = "server")]
#[path = "it/team_strangers.rs"]
mod team_strangers;
#[path = "it/teammates.rs"]
mod teammates;
#[path = "it/teammates_led.rs"]
mod teammates_led;
#[path = "it/teammates_seen.rs"]
mod teammates_seen;
#[path = "it/teammates_worktrees.rs"]
mod teammates_worktrees;
#[path = "it/terminal.rs"]
mod terminal;
#[path = "it/terminal_asking.rs"]
mod terminal_asking;
#[path = "it/terminal_attach.rs"]
mod terminal_attach;
#[path = "it/terminal_back.rs"]
mod terminal_back;
#[path = "it/terminal_choices.rs"]
mod terminal_choices;
#[path = "it/terminal_clean.rs"]
mod terminal_clean;
#[path = "it/terminal_commands.rs"]
mod terminal_commands;
#[path = "it/terminal_editing.rs"]
mod terminal_editing;
#[path = "it/terminal_flow.rs"]
mod terminal_flow;
#[path = "it/terminal_limits.rs"]
mod terminal_limits;
#[path = "it/terminal_live.rs"]
mod terminal_live;
#[path = "it/terminal_memory.rs"]
mod terminal_memory;
#[path = "it/terminal_menus.rs"]
mod terminal_menus;
#[path = "it/terminal_modes.rs"]
mod terminal_modes;
#[path = "it/terminal_plain.rs"]
mod terminal_plain;
#[path = "it/terminal_plan.rs"]
mod terminal_plan;
#[path = "it/terminal_resize.rs"]
mod terminal_resize;
#[path = "it/terminal_screen.rs"]
mod terminal_screen;
#[path = "it/terminal_servers.rs"]
mod terminal_servers;
#[path = "it/terminal_setup.rs"]
mod terminal_setup;
#[path = "it/terminal_signals.rs"]
mod terminal_signals;
#[path = "it/terminal_start.rs"]
mod terminal_start;
#[path = "it/terminal_turns.rs"]
mod terminal_turns;
#[path = "it/terminal_window.rs"]
mod terminal_window;
#[path = "it/terminal_work.rs"]
mod terminal_work;
#[path = "it/trouble.rs"]
mod trouble;
#[path = "it/trust.rs"]
mod trust;
#[path = "it/web.rs"]
mod web;
#[path = "it/window.rs"]
mod window;
#[cfg(not(feature = "server"))]
#[path = "it/without_server.rs"]
mod without_server;
#[path = "it/year.rs"]
mod year;
// The same worker as in the engine's scenarios.
#[path = "../../engine/tests/it/worker.rs"]
mod worker;
