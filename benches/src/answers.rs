//! Pollution: of what is saved from recorded answers of a capable model, the share that should not have been.
//!
//! The recordings, the judgement of each memory and the way they are put through the real path are those of the engine's tests.

use std::path::Path;

use anyhow::{Result, anyhow};

use crate::table::{Row, Unit};

#[path = "../../crates/engine/tests/answers/in_turn.rs"]
#[allow(unreachable_pub, reason = "shared with tests")]
mod in_turn;
#[path = "../../crates/engine/tests/answers/replay.rs"]
#[allow(unreachable_pub, dead_code, missing_docs, reason = "shared with tests")]
mod replay;

/// The most that should not have been saved.
const POLLUTION: f64 = 0.1;

/// The rows.
pub(crate) async fn rows() -> Result<[Row; 2]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engine/tests/answers/extraction");
    let recordings = replay::read::<replay::Recording>(&folder).map_err(|error| anyhow!(error))?;
    let (mut saved, mut polluted) = (0, 0);
    for (file, recording) in &recordings {
        let replayed = replay::replay(recording).await.map_err(|error| anyhow!("{}: {error}", file.display()))?;
        saved += replayed.saved().count();
        polluted += recording.polluted(&replayed);
    }
    Ok([
        Row::figure("recorded answers about sessions", format!("{}, {saved} memories saved", recordings.len())),
        Row::at_most(
            "  duplicate, derivable, passing or nobody's word",
            Unit::Percent,
            polluted as f64 / saved as f64,
            POLLUTION,
        ),
    ])
}
