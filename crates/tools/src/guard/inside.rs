//! The guard inside a confinement: it gives up its privileges for good, and then runs the command.
//!
//! It is as confined as the command, so that nothing is gained by tampering with it. As the first process of its
//! namespace it cannot be killed from inside, and all processes in there end with it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::unistd::chdir;

use super::namespaces::failed;
use super::{give_up_privileges, mount_view};
use crate::confinement::{Base, Confinement, Strength, folders_behind};

/// Confines this process.
pub(super) fn confine(confinement: &Confinement, guarded: &[PathBuf]) -> io::Result<()> {
    if confinement.base == Base::Everything {
        // If the one outside is killed, so are we.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    }
    let directory = working_directory()?;
    let confinement = with_programs(confinement);
    if confinement.strength == Strength::Namespaces {
        unshare(CloneFlags::CLONE_NEWNS).map_err(|error| failed("no mount namespace", error))?;
        mount_view::enter(&confinement, guarded)?;
    }
    let signals = give_up_privileges::landlock(&confinement)?;
    give_up_privileges::drop_capabilities()?;
    give_up_privileges::filter(&confinement, signals)?;
    // Nobody looks into us, not even those who are as we are.
    nix::sys::prctl::set_dumpable(false)?;
    chdir(&directory).map_err(|error| failed(&format!("{} in the sandbox", directory.display()), error))
}

#[expect(clippy::disallowed_methods, reason = "a guard is told where to run by where it is started")]
fn working_directory() -> io::Result<PathBuf> {
    std::env::current_dir()
}

/// Adds the folders of `PATH`, and those that their programs need, if they are hidden. Shared folders are left out: the
/// root, a home, a temporary one.
#[expect(clippy::disallowed_methods, reason = "the command's environment is our own")]
fn with_programs(confinement: &Confinement) -> Confinement {
    let mut confinement = confinement.clone();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let homes = confinement.hidden.iter().chain(&confinement.private).chain(&own);
    let homes: Vec<PathBuf> = homes.filter_map(|home| home.canonicalize().ok()).collect();
    let hidden = |folder: &Path| {
        let wide = !folder.is_absolute() || homes.iter().any(|home| home.starts_with(folder));
        let by_base = match confinement.base {
            Base::Everything => folder.starts_with("/run") || homes.iter().any(|home| folder.starts_with(home)),
            Base::System => !["/usr", "/tmp", "/var/tmp"].iter().any(|known| folder.starts_with(known)),
        };
        by_base && !wide
    };
    let folders: BTreeSet<PathBuf> = std::env::split_paths(&path).filter(|folder| hidden(folder)).collect();
    let beside = folders_behind(folders.iter());
    confinement.readable.extend(beside.into_iter().filter(|folder| hidden(folder) && !folders.contains(folder)));
    confinement.readable.extend(folders);
    confinement
}
