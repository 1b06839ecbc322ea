//! Trouble that members of the load have with their own machine: a disk that is full, a folder that may not be listed, a
//! clock that was set back.
//!
//! A kind that this machine cannot make (mounts and other users need root, a clock of one's own a C compiler) is told and
//! left out; those members then have only what everybody has.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skipped::{skipped, skipped_on_this_machine};
use crate::stage::bare;

/// The user `nobody`.
const NOBODY: u32 = 65_534;
/// Room for some hundred memories and the state of the sync.
const DISK: &str = "size=1500k";
/// By how many seconds a clock is set back, times the number of who has it.
const BACK: u64 = 7_200;
/// A library that sets back the clock of the program that loads it.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    const char *back = getenv("CLOCK_BACK");
    if (!failed && clock == CLOCK_REALTIME && back) now->tv_sec -= atol(back);
    return failed;
}
"#;

/// What goes wrong on a member's machine.
pub enum Trouble {
    /// Nothing of its own.
    None,
    /// The disk is full now and then.
    SmallDisk(PathBuf),
    /// The program runs as somebody who may not list the folder now and then.
    Forbidden,
    /// The clock is behind that of everybody else.
    Clock(PathBuf, u64),
}

/// What this machine can make.
pub struct Means {
    mounts: bool,
    users: bool,
    /// The library for clocks.
    pub clock: Option<PathBuf>,
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

impl Means {
    /// Tries each of them below `root`, which others may enter from now on.
    pub fn of(root: &Path) -> Self {
        fs::set_permissions(root, Permissions::from_mode(0o755)).unwrap();
        let trial = root.join("trial");
        fs::create_dir(&trial).unwrap();
        let mounts = mount(&trial);
        if mounts {
            unmount(&trial);
        }
        let users = succeeds(bare(&trial, &trial).arg("--version").uid(NOBODY).gid(NOBODY));
        let (source, library) = (root.join("clock.c"), root.join("clock.so"));
        fs::write(&source, CLOCK).unwrap();
        let compiled = succeeds(Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]));
        let means = Self { mounts, users, clock: compiled.then_some(library) };
        for (there, what) in [(mounts, "full disks"), (users, "folders that may not be listed")] {
            if !there {
                skipped_on_this_machine(&format!("{what}, which this machine cannot make"));
            }
        }
        if !compiled {
            skipped("clocks that are set back: there is no cc");
        }
        means
    }

    /// The trouble of a member.
    pub fn trouble(&self, number: usize, home: &Path) -> Trouble {
        match (number % 4, &self.clock) {
            (1, _) if self.mounts => {
                fs::create_dir_all(home).unwrap();
                assert!(mount(home));
                Trouble::SmallDisk(home.to_owned())
            }
            (2, _) if self.users => Trouble::Forbidden,
            (3, Some(library)) => Trouble::Clock(library.clone(), number as u64 * BACK),
            _ => Trouble::None,
        }
    }
}

fn mount(at: &Path) -> bool {
    succeeds(Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(at))
}

fn unmount(at: &Path) {
    let _ = succeeds(Command::new("umount").arg("--lazy").arg(at));
}

impl Drop for Trouble {
    fn drop(&mut self) {
        if let Self::SmallDisk(at) = self {
            unmount(at);
        }
    }
}

impl Trouble {
    /// What the command is run with.
    pub fn beset(&self, command: &mut Command) {
        match self {
            Self::Forbidden => {
                command.uid(NOBODY).gid(NOBODY);
            }
            Self::Clock(library, back) => set_back(command, library, *back),
            Self::None | Self::SmallDisk(_) => {}
        }
    }

    /// What was written belongs to who runs the program: everything up to `home`.
    pub fn give(&self, path: &Path, home: &Path) {
        if matches!(self, Self::Forbidden) {
            for path in path.ancestors().take_while(|path| path.starts_with(home)) {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
    }

    /// The same of all that is there.
    pub fn give_all(&self, home: &Path) {
        if matches!(self, Self::Forbidden) {
            assert!(succeeds(Command::new("chown").args(["-R", &NOBODY.to_string()]).arg(home)));
        }
    }

    /// It begins; says whether it has to end.
    pub fn begin(&self, folder: &Path) -> bool {
        match self {
            Self::SmallDisk(home) => {
                let mut ballast = File::create(home.join("ballast")).unwrap();
                for size in [64 * 1024, 512] {
                    while ballast.write_all(&vec![0; size]).is_ok() {}
                }
                true
            }
            Self::Forbidden => fs::set_permissions(folder, Permissions::from_mode(0o000)).is_ok(),
            Self::None | Self::Clock(..) => false,
        }
    }

    /// It ends.
    pub fn end(&self, folder: &Path) {
        match self {
            Self::SmallDisk(home) => fs::remove_file(home.join("ballast")).unwrap(),
            Self::Forbidden => fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap(),
            Self::None | Self::Clock(..) => {}
        }
    }
}

/// Sets back the clock of a program.
pub fn set_back(command: &mut Command, library: &Path, seconds: u64) {
    command.env("LD_PRELOAD", library).env("CLOCK_BACK", seconds.to_string());
}
