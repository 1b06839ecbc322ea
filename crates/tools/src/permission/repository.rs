//! Check that git can be run in a directory without running anything else.
//!
//! Git runs programs that a repository's configuration names: to watch files, to show differences, to convert them. So
//! a git command is read-only only if that configuration holds nothing but keys from a list of harmless ones. Includes
//! count, and so do the submodules that git would look into. The configuration of the user and the system is trusted.
//! Any layout other than a plain clone, or a worktree that its repository knows of, is rejected. Nothing is run to find
//! out.

use std::path::{Path, PathBuf};

use crate::git_index::{self, BadIndex};

/// Largest configuration file that is read, in bytes.
const CONFIG_LIMIT: u64 = 256 * 1024;

/// Depth to which includes and submodules are followed.
const DEEPEST: usize = 4;

/// Limit on submodules that are checked.
const MOST_SUBMODULES: usize = 64;

/// The mode of a submodule in the index.
const SUBMODULE: u32 = 0o160_000;

/// Keys that make git run nothing and use no network. A `*` stands for the name of a subsection.
const HARMLESS: &str = "core.repositoryformatversion core.filemode core.logallrefupdates core.ignorecase core.precomposeunicode \
    core.symlinks core.autocrlf core.eol core.safecrlf core.quotepath core.abbrev core.compression core.preloadindex \
    core.untrackedcache core.checkstat core.trustctime core.whitespace core.longpaths core.commentchar core.sharedrepository \
    extensions.objectformat extensions.worktreeconfig extensions.refstorage remote.*.url remote.*.fetch remote.*.pushurl remote.*.tagopt \
    remote.*.prune remote.*.mirror remote.*.gh-resolved remote.pushdefault branch.*.remote branch.*.merge branch.*.rebase branch.*.description \
    branch.*.pushremote branch.*.vscode-merge-base branch.*.gh-merge-base branch.*.github-pr-owner-number branch.autosetuprebase \
    branch.autosetupmerge branch.sort user.name user.email user.signingkey user.useconfigonly init.defaultbranch pull.rebase \
    pull.ff push.default push.autosetupremote push.followtags fetch.prune fetch.prunetags merge.ff merge.conflictstyle \
    rebase.autosquash rebase.autostash rebase.updaterefs commit.gpgsign tag.gpgsign tag.sort gui.wmstate gui.geometry \
    color.ui color.status color.diff color.branch diff.renames diff.algorithm diff.colormoved diff.mnemonicprefix diff.noprefix \
    diff.renamelimit diff.indentheuristic diff.context log.date log.decorate log.abbrevcommit log.follow \
    status.short status.branch status.showuntrackedfiles submodule.*.url submodule.*.active \
    submodule.*.path submodule.*.branch submodule.active submodule.recurse gc.auto gc.autodetach index.version index.threads \
    feature.manyfiles pack.threads maintenance.auto maintenance.strategy rerere.enabled help.autocorrect \
    lfs.repositoryformatversion";

/// Reason why git may run something in `directory`; `None` if it runs nothing but itself there, or there is no
/// repository.
pub fn runs_programs(directory: &Path, home: Option<&Path>) -> Option<String> {
    let directory = files::real(directory).ok()?;
    for place in directory.ancestors() {
        let git = place.join(".git");
        if git.is_dir() {
            return plain(place, &git, home, 0).err();
        }
        if exists(&git) {
            return linked(place, &git, home).err();
        }
        if exists(&place.join("HEAD")) && (exists(&place.join("objects")) || exists(&place.join("refs"))) {
            return Some(format!("{} is laid out as a repository without a working tree", place.display()));
        }
    }
    None
}

/// Paths that git reads of the repository around a directory: all of it, and for a worktree what it shares with others.
/// A home that is a repository is left out.
pub(super) fn around(directory: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let is_home = |root: &PathBuf| home.is_some_and(|home| home.starts_with(root));
    repository(directory)
        .filter(|(root, _)| !is_home(root))
        .map(|(root, common)| vec![root, common])
        .unwrap_or_default()
}

