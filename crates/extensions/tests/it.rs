//! Skills, commands, agents and plugins that people have published.

#[path = "it/corpora.rs"]
mod corpora;
#[path = "../../../tests/skipped.rs"]
mod skipped;
