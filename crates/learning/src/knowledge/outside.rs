//! Files from outside the project that its instruction files would include. Each is a claim; only files that the user
//! agreed to are read, and these may include more.

use std::path::PathBuf;

use memory::instructions::{InstructionFault, Instructions, Note};
use settings::trust::{Claim, Kind, Trust};

/// A file from outside, with its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideFile {
    /// The claim; its place is the file that includes it.
    pub claim: Claim,
    /// The file, links followed.
    pub real: PathBuf,
}

/// Includes the files that the user agreed to. Returns the others, each once.
pub fn settle(instructions: &mut Instructions, trust: &Trust) -> Vec<OutsideFile> {
    loop {
        let left = left(instructions, trust);
        let agreed: Vec<&OutsideFile> = left.iter().filter(|outside| trust.covers(&outside.claim)).collect();
        if agreed.is_empty() {
            return left;
        }
        for outside in agreed {
            instructions.agree(&outside.real);
        }
    }
}

/// The files that were left out.
fn left(instructions: &Instructions, trust: &Trust) -> Vec<OutsideFile> {
    let outside = |note: &Note| match &note.what {
        // Only a file can be agreed to: a folder of rules that leads out is left out.
        InstructionFault::Outside(real) if files::open(real).is_ok() => {
            let what = real.display().to_string();
            let by = trust.site().short(note.parent.as_ref().unwrap_or(&note.path));
            Some(OutsideFile {
                claim: Claim::new(Kind::Include, what.clone(), &what, by, trust.site()),
                real: real.clone(),
            })
        }
        _ => None,
    };
    let mut left: Vec<OutsideFile> = instructions.notes.iter().filter_map(outside).collect();
    left.sort_by(|one, other| one.real.cmp(&other.real));
    left.dedup_by(|one, other| one.real == other.real);
    left
}