/// The repository around a directory: its files, and git's folder.
pub(crate) fn repository(directory: &Path) -> Option<(PathBuf, PathBuf)> {
    let directory = files::real(directory).ok()?;
    let root = directory.ancestors().find(|place| exists(&place.join(".git")))?;
    let git = root.join(".git");
    let common = folders(root, &git).map_or(git, |(_, common)| common);
    Some((root.to_owned(), common))
}

/// Git's folder of a directory in a worktree, if it is elsewhere.
pub(crate) fn repository_elsewhere(directory: &Path) -> Option<PathBuf> {
    let (root, common) = repository(directory)?;
    (!common.starts_with(root)).then_some(common)
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Checks a clone of its own.
fn plain(root: &Path, git: &Path, home: Option<&Path>, depth: usize) -> Result<(), String> {
    if exists(&git.join("commondir")) {
        return Err(format!("{} belongs to another repository", git.display()));
    }
    harmless_layout(&Layout { root, git, common: git }, home, depth)
}

/// Checks a worktree of a repository elsewhere.
fn linked(root: &Path, file: &Path, home: Option<&Path>) -> Result<(), String> {
    let (git, common) = folders(root, file).ok_or_else(|| format!("{} leads somewhere else", file.display()))?;
    harmless_layout(&Layout { root, git: &git, common: &common }, home, 0)
}

/// The git folder of a worktree, and the one that all worktrees share: its `.git` names a folder there that names it in
/// turn.
fn folders(root: &Path, file: &Path) -> Option<(PathBuf, PathBuf)> {
    let line = |path: &Path| -> Option<String> {
        let text = String::from_utf8(files::read(path, CONFIG_LIMIT).ok()?.bytes).ok()?;
        Some(text.strip_suffix('\n').unwrap_or(&text).to_owned()).filter(|text| !text.contains('\n'))
    };
    // A link would be another way to the same.
    let is_file = file.symlink_metadata().is_ok_and(|found| found.is_file());
    let git = files::real(root.join(line(file).filter(|_| is_file)?.strip_prefix("gitdir: ")?)).ok()?;
    let common = files::real(git.join(line(&git.join("commondir"))?)).ok()?;
    let back = files::real(git.join(line(&git.join("gitdir"))?)).ok()?;
    let stands = git.parent()? == common.join("worktrees") && back == files::real(file).ok()?;
    stands.then_some((git, common))
}

/// Layout of a repository.
struct Layout<'a> {
    /// The working tree.
    root: &'a Path,
    /// Git's folder of this checkout, with its index.
    git: &'a Path,
    /// Git's folder that all worktrees share, with the configuration and hooks.
    common: &'a Path,
}

fn harmless_layout(Layout { root, git, common }: &Layout<'_>, home: Option<&Path>, depth: usize) -> Result<(), String> {
    if exists(&common.join("hooks/post-index-change")) {
        return Err("a hook runs when git looks at the files (post-index-change)".to_owned());
    }
    let mut keys = Vec::new();
    config(&common.join("config"), home, 0, &mut keys)?;
    config(&git.join("config.worktree"), home, 0, &mut keys)?;
    // A repository without files of its own may have worktrees.
    keys.retain(|(key, _)| key != "core.bare" || git == common);
    if let Some((key, _)) = keys.iter().find(|(key, value)| !harmless(key, value)) {
        return Err(format!("{key} in the repository's configuration may run a program"));
    }
    let sha256 = keys.iter().any(|(key, value)| key == "extensions.objectformat" && value != "sha1");
    for path in submodules(&git.join("index"), if sha256 { 32 } else { 20 })? {
        let place = root.join(path);
        let own = place.join(".git");
        if !exists(&own) {
            continue;
        }
        if depth >= DEEPEST {
            return Err("submodules are nested deeply".to_owned());
        }
        let target = if own.is_dir() { own } else { pointed(&own, git)? };
        plain(&place, &target, home, depth + 1)?;
    }
    Ok(())
}

/// Target of a submodule's `.git` file: below the `modules` of its repository.
fn pointed(file: &Path, git: &Path) -> Result<PathBuf, String> {
    let odd = || format!("{} leads somewhere else", file.display());
    let text = files::read(file, CONFIG_LIMIT).map_err(|_| odd())?.bytes;
    let text = String::from_utf8(text).map_err(|_| odd())?;
    let path = text.trim_end().strip_prefix("gitdir: ").ok_or_else(odd)?;
    let target = files::real(file.parent().ok_or_else(odd)?.join(path)).map_err(|_| odd())?;
    let modules = files::real(git.join("modules")).map_err(|_| odd())?;
    if target.starts_with(modules) { Ok(target) } else { Err(odd()) }
}

