//! Problems and drift in memories.

use memory::{Memory, doctor, drift, scan};

use crate::exit::Code;
use crate::memory_shelves::CommandShelves;
use crate::out::{data, talk};

/// Finds what is out of order, and mends what can be mended.
pub(super) fn examine(shelves: &CommandShelves, fix: bool) -> anyhow::Result<Code> {
    let directory = shelves.main().to_owned();
    if fix {
        let mended = shelves.as_the_user(&directory, |store| Ok(doctor::mend(store)?))?;
        for one in &mended {
            data!("{one}")?;
        }
        if mended.is_empty() {
            talk!("There was nothing to fix.");
        }
    }
    let store = shelves.store(&directory)?;
    let mut left = doctor::examine(&store)?;
    left.extend(doctor::over(&store, shelves.now())?);
    if left.is_empty() {
        if !fix {
            talk!("Everything is in order.");
        }
        return Ok(Code::Success);
    }
    if fix {
        talk!("\nLeft alone, because a fix would be a guess:");
    }
    for finding in &left {
        data!("{finding}")?;
    }
    talk!(
        "\nhint: {}",
        if fix {
            "cairn memory edit NAME changes a type or a text"
        } else {
            "cairn memory doctor --fix fixes what can be fixed"
        }
    );
    Ok(Code::Failure)
}

/// Prints what memories name that is gone or has changed.
pub(super) fn drifted(shelves: &CommandShelves) -> anyhow::Result<Code> {
    let store = shelves.store(shelves.main())?;
    let mut drifted = 0;
    for path in scan::paths(store.root())? {
        let Ok(memory) = Memory::read(store.root(), &path) else { continue };
        for one in drift::check(&memory, &shelves.place.directory) {
            data!("{path}: {one}")?;
            drifted += 1;
        }
    }
    if drifted == 0 {
        talk!("Nothing that memories name has changed.");
        return Ok(Code::Success);
    }
    Ok(Code::Failure)
}
