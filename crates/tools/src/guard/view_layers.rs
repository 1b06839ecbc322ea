//! Layers of a confined command's view, as a list: what is mounted over a read-only tree, and in which order.

use std::path::{Path, PathBuf};

use super::pinned::{is_below, resolved};
use crate::confinement::{Base, Confinement, Network};

/// Directories with the system's sockets.
const RUN: [&str; 2] = ["/run", "/var/run"];

/// Temporary folder that others use too.
const SCRATCH: &str = "/var/tmp";

/// The temporary folder.
const TEMPORARY: &str = "/tmp";

/// Folders of the system: programs and what they need, and the state of the machine. The target of a symlink at one of
/// these places is shown at its own path.
const SYSTEM: &str = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /gnu /snap /proc /sys/block /sys/bus /sys/class \
    /sys/dev /sys/devices /var/lib/dpkg /var/lib/rpm /var/lib/pacman /var/lib/apt /var/cache/apt /var/cache/man /run/utmp \
    /run/current-system /run/log/journal /var/log/journal";

/// Configuration of the resolver, which may be a symlink into `/run`.
const RESOLVER: &str = "/etc/resolv.conf";

/// Content of a path in the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Layer {
    /// Hidden.
    Hidden,
    /// Empty and writable.
    Empty,
    /// The original content, read-only.
    ReadOnly,
    /// The content of this path outside, writable.
    Writable(PathBuf),
    /// A symlink to a path that is shown elsewhere.
    Link(PathBuf),
    /// An existing symlink, which cannot be replaced.
    Held,
}

impl Layer {
    /// The source outside of what is shown at a path, if any.
    pub(super) fn source<'a>(&'a self, place: &'a Path) -> Option<&'a Path> {
        match self {
            Self::ReadOnly => Some(place),
            Self::Writable(source) => Some(source),
            Self::Hidden | Self::Empty | Self::Link(_) | Self::Held => None,
        }
    }
}

/// The layers, each at a path without symlinks, deeper ones later. Of several at the same path the last one wins.
pub(super) fn layers(confinement: &Confinement, guarded: &[PathBuf]) -> Vec<(PathBuf, Layer)> {
    let mut layers: Vec<(PathBuf, Layer)> = Vec::new();
    let writable = &confinement.writable;
    let real = |path: &Path| resolved(path, writable);
    let mut put = |path: &Path, layer: Layer| layers.extend(real(path).map(|path| (path, layer)));
    let mut links = Vec::new();
    match confinement.base {
        Base::Everything => {
            RUN.iter().for_each(|path| put(Path::new(path), Layer::Hidden));
            put(Path::new(SCRATCH), Layer::Empty);
            confinement.private().for_each(|path| put(path, Layer::Hidden));
        }
        Base::System => {
            for path in SYSTEM.split_whitespace().map(Path::new) {
                match path.read_link() {
                    Ok(target) => links.push((path.to_owned(), Layer::Link(target))),
                    Err(_) => put(path, Layer::ReadOnly),
                }
            }
            // Of what is not shown, nothing has to be hidden.
            let shown = |path: &&PathBuf| SYSTEM.split_whitespace().any(|folder| is_below(path, Path::new(folder)));
            confinement.private().filter(shown).for_each(|path| put(path, Layer::Hidden));
        }
    }
    let temporary = confinement.temporary.as_deref().and_then(real);
    put(Path::new(TEMPORARY), temporary.map_or(Layer::Empty, Layer::Writable));
    confinement.hidden.iter().for_each(|path| put(path, Layer::Hidden));
    for path in shown_by_itself(confinement) {
        put(path, Layer::ReadOnly);
        if let (Ok(target), Some(place)) = (path.read_link(), place_of(path)) {
            links.push((place, Layer::Link(target)));
        }
    }
    if confinement.network == Network::All {
        put(Path::new(RESOLVER), Layer::ReadOnly);
    }
    for path in writable {
        if real(path).as_ref() == Some(path) {
            put(path, Layer::Writable(path.clone()));
        }
    }
    guarded.iter().chain(&confinement.read_only).for_each(|path| put(path, Layer::ReadOnly));
    confinement.denied.iter().for_each(|path| put(path, Layer::Hidden));
    let is_held = |path: &&PathBuf| path.is_symlink() && place_of(path).as_ref() == Some(path);
    layers.extend(guarded.iter().filter(is_held).map(|path| (path.clone(), Layer::Held)));
    layers.extend(links);
    layers.sort_by_key(|(path, _)| path.components().count());
    needed(layers)
}

/// Paths that have to be mounted: what is in a working directory, or in another mounted folder, is visible with that.
fn shown_by_itself(confinement: &Confinement) -> Vec<&PathBuf> {
    let Confinement { readable, writable, hidden, .. } = confinement;
    let seen_with = |path: &Path, folder: &PathBuf| {
        let between = |hidden: &PathBuf| hidden != folder && hidden.starts_with(folder) && path.starts_with(hidden);
        path != folder && path.starts_with(folder) && !hidden.iter().any(between)
    };
    let works_in = |path: &Path| writable.iter().any(|directory| path.starts_with(directory));
    // What a link leads to may lie elsewhere.
    let named = |path: &Path| !path.is_symlink() && readable.iter().any(|folder| seen_with(path, folder));
    readable.iter().filter(|path| !works_in(path) && !named(path)).collect()
}

/// Removes hidden paths within hidden ones, and shown paths within shown ones: each costs a mount.
fn needed(layers: Vec<(PathBuf, Layer)>) -> Vec<(PathBuf, Layer)> {
    let mut needed: Vec<(PathBuf, Layer)> = Vec::new();
    for (path, layer) in layers {
        let around = needed.iter().rev().find(|(around, _)| is_below(&path, around)).map(|(_, layer)| layer);
        let again = matches!(layer, Layer::Hidden | Layer::ReadOnly) && around == Some(&layer);
        if !again {
            needed.push((path, layer));
        }
    }
    needed
}

/// Path of an entry itself, even if it is a symlink.
fn place_of(path: &Path) -> Option<PathBuf> {
    Some(resolved(path.parent()?, &[])?.join(path.file_name()?))
}
