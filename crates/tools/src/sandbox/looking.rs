//! The wall around commands that only look: they run because they were judged to do nothing else, and here the kernel
//! sees to it that they cannot.
//!
//! They see the working directories, the system's folders, programs and git's configuration, all read-only, and nothing
//! else of the home. A temporary folder of their own is all they can write to. They open no socket, and of processes that
//! are not theirs they see no more than the names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Base, Confinement, Network, tool_folders};
use crate::permission::Looking;
use crate::process::{self, End, Ground, Variables};
use crate::scope::Scope;

/// How long a trial may take. It takes a few milliseconds.
const TRIAL: Duration = Duration::from_secs(10);

/// Where git looks for the user's configuration, from the home.
const GIT: [&str; 4] = [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];

/// Keys of git's configuration that name another file.
const GIT_FILES: [&str; 3] = ["path", "excludesfile", "attributesfile"];

/// The largest configuration that is looked through.
const CONFIG: u64 = 256 * 1024;

/// Words that stand where a key does.
const KEYS: [&str; 6] = ["token", "secret", "password", "passwd", "extraheader", "_key"];

/// What a command sees that only looks. `temporary` is its own, and is `/tmp` to it; without one that is memory.
pub(crate) fn confinement(scope: &Scope, looking: &Looking, temporary: Option<PathBuf>) -> Confinement {
    let mut readable = scope.directories();
    readable.extend(looking.readable.iter().cloned());
    readable.extend(std::iter::once(scope.temporary()).chain(scope.scratchpad()).map(Path::to_owned));
    Confinement {
        hidden: scope.private().to_vec(),
        denied: looking.hidden.clone(),
        temporary,
        ..Confinement::looking_at(readable, Vec::new(), scope.home())
    }
}

impl Confinement {
    /// For a program that looks at these places, and changes those.
    pub fn looking_at(mut readable: Vec<PathBuf>, writable: Vec<PathBuf>, home: Option<&Path>) -> Self {
        readable.extend(home.map(tool_folders).unwrap_or_default());
        readable.extend(home.map(git_files).unwrap_or_default());
        Self { readable, writable, network: Network::None, base: Base::System, ..Self::default() }
    }
}

/// Tries the wall with a command that does nothing; the error is why there is none.
pub(crate) async fn find_out(scope: &Scope) -> Result<(), String> {
    let Some(guard) = scope.guard().filter(|_| cfg!(target_os = "linux")) else {
        return Err("there is no guard program to make it".to_owned());
    };
    let (directory, confinement) = (scope.project(), confinement(scope, &Looking::default(), None));
    let (environment, variables) = (scope.environment(), Variables::Ordinary);
    let ground = Ground { directory, environment, guard: Some(guard), confinement: Some(&confinement), variables };
    let trial = process::start("true", ground).map_err(|trouble| trouble.why())?;
    let ended = trial.watch(TRIAL, &CancellationToken::new(), |_| {}).await.map_err(|trouble| trouble.why())?;
    match ended.end {
        End::Exited(status) if status.success() => Ok(()),
        End::Exited(status) => Err(format!("a trial ended with {status}")),
        End::TimedOut | End::Cancelled => Err("a trial did not end".to_owned()),
    }
}

/// Git's configuration in a home, with the files it names, as far as it holds no keys.
fn git_files(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in GIT.iter().map(|name| home.join(name)) {
        let Ok(file) = files::read(&path, CONFIG) else { continue };
        let text = String::from_utf8_lossy(&file.bytes).into_owned();
        if holds_a_key(&text) {
            continue;
        }
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            if !GIT_FILES.contains(&key.trim().to_ascii_lowercase().as_str()) {
                continue;
            }
            let value = value.trim().trim_matches('"');
            let named = value.strip_prefix("~/").map_or_else(|| path.with_file_name(value), |rest| home.join(rest));
            let keyless =
                files::read(&named, CONFIG).is_ok_and(|file| !holds_a_key(&String::from_utf8_lossy(&file.bytes)));
            found.extend(keyless.then_some(named));
        }
        found.push(path);
    }
    found
}

/// Whether a text may hold a key: by a word, or by an address with a name in it.
fn holds_a_key(text: &str) -> bool {
    let text = text.to_lowercase();
    let addressed = |line: &str| {
        line.split("://").skip(1).any(|rest| rest.split(['/', '"']).next().is_some_and(|host| host.contains('@')))
    };
    KEYS.iter().any(|word| text.contains(word)) || text.lines().any(addressed)
}
