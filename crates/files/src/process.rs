//! Running processes: the name in a lock file means something only while its process runs.

use rustix::process::{Pid, test_kill_process};

/// True if a process with that pid runs, whoever owns it.
pub fn process_runs(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    match test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    }
}
