//! Whether a process runs: what a lock file names is worth something only as long as it does.

use rustix::process::{Pid, test_kill_process};

/// Whether a process of that number runs, whoever's it is.
pub fn process_runs(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    match test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    }
}
