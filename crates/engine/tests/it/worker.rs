//! A worker: a model that does one numbered step after another, each with a result of some size.
//!
//! It looks only at what is visible. A step whose trace is lost is done again, and the marks it leaves on disk show it.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The model's rules: so many steps, then it is done. The summariser and who writes the notes say how far the work is.
pub fn script(steps: u32) -> String {
    include_str!("worker.toml").replace("STEPS", &steps.to_string())
}

/// Puts the worker's tool into a folder: each step leaves a mark and prints so many bytes.
pub fn equip(folder: &Path, bytes: usize) {
    let mut text = String::new();
    let mut line = 0;
    while text.len() < bytes {
        let _ = writeln!(text, "the parser reads line {line} of the module and finds nothing of note in its body");
        line += 1;
    }
    text.truncate(bytes);
    std::fs::write(folder.join("output.txt"), text).unwrap();
    let tool = "#!/bin/sh\necho \"$1\" >> done.txt\n\
                echo \"work $1: FACT step $1: v$1-$(($1 * 7919 % 100003))\"\ncat output.txt\n";
    std::fs::write(folder.join("work"), tool).unwrap();
    std::fs::set_permissions(folder.join("work"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The steps that were done, in order.
pub fn done(folder: &Path) -> Vec<u32> {
    let marks = std::fs::read_to_string(folder.join("done.txt")).unwrap_or_default();
    marks.lines().map(|line| line.parse().unwrap()).collect()
}