fn harmless(key: &str, value: &str) -> bool {
    if key == "core.bare" || key == "core.fsmonitor" {
        return value == "false";
    }
    HARMLESS.split_whitespace().any(|known| match known.split_once('*') {
        None => known == key,
        Some((before, after)) => {
            key.len() > before.len() + after.len() && key.starts_with(before) && key.ends_with(after)
        }
    })
}

/// Reads the keys of a configuration file and of those it includes. Anything that git might read differently is an
/// error.
fn config(path: &Path, home: Option<&Path>, depth: usize, keys: &mut Vec<(String, String)>) -> Result<(), String> {
    let odd = |what: &str| format!("{}: {what}", path.display());
    if depth > DEEPEST {
        return Err(odd("includes are nested deeply"));
    }
    let bytes = match files::read(path, CONFIG_LIMIT) {
        Ok(file) => file.bytes,
        Err(files::Error::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(odd(&error.to_string())),
    };
    let text = String::from_utf8(bytes).map_err(|_| odd("it is not text"))?;
    let mut section = String::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let mut line = line.trim();
        if line.starts_with('[') {
            let end = line.rfind(']').ok_or_else(|| odd("a section is not closed"))?;
            section = heading(&line[1..end]).ok_or_else(|| odd("a section that is not plain"))?;
            // A key may stand on the same line.
            line = line[end + 1..].trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.ends_with('\\') {
            return Err(odd("a value goes over several lines"));
        }
        let (name, value) = line.split_once('=').map_or((line, "true"), |(name, value)| (name.trim(), value.trim()));
        if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-') {
            return Err(odd("a key that is not plain"));
        }
        let key = format!("{section}.{}", name.to_ascii_lowercase());
        let includes = key == "include.path" || (key.starts_with("includeif.") && key.ends_with(".path"));
        if includes {
            let value = value.trim_matches('"');
            if value.contains(['\\', '"', '#', ';', '%']) {
                return Err(odd("an include that is not plain"));
            }
            let file = match (value.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                (Some(_), None) => return Err(odd("an include from the home")),
                (None, _) => path.parent().unwrap_or(path).join(value),
            };
            config(&file, home, depth + 1, keys)?;
        } else {
            keys.push((key, value.to_ascii_lowercase()));
        }
    }
    Ok(())
}

/// Parses a heading (`core`, `remote "origin"`) into its form in keys.
fn heading(text: &str) -> Option<String> {
    let plain = |name: &str| {
        let plain = !name.is_empty()
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '.');
        plain.then(|| name.to_ascii_lowercase())
    };
    match text.split_once('"') {
        None => plain(text.trim()),
        Some((name, rest)) => {
            let name = plain(name.trim_end())?;
            let inside = rest.strip_suffix('"')?;
            (!inside.contains(['"', ']', '\n'])).then(|| format!("{name}.{inside}"))
        }
    }
}

/// The paths of submodules in an index.
fn submodules(path: &Path, hash: usize) -> Result<Vec<PathBuf>, String> {
    let odd = || format!("{} cannot be read", path.display());
    let bytes = match files::read(path, git_index::LIMIT) {
        Ok(file) => file.bytes,
        Err(files::Error::NotFound { .. }) => return Ok(Vec::new()),
        Err(_) => return Err(odd()),
    };
    let mut found = Vec::new();
    let keep = |mode: u32, name: &[u8]| {
        if mode == SUBMODULE && found.len() <= MOST_SUBMODULES {
            found.push(String::from_utf8(name.to_vec()).map(PathBuf::from));
        }
    };
    git_index::entries(&bytes, hash, keep).map_err(|bad| match bad {
        BadIndex::Broken => odd(),
        BadIndex::Split => "the index is split over several files".to_owned(),
    })?;
    if found.len() > MOST_SUBMODULES {
        return Err("more submodules than are looked at".to_owned());
    }
    found.into_iter().collect::<Result<_, _>>().map_err(|_| odd())
}
